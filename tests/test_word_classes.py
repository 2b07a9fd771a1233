"""Classes of words: EM of the aggregate Markov model, and Brown's merging, by other roads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.learners.word_classes import (
    AggregateMarkov,
    WordPairs,
    aggregate_markov,
    brown_classes,
    nearest_centres,
    neighbours,
)


def corpus(rng: np.random.Generator, words: int, sentences: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    lengths = rng.integers(0, 6, sentences)
    ids = rng.integers(-1, words, int(lengths.sum()))
    return ids, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def pairs_by_loops(ids: NDArray[np.int64], offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    found = []
    for start, stop in itertools.pairwise(offsets.tolist()):
        for k in range(start, stop - 1):
            if ids[k] >= 0 and ids[k + 1] >= 0:
                found.append((int(ids[k]), int(ids[k + 1])))
    return found


@given(st.integers(0, 2**31))
@settings(max_examples=25)
def test_neighbours_are_those_within_sentences(seed: int) -> None:
    ids, offsets = corpus(np.random.default_rng(seed), 4, 5)
    first, second = neighbours(ids, offsets)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == pairs_by_loops(ids, offsets)


# --- the aggregate Markov model


def slow_step(pairs: list[tuple[int, int]], given: NDArray, emit: NDArray) -> tuple[NDArray, NDArray, float]:
    fresh, out, value = np.zeros_like(given), np.zeros_like(emit), 0.0
    for w, c in pairs:
        joint = given[w] * emit[c]
        value += float(np.log(joint.sum()))
        fresh[w] += joint / joint.sum()
        out[c] += joint / joint.sum()
    rows = fresh.sum(axis=1, keepdims=True)
    return np.where(rows > 0, fresh / np.maximum(rows, 1e-300), given), out / out.sum(axis=0), value


def test_a_step_of_em_is_that_of_loops_and_never_lowers_the_likelihood() -> None:
    rng = np.random.default_rng(1)
    ids, offsets = corpus(rng, 5, 60)
    pairs = pairs_by_loops(ids, offsets)
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    learner = AggregateMarkov(WordPairs.of(first, second, 5, 5), 5)
    state = learner.init(3)
    before = -np.inf
    for _ in range(15):
        given, emit, value = slow_step(pairs, state.given, state.emit)
        state, info = learner.step(state)
        assert state.given == pytest.approx(given) and state.emit == pytest.approx(emit)
        assert info.objective == pytest.approx(value) and info.objective >= before - 1e-9
        before = info.objective


def test_threads_do_not_matter() -> None:
    ids, offsets = corpus(np.random.default_rng(2), 30, 300)
    with using_threads(1):
        one = aggregate_markov(ids, offsets, 30, 4, iterations=5)
    with using_threads(2):
        two = aggregate_markov(ids, offsets, 30, 4, iterations=5)
    assert np.array_equal(one, two) and one.sum(axis=1) == pytest.approx(1.0)


def test_words_in_like_places_share_a_class() -> None:
    rng = np.random.default_rng(3)
    rows = [[rng.integers(0, 5), 5 + rng.integers(0, 5), 10 + rng.integers(0, 5)] for _ in range(600)]
    ids, offsets = np.array(rows).ravel(), np.arange(0, 1801, 3)
    best = aggregate_markov(ids, offsets, 15, 3, iterations=60).argmax(axis=1)
    assert all(len(set(best[k : k + 5].tolist())) == 1 for k in (0, 5, 10)) and len(set(best.tolist())) == 3


# --- Brown


def information(counts: NDArray, left: NDArray, right: NDArray, classes: list[list[int]]) -> float:
    """Mutual information of neighbouring classes; words that are in no class are left out of the sum."""
    total, found = left.sum(), 0.0
    for one in classes:
        for other in classes:
            n = counts[np.ix_(one, other)].sum()
            if n > 0:
                found += n / total * np.log(n * total / (left[one].sum() * right[other].sum()))
    return found


def slow_brown(ids: NDArray, offsets: NDArray, words: int, k: int) -> list[list[int]]:
    """The greedy merging by the definition: every pair is tried, and information reckoned anew."""
    counts = np.zeros((words, words))
    for a, b in pairs_by_loops(ids, offsets):
        counts[a, b] += 1
    left, right = np.maximum(counts.sum(axis=1), 0.5), np.maximum(counts.sum(axis=0), 0.5)
    often = np.bincount(ids[ids >= 0], minlength=words)
    classes: list[list[int]] = []
    for word in np.argsort(-often, kind="stable").tolist():
        classes.append([word])
        if len(classes) > k:
            tried = []
            for i, j in itertools.combinations(range(len(classes)), 2):
                merged = [own for n, own in enumerate(classes) if n not in (i, j)] + [classes[i] + classes[j]]
                tried.append((-information(counts, left, right, merged), i, j))
            _, i, j = min(tried)
            classes[i] += classes.pop(j)
    return classes


@given(st.integers(0, 2**31), st.integers(2, 4))
@settings(max_examples=20)
def test_merging_is_that_of_the_definition(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 9, 30)
    weights = rng.dirichlet(np.ones(7))  # no two words alike, so that nothing is tied
    ids = rng.choice(7, int(lengths.sum()), p=weights)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    bits = brown_classes(ids, offsets, 7, k)
    found = sorted(sorted(np.flatnonzero([one == own for one in bits]).tolist()) for own in set(bits))
    assert found == sorted(sorted(own) for own in slow_brown(ids, offsets, 7, k))


def test_bits_are_ways_through_a_tree() -> None:
    ids, offsets = corpus(np.random.default_rng(4), 40, 400)
    bits = sorted(set(brown_classes(ids, offsets, 40, 9)))
    assert len(bits) == 9
    assert not any(other.startswith(one) for one, other in itertools.permutations(bits, 2))
    assert sum(2.0 ** -len(one) for one in bits) == pytest.approx(1.0)


def test_little_text() -> None:
    nothing, one = np.zeros(0, np.int64), np.array([0, 1])
    assert brown_classes(nothing, np.array([0]), 0, 3) == []
    assert len(set(brown_classes(np.array([0]), one, 1, 3))) == 1
    assert aggregate_markov(np.array([0]), one, 1, 2).shape == (1, 2)
    assert (
        nearest_centres(np.zeros((0, 2)), 3).tolist() == [] and nearest_centres(np.ones((3, 2)), 2).tolist() == [0] * 3
    )
    for wrong in (lambda: brown_classes(nothing, one, 1, 0), lambda: aggregate_markov(nothing, one, 1, 0)):
        with pytest.raises(ParameterError, match="1 or more"):
            wrong()


def test_centres_are_the_means_of_their_points() -> None:
    rng = np.random.default_rng(5)
    points, counts = np.concatenate([rng.normal(m, 0.1, (20, 3)) for m in (0, 3, 6)]), rng.integers(1, 5, 60)
    found = nearest_centres(points, 3, counts=counts)
    assert all(len(set(found[k : k + 20].tolist())) == 1 for k in (0, 20, 40)) and len(set(found.tolist())) == 3
    means = np.stack([np.average(points[found == k], axis=0, weights=counts[found == k]) for k in range(3)])
    assert np.array_equal(((points[:, None] - means) ** 2).sum(axis=2).argmin(axis=1), found)
