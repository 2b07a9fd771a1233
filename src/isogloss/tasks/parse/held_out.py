"""Sentences that are not learnt from, on which the number of passes is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isogloss.structures.base import Array
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.parse.inference import Shape, best_trees, pieces
from isogloss.tasks.parse.words import Words

__all__ = ["HeldOut", "Scorer", "all_trees"]


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
