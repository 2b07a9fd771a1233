"""A generic convex solver for KL projections, over explicitly listed structures. For small cases in tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

__all__ = ["project_listed", "regularise_listed"]

Array = NDArray[np.float64]


class _Listed:
    """Distributions over listed structures, end to end and without what is impossible, and features of all."""

    def __init__(
        self, distributions: Sequence[ArrayLike], features: Sequence[ArrayLike], shares: Sequence[float]
    ) -> None:
        self.groups = [np.asarray(p, np.float64) for p in distributions]
        self.supports = [np.flatnonzero(p > 0) for p in self.groups]
        self.sizes = [len(support) for support in self.supports]
        self.p = np.concatenate([group[at] for group, at in zip(self.groups, self.supports, strict=True)])
        self.weight = np.repeat(np.asarray(shares, np.float64), self.sizes)
        columns = [np.asarray(f)[:, at] for f, at in zip(features, self.supports, strict=True)]
        self.matrix = np.concatenate(columns, axis=1) * self.weight
        self.sums = np.repeat(np.eye(len(self.sizes)), self.sizes, axis=1)

    def divergence(self, q: Array) -> tuple[float, Array]:
        ratio = np.log(q / self.p)
        return float((self.weight * q * ratio).sum()), self.weight * (ratio + 1)

    def normalised(self, extra: int = 0) -> dict[str, Any]:
        sums = np.pad(self.sums, ((0, 0), (0, extra)))
        return {"type": "eq", "fun": lambda x: sums @ x - 1, "jac": lambda x: sums}

    def split(self, q: Array) -> list[Array]:
        solved, start = [], 0
        for group, support, size in zip(self.groups, self.supports, self.sizes, strict=True):
            full = np.zeros(len(group))
            full[support] = q[start : start + size]
            solved.append(full)
            start += size
        return solved


def project_listed(
    distributions: Sequence[ArrayLike],
    features: Sequence[ArrayLike],
    bound: ArrayLike,
    *,
    shares: Sequence[float] | None = None,
    equality: bool = False,
    slack: float = 0.0,
) -> list[Array]:
    r"""Solve the primal: nearest distributions on simplices, by sequential quadratic programming.

    .. math:: \min_q \sum_g w_g KL(q_g \| p_g) \quad\text{where}\quad
        \| (\sum_g w_g F_g q_g - b)_+ \|_2 \le \epsilon,\; q_g \ge 0,\; \textstyle\sum q_g = 1

    Parameters
    ----------
    distributions : list of float64[count_g]
        p_g, the probabilities of all structures of sentence *g*; zeros stay zero.
    features : list of float64[m, count_g]
        F_g.
    bound : float64[m]
    shares : list of float, optional
        w_g, 1 when not given; (½, ½) for a balanced pair.
    equality, slack
        As in `isogloss.learners.posterior.project`.
    """
    listed = _Listed(distributions, features, [1.0] * len(distributions) if shares is None else shares)
    matrix, limits = listed.matrix, np.asarray(bound, np.float64)

    def broken(q: Array) -> Array:
        excess = matrix @ q - limits
        return excess if equality else np.maximum(excess, 0.0)

    constraints = [listed.normalised()]
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
    return listed.split(_solve(listed.divergence, listed.p, constraints, [(1e-14, 1.0)] * len(listed.p)))


def regularise_listed(
    distributions: Sequence[ArrayLike],
    features: Sequence[ArrayLike],
    *,
    smooth: Callable[[Array], tuple[float, Array]] | None = None,
    groups: ArrayLike = (),
    strength: ArrayLike = (),
) -> list[Array]:
    r"""Solve the primal of a penalty, by sequential quadratic programming.

    .. math:: \min_{q, \xi \ge 0} \sum_s KL(q_s \| p_s) + h(m) + \sum_g \sigma_g \xi_g
        \quad\text{where}\quad m_i \le \xi_{g(i)},\; m = \sum_s F_s q_s

    Parameters
    ----------
    distributions, features
        As in `project_listed`, of sentences *s*.
    smooth : callable, optional
        h, to value and gradient; 0 when not given.
    groups : int64[m], optional
        g(i); without it there are no ξ.
    strength : float64[n_groups]
        σ.
    """
    listed = _Listed(distributions, features, [1.0] * len(distributions))
    of, sigma = np.asarray(groups, np.int64), np.asarray(strength, np.float64)
    size, extra = len(listed.p), len(sigma)

    def objective(x: Array) -> tuple[float, Array]:
        value, gradient = listed.divergence(x[:size])
        if smooth is not None:
            more, pull = smooth(listed.matrix @ x[:size])
            value, gradient = value + more, gradient + pull @ listed.matrix
        return value + float(sigma @ x[size:]), np.concatenate([gradient, sigma])

    constraints, start = [listed.normalised(extra)], listed.p
    if extra:
        rows = np.concatenate([-listed.matrix, np.eye(extra)[of]], axis=1)
        constraints.append({"type": "ineq", "fun": lambda x: rows @ x, "jac": lambda x: rows})
        top = np.zeros(extra)
        np.maximum.at(top, of, listed.matrix @ listed.p)
        start = np.concatenate([listed.p, top])
    limits: list[tuple[float, float | None]] = [(1e-14, 1.0)] * size + [(0.0, None)] * extra
    return listed.split(_solve(objective, start, constraints, limits)[:size])


def _solve(objective: Any, start: Array, constraints: list[dict[str, Any]], bounds: list[Any]) -> Array:
    """Begun afresh once from where it stopped: the second time, its picture of the curvature is of the right place."""
    options = {"ftol": 1e-13, "maxiter": 300}
    point = start
    for _ in range(2):
        found = minimize(
            objective, point, jac=True, method="SLSQP", bounds=bounds, constraints=constraints, options=options
        )
        point = np.asarray(found.x, np.float64)
    return point
