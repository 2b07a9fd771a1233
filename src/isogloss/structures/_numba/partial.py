"""Trees of which some links are given: which can still become projective, and what can be kept where not all can.

A *row* is a set of nodes as bits. With i < k, and charts as in `eisner`,

    inner(i, k)     some j:  closed[i, j] and closed[k, j+1]       the rows `right[i]` (moved by one) and `left[k]` meet
    closed[i, k]    some j:  open_[i, j] and closed[j, k]          `right_open[i]` and `into_right[k]` meet
    closed[k, i]    some j:  open_[k, j] and closed[j, i]          `left_open[k]` and `into_left[i]` meet

so that a span costs a few words of 64 nodes in place of a loop. Rows are filled from narrow spans to wide ones: bits of
wider spans are still 0 when they are read, and nothing needs to be cut out.
Kernels that take `(block, count)` work on the sentences block, block + count, … of a batch.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["add_link", "feasible", "keep_compatible", "longest", "possible", "rows_for"]

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_LOW = 63


@njit(cache=True, nogil=True, inline="always")
def _set(row, bit):
    row[bit >> 6] |= _ONE << np.uint64(bit & _LOW)


@njit(cache=True, nogil=True, inline="always")
def _has(row, bit):
    return (row[bit >> 6] >> np.uint64(bit & _LOW)) & _ONE != _ZERO


@njit(cache=True, nogil=True, inline="always")
def _meet(a, b, first, last):
    """Whether two rows have a node in common; only the words first … last may have any."""
    for word in range(first, last + 1):  # noqa: SIM110 - Numba has no any() over a generator
        if a[word] & b[word] != _ZERO:
            return True
    return False


@njit(cache=True, nogil=True)
def rows_for(n):
    """Room for the six kinds of rows of sentences of up to n words."""
    return np.zeros((6, n + 1, (n + 1) // 64 + 1), np.uint64)


@njit(cache=True, nogil=True)
def feasible(heads, single_root, rows):
    """Whether some projective tree has all of these heads.

    Parameters
    ----------
    heads : int[n]
        0 for the root, 1 … n for a word, −1 where any will do.
    single_root : bool
        Whether the root has one child.
    rows : uint64[6, ≥ n+1, ≥ (n+1)//64 + 1]
        Of `rows_for`; anything.
    """
    n = len(heads)
    words = (n + 1) // 64 + 1
    right, left, into_right, into_left = rows[0], rows[1], rows[2], rows[3]
    right_open, left_open = rows[4], rows[5]
    first = 1 if single_root else 0
    for i in range(n + 1):
        for kind in range(6):
            for word in range(words):
                rows[kind, i, word] = _ZERO
        if i < n:
            _set(right[i], i + 1)  # moved by one: bit j + 1 stands for closed[i, j]
        _set(left[i], i)
        _set(into_right[i], i)
        _set(into_left[i], i)
    for width in range(1, n + 1 - first):
        for i in range(first, n + 1 - width):
            k = i + width
            low, high = i >> 6, k >> 6
            if not _meet(right[i], left[k], low, high):
                continue
            given = heads[k - 1]
            if given < 0 or given == i:
                _set(right_open[i], k)
            if i > 0:
                given = heads[i - 1]
                if given < 0 or given == k:
                    _set(left_open[k], i)
        for i in range(first, n + 1 - width):
            k = i + width
            low, high = i >> 6, k >> 6
            if _meet(right_open[i], into_right[k], low, high):
                if k < n:
                    _set(right[i], k + 1)
                _set(into_right[k], i)
            if i > 0 and _meet(left_open[k], into_left[i], low, high):
                _set(left[k], i)
                _set(into_left[i], k)
    if not single_root or n == 0:
        return _has(into_right[n], 0)
    for r in range(1, n + 1):
        given = heads[r - 1]
        if (given <= 0) and _has(left[r], 1) and _has(into_right[n], r):
            return True
    return False


@njit(cache=True, nogil=True)
def longest(offsets, block, count):
    """Words of the longest sentence of a block."""
    top = 0
    for s in range(block, len(offsets) - 1, count):
        top = max(top, offsets[s + 1] - offsets[s])
    return top


@njit(cache=True, nogil=True)
def possible(block, count, offsets, heads, single_root, out):
    """`feasible` of many sentences, into bool[n_sentences]."""
    rows = rows_for(longest(offsets, block, count))
    for s in range(block, len(offsets) - 1, count):
        out[s] = feasible(heads[offsets[s] : offsets[s + 1]], single_root, rows)


@njit(cache=True, nogil=True)
def _clashes(heads, child, head, single_root):
    """Whether a link crosses one that is there, closes a cycle or makes a second root: what needs no chart."""
    low, high = min(child, head), max(child, head)
    for other in range(1, len(heads) + 1):
        above = heads[other - 1]
        if above < 0:
            continue
        if above == 0 and head == 0 and single_root:
            return True
        a, b = min(other, above), max(other, above)
        if low < a < high < b or a < low < b < high:
            return True
    at = head
    while at > 0:
        if at == child:
            return True
        at = heads[at - 1]
    return False


@njit(cache=True, nogil=True)
def add_link(heads, child, head, single_root, rows):
    """Give `child` this head if it has none and a projective tree can still have all; whether that was so."""
    if heads[child - 1] >= 0 or _clashes(heads, child, head, single_root):
        return False
    heads[child - 1] = head
    if feasible(heads, single_root, rows):
        return True
    heads[child - 1] = -1
    return False


@njit(cache=True, nogil=True)
def keep_compatible(block, count, offsets, starts, child, head, single_root, out):
    """Take links one after the other, each if a projective tree can have it beside those that were taken.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
        Words.
    starts : int64[n_sentences + 1]
        Links of each sentence, in the order in which they are to be tried.
    child, head : int32[n_links]
        From 1 in the sentence; a head of 0 is the root.
    out : int32[n_words]
        −1 before; the heads that were taken after.
    """
    rows, added = rows_for(longest(offsets, block, count)), np.empty(longest(offsets, block, count), np.int64)
    for s in range(block, len(offsets) - 1, count):
        heads = out[offsets[s] : offsets[s + 1]]
        at, last = starts[s], starts[s + 1]
        step = max(1, last - at)
        # Some at a time, as if all fitted: where they do, each would have been taken by itself.
        while at < last:
            n_added, end = 0, min(last, at + step)
            for e in range(at, end):
                if heads[child[e] - 1] < 0 and not _clashes(heads, child[e], head[e], single_root):
                    heads[child[e] - 1] = head[e]
                    added[n_added] = e
                    n_added += 1
            if n_added == 0 or feasible(heads, single_root, rows):
                at, step = end, 2 * step
                continue
            for k in range(n_added):
                heads[child[added[k]] - 1] = -1
            if n_added == 1:  # those before it had no place in any case
                at, step = added[0] + 1, 1
            else:
                step = max(1, (end - at) // 2)
