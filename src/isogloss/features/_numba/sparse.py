"""Products with sparse matrices: rows are parts, columns are features.

Sums run in the order of rows whichever way they are cut, so that the number of threads, and the choice between
scattering by row and gathering by column, cannot change a bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["add_transposed", "gather_columns", "multiply", "scatter_rows", "touched", "transpose"]


@njit(cache=True, nogil=True)
def multiply(block, count, indptr, indices, values, dense, weights, out):
    """``out[r] = Σ values · weights[indices]`` over row *r*, and the dense columns with the last weights."""
    n = len(indptr) - 1
    tail = len(weights) - dense.shape[1]
    for r in range(block * n // count, (block + 1) * n // count):
        score = 0.0
        if len(values):
            for i in range(indptr[r], indptr[r + 1]):
                score += values[i] * weights[np.uint64(indices[i])]
        else:
            for i in range(indptr[r], indptr[r + 1]):
                score += weights[np.uint64(indices[i])]
        for d in range(dense.shape[1]):
            score += dense[r, d] * weights[tail + d]
        out[r] = score


@njit(cache=True, nogil=True)
def scatter_rows(first, last, shift, indptr, indices, values, dense, x, out):
    """``out += F[first:last]ᵀ x``, where row *r* reads ``x[r - shift]``; rows with 0 cost nothing."""
    tail = len(out) - dense.shape[1]
    for r in range(first, last):
        much = x[r - shift]
        if much == 0.0:
            continue
        if len(values):
            for i in range(indptr[r], indptr[r + 1]):
                out[np.uint64(indices[i])] += values[i] * much
        else:
            for i in range(indptr[r], indptr[r + 1]):
                out[np.uint64(indices[i])] += much
        for d in range(dense.shape[1]):
            out[tail + d] += dense[r, d] * much


@njit(cache=True, nogil=True)
def touched(first, last, shift, indptr, indices, x, seen, out, filled):
    """Features of the rows first..last - 1 (of those with ``x[r - shift] != 0`` if `x` is not empty), each once.

    `seen` is all False and has to be cleared by the caller at ``out[:result]``.
    """
    for r in range(first, last):
        if len(x) and x[r - shift] == 0.0:
            continue
        for i in range(indptr[r], indptr[r + 1]):
            if not seen[indices[i]]:
                seen[indices[i]] = True
                out[filled] = indices[i]
                filled += 1
    return filled


@njit(cache=True, nogil=True)
def transpose(indptr, indices, values, starts, rows, out_values):
    """Entries by column, rows ascending in each; `starts` int64[n_columns + 1] is overwritten."""
    starts[:] = 0
    for i in range(len(indices)):
        starts[indices[i] + 1] += 1
    for c in range(len(starts) - 1):
        starts[c + 1] += starts[c]
    heads = starts[:-1].copy()
    for r in range(len(indptr) - 1):
        for i in range(indptr[r], indptr[r + 1]):
            c = indices[i]
            rows[heads[c]] = r
            if len(values):
                out_values[heads[c]] = values[i]
            heads[c] += 1


@njit(cache=True, nogil=True)
def gather_columns(block, count, cuts, starts, rows, values, x, out):
    """``out[c] += Σ values · x[rows]`` over column *c*, for the columns of one block."""
    for c in range(cuts[block], cuts[block + 1]):
        much = out[c]
        if len(values):
            for i in range(starts[c], starts[c + 1]):
                much += values[i] * x[np.uint64(rows[i])]
        else:
            for i in range(starts[c], starts[c + 1]):
                much += x[np.uint64(rows[i])]
        out[c] = much


@njit(cache=True, nogil=True)
def add_transposed(block, count, dense, x, out):
    """``out[d] += Σ_r dense[r, d] x[r]`` for the dense columns d of one block."""
    for d in range(block, dense.shape[1], count):
        much = out[d]
        for r in range(dense.shape[0]):
            if x[r] != 0.0:
                much += dense[r, d] * x[r]
        out[d] = much
