r"""Posterior regularisation: the distribution nearest to a model's posterior among those that meet constraints.

.. math::
    \min_q KL(q \,\|\, p) \quad\text{where}\quad \|(E_q[f] - b)_+\|_2 \le \epsilon

Written once for every structure: the dual of this problem re-scores the structure, :math:`scores - \lambda \cdot f`,
and asks for its marginals again. Equalities drop the :math:`(\cdot)_+`. What is constrained is told by features and
bounds; `bijective` and `project_pair` tell the two constraints of word alignment.

References
----------
Graça, Ganchev and Taskar, Learning Tractable Word Alignment Models with Complex Constraints, Computational Linguistics
36(3), 2010, sections 3.1-3.4 and appendix A. Ganchev, Graça and Taskar, Better Alignments = Better Translations?, ACL
2008, algorithm 1 (fixed steps).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NamedTuple, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures import AlignmentChain, InfeasibleError, Structure

__all__ = ["Features", "Pair", "Projection", "bijective", "project", "project_pair"]

Array = NDArray[np.float64]
Optimiser = Literal["lbfgs", "gradient", "fixed"]
S = TypeVar("S", bound=Structure)
F = TypeVar("F", bound=Structure)
B = TypeVar("B", bound=Structure)

# An infeasible problem shows as a direction along which the dual falls for ever. The slope is measured FAR out: if a
# feasible q exists, it is at least -KL(q‖p) / FAR there, so one below -STEEP proves that none does, unless KL(q‖p)
# could exceed FAR * STEEP nats. This is done when λ first grows beyond WARY, and at the end of a search that failed.
FAR, STEEP, WARY = 1e8, 1e-4, 1e3


class Search(TypedDict, total=False):
    """How to look for the multipliers; see `project`."""

    tolerance: float
    steps: int
    optimiser: Optimiser
    rate: float
    start: ArrayLike | None


class Features(NamedTuple):
    """A linear map between multipliers and scores, for features too many to be written out.

    expectations : float64[*scores.shape] -> float64[m]
        Marginals of the structure to expected features.
    scores_from : float64[m] -> float64[*scores.shape]
        Its transpose: λ to the score λ · f of each part.
    """

    expectations: Callable[[Array], Array]
    scores_from: Callable[[Array], Array]


@dataclass(frozen=True)
class Projection(Generic[S]):
    """The outcome of a projection."""

    q: S
    """The projected distribution: the same structure, re-scored."""
    multipliers: Array
    """λ, one for each constraint."""
    dual: float
    """D(λ) = b·λ + log Z(λ) − log Z(0) + ε‖λ‖; at the optimum −KL(q‖p)."""
    divergence: float
    """KL(q‖p)."""
    bound: float
    """log Z(0) − KL(q‖p): what this sentence adds to the objective of posterior-regularised EM."""
    violation: float
    """By how much q still breaks the constraints beyond the slack, in the 2-norm."""
    evaluations: int
    """How often the structure was re-scored; 0 when p itself met the constraints."""
    converged: bool
    """Whether the gradient came within the tolerance."""


class _Point(NamedTuple):
    multipliers: Array
    value: float
    gradient: Array
    residual: float
    excess: Array
    q: Any


class _Dual:
    """D(λ) and its gradient b − E_q[f] + ελ/‖λ‖, and the best point met so far."""

    def __init__(self, dist: Structure, features: Features, bound: Array, equality: bool, slack: float) -> None:
        self.dist, self.features, self.bound = dist, features, bound
        self.equality, self.slack = equality, slack
        self.evaluations = -1  # the first point is λ = 0, the model's own posterior
        self.wary = WARY
        self.origin = self.best = self.lowest = self.at(np.zeros(len(bound)))

    def at(self, multipliers: Array) -> _Point:
        self.evaluations += 1
        q, size = self.dist, float(np.linalg.norm(multipliers))
        if size > 0:
            q = self.dist.with_scores(self.dist.scores - self.features.scores_from(multipliers))
        excess = self.features.expectations(q.marginals()) - self.bound
        if size > 0:
            gradient = self.slack * multipliers / size - excess
        else:
            # D has a kink here when there is slack; of its subgradients, take the one of the steepest way down.
            broken = self.broken(excess)
            gradient = self.slack * broken / max(float(np.linalg.norm(broken)), self.slack, 1e-300) - excess
        change = q.log_partition() - self.dist.log_partition()
        value = float(multipliers @ self.bound) + change + self.slack * size
        free = gradient if self.equality else np.where(multipliers > 0, gradient, np.minimum(gradient, 0.0))
        point = _Point(multipliers, value, gradient, float(np.linalg.norm(free)), excess, q)
        if size > self.wary:
            self.check_minimum(point)
            self.wary = size * WARY
        if self.evaluations > 0:
            self.best = point if point.residual < self.best.residual else self.best
            self.lowest = point if point.value < self.lowest.value else self.lowest
        return point

    def broken(self, excess: Array) -> Array:
        return excess if self.equality else np.maximum(excess, 0.0)

    def check_minimum(self, point: _Point) -> None:
        """Raise if D falls for ever in the direction of `point`, that is, if no q meets the constraints."""
        direction = point.multipliers / max(float(np.linalg.norm(point.multipliers)), 1e-300)
        q = self.dist.with_scores(self.dist.scores - self.features.scores_from(direction * FAR))
        excess = self.features.expectations(q.marginals()) - self.bound
        if self.slack - float(direction @ excess) < -STEEP:
            missed = float(np.linalg.norm(self.broken(self.best.excess)))
            raise InfeasibleError(
                f"project: no distribution over the allowed structures meets the {len(self.bound)} constraints; the "
                f"best found misses them by {missed:.3g} with slack {self.slack:g}. Loosen the bound, raise the slack, "
                "or allow more structures (for word alignment: give every word a positive null probability)"
            )


def project(
    dist: S,
    features: ArrayLike | Features,
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

    Parameters
    ----------
    dist : structure
        Anything with `scores`, `log_partition`, `marginals` and `with_scores`.
    features : float64[m, *scores.shape] or Features
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
    steps : int
        Evaluations to spend at most; with ``optimiser="fixed"``, steps to take at most.
    optimiser : {"lbfgs", "gradient", "fixed"}
        L-BFGS-B; projected gradient with backtracking; projected gradient with the fixed step `rate`.
    start : float64[m], optional
        Multipliers to start from, for instance those of the previous iteration.

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
    limits = np.asarray(bound, np.float64)
    operator = features if isinstance(features, Features) else _dense(features, limits, dist.scores.shape)
    if limits.ndim != 1 or not np.isfinite(limits).all():
        raise ParameterError(f"project: bound should be one finite number for each feature, not {bound!r}")
    for name, value, least in (("slack", slack, 0.0), ("tolerance", tolerance, 0.0), ("steps", steps, 1)):
        if not value >= least:
            raise ParameterError(f"project: {name} should be {least} or more, not {value!r}")
    dual = _Dual(dist, operator, limits, equality, slack)
    if dual.origin.residual <= tolerance:
        return _report(dual, dual.origin, tolerance)
    first = dual.origin
    if start is not None:
        given = np.asarray(start, np.float64).ravel()
        first = dual.at(given if equality else np.maximum(given, 0.0))
    if optimiser == "fixed":
        return _report(dual, _fixed(dual, first, tolerance, steps, rate), tolerance)
    if optimiser == "gradient":
        _gradient(dual, first, tolerance, steps, rate)
    elif optimiser == "lbfgs":
        _lbfgs(dual, first, tolerance, steps)
    else:
        raise ParameterError(f"project: optimiser should be 'lbfgs', 'gradient' or 'fixed', not {optimiser!r}")
    if dual.best.residual > tolerance:
        dual.check_minimum(dual.lowest)
    return _report(dual, dual.best, tolerance)


def _dense(features: ArrayLike, bound: Array, shape: tuple[int, ...]) -> Features:
    array = np.asarray(features, np.float64)
    if array.shape != (*bound.shape, *shape) or not np.isfinite(array).all():
        raise ParameterError(
            f"project: features should be finite numbers {[*bound.shape, *shape]}, one array like the scores for each "
            f"entry of bound, not {list(array.shape)}"
        )
    flat = array.reshape(len(bound), -1)
    return Features(lambda marginals: flat @ marginals.ravel(), lambda multipliers: (multipliers @ flat).reshape(shape))


def _report(dual: _Dual, point: _Point, tolerance: float) -> Projection[Any]:
    size = float(np.linalg.norm(point.multipliers))
    log_ratio = point.value - float(point.multipliers @ dual.bound) - dual.slack * size
    divergence = max(0.0, -float(point.multipliers @ (point.excess + dual.bound)) - log_ratio)
    return Projection(
        q=point.q,
        multipliers=point.multipliers,
        dual=point.value,
        divergence=divergence,
        bound=dual.dist.log_partition() - divergence,
        violation=max(0.0, float(np.linalg.norm(dual.broken(point.excess))) - dual.slack),
        evaluations=dual.evaluations,
        converged=point.residual <= tolerance,
    )


def _fixed(dual: _Dual, point: _Point, tolerance: float, steps: int, rate: float) -> _Point:
    """Plain (projected) gradient steps of one length; may overshoot, but costs one evaluation a step."""
    for _ in range(steps):
        if point.residual <= tolerance:
            break
        point = dual.at(_step(dual, point, rate))
    return point


def _gradient(dual: _Dual, point: _Point, tolerance: float, steps: int, rate: float) -> None:
    """(Projected) gradient steps, shortened until D falls enough and lengthened again when it did."""
    while point.residual > tolerance and dual.evaluations < steps:
        trial = dual.at(_step(dual, point, rate))
        promised = float(point.gradient @ (trial.multipliers - point.multipliers))
        if trial.value <= point.value + 1e-4 * promised or trial.residual <= tolerance:
            point, rate = trial, rate * 2
        elif rate < 1e-12:
            break  # D has no digits left to fall by
        else:
            rate /= 2


def _step(dual: _Dual, point: _Point, rate: float) -> Array:
    trial = point.multipliers - rate * point.gradient
    return trial if dual.equality else np.maximum(trial, 0.0)


def _lbfgs(dual: _Dual, first: _Point, tolerance: float, steps: int) -> None:
    """L-BFGS-B, begun afresh from the best point for as long as that helps.

    Slack makes D smooth everywhere but at 0, and 0 is left for good with the first step: 0 was found not to be the
    minimum, and every later point is lower.
    """
    from scipy.optimize import minimize

    def evaluate(multipliers: Array) -> tuple[float, Array]:
        point = dual.at(multipliers.copy())
        return point.value, point.gradient

    def stop(_: Array) -> None:
        if dual.best.residual <= tolerance:
            raise StopIteration

    begin, residual = first.multipliers, np.inf
    limits = None if dual.equality else [(0.0, None)] * len(begin)
    while dual.evaluations < steps and dual.best.residual < residual and dual.best.residual > tolerance:
        residual = dual.best.residual
        options = {"maxfun": steps - dual.evaluations, "maxiter": steps, "gtol": 0.0, "ftol": 0.0, "maxcor": 20}
        minimize(evaluate, begin, jac=True, method="L-BFGS-B", bounds=limits, callback=stop, options=options)
        begin = dual.best.multipliers


class Pair(Generic[F, B]):
    r"""Two structures seen as one: the scores of `forward`, then those of `backward`, end to end.

    With ``balanced=True`` (variant N) each keeps half of the mass whatever the scores, as if a feature that tells the
    two apart were held at its expectation:
    :math:`\log Z = \tfrac12 \log Z_f + \tfrac12 \log Z_b`, with marginals :math:`\tfrac12 q_f, \tfrac12 q_b`.
    With ``balanced=False`` (variant J) it is the mixture of the two posteriors, whose weights
    :math:`\pi, 1 - \pi` move when they are re-scored: :math:`\log Z = \log(\tfrac12 R_f + \tfrac12 R_b)` up to a
    constant, where R is the partition function relative to that of the pair first made.
    """

    def __init__(
        self, forward: F, backward: B, *, balanced: bool = True, base: tuple[float, float] | None = None
    ) -> None:
        self.forward, self.backward, self.balanced = forward, backward, balanced
        self.base = base or (forward.log_partition(), backward.log_partition())

    @property
    def scores(self) -> Array:
        return np.concatenate([self.forward.scores.ravel(), self.backward.scores.ravel()])

    @property
    def share(self) -> float:
        """π, the share of the mixture that falls to `forward`; ½ when balanced."""
        if self.balanced:
            return 0.5
        forward, backward = self._log_ratios()
        return float(np.exp(forward - np.logaddexp(forward, backward)))

    def _log_ratios(self) -> tuple[float, float]:
        return self.forward.log_partition() - self.base[0], self.backward.log_partition() - self.base[1]

    def log_partition(self) -> float:
        forward, backward = self._log_ratios()
        middle = 0.5 * (forward + backward) if self.balanced else float(np.logaddexp(forward, backward) - np.log(2.0))
        return 0.5 * (self.base[0] + self.base[1]) + middle

    def marginals(self) -> Array:
        share = self.share
        return np.concatenate(
            [share * self.forward.marginals().ravel(), (1 - share) * self.backward.marginals().ravel()]
        )

    def split(self, scores: Array) -> tuple[Array, Array]:
        """An array like `scores`, as one for each of the two."""
        size = self.forward.scores.size
        return scores[:size].reshape(self.forward.scores.shape), scores[size:].reshape(self.backward.scores.shape)

    def with_scores(self, scores: Array) -> Pair[F, B]:
        forward, backward = self.split(np.asarray(scores, np.float64))
        pair = self.forward.with_scores(forward), self.backward.with_scores(backward)
        return Pair(*pair, balanced=self.balanced, base=self.base)

    def argmax(self) -> tuple[Any, Any]:
        """The best of each."""
        return self.forward.argmax(), self.backward.argmax()

    def sample(self, rng: np.random.Generator) -> tuple[Any, Any]:
        """A draw from each."""
        return self.forward.sample(rng), self.backward.sample(rng)

    def parts(self, y: tuple[Any, Any]) -> Array:
        """The parts of both."""
        return np.concatenate([self.forward.parts(y[0]).ravel(), self.backward.parts(y[1]).ravel()])


def project_pair(
    forward: F,
    backward: B,
    *,
    slack: float = 0.001,
    balanced: bool = True,
    **search: Unpack[Search],
) -> Projection[Pair[F, B]]:
    r"""Symmetry: make the two directions give every link the same posterior.

    .. math:: \min_\lambda\; \tfrac12\log R_f(\lambda) + \tfrac12\log R_b(\lambda) + \epsilon\|\lambda\|_2,
        \qquad \nabla = -\tfrac12 (q_f - q_b) + \epsilon\lambda/\|\lambda\|_2

    The forward score of link (i, j) is lowered by λ_ij and the backward score raised by it; null is untouched.

    Parameters
    ----------
    forward : structure over [n_target, n_source]
        Target words generated from source words, such as an `AlignmentChain`.
    backward : structure over [n_source, n_target]
        The other way.
    slack : float
        ε: afterwards :math:`\|q_f - q_b\|_2 \le 2\epsilon`, up to twice the tolerance. Where a link is impossible in
        one direction only, ε > 0 keeps λ finite.
    balanced : bool
        True: each direction stays normalised (dual above), so that posteriors become equal and every column sums to at
        most 1. False: the literal mixture of equation 15, in which :math:`\pi q_f = (1-\pi) q_b`; for study.
    **search
        `tolerance`, `steps`, `optimiser`, `rate` and `start` as in `project`. ``optimiser="fixed", rate=2, slack=0``
        takes the steps of Ganchev et al. 2008, algorithm 1, whose λ has the other sign.

    Returns
    -------
    Projection
        `q` is a `Pair` with `q.forward` and `q.backward`; `multipliers` is float64[n_source, n_target].

    Raises
    ------
    InfeasibleError
        For instance when neither direction has null and the lengths differ.
    """
    n_target, n_source = forward.scores.shape
    if backward.scores.shape != (n_source, n_target):
        raise ParameterError(
            f"project_pair: forward is [target, source] = {[n_target, n_source]}, so backward should be "
            f"{[n_source, n_target]}, not {list(backward.scores.shape)}. Is one of them the wrong way round?"
        )
    pair = Pair(forward, backward, balanced=balanced)

    def expectations(marginals: Array) -> Array:
        there, back = pair.split(marginals)
        return (there.T - back).ravel()

    def scores_from(multipliers: Array) -> Array:
        links = multipliers.reshape(n_source, n_target)
        return np.concatenate([links.T.ravel(), -links.ravel()])

    features, bound = Features(expectations, scores_from), np.zeros(n_source * n_target)
    found = project(pair, features, bound, equality=True, slack=slack, **search)
    return replace(found, multipliers=found.multipliers.reshape(n_source, n_target))


def bijective(
    dist: AlignmentChain,
    *,
    most: float = 1.0,
    slack: float = 0.0,
    **search: Unpack[Search],
) -> Projection[AlignmentChain]:
    r"""Bijectivity: use every generating word at most once, in expectation.

    .. math:: \sum_t q(a_t = j) \le 1 \quad\text{for every generating word } j

    Parameters
    ----------
    dist : AlignmentChain
        One direction; or any other structure whose scores are [generated word, generating word].
    most : float
        The bound, 1 for bijectivity.
    **search
        `tolerance`, `steps`, `optimiser`, `rate` and `start` as in `project`.

    Returns
    -------
    Projection
        `multipliers` is float64[m], λ ≥ 0, and positive only where a word is used `most` times.

    Raises
    ------
    InfeasibleError
        When there are more words to generate than `most` · m allows and null cannot take the rest.
    """
    n, m = dist.scores.shape

    def expectations(marginals: Array) -> Array:
        return np.asarray(marginals.sum(axis=0))

    def scores_from(multipliers: Array) -> Array:
        return np.broadcast_to(multipliers, (n, m))

    return project(dist, Features(expectations, scores_from), np.full(m, float(most)), slack=slack, **search)
