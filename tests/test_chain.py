"""The semiring core, the chain and the alignment chain, held against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import IsoglossError, ParameterError
from isogloss.structures import AlignmentChain, Chain, Chains, FactoredChains, InfeasibleError, Stack, Structure
from isogloss.structures.semiring import DRAW, LOG, MAX, total, weights
from isogloss.testing import (
    brute_force_alignments,
    brute_force_chain,
    chains,
    check_batch,
    check_laws,
    check_structure,
)
from isogloss.testing.strategies import AlignmentInputs, alignment_inputs, chain_scores

LAWS = settings(max_examples=60, deadline=None, derandomize=True)


# --- semirings ---------------------------------------------------------------------------------------------------


def test_compiled_semirings_equal_their_definition():
    from numba import njit

    from isogloss.structures._numba import semiring as compiled

    @njit
    def run(sr, x, out, u):
        compiled.weights(sr, x, out, u)
        return compiled.total(sr, x)

    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 7):
        for _ in range(20):
            x = np.where(rng.random(size) < 0.3, -np.inf, rng.normal(0, 4, size))
            for sr in (LOG, MAX, DRAW):
                here, there, u = np.empty(size), np.empty(size), rng.random()
                weights(sr, x, here, u)
                assert run(sr, x, there, u) == pytest.approx(total(sr, x), rel=1e-14)
                assert there == pytest.approx(here, rel=1e-13)


def test_nothing_allowed_stays_minus_infinity():
    x, out = np.full(3, -np.inf), np.ones(3)
    for sr in (LOG, MAX, DRAW):
        assert total(sr, x) == -np.inf
        weights(sr, x, out, 0.5)
        assert out.tolist() == [0, 0, 0]


def test_draw_never_takes_what_is_forbidden():
    out = np.empty(4)
    for u in (0.0, 0.5, np.nextafter(1.0, 0.0)):
        weights(DRAW, np.array([-np.inf, 0.3, 0.1, -np.inf]), out, u)
        assert out[0] == out[3] == 0 and out.sum() == 1
        for scores in ([[[-np.inf, 0.3, 0.1, -np.inf]] * 4],):
            state = Chain(scores).sample(np.random.default_rng(1))[0]
            assert state in (1, 2)


# --- the chain ---------------------------------------------------------------------------------------------------


def test_chain_keeps_every_law():
    check_structure(
        Chain,
        brute_force_chain,
        shapes=[(0, 1, 1), (0, 3, 3), (1, 1, 1), (1, 3, 3), (3, 1, 1), (2, 3, 3), (4, 2, 2), (3, 3, 3)],
        count=lambda shape: shape[1] ** shape[0],
        column=lambda scores: np.s_[-1:],
        batch=Chain.batch,
    )


def test_checks_notice_a_wrong_structure():
    class Wrong(Chain):
        def marginals(self):
            return super().marginals() * 0.999

    class Greedy(Chain):
        def argmax(self):
            return self.node_marginals().argmax(axis=1)

    class Stuck(Chain):
        def sample(self, rng):
            return self.argmax()

    for broken in (Wrong, Greedy, Stuck):
        with pytest.raises(AssertionError):
            check_structure(broken, brute_force_chain, shapes=[(2, 2, 2), (4, 3, 3)], seed=3)


@given(chain_scores(max_n=4, max_k=3))
@LAWS
def test_chain_agrees_with_enumeration(scores):
    truth = brute_force_chain(scores)
    dist = Chain(scores)
    if truth.log_partition == -np.inf:
        with pytest.raises(InfeasibleError, match="no sequence is allowed"):
            dist.log_partition()
        return
    check_laws(dist, truth, rng=np.random.default_rng(0), samples=0)
    nodes = np.zeros((dist.n, dist.k))
    for y, p in zip(truth.structures, truth.probabilities, strict=True):
        nodes[np.arange(dist.n), list(y)] += p
    assert dist.node_marginals() == pytest.approx(nodes, abs=1e-12)
    assert not np.isnan(dist.marginals()).any()


@given(st.lists(chain_scores(max_n=4, max_k=3, allow_minus_inf=False), max_size=5), st.integers(0, 99))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_batch_equals_one_by_one_in_everything(blocks, seed):
    many = Chain.batch(blocks)
    assert len(many) == len(blocks)
    rng = np.random.default_rng(seed)
    apart = [Chain(block).sample(rng).tolist() for block in blocks]
    assert [y.tolist() for y in many.sample(np.random.default_rng(seed))] == apart
    if blocks:
        check_batch(Chain, Chain.batch, blocks)


def test_batch_keeps_masks_and_refuses_what_does_not_fit():
    rng = np.random.default_rng(1)
    blocks = [rng.normal(size=(n, k, k)) for n, k in ((2, 3), (4, 2), (0, 5))]
    masks = [rng.random((len(block), block.shape[1])) < 0.8 for block in blocks]
    masks[0][:, 1] = masks[1][:, 1] = True
    many = Chain.batch(blocks, mask=masks)
    for again in (many, many.with_scores(blocks)):
        apart = [Chain(block, mask=mask) for block, mask in zip(blocks, masks, strict=True)]
        assert again.log_partition().tolist() == [one.log_partition() for one in apart]
        assert [y.tolist() for y in again.argmax()] == [one.argmax().tolist() for one in apart]
        for have, one in zip(again.node_marginals(), apart, strict=True):
            np.testing.assert_array_equal(have, one.node_marginals())
    assert isinstance(many, Chains) and many[1].mask is not None
    with pytest.raises(ParameterError, match="sentence 1 should be"):
        Chain.batch([np.zeros((2, 3, 3)), np.zeros((2, 3, 2))])
    with pytest.raises(ParameterError, match="sentence 1 should have 3 axes"):
        Chain.batch([np.zeros((2, 3, 3)), np.zeros((2, 3, 3, 3))])
    with pytest.raises(ParameterError, match=r"mask of sentence 0 should be bool\[2, 3\]"):
        Chain.batch(blocks, mask=[masks[0][:1], *masks[1:]])
    with pytest.raises(ParameterError, match=r"nan"):
        Chain.batch(Stack(np.array([np.nan]), np.array([0, 1]), np.array([[1, 1, 1]])))


def test_batch_says_which_sentence_is_infeasible():
    blocks = [np.zeros((2, 2, 2)), np.full((3, 2, 2), -np.inf), np.full((1, 2, 2), -np.inf)]
    with pytest.raises(InfeasibleError, match=r"sentence 1 \(one of 2\).*position 0 of 3"):
        Chain.batch(blocks).log_partition()


def test_infeasible_says_where_the_path_breaks_off():
    scores = np.zeros((4, 2, 2))
    scores[1, :, 1] = -np.inf  # only state 0 at position 1 ...
    scores[2, 0, :] = -np.inf  # ... from which nothing leads on
    with pytest.raises(InfeasibleError, match="nothing reaches position 2 of 4 with 2 states"):
        Chain(scores).argmax()
    assert issubclass(InfeasibleError, IsoglossError)
    with pytest.raises(InfeasibleError):
        Chain(np.zeros((2, 0, 0))).log_partition()


def test_long_chain_neither_overflows_nor_underflows():
    scores = np.random.default_rng(0).normal(0, 500, (300, 4, 4))
    dist = Chain(scores)
    assert np.isfinite(dist.log_partition())
    assert dist.marginals().sum(axis=(1, 2)) == pytest.approx(np.ones(300))
    assert dist.score(dist.argmax()) <= dist.log_partition()


def test_chain_refuses_what_makes_no_sense():
    with pytest.raises(ParameterError, match=r"\[n, k, k\], or \[n, k, k, k\] for order 2, not \[2, 2\]"):
        Chain(np.zeros((2, 2)))
    with pytest.raises(ParameterError, match=r"\[n, k, k\]"):
        Chain(np.zeros((2, 2, 3)))
    with pytest.raises(ParameterError, match=r"nan at \[0, 0, 1\]"):
        Chain([[[0, np.nan], [0, 0]]])
    with pytest.raises(ParameterError, match="inf at"):
        Chain([[[np.inf]]])
    dist = Chain(np.zeros((2, 2, 2)))
    with pytest.raises(ParameterError, match="2 states from 0 to 1"):
        dist.log_prob([0, 2])
    with pytest.raises(ParameterError, match="not one structure"):
        dist.from_parts(dist.marginals())
    with pytest.raises(ParameterError, match=r"scores: the shape should be \[2, 2, 2\]"):
        dist.with_scores(np.zeros((3, 2, 2)))
    with pytest.raises(ParameterError, match=r"mask should be bool\[2, 2\], not int64\[2, 2\]"):
        Chain(np.zeros((2, 2, 2)), mask=np.ones((2, 2), np.int64))


def test_scores_are_copied_and_results_cannot_be_spoilt():
    scores = np.zeros((2, 2, 2))
    dist = Chain(scores)
    scores[:] = -np.inf
    assert dist.log_partition() == pytest.approx(np.log(4))
    with pytest.raises(ValueError, match="read-only"):
        dist.marginals()[0] = 1


def test_clamp_leaves_one_sequence_with_its_score():
    dist = Chain(np.random.default_rng(2).normal(size=(3, 2, 2)))
    for y in chains(dist.scores):
        only = dist.clamp(y)
        assert only.log_partition() == pytest.approx(dist.score(y))
        assert only.marginals() == pytest.approx(dist.parts(y))


# --- the alignment chain -----------------------------------------------------------------------------------------


def _tables(n, m, truth):
    """Null posteriors, jump, initial and final counts, by walking over every alignment."""
    null, jump, initial, final = np.zeros(n), np.zeros((m, m)), np.zeros(m), np.zeros(m + 1)
    for a, p in zip(truth.structures, truth.probabilities, strict=True):
        real = [position for position in a if position >= 0]
        for t, position in enumerate(a):
            null[t] += p * (position < 0)
        for before, after in itertools.pairwise(real):
            jump[before, after] += p
        if real:
            initial[real[0]] += p
        final[real[-1] if real else m] += p
    return null, jump, initial, final


@given(alignment_inputs(most=4, holes=True))
@LAWS
def test_alignment_chain_agrees_with_enumeration(inputs):
    truth = brute_force_alignments(*inputs)
    dist = AlignmentChain(*inputs)
    assert isinstance(dist, Structure)
    check_laws(dist, truth, rng=np.random.default_rng(0), samples=0)
    assert dist.log_partition() == pytest.approx(truth.log_partition, rel=1e-10, abs=1e-10)
    assert dist.posterior() == pytest.approx(truth.marginals, abs=1e-10)
    null, jump, initial, final = _tables(dist.n, dist.m, truth)
    assert dist.null_posterior() == pytest.approx(null, abs=1e-10)
    assert dist.jump_counts() == pytest.approx(jump, abs=1e-10)
    assert dist.initial_counts() == pytest.approx(initial, abs=1e-10)
    assert dist.final_counts() == pytest.approx(final, abs=1e-10)
    for a, score in zip(truth.structures, truth.log_scores, strict=True):
        assert dist.score(a) == pytest.approx(score, rel=1e-10, abs=1e-10)


def _inputs(n, m, null_weight=0.2, final=True, seed=5):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(m + 1, m))
    rows -= np.logaddexp.reduce(rows, axis=1, keepdims=True)
    tail = rng.normal(size=m + 1) if final else None
    return AlignmentInputs(rng.normal(size=(n, m)), rng.normal(size=n), rows[0], rows[1:], null_weight, tail)


def test_alignment_samples_have_the_posterior_frequencies():
    inputs = _inputs(3, 2)
    check_laws(AlignmentChain(*inputs), brute_force_alignments(*inputs), rng=np.random.default_rng(7), samples=3000)


def test_probabilities_of_words_and_alignments_sum_to_one():
    # Two generating words, each emitting one of two letters; without final scores this is a proper generative model.
    table, null = np.log([[0.7, 0.3], [0.4, 0.6]]), np.log([0.5, 0.5])
    _, _, initial, jump, _, _ = _inputs(1, 2, final=False)
    mass = 0.0
    for words in np.ndindex(2, 2, 2):
        emission = table[:, list(words)].T
        mass += np.exp(AlignmentChain(emission, null[list(words)], initial, jump, 0.3).log_partition())
    assert mass == pytest.approx(1.0, abs=1e-12)


def test_null_is_entered_in_place_only():
    inputs = _inputs(4, 3)
    edges = AlignmentChain(*inputs).chain.marginals()
    m = 3
    for here in range(m):
        for there in range(m):
            moved = edges[1:, [here, m + here], m + there].sum()
            assert (moved == 0) == (here != there)
    assert edges[1:, : 2 * m, 2 * m].sum() == 0  # no way back to "no real link yet"
    assert edges[0, 0, m : 2 * m].sum() == 0


def test_alignment_corners():
    nothing = AlignmentChain(*_inputs(0, 3))
    assert nothing.log_partition() == nothing.final[3] and nothing.argmax().tolist() == []
    assert nothing.jump_counts().shape == (3, 3) and nothing.initial_counts().tolist() == [0, 0, 0]
    alone = AlignmentChain(*_inputs(3, 0))
    assert alone.argmax().tolist() == [-1, -1, -1] and alone.posterior().shape == (3, 0)
    assert alone.null_posterior() == pytest.approx(np.ones(3))
    assert alone.log_partition() == pytest.approx(alone.null_emission.sum() + 3 * np.log(0.2) + alone.final[0])
    without = AlignmentChain(*_inputs(3, 2, null_weight=0.0))
    assert without.null_posterior().tolist() == [0, 0, 0]
    only = AlignmentChain(*_inputs(3, 2, null_weight=1.0))
    assert only.argmax().tolist() == [-1, -1, -1]
    with pytest.raises(InfeasibleError):
        without.with_scores(np.full((3, 2), -np.inf)).log_partition()


def test_alignment_clamp_keeps_the_score_of_one_alignment():
    inputs = _inputs(3, 2)
    dist = AlignmentChain(*inputs)
    for a in brute_force_alignments(*inputs).structures:
        only = dist.clamp(a)
        assert only.log_partition() == pytest.approx(dist.score(a))
        assert only.argmax().tolist() == list(a)


def test_alignment_chain_refuses_what_does_not_fit():
    good = _inputs(3, 2)
    with pytest.raises(ParameterError, match=r"jump: the shape should be \[2, 2\]"):
        AlignmentChain(*good._replace(jump=np.zeros((3, 2))))
    with pytest.raises(ParameterError, match="null_weight"):
        AlignmentChain(*good._replace(null_weight=1.5))
    with pytest.raises(ParameterError, match="-1 for null"):
        AlignmentChain(*good).score([0, 1, 2])
    with pytest.raises(ParameterError, match="one 1 a row"):
        AlignmentChain(*good).from_parts(np.ones((3, 2)))
    with pytest.raises(ParameterError, match="emission"):
        AlignmentChain(*good).with_scores(np.zeros((2, 3)))


def test_a_stack_of_scores_is_checked_where_it_comes_in():
    many = Chain.batch([np.zeros((2, 3, 3)), np.zeros((1, 3, 3))])
    for wrong in (np.nan, np.inf):
        values = np.zeros(27)
        values[20] = wrong
        with pytest.raises(ParameterError, match=r"sentence 1: (nan|inf) at \[0, 0, 2\]"):
            many.with_scores(many.scores.like(values))


def test_what_is_no_array_of_numbers_is_named():
    for call in (
        lambda: Chain("words"),
        lambda: Chain([[[0.0, 1.0], [2.0]]]),
        lambda: Chain(np.zeros((1, 2, 2), complex)),
    ):
        with pytest.raises(ParameterError, match="Chain: scores: an array of real numbers"):
            call()
    with pytest.raises(ParameterError, match="sentence 1: an array of real numbers"):
        Chain.batch([np.zeros((1, 2, 2)), "words"])
    with pytest.raises(ParameterError, match="2 masks were given for 1 sentences"):
        Chain.batch([np.zeros((1, 2, 2))], mask=[np.ones((1, 2), bool)] * 2)


def test_labels_are_whole_numbers():
    dist = Chain(np.zeros((2, 3, 3)))
    assert dist.log_prob([1.0, 2.0]) == dist.log_prob(np.array([1, 2], np.uint8))
    with pytest.raises(ParameterError, match="a sequence is 2 states"):
        dist.log_prob([0.5, 2.0])


def test_batches_know_parts_k_best_and_clamp():
    rng = np.random.default_rng(4)
    scores = [rng.normal(size=(n, 3, 3)) for n in (3, 0, 5)]
    many = Chain.batch(scores)
    best = many.argmax()
    assert [y.tolist() for y in many.from_parts(many.parts(best))] == [y.tolist() for y in best]
    for found, one in zip(many.k_best(4), map(Chain, scores), strict=True):
        assert [(score, y.tolist()) for score, y in found] == [(score, y.tolist()) for score, y in one.k_best(4)]
    assert many.clamp(best).log_partition().tolist() == pytest.approx([Chain(s).score(y) for s, y in zip(scores, best)])
    broken = Chain.batch([scores[0], np.full((2, 3, 3), -np.inf)])
    for method in (broken.log_partition, broken.entropy, lambda: broken.k_best(2)):
        with pytest.raises(InfeasibleError, match="sentence 1"):
            method()
    factored = FactoredChains([np.zeros((1, 2)), np.full((1, 2), -np.inf)], np.zeros((2, 2)))
    with pytest.raises(InfeasibleError, match="sentence 1"):
        factored.entropy()


def test_stacks_that_do_not_fit_their_shapes_are_refused():
    many = Chain.batch([np.zeros((2, 3, 3))])
    with pytest.raises(ParameterError, match="18 scores are needed"):
        many.with_scores(many.scores.like(np.zeros(4)))
    with pytest.raises(ParameterError, match="the offsets of a Stack"):
        Chain.batch(Stack(np.zeros(4), np.array([0, 4]), np.array([[4, 10, 10]])))
