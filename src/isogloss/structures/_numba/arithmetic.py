"""Sums, products and quotients of numbers that are never negative: as they are, or by their logarithms.

A kernel that only adds, multiplies and divides such numbers keeps nearly all their digits, and can be written once for
both: with `Plain` it is fast, with `Logs` it knows no overflow and no underflow. Over complex arrays the same kernel
carries derivatives along: the real part is the number, the imaginary part its derivative (with `Logs`, the derivative
of the logarithm). These are dual numbers in a complex coat; their products are not those of complex numbers.

The tags are types, as in `isogloss.structures.semiring`, so that Numba compiles a kernel for each and keeps all on
disk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload

__all__ = ["Logs", "Plain", "divide", "logarithm", "moving", "nothing", "number", "plus", "slope", "stored", "times"]

_KERNEL = {"cache": True, "nogil": True}
_NEGLIGIBLE = -40.0  # exp(-40) is less than a hundredth of the last place of 1
_FAINT = -690.0  # exp of less is taken as 0, before numbers lose their digits and the processor its speed


class Plain(NamedTuple):
    """Numbers as they are."""

    tag: int


class Logs(NamedTuple):
    """Numbers by their logarithms; nothing is −∞."""

    tag: int


def plus(ar, a, b):
    """a + b."""


def times(ar, a, b):
    """a * b."""


def divide(ar, a, b):
    """a / b, for b above nothing."""


def nothing(ar):
    """0."""


def stored(ar, log):
    """The number whose logarithm is given, as this arithmetic keeps it."""


def number(ar, a):
    """The number as a float."""


def logarithm(ar, a):
    """The logarithm of the number as a float."""


def moving(ar, a, rate):
    """The number with a derivative; `rate` is that of its logarithm."""


def slope(ar, a):
    """The derivative of the logarithm, of a number that carries one; 0 for nothing."""


@njit(**_KERNEL)
def _log_plus(a, b):
    high, low = (a, b) if a > b else (b, a)
    gap = low - high
    if not gap > _NEGLIGIBLE:  # also where both are −∞, and the gap is NaN
        return high
    return high + np.log1p(np.exp(gap))


@njit(**_KERNEL)
def _log_plus_dual(a, b):
    high, low = (a, b) if a.real > b.real else (b, a)
    gap = low.real - high.real
    if not gap > _NEGLIGIBLE:
        return high
    ratio = np.exp(gap)
    return complex(high.real + np.log1p(ratio), (high.imag + ratio * low.imag) / (1.0 + ratio))


def _dual(kind):
    return isinstance(kind, types.Complex)


@overload(plus)
def _plus(ar, a, b):
    if ar.instance_class is Plain:
        return lambda ar, a, b: a + b
    if _dual(a) or _dual(b):
        return lambda ar, a, b: _log_plus_dual(complex(a), complex(b))
    return lambda ar, a, b: _log_plus(a, b)


@overload(times)
def _times(ar, a, b):
    if ar.instance_class is Logs:
        return lambda ar, a, b: a + b
    if _dual(a):
        return lambda ar, a, b: complex(a.real * b.real, a.real * b.imag + a.imag * b.real)
    return lambda ar, a, b: a * b


@overload(divide)
def _divide(ar, a, b):
    if ar.instance_class is Logs:
        return lambda ar, a, b: a - b
    if _dual(a):
        return lambda ar, a, b: complex(a.real / b.real, (a.imag - a.real / b.real * b.imag) / b.real)
    return lambda ar, a, b: a / b


@overload(nothing)
def _nothing(ar):
    if ar.instance_class is Logs:
        return lambda ar: -np.inf
    return lambda ar: 0.0


@overload(stored)
def _stored(ar, log):
    if ar.instance_class is Logs:
        return lambda ar, log: log
    return lambda ar, log: np.exp(log) if log > _FAINT else 0.0


@overload(number)
def _number(ar, a):
    if ar.instance_class is Logs:
        return lambda ar, a: np.exp(a.real)
    return lambda ar, a: a.real


@overload(logarithm)
def _logarithm(ar, a):
    if ar.instance_class is Logs:
        return lambda ar, a: a.real
    return lambda ar, a: np.log(a.real)


@overload(moving)
def _moving(ar, a, rate):
    if ar.instance_class is Logs:
        return lambda ar, a, rate: complex(a, rate)
    return lambda ar, a, rate: complex(a, a * rate)


@overload(slope)
def _slope(ar, a):
    if ar.instance_class is Logs:
        return lambda ar, a: a.imag if a.real > -np.inf else 0.0
    return lambda ar, a: a.imag / a.real if a.real > 0.0 else 0.0
