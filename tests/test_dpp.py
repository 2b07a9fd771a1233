"""Determinantal point processes over items and over paths: every law against enumeration, and what must not matter."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

from isogloss.errors import ParameterError
from isogloss.structures import Dpp, InfeasibleError, PathDpp, PathGraph, Paths, Structure
from isogloss.structures.dpp import Spectrum, enough_dimensions, log_elementary, projected
from isogloss.testing import all_paths, brute_force_dpp, brute_force_path_dpp, brute_force_paths, check_laws
from isogloss.testing.strategies import PathInputs, path_inputs

LAWS = settings(max_examples=60, deadline=None, derandomize=True)
CYCLE = PathGraph(4, [[0, 1], [1, 2], [2, 0], [2, 3], [0, 3], [3, 3], [1, 0]], 3)


def made(inputs: PathInputs, size=None):
    graph = PathGraph(inputs.n, inputs.edges, inputs.length, inputs.begins)
    return PathDpp(graph, inputs.scores, inputs.features, size=size)


def moments(dist):
    scale, dual = dist._moments()
    return np.exp(scale) * dual if scale > -np.inf else np.zeros_like(dual)


def frequencies(dist, truth, draws, seed=0):
    """L1 distance of frequencies from probabilities, and what hardly any draws of the right distribution exceed."""
    rng, place = np.random.default_rng(seed), {y: row for row, y in enumerate(truth.structures)}
    seen = np.zeros(len(place))
    for _ in range(draws):
        seen[place[dist.sample(rng)]] += 1
    p = truth.probabilities
    noise = [np.abs(rng.multinomial(draws, p) / draws - p).sum() for _ in range(200)]
    return np.abs(seen / draws - p).sum(), np.mean(noise) + 4 * np.std(noise)


# --- elementary symmetric polynomials ---------------------------------------------------------------------------------


def test_elementary_polynomials_and_chances_against_all_subsets():
    rng = np.random.default_rng(0)
    for n in range(6):
        values = np.exp(rng.normal(0, 3, n))
        table = np.exp(log_elementary(np.log(values), n))
        for m, k in itertools.product(range(n + 1), range(n + 1)):
            assert table[m, k] == pytest.approx(sum(map(math.prod, itertools.combinations(values[:m], k))))
        spectrum = Spectrum(0.0, values, np.eye(n))
        for k in range(n + 1):
            sets = list(itertools.combinations(range(n), k))
            weights = np.array([math.prod(values[list(one)]) for one in sets])
            there = np.array([[j in one for j in range(n)] for one in sets]).reshape(len(sets), n)
            assert spectrum.chances(k) == pytest.approx(weights @ there / weights.sum())
        assert spectrum.chances(None) == pytest.approx(values / (1 + values))


def test_eigenvectors_are_chosen_as_often_as_they_should_be():
    values = np.array([0.1, 0.5, 1.0, 4.0])
    spectrum, rng = Spectrum(0.3, values, np.eye(4)), np.random.default_rng(1)
    for size in (2, None):
        seen = np.zeros(4)
        for _ in range(4000):
            chosen = spectrum.choose(size, rng.random(4))
            assert size is None or len(chosen) == size
            seen[chosen] += 1
        assert seen / 4000 == pytest.approx(spectrum.chances(size), abs=0.04)


def test_polynomials_of_numbers_far_apart_do_not_overflow():
    logs = np.array([-3000.0, 0.0, 2000.0, 5000.0])
    assert log_elementary(logs, 3)[-1, 3] == pytest.approx(7000.0)
    assert log_elementary(logs, 4)[-1, 4] == pytest.approx(4000.0)


# --- items ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (5, 7)])
def test_items_keep_every_law(size, shape):
    rng = np.random.default_rng(sum(shape))
    for holes in (0.0, 0.3):
        scores, features = rng.normal(size=shape[0]), rng.normal(size=shape)
        scores[rng.random(shape[0]) < holes] = -np.inf
        truth, dist = brute_force_dpp(scores, features, size), Dpp(scores, features, size=size)
        if truth.log_partition == -np.inf:
            for method in (dist.log_partition, dist.marginals, dist.argmax, partial(dist.sample, rng)):
                with pytest.raises(InfeasibleError):
                    method()
            continue
        assert isinstance(dist, Structure)
        check_laws(dist, truth, rng=rng, samples=300, best=False)
        assert dist.expected_size() == pytest.approx(truth.probabilities @ [len(y) for y in truth.structures])
        assert [dist.inclusion(item) for item in range(shape[0])] == pytest.approx(truth.marginals.tolist())
        assert truth.best <= dist.log_bound() + 1e-9
        if size is not None:
            assert dist.score(dist.argmax()) >= truth.best - 2 * math.log(math.factorial(size)) - 1e-9


def test_kernels_and_features_are_the_same_process():
    rng = np.random.default_rng(3)
    scores, features = rng.normal(size=5), rng.normal(size=(5, 8))
    kernel = np.exp((scores[:, None] + scores) / 2) * (features @ features.T)
    for size in (None, 2):
        one, other = Dpp(scores, features, size=size), Dpp.of_kernel(kernel, size=size)
        assert other.log_partition() == pytest.approx(one.log_partition())
        assert other.marginals() == pytest.approx(one.marginals())
    assert Dpp.of_kernel(kernel).log_partition() == pytest.approx(np.linalg.slogdet(kernel + np.eye(5))[1])
    for wrong in ([[1.0, 2.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[np.nan]], [1.0]):
        with pytest.raises(ParameterError, match="of_kernel"):
            Dpp.of_kernel(wrong)


def test_items_that_are_alike_are_never_drawn_together():
    dist = Dpp(np.zeros(3), [[1.0, 1.0], [2.0, 2.0], [1.0, 0.0]], size=2)
    assert dist.log_prob([0, 1]) == -np.inf and dist.score([0, 0]) == -np.inf
    rng = np.random.default_rng(0)
    assert {dist.sample(rng) for _ in range(100)} == {(0, 2), (1, 2)}
    with pytest.raises(InfeasibleError, match=r"size 3 is more than the 2 dimensions .* Ask for 2 at most"):
        Dpp(np.zeros(3), dist.features, size=3).sample(rng)


def test_wrong_items_are_refused_in_words():
    dist = Dpp(np.zeros(2), np.eye(2), size=1)
    for wrong, match in (([2], "from 0 to 1"), ([0.5], "numbers from"), ([[0]], "numbers from")):
        with pytest.raises(ParameterError, match=match):
            dist.log_prob(wrong)
    with pytest.raises(ParameterError, match="size should be"):
        Dpp(np.zeros(2), np.eye(2), size=-1)
    with pytest.raises(ParameterError, match="features should be"):
        Dpp(np.zeros(2), np.eye(3))
    with pytest.raises(ParameterError, match="positive number of samples"):
        dist.best_of(0, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="0 or 1"):
        dist.from_parts([0.5, 0.0])


# --- paths ------------------------------------------------------------------------------------------------------------


@given(path_inputs(max_n=5, most_paths=60))
@LAWS
def test_paths_agree_with_enumeration(inputs: PathInputs):
    truth = brute_force_paths(inputs.n, inputs.edges, inputs.length, inputs.scores, inputs.begins)
    dist = Paths(PathGraph(inputs.n, inputs.edges, inputs.length, inputs.begins), inputs.scores)
    assert isinstance(dist, Structure)
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.argmax, lambda: dist.sample(np.random.default_rng(0))):
            with pytest.raises(InfeasibleError):
                method()
        return
    check_laws(dist, truth, rng=np.random.default_rng(0), samples=50)


@given(path_inputs())
@LAWS
def test_sets_of_paths_agree_with_enumeration(inputs: PathInputs):
    n, edges, length, begins, scores, features = inputs
    for size in (None, 1, 2):
        truth, dual = brute_force_path_dpp(n, edges, length, scores, features, size, begins)
        dist = made(inputs, size)
        found = moments(dist)
        assert found == pytest.approx(dual, abs=1e-9 * max(1.0, np.abs(dual).max()))
        assert np.trace(found) == pytest.approx(np.trace(dual)) and np.linalg.eigvalsh(found).min() > -1e-9
        if truth.log_partition == -np.inf or not brute_force_paths(*inputs[:3], scores, begins).best > -np.inf:
            with pytest.raises(InfeasibleError):
                dist.log_partition()
            continue
        assert isinstance(dist, Structure)
        check_laws(dist, truth, rng=np.random.default_rng(0), samples=30, best=False)
        assert truth.best <= dist.log_bound() + 1e-9


@pytest.mark.parametrize("with_end", [False, True])
def test_the_dual_kernel_has_the_spectrum_of_all_threads(with_end):
    rng = np.random.default_rng(5)
    graph = CYCLE.with_end() if with_end else CYCLE
    scores, features = rng.normal(size=graph.n + len(graph.edges)), rng.normal(size=(graph.n, 3))
    if with_end:
        scores[[graph.n - 1, *range(graph.n + len(CYCLE.edges), len(scores))]] = 0.0
        features[-1] = 0.0
    truth = brute_force_paths(graph.n, graph.edges.tolist(), 3, scores, graph.begins)
    columns = [np.exp(s / 2) * features[list(y)].sum(axis=0) for y, s in zip(truth.structures, truth.log_scores)]
    kernel = np.array(columns) @ np.array(columns).T
    dist = PathDpp(graph, scores, features, size=2)
    assert np.exp(dist.spectrum.logs) == pytest.approx(np.linalg.eigvalsh(kernel)[-3:])
    second = sum(np.linalg.det(kernel[np.ix_(y, y)]) for y in itertools.combinations(range(len(kernel)), 2))
    assert np.exp(dist.log_partition()) == pytest.approx(second)
    if with_end:  # paths of one to three nodes, each once
        shorter = {y[: y.index(4)] if 4 in y else y for y in truth.structures}
        assert len(shorter) == len(truth.structures)
        assert shorter == {y for length in (1, 2, 3) for y in all_paths(4, CYCLE.edges.tolist(), length)}


def test_messages_of_matrices_are_what_the_paper_sends():
    """The literal second-order recursion (Z, F and S at each node), which we replace by vectors."""
    rng = np.random.default_rng(6)
    graph, scores, features = CYCLE, rng.normal(size=11), rng.normal(size=(4, 3))
    a, steps = np.exp(scores[:4]), np.zeros((4, 4))
    steps[graph.edges[:, 0], graph.edges[:, 1]] = np.exp(scores[4:])
    z, f, s = a, a[:, None] * features, a[:, None, None] * features[:, :, None] * features[:, None, :]
    for _ in range(graph.length - 1):
        zp, fp, sp = steps.T @ z, steps.T @ f, np.einsum("uv,uab->vab", steps, s)
        outer = fp[:, :, None] * features[:, None, :]
        own = zp[:, None, None] * features[:, :, None] * features[:, None, :]
        z, f = a * zp, a[:, None] * (fp + zp[:, None] * features)
        s = a[:, None, None] * (sp + outer + outer.transpose(0, 2, 1) + own)
    assert moments(PathDpp(graph, scores, features)) == pytest.approx(s.sum(axis=0))


@pytest.mark.parametrize("size", [None, 1, 2, 3])
def test_frequencies_of_drawn_sets_are_their_probabilities(size):
    rng = np.random.default_rng(7)
    edges = [[0, 1], [1, 2], [2, 3], [0, 2], [1, 3], [3, 0]]
    scores, features = rng.normal(0, 0.5, 10), rng.normal(0, 0.6, (4, 3))
    truth, _ = brute_force_path_dpp(4, edges, 2, scores, features, size)
    distance, most = frequencies(PathDpp(PathGraph(4, edges, 2), scores, features, size=size), truth, 4000)
    assert distance < most


def test_inclusion_of_paths_and_of_one_path():
    rng = np.random.default_rng(8)
    scores, features = rng.normal(size=11), rng.normal(size=(4, 4))
    for size in (None, 1, 2, 3):
        dist = PathDpp(CYCLE, scores, features, size=size)
        truth, _ = brute_force_path_dpp(4, CYCLE.edges.tolist(), 3, scores, features, size)
        for path in all_paths(4, CYCLE.edges.tolist(), 3):
            there = np.array([path in y for y in truth.structures])
            assert dist.inclusion(path) == pytest.approx(truth.probabilities[there].sum(), abs=1e-12)
    one = PathDpp(CYCLE, scores, features, size=1)  # k = 1: P(y) ∝ q²(y) ‖φ(y)‖²
    paths = brute_force_paths(4, CYCLE.edges.tolist(), 3, scores)
    masses = np.exp(paths.log_scores) * [(features[list(y)].sum(axis=0) ** 2).sum() for y in paths.structures]
    found = [np.exp(one.log_prob([y])) for y in paths.structures]
    assert found == pytest.approx((masses / masses.sum()).tolist())


def test_paths_of_one_node_are_items():
    rng = np.random.default_rng(9)
    scores, features = rng.normal(size=5), rng.normal(size=(5, 4))
    for size in (None, 1, 3):
        items, paths = Dpp(scores, features, size=size), PathDpp(PathGraph(5, [], 1), scores, features, size=size)
        assert paths.log_partition() == pytest.approx(items.log_partition())
        assert paths.marginals() == pytest.approx(items.marginals())
        assert paths.log_prob([(0,), (2,), (4,)]) == pytest.approx(items.log_prob([0, 2, 4]))


def test_one_path_along_a_direction_against_enumeration():
    rng = np.random.default_rng(10)
    scores, values = rng.normal(size=11), rng.normal(size=4)
    dist = PathDpp(CYCLE, scores, values[:, None])
    truth = brute_force_paths(4, CYCLE.edges.tolist(), 3, scores)
    masses = np.exp(truth.log_scores) * [values[list(y)].sum() ** 2 for y in truth.structures]
    seen = dict.fromkeys(truth.structures, 0)
    for _ in range(8000):
        seen[dist._draw(values, rng)] += 1
    assert np.array(list(seen.values())) / 8000 == pytest.approx(masses / masses.sum(), abs=0.02)


# --- what must not matter, and what must ------------------------------------------------------------------------------


def probabilities(graph, scores, features, size=2):
    dist = PathDpp(graph, scores, features, size=size)
    sets = itertools.combinations(all_paths(graph.n, graph.edges.tolist(), graph.length), size)
    return np.exp([dist.log_prob(y) for y in sets])


def test_scaling_turning_and_renaming_change_nothing():
    rng = np.random.default_rng(11)
    scores, features = rng.normal(size=11), rng.normal(size=(4, 3))
    plain = probabilities(CYCLE, scores, features)
    assert plain.sum() == pytest.approx(1.0)
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    shifted = scores.copy()
    shifted[:4] += 3.0
    assert probabilities(CYCLE, shifted, features) == pytest.approx(plain)
    assert probabilities(CYCLE, scores, 7.5 * features) == pytest.approx(plain)
    assert probabilities(CYCLE, scores, features @ turned) == pytest.approx(plain)
    name = np.array([2, 0, 3, 1])  # node v is called name[v]
    renamed = PathDpp(
        PathGraph(4, name[CYCLE.edges], 3), np.concatenate([scores[:4][np.argsort(name)], scores[4:]]),
        features[np.argsort(name)], size=2,
    )  # fmt: skip
    sets = itertools.combinations(all_paths(4, CYCLE.edges.tolist(), 3), 2)
    again = np.exp([renamed.log_prob([tuple(name[list(path)].tolist()) for path in y]) for y in sets])
    assert again == pytest.approx(plain)
    any_size, scaled = (PathDpp(CYCLE, scores, scale * features) for scale in (1.0, 2.0))
    assert scaled.expected_size() > any_size.expected_size() + 0.1  # without a size, scale says how many


def test_orthonormal_projection_is_exact_and_more_dimensions_are_nearer():
    rng = np.random.default_rng(12)
    scores, features = rng.normal(0, 0.3, 11), rng.normal(size=(4, 24))
    plain = probabilities(CYCLE, scores, features)
    turn = np.linalg.qr(rng.normal(size=(24, 24)))[0]
    assert probabilities(CYCLE, scores, features @ turn) == pytest.approx(plain)
    far = [
        np.mean([np.abs(probabilities(CYCLE, scores, projected(features, d, rng)) - plain).sum() for _ in range(30)])
        for d in (2, 6, 20)
    ]
    assert far[0] > 1.3 * far[1] > 1.6 * far[2]
    assert np.array_equal(projected(features, 24, rng), features)  # nothing to save


def test_volumes_hardly_change_in_projection():
    """(1 − ε)^k ≤ Vol(GY) / Vol(Y) ≤ (1 + ε)^k, for all pairs and triples at once."""
    rng = np.random.default_rng(13)
    vectors = rng.normal(size=(12, 300))
    near = projected(vectors, 200, rng)
    for k in (2, 3):
        ratios = [
            np.sqrt(np.linalg.det(near[y] @ near[y].T) / np.linalg.det(vectors[y] @ vectors[y].T))
            for y in map(list, itertools.combinations(range(12), k))
        ]
        assert 0.75**k < min(ratios) and max(ratios) < 1.25**k


def test_constant_feature_comes_behind_the_projection():
    made_of = projected(np.eye(8), 3, np.random.default_rng(0), constant=0.25)
    assert made_of.shape == (8, 4) and (made_of[:, 3] == 0.25).all()
    for wrong in ({"dimensions": 0}, {"dimensions": 3, "constant": -1.0}, {"dimensions": True}):
        with pytest.raises(ParameterError, match="projected"):
            projected(np.eye(8), rng=np.random.default_rng(0), **wrong)
    assert enough_dimensions(40.0, 200_000, 0.4) == 1_000_000
    with pytest.raises(ParameterError, match="enough_dimensions"):
        enough_dimensions(40.0, 2, 0.5)


def test_drawn_sets_are_distinct_paths_and_collinear_ones_never_meet():
    rng = np.random.default_rng(14)
    features = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    graph = PathGraph(4, [[0, 1], [1, 0], [2, 0], [3, 1], [3, 3]], 2)
    dist = PathDpp(graph, np.zeros(9), features, size=2)
    for _ in range(200):
        one, other = dist.sample(rng)
        assert graph.edge_numbers(one) is not None and graph.edge_numbers(other) is not None
        assert (2, 0) in (one, other)  # the others all lie along the first axis
        assert (3, 3) not in (one, other)  # a thread without features has volume 0
    assert dist.inclusion((3, 3)) == 0.0
    assert dist.log_prob([(0, 1), (1, 0)]) == -np.inf


@pytest.mark.parametrize("beta", [1.0, 1e3])
def test_large_scores_do_not_overflow(beta):
    rng = np.random.default_rng(15)
    graph = PathGraph(6, [[u, v] for u in range(6) for v in range(6)], 4)
    features = np.eye(6)
    level = PathDpp(graph, np.full(42, 2.0 * beta), features, size=3)  # all alike: what it is without scores
    flat = PathDpp(graph, np.zeros(42), features, size=3)
    assert level.log_partition() == pytest.approx(flat.log_partition() + 3 * 7 * 2.0 * beta)
    assert level.marginals() == pytest.approx(flat.marginals())
    assert len(level.sample(rng)) == 3
    scores = 2.0 * beta * rng.normal(size=42)
    steep = PathDpp(graph, scores, features, size=1)
    assert np.isfinite(steep.log_partition()) and np.isfinite(steep.marginals()).all()
    assert steep.marginals()[:6].sum() == pytest.approx(4.0)
    if beta > 1:
        assert steep.sample(rng) == {steep.paths.argmax()} == steep.argmax()
        with pytest.raises(InfeasibleError, match="scores less far apart"):
            PathDpp(graph, scores, features, size=6).sample(rng)


def test_low_nodes_on_the_only_paths_are_not_lost():
    """The best nodes lead nowhere: messages scaled by one number for all nodes would underflow here."""
    graph = PathGraph(5, [[0, 1], [1, 2], [0, 2], [4, 3]], 3)
    scores = np.array([-900.0, -900.0, 0.0, 900.0, 900.0, 0.0, 0.0, 0.0, 0.0])
    dist = PathDpp(graph, scores, np.eye(5), size=1)
    assert dist.sample(np.random.default_rng(0)) == {(0, 1, 2)}
    assert dist.log_partition() == pytest.approx(-1800.0 + np.log(3.0))


def test_best_of_draws_and_greedy_are_good_sets():
    rng = np.random.default_rng(16)
    scores, features = rng.normal(size=11), rng.normal(size=(4, 4))
    truth, _ = brute_force_path_dpp(4, CYCLE.edges.tolist(), 3, scores, features, 2)
    dist = PathDpp(CYCLE, scores, features, size=2)
    single = np.mean([dist.score(dist.sample(rng)) for _ in range(50)])
    assert single < dist.score(dist.best_of(20, rng)) <= truth.best + 1e-9
    assert truth.best - 2 * math.log(2) <= dist.score(dist.argmax()) <= truth.best + 1e-9
    assert dist.argmax() == dist.argmax()
    anyhow = PathDpp(CYCLE, scores, features)
    assert anyhow.score(anyhow.argmax()) >= anyhow.score(anyhow.sample(rng))


def test_wrong_graphs_and_paths_are_refused_in_words():
    for arguments, match in (
        ((2, [[0, 2]], 2), "not from 0 to 1"), ((2, [[0, 1], [0, 1]], 2), "given twice"), ((2, [[0, 1]], 0), "length"),
        ((2, [[0.5, 1]], 2), "pairs of node numbers"), ((-1, [], 2), "n should be"), ((2, [], 1, [True]), "begins"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=match):
            PathGraph(*arguments)
    graph = PathGraph(3, [[0, 1], [1, 2]], 4)
    with pytest.raises(InfeasibleError, match="no path has 4 nodes; the longest has 3"):
        PathDpp(graph, np.zeros(5), np.eye(3), size=1).sample(np.random.default_rng(0))
    with pytest.raises(InfeasibleError, match="no node to begin at"):
        Paths(PathGraph(1, [], 1, np.array([False])), np.zeros(1)).argmax()
    with pytest.raises(InfeasibleError, match="forbidden"):
        Paths(PathGraph(2, [[0, 1], [1, 0]], 5), [0.0, -np.inf, 0.0, 0.0]).log_partition()
    assert PathGraph(2, [[0, 1], [1, 0]], 5).longest() is None
    dist = Paths(PathGraph(3, [[0, 1], [1, 2]], 2), np.zeros(5))
    assert dist.score((0, 2)) == -np.inf
    for wrong, match in (((0, 1, 2), "2 nodes, not 3"), ((0, 3), "from 0 to 2"), ((0, 2), "not a path")):
        with pytest.raises(ParameterError, match=match):
            dist.parts(wrong)
