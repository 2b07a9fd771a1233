"""Generic convex solvers, as another road to what our own routines find. For small cases in tests.

KL projections are solved over explicitly listed structures by SciPy. `relaxed_margin` needs Clarabel, which is not
installed with the toolkit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag
from scipy.optimize import minimize
from scipy.sparse import csc_array

from isogloss.errors import IsoglossError
from isogloss.learners.margin import Cost
from isogloss.structures import Flat, Matching

__all__ = ["project_listed", "regularise_listed", "relaxed_margin"]

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


def relaxed_margin(
    structures: Sequence[Flat[Matching]],
    features: Sequence[ArrayLike],
    targets: Sequence[Any],
    costs: Sequence[Cost],
    *,
    l2: float,
    lower: ArrayLike,
) -> tuple[Array, float]:
    r"""Weights and value of the support vector machine over matchings with pairs of links, relaxed; by Clarabel.

    .. math:: \max_{z, w}\ \sum_i \big( c_i \cdot z_i + d_i \big) - \tfrac12 \lambda_2 \|w\|^2
        \quad\text{where}\quad \lambda_2 w = \textstyle\sum_i F_i^\top (y_i - z_i)

    over fractional structures z, which is the dual of :math:`\tfrac12 \lambda_2 \|w\|^2 + \sum_i` hinge. For a weight
    with a lower bound of 0, = is ≥. Base scores are taken to be 0 and no part to be forbidden.

    Parameters
    ----------
    structures : list of Flat[Matching]
    features : list of float64[n_parts, n_weights]
        F, for all parts of each.
    targets, costs, l2
        As for `FrankWolfe`, which with ``relaxed=True`` has the same optimum.
    lower : float64[n_weights]
        0 or minus infinity.
    """
    matrix = np.concatenate([np.asarray(f, np.float64) for f in features])
    gold = np.concatenate([np.ravel(dist.parts(y)) for dist, y in zip(structures, targets, strict=True)])
    cost = np.concatenate([np.ravel(each.parts) for each in costs])
    (n_parts, n_weights), bounded = matrix.shape, np.asarray(lower) == 0.0
    programs = [_matching_rows(dist.dist) for dist in structures]
    words, limits = (np.pad(block_diag(*(each[at] for each in programs)), ((0, 0), (0, n_weights))) for at in (0, 1))
    most = np.concatenate([each[2] for each in programs])
    slopes, pull = -np.hstack([matrix.T, l2 * np.eye(n_weights)]), -(gold @ matrix)
    x, value = _quadratic(
        penalty=np.append(np.zeros(n_parts), np.full(n_weights, l2)),
        linear=np.append(-cost, np.zeros(n_weights)),
        equal=(np.concatenate([words, slopes[~bounded]]), np.append(np.ones(len(words)), pull[~bounded])),
        most=(
            np.concatenate([limits, -np.eye(n_parts, n_parts + n_weights), slopes[bounded]]),
            np.concatenate([most, np.zeros(n_parts), pull[bounded]]),
        ),
    )
    return x[n_parts:], sum(each.constant for each in costs) - value


def _matching_rows(dist: Matching) -> tuple[Array, Array, Array]:
    """E, H and h of one matching over all its parts: E z = 1 for each word, H z ≤ h for limits and pairs."""
    arrays = dist.part_scores()
    ends = np.cumsum([array.size for array in arrays])
    places = np.split(np.eye(ends[-1]), ends[:-1])
    shaped = (at.reshape(*array.shape, ends[-1]) for at, array in zip(places, arrays, strict=True))
    links, source, target, *steps, pairs = shaped
    words = np.concatenate([links.sum(1) + source - steps[0].sum(1), links.sum(0) + target - steps[1].sum(1)])
    first, second = (places[0][dist._pair_links[:, end]] for end in (0, 1))
    single = np.concatenate(places[:5])
    limits = np.concatenate([single, pairs - first, pairs - second, first + second - pairs])
    return words, limits, np.concatenate([np.ones(len(single)), np.zeros(2 * len(pairs)), np.ones(len(pairs))])


def _quadratic(
    penalty: Array, linear: Array, equal: tuple[Array, Array], most: tuple[Array, Array]
) -> tuple[Array, float]:
    """x and value of min ½ xᵀ diag(P) x + q · x where E x = e and H x ≤ h."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.ZeroConeT(len(equal[1])), clarabel.NonnegativeConeT(len(most[1]))]
    rows, right = csc_array(np.concatenate([equal[0], most[0]])), np.append(equal[1], most[1])
    found = clarabel.DefaultSolver(csc_array(np.diag(penalty)), linear, rows, right, cones, settings).solve()
    if found.status != clarabel.SolverStatus.Solved:
        raise IsoglossError(f"Clarabel did not solve a quadratic program: {found.status}")
    return np.array(found.x), float(found.obj_val)
