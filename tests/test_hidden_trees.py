"""Pairs beside hidden trees, held against enumeration, belief propagation and each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.loglinear import Lbfgs, Likelihood
from isogloss.learners.models import Given, LinearModel
from isogloss.learners.runner import run
from isogloss.structures import (
    Couplings,
    FactorGraph,
    HiddenTrees,
    InfeasibleError,
    Structure,
    link_number,
    span_number,
)
from isogloss.structures.hidden import NO_PAIR, UNKNOWN
from isogloss.testing import brute_force_hidden, check_gradient, check_laws, check_structure

LAWS = settings(max_examples=50, deadline=None, derandomize=True)
KINDS = ("projective", "spanning", "brackets", "none")


def cells_of(tree, n):
    return {"none": 0, "brackets": n * (n + 1) // 2}.get(tree, (n + 1) ** 2)


def some_connectors(tree, n, rng, n_pairs):
    """For each pair no part, one, or two that exclude each other."""
    found = []
    for p in range(n_pairs):
        kind = int(rng.integers(3))
        if tree == "none" or kind == 0 or n < 2:
            continue
        if tree == "brackets":
            i = int(rng.integers(n - 1))
            found.append((p, span_number(i, i + 2, n)))
            if kind == 2 and i + 3 <= n:
                found.append((p, span_number(i + 1, i + 3, n)))
        else:
            head, child = (int(w) + 1 for w in rng.permutation(n)[:2])
            found.append((p, link_number(head, child, n)))
            if kind == 2:
                found.append((p, link_number(child, head, n)))
    return found


def problem(tree, n, n_pairs, n_labels, seed, *, spread=2.0, holes=0.0):
    rng = np.random.default_rng(seed)
    links = some_connectors(tree, n, rng, n_pairs)
    size = n_pairs * (1 + n_labels) + len(links) + cells_of(tree, n)
    scores = rng.normal(0, spread, size)
    return links, np.where(rng.random(size) < holes, -np.inf, scores)


def made(scores, n, n_pairs, n_labels, links, **options):
    return HiddenTrees.of([scores], Couplings.of([(n, n_pairs, links)]), n_labels, **options)[0]


def enumerated(scores, n, n_pairs, n_labels, links, **options):
    return brute_force_hidden(scores, n, n_pairs, n_labels, [(p, (c,)) for p, c in links], **options)


# --- the closed form ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tree", KINDS)
@pytest.mark.parametrize(
    ("n", "n_pairs", "n_labels", "at_most_one"), [(0, 0, 2, False), (1, 2, 1, True), (3, 2, 2, False)]
)
def test_hidden_trees_keep_every_law(tree, n, n_pairs, n_labels, at_most_one):
    links, scores = problem(tree, n, n_pairs, n_labels, 5)
    options = {"tree": tree, "at_most_one": at_most_one}
    couplings = Couplings.of([(n, n_pairs, links)])
    check_structure(
        lambda scores: made(scores, n, n_pairs, n_labels, links, **options),
        lambda scores: enumerated(scores, n, n_pairs, n_labels, links, **options),
        shapes=[scores.shape],
        batch=lambda blocks: HiddenTrees.of(
            blocks, couplings.take(np.zeros(len(blocks), np.int64)), n_labels, **options
        ),
        samples=200,
    )


@given(
    st.sampled_from(KINDS), st.integers(0, 3), st.integers(0, 2), st.integers(1, 2), st.integers(0, 10**6),
    st.sampled_from([0.1, 3.0, 40.0]), st.sampled_from([0.0, 0.15]), st.booleans(), st.booleans(),
)  # fmt: skip
@LAWS
def test_the_closed_form_equals_enumeration(tree, n, n_pairs, n_labels, seed, spread, holes, single_root, at_most_one):
    links, scores = problem(tree, n, n_pairs, n_labels, seed, spread=spread, holes=holes)
    options = {"tree": tree, "single_root": single_root, "at_most_one": at_most_one}
    truth = enumerated(scores, n, n_pairs, n_labels, links, **options)
    dist = made(scores, n, n_pairs, n_labels, links, **options)
    assert isinstance(dist, Structure)
    if truth.log_partition == -np.inf:
        with pytest.raises(InfeasibleError):
            dist.log_partition()
        return
    check_laws(dist, truth, rng=np.random.default_rng(0), samples=0)
    _check_given(dist, truth, n_pairs, n_labels, np.random.default_rng(seed))


def _check_given(dist, truth, n_pairs, n_labels, rng):
    """What agrees with some labels, with all, with a tree, and with one structure."""
    labels = rng.integers(NO_PAIR, n_labels, n_pairs)
    listed = np.array(truth.structures, np.int64).reshape(len(truth.structures), -1)
    heads = listed[int(rng.integers(len(listed)))][n_pairs:]
    some = np.where(rng.random(n_pairs) < 0.5, UNKNOWN, labels)
    tree = dist.split(np.concatenate([labels, heads]))[1]
    for known, given_tree in ((labels, None), (some, None), (None, tree), (some, tree), (labels, tree)):
        agrees = np.ones(len(listed), bool)
        if known is not None:
            agrees &= ((listed[:, :n_pairs] == known) | (known == UNKNOWN)).all(axis=1)
        if given_tree is not None:
            agrees &= (listed[:, n_pairs:] == heads).all(axis=1)
        held = np.where(agrees, truth.log_scores, -np.inf)
        sub = type(truth)(truth.structures, truth.parts, held)
        found = dist.batch.given(None if known is None else [known], None if given_tree is None else [given_tree])
        if sub.log_partition == -np.inf:
            with pytest.raises(InfeasibleError):
                found.log_partition()
            continue
        check_laws(found[0], sub, rng=np.random.default_rng(0), samples=0)
    y = listed[int(truth.log_scores.argmax())]
    assert dist.clamp(y).log_partition() == pytest.approx(truth.best, rel=1e-9, abs=1e-9)


def test_sums_of_links_alone_are_numbers_of_trees():
    for tree, counts in (("projective", [1, 2, 7, 30, 143]), ("brackets", [1, 1, 2, 5, 14])):
        for n, count in enumerate(counts, 1):
            dist = made(np.zeros(1 + 3 + cells_of(tree, n)), n, 1, 3, [], tree=tree)
            assert np.exp(dist.log_partition()) == pytest.approx(4 * count)


@pytest.mark.parametrize("tree", KINDS[:3])
def test_connectors_of_0_change_nothing_to_the_bit(tree):
    links, scores = problem(tree, 5, 4, 3, 8)
    first = 4 * (1 + 3)
    scores[first : first + len(links)] = 0.0
    coupled, alone = (
        made(scores[:stop], 5, 4, 3, own, tree=kind) for stop, own, kind in ((None, links, tree), (first, [], "none"))
    )
    assert links
    np.testing.assert_array_equal(coupled.marginals()[:first], alone.marginals())
    uncoupled = made(np.delete(scores, range(first, first + len(links))), 5, 4, 3, [], tree=tree)
    np.testing.assert_array_equal(coupled.marginals()[first + len(links) :], uncoupled.marginals()[first:])
    assert coupled.log_partition() == uncoupled.log_partition()


def test_given_trees_make_connectors_ordinary_features():
    """Clamped links are given syntax: pairs whose link is there have the connector's score more, and no others."""
    links = [(0, link_number(1, 2, 3)), (1, link_number(3, 2, 3)), (2, link_number(3, 1, 3))]
    _, scores = problem("projective", 3, 3, 2, 1)
    scores = np.concatenate([scores[:9], [1.5, -2.0, 0.7], np.random.default_rng(2).normal(size=16)])
    given_tree = made(scores, 3, 3, 2, links).batch.given(trees=[[3, 1, 0]])[0]  # 3 -> 1 -> 2
    plain = scores[:9].copy()
    plain[0] += 1.5
    plain[2] += 0.7
    np.testing.assert_allclose(
        given_tree.marginals()[:9], made(plain, 3, 3, 2, [], tree="none").marginals(), rtol=1e-12
    )


def test_one_part_may_speak_for_several_pairs():
    links = [(0, link_number(1, 2, 3)), (1, link_number(1, 2, 3))]
    scores = np.random.default_rng(4).normal(size=2 * 2 + 2 + 16)
    check_laws(made(scores, 3, 2, 1, links), enumerated(scores, 3, 2, 1, links), rng=np.random.default_rng(0))


def test_far_scores_give_no_nan():
    for tree in KINDS:
        for size in (1e3, 1e6):
            links, scores = problem(tree, 4, 3, 2, 3, spread=size)
            dist = made(scores, 4, 3, 2, links, tree=tree)
            assert np.isfinite(dist.log_partition()) and np.isfinite(dist.marginals()).all()
            assert (dist.marginals() >= 0).all() and (dist.marginals() <= 1 + 1e-9).all()
            assert dist.log_partition() == pytest.approx(dist.score(dist.argmax()), rel=1e-6)


def test_what_does_not_fit_is_refused():
    fits = Couplings.of([(3, 1, [(0, link_number(1, 2, 3))])])
    with pytest.raises(ParameterError, match="exclude each other"):
        HiddenTrees.of([np.zeros(20)], Couplings.of([(3, 1, [(0, 6), (0, link_number(1, 3, 3))])]), 1)
    with pytest.raises(ParameterError, match="one that there is not"):
        HiddenTrees.of([np.zeros(19)], Couplings.of([(3, 1, [(1, 6)])]), 1)
    with pytest.raises(ParameterError, match="in the order"):
        HiddenTrees.of([np.zeros(22)], Couplings.of([(3, 2, [(1, 6), (0, 7)])]), 1)
    with pytest.raises(ParameterError, match="every sentence"):
        HiddenTrees.of([np.zeros(18)], fits, 1)
    with pytest.raises(ParameterError, match="tree should be one of"):
        HiddenTrees.of([np.zeros(19)], fits, 1, tree="bushy")
    dist = HiddenTrees.of([np.zeros(19)], fits, 1)
    for labels in ([[3]], [[0, 0]], [[-3]], []):
        with pytest.raises(ParameterError):
            dist.given(labels=labels)
    with pytest.raises(ParameterError, match="heads"):
        dist.given(trees=[[0, 1]])
    assert dist[0].log_prob(np.array([0, 2, 1, 0])) == -np.inf  # a loop


# --- belief propagation ------------------------------------------------------------------------------------------


def as_graph(scores, n, n_pairs, n_labels, links, tree):
    """The same as variables and factors: links under a tree, pairs with a label or none, and soft NANDs."""
    graph, first = FactorGraph(), n_pairs * (1 + n_labels)
    pairs = graph.multinomial(n_pairs, n_labels + 1, name="pairs")  # the last value is none
    weights = np.zeros((n_pairs, n_labels + 1))
    weights[:, :-1] = scores[:n_pairs, None] + scores[n_pairs:first].reshape(n_pairs, n_labels)
    graph.unary(pairs, weights)
    if tree == "brackets":
        hidden = graph.spans(n)
        graph.unary(hidden, scores[first + len(links) :])
        graph.brackets(hidden)
    else:
        hidden = graph.links(n)
        graph.unary(hidden, scores[first + len(links) :].reshape(n + 1, n + 1))
        graph.tree(hidden, projective=tree == "projective", single_root=True)
    for c, (p, cell) in enumerate(links):
        table = np.zeros((1, n_labels + 1, 2))
        table[0, :-1, 1] = scores[first + c]
        graph.table([pairs[p : p + 1], hidden.reshape(-1)[cell : cell + 1]], table)
    return graph, pairs, hidden


@pytest.mark.parametrize("tree", ["projective", "spanning", "brackets"])
def test_the_closed_form_equals_belief_propagation_without_cycles(tree):
    n, n_pairs, n_labels = 5, 4, 2
    links = [(p, link_number(p + 1, p + 2, n)) for p in range(3)] + [(3, link_number(5, 1, n))]
    cells = (n + 1) ** 2
    if tree == "brackets":
        links = [(p, span_number(p, p + 2, n)) for p in range(3)] + [(3, span_number(1, 4, n))]
        cells = n * (n + 1) // 2
    scores = np.random.default_rng(3).normal(0, 1.5, n_pairs * (1 + n_labels) + len(links) + cells)
    graph, pairs, hidden = as_graph(scores, n, n_pairs, n_labels, links, tree)
    assert graph.exact
    dist, beliefs = made(scores, n, n_pairs, n_labels, links, tree=tree), graph.run()
    assert dist.log_partition() == pytest.approx(beliefs.log_partition(), abs=1e-7)
    mine = dist.marginals()
    np.testing.assert_allclose(1 - mine[:n_pairs], beliefs.probabilities(pairs)[:, -1], atol=1e-7)
    labels = mine[n_pairs : n_pairs * (1 + n_labels)].reshape(n_pairs, n_labels)
    np.testing.assert_allclose(labels, beliefs.probabilities(pairs)[:, :-1], atol=1e-7)
    found = mine[-cells:].reshape(hidden.shape)
    np.testing.assert_allclose(found, beliefs.probabilities(hidden), atol=1e-7)
    seen = graph.given(pairs, [0, n_labels, 1, n_labels])
    agreeing = dist.batch.given([[0, NO_PAIR, 1, NO_PAIR]])
    assert agreeing.log_partition()[0] == pytest.approx(seen.run().log_partition(), abs=1e-7)


# --- learning ----------------------------------------------------------------------------------------------------


def some_model(tree, seed=0):
    """Three sentences with random features on all parts, and labels of some pairs that are known."""
    rng, sentences, scores, known = np.random.default_rng(seed), [], [], []
    for n, n_pairs in ((4, 3), (2, 1), (3, 0)):
        links, own = problem(tree, n, n_pairs, 2, int(rng.integers(99)))
        sentences.append((n, n_pairs, links))
        scores.append(np.zeros(len(own)))
        known.append(rng.integers(NO_PAIR, 2, n_pairs))
    batch = HiddenTrees.of(scores, Couplings.of(sentences), 2, tree=tree)
    rows = [rng.choice(12, 2, replace=False).tolist() for _ in range(len(batch.scores.values))]
    return LinearModel(batch, Sparse.of(rows, 12)), known


@pytest.mark.parametrize("tree", KINDS)
def test_likelihood_with_hidden_trees_has_the_gradient_of_finite_differences(tree):
    model, known = some_model(tree)
    check_gradient(Likelihood(model, target=Given(labels=known)), np.random.default_rng(1).normal(0, 0.5, 12))


def test_learning_raises_the_likelihood_of_labels():
    model, known = some_model("projective")
    learner = Lbfgs(Likelihood(model, target=Given(labels=known)), l2=0.1)
    trace = run(learner, learner.init(np.full(12, 0.1)), iterations=20).trace
    assert all(after >= before - 1e-9 for before, after in pairwise(trace))
    assert trace[-1] > trace[0] + 0.1


def test_at_weights_of_0_links_learn_nothing_and_connectors_do():
    links = [(0, link_number(1, 2, 3))]
    batch = HiddenTrees.of([np.zeros(1 + 1 + 1 + 16)], Couplings.of([(3, 1, links)]), 1)
    wanted = batch.given([[0]]).marginals().values - batch.marginals().values
    assert wanted[2] > 0.05 and np.abs(wanted[3:]).max() == 0.0


# --- a common head: cycles, and so an approximation ---------------------------------------------------------------


def with_pivots(links, pairs, connector):
    """Pairs of words and all their common heads as a factor graph: D-CONNECT of Naradowsky et al. 2012."""
    n, graph = len(links) - 1, FactorGraph(iterations=50)
    hidden, related = graph.links(n), graph.boolean(len(pairs), name="pairs")
    graph.unary(hidden, links)
    graph.unary(related, np.full(len(pairs), -0.5))
    graph.tree(hidden, projective=True, single_root=True)
    table = np.zeros((1, 2, 2, 2))
    table[0, 1, 1, 1] = connector
    for p, (i, j) in enumerate(pairs):
        for k in range(1, n + 1):
            if k not in (i, j):
                graph.table([hidden[k : k + 1, i], hidden[k : k + 1, j], related[p : p + 1]], table)
    return graph, related


def test_belief_propagation_with_common_heads_is_near_and_exact_without_connectors():
    n, pairs, rng = 4, [(1, 2), (2, 4), (1, 4)], np.random.default_rng(0)
    links, errors = rng.normal(size=(n + 1, n + 1)), {}
    for connector in (2.0, 1.0, 0.5, 0.0):
        pivots = [(p, (k * (n + 1) + i, k * (n + 1) + j)) for p, (i, j) in enumerate(pairs) for k in range(1, n + 1)]
        pivots = [(p, cells) for p, cells in pivots if cells[0] // (n + 1) not in pairs[p]]
        scores = np.concatenate([np.full(3, -0.5), np.zeros(3), np.full(len(pivots), connector), links.ravel()])
        truth = brute_force_hidden(scores, n, 3, 1, pivots)
        graph, related = with_pivots(links, pairs, connector)
        assert connector == 0.0 or not graph.exact
        errors[connector] = np.abs(graph.run(tolerance=0.0).probabilities(related) - truth.marginals[:3]).max()
    assert errors[0.0] < 1e-9 and errors[0.5] < errors[1.0] < 0.05 and errors[2.0] < 0.2
