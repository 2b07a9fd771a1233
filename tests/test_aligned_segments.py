"""Words cut into segments that come from source positions, against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ParameterError
from isogloss.structures import AlignedSegments, AlignmentChain, SegmentLattice, SemiMarkov2
from isogloss.structures.base import InfeasibleError
from isogloss.structures.semimarkov2 import _spans_of, n_word_spans
from isogloss.testing import brute_force_aligned_segments, check_batch, check_laws
from isogloss.testing.strategies import numbers

Arcs = list[tuple[int, int, int]]
Given = tuple[Arcs, list[bool], Any, Any, tuple[Any, Any], Any]


def cuts_of(words: list[int]) -> tuple[Arcs, list[bool]]:
    """All ways to cut words of so many letters; a row for each span."""
    borders, spans, begin = [True], [], 0
    for size in words:
        borders += [False] * (size - 1) + [True]
        spans += [(begin + i, begin + j) for i in range(size) for j in range(i + 1, size + 1)]
        begin += size
    return [(i, j, row) for row, (i, j) in enumerate(spans)], borders


@st.composite
def inputs(draw: Any) -> Given:
    """Up to three words with all their cuts, some arcs missing, some with the row of another that they overlap with."""
    words = draw(st.lists(st.integers(1, 3), max_size=3).filter(lambda sizes: sum(sizes) <= 4))
    arcs, borders = cuts_of(words)
    if draw(st.booleans()):  # twins, as if nodes knew more than places
        arcs = sorted([*arcs, *arcs[::2]])
    m = draw(st.integers(0, 3 if sum(words) < 4 else 2))
    rows, width = len({row for _, _, row in arcs}), m + 1
    holes, spread = draw(st.sampled_from([0.0, 0.1, 0.4])), draw(st.sampled_from([0.1, 3.0, 300.0]))
    steps = [numbers(draw, (width, width), holes=holes / 2, spread=spread) for _ in range(2)]
    return (
        arcs, borders, numbers(draw, (rows, width), holes=holes, spread=spread),
        numbers(draw, (len(arcs),), holes=holes, spread=spread), (steps[0], steps[1]),
        numbers(draw, (width,), holes=holes / 2, spread=spread),
    )  # fmt: skip


def made(arcs: Arcs, borders: list[bool], emission: Any, weights: Any, steps: Any, final: Any) -> AlignedSegments:
    return AlignedSegments(SegmentLattice(arcs, borders), emission, weights, *steps, final)


@given(inputs(), st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_everything_agrees_with_enumeration(drawn: Given, seed: int) -> None:
    truth, dist = brute_force_aligned_segments(*drawn), made(*drawn)
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.argmax, lambda: dist.sample(np.random.default_rng(0))):
            with pytest.raises(InfeasibleError, match="lead to no end"):
                method()
        return
    check_laws(dist, truth, rng=np.random.default_rng(seed), samples=0)


def drawn_one(seed: int, words: list[int], m: int, spread: float = 1.0) -> AlignedSegments:
    rng = np.random.default_rng(seed)
    arcs, borders = cuts_of(words)
    width = m + 1
    steps = rng.normal(size=(2, width, width)) * spread
    return made(
        arcs, borders, rng.normal(size=(len(arcs), width)) * spread, rng.normal(size=len(arcs)), steps,
        rng.normal(size=width),
    )  # fmt: skip


def test_draws_come_as_often_as_they_should() -> None:
    for seed, (words, m) in enumerate((([2], 1), ([1, 2], 1), ([1, 1], 2))):
        dist = drawn_one(seed, words, m)
        emission, weights, steps, final = dist._kinds(dist.scores)
        truth = brute_force_aligned_segments(*cuts_of(words), emission, weights, (steps[0], steps[1]), final)
        check_laws(dist, truth, rng=np.random.default_rng(seed), samples=400)


@pytest.mark.parametrize("m", [0, 1, 3])
def test_whole_words_are_an_alignment_chain(m: int) -> None:
    """Segmentation frozen to words: the HMM aligner with a null for each position."""
    rng, n, null = np.random.default_rng(3), 4, 0.2
    emission, final = rng.normal(size=(n, m + 1)), rng.normal(size=m + 1)
    jump = np.log(rng.dirichlet(np.ones(max(m, 1)), size=m + 1))[:, :m]
    lattice = SegmentLattice([(t, t + 1, t) for t in range(n)], [True] * (n + 1))
    across = np.concatenate([np.log(1 - null) + jump, np.full((m + 1, 1), np.log(null))], axis=1)
    ours = AlignedSegments(lattice, emission, np.zeros(n), np.full(across.shape, -np.inf), across, final)
    hmm = AlignmentChain(emission[:, :m], emission[:, m], jump[m], jump[:m], null, final)
    assert ours.log_partition() == pytest.approx(hmm.log_partition(), rel=1e-12)
    np.testing.assert_allclose(ours.emission_marginals()[:, :m], hmm.posterior(), atol=1e-12)
    np.testing.assert_allclose(ours.step_marginals()[1, :m, :m], hmm.jump_counts(), atol=1e-12)
    assert [position for _, position in ours.argmax()] == hmm.argmax().tolist()


def test_without_source_positions_it_is_a_semi_markov_model() -> None:
    rng, words = np.random.default_rng(5), [3, 2]
    arcs, borders = cuts_of(words)
    assert [arc[:2] for arc in arcs] == [tuple(span) for span in _spans_of(np.array(words), 9).tolist()]
    own = rng.normal(size=int(n_word_spans(words, 9).sum()))
    ours = AlignedSegments(
        SegmentLattice(arcs, borders), np.zeros((len(arcs), 1)), own, np.zeros((1, 1)), np.zeros((1, 1)), [0.0]
    )
    other = SemiMarkov2(np.repeat(own[:, None, None], 3, axis=1), np.zeros((2, 2, 2)), words, 9)
    assert ours.log_partition() == pytest.approx(other.log_partition(), rel=1e-12)
    np.testing.assert_allclose(ours.arc_marginals(), other.segment_marginals().sum(axis=(1, 2)), atol=1e-12)
    assert [arcs[arc][:2] for arc, _ in ours.argmax()] == [segment[:2] for segment in other.argmax()]


@pytest.mark.parametrize("spread", [1.0, 200.0])
def test_long_sentences_neither_overflow_nor_vanish(spread: float) -> None:
    """With large scores sums are in logarithms; probabilities and logarithms agree where both work."""
    from isogloss.structures._numba.aligned_segments import aligned_segments
    from isogloss.structures.semiring import LOG

    dist = drawn_one(1, [5, 3, 6] * 20, 4, spread)
    grad = np.zeros(len(dist.scores))
    tails, heads, rows = (np.ascontiguousarray(one) for one in dist.arcs.T)
    value = aligned_segments(
        LOG, dist.scores, dist.lattice.n_rows, dist.m, tails, heads, rows, np.array(dist.lattice.borders), grad,
        np.empty(0),
    )  # fmt: skip
    assert dist.log_partition() == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(dist.marginals(), grad, atol=1e-9)


@given(st.lists(st.lists(st.integers(1, 3), max_size=3), min_size=1, max_size=4), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_many_are_as_one_by_one(sentences: list[list[int]], seed: int) -> None:
    ones = [drawn_one(seed + s, words, (seed + s) % 4) for s, words in enumerate(sentences)]
    by_scores = {one.scores.tobytes(): one for one in ones}

    def one(scores: Any) -> AlignedSegments:
        return by_scores[np.asarray(scores).tobytes()]

    check_batch(one, lambda scores: AlignedSegments.batch(map(one, scores)), [dist.scores for dist in ones])
    batch, alone = AlignedSegments.batch(ones), np.random.default_rng(1)
    drawn = [dist.sample(alone) for dist in ones]
    assert batch.sample(np.random.default_rng(1)) == drawn
    assert batch.from_parts(batch.parts(drawn)) == drawn


def test_what_is_wrong_is_said() -> None:
    for arcs, borders, finding in (
        ([], [False], "borders of words"),
        ([(0, 0, 0)], [True, True], "go up"),
        ([(1, 2, 0), (0, 1, 1)], [True, True, True], "by the nodes where they begin"),
        ([(0, 2, 0)], [True, True, True], "leads over the border"),
        ([(0, 1, 0), (1, 2, 0)], [True, False, True], "may take row 0 twice"),
    ):
        with pytest.raises(ParameterError, match=finding):
            SegmentLattice(arcs, borders)
    dist = drawn_one(0, [2], 1)
    for wrong, finding in (
        ([(2, 0)], "cannot be the next"), ([(1, 1)], "from 0 to 0, or -1"), ([(0, 0)], "ends at node 1"),
        ("ab", "has .arc, position. of each"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=finding):
            dist.parts(wrong)
