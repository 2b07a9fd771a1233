"""A quick first look: spans that are hopeless are not looked at again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.features import Index, Parts, Templates
from isogloss.features.table import KEYS
from isogloss.layout import Layout, Numbers, check, number
from isogloss.learners.loglinear import AdaGrad, Likelihood
from isogloss.learners.runner import run
from isogloss.progress import Progress
from isogloss.tasks.parse.constituency.model import GoldBrackets, Kept, TreeFeatures, model_of
from isogloss.tasks.parse.constituency.trees import Spans
from isogloss.tasks.parse.constituency.words import Sentences, span_parts

__all__ = ["FILTER_TEMPLATES", "SpanFilter"]

FILTER_TEMPLATES: tuple[Any, ...] = (
    (),
    "first.tag", "last.tag", "first.tag[-1]", "last.tag[+1]", "first.tag[-1] & first.tag", "last.tag & last.tag[+1]",
    "first.tag & last.tag", "first.tag[-1] & last.tag[+1]", "first.tag[-1] & first.tag & last.tag",
    "first.tag & last.tag & last.tag[+1]", "first.tag[-1] & first.tag & last.tag & last.tag[+1]", "sequence",
    "balance & content", "first.word", "last.word[+1]", "first.word[-1]",
)  # fmt: skip
PASSES, RATE, L2 = 3, 0.2, 2.0
LAYOUT: Layout = {"keys": KEYS, "weights": Numbers("float32", "features")}


@dataclass(frozen=True, eq=False)
class SpanFilter:
    """A model of bare brackets, which leaves those spans that are likely enough.

    Parameters
    ----------
    features : TreeFeatures
    weights : float32[n_features]
    threshold : float
        Spans with a smaller posterior are left out; single words and whole sentences never are.
    """

    features: TreeFeatures
    weights: NDArray[np.float32]
    threshold: float

    @classmethod
    def fit(
        cls,
        words: Sentences,
        parts: Parts,
        trees: Sequence[Spans],
        gold: NDArray[np.bool_],
        *,
        threshold: float,
        seed: int,
        progress: Progress,
    ) -> SpanFilter:
        """Learn which spans are constituents."""
        templates = {"label": Templates(FILTER_TEMPLATES, kind="filter")}
        features = TreeFeatures.collected(templates, words, parts, gold, 1, 2)
        bare = [frozenset((i, j, 0) for i, j, _ in spans) for spans in trees]
        likely = Likelihood(model_of(features, words, parts), target=GoldBrackets(bare, 1), least=1e-3)
        learner = AdaGrad(likely, rate=RATE, l2=L2, batch=16, seed=seed, in_place=True, average_from=1)
        result = run(learner, learner.init(), iterations=PASSES, progress=progress, name="A first look")
        return cls(features, np.asarray(result.state.average, np.float32), threshold)

    def kept(self, words: Sentences, parts: Parts | None = None, gold: NDArray[np.bool_] | None = None) -> Kept:
        """The spans that are left of some sentences, and those of gold."""
        parts = span_parts(words) if parts is None else parts
        trees = model_of(self.features, words, parts).batch(self.weights, np.arange(len(words)))
        marked = trees.marginals().values >= self.threshold
        marked |= parts.columns["length"] <= 1
        lengths = np.diff(words.offsets)
        marked[(parts.offsets[1:] - 1)[lengths > 0]] = True
        return Kept.of(marked if gold is None else marked | gold, parts.offsets)

    # --- keeping

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        return {"keys": self.features.indices["label"].keys, "weights": self.weights}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], threshold: Any) -> SpanFilter:
        """The inverse of `to_arrays`."""
        found = check(arrays, LAYOUT, "the filter of the saved parser")
        features = TreeFeatures({"label": Templates(FILTER_TEMPLATES, kind="filter")}, {}, 1)
        features = replace(features, indices={"label": Index(found["keys"])})
        return cls(features, found["weights"], number(threshold, "threshold", least=0.0, most=1.0))
