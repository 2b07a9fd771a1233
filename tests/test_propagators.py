"""What each kind of factor says, held against the sum over everything that the factor allows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.structures import InfeasibleError
from isogloss.structures.base import kept
from isogloss.structures.factorgraph import FactorGraph
from isogloss.testing import assignments, brute_force_messages, trees
from isogloss.testing.strategies import log_odds, log_weights

LAWS = settings(max_examples=40, deadline=None, derandomize=True)
INF = np.inf


def as_weights(a):
    """Log weights of false and true."""
    return [np.array([-INF, 0.0]) if x == INF else np.array([0.0, x]) for x in a]


def as_odds(said):
    """Log-odds of what was said; None where neither can be."""
    return [None if max(row) == -INF else float(row[1] - row[0]) for row in said]


def family_of(build):
    g = FactorGraph()
    handle = build(g)
    family = g._families[handle.number]
    return family, kept(np.array(handle.of(g.scores)))


def check_boolean(family, scores, incoming, values, worth, *, maximise, known=None):
    """`incoming`: one array of log-odds; `values`: 0/1 assignments over its entries, flattened."""
    said = as_odds(brute_force_messages(values, worth, as_weights(incoming.ravel()), maximise=maximise))
    try:
        have = family.send(scores, (incoming,), maximise)[0].ravel()
    except InfeasibleError:
        weights = np.array([[w[v] for w, v in zip(as_weights(incoming.ravel()), row, strict=True)] for row in values])
        assert (weights.sum(axis=1) + worth == -INF).all() if len(values) else True
        return
    for at, (mine, truth) in enumerate(zip(have, said, strict=True)):
        if known is not None and not known[at]:
            assert mine in (0.0, -INF)
        elif truth is None:
            assert np.isnan(mine) or all(t is None for t in said) or np.isinf(mine)
        else:
            assert mine == pytest.approx(truth, rel=1e-9, abs=1e-9), at


def totals_of(values, worth, incoming, maximise):
    """Log total of a factor under log-odds that it hears, and the weight of every assignment."""
    heard = as_weights(incoming.ravel())
    logs = np.asarray(worth) + np.array([sum(w[v] for w, v in zip(heard, row, strict=True)) for row in values])
    top = logs.max(initial=-INF)
    if top == -INF:
        return -INF, np.zeros(len(logs))
    total = top + np.log(np.exp(logs - top).sum())
    return (top if maximise else total), np.exp(logs - total)


# --- a few variables --------------------------------------------------------------------------------------------------


@LAWS
@given(st.data(), st.booleans())
def test_pair(data, maximise):
    count = data.draw(st.integers(0, 4))
    a, b = data.draw(log_odds((count,))), data.draw(log_odds((count,)))
    scores = np.where(data.draw(log_odds((count,), infinite=False)) > 3, -INF, data.draw(log_odds((count,))))
    scores = np.where(scores == INF, -INF, scores)

    def build(g):
        x = g.boolean((2, count))
        return g.pairwise(x[0], x[1], scores)

    family, mine = family_of(build)
    have = family.send(mine, (a, b), maximise)
    total, beliefs = 0.0, []
    for f in range(count):
        values, worth = assignments([2, 2]), np.array([0.0, 0.0, 0.0, scores[f]])
        pair = np.array([a[f], b[f]])
        said = as_odds(brute_force_messages(values, worth, as_weights(pair), maximise=maximise))
        assert [have[0][f], have[1][f]] == pytest.approx(said, rel=1e-9, abs=1e-9)
        value, weights = totals_of(values, worth, pair, maximise)
        total += value
        beliefs.append(weights[3])
    value, expected = family.believe(mine, (a, b), maximise)
    assert value == pytest.approx(total, rel=1e-9, abs=1e-9)
    if not maximise:
        assert expected == pytest.approx(np.array(beliefs), abs=1e-12)


@LAWS
@given(st.data(), st.booleans(), st.booleans())
def test_table_of_mixed_variables(data, maximise, gated):
    count, k = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    arity = data.draw(st.integers(1, 3))
    kinds = data.draw(st.lists(st.sampled_from([0, k, 2]), min_size=arity, max_size=arity))
    sizes = [kind or 2 for kind in kinds]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    scores = np.where(rng.random((count, *sizes)) < 0.2, -INF, rng.normal(0, 2, (count, *sizes)))

    def build(g):
        tags = [g.multinomial(count, kind) if kind else g.boolean(count) for kind in kinds]
        return g.link_tags(g.boolean(count), *tags, scores=scores) if gated else g.table(tags, scores)

    family, mine = family_of(build)
    heard = [data.draw(log_weights((count, kind)) if kind else log_odds((count,))) for kind in kinds]
    gate = data.draw(log_odds((count,)))
    incoming = (*heard, gate) if gated else tuple(heard)
    have = family.send(mine, incoming, maximise)
    total = 0.0
    for f in range(count):
        values = assignments(sizes + ([2] if gated else []))
        worth = np.array([scores[(f, *row[:arity])] if not gated or row[-1] else 0.0 for row in values])
        weights = [h[f] if kind else as_weights([h[f]])[0] for kind, h in zip(kinds, heard, strict=True)]
        if gated:
            weights.append(as_weights([gate[f]])[0])
        said = brute_force_messages(values, worth, weights, maximise=maximise)
        logs = worth + np.array([sum(w[v] for w, v in zip(weights, row, strict=True)) for row in values])
        total += logs.max() if maximise else np.logaddexp.reduce(logs)
        for i, kind in enumerate([*kinds, 0] if gated else kinds):
            if said[i].max() == -INF:
                assert have[i][f].max() == -INF if kind else np.isnan(have[i][f])
            elif kind:
                assert have[i][f] == pytest.approx(said[i] - said[i].max(), rel=1e-9, abs=1e-9)
            else:
                assert have[i][f] == pytest.approx(said[i][1] - said[i][0], rel=1e-9, abs=1e-9)
        p = np.exp(logs - np.logaddexp.reduce(logs)) if logs.max() > -INF else np.zeros(len(logs))
        want = np.zeros(sizes)
        np.add.at(want, tuple(values[:, :arity].T), p * (values[:, -1] if gated else 1))
        if not maximise:
            assert family.believe(mine, incoming, False)[1][f] == pytest.approx(want, abs=1e-12)
    assert family.believe(mine, incoming, maximise)[0] == pytest.approx(total, rel=1e-9, abs=1e-9)


@LAWS
@given(st.data(), st.booleans(), st.booleans())
def test_exactly_one_and_at_most_one(data, maximise, at_most):
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))

    def build(g):
        rows = [g.boolean(length) for length in lengths]
        return g.at_most_one(rows) if at_most else g.exactly_one(rows)

    family, scores = family_of(build)
    a = data.draw(log_odds((sum(lengths),)))
    have = family.send(scores, (a,), maximise)[0]
    total, start = 0.0, 0
    for length in lengths:
        values = assignments([2] * length)
        values = values[values.sum(axis=1) <= 1] if at_most else values[values.sum(axis=1) == 1]
        row = a[start : start + length]
        said = as_odds(brute_force_messages(values, np.zeros(len(values)), as_weights(row), maximise=maximise))
        if None not in said:
            assert have[start : start + length] == pytest.approx(said, rel=1e-9, abs=1e-9)
        total += totals_of(values, np.zeros(len(values)), row, maximise)[0]
        start += length
    assert family.believe(scores, (a,), maximise)[0] == pytest.approx(total, rel=1e-9, abs=1e-9)


def test_one_head_that_dominates_costs_the_others_no_digits():
    family, scores = family_of(lambda g: g.exactly_one(g.boolean((1, 3))))
    said = family.send(scores, (np.array([60.0, -3.0, -5.0]),), False)[0]
    assert said[0] == pytest.approx(-np.logaddexp(-3.0, -5.0), rel=1e-14)  # 1 − μ by subtraction would be 0


# --- in order ---------------------------------------------------------------------------------------------------------


@LAWS
@given(st.data(), st.booleans(), st.sampled_from([1, 2]))
def test_chain(data, maximise, order):
    n, k = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    shape = (max(0, n - order), *(k,) * (order + 1))
    scores = np.where(rng.random(shape) < 0.15, -INF, rng.normal(0, 2, shape))
    family, mine = family_of(lambda g: g.chain(g.multinomial(n, k), scores))
    heard = data.draw(log_weights((n, k)))
    values = assignments([k] * n)
    steps = [tuple(values[:, t + lag] for lag in range(order + 1)) for t in range(len(scores))]
    worth = sum((scores[t][step] for t, step in enumerate(steps)), np.zeros(len(values)))
    said = brute_force_messages(values, worth, list(heard), maximise=maximise)
    have = family.send(mine, (heard,), maximise)[0]
    logs = worth + heard[np.arange(n), values].sum(axis=1)
    for t in range(n):
        top = said[t].max()
        assert have[t] == pytest.approx(said[t] - (top if top > -INF else 0.0), rel=1e-9, abs=1e-9)
    value, expected = family.believe(mine, (heard,), maximise)
    assert value == pytest.approx(logs.max() if maximise else np.logaddexp.reduce(logs), rel=1e-9, abs=1e-9)
    if not maximise and value > -INF:
        want = np.zeros(shape)
        for t, step in enumerate(steps):
            np.add.at(want[t], step, np.exp(logs - value))
        assert expected == pytest.approx(want, abs=1e-12)


def sequences_of(row, head):
    """Left and right children, outward, with the head at both ends."""
    found = [c for c in range(1, len(row)) if row[c] and c != head]
    left = [c for c in reversed(found) if c < head]
    right = [c for c in found if c > head]
    return [head, *left, head], [head, *right, head]


def child_score(scores, links):
    out = 0.0
    for head, row in enumerate(links):
        for side, sequence in enumerate(sequences_of(row, head)):
            out += sum(scores[side, head, a, b] for a, b in itertools.pairwise(sequence))
    return out


def valence_score(scores, links):
    out = 0.0
    for head, row in enumerate(links):
        for side, sequence in enumerate(sequences_of(row, head)):
            out += scores[side, head, min(len(sequence) - 2, scores.shape[2] - 1)]
    return out


def words_links(n):
    """Assignments to all links, of which those into the root and from a word to itself are false."""
    head, child = np.indices((n + 1, n + 1))
    free = ((head != child) & (child > 0)).ravel()
    return assignments([2 if f else 1 for f in free]), free


@settings(LAWS, max_examples=40)
@given(st.data(), st.booleans(), st.sampled_from(["child_sequence", "valence"]))
def test_sequences_and_numbers_of_children(data, maximise, kind):
    n = data.draw(st.integers(0, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    shape = (2, n + 1, n + 1, n + 1) if kind == "child_sequence" else (2, n + 1, data.draw(st.integers(1, 3)))
    scores = np.where(rng.random(shape) < 0.1, -INF, rng.normal(0, 2, shape))
    family, mine = family_of(lambda g: getattr(g, kind)(g.links(n), scores))
    values, free = words_links(n)
    score = child_score if kind == "child_sequence" else valence_score
    worth = np.array([score(scores, row.reshape(n + 1, n + 1)) for row in values])
    a = data.draw(log_odds((n + 1, n + 1)))
    a = np.where(rng.random(a.shape) < 0.3, INF, a)  # children that are certain, with others before and after
    a.ravel()[~free] = -INF
    value, weights = totals_of(values, worth, a, maximise)
    got, expected = family.believe(mine, (a,), maximise)
    assert got == pytest.approx(value, rel=1e-9, abs=1e-9)
    if value == -INF:
        return
    said = as_odds(brute_force_messages(values, worth, as_weights(a.ravel()), maximise=maximise))
    have = family.send(mine, (a,), maximise)[0].ravel()
    assert have[free] == pytest.approx([truth for truth, f in zip(said, free, strict=True) if f], rel=1e-9, abs=1e-9)
    if not maximise:
        parts = np.array([family.parts([row.reshape(n + 1, n + 1)]) for row in values])
        assert expected == pytest.approx(np.tensordot(weights, parts, 1), abs=1e-12)
        assert (np.where(parts > 0, scores, 0.0).reshape(len(values), -1).sum(axis=1)) == pytest.approx(worth)


# --- trees ------------------------------------------------------------------------------------------------------------


@settings(LAWS, max_examples=60)
@given(st.data(), st.sampled_from([(True, False), (True, True), (False, False)]), st.booleans())
def test_tree(data, kind, single_root):
    projective, maximise = kind
    n = data.draw(st.integers(0, 4))
    a = data.draw(log_odds((n + 1, n + 1)))
    family, scores = family_of(lambda g: g.tree(g.links(n), projective=projective, single_root=single_root))
    listed = trees(n, projective=projective, single_root=single_root)
    values = np.zeros((len(listed), n + 1, n + 1), np.int64)
    for row, heads in enumerate(listed):
        values[row, list(heads), range(1, n + 1)] = 1
        assert family.parts([values[row]]) is not None
    head, child = np.indices((n + 1, n + 1))
    a[(head == child) | (child == 0)] = -INF
    values = values.reshape(len(listed), -1)
    open_ = np.isfinite(a).ravel()  # of links that are certain the tree says nothing
    check_boolean(family, scores, a, values, np.zeros(len(values)), maximise=maximise, known=open_)
    value = totals_of(values, np.zeros(len(values)), a, maximise)[0]
    assert family.believe(scores, (a,), maximise)[0] == pytest.approx(value, rel=1e-9, abs=1e-9)


def test_what_is_no_tree_is_refused():
    for projective, single_root in itertools.product([True, False], repeat=2):
        family, _ = family_of(lambda g, p=projective, s=single_root: g.tree(g.links(3), projective=p, single_root=s))
        allowed = set(trees(3, projective=projective, single_root=single_root))
        for heads in itertools.product(range(4), repeat=3):
            links = np.zeros((4, 4), np.int64)
            links[list(heads), range(1, 4)] = 1
            assert (family.parts([links]) is not None) == (heads in allowed)


def crosses(a, b, c, d):
    (a, b), (c, d) = sorted((a, b)), sorted((c, d))
    return a < c < b < d or c < a < d < b


@settings(LAWS, max_examples=60)
@given(st.data(), st.booleans())
def test_crossing_links(data, maximise):
    n = data.draw(st.integers(2, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    penalties = np.where(rng.random((n, n)) < 0.2, -INF, rng.normal(0, 3, (n, n)))
    family, scores = family_of(lambda g: g.no_cross(g.links(n), penalties, one_head=True))
    a = data.draw(log_odds((len(scores), 2, n + 1))) * data.draw(st.sampled_from([1.0, 10.0]))  # plain sums, and logs
    first, second = np.triu_indices(n, 1)
    for f, (j, other) in enumerate(zip(first + 1, second + 1, strict=True)):
        a[f, 0, j] = a[f, 1, other] = -INF
    beliefs, total, possible = np.zeros(len(scores)), 0.0, True
    have = family.send(scores, (a,), maximise)[0]
    for f, (j, other) in enumerate(zip(first + 1, second + 1, strict=True)):
        heads = [(i, k) for i in range(n + 1) for k in range(n + 1) if i != j and k != other]
        values = np.zeros((len(heads), 2, n + 1), np.int64)
        for row, (i, k) in enumerate(heads):
            values[row, 0, i] = values[row, 1, k] = 1
        values = values.reshape(len(heads), -1)
        crossed = np.array([crosses(i, j, k, other) for i, k in heads])
        worth = np.where(crossed, penalties[j - 1, other - 1], 0.0)
        value, weights = totals_of(values, worth, a[f], maximise)
        total += value
        if value == -INF:
            possible = False
            continue
        beliefs[f] = weights[crossed].sum()
        said = as_odds(brute_force_messages(values, worth, as_weights(a[f].ravel()), maximise=maximise))
        assert have[f].ravel() == pytest.approx(said, rel=1e-9, abs=1e-9)
    value, expected = family.believe(scores, (a,), maximise)
    assert value == pytest.approx(total, rel=1e-9, abs=1e-9)
    if not maximise and possible:
        assert expected == pytest.approx(beliefs, abs=1e-12)


@settings(LAWS, max_examples=60)
@given(st.data(), st.booleans())
def test_crossing_links_of_words_with_any_number_of_heads(data, maximise):
    n = data.draw(st.integers(2, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    penalties = np.where(rng.random((n, n)) < 0.2, -INF, rng.normal(0, 3, (n, n)))
    family, scores = family_of(lambda g: g.no_cross(g.links(n), penalties, one_head=False))
    a = data.draw(log_odds((len(scores), 2, n + 1)))
    first, second = np.triu_indices(n, 1)
    total, have = 0.0, family.send(scores, (a,), maximise)[0]
    for f, (j, other) in enumerate(zip(first + 1, second + 1, strict=True)):
        a[f, 0, j] = a[f, 1, other] = -INF
        free = np.array([[i != j for i in range(n + 1)], [k != other for k in range(n + 1)]])
        values = assignments([2 if x else 1 for x in free.ravel()])
        crossed = []
        for row in values.reshape(-1, 2, n + 1):
            one = (row.sum(axis=1) == 1).all()
            crossed.append(one and crosses(int(row[0].argmax()), j, int(row[1].argmax()), other))
        worth = np.where(crossed, penalties[j - 1, other - 1], 0.0)
        value, weights = totals_of(values, worth, a[f], maximise)
        total += value
        if value == -INF:
            return
        said = as_odds(brute_force_messages(values, worth, as_weights(a[f].ravel()), maximise=maximise))
        said = [x for x, y in zip(said, free.ravel(), strict=True) if y]
        assert have[f].ravel()[free.ravel()] == pytest.approx(said, rel=1e-7, abs=1e-9)
        if not maximise:
            belief = family.believe(scores, (a,), False)[1][f]
            assert belief == pytest.approx(weights[np.array(crossed, bool)].sum(), abs=1e-12)
    assert family.believe(scores, (a,), maximise)[0] == pytest.approx(total, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("maximise", [False, True])
def test_large_log_odds_and_long_sentences(projective, maximise):
    if maximise and not projective:
        pytest.skip("no messages of maxima")
    rng = np.random.default_rng(0)
    family, scores = family_of(lambda g: g.tree(g.links(150), projective=projective))
    a = rng.uniform(-50, 50, (151, 151))
    said = family.send(scores, (a,), maximise)[0]
    head, child = np.indices(a.shape)
    assert np.isfinite(said[(head != child) & (child > 0)]).all()


def test_unlikely_is_not_impossible():
    """Odds so long that the probability is no number: the message stays finite, and right for projective trees."""
    a = np.zeros((3, 3))
    a[0, 1], a[1, 2] = 900.0, 900.0
    family, scores = family_of(lambda g: g.tree(g.links(2)))
    said = family.send(scores, (a,), False)[0]
    assert said[2, 1] == pytest.approx(-1800.0)  # trees: 0→1→2 (1800), 0→1 0→2 (900), 0→2→1 (0)
    assert said[0, 2] == pytest.approx(-900.0, abs=1e-6)
    loose, scores = family_of(lambda g: g.tree(g.links(2), projective=False))
    assert np.isfinite(loose.send(scores, (a,), False)[0][2, 1])
