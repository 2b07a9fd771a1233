"""`SegmentModel`: semi-Markov conditional random fields over whole corpora."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import gathered
from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.learners.chain_model import NodeFeatures
from isogloss.learners.models import Gold, Model, Share, Wanted, item_sums, pieces, shared, spread
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch, Stack, run_sentences
from isogloss.structures.semimarkov import SemiMarkov, SemiMarkovs, n_segment_parts
from isogloss.structures.semimarkov2 import n_word_spans

__all__ = ["SegmentModel", "SegmentWeights"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class SegmentWeights(NamedTuple):
    """Weights by what they are of."""

    nodes: NDArray[Any]
    spans: NDArray[Any]
    steps: NDArray[Any]
    """[k, k]: from label to label."""
    start: NDArray[Any]
    end: NDArray[Any]


class SegmentModel(Model):
    r"""Sentences cut into labelled segments, with scores of positions and of whole segments from attributes.

    .. math:: s(b, e, y) = nodes[b, first_y] + \sum_{b < t < e} nodes[t, inside_y] + spans[(b, e), y]

    and weights for each pair of neighbouring labels, for the first and for the last: a `SemiMarkov` for each sentence.
    Attributes of positions do what those of a chain do; attributes of spans see a segment as a whole.

    Parameters
    ----------
    nodes : NodeFeatures
        Over all positions, with a column for each role that a position may have.
    spans : NodeFeatures
        Over all spans of up to `longest` positions, by their first position and then by their length, as
        `isogloss.features.spans` lists them; its labels are those of segments.
    lengths : int[n_sentences]
        Positions of each sentence.
    longest : int
        The most positions of a segment.
    first, inside : int[k]
        The columns of positions where a segment of each label begins, and where it goes on; −1 as `inside` for labels
        whose segments have one position.

    References
    ----------
    Sarawagi and Cohen, NIPS 2004; scores of positions and of segments together as in Ye and Ling, Hybrid semi-Markov
    CRF for neural sequence labeling, ACL 2018, without the network.

    Examples
    --------
    >>> from isogloss.features.sparse import Sparse
    >>> from isogloss.learners.chain_model import LabelPairs
    >>> nodes = NodeFeatures(Sparse.of([[0], [1], [0]], 2), LabelPairs.all(2, 2))
    >>> spans = NodeFeatures(Sparse.of([[], [0], [], [0], []], 1), LabelPairs.all(1, 1))
    >>> model = SegmentModel(nodes, spans, [3], 2, first=[0], inside=[1])
    >>> model.n_weights, np.exp(model.batch(np.zeros(8), np.array([0])).log_partition()).round(6).tolist()
    (8, [3.0])
    """

    def __init__(
        self,
        nodes: NodeFeatures,
        spans: NodeFeatures,
        lengths: ArrayLike,
        longest: int,
        *,
        first: ArrayLike,
        inside: ArrayLike,
    ) -> None:
        self.nodes, self.spans, self.longest = nodes, spans, int(longest)
        self.lengths = np.ascontiguousarray(lengths, np.int64)
        self.first, self.inside = np.ascontiguousarray(first, np.int64), np.ascontiguousarray(inside, np.int64)
        k, columns = spans.k, nodes.k
        if self.first.shape != (k,) or self.inside.shape != (k,):
            raise ParameterError(f"SegmentModel: first and inside should have {k} columns, one for each label")
        for name, given, least in (("first", self.first, 0), ("inside", self.inside, -1)):
            if k and not (given.min() >= least and given.max() < columns):
                raise ParameterError(f"SegmentModel: {name} should have columns from {least} to {columns - 1}")
        if self.longest < 1:
            raise ParameterError(f"SegmentModel: longest should be 1 or more, not {longest!r}")
        self._positions = _offsets(self.lengths)
        self._rows = _offsets(n_word_spans(self.lengths, self.longest))
        for name, found, wanted in (
            ("positions", nodes.attributes.n_rows, int(self._positions[-1])),
            ("spans", spans.attributes.n_rows, int(self._rows[-1])),
        ):
            if found != wanted:
                raise ParameterError(f"SegmentModel: attributes of {found} {name}, where sentences have {wanted}")

    def __repr__(self) -> str:
        return f"SegmentModel({len(self)} sentences, k={self.k}, {self.n_weights} weights)"

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def k(self) -> int:
        """Number of labels."""
        return self.spans.k

    @cached_property
    def _borders(self) -> list[int]:
        sizes = [self.nodes.n_weights, self.spans.n_weights, self.k**2, self.k, self.k]
        return [int(x) for x in np.cumsum([0, *sizes])]

    @property
    def n_weights(self) -> int:
        return self._borders[-1]

    def split(self, weights: NDArray[Any]) -> SegmentWeights:
        """Weights by what they are of; they share the memory."""
        nodes, spans, steps, start, end = np.split(weights, self._borders[1:-1])
        return SegmentWeights(nodes, spans, steps.reshape(self.k, self.k), start, end)

    def gold(self, structures: Sequence[Any]) -> GoldSegments:
        """The right segments of each sentence, as a target."""
        self._one_each(structures)
        return GoldSegments(structures, self)

    # --- distributions

    def _layout(self, items: Integers) -> tuple[Any, ...]:
        lengths = self.lengths[items]
        sizes, rows = n_segment_parts(lengths, self.longest, self.k), n_word_spans(lengths, self.longest)
        before = [np.cumsum(each) - each for each in (sizes, lengths, rows)]
        return (lengths, *before, self.longest, self.first, self.inside)

    def batch(self, weights: NDArray[Any], items: Integers) -> SemiMarkovs:
        """Segmentations of some sentences."""
        from isogloss.learners._numba.segments import gather_segments

        own = self.split(np.asarray(weights, np.float64))
        sizes = n_segment_parts(self.lengths[items], self.longest, self.k)
        out, layout = np.empty(int(sizes.sum())), self._layout(items)
        nodes, spans = self._scores(self.nodes, own.nodes, self._positions, items), self._scores(
            self.spans, own.spans, self._rows, items
        )  # fmt: skip
        shared = [np.ascontiguousarray(table) for table in (own.steps, own.start, own.end)]
        run_sentences(gather_segments, len(items), *layout, nodes, spans, *shared, out)
        return SemiMarkovs(
            Stack(kept(out), _offsets(sizes), sizes[:, np.newaxis]), self.lengths[items], self.longest, self.k
        )

    @staticmethod
    def _scores(features: NodeFeatures, weights: Array, offsets: Integers, items: Integers) -> Array:
        _, rows = gathered(offsets, items)
        return features.nodes(weights, rows) if len(rows) else np.zeros((0, features.k))

    def _spread(self, items: Integers, values: Array) -> tuple[Array, Array, Array]:
        """What positions, spans and shared weights of each sentence have of a vector over parts."""
        from isogloss.learners._numba.segments import spread_segments

        layout = self._layout(items)
        lengths, rows = layout[0], n_word_spans(layout[0], self.longest)
        nodes, spans = np.empty((int(lengths.sum()), self.nodes.k)), np.empty((int(rows.sum()), self.k))
        shared = np.empty((len(items), self.k**2 + 2 * self.k))
        run_sentences(spread_segments, len(items), *layout, np.asarray(values, np.float64), nodes, spans, shared)
        return nodes, spans, shared

    def _listed(self, items: Integers, nodes: Array, spans: Array, shared: Array) -> tuple[Integers, Array]:
        """Numbers of weights that some sentences depend on, and what is to be added to each."""
        slope, at = self._scratch, self._borders
        for features, offsets, found, start in (
            (self.nodes, self._positions, nodes, at[0]), (self.spans, self._rows, spans, at[1])
        ):  # fmt: skip
            _, rows = gathered(offsets, items)
            if len(rows):
                features.add_totals(found, slope[start : start + features.n_weights], rows)
        slope[at[2] :] = shared.sum(axis=0)
        numbers = self.support(items)
        values = slope[numbers]
        slope[numbers] = 0.0
        return numbers, values

    def gradient(self, items: Integers, batch: Batch[Any], values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the segments and steps of `batch`."""
        nodes, spans, shared = self._spread(items, np.where(np.abs(values) > least, values, 0.0))
        found = []
        to_nodes, to_spans = _offsets(self.lengths[items]), _offsets(n_word_spans(self.lengths[items], self.longest))
        for at in range(len(items)):
            own = nodes[to_nodes[at] : to_nodes[at + 1]], spans[to_spans[at] : to_spans[at + 1]]
            found.append(self._listed(items[at : at + 1], *own, shared[at : at + 1]))
        return Gradient.of(found)

    def likelihood(
        self, weights: NDArray[Any], target: Any, items: Integers, share: Share = 1.0, *, least: float = 0.0
    ) -> tuple[float, Gradient]:
        """Σ share · (E_target[score] − log Z) of some sentences, and its gradient, as that of all of them together."""
        batch = self.batch(weights, items)
        wanted = target.wanted(items, batch)
        found = item_sums(batch, wanted.parts) if wanted.values is None else wanted.values
        value = shared(share, found, batch.log_partition())
        residual = spread(share, batch.scores.offsets) * (wanted.parts - batch.marginals().values)
        residual[np.abs(residual) <= least] = 0.0
        return value, Gradient.of([self._listed(items, *self._spread(items, residual))])

    def add_likelihood(
        self, weights: Array, target: Any, out: Array, items: Integers | None, share: float
    ) -> float:  # fmt: skip
        """`likelihood` of some items, or of all; the gradient is added to `out` without a list of its weights."""
        total, at = 0.0, self._borders
        for some in pieces(len(self), items):
            batch = self.batch(weights, some)
            wanted = target.wanted(some, batch)
            found = item_sums(batch, wanted.parts) if wanted.values is None else wanted.values
            total += shared(share, found, batch.log_partition())
            nodes, spans, steps = self._spread(some, wanted.parts - batch.marginals().values)
            for features, offsets, values, start in (
                (self.nodes, self._positions, nodes, at[0]), (self.spans, self._rows, spans, at[1])
            ):  # fmt: skip
                _, rows = gathered(offsets, some)
                if len(rows):
                    features.add_totals(values, out[start : start + features.n_weights], rows, share)
            out[at[2] :] += share * steps.sum(axis=0)
        return total

    def support(self, items: Integers) -> Integers:
        """The weights of attributes in these sentences, and all that they share."""
        found = []
        for features, offsets, start in ((self.nodes, self._positions, 0), (self.spans, self._rows, self._borders[1])):
            ranges = ((int(offsets[s]), int(offsets[s + 1])) for s in items)
            found.append(start + features.support(ranges))
        return np.concatenate([*found, np.arange(self._borders[2], self.n_weights)])

    @cached_property
    def _scratch(self) -> Array:
        return np.zeros(self.n_weights)


class GoldSegments(Gold):
    """The right segments of each sentence, whose parts are found once, not in each pass.

    Parameters
    ----------
    structures : sequence of Segments
    model : SegmentModel
    """

    def __init__(self, structures: Sequence[Any], model: SegmentModel) -> None:
        super().__init__(structures)
        each = [
            np.flatnonzero(SemiMarkov._of(np.zeros(int(size)), n, model.longest, model.k).parts(y))
            for y, n, size in zip(
                structures, model.lengths.tolist(), n_segment_parts(model.lengths, model.longest, model.k), strict=True
            )
        ]
        self._starts = _offsets(np.array([len(one) for one in each], np.int64))
        self._places = np.concatenate([np.zeros(0, np.int64), *each])

    def wanted(self, items: Integers, batch: Any) -> Wanted:
        """The parts of the right segments."""
        parts = np.zeros(len(batch.scores.values))
        sizes, places = gathered(self._starts, items)
        parts[self._places[places] + np.repeat(batch.scores.offsets[:-1], np.diff(sizes))] = 1.0
        return Wanted(parts)


def _offsets(sizes: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
