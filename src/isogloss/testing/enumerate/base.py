"""`BruteForce`: all structures of a small problem, and what follows from having them all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["BruteForce", "brute_force"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BruteForce:
    """All structures of a small problem.

    structures : one hashable object each, as `argmax` and `sample` of the structure under test give them
    parts : float64[count, *scores.shape], which parts each structure has
    log_scores : float64[count]
    """

    structures: Sequence[Hashable]
    parts: Array
    log_scores: Array

    @property
    def log_partition(self) -> float:
        top = self.log_scores.max(initial=-np.inf)
        return float(top if top == -np.inf else top + np.log(np.exp(self.log_scores - top).sum()))

    @property
    def probabilities(self) -> Array:
        """float64[count]; all zero when everything is forbidden."""
        total = self.log_partition
        return np.exp(self.log_scores - total) if total > -np.inf else np.zeros(len(self.log_scores))

    @property
    def marginals(self) -> Array:
        return np.tensordot(self.probabilities, self.parts, 1)

    @property
    def entropy(self) -> float:
        p = self.probabilities[self.probabilities > 0]
        return float(-(p * np.log(p)).sum())

    @property
    def best(self) -> float:
        return float(self.log_scores.max(initial=-np.inf))

    def divergence(self, other: BruteForce) -> float:
        """KL of this from `other`, over the same structures."""
        q, p = self.probabilities, other.probabilities
        used = q > 0
        return float((q[used] * np.log(q[used] / p[used])).sum())


def brute_force(
    structures: Callable[[Array], Sequence[Any]],
    parts: Callable[[Array, Any], Array],
    scores: ArrayLike,
) -> BruteForce:
    """List, score and keep; the score of a structure is the sum of the scores of its parts."""
    array = np.asarray(scores, np.float64)
    listed = list(structures(array))
    indicators = np.array([parts(array, y) for y in listed]).reshape(len(listed), *array.shape)
    log_scores = np.array([array[indicator > 0].sum() for indicator in indicators])
    return BruteForce(listed, indicators, log_scores)
