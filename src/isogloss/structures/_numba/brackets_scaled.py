"""Bracketings in plain probabilities: sums and posteriors of spans with sixteen numbers at once.

The same program as `brackets`, for LOG alone. Every tree has each word, so that the weights of words may be chosen
freely: what they differ from the true ones by moves log Z by a known amount, and posteriors not at all. They are a
power of 2, the same for all words, which is changed on the way whenever sums grow or shrink too far; a cell of so many
words is then multiplied by this power so many times, without rounding.

When do numbers fit? A product that underflows is wrong by at most 5e-324, and what it is wrong by enters log Z times
the adjoint of its cell (the sum over all that can stand around the cell, over Z). All adjoints, as they come out, are
below 1e290, so that n³ underflows do nothing. That holds as long as sums are not multiplied again: once a cell has come
too near to 0, or has been lost, they may shrink further, but never grow. A weight below e^-700 counts as 0, and is
missed by no more than what its span would have had as posterior, which is checked, too. Otherwise the kernel says so,
and the caller turns to logarithms.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.brackets import first_of_width, stride
from isogloss.structures._numba.lane_sums import add_products, dot

__all__ = ["room", "scaled"]

_HIGHEST = 1e290  # adjoint
_DEEPEST = -700.0  # logarithm of a weight that is not 0
_MISSED = 1e200  # what a weight that counts as 0 may be multiplied with, to stay below 1e-100
_TINY = 1e-290  # cells below it may have lost digits, or everything
_FAR = 1e30  # where sums begin to be scaled
_NO_POWER = 10000  # of 2: sums do not fit
_CHARTS = 5  # beta, turned, inner, two adjoints


@njit(cache=True, nogil=True)
def room(n):
    """Workspace that `scaled` needs for n words, as the number of float64."""
    return _CHARTS * (n + 1) * stride(n + 1)


@njit(cache=True, nogil=True)
def _rescale(n, row, width, power, beta, turned, inner):
    """Multiply all cells of up to `width` words by 2^power for each word; the largest, and whether some are tiny."""
    most, lost = 0.0, False
    for v in range(1, width + 1):
        factor = 2.0 ** (power * v)
        for i in range(n - v + 1):
            beta[i * row + i + v] *= factor
            inner[i * row + i + v] *= factor
            own = turned[(i + v) * row + i]
            turned[(i + v) * row + i] = own * factor
            most = max(most, own * factor)
            lost = lost or (own > 0.0 and own * factor < _TINY)
    return most, lost


@njit(cache=True, nogil=True)
def _vanished(mass, weight, beta, turned, i, k, row):
    """Whether a cell should be more than the nearly nothing that it is."""
    if mass >= _TINY:
        return weight > 0.0 and mass * weight < _TINY
    found = False
    for j in range(i + 1, k):
        found = found or (beta[i * row + j] > 0.0 and turned[k * row + j] > 0.0)
    return found


@njit(cache=True, nogil=True)
def _inside(n, weight, binary, row, beta, turned, inner):
    """Fill the charts; returns the power of 2 that each word has been multiplied by, or a number too large to be one.

    What is not filled yet is 0, and that is what sums read beyond their end.
    """
    power, lost = 0, False
    for i in range(n):
        beta[i * row + i + 1] = turned[(i + 1) * row + i] = 1.0
    for width in range(2, n + 1):
        first, top = first_of_width(n, width), 0.0
        for i in range(n - width + 1):
            k = i + width
            mass = dot(beta, i * row + i + 1, turned, k * row + i + 1, width - 1)
            if not mass < np.inf:
                return _NO_POWER
            inner[i * row + k] = mass
            here = mass * weight[first + i]
            beta[i * row + k] = here
            turned[k * row + i] = here if binary else here + mass
            top = max(top, turned[k * row + i])
            if mass < _TINY or here < _TINY:
                lost = lost or _vanished(mass, weight[first + i], beta, turned, i, k, row)
        if not top < np.inf:
            return _NO_POWER
        if top > _FAR or (top < 1.0 / _FAR and top > 0.0):
            step = -int(np.round(np.log2(top) / width))
            if abs(step * width) > 1000 or (lost and step > 0):
                return _NO_POWER
            most, tiny = _rescale(n, row, width, step, beta, turned, inner)
            if not most < _HIGHEST:
                return _NO_POWER
            lost = lost or tiny
            power += step
    return power


@njit(cache=True, nogil=True)
def _outside(n, weight, logs, binary, row, charts, adjoints, out):
    """Adjoints, wide spans first, and posteriors of spans; returns the largest adjoint, or ∞ where too much is missed.

    `adjoints`: along rows that of beta, along turned rows that of rest, so that what is added beyond the end of a row
    is never read.
    """
    beta, turned, inner = charts
    d_beta, d_rest = adjoints
    highest = 0.0
    for width in range(n, 0, -1):
        first = first_of_width(n, width)
        for i in range(n - width + 1):
            k = i + width
            loose = d_rest[k * row + i]
            d = d_beta[i * row + k] + loose
            out[first + i] = min(1.0, d * beta[i * row + k])
            highest = max(highest, d)
            if width == 1:
                continue
            if weight[first + i] == 0.0 and logs[first + i] > -np.inf and not d * inner[i * row + k] < _MISSED:
                return np.inf
            split = d * weight[first + i]
            if not binary:
                split += loose
            highest = max(highest, split)
            if split > 0.0:
                add_products(beta, i * row + i + 1, turned, k * row + i + 1, split, d_beta, d_rest, width - 1)
    return highest


@njit(cache=True, nogil=True)
def scaled(n, logs, binary, rooted, weight, work, out):
    """log Z of one sentence, and posteriors of its spans; NaN where plain probabilities might not do.

    Parameters
    ----------
    logs : float64[n_spans]
        Log weight of each span, its labels summed.
    weight : float64[n_spans]
        Scratch.
    work : float64[room(n)]
        Scratch.
    out : float64[n_spans]
        Overwritten.
    """
    if n == 0:
        return 0.0
    row = stride(n + 1)
    area = (n + 1) * row
    work[: _CHARTS * area] = 0.0
    beta, turned, inner = work[:area], work[area : 2 * area], work[2 * area : 3 * area]
    d_beta, d_rest = work[3 * area : 4 * area], work[4 * area : 5 * area]
    shift, whole = 0.0, n > 1 and (rooted or binary)
    for i in range(n):
        shift += logs[i]  # words weigh 1
        weight[i] = 1.0
    last = len(logs) - 1
    for s in range(n, last + 1):
        weight[s] = np.exp(logs[s]) if logs[s] > _DEEPEST else 0.0
    if whole:  # so does the whole sentence, where every tree has it
        shift += logs[last]
        weight[last] = 1.0
    if shift == -np.inf:
        return np.nan
    power = _inside(n, weight, binary, row, beta, turned, inner)
    z = beta[n] if whole else turned[n * row]
    if power == _NO_POWER or not (z > 1.0 / _HIGHEST and z < _HIGHEST):
        return np.nan
    if whole or n == 1:
        d_beta[n] = 1.0 / z
    else:
        d_rest[n * row] = 1.0 / z
    if not _outside(n, weight, logs, binary, row, (beta, turned, inner), (d_beta, d_rest), out) < _HIGHEST:
        return np.nan
    return shift + np.log(z) - n * power * np.log(2.0)
