r"""Margin learning over any structure: averaged perceptron and MIRA, with loss augmentation and annealing.

Both look at one item after the other, or at a few with the same weights. The best structure under the present weights,
made worse by its loss,

.. math:: \hat y = \arg\max_y\; w \cdot f(x, y) + \lambda\, \ell(y),

is compared with the target; MIRA changes the weights as little as it takes for the target to win by a margin of the
loss. Losses are linear in the parts, so that loss augmentation is `with_scores(scores + cost)`. A step is one pass over
the items; predict with the `average` of its state.

References
----------
Collins, Discriminative Training Methods for Hidden Markov Models, EMNLP 2002 (averaged perceptron). Crammer et al.,
Online Passive-Aggressive Algorithms, JMLR 7, 2006; McDonald, Crammer and Pereira, ACL 2005 (k-best MIRA). Haghighi et
al., Better Word Alignments with Supervised ITG Models, ACL 2009, section 3 (annealed loss augmentation, targets within
the class). Taskar, Lacoste-Julien and Klein, EMNLP 2005 (weighted Hamming loss).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.learners._region import Region
from isogloss.learners.models import Model, item_sums, run_sums
from isogloss.learners.stochastic import Passing, StochasticState
from isogloss.structures import Structure
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch

__all__ = ["Cost", "Info", "Mira", "Perceptron", "Rivals", "hamming", "hildreth", "nearest"]

Array = NDArray[np.float64]
Items = NDArray[np.int64]
Features = tuple[NDArray[np.int64], Array]


class Cost(NamedTuple):
    """A loss that is linear in the parts: ℓ(y) = constant + Σ parts(y) · cost."""

    parts: Array
    """Shaped like the scores of the structure."""
    constant: float = 0.0

    def of(self, parts: Array) -> float:
        """The loss of a structure with these parts."""
        return self.constant + float(np.sum(self.parts * parts))


def hamming(gold: ArrayLike, *, missed: float = 1.0, spurious: float = 1.0, free: ArrayLike | None = None) -> Cost:
    r"""Weighted Hamming loss: `missed` for each gold part that is not there, `spurious` for each part that is not gold.

    .. math:: \ell(\bar y) = \sum c^- y + \sum [c^+ - (c^- + c^+) y]\, \bar y

    Parameters
    ----------
    gold : float64[...]
        1 for each part that should be there; `dist.parts(y)`.
    free : bool[...], optional
        Parts that cost nothing either way, such as possible links that are not sure.

    References
    ----------
    Taskar et al. 2005, section 2.

    Examples
    --------
    >>> cost = hamming([[1, 0], [0, 1]], missed=3)
    >>> cost.of(np.array([[1, 0], [0, 1]])), cost.of(np.array([[0, 1], [0, 0]]))
    (0.0, 7.0)
    """
    y = np.asarray(gold, np.float64)
    counts = np.ones(y.shape) if free is None else np.where(np.asarray(free, np.bool_), 0.0, 1.0)
    return Cost((spurious - (missed + spurious) * y) * counts, missed * float((y * counts).sum()))


def nearest(dist: Structure, cost: Cost) -> Any:
    """The structure of least loss among those that `dist` allows: a target for gold that is outside the class.

    Among equals, the one that `argmax` takes first; add a little of the scores to the cost to prefer others.
    """
    return dist.with_scores(np.where(dist.scores == -np.inf, -np.inf, -cost.parts)).argmax()


class Targets(Protocol):
    """What items should be like, and what their structures cost, given the distributions of a few of them."""

    def rivals(self, items: Items, batch: Batch[Any], augmentation: float, /) -> Rivals:
        """The best structures when every cost counts `augmentation` times, beside what is right."""
        ...


class Rivals(NamedTuple):
    """Targets and the structures found in their place, of a few items.

    Parameters
    ----------
    parts : float64[n_parts]
        Parts of the targets less those of the structures found.
    losses : float64[n_items]
        Losses of the structures found.
    counts : float64[n_items], optional
        How many times the longest step an item may change the weights by.
    """

    parts: Array
    losses: Array
    counts: Array | None = None


class GoldTargets:
    """One right structure for each item, and the loss of all others."""

    def __init__(self, targets: Sequence[Any], costs: Sequence[Cost] | None) -> None:
        self.targets, self.costs = targets, costs

    def rivals(self, items: Items, batch: Batch[Any], augmentation: float) -> Rivals:
        """Found by one search of the whole batch."""
        chosen = items.tolist()
        target = batch.parts([self.targets[s] for s in chosen]).values
        costs = np.zeros(len(target))
        if self.costs is not None:
            costs = np.concatenate([np.zeros(0), *(np.ravel(self.costs[s].parts) for s in chosen)])
        harder = batch
        if augmentation:
            harder = batch.with_scores(batch.scores.like(kept(batch.scores.values + augmentation * costs)))
        found = batch.parts(harder.argmax()).values
        difference = target - found
        if self.costs is None:
            return Rivals(difference, (run_sums(np.abs(difference), batch.scores.offsets) > 0).astype(np.float64))
        constants = np.array([self.costs[s].constant for s in chosen], np.float64)
        return Rivals(difference, constants + run_sums(costs * found, batch.scores.offsets))


class Info(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """−Σ of what the items lacked of their margins when they were met: 0 when every item is right."""
    loss: float
    """Σ of the losses of the structures found."""
    updates: int
    """Items that changed the weights."""
    augmentation: float
    """λ in this pass."""


class Perceptron(Passing):
    """The averaged structured perceptron: where the structure found is not the target, add their difference.

    Parameters
    ----------
    model : Model
        Such as `LinearModel` or `ChainModel`.
    targets : sequence of structures, or Targets
        One for each item; or what says for a few items at a time what is right and what was found.
    costs : sequence of Cost, optional
        The loss of each item; without it, the loss is 1 for whatever is not the target and cannot augment.
    augmentation : (float, float)
        λ in the first pass, and in pass number `passes` and later; linear in between.
    passes : int
        Over which λ rises.
    batch : int
        Items that are searched with the same weights, all at once and on threads; their steps follow one by one.
    seed : int
        Seed of the order of items, which is another in each pass.
    shuffle : bool
        False keeps the items in order.
    lower, upper : float or float64[n_weights], optional
        Bounds of the weights, such as 0 as `lower` of weights that may not be negative. After each update the weights
        are moved to the nearest that keep them. Items are then looked at one by one.
    rates : sequence of (int, float)
        Weights from some number on move by so much times the step, which is 1 for those before: real-valued features
        beside indicators, say. 0 leaves weights as they are. Without bounds, and with k = 1.
    average_from, in_place, within
        As for `isogloss.learners.stochastic.Passing`.
    """

    def __init__(
        self,
        model: Model,
        targets: Sequence[Any] | Targets,
        costs: Sequence[Cost] | None = None,
        *,
        augmentation: tuple[float, float] = (0.0, 0.0),
        passes: int = 15,
        batch: int = 1,
        seed: int = 0,
        shuffle: bool = True,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        rates: Sequence[tuple[int, float]] = (),
        average_from: int | None = 0,
        in_place: bool = False,
        within: Callable[[float], object] | None = None,
    ) -> None:
        place = type(self).__name__
        super().__init__(
            len(model), batch=batch, seed=seed, average_from=average_from, in_place=in_place, within=within
        )
        given = hasattr(targets, "rivals")
        for name, each in (("targets", None if given else targets), ("costs", costs)):
            if each is not None and len(each) != len(model):  # type: ignore[arg-type]
                raise ParameterError(f"{place}: {len(each)} {name} for {len(model)} items")  # type: ignore[arg-type]
        if costs is None and any(augmentation) and not given:
            raise ParameterError(f"{place}: augmentation needs costs; make them with hamming(dist.parts(target))")
        if min(augmentation) < 0 or passes < 1:
            raise ParameterError(f"{place}: augmentation should be 0 or more and passes positive")
        self.model, self.costs = model, costs
        known: Any = targets
        self.targets = known
        self.augmentation, self.passes, self.shuffle = augmentation, passes, shuffle
        self.region = Region(place, model.n_weights, lower, upper)
        self._known = known if given else GoldTargets(known, costs)
        self._together = given or bool(rates) or (batch > 1 and not self.region.bounded)
        if rates and (self.region.bounded or min(rate for _, rate in rates) < 0):
            raise ParameterError(f"{place}: rates should be 0 or more, for weights without bounds")
        self._borders = np.array([0, *(first for first, _ in rates)], np.int64)
        self._rates = np.array([1.0, *(rate for _, rate in rates)])

    def init(self, weights: ArrayLike | None = None) -> StochasticState:
        """The state before the first pass, at the given weights or at 0, or the nearest within the bounds."""
        dtype = getattr(self.model, "dtype", np.float64)
        start = np.zeros(self.model.n_weights, dtype) if weights is None else np.array(weights, dtype)
        if start.shape != (self.model.n_weights,):
            raise ParameterError(f"{type(self).__name__}.init: weights should be {self.model.n_weights} numbers")
        return StochasticState.fresh(np.array(self.region.clip(start)))

    def schedule(self, iteration: int) -> float:
        """λ of a pass, counted from 0.

        Examples
        --------
        >>> from isogloss.learners.models import LinearModel
        >>> from isogloss.features.sparse import Sparse
        >>> learner = Perceptron(LinearModel([], Sparse.of([], 1)), [], [], augmentation=(0, 0.5), passes=3)
        >>> [learner.schedule(r) for r in range(5)]
        [0.0, 0.25, 0.5, 0.5, 0.5]
        """
        first, last = self.augmentation
        risen = min(1.0, iteration / (self.passes - 1)) if self.passes > 1 else 1.0
        return first + (last - first) * risen

    def step(self, state: StochasticState) -> tuple[StochasticState, Info]:
        """One pass over all items, in an order that the seed and the iteration decide."""
        with using_threads():  # asked for once, not for every item
            return self._pass(self.begun(state))

    def _pass(self, state: StochasticState) -> tuple[StochasticState, Info]:
        augmentation, steps, counts = self.schedule(state.iteration), state.steps, self.average_from is not None
        seen = np.zeros(3)  # what was lacking, losses, items that changed the weights
        for _, items in self.minibatches(state.iteration):
            if self._together:
                seen += self._step_together(state, items, augmentation, steps)
                steps += counts
                continue
            for item in items.tolist():
                seen += self._step_alone(state, item, augmentation, steps)
                steps += counts
        lacking, loss, updates = seen.tolist()
        after = StochasticState(state.weights, state.iteration + 1, state.memory, steps)
        return after, Info(-lacking, loss, int(updates), augmentation)

    def _step_together(self, state: StochasticState, items: Items, augmentation: float, steps: int) -> Array:
        """Steps of a few items that were searched with the same weights."""
        from isogloss.learners._numba.steps import margin_step

        batch = self.model.batch(state.weights, items)
        found = self._known.rivals(items, batch, augmentation)
        gained = item_sums(batch, found.parts)
        gradient, real = self.model.gradient(items, batch, found.parts).by_item(len(items)), state.weights.dtype.type
        lacks = self._margin(found.losses, augmentation) - gained
        lists = (gradient.places, gradient.ends, gradient.numbers, gradient.values)
        longest = np.full(len(items), self._longest())
        if found.counts is not None:
            longest[found.counts == 0] = 0.0
            longest *= np.where(found.counts == 0, 1.0, found.counts)
        rates = self._rates.astype(state.weights.dtype)
        margin_step(*lists, real(steps), lacks, longest, self._borders, rates, state.weights, state.memory)
        wrong = run_sums(np.abs(found.parts), batch.scores.offsets) > 0
        return np.array([np.maximum(lacks, 0.0).sum(), found.losses.sum(), (wrong & self._moves(lacks)).sum()])

    def _margin(self, losses: Array, augmentation: float) -> Array:
        """By how much targets should win."""
        return augmentation * losses

    def _longest(self) -> float:
        """The longest step; below 0 for steps of length 1, whatever is lacking."""
        return -1.0

    def _moves(self, lacks: Array) -> NDArray[np.bool_]:
        """Whether a wrong structure changes the weights."""
        return np.ones(len(lacks), np.bool_)

    def _step_alone(self, state: StochasticState, item: int, augmentation: float, steps: int) -> Array:
        from isogloss.learners._numba.steps import LAST, TOTALS

        weights, memory = state.weights, state.memory
        lack, suffered, changes = self._look(weights, item, augmentation)
        for at, much in self._bounded(weights, changes):
            memory[at, TOTALS] += weights[at] * (steps - memory[at, LAST])
            memory[at, LAST] = steps
            weights[at] = self.region.clip_at(at, weights[at] + much)
        return np.array([lack, suffered, float(bool(changes))])

    def _bounded(self, weights: Array, changes: list[Features]) -> list[Features]:
        """The same changes, or as one that ends within the bounds."""
        if not (changes and self.region.bounded):
            return changes
        at = np.unique(np.concatenate([places for places, _ in changes]))
        new = weights[at]
        for places, much in changes:
            new[np.searchsorted(at, places)] += much
        return [(at, self.region.clip_at(at, new) - weights[at])]

    def _found(self, weights: Array, item: int, augmentation: float) -> tuple[Structure, Structure]:
        """The distribution of an item, and the same augmented by its loss."""
        dist = self.model.distribution(weights, item)
        if not augmentation or self.costs is None:
            return dist, dist
        return dist, dist.with_scores(dist.scores + augmentation * self.costs[item].parts)

    def _loss(self, dist: Structure, item: int, found: Any) -> float:
        parts = dist.parts(found)
        if self.costs is not None:
            return self.costs[item].of(parts)
        return float(not np.array_equal(parts, dist.parts(self.targets[item])))

    def _look(self, weights: Array, item: int, augmentation: float) -> tuple[float, float, list[Features]]:
        """What an item lacks, the loss of what was found, and how to change the weights."""
        dist, augmented = self._found(weights, item, augmentation)
        found = augmented.argmax()
        at, much = self.model.difference(item, self.targets[item], found)
        lack = augmentation * self._loss(dist, item, found) - float(weights[at] @ much)
        wrong = not np.array_equal(dist.parts(found), dist.parts(self.targets[item]))
        return max(0.0, lack), self._loss(dist, item, found), [(at, much)] if wrong and much.any() else []


class Mira(Perceptron):
    r"""The margin-infused relaxed algorithm: the least change of weights by which the target wins by its margin.

    .. math:: \min_{w'} \tfrac12 \|w' - w\|^2 \quad\text{where}\quad
        w' \cdot (f(x, y^*) - f(x, y)) \ge \ell(y) \text{ for each } y \text{ of the } k \text{ best}

    With k = 1 in closed form; otherwise by Hildreth's algorithm.

    Parameters
    ----------
    model, targets, passes, batch, seed, shuffle, lower, upper, rates, average_from, in_place, within
        As for `Perceptron`. With bounds, the margin holds after an update only where they do not stand in its way.
    costs : sequence of Cost
        The loss ℓ of each item.
    k : int
        How many structures to keep away from; more than 1 needs structures with `k_best`, and looks at one item
        after the other.
    augmentation : (float, float)
        As for `Perceptron`; Haghighi et al. let λ rise from 0 to 0.5 in 15 passes.
    cap : float, optional
        The most that one structure may change the weights by, C; without it a single outlier can.
    """

    def __init__(
        self,
        model: Model,
        targets: Sequence[Any] | Targets,
        costs: Sequence[Cost] | None = None,
        *,
        k: int = 1,
        augmentation: tuple[float, float] = (0.0, 0.5),
        cap: float | None = None,
        passes: int = 15,
        batch: int = 1,
        seed: int = 0,
        shuffle: bool = True,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        rates: Sequence[tuple[int, float]] = (),
        average_from: int | None = 0,
        in_place: bool = False,
        within: Callable[[float], object] | None = None,
    ) -> None:
        super().__init__(
            model, targets, costs, augmentation=augmentation, passes=passes, batch=batch, seed=seed, shuffle=shuffle,
            lower=lower, upper=upper, rates=rates, average_from=average_from, in_place=in_place, within=within,
        )  # fmt: skip
        if k < 1 or (cap is not None and not cap > 0):
            raise ParameterError(f"Mira: k and cap should be positive, not {k!r}, {cap!r}")
        if rates and k > 1:
            raise ParameterError(f"Mira: rates need k = 1, not {k}")
        self.k, self.cap = k, np.inf if cap is None else cap
        self._together = self._together and k == 1

    def _margin(self, losses: Array, augmentation: float) -> Array:
        return losses

    def _longest(self) -> float:
        return float(self.cap)

    def _moves(self, lacks: Array) -> NDArray[np.bool_]:
        return lacks > 0

    def _look(self, weights: Array, item: int, augmentation: float) -> tuple[float, float, list[Features]]:
        dist, augmented = self._found(weights, item, augmentation)
        rivals = [augmented.argmax()] if self.k == 1 else [y for _, y in _k_best(augmented, self.k)]
        differences = [self.model.difference(item, self.targets[item], rival) for rival in rivals]
        losses = [self._loss(dist, item, rival) for rival in rivals]
        lacks = np.array([loss - weights[at] @ much for loss, (at, much) in zip(losses, differences, strict=True)])
        steps = hildreth(_products(differences), lacks, self.cap)
        changes = [(at, step * much) for step, (at, much) in zip(steps, differences, strict=True) if step > 0]
        return max(0.0, float(lacks.max())), losses[0], changes


def _k_best(dist: Any, k: int) -> list[tuple[float, Any]]:
    if not hasattr(dist, "k_best"):
        raise ParameterError(f"Mira: k = {k} needs a structure with k_best, and {type(dist).__name__} has none")
    found: list[tuple[float, Any]] = dist.k_best(k)
    return found


def _products(differences: Sequence[Features]) -> Array:
    """Inner products of sparse vectors, float64[k, k]."""
    every = np.unique(np.concatenate([at for at, _ in differences]))
    rows = np.zeros((len(differences), len(every)))
    for row, (at, much) in zip(rows, differences, strict=True):
        row[np.searchsorted(every, at)] = much
    return np.asarray(rows @ rows.T)


def hildreth(products: ArrayLike, lacks: ArrayLike, cap: float = np.inf, *, sweeps: int = 1000) -> Array:
    r"""Multipliers of the least change that meets all constraints, by coordinate ascent on the dual.

    .. math:: \min_{0 \le \alpha \le C}\; \tfrac12 \alpha^\top G \alpha - b \cdot \alpha, \qquad
        w' = w + \sum_i \alpha_i \Delta_i, \quad G_{ij} = \Delta_i \cdot \Delta_j, \quad b_i = \ell_i - w \cdot \Delta_i

    Parameters
    ----------
    products : float64[k, k]
        G.
    lacks : float64[k]
        b, what each constraint lacks.
    cap : float
        C.

    References
    ----------
    Hildreth, A quadratic programming procedure, Naval Research Logistics Quarterly 4, 1957; Censor and Zenios, Parallel
    Optimization, 1997, algorithm 6.5.2.

    Examples
    --------
    >>> hildreth([[2.0, 0.0], [0.0, 4.0]], [1.0, -1.0]).tolist()
    [0.5, 0.0]
    """
    G, b = np.asarray(products, np.float64), np.asarray(lacks, np.float64)
    alpha = np.zeros(len(b))
    if not len(b):
        return alpha
    slack, diagonal = b.copy(), np.diag(G)  # b − G α
    limit = 1e-12 * max(1.0, float(np.abs(b).max()))
    for _ in range(sweeps):
        moved = 0.0
        for i in range(len(b)):
            if diagonal[i] <= 0:  # the target itself, or something with the same features
                continue
            new = min(cap, max(0.0, alpha[i] + slack[i] / diagonal[i]))
            change = new - alpha[i]
            if change:
                alpha[i] = new
                slack -= change * G[i]
                moved = max(moved, abs(change) * diagonal[i])
        if moved <= limit:
            break
    return alpha
