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
from isogloss.structures.batch import Stack
from isogloss.structures.latent_cfg import LatentGrammar
from isogloss.structures.spans import span_number
from isogloss.tasks.parse.constituency import ConstituencyParser
from isogloss.tasks.parse.constituency.derivations import Derivations
from isogloss.tasks.parse.constituency.pruning import Within
from isogloss.tasks.parse.constituency.trees import Labels, as_spans
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
    within = Within(made["span"].labels_, Stack.of(each["span"], "posteriors", 2))
    words, tags = [text.words(k) for k in range(6)], [text.tags(k) for k in range(6)]
    learnt = made["grammar"]._learnt.grammar
    assert learnt is not None
    pruned = learnt.posteriors(words, tags, within=within).stack
    for one, other, both, whole in zip(each["span"], pruned, each["both"], each["grammar"], strict=True):
        assert both == pytest.approx(0.75 * one + 0.25 * other, abs=1e-12)
        assert other == pytest.approx(whole, abs=0.02)
    with pytest.raises(UsageError, match="model='both'"):
        made["both"].k_best(text, 2)


def indicator(spans: Any, n: int, n_labels: int) -> np.ndarray:
    """1 for each labelled span of a tree."""
    out = np.zeros((n * (n + 1) // 2, n_labels))
    for begin, end, label in spans:
        out[span_number(begin, end, n), label] = 1.0
    return out


def test_within_the_spans_of_one_tree_grammars_have_that_tree_alone(parser: ConstituencyParser) -> None:
    trees, learnt = samples.constituents("en-de", "source")[:12], parser._learnt.grammar
    assert learnt is not None
    labels, flat = Labels.of(trees)
    words = [flat.words(k) for k in range(len(flat))]
    known = Labels(parser.labels_, labels.root)
    sure = [indicator(spans, len(own), len(known.names)) for spans, own in
            zip(as_spans(flat, known), words, strict=True)]  # fmt: skip
    found = learnt.posteriors(words, within=Within(known.names, Stack.of(sure, "posteriors", 2), 0.5)).stack
    for one, other in zip(found, sure, strict=True):
        assert one == pytest.approx(other, abs=1e-9)


def test_cells_of_every_tree_that_is_likely_enough_are_left(trees: Constituents) -> None:
    """A mixture of two trees over the same words: both derivations are within, and nothing with other brackets."""
    pair = Constituents.of(["(S (A (X x) (Y y)) (B (X x) (Y y) (Z z)))", "(S (X x) (A (Y y) (X x)) (Y y) (A (Z z)))"])
    labels, flat = Labels.of(pair)
    derived = Derivations.of(flat, labels)
    n, shares = 5, (0.9, 0.1)
    mixture = sum(share * indicator(spans, n, len(labels.names))
                  for share, spans in zip(shares, as_spans(flat, labels), strict=True))  # fmt: skip
    for least, within in ((0.05, (0, 1)), (0.5, (0,)), (0.95, ())):
        given = Within(labels.names, Stack.of([mixture], "posteriors", 2), least)
        tags = np.ones((1, len(derived.symbols.tags)), bool)
        cells = given.cells(derived.symbols, np.array([n]), np.zeros(n, np.int64), tags)
        made, seen = (layer.placed(np.ones(len(layer.symbols)), len(derived.symbols)) > 0 for layer in cells)
        for number in range(2):
            spans = {}
            rows = derived.trees.nodes[derived.trees.starts[number] : derived.trees.starts[number + 1]]
            for at, row in enumerate(rows.tolist()):
                spans[at] = (at, at + 1) if row[4] < 0 else (spans[row[4]][0], spans[row[5]][1])
            there = all(
                made[span_number(*spans[at], n), row[0]] and seen[span_number(*spans[at], n), row[1]]
                for at, row in enumerate(rows.tolist())
            )
            assert there == (number in within)


def test_where_spans_leave_no_tree_grammars_look_at_everything(parser: ConstituencyParser) -> None:
    learnt = parser._learnt.grammar
    assert learnt is not None
    words = [("The", "woman", "reads", "a", "book", "."), (), ("Hello",), ("The", "man", "reads", ".")]
    free = learnt.posteriors(words)
    some = [np.array(one) for one in free.stack]
    some[0][:], some[3][:] = 0.0, 0.0
    within = Within(parser.labels_, Stack.of(some, "posteriors", 2))
    found = learnt.posteriors(words, within=within)
    assert found.tags == free.tags
    for one, other, share in zip(found.stack, free.stack, (1e-12, 1e-12, 0.05, 1e-12), strict=True):
        assert one == pytest.approx(other, abs=share)


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
