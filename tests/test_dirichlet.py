"""The parameters of a Dirichlet distribution from counts: Minka's fixed point."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln

from isogloss.learners.dirichlet import LEAST, Tails, fixed_point_beside


def groups(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Labels of groups, given how often each group has each label."""
    labels = np.concatenate([np.zeros(0, np.int64), *(np.repeat(np.arange(counts.shape[1]), row) for row in counts)])
    ends = np.cumsum(counts.sum(axis=1))
    return labels, ends - counts.sum(axis=1), ends, counts.shape[1]


def likelihood(counts: np.ndarray, alpha: np.ndarray) -> float:
    whole = alpha.sum()
    each = gammaln(whole) - gammaln(counts.sum(axis=1) + whole)
    return float(each.sum() + (gammaln(counts + alpha) - gammaln(alpha)).sum())


def drawn(seed: int, n: int, alpha: np.ndarray, most: int = 60) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(rng.integers(most), rng.dirichlet(alpha)) for _ in range(n)])


@pytest.mark.parametrize("seed", range(4))
def test_the_likelihood_is_that_of_the_formula_and_never_falls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = drawn(seed, 20, rng.uniform(0.05, 2.0, 2 + seed))
    tails = Tails.of(*groups(counts))
    alpha = rng.uniform(0.01, 5.0, 2 + seed)
    for _ in range(30):
        value = tails.log_likelihood(alpha)
        assert value == pytest.approx(likelihood(counts, alpha), rel=1e-9)
        alpha = tails.fixed_point(alpha, steps=1, tolerance=0.0)
        assert tails.log_likelihood(alpha) >= value - 1e-9 * abs(value)


def test_it_comes_to_where_an_optimiser_comes_to() -> None:
    counts = drawn(1, 60, np.array([0.3, 1.2, 0.7]))
    tails = Tails.of(*groups(counts))
    found = tails.fixed_point(np.ones(3), steps=20_000, tolerance=1e-10)
    best = minimize(lambda logs: -likelihood(counts, np.exp(logs)), np.zeros(3), method="Nelder-Mead",
                    options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 5000})  # fmt: skip
    assert found == pytest.approx(np.exp(best.x), rel=1e-4)


def test_it_recovers_what_counts_were_drawn_by() -> None:
    true = np.array([0.2, 0.5, 1.5, 0.1])
    found = Tails.of(*groups(drawn(4, 4000, true))).fixed_point(np.ones(4), steps=2000, tolerance=1e-8)
    assert found == pytest.approx(true, rel=0.1)


def test_labels_that_no_group_has_and_tiny_parameters() -> None:
    counts = np.array([[5, 0, 3], [2, 0, 9], [0, 0, 0]])
    found = Tails.of(*groups(counts)).fixed_point(np.full(3, 1e-8), steps=500)
    assert np.isfinite(found).all() and found[1] == LEAST and (found[[0, 2]] > 1e-3).all()
    nothing = Tails.of(*groups(np.zeros((2, 3), np.int64)))
    assert nothing.fixed_point(np.ones(3)).tolist() == [1.0, 1.0, 1.0] and nothing.log_likelihood(np.ones(3)) == 0.0


def test_parameters_beside_what_a_group_has_already() -> None:
    """Nothing beside: the same steps as without; and else the likelihood never falls."""
    rng = np.random.default_rng(3)
    counts = drawn(3, 30, np.array([0.4, 1.0, 0.2]))
    first = rng.uniform(0.1, 2.0, 3)
    for steps in (1, 7):
        found = fixed_point_beside(first, counts.astype(float), np.zeros((30, 3)), steps=steps, tolerance=0.0)
        assert found == pytest.approx(Tails.of(*groups(counts)).fixed_point(first, steps=steps, tolerance=0.0))
    beside = rng.exponential(2.0, (30, 3)) * (rng.random((30, 3)) < 0.6)
    alpha, before = first, -np.inf
    for _ in range(40):
        prior = alpha + beside
        value = gammaln(prior.sum(axis=1)) - gammaln(prior.sum(axis=1) + counts.sum(axis=1))
        now = float(value.sum() + (gammaln(prior + counts) - gammaln(prior)).sum())
        assert now >= before - 1e-9 * abs(now)
        before, alpha = now, fixed_point_beside(alpha, counts.astype(float), beside, steps=1)
