"""Perceptron and MIRA: updates by hand, quadratic programs by a generic solver, loss augmentation by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.loglinear import ChainModel, LabelPairs, LinearModel, NodeFeatures
from isogloss.learners.margin import Cost, Mira, Perceptron, hamming, hildreth, nearest
from isogloss.learners.runner import run
from isogloss.structures import Chain, ProjectiveTree
from isogloss.testing import brute_force_chain, check_learner

K = 3


def chain_model(seed=0, lengths=(3, 1, 2, 4), n_features=8):
    rng = np.random.default_rng(seed)
    dists = [Chain(np.zeros((n, K, K))) for n in lengths]
    n_parts = sum(dist.scores.size for dist in dists)
    rows = [rng.choice(n_features, size=rng.integers(0, 4), replace=False).tolist() for _ in range(n_parts)]
    model = LinearModel(dists, Sparse.of(rows, n_features))
    targets = [rng.integers(0, K, n) for n in lengths]
    return model, targets, rng


def label_costs(model, targets):
    """1 for each wrong label, as a cost of the step into it."""
    costs = []
    for s, y in enumerate(targets):
        cost = np.zeros(model.structures[s].scores.shape)
        for t, label in enumerate(y):
            cost[t] = np.arange(K) != label
        costs.append(Cost(cost))
    return costs


def features_of(model, item, y):
    """Σ over the parts of y, by loops."""
    parts = np.ravel(model.structures[item].parts(y))
    out = np.zeros(model.n_weights)
    first = model._offsets[item]
    for p in np.flatnonzero(parts):
        for e in range(model.features.indptr[first + p], model.features.indptr[first + p + 1]):
            out[model.features.indices[e]] += parts[p]
    return out


# --- losses --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.floats(0, 3), st.floats(0, 3))
@settings(max_examples=50, deadline=None)
def test_hamming_counts_what_is_missed_and_what_is_spurious(seed, missed, spurious):
    rng = np.random.default_rng(seed)
    gold, found, free = (rng.integers(0, 2, (3, 4)).astype(float) for _ in range(3))
    free = free > 0
    cost = hamming(gold, missed=missed, spurious=spurious, free=free)
    wanted = missed * ((gold == 1) & (found == 0) & ~free).sum() + spurious * ((gold == 0) & (found == 1) & ~free).sum()
    assert cost.of(found) == pytest.approx(wanted)
    assert hamming(gold).of(gold) == 0


def test_nearest_is_the_allowed_structure_of_least_loss():
    rng = np.random.default_rng(3)
    for _ in range(10):
        scores = np.where(rng.random((3, K, K)) < 0.3, -np.inf, rng.normal(size=(3, K, K)))
        truth = brute_force_chain(scores)
        if truth.log_partition == -np.inf:
            continue
        cost = Cost(rng.random((3, K, K)), 1.5)
        losses = [cost.of(parts) for parts, p in zip(truth.parts, truth.probabilities) if p > 0]
        found = nearest(Chain(scores), cost)
        assert cost.of(Chain(scores).parts(found)) == pytest.approx(min(losses))


@given(st.integers(0, 2**31), st.floats(0, 2))
@settings(max_examples=25, deadline=None)
def test_loss_augmented_decoding_is_the_best_of_score_and_loss(seed, augmentation):
    model, targets, rng = chain_model(seed, lengths=(3,))
    costs = [Cost(rng.random((3, K, K)), rng.random())]
    learner = Perceptron(model, targets, costs, augmentation=(augmentation, augmentation))
    weights = rng.normal(size=model.n_weights)
    dist, augmented = learner._found(weights, 0, learner.schedule(0))
    truth = brute_force_chain(dist.scores)
    values = truth.log_scores + augmentation * np.array([costs[0].of(parts) for parts in truth.parts])
    found = tuple(int(i) for i in augmented.argmax())
    assert values[list(truth.structures).index(found)] == pytest.approx(values.max())


def test_schedule_rises_in_a_straight_line():
    model, targets, _ = chain_model()
    learner = Mira(model, targets, label_costs(model, targets))
    rates = [learner.schedule(r) for r in range(20)]
    np.testing.assert_allclose(rates[:15], 0.5 * np.arange(15) / 14)
    assert rates[15:] == [0.5] * 5
    assert Mira(model, targets, label_costs(model, targets), augmentation=(0.2, 0.4), passes=1).schedule(0) == 0.4
    assert learner.step(learner.init()._replace(iteration=7))[1].augmentation == 0.25


# --- quadratic programs --------------------------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.integers(1, 5), st.sampled_from([np.inf, 1.0, 0.1]))
@settings(max_examples=40, deadline=None)
def test_hildreth_finds_the_optimum_of_a_generic_solver(seed, k, cap):
    rng = np.random.default_rng(seed)
    vectors, weights, losses = rng.normal(size=(k, 7)), rng.normal(size=7), rng.random(k) * 3
    lacks = losses - vectors @ weights
    alpha = hildreth(vectors @ vectors.T, lacks, cap)
    assert (alpha >= 0).all() and (alpha <= cap).all()
    if cap == np.inf:  # the primal: the least change that meets the constraints
        found = minimize(
            lambda w: (0.5 * (w - weights) @ (w - weights), w - weights),
            weights,
            jac=True,
            method="SLSQP",
            constraints={"type": "ineq", "fun": lambda w: vectors @ w - losses, "jac": lambda w: vectors},
            options={"ftol": 1e-14, "maxiter": 300},
        )
        np.testing.assert_allclose(weights + alpha @ vectors, found.x, atol=1e-5)
    else:
        dual = minimize(
            lambda a: (0.5 * a @ (vectors @ vectors.T) @ a - lacks @ a, vectors @ vectors.T @ a - lacks),
            np.zeros(k),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, cap)] * k,
            options={"ftol": 1e-15, "gtol": 1e-10},
        )
        np.testing.assert_allclose(alpha @ vectors, dual.x @ vectors, atol=1e-5)


def test_hildreth_leaves_alone_what_cannot_be_changed():
    assert hildreth([[0.0, 0.0], [0.0, 2.0]], [5.0, 1.0]).tolist() == [0.0, 0.5]
    assert hildreth(np.zeros((0, 0)), []).tolist() == []
    assert hildreth([[1.0]], [-2.0]).tolist() == [0.0]


# --- updates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 4])
def test_after_an_unclipped_update_every_constraint_holds(k):
    model, targets, rng = chain_model(5)
    costs = label_costs(model, targets)
    learner = Mira(model, targets, costs, k=k, augmentation=(0.3, 0.3))
    weights = rng.normal(size=model.n_weights)
    changed = 0
    for item in range(len(model)):
        dist, augmented = learner._found(weights, item, 0.3)
        rivals = [y for _, y in augmented.k_best(k)]
        before = weights.copy()
        for at, much in learner._look(weights, item, 0.3)[2]:
            weights[at] += much
            changed += 1
        for place, rival in enumerate(rivals):
            difference = features_of(model, item, targets[item]) - features_of(model, item, rival)
            margin, loss = weights @ difference, costs[item].of(dist.parts(rival))
            if difference.any():
                assert margin >= loss - 1e-6
            if k == 1 and difference.any() and before @ difference < loss:
                assert margin == pytest.approx(loss, abs=1e-9)
            if place == 0 and k == 1 and before @ difference >= loss:
                assert np.array_equal(before, weights)
    assert changed > 1


def test_an_update_by_hand_and_its_cap():
    """One position, two labels, a weight for each: Δ = (1, −1), loss 1, so τ = ½ from 0."""
    model = LinearModel([Chain(np.zeros((1, 2, 2)))], Sparse.of([[0], [1], [], []], 2))
    cost = [hamming([[[1, 0], [0, 0]]], missed=0.0)]
    state, info = Mira(model, [[0]], cost, augmentation=(0.5, 0.5)).step(Mira(model, [[0]], cost).init())
    assert state.weights.tolist() == [0.5, -0.5] and (info.objective, info.loss, info.updates) == (-1.0, 1.0, 1)
    capped, _ = Mira(model, [[0]], cost, augmentation=(0.5, 0.5), cap=0.1).step(state._replace(weights=np.zeros(2)))
    np.testing.assert_allclose(capped.weights, [0.1, -0.1])
    perceptron = Perceptron(model, [[1]])
    after, seen = perceptron.step(perceptron.init())
    assert after.weights.tolist() == [-1.0, 1.0] and seen.updates == 1
    assert perceptron.step(after)[1].updates == 0


@pytest.mark.parametrize("make", [Perceptron, Mira])
def test_average_is_the_mean_over_all_items_met(make):
    model, targets, _ = chain_model(7)
    learner = make(model, targets, label_costs(model, targets), augmentation=(0.1, 0.4), passes=3, seed=4)
    state, sums, weights = learner.init(), np.zeros(model.n_weights), np.zeros(model.n_weights)
    for iteration in range(3):
        for item in np.random.default_rng([4, iteration]).permutation(len(model)):
            for at, much in learner._look(weights, int(item), learner.schedule(iteration))[2]:
                weights[at] += much
            sums += weights
        state, _ = learner.step(state)
    np.testing.assert_array_equal(state.weights, weights)
    np.testing.assert_allclose(state.average, sums / (3 * len(model)), atol=1e-12)


def separable(seed=0, k=3):
    """Labels that some weights get right with room to spare."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, 25)
    n = lengths.sum()
    attributes = Sparse.of([rng.choice(6, size=3, replace=False).tolist() for _ in range(n)], 6)
    model = ChainModel(NodeFeatures(attributes, LabelPairs.all(6, k)), lengths)
    truth = rng.normal(0, 2, model.n_weights)
    return model, model.distributions(truth).argmax()


@pytest.mark.parametrize("make", [Perceptron, Mira])
def test_separable_data_are_separated(make):
    model, targets = separable()
    costs = [hamming(np.eye(model.k)[y], missed=0.0) for y in targets]
    learner = make(model, targets, costs, augmentation=(0.0, 0.0))
    result = run(learner, learner.init(), iterations=200, should_stop=lambda state, info: info.loss == 0)
    assert result.stopped_because == "should_stop"
    found = model.distributions(result.state.weights).argmax()
    assert all(np.array_equal(y, target) for y, target in zip(found, targets, strict=True))


def test_annealed_mira_learns_trees():
    rng = np.random.default_rng(2)
    sizes = [4, 3, 5, 4]
    dists = [ProjectiveTree(np.zeros((n, n))) for n in sizes]
    n_parts = sum(n * n for n in sizes)
    model = LinearModel(dists, Sparse.of([rng.choice(9, size=2, replace=False).tolist() for _ in range(n_parts)], 9))
    truth = rng.normal(size=9)
    targets = [model.distribution(truth, s).argmax() for s in range(len(sizes))]
    costs = [hamming(dist.parts(y), missed=0.0) for dist, y in zip(dists, targets, strict=True)]
    for k in (1, 3):
        learner = Mira(model, targets, costs, k=k, cap=1.0)
        result = run(learner, learner.init(), iterations=30)
        found = [model.distribution(result.state.average, s).argmax() for s in range(len(sizes))]
        wrong = sum(int((a != b).sum()) for a, b in zip(found, targets, strict=True))
        assert wrong <= 1 and result.watched["loss"][-1] <= result.watched["loss"][0]


def test_order_is_the_seeds():
    model, targets, _ = chain_model(9)
    costs = label_costs(model, targets)
    runs = [
        Mira(model, targets, costs, seed=seed, shuffle=shuffle) for seed, shuffle in ((1, True), (1, True), (2, False))
    ]
    states = [run(learner, learner.init(), iterations=2).state.weights for learner in runs]
    assert np.array_equal(states[0], states[1]) and not np.array_equal(states[0], states[2])


@pytest.mark.parametrize("k", [None, 1, 3])
def test_learners_keep_the_laws(k):
    model, targets, _ = chain_model(11)
    costs = label_costs(model, targets)
    learner = Perceptron(model, targets, costs) if k is None else Mira(model, targets, costs, k=k)
    check_learner(learner, learner.init(), steps=4)


def test_training_goes_on_from_a_checkpoint_as_if_nothing_had_happened(tmp_path):
    model, targets, _ = chain_model(13)
    learner = Mira(model, targets, label_costs(model, targets), k=2)
    straight = run(learner, learner.init(), iterations=6)
    run(learner, learner.init(), iterations=3, checkpoint=tmp_path / "c")
    resumed = run(learner, learner.init(), iterations=6, checkpoint=tmp_path / "c", resume=True)
    assert np.array_equal(straight.state.average, resumed.state.average)


def test_wrong_input_says_so():
    model, targets, _ = chain_model()
    costs = label_costs(model, targets)
    for call, finding in (
        (lambda: Perceptron(model, targets[:1]), "1 targets for 4 items"),
        (lambda: Perceptron(model, targets, augmentation=(0.0, 0.5)), "needs costs"),
        (lambda: Perceptron(model, targets, costs, augmentation=(-1.0, 0.5)), "augmentation"),
        (lambda: Mira(model, targets, costs, k=0), "k and cap"),
        (lambda: Mira(model, targets, costs, cap=0.0), "k and cap"),
        (lambda: Perceptron(model, targets).init([1.0]), "weights should be 8 numbers"),
    ):
        with pytest.raises(ParameterError, match=finding):
            call()

    class OnlyTheBest(Chain):
        @property
        def k_best(self):
            raise AttributeError

    single = LinearModel([OnlyTheBest(np.zeros((1, 2, 2)))], Sparse.of([[]] * 4, 1))
    learner = Mira(single, [[0]], [Cost(np.zeros((1, 2, 2)))], k=2)
    with pytest.raises(ParameterError, match="OnlyTheBest has none"):
        learner.step(learner.init())
