"""Ways to adapt a parser to text of another domain; the diagnosis of two treebanks; both from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Call
from isogloss import samples
from isogloss.data import Constituents, Text, Treebank
from isogloss.data.head_rules import dependencies_by_table, heads_by_table
from isogloss.data.joining import join_treebanks
from isogloss.errors import ParameterError, TreebankError
from isogloss.show import diagnosis_page
from isogloss.structures.tree_parts import Candidates
from isogloss.tasks.adapt import diagnose_treebanks
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.adapting import ParserAdaptation
from isogloss.tasks.parse.adapting.bagging import bagged, bags_of, surest
from isogloss.tasks.parse.adapting.classes import brown_view, correspondence_view, markov_view
from isogloss.tasks.parse.adapting.options import METHODS
from isogloss.tasks.parse.adapting.weighting import (
    between_nouns,
    domain_weights,
    feature_scales,
    target_counts,
    word_weights,
)
from isogloss.tasks.parse.scoring import FeatureSet, count_keys
from isogloss.tasks.parse.styles import convert
from isogloss.tasks.parse.words import columns_of, encode

FAST: dict[str, Any] = {"order": 1, "labels": "second", "iterations": 2}


@pytest.fixture(scope="module")
def other() -> Treebank:
    """Text of another domain, with tags and trees."""
    found = Treebank.from_bytes(samples.trees("en-de", "target").encode(), "new.conllu")
    return found.with_columns(form=[f"{word}x" if len(word) > 4 else word for s in found for word in s.words])


def without_trees(trees: Treebank) -> Treebank:
    return trees.with_columns(heads=np.full(trees.n_words, -1), deprel=["_"] * trees.n_words)


# --- every way


@pytest.mark.parametrize("method", METHODS)
def test_every_way_gives_a_parser(trees: Treebank, other: Treebank, method: str, tmp_path: Path) -> None:
    options: dict[str, dict[str, Any]] = {
        "bagging": {"bag_size": 10, "bags": 2}, "stacking": {"folds": 2},
        "correspondence": {"pivot_count": 3, "classes": 4},
        "brown": {"classes": 8}, "markov": {"classes": 8}, "self-training": {"share": 0.5},
    }  # fmt: skip
    trainer = {"trainer": "mira"} if method == "word-weights" else {}
    parsers = []
    for text in (other, without_trees(other)):  # trees of the text are not looked at
        parser = DependencyParser(**FAST, **trainer)
        assert ParserAdaptation(method, **options.get(method, {})).adapt(parser, trees, text) is parser
        parsers.append(parser)
    found = [parser.predict(other).heads for parser in parsers]
    assert np.array_equal(*found) and np.mean(found[0] == other.heads) > 0.6
    parsers[0].save(tmp_path / "model")
    assert np.array_equal(DependencyParser.load(tmp_path / "model").predict(other).heads, found[0])


def test_what_says_nothing_is_refused(trees: Treebank, other: Treebank) -> None:
    plain = Text.of([other.words(s) for s in range(len(other))])
    with pytest.raises(ParameterError, match="losses of words"):
        ParserAdaptation("word-weights").adapt(DependencyParser(**FAST), trees, other)
    with pytest.raises(TreebankError, match="no word has a tag"):
        ParserAdaptation("domain-weights").adapt(DependencyParser(**FAST), trees, plain)
    with pytest.raises(TreebankError, match="no words"):
        ParserAdaptation().adapt(DependencyParser(**FAST), trees, Text.of([]))
    with pytest.raises(ParameterError, match="bags says nothing"):
        ParserAdaptation("brown", bags=7).adapt(DependencyParser(**FAST), trees, other)
    with pytest.raises(ParameterError, match="method should be one of"):
        ParserAdaptation("magic").adapt(DependencyParser(**FAST), trees, other)
    parser = ParserAdaptation("brown", classes=4).adapt(DependencyParser(**FAST), trees, plain)
    assert parser.predict(other).heads.min() >= 0  # classes of words need no tags


def test_a_tagger_tags_plain_text(trees: Treebank, other: Treebank) -> None:
    plain = Text.of([other.words(s) for s in range(len(other))])
    parser = ParserAdaptation("self-training").adapt(DependencyParser(**FAST, tags="predicted"), trees, plain)
    assert parser.predict(plain).heads.min() >= 0


# --- sentences


def test_bags_keep_their_books(trees: Treebank) -> None:
    bags = bags_of(len(trees), 3, 20, seed=5)
    assert [len(bag) for bag in bags] == [20] * 3
    found = bagged(DependencyParser(**FAST), trees, bags)
    assert len(found) == sum(len(trees) - len(set(bag.tolist())) for bag in bags)
    texts = sorted(" ".join(found.words(s)) for s in range(len(found)))
    rest = [k for bag in bags for k in set(range(len(trees))) - set(bag.tolist())]
    assert texts == sorted(" ".join(trees.words(k)) for k in rest)
    many = bags_of(15000, 1, 2000)[0]
    assert len(np.unique(many)) / 15000 == pytest.approx(1 - np.exp(-2000 / 15000), rel=0.02)
    with pytest.raises(ParameterError, match="nothing is left"):
        bagged(DependencyParser(**FAST), trees[:2], [np.array([0, 1])])


def test_the_surest_sentences(trees: Treebank) -> None:
    parser = DependencyParser(**FAST).fit(trees)
    found = surest(parser, trees, 0.25)
    unsure = parser.entropy(trees) / trees.lengths
    chosen = {" ".join(trees.words(int(k))) for k in np.argsort(unsure)[: round(len(trees) / 4)]}
    assert {" ".join(found.words(s)) for s in range(len(found))} == chosen
    assert found.heads.min() >= 0


def tagged(rng: np.random.Generator, tags: list[str], n: int) -> Treebank:
    return Treebank.of([[("w", str(rng.choice(tags))) for _ in range(6)] for _ in range(n)])


def test_domain_weights() -> None:
    rng = np.random.default_rng(0)
    one, half = tagged(rng, ["A", "B", "C"], 150), tagged(rng, ["A", "B", "C"], 150)
    weights = domain_weights(one, half)
    assert weights.mean() == pytest.approx(1) and np.abs(weights - 1).mean() < 0.25  # halves of one domain
    target = tagged(rng, ["B", "C", "D"], 150)
    mixed = join_treebanks([one[:75], target[:75]])
    weights = domain_weights(mixed, tagged(rng, ["B", "C", "D"], 150))
    assert weights[75:].mean() > 2 * weights[:75].mean()
    with pytest.raises(ParameterError, match="both domains"):
        domain_weights(one, Treebank.of([]))


def test_word_weights() -> None:
    source = Treebank.of([[("the", "D"), ("Dog", "N"), ("runs", "V")]])
    target = Treebank.of([[("dog", "N"), ("dog", "N"), ("the", "D")]])
    logs = np.log1p([1.0, 2.0, 0.0])
    assert word_weights(source, target) == pytest.approx(logs / logs.mean())
    assert word_weights(source, target, form="frequency") == pytest.approx([1.0, 2.0, 0.0])
    assert word_weights(source, Treebank.of([[("else", "X")]])) == pytest.approx(np.ones(3))
    with pytest.raises(ParameterError, match="form"):
        word_weights(source, target, form="square")


# --- features


def test_features_of_the_target(trees: Treebank, other: Treebank) -> None:
    parser = DependencyParser(**FAST)
    counts = target_counts(parser, trees, trees)
    columns = columns_of(trees)
    words, features = encode(trees, columns), FeatureSet.of(columns, (), parser.link_templates)
    own = count_keys(words, features, Candidates.all(trees.lengths), (), trees.heads)
    found = counts.of(own)
    assert (found > 0).mean() > 0.99  # all but links that the first look takes away
    assert counts.of(np.array([1, 2, 3], np.uint64)).tolist() == [0, 0, 0]
    hard, soft = (feature_scales(target_counts(parser, trees, other), soft=soft)(own) for soft in (False, True))
    assert set(np.unique(hard).tolist()) == {0.0, 1.0} and 0.2 < hard.mean() < 0.95
    assert (soft > 0).all() and soft[hard > 0].mean() > 5 * soft[hard == 0].mean()


def test_words_between_nouns_are_left_out() -> None:
    rows = [[("car", "NOUN", 2), ("door", "NOUN", 3), ("opens", "VERB", 0), ("it", "PRON", 3)]] * 3
    trees = Treebank.of(rows)
    keys = between_nouns(DependencyParser(**FAST), trees)
    columns = columns_of(trees)
    words = encode(trees, columns)
    every = Candidates.all(trees.lengths)
    for name, kept in (("head.word & child.word", False), ("head.tag & child.tag", True), ("child.word", True)):
        features = FeatureSet.of(columns, (), (name,))
        heads = np.where(np.tile([True, False, False, False], 3), trees.heads, -1).astype(np.int32)
        some = count_keys(words, features, every, (), heads)
        template = set(some.tolist()) - set(
            count_keys(words, FeatureSet.of(columns, (), ()), every, (), heads).tolist()
        )
        scales = keys(np.array(sorted(template), np.uint64))
        assert (scales == 1).all() if kept else (scales == 0).any()


def test_classes_of_words_are_of_both_texts(trees: Treebank, other: Treebank) -> None:
    for view in (
        brown_view([trees, other], 6, least=1), markov_view([trees, other], 6, least=1),
        correspondence_view(trees, other, 6, pivot_count=3),
    ):  # fmt: skip
        sight = view.see(other)
        assert sight.values.shape == (other.n_words, len(view.atoms)) and (sight.values >= 0).mean() > 0.6
        again = type(view).from_parts(*view.to_parts())
        assert np.array_equal(again.see(other).values, sight.values)
    with pytest.raises(ParameterError, match="give more text"):
        brown_view([trees[:1]], 5, least=9)


# --- dependencies of constituents


def test_dependencies_by_a_table_of_heads() -> None:
    lines = ["( (S (NP-SBJ (DT the) (NN dog)) (VP (VBD was) (VP (VBN seen) (NP (-NONE- *))) "
        "(PP (IN in) (NP (NNP Rome)))) (. .)))",
             "( (NP (NP (-LRB- -LRB-) (NN x)) (PP (IN of) (NP (NN y)))))", "( (INTJ (UH Yes)))"]  # fmt: skip
    trees = Constituents.of(lines)
    found = dependencies_by_table(trees)
    found.check_trees(complete=True)
    assert found.words(0) == ("the", "dog", "was", "seen", "in", "Rome", ".") and found.words(1)[0] == "("
    assert found.heads.tolist() == [2, 3, 0, 3, 3, 5, 3, 2, 0, 2, 3, 0]
    bare = trees.stripped()
    heads, first = heads_by_table(bare), 0
    for s, tree in enumerate(bare):  # the head of each node is the word of it that hangs on a word outside
        own = found.heads[found.offsets[s] : found.offsets[s + 1]]
        for node, (start, stop) in enumerate(tree.spans):
            outside = [w for w in range(start, stop) if not start <= own[w] - 1 < stop]
            assert outside == [heads[first + node]]
        first += len(tree.labels)


# --- diagnosis


def rich(n: int, seed: int, words: str) -> Treebank:
    """Sentences with determiners, nouns, prepositions and verbs, drawn by a small grammar."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        row: list[tuple[str, str, int, str]] = []
        nouns = []
        for relation in ("nsubj", "obl"):
            start = len(row)
            many = relation == "obl"
            noun = start + 2 + many
            if many:
                row.append(("in", "ADP", noun, "case"))
            row.append(("the", "DET", noun, "det"))
            row.append((f"{words}{rng.integers(20)}", "NOUN", -9, relation))
            nouns.append(noun)
            if not many:
                row.append((f"{words}v{rng.integers(10)}", "VERB", 0, "root"))
        verb = nouns[0] + 1
        rows.append([(form, tag, verb if head == -9 else head, relation) for form, tag, head, relation in row])
    return Treebank.of(rows)


def test_guidelines_that_differ_are_told_from_other_words() -> None:
    source = rich(150, 0, "a")
    same = diagnose_treebanks(source, rich(80, 1, "a"))
    assert same.guidelines is not None and same.guidelines.verdict == "alike" and same.loss == pytest.approx(0, abs=2)
    assert same.a_distance < 30 and same.unknown == 0 and same.expected_loss == pytest.approx(0, abs=3)
    words = diagnose_treebanks(source, rich(80, 1, "b"))
    assert words.unknown > 40 and words.guidelines is not None and words.guidelines.verdict == "alike"
    style = diagnose_treebanks(source, convert(rich(80, 1, "a"), prepositions="head"))
    assert style.guidelines is not None and style.guidelines.verdict == "differ" and style.loss > 20
    assert any("restyle" in one for one in style.advice) and style.expected_loss == pytest.approx(0, abs=3)
    for by, found in style.losses.items():
        assert sum(kind.adds for kind in found.kinds) == pytest.approx(style.loss), by


def test_a_diagnosis_without_trees_or_tags() -> None:
    source, target = rich(60, 0, "a"), rich(60, 1, "b")
    bare = diagnose_treebanks(source, without_trees(target))
    assert bare.expected_accuracy is not None and bare.loss is None and bare.guidelines is None and not bare.losses
    assert any("annotate about twenty" in one for one in bare.advice)
    nothing = diagnose_treebanks(without_trees(source), target)
    assert nothing.source_accuracy is None and nothing.tags
    plain = diagnose_treebanks(source, target.with_columns(upos=["_"] * target.n_words))
    assert plain.tags == () and plain.source_accuracy is None
    for pair in ((source, Treebank.of([])), (Treebank.of([]), target)):
        with pytest.raises(TreebankError, match="has no words"):
            diagnose_treebanks(*pair)
    page = "".join(diagnosis_page(bare.as_dict()))
    assert "expected loss" in page and "By tag" not in page


def test_from_the_command_line(tmp_path: Path, isogloss: Call) -> None:
    source, target = tmp_path / "a.conllu", tmp_path / "b.conllu"
    rich(60, 0, "a").write(source)
    convert(rich(60, 1, "b"), prepositions="head").write(target)
    page = tmp_path / "page.html"
    found = isogloss("adapt", "diagnose", source, target, "--json", "--page", page, "--quiet")
    told = json.loads(found.out)
    assert found.status == 0 and told["guidelines"]["verdict"] == "differ" and told["losses"]["tag"]["kinds"]
    written = page.read_text("utf-8")
    assert "Guidelines: differ" in written and "By words that the parser does not know" in written
    found = isogloss("adapt", "diagnose", source, target, "--quiet")
    assert found.status == 0 and "guidelines: differ" in found.out and "unknown words" in found.out
    found = isogloss("adapt", "diagnose", source, target, "--label", "0")
    assert found.status == 2 and "these are treebanks" in found.err
    (tmp_path / "c.txt").write_text("one line\nanother line\n")
    found = isogloss("adapt", "diagnose", source, tmp_path / "c.txt")
    assert found.status == 2 and "one of them is a treebank" in found.err
    common = ("--order", "1", "--iterations", "2", "--save", tmp_path / "m", "--quiet")
    found = isogloss("parse", "train", source, "--adapt", target, "--adapt-method", "brown", "--adapt-classes", "4",
                     "--json", *common)  # fmt: skip
    assert found.status == 0 and json.loads(found.out)["method"] == "brown"
    assert isogloss("parse", "apply", tmp_path / "m", target, "-o", tmp_path / "out.conllu").status == 0
    for more, why in (
        (("--adapt-classes", "4"), "needs --adapt TEXT"),
        (("--adapt", target, "--adapt-bags", "9"), "bags says nothing"),
        (("--adapt", target, "--resume"), "leave --resume out"),
        (("--adapt", tmp_path / "none.conllu"), "none.conllu"),
        (("--adapt", target, "--adapt-method", "word-weights"), "losses of words"),
    ):
        found = isogloss("parse", "train", source, *more, *common)
        assert found.status == 2 and why in found.err, found.err
