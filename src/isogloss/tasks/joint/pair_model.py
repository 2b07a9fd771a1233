"""`PairModel`: weights of target trees, word links, fertilities and configurations, and the distributions they make."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from isogloss.features.gradients import Gradient
from isogloss.features.parts import Parts
from isogloss.features.scorer import TemplateScorer
from isogloss.features.table import Index
from isogloss.features.templates import Templates
from isogloss.learners.models import Model, Wanted
from isogloss.structures.base import kept
from isogloss.structures.loopy_pairs import LoopyPairs
from isogloss.structures.pair_parts import CONFIGURATIONS, PairParts
from isogloss.structures.tree_parts import TreeParts
from isogloss.tasks.joint.looking import Looked, pair_features
from isogloss.tasks.parse.scoring import PartScorer

__all__ = ["Demands", "KnownTrees", "PairModel"]

Items = NDArray[np.int64]
Array = NDArray[np.float64]


class Demands(NamedTuple):
    """What trees are like, what is listed, and how long messages are passed."""

    constraint: str
    source_constraint: str
    single_root: bool
    families: tuple[str, ...]
    configurations: tuple[str, ...]
    rounds: int

    def parts(self, looked: Looked) -> PairParts:
        """The parts of all pairs."""
        return PairParts.of(looked.candidates, self.configurations, self.families)

    def pairs(self, parts: PairParts, scores: Array) -> LoopyPairs:
        """The distributions with these scores."""
        return LoopyPairs(
            parts, scores, constraint=self.constraint, source_constraint=self.source_constraint,
            single_root=self.single_root, iterations=self.rounds,
        )  # fmt: skip


class PairModel(Model):
    """Distributions over two trees and word links of pairs, whose source side has fixed scores.

    Parameters
    ----------
    looked : Looked
    demands : Demands
    scorer : PartScorer
        Scorer of the target trees; one that is packed has weights of its own, and does not learn.
    templates : Templates
    index : Index
        Features of word links, fertilities and configurations.
    mono : float
        What mono counts for before anything is learnt.
    """

    dtype: ClassVar[DTypeLike] = np.float32

    def __init__(
        self,
        looked: Looked,
        demands: Demands,
        scorer: PartScorer,
        templates: Templates,
        index: Index,
        mono: float = 0.0,
    ) -> None:
        self.looked, self.demands, self.scorer = looked, demands, scorer
        self.parts = demands.parts(looked)
        self.others = TemplateScorer(templates, pair_features(looked, self.parts), index)
        self.n_trees = 0 if scorer.is_packed else len(scorer.table)
        self._base = self._fixed(mono)

    @staticmethod
    def features_of(looked: Looked, demands: Demands) -> Parts:
        """What templates see of all pairs, for an index of features."""
        return pair_features(looked, demands.parts(looked))

    @property
    def n_weights(self) -> int:
        return self.n_trees + self.others.n_features

    def __len__(self) -> int:
        return len(self.looked)

    def _fixed(self, mono: float) -> Array:
        parts, out = self.parts, np.zeros(self.parts.n_parts)
        if not parts.known:
            out[parts.places("source")] = self.looked.source_scores
        out[parts.places("links")] = self.looked.link_scores
        of_mono = parts.kinds[parts.soft] == CONFIGURATIONS.index("mono")
        out[parts.places("configurations")] = mono * of_mono
        return out

    @cached_property
    def _tree_places(self) -> NDArray[np.int64]:
        return self.parts.places("target")

    def batch(self, weights: NDArray[Any], items: Items) -> LoopyPairs:
        """Trees and word links of some pairs."""
        parts = self.parts.take(items)
        scores = self.parts.stack(self._base).take(items).values.copy()
        scorer = self.scorer if self.scorer.is_packed else self.scorer.with_weights(weights[: self.n_trees])
        scores[_others(parts)] += self.others.scores(weights[self.n_trees :], items)
        scores[parts.places("target")] += scorer.scores(self.looked.target, items, parts.target)
        return self.demands.pairs(parts, kept(scores))

    def gradient(self, items: Items, batch: Any, values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · features: templates of trees and of all else are walked again."""
        parts = batch.layout
        trees: TreeParts = parts.target
        of_trees = self.scorer.gradient(
            self.looked.target, items, trees, np.ascontiguousarray(values[parts.places("target")]), least=least
        )
        of_others = self.others.gradient(values[_others(parts)], items, least=least)
        return Gradient.joined([of_trees, of_others], [0, self.n_trees]).by_item(len(items))

    def support(self, items: Items) -> None:
        """Features are found as they are needed, and never listed."""
        return


def _others(parts: PairParts) -> NDArray[np.int64]:
    """Where word links, fertilities and configurations are in the vector."""
    first, last = parts.begins[:, 2], parts.begins[:, 6]
    sizes = last - first
    ends = np.cumsum(sizes)
    return np.asarray(np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(first - (ends - sizes), sizes))


class KnownTrees:
    """Target trees that are known, as a target of likelihood: word links and source trees are summed out.

    Parameters
    ----------
    heads : int32[n_words]
        −1 where not known; each known tree should be among those that the model looks at.
    offsets : int64[n_pairs + 1]
    """

    def __init__(self, heads: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
        self.heads, self.offsets = heads, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def wanted(self, items: Items, batch: LoopyPairs) -> Wanted:
        """Beliefs under what is known, and log Z of it."""
        given = batch.given([self.heads[self.offsets[s] : self.offsets[s + 1]] for s in items.tolist()])
        return Wanted(given.marginals().values, given.log_partition())
