"""A semiring is two functions: `total` adds up a vector, `weights` is its derivative.

====== ======================== ======================================== ===========================
tag    ``total(sr, x)``         ``weights(sr, x, out, u)`` writes         a sweep with it gives
====== ======================== ======================================== ===========================
LOG    log Σ exp x              softmax of x                              log partition and marginals
MAX    max x                    one-hot of the best (the first of equals) best score and best structure
DRAW   log Σ exp x              one-hot of a draw made with ``u``         log partition and a sample
====== ======================== ======================================== ===========================

The tags are values of three different *types*, so that Numba compiles a kernel once for each and keeps the result on
disk; functions handed over as arguments would be compiled again in every process. The bodies below are plain NumPy and
serve in interpreted code and as the definition; inside kernels `isogloss.structures._numba.semiring` replaces them.

Randomness is data: ``u`` is uniform on [0, 1) and comes from outside, so that kernels stay pure. Minus infinity stays
minus infinity: a vector in which nothing is allowed has total −∞ and weights 0, never NaN.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["DRAW", "LOG", "MAX", "Draw", "Log", "Max", "Semiring", "total", "weights"]


class Log(NamedTuple):
    """Sums of probabilities, in logarithms."""

    tag: int = 0


class Max(NamedTuple):
    """The best, and where it is."""

    tag: int = 0


class Draw(NamedTuple):
    """Sums of probabilities going forward, one choice going back."""

    tag: int = 0


Semiring = Log | Max | Draw
LOG, MAX, DRAW = Log(), Max(), Draw()


def total(sr: Semiring, x: NDArray[np.float64]) -> float:
    """⊕ of the entries of `x`; −∞ when `x` is empty or nothing in it is allowed.

    Examples
    --------
    >>> x = np.log([0.25, 0.5])
    >>> round(float(np.exp(total(LOG, x))), 12), round(float(np.exp(total(MAX, x))), 12)
    (0.75, 0.5)
    """
    top = float(x.max(initial=-np.inf))
    if top == -np.inf or isinstance(sr, Max):
        return top
    return top + float(np.log(np.exp(x - top).sum()))


def weights(sr: Semiring, x: NDArray[np.float64], out: NDArray[np.float64], u: float) -> None:
    """Write ∂ total / ∂x into `out`; `u` in [0, 1) is read by DRAW only.

    Examples
    --------
    >>> out = np.empty(3)
    >>> weights(DRAW, np.log([0.2, 0.3, 0.5]), out, 0.4); out
    array([0., 1., 0.])
    """
    out[:] = 0.0
    top = float(x.max(initial=-np.inf))
    if top == -np.inf:
        return
    if isinstance(sr, Max):
        out[int(x.argmax())] = 1.0
        return
    mass = np.exp(x - top)
    if isinstance(sr, Log):
        out[:] = mass / mass.sum()
    else:
        allowed = np.flatnonzero(mass)
        cumulative = mass[allowed].cumsum()
        at = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
        out[allowed[min(at, len(allowed) - 1)]] = 1.0  # the last allowed entry takes what rounding leaves of the unit
