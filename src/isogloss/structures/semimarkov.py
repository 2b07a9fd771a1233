"""`SemiMarkov`: sentences cut into labelled segments; `SemiMarkovs`: many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, Program, checked_scores, kept
from isogloss.structures.batch import ProgramBatch, Stack, run_sentences
from isogloss.structures.kbest import checked_k
from isogloss.structures.semiring import Semiring

__all__ = ["Segments", "SemiMarkov", "SemiMarkovs", "n_segment_parts"]

Segments = tuple[tuple[int, int, int], ...]
"""A sentence as (begin, end, label) from left to right; each begins where the one before it ends."""


def n_segment_parts(lengths: ArrayLike, longest: int, k: int) -> NDArray[np.int64]:
    """int64[n_sentences]: how many scores sentences of these lengths have.

    Examples
    --------
    >>> n_segment_parts([0, 1, 3], 2, 4).tolist()
    [0, 8, 56]
    """
    sizes = np.asarray(lengths, np.int64)
    return np.asarray(sizes * longest * k + np.maximum(sizes - 1, 0) * k * k, np.int64)


class SemiMarkov(Program[Segments]):
    r"""A distribution over the ways to cut n positions into segments with labels.

    .. math:: p(y) = \frac{1}{Z} \exp \Big(\sum_{(b, e, \ell) \in y} segments[b, e - b - 1, \ell]
        + \sum_{(a, b, \ell'), (b, e, \ell) \in y} steps[b - 1, \ell', \ell]\Big)

    Parameters
    ----------
    segments : float64[n, longest, k]
        Log score of the segment that begins at *b*, has *l* positions and label *y*, at ``[b, l - 1, y]``; −∞ forbids.
        Those that would end behind position n are not looked at. The array is copied.
    steps : float64[n - 1, k, k], optional
        Log score of a boundary before position t with labels x and y on its two sides, at ``[t - 1, x, y]``; 0 unless
        given. For n = 0 it has no rows either.

    Attributes
    ----------
    scores : float64[n_parts]
        Both, one after the other, in C order: what `marginals`, `parts` and `with_scores` have.

    Notes
    -----
    Everything is exact, in O(n · longest · k + n k²). Boundaries that are known are −∞ for segments that cross them,
    and for those that would have an end where none is; a score of the first or the last label is added to segments
    that begin or end the sentence. A sentence without positions has one segmentation, the empty one.

    References
    ----------
    Sarawagi and Cohen, Semi-Markov Conditional Random Fields for Information Extraction, NIPS 2004.

    Examples
    --------
    >>> [round(float(np.exp(SemiMarkov(np.zeros((n, n, 2))).log_partition()))) for n in range(1, 5)]  # k (k + 1)ⁿ⁻¹
    [2, 6, 18, 54]
    >>> scores = np.zeros((3, 2, 2))
    >>> scores[1, 1, 1] = 2.0                              # positions 1 and 2 together, with label 1
    >>> dist = SemiMarkov(scores)
    >>> dist.argmax(), dist.segment_marginals()[1, 1].round(3).tolist()
    (((0, 1, 0), (1, 3, 1)), [0.069, 0.514])
    """

    def __init__(self, segments: ArrayLike, steps: ArrayLike | None = None) -> None:
        whole = checked_scores(segments, "SemiMarkov: segments", (None, None, None))
        n, self.longest, self.k = (int(size) for size in whole.shape)
        moves = np.zeros((max(n - 1, 0), self.k, self.k)) if steps is None else steps
        between = checked_scores(moves, "SemiMarkov: steps", (max(n - 1, 0), self.k, self.k))
        self.n, self.scores = n, kept(np.concatenate([whole.ravel(), between.ravel()]))

    @classmethod
    def _of(cls, scores: Array, n: int, longest: int, k: int) -> Self:
        """From scores that are already checked."""
        made = cls.__new__(cls)
        made.scores, made.n, made.longest, made.k = scores, n, longest, k
        return made

    @classmethod
    def batch(cls, segments: Iterable[ArrayLike], steps: Iterable[ArrayLike] | None = None) -> SemiMarkovs:
        """Many sentences at once, from arrays for each; all have the same labels and longest segments."""
        each = [cls(one) for one in segments] if steps is None else [
            cls(one, two) for one, two in zip(segments, steps, strict=True)
        ]  # fmt: skip
        shapes = {(one.longest, one.k) for one in each}
        if len(shapes) > 1:
            raise ParameterError(
                f"SemiMarkov.batch: segments should be [n, longest, k] with the same longest and k for all, "
                f"not {shapes}"
            )
        longest, k = shapes.pop() if shapes else (1, 1)
        lengths = np.array([one.n for one in each], np.int64)
        return SemiMarkovs(Stack.of([one.scores for one in each], "SemiMarkovs", 1), lengths, longest, k)

    def __repr__(self) -> str:
        return f"SemiMarkov(n={self.n}, longest={self.longest}, k={self.k})"

    def _sweep(self, semiring: Semiring, u: Array) -> tuple[float, Array]:
        from isogloss.structures._numba.semimarkov import segmentation

        grad = np.zeros(len(self.scores))
        return float(segmentation(semiring, self.scores, self.n, self.longest, self.k, grad, u)), grad

    def _draws(self) -> int:
        return 2 * self.n + 1

    def _raise_infeasible(self) -> NoReturn:
        raise InfeasibleError(
            f"{self!r}: the allowed segments and steps cover no sentence. Give the segments of at least one way to cut "
            "it finite scores"
        )

    def _remake(self, scores: Array) -> Self:
        return self._of(scores, self.n, self.longest, self.k)

    def _read(self, parts: Array) -> Segments:
        return _segments(parts, self.n, self.longest, self.k)

    # --- views

    def segment_scores(self) -> Array:
        """float64[n, longest, k]: the scores of segments."""
        return self.scores[: self.n * self.longest * self.k].reshape(self.n, self.longest, self.k)

    def segment_marginals(self) -> Array:
        """float64[n, longest, k]: the posterior of each segment."""
        return self.marginals()[: self.n * self.longest * self.k].reshape(self.n, self.longest, self.k)

    def step_marginals(self) -> Array:
        """float64[n - 1, k, k]: the posterior of a boundary before each position but the first, with its two labels."""
        return self.marginals()[self.n * self.longest * self.k :].reshape(-1, self.k, self.k)

    def parts(self, y: Any) -> Array:
        """float64[n_parts]: 1 for each segment and each step, 0 elsewhere."""
        out = np.zeros(len(self.scores))
        out[_numbers(y, self.n, self.longest, self.k, repr(self))] = 1.0
        return out

    def k_best(self, k: int) -> list[tuple[float, Segments]]:
        """The `k` best segmentations with their scores, best first; fewer if fewer are allowed."""
        alone = SemiMarkovs(Stack.one(self.scores), [self.n], self.longest, self.k)
        found = alone._best(checked_k(k, f"{self!r}: k_best"))[0]
        if not found:
            self._raise_infeasible()
        return found


class SemiMarkovs(ProgramBatch[Segments]):
    """Many distributions over segmentations, of sentences of any lengths: the batch view of `SemiMarkov`.

    Every number equals, to the bit, what `SemiMarkov` gives for the sentence alone, on any number of threads.

    Parameters
    ----------
    scores : Stack
        float64[n_parts] for each sentence: segments, then steps.
    lengths : int64[n_sentences]
    longest, k : int
        The most positions of a segment, and the number of labels, for all sentences.

    Examples
    --------
    >>> many = SemiMarkov.batch([np.zeros((n, 3, 1)) for n in range(5)])
    >>> np.exp(many.log_partition()).round(6).tolist()     # compositions of n in parts of up to 3
    [1.0, 1.0, 2.0, 4.0, 7.0]
    """

    def __init__(self, scores: Stack, lengths: ArrayLike, longest: int, k: int) -> None:
        self.lengths, self.longest, self.k = np.asarray(lengths, np.int64), int(longest), int(k)
        if not np.array_equal(np.diff(scores.offsets), n_segment_parts(self.lengths, self.longest, self.k)):
            raise ParameterError("SemiMarkovs: scores should have segments and steps of every sentence")
        self.scores = scores.checked("SemiMarkovs: scores")

    def __getitem__(self, s: int) -> SemiMarkov:
        return SemiMarkov._of(self.scores[s], int(self.lengths[s]), self.longest, self.k)

    def _remake(self, scores: Stack) -> Self:
        return type(self)(scores, self.lengths, self.longest, self.k)

    def _take(self, items: NDArray[np.int64]) -> SemiMarkovs:
        return SemiMarkovs(self.scores.take(items), self.lengths[items], self.longest, self.k)

    def _sweep(self, semiring: Semiring, u: Array, starts: NDArray[np.int64]) -> tuple[Array, Stack]:
        from isogloss.structures._numba.semimarkov import segmentations

        scores = self.scores.values.view()
        scores.flags.writeable = False  # so that kernels are compiled for one type
        grad, values = np.zeros(len(scores)), np.empty(len(self))
        given = (scores, self.scores.offsets, self.lengths, self.longest, self.k, grad, u, starts)
        run_sentences(segmentations, len(self), semiring, *given, values)
        return values, self.scores.like(grad)

    def _draws(self) -> NDArray[np.int64]:
        return 2 * self.lengths + 1

    def _structures(self, parts: Stack) -> list[Segments]:
        each = zip(parts, self.lengths.tolist(), strict=True)
        return [_segments(one, n, self.longest, self.k) for one, n in each]

    def parts(self, structures: Sequence[Any]) -> Stack:
        """Parts of one segmentation for each sentence, laid out as `scores`."""
        out = np.zeros(len(self.scores.values))
        for s, y in enumerate(self._one_each(structures)):
            place = f"{self!r}: sentence {s}"
            out[self.scores.offsets[s] + _numbers(y, int(self.lengths[s]), self.longest, self.k, place)] = 1.0
        return self.scores.like(out)

    def k_best(self, k: int) -> list[list[tuple[float, Segments]]]:
        """The `k` best segmentations of each sentence with their scores, best first; fewer if fewer are allowed."""
        found = self._best(checked_k(k, f"{self!r}: k_best"))
        self._refuse_infeasible(np.array([0.0 if own else -np.inf for own in found]))
        return found

    def _best(self, size: int) -> list[list[tuple[float, Segments]]]:
        """The same; nothing for sentences that allow nothing."""
        from isogloss.structures._numba.semimarkov_kbest import best_segmentations

        most = int(self.lengths.max(initial=0))
        size = min(size, (self.k + 1) ** min(most, 64))  # no sentence has more ways
        places = size * self.lengths
        starts = (np.cumsum(places) - places).astype(np.int64)
        scores, counts = np.empty((len(self), size)), np.empty((len(self), size), np.int64)
        segments = np.empty((int(places.sum()), 3), np.int64)
        values = self.scores.values.view()
        values.flags.writeable = False  # so that kernels are compiled for one type
        given = (values, self.scores.offsets, self.lengths, self.longest, self.k, size, starts)
        run_sentences(best_segmentations, len(self), *given, scores, counts, segments)
        found: list[list[tuple[float, Segments]]] = []
        for s, n in enumerate(self.lengths.tolist()):
            own = []
            for c in np.flatnonzero(scores[s] > -np.inf).tolist():
                first = int(starts[s]) + c * n
                rows = segments[first : first + int(counts[s, c])][::-1].tolist()
                own.append((float(scores[s, c]), tuple((begin, end, label) for begin, end, label in rows)))
            found.append(own)
        return found

    def segment_marginals(self) -> Stack:
        """The posterior of each segment: float64[n, longest, k] for each sentence."""
        sizes = self.lengths * self.longest * self.k
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        whole = self.marginals()
        places = np.arange(int(offsets[-1])) + np.repeat(whole.offsets[:-1] - offsets[:-1], sizes)
        shapes = np.stack([self.lengths, *(np.full(len(self), size) for size in (self.longest, self.k))], axis=1)
        return Stack(whole.values[places], offsets, shapes.astype(np.int64))


def _segments(parts: Array, n: int, longest: int, k: int) -> Segments:
    """The segments that have a 1 among parts."""
    found = np.flatnonzero(parts[: n * longest * k])
    starts, rest = np.divmod(found, longest * k) if longest * k else (found, found)
    shorter, labels = np.divmod(rest, k) if k else (rest, rest)
    return tuple(zip(starts.tolist(), (starts + shorter + 1).tolist(), labels.tolist(), strict=True))


def _numbers(y: Any, n: int, longest: int, k: int, place: str) -> NDArray[np.int64]:
    """Which parts a segmentation has."""
    try:
        rows = [(int(begin), int(end), int(label)) for begin, end, label in y]
    except (TypeError, ValueError) as finding:
        raise ParameterError(f"{place}: a segmentation has (begin, end, label) of segments, not {y!r}") from finding
    behind = 0
    for begin, end, label in rows:
        if begin != behind or not 0 < end - begin <= longest or end > n or not 0 <= label < k:
            raise ParameterError(
                f"{place}: {(begin, end, label)} cannot be the next of its segments: each begins where the one before "
                f"it ends, has up to {longest} of {n} positions, and a label from 0 to {k - 1}"
            )
        behind = end
    if behind != n:
        raise ParameterError(f"{place}: its segments end at {behind}, and the sentence has {n} positions")
    table = np.array(rows, np.int64).reshape(-1, 3)
    begins, ends, labels = table.T
    own = (begins * longest + ends - begins - 1) * k + labels
    steps = n * longest * k + ((begins[1:] - 1) * k + labels[:-1]) * k + labels[1:]
    return np.asarray(np.concatenate([own, steps]), np.int64)
