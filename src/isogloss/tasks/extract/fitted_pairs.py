"""What labelling pairs beside hidden trees has learnt, how it is applied and kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.engine.shards import shards
from isogloss.features import Hashed, Index, Templates
from isogloss.features.table import KEYS
from isogloss.layout import Layout, Numbers, Strings, check, collect
from isogloss.structures.hidden import NO_PAIR, HiddenTrees
from isogloss.tasks.extract.coupled import CoupledFeatures, CoupledModel, Problem
from isogloss.tasks.parse.constituency.words import Known

__all__ = ["FittedPairs", "chosen_labels"]

Array = NDArray[np.float64]
NEGLIGIBLE = 1e-3
"""Features of pairs all of whose weights are smaller are not kept."""
PIECE = 1 << 20
"""Scores that are in memory together, about."""
LAYOUT: Layout = {
    "labels": Strings("labels", distinct=True, least=1, cells=True),
    "known": Strings("known", distinct=True, cells=True),
}


@dataclass(frozen=True, eq=False)
class FittedPairs:
    """Labels, the words that are known by themselves, and features with their weights."""

    labels: tuple[str, ...]
    words: Known
    features: CoupledFeatures
    weights: NDArray[np.float32]

    @property
    def known(self) -> tuple[str, ...]:
        return self.words.words

    def compact(self) -> FittedPairs:
        """Without features all of whose weights are negligible."""
        features, weights = self.features.compact(self.weights, NEGLIGIBLE)
        return replace(self, features=features, weights=weights)

    def batches(self, problem: Problem, at_most_one: bool) -> Iterator[HiddenTrees]:
        """Distributions of all sentences, some at a time."""
        model = CoupledModel(self.features, problem, at_most_one=at_most_one)
        for piece in shards(problem.couplings.sizes(problem.tree, self.features.n_labels), limit=PIECE):
            yield model.batch(self.weights, np.arange(*piece))

    def posteriors(self, problem: Problem, at_most_one: bool) -> Iterator[tuple[Array, Array]]:
        """Of the pairs of each sentence, float64[n_pairs], and of their labels, float64[n_pairs, n_labels]."""
        counts, wide = iter(problem.couplings.pairs.tolist()), self.features.n_labels
        for batch in self.batches(problem, at_most_one):
            for own in batch.marginals():
                n = next(counts)
                yield own[:n], own[n : n * (1 + wide)].reshape(n, wide)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        arrays = collect(self, LAYOUT)
        for name, (start, stop) in self.features.borders.items():
            own = self.features.numberings[name]
            rows = self.weights[start:stop].reshape(-1, self.features.width(name))
            if isinstance(own, Index):
                arrays[f"{name}.keys"] = own.keys
            arrays[f"{name}.weights"] = np.ascontiguousarray(rows)
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], templates: Mapping[str, Templates], bits: int
    ) -> FittedPairs:
        """The inverse of `to_arrays`."""
        place = "the saved model"
        found = check(arrays, LAYOUT, place)
        if strange := sorted(name for name in arrays if name.partition(".")[0] in _ABSENT - set(templates)):
            raise ValueError(f"its options have no use for {strange[0]}")
        n_labels = len(found["labels"])
        features = CoupledFeatures(templates, {}, n_labels)
        numberings: dict[str, Index | Hashed] = {}
        weights: list[NDArray[np.float32]] = []
        for name in templates:
            wide = features.width(name)
            if name == "cell":
                layout: Layout = {"weights": Numbers("float32", (1 << bits, wide))}
                own = check(store.unprefixed(f"{name}.", arrays), layout, f"{name} of {place}")
                numberings[name] = Hashed(bits)
            else:
                layout = {"keys": KEYS, "weights": Numbers("float32", ("features", wide))}
                own = check(store.unprefixed(f"{name}.", arrays), layout, f"{name} of {place}")
                numberings[name] = Index(own["keys"])
            weights.append(own["weights"].reshape(-1))
        known = Known(tuple(found["known"]))
        made = replace(features, numberings=numberings)
        return cls(tuple(found["labels"]), known, made, np.concatenate(weights))


_ABSENT = {"connector", "cell"}


def chosen_labels(pairs: Array, labels: Array, threshold: float) -> NDArray[np.int64]:
    """int64[n_pairs]: the best label of each pair, or `NO_PAIR`, by the posteriors of pairs and of their labels.

    Of a pair with posterior b, and b_l of its best label, the label is right in expectation more often than wrong, both
    variables counted, where (b + b_l) / 2 > ½ (minimum Bayes risk); for the best F1 the threshold is lower.
    """
    best = labels.argmax(axis=1) if labels.shape[1] else np.zeros(len(pairs), np.int64)
    sure = (pairs + labels.max(axis=1, initial=0.0)) / 2
    return np.where(sure > threshold, best, NO_PAIR).astype(np.int64)
