"""How far learning is, and which pass was the best on other sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.progress import Progress
from isogloss.tasks.parse.inference import best_trees, trees_of
from isogloss.tasks.parse.links import LinkScorer
from isogloss.tasks.parse.words import Columns, encode

if TYPE_CHECKING:
    from isogloss.tasks.parse.parser import DependencyParser

__all__ = ["Watch", "pieces"]

CELLS = 1 << 21
"""Links that are scored at a time."""
PATIENCE = 3
"""Passes without a better one, after which learning ends."""


class Watch:
    """Tells progress how far learning is, and keeps the weights that are best on dev."""

    def __init__(
        self,
        parser: DependencyParser,
        scorer: LinkScorer,
        columns: Columns,
        dev: Treebank | None,
        projective: bool,
        progress: Progress,
    ) -> None:
        self.parser, self.scorer, self.progress = parser, scorer, progress
        self.trace: list[float] = []
        self.accuracies: list[float] = []
        self.best: NDArray[np.float32] | None = None
        self.projective, self.dev = projective, dev
        self.words = None if dev is None else encode(dev, columns)
        progress.start("Learning links", parser.iterations)

    def __call__(self, done: int, value: float, mean: Callable[[], NDArray[np.float32]] | None) -> bool:
        if mean is None:
            self.progress.within(value)
            return False
        self.trace.append(value)
        detail = f"pass {done} of {self.parser.iterations}"
        if self.dev is not None:
            weights = mean()
            self.accuracies.append(self._uas(weights))
            detail += f", UAS {self.accuracies[-1]:.2f} on dev"
            if self.accuracies[-1] >= max(self.accuracies):
                self.best = weights
        self.progress.update(done, detail)
        return bool(self.accuracies) and done - 1 - int(np.argmax(self.accuracies)) >= PATIENCE

    def _uas(self, weights: NDArray[np.float32]) -> float:
        assert self.dev is not None and self.words is not None
        scorer, heads = LinkScorer(self.scorer.templates, self.scorer.table, weights), [np.zeros(0, np.int32)]
        for sentences in pieces(self.words.lengths):
            scores = scorer.scores(self.words, sentences)
            trees = trees_of(scores, projective=self.projective, single_root=self.parser.single_root)
            heads.append(best_trees(trees, self.parser.decoder))
        known = self.dev.heads >= 0
        return 100 * float(np.mean((np.concatenate(heads) == self.dev.heads)[known])) if known.any() else 0.0


def pieces(lengths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Runs of sentences that have about `CELLS` links."""
    cells = np.cumsum((lengths + 1) ** 2) // CELLS
    cuts = np.flatnonzero(np.diff(cells)) + 1
    for start, stop in zip(np.append(0, cuts).tolist(), np.append(cuts, len(lengths)).tolist(), strict=True):
        if stop > start:
            yield np.arange(start, stop)
