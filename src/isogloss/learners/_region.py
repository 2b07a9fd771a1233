"""Where weights may be: between bounds, one pair for each, and in a ball around 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError

__all__ = ["Region"]

Array = NDArray[np.float64]


class Region:
    r"""The weights :math:`\{w : lower \le w \le upper,\ \|w\| \le radius\}`.

    Parameters
    ----------
    place : str
        For errors: the learner.
    n_weights : int
    lower, upper : float or float64[n_weights], optional
        −∞ and ∞ unless given.
    radius : float

    Examples
    --------
    >>> region = Region("Learner", 2, lower=[0.0, -np.inf], radius=5.0)
    >>> region.project(np.array([-1.0, 10.0])).tolist(), round(region.least(np.array([-3.0, 4.0])), 9)
    ([0.0, 5.0], -25.0)
    """

    def __init__(
        self,
        place: str,
        n_weights: int,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        radius: float = np.inf,
    ) -> None:
        if not radius > 0:
            raise ParameterError(f"{place}: radius should be positive, not {radius!r}")
        self.lower = _bound(place, "lower", -np.inf if lower is None else lower, n_weights)
        self.upper = _bound(place, "upper", np.inf if upper is None else upper, n_weights)
        self.radius = float(radius)
        self.bounded = bool((self.lower > -np.inf).any() or (self.upper < np.inf).any())
        crossed = np.flatnonzero((self.lower > self.upper) | (self.lower == np.inf) | (self.upper == -np.inf))
        if len(crossed):
            at = int(crossed[0])
            raise ParameterError(f"{place}: no weight {at} is between {self.lower[at]} and {self.upper[at]}")
        if float(np.linalg.norm(self.clip(np.zeros(n_weights)))) > radius:
            raise ParameterError(f"{place}: no weights within the bounds are in a ball of radius {radius}")

    def clip(self, weights: Array) -> Array:
        """The nearest weights within the bounds, whatever the radius."""
        return np.clip(weights, self.lower, self.upper) if self.bounded else weights

    def clip_at(self, at: NDArray[np.int64], weights: Array) -> Array:
        """The same for some weights, those numbered `at`."""
        return np.clip(weights, self.lower[at], self.upper[at]) if self.bounded else weights

    def project(self, weights: Array) -> Array:
        r"""The nearest point of the region.

        It is :math:`clip(t\,w)` with the largest :math:`t \le 1` that is inside: what the conditions of optimality say
        of a ball and a box together.
        """
        clipped = self.clip(weights)
        norm = float(np.linalg.norm(clipped))
        if norm <= self.radius:
            return clipped
        if not self.bounded:
            return clipped * (self.radius / norm)
        return self._scaled(weights, _root(lambda t: self._norm(weights, t) - self.radius, 0.0, 1.0))

    def least(self, slope: Array) -> float:
        """min slope · w over the region; −∞ where it has no end in that direction."""
        if self.radius == np.inf:
            used = slope != 0
            return float((slope[used] * np.where(slope > 0, self.lower, self.upper)[used]).sum())
        if not self.bounded:
            return -self.radius * float(np.linalg.norm(slope))
        used = slope != 0
        away = np.where(slope > 0, self.lower, self.upper)
        best = np.where(used, away, self.clip(np.zeros(len(slope))))
        if float(np.linalg.norm(best)) > self.radius:
            top = 1.0
            while self._norm(-slope, top) < self.radius and top < 1e300:
                top *= 2.0
            best = self._scaled(-slope, _root(lambda t: self._norm(-slope, t) - self.radius, 0.0, top))
        return float(slope @ best)

    def _scaled(self, weights: Array, t: float) -> Array:
        return np.clip(t * weights, self.lower, self.upper)

    def _norm(self, weights: Array, t: float) -> float:
        return float(np.linalg.norm(self._scaled(weights, t)))


def _bound(place: str, name: str, given: ArrayLike, n_weights: int) -> Array:
    array = np.asarray(given, np.float64)
    if array.shape not in ((), (n_weights,)) or np.isnan(array).any():
        raise ParameterError(f"{place}: {name} should be one number, or {n_weights}; not shape {list(array.shape)}")
    out = np.array(np.broadcast_to(array, (n_weights,)))
    out.flags.writeable = False
    return out


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that never falls comes to 0, from below."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if function(middle) <= 0:
            low = middle
        else:
            high = middle
    return low
