"""Products of sparse attributes with weights for some of their labels: scores of all labels at every position.

Attribute *a* has weights for the labels ``labels[starts[a]:starts[a + 1]]``, ascending; where it has all k, loops run
over contiguous numbers. Sums are taken in the order of positions whichever way they are cut.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["gather_nodes", "gather_real", "mark_pairs", "node_scores", "scatter_nodes"]


@njit(cache=True, nogil=True)
def node_scores(block, count, rows, indptr, indices, dense, starts, labels, weights, k, out):
    """``out[i]`` = scores of the k labels at position ``rows[i]``; an empty `rows` stands for all positions."""
    n = out.shape[0]
    pairs = len(labels)
    for i in range(block * n // count, (block + 1) * n // count):
        r = rows[i] if len(rows) else i
        to = out[i]
        for j in range(k):
            to[j] = 0.0
        for e in range(indptr[r], indptr[r + 1]):
            first, last = starts[indices[e]], starts[indices[e] + 1]
            if last - first == k:
                for j in range(k):
                    to[j] += weights[first + j]
            else:
                for p in range(first, last):
                    to[labels[p]] += weights[p]
        for d in range(dense.shape[1]):
            for j in range(k):
                to[j] += dense[r, d] * weights[pairs + d * k + j]


@njit(cache=True, nogil=True)
def scatter_nodes(rows, indptr, indices, dense, starts, labels, x, k, out):
    """Add to `out` what the positions `rows` (or all) have of each weight, label j at position i counted x[i, j]."""
    pairs = len(labels)
    for i in range(x.shape[0]):
        r = rows[i] if len(rows) else i
        much = x[i]
        for e in range(indptr[r], indptr[r + 1]):
            first, last = starts[indices[e]], starts[indices[e] + 1]
            if last - first == k:
                for j in range(k):
                    out[first + j] += much[j]
            else:
                for p in range(first, last):
                    out[p] += much[labels[p]]
        for d in range(dense.shape[1]):
            for j in range(k):
                out[pairs + d * k + j] += dense[r, d] * much[j]


@njit(cache=True, nogil=True)
def gather_nodes(block, count, cuts, columns, positions, starts, labels, x, k, out):
    """The same as `scatter_nodes` for the attributes of one block: attribute *a* is at
    ``positions[columns[a]:columns[a + 1]]``."""
    for a in range(cuts[block], cuts[block + 1]):
        first, last = starts[a], starts[a + 1]
        if last - first == k:
            to = out[first:last]
            for e in range(columns[a], columns[a + 1]):
                much = x[positions[e]]
                for j in range(k):
                    to[j] += much[j]
        else:
            for p in range(first, last):
                much, j = out[p], labels[p]
                for e in range(columns[a], columns[a + 1]):
                    much += x[positions[e], j]
                out[p] = much


@njit(cache=True, nogil=True)
def gather_real(block, count, dense, x, k, out):
    """``out[d, j] += Σ_r dense[r, d] x[r, j]`` for the real-valued attributes d of one block."""
    for d in range(block, dense.shape[1], count):
        for r in range(dense.shape[0]):
            for j in range(k):
                out[d * k + j] += dense[r, d] * x[r, j]


@njit(cache=True, nogil=True)
def mark_pairs(indptr, indices, gold, k, counts):
    """Count how often each attribute is met with each label: ``counts[a * k + gold[r]]``; −1 is no label."""
    for r in range(len(indptr) - 1):
        if gold[r] < 0:
            continue
        for e in range(indptr[r], indptr[r + 1]):
            counts[np.int64(indices[e]) * k + gold[r]] += 1
