"""Products of some rows of a `Sparse` matrix: scores of the parts of a minibatch, and their gradient as lists.

Item *k* of a minibatch has the rows ``firsts[k] … lasts[k] - 1``, and its parts are ``offsets[k] … offsets[k + 1] - 1``
of the vectors over all parts of the minibatch.
"""

from __future__ import annotations

from numba import njit

__all__ = ["count_entries", "emit_rows", "score_rows"]


@njit(cache=True, nogil=True)
def score_rows(block, blocks, firsts, offsets, indptr, indices, entries, dense, weights, out):
    """Add the score of each part: weights of its indicators, and of its real-valued features."""
    base = len(weights) - dense.shape[1]
    for k in range(block, len(firsts), blocks):
        for at in range(offsets[k], offsets[k + 1]):
            row = firsts[k] + at - offsets[k]
            total = 0.0
            for e in range(indptr[row], indptr[row + 1]):
                total += weights[indices[e]] * entries[e] if len(entries) else weights[indices[e]]
            for d in range(dense.shape[1]):
                total += dense[row, d] * weights[base + d]
            out[at] += total


@njit(cache=True, nogil=True)
def count_entries(block, blocks, firsts, offsets, indptr, width, values, least, counts):
    """How many entries the gradient of each item has."""
    for k in range(block, len(firsts), blocks):
        counts[k] = width
        for at in range(offsets[k], offsets[k + 1]):
            if abs(values[at]) > least:
                row = firsts[k] + at - offsets[k]
                counts[k] += indptr[row + 1] - indptr[row]


@njit(cache=True, nogil=True)
def emit_rows(block, blocks, firsts, offsets, indptr, indices, entries, dense, n, values, least, places, numbers, out):
    """The gradient of each item, from ``places[k]`` on: features of parts with a value, and the value of each."""
    for k in range(block, len(firsts), blocks):
        to = places[k]
        for d in range(dense.shape[1]):
            numbers[to + d], out[to + d] = n + d, 0.0
        first = to
        to += dense.shape[1]
        for at in range(offsets[k], offsets[k + 1]):
            if abs(values[at]) <= least:
                continue
            row = firsts[k] + at - offsets[k]
            for e in range(indptr[row], indptr[row + 1]):
                numbers[to] = indices[e]
                out[to] = values[at] * entries[e] if len(entries) else values[at]
                to += 1
            for d in range(dense.shape[1]):
                out[first + d] += values[at] * dense[row, d]
