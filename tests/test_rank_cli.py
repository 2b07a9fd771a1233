"""`isogloss rank`, and the files that it reads and writes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from isogloss.cli import main
from isogloss.data.formats.groups import read_groups, read_ranking, write_ranking
from isogloss.data.groups import Candidate, Group, Groups
from isogloss.errors import DocumentsError
from isogloss.testing.fuzz.models import DICTIONARY, compared, ranked

BARS = "7 ||| 2 ||| the cat ||| the cat\n7 ||| 0 ||| the cat ||| a dog\n8 ||| 1 ||| no ||| no\n"


def test_json_lines_and_bars_are_read(tmp_path):
    file = tmp_path / "g.txt"
    file.write_text(BARS)
    groups = read_groups(file)
    assert [group.id for group in groups] == ["7", "8"] and groups[0].reference == "the cat"
    assert groups[0].grades.tolist() == [2, 0] and [each.id for each in groups[0].candidates] == ["1", "2"]
    file.write_text(
        '{"group": 1, "clicks": 7, "query": "q", "url": "u"}\n\n{"group": "1", "other": true, "id": 9, "query": "r"}\n'
        '{"group": "1", "id": "x", "grade": -1.5, "features": {"a": 2}, "title": "T", "text": "t"}\r\n'
    )
    (group,) = read_groups(file)
    assert (group.query, group.other_query) == ("q", "r") and group.grades.tolist() == [7, -1.5]
    assert math.isnan(group.others[0].grade) and group.others[0].id == "9"
    assert group.candidates[1] == Candidate("x", "t", "T", "", -1.5, {"a": 2.0})


@pytest.mark.parametrize("groups", [ranked(), compared(), Groups(())], ids=["documents", "outputs", "none"])
def test_groups_go_round(groups, tmp_path):
    (tmp_path / "g").write_bytes(groups.to_bytes())
    again = read_groups(tmp_path / "g")
    assert again.groups == groups.groups


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a ||| 1 ||| b", "line 1: 3 fields between"),
        (BARS + "8 ||| nan ||| no ||| x", "line 4: the rank should be a number, not 'nan'"),
        (BARS + "8 ||| 1 ||| yes ||| x", "line 4: the reference of this group was 'no' before, and is 'yes' here"),
        ('{"group": 1', "line 1: no JSON object"),
        ('{"id": 1}', "an object with 'group' is wanted"),
        ('{"group": 1, "words": 2}', "'words' is not known; there are clicks, features"),
        ('{"group": [1]}', r"'group' should be text, not \[1\]"),
        ('{"group": 1, "grade": 1, "clicks": 2}', "a grade and clicks"),
        ('{"group": 1, "grade": true}', "the grade should be a number, not True"),
        ('{"group": 1, "features": {"a": "b"}}', "feature 'a' should be a number, not 'b'"),
        ('{"group": 1, "features": [1]}', "'features' should be an object"),
        ('{"group": 1, "other": 1}', "'other' should be true or false, not 1"),
        ('{"group": 1, "id": 2}\n{"group": 1, "id": 2}', "two of the same name, candidate '2'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text, words, tmp_path):
    (tmp_path / "g").write_text(text)
    with pytest.raises(DocumentsError, match=words):
        read_groups(tmp_path / "g")


def test_rankings_go_round_and_what_is_lost_is_said(tmp_path):
    gold = Groups((Group("a b", (Candidate("1"), Candidate("2"))), Group("c", (Candidate("1"),))))
    scores = [np.array([0.25, 0.5]), np.array([-1e-9])]
    text = write_ranking(gold, scores)
    assert text.splitlines()[1:3] == ["a b\t1\t2\t0.25", "a b\t2\t1\t0.5"]
    file = tmp_path / "r.tsv"
    file.write_text(text)
    assert read_ranking(file, gold) == [[0.25, 0.5], [-1e-9]]
    for changed, words in (
        (text.replace("c\t1", "d\t1"), "no score of candidate '1' of group 'c'"),
        (text + "c\t1\t1\t2\n", "line 5: candidate '1' of group 'c' is there twice"),
        (text + "x\n", "line 5: 1 columns"),
        (text.replace("0.25", "much"), "line 2: the score should be a number, not 'much'"),
    ):
        file.write_text(changed)
        with pytest.raises(DocumentsError, match=words):
            read_ranking(file, gold)


def test_train_apply_score(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.jsonl").write_bytes(ranked().to_bytes())
    (tmp_path / "w.tsv").write_text("".join(f"{row[0]}\t{row[1]}\n" for row in DICTIONARY))
    assert main(["rank", "train", "g.jsonl", "--lexicon", "w.tsv", "--save", "m", "--json", "-q"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["groups"] == 6 and told["candidates"] == 24 and "pair:url" in told["weights"]
    assert main(["rank", "apply", "m", "g.jsonl", "-o", "out.tsv", "-q"]) == 0
    assert main(["rank", "score", "out.tsv", "g.jsonl", "--json", "--against", "out.tsv"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["pairs"] > 50 and told["groups"] == 6 and told["against"]["tau"]["delta"] == 0
    assert main(["rank", "score", "out.tsv", "g.jsonl"]) == 0
    assert capsys.readouterr().out.startswith("PAIRS = ")


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ("rank train none.txt --save x", 2, "none.txt: no such file"),
        ("rank train bad.txt --save x", 1, "bad.txt, line 1"),
        ("rank train level.txt --save x", 1, "no two candidates of a group have different grades"),
        ("rank train bars.txt --save x --features words", 2, "features should be of given"),
        ("rank train bars.txt --save x --features url", 2, "what they need is not in bars.txt"),
        ("rank train bars.txt --save x --lexicon words.tsv", 2, "a lexicon says nothing without texts"),
        ("rank train bars.txt --save x --regularisation 1 --folds 3", 2, "folds says nothing"),
        ("rank apply bars.txt bars.txt", 1, "a saved model is a folder"),
        ("rank score bars.txt bars.txt", 1, "1 columns"),
    ],
)
def test_what_cannot_be_done_is_said(line, status, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in (("bars.txt", BARS), ("bad.txt", "x"), ("level.txt", BARS[-22:]), ("words.tsv", "a\tb\n")):
        (tmp_path / name).write_text(text)
    found = main(line.split())
    said = capsys.readouterr().err
    assert words in said and "Traceback" not in said
    assert found == status, said
