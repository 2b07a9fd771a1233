"""Brackets and labels of constituents in factor graphs: CKYBRACKET, EARLEYBRACKET, EPU and REWRITE."""

from __future__ import annotations

import json

import numpy as np
import pytest

from isogloss.errors import ModelError, ParameterError
from isogloss.structures import Cfg, FactorGraph, Grammar, InfeasibleError, SpanTree
from isogloss.structures.factorgraph.constituents import Bracketing, Epu, rewrite_triples
from isogloss.structures.semiring import MAX
from isogloss.testing import brute_force_factors, brute_force_messages, check_laws, having
from isogloss.testing.enumerate import all_spans, assignments, bracketings

ARITIES = ("binary", "any")
INF = np.inf


def indicators(n, arity):
    """int64[n_trees, n_spans]: the trees over n words as values of their spans."""
    spans = all_spans(n)
    trees = bracketings(n, binary=arity == "binary")
    listed = [[span in tree for span in spans] for tree in trees]
    return np.array(listed, np.int64).reshape(len(listed), len(spans))


def tree_rule(n, arity):
    """Which rows of assignments begin with the spans of a tree."""
    allowed = {tuple(row) for row in indicators(n, arity).tolist()}
    m = len(all_spans(n))
    return lambda values: np.array([tuple(row) in allowed for row in values[:, :m].tolist()], bool)


def log_weights(log_odds):
    return [np.array([-INF, 0.0]) if a == INF else np.array([0.0, a]) for a in log_odds]


def family_of(n, arity):
    graph = FactorGraph()
    return Bracketing(graph.boolean(n * (n + 1) // 2), arity)


# --- messages -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arity", ARITIES)
@pytest.mark.parametrize("maximise", [False, True])
@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_messages_of_brackets_agree_with_enumeration(arity, maximise, spread):
    """A large spread makes spans nearly certain: what is left of the other side must not drown in rounding."""
    rng = np.random.default_rng(0)
    seen = 0
    for n in (1, 2, 3, 4, 5):
        values, family = indicators(n, arity), family_of(n, arity)
        for _ in range(6):
            log_odds = rng.normal(0, spread, values.shape[1])
            told = rng.random(len(log_odds))
            log_odds[told < 0.1], log_odds[told > 0.9] = -INF, INF
            heard = log_weights(log_odds)
            allowed = np.all([[logs[v] > -INF for logs, v in zip(heard, row, strict=True)] for row in values], axis=1)
            if not allowed.any():
                with pytest.raises(InfeasibleError):
                    family.send(np.zeros(0), [log_odds], maximise)
                assert family.believe(np.zeros(0), [log_odds], maximise)[0] == -INF
                continue
            said = brute_force_messages(values, np.zeros(len(values)), heard, maximise=maximise)
            (found,) = family.send(np.zeros(0), [log_odds], maximise)
            open_ = np.isfinite(log_odds)
            with np.errstate(invalid="ignore"):
                truth = np.array([logs[1] - logs[0] for logs in said])
            np.testing.assert_allclose(found[open_], truth[open_], rtol=1e-6, atol=1e-8)
            worth = [sum(logs[v] for logs, v in zip(heard, row, strict=True)) for row in values[allowed]]
            total = max(worth) if maximise else np.logaddexp.reduce(worth)
            assert family.believe(np.zeros(0), [log_odds], maximise)[0] == pytest.approx(total, abs=1e-8)
            seen += 1
    assert seen > 12


@pytest.mark.parametrize("maximise", [False, True])
def test_messages_of_epu_agree_with_enumeration(maximise):
    rng, graph = np.random.default_rng(1), FactorGraph()
    family = Epu(graph.boolean(6), graph.multinomial(6, 3))
    odds = np.append(rng.normal(size=4), [-INF, INF])
    labels = rng.normal(size=(6, 3))
    labels[1, 2] = -INF
    to_boolean, to_labels = family.send(np.zeros(0), [odds, labels], maximise)
    values = assignments([2, 3])
    values = values[(values[:, 0] > 0) == (values[:, 1] > 0)]
    total = 0.0
    for at in range(6):
        heard = [log_weights(odds)[at], labels[at]]
        said = brute_force_messages(values, np.zeros(len(values)), heard, maximise=maximise)
        assert to_boolean[at] == pytest.approx(said[0][1] - said[0][0])
        finite = said[1] - said[1].max()
        np.testing.assert_allclose(to_labels[at], finite)
        worth = [heard[0][b] + heard[1][c] for b, c in values.tolist()]
        total += max(worth) if maximise else np.logaddexp.reduce(worth)
    assert family.believe(np.zeros(0), [odds, labels], maximise)[0] == pytest.approx(total)
    assert family.parts([np.array([1, 0, 0, 0, 0, 1]), np.array([2, 0, 0, 0, 0, 0])]) is None


# --- graphs without cycles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("arity", ARITIES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_brackets_keep_every_law(n, arity):
    rng, m = np.random.default_rng(n), n * (n + 1) // 2
    scores = rng.normal(size=m)
    if n == 4:
        scores[5] = -INF
    graph = FactorGraph()
    spans = graph.spans(n)
    graph.unary(spans, scores)
    graph.brackets(spans, arity=arity)
    truth = brute_force_factors([2] * m, [having((s, 1)) for s in range(m)], scores, [tree_rule(n, arity)])
    assert graph.exact
    check_laws(graph, truth, rng=rng, samples=200)
    assert graph.run(semiring=MAX).log_partition() == pytest.approx(truth.best)


@pytest.mark.parametrize(("arity", "counts"), [("binary", (1, 1, 2, 5, 14, 42)), ("any", (1, 1, 3, 11, 45, 197))])
def test_numbers_of_trees(arity, counts):
    for n, count in enumerate(counts, start=1):
        graph = FactorGraph()
        graph.brackets(graph.spans(n), arity=arity)
        assert np.exp(graph.log_partition()) == pytest.approx(count)


def labelled(n, k, brackets, labels, arity="binary"):
    """BRACKET, CONSTIT, EPU, and the tree."""
    graph = FactorGraph()
    spans = graph.spans(n)
    kinds = graph.multinomial(spans.shape, k + 1, name="labels")
    graph.unary(spans, brackets)
    graph.unary(kinds, labels)
    graph.epu(spans, kinds)
    graph.brackets(spans, arity=arity)
    return graph, spans, kinds


@pytest.mark.parametrize("arity", ARITIES)
def test_labels_and_brackets_go_together(arity):
    n, k, m, rng = 3, 2, 6, np.random.default_rng(4)
    brackets, labels = rng.normal(size=m), rng.normal(size=(m, k + 1))
    labels[4, 1] = -INF
    graph, _, kinds = labelled(n, k, brackets, labels, arity)
    parts = [having((s, 1)) for s in range(m)] + [having((m + s, v)) for s in range(m) for v in range(k + 1)]
    hard = [tree_rule(n, arity), lambda values: ((values[:, :m] > 0) == (values[:, m:] > 0)).all(axis=1)]
    truth = brute_force_factors([2] * m + [k + 1] * m, parts, np.concatenate([brackets, labels.ravel()]), hard)
    assert graph.exact
    check_laws(graph, truth, rng=rng, samples=0)
    one = graph.given(kinds[3:4], [1])
    agreeing = [kept[m + 3] == 1 for kept in truth.structures]
    assert one.log_partition() == pytest.approx(np.logaddexp.reduce(truth.log_scores[agreeing]))


def test_labelled_brackets_are_labelled_spans():
    """The same as the structure of labelled spans, whose labels bear the scores of brackets too."""
    n, k, m, rng = 6, 3, 21, np.random.default_rng(5)
    brackets, labels = rng.normal(size=m), rng.normal(size=(m, k + 1))
    graph, spans, kinds = labelled(n, k, brackets, labels)
    found = graph.run()
    direct = SpanTree(labels[:, 1:] - labels[:, :1] + brackets[:, None], arity="binary")
    assert found.log_partition() == pytest.approx(direct.log_partition() + labels[:, 0].sum())
    np.testing.assert_allclose(found.probabilities(kinds)[:, 1:], direct.marginals(), atol=1e-9)
    np.testing.assert_allclose(found.probabilities(spans), direct.marginals().sum(axis=1), atol=1e-9)


# --- rules: cycles ------------------------------------------------------------------------------------------------


def test_rewrites_of_two_words_are_exact_and_those_of_three_name_their_spans():
    k, m, rng = 2, 3, np.random.default_rng(6)
    labels, rules = rng.normal(size=(m, k + 1)), rng.normal(size=(1, k, k, k))
    graph, _, kinds = labelled(2, k, np.zeros(m), labels)
    graph.rewrite(kinds, rules)
    assert graph.exact
    values = assignments([k] * 3)  # labels of (0, 1), (1, 2) and (0, 2), none of which is 0
    worth = [labels[np.arange(3), row + 1].sum() + rules[0][tuple(row)] for row in values]
    assert graph.log_partition() == pytest.approx(np.logaddexp.reduce(worth))
    spans = all_spans(4)
    named = [[spans[s] for s in row] for row in rewrite_triples(4).tolist()]
    assert named == [[(i, j), (j, k), (i, k)] for i in range(4) for j in range(i + 1, 4) for k in range(j + 1, 5)]


@pytest.mark.parametrize("n", [3, 4])
def test_a_grammar_of_rewrites_comes_near_its_exact_sum_as_rules_grow_weak(n):
    """A grammar is one tree with weights (`Cfg`); as many small factors it has cycles, and the error shrinks."""
    k, rng = 2, np.random.default_rng(7)
    m, grammar = n * (n + 1) // 2, Grammar(k, [(a, b, c) for a in range(k) for b in range(k) for c in range(k)])
    cells, rules, errors = rng.normal(size=(m, k)), rng.normal(size=(k, k, k)), []
    for strength in (1.0, 0.3, 0.0):
        graph, _, kinds = labelled(n, k, np.zeros(m), np.concatenate([np.zeros((m, 1)), cells], axis=1))
        graph.rewrite(kinds, np.tile(strength * rules, (len(rewrite_triples(n)), 1, 1, 1)))
        weights = [strength * rules[b, c, a] for a, b, c in grammar.binary.tolist()]
        truth = grammar.split(Cfg(grammar.scores(n, binary=weights, inner=cells), grammar).marginals()).inner
        found = graph.run(iterations=100, damping=0.3, tolerance=1e-6).probabilities(kinds)[:, 1:]
        errors.append(np.abs(found - truth).max())
        assert not graph.exact
    assert errors[2] < 1e-6 and errors[1] < errors[0] < 0.2 and errors[1] < 0.05


# --- use ----------------------------------------------------------------------------------------------------------


def test_contradictions_wrong_use_and_plain_data():
    graph, spans, kinds = labelled(4, 2, np.zeros(10), np.zeros((10, 3)))
    with pytest.raises(InfeasibleError, match="brackets"):
        graph.given(spans[[4, 5]], [True, True]).log_partition()  # two spans that cross
    with pytest.raises(InfeasibleError):
        graph.given(kinds[9:], [0]).log_partition()  # the whole sentence without a label
    with pytest.raises(ParameterError, match="breaks the brackets"):
        graph.parts(np.zeros(20, np.int64))
    header, arrays = graph.to_arrays()
    again = FactorGraph.from_arrays(json.loads(json.dumps(header)), arrays)
    assert again.log_partition() == graph.log_partition()
    header["factors"][-1]["options"]["arity"] = "three"
    with pytest.raises((ModelError, ParameterError)):
        FactorGraph.from_arrays(header, arrays)
    other = FactorGraph()
    for wrong in (
        lambda: other.brackets(other.boolean(5)),
        lambda: other.brackets(other.spans(2, name="few"), arity="three"),
        lambda: other.epu(other.boolean(3), other.boolean(3)),
        lambda: other.rewrite(other.multinomial(6, 3), np.zeros((1, 2, 2, 2))),
        lambda: other.spans(-1),
    ):
        with pytest.raises(ParameterError):
            wrong()
    pruned = FactorGraph()
    left = pruned.spans(3, active=[True, True, True, False, True, True])
    pruned.brackets(left)
    assert pruned.log_partition() == pytest.approx(0.0) and left.of(pruned.argmax()).tolist() == [1, 1, 1, 0, 1, 1]
