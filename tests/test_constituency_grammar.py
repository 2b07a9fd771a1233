"""The parser of constituents by grammars with hidden states, alone and beside labelled spans."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isogloss import samples
from isogloss.cli import main
from isogloss.data import Constituents, Text, Treebank
from isogloss.data.constituent_forms import binarised
from isogloss.errors import ModelError, ParameterError, TreebankError, UsageError
from isogloss.structures.latent_cfg import LatentGrammar
from isogloss.tasks.parse.constituency import ConstituencyParser
from isogloss.tasks.parse.constituency.derivations import Derivations
from isogloss.tasks.parse.constituency.trees import Labels
from isogloss.testing import check_estimator

SMALL: dict[str, Any] = {"model": "grammar", "cycles": 1, "grammars": 2}


@pytest.fixture(scope="module")
def trees() -> Constituents:
    return samples.constituents("en-de", "source")


@pytest.fixture(scope="module")
def parser(trees: Constituents) -> ConstituencyParser:
    return ConstituencyParser(**SMALL).fit(trees)


def test_it_learns_the_trees_it_has_seen(parser: ConstituencyParser, trees: Constituents) -> None:
    score = parser.score(trees)
    assert score.f1 > 90 and score.tags > 98
    assert len(parser.trace_) == 2 * 36 + 36 and len(parser.tuning_) == 0


def test_derivations_hold_the_trees(trees: Constituents) -> None:
    labels, flat = Labels.of(trees)
    found = Derivations.of(flat, labels)
    names = (*found.symbols.tags, *found.symbols.others)
    made = binarised(flat, horizontal=0)
    nodes = np.split(found.trees.nodes, found.trees.starts[1:-1])
    for k, rows in enumerate(nodes):
        n = len(made.words(k))
        assert len(rows) == 2 * n - 1 and (rows[:n, 4:] == -1).all()
        assert [names[row[0]] for row in rows[:n]] == list(made.tags(k))
        chains = [names[row[1]] for row in rows if row[3] >= 0]
        tops = [label.split("+")[0] for _, _, label in made[k].brackets()]
        assert names[rows[-1][1]] == tops[0]
        assert sum(row[3] >= 0 for row in rows) == len(chains) and set(chains) <= set(tops)
    grammar = LatentGrammar.flat(found.rules, found.entries[:, 0].copy())
    counts = grammar.annotated(found.trees).counts
    assert counts[: len(found.rules.binary)].sum() == sum(len(rows) // 2 for rows in nodes)


def test_posteriors_tags_and_confidence(parser: ConstituencyParser) -> None:
    text = Text.of(["The woman reads a book .", "", "Hello"])
    posterior = parser.predict_proba(text)
    assert [block.shape[0] for block in posterior] == [21, 0, 1]
    assert posterior[0][-1].sum() == pytest.approx(1.0, abs=1e-6)
    assert all(block.sum(axis=1).max(initial=0.0) <= 1 + 1e-6 for block in posterior)
    found = parser.predict(text, confidence=True)
    assert found.confidence is not None and len(found.confidence) == found.n_nodes
    assert [len(tree) for tree in found] == [6, 0, 1]
    assert found[0].tags[:2] == ("DT", "NN")
    for method in (lambda: parser.k_best(text, 2), lambda: parser.explain(text, 0, 0, 2)):
        with pytest.raises(UsageError, match="no scores of whole trees"):
            method()


def test_long_sentences_are_parsed_in_pieces(parser: ConstituencyParser) -> None:
    found = parser.predict(Text.of([" ".join(["the dog sees the cat"] * 60), "the dog"]), confidence=True)
    assert [len(tree) for tree in found] == [300, 2] and found[0].spans[0] == (0, 300)


def test_given_tags_are_kept(trees: Constituents) -> None:
    parser = ConstituencyParser(tags="gold", **SMALL).fit(trees)
    strange = Constituents.of([str(trees[0]).replace("(DT ", "(QQ ")])
    assert parser.predict(strange).tags(0) == strange.tags(0)
    assert parser.score(trees).tags == 100.0
    with pytest.raises(TreebankError, match="has no tags"):
        parser.predict(Text.of(["a b"]))


def test_laws_of_estimators() -> None:
    some = samples.constituents("en-de", "target")[:12]
    check_estimator(
        lambda **given: ConstituencyParser(**{**SMALL, **given}), lambda made: made.fit(some),
        Text.of(["Die Frau liest", "", "qqq", "Der alte Mann ( wohnt )"]), empty=Text.of([]),
        other_fit=lambda made: made.fit(some[:4]), score=lambda made: made.score(some),
    )  # fmt: skip


def test_both_models_are_averaged(trees: Constituents) -> None:
    text = trees[:6]
    made = {model: ConstituencyParser(tags="gold", model=model, **more).fit(trees) for model, more in (
        ("span", {"iterations": 2}),
        ("grammar", {"cycles": 1, "grammars": 1}),
        ("both", {"iterations": 2, "cycles": 1, "grammars": 1, "share": 0.25}),
    )}  # fmt: skip
    each = {model: parser.predict_proba(text) for model, parser in made.items()}
    for one, other, both in zip(each["span"], each["grammar"], each["both"], strict=True):
        assert both == pytest.approx(0.75 * one + 0.25 * other, abs=1e-12)
    with pytest.raises(UsageError, match="model='both'"):
        made["both"].k_best(text, 2)


def test_a_grammar_of_subtrees_and_of_one_word() -> None:
    dependency = Treebank.from_bytes(samples.trees("en-de", "target").encode())
    made = Constituents.from_dependencies(dependency)
    parser = ConstituencyParser(**SMALL).fit(made)
    assert str(parser.predict(made[:1])[0]).startswith("(ROOT ")
    one = ConstituencyParser(**SMALL).fit(Constituents.of(["(X (A a))"] * 2))
    assert [str(tree) for tree in one.predict(Text.of(["a", "b a"]))] == ["(X (A a))", "(X (A b) (A a))"]


def test_options_that_say_nothing_are_refused(trees: Constituents) -> None:
    for options, message in (
        ({"model": "grammar", "order": 1}, "order says nothing"),
        ({"cycles": 2}, "cycles says nothing"),
        ({"model": "grammar", "share": 0.2}, "share says nothing"),
        ({"model": "both", "decoder": "map"}, "decoder says nothing"),
    ):
        with pytest.raises(ParameterError, match=message):
            ConstituencyParser(**options).fit(trees)


def test_resuming_gives_the_same_grammars(trees: Constituents, tmp_path: Path) -> None:
    from isogloss.learners.runner import Interrupted
    from isogloss.progress import QuietProgress

    class Stop(QuietProgress):
        steps = 0

        def update(self, done: float, detail: str = "") -> None:
            self.steps += 1
            if self.steps == 50:
                signal.raise_signal(signal.SIGINT)

    place = tmp_path / "kept"
    with pytest.raises(Interrupted):
        ConstituencyParser(**SMALL).fit(trees[:10], progress=Stop(), checkpoint=place)
    again = ConstituencyParser(**SMALL).fit(trees[:10], checkpoint=place, resume=True)
    whole = ConstituencyParser(threads=1, **SMALL).fit(trees[:10])
    assert np.array_equal(again.trace_, whole.trace_)
    for one, other in zip(again._learnt.grammar.fine, whole._learnt.grammar.fine, strict=True):  # type: ignore[union-attr]
        assert np.array_equal(one.grammar.binary, other.grammar.binary)


def test_saved_grammars_are_checked(parser: ConstituencyParser) -> None:
    from isogloss import store

    saved = parser._to_saved()
    for name, change in (
        ("grammar.binary", lambda array: array + 1000),
        ("grammar.entries", lambda array: array + 10**6),
        ("grammar.2.sizes", lambda array: array * 0),
        ("grammar.2.uses", lambda array: array * 0),
        ("grammar.3.binary", lambda array: array[1:]),
    ):
        wrong = store.Saved(saved.kind, saved.options, saved.arrays | {name: change(saved.arrays[name])}, saved.meta)
        with pytest.raises(ModelError):
            ConstituencyParser._from_saved(wrong)


def test_the_command_line(trees: Constituents, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trees.write(tmp_path / "trees.mrg")
    (tmp_path / "text.txt").write_text("The woman reads a book .\n\n", encoding="utf-8")
    model = str(tmp_path / "model")
    given = ["--model", "grammar", "--cycles", "1", "--grammars", "1"]
    assert main(["constituency", "train", str(tmp_path / "trees.mrg"), "--save", model, *given]) == 0
    assert "1 grammar with" in capsys.readouterr().err
    assert main(["constituency", "apply", model, str(tmp_path / "text.txt"), "-o", "-", "--quiet"]) == 0
    assert capsys.readouterr().out == "(S (NP (DT The) (NN woman)) (VP (VBZ reads) (NP (DT a) (NN book))) (. .))\n\n"
