"""Grammars in normal form with unary rules, held against enumeration and known counts."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.structures import Cfg, Cfgs, Grammar, InfeasibleError, SpanTree, Stack, Structure
from isogloss.testing import brute_force_cfg, check_batch, check_laws, check_structure
from isogloss.testing.strategies import cfg_inputs

LAWS = settings(max_examples=60, deadline=None, derandomize=True)
RULES = [(0, 0, 1), (0, 1, 1), (1, 1, 0), (1, 0, 0)]
UNARY = [(0, 1)]
MIXED = Grammar(2, RULES, UNARY)


def truth(scores, grammar=MIXED):
    n = grammar.length_of(len(scores))
    return brute_force_cfg(scores, n, grammar.n_symbols, grammar.binary.tolist(), grammar.unary.tolist())


@given(cfg_inputs())
@LAWS
def test_all_laws_against_enumeration(inputs):
    grammar = Grammar(inputs.n_symbols, np.array(inputs.binary, np.int64), np.array(inputs.unary, np.int64))
    every = truth(inputs.scores, grammar)
    dist = Cfg(inputs.scores, grammar)
    assert isinstance(dist, Structure)
    if every.log_partition == -np.inf:
        for ask in (dist.log_partition, dist.argmax, lambda: dist.sample(np.random.default_rng(0))):
            with pytest.raises(InfeasibleError):
                ask()
        return
    check_laws(dist, every, rng=np.random.default_rng(0), samples=100)


@pytest.mark.parametrize("grammar", [MIXED, Grammar(2, RULES), Grammar(3, [(0, 1, 2), (1, 2, 2), (2, 0, 1)], [(2, 0)])])
def test_structure_contract(grammar):
    check_structure(
        partial(Cfg, grammar=grammar), partial(truth, grammar=grammar), batch=partial(Cfg.many, grammar=grammar),
        shapes=[(grammar.n_parts(n),) for n in (0, 1, 3, 4)],
    )  # fmt: skip


def test_what_a_word_is_made_of_shifts_log_z():
    scores = np.random.default_rng(1).normal(size=MIXED.n_parts(4))
    shifted = scores.copy()
    MIXED.split(shifted).inner[2] += 1.5
    assert Cfg(shifted, MIXED).log_partition() == pytest.approx(Cfg(scores, MIXED).log_partition() + 1.5)


@pytest.mark.parametrize("share", [0.08, 0.3, 1.0])  # few rules are walked as a list, many as a table
def test_sums_in_logarithms_and_in_probabilities_agree_on_longer_sentences(share):
    from isogloss.structures.semiring import DRAW

    rng = np.random.default_rng(2)
    rules = rng.permutation(np.argwhere(rng.random((7, 7, 7)) < share))
    grammar = Grammar(7, rules, [(0, 1), (1, 2), (2, 0)])
    scores = [rng.normal(0, 3, grammar.n_parts(n)) for n in (9, 2, 13)]
    many = Cfg.many(scores, grammar)
    starts = np.concatenate([[0], np.cumsum(many._draws())])
    in_logs, _ = many._sweep(DRAW, rng.random(int(starts[-1])), starts)
    assert many.log_partition() == pytest.approx(in_logs, rel=1e-12)
    parts = grammar.split(many.marginals()[2])
    assert parts.binary.sum() == pytest.approx(12.0)
    assert parts.inner[:13].sum(axis=1) == pytest.approx(np.ones(13))
    assert parts.outer.sum() == pytest.approx(25.0)


def test_a_grammar_that_allows_everything_is_a_tree_of_labelled_spans():
    labels = 3
    every = np.array([(a, b, c) for a in range(labels) for b in range(labels) for c in range(labels)])
    grammar, inner = Grammar(labels, every), np.random.default_rng(3).normal(size=(15, labels))
    spans = SpanTree(inner, arity="binary")
    found = Cfg(grammar.scores(5, inner=inner), grammar)
    assert found.log_partition() == pytest.approx(spans.log_partition())
    assert grammar.split(found.marginals()).inner == pytest.approx(np.asarray(spans.marginals()))
    assert frozenset((i, j, made) for i, j, _, made in found.argmax()) == spans.argmax()


def test_cells_that_are_not_allowed_prune_the_chart():
    scores = np.random.default_rng(4).normal(size=MIXED.n_parts(4))
    best = Cfg(scores, MIXED).argmax()
    only = Cfg(scores, MIXED).clamp(best)
    assert only.argmax() == best and only.entropy() == pytest.approx(0.0, abs=1e-9)
    assert only.log_partition() == pytest.approx(Cfg(scores, MIXED).score(best))


def test_far_scores_and_long_sentences():
    rng = np.random.default_rng(5)
    check_batch(
        partial(Cfg, grammar=MIXED), partial(Cfg.many, grammar=MIXED),
        [rng.normal(0, spread, MIXED.n_parts(n)) for n, spread in ((3, 1e4), (12, 50.0), (0, 1.0), (1, 1e4))],
    )  # fmt: skip
    long = Cfg(np.full(MIXED.n_parts(80), -5.0), MIXED)
    assert np.isfinite(long.log_partition()) and MIXED.split(long.marginals()).inner[-1].sum() == pytest.approx(1.0)
    assert -np.inf < long.score(long.argmax()) <= long.log_partition()


def test_draws_are_those_of_one_sentence_after_the_other():
    rng = np.random.default_rng(6)
    many = Cfg.many([rng.normal(size=MIXED.n_parts(n)) for n in (4, 0, 3, 1)], MIXED)
    one = np.random.default_rng(1)
    assert many.sample(np.random.default_rng(1)) == [many[s].sample(one) for s in range(4)]
    with using_threads(1):
        assert many.sample(np.random.default_rng(1)) == many.sample(np.random.default_rng(1))


def test_what_is_wrong_is_refused():
    with pytest.raises(ParameterError, match="from 0 to 1"):
        Grammar(2, [[0, 1, 2]])
    with pytest.raises(ParameterError, match="twice"):
        Grammar(2, [[0, 1, 1], [0, 1, 1]])
    with pytest.raises(ParameterError, match="of itself"):
        Grammar(2, [[0, 1, 1]], [[1, 1]])
    with pytest.raises(ParameterError, match="3 columns"):
        Grammar(2, [[0.5, 1, 1]])
    with pytest.raises(ParameterError, match="no sentence has so many"):
        Cfg(np.zeros(MIXED.n_parts(2) + 1), MIXED)
    with pytest.raises(ParameterError, match="a Grammar is needed"):
        Cfg(np.zeros(3))
    with pytest.raises(ParameterError, match="one vector"):
        Cfgs(Stack.of([np.zeros((2, 2))]), MIXED)
    with pytest.raises(ParameterError, match="a sentence of 2 words has"):
        MIXED.scores(2, inner=np.zeros((2, 2)))
    dist = Cfg(np.zeros(MIXED.n_parts(2)), MIXED)
    for wrong in (
        {(0, 2, 0, 0)},
        {(0, 1, 1, 1), (1, 2, 0, 0), (0, 2, 0, 0)},
        7,
        {(0, 2, 5, 5), (0, 1, 0, 0), (1, 2, 0, 0)},
    ):
        with pytest.raises(ParameterError, match="is a set of 3 nodes"):
            dist.parts(wrong)
    bare = MIXED.scores(2, inner=np.where(np.arange(3)[:, None] == 1, -np.inf, 0.0))
    with pytest.raises(InfeasibleError, match="word 1 has no symbol"):
        Cfg(bare, MIXED).log_partition()
    with pytest.raises(InfeasibleError, match=r"sentence 1: .*make no tree"):
        Cfg.many([np.zeros(MIXED.n_parts(1)), MIXED.scores(2, binary=-np.inf)], MIXED).argmax()
