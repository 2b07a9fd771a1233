"""`isogloss view` of treebanks: one or two, in the terminal, as a page, as a picture."""

from __future__ import annotations

import contextlib
import doctest
import gzip
import io
import json
import re
import shlex
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from isogloss import cli
from isogloss.data.treebank import Treebank

SENTENCES = [
    [("the", "DET", 2, "det"), ("dog", "NOUN", 3, "nsubj"), ("sleeps", "VERB", 0, "root")],
    [("a", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("eats", "VERB", 0, "root")],
    [("she", "PRON", 2, "nsubj"), ("sees", "VERB", 0, "root"), ("the", "DET", 4, "det"), ("cat", "NOUN", 2, "obj")],
]
SVG = "{http://www.w3.org/2000/svg}"


class Said:
    """What a command printed, and how it ended."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def view(capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def call(*arguments: object) -> Said:
        capsys.readouterr()
        status = cli.main(["view", *map(str, arguments)])
        return Said(status, *capsys.readouterr())

    return call


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    Treebank.of(SENTENCES).write(tmp_path / "gold.conllu")
    return tmp_path / "gold.conllu"


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """One other label in the second sentence, two other heads in the third, and confidences."""
    heads = [2, 3, 0, 2, 3, 0, 2, 0, 2, 3]
    labels = [word[3] for sentence in SENTENCES for word in sentence]
    labels[4] = "obj"
    trees = Treebank.of(SENTENCES).with_columns(heads=heads, deprel=labels)
    trees.with_misc("Confidence", ["0.75"] * 10).write(tmp_path / "ours.conllu")
    return tmp_path / "ours.conllu"


def test_one_treebank_in_the_terminal(view, gold: Path) -> None:  # type: ignore[no-untyped-def]
    said = view(gold, "--terminal", "--limit", 1)
    assert said.out.splitlines() == [
        "  ╭─▶ 1 the     DET   det",
        "╭─┴─▶ 2 dog     NOUN  nsubj",
        "╰───● 3 sleeps  VERB  root",
        "sentence 1: 3 words",
    ]
    assert said.status == 0 and said.err == ""
    chosen = view(gold, "--terminal", "--line", 3, "--sentence", 1).out
    assert re.findall("sentence [0-9]", chosen) == ["sentence 3", "sentence 1"]


def test_two_treebanks_the_most_different_first(view, ours: Path, gold: Path) -> None:  # type: ignore[no-untyped-def]
    said = view(ours, gold, "--terminal")
    assert re.findall("sentence [0-9]", said.out) == ["sentence 3", "sentence 2"]
    assert "2 of 3 sentences differ, and they are shown" in said.err
    assert said.out.count("≠") == 3 and "0.75" in said.out
    assert said.out == view(ours, "--gold", gold, "--terminal").out == view(ours, "--compare", gold, "--terminal").out
    same = view(gold, gold, "--terminal")
    assert (same.status, same.out) == (0, "") and "all 3 sentences are the same in both" in same.err
    assert "no difference" in view(gold, gold, "--terminal", "--line", 1).out


def test_a_page_and_a_picture(view, ours: Path, gold: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert view(ours, gold, "-o", tmp_path / "page.html", "-q").err == ""
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2 and page.index('data-number="3"') < page.index('data-number="2"')
    assert "ours.conllu – gold.conllu" in page and "<dd><bdi>80.00</bdi></dd>" in page  # eight of ten heads
    assert view(gold, "--title", "Mine").out.count("<svg") == 3  # stdout is not a terminal here
    assert view(ours, gold, "--line", 1, "-o", tmp_path / "tree.svg").status == 0
    root = ElementTree.fromstring((tmp_path / "tree.svg").read_text(encoding="utf-8"))
    assert len(root.findall(f"{SVG}g")) == 6  # three links of each tree
    several = view(gold, "-o", tmp_path / "several.svg")
    assert several.status == 2 and "one tree, and there are 3" in several.err and "--line N" in several.err
    assert not (tmp_path / "several.svg").exists()


def test_the_page_has_the_scores_of_parse_score(view, capsys, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    gold = Treebank.of([*SENTENCES, [("well", "INTJ", -1, "_"), ("ok", "INTJ", 0, "root")]])
    heads = [2, 3, 0, 2, 3, 0, 2, 0, 2, 3, 2, 0]
    labels = ["det", "nsubj:pass", "root", "det", "obj", "root", "nsubj", "root", "det", "obj", "discourse", "root"]
    gold.write(tmp_path / "gold.conllu")
    gold.with_predictions(heads=heads, deprel=labels).write(tmp_path / "ours.conllu")
    files = [tmp_path / "ours.conllu", tmp_path / "gold.conllu"]
    page = view(*files).out
    assert cli.main(["parse", "score", *map(str, files), "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)
    assert scored["heads"] == 11 and scored["uas"] > scored["las"]
    for name in ("uas", "las"):
        assert f"<dt>{name.upper()} against gold.conllu</dt><dd><bdi>{scored[name]:.2f}</bdi></dd>" in page
    gold.with_columns(heads=[-1] * 12).write(tmp_path / "tags.conllu")
    assert "UAS" not in view(files[0], tmp_path / "tags.conllu").out


def test_treebanks_are_known_by_name_by_content_and_by_format(  # type: ignore[no-untyped-def]
    view, gold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = view(gold, "--terminal").out
    (tmp_path / "packed.conllu.gz").write_bytes(gzip.compress(gold.read_bytes()))
    (tmp_path / "plain").write_bytes(b"\xef\xbb\xbf# text = the dog sleeps\n" + gold.read_bytes())
    rows = [line.split("\t")[:8] for line in gold.read_text().splitlines()]
    (tmp_path / "eight.conll").write_text("".join("\t".join(row) + "\n" for row in rows))
    assert view(tmp_path / "packed.conllu.gz", "--terminal").out == drawn
    assert view(tmp_path / "plain", "--terminal").out == drawn
    assert view(tmp_path / "eight.conll", "--terminal").out == drawn
    (tmp_path / "eight").write_bytes((tmp_path / "eight.conll").read_bytes())
    assert view(tmp_path / "eight", "--format", "conllx", "--terminal").out == drawn
    with open(gold) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert view("-", "--format", "conllu", "--terminal").out == drawn


def test_tags_of_the_language_stand_in_for_universal_ones(view, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    Treebank.of([[{"form": "Haus", "xpos": "NN", "head": 0}]]).write(tmp_path / "x.conllu")
    assert view(tmp_path / "x.conllu", "--terminal").out.splitlines()[0] == "● 1 Haus  NN"


def test_colours_in_a_terminal_only(  # type: ignore[no-untyped-def]
    view, ours: Path, gold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" not in view(ours, gold, "--terminal").out
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True, raising=False)
    assert "\x1b[31;1m" in view(ours, gold).out and "<svg" not in view(ours, gold).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in view(ours, gold).out


def test_what_cannot_be_drawn(view, ours: Path, gold: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    def says(status: int, *arguments: object) -> str:
        said = view(*arguments)
        assert said.status == status and said.out == "" and said.err.count("\n") == 1
        return said.err

    Treebank.of(SENTENCES[:2]).write(tmp_path / "short.conllu")
    assert "ours.conllu has 3 sentences, but " in says(1, ours, tmp_path / "short.conllu")
    Treebank.of([SENTENCES[0], [("a", "DET", 2, "det"), ("cat", "NOUN", 0, "root")]]).write(tmp_path / "words.conllu")
    finding = says(1, ours, tmp_path / "words.conllu")
    assert "ours.conllu, line 5, sentence 2: 3 words, but 2 in" in finding and "words.conllu, line 5" in finding
    other = [[("the", "DET", 2, "det"), ("fox", "NOUN", 3, "nsubj"), ("sleeps", "VERB", 0, "root")]]
    Treebank.of(other).write(tmp_path / "fox.conllu")
    assert "line 2, sentence 1: word 2 is 'dog', but 'fox' in" in says(1, gold, tmp_path / "fox.conllu")
    assert "has 3 sentences. Give a number from 1 to 3" in says(2, gold, "--line", 4)
    assert "two treebanks can be drawn" in says(2, gold, ours, "--gold", gold)
    assert "--model is for two texts" in says(2, gold, "--model", "m")
    assert "--tokenise is for two texts" in says(2, gold, "--tokenise", "unicode")
    (tmp_path / "empty.conllu").write_text("\n")
    assert "has no sentences" in says(1, tmp_path / "empty.conllu")
    (tmp_path / "text").write_text("just words\n")
    assert "or a treebank" in says(2, tmp_path / "text")
    assert "no such file" in says(2, tmp_path / "absent") and "no such file" in says(2, tmp_path / "absent.conllu")
    assert "is to be read and written at once" in says(2, gold, "-o", gold)


def test_the_page_about_treebanks_shows_what_the_commands_print(  # type: ignore[no-untyped-def]
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    page = (Path(__file__).parent.parent / "docs" / "treebanks.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for kind, block in re.findall(r"^```(python|console)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        if kind == "python":
            for example in doctest.DocTestParser().get_examples(block):
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(example.source, "treebanks.md", "single"), names)
            continue
        command, _, printed = block.partition("\n")
        capsys.readouterr()
        assert cli.main(shlex.split(command.removeprefix("$ isogloss "))) == 0
        assert capsys.readouterr().out == printed, command
