"""Products of sparse attributes with weights for some of their labels: scores of all labels at every position.

Attribute *a* has weights for the labels ``labels[starts[a]:starts[a + 1]]``, ascending; where it has all k, loops run
over contiguous numbers. Sums are taken in the order of positions whichever way they are cut. Indices are unsigned:
Numba then leaves out the test for counting from the end, and loops become vector code, five times as fast.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["gather_nodes", "gather_real", "mark_pairs", "node_scores", "scatter_nodes"]


@njit(cache=True, nogil=True)
def node_scores(block, count, rows, indptr, indices, dense, starts, labels, weights, k, out):
    """Scores of the k labels at position ``rows[i]`` to ``out[i * k:]``; an empty `rows` stands for all positions."""
    n, width = len(out) // k if k else 0, np.uint64(k)
    real = np.uint64(len(labels))
    for i in range(block * n // count, (block + 1) * n // count):
        r = rows[i] if len(rows) else i
        to = np.uint64(i) * width
        for j in range(width):
            out[to + j] = 0.0
        for e in range(indptr[r], indptr[r + 1]):
            a = np.uint64(indices[e])
            first, last = np.uint64(starts[a]), np.uint64(starts[a + np.uint64(1)])
            if last - first == width:
                for j in range(width):
                    out[to + j] += weights[first + j]
            else:
                for p in range(first, last):
                    out[to + np.uint64(labels[p])] += weights[p]
        for d in range(dense.shape[1]):
            much, at = dense[r, d], real + np.uint64(d) * width
            for j in range(width):
                out[to + j] += much * weights[at + j]


@njit(cache=True, nogil=True)
def scatter_nodes(rows, indptr, indices, dense, starts, labels, scale, x, k, out):
    """Add to `out` what the positions `rows` (or all) have of each weight: scale · x[i * k + j] of label j at row i."""
    n, width = len(x) // k if k else 0, np.uint64(k)
    real = np.uint64(len(labels))
    for i in range(n):
        r = rows[i] if len(rows) else i
        here = np.uint64(i) * width
        for e in range(indptr[r], indptr[r + 1]):
            a = np.uint64(indices[e])
            first, last = np.uint64(starts[a]), np.uint64(starts[a + np.uint64(1)])
            if last - first == width:
                for j in range(width):
                    out[first + j] += scale * x[here + j]
            else:
                for p in range(first, last):
                    out[p] += scale * x[here + np.uint64(labels[p])]
        for d in range(dense.shape[1]):
            much, at = dense[r, d], real + np.uint64(d) * width
            for j in range(width):
                out[at + j] += much * (scale * x[here + j])


@njit(cache=True, nogil=True)
def gather_nodes(block, count, cuts, columns, positions, starts, labels, scale, x, k, out):
    """The same as `scatter_nodes` for the attributes of one block: attribute *a* is at
    ``positions[columns[a]:columns[a + 1]]``."""
    width = np.uint64(k)
    for a in range(cuts[block], cuts[block + 1]):
        first, last = np.uint64(starts[a]), np.uint64(starts[a + 1])
        full = last - first == width
        for e in range(columns[a], columns[a + 1]):
            here = np.uint64(positions[e]) * width
            if full:
                for j in range(width):
                    out[first + j] += scale * x[here + j]
            else:
                for p in range(first, last):
                    out[p] += scale * x[here + np.uint64(labels[p])]


@njit(cache=True, nogil=True)
def gather_real(block, count, dense, scale, x, k, out):
    """``out[d * k + j] += scale · Σ_r dense[r, d] x[r * k + j]`` for the real-valued attributes d of one block."""
    width = np.uint64(k)
    for d in range(block, dense.shape[1], count):
        at = np.uint64(d) * width
        for r in range(dense.shape[0]):
            much, here = dense[r, d], np.uint64(r) * width
            for j in range(width):
                out[at + j] += much * (scale * x[here + j])


@njit(cache=True, nogil=True)
def mark_pairs(indptr, indices, gold, k, counts):
    """Count how often each attribute is met with each label: ``counts[a * k + gold[r]]``; −1 is no label."""
    for r in range(len(indptr) - 1):
        if gold[r] < 0:
            continue
        for e in range(indptr[r], indptr[r + 1]):
            counts[np.int64(indices[e]) * k + gold[r]] += 1
