"""Pairs of names in a sentence: what they and the words around them look like, and which parts of trees they meet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from isogloss.data.mentions import Mentions, Relation
from isogloss.data.treebank import Column, Treebank
from isogloss.errors import ModelError
from isogloss.features import Axis, Parts, Role, arcs
from isogloss.structures.hidden import NO_PAIR, Couplings, link_number
from isogloss.structures.spans import span_number
from isogloss.tasks.extract.coupled import Problem
from isogloss.tasks.extract.pair_words import distance_bins, rooted, sequences, way, word_codes
from isogloss.tasks.parse.constituency.words import Known, Sentences, code_of, span_parts

__all__ = ["Labels", "NamePairs", "Nodes", "pair_problem"]

Ints = NDArray[np.int64]
_WRITTEN = re.compile(r"(.+?)(\^-1)?")
_SHORT, _SHORTER = 6, 4
"""The most words between two names that are seen in order: by their tags, and as they are."""


@dataclass(frozen=True)
class Labels:
    """Labels of pairs: relations with a direction, from the name that comes first or to it."""

    names: tuple[str, ...]
    turned: tuple[bool, ...]

    @classmethod
    def of(cls, mentions: Mentions) -> Labels:
        """Those that some sentences have."""
        seen = set()
        for s in range(len(mentions)):
            seen |= {(label, first > second) for first, second, label in mentions.relations(s)}
        found = sorted(seen)
        return cls(tuple(name for name, _ in found), tuple(turned for _, turned in found))

    @classmethod
    def read(cls, written: Sequence[str]) -> Labels:
        """From labels as `written` has them."""
        found = [_WRITTEN.fullmatch(label) for label in written]
        if not all(found):
            raise ModelError(f"{written!r:.60} are no labels of relations. Train the model again, or copy it whole")
        return cls(tuple(one[1] for one in found if one), tuple(one[2] is not None for one in found if one))

    @property
    def written(self) -> tuple[str, ...]:
        """Each with its direction: ``Live_In``, or ``Live_In^-1`` where the name that comes second is the first of it.

        Examples
        --------
        >>> Labels(("Live_In", "Live_In"), (False, True)).written
        ('Live_In', 'Live_In^-1')
        """
        return tuple(f"{name}^-1" if turned else name for name, turned in zip(self.names, self.turned, strict=True))

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class NamePairs:
    """All pairs of names of some sentences, as numbers.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
        Where the pairs of each sentence begin.
    first, second : int64[n_pairs]
        Names, counted within the sentence; the first begins before the second.
    """

    offsets: Ints
    first: Ints
    second: Ints

    @classmethod
    def of(cls, mentions: Mentions) -> NamePairs:
        """Every two names of a sentence are a pair."""
        counts = np.diff(mentions.entity_offsets)
        offsets = np.concatenate([[0], np.cumsum(counts * (counts - 1) // 2)]).astype(np.int64)
        both = [np.triu_indices(int(many), 1) for many in counts.tolist()]
        first, second = (np.concatenate([np.zeros(0, np.int64), *(pair[k] for pair in both)]) for k in (0, 1))
        return cls(offsets, first, second)

    def relation(self, pair: int, label: int, labels: Labels) -> Relation:
        """A pair with a label as a relation between names."""
        first, second = int(self.first[pair]), int(self.second[pair])
        return (second, first, labels.names[label]) if labels.turned[label] else (first, second, labels.names[label])

    def labels(self, mentions: Mentions, labels: Labels) -> Ints:
        """int64[n_pairs]: the label of each pair, of several the first; `NO_PAIR` where there is none that is known."""
        known = {own: k for k, own in enumerate(zip(labels.names, labels.turned, strict=True))}
        out = np.full(len(self.first), NO_PAIR, np.int64)
        for s in range(len(mentions)):
            many = int(mentions.entity_offsets[s + 1] - mentions.entity_offsets[s])
            for first, second, label in mentions.relations(s):
                low, high = min(first, second), max(first, second)
                at = int(self.offsets[s]) + low * many - low * (low + 1) // 2 + high - low - 1
                number = known.get((label, first > second), NO_PAIR)
                if low != high and out[at] == NO_PAIR:
                    out[at] = number
        return out


def pair_problem(
    mentions: Mentions, pairs: NamePairs, known: Known, tags: Column, tree: str, given: Treebank | None = None
) -> Problem:
    """Pairs of names, connectors and the parts of trees of some sentences.

    Trees are over nodes: words, of which those of a name are one.

    Parameters
    ----------
    known : Known
        Words that are seen as they are.
    tags : Column
        Of all words.
    tree : str
        The kind of trees that pairs are coupled to; "none" for none.
    given : Treebank, optional
        Trees that are given, whose paths between names are seen.
    """
    words = _word_axis(mentions, known, tags)
    seen = _pair_parts(mentions, pairs, words)
    if given is not None:
        seen = _with_paths(seen, mentions, pairs, words, given)
    nodes = Nodes.of(mentions)
    if tree == "none":
        nothing = np.zeros(len(mentions) + 1, np.int64)
        none = Parts(0, nothing, {}, {})
        lengths = np.diff(nodes.offsets)
        nowhere = np.zeros(0, np.int64)
        return Problem(seen, none, none, Couplings(lengths, np.diff(pairs.offsets), nothing, nowhere, nowhere), tree)
    couplings, rows, directions = nodes.couplings(pairs, tree)
    connectors = seen.chosen(rows, couplings.offsets).with_columns(direction=directions)
    return Problem(seen, connectors, nodes.cells(words, tree), couplings, tree)


def _word_axis(mentions: Mentions, known: Known, tags: Column) -> Axis:
    """Words with their codes, and with the type of the name that they are in."""
    codes = word_codes(mentions.columns["form"], known, {"tag": tags})
    types = np.zeros(mentions.n_words, np.int64)
    kinds = np.array([code_of(f"type {kind}") for kind in mentions.types.vocabulary] or [0], np.int64)
    begins = np.repeat(mentions.offsets[:-1], np.diff(mentions.entity_offsets))
    for k in range(mentions.n_entities - 1, -1, -1):
        start = int(begins[k])
        types[start + mentions.begins[k] : start + mentions.ends[k]] = kinds[mentions.types.ids[k]]
    return Axis(mentions.offsets, **codes, type=types)


def _pair_parts(mentions: Mentions, pairs: NamePairs, words: Axis) -> Parts:
    counts = np.diff(pairs.offsets)
    start, shift = np.repeat(mentions.offsets[:-1], counts), np.repeat(mentions.entity_offsets[:-1], counts)
    one, two = shift + pairs.first, shift + pairs.second
    begins, ends = mentions.begins.astype(np.int64), mentions.ends.astype(np.int64)
    gap_from, gap_to = start + ends[one], start + begins[two]
    kinds = np.array([code_of(f"type {kind}") for kind in mentions.types.vocabulary] or [0], np.int64)
    gap = np.maximum(0, gap_to - gap_from)
    nested = gap_to < gap_from
    columns = {
        "first_type": kinds[mentions.types.ids[one]] if len(one) else one,
        "second_type": kinds[mentions.types.ids[two]] if len(two) else two,
        "gap": np.where(nested, 99, distance_bins(gap)),
        "names": np.minimum(pairs.second - pairs.first - 1, 4),
        "many": np.repeat(np.minimum(np.diff(mentions.entity_offsets), 8), counts),
    }
    tags, own = words.attributes["tag"], words.attributes["word"]
    columns["sequence"] = sequences(tags, gap_from, gap_to, _SHORT)
    columns["phrase"] = sequences(own, gap_from, gap_to, _SHORTER)
    roles = {
        "first": Role(words, start + ends[one] - 1),
        "second": Role(words, start + ends[two] - 1),
        "opening": Role(words, start + begins[one]),
        "resuming": Role(words, start + begins[two]),
        "between": Role(words, gap_from, np.maximum(gap_from, gap_to)),
        "inside": Role(words, start + begins[one], start + ends[one]),
        "within": Role(words, start + begins[two], start + ends[two]),
    }
    return Parts(len(one), pairs.offsets, roles, columns)


@dataclass(frozen=True, eq=False)
class Nodes:
    """What trees are over: words, of which those of a name are one node.

    offsets : int64[n_sentences + 1]
    last : int64[n_nodes]
        The last word of each, among all words.
    names : int64[n_sentences + 1]
        Where the names of each sentence begin.
    of_name : int64[n_entities]
        The node of each name, counted within its sentence.
    """

    offsets: Ints
    last: Ints
    names: Ints
    of_name: Ints

    @classmethod
    def of(cls, mentions: Mentions) -> Nodes:
        """Names that share words share a node."""
        glued = np.zeros(mentions.n_words + 1, bool)  # words that are of one node with the next
        begins = np.repeat(mentions.offsets[:-1], np.diff(mentions.entity_offsets))
        for start, begin, end in zip(begins.tolist(), mentions.begins.tolist(), mentions.ends.tolist(), strict=True):
            glued[start + begin : start + end - 1] = True
        last = np.flatnonzero(~glued[:-1]).astype(np.int64)
        offsets = np.searchsorted(last, mentions.offsets).astype(np.int64)
        node = np.searchsorted(last, begins + mentions.begins)
        own = np.repeat(offsets[:-1], np.diff(mentions.entity_offsets))
        return cls(offsets, last, mentions.entity_offsets, np.asarray(node - own, np.int64))

    def words(self, mentions: Mentions, sentence: int) -> tuple[str, ...]:
        """What each node of a sentence says."""
        words, start = mentions.words(sentence), int(mentions.offsets[sentence])
        ends = (self.last[self.offsets[sentence] : self.offsets[sentence + 1]] + 1 - start).tolist()
        return tuple(" ".join(words[begin:end]) for begin, end in pairwise([0, *ends]))

    def couplings(self, pairs: NamePairs, tree: str) -> tuple[Couplings, Ints, Ints]:
        """Connectors of all pairs; the pair of each among all, and its direction."""
        lengths, sentences = np.diff(self.offsets), []
        rows: list[int] = []
        directions: list[int] = []
        names = self.names
        for s, n in enumerate(lengths.tolist()):
            own: list[tuple[int, int]] = []
            for p in range(int(pairs.offsets[s]), int(pairs.offsets[s + 1])):
                a, b = (int(self.of_name[names[s] + int(k)]) for k in (pairs.first[p], pairs.second[p]))
                for cell, direction in _cells_of(a, b, n, tree):
                    own.append((p - int(pairs.offsets[s]), cell))
                    rows.append(p)
                    directions.append(direction)
            sentences.append((n, int(pairs.offsets[s + 1] - pairs.offsets[s]), own))
        return Couplings.of(sentences), np.array(rows, np.int64), np.array(directions, np.int64)

    def cells(self, words: Axis, tree: str) -> Parts:
        """All links or spans of the nodes."""
        own = {name: codes[self.last] for name, codes in words.attributes.items()}
        if tree == "brackets":
            coarse, marks = own["tag"], np.zeros(len(self.last), np.int64)
            return span_parts(Sentences(self.offsets, Axis(self.offsets, **own), marks, own["tag"], coarse))
        parts = arcs(rooted(self.offsets, own))
        return parts.with_bins(1 + parts.columns["direction"].astype(np.int64) * 8 + parts.columns["distance"])


def _cells_of(a: int, b: int, n: int, tree: str) -> Sequence[tuple[int, int]]:
    """Parts of a tree that say that nodes a < b belong together, and which of them it is."""
    if a == b:
        return []
    if tree == "brackets":
        return [(span_number(a, b + 1, n), 0)]
    return [(link_number(a + 1, b + 1, n), 0), (link_number(b + 1, a + 1, n), 1)]


def _with_paths(seen: Parts, mentions: Mentions, pairs: NamePairs, words: Axis, given: Treebank) -> Parts:
    """With the way from one name to the other in a tree that is given.

    Columns "link" (a direct link, either way, a common head, or none of these), "path" (how many steps up and down) and
    "relations" (their labels, of short ways); role "pivot", the highest word on the way.
    """
    names = given.columns["deprel"].vocabulary.types
    deprels = given.columns["deprel"].ids
    found: dict[str, list[int]] = {"link": [], "path": [], "relations": [], "pivot": []}
    for s in range(len(mentions)):
        start = int(mentions.offsets[s])
        heads = given.heads[start : int(mentions.offsets[s + 1])].astype(np.int64) - 1
        entities = mentions.entities(s)
        tops = [_top(begin, end, heads) for begin, end, _ in entities]
        for p in range(int(pairs.offsets[s]), int(pairs.offsets[s + 1])):
            up, down = way(tops[int(pairs.first[p])], tops[int(pairs.second[p])], heads)
            steps = min(len(up), 9), min(len(down), 9)
            labels = [f"<{names[deprels[start + w]]}" for w in up] + [f">{names[deprels[start + w]]}" for w in down]
            found["link"].append({(0, 1): 1, (1, 0): 2, (1, 1): 3}.get(steps, 0))
            found["path"].append(steps[0] * 10 + steps[1])
            found["relations"].append(code_of(" ".join(labels)) if len(labels) <= _SHORTER else -1)
            above = int(heads[up[-1]]) if up else tops[int(pairs.first[p])]
            found["pivot"].append(start + above if above >= 0 else -1)
    pivot = Role(words, np.array(found.pop("pivot"), np.int64))
    more = {name: np.array(codes, np.int64) for name, codes in found.items()}
    return replace(seen, roles={**seen.roles, "pivot": pivot}).with_columns(**more)


def _top(begin: int, end: int, heads: Ints) -> int:
    """The first word of a name whose head is outside of it."""
    return next((w for w in range(begin, end) if not begin <= heads[w] < end), end - 1)
