"""Linear predictors of many rare classes from one binary matrix, several at a time."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["look_up_rows", "pivots", "present_pivots"]


@njit(cache=True, nogil=True)
def pivots(orders, indptr, indices, classes, first, regularisation, tolerance, most, weights):
    r"""Dual coordinate ascent for the predictors of the classes first … first + K − 1; returns the passes made.

    The modified Huber loss is :math:`\max_{0 \le a \le 4} a (1 - p y) - a^2/4`, so that the dual of

    .. math:: \min_w \frac1N \sum_i L(w \cdot x_i, y_i) + \lambda \|w\|^2

    has one bounded number a for each row, :math:`w = \frac1{2 \lambda N} \sum_i a_i y_i x_i`, and is exact in each
    coordinate. All K problems go through the rows together: what is read of a row serves all of them, and neighbouring
    numbers in memory belong to neighbouring problems.

    orders : int32[n_orders, n_rows], in which rows are visited, pass after pass; indptr, indices : the rows;
    classes : int32[n_rows], −1 for none; weights : float64[n_columns, K], all 0.
    """
    n, width = len(indptr) - 1, weights.shape[1]
    unit = 1.0 / (2.0 * regularisation * n)
    dual, sums, steps = np.zeros((n, width)), np.empty(width), np.empty(width)
    for done in range(most):
        order = orders[done % len(orders)]
        worst = 0.0
        for i in order:
            begin, end = indptr[i], indptr[i + 1]
            sums[:] = 0.0
            for e in range(begin, end):
                row = weights[np.uint64(indices[e])]
                for k in range(width):
                    sums[k] += row[k]
            curve = 0.5 + (end - begin) * unit
            mine = classes[i] - first
            own, moved = dual[i], 0.0
            for k in range(width):
                y = 1.0 if k == mine else -1.0
                fresh = own[k] + (1.0 - y * sums[k] - 0.5 * own[k]) / curve
                fresh = min(max(fresh, 0.0), 4.0)
                change = fresh - own[k]
                own[k] = fresh
                moved = max(moved, abs(change))
                steps[k] = change * y * unit
            if moved == 0.0:
                continue
            worst = max(worst, moved * curve)
            for e in range(begin, end):
                row = weights[np.uint64(indices[e])]
                for k in range(width):
                    row[k] += steps[k]
        if worst <= tolerance:
            return done + 1
    return most


@njit(cache=True, nogil=True)
def present_pivots(orders, indptr, indices, sizes, there, shown, regularisation, tolerance, most, weights):
    """As `pivots`, where a row may have several pivots, and each predictor has columns of its own that it does not see.

    sizes : float64[n_rows], what the entries of each row are; there : uint8[n_rows, K], whether it has a pivot;
    shown : float64[n_columns, K], 0 for columns that a predictor does not see, and 1 for others; weights :
    float64[n_columns, K], all 0. What a predictor does not see counts in the length of its steps, which makes them
    shorter and no less exact.
    """
    n, width = len(indptr) - 1, weights.shape[1]
    unit = 1.0 / (2.0 * regularisation * n)
    dual, sums, steps = np.zeros((n, width)), np.empty(width), np.empty(width)
    for done in range(most):
        order = orders[done % len(orders)]
        worst = 0.0
        for i in order:
            begin, end, size = indptr[i], indptr[i + 1], sizes[i]
            sums[:] = 0.0
            for e in range(begin, end):
                row = weights[np.uint64(indices[e])]
                for k in range(width):
                    sums[k] += row[k]
            curve = 0.5 + (end - begin) * size * size * unit
            own, moved = dual[i], 0.0
            for k in range(width):
                y = 1.0 if there[i, k] else -1.0
                fresh = own[k] + (1.0 - y * size * sums[k] - 0.5 * own[k]) / curve
                fresh = min(max(fresh, 0.0), 4.0)
                change = fresh - own[k]
                own[k] = fresh
                moved = max(moved, abs(change))
                steps[k] = change * y * size * unit
            if moved == 0.0:
                continue
            worst = max(worst, moved * curve)
            for e in range(begin, end):
                row, seen = weights[np.uint64(indices[e])], shown[np.uint64(indices[e])]
                for k in range(width):
                    row[k] += steps[k] * seen[k]
        if worst <= tolerance:
            return done + 1
    return most


@njit(cache=True, nogil=True)
def look_up_rows(places, table, out):
    """The rows of a table that each position looks up, one after the other; −1 gives zeros.

    places : int32[n, n_blocks]; table : float32[n_rows, h]; out : float32[n, n_blocks * h].
    """
    h = table.shape[1]
    for i in range(len(places)):
        for b in range(places.shape[1]):
            for k in range(h):
                out[i, b * h + k] = table[places[i, b], k] if places[i, b] >= 0 else np.float32(0)
