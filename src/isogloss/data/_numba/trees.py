"""Heads of many sentences: are they trees, and do their links cross?"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["CYCLE", "TWO_ROOTS", "UNKNOWN", "crossing_links", "first_problem"]

FINE, TWO_ROOTS, CYCLE, UNKNOWN = range(4)


@njit(cache=True, nogil=True)
def first_problem(offsets, heads, complete):
    """The first sentence whose heads are no tree with one root.

    Unknown heads (-1) are no fault unless `complete`. Without them, a sentence that has no root has a cycle.

    Returns
    -------
    kind, word, other : int
        A constant above; the word, from 0 in all, that shows it, and another of the same sentence.
    """
    visited = np.zeros(heads.size + 1, np.int64)
    for sentence in range(offsets.size - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        root, unknown = -1, -1
        for word in range(first, stop):
            if heads[word] == 0:
                if root >= 0:
                    return TWO_ROOTS, word, root
                root = word
            elif heads[word] < 0 and unknown < 0:
                unknown = word
        if complete and unknown >= 0:
            return UNKNOWN, unknown, unknown
        for word in range(first, stop):
            at = word
            while visited[at] == 0 and heads[at] > 0:
                visited[at] = word + 1
                at = first + heads[at] - 1
            if visited[at] == word + 1 and heads[at] > 0:
                return CYCLE, at, first + heads[at] - 1
            visited[at] = max(visited[at], 1)
    return FINE, 0, 0


@njit(cache=True, nogil=True)
def crossing_links(offsets, heads):
    """Whether the link of a word to its head crosses another: bool[n_words]; the root stands before the first word."""
    crossing = np.zeros(heads.size, np.bool_)
    for sentence in range(offsets.size - 1):
        first = offsets[sentence]
        n = offsets[sentence + 1] - first
        for a in range(1, n + 1):
            head = heads[first + a - 1]
            if head < 0:
                continue
            left, right = min(a, head), max(a, head)
            for b in range(a + 1, n + 1):
                head = heads[first + b - 1]
                low, high = min(b, head), max(b, head)
                if head >= 0 and (left < low < right < high or low < left < high < right):
                    crossing[first + a - 1] = True
                    crossing[first + b - 1] = True
    return crossing
