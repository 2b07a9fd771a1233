"""`ChainModel`: conditional random fields over whole corpora.

An attribute is what is seen at a position (the word, its ending, the word before); a weight belongs to an attribute and
a label. Scores of labels are sums over the attributes of a position; they are never written out as features of parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.ragged import Ragged
from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ModelError, ParameterError
from isogloss.features.gradients import Gradient
from isogloss.features.sparse import ENTRIES_PER_BLOCK, ROWS_PER_BLOCK, Sparse
from isogloss.learners._vectors import dot
from isogloss.learners.models import Model, Share
from isogloss.structures import Chain, Chains, FactoredChain, FactoredChains
from isogloss.structures.batch import Batch
from isogloss.structures.factored_chain import StepCounts

__all__ = ["ChainModel", "LabelPairs", "NodeFeatures"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
ALL = np.zeros(0, np.int64)  # rows: every one


class LabelPairs:
    """Which attributes have a weight for which labels.

    Parameters
    ----------
    starts : int64[n_attributes + 1]
        Attribute *a* has weights for ``labels[starts[a]:starts[a + 1]]``, ascending.
    labels : int32[n_pairs]
    k : int
        Number of labels.
    """

    def __init__(self, starts: ArrayLike, labels: ArrayLike, k: int) -> None:
        self.starts = np.ascontiguousarray(starts, np.int64)
        self.labels = np.ascontiguousarray(labels, np.int32)
        self.k = k
        inside = len(self.labels) == 0 or 0 <= self.labels.min() <= self.labels.max() < k
        if (np.diff(self.starts) < 0).any() or self.starts[-1] != len(self.labels) or not inside:
            raise ModelError("LabelPairs: starts and labels do not belong together. Is the saved model damaged?")

    @classmethod
    def all(cls, n_attributes: int, k: int) -> LabelPairs:
        """Every label for every attribute."""
        return cls(np.arange(n_attributes + 1) * k, np.tile(np.arange(k), n_attributes), k)

    @classmethod
    def supported(cls, attributes: Sparse, labels: ArrayLike, k: int, *, min_count: int = 1) -> LabelPairs:
        """Those met at least `min_count` times in training; `labels` has one for each position, −1 for none."""
        from isogloss.learners._numba.nodes import mark_pairs

        gold = _labels(labels, attributes.n_rows, k, least=-1)
        counts = np.zeros(attributes.n_indicators * k, np.int32)
        mark_pairs(attributes.indptr, attributes.indices, gold, k, counts)
        held = np.flatnonzero(counts >= min_count)
        starts = np.searchsorted(held, np.arange(attributes.n_indicators + 1) * k)
        return cls(starts, held % k, k)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        return {"starts": self.starts, "labels": self.labels}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], k: int) -> LabelPairs:
        """The inverse of `to_arrays`."""
        return cls(arrays["starts"], arrays["labels"], k)


class NodeFeatures:
    r"""Scores of labels at positions: :math:`nodes = A W`, with A sparse and W having weights for some pairs only.

    Parameters
    ----------
    attributes : Sparse
        A[n_positions, n_attributes]; its dense columns are real-valued attributes, which have weights for all labels.
    pairs : LabelPairs

    Examples
    --------
    >>> features = NodeFeatures(Sparse.of([[0, 1], [1]], 2), LabelPairs.all(2, 2))
    >>> features.nodes([1.0, 2.0, 10.0, 20.0]).tolist()
    [[11.0, 22.0], [10.0, 20.0]]
    """

    def __init__(self, attributes: Sparse, pairs: LabelPairs) -> None:
        if len(pairs.starts) != attributes.n_indicators + 1 or len(attributes.values):
            raise ParameterError(
                f"NodeFeatures: pairs are for {len(pairs.starts) - 1} attributes, and there are "
                f"{attributes.n_indicators}; entries should all be 1"
            )
        self.attributes, self.pairs = attributes, pairs

    @property
    def k(self) -> int:
        """Number of labels."""
        return self.pairs.k

    @property
    def n_weights(self) -> int:
        """One for each pair, then k for each real-valued attribute."""
        return len(self.pairs.labels) + int(self.attributes.dense.shape[1]) * self.k

    def __repr__(self) -> str:
        return f"NodeFeatures({self.attributes.n_rows} positions, k={self.k}, {self.n_weights} weights)"

    def nodes(self, weights: ArrayLike, rows: Integers = ALL) -> Array:
        """float64[n, k]: the score of each label at the positions `rows`, or at all."""
        from isogloss.learners._numba.nodes import node_scores

        vector = np.ascontiguousarray(weights, np.float64)
        if vector.shape != (self.n_weights,):
            raise ParameterError(f"{self!r}: weights should be {self.n_weights} numbers, not {list(vector.shape)}")
        A, n = self.attributes, len(rows) or self.attributes.n_rows
        out = np.empty((n, self.k))
        args = (
            rows,
            A.indptr,
            A.indices,
            A.dense,
            self.pairs.starts,
            self.pairs.labels,
            vector,
            self.k,
            out.reshape(-1),
        )
        blocks = 8 * n // ROWS_PER_BLOCK
        if blocks <= 1:
            node_scores(0, 1, *args)
            return out
        with using_threads():
            run_blocks(node_scores, blocks, *args)
        return out

    def add_totals(self, x: Array, out: Array, rows: Integers = ALL, scale: float = 1.0) -> None:
        """Add scale · Aᵀ x, float64[n_weights], to `out`; x is float64[n, k] over the positions `rows`, or over all."""
        from isogloss.learners._numba.nodes import gather_nodes, gather_real, scatter_nodes

        A, starts, labels = self.attributes, self.pairs.starts, self.pairs.labels
        flat = np.ascontiguousarray(x, np.float64).reshape(-1)
        flat.flags.writeable = False  # of this view: so that kernels are compiled for one type, that of marginals
        by_rows = (rows, A.indptr, A.indices, A.dense, starts, labels, scale, flat, self.k, out)
        if len(rows) or len(A.indices) < ENTRIES_PER_BLOCK:
            scatter_nodes(*by_rows)
            return
        with using_threads() as threads:
            if threads == 1:
                scatter_nodes(*by_rows)
                return
            columns, positions, _, cuts = A.by_column
            run_blocks(gather_nodes, len(cuts) - 1, cuts, columns, positions, starts, labels, scale, flat, self.k, out)
            if A.dense.shape[1]:
                run_blocks(gather_real, A.dense.shape[1], A.dense, scale, flat, self.k, out[len(labels) :])

    def support(self, ranges: Iterable[tuple[int, int]]) -> Integers:
        """The weights on which the scores in the given ranges of positions depend."""
        found = self.attributes.support(ranges)
        found = found[found < self.attributes.n_indicators]
        first = self.pairs.starts[found]
        many = self.pairs.starts[found + 1] - first
        ends = np.cumsum(many)
        pairs = np.arange(int(many.sum())) + np.repeat(first - ends + many, many)
        return np.concatenate([pairs, np.arange(len(self.pairs.labels), self.n_weights)])


class _Shared(NamedTuple):
    """Weights of steps that all positions share."""

    transitions: Array
    pairs: Array | None
    start: Array | None
    end: Array | None


class _Target(NamedTuple):
    """Labels of all positions, or distributions over them; and the features of all of them together."""

    labels: Integers | None
    q: FactoredChains | None
    totals: Array


class ChainModel(Model):
    """A conditional random field: one chain for each sentence, with scores of labels from attributes.

    The weights are those of `features`, then transitions [k, k] (order 2: transitions [k, k, k] and pairs [k, k]), and,
    with `ends`, one for each first and each last label. `split` gives them by name.

    Parameters
    ----------
    features : NodeFeatures
        Over the positions of all sentences, one after the other.
    lengths : int[n_sentences]
        Positions of each sentence.
    order : int
        1 or 2.
    ends : bool
        Whether first and last labels have weights of their own.
    allowed : bool[n_positions, k], optional
        Labels that a position may have.
    moves : bool[k + 1, k], optional
        Labels that may follow each label; the last row has those that may begin a sentence. Others are forbidden, and
        their weights stay as they are.

    Examples
    --------
    >>> features = NodeFeatures(Sparse.of([[0], [1], [0]], 2), LabelPairs.all(2, 3))
    >>> model = ChainModel(features, [2, 1], ends=False)
    >>> model.n_weights, len(model), [y.tolist() for y in model.distributions(np.zeros(15)).argmax()]
    (15, 2, [[0, 0], [0]])
    >>> rising = ChainModel(features, [2, 1], ends=False, moves=[[0, 1, 1], [0, 0, 1], [0, 0, 0], [1, 1, 1]])
    >>> np.exp(rising.distributions(np.zeros(15)).log_partition()).round(6).tolist()
    [3.0, 3.0]
    """

    def __init__(
        self,
        features: NodeFeatures,
        lengths: ArrayLike,
        *,
        order: int = 1,
        ends: bool = True,
        allowed: ArrayLike | None = None,
        moves: ArrayLike | None = None,
    ) -> None:
        self.features, self.lengths = features, np.ascontiguousarray(lengths, np.int64)
        self.order, self.ends = order, ends
        n, k = features.attributes.n_rows, features.k
        if order not in (1, 2):
            raise ParameterError(f"ChainModel: order should be 1 or 2, not {order!r}")
        if self.lengths.ndim != 1 or (self.lengths < 0).any() or self.lengths.sum() != n:
            raise ParameterError(f"ChainModel: lengths should add up to {n} positions, not {self.lengths.sum()}")
        self.allowed = None if allowed is None else np.asarray(allowed)
        if self.allowed is not None and (self.allowed.dtype != np.bool_ or self.allowed.shape != (n, k)):
            raise ParameterError(f"ChainModel: allowed should be bool{[n, k]}, not {list(self.allowed.shape)}")
        self.moves = None if moves is None else np.asarray(moves, np.bool_)
        if self.moves is not None and self.moves.shape != (k + 1, k):
            raise ParameterError(f"ChainModel: moves should be bool{[k + 1, k]}, not {list(self.moves.shape)}")
        self._starts = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    def __repr__(self) -> str:
        return f"ChainModel({len(self)} sentences, k={self.k}, {self.n_weights} weights)"

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def k(self) -> int:
        """Number of labels."""
        return self.features.k

    @cached_property
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        k = self.k
        return ((k,) * (self.order + 1), *([(k, k)] if self.order == 2 else []), *([(k,), (k,)] if self.ends else []))

    @property
    def n_weights(self) -> int:
        return self.features.n_weights + sum(int(np.prod(shape)) for shape in self._shapes)

    def within(self, allowed: ArrayLike) -> ChainModel:
        """The same model with fewer labels allowed, such as those that agree with what is known."""
        mask = np.asarray(allowed)
        both = mask if self.allowed is None else mask & self.allowed
        return ChainModel(self.features, self.lengths, order=self.order, ends=self.ends, allowed=both, moves=self.moves)

    # --- distributions

    def split(self, weights: Array) -> tuple[Array, _Shared]:
        """Weights of the features; `transitions`, `pairs`, `start` and `end` (None where the model has none)."""
        sizes = [self.features.n_weights, *(int(np.prod(shape)) for shape in self._shapes)]
        own, *shared = np.split(weights, np.cumsum(sizes)[:-1])
        tables = [array.reshape(shape) for array, shape in zip(shared, self._shapes, strict=True)]
        pairs = tables.pop(1) if self.order == 2 else None
        start, end = tables[1:] if self.ends else (None, None)
        return own, _Shared(tables[0], pairs, start, end)

    def distributions(self, weights: ArrayLike, items: Integers | None = None) -> FactoredChains:
        """The chains of all sentences, or of some."""
        own, shared = self.split(np.asarray(weights, np.float64))
        rows = ALL if items is None else self._rows(items)
        lengths = self.lengths if items is None else self.lengths[items]
        nodes = np.zeros((0, self.k)) if items is not None and not len(rows) else self.features.nodes(own, rows)
        if self.allowed is not None:
            nodes[~(self.allowed if items is None else self.allowed[rows])] = -np.inf
        shared = self._permitted(shared)
        return FactoredChains.packed(nodes, lengths, shared.transitions, shared.start, shared.end, pairs=shared.pairs)

    def _permitted(self, shared: _Shared) -> _Shared:
        """Scores of steps, −∞ for those that are forbidden."""
        if self.moves is None:
            return shared
        steps = shared.transitions if shared.pairs is None else shared.pairs
        steps = np.where(self.moves[:-1], steps, -np.inf)
        start = np.where(self.moves[-1], 0.0 if shared.start is None else shared.start, -np.inf)
        if shared.pairs is None:
            return shared._replace(transitions=steps, start=start)
        return shared._replace(pairs=steps, start=start)

    def distribution(self, weights: ArrayLike, item: int) -> FactoredChain:
        """The chain of one sentence; its parts are labels at positions."""
        return self.distributions(weights, np.array([item]))[0]

    def batch(self, weights: NDArray[Any], items: Integers) -> Chains:
        """The chains of some sentences with all steps written out, so that every weight is of some part."""
        chains = self.distributions(weights, items)
        return Chain.batch([chains[s].chain.scores for s in range(len(items))])

    def gradient(self, items: Integers, batch: Batch[Any], values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the steps of `batch`."""
        each, found = batch.scores.like(np.where(np.abs(values) > least, values, 0.0)), []
        for at, item in enumerate(items.tolist()):
            steps, n = each[at], int(self.lengths[item])
            nodes = steps.sum(axis=tuple(range(1, self.order + 1)))
            tables = [steps[self.order :].sum(axis=0)]
            if self.order == 2:
                tables.append(steps[1:2].sum(axis=(0, 1)) + steps[2:].sum(axis=(0, 1)))
            if self.ends:
                tables += [nodes[:1].sum(axis=0), nodes[-1:].sum(axis=0)]
            rows = np.arange(int(self._starts[item]), int(self._starts[item]) + n)
            numbers, slope = self.support(items[at : at + 1]), self._scratch
            if n:
                self.features.add_totals(nodes, slope[: self.features.n_weights], rows)
            slope[self.features.n_weights :] = np.concatenate([table.ravel() for table in tables])
            found.append((numbers, slope[numbers]))
            slope[numbers] = 0.0
        return Gradient.of(found)

    def _rows(self, items: Integers) -> Integers:
        lengths = self.lengths[items]
        ends = np.cumsum(lengths)
        return np.arange(int(lengths.sum())) + np.repeat(self._starts[items] - ends + lengths, lengths)

    def support(self, items: Integers) -> Integers:
        """The weights of attributes in these sentences, and all that positions share."""
        own = self.features.support((int(self._starts[s]), int(self._starts[s + 1])) for s in items)
        return np.concatenate([own, np.arange(self.features.n_weights, self.n_weights)])

    # --- targets

    def gold(self, structures: Sequence[ArrayLike] | Ragged) -> _Target:
        """The right labels of every sentence."""
        rows = list(structures)
        if len(rows) != len(self) or any(len(row) != n for row, n in zip(rows, self.lengths, strict=True)):  # type: ignore[arg-type]
            raise ParameterError(f"{self!r}: give labels for every position of every sentence")
        labels = _labels(np.concatenate([np.zeros(0, np.int64), *rows]), int(self._starts[-1]), self.k)
        if self.allowed is not None and not self.allowed[np.arange(len(labels)), labels].all():
            at = int(np.flatnonzero(~self.allowed[np.arange(len(labels)), labels])[0])
            s = int(np.searchsorted(self._starts, at, side="right")) - 1
            raise ParameterError(f"{self!r}: sentence {s}, position {at - self._starts[s]}: the label is not allowed")
        if self.moves is not None and len(labels):
            before = np.where(self._since > 0, np.concatenate([[0], labels[:-1]]), self.k)
            if not self.moves[before, labels].all():
                at = int(np.flatnonzero(~self.moves[before, labels])[0])
                s = int(np.searchsorted(self._starts, at, side="right")) - 1
                raise ParameterError(f"{self!r}: sentence {s}, position {at - self._starts[s]}: a step is forbidden")
        nodes = np.zeros((len(labels), self.k))
        nodes[np.arange(len(labels)), labels] = 1.0
        return _Target(labels, None, self._totals(nodes, self._steps_of(labels, np.arange(len(labels)))))

    def soft(self, expected: FactoredChains) -> _Target:
        """Distributions over the labels of every sentence, such as those that a projection gives."""
        if not np.array_equal(expected.lengths, self.lengths) or expected.k != self.k or expected.order != self.order:
            raise ParameterError(f"{self!r}: {expected!r} is of other sentences, labels or order")
        nodes = expected.marginals().values.reshape(-1, self.k)
        return _Target(None, expected, self._totals(nodes, self._steps(expected.counts())))

    def _totals(self, nodes: Array, steps: Array) -> Array:
        out = np.zeros(self.n_weights)
        self._add(nodes, steps, out, None, 1.0)
        return out

    def _steps(self, counts: StepCounts) -> Array:
        """Counts of shared steps in the order of the weights."""
        tables = [counts.transitions, *([counts.pairs] if self.order == 2 else [])]
        return np.concatenate(
            [table.ravel() for table in (*tables, *([counts.start, counts.end] if self.ends else []))]
        )

    def _steps_of(self, labels: Integers, rows: Integers) -> Array:
        """The same for label sequences: ``labels[rows]``, where `rows` are whole sentences; `labels` has all."""
        k, since = self.k, self._since[rows]
        second = rows[since >= 1]
        pairs = labels[second - 1] * k + labels[second]
        codes, sizes = [pairs], [k * k]
        if self.order == 2:
            third = rows[since >= 2]
            codes, sizes = [labels[third - 2] * k * k + labels[third - 1] * k + labels[third], pairs], [k**3, k * k]
        if self.ends:
            codes += [labels[rows[since == 0]], labels[rows[self._until[rows] == 1]]]
            sizes += [k, k]
        tables = [np.bincount(code, minlength=size) for code, size in zip(codes, sizes, strict=True)]
        return np.concatenate(tables).astype(np.float64)

    @cached_property
    def _since(self) -> Integers:
        """Positions before each one in its sentence."""
        return np.arange(self._starts[-1]) - np.repeat(self._starts[:-1], self.lengths)

    @cached_property
    def _until(self) -> Integers:
        """Positions from each one to the end of its sentence."""
        return np.repeat(self.lengths, self.lengths) - self._since

    # --- sums

    def likelihood(
        self, weights: NDArray[Any], target: Any, items: Integers, share: Share = 1.0, *, least: float = 0.0
    ) -> tuple[float, Gradient]:
        """Σ share · (E_target[score] − log Z) of some sentences, and its gradient."""
        if np.ndim(share):  # sentence by sentence: kernels multiply all with one number
            each = [
                self.likelihood(weights, target, items[k : k + 1], float(one), least=least)
                for k, one in enumerate(np.asarray(share).tolist())
            ]
            return sum(value for value, _ in each), Gradient.joined([gradient for _, gradient in each])
        share = float(share)
        if not isinstance(target, _Target):
            return super().likelihood(weights, target, items, share, least=least)
        return self._listed(lambda out: self.add_likelihood(weights, target, out, items, share), items)

    def log_partition(self, weights: NDArray[Any], items: Integers, share: float = 1.0) -> tuple[float, Gradient]:
        """share · Σ log Z of some sentences, and its gradient."""
        return self._listed(lambda out: self.add_log_partition(weights, out, items, share), items)

    def _listed(self, add: Callable[[Array], float], items: Integers) -> tuple[float, Gradient]:
        """What is added to a vector over all weights, as lists."""
        slope = self._scratch
        value, numbers = add(slope), self.support(items)
        gradient = Gradient.of([(numbers, slope[numbers])])
        slope[numbers] = 0.0
        return value, gradient

    def _add(self, nodes: Array, steps: Array, out: Array, rows: Integers | None, share: float) -> None:
        own = self.features.n_weights
        if len(nodes):
            self.features.add_totals(nodes, out[:own], ALL if rows is None else rows, share)
        out[own:] += share * steps

    def add_log_partition(self, weights: Array, out: Array, items: Integers | None, share: float) -> float:
        """share · Σ log Z, and its gradient."""
        chains = self.distributions(weights, items)
        nodes = chains.marginals().values.reshape(-1, self.k)
        self._add(nodes, self._steps(chains.counts()), out, None if items is None else self._rows(items), share)
        return share * float(chains.log_partition().sum())

    def add_latent(self, weights: Array, allowed: ArrayLike, out: Array, items: Integers | None, share: float) -> float:
        """share · Σ (log Z of what is allowed − log Z), and its gradient: scores are made and gathered once for both.

        allowed : bool[n_positions, k]
        """
        rows = None if items is None else self._rows(items)
        chains = self.distributions(weights, items)
        mask = np.asarray(allowed, np.bool_) if rows is None else np.asarray(allowed, np.bool_)[rows]
        inside = chains.with_scores(chains.scores.like(np.where(mask.ravel(), chains.scores.values, -np.inf)))
        nodes = (inside.marginals().values - chains.marginals().values).reshape(-1, self.k)
        self._add(nodes, self._steps(inside.counts()) - self._steps(chains.counts()), out, rows, share)
        return share * float((inside.log_partition() - chains.log_partition()).sum())

    def add_likelihood(self, weights: Array, target: Any, out: Array, items: Integers | None, share: float) -> float:
        """share · Σ (E_target[score] − log Z), and its gradient."""
        if not isinstance(target, _Target):
            return super().add_likelihood(weights, target, out, items, share)
        if items is None:
            out += share * target.totals
            return share * dot(weights, target.totals) + self.add_log_partition(weights, out, None, -share)
        rows = self._rows(items)
        if target.labels is not None:
            nodes = np.zeros((len(rows), self.k))
            nodes[np.arange(len(rows)), target.labels[rows]] = 1.0
            steps = self._steps_of(target.labels, rows)
        else:
            assert target.q is not None
            nodes = target.q.marginals().values.reshape(-1, self.k)[rows]
            steps = np.sum([self._steps(target.q[int(s)].counts()) for s in items], axis=0)
        chains = self.distributions(weights, items)
        used = nodes > 0
        value = float(nodes[used] @ chains.scores.values.reshape(-1, self.k)[used])
        value += float(weights[self.features.n_weights :] @ steps)
        residual = nodes - chains.marginals().values.reshape(-1, self.k)
        self._add(residual, steps - self._steps(chains.counts()), out, rows, share)
        return share * (value - float(chains.log_partition().sum()))

    def difference(self, item: int, first: ArrayLike, second: ArrayLike) -> tuple[Integers, Array]:
        """Features of one label sequence less those of another, for one sentence."""
        scratch = self._scratch
        one, other = (_labels(y, int(self.lengths[item]), self.k) for y in (first, second))
        differs = np.flatnonzero(one != other)
        start = int(self._starts[item])
        at = self.features.support((start + int(t), start + int(t) + 1) for t in differs)
        nodes = np.zeros((len(differs), self.k))
        nodes[np.arange(len(differs)), one[differs]] += 1.0
        nodes[np.arange(len(differs)), other[differs]] -= 1.0
        if len(differs):
            self.features.add_totals(nodes, scratch[: self.features.n_weights], start + differs)
        much = scratch[at]
        scratch[at] = 0.0
        steps = self._steps_alone(one) - self._steps_alone(other)
        used = np.flatnonzero(steps)
        return np.concatenate([at, self.features.n_weights + used]), np.concatenate([much, steps[used]])

    def _steps_alone(self, labels: Integers) -> Array:
        """Shared steps of one sequence."""
        bare = FactoredChains.packed(np.zeros((len(labels), self.k)), [len(labels)], np.zeros(self._shapes[0]))
        return self._steps(bare.counts_of([labels]))

    @cached_property
    def _scratch(self) -> Array:
        return np.zeros(self.n_weights)


def _labels(labels: ArrayLike, n: int, k: int, least: int = 0) -> Integers:
    array = np.asarray(labels)
    if array.shape != (n,) or (n and (array.dtype.kind not in "iu" or not least <= array.min() <= array.max() < k)):
        raise ParameterError(f"labels should be {n} integers from {least} to {k - 1}, one for each position")
    return np.ascontiguousarray(array, np.int64)
