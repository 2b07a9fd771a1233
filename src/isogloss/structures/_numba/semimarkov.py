"""Segmentations: one sweep over the places where segments end, and the same sweep backward, in any semiring.

A sentence of n positions has one vector: ``segments[n, longest, k]``, of which ``[b, l - 1, y]`` is the segment of
label y that begins at b and has l positions, then ``steps[n - 1, k, k]``, of which ``[t - 1, x, y]`` is a segment of
label x that ends before position t and one of label y that begins there. What a boundary has to remember is the label
of the segment before it: at a higher order it would be several, as in `isogloss.structures._numba.chain`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.semiring import total, weights

__all__ = ["segmentation", "segmentations"]


@njit(cache=True, nogil=True)
def _ends_at(end, label, longest, k, scores, enter, x):
    """Fill x with the scores of all that ends in a segment of this label before `end`, by its length."""
    many = min(longest, end)
    for width in range(1, many + 1):
        begin = end - width
        x[width - 1] = enter[begin, label] + scores[(begin * longest + width - 1) * k + label]
    return many


@njit(cache=True, nogil=True)
def _enters_at(begin, label, k, scores, steps, alpha, x):
    """Fill x with the scores of all that goes before a segment of this label, by the label before it."""
    at = steps + (begin - 1) * k * k + label
    for other in range(k):
        x[other] = alpha[begin, other] + scores[at + other * k]


@njit(cache=True, nogil=True)
def segmentation(sr, scores, n, longest, k, grad, u):
    """⊕ over all segmentations of the scores of their segments and steps.

    Parameters
    ----------
    sr : LOG, MAX or DRAW
    scores, grad : float64[n * longest * k + (n - 1) * k * k]
        Zeros in `grad` are overwritten with the derivative of the result.
    u : float64[2 n + 1]
        Uniform on [0, 1), read by DRAW only; may be empty for the others.
    """
    if n == 0:
        return 0.0  # the empty segmentation
    if k == 0 or longest == 0:
        return -np.inf
    steps = n * longest * k
    alpha, enter = np.full((n + 1, k), -np.inf), np.zeros((n, k))
    x, w = np.empty(longest), np.empty(longest)
    before, v = np.empty(k), np.empty(k)
    for end in range(1, n + 1):
        for label in range(k):
            many = _ends_at(end, label, longest, k, scores, enter, x)
            alpha[end, label] = total(sr, x[:many])
        if end < n:
            for label in range(k):
                _enters_at(end, label, k, scores, steps, alpha, before)
                enter[end, label] = total(sr, before)
    value = total(sr, alpha[n])
    mass, entered = np.zeros((n + 1, k)), np.zeros((n, k))
    weights(sr, alpha[n], mass[n], u[2 * n] if len(u) else 0.0)
    for end in range(n, 0, -1):
        if end < n:
            for label in range(k):
                here = entered[end, label]
                if here == 0.0:
                    continue
                _enters_at(end, label, k, scores, steps, alpha, before)
                weights(sr, before, v, u[2 * end] if len(u) else 0.0)
                for other in range(k):
                    grad[steps + ((end - 1) * k + other) * k + label] = here * v[other]
                    mass[end, other] += here * v[other]
        for label in range(k):
            here = mass[end, label]
            if here == 0.0:
                continue
            many = _ends_at(end, label, longest, k, scores, enter, x)
            weights(sr, x[:many], w[:many], u[2 * end - 1] if len(u) else 0.0)
            for width in range(1, many + 1):
                begin = end - width
                grad[(begin * longest + width - 1) * k + label] = here * w[width - 1]
                entered[begin, label] += here * w[width - 1]
    return value


@njit(cache=True, nogil=True)
def segmentations(block, blocks, sr, scores, offsets, lengths, longest, k, grad, u, starts, values):
    """`segmentation` of the sentences block, block + blocks, …; sentence *s* reads ``u[starts[s]:starts[s + 1]]``."""
    for s in range(block, len(lengths), blocks):
        here = slice(offsets[s], offsets[s + 1])
        drawn = u[starts[s] : starts[s + 1]]
        values[s] = segmentation(sr, scores[here], lengths[s], longest, k, grad[here], drawn)
