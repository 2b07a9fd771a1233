"""Trees of which some heads are given: the rest is filled in, under the constraint that the given ones stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.threads import using_threads
from isogloss.errors import TreebankError
from isogloss.structures.partial import can_be_projective, compatible_heads
from isogloss.tasks.parse.cutting import LONGEST as PIECE
from isogloss.tasks.parse.inference import Shape, best_trees, chances_of

if TYPE_CHECKING:
    from isogloss.tasks.parse.parser import DependencyParser

__all__ = ["LONGEST", "check_given", "complete"]

LONGEST = 4 * PIECE
"""Words that a sentence with gaps may have. `predict` cuts into pieces much sooner, which given heads might cross."""
Heads = NDArray[np.int32]
Sentences = NDArray[np.int64]


def complete(parser: DependencyParser, treebank: Treebank, confidence: bool) -> Treebank:
    """What `DependencyParser.complete` does."""
    rows = _with_gaps(treebank, bool(parser.labels_))
    check_given(treebank, parser._learnt.shape)
    if not len(rows):
        return treebank
    words = np.concatenate([np.arange(*treebank.offsets[s : s + 2]) for s in rows.tolist()])
    heads, chances, labels, sure = _filled(parser, treebank.take(rows))
    whole = treebank.heads.copy()
    whole[words] = heads
    open_heads = np.flatnonzero(treebank.heads < 0)
    found = treebank.with_columns(heads=whole)
    if confidence:
        found = found.with_misc("Confidence", _said(treebank.n_words, words, chances, open_heads))
    if labels is None or sure is None:
        return found
    relations, filled = _relations(treebank.columns["deprel"], labels, words)
    found = found.with_columns(deprel=relations)
    return found.with_misc("LabelConfidence", _said(treebank.n_words, words, sure, filled)) if confidence else found


def _with_gaps(treebank: Treebank, labelled: bool) -> Sentences:
    """Sentences in which some head is not known, or some relation that the parser could tell."""
    ids, vocabulary = treebank.columns["deprel"]
    gaps = treebank.heads < 0
    if labelled and vocabulary.index_of("_") >= 0:
        gaps = gaps | (ids == vocabulary.index_of("_"))
    before = np.concatenate([[0], np.cumsum(gaps)])
    return np.flatnonzero(before[treebank.offsets[1:]] > before[treebank.offsets[:-1]])


def _filled(
    parser: DependencyParser, partial: Treebank
) -> tuple[Heads, NDArray[np.float64], Column | None, NDArray[np.float32] | None]:
    """Heads of all words, their posteriors, and relations with theirs."""
    learnt, seen = parser._given(partial)
    tree, chances = np.ascontiguousarray(partial.heads).copy(), np.ones(partial.n_words)
    open_ = np.repeat(~_is_whole(tree, partial.offsets), partial.lengths)
    labels, sure = None, None
    with using_threads(parser.threads):
        if open_.any():  # whole trees are what was given, also where the parser's own could not be so
            tree[open_], chances[open_] = _trees(parser, seen.take(~_is_whole(tree, partial.offsets)), tree[open_])
        if learnt.labeller is not None:
            labels, sure = learnt.labeller.predict(learnt.encode(seen), tree, partial.offsets)
    return tree, chances, labels, sure


def _trees(parser: DependencyParser, seen: Treebank, given: Heads) -> tuple[Heads, NDArray[np.float64]]:
    """The best trees that have the given heads, −1 where any will do, and the posteriors of all heads."""
    heads, chances, at = [np.zeros(0, np.int32)], [np.zeros(0)], 0
    for trees in parser._trees(parser._learnt.encode(seen), given):
        n = int(trees.layout.lengths.sum())
        clamped = trees.having(given[at : at + n])
        heads.append(best_trees(clamped, parser.decoder))
        chances.append(chances_of(clamped.beliefs_of_links(), heads[-1]))
        at += n
    return np.concatenate(heads), np.concatenate(chances)


def _is_whole(heads: Heads, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    open_ = np.concatenate([[0], np.cumsum(heads < 0)])
    return np.asarray(open_[offsets[1:]] == open_[offsets[:-1]])


def _relations(given: Column, found: Column, words: NDArray[np.int64]) -> tuple[Column, NDArray[np.int64]]:
    """The relations of all words, with those found where some words have none, and which words these are."""
    names = dict.fromkeys([*given.vocabulary, *found.vocabulary])
    numbers = {name: number for number, name in enumerate(names)}
    ids = given.ids.copy()
    nothing = given.vocabulary.index_of("_")
    own = np.array([numbers[name] for name in found.vocabulary], np.int32)
    gaps = given.ids[words] == nothing if nothing >= 0 else np.zeros(len(words), np.bool_)
    ids[words[gaps]] = own[found.ids[gaps]]
    return Column(ids, Vocabulary(names)), words[gaps]


def _said(
    n_words: int, words: NDArray[np.int64], chances: NDArray[np.floating], filled: NDArray[np.int64]
) -> list[str | None]:  # fmt: skip
    """For MISC: the posterior of words that were filled in, None for the others."""
    every = np.zeros(n_words)
    every[words] = chances
    said: list[str | None] = [None] * n_words
    for word in filled.tolist():
        said[word] = f"{every[word]:.4f}"
    return said


def check_given(treebank: Treebank, shape: Shape) -> None:
    """`TreebankError` at the first sentence whose given heads no tree of this kind has, or that is too long."""
    if shape.single_root:
        treebank.check_trees()
    else:
        rooted = np.where(treebank.heads == 0, -1, treebank.heads)  # any number of roots is well
        treebank.with_columns(heads=rooted).check_trees()
    open_ = ~_is_whole(treebank.heads, treebank.offsets)
    too_long = np.flatnonzero(open_ & (treebank.lengths > LONGEST))
    if len(too_long):
        s = int(too_long[0])
        raise TreebankError(
            f"{treebank.name}, line {treebank.line_of(int(treebank.offsets[s]))}: {treebank.label_of(s)} has "
            f"{treebank.lengths[s]} words, and gaps are filled in sentences of at most {LONGEST:,}. Is it a list, or "
            "several sentences? Cut it, or fill it in by `isogloss parse apply`, which cuts it"
        )
    if shape.projective:
        _check_projective(treebank, open_, shape.single_root)


def _check_projective(treebank: Treebank, open_: NDArray[np.bool_], single_root: bool) -> None:
    fits = can_be_projective(treebank.heads, treebank.offsets, single_root=single_root)
    wrong = np.flatnonzero(open_ & ~fits)
    if not len(wrong):
        return
    s = int(wrong[0])
    first = int(treebank.offsets[s])
    heads = treebank.heads[first : int(treebank.offsets[s + 1])]
    known = np.flatnonzero(heads >= 0)
    taken = compatible_heads([0, len(heads)], known, heads[known], known, single_root=single_root)
    word = int(known[taken[known] < 0][0])  # the first that has no place beside those before it
    forms = treebank.words(s)
    head = int(heads[word])
    name = "the root" if head == 0 else f"word {head} ({forms[head - 1]!r})"
    found = treebank.sent_ids[s]
    raise TreebankError(
        f"{treebank.name}, line {treebank.line_of(first + word)}{f', sentence {found}' if found else ''}: word "
        f"{word + 1} ({forms[word]!r}) hangs on {name}, and no tree without crossing links has that beside the heads "
        "given before it. Leave one of them open (_), or take a parser of trees that may cross (parse train "
        "--nonprojective)"
    )
