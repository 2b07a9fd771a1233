r"""Models whose scores are linear in weights: what the feature-based learners work on.

A `Model` is a scorer with a batch of structures. It says two things of some of its items: their distributions under
given weights, and what a vector over the parts of these distributions adds to the gradient. Everything that learners
ask follows from these two, so that likelihood, margins, risk and posterior regularisation work on any of them, a few
items at a time or all together.

`LinearModel` has a stored row of features for every part; `TemplateModel` walks templates whenever it is asked and
stores nothing; `isogloss.learners.chain_model.ChainModel` is for taggers over whole corpora.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from isogloss.data.rows import gathered, run_sums
from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.features.scorer import TemplateScorer
from isogloss.features.sparse import Sparse
from isogloss.structures import Stack, Structure
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch, Listed, run_sentences

__all__ = [
    "Given",
    "Gold",
    "LinearModel",
    "Model",
    "ModelObjective",
    "Scaled",
    "Share",
    "Soft",
    "Target",
    "TemplateModel",
    "Wanted",
    "item_sums",
    "pieces",
    "run_sums",
    "shared",
    "spread",
]

Array = NDArray[np.float64]
Items = NDArray[np.int64]
Structures = Batch[Any] | Sequence[Structure]
Share = float | Array
"""What likelihood is multiplied with: of all items, or float64[n_items] of each."""
PIECE = 256
"""Items whose distributions are in memory together when a learner asks for all."""


class Wanted(NamedTuple):
    """What some items should be like, over the parts of their distributions.

    Parameters
    ----------
    parts : float64[n_parts]
        Expected parts: 1 and 0 where the right structure is known.
    values : float64[n_items], optional
        log of what the target has of the sum over structures: the score of the right structure, or log Z of those that
        agree with what is known. Without it, Σ parts · scores.
    """

    parts: Array
    values: Array | None = None


@runtime_checkable
class Target(Protocol):
    """What is known of the items of a model; asked for a few of them at a time."""

    def wanted(self, items: Items, batch: Batch[Any], /) -> Wanted:
        """Of these items, whose distributions `batch` has."""
        ...


class ModelObjective:
    """What is to be raised over the items of a model: as many weights and items as that has."""

    model: Model

    @property
    def n_weights(self) -> int:
        return self.model.n_weights

    @property
    def dtype(self) -> DTypeLike:
        """Of weights."""
        return self.model.dtype

    def __len__(self) -> int:
        return len(self.model)

    def support(self, items: Items) -> NDArray[np.int64] | None:
        """The weights that the items depend on."""
        return self.model.support(items)


class Gold:
    """The right structure of each item."""

    def __init__(self, structures: Sequence[Any]) -> None:
        self.structures = structures

    def __len__(self) -> int:
        return len(self.structures)

    def wanted(self, items: Items, batch: Batch[Any]) -> Wanted:
        """The parts of the right structures."""
        return Wanted(batch.parts([self.structures[s] for s in items.tolist()]).values)


class Soft:
    """Expected parts of each item: arrays shaped like its scores, or distributions, whose marginals are taken."""

    def __init__(self, expected: Sequence[Any]) -> None:
        self.expected = expected

    def __len__(self) -> int:
        return len(self.expected)

    def wanted(self, items: Items, batch: Batch[Any]) -> Wanted:
        """The expected parts."""
        each = (self.expected[s] for s in items.tolist())
        flat = [np.ravel(q.marginals() if hasattr(q, "marginals") else q) for q in each]
        return Wanted(np.concatenate([np.zeros(0), *flat]))


class Given:
    """What is known of a part of each item; the rest is hidden, and summed out.

    Parameters
    ----------
    **known : sequences, one thing for each item
        As the method `given` of the model's batches takes them, such as ``labels=[...]`` of `HiddenTrees`.

    Examples
    --------
    >>> from isogloss.features.sparse import Sparse
    >>> from isogloss.structures import Couplings, HiddenTrees
    >>> one_pair = HiddenTrees.of([np.zeros(2)], Couplings.of([(2, 1, [])]), 1, tree="none")
    >>> model = LinearModel(one_pair, Sparse.of([[0], []], 1))
    >>> value, gradient = model.likelihood(np.zeros(1), Given(labels=[[0]]), np.array([0]))
    >>> round(value, 3), gradient.merged()[1].tolist()
    (-0.693, [0.5])
    """

    def __init__(self, **known: Sequence[Any]) -> None:
        self.known = known

    def __len__(self) -> int:
        return min(map(len, self.known.values()))

    def wanted(self, items: Items, batch: Any) -> Wanted:
        """Expected parts and log Z of the structures that agree with what is known."""
        agreeing = batch.given(**{name: [every[s] for s in items.tolist()] for name, every in self.known.items()})
        return Wanted(agreeing.marginals().values, agreeing.log_partition())


class Model(ABC):
    """A scorer with structures: log scores of the parts of each item, linear in the weights.

    A subclass says how many weights and items there are and writes `batch` and `gradient`; the other methods follow.
    Those that a subclass can do faster, it may write itself. `items` are numbers of items. What is called a gradient
    points to where scores rise.

    Examples
    --------
    A coin that is thrown once or twice, with a weight for each side; see also "a model of your own" in the docs.

    >>> from isogloss.structures import FactoredChains
    >>> class Coin(Model):
    ...     n_weights = 2
    ...     def __len__(self):
    ...         return 2
    ...     def batch(self, weights, items):
    ...         return FactoredChains([np.tile(weights, (s + 1, 1)) for s in items], np.zeros((2, 2)))
    ...     def gradient(self, items, batch, values, *, least=0.0):
    ...         each = batch.scores.like(values)
    ...         return Gradient.of([([0, 1], each[k].sum(axis=0)) for k in range(len(items))])
    >>> value, gradient = Coin().likelihood(np.zeros(2), Gold([[0], [0, 1]]), np.array([0, 1]))
    >>> round(value, 3), gradient.merged()[1].round(3).tolist()
    (-2.079, [0.5, -0.5])
    """

    dtype: ClassVar[DTypeLike] = np.float64
    """Of weights: float32 where there are many millions of them."""

    # --- what a subclass writes

    @property
    @abstractmethod
    def n_weights(self) -> int: ...

    @abstractmethod
    def __len__(self) -> int:
        """How many items there are."""

    @abstractmethod
    def batch(self, weights: NDArray[Any], items: Items, /) -> Batch[Any]:
        """The distributions of some items."""

    @abstractmethod
    def gradient(self, items: Items, batch: Batch[Any], values: Array, /, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the parts of `batch`, which is of these items; values up to `least` count as 0."""

    # --- what follows

    def distribution(self, weights: NDArray[Any], item: int) -> Structure:
        """The distribution of one item."""
        found: Structure = self.batch(weights, np.array([item], np.int64))[0]
        return found

    def support(self, items: Items) -> NDArray[np.int64] | None:
        """The weights that the items depend on, each once; None where to list them would take too long."""
        batch = self.batch(self._zeros, items)
        return self.gradient(items, batch, np.ones(len(batch.scores.values))).support()

    def difference(self, item: int, first: Any, second: Any) -> tuple[NDArray[np.int64], Array]:
        """Features of one structure less those of another: numbers of features, each once, and how much of each."""
        items = np.array([item], np.int64)
        batch = self.batch(self._zeros, items)
        return self.gradient(items, batch, batch.parts([first]).values - batch.parts([second]).values).merged()

    @cached_property
    def _zeros(self) -> NDArray[Any]:
        return kept(np.zeros(self.n_weights, self.dtype))

    def gold(self, structures: Sequence[Any]) -> Any:
        """Right structures, one for each item, as a target."""
        return self._one_each(Gold(structures))

    def soft(self, expected: Any) -> Any:
        """Distributions or expected parts, one for each item, as a target."""
        return self._one_each(Soft(expected))

    def _one_each(self, target: Any) -> Any:
        if len(target) != len(self):
            raise ParameterError(f"{self!r}: {len(target)} targets were given; give one for each item")
        return target

    def likelihood(
        self, weights: NDArray[Any], target: Any, items: Items, share: Share = 1.0, *, least: float = 0.0
    ) -> tuple[float, Gradient]:
        """Σ share · (E_target[score] − log Z) of some items, and its gradient Σ share · (E_target[f] − E[f])."""
        batch = self.batch(weights, items)
        marginals, wanted = batch.marginals().values, target.wanted(items, batch)
        found = wanted.values
        if found is None:
            found = item_sums(batch, wanted.parts)
        value = shared(share, found, batch.log_partition())
        parts = spread(share, batch.scores.offsets) * (wanted.parts - marginals)
        return value, self.gradient(items, batch, parts, least=least)

    def log_partition(self, weights: NDArray[Any], items: Items, share: float = 1.0) -> tuple[float, Gradient]:
        """share · Σ log Z of some items, and its gradient share · Σ E[f]."""
        batch = self.batch(weights, items)
        value = share * float(batch.log_partition().sum())
        return value, self.gradient(items, batch, share * batch.marginals().values)

    def add_likelihood(self, weights: Array, target: Any, out: Array, items: Items | None, share: float) -> float:
        """`likelihood` of some items, or of all; the gradient is added to `out`, which has room for all weights."""
        return self._added(lambda some: self.likelihood(weights, target, some, share), out, items)

    def add_log_partition(self, weights: Array, out: Array, items: Items | None, share: float) -> float:
        """`log_partition` of some items, or of all; the gradient is added to `out`."""
        return self._added(lambda some: self.log_partition(weights, some, share), out, items)

    def _added(self, part: Callable[[Items], tuple[float, Gradient]], out: Array, items: Items | None) -> float:
        total = 0.0
        for some in pieces(len(self), items):
            value, gradient = part(some)
            gradient.add_to(out)
            total += value
        return total


def pieces(n: int, items: Items | None, size: int = PIECE) -> Iterator[Items]:
    """Items, all if None, a few at a time and in order."""
    every = np.arange(n) if items is None else items
    return (every[start : start + size] for start in range(0, len(every), size))


def shared(share: Share, found: Array, totals: Array) -> float:
    """Σ share · (found − totals) over items."""
    if np.ndim(share):
        return float(np.sum(share * (found - totals)))
    return float(share) * (float(np.sum(found)) - float(totals.sum()))


def spread(share: Share, offsets: NDArray[np.int64]) -> Share:
    """The share of each part, where items have shares of their own."""
    return np.repeat(share, np.diff(offsets)) if np.ndim(share) else share


def item_sums(batch: Batch[Any], parts: Array) -> Array:
    """float64[n_items]: Σ parts · scores of each item, where parts that are not there may be forbidden."""
    terms = np.zeros(len(parts))
    used = np.flatnonzero(parts)
    terms[used] = parts[used] * batch.scores.values[used]
    return run_sums(terms, batch.scores.offsets)


class LinearModel(Model):
    r"""Any structures, whose parts are scored by features: :math:`scores = base + F w`.

    Parameters
    ----------
    structures : Batch, or sequence of structures
        One for each item. Their scores are the base, to which F w is added: 0 as a rule, −∞ to forbid, or what another
        model says. A batch is worked on by kernels on threads, a sequence one by one. For structures with several kinds
        of parts take `Flat`.
    features : Sparse
        One row for each part: those of the first structure in C order, then those of the second, and so on.

    Examples
    --------
    >>> from isogloss.structures import Chain
    >>> model = LinearModel([Chain(np.zeros((1, 2, 2)))], Sparse.of([[0], [1], [], []], 2))
    >>> model.distribution(np.log([3.0, 1.0]), 0).marginals()[0, 0].round(3).tolist()
    [0.75, 0.25]
    """

    def __init__(self, structures: Structures, features: Sparse) -> None:
        self.structures, self.features = structures, features
        self._all: Batch[Any] = structures if isinstance(structures, Batch) else Listed(structures)
        self._base, self._offsets = self._all.scores.values, self._all.scores.offsets
        if features.n_rows != self._offsets[-1]:
            raise ParameterError(
                f"LinearModel: the structures have {self._offsets[-1]} parts and the features {features.n_rows} rows"
            )

    def __repr__(self) -> str:
        return f"LinearModel({len(self)} items, {self.n_weights} weights)"

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @property
    def n_weights(self) -> int:
        return self.features.n_features

    def within(self, structures: Structures) -> LinearModel:
        """The same parts and features under other structures, such as those that agree with what is known."""
        return LinearModel(structures, self.features)

    # --- distributions

    def distributions(self, weights: ArrayLike) -> Batch[Any] | list[Structure]:
        """One for each item, as a batch if the model was made with one."""
        found = self._all.with_scores(self._all.scores.like(kept(self._base + self.features.scores(weights))))
        return found if isinstance(self.structures, Batch) else [found[s] for s in range(len(self))]

    def distribution(self, weights: ArrayLike, item: int) -> Structure:
        """The distribution of one item."""
        a, b = int(self._offsets[item]), int(self._offsets[item + 1])
        dist: Any = self._all[item]
        scores = self._base[a:b] + self.features.scores(weights, a, b)
        scored: Structure = dist.with_scores(scores.reshape(dist.scores.shape))
        return scored

    def batch(self, weights: NDArray[Any], items: Items) -> Batch[Any]:
        """The distributions of some items."""
        from isogloss.learners._numba.rows import score_rows

        F, some = self.features, self._all.take(items)
        scores = some.scores.values.copy()
        given = (self._offsets[items], some.scores.offsets, F.indptr, F.indices, F.values, F.dense)
        run_sentences(score_rows, len(items), *given, weights, scores)
        return some.with_scores(some.scores.like(kept(scores)))

    def gradient(self, items: Items, batch: Batch[Any], values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · row of features over the parts of `batch`."""
        from isogloss.learners._numba.rows import count_entries, emit_rows

        F, counts = self.features, np.empty(len(items), np.int64)
        parts = (self._offsets[items], batch.scores.offsets, F.indptr)
        run_sentences(count_entries, len(items), *parts, F.dense.shape[1], values, least, counts)
        ends = np.cumsum(counts)
        places = ends - counts
        numbers, out = np.empty(int(counts.sum()), np.int32), np.empty(int(counts.sum()))
        given = (*parts, F.indices, F.values, F.dense, F.n_indicators, values, least, places, numbers, out)
        run_sentences(emit_rows, len(items), *given)
        return Gradient(places, ends, numbers, out)

    def support(self, items: Items) -> NDArray[np.int64]:
        """The features that fire on some part of the items."""
        return self.features.support((int(self._offsets[s]), int(self._offsets[s + 1])) for s in items)

    def difference(self, item: int, first: Any, second: Any) -> tuple[NDArray[np.int64], Array]:
        """Features of `first` less those of `second`, two structures for one item."""
        dist: Any = self._all[item]
        parts = np.ravel(dist.parts(first) - dist.parts(second))
        a, b = int(self._offsets[item]), int(self._offsets[item + 1])
        at, scratch = self.features.support([(a, b)], parts), self._scratch
        self.features.add_totals(parts, scratch, a, b)
        much = scratch[at]
        scratch[at] = 0.0
        return at, much

    @cached_property
    def _scratch(self) -> Array:
        return np.zeros(self.n_weights)

    # --- targets

    def gold(self, structures: Sequence[Any]) -> _Parts:
        """The parts of right structures, one for each item."""
        self._one_each(structures)
        return self._checked([self._all[s].parts(structures[s]) for s in range(len(self))])

    def soft(self, expected: Any) -> _Parts:
        """Expected parts: arrays shaped like the scores of each item, or distributions, whose marginals are taken."""
        if isinstance(expected, Stack):
            return self._checked(list(expected))
        if isinstance(expected, Batch):
            return self._checked(list(expected.marginals()))
        return self._checked([q.marginals() if hasattr(q, "marginals") else q for q in self._one_each(expected)])

    def _checked(self, parts: Sequence[ArrayLike]) -> _Parts:
        flat = [np.ravel(np.asarray(array, np.float64)) for array in parts]
        for s in range(len(self)):
            a, b = int(self._offsets[s]), int(self._offsets[s + 1])
            if len(flat[s]) != b - a:
                raise ParameterError(f"{self!r}: item {s} has {b - a} parts, and its target {len(flat[s])}")
            if (flat[s][self._base[a:b] == -np.inf] > 0).any():
                raise ParameterError(f"{self!r}: the target of item {s} has parts that are forbidden")
        return _Parts(np.concatenate([np.zeros(0), *flat]), self._offsets)

    # --- all items together: features are walked by columns, on threads

    def add_likelihood(self, weights: Array, target: Any, out: Array, items: Items | None, share: float) -> float:
        """share · Σ (target · scores − log Z) of some items, or of all; its gradient is added to `out`."""
        if items is not None or not isinstance(target, _Parts):
            return super().add_likelihood(weights, target, out, items, share)
        scores, marginals, values = self._solved(weights)
        self.features.add_totals(share * (target.values - marginals), out)
        used = target.values > 0
        return share * (float(target.values[used] @ scores[used]) - float(values.sum()))

    def add_log_partition(self, weights: Array, out: Array, items: Items | None, share: float) -> float:
        """share · Σ log Z of some items, or of all; its gradient is added to `out`."""
        if items is not None:
            return super().add_log_partition(weights, out, items, share)
        _, marginals, values = self._solved(weights)
        self.features.add_totals(share * marginals, out)
        return share * float(values.sum())

    def _solved(self, weights: Array) -> tuple[Array, Array, Array]:
        """Scores and marginals of all parts, one after the other, and log Z of each item."""
        scores = kept(self._base + self.features.scores(weights))
        dists = self._all.with_scores(self._all.scores.like(scores))
        return scores, dists.marginals().values, dists.log_partition()


class TemplateModel(Model):
    r"""Any structures, whose parts are scored by templates that are walked whenever they are asked for.

    :math:`scores = base + F w` as in `LinearModel`, where F is never stored: features cost time and no memory, and are
    numbered by hashing or by an index.

    Parameters
    ----------
    structures : Batch, or sequence of structures
        One for each item; their scores are the base.
    scorer : TemplateScorer
        Over the parts of all structures: those of the first in C order, then those of the second, and so on.

    Examples
    --------
    >>> from isogloss.features import Axis, Hashed, Templates, positions
    >>> from isogloss.features.scorer import TemplateScorer
    >>> from isogloss.structures import Matching
    >>> words = Axis([0, 2, 3], word=[4, 5, 4])
    >>> model = TemplateModel(
    ...     [Matching(np.zeros((1, 2))), Matching(np.zeros((1, 1)))],           # one word against those of each item
    ...     TemplateScorer(Templates(["word"]), positions(words), Hashed(10)),
    ... )
    >>> value, gradient = model.likelihood(np.zeros(1024, np.float32), model.gold([{(0, 0)}, set()]), np.array([0, 1]))
    >>> round(value, 3), gradient.merged()[1].round(3).tolist()
    (-1.792, [0.167, -0.333])
    """

    dtype: ClassVar[DTypeLike] = np.float32

    def __init__(self, structures: Structures, scorer: TemplateScorer) -> None:
        self.structures: Batch[Any] = structures if isinstance(structures, Batch) else Listed(structures)
        self.scorer = scorer
        if not np.array_equal(self.structures.scores.offsets, scorer.parts.offsets):
            raise ParameterError(
                f"TemplateModel: the structures have {self.structures.scores.offsets[-1]} parts in {len(self)} items, "
                f"and the scorer {scorer.parts.n_parts} in {len(scorer)}; they should be the same, item by item"
            )

    def __repr__(self) -> str:
        return f"TemplateModel({len(self)} items, {self.n_weights} weights)"

    def __len__(self) -> int:
        return len(self.structures)

    @property
    def n_weights(self) -> int:
        return self.scorer.n_features

    def batch(self, weights: NDArray[Any], items: Items) -> Batch[Any]:
        """The distributions of some items."""
        some = self.structures.take(items)
        return some.with_scores(some.scores.like(kept(some.scores.values + self.scorer.scores(weights, items))))

    def gradient(self, items: Items, batch: Batch[Any], values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the parts of `batch`: templates are walked again."""
        return self.scorer.gradient(values, items, least=least)

    def within(self, structures: Structures) -> TemplateModel:
        """The same parts and features under other structures, such as those that agree with what is known."""
        return TemplateModel(structures, self.scorer)


class Scaled(Model):
    r"""A model whose features have values of their own: :math:`scores = F\, \mathrm{diag}(s)\, w`.

    Features with scale 0 are not there; with all scales 1 it is the model itself. Weights times scales are those of the
    model without scales.

    Parameters
    ----------
    model : Model
    scales : float[n_weights]

    Examples
    --------
    >>> from isogloss.features.sparse import Sparse
    >>> from isogloss.structures import Chain
    >>> coin = LinearModel([Chain(np.zeros((1, 2, 2)))], Sparse.of([[0], [1], [], []], 2))
    >>> value, gradient = Scaled(coin, [0.5, 0.0]).likelihood(np.zeros(2), coin.gold([[0]]), np.array([0]))
    >>> round(value, 3), gradient.merged()[1].tolist()
    (-0.693, [0.25, 0.0])
    """

    def __init__(self, model: Model, scales: ArrayLike) -> None:
        self.model, self.scales = model, np.asarray(scales, model.dtype)
        if self.scales.shape != (model.n_weights,) or not np.isfinite(self.scales).all():
            raise ParameterError(f"Scaled: scales should be {model.n_weights} finite numbers, one for each weight")

    @property
    def dtype(self) -> DTypeLike:  # type: ignore[override]
        """Of weights."""
        return self.model.dtype

    def __repr__(self) -> str:
        return f"Scaled({self.model!r})"

    def __len__(self) -> int:
        return len(self.model)

    @property
    def n_weights(self) -> int:
        return self.model.n_weights

    def _times(self, weights: NDArray[Any]) -> NDArray[Any]:
        return kept(np.asarray(weights * self.scales))

    def _back(self, gradient: Gradient) -> Gradient:
        packed = Gradient.joined([gradient])  # there may be anything in gaps
        return replace(packed, values=packed.values * self.scales[packed.numbers])

    def batch(self, weights: NDArray[Any], items: Items) -> Batch[Any]:
        """The distributions of some items."""
        return self.model.batch(self._times(weights), items)

    def gradient(self, items: Items, batch: Batch[Any], values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · scale · features over the parts of `batch`."""
        return self._back(self.model.gradient(items, batch, values, least=least))

    def support(self, items: Items) -> NDArray[np.int64] | None:
        """The weights that the items depend on."""
        return self.model.support(items)

    def likelihood(
        self, weights: NDArray[Any], target: Any, items: Items, share: Share = 1.0, *, least: float = 0.0
    ) -> tuple[float, Gradient]:
        """That of the model, at weights times scales."""
        value, gradient = self.model.likelihood(self._times(weights), target, items, share, least=least)
        return value, self._back(gradient)


class _Parts(NamedTuple):
    """Expected parts of all items of a `LinearModel`, one after the other."""

    values: Array
    offsets: NDArray[np.int64]

    def wanted(self, items: Items, batch: Batch[Any]) -> Wanted:
        """Those of some items."""
        return Wanted(self.values[gathered(self.offsets, items)[1]])
