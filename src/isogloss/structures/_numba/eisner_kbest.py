"""The k best projective trees: every cell of the chart keeps its own k best, best first.

A cell is the union over splits of all pairs from two narrower cells, whose lists are sorted. The best k pairs come out
of a heap that holds, for every split, the frontier of pairs not taken yet: after (p, q) comes (p, q+1), and after
(p, 0) also (p+1, 0), so that each pair enters once. O(n³ + n² k log(n + k)). Trees have one derivation each, hence no
tree comes twice. Huang and Chiang, Better k-best parsing, IWPT 2005, algorithm 2.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["k_trees"]


@njit(cache=True, nogil=True)
def _before(heap, keys, a, b):
    """Whether entry a comes out before entry b: higher score, and among equals the one that came first."""
    return heap[a] > heap[b] or (heap[a] == heap[b] and keys[a, 3] < keys[b, 3])


@njit(cache=True, nogil=True)
def _exchange(heap, keys, a, b):
    heap[a], heap[b] = heap[b], heap[a]
    for column in range(4):
        keys[a, column], keys[b, column] = keys[b, column], keys[a, column]


@njit(cache=True, nogil=True)
def _push(heap, keys, filled, score, split, p, q, ticket):
    heap[filled] = score
    keys[filled, 0], keys[filled, 1], keys[filled, 2], keys[filled, 3] = split, p, q, ticket
    at = filled
    while at > 0 and _before(heap, keys, at, (at - 1) // 2):
        _exchange(heap, keys, at, (at - 1) // 2)
        at = (at - 1) // 2


@njit(cache=True, nogil=True)
def _drop_first(heap, keys, filled):
    """Move the last entry to the front and let it sink."""
    _exchange(heap, keys, 0, filled - 1)
    at, last = 0, filled - 2
    while 2 * at + 1 <= last:
        down = 2 * at + 1
        if down + 1 <= last and _before(heap, keys, down + 1, down):
            down += 1
        if not _before(heap, keys, down, at):
            break
        _exchange(heap, keys, at, down)
        at = down


@njit(cache=True, nogil=True)
def _merge(lists, lengths, back, k, cell, left, right, extra, splits, heap, keys):
    """Fill list `cell` with the k best of left[t] × right[t] + extra[t] over the splits t."""
    filled = ticket = 0
    for t in range(splits):
        if lengths[left[t]] and lengths[right[t]] and extra[t] > -np.inf:
            score = lists[left[t], 0] + extra[t] + lists[right[t], 0]
            _push(heap, keys, filled, score, t, 0, 0, ticket)
            filled, ticket = filled + 1, ticket + 1
    taken = 0
    while filled and taken < k:
        t, p, q = keys[0, 0], keys[0, 1], keys[0, 2]
        lists[cell, taken] = heap[0]
        back[cell, taken, 0], back[cell, taken, 1], back[cell, taken, 2] = t, p, q
        taken += 1
        _drop_first(heap, keys, filled)
        filled -= 1
        if q + 1 < lengths[right[t]]:
            score = lists[left[t], p] + extra[t] + lists[right[t], q + 1]
            _push(heap, keys, filled, score, t, p, q + 1, ticket)
            filled, ticket = filled + 1, ticket + 1
        if q == 0 and p + 1 < lengths[left[t]]:
            score = lists[left[t], p + 1] + extra[t] + lists[right[t], 0]
            _push(heap, keys, filled, score, t, p + 1, 0, ticket)
            filled, ticket = filled + 1, ticket + 1
    lengths[cell] = taken


@njit(cache=True, nogil=True)
def _read(back, size, goal, rank, heads, stack):
    """Follow the pointers of one tree; `heads` is int64[n]. Cells are numbered as in `k_trees`."""
    square = size * size
    stack[0, 0], stack[0, 1] = goal, rank
    depth = 1
    while depth:
        depth -= 1
        cell, rank = stack[depth]
        t, p, q = back[cell, rank]
        if cell == 2 * square:  # the only child of the root
            heads[t] = 0
            left, right = (t + 1) * size + 1, (t + 1) * size + size - 1
        elif cell < square:
            h, m = cell // size, cell % size
            j = h + 1 + t if h < m else m + t
            heads[j - 1] = h
            left, right = square + min(h, j) * size + max(h, j), j * size + m
        else:
            i, k = (cell - square) // size, (cell - square) % size
            left, right = i * size + i + t, k * size + i + t + 1
        for part, place in ((left, p), (right, q)):
            if part >= square or part // size != part % size:  # a span of one node has nothing to read
                stack[depth, 0], stack[depth, 1] = part, place
                depth += 1


@njit(cache=True, nogil=True)
def k_trees(scores, single_root, k, trees, values):
    """Write the k best trees into `trees`, int64[k, n], and their scores into `values`; returns how many there are.

    Cells: closed[h, m] is h · size + m; the two closed halves that a link between i < k covers, size² + i · size + k;
    the tree with a single root, 2 size².
    """
    size = scores.shape[0]
    n, first, square = size - 1, 1 if single_root else 0, size * size
    if n == 0:
        values[0] = 0.0
        return 1
    lists, lengths = np.empty((2 * square + 1, k)), np.zeros(2 * square + 1, np.int64)
    back = np.empty((2 * square + 1, k, 3), np.int32)
    left, right, extra = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size)
    heap, keys = np.empty(size + 2 * k), np.empty((size + 2 * k, 4), np.int64)
    for i in range(size):
        lists[i * size + i, 0], lengths[i * size + i] = 0.0, 1
    for width in range(1, size - first):
        for i in range(first, size - width):
            j = i + width
            for t in range(width):
                left[t], right[t], extra[t] = i * size + i + t, j * size + i + t + 1, 0.0
            _merge(lists, lengths, back, k, square + i * size + j, left, right, extra, width, heap, keys)
            for t in range(width):
                child = i + 1 + t
                left[t], right[t], extra[t] = square + i * size + child, child * size + j, scores[i, child]
            _merge(lists, lengths, back, k, i * size + j, left, right, extra, width, heap, keys)
            if i == 0:
                continue  # nothing is the head of the root
            for t in range(width):
                child = i + t
                left[t], right[t], extra[t] = square + child * size + j, child * size + i, scores[j, child]
            _merge(lists, lengths, back, k, j * size + i, left, right, extra, width, heap, keys)
    goal = n
    if single_root:
        goal = 2 * square
        for r in range(1, size):
            left[r - 1], right[r - 1], extra[r - 1] = r * size + 1, r * size + n, scores[0, r]
        _merge(lists, lengths, back, k, goal, left, right, extra, n, heap, keys)
    stack = np.empty((4 * size, 2), np.int64)
    for rank in range(lengths[goal]):
        values[rank] = lists[goal, rank]
        _read(back, size, goal, rank, trees[rank], stack)
    return lengths[goal]
