"""Projective trees, the best score of every span, with sixteen numbers at once: `eisner.inside` for MAX."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.lanes import WIDTH, add, largest, load, maximum

__all__ = ["best_inside"]


@njit(cache=True, nogil=True)
def _best(a, i, b, k, length):
    """max a[i + t] + b[k + t] for t < length; reads on to a whole vector, where one of the two must be −∞."""
    lanes = add(load(a, i), load(b, k))
    for t in range(WIDTH, length, WIDTH):
        lanes = maximum(lanes, add(load(a, i + t), load(b, k + t)))
    return largest(lanes)


@njit(cache=True, nogil=True)
def best_inside(scores, first, charts):
    """Fill charts[0] (closed), charts[1] (turned) and charts[2] (open), narrow spans first.

    Parameters
    ----------
    scores : float64[n+1, n+1]
    first : 0, or 1 to leave out the root
    charts : float64[3 or more, n+1, row]
        Anything; `row` is at least n + 1 + WIDTH. What is not filled yet is −∞, and that is what sums read beyond their
        end.
    """
    size, row = scores.shape[0], charts.shape[2]
    area = size * row
    flat = charts.reshape(charts.size)
    for at in range(3 * area):
        flat[at] = -np.inf
    closed, turned, open_ = flat[:area], flat[area : 2 * area], flat[2 * area : 3 * area]
    for i in range(size):
        closed[i * row + i] = turned[i * row + i] = 0.0
    for width in range(1, size - first):
        for i in range(first, size - width):
            k = i + width
            inner = _best(closed, i * row + i, closed, k * row + i + 1, width)
            open_[i * row + k] = inner + scores[i, k]
            if i:  # nothing is the head of the root
                open_[k * row + i] = inner + scores[k, i]
        for i in range(first, size - width):
            k = i + width
            right = _best(open_, i * row + i + 1, turned, k * row + i + 1, width)
            left = _best(open_, k * row + i, turned, i * row + i, width)
            closed[i * row + k] = turned[k * row + i] = right
            closed[k * row + i] = turned[i * row + k] = left
