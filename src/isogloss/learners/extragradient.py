r"""Large margins as a saddle point between weights and fractional structures, by the extragradient method.

.. math:: \min_{\|w\| \le \gamma}\ \max_{z \in \mathcal Z}\
    \sum_i \big( (F_i w + c_i) \cdot z_i - (F_i w) \cdot y_i + d_i \big)

:math:`\mathcal Z_i` is the polytope of item *i*; where its corners are structures, the inner maximum is the hinge loss.
All items are looked at in each step, which takes two projections of each.

References
----------
Taskar, Lacoste-Julien and Klein, A Discriminative Matching Approach to Word Alignment, EMNLP 2005, section 3; Taskar,
Lacoste-Julien and Jordan, Structured Prediction via the Extragradient Method, NIPS 2005. Step sizes: He and Liao,
Improvements of some projection methods for monotone nonlinear variational inequalities, J. Optimization Theory and
Applications 112, 2002. We differ: weights may have bounds, and the distance to the optimum is bounded in each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ParameterError
from isogloss.learners._hinge import Hinge
from isogloss.learners._region import Region
from isogloss.learners.margin import Cost
from isogloss.learners.models import LinearModel
from isogloss.structures.polytope import Polytope

__all__ = ["Extragradient", "Info", "State"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

SHRINK, GROW = 0.9, 0.4  # ratios above and below which the rate is changed
MOST_RATE = 1e12


class State(NamedTuple):
    """What the next step needs."""

    weights: Array
    iteration: int
    point: Array
    """Where each item is in its polytope, item after item."""
    prices: Array
    """Where the next projections begin; they change how long these take."""
    rate: float
    """β."""
    summed: Array
    """Σ of the predicted weights of each step, each times its rate."""
    summed_rate: float

    @property
    def average(self) -> Array:
        """The mean of the predicted weights, each counted as its rate says; smoother than the last in early steps."""
        return self.summed / self.summed_rate if self.summed_rate else self.weights


class Info(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """−Σ of the hinges of all items at the new weights, by loss-augmented search: 0 when each wins by its loss."""
    dual: float
    """The least that any weights could make of the sum of hinges, as the new point shows."""
    gap: float
    """How far the sum of hinges may be from the least."""
    rate: float
    """β of this step."""
    ratio: float
    """β ‖G(u) − G(u′)‖ / ‖u − u′‖ of the prediction u′; not above 0.9."""
    tries: int
    """Predictions until the rate was small enough."""

    @property
    def distance(self) -> float:
        """The gap: when to stop."""
        return self.gap


class Extragradient:
    r"""The extragradient method on the saddle point of weights and fractional structures.

    With β the rate, from a prediction to a correction,

    .. math:: w' = P_W\big(w + \beta \sum_i F_i^\top (y_i - z_i)\big), \quad
        z_i' = P_{Z_i}\big(z_i + \beta (F_i w + c_i)\big)

    .. math:: w \leftarrow P_W\big(w + \beta \sum_i F_i^\top (y_i - z_i')\big), \quad
        z_i \leftarrow P_{Z_i}\big(z_i + \beta (F_i w' + c_i)\big).

    While the ratio :math:`r = \beta \|G(u) - G(u')\| / \|u - u'\|` is above 0.9 the rate shrinks to ⅔ β min(1, 1/r) and
    the prediction is made anew; below 0.4 it grows by half for the next step.

    Parameters
    ----------
    model : LinearModel
        Over structures with `polytope()`: `Matching`, or `Flat` of a `Matching` when nulls or further links have
        features or scores. Where a null scores more than a second link costs, the polytope has other corners than
        structures, and the gap does not close.
    targets : sequence of structures
        One for each item, of those that are allowed; see `margin.nearest`.
    costs : sequence of Cost
        The loss of each item.
    radius : float
        γ; 10,000 is no bound in effect, and stopping early is what keeps weights small.
    lower, upper : float or float64[n_weights], optional
        Bounds of the weights: 0 as `lower` for weights that may not be negative.
    rate : float
        β of the first step, before it finds its size.
    tolerance : float
        Of projections, in their dual variables.

    Examples
    --------
    >>> from isogloss.learners.margin import hamming
    >>> from isogloss.learners.runner import run
    >>> from isogloss.features.sparse import Sparse
    >>> from isogloss.structures import Matching
    >>> model = LinearModel([Matching(np.zeros((1, 2)))], Sparse.of([[0], [1]], 2))
    >>> learner = Extragradient(model, [{(0, 0)}], [hamming([[1, 0]])], radius=1.0)
    >>> result = run(learner, learner.init(), iterations=200, should_stop=lambda _, info: info.gap < 1e-9)
    >>> result.state.weights.round(4).tolist(), round(float(result.trace[-1]), 4)  # the wrong link costs 2
    ([0.7071, -0.7071], -0.5858)
    """

    def __init__(
        self,
        model: LinearModel,
        targets: Sequence[Any],
        costs: Sequence[Cost],
        *,
        radius: float = 1e4,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        rate: float = 1.0,
        tolerance: float = 1e-10,
    ) -> None:
        if not isinstance(model, LinearModel):
            raise ParameterError(f"Extragradient: the model should be a LinearModel, not {type(model).__name__}")
        if not (0 < rate < np.inf and tolerance > 0):
            raise ParameterError(f"Extragradient: rate and tolerance should be positive, not {rate!r}, {tolerance!r}")
        self.model, self.targets, self.costs, self.rate, self.tolerance = model, targets, costs, rate, tolerance
        self.hinge = Hinge("Extragradient", model, targets, costs)
        self.region = Region("Extragradient", model.n_weights, lower, upper, radius)
        base = np.where(np.isfinite(model._base), model._base, 0.0)
        costs_of_parts = np.concatenate([np.zeros(0), *(np.ravel(cost.parts) for cost in costs)])
        if costs_of_parts.shape != base.shape:
            raise ParameterError("Extragradient: the costs should be shaped like the scores of the structures")
        self._gold = model.gold(targets).values
        self._augmented = base + costs_of_parts
        self._constant = sum(cost.constant for cost in costs) - float(base @ self._gold)
        self._polytopes = _Polytopes(model, tolerance)

    def init(self, weights: ArrayLike | None = None) -> State:
        """Before the first step: at the given weights or at 0, and words alone where they may be."""
        start = np.zeros(self.model.n_weights) if weights is None else np.array(weights, np.float64)
        if start.shape != (self.model.n_weights,):
            raise ParameterError(f"Extragradient.init: weights should be {self.model.n_weights} numbers")
        prices, summed = np.zeros(self._polytopes.n_prices), np.zeros(len(start))
        return State(np.array(self.region.project(start)), 0, self._polytopes.start(), prices, self.rate, summed, 0.0)

    def primal(self, weights: ArrayLike) -> float:
        """Σ of the hinges of all items."""
        return self.hinge.total(np.asarray(weights, np.float64))

    def dual(self, point: Array) -> float:
        """min over weights of the saddle function at a point of the polytopes."""
        parts = self._polytopes.parts(point)
        slope = self.model.features.totals(parts - self._gold)
        return self.region.least(slope) + float(self._augmented @ parts) + self._constant

    def step(self, state: State) -> tuple[State, Info]:
        """A prediction and a correction over all items."""
        with using_threads():
            return self._step(state)

    def _step(self, state: State) -> tuple[State, Info]:
        w, z, rate, tries = state.weights, state.point, state.rate, 0
        down, up = self._slopes(w, z)
        while True:
            tries += 1
            prices = state.prices.copy()
            near_w = self.region.project(w - rate * down)
            near_z = self._polytopes.project(z + rate * up, prices)
            near_down, near_up = self._slopes(near_w, near_z)
            moved = _norm(near_w - w, near_z - z)
            ratio = rate * _norm(near_down - down, near_up - up) / moved if moved > 0 else 0.0
            if ratio <= SHRINK:
                break
            rate *= min(1.0, 1.0 / ratio) * (2.0 / 3.0)
        new_w = np.array(self.region.project(w - rate * near_down))
        new_z = self._polytopes.project(z + rate * near_up, prices)
        grown = min(MOST_RATE, 1.5 * rate) if ratio < GROW and moved > 0 else rate
        summed = state.summed + rate * near_w
        new = State(new_w, state.iteration + 1, new_z, prices, grown, summed, state.summed_rate + rate)
        primal, dual = self.primal(new_w), self.dual(new_z)
        return new, Info(-primal, dual, primal - dual, rate, ratio, tries)

    def _slopes(self, weights: Array, point: Array) -> tuple[Array, Array]:
        """Derivatives of the saddle function by weights, which go down it, and by the point, which goes up."""
        features = self.model.features
        down = features.totals(self._polytopes.parts(point) - self._gold)
        return down, self._polytopes.pull(self._augmented + features.scores(weights))

    def dump(self, state: State) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """For checkpoints."""
        arrays = {name: getattr(state, name) for name in ("weights", "point", "prices", "summed")}
        return arrays, {name: getattr(state, name) for name in ("iteration", "rate", "summed_rate")}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> State:
        """The inverse of `dump`."""
        return State(**{**arrays, **meta})


def _norm(first: Array, second: Array) -> float:
    return float(np.sqrt(first @ first + second @ second))


class _Polytopes:
    """The polytopes of all items, one after the other."""

    PER_BLOCK = 16  # items that a thread works on before it takes the next

    def __init__(self, model: LinearModel, tolerance: float) -> None:
        self.each: list[Polytope] = []
        for item in range(len(model)):
            dist: Any = model.structures[item]
            if not hasattr(dist, "polytope"):
                raise ParameterError(
                    f"Extragradient: item {item} is a {type(dist).__name__}, which has no polytope that points can be "
                    "projected on; FrankWolfe needs argmax alone"
                )
            self.each.append(dist.polytope())
        self.tolerance, self._parts = tolerance, model._offsets
        self._coordinates = _offsets([one.n_coordinates for one in self.each])
        self._prices = _offsets([one.n_prices for one in self.each])

    @property
    def n_prices(self) -> int:
        return int(self._prices[-1])

    def start(self) -> Array:
        return np.concatenate([np.zeros(0), *(one.start() for one in self.each)])

    @cached_property
    def _ranges(self) -> list[tuple[Polytope, slice, slice, slice]]:
        """Of each item: its polytope, its parts, its coordinates and its prices."""
        parts, own, due = (
            [slice(int(first), int(last)) for first, last in pairwise(offsets)]
            for offsets in (self._parts, self._coordinates, self._prices)
        )
        return list(zip(self.each, parts, own, due, strict=True))

    def parts(self, point: Array) -> Array:
        out = np.empty(self._parts[-1])
        for one, parts, own, _ in self._ranges:
            out[parts] = one.parts(point[own])
        return out

    def pull(self, scores: Array) -> Array:
        out = np.empty(self._coordinates[-1])
        for one, parts, own, _ in self._ranges:
            out[own] = one.pull(scores[parts])
        return out

    def project(self, point: Array, prices: Array) -> Array:
        """The nearest points; `prices` are overwritten."""
        out = np.empty(len(point))

        def some(block: int, count: int) -> None:
            for one, _, own, due in self._ranges[block::count]:
                out[own] = one.project(point[own], prices[due], self.tolerance)

        run_blocks(some, max(1, len(self.each) // self.PER_BLOCK))
        return out


def _offsets(sizes: Sequence[int]) -> Indices:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
