"""From trees to labelled spans and back: what a span model learns, and what it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituent_forms import JOINT, ROOTS, collapsed, expanded, stripped, without_root
from isogloss.data.constituents import Constituents, Nested
from isogloss.data.treebank import Column
from isogloss.errors import TreebankError

__all__ = ["Labels", "as_spans", "check_tops", "column_of", "plain", "trees_of"]

Spans = frozenset[tuple[int, int, int]]
RARE = 1e-4
"""The share of all nodes below which a unary chain gets no label of its own."""


def plain(trees: Constituents) -> Constituents:
    """Trees as a parser learns them: continuous, without function tags and traces."""
    return stripped(trees.continuous())


@dataclass(frozen=True)
class Labels:
    """The labels of spans, compound ones for unary chains, and the bracket around whole trees.

    Parameters
    ----------
    names : tuple of str
    root : str, optional
        The label of the outermost bracket, if all trees have one that says nothing else.
    """

    names: tuple[str, ...]
    root: str | None

    @classmethod
    def of(cls, trees: Constituents) -> tuple[Labels, Constituents]:
        """Those of some trees, and the trees without the outermost bracket and unary chains.

        The bracket stays where it is more than an ornament: where several nodes, or none, are below it. Chains that
        are very rare (`RARE`) are shortened: a label of their own costs time with every span, and is never predicted.
        """
        root = _root_of(trees)
        if root is not None:
            trees = without_root(trees)
        flat = _without_rare_chains(collapsed(trees))
        names = sorted({flat.labels.vocabulary[number] for number in np.unique(flat.labels.ids).tolist()})
        return cls(tuple(names), root), flat

    def numbers(self, trees: Constituents) -> NDArray[np.int64]:
        """int64[n_nodes]: the number of each node's label, -1 where it is not known."""
        known = {name: number for number, name in enumerate(self.names)}
        table = np.array([known.get(name, -1) for name in trees.labels.vocabulary], np.int64)
        return table[trees.labels.ids] if len(table) else np.zeros(0, np.int64)


def _without_rare_chains(trees: Constituents) -> Constituents:
    """Rare compound labels become the longest piece of their chain that is not rare, or the commonest of its labels."""
    numbers = np.bincount(trees.labels.ids, minlength=len(trees.labels.vocabulary)).tolist()
    counts = dict(zip(trees.labels.vocabulary, numbers, strict=True))
    least = RARE * trees.n_nodes

    def shortened(label: str) -> str:
        chain = label.split(JOINT)
        if len(chain) == 1 or counts[label] >= least:
            return label
        ends = range(len(chain) + 1)
        pieces = [JOINT.join(chain[a:b]) for a in ends for b in ends if 0 < b - a < len(chain)]
        often = [piece for piece in pieces if counts.get(piece, 0) >= least] or chain
        return max(often, key=lambda piece: (piece.count(JOINT), counts.get(piece, 0)))

    return trees.mapped(shortened)


def _root_of(trees: Constituents) -> str | None:
    """The label of the outermost bracket, if it could be put back wherever it is taken away."""
    tops = trees.parents < 0
    filled = int(np.count_nonzero(trees.lengths))
    names = {trees.labels.vocabulary[number] for number in np.unique(trees.labels.ids[tops]).tolist()}
    if int(np.count_nonzero(tops)) != filled or len(names) != 1:
        return None
    (name,) = names
    if name not in ROOTS:
        return None
    of_words = np.bincount(trees._above(trees.attached, trees.offsets), minlength=trees.n_nodes)
    of_nodes = np.bincount(trees._above(trees.parents, trees.node_offsets), minlength=trees.n_nodes)
    single = (of_nodes[tops] == 1) & (of_words[tops] == 0)
    return name if single.all() else None


def check_tops(trees: Constituents) -> None:
    """Refuse trees no bracket of which has all words: they are no labelled spans below one of the whole sentence."""
    first = trees.node_offsets[:-1]
    lacking = trees.lengths > 0
    some = np.flatnonzero(lacking & (np.diff(trees.node_offsets) > 0))
    lacking[some] = (trees.begins[first[some]] != 0) | (trees.ends[first[some]] != trees.lengths[some])
    if lacking.any():
        number = int(np.flatnonzero(lacking)[0])
        raise TreebankError(
            f"{trees.name}, tree {number + 1}: no bracket has all words. Put one around the whole: (TOP ...)"
        )


def as_spans(trees: Constituents, labels: Labels) -> list[Spans]:
    """Each tree, without unary chains, as a set of labelled spans; see `check_tops`."""
    check_tops(trees)
    numbers = labels.numbers(trees)
    triples = np.stack([trees.begins, trees.ends, numbers], axis=1).tolist()
    bounds = pairwise(trees.node_offsets.tolist())
    return [frozenset((i, j, label) for i, j, label in triples[a:b] if label >= 0) for a, b in bounds]


def trees_of(
    words: Iterable[Sequence[str]], tags: Iterable[Sequence[str]], found: Iterable[Spans], labels: Labels, name: str
) -> Constituents:
    """Trees of labelled spans, with unary chains and the outermost bracket put back."""
    words, tags = list(words), list(tags)
    forests = [_nested(spans, len(own), labels) for spans, own in zip(found, words, strict=True)]
    return expanded(Constituents.assembled(words, tags, forests, name))


def _nested(spans: Spans, n: int, labels: Labels) -> list[int | Nested]:
    top: list[int | Nested] = []
    waiting: list[tuple[int, list[int | Nested]]] = [(n, top)]  # where each open node ends, and what it has so far
    at = 0
    for begin, end, label in sorted(spans, key=lambda span: (span[0], -span[1])):
        at = _fill(waiting, at, begin)
        node: Nested = (labels.names[label], [])
        waiting[-1][1].append(node)
        waiting.append((end, node[1]))
    _fill(waiting, at, n)
    if labels.root is not None and n:
        return [(labels.root, top)]
    return top


def _fill(waiting: list[tuple[int, list[int | Nested]]], at: int, until: int) -> int:
    """Put words at … until - 1 where they belong, and close the nodes that end before `until` or there."""
    while True:
        end, inside = waiting[-1]
        stop = min(end, until)
        inside.extend(range(at, stop))
        at = max(at, stop)
        if end > until or len(waiting) == 1:
            return at
        waiting.pop()


def column_of(strings: Iterable[Sequence[str]]) -> Column:
    """The strings of all words of several sentences as a column."""
    return Column.of(text for sentence in strings for text in sentence)
