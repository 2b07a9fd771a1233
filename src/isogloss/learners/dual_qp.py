r"""Large margins over matchings as one quadratic program: the maximum over structures replaced by the dual of its LP.

With the loss-augmented program of item *i*, :math:`\max_{z \ge 0} (F_i w + c_i) \cdot z` where :math:`E_i z = 1` and
:math:`H_i z \le h_i`, the structured support vector machine is

.. math:: \min_{w,\ \mu \ge 0,\ \nu}\ \tfrac12 \lambda_2 \|w\|^2
    + \sum_i \big( 1 \cdot \nu_i + h_i \cdot \mu_i - (F_i w) \cdot y_i + d_i \big)
    \quad\text{where}\quad E_i^\top \nu_i + H_i^\top \mu_i \ge F_i w + c_i \ \forall i.

For matchings with nulls and further links this is the machine itself, for pairs of links its relaxation. An interior
point method solves it to many digits: a reference for the other learners, for some tens of sentences and weights.

References
----------
Taskar, Chatalbashev, Koller and Guestrin, Learning Structured Prediction Models: a Large Margin Approach, ICML 2005;
Lacoste-Julien et al., Word Alignment via Quadratic Assignment, NAACL 2006, section 4. The method: Mehrotra, On the
implementation of a primal-dual interior point method, SIAM J. Optimization 2, 1992.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import (
    block_array,
    block_diag,
    coo_array,
    csc_array,
    csr_array,
    diags_array,
    eye_array,
    hstack,
    vstack,
)
from scipy.sparse.linalg import splu

from isogloss.errors import IsoglossError, ParameterError
from isogloss.learners._region import Region
from isogloss.learners.margin import Cost
from isogloss.learners.models import LinearModel
from isogloss.structures import Flat, Matching

__all__ = ["MarginSolution", "margin_qp"]

Array = NDArray[np.float64]

SHIFT, REFINEMENTS = 1e-9, 3


class MarginSolution(NamedTuple):
    """The optimum of the quadratic program."""

    weights: Array
    value: float
    """½ l2 ‖w‖² + Σ of the relaxed hinges."""
    gap: float
    """How far the value may be from the least."""
    parts: list[Array]
    """Of each item, the fractional structure that the weights are furthest from beating: laid out as its scores."""
    iterations: int


def margin_qp(
    model: LinearModel,
    targets: Sequence[Any],
    costs: Sequence[Cost],
    *,
    l2: float = 1.0,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    tolerance: float = 1e-10,
    iterations: int = 100,
) -> MarginSolution:
    """Solve the structured support vector machine over matchings, pairs of links relaxed, as one quadratic program.

    Parameters
    ----------
    model : LinearModel
        Over `Flat` of `Matching`, or over `Matching` where links alone have scores.
    targets, costs, l2, lower, upper
        As for `FrankWolfe`, which with ``relaxed=True`` has the same optimum.
    tolerance : float
        Relative to the value, how far from the optimum it may stop.
    iterations : int
        After which it gives up, with an `IsoglossError`; a few dozen are enough as a rule.

    Examples
    --------
    >>> from isogloss.learners.margin import hamming
    >>> from isogloss.learners.sparse import Sparse
    >>> model = LinearModel([Matching(np.zeros((1, 2)))], Sparse.of([[0], [1]], 2))
    >>> found = margin_qp(model, [{(0, 0)}], [hamming([[1, 0]])], l2=0.5)
    >>> found.weights.round(4).tolist(), round(found.value, 6)
    ([1.0, -1.0], 0.5)
    """
    if not l2 > 0 or not tolerance > 0:
        raise ParameterError(f"margin_qp: l2 and tolerance should be positive, not {l2!r}, {tolerance!r}")
    for name, given in (("targets", targets), ("costs", costs)):
        if len(given) != len(model):
            raise ParameterError(f"margin_qp: {len(given)} {name} for {len(model)} items")
    region = Region("margin_qp", model.n_weights, lower, upper)
    problem = _Problem(model, targets, costs, float(l2), region)
    x, z, gap, used = _interior_point(*problem.program, tolerance, iterations)
    weights = np.array(region.clip(x[: model.n_weights]))
    value = problem.constant + problem.value_of(x)
    return MarginSolution(weights, value, gap, problem.split(z), used)


class _Problem:
    """The program of all items: variables are weights, then ν, then μ."""

    def __init__(
        self, model: LinearModel, targets: Sequence[Any], costs: Sequence[Cost], l2: float, region: Region
    ) -> None:
        dists = [_flat(model.structures[item], item) for item in range(len(model))]  # type: ignore[arg-type]
        programs = [_rows(dist.dist) for dist in dists]
        words, limits = (block_diag([each[at] for each in programs], format="csr") for at in (0, 1))
        most = np.concatenate([np.zeros(0), *(each[2] for each in programs)])
        self.model, self.widths = model, np.diff(model._offsets)
        sizes = [dist.scores.size for dist in dists]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.own = np.concatenate([a + np.arange(w) for a, w in zip(starts[:-1], self.widths, strict=True)]).astype(int)
        base, cost, gold = (np.zeros(starts[-1]) for _ in range(3))
        base[self.own] = model._base
        cost[self.own] = np.concatenate([np.zeros(0), *(np.ravel(each.parts) for each in costs)])
        gold[self.own] = model.gold(targets)
        self.allowed = np.isfinite(base)
        base[~self.allowed] = 0.0
        spread = coo_array((np.ones(len(self.own)), (self.own, np.arange(len(self.own)))), (len(base), len(self.own)))
        features = csr_array(spread @ _matrix(model))
        self.constant = sum(each.constant for each in costs) - float(base @ gold)
        self.program = self._made(features, words, limits, most, base + cost, gold, l2, region)

    def _made(
        self, features: Any, words: Any, limits: Any, most: Array, scores: Array, gold: Array, l2: float, region: Region
    ) -> tuple[Array, Array, Any, Array, int]:
        """P (a diagonal), q, G and h of min ½ xᵀPx + q·x where G x ≤ h, and how many rows of G are parts."""
        n_weights, n_words, n_limits = self.model.n_weights, words.shape[0], limits.shape[0]
        kept = np.flatnonzero(self.allowed)
        parts = hstack([features[kept], -words.T.tocsr()[kept], -limits.T.tocsr()[kept]])
        positive = hstack([csr_array((n_limits, n_weights + n_words)), -eye_array(n_limits)])
        rows, bounds = [parts, positive], [-scores[kept], np.zeros(n_limits)]
        every = eye_array(n_weights, n_weights + n_words + n_limits, format="csr")
        for sign, bound in ((-1.0, region.lower), (1.0, region.upper)):
            finite = np.flatnonzero(np.isfinite(bound))
            rows.append(sign * every[finite])
            bounds.append(sign * bound[finite])
        penalty = np.concatenate([np.full(n_weights, l2), np.zeros(n_words + n_limits)])
        linear = np.concatenate([-(features.T @ gold), np.ones(n_words), most])
        self.penalty, self.linear = penalty, linear
        return penalty, linear, csc_array(vstack(rows)), np.concatenate(bounds), len(kept)

    def value_of(self, x: Array) -> float:
        return 0.5 * float(x @ (self.penalty * x)) + float(self.linear @ x)

    def split(self, z: Array) -> list[Array]:
        """Multipliers of the parts, item by item."""
        full = np.zeros(len(self.allowed))
        full[self.allowed] = z
        return np.split(full[self.own], np.cumsum(self.widths)[:-1])


def _flat(dist: Any, item: int) -> Flat[Matching]:
    if isinstance(dist, Flat) and isinstance(dist.dist, Matching):
        return dist
    if isinstance(dist, Matching):
        if not any(array[array > -np.inf].any() for array in dist.part_scores()[1:]):
            return Flat(dist)
        raise ParameterError(f"margin_qp: item {item} has scores that links do not show; make it Flat")
    raise ParameterError(f"margin_qp: item {item} should be a Matching or Flat of one, not {type(dist).__name__}")


def _matrix(model: LinearModel) -> Any:
    """The features of all parts, as SciPy has them."""
    own = model.features
    values = own.values if len(own.values) else np.ones(len(own.indices))
    sparse = csr_array((values, own.indices, own.indptr), shape=(own.n_rows, own.n_indicators))
    return hstack([sparse, csr_array(own.dense)], format="csr")


def _rows(dist: Matching) -> tuple[Any, Any, Array]:
    """E, H and h of one matching over all its parts: E z = 1 for each word, H z ≤ h for limits and pairs."""
    links, source, target, *steps, pairs = dist.part_scores()
    (n, m), n_pairs = links.shape, len(pairs)
    sizes = [array.size for array in (links, source, target, *steps, pairs)]
    at = [start + np.arange(size) for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False)]
    cells = at[0].reshape(n, m)
    words = np.zeros((n + m, sum(sizes)))
    for offset, own, null, further, count in (
        (0, cells, at[1], at[3].reshape(steps[0].shape), n),
        (n, cells.T, at[2], at[4].reshape(steps[1].shape), m),
    ):
        rows = offset + np.arange(count)
        words[rows[:, None], own] = 1.0
        words[rows, null] = 1.0
        words[rows[:, None], further] = -1.0
    limited = np.concatenate(at[:5]) if steps[0].size or steps[1].size else np.zeros(0, np.int64)
    first, second = (at[0][dist._pair_links[:, end]] for end in (0, 1))
    one, both = np.arange(n_pairs), np.ones(n_pairs)
    width = sum(sizes)

    def made(*columns: tuple[Array, Any]) -> Any:
        entries = [coo_array((sign, (one, places)), shape=(n_pairs, width)) for sign, places in columns]
        return sum(entries[1:], entries[0])

    limits = vstack(
        [
            coo_array((np.ones(len(limited)), (np.arange(len(limited)), limited)), shape=(len(limited), width)),
            made((both, at[5]), (-both, first)),
            made((both, at[5]), (-both, second)),
            made((both, first), (both, second), (-both, at[5])),  # a pair that costs is there when both links are
        ]
    )
    most = np.concatenate([np.ones(len(limited)), np.zeros(2 * n_pairs), np.ones(n_pairs)])
    return coo_array(words), limits, most


def _interior_point(
    penalty: Array, linear: Array, matrix: Any, bound: Array, n_parts: int, tolerance: float, iterations: int
) -> tuple[Array, Array, float, int]:
    """x, multipliers of the first rows, gap and iterations of min ½ xᵀPx + q·x where G x ≤ h."""
    x, z, s = np.zeros(len(linear)), np.ones(len(bound)), np.maximum(1.0, bound)
    for used in range(iterations):
        dual_lack = penalty * x + linear + matrix.T @ z
        primal_lack = matrix @ x + s - bound
        gap = float(s @ z)
        scale = 1.0 + abs(0.5 * float(x @ (penalty * x)) + float(linear @ x))
        lack = max(float(np.abs(dual_lack).max(initial=0.0)), float(np.abs(primal_lack).max(initial=0.0)))
        if gap <= tolerance * scale and lack <= tolerance * scale:
            return x, z[:n_parts], gap, used
        now = _Newton.at(penalty, matrix, z, s, dual_lack, primal_lack)
        _, dz, ds = now.way(s * z)
        step = min(1.0, _room(z, dz), _room(s, ds))
        centre = (float((s + step * ds) @ (z + step * dz)) / gap) ** 3
        dx, dz, ds = now.way(s * z + ds * dz - max(centre, 1e-4) * gap / len(bound))
        step = min(1.0, 0.99 * _room(s, ds), 0.99 * _room(z, dz))
        x, s, z = x + step * dx, s + step * ds, z + step * dz
    raise IsoglossError(f"margin_qp: not solved after {iterations} iterations; allow a larger tolerance")


class _Newton(NamedTuple):
    r"""Where an iteration is, and its matrix :math:`\begin{pmatrix} P & G^\top \\ G & -S/Z \end{pmatrix}`."""

    whole: Any
    solver: _Bordered
    z: Array
    s: Array
    lack: Array

    @classmethod
    def at(cls, penalty: Array, matrix: Any, z: Array, s: Array, dual_lack: Array, primal_lack: Array) -> _Newton:
        whole = csc_array(block_array([[diags_array(penalty), matrix.T], [matrix, diags_array(-s / z)]]))
        more = np.append(np.full(len(penalty), SHIFT), np.full(len(s), -SHIFT))
        solver = _Bordered(csc_array(whole + diags_array(more)), int((penalty > 0).sum()))
        return cls(whole, solver, z, s, np.append(dual_lack, primal_lack))

    def way(self, complement: Array) -> tuple[Array, Array, Array]:
        """The direction in x, z and s that takes `complement` from s z, and all that they lack."""
        n = len(self.lack) - len(self.s)
        right = -self.lack
        right[n:] += complement / self.z
        found = self.solver.solve(right)
        for _ in range(REFINEMENTS):  # the solver's matrix is a little more definite
            found += self.solver.solve(right - self.whole @ found)
        dz = found[n:]
        return found[:n], dz, -(complement + self.s * dz) / self.z


class _Bordered:
    """Factors of a symmetric matrix whose first rows, the weights, are dense; without them items have blocks apart."""

    def __init__(self, matrix: Any, n_first: int) -> None:
        self.n_first, self.border = n_first, matrix[n_first:, :n_first].toarray()
        rest = matrix[n_first:, n_first:]
        self.scale = 1.0 / np.sqrt(np.maximum(1.0, np.abs(rest.diagonal())))  # what is far from its bound is huge
        even = csc_array(diags_array(self.scale) @ rest @ diags_array(self.scale))
        self.inner = splu(even, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        self.solved = self._rest(self.border)
        self.corner = matrix[:n_first, :n_first].toarray() - self.border.T @ self.solved

    def _rest(self, right: Array) -> Array:
        return np.asarray((self.scale * self.inner.solve((self.scale * right.T).T).T).T)

    def solve(self, right: Array) -> Array:
        rest = self._rest(right[self.n_first :])
        first = np.linalg.solve(self.corner, right[: self.n_first] - self.border.T @ rest)
        return np.append(first, rest - self.solved @ first)


def _room(values: Array, change: Array) -> float:
    """The largest step that keeps all values from falling below 0."""
    falls = change < 0
    return float((-values[falls] / change[falls]).min(initial=np.inf))
