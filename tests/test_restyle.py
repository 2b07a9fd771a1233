"""Style adaptation: exact, a copy where nothing changes, and quick to learn what does."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.quality import restyle

from isogloss.cli import main
from isogloss.data.formats import IsoglossWarning
from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError, TreebankError, UsageError
from isogloss.features import Templates
from isogloss.tasks.parse import DependencyParser, StyleAdapter
from isogloss.tasks.parse.configurations import CONFIGURATIONS
from isogloss.tasks.parse.inference import Shape
from isogloss.tasks.parse.restyling import (
    Edits,
    LabelLesson,
    LinkLesson,
    OldTrees,
    choose,
    given_relations,
    link_templates,
    trees_of,
)
from isogloss.tasks.parse.styles import Style, convert
from isogloss.tasks.parse.words import columns_of

NOUNS, VERBS = ("cats", "dogs", "Rome", "Bonn", "books", "women"), ("see", "like", "read", "want")


def sentence(rng: random.Random) -> list[tuple[str, str, int, str]]:
    """Somebody sees something, with phrases in the dark and in other places, some of them joined."""
    words: list[list] = []

    def noun(head: list | None, relation: str, preposition: str, depth: int) -> list:
        marks = [[preposition, "ADP", None, "case"]] if preposition else []
        own = [rng.choice(NOUNS), "NOUN", head, relation]
        for mark in marks:
            mark[2] = own
        words.extend([*marks, own])
        if depth and rng.random() < 0.4:
            noun(own, "nmod", rng.choice(("of", "in")), depth - 1)
        if depth and rng.random() < 0.4:
            joined = ["and", "CCONJ", None, "cc"]
            words.append(joined)
            joined[2] = noun(own, "conj", preposition if rng.random() < 0.5 else "", 0)
        return own

    verb = [rng.choice(VERBS), "VERB", None, "root"]
    noun(verb, "nsubj", "", 1)
    words.append(verb)
    noun(verb, "obj", "", 1)
    if rng.random() < 0.6:
        noun(verb, "obl", rng.choice(("with", "in")), 1)
    words.append([".", "PUNCT", verb, "punct"])
    places = {id(word): i for i, word in enumerate(words, 1)}
    return [(form, tag, places[id(head)] if head else 0, relation) for form, tag, head, relation in words]


TREES = Treebank.of([sentence(random.Random(seed)) for seed in range(50)])
NEW = convert(TREES, "prague", "head")
FEW, REST = slice(0, 20), slice(20, len(TREES))


def same(a: Treebank, b: Treebank) -> bool:
    return np.array_equal(a.heads, b.heads) and all(
        a.strings("deprel", s) == b.strings("deprel", s) for s in range(len(a))
    )


@pytest.fixture(scope="module")
def parser() -> DependencyParser:
    return DependencyParser(order=1, iterations=3, threads=1).fit(TREES)


@pytest.fixture(scope="module")
def adapter() -> StyleAdapter:
    return StyleAdapter(threads=1).fit(NEW[FEW], TREES[FEW])


# --- the model, by another road


SMALL = Treebank.of([
    [("in", "ADP", 2, "case"), ("Rome", "PROPN", 3, "obl"), ("lives", "VERB", 0, "root")],
    [("she", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root")],
    [("Yes", "INTJ", 0, "root")],
])  # fmt: skip


def all_trees(n: int) -> list[tuple[int, ...]]:
    """Heads of all trees of n words with one root."""
    found = []
    for heads in itertools.product(range(n + 1), repeat=n):
        ups = [word for word in range(1, n + 1) if _reaches_root(heads, word)]
        if len(ups) == n and heads.count(0) == 1:
            found.append(heads)
    return found


def _reaches_root(heads: tuple[int, ...], word: int) -> bool:
    for _ in heads:
        word = heads[word - 1]
        if word == 0:
            return True
    return False


def test_sums_are_those_over_all_trees():
    old = OldTrees(SMALL, columns_of(SMALL))
    templates, shape = Templates(link_templates(relations=True)), Shape("tree", single_root=True)
    lesson = LinkLesson(old, SMALL.heads, shape, templates, 5)
    sentences = np.arange(3)
    (learnt,) = lesson.learn(sentences, [0.1])
    rng = np.random.default_rng(0)
    learnt = learnt._replace(weights=rng.normal(size=len(learnt.weights)))
    layout, parts = old.links(sentences)
    scores = templates.matrix(parts, learnt.numbering).scores(learnt.weights)
    loss = 0.0
    found = trees_of(old, sentences, templates, learnt, shape)
    for s, gold in enumerate([(2, 3, 0), (2, 0), (0,)]):
        own = slice(layout.link_offsets[s], layout.link_offsets[s + 1])
        of = dict(
            zip(zip(layout.head[own].tolist(), layout.child[own].tolist(), strict=True), scores[own], strict=True)
        )
        total = {heads: sum(of[head, i] for i, head in enumerate(heads, 1)) for heads in all_trees(len(gold))}
        log_z = np.logaddexp.reduce(list(total.values()))
        assert found.log_partition()[s] == pytest.approx(log_z)
        loss += log_z - total[gold]
    assert lesson.loss(sentences, learnt) == pytest.approx(loss)


def test_an_unknown_head_may_be_any():
    old = OldTrees(SMALL, columns_of(SMALL))
    templates, shape = Templates(["configuration", "head.tag & child.tag"]), Shape("tree", single_root=True)
    heads = SMALL.heads.copy()
    heads[0] = -1
    (learnt,) = LinkLesson(old, SMALL.heads, shape, templates, 5).learn(np.arange(3), [1.0])
    known = [LinkLesson(old, np.r_[head, SMALL.heads[1:]].astype(np.int32), shape, templates, 5) for head in (2, 3)]
    sums = [np.exp(-lesson.loss(np.arange(3), learnt)) for lesson in known]
    partial = LinkLesson(old, heads, shape, templates, 5).loss(np.arange(3), learnt)
    assert np.exp(-partial) == pytest.approx(sum(sums))


def test_links_see_their_configurations_and_columns():
    old = OldTrees(SMALL, columns_of(SMALL))
    layout, parts = old.links(np.arange(3))
    names = [CONFIGURATIONS[c] for c in parts.columns["configuration"].tolist()]
    found = dict(zip(zip(layout.head.tolist(), layout.child.tolist(), strict=True), names, strict=True))
    assert found[3, 2] == "parent-child" and found[1, 2] == "child-parent" and found[3, 1] == "grandparent"
    words = [parts.roles["head"].at.tolist(), parts.roles["child"].at.tolist()]
    assert words[0][:3] == [0, 2, 3] and words[1][:3] == [1, 1, 1]  # the root and the words but for the child itself


def test_a_piece_of_a_sentence_has_no_heads_outside():
    pieces = np.array([0, 2, 3, 5, 6])
    assert OldTrees(SMALL, columns_of(SMALL), pieces).heads.tolist() == [2, 0, 0, 2, 0, 0]


def test_penalties_are_chosen_on_trees_that_were_left_out():
    old = OldTrees(TREES[FEW], columns_of(TREES))
    lesson = LinkLesson(old, NEW[FEW].heads, Shape("tree"), Templates(link_templates(relations=False)), 30)
    l2, losses = choose(lesson, np.arange(20), 3, 0)
    assert l2 in (1.0, 0.3, 0.1, 0.03) and (losses > 0).all()
    assert choose(lesson, np.arange(1), 3, 0)[0] == 0.3


# --- relations

RELATIONS = st.sampled_from(["_", "obj", "obj:co", "nmod:poss", "case", "coord:cc", "coord:cc:co", "comp:aux:pass"])


@given(RELATIONS.filter(lambda name: name != "_"), st.tuples(RELATIONS, RELATIONS, RELATIONS))
def test_a_change_makes_the_relation_it_was_made_of(relation, given):
    name = Edits.label_of(relation, given)
    assert Edits([name]).applied(given) == [relation]


def test_changes_that_cannot_be_made():
    edits = Edits(["own -co +", "above - +co", "= case"])
    assert edits.applied(("obj", "_", "_")) == ["", "", "case"]
    with pytest.raises(ValueError, match="no change"):
        Edits(["under - +"])


def test_old_relations_of_a_word_its_head_and_above():
    assert given_relations(SMALL)[:3] == [("case", "obl", "root"), ("obl", "root", "_"), ("root", "_", "_")]


def test_relations_are_learnt_by_likelihood():
    old = OldTrees(SMALL, columns_of(SMALL))
    labels = np.array([0, 1, 0, -1, 0, 0])
    lesson = LabelLesson(old, SMALL.heads, labels, 2, Templates(["child.tag"]), 50)
    (learnt,) = lesson.learn(np.arange(3), [1e-6])
    assert lesson.loss(np.arange(3), learnt) < 0.01
    zero = learnt._replace(weights=np.zeros_like(learnt.weights))
    assert lesson.loss(np.arange(3), zero) == pytest.approx(5 * np.log(2))


# --- what users see


def test_a_style_is_learnt_from_few_trees(adapter):
    before = np.mean(TREES[REST].heads == NEW[REST].heads)
    found = adapter.score(NEW[REST], TREES[REST])
    assert before < 0.9 and found.uas > 95 and found.las > 93


def test_the_same_style_is_copied():
    same_style = StyleAdapter(threads=1).fit(TREES[FEW], TREES[FEW])
    assert same(same_style.predict(TREES[REST]), TREES[REST])


def test_without_trees_old_ones_are_given_back(parser):
    none = Treebank.of([])
    assert same(StyleAdapter().fit(none, none).predict(NEW), NEW)
    carried = StyleAdapter(threads=1).fit(none, parser)
    assert same(carried.predict(TREES), parser.predict(TREES)) and carried.n_features_ == 0 and carried.l2_ == 0
    assert np.array_equal(carried.predict_proba(TREES).values, parser.predict_proba(TREES).values)
    ones = StyleAdapter().fit(none, none).predict_proba(TREES)
    assert ones.values.sum() == TREES.n_words and ones[0][TREES.heads[0], 1] == 1
    assert carried.predict(TREES[:2], confidence=True).strings("misc", 0)[0].find("Confidence=") >= 0


def test_a_parser_is_carried_along(parser, tmp_path):
    adapter = StyleAdapter(threads=1).fit(NEW[FEW], parser)
    assert adapter.parser_ is parser and adapter.score(NEW[REST]).uas > np.mean(TREES[REST].heads == NEW[REST].heads)
    adapter.save(tmp_path / "model")
    again = StyleAdapter.load(tmp_path / "model")
    bare = TREES[REST].with_columns(heads=np.full(TREES[REST].n_words, -1, np.int32))
    assert same(again.predict(bare), adapter.predict(TREES[REST]))


def test_configurations_alone_learn_too():
    plain = StyleAdapter(relations=False, threads=1).fit(NEW[FEW], TREES[FEW])
    assert plain.score(NEW[REST], TREES[REST]).uas > 90
    assert plain.n_features_ < StyleAdapter(l2=0.1, threads=1).fit(NEW[FEW], TREES[FEW]).n_features_


def test_posteriors_and_confidence(adapter):
    found = adapter.predict_proba(TREES[REST])
    for matrix in found:
        assert np.allclose(matrix[:, 1:].sum(axis=0), 1)
    shown = adapter.predict(TREES[REST], confidence=True)
    head = int(shown.heads[0])
    assert shown.strings("misc", 0)[0].endswith(f"Confidence={found[0][head, 1]:.4f}")


def test_long_sentences_are_cut(adapter):
    words = [(f"w{i}", "NOUN", 0 if i == 0 else i, "root" if i == 0 else "flat") for i in range(600)]
    found = adapter.predict(Treebank.of([words]))
    found.check_trees()
    assert found.n_words == 600


def test_long_sentences_are_not_learnt_from():
    long = Treebank.of([*([word[:4] for word in sentence(random.Random(seed))] for seed in range(3)), [
        (f"w{i}", "NOUN", i, "root" if i == 0 else "flat") for i in range(300)
    ]])  # fmt: skip
    with pytest.warns(IsoglossWarning, match="1 of 4 sentences have more than 250 words"):
        adapter = StyleAdapter(l2=0.1, threads=1).fit(long, long)
    assert same(adapter.predict(long[:3]), long[:3])


def test_text_is_worked_on_in_pieces(adapter, monkeypatch):
    whole = adapter.predict(TREES[REST], confidence=True), adapter.predict_proba(TREES[REST])
    monkeypatch.setattr("isogloss.tasks.parse.inference.CELLS", 500)
    pieces = adapter.predict(TREES[REST], confidence=True), adapter.predict_proba(TREES[REST])
    assert pieces[0].to_bytes() == whole[0].to_bytes()
    assert np.array_equal(pieces[1].values, whole[1].values)


def test_trees_without_relations(tmp_path):
    bare = NEW[FEW].with_columns(deprel=["_"] * NEW[FEW].n_words)
    adapter = StyleAdapter(l2=0.1, threads=1).fit(bare, TREES[FEW])
    adapter.save(tmp_path / "model")
    found = StyleAdapter.load(tmp_path / "model").predict(TREES[REST])
    assert found.strings("deprel", 0) == TREES[REST].strings("deprel", 0) and (found.heads != TREES[REST].heads).any()


def test_what_does_not_fit_is_refused(parser, adapter):
    with pytest.raises(TreebankError, match=r"2 sentences and .* 1: old trees should be of the same sentences"):
        StyleAdapter().fit(NEW[:1], TREES[:2])
    with pytest.raises(TreebankError, match=r"its words in .* are not those in"):
        StyleAdapter().fit(NEW[:1], TREES[1:2])
    with pytest.raises(TreebankError, match="no word has a head, where old trees are wanted"):
        StyleAdapter().fit(NEW[:1], TREES[:1].with_columns(heads=np.full(TREES[:1].n_words, -1)))
    with pytest.raises(TreebankError, match="was given old trees in place of a parser"):
        adapter.predict(TREES[:1].with_columns(heads=np.full(TREES[:1].n_words, -1)))
    with pytest.raises(ParameterError, match="old should be a DependencyParser or a Treebank"):
        StyleAdapter().fit(NEW[:1], 3)
    with pytest.raises(UsageError, match="call fit first"):
        _ = StyleAdapter().parser_


def test_to_a_style_and_back_by_learning(adapter):
    """What was learnt one way can be learnt the other way from the same trees."""
    back = StyleAdapter(threads=1).fit(TREES[FEW], NEW[FEW])
    assert back.score(TREES[REST], NEW[REST]).uas > 95
    assert Style("prague", "head").raised == {"case"}


# --- commands


@pytest.fixture
def files(tmp_path, parser):
    for name, trees in (("few", NEW[FEW]), ("old", TREES[FEW]), ("test", TREES[REST]), ("gold", NEW[REST])):
        (tmp_path / f"{name}.conllu").write_bytes(trees.to_bytes())
    parser.save(tmp_path / "parser")
    return tmp_path


def call(*words) -> int:
    return main([str(word) for word in words])


def test_restyle_with_a_parser_and_apply(files, capsys):
    assert call("parse", "restyle", files / "few.conllu", "--parser", files / "parser", "--save", files / "m") == 0
    assert "from 20 sentences" in capsys.readouterr().err
    assert call("parse", "apply", files / "m", files / "test.conllu", "-o", files / "out.conllu") == 0
    expected = StyleAdapter.load(files / "m").predict(TREES[REST])
    assert same(Treebank.read(files / "out.conllu"), expected)


def test_restyle_with_old_trees_and_apply(files, capsys):
    line = ("parse", "restyle", files / "few.conllu", "--old-trees", files / "old.conllu", "--save", files / "m")
    assert call(*line, "--json", "--l2", "0.1") == 0
    assert '"l2": 0.1' in capsys.readouterr().out
    assert call("parse", "apply", files / "m", files / "test.conllu", "-o", files / "out.conllu") == 0
    assert np.mean(Treebank.read(files / "out.conllu").heads == NEW[REST].heads) > 0.95


def test_restyle_says_what_it_wants(files, capsys):
    few, save = files / "few.conllu", files / "m"
    assert call("parse", "restyle", few, "--save", save) == 2
    assert "give either --parser" in capsys.readouterr().err
    both = ("--parser", files / "parser", "--old-trees", files / "old.conllu")
    assert call("parse", "restyle", few, "--save", save, *both) == 2
    assert call("parse", "restyle", few, "--old-trees", files / "old.conllu", "--save", save, "--quiet") == 0
    assert call("parse", "restyle", few, "--parser", save, "--save", files / "n") == 2
    assert "kind parse.restyled, where one by `isogloss parse train` is wanted" in capsys.readouterr().err


# --- what was measured


def test_rows_show_what_adaptation_should_show():
    """Check 2 of the specification: 0 < 10 < 100 between styles, gold trees 95 or more, no gain within a style.

    Parsed trees rise from 10 to 100 in the mean over pairs of styles: of single pairs, one in Greek does not.
    """
    kept = [row for row in restyle.whole() if row["features"] == "paths"]
    assert {row["text"] for row in kept} == set(restyle.TEXTS) and {row["kind"] for row in kept} == set(restyle.KINDS)
    for text, kind in itertools.product(restyle.TEXTS, restyle.KINDS):
        found = []
        for source, target in itertools.product(restyle.STYLES, repeat=2):
            pair = {"text": text, "kind": kind, "source": source, "target": target}
            none, ten, hundred = (restyle.mean(kept, trees=size, **pair) for size in restyle.SIZES)
            if source == target:
                assert max(ten, hundred) <= none, pair
                continue
            assert none < ten and none < hundred, pair
            assert kind == "parse" or (ten < hundred and hundred >= 95), pair
            found.append((ten, hundred))
        assert np.mean([ten for ten, _ in found]) < np.mean([hundred for _, hundred in found])
