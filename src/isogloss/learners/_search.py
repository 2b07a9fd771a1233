"""A line search for the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["search"]

Array = NDArray[np.float64]
ENOUGH, FLAT = 1e-4, 0.9  # sufficient decrease and curvature, as usual for quasi-Newton directions


class _Point(NamedTuple):
    length: float
    cost: float
    slope: float
    weights: Array
    gradient: Array


def search(
    cost: Callable[[Array], tuple[float, Array]],
    dot: Callable[[Array, Array], float],
    weights: Array,
    direction: Array,
    begin: tuple[float, float],
    first: float,
    evaluations: int,
) -> tuple[tuple[Array, float, Array] | None, int]:
    """A point along `direction` where the cost has fallen enough and is flat enough.

    Parameters
    ----------
    cost : callable
        Weights to cost and gradient.
    begin : (float, float)
        Cost and slope (negative) at the beginning.
    first : float
        The length to try first.

    Returns
    -------
    ((weights, cost, gradient) or None, evaluations)
        None if no point met has a lower cost. When evaluations run out, the best point met.

    References
    ----------
    Nocedal and Wright, Numerical Optimization, 2nd edition 2006, algorithms 3.5 and 3.6.
    """
    best = before = origin = _Point(0.0, begin[0], begin[1], weights, weights)
    spent = 0

    def at(length: float) -> _Point:
        nonlocal spent, best
        spent += 1
        trial = weights + length * direction
        value, gradient = cost(trial)
        value = value if np.isfinite(value) else np.inf
        point = _Point(length, value, dot(gradient, direction) if value < np.inf else np.inf, trial, gradient)
        if point.cost < best.cost:
            best = point
        return point

    def low_enough(point: _Point) -> bool:
        return point.cost <= origin.cost + ENOUGH * point.length * origin.slope

    length = first
    found = bracket = None
    while spent < evaluations and found is None and bracket is None:
        point = at(length)
        if not low_enough(point) or (spent > 1 and point.cost >= before.cost):
            bracket = before, point
        elif abs(point.slope) <= -FLAT * origin.slope:
            found = point
        elif point.slope >= 0:
            bracket = point, before
        else:
            before, length = point, 2.5 * length
    while spent < evaluations and found is None and bracket is not None:
        low, high = bracket
        if abs(high.length - low.length) <= 1e-14 * max(abs(low.length), 1e-300):
            break
        point = at(_between(low, high))
        if not low_enough(point) or point.cost >= low.cost:
            bracket = low, point
        elif abs(point.slope) <= -FLAT * origin.slope:
            found = point
        else:
            bracket = (point, low) if point.slope * (high.length - low.length) >= 0 else (point, high)
    chosen = found if found is not None else best
    if chosen is origin:
        return None, spent
    return (chosen.weights, chosen.cost, chosen.gradient), spent


def _between(low: _Point, high: _Point) -> float:
    """Where the cubic through both points is lowest, kept off the ends; the middle if there is no such cubic."""
    width = high.length - low.length
    middle = low.length + 0.5 * width
    if not (np.isfinite(high.cost) and np.isfinite(high.slope)):
        return low.length + 0.1 * width
    d1 = low.slope + high.slope - 3 * (low.cost - high.cost) / (low.length - high.length)
    inside = d1 * d1 - low.slope * high.slope
    if inside < 0:
        return middle
    d2 = float(np.copysign(np.sqrt(inside), width))
    bottom = high.slope - low.slope + 2 * d2
    if bottom == 0:
        return middle
    length = high.length - width * (high.slope + d2 - d1) / bottom
    least, most = sorted((low.length + 0.1 * width, high.length - 0.1 * width))
    return float(np.clip(length, least, most))
