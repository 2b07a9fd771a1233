"""`TransferredParser`: the laws of estimators, its methods, its stages, and what it refuses."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isogloss as ig
from isogloss import samples, store
from isogloss.data import Bitext, Text, Treebank
from isogloss.errors import BitextError, LinksError, ModelError, ParameterError, TreebankError, UsageError
from isogloss.progress import QuietProgress
from isogloss.tasks.parse.induction import GrammarInducer
from isogloss.tasks.transfer import TransferredParser
from isogloss.tasks.transfer.likely import confidences
from isogloss.tasks.transfer.options import METHODS, MODELS
from isogloss.tasks.transfer.views import universal, without_words
from isogloss.testing import check_estimator

SOURCE = Treebank.from_bytes(samples.trees("en-de", "source").encode())
GOLD = Treebank.from_bytes(samples.trees("en-de", "target").encode())
PAIRS = samples.bitext("en-de").part(0, len(SOURCE))
LINKS = samples.gold("en-de")[: len(SOURCE)]
MAKE = partial(TransferredParser, iterations=2)


def saved(parser: TransferredParser, folder: Path) -> list[bytes]:
    parser.save(folder)
    return [(folder / name).read_bytes() for name in ("model.json", "model.safetensors")]


def test_it_keeps_the_laws_of_estimators() -> None:
    check_estimator(
        MAKE,
        lambda e: e.fit(PAIRS, source=SOURCE, links=LINKS),
        Text.of(["Die Frau liest im Garten .", "Unerhört !"]),
        empty=Text.of([]),
        other_fit=lambda e: e.fit(PAIRS[:12], source=SOURCE[:12], links=LINKS[:12]),
        score=lambda e: e.score(GOLD),
    )


def test_grammars_keep_the_laws_of_estimators() -> None:
    check_estimator(
        partial(MAKE, method="quasi"),
        lambda e: e.fit(PAIRS, source=SOURCE, links=LINKS),
        Text.of(["Die Frau liest im Garten .", "Unerhört !"]),
        empty=Text.of([]),
        other_fit=lambda e: e.fit(PAIRS[:12], source=SOURCE[:12], links=LINKS[:12]),
        score=lambda e: e.score(GOLD),
    )


@pytest.mark.parametrize("method", MODELS["grammar"])
def test_grammars_are_learnt_by_every_method_and_are_loaded_as_they_were(method: str, tmp_path: Path) -> None:
    parser = MAKE(method=method, model="grammar").fit(PAIRS, source=SOURCE, links=LINKS)
    assert isinstance(parser.parser_, GrammarInducer) and parser.report_["sentences"] == parser.parser_.n_sentences_
    assert parser.score(GOLD, tags="given").uas > (70 if method == "posterior" else 80)
    assert parser.score(GOLD, tags="given").las > 60  # relations are those of another parser
    parser.save(tmp_path / "model")
    again = TransferredParser.load(tmp_path / "model")
    for confidence in (False, True):
        found, wanted = (one.predict(GOLD, tags="given", confidence=confidence) for one in (again, parser))
        assert found.to_bytes() == wanted.to_bytes()
    np.testing.assert_array_equal(again.predict_proba(GOLD).values, parser.predict_proba(GOLD).values)


def test_a_grammar_knows_how_sure_it_is() -> None:
    parser = MAKE(method="quasi", draws=1).fit(PAIRS, source=SOURCE, links=LINKS)
    found, posteriors = parser.predict(GOLD, confidence=True), parser.predict_proba(GOLD)
    place = np.arange(found.n_words) - np.repeat(found.offsets[:-1], found.lengths) + 1
    rows = np.repeat(np.arange(len(found)), found.lengths)
    own = [posteriors[s][h, c] for s, h, c in zip(rows.tolist(), found.heads, place, strict=True)]
    np.testing.assert_allclose(confidences(found), own, atol=1e-4)


def test_methods_and_models_that_do_not_go_together_are_refused() -> None:
    assert not MAKE().learns_grammar and MAKE(method="quasi").learns_grammar and MAKE(method="partial").learns_grammar
    assert not MAKE(method="hard").learns_grammar and MAKE(method="hard", model="grammar").learns_grammar
    for options, words in (
        ({"method": "quasi", "model": "features"}, "learns no model='features'"),
        ({"method": "complete", "model": "grammar"}, "one of the methods quasi, partial, hard, posterior"),
        ({"method": "quasi", "order": 2}, "order says nothing"),
        ({"method": "hard", "model": "grammar", "order": 2}, "order says nothing"),
        ({"method": "quasi", "share": 0.5}, "share says nothing"),
        ({"method": "partial", "rounds": 2}, "rounds says nothing"),
        ({"method": "hard", "model": "grammar", "sentences": 5}, "sentences says nothing"),
    ):
        with pytest.raises(ParameterError, match=words):
            MAKE(**options).fit(PAIRS, source=SOURCE, links=LINKS)
    with pytest.raises(UsageError, match="does not learn from trees"):
        MAKE(method="quasi").fit(PAIRS, source=SOURCE, links=LINKS, trees=GOLD)
    with pytest.raises(BitextError, match="no sentence has a word that is linked"):
        MAKE(method="quasi").fit(PAIRS, source=SOURCE, links=LINKS.keep(np.zeros(len(LINKS.source), bool)))


def test_trees_of_the_target_language_are_known_heads_of_a_grammar() -> None:
    alone, more = (MAKE(method="partial").fit(PAIRS, source=SOURCE, links=LINKS, trees=trees) for trees in (None, GOLD))
    assert more.report_["sentences"] > alone.report_["sentences"]


@pytest.fixture(scope="module")
def scores() -> dict[str, float]:
    """UAS of each method with the right tags, on the sentences whose translations were learnt from."""
    found = {}
    for method in METHODS:
        parser = MAKE(method=method).fit(PAIRS, source=SOURCE, links=LINKS)
        found[method] = parser.score(GOLD, tags="given").uas
    return found


def test_every_method_learns(scores: dict[str, float]) -> None:
    assert set(scores) == set(METHODS)
    assert min(scores.values()) > 60, scores


def test_completing_trees_is_better_than_completing_them_at_random(scores: dict[str, float]) -> None:
    assert scores["complete"] > scores["random"]
    assert scores["complete"] > 80


def test_the_whole_chain_from_a_treebank_of_the_source_language() -> None:
    parser = MAKE().fit(samples.bitext("en-de"), SOURCE)
    assert parser.score(GOLD).uas > 55
    report = parser.report_
    assert report["pairs"] == 50 and report["language"] == "de" and report["split"] > 0
    assert 0 < report["projected"] < 1 and 0 < report["confidence"] <= 1
    forms = {word for k in range(50) for word in samples.bitext("en-de").target[k]} | {"in", "dem", "zu", "an"}
    assert 0 < len(report["unsure_words"]) <= 10 and set(report["unsure_words"]) <= forms
    assert 0 < len(report["unsure_lines"]) <= 10 and set(report["unsure_lines"]) <= set(range(1, 51))


def test_draws_of_tags_average_trees() -> None:
    parser = MAKE(draws=4).fit(PAIRS, source=SOURCE, links=LINKS)
    text = Text.of(["Die Frau liest im Garten .", "Unerhört !"])
    posteriors, found = parser.predict_proba(text), parser.predict(text, confidence=True)
    sums = [posteriors[k].sum(axis=0)[1:] for k in range(len(text))]
    assert np.allclose(np.concatenate(sums), 1.0)
    heads, place = found.heads, np.arange(found.n_words) - np.repeat(found.offsets[:-1], found.lengths) + 1
    own = [posteriors[k] for k in np.repeat([0, 1], found.lengths)]
    assert np.allclose(confidences(found), [m[h, c] for m, h, c in zip(own, heads, place, strict=True)], atol=1e-4)
    parser.draws = 1
    best = parser.predict(text)
    tags = best.columns["upos"]
    alone = parser.parser_.predict_proba(best)
    assert not np.allclose(alone.values, posteriors.values)
    assert found.columns["upos"].ids.tolist() == tags.ids.tolist()  # tags are the most probable all the same
    given = parser.predict_proba(best, tags="given")
    parser.draws = 4
    assert np.array_equal(parser.predict_proba(best, tags="given").values, given.values)


def test_contractions_are_split_in_text_and_left_in_treebanks() -> None:
    parser = MAKE().fit(PAIRS, source=SOURCE, links=LINKS)
    found = parser.predict(Text.of(["Die Frau liest im Garten ."]))
    assert found.words(0) == ("Die", "Frau", "liest", "in", "dem", "Garten", ".")
    assert found.ranges.rows() == [(3, 5, "im")]
    as_it_is = parser.predict(Treebank.of([[("im", "X"), ("Garten", "X")]]))
    assert as_it_is.words(0) == ("im", "Garten")


def test_tags_that_are_given_stay() -> None:
    parser = MAKE().fit(PAIRS, source=SOURCE, links=LINKS)
    odd = Treebank.of([[("Frau", "INTJ"), ("liest", "VERB")]])
    assert parser.predict(odd, tags="given").strings("upos", 0) == ("INTJ", "VERB")
    with pytest.raises(TreebankError, match="no word has a tag"):
        parser.predict(Treebank.of([[("Frau",), ("liest",)]]), tags="given")
    with pytest.raises(ParameterError, match="'predicted' or 'given'"):
        parser.predict(odd, tags="gold")


class Stopping(QuietProgress):
    """Stops the work when a stage begins."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def start(self, name: str, total: float | None = None) -> None:
        if name == self.stage:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("stage", "method"),
    [("Parsing the source side", "complete"), ("Projecting trees", "complete"), ("Completing trees", "complete"),
     ("Conditional EM", "quasi")],
)  # fmt: skip
def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(stage: str, method: str, tmp_path: Path) -> None:
    folder, make = tmp_path / "checkpoint", partial(MAKE, method=method)
    whole = saved(make().fit(PAIRS, SOURCE), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        make().fit(PAIRS, SOURCE, progress=Stopping(stage), checkpoint=folder)
    assert (folder / "source-parser").exists()
    again = make().fit(PAIRS, SOURCE, checkpoint=folder, resume=True)
    assert saved(again, tmp_path / "again") == whole
    assert not folder.exists()


def test_stages_of_another_run_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        MAKE().fit(PAIRS, SOURCE, progress=Stopping("Projecting trees"), checkpoint=folder)
    with pytest.raises(UsageError, match="other options, other texts or other models"):
        MAKE(seed=1).fit(PAIRS, SOURCE, checkpoint=folder, resume=True)
    with pytest.raises(UsageError, match="other options, other texts or other models"):
        MAKE(ig.TagDictionary.of_treebank(GOLD)).fit(PAIRS, SOURCE, checkpoint=folder, resume=True)
    other = tmp_path / "mine"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="it has other files"):
        MAKE().fit(PAIRS, SOURCE, checkpoint=other)
    assert (other / "letter.txt").read_text() == "dear"


def test_what_cannot_be_learnt_from_is_said() -> None:
    with pytest.raises(UsageError, match="give a treebank of the source language"):
        MAKE().fit(PAIRS)
    with pytest.raises(BitextError, match="there are no words"):
        MAKE().fit(Bitext.of([]), SOURCE)
    with pytest.raises(TreebankError, match="no word has a head"):
        MAKE().fit(PAIRS, Treebank.of([[("she", "PRON"), ("sleeps", "VERB")]]))
    with pytest.raises(TreebankError, match="no word has a tag in column upos"):
        MAKE().fit(PAIRS, Treebank.of([[("she", "_", 2, "nsubj"), ("sleeps", "_", 0, "root")]]))
    with pytest.raises(BitextError, match="no sentence has from 2 to 1 words"):
        MAKE(longest=1).fit(PAIRS, source=SOURCE, links=LINKS)
    with pytest.raises(LinksError):
        MAKE().fit(PAIRS, source=SOURCE, links=LINKS[:3])
    with pytest.raises(ParameterError, match="order 1"):
        MAKE(method="posterior", order=2).fit(PAIRS, source=SOURCE, links=LINKS)
    with pytest.raises(ParameterError, match="share says nothing with method='complete'"):
        MAKE(share=0.5).fit(PAIRS, source=SOURCE, links=LINKS)
    with pytest.raises(ParameterError, match="rounds says nothing with method='hard'"):
        MAKE(method="hard", rounds=2).fit(PAIRS, source=SOURCE, links=LINKS)
    for method, name in (("hard", "sentences"), *(("delexicalised", name) for name in ("sentences", "longest"))):
        with pytest.raises(ParameterError, match=f"{name} says nothing with method='{method}'"):
            MAKE(method=method, **{name: 5}).fit(PAIRS, source=SOURCE, links=LINKS)
    with pytest.raises(ParameterError, match="order says nothing with method='delexicalised'"):
        MAKE(method="delexicalised", order=2).fit(PAIRS, source=SOURCE, links=LINKS)
    with pytest.raises(UsageError, match="does not learn from trees"):
        MAKE(method="posterior").fit(PAIRS, source=SOURCE, links=LINKS, trees=GOLD)


def test_links_of_a_stage_are_checked_before_they_are_used(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        MAKE().fit(PAIRS, SOURCE, progress=Stopping("Completing trees"), checkpoint=folder)
    kept = store.read(folder / "links", kind="checkpoint.links").arrays
    for name, value in (("source", 1000), ("target", -5), ("offsets", -1)):
        changed = kept | {name: np.concatenate([kept[name][:-1], [value]]).astype(kept[name].dtype)}
        store.save(folder / "links", kind="checkpoint.links", options={}, arrays=changed)
        with pytest.raises((ModelError, LinksError)):
            MAKE().fit(PAIRS, SOURCE, checkpoint=folder, resume=True)


def test_what_does_not_fit_is_said_before_anything_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    for wrong in ({"source": SOURCE[:3]}, {"source": SOURCE, "links": LINKS[:3]}):
        with pytest.raises((TreebankError, LinksError)):
            MAKE().fit(PAIRS, **wrong, checkpoint=folder)
        assert not folder.exists()


def test_tagged_text_and_trees_of_the_target_language_are_learnt_from() -> None:
    parser = MAKE().fit(PAIRS, source=SOURCE, links=LINKS, target=GOLD, trees=GOLD)
    assert parser.report_["tags"] == "given"
    alone = MAKE().fit(PAIRS, source=SOURCE, links=LINKS)
    assert parser.score(GOLD).uas > alone.score(GOLD).uas


def test_a_dictionary_of_tags_helps_the_tagger() -> None:
    words = ig.TagDictionary.of_treebank(GOLD)
    with_words = MAKE(words).fit(PAIRS, source=SOURCE, links=LINKS)
    without = MAKE().fit(PAIRS, source=SOURCE, links=LINKS)
    assert with_words.score(GOLD).upos > without.score(GOLD).upos


def test_views() -> None:
    trees = Treebank.of([[("it", "PRON", 2, "expl:impers", "it", "PRP", "Case=Nom"), ("rains", "VERB", 0, "root")]])
    seen = universal(trees)
    assert seen.strings("deprel", 0) == ("expl", "root")
    assert {seen.strings(name, 0) for name in ("lemma", "xpos", "feats")} == {("_", "_")}
    assert without_words(seen).words(0) == ("_", "_")
    np.testing.assert_array_equal(without_words(seen).heads, trees.heads)


def command(*arguments: Any) -> int:
    from isogloss.cli import main

    return main([str(one) for one in arguments])


def test_commands(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = {name: samples.path("en-de", name) for name in ("source", "target", "source-trees", "target-trees")}
    model, out = tmp_path / "model", tmp_path / "out.conllu"
    given = ("--bitext", names["source"], names["target"])
    assert command("transfer", "train", *given, "--source-treebank", names["source-trees"], "--save", model,
                   "--iterations", 2) == 0  # fmt: skip
    said = capfd.readouterr().err
    assert "to annotate next: tags of" in said and "of the target text (--target-trees)" in said
    assert "50 pairs" in said and "splitting contractions of de" in said and "trees were learnt from" in said
    assert not (tmp_path / "model.checkpoint").exists()
    assert command("transfer", "apply", model, names["target"], "-o", out) == 0
    found = Treebank.read(out)
    assert len(found) == 50 and (found.heads >= 0).all() and found.predicted == {"upos", "head", "deprel"}
    whole = out.read_bytes()
    assert command("parse", "apply", model, names["target"], "-o", out) == 0
    assert out.read_bytes() == whole
    assert command("transfer", "apply", model, names["target"], "--draws", 1, "-o", out) == 0
    best = TransferredParser.load(model)
    best.draws = 1
    assert np.array_equal(Treebank.read(out).heads, best.predict(samples.bitext("en-de").target).heads)
    assert command("transfer", "apply", model, names["target-trees"], "--keep-tags", "-o", out) == 0
    assert Treebank.read(out).predicted == {"head", "deprel"}
    capfd.readouterr()
    for arguments, words in (
        (("transfer", "train", *given, "--save", model), "give --source-treebank"),
        (("transfer", "apply", model, names["target"], "--keep-tags"), "this is plain text"),
        (("transfer", "apply", model, names["target-trees"], "--keep-tags", "--draws", 2), "tags that are predicted"),
        (("transfer", "apply", tmp_path / "none", names["target"]), "there is no such saved model"),
        (("tag", "apply", model, names["target"]), "this is a dependency parser"),
    ):
        assert command(*arguments) == 2, words
        assert words in capfd.readouterr().err


def test_commands_speak_of_the_parser_and_not_of_its_declarations(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from isogloss.cli import main

    source, target, trees = (str(samples.path("en-de", name)) for name in ("source", "target", "source-trees"))
    command = [
        "transfer",
        "train",
        "--bitext",
        source,
        target,
        "--source-treebank",
        trees,
        "--save",
        str(tmp_path / "m"),
    ]
    assert main([*command, "--method", "quasi", "--order", "2"]) == 2
    assert "TransferredParser: order says nothing" in capfd.readouterr().err
