r"""The structured support vector machine over any structure: block-coordinate Frank-Wolfe, and plain subgradients.

Both lower

.. math:: P(w) = \tfrac12 \lambda_2 \|w\|^2 + \sum_i \Big\{ \max_y [score_w(y) + \ell_i(y)] - score_w(y_i^*) \Big\},
    \qquad lower \le w \le upper,

and ask a structure for nothing but its best member under scores to which the loss was added. Frank-Wolfe works on the
dual, one item at a time, knows how long each step should be, and can say how far from the optimum it is at most.

References
----------
Lacoste-Julien, Jaggi, Schmidt and Pletscher, Block-Coordinate Frank-Wolfe Optimization for Structural SVMs, ICML 2013.
Osokin et al., Minding the Gaps for Block Frank-Wolfe Optimization of Structured SVMs, ICML 2016. Shalev-Shwartz,
Singer, Srebro and Cotter, Pegasos, Mathematical Programming 127, 2011; Ratliff, Bagnell and Zinkevich, (Online)
Subgradient Methods for Structured Prediction, AISTATS 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.learners._hinge import Hinge, Rival
from isogloss.learners._region import Region
from isogloss.learners.margin import Cost
from isogloss.learners.models import Model

__all__ = ["FrankWolfe", "FrankWolfeInfo", "FrankWolfeState", "Subgradient", "SubgradientInfo", "SubgradientState"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def _seen_late(weights: Array, late: Array, met: int) -> Array:
    """The mean of the weights after each item, item t counted t times; see `_Work`."""
    return weights - late * (2.0 / (met * (met + 1.0))) if met else weights


class _Svm:
    """What both learners are made with, and the weighted average that both keep."""

    def __init__(
        self,
        model: Model,
        targets: Sequence[Any],
        costs: Sequence[Cost],
        *,
        l2: float,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
        relaxed: bool,
        seed: int,
        certify: int,
    ) -> None:
        place = type(self).__name__
        if not l2 > 0:
            raise ParameterError(f"{place}: l2 should be positive, not {l2!r}; a ball without l2 is for Extragradient")
        if certify < 0:
            raise ParameterError(f"{place}: certify should be a number of passes, or 0 for never, not {certify!r}")
        self.model, self.targets, self.costs = model, targets, costs
        self.hinge = Hinge(place, model, targets, costs, relaxed=relaxed)
        self.region = Region(place, model.n_weights, lower, upper)
        self.l2, self.seed, self.certify = float(l2), seed, certify

    def primal(self, weights: ArrayLike) -> float:
        """P(w): half the squared norm times l2, and the hinges of all items."""
        w = np.asarray(weights, np.float64)
        return 0.5 * self.l2 * float(w @ w) + self.hinge.total(w)

    def _order(self, iteration: int) -> Indices:
        return np.random.default_rng([self.seed, iteration]).permutation(len(self.model))

    def _certified(self, iteration: int, weights: Array) -> float:
        """P(w) after each `certify` passes, and otherwise not a number."""
        return self.primal(weights) if self.certify and (iteration + 1) % self.certify == 0 else np.nan


class FrankWolfeState(NamedTuple):
    """What the next pass needs."""

    weights: Array
    iteration: int
    counts: Indices
    """int64[n_items]: rivals that are remembered of each item."""
    shares: Array
    """float64[n_rivals], item after item: α of each, 1 in sum over those of an item."""
    losses: Array
    """float64[n_rivals]: the loss of each."""
    differences: Array
    """f(target) − f(rival) of each, at the features that the item has."""
    late: Array
    """Σ of all changes of weights, change t times t (t − 1) / 2."""
    met: int
    """Items met in all passes."""

    @property
    def average(self) -> Array:
        """The mean of the weights after each item met, item t counted t times: what to predict with."""
        return _seen_late(self.weights, self.late, self.met)


class FrankWolfeInfo(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """The dual, which never falls: P(w) of the best weights is at least that."""
    primal: float
    """P(w) at the weights after the pass; not a number in passes without a certificate."""
    gap: float
    """primal − objective: the weights are at most that far from the optimum."""
    estimate: float
    """Σ of the gaps of the items when they were met; costs nothing, and is near `gap` towards the end."""
    rivals: int
    """Rivals that have a share, the targets themselves included."""

    @property
    def distance(self) -> float:
        """The gap, or its estimate in passes without a certificate: when to stop."""
        return self.estimate if np.isnan(self.gap) else self.gap


class FrankWolfe(_Svm):
    r"""Block-coordinate Frank-Wolfe on the dual of the structured support vector machine.

    With :math:`\psi_i(y) = f(x_i, y_i^*) - f(x_i, y)` and a distribution :math:`\alpha_i` over the structures of each
    item, the dual is

    .. math:: D(\alpha) = \sum_i \sum_y \alpha_i(y)\, \ell_i(y) + \tfrac12 \lambda_2 \|w\|^2 - w \cdot A, \qquad
        A = \sum_i \sum_y \alpha_i(y)\, \psi_i(y), \quad w = clip(A / \lambda_2,\ lower,\ upper).

    For each item the best structure under :math:`score + \ell` is a corner of its block. Rivals that have a share are
    remembered; mass goes from the one that deserves it least to the one that deserves it most, as far as that raises D
    most: in closed form without bounds, and by the breakpoints of a function in straight pieces with them. Passes over
    what is remembered, which search nothing, come between the others.

    Parameters
    ----------
    model : Model
        Such as `LinearModel` or `ChainModel`.
    targets : sequence of structures
        One for each item, of those that are allowed; see `margin.nearest`.
    costs : sequence of Cost
        The loss ℓ of each item.
    l2 : float
        λ₂; 1 / C of the usual support vector machine. Hinges are summed, not averaged.
    lower, upper : float or float64[n_weights], optional
        Bounds of the weights: 0 as `lower` for weights that may not be negative.
    relaxed : bool
        Search the linear relaxation instead (structures with `relaxation()`, such as `Matching` with pairs).
    seed : int
        Of the order of items, anew for each pass.
    between : int
        Passes over remembered rivals after each pass; the more a search costs, the more of them pay.
    certify : int
        After how many passes P(w) is computed, by one more search for each item; 0 for never.

    References
    ----------
    Lacoste-Julien et al. 2013, algorithm 4; Osokin et al. 2016 (remembered rivals, steps between two of them). We
    differ: bounds on weights, and items in random order whatever their gaps.

    Examples
    --------
    >>> from isogloss.learners.margin import hamming
    >>> from isogloss.learners.models import LinearModel
    >>> from isogloss.learners.runner import run
    >>> from isogloss.features.sparse import Sparse
    >>> from isogloss.structures import Matching
    >>> model = LinearModel([Matching(np.zeros((1, 2)))], Sparse.of([[0], [1]], 2))
    >>> learner = FrankWolfe(model, [{(0, 0)}], [hamming([[1, 0]])], l2=0.5)
    >>> result = run(learner, learner.init(), iterations=100, should_stop=lambda _, info: info.gap < 1e-9)
    >>> result.state.weights.round(4).tolist(), round(float(result.trace[-1]), 4)  # wins by 2 over the wrong link
    ([1.0, -1.0], 0.5)
    """

    def __init__(
        self,
        model: Model,
        targets: Sequence[Any],
        costs: Sequence[Cost],
        *,
        l2: float = 1.0,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        relaxed: bool = False,
        seed: int = 0,
        between: int = 5,
        certify: int = 1,
    ) -> None:
        super().__init__(
            model, targets, costs, l2=l2, lower=lower, upper=upper, relaxed=relaxed, seed=seed, certify=certify
        )
        if between < 0:
            raise ParameterError(f"FrankWolfe: between should be a number of passes, not {between!r}")
        self.between = between

    @cached_property
    def _supports(self) -> list[Indices]:
        """The features of each item, sorted."""
        found = []
        for item in range(len(self.model)):
            own = self.model.support(np.array([item]))
            found.append(np.sort(Model.support(self.model, np.array([item])) if own is None else own))  # type: ignore[arg-type]
        return found

    def init(self) -> FrankWolfeState:
        """Before the first pass: every item at its target, so that weights are 0, or the nearest that is allowed."""
        n, items = self.model.n_weights, len(self.model)
        weights = np.array(self.region.clip(np.zeros(n)))
        zeros = np.zeros(sum(len(own) for own in self._supports))
        counts = np.ones(items, np.int64)
        return FrankWolfeState(weights, 0, counts, np.ones(items), self.hinge.losses(), zeros, np.zeros(n), 0)

    def dual(self, state: FrankWolfeState) -> float:
        """D(α)."""
        return _Work(self.l2, self.region, self._supports, state).dual()

    def step(self, state: FrankWolfeState) -> tuple[FrankWolfeState, FrankWolfeInfo]:
        """One pass over all items, in an order that the seed and the iteration decide."""
        with using_threads():
            return self._pass(state)

    def _pass(self, state: FrankWolfeState) -> tuple[FrankWolfeState, FrankWolfeInfo]:
        work, estimate = _Work(self.l2, self.region, self._supports, state), 0.0
        order = self._order(state.iteration).tolist()
        for item in order:
            estimate += work.meet(item, self.hinge.at(work.weights, item))
        for _ in range(self.between):
            if not sum(work.settle(item) for item in order):
                break
        new = work.state(state.iteration + 1)
        dual, primal = work.dual(), self._certified(state.iteration, new.weights)
        return new, FrankWolfeInfo(dual, primal, primal - dual, estimate, len(new.shares))

    def dump(self, state: FrankWolfeState) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """For checkpoints."""
        names = ("weights", "counts", "shares", "losses", "differences", "late")
        return {name: getattr(state, name) for name in names}, {"iteration": state.iteration, "met": state.met}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> FrankWolfeState:
        """The inverse of `dump`."""
        return FrankWolfeState(**{**arrays, **meta})


class _Block:
    """The rivals that are remembered of one item."""

    def __init__(self, own: Indices, shares: Array, losses: Array, differences: Array) -> None:
        self.own, self.shares, self.losses, self.differences = own, shares, losses, differences

    def add(self, loss: float, difference: Array) -> None:
        self.shares, self.losses = np.append(self.shares, 0.0), np.append(self.losses, loss)
        self.differences = np.concatenate([self.differences, difference[None]])

    def forget(self) -> None:
        """Leave out what has no share."""
        kept = self.shares > 0
        self.shares, self.losses, self.differences = self.shares[kept], self.losses[kept], self.differences[kept]


class _Work:
    """A pass in progress."""

    STEPS = 10  # between rivals of one item, before the next has its turn

    def __init__(self, l2: float, region: Region, supports: list[Indices], state: FrankWolfeState) -> None:
        self.l2, self.region = l2, region
        self.weights, self.late, self.met = state.weights.copy(), state.late.copy(), state.met
        self.totals = np.zeros(len(self.weights))  # A
        self.blocks: list[_Block] = []
        first, place = 0, 0
        for own, count in zip(supports, state.counts.tolist(), strict=True):
            last, end = first + count, place + count * len(own)
            differences = state.differences[place:end].reshape(count, len(own)).copy()
            self.blocks.append(_Block(own, state.shares[first:last].copy(), state.losses[first:last], differences))
            self.totals[own] += self.blocks[-1].shares @ differences
            first, place = last, end

    def state(self, iteration: int) -> FrankWolfeState:
        for block in self.blocks:
            block.forget()
        counts = np.array([len(block.shares) for block in self.blocks], np.int64)
        shares, losses, differences = (
            np.concatenate([np.zeros(0), *(np.ravel(getattr(block, name)) for block in self.blocks)])
            for name in ("shares", "losses", "differences")
        )
        return FrankWolfeState(self.weights, iteration, counts, shares, losses, differences, self.late, self.met)

    def dual(self) -> float:
        losses = sum(float(block.shares @ block.losses) for block in self.blocks)
        return losses + 0.5 * self.l2 * float(self.weights @ self.weights) - float(self.weights @ self.totals)

    def meet(self, item: int, rival: Rival) -> float:
        """Take a rival in, share mass out anew, and say by how much the item was from its optimum."""
        self.met += 1
        block = self.blocks[item]
        values = block.losses - block.differences @ self.weights[block.own]
        gap = max(0.0, rival.value - float(block.shares @ values))
        if rival.value > values.max() + 1e-12 * (1.0 + abs(rival.value)):  # else it is among those remembered
            difference = np.zeros(len(block.own))
            difference[np.searchsorted(block.own, rival.at)] = rival.much
            block.add(rival.value + float(self.weights[rival.at] @ rival.much), difference)
        self.settle(item, self.met)
        return gap

    def settle(self, item: int, at: int | None = None) -> bool:
        """Some steps between the rivals of an item; whether there was anything to gain."""
        block, t = self.blocks[item], self.met + 1 if at is None else at
        moved = False
        for _ in range(self.STEPS):
            values = block.losses - block.differences @ self.weights[block.own]
            best = int(values.argmax())
            worst = int(np.where(block.shares > 0, values, np.inf).argmin())
            gain = float(values[best] - values[worst])
            if gain <= 1e-12 * (1.0 + abs(float(values[best]))):
                break
            way, most = block.differences[best] - block.differences[worst], float(block.shares[worst])
            much = self._length(block.own, way, float(block.losses[best] - block.losses[worst]), gain, most)
            if not much > 0:
                break
            moved = True
            block.shares[best] += much
            block.shares[worst] = 0.0 if much >= most else most - much
            self._move(block.own, much * way, t)
        return moved

    def _move(self, own: Indices, change: Array, t: int) -> None:
        self.totals[own] += change
        new = self.region.clip_at(own, self.totals[own] / self.l2)
        self.late[own] += (new - self.weights[own]) * (0.5 * t * (t - 1.0))
        self.weights[own] = new

    def _length(self, own: Indices, way: Array, more: float, gain: float, most: float) -> float:
        """How far to go, from 0 to `most`, to where the dual stops rising: at first by `gain` for each unit."""
        if not self.region.bounded:
            curve = float(way @ way) / self.l2
            return most if gain >= most * curve else gain / curve
        at, lower, upper = self.totals[own], self.region.lower[own], self.region.upper[own]

        def slope(length: float) -> float:
            return more - float(np.clip((at + length * way) / self.l2, lower, upper) @ way)

        if slope(most) >= 0:
            return most
        moving = way != 0
        with np.errstate(over="ignore"):
            meets = [(self.l2 * bound[moving] - at[moving]) / way[moving] for bound in (lower, upper)]
        corners = np.unique(np.concatenate([[0.0, most], *meets]))
        corners = corners[(corners >= 0) & (corners <= most)]
        low, high = 0, len(corners) - 1  # the slope falls: it is positive at `low` and negative at `high`
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if slope(float(corners[middle])) > 0 else (low, middle)
        first, last = slope(float(corners[low])), slope(float(corners[high]))
        if not first > 0:
            return 0.0
        return float(corners[low] + (corners[high] - corners[low]) * first / (first - last))


class SubgradientState(NamedTuple):
    """What the next pass needs."""

    weights: Array
    iteration: int
    mean: Array
    """Of the weights after each item met, item t counted t times."""
    met: int
    """Items met in all passes."""

    @property
    def average(self) -> Array:
        """The mean of the weights after each item met, item t counted t times: what to predict with."""
        return self.mean if self.met else self.weights


class SubgradientInfo(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """−P at the averaged weights after the pass; an estimate, from the items as they were met, where not certified."""
    updates: int
    """Items with a hinge above 0 when they were met."""


class Subgradient(_Svm):
    r"""Subgradient descent on P(w) / n, one item at a time, with steps n / (λ₂ (t + 1)) and weighted averaging.

    .. math:: w \leftarrow clip\Big( w - \frac{2}{\lambda (t + 1)} \big( \lambda w - \psi_i(\hat y) \big) \Big),
        \qquad \lambda = \lambda_2 / n

    The plain baseline: no line search, no dual, no certificate. With these steps and averaging item t with weight t the
    error falls as 1 / t (Lacoste-Julien, Schmidt and Bach, arXiv 1212.2002, 2012).

    Parameters
    ----------
    model, targets, costs, l2, lower, upper, relaxed, seed
        As for `FrankWolfe`.
    certify : int
        After how many passes the objective is computed rather than estimated; 0 for never.
    """

    def __init__(
        self,
        model: Model,
        targets: Sequence[Any],
        costs: Sequence[Cost],
        *,
        l2: float = 1.0,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        relaxed: bool = False,
        seed: int = 0,
        certify: int = 1,
    ) -> None:
        super().__init__(
            model, targets, costs, l2=l2, lower=lower, upper=upper, relaxed=relaxed, seed=seed, certify=certify
        )

    def init(self, weights: ArrayLike | None = None) -> SubgradientState:
        """The state before the first pass, at the given weights or at 0."""
        start = np.zeros(self.model.n_weights) if weights is None else np.array(weights, np.float64)
        if start.shape != (self.model.n_weights,):
            raise ParameterError(f"Subgradient.init: weights should be {self.model.n_weights} numbers")
        start = np.array(self.region.clip(start))
        return SubgradientState(start, 0, np.zeros(len(start)), 0)

    def step(self, state: SubgradientState) -> tuple[SubgradientState, SubgradientInfo]:
        """One pass over all items, in an order that the seed and the iteration decide."""
        with using_threads():
            return self._pass(state)

    def _pass(self, state: SubgradientState) -> tuple[SubgradientState, SubgradientInfo]:
        weights, mean, met = state.weights.copy(), state.mean.copy(), state.met
        lacking, updates, n = 0.0, 0, len(self.model)
        for item in self._order(state.iteration).tolist():
            rival = self.hinge.at(weights, item)
            lacking += rival.value
            updates += rival.value > 0
            met += 1
            share = 2.0 / (met + 1.0)
            weights *= 1.0 - share
            weights[rival.at] += (share * n / self.l2) * rival.much
            weights = np.array(self.region.clip(weights))
            mean += share * (weights - mean)
        primal = self._certified(state.iteration, mean)
        if np.isnan(primal):
            primal = 0.5 * self.l2 * float(mean @ mean) + lacking
        return SubgradientState(weights, state.iteration + 1, mean, met), SubgradientInfo(-primal, updates)

    def dump(self, state: SubgradientState) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """For checkpoints."""
        return {"weights": state.weights, "mean": state.mean}, {"iteration": state.iteration, "met": state.met}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> SubgradientState:
        """The inverse of `dump`."""
        return SubgradientState(**{**arrays, **meta})
