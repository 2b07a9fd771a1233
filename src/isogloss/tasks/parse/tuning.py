"""Which pass was the best on other sentences, and how learning goes on after an interruption."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.structures.base import Array
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.parse.inference import Shape, best_trees, pieces
from isogloss.tasks.parse.labelled import JointScorer, LabelLearner, LabelScorer
from isogloss.tasks.parse.scoring import PartScorer
from isogloss.tasks.parse.training import Passes, Seen, TreeLearner
from isogloss.tasks.parse.words import Words

__all__ = ["HeldOut", "Scorer", "TunedLearner", "Weights", "all_trees"]

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


class Weights(NamedTuple):
    """What a parser takes from learning: weights of parts, and where they are learnt together, those of labels."""

    parts: NDArray[np.float32]
    labels: LabelScorer | None


class TunedLearner:
    """A `TreeLearner` that is tried on held-out sentences after each pass; the weights that are best there are kept.

    Without such sentences the weights of the last pass count. It can be kept in checkpoints, for
    `isogloss.learners.runner.run`.
    """

    def __init__(
        self, learner: TreeLearner, labels: LabelLearner | None, held_out: HeldOut | None, decoder: str
    ) -> None:
        self.learner, self.labels, self.held_out, self.decoder = learner, labels, held_out, decoder
        self.accuracies: list[float] = []
        self._best: Weights | None = None

    @property
    def weights(self) -> Weights:
        """Those of the best pass."""
        return self._best or self._mean()

    def _mean(self) -> Weights:
        return Weights(self.learner.steps.mean(), None if self.labels is None else self.labels.mean())

    def step(self, state: Passes) -> tuple[Passes, Seen]:
        """One pass, and its UAS on held-out sentences."""
        loss, detail = self.learner.go_over(state.iteration), ""
        if self.held_out is not None:
            self._try_on(self.held_out)
            detail = f"UAS {self.accuracies[-1]:.2f} on dev"
        self.learner.settle(state.iteration)
        return Passes(state.iteration + 1), Seen(loss, detail)

    def _try_on(self, held_out: HeldOut) -> None:
        mean, learner = self._mean(), self.learner
        parts = PartScorer(learner.scorer.features, learner.scorer.table, mean.parts)
        whole = parts if mean.labels is None else JointScorer(parts, mean.labels)
        self.accuracies.append(held_out.uas(whole, learner.shape, self.decoder))
        if self.accuracies[-1] >= max(self.accuracies):
            self._best = mean

    def is_done(self, state: Passes, seen: Seen) -> bool:
        """Whether the best pass is long ago."""
        return bool(self.accuracies) and state.iteration - 1 - int(np.argmax(self.accuracies)) >= PATIENCE

    # --- checkpoints

    def dump(self, state: Passes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Where learning is."""
        arrays = store.prefixed("parts.", self.learner.steps.dump())
        if self.labels is not None:
            arrays |= store.prefixed("labels.", self.labels.steps.dump())
        if self._best is not None:
            arrays["best.parts"] = self._best.parts
            if self._best.labels is not None:
                arrays["best.labels"] = self._best.labels.weights
        return arrays, {"iteration": state.iteration, "accuracies": self.accuracies}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Passes:
        """Go back there."""
        self.learner.steps.restore(store.unprefixed("parts.", arrays))
        best = None
        if self.labels is not None:
            self.labels.steps.restore(store.unprefixed("labels.", arrays))
            best = self.labels.scorer.with_weights(arrays["best.labels"]) if "best.labels" in arrays else None
        self._best = Weights(arrays["best.parts"], best) if "best.parts" in arrays else None
        self.accuracies = list(meta["accuracies"])
        return Passes(meta["iteration"])
