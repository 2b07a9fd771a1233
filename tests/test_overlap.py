"""What two texts have in common: held against sacreBLEU's numbers and against brute force."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from isogloss.metrics import overlap
from isogloss.metrics.overlap import bleu, chrf, edit_distance, lcs_length, word_overlap, words_13a

# output, reference, chrF++ and sentence BLEU of sacreBLEU 2.6.0 (effective_order=True)
GOLDEN = [
    ("the cat sat", "the cat sits", 60.39409888435875, 55.03212081491043),
    ("The cat sat on it, twice.", "A cat is on it twice.", 43.609397499275246, 16.515821590069027),
    ("a", "b c", 0.0, 0.0),
    ('He said "no" (again)', "He said: no, again.", 39.21710006176411, 13.134549472120788),
    ("", "x", 0.0, 0.0),
]


@pytest.mark.parametrize(("output", "reference", "letters", "words"), GOLDEN)
def test_sentences_score_as_in_sacrebleu(output, reference, letters, words):
    assert chrf(output, reference) == pytest.approx(letters, abs=1e-9)
    assert bleu(words_13a(output), words_13a(reference)) == pytest.approx(words, abs=1e-9)


def by_brute_force(one, other):
    """Longest common subsequence and both distances, by the recursions as textbooks have them."""

    @cache
    def common(i, j):
        if i == len(one) or j == len(other):
            return 0
        if one[i] == other[j]:
            return 1 + common(i + 1, j + 1)
        return max(common(i + 1, j), common(i, j + 1))

    @cache
    def distance(i, j, substitution):
        if i == len(one) or j == len(other):
            return len(one) - i + len(other) - j
        ways = [1 + distance(i + 1, j, substitution), 1 + distance(i, j + 1, substitution)]
        if one[i] == other[j] or substitution:
            ways.append((one[i] != other[j]) + distance(i + 1, j + 1, substitution))
        return min(ways)

    return common(0, 0), distance(0, 0, False), distance(0, 0, True)


def test_subsequences_and_edits_agree_with_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(60):
        one, other = (tuple(rng.integers(3, size=rng.integers(0, 8)).tolist()) for _ in range(2))
        longest, indels, edits = by_brute_force(one, other)
        assert lcs_length(one, other) == lcs_length(other, one) == longest
        assert len(one) + len(other) - 2 * longest == indels
        assert edit_distance(one, other) == edits
        assert lcs_length(one, one) == len(one)
    assert lcs_length((), (1, 2)) == 0


def test_overlap_of_sets():
    for one, other in itertools.product(["", "a", "a b c", "c b a a"], repeat=2):
        ours, theirs = set(one.split()), set(other.split())
        wanted = len(ours & theirs) / len(ours | theirs) if ours | theirs else 0.0
        assert word_overlap(one.split(), other.split()) == wanted
    assert word_overlap("abc", "bca", 2) == pytest.approx(1 / 3)


def test_matches_are_clipped_and_rates_of_nothing_are_0():
    ours, theirs = overlap.ngrams("aaab", 1), overlap.ngrams("aab", 1)
    assert overlap.precision_recall(ours, theirs) == (3 / 4, 1.0)
    assert overlap.precision_recall(overlap.ngrams("", 1), theirs) == (0.0, 0.0)
    assert overlap.f_measure(0.0, 0.0) == 0.0
