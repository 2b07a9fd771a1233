"""Treebanks that are not what they should be, as a new user meets them: every command says where, what and what to do,
and nothing that was there before is lost."""

from __future__ import annotations

import gzip
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isogloss import cli
from isogloss.data.treebank import Treebank
from isogloss.progress import QuietProgress

SENTENCES = [
    [("the", "DET", 2, "det"), ("dog", "NOUN", 3, "nsubj"), ("sleeps", "VERB", 0, "root")],
    [("a", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("eats", "VERB", 0, "root")],
    [("she", "PRON", 2, "nsubj"), ("sees", "VERB", 0, "root"), ("the", "DET", 4, "det"), ("cat", "NOUN", 2, "obj")],
]
BARE = Treebank.of(SENTENCES * 3).to_bytes()
BLOCKS = BARE.decode().strip().split("\n\n")
GOOD = "".join(f"# sent_id = s{number}\n{block}\n\n" for number, block in enumerate(BLOCKS, start=1)).encode()


def changed(old: str, new: str, text: bytes = GOOD) -> bytes:
    """The first of something, as something else; rows are written with spaces here."""
    old, new = (row.replace(" ", "\t") for row in (old, new))
    assert old.encode() in text
    return text.replace(old.encode(), new.encode(), 1)


# What no command can read: the place, the finding, the remedy. The second sentence begins in line 6 with its comment.
UNREADABLE = {
    "a missing column": (changed("1 a _ DET _", "1 a DET _"), ["line 7, sentence s2", "9 columns", "one tab"]),
    "spaces for tabs": (
        GOOD.replace(b"1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_", b"1 a _ DET _ _ 2 det _ _"),
        ["line 7, sentence s2", "1 column where", "between spaces: put one tab"],
    ),
    "a bad id": (changed("2 cat", "x cat"), ["line 8, sentence s2", "'x', not the number of a word", "Write 1, 2"]),
    "a lost line": (changed("2 cat", "3 cat"), ["line 8, sentence s2", "word '3' where word 2", "is a line lost"]),
    "a head out of range": (
        changed("2 cat _ NOUN _ _ 3", "2 cat _ NOUN _ _ 9"),
        ["line 8, sentence s2", "head '9' in a sentence of 3 words", "Give 1 to 3, 0 for the root, or _"],
    ),
    "a head that is no number": (
        changed("2 cat _ NOUN _ _ 3", "2 cat _ NOUN _ _ two"),
        ["line 8, sentence s2", "head 'two' is not a number", "0 for the root"],
    ),
    "another encoding": (
        GOOD.replace(b"eats", b"\xe9ats", 1),
        ["line 9, sentence s2", "byte e9", "--encoding latin-1"],
    ),
    "UTF-16": (GOOD.decode().encode("utf-16"), ["line 1", "UTF-16", "--encoding utf-16"]),
    "no ids of sentences": (changed("2 cat", "x cat", BARE), ["sentence 2, line 6", "'x', not the number of a word"]),
}

# Sentences that are no trees are read, for they can be tagged, parsed anew and looked at, but are not learnt from.
NO_TREES = {
    "a cycle": (
        changed("3 sleeps _ VERB _ _ 0", "3 sleeps _ VERB _ _ 1", changed("1 the _ DET _ _ 2", "1 the _ DET _ _ 3")),
        ["line 2, sentence s1", "word 1 ('the') is its own ancestor", "Correct one of them"],
    ),
    "its own head": (
        changed("1 the _ DET _ _ 2", "1 the _ DET _ _ 1"),
        ["line 2, sentence s1", "is its own head", "0 for the root"],
    ),
    "two roots": (
        changed("1 the _ DET _ _ 2", "1 the _ DET _ _ 0"),
        ["line 4, sentence s1", "words 1 ('the') and 3 ('sleeps') are both the root", "hang the other on a word"],
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a treebank and what was learnt from it."""
    folder = tmp_path_factory.mktemp("malformed")
    (folder / "good.conllu").write_bytes(GOOD)
    assert cli.main(["tag", "train", str(folder / "good.conllu"), "--save", str(folder / "tagger"), "-q"]) == 0
    train = ["parse", "train", str(folder / "good.conllu"), "--save", str(folder / "parser"), "--iterations", "2", "-q"]
    assert cli.main(train) == 0
    return folder


@pytest.fixture
def run(place: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def call(*arguments: object) -> tuple[int, str]:
        capsys.readouterr()
        status = cli.main([*map(str, arguments), "-q"])
        told = capsys.readouterr()
        assert "Traceback" not in told.err and "our mistake" not in told.err
        return status, told.err

    return call


def commands(place: Path, bad: Path, out: Path) -> dict[str, list[object]]:
    """Every command that reads a treebank, with this one."""
    good = place / "good.conllu"
    return {
        "tag train": ["tag", "train", bad, "--save", out / "tagger"],
        "tag train --dev": ["tag", "train", good, "--dev", bad, "--save", out / "tagger"],
        "tag apply": ["tag", "apply", place / "tagger", bad, "-o", out / "out.conllu"],
        "tag score": ["tag", "score", bad, good, "-o", out / "out.conllu"],
        "parse train": ["parse", "train", bad, "--save", out / "parser"],
        "parse train --dev": ["parse", "train", good, "--dev", bad, "--save", out / "parser"],
        "parse apply": ["parse", "apply", place / "parser", bad, "-o", out / "out.conllu"],
        "parse score": ["parse", "score", good, bad, "--breakdown", "-o", out / "out.conllu"],
        "view": ["view", bad, "-o", out / "out.conllu"],
        "view of two": ["view", good, bad, "--terminal", "-o", out / "out.conllu"],
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def with_old_results(place: Path, folder: Path) -> Path:
    """A folder that has a result and models from before."""
    out = folder / "results"
    out.mkdir()
    (out / "out.conllu").write_bytes(b"precious\n")
    for name in ("tagger", "parser"):
        (out / name).mkdir()
        for path in (place / name).iterdir():
            (out / name / path.name).write_bytes(path.read_bytes())
    return out


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read(case: str, place: Path, run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    data, says = UNREADABLE[case]
    bad, out = tmp_path / "bad.conllu", with_old_results(place, tmp_path)
    bad.write_bytes(data)
    before = contents(out)
    for name, arguments in commands(place, bad, out).items():
        status, told = run(*arguments)
        assert status == 1 and told.count("\n") == 1, (name, status, told)
        for words in ["bad.conllu", *says]:
            assert words in told, name
        assert contents(out) == before, name


@pytest.mark.parametrize("cut", [20, 0.5, -1])
def test_packed_files_that_were_cut_short(
    cut: float, place: Path, run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    packed, bad, out = gzip.compress(GOOD), tmp_path / "bad.conllu.gz", with_old_results(place, tmp_path)
    bad.write_bytes(packed[: int(cut * len(packed)) if cut == 0.5 else int(cut)])
    before = contents(out)
    for name, arguments in commands(place, bad, out).items():
        status, told = run(*arguments)
        assert status == 1 and "bad.conllu.gz: the gzip data end too soon" in told and "`gzip -t`" in told, name
        assert contents(out) == before, name


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# only a comment\n"])
def test_files_without_sentences(data: bytes, place: Path, run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.conllu", with_old_results(place, tmp_path)
    bad.write_bytes(data)
    before = contents(out)
    for name, arguments in commands(place, bad, out).items():
        if name.endswith("apply"):  # nothing in, nothing out
            assert run(*arguments) == (0, "") and (out / "out.conllu").read_bytes() == data, name
            (out / "out.conllu").write_bytes(b"precious\n")
        elif not name.endswith("--dev"):
            status, told = run(*arguments)
            assert status == 1 and "bad.conllu" in told and told.count("\n") == 1, (name, told)
            assert contents(out) == before, name


@pytest.mark.parametrize("case", NO_TREES)
def test_sentences_that_are_no_trees(
    case: str, place: Path, run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    data, says = NO_TREES[case]
    bad, out = tmp_path / "bad.conllu", with_old_results(place, tmp_path)
    bad.write_bytes(data)
    before = contents(out)
    tried = commands(place, bad, out)
    status, told = run(*tried["parse train"])
    assert status == 1 and told.count("\n") == 1 and contents(out) == before
    assert all(words in told for words in ["bad.conllu", *says]), told
    status, told = run(*tried["parse score"])
    assert status == 0 and "warning: " in told and all(words in told for words in ["bad.conllu", *says]), told
    for name in ("tag train", "tag apply", "tag score", "parse apply", "view", "view of two"):
        assert run(*tried[name]) == (0, ""), name
    assert run("parse", "apply", place / "parser", bad, "-o", out / "out.conllu") == (0, "")
    Treebank.read(out / "out.conllu", trees=True)


@pytest.mark.parametrize(
    "data", [GOOD.rstrip(b"\n"), GOOD.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + GOOD, b"\n\n" + GOOD + b"\n\n"]
)
def test_what_is_unusual_but_right(
    data: bytes, place: Path, run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    odd, out = tmp_path / "odd.conllu", with_old_results(place, tmp_path)
    odd.write_bytes(data)
    for name, arguments in commands(place, odd, out).items():
        assert run(*arguments) == (0, ""), name
    assert run("tag", "apply", place / "tagger", odd, "-o", out / "out.conllu") == (0, "")
    note = b"# isogloss_predicted = UPOS\r\n" if b"\r" in data else b"# isogloss_predicted = UPOS\n"
    written = (out / "out.conllu").read_bytes()
    assert written.replace(note, b"") == data  # the tags are learnt by heart, and all else is kept
    assert written.lstrip(b"\xef\xbb\xbf\n").startswith(note) and len(Treebank.read(out / "out.conllu").predicted) == 1


def test_a_sentence_of_five_thousand_words(place: Path, run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    """Parsing such a one takes an hour (the time grows with the cube of the length), so that is not tried."""
    words = [(f"w{k}", "X", k, "dep" if k else "root") for k in range(5000)]
    Treebank.of([words]).write(tmp_path / "long.conllu")
    files = [tmp_path / "long.conllu", tmp_path / "long.conllu"]
    status, said = run("tag", "apply", place / "tagger", files[0], "-o", tmp_path / "tagged.conllu")
    assert status == 0 and said.count("\n") == 1 and "is it of the same language?" in said
    assert run("parse", "score", *files, "--breakdown", "-o", tmp_path / "score") == (0, "")
    assert run("view", files[0], "--terminal", "-o", tmp_path / "drawn") == (0, "")
    assert run("view", files[0], "-o", tmp_path / "page.html") == (0, "")
    assert len((tmp_path / "drawn").read_text(encoding="utf-8").splitlines()) == 5001


# Interruption --------------------------------------------------------------------------------------------------------


class Interrupting(QuietProgress):
    """Sends a signal to its own process when the work is half done."""

    def __init__(self, number: int) -> None:
        self.number = number

    def update(self, done: float, detail: str = "") -> None:
        os.kill(os.getpid(), self.number)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_lost_when_work_is_stopped(
    number: int, place: Path, run: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = with_old_results(place, tmp_path)
    before = contents(out)
    for module in ("isogloss.cli.tag", "isogloss.cli._tag_training", "isogloss.cli.parse"):
        monkeypatch.setattr(f"{module}.progress_for", lambda quiet: Interrupting(number))
    text = Treebank.to_bytes

    def stopped(self: Treebank, *arguments: Any) -> bytes:
        os.kill(os.getpid(), number)
        return text(self, *arguments)

    monkeypatch.setattr(Treebank, "to_bytes", stopped)
    tried = commands(place, place / "good.conllu", out)
    for name in ("tag train", "tag apply", "parse train", "parse apply"):
        status, told = run(*tried[name])
        assert status == 130 and "stopped by " in told, (name, told)
        assert contents(out) == before, name
        assert sorted(path.name for path in out.iterdir()) == ["out.conllu", "parser", "tagger"], name
