"""Links of trees as nodes: the words below each word, and how many depend on it."""

from __future__ import annotations

from numba import njit

__all__ = ["link_nodes"]


@njit(cache=True, nogil=True)
def link_nodes(heads, labels, table):
    """Fill in a node for each word of some trees over the same words.

    Parameters
    ----------
    heads, labels : int64[n_trees, n]
        Heads from 1, 0 for the root.
    table : int64[n_trees * n, 6]
        Overwritten: first word below, one behind the last, label, word, head (−1 the root), number of children.
    """
    trees, n = heads.shape
    for k in range(trees):
        rows = table[k * n : (k + 1) * n]
        for i in range(n):
            rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3] = i, i + 1, labels[k, i], i
            rows[i, 4], rows[i, 5] = heads[k, i] - 1, 0
        for i in range(n):
            up = heads[k, i] - 1
            if up >= 0:
                rows[up, 5] += 1
            steps = 0
            while up >= 0 and steps < n:
                rows[up, 0] = min(rows[up, 0], i)
                rows[up, 1] = max(rows[up, 1], i + 1)
                up = heads[k, up] - 1
                steps += 1
