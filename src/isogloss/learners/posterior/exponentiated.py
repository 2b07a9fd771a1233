"""Structured exponentiated gradient: posterior regularisation with any convex differentiable penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from isogloss.errors import ParameterError
from isogloss.learners.posterior.features import AnyFeatures, Features, as_features
from isogloss.learners.posterior.project import Outcome
from isogloss.learners.posterior.smooth import Smooth
from isogloss.learners.posterior.together import Array, Member, Together, as_one
from isogloss.structures import Structure
from isogloss.structures.batch import Batch

__all__ = ["Tilted", "exponentiated"]

S = TypeVar("S", bound=Structure)
GROWTH, SHRINKING, LEAST = 1.1, 0.5, 1e-12


@dataclass(frozen=True)
class Tilted(Outcome[S]):
    """The outcome of exponentiated gradient."""

    offsets: Array
    """u, one for each feature: q has the scores of p minus u · f."""
    residual: float
    """‖u − λ ∇h‖∞; 0 at the optimum, and only there (theorem 1 of the reference)."""
    rate: float
    """The step length that it came to."""
    trace: Array
    """KL(q‖p) + λ h at the start and after every step taken."""

    @property
    def start(self) -> Array:
        return self.offsets


class _Point(NamedTuple):
    offsets: Array
    expectations: Array
    log_partition: float
    divergence: float
    cost: float
    aim: Array
    """λ ∇h."""
    q: Any

    @property
    def objective(self) -> float:
        return self.divergence + self.cost

    @property
    def residual(self) -> float:
        return float(np.abs(self.offsets - self.aim).max(initial=0.0))


class _Problem:
    def __init__(self, dist: Structure, features: Features, penalty: Smooth, strength: float) -> None:
        self.dist, self.features, self.penalty, self.strength = dist, features, penalty, strength
        self.evaluations = 0
        self.noise = 1e-13 * (1.0 + abs(dist.log_partition()))

    def at(self, offsets: Array | None) -> _Point:
        """q and what follows from it; `None` is p itself, which costs nothing."""
        q = self.dist
        if offsets is not None and offsets.any():
            self.evaluations += 1
            q = self.dist.with_scores(self.dist.scores - self.features.scores_from(offsets))
        expectations = self.features.expectations(q.marginals())
        if offsets is None:
            offsets = np.zeros(len(expectations))
        divergence = self.dist.log_partition() - q.log_partition() - float(offsets @ expectations)
        value, gradient = self.penalty(expectations)
        cost, aim = self.strength * value, self.strength * np.asarray(gradient, np.float64)
        if aim.shape != expectations.shape:
            raise ParameterError(
                f"exponentiated: the gradient of the penalty should be {list(expectations.shape)}, one number for each "
                f"feature, not {list(aim.shape)}"
            )
        return _Point(offsets, expectations, q.log_partition(), max(0.0, divergence), cost, aim, q)

    def between(self, old: _Point, new: _Point) -> float:
        """KL(q' ‖ q) of the new from the old."""
        shift = float((old.offsets - new.offsets) @ new.expectations)
        return max(0.0, shift + old.log_partition - new.log_partition)

    def descends(self, old: _Point, new: _Point, rate: float) -> bool:
        """The descent condition of mirror descent: f(q') ≤ f(q) + ⟨∇f(q), q' − q⟩ + KL(q' ‖ q) / η.

        It implies that f falls by KL(q ‖ q') / η at least.
        """
        promised = float((old.aim - old.offsets) @ (new.expectations - old.expectations))
        return new.objective <= old.objective + promised + self.between(old, new) / rate + self.noise

    def search(self, point: _Point, rate: float, tolerance: float, steps: int) -> tuple[_Point, float, list[float]]:
        """Steps with backtracking; the last point, the last η and the objective on the way.

        Once the steps are so small that the condition drowns in rounding, the residual decides: η grows while it falls,
        and a step that doubles the least so far is taken back.
        """
        trace, best = [point.objective], point
        while best.residual > tolerance and self.evaluations < steps and rate >= LEAST:
            new = self.at((1 - rate) * point.offsets + rate * point.aim)
            blind, better = self.between(point, new) <= self.noise, new.residual < best.residual
            if new.residual >= 2 * best.residual if blind else not self.descends(point, new, rate):
                point, rate = best, rate * SHRINKING
                continue
            if better or not blind:
                best, rate = new, min(1.0, rate * GROWTH)
            point = new
            trace.append(point.objective)
        return best, rate, trace


@overload
def exponentiated(
    dist: Batch[Any] | Sequence[Member],
    features: AnyFeatures | None,
    penalty: Smooth,
    *,
    strength: float = ...,
    rate: float = ...,
    backtrack: bool = ...,
    tolerance: float = ...,
    steps: int = ...,
    start: ArrayLike | None = ...,
) -> Tilted[Together]: ...
@overload
def exponentiated(
    dist: S,
    features: AnyFeatures | None,
    penalty: Smooth,
    *,
    strength: float = ...,
    rate: float = ...,
    backtrack: bool = ...,
    tolerance: float = ...,
    steps: int = ...,
    start: ArrayLike | None = ...,
) -> Tilted[S]: ...
def exponentiated(
    dist: Any,
    features: AnyFeatures | None,
    penalty: Smooth,
    *,
    strength: float = 1.0,
    rate: float = 0.5,
    backtrack: bool = True,
    tolerance: float = 1e-5,
    steps: int = 500,
    start: ArrayLike | None = None,
) -> Tilted[Any]:
    r"""The distribution that minimises :math:`KL(q \| p) + \lambda h(E_q[f])`, for convex differentiable h.

    .. math:: q_u \propto p\, e^{-u \cdot f}, \qquad u \leftarrow (1 - \eta)\, u + \eta \lambda \nabla h(E_{q_u}[f])

    This is the multiplicative update :math:`q_y \leftarrow q_y \exp[-\eta\, \partial(KL + \lambda h)/\partial q_y]`,
    which keeps q a structure like p. Offsets are kept for features, not for parts. Each step costs one inference.

    Parameters
    ----------
    dist : structure, batch, or sequence of structures and batches
        As in `regularise`. Labelled instances are handed in clamped: ``dist.clamp(labels)``.
    features : float64[m, *scores.shape], sparse matrix [m, n_parts], Features, or None
        What h is a function of; None for the marginals themselves, in C order.
    penalty : callable
        h: expectations float64[m] to (value, gradient): `GraphLaplacian`, `Histogram`, `Quadratic`, `squared_hinge`,
        `Linear` or your own. Its convexity is not checked; without it, the optimum may be a local one.
    strength : float
        λ.
    rate : float
        η of the first step, in (0, 1]. It is halved when a step fails the descent condition, and grows by a tenth when
        it meets it.
    backtrack : bool
        False keeps η as it is.
    tolerance : float
        Stop when ‖u − λ∇h‖∞ is this small.
    steps : int
        Inferences to spend at most.
    start : float64[m], optional
        Offsets to start from, for instance those of the previous iteration.

    References
    ----------
    He, Gillenwater and Taskar, Graph-Based Posterior Regularization for Semi-Supervised Structured Prediction, CoNLL
    2013, section 3. The step length is not reported there; ours is that of backtracking mirror descent.

    Examples
    --------
    >>> from isogloss.learners.posterior import Histogram
    >>> from isogloss.structures import Chain
    >>> coins = [Chain(np.log([[[0.9, 0.1], [1, 1]]])) for _ in range(2)]
    >>> sides = np.tile([[1.0, 0, 0, 0], [0, 1.0, 0, 0]], 2)         # heads, tails, of both together
    >>> found = exponentiated(coins, sides, Histogram([0.5, 0.5], total=2), strength=100.0)
    >>> found.q[0].marginals()[0, 0].round(2).tolist(), found.converged
    ([0.51, 0.49], True)
    """
    for name, value in (("strength", strength), ("tolerance", tolerance)):
        if not 0 <= value < np.inf:
            raise ParameterError(f"exponentiated: {name} should be 0 or more, and finite, not {value!r}")
    if not 0 < rate <= 1 or steps < 1:
        raise ParameterError(f"exponentiated: 0 < rate <= 1 and steps >= 1 are needed, not {rate!r} and {steps!r}")
    one = as_one(dist)
    if features is None:
        operator = Features(np.ravel, lambda offsets: offsets.reshape(one.scores.shape))
    else:
        operator = as_features(features, None, one.scores.shape, "exponentiated")
    problem = _Problem(one, operator, penalty, strength)
    point = problem.at(None if start is None else np.asarray(start, np.float64).ravel())
    if backtrack:
        point, rate, trace = problem.search(point, rate, tolerance, steps)
    else:
        trace = [point.objective]
        while point.residual > tolerance and problem.evaluations < steps:
            point = problem.at((1 - rate) * point.offsets + rate * point.aim)
            trace.append(point.objective)
    return Tilted(
        q=point.q,
        divergence=point.divergence,
        cost=point.cost,
        bound=one.log_partition() - point.objective,
        violation=0.0,
        evaluations=problem.evaluations,
        converged=point.residual <= tolerance,
        offsets=point.offsets,
        residual=point.residual,
        rate=rate,
        trace=np.array(trace),
    )
