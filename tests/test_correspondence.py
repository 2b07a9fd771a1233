"""Pivot predictors and projections: against a generic solver, definitions and identities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners import correspondence
from isogloss.learners.correspondence import Design, View, modified_huber, predictors, project, singular_blocks

EXACT = {"tolerance": 1e-11, "passes": 100_000, "positive": False}


def binary(seed: int, n: int, d: int, share: float = 0.5) -> np.ndarray:
    return (np.random.default_rng(seed).random((n, d)) < share).astype(float)


def as_sparse(x: np.ndarray) -> Sparse:
    return Sparse.of([np.flatnonzero(row).tolist() for row in x], x.shape[1])


def view(classes: np.ndarray, m: int, hidden: np.ndarray) -> View:
    return View(classes.astype(np.int32), m, hidden)


def solved(x: np.ndarray, y: np.ndarray, regularisation: float) -> np.ndarray:
    """By BFGS, from the definition of the loss."""

    def value(w: np.ndarray) -> tuple[float, np.ndarray]:
        p = (x @ w) * y
        loss = np.where(p >= -1, np.maximum(0, 1 - p) ** 2, -4 * p)
        slope = y * np.where(p >= -1, -2 * np.maximum(0, 1 - p), -4)
        return loss.mean() + regularisation * w @ w, x.T @ slope / len(y) + 2 * regularisation * w

    return minimize(value, np.zeros(x.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10}).x


@given(st.floats(-5, 5), st.sampled_from([-1, 1]))
@settings(deadline=None)
def test_slope_is_the_derivative_of_the_loss(p: float, y: int) -> None:
    slope = modified_huber(p, y)[1]
    numeric = (modified_huber(p + 1e-6, y)[0] - modified_huber(p - 1e-6, y)[0]) / 2e-6
    assert slope == pytest.approx(numeric, abs=1e-4)


@pytest.mark.parametrize("y", [-1, 1])
@pytest.mark.parametrize(("at", "value", "slope"), [(1, 0, 0), (-1, 4, -4), (0, 1, -2), (-2, 8, -4), (3, 0, 0)])
def test_loss_is_continuous_where_its_parts_meet(y: int, at: float, value: float, slope: float) -> None:
    for near in (at - 1e-9, at, at + 1e-9):
        loss, found = modified_huber(near * y, y)
        assert loss == pytest.approx(value, abs=1e-7) and found * y == pytest.approx(slope, abs=1e-7)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1e-2, 0.1]))
@settings(max_examples=15, deadline=None)
def test_predictors_are_those_of_a_generic_solver(seed: int, regularisation: float) -> None:
    x = binary(seed, 20, 5)
    y = np.where(np.random.default_rng(seed + 1).random(20) < 0.3, 1.0, -1.0)
    hidden = np.zeros(5, bool)
    given = view(np.where(y > 0, 0, -1), 1, hidden)
    found = predictors(as_sparse(x), given, regularisation=regularisation, **EXACT).toarray()[:, 0]
    assert found == pytest.approx(solved(x, y, regularisation), abs=1e-6)
    gradient = x.T @ modified_huber(x @ found, y)[1] / 20 + 2 * regularisation * found
    assert np.abs(gradient).max() < 1e-8


def test_many_predictors_are_learnt_as_one_by_one_on_any_number_of_threads() -> None:
    m = 2 * correspondence.WIDTH + 3
    x, classes = binary(0, 150, 8), np.random.default_rng(1).integers(-1, m, 150)
    hidden = np.arange(8) == 5
    found = []
    for threads in (1, 2):
        with using_threads(threads):
            found.append(predictors(as_sparse(x), view(classes, m, hidden), regularisation=0.01, **EXACT).toarray())
    assert np.array_equal(*found)
    x[:, 5] = 0
    for pivot in (0, 17, m - 1):
        assert found[0][:, pivot] == pytest.approx(solved(x, np.where(classes == pivot, 1.0, -1.0), 0.01), abs=1e-6)


def test_hidden_columns_have_no_weight_and_without_hiding_the_answer_leaks() -> None:
    rng = np.random.default_rng(0)
    classes = rng.integers(-1, 4, 400)
    x = np.concatenate([binary(1, 400, 10), classes[:, None] == np.arange(4), np.ones((400, 1))], axis=1)
    hidden = (np.arange(15) >= 10) & (np.arange(15) < 14)
    leaking = predictors(as_sparse(x), view(classes, 4, np.zeros(15, bool)), positive=False).toarray()
    masked = predictors(as_sparse(x), view(classes, 4, hidden), positive=False).toarray()
    assert (masked[hidden] == 0).all()
    right = np.where(classes[:, None] == np.arange(4), 1, -1)
    assert (np.sign(x @ leaking) == right).mean() > 0.999
    assert ((x @ masked > 0) & (right > 0)).sum() < 0.5 * (right > 0).sum()


def test_positive_parts_are_where_a_feature_is_met_with_a_pivot() -> None:
    classes = np.random.default_rng(3).integers(-1, 5, 60)
    x = binary(4, 60, 30, share=0.1)
    given = as_sparse(x), view(classes, 6, np.zeros(30, bool))  # pivot 5 is never there
    whole = predictors(*given, positive=False).toarray()
    part = predictors(*given).toarray()
    assert np.array_equal(part, np.maximum(whole, 0))
    met = x.T @ (classes[:, None] == np.arange(6))
    assert (part[met == 0] == 0).all() and (part[:, 5] == 0).all() and (whole[:, 5] <= 0).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
@settings(max_examples=15, deadline=None)
def test_blocks_are_orthonormal_and_leave_what_the_other_singular_values_hold(seed: int, h: int) -> None:
    rng = np.random.default_rng(seed)
    w = np.maximum(rng.normal(size=(12, 9)), 0)
    blocks = rng.permutation(np.repeat([0, 1, -1], [8, 3, 1])).astype(np.int32)
    table, strengths = singular_blocks(sparse.csc_matrix(w), blocks, 2, h)
    assert (table[blocks == -1] == 0).all()
    for b in (0, 1):
        own, values = w[blocks == b], np.linalg.svd(w[blocks == b], compute_uv=False)
        theta = table[blocks == b].T.astype(float)
        rank = min(h, np.linalg.matrix_rank(own))
        assert theta @ theta.T == pytest.approx(np.diag(1.0 * (np.arange(h) < rank)), abs=1e-5)
        assert strengths[b, :rank] == pytest.approx(values[:rank]) and (strengths[b, rank:] == 0).all()
        rest = ((own - theta.T @ theta @ own) ** 2).sum()
        assert rest == pytest.approx((values[h:] ** 2).sum(), abs=1e-4)
        assert all(row[np.abs(row).argmax()] > 0 for row in theta[:rank])


@pytest.mark.parametrize("full", [0.0, 1.0])
def test_truncated_and_whole_decompositions_agree(monkeypatch: pytest.MonkeyPatch, full: float) -> None:
    w = sparse.random(60, 40, 0.2, random_state=0, format="csc")
    blocks = np.zeros(60, np.int32)
    whole = singular_blocks(w, blocks, 1, 5)
    monkeypatch.setattr(correspondence, "DENSE", 0)
    monkeypatch.setattr(correspondence, "FULL", full)  # by products of columns, or by Lanczos
    monkeypatch.setattr(correspondence, "ROWS", 7)
    truncated = singular_blocks(w, blocks, 1, 5)
    assert truncated.table == pytest.approx(whole.table, abs=1e-5)
    assert truncated.strengths == pytest.approx(whole.strengths)


def test_features_of_the_same_pivots_lie_side_by_side() -> None:
    """Features 0 and 2 go with pivot 0, 1 and 3 with pivot 1; 4 is there always."""
    rows = [[0, 4], [1, 4], [2, 4], [3, 4]] * 10
    design = Design(Sparse.of(rows, 5), np.array([0, 0, 0, 0, -1], np.int32), 1)
    classes = np.array([0, 1, 0, 1] * 10)
    table, _ = project(design, [view(classes, 2, np.zeros(5, bool))], h=2)
    unit = table[:4] / np.linalg.norm(table[:4], axis=1, keepdims=True)
    assert unit @ unit.T == pytest.approx(np.array([[1.0, 0], [0, 1]] * 2)[:, [0, 1, 0, 1]], abs=0.01)
    assert (table[4] == 0).all()


def test_wrong_designs_are_refused() -> None:
    with pytest.raises(ParameterError, match="binary"):
        Design(Sparse.of([[0]], 1, dense=[[0.5]]), np.zeros(1, np.int32), 1)
    with pytest.raises(ParameterError, match="blocks"):
        Design(Sparse.of([[0]], 1), np.ones(1, np.int32), 1)
    with pytest.raises(ParameterError, match="hidden"):
        predictors(Sparse.of([[0]], 1), view(np.zeros(1), 1, np.zeros(2, bool)))
