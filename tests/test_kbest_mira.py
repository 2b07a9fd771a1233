"""Batch MIRA over lists of candidates, against the same written down naively."""

from __future__ import annotations

import numpy as np
import pytest

from isogloss.errors import ParameterError
from isogloss.learners.kbest import CandidateLists, HopeFear
from isogloss.metrics.translation import bleu_beside


def lists(rng: np.random.Generator, n_items: int, width: int) -> CandidateLists:
    sizes = rng.integers(0, 5, n_items)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n = int(starts[-1])
    totals = rng.integers(4, 12, n)[:, None] - np.arange(4)
    right = (totals * rng.random((n, 4))).astype(int)
    counts = np.column_stack([right, totals, totals[:, 0], totals[:, 0] + rng.integers(-2, 3, n)])
    return CandidateLists(starts, rng.normal(size=(n, width)), counts.astype(float))


def naive(own, quality, cap, batch, fading, seed, start, passes):
    """The mean of the weights after every minibatch of some passes."""
    n_items, weights, seen = len(own.starts) - 1, start.copy(), []
    background = np.full(own.counts.shape[1], 1.0 if fading else 0.0)
    for iteration in range(passes):
        order = np.random.default_rng([seed, iteration]).permutation(n_items)
        for at in range(0, n_items, batch):
            before, beside = weights.copy(), background.copy()
            for item in order[at : at + batch]:
                places = range(own.starts[item], own.starts[item + 1])
                if not places:
                    continue
                scores = {k: float(before @ own.features[k]) for k in places}
                good = {k: float(quality(own.counts[k] + beside)) for k in places}
                hope = max(places, key=lambda k: scores[k] + good[k])
                fear = max(places, key=lambda k: scores[k] - good[k])
                difference = own.features[hope] - own.features[fear]
                lack = good[hope] - good[fear] - (scores[hope] - scores[fear])
                if lack > 0 and difference.any():
                    weights += min(cap, lack / (difference @ difference)) * difference
                if fading:
                    background = background * fading + own.counts[hope]
            seen.append(weights.copy())
    return np.mean(seen, axis=0)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("fading", [0.0, 0.9])
def test_passes_agree_with_naive_ones(batch, fading):
    quality = bleu_beside if fading else lambda counts: counts[..., 0]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        own, start = lists(rng, 11, 4), rng.normal(size=4)
        learner = HopeFear(own, quality, cap=0.1, batch=batch, fading=fading, seed=seed)
        state = learner.init(start)
        for _ in range(3):
            state = learner.step(state)
        # the mean has the weights before each step of a minibatch, and is asked for after the last
        np.testing.assert_allclose(
            state.average, naive(own, quality, 0.1, batch, fading, seed, start, 3), rtol=1e-9, atol=1e-12
        )


def test_lists_without_candidates_change_nothing():
    nothing = CandidateLists(np.zeros(4, np.int64), np.zeros((0, 2)), np.zeros((0, 1)))
    learner = HopeFear(nothing, lambda counts: counts[..., 0], fading=0.0)
    state = learner.step(learner.init([1.0, 2.0]))
    assert state.average.tolist() == [1.0, 2.0]


def test_nonsense_is_refused():
    one = CandidateLists(np.array([0, 1]), np.zeros((1, 2)), np.zeros((1, 1)))
    with pytest.raises(ParameterError, match="fading"):
        HopeFear(one, bleu_beside, fading=1.0)
    with pytest.raises(ParameterError, match="cap"):
        HopeFear(one, bleu_beside, cap=0.0)
