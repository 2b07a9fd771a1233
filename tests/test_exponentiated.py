"""Structured exponentiated gradient: exact, step by step, and optimal; the penalties that come with it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from isogloss.errors import ParameterError
from isogloss.learners.posterior import (
    Features,
    GraphLaplacian,
    Groups,
    Histogram,
    Linear,
    Quadratic,
    Together,
    exponentiated,
    label_features,
    regularise,
    squared_hinge,
)
from isogloss.structures import Chain, ProjectiveTree
from isogloss.testing import brute_force_chain, brute_force_trees
from isogloss.testing.solver import regularise_listed

LENGTHS = (3, 0, 2, 1)
VERTICES = [[0, 1, 2], [], [1, -1], [3]]
TIGHT = {"tolerance": 1e-9, "steps": 5000}


def text(seed, lengths=LENGTHS, k=2, spread=1.0):
    rng = np.random.default_rng(seed)
    return Together(Chain.batch([rng.normal(0, spread, (n, k, k)) for n in lengths]))


def graph(seed=0, size=4):
    rng = np.random.default_rng(seed)
    dense = np.triu(rng.random((size, size)), 1)
    return csr_matrix(dense + dense.T)


def counts_of(vertices, size):
    flat = np.array([v for sentence in vertices for v in sentence if v >= 0], int)
    return np.bincount(flat, minlength=size)


def listed(together, features, brute_force=brute_force_chain):
    """Every sentence enumerated: probabilities, and features of each structure."""
    truths = [brute_force(dist.scores) for dist in together]
    columns = []
    for s, truth in enumerate(truths):
        whole = np.zeros((len(truth.parts), together.offsets[-1]))
        whole[:, together.offsets[s] : together.offsets[s + 1]] = truth.parts.reshape(len(truth.parts), -1)
        columns.append(np.array([features.expectations(row) for row in whole]).T)
    return truths, columns


def check_optimum(together, features, penalty, strength, tolerance=1e-5, brute_force=brute_force_chain):
    found = exponentiated(together, features, penalty, strength=strength, **TIGHT)
    truths, columns = listed(together, features, brute_force)

    def smooth(m):
        value, gradient = penalty(m)
        return strength * value, strength * gradient

    solved = regularise_listed([t.probabilities for t in truths], columns, smooth=smooth)
    for dist, truth, q in zip(found.q, truths, solved, strict=True):
        want = np.tensordot(q, truth.parts, 1)
        assert dist.marginals() == pytest.approx(want, abs=tolerance)
    assert found.converged and found.residual <= 1e-9
    assert (np.diff(found.trace) <= 1e-9).all()
    assert found.bound == pytest.approx(together.log_partition() - found.divergence - found.cost)
    return found


# --- penalties ---------------------------------------------------------------------------------------------------


def penalties():
    rng = np.random.default_rng(5)
    fixed = rng.random((4, 2)) * [[0], [1], [0], [1]]
    return {
        "graph": GraphLaplacian(graph(), [1, 2, 3, 1], 2),
        "graph with labels": GraphLaplacian(graph(1), [1, 2, 3, 1], 2, fixed=fixed),
        "histogram": Histogram(rng.dirichlet(np.ones(8)), 7.0),
        "linear": Linear(rng.normal(size=8)),
        "quadratic": Quadratic(rng.random(8), rng.random(8) + 0.1),
        "hinge": squared_hinge(rng.random(8), 3.0),
    }


@pytest.mark.parametrize("name", penalties())
def test_gradients_by_finite_difference_and_convexity(name):
    penalty, rng = penalties()[name], np.random.default_rng(1)
    for _ in range(5):
        m, other = rng.random(8) + 0.05, rng.random(8) + 0.05
        value, gradient = penalty(m)
        slopes = [(penalty(m + 1e-6 * e)[0] - penalty(m - 1e-6 * e)[0]) / 2e-6 for e in np.eye(8)]
        assert gradient == pytest.approx(np.array(slopes), abs=1e-6)
        assert penalty(other)[0] >= value + gradient @ (other - m) - 1e-12


def test_graph_laplacian_is_what_it_says():
    weights, counts = graph(3), np.array([1, 2, 3, 1])
    penalty = GraphLaplacian(weights, counts, 3)
    m = np.random.default_rng(0).dirichlet(np.ones(3), 4) * counts[:, None]
    average = m / counts[:, None]
    dense = weights.toarray()
    direct = sum(dense[a, b] * ((average[a] - average[b]) ** 2).sum() for a in range(4) for b in range(4)) / 2
    laplacian = np.diag(dense.sum(axis=1)) - dense
    value, gradient = penalty(m.ravel())
    assert value == pytest.approx(direct) and value == pytest.approx(np.trace(average.T @ laplacian @ average))
    assert gradient.reshape(4, 3).sum(axis=1) == pytest.approx(np.zeros(4), abs=1e-12)
    literal = GraphLaplacian(weights, counts, 3, normalise_by_count=False)(m.ravel())[1]
    assert literal.reshape(4, 3) == pytest.approx(gradient.reshape(4, 3) * counts[:, None])
    looped = GraphLaplacian(weights + csr_matrix(np.eye(4)), counts, 3)  # self-loops cancel
    assert looped(m.ravel())[0] == pytest.approx(value)
    lonely = GraphLaplacian(weights, [1, 2, 0, 1], 3)  # a vertex that no position has pulls at nobody
    assert not lonely(m.ravel())[1].reshape(4, 3)[2].any() and lonely(np.zeros(12))[0] == 0
    assert GraphLaplacian(csr_matrix((4, 4)), counts, 3)(m.ravel())[0] == 0
    for wrong, message in (
        ((csr_matrix(np.triu(dense)), counts, 3), "symmetric"),
        ((-weights, counts, 3), "0 or more"),
        ((weights, [1, 2], 3), "2 counts"),
    ):
        with pytest.raises(ParameterError, match=message):
            GraphLaplacian(*wrong)
    with pytest.raises(ParameterError, match="fixed"):
        GraphLaplacian(weights, counts, 3, fixed=np.zeros((4, 2)))


def test_histogram_is_a_divergence():
    target, total = np.array([0.5, 0.3, 0.2]), 10.0
    share = np.array([0.1, 0.6, 0.3])
    value, _ = Histogram(target, total)(share * total)
    assert value == pytest.approx((share * np.log(share / target)).sum())
    for wrong in ([0.5, 0.5, 0.0], [0.5, 0.6]):
        with pytest.raises(ParameterError, match="add up to 1"):
            Histogram(wrong, 1.0)
    with pytest.raises(ParameterError, match="total"):
        Histogram([0.5, 0.5], 0.0)


# --- the E-step --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [0.5, 5.0])
@pytest.mark.parametrize("k", [2, 3])
def test_graph_penalty_equals_a_generic_convex_solver_and_the_dual(strength, k):
    together = text(k, k=k)
    features = label_features(together, VERTICES, 4, k)
    penalty = GraphLaplacian(graph(), counts_of(VERTICES, 4), k)
    found = check_optimum(together, features, penalty, strength)
    value, gradient = penalty(features.expectations(found.q.marginals()))
    assert found.offsets == pytest.approx(strength * gradient, abs=1e-9)  # theorem 1
    assert found.cost == pytest.approx(strength * value)
    elsewhere = np.random.default_rng(0).normal(size=4 * k)
    again = exponentiated(together, features, penalty, strength=strength, start=elsewhere, **TIGHT)
    assert again.q.marginals() == pytest.approx(found.q.marginals(), abs=1e-7)  # strictly convex: one optimum
    warm = exponentiated(together, features, penalty, strength=strength, start=found.offsets, **TIGHT)
    assert warm.evaluations == 1
    matrix, quadratic = GraphLaplacian(strength * graph(), counts_of(VERTICES, 4), k).differences()
    both = Features(lambda m: matrix @ features.expectations(m), lambda x: features.scores_from(matrix.T @ x))
    dual = regularise(together, both, quadratic, tolerance=1e-11)
    assert dual.q.marginals() == pytest.approx(found.q.marginals(), abs=1e-5)
    assert -dual.dual == pytest.approx(found.divergence + found.cost, abs=1e-8)


def test_labels_flow_through_the_graph():
    """Clamped sentences and `fixed` counts are the same; their neighbours come to resemble them."""
    together, gold = text(7), [0, 0, 0]
    features = label_features(together, VERTICES, 4, 2)
    penalty = GraphLaplacian(graph(), counts_of(VERTICES, 4), 2)
    clamped = Together([together[0].clamp(gold), *(together[s] for s in (1, 2, 3))])
    found = check_optimum(clamped, features, penalty, 3.0)
    assert np.array_equal(found.q[0].marginals(), together[0].parts(gold))
    fixed = np.zeros((4, 2))
    fixed[[0, 1, 2], 0] = 1
    rest = Together([together[s] for s in (1, 2, 3)])
    shorter = GraphLaplacian(graph(), counts_of(VERTICES, 4), 2, fixed=fixed)
    other = exponentiated(rest, label_features(rest, VERTICES[1:], 4, 2), shorter, strength=3.0, **TIGHT)
    assert other.q.marginals() == pytest.approx(found.q.marginals()[together.offsets[1] :], abs=1e-8)
    assert other.divergence == pytest.approx(found.divergence, abs=1e-8)
    assert found.q[3].node_marginals()[0, 0] > together[3].node_marginals()[0, 0] + 0.05


@pytest.mark.parametrize("name", ["histogram", "hinge", "marginals"])
def test_other_penalties_equal_a_generic_convex_solver(name):
    together = text(11)
    positions = sum(LENGTHS)
    if name == "marginals":  # a penalty of the marginals themselves: no features
        target = np.random.default_rng(3).random(together.scores.size)
        features = Features(np.ravel, np.ravel)
        check_optimum(together, features, Quadratic(target, 2.0), 1.0)
        plain = exponentiated(together, None, Quadratic(target, 2.0), **TIGHT)
        dual = regularise(together, features, Quadratic(target, 2.0), tolerance=1e-11)
        assert plain.q.marginals() == pytest.approx(dual.q.marginals(), abs=1e-5)
        return
    features = label_features(together, [np.zeros(n, int) for n in LENGTHS], 1, 2)
    if name == "histogram":
        check_optimum(together, features, Histogram([0.9, 0.1], positions), 4.0)
    else:
        check_optimum(together, features, squared_hinge([0.2 * positions, 0.5 * positions]), 2.0)


def test_trees_too():
    rng = np.random.default_rng(2)
    together = Together(ProjectiveTree.batch([rng.normal(size=(n + 1, n + 1)) for n in (3, 0, 1, 2)]))
    index = rng.integers(-1, 3, together.scores.size)
    features = Features.indexed(index, 3)
    penalty = squared_hinge([0.3, 0.3, 0.3], 2.0)
    check_optimum(together, features, penalty, 3.0, brute_force=lambda s: brute_force_trees(s, projective=True))


def test_chains_of_order_two():
    rng = np.random.default_rng(4)
    together = Together(Chain.batch([rng.normal(size=(n, 2, 2, 2)) for n in LENGTHS]))
    features = label_features(together, VERTICES, 4, 2)
    nodes = np.concatenate([dist.node_marginals() for dist in together])
    flat = np.array([v for sentence in VERTICES for v in sentence])
    want = np.array([nodes[flat == vertex].sum(axis=0) for vertex in range(4)])
    assert features.expectations(together.marginals()) == pytest.approx(want.ravel())
    check_optimum(together, features, GraphLaplacian(graph(), counts_of(VERTICES, 4), 2), 2.0)


def test_every_step_is_the_multiplicative_update_of_the_enumerated_q():
    together = text(13)
    features = label_features(together, VERTICES, 4, 2)
    penalty, strength, rate = GraphLaplacian(graph(), counts_of(VERTICES, 4), 2), 2.0, 0.2
    truths, columns = listed(together, features)
    q = [t.probabilities for t in truths]
    for steps in range(1, 6):
        expected = sum(column @ share for column, share in zip(columns, q, strict=True))
        _, gradient = penalty(expected)
        for s, truth in enumerate(truths):  # q exp(-η ∂(KL + λh)/∂q), normalised
            slope = np.log(q[s] / truth.probabilities) + strength * gradient @ columns[s]
            q[s] = q[s] * np.exp(-rate * slope)
            q[s] /= q[s].sum()
        options = {"rate": rate, "backtrack": False, "steps": steps, "tolerance": 0.0}
        found = exponentiated(together, features, penalty, strength=strength, **options)
        for dist, share in zip(found.q, q, strict=True):
            assert brute_force_chain(dist.scores).probabilities == pytest.approx(share, abs=1e-10)
        assert found.evaluations == steps and len(found.trace) == steps + 1


def test_no_strength_changes_nothing_and_much_makes_vertices_equal():
    together = text(17)
    vertices = [[0, 1, 2], [], [1, 3], [3]]
    features = label_features(together, vertices, 4, 2)
    penalty = GraphLaplacian(graph(), counts_of(vertices, 4), 2)
    none = exponentiated(together, features, penalty, strength=0.0)
    assert none.q is together and none.evaluations == 0 and none.converged and none.divergence == 0
    values, start = [], None
    for strength in (0.1, 1.0, 10.0, 100.0, 1000.0):
        found = exponentiated(together, features, penalty, strength=strength, start=start, tolerance=1e-4, steps=20000)
        start = found.offsets
        assert found.converged
        values.append(found.cost / strength)
    assert all(b <= a + 1e-9 for a, b in itertools.pairwise(values))
    average = penalty.averages(features.expectations(found.q.marginals()))
    assert np.ptp(average, axis=0).max() < 2e-3
    edgeless = GraphLaplacian(csr_matrix((4, 4)), counts_of(vertices, 4), 2)
    assert exponentiated(together, features, edgeless).q is together


def test_a_linear_penalty_agrees_with_the_dual_of_standard_regularisation():
    together = text(19)
    features = label_features(together, VERTICES, 4, 2)
    costs = np.random.default_rng(4).random(8)
    found = exponentiated(together, features, Linear(costs), strength=1.5, **TIGHT)
    assert found.offsets == pytest.approx(1.5 * costs, abs=1e-8)
    dual = regularise(together, features, Linear(1.5 * costs))
    assert dual.q.marginals() == pytest.approx(found.q.marginals(), abs=1e-9) and dual.evaluations == 1
    # λ Σ max(m − b, 0) with b out of reach is linear too, and its multipliers are found by the search.
    hinge = Groups(np.arange(8), 1.5 * costs, np.full(8, -1.0))
    for optimiser in ("gradient", "lbfgs"):
        searched = regularise(together, features, hinge, optimiser=optimiser, tolerance=1e-10)
        assert searched.q.marginals() == pytest.approx(found.q.marginals(), abs=1e-8)


@given(st.integers(0, 10_000), st.sampled_from([0.1, 2.0, 30.0]))
@settings(max_examples=20, deadline=None)
def test_it_converges_from_anywhere_and_never_climbs(seed, strength):
    rng = np.random.default_rng(seed)
    lengths, k = rng.integers(0, 5, 4), int(rng.integers(1, 4))
    together = text(seed, lengths, k, spread=3.0)
    vertices = [rng.integers(-1, 5, n) for n in lengths]
    features = label_features(together, vertices, 5, k)
    penalty = GraphLaplacian(graph(seed, 5), counts_of(vertices, 5), k)
    start = rng.normal(0, 2, 5 * k) if seed % 2 else None
    found = exponentiated(together, features, penalty, strength=strength, start=start, tolerance=1e-6, steps=5000)
    assert found.converged and (np.diff(found.trace) <= 1e-9 * (1 + found.trace[:-1])).all()
    assert found.divergence + found.cost <= strength * penalty(features.expectations(together.marginals()))[0] + 1e-9


def test_forbidden_labels_stay_forbidden():
    scores = np.zeros((2, 2, 2))
    scores[:, :, 1] = -np.inf
    together = Together([Chain(scores), Chain(np.zeros((2, 2, 2)))])
    features = label_features(together, [[0, 0], [1, 1]], 2, 2)
    found = exponentiated(together, features, GraphLaplacian(graph(0, 2), [2, 2], 2), strength=5.0, tolerance=1e-8)
    assert found.converged and not found.q[0].node_marginals()[:, 1].any()
    impossible = label_features(Together([Chain(scores)]), [[0, 0]], 1, 2)
    alone = exponentiated([Chain(scores)], impossible, Histogram([0.5, 0.5], 2), steps=20)
    assert np.isfinite(alone.divergence) and alone.q.marginals().sum() == pytest.approx(2)


def test_bad_arguments_are_refused_by_name():
    together = text(0)
    features = label_features(together, VERTICES, 4, 2)
    for options, message in (
        ({"strength": -1.0}, "strength"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"rate": 0.0}, "rate"),
        ({"steps": 0}, "steps"),
    ):
        with pytest.raises(ParameterError, match=message):
            exponentiated(together, features, Linear(np.zeros(8)), **options)


def test_a_gradient_of_another_size_is_refused():
    coin = Chain(np.zeros((1, 2, 2)))
    with pytest.raises(ParameterError, match="gradient of the penalty"):
        exponentiated(coin, np.ones((1, 1, 2, 2)), lambda m: (0.0, np.zeros(3)))
