"""Models of names: chains of tags and sequences of segments, learnt, searched and kept in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.mentions import Entity
from isogloss.features import Templates
from isogloss.layout import Layout, Numbers, Strings, check
from isogloss.learners.chain_model import ChainModel
from isogloss.learners.margin import Rivals
from isogloss.learners.models import Gold, run_sums
from isogloss.learners.segment_model import SegmentModel
from isogloss.learners.supported import Supported
from isogloss.structures.base import kept
from isogloss.structures.batch import Stack, run_sentences
from isogloss.structures.chain import Chains
from isogloss.structures.semimarkov import SemiMarkovs, n_segment_parts
from isogloss.tasks.extract.features import Seen
from isogloss.tasks.extract.labels import OUTSIDE, NameLabels

__all__ = ["FittedNames", "GoldNames", "chosen_names", "gold_words", "name_posteriors"]

Array = NDArray[np.float64]
Items = NDArray[np.int64]
NameModel = ChainModel | SegmentModel

_TYPES: Layout = {"types": Strings("types", distinct=True, least=1, cells=True)}


def gold_words(labels: NameLabels, entities: Sequence[Sequence[Entity]], lengths: NDArray[np.int64]) -> list[Any]:
    """The tags of the words of each sentence."""
    return [labels.tags(n, own) for own, n in zip(entities, lengths.tolist(), strict=True)]


@dataclass(frozen=True, eq=False)
class FittedNames:
    """What was learnt.

    Parameters
    ----------
    labels : NameLabels
    longest : int
        The most words of a name.
    words : Supported
        Attributes of words.
    spans : Supported, optional
        Attributes of names as a whole; without them, the model is a chain.
    weights : float32[n_weights]
        As the model has them.
    """

    labels: NameLabels
    longest: int
    words: Supported
    spans: Supported | None
    weights: NDArray[np.float32]

    def model(self, seen: Seen, *given: Any) -> NameModel:
        """The model of some sentences; `given` has the attributes of their words and spans, if they are known."""
        words, *rest = given or (self.words.on(seen.words()),)
        return self.model_over(words, np.diff(seen.axis.offsets), *(rest or self._spans_on(seen)))

    def _spans_on(self, seen: Seen) -> list[Any]:
        return [] if self.spans is None else [self.spans.on(seen.spans(self.longest))]

    def model_over(self, words: Any, lengths: NDArray[np.int64], spans: Any = None) -> NameModel:
        """The model of sentences whose attributes are known."""
        if self.spans is None:
            return ChainModel(words, lengths, moves=self.labels.moves())
        begins = np.arange(1, self.labels.n_tags, 2)
        first, inside = np.concatenate([[OUTSIDE], begins]), np.concatenate([[-1], begins + 1])
        return SegmentModel(words, spans, lengths, self.longest, first=first, inside=inside)

    def seen_by(self, words: Templates, spans: Templates | None) -> FittedNames:
        """The same weights with fewer templates."""
        others = None if self.spans is None or spans is None else replace(self.spans, templates=spans)
        return replace(self, words=replace(self.words, templates=words), spans=others)

    def names_of(self, y: Any) -> list[Entity]:
        """The names of a structure of the model."""
        return self.labels.names_of_tags(y) if self.spans is None else self.labels.names_of_segments(y)

    def analysis(self, n: int, entities: Iterable[Entity]) -> Any:
        """The structure that a sentence of n words with these names has; None where the model has none."""
        own = sorted(entities)
        behind = 0
        for begin, end, kind in own:
            if begin < behind or not begin < end <= n or kind not in self.labels.types:
                return None
            if self.spans is not None and end - begin > self.longest:
                return None
            behind = end
        return self.labels.tags(n, own) if self.spans is None else self.labels.segments(n, own)

    def compact(self) -> FittedNames:
        """Without weights that are 0."""
        words, own = self.words.compact(self.weights[: len(self.words.pairs.labels)])
        rest = self.weights[len(self.words.pairs.labels) :]
        if self.spans is None:
            return replace(self, words=words, weights=np.concatenate([own, rest]))
        size = len(self.spans.pairs.labels)
        spans, others = self.spans.compact(rest[:size])
        return replace(self, words=words, spans=spans, weights=np.concatenate([own, others, rest[size:]]))

    @property
    def n_features(self) -> int:
        """Attributes that have weights."""
        return self.words.index.n_features + (0 if self.spans is None else self.spans.index.n_features)

    @property
    def n_shared(self) -> int:
        """Weights that do not belong to attributes: of steps between labels, of first and of last ones."""
        k = self.labels.n_tags if self.spans is None else self.labels.n_labels
        return k * k + 2 * k

    # --- keeping

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        blob, offsets = store.pack_strings(self.labels.types)
        arrays: dict[str, NDArray[Any]] = {"types": blob, "types_offsets": offsets}
        at = 0
        for name, family in self._families():
            size = len(family.pairs.labels)
            arrays |= store.prefixed(f"{name}.", family.to_arrays(self.weights[at : at + size]))
            at += size
        return arrays | {"shared": self.weights[at:]}

    def _families(self) -> list[tuple[str, Supported]]:
        return [("words", self.words), *([] if self.spans is None else [("spans", self.spans)])]

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], longest: int, words: Templates, spans: Templates | None
    ) -> FittedNames:
        """The inverse of `to_arrays`."""
        labels = NameLabels(tuple(check(arrays, _TYPES, "the types of the saved model")["types"]))
        if spans is None and any(name.startswith("spans.") for name in arrays):
            raise ValueError("a chain has no use for spans")
        made: list[Supported | None] = []
        weights = []
        for name, templates, k in (("words", words, labels.n_tags), ("spans", spans, labels.n_labels)):
            if templates is None:
                made.append(None)
                continue
            own = store.unprefixed(f"{name}.", arrays)
            family, known = Supported.from_arrays(own, templates, k, f"{name} of the saved model")
            made.append(family)
            weights.append(known)
        assert made[0] is not None
        found = cls(labels, longest, made[0], made[1], np.zeros(0, np.float32))
        shared = check(arrays, {"shared": Numbers("float32", found.n_shared)}, "the saved model")["shared"]
        return replace(found, weights=np.concatenate([*weights, shared]))


class GoldNames(Gold):
    """Right structures as a target of likelihood and of margins; every wrong tag, or segment, costs 1.

    Parameters
    ----------
    structures : sequence
        Tags of words, or segments, as the structures of the model are.
    """

    def rivals(self, items: Items, batch: Any, augmentation: float) -> Rivals:
        """The best structures when every wrong tag or segment earns `augmentation`, beside the right ones."""
        target = batch.parts([self.structures[s] for s in items.tolist()])
        cost = np.concatenate([np.zeros(0), *(_cost(batch, s, target[s]) for s in range(len(items)))])
        harder = batch.with_scores(batch.scores.like(kept(batch.scores.values + augmentation * cost)))
        found = batch.parts(harder.argmax()).values
        return Rivals(target.values - found, run_sums(cost * found, batch.scores.offsets))


def _cost(batch: Any, s: int, target: Array) -> Array:
    """What each part of a sentence costs."""
    if isinstance(batch, Chains):
        right = target.sum(axis=1, keepdims=True)  # tags, whatever goes before them
        return np.asarray(np.broadcast_to(1.0 - right, target.shape)).ravel()
    cost = 1.0 - target
    cost[int(batch.lengths[s]) * batch.longest * batch.k :] = 0.0
    return np.asarray(cost)


def name_posteriors(batch: Any, longest: int) -> Stack:
    """How probable each span is to be a name of each type: float64[n, longest, types] for each sentence."""
    if isinstance(batch, SemiMarkovs):
        whole = batch.segment_marginals()
        rows = whole.values.reshape(-1, batch.k)[:, 1:]
        return _stack(np.ascontiguousarray(rows).reshape(-1), batch.lengths, longest, batch.k - 1)
    from isogloss.tasks.extract._numba.spans import name_posteriors as kernel

    marginals = batch.marginals()
    lengths, k = np.ascontiguousarray(batch.scores.shapes[:, 0]), int(batch.scores.shapes[0, 1])
    sizes = lengths * longest * ((k - 1) // 2)
    out = np.empty(int(sizes.sum()))
    given = (lengths, marginals.offsets, k, marginals.values, np.cumsum(sizes) - sizes, longest)
    run_sentences(kernel, len(lengths), *given, out)
    return _stack(out, lengths, longest, (k - 1) // 2)


def _stack(values: Array, lengths: NDArray[np.int64], longest: int, types: int) -> Stack:
    offsets = np.concatenate([[0], np.cumsum(lengths * longest * types)]).astype(np.int64)
    shapes = np.stack([lengths, *(np.full(len(lengths), size) for size in (longest, types))], axis=1)
    return Stack(values, offsets, shapes.astype(np.int64))


def chosen_names(posteriors: Stack, threshold: float, labels: NameLabels) -> list[list[Entity]]:
    """For each sentence the names, none overlapping, with the highest Σ (posterior − threshold)."""
    lengths, k = np.ascontiguousarray(posteriors.shapes[:, 0]), labels.n_labels
    longest = int(posteriors.shapes[0, 1]) if len(lengths) else 1
    sizes = n_segment_parts(lengths, longest, k)
    scores = np.zeros(int(sizes.sum()))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    for s, (n, own) in enumerate(zip(lengths.tolist(), posteriors, strict=True)):
        segments = scores[offsets[s] :][: n * longest * k].reshape(n, longest, k)
        segments[:, 1:, OUTSIDE] = -np.inf
        segments[:, :, 1:] = np.where(own > threshold, own - threshold, -np.inf)
    found = SemiMarkovs(Stack(kept(scores), offsets, sizes[:, np.newaxis]), lengths, longest, k).argmax()
    return [labels.names_of_segments(y) for y in found]
