"""Words cut into segments that look back on one more, against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ParameterError
from isogloss.structures import SemiMarkov, SemiMarkov2
from isogloss.structures.base import InfeasibleError
from isogloss.structures.semimarkov2 import SemiMarkovs2, _spans_of, n_word_pairs, n_word_spans
from isogloss.testing import brute_force_segments2, check_batch, check_k_best, check_laws
from isogloss.testing.strategies import numbers

Given = tuple[Any, Any, list[int], int, Any, Any]


@st.composite
def inputs(draw: Any) -> Given:
    """Scores of all parts of up to three words, some of them forbidden."""
    words = draw(st.lists(st.integers(1, 3), max_size=3).filter(lambda sizes: sum(sizes) <= 5))
    longest, k, paired = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.booleans())
    holes, spread = draw(st.sampled_from([0.0, 0.1, 0.4])), draw(st.sampled_from([0.1, 3.0, 300.0]))
    segments = numbers(draw, (int(n_word_spans(words, longest).sum()), 3, k), holes=holes, spread=spread)
    steps = numbers(draw, (2, k + 1, k + 1), holes=holes / 2, spread=spread)
    if not paired:
        return segments, steps, words, longest, None, None
    n_classes = draw(st.integers(1, k))
    pairs = numbers(draw, (int(n_word_pairs(words, longest).sum()), n_classes), holes=holes, spread=spread)
    return segments, steps, words, longest, pairs, [label % n_classes for label in range(k)]


@given(inputs(), st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_everything_agrees_with_enumeration(drawn: Given, seed: int) -> None:
    truth, dist = brute_force_segments2(*drawn), SemiMarkov2(*drawn)
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.argmax, lambda: dist.sample(np.random.default_rng(0))):
            with pytest.raises(InfeasibleError, match="cover no sequence"):
                method()
        return
    check_laws(dist, truth, rng=np.random.default_rng(seed), samples=0)
    check_k_best(dist.k_best(4), truth, 4)
    cuts: dict[Any, float] = {}
    listed: Any = truth.structures
    for y, value in zip(listed, truth.log_scores.tolist(), strict=True):
        cut = tuple(segment[:2] for segment in y)
        cuts[cut] = max(value, cuts.get(cut, -np.inf))
    found = dist.k_best(4, labels=False)
    assert [score for score, _ in found] == pytest.approx(
        sorted((v for v in cuts.values() if v > -np.inf), reverse=True)[:4]
    )
    for score, y in found:
        assert score == pytest.approx(dist.score(y)) == pytest.approx(cuts.pop(tuple(segment[:2] for segment in y)))


def _drawn(seed: int, words: list[int], longest: int, k: int, paired: bool) -> SemiMarkov2:
    rng = np.random.default_rng(seed)
    segments = rng.normal(size=(int(n_word_spans(words, longest).sum()), 3, k))
    pairs = rng.normal(size=(int(n_word_pairs(words, longest).sum()), 2)) if paired else None
    classes = [label % 2 for label in range(k)] if paired else None
    return SemiMarkov2(segments, rng.normal(size=(2, k + 1, k + 1)), words, longest, pairs, classes)


@pytest.mark.parametrize("paired", [False, True])
def test_draws_come_as_often_as_they_should(paired: bool) -> None:
    for seed, words in enumerate(([1], [3], [2, 2])):
        dist = _drawn(seed, words, 2, 2, paired)
        n_spans, k = int(n_word_spans(words, 2).sum()), dist.k
        pieces = np.split(dist.scores, np.cumsum([n_spans * 3 * k, 2 * (k + 1) ** 2]))
        truth = brute_force_segments2(
            pieces[0].reshape(-1, 3, k), pieces[1].reshape(2, k + 1, k + 1), words, 2,
            pieces[2].reshape(-1, 2) if paired else None, [0, 1],
        )  # fmt: skip
        check_laws(dist, truth, rng=np.random.default_rng(seed), samples=400)


def test_how_many_there_are() -> None:
    for words in ([], [1], [4], [2, 3], [1, 1, 4]):
        for k in (1, 2, 3):
            spans = int(n_word_spans(words, 9).sum())
            count = np.exp(SemiMarkov2(np.zeros((spans, 3, k)), np.zeros((2, k + 1, k + 1)), words, 9).log_partition())
            assert round(float(count)) == np.prod([k * (k + 1) ** (n - 1) for n in words])


def test_one_word_whose_places_do_not_matter_is_a_semi_markov_chain() -> None:
    rng = np.random.default_rng(2)
    n, longest, k = 5, 3, 2
    whole, moves = rng.normal(size=(n, longest, k)), rng.normal(size=(k, k))
    rows = [whole[b, width] for b in range(n) for width in range(min(longest, n - b))]
    steps = np.zeros((2, k + 1, k + 1))
    steps[0, :k, :k] = moves
    ours = SemiMarkov2(np.repeat(np.array(rows)[:, None], 3, axis=1), steps, [n], longest)
    other = SemiMarkov(whole, np.broadcast_to(moves, (n - 1, k, k)))
    assert ours.log_partition() == pytest.approx(other.log_partition(), rel=1e-12)
    assert ours.argmax() == other.argmax()
    counts = other.step_marginals().sum(axis=0)
    np.testing.assert_allclose(ours.step_marginals()[0, :k, :k], counts, rtol=1e-10)


def test_words_are_independent_where_labels_do_not_matter() -> None:
    """One label and pairs inside words: log Z is the sum of those of the words, and borders are certain."""
    rng = np.random.default_rng(4)
    words, longest = [3, 1, 4], 3
    spans, couples = n_word_spans(words, longest), n_word_pairs(words, longest)
    segments, pairs = rng.normal(size=(int(spans.sum()), 3, 1)), rng.normal(size=(int(couples.sum()), 1))
    whole = SemiMarkov2(segments, np.zeros((2, 2, 2)), words, longest, pairs)
    value, at, met = 0.0, 0, 0
    for size, own, some in zip(words, spans.tolist(), couples.tolist(), strict=True):
        alone = SemiMarkov2(
            segments[at : at + own], np.zeros((2, 2, 2)), [size], longest, pairs[met : met + some].reshape(-1, 1)
        )
        value, at, met = value + alone.log_partition(), at + own, met + some
    assert whole.log_partition() == pytest.approx(value, rel=1e-12)
    first = whole.segment_marginals()[:, 0].sum()
    assert first == pytest.approx(len(words), rel=1e-12)  # each word has one first segment


def test_longest_does_not_matter_beyond_words_and_one_is_letters() -> None:
    rng = np.random.default_rng(6)
    words = [3, 2]
    segments = rng.normal(size=(9, 3, 2))
    steps = rng.normal(size=(2, 3, 3))
    values = {SemiMarkov2(segments, steps, words, longest).log_partition() for longest in (3, 4, 50)}
    assert len(values) == 1
    letters = SemiMarkov2(rng.normal(size=(5, 3, 2)), steps, words, 1).argmax()
    assert [segment[:2] for segment in letters] == [(t, t + 1) for t in range(5)]


@pytest.mark.parametrize("paired", [False, True])
def test_words_of_many_letters_have_more_ways_than_floats_have_room(paired: bool) -> None:
    n, k = 700, 3
    couples = np.zeros((int(n_word_pairs([n], 3).sum()), 1)) if paired else None
    dist = SemiMarkov2(
        np.zeros((int(n_word_spans([n], 3).sum()), 3, k)), np.zeros((2, k + 1, k + 1)), [n], 3, couples, [0] * k
    )
    ways = [1]  # in whole numbers: pieces of up to three letters, and a label for each
    for t in range(1, n + 1):
        ways.append(k * sum(ways[max(0, t - 3) : t]))
    assert dist.log_partition() == pytest.approx(float(np.log(float(ways[n] >> 600)) + 600 * np.log(2)), rel=1e-12)
    starts = [ways[t] * ways[n - t] / ways[n] for t in (1, n // 2, n - 1)]
    ends = np.array([end for _, end in _spans_of(dist.words, 3)])
    found = dist.segment_marginals().sum(axis=(1, 2))
    assert [found[ends == t].sum() for t in (1, n // 2, n - 1)] == pytest.approx(starts)


def test_pairs_that_are_all_forbidden_leave_words_whole() -> None:
    words = [3, 2]
    for _ in range(20):  # whatever was in memory before
        segments, pairs = np.zeros((9, 3, 2)), np.full((int(n_word_pairs(words, 3).sum()), 2), -np.inf)
        dist = SemiMarkov2(segments, np.zeros((2, 3, 3)), words, 3, pairs)
        assert np.exp(dist.log_partition()) == pytest.approx(4.0)


@given(st.lists(st.lists(st.integers(1, 4), max_size=3), min_size=1, max_size=4), st.booleans(), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_many_are_as_one_by_one(sequences: list[list[int]], paired: bool, seed: int) -> None:
    ones = [_drawn(seed + s, words, 2, 2 + s % 2, paired) for s, words in enumerate(sequences)]
    by_scores = {one.scores.tobytes(): one for one in ones}

    def one(scores: Any) -> SemiMarkov2:
        return by_scores[np.asarray(scores).tobytes()]

    def many(scores: list[Any]) -> SemiMarkovs2:
        return SemiMarkov2.batch(map(one, scores))

    check_batch(one, many, [dist.scores for dist in ones])
    batch = SemiMarkov2.batch(ones)
    alone = np.random.default_rng(1)
    drawn = [dist.sample(alone) for dist in ones]
    assert batch.sample(np.random.default_rng(1)) == drawn
    assert batch.from_parts(batch.parts(drawn)) == drawn


def test_what_is_wrong_is_said() -> None:
    dist = _drawn(0, [2, 2], 2, 2, False)
    for wrong in ([(0, 1, 0), (1, 3, 0), (3, 4, 0)], [(0, 1, 0), (2, 4, 0)], [(0, 2, 2), (2, 4, 0)]):
        with pytest.raises(ParameterError, match="cannot be segment"):
            dist.parts(wrong)
    with pytest.raises(ParameterError, match="and there are 3"):
        dist.parts([(0, 2, 0), (2, 4, 0), (4, 5, 0)])
    with pytest.raises(ParameterError, match=r"\(begin, end, label\) of segments, not 'abc'"):
        dist.parts("abc")
    with pytest.raises(ParameterError, match=r"segments: the shape should be \[6, 3, any\]"):
        SemiMarkov2(np.zeros((5, 3, 2)), np.zeros((2, 3, 3)), [2, 2], 2)
    with pytest.raises(ParameterError, match="lengths of 1 or more"):
        SemiMarkov2(np.zeros((0, 3, 2)), np.zeros((2, 3, 3)), [0], 2)
    with pytest.raises(ParameterError, match="classes should be 2 numbers from 0 to 0"):
        SemiMarkov2(np.zeros((3, 3, 2)), np.zeros((2, 3, 3)), [2], 2, np.zeros((1, 1)), [0, 1])
    with pytest.raises(ParameterError, match="the same longest and classes"):
        SemiMarkov2.batch([_drawn(0, [2], 2, 2, False), _drawn(0, [2], 3, 2, False)])
