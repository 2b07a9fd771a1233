"""Chains of order 2, the k best, and chains with shared transitions, held against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data import Ragged
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.structures import Chain, FactoredChain, FactoredChains, Flat, InfeasibleError, Stack, Structure
from isogloss.testing import (
    brute_force_chain,
    brute_force_factored,
    check_batch,
    check_laws,
    check_structure,
)
from isogloss.testing.strategies import FactoredInputs, chain_scores, factored_inputs

LAWS = settings(max_examples=60, deadline=None, derandomize=True)


# --- order 2 -----------------------------------------------------------------------------------------------------


def test_order_2_keeps_every_law():
    check_structure(
        Chain,
        brute_force_chain,
        shapes=[(0, 2, 2, 2), (1, 3, 3, 3), (2, 3, 3, 3), (2, 1, 1, 1), (3, 3, 3, 3), (5, 2, 2, 2), (4, 3, 3, 3)],
        count=lambda shape: shape[1] ** shape[0],
        column=lambda scores: np.s_[-1:],
        batch=Chain.batch,
        samples=200,
    )


def _marginals_by_counting(truth, n, k):
    nodes, pairs, triples = np.zeros((n, k)), np.zeros((n, k, k)), np.zeros((n, k, k, k))
    for y, p in zip(truth.structures, truth.probabilities, strict=True):
        before = (0, 0, *y)
        for t in range(n):
            nodes[t, y[t]] += p
            pairs[(t, *before[t + 1 : t + 3])] += p
            triples[(t, *before[t : t + 3])] += p
    return nodes, pairs, triples


@pytest.mark.parametrize("order", [1, 2])
@given(st.data())
@LAWS
def test_both_orders_agree_with_enumeration(order, data):
    scores = data.draw(chain_scores(order=order, max_n=5 - order, max_k=3))
    truth, dist = brute_force_chain(scores), Chain(scores)
    assert dist.order == order
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.argmax, lambda: dist.k_best(2)):
            with pytest.raises(InfeasibleError, match="no sequence is allowed"):
                method()
        return
    check_laws(dist, truth, rng=np.random.default_rng(0), samples=0)
    nodes, pairs, triples = _marginals_by_counting(truth, dist.n, dist.k)
    assert dist.node_marginals() == pytest.approx(nodes, abs=1e-11)
    assert dist.pair_marginals() == pytest.approx(pairs, abs=1e-11)
    if order == 2:
        assert dist.triple_marginals() == pytest.approx(triples, abs=1e-11)
    elif dist.n:
        _check_markov_triples(dist, pairs, triples)


def _check_markov_triples(dist, pairs, triples):
    assert dist.triple_marginals() == pytest.approx(triples, abs=1e-10)
    assert dist.triple_marginals().sum(axis=1) == pytest.approx(pairs, abs=1e-10)


@pytest.mark.parametrize("order", [1, 2])
@given(st.data())
@LAWS
def test_k_best_are_the_best(order, data):
    scores = data.draw(chain_scores(order=order, max_n=5 - order, max_k=3))
    truth, dist = brute_force_chain(scores), Chain(scores)
    allowed = np.sort(truth.log_scores[truth.log_scores > -np.inf])[::-1]
    if not len(allowed):
        return
    for size in (1, 3, len(truth.structures) + 2):
        found = dist.k_best(size)
        assert [score for score, _ in found] == pytest.approx(allowed[:size].tolist())
        assert len({tuple(y) for _, y in found}) == len(found) == min(size, len(allowed))
        assert [dist.score(y) for _, y in found] == pytest.approx([score for score, _ in found])
    assert found[0][1].tolist() == dist.argmax().tolist()


# --- shared transitions ------------------------------------------------------------------------------------------


def _counts(truth, k, order):
    """Transitions, pairs, start and end, by walking over every sequence."""
    transitions, pairs, start, end = np.zeros((k,) * (order + 1)), np.zeros((k, k)), np.zeros(k), np.zeros(k)
    for y, p in zip(truth.structures, truth.probabilities, strict=True):
        for t in range(len(y)):
            if t >= order:
                transitions[tuple(y[t - order : t + 1])] += p
            if t >= 1:
                pairs[y[t - 1], y[t]] += p
        if y:
            start[y[0]] += p
            end[y[-1]] += p
    return transitions, pairs, start, end


@pytest.mark.parametrize("order", [1, 2])
@given(st.data())
@LAWS
def test_factored_chain_agrees_with_enumeration(order, data):
    inputs = data.draw(factored_inputs(order=order, max_n=6 - order, max_k=3))
    truth, dist = brute_force_factored(*inputs), FactoredChain(inputs.nodes, **inputs.options)
    assert isinstance(dist, Structure)
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.argmax, dist.counts, dist.entropy, lambda: dist.k_best(2)):
            with pytest.raises(InfeasibleError, match="no sequence is allowed"):
                method()
        return
    check_laws(dist, truth, rng=np.random.default_rng(0), samples=0)
    have = dist.counts()
    for one, two in zip(
        (have.transitions, have.pairs, have.start, have.end), _counts(truth, dist.k, order), strict=True
    ):
        assert one == pytest.approx(two, abs=1e-10)
    whole = Chain.factored(inputs.nodes, **inputs.options)
    assert whole.order == order and whole.log_partition() == pytest.approx(dist.log_partition(), rel=1e-12, abs=1e-12)
    assert whole.node_marginals() == pytest.approx(dist.marginals(), abs=1e-10)
    assert whole.argmax().tolist() == dist.argmax().tolist() == dist.k_best(1)[0][1].tolist()


@pytest.mark.parametrize("order", [1, 2])
def test_factored_samples_have_the_right_frequencies(order):
    rng = np.random.default_rng(order)
    inputs = FactoredInputs(
        rng.normal(size=(4, 2)), rng.normal(size=(2,) * (order + 1)), rng.normal(size=2), rng.normal(size=2),
        rng.normal(size=(2, 2)) if order == 2 else None,
    )  # fmt: skip
    dist = FactoredChain(inputs.nodes, **inputs.options)
    check_laws(dist, brute_force_factored(*inputs), rng=rng, samples=1500)


def _corpus(k, order=1, sentences=40, spread=1.0, seed=0, longest=12):
    rng = np.random.default_rng(seed)
    nodes = [rng.normal(0, spread, (n, k)) for n in rng.integers(0, longest, sentences)]
    shared = {"transitions": rng.normal(0, spread, (k,) * (order + 1))}
    shared |= {"start": rng.normal(0, spread, k), "end": rng.normal(0, spread, k)}
    if order == 2:
        shared["pairs"] = rng.normal(0, spread, (k, k))
    return nodes, shared


@pytest.mark.parametrize(("order", "k"), [(1, 1), (1, 5), (1, 17), (2, 4), (2, 9)])
def test_factored_batch_equals_one_by_one_in_everything(order, k):
    nodes, shared = _corpus(k, order)
    check_batch(lambda n: FactoredChain(n, **shared), lambda many: FactoredChain.batch(many, **shared), nodes)
    many, apart = FactoredChains(nodes, **shared), [FactoredChain(n, **shared) for n in nodes]
    drawn = many.sample(np.random.default_rng(3))
    rng = np.random.default_rng(3)
    assert [y.tolist() for y in drawn] == [one.sample(rng).tolist() for one in apart]
    for name in ("transitions", "pairs", "start", "end"):
        want = sum(getattr(one.counts(), name) for one in apart)
        assert getattr(many.counts(), name) == pytest.approx(want, rel=1e-12)
        observed = sum(getattr(one._alone.counts_of([y]), name) for one, y in zip(apart, drawn, strict=True))
        assert getattr(many.counts_of(drawn), name).tolist() == observed.tolist()
    assert many.score(drawn) == pytest.approx([one.score(y) for one, y in zip(apart, drawn, strict=True)])
    assert many.log_prob(drawn) == pytest.approx([one.log_prob(y) for one, y in zip(apart, drawn, strict=True)])
    assert many.entropy() == pytest.approx([one.chain.entropy() for one in apart], abs=1e-9)
    assert many[-1].log_partition() == apart[-1].log_partition()


@pytest.mark.parametrize(("order", "k"), [(1, 17), (2, 6)])
def test_sums_do_not_depend_on_threads(order, k):
    nodes, shared = _corpus(k, order, sentences=150)
    results = []
    for number in (1, 2):
        with using_threads(number):
            counts = FactoredChains(nodes, **shared).counts()
            results.append([getattr(counts, name).tobytes() for name in ("transitions", "pairs", "start", "end")])
    assert results[0] == results[1]
    assert counts.transitions.sum() == pytest.approx(sum(max(0, len(n) - order) for n in nodes))
    assert counts.start.sum() == pytest.approx(sum(len(n) > 0 for n in nodes))


def test_packed_nodes_are_not_copied():
    nodes, shared = _corpus(3)
    packed = np.concatenate(nodes)
    many = FactoredChains.packed(packed, [len(n) for n in nodes], **shared)
    assert np.shares_memory(many.scores.values, packed)
    assert many.log_partition().tolist() == FactoredChains(nodes, **shared).log_partition().tolist()
    labels = Ragged.of([np.zeros(len(n)) for n in nodes], np.int64)
    assert many.score(labels).tolist() == many.score(list(labels)).tolist()
    with pytest.raises(ParameterError, match=r"\[4, k\], not \[3, 2\]"):
        FactoredChains.packed(np.zeros((3, 2)), [2, 2], np.zeros((2, 2)))


def test_gradients_of_all_kinds_by_finite_differences():
    for order in (1, 2):
        (nodes, *_), shared = _corpus(3, order, sentences=1, seed=4 + order)
        flat = Flat(FactoredChain(nodes, **shared))
        direction = np.cos(np.arange(flat.scores.size))
        above, below = (flat.with_scores(flat.scores + sign * 1e-5 * direction).log_partition() for sign in (1, -1))
        assert (above - below) / 2e-5 == pytest.approx(float(direction @ flat.marginals()), rel=1e-6)
        y = flat.argmax()
        assert float(flat.parts(y) @ flat.scores) == pytest.approx(flat.dist.score(y))


def test_factored_refuses_what_makes_no_sense():
    with pytest.raises(ParameterError, match=r"\[k, k\], or \[k, k, k\] for order 2, not \[2, 3\]"):
        FactoredChain(np.zeros((2, 2)), np.zeros((2, 3)))
    with pytest.raises(ParameterError, match=r"nodes: the shape should be \[any, 2\]"):
        FactoredChain(np.zeros((2, 3)), np.zeros((2, 2)))
    with pytest.raises(ParameterError, match="pairs are for order 2"):
        FactoredChain(np.zeros((2, 2)), np.zeros((2, 2)), pairs=np.zeros((2, 2)))
    with pytest.raises(ParameterError, match=r"nodes should be \[n, 2\] for every sentence"):
        FactoredChains([np.zeros((2, 2)), np.zeros((2, 3))], np.zeros((2, 2)))
    with pytest.raises(ParameterError, match="nan"):
        FactoredChains(Stack(np.full(2, np.nan), np.array([0, 2]), np.array([[1, 2]])), np.zeros((2, 2)))
    many = FactoredChains([np.zeros((2, 2)), np.full((1, 2), -np.inf)], np.zeros((2, 2)))
    with pytest.raises(InfeasibleError, match=r"sentence 1: .*nothing reaches position 0 of 1"):
        many.log_partition()
    with pytest.raises(InfeasibleError, match="sentence 1"):
        many.transition_counts()
    with pytest.raises(ParameterError, match="sentence 1 has 1 positions, not 2"):
        many.score([[0, 0], [0, 1]])
    with pytest.raises(ParameterError, match="1 structures were given"):
        many.score([[0, 0]])


# --- in probabilities and in logarithms ---------------------------------------------------------------------------


def _in_logarithms(many):
    """The same sweep, by the kernel that never leaves logarithms."""
    from isogloss.structures.semiring import LOG

    if isinstance(many, FactoredChains):
        return many._sweep(LOG, np.empty(0))
    values, grad = many._sweep(LOG, np.empty(0), np.zeros(len(many) + 1, np.int64))
    return values, grad.values


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("spread", [1.0, 20.0, 80.0, 1e4])
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_probabilities_and_logarithms_agree(order, spread, holes):
    rng = np.random.default_rng(int(spread) + order)
    sizes = [
        (int(n), int(k)) for n, k in zip(rng.integers(1, 15, 12), rng.integers(1, 28 // order**2, 12), strict=True)
    ]
    blocks = []
    for n, k in sizes:
        block = rng.normal(0, spread, (n, *[k] * (order + 1)))
        block[rng.random(block.shape) < holes] = -np.inf
        block[..., 0] = rng.normal(0, spread, block.shape[:-1])  # so that there is always a path
        blocks.append(block)
    many = Chain.batch(blocks)
    values, marginals = _in_logarithms(many)
    assert many.log_partition() == pytest.approx(values, rel=1e-13, abs=1e-11)
    assert many.marginals().values == pytest.approx(marginals, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize(("order", "k"), [(1, 1), (1, 8), (1, 17), (1, 45), (2, 1), (2, 7), (2, 10)])
@pytest.mark.parametrize("spread", [1.0, 60.0, 1e4])
def test_shared_transitions_agree_with_logarithms(order, k, spread):
    nodes, shared = _corpus(k, order, sentences=12, spread=spread, seed=k)
    shared["transitions"] = shared["transitions"].copy()
    shared["transitions"][..., 0][..., : k // 2] = -np.inf
    many = FactoredChains(nodes, **shared)
    values, marginals, counts = _in_logarithms(many)
    assert many.log_partition() == pytest.approx(values, rel=1e-13, abs=1e-11)
    assert many.marginals().values == pytest.approx(marginals, rel=1e-9, abs=1e-13)
    have = many._swept[2]
    if order == 1:  # the step into position 1 is like the others
        have, counts = have.sum(axis=0), counts.sum(axis=0)
    assert have == pytest.approx(counts, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_what_probabilities_cannot_hold_is_not_lost(order):
    # Label 1 loses a factor e^-100 at every step, but nothing else leads to it and it is the only one allowed at the
    # end: the weight of the only path is far below what float64 can hold beside the others.
    n, k = 30, 3
    transitions = np.full((k,) * (order + 1), -100.0)
    transitions[..., 0, 0] = 0.0
    transitions[..., 0, 1] = transitions[..., 2, 1] = -np.inf
    nodes = np.zeros((n, k))
    nodes[-1] = [-np.inf, 0.0, -np.inf]
    pairs = {"pairs": np.where(np.isfinite(transitions[0]), 0.0, -np.inf)} if order == 2 else {}
    dist, whole = FactoredChain(nodes, transitions, **pairs), Chain.factored(nodes, transitions, **pairs)
    for one in (dist, whole):
        assert one.log_partition() == pytest.approx(-100.0 * (n - order), rel=1e-12)
    for marginals in (dist.marginals(), whole.node_marginals()):
        assert marginals[:, 1] == pytest.approx(np.ones(n), rel=1e-12)


def test_scores_of_ten_thousand_and_lengths_of_five_thousand():
    rng = np.random.default_rng(0)
    for spread in (1.0, 1e4):
        nodes, transitions = rng.uniform(-spread, spread, (5000, 4)), rng.uniform(-spread, spread, (4, 4))
        dist, whole = FactoredChain(nodes, transitions), Chain.factored(nodes, transitions)
        values, _, counts = _in_logarithms(dist._alone)
        assert dist.log_partition() == pytest.approx(values[0], rel=1e-12)
        assert whole.log_partition() == pytest.approx(values[0], rel=1e-12)
        assert dist.marginals().sum(axis=1) == pytest.approx(np.ones(5000), rel=1e-12)
        assert whole.marginals().sum(axis=(1, 2)) == pytest.approx(np.ones(5000), rel=1e-12)
        assert whole.node_marginals() == pytest.approx(dist.marginals(), abs=1e-10)
        assert dist.counts().transitions.ravel() == pytest.approx(counts.sum(axis=0), rel=1e-8, abs=1e-9)
        best = dist.argmax()
        assert dist.score(best) == pytest.approx(dist.k_best(1)[0][0], rel=1e-12)
        assert dist.score(best) <= dist.log_partition() + 1e-6
        if spread == 1e4:  # hardly anything but the best is left
            assert dist.score(best) == pytest.approx(dist.log_partition(), rel=1e-6)
    second = Chain(rng.uniform(-1e4, 1e4, (200, 3, 3, 3)))
    assert second.score(second.argmax()) == pytest.approx(second.log_partition(), rel=1e-10)
    assert second.marginals().sum(axis=(1, 2, 3)) == pytest.approx(np.ones(200))


def test_a_richer_part_that_cannot_be_reached_does_not_drown_the_rest():
    # Labels 2 and 3 lead anywhere and are e^200 times as good at every step, but nothing leads to them.
    transitions = np.zeros((4, 4))
    transitions[:2, 2:], transitions[2:] = -np.inf, 200.0
    nodes = np.random.default_rng(0).normal(size=(80, 4))
    dist = FactoredChain(nodes, transitions, start=[0.0, 0.0, -np.inf, -np.inf])
    alone = FactoredChain(nodes[:, :2], transitions[:2, :2])
    assert dist.log_partition() == pytest.approx(alone.log_partition(), rel=1e-12)
    assert dist.marginals()[:, :2] == pytest.approx(alone.marginals(), rel=1e-10)
    assert not dist.marginals()[:, 2:].any()
    assert dist.counts().transitions[:2, :2] == pytest.approx(alone.counts().transitions, rel=1e-10)
    assert not dist.counts().transitions[2:].any()


def test_neighbours_in_memory_do_not_leak():
    # Rows are read eight at a time; what stands after a row or a sentence must not matter, whatever it is.
    rng = np.random.default_rng(0)
    for k in (1, 3, 7, 8, 9):
        nodes, transitions = rng.normal(size=(6, k)), rng.normal(size=(k, k))
        alone = FactoredChain(nodes, transitions)
        for other in (-np.inf, 1e4, 0.0):
            around = np.full((3, k), other)
            around[:, 0] = 0.0
            many = FactoredChains([around, nodes, around], transitions)
            assert many.log_partition()[1] == alone.log_partition()
            np.testing.assert_array_equal(many.marginals()[1], alone.marginals())
