"""Reading options of all commands: encodings, of both sides or of each, and columns and languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Call

TREE = "1\tdas\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\t{}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small files of all kinds, in the current directory."""
    for name, text in {
        "de": "das Haus\ndas Café\n",
        "en": "the house\nthe café\n",
        "bars": "das Haus ||| the house\n",
        "links": "0-0 1-1\n0-0 1-1\n",
        "trees.conllu": TREE.format("Haus") + TREE.format("Café"),
        "dictionary": "das\tDET\nHaus\tNOUN\n",
    }.items():
        (tmp_path / name).write_bytes(text.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


TWO_FILES = [
    "align de en",
    "doctor de en",
    "filter de en -o kept.de kept.en",
    "lexicon de en links",
    "phrases de en links",
    "score links links --source-file de --target-file en",
    "suggest de en",
    "tag train --bitext de en --source-tags trees.conllu --save model",
    "train-aligner matching de en links --save model",
    "transfer-markup de en links",
    "view de en links --terminal",
]
ONE_FILE = [
    "align bars",
    "dictionary stats dictionary de",
    "parse train trees.conllu --save model",
    "parse train-joint trees.conllu --save model",
    "parse score trees.conllu trees.conllu",
    "tag score trees.conllu trees.conllu",
    "tag train trees.conllu --save model",
    "tag train de --dictionary dictionary --save model",
    "transfer-markup de --strip",
    "view trees.conllu",
]
NOT_OF_TEXT = ["klingon", "idna", "rot13", "base64", "undefined", "punycode"]


@pytest.mark.parametrize("line", [*ONE_FILE, *TWO_FILES])
def test_an_encoding_that_cannot_be_is_said_in_a_sentence(isogloss: Call, folder: Path, line: str) -> None:
    for encoding in NOT_OF_TEXT:
        answer = isogloss(*line.split(), "--encoding", encoding)
        assert answer.status == 2 and answer.err.count("\n") == 1, (encoding, answer)
        assert (
            f"encoding should be a text encoding that Python knows (utf-8, latin-1, utf-16, ...), not '{encoding}'"
            in (answer.err)
        )


def recoded(path: Path, encoding: str) -> None:
    path.write_bytes(path.read_bytes().decode().encode(encoding))


@pytest.mark.parametrize("line", [*ONE_FILE, *(line for line in TWO_FILES if not line.startswith("doctor"))])
def test_a_missing_byte_order_mark_is_said_in_a_sentence(isogloss: Call, folder: Path, line: str) -> None:
    for name in ("de", "en", "bars", "trees.conllu", "dictionary"):
        recoded(folder / name, "utf-16-le")
    answer = isogloss(*line.split(), "--encoding", "utf-16")
    assert answer.status == 1 and answer.err.count("\n") == 1
    assert "line 1: there is no byte order mark, so UTF-16 does not say which byte" in answer.err
    assert "--encoding utf-16-le" in answer.err and "--encoding utf-16-be" in answer.err


@pytest.mark.parametrize("line", TWO_FILES)
def test_sides_may_have_different_encodings(isogloss: Call, folder: Path, line: str) -> None:
    expected = isogloss(*line.split())
    recoded(folder / "de", "latin-1")
    recoded(folder / "en", "utf-16-be")
    for options in (
        ["--source-encoding", "latin-1", "--target-encoding", "utf-16-be"],
        ["--encoding", "latin-1", "--target-encoding", "utf-16-be"],
        ["--source-encoding", "latin-1", "--encoding", "utf-16-be"],
    ):
        if line.startswith("tag train") and "--encoding" in options:
            continue  # which is that of the treebank, too
        answer = isogloss(*line.split(), *options)
        assert answer[:2] == expected[:2], answer


@pytest.mark.parametrize("line", ["align bars", "tag train trees.conllu --save model", "view trees.conllu"])
def test_encodings_of_sides_are_for_two_files(isogloss: Call, folder: Path, line: str) -> None:
    for option in ("--source-encoding", "--target-encoding"):
        answer = isogloss(*line.split(), option, "latin-1")
        assert answer.status == 2 and option in answer.err


@pytest.mark.parametrize(
    "line", ["align {}", "filter {} --report", "suggest {}", "lexicon {} links", "view {} links --terminal"]
)
def test_what_to_read_of_many_columns_and_languages_is_asked_for(isogloss: Call, folder: Path, line: str) -> None:
    (folder / "web.tsv").write_text("0.9\tdas Haus\tthe house\n0.8\tdas Café\tthe café\n", encoding="utf-8")
    segments = "".join(f'<tuv xml:lang="{code}"><seg>{code} {code}</seg></tuv>' for code in ("de", "en", "fr"))
    (folder / "many.tmx").write_text(f"<tmx><body>{f'<tu>{segments}</tu>' * 2}</body></tmx>", encoding="utf-8")
    for name, asked, option in (
        ("web.tsv", "1 is 'das Haus'", ["--columns", "1,2"]),
        ("many.tmx", "a third language, fr", ["--languages", "de,en"]),
    ):
        arguments = line.format(name).split()
        answer = isogloss(*arguments)
        assert answer.status == 1 and asked in answer.err and " ".join(option) in answer.err and not answer.out
        assert isogloss(*arguments, *option).status == 0
