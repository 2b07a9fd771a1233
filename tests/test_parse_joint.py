"""The joint model of tags, morphology and trees, against enumeration, factor graphs and other roads."""

from __future__ import annotations

import hashlib
import itertools
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data.bitext import Text
from isogloss.data.treebank import Treebank
from isogloss.errors import DataError, ModelError, ParameterError, TreebankError, UsageError
from isogloss.features.mixing import factor_of, mix
from isogloss.learners.runner import Interrupted
from isogloss.learners.tuning import Tuned
from isogloss.progress import QuietProgress
from isogloss.structures import Chain, FactorGraph, SpanningTree
from isogloss.tasks.parse.joint import AnalysisDictionary, JointMorphologyParser, Schema
from isogloss.tasks.parse.joint._numba.build import build
from isogloss.tasks.parse.joint._numba.learn import beliefs, bethe, gold_score, gradient
from isogloss.tasks.parse.joint._numba.propagate import propagate, tree_marginals
from isogloss.tasks.parse.joint.features import FAMILIES
from isogloss.tasks.parse.joint.scoring import attribute_scores
from isogloss.tasks.parse.joint.tagging import TAGGING, Known, jackknifed
from isogloss.tasks.parse.joint.text import _own_features, clamped, known_features, see, sentences_of
from isogloss.tasks.parse.joint.training import Settings, all_beliefs, link_table, potentials_of, shape_of

DATA = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "treebanks"
EXACT = {"rel": 0, "abs": 1e-9}


class Model:
    """A few words with random weights, and all that the kernels are given."""

    def __init__(self, n=3, values=(2, 3), *, seed=0, scale=1.0, links=1.0, allowed=None, single=False):
        rng = np.random.default_rng(seed)
        names = ("upos", *(f"F{a}" for a in range(1, len(values))))
        kinds = [[f"P{v}" for v in range(values[0])]]
        kinds += [["", *(f"v{v}" for v in range(1, size))] for size in values[1:]]
        self.schema = Schema(names, tuple(tuple(own) for own in kinds))
        words = [(f"w{i}", "P0", 0 if i == 0 else 1, "_") for i in range(n)]
        self.trees = Treebank.of([words])
        self.seen = see(self.trees)
        self.features = known_features(self.seen)
        self.gold = np.stack([rng.integers(0, size, n) for size in values], axis=1)
        self.allowed = np.ones((n, sum(values)), bool) if allowed is None else allowed
        self.context = self.gold[:, 0]
        (self.sentence,) = sentences_of(
            self.trees, self.seen, self.features, self.schema, self.allowed, self.context, self.gold
        )
        self.table = link_table([self.sentence], len(values), 10)
        self.shape, size = shape_of(self.schema, len(self.features), self.table)
        self.weights = scale * rng.normal(size=size)
        self.weights[: self.shape.bigrams[0]] *= 0.3  # some ten features of each word are added up
        self.weights[self.shape.link_start :] *= links * 0.3
        self.single = single

    @property
    def potentials(self):
        return potentials_of(self.shape, self.weights)

    def graph(self, links=True):
        return build(self.sentence, self.shape, self.weights, links)

    def beliefs(self, iterations=200, links=True, projective=False, tolerance=1e-13):
        return beliefs(
            self.sentence, self.shape, self.weights, self.potentials, links, projective, self.single, iterations,
            tolerance,
        )  # fmt: skip

    def gradient(self, links=True, tags=True, iterations=300):
        return gradient(
            self.sentence, self.shape, self.weights, self.potentials, links, tags, False, self.single, iterations,
            1e-14, 0.0,
        )  # fmt: skip

    def dense(self, places, values):
        out = np.zeros(len(self.weights))
        np.add.at(out, places, values)
        return out

    # --- by another road: every assignment

    def enumerate(self, links=True):
        """Posteriors of values and links, log Z: sums over everything, with scores read from a fresh graph."""
        s, n_attributes = self.sentence, len(self.shape.sizes)
        graph, n = self.graph(links), len(s.words) - 1
        ranges = [range(s.starts[x], s.starts[x + 1]) for x in range(len(s.starts) - 1)]
        tags, chances, total = np.zeros(len(s.values)), np.zeros((n + 1, n + 1)), 0.0
        trees = list(all_trees(n, single=self.single)) if links else [None]
        for chosen in itertools.product(*ranges):
            base = self.tag_score(graph, chosen)
            odds = self.link_scores(graph, chosen) if links else None
            for heads in trees:
                score = base
                if heads is not None:
                    score += sum(odds[h, c] for c, h in enumerate(heads, 1))
                mass = np.exp(score)
                total += mass
                tags[list(chosen)] += mass
                for c, h in enumerate(heads or (), 1):
                    chances[h, c] += mass
        assert n_attributes == len(self.schema.names)
        return tags / total, chances / total, np.log(total)

    def tag_score(self, graph, chosen):
        s, sh, w, n_attributes = self.sentence, self.shape, self.weights, len(self.shape.sizes)
        score = 0.0
        for a in range(n_attributes):
            size = sh.sizes[a] + 1
            table = w[sh.bigrams[a] : sh.bigrams[a] + size * size].reshape(size, size)
            row = [s.values[chosen[x]] for x in range(n_attributes + a, len(chosen), n_attributes)]
            path = [size - 1, *row, size - 1]
            score += sum(table[v, u] for v, u in itertools.pairwise(path))
            score += sum(graph.totals[chosen[x]] for x in range(n_attributes + a, len(chosen), n_attributes))
            if a:
                start = sh.consistency[a]
                within = w[start : start + sh.sizes[0] * sh.sizes[a]].reshape(sh.sizes[0], sh.sizes[a])
                tags = [s.values[chosen[x]] for x in range(n_attributes, len(chosen), n_attributes)]
                score += sum(within[p, v] for p, v in zip(tags, row, strict=True))
        return score

    def link_scores(self, graph, chosen):
        s, n_attributes = self.sentence, len(self.shape.sizes)
        odds = graph.link_totals.copy()
        for f in range(len(graph.head)):
            x, y = graph.head[f] * n_attributes + graph.attribute[f], graph.child[f] * n_attributes + graph.attribute[f]
            wide = s.starts[y + 1] - s.starts[y]
            cell = graph.cells[f] + (chosen[x] - s.starts[x]) * wide + chosen[y] - s.starts[y]
            odds[graph.head[f], graph.child[f]] += graph.scores[cell]
        return odds

    def factor_graph(self):
        """The same distribution as a `FactorGraph`."""
        s, sh, w, n_attributes = self.sentence, self.shape, self.weights, len(self.shape.sizes)
        graph, n, g = self.graph(), len(self.sentence.words) - 1, FactorGraph()
        links = g.links(n)
        g.unary(links, np.where(np.isfinite(graph.link_totals), graph.link_totals, 0.0))
        g.tree(links, projective=False, single_root=self.single)
        tags = [g.multinomial(n, int(size)) for size in sh.sizes]
        for a, size in enumerate(sh.sizes.tolist()):
            table = w[sh.bigrams[a] : sh.bigrams[a] + (size + 1) ** 2].reshape(size + 1, size + 1)
            unary = np.array([graph.totals[s.starts[i * n_attributes + a] :][:size] for i in range(1, n + 1)])
            unary[0] += table[size, :size]
            unary[-1] += table[:size, size]
            g.unary(tags[a], unary)
            i = np.arange(n - 1)
            g.table([tags[a][i], tags[a][i + 1]], np.broadcast_to(table[:size, :size], (n - 1, size, size)))
            if a:
                start = sh.consistency[a]
                within = w[start : start + sh.sizes[0] * size].reshape(sh.sizes[0], size)
                g.table([tags[0], tags[a]], np.broadcast_to(within, (n, *within.shape)))
        for f in range(len(graph.head)):
            h, c, a = int(graph.head[f]), int(graph.child[f]), int(graph.attribute[f])
            cells = graph.scores[graph.cells[f] : graph.cells[f + 1]]
            size = int(sh.sizes[a])
            if h:
                scores = cells.reshape(1, size, size)
                g.link_tags(links[h, c].reshape(1), tags[a][h - 1].reshape(1), tags[a][c - 1].reshape(1), scores=scores)
            else:
                g.link_tags(links[h, c].reshape(1), tags[a][c - 1].reshape(1), scores=cells.reshape(1, size))
        return g, links, tags


def all_trees(n, single=False):
    for heads in itertools.product(range(n + 1), repeat=n):
        if single and heads.count(0) != 1:
            continue
        if all(reaches_root(heads, c) for c in range(1, n + 1)):
            yield heads


def reaches_root(heads, node):
    for _ in range(len(heads) + 1):
        if node == 0:
            return True
        node = heads[node - 1]
    return False


# --- messages and beliefs


@pytest.mark.parametrize(
    ("n", "single", "count"), [(1, False, 1), (3, False, 16), (4, False, 125), (3, True, 9), (4, True, 64)]
)
def test_tree_marginals_are_those_of_all_trees(n, single, count):
    scores = np.random.default_rng(n).normal(size=(n + 1, n + 1))
    marginals = np.zeros((n + 1, n + 1))
    trees = list(all_trees(n, single))
    assert len(trees) == count
    masses = [np.exp(sum(scores[h, c] for c, h in enumerate(heads, 1))) for heads in trees]
    expected = np.zeros((n + 1, n + 1))
    for heads, mass in zip(trees, masses, strict=True):
        for c, h in enumerate(heads, 1):
            expected[h, c] += mass / sum(masses)
    assert tree_marginals(scores, False, single, marginals) == pytest.approx(np.log(sum(masses)))
    assert marginals == pytest.approx(expected)


def test_one_attribute_without_links_is_a_chain():
    model = Model(4, (3,), seed=3)
    tags, _, _ = model.beliefs(iterations=1, links=False, tolerance=0.0)
    expected, _, log_z = model.enumerate(links=False)
    assert tags[1:] == pytest.approx(expected[1:], **EXACT)
    size, w, graph = 3, model.weights[model.shape.bigrams[0] :], model.graph(links=False)
    table, unary = w[:16].reshape(4, 4), graph.totals[1:].reshape(4, size)
    scores = np.full((4, size, size), 0.0)
    scores[0] = -np.inf
    scores[0, 0] = unary[0] + table[3, :3]
    scores[1:] = table[:3, :3] + unary[1:, None, :]
    scores[3] += table[:3, 3]
    assert Chain(scores).log_partition() == pytest.approx(log_z)
    propagate(model.sentence, model.shape, model.potentials, graph, False, False, False, 1, 0.0)
    assert bethe(model.sentence, model.shape, model.potentials, graph, False, False, False) == pytest.approx(log_z)


@pytest.mark.parametrize("scale", [30.0, 300.0, 1000.0])
def test_chains_of_extreme_scores_are_exact(scale):
    """Scores so far apart that sums in probabilities vanish: what a word hears is found in logarithms."""
    for seed in range(8):
        model = Model(5, (3,), seed=seed, scale=scale)
        graph = model.graph(links=False)
        table = np.log(model.potentials[:16]).reshape(4, 4)  # which are bounded
        unary = graph.totals[1:].reshape(5, 3)
        chain = Chain.factored(unary, table[:3, :3], table[3, :3], table[:3, 3])
        propagate(model.sentence, model.shape, model.potentials, graph, False, False, False, 1, 0.0)
        found = bethe(model.sentence, model.shape, model.potentials, graph, False, False, False)
        assert found == pytest.approx(chain.log_partition(), rel=1e-11)
        tags, _, _ = model.beliefs(iterations=1, links=False, tolerance=0.0)
        assert tags[1:].reshape(5, 3) == pytest.approx(chain.node_marginals(), abs=1e-8)


@pytest.mark.parametrize("single", [False, True])
def test_clamped_tags_give_the_exact_edge_factored_parser(single):
    free = Model(4, (2, 3), seed=1)
    model = Model(4, (2, 3), seed=1, allowed=clamped(free.gold, free.schema), single=single)
    graph = model.graph()
    assert len(graph.head) == 0  # nothing but links and the tree is left
    _, chances, took = model.beliefs(iterations=1, tolerance=0.0)
    trees = SpanningTree(graph.link_totals, single_root=single)
    assert took == 1 and chances == pytest.approx(trees.marginals(), **EXACT)
    _, expected, log_z = model.enumerate()
    assert chances == pytest.approx(expected, **EXACT)
    propagate(model.sentence, model.shape, model.potentials, graph, True, False, single, 1, 0.0)
    found = bethe(model.sentence, model.shape, model.potentials, graph, True, False, single)
    assert found == pytest.approx(log_z)


def test_clamping_is_the_same_as_scoring_with_those_tags():
    """Given the tags, a joint model is the parser of a pipeline with the same weights."""
    free = Model(3, (2, 3), seed=5)
    held = Model(3, (2, 3), seed=5, allowed=clamped(free.gold, free.schema))
    held.table, held.shape, held.weights = free.table, free.shape, free.weights
    chosen = tuple(free.sentence.starts[:-1] + free.sentence.gold)
    odds = free.link_scores(free.graph(), chosen)
    off = ~np.isinf(odds)
    assert held.graph().link_totals[off] == pytest.approx(odds[off], **EXACT)


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=8, deadline=None)
def test_beliefs_are_those_of_a_factor_graph(seed, single):
    model = Model(3, (2, 2, 3), seed=seed, scale=0.7, links=0.7, single=single)
    g, links, tags = model.factor_graph()
    reference = g.run(iterations=500, tolerance=1e-13)
    found, chances, took = model.beliefs(iterations=500)
    if not reference.report.converged or took == 500:
        return
    assert chances[:, 1:] == pytest.approx(reference.probabilities(links)[:, 1:], rel=0, abs=1e-8)
    s, n_attributes = model.sentence, len(model.shape.sizes)
    for a in range(n_attributes):
        expected = reference.probabilities(tags[a])
        for i in range(1, 4):
            x = i * n_attributes + a
            assert found[s.starts[x] : s.starts[x + 1]] == pytest.approx(expected[i - 1], rel=0, abs=1e-8)
    graph = model.graph()
    propagate(s, model.shape, model.potentials, graph, True, False, single, 500, 1e-13)
    value = bethe(s, model.shape, model.potentials, graph, True, False, single)
    assert value == pytest.approx(g.log_partition(), rel=0, abs=1e-6)


def test_beliefs_are_close_to_enumeration_and_exact_without_tags_of_links():
    worst = 0.0
    for seed in range(6):
        model = Model(2 + seed % 2, (2, 2), seed=seed, scale=0.5)
        tags, chances, _ = model.beliefs()
        expected, links, _ = model.enumerate()
        worst = max(worst, np.abs(tags - expected).max(), np.abs(chances - links).max())
    assert 1e-9 < worst < 0.03  # loops are there, and do not matter much
    plain = Model(3, (2,), seed=1, links=0.0)
    tags, chances, _ = plain.beliefs(iterations=2, tolerance=0.0)
    expected, links, _ = plain.enumerate()
    assert tags == pytest.approx(expected, **EXACT) and chances == pytest.approx(links, **EXACT)


def test_links_that_do_not_see_tags_leave_tags_alone():
    model = Model(3, (2, 3), seed=2)
    graph = model.graph()
    start, zero = model.shape.link_start, model.weights.copy()
    for f in range(len(graph.head)):
        graph.scores[graph.cells[f] : graph.cells[f + 1]] = 0.0
    from isogloss.tasks.parse.joint._numba.features import list_words, see_link, workspace

    zero[start:] = 0.0
    templates, fired = model.shape.templates, np.empty(99, np.uint32)
    work = workspace(templates)
    for c in range(1, 4):
        for h in range(4):
            if h != c:
                see_link(templates, model.sentence, h, c, work)
                count = list_words(model.shape.table, templates.families, templates.tried, work, fired, 0)
                for place in fired[:count].tolist():
                    zero[start + place] = model.weights[start + place]
    assert np.count_nonzero(zero[start:]) > 20
    model.weights = zero
    tags, chances, _ = model.beliefs(iterations=50)
    alone, _, _ = model.beliefs(iterations=50, links=False)
    assert tags == pytest.approx(alone, **EXACT)
    assert chances == pytest.approx(SpanningTree(model.graph().link_totals + _link_part(model)).marginals(), abs=1e-9)


def _link_part(model):
    """What constant tables add: nothing, as all of their weights are zero."""
    assert not model.graph().scores.any()
    return 0.0


@pytest.mark.parametrize(("values", "links", "clamp"), [((3,), False, False), ((2, 3), True, True)])
def test_gradient_of_exact_cases_is_that_of_the_likelihood(values, links, clamp):
    free = Model(3, values, seed=4, scale=0.5)
    model = Model(3, values, seed=4, scale=0.5, allowed=clamped(free.gold, free.schema) if clamp else None)
    found = model.dense(*model.gradient(links, iterations=3)[:2])
    rng = np.random.default_rng(0)
    start = model.weights.copy()
    for place in [*rng.choice(np.flatnonzero(found), 12), 0]:
        sides = []
        for way in (1e-5, -1e-5):
            model.weights = start.copy()
            model.weights[place] += way
            graph = model.graph(links)
            score = gold_score(model.sentence, model.shape, model.weights, model.potentials, graph, links)
            sides.append(score - model.enumerate(links)[2])
        assert found[place] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-5)


def test_gradient_of_the_whole_model_is_that_of_bethes_likelihood():
    model = Model(3, (2, 3), seed=6, scale=0.6)
    places, values, before = model.gradient()
    found, start = model.dense(places, values), model.weights.copy()
    assert before < 0
    for place in np.random.default_rng(1).choice(np.flatnonzero(np.abs(found) > 1e-3), 12):
        sides = []
        for way in (1e-5, -1e-5):
            model.weights = start.copy()
            model.weights[place] += way
            sides.append(model.gradient()[2])
        assert found[place] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=2e-5)


@pytest.mark.parametrize("scale", [0.0, 30.0, 300.0])
def test_extreme_weights_give_numbers(scale):
    model = Model(4, (2, 3), seed=7, scale=scale)
    for projective in (False, True):
        tags, chances, _ = model.beliefs(iterations=5, projective=projective, tolerance=0.0)
        assert np.isfinite(tags).all() and np.isfinite(chances).all()
        assert chances[:, 1:].sum(axis=0) == pytest.approx(np.ones(4))


# --- the parser


def toy(count=12):
    """Adjectives agree with their nouns in case; endings of nouns do not show it, and verbs take an object."""
    rng = np.random.default_rng(0)
    sentences = []
    for _ in range(count):
        verb, noun, adjective = rng.choice(["vidit", "amat"]), rng.choice(["rex", "dux"]), rng.choice(["bon", "mal"])
        case = rng.choice(["Nom", "Acc"])
        sentences.append(
            [
                (str(adjective) + {"Nom": "us", "Acc": "um"}[str(case)], "ADJ", 2, "amod", "_", "_", f"Case={case}"),
                (str(noun), "NOUN", 3, "dep", "_", "_", f"Case={case}"),
                (str(verb), "VERB", 0, "root", "_", "_", "Mood=Ind"),
            ]
        )
    return Treebank.of(sentences)


@pytest.fixture(scope="module")
def fitted():
    return JointMorphologyParser(iterations=6, tag_iterations=4, threads=1).fit(toy(30))


def test_agreement_is_learnt_and_the_likelihood_rises(fitted):
    assert fitted.trace_[-1] > fitted.trace_[0]
    test = toy(10)
    found = fitted.predict(test)
    assert (found.heads == test.heads).all()
    scores = fitted.score(test)
    assert scores["uas"] == 100 and scores["attributes"]["Case"]["non_null"] == 100
    assert set(found.strings("deprel", 0)) == {"_"}


def test_trees_are_the_best_under_beliefs(fitted):
    mixed = Treebank.of([[("rex",), ("bonum",), ("amat",)], [("dux",)], [("malus",), ("malus",), ("dux",), ("vidit",)]])
    found, links = fitted.predict(mixed), fitted.predict_proba(mixed).links
    for s in range(len(mixed)):
        heads = found.heads[mixed.offsets[s] : mixed.offsets[s + 1]]
        n = len(heads)
        trees = [sum(links[s][h, c] for c, h in enumerate(tree, 1)) for tree in all_trees(n, single=True)]
        assert sum(links[s][h, c] for c, h in enumerate(heads, 1)) == pytest.approx(max(trees))
        assert reaches_root(heads.tolist(), n)
    assert found.heads[mixed.offsets[1]] == 0  # one word: the root


def test_posteriors_add_up(fitted):
    given = fitted.predict_proba(toy(4))
    assert list(given.tags) == ["upos", "Case", "Mood"] and set(given.tags) == set(fitted.values_)
    for name, chances in given.tags.items():
        assert chances.sum(axis=1) == pytest.approx(np.ones(12)), name
    assert given.links[0][:, 1:].sum(axis=0) == pytest.approx(np.ones(3))


def test_saved_parsers_are_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "joint")
    again = JointMorphologyParser.load(tmp_path / "joint")
    assert again.options_ == fitted.options_ and again.trace_.tolist() == fitted.trace_.tolist()
    test = toy(8)
    assert again.predict(test).to_bytes() == fitted.predict(test).to_bytes()
    (tmp_path / "joint" / "model.json").write_text("{}")
    with pytest.raises(ModelError, match="joint"):
        JointMorphologyParser.load(tmp_path / "joint")


def test_a_tagger_can_be_taken_over(fitted):
    options = {"iterations": 2, "tag_iterations": 2, "threads": 1}
    first = JointMorphologyParser(joint=False, **options).fit(toy(15))
    second = JointMorphologyParser(**options).fit(toy(15), like=first)
    alone = JointMorphologyParser(**options).fit(toy(15))
    assert np.array_equal(second._fitted.weights, alone._fitted.weights)
    with pytest.raises(UsageError, match="other sentences"):
        JointMorphologyParser(**options).fit(toy(16), like=first)


def test_heads_may_govern_and_taggers_may_have_a_say():
    for options in ({"government": True}, {"stack": 1.0}, {"prune": 0.0}):
        parser = JointMorphologyParser(iterations=3, tag_iterations=3, threads=1, **options).fit(toy(20))
        assert parser.score(toy(10))["uas"] == 100


def test_threads_do_not_matter():
    one, two = (JointMorphologyParser(iterations=2, tag_iterations=2, threads=k).fit(toy(15)) for k in (1, 2))
    assert np.array_equal(one._fitted.weights, two._fitted.weights)
    assert np.array_equal(one._fitted.tagger, two._fitted.tagger)


@pytest.mark.parametrize("options", [{"joint": False}, {"joint": False, "tags": "gold"}, {"projective": True}])
def test_other_kinds(options):
    parser = JointMorphologyParser(iterations=4, tag_iterations=4, threads=1, **options).fit(toy(20), dev=toy(5))
    assert parser.score(toy(10))["uas"] == 100 and len(parser.tuning_) == 4


def test_text_and_edges(fitted):
    parsed = fitted.predict(Text.of([["bonus", "rex", "amat"], [], ["rex"]]))
    assert len(parsed) == 3 and parsed.heads.tolist() == [2, 3, 0, 0]
    assert len(fitted.predict(Treebank.of([]))) == 0
    unseen = fitted.predict(Treebank.of([[("ignotum",), ("verbum",)]]), confidence=True)
    assert "Confidence=" in unseen.strings("misc", 0)[0]
    long = Treebank.of([[("bonus",), ("rex",), ("amat",)] * 40])
    assert (fitted.predict(long).heads == 0).sum() == 1


def test_attributes_can_be_chosen_and_may_be_absent():
    parser = JointMorphologyParser(["Case", "Gender"], iterations=2, tag_iterations=2, threads=1).fit(toy(10))
    assert list(parser.values_) == ["upos", "Case"]
    bare = Treebank.of([[("a", "X", 2), ("b", "Y", 0)]] * 4)
    assert JointMorphologyParser(iterations=2, tag_iterations=2, threads=1).fit(bare).score(bare)["uas"] == 100


# --- dictionaries


def test_dictionaries_never_forbid_what_is_right():
    trees = toy(20)
    schema = Schema.of(trees)
    lexicon = AnalysisDictionary.of_treebank(trees, 5)
    allowed, gold = lexicon.allowed(trees, schema), schema.numbers(trees)
    rows = np.arange(trees.n_words)[:, None]
    assert allowed[rows, schema.starts[:-1] + gold].all()
    unseen = lexicon.allowed(Treebank.of([[("ignotus",)]]), schema)
    assert unseen.all()
    wrong = AnalysisDictionary({"rex": [("VERB", "_")]})
    assert not wrong.allowed(trees, schema)[rows, schema.starts[:-1] + gold].all()
    more = wrong.with_treebank(trees)
    assert more.allowed(trees, schema)[rows, schema.starts[:-1] + gold].all() and ("VERB", "_") in more["rex"]


def test_one_analysis_is_certain():
    lexicon = {"novum": [("NOUN", "Case=Acc")], "nihil": []}
    parser = JointMorphologyParser(iterations=2, tag_iterations=2, dictionary=lexicon, threads=1).fit(toy(10))
    given = parser.predict_proba(Treebank.of([[("novum",), ("nihil",), ("amat",)]]))
    case = parser.values_["Case"].index("Acc")
    assert given.tags["Case"][0, case] == pytest.approx(1.0)
    assert given.tags["upos"][0, parser.values_["upos"].index("NOUN")] == pytest.approx(1.0)
    assert given.tags["upos"][1].max() < 1.0  # not listed: any


def test_threshold_of_words_seen():
    trees = Treebank.of([[("a", "X", 0)]] * 5 + [[("b", "Y", 0)]] * 4)
    lexicon = AnalysisDictionary.of_treebank(trees, 5)
    assert "a" in lexicon and "b" not in lexicon
    parser = JointMorphologyParser(iterations=2, tag_iterations=2, dictionary="train", threads=1).fit(trees)
    assert parser.predict_proba(Treebank.of([[("a",)]])).tags["upos"][0].tolist() == [1.0, 0.0]


# --- what cannot be


def test_wrong_options_and_data_are_named():
    for options in ({"rate": 0}, {"iterations": 0}, {"prune": 1.0}, {"tags": "gold"}, {"dictionary": "none"}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            JointMorphologyParser(**options).check_params()
    with pytest.raises(ParameterError, match="pairs"):
        AnalysisDictionary({"a": ["NOUN"]})
    with pytest.raises(UsageError, match="fit"):
        JointMorphologyParser().predict(toy(1))
    with pytest.raises(TreebankError, match="nothing to learn"):
        JointMorphologyParser(iterations=1, tag_iterations=1).fit(Treebank.of([[("a", "X")]] * 3))
    with pytest.raises(TreebankError, match="nothing to learn"):
        JointMorphologyParser().fit(Treebank.of([]))
    with pytest.raises(TreebankError):
        JointMorphologyParser(iterations=1).fit(Treebank.of([[("a", "X", 2), ("b", "X", 1)]]))


def test_schema_round_trip():
    trees = Treebank.of(
        [[{"form": "a", "upos": "X", "feats": "B=1|C=2"}, {"form": "b", "upos": "Y", "feats": "Foreign"}]]
    )
    schema = Schema.of(trees)
    upos, feats = schema.columns(schema.numbers(trees))
    assert trees.with_columns(upos=upos, feats=feats).to_bytes() == trees.to_bytes()
    assert schema.numbers(trees.with_columns(upos=["Z", "Y"], feats=["B=9", "_"])).tolist() == [
        [-1, -1, 0, 0],
        [1, 0, 0, 0],
    ]


def test_scores_of_attributes():
    gold = toy(2)
    assert attribute_scores(gold, gold, ["Case"]) == {"Case": {"all": 100.0, "non_null": 100.0}}


@pytest.mark.skipif(not (DATA / "la-proiel").exists(), reason="no treebanks here")
def test_latin_is_learnt():
    trees = Treebank.read(DATA / "la-proiel" / "dev.conllu.gz")
    parser = JointMorphologyParser(["Case", "Number"], iterations=2, tag_iterations=2, threads=1).fit(
        trees.part(0, 150)
    )
    scores = parser.score(trees.part(150, 200))
    assert scores["uas"] > 40 and scores["upos"] > 70


# --- the command line -------------------------------------------------------------------------------------------------


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from isogloss import cli, samples

    train, model, words, out = (tmp_path / name for name in ("train.conllu", "model", "words.tsv", "out.conllu"))
    train.write_text(samples.trees("en-de", "target"), encoding="utf-8")
    words.write_text("# from a dictionary\nFrau\tNOUN\t_\nliest\tVERB\n", encoding="utf-8")
    asked = ["parse", "train-joint", str(train), "--save", str(model), "--dictionary", str(words), "--iterations", "2"]
    assert cli.main(asked) == 0
    assert "upos and trees" in capsys.readouterr().err
    (tmp_path / "plain.txt").write_text("Die Frau liest ein Buch .\n", encoding="utf-8")
    assert cli.main(["parse", "apply", str(model), str(tmp_path / "plain.txt"), "-o", str(out), "-q"]) == 0
    found = Treebank.read(out)
    assert found.strings("upos", 0)[:3] == ("DET", "NOUN", "VERB") and found.heads.tolist() == [2, 3, 0, 5, 3, 3]


@pytest.mark.parametrize(("text", "finding"), [("Frau NOUN\n", "line 1"), ("\n", "no word"), ("Fra\xfc\n", "UTF-8")])
def test_dictionaries_that_cannot_be_read_are_named(tmp_path: Path, text: str, finding: str) -> None:
    (tmp_path / "words.tsv").write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=rf"words\.tsv.*{finding}"):
        AnalysisDictionary.read(tmp_path / "words.tsv")


# --- keys of links ----------------------------------------------------------------------------------------------------


def slow_link_keys(sentence, family, head, child, **tags):
    """Keys of the templates of a family on a link, from their names."""
    way = 3 if head == 0 else 1 if head < child else 2
    far = abs(head - child)
    length = 0 if head == 0 else far if far <= 4 else 5 if far <= 10 else 6
    seen = {"direction": way, "shape": 8 * way + length, **tags}
    for role, node in (("head", head), ("child", child)):
        seen |= {f"{role}.word": int(sentence.words[node]), f"{role}.prefix": int(sentence.prefixes[node])}
        for shift, name in ((-1, "fixed[-1]"), (0, "fixed"), (1, "fixed[+1]")):
            seen[f"{role}.{name}"] = int(sentence.context[node + 1 + shift]) + 1
    keys = []
    for name in FAMILIES[family]:
        total = int.from_bytes(hashlib.blake2b(f"{family}: {name}".encode(), digest_size=8).digest(), "little")
        total += sum(seen[term] * factor_of(place) for place, term in enumerate(name.split(" & ")))
        code = mix(total & (2**64 - 1))
        keys.append(code if code >> 32 else code | 1 << 32)
    return keys


def test_keys_of_links_are_those_of_the_named_templates():
    from isogloss.tasks.parse.joint._numba import features as kernels

    model = Model(4, (3, 4), seed=8)
    sentence, templates = model.sentence, model.shape.templates
    work, walked = kernels.workspace(templates), (templates.families, templates.tried)
    for head, child in [(0, 2), (1, 2), (4, 1), (1, 4)]:
        kernels.see_link(templates, sentence, head, child, work)
        count, plain = kernels.word_keys(*walked, work)
        words = slow_link_keys(sentence, "words", head, child)
        assert work[kernels.KEYS, :count].tolist() == words and plain == 1
        between = sorted({int(sentence.context[k + 1]) for k in range(min(head, child) + 1, max(head, child))})
        count, plain = kernels.pos_keys(*walked, 2, 1, work)
        own = {"head.tag": 2, "child.tag": 1}
        wanted = slow_link_keys(sentence, "tags", head, child, **own)
        for tag in between:
            wanted += slow_link_keys(sentence, "between", head, child, **own, between=tag)
        assert plain == len(wanted)
        assert work[kernels.KEYS, :count].tolist() == wanted + slow_link_keys(
            sentence, "tags and words", head, child, **own
        )
        for v, family in ((0, "government"), (3, "agreement"), (1, "agreement")):
            count, plain = kernels.morph_keys(*walked, 1, v, 3, work)
            own = {"attribute": 1, "head.value": v, "child.value": 3, "agreement": int(v == 3)}
            assert work[kernels.KEYS, :count].tolist() == slow_link_keys(sentence, family, head, child, **own)
            assert plain == (2 if family == "government" else count)


@pytest.mark.parametrize("government", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_features_that_fire_have_room_and_add_up_to_scores(seed, government):
    rng = np.random.default_rng(seed)
    sizes = (3, 3, 2)
    allowed = rng.random((7, sum(sizes))) < (0.0 if seed == 0 else 0.5)  # seed 0: one value each, so all is constant
    for a, start in enumerate(np.cumsum([0, *sizes[:-1]])):
        allowed[np.arange(7), start + rng.integers(0, sizes[a], 7)] = True
    model = Model(7, sizes, seed=seed, allowed=allowed)
    table = link_table([model.sentence], len(sizes), 10, government)
    shape, size = shape_of(model.schema, len(model.features), table, government)
    weights = rng.normal(size=size)
    graph = build(model.sentence, shape, weights, True)
    used = int(np.flatnonzero(np.diff(graph.fired_ends, append=0) < 0).max(initial=0))  # lists beyond are not filled
    assert 0 < graph.fired_ends.max() == graph.fired_ends[used] <= len(graph.fired)
    assert graph.fired[: graph.fired_ends[used]].max() < len(table.payload)
    firsts = sorted((int(graph.fired_first[h, c]), h, c) for c in range(1, 8) for h in range(8) if h != c)
    bounds = [first for first, _, _ in firsts] + [used]
    for (first, h, c), last in zip(firsts, bounds[1:], strict=True):
        fired = graph.fired[graph.fired_ends[first] : graph.fired_ends[last]]
        scores = graph.link_totals[h, c]
        for f in np.flatnonzero((graph.head == h) & (graph.child == c)):
            scores += graph.scores[graph.cells[f] : graph.cells[f + 1]].sum()
        assert scores == pytest.approx(weights[shape.link_start + fired].sum(), **EXACT)


def test_tags_are_seen_by_the_word_its_suffixes_short_prefixes_and_shape():
    found = _own_features("Kutya")
    assert found[:2] == ["wkutya", "bias"]
    assert found[2:] == ["sa", "sya", "stya", "sutya", "skutya", "pk", "pku", "pkut", "pkuty", "hA"]
    assert _own_features("15-ös")[-1] == "h1-" and _own_features(",") == ["w,", "bias", "s,", "h."]


def test_words_of_wrong_links_have_weights_up_to_the_reach():
    sentence = Model(5, (2,)).sentence
    sizes = [len(link_table([sentence], 1, reach).payload) for reach in (0, 1, 2, 9)]
    assert sizes[0] < sizes[1] < sizes[2] < sizes[3]


def test_taggers_of_the_training_text_have_not_seen_its_sentences():
    forms = ["qa", "wb", "ec", "rd", "tf", "yg", "uh", "ij", "ok", "pl"]  # that have no letter in common, and any tag
    trees = Treebank.of([[(form, "NOUN" if i % 2 else "VERB", 0, "root")] for i, form in enumerate(forms)])
    schema, seen = Schema.of(trees), see(trees)
    known = Known(trees, schema, seen, known_features(seen), schema.numbers(trees))
    weights, chances = jackknifed(known, lambda part: None, Settings(20, 0.5, 100.0, 1, 0), QuietProgress())
    right = chances[np.arange(10), known.gold[:, 0]]
    allowed = np.ones((10, 2), bool)
    sentences = sentences_of(trees, seen, known.features, schema, allowed, known.gold[:, 0], known.gold)
    shape, _ = shape_of(schema, len(known.features))
    whole = [tags[1 + gold] for (tags, _, _), gold in zip(
        all_beliefs(sentences, shape, weights, TAGGING), known.gold[:, 0].tolist(), strict=True
    )]  # fmt: skip
    assert min(whole) > 0.8 and right.max() < 0.6


def test_an_interrupted_parser_goes_on_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"iterations": 3, "tag_iterations": 2, "threads": 1}
    whole = JointMorphologyParser(**options).fit(toy(20), toy(5))
    before, calls = Tuned.step, []

    def stopping(self, state):
        calls.append(state.iteration)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return before(self, state)

    monkeypatch.setattr(Tuned, "step", stopping)
    with pytest.raises(Interrupted, match="keeps iteration 2 of 3"):
        JointMorphologyParser(**options).fit(toy(20), toy(5), checkpoint=tmp_path / "c")
    resumed = JointMorphologyParser(**options).fit(toy(20), toy(5), checkpoint=tmp_path / "c", resume=True)
    assert calls == [0, 1, 2] and np.array_equal(resumed.trace_, whole.trace_)
    for name, parser in (("whole", whole), ("resumed", resumed)):
        parser.save(tmp_path / name)
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "resumed"))
    assert one == two
