"""Covariances of labelled spans: the sweep of `brackets` carried out on dual numbers.

Give every labelled span a value v, and a tree the sum over its constituents. Going forward, each cell keeps its log sum
and the *mean* value of what it sums over; going back, each cell has its posterior d and the derivative t of that
posterior when the scores move along v. Sums are kept in logarithms and split by softmax, as in `eisner_moments`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.brackets import first_of_width
from isogloss.structures._numba.semiring import total, weights
from isogloss.structures.semiring import LOG

__all__ = ["span_moments"]

BETA, REST, INNER, M_BETA, M_REST, M_INNER, D_BETA, D_REST, T_BETA, T_REST = range(10)


@njit(cache=True, nogil=True)
def _mean(x, e, w):
    """The mean of e under the softmax of x, which goes to w."""
    weights(LOG, x, w, 0.0)
    mean = 0.0
    for j in range(len(x)):
        mean += w[j] * e[j]
    return mean


@njit(cache=True, nogil=True)
def _terms(c, i, k, x, e):
    for j in range(i + 1, k):
        x[j - i - 1] = c[BETA, i, j] + c[REST, j, k]
        e[j - i - 1] = c[M_BETA, i, j] + c[M_REST, j, k]


@njit(cache=True, nogil=True)
def _pair(c, i, k, x, e):
    x[0], x[1] = c[BETA, i, k], c[INNER, i, k]
    e[0], e[1] = c[M_BETA, i, k], c[M_INNER, i, k]


@njit(cache=True, nogil=True)
def _forward(n, logs, means, binary, c, x, e, w):
    for width in range(1, n + 1):
        first = first_of_width(n, width)
        for i in range(n - width + 1):
            k = i + width
            if width > 1:
                _terms(c, i, k, x, e)
                c[INNER, i, k] = total(LOG, x[: width - 1])
                c[M_INNER, i, k] = _mean(x[: width - 1], e, w)
            c[BETA, i, k] = c[REST, i, k] = c[INNER, i, k] + logs[first + i]
            c[M_BETA, i, k] = c[M_REST, i, k] = c[M_INNER, i, k] + means[first + i]
            if not binary and width > 1:
                _pair(c, i, k, x, e)
                c[REST, i, k] = total(LOG, x[:2])
                c[M_REST, i, k] = _mean(x[:2], e, w)


@njit(cache=True, nogil=True)
def _backward(n, binary, c, x, e, w, posteriors, tangents):
    for width in range(n, 0, -1):
        first = first_of_width(n, width)
        for i in range(n - width + 1):
            k = i + width
            d, t, split, tangent = c[D_BETA, i, k], c[T_BETA, i, k], 0.0, 0.0
            if binary or width == 1:
                d, t = d + c[D_REST, i, k], t + c[T_REST, i, k]
            elif c[D_REST, i, k] != 0.0 or c[T_REST, i, k] != 0.0:
                _pair(c, i, k, x, e)
                mean = _mean(x[:2], e, w)
                d += w[0] * c[D_REST, i, k]
                t += w[0] * (c[T_REST, i, k] + c[D_REST, i, k] * (e[0] - mean))
                split = w[1] * c[D_REST, i, k]
                tangent = w[1] * (c[T_REST, i, k] + c[D_REST, i, k] * (e[1] - mean))
            posteriors[first + i], tangents[first + i] = d, t
            split, tangent = split + d, tangent + t
            if width == 1 or (split == 0.0 and tangent == 0.0):
                continue
            _terms(c, i, k, x, e)
            mean = _mean(x[: width - 1], e, w)
            for j in range(i + 1, k):
                share = w[j - i - 1]
                moved = share * (tangent + split * (e[j - i - 1] - mean))
                c[D_BETA, i, j] += share * split
                c[D_REST, j, k] += share * split
                c[T_BETA, i, j] += moved
                c[T_REST, j, k] += moved


@njit(cache=True, nogil=True)
def _of_labels(scores, v, words, logs, means, out):
    """Log sums of the labels of each span, the mean of their values, and their probabilities within it, to `out`."""
    spans, labels = scores.shape
    x, w = np.empty(labels + 1), np.empty(labels + 1)
    for s in range(spans):
        used = labels + 1 if s < words else labels
        x[:labels] = scores[s]
        x[labels] = 0.0
        logs[s] = total(LOG, x[:used])
        weights(LOG, x[:used], w[:used], 0.0)
        means[s] = 0.0
        for label in range(labels):
            out[s, label] = w[label]
            means[s] += w[label] * v[s, label]


@njit(cache=True, nogil=True)
def span_moments(block, count, scores, v, offsets, lengths, n_labels, binary, bare, rooted, out, values):
    """d marginals(scores + ε v) / dε at 0 into `out`, and log Z into `values`; arguments as for `marginal_spans`."""
    for s in range(block, len(lengths), count):
        n, labels = lengths[s], n_labels[s]
        if n == 0:
            values[s] = 0.0
            continue
        spans, size = n * (n + 1) // 2, n + 1
        here = scores[offsets[s] : offsets[s + 1]].reshape((spans, labels))
        there = v[offsets[s] : offsets[s + 1]].reshape((spans, labels))
        into = out[offsets[s] : offsets[s + 1]].reshape((spans, labels))
        logs, means, posteriors, tangents = np.empty(spans), np.empty(spans), np.zeros(spans), np.zeros(spans)
        words = n if bare and not (rooted and n == 1) else 0
        _of_labels(here, there, words, logs, means, into)
        c, x, e, w = np.zeros((10, size, size)), np.empty(size + 2), np.empty(size + 2), np.empty(size + 2)
        _forward(n, logs, means, binary, c, x, e, w)
        whole = rooted or binary
        values[s] = c[BETA, 0, n] if whole else c[REST, 0, n]
        if values[s] == -np.inf:
            continue
        c[D_BETA if whole else D_REST, 0, n] = 1.0
        _backward(n, binary, c, x, e, w, posteriors, tangents)
        for span in range(spans):
            for label in range(labels):
                moved = tangents[span] + posteriors[span] * (there[span, label] - means[span])
                into[span, label] *= moved
