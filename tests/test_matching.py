"""Matchings held against lists of all link sets, linear programs, and scipy's assignment."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, minimize

from isogloss.errors import ParameterError
from isogloss.structures import Fertility, Flat, InfeasibleError, Matching, Matchings, Pairs, Structure, neighbour_pairs
from isogloss.testing import (
    brute_force_matching,
    check_batch,
    check_k_best,
    check_laws,
    check_structure,
    link_sets,
    matching_score,
    matchings,
)
from isogloss.testing.strategies import MatchingInputs, matching_inputs

LAWS = settings(max_examples=40, deadline=None, derandomize=True)
FEW = settings(max_examples=25, deadline=None, derandomize=True)


def made(inputs: MatchingInputs, **options) -> Matching:
    scores, source_null, target_null, source_penalty, target_penalty, pairs = inputs
    fertility = None
    if source_penalty is not None or target_penalty is not None:
        fertility = Fertility(source_penalty, target_penalty)
    return Matching(scores, source_null, target_null, fertility, None if pairs is None else Pairs(*pairs), **options)


def random_inputs(n, m, *, fertility=1, pairs=False, seed=0, holes=0.0) -> MatchingInputs:
    rng = np.random.default_rng(seed)
    steps = [None, None]
    if fertility > 1:
        steps = [np.sort(rng.exponential(1.0, (words, fertility - 1)), axis=1) for words in (n, m)]
    scores = np.where(rng.random((n, m)) < holes, -np.inf, rng.normal(0.5, 1.5, (n, m)))
    both = None
    if pairs:
        near = neighbour_pairs(n, m, monotone=0.0, inverted=0.0, one_to_two=0.0).links
        both = near, rng.normal(0, 1, len(near))
    # nulls below 0, so that fertility stays convex
    return MatchingInputs(scores, -rng.exponential(1.0, n), -rng.exponential(1.0, m), *steps, both)


# --- laws --------------------------------------------------------------------------------------------------------


def count(shape):
    n, m = shape
    return sum(math.comb(n, k) * math.comb(m, k) * math.factorial(k) for k in range(min(n, m) + 1))


def test_matching_keeps_every_law():
    check_structure(
        Matching,
        brute_force_matching,
        shapes=[(0, 0), (0, 2), (2, 0), (1, 1), (1, 4), (3, 1), (2, 3), (4, 3), (4, 4)],
        count=count,
        batch=Matching.batch,
        samples=300,
    )
    assert isinstance(Matching(np.zeros((1, 2))), Structure)


def test_matching_with_nulls_and_fertility_keeps_every_law():
    rng = np.random.default_rng(4)
    null = rng.normal(size=5), rng.normal(size=5)
    penalty = np.sort(rng.exponential(1, (5, 2)), axis=1), np.sort(rng.exponential(1, (5, 1)), axis=1)

    def parts(scores):
        n, m = scores.shape
        return null[0][:n], null[1][:m], penalty[0][:n], penalty[1][:m]

    def structure(scores):
        a, b, c, d = parts(scores)
        return Matching(scores, a, b, Fertility(c, d))

    def batch(blocks):
        each = [parts(block) for block in blocks]
        return Matchings(blocks, [p[0] for p in each], [p[1] for p in each], [Fertility(p[2], p[3]) for p in each])

    shapes = [(0, 3), (1, 4), (4, 1), (3, 2), (2, 4), (3, 3)]
    check_structure(
        structure, lambda scores: brute_force_matching(scores, *parts(scores)), shapes=shapes, batch=batch, samples=300
    )


def test_matching_with_pairs_keeps_every_law():
    def parts(scores):
        inputs = random_inputs(*scores.shape, fertility=2, pairs=True, seed=7)
        return inputs[1:]

    check_structure(
        lambda scores: made(MatchingInputs(scores, *parts(scores))),
        lambda scores: brute_force_matching(scores, *parts(scores)),
        shapes=[(0, 2), (1, 3), (3, 2), (2, 4)],
        batch=lambda blocks: Matchings(
            blocks,
            *([parts(block)[side] for block in blocks] for side in (0, 1)),
            [Fertility(*parts(block)[2:4]) for block in blocks],
            [Pairs(*parts(block)[4]) for block in blocks],
        ),
        samples=200,
    )


def check_all_kinds(dist, truth, inputs):
    """log Z, marginals of every kind, entropy, best; by walking over every set of links."""
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.argmax, lambda: dist.sample(np.random.default_rng(0))):
            with pytest.raises(InfeasibleError, match="must have a link"):
                method()
        return
    check_laws(dist, truth, rng=np.random.default_rng(0), samples=5)
    expected = [np.zeros(scores.shape) for scores in dist.part_scores()]
    for y, p in zip(truth.structures, truth.probabilities, strict=True):
        kinds = dist.kinds_of(y)
        for kind, total in zip(kinds, expected, strict=True):
            total += p * kind
        scored = sum(float((s[k > 0]).sum()) for s, k in zip(dist.part_scores(), kinds, strict=True))
        assert scored == pytest.approx(matching_score(y, *inputs), abs=1e-9)
        assert dist.score(y) == pytest.approx(matching_score(y, *inputs), abs=1e-9)
    for have, want in zip(dist.part_marginals(), expected, strict=True):
        assert have.shape == want.shape and have == pytest.approx(want, abs=1e-10)


@given(matching_inputs(most=5))
@LAWS
def test_plain_matchings_agree_with_enumeration(inputs):
    check_all_kinds(made(inputs), brute_force_matching(*inputs), inputs)


@given(matching_inputs(most=4, required=True))
@LAWS
def test_words_that_must_have_a_link(inputs):
    check_all_kinds(made(inputs), brute_force_matching(*inputs), inputs)


@given(matching_inputs(most=4, fertility=3))
@LAWS
def test_fertility_agrees_with_enumeration(inputs):
    assume(len(inputs.scores) * inputs.scores.shape[1] <= 12)
    check_all_kinds(made(inputs), brute_force_matching(*inputs), inputs)


@given(matching_inputs(most=4, fertility=2, pairs=True, required=True))
@FEW
def test_pairs_agree_with_enumeration(inputs):
    assume(inputs.scores.size <= 9)
    check_all_kinds(made(inputs), brute_force_matching(*inputs), inputs)


# --- the best ----------------------------------------------------------------------------------------------------


def test_counts_of_partial_matchings():
    for n, m, known in ((1, 1, 2), (2, 2, 7), (3, 3, 34), (4, 4, 209), (5, 5, 1546), (2, 3, 13), (6, 6, 13327)):
        assert count((n, m)) == known
        assert np.exp(Matching(np.zeros((n, m))).log_partition()) == pytest.approx(known)
        assert np.exp(Matching(np.zeros((n, m)), fertility=1).log_partition()) == pytest.approx(known)
    assert np.exp(Matching(np.zeros((3, 4)), fertility=2).log_partition()) == pytest.approx(len(link_sets(3, 4, 2, 2)))


@pytest.mark.parametrize(("n", "m"), [(7, 7), (12, 9), (9, 12), (30, 30), (33, 30), (40, 80), (1, 50), (50, 1)])
def test_best_matching_equals_scipy(n, m):
    rng = np.random.default_rng(n * 100 + m)
    for spread, whole in ((1.0, False), (1e4, False), (2.0, True)):
        scores = rng.normal(0, spread, (n, m))
        scores = np.where(rng.random((n, m)) < 0.2, -np.inf, np.round(scores) if whole else scores)
        nulls = rng.normal(0, spread, n), rng.normal(0, spread, m)
        gain = np.maximum(scores - nulls[0][:, None] - nulls[1], 0.0)
        rows, columns = linear_sum_assignment(gain, maximize=True)
        dist = Matching(scores, *nulls)
        links = dist.argmax()
        assert dist.score(links) == pytest.approx(gain[rows, columns].sum() + nulls[0].sum() + nulls[1].sum())
        assert links == Matching(scores, *nulls).argmax()
        assert all(type(i) is int and type(j) is int for i, j in links)


def test_close_bids_end():
    # a contest of many words for few, with differences near rounding: the auction must not go on for ever
    scores = 1.0 + 1e-15 * np.random.default_rng(0).integers(0, 9, (60, 59))
    assert len(Matching(scores).argmax()) == 59
    assert len(Matching(scores, source_null=-1.0).argmax()) == 59


def test_nothing_positive_gives_nothing_and_ties_are_settled():
    for fertility in (None, 2):
        assert Matching(np.full((3, 4), -1.0), fertility=fertility).argmax() == frozenset()
        assert Matching(np.zeros((3, 4)), fertility=fertility).argmax() == frozenset()
        assert Matching(np.full((3, 4), -np.inf), fertility=fertility).argmax() == frozenset()
        equal = Matching(np.ones((3, 4)), fertility=fertility)
        assert len(equal.argmax()) == (3 if fertility is None else 6)
        assert equal.argmax() == equal.argmax() == equal.batch([equal.scores] * 2, fertility=fertility).argmax()[1]


def test_one_word_against_many():
    scores = np.array([[0.5, 2.0, -1.0, 1.0]])
    assert Matching(scores).argmax() == {(0, 1)}
    assert Matching(scores, fertility=3).argmax() == {(0, 0), (0, 1), (0, 3)}
    tied = Matching(scores.T, fertility=Fertility(np.zeros((4, 0)), [[0.75, 0.75]]))
    assert tied.argmax() == {(1, 0), (3, 0)}
    assert tied.argmax("milp") == tied.argmax("lp") == tied.argmax()


@given(matching_inputs(most=4, fertility=3, holes=False))
@FEW
def test_programs_find_what_flow_finds(inputs):
    dist = made(inputs)
    best = dist.score(dist.argmax())
    assert dist.solve("milp").score == pytest.approx(best, abs=1e-7)
    relaxed = dist.relaxation()
    nulls_low = all(
        (null <= (penalty[:, 0] if penalty.shape[1] else np.inf)).all()
        for null, penalty in ((inputs.source_null, inputs.source_penalty), (inputs.target_null, inputs.target_penalty))
    )
    if nulls_low:
        assert dist.solve().method in ("matching", "flow")
        assert relaxed.value == pytest.approx(best, abs=1e-7)
        assert relaxed.integral
    else:
        assert relaxed.value >= best - 1e-7
        with pytest.raises(ParameterError, match="milp"):
            dist.solve("flow")


def test_relaxation_of_matching_and_fertility_is_integral():
    for seed in range(6):
        inputs = random_inputs(8, 10, fertility=1 + seed % 3, seed=seed)
        dist = made(inputs)
        gold = dist.parts(dist.sample(np.random.default_rng(seed)))
        for scores in (dist.scores, dist.scores + 1.0 - 4.0 * gold):  # with and without a loss term
            again = dist.with_scores(scores)
            relaxed = again.relaxation()
            assert relaxed.integral and relaxed.value == pytest.approx(again.score(again.argmax()), abs=1e-7)
            value = sum(float((s * p).sum()) for s, p in zip(again.part_scores(), relaxed.parts, strict=True))
            assert value == pytest.approx(relaxed.value, abs=1e-7)


@pytest.mark.parametrize("fertility", [2, 3])
def test_flow_equals_enumeration_of_sixteen_links(fertility):
    for seed in range(4 - fertility):
        inputs = random_inputs(4, 4, fertility=fertility, seed=seed)
        truth = brute_force_matching(*inputs)
        dist = made(inputs)
        assert dist.solve("flow").score == pytest.approx(truth.best)
        assert dist.solve().method == "flow"


def test_flow_of_long_sentences_equals_the_program():
    for seed in range(3):
        dist = made(random_inputs(25, 20, fertility=3, seed=seed, holes=0.2))
        flow, program = dist.solve("flow"), dist.solve("milp")
        assert flow.score == pytest.approx(program.score, abs=1e-6)
        dist = dist.with_scores(dist.scores * 1e3)
        assert dist.solve("flow").score == pytest.approx(dist.solve("milp").score, rel=1e-9)


def test_fertility_of_one_and_large_penalties_are_plain_matching():
    for seed in range(5):
        scores = np.random.default_rng(seed).normal(0.5, 1, (5, 6))
        plain = Matching(scores)
        steep = Matching(scores, fertility=Fertility(np.full((5, 2), 1e6), np.full((6, 2), 1e6)))
        never = Matching(scores, fertility=Fertility(np.full((5, 1), np.inf), np.full((6, 1), np.inf)))
        one = Matching(scores, fertility=1)
        for other in (steep, never, one):
            assert other.argmax() == plain.argmax()
        assert never.log_partition() == pytest.approx(plain.log_partition(), abs=1e-12)
        assert never.marginals() == pytest.approx(plain.marginals(), abs=1e-12)


def test_without_penalties_fertility_runs_up_to_the_limit():
    links = Matching(np.ones((4, 4)), fertility=2).argmax()
    degrees = np.bincount([i for i, _ in links]), np.bincount([j for _, j in links])
    assert degrees[0].tolist() == degrees[1].tolist() == [2, 2, 2, 2]


@given(matching_inputs(most=4, pairs=True), st.integers(0, 99))
@FEW
def test_raising_a_pair_never_lowers_the_best_nor_switches_it_off(inputs, seed):
    assume(inputs.pairs is not None and len(inputs.pairs[1]) and inputs.scores.size <= 12)
    dist = made(inputs._replace(pairs=(inputs.pairs[0], np.abs(inputs.pairs[1]).clip(max=5.0))))
    before = dist.solve()
    on = dist.kinds_of(before.links)[5]
    at = np.random.default_rng(seed).integers(len(on))
    raised = list(dist.part_scores())
    raised[5] = raised[5] + 0.7 * (np.arange(len(on)) == at)
    after = dist.with_part_scores(*raised).solve()
    assert after.score >= before.score - 1e-7
    if on[at]:
        assert after.score == pytest.approx(before.score + 0.7, abs=1e-6)


def test_integer_program_of_matching_with_pairs_equals_enumeration():
    for seed in range(4):
        inputs = random_inputs(4, 4, pairs=True, seed=seed)
        dist = made(inputs)
        truth = brute_force_matching(*inputs)
        found = dist.solve()
        assert found.method == "milp" and found.optimal
        assert found.score == pytest.approx(truth.best, abs=1e-7)
        assert dist.relaxation().value >= truth.best - 1e-7
        rounded = dist.solve("lp")
        assert rounded.score <= truth.best + 1e-7 <= rounded.bound + 2e-7
        assert dist.score(dist.argmax("lp")) == pytest.approx(rounded.score)
        gold = dist.parts(truth.structures[-1 - seed])
        loss = 1.0 - 4.0 * gold  # loss-augmented decoding is decoding
        truth = brute_force_matching(inputs.scores + loss, *inputs[1:])
        assert dist.with_scores(dist.scores + loss).solve().score == pytest.approx(truth.best, abs=1e-7)


def test_pairs_can_make_links_worth_their_cost():
    scores = np.full((4, 4), -0.4)  # no link pays alone, nor do two; three and four in a row do
    dist = Matching(scores, pairs=neighbour_pairs(4, 4, monotone=0.7))
    assert dist.argmax() == dist.argmax("lp") == {(i, i) for i in range(4)}
    assert dist.solve().score == pytest.approx(3 * 0.7 - 4 * 0.4)
    cheap = Matching(scores, pairs=neighbour_pairs(4, 4, monotone=0.5))
    assert cheap.argmax() == frozenset()


def test_pairs_of_no_score_change_nothing():
    scores = np.random.default_rng(0).normal(size=(5, 4))
    pairs = neighbour_pairs(5, 4, monotone=0.0, inverted=0.0, one_to_two=0.0)
    assert Matching(scores, pairs=pairs).argmax() == Matching(scores).argmax()
    assert Matching(scores, pairs=pairs).log_partition() == pytest.approx(Matching(scores).log_partition())


def test_rounding_without_repair_may_break_limits():
    # two source words share one target: both at a half in the relaxation, by symmetry of a frustrated triangle
    pairs = Pairs([(0, 0, 1, 1), (1, 1, 2, 0), (0, 1, 2, 0), (0, 1, 1, 0), (2, 1, 1, 0), (0, 0, 2, 1)], np.full(6, 1.0))
    dist = Matching(np.zeros((3, 2)), pairs=pairs)
    assert dist.relaxation().value >= dist.solve().score
    rough = dist.solve("lp", repair=False)
    neat = dist.solve("lp")
    assert np.isfinite(neat.score) and (rough.score == -np.inf or rough.score <= neat.score)
    with pytest.raises(ParameterError, match="has 2 links, where 1 may be"):
        dist.parts({(0, 0), (1, 0)})


def test_time_limit_falls_back_to_rounding():
    rng = np.random.default_rng(3)
    near = neighbour_pairs(14, 14, monotone=0.0, inverted=0.0, one_to_two=0.0).links
    pairs = Pairs(near, rng.normal(0, 2, len(near)))
    dist = Matching(rng.normal(0, 1, (14, 14)), fertility=2, pairs=pairs)
    hurried = dist.solve("milp", time_limit=0.05)
    assert np.isfinite(hurried.score) and hurried.bound >= hurried.score - 1e-6
    assert dist.score(hurried.links) == hurried.score


def test_transposing_transposes():
    for seed in range(8):
        inputs = random_inputs(5, 7, fertility=1 + seed % 3, pairs=seed % 2 == 1, seed=seed)
        dist = made(inputs)
        turned = made(
            MatchingInputs(
                inputs.scores.T, inputs.target_null, inputs.source_null, inputs.target_penalty, inputs.source_penalty,
                None if inputs.pairs is None else (inputs.pairs[0][:, [1, 0, 3, 2]], inputs.pairs[1]),
            )
        )  # fmt: skip
        assert turned.argmax() == {(j, i) for i, j in dist.argmax()}
        if dist.exact:
            assert turned.log_partition() == pytest.approx(dist.log_partition())
            assert turned.marginals() == pytest.approx(dist.marginals().T, abs=1e-12)


def test_shifting_a_word_shifts_the_sum():
    # its links and its null: every matching has exactly one of them
    rng = np.random.default_rng(0)
    scores, null = rng.normal(size=(3, 4)), rng.normal(size=3)
    shift = np.array([0.0, 1.25, 0.0])
    plain, shifted = Matching(scores, null), Matching(scores + shift[:, None], null + shift)
    assert shifted.log_partition() == pytest.approx(plain.log_partition() + 1.25)
    assert shifted.marginals() == pytest.approx(plain.marginals(), abs=1e-12)


def test_loss_augmented_decoding_and_its_constant():
    rng = np.random.default_rng(5)
    missed, spurious = 3.0, 1.0
    for _ in range(10):
        scores = rng.normal(0, 1, (4, 3))
        dist = Matching(scores)
        gold = dist.parts(dist.sample(rng))
        augmented = dist.with_scores(scores + spurious - (missed + spurious) * gold)
        truth = max(
            dist.score(y) + missed * (gold * (1 - dist.parts(y))).sum() + spurious * (dist.parts(y) * (1 - gold)).sum()
            for y in matchings(4, 3)
        )
        assert augmented.score(augmented.argmax()) + missed * gold.sum() == pytest.approx(truth)


# --- k best ------------------------------------------------------------------------------------------------------


@given(matching_inputs(most=4, required=True), st.integers(1, 30))
@FEW
def test_k_best_matchings(inputs, k):
    truth = brute_force_matching(*inputs)
    if truth.log_partition == -np.inf:
        with pytest.raises(InfeasibleError):
            made(inputs).k_best(k)
    else:
        check_k_best(made(inputs).k_best(k), truth, k)


def test_k_best_where_nothing_is_allowed_is_an_error_with_fertility_and_pairs_too():
    forbidden, pairs = np.full((2, 2), -np.inf), neighbour_pairs(2, 2, monotone=1.0)
    for options in ({}, {"fertility": 2}, {"pairs": pairs}):
        with pytest.raises(InfeasibleError, match="source word 0"):
            Matching(forbidden, -np.inf, **options).k_best(3)


def test_numbers_of_numpy_are_numbers():
    dist = Matching(np.zeros((2, 2)), fertility=np.int64(2))
    assert len(dist.k_best(np.int32(3))) == 3
    assert Matching.batch([np.zeros((2, 2))], fertility=np.int64(2)).log_partition()[0] == dist.log_partition()


def test_clamped_batches_allow_one_structure_alone():
    rng = np.random.default_rng(5)
    scores = [rng.normal(size=shape) for shape in ((3, 3), (2, 4), (0, 2), (14, 15))]
    for options in ({}, {"fertility": 2}):
        many = Matching.batch(scores, -0.5, **options)
        best = many.argmax()
        alone = many.clamp(best)
        assert alone.argmax() == best == alone.sample(rng)
        assert alone.log_partition() == pytest.approx([many[s].score(y) for s, y in enumerate(best)])
        assert alone.entropy() == pytest.approx(np.zeros(4), abs=1e-9)
        assert alone.marginals().values == pytest.approx(many.parts(best).values, abs=1e-9)
        assert alone.with_scores(alone.scores).argmax() == best


def test_pairs_for_all_sentences_of_a_batch():
    pairs = neighbour_pairs(2, 2, monotone=1.0)
    both = Matching.batch([np.zeros((2, 2)), np.ones((2, 2))], pairs=pairs)
    assert both.argmax() == [Matching(scores, pairs=pairs).argmax() for scores in (np.zeros((2, 2)), np.ones((2, 2)))]


def test_errors_in_batches_name_the_sentence():
    fine, forbidden = np.zeros((2, 2)), np.full((2, 2), -np.inf)
    for options in ({}, {"fertility": 2}, {"pairs": [None, neighbour_pairs(2, 2, monotone=1.0)]}):
        many = Matching.batch([fine, forbidden], -np.inf, **options)
        rng = np.random.default_rng(0)
        for method, rest in ((many.argmax, ()), (many.log_partition, ()), (many.k_best, (2,)), (many.sample, (rng,))):
            with pytest.raises(InfeasibleError, match="sentence 1"):
                method(*rest)


def test_k_best_with_fertility_and_pairs():
    for seed in range(3):
        for pairs in (False, True):
            inputs = random_inputs(3, 2, fertility=2, pairs=pairs, seed=seed)
            check_k_best(made(inputs).k_best(7), brute_force_matching(*inputs), 7)
    everything = Matching(np.zeros((2, 2)), fertility=2).k_best(100)
    assert len(everything) == 16


# --- sums --------------------------------------------------------------------------------------------------------


def test_which_method_is_said():
    small, large = Matching(np.zeros((12, 12))), Matching(np.zeros((25, 25)))
    assert small.exact and small.method == "exact" and small.convergence is None
    assert not large.exact and large.method == "bp" and large.convergence.converged
    assert Matching(np.zeros((1, 200))).exact and Matching(np.zeros((200, 8))).exact
    pairs = neighbour_pairs(5, 5, monotone=1.0)
    assert Matching(np.zeros((5, 5)), pairs=pairs).exact
    assert not Matching(np.zeros((9, 9)), pairs=neighbour_pairs(9, 9, monotone=1.0)).exact
    with pytest.raises(ParameterError, match='inference="bp"'):
        Matching(np.zeros((40, 40)), inference="exact").log_partition()
    many = Matching.batch([np.zeros((3, 3)), np.zeros((25, 25))])
    assert many.exact.tolist() == [True, False]
    assert many.convergence[0] is None and many.convergence[1] == large.convergence
    assert many.log_partition()[1] == large.log_partition()


def test_beliefs_are_exact_on_trees():
    rng = np.random.default_rng(0)
    for shape in ((1, 6), (6, 1), (0, 3)):
        scores, nulls = rng.normal(0, 2, shape), (rng.normal(size=shape[0]), rng.normal(size=shape[1]))
        for fertility in (None, 2):
            exact = Matching(scores, *nulls, fertility)
            beliefs = Matching(scores, *nulls, fertility, inference="bp")
            assert beliefs.method == "bp" and beliefs.convergence.converged
            assert beliefs.log_partition() == pytest.approx(exact.log_partition(), abs=1e-9)
            for have, want in zip(beliefs.part_marginals(), exact.part_marginals(), strict=True):
                assert have == pytest.approx(want, abs=1e-9)
            assert beliefs.entropy() == pytest.approx(exact.entropy(), abs=1e-8)
    # a path of links, with a pair at its end that makes no loop
    path = np.full((3, 3), -np.inf)
    for (i, j), score in zip([(0, 0), (0, 1), (1, 1), (1, 2), (2, 2)], rng.normal(0, 2, 5), strict=True):
        path[i, j] = score
    exact, beliefs = Matching(path), Matching(path, inference="bp")
    assert beliefs.log_partition() == pytest.approx(exact.log_partition(), abs=1e-9)
    assert beliefs.marginals() == pytest.approx(exact.marginals(), abs=1e-9)
    apart = np.full((2, 2), -np.inf)
    apart[0, 0], apart[1, 1] = rng.normal(size=2)
    for score in (1.5, -2.0, -np.inf):
        both = [Matching(apart, pairs=Pairs([(0, 0, 1, 1)], [score]), inference=how) for how in ("exact", "bp")]
        assert both[1].log_partition() == pytest.approx(both[0].log_partition(), abs=1e-9)
        for have, want in zip(both[1].part_marginals(), both[0].part_marginals(), strict=True):
            assert have == pytest.approx(want, abs=1e-9)


def test_beliefs_are_close_and_are_the_derivative_of_their_log_partition():
    for seed, (fertility, pairs) in enumerate([(1, False), (2, False), (1, True), (2, True)]):
        inputs = random_inputs(3, 4, fertility=fertility, pairs=pairs, seed=seed)
        if pairs:
            inputs = inputs._replace(pairs=(inputs.pairs[0], 0.3 * inputs.pairs[1]))
        truth, dist = brute_force_matching(*inputs), made(inputs, inference="bp")
        assert dist.convergence.converged
        assert abs(dist.log_partition() - truth.log_partition) < 0.35
        assert np.abs(dist.marginals() - truth.marginals).max() < 0.12
        flat = Flat(dist)
        direction = np.cos(np.arange(len(flat.scores)))
        direction[sum(a.size for a in dist.part_scores()[:3]) : -max(1, len(dist._pair_scores))] = 0.0
        if not pairs:
            direction[sum(a.size for a in dist.part_scores()[:3]) :] = 0.0
        up, down = (flat.with_scores(flat.scores + sign * 1e-4 * direction).log_partition() for sign in (1, -1))
        assert (up - down) / 2e-4 == pytest.approx(float(direction @ flat.marginals()), abs=1e-6)


def test_beliefs_keep_the_sums_of_words():
    scores = np.random.default_rng(1).normal(0, 2, (30, 35))
    dist = Matching(scores)
    source, target = dist.null_marginals()
    assert dist.marginals().sum(axis=1) + source == pytest.approx(np.ones(30), abs=1e-8)
    assert dist.marginals().sum(axis=0) + target == pytest.approx(np.ones(35), abs=1e-8)
    assert dist.log_partition() >= dist.score(dist.argmax())


def test_gradient_of_all_kinds_of_parts():
    inputs = random_inputs(3, 4, fertility=3, pairs=True, seed=2)
    inputs = inputs._replace(
        source_penalty=inputs.source_penalty + [0.1, 0.5], target_penalty=inputs.target_penalty + [0.1, 0.5]
    )
    flat = Flat(made(inputs))
    direction = np.cos(np.arange(len(flat.scores)))
    up, down = (flat.with_scores(flat.scores + sign * 1e-5 * direction).log_partition() for sign in (1, -1))
    assert (up - down) / 2e-5 == pytest.approx(float(direction @ flat.marginals()), rel=1e-6)
    y = flat.argmax()
    assert float(flat.scores @ flat.parts(y)) == pytest.approx(flat.dist.score(y))


def test_walk_has_the_right_distribution():
    rng = np.random.default_rng(0)
    for fertility, pairs in ((1, False), (2, True)):
        inputs = random_inputs(3, 3, fertility=fertility, pairs=pairs, seed=3)
        truth, dist = brute_force_matching(*inputs), made(inputs, inference="bp")
        draws = [dist.sample(rng, sweeps=20) for _ in range(2500)]
        frequencies = np.mean([dist.parts(y) for y in draws], axis=0)
        assert frequencies == pytest.approx(truth.marginals, abs=0.045)
    perfect = Matching(rng.normal(size=(4, 4)), -np.inf, -np.inf, inference="bp")
    seen = {perfect.sample(rng, sweeps=10) for _ in range(100)}
    assert len(seen) > 10 and all(len(y) == 4 for y in seen)
    with_never = Matching(np.zeros((3, 3)), pairs=Pairs([(0, 0, 1, 1)], [-np.inf]), inference="bp")
    assert not any({(0, 0), (1, 1)} <= with_never.sample(rng) for _ in range(50))


def test_clamp_leaves_one_set_with_its_score():
    for fertility, pairs in ((1, False), (2, False), (2, True)):
        inputs = random_inputs(2, 3, fertility=fertility, pairs=pairs, seed=1)
        dist = made(inputs)
        for y in brute_force_matching(*inputs).structures:
            only = dist.clamp(y)
            assert only.log_partition() == pytest.approx(dist.score(y))
            assert only.argmax() == y == only.sample(np.random.default_rng(0))
            assert only.entropy() == pytest.approx(0.0, abs=1e-9)


# --- numbers -----------------------------------------------------------------------------------------------------


def test_large_scores():
    rng = np.random.default_rng(0)
    scores = rng.uniform(-1e4, 1e4, (6, 8))
    truth = Matching(scores)
    gain = np.maximum(scores, 0)
    rows, columns = linear_sum_assignment(gain, maximize=True)
    assert truth.log_partition() == pytest.approx(gain[rows, columns].sum(), rel=1e-9)
    assert truth.marginals().max() <= 1 + 1e-9 and not np.isnan(truth.marginals()).any()
    large = Matching(rng.uniform(-1e4, 1e4, (200, 190)))
    rows, columns = linear_sum_assignment(np.maximum(large.scores, 0), maximize=True)
    assert large.score(large.argmax()) == pytest.approx(np.maximum(large.scores, 0)[rows, columns].sum())
    assert large.log_partition() == pytest.approx(large.score(large.argmax()), rel=1e-4)
    assert not np.isnan(large.marginals()).any()
    wide = Matching(rng.uniform(-1e4, 1e4, (5, 200)))
    assert wide.exact and wide.log_partition() == pytest.approx(wide.score(wide.argmax()), rel=1e-6)


@pytest.mark.parametrize("spread", [10.0, 100.0, 1e3, 1e4])
def test_beliefs_do_not_settle_too_early(spread):
    # many words compete for few: beliefs stand still long before the messages do, far from the answer
    for seed in range(3):
        scores = np.random.default_rng(seed).uniform(-spread, spread, (30, 8))
        exact, beliefs = (Matching(scores, inference=how) for how in ("exact", "bp"))
        assert beliefs.convergence.converged
        assert beliefs.log_partition() == pytest.approx(exact.log_partition(), abs=1.0, rel=1e-9)
    tied = Matching(np.full((13, 12), spread), inference="bp")  # the war is long: ended, or said not to be
    if spread > 100:
        with pytest.warns(RuntimeWarning, match="not settled"):
            tied.log_partition()
    else:
        assert tied.log_partition() == pytest.approx(Matching(tied.scores, inference="exact").log_partition(), abs=4.0)


def test_forced_words_in_beliefs():
    scores = np.random.default_rng(2).normal(0, 1, (20, 20))
    dist = Matching(scores, -np.inf, -np.inf)
    assert not dist.exact
    assert dist.marginals().sum(axis=0) == pytest.approx(np.ones(20), abs=1e-6)
    assert len(dist.argmax()) == 20
    rows, columns = linear_sum_assignment(scores, maximize=True)
    assert dist.score(dist.argmax()) == pytest.approx(scores[rows, columns].sum())
    barred = scores.copy()
    barred[:, :3] = -np.inf
    with pytest.raises(InfeasibleError, match="target word 0 must have a link"):
        Matching(barred, -np.inf, -np.inf).log_partition()
    with pytest.raises(InfeasibleError, match="cannot all have one at once"):
        Matching(np.zeros((20, 19)), -np.inf).log_partition()
    with pytest.raises(InfeasibleError, match=r"sentence 1.*cannot all"):
        Matching.batch([np.zeros((2, 2)), np.zeros((3, 2))], source_null=-np.inf).log_partition()
    with pytest.raises(InfeasibleError, match=r"sentence 1.*cannot all"):
        Matching.batch([np.zeros((2, 2)), np.zeros((3, 2))], source_null=-np.inf).argmax()


# --- batches -----------------------------------------------------------------------------------------------------


@given(st.lists(matching_inputs(most=4), max_size=5), st.integers(0, 99))
@FEW
def test_batch_equals_one_by_one_in_everything(listed, seed):
    each = [made(inputs) for inputs in listed]
    many = Matchings([d.scores for d in each], [d.source_null for d in each], [d.target_null for d in each])
    assert len(many) == len(each)
    assert many.argmax() == [d.argmax() for d in each]
    assert [{(i, j) for i, j in enumerate(p) if j >= 0} for p in many.partners()] == many.argmax()
    assert many.log_partition().tolist() == [d.log_partition() for d in each]
    assert many.entropy() == pytest.approx([d.entropy() for d in each])
    for s, (have, one) in enumerate(zip(many.null_marginals(), each, strict=True)):
        assert all(np.array_equal(a, b) for a, b in zip(have, one.null_marginals(), strict=True))
        assert np.array_equal(many.marginals()[s], one.marginals())
    rng = np.random.default_rng(seed)
    apart = [d.sample(rng) for d in each]
    assert many.sample(np.random.default_rng(seed)) == apart
    assert many.log_prob(apart) == pytest.approx([d.log_prob(y) for d, y in zip(each, apart, strict=True)])
    again = many.with_scores([d.scores * 2.0 for d in each])
    assert again.log_partition().tolist() == [d.with_scores(d.scores * 2.0).log_partition() for d in each]


def test_batch_of_long_sentences_with_every_option():
    rng = np.random.default_rng(0)
    blocks = [rng.normal(0, 2, shape) for shape in ((20, 25), (3, 4), (26, 18), (0, 5))]
    for fertility in (None, 2):
        for inference in ("auto", "bp"):
            check_batch(
                lambda s, f=fertility, i=inference: Matching(s, 0.5, -0.5, f, inference=i),
                lambda b, f=fertility, i=inference: Matching.batch(b, 0.5, -0.5, f, inference=i),
                blocks,
            )


# --- projection --------------------------------------------------------------------------------------------------


def feasible(dist, z, most, tolerance=1e-8):
    inside = -tolerance <= z.min(initial=0) and z.max(initial=0) <= 1 + tolerance
    return inside and (z.sum(axis=0) <= most + tolerance).all() and (z.sum(axis=1) <= most + tolerance).all()


@pytest.mark.parametrize("most", [1, 2])
def test_projection_is_the_nearest_point(most):
    rng = np.random.default_rng(most)
    for n, m, spread in ((1, 1, 1.0), (3, 5, 0.3), (5, 5, 1.0), (8, 6, 10.0), (20, 25, 1.0)):
        dist = Matching(np.zeros((n, m)), fertility=most)
        point = rng.normal(0.4, spread, (n, m))
        z = dist.project_onto_polytope(point)
        assert feasible(dist, z, most)
        assert dist.project_onto_polytope(z) == pytest.approx(z, abs=1e-8)
        for _ in range(20):
            corner = dist.parts(Matching(rng.normal(size=(n, m)), fertility=most).argmax())
            assert ((point - z) * (corner - z)).sum() <= 1e-6 * (1 + spread)


@pytest.mark.parametrize("most", [1, 2])
def test_projection_agrees_with_a_quadratic_program(most):
    rng = np.random.default_rng(most)
    for n, m in ((2, 3), (4, 3), (4, 4)):
        point = rng.normal(0.5, 0.7, (n, m))
        sums = np.concatenate([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
        found = minimize(
            lambda z, v=point: (0.5 * ((z - v.ravel()) ** 2).sum(), z - v.ravel()),
            np.zeros(n * m),
            jac=True,
            bounds=[(0, 1)] * (n * m),
            constraints={"type": "ineq", "fun": lambda z, a=sums: most - a @ z, "jac": lambda z, a=sums: -a},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        z = Matching(np.zeros((n, m)), fertility=most).project_onto_polytope(point)
        assert z.ravel() == pytest.approx(found.x, abs=1e-6)


def test_projection_with_forbidden_and_required():
    scores = np.zeros((3, 3))
    scores[0, 1] = -np.inf
    z = Matching(scores).project_onto_polytope(np.full((3, 3), 0.8))
    assert z[0, 1] == 0 and feasible(None, z, 1)
    must = Matching(np.zeros((2, 3)), source_null=-np.inf).project_onto_polytope(np.full((2, 3), -1.0))
    assert must == pytest.approx(np.full((2, 3), 1 / 3), abs=1e-8)
    with pytest.raises(ParameterError, match="finite numbers"):
        Matching(np.zeros((2, 2))).project_onto_polytope(np.zeros((2, 3)))


# --- what is refused ---------------------------------------------------------------------------------------------


def test_neighbour_pairs_are_built_in_bulk():
    pairs = neighbour_pairs(3, 4, monotone=1.0, inverted=2.0, one_to_two=3.0)
    listed = {}
    for (i, j), (k, m) in itertools.combinations(itertools.product(range(3), range(4)), 2):
        kind = {(1, 1): 1.0, (1, -1): 2.0, (0, 1): 3.0, (1, 0): 3.0}.get((k - i, m - j))
        if kind is not None:
            listed[frozenset([(i, j), (k, m)])] = kind
    found = {frozenset([(i, j), (k, m)]): s for (i, j, k, m), s in zip(pairs.links.tolist(), pairs.scores, strict=True)}
    assert found == listed and len(pairs.scores) == len(listed)
    for n, m in ((0, 3), (1, 1), (1, 4)):
        some = neighbour_pairs(n, m, monotone=1.0, one_to_two=1.0)
        assert len(some.links) == max(0, n * (m - 1)) + max(0, (n - 1) * m) + max(0, (n - 1) * (m - 1))
        Matching(np.zeros((n, m)), fertility=2, pairs=some).argmax()
    with pytest.raises(ParameterError, match=r"neighbour_pairs: monotone.*\[2, 3\]"):
        neighbour_pairs(3, 4, monotone=np.zeros((3, 4)))


def test_what_makes_no_sense_is_refused():
    scores = np.zeros((2, 3))
    with pytest.raises(ParameterError, match=r"\[any, any\], not \[2\]"):
        Matching([0.0, 1.0])
    with pytest.raises(ParameterError, match="nan at"):
        Matching([[np.nan]])
    with pytest.raises(ParameterError, match=r"target_null: the shape should be \[3\], not \[2\]"):
        Matching(scores, target_null=[0.0, 1.0])
    with pytest.raises(
        ParameterError, match=r"target word 1: the penalty falls from 2.0 for link 2 to 1.0 for link 3.*accum"
    ):
        Matching(scores, fertility=Fertility(np.zeros((2, 2)), [[0, 0], [2, 1], [0, 0]]))
    with pytest.raises(ParameterError, match="source word 0: link 2 has the penalty -1"):
        Matching(scores, fertility=Fertility([[-1.0], [0.0]], np.zeros((3, 1))))
    with pytest.raises(ParameterError, match="fertility should be 1 or more"):
        Matching(scores, fertility=0)
    with pytest.raises(ParameterError, match="fertility should be a Fertility"):
        Matching(scores, fertility=[1.0])
    with pytest.raises(ParameterError, match=r"pair 1 is \[0, 0, 2, 0\], outside"):
        Matching(scores, pairs=Pairs([(0, 0, 1, 1), (0, 0, 2, 0)], [1.0, 1.0]))
    with pytest.raises(ParameterError, match=r"same link \[1, 1\] twice"):
        Matching(scores, pairs=Pairs([(1, 1, 1, 1)], [1.0]))
    with pytest.raises(ParameterError, match="inference should be"):
        Matching(scores, inference="fast")
    dist = Matching(scores)
    with pytest.raises(ParameterError, match="method should be"):
        dist.argmax("guess")
    with pytest.raises(ParameterError, match="outside the sentences"):
        dist.parts({(2, 0)})
    with pytest.raises(ParameterError, match="source word 1 has 2 links"):
        dist.log_prob({(1, 0), (1, 2)})
    with pytest.raises(ParameterError, match="not one structure"):
        dist.from_parts(dist.marginals())
    with pytest.raises(ParameterError, match="k should be a positive"):
        dist.k_best(0)
    with pytest.raises(ParameterError, match="one for each of 2 sentences"):
        Matching.batch([scores, scores], source_null=[0.0])
    with pytest.raises(ParameterError, match="sentence 1 has 2 words, and 3 nulls"):
        Matching.batch([scores, scores], source_null=[0.0, np.zeros(3)])


def test_beliefs_that_do_not_settle_are_said(monkeypatch):
    monkeypatch.setattr("isogloss.structures.matching.sums.ITERATIONS", 3)
    scores = np.random.default_rng(0).normal(0, 3, (15, 15))
    dist = Matching(scores)
    with pytest.warns(RuntimeWarning, match="has not settled after 3"):
        dist.log_partition()
    assert not dist.convergence.converged and dist.convergence.iterations == 3
    with pytest.warns(RuntimeWarning, match=r"Matchings.*has not settled"):
        Matching.batch([scores, np.zeros((2, 2))]).log_partition()
