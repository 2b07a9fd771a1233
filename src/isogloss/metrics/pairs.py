"""Scores of parsed and aligned sentence pairs: trees of both sides, the brackets that trees make, and links."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.links import Links
from isogloss.data.tree_pairs import TreePairs
from isogloss.data.treebank import Treebank
from isogloss.errors import LinksError, TreebankError
from isogloss.metrics.alignment import AlignmentScore, score_links
from isogloss.metrics.parsing import ParseScore, score_trees

__all__ = ["PairScore", "bracket_counts", "content_links", "dependency_brackets", "score_pairs"]

Bracket = tuple[int, int, str]


def dependency_brackets(treebank: Treebank, sentence: int) -> frozenset[Bracket]:
    """Constituents of a dependency tree: runs of words below a head with the head itself, labelled by its tag.

    Single words, and heads below which words are no run (where links cross), have none. A bracket is (first word, one
    after the last, label).

    Examples
    --------
    >>> trees = Treebank.of([[("the", "DET", 2), ("cat", "NOUN", 3), ("sleeps", "VERB", 0)]])
    >>> sorted(dependency_brackets(trees, 0))
    [(0, 2, 'NOUN'), (0, 3, 'VERB')]
    """
    heads = treebank.heads[treebank.offsets[sentence] : treebank.offsets[sentence + 1]].tolist()
    first, last, size = list(range(len(heads))), list(range(len(heads))), [1] * len(heads)
    for word in range(len(heads)):
        up, steps = heads[word], 0
        while up > 0 and steps <= len(heads):  # heads of a tree end at the root; others are not trusted
            at = up - 1
            first[at], last[at], size[at] = min(first[at], word), max(last[at], word), size[at] + 1
            up, steps = heads[at], steps + 1
    tags = treebank.strings("upos", sentence)
    whole = ((first[w], last[w] + 1, tags[w]) for w in range(len(heads)) if size[w] > 1)
    spans = [last[w] + 1 - first[w] for w in range(len(heads)) if size[w] > 1]
    sizes = [size[w] for w in range(len(heads)) if size[w] > 1]
    return frozenset(one for one, span, n in zip(whole, spans, sizes, strict=True) if span == n)


def bracket_counts(found: Treebank, gold: Treebank) -> NDArray[np.int64]:
    """int64[n_sentences, 3]: brackets in common, found, and in gold."""
    counts = np.zeros((len(gold), 3), np.int64)
    for s in range(len(gold)):
        ours, right = dependency_brackets(found, s), dependency_brackets(gold, s)
        counts[s] = len(ours & right), len(ours), len(right)
    return counts


def content_links(found: Links, gold: Links) -> Links:
    """The links that are found, without those between two words that gold has no link of.

    Examples
    --------
    >>> gold = Links.of([{(0, 0), (2, 2)}])
    >>> str(content_links(Links.of([{(0, 0), (1, 1), (1, 2)}]), gold)[0])
    '0-0 1-2'
    """
    keep = np.zeros(len(found.source), np.bool_)
    for s in range(len(gold)):
        own, right = (slice(one.offsets[s], one.offsets[s + 1]) for one in (found, gold))
        keep[own] = np.isin(found.source[own], gold.source[right]) | np.isin(found.target[own], gold.target[right])
    return found.keep(keep)


@dataclass(frozen=True)
class PairScore:
    """Scores of both sides and, where both have them, of links; in percent.

    What is not scored is not a number, and not in `as_dict`.
    """

    source: ParseScore
    target: ParseScore
    source_brackets: float
    """F1 of labelled brackets; not a number where one of both texts has no trees."""
    target_brackets: float
    links: AlignmentScore | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        told = {}
        for side, score, brackets in self._sides:
            told[side] = score.as_dict() | ({} if math.isnan(brackets) else {"brackets": brackets})
        return told if self.links is None else told | {"links": self.links.as_dict()}

    def __str__(self) -> str:
        lines = []
        for side, score, brackets in self._sides:
            lines.append(f"{side}: {score}" + ("" if math.isnan(brackets) else f", brackets F1 = {brackets:.2f}"))
        return "\n".join(lines if self.links is None else [*lines, f"links: {self.links}"])

    @property
    def _sides(self) -> tuple[tuple[str, ParseScore, float], ...]:
        return ("source", self.source, self.source_brackets), ("target", self.target, self.target_brackets)


def score_pairs(found: TreePairs, gold: TreePairs, *, content: bool = False, bootstrap: int = 1000) -> PairScore:
    """Score trees of both sides and links against gold.

    Parameters
    ----------
    found, gold : TreePairs
        Two annotations of the same words.
    content : bool
        Gold has links of content words alone: those between two words that it has none of do not count.
    bootstrap : int
        Resamples for intervals.
    """
    if len(found) != len(gold):
        raise TreebankError(
            f"{found.source.name} has {len(found)} sentences but {gold.source.name} has {len(gold)}: sentence k of one "
            "is scored against sentence k of the other. Are they of the same text?"
        )
    brackets = []
    for ours, right in ((found.source, gold.source), (found.target, gold.target)):
        _check_lengths(ours, right)
        common, made, there = bracket_counts(ours, right).sum(axis=0).tolist()
        known = all((side.heads >= 0).any() for side in (ours, right)) and made + there
        brackets.append(100 * 2 * common / (made + there) if known else math.nan)
    links = None
    if gold.links is not None:
        if found.links is None:
            raise LinksError("gold has links, but none were found. Give both, or neither")
        links = score_links(
            content_links(found.links, gold.links) if content else found.links, gold.links, bootstrap=bootstrap
        )
    trees = [
        score_trees(ours, right, bootstrap=bootstrap)
        for ours, right in ((found.source, gold.source), (found.target, gold.target))
    ]
    return PairScore(trees[0], trees[1], brackets[0], brackets[1], links)


def _check_lengths(ours: Treebank, right: Treebank) -> None:
    """Both sides should have the same words; `TreebankError` names the first sentence that has another number."""
    differ = np.flatnonzero(ours.lengths != right.lengths)
    if len(differ):
        s = int(differ[0])
        raise TreebankError(
            f"{ours.name}, sentence {s + 1} has {ours.lengths[s]} words, but in {right.name} it has "
            f"{right.lengths[s]}. Are they of the same text, and of the same side?"
        )
