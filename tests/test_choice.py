"""Choices among candidates against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from isogloss.errors import ParameterError
from isogloss.learners.risk import hessian_vector, mbr, tempered
from isogloss.structures import Choice, InfeasibleError
from isogloss.testing import check_structure
from isogloss.testing.enumerate import brute_force_choice


def test_laws_of_choices():
    check_structure(
        Choice, brute_force_choice, shapes=[(1,), (2,), (5,)], count=lambda shape: shape[0],
        column=lambda scores: np.s_[:], batch=Choice.batch,
    )  # fmt: skip


def test_without_candidates_nothing_is_allowed():
    for scores in ([], [-np.inf, -np.inf]):
        for ask in (Choice(scores).log_partition, Choice(scores).argmax):
            with pytest.raises(InfeasibleError, match="no candidate"):
                ask()
    with pytest.raises(InfeasibleError, match="sentence 1"):
        Choice.batch([[0.0], [], [1.0]]).log_partition()
    with pytest.raises(ParameterError, match="no candidate 2"):
        Choice([0.0, 1.0]).parts(2)


def test_moments_are_those_of_the_distribution():
    rng = np.random.default_rng(0)
    scores, vectors = ([rng.normal(size=n) for n in (3, 1, 4)] for _ in range(2))
    many = Choice.batch(scores)
    for s, (vector, found) in enumerate(zip(vectors, hessian_vector(many, vectors), strict=True)):
        p = many[s].marginals()
        right = (np.diag(p) - np.outer(p, p)) @ vector
        np.testing.assert_allclose(found, right, atol=1e-12)
        np.testing.assert_allclose(many[s].hessian_vector(vector), right, atol=1e-12)


def test_the_best_and_temperatures():
    many = Choice.batch([[0.0, 2.0, 2.0], [1.0]])
    assert many.argmax() == [1, 0] and mbr(many) == [1, 0]
    assert many[0].k_best(2) == [(2.0, 1), (2.0, 2)]
    assert tempered(many, 0.5).scores.values.tolist() == [0.0, 4.0, 4.0, 2.0]
