"""Kernels of `isogloss.learners.graphs`."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _worse(value, row, other_value, other_row):
    """Whether the first neighbour ranks below the second: less similar or, when alike, of a higher number."""
    return value < other_value or (value == other_value and row > other_row)


@njit(cache=True, nogil=True)
def _sink(values, rows, at, size):
    """Put the entry `at` of a heap whose top is the worst where it belongs."""
    while True:
        worst, left = at, 2 * at + 1
        for child in (left, left + 1):
            if child < size and _worse(values[child], rows[child], values[worst], rows[worst]):
                worst = child
        if worst == at:
            return
        values[at], values[worst] = values[worst], values[at]
        rows[at], rows[worst] = rows[worst], rows[at]
        at = worst


@njit(cache=True, nogil=True)
def top_products(block, blocks, starts, columns, values, heads, members, shares, k, least, rows, found, filled):
    """The k largest products above `least` of each row of one block with all other rows.

    starts, columns, values : the matrix by rows; heads, members, shares : by columns (an inverted index).
    rows : int32[n, k], found : float64[n, k], filled : int64[n]; a row's neighbours are in no order.
    """
    n = len(starts) - 1
    sums, seen, touched = np.zeros(n), np.full(n, -1, np.int32), np.empty(n, np.int32)
    for i in range(block * n // blocks, (block + 1) * n // blocks):
        many = 0
        for e in range(starts[i], starts[i + 1]):
            f, x = columns[e], values[e]
            for p in range(heads[f], heads[f + 1]):
                j = members[p]
                if seen[j] != i:
                    seen[j] = i
                    sums[j] = 0.0
                    touched[many] = j
                    many += 1
                sums[j] += x * shares[p]
        size = 0
        for t in range(many):
            j = touched[t]
            if j == i or not sums[j] > least:
                continue
            if size < k:
                found[i, size], rows[i, size] = sums[j], j
                size += 1
                if size == k:
                    for at in range(k // 2 - 1, -1, -1):
                        _sink(found[i], rows[i], at, k)
            elif _worse(found[i, 0], rows[i, 0], sums[j], j):
                found[i, 0], rows[i, 0] = sums[j], j
                _sink(found[i], rows[i], 0, k)
        filled[i] = size
