"""Two sequences of numbers: how long their longest common subsequence is, and how many edits lie between them."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["common_subsequence", "edits"]


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
