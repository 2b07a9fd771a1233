"""ROUGE: n-grams and subsequences that a summary shares with a reference; the numbers of `rouge-score`, without stems.

That package needs two others that are heavier than itself, for stems and for sentences; counting needs neither.
`python -m benchmarks.quality.summaries --only rouge` holds these numbers against its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.metrics.overlap import f_measure, lcs_length, ngrams, numbered, precision_recall

__all__ = ["Rates", "rouge_l", "rouge_lsum", "rouge_n", "rouge_words"]

_OTHER = re.compile(r"[^a-z0-9]+")


class Rates(NamedTuple):
    """Precision, recall and balanced F, from 0 to 1."""

    precision: float
    recall: float
    f: float

    @classmethod
    def of(cls, common: int, found: int, right: int) -> Rates:
        """Of counts; 0 of nothing."""
        precision, recall = (common / total if total else 0.0 for total in (found, right))
        return cls(precision, recall, f_measure(precision, recall))


def rouge_words(text: str) -> list[str]:
    """Words as ROUGE cuts them: small letters a to z and digits, and nothing else.

    Examples
    --------
    >>> rouge_words("It's 4pm, über-late.")
    ['it', 's', '4pm', 'ber', 'late']
    """
    return _OTHER.sub(" ", text.lower()).split()


def rouge_n(summary: str, reference: str, n: int) -> Rates:
    """Shared runs of n words.

    References
    ----------
    Lin, ROUGE: A Package for Automatic Evaluation of Summaries, 2004, section 2.

    Examples
    --------
    >>> rouge_n("the cat sat", "the cat is here", 1).recall
    0.5
    """
    found, right = (ngrams(rouge_words(text), n) for text in (summary, reference))
    precision, recall = precision_recall(found, right)
    return Rates(precision, recall, f_measure(precision, recall))


def rouge_l(summary: str, reference: str) -> Rates:
    """The longest common subsequence of both as wholes."""
    found, right = rouge_words(summary), rouge_words(reference)
    return Rates.of(lcs_length(found, right), len(found), len(right))


def rouge_lsum(summary: Sequence[str], reference: Sequence[str]) -> Rates:
    """The words of each reference sentence that are in a common subsequence with some sentence of the summary.

    References
    ----------
    Lin 2004, section 3.2; a word counts no more often than both have it, as in version 1.5.5.
    """
    ours, theirs = ([rouge_words(sentence) for sentence in text] for text in (summary, reference))
    left = [Counter(word for sentence in text for word in sentence) for text in (ours, theirs)]
    sizes = [each.total() for each in left]
    hits = 0
    for sentence in theirs:
        together: set[int] = set()
        for other in ours:
            together |= _places(sentence, other)
        for at in sorted(together):
            word = sentence[at]
            if left[0][word] > 0 and left[1][word] > 0:
                hits += 1
                left[0][word] -= 1
                left[1][word] -= 1
    return Rates.of(hits, *sizes)


def _places(right: list[str], found: list[str]) -> set[int]:
    """Places in the first of one longest common subsequence; of several, the one that rouge-score reads out."""
    from isogloss.metrics._numba.sequences import common_places

    places: NDArray[np.int64] = common_places(*numbered(right, found))
    return set(places.tolist())
