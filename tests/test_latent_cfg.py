"""Grammars with hidden states: annotations and pruned charts against enumeration, split and merge, and the learner."""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.learners.runner import run
from isogloss.learners.split_merge import SplitMerge
from isogloss.structures import Grammar
from isogloss.structures.latent_cells import Cells, Columns
from isogloss.structures.latent_cfg import LatentGrammar, LatentTrees
from isogloss.testing import derivations

RULES = Grammar(3, [(0, 1, 2), (0, 2, 0), (1, 2, 2), (2, 2, 1)], [(1, 2), (0, 1)])  # symbol 2 is the only tag
TAGS = np.array([2, 2, 2])


def random_grammar(sizes, seed=0):
    """Any positive weights: nothing here needs them to sum to 1."""
    rng = np.random.default_rng(seed)
    wide = np.array(sizes)
    lengths = [
        wide[RULES.binary].prod(axis=1).sum(), wide[RULES.unary].prod(axis=1).sum(), wide.sum(), wide[TAGS].sum(),
        wide.sum(),
    ]  # fmt: skip
    return LatentGrammar(RULES, TAGS, wide, *(rng.uniform(0.1, 1.0, int(size)) for size in lengths))


def nodes_of(tree, words):
    """A tree of `derivations`, highest node first, as `LatentTrees` has it."""
    tree = sorted(tree, key=lambda node: (node[1] - node[0], node[0]))
    place = {node[:2]: at for at, node in enumerate(tree)}
    binary, unary = [tuple(rule) for rule in RULES.binary.tolist()], [tuple(rule) for rule in RULES.unary.tolist()]
    rows = []
    for i, j, seen, made in tree:
        left = right = -1
        rule = words[i] if j - i == 1 else -1
        if j - i > 1:
            k = next(k for k in range(i + 1, j) if (i, k) in place and (k, j) in place)
            left, right = place[i, k], place[k, j]
            rule = binary.index((made, tree[left][2], tree[right][2]))
        rows.append((made, seen, rule, unary.index((seen, made)) if seen != made else -1, left, right))
    return rows


def enumerated(grammar, rows):
    """Σ over all annotations of the product of weights, and expected uses, weight by weight."""
    total, uses = 0.0, [np.zeros(len(kind)) for kind in kinds(grammar)]
    ranges = []
    for made, seen, _, unary, _, _ in rows:
        ranges += [range(grammar.sizes[made]), range(grammar.sizes[seen]) if unary >= 0 else (None,)]
    for chosen in itertools.product(*ranges):
        states = [
            (chosen[2 * v], chosen[2 * v] if chosen[2 * v + 1] is None else chosen[2 * v + 1]) for v in range(len(rows))
        ]
        used = []
        for v, (made, _, rule, unary, left, right) in enumerate(rows):
            a, top = states[v]
            used.append(
                (2, grammar.states[made] + a)
                if unary < 0
                else (1, grammar.of_unary[unary] + top * grammar.sizes[made] + a)
            )
            if left < 0:
                used.append((3, grammar.of_words[rule] + a))
            else:
                b, c = states[left][1], states[right][1]
                k_b, k_c = grammar.sizes[rows[left][1]], grammar.sizes[rows[right][1]]
                used.append((0, grammar.of_binary[rule] + (a * k_b + b) * k_c + c))
        used.append((4, grammar.states[rows[-1][1]] + states[-1][1]))
        weight = np.prod([kinds(grammar)[kind][at] for kind, at in used])
        total += weight
        for kind, at in used:
            uses[kind][at] += weight
    return np.log(total), np.concatenate(uses) / total


def kinds(grammar):
    return grammar.binary, grammar.unary, grammar.stay, grammar.words, grammar.root


@functools.cache
def tagged(n):
    """Trees whose words all have symbol 2."""
    return [tree for tree in derivations(n, 3, RULES.binary.tolist(), RULES.unary.tolist())
            if all(made == 2 for i, j, _, made in tree if j - i == 1)]  # fmt: skip


def test_annotations_of_given_trees_agree_with_enumeration():
    grammar = random_grammar((2, 3, 2))
    chosen = [(tree, words) for n, words in ((1, (2,)), (2, (0, 1)), (3, (1, 1, 2))) for tree in tagged(n)[::3]]
    listed = [nodes_of(tree, words) for tree, words in chosen]
    starts = np.concatenate([[0], np.cumsum([len(rows) for rows in listed])])
    trees = LatentTrees(starts, np.array([row for rows in listed for row in rows], np.int64))
    found = grammar.annotated(trees)
    truth = [enumerated(grammar, rows) for rows in listed]
    assert len(listed) > 5 and found.values == pytest.approx([value for value, _ in truth])
    assert found.counts == pytest.approx(sum(uses for _, uses in truth))
    with using_threads(1):
        assert np.array_equal(grammar.annotated(trees).counts, found.counts)


def test_merging_loses_what_was_foretold_where_states_hardly_differ():
    grammar = random_grammar((2, 2, 2), seed=3)
    rows = nodes_of(tagged(3)[4], (0, 1, 2))
    trees = LatentTrees(np.array([0, len(rows)]), np.array(rows))
    used = grammar.annotated(trees).frequencies()
    shares = used / used.reshape(-1, 2).sum(axis=1).repeat(2)
    symbol = 1 if any(1 in row[:2] for row in rows) else 0
    found = grammar.annotated(trees, shares)
    one = [row for row in rows if symbol in (row[0], row[1])]
    joined = np.zeros(3, bool)
    joined[symbol] = True
    after = grammar.merged(joined, used).annotated(trees).values[0]
    if len(one) == 1:  # with one occurrence the loss is exact
        assert found.values[0] - after == pytest.approx(found.losses[symbol])
    assert grammar.merged(joined, used).sizes.tolist() == [1 if a == symbol else 2 for a in range(3)]


def test_merging_what_was_split_without_noise_changes_nothing():
    grammar = random_grammar((1, 2, 3), seed=4)
    twice = grammar.split(np.random.default_rng(0), noise=0.0)
    back = twice.merged(np.ones(twice.n_states // 2, bool), np.ones(twice.n_states))
    for one, other in zip(kinds(grammar), kinds(back), strict=True):
        assert one == pytest.approx(other)
    rows = nodes_of(tagged(3)[0], (0, 1, 2))
    trees = LatentTrees(np.array([0, len(rows)]), np.array(rows))
    assert twice.annotated(trees).values == pytest.approx(grammar.annotated(trees).values)


class Found(NamedTuple):
    """Posteriors as tables, float64[n_spans, …]."""

    values: Any
    made: Any
    seen: Any
    stays: Any
    changes: Any


def charts(grammar, words, made=None, seen=None):
    n = len(words)
    spans = n * (n + 1) // 2
    table = np.zeros((len(TAGS), grammar.n_states))
    first, size = grammar.states[2], grammar.sizes[2]
    for entry in range(len(TAGS)):
        table[entry, first : first + size] = grammar.words[grammar.of_words[entry] :][:size]
    every = np.ones((spans, 3), bool)
    cells = Cells.of(every if made is None else made, every if seen is None else seen)
    onto = Columns(np.arange(3), np.array([3, 4]), np.zeros((spans, 5)))
    found = grammar.posteriors(np.array([n]), np.array(words, np.int64), table, cells, onto)
    placed = cells.made.placed(found.made, 3), cells.seen.placed(found.seen, 3)
    return Found(found.values, *placed, onto.totals[:, :3], onto.totals[:, 3:]), table


@pytest.mark.parametrize("words", [(1,), (0, 2), (0, 1, 2), (2, 1, 0, 0)])
def test_charts_sum_over_trees_and_annotations(words):
    grammar, n = random_grammar((2, 1, 3), seed=5), len(words)
    found, _ = charts(grammar, words)
    values, spans = [], [(i, i + width) for width in range(1, n + 1) for i in range(n - width + 1)]
    made, stays, changes = np.zeros((len(spans), 3)), np.zeros((len(spans), 3)), np.zeros((len(spans), 2))
    for tree in tagged(n):
        rows = nodes_of(tree, words)
        value = float(grammar.annotated(LatentTrees(np.array([0, len(rows)]), np.array(rows))).values[0])
        values.append(value)
        for i, j, top, own in tree:
            at = spans.index((i, j))
            made[at, own] += np.exp(value)
            if top == own:
                stays[at, own] += np.exp(value)
            else:
                changes[at, RULES.unary.tolist().index([top, own])] += np.exp(value)
    total = np.exp(values).sum()
    assert np.exp(found.values[0]) == pytest.approx(total)
    assert found.made == pytest.approx(made / total, abs=1e-9)
    assert found.stays == pytest.approx(stays / total, abs=1e-9)
    assert found.changes == pytest.approx(changes / total, abs=1e-9)
    above = stays.copy()
    np.add.at(above.T, RULES.unary[:, 0], changes.T)
    assert found.seen == pytest.approx(above / total, abs=1e-9)


def test_one_state_a_symbol_is_an_ordinary_grammar():
    grammar, words = random_grammar((1, 1, 1), seed=6), (0, 1, 2, 1)
    found, table = charts(grammar, words)
    coarse = grammar.coarse(np.array([4]), np.array(words), table)
    assert coarse.log_partition() == pytest.approx(found.values)
    parts = RULES.split(coarse.marginals()[0])
    assert parts.inner == pytest.approx(found.made, abs=1e-9)
    assert parts.unary == pytest.approx(found.changes.sum(axis=0))
    with pytest.raises(ParameterError, match="one state"):
        random_grammar((1, 2, 1)).coarse(np.array([4]), np.array(words), table)


def test_cells_that_are_not_left_are_not_used():
    grammar, words = random_grammar((2, 1, 3), seed=7), (0, 1, 2)
    whole, _ = charts(grammar, words)
    best = whole.made.argmax(axis=1)
    made = np.zeros((6, 3), bool)
    made[np.arange(6), best] = True
    found, _ = charts(grammar, words, made=made)
    assert not found.made[~made].any() and found.values[0] < whole.values[0]
    none, _ = charts(grammar, words, made=np.zeros((6, 3), bool))
    assert none.values[0] == -np.inf and not none.made.any()
    with pytest.raises(ParameterError, match="cells"):
        charts(grammar, words, made=made[:2])


def treebank(n_trees=60, seed=8):
    rng = np.random.default_rng(seed)
    listed = [nodes_of(tagged(n)[rng.integers(len(tagged(n)))], rng.integers(3, size=n)) for n in
              rng.integers(1, 5, n_trees).tolist()]  # fmt: skip
    starts = np.concatenate([[0], np.cumsum([len(rows) for rows in listed])])
    return LatentTrees(starts, np.array([row for rows in listed for row in rows], np.int64))


def test_likelihood_never_falls_between_a_split_and_a_merge_and_checkpoints_resume(tmp_path):
    learner = SplitMerge(treebank(), cycles=2, steps=(15, 5), smoothing=0.0, seed=1)
    start = learner.init(LatentGrammar.flat(RULES, TAGS))
    found = run(learner, start, iterations=learner.n_steps)
    stages = [found.trace[2:17], found.trace[17:22], found.trace[22:37], found.trace[37:]]
    assert all((np.diff(stage) >= -1e-9 * abs(stage[0])).all() for stage in stages)
    assert found.trace[-1] > found.trace[1]
    assert found.state.params.n_states == 6  # 3, 6, then half of the splits undone: 5 or 4, and again
    half = run(learner, start, iterations=19, checkpoint=tmp_path / "kept")
    again = run(learner, start, iterations=learner.n_steps, checkpoint=tmp_path / "kept", resume=True)
    assert half.state.iteration == 19
    for one, other in zip(kinds(found.state.params), kinds(again.state.params), strict=True):
        assert np.array_equal(one, other)


def test_probabilities_are_normalised_and_smoothing_draws_states_together():
    grammar = random_grammar((2, 3, 2), seed=9)
    counts = np.random.default_rng(1).uniform(0.1, 2.0, sum(len(kind) for kind in kinds(grammar)))
    made = grammar.estimated(counts)
    binary, unary, words = made._parents
    assert np.bincount(binary, made.binary, 7) == pytest.approx(np.ones(7))
    assert np.bincount(unary, made.unary, 7) + made.stay == pytest.approx(np.ones(7))
    assert np.bincount(words, made.words, 7)[5:] == pytest.approx(np.ones(2)) and made.root.sum() == pytest.approx(1.0)
    smooth = grammar.estimated(counts, smoothing=0.5)
    assert np.bincount(binary, smooth.binary, 7) == pytest.approx(np.ones(7))
    block, other = made.binary[:12].reshape(2, -1), smooth.binary[:12].reshape(2, -1)
    assert other[0] - other[1] == pytest.approx(0.5 * (block[0] - block[1]))
