"""Two sequences of numbers: how long their longest common subsequence is, and how many edits lie between them."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["common_places", "common_subsequence", "edits"]


@njit(cache=True, nogil=True)
def common_subsequence(a, b):
    """Length of the longest common subsequence, by rows of the usual table."""
    row = np.zeros(len(b) + 1, np.int64)
    for i in range(len(a)):
        corner = 0
        for j in range(len(b)):
            above = row[j + 1]
            if a[i] == b[j]:
                row[j + 1] = corner + 1
            elif row[j] > above:
                row[j + 1] = row[j]
            corner = above
    return row[len(b)]


@njit(cache=True, nogil=True)
def edits(a, b):
    """The least number of insertions, deletions and substitutions that make b of a."""
    row = np.arange(len(b) + 1)
    for i in range(len(a)):
        corner = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            above = row[j + 1]
            row[j + 1] = min(corner + (a[i] != b[j]), row[j] + 1, above + 1)
            corner = above
    return row[len(b)]


@njit(cache=True, nogil=True)
def common_places(a, b):
    """Places in a of one longest common subsequence, read from the end: b is left before a where both lead to one."""
    n, m = len(a), len(b)
    table = np.zeros((n + 1, m + 1), np.int64)
    for i in range(n):
        for j in range(m):
            table[i + 1, j + 1] = table[i, j] + 1 if a[i] == b[j] else max(table[i, j + 1], table[i + 1, j])
    found, at = np.empty(table[n, m], np.int64), table[n, m]
    i, j = n, m
    while i > 0 and j > 0:
        if a[i - 1] == b[j - 1]:
            at -= 1
            found[at] = i - 1
            i -= 1
            j -= 1
        elif table[i, j - 1] > table[i - 1, j]:
            j -= 1
        else:
            i -= 1
    return found
