"""Likelihoods against enumeration and finite differences; optimisers against SciPy's."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from isogloss.engine.threads import using_threads
from isogloss.errors import ModelError, ParameterError
from isogloss.features import Axis, Hashed, Templates, arcs, sparse
from isogloss.features.sparse import Sparse
from isogloss.learners import chain_model
from isogloss.learners._search import search
from isogloss.learners.loglinear import (
    AdaGrad,
    ChainModel,
    LabelPairs,
    Lbfgs,
    Likelihood,
    LinearModel,
    NodeFeatures,
    Sgd,
    Total,
)
from isogloss.learners.runner import run
from isogloss.structures import Chain, FactoredChain, Flat, ProjectiveTree, Stack
from isogloss.testing import brute_force_chain, brute_force_trees, check_gradient, check_learner

LENGTHS = (3, 1, 0, 2)
K = 3


def random_rows(rng, n, m, most=3):
    return [rng.choice(m, size=rng.integers(0, most + 1), replace=False).tolist() for _ in range(n)]


def chain_case(seed=0, width=1):
    """Chains with random sparse features on every step, and one right sequence each."""
    rng = np.random.default_rng(seed)
    base = [np.where(rng.random((n, K, K)) < 0.1, -np.inf, rng.normal(0, 0.3, (n, K, K))) for n in LENGTHS]
    base = [np.where(np.isneginf(block[:1].max()) if block.size else False, 0.0, block) for block in base]
    n_parts = sum(block.size for block in base)
    features = Sparse.of(random_rows(rng, n_parts, 6), 6, dense=rng.normal(size=(n_parts, width)))
    gold = [Chain(block).sample(rng) for block in base]
    return base, features, gold, rng


def tree_case(seed=0):
    """Projective trees with features from templates."""
    rng = np.random.default_rng(seed)
    sizes = np.array([4, 2, 1, 3])  # with the root
    axis = Axis(np.concatenate([[0], np.cumsum(sizes)]), tag=rng.integers(0, 3, sizes.sum()))
    parts = arcs(axis)
    names = ["head.tag & child.tag", "direction & distance", "child.tag & direction", "head.tag & between.tag"]
    templates = Templates(names)
    features = templates.matrix(parts, templates.index(parts), dense=rng.normal(size=(parts.n_parts, 1)))
    base = [np.zeros((n, n)) for n in sizes]
    gold = [ProjectiveTree(block).sample(rng) for block in base]
    return base, features, gold, rng


def restricted_chains(base, gold, rng):
    """Chains that allow the right sequence and some others."""
    out = []
    for block, y in zip(base, gold, strict=True):
        mask = rng.random((len(y), K)) < 0.4
        mask[np.arange(len(y)), y] = True
        out.append(Chain(np.where(mask[:, None, :], block, -np.inf)))
    return out


def restricted_trees(base, gold, rng):
    """Trees in which the heads of some words are known."""
    out = []
    for block, heads in zip(base, gold, strict=True):
        allowed = np.ones(block.shape, bool)
        for child, head in enumerate(heads, 1):
            if rng.random() < 0.5:
                allowed[:, child] = False
                allowed[head, child] = True
        out.append(ProjectiveTree(np.where(allowed, block, -np.inf)))
    return out


CASES = {
    "chain": (chain_case, Chain, restricted_chains, brute_force_chain),
    "tree": (tree_case, ProjectiveTree, restricted_trees, partial(brute_force_trees, projective=True)),
}


def objectives(kind, together):
    """The three kinds of target; and, for each, its value by enumeration at given weights."""
    case, structure, restrict, enumerated = CASES[kind]
    base, features, gold, rng = case()
    dists = [structure(block) for block in base]
    made = structure.batch(base) if together else dists
    model = LinearModel(made, features)
    within = restrict(base, gold, rng)
    q = [dist.with_scores(dist.scores + rng.normal(size=dist.scores.shape)) for dist in dists]
    offsets = np.concatenate([[0], np.cumsum([block.size for block in base])])

    def scored(weights):
        flat = features.scores(weights)
        return [block + flat[a:b].reshape(block.shape) for block, a, b in zip(base, offsets, offsets[1:])]

    def of_gold(weights):
        total = 0.0
        for scores, y in zip(scored(weights), gold, strict=True):
            truth = enumerated(scores)
            total += float(np.log(truth.probabilities[list(truth.structures).index(tuple(int(i) for i in y))]))
        return total

    def of_soft(weights):
        total = 0.0
        for scores, one in zip(scored(weights), q, strict=True):
            log_p = enumerated(scores).log_scores - enumerated(scores).log_partition
            p = enumerated(one.scores).probabilities
            total += 0.5 * float(p[p > 0] @ log_p[p > 0])
        return total

    def of_latent(weights):
        total = 0.0
        for scores, one in zip(scored(weights), within, strict=True):
            inside = enumerated(np.where(one.scores > -np.inf, scores, -np.inf)).log_partition
            total += inside - enumerated(scores).log_partition
        return total

    return {
        "gold": (Likelihood(model, gold=gold), of_gold),
        "soft": (Likelihood(model, soft=q, share=0.5), of_soft),
        "latent": (Likelihood(model, within=model.within(within)), of_latent),
    }


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "batch"])
@pytest.mark.parametrize("target", ["gold", "soft", "latent"])
@pytest.mark.parametrize("kind", ["chain", "tree"])
def test_likelihoods_equal_enumeration_and_their_gradients_finite_differences(kind, target, together):
    objective, truth = objectives(kind, together)[target]
    weights = np.random.default_rng(5).normal(0, 0.7, objective.n_weights)
    assert objective.add_gradient(weights, np.zeros(len(weights))) == pytest.approx(truth(weights), abs=1e-9)
    check_gradient(objective, weights, directions=20)
    check_gradient(objective, weights, items=[2, 0], directions=20)
    whole, pieces = np.zeros(len(weights)), np.zeros(len(weights))
    value = objective.add_gradient(weights, whole)
    each = [objective.add_gradient(weights, pieces, np.array([i])) for i in range(len(objective))]
    assert sum(each) == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(pieces, whole, atol=1e-10)


def test_several_kinds_of_parts_are_learnt_through_flat():
    rng = np.random.default_rng(1)
    dist = Flat(FactoredChain(np.zeros((3, 2)), np.zeros((2, 2))))
    features = Sparse.of(random_rows(rng, len(dist.scores), 4), 4)
    model = LinearModel([dist], features)
    check_gradient(Likelihood(model, gold=[[0, 1, 1]]), rng.normal(size=4))
    at, much = model.difference(0, [0, 1, 1], [1, 1, 0])
    wanted = features.totals(dist.parts([0, 1, 1]) - dist.parts([1, 1, 0]))
    full = np.zeros(4)
    full[at] = much
    np.testing.assert_allclose(full, wanted)


# --- conditional random fields -------------------------------------------------------------------------------------


def crf(order=1, ends=True, seed=0, supported=False, width=1):
    rng = np.random.default_rng(seed)
    lengths, k = np.array([3, 0, 4, 1]), 3
    n = lengths.sum()
    attributes = Sparse.of(random_rows(rng, n, 5), 5, dense=rng.normal(size=(n, width)))
    labels = rng.integers(0, k, n)
    pairs = LabelPairs.supported(attributes, labels, k) if supported else LabelPairs.all(5, k)
    model = ChainModel(NodeFeatures(attributes, pairs), lengths, order=order, ends=ends)
    return model, np.split(labels, np.cumsum(lengths)[:-1]), rng


def written_out(model, weights):
    """The same model with a score for every step, sentence by sentence, by loops."""
    own, shared = model.split(weights)
    k, A, pairs = model.k, model.features.attributes, model.features.pairs
    table = np.zeros((A.n_indicators, k))
    for a in range(A.n_indicators):
        for p in range(pairs.starts[a], pairs.starts[a + 1]):
            table[a, pairs.labels[p]] = own[p]
    real = own[len(pairs.labels) :].reshape(-1, k)
    out, at = [], 0
    for n in model.lengths:
        nodes = np.zeros((n, k))
        for t in range(n):
            for e in range(A.indptr[at + t], A.indptr[at + t + 1]):
                nodes[t] += table[A.indices[e]]
            nodes[t] += A.dense[at + t] @ real
        if model.allowed is not None:
            nodes[~model.allowed[at : at + n]] = -np.inf
        out.append(Chain.factored(nodes, shared.transitions, shared.start, shared.end, pairs=shared.pairs))
        at += n
    return out


@pytest.mark.parametrize("supported", [False, True], ids=["all pairs", "supported pairs"])
@pytest.mark.parametrize(("order", "ends"), [(1, True), (1, False), (2, True)])
def test_crf_equals_chains_written_out(order, ends, supported):
    model, gold, rng = crf(order, ends, supported=supported)
    weights = rng.normal(0, 0.5, model.n_weights)
    chains = written_out(model, weights)
    mask = rng.random((model.lengths.sum(), model.k)) < 0.5
    mask[np.arange(len(mask)), np.concatenate(gold)] = True
    inside = model.within(mask)
    q = model.distributions(weights + rng.normal(0, 0.5, model.n_weights))
    for objective, truth in (
        (Likelihood(model, gold=gold), sum(c.log_prob(y) for c, y in zip(chains, gold, strict=True))),
        (
            Likelihood(model, within=inside, share=2.0),
            2 * sum(a.log_partition() - b.log_partition() for a, b in zip(written_out(inside, weights), chains)),
        ),
        (
            Likelihood(model, soft=q),
            sum(
                float((one.chain.marginals() * np.where(one.chain.marginals() > 0, c.scores, 0)).sum())
                - c.log_partition()
                for one, c in zip((q[s] for s in range(len(q))), chains, strict=True)
            ),
        ),
    ):
        assert objective.add_gradient(weights, np.zeros(len(weights))) == pytest.approx(truth, abs=1e-9)
        check_gradient(objective, weights, directions=8)
        check_gradient(objective, weights, items=[2, 1], directions=8)
    assert [y.tolist() for y in model.distributions(weights).argmax()] == [c.argmax().tolist() for c in chains]
    assert model.distribution(weights, 2).argmax().tolist() == chains[2].argmax().tolist()


def test_crf_difference_is_that_of_scores():
    model, gold, rng = crf()
    weights = rng.normal(size=model.n_weights)
    chains = written_out(model, weights)
    for item, y in enumerate(gold):
        other = rng.integers(0, model.k, len(y))
        at, much = model.difference(item, y, other)
        assert len(np.unique(at)) == len(at)
        assert weights[at] @ much == pytest.approx(chains[item].score(y) - chains[item].score(other), abs=1e-10)


def test_supported_pairs_are_those_met_in_training():
    attributes = Sparse.of([[0, 1], [1], [1, 2], [0]], 3)
    pairs = LabelPairs.supported(attributes, [2, 0, 0, -1], 3)
    assert pairs.starts.tolist() == [0, 1, 3, 4] and pairs.labels.tolist() == [2, 0, 2, 0]
    assert LabelPairs.supported(attributes, [2, 0, 0, -1], 3, min_count=2).labels.tolist() == [0]
    again = LabelPairs.from_arrays(pairs.to_arrays(), 3)
    assert np.array_equal(again.labels, pairs.labels)
    with pytest.raises(ModelError, match="damaged"):
        LabelPairs([0, 2], [1], 3)


def test_node_products_do_not_depend_on_threads(monkeypatch):
    rng = np.random.default_rng(2)
    n, k = 900, 4
    attributes = Sparse.of(random_rows(rng, n, 60, 8), 60, dense=rng.normal(size=(n, 2)))
    labels = np.minimum(rng.integers(0, 9, n), k - 1)
    features = NodeFeatures(attributes, LabelPairs.supported(attributes, labels, k, min_count=12))
    assert 0 < len(features.pairs.labels) < 60 * k
    weights, x = rng.normal(size=features.n_weights), rng.normal(size=(n, k))
    with using_threads(1):
        nodes, totals = features.nodes(weights), np.zeros(features.n_weights)
        features.add_totals(x, totals)
    monkeypatch.setattr(chain_model, "ROWS_PER_BLOCK", 64)
    for module in (chain_model, sparse):
        monkeypatch.setattr(module, "ENTRIES_PER_BLOCK", 100)
    with using_threads(2):
        again = np.zeros(features.n_weights)
        features.add_totals(x, again)
        assert np.array_equal(features.nodes(weights), nodes) and np.array_equal(again, totals)


# --- optimisers ----------------------------------------------------------------------------------------------------


def toy(seed=3):
    """Right labels that no weights fit exactly: concave, with an optimum inside."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, 30)
    n = lengths.sum()
    attributes = Sparse.of(random_rows(rng, n, 4, 2), 4)
    model = ChainModel(NodeFeatures(attributes, LabelPairs.all(4, 2)), lengths, ends=False)
    gold = np.split(rng.integers(0, 2, n), np.cumsum(lengths)[:-1])
    return Likelihood(model, gold=gold)


def penalised(objective, l1=0.0, l2=0.0):
    def cost(weights):
        gradient = np.zeros(len(weights))
        value = objective.add_gradient(weights, gradient)
        return 0.5 * l2 * weights @ weights - value, l2 * weights - gradient

    return cost


def reference(objective, l1=0.0, l2=0.0):
    """The optimum by SciPy's L-BFGS-B; with l1, over positive and negative parts of the weights."""
    n, cost = objective.n_weights, penalised(objective, l2=l2)
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 2000}
    if not l1:
        found = minimize(cost, np.zeros(n), jac=True, method="L-BFGS-B", options=options)
        return found.x, -found.fun

    def split(both):
        value, slope = cost(both[:n] - both[n:])
        return value + l1 * both.sum(), np.concatenate([slope + l1, l1 - slope])

    found = minimize(split, np.zeros(2 * n), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * n), options=options)
    return found.x[:n] - found.x[n:], -found.fun


def test_lbfgs_finds_the_optimum_of_a_generic_solver():
    objective = toy()
    best, value = reference(objective, l2=0.5)
    learner = Lbfgs(objective, l2=0.5, history=5)
    result = run(learner, learner.init(), iterations=60, tolerance=1e-14)
    assert result.trace[-1] == pytest.approx(value, abs=1e-8)
    np.testing.assert_allclose(result.state.weights, best, atol=1e-5)
    assert (np.diff(result.trace) >= 0).all() and result.watched["gradient"][-1] < 1e-5
    assert result.watched["evaluations"][1:-3].mean() < 1.5  # the first length is nearly always taken


@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("l1", [1.0, 4.0])
def test_l1_gives_exact_zeros_and_the_optimum_of_a_generic_solver(l1, l2):
    objective = toy()
    best, value = reference(objective, l1=l1, l2=l2)
    learner = Lbfgs(objective, l1=l1, l2=l2)
    result = run(learner, learner.init(), iterations=200, tolerance=1e-15)
    assert result.trace[-1] == pytest.approx(value, abs=1e-7)
    np.testing.assert_allclose(result.state.weights, best, atol=1e-4)
    zero = np.abs(best) < 1e-7
    assert zero.any() and (result.state.weights[zero] == 0).all()  # to the bit
    assert (np.diff(result.trace) >= 0).all()


def test_l1_finds_its_zeros_from_anywhere_and_never_crosses_them():
    objective = toy()
    best, _ = reference(objective, l1=4.0)
    learner = Lbfgs(objective, l1=4.0)
    state = learner.init(np.random.default_rng(0).normal(size=objective.n_weights))
    for _ in range(200):
        after, _ = learner.step(state)
        assert (state.weights * after.weights >= 0).all()  # through 0 in two steps, not in one
        state = after
    np.testing.assert_allclose(state.weights, best, atol=1e-4)
    assert (state.weights[np.abs(best) < 1e-7] == 0).all()


def test_l1_large_enough_keeps_everything_at_zero():
    learner = Lbfgs(toy(), l1=1e3)
    state, info = learner.step(learner.init())
    assert not state.weights.any() and info.gradient == 0 and info.nonzero == 0


@pytest.mark.parametrize(
    ("make", "passes", "close"),
    [
        (lambda objective: Sgd(objective, l2=0.5, rate=0.2, decay=1.0, seed=1), 60, 2e-3),
        (lambda objective: Sgd(objective, l2=0.5, rate=0.2, decay=1.0, batch=7), 60, 2e-3),
        (lambda objective: AdaGrad(objective, l2=0.5, rate=0.3), 40, 2e-2),
        (lambda objective: AdaGrad(objective, l2=0.5, rate=0.3, batch=30), 400, 1e-6),  # every step sees everything
    ],
    ids=["sgd", "sgd batch", "adagrad", "adagrad all"],
)
def test_stochastic_optimisers_reach_the_same_optimum(make, passes, close):
    objective = toy()
    best, value = reference(objective, l2=0.5)
    learner = make(objective)
    weights = run(learner, learner.init(), iterations=passes).state.weights
    found = -penalised(objective, l2=0.5)(weights)[0]
    assert value - found < close
    np.testing.assert_allclose(weights, best, atol=np.sqrt(close))


def test_adagrad_with_l1_and_l2_reaches_the_optimum_and_its_zeros():
    objective = toy()
    best, _ = reference(objective, l1=3.0, l2=0.2)
    learner = AdaGrad(objective, l1=3.0, l2=0.2, rate=0.3, batch=30)
    weights = run(learner, learner.init(), iterations=800).state.weights
    np.testing.assert_allclose(weights, best, atol=1e-4)
    assert (weights[np.abs(best) < 1e-7] == 0).all() and (np.abs(best) < 1e-7).any()


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("make", [AdaGrad, Sgd])
def test_a_pass_equals_one_that_penalises_every_weight_in_every_step(make, batch):
    objective, l2, rate = toy(), 2.0, 0.2
    l1 = 1.0 if make is AdaGrad else 0.0
    learner = make(objective, l2=l2, rate=rate, batch=batch, seed=3, **({"l1": l1} if l1 else {}))
    weights = np.linspace(-2, 2, objective.n_weights)
    state = learner.init(weights)
    squares = np.full(len(weights), 1e-4)
    batches = -(-len(objective) // batch)
    for iteration in range(2):
        state, _ = learner.step(state)
        order = np.random.default_rng([3, iteration]).permutation(len(objective))
        for now in range(batches):
            gradient = np.zeros(len(weights))
            objective.add_gradient(weights, gradient, order[now * batch : (now + 1) * batch])
            squares += gradient**2
            length = (
                rate / np.sqrt(squares) if make is AdaGrad else rate / (1 + rate * l2 * (iteration + now / batches))
            )
            moved = weights + length * gradient
            less = np.maximum(np.abs(moved) - l1 * length / batches, 0)
            weights = np.sign(moved) * less / (1 + l2 * length / batches)
    np.testing.assert_allclose(state.weights, weights, atol=1e-12)


def test_order_of_items_is_the_seeds():
    objective = toy()
    first, again, other = (AdaGrad(objective, seed=seed) for seed in (1, 1, 2))
    states = [learner.step(learner.init())[0].weights for learner in (first, again, other)]
    assert np.array_equal(states[0], states[1]) and not np.array_equal(states[0], states[2])


@pytest.mark.parametrize("make", [Lbfgs, AdaGrad, Sgd])
def test_learners_keep_the_laws(make):
    objective = toy()
    learner = make(objective, l2=0.3)
    model = objective.model
    order = np.random.default_rng(0).permutation(len(model))
    rows = model._rows(order)
    shuffled = Sparse.of([model.features.attributes.indices[a:b].tolist() for a, b in zip(*bounds(model, rows))], 4)
    permuted = ChainModel(NodeFeatures(shuffled, model.features.pairs), model.lengths[order], ends=False)
    gold = np.split(objective._target.labels[rows], np.cumsum(model.lengths[order])[:-1])
    batch = make is Lbfgs
    check_learner(
        learner,
        learner.init(np.full(objective.n_weights, 0.1)),
        monotone=batch,
        objective=objective,
        permuted=Lbfgs(Likelihood(permuted, gold=gold), l2=0.3) if batch else None,
    )
    with_l1 = Lbfgs(objective, l1=1.0)
    check_learner(with_l1, with_l1.init(), steps=6, monotone=True)


def bounds(model, rows):
    indptr = model.features.attributes.indptr
    return indptr[rows], indptr[rows + 1]


def test_lbfgs_goes_on_from_a_checkpoint_as_if_nothing_had_happened(tmp_path):
    learner = Lbfgs(toy(), l2=0.1, history=3)
    straight = run(learner, learner.init(), iterations=9)
    run(learner, learner.init(), iterations=5, checkpoint=tmp_path / "c")
    resumed = run(learner, learner.init(), iterations=9, checkpoint=tmp_path / "c", resume=True)
    assert np.array_equal(straight.state.weights, resumed.state.weights)
    assert np.array_equal(straight.trace, resumed.trace)


def test_labelled_and_unlabelled_items_together():
    model, gold, rng = crf()
    weights = rng.normal(size=model.n_weights)
    q = model.distributions(rng.normal(size=model.n_weights))
    parts = Likelihood(model, gold=gold), Likelihood(model, soft=q, share=0.3)
    both = Total(parts)
    assert len(both) == 8
    wanted = sum(part.add_gradient(weights, np.zeros(len(weights))) for part in parts)
    assert both.add_gradient(weights, np.zeros(len(weights))) == pytest.approx(wanted)
    check_gradient(both, weights)
    check_gradient(both, weights, items=[6, 0, 2])
    with pytest.raises(ParameterError, match="same number of weights"):
        Total([parts[0], toy()])


# --- the line search -----------------------------------------------------------------------------------------------


def rosenbrock(x):
    value = float((1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2)
    return value, np.array([-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)])


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(1e-4, 10))
@settings(max_examples=60, deadline=None)
def test_line_search_meets_the_strong_wolfe_conditions(x, y, first):
    start = np.array([x, y])
    value, slope = rosenbrock(start)
    if np.linalg.norm(slope) < 1e-6:
        return
    way = -slope / np.linalg.norm(slope)
    begin = value, float(slope @ way)
    found, spent = search(rosenbrock, lambda a, b: float(a @ b), start, way, begin, first, 60)
    assert found is not None and spent < 60
    weights, cost, gradient = found
    length = float((weights - start) @ way)
    assert cost <= value + 1e-4 * length * begin[1] + 1e-12
    assert abs(gradient @ way) <= -0.9 * begin[1] + 1e-12


class Curved:
    """−Rosenbrock, as an objective."""

    n_weights = 2

    def __len__(self):
        return 1

    def support(self, items):
        return np.arange(2)

    def add_gradient(self, weights, out, items=None):
        value, slope = rosenbrock(weights)
        out -= slope
        return -value


def test_lbfgs_follows_a_curved_valley():
    learner = Lbfgs(Curved())
    result = run(learner, learner.init([-1.2, 1.0]), iterations=80, tolerance=0.0)
    np.testing.assert_allclose(result.state.weights, [1.0, 1.0], atol=1e-6)


def test_lbfgs_stays_where_nothing_can_be_gained():
    learner = Lbfgs(Curved())
    state = learner.init([1.0, 1.0])
    for _ in range(3):
        state, info = learner.step(state)
    assert state.weights.tolist() == [1.0, 1.0] and info.objective == 0 and state.iteration == 3


# --- wrong input ---------------------------------------------------------------------------------------------------


def test_wrong_input_says_so():
    base, features, gold, _ = chain_case()
    dists = [Chain(block) for block in base]
    model = LinearModel(dists, features)
    with pytest.raises(ParameterError, match="parts and the features"):
        LinearModel(dists[:1], features)
    for targets, finding in (({}, "none"), ({"gold": gold, "soft": dists}, "gold and soft")):
        with pytest.raises(ParameterError, match=finding):
            Likelihood(model, **targets)
    with pytest.raises(ParameterError, match="one for each item"):
        Likelihood(model, gold=gold[:2])
    with pytest.raises(ParameterError, match="item 0 has 27 parts"):
        Likelihood(model, soft=[np.zeros((2, 3, 3)), *[np.zeros(block.shape) for block in base[1:]]])
    forbidden = LinearModel([dists[0].clamp(gold[0]), *dists[1:]], features)
    with pytest.raises(ParameterError, match="item 0 has parts that are forbidden"):
        Likelihood(forbidden, gold=[(np.asarray(gold[0]) + 1) % K, *gold[1:]])
    for make, options, finding in (
        (Lbfgs, {"l1": -1}, "l1"),
        (Lbfgs, {"history": 0}, "history"),
        (AdaGrad, {"rate": 0}, "rate"),
        (Sgd, {"batch": 0}, "batch"),
    ):
        with pytest.raises(ParameterError, match=finding):
            make(toy(), **options)
    with pytest.raises(ParameterError, match="finite numbers"):
        Lbfgs(toy()).init([np.nan] * toy().n_weights)
    crf_model, labels, _ = crf()
    with pytest.raises(ParameterError, match="every position"):
        crf_model.gold(labels[:2])
    mask = np.ones((8, 3), bool)
    mask[0, labels[0][0]] = False
    with pytest.raises(ParameterError, match="sentence 0, position 0"):
        Likelihood(crf_model.within(mask), gold=labels)


def test_soft_targets_may_come_as_a_stack_or_a_batch():
    base, features, _, rng = chain_case()
    batch = Chain.batch(base)
    model, weights = LinearModel(batch, features), rng.normal(size=7)
    q = batch.with_scores(Stack.of([block + 1.0 for block in base]))
    values = [
        Likelihood(model, soft=soft).add_gradient(weights, np.zeros(7))
        for soft in (q, q.marginals(), [q[s] for s in range(len(q))], list(q.marginals()))
    ]
    assert max(values) == min(values)


def test_hashed_features_train_too():
    base, _, gold, _ = tree_case()
    sizes = np.array([4, 2, 1, 3])
    parts = arcs(Axis(np.concatenate([[0], np.cumsum(sizes)]), tag=np.arange(10) % 3))
    features = Templates(["head.tag & child.tag", "direction"]).matrix(parts, Hashed(6))
    learner = Lbfgs(Likelihood(LinearModel(ProjectiveTree.batch(base), features), gold=gold), l2=0.1)
    trace = run(learner, learner.init(), iterations=10).trace
    assert all(after >= before for before, after in itertools.pairwise(trace)) and trace[-1] > trace[0]


@pytest.mark.parametrize("optimiser", [Lbfgs, AdaGrad, Sgd])
def test_no_items_at_all_leave_weights_alone(optimiser):
    learner = optimiser(Likelihood(LinearModel([], Sparse.of([], 2)), gold=[]), l2=0.1)
    state, info = learner.step(learner.init())
    assert state.weights.tolist() == [0.0, 0.0] and info.objective == 0.0
