"""Factor graphs: exact without cycles, near with weak ones, clear about contradictions."""

from __future__ import annotations

import itertools
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ModelError, ParameterError
from isogloss.structures import Chain, FactorGraph, InfeasibleError, ProjectiveTree, Structure
from isogloss.structures.semiring import MAX
from isogloss.structures.spanning import SpanningTree
from isogloss.testing import (
    brute_force_factors,
    brute_force_trees,
    check_batch,
    check_laws,
    check_structure,
    having,
    trees,
)
from isogloss.testing.strategies import FactorTree, factor_trees

LAWS = settings(max_examples=40, deadline=None, derandomize=True)
INF = np.inf


def free_links(n):
    """bool[n + 1, n + 1]: links that a tree may have."""
    head, child = np.indices((n + 1, n + 1))
    return (head != child) & (child > 0)


def tree_rule(n, **kind):
    """Which rows of assignments to (n + 1)² links are trees."""
    allowed = {tuple(heads) for heads in trees(n, **kind)}

    def rule(values):
        links = values[:, : (n + 1) ** 2].reshape(-1, n + 1, n + 1)
        one = (links[:, :, 1:].sum(axis=1) == 1).all(axis=1)
        heads = links.argmax(axis=1)[:, 1:]
        return one & np.array([tuple(row) in allowed for row in heads.tolist()], bool)

    return rule


def link_parts(n):
    """A rule for every link."""
    return [having((number, 1)) for number in range((n + 1) ** 2)]


def link_sizes(n):
    return [2 if free else 1 for free in free_links(n).ravel()]


def grandparents(n):
    i, j, k = (index.ravel() for index in np.indices((n + 1,) * 3))
    ok = (i != j) & (j != k) & (i != k) & (j > 0) & (k > 0)
    return i[ok], j[ok], k[ok]


def second_order(n, scores, grand, **options):
    """LINK + GRAND + PTREE."""
    g = FactorGraph(**options)
    links = g.links(n)
    g.unary(links, np.where(free_links(n), scores, 0.0))
    g.tree(links)
    i, j, k = grandparents(n)
    g.pairwise(links[i, j], links[j, k], grand[i, j, k])
    return g, links


# --- exact without cycles ---------------------------------------------------------------------------------------------


def from_tree(tree: FactorTree) -> tuple[FactorGraph, list, np.ndarray]:
    g, parts, scores = FactorGraph(), [], []
    variables = [g.multinomial(1, size) if size else g.boolean(1) for size in tree.sizes]
    for v, (size, unary) in enumerate(zip(tree.sizes, tree.unary, strict=True)):
        g.unary(variables[v], unary[None, :] if size else unary)
        parts += [having((v, value)) for value in (range(size) if size else [1])]
        scores += unary.tolist()
    for a, b, table in tree.edges:
        if tree.sizes[a] == 0 and tree.sizes[b] == 0 and table[1, 1] > 0:  # now and then only "both true"
            g.pairwise(variables[a], variables[b], table[1:, 1])
            parts.append(having((a, 1), (b, 1)))
            scores.append(table[1, 1])
            continue
        g.table([variables[a], variables[b]], table[None])
        parts += [having((a, i), (b, j)) for i, j in np.ndindex(table.shape)]
        scores += table.ravel().tolist()
    return g, parts, np.array(scores)


@LAWS
@given(factor_trees(), st.sampled_from(["synchronous", "residual"]))
def test_trees_of_variables_are_exact(tree, schedule):
    g, parts, scores = from_tree(tree)
    assert g.exact and g.scores == pytest.approx(scores)
    truth = brute_force_factors([size or 2 for size in tree.sizes], parts, scores)
    if truth.log_partition == -INF:
        for method in (g.log_partition, g.argmax, lambda: g.sample(np.random.default_rng(0))):
            with pytest.raises(InfeasibleError):
                method()
        return
    check_laws(g, truth, rng=np.random.default_rng(0), samples=0)
    found = g.run(schedule=schedule)
    assert found.report.converged and found.report.exact and found.report.remedy == ""
    assert found.log_partition() == pytest.approx(truth.log_partition)
    assert g.run(semiring=MAX).log_partition() == pytest.approx(truth.best)


def exactly_one_rows(scores, at_most=False):
    g = FactorGraph()
    links = g.boolean((2, 3))
    g.unary(links, scores.reshape(2, 3))
    (g.at_most_one if at_most else g.exactly_one)(links)
    return g


def one_rule(at_most):
    def rule(values):
        sums = values.reshape(-1, 2, 3).sum(axis=2)
        return ((sums <= 1) if at_most else (sums == 1)).all(axis=1)

    return rule


@pytest.mark.parametrize("at_most", [False, True])
def test_exactly_one_and_at_most_one_keep_every_law(at_most):
    check_structure(
        lambda scores: exactly_one_rows(scores, at_most),
        lambda scores: brute_force_factors([2] * 6, [having((v, 1)) for v in range(6)], scores, [one_rule(at_most)]),
        shapes=[(6,)],
        count=lambda shape: 16 if at_most else 9,
        samples=200,
    )


@pytest.mark.parametrize("kind", list(itertools.product([True, False], repeat=2)))
@pytest.mark.parametrize("n", [1, 2, 3])
def test_links_and_a_tree_keep_every_law(n, kind):
    projective, single_root = kind

    def build(scores):
        g = FactorGraph()
        links = g.boolean((n + 1, n + 1))  # all of them: the tree knows that no link leads to the root
        g.unary(links, scores.reshape(n + 1, n + 1))
        g.tree(links, projective=projective, single_root=single_root)
        return g

    rule = tree_rule(n, projective=projective, single_root=single_root)
    sizes = link_sizes(n)
    check_structure(
        build,
        lambda scores: brute_force_factors(sizes, link_parts(n), scores, [rule]),
        shapes=[((n + 1) ** 2,)],
        count=lambda shape: len(trees(n, projective=projective, single_root=single_root)),
        samples=200 if n == 3 else 0,
    )


@pytest.mark.parametrize("order", [1, 2])
def test_a_chain_keeps_every_law(order):
    n, k = 4, 2
    steps = [
        [(t + lag, value) for lag, value in enumerate(labels)]
        for t in range(n - order)
        for labels in itertools.product(range(k), repeat=order + 1)
    ]
    parts = [having((t, v)) for t in range(n) for v in range(k)] + [having(*step) for step in steps]

    def build(scores):
        g = FactorGraph()
        tags = g.multinomial(n, k)
        g.unary(tags, scores[: n * k].reshape(n, k))
        g.chain(tags, scores[n * k :].reshape(n - order, *(k,) * (order + 1)))
        return g

    check_structure(
        build,
        lambda scores: brute_force_factors([k] * n, parts, scores),
        shapes=[(len(parts),)],
        count=lambda shape: k**n,
        samples=200,
    )


def test_tags_of_a_link_keep_every_law():
    """Two links that share a tag: a path, link - tags - link."""
    sizes = [2, 2, 2, 3, 2]  # links 0 and 1, tags 2 … 4
    parts = [having((v, 1)) for v in (0, 1)]
    parts += [having((0, 1), (2, i), (3, j)) for i in range(2) for j in range(3)]
    parts += [having((1, 1), (3, j)) for j in range(3)]

    def build(scores):
        g = FactorGraph()
        links, one, two = g.boolean(2), g.multinomial(1, 2), g.multinomial(1, 3)
        g.boolean(1, name="alone")
        g.unary(links, scores[:2])
        g.link_tags(links[:1], one, two, scores=scores[2:8].reshape(1, 2, 3))
        g.link_tags(links[1:], two, scores=scores[8:].reshape(1, 3))
        return g

    def check(scores):
        g, truth = build(scores), brute_force_factors(sizes, parts, scores)
        assert g.exact
        assert g.log_partition() == pytest.approx(truth.log_partition)
        assert g.marginals() == pytest.approx(truth.marginals, abs=1e-12)
        assert g.entropy() == pytest.approx(truth.entropy)
        assert g.score(g.argmax()) == pytest.approx(truth.best)
        for row, y in enumerate(truth.structures[::7]):
            assert np.exp(g.log_prob(y)) == pytest.approx(truth.probabilities[7 * row])

    rng = np.random.default_rng(0)
    for scores in (rng.normal(0, 2, 11), np.zeros(11), np.where(rng.random(11) < 0.3, -INF, 1.0)):
        check(scores)
    g = build(rng.normal(0, 1, 11))
    drawn = np.mean([g.sample(rng) for _ in range(400)], axis=0)
    assert drawn[4] == pytest.approx(0.5, abs=0.1)
    assert drawn[:2] == pytest.approx(g.run().probabilities(g.variables("variables0")), abs=0.1)


@pytest.mark.parametrize("projective", [True, False])
def test_what_hangs_on_a_tree_is_exact(projective):
    """A tree, and Booleans that see one link each: no cycle, though the tree is in the middle."""
    n, extra = 2, 3
    size = (n + 1) ** 2
    where = np.flatnonzero(free_links(n).ravel())[:extra]
    parts = link_parts(n) + [having((size + e, 1)) for e in range(extra)]
    parts += [having((int(link), 1), (size + e, 1)) for e, link in enumerate(where)]

    def build(scores):
        g = FactorGraph()
        links, hints = g.links(n), g.boolean(extra, name="hints")
        g.unary(links, scores[:size].reshape(n + 1, n + 1))
        g.unary(hints, scores[size : size + extra])
        g.pairwise(links.reshape(-1)[where], hints, scores[size + extra :])
        g.tree(links, projective=projective)
        return g

    check_structure(
        build,
        lambda scores: brute_force_factors(
            link_sizes(n) + [2] * extra, parts, scores, [tree_rule(n, projective=projective)]
        ),
        shapes=[(len(parts),)],
        count=lambda shape: 3 * 2**extra,
        samples=200,
    )


@pytest.mark.parametrize("kind", ["child_sequence", "valence"])
def test_scored_children_keep_the_laws(kind):
    n = 2
    rng = np.random.default_rng(3)
    shape = (2, n + 1, n + 1, n + 1) if kind == "child_sequence" else (2, n + 1, 2)
    g = FactorGraph()
    links = g.links(n)
    g.unary(links, rng.normal(0, 1, (n + 1, n + 1)))
    soft = getattr(g, kind)(links, rng.normal(0, 2, shape))
    values = list(itertools.product(*(range(size) for size in link_sizes(n))))
    logs = np.array([g.score(y) for y in values])
    truth = np.logaddexp.reduce(logs)
    assert g.exact
    assert g.log_partition() == pytest.approx(truth)
    assert g.marginals() == pytest.approx(np.exp(logs - truth) @ np.array([g.parts(y) for y in values]), abs=1e-12)
    assert soft.of(g.marginals()).shape == shape
    assert g.score(g.argmax()) == pytest.approx(logs.max())
    drawn = np.mean([links.of(g.sample(rng)) for _ in range(150)], axis=0)
    assert drawn == pytest.approx(g.beliefs.probabilities(links), abs=0.15)


@pytest.mark.parametrize("one_head", [True, False])
def test_two_words_that_cross_are_exact(one_head):
    g = FactorGraph()
    links = g.links(2)
    rng = np.random.default_rng(0)
    g.unary(links, rng.normal(0, 1, (3, 3)))
    soft = g.no_cross(links, np.full((2, 2), 2.0), one_head=one_head)
    values = list(itertools.product(*(range(size) for size in link_sizes(2))))
    logs = np.array([g.score(y) for y in values])
    assert g.exact and len(soft.of(g.scores)) == 1
    assert g.log_partition() == pytest.approx(np.logaddexp.reduce(logs))


# --- what the specification lists -------------------------------------------------------------------------------------


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("n", [1, 4, 12])
def test_links_and_tree_are_exact_after_two_iterations(n, projective):
    rng = np.random.default_rng(n)
    scores = rng.normal(0, 3, (n + 1, n + 1))
    g = FactorGraph()
    links = g.links(n)
    g.unary(links, scores)
    g.tree(links, projective=projective)
    dist = (ProjectiveTree if projective else SpanningTree)(scores)
    found = g.run(iterations=2)
    assert found.report.converged and found.report.iterations == 2 and g.exact
    assert found.probabilities(links) == pytest.approx(dist.marginals(), abs=1e-8)
    assert found.log_partition() == pytest.approx(dist.log_partition(), abs=1e-8)
    assert links.of(g.argmax()).argmax(axis=0)[1:].tolist() == dist.argmax().tolist()


def test_a_chain_is_forward_backward():
    rng = np.random.default_rng(0)
    n, k = 30, 5
    nodes, steps = rng.normal(0, 2, (n, k)), rng.normal(0, 2, (n - 1, k, k))
    full = np.zeros((n, k, k))
    full[1:] = steps
    dist = Chain(full + nodes[:, None, :])
    one, many = FactorGraph(), FactorGraph()
    tags = one.multinomial(n, k)
    one.unary(tags, nodes)
    soft = one.chain(tags, steps)
    tags = many.multinomial(n, k)
    many.unary(tags, nodes)
    many.table([tags[:-1], tags[1:]], steps)
    for g in (one, many):
        assert g.log_partition() == pytest.approx(dist.log_partition(), rel=1e-12)
        assert soft.of(g.marginals()) == pytest.approx(dist.marginals()[1:], abs=1e-10)
        assert g.argmax().tolist() == dist.argmax().tolist()
    assert one.run().report.iterations == 2
    assert many.run().report.iterations > 20  # one step of the chain in each round: why chains are one factor


def test_at_most_one_is_better_than_pairs_that_exclude_each_other():
    rng = np.random.default_rng(1)
    scores = rng.normal(0, 1, 4)
    whole, pairs = FactorGraph(), FactorGraph()
    for g in (whole, pairs):
        g.unary(g.boolean(4), scores)
    whole.at_most_one(whole.variables("variables0"))
    x = pairs.variables("variables0")
    first, second = np.triu_indices(4, 1)
    pairs.pairwise(x[first], x[second], np.full(6, -INF))
    values = list(itertools.product([0, 1], repeat=4))
    assert [whole.score(y) for y in values] == [pairs.score(y) for y in values]
    truth = np.exp([whole.score(y) for y in values])
    exact = truth @ np.array(values) / truth.sum()
    assert whole.exact and not pairs.exact
    assert whole.run().probabilities(whole.variables("variables0")) == pytest.approx(exact, abs=1e-12)
    assert np.abs(pairs.run(damping=0.3).probabilities(x) - exact).max() > 1e-3


def test_loopy_error_shrinks_with_the_potentials():
    """n = 4, LINK + GRAND + PTREE: about 0.003, 0.024, 0.034 and 0.019 at deviations 0.1, 0.5, 1 and 2."""
    rng = np.random.default_rng(0)
    errors = {}
    for spread in (0.0, 0.1, 0.5, 1.0, 2.0):
        found = []
        for _ in range(10):
            scores, grand = rng.normal(0, 1, (5, 5)), rng.normal(0, spread, (5, 5, 5))
            g, links = second_order(4, scores, grand, damping=0.2)
            truth = brute_force_trees(scores, projective=True, grandparents=grand)
            found.append(np.abs(g.run(iterations=300).probabilities(links) - truth.marginals)[free_links(4)].mean())
        errors[spread] = float(np.mean(found))
    assert errors[0.0] < 1e-7
    assert errors[0.0] < errors[0.1] < errors[0.5] < errors[1.0] + 0.01
    assert errors[0.1] < 0.006 and errors[0.5] < 0.04 and errors[1.0] < 0.06 and errors[2.0] < 0.08


def test_loopy_trees_are_near_the_exact_second_order_program():
    rng = np.random.default_rng(0)
    right = words = 0
    for n in (5, 8):
        for _ in range(4):
            scores, grand = rng.normal(0, 1.5, (n + 1, n + 1)), rng.normal(0, 0.7, (n + 1,) * 3)
            grandparent, _, child = np.indices(grand.shape)
            grand[grandparent == child] = 0.0
            g, links = second_order(n, scores, grand, tolerance=0.0, iterations=10)
            exact = ProjectiveTree(scores, grandparents=grand)
            heads = g.run().best_tree(links)
            best = ProjectiveTree(exact.marginals()).argmax()
            right, words = right + int((heads == best).sum()), words + n
            assert g.score(g.argmax()) == pytest.approx(exact.score(links.of(g.argmax()).argmax(axis=0)[1:]))
    assert right / words > 0.9


def test_bethe_is_the_free_energy_of_the_reference_and_its_derivative_are_the_beliefs():
    """Equation 2.19 from the beliefs of tables and variables, on a graph with cycles; and finite differences."""
    rng = np.random.default_rng(0)
    g = FactorGraph(tolerance=1e-12)
    tags, flag = g.multinomial(3, 3), g.boolean(1)
    g.unary(tags, rng.normal(0, 1, (3, 3)))
    soft = g.table([tags[[0, 1, 2]], tags[[1, 2, 0]]], rng.normal(0, 0.7, (3, 3, 3)))
    gate = g.table([tags[:1], flag], rng.normal(0, 1, (1, 3, 2)))
    assert not g.exact
    found = g.run()
    p, q = found.probabilities(tags), found.probabilities(flag)[0]
    value = float((found.marginals() * g.scores).sum())
    for handle in (soft, gate):
        b = found.of(handle)
        value -= float((b * np.log(b)).sum())
    degrees = np.array([3, 2, 2])  # factors at each tag, without the unary ones
    value += float(((degrees - 1)[:, None] * p * np.log(p)).sum())
    assert q > 0 and found.log_partition() == pytest.approx(value, abs=1e-9)
    direction = rng.normal(0, 1, len(g.scores))
    above, below = (g.with_scores(g.scores + e * direction).log_partition() for e in (1e-5, -1e-5))
    assert (above - below) / 2e-5 == pytest.approx(float(direction @ found.marginals()), rel=1e-6)


def test_every_schedule_reaches_the_same_place():
    rng = np.random.default_rng(5)
    g, links = second_order(5, rng.normal(0, 1, (6, 6)), rng.normal(0, 0.5, (6, 6, 6)))
    plain = g.run()
    for options in ({"damping": 0.5}, {"schedule": "residual"}, {"schedule": "residual", "damping": 0.3}):
        other = g.run(iterations=500, **options)
        assert other.report.converged, other.report
        assert other.probabilities(links) == pytest.approx(plain.probabilities(links), abs=1e-6)
        assert other.log_partition() == pytest.approx(plain.log_partition(), abs=1e-6)
    again = g.run(start=plain)
    assert again.report.iterations == 1 and again.log_partition() == pytest.approx(plain.log_partition())
    nearby = g.with_scores(g.scores + 0.001)
    assert nearby.run(start=plain).report.iterations < nearby.run().report.iterations


def test_swinging_messages_are_reported_with_a_remedy():
    g = FactorGraph(iterations=30)
    x = g.boolean(3)
    g.unary(x, [0.3, -0.2, 0.1])
    g.table([x[[0, 1, 2]], x[[1, 2, 0]]], np.tile([[0.0, 9.0], [9.0, 0.0]], (3, 1, 1)))  # each unlike the next
    with pytest.warns(RuntimeWarning, match="damping"):
        g.log_partition()
    report = g.run().report
    assert not report.converged and "damping" in report.remedy and len(report.changes) == 30
    quiet = FactorGraph(iterations=3, tolerance=0.0)
    y = quiet.boolean(3)
    quiet.pairwise(y[[0, 1, 2]], y[[1, 2, 0]], np.ones(3))
    quiet.log_partition()  # all rounds were asked for: no warning


def test_a_crossing_penalty_comes_nearer_to_projective_trees():
    rng = np.random.default_rng(0)
    n, errors, repeated = 4, [], []
    for _ in range(5):
        scores = rng.normal(0, 1, (n + 1, n + 1))
        want = ProjectiveTree(scores).marginals()
        for penalty, one_head in ((0.0, False), (-2.0, False), (-INF, False), (-INF, True)):
            g = FactorGraph()
            links = g.links(n)
            g.unary(links, scores)
            g.tree(links, projective=False)
            g.no_cross(links, np.full((n, n), penalty), one_head=one_head)
            found = g.run(iterations=5 if one_head else None)
            if penalty == 0.0:
                assert found.probabilities(links) == pytest.approx(SpanningTree(scores).marginals(), abs=1e-9)
            errors.append(np.abs(found.probabilities(links) - want)[free_links(n)].mean())
            repeated.append(found.report.converged)
    free, soft, hard, stated_too_often = np.reshape(errors, (5, 4)).mean(axis=0)
    assert hard < soft < free and hard < 0.8 * free < stated_too_often
    assert np.reshape(repeated, (5, 4))[:, :3].all()


def test_the_same_constraint_twice_is_reported():
    g = FactorGraph()
    x = g.boolean(3)
    g.unary(x, [2.0, 0.0, -1.0])
    g.exactly_one(x)
    g.exactly_one(x)
    report = g.run(iterations=400).report
    assert not report.converged and not report.exact and report.largest > 100


def test_joint_tags_and_links():
    """Two words with tags, links between them scored by tags, and a tree: cycles, but near."""
    rng = np.random.default_rng(2)
    n, k = 2, 2
    errors = []
    for spread in (0.0, 0.3, 1.0):
        g = FactorGraph()
        links, tags = g.links(n), g.multinomial(n, k, name="tags")
        g.unary(links, rng.normal(0, 1, (n + 1, n + 1)))
        g.unary(tags, rng.normal(0, 1, (n, k)))
        g.chain(tags, rng.normal(0, spread, (n - 1, k, k)))
        head, child = np.array([1, 2]), np.array([2, 1])
        g.link_tags(links[head, child], tags[head - 1], tags[child - 1], scores=rng.normal(0, spread, (2, k, k)))
        g.link_tags(links[0, 1:], tags, scores=rng.normal(0, spread, (n, k)))
        g.tree(links, projective=False)
        values = list(itertools.product(*(range(size) for size in link_sizes(n) + [k] * n)))
        logs = np.array([g.score(y) for y in values])
        p = np.exp(logs - np.logaddexp.reduce(logs))
        want = p @ np.array(values)
        found = g.run()
        mine = np.concatenate([found.probabilities(links).ravel(), found.probabilities(tags)[:, 1]])
        errors.append(np.abs(mine - want).max())
        assert g.score(g.argmax()) > logs.max() - 0.5
    assert errors[0] < 1e-9 and errors[1] < 0.02 and errors[2] < 0.15


# --- observations, contradictions -------------------------------------------------------------------------------------


def test_observing_splits_the_sum():
    g, _, _ = from_tree(
        FactorTree([0, 3, 0], [np.ones(1), np.zeros(3), np.zeros(1)], [(0, 1, np.eye(2, 3)), (1, 2, np.ones((3, 2)))])
    )
    tag = g.variables("variables1")
    parts = [g.given(tag, value).log_partition() for value in range(3)]
    assert np.logaddexp.reduce(parts) == pytest.approx(g.log_partition())
    assert np.exp(np.array(parts) - g.log_partition()) == pytest.approx(g.run().probabilities(tag)[0])
    y = g.argmax()
    assert g.clamp(y).log_partition() == pytest.approx(g.score(y))
    assert g.clamp(y).score(y) == pytest.approx(g.score(y)) and g.clamp(y).score([0, 2, 0]) == -INF
    assert g.given(tag, 0).score([0, 1, 0]) == -INF


def test_observed_links_bind_the_tree():
    rng = np.random.default_rng(0)
    n = 4
    scores = rng.normal(0, 1, (n + 1, n + 1))
    for projective in (True, False):
        g = FactorGraph()
        links = g.links(n)
        g.unary(links, scores)
        g.tree(links, projective=projective)
        seen = g.given(links[2, 1], True).given(links[0, 3], False)
        truth = brute_force_trees(scores, projective=projective)
        keep = np.array([heads[0] == 2 and heads[2] != 0 for heads in truth.structures])
        logs = np.where(keep, truth.log_scores, -INF)
        assert seen.log_partition() == pytest.approx(np.logaddexp.reduce(logs))
        want = np.exp(logs - np.logaddexp.reduce(logs)) @ truth.parts.reshape(len(logs), -1)
        assert seen.run().probabilities(links).ravel() == pytest.approx(want, abs=1e-10)
        assert g.exact and seen.exact


@pytest.mark.parametrize(
    "build",
    [
        lambda g, x: g.given(x[0, 1], True).given(x[2, 1], True),  # two heads
        lambda g, x: g.given(x[1, 2], True).given(x[2, 1], True),  # a loop
        lambda g, x: g.given(x[:, 1], False),  # no head
        lambda g, x: g.given(x[1, 1], True),  # a word is its own head
    ],
)
@pytest.mark.parametrize("projective", [True, False])
def test_contradictions_are_named(build, projective):
    g = FactorGraph()
    links = g.boolean((3, 3), name="links")
    g.unary(links, np.zeros((3, 3)))
    g.tree(links, projective=projective)
    broken = build(g, links)
    for method in (broken.log_partition, broken.marginals, broken.argmax):
        with pytest.raises(InfeasibleError):
            method()


def test_contradictions_say_which_variable():
    g = FactorGraph()
    tags, flags = g.multinomial((2, 2), 3, name="tags"), g.boolean(2, name="flags")
    g.unary(tags, np.where(np.arange(12).reshape(2, 2, 3) == 11, -INF, 0.0))
    g.table([tags[1, 1:], flags[1:]], [[[-INF, -INF], [-INF, -INF], [0.0, 0.0]]])
    with pytest.raises(InfeasibleError, match=r"(tags\[1, 1\]|flags\[1\]) can be"):
        g.log_partition()
    with pytest.raises(InfeasibleError, match="observed otherwise"):
        g.given(flags, True).given(flags, False)
    h = FactorGraph()
    x = h.boolean(2, name="x")
    h.pairwise(x[:1], x[1:], [-INF])
    with pytest.raises(InfeasibleError, match=r"x\[\d\] can be neither true nor false"):
        h.given(x, True).log_partition()


# --- numerics ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("projective", [True, False])
def test_long_sentences_with_large_scores(projective):
    rng = np.random.default_rng(0)
    n = 150
    scores = rng.uniform(-50, 50, (n + 1, n + 1))
    g = FactorGraph()
    links = g.links(n)
    g.unary(links, scores)
    g.tree(links, projective=projective)
    dist = (ProjectiveTree if projective else SpanningTree)(scores)
    assert g.log_partition() == pytest.approx(dist.log_partition(), rel=1e-10)
    assert g.run().probabilities(links) == pytest.approx(dist.marginals(), abs=1e-9)


def test_second_order_with_large_scores_stays_finite():
    rng = np.random.default_rng(0)
    n = 20
    for projective in (True, False):
        g = FactorGraph(iterations=10, tolerance=0.0, damping=0.3)
        links = g.links(n)
        g.unary(links, np.where(free_links(n), rng.uniform(-50, 50, (n + 1, n + 1)), 0.0))
        g.tree(links, projective=projective)
        i, j, k = grandparents(n)
        g.pairwise(links[i, j], links[j, k], rng.uniform(-50, 50, len(i)))
        g.no_cross(links, rng.uniform(-50, 0, (n, n)))
        g.child_sequence(links, rng.uniform(-50, 50, (2, n + 1, n + 1, n + 1)))
        g.valence(links, rng.uniform(-50, 50, (2, n + 1, 3)))
        found = g.run()
        assert np.isfinite(found.log_partition()) and np.isfinite(found.marginals()).all()
        assert np.isfinite(g.score(g.argmax()))


def test_scores_of_ten_thousand():
    rng = np.random.default_rng(0)
    tree = FactorTree([0, 3, 2], [rng.normal(0, 1e4, 1), rng.normal(0, 1e4, 3), rng.normal(0, 1e4, 2)], [])
    tree.edges.extend([(0, 1, rng.normal(0, 1e4, (2, 3))), (1, 2, rng.normal(0, 1e4, (3, 2)))])
    g, parts, scores = from_tree(tree)
    truth = brute_force_factors([2, 3, 2], parts, scores)
    assert g.log_partition() == pytest.approx(truth.log_partition, rel=1e-12)
    assert g.marginals() == pytest.approx(truth.marginals, abs=1e-9)


# --- the object -------------------------------------------------------------------------------------------------------


def everything():
    rng = np.random.default_rng(0)
    n, k = 3, 2
    g = FactorGraph(damping=0.1, iterations=4, tolerance=0.0)
    links, tags = g.links(n), g.multinomial(n, k, name="tags")
    g.unary(links, rng.normal(0, 1, (n + 1, n + 1)))
    g.unary(tags, rng.normal(0, 1, (n, k)))
    i, j, m = grandparents(n)
    g.pairwise(links[i, j], links[j, m], rng.normal(0, 0.3, len(i)))
    g.table([tags[:1], links[0, 1:2]], rng.normal(0, 0.3, (1, k, 2)))
    g.link_tags(links[0, 1:], tags, scores=rng.normal(0, 0.3, (n, k)))
    g.chain(tags, rng.normal(0, 0.3, (n - 1, k, k)))
    g.chain(tags, rng.normal(0, 0.3, (n - 2, k, k, k)))
    g.tree(links, projective=False, single_root=True)
    g.exactly_one(links.T[1:])
    g.at_most_one([links[0, 1:], links[1, 2:]])
    g.no_cross(links, rng.normal(0, 0.3, (n, n)))
    g.child_sequence(links, rng.normal(0, 0.3, (2, n + 1, n + 1, n + 1)))
    g.valence(links, rng.normal(0, 0.3, (2, n + 1, 3)))
    return g.given(tags[2], 1)


def test_a_graph_is_plain_data():
    g = everything()
    header, arrays = g.to_arrays()
    again = FactorGraph.from_arrays(json.loads(json.dumps(header)), {name: a.copy() for name, a in arrays.items()})
    assert all(array.dtype.kind in "if" for array in arrays.values())
    for other in (again, pickle.loads(pickle.dumps(g))):
        assert other.log_partition() == g.log_partition()
        assert np.array_equal(other.marginals(), g.marginals())
        assert other.argmax().tolist() == g.argmax().tolist()
    assert again.variables("tags").shape == (3,) and again.options == g.options
    with pytest.raises(ModelError, match="whole factor graph"):
        FactorGraph.from_arrays({"iterations": None}, {})
    with pytest.raises(ModelError, match="do not fit"):
        FactorGraph.from_arrays(header, {**arrays, "evidence": np.zeros(2)})


def test_scores_come_and_go_in_order_of_addition():
    g = everything()
    assert isinstance(g, Structure)
    assert [handle.of(g.scores).shape for handle in g._factors][:3] == [(4, 4), (3, 2), (len(grandparents(3)[0]),)]
    marginals = g.marginals()
    assert marginals.shape == g.scores.shape and not marginals.flags.writeable
    assert (marginals >= 0).all() and (marginals <= 1 + 1e-9).all()
    y = g.argmax()
    assert g.parts(y).shape == g.scores.shape and g.score(y) == pytest.approx(float(g.parts(y) @ g.scores))
    assert g.with_scores(g.scores).log_partition() == g.log_partition()
    chain = g._factors[5]
    assert chain.of(marginals).sum(axis=(1, 2)) == pytest.approx(np.ones(2))
    with pytest.raises(ParameterError, match="cycles"):
        g.sample(np.random.default_rng(0))
    assert everything().log_partition() == g.log_partition()  # deterministic


def test_a_batch_is_one_graph_after_the_other():
    rng = np.random.default_rng(0)
    check_batch(
        exactly_one_rows, lambda scores: FactorGraph.batch(map(exactly_one_rows, scores)), rng.normal(size=(3, 6))
    )
    many = FactorGraph.batch([exactly_one_rows(rng.normal(size=6)), everything()])
    again = many.with_scores([many[0].scores + 1.0, many[1].scores])
    assert again.log_partition() == pytest.approx(many.log_partition() + [2.0, 0.0])
    with pytest.raises(InfeasibleError, match="sentence 1"):
        FactorGraph.batch([many[0], exactly_one_rows(np.full(6, -INF))]).log_partition()
    with pytest.raises(InfeasibleError, match="sentence 0"):
        FactorGraph.batch([exactly_one_rows(np.full(6, -INF))]).argmax()


def test_twice_the_same_unary_adds_up():
    g, h = FactorGraph(), FactorGraph()
    x, y = g.boolean(2), h.boolean(2)
    g.unary(x, [1.0, 2.0])
    g.unary(x[[0, 0]], [0.5, 0.25])
    h.unary(y, [1.75, 2.0])
    assert g.log_partition() == pytest.approx(h.log_partition())
    assert g.marginals()[[0, 2, 3]] == pytest.approx(np.full(3, h.marginals()[0]))


def test_a_variable_twice_in_a_factor_is_a_cycle():
    g = FactorGraph()
    x = g.boolean(1)
    g.pairwise(x, x, [1.0])
    assert not g.exact
    assert g.given(x, True).exact


@pytest.mark.parametrize("n", [0, 1])
def test_no_words_and_one_word(n):
    for projective in (True, False):
        g = FactorGraph()
        links = g.links(n)
        g.unary(links, np.full((n + 1, n + 1), 0.5))
        g.tree(links, projective=projective)
        g.no_cross(links, np.zeros((n, n)))
        g.exactly_one(links.T[1:])
        assert g.log_partition() == pytest.approx(0.5 * n)
        assert g.argmax().sum() == n
    empty = FactorGraph()
    assert empty.log_partition() == 0.0 and empty.argmax().shape == (0,) and empty.exact
    tags = empty.multinomial(0, 3)
    empty.chain(tags, np.zeros((0, 3, 3)))
    assert empty.log_partition() == 0.0


def test_best_tree_maximises_expected_attachments():
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 1, (5, 5))
    g, links = second_order(4, scores, rng.normal(0, 1, (5, 5, 5)))
    found = g.run(damping=0.2)
    p = found.probabilities(links)
    for projective, single_root in itertools.product([True, False], repeat=2):
        heads = found.best_tree(links, projective=projective, single_root=single_root)
        gain = {h: p[list(h), range(1, 5)].sum() for h in trees(4, projective=projective, single_root=single_root)}
        assert gain[tuple(heads.tolist())] == pytest.approx(max(gain.values()))
    assert len(found.best_tree(links, weights="log-odds")) == 4


def test_messages_can_be_looked_at():
    g = FactorGraph()
    x = g.boolean(2)
    g.unary(x, [1.0, -1.0])
    pair = g.pairwise(x[:1], x[1:], [2.0])
    found = g.run()
    assert found.incoming(pair)[0] == pytest.approx([1.0]) and found.incoming(pair)[1] == pytest.approx([-1.0])
    said = np.logaddexp(0, -1.0 + 2.0) - np.logaddexp(0, -1.0)
    assert found.outgoing(pair)[0] == pytest.approx([said])
    assert found.log_odds(x)[0] == pytest.approx(1.0 + said) and found.best(x).tolist() == [1, 1]


def test_wrong_use_is_refused():
    g = FactorGraph()
    links, tags = g.links(2), g.multinomial(3, 2, name="tags")
    for call, words in [
        (lambda: FactorGraph(iterations=0), "iterations"),
        (lambda: FactorGraph(damping=1.0), "damping"),
        (lambda: FactorGraph(tolerance=-1.0), "tolerance"),
        (lambda: g.run(schedule="sideways"), "schedule"),
        (lambda: g.links(2), "named"),
        (lambda: g.multinomial(3, 0), "positive"),
        (lambda: g.unary(links, np.zeros(3)), "shape"),
        (lambda: g.unary(tags, np.full((3, 2), np.nan)), "nan"),
        (lambda: g.pairwise(tags, tags, np.zeros(3)), "table"),
        (lambda: g.pairwise(links[0], links[0, :2], np.zeros(3)), "one shape"),
        (lambda: g.table([tags, links], np.zeros((3, 2, 2))), "one shape"),
        (lambda: g.table([], np.zeros(3)), "one or more"),
        (lambda: g.link_tags(tags, tags, scores=np.zeros((3, 2))), "Boolean"),
        (lambda: g.chain(links, np.zeros((1, 2, 2))), "row of variables"),
        (lambda: g.chain(tags, np.zeros((1, 2))), "order"),
        (lambda: g.tree(links[0]), "root first"),
        (lambda: g.exactly_one(tags), "Booleans"),
        (lambda: g.no_cross(links, np.zeros(3)), "scores should be"),
        (lambda: g.given(tags, 2), "values"),
        (lambda: g.score([0]), "assignment"),
        (lambda: g.variables("words"), "no variables"),
        (lambda: FactorGraph().unary(links, np.zeros((3, 3))), "not variables of this graph"),
    ]:
        with pytest.raises(ParameterError, match=words):
            call()
    g.tree(links, projective=False)
    with pytest.raises(ParameterError, match="maxima"):
        g.run(semiring=MAX)
    with pytest.raises(ParameterError, match="breaks the tree"):
        g.parts(np.zeros(g.n_variables, int))
    other = FactorGraph()
    other.boolean(2)
    with pytest.raises(ParameterError, match="another graph"):
        g.run(start=other.run())


def test_importing_compiles_nothing():
    code = "import sys, isogloss.structures.factorgraph; print('numba' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["False"]


def test_batches_clamp_and_say_that_there_is_no_k_best():
    one = FactorGraph()
    row = one.boolean(np.int64(3))
    one.unary(row, [1.0, 2.0, 3.0])
    one.exactly_one(row)
    many = FactorGraph.batch([one, one.with_scores([3.0, 1.0, 0.0])])
    best = many.argmax()
    assert many.clamp(best).log_partition() == pytest.approx([3.0, 3.0])
    with pytest.raises(ParameterError, match="FactorGraph has no k_best"):
        many.k_best(2)
    with pytest.raises(ParameterError, match="number of words"):
        FactorGraph().links(-1)
