"""`SemiMarkov2`: words cut into labelled segments that look back on one more; `SemiMarkovs2`: many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.ragged import Ragged
from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, Program, checked_scores, kept
from isogloss.structures.batch import ProgramBatch, Stack, run_sentences
from isogloss.structures.kbest import checked_k, k_best
from isogloss.structures.semimarkov import Segments
from isogloss.structures.semiring import MAX, Log, Semiring

__all__ = ["SemiMarkov2", "SemiMarkovs2", "n_word_pairs", "n_word_spans"]

FIRST, SECOND, LATER = 0, 1, 2
"""Places of a segment in its word."""
INSIDE, ACROSS = 0, 1
"""Steps inside a word, and across the border of one."""
Integers = NDArray[np.int64]


def n_word_spans(words: ArrayLike, longest: int) -> Integers:
    """int64[n_words]: spans of up to `longest` positions inside words of these lengths.

    >>> n_word_spans([1, 3, 3], 2).tolist()
    [1, 5, 5]
    """
    sizes = np.asarray(words, np.int64)
    short = np.minimum(sizes, longest)
    return np.asarray(short * sizes - short * (short - 1) // 2, np.int64)


def n_word_pairs(words: ArrayLike, longest: int) -> Integers:
    """int64[n_words]: pairs of spans inside words, of which the second begins where the first ends.

    >>> n_word_pairs([1, 3, 4], 2).tolist()
    [0, 4, 8]
    """
    sizes = np.asarray(words, np.int64)
    many = int(sizes.max(initial=0))
    inner = np.arange(1, max(many, 1))
    each = np.minimum(inner, longest) * np.minimum(sizes[:, np.newaxis] - inner, longest)
    return np.asarray(np.maximum(each, 0).sum(axis=1), np.int64)


class SemiMarkov2(Program[Segments]):
    r"""A distribution over the ways to cut a sequence of words into labelled segments; none crosses a word's border.

    .. math:: p(y) = \frac1Z \exp \Big( \sum_i segments[span_i, m_i, z_i] + \sum_{i > 1} steps[w_i, z_{i-1}, z_i]
        + \sum_{i:\, m_i > 0} pairs[(span_{i-1}, span_i), c(z_i)] + steps[1, \cdot, z_1] + steps[1, z_I, \cdot] \Big)

    where :math:`m_i` says whether segment i is the first of its word (0), the second (1) or a later one (2), and
    :math:`w_i` whether a word's border is before it (1) or not (0): what two known boundaries before a segment tell.

    Parameters
    ----------
    segments : float64[n_spans, 3, k]
        Log score of each span in each place with each label; −∞ forbids. Spans are those of up to `longest` positions
        inside words, by begin and then by length. A span at the beginning of a word is read in place 0 only, all others
        in places 1 and 2.
    steps : float64[2, k + 1, k + 1]
        Log score from label to label, inside a word and across its border. Row k of ``steps[1]`` has the beginning and
        column k the end of the sequence; the rest of the last rows and columns is not read.
    words : int[n_words]
        Positions of each word, 1 or more.
    longest : int
        The most positions of a segment.
    pairs : float64[n_pairs, n_classes], optional
        Log score of two neighbouring spans in a word, by the class of the second's label: by the border between them,
        then by the length of the first, then of the second.
    classes : int[k], optional
        The class of each label; without it, each is one of its own.

    Attributes
    ----------
    scores : float64[n_parts]
        All of them, one after the other, in C order: what `marginals`, `parts` and `with_scores` have. A step is used
        as often as it is taken, so that `parts` and `marginals` count it.

    Notes
    -----
    Everything is exact. Without pairs the cost is O(n · longest · k + n k²), since all that a segment needs to know of
    the lengths before it is one bit; with pairs it is O(n · longest² · k + n · longest · k²). A sequence without words
    has one segmentation, the empty one.

    References
    ----------
    Naradowsky and Toutanova, Unsupervised Bilingual Morpheme Segmentation and Alignment with Context-rich Hidden
    Semi-Markov Models, ACL 2011, section 4. We differ: what precedes a word's first segment is its border, and the
    label before it, never the morpheme before it.

    Examples
    --------
    >>> steps = np.zeros((2, 2, 2))
    >>> dist = SemiMarkov2(np.zeros((9, 3, 1)), steps, [3, 2], 3)        # words of 3 and 2 positions: 4 · 2 ways
    >>> round(float(np.exp(dist.log_partition())), 9)
    8.0
    >>> steps[0] = 1.0                                                   # a further segment in a word is worth 1
    >>> SemiMarkov2(np.zeros((9, 3, 1)), steps, [3, 2], 3).argmax()
    ((0, 1, 0), (1, 2, 0), (2, 3, 0), (3, 4, 0), (4, 5, 0))
    """

    def __init__(
        self,
        segments: ArrayLike,
        steps: ArrayLike,
        words: ArrayLike,
        longest: int,
        pairs: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> None:
        sizes = _checked_words(words, longest)
        spans = checked_scores(segments, "SemiMarkov2: segments", (int(n_word_spans(sizes, longest).sum()), 3, None))
        k = spans.shape[2]
        moves = checked_scores(steps, "SemiMarkov2: steps", (2, k + 1, k + 1))
        kinds = np.arange(k) if classes is None else np.asarray(classes, np.int64)
        given = [spans.ravel(), moves.ravel()]
        n_classes = int(kinds.max(initial=-1)) + 1
        if pairs is not None:
            between = checked_scores(pairs, "SemiMarkov2: pairs", (int(n_word_pairs(sizes, longest).sum()), None))
            given, n_classes = [*given, between.ravel()], between.shape[1]
        if kinds.shape != (k,) or not ((kinds >= 0) & (kinds < n_classes)).all():
            raise ParameterError(f"SemiMarkov2: classes should be {k} numbers from 0 to {n_classes - 1}")
        self._set(kept(np.concatenate(given)), sizes, int(longest), kinds, n_classes if pairs is not None else 0)

    def _set(self, scores: Array, words: Integers, longest: int, classes: Integers, n_classes: int) -> None:
        self.scores, self.words, self.longest, self.classes, self.n_classes = scores, words, longest, classes, n_classes

    @classmethod
    def _of(cls, scores: Array, words: Integers, longest: int, classes: Integers, n_classes: int) -> Self:
        """From what is already checked."""
        made = cls.__new__(cls)
        made._set(scores, words, longest, classes, n_classes)
        return made

    @classmethod
    def batch(cls, sequences: Iterable[SemiMarkov2]) -> SemiMarkovs2:
        """Many sequences at once; all have the same longest segments, and pairs or none."""
        each = list(sequences)
        shapes = {(one.longest, one.n_classes) for one in each}
        if len(shapes) > 1:
            raise ParameterError(
                f"SemiMarkov2.batch: all sequences should have the same longest and classes, not {shapes}"
            )
        longest, n_classes = shapes.pop() if shapes else (1, 0)
        stack = Stack.of([one.scores for one in each], "SemiMarkovs2", 1)
        words = Ragged.of([one.words.tolist() for one in each], np.int64)
        classes = Ragged.of([one.classes.tolist() for one in each], np.int64)
        return SemiMarkovs2(stack, words, longest, classes, n_classes)

    @property
    def n(self) -> int:
        """Positions."""
        return int(self.words.sum())

    @property
    def k(self) -> int:
        """Labels."""
        return len(self.classes)

    def __repr__(self) -> str:
        pairs = ", pairs" if self.n_classes else ""
        return f"SemiMarkov2({len(self.words)} words, n={self.n}, longest={self.longest}, k={self.k}{pairs})"

    def _sweep(self, semiring: Semiring, u: Array) -> tuple[float, Array]:
        from isogloss.structures._numba.semimarkov2 import remembering
        from isogloss.structures._numba.semimarkov2_scaled import log_remembering

        grad = np.zeros(len(self.scores))
        shape = (self.words, self.longest, self.k, self.classes, self.n_classes, self.n_classes > 0)
        if isinstance(semiring, Log):
            return float(log_remembering(semiring, self.scores, *shape, grad)), grad
        return float(remembering(semiring, self.scores, *shape, grad, u)), grad

    def _draws(self) -> int:
        return 2 * self.n + 1

    def _raise_infeasible(self) -> NoReturn:
        raise InfeasibleError(
            f"{self!r}: the allowed segments and steps cover no sequence. Give the segments of at least one way to cut "
            "it finite scores"
        )

    def _remake(self, scores: Array) -> Self:
        return self._of(scores, self.words, self.longest, self.classes, self.n_classes)

    def _read(self, parts: Array) -> Segments:
        return _segments(parts, self.words, self.longest, self.k)

    # --- views

    @property
    def _borders(self) -> tuple[int, int]:
        """Where steps and pairs begin."""
        begin = int(n_word_spans(self.words, self.longest).sum()) * 3 * self.k
        return begin, begin + 2 * (self.k + 1) ** 2

    def segment_marginals(self) -> Array:
        """float64[n_spans, 3, k]: the posterior of each segment."""
        return self.marginals()[: self._borders[0]].reshape(-1, 3, self.k)

    def step_marginals(self) -> Array:
        """float64[2, k + 1, k + 1]: how often each step is expected."""
        return self.marginals()[slice(*self._borders)].reshape(2, self.k + 1, self.k + 1)

    def pair_marginals(self) -> Array:
        """float64[n_pairs, n_classes]: the posterior of each pair; empty where there are none."""
        return self.marginals()[self._borders[1] :].reshape(-1, max(self.n_classes, 1))

    def score(self, y: Any) -> float:
        """Log score of a segmentation, not normalised."""
        used = self.parts(y)
        some = used > 0
        return float(used[some] @ self.scores[some])

    def parts(self, y: Any) -> Array:
        """float64[n_parts]: how often each part is used."""
        shape = (self.words, self.longest, self.classes, self.n_classes)
        out = np.zeros(len(self.scores))
        np.add.at(out, _numbers(y, *shape, repr(self)), 1.0)
        return out

    def k_best(self, k: int, *, labels: bool = True) -> list[tuple[float, Segments]]:
        """The `k` best segmentations with their scores, best first, by a search for each position of each.

        Without `labels`, those that differ in labels alone count once, as the best of them.
        """
        checked_k(k, f"{self!r}: k_best")
        if self.n == 0:
            return [(0.0, ())]
        table = _spans_of(self.words, self.longest)
        first = np.searchsorted(table[:, 0], np.arange(self.n + 1))
        kinds = self.k if labels else 1
        found: dict[tuple[int, ...], Segments] = {}

        def chosen(spans: Array, t: int, choice: int) -> Array:
            """The scores of what begins at a position by one choice."""
            shorter, label = divmod(choice, kinds)
            return spans[first[t] + shorter, :, label : label + 1 if labels else self.k]

        def best(fixed: Sequence[int], banned: frozenset[int]) -> tuple[float, list[int]] | None:
            """Choices are what begins at each position, length and label in one number; −1 where nothing does."""
            scores = np.array(self.scores)
            spans = scores[: self._borders[0]].reshape(-1, 3, self.k)
            for t, choice in enumerate(fixed):
                kept_one = chosen(spans, t, choice).copy() if choice >= 0 else None
                spans[first[t] : first[t + 1]] = -np.inf
                if kept_one is not None:
                    chosen(spans, t, choice)[:] = kept_one
            here = len(fixed)
            for choice in banned:
                if choice >= 0:
                    chosen(spans, here, choice)[:] = -np.inf
                else:  # something has to begin here
                    spans[(table[:, 0] < here) & (table[:, 1] > here)] = -np.inf
            value, parts = self._remake(scores)._sweep(MAX, np.empty(0))
            if value == -np.inf:
                return None
            y = self._read(parts)
            choices = [-1] * self.n
            for begin, end, label in y:
                choices[begin] = (end - begin - 1) * kinds + (label if labels else 0)
            found[tuple(choices)] = y
            return value, choices

        return [(score, found[choices]) for score, choices in k_best(best, k)]


class SemiMarkovs2(ProgramBatch[Segments]):
    """Many distributions over segmentations of words: the batch view of `SemiMarkov2`.

    Every number equals, to the bit, what `SemiMarkov2` gives for the sequence alone, on any number of threads.

    Parameters
    ----------
    scores : Stack
        float64[n_parts] for each sequence: segments, steps, pairs.
    words : Ragged of int64
        Positions of the words of each sequence.
    longest : int
        The most positions of a segment, for all.
    classes : Ragged of int64
        The class of each label of each sequence, which may differ in their numbers of labels.
    n_classes : int
        How many there are, for all; 0 where there are no pairs.

    Examples
    --------
    >>> many = SemiMarkov2.batch(
    ...     SemiMarkov2(np.zeros((int(n_word_spans([n], 3).sum()), 3, 1)), np.zeros((2, 2, 2)), [n], 3)
    ...     for n in range(1, 5))
    >>> np.exp(many.log_partition()).round(6).tolist()     # compositions of n in parts of up to 3
    [1.0, 2.0, 4.0, 7.0]
    """

    def __init__(self, scores: Stack, words: Ragged, longest: int, classes: Ragged, n_classes: int) -> None:
        self.words, self.longest, self.classes, self.n_classes = words, int(longest), classes, int(n_classes)
        if not np.array_equal(np.diff(scores.offsets), self._sizes().sum(axis=0)):
            raise ParameterError("SemiMarkovs2: scores should have segments, steps and pairs of every sequence")
        self.scores = scores.checked("SemiMarkovs2: scores")

    def _sizes(self) -> Integers:
        """int64[3, n_sequences]: how many scores of segments, steps and pairs each has."""
        ks = self.classes.lengths
        spans = _sums(n_word_spans(self.words.flat, self.longest), self.words.lengths)
        pairs = np.zeros(len(spans), np.int64)
        if self.n_classes:
            pairs = _sums(n_word_pairs(self.words.flat, self.longest), self.words.lengths) * self.n_classes
        return np.stack([spans * 3 * ks, 2 * (ks + 1) ** 2, pairs])

    def __getitem__(self, s: int) -> SemiMarkov2:
        return SemiMarkov2._of(self.scores[s], self.words[s], self.longest, self.classes[s], self.n_classes)

    def _remake(self, scores: Stack) -> Self:
        return type(self)(scores, self.words, self.longest, self.classes, self.n_classes)

    def _take(self, items: Integers) -> SemiMarkovs2:
        words, classes = self.words.take(items), self.classes.take(items)
        return SemiMarkovs2(self.scores.take(items), words, self.longest, classes, self.n_classes)

    def _sweep(self, semiring: Semiring, u: Array, starts: Integers) -> tuple[Array, Stack]:
        from isogloss.structures._numba.semimarkov2 import remembering_all
        from isogloss.structures._numba.semimarkov2_scaled import log_remembering_all

        scores = self.scores.values.view()
        scores.flags.writeable = False  # so that kernels are compiled for one type
        grad, values = np.zeros(len(scores)), np.empty(len(self))
        words, classes = self.words, self.classes
        layout = (words.values, words.offsets, self.longest, classes.lengths, classes.values, classes.offsets)
        flags = (self.n_classes, self.n_classes > 0)
        given = (scores, self.scores.offsets, *layout, *flags, grad)
        if isinstance(semiring, Log):
            run_sentences(log_remembering_all, len(self), semiring, *given, values)
        else:
            run_sentences(remembering_all, len(self), semiring, *given, u, starts, values)
        return values, self.scores.like(grad)

    def _draws(self) -> Integers:
        return 2 * _sums(self.words.flat, self.words.lengths) + 1

    def _structures(self, parts: Stack) -> list[Segments]:
        each = zip(parts, self.words, self.classes.lengths.tolist(), strict=True)
        return [_segments(one, words, self.longest, k) for one, words, k in each]


def _checked_words(words: ArrayLike, longest: int) -> Integers:
    sizes = np.asarray(words, np.int64)
    if sizes.ndim != 1 or (sizes.size and sizes.min() < 1) or longest < 1:
        raise ParameterError("SemiMarkov2: words should be lengths of 1 or more, and so should be longest")
    return sizes


def _sums(values: Integers, lengths: Integers) -> Integers:
    """Sums of runs of these lengths."""
    before = np.concatenate([[0], np.cumsum(values)])
    ends = np.cumsum(lengths)
    return np.asarray(before[ends] - before[ends - lengths], np.int64)


def _spans_of(words: Integers, longest: int) -> Integers:
    """int64[n_spans, 2]: begin and end of all spans, in their order."""
    rows, begin = [np.zeros((0, 2), np.int64)], 0
    for size in words.tolist():
        for first in range(begin, begin + size):
            ends = np.arange(first + 1, min(begin + size, first + longest) + 1)
            rows.append(np.stack([np.full(len(ends), first), ends], axis=1))
        begin += size
    return np.concatenate(rows)


def _segments(parts: Array, words: Integers, longest: int, k: int) -> Segments:
    """The segments that have a 1 among parts."""
    n_spans = int(n_word_spans(words, longest).sum())
    found = np.flatnonzero(parts[: n_spans * 3 * k])
    if not len(found):
        return ()
    spans, labels = found // (3 * k), found % k
    rows = _spans_of(words, longest)[spans]
    return tuple(zip(rows[:, 0].tolist(), rows[:, 1].tolist(), labels.tolist(), strict=True))


def _numbers(y: Any, words: Integers, longest: int, classes: Integers, n_classes: int, place: str) -> list[int]:
    """Which parts a segmentation has; a step comes as often as it is taken."""
    try:
        rows = [(int(begin), int(end), int(label)) for begin, end, label in y]
    except (TypeError, ValueError) as finding:
        raise ParameterError(f"{place}: a segmentation has (begin, end, label) of segments, not {y!r}") from finding
    k, ends = len(classes), np.cumsum(words)
    steps = int(n_word_spans(words, longest).sum()) * 3 * k
    if not len(words) and not rows:
        return []
    found: list[int] = []
    behind, number, span, pair, last = 0, 0, 0, 0, k
    for word, stop in enumerate(ends.tolist()):
        begin_of_word, inner, width = behind, 0, 0
        while behind < stop:
            begin, end, label = rows[number] if number < len(rows) else (-1, -1, -1)
            if begin != behind or not 0 < end - begin <= longest or end > stop or not 0 <= label < k:
                raise ParameterError(
                    f"{place}: {(begin, end, label)} cannot be segment {number}: each begins where the one before it "
                    f"ends, has up to {longest} positions of a word, and a label from 0 to {k - 1}"
                )
            own = span + int(_before(begin - begin_of_word, stop - begin_of_word, longest)) + end - begin - 1
            found.append((own * 3 + min(inner, LATER)) * k + label)
            found.append(steps + ((INSIDE if inner else ACROSS) * (k + 1) + last) * (k + 1) + label)
            if inner and n_classes:
                at = pair + _pairs_before(begin - begin_of_word, stop - begin_of_word, longest)
                at += (width - 1) * min(stop - begin, longest) + end - begin - 1
                found.append(steps + 2 * (k + 1) ** 2 + at * n_classes + int(classes[label]))
            behind, number, inner, width, last = end, number + 1, inner + 1, end - begin, label
        span += int(n_word_spans(words[word : word + 1], longest)[0])
        pair += int(n_word_pairs(words[word : word + 1], longest)[0])
    if number < len(rows):
        raise ParameterError(f"{place}: its {len(ends)} words end with segment {number - 1}, and there are {len(rows)}")
    return [*found, steps + ((k + 1) + last) * (k + 1) + k]


def _before(begin: int, size: int, longest: int) -> int:
    """How many spans of a word begin before a position."""
    return sum(min(size - t, longest) for t in range(begin))


def _pairs_before(border: int, size: int, longest: int) -> int:
    """How many pairs of spans of a word have their border before a position."""
    return sum(min(t, longest) * min(size - t, longest) for t in range(1, border))
