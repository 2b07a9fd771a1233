"""The ranking support vector machine: held against a quadratic program, and against the learner of structures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.frank_wolfe import FrankWolfe
from isogloss.learners.margin import Cost
from isogloss.learners.models import LinearModel
from isogloss.learners.pairs import PairAscent, Pairs, Pegasos
from isogloss.learners.runner import run
from isogloss.structures import Chain
from isogloss.testing import check_learner


def problem(seed, n_rows=9, n_features=3, n_pairs=14):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_features))
    chosen = np.array([rng.choice(n_rows, 2, replace=False) for _ in range(n_pairs)])
    shares = rng.uniform(0.2, 2.0, n_pairs)
    shares[0] = 0.0
    return Pairs(rows, chosen[:, 0], chosen[:, 1], shares)


def solved(pairs, l2):
    """The value of the optimum, by sequential quadratic programming with a slack for each pair."""
    d, n = pairs.n_features, len(pairs)
    A = np.hstack([pairs.differences(), np.eye(n)])
    found = minimize(
        lambda x: (
            0.5 * l2 * x[:d] @ x[:d] + pairs.shares @ x[d:], np.concatenate([l2 * x[:d], pairs.shares]),
        ),
        np.concatenate([np.zeros(d), np.ones(n)]), jac=True, method="SLSQP",
        bounds=[(None, None)] * d + [(0, None)] * n,
        constraints=[{"type": "ineq", "fun": lambda x: A @ x - 1, "jac": lambda x: A}],
        options={"maxiter": 500, "ftol": 1e-14},
    )  # fmt: skip
    w = found.x[:d]
    return 0.5 * l2 * w @ w + pairs.shares @ np.maximum(0, 1 - pairs.differences() @ w)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("l2", [0.3, 5.0])
def test_both_learners_reach_the_optimum_of_a_quadratic_program(seed, l2):
    pairs = problem(seed)
    wanted = solved(pairs, l2)
    dual = PairAscent(pairs, l2=l2, passes=50)
    result = run(dual, dual.init(), iterations=100, should_stop=lambda _, info: info.distance < 1e-9)
    assert dual.primal(result.state.weights) == pytest.approx(wanted, rel=1e-6)
    assert result.watched["gap"][-1] == pytest.approx(0, abs=1e-6 * wanted)
    steps = Pegasos(pairs, l2=l2, seed=seed)
    found = run(steps, steps.init(), iterations=2000).state
    assert wanted * (1 - 1e-9) <= steps.primal(found.average) < 1.01 * wanted


def test_the_learner_of_structures_finds_the_same():
    """A pair is a structure with two members, of which the right one is a row better and the loss of the other 1."""
    pairs, l2 = problem(7, n_pairs=6), 0.8
    parts = np.concatenate([np.stack([pairs.rows[a], pairs.rows[b]]) for a, b in zip(pairs.above, pairs.below)])
    base = np.full((1, 2, 2), -np.inf)
    base[0, 0] = 0.0
    dense = np.zeros((len(pairs) * 4, pairs.n_features))
    dense[np.add.outer(4 * np.arange(len(pairs)), [0, 1]).ravel()] = parts
    model = LinearModel([Chain(base) for _ in range(len(pairs))], Sparse.of([[] for _ in dense], 0, dense=dense))
    cost = np.zeros((1, 2, 2))
    cost[0, 0, 1] = 1.0
    other = FrankWolfe(model, [[0]] * len(pairs), [Cost(cost)] * len(pairs), l2=l2)
    wanted = run(other, other.init(), iterations=300, should_stop=lambda _, info: info.gap < 1e-9).state.weights
    ours = PairAscent(Pairs(pairs.rows, pairs.above, pairs.below), l2=l2, passes=100)
    np.testing.assert_allclose(run(ours, ours.init(), iterations=50).state.weights, wanted, atol=1e-5)


def test_laws_of_learners():
    pairs = problem(3)
    for learner, monotone in ((PairAscent(pairs, passes=2), True), (Pegasos(pairs), False)):
        check_learner(learner, learner.init(), monotone=monotone)


def test_two_rows_that_are_alike_cost_a_hinge_and_move_nothing():
    pairs = Pairs(np.ones((2, 2)), [0], [1])
    learner = PairAscent(pairs, l2=1.0)
    state, info = learner.step(learner.init())
    assert state.weights.tolist() == [0, 0] and info.primal == info.objective == 1.0 and info.wrong == 1


def test_no_pairs_and_no_features():
    for pairs in (Pairs(np.ones((2, 3)), [], []), Pairs(np.zeros((2, 0)), [0], [1])):
        for learner in (PairAscent(pairs), Pegasos(pairs)):
            assert np.isfinite(learner.step(learner.init())[1].objective)


def test_a_share_counts_as_often_as_the_pair_would():
    pairs = problem(5)
    shares = np.array([1.0, 2.0, 3.0] + [1.0] * (len(pairs) - 3))
    times = np.repeat(np.arange(len(pairs)), shares.astype(int))
    weights = []
    for given in (
        Pairs(pairs.rows, pairs.above, pairs.below, shares),
        Pairs(pairs.rows, pairs.above[times], pairs.below[times]),
    ):
        learner = PairAscent(given, passes=200)
        weights.append(run(learner, learner.init(), iterations=20).state.weights)
    np.testing.assert_allclose(*weights, atol=1e-5)


@pytest.mark.parametrize(
    "given",
    [
        (np.ones((2, 1)), [0], [2]), (np.ones((2, 1)), [0], [-1]), (np.ones((2, 1)), [0, 1], [1]),
        (np.array([[np.nan]]), [], []), (np.ones(3), [], []), (np.ones((2, 1)), [0], [1], [-1.0]),
    ],
)  # fmt: skip
def test_pairs_that_make_no_sense_are_refused(given):
    with pytest.raises(ParameterError, match="Pairs"):
        Pairs(*given)


def test_options_that_make_no_sense_are_refused():
    pairs = problem(0)
    for make in (
        lambda: PairAscent(pairs, l2=0),
        lambda: Pegasos(pairs, l2=np.inf),
        lambda: PairAscent(pairs, passes=0),
    ):
        with pytest.raises(ParameterError):
            make()
    with pytest.raises(ParameterError):
        Pegasos(pairs).init([0.0])
