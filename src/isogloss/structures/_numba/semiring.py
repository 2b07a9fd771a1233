"""Compiled bodies for `isogloss.structures.semiring`: import this module before compiling a kernel that uses them."""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import overload

from isogloss.structures.semiring import Draw, Max, total, weights

__all__ = ["total", "weights"]


@njit(cache=True, nogil=True)
def _highest(x):
    top = -np.inf
    for i in range(len(x)):
        if x[i] > top:
            top = x[i]
    return top


@njit(cache=True, nogil=True)
def _logsumexp(x):
    top = _highest(x)
    if top == -np.inf:  # nothing is allowed here: stay at minus infinity, never NaN
        return top
    mass = 0.0
    for i in range(len(x)):
        mass += np.exp(x[i] - top)
    return top + np.log(mass)


@njit(cache=True, nogil=True)
def _softmax(x, out, u):
    top = _highest(x)
    if top == -np.inf:
        out[:] = 0.0
        return
    mass = 0.0
    for i in range(len(x)):
        out[i] = np.exp(x[i] - top)
        mass += out[i]
    for i in range(len(x)):
        out[i] /= mass


@njit(cache=True, nogil=True)
def _best(x, out, u):
    out[:] = 0.0
    at, top = -1, -np.inf
    for i in range(len(x)):
        if x[i] > top:
            at, top = i, x[i]
    if at >= 0:
        out[at] = 1.0


@njit(cache=True, nogil=True)
def _drawn(x, out, u):
    _softmax(x, out, u)
    at, cumulative = -1, 0.0
    for i in range(len(x)):
        if out[i] > 0.0 and cumulative <= u:  # the last allowed entry takes what rounding leaves of the unit
            at = i
        cumulative += out[i]
    out[:] = 0.0
    if at >= 0:
        out[at] = 1.0


@overload(total)
def _total(sr, x):
    if sr.instance_class is Max:
        return lambda sr, x: _highest(x)
    return lambda sr, x: _logsumexp(x)


@overload(weights)
def _weights(sr, x, out, u):
    if sr.instance_class is Max:
        return lambda sr, x, out, u: _best(x, out, u)
    if sr.instance_class is Draw:
        return lambda sr, x, out, u: _drawn(x, out, u)
    return lambda sr, x, out, u: _softmax(x, out, u)
