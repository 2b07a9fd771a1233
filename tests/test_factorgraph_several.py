"""Factors over several Booleans, against enumeration: all true, how many, one of some pairs; and taking turns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from isogloss.errors import ParameterError
from isogloss.structures import FactorGraph, InfeasibleError
from isogloss.structures.semiring import MAX
from isogloss.testing import assignments, brute_force_factors, brute_force_messages, check_structure, having

INF = np.inf


def evidence(rng, n):
    """Log-odds, some of them certain."""
    return np.where(rng.random(n) < 0.25, rng.choice([-INF, INF], n), rng.normal(0, 2, n))


def as_weights(odds):
    return [np.array([-INF, 0.0]) if a == INF else np.array([0.0, a]) for a in odds]


def said(family, scores, heard, maximise):
    """Messages as log-odds, one after the other."""
    return np.concatenate([np.ravel(m) for m in family.send(scores, heard, maximise)])


def check_messages(family, scores, heard, values, logs):
    """A single factor against all of its assignments, and its total."""
    flat = np.concatenate([np.ravel(a) for a in heard])
    for maximise in (False, True):
        truth = brute_force_messages(values, logs, as_weights(flat), maximise=maximise)
        with np.errstate(invalid="ignore"):
            expected = np.array([row[1] - row[0] for row in truth])
        assert said(family, scores, heard, maximise) == pytest.approx(expected, abs=1e-9, nan_ok=True)
        weights = sum(w[values[:, v]] for v, w in enumerate(as_weights(flat))) + logs
        total = weights.max() if maximise else np.logaddexp.reduce(weights)
        value, beliefs = family.believe(scores, heard, maximise)
        assert value == pytest.approx(total, abs=1e-9)
        yield maximise, weights, beliefs


@pytest.mark.parametrize("arity", [1, 2, 4])
@pytest.mark.parametrize("seed", range(6))
def test_messages_of_conjunctions(arity, seed):
    rng = np.random.default_rng(seed)
    g = FactorGraph()
    scores = np.array([rng.choice([-INF, rng.normal(0, 3), 40.0], p=[0.2, 0.6, 0.2])])
    g.conjunction(*(g.boolean(1) for _ in range(arity)), scores=scores)
    values = assignments([2] * arity)
    logs = np.where(values.all(axis=1), scores[0], 0.0)
    heard = [np.array([a]) for a in evidence(rng, arity)]
    for maximise, weights, beliefs in check_messages(g._families[0], scores, heard, values, logs):
        if not maximise and weights.max() > -INF:
            p = np.exp(weights - np.logaddexp.reduce(weights))
            assert beliefs == pytest.approx(p[values.all(axis=1)])


@pytest.mark.parametrize("n, bins", [(0, 2), (1, 1), (3, 2), (4, 4), (3, 6)])
@pytest.mark.parametrize("seed", range(4))
def test_messages_of_numbers_are_those_of_counting(n, bins, seed):
    rng = np.random.default_rng(seed)
    g = FactorGraph()
    scores = np.where(rng.random((1, bins)) < 0.2, -INF, rng.normal(0, 2, (1, bins)))
    g.number([g.boolean(n)], scores)
    values = assignments([2] * n)
    number = np.minimum(values.sum(axis=1), bins - 1)
    logs = scores[0, number]
    heard = [evidence(rng, n)]
    for maximise, weights, beliefs in check_messages(g._families[0], scores, heard, values, logs):
        if not maximise and weights.max() > -INF:
            p = np.exp(weights - np.logaddexp.reduce(weights))
            assert beliefs[0] == pytest.approx(np.bincount(number, p, minlength=bins))


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_messages_of_indicators(n, seed):
    rng = np.random.default_rng(seed)
    g = FactorGraph()
    first, second, whole = g.boolean(n), g.boolean(n), g.boolean(1)
    g.indicator(first, second, [0, n], whole)
    values = assignments([2] * (2 * n + 1))
    both = (values[:, :n] * values[:, n : 2 * n]).sum(axis=1)
    logs = np.where(both == values[:, -1], 0.0, -INF)
    found = evidence(rng, 2 * n + 1)
    heard = [found[:n], found[n : 2 * n], found[2 * n :]]
    for _ in check_messages(g._families[0], np.zeros(0), heard, values, logs):
        pass


def test_an_indicator_is_an_and_for_each_pair_and_one_of_them():
    """The construction with AND variables has the same beliefs (Smith 4.7)."""
    rng = np.random.default_rng(0)
    merged, apart = FactorGraph(), FactorGraph()
    odds = rng.normal(0, 1, 7)
    for g in (merged, apart):
        pairs = g.boolean(6, name="pairs")
        whole = g.boolean(1, name="whole")
        g.unary(pairs, odds[:6])
        g.unary(whole, odds[6:])
    merged.indicator(pairs_of(merged)[:3], pairs_of(merged)[3:], [0, 3], merged.variables("whole"))
    ands = apart.boolean(3, name="ands")
    table = np.full((3, 2, 2, 2), -INF)
    for a, b in itertools.product(range(2), repeat=2):
        table[:, a, b, a * b] = 0.0
    apart.table([pairs_of(apart)[:3], pairs_of(apart)[3:], ands], table)
    none = apart.boolean(1, name="none")
    apart.table([none, apart.variables("whole")], np.array([[[-INF, 0.0], [0.0, -INF]]]))
    apart.exactly_one([Concatenated.of(apart, ["ands", "none"])])
    assert merged.exact and apart.exact
    assert merged.log_partition() == pytest.approx(apart.log_partition())
    for name in ("pairs", "whole"):
        p, q = (g.beliefs.probabilities(g.variables(name)) for g in (merged, apart))
        assert p == pytest.approx(q)


def pairs_of(g):
    return g.variables("pairs")


class Concatenated:
    @staticmethod
    def of(g, names):
        every = [g.variables(name) for name in names]
        return every[0]._like(np.concatenate([v.numbers for v in every]))


def build(scores):
    """Two conjunctions that share no more than one variable, numbers of the rest, and an indicator: no cycle."""
    g = FactorGraph()
    v = g.boolean(9)
    g.unary(v, scores[:9])
    g.conjunction(v[[0]], v[[1]], v[[2]], v[[3]], scores=scores[9:10])
    g.number([v[3:6]], scores[10:13][None, :])
    either = g.boolean(1, name="either")
    g.indicator(v[[5, 7]], v[[6, 8]], [0, 2], either)
    g.unary(either, scores[13:])
    return g


def rule(values):
    return values[:, 5] * values[:, 6] + values[:, 7] * values[:, 8] == values[:, 9]


PARTS = [
    *(having((k, 1)) for k in range(9)),
    having((0, 1), (1, 1), (2, 1), (3, 1)),
    *(lambda values, k=k: np.minimum(values[:, 3:6].sum(axis=1), 2) == k for k in range(3)),
    having((9, 1)),
]


def test_several_keep_every_law():
    check_structure(
        build,
        lambda scores: brute_force_factors([2] * 10, PARTS, scores, [rule]),
        shapes=[(14,)],
        count=lambda shape: int(rule(assignments([2] * 10)).sum()),
        samples=100,
    )
    g = build(np.zeros(14))
    assert g.run(semiring=MAX).log_partition() == pytest.approx(0.0)


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_groups_that_take_turns_come_to_the_same_beliefs(damping):
    rng = np.random.default_rng(1)
    g = FactorGraph(tolerance=1e-10, damping=damping, iterations=300)
    links, tags = g.links(4), g.multinomial(4, 3)
    g.unary(links, rng.normal(0, 1, (5, 5)))
    g.tree(links)
    g.unary(tags, rng.normal(0, 1, (4, 3)))
    inner = links[1:, 1:]
    g.link_tags(inner, *(tags[np.indices((4, 4))[k]] for k in (0, 1)), scores=rng.normal(0, 0.5, (4, 4, 3, 3)))
    g.chain(tags, rng.normal(0, 0.5, (3, 3, 3)))
    g.conjunction(links[0, 1:], links[1:, 1], scores=rng.normal(0, 0.5, 4))
    together, in_turn = g.run(), g.run(schedule="grouped")
    assert together.report.converged and in_turn.report.converged
    assert in_turn.report.iterations < together.report.iterations
    assert in_turn.log_partition() == pytest.approx(together.log_partition(), abs=1e-7)
    assert in_turn.marginals() == pytest.approx(together.marginals(), abs=1e-7)


@pytest.mark.parametrize("schedule", ["synchronous", "grouped", "residual"])
def test_contradictions_have_a_name_with_every_schedule(schedule):
    g = FactorGraph(schedule=schedule)
    v = g.boolean(3, name="v")
    g.number([v], np.array([[-INF, -INF, -INF, 0.0]]))
    g.at_most_one(v)
    with pytest.raises(InfeasibleError):
        g.run()


def test_graphs_with_several_are_plain_data():
    g = build(np.random.default_rng(0).normal(0, 1, 14))
    again = FactorGraph.from_arrays(*g.to_arrays())
    assert again.log_partition() == pytest.approx(g.log_partition(), rel=1e-12)
    assert again.marginals() == pytest.approx(g.marginals())


def test_what_cannot_be_is_refused():
    g = FactorGraph()
    one, two, tag = g.boolean(2), g.boolean(3), g.multinomial(2, 3)
    for wrong in (
        lambda: g.conjunction(one, two, scores=np.zeros(2)),
        lambda: g.conjunction(one, tag, scores=np.zeros(2)),
        lambda: g.number([one], np.zeros((1, 0))),
        lambda: g.number([tag], np.zeros((1, 2))),
        lambda: g.indicator(one, two, [0, 2], one),
        lambda: g.indicator(one, one, [0, 1], one[:1]),
    ):
        with pytest.raises(ParameterError):
            wrong()
