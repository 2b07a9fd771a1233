"""`isogloss summaries`, and the files that it reads."""

from __future__ import annotations

import json

import pytest

from isogloss.cli import main
from isogloss.cli.summaries import METHODS
from isogloss.data.formats.summaries import read_judged, read_summaries
from isogloss.errors import DocumentsError
from isogloss.tasks.documents.summaries import EXTRACTORS

DOCUMENTS = [
    {
        "document": f"d{d}", "sentences": ["The cat sat .", "It rained .", "The cat slept .", "Dogs bark ."],
        "utilities": {"ann": [9, 1, 5, 0], "bob": [8, 0, 2, d]}, "subsumed": [[2, 0]],
    }
    for d in range(3)
]  # fmt: skip
SUMMARIES = [
    {
        "document": f"d{d}", "system": f"s{s}", "summary": "the cat sat " + "x " * s, "reference": "the cat sat",
        "human": 9 - s - d / 9,
    }
    for d in range(3)
    for s in range(4)
]  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in (("d.jsonl", DOCUMENTS), ("s.jsonl", SUMMARIES)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_the_methods_of_help_are_those_there_are():
    assert tuple(METHODS) == tuple(EXTRACTORS)


def test_extract_and_score_beside_judges(here, capsys):
    for method in METHODS:
        assert (
            main(["summaries", "extract", "d.jsonl", "--method", method, "--rate", "0.5", "-o", "e.jsonl", "-q"]) == 0
        )
    rows = [json.loads(line) for line in (here / "e.jsonl").read_text().splitlines()]
    assert [len(row["extract"]) for row in rows] == [2, 2, 2] and rows[0]["summary"].count("\n") == 1
    main(["summaries", "extract", "d.jsonl", "--method", "lead", "--rate", "0.5", "-o", "e.jsonl", "-q"])
    assert main(["summaries", "score", "e.jsonl", "--judges", "d.jsonl", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["systems"]["lead"]
    assert told["precision"]["mean"] == pytest.approx(50) and told["utility"]["n"] == 3
    assert 0 <= told["utility-chance"]["mean"] <= told["utility-judges"]["mean"] <= 100


def test_score_and_compare_beside_references(here, capsys):
    assert main(["summaries", "score", "s.jsonl", "--measures", "rouge-1-precision", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split("\t")[:3] == ["s0", "rouge-1-precision", "100.00"] and len(lines) == 5
    assert main(["summaries", "compare", "s.jsonl", "--json", "--bootstrap", "20"]) == 0
    told = json.loads(capsys.readouterr().out)["measures"]
    assert told["rouge-1-precision"]["system"] == pytest.approx(100)
    assert told["rouge-1-precision"]["summary"] == pytest.approx(100) and told["rouge-1-recall"]["system"] is None
    assert main(["summaries", "compare", "s.jsonl", "-q"]) == 0
    assert capsys.readouterr().out.startswith("measure\tsystems\t")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("[1]", "an object with 'document' and 'system' is wanted"),
        ('{"document": "a"}', "'system' is missing"),
        ('{"document": "a", "system": "s", "text": "x"}', "'text' is not known; there are document, extract"),
        ('{"document": "a", "system": "s", "human": "good"}', "'human' should be a number, not 'good'"),
        ('{"document": "a", "system": "s", "extract": [-1]}', "numbers of sentences from 0 on"),
        ('{"document": "a", "system": "s", "references": "x"}', "'references' should be a list"),
        ('{"document": "a", "system": "s", "reference": "x", "references": []}', "give one of them"),
        ('{"document": "a", "system": ["s"]}', "'system' should be text"),
        ('{"document": "a", "system": "s"}\n{"document": "a", "system": "s"}', "two summaries of document 'a'"),
        ("{", "line 1: no JSON object"),
    ],
)
def test_what_is_wrong_with_summaries_is_said(row, words, tmp_path):
    (tmp_path / "x").write_text(row)
    with pytest.raises(DocumentsError, match=words):
        read_summaries(tmp_path / "x")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sentences": "a"}, "'sentences' should be a list"),
        ({"utilities": [1]}, "'utilities' should be an object"),
        ({"utilities": {"x": [1]}}, "judge 'x' should have 2 utilities"),
        ({"utilities": {"x": [1, -1]}}, "judge 'x' has a utility below 0"),
        ({"utilities": {"x": [1, "a"]}}, "should be a number, not 'a'"),
        ({"subsumed": [[0, 2]]}, "pairs of sentences from 0 to 1"),
        ({"subsumed": 1}, "'subsumed' should be a list"),
    ],
)
def test_what_is_wrong_with_judges_is_said(change, words, tmp_path):
    row = {"document": "a", "sentences": ["x", "y"]} | change
    (tmp_path / "x").write_text(json.dumps(row))
    with pytest.raises(DocumentsError, match=words):
        read_judged(tmp_path / "x")
    (tmp_path / "x").write_text('{"document": "a", "sentences": []}\n' * 2)
    with pytest.raises(DocumentsError, match="line 2: the document 'a' is there twice"):
        read_judged(tmp_path / "x")


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ("summaries score none.jsonl", 2, "none.jsonl: no such file"),
        ("summaries score d.jsonl", 1, "'system' is missing"),
        ("summaries score s.jsonl --measures rouge", 2, "no measure 'rouge'; there are rouge-1-precision"),
        ("summaries compare bare.jsonl", 1, "three systems or more are needed"),
        ("summaries extract d.jsonl --method best", 2, "is not one of lead"),
        ("summaries extract d.jsonl --rate 0", 2, "--rate should be above 0"),
    ],
)
def test_what_cannot_be_done_is_said(here, line, status, words, capsys):
    (here / "bare.jsonl").write_text('{"document": "a", "system": "s", "summary": "x"}\n')
    assert main(line.split()) == status
    assert words in capsys.readouterr().err
