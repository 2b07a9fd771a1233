"""Dynamic programs with several kinds of parts, such as links and siblings: one sweep for the derivatives by each.

`scores` is the first kind: what `marginals`, `parts` and `with_scores` are about. The others have methods of their own,
and learners see all kinds together through `isogloss.structures.base.Flat`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isogloss.structures.base import Array, Program, expected, kept
from isogloss.structures.batch import ProgramBatch, Stack
from isogloss.structures.semiring import LOG, Semiring

__all__ = ["KindsBatch", "KindsProgram"]

Y = TypeVar("Y")


class KindsProgram(Program[Y]):
    """A program over one sentence; a subclass writes `_all_kinds`, `part_scores` and `kinds_of`."""

    @abstractmethod
    def _all_kinds(self, semiring: Semiring, u: Array) -> tuple[float, tuple[Array, ...]]:
        """⊕ over all structures, and its derivatives by each kind of scores."""

    @abstractmethod
    def part_scores(self) -> tuple[Array, ...]:
        """Scores of each kind of part, `scores` first."""

    @abstractmethod
    def kinds_of(self, y: Any) -> tuple[Array, ...]:
        """How often the structure `y` has each part, in arrays like those of `part_scores`."""

    @cached_property
    def _sums(self) -> tuple[float, tuple[Array, ...]]:
        value, grads = self._all_kinds(LOG, np.empty(0))
        if value == -np.inf:
            self._raise_infeasible()
        return value, tuple(kept(grad) for grad in grads)

    def _sweep(self, semiring: Semiring, u: Array) -> tuple[float, Array]:
        value, grads = self._all_kinds(semiring, u)
        return value, grads[0]

    def _solve(self) -> tuple[float, Array]:
        value, grads = self._sums
        return value, grads[0]

    def part_marginals(self) -> tuple[Array, ...]:
        """How often each part is expected, in arrays like those of `part_scores`."""
        return self._sums[1]

    def entropy(self) -> float:
        """−Σ p log p in nats, as log Z − Σ marginals · scores over the allowed parts."""
        value, grads = self._sums
        for marginals, scores in zip(grads, self.part_scores(), strict=True):
            value -= expected(marginals, scores)
        return max(0.0, value)

    def _total(self, y: Any) -> float:
        """Log score of all parts of a structure, of every kind."""
        pairs = zip(self.part_scores(), self.kinds_of(y), strict=True)
        return sum(expected(used, scores) for scores, used in pairs)


class KindsBatch(ProgramBatch[Y]):
    """Programs over many sentences; a subclass writes `_all_kinds` and `_kinds`."""

    @abstractmethod
    def _all_kinds(self, semiring: Semiring, u: Array, starts: NDArray[np.int64]) -> tuple[Array, list[Array]]:
        """For each sentence ⊕ over all structures, and the derivatives by each kind of scores, laid out like them."""

    @abstractmethod
    def _kinds(self) -> Sequence[Stack]:
        """Scores of each kind of part, `scores` first."""

    @cached_property
    def _sums(self) -> tuple[Array, list[Array]]:
        values, grads = self._all_kinds(LOG, np.empty(0), np.zeros(len(self) + 1, np.int64))
        self._refuse_infeasible(values)
        return values, [kept(grad) for grad in grads]

    def _sweep(self, semiring: Semiring, u: Array, starts: NDArray[np.int64]) -> tuple[Array, Stack]:
        values, grads = self._all_kinds(semiring, u, starts)
        return values, self.scores.like(grads[0])

    def _solve(self) -> tuple[Array, Stack]:
        values, grads = self._sums
        return values, self.scores.like(grads[0])

    def entropy(self) -> Array:
        """float64[n_sentences]: −Σ p log p in nats."""
        values, grads = self._sums
        out = values.copy()
        for grad, stack in zip(grads, self._kinds(), strict=True):
            means = (expected(*pair) for pair in zip(stack.like(grad), stack, strict=True))
            out -= np.fromiter(means, np.float64, len(self))
        return np.maximum(0.0, out)
