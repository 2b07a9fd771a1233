"""Learning from what a search finds: targets by their rules, means by loops, and what is separable is separated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.margin import Mira, Perceptron
from isogloss.learners.runner import run
from isogloss.learners.searched import UPDATES, Searched, SearchModel, Towards
from isogloss.testing import check_learner

N_WEIGHTS = 6


class Lists:
    """A search through lists that are there from the beginning: the best of each come first, what is right last."""

    def __init__(self, seed, n_items=5, most=6, found=3, dense=1):
        rng = np.random.default_rng(seed)
        self.rows, self.qualities, self.right = [], [], []
        for _ in range(n_items):
            n = int(rng.integers(1, most))
            rows = rng.integers(0, 3, (n, N_WEIGHTS)).astype(float)
            rows[:, : N_WEIGHTS - dense] = np.minimum(rows[:, : N_WEIGHTS - dense], 1)
            self.rows.append(rows)
            self.qualities.append(rng.integers(0, 4, n) / 4)
            self.right.append(int(rng.integers(0, n)) if rng.random() < 0.5 else -1)
        self.found, self.dense = found, dense

    def of(self, weights, item):
        """Candidates of an item: the numbers of those that are found and of what is right."""
        order = np.argsort(-(self.rows[item] @ weights), kind="stable")[: self.found].tolist()
        return order, self.right[item]

    def __call__(self, weights, items):
        starts, chosen, right = [0], [], []
        for item in items.tolist():
            found, gold = self.of(weights, item)
            chosen += [(item, k) for k in found]
            if gold >= 0:
                chosen.append((item, gold))
            right.append(len(chosen) - 1 if gold >= 0 else -1)
            starts.append(len(chosen))
        rows = np.array([self.rows[item][k] for item, k in chosen])
        indicators = [np.flatnonzero(row[: N_WEIGHTS - self.dense]) for row in rows]
        features = Sparse.of(indicators, N_WEIGHTS - self.dense, dense=rows[:, N_WEIGHTS - self.dense :])
        qualities = np.array([self.qualities[item][k] for item, k in chosen])
        return Searched(np.array(starts), features, qualities, np.array(right))

    def model(self):
        return SearchModel(self, len(self.rows), N_WEIGHTS)

    def target(self, weights, item, update):
        """By the rules, as numbers of rows: what was found and what it should have been."""
        found, gold = self.of(weights, item)
        if gold >= 0 and update != "local":
            return found[0], gold
        if update == "bold":
            return found[0], None
        best = max(self.qualities[item][k] for k in found)
        return found[0], next(k for k in found if self.qualities[item][k] == best)


seeds = st.integers(0, 2**31)


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from(UPDATES))
def test_a_pass_of_the_perceptron_is_a_loop_and_the_mean_is_that_of_all_weights(seed, update):
    lists = Lists(seed)
    learner = Perceptron(lists.model(), Towards(update), seed=seed)
    state, weights, met = learner.init(), np.zeros(N_WEIGHTS), []
    for iteration in range(3):
        state, info = learner.step(state)
        updates = 0
        for item in np.random.default_rng([seed, iteration]).permutation(len(lists.rows)).tolist():
            met.append(weights.copy())
            first, target = lists.target(weights, item, update)
            if target is not None and (lists.rows[item][target] != lists.rows[item][first]).any():
                weights = weights + lists.rows[item][target] - lists.rows[item][first]
                updates += 1
        assert info.updates == updates
    np.testing.assert_allclose(state.weights, weights, atol=1e-12)
    np.testing.assert_allclose(state.average, np.mean([*met[1:], weights], axis=0), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from(UPDATES))
def test_what_steps_are_drawn_to(seed, update):
    lists, rng = Lists(seed), np.random.default_rng(seed)
    weights, items = rng.normal(size=N_WEIGHTS), np.arange(5)
    batch = lists.model().batch(weights, items)
    found = Towards(update).rivals(items, batch, 0.0)
    for item in items.tolist():
        here = slice(batch.found.starts[item], batch.found.starts[item + 1])
        parts, qualities = found.parts[here], batch.found.qualities[here]
        assert parts.sum() == 0 and set(parts.tolist()) <= {-1.0, 0.0, 1.0}
        if parts.any():
            gained = qualities[parts == 1][0] - qualities[0]
            assert parts[0] == -1 and found.losses[item] == gained
            assert update != "local" or gained > 0
        elif update == "local":
            proposed = qualities[: len(qualities) - (batch.found.right[item] >= 0)]
            chosen, _ = lists.of(weights, item)
            best = lists.rows[item][chosen[int(proposed.argmax())]]
            assert qualities[0] == proposed.max() or np.array_equal(best, lists.rows[item][chosen[0]])
        if update == "bold" and lists.right[item] < 0:
            assert not parts.any()


@pytest.mark.parametrize("trainer", [Perceptron, Mira])
@pytest.mark.parametrize("update", UPDATES)
def test_a_separable_example_is_separated(trainer, update):
    rows = [np.eye(N_WEIGHTS)[k] for k in range(N_WEIGHTS)]
    lists = Lists(0, n_items=1)
    lists.rows, lists.qualities, lists.right = [np.array(rows)], [np.arange(N_WEIGHTS) / 8], [N_WEIGHTS - 1]
    lists.found = N_WEIGHTS
    given = {"augmentation": (1.0, 1.0)} if trainer is Mira else {}
    learner = trainer(lists.model(), Towards(update), **given)
    found = run(learner, learner.init(), iterations=8).state.weights
    assert np.argmax(lists.rows[0] @ found) == N_WEIGHTS - 1
    assert learner.step(learner.init(found))[1].updates == 0


@settings(max_examples=40, deadline=None)
@given(seeds, st.floats(0.01, 4), st.floats(0, 4), st.sampled_from([Perceptron, Mira]))
def test_rates_are_features_times_their_roots(seed, rate, of_dense, trainer):
    lists = Lists(seed)
    scaled = Lists(seed)
    roots = np.sqrt(np.array([rate] * (N_WEIGHTS - 1) + [of_dense]))
    start = np.random.default_rng(seed).normal(size=N_WEIGHTS) * (roots > 0)

    def with_roots(found):
        rows = found.features
        values = roots[rows.indices]
        dense = rows.dense * roots[-1:]
        return found._replace(features=Sparse(rows.indptr, rows.indices, rows.n_indicators, values, dense))

    model = SearchModel(lambda weights, items: with_roots(scaled(weights * roots, items)), 5, N_WEIGHTS)
    given = {"augmentation": (1.0, 1.0), "cap": 0.3} if trainer is Mira else {}
    plain = trainer(model, Towards("local"), **given)
    rated = trainer(lists.model(), Towards("local"), rates=[(0, rate), (N_WEIGHTS - 1, of_dense)], **given)
    before = np.where(roots > 0, start / np.where(roots > 0, roots, 1), 0)
    right, _ = plain.step(plain.init(before))
    found, _ = rated.step(rated.init(start))
    np.testing.assert_allclose(found.weights, right.weights * roots, atol=1e-9)


@pytest.mark.parametrize(("of_second", "moves"), [([1.0, 2.0], True), ([2.0, 1.0], False)])
def test_the_same_features_with_other_values_are_a_target(of_second, moves):
    def search(weights, items):
        rows = Sparse([0, 2, 4], [0, 1, 1, 0], 2, [1.0, 2.0, *of_second])
        return Searched(np.array([0, 2]), rows, np.array([0.0, 1.0]), np.array([-1]))

    learner = Perceptron(SearchModel(search, 1, 2), Towards("local"))
    assert learner.step(learner.init())[0].weights.any() == moves


def test_a_rate_of_0_leaves_weights_alone():
    lists = Lists(3)
    learner = Perceptron(lists.model(), Towards("local"), rates=[(0, 1.0), (N_WEIGHTS - 1, 0.0)])
    start = np.append(np.zeros(N_WEIGHTS - 1), 0.7)
    found = run(learner, learner.init(start), iterations=3).state.weights
    assert found[-1] == 0.7 and np.any(found[:-1] != 0)


def test_laws_of_learners():
    for update in UPDATES:
        model = Lists(7).model()
        learner = Mira(model, Towards(update), augmentation=(1.0, 1.0), cap=0.1, batch=2)
        check_learner(learner, learner.init())


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ParameterError, match="update should be one of"):
        Towards("best")
    with pytest.raises(ParameterError, match="without bounds"):
        Perceptron(Lists(0).model(), Towards(), rates=[(0, 0.1)], lower=0.0)
    with pytest.raises(ParameterError, match="rates need k = 1"):
        Mira(Lists(0).model(), Towards(), rates=[(0, 0.1)], k=2)
    with pytest.raises(ParameterError, match="6 features, and there are 3 weights"):
        SearchModel(Lists(0), 5, 3).batch(np.zeros(N_WEIGHTS), np.arange(2))
