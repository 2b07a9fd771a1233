"""Matchings and flows: between the structure and the kernels that find the best."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.structures.base import Array
from isogloss.structures.matching.parts import Problem

__all__ = ["best_flow", "best_partners", "best_partners_of_required", "nearest_point"]

SWEEPS = 100_000


@cache
def _kernels() -> Any:
    """The compiled module, imported when first needed; looking it up anew would take as long as a small matching."""
    from isogloss.structures._numba import matching

    return matching


def best_partners(scores: Array, source_null: Array, target_null: Array) -> NDArray[np.int64] | None:
    """int64[n_source]: the target word of each source word, or −1; None when nothing is allowed."""
    kernels = _kernels()
    partner = np.empty(len(scores), np.int64)
    found = kernels.best_matching(scores, source_null, target_null, partner)
    if found == kernels.SOLVED:
        return partner
    return None if found == kernels.INFEASIBLE else best_partners_of_required(scores, source_null, target_null)


def best_partners_of_required(scores: Array, source_null: Array, target_null: Array) -> NDArray[np.int64] | None:
    """The same when words of both sides must have a link: a square assignment, where every word has a null of its own.

    (Haghighi et al. 2009, section 2.1.)
    """
    from scipy.optimize import linear_sum_assignment

    n, m = scores.shape
    square = np.full((n + m, m + n), -np.inf)
    square[:n, :m] = scores
    square[np.arange(n), m + np.arange(n)] = source_null
    square[n + np.arange(m), np.arange(m)] = target_null
    square[n:, m:] = 0.0
    try:
        _, columns = linear_sum_assignment(square, maximize=True)
    except ValueError:  # scipy's word for infeasible
        return None
    return np.where(columns[:n] < m, columns[:n], -1).astype(np.int64)


def best_flow(problem: Problem) -> NDArray[np.bool_] | None:
    """bool[n_source, n_target], or None when nothing is allowed."""
    kernels, linked = _kernels(), np.zeros(problem.scores.shape, np.bool_)
    found = kernels.best_flow(problem.scores, problem.source_table, problem.target_table, linked)
    return None if found == kernels.INFEASIBLE else linked


def nearest_point(point: Array, problem: Problem, tolerance: float, place: str) -> Array:
    """`point` (−∞ where 0 is all that is allowed) moved to the nearest point of the polytope."""
    bounds = []
    for table in (problem.source_table, problem.target_table):
        allowed = table > -np.inf
        bounds.append(allowed.argmax(axis=1).astype(np.float64))
        bounds.append(table.shape[1] - 1.0 - allowed[:, ::-1].argmax(axis=1))
    sweeps = _kernels().nearest(point, *bounds, tolerance, SWEEPS)
    if sweeps < 0:
        warnings.warn(f"{place}: the projection has not settled after {SWEEPS} sweeps", RuntimeWarning, stacklevel=3)
    return point
