"""Projective trees in plain probabilities: sums and marginals with sixteen numbers at once.

The same program as `eisner`, for LOG alone. Each word has exactly one head, so dividing the weights of all links into a
word by the largest of them changes log Z by a known amount and marginals not at all; after that every weight is at most
1, and sums of up to (27/4)ⁿ products fit into float64 for the lengths that sentences have. Where they may not, the
kernel says so and the caller turns to logarithms.

When do they fit? A product that underflows is wrong by at most 5e-324, and what it is wrong by enters log Z times the
adjoint of its cell (the sum over all that can stand around the cell, over Z). Charts are below (27/4)ⁿ, the growth of
the number of trees, and so are the sums around cells. Hence either of two conditions keeps what n³ underflows can do to
log Z and marginals below 1e-15: log Z ≥ n log(27/4) + 3 log n − 690, known before the sweep back; or all adjoints, as
they come out, below 1e290, if no weight is so small that it underflows itself.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.lane_sums import add_products, dot
from isogloss.structures._numba.lanes import WIDTH

__all__ = ["room", "scaled", "stride"]

_GROWTH = 1.9095425048844386  # log(27/4)
_REACH = 690.0  # a little below log(1.8e308), the largest float64
_HIGHEST = 1e290  # adjoint
_DEEPEST = -600.0  # logarithm of a weight, well above that of the smallest float64
_CHARTS = 10  # weights, three charts, six adjoints


@njit(cache=True, nogil=True)
def stride(size):
    """Length of a row: room for one vector too many, and an odd number of cache lines, so that columns spread."""
    lines = (size + WIDTH + 7) // 8
    return 8 * (lines + 1 - lines % 2)


@njit(cache=True, nogil=True)
def room(size):
    """Workspace that `scaled` needs for `size` nodes, as the number of float64."""
    return _CHARTS * size * stride(size)


@njit(cache=True, nogil=True)
def _weights(scores, size, row, weight):
    """Weights with each column divided by its largest; returns the sum of the logarithms of those, and the least weight
    that is not forbidden, as a logarithm."""
    shift = least = 0.0
    for child in range(1, size):
        top = -np.inf
        for head in range(size):
            if head != child and scores[head, child] > top:
                top = scores[head, child]
        if top == -np.inf:
            return top, least  # a word that no head may take
        shift += top
        for head in range(size):
            if head != child and scores[head, child] > -np.inf:
                weight[head * row + child] = np.exp(scores[head, child] - top)
                least = min(least, scores[head, child] - top)
    return shift, least


@njit(cache=True, nogil=True)
def _inside(weight, closed, turned, open_, row, first, last):
    """Fill the charts, narrow spans first; `turned` is `closed` transposed, so that all sums run along rows.

    closed[h, m] is the span from h to m with head h at one end, open[h, m] the same with a link from h to m. What is
    not filled yet is 0, and that is what sums read beyond their end.
    """
    for i in range(first, last + 1):
        closed[i * row + i] = turned[i * row + i] = 1.0
    for width in range(1, last - first + 1):
        for i in range(
            first, last + 1 - width
        ):  # open and closed in two passes: what is stored rests before it is read
            k = i + width
            inner = dot(closed, i * row + i, closed, k * row + i + 1, width)
            open_[i * row + k] = inner * weight[i * row + k]
            open_[k * row + i] = inner * weight[k * row + i]
        for i in range(first, last + 1 - width):
            k = i + width
            right = dot(open_, i * row + i + 1, turned, k * row + i + 1, width)
            left = dot(open_, k * row + i, turned, i * row + i, width)
            closed[i * row + k] = turned[k * row + i] = right
            closed[k * row + i] = turned[i * row + k] = left


@njit(cache=True, nogil=True)
def _outside(weight, charts, adjoints, row, first, last, grad):
    """Adjoints, wide spans first; right and left apart, so that what is added beyond the end of a row is never read.

    Returns the largest.
    """
    highest = 0.0
    closed, turned, open_ = charts
    row_right, row_left, turned_right, turned_left, open_right, open_left = adjoints
    for width in range(last - first, 0, -1):
        for i in range(first, last + 1 - width):
            k = i + width
            right = row_right[i * row + k] + turned_right[k * row + i]
            left = row_left[k * row + i] + turned_left[i * row + k]
            highest = max(highest, max(right, left))
            add_products(open_, i * row + i + 1, turned, k * row + i + 1, right, open_right, turned_right, width)
            add_products(open_, k * row + i, turned, i * row + i, left, open_left, turned_left, width)
        for i in range(first, last + 1 - width):
            k = i + width
            right, left = open_right[i * row + k], open_left[k * row + i]
            grad[i, k] = min(1.0, right * open_[i * row + k])
            grad[k, i] = min(1.0, left * open_[k * row + i])
            inner = right * weight[i * row + k] + left * weight[k * row + i]
            highest = max(highest, max(inner, max(right, left)))
            add_products(closed, i * row + i, closed, k * row + i + 1, inner, row_right, row_left, width)
    return highest


@njit(cache=True, nogil=True)
def scaled(scores, single_root, grad, work):
    """log Z and marginals, or NaN where the numbers might not fit (then `grad` is zero).

    Parameters
    ----------
    scores, grad : float64[n+1, n+1]
        `grad` is zero before.
    work : float64[room(n+1)]
        Anything.
    """
    size = scores.shape[0]
    n, row = size - 1, stride(size)
    if n == 0:
        return 0.0
    if n * _GROWTH > _REACH:
        return np.nan
    work[: _CHARTS * size * row] = 0.0
    area = size * row
    weight = work[:area]
    closed, turned, open_ = work[area : 2 * area], work[2 * area : 3 * area], work[3 * area : 4 * area]
    row_right, row_left = work[4 * area : 5 * area], work[5 * area : 6 * area]
    turned_right, turned_left = work[6 * area : 7 * area], work[7 * area : 8 * area]
    open_right, open_left = work[8 * area : 9 * area], work[9 * area : 10 * area]
    first = 1 if single_root else 0
    shift, least = _weights(scores, size, row, weight)
    if shift == -np.inf:
        return np.nan
    _inside(weight, closed, turned, open_, row, first, n)
    z = closed[n]
    if single_root:
        z = 0.0
        for r in range(1, size):
            z += weight[r] * closed[r * row + 1] * closed[r * row + n]
    if z < 1.0 / _HIGHEST:
        return np.nan
    safe = np.log(z) >= n * _GROWTH + 3 * np.log(size) - _REACH
    if not safe and least < _DEEPEST:
        return np.nan
    if single_root:
        for r in range(1, size):
            left, right = closed[r * row + 1], closed[r * row + n]
            grad[0, r] = min(1.0, weight[r] / z * left * right)
            row_left[r * row + 1] += weight[r] / z * right
            row_right[r * row + n] += weight[r] / z * left
    else:
        row_right[n] = 1.0 / z
    charts = (closed, turned, open_)
    adjoints = (row_right, row_left, turned_right, turned_left, open_right, open_left)
    highest = _outside(weight, charts, adjoints, row, first, n, grad)
    if not safe and not highest < _HIGHEST:
        for head in range(size):
            for child in range(size):
                grad[head, child] = 0.0
        return np.nan
    return shift + np.log(z)
