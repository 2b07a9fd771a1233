r"""Conditional random fields from text that is labelled in part or not at all, by posterior regularisation.

`Alternating` learns from what a projection of the field's own posteriors says of a whole text. `Regularised` learns
from few labelled sentences, many unlabelled ones, and a penalty:

.. math:: J(\theta, q) = \sum_{i \le l} \log p_\theta(y_i \mid x_i) - \tfrac12 \lambda_2 \|\theta\|^2
    - \alpha \sum_{i > l} KL(q_i \| p_\theta) - \lambda\, h(E_q[f])

is raised in turn over q (`exponentiated`) and θ (`Lbfgs` with q as soft targets). No step lowers it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.learners.chain_model import ChainModel
from isogloss.learners.loglinear import Lbfgs, Likelihood, Total
from isogloss.learners.optimisers import Objective
from isogloss.learners.posterior.exponentiated import Tilted, exponentiated
from isogloss.learners.posterior.features import Features
from isogloss.learners.posterior.project import Outcome
from isogloss.learners.posterior.smooth import Smooth
from isogloss.learners.posterior.together import Together
from isogloss.learners.runner import run

__all__ = ["Alternating", "AlternatingInfo", "AlternatingState", "Info", "Regularised", "State", "vertex_features"]

Array = NDArray[np.float64]


ProjectText = Callable[[Together, "Array | None"], Outcome[Together]]


class AlternatingState(NamedTuple):
    """What the next step of `Alternating` needs."""

    weights: Array
    iteration: int = 0
    start: Array | None = None
    """Where the next projection starts."""


class AlternatingInfo(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """J of the weights handed in."""
    violation: float
    """What the projection left of the constraints."""


class Alternating:
    r"""Posterior regularisation of a field whose text is labelled in part: block ascent on

    .. math:: J(w, q) = -KL(q \| p_w) - R(q) - \tfrac12 \lambda_2 \|w\|^2, \qquad q \text{ over what is allowed}

    A step is one projection of the whole text, and some steps of L-BFGS towards it; see also `Likelihood` with
    `project`, which takes a few items at a time.

    Parameters
    ----------
    model : ChainModel
    within : ChainModel
        The same field over what is allowed.
    project : callable
        From all distributions over what is allowed, and where the last search ended, to the outcome of a projection.
    l2 : float
        λ₂.
    climbs : int
        Steps of L-BFGS after each projection.
    """

    def __init__(
        self, model: ChainModel, within: ChainModel, project: ProjectText, *, l2: float, climbs: int = 10
    ) -> None:
        self.model, self.restricted, self.project, self.l2, self.climbs = model, within, project, l2, climbs

    def init(self, weights: ArrayLike | None = None) -> AlternatingState:
        """The state before the first step, at the given weights or at 0."""
        start = np.zeros(self.model.n_weights) if weights is None else np.array(weights, np.float64)
        return AlternatingState(start)

    def step(self, state: AlternatingState) -> tuple[AlternatingState, AlternatingInfo]:
        """A projection, and steps towards it; the objective is that of the weights handed in."""
        weights = state.weights
        outcome = self.project(Together([self.restricted.distributions(weights)]), state.start)
        all_ways = float(self.model.distributions(weights).log_partition().sum())
        value = outcome.bound - all_ways - 0.5 * self.l2 * float(weights @ weights)
        q: Any = outcome.q.members[0]
        learner = Lbfgs(Likelihood(self.model, soft=q), l2=self.l2, history=5)
        found = run(learner, learner.init(weights), iterations=self.climbs, tolerance=1e-5)
        after = AlternatingState(found.state.weights, state.iteration + 1, np.asarray(outcome.start))
        return after, AlternatingInfo(value, outcome.violation)

    def dump(self, state: AlternatingState) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """For checkpoints."""
        arrays = {"weights": state.weights} | ({} if state.start is None else {"start": state.start})
        return arrays, {"iteration": state.iteration}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> AlternatingState:
        """The inverse of `dump`."""
        return AlternatingState(arrays["weights"], meta["iteration"], arrays.get("start"))


class State(NamedTuple):
    """What the next step of `Regularised` needs."""

    weights: Array
    """θ."""
    iteration: int
    offsets: Array
    """u of the last E-step, where the next begins."""
    rate: float
    """The step length that the last E-step came to."""
    objective: float
    """J of θ and of the q that θ was learnt from; −∞ before the first step."""


class Info(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """J after the M-step."""
    divergence: float
    """Σ KL(q ‖ p) of the unlabelled sentences, when q was found."""
    penalty: float
    """λ h."""
    residual: float
    """‖u − λ∇h / α‖∞: how exact the E-step is; 0 at its optimum."""
    middle: float
    """J between the two steps."""
    inferences: int
    """Passes over the unlabelled text in both steps."""


class Regularised:
    """Expectation-maximisation with a penalty of the expectations, in the form of a learner: `init` and `step`.

    Parameters
    ----------
    labelled, unlabelled : ChainModel
        The same weights over two texts. The labelled one may be empty of sentences, the other too.
    gold : sequence of int[n]
        Labels of every labelled sentence.
    features : Features
        What the penalty is a function of, over the nodes float64[positions * k] of the unlabelled text; for
        `GraphLaplacian` see `vertex_features`.
    penalty : callable
        h, convex: float64[m] to (value, gradient). What is known of labelled sentences is part of it:
        ``GraphLaplacian(fixed=...)``.
    strength : float
        λ.
    l2 : float
        λ₂, 1/σ².
    share : float
        α, the weight of unlabelled sentences, above 0. The E-step then minimises KL + (λ/α) h.
    inner : int
        Steps of exponentiated gradient at most, unless J would fall: then more are taken.
    tolerance : float
        The E-step is exact enough when no offset is farther than this from where the optimum has it.
    climbs : int
        Steps of L-BFGS in each M-step, at most.
    first : int
        Steps of L-BFGS for the weights to begin with, those of the labelled sentences alone.

    References
    ----------
    He, Gillenwater and Taskar, Graph-Based Posterior Regularization for Semi-Supervised Structured Prediction, CoNLL
    2013, section 3. Where the paper is silent: α = 1, offsets start where the last E-step left them, and neither step
    is carried on once it has gained most of what it can.
    """

    def __init__(
        self,
        labelled: ChainModel,
        gold: Sequence[ArrayLike],
        unlabelled: ChainModel,
        features: Features,
        penalty: Smooth,
        *,
        strength: float = 1.0,
        l2: float = 1e-4,
        share: float = 1.0,
        inner: int = 30,
        tolerance: float = 1e-2,
        climbs: int = 20,
        first: int = 200,
    ) -> None:
        if labelled.n_weights != unlabelled.n_weights:
            raise ParameterError("Regularised: the labelled and the unlabelled model should have the same weights")
        if not 0 < share < np.inf or not 0 <= strength < np.inf:
            raise ParameterError(f"Regularised: share > 0 and strength >= 0 are needed, not {share!r}, {strength!r}")
        if min(inner, climbs, first) < 1:
            raise ParameterError("Regularised: inner, climbs and first should be positive integers")
        self.supervised = Likelihood(labelled, gold=gold)
        self.unlabelled, self.features, self.penalty = unlabelled, features, penalty
        self.strength, self.l2, self.share = strength, l2, share
        self.inner, self.tolerance, self.climbs, self.first = inner, tolerance, climbs, first

    def init(self, weights: ArrayLike | None = None) -> State:
        """The state before the first step: the given weights, or those of the labelled sentences alone."""
        if weights is None:
            start, _, _ = self._climb(self.supervised, None, self.first, 1e-6)
        else:
            start = np.array(weights, np.float64)
        return State(start, 0, np.zeros(0), 0.2, -np.inf)

    def step(self, state: State) -> tuple[State, Info]:
        """q for the weights, then weights for q."""
        with using_threads():
            found = self.expect(state)
            q = found.q.members[0]
            both = Total([self.supervised, Likelihood(self.unlabelled, soft=q, share=self.share)])
            weights, gain, spent = self._climb(both, state.weights, self.climbs, 1e-6)
        middle = self._supervised(state.weights) - self.share * (found.divergence + found.cost)
        after = State(weights, state.iteration + 1, found.offsets, found.rate, middle + gain)
        info = Info(
            middle + gain,
            found.divergence,
            self.share * found.cost,
            found.residual,
            middle,
            found.evaluations + spent,
        )
        return after, info

    def expect(self, state: State) -> Tilted[Together]:
        """The E-step: q for the weights of a state. Its `q.members[0]` are the chains of all unlabelled sentences."""
        chains = Together(self.unlabelled.distributions(state.weights))
        least = (self._supervised(state.weights) - state.objective) / self.share
        found = self._tilt(chains, state.offsets if len(state.offsets) else None, state.rate)
        # q of the last step stands at `least`; its offsets with new weights are another q, which may be behind it.
        while found.divergence + found.cost > least and not found.converged:
            more = self._tilt(chains, found.offsets, found.rate)
            if not more.divergence + more.cost < found.divergence + found.cost:
                break
            found = more
        return found

    def _tilt(self, chains: Together, start: Array | None, rate: float) -> Tilted[Together]:
        return exponentiated(
            chains,
            self.features,
            self.penalty,
            strength=self.strength / self.share,
            rate=max(rate, 1e-6),
            tolerance=self.tolerance,
            steps=self.inner,
            start=start,
        )

    def _supervised(self, weights: Array) -> float:
        """Log-likelihood of the labelled sentences less the penalty of the weights."""
        ignored = np.zeros(len(weights))
        return self.supervised.add_gradient(weights, ignored) - 0.5 * self.l2 * float(weights @ weights)

    def _climb(
        self, objective: Objective, start: Array | None, steps: int, tolerance: float
    ) -> tuple[Array, float, int]:
        """Weights, what was gained, and passes over the text."""
        learner = Lbfgs(objective, l2=self.l2)
        state: Any = learner.init(start)
        begin, passes = state.value, [1]

        def count(_: Any, info: Any) -> bool:
            passes[0] += info.evaluations
            return False

        if len(objective) and objective.n_weights:
            state = run(learner, state, iterations=steps, tolerance=tolerance, should_stop=count).state
        return state.weights, state.value - begin, passes[0]


def vertex_features(vertices: ArrayLike, n_vertices: int, k: int) -> Features:
    """How often positions of each vertex bear each label: ``vertex * k + label``, for `GraphLaplacian`.

    vertices : int64[n_positions]
        The vertex of each position of all sentences, one after the other; −1 for none.
    """
    index = np.asarray(vertices, np.int64)[:, None] * k + np.arange(k)
    index[np.asarray(vertices) < 0] = -1
    return Features.indexed(index.ravel(), n_vertices * k)
