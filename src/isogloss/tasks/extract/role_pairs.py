"""Pairs of a predicate and another word: what they look like, and the links that they are coupled to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.propositions import Propositions
from isogloss.data.treebank import Treebank
from isogloss.features import Axis, Parts, Role, Templates, arcs
from isogloss.structures.hidden import NO_PAIR, Couplings
from isogloss.tasks.extract.coupled import Problem, coupled_templates
from isogloss.tasks.extract.pair_words import distance_bins, path_codes, rooted, sequences, way, word_codes
from isogloss.tasks.parse.constituency.words import Known

__all__ = ["ArgumentPairs", "argument_problem", "role_templates", "sense_problem", "sense_templates", "word_axis"]

Ints = NDArray[np.int64]
_SHORT = 5

PAIRS: tuple[Any, ...] = (
    (), "predicate.lemma", "argument.lemma", "predicate.tag", "argument.tag", "predicate.fine", "argument.fine",
    "argument.word", "predicate.word", "argument.feats", "predicate.lemma & argument.lemma",
    "predicate.lemma & argument.tag", "predicate.tag & argument.lemma", "predicate.tag & argument.tag",
    "predicate.fine & argument.fine", "predicate.lemma & argument.fine", "predicate.fine & argument.word",
    "predicate.feats & argument.feats", "argument.shape",
)  # fmt: skip
"""Of both words and their distance: what the paper's baseline sees. Each fires with the distance, too."""

CONTEXT: tuple[Any, ...] = (
    "argument.tag[-1]", "argument.tag[+1]", "argument.word[-1]", "argument.word[+1]", "predicate.tag[-1]",
    "predicate.tag[+1]", "predicate.word[-1]", "predicate.word[+1]", "argument.tag[-1] & argument.tag",
    "argument.tag & argument.tag[+1]", "argument.tag[-1] & argument.tag & argument.tag[+1]",
    "predicate.tag & argument.tag[-1] & argument.tag", "predicate.tag & argument.tag & argument.tag[+1]",
    "predicate.lemma & argument.word[-1]", "predicate.lemma & argument.tag[-1] & argument.tag",
    "predicate.fine[-1] & predicate.fine & argument.fine", "predicate.fine & predicate.fine[+1] & argument.fine",
    "sequence", "predicate.tag & sequence & argument.tag", "predicate.lemma & sequence",
    "predicate.tag & between.tag & argument.tag", "between.tag", "between.word & argument.tag", "argument.suffix",
    "argument.stem", "argument.tag[-2] & argument.tag[-1] & argument.tag", "predicate.suffix & argument.tag",
    "predicate.tag[-1] & predicate.tag & argument.tag", "predicate.tag & predicate.tag[+1] & argument.tag",
    "predicate.tag & predicate.tag[+1] & argument.tag[-1] & argument.tag",
)  # fmt: skip
"""Of the words around and between."""

PATHS: tuple[Any, ...] = (
    "link", "path", "relations", "link & predicate.lemma", "path & argument.tag", "path & predicate.tag & argument.tag",
    "relations & predicate.lemma", "relations & argument.lemma", "relations & predicate.tag & argument.tag",
    "relations & predicate.feats", "relations & argument.word[-1]",
)  # fmt: skip
"""Of the way between both in a tree that is given."""

CONFIGURATIONS: tuple[Any, ...] = (
    "link", "link & predicate.tag & argument.tag", "link & predicate.fine & argument.fine", "link & predicate.word",
    "link & argument.word", "link & argument.tag", "link & predicate.tag", "link & argument.shape",
)  # fmt: skip
"""The same as connectors to hidden trees see, of trees that are given."""

CONNECTORS: tuple[Any, ...] = (
    (), "direction", "predicate.tag & argument.tag", "predicate.fine & argument.fine", "predicate.word",
    "argument.word", "argument.tag", "predicate.tag", "argument.shape", "direction & predicate.tag & argument.tag",
    "direction & argument.tag", "direction & predicate.tag",
)  # fmt: skip

LINKS: tuple[Any, ...] = (
    (), "head.tag", "child.tag", "head.fine", "child.fine", "head.word", "child.word", "head.tag & child.tag",
    "head.fine & child.fine", "head.word & child.fine", "head.fine & child.word", "head.word & child.word",
    "head.lemma & child.lemma", "head.tag & between.tag & child.tag", "head.fine & between.fine & child.fine",
    "head.tag & between.word & child.tag",
    "head.tag & head.tag[+1] & child.tag[-1] & child.tag", "head.tag[-1] & head.tag & child.tag & child.tag[+1]",
    "head.tag[-1] & head.tag & child.tag[-1] & child.tag", "head.tag & head.tag[+1] & child.tag & child.tag[+1]",
    "head.fine & child.fine & child.fine[+1]", "head.fine & child.fine[-1] & child.fine",
    "head.fine & head.fine[+1] & child.fine", "head.fine[-1] & head.fine & child.fine", "head.feats & child.feats",
    "head.word & child.tag[-1] & child.tag", "head.word & child.tag & child.tag[+1]",
)  # fmt: skip
"""Links of hidden trees: templates of McDonald et al. 2005. Each fires with direction and distance, too."""

SENSES: tuple[Any, ...] = (
    (), "lemma", "lemma & tag", "lemma & fine", "lemma & feats", "lemma & word[-1]", "lemma & word[+1]",
    "lemma & word[-2]", "lemma & word[+2]", "lemma & tag[-1]", "lemma & tag[+1]", "lemma & tag[+2]",
    "lemma & lemma[+1] & lemma[+2]", "lemma & tag[+1] & tag[+2]", "lemma & lemma[+1]", "lemma & lemma[-1]", "tag",
    "word[+1]", "lemma & tag[-2]",
)  # fmt: skip


def role_templates(tree: str, features: str, given: bool) -> dict[str, Templates]:
    """Templates of each family of features."""
    seen = [*PAIRS, *(CONTEXT if features == "all" else ())]
    if given:
        seen += PATHS if features == "all" else CONFIGURATIONS
    return coupled_templates(seen, CONNECTORS, LINKS, tree)


def sense_templates() -> dict[str, Templates]:
    """Templates of senses, in a window of two words around the predicate."""
    return {"label": Templates(SENSES, kind="sense")}


def word_axis(treebank: Treebank, known: Known) -> Axis:
    """All words with their codes."""
    others = {"tag": "upos", "fine": "xpos", "lemma": "lemma", "feats": "feats"}
    columns = {name: treebank.columns[column] for name, column in others.items()}
    return Axis(treebank.offsets, **word_codes(treebank.columns["form"], known, columns))


@dataclass(frozen=True, eq=False)
class ArgumentPairs:
    """All pairs of a predicate and another word of its sentence.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
    predicate : int64[n_pairs]
        The number of the predicate among all.
    word, argument : int64[n_pairs]
        Words, counted within the sentence.
    """

    offsets: Ints
    predicate: Ints
    word: Ints
    argument: Ints

    @classmethod
    def of(cls, given: Propositions) -> ArgumentPairs:
        """Every word of a sentence but the predicate itself may be an argument of it."""
        lengths, many = np.diff(given.treebank.offsets), np.diff(given.offsets)
        others = np.repeat(lengths, many) - 1
        predicate = np.repeat(np.arange(given.n_predicates), others)
        word = given.words[predicate]
        place = np.arange(len(predicate)) - np.repeat(np.cumsum(others) - others, others)
        argument = place + (place >= word)
        offsets = np.concatenate([[0], np.cumsum(many * (lengths - 1))]).astype(np.int64)
        return cls(offsets, predicate, word, argument)

    def labels(self, given: Propositions, roles: Sequence[str]) -> Ints:
        """int64[n_pairs]: the role of each pair; `NO_PAIR` where there is none that is known."""
        known = {role: k for k, role in enumerate(roles)}
        table = np.array([known.get(role, NO_PAIR) for role in given.roles.vocabulary], np.int64)
        starts = np.searchsorted(self.predicate, np.arange(given.n_predicates))
        owner = np.repeat(np.arange(given.n_predicates), np.diff(given.argument_offsets))
        out = np.full(len(self.predicate), NO_PAIR, np.int64)
        places = starts[owner] + given.arguments - (given.arguments > given.words[owner])
        if len(places):
            out[places] = table[given.roles.ids]
        return out


def argument_problem(given: Propositions, pairs: ArgumentPairs, known: Known, tree: str, *, trees: bool) -> Problem:
    """Pairs, connectors and links of some sentences; with `trees`, those of the treebank are looked at."""
    words, lengths = word_axis(given.treebank, known), np.diff(given.treebank.offsets)
    many = np.diff(pairs.offsets)
    start = np.repeat(given.treebank.offsets[:-1], many)
    one, two = start + pairs.word, start + pairs.argument
    low, high = np.minimum(one, two) + 1, np.maximum(one, two)
    direction = (two > one).astype(np.int64)
    roles = {"predicate": Role(words, one), "argument": Role(words, two), "between": Role(words, low, high)}
    columns = {"sequence": sequences(words.attributes["tag"], low, high, _SHORT)}
    gap = distance_bins(np.abs(one - two))
    seen = Parts(len(one), pairs.offsets, roles, columns, 1 + direction * 16 + gap)
    if trees:
        seen = _with_paths(seen, given, pairs)
    nothing = np.zeros(len(given) + 1, np.int64)
    if tree == "none":
        none, nowhere = Parts(0, nothing, {}, {}), np.zeros(0, np.int64)
        return Problem(seen, none, none, Couplings(lengths, many, nothing, nowhere, nowhere), tree)
    n = np.repeat(lengths, many)
    inside = np.arange(len(one)) - np.repeat(pairs.offsets[:-1], many)
    down = (pairs.word + 1) * (n + 1) + pairs.argument + 1
    up = (pairs.argument + 1) * (n + 1) + pairs.word + 1
    cells = np.stack([down, up], axis=1).reshape(-1)
    couplings = Couplings(lengths, many, 2 * pairs.offsets, np.repeat(inside, 2), cells)
    connectors = seen.chosen(np.repeat(np.arange(len(one)), 2), couplings.offsets)
    connectors = replace(connectors, bins=None).with_columns(direction=np.tile([0, 1], len(one)))
    links = arcs(rooted(given.treebank.offsets, words.attributes))
    bins = 1 + links.columns["direction"].astype(np.int64) * 8 + links.columns["distance"]
    return Problem(seen, connectors, links.with_bins(bins), couplings, tree)


def _with_paths(seen: Parts, given: Propositions, pairs: ArgumentPairs) -> Parts:
    """With the way from the predicate to the word in the trees of the treebank; columns as of relations."""
    trees, found = given.treebank, []
    for s in range(len(given)):
        start = int(trees.offsets[s])
        heads, deprels = trees.heads[start : int(trees.offsets[s + 1])].astype(np.int64) - 1, trees.strings("deprel", s)
        for p in range(int(pairs.offsets[s]), int(pairs.offsets[s + 1])):
            up, down = way(int(pairs.word[p]), int(pairs.argument[p]), heads)
            found.append(path_codes(up, down, deprels, _SHORT))
    link, path, relations = np.array(found, np.int64).reshape(-1, 3).T
    return seen.with_columns(link=link, path=path, relations=relations)


def sense_problem(given: Propositions, known: Known) -> Problem:
    """Predicates as parts of their own, for senses."""
    words = word_axis(given.treebank, known)
    many = np.diff(given.offsets)
    at = np.repeat(given.treebank.offsets[:-1], many) + given.words
    seen = Parts(len(at), given.offsets, {"self": Role(words, at)}, {})
    nothing, nowhere = np.zeros(len(given) + 1, np.int64), np.zeros(0, np.int64)
    none = Parts(0, nothing, {}, {})
    lengths = np.diff(given.treebank.offsets)
    return Problem(seen, none, none, Couplings(lengths, many, nothing, nowhere, nowhere), "none")
