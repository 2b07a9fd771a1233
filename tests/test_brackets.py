"""Bracketings and trees of labelled spans, held against enumeration, known counts and each other."""

from __future__ import annotations

from itertools import pairwise
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.structures import (
    Bracketings,
    Brackets,
    InfeasibleError,
    SpanTree,
    SpanTrees,
    Stack,
    Structure,
    span_number,
    spans_of,
)
from isogloss.structures.brackets import count_bracketings
from isogloss.structures.span_charts import Kind
from isogloss.testing import (
    all_spans,
    brute_force_brackets,
    brute_force_spans,
    check_batch,
    check_k_best,
    check_laws,
    check_structure,
)
from isogloss.testing.strategies import bracket_scores, span_scores

LAWS = settings(max_examples=60, deadline=None, derandomize=True)
ARITIES = pytest.mark.parametrize("arity", ["binary", "any"])
KINDS = pytest.mark.parametrize(("arity", "rooted"), [("binary", True), ("any", True), ("any", False)])


def n_spans(n):
    return n * (n + 1) // 2


def normal(n, labels=None, *, spread=2.0, holes=0.0, seed=0):
    rng = np.random.default_rng(seed)
    shape = (n_spans(n),) if labels is None else (n_spans(n), labels)
    return np.where(rng.random(shape) < holes, -np.inf, rng.normal(0, spread, shape))


def in_logs(scores, kind):
    """log Z and marginals from the kernel that works in logarithms throughout."""
    from isogloss.structures._numba.span_tree import log_spans
    from isogloss.structures.spans import n_words

    scores = np.array(scores)
    wide = scores.shape[1] if scores.ndim == 2 else 1
    scores.flags.writeable = False
    grad, values = np.zeros(scores.size), np.full(1, np.nan)
    layout = (np.array([0, scores.size]), np.array([n_words(len(scores))]), np.array([wide]))
    log_spans(0, 1, scores.reshape(-1), *layout, *kind, grad, values)
    return float(values[0]), grad.reshape(scores.shape)


# --- spans -------------------------------------------------------------------------------------------------------


def test_spans_are_numbered_by_width_then_by_start():
    for n in range(8):
        assert [tuple(span) for span in spans_of(n).tolist()] == all_spans(n)
        assert [span_number(i, j, n) for i, j in spans_of(n).tolist()] == list(range(n_spans(n)))
    assert spans_of(0).shape == (0, 2) and spans_of(3).dtype == np.int64
    with pytest.raises(ParameterError, match="0 <= i < j <= 3"):
        span_number(2, 2, 3)


# --- unlabelled brackets -----------------------------------------------------------------------------------------


@ARITIES
def test_brackets_keep_every_law(arity):
    check_structure(
        lambda scores: Brackets(scores, arity=arity),
        lambda scores: brute_force_brackets(scores, binary=arity == "binary"),
        shapes=[(n_spans(n),) for n in (0, 1, 2, 3, 4, 5)],
        count=lambda shape: count_bracketings({n_spans(n): n for n in range(6)}[shape[0]], arity=arity),
        column=lambda scores: np.s_[-1],
        batch=lambda blocks: Brackets.batch(blocks, arity=arity),
        samples=300,
    )


def test_numbers_of_bracketings_are_catalans_and_schroeders():
    for arity, counts in (("binary", [1, 1, 2, 5, 14, 42, 132]), ("any", [1, 1, 3, 11, 45, 197, 903])):
        found = np.exp(Brackets.batch([np.zeros(n_spans(n)) for n in range(1, 8)], arity=arity).log_partition())
        np.testing.assert_allclose(found, counts)
    for n, arity in ((30, "binary"), (60, "any"), (400, "binary"), (500, "any")):
        dist = Brackets(np.zeros(n_spans(n)), arity=arity)
        assert dist.log_partition() == pytest.approx(log(count_bracketings(n, arity=arity)), rel=1e-12)


@given(bracket_scores(max_n=5), st.sampled_from(["binary", "any"]), st.integers(0, 99))
@LAWS
def test_brackets_agree_with_enumeration(scores, arity, seed):
    truth = brute_force_brackets(scores, binary=arity == "binary")
    dist = Brackets(scores, arity=arity)
    assert isinstance(dist, Structure)
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.argmax, lambda: dist.k_best(3), lambda: dist.hessian_vector(scores)):
            with pytest.raises(InfeasibleError, match="finite scores"):
                method()
        return
    check_laws(dist, truth, rng=np.random.default_rng(0), samples=0)
    check_k_best(dist.k_best(9), truth, 9)
    assert dist.k_best(1)[0][0] == pytest.approx(dist.score(dist.argmax()))
    log_z, marginals = in_logs(scores, Kind(arity == "binary", False, True))
    assert log_z == pytest.approx(truth.log_partition, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(marginals, truth.marginals, atol=1e-10)
    direction, p = np.random.default_rng(seed).normal(size=scores.shape), truth.probabilities
    each = (truth.parts * direction).sum(axis=1)
    np.testing.assert_allclose(dist.hessian_vector(direction), (p * (each - p @ each)) @ truth.parts, atol=1e-9)
    gains = (truth.parts * (truth.marginals - 0.4)).sum(axis=1)[truth.log_scores > -np.inf]
    best = dist.parts(dist.most_right(threshold=0.4))
    assert dist.score(dist.most_right(threshold=0.4)) > -np.inf
    assert (best * (truth.marginals - 0.4)).sum() == pytest.approx(gains.max(), abs=1e-9)


# --- labelled spans ----------------------------------------------------------------------------------------------


def n_labelled(n, labels, arity, rooted):
    """By dynamic programming over counts: every span has `labels` choices, a word one more unless trees are binary."""
    if not n:
        return 1
    binary = arity == "binary"
    word = labels + (not binary and not (n == 1 and rooted))
    one, two = [0, word], [0, 0]
    for width in range(2, n + 1):
        rest = one if binary else [a + b for a, b in zip(one, two, strict=True)]
        two.append(sum(one[left] * rest[width - left] for left in range(1, width)))
        one.append(labels * two[width])
    return one[n] if binary or rooted or n == 1 else one[n] + two[n]


@KINDS
def test_span_trees_keep_every_law(arity, rooted):
    words = {n_spans(n): n for n in range(6)}
    check_structure(
        lambda scores: SpanTree(scores, arity=arity, rooted=rooted),
        lambda scores: brute_force_spans(scores, binary=arity == "binary", rooted=rooted),
        shapes=[(0, 2), (1, 3), (3, 2), (3, 1), (6, 2), (10, 1)],
        count=lambda shape: n_labelled(words[shape[0]], shape[1], arity, rooted),
        column=(lambda scores: np.s_[-1]) if rooted else None,
        batch=lambda blocks: SpanTree.batch(blocks, arity=arity, rooted=rooted),
        samples=300,
    )


@given(span_scores(), st.sampled_from([("binary", True), ("any", True), ("any", False)]), st.integers(0, 99))
@LAWS
def test_span_trees_agree_with_enumeration(scores, kind, seed):
    arity, rooted = kind
    truth = brute_force_spans(scores, binary=arity == "binary", rooted=rooted)
    dist = SpanTree(scores, arity=arity, rooted=rooted)
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.argmax, lambda: dist.k_best(3), lambda: dist.hessian_vector(scores)):
            with pytest.raises(InfeasibleError, match="finite scores"):
                method()
        return
    check_laws(dist, truth, rng=np.random.default_rng(0), samples=0)
    check_k_best(dist.k_best(9), truth, 9)
    log_z, marginals = in_logs(scores, dist._kind)
    assert log_z == pytest.approx(truth.log_partition, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(marginals, truth.marginals, atol=1e-10)
    direction, p = np.random.default_rng(seed).normal(size=scores.shape), truth.probabilities
    each = (truth.parts * direction).sum(axis=(1, 2))
    covariance = np.tensordot(p * (each - p @ each), truth.parts, 1)
    np.testing.assert_allclose(dist.hessian_vector(direction), covariance, atol=1e-9)
    worth = truth.marginals - 0.3
    if arity == "binary":
        worth[:, 0] = 0.0
    gains = (truth.parts * worth).sum(axis=(1, 2))[truth.log_scores > -np.inf]
    best = dist.most_right(threshold=0.3)
    assert (dist.parts(best) * worth).sum() == pytest.approx(gains.max(), abs=1e-9) and dist.score(best) > -np.inf


@KINDS
def test_longer_sentences(arity, rooted):
    for n, labels in ((15, 1), (16, 3), (17, 16), (33, 17), (64, 40)):  # on both sides of whole vectors
        dist = SpanTree(normal(n, labels, seed=n, holes=0.1 if n > 30 else 0.0), arity=arity, rooted=rooted)
        log_z, marginals = in_logs(dist.scores, dist._kind)
        assert dist.log_partition() == pytest.approx(log_z, rel=1e-13)
        np.testing.assert_allclose(dist.marginals(), marginals, rtol=1e-9, atol=1e-14)
        if arity == "binary":
            np.testing.assert_allclose(dist.marginals().sum(), 2 * n - 1)
            np.testing.assert_allclose(dist.marginals()[:n].sum(axis=1), 1.0)
        best, ranked = dist.argmax(), dist.k_best(20)
        assert dist._is_tree(best) and ranked[0][1] == best
        assert [score for score, _ in ranked] == pytest.approx([dist.score(tree) for _, tree in ranked])
        assert len({tree for _, tree in ranked}) == 20
        assert all(a >= b for (a, _), (b, _) in pairwise(ranked))
        step, direction = 1e-5, np.random.default_rng(n).normal(size=dist.scores.shape)
        ahead, behind = (dist.with_scores(dist.scores + e * direction).marginals() for e in (step, -step))
        np.testing.assert_allclose(dist.hessian_vector(direction), (ahead - behind) / (2 * step), atol=1e-6)


@KINDS
@pytest.mark.parametrize(("n", "spread"), [(40, 20.0), (40, 60.0), (80, 300.0), (120, 5.0), (150, 50.0), (60, 1e4)])
def test_scores_of_any_size(n, spread, arity, rooted):
    """On both sides of where logarithms take over from plain probabilities."""
    dist = SpanTree(normal(n, 2, spread=spread, holes=0.05), arity=arity, rooted=rooted)
    dist = dist.with_scores(np.where(np.arange(len(dist.scores))[:, None] < n, 0.0, dist.scores))
    log_z, marginals = in_logs(dist.scores, dist._kind)
    assert dist.log_partition() == pytest.approx(log_z, rel=1e-13)
    np.testing.assert_allclose(dist.marginals(), marginals, atol=1e-11)
    best = dist.score(dist.argmax())
    assert best <= dist.log_partition() <= best + log(n_labelled(n, 2, arity, rooted))


@KINDS
def test_a_few_large_scores_do_not_drown_the_rest(arity, rooted):
    """Sums that were scaled down for one large weight, and lost small ones, must not be scaled up again."""
    rng = np.random.default_rng(11)
    for n in (4, 5, 6) if rooted else (4,):
        spans = all_spans(n)
        for _ in range(40):
            scores = rng.normal(0, 30, len(spans))
            scores[rng.integers(n, len(spans) - 1)] += rng.choice([250.0, 550.0])
            if rooted:
                dist, truth = Brackets(scores, arity=arity), brute_force_brackets(scores, binary=arity == "binary")
            else:
                dist = SpanTree(scores[:, None], rooted=False)
                truth = brute_force_spans(scores[:, None], binary=False, rooted=False)
            assert dist.log_partition() == pytest.approx(truth.log_partition)
            np.testing.assert_allclose(np.ravel(dist.marginals()), np.ravel(truth.marginals), atol=1e-9)


@pytest.mark.parametrize("push", [-1e4, -710.0, -690.0, -300.0, 300.0, 690.0, 710.0, 1e4])
def test_weights_at_the_ends_of_plain_probabilities(push):
    for arity in ("binary", "any"):
        scores = normal(5)
        scores[6] += push  # one span that everybody or nobody wants
        truth = brute_force_brackets(scores, binary=arity == "binary")
        dist = Brackets(scores, arity=arity)
        assert dist.log_partition() == pytest.approx(truth.log_partition, rel=1e-14)
        np.testing.assert_allclose(dist.marginals(), truth.marginals, atol=1e-12)
    tree = Brackets(normal(40, seed=3)).argmax()  # a single tree, of large and small scores
    numbers = [span_number(i, j, 40) for i, j in tree]
    needed = np.full(n_spans(40), -np.inf)
    needed[numbers] = np.where(np.arange(len(numbers)) % 2 == 0, push, -push / 2)
    alone = Brackets(needed)
    assert alone.log_partition() == pytest.approx(needed[numbers].sum(), rel=1e-12)
    np.testing.assert_allclose(alone.marginals()[numbers], 1.0, rtol=1e-12)
    assert alone.argmax() == tree == alone.sample(np.random.default_rng(0)) and len(alone.k_best(3)) == 1


# --- batches, views, errors --------------------------------------------------------------------------------------


@KINDS
def test_batches_of_sentences_of_any_lengths(arity, rooted):
    rng = np.random.default_rng(7)
    shapes = ((0, 2, 1.0), (3, 4, 1.0), (1, 1, 1.0), (12, 3, 1.0), (2, 5, 1.0), (25, 2, 1.0), (30, 2, 400.0))
    blocks = [normal(n, labels, spread=spread, seed=n, holes=0.1 * (n > 9)) for n, labels, spread in shapes]
    blocks = [np.where(np.arange(len(block))[:, None] < 30, 0.0, block) for block in blocks]
    check_batch(
        lambda scores: SpanTree(scores, arity=arity, rooted=rooted),
        lambda many: SpanTree.batch(many, arity=arity, rooted=rooted),
        blocks,
    )
    many = SpanTree.batch(blocks, arity=arity, rooted=rooted)
    alone = [SpanTree(block, arity=arity, rooted=rooted) for block in blocks]
    first, second = np.random.default_rng(1), np.random.default_rng(1)
    assert many.sample(first) == [dist.sample(second) for dist in alone]
    vectors = [rng.normal(size=block.shape) for block in blocks]
    moved = many.hessian_vector(vectors)
    for s, dist in enumerate(alone):
        np.testing.assert_array_equal(moved[s], dist.hessian_vector(vectors[s]))
        np.testing.assert_array_equal(many.parts(many.argmax())[s], dist.parts(dist.argmax()))
    assert many.most_right(threshold=0.2) == [dist.most_right(threshold=0.2) for dist in alone]
    mixed = many.marginals().like(0.5 * many.marginals().values)
    assert many.most_right(mixed) == [dist.most_right(mixed[s]) for s, dist in enumerate(alone)]
    np.testing.assert_allclose(many.best_scores(), [dist.score(dist.argmax()) for dist in alone])
    assert [found[0][1] for found in many.k_best(2)] == many.argmax()
    gold = many.argmax()
    np.testing.assert_allclose(many.clamp(gold).log_partition(), [d.score(y) for d, y in zip(alone, gold, strict=True)])
    with using_threads(2):
        again = SpanTree.batch(blocks, arity=arity, rooted=rooted)
        assert again.hessian_vector(vectors).values.tobytes() == moved.values.tobytes()


def test_bracketings_have_all_methods():
    blocks = [normal(n, seed=n) for n in (0, 4, 1, 17, 2)]
    for arity in ("binary", "any"):
        many, alone = Brackets.batch(blocks, arity=arity), [Brackets(block, arity=arity) for block in blocks]
        assert many.most_right() == [dist.most_right() for dist in alone]
        assert many.sample(np.random.default_rng(3)) == [
            y for rng in [np.random.default_rng(3)] for y in (dist.sample(rng) for dist in alone)
        ]
        np.testing.assert_allclose(many.best_scores(), [dist.score(dist.argmax()) for dist in alone])
        moved = many.hessian_vector(blocks)
        for s, dist in enumerate(alone):
            np.testing.assert_array_equal(moved[s], dist.hessian_vector(blocks[s]))
        assert [found[0][1] for found in many.k_best(1)] == many.argmax()
    assert isinstance(many, Bracketings) and many.arity == "any" and many[3].n == 17


def test_loss_augmented_search_finds_the_worst_rival():
    scores = normal(4, 2, seed=5)
    dist = SpanTree(scores)
    gold = dist.k_best(3)[2][1]
    rival = dist.with_scores(scores + 1.0 - dist.parts(gold)).argmax()
    truth = brute_force_spans(scores, binary=False)
    losses = [len(set(tree) - gold) for tree in truth.structures]
    assert dist.score(rival) + len(rival - gold) == pytest.approx(max(truth.log_scores + losses))


def test_what_is_refused():
    with pytest.raises(ParameterError, match="n words have"):
        Brackets(np.zeros(4))
    with pytest.raises(ParameterError, match="n words have"):
        SpanTree(np.zeros((5, 2)))
    with pytest.raises(ParameterError, match="sentence 1 has 2 spans"):
        SpanTrees(Stack.of([np.zeros((3, 1)), np.zeros((2, 1))]))
    with pytest.raises(ParameterError, match="'binary' or 'any'"):
        Brackets(np.zeros(3), arity="ternary")
    dist = SpanTree(np.zeros((6, 2)))
    assert dist.log_prob([(0, 2, 0), (1, 3, 0), (0, 3, 0)]) == -np.inf  # they cross
    assert dist.log_prob([(0, 2, 0)]) == -np.inf and SpanTree(np.zeros((6, 2)), rooted=False).log_prob([(0, 2, 0)]) < 0
    assert dist.log_prob([(0, 3, 0), (0, 3, 1)]) == -np.inf  # two labels
    for wrong in ([(0, 3, 2)], [(0, 4, 0)], [(1, 1, 0)], [(0, 3)], 7):
        with pytest.raises(ParameterError):
            dist.parts(wrong)
    with pytest.raises(ParameterError, match="not a tree"):
        dist.from_parts(dist.parts([(0, 2, 0), (1, 3, 0), (0, 3, 0)]))
    assert Brackets(np.zeros(6)).log_prob([(0, 3), (0, 1), (1, 2), (2, 3)]) == -np.inf  # three parts
    with pytest.raises(ParameterError, match="should be finite"):
        dist.hessian_vector(np.full((6, 2), np.nan))
    with pytest.raises(ParameterError, match="marginals should be"):
        dist.most_right(np.zeros((6, 3)))
    with pytest.raises(InfeasibleError, match=r"sentence 1: .*no allowed label"):
        SpanTree.batch([np.zeros((3, 1)), np.full((3, 1), -np.inf)]).argmax()
