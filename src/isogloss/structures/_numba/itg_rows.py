"""Rows of numbers in three arithmetics: what the sweeps of `itg` are made of.

======== =================================== ============== ======================================================
          a number is                         zero           used for
======== =================================== ============== ======================================================
plain    m                                   m = 0          sums, as long as nothing leaves the range of float64
wide     m · 2^(256 e), 2⁻¹²⁸ <= m < 2¹²⁸    m = 0          sums of any range, or of the highest level
best     its logarithm, m                    m = −∞         the best alignment
======== =================================== ============== ======================================================

All numbers of a sentence pair stand in one memory, mantissas `m` and exponents `e`; `e` is empty but for wide numbers.
Number 0 is the zero and number 1 the one of the arithmetic, and number 0 tells plain from best. Rows are worked on
sixteen numbers at a time where there is no exponent, so that memory must go on for `PADDING` numbers after the last.

In wide numbers, `e` carries two integers: e = level · 2³² + exponent. A sum keeps its highest level and drops the rest,
a product adds levels: the pair semiring of Haghighi and others (2009), whose items are (number of sure links, weight).
Without levels this is floating point with a 64-bit exponent: no logarithm in any loop, and nothing under- or overflows.

Numba's cache notices a change in the file of the function that is called, not in those of the functions it calls: after
editing here, remove the compiled kernels of `itg`.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from isogloss.structures._numba.lanes import WIDTH, add, load, maximum, multiply, multiply_add, splat, store, total

__all__ = [
    "ONE", "PADDING", "SINGLE", "ZERO", "add_dot", "add_product", "between", "clear", "counts", "invert", "level_of",
    "log_of", "posterior", "put", "settle",
]  # fmt: skip

# Constants are NumPy integers throughout: Numba compiles a function again for every Python integer that it is given.
ZERO, ONE = np.int64(0), np.int64(1)
SINGLE = np.int64(1)  # a row of one number
PADDING = np.int64(WIDTH)
EMPTY = -(2**60)  # exponent of zero: below anything, and two of them can be added
LEVEL = 2**32
UP, DOWN = 2.0**128, 2.0**-128
STEP = 2.0**-256
LOG_STEP = 256 * np.log(2.0)


@intrinsic
def between(typing, first, last, a, b):
    """Lanes `first` to below `last` of a, and the others of b."""

    def code(context, builder, signature, args):
        kind = ir.VectorType(ir.IntType(64), WIDTH)
        undefined, lanes = ir.Constant(kind, ir.Undefined), ir.Constant(kind, list(range(WIDTH)))
        same = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        low, high = (
            builder.shuffle_vector(
                builder.insert_element(undefined, bound, ir.Constant(ir.IntType(32), 0)), undefined, same
            )
            for bound in args[:2]
        )
        inside = builder.and_(builder.icmp_signed("<=", low, lanes), builder.icmp_signed("<", lanes, high))
        return builder.select(inside, args[2], args[3])

    return a(types.int64, types.int64, a, a), code


@njit(cache=True, nogil=True)
def put(m, e, at, score, level):
    """Number `at` becomes exp(score), of a level."""
    if len(e) == 0:
        m[at] = np.exp(score) if m[ZERO] == 0.0 else score
    elif score == -np.inf:
        m[at], e[at] = 0.0, EMPTY
    else:
        exponent = np.int64(np.floor(score / LOG_STEP + 0.5))
        m[at], e[at] = np.exp(score - exponent * LOG_STEP), exponent + level * LEVEL


@njit(cache=True, nogil=True)
def clear(m, e, c, n):
    """Numbers c to c + n become zero."""
    zero = m[ZERO]
    for t in range(c, c + n):
        m[t] = zero
    if len(e):
        for t in range(c, c + n):
            e[t] = EMPTY


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
def _add_product_lanes(m, c, x, b, n):
    """`add_product` without exponents; lanes past the end of a row are written back as they were."""
    factor = splat(x)
    if m[ZERO] == 0.0:
        for t in range(0, n, WIDTH):
            old = load(m, c + t)
            store(m, c + t, between(ZERO, n - t, multiply_add(factor, load(m, b + t), old), old))
    else:
        for t in range(0, n, WIDTH):
            old = load(m, c + t)
            store(m, c + t, between(ZERO, n - t, maximum(add(factor, load(m, b + t)), old), old))


@njit(cache=True, nogil=True)
def add_product(m, e, c, a, b, n):
    """The n numbers from c on ⊕= number a ⊗ the n numbers from b on."""
    if len(e) == 0:
        if n != 1:
            _add_product_lanes(m, c, m[a], b, n)
        elif m[ZERO] == 0.0:  # a vector that is written and read again at once would be waited for
            m[c] += m[a] * m[b]
        else:
            m[c] = max(m[c], m[a] + m[b])
        return
    x, f = m[a], e[a]
    for t in range(n):
        y = x * m[b + t]
        if y != 0.0:
            m[c + t], e[c + t] = _sum(m[c + t], e[c + t], y, f + e[b + t])


@njit(cache=True, nogil=True)
def add_dot(m, e, c, a, b, n):
    """Number c += Σ of the products of the n numbers from a and from b on; sums only."""
    if len(e) == 0:
        if n == 1:
            m[c] += m[a] * m[b]
            return
        nothing = splat(0.0)
        lanes = nothing
        for t in range(0, n, WIDTH):
            lanes = add(lanes, between(ZERO, n - t, multiply(load(m, a + t), load(m, b + t)), nothing))
        m[c] += total(lanes)
        return
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
    m[c] = 1.0 / m[c]
    if len(e):
        e[c] = -e[c]


@njit(cache=True, nogil=True)
def level_of(m, e, at):
    """The level of a number."""
    return (e[at] + LEVEL // 2) // LEVEL if len(e) and m[at] > 0.0 else 0


@njit(cache=True, nogil=True)
def log_of(m, e, at):
    """The logarithm of a number, without the level."""
    if m[at] == m[ZERO]:
        return -np.inf
    if len(e) == 0:
        return np.log(m[at]) if m[ZERO] == 0.0 else m[at]
    return np.log(m[at]) + (e[at] - level_of(m, e, at) * LEVEL) * LOG_STEP


@njit(cache=True, nogil=True)
def counts(m, e, a, b):
    """Whether the product of two wide numbers is more than zero and of level 0 or above, however small it is."""
    return m[a] != 0.0 and m[b] != 0.0 and e[a] + e[b] >= -LEVEL // 2


@njit(cache=True, nogil=True)
def posterior(m, e, a, b):
    """The product of two numbers as an ordinary one, when it is a probability; sums only."""
    if len(e) == 0:
        return m[a] * m[b]
    x, f = m[a] * m[b], e[a] + e[b]
    if x == 0.0 or f < -4:
        return 0.0
    while f < 0:
        x, f = x * STEP, f + 1
    while f > 0:
        x, f = x / STEP, f - 1
    return x
