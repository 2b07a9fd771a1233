"""The short lists of labels of words with their scores, and scores of steps between labels, for chains elsewhere."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.tasks.tag._numba.chain import _move, _score_nodes, _triple
from isogloss.tasks.tag._numba.scores import add_real, add_units, label_scores, look_up_real, shortlist

__all__ = ["list_labels", "score_moves", "score_triples"]


@njit(cache=True, nogil=True)
def list_labels(
    block, count, indptr, indices, starts, units, heads, members, real, pruner, margin, weights, n_units, lists, sizes,
    nodes,
):  # fmt: skip
    """The labels that are worth a look at each word, and their scores in the chain.

    lists : int64[n_words, most]; sizes : int64[n_words]; nodes : float64[n_words, most]
        Overwritten.
    """
    n, most = lists.shape
    by_unit, scores = np.empty(n_units, np.float32), np.empty(len(heads) - 2, np.float32)
    values = np.empty(len(real.blocks), np.float32)
    for r in range(block * n // count, (block + 1) * n // count):
        look_up_real(r, real, values)
        add_units(r, indptr, indices, starts, units, pruner, by_unit)
        add_real(values, pruner, n_units, by_unit)
        top = label_scores(by_unit, heads, members, scores)
        sizes[r] = shortlist(scores, top, margin, most, lists[r])
        add_units(r, indptr, indices, starts, units, weights, by_unit)
        add_real(values, weights, n_units, by_unit)
        _score_nodes(0, sizes[r], lists[r], by_unit, heads, members, nodes[r])


@njit(cache=True, nogil=True)
def score_moves(block, count, before, after, heads, members, moves, n_units, out):
    """The score of each move from label to label, added to float64[n]."""
    for i in range(block, len(out), count):
        out[i] += _move(before[i], after[i], heads, members, moves, n_units)


@njit(cache=True, nogil=True)
def score_triples(block, count, first, second, third, n_labels, triples, out):
    """The score of each triple of labels, added to float64[n]; labels include the outside."""
    for i in range(block, len(out), count):
        out[i] += triples[_triple(first[i], second[i], third[i], n_labels, len(triples))]
