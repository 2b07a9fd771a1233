"""`isogloss tag`: train, apply and score, from files to files."""

from __future__ import annotations

import gzip
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from isogloss import cli, samples
from isogloss.data.treebank import Treebank, features_of
from isogloss.tasks.tag.learning import LabelChains

SENTENCES = [
    [("the", "DET", 2, "det"), ("dog", "NOUN", 3, "nsubj"), ("sleeps", "VERB", 0, "root")],
    [("a", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("eats", "VERB", 0, "root")],
    [("she", "PRON", 2, "nsubj"), ("sees", "VERB", 0, "root"), ("the", "DET", 4, "det"), ("cat", "NOUN", 2, "obj")],
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tag")
    data = Treebank.of(SENTENCES * 8).to_bytes()
    (folder / "train.conllu").write_bytes(data)
    (folder / "dev.conllu.gz").write_bytes(gzip.compress(Treebank.of(SENTENCES).to_bytes()))
    train = [
        str(folder / "train.conllu"),
        "--dev",
        str(folder / "dev.conllu.gz"),
        "--save",
        str(folder / "model"),
        "-q",
    ]
    assert cli.main(["tag", "train", *train]) == 0
    return folder


def test_train_apply_score(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = Treebank.of(SENTENCES).with_columns(upos=["_"] * 10)
    bare.write(tmp_path / "in.conllu.gz")
    out = str(tmp_path / "out.conllu")
    assert cli.main(["tag", "apply", str(files / "model"), str(tmp_path / "in.conllu.gz"), "-o", out, "-q"]) == 0
    assert Path(out).read_bytes() == b"# isogloss_predicted = UPOS\n" + Treebank.of(SENTENCES).to_bytes()
    capsys.readouterr()
    assert cli.main(["tag", "score", out, str(files / "dev.conllu.gz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["upos"] == 100 and sorted(found["left_out"]) == ["ufeats", "xpos"] and "uas" not in found
    assert cli.main(["tag", "score", str(tmp_path / "in.conllu.gz"), str(files / "dev.conllu.gz")]) == 1
    assert "in.conllu.gz has no upos" in capsys.readouterr().err


def test_only_what_the_system_wrote_is_scored(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[(*word, word[0], "X", "A=B" if word[1] == "NOUN" else "_") for word in rows] for rows in SENTENCES]
    gold = Treebank.of(rows)
    gold.write(tmp_path / "gold.conllu")
    paths = [str(tmp_path / name) for name in ("gold.conllu", "out.conllu")]
    assert cli.main(["tag", "apply", str(files / "model"), *paths[:1], "-o", paths[1], "-q"]) == 0
    for command in ("tag", "parse"):
        assert cli.main([command, "score", paths[1], paths[0]]) == 0
        told = capsys.readouterr()
        assert "upos   100.00" in told.out and told.err == ""
        assert f"xpos   not scored  (xpos was not predicted: {paths[1]} carries along what was there)" in told.out
    assert cli.main(["tag", "score", paths[1], paths[0], "--columns", "xpos,feats", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["xpos"] == found["ufeats"] == 100 and "upos" not in found
    assert cli.main(["tag", "score", paths[1], paths[0], "--columns", "head"]) == 2
    assert "give some of upos,xpos,feats" in capsys.readouterr().err
    assert cli.main(["parse", "score", paths[1], paths[0], "--breakdown"]) == 2
    assert "head was not predicted" in capsys.readouterr().err


def test_columns_of_other_systems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[(*word, word[0], "X", "A=B") for word in rows] for rows in SENTENCES]
    gold = Treebank.of(rows)
    gold.write(tmp_path / "gold.conllu")
    gold.with_columns(upos=["X"] * 10, feats=["_"] * 10).write(tmp_path / "out.conllu")
    paths = [str(tmp_path / name) for name in ("out.conllu", "gold.conllu")]
    assert cli.main(["tag", "score", *paths]) == 0
    told = capsys.readouterr()
    assert f"ufeats not scored  ({paths[0]} has no feats)" in told.out and "upos     0.00" in told.out
    assert "xpos: " in told.err and "--columns upos" in told.err  # it may have been copied, nobody knows
    assert cli.main(["tag", "score", *paths, "--columns", "feats"]) == 0
    assert capsys.readouterr().out.startswith("ufeats ")


def test_text_becomes_conllu(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("the cat sleeps\n\nshe sees a dog\n")
    assert cli.main(["tag", "apply", str(files / "model"), str(tmp_path / "in.txt"), "--confidence"]) == 0
    told = capsys.readouterr()
    assert "1 empty line has no place" in told.err and "2 sentences" in told.err
    comments = [line for line in told.out.splitlines() if line.startswith("#")]
    assert comments[0] == "# isogloss_predicted = UPOS"
    assert comments[1:] == ["# sent_id = 1", "# text = the cat sleeps", "# sent_id = 3", "# text = she sees a dog"]
    rows = [line.split("\t") for line in told.out.splitlines() if line and not line.startswith("#")]
    assert [(row[1], row[3]) for row in rows[:3]] == [("the", "DET"), ("cat", "NOUN"), ("sleeps", "VERB")]
    assert all(row[9].startswith("UposConfidence=") for row in rows)


RAW = 'The cat sleeps, she  said:\t"a dog!"\r\nl\'homme 1,000.5 猫が好き <b>cat</b>\n'


@pytest.mark.parametrize("mode", ["space", "unicode", "characters"])
def test_the_line_can_be_made_again(mode: str, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "raw.txt").write_bytes(RAW.encode())
    asked = ["tag", "apply", str(files / "model"), str(tmp_path / "raw.txt"), "--tokenise", mode, "-q"]
    assert cli.main(asked) == 0
    found = Treebank.from_bytes(capsys.readouterr().out.encode())
    assert found.comments("text") == tuple(RAW.replace("\r", "").splitlines())
    for sentence, line in enumerate(found.comments("text")):
        made = ""
        for word, misc in zip(found.words(sentence), found.strings("misc", sentence), strict=True):
            after = features_of(misc)
            spaces = after.get("SpacesAfter", "" if "SpaceAfter" in after else r"\s")
            made += word + spaces.replace(r"\s", " ").replace(r"\t", "\t")
        assert made.removesuffix(" ") == line
    if mode == "unicode":
        assert found.words(0) == ("The", "cat", "sleeps", ",", "she", "said", ":", '"', "a", "dog", "!", '"')


def test_a_treebank_says_itself_what_a_word_is(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["tag", "apply", str(files / "model"), str(files / "train.conllu"), "--tokenise", "unicode"]
    assert cli.main(asked) == 2 and "--tokenise is for plain text" in capsys.readouterr().err
    learning = ["tag", "train", str(files / "train.conllu"), "--save", str(files / "other"), "--tokenise", "unicode"]
    assert cli.main(learning) == 2 and "--tokenise is for plain text" in capsys.readouterr().err


def test_a_tagger_of_plain_text_reads_as_it_learnt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "words.tsv").write_text("the\tDET\ndog\tNOUN\nsleeps\tVERB\n!\tPUNCT\n")
    (tmp_path / "raw.txt").write_text("The dog sleeps!\n" * 5)
    text, model = str(tmp_path / "raw.txt"), str(tmp_path / "model")
    learning = [text, "--dictionary", str(tmp_path / "words.tsv"), "--tagset", "ud17", "--tokenise", "unicode"]
    assert cli.main(["tag", "train", *learning, "--save", model, "-q"]) == 0
    capsys.readouterr()
    assert cli.main(["tag", "apply", model, text, "-q"]) == 0
    assert capsys.readouterr().out.count("SpaceAfter=No") == 5
    assert cli.main(["tag", "apply", model, text, "--tokenise", "space"]) == 2
    assert "--tokenise unicode" in capsys.readouterr().err


def test_text_of_another_language_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    english, german = (samples.path("en-de", side) for side in ("source-trees", "target-trees"))
    train = ["tag", "train", str(english), "--save", str(tmp_path / "model"), "--iterations", "1", "-q"]
    assert cli.main(train) == 0
    capsys.readouterr()
    for text, strange in ((english, False), (german, True), (samples.path("en-de", "target"), True)):
        assert cli.main(["tag", "apply", str(tmp_path / "model"), str(text), "-q"]) == 0
        said = capsys.readouterr().err
        assert ("is it of the same language?" in said) == strange and said.count("\n") == strange


def test_json_of_training(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save = ["--save", str(tmp_path / "model"), "--order", "1", "--iterations", "2", "--json", "-q"]
    assert cli.main(["tag", "train", str(files / "train.conllu"), *save]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sentences"] == 24 and told["columns"]["upos"]["labels"] == 4 and told["columns"]["upos"]["passes"] == 2


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["trian"], 2, "Did you mean 'train'"),
        (["train", "TRAIN", "--save", "M", "--column", "lemma"], 2, "not one of upos, xpos, feats"),
        (["train", "TRAIN", "--save", "M", "--column", "upos,upos"], 2, "twice"),
        (["train", "TRAIN", "--save", "M", "--column", "xpos"], 1, "column xpos"),
        (["train", "nowhere.conllu", "--save", "M"], 2, "nowhere.conllu"),
        (["train", "TRAIN"], 2, "--save"),
        (["apply", "nowhere", "TRAIN"], 2, "no such saved model"),
        (["score", "-", "-"], 2, "standard input"),
    ],
)
def test_what_is_wrong_is_said(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, words: str
) -> None:
    places = {"TRAIN": str(files / "train.conllu"), "M": str(tmp_path / "M")}
    assert cli.main(["tag", *(places.get(word, word) for word in arguments)]) == status
    assert words in capsys.readouterr().err and not (tmp_path / "M").exists()


def test_bad_lines_are_named(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.conllu").write_text("1\ta\t_\n\n")
    assert (
        cli.main(["tag", "apply", str(files / "model"), str(tmp_path / "bad.conllu"), "-o", str(tmp_path / "o")]) == 1
    )
    assert "line 1" in capsys.readouterr().err and not (tmp_path / "o").exists()


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tag", "--help"]) == 0
    told = capsys.readouterr().out
    assert all(f"\n  {name} " in told for name in ("train", "apply", "score"))
    assert cli.main(["tag", "train", "--help"]) == 0
    assert "--dev DEV" in capsys.readouterr().out


def test_an_interrupted_command_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    trees = Treebank.from_bytes(samples.trees("en-de", "target").encode(), "de.conllu")
    tags = [tag.lower() for s in range(len(trees)) for tag in trees.strings("upos", s)]
    (tmp_path / "de.conllu").write_bytes(trees.with_columns(xpos=tags).to_bytes())
    train = ["tag", "train", str(tmp_path / "de.conllu"), "--column", "upos,xpos", "--iterations", "3", "-q"]
    assert cli.main([*train, "--save", str(tmp_path / "whole")]) == 0
    passes, before = [], LabelChains.ftrl_pass

    def stopping(self: Any, *given: Any) -> float:
        passes.append(1)
        if len(passes) == 5:
            signal.raise_signal(signal.SIGINT)
        return before(self, *given)

    monkeypatch.setattr(LabelChains, "ftrl_pass", stopping)
    assert cli.main([*train, "--save", str(tmp_path / "model")]) == 130
    assert "--resume" in capsys.readouterr().err and (tmp_path / "model.checkpoint.xpos").is_dir()
    assert cli.main([*train, "--save", str(tmp_path / "model"), "--resume"]) == 0
    assert len(passes) == 5 + 3 + 1 and not list(
        tmp_path.glob("model.checkpoint*")
    )  # upos again, then the rest of feats
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "model"))
    assert one == two
    assert cli.main(["tag", "train", str(tmp_path / "de.conllu"), "--dictionary", "x", "--save", "y", "--resume"]) == 2
    assert "--resume has no meaning" in capsys.readouterr().err
