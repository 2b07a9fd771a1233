"""`Brackets`: bracketings of a sentence, binary or of any fan-out; `Bracketings`: many of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, checked_scores
from isogloss.structures.batch import Stack
from isogloss.structures.span_charts import Ints, Kind, SpanBatch, SpanDistribution, checked_arity
from isogloss.structures.spans import n_words, span_number

__all__ = ["Bracketings", "Brackets", "Spans", "count_bracketings"]

Spans = frozenset[tuple[int, int]]


class Brackets(SpanDistribution[Spans]):
    r"""A distribution over the ways to bracket a sentence of n words.

    .. math:: p(y) = \frac{1}{Z} \exp \sum_{(i, j) \in y} scores[(i, j)]

    A tree is the set of all its brackets (i, j), fence-posts 0 ≤ i < j ≤ n: single words and the whole sentence are in
    every tree, and their scores count.

    Parameters
    ----------
    scores : float64[n_spans]
        Log score of each bracket, narrow ones first, then by start (`spans_of`); −∞ forbids. The array is copied.
    arity : "binary" or "any"
        Whether a bracket of several words has exactly two parts, or two or more.

    Notes
    -----
    Everything is exact, in O(n³). A sentence without words has one tree, the empty one. A set that is no tree of this
    kind has log probability −∞; brackets that are no spans of the sentence raise `ParameterError`.

    References
    ----------
    D. A. Smith, Efficient inference for trees and alignments, PhD thesis, 2010, section 5.1.2 (CKYBRACKET and
    EARLEYBRACKET); Lari and Young, Computer Speech and Language 4(1), 1990 (inside and outside).

    Examples
    --------
    >>> [round(float(np.exp(Brackets(np.zeros(n * (n + 1) // 2)).log_partition()))) for n in range(1, 7)]
    [1, 1, 2, 5, 14, 42]
    >>> dist = Brackets(np.zeros(6), arity="any")
    >>> round(float(np.exp(dist.log_partition())), 9), dist.marginals().round(4).tolist()
    (3.0, [1.0, 1.0, 1.0, 0.3333, 0.3333, 1.0])
    >>> sorted(dist.with_scores([0, 0, 0, 1, 2, 0]).argmax())
    [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)]
    """

    def __init__(self, scores: ArrayLike, *, arity: str = "binary") -> None:
        self.scores = checked_scores(scores, "Brackets: scores", (None,))
        if n_words(len(self.scores)) < 0:
            raise ParameterError(
                f"Brackets: {len(self.scores)} scores; n words have n(n + 1)/2 spans, that is 0, 1, 3, 6 …"
            )
        self._kind = Kind(checked_arity(arity, "Brackets"), False, True)

    @classmethod
    def batch(cls, scores: Iterable[ArrayLike], *, arity: str = "binary") -> Bracketings:
        """Many sentences at once, from one array of scores for each."""
        return Bracketings(Stack.of(scores, "Bracketings: scores", 1), arity=arity)

    def __repr__(self) -> str:
        return f"Brackets(n={self.n}, arity={self.arity!r})"

    def _raise_infeasible(self) -> NoReturn:
        forbidden = self.scores == -np.inf
        if forbidden[: self.n].any():
            finding = f"word {int(np.flatnonzero(forbidden[: self.n])[0])} is forbidden, and every tree has it"
        elif forbidden[-1:].any():
            finding = "the bracket of the whole sentence is forbidden, and every tree has it"
        else:
            finding = "the allowed brackets make no tree" + (" in which all are binary" if self._kind.binary else "")
        raise InfeasibleError(f"{self!r}: {finding}. Give the brackets of at least one tree finite scores")

    @staticmethod
    def _tree(ends: Ints, labels: Ints) -> Spans:
        return frozenset(zip(ends[:, 0].tolist(), ends[:, 1].tolist(), strict=True))

    def _checked(self, y: Any) -> Spans:
        try:
            found = frozenset((int(i), int(j)) for i, j in y)
        except (TypeError, ValueError) as finding:
            raise ParameterError(f"{self!r}: a tree is a set of brackets (i, j), not {y!r}") from finding
        for i, j in found:
            if not 0 <= i < j <= self.n:
                raise ParameterError(f"{self!r}: brackets are 0 <= i < j <= {self.n}, not {(i, j)}")
        return found

    def parts(self, y: Any) -> Array:
        """float64[n_spans]: 1 for each bracket of the tree, 0 elsewhere."""
        out = np.zeros(self.scores.shape)
        out[[span_number(i, j, self.n) for i, j in self._checked(y)]] = 1.0
        return out


class Bracketings(SpanBatch[Spans]):
    """Many distributions over bracketings, of sentences of any lengths: the batch view of `Brackets`.

    Every number equals, to the bit, what `Brackets` gives for the sentence alone, on any number of threads.

    Parameters
    ----------
    scores : Stack
        float64[n_spans] for each sentence.
    arity : "binary" or "any"
        As for `Brackets`, for all sentences.

    Examples
    --------
    >>> many = Bracketings(Stack.of([np.zeros(n * (n + 1) // 2) for n in range(6)]), arity="any")
    >>> np.exp(many.log_partition()).round(6).tolist()
    [1.0, 1.0, 1.0, 3.0, 11.0, 45.0]
    """

    _one = Brackets

    def __init__(self, scores: Stack, *, arity: str = "binary") -> None:
        self._set(scores, Kind(checked_arity(arity, "Bracketings"), False, True), 1)


def count_bracketings(n: int, *, arity: str = "binary") -> int:
    """How many bracketings n words have: Catalan numbers, or little Schröder numbers for any fan-out.

    Examples
    --------
    >>> [count_bracketings(n) for n in range(7)], [count_bracketings(n, arity="any") for n in range(7)]
    ([1, 1, 1, 2, 5, 14, 42], [1, 1, 1, 3, 11, 45, 197])
    """
    binary = checked_arity(arity, "count_bracketings")
    one, two = [1, 1], [0, 0]  # by width: one constituent, and two or more side by side
    for width in range(2, n + 1):
        rest = one if binary else [a + b for a, b in zip(one, two, strict=True)]
        two.append(sum(one[left] * rest[width - left] for left in range(1, width)))
        one.append(two[width])
    return one[n]
