"""`Supported`: which attributes have weights, and for which labels: templates, their index, and pairs with labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.features import KEYS, Index, Parts, Sparse, Templates
from isogloss.layout import Layout, Numbers, Offsets, check
from isogloss.learners.chain_model import LabelPairs, NodeFeatures

__all__ = ["Supported"]


@dataclass(frozen=True, eq=False)
class Supported:
    """Attributes of training data with the labels that they were met with: what has weights.

    Parameters
    ----------
    templates : Templates
    index : Index
    pairs : LabelPairs
    """

    templates: Templates
    index: Index
    pairs: LabelPairs

    @classmethod
    def collected(
        cls, templates: Templates, parts: Parts, gold: NDArray[np.int64], k: int, min_count: int
    ) -> tuple[Supported, NodeFeatures]:
        """Collect attributes of parts with known labels, −1 for none; also returns these parts' features."""
        index = templates.index(parts, gold=gold >= 0, min_count=min_count)
        attributes = templates.matrix(parts, index)
        made = cls(templates, index, LabelPairs.supported(attributes, gold, k))
        return made, NodeFeatures(attributes, made.pairs)

    def on(self, parts: Parts) -> NodeFeatures:
        """The features of other parts."""
        return NodeFeatures(self.matrix(parts), self.pairs)

    def matrix(self, parts: Parts) -> Sparse:
        """The attributes of parts that have weights."""
        return self.templates.matrix(parts, self.index)

    def compact(self, weights: NDArray[Any]) -> tuple[Supported, NDArray[Any]]:
        """Without weights that are 0, and attributes that have no others."""
        held = weights != 0
        before = np.concatenate([[0], np.cumsum(held)])
        sizes = np.diff(before[self.pairs.starts])
        used = sizes > 0
        starts = np.concatenate([[0], np.cumsum(sizes[used])]).astype(np.int64)
        pairs = LabelPairs(starts, self.pairs.labels[held], self.pairs.k)
        return Supported(self.templates, Index(self.index.keys[used]), pairs), weights[held]

    # --- keeping

    def to_arrays(self, weights: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`, with the weights of all pairs."""
        return {"keys": self.index.keys, **self.pairs.to_arrays(), "weights": np.asarray(weights, np.float32)}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], templates: Templates, k: int, place: str
    ) -> tuple[Supported, NDArray[np.float32]]:
        """The inverse of `to_arrays`; `place` is what it belongs to, for messages."""
        layout: Layout = {
            "keys": KEYS,
            "starts": Offsets("features", "pairs"),
            "labels": Numbers("int32", "pairs", least=0, below=k),
            "weights": Numbers("float32", "pairs"),
        }
        own = check(arrays, layout, place)
        return cls(templates, Index(own["keys"]), LabelPairs(own["starts"], own["labels"], k)), own["weights"]
