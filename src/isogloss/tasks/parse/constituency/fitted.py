"""What a constituency parser has learnt, and how it is kept."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.features import Index, Templates
from isogloss.features.table import KEYS
from isogloss.layout import Layout, Numbers, Strings, check, collect
from isogloss.tasks.parse.constituency.filtering import SpanFilter
from isogloss.tasks.parse.constituency.grammar import GrammarModel
from isogloss.tasks.parse.constituency.model import TreeFeatures
from isogloss.tasks.parse.constituency.trees import Labels
from isogloss.tasks.parse.constituency.words import Known
from isogloss.tasks.tag import CrfTagger

__all__ = ["FittedSpans"]

NEGLIGIBLE = 5e-3
"""Features all of whose weights are smaller than this share of the largest are not kept."""
LAYOUT: Layout = {
    "labels": Strings("labels", distinct=True, least=1, cells=True),
    "known": Strings("known", distinct=True, cells=True),
}


@dataclass(frozen=True, eq=False)
class FittedSpans:
    """What was learnt: labels, words that are known by themselves, features with their weights, and a tagger."""

    names: Labels
    words: Known
    features: TreeFeatures
    weights: NDArray[np.float32]
    tagger: CrfTagger | None
    filter: SpanFilter | None = None
    grammar: GrammarModel | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        return self.names.names

    @property
    def known(self) -> tuple[str, ...]:
        return self.words.words

    def compact(self) -> FittedSpans:
        """Without features all of whose weights are negligible."""
        rows, indices, kept = self.features.split(self.weights), {}, {}
        least = NEGLIGIBLE * float(np.abs(self.weights).max(initial=0.0))
        large = {
            name: np.abs(own.reshape(len(own), math.prod(own.shape[1:]))).max(axis=1, initial=0.0) > least
            for name, own in rows.items()
        }
        wide = self.features.wide
        for name, index in self.features.indices.items():
            worth = large[name]
            if name == "label" and wide is not None:
                worth = np.empty(len(wide), bool)
                worth[wide], worth[~wide] = large["label"], large["bracket"]
                kept["bracket"] = rows["bracket"][large["bracket"]]
                wide = wide[worth]
            indices[name] = Index(index.keys[worth])
            kept[name] = rows[name][large[name]]
        features = replace(self.features, indices=indices, wide=wide)
        weights = [kept.get(name, rows[name]).reshape(-1) for name in features.shapes()]
        return replace(self, features=features, weights=np.concatenate(weights))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        arrays = collect(self, LAYOUT)
        if self.features.templates:
            for name, index in self.features.indices.items():
                arrays[f"{name}.keys"] = index.keys
            for name, own in self.features.split(self.weights).items():
                arrays[f"{name}.weights"] = np.ascontiguousarray(own)
            arrays["wide"] = np.asarray(self.features.wide, np.uint8)
        for name, part in (("filter.", self.filter), ("grammar.", self.grammar)):
            arrays |= {} if part is None else store.prefixed(name, part.to_arrays())
        return arrays

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        templates: Mapping[str, Templates],
        root: str | None,
        tagger: CrfTagger | None,
        prune: float,
        grammars: int = 0,
    ) -> FittedSpans:
        """The inverse of `to_arrays`."""
        place = "the saved parser"
        found = check(arrays, LAYOUT, place)
        unused = (*(() if "below" in templates else ("below.", "place.", "pair.")), *(() if prune else ("filter.",)))
        unused += (() if templates else ("label.", "bracket.", "wide")) + (() if grammars else ("grammar.",))
        if strange := sorted(name for name in arrays if name.startswith(unused)):
            raise ValueError(f"its options have no use for {strange[0]}")
        if any(re.search(r"[\s()]", label) for label in found["labels"]):
            raise ValueError("a label has a space or a bracket in it")
        layouts = {name: check(arrays, {f"{name}.keys": KEYS}, place)[f"{name}.keys"] for name in templates}
        indices = {name: Index(keys) for name, keys in layouts.items()}
        wide = None
        if templates:
            wide = check(arrays, {"wide": Numbers("uint8", indices["label"].n_features, below=2)}, place)["wide"] == 1
        features = TreeFeatures(templates, indices, len(found["labels"]), wide)
        layout: Layout = {f"{name}.weights": Numbers("float32", shape) for name, shape in features.shapes().items()}
        weights = [own.reshape(-1) for own in check(arrays, layout, place).values()]
        names = Labels(tuple(found["labels"]), root)
        known = Known(tuple(found["known"]))
        chosen = SpanFilter.from_arrays(store.unprefixed("filter.", arrays), prune) if prune else None
        grammar = None
        if grammars:
            grammar = GrammarModel.from_arrays(store.unprefixed("grammar.", arrays), len(found["labels"]), grammars)
        joint = np.concatenate([np.zeros(0, np.float32), *weights])
        return cls(names, known, features, joint, tagger, chosen, grammar)
