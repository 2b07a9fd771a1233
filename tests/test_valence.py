"""Trees with valence, held against enumeration, known counts, plain projective trees and each other."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings

from isogloss.errors import ParameterError
from isogloss.learners.posterior import Together, edge_types
from isogloss.structures import Flat, InfeasibleError, ProjectiveTree, Stack, Structure, ValenceTree, ValenceTrees
from isogloss.structures.semiring import LOG
from isogloss.testing import brute_force_valence, check_batch, check_laws, check_structure, valence_parts
from isogloss.testing.strategies import valence_inputs

LAWS = settings(max_examples=60, deadline=None, derandomize=True)
ORDERS = pytest.mark.parametrize("nearest_first", [True, False])
CLASSES = [(2, 1), (1, 2), (2, 2), (3, 3), (4, 4)]  # (V_s, V_c)


def tables(n, stop_valences, child_valences, *, seed=0, holes=0.0, spread=1.0):
    rng = np.random.default_rng(seed)
    shapes = ((n + 1, 2, stop_valences, 2), (n + 1, n + 1, child_valences))
    drawn = [np.where(rng.random(shape) < holes, -np.inf, rng.normal(0, spread, shape)) for shape in shapes]
    return drawn[0], drawn[1]


def expectations(truth, n, stop_valences, child_valences, nearest_first):
    """Expected decisions and children, from the enumerated trees."""
    stops, children = np.zeros((n + 1, 2, stop_valences, 2)), np.zeros((n + 1, n + 1, child_valences))
    for heads, p in zip(truth.structures, truth.probabilities, strict=True):
        used = valence_parts(heads, stop_valences, child_valences, nearest_first)
        stops, children = stops + p * used[0], children + p * used[1]
    return stops, children


def in_logs(dist):
    """log Z and all marginals from the kernel that works in logarithms throughout."""
    from isogloss.structures._numba.valence import log_valence_trees

    kinds = dist.part_scores()
    sizes = np.array([[dist.n + 1, dist.stops.shape[2], dist.children.shape[2], dist.n + 1]])
    grads, values, none = [np.zeros(kind.size) for kind in kinds], np.full(1, np.nan), np.empty(0)
    layout = (np.zeros((4, 1), np.int64), sizes, np.arange(dist.n + 1), dist.nearest_first, none, np.zeros(2, np.int64))
    log_valence_trees(0, 1, LOG, *(kind.reshape(-1) for kind in kinds), *layout, *grads, values)
    return float(values[0]), [grad.reshape(kind.shape) for grad, kind in zip(grads, kinds, strict=True)]


@ORDERS
@pytest.mark.parametrize("classes", CLASSES)
def test_valence_keeps_every_law(classes, nearest_first):
    def parts(scores):
        return tables(len(scores) - 1, *classes, seed=len(scores))

    check_structure(
        lambda scores: ValenceTree(scores, *parts(scores), nearest_first=nearest_first),
        lambda scores: brute_force_valence(scores, *parts(scores), nearest_first),
        shapes=[(n + 1, n + 1) for n in range(1, 6)],
        column=lambda scores: np.s_[:, -1],
        batch=lambda blocks: ValenceTree.batch(
            blocks, *zip(*(parts(block) for block in blocks), strict=True), nearest_first=nearest_first
        ),
        samples=200,
    )


@ORDERS
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("n", range(6))
def test_expected_decisions_and_children_are_those_of_enumeration(n, classes, nearest_first):
    for seed, holes in ((1, 0.0), (2, 0.1)):
        scores = np.random.default_rng(seed).normal(0, 2, (n + 1, n + 1))
        stops, children = tables(n, *classes, seed=seed, holes=holes, spread=2.0)
        truth = brute_force_valence(scores, stops, children, nearest_first)
        dist = ValenceTree(scores, stops, children, nearest_first=nearest_first)
        if truth.log_partition == -np.inf:
            with pytest.raises(InfeasibleError):
                dist.stop_marginals()
            continue
        wanted = expectations(truth, n, *classes, nearest_first)
        np.testing.assert_allclose(dist.stop_marginals(), wanted[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(dist.child_marginals(), wanted[1], rtol=1e-9, atol=1e-12)


@LAWS
@given(valence_inputs())
def test_valence_agrees_with_enumeration(inputs):
    truth = brute_force_valence(*inputs)
    dist = ValenceTree(*inputs[:3], nearest_first=inputs.nearest_first)
    if truth.log_partition == -np.inf:
        with pytest.raises(InfeasibleError):
            dist.log_partition()
        return
    check_laws(dist, truth, rng=np.random.default_rng(0), samples=0)
    value, grads = in_logs(dist)
    assert value == pytest.approx(dist.log_partition(), rel=1e-12, abs=1e-10)
    for in_log, plain in zip(grads, dist.part_marginals(), strict=True):
        np.testing.assert_allclose(in_log, plain, rtol=1e-7, atol=1e-9)


@ORDERS
@pytest.mark.parametrize("n", range(1, 8))
def test_number_of_trees(n, nearest_first):
    free = [np.zeros((n + 1, n + 1)), np.zeros((n + 1, 2, 3, 2)), np.zeros((n + 1, n + 1, 2))]
    count = np.exp(ValenceTree(*free, nearest_first=nearest_first).log_partition())
    assert count == pytest.approx(comb(3 * n - 2, n - 1) // n)  # 1, 2, 7, 30, 143, ...


def test_without_valence_it_is_a_projective_tree():
    scores = np.random.default_rng(3).normal(0, 2, (9, 9))
    plain = ProjectiveTree(scores, single_root=True)
    dist = ValenceTree(scores, np.zeros((9, 2, 2, 2)), np.zeros((9, 9, 3)))
    assert dist.log_partition() == pytest.approx(plain.log_partition(), rel=1e-12)
    np.testing.assert_allclose(dist.marginals(), plain.marginals() * (np.arange(9) > 0), atol=1e-12)
    assert dist.argmax().tolist() == plain.argmax().tolist()


def test_generation_order_matters_only_with_several_classes_of_children():
    scores = np.zeros((6, 6))
    for child_valences, same in ((1, True), (2, False)):
        both = [ValenceTree(scores, *tables(5, 3, child_valences), nearest_first=order) for order in (True, False)]
        assert (abs(both[0].log_partition() - both[1].log_partition()) < 1e-10) == same


@pytest.mark.parametrize("n", [45, 120, 300])
def test_long_sentences_do_not_underflow(n):
    rng = np.random.default_rng(n)
    scores, (stops, children) = rng.normal(0, 6, (n + 1, n + 1)) - 10, tables(n, 2, 2, seed=n, spread=6.0)
    dist = ValenceTree(scores, stops, children)
    value, grads = in_logs(dist)
    assert np.isfinite(dist.log_partition()) and dist.log_partition() == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(dist.marginals(), grads[0], atol=1e-8)
    np.testing.assert_allclose(dist.marginals()[:, 1:].sum(axis=0), 1.0, atol=1e-9)
    assert dist.score(dist.argmax()) >= dist.score(dist.sample(rng))


def test_scores_too_small_for_probabilities_go_through_logarithms():
    scores, (stops, children) = np.zeros((5, 5)), tables(4, 2, 2)
    scores[0, 1:] = -2000.0  # the only way up, far below what links among words promise
    dist = ValenceTree(scores, stops, children)
    truth = brute_force_valence(scores, stops, children)
    assert dist.log_partition() == pytest.approx(truth.log_partition, rel=1e-12)
    np.testing.assert_allclose(dist.marginals(), truth.marginals, atol=1e-10)


def test_flat_view_learns_all_kinds_of_parts():
    dist = ValenceTree(np.zeros((4, 4)), *tables(3, 2, 2))
    flat = Flat(dist)
    assert isinstance(dist, Structure) and isinstance(flat, Structure)
    heads = dist.argmax()
    assert float(flat.parts(heads) @ flat.scores) == pytest.approx(dist.score(heads))
    step = 1e-5
    direction = np.cos(np.arange(len(flat.scores)))
    above, below = (flat.with_scores(flat.scores + sign * step * direction).log_partition() for sign in (1, -1))
    assert (above - below) / (2 * step) == pytest.approx(float(direction @ flat.marginals()), rel=1e-6)


def test_batches_of_different_numbers_of_classes():
    made = [
        ValenceTree(np.zeros((n + 1, n + 1)), *tables(n, s, c, seed=n)) for n, s, c in ((3, 2, 1), (0, 1, 1), (4, 3, 4))
    ]
    many = ValenceTree.batch(*zip(*(one.part_scores() for one in made), strict=True))
    assert many.log_partition().tolist() == [one.log_partition() for one in made]
    for s, one in enumerate(made):
        np.testing.assert_array_equal(many.stop_marginals()[s], one.stop_marginals())
        np.testing.assert_array_equal(many.child_marginals()[s], one.child_marginals())


def test_batch_draws_what_single_sentences_draw():
    blocks = [np.random.default_rng(n).normal(size=(n + 1, n + 1)) for n in (3, 0, 6)]
    parts = [tables(len(block) - 1, 2, 2) for block in blocks]
    many = ValenceTree.batch(blocks, *zip(*parts, strict=True))
    rng = np.random.default_rng(5)
    alone = [one.sample(rng).tolist() for one in (many[s] for s in range(3))]
    assert [heads.tolist() for heads in many.sample(np.random.default_rng(5))] == alone
    check_batch(
        lambda block: ValenceTree(block, *tables(len(block) - 1, 2, 2)),
        lambda given: ValenceTree.batch(given, *zip(*(tables(len(block) - 1, 2, 2) for block in given), strict=True)),
        blocks,
    )


def test_links_are_what_edge_types_sees():
    many = ValenceTree.batch(*([table] for table in (np.zeros((4, 4)), *tables(3, 2, 1))))
    features, groups = edge_types(Together(many), [[0, 1, 0]], 2)
    assert features.expectations(many.marginals().values).sum() == pytest.approx(3.0)  # one head a word
    assert groups.max() == 4  # 0 below 0, 1 or the root, 1 below 0 or the root


def test_only_its_own_trees_have_probability():
    dist = ValenceTree(np.zeros((5, 5)), *tables(4, 2, 1))
    assert dist.log_prob([0, 0, 2, 2]) == dist.log_prob([3, 0, 2, 1]) == -np.inf
    clamped = dist.clamp([0, 1, 2, 2])
    assert clamped.argmax().tolist() == [0, 1, 2, 2] and clamped.entropy() == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize(
    ("scores", "stops", "children"),
    [((3, 3), (3, 2, 0, 2), (3, 3, 1)), ((3, 3), (2, 2, 2, 2), (3, 3, 1)), ((3, 3), (3, 2, 2, 2), (3, 2, 1))],
)
def test_wrong_shapes_are_refused(scores, stops, children):
    with pytest.raises(ParameterError):
        ValenceTree(np.zeros(scores), np.zeros(stops), np.zeros(children))
    with pytest.raises(ParameterError):
        ValenceTrees(*(Stack.of([np.zeros(shape)]) for shape in (scores, stops, children)))


def test_what_is_missing_is_named():
    scores, (stops, children) = np.zeros((3, 3)), tables(2, 2, 1)
    with pytest.raises(InfeasibleError, match="no word may hang on the root"):
        ValenceTree(np.where(np.arange(3)[:, None] == 0, -np.inf, scores), stops, children).log_partition()
    stops[1, 0, :, 1] = -np.inf
    with pytest.raises(InfeasibleError, match=r"sentence 1: .*never stop"):
        ValenceTree.batch([scores, scores], [tables(2, 2, 1)[0], stops], [children, children]).argmax()
