r"""Which sentence pairs to align by hand next: those where the aligner expects to err, each about other words.

The posterior :math:`p_{ij}` of a model says what it expects to get wrong. Linking every cell that reaches one half is
the decision with the fewest expected errors; of these, :math:`x_{ij} = \min(p_{ij}, 1 - p_{ij})` are in cell (i, j).
With the links :math:`A` of a pair, its expected alignment error rate is

.. math::
    \frac{\sum_{ij} x_{ij}}{|A| + \sum_{ij} p_{ij}}
    = 1 - \frac{2 \sum_{(i,j) \in A} p_{ij}}{|A| + \sum_{ij} p_{ij}}.

Pairs are taken one after the other. The doubt about a word, :math:`d_i = \sum_j x_{ij}`, counts less with every pair
that had this word before, whether it was aligned already or taken just now; so those that follow are about other words:

.. math::
    \text{gain}(k) = \frac{\sum_{i} d_i \gamma^{c(i)} + \sum_{j} d_j \gamma^{c(j)}}
    {2 \, (|A| + \sum_{ij} p_{ij})^{\alpha}}

With :math:`\gamma = 1, \alpha = 1` this is the expected error rate alone, with :math:`\alpha = 0` the number of errors.
A rate prefers the shortest pairs, where one doubtful link is half of all; a number the longest, which take longest to
align by hand. A band of lengths keeps both within reason.

References
----------
Settles and Craven, EMNLP 2008 (uncertainty of sequences, length, density). Minoux 1978 (lazy evaluation of gains that
can only fall).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links, Text
from isogloss.data.formats import BitextLike, as_bitext
from isogloss.errors import BitextError, ParameterError
from isogloss.progress import Progress, QuietProgress

__all__ = ["Doubts", "Suggestion", "suggest"]

Array = NDArray[np.float64]
PART = 2000
"""Pairs whose posteriors are in memory at a time."""
ALIKE = 0.7
"""Pairs that share this much of their words on a side, of all that either has, are taken for one."""
BAND = (0.25, 0.9)
"""Shares of the pairs that are shorter than the shortest and than the longest suggested, unless lengths are given."""
LINKED = 0.5
"""Pairs with less than this part of the usual share of linked words are taken for bad translations."""


@dataclass(frozen=True)
class Suggestion:
    """A sentence pair worth aligning.

    Parameters
    ----------
    pair : int
        Its number, from 0.
    line : int
        Its line in the file, from 1.
    gain : float
        What it was taken for: see the module; never larger than that of the suggestion before.
    error : float
        Expected alignment error rate of the model there, 0 to 1.
    errors : float
        Expected number of wrong and missed links.
    n_source, n_target : int
        Words.
    """

    pair: int
    line: int
    gain: float
    error: float
    errors: float
    n_source: int
    n_target: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data; the error rate in percent."""
        return {**asdict(self), "error": 100 * self.error}


@dataclass(frozen=True, eq=False)
class Doubts:
    """What a model expects to get wrong in a text.

    Parameters
    ----------
    source, target : float64[n_words]
        Expected errors at each word of all pairs, one after the other.
    errors : float64[n_pairs]
        Expected errors of each pair: the sum over its words, of either side.
    links : float64[n_pairs]
        Links of the model and of the truth, both counted: :math:`|A| + \\sum p`.
    linked : float64[n_pairs]
        The expected share of words that have a partner; not a number for pairs that were passed over.
    """

    source: Array
    target: Array
    errors: Array
    links: Array
    linked: Array

    @property
    def error(self) -> Array:
        """Expected alignment error rate of each pair; 0 where no link is expected."""
        return np.divide(self.errors, self.links, out=np.zeros_like(self.errors), where=self.links > 0)

    @classmethod
    def of(cls, posteriors: Iterable[NDArray[Any]], bitext: Bitext) -> Doubts:
        """From the posterior of every cell, float[n_source, n_target] for each pair; empty where it was passed over.

        Examples
        --------
        >>> bitext = Bitext.of([("a b", "x"), ("c", "y")])
        >>> doubts = Doubts.of([np.array([[0.9], [0.2]]), np.array([[0.5]])], bitext)
        >>> doubts.source.round(2), doubts.errors.round(2), doubts.error.round(3)
        (array([0.1, 0.2, 0.5]), array([0.3, 0.5]), array([0.143, 0.333]))
        """
        sides = bitext.source.ids, bitext.target.ids
        by_word = [np.zeros(int(ids.lengths.sum())) for ids in sides]
        starts = [np.concatenate([[0], np.cumsum(ids.lengths)]) for ids in sides]
        sums = np.zeros((len(bitext), 2))
        linked = np.full(len(bitext), np.nan)
        for pair, posterior in enumerate(posteriors):
            if not posterior.size:
                continue
            p = np.clip(posterior.astype(np.float64), 0.0, 1.0)
            doubt = np.minimum(p, 1.0 - p)
            for side in (0, 1):
                by_word[side][starts[side][pair] : starts[side][pair + 1]] = doubt.sum(axis=1 - side)
            sums[pair] = doubt.sum(), p.sum() + np.count_nonzero(p >= 0.5)
            linked[pair] = np.concatenate([np.minimum(1.0, p.sum(axis=axis)) for axis in (0, 1)]).mean()
        return cls(by_word[0], by_word[1], sums[:, 0], sums[:, 1], linked)

    @classmethod
    def by(
        cls,
        aligner: Any,
        bitext: Bitext,
        *,
        links: Mapping[str, Links] | None = None,
        progress: Progress | None = None,
    ) -> Doubts:
        """Of an aligner, which has `predict_proba`; a text that it was trained on is judged as it does that."""
        progress = progress or QuietProgress()
        own = getattr(aligner, "_trained_on", None)
        if own is not None and own[0] is bitext:  # in one piece: a part of it would be a new text
            return cls.of(aligner.predict_proba(bitext), bitext)
        parts = []
        progress.start("Looking for doubts", len(bitext))
        try:
            for start in range(0, len(bitext), PART):
                part = bitext.part(start, min(start + PART, len(bitext)))
                more = {}
                if links is not None:
                    more = {"links": {name: given.part(start, start + len(part)) for name, given in links.items()}}
                parts.append(cls.of(aligner.predict_proba(part, **more), part))
                progress.update(start + len(part))
        finally:
            progress.finish()
        names = ("source", "target", "errors", "links", "linked")
        return cls(*(np.concatenate([np.zeros(0), *(getattr(part, name) for part in parts)]) for name in names))


def suggest(
    aligner: Any,
    bitext: BitextLike,
    n: int = 20,
    *,
    gold: Links | None = None,
    links: Mapping[str, Links] | None = None,
    shortest: int | None = None,
    longest: int | None = None,
    discount: float = 0.5,
    length: float = 0.5,
    progress: Progress | None = None,
) -> list[Suggestion]:
    """The sentence pairs from whose hand alignment most is to be expected, the best first.

    Deterministic: ties go to the pair that comes first.

    Parameters
    ----------
    aligner : HMMAligner, MatchingAligner, ...
        Anything with `predict_proba`. The first time, when there is no gold, an unsupervised one; afterwards the
        supervised one that learnt from the gold so far.
    bitext : Bitext or anything `as_bitext` takes
    n : int
        How many at most; fewer if there are no more pairs that differ enough.
    gold : Links, optional
        What is aligned already, of the text or of its first pairs: pairs with links are not suggested again, and their
        words count as seen.
    links : mapping of str to Links, optional
        Links by other systems, if the aligner has them for features.
    shortest, longest : int, optional
        Words of the longer side; the range that leaves out the shortest quarter and the longest tenth of the pairs,
        if not given.
    discount : float
        From 0 to 1: what a doubt about a word is worth for each pair that has the word already, γ above.
    length : float
        From 0 to 1: how far longer pairs are held back, α above.

    Examples
    --------
    >>> from isogloss import HMMAligner, samples
    >>> bitext = samples.bitext("en-de")
    >>> found = suggest(HMMAligner().fit(bitext), bitext, 3)
    >>> len({one.pair for one in found}), found[0].gain >= found[1].gain >= found[2].gain
    (3, True)
    """
    bitext = as_bitext(bitext)
    _check(n, discount, length, shortest, longest)
    doubts = Doubts.by(aligner, bitext, links=links, progress=progress)
    done = np.zeros(len(bitext), np.bool_)
    if gold is not None:
        if len(gold) > len(bitext):
            raise BitextError(
                f"suggest: there is gold for {len(gold)} pairs, but the text has {len(bitext)}. Give the text that the "
                "gold belongs to"
            )
        done[: len(gold)] = np.diff(gold.offsets) > 0
    fit = ~done & _usable(bitext, doubts, shortest, longest)
    scale = np.maximum(doubts.links, 1.0) ** length
    found = _Choice(bitext, doubts, scale, discount, done).take(n, fit)
    sizes = bitext.source.ids.lengths, bitext.target.ids.lengths
    return [
        Suggestion(
            pair, bitext.line_of(pair), gain, float(doubts.error[pair]), float(doubts.errors[pair]),
            int(sizes[0][pair]), int(sizes[1][pair]),
        )
        for pair, gain in found
    ]  # fmt: skip


def _check(n: int, discount: float, length: float, shortest: int | None, longest: int | None) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ParameterError(f"suggest: n should be a positive integer, not {n!r}")
    for name, value in (("discount", discount), ("length", length)):
        if not (isinstance(value, (int, float)) and 0 <= value <= 1):
            raise ParameterError(f"suggest: {name} should be between 0 and 1, not {value!r}")
    for name, words in (("shortest", shortest), ("longest", longest)):
        if words is not None and (isinstance(words, bool) or not isinstance(words, int) or words < 1):
            raise ParameterError(f"suggest: {name} should be a positive number of words, not {words!r}")
    if shortest is not None and longest is not None and shortest > longest:
        raise ParameterError(f"suggest: shortest is {shortest} words, and longest only {longest}")


def _usable(bitext: Bitext, doubts: Doubts, shortest: int | None, longest: int | None) -> NDArray[np.bool_]:
    """Pairs of a sensible length, which seem to be translations."""
    known = ~np.isnan(doubts.linked)
    if not known.any():
        return known
    words = np.maximum(bitext.source.ids.lengths, bitext.target.ids.lengths)
    low, high = np.quantile(words[known], BAND)
    low, high = low if shortest is None else shortest, high if longest is None else longest
    if shortest is None:
        low = min(low, high)
    elif longest is None:
        high = max(low, high)
    usual = float(np.median(doubts.linked[known]))
    return known & (words >= low) & (words <= high) & (np.nan_to_num(doubts.linked) >= LINKED * usual)


class _Choice:
    """Greedy choice of pairs, with the words that are seen so far."""

    def __init__(self, bitext: Bitext, doubts: Doubts, scale: Array, discount: float, done: NDArray[np.bool_]) -> None:
        self.sides = [_Side(bitext.source, doubts.source), _Side(bitext.target, doubts.target)]
        self.scale, self.discount = scale, discount
        self.taken: list[tuple[frozenset[int], frozenset[int]]] = []
        for pair in np.flatnonzero(done).tolist():
            self._see(pair)

    def take(self, n: int, fit: NDArray[np.bool_]) -> list[tuple[int, float]]:
        """Up to n pairs with their gains. A gain only falls, so that the best of old gains need be looked at alone."""
        gains = self._gains()
        heap = [(-float(gains[pair]), int(pair)) for pair in np.flatnonzero(fit & (gains > 0))]
        heapq.heapify(heap)
        found: list[tuple[int, float]] = []
        while heap and len(found) < n:
            _, pair = heapq.heappop(heap)
            gain = self._gain(pair)
            if heap and (-gain, pair) > heap[0]:
                heapq.heappush(heap, (-gain, pair))
            elif not self._alike(pair):
                self._see(pair)
                found.append((pair, gain))
        return found

    def _gains(self) -> Array:
        total = np.zeros(len(self.scale))
        for side in self.sides:
            sums = np.concatenate([[0.0], np.cumsum(side.doubts * self.discount ** side.seen[side.forms])])
            total += np.diff(sums[side.offsets])
        return total / (2 * self.scale)

    def _gain(self, pair: int) -> float:
        total = 0.0
        for side in self.sides:
            rows = slice(int(side.offsets[pair]), int(side.offsets[pair + 1]))
            total += float((side.doubts[rows] * self.discount ** side.seen[side.forms[rows]]).sum())
        return total / (2 * float(self.scale[pair]))

    def _see(self, pair: int) -> None:
        words = self._words(pair)
        for side, own in zip(self.sides, words, strict=True):
            side.seen[list(own)] += 1
        self.taken.append(words)

    def _words(self, pair: int) -> tuple[frozenset[int], frozenset[int]]:
        source, target = (frozenset(side.forms[slice(*side.offsets[pair : pair + 2])].tolist()) for side in self.sides)
        return source, target

    def _alike(self, pair: int) -> bool:
        own = self._words(pair)
        return any(
            len(a & b) > ALIKE * len(a | b) for other in self.taken for a, b in zip(own, other, strict=True) if a or b
        )


class _Side:
    """The words of one language, without case."""

    def __init__(self, text: Text, doubts: Array) -> None:
        numbers: dict[str, int] = {}
        form = np.array([numbers.setdefault(word.lower(), len(numbers)) for word in text.vocabulary.types], np.int64)
        start, stop = text.ids.offsets[0], text.ids.offsets[-1]
        self.forms = form[text.ids.values[start:stop]]
        self.offsets = text.ids.offsets - start
        self.doubts = doubts
        self.seen = np.zeros(len(numbers), np.int64)
