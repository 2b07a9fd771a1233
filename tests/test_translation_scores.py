"""BLEU and chrF against sacrebleu, and BLEU of sentences against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from isogloss import samples
from isogloss.errors import ParameterError
from isogloss.metrics import compare_translations, score_translations, sentence_bleu
from isogloss.metrics.translation import bleu_of, matches
from isogloss.testing.enumerate import sentence_bleu as by_definition

sentences = st.lists(st.sampled_from(["a", "b", "c", "d", "e."]), max_size=9).map(" ".join)
WORDS = st.lists(st.integers(0, 4), max_size=9)


def counted(words, reference):
    ends = [np.array([0, len(row)]) for row in (words, reference)]
    rows = [np.array(row, np.int32) for row in (words, reference)]
    return matches(rows[0], ends[0], rows[1], ends[1], np.zeros(1, np.int64))[0]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=6), st.sampled_from(["13a", "none", "char"]))
def test_scores_are_those_of_sacrebleu(pairs, tokenise):
    ours, theirs = [list(side) for side in zip(*pairs, strict=True)]
    found = score_translations(ours, theirs, tokenise=tokenise, bootstrap=0)
    assert found.bleu == pytest.approx(BLEU(tokenize=tokenise, force=True).corpus_score(ours, [theirs]).score, abs=1e-9)
    assert found.chrf == pytest.approx(CHRF().corpus_score(ours, [theirs]).score, abs=1e-9)


def test_signatures_intervals_and_comparison():
    right = [" ".join(row) for row in samples.bitext("en-de").source[:60]]
    worse = [" ".join(line.split()[:-1][::-1] if k % 2 else line.split()) for k, line in enumerate(right)]
    score = score_translations(worse, right)
    assert "tok:13a" in score.signature and "smooth:exp" in score.signature and "nc:6" in score.chrf_signature
    low, high = score.interval
    assert low < score.bleu < high < 100
    difference = compare_translations(right, worse, right)
    assert difference.first == pytest.approx(100) and difference.p_value < 0.01
    assert difference.delta == pytest.approx(100 - score.bleu)
    assert compare_translations(worse, worse, right, measure="chrf").p_value == 1


def test_nothing_to_score():
    assert score_translations([], []).bleu == 0


@pytest.mark.parametrize("ask", [{"tokenise": "moses"}, {}])
def test_what_makes_no_sense_is_refused(ask):
    with pytest.raises(ParameterError, match=r"tokenise should|2 translations and 1"):
        score_translations(["a", "b"], ["a"] if not ask else ["a", "b"], **ask)
    with pytest.raises(ParameterError, match="measure"):
        compare_translations(["a"], ["a"], ["a"], measure="ter")


@settings(max_examples=200, deadline=None)
@given(WORDS, WORDS)
def test_bleu_of_a_sentence_is_its_definition(words, reference):
    assert sentence_bleu(counted(words, reference)) == pytest.approx(by_definition(words, reference))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=4, max_size=9))
def test_a_perfect_sentence_has_fifteen_sixteenths(words):
    assert sentence_bleu(counted(words, words)) == pytest.approx(15 / 16)
    assert bleu_of(counted(words, words)) == pytest.approx(1)


def test_no_right_word_and_no_word_have_none():
    assert sentence_bleu(counted([1, 2], [3, 4])) == 0
    assert sentence_bleu(counted([], [3, 4])) == 0
    assert sentence_bleu(counted([], [])) == 0


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=4, max_size=9), st.lists(st.integers(0, 3), min_size=4, max_size=4), st.data()
)
def test_more_matches_at_the_same_length_are_no_worse(reference, missing, data):
    counts = counted([9, *reference[:-1]], reference).astype(float)
    more = counts.copy()
    order = data.draw(st.integers(0, 3))
    more[order] = min(more[order] + 1, more[4 + order])
    assert sentence_bleu(more) >= sentence_bleu(counts)


def test_many_candidates_of_several_references():
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 5, rng.integers(0, 8)).astype(np.int32) for _ in range(600)]
    references = [rng.integers(0, 5, rng.integers(1, 8)).astype(np.int32) for _ in range(7)]
    of = rng.integers(0, 7, 600)
    starts, reference_starts = (np.concatenate([[0], np.cumsum(list(map(len, r)))]) for r in (rows, references))
    found = matches(np.concatenate(rows), starts, np.concatenate(references), reference_starts, of)
    for k in range(0, 600, 41):
        assert found[k].tolist() == counted(rows[k], references[of[k]]).tolist()
