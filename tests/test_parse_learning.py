"""The dependency parser: learning, resuming, explaining and keeping; the command line."""

from __future__ import annotations

import gzip
import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isogloss import cli, store
from isogloss.data import Text, Treebank, features_of
from isogloss.data.formats import IsoglossWarning
from isogloss.engine.threads import using_threads
from isogloss.errors import ModelError, ParameterError, TreebankError, UsageError
from isogloss.learners.passes import TRAINERS
from isogloss.learners.runner import Interrupted
from isogloss.progress import QuietProgress
from isogloss.structures.tree_parts import FAMILIES
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.cutting import LONGEST, cut
from isogloss.tasks.parse.explaining import features_of_link
from isogloss.tasks.parse.inference import best_trees
from isogloss.tasks.parse.words import encode


@pytest.fixture(scope="module")
def parser(trees: Treebank) -> DependencyParser:
    return DependencyParser(iterations=6).fit(trees, trees)


@pytest.mark.parametrize("trainer", list(TRAINERS))
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("order", [1, 2])
def test_a_small_treebank_is_learnt_by_heart(trees: Treebank, trainer: str, projective: bool, order: int) -> None:
    parser = DependencyParser(order=order, trainer=trainer, projective=projective, iterations=8, rounds=3).fit(trees)
    found = parser.predict(trees)
    least = 1 - 1e-9 if trainer == "likelihood" else 0.97 if order == 1 else 0.9  # margins by messages are rough
    assert np.mean(found.heads == trees.heads) > least
    assert parser.families_ == ((), FAMILIES[:3], FAMILIES)[(order - 1) * (2 - projective)]
    same = np.mean([found.strings("deprel", s) == trees.strings("deprel", s) for s in range(len(trees))])
    assert same > (0.9 if trainer == "likelihood" else 0.6)
    assert parser.trace_[-1] < parser.trace_[0] and len(parser.tuning_) == 0


def test_scores_posteriors_entropy_and_confidence(trees: Treebank, parser: DependencyParser) -> None:
    assert parser.score(trees)["uas"] == pytest.approx(parser.tuning_.max())
    chances = parser.predict_proba(trees)
    assert len(chances) == len(trees) and chances[3][:, 1:].sum(axis=0) == pytest.approx(1.0)
    found = parser.predict(trees, confidence=True)
    misc = features_of(found.strings("misc", 3)[1])
    head = int(found.heads[trees.offsets[3] + 1])
    assert float(misc["Confidence"]) == pytest.approx(chances[3][head, 2], abs=1e-4)
    assert 0 < float(misc["LabelConfidence"]) <= 1
    entropy = parser.entropy(trees)
    assert entropy.shape == (len(trees),) and (entropy >= 0).all()
    assert "root" in parser.labels_ and parser.projective_
    best = parser.k_best(trees.part(0, 2), 3)
    assert len(best) == 2 and len(best[0]) == 3
    assert best[0][0][0] >= best[0][1][0] and sum(np.exp(chance) for chance, _ in best[0]) <= 1 + 1e-9


def test_threads_and_seeds(trees: Treebank, parser: DependencyParser) -> None:
    one, two = (DependencyParser(iterations=2, threads=n).fit(trees) for n in (1, 2))
    assert np.array_equal(one._learnt.scorer.table.slots, two._learnt.scorer.table.slots)
    assert np.array_equal(one._learnt.labeller.weights, two._learnt.labeller.weights)
    other = DependencyParser(iterations=2, seed=1).fit(trees)
    assert not np.array_equal(one._learnt.scorer.table.slots, other._learnt.scorer.table.slots)
    with using_threads(1):
        assert parser.predict(trees).to_bytes() == parser.predict(trees).to_bytes()


def test_inference_can_be_another_than_in_training(trees: Treebank) -> None:
    parser = DependencyParser(order=2, iterations=3, rounds=5).fit(trees)
    assert parser.projective_
    for constraint in ("tree", "exactly-one", "exactly-one-no-2-cycle", "at-most-one", "not-2"):
        other = parser.with_inference(constraint=constraint, rounds=2, decoder="map")
        assert np.mean(other.predict(trees).heads == trees.heads) > 0.9
        assert other.rounds == 2 and other.decoder == "map" and parser.rounds == 5
    with pytest.raises(ParameterError):
        parser.with_inference(constraint="forest").predict(trees)


def test_nothing_is_lost_without_pruning(trees: Treebank) -> None:
    every, few = (DependencyParser(iterations=3, prune=prune).fit(trees) for prune in (0.0, 1e-3))
    assert every._learnt.filter is None and few._learnt.filter is not None
    assert np.mean(every.predict(trees).heads == few.predict(trees).heads) > 0.97


def test_part_of_the_heads_is_enough_and_the_rest_is_filled_in(trees: Treebank) -> None:
    heads = trees.heads.copy()
    heads[::3] = -1
    partial = trees.with_columns(heads=heads)
    found = DependencyParser(iterations=8).fit(partial).predict(trees)
    known = heads >= 0
    assert np.mean(found.heads[known] == trees.heads[known]) > 0.97
    assert np.mean(found.heads[~known] == trees.heads[~known]) > 0.4
    assert (
        np.mean(DependencyParser(trainer="mira", iterations=4).fit(partial).predict(trees).heads == trees.heads) > 0.6
    )


def test_saved_parsers_are_the_same(trees: Treebank, parser: DependencyParser, tmp_path: Path) -> None:
    parser.save(tmp_path / "model")
    again = DependencyParser.load(tmp_path / "model")
    assert again.predict(trees, confidence=True).to_bytes() == parser.predict(trees, confidence=True).to_bytes()
    assert isinstance(store.load(tmp_path / "model"), DependencyParser) and again.options_ == parser.options_
    saved = store.read(tmp_path / "model")
    for name, least in (("table", 2), ("filter.table", 100), ("label.table", 1), ("label.rows", 1), ("joint.rows", 1)):
        arrays = {**saved.arrays, name: saved.arrays[name][:-least]}
        store.save(tmp_path / "bad", kind=saved.kind, options=saved.options, arrays=arrays, meta=saved.meta)
        with pytest.raises(ModelError, match=r"bad.*(array|no table)"):
            DependencyParser.load(tmp_path / "bad")
    full = {**saved.arrays, "table": np.ones_like(saved.arrays["table"])}  # a search in it would never end
    store.save(tmp_path / "bad", kind=saved.kind, options=saved.options, arrays=full, meta=saved.meta)
    with pytest.raises(ModelError, match="no table"):
        DependencyParser.load(tmp_path / "bad")
    store.save(tmp_path / "bad", kind=saved.kind, options=saved.options, arrays=saved.arrays, meta={})
    with pytest.raises(ModelError, match="damaged"):
        DependencyParser.load(tmp_path / "bad")


def test_explanations_add_up_to_the_score(trees: Treebank, parser: DependencyParser) -> None:
    for word in (0, 4):
        found = parser.explain(trees, 2, word)
        for name in ("head", "rival"):
            link = found[name]
            assert sum(entry["weight"] for entry in link["features"]) == pytest.approx(link["score"], abs=1e-4)
        assert sum(entry["weight"] for entry in found["difference"]) == pytest.approx(
            found["head"]["score"] - found["rival"]["score"], abs=1e-4
        )
        assert found["head"]["probability"] >= found["rival"]["probability"]
        alone = trees.part(2, 3)
        (whole,) = parser._trees(encode(alone, parser._learnt.columns))
        totals = []
        for name in ("head", "rival"):
            known = np.full(alone.n_words, -1)
            known[word] = found[name]["number"]
            totals.append(whole.layout.indicate(best_trees(whole.having(known), "mbr")) @ whole.scores.values)
        assert sum(entry["score"] for entry in found["parts"]) == pytest.approx(totals[0] - totals[1])
        assert {entry["tree"] for entry in found["parts"]} == {"head", "rival"}
        assert found["parts"][0]["part"] == "link" and " → " in found["parts"][0]["words"]
    learnt = parser._learnt
    alone = trees.part(2, 3)
    names = features_of_link(learnt, alone, 3, 1)
    assert any(entry["feature"].startswith("head.tag=") for entry in names)
    assert parser.explain(trees, 2, 0, rival=0)["rival"]["word"] == "ROOT"
    assert any(parser.explain(trees, 2, word, rival=0)["parts"] == [] for word in range(4))  # it is not a candidate
    for place in ((99, 0), (0, 99)):
        with pytest.raises(ParameterError, match="explain"):
            parser.explain(trees, *place)


def test_sentences_of_no_word_and_of_one(parser: DependencyParser) -> None:
    found = parser.predict(Treebank.of([[], [("Ja", "INTJ")], []]))
    assert found.heads.tolist() == [0] and len(found) == 3
    assert len(parser.predict(Treebank.of([]))) == 0
    assert parser.entropy(Treebank.of([])).shape == (0,)


def test_very_long_sentences_are_parsed_in_pieces(parser: DependencyParser, trees: Treebank) -> None:
    words = [("Die", "DET"), ("Frau", "NOUN"), ("liest", "VERB"), (".", "PUNCT")] * 350
    found = parser.predict(Treebank.of([words[:4], words, words[:5]]))
    found.check_trees()
    assert found.heads[:4].tolist() == parser.predict(Treebank.of([words[:4]])).heads.tolist()
    long = found.part(1, 2)
    pieces = cut(long.offsets)
    assert np.diff(pieces).max() <= LONGEST and len(pieces) == 7
    assert np.count_nonzero(long.heads == 0) == 1
    with pytest.warns(IsoglossWarning, match="1 of 25 sentences"):
        odd = [("x", "X", 0, "root")] + [("y", "X", 1, "dep")] * LONGEST
        assert DependencyParser(order=1, iterations=1).fit(Treebank.of([*rows_of(trees), odd])).n_features_ > 0


def rows_of(trees: Treebank) -> list[list[tuple[str, str, int, str]]]:
    """Sentences as lists of (form, tag, head, relation)."""
    return [
        list(
            zip(
                trees.words(s), trees.strings("upos", s), trees.heads[trees.offsets[s] : trees.offsets[s + 1]].tolist(),
                trees.strings("deprel", s), strict=True,
            )
        )
        for s in range(len(trees))
    ]  # fmt: skip


def test_what_cannot_be_learnt_is_refused(trees: Treebank, parser: DependencyParser) -> None:
    with pytest.raises(TreebankError, match="no word has a head"):
        DependencyParser().fit(Treebank.of([[("a", "X"), ("b", "X")]]))
    two = Treebank.of([[("a", "X", 0, "root"), ("b", "X", 0, "root")]])
    with pytest.raises(TreebankError, match=r"line 2.*both the root"):
        DependencyParser().fit(two)
    assert DependencyParser(single_root=False, iterations=2).fit(two).predict(two).heads.tolist() == [0, 0]
    cycle = Treebank.of([[("a", "X", 2, "dep"), ("b", "X", 1, "dep"), ("c", "X", 0, "root")]])
    for single in (True, False):
        with pytest.raises(TreebankError, match="own ancestor"):
            DependencyParser(single_root=single).fit(cycle)
    with pytest.raises(TreebankError, match="no word has a tag in column upos"):
        parser.predict(Text.of(["das Haus"]))
    with pytest.raises(UsageError, match="learnt nothing"):
        DependencyParser().predict(trees)


@pytest.mark.parametrize(
    "options",
    [{"order": 3}, {"order": 1, "factors": ["grand"]}, {"order": 2, "factors": ["uncles"]}, {"constraint": "forest"},
     {"prune": 1.0}, {"support": "most"}, {"rounds": 0}, {"trainer": "em"}, {"decoder": "best"}, {"tags": "none"},
     {"iterations": 0}, {"rate": 0.0}, {"l2": -1.0}, {"templates": ["head.colour"]}, {"templates": ["head.tag[+3]"]}],
)  # fmt: skip
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        DependencyParser(**options).check_params()


class Stop(QuietProgress):
    """Sends Ctrl-C in the middle of a pass."""

    def __init__(self, stage: str, at: int) -> None:
        self.stage, self.at, self.now, self.done = stage, at, "", 0.0

    def start(self, name: str, total: float | None = None) -> None:
        self.now, self.done = name, 0.0

    def update(self, done: float, detail: str = "") -> None:
        self.done = done

    def within(self, fraction: float) -> None:
        if self.now == self.stage and self.done == self.at:
            self.at = -1
            signal.raise_signal(signal.SIGINT)


def model_files(parser: DependencyParser, place: Path) -> dict[str, bytes]:
    parser.save(place)
    return {path.name: path.read_bytes() for path in place.iterdir()}


@pytest.mark.parametrize(("options", "at", "dev"), [
    ({}, 0, False), ({}, 3, True), ({"labels": "second", "order": 1}, 2, True),
    ({"trainer": "mira", "order": 1}, 1, False),
])  # fmt: skip
def test_interrupted_learning_is_resumed_to_the_bit(
    trees: Treebank, tmp_path: Path, options: dict[str, Any], at: int, dev: bool
) -> None:
    given, place = (trees, trees.part(0, 8) if dev else None), tmp_path / "checkpoint"
    with pytest.raises(Interrupted, match=f"keeps iteration {at + 1} of 5.*resume"):
        DependencyParser(iterations=5, **options).fit(*given, Stop("Learning links", at), checkpoint=place)
    resumed = DependencyParser(iterations=5, **options).fit(*given, checkpoint=place, resume=True)
    whole = DependencyParser(iterations=5, **options).fit(*given)
    assert model_files(resumed, tmp_path / "resumed") == model_files(whole, tmp_path / "whole")
    with pytest.raises(UsageError, match=r"another run: .*options\.seed was 0 and is 1"):
        DependencyParser(iterations=5, seed=1, **options).fit(*given, checkpoint=place, resume=True)
    asked = Stop("nothing", 0)
    with pytest.raises(UsageError, match="another run: data was"):
        DependencyParser(iterations=5, **options).fit(trees.part(0, 20), given[1], asked, checkpoint=place, resume=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="this is a file"):
        DependencyParser(**options).fit(*given, asked, checkpoint=tmp_path / "file")
    assert asked.now == ""  # before any work


# --- the command line -------------------------------------------------------------------------------------------------


def run(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


@pytest.fixture
def files(tmp_path: Path, trees: Treebank) -> Path:
    trees.write(tmp_path / "train.conllu.gz")
    trees.part(0, 8).write(tmp_path / "dev.conllu")
    return tmp_path


def test_from_the_command_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, dev, model = files / "train.conllu.gz", files / "dev.conllu", files / "model"
    assert run("parse", "train", train, "--dev", dev, "--save", model, "--iterations", 6, "--json", "-q") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["sentences"] == 24 and summary["dev"] > 90 and summary["projective"]
    out = files / "out.conllu.gz"
    assert run("parse", "apply", model, dev, "-o", out, "--confidence") == 0
    assert "8 sentences" in capsys.readouterr().err
    text = gzip.decompress(out.read_bytes()).decode()
    assert "Confidence=" in text and text.splitlines()[1] == dev.read_text().splitlines()[0]
    assert text.startswith("# isogloss_predicted = HEAD DEPREL")
    assert run("parse", "score", out, dev, "--json") == 0
    scored = json.loads(capsys.readouterr().out)
    assert {"uas", "las", "clas"} <= scored.keys() and scored["uas"] > 90
    assert sorted(scored["left_out"]) == ["ufeats", "upos", "xpos"]  # the tags are those of dev
    assert run("parse", "score", out, dev) == 0
    assert capsys.readouterr().out.startswith("uas")


def test_resuming_from_the_command_line(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, kept = files / "model", files / "model.checkpoint"
    train = ("parse", "train", files / "train.conllu.gz", "--save", model, "--iterations", 4)
    for stage, words in (
        ("Choosing links", "Choosing links: stopped by Ctrl-C. Nothing was kept\n"),
        ("Learning links", "model.checkpoint keeps iteration 2 of 4: run the same again with --resume"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr("isogloss.cli.parse.progress_for", lambda quiet, stage=stage: Stop(stage, 1))
            assert run(*train, *(["--resume"] if kept.exists() else [])) == 130
        assert words in capsys.readouterr().err
        assert kept.exists() == (stage != "Choosing links") and not model.exists()
    assert run("parse", "apply", kept, files / "dev.conllu") == 1
    assert "not a finished model. Continue it with --resume" in capsys.readouterr().err
    assert run(*train, "--resume") == 0 and not kept.exists()
    assert run(*train[:4], files / "other", *train[5:]) == 0
    assert (files / "other" / store.ARRAYS).read_bytes() == (model / store.ARRAYS).read_bytes()
    assert "no checkpoint" not in capsys.readouterr().err
    assert run(*train, "--resume") == 0
    assert "no checkpoint yet, so this starts from the beginning" in capsys.readouterr().err


def test_predicted_tags_from_the_command_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out, text = files / "model", files / "out.conllu", files / "plain.txt"
    options = ("--tags", "predicted", "--iterations", 6, "-q")
    assert (
        run("parse", "train", files / "train.conllu.gz", "--dev", files / "dev.conllu", "--save", model, *options) == 0
    )
    text.write_text("Die Frau liest ein Buch .\n", encoding="utf-8")
    assert run("parse", "apply", model, text, "-o", out, "-q") == 0
    found = Treebank.read(out)
    assert found.heads.tolist() == [2, 3, 0, 5, 3, 3] and found.strings("upos", 0)[:3] == ("DET", "NOUN", "VERB")
    capsys.readouterr()


@pytest.mark.parametrize(
    ("bad", "status", "finding"),
    [
        ("1\ta\t_\tX\t_\t_\t2\tdep\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n\n", 1, "ancestor"),
        ("1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\t_\t0\troot\t_\t_\n\n", 1, "both the root"),
        ("1\ta\t_\tX\t_\t_\t5\troot\t_\t_\n\n", 1, "head '5'"),
        ("1\ta\tX\t0\troot\n\n", 1, "line 1"),
        ("2\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n", 1, "line 1"),
    ],
)  # fmt: skip
def test_bad_treebanks_are_named(
    tmp_path: Path, bad: str, status: int, finding: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    (tmp_path / "bad.conllu").write_text(bad)
    assert run("parse", "train", tmp_path / "bad.conllu", "--save", tmp_path / "model", "-q") == status
    error = capsys.readouterr().err
    assert "bad.conllu" in error and finding in error
    assert not (tmp_path / "model").exists()


def test_wrong_calls(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = files / "train.conllu.gz"
    assert run("parse", "train", train, "--save", files / "model", "--order", 3) == 2
    assert run("parse", "train", train, "--save", files / "model", "--order", 1, "--factors", "grand") == 2
    assert "order 2" in capsys.readouterr().err
    assert run("parse", "train", train, "--save", files / "none" / "model") == 2
    assert run("parse", "apply", files / "model", train, "-o", files / "out.conllu") == 2
    assert not (files / "out.conllu").exists()
    assert run("parse", "train", "-", "--dev", "-", "--save", files / "model") == 2
    assert run("parse", "train", train, "--save", files / "model", "--tags", "silver") == 2
    capsys.readouterr()
