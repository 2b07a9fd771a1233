"""Kernels of `isogloss.learners.dirichlet`."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["climb", "most", "tails"]


@njit(cache=True, nogil=True)
def most(labels, begins, ends, n_labels):
    """int64[n_labels + 1]: the largest count of each label in any group, and the largest group."""
    found, counts = np.zeros(n_labels + 1, np.int64), np.zeros(n_labels, np.int64)
    for d in range(len(begins)):
        for i in range(begins[d], ends[d]):
            counts[labels[i]] += 1
        for i in range(begins[d], ends[d]):
            found[labels[i]] = max(found[labels[i]], counts[labels[i]])
        for i in range(begins[d], ends[d]):
            counts[labels[i]] = 0
        found[n_labels] = max(found[n_labels], ends[d] - begins[d])
    return found


@njit(cache=True, nogil=True)
def tails(labels, begins, ends, n_labels, offsets, out):
    """out[offsets[t] + i]: the number of groups that have label t more than i times; of their sizes at the end."""
    counts = np.zeros(n_labels, np.int64)
    for d in range(len(begins)):
        for i in range(begins[d], ends[d]):
            out[offsets[labels[i]] + counts[labels[i]]] += 1
            counts[labels[i]] += 1
        for i in range(begins[d], ends[d]):
            counts[labels[i]] = 0
        for i in range(ends[d] - begins[d]):
            out[offsets[n_labels] + i] += 1


@njit(cache=True, nogil=True)
def climb(offsets, tail, alpha, steps, tolerance, least):
    """Steps of the fixed point, in place; the number taken."""
    n = len(alpha)
    for step in range(steps):
        whole, below = alpha.sum(), 0.0
        for i in range(offsets[n], offsets[n + 1]):
            below += tail[i] / (whole + (i - offsets[n]))
        if below == 0.0:
            return step
        change = 0.0
        for t in range(n):
            above = 0.0
            for i in range(offsets[t], offsets[t + 1]):
                above += tail[i] / (alpha[t] + (i - offsets[t]))
            fresh = max(least, alpha[t] * above / below)
            change = max(change, abs(fresh - alpha[t]) / alpha[t])
            alpha[t] = fresh
        if change < tolerance:
            return step + 1
    return steps
