"""Rows of numbers in two arithmetics: what the sweeps of `itg` are made of.

======== =================================== ============== ==========================================
          a number is                         zero           used for
======== =================================== ============== ==========================================
sums     m · 2^(256 e), 2⁻¹²⁸ <= m < 2¹²⁸    m = 0          sums of any range, or of the highest level
best     its logarithm, m                    m = −∞         the best alignment
======== =================================== ============== ==========================================

All numbers of a sentence pair stand in one memory, mantissas `m` and exponents `e`; `e` is empty when the best is
wanted. Number 0 is the zero and number 1 the one of the arithmetic.

In sums, `e` carries two integers: e = level · 2³² + exponent. A sum keeps its highest level and drops the rest, a
product adds levels: the pair semiring of Haghighi and others (2009), whose items are (number of sure links, weight).
Without levels this is floating point with a 64-bit exponent: no logarithm in any loop, and nothing under- or overflows.

Numba's cache notices a change in the file of the *kernel*, not in this one: after editing here, touch the kernels.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "ONE",
    "ZERO",
    "add_dot",
    "add_product",
    "clear",
    "invert",
    "level_of",
    "log_of",
    "posterior",
    "put",
    "settle",
]

ZERO, ONE = 0, 1
EMPTY = -(2**60)  # exponent of zero: below anything, and two of them can be added
LEVEL = 2**32
UP, DOWN = 2.0**128, 2.0**-128
STEP = 2.0**-256
LOG_STEP = 256 * np.log(2.0)


@njit(cache=True, nogil=True)
def put(m, e, at, score, level):
    """Number `at` becomes exp(score), of a level."""
    if len(e) == 0:
        m[at] = score
    elif score == -np.inf:
        m[at], e[at] = 0.0, EMPTY
    else:
        exponent = np.int64(np.round(score / LOG_STEP))
        m[at], e[at] = np.exp(score - exponent * LOG_STEP), exponent + level * LEVEL


@njit(cache=True, nogil=True)
def clear(m, e, c, n):
    """Numbers c to c + n become zero."""
    if len(e):
        for t in range(c, c + n):
            m[t], e[t] = 0.0, EMPTY
    else:
        for t in range(c, c + n):
            m[t] = -np.inf


@njit(cache=True, nogil=True)
def _sum(m, e, x, f):
    """(m, e) + (x, f), mantissas up to 2^256 either way: three steps apart, the smaller is nothing to the larger."""
    if e == f:
        return m + x, e
    if f > e:
        m, e, x, f = x, f, m, e
    if x == 0.0 or e - f > 2:
        return m, e
    return m + (x * STEP if e - f == 1 else x * STEP * STEP), e


@njit(cache=True, nogil=True)
def add_product(m, e, c, a, b, n):
    """The n numbers from c on ⊕= number a ⊗ the n numbers from b on."""
    x = m[a]
    if len(e) == 0:
        for t in range(n):
            value = x + m[b + t]
            m[c + t] = value if value > m[c + t] else m[c + t]
        return
    f = e[a]
    for t in range(n):
        y = x * m[b + t]
        if y != 0.0:
            m[c + t], e[c + t] = _sum(m[c + t], e[c + t], y, f + e[b + t])


@njit(cache=True, nogil=True)
def add_dot(m, e, c, a, b, n):
    """Number c += Σ of the products of the n numbers from a and from b on; sums only."""
    x, f = m[c], e[c]
    for t in range(n):
        y = m[a + t] * m[b + t]
        if y != 0.0:
            x, f = _sum(x, f, y, e[a + t] + e[b + t])
    m[c], e[c] = x, f


@njit(cache=True, nogil=True)
def settle(m, e, c, n):
    """Bring mantissas back into their range, before the numbers are multiplied."""
    if len(e) == 0:
        return
    for t in range(c, c + n):
        x, f = m[t], e[t]
        while x >= UP:
            x, f = x * STEP, f + 1
        while 0.0 < x < DOWN:
            x, f = x / STEP, f - 1
        m[t], e[t] = x, f if x > 0.0 else EMPTY


@njit(cache=True, nogil=True)
def invert(m, e, c):
    """Number c becomes its inverse; sums only."""
    m[c], e[c] = 1.0 / m[c], -e[c]


@njit(cache=True, nogil=True)
def level_of(m, e, at):
    """The level of a number."""
    return (e[at] + LEVEL // 2) // LEVEL if len(e) and m[at] > 0.0 else 0


@njit(cache=True, nogil=True)
def log_of(m, e, at):
    """The logarithm of a number, without the level."""
    if len(e) == 0:
        return m[at]
    if m[at] == 0.0:
        return -np.inf
    return np.log(m[at]) + (e[at] - level_of(m, e, at) * LEVEL) * LOG_STEP


@njit(cache=True, nogil=True)
def posterior(m, e, a, b):
    """The product of two numbers as an ordinary one, when it is a probability; sums only."""
    x, f = m[a] * m[b], e[a] + e[b]
    if x == 0.0 or f < -4:
        return 0.0
    while f < 0:
        x, f = x * STEP, f + 1
    while f > 0:
        x, f = x / STEP, f - 1
    return x
