"""Expectations and covariances of projective trees: the sweep of `eisner` carried out on dual numbers.

Give every link a value v[h, m], and a tree the sum over its links. Going forward, each cell keeps its log sum and the
*mean* value of what it sums over; going back, each cell has its posterior d and the derivative t of that posterior when
the scores move along v. All of these are of the size of v and 1, whatever the scores, because sums are kept in
logarithms and split by softmax.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.semiring import total, weights
from isogloss.structures.semiring import LOG

__all__ = ["many_moments", "moments"]

CLOSED, TURNED, OPEN, MEAN_CLOSED, MEAN_TURNED, MEAN_OPEN, D_CLOSED, D_OPEN, T_CLOSED, T_OPEN = range(10)


@njit(cache=True, nogil=True)
def _mean(x, e, length, w):
    """The mean of e under the softmax of x."""
    weights(LOG, x[:length], w[:length], 0.0)
    mean = 0.0
    for j in range(length):
        mean += w[j] * e[j]
    return mean


@njit(cache=True, nogil=True)
def _inner(c, i, k, x, e):
    for j in range(i, k):
        x[j - i] = c[CLOSED, i, j] + c[CLOSED, k, j + 1]
        e[j - i] = c[MEAN_CLOSED, i, j] + c[MEAN_CLOSED, k, j + 1]


@njit(cache=True, nogil=True)
def _outer(c, h, m, x, e):
    """Terms of closed[h, m]: the farthest child j of h on that side, and what lies beyond it."""
    low = h + 1 if h < m else m
    for t in range(abs(m - h)):
        x[t] = c[OPEN, h, low + t] + c[TURNED, m, low + t]
        e[t] = c[MEAN_OPEN, h, low + t] + c[MEAN_TURNED, m, low + t]


@njit(cache=True, nogil=True)
def _forward(scores, v, first, c, x, e, w):
    size = scores.shape[0]
    for width in range(1, size - first):
        for i in range(first, size - width):
            k = i + width
            _inner(c, i, k, x, e)
            inner, mean = total(LOG, x[:width]), _mean(x, e, width, w)
            c[OPEN, i, k], c[MEAN_OPEN, i, k] = inner + scores[i, k], mean + v[i, k]
            c[OPEN, k, i] = inner + scores[k, i] if i else -np.inf
            c[MEAN_OPEN, k, i] = mean + v[k, i]
            for h, m in ((i, k), (k, i)):
                _outer(c, h, m, x, e)
                c[CLOSED, h, m] = c[TURNED, m, h] = total(LOG, x[:width])
                c[MEAN_CLOSED, h, m] = c[MEAN_TURNED, m, h] = _mean(x, e, width, w)


@njit(cache=True, nogil=True)
def _backward(first, c, x, e, w, out):
    size = c.shape[1]
    for width in range(size - 1 - first, 0, -1):
        for i in range(first, size - width):
            k = i + width
            for h, m in ((i, k), (k, i)):
                d, t = c[D_CLOSED, h, m], c[T_CLOSED, h, m]
                if d == 0.0 and t == 0.0:
                    continue
                _outer(c, h, m, x, e)
                mean, low = _mean(x, e, width, w), h + 1 if h < m else m
                for j in range(width):
                    tangent = w[j] * (t + d * (e[j] - mean))
                    c[D_OPEN, h, low + j] += d * w[j]
                    c[T_OPEN, h, low + j] += tangent
                    c[D_CLOSED, low + j, m] += d * w[j]
                    c[T_CLOSED, low + j, m] += tangent
            out[i, k], out[k, i] = c[T_OPEN, i, k], c[T_OPEN, k, i]
            d, t = c[D_OPEN, i, k] + c[D_OPEN, k, i], c[T_OPEN, i, k] + c[T_OPEN, k, i]
            if d == 0.0 and t == 0.0:
                continue
            # The two directions share these terms; their own values v only differ in what t already holds.
            _inner(c, i, k, x, e)
            mean = _mean(x, e, width, w)
            for j in range(width):
                tangent = w[j] * (t + d * (e[j] - mean))
                c[D_CLOSED, i, i + j] += d * w[j]
                c[T_CLOSED, i, i + j] += tangent
                c[D_CLOSED, k, i + j + 1] += d * w[j]
                c[T_CLOSED, k, i + j + 1] += tangent


@njit(cache=True, nogil=True)
def moments(scores, v, single_root, derivative, out):
    """(log Z, E[Σ v over the links of a tree]); with `derivative`, `out` becomes d marginals(scores + ε v) / dε at 0.

    Parameters
    ----------
    scores, v : float64[n+1, n+1]
        `v` is finite.
    out : float64[n+1, n+1]
        Zeros; the derivative is the covariance of each link with the sum of v.
    """
    size = scores.shape[0]
    n, first = size - 1, 1 if single_root else 0
    if n == 0:
        return 0.0, 0.0
    c, x, e, w = np.zeros((10, size, size)), np.empty(size), np.empty(size), np.empty(size)
    _forward(scores, v, first, c, x, e, w)
    if not single_root:
        value, mean = c[CLOSED, 0, n], c[MEAN_CLOSED, 0, n]
        c[D_CLOSED, 0, n] = 1.0
    else:
        for r in range(1, size):
            x[r - 1] = scores[0, r] + c[CLOSED, r, 1] + c[CLOSED, r, n]
            e[r - 1] = v[0, r] + c[MEAN_CLOSED, r, 1] + c[MEAN_CLOSED, r, n]
        value, mean = total(LOG, x[:n]), _mean(x, e, n, w)
        for r in range(1, size):
            out[0, r] = w[r - 1] * (e[r - 1] - mean)
            for end in (1, n):
                c[D_CLOSED, r, end] += w[r - 1]
                c[T_CLOSED, r, end] += out[0, r]
    if derivative and value > -np.inf:
        _backward(first, c, x, e, w, out)
    return value, mean


@njit(cache=True, nogil=True)
def many_moments(block, count, scores, v, offsets, sizes, single_root, out, values):
    """`moments` with derivatives on many sentences; `values` becomes log Z."""
    for s in range(block, len(sizes), count):
        size = sizes[s]
        here = scores[offsets[s] : offsets[s + 1]].reshape((size, size))
        there = v[offsets[s] : offsets[s + 1]].reshape((size, size))
        into = out[offsets[s] : offsets[s + 1]].reshape((size, size))
        values[s] = moments(here, there, single_root, True, into)[0]
