r"""Optimisers as learners: they raise an objective that is a sum over items, less a penalty on the weights.

.. math:: \max_w\; \sum_i \ell_i(w) - \tfrac12 \lambda_2 \|w\|_2^2 - \lambda_1 \|w\|_1

`Lbfgs` looks at all items in each step and is exact; with an l1 penalty it becomes OWL-QN, whose weights are 0 to the
bit where they should be. `AdaGrad` and `Sgd` look at a few items at a time, in an order that the seed decides; a step
is one pass. All are `init` + `step`, with states that hold everything and can be kept in checkpoints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.learners._search import search
from isogloss.learners._vectors import dot, summed

__all__ = ["AdaGrad", "Info", "Lbfgs", "LbfgsState", "Objective", "Sgd", "StochasticState", "WholeObjective"]

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
        """The value of the given items together, or of all; their gradient is added to `out`."""
        ...

    def support(self, items: Items, /) -> NDArray[np.int64]:
        """The weights on which the given items depend, each once: where their gradient may differ from 0."""
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


class Info(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """Penalised. `Lbfgs`: of the weights arrived at. `AdaGrad`, `Sgd`: items as they were met on the way."""
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


def _penalties(place: str, l1: float, l2: float) -> None:
    for name, value in (("l1", l1), ("l2", l2)):
        if not 0 <= value < np.inf:
            raise ParameterError(f"{place}: {name} should be 0 or more, not {value!r}")


def _start(objective: Objective, weights: ArrayLike | None, place: str) -> Array:
    array = np.zeros(objective.n_weights) if weights is None else np.array(weights, np.float64)
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
        _penalties("Lbfgs", l1, l2)
        if history < 1 or evaluations < 1:
            raise ParameterError(f"Lbfgs: history and evaluations should be positive, not {history}, {evaluations}")
        self.objective, self.l1, self.l2 = objective, l1, l2
        self.history, self.evaluations = history, evaluations

    def init(self, weights: ArrayLike | None = None) -> LbfgsState:
        """The state before the first step, at the given weights or at 0; evaluates the objective once."""
        start = _start(self.objective, weights, "Lbfgs")
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
        if dot(move, change) > 1e-10 * dot(change, change):
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


# --- a few items at a time -----------------------------------------------------------------------------------------


class StochasticState(NamedTuple):
    """What the next pass of `AdaGrad` or `Sgd` needs."""

    weights: Array
    iteration: int
    squares: Array
    """`AdaGrad`: the sum of the squares of all gradients so far; empty for `Sgd`."""


class _Stochastic(ABC):
    """One pass over the items in an order of its own; penalties reach weights when an item next depends on them."""

    def __init__(self, objective: Objective, *, l1: float, l2: float, rate: float, batch: int, seed: int) -> None:
        place = type(self).__name__
        _penalties(place, l1, l2)
        if not 0 < rate < np.inf:
            raise ParameterError(f"{place}: rate should be a positive number, not {rate!r}")
        if batch < 1:
            raise ParameterError(f"{place}: batch should be a positive number of items, not {batch!r}")
        self.objective, self.l1, self.l2 = objective, l1, l2
        self.rate, self.batch, self.seed = rate, batch, seed

    def init(self, weights: ArrayLike | None = None) -> StochasticState:
        """The state before the first pass, at the given weights or at 0."""
        return StochasticState(_start(self.objective, weights, type(self).__name__), 0, self._squares())

    def _squares(self) -> Array:
        return np.zeros(0)

    def step(self, state: StochasticState) -> tuple[StochasticState, Info]:
        """One pass over all items, in an order that the seed and the iteration decide."""
        with using_threads():  # asked for once, not for every item
            return self._pass(state)

    def _pass(self, state: StochasticState) -> tuple[StochasticState, Info]:
        n = len(self.objective)
        weights, squares = state.weights.copy(), state.squares.copy()
        order = np.random.default_rng([self.seed, state.iteration]).permutation(n)
        schedule = self._schedule(state.iteration)
        gradient, value = np.zeros(len(weights)), 0.0
        last = np.zeros(len(weights), np.int64)  # batches whose penalties each weight has had
        for now, start in enumerate(range(0, n, self.batch)):
            items = order[start : start + self.batch]
            at = self.objective.support(items)
            self._penalise(weights, squares, at, last, now, schedule)
            value += self.objective.add_gradient(weights, gradient, items)
            slope = gradient[at]
            gradient[at] = 0.0
            self._move(weights, squares, at, slope, now, schedule)
        self._penalise(weights, squares, np.arange(len(weights)), last, self._batches, schedule)
        penalty = 0.5 * self.l2 * dot(weights, weights) + self.l1 * float(np.abs(weights).sum())
        info = Info(value - penalty, evaluations=1, nonzero=int(np.count_nonzero(weights)))
        return StochasticState(weights, state.iteration + 1, squares), info

    @property
    def _batches(self) -> int:
        """How many a pass has; each has an equal share of the penalty."""
        return -(-len(self.objective) // self.batch)

    def _schedule(self, iteration: int) -> Array:
        """What a pass needs to know of all its batches."""
        return np.zeros(0)

    @abstractmethod
    def _penalise(self, weights: Array, squares: Array, at: Items, last: Items, now: int, schedule: Array) -> None:
        """Bring the penalties of the weights `at` from batch ``last[at]`` up to batch `now`."""

    @abstractmethod
    def _move(self, weights: Array, squares: Array, at: Items, slope: Array, now: int, schedule: Array) -> None:
        """One step up from the weights `at`."""

    def dump(self, state: StochasticState) -> Dumped:
        """For checkpoints."""
        return {"weights": state.weights, "squares": state.squares}, {"iteration": state.iteration}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> StochasticState:
        """The inverse of `dump`."""
        return StochasticState(arrays["weights"], meta["iteration"], arrays["squares"])


class AdaGrad(_Stochastic):
    r"""Steps that shrink for each weight as its gradients add up, with exact l1 and l2 proximal steps.

    .. math:: s_j \mathrel{+}= g_j^2, \quad h_j = \sqrt{\delta + s_j} / \eta, \quad
        w_j \leftarrow \operatorname{sign}(u_j) \frac{(|u_j| - \lambda_1 r / h_j)_+}{1 + \lambda_2 r / h_j},
        \quad u_j = w_j + g_j / h_j

    where r = 1 / number of batches. Between two batches that depend on a weight its h stays the same, so that
    all proximal steps in between are made at once, in closed form.

    Parameters
    ----------
    objective : Objective
    l1, l2 : float
    rate : float
        η, about how far a weight moves in its first steps.
    batch : int
        Items in a step.
    seed : int
        Of the order of items, anew for each pass.
    damping : float
        δ.

    References
    ----------
    Duchi, Hazan and Singer, Adaptive Subgradient Methods, JMLR 12, 2011, equation 4 (composite mirror descent) with
    diagonal matrices.
    """

    def __init__(
        self,
        objective: Objective,
        *,
        l1: float = 0.0,
        l2: float = 0.0,
        rate: float = 0.1,
        batch: int = 1,
        seed: int = 0,
        damping: float = 1e-4,
    ) -> None:
        super().__init__(objective, l1=l1, l2=l2, rate=rate, batch=batch, seed=seed)
        if not damping > 0:
            raise ParameterError(f"AdaGrad: damping should be positive, not {damping!r}")
        self.damping = damping

    def _squares(self) -> Array:
        return np.zeros(self.objective.n_weights)

    def _penalise(self, weights: Array, squares: Array, at: Items, last: Items, now: int, schedule: Array) -> None:
        if not (self.l1 or self.l2):
            return
        times = now - last[at]
        last[at] = now
        step = self.rate / max(1, self._batches) / np.sqrt(self.damping + squares[at])
        shrink = 1 / (1 + self.l2 * step)
        all_of_it = shrink**times
        # Σ_{i=1..times} shrink^i, also where shrink is 1 or so near that the closed form loses its digits.
        near = (1 - shrink) * times < 1e-6
        ladder = np.where(near, times, shrink * (1 - all_of_it) / np.where(near, 1.0, 1 - shrink))
        size = np.maximum(np.abs(weights[at]) * all_of_it - self.l1 * step * ladder, 0.0)
        weights[at] = np.copysign(size, weights[at])

    def _move(self, weights: Array, squares: Array, at: Items, slope: Array, now: int, schedule: Array) -> None:
        squares[at] += slope**2
        weights[at] += self.rate * slope / np.sqrt(self.damping + squares[at])


class Sgd(_Stochastic):
    r"""Plain stochastic gradient steps, of length rate / (1 + decay · passes).

    Parameters
    ----------
    objective : Objective
    l2 : float
        For l1 take `AdaGrad` or `Lbfgs`.
    rate : float
    decay : float, optional
        ``rate * l2`` unless given, which makes steps fall as 1/(λt) and is best for strongly concave objectives; 1
        where there is no penalty.
    batch, seed
        As for `AdaGrad`.

    References
    ----------
    Bottou, Stochastic Gradient Descent Tricks, 2012, section 5.2. Smith, PhD thesis, Johns Hopkins 2010, equation A.13.
    """

    def __init__(
        self,
        objective: Objective,
        *,
        l2: float = 0.0,
        rate: float = 0.1,
        decay: float | None = None,
        batch: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__(objective, l1=0.0, l2=l2, rate=rate, batch=batch, seed=seed)
        self.decay = decay if decay is not None else (rate * l2 if l2 else 1.0)

    def _schedule(self, iteration: int) -> Array:
        """float64[2, n_batches + 1]: the length of each step, and the log of all that l2 has taken before it."""
        lengths = self.rate / (1 + self.decay * (iteration + np.arange(self._batches + 1) / max(1, self._batches)))
        taken = -np.log1p(self.l2 / max(1, self._batches) * lengths)
        return np.stack([lengths, np.cumsum(taken) - taken])

    def _penalise(self, weights: Array, squares: Array, at: Items, last: Items, now: int, schedule: Array) -> None:
        if self.l2:
            weights[at] *= np.exp(schedule[1, now] - schedule[1, last[at]])
            last[at] = now

    def _move(self, weights: Array, squares: Array, at: Items, slope: Array, now: int, schedule: Array) -> None:
        weights[at] += schedule[0, now] * slope
