"""What kernels over charts of spans share: numbers of spans, and rows of probabilities."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["dot", "normalise", "span_at"]


@njit(cache=True, nogil=True, inline="always")
def span_at(i, j, n):
    """The number of the span of the words i … j - 1 of n, by width and then by start."""
    shorter = j - i - 1
    return shorter * n - shorter * (shorter - 1) // 2 + i


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def dot(one, at, other, to, size):
    """Σ one[at + t] · other[to + t] for t < size."""
    mass = 0.0
    for t in range(size):
        mass += one[at + t] * other[to + t]
    return mass


@njit(cache=True, nogil=True)
def normalise(row):
    """Divide by the largest; its log, −∞ where all are 0."""
    top = 0.0
    for a in range(len(row)):
        top = max(top, row[a])
    if top == 0.0:
        return -np.inf
    share = 1.0 / top
    for a in range(len(row)):
        row[a] *= share
    return np.log(top)
