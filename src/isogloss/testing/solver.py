"""A generic convex solver for KL projections, over explicitly listed structures. For small cases in tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

__all__ = ["project_listed"]

Array = NDArray[np.float64]


def project_listed(
    distributions: Sequence[ArrayLike],
    features: Sequence[ArrayLike],
    bound: ArrayLike,
    *,
    shares: Sequence[float] = (1.0,),
    equality: bool = False,
    slack: float = 0.0,
) -> list[Array]:
    r"""Solve the primal: nearest distributions on simplices, by sequential quadratic programming.

    .. math:: \min_q \sum_g w_g KL(q_g \| p_g) \quad\text{where}\quad
        \| (\sum_g w_g F_g q_g - b)_+ \|_2 \le \epsilon,\; q_g \ge 0,\; \textstyle\sum q_g = 1

    Parameters
    ----------
    distributions : list of float64[count_g]
        p_g, the probabilities of all structures of group *g*; zeros stay zero.
    features : list of float64[m, count_g]
        F_g.
    bound : float64[m]
    shares : list of float
        w_g; (½, ½) for a balanced pair.
    equality, slack
        As in `isogloss.learners.posterior.project`.
    """
    groups = [np.asarray(p, np.float64) for p in distributions]
    supports = [np.flatnonzero(p > 0) for p in groups]
    sizes = [len(support) for support in supports]
    p = np.concatenate([group[support] for group, support in zip(groups, supports, strict=True)])
    weight = np.repeat(np.asarray(shares, np.float64), sizes)
    matrix = np.concatenate([np.asarray(f)[:, s] for f, s in zip(features, supports, strict=True)], axis=1) * weight
    sums = np.repeat(np.eye(len(sizes)), sizes, axis=1)
    limits = np.asarray(bound, np.float64)

    def objective(q: Array) -> tuple[float, Array]:
        ratio = np.log(q / p)
        return float((weight * q * ratio).sum()), weight * (ratio + 1)

    def broken(q: Array) -> Array:
        excess = matrix @ q - limits
        return excess if equality else np.maximum(excess, 0.0)

    constraints = [{"type": "eq", "fun": lambda q: sums @ q - 1, "jac": lambda q: sums}]
    if slack > 0:
        room = {
            "fun": lambda q: slack - (broken(q) ** 2).sum() / slack,
            "jac": lambda q: -2 * broken(q) @ matrix / slack,
        }
        constraints.append({"type": "ineq", **room})
    elif equality:
        constraints.append({"type": "eq", "fun": lambda q: matrix @ q - limits, "jac": lambda q: matrix})
    else:
        constraints.append({"type": "ineq", "fun": lambda q: limits - matrix @ q, "jac": lambda q: -matrix})
    found = minimize(
        objective,
        p,
        jac=True,
        method="SLSQP",
        bounds=[(1e-14, 1.0)] * len(p),
        constraints=constraints,
        options={"ftol": 1e-13, "maxiter": 200},
    )
    solved, start = [], 0
    for group, support, size in zip(groups, supports, sizes, strict=True):
        full = np.zeros(len(group))
        full[support] = found.x[start : start + size]
        solved.append(full)
        start += size
    return solved
