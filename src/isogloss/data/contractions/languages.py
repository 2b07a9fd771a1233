"""Which language is a text in, among those whose words we split and those that look like them?"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from importlib import resources

import numpy as np

from isogloss.data.bitext import Text

__all__ = ["LANGUAGES", "guess_language"]

LANGUAGES = ("ca", "cs", "de", "el", "es", "fi", "fr", "gl", "it", "pl", "pt")
"""Languages that there is a list of contractions for."""

_INFLECTED = frozenset(["cs", "fi", "pl"])  # with endings where others have articles and prepositions
_LEAST_SHARE = 0.25
_LEAST_SHARE_INFLECTED = 0.15
_LEAST_LEAD = 0.03
_LEAST_DEVIATIONS = 3.0


@cache
def _frequent_words() -> dict[str, frozenset[str]]:
    """By language, its frequent words."""
    lines = resources.files(__package__).joinpath("words.tsv").read_text(encoding="utf-8").split("\n")
    rows = [line.split("\t") for line in lines if "\t" in line and not line.startswith("#")]
    return {language: frozenset(words.split()) for language, words in rows[1:]}


def guess_language(text: Text) -> str | None:
    r"""The language of a text, if we have a list of its contractions and no other language is as likely.

    The share of words that are among the frequent ones of a language, :math:`s_l`, should be a quarter or more, be
    three points above that of any other language, and not by chance: with :math:`a` words that are frequent in the best
    language alone, and :math:`b` in the other alone,

    .. math:: s_l = c_l / n \ge 0.25, \quad s_l - s_k \ge 0.03, \quad a - b \ge 3 \sqrt{a + b}

    (the last is McNemar's test). For Czech, Finnish and Polish, which have endings where others have articles and
    prepositions, a share of 0.15 is enough. Words without a letter are not counted.

    Examples
    --------
    >>> guess_language(Text.of(["Der Hund und die Katze sind in dem Haus , und das ist gut so ."] * 3))
    'de'
    >>> guess_language(Text.of(["al del"])) is None
    True
    """
    counts: Counter[str] = Counter()
    total = 0
    for word, count in zip(text.vocabulary, _counts(text), strict=True):
        if count and any(map(str.isalpha, word)):
            total += count
            counts[word.lower().replace("’", "'")] += count
    frequent = _frequent_words()
    covered = {language: sum(counts[word] for word in words) for language, words in frequent.items()}
    best = max(covered, key=lambda language: (covered[language], language))
    if best not in LANGUAGES or not total or covered[best] < _least_share(best) * total:
        return None
    for language, words in frequent.items():
        alone = sum(counts[word] for word in frequent[best] - words)
        other = sum(counts[word] for word in words - frequent[best])
        lead = alone - other
        if language != best and (lead < _LEAST_LEAD * total or lead < _LEAST_DEVIATIONS * math.sqrt(alone + other)):
            return None
    return best


def _counts(text: Text) -> list[int]:
    """How often each type of the vocabulary occurs."""
    counts: list[int] = np.bincount(text.ids.flat, minlength=len(text.vocabulary)).tolist()
    return counts


def _least_share(language: str) -> float:
    return _LEAST_SHARE_INFLECTED if language in _INFLECTED else _LEAST_SHARE
