"""Which attributes have weights for which units."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["count_rows", "fill_rows"]


@njit(cache=True, nogil=True)
def _mark(a, columns, labels, heads, members, n_units, dense, marked):
    """Mark the units that attribute *a* has weights for with a + 1; label *y* of a word stands in `labels`, −1 none."""
    k = len(heads) - 2
    if columns[a + 1] - columns[a] >= dense:
        for u in range(n_units):
            if u != k:
                marked[u] = a + 1
        return
    for c in range(columns[a], columns[a + 1]):
        y = labels[c]
        if y >= 0:
            for m in range(heads[y], heads[y + 1]):
                marked[members[m]] = a + 1


@njit(cache=True, nogil=True)
def count_rows(columns, labels, heads, members, n_units, dense, starts):
    """int64[n_attributes + 1]: where the units of each attribute will begin."""
    marked = np.zeros(n_units, np.int64)
    for a in range(len(columns) - 1):
        _mark(a, columns, labels, heads, members, n_units, dense, marked)
        starts[a + 1] = starts[a] + np.sum(marked == a + 1)


@njit(cache=True, nogil=True)
def fill_rows(columns, labels, heads, members, n_units, dense, starts, units):
    """The units of each attribute, ascending."""
    marked = np.zeros(n_units, np.int64)
    for a in range(len(columns) - 1):
        _mark(a, columns, labels, heads, members, n_units, dense, marked)
        p = starts[a]
        for u in range(n_units):
            if marked[u] == a + 1:
                units[p] = u
                p += 1
