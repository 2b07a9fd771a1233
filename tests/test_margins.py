"""Max-margin parsing over treebank grammars: charts, what is seen at the edges of spans, and what is learnt from it."""

from __future__ import annotations

import numpy as np
import pytest

from isogloss import samples
from isogloss.data import Constituents
from isogloss.data.constituent_forms import Markov
from isogloss.errors import ParameterError
from isogloss.features import Templates
from isogloss.features.sparse import Sparse
from isogloss.learners.frank_wolfe import FrankWolfe
from isogloss.learners.rule_model import RuleModel, constituent_costs
from isogloss.learners.runner import run
from isogloss.structures import Cfg, Grammar
from isogloss.tasks.parse.constituency.derivations import Derivations
from isogloss.tasks.parse.constituency.margins import LEXICAL, FlatSpans, Generative, edge_parts, marked_spans
from isogloss.tasks.parse.constituency.trees import Labels, as_spans, plain
from isogloss.tasks.parse.constituency.words import Known, Sentences
from isogloss.testing import brute_force_cfg

GRAMMAR = Grammar(3, [(0, 1, 2), (0, 0, 2), (0, 1, 0), (0, 2, 2), (2, 2, 1)], [(0, 2), (1, 2)])
MARKOVS = [Markov(horizontal=0), Markov(horizontal=1), Markov(horizontal=0, vertical=2), Markov("head", 2, 2)]


@pytest.fixture(scope="module")
def trees() -> Constituents:
    return plain(samples.constituents("en-de", "source"))


def codes(trees: Constituents) -> Sentences:
    return Sentences.of(trees.offsets, trees.columns["form"], trees.columns["tag"], Known.of(trees.columns["form"], 1))


# --- charts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("markov", MARKOVS)
def test_charts_hold_the_right_trees_and_give_them_back(trees: Constituents, markov: Markov) -> None:
    grammar = Generative.fit(trees, markov)
    right, words = grammar.right(), [trees.words(k) for k in range(len(trees))]
    labels, flat = Labels.of(trees)
    gold = as_spans(flat, labels)
    charts = list(grammar.charts(words, right))
    for k, chart in enumerate(charts):
        assert chart is not None and chart.trees.grammar.n_symbols <= grammar.derived.rules.n_symbols
        local = chart.local(right[k])
        assert chart.trees.score(local) > -np.inf and chart.bare().score(local) > -np.inf
        assert chart.trees.score(chart.best) >= chart.trees.score(local) - 1e-9
        spans, tags = grammar.spans(local, chart.symbols)
        assert spans == gold[k] and tuple(tags) == trees.tags(k)


def test_a_chart_has_the_best_tree_of_the_whole_grammar(trees: Constituents) -> None:
    grammar = Generative.fit(trees, MARKOVS[2])
    words = [trees.words(k) for k in range(6)]
    types = {word: at for at, word in enumerate(dict.fromkeys(word for own in words for word in own))}
    table = grammar.lexicon.table(grammar.plain.known, grammar.lexicon.seen(list(types)))
    tokens = np.array([types[word] for own in words for word in own])
    whole = grammar.plain.grammar.coarse(np.array([len(own) for own in words]), tokens, table)
    for chart, best, dist in zip(grammar.charts(words), whole.argmax(), whole, strict=True):
        assert chart is not None
        assert chart.trees.score(chart.best) == pytest.approx(dist.score(best))
        first = chart.trees.grammar.split(chart.bare().scores)
        assert not first.binary.any() and not first.unary.any()
        assert set(np.unique(first.inner[chart.trees.n :])) <= {0.0, -np.inf}


def test_sentences_without_a_tree_and_short_ones() -> None:
    trees = Constituents.of(["(S (A a) (B b))", "(S (A a))"])
    grammar = Generative.fit(trees, Markov(horizontal=0, vertical=2))
    short, unseen, none, empty = grammar.charts([("a",), ("a", "qq"), ("a", "b", "a"), ()])
    assert short is not None and grammar.spans(short.best, short.symbols) == (frozenset([(0, 1, 0)]), ["A"])
    assert unseen is not None and grammar.spans(unseen.best, unseen.symbols)[1] == ["A", "B"]
    assert none is None and empty is None
    with pytest.raises(ParameterError, match="remember"):
        Derivations.of(trees, Labels.of(trees)[0], Markov(vertical=3))


def test_a_part_of_a_grammar_has_its_trees_and_their_scores() -> None:
    rng = np.random.default_rng(0)
    symbols = np.array([0, 2])
    part, numbers = GRAMMAR.part(symbols)
    assert part.n_symbols == 2 and numbers.tolist() == [1, 3, 5]
    scores = rng.normal(size=len(GRAMMAR.binary) + len(GRAMMAR.unary))
    cells = rng.normal(size=(2, 6, 3))
    cells[:, :, 1] = -np.inf
    whole = Cfg(GRAMMAR.scores(3, scores[:5], scores[5:], cells[0], cells[1]), GRAMMAR)
    own = scores[numbers]
    small = Cfg(part.scores(3, own[:2], own[2:], cells[0][:, symbols], cells[1][:, symbols]), part)
    assert small.log_partition() == pytest.approx(whole.log_partition())
    inside = part.split(small.marginals()).inner
    assert inside == pytest.approx(GRAMMAR.split(whole.marginals()).inner[:, symbols])


# --- learning -------------------------------------------------------------------------------------------------------


def several(seed: int = 0):
    """Items with grammars of their own, of one grammar of five binary and two unary rules, and features of spans."""
    rng = np.random.default_rng(seed)
    trees, rules, right = [], [], []
    for n, symbols in ((3, [0, 1, 2]), (2, [0, 2]), (4, [0, 1, 2]), (1, [0, 2])):
        grammar, numbers = GRAMMAR.part(symbols)
        one = Cfg(grammar.scores(n, inner=rng.normal(size=(n * (n + 1) // 2, len(symbols)))), grammar)
        trees.append(one)
        rules.append(numbers)
        right.append(one.sample(rng))
    spans = sum(one.n * (one.n + 1) // 2 for one in trees)
    features = Sparse.of([rng.choice(6, size=2, replace=False).tolist() for _ in range(spans)], 6)
    return RuleModel(trees, features, rules=rules, n_rules=7), right


def test_items_with_grammars_of_their_own_share_weights() -> None:
    model, right = several()
    weights = np.random.default_rng(1).normal(size=model.n_weights)
    assert model.n_weights == 13
    first = 0
    for item, tree in enumerate(right):
        dist = model.distribution(weights, item)
        base, n = model.trees[item], model.trees[item].n
        kinds = base.grammar.split(base.parts(tree))
        own = np.concatenate([kinds.binary, kinds.unary]) @ weights[model._rules[item]]
        spans = np.flatnonzero(kinds.inner.sum(axis=1))
        edges = sum(weights[7 + f] for s in spans for f in
                    model.spans.indices[model.spans.indptr[first + s] : model.spans.indptr[first + s + 1]])  # fmt: skip
        assert dist.score(tree) == pytest.approx(base.score(tree) + own + edges)
        at, much = model.difference(item, tree, dist.argmax())
        gained = dist.score(tree) - dist.score(dist.argmax())
        fixed = base.score(tree) - base.score(dist.argmax())
        assert gained == pytest.approx(fixed + weights[at] @ much)
        assert set(at) <= set(model.support(np.array([item])))
        first += n * (n + 1) // 2
    both = model.batch(weights, np.array([2, 0]))
    assert both.log_partition() == pytest.approx([model.distribution(weights, k).log_partition() for k in (2, 0)])
    with pytest.raises(ParameterError, match="rules="):
        RuleModel(model.trees)
    with pytest.raises(ParameterError, match="each rule"):
        RuleModel(model.trees, rules=[np.arange(7)] * 4)
    with pytest.raises(ParameterError, match="grammars have 7"):
        RuleModel(model.trees, rules=model._rules, n_rules=3)


def test_the_dual_over_trees_is_the_dual_over_parts() -> None:
    """Q(α) of weights on trees equals Q_m(μ) of what they expect of parts (Taskar et al. 2004, section 4)."""
    model, right = several(2)
    costs = constituent_costs(model.trees, right)
    rng, c = np.random.default_rng(3), 0.7
    over_trees, over_parts = np.zeros(model.n_weights), np.zeros(model.n_weights)
    losses, expected = 0.0, 0.0
    zeros = np.zeros(model.n_weights)
    for item, tree in enumerate(right):
        dist = model.trees[item]
        grammar = dist.grammar
        truth = brute_force_cfg(dist.scores, dist.n, grammar.n_symbols, grammar.binary.tolist(), grammar.unary.tolist())
        alpha = rng.dirichlet(np.ones(len(truth.log_scores)))
        losses += float(alpha @ (truth.parts @ costs[item].parts))
        items, mine = np.array([item]), dist.parts(tree)
        batch = model.batch(zeros, items)
        for share, parts in zip(alpha, truth.parts, strict=True):
            model.gradient(items, batch, share * (mine - parts)).add_to(over_trees)
        mu = alpha @ truth.parts
        expected += float(mu @ costs[item].parts)
        model.gradient(items, batch, mine - mu).add_to(over_parts)
        kinds = grammar.split(mu)
        wide = kinds.inner[dist.n :].sum(axis=0)
        assert np.bincount(grammar.binary[:, 0], kinds.binary, grammar.n_symbols) == pytest.approx(wide)
        assert kinds.outer[-1].sum() == pytest.approx(1.0)
    q = [c * loss - 0.5 * float(np.sum((c * w) ** 2)) for loss, w in ((losses, over_trees), (expected, over_parts))]
    assert q[0] == pytest.approx(q[1])


def planted():
    """Two readings of A B B, told apart by the first word alone: x wants (A B) B, y wants A (B B)."""
    listed = []
    for first in ("x1", "x2", "x3", "y1", "y2", "y3"):
        for last in ("b", "c"):
            left = f"(S (P (A {first}) (B {last})) (B b))"
            right = f"(S (A {first}) (Q (B {last}) (B b)))"
            listed.append(left if first.startswith("x") else right)
    return plain(Constituents.of(listed))


def learnt(trees: Constituents, templates, l2: float):
    grammar = Generative.fit(trees, Markov(horizontal=0))
    right = grammar.right()
    charts = list(grammar.charts([trees.words(k) for k in range(len(trees))], right))
    parts, spans = edge_parts(codes(trees)), None
    if templates:
        spans = Templates(templates, kind="edges").matrix(parts, Templates(templates, kind="edges").index(parts))
    model = RuleModel([chart.bare() for chart in charts], spans, rules=[chart.rules for chart in charts])
    targets = [chart.local(tree) for chart, tree in zip(charts, right, strict=True)]
    free = [np.flatnonzero(grammar.free[chart.symbols]) for chart in charts]
    costs = constituent_costs([chart.trees for chart in charts], targets, free)
    learner = FrankWolfe(model, targets, costs, l2=l2)
    found = run(learner, learner.init(), iterations=200, should_stop=lambda _, info: info.gap < 1e-6)
    assert (np.diff(found.trace) >= -1e-9).all() and found.watched["gap"][-1] < 1e-5
    return model, targets, costs, found.state.weights


def test_words_at_the_edges_decide_what_rules_cannot_and_margins_are_those_of_the_loss() -> None:
    trees = planted()
    model, targets, _, weights = learnt(trees, (), 0.01)
    wrong = sum(model.distribution(weights, k).argmax() != tree for k, tree in enumerate(targets))
    assert wrong >= 6  # both readings have the same rules in all sentences: half of them at best
    model, targets, costs, weights = learnt(trees, LEXICAL, 0.01)
    for k, tree in enumerate(targets):
        dist = model.distribution(weights, k)
        grammar = dist.grammar
        truth = brute_force_cfg(dist.scores, dist.n, grammar.n_symbols, grammar.binary.tolist(), grammar.unary.tolist())
        margins = dist.score(tree) - truth.log_scores - truth.parts @ costs[k].parts
        assert dist.argmax() == tree and margins.min() > -1e-3


# --- what a classifier says ------------------------------------------------------------------------------------------


def test_spans_are_told_apart_one_by_one(trees: Constituents) -> None:
    parts = edge_parts(codes(trees))
    labels, flat = Labels.of(trees)
    gold = marked_spans(as_spans(flat, labels), trees.lengths)
    assert gold.sum() == sum(len(own) for own in as_spans(flat, labels))
    chances = FlatSpans.fit(parts, gold).chances(parts)
    assert ((chances > 0.5) == gold).mean() > 0.95 and 0.0 <= chances.min() <= chances.max() <= 1.0
    assert chances[gold].mean() > 0.5 > 0.2 > chances[~gold].mean()
