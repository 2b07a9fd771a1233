"""Models of pairs beside hidden trees: scores of pairs, their labels, connectors and parts of trees by templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from isogloss.features import Hashed, Index, Parts, Templates
from isogloss.features.gradients import Gradient
from isogloss.features.rows import RowScorer
from isogloss.features.scorer import TemplateScorer
from isogloss.learners.models import Model
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch, Stack
from isogloss.structures.hidden import Couplings, HiddenTrees

__all__ = ["FAMILIES", "CoupledFeatures", "CoupledModel", "Problem", "coupled_templates", "labels_by_sentence"]

Items = NDArray[np.int64]
Array = NDArray[np.float64]
FAMILIES = ("pair", "label", "connector", "cell")
"""What has features, in the order in which `HiddenTrees` has its parts."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Sentences with pairs, as a model sees them.

    Parameters
    ----------
    pairs, connectors, cells : Parts
        What templates look at: pairs, connectors, and the parts of trees; the last two are empty without trees.
    couplings : Couplings
    tree : str
        The kind of trees, one of `isogloss.structures.hidden.TREES`.
    """

    pairs: Parts
    connectors: Parts
    cells: Parts
    couplings: Couplings
    tree: str

    def __len__(self) -> int:
        return len(self.couplings)

    def parts(self, family: str) -> Parts:
        """Those that a family of features is of."""
        return {"pair": self.pairs, "label": self.pairs, "connector": self.connectors, "cell": self.cells}[family]


def coupled_templates(
    pairs: Sequence[Any], connectors: Sequence[Any], cells: Sequence[Any], tree: str
) -> dict[str, Templates]:  # fmt: skip
    """Templates of each family of features; without trees, there are neither connectors nor cells."""
    found = {"pair": Templates(pairs, kind="pair"), "label": Templates(pairs, kind="label")}
    if tree != "none":
        found |= {"connector": Templates(connectors, kind="connector"), "cell": Templates(cells, kind="cell")}
    return found


@dataclass(frozen=True, eq=False)
class CoupledFeatures:
    """Templates of each family, and numbers of their features.

    Parameters
    ----------
    templates : mapping of str to Templates
        Of all `FAMILIES`, or without the last two where there are no trees.
    numberings : mapping of str to Index or Hashed
    n_labels : int
    """

    templates: Mapping[str, Templates]
    numberings: Mapping[str, Index | Hashed]
    n_labels: int

    @classmethod
    def collected(
        cls,
        templates: Mapping[str, Templates],
        problem: Problem,
        labels: NDArray[np.int64],
        n_labels: int,
        *,
        min_count: int,
        bits: int,
    ) -> CoupledFeatures:
        """Of training data: those of pairs that are met so often, of labels those on pairs that have one; parts of
        trees, of which there are many and of which nothing is known, are hashed to so many bits."""
        numberings: dict[str, Index | Hashed] = {}
        for name, own in templates.items():
            if name == "cell":
                numberings[name] = Hashed(bits)
            elif name == "label":
                numberings[name] = own.index(problem.pairs, gold=labels >= 0, min_count=min_count)
            else:
                numberings[name] = own.index(problem.parts(name), min_count=min_count)
        return cls(templates, numberings, n_labels)

    def width(self, name: str) -> int:
        """Weights of a feature."""
        return self.n_labels if name == "label" else 1

    @cached_property
    def borders(self) -> dict[str, tuple[int, int]]:
        """Where the weights of each family begin and end."""
        found, at = {}, 0
        for name in self.templates:
            size = self.numberings[name].n_features * self.width(name)
            found[name] = (at, at + size)
            at += size
        return found

    @property
    def n_weights(self) -> int:
        return max((stop for _, stop in self.borders.values()), default=0)

    def scorers(self, problem: Problem) -> dict[str, TemplateScorer | RowScorer]:
        """Of some sentences."""
        found: dict[str, TemplateScorer | RowScorer] = {}
        for name, own in self.templates.items():
            parts, numbering = problem.parts(name), self.numberings[name]
            if name == "label":
                found[name] = RowScorer(own, parts, numbering, self.n_labels)
            else:
                found[name] = TemplateScorer(own, parts, numbering)
        return found

    def start(self, connector: float) -> NDArray[np.float32]:
        """Weights to begin with: 0, but for the feature that all connectors have."""
        weights = np.zeros(self.n_weights, np.float32)
        if "connector" in self.templates:
            one = Parts(1, np.array([0, 1], np.int64))
            key = Templates([()], kind=self.templates["connector"].kind).keys(one)[0]
            (number,) = self.numberings["connector"].numbers(key).tolist()
            if number >= 0:
                weights[self.borders["connector"][0] + number] = connector
        return weights

    def compact(self, weights: NDArray[np.float32], least: float) -> tuple[CoupledFeatures, NDArray[np.float32]]:
        """Without the features of indices all of whose weights are smaller than `least`."""
        numberings, left = dict(self.numberings), []
        for name, (start, stop) in self.borders.items():
            rows, own = weights[start:stop].reshape(-1, self.width(name)), self.numberings[name]
            if isinstance(own, Index):
                worth = np.abs(rows).max(axis=1, initial=0.0) >= least
                numberings[name], rows = Index(own.keys[worth]), rows[worth]
            left.append(rows.reshape(-1))
        return replace(self, numberings=numberings), np.concatenate([np.zeros(0, np.float32), *left])


class CoupledModel(Model):
    """Pairs with labels beside trees that are hidden, or beside none.

    Parameters
    ----------
    features : CoupledFeatures
    problem : Problem
    single_root, at_most_one : bool
        As of `HiddenTrees`.
    """

    dtype: ClassVar[DTypeLike] = np.float32

    def __init__(
        self, features: CoupledFeatures, problem: Problem, *, single_root: bool = True, at_most_one: bool = False
    ) -> None:
        self.features, self.problem = features, problem
        self.options: dict[str, Any] = {"tree": problem.tree, "single_root": single_root, "at_most_one": at_most_one}
        self.scorers = features.scorers(problem)

    def __repr__(self) -> str:
        return f"CoupledModel({len(self)} items, {self.n_weights} weights)"

    def __len__(self) -> int:
        return len(self.problem)

    @property
    def n_weights(self) -> int:
        return self.features.n_weights

    def _places(self, items: Items) -> tuple[Couplings, NDArray[np.int64], dict[str, NDArray[np.int64]]]:
        """Couplings of some sentences, where their parts begin, and which of all parts are those of each family."""
        own = self.problem.couplings.take(items)
        sizes = {
            "pair": own.pairs,
            "label": own.pairs * self.features.n_labels,
            "connector": np.diff(own.offsets),
            "cell": own.n_cells(self.problem.tree),
        }
        offsets = np.concatenate([[0], np.cumsum(sum(sizes.values()))]).astype(np.int64)  # type: ignore[arg-type]
        places, at = {}, offsets[:-1].copy()
        for name in FAMILIES:
            many = sizes[name]
            begins = np.cumsum(many) - many
            places[name] = np.arange(int(many.sum())) + np.repeat(at - begins, many)
            at += many
        return own, offsets, places

    def batch(self, weights: NDArray[Any], items: Items) -> HiddenTrees:
        """Pairs and trees of some sentences."""
        own, offsets, places = self._places(items)
        scores = np.zeros(int(offsets[-1]))
        for name, scorer in self.scorers.items():
            start, stop = self.features.borders[name]
            scores[places[name]] = scorer.scores(weights[start:stop], items)
        stack = Stack(kept(scores), offsets, np.diff(offsets)[:, None])
        return HiddenTrees(stack, own, self.features.n_labels, **self.options)

    def gradient(self, items: Items, batch: Batch[Any], values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the parts of `batch`."""
        _, _, places = self._places(items)
        found = [scorer.gradient(values[places[name]], items, least=least) for name, scorer in self.scorers.items()]
        return Gradient.joined(found, [self.features.borders[name][0] for name in self.scorers])

    def support(self, items: Items) -> None:
        """Not listed: it would take as long as the scores."""
        return None


def labels_by_sentence(labels: NDArray[np.int64], offsets: NDArray[np.int64]) -> Sequence[NDArray[np.int64]]:
    """Labels of all pairs, cut into those of each sentence."""
    return [labels[start:stop] for start, stop in pairwise(offsets.tolist())]
