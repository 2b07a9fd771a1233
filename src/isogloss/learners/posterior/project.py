r"""Posterior regularisation: the distribution nearest to a model's posterior under constraints and penalties.

.. math::
    \min_q KL(q \,\|\, p) + R(E_q[f])

Written once for every structure, every set of structures and every penalty with a known conjugate: the dual of this
problem re-scores the structure, :math:`scores - \lambda \cdot f`, and asks for its marginals again. `project` tells
the most usual R, constraints on expectations up to a slack; `regularise` takes any of `penalties`.

References
----------
Graça, Ganchev and Taskar, Learning Tractable Word Alignment Models with Complex Constraints, Computational Linguistics
36(3), 2010, sections 3.1-3.4 and appendix A. Ganchev, Graça and Taskar, Better Alignments = Better Translations?, ACL
2008, algorithm 1 (fixed steps). Ganchev, Graça, Gillenwater and Taskar, Posterior Regularization for Structured Latent
Variable Models, JMLR 11, 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypedDict, TypeVar, get_args, overload

import numpy as np
from numpy.typing import ArrayLike

from isogloss.errors import ParameterError
from isogloss.learners.posterior.dual import Dual, Optimiser, Point, search
from isogloss.learners.posterior.features import AnyFeatures, as_features
from isogloss.learners.posterior.penalties import AtMost, Exactly, Penalty
from isogloss.learners.posterior.together import Array, Member, Together, as_one
from isogloss.structures import Structure
from isogloss.structures.batch import Batch

__all__ = ["Outcome", "Projection", "Search", "project", "regularise"]

S = TypeVar("S", bound=Structure)


class Search(TypedDict, total=False):
    """How to look for the multipliers; see `project`."""

    tolerance: float
    steps: int
    optimiser: Optimiser
    rate: float
    start: ArrayLike | None


@dataclass(frozen=True)
class Outcome(Generic[S]):
    """What every projection tells, and EM reads."""

    q: S
    """The projected distribution: the same structure, re-scored."""
    divergence: float
    """KL(q‖p)."""
    cost: float
    """R(E_q[f]), the penalty that is left; 0 for constraints."""
    bound: float
    """log Z(0) − KL(q‖p) − R: what this structure adds to the objective of posterior-regularised EM."""
    violation: float
    """By how much q still breaks the constraints beyond the slack, in the 2-norm."""
    evaluations: int
    """How often the structure was re-scored; 0 when nothing had to be done."""
    converged: bool
    """Whether the tolerance was met."""

    @property
    def start(self) -> Array:
        """Where the next search should start, when the same is asked of a similar distribution."""
        raise NotImplementedError


@dataclass(frozen=True)
class Projection(Outcome[S]):
    """The outcome of a projection by its dual."""

    multipliers: Array
    """λ, one for each feature."""
    dual: float
    """D(λ) = R*(λ) + log Z(λ) − log Z(0); at the optimum −KL(q‖p) − R. For constraints R* = b·λ + ε‖λ‖."""
    gap: float
    """KL(q‖p) + R(E_q[f]) + D(λ): how much better, at most, another q could be; of constraints, without R."""

    @property
    def start(self) -> Array:
        return self.multipliers


@overload
def regularise(
    dist: Batch[Any] | Sequence[Member],
    features: AnyFeatures,
    penalty: Penalty,
    *,
    tolerance: float = ...,
    steps: int = ...,
    optimiser: Optimiser | Literal["auto"] = ...,
    rate: float = ...,
    start: ArrayLike | None = ...,
) -> Projection[Together]: ...
@overload
def regularise(
    dist: S,
    features: AnyFeatures,
    penalty: Penalty,
    *,
    tolerance: float = ...,
    steps: int = ...,
    optimiser: Optimiser | Literal["auto"] = ...,
    rate: float = ...,
    start: ArrayLike | None = ...,
) -> Projection[S]: ...
def regularise(
    dist: Any,
    features: AnyFeatures,
    penalty: Penalty,
    *,
    tolerance: float = 1e-6,
    steps: int = 500,
    optimiser: Optimiser | Literal["auto"] = "auto",
    rate: float = 1.0,
    start: ArrayLike | None = None,
) -> Projection[Any]:
    r"""The distribution that minimises :math:`KL(q \| p) + R(E_q[f])`, by the dual of the problem.

    .. math:: \min_\lambda\; D(\lambda) = R^*(\lambda) + \log Z(\lambda) - \log Z(0),
        \qquad q \propto p\, e^{-\lambda \cdot f}

    Parameters
    ----------
    dist : structure, batch, or sequence of structures and batches
        Anything with `scores`, `log_partition`, `marginals` and `with_scores`. A batch or a sequence is taken as one
        structure, `Together`, so that features may couple sentences.
    features : float64[m, *scores.shape], sparse matrix [m, n_parts] or Features
        Feature *c* of a structure is the sum of ``features[c]`` over its parts. Parts of many structures stand end to
        end; ``Together(...).offsets`` says where.
    penalty : Penalty
        R: `AtMost`, `Exactly`, `Groups`, `Norm`, `Quadratic`, `Linear`, or your own with the same methods.
    tolerance : float
        For constraints, stop when the projected gradient is this small in the 2-norm; for penalties, when the duality
        gap R(m) + R*(λ) − λ·m is this small relative to max(1, KL + R).
    steps : int
        Evaluations to spend at most; with ``optimiser="fixed"``, steps to take at most.
    optimiser : {"auto", "lbfgs", "quasi-newton", "gradient", "fixed"}
        L-BFGS-B, where the multipliers have nothing but limits; projected quasi-Newton, which only needs the nearest
        feasible point and is used for groups; projected gradient with backtracking; projected gradient with the fixed
        step `rate`.
    rate : float
        The (first) length of a gradient step.
    start : float64[m], optional
        Multipliers to start from, for instance those of the previous iteration.

    Returns
    -------
    Projection
        When p itself is optimal, q is `dist` and nothing was evaluated.

    Raises
    ------
    InfeasibleError
        When the search shows that no distribution over the allowed structures meets the constraints.

    Examples
    --------
    Two coins, each side of which costs as much as the coin that shows it most: they meet.

    >>> from isogloss.learners.posterior import Groups
    >>> from isogloss.structures import Chain
    >>> coins = [Chain(np.log([[[0.8, 0.2], [1, 1]]])), Chain(np.log([[[0.7, 0.3], [1, 1]]]))]
    >>> sides = np.zeros((4, 8))
    >>> sides[[0, 1, 2, 3], [0, 1, 4, 5]] = 1.0                      # heads and tails of each coin
    >>> found = regularise(coins, sides, Groups([0, 1, 0, 1], 0.5), tolerance=1e-9)
    >>> [chain.marginals()[0, 0].round(3).tolist() for chain in found.q]
    [[0.753, 0.247], [0.753, 0.247]]
    """
    one = as_one(dist)
    operator = as_features(features, penalty.size, one.scores.shape, "project")
    for name, value, least in (("tolerance", tolerance, 0.0), ("steps", steps, 1)):
        if not value >= least:
            raise ParameterError(f"project: {name} should be {least} or more, not {value!r}")
    known = ("auto", *get_args(Optimiser))
    if optimiser not in known:
        raise ParameterError(f"project: optimiser should be one of {', '.join(map(repr, known))}, not {optimiser!r}")
    boxed = penalty.limits() is not None
    if optimiser == "auto" or (optimiser == "lbfgs" and not boxed):
        optimiser = "lbfgs" if boxed else "quasi-newton"
    dual = Dual(one, operator, penalty)
    if dual.origin.residual <= tolerance:
        return _report(dual, dual.origin, tolerance)
    first = dual.origin
    given = np.zeros(penalty.size) if start is None else np.asarray(start, np.float64).ravel()
    if len(given) != penalty.size:
        raise ParameterError(f"project: start should be {penalty.size} multipliers, one a feature, not {len(given)}")
    begin = penalty.nearest(given)
    if start is not None or begin.any():
        first = dual.at(begin)
    point = search(dual, first, optimiser, tolerance, steps, rate)
    if penalty.hard and optimiser != "fixed" and point.residual > tolerance:
        dual.check_minimum(dual.lowest)
    return _report(dual, point, tolerance)


def project(
    dist: S,
    features: AnyFeatures,
    bound: ArrayLike,
    *,
    equality: bool = False,
    slack: float = 0.0,
    tolerance: float = 1e-6,
    steps: int = 500,
    optimiser: Optimiser = "lbfgs",
    rate: float = 1.0,
    start: ArrayLike | None = None,
) -> Projection[S]:
    r"""Nearest distribution to `dist` with :math:`E_q[f] \le b`, or :math:`= b`, up to `slack`.

    .. math:: \min_{\lambda \ge 0}\; D(\lambda) = b \cdot \lambda + \log Z(\lambda) - \log Z(0) + \epsilon\|\lambda\|_2,
        \qquad q \propto p\, e^{-\lambda \cdot f}

    The same as `regularise` with `AtMost` or `Exactly`.

    Parameters
    ----------
    dist : structure
        Anything with `scores`, `log_partition`, `marginals` and `with_scores`; `Together` for many.
    features : float64[m, *scores.shape], sparse matrix [m, n_parts] or Features
        Feature *c* of a structure is the sum of ``features[c]`` over its parts.
    bound : float64[m]
        b.
    equality : bool
        E_q[f] = b rather than ≤; λ is then free in sign.
    slack : float
        ε, the 2-norm by which the constraints may be missed.
    tolerance : float
        Stop when the projected gradient is this small in the 2-norm; no constraint is then missed by more than
        slack + tolerance. (The reference divides the norm by the number of constraints, which is loose for long pairs.)
    steps, optimiser, rate, start
        As in `regularise`.

    Returns
    -------
    Projection
        When the constraints already hold, q is `dist` itself and nothing was evaluated.

    Raises
    ------
    InfeasibleError
        When the search shows that no distribution over the allowed structures meets the constraints.

    Examples
    --------
    >>> from isogloss.structures import Chain
    >>> coin = Chain(np.log([[[0.8, 0.2], [1, 1]]]))                  # one position, two states
    >>> found = project(coin, [[[[1.0, 0.0], [0.0, 0.0]]]], [0.5])    # state 0 at most half of the time
    >>> found.q.marginals()[0, 0].round(4).tolist(), found.multipliers.round(4).tolist()
    ([0.5, 0.5], [1.3863])
    """
    penalty: Penalty = Exactly(bound, slack) if equality else AtMost(bound, slack)
    return regularise(
        dist, features, penalty, tolerance=tolerance, steps=steps, optimiser=optimiser, rate=rate, start=start
    )


def _report(dual: Dual, point: Point, tolerance: float) -> Projection[Any]:
    cost = dual.penalty.cost(point.expectations)
    return Projection(
        q=point.q,
        multipliers=point.multipliers,
        dual=point.value,
        gap=point.divergence + cost + point.value,
        divergence=point.divergence,
        cost=cost,
        bound=dual.dist.log_partition() - point.divergence - cost,
        violation=dual.penalty.violation(point.expectations),
        evaluations=dual.evaluations,
        converged=point.residual <= tolerance,
    )
