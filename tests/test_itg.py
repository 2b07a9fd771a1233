"""Inversion transduction grammars, held against alignments listed by what they are."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ParameterError
from isogloss.structures import Blocks, Flat, InfeasibleError, Itg, Itgs, Structure, Terminal
from isogloss.structures.itg_parts import is_separable, terminals
from isogloss.testing import (
    brute_force_itg,
    check_batch,
    check_k_best,
    check_laws,
    check_structure,
    is_block_itg,
    itg_alignments,
)
from isogloss.testing.strategies import ItgInputs, itg_inputs

LAWS = settings(max_examples=60, deadline=None)
FEW = settings(max_examples=25, deadline=None)

# Haghighi and others 2009: distinct alignments one to one, with blocks of up to 2, and of up to 4 words.
COUNTS = {
    (1, 1): (2, 2, 2), (1, 2): (3, 4, 4), (1, 3): (4, 6, 7), (1, 4): (5, 8, 11), (2, 2): (7, 11, 11),
    (2, 3): (13, 24, 26), (2, 4): (21, 45, 55), (3, 3): (34, 74, 80), (3, 4): (73, 186, 215), (4, 4): (207, 615, 715),
    (5, 5): (1466, 5914, 7340), (0, 3): (1, 1, 1), (2, 0): (1, 1, 1), (0, 0): (1, 1, 1),
}  # fmt: skip
SIZES = (1, 2, 4)
SMALL = [(0, 0), (0, 2), (3, 0), (1, 1), (1, 3), (2, 3), (3, 2), (3, 4), (4, 4)]


def zeros(shape, size):
    return Itg(np.zeros(shape), blocks=None if size == 1 else Blocks.from_links(np.zeros(shape), size))


def made(inputs: ItgInputs, **options) -> Itg:
    blocks = None if inputs.blocks is None else Blocks(*inputs.blocks)
    return Itg(inputs.scores, inputs.source_null, inputs.target_null, blocks=blocks, **options)


def drawn(rng, n_source, n_target, size=1, spread=2.0, **options) -> Itg:
    shape = (n_source, n_target)
    blocks = Blocks(*(rng.normal(0, spread, (*shape, size - 1)) for _ in range(2))) if size > 1 else None
    nulls = rng.normal(0, spread, n_source), rng.normal(0, spread, n_target)
    return Itg(rng.normal(0, spread, shape), *nulls, blocks=blocks, **options)


def transposed(dist: Itg) -> Itg:
    swapped = None
    if dist.blocks is not None:
        swapped = Blocks(*(side.transpose(1, 0, 2) for side in reversed(dist.blocks)))
    return Itg(dist.scores.T, dist.target_null, dist.source_null, blocks=swapped)


# --- counts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", COUNTS)
def test_alignments_are_as_many_as_published(shape):
    for size, count in zip(SIZES, COUNTS[shape], strict=True):
        assert np.exp(zeros(shape, size).log_partition()) == pytest.approx(count, rel=1e-12)
        assert len(itg_alignments(*shape, size)) == count


def test_the_enumerator_finds_what_the_definition_says():
    for n_source, n_target, size in [(2, 3, 2), (3, 3, 1), (3, 3, 3), (2, 4, 4)]:
        cells = list(itertools.product(range(n_source), range(n_target)))
        subsets = (frozenset(itertools.compress(cells, bits)) for bits in itertools.product((0, 1), repeat=len(cells)))
        assert {links for links in subsets if is_block_itg(links, size)} == set(
            itg_alignments(n_source, n_target, size)
        )


def test_without_nulls_permutations_are_the_separable_ones():
    counts = [np.exp(Itg(np.zeros((n, n)), -np.inf, -np.inf).log_partition()) for n in range(1, 8)]
    assert counts == pytest.approx([1, 2, 6, 22, 90, 394, 1806])
    with pytest.raises(InfeasibleError, match="cannot be null"):
        Itg(np.zeros((2, 3)), -np.inf, -np.inf).log_partition()
    word = Blocks.from_links(np.zeros((1, 3)), 3)
    assert Itg(np.zeros((1, 3)), -np.inf, -np.inf, blocks=word).argmax() == {(0, 0), (0, 1), (0, 2)}


def test_separable_means_no_2413_and_no_3142():
    for n in range(7):
        for order in itertools.permutations(range(n)):
            four = (tuple(np.argsort(np.argsort(part))) for part in itertools.combinations(order, 4))
            assert is_separable(order) == (not {(1, 3, 0, 2), (2, 0, 3, 1)} & set(four))


# --- everything against enumeration ----------------------------------------------------------------------------------


def test_laws_of_structures():
    nulls = {n: np.random.default_rng(n).normal(0, 1, n) for n in range(6)}
    check_structure(
        lambda scores: Itg(scores, nulls[scores.shape[0]], nulls[scores.shape[1]]),
        lambda scores: brute_force_itg(scores, nulls[scores.shape[0]], nulls[scores.shape[1]]),
        shapes=SMALL,
        batch=lambda many: Itg.batch(many, [nulls[len(s)] for s in many], [nulls[s.shape[1]] for s in many]),
    )
    check_structure(Itg, brute_force_itg, shapes=[(2, 3), (4, 3)], count=lambda shape: COUNTS[tuple(sorted(shape))][0])


@LAWS
@given(itg_inputs())
def test_sums_posteriors_and_best_agree_with_enumeration(inputs):
    truth = brute_force_itg(*inputs, flat=True)
    dist = made(inputs)
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.marginals, dist.argmax, dist.null_marginals, dist.entropy):
            with pytest.raises(InfeasibleError):
                method()
        return
    check_laws(Flat(dist), truth, rng=np.random.default_rng(0), samples=0)
    links = brute_force_itg(*inputs)
    np.testing.assert_allclose(dist.marginals(), links.marginals, atol=1e-10)
    assert dist.entropy() == pytest.approx(truth.entropy, abs=1e-8)
    kinds = truth.marginals
    n_source, n_target = inputs.scores.shape
    nulls = kinds[inputs.scores.size :][: n_source + n_target]
    np.testing.assert_allclose(np.concatenate(dist.null_marginals()), nulls, atol=1e-10)
    blocks = np.concatenate([side.ravel() for side in dist.block_marginals()])
    np.testing.assert_allclose(blocks, kinds[inputs.scores.size + n_source + n_target :], atol=1e-10)
    assert dist.score(dist.argmax()) == pytest.approx(truth.best, abs=1e-9)
    for row, y in list(enumerate(truth.structures))[::7]:
        assert np.exp(dist.log_prob(y)) == pytest.approx(truth.probabilities[row], abs=1e-12)
        assert dist.from_parts(dist.parts(y)) == y
        if truth.log_scores[row] > -np.inf:
            assert dist.clamp(y).log_partition() == pytest.approx(truth.log_scores[row], abs=1e-9)
            assert dist.clamp(y).argmax() == y


@FEW
@given(itg_inputs(most=3, size=3, holes=False))
def test_samples_come_as_often_as_they_should(inputs):
    check_laws(Flat(made(inputs)), brute_force_itg(*inputs, flat=True), rng=np.random.default_rng(3), samples=300)


@LAWS
@given(itg_inputs(holes=False))
def test_the_simple_grammar_has_the_same_best(inputs):
    dist = made(inputs)
    if not dist.n_source * dist.n_target:
        return
    for options in ({}, {"free_nulls": True}):
        simple = made(inputs, normal_form=False, **options)
        assert simple.argmax() == dist.argmax()
        assert simple.log_partition() >= dist.log_partition() - 1e-9


def catalan_brackets(links):
    """Ways to build a separable order of links by joining two neighbouring runs at a time."""
    order = [j for _, j in sorted(links)]

    def ways(run):
        if len(run) <= 1:
            return 1
        cuts = range(1, len(run))
        halves = [(run[:c], run[c:]) for c in cuts]
        return sum(ways(a) * ways(b) for a, b in halves if max(a) < min(b) or max(b) < min(a))

    return ways(order)


def test_the_simple_grammar_counts_brackets():
    rng = np.random.default_rng(5)
    dist = drawn(rng, 4, 3, normal_form=False)
    truth = brute_force_itg(dist.scores, dist.source_null, dist.target_null, flat=True)
    weights = np.exp(truth.log_scores) * [catalan_brackets(y) for y in truth.structures]
    assert dist.log_partition() == pytest.approx(np.log(weights.sum()), abs=1e-10)
    p = weights / weights.sum()
    np.testing.assert_allclose(Flat(dist).marginals(), p @ truth.parts, atol=1e-10)
    assert np.exp([dist.log_prob(y) for y in truth.structures]) == pytest.approx(p, abs=1e-12)
    free = Itg(dist.scores, dist.source_null, dist.target_null, normal_form=False, free_nulls=True)
    assert free.log_partition() > dist.log_partition()


def test_free_nulls_have_the_published_derivations():
    for n, count in [(1, 5), (2, 290), (3, 34088)]:
        naive = Itg(np.zeros((n, n)), normal_form=False, free_nulls=True)
        assert np.exp(naive.log_partition()) == pytest.approx(count, rel=1e-10)
    dist = drawn(np.random.default_rng(0), 3, 2, normal_form=False, free_nulls=True)
    flat, step = Flat(dist), 1e-5
    for at in range(len(flat.scores)):
        up, down = (flat.with_scores(flat.scores + s * step * np.eye(len(flat.scores))[at]) for s in (1, -1))
        assert (up.log_partition() - down.log_partition()) / (2 * step) == pytest.approx(flat.marginals()[at], abs=1e-7)
    assert {dist.sample(np.random.default_rng(s)) for s in range(40)} <= set(itg_alignments(3, 2))


# --- invariants ------------------------------------------------------------------------------------------------------


@LAWS
@given(itg_inputs(most=6, size=1, holes=False))
def test_rows_and_null_sum_to_one(inputs):
    dist = made(inputs)
    left, right = dist.null_marginals()
    np.testing.assert_allclose(dist.marginals().sum(axis=1) + left, 1, atol=1e-10)
    np.testing.assert_allclose(dist.marginals().sum(axis=0) + right, 1, atol=1e-10)


@LAWS
@given(itg_inputs(most=6, holes=False))
def test_terminals_that_cover_a_word_and_null_sum_to_one(inputs):
    dist = made(inputs)
    links, left, right, *_ = dist.part_marginals()
    source, target = left + links.sum(axis=1), right + links.sum(axis=0)
    for m, (down, across) in enumerate(zip(*(np.moveaxis(side, 2, 0) for side in dist.block_marginals()), strict=True)):
        source += across.sum(axis=1)
        target += down.sum(axis=0)
        for step in range(m + 2):
            source[step:] += down.sum(axis=1)[: len(source) - step]
            target[step:] += across.sum(axis=0)[: len(target) - step]
    np.testing.assert_allclose(source, 1, atol=1e-10)
    np.testing.assert_allclose(target, 1, atol=1e-10)


@LAWS
@given(itg_inputs(most=6, holes=False))
def test_swapping_the_languages_transposes_the_answer(inputs):
    dist = made(inputs)
    other = transposed(dist)
    assert other.log_partition() == pytest.approx(dist.log_partition(), abs=1e-9)
    np.testing.assert_allclose(other.marginals(), dist.marginals().T, atol=1e-9)
    assert other.argmax() == {(j, i) for i, j in dist.argmax()}


@LAWS
@given(itg_inputs(most=5, size=1), st.data())
def test_a_constant_for_one_word_changes_no_posterior(inputs, data):
    dist = made(inputs)
    if not dist.n_source:
        return
    word = data.draw(st.integers(0, dist.n_source - 1))
    scores, nulls = dist.scores.copy(), dist.source_null.copy()
    scores[word] += 7.5
    nulls[word] += 7.5
    moved = dist.with_scores(scores, nulls)
    try:
        value = dist.log_partition()
    except InfeasibleError:
        return
    assert moved.log_partition() == pytest.approx(value + 7.5, abs=1e-9)
    np.testing.assert_allclose(moved.marginals(), dist.marginals(), atol=1e-10)


@FEW
@given(itg_inputs(most=4, holes=False), st.integers(0, 2**32 - 1))
def test_adding_to_links_moves_log_z_by_the_posteriors_of_links(inputs, seed):
    dist, step = made(inputs), 1e-5
    direction = np.random.default_rng(seed).normal(0, 1, dist.scores.shape)
    up, down = (dist.adding(sign * step * direction).log_partition() for sign in (1, -1))
    assert (up - down) / (2 * step) == pytest.approx(float((direction * dist.marginals()).sum()), abs=1e-5)


# --- k best ----------------------------------------------------------------------------------------------------------


@FEW
@given(itg_inputs(most=3), st.integers(1, 12))
def test_k_best_are_the_k_best(inputs, k):
    truth = brute_force_itg(*inputs)
    if truth.log_partition > -np.inf:
        check_k_best(made(inputs).k_best(k), truth, k)
        return
    with pytest.raises(InfeasibleError):
        made(inputs).k_best(k)


def test_k_best_by_splitting_are_the_same():
    rng = np.random.default_rng(11)
    for n_source, n_target, size in [(5, 4, 1), (4, 6, 3), (0, 3, 1), (3, 3, 4)]:
        dist = drawn(rng, n_source, n_target, size=size)
        simple = Itg(dist.scores, dist.source_null, dist.target_null, False, dist.blocks)
        forward, backward = rng.random((2, n_source, n_target))
        for one, other in [(dist, simple), (dist.prune(forward, backward, cell_limit=2), None)]:
            lazy = one.k_best(30)
            assert lazy[0][1] == one.argmax()
            if other is not None:
                split = other.k_best(30)
                assert [links for _, links in lazy] == [links for _, links in split]
    target = drawn(rng, 4, 4, size=2).minimum_loss({(0, 1), (1, 3), (2, 0), (3, 2)})
    assert len(target.k_best(100)) == 4
    scores = [score for score, _ in target.k_best(4)]
    assert np.logaddexp.reduce(scores) == pytest.approx(target.log_partition())
    assert scores == sorted(scores, reverse=True)


# --- alignments of least loss ----------------------------------------------------------------------------------------


def loss(links, sure, possible):
    return len(sure - links) + len(links - sure - possible)


def test_the_example_of_figure_3():
    sure, possible = {(0, 0), (1, 2), (2, 1), (2, 3), (4, 4)}, {(3, 4)}
    dist = zeros((5, 5), 4)
    target = dist.minimum_loss(sure, possible)
    assert len(sure) - target.level() == 1
    assert np.exp(target.log_partition()) == pytest.approx(4)
    best = dist.best_in_class(sure, possible)
    assert loss(best, sure, possible) == 1
    assert best == dist.best_in_class(sure, possible)
    assert len(best) == 4


@FEW
@given(itg_inputs(most=4, holes=False), st.integers(0, 2**32 - 1), st.booleans())
def test_minimum_loss_is_the_sum_over_the_nearest(inputs, seed, within):
    dist = made(inputs)
    truth = brute_force_itg(*inputs, flat=True)
    marks = np.random.default_rng(seed).choice(3, dist.scores.shape, p=[0.5, 0.2, 0.3])
    sure = {(int(i), int(j)) for i, j in np.argwhere(marks == 2)}
    possible = {(int(i), int(j)) for i, j in np.argwhere(marks == 1)}
    losses = np.array([loss(y, sure, possible) for y in truth.structures])
    nearest = losses == losses.min()
    if within:
        nearest &= np.array([y <= sure | possible for y in truth.structures])
    target = dist.minimum_loss(sure, possible, within=within)
    assert len(sure) - target.level() == losses.min()
    scores = truth.log_scores[nearest]
    assert target.log_partition() == pytest.approx(np.logaddexp.reduce(scores), abs=1e-9)
    p = np.exp(scores - np.logaddexp.reduce(scores))
    np.testing.assert_allclose(Flat(target).marginals(), p @ truth.parts[nearest], atol=1e-10)
    best = target.argmax()
    assert dist.score(best) == pytest.approx(scores.max(), abs=1e-7)
    assert loss(best, sure, possible) == losses.min()
    assert loss(target.sample(np.random.default_rng(seed)), sure, possible) == losses.min()
    assert loss(dist.best_in_class(sure, possible), sure, possible) == losses.min()
    as_masks = dist.minimum_loss(marks == 2, marks == 1, within=within)
    assert as_masks.log_partition() == target.log_partition()
    far = next((y for y in truth.structures if loss(y, sure, possible) > losses.min()), None)
    if far is not None:
        assert target.log_prob(far) == -np.inf
    assert target.log_prob(best) == pytest.approx(scores.max() - np.logaddexp.reduce(scores), abs=1e-9)


def test_footnote_6_does_not_hold_for_blocks():
    dist, sure = zeros((3, 1), 4), {(0, 0), (2, 0)}
    assert np.exp(dist.minimum_loss(sure).log_partition()) == pytest.approx(2)
    assert np.exp(dist.minimum_loss(sure, within=False).log_partition()) == pytest.approx(3)


def test_gradient_of_the_likelihood_of_the_nearest():
    rng, step = np.random.default_rng(8), 1e-5
    dist = drawn(rng, 4, 5, size=3)
    target = dist.minimum_loss({(0, 0), (1, 3), (2, 1), (3, 1)}, {(3, 4)})
    gradient = Flat(target).marginals() - Flat(dist).marginals()
    scores = Flat(dist).scores
    direction = np.where(np.isfinite(scores), rng.normal(0, 1, len(scores)), 0.0)

    def objective(t):
        moved, near = (Flat(d).with_scores(Flat(d).scores + t * direction) for d in (dist, target))
        return near.log_partition() - moved.log_partition()

    slope = (objective(step) - objective(-step)) / (2 * step)
    assert slope == pytest.approx(float(gradient @ direction), abs=1e-6)


def test_no_sure_links_leave_all_subsets_of_possible_ones():
    target = zeros((3, 3), 1).minimum_loss((), {(0, 0), (1, 1), (1, 2)})
    assert target.level() == 0
    assert np.exp(target.log_partition()) == pytest.approx(6)


# --- pruning ---------------------------------------------------------------------------------------------------------


def posteriors(rng, n_source, n_target, noise=0.02):
    """Two directional posteriors near the diagonal: most links sure, some not."""
    both = []
    for _ in range(2):
        p = rng.random((n_source, n_target)) ** 8 * noise
        for i in range(n_source):
            j = min(n_target - 1, max(0, round(i * n_target / n_source) + int(rng.integers(-1, 2))))
            p[i, j] = 0.97 if rng.random() < 0.9 else 0.5
        both.append(p)
    return both


def breaks(cell, links):
    i, k, j, h = cell
    return sum((i <= a < k) != (j <= b < h) for a, b in links)


@FEW
@given(itg_inputs(most=5, holes=False), st.integers(0, 2**32 - 1))
def test_pruning_with_open_thresholds_changes_nothing(inputs, seed):
    dist = made(inputs)
    forward, backward = np.random.default_rng(seed).random((2, *dist.scores.shape))
    same = dist.prune(forward, backward, cell_limit=np.inf, negligible=0.0)
    large = dist.prune(forward, backward, confident=0.2, cell_limit=100, negligible=0.0)
    for pruned in (same, large):
        assert pruned.log_partition() == dist.log_partition()
        np.testing.assert_array_equal(Flat(pruned).marginals(), Flat(dist).marginals())
        assert pruned.argmax() == dist.argmax()
    cut = dist.prune(forward, backward, confident=0.5, cell_limit=1, negligible=0.3)
    assert cut.log_partition() <= dist.log_partition() + 1e-9
    assert cut.unpruned().log_partition() == dist.log_partition()


def cells_of(links, n_source, n_target):
    """Cells that the normal form builds for an alignment one to one, by its definition: the smallest box of every run
    that is a child, and the nulls that belong to it."""
    points = sorted(links)
    cells = set()

    def box(run):
        return run[0][0], run[-1][0] + 1, min(j for _, j in run), max(j for _, j in run) + 1

    def children(run, straight):
        """Finest cuts of a run into parts in the same order."""
        parts, start = [], 0
        for cut in range(1, len(run) + 1):
            first, rest = run[start:cut], run[cut:]
            low, high = [j for _, j in first], [j for _, j in rest]
            if not rest or (max(low) < min(high) if straight else min(low) > max(high)):
                parts.append(first)
                start = cut
        return parts

    def build(run):
        cells.add(box(run))
        if len(run) == 1:
            return
        straight = len(children(run, True)) > 1
        parts = children(run, straight)
        for at, part in enumerate(parts[:-1]):
            build(part)
            after = parts[at + 1]
            i, k, j, h = box(part)
            for right in range(k, after[0][0] + 1):
                cells.add((i, right, j, h))
            k = after[0][0]
            bounds = box(after)
            outer = range(h, bounds[2] + 1) if straight else range(bounds[3], j + 1)
            cells.update((i, k, j, edge) if straight else (i, k, edge, h) for edge in outer)
            rest = [point for later in parts[at + 1 :] for point in later]
            cells.add(box(rest))
        build(parts[-1])

    if points:
        build(points)
    return cells


def test_pruned_sums_are_over_what_can_still_be_built():
    rng = np.random.default_rng(2)
    for limit in (0, 1, 2):
        for trial in range(8):
            n_source, n_target = rng.integers(2, 5, 2) if trial else (4, 6)
            dist = drawn(rng, n_source, n_target)
            forward, backward = rng.random((2, n_source, n_target))
            highest = np.maximum(forward, backward)
            sure = [(i, j) for i, j in np.argwhere(highest > 0.7)]
            pruned = dist.prune(forward, backward, confident=0.7, cell_limit=limit, negligible=0.2)
            truth = brute_force_itg(dist.scores, dist.source_null, dist.target_null)
            left = [
                row
                for row, y in enumerate(truth.structures)
                if all(highest[link] >= 0.2 for link in y)
                and all(breaks(cell, sure) <= limit for cell in cells_of(y, n_source, n_target))
            ]
            scores = truth.log_scores[left]
            assert pruned.log_partition() == pytest.approx(np.logaddexp.reduce(scores), abs=1e-9)
            p = np.exp(scores - np.logaddexp.reduce(scores))
            np.testing.assert_allclose(pruned.marginals(), np.tensordot(p, truth.parts[left], 1), atol=1e-10)
            kept = {truth.structures[row] for row in left}
            assert pruned.argmax() == truth.structures[left[int(scores.argmax())]]
            for row, y in enumerate(truth.structures):
                want = truth.log_scores[row] - pruned.log_partition() if y in kept else -np.inf
                assert pruned.log_prob(y) == pytest.approx(want, abs=1e-9)
            assert pruned.sample(rng) in kept
            assert len(pruned.k_best(500)) == len(kept)


@pytest.mark.parametrize("n_source, n_target", [(7, 9), (12, 10), (30, 26)])
def test_pruned_posteriors_are_the_derivatives_of_the_pruned_sum(n_source, n_target):
    rng, step = np.random.default_rng(n_source), 1e-5
    for limit, size in [(1, 1), (3, 3), (6, 2)]:
        dist = drawn(rng, n_source, n_target, size=size, spread=1.0)
        forward, backward = posteriors(rng, n_source, n_target)
        pruned = dist.prune(forward, backward, cell_limit=limit, confident=0.4)
        flat = Flat(pruned)
        direction = np.where(flat.scores > -np.inf, rng.normal(0, 1, len(flat.scores)), 0.0)
        up, down = (flat.with_scores(flat.scores + sign * step * direction).log_partition() for sign in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(float(flat.marginals() @ direction), rel=1e-6, abs=1e-6)
        if size == 1:
            left, right = pruned.null_marginals()
            np.testing.assert_allclose(pruned.marginals().sum(axis=1) + left, 1, atol=1e-11)
            np.testing.assert_allclose(pruned.marginals().sum(axis=0) + right, 1, atol=1e-11)


def test_forty_words_with_forty_are_fast_when_pruned():
    rng, best = np.random.default_rng(0), np.inf
    forward, backward = posteriors(rng, 40, 40)
    dist = Itg(np.log(np.sqrt(forward * backward)), -3.0, -3.0).prune(forward, backward)
    for _ in range(4):
        begin = time.perf_counter()
        dist.with_scores(dist.scores).marginals()
        best = min(best, time.perf_counter() - begin)
    assert best < 0.5


def test_when_pruning_leaves_nothing_the_whole_chart_is_used():
    scores = np.array([[1.0, 2.0], [3.0, 0.5]])
    dist = Itg(scores, -np.inf, -np.inf)
    nothing = dist.prune(np.zeros((2, 2)), np.zeros((2, 2)))
    assert nothing.log_partition() == dist.log_partition()
    assert nothing.argmax() == dist.argmax() == {(0, 1), (1, 0)}
    assert nothing.log_prob({(0, 1), (1, 0)}) == pytest.approx(dist.log_prob({(0, 1), (1, 0)}))
    assert len(nothing.k_best(5)) == 2
    many = Itgs([nothing, dist])
    assert many.log_partition().tolist() == [dist.log_partition()] * 2
    nulls = Itg(scores).prune(np.zeros((2, 2)), np.zeros((2, 2)))
    assert nulls.argmax() == frozenset()
    assert nulls.log_partition() == 0.0


def test_pruning_drops_a_block_when_all_its_links_are_dropped():
    dist = zeros((3, 1), 3)
    forward = np.array([[0.5], [0.0], [0.0]])
    assert np.exp(dist.prune(forward, np.zeros((3, 1))).log_partition()) == pytest.approx(4)  # null, 0, 0-1, 0-1-2


# --- numerics --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [100.0, 1e4])
def test_large_scores_are_right(spread):
    rng = np.random.default_rng(4)
    for size in (1, 3):
        dist = drawn(rng, 4, 3, size=size, spread=spread)
        truth = brute_force_itg(dist.scores, dist.source_null, dist.target_null, dist.blocks, flat=True)
        assert dist.log_partition() == pytest.approx(truth.log_partition, rel=1e-13)
        np.testing.assert_allclose(Flat(dist).marginals(), truth.marginals, atol=1e-9)
        assert dist.score(dist.argmax()) == pytest.approx(truth.best)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.floats(-4, 4), st.floats(-4, 4)), min_size=2, max_size=12), st.sampled_from([1, 40, 400]))
def test_wide_numbers_add_and_multiply_like_logarithms(factors, scale):
    from isogloss.structures._numba.itg_rows import LOG_STEP, SINGLE, add_dot, add_product, clear, log_of, put, settle

    n = len(factors)
    m, e = np.zeros(2 * n + 4), np.zeros(2 * n + 4, np.int64)
    logs = np.array(factors) * scale - LOG_STEP / 2  # where exponents change, so that equal products have unequal ones
    for at, (left, right) in enumerate(logs):
        put(m, e, at + 4, left, 0)
        put(m, e, at + 4 + n, right, 0)
    clear(m, e, 1, 3)
    add_dot(m, e, 1, 4, 4 + n, n)
    for at in range(n):
        add_product(m, e, 2, at + 4, at + 4 + n, SINGLE)
    for at in (1, 2):
        settle(m, e, at, SINGLE)
        assert 2.0**-128 <= m[at] < 2.0**128
        assert log_of(m, e, at) == pytest.approx(np.logaddexp.reduce(logs.sum(axis=1)), rel=1e-13, abs=1e-11)


def test_plain_numbers_give_way_before_they_lose_anything():
    scores = np.full((4, 4), -np.inf)
    for gap in [*range(0, 300, 37), *range(660, 780, 5)]:  # what the order 2413 would be worth above the best there is
        scores[[0, 1, 2, 3], [1, 3, 0, 2]] = gap
        dist = Itg(scores)
        counts = np.array([1, 4, 6, 4])  # all subsets of the four links but the whole
        assert dist.log_partition() == pytest.approx(np.logaddexp.reduce(np.log(counts) + gap * np.arange(4)), abs=1e-9)
        weights = np.exp(np.log(counts) + gap * (np.arange(4.0) - 3))
        expected = weights @ np.arange(4) / weights.sum() / 4
        np.testing.assert_allclose(dist.marginals()[scores > -np.inf], expected, rtol=1e-10)


class WideItg(Itg):
    """Sums in wide numbers from the beginning."""

    _wide = True


@LAWS
@given(itg_inputs(most=7), st.booleans(), st.integers(0, 2**32 - 1))
def test_plain_and_wide_numbers_agree(inputs, normal_form, seed):
    blocks = None if inputs.blocks is None else Blocks(*inputs.blocks)
    plain, wide = (kind(*inputs[:3], normal_form, blocks) for kind in (Itg, WideItg))
    try:
        value = plain.log_partition()
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            wide.log_partition()
        return
    assert wide.log_partition() == pytest.approx(value, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(Flat(wide).marginals(), Flat(plain).marginals(), rtol=1e-8, atol=1e-12)
    assert wide.sample(np.random.default_rng(seed)) == plain.sample(np.random.default_rng(seed))


@pytest.mark.parametrize("n_source, n_target, size", [(17, 23, 1), (33, 19, 4), (20, 35, 2)])
def test_plain_and_wide_numbers_agree_on_rows_of_any_length(n_source, n_target, size):
    rng = np.random.default_rng(n_source)
    plain = drawn(rng, n_source, n_target, size=size, spread=1.5)
    wide = WideItg(plain.scores, plain.source_null, plain.target_null, blocks=plain.blocks)
    forward, backward = posteriors(rng, n_source, n_target)
    for dist, other in [(plain, wide), (plain.prune(forward, backward), wide.prune(forward, backward))]:
        assert other.log_partition() == pytest.approx(dist.log_partition(), rel=1e-13)
        np.testing.assert_allclose(Flat(other).marginals(), Flat(dist).marginals(), rtol=1e-9, atol=1e-13)
        other_best = transposed(plain).argmax()
        assert plain.score({(i, j) for j, i in other_best}) == pytest.approx(plain.score(plain.argmax()))


def test_a_score_of_a_million_apart_is_not_lost():
    dist = Itg([[1e6, 0.0], [0.0, -1e6]], [0.0, 1.0], [0.0, 2.0])
    assert dist.log_partition() == pytest.approx(1e6 + 3, rel=1e-15)
    assert dist.argmax() == {(0, 0)}
    assert dist.null_marginals()[0] == pytest.approx([0, 1])


def test_long_pairs_keep_their_laws():
    rng = np.random.default_rng(6)
    dist = drawn(rng, 14, 11, size=2, spread=300.0)
    best = dist.argmax()
    assert dist.score(best) <= dist.log_partition() + 1e-6
    assert dist.log_partition() == pytest.approx(transposed(dist).log_partition(), rel=1e-13)
    n = 60
    forward, backward = posteriors(rng, n, n)
    long = Itg(rng.normal(0, 1e4, (n, n)), rng.normal(0, 1e4, n), 0.0).prune(forward, backward, cell_limit=4)
    left, _ = long.null_marginals()
    np.testing.assert_allclose(long.marginals().sum(axis=1) + left, 1, atol=1e-8)
    assert long.log_partition() >= long.score(long.argmax()) - 1e-6


def test_ties_are_broken_the_same_way_every_time():
    answers = {Itg(np.zeros((3, 4))).argmax() for _ in range(3)}
    assert len(answers) == 1


# --- batches ---------------------------------------------------------------------------------------------------------


def test_a_batch_equals_one_by_one_whatever_the_options():
    rng = np.random.default_rng(1)
    ones = []
    for n_source, n_target, size in [(3, 4, 1), (0, 2, 1), (5, 2, 3), (4, 4, 2), (1, 1, 4)]:
        dist = drawn(rng, n_source, n_target, size=size)
        forward, backward = rng.random((2, n_source, n_target))
        ones += [dist, dist.prune(forward, backward, confident=0.6, cell_limit=1, negligible=0.1)]
        if n_source > 2:
            ones += [dist.minimum_loss({(0, 0), (1, 1)}, {(2, 1)}), drawn(rng, n_source, n_target, normal_form=False)]
    many = Itgs(ones)
    check_batch(lambda at: ones[at], lambda order: Itgs([ones[at] for at in order]), list(range(len(ones))))
    assert many.entropy().tolist() == [one.entropy() for one in ones]
    assert many.level().tolist() == [one.level() for one in ones]
    for (left, right), blocks, one in zip(many.null_marginals(), many.block_marginals(), ones, strict=True):
        for have, want in zip((left, right, *blocks), (*one.null_marginals(), *one.block_marginals()), strict=True):
            np.testing.assert_array_equal(have, want)
    rngs = [np.random.default_rng(7) for _ in range(2)]
    drawn_together = many.sample(rngs[0])
    assert drawn_together == [one.sample(rngs[1]) for one in ones]
    assert many.log_prob(drawn_together).tolist() == [o.log_prob(y) for o, y in zip(ones, drawn_together, strict=True)]
    moved = many.with_scores([one.scores + 1.0 for one in ones])
    assert moved.log_partition()[0] == ones[0].with_scores(ones[0].scores + 1.0).log_partition()


def test_batches_say_which_sentence_is_wrong():
    many = Itg.batch([np.zeros((1, 1)), np.full((1, 1), -np.inf)], -np.inf, [0.0, 0.0])
    with pytest.raises(InfeasibleError, match=r"sentence 1: .*source word 0 has no link"):
        many.log_partition()
    with pytest.raises(InfeasibleError, match="sentence 1"):
        many.argmax()
    with pytest.raises(ParameterError, match="one entry for each"):
        Itg.batch([np.zeros((1, 1))], [0.0, 0.0])
    assert len(Itg.batch([]).log_partition()) == 0


# --- what is refused -------------------------------------------------------------------------------------------------


def test_terminals_are_the_one_reading_of_links():
    found = terminals({(0, 1), (0, 2), (1, 0), (2, 0), (3, 3)})
    assert found == (Terminal(0, 1, 1, 2), Terminal(1, 0, 2, 1), Terminal(3, 3))
    assert frozenset().union(*(one.links for one in found)) == {(0, 1), (0, 2), (1, 0), (2, 0), (3, 3)}
    for links, what in [({(0, 0), (0, 2)}, "gap"), ({(0, 0), (0, 1), (1, 1)}, "many to many"),
                        ({(0, 0), (0, 1), (1, 0), (1, 1)}, "many to many"), ({(0, 0), (2, 0)}, "gap")]:  # fmt: skip
        with pytest.raises(ParameterError, match=what):
            terminals(links)
    dist = zeros((4, 4), 2)
    for links, what in [({(0, 1), (1, 3), (2, 0), (3, 2)}, "order"), ({(0, 4)}, "reach"), ({(-1, 0)}, "reach"),
                        ({(0, 0), (0, 1), (0, 2)}, "3 words")]:  # fmt: skip
        with pytest.raises(ParameterError, match=what):
            dist.log_prob(links)
    with pytest.raises(ParameterError, match="not one structure"):
        dist.from_parts(np.ones((4, 4)))


def test_wrong_arguments_are_refused_with_a_reason():
    for wrong in [
        lambda: Itg(np.zeros(3)), lambda: Itg([[np.nan]]), lambda: Itg([[np.inf]]), lambda: Itg([[0.0]], [0.0, 0.0]),
        lambda: Itg([[0.0]], free_nulls=True), lambda: Itg(np.zeros((20, 20)), normal_form=False, free_nulls=True),
        lambda: Itg(np.zeros((2, 2)), blocks=Blocks(np.zeros((2, 2, 1)), np.zeros((2, 2, 2)))),
        lambda: Itg(np.zeros((2, 2)), blocks=np.zeros((2, 2, 1))), lambda: Blocks.from_links(np.zeros((2, 2)), 1),
        lambda: Itg([[0.0]]).with_scores([[0.0]], blocks=Blocks(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)))),
        lambda: Itg([[0.0]]).prune([[0.5]], [[-1.0]]), lambda: Itg([[0.0]]).prune([[0.5]], [[0.5, 0.5]]),
        lambda: Itg([[0.0]]).prune([[0.5]], [[0.5]], cell_limit=-1), lambda: Itg([[0.0]]).restricted([[0.5]]),
        lambda: Itg([[0.0]]).minimum_loss({(1, 0)}), lambda: Itg([[0.0]]).k_best(0), lambda: Itgs([1]),
    ]:  # fmt: skip
        with pytest.raises(ParameterError):
            wrong()


def test_a_chart_that_is_too_large_says_what_to_do():
    huge = Itg(np.zeros((150, 150)))
    with pytest.raises(ParameterError, match=r"GiB.*prune\(forward, backward\)"):
        huge.log_partition()
    with pytest.raises(ParameterError, match=r"sentence 1: .*GiB"):
        Itgs([Itg(np.zeros((1, 1))), huge]).argmax()
    forward, backward = posteriors(np.random.default_rng(0), 30, 30)
    small = Itg(np.zeros((30, 30)))
    assert small.prune(forward, backward).chart_bytes() < small.chart_bytes() / 3


def test_it_is_a_structure():
    assert isinstance(Itg(np.zeros((1, 2))), Structure)
    assert isinstance(Flat(Itg(np.zeros((1, 2)))), Structure)
    dist = Itg(np.zeros((2, 2)))
    for array in (dist.scores, dist.source_null, dist.marginals()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_clamped_batches_allow_one_alignment_alone():
    rng = np.random.default_rng(3)
    scores = [rng.normal(size=shape) for shape in ((3, 3), (2, 4), (0, 2))]
    many = Itg.batch(scores, -0.5, -0.5, True, [Blocks.from_links(one, np.int64(2)) for one in scores])
    best = many.argmax()
    alone = many.clamp(best)
    assert alone.argmax() == best and many.from_parts(many.parts(best)) == best
    assert alone.log_partition() == pytest.approx([many[s].score(y) for s, y in enumerate(best)])
    assert [score for (score, _), *_ in many.k_best(2)] == pytest.approx(alone.log_partition())


def test_wrong_scores_in_a_batch_are_named_with_their_sentence():
    with pytest.raises(ParameterError, match="sentence 1: Itg: scores: nan"):
        Itg.batch([np.zeros((1, 1)), np.full((1, 1), np.nan)], np.float32(-1.0))


@LAWS
@given(itg_inputs(most=6), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_chart_without_cells_that_no_nearest_alignment_has_changes_nothing(inputs, normal_form, pruned, seed):
    rng = np.random.default_rng(seed)
    dist = Itg(*inputs[:3], normal_form, None if inputs.blocks is None else Blocks(*inputs.blocks))
    if pruned and dist.scores.size:
        dist = dist.prune(*posteriors(rng, *dist.scores.shape), cell_limit=1)
    marks = rng.integers(0, 4, dist.scores.shape)
    target = dist.minimum_loss(marks == 2, marks == 1, within=bool(rng.integers(2)))
    narrow = target.narrowed()
    try:
        target.log_partition()
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            narrow.log_partition()
        return
    spread = [np.where(np.isinf(one), one, rng.normal(0, 30, one.shape)) for one in target.part_scores()]
    for one, other in [(target, narrow), (target.with_part_scores(*spread), narrow.with_part_scores(*spread))]:
        many = Itg.batch([np.zeros((2, 2))])
        batch = type(many)([one, many[0], one]).narrowed() if one is target else type(many)([other, many[0], one])
        assert other.level() == one.level()
        assert other.log_partition() == pytest.approx(one.log_partition(), rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(Flat(other).marginals(), Flat(one).marginals(), rtol=1e-9, atol=1e-12)
        assert batch.log_partition()[[0, 2]].tolist() == pytest.approx([one.log_partition()] * 2, rel=1e-12, abs=1e-12)
        assert other.score(other.argmax()) == pytest.approx(one.score(one.argmax()), abs=1e-7)
        assert other.log_prob(other.argmax()) == pytest.approx(one.log_prob(one.argmax()), abs=1e-7)
        assert other.chart_bytes() <= one.chart_bytes()


def test_a_target_of_one_alignment_has_a_small_chart():
    rng = np.random.default_rng(3)
    dist = drawn(rng, 12, 11, size=3, spread=1.0)
    target = dist.minimum_loss({(i, i) for i in range(11)})
    narrow = target.narrowed()
    assert narrow._pruning.cells < dist.unpruned()._bytes(None) / 1000
    assert dist.narrowed() is dist
    assert narrow.k_best(3) == [(pytest.approx(score), links) for score, links in target.k_best(3)]
