"""The parser of constituents: what it learns, its laws, and the commands around it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isogloss as ig
from isogloss import samples
from isogloss.cli import main
from isogloss.data import Constituents, Text, Treebank
from isogloss.errors import ModelError, ParameterError, TreebankError, UsageError
from isogloss.features import Axis, Hashed, Templates, spans
from isogloss.features.rows import RowScorer
from isogloss.learners.loglinear import Likelihood
from isogloss.structures.spans import spans_of
from isogloss.tasks.parse.constituency import ConstituencyParser
from isogloss.tasks.parse.constituency.features import templates_for
from isogloss.tasks.parse.constituency.model import GoldBrackets, Kept, TreeFeatures, gold_spans, model_of
from isogloss.tasks.parse.constituency.trees import Labels, as_spans, plain, trees_of
from isogloss.tasks.parse.constituency.words import Known, Sentences, shape_of, span_parts
from isogloss.testing import check_estimator


@pytest.fixture(scope="module")
def trees() -> Constituents:
    return samples.constituents("en-de", "source")


@pytest.fixture(scope="module")
def parser(trees: Constituents) -> ConstituencyParser:
    return ConstituencyParser(iterations=3, l2=1.0, min_count=1).fit(trees)


def test_it_learns_the_trees_it_has_seen(parser: ConstituencyParser, trees: Constituents) -> None:
    score = parser.score(trees)
    assert score.f1 > 95 and score.tags > 98
    assert parser.score(Constituents.of(str(tree) for tree in trees)).f1 == score.f1


@pytest.mark.parametrize("options", [{"order": 1, "prune": 0.0}, {"order": 2, "tags": "gold", "decoder": "map"}])
def test_laws_of_estimators(options: dict[str, Any]) -> None:
    some = samples.constituents("en-de", "target")[:12]
    text: Any = Text.of(["Die Frau liest", "", "qqq", "Der alte Mann ( wohnt )"])
    empty: Any = Text.of([])
    if "tags" in options:
        text, empty = some[5:8], some[:0]
    check_estimator(
        lambda **given: ConstituencyParser(**{"iterations": 2, **options, **given}),
        lambda made: made.fit(some), text, empty=empty, training=some if "tags" in options else None,
        other_fit=lambda made: made.fit(some[:4]), score=lambda made: made.score(some),
    )  # fmt: skip


def test_posteriors_and_confidence(parser: ConstituencyParser) -> None:
    text = Text.of(["The woman reads a book .", "", "Hello"])
    posterior = parser.predict_proba(text)
    assert [block.shape[0] for block in posterior] == [21, 0, 1]
    assert posterior[0][-1].sum() == pytest.approx(1.0)
    assert all(block.sum(axis=1).max(initial=0.0) <= 1 + 1e-9 for block in posterior)
    found = parser.predict(text, confidence=True)
    assert found.confidence is not None
    for (begin, end, label), sure in zip(found[0].brackets(), found.confidence.tolist(), strict=False):
        number = [tuple(span) for span in spans_of(6).tolist()].index((begin, end))
        assert sure == pytest.approx(posterior[0][number, parser.labels_.index(label)])
    assert [len(tree) for tree in found] == [6, 0, 1]


def test_k_best_and_explanations(parser: ConstituencyParser, trees: Constituents) -> None:
    (best,) = parser.k_best(Text.of(["The dog sees the cat ."]), 3)
    chances = [chance for chance, _ in best]
    assert chances == sorted(chances, reverse=True) and len({str(tree[0]) for _, tree in best}) == 3
    why = parser.explain(trees, 0, 0, 2)
    assert (why["words"], why["label"]) == (["The", "woman"], "NP")
    assert why["score"] == pytest.approx(sum(entry["weight"] for entry in why["features"]), abs=1e-4)
    with pytest.raises(UsageError, match="no words 4 to 2"):
        parser.explain(trees, 0, 4, 2)
    with pytest.raises(UsageError, match="no label"):
        parser.explain(trees, 0, 0, 2, label="XX")


def test_long_sentences_are_parsed_in_pieces(parser: ConstituencyParser) -> None:
    found = parser.predict(Text.of(["", " ".join(["the dog sees the cat"] * 60), "the dog"]), confidence=True)
    assert [len(tree) for tree in found] == [0, 300, 2]
    assert found[1].spans[0] == (0, 300)


def test_kinds_of_trees_that_can_be_learnt() -> None:
    dependency = Treebank.from_bytes(samples.trees("en-de", "target").encode())
    made = Constituents.from_dependencies(dependency)
    parser = ConstituencyParser(iterations=3, tags="gold").fit(made)
    assert str(parser.predict(made[:1])[0]).startswith("(ROOT (VERB")
    wrapped = Constituents.of(["( (S (A a) (B b)) )", "( (S (A a) (B b)) )"])
    assert str(ConstituencyParser(iterations=1).fit(wrapped).predict(Text.of(["a b"]))[0]).startswith("( (S ")
    several = Constituents.of(["(TOP (S (A a) (B b)) (. .))", "(TOP (X a))"] * 2)
    found = ConstituencyParser(iterations=4, l2=0.0, min_count=1).fit(several).predict(several)
    assert [str(tree) for tree in found] == [str(tree) for tree in several]
    with pytest.raises(TreebankError, match="no bracket has all words"):
        ConstituencyParser().fit(Constituents.of(["(A a)", "(S (A a) (B b))"]))
    with pytest.raises(TreebankError, match="nothing to learn"):
        ConstituencyParser().fit(Constituents.of([""]))
    with pytest.raises(ParameterError, match="give Constituents"):
        ConstituencyParser().fit("trees.mrg")  # type: ignore[arg-type]
    gold = ConstituencyParser(iterations=1, tags="gold").fit(wrapped)
    with pytest.raises(TreebankError, match="has no tags"):
        gold.predict(Text.of(["a b"]))


@pytest.mark.parametrize("trainer", ["perceptron", "mira"])
def test_margins_learn_too(trees: Constituents, trainer: str) -> None:
    parser = ConstituencyParser(trainer=trainer, iterations=5, min_count=1, prune=0.0).fit(trees)
    assert parser.score(trees).f1 > 80


# Its parts -----------------------------------------------------------------------------------------------------------


def test_spans_and_trees_are_inverse() -> None:
    trees = plain(Constituents.of(["( (S (NP (QP (A a) (B b))) (C c) (VP (D d))) )", "( (X (Y y)) )"]))
    labels, flat = Labels.of(trees)
    assert (labels.names, labels.root) == (("NP+QP", "S", "VP", "X"), "")
    found = as_spans(flat, labels)
    assert found[0] == {(0, 4, 1), (0, 2, 0), (3, 4, 2)}
    words, tags = [t.words for t in trees], [t.tags for t in trees]
    assert trees_of(words, tags, found, labels, "x").to_bytes() == trees.to_bytes("line")


def test_rows_of_labels_agree_with_single_weights() -> None:
    rng = np.random.default_rng(0)
    parts = spans(Axis([0, 3, 3, 5], tag=rng.integers(3, size=5), word=rng.integers(4, size=5)), 9)
    templates = Templates(["first.tag & last.tag", "inside.word", ()])
    scorer = RowScorer(templates, parts, Hashed(6), 3)
    weights = rng.normal(size=(64, 3))
    features = templates.matrix(parts, Hashed(6))
    by_label = np.stack([features.scores(weights[:, label]) for label in range(3)], axis=1)
    assert scorer.scores(weights.ravel()) == pytest.approx(by_label.ravel())
    values = rng.normal(size=(parts.n_parts, 3)) * (rng.random((parts.n_parts, 3)) < 0.5)
    out = np.zeros(64 * 3)
    scorer.gradient(values.ravel()).add_to(out)
    assert float(out @ weights.ravel()) == pytest.approx(float((values * by_label).sum()))
    some = scorer.scores(weights.ravel(), [2])
    assert some == pytest.approx(by_label[parts.offsets[2] :].ravel())


def test_some_features_have_a_weight_for_all_labels_alone() -> None:
    rng = np.random.default_rng(4)
    parts = spans(Axis([0, 4, 4, 6], tag=rng.integers(3, size=6), word=rng.integers(4, size=6)), 9)
    templates, wide = Templates(["first.tag & last.tag", "inside.word", ()]), rng.random(64) < 0.4
    scorer = RowScorer(templates, parts, Hashed(6), 3, wide)
    rows, single = rng.normal(size=(int(wide.sum()), 4)), rng.normal(size=int((~wide).sum()))
    weights = np.concatenate([rows.ravel(), single])
    every = np.zeros((64, 3))
    every[wide], every[~wide] = rows[:, :3] + rows[:, 3:], single[:, None]
    features = templates.matrix(parts, Hashed(6))
    by_label = np.stack([features.scores(every[:, label]) for label in range(3)], axis=1)
    assert scorer.n_weights == len(weights)
    assert scorer.scores(weights) == pytest.approx(by_label.ravel())
    values = rng.normal(size=(parts.n_parts, 3)) * (rng.random((parts.n_parts, 3)) < 0.5)
    out = np.zeros(len(weights))
    scorer.gradient(values.ravel()).add_to(out)
    assert float(out @ weights) == pytest.approx(float((values * by_label).sum()))
    with pytest.raises(ParameterError, match="wide should be 64 booleans"):
        RowScorer(templates, parts, Hashed(6), 3, wide[:5])


def test_rare_chains_are_shortened() -> None:
    often, rare = "(S (NP (QP (A a))) (B b))", "(S (X (NP (QP (A a)))) (B b))"
    labels, flat = Labels.of(Constituents.of([often] * 12000 + [rare] * 2))
    assert labels.names == ("NP+QP", "S")
    assert as_spans(flat, labels)[-1] == as_spans(flat, labels)[0]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("pruned", [False, True])
def test_gradients_agree_with_finite_differences(order: int, pruned: bool) -> None:
    trees = samples.constituents("en-de", "target")[:3]
    labels, flat = Labels.of(plain(trees))
    known = Known.of(flat.columns["form"], 1)
    words = Sentences.of(flat.offsets, flat.columns["form"], flat.columns["tag"], known)
    parts, gold = span_parts(words), as_spans(flat, labels)
    marked = gold_spans(gold, parts.offsets, flat.lengths)
    templates = templates_for(order, ("first.tag", "last.tag & last.tag[+1]"))
    seen = np.random.default_rng(3).random(parts.n_parts) < 0.7 if pruned else None
    features = TreeFeatures.collected(templates, words, parts, marked, len(labels.names), 1, seen)
    kept = None
    if pruned:
        rng = np.random.default_rng(1)
        kept = Kept.of(marked | (rng.random(parts.n_parts) < 0.5), parts.offsets)
    model = model_of(features, words, parts, kept)
    likely = Likelihood(model, target=GoldBrackets(gold, len(labels.names)))
    rng = np.random.default_rng(2)
    weights, direction = rng.normal(size=model.n_weights), rng.normal(size=model.n_weights)
    items = np.arange(3)
    value, gradient = likely.gradient(weights, items)
    slope = np.zeros(model.n_weights)
    gradient.add_to(slope)
    step = 1e-5
    up, down = (likely.gradient(weights + sign * step * direction, items)[0] for sign in (1, -1))
    assert value < 0
    assert float(slope @ direction) == pytest.approx((up - down) / (2 * step), rel=1e-5)


def test_shapes_of_words() -> None:
    assert [shape_of(word) for word in ("dog", "U.S.", "3-year-old", "")] == ["x", "X.X.", "0-x-x", ""]


# Commands ------------------------------------------------------------------------------------------------------------


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples.write("en-de", tmp_path)
    file = {name: str(tmp_path / name) for name in ("en-de.en.mrg", "out.mrg", "model", "text.txt")}
    train = ["constituency", "train", file["en-de.en.mrg"], "--dev", file["en-de.en.mrg"], "--iterations", "2"]
    assert main([*train, "--save", file["model"], "--json", "-q"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["trees"] == 60 and told["dev"] > 50 and told["passes"] in (1, 2)
    Path(file["text.txt"]).write_text("The dog ( sleeps ) .\n\nHello\n")
    assert main(["constituency", "apply", file["model"], file["text.txt"], "-o", file["out.mrg"], "-q"]) == 0
    sure = str(tmp_path / "sure.tsv")
    command = ["constituency", "apply", file["model"], file["text.txt"], "-q", "--confidence", sure]
    assert main([*command, "-o", file["out.mrg"]]) == 0
    table = [line.split("\t") for line in Path(sure).read_text().splitlines()]
    assert table[0] == ["sentence", "first", "last", "label", "probability"]
    assert table[1][:3] == ["1", "1", "6"] and {row[0] for row in table[1:]} == {"1", "3"}
    assert all(0 < float(row[4]) <= 1 for row in table[1:])
    assert main([*command, "-o", sure]) == 2
    lines = Path(file["out.mrg"]).read_text().splitlines()
    assert len(lines) == 3 and lines[1] == "" and "(-LRB-" not in lines[2]
    found = Constituents.of(lines)
    assert found.words(0) == ("The", "dog", "-LRB-", "sleeps", "-RRB-", ".")
    assert main(["constituency", "score", file["out.mrg"], file["out.mrg"], "--json", "-q"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [told[name] for name in ("precision", "recall", "f1", "exact", "tags")] == [100.0] * 5
    assert main(["constituency", "score", file["en-de.en.mrg"], file["en-de.en.mrg"], "--breakdown", "-q"]) == 0
    assert "NP" in capsys.readouterr().out
    assert main(["constituency", "apply", file["model"], file["en-de.en.mrg"], "-o", file["out.mrg"], "-q"]) == 0
    assert main(["parse", "apply", file["model"], file["text.txt"]]) == 2
    assert "isogloss constituency apply" in capsys.readouterr().err
    assert isinstance(ig.load(file["model"]), ConstituencyParser)


def test_an_empty_line_stands_for_a_tree_that_was_not_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gold.mrg").write_text("(S (A a))\n(S (B b) (C c))\n")
    (tmp_path / "found.mrg").write_text("(S (A a))\n\n")
    assert main(["constituency", "score", str(tmp_path / "found.mrg"), str(tmp_path / "gold.mrg"), "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["recall"] == 50.0


def test_dependency_treebanks_are_read_as_constituents(tmp_path: Path) -> None:
    samples.write("en-de", tmp_path)
    command = ["constituency", "train", str(tmp_path / "en-de.de.conllu"), "--iterations", "1", "-q"]
    assert main([*command, "--save", str(tmp_path / "model")]) == 0
    assert (
        "ROOT+VERB" in ig.load(tmp_path / "model").labels_ or ig.load(tmp_path / "model")._learnt.names.root == "ROOT"
    )


def test_what_cannot_be_learnt_or_scored_is_refused_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], parser: ConstituencyParser
) -> None:
    long = "(S " + " ".join("(NN x)" for _ in range(300)) + ")"
    with pytest.raises(TreebankError, match="no tree has from 1 to 250 words"), pytest.warns(match="1 of 1 trees have"):
        ConstituencyParser().fit(Constituents.of([long]))
    with pytest.raises(TreebankError, match="tree 3: no bracket has all words"):
        ConstituencyParser().fit(Constituents.of(["", "(S (A a))", "(A a)"]))
    with pytest.raises(TreebankError, match="no pass is better"):
        ConstituencyParser().fit(Constituents.of(["(S (A a))"]), Constituents.of([""]))
    with pytest.raises(ParameterError, match="give a Treebank"):
        Constituents.from_dependencies("trees.conllu")  # type: ignore[arg-type]
    treebank = Treebank.read(samples.path("en-de", "source-trees"))
    given = ConstituencyParser(tags="gold", iterations=1).fit(Constituents.from_dependencies(treebank[:4]))
    with pytest.raises(TreebankError, match="from_dependencies"):
        given.predict(treebank[:1])
    parser.save(tmp_path / "model")
    for name, text, words in (
        ("trees.txt", "(S (NP (PRP She)) (VP (VBZ sleeps)))\n", "--format brackets takes the words"),
        ("empty.mrg", "", "nothing to score"),
    ):
        (tmp_path / name).write_text(text)
        first = ["apply", str(tmp_path / "model")] if name.endswith("txt") else ["score", str(tmp_path / name)]
        assert main(["constituency", *first, str(tmp_path / name), "-q"]) != 0
        assert words in capsys.readouterr().err
    assert (
        main(["constituency", "apply", str(tmp_path / "model"), str(tmp_path / "trees.txt"), "--format", "text"]) == 0
    )


def test_arrays_that_the_options_have_no_use_for_are_refused(tmp_path: Path, parser: ConstituencyParser) -> None:
    parser.save(tmp_path / "model")
    header = json.loads((tmp_path / "model/model.json").read_text())
    for change in ({"prune": 0.0}, {"order": 1}):
        changed = header | {"options": header["options"] | change}
        (tmp_path / "model/model.json").write_text(json.dumps(changed))
        with pytest.raises(ModelError):
            ig.load(tmp_path / "model")


def test_spaces_that_are_no_spaces_stay_in_words() -> None:
    assert Constituents.of(["(CD 10\u00a0000)"]).words(0) == ("10\u00a0000",)
