"""Models of constituent trees: a row of weights for each feature of a span, and of a place between words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from isogloss.data.rows import gathered
from isogloss.features import Index, Parts, Role, Templates, positions
from isogloss.features.gradients import Gradient
from isogloss.features.rows import RowScorer
from isogloss.learners.margin import Rivals
from isogloss.learners.models import Gold, Model, run_sums
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch, Stack, run_sentences
from isogloss.structures.family_tree import FamilyTrees, n_family_parts
from isogloss.structures.span_tree import SpanTrees
from isogloss.tasks.parse.constituency.trees import Spans
from isogloss.tasks.parse.constituency.words import Sentences, span_parts

__all__ = ["FAMILIES", "FamilyModel", "GoldBrackets", "Kept", "SpanModel", "TreeFeatures", "gold_spans", "model_of"]

Items = NDArray[np.int64]
Array = NDArray[np.float64]
OFTEN = 3
"""Features that speak of brackets of any label fire on so many spans in training."""
FAMILIES = ("label", "below", "place")
"""What has features: labels of spans; labels above spans; and words, for labels above bare ones and of what splits."""


@dataclass(frozen=True, eq=False)
class Kept:
    """Some of the spans of sentences; others are no constituents.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
    numbers : int64[n_kept]
        Spans of each sentence, ascending, numbered as by `spans_of`.
    """

    offsets: NDArray[np.int64]
    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, marked: NDArray[np.bool_], offsets: NDArray[np.int64]) -> Kept:
        """The spans that are marked among all of the sentences, whose spans begin at `offsets`."""
        before = np.concatenate([[0], np.cumsum(marked)])[offsets].astype(np.int64)
        numbers = np.flatnonzero(marked) - np.repeat(offsets[:-1], np.diff(before))
        return cls(before, numbers)

    def marked(self, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The inverse of `of`."""
        found = np.zeros(int(offsets[-1]), bool)
        found[self.numbers + np.repeat(offsets[:-1], np.diff(self.offsets))] = True
        return found

    def among(self, sentences: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the spans of some sentences are among all spans of these, which have so many words."""
        _, places = gathered(self.offsets, sentences)
        spans = lengths * (lengths + 1) // 2
        shifts = np.repeat(np.cumsum(spans) - spans, np.diff(self.offsets)[sentences])
        return np.asarray(self.numbers[places] + shifts, np.int64)

    def parts(self, parts: Parts) -> Parts:
        """The parts of these spans, of those of all."""
        at = self.numbers + np.repeat(parts.offsets[:-1], np.diff(self.offsets))
        roles = {
            name: Role(role.axis, role.at[at], None if role.until is None else role.until[at])
            for name, role in parts.roles.items()
        }
        columns = {name: column[at] for name, column in parts.columns.items()}
        return Parts(len(at), self.offsets, roles, columns, None if parts.bins is None else parts.bins[at])


def gold_spans(gold: Sequence[Spans], offsets: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[n_spans]: which of all spans of sentences are constituents."""
    from isogloss.structures.spans import span_number

    marked = np.zeros(int(offsets[-1]), bool)
    for start, spans, n in zip(offsets[:-1].tolist(), gold, lengths.tolist(), strict=True):
        marked[[start + span_number(i, j, n) for i, j, _ in spans]] = True
    return marked


@dataclass(frozen=True, eq=False)
class TreeFeatures:
    """Templates of each family, and the features of them that have weights.

    Parameters
    ----------
    templates : mapping of str to Templates
    indices : mapping of str to Index
    n_labels : int
    wide : bool[n_features], optional
        Features of labels of spans that have a weight for each label, and one for all; the others have the latter
        alone. Without it, all have one for each label, and none for all.
    """

    templates: Mapping[str, Templates]
    indices: Mapping[str, Index]
    n_labels: int
    wide: NDArray[np.bool_] | None = None

    @classmethod
    def collected(
        cls,
        templates: Mapping[str, Templates],
        words: Sentences,
        parts: Parts,
        gold: NDArray[np.bool_],
        n_labels: int,
        min_count: int,
        seen: NDArray[np.bool_] | None = None,
    ) -> TreeFeatures:
        """Of training data: of spans those that fire on gold ones so often, of places on any.

        With `seen`, bool[n_spans], also those that fire on so many of these, gold or not, and `OFTEN` at the least.
        """
        indices, wide = {}, None
        for name, own in templates.items():
            if name == "place":
                indices[name] = own.index(positions(words.axis), min_count=min_count)
            else:
                indices[name] = own.index(parts, gold=gold, min_count=min_count)
        if seen is not None:
            every = templates["label"].index(parts, gold=seen, min_count=max(OFTEN, min_count)).keys
            supported = indices["label"].keys
            indices["label"] = Index(np.union1d(supported, every))
            wide = np.isin(indices["label"].keys, supported, assume_unique=True)
        return cls(templates, indices, n_labels, wide)

    def scorers(self, words: Sentences, parts: Parts) -> dict[str, RowScorer]:
        """Of some sentences and their spans."""
        places = positions(words.axis)
        return {
            name: RowScorer(
                own, places if name == "place" else parts, self.indices[name],
                self.n_labels * (2 if name == "place" else 1), self.wide if name == "label" else None,
            )
            for name, own in self.templates.items()
        }  # fmt: skip

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the weights of each family, in their order; "bracket" are single ones, "pair" is [below, above]."""
        found: dict[str, tuple[int, ...]] = {}
        for name in self.templates:
            many = self.indices[name].n_features
            found[name] = (many, self.n_labels * (2 if name == "place" else 1))
            if name == "label" and self.wide is not None:
                rows = int(np.count_nonzero(self.wide))
                found |= {"label": (rows, self.n_labels + 1), "bracket": (many - rows,)}
        if "below" in self.templates:
            found["pair"] = (self.n_labels, self.n_labels)
        return found

    def split(self, weights: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Weights of each family; see `shapes`."""
        shapes = self.shapes()
        ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
        parts = np.split(weights, ends[:-1]) if shapes else []
        return {name: own.reshape(shape) for (name, shape), own in zip(shapes.items(), parts, strict=True)}


def model_of(
    features: TreeFeatures, words: Sentences, parts: Parts | None = None, kept: Kept | None = None
) -> SpanModel | FamilyModel:
    """The model of some sentences, over all spans or those that are kept."""
    parts = span_parts(words) if parts is None else parts
    scorers = features.scorers(words, parts if kept is None else kept.parts(parts))
    lengths = np.diff(words.offsets)
    if "below" not in scorers:
        return SpanModel(scorers["label"], lengths, kept)
    return FamilyModel(scorers, lengths, features.n_labels, kept)


class SpanModel(Model):
    """Trees of labelled spans, each scored by itself.

    Parameters
    ----------
    scorer : RowScorer
        Over all spans of the sentences, in the order of `SpanTree`.
    lengths : int64[n_sentences]
        Numbers of words.
    kept : Kept, optional
        The spans that the scorer has, if not all.
    """

    dtype: ClassVar[DTypeLike] = np.float32

    def __init__(self, scorer: RowScorer, lengths: NDArray[np.int64], kept: Kept | None = None) -> None:
        self.scorer, self.lengths, self.kept = scorer, lengths, kept

    def __repr__(self) -> str:
        return f"SpanModel({len(self)} items, {self.n_weights} weights)"

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def n_weights(self) -> int:
        return self.scorer.n_weights

    def batch(self, weights: NDArray[Any], items: Items) -> SpanTrees:
        """Trees over all spans of some sentences."""
        lengths, labels = self.lengths[items], self.scorer.n_labels
        spans = lengths * (lengths + 1) // 2
        offsets = np.concatenate([[0], np.cumsum(spans * labels)]).astype(np.int64)
        shapes = np.stack([spans, np.full(len(spans), labels)], axis=1).astype(np.int64)
        found = self.scorer.scores(weights, items)
        if self.kept is not None:
            found = _filled(found, self.kept.among(items, lengths), int(offsets[-1]), labels, -np.inf)
        return SpanTrees(Stack(kept(found), offsets, shapes))

    def gradient(self, items: Items, batch: Batch[Any], values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the labelled spans of `batch`."""
        if self.kept is not None:
            values = values.reshape(-1, self.scorer.n_labels)[self.kept.among(items, self.lengths[items])].reshape(-1)
        return self.scorer.gradient(values, items, least=least)

    def support(self, items: Items) -> None:
        """Not listed: it would take as long as the scores."""
        return None


def _filled(rows: Array, places: NDArray[np.int64], size: int, labels: int, other: float) -> Array:
    """Rows of some spans among those of all, which have another number."""
    out = np.full((size // labels, labels), other)
    out[places] = rows.reshape(-1, labels)
    return out.reshape(-1)


class FamilyModel(Model):
    """Trees of labelled spans that see the label above them: `FamilyTrees`.

    Parameters
    ----------
    scorers : mapping of str to RowScorer
        Those of `FAMILIES`.
    lengths : int64[n_sentences]
        Numbers of words.
    n_labels : int
    kept : Kept, optional
        The spans that the scorers have, if not all.
    """

    dtype: ClassVar[DTypeLike] = np.float32

    def __init__(
        self,
        scorers: Mapping[str, RowScorer],
        lengths: NDArray[np.int64],
        n_labels: int,
        kept: Kept | None = None,
    ) -> None:
        self.scorers, self.lengths, self.n_labels, self.kept = scorers, lengths, n_labels, kept

    def __repr__(self) -> str:
        return f"FamilyModel({len(self)} items, {self.n_weights} weights)"

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def _borders(self) -> list[int]:
        """Where the weights of each family begin, then those of pairs, and where these end."""
        sizes = [self.scorers[name].n_weights for name in FAMILIES]
        return [int(x) for x in np.cumsum([0, *sizes, self.n_labels**2])]

    @property
    def n_weights(self) -> int:
        return self._borders[-1]

    def _layout(self, items: Items) -> tuple[Any, ...]:
        lengths = self.lengths[items]
        spans, sizes = lengths * (lengths + 1) // 2, n_family_parts(lengths, self.n_labels)
        return lengths, np.cumsum(sizes) - sizes, np.cumsum(spans) - spans, np.cumsum(lengths) - lengths, self.n_labels

    def batch(self, weights: NDArray[Any], items: Items) -> FamilyTrees:
        """Trees over all spans of some sentences."""
        from isogloss.tasks.parse.constituency._numba.family import gather_parts

        at = self._borders
        own = [self.scorers[name].scores(weights[at[k] : at[k + 1]], items) for k, name in enumerate(FAMILIES)]
        pair = weights[at[3] :].astype(np.float64)
        layout = self._layout(items)
        if self.kept is not None:
            places = self.kept.among(items, layout[0])
            size = int((layout[0] * (layout[0] + 1) // 2).sum()) * self.n_labels
            own[0] = _filled(own[0], places, size, self.n_labels, -np.inf)
            own[1] = _filled(own[1], places, size, self.n_labels, 0.0)
        sizes = n_family_parts(layout[0], self.n_labels)
        out = np.empty(int(sizes.sum()))
        run_sentences(gather_parts, len(items), *layout, *own, pair, out)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return FamilyTrees(Stack(kept(out), offsets, sizes[:, None]), layout[0], self.n_labels)

    def gradient(self, items: Items, batch: Batch[Any], values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the parts of `batch`."""
        from isogloss.tasks.parse.constituency._numba.family import spread_parts

        layout, labels = self._layout(items), self.n_labels
        spans, words = int((layout[0] * (layout[0] + 1) // 2).sum()), int(layout[0].sum())
        label, below, place = np.empty(spans * labels), np.empty(spans * labels), np.empty(2 * words * labels)
        pair = np.empty((len(items), labels * labels))
        run_sentences(spread_parts, len(items), *layout, np.asarray(values, np.float64), label, below, place, pair)
        if self.kept is not None:
            places = self.kept.among(items, layout[0])
            label, below = (whole.reshape(-1, labels)[places].reshape(-1) for whole in (label, below))
        found = [
            self.scorers[name].gradient(own, items, least=least)
            for name, own in zip(FAMILIES, (label, below, place), strict=True)
        ]
        used = np.abs(pair) > least
        counts = used.sum(axis=1)
        ends = np.cumsum(counts)
        numbers = (np.arange(labels * labels, dtype=np.int32) * np.ones((len(items), 1), np.int32))[used]
        found.append(Gradient(ends - counts, ends, numbers.astype(np.int32), pair[used]))
        return Gradient.joined(found, self._borders[:4])

    def support(self, items: Items) -> None:
        """Not listed: it would take as long as the scores."""
        return None


class GoldBrackets(Gold):
    """Right trees as a target of likelihood and of margins; every wrong bracket costs 1.

    Parameters
    ----------
    trees : sequence of sets of (i, j, label)
    n_labels : int
    """

    def __init__(self, trees: Sequence[Spans], n_labels: int) -> None:
        super().__init__(trees)
        self.n_labels = n_labels

    def rivals(self, items: Items, batch: Any, augmentation: float) -> Rivals:
        """The best trees when every wrong bracket earns `augmentation`, beside the right ones."""
        target = self.wanted(items, batch).parts
        cost = np.zeros(len(target))
        lengths = getattr(batch, "lengths", None)
        for s in range(len(batch)):
            start, stop = batch.scores.offsets[s : s + 2].tolist()
            if lengths is not None:
                stop = start + int(lengths[s] * (lengths[s] + 1) // 2) * self.n_labels
            cost[start:stop] = 1.0 - target[start:stop]
        harder = batch
        if augmentation:
            harder = batch.with_scores(batch.scores.like(kept(batch.scores.values + augmentation * cost)))
        found = batch.parts(harder.argmax()).values
        return Rivals(target - found, run_sums(cost * found, batch.scores.offsets))
