"""Graphs against dense arithmetic, propagation against random walks, and the learner against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError, UsageError
from isogloss.features.sparse import Sparse
from isogloss.learners import graphs
from isogloss.learners.chain_model import ChainModel, LabelPairs, NodeFeatures
from isogloss.learners.graphs import mutual, nearest, pmi, propagate
from isogloss.learners.posterior import GraphLaplacian, Together, exponentiated
from isogloss.learners.semi_supervised import Regularised, vertex_features
from isogloss.structures import FactoredChains


def some_matrix(seed, n=40, m=30, density=0.15, signed=False):
    rng = np.random.default_rng(seed)
    dense = rng.random((n, m)) * (rng.random((n, m)) < density)
    return dense * rng.choice([-1.0, 1.0], dense.shape) if signed else dense


def dense_cosines(dense):
    lengths = np.linalg.norm(dense, axis=1, keepdims=True)
    unit = np.divide(dense, lengths, out=np.zeros_like(dense), where=lengths > 0)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, 0.0)
    return cosines


def some_graph(seed, n=9, density=0.4):
    rng = np.random.default_rng(seed)
    dense = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    return csr_matrix(dense + dense.T)


# --- features and neighbours ---------------------------------------------------------------------------------------


def test_pmi_is_the_logarithm_of_a_ratio_of_shares():
    counts = np.array([[4.0, 1.0, 0.0], [0.0, 2.0, 3.0]])
    found = pmi(csr_matrix(counts), positive=False).toarray()
    joint, rows, columns = counts / 10, counts.sum(axis=1) / 10, counts.sum(axis=0) / 10
    for t, f in itertools.product(range(2), range(3)):
        want = np.log(joint[t, f] / (rows[t] * columns[f])) if joint[t, f] else 0.0
        assert found[t, f] == pytest.approx(want)
    kept = pmi(csr_matrix(counts))
    assert (kept.data > 0).all() and kept.toarray() == pytest.approx(np.maximum(found, 0))
    literal = pmi(csr_matrix(counts), corpus_size=False).toarray()
    assert literal[0, 0] == pytest.approx(np.log(4 / (5 * 4))) and (literal <= 0).all()
    assert pmi(csr_matrix((3, 2))).nnz == 0
    with pytest.raises(ParameterError, match="counts"):
        pmi(csr_matrix([[-1.0]]))


@given(st.integers(0, 10_000), st.integers(1, 45), st.booleans())
@settings(max_examples=40, deadline=None)
def test_nearest_agrees_with_dense_cosines(seed, k, signed):
    dense = some_matrix(seed, signed=signed)
    cosines = dense_cosines(dense)
    found = nearest(csr_matrix(dense), k)
    assert found.shape == (40, 40) and not found.diagonal().any()
    for row in range(40):
        want = np.sort(cosines[row][cosines[row] > 1e-12])[::-1][:k]
        got = found[row].toarray().ravel()
        at = np.flatnonzero(got)
        assert np.sort(got[at])[::-1] == pytest.approx(want)
        assert got[at] == pytest.approx(cosines[row][at])
    with using_threads(1):
        assert (nearest(csr_matrix(dense), k) != found).nnz == 0


def test_neighbours_equally_alike_are_taken_in_order_and_least_and_cut_are_kept():
    same = csr_matrix(np.ones((5, 1)))
    assert nearest(same, 2).indices.reshape(5, 2).tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]]
    assert nearest(same, 2, cut=4).nnz == 0 and nearest(same, 2, cut=5).nnz == 10
    dense = some_matrix(3)
    assert (nearest(dense, 40, least=0.3).data > 0.3).all()
    assert nearest(dense, 40, least=0.3).nnz == (dense_cosines(dense) > 0.3).sum()
    cut = nearest(dense, 39, cut=6)  # columns that are cut still count in the norm
    held = dense * (np.count_nonzero(dense, axis=0) <= 6)
    lengths = np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-300)
    want = (held / lengths) @ (held / lengths).T
    np.fill_diagonal(want, 0)
    assert cut.toarray() == pytest.approx(want)
    for empty in (csr_matrix((0, 3)), csr_matrix((1, 3)), csr_matrix((4, 0)), csr_matrix((4, 2))):
        assert nearest(empty, 3).nnz == 0
    for wrong in ({"k": 0}, {"k": 1, "least": -1.0}, {"k": 1, "cut": 0}, {"k": 1, "exact": "no"}):
        with pytest.raises(ParameterError, match="nearest"):
            nearest(same, **wrong)


def test_the_approximate_search_finds_nearly_all(monkeypatch):
    dense = some_matrix(5, 400, 60, 0.2)
    if graphs.find_spec("pynndescent") is None:
        with pytest.raises(UsageError, match="pynndescent"):
            nearest(csr_matrix(dense), 5, exact=False)
        pytest.skip("pynndescent is not there")
    exact, rough = nearest(csr_matrix(dense), 5), nearest(csr_matrix(dense), 5, exact=False)
    both = exact.astype(bool).multiply(rough.astype(bool))
    assert both.nnz > 0.9 * exact.nnz and not rough.diagonal().any()
    assert rough.multiply(both).toarray() == pytest.approx(exact.multiply(both).toarray(), abs=1e-6)
    monkeypatch.setattr(graphs, "MOST_WORK", 1.0)
    assert (nearest(csr_matrix(dense), 5) != rough).nnz == 0


@given(st.integers(0, 10_000), st.integers(1, 8))
@settings(max_examples=30, deadline=None)
def test_mutual_neighbours_are_symmetric_and_the_laplacian_is_not_negative(seed, k):
    near = nearest(csr_matrix(some_matrix(seed)), k)
    graph = mutual(near)
    dense, both = graph.toarray(), near.toarray()
    assert np.array_equal(dense, dense.T) and not dense.diagonal().any()
    assert np.array_equal(dense > 0, (both > 0) & (both.T > 0))
    x = np.random.default_rng(seed).normal(size=40)
    assert x @ (np.diag(dense.sum(axis=1)) - dense) @ x >= -1e-12
    with pytest.raises(ParameterError, match="square"):
        mutual(csr_matrix((2, 3)))


# --- propagation ---------------------------------------------------------------------------------------------------


def known_labels(seed, n, k=3):
    rng = np.random.default_rng(seed)
    known = np.zeros((n, k))
    some = rng.permutation(n)[: max(1, n // 3)]
    known[some] = rng.dirichlet(np.ones(k), len(some))
    return known


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_the_harmonic_solution_is_the_dense_one_and_that_of_propagation(seed):
    graph, known = some_graph(seed), known_labels(seed, 9)
    found = propagate(graph, known, tolerance=1e-12)
    iterated = propagate(graph, known, method="iterate", tolerance=1e-13, iterations=200_000)
    assert found.converged and iterated.converged
    assert found.labels == pytest.approx(iterated.labels, abs=1e-8)
    dense, has = graph.toarray(), known.any(axis=1)
    free = found.reached & ~has
    laplacian = np.diag(dense.sum(axis=1)) - dense
    want = np.linalg.solve(laplacian[np.ix_(free, free)], dense[np.ix_(free, has)] @ known[has])
    assert found.labels[free] == pytest.approx(want, abs=1e-8)
    assert np.array_equal(found.labels[has], known[has])
    assert found.labels.sum(axis=1) == pytest.approx(np.ones(9))
    for vertex in np.flatnonzero(free):  # each is its neighbours' mean
        assert found.labels[vertex] == pytest.approx(dense[vertex] @ found.labels / dense[vertex].sum(), abs=1e-8)
    assert propagate(5 * graph, known, tolerance=1e-12).labels == pytest.approx(found.labels, abs=1e-8)
    low, high = known[has].min(axis=0), known[has].max(axis=0)
    assert (found.labels[free] >= low - 1e-8).all() and (found.labels[free] <= high + 1e-8).all()


def test_it_is_where_random_walks_end():
    graph = some_graph(1, density=0.7)
    known = np.zeros((9, 2))
    known[[0, 4]] = np.eye(2)
    steps = graph.toarray()
    steps /= steps.sum(axis=1, keepdims=True)
    rng, hits, walks = np.random.default_rng(0), np.zeros(2), 4000
    for _ in range(walks):
        at = 7
        while at not in (0, 4):
            at = rng.choice(9, p=steps[at])
        hits[int(at == 4)] += 1
    assert propagate(graph, known).labels[7] == pytest.approx(hits / walks, abs=0.03)


def test_the_gradient_steps_of_the_paper_have_the_same_limit():
    graph, known = some_graph(2, density=0.6), known_labels(2, 9)
    has, dense = known.any(axis=1), graph.toarray()
    q = np.where(has[:, None], known, 1 / 3)
    for _ in range(5000):
        step = dense.sum(axis=1)[:, None] * q - dense @ q
        q = np.where(has[:, None], known, q - 0.1 * step)
    assert propagate(graph, known).labels == pytest.approx(q, abs=1e-6)


def test_parts_without_labels_get_the_prior_and_are_told():
    graph = csr_matrix(np.kron(np.eye(2), [[0, 1.0], [1, 0]]))
    known = np.array([[1.0, 0], [0, 0], [0, 0], [0, 0]])
    found = propagate(graph, known, prior=[3, 1])
    assert found.labels.tolist() == [[1, 0], [1, 0], [0.75, 0.25], [0.75, 0.25]]
    assert found.reached.tolist() == [True, True, False, False]
    nothing = propagate(graph, np.zeros((4, 2)))
    assert not nothing.reached.any() and (nothing.labels == 0.5).all()
    everything = propagate(graph, np.tile([0.0, 1.0], (4, 1)))
    assert everything.iterations == 0 and everything.converged and everything.reached.all()
    zero_rows = propagate(graph, np.zeros((4, 2)) + [0, 1], labelled=[True, False, False, False])
    assert zero_rows.reached.tolist() == [True, True, False, False]
    for wrong in (
        {"graph": csr_matrix([[0, 1.0], [0, 0]]), "known": np.zeros((2, 1))},
        {"graph": graph, "known": np.zeros((3, 1))},
        {"graph": graph, "known": np.full((4, 2), 0.7)},
        {"graph": graph, "known": known, "prior": [1.0]},
        {"graph": graph, "known": known, "method": "guess"},
    ):
        with pytest.raises(ParameterError, match="propagate"):
            propagate(**wrong)


def test_class_masses_come_out_in_the_wanted_proportions():
    graph, known = some_graph(4, density=0.7), known_labels(4, 9)
    plain, wanted = propagate(graph, known, tolerance=1e-12), np.array([0.6, 0.3, 0.1])
    found = propagate(graph, known, mass=wanted, tolerance=1e-12)
    free = plain.reached & ~known.any(axis=1)
    scores = wanted * plain.labels[free] / plain.labels[free].sum(axis=0)
    assert scores.sum(axis=0) == pytest.approx(wanted)
    assert found.labels[free] == pytest.approx(scores / scores.sum(axis=1, keepdims=True))
    assert np.array_equal(found.labels[~free], plain.labels[~free])


def test_two_moons_with_one_label_each():
    rng = np.random.default_rng(0)
    angle = rng.random(200) * np.pi
    upper = np.arange(200) < 100
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points = np.where(upper[:, None], points, [1, 0.4] - points) + rng.normal(0, 0.04, (200, 2))
    gaps = ((points[:, None] - points) ** 2).sum(axis=2)
    near = np.argsort(gaps, axis=1)[:, :8]
    weights = np.zeros((200, 200))
    np.put_along_axis(weights, near, np.exp(-np.take_along_axis(gaps, near, 1) / 0.02), 1)
    known = np.zeros((200, 2))
    known[0, 0] = known[199, 1] = 1
    found = propagate(np.maximum(weights, weights.T) - np.diag(np.ones(200)), known)
    assert (found.labels.argmax(axis=1) == ~upper).mean() > 0.97


# --- the learner ---------------------------------------------------------------------------------------------------

LENGTHS, K, N = (3, 0, 2, 1), 2, 5
VERTICES = np.array([0, 1, -1, 2, 3, 1])


def learner(strength=2.0, order=2, graph=None, lengths=LENGTHS, vertices=VERTICES, **options):
    rng = np.random.default_rng(3)
    pairs = LabelPairs.all(4, K)
    known = ChainModel(NodeFeatures(Sparse.of([[0, 3], [1], [2, 0]], 4), pairs), [2, 1], order=order)
    rows = [rng.choice(4, 2, replace=False) for _ in range(sum(lengths))]
    rest = ChainModel(NodeFeatures(Sparse.of(rows, 4), pairs), lengths, order=order)
    fixed = np.zeros((N, K))
    fixed[[0, 4, 4], [0, 1, 0]] = 1
    used = vertices[vertices >= 0]
    counts = np.bincount(used, minlength=N) + fixed.sum(axis=1)
    weights = some_graph(8, N, 0.9) if graph is None else graph
    penalty = GraphLaplacian(weights, counts, K, fixed=fixed)
    given = {"strength": strength, "l2": 0.1, "tolerance": 1e-9, "inner": 2000, **options}
    return Regularised(known, [[0, 1], [0]], rest, vertex_features(vertices, N, K), penalty, **given), penalty


def listed(nodes, shared, order):
    """Every labelling of one sentence, and its probability: nothing of ours."""
    n = len(nodes)
    labellings = list(itertools.product(range(K), repeat=n))
    scores = []
    for y in labellings:
        score = sum(nodes[t, y[t]] for t in range(n))
        if n:
            score += shared.start[y[0]] + shared.end[y[-1]]
        for t in range(1, n):
            score += (shared.transitions if order == 1 else shared.pairs)[y[t - 1], y[t]]
        if order == 2:
            score += sum(shared.transitions[y[t - 2], y[t - 1], y[t]] for t in range(2, n))
        scores.append(score)
    weights = np.exp(np.array(scores) - max(scores))
    return labellings, weights / weights.sum()


def objective(made, penalty, weights, offsets, order):
    """J by enumeration: log-likelihood of the labelled, KL of the rest, and the penalty."""
    model, rest = made.supervised.model, made.unlabelled
    own, shared = model.split(weights)
    value = -0.5 * made.l2 * float(weights @ weights)
    nodes = model.features.nodes(own)
    for start, y in ((0, (0, 1)), (2, (0,))):
        labellings, p = listed(nodes[start : start + len(y)], shared, order)
        value += np.log(p[labellings.index(y)])
    nodes, u, at = rest.features.nodes(own), offsets.reshape(N, K), 0
    expected = np.zeros((N, K))
    for n in rest.lengths:
        here = nodes[at : at + n]
        vertices = VERTICES[at : at + n]
        tilt = np.where(vertices[:, None] >= 0, u[np.maximum(vertices, 0)], 0.0)
        labellings, p = listed(here, shared, order)
        _, q = listed(here - tilt, shared, order)
        value -= made.share * float((q * np.log(q / p)).sum())
        for y, chance in zip(labellings, q, strict=True):
            for t in range(n):
                if vertices[t] >= 0:
                    expected[vertices[t], y[t]] += chance
        at += n
    average = (expected + penalty.fixed) / np.maximum(penalty.counts, 1)[:, None]
    dense = penalty.weights.toarray()
    h = sum(dense[a, b] * ((average[a] - average[b]) ** 2).sum() for a in range(N) for b in range(N)) / 2
    return value - made.strength * h


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_the_objective_is_that_of_enumeration_and_never_falls(order, share):
    made, penalty = learner(order=order, share=share)
    state, last = made.init(), -np.inf
    for _ in range(6):
        before = state.weights
        state, info = made.step(state)
        assert info.middle == pytest.approx(objective(made, penalty, before, state.offsets, order), abs=1e-8)
        assert last - 1e-9 <= info.middle <= info.objective + 1e-9
        last = info.objective
        assert info.residual <= 1e-8


def test_the_objective_never_falls_when_steps_are_cut_short():
    made, _ = learner(strength=20.0, inner=2, climbs=1)
    state, last = made.init(), -np.inf
    for _ in range(25):
        state, info = made.step(state)
        assert last - 1e-9 <= info.middle <= info.objective + 1e-9
        last = info.objective


@pytest.mark.parametrize("lengths", [(1,), (2,), (0,), ()])
def test_short_texts(lengths):
    vertices = VERTICES[: sum(lengths)]
    made, _ = learner(lengths=lengths, vertices=vertices)
    state, info = made.step(made.init())
    assert np.isfinite(state.weights).all() and np.isfinite(info.objective)
    assert len(made.expect(state).q) == len(lengths)


def test_without_edges_q_is_p_and_nothing_moves():
    """Learning from one's own beliefs changes nothing: p already maximises what it is taught."""
    made, _ = learner(graph=csr_matrix((N, N)), climbs=200)
    start = made.init()
    state, info = made.step(start)
    assert info.divergence == 0 and info.penalty == 0
    assert state.weights == pytest.approx(start.weights, abs=0.02)
    q = made.expect(start).q.members[0]
    assert q.marginals().values == pytest.approx(made.unlabelled.distributions(start.weights).marginals().values)


def test_labels_reach_all_where_the_penalty_is_strong():
    """λ → ∞ with labelled vertices: the harmonic extension, where chains allow it."""
    graph = some_graph(6, 6, 0.9)
    known = np.zeros((6, K))
    known[[4, 5]] = [[1, 0], [0.2, 0.8]]
    counts = np.ones(6)
    counts[4:] = 10
    words = Together(FactoredChains([np.zeros((2, K)), np.zeros((2, K))], [[0.3, 0.0], [0.0, 0.2]]))
    penalty = GraphLaplacian(graph, counts, K, fixed=known * counts[:, None])
    features = vertex_features([0, 1, 2, 3], 6, K)
    start = None
    for strength in (1.0, 10.0, 100.0):
        found = exponentiated(words, features, penalty, strength=strength, start=start, tolerance=1e-2, steps=3000)
        start = found.offsets
    average = penalty.averages(features.expectations(found.q.marginals()))
    assert average == pytest.approx(propagate(graph, known).labels, abs=0.01)


def test_bad_arguments_are_refused():
    for options, message in (({"share": 0.0}, "share"), ({"inner": 0}, "inner"), ({"strength": -1.0}, "strength")):
        with pytest.raises(ParameterError, match=message):
            learner(**options)


# --- the distance of images in the benchmark of letters ---------------------------------------------------------------


def test_the_earth_movers_distance_is_that_of_linear_programming():
    from benchmarks.quality.letters_graph import THRESHOLD, Letters, ground, measured
    from scipy.optimize import linprog

    rng = np.random.default_rng(0)
    pixels = rng.random((6, 128)) < np.array([[0.05], [0.08], [0.02], [0.1], [0.05], [0.0]])
    letters = Letters(pixels, np.zeros(6, np.int64), np.array([0, 6]), ("a" * 6,))
    first, second = np.array([0, 1, 2, 3, 4, 0, 5, -1]), np.array([1, 2, 3, 0, 4, 5, 5, 2])
    found = measured(letters, first, second)
    assert found[-1] == np.inf and found[4] == 0 and found[6] == 0
    for i in range(4):
        here, there = np.flatnonzero(pixels[first[i]]), np.flatnonzero(pixels[second[i]])
        n, m = len(here), len(there)
        outgoing, incoming = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
        moved = min(n, m)
        solved = linprog(
            ground()[np.ix_(here, there)].ravel(),
            A_ub=np.concatenate([outgoing, incoming]),
            b_ub=np.ones(n + m),
            A_eq=np.ones((1, n * m)),
            b_eq=[moved],
        )
        assert found[i] == pytest.approx(solved.fun + THRESHOLD * abs(n - m), abs=1e-4)
    assert found[5] == pytest.approx(THRESHOLD * pixels[0].sum())
