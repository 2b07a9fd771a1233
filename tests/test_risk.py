"""Risk and its gradient against enumerated covariances and finite differences; MBR against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.features import Axis, Templates, arcs
from isogloss.features.sparse import Sparse
from isogloss.learners import Risk, mbr
from isogloss.learners.loglinear import AdaGrad, Lbfgs, Likelihood, LinearModel, Sgd
from isogloss.learners.margin import Cost, hamming
from isogloss.learners.risk import anneal, hessian_vector, tempered
from isogloss.learners.runner import run
from isogloss.structures import (
    AlignmentChain,
    Blocks,
    Chain,
    FactoredChain,
    FactorGraph,
    Flat,
    InfeasibleError,
    Itg,
    Matching,
    ProjectiveTree,
    SpanningTree,
)
from isogloss.testing import check_gradient
from isogloss.testing.enumerate import (
    BruteForce,
    brute_force_alignments,
    brute_force_chain,
    brute_force_factored,
    brute_force_itg,
    brute_force_matching,
    brute_force_trees,
)


def holed(rng, shape, holes=0.15):
    return np.where(rng.random(shape) < holes, -np.inf, rng.normal(0, 1.5, shape))


def second_order_case(rng, n):
    scores, siblings, above = holed(rng, (n + 1, n + 1)), rng.normal(size=(n + 1,) * 3), rng.normal(size=(n + 1,) * 3)
    more = {"siblings": siblings, "grandparents": above}
    return ProjectiveTree(scores, **more), brute_force_trees(scores, projective=True, **more)


def factored_case(rng, n, order=1, k=3):
    nodes, table = holed(rng, (n, k)), rng.normal(size=(k,) * (order + 1))
    start, end = rng.normal(size=k), rng.normal(size=k)
    pairs = rng.normal(size=(k, k)) if order == 2 else None
    dist = FactoredChain(nodes, table, start, end, pairs=pairs)
    return dist, brute_force_factored(nodes, table, start, end, pairs)


def alignment_case(rng, n):
    m = (2, 3, 0, 1)[n % 4]
    emission, null, initial = holed(rng, (n, m)), rng.normal(size=n), rng.normal(size=m)
    jump, final = rng.normal(size=(m, m)), rng.normal(size=m + 1)
    given_all = (emission, null, initial, jump, 0.3, final)
    return AlignmentChain(*given_all), brute_force_alignments(*given_all)


def link_case(structure, brute, rng, n, **more):
    shape = (n, (2, 0, 3, 1)[n % 4])
    scores, left, right = holed(rng, shape), rng.normal(size=shape[0]), rng.normal(size=shape[1])
    return structure(scores, left, right, **more), brute(scores, left, right)


def flat_itg_case(rng, n):
    m = (2, 0, 3, 1)[n % 4]
    scores, left, right = holed(rng, (n, m)), rng.normal(size=n), rng.normal(size=m)
    blocks = Blocks(holed(rng, (n, m, 1)), holed(rng, (n, m, 1)))
    return Flat(Itg(scores, left, right, blocks=blocks)), brute_force_itg(scores, left, right, blocks, flat=True)


def trees_case(projective, single_root, rng, n):
    scores = holed(rng, (n + 1, n + 1))
    structure = ProjectiveTree if projective else SpanningTree
    return structure(scores, single_root=single_root), brute_force_trees(
        scores, projective=projective, single_root=single_root
    )


def chain_case(order, rng, n, k=3):
    scores = holed(rng, (n, *[k] * (order + 1)), 0.05)
    return Chain(scores), brute_force_chain(scores)


CASES = {
    "projective": lambda rng, n: trees_case(True, False, rng, n),
    "projective, one root": lambda rng, n: trees_case(True, True, rng, n),
    "spanning": lambda rng, n: trees_case(False, False, rng, n),
    "spanning, one root": lambda rng, n: trees_case(False, True, rng, n),
    "second order": second_order_case,
    "chain": lambda rng, n: chain_case(1, rng, n),
    "chain, order 2": lambda rng, n: chain_case(2, rng, n),
    "factored chain": factored_case,
    "factored chain, order 2": lambda rng, n: factored_case(rng, n, 2),
    "alignment chain": alignment_case,
    "itg": lambda rng, n: link_case(Itg, brute_force_itg, rng, n),
    "itg with blocks": flat_itg_case,
    "matching": lambda rng, n: link_case(Matching, brute_force_matching, rng, n),
}


def feasible(kind, rng, n):
    """A case of n words that allows something."""
    while True:
        dist, truth = CASES[kind](rng, n)
        if truth.log_partition > -np.inf:
            return dist, truth


def covariance(truth: BruteForce, vector):
    p = truth.probabilities
    flat = truth.parts.reshape(len(p), -1)
    sums = flat @ np.ravel(vector)
    return ((p * (sums - p @ sums)) @ flat).reshape(truth.parts.shape[1:])


# --- Hessians


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_hessian_is_the_enumerated_covariance(kind, n):
    rng = np.random.default_rng([n, len(kind)])
    for _ in range(4):
        dist, truth = feasible(kind, rng, n)
        vector = rng.normal(size=dist.scores.shape) * 10 ** rng.uniform(-3, 3)
        moved = hessian_vector(dist, vector)
        assert moved.shape == dist.scores.shape and not moved[dist.scores == -np.inf].any()
        scale = np.abs(vector).max(initial=0) * max(1, truth.marginals.sum())
        np.testing.assert_allclose(moved, covariance(truth, vector), rtol=0, atol=3e-12 * scale)
        assert not hessian_vector(dist, np.zeros(dist.scores.shape)).any()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2]), st.integers(0, 4), st.integers(1, 4), st.sampled_from([0.1, 3, 300]), st.integers(0))
def test_chains_of_any_sharpness(order, n, k, spread, seed):
    rng, shape = np.random.default_rng(seed), (n, *[k] * (order + 1))
    scores = np.where(rng.random(shape) < 0.2, -np.inf, rng.normal(0, spread, shape))
    truth = brute_force_chain(scores)
    assume(truth.log_partition > -np.inf)
    vector = rng.normal(size=scores.shape)
    np.testing.assert_allclose(hessian_vector(Chain(scores), vector), covariance(truth, vector), atol=1e-10)


def test_long_chains_agree_with_differences():
    rng = np.random.default_rng(5)
    for scores in (rng.normal(0, 2, (300, 5, 5)), rng.normal(0, 2, (80, 4, 4, 4))):
        dist, vector, step = Chain(scores), rng.normal(size=scores.shape), 1e-5
        ahead, behind = (dist.with_scores(scores + sign * step * vector).marginals() for sign in (1, -1))
        moved = hessian_vector(dist, vector)
        np.testing.assert_allclose(moved, (ahead - behind) / (2 * step), atol=1e-8)
        np.testing.assert_allclose(moved.reshape(len(scores), -1).sum(axis=1), 0, atol=1e-12)  # one step a position


BATCHES = {
    "projective": ProjectiveTree.batch,
    "spanning": SpanningTree.batch,
    "chain": Chain.batch,
    "chain, order 2": Chain.batch,
    "itg": lambda scores: Itg.batch(scores, 0.3, -0.2),
    "matching": lambda scores: Matching.batch(scores, 0.3, -0.2),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_batches_equal_one_by_one_on_any_number_of_threads(kind):
    rng = np.random.default_rng(3)
    scores = [feasible(kind, rng, n)[0].scores for n in (2, 0, 3, 1)]
    many = BATCHES[kind](scores)
    vectors = [rng.normal(size=array.shape) for array in scores]
    vectors[2][...] = 0.0
    for threads in (1, 2):
        with using_threads(threads):
            for s, moved in enumerate(hessian_vector(many, vectors)):
                np.testing.assert_array_equal(moved, hessian_vector(many[s], vectors[s]))
    with pytest.raises(ParameterError, match="shapes"):
        hessian_vector(many, vectors[:3])


def test_batches_of_other_kinds():
    rng = np.random.default_rng(4)
    table, nodes = rng.normal(size=(3, 3)), [rng.normal(size=(n, 3)) for n in (2, 0, 4)]
    siblings = [rng.normal(size=(n + 1,) * 3) for n in (2, 0, 3)]
    links = [rng.normal(size=(n + 1, n + 1)) for n in (2, 0, 3)]
    for many in (FactoredChain.batch(nodes, table), ProjectiveTree.batch(links, siblings=siblings)):
        vectors = [rng.normal(size=array.shape) for array in many.scores]
        for s, moved in enumerate(hessian_vector(many, vectors)):
            np.testing.assert_allclose(moved, hessian_vector(many[s], vectors[s]), atol=1e-12)


def test_beliefs_with_cycles_give_the_derivative_of_their_own_marginals():
    rng = np.random.default_rng(6)
    dist = Matching(rng.normal(size=(4, 3)), inference="bp")
    vector = rng.normal(size=(4, 3))
    step = 1e-3
    ahead, behind = (dist.with_scores(dist.scores + sign * step * vector).marginals() for sign in (1, -1))
    assert not dist.exact
    np.testing.assert_allclose(hessian_vector(dist, vector), (ahead - behind) / (2 * step), atol=1e-5)


def test_factor_graphs_without_cycles_are_exact():
    rng = np.random.default_rng(7)
    for n in (1, 3):
        scores, vector = rng.normal(size=(2, n + 1, n + 1))
        graph = FactorGraph()
        links = graph.links(n)
        handle = graph.unary(links, scores)
        graph.tree(links, projective=False)
        along = np.zeros(len(graph.scores))
        handle.of(along)[...] = vector
        expected = SpanningTree(scores).hessian_vector(vector)
        np.testing.assert_allclose(handle.of(hessian_vector(graph, along)), expected, atol=1e-10)
        assert graph.exact


def test_what_cannot_be_is_refused():
    with pytest.raises(ParameterError, match="Flat"):
        hessian_vector(Itg(np.zeros((2, 2)), blocks=Blocks(np.zeros((2, 2, 1)), np.zeros((2, 2, 1)))), np.ones((2, 2)))
    with pytest.raises(ParameterError, match="should be"):
        hessian_vector(Chain(np.zeros((2, 2, 2))), np.ones(3))
    with pytest.raises(ParameterError, match="finite"):
        hessian_vector(Chain(np.zeros((1, 1, 1))), np.full((1, 1, 1), np.nan))
    with pytest.raises(InfeasibleError):
        hessian_vector(Chain(np.full((1, 2, 2), -np.inf)), np.ones((1, 2, 2)))
    with pytest.raises(ParameterError, match="temperature"):
        tempered(Chain(np.zeros((1, 1, 1))), 0.0)
    with pytest.raises(ParameterError, match=r"dist\.chain"):
        tempered(alignment_case(np.random.default_rng(0), 2)[0], 2.0)


# --- objectives


def model_of(kind, rng, sizes=(3, 0, 2, 1), n_weights=6, batch=False):
    """A model over random structures with random features, and costs with a constant."""
    pairs = [feasible(kind, rng, n) for n in sizes]
    dists, truths = [dist for dist, _ in pairs], [truth for _, truth in pairs]
    n_parts = sum(dist.scores.size for dist in dists)
    rows = [rng.choice(n_weights, rng.integers(0, 3), replace=False).tolist() for _ in range(n_parts)]
    features = Sparse.of(rows, n_weights, dense=rng.normal(0, 0.5, (n_parts, 1)))
    many = BATCHES[kind]([dist.scores for dist in dists]) if batch else dists
    costs = [Cost(rng.normal(size=dist.scores.shape), float(rng.normal())) for dist in dists]
    return LinearModel(many, features), costs, dists, truths


def enumerated_risk(model, costs, truths, weights, temperature):
    """Σ E[ℓ] and its gradient, by listing; base scores other than links stay in the log scores."""
    value, gradient, at = 0.0, np.zeros(model.n_weights), 0
    for cost, truth in zip(costs, truths, strict=True):
        parts = truth.parts.reshape(len(truth.structures), -1)
        rows = model.features.rows(at, at + parts.shape[1])
        at += parts.shape[1]
        log_scores = (truth.log_scores + parts @ rows.scores(weights)) / temperature
        p = BruteForce(truth.structures, truth.parts, log_scores).probabilities
        losses = cost.constant + parts @ np.ravel(cost.parts)
        value += p @ losses
        gradient += rows.totals((p * (losses - p @ losses)) @ parts) / temperature
    return value, gradient


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_risk_and_gradient_equal_enumeration(kind, temperature):
    rng = np.random.default_rng(len(kind))
    model, costs, _, truths = model_of(kind, rng)
    weights = rng.normal(0, 0.7, model.n_weights)
    risk = Risk(model, costs, temperature=temperature)
    if kind == "alignment chain" and temperature != 1:
        with pytest.raises(ParameterError):
            risk.risk(weights)
        return
    value, gradient = enumerated_risk(model, costs, truths, weights, temperature)
    out = np.zeros(model.n_weights)
    assert risk.add_gradient(weights, out) == pytest.approx(-value, abs=1e-9)
    assert risk.risk(weights) == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(out, -gradient, atol=1e-9)


ONE_BY_ONE = ["projective", "spanning, one root", "chain", "itg", "second order"]


@pytest.mark.parametrize(
    ("kind", "batch"), [*((kind, False) for kind in ONE_BY_ONE), *((kind, True) for kind in BATCHES)]
)
def test_gradients_by_differences_mixed_and_shared(kind, batch):
    rng = np.random.default_rng(8)
    model, costs, dists, _ = model_of(kind, rng, batch=batch)
    gold = [dist.sample(rng) for dist in dists]
    for options in ({}, {"mix": 0.3, "gold": gold}, {"mix": 1.0, "gold": gold}, {"temperature": 2.0, "share": 0.5}):
        risk = Risk(model, costs, **options)
        check_gradient(risk, rng.normal(0, 0.5, model.n_weights))
        check_gradient(risk, rng.normal(0, 0.5, model.n_weights), items=[2, 1])
    whole, some = np.zeros(model.n_weights), np.zeros(model.n_weights)
    weights = rng.normal(size=model.n_weights)
    value = risk.add_gradient(weights, whole)
    pieces = [np.array([2, 0]), np.array([3]), np.array([1]), np.zeros(0, np.int64)]
    assert sum(risk.add_gradient(weights, some, items) for items in pieces) == pytest.approx(value)
    np.testing.assert_allclose(some, whole, atol=1e-11)
    assert risk.risk(weights, pieces[0]) + risk.risk(weights, np.array([1, 3])) == pytest.approx(risk.risk(weights))


def test_mix_is_a_mixture_of_risk_and_likelihood():
    rng = np.random.default_rng(9)
    model, costs, dists, _ = model_of("spanning", rng)
    gold, weights = [dist.sample(rng) for dist in dists], rng.normal(size=model.n_weights)
    one, other, both = (np.zeros(model.n_weights) for _ in range(3))
    likely = Likelihood(model, gold=gold).add_gradient(weights, one)
    risky = Risk(model, costs, temperature=0.5).add_gradient(weights, other)
    value = Risk(model, costs, temperature=0.5, gold=gold, mix=0.25).add_gradient(weights, both)
    assert value == pytest.approx(0.25 * likely + 0.75 * risky)
    np.testing.assert_allclose(both, 0.25 * one + 0.75 * other, atol=1e-12)


def test_options_are_checked():
    model, costs, *_ = model_of("chain", np.random.default_rng(0))
    for wrong in ({"temperature": 0}, {"mix": 2}, {"mix": 0.5}, {"share": -1}):
        with pytest.raises(ParameterError):
            Risk(model, costs, **wrong)
    for bad in (costs[:-1], [*costs[:-1], Cost(np.zeros(3))], [Cost(costs[0].parts * np.nan), *costs[1:]]):
        with pytest.raises(ParameterError, match="cost"):
            Risk(model, bad)
    assert Risk(model, costs).at(0.5).temperature == 0.5


# --- training


@pytest.fixture(scope="module")
def treebank():
    """Trees drawn from a model with more features than the one that learns them: it cannot fit them all."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 8, 25)  # with the root: lengths 0 to 6
    axis = Axis(np.concatenate([[0], np.cumsum(sizes)]), tag=rng.integers(0, 3, sizes.sum()))
    templates, parts = Templates(["head.tag & child.tag", "direction & distance", "child.tag & direction"]), arcs(axis)
    features = templates.matrix(parts, templates.index(parts))
    scores = [rng.normal(0, 2, (n, n)) for n in sizes]
    return features, sizes, scores, rng


@pytest.mark.parametrize("structure", [ProjectiveTree, SpanningTree])
def test_training_lowers_the_risk_below_that_of_the_likelihood(treebank, structure):
    features, sizes, noise, _ = treebank
    trees = structure.batch([np.zeros((n, n)) for n in sizes])
    model = LinearModel(trees, features)
    truth = np.random.default_rng(2).normal(0, 1.5, model.n_weights)
    drawn = model.distributions(truth)
    gold = list(drawn.with_scores([own + more for own, more in zip(drawn.scores, noise, strict=True)]).argmax())
    costs = [hamming(one.parts(y), missed=0) for one, y in zip(trees, gold, strict=True)]
    likely = Lbfgs(Likelihood(model, gold=gold), l2=0.1)
    start = run(likely, likely.init(), iterations=60, tolerance=1e-8).state.weights
    risk = Risk(model, costs)
    begin = risk.risk(start)
    learner = Lbfgs(risk, l2=0.01)
    result = run(learner, learner.init(start), iterations=40)
    assert (np.diff(result.trace) >= -1e-9).all()
    assert risk.risk(result.state.weights) < begin - 0.5
    stages = anneal(risk, lambda at: Lbfgs(at, l2=0.01), start, (2.0, 1.0, 0.5), iterations=20)
    assert len(stages) == 3 and risk.at(0.5).risk(stages[-1].state.weights) < risk.at(0.5).risk(start)
    for make in (lambda r: AdaGrad(r, rate=0.05, l2=0.01, batch=4), lambda r: Sgd(r, rate=0.05, l2=0.01, batch=4)):
        made = make(risk)
        assert risk.risk(run(made, made.init(start), iterations=8).state.weights) < begin


def test_risk_of_a_coin_goes_to_the_majority():
    coin = LinearModel([Chain(np.zeros((1, 2, 2)))] * 3, Sparse.of([[0], [1], [], []] * 3, 2))
    costs = [hamming(coin.structures[0].parts([side]), missed=0) for side in (0, 0, 1)]
    learner = Lbfgs(Risk(coin, costs), l2=1e-3)
    weights = run(learner, learner.init(), iterations=50).state.weights
    assert coin.distribution(weights, 0).marginals()[0, 0, 0] > 0.98  # the likelihood would stop at 2/3


# --- decoding


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_mbr_has_the_least_expected_loss_of_all(kind, n):
    rng = np.random.default_rng([n, len(kind), 1])
    for threshold in (0.0, 0.5, 0.3):
        dist, truth = feasible(kind, rng, n)
        possible = truth.parts[truth.log_scores > -np.inf]
        possible = possible.reshape(len(possible), dist.scores.size)
        best = (possible @ (truth.marginals.ravel() - threshold)).max()
        found = dist.parts(mbr(dist, threshold=threshold)).ravel()
        assert (possible == found).all(axis=1).any(), "MBR decides for what is forbidden"
        assert found @ (truth.marginals.ravel() - threshold) == pytest.approx(best, abs=1e-9)


def test_mbr_is_the_hamming_decision():
    """Threshold s / (m + s) is the decision of least expected weighted Hamming loss, found by trying all pairs."""
    rng = np.random.default_rng(11)
    for missed, spurious in ((1.0, 1.0), (3.0, 1.0)):
        scores = rng.normal(size=(3, 2))
        truth = brute_force_matching(scores)
        losses = [[hamming(y, missed=missed, spurious=spurious).of(own) for y in truth.parts] for own in truth.parts]
        expected = np.array(losses) @ truth.probabilities
        found = mbr(Matching(scores), threshold=spurious / (missed + spurious))
        assert expected[truth.structures.index(found)] == pytest.approx(expected.min())


@pytest.mark.parametrize("kind", ["projective", "spanning", "chain", "itg", "matching"])
def test_mbr_of_batches(kind):
    rng = np.random.default_rng(12)
    many = BATCHES[kind]([feasible(kind, rng, n)[0].scores for n in (3, 0, 1, 2)])
    for s, found in enumerate(mbr(many, threshold=0.4)):
        np.testing.assert_array_equal(many[s].parts(found), many[s].parts(mbr(many[s], threshold=0.4)))


def test_tempered_is_the_power_of_the_distribution():
    rng = np.random.default_rng(13)
    for kind in ("second order", "factored chain", "itg", "matching", "chain", "itg with blocks"):
        dist, truth = feasible(kind, rng, 2)
        powers = truth.probabilities ** (1 / 0.4)
        expected = np.tensordot(powers / powers.sum(), truth.parts, 1)
        np.testing.assert_allclose(tempered(dist, 0.4).marginals(), expected, atol=1e-10)
    many = Itg.batch([np.ones((1, 2)), np.ones((0, 1))])
    assert [one.scores.tolist() for one in tempered(many, 2.0)] == [[[0.5, 0.5]], []]
