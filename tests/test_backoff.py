"""Back-off of counts: sums, limits, and what is taken away, against formulas written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ParameterError
from isogloss.learners.backoff import BackOff, Level

N, K = 4, 3


def _levels(low: float, high: float) -> list[Level]:
    events = np.arange(N * K)
    return [Level(np.zeros(N, np.int64), np.arange(N), low), Level(events % K, events // K, high)]


@given(st.integers(0, 999), st.floats(0.01, 50), st.floats(0.01, 50), st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_context_adds_up_to_what_the_base_does(seed: int, low: float, high: float, taking: bool) -> None:
    rng = np.random.default_rng(seed)
    counts, base = rng.uniform(0, 3, (N, K)), rng.dirichlet(np.ones(N + 2))[:N]
    removed = [rng.uniform(0, 2, N), rng.uniform(0, 2, N * K)] if taking else None
    model = BackOff(_levels(low, high))
    found = model.probabilities(counts.ravel(), base, removed).reshape(N, K)
    rest = model.remainders(counts.ravel(), removed) * (1 - base.sum())  # of all that has no event
    assert found.sum(axis=0) + rest == pytest.approx(np.ones(K))
    assert (found >= 0).all()


def test_it_is_the_formula() -> None:
    counts = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [0.5, 0.5, 0.5], [0.0, 0.0, 0.0]])
    base = np.array([0.1, 0.2, 0.3, 0.05])
    shared = (counts.sum(axis=1) + 0.7 * base) / (counts.sum() + 0.7)
    own = (counts + 2.5 * shared[:, None]) / (counts.sum(axis=0) + 2.5)
    found = BackOff(_levels(0.7, 2.5)).probabilities(counts.ravel(), base)
    assert found.reshape(N, K) == pytest.approx(own)


def test_what_is_taken_goes_to_the_level_below() -> None:
    counts, base = np.array([3.0, 1.0, 0.0]), np.array([0.2, 0.2, 0.2])
    model = BackOff([Level(np.zeros(3, np.int64), np.arange(3), 1.0)])
    found = model.probabilities(counts, base, [np.array([1.0, 2.0, 5.0])])
    assert found == pytest.approx((np.array([2.0, 0.0, 0.0]) + (1.0 + 1.0 + 1.0) * base) / 5.0)
    assert model.remainders(counts, [np.array([1.0, 2.0, 5.0])]) == pytest.approx([3.0 / 5.0])


def test_limits() -> None:
    rng = np.random.default_rng(1)
    counts, base = rng.uniform(0.1, 3, (N, K)), rng.dirichlet(np.ones(N))
    shared = counts.sum(axis=1) / counts.sum()
    for low, high, wanted in (
        (0.0, 0.0, counts / counts.sum(axis=0)),
        (0.0, np.inf, np.repeat(shared[:, None], K, axis=1)),
        (np.inf, np.inf, np.repeat(base[:, None], K, axis=1)),
    ):
        found = BackOff(_levels(low, high)).probabilities(counts.ravel(), base).reshape(N, K)
        assert found == pytest.approx(wanted)
    nothing = BackOff(_levels(0.0, 0.0)).probabilities(np.zeros(N * K), base).reshape(N, K)
    assert nothing == pytest.approx(np.repeat(base[:, None], K, axis=1))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ParameterError, match="alpha should be 0 or more"):
        Level(np.zeros(2, np.int64), np.arange(2), -1.0)
    with pytest.raises(ParameterError, match="2 contexts and 3 parents"):
        Level(np.zeros(2, np.int64), np.arange(3), 1.0)
    with pytest.raises(ParameterError, match="events of level 0"):
        BackOff([Level(np.zeros(2, np.int64), np.arange(2), 1.0), Level(np.zeros(2, np.int64), np.arange(1, 3), 1.0)])
    with pytest.raises(ParameterError, match="12 events, and 3 counts"):
        BackOff(_levels(1.0, 1.0)).probabilities(np.zeros(3), np.zeros(N))
