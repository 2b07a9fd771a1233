"""How far learning is, and which pass was the best on other sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isogloss.progress import Progress
from isogloss.structures.base import Array
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.parse.inference import Shape, best_trees, pieces
from isogloss.tasks.parse.labelled import JointScorer, LabelLearner, LabelScorer
from isogloss.tasks.parse.scoring import PartScorer
from isogloss.tasks.parse.words import Words

__all__ = ["HeldOut", "Scorer", "Watch", "all_trees"]

PATIENCE = 3
"""Passes without a better one, after which learning ends."""


class Scorer(Protocol):
    """What trees need: a `PartScorer`, or one with labels, `JointScorer`."""

    def scores(self, words: Words, sentences: NDArray[np.int64], parts: TreeParts) -> Array:
        """float64[n_parts]."""
        ...


def all_trees(scorer: Scorer, words: Words, candidates: Candidates, shape: Shape) -> Iterator[LoopyTrees]:
    """Distributions over the trees of all sentences, some at a time."""
    for sentences in pieces(words.lengths):
        parts = TreeParts.of(candidates, shape.families, sentences)
        yield shape.trees(parts, scorer.scores(words, sentences, parts))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Sentences that are not learnt from."""

    words: Words
    candidates: Candidates
    heads: NDArray[np.int32]

    def uas(self, scorer: Scorer, shape: Shape, decoder: str) -> float:
        """Right heads, in percent."""
        found = [best_trees(trees, decoder) for trees in all_trees(scorer, self.words, self.candidates, shape)]
        known = self.heads >= 0
        right = np.concatenate([np.zeros(0, np.int32), *found]) == self.heads
        return 100 * float(np.mean(right[known])) if known.any() else 0.0


class Watch:
    """Tells progress how far learning is, and keeps the weights that are best on held-out sentences."""

    def __init__(
        self,
        scorer: PartScorer,
        held_out: HeldOut | None,
        shape: Shape,
        decoder: str,
        iterations: int,
        progress: Progress,
        labels: LabelLearner | None = None,
    ) -> None:
        self.scorer, self.held_out, self.shape, self.decoder = scorer, held_out, shape, decoder
        self.iterations, self.progress, self.labels = iterations, progress, labels
        self.trace: list[float] = []
        self.accuracies: list[float] = []
        self.best: tuple[NDArray[np.float32], LabelScorer | None] | None = None
        progress.start("Learning links", iterations)

    def __call__(self, done: int, value: float, mean: Callable[[], NDArray[np.float32]] | None) -> bool:
        if mean is None:
            self.progress.within(value)
            return False
        self.trace.append(value)
        detail = f"pass {done} of {self.iterations}"
        if self.held_out is not None:
            weights, labels = mean(), None if self.labels is None else self.labels.mean()
            scorer = PartScorer(self.scorer.features, self.scorer.table, weights)
            whole = scorer if labels is None else JointScorer(scorer, labels)
            self.accuracies.append(self.held_out.uas(whole, self.shape, self.decoder))
            detail += f", UAS {self.accuracies[-1]:.2f} on dev"
            if self.accuracies[-1] >= max(self.accuracies):
                self.best = weights, labels
        self.progress.update(done, detail)
        return bool(self.accuracies) and done - 1 - int(np.argmax(self.accuracies)) >= PATIENCE
