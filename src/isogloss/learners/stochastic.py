"""Optimisers that look at a few items at a time: AdaGrad, FTRL and SGD, and what margin learners share with them.

A step is one pass over the items, in an order that the seed and the pass decide. Each minibatch gives a gradient as
lists of the weights that it depends on, which kernels walk; whatever the number of threads, every weight has its values
added in the order of the items.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ModelError, ParameterError
from isogloss.features.gradients import Gradient
from isogloss.learners._vectors import dot
from isogloss.learners.optimisers import Array, Dumped, Info, Items, Objective, check_penalties, first_weights

__all__ = ["AdaGrad", "Ftrl", "Moving", "Online", "Passing", "Sgd", "StochasticState"]

MEMORY, FTRL_MEMORY, NO_MEAN, _TOTALS = 4, 3, 2, 2
"""Columns of what steps remember of each weight, and those of the mean; as `isogloss.learners._numba.steps` has them,
which takes long to import."""


class StochasticState(NamedTuple):
    """What the next pass needs.

    Parameters
    ----------
    weights : float64[n] or float32[n]
    iteration : int
        Passes.
    memory : same[n, MEMORY], or fewer columns where nothing asks for the rest
        What steps remember of each weight, see `isogloss.learners._numba.steps`.
    steps : int
        Steps that the mean is over.
    """

    weights: NDArray[Any]
    iteration: int
    memory: NDArray[Any]
    steps: int = 0

    @property
    def average(self) -> NDArray[Any]:
        """The mean of the weights after each step; the weights themselves before the first."""
        from isogloss.learners._numba.steps import averaged

        if not self.steps:
            return self.weights
        out = np.empty_like(self.weights)
        averaged(0, 1, self.weights.dtype.type(self.steps), self.weights, self.memory, out)
        return out

    def dump(self) -> Dumped:
        """For checkpoints."""
        meta = {"iteration": self.iteration, "steps": self.steps}
        return {"weights": self.weights, "memory": self.memory}, meta

    def restored(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> StochasticState:
        """The inverse of `dump`, for a learner whose states are like this one: kernels index with its sizes."""
        for name in ("weights", "memory"):
            have, want = arrays[name], getattr(self, name)
            if have.shape != want.shape or have.dtype != want.dtype:
                raise ModelError(
                    f"the checkpoint has {have.dtype}{list(have.shape)} as {name}, and {want.dtype}{list(want.shape)} "
                    "is needed. Is it damaged? Start again without resuming"
                )
        memory = np.asarray(arrays["memory"], order="F" if self.memory.flags.f_contiguous else "C")
        return StochasticState(arrays["weights"], int(meta["iteration"]), memory, int(meta["steps"]))

    @classmethod
    def fresh(cls, weights: NDArray[Any], columns: int = MEMORY, *, by_column: bool = False) -> StochasticState:
        """Before the first pass; `by_column` has each column of the memory in one piece."""
        return cls(weights, 0, np.zeros((len(weights), columns), weights.dtype, order="F" if by_column else "C"))

    def moving(self, *, in_place: bool, afresh: bool) -> StochasticState:
        """A state whose arrays may be written to, and whose mean begins anew if it should."""
        weights, memory = (self.weights, self.memory) if in_place else (self.weights.copy(), self.memory.copy("K"))
        if afresh:
            memory[:, _TOTALS:] = 0
        return StochasticState(weights, self.iteration, memory, 0 if afresh else self.steps)


class Passing:
    """What learners that look at a few items at a time share: the order of a pass, the mean, progress, checkpoints.

    Parameters
    ----------
    n : int
        Items.
    batch : int
        Items that are looked at with the same weights.
    seed : int or sequence of int
        Seed of the order of items, which is another in each pass.
    average_from : int, optional
        The pass, counted from 0, with which the mean of the weights begins: the first passes are far from where the
        others are. None for no mean.
    in_place : bool
        Write to the arrays of the state that a step is given, which saves the memory of a second copy.
    within : callable, optional
        Told during a pass how much of it is done, from 0 to 1.
    """

    shuffle = True

    def __init__(
        self,
        n: int,
        *,
        batch: int,
        seed: int | Sequence[int],
        average_from: int | None = 0,
        in_place: bool = False,
        within: Callable[[float], object] | None = None,
    ) -> None:
        if batch < 1:
            raise ParameterError(f"{type(self).__name__}: batch should be a positive number of items, not {batch!r}")
        self.n, self.batch, self.seed = n, batch, seed
        self.average_from, self.in_place, self.within = average_from, in_place, within

    def minibatches(self, iteration: int) -> Iterator[tuple[int, Items]]:
        """(number, items) of each minibatch of a pass, in an order that the seed and the pass decide."""
        order = np.arange(self.n)
        if self.shuffle:
            seeds = np.ravel(np.asarray(self.seed)).tolist()
            order = np.random.default_rng([*seeds, iteration]).permutation(self.n)
        for number, start in enumerate(range(0, self.n, self.batch)):
            if self.within is not None and number % 16 == 0:
                self.within(start / self.n)
            yield number, order[start : start + self.batch]

    def begun(self, state: StochasticState) -> StochasticState:
        """The state that a pass moves on."""
        afresh = self.average_from is not None and state.iteration == self.average_from > 0
        return state.moving(in_place=self.in_place, afresh=afresh)

    @property
    def n_batches(self) -> int:
        """How many a pass has."""
        return -(-self.n // self.batch)

    def init(self, weights: ArrayLike | None = None) -> StochasticState:
        """The state before the first pass; each learner has its own."""
        raise TypeError(f"{type(self).__name__} has no init")

    def dump(self, state: StochasticState) -> Dumped:
        """For checkpoints."""
        return state.dump()

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> StochasticState:
        """The inverse of `dump`."""
        return self.init().restored(arrays, meta)


class _Stochastic(Passing, ABC):
    """Steps along gradients; penalties reach weights when an item next depends on them.

    Of objectives that do not list what items depend on (`support` is None), when a gradient next moves them.
    """

    _columns, _by_column, _penalises_in_steps = MEMORY, False, False

    def __init__(self, objective: Objective, *, l1: float, l2: float, rate: float, **passing: Any) -> None:
        place = type(self).__name__
        check_penalties(place, l1, l2)
        if not 0 < rate < np.inf:
            raise ParameterError(f"{place}: rate should be a positive number, not {rate!r}")
        super().__init__(len(objective), **passing)
        self.objective, self.l1, self.l2, self.rate = objective, l1, l2, rate

    def init(self, weights: ArrayLike | None = None) -> StochasticState:
        """The state before the first pass, at the given weights or at 0."""
        dtype = getattr(self.objective, "dtype", np.float64)
        start = first_weights(self.objective, weights, type(self).__name__, dtype)
        columns = NO_MEAN if self._columns == MEMORY and self.average_from is None else self._columns
        return StochasticState.fresh(start, columns, by_column=self._by_column)

    def step(self, state: StochasticState) -> tuple[StochasticState, Info]:
        """One pass over all items, in an order that the seed and the iteration decide."""
        with using_threads():  # asked for once, not for every item
            return self._pass(self.begun(state))

    def _pass(self, state: StochasticState) -> tuple[StochasticState, Info]:
        weights, memory, steps, value = state.weights, state.memory, state.steps, 0.0
        prepared = self._prepare(state)
        for number, items in self.minibatches(state.iteration):
            at = self.objective.support(items) if prepared.penalised else None
            if at is not None:
                self._penalise(prepared, number, at, weights, memory)
            gained, gradient = self.objective.gradient(weights, items)
            value += gained
            if prepared.penalised and at is None and not self._penalises_in_steps:
                self._penalise(prepared, number, gradient.listed(), weights, memory)
            self._move(prepared, number, steps, gradient, weights, memory)
            steps += self.average_from is not None
        if prepared.penalised:
            self._penalise(prepared, self.n_batches, None, weights, memory)
        penalty = 0.0
        if self.l1 or self.l2:
            size = weights.astype(np.float64, copy=False)
            penalty = 0.5 * self.l2 * dot(size, size) + self.l1 * float(np.abs(size).sum())
        info = Info(value - penalty, evaluations=1, nonzero=int(np.count_nonzero(weights)))
        return StochasticState(weights, state.iteration + 1, memory, steps), info

    def _prepare(self, state: StochasticState) -> _Pass:
        """What a pass needs to know of all its minibatches."""
        penalised = bool(self.l1 or self.l2)
        return _Pass(penalised, np.zeros(len(state.weights) if penalised else 0, np.int64), np.zeros((2, 0)))

    def _penalise(
        self, prepared: _Pass, now: int, at: Items | None, weights: NDArray[Any], memory: NDArray[Any]
    ) -> None:  # fmt: skip
        """Bring the penalties of the weights `at`, or of all, up to minibatch `now`; nothing where steps have them."""

    @abstractmethod
    def _move(
        self, prepared: _Pass, now: int, steps: int, gradient: Gradient, weights: NDArray[Any], memory: NDArray[Any]
    ) -> None:  # fmt: skip
        """One step up."""


class _Pass(NamedTuple):
    """What a pass keeps for itself."""

    penalised: bool
    last: Items
    """Minibatches whose penalties each weight has had."""
    schedule: Array


NONE = np.zeros(0, np.int64)


def _lists(gradient: Gradient) -> tuple[NDArray[Any], ...]:
    return gradient.places, gradient.ends, gradient.numbers, gradient.values


def _blocks(gradient: Gradient, threads: int) -> int:
    """Any number of blocks gives the same; few entries are not worth a thread."""
    return threads if len(gradient.numbers) > FEW else 1


FEW = 1 << 13


class AdaGrad(_Stochastic):
    r"""Steps that shrink for each weight as its gradients add up, with exact l1 and l2 proximal steps.

    .. math:: s_j \mathrel{+}= g_j^2, \quad h_j = (\sqrt{\delta + s_j} + \varphi) / \eta, \quad
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
    damping : float
        δ.
    floor : float
        φ: with it, weights whose gradient is faint stay small, in place of moving by a whole step.
    rates : sequence of (int, float)
        Weights from some number on have another rate, such as those of another kind of features.
    batch, seed, average_from, in_place, within
        As for `Passing`.

    References
    ----------
    Duchi, Hazan and Singer, Adaptive Subgradient Methods, JMLR 12, 2011, equation 4 (composite mirror descent) with
    diagonal matrices.
    """

    _penalises_in_steps = True

    def __init__(
        self,
        objective: Objective,
        *,
        l1: float = 0.0,
        l2: float = 0.0,
        rate: float = 0.1,
        batch: int = 1,
        seed: int | Sequence[int] = 0,
        damping: float = 1e-4,
        floor: float = 0.0,
        rates: Sequence[tuple[int, float]] = (),
        average_from: int | None = 0,
        in_place: bool = False,
        within: Callable[[float], object] | None = None,
    ) -> None:
        super().__init__(
            objective, l1=l1, l2=l2, rate=rate, batch=batch, seed=seed, average_from=average_from, in_place=in_place,
            within=within,
        )  # fmt: skip
        if not (damping >= 0 and floor >= 0):
            raise ParameterError(f"AdaGrad: damping and floor should be 0 or more, not {damping!r}, {floor!r}")
        self.damping, self.floor = damping, floor
        self._borders = np.array([0, *(first for first, _ in rates)], np.int64)
        self._rates = np.array([rate, *(other for _, other in rates)], np.float64)

    def _penalise(
        self, prepared: _Pass, now: int, at: Items | None, weights: NDArray[Any], memory: NDArray[Any]
    ) -> None:  # fmt: skip
        from isogloss.learners._numba.steps import penalise_adagrad

        r = 1 / max(1, self.n_batches)
        given = (at is not None, NONE if at is None else at, now, self._borders, self._rates, self.damping, self.floor)
        penalise_adagrad(0, 1, *given, self.l1 * r, self.l2 * r, prepared.last, weights, memory)

    def _move(
        self, prepared: _Pass, now: int, steps: int, gradient: Gradient, weights: NDArray[Any], memory: NDArray[Any]
    ) -> None:  # fmt: skip
        from isogloss.learners._numba.steps import adagrad

        real = weights.dtype.type
        rates = self._rates.astype(weights.dtype)
        r = 1 / max(1, self.n_batches)
        penalties = (now, self.l1 * r, self.l2 * r, prepared.last)
        given = (real(steps), self._borders, rates, real(self.damping), real(self.floor), *penalties, weights, memory)
        with using_threads() as threads:
            run_blocks(adagrad, _blocks(gradient, threads), *_lists(gradient), *given)


class Moving(NamedTuple):
    """What FTRL moves: weights, z and √Σ g², each a vector."""

    weights: NDArray[Any]
    sums: NDArray[Any]
    sizes: NDArray[Any]

    def part(self, start: int, stop: int) -> Moving:
        """Of the weights start … stop − 1; shares the memory."""
        return Moving(*(array[start:stop] for array in self))


class Online(Protocol):
    """An objective with a kernel of its own for a pass of `Ftrl`, one item after the other: no lists, and no waiting.

    For models whose items take microseconds. Steps are `isogloss.learners._numba.steps.climb`; what they remember are
    `sums` and `sizes`, one number each for each weight.
    """

    @property
    def n_weights(self) -> int: ...

    def __len__(self) -> int:
        """How many items there are."""
        ...

    def ftrl_pass(self, order: Items, moving: Moving, rate: Any, l1: Any, l2: Any, /) -> float:
        """Σ of the values of the items as they were met; what moves is written to."""
        ...


class Ftrl(_Stochastic):
    r"""FTRL-Proximal: AdaGrad's steps, with l1 and l2 penalties that count once for every step, in closed form.

    .. math:: z_j \mathrel{+}= g_j + \sigma_j w_j, \quad \sigma_j = (s_j' - s_j) / \eta, \quad
        w_j = \operatorname{sign}(z_j)\, (|z_j| - \lambda_1)_+ \big/ \big((1 + s_j') / \eta + \lambda_2\big),
        \quad s_j = \sqrt{\textstyle\sum g_j^2}

    l1 leaves few weights that are not 0, and costs nothing for weights that no item depends on.

    Parameters
    ----------
    objective : Objective
        With `batch=1`, one that is `Online` is passed over by its own kernel; its value is then not penalised.
    rate : float
        η.
    l1, l2 : float
        λ₁ and λ₂, of the sum of all steps so far.
    batch, seed, in_place, within
        As for `Passing`.

    References
    ----------
    McMahan et al., Ad Click Prediction: a View from the Trenches, KDD 2013, algorithm 1.
    """

    _columns, _by_column = FTRL_MEMORY, True

    def __init__(
        self,
        objective: Objective | Online,
        *,
        l1: float = 0.0,
        l2: float = 0.0,
        rate: float = 0.1,
        batch: int = 1,
        seed: int | Sequence[int] = 0,
        in_place: bool = False,
        within: Callable[[float], object] | None = None,
    ) -> None:
        if batch > 1 and not hasattr(objective, "gradient"):
            raise ParameterError(
                f"Ftrl: {type(objective).__name__} is learnt item by item; batch should be 1, not {batch}"
            )
        known: Any = objective
        super().__init__(
            known, l1=l1, l2=l2, rate=rate, batch=batch, seed=seed, average_from=None, in_place=in_place,
            within=within,
        )  # fmt: skip

    def init(self, weights: ArrayLike | None = None) -> StochasticState:
        """The state before the first pass, at the given weights or at 0."""
        state = super().init(weights)
        if weights is not None:  # z of these weights, had they been reached
            size = np.abs(state.weights) * (1 / self.rate + self.l2) + self.l1
            state.memory[:, _TOTALS] = np.where(state.weights == 0, 0, np.copysign(size, state.weights))
        return state

    def _pass(self, state: StochasticState) -> tuple[StochasticState, Info]:
        """Item by item in a kernel of the objective, where it has one."""
        own = getattr(self.objective, "ftrl_pass", None)
        if own is None or self.batch > 1:
            return super()._pass(state)
        real = state.weights.dtype.type
        order = np.concatenate([NONE, *(items for _, items in self.minibatches(state.iteration))])
        moving = Moving(state.weights, state.memory[:, _TOTALS], state.memory[:, _TOTALS - 1])
        value = own(order, moving, real(self.rate), real(self.l1), real(self.l2))
        info = Info(float(value), evaluations=1, nonzero=int(np.count_nonzero(state.weights)))
        return StochasticState(state.weights, state.iteration + 1, state.memory), info

    def _prepare(self, state: StochasticState) -> _Pass:
        return _Pass(False, NONE, np.zeros((2, 0)))  # steps have their penalties in them

    def _move(
        self, prepared: _Pass, now: int, steps: int, gradient: Gradient, weights: NDArray[Any], memory: NDArray[Any]
    ) -> None:  # fmt: skip
        from isogloss.learners._numba.steps import ftrl

        real = weights.dtype.type
        given = (real(self.rate), real(self.l1), real(self.l2), weights, memory)
        with using_threads() as threads:
            run_blocks(ftrl, _blocks(gradient, threads), *_lists(gradient), *given)


class Sgd(_Stochastic):
    r"""Plain stochastic gradient steps, of length rate / (1 + decay · passes).

    Parameters
    ----------
    objective : Objective
    l2 : float
        For l1 take `AdaGrad`, `Ftrl` or `Lbfgs`.
    rate : float
    decay : float, optional
        ``rate * l2`` unless given, which makes steps fall as 1/(λt) and is best for strongly concave objectives; 1
        where there is no penalty.
    batch, seed, average_from, in_place, within
        As for `Passing`.

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
        seed: int | Sequence[int] = 0,
        average_from: int | None = 0,
        in_place: bool = False,
        within: Callable[[float], object] | None = None,
    ) -> None:
        super().__init__(
            objective, l1=0.0, l2=l2, rate=rate, batch=batch, seed=seed, average_from=average_from, in_place=in_place,
            within=within,
        )  # fmt: skip
        self.decay = decay if decay is not None else (rate * l2 if l2 else 1.0)

    def _prepare(self, state: StochasticState) -> _Pass:
        """With the length of each step, and the log of all that l2 has taken before it: float64[2, n_batches + 1]."""
        many = self.n_batches
        lengths = self.rate / (1 + self.decay * (state.iteration + np.arange(many + 1) / max(1, many)))
        taken = -np.log1p(self.l2 / max(1, many) * lengths)
        return super()._prepare(state)._replace(schedule=np.stack([lengths, np.cumsum(taken) - taken]))

    def _penalise(
        self, prepared: _Pass, now: int, at: Items | None, weights: NDArray[Any], memory: NDArray[Any]
    ) -> None:  # fmt: skip
        from isogloss.learners._numba.steps import penalise_sgd

        given = (at is not None, NONE if at is None else at, now, prepared.schedule[1])
        penalise_sgd(0, 1, *given, prepared.last, weights)

    def _move(
        self, prepared: _Pass, now: int, steps: int, gradient: Gradient, weights: NDArray[Any], memory: NDArray[Any]
    ) -> None:  # fmt: skip
        from isogloss.learners._numba.steps import sgd

        real = weights.dtype.type
        given = (real(steps), real(prepared.schedule[0, now]), weights, memory)
        with using_threads() as threads:
            run_blocks(sgd, _blocks(gradient, threads), *_lists(gradient), *given)
