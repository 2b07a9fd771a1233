"""Max-margin parsing over grammars: weights of rules and features of spans, held against enumeration and duality."""

from __future__ import annotations

import numpy as np
import pytest

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.frank_wolfe import FrankWolfe
from isogloss.learners.rule_model import RuleModel, constituent_costs
from isogloss.learners.runner import run
from isogloss.structures import Cfg, Grammar
from isogloss.testing import brute_force_cfg

GRAMMAR = Grammar(2, [(0, 0, 1), (0, 1, 1), (1, 1, 0), (1, 0, 0)], [(0, 1)])
LENGTHS = (3, 1, 4, 2)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    trees = Cfg.many([GRAMMAR.scores(n, inner=rng.normal(size=(n * (n + 1) // 2, 2))) for n in LENGTHS], GRAMMAR)
    spans = sum(n * (n + 1) // 2 for n in LENGTHS)
    features = Sparse.of([rng.choice(6, size=2, replace=False).tolist() for _ in range(spans)], 6)
    right = [trees[s].sample(rng) for s in range(len(trees))]
    return RuleModel(trees, features), right, constituent_costs(trees, right)


def test_scores_are_those_of_rules_and_spans(problem):
    model, right, _ = problem
    weights = np.random.default_rng(1).normal(size=model.n_weights)
    base, first = model.trees, 0
    for s, n in enumerate(LENGTHS):
        parts = base[s].parts(right[s])
        kinds = GRAMMAR.split(parts)
        spans = [
            weights[5 + f] for span in np.flatnonzero(kinds.inner.sum(axis=1)).tolist()
            for f in model.spans.indices[model.spans.indptr[first + span] : model.spans.indptr[first + span + 1]]
        ]  # fmt: skip
        expected = base[s].score(right[s]) + kinds.binary @ weights[:4] + kinds.unary @ weights[4:5] + sum(spans)
        assert model.distribution(weights, s).score(right[s]) == pytest.approx(expected)
        first += n * (n + 1) // 2


def test_the_gradient_of_log_z_by_differences(problem):
    model, _, _ = problem
    weights, items, step = np.random.default_rng(2).normal(size=model.n_weights), np.arange(len(LENGTHS)), 1e-5
    slope = np.zeros(model.n_weights)
    model.add_log_partition(weights, slope, None, 1.0)
    for at in range(model.n_weights):
        moved = [weights + sign * step * (np.arange(model.n_weights) == at) for sign in (1, -1)]
        above, below = (model.batch(one, items).log_partition().sum() for one in moved)
        assert (above - below) / (2 * step) == pytest.approx(slope[at], rel=1e-5, abs=1e-7)


def test_loss_augmented_search_agrees_with_enumeration(problem):
    model, right, costs = problem
    weights = np.random.default_rng(3).normal(size=model.n_weights)
    for s, n in enumerate(LENGTHS):
        dist = model.distribution(weights, s)
        truth = brute_force_cfg(dist.scores, n, 2, GRAMMAR.binary.tolist(), GRAMMAR.unary.tolist())
        losses = truth.parts @ costs[s].parts
        assert costs[s].of(dist.parts(right[s])) == 0.0 and losses.min() == 0.0
        augmented = dist.with_scores(dist.scores + costs[s].parts)
        assert augmented.score(augmented.argmax()) == pytest.approx((truth.log_scores + losses).max())


def test_the_duality_gap_closes_and_mixtures_of_trees_are_consistent(problem):
    model, right, costs = problem
    learner = FrankWolfe(model, right, costs, l2=0.2, seed=1)
    found = run(learner, learner.init(), iterations=300, should_stop=lambda _, info: info.gap < 1e-6)
    assert (np.diff(found.trace) >= -1e-9).all()
    assert 0 <= found.watched["gap"][-1] < 1e-6 or found.watched["gap"][-1] == pytest.approx(0.0, abs=1e-9)
    assert learner.primal(found.state.weights) >= found.trace[-1] - 1e-9
    mixture = GRAMMAR.split(model.distribution(found.state.weights, 2).marginals())
    made = np.bincount(GRAMMAR.binary[:, 0], mixture.binary, 2)
    assert mixture.inner[4:].sum(axis=0) == pytest.approx(made)  # wider spans: one binary rule each
    seen = mixture.outer[:-1].sum(axis=0)
    used = np.bincount(GRAMMAR.binary[:, 1:].ravel(), mixture.binary.repeat(2), 2)
    assert seen == pytest.approx(used)  # all but the whole are below a rule
    assert mixture.outer[-1].sum() == pytest.approx(1.0)


def test_free_symbols_cost_nothing_and_rows_are_counted(problem):
    model, right, _ = problem
    free = constituent_costs(model.trees, right, free=[0])
    assert all(not GRAMMAR.split(cost.parts).inner[:, 0].any() for cost in free)
    with pytest.raises(ParameterError, match="rows of features"):
        RuleModel(model.trees, Sparse.of([[0]], 1))
