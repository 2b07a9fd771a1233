r"""Optimisers as learners: they raise an objective that is a sum over items, less a penalty on the weights.

.. math:: \max_w\; \sum_i \ell_i(w) - \tfrac12 \lambda_2 \|w\|_2^2 - \lambda_1 \|w\|_1

`Lbfgs` looks at all items in each step and is exact; with an l1 penalty it becomes OWL-QN, whose weights are 0 to the
bit where they should be. Those that look at a few items at a time are in `isogloss.learners.stochastic`. All are
`init` + `step`, with states that hold everything and can be kept in checkpoints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.learners._search import search
from isogloss.learners._vectors import dot, summed

__all__ = ["Info", "Lbfgs", "LbfgsState", "Objective", "WholeObjective", "check_penalties", "first_weights"]

Array = NDArray[np.float64]
Items = NDArray[np.int64]
Dumped = tuple[dict[str, NDArray[Any]], dict[str, Any]]


class Objective(Protocol):
    """What is raised: a sum over items of functions of the weights."""

    @property
    def n_weights(self) -> int: ...

    def __len__(self) -> int:
        """How many items there are."""
        ...

    def add_gradient(self, weights: Array, out: Array, items: Items | None = None, /) -> float:
        """The value of the given items together, or of all; their gradient is added to `out`. For `Lbfgs`."""
        ...

    def gradient(self, weights: NDArray[Any], items: Items, /) -> tuple[float, Gradient]:
        """The value of the given items together, and their gradient as lists. For all that take a few at a time."""
        ...

    def support(self, items: Items, /) -> NDArray[np.int64] | None:
        """The weights on which the given items depend, each once; None where to list them would take too long."""
        ...


class WholeObjective(ABC):
    """An `Objective` that is not a sum: one item, which depends on all weights."""

    @property
    @abstractmethod
    def n_weights(self) -> int: ...

    def __len__(self) -> int:
        return 1

    def support(self, items: Items, /) -> NDArray[np.int64]:
        return np.arange(self.n_weights)

    @abstractmethod
    def add_gradient(self, weights: Array, out: Array, items: Items | None = None, /) -> float: ...

    def gradient(self, weights: NDArray[Any], items: Items, /) -> tuple[float, Gradient]:
        """Value and gradient, as of one item."""
        slope = np.zeros(self.n_weights)
        value = self.add_gradient(np.asarray(weights, np.float64), slope)
        return value, Gradient.whole(slope)


class Info(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """Penalised. `Lbfgs`: of the weights arrived at. The others: items as they were met on the way."""
    gradient: float = float("nan")
    """`Lbfgs`: the largest entry of the gradient at the weights arrived at, |·|; 0 at an optimum."""
    evaluations: int = 0
    """Passes over the items."""
    nonzero: int = 0
    """Weights that are not 0."""


class LbfgsState(NamedTuple):
    """What the next step of `Lbfgs` needs. The arrays are never written to again."""

    weights: Array
    iteration: int
    value: float
    """Σ ℓ − penalties, at the weights."""
    gradient: Array
    """Of the smooth part, Σ ℓ − ½ λ₂ ‖w‖²."""
    moves: tuple[Array, ...]
    """The last differences of weights, oldest first, …"""
    changes: tuple[Array, ...]
    """… and of the negative gradient."""

    @property
    def average(self) -> Array:
        """What to predict with: the weights themselves, nothing is averaged."""
        return self.weights


def check_penalties(place: str, l1: float, l2: float) -> None:
    """Refuse penalties that are no numbers from 0 on."""
    for name, value in (("l1", l1), ("l2", l2)):
        if not 0 <= value < np.inf:
            raise ParameterError(f"{place}: {name} should be 0 or more, not {value!r}")


def first_weights(
    objective: Objective, weights: ArrayLike | None, place: str, dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """A copy of the given weights, or zeros."""
    if weights is None:
        return np.zeros(objective.n_weights, dtype)
    array = np.array(weights, dtype)
    if array.shape != (objective.n_weights,) or not np.isfinite(array).all():
        raise ParameterError(f"{place}.init: weights should be {objective.n_weights} finite numbers")
    return array


class Lbfgs:
    """Limited-memory BFGS with a line search for the strong Wolfe conditions; OWL-QN when there is an l1 penalty.

    Parameters
    ----------
    objective : Objective
    l1, l2 : float
        λ₁ and λ₂ (1/σ²).
    history : int
        Pairs of differences kept: each costs twice the weights.
    evaluations : int
        The most that one step may spend on its line search.

    Notes
    -----
    The objective never falls. When no step can raise it any more in floating point, the state stays where it is, and
    `runner.run` with a tolerance ends.

    References
    ----------
    Nocedal and Wright, Numerical Optimization, 2nd edition 2006, algorithms 7.4, 7.5 and 3.5-3.6. Andrew and Gao,
    Scalable Training of L1-Regularized Log-Linear Models, ICML 2007; we use their projected backtracking.

    Examples
    --------
    >>> from isogloss.learners.runner import run
    >>> class Bowl:  # -(w - 3)²: the optimum with l1 = 2 is at 2, since there 2 (3 - w) = l1
    ...     n_weights = 1
    ...     def __len__(self): return 1
    ...     def support(self, items): return np.array([0])
    ...     def add_gradient(self, weights, out, items=None):
    ...         out += 2 * (3 - weights)
    ...         return -float((weights - 3) @ (weights - 3))
    >>> learner = Lbfgs(Bowl(), l1=2.0)
    >>> run(learner, learner.init(), iterations=20, tolerance=1e-12).state.weights.round(6).tolist()
    [2.0]
    """

    def __init__(
        self, objective: Objective, *, l1: float = 0.0, l2: float = 0.0, history: int = 10, evaluations: int = 25
    ) -> None:
        check_penalties("Lbfgs", l1, l2)
        if history < 1 or evaluations < 1:
            raise ParameterError(f"Lbfgs: history and evaluations should be positive, not {history}, {evaluations}")
        self.objective, self.l1, self.l2 = objective, l1, l2
        self.history, self.evaluations = history, evaluations

    def init(self, weights: ArrayLike | None = None) -> LbfgsState:
        """The state before the first step, at the given weights or at 0; evaluates the objective once."""
        start = first_weights(self.objective, weights, "Lbfgs")
        cost, slope = self._cost(start)
        return LbfgsState(start, 0, -cost, -slope, (), ())

    def _cost(self, weights: Array) -> tuple[float, Array]:
        """What is lowered, and the gradient of its smooth part."""
        slope = np.zeros(len(weights))
        cost = -self.objective.add_gradient(weights, slope)
        np.negative(slope, out=slope)
        if self.l2:
            cost += 0.5 * self.l2 * dot(weights, weights)
            slope += self.l2 * weights
        if self.l1:
            cost += self.l1 * float(np.abs(weights).sum())
        return cost, slope

    def _steepest(self, weights: Array, slope: Array) -> Array:
        """The (pseudo-)gradient of the cost: of all subgradients, the one of least norm."""
        if not self.l1:
            return slope
        at_zero = np.sign(slope) * np.maximum(np.abs(slope) - self.l1, 0.0)
        return np.where(weights == 0, at_zero, slope + self.l1 * np.sign(weights))

    def step(self, state: LbfgsState) -> tuple[LbfgsState, Info]:
        """One direction and one line search along it; the objective is that of the weights arrived at."""
        slope = -state.gradient
        steepest = self._steepest(state.weights, slope)
        direction = _direction(steepest, state.moves, state.changes)
        if self.l1:
            direction[direction * steepest >= 0] = 0.0
        downhill = dot(direction, steepest)
        if not downhill < 0:  # nothing to gain, or a history that misleads
            direction = -steepest
            downhill = -dot(steepest, steepest)
        if downhill == 0:
            return self._stay(state, 0)
        first = 1.0 if state.moves else min(1.0, 1.0 / np.sqrt(dot(steepest, steepest)))
        if self.l1:
            found, spent = self._backtrack(state, steepest, direction, first)
        else:
            begin = (-state.value, downhill)
            found, spent = search(self._cost, dot, state.weights, direction, begin, first, self.evaluations)
        if found is None:
            return self._stay(state, spent)
        weights, cost, new_slope = found
        move, change = weights - state.weights, new_slope - slope
        moves, changes = state.moves, state.changes
        curved = dot(change, change)  # 0 where a gradient has all but vanished, and its square is too small for a float
        if curved > 0 and dot(move, change) > 1e-10 * curved:
            moves, changes = (*moves, move)[-self.history :], (*changes, change)[-self.history :]
        after = LbfgsState(weights, state.iteration + 1, -cost, -new_slope, moves, changes)
        return after, self._info(after, spent)

    def _stay(self, state: LbfgsState, spent: int) -> tuple[LbfgsState, Info]:
        """No better point was found: forget the history, so that the next step tries the steepest way."""
        after = state._replace(iteration=state.iteration + 1, moves=(), changes=())
        return after, self._info(after, spent)

    def _info(self, state: LbfgsState, spent: int) -> Info:
        steepest = self._steepest(state.weights, -state.gradient)
        size = float(np.abs(steepest).max()) if len(steepest) else 0.0
        return Info(state.value, size, spent, int(np.count_nonzero(state.weights)))

    def _backtrack(
        self, state: LbfgsState, steepest: Array, direction: Array, length: float
    ) -> tuple[tuple[Array, float, Array] | None, int]:
        """Halve the step until the cost falls enough, never leaving the orthant of the weights (Andrew and Gao)."""
        orthant = np.where(state.weights == 0, -np.sign(steepest), np.sign(state.weights))
        for spent in range(1, self.evaluations + 1):
            trial = state.weights + length * direction
            trial[trial * orthant <= 0] = 0.0
            cost, slope = self._cost(trial)
            promised = dot(steepest, trial - state.weights)
            if promised < 0 and cost <= -state.value + 1e-4 * promised:
                return (trial, cost, slope), spent
            length /= 2 if state.moves or spent > 1 else 10
        return None, self.evaluations

    def dump(self, state: LbfgsState) -> Dumped:
        """For checkpoints."""
        shape = (len(state.moves), len(state.weights))
        arrays = {
            "weights": state.weights,
            "gradient": state.gradient,
            "moves": np.array(state.moves).reshape(shape),
            "changes": np.array(state.changes).reshape(shape),
        }
        return arrays, {"iteration": state.iteration, "value": state.value}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> LbfgsState:
        """The inverse of `dump`."""
        histories = tuple(arrays["moves"]), tuple(arrays["changes"])
        return LbfgsState(arrays["weights"], meta["iteration"], meta["value"], arrays["gradient"], *histories)


def _direction(steepest: Array, moves: tuple[Array, ...], changes: tuple[Array, ...]) -> Array:
    """Minus the gradient times the inverse Hessian as the history knows it: the two loops."""
    from isogloss.learners._numba.vectors import add_and_dot, scale_and_dot

    out = -steepest
    if not moves:
        return out
    products = [dot(move, change) for move, change in zip(moves, changes, strict=True)]
    shares = [0.0] * len(moves)
    share = dot(moves[-1], out)
    for i in range(len(moves) - 1, -1, -1):
        shares[i] = share / products[i]
        following = moves[i - 1] if i else changes[-1]
        share = summed(add_and_dot, -shares[i], changes[i], out, following)
    share = summed(scale_and_dot, products[-1] / dot(changes[-1], changes[-1]), out, changes[0])
    for i in range(len(moves)):
        following = changes[i + 1] if i + 1 < len(moves) else out
        share = summed(add_and_dot, shares[i] - share / products[i], moves[i], out, following)
    return out
