"""The chains of a tagger as structures: what sequences of tags there are, how probable each is, and the best ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks
from isogloss.features.sparse import Sparse
from isogloss.structures.base import kept
from isogloss.structures.lattice import Lattices
from isogloss.structures.lattice_parts import LatticeParts
from isogloss.tasks.tag.labels import Units
from isogloss.tasks.tag.learning import Real, Rows, Settings, Weights

__all__ = ["chains_of", "log_probs"]

Integers = NDArray[np.int64]
WORDS_PER_BLOCK = 1 << 10


def chains_of(
    attributes: Sparse,
    offsets: Integers,
    rows: Rows,
    units: Units,
    weights: Weights,
    settings: Settings,
    real: Real | None = None,
) -> Lattices:
    """The distributions over the tags of sentences that `isogloss.tasks.tag.learning.decode` has posteriors of.

    Words have their short lists of labels. What lies outside of a sentence is added to its first and last words.
    """
    from isogloss.tasks.tag._numba.lists import list_labels

    n, most = attributes.n_rows, min(settings.most, units.k)
    lists, sizes, nodes = np.zeros((n, most), np.int64), np.zeros(n, np.int64), np.zeros((n, most))
    given: tuple[Any, ...] = (attributes.indptr, attributes.indices, *rows, units.heads, units.members)
    given += (real or Real.none(n), weights.pruner, np.float32(settings.margin), weights.nodes, units.size)
    run_blocks(list_labels, max(1, n // WORDS_PER_BLOCK), *given, lists, sizes, nodes)
    held = np.arange(most) < sizes[:, None]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    parts = LatticeParts(offsets, starts, lists[held], settings.order)
    scores = np.zeros(parts.n_parts)
    scores[parts.node_places] = nodes[held]
    _add_steps(parts, units, weights, scores)
    return Lattices(parts, kept(scores))


def _add_steps(parts: LatticeParts, units: Units, weights: Weights, scores: NDArray[np.float64]) -> None:
    """Scores of moves and of triples, those from and to the outside among them."""
    labels, outside = parts.labels, units.k
    first, last = parts.offsets[:-1][parts.lengths > 0], parts.offsets[1:][parts.lengths > 0] - 1
    place = parts.positions
    begins, ends = np.isin(place, first), np.isin(place, last)
    move = _Adding(units, weights)
    nodes, edges = np.zeros(parts.n_entries), np.zeros(len(parts.edges))
    move.add(nodes, begins, (outside, labels))
    move.add(nodes, ends, (labels, outside))
    before, own = labels[parts.edges].T if len(edges) else (labels[:0], labels[:0])
    every = np.ones(len(edges), np.bool_)
    move.add(edges, every, (before, own))
    if parts.order == 2:
        move.add(nodes, begins, (outside, outside, labels))
        move.add(nodes, begins & ends, (outside, labels, outside))
        move.add(edges, np.isin(place[parts.edges[:, 0]], first), (outside, before, own))
        move.add(edges, np.isin(place[parts.edges[:, 1]], last), (before, own, outside))
        found = np.zeros(len(parts.triples))
        if len(found):
            move.add(found, np.ones(len(found), np.bool_), tuple(labels[parts.triples].T))
        scores[parts.triple_places] += found
    scores[parts.node_places] += nodes
    scores[parts.edge_places] += edges


class _Adding:
    """Adds scores of steps between labels, which are numbers or arrays of them."""

    def __init__(self, units: Units, weights: Weights) -> None:
        self.units, self.weights = units, weights

    def add(self, out: NDArray[np.float64], some: NDArray[np.bool_], steps: Sequence[Any]) -> None:
        """To some entries of `out`: of moves, or of triples if steps have three labels."""
        from isogloss.tasks.tag._numba.lists import score_moves, score_triples

        at = np.flatnonzero(some)
        columns = [np.ascontiguousarray(np.broadcast_to(np.asarray(c, np.int64), len(out))[at]) for c in steps]
        much, blocks = np.zeros(len(at)), max(1, len(at) // WORDS_PER_BLOCK)
        if len(columns) == 2:
            given = (self.units.heads, self.units.members, self.weights.moves, self.units.size)
            run_blocks(score_moves, blocks, *columns, *given, much)
        else:
            run_blocks(score_triples, blocks, *columns, self.units.k + 1, self.weights.triples, much)
        out[at] += much


def log_probs(chains: Lattices, sequences: Sequence[Sequence[Integers]]) -> list[NDArray[np.float64]]:
    """Log-probabilities of label sequences, any number for each sentence; −∞ for labels that a word may not have."""
    found = []
    totals = chains.log_partition().tolist()
    parts = chains.layout
    for s, (own, total) in enumerate(zip(sequences, totals, strict=True)):
        first, last = parts.offsets[s : s + 2].tolist()
        known = [set(parts.labels[parts.starts[t] : parts.starts[t + 1]].tolist()) for t in range(first, last)]
        one = chains[s]
        scores = [
            one.score(y) - total if all(label in may for label, may in zip(y.tolist(), known, strict=True)) else -np.inf
            for y in own
        ]
        found.append(np.array(scores, np.float64))
    return found
