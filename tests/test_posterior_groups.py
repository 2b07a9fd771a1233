"""Projections of a whole text: penalties that couple sentences, against a generic convex solver on enumerated q."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from isogloss.errors import ParameterError
from isogloss.learners.posterior import (
    AtMost,
    Exactly,
    Features,
    GraphLaplacian,
    Groups,
    Linear,
    Norm,
    Quadratic,
    Together,
    bijective,
    capped,
    edge_types,
    label_features,
    project,
    regularise,
)
from isogloss.structures import AlignmentChain, Chain, InfeasibleError, ProjectiveTree
from isogloss.testing import brute_force_chain, brute_force_trees
from isogloss.testing.solver import project_listed, regularise_listed

FEW = settings(max_examples=20, deadline=None)
TIGHT = {"tolerance": 1e-11, "steps": 2000}
LENGTHS = (2, 0, 3, 1)


def random_scores(seed, lengths=LENGTHS, k=2, spread=1.0):
    rng = np.random.default_rng(seed)
    return [rng.normal(0, spread, (n, k, k)) for n in lengths]


def tree_scores(seed, lengths, spread=1.0):
    rng = np.random.default_rng(seed)
    return [rng.normal(0, spread, (n + 1, n + 1)) for n in lengths]


def enumerated(together, brute_force):
    return [brute_force(dist.scores) for dist in together]


def listed_features(together, features, truths):
    """For each sentence float64[m, count]: the features of each of its structures, found through `Features` alone."""
    found = []
    for s, truth in enumerate(truths):
        columns = []
        for parts in truth.parts:
            whole = np.zeros(together.offsets[-1])
            whole[together.offsets[s] : together.offsets[s + 1]] = parts.ravel()
            columns.append(features.expectations(whole))
        found.append(np.array(columns).T)
    return found


def check_against(together, features, solved, q, truths, tolerance=1e-5):
    """The q of each sentence, enumerated, is that of the solver."""
    for truth, dist, brute in zip(truths, q, solved, strict=True):
        here = truth.parts.reshape(len(truth.parts), -1)
        assert dist.marginals().ravel() == pytest.approx(brute @ here, abs=tolerance)


def value_of(solved, truths, features, cost):
    """KL + R of listed distributions, and their expectations."""
    divergence, expected = 0.0, 0.0
    for q, truth, columns in zip(solved, truths, features, strict=True):
        used = q > 1e-13
        divergence += float((q[used] * np.log(q[used] / truth.probabilities[used])).sum())
        expected = expected + columns @ q
    return divergence + cost(expected), expected


# --- Together ----------------------------------------------------------------------------------------------------


def test_together_is_a_structure_and_batches_are_lists():
    scores = random_scores(0)
    single, many = Together([Chain(s) for s in scores]), Together(Chain.batch(scores))
    mixed = Together([Chain(scores[0]), Chain.batch(scores[1:])])
    truths = [brute_force_chain(s) for s in scores]
    assert single.log_partition() == pytest.approx(sum(t.log_partition for t in truths), abs=1e-12)
    for other in (many, mixed):
        assert len(other) == 4 and other.log_partition() == single.log_partition()
        assert np.array_equal(other.marginals(), single.marginals())
        assert np.array_equal(other.offsets, single.offsets) and other.shapes == single.shapes
        assert [y.tolist() for y in other.argmax()] == [y.tolist() for y in single.argmax()]
        assert np.array_equal(other.parts(other.argmax()), single.parts(single.argmax()))
        clamped = other.clamp(other.argmax())
        assert np.array_equal(clamped.marginals(), other.parts(other.argmax()))
        assert clamped.log_partition() == pytest.approx(sum(t.best for t in truths))
        rescored = other.with_scores(other.scores * 0.5)
        assert [np.array_equal(d.scores, 0.5 * s) for d, s in zip(rescored, scores, strict=True)] == [True] * 4
    draws = [[y.tolist() for y in one.sample(np.random.default_rng(1))] for one in (single, many, mixed)]
    assert draws[0] == draws[1] == draws[2]
    with pytest.raises(ParameterError, match="scores should be"):
        single.with_scores(np.zeros(3))
    with pytest.raises(ParameterError, match="one for each sentence"):
        single.parts([])
    with pytest.raises(InfeasibleError, match="member 1 of 2"):
        Together([Chain(scores[0]), Chain(np.full((1, 2, 2), -np.inf))]).log_partition()
    assert Together([]).log_partition() == 0 and len(Together([])) == 0


def test_derivatives_of_together():
    together = Together(Chain.batch(random_scores(3)))
    for at in range(0, together.scores.size, 3):
        nudge = np.zeros(together.scores.size)
        nudge[at] = 1e-5
        up, down = (together.with_scores(together.scores + sign * nudge).log_partition() for sign in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(together.marginals()[at], abs=1e-8)


# --- the feasible set --------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from([0.1, 1.0, 10.0]))
@settings(max_examples=100, deadline=None)
def test_capped_is_the_euclidean_projection(seed, n_groups, spread):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(0, spread, rng.integers(0, 12)), rng.integers(0, 3))  # rounding makes ties
    groups, caps = rng.integers(0, n_groups, len(values)), rng.choice([0.0, 0.5, 2.0], n_groups)
    point = capped(values, groups, caps)
    sums = np.bincount(groups, point, minlength=n_groups)
    assert (point >= 0).all() and (sums <= caps + 1e-12).all()
    for g in range(n_groups):  # by sorting, one group at a time
        inside = np.maximum(values[groups == g], 0)
        if inside.sum() > caps[g]:
            ordered = np.sort(inside)[::-1]
            levels = (np.cumsum(ordered) - caps[g]) / np.arange(1, len(ordered) + 1)
            inside = np.maximum(inside - levels[np.flatnonzero(ordered >= levels)[-1]], 0)
        assert point[groups == g] == pytest.approx(inside, abs=1e-12)
    assert capped(point, groups, caps) == pytest.approx(point, abs=1e-12)


PENALTIES = {
    "groups": Groups(np.array([0, 1, 0, 2]), np.array([0.5, 2.0, 1.0]), np.array([0.1, 0.0, -0.2, 0.3])),
    "l1": Groups(np.arange(4), 0.7),
    "norm": Norm(np.array([0.1, 0.0, -0.2, 0.3]), 1.3),
    "quadratic": Quadratic(np.array([0.1, 0.0, -0.2, 0.3]), np.array([1.0, 2.0, 0.5, 3.0])),
    "hinge": Quadratic(np.array([0.1, 0.0, -0.2, 0.3]), 2.0, hinge=True),
    "linear": Linear(np.array([0.1, -1.0, 2.0, 0.0])),
}


@pytest.mark.parametrize("name", PENALTIES)
def test_conjugates_by_fenchel_and_young(name):
    """R(m) + R*(λ) ≥ λ·m everywhere, with equality at λ = ∇R(m); `nearest` is idempotent and as near as any."""
    penalty, rng = PENALTIES[name], np.random.default_rng(0)
    for _ in range(50):
        m, away = rng.normal(size=4), rng.normal(0, 3, 4)
        inside = penalty.nearest(away)
        assert penalty.nearest(inside) == pytest.approx(inside, abs=1e-12)
        assert penalty.cost(m) + penalty.conjugate(inside) - inside @ m >= -1e-12
        other = penalty.nearest(rng.normal(0, 3, 4))
        assert (away - inside) @ (other - inside) <= 1e-12  # the variational inequality of a projection
        slopes = [(penalty.cost(m + 1e-6 * e) - penalty.cost(m - 1e-6 * e)) / 2e-6 for e in np.eye(4)]
        gradient = np.array(slopes)
        gap = penalty.cost(m) + penalty.conjugate(penalty.nearest(gradient)) - penalty.nearest(gradient) @ m
        assert gap == pytest.approx(0.0, abs=1e-5)
        if callable(penalty):
            assert penalty(m)[1] == pytest.approx(gradient, abs=1e-6)
        limits = penalty.limits()
        if limits is not None:
            assert np.clip(away, *limits) == pytest.approx(inside)
        if limits is not None and name != "linear":
            free = (inside > limits[0] + 1e-5) & (inside < limits[1] - 1e-5)
            ends = [[penalty.conjugate(inside + sign * 1e-6 * e) for sign in (1, -1)] for e in np.eye(4)]
            step = [(up - down) / 2e-6 for up, down in ends]
            assert penalty.slope(inside, m)[free] == pytest.approx((np.array(step) - m)[free], abs=1e-6)


# --- chains: groups of labels of words ---------------------------------------------------------------------------


def word_label_groups(together, words, k):
    """Sparsity of the labels of word types: a feature for each token and label, a group for each type and label."""
    tokens, types, start = [], [], 0
    for shape, here in zip(together.shapes, words, strict=True):
        tokens.append(np.arange(start, start + shape[0]))
        start += shape[0]
        types += list(here)
    features = label_features(together, tokens, start, k)
    return features, (np.array(types, np.int64)[:, None] * k + np.arange(k)).ravel()


WORDS = [(0, 1), (), (1, 0, 1), (2,)]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("strength", [0.3, 2.0, np.linspace(0.0, 3.0, 6)])
def test_groups_equal_a_generic_convex_solver(seed, strength):
    together = Together(Chain.batch(random_scores(seed)))
    features, groups = word_label_groups(together, WORDS, 2)
    penalty = Groups(groups, strength)
    found = regularise(together, features, penalty, **TIGHT)
    truths = enumerated(together, brute_force_chain)
    columns = listed_features(together, features, truths)
    solved = regularise_listed([t.probabilities for t in truths], columns, groups=groups, strength=penalty.caps)
    check_against(together, features, solved, found.q, truths)
    best, _ = value_of(solved, truths, columns, penalty.cost)
    assert found.converged and found.divergence + found.cost == pytest.approx(best, abs=1e-7)
    assert found.gap >= -1e-12 and -found.dual == pytest.approx(best, abs=1e-7)
    assert found.bound == pytest.approx(together.log_partition() - best, abs=1e-7)
    lam = found.multipliers
    assert (lam >= 0).all() and (np.bincount(groups, lam) <= penalty.caps + 1e-12).all()
    # Every group is possible, so all are saturated; λ > 0 only where the maximum of the group is reached.
    assert np.bincount(groups, lam) == pytest.approx(penalty.caps, abs=1e-9)
    expected = features.expectations(found.q.marginals())
    assert expected[lam > 1e-6] == pytest.approx(penalty.largest(expected)[groups][lam > 1e-6], abs=1e-5)


def test_no_strength_changes_nothing_and_more_strength_is_sparser():
    together = Together([Chain(s) for s in random_scores(5)])
    features, groups = word_label_groups(together, WORDS, 2)
    plain = regularise(together, features, Groups(groups, 0.0))
    assert plain.q is together and plain.evaluations == 0 and plain.divergence == plain.cost == 0
    penalties, divergences, start = [], [], None
    for strength in (0.1, 0.5, 1.0, 3.0, 10.0):
        found = regularise(together, features, Groups(groups, strength), start=start, **TIGHT)
        start = found.multipliers
        penalties.append(found.cost / strength)
        divergences.append(found.divergence)
    assert all(b <= a + 1e-7 for a, b in itertools.pairwise(penalties)) and penalties[-1] < penalties[0] - 0.1
    assert all(b >= a - 1e-7 for a, b in itertools.pairwise(divergences)) and divergences[-1] > divergences[0]


@given(st.integers(0, 10_000), st.sampled_from([0.2, 1.0, 5.0]))
@FEW
def test_gap_bounds_how_far_any_point_is_from_the_best(seed, strength):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 4, 3)
    together = Together(Chain.batch(random_scores(seed, lengths, k=3)))
    features, groups = word_label_groups(together, [rng.integers(0, 2, n) for n in lengths], 3)
    groups = np.unique(groups, return_inverse=True)[1]
    penalty = Groups(groups, strength)
    best = regularise(together, features, penalty, tolerance=1e-8, steps=2000)
    assert best.converged and -1e-12 <= best.gap <= 1e-8 * max(1.0, best.divergence + best.cost)
    for steps in (1, 3):
        early = regularise(together, features, penalty, tolerance=1e-9, steps=steps)
        excess = early.divergence + early.cost - (best.divergence + best.cost)
        assert -1e-7 <= excess <= early.gap + 1e-7
    for optimiser in ("gradient", "quasi-newton"):
        other = regularise(together, features, penalty, optimiser=optimiser, tolerance=1e-5, steps=5000)
        assert other.converged and other.dual == pytest.approx(best.dual, abs=1e-4)


def test_a_warm_start_saves_work_and_few_evaluations_do():
    together = Together(Chain.batch(random_scores(7, (5, 4, 6, 1, 3), k=3)))
    words = [np.random.default_rng(s).integers(0, 4, n) for s, n in enumerate((5, 4, 6, 1, 3))]
    features, groups = word_label_groups(together, words, 3)
    penalty = Groups(np.unique(groups, return_inverse=True)[1], 2.0)
    cold = regularise(together, features, penalty, tolerance=1e-6)
    slow = regularise(together, features, penalty, tolerance=1e-6, optimiser="gradient", steps=5000)
    again = regularise(together, features, penalty, tolerance=1e-6, start=cold.multipliers)
    near = together.with_scores(together.scores * 1.01)
    warm = regularise(near, features, penalty, tolerance=1e-6, start=cold.multipliers)
    assert again.evaluations == 1 and cold.evaluations < slow.evaluations
    assert warm.evaluations < regularise(near, features, penalty, tolerance=1e-6).evaluations


# --- trees: pairs of tags ----------------------------------------------------------------------------------------


def tree_text(seed, lengths, n_tags=2):
    rng = np.random.default_rng(seed)
    tags = [rng.integers(0, n_tags, n) for n in lengths]
    return tags, Together(ProjectiveTree.batch(tree_scores(seed, lengths)))


def projective(scores):
    return brute_force_trees(scores, projective=True)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("strength", [0.5, 3.0])
def test_pairs_of_tags_equal_a_generic_convex_solver(symmetric, strength):
    tags, together = tree_text(2, (3, 2, 0, 3, 1))
    features, groups = edge_types(together, tags, 2, symmetric=symmetric)
    penalty = Groups(groups, strength)
    found = regularise(together, features, penalty, **TIGHT)
    truths = enumerated(together, projective)
    columns = listed_features(together, features, truths)
    solved = regularise_listed([t.probabilities for t in truths], columns, groups=groups, strength=penalty.caps)
    best, _ = value_of(solved, truths, columns, penalty.cost)
    assert found.converged and found.divergence + found.cost == pytest.approx(best, abs=1e-7)
    check_against(together, features, solved, found.q, truths)
    assert np.bincount(groups, found.multipliers) == pytest.approx(penalty.caps, abs=1e-9)


def test_features_of_pairs_count_what_they_say():
    tags, together = tree_text(3, (3, 0, 2, 4))
    for symmetric in (False, True):
        features, groups = edge_types(together, tags, 2, symmetric=symmetric)
        pairs = set()
        for s, dist in enumerate(together):
            for heads in projective(dist.scores).structures[:6]:
                whole = [np.zeros(len(t), int) for t in tags]  # everything hangs from the root, but in sentence s
                whole[s] = np.array(heads, int)
                counts = features.expectations(together.parts(whole))
                seen = {(t[c], t[h - 1] if h else 2) for t, y in zip(tags, whole, strict=True) for c, h in enumerate(y)}
                assert (counts <= 1).all() and counts.sum() == sum(map(len, tags))
                assert len(set(groups[counts > 0])) == len(seen)  # the penalty at a tree is the number of types
                pairs |= seen
        assert len(pairs) <= groups.max() + 1
    without, _ = edge_types(together, tags, 2, root=False)
    flat = [np.zeros(len(t), int) for t in tags]
    assert not without.expectations(together.parts(flat)).any()
    with pytest.raises(ParameterError, match="sentence 1 has scores"):
        edge_types(together, [tags[0], [0], tags[2], tags[3]], 2)


def test_both_kinds_of_pairs_coincide_when_no_tag_repeats_in_a_sentence():
    lengths = (3, 2, 0, 1)
    tags = [[2, 0, 1], [1, 2], [], [0]]
    together = Together(ProjectiveTree.batch(tree_scores(4, lengths)))
    found = []
    for symmetric in (False, True):
        features, groups = edge_types(together, tags, 3, symmetric=symmetric)
        found.append(regularise(together, features, Groups(groups, 1.5), **TIGHT))
    assert found[0].multipliers.shape == found[1].multipliers.shape
    assert found[0].q.marginals() == pytest.approx(found[1].q.marginals(), abs=1e-5)
    assert found[0].dual == pytest.approx(found[1].dual, abs=1e-9)
    repeated = [[0, 0, 1], [1, 1], [], [0]]
    values = []
    for symmetric in (False, True):
        features, groups = edge_types(together, repeated, 3, symmetric=symmetric)
        values.append(regularise(together, features, Groups(groups, 1.5), **TIGHT).dual)
    assert values[0] != pytest.approx(values[1], abs=1e-3)


# --- the same projector for everything else ----------------------------------------------------------------------


@pytest.mark.parametrize(("equality", "slack"), [(False, 0.0), (True, 0.0), (False, 0.2), (True, 0.2)])
def test_constraints_on_a_whole_text(equality, slack):
    """Label 0 for a third of all positions (at most): sentences share the burden."""
    together = Together(Chain.batch(random_scores(11)))
    positions = sum(LENGTHS)
    features = label_features(together, [np.zeros(n, int) for n in LENGTHS], 1, 2)
    first = Features(lambda m: features.expectations(m)[:1], lambda x: features.scores_from(np.append(x, 0.0)))
    bound = np.array([positions / 3])
    found = project(together, first, bound, equality=equality, slack=slack, tolerance=1e-9)
    truths = enumerated(together, brute_force_chain)
    columns = listed_features(together, first, truths)
    solved = project_listed([t.probabilities for t in truths], columns, bound, equality=equality, slack=slack)
    check_against(together, first, solved, found.q, truths)
    assert found.divergence > 1e-3
    assert first.expectations(found.q.marginals())[0] <= bound[0] + slack + 1e-8
    penalty = (Exactly if equality else AtMost)(bound, slack)
    same = regularise(Chain.batch(random_scores(11)), first, penalty, tolerance=1e-9)
    assert same.multipliers == pytest.approx(found.multipliers, abs=1e-6) and isinstance(same.q, Together)


def test_a_text_without_coupling_is_one_sentence_after_the_other():
    rng = np.random.default_rng(0)
    pairs = []
    for n, m in ((3, 2), (2, 3), (4, 2)):
        rows = np.full((m + 1, m), -np.log(m))
        pairs.append(AlignmentChain(rng.normal(0, 2, (n, m)), rng.normal(0, 1, n), rows[0], rows[1:], 0.2))
    together = Together(pairs)
    index, at = [], 0
    for dist in pairs:
        n, m = dist.scores.shape
        index.append(np.tile(np.arange(at, at + m), n))
        at += m
    found = regularise(together, Features.indexed(np.concatenate(index), at), AtMost(np.ones(at)), tolerance=1e-9)
    alone = [bijective(dist, tolerance=1e-9) for dist in pairs]
    assert found.multipliers == pytest.approx(np.concatenate([one.multipliers for one in alone]), abs=1e-6)
    assert found.divergence == pytest.approx(sum(one.divergence for one in alone), abs=1e-9)


def test_trees_keep_a_share_of_projected_edges():
    """At least η of the edges that another language suggests, in each sentence (Ganchev et al. 2009)."""
    together = Together(ProjectiveTree.batch(tree_scores(6, (3, 2, 1))))
    projected, share = [[(0, 2), (2, 1), (2, 3)], [(2, 1)], [(0, 1)]], 0.9
    conserved = np.zeros((3, together.scores.size))
    for s, edges in enumerate(projected):
        for head, child in edges:
            conserved[s, together.offsets[s] + head * together.shapes[s][1] + child] = -1 / len(edges)
    bound = np.full(3, -share)
    found = project(together, conserved, bound, tolerance=1e-9)
    truths = enumerated(together, projective)
    features = Features(lambda m: conserved @ m, lambda x: x @ conserved)
    solved = project_listed([t.probabilities for t in truths], listed_features(together, features, truths), bound)
    check_against(together, features, solved, found.q, truths)
    kept = -(conserved @ found.q.marginals())
    assert (kept >= share - 1e-8).all() and kept[2] == pytest.approx(1.0)  # one word has one head
    crossing = np.zeros((1, together.scores.size))
    crossing[0, [1, 2 * 4 + 1]] = -0.5  # two heads for one word: never more than half of that
    with pytest.raises(InfeasibleError):
        project(together, crossing, [-share])
    bought = regularise(together, crossing, Groups([0], 5.0, [-share]), tolerance=1e-8)
    assert bought.converged and bought.multipliers == pytest.approx([5.0]) and bought.cost >= 5 * 0.4


def graph(seed=0, n_vertices=4):
    rng = np.random.default_rng(seed)
    dense = np.triu(rng.random((n_vertices, n_vertices)), 1)
    return csr_matrix(dense + dense.T)


@pytest.mark.parametrize("strength", [0.5, 20.0])
def test_graph_penalty_by_the_same_dual(strength):
    together = Together(Chain.batch(random_scores(13)))
    vertices = [[0, 1], [], [2, 0, 1], [-1]]
    sums = label_features(together, vertices, 4, 2)
    fixed = np.array([[0, 0], [0, 0], [0, 0], [3, 1]])
    penalty = GraphLaplacian(strength * graph(), [2, 2, 1, 4], 2, fixed=fixed)
    matrix, quadratic = penalty.differences()
    m = np.random.default_rng(0).random(8)
    assert quadratic.cost(matrix @ m) == pytest.approx(penalty(m)[0])
    features = Features(lambda mu: matrix @ sums.expectations(mu), lambda x: sums.scores_from(matrix.T @ x))
    found = regularise(together, features, quadratic, **TIGHT)
    truths = enumerated(together, brute_force_chain)
    solved = regularise_listed(
        [t.probabilities for t in truths], listed_features(together, sums, truths), smooth=penalty
    )
    check_against(together, sums, solved, found.q, truths)
    assert found.converged and -1e-12 <= found.gap < 1e-9


@pytest.mark.parametrize("name", ["quadratic", "hinge", "norm", "linear", "l1"])
def test_other_penalties_equal_a_generic_convex_solver(name):
    together = Together([Chain(s) for s in random_scores(17)])
    features = csr_matrix(np.random.default_rng(1).normal(size=(4, together.scores.size)))
    penalty = PENALTIES[name]
    found = regularise(together, features, penalty, **TIGHT)
    truths = enumerated(together, brute_force_chain)
    columns = listed_features(together, Features.sparse(features), truths)
    if name == "l1":
        options = {"groups": np.arange(4), "strength": penalty.caps}
    elif name == "norm":  # differentiable where it is positive

        def smooth(m):
            excess = np.maximum(m - penalty.bound, 0)
            return penalty.cost(m), penalty.strength * excess / np.linalg.norm(excess)

        options = {"smooth": smooth}
    else:
        options = {"smooth": penalty}
    solved = regularise_listed([t.probabilities for t in truths], columns, **options)
    check_against(together, features, solved, found.q, truths)
    best, _ = value_of(solved, truths, columns, penalty.cost)
    assert found.converged and found.divergence + found.cost == pytest.approx(best, abs=1e-7)


def test_dense_sparse_and_indexed_features_agree():
    scores = random_scores(19)
    together = Together(Chain.batch(scores))
    index = np.random.default_rng(2).integers(-1, 3, together.scores.size)
    weights = np.random.default_rng(3).random(together.scores.size)
    dense = np.where(index == np.arange(3)[:, None], weights, 0.0)
    penalty = Groups([0, 0, 1], 1.0)
    forms = dense, csr_matrix(dense), Features.indexed(index, 3, weights)
    found = [regularise(together, form, penalty, **TIGHT).multipliers for form in forms]
    assert found[1] == pytest.approx(found[0], abs=1e-9) and found[2] == pytest.approx(found[0], abs=1e-9)


def test_bad_arguments_are_refused_by_name():
    together = Together(Chain.batch(random_scores(0)))
    size = together.scores.size
    for call, message in (
        (lambda: Groups([0, -1], 1.0), "from 0 up"),
        (lambda: Groups([0, 1], [1.0, 2.0, 3.0]), "2 groups"),
        (lambda: Groups([0, 1], -1.0), "strength"),
        (lambda: Groups([0, 1], 1.0, [0.0]), "bound"),
        (lambda: Norm(np.zeros(2), np.inf), "strength"),
        (lambda: Quadratic(np.zeros(2), [1.0, 0.0]), "weights"),
        (lambda: Features.indexed([0, 3], 3), "indices"),
        (lambda: regularise(together, csr_matrix((2, 3)), Groups([0, 1], 1.0)), "one column for each part"),
        (lambda: regularise(together, np.zeros((3, size)), Groups([0, 1], 1.0)), "features should be"),
        (lambda: regularise(together, np.zeros((2, size)), Groups([0, 1], 1.0), optimiser="newton"), "quasi-newton"),
        (lambda: label_features(together, [[0, 0], [], [0, 0], [0]], 1, 2), "sentence 2"),
        (lambda: regularise(together, np.ones((2, size)), Groups([0, 1], 1.0), start=[1.0]), "2 multipliers"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
