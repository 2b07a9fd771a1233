"""Sentences cut into labelled segments, against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ParameterError
from isogloss.structures import SemiMarkov, Stack
from isogloss.structures.base import InfeasibleError
from isogloss.structures.semimarkov import SemiMarkovs, n_segment_parts
from isogloss.testing import brute_force_segments, check_batch, check_k_best, check_laws
from isogloss.testing.strategies import numbers


@st.composite
def inputs(draw: Any, *, max_n: int = 4) -> tuple[Any, Any]:
    """Segments [n, longest, k] and steps [n - 1, k, k], some of them forbidden."""
    n, longest, k = draw(st.integers(0, max_n)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    holes, spread = draw(st.sampled_from([0.0, 0.1, 0.4])), draw(st.sampled_from([0.1, 3.0, 300.0]))
    segments = numbers(draw, (n, longest, k), holes=holes, spread=spread)
    return segments, numbers(draw, (max(n - 1, 0), k, k), holes=holes, spread=spread)


@given(inputs(), st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_everything_agrees_with_enumeration(drawn: tuple[Any, Any], seed: int) -> None:
    truth, dist = brute_force_segments(*drawn), SemiMarkov(*drawn)
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.argmax, lambda: dist.sample(np.random.default_rng(0))):
            with pytest.raises(InfeasibleError, match="cover no sentence"):
                method()
        return
    check_laws(dist, truth, rng=np.random.default_rng(seed), samples=0)
    check_k_best(dist.k_best(4), truth, 4)


def test_the_best_of_many_sentences_are_those_of_each() -> None:
    rng = np.random.default_rng(4)
    each = [(rng.normal(0, 3, (n, 3, 2)), rng.normal(0, 3, (max(n - 1, 0), 2, 2))) for n in (3, 0, 1, 4, 2)]
    each[3][0][:, 2] = -np.inf
    many = SemiMarkov.batch([one for one, _ in each], [two for _, two in each])
    for k in (1, 3, 1000):
        for found, given_ in zip(many.k_best(k), each, strict=True):
            check_k_best(found, brute_force_segments(*given_), k)
            assert found == SemiMarkov(*given_).k_best(k)
            assert found[0][1] == SemiMarkov(*given_).argmax()
    each[2][0][:] = -np.inf
    with pytest.raises(InfeasibleError, match="sentence 2"):
        SemiMarkov.batch([one for one, _ in each], [two for _, two in each]).k_best(2)


def test_draws_come_as_often_as_they_should() -> None:
    rng = np.random.default_rng(3)
    for n, longest, k in ((1, 2, 2), (3, 2, 2), (3, 3, 1)):
        segments, steps = rng.normal(size=(n, longest, k)), rng.normal(size=(n - 1, k, k))
        truth, dist = brute_force_segments(segments, steps), SemiMarkov(segments, steps)
        check_laws(dist, truth, rng=rng, samples=400)


def test_how_many_there_are() -> None:
    for n in range(1, 7):
        for k in (1, 2, 3):
            count = np.exp(SemiMarkov(np.zeros((n, n, k))).log_partition())
            assert round(float(count)) == k * (k + 1) ** (n - 1)
    assert SemiMarkov(np.zeros((0, 2, 3))).argmax() == () and SemiMarkov(np.zeros((0, 2, 3))).log_partition() == 0.0


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_many_are_as_one_by_one(lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.normal(0, 3, int(n_segment_parts(n, 2, 2))) for n in lengths]
    by_size = {len(scores): n for n, scores in zip(lengths, parts, strict=True)}

    def one(scores: Any) -> SemiMarkov:
        return SemiMarkov._of(scores, by_size[len(scores)], 2, 2)

    def many(scores: list[Any]) -> SemiMarkovs:
        return SemiMarkovs(Stack.of(scores, "many", 1), [by_size[len(own)] for own in scores], 2, 2)

    check_batch(one, many, parts)
    batch = many(parts)
    alone = np.random.default_rng(1)
    drawn = [one(scores).sample(alone) for scores in parts]
    assert batch.sample(np.random.default_rng(1)) == drawn
    assert batch.from_parts(batch.parts(drawn)) == drawn
    for whole, scores in zip(batch.segment_marginals(), parts, strict=True):
        np.testing.assert_array_equal(whole, one(scores).segment_marginals())


def test_known_boundaries_are_forbidden_segments() -> None:
    """The chain of those that agree with a boundary is the product of what lies on its two sides."""
    rng = np.random.default_rng(5)
    segments = rng.normal(size=(5, 3, 2))
    cut = segments.copy()
    for begin in range(2):
        cut[begin, 2 - begin :] = -np.inf
    left, right = segments[:2, :2].copy(), segments[2:]
    wanted = SemiMarkov(left).log_partition() + SemiMarkov(right).log_partition()
    assert SemiMarkov(cut).log_partition() == pytest.approx(wanted, rel=1e-12)


def test_what_is_wrong_is_said() -> None:
    dist = SemiMarkov(np.zeros((3, 2, 2)))
    for wrong in ([(0, 3, 0)], [(0, 1, 0), (2, 3, 0)], [(0, 2, 2), (2, 3, 0)]):
        with pytest.raises(ParameterError, match="cannot be the next of its segments"):
            dist.parts(wrong)
    with pytest.raises(ParameterError, match="its segments end at 1, and the sentence has 3"):
        dist.parts([(0, 1, 0)])
    with pytest.raises(ParameterError, match=r"\(begin, end, label\) of segments, not 'abc'"):
        dist.parts("abc")
    with pytest.raises(ParameterError, match=r"steps: the shape should be \[2, 2, 2\]"):
        SemiMarkov(np.zeros((3, 2, 2)), np.zeros((3, 2, 2)))
    with pytest.raises(ParameterError, match="the same longest and k"):
        SemiMarkov.batch([np.zeros((1, 2, 2)), np.zeros((1, 2, 3))])
    with pytest.raises(ParameterError, match="segments and steps of every sentence"):
        SemiMarkovs(Stack.of([np.zeros(3)]), [1], 2, 2)
