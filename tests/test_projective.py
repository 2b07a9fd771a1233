"""Projective trees, held against enumeration, known counts and each other."""

from __future__ import annotations

from itertools import pairwise
from math import comb, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ParameterError
from isogloss.structures import Flat, InfeasibleError, ProjectiveTree, ProjectiveTrees, Stack, Structure
from isogloss.structures.semiring import LOG
from isogloss.testing import (
    BruteForce,
    brute_force_trees,
    check_batch,
    check_k_best,
    check_laws,
    check_structure,
    grandparent_parts,
    sibling_parts,
    tree_parts,
    trees,
)
from isogloss.testing.strategies import tree_scores

LAWS = settings(max_examples=50, deadline=None, derandomize=True)
ROOTS = pytest.mark.parametrize("single_root", [False, True])


def made(single_root, **options):
    return lambda scores: ProjectiveTree(scores, single_root=single_root, **options)


def enumerated(single_root, **options):
    return lambda scores: brute_force_trees(scores, projective=True, single_root=single_root, **options)


def n_trees(n, single_root):
    """Known numbers of projective trees."""
    if n == 0:
        return 1
    return comb(3 * n - 2, n - 1) // n if single_root else comb(3 * n, n) // (2 * n + 1)


def normal(n, rank=2, *, spread=2.0, holes=0.0, seed=0):
    rng = np.random.default_rng(seed)
    shape = (n + 1,) * rank
    return np.where(rng.random(shape) < holes, -np.inf, rng.normal(0, spread, shape))


def in_logs(scores, single_root=False):
    """log Z and marginals from the kernel that works in logarithms throughout."""
    from isogloss.structures._numba.eisner import log_trees

    scores = np.array(scores)
    scores.flags.writeable = False
    grad, values, none = np.zeros(scores.size), np.full(1, np.nan), np.empty(0)
    offsets, sizes, starts = np.array([0, scores.size]), np.array([len(scores)]), np.zeros(2, np.int64)
    log_trees(0, 1, LOG, scores.reshape(-1), offsets, sizes, single_root, none, starts, grad, values)
    return float(values[0]), grad.reshape(scores.shape)


# --- first order against enumeration -----------------------------------------------------------------------------


@ROOTS
def test_projective_keeps_every_law(single_root):
    check_structure(
        made(single_root),
        enumerated(single_root),
        shapes=[(n + 1, n + 1) for n in (1, 2, 3, 4, 5)],
        count=lambda shape: n_trees(shape[0] - 1, single_root),
        column=lambda scores: np.s_[:, -1],
        batch=lambda blocks: ProjectiveTree.batch(blocks, single_root=single_root),
        samples=300,
    )
    check_structure(made(single_root), enumerated(single_root), shapes=[(1, 1)], count=lambda shape: 1)


def test_checks_notice_a_wrong_tree():
    class Headed(ProjectiveTree):
        def argmax(self):
            return self.marginals()[:, 1:].argmax(axis=0)

    class Smoothed(ProjectiveTree):
        def marginals(self):
            return super().marginals() * 0.999 + 1e-4

    for broken in (Headed, Smoothed):
        with pytest.raises(AssertionError):
            check_structure(broken, enumerated(False), shapes=[(5, 5), (6, 6)], samples=0)


def test_numbers_of_trees_are_the_published_ones():
    counts = {
        root: [ProjectiveTree(np.zeros((n + 1, n + 1)), single_root=root) for n in range(1, 6)] for root in (0, 1)
    }
    assert [round(np.exp(dist.log_partition())) for dist in counts[0]] == [1, 3, 12, 55, 273]
    assert [round(np.exp(dist.log_partition())) for dist in counts[1]] == [1, 2, 7, 30, 143]
    for n, single_root in (
        (30, False),
        (30, True),
        (200, True),
        (365, False),
    ):  # the last is too long for plain numbers
        dist = ProjectiveTree(np.zeros((n + 1, n + 1)), single_root=single_root)
        assert dist.log_partition() == pytest.approx(log(n_trees(n, single_root)), rel=1e-12)


@given(tree_scores(max_n=4), st.booleans())
@LAWS
def test_projective_agrees_with_enumeration(scores, single_root):
    truth = enumerated(single_root)(scores)
    dist = ProjectiveTree(scores, single_root=single_root)
    assert isinstance(dist, Structure)
    if truth.log_partition == -np.inf:
        for method in (
            dist.log_partition,
            dist.argmax,
            dist.max_marginals,
            lambda: dist.k_best(3),
            lambda: dist.hessian_vector(np.ones(scores.shape)),
        ):
            with pytest.raises(InfeasibleError, match="finite scores"):
                method()
        return
    check_laws(dist, truth, rng=np.random.default_rng(0), samples=0)
    with_link = np.where(truth.parts > 0, truth.log_scores[:, None, None], -np.inf).max(axis=0)
    np.testing.assert_allclose(dist.max_marginals(), with_link, rtol=1e-12, atol=1e-12)
    check_k_best(dist.k_best(9), truth, 9)
    assert dist.k_best(1)[0][1].tolist() == dist.argmax().tolist()
    log_z, marginals = in_logs(scores, single_root)
    assert log_z == pytest.approx(truth.log_partition, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(marginals, truth.marginals, atol=1e-10)


@given(tree_scores(max_n=4, min_n=1), st.booleans(), st.integers(0, 99))
@LAWS
def test_covariances_and_entropies_agree_with_enumeration(scores, single_root, seed):
    truth = enumerated(single_root)(scores)
    if truth.log_partition == -np.inf:
        return
    dist, p = ProjectiveTree(scores, single_root=single_root), truth.probabilities
    direction = np.random.default_rng(seed).normal(size=scores.shape)
    sums = (truth.parts * direction).sum(axis=(1, 2))
    covariance = np.tensordot(p * (sums - p @ sums), truth.parts, 1)
    np.testing.assert_allclose(dist.hessian_vector(direction), covariance, atol=1e-10)
    assert dist.expectation(direction) == pytest.approx(p @ sums, abs=1e-10)
    # Three routes to the entropy: marginals, one pass forward, enumeration.
    with np.errstate(invalid="ignore"):
        forward = dist.log_partition() - dist.expectation(scores)
    assert dist.entropy() == pytest.approx(truth.entropy, abs=1e-9)
    assert forward == pytest.approx(truth.entropy, abs=1e-9)
    used = p[truth.log_scores > -np.inf]
    orders = [0.0, 0.3, 1.0, 2.0, 7.0, np.inf]
    found = [dist.renyi_entropy(alpha) for alpha in orders]
    wanted = [
        np.log(len(used)),
        np.log((used**0.3).sum()) / 0.7,
        truth.entropy,
        -np.log((used**2).sum()),
        np.log((used**7).sum()) / -6,
        -np.log(used.max()),
    ]
    np.testing.assert_allclose(found, wanted, atol=1e-8)
    assert all(a >= b - 1e-9 for a, b in pairwise(found))


def test_renyi_entropy_runs_into_shannons():
    dist = ProjectiveTree(normal(12))
    for alpha in (1 - 1e-5, 1 + 1e-6, 1 + 1e-9):
        assert dist.renyi_entropy(alpha) == pytest.approx(dist.entropy(), abs=1e-3)
    assert dist.renyi_entropy(0) == pytest.approx(log(n_trees(12, False)))
    with pytest.raises(ParameterError, match="alpha should be 0 or more"):
        dist.renyi_entropy(-0.5)


# --- first order at the lengths of sentences ---------------------------------------------------------------------


@ROOTS
def test_longer_sentences(single_root):
    for n in (15, 16, 17, 33, 64):  # on both sides of whole vectors
        dist = ProjectiveTree(normal(n, seed=n), single_root=single_root)
        marginals = dist.marginals()
        np.testing.assert_allclose(marginals[:, 1:].sum(axis=0), 1.0, rtol=1e-12)
        assert not marginals[:, 0].any() and not marginals.diagonal().any()
        log_z, in_log_space = in_logs(dist.scores, single_root)
        assert dist.log_partition() == pytest.approx(log_z, rel=1e-13)
        np.testing.assert_allclose(marginals, in_log_space, rtol=1e-9, atol=1e-14)
        if single_root:
            assert marginals[0].sum() == pytest.approx(1.0)


@ROOTS
def test_the_best_trees_of_longer_sentences(single_root):
    for n in (14, 15, 16, 31, 40):
        dist = ProjectiveTree(normal(n, seed=n), single_root=single_root)
        best, with_link = dist.argmax(), dist.max_marginals()
        assert dist._is_tree(best)
        ranked = dist.k_best(10)
        assert ranked[0][1].tolist() == best.tolist()
        assert [score for score, _ in ranked] == pytest.approx([dist.score(heads) for _, heads in ranked])
        assert len({tuple(heads.tolist()) for _, heads in ranked}) == 10
        assert with_link.max() == pytest.approx(dist.score(best))
        np.testing.assert_allclose(
            with_link[best, np.arange(1, n + 1)], dist.score(best)
        )  # every link of it attains it
        np.testing.assert_allclose(with_link[:, 1:].max(axis=0), dist.score(best))
        second = max(score for score in with_link[:, 1:].ravel() if score < ranked[0][0] - 1e-9)
        assert second == pytest.approx(ranked[1][0])  # the second best tree lacks a link of the best
        step, direction = 1e-5, normal(n, seed=3)
        ahead, behind = (dist.with_scores(dist.scores + e * direction).marginals() for e in (step, -step))
        np.testing.assert_allclose(dist.hessian_vector(direction), (ahead - behind) / (2 * step), atol=1e-7)


def test_shifting_columns_far_changes_nothing_but_log_z():
    rng = np.random.default_rng(5)
    for n in (40, 200):
        scores, shift = normal(n), rng.uniform(-1e4, 1e4, n + 1)
        shift[0] = 0.0
        dist, moved = ProjectiveTree(scores), ProjectiveTree(scores + shift)
        assert moved.log_partition() == pytest.approx(dist.log_partition() + shift.sum(), rel=1e-12, abs=1e-9)
        np.testing.assert_allclose(moved.marginals(), dist.marginals(), atol=1e-9)
    log_z, marginals = in_logs(scores + shift)
    assert log_z == pytest.approx(moved.log_partition(), rel=1e-12)
    np.testing.assert_allclose(marginals, moved.marginals(), atol=1e-7)


@pytest.mark.parametrize(("n", "spread"), [(150, 50.0), (200, 1e4)])
def test_large_scores_and_lengths(n, spread):
    scores = np.random.default_rng(1).uniform(-spread, spread, (n + 1, n + 1))
    dist = ProjectiveTree(scores)
    best, marginals = dist.score(dist.argmax()), dist.marginals()
    assert best <= dist.log_partition() <= best + log(n_trees(n, False))
    np.testing.assert_allclose(marginals[:, 1:].sum(axis=0), 1.0, rtol=1e-9)
    assert marginals.min() >= 0 and marginals.max() <= 1
    assert dist.score(dist.sample(np.random.default_rng(2))) > best - 200
    (first, _), (second, runner_up) = dist.k_best(2)
    assert dist.log_prob(runner_up) == pytest.approx(second - dist.log_partition(), abs=1e-6)
    assert first == pytest.approx(best)


@pytest.mark.parametrize("push", [50.0, 300.0, 690.0, 720.0, 800.0, 1e4])
def test_weights_that_vanish_in_plain_probabilities(push):
    """Two words that each want the other: no tree has both links, and every tree is e^-push below the columns' best."""
    scores = normal(4)
    scores[1, 2] = scores[2, 1] = push
    truth = enumerated(False)(scores)
    dist = ProjectiveTree(scores)
    assert dist.log_partition() == pytest.approx(truth.log_partition, rel=1e-14)
    np.testing.assert_allclose(dist.marginals(), truth.marginals, atol=1e-12)
    scores = np.where(np.arange(61) % 2 == 1, normal(60), -push)  # now and then in a longer sentence
    log_z, marginals = in_logs(scores)
    assert ProjectiveTree(scores).log_partition() == pytest.approx(log_z, rel=1e-13)
    np.testing.assert_allclose(ProjectiveTree(scores).marginals(), marginals, atol=1e-10)


@ROOTS
@pytest.mark.parametrize(("n", "spread"), [(40, 20.0), (80, 8.0), (120, 5.0), (40, 30.0), (60, 12.0)])
def test_plain_probabilities_near_the_end_of_their_range(n, spread, single_root):
    """Scaled sums down to e^-600, on both sides of where logarithms take over."""
    scores = normal(n, spread=spread, holes=0.05)
    log_z, marginals = in_logs(scores, single_root)
    dist = ProjectiveTree(scores, single_root=single_root)
    assert dist.log_partition() == pytest.approx(log_z, rel=1e-13)
    np.testing.assert_allclose(dist.marginals(), marginals, atol=1e-12)


def test_a_tree_that_is_alone():
    heads = np.array([2, 0, 4, 2, 4])
    scores = np.where(tree_parts(heads) > 0, -7e3, -np.inf)
    dist = ProjectiveTree(scores)
    assert dist.log_partition() == pytest.approx(-35e3) and dist.entropy() == 0.0
    np.testing.assert_array_equal(dist.marginals(), tree_parts(heads))
    assert dist.argmax().tolist() == heads.tolist() == dist.sample(np.random.default_rng(0)).tolist()
    assert len(dist.k_best(5)) == 1


def test_ties_are_always_broken_the_same_way():
    for single_root in (False, True):
        dist = ProjectiveTree(np.zeros((7, 7)), single_root=single_root)
        assert dist._is_tree(dist.argmax())
        assert (
            dist.argmax().tolist()
            == ProjectiveTree.batch([dist.scores] * 3, single_root=single_root).argmax()[2].tolist()
        )
        assert len({tuple(y.tolist()) for _, y in dist.k_best(10_000)}) == n_trees(6, single_root)
        np.testing.assert_array_equal(dist.max_marginals()[0, 1:], 0.0)


def test_lengths_nought_and_one():
    for single_root in (False, True):
        nothing = ProjectiveTree([[3.0]], single_root=single_root)
        assert nothing.log_partition() == 0.0 == nothing.entropy() and nothing.argmax().tolist() == []
        assert nothing.k_best(2) == [(0.0, pytest.approx(np.zeros(0)))]
        assert nothing.marginals().tolist() == [[0.0]] and nothing.score([]) == 0.0
        assert nothing.hessian_vector([[1.0]]).tolist() == [[0.0]] and nothing.renyi_entropy(2) == 0.0
        one = ProjectiveTree([[9.0, 1.5], [9.0, 9.0]], single_root=single_root)
        assert one.log_partition() == 1.5 and one.marginals().tolist() == [[0.0, 1.0], [0.0, 0.0]]
        assert one.max_marginals()[0, 1] == 1.5 and one.entropy() == 0.0


# --- second order ------------------------------------------------------------------------------------------------

KINDS = pytest.mark.parametrize("kinds", [("siblings",), ("grandparents",), ("siblings", "grandparents")])
INDICATORS = {"siblings": sibling_parts, "grandparents": grandparent_parts}


@given(tree_scores(max_n=4), st.booleans(), st.sampled_from([0.0, 0.1]), st.sampled_from([1, 2, 3]), st.integers(0, 99))
@LAWS
def test_second_order_agrees_with_enumeration(scores, single_root, holes, which, seed):
    n = len(scores) - 1
    tables = {
        kind: normal(n, 3, holes=holes, seed=seed + bit)
        for bit, kind in ((1, "siblings"), (2, "grandparents"))
        if bit & which
    }
    truth = enumerated(single_root, **tables)(scores)
    dist = ProjectiveTree(scores, single_root=single_root, **tables)
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.argmax, dist.max_marginals, lambda: dist.k_best(2)):
            with pytest.raises(InfeasibleError):
                method()
        return
    check_laws(dist, truth, rng=np.random.default_rng(0), samples=0)
    # the same with all kinds of parts in one vector: their marginals and their gradient
    kinds = [truth.parts, *(np.array([INDICATORS[kind](y) for y in truth.structures]) for kind in tables)]
    flat = np.concatenate([part.reshape(len(truth.structures), -1) for part in kinds], axis=1)
    whole = BruteForce(truth.structures, flat, truth.log_scores)
    check_laws(Flat(dist), whole, rng=np.random.default_rng(0), samples=0)
    check_k_best(dist.k_best(4), truth, 4)
    with_link = np.where(truth.parts > 0, truth.log_scores[:, None, None], -np.inf).max(axis=0)
    np.testing.assert_allclose(dist.max_marginals(), with_link, rtol=1e-12, atol=1e-12)
    assert dist.renyi_entropy(2) == pytest.approx(-np.log((truth.probabilities**2).sum()), abs=1e-9)
    y = truth.structures[int(truth.log_scores.argmax())]
    assert dist.clamp(y).log_partition() == pytest.approx(dist.score(y))


@KINDS
@ROOTS
def test_second_order_draws_and_batches(kinds, single_root):
    tables = {kind: [normal(n, 3, seed=n) for n in (4, 0, 2, 1)] for kind in kinds}
    blocks = [normal(n, seed=n + 9) for n in (4, 0, 2, 1)]
    many = ProjectiveTree.batch(blocks, single_root=single_root, **tables)
    alone = [
        ProjectiveTree(block, single_root=single_root, **{kind: tables[kind][s] for kind in kinds})
        for s, block in enumerate(blocks)
    ]
    check_batch(lambda scores: next(d for d in alone if d.scores.shape == scores.shape), lambda _: many, blocks)
    assert [y.tolist() for y in many.sample(np.random.default_rng(1))] == [
        y.tolist() for rng in [np.random.default_rng(1)] for y in (dist.sample(rng) for dist in alone)
    ]
    assert many.entropy().tolist() == [dist.entropy() for dist in alone]
    for kind in kinds:
        found = getattr(many, f"{kind[:-1]}_marginals")()
        for s, dist in enumerate(alone):
            np.testing.assert_array_equal(found[s], getattr(dist, f"{kind[:-1]}_marginals")())
    options = {kind: tables[kind][0] for kind in kinds}
    truth = enumerated(single_root, **options)(blocks[0])
    check_laws(alone[0], truth, rng=np.random.default_rng(3), samples=400)


@KINDS
@ROOTS
def test_second_order_that_says_nothing_new_is_first_order(kinds, single_root):
    """Scores of triples that look at the link alone equal scores of links; longer than enumeration could go."""
    n = 11
    links, more = normal(n), normal(n, seed=1)
    tables, plain = {}, links.copy()
    if "siblings" in kinds:
        tables["siblings"] = np.stack([more] * (n + 1), axis=1)
        plain = plain + more
    if "grandparents" in kinds:
        tables["grandparents"] = np.stack([more] * (n + 1))
        plain = plain + np.where(np.arange(n + 1)[:, None] > 0, more, 0.0)  # the root has no head
    dist, first = (
        ProjectiveTree(links, single_root=single_root, **tables),
        ProjectiveTree(plain, single_root=single_root),
    )
    assert dist.log_partition() == pytest.approx(first.log_partition(), rel=1e-13)
    np.testing.assert_allclose(dist.marginals(), first.marginals(), atol=1e-12)
    assert dist.argmax().tolist() == first.argmax().tolist()
    assert dist.entropy() == pytest.approx(first.entropy())
    for kind in kinds:
        summed = getattr(dist, f"{kind[:-1]}_marginals")().sum(axis=1 if kind == "siblings" else 0)
        want = first.marginals() * (1.0 if kind == "siblings" else np.arange(n + 1)[:, None] > 0)
        np.testing.assert_allclose(summed, want, atol=1e-12)


def test_grand_siblings_at_length_with_large_scores():
    n = 25
    dist = ProjectiveTree(normal(n), siblings=normal(n, 3, spread=1e3), grandparents=normal(n, 3, spread=1e3, seed=1))
    best = dist.score(dist.argmax())
    assert best <= dist.log_partition() <= best + log(n_trees(n, False))
    np.testing.assert_allclose(dist.marginals()[:, 1:].sum(axis=0), 1.0, rtol=1e-9)
    assert dist.score(dist.sample(np.random.default_rng(0))) > -np.inf


# --- batches and manners -----------------------------------------------------------------------------------------


@given(st.lists(tree_scores(max_n=4, allow_minus_inf=False), max_size=4), st.booleans(), st.integers(0, 99))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_batch_equals_one_by_one_in_everything(blocks, single_root, seed):
    many = ProjectiveTree.batch(blocks, single_root=single_root)
    alone = [ProjectiveTree(block, single_root=single_root) for block in blocks]
    rng = np.random.default_rng(seed)
    apart = [dist.sample(rng).tolist() for dist in alone]
    assert [y.tolist() for y in many.sample(np.random.default_rng(seed))] == apart
    assert many.log_prob(apart).tolist() == [dist.log_prob(y) for dist, y in zip(alone, apart, strict=True)]
    assert many.entropy().tolist() == [dist.entropy() for dist in alone]
    directions = [np.cos(block) for block in blocks]
    for s, moved in enumerate(many.hessian_vector(directions)):
        np.testing.assert_array_equal(moved, alone[s].hessian_vector(directions[s]))
    if blocks:
        check_batch(made(single_root), lambda b: ProjectiveTree.batch(b, single_root=single_root), blocks)


def test_a_batch_with_easy_and_hard_sentences():
    blocks = [normal(20), normal(20, spread=2e3), normal(3, spread=5e3), normal(70, spread=80), normal(0), normal(120)]
    check_batch(ProjectiveTree, ProjectiveTree.batch, blocks)
    again = ProjectiveTree.batch(blocks).with_scores(Stack.of(blocks))
    assert isinstance(again, ProjectiveTrees) and again.log_partition()[1] == ProjectiveTree(blocks[1]).log_partition()


def test_infeasible_says_what_is_missing():
    scores = np.zeros((4, 4))
    scores[:, 2] = -np.inf
    with pytest.raises(InfeasibleError, match=r"n=3, .*no head is allowed for word 2\. Give"):
        ProjectiveTree(scores).log_partition()
    with pytest.raises(InfeasibleError, match=r"sentence 1 \(one of 2\).*no head is allowed for word 2"):
        ProjectiveTree.batch([np.zeros((2, 2)), scores, scores]).marginals()
    scores = np.zeros((4, 4))
    scores[0] = -np.inf
    with pytest.raises(InfeasibleError, match="no word may hang on the root"):
        ProjectiveTree(scores).argmax()
    crossing = np.where(tree_parts([0, 4, 1, 1]) > 0, 0.0, -np.inf)
    with pytest.raises(InfeasibleError, match="the allowed links make no projective tree"):
        ProjectiveTree(crossing).sample(np.random.default_rng(0))
    two = np.where(tree_parts([0, 0]) > 0, 0.0, -np.inf)
    assert ProjectiveTree(two).log_partition() == 0.0
    with pytest.raises(InfeasibleError, match="no projective tree with one root child"):
        ProjectiveTree(two, single_root=True).max_marginals()


def test_heads_that_are_no_tree_have_no_probability():
    for n in (1, 2, 3, 4):
        for single_root in (False, True):
            dist = ProjectiveTree(normal(n), single_root=single_root)
            allowed = set(trees(n, projective=True, single_root=single_root))
            for heads in np.ndindex(*(n + 1,) * n):
                assert (dist.log_prob(heads) > -np.inf) == (heads in allowed)
    dist = ProjectiveTree(normal(4))
    with pytest.raises(ParameterError, match="not a tree of this kind"):
        dist.from_parts(tree_parts([0, 4, 1, 1]))
    for wrong in ([0, 1], [0, 1, 2, 5], [0, -1, 0, 0], [0.0, 0.5, 0.0, 0.0]):
        with pytest.raises(ParameterError, match="4 heads from 0 to 4"):
            dist.parts(wrong)


def test_projective_refuses_what_makes_no_sense():
    with pytest.raises(ParameterError, match=r"\[n\+1, n\+1\]"):
        ProjectiveTree(np.zeros((2, 3)))
    with pytest.raises(ParameterError, match=r"\[n\+1, n\+1\]"):
        ProjectiveTree(np.zeros((0, 0)))
    with pytest.raises(ParameterError, match=r"nan at \[0, 1\]"):
        ProjectiveTree([[0, np.nan], [0, 0]])
    with pytest.raises(ParameterError, match=r"siblings: the shape should be \[3, 3, 3\]"):
        ProjectiveTree(np.zeros((3, 3)), siblings=np.zeros((3, 3)))
    with pytest.raises(ParameterError, match="every sentence"):
        ProjectiveTree.batch([np.zeros((2, 2)), np.zeros((2, 3))])
    with pytest.raises(ParameterError, match="grandparents should be"):
        ProjectiveTree.batch([np.zeros((2, 2))], grandparents=[np.zeros((3, 3, 3))])
    dist = ProjectiveTree(np.zeros((3, 3)))
    with pytest.raises(ParameterError, match="k should be a positive integer"):
        dist.k_best(0)
    with pytest.raises(ParameterError, match="give siblings="):
        dist.sibling_marginals()
    with pytest.raises(ParameterError, match="values should be"):
        dist.hessian_vector([1.0])
    with pytest.raises(ParameterError, match="finite; nan"):
        dist.expectation(np.full((3, 3), np.nan))
    with pytest.raises(ParameterError, match="first order"):
        ProjectiveTree(np.zeros((3, 3)), siblings=np.zeros((3, 3, 3))).hessian_vector(np.zeros((3, 3)))
    with pytest.raises(ParameterError, match="not one structure"):
        dist.from_parts(dist.marginals())
    with pytest.raises(ParameterError, match="one for each kind"):
        dist.with_part_scores(dist.scores, dist.scores)


def test_scores_are_copied_and_results_cannot_be_spoilt():
    scores = np.zeros((3, 3))
    dist = ProjectiveTree(scores)
    scores[:] = -np.inf
    assert dist.log_partition() == pytest.approx(log(3))
    with pytest.raises(ValueError, match="read-only"):
        dist.marginals()[0] = 1


def test_k_best_has_room_for_what_there_is_however_many_are_asked_for():
    for single_root, count in ((False, 55), (True, 30)):
        assert len(ProjectiveTree(np.zeros((5, 5)), single_root=single_root).k_best(10**12)) == count
    assert len(ProjectiveTree(np.zeros((1, 1)), single_root=True).k_best(np.int64(7))) == 1


def test_stacks_are_checked_where_they_come_in():
    for wrong in (np.nan, np.inf):
        values = np.zeros(9)
        values[5] = wrong
        with pytest.raises(ParameterError, match=r"scores: sentence 0: (nan|inf) at \[1, 2\]"):
            ProjectiveTrees(Stack(values, np.array([0, 9]), np.array([[3, 3]])))
