"""Trees of constituents in arrays: spans of nodes, and nodes in order."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["in_order", "spans_of"]


@njit(cache=True, nogil=True)
def spans_of(offsets, node_offsets, attached, parents, begins, ends, sizes):
    """The first word of each node, the one behind its last, and how many there are; nodes stand in pre-order."""
    for tree in range(len(offsets) - 1):
        first, low, high = offsets[tree], node_offsets[tree], node_offsets[tree + 1]
        for node in range(low, high):
            begins[node], ends[node], sizes[node] = offsets[tree + 1] - first, 0, 0
        for word in range(first, offsets[tree + 1]):
            if attached[word] >= 0:
                node = low + attached[word]
                begins[node] = min(begins[node], word - first)
                ends[node] = max(ends[node], word - first + 1)
                sizes[node] += 1
        for node in range(high - 1, low - 1, -1):
            if parents[node] >= 0:
                above = low + parents[node]
                begins[above] = min(begins[above], begins[node])
                ends[above] = max(ends[above], ends[node])
                sizes[above] += sizes[node]


@njit(cache=True, nogil=True)
def in_order(n_words, attached, parents):
    """Nodes of one tree in pre-order, children by their first words: int64[n_nodes], fewer where there is a cycle.

    attached : int32[n_words], parents : int32[n_nodes]
        Numbers of nodes in any order, -1 for none. Every node has a word below it.
    """
    n = len(parents)
    begins = np.full(n, n_words, np.int64)
    for word in range(n_words):
        node, steps = attached[word], 0
        while node >= 0 and steps <= n:  # climbing from each word finds the first word of every node
            begins[node] = min(begins[node], word)
            node = parents[node]
            steps += 1
    first, beside = np.full(n + 1, -1, np.int64), np.full(n, -1, np.int64)
    by_begin = np.argsort(begins, kind="mergesort")
    for k in range(n - 1, -1, -1):
        node = by_begin[k]
        above = parents[node] if parents[node] >= 0 else n
        beside[node] = first[above]
        first[above] = node
    order, many = np.empty(n, np.int64), 0
    stack, top = np.empty(n + 1, np.int64), 0
    if first[n] >= 0:
        stack[0], top = first[n], 1
    while top:
        top -= 1
        node = stack[top]
        order[many] = node
        many += 1
        if beside[node] >= 0:
            stack[top] = beside[node]
            top += 1
        if first[node] >= 0:
            stack[top] = first[node]
            top += 1
    return order[:many]
