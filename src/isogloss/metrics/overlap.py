"""What two texts have in common: n-grams of words and characters, chrF, BLEU, subsequences, edits.

Sentences are compared, one with one; `chrf` and `bleu` give the numbers of sacreBLEU for single sentences, in percent.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "bleu", "chrf", "edit_distance", "f_measure", "lcs_length", "matches", "ngrams", "numbered", "precision_recall",
    "word_overlap",
]  # fmt: skip

Units = Sequence[Hashable]

_PUNCTUATION = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CHARACTERS, _WORDS, _BETA = 6, 2, 2.0


def ngrams(units: Units, n: int) -> Counter[Any]:
    """How often each run of n units occurs.

    Examples
    --------
    >>> ngrams("abab", 2)
    Counter({'ab': 2, 'ba': 1})
    """
    if isinstance(units, str):
        return Counter(units[i : i + n] for i in range(len(units) - n + 1))
    return Counter(tuple(units[i : i + n]) for i in range(len(units) - n + 1))


def matches(one: Counter[Any], other: Counter[Any]) -> int:
    """What two counts have in common, each as often as in the one that has less of it."""
    small, large = (one, other) if len(one) < len(other) else (other, one)
    return sum(min(count, large[key]) for key, count in small.items() if key in large)


def precision_recall(found: Counter[Any], right: Counter[Any]) -> tuple[float, float]:
    """Matches as a share of what was found, and of what is right; 0 of nothing."""
    common = matches(found, right)
    return tuple(common / total if total else 0.0 for total in (found.total(), right.total()))  # type: ignore[return-value]


def f_measure(precision: float, recall: float, beta: float = 1.0) -> float:
    """(1 + β²) P R / (β² P + R); 0 where both are."""
    below = beta * beta * precision + recall
    return (1 + beta * beta) * precision * recall / below if below else 0.0


def chrf(output: str, reference: str, *, words: int = _WORDS) -> float:
    r"""chrF++ of a sentence in percent: F with β = 2 of precision and recall, means over orders of n-grams.

    The orders are 1..6 of characters and 1..2 of words, without those that output or reference are too short for. With
    ``words=0``, chrF.

    References
    ----------
    Popović, chrF++: words helping character n-grams, WMT 2017; counted as sacreBLEU does, which leaves white space out.

    Examples
    --------
    >>> round(chrf("the cat sat", "the cat sits"), 2), chrf("same", "same")
    (60.39, 100.0)
    """
    letters = ["".join(text.split()) for text in (output, reference)]
    pieces = [_separated(text) for text in (output, reference)]
    orders = [(letters, n) for n in range(1, _CHARACTERS + 1)] + [(pieces, n) for n in range(1, words + 1)]
    both = [(ngrams(found, n), ngrams(right, n)) for (found, right), n in orders]
    rates = [precision_recall(ours, theirs) for ours, theirs in both if ours and theirs]
    if not rates:
        return 0.0
    precision, recall = (sum(each) / len(rates) for each in zip(*rates, strict=True))
    return 100 * f_measure(precision, recall, _BETA)


def _separated(text: str) -> list[str]:
    """Words with a punctuation mark at one of their ends taken off, as chrF++ cuts them."""
    found: list[str] = []
    for word in text.split():
        if len(word) == 1:
            found.append(word)
        elif word[-1] in _PUNCTUATION:
            found += [word[:-1], word[-1]]
        elif word[0] in _PUNCTUATION:
            found += [word[0], word[1:]]
        else:
            found.append(word)
    return found


def bleu(output: Units, reference: Units, *, order: int = 4) -> float:
    r"""BLEU of a sentence of words, in percent: orders that the output is too short for are left out.

    .. math:: BP \cdot \exp \frac1n \sum_{k \le n} \log p_k, \qquad BP = \min(1, e^{1 - |r| / |o|})

    An order without a match has 1 / (2^m total) in place of its precision, where it is the m-th such order.

    References
    ----------
    Papineni et al., BLEU, ACL 2002; with exponential smoothing (Chen and Cherry, WMT 2014, method 3) and effective
    order, as sacreBLEU scores sentences.

    Examples
    --------
    >>> round(bleu("the cat sat on it".split(), "the cat is on it".split()), 2)
    30.21
    """
    logs, smooth, used = 0.0, 1.0, 0
    if not output or not reference or not matches(ngrams(output, 1), ngrams(reference, 1)):
        return 0.0
    for n in range(1, order + 1):
        ours = ngrams(output, n)
        total = ours.total()
        if not total:
            break
        used = n
        common = matches(ours, ngrams(reference, n))
        if not common:
            smooth *= 2
        logs += math.log(common / total if common else 1 / (smooth * total))
    short = min(0.0, 1 - len(reference) / len(output))
    return 100 * math.exp(short + logs / used)


_SPLITS = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ENTITIES = (("<skipped>", ""), ("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def words_13a(line: str) -> list[str]:
    """Words as mteval-v13a cuts them, which BLEU is usually counted in.

    Examples
    --------
    >>> words_13a("It cost 1,000.5 euros, didn't it?")
    ['It', 'cost', '1,000.5', 'euros', ',', "didn't", 'it', '?']
    """
    for entity, letter in _ENTITIES:
        line = line.replace(entity, letter)
    line = f" {line} "
    for pattern, by in _SPLITS:
        line = pattern.sub(by, line)
    return line.split()


def numbered(*sequences: Units) -> tuple[NDArray[np.int64], ...]:
    """Sequences of anything as numbers, the same for what is the same."""
    known: dict[Hashable, int] = {}
    return tuple(np.array([known.setdefault(unit, len(known)) for unit in each], np.int64) for each in sequences)


def lcs_length(one: Units, other: Units) -> int:
    r"""Length of the longest common subsequence; :math:`|X| + |Y| - 2 lcs` insertions and deletions lie between both.

    Examples
    --------
    >>> lcs_length("the cat sat".split(), "a cat has sat".split()), lcs_length("", "abc")
    (2, 0)
    """
    from isogloss.metrics._numba.sequences import common_subsequence

    return int(common_subsequence(*numbered(one, other)))


def edit_distance(one: Units, other: Units) -> int:
    """The least number of insertions, deletions and substitutions that make one of the other.

    Examples
    --------
    >>> edit_distance("kitten", "sitting")
    3
    """
    from isogloss.metrics._numba.sequences import edits

    return int(edits(*numbered(one, other)))


def word_overlap(one: Units, other: Units, n: int = 1) -> float:
    r"""Shared n-grams of all that are in either, each counted once: :math:`|X \cap Y| / |X \cup Y|`; 0 of nothing.

    Examples
    --------
    >>> word_overlap("the cat sat".split(), "the cat is".split())
    0.5
    """
    ours, theirs = set(ngrams(one, n)), set(ngrams(other, n))
    every = len(ours | theirs)
    return len(ours & theirs) / every if every else 0.0
