"""`isogloss parse score --breakdown`: where the errors are, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isogloss import cli
from isogloss.cli._treebanks import breakdown_lines, breakdown_of
from isogloss.data.treebank import Treebank

GOLD = [
    [("she", "PRON", 2, "nsubj"), ("sees", "VERB", 0, "root"), ("the", "DET", 4, "det"), ("cat", "NOUN", 2, "obj")],
    [("a", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("eats", "VERB", 0, "root")],
]
LABELS = ["nsubj", "root", "det", "obl:arg", "det", "obl", "root"]  # two nouns are wrong
HEADS = [2, 0, 2, 2, 2, 3, 0]  # and a determiner


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    gold = Treebank.of(GOLD)
    gold.write(tmp_path / "gold.conllu")
    gold.with_columns(heads=HEADS, deprel=LABELS).write(tmp_path / "out.conllu")
    return str(tmp_path / "out.conllu"), str(tmp_path / "gold.conllu")


def test_tables(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["parse", "score", *files, "-q"]) == 0
    short = capsys.readouterr().out
    assert cli.main(["parse", "score", *files, "--breakdown", "-q"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(short)
    assert told[len(short) :].splitlines() == [
        "",
        "distance  words     uas     las  precision",
        "root          2  100.00  100.00     100.00",
        "1             4   75.00   50.00      75.00",
        "2             1  100.00    0.00     100.00",
        "",
        "length  words    uas    las",
        "1-10        7  85.71  57.14",
        "",
        "tag   words     uas     las",
        "VERB      2  100.00  100.00",
        "DET       2   50.00   50.00",
        "NOUN      2  100.00    0.00",
        "PRON      1  100.00  100.00",
        "",
        "relation  words     uas     las  precision",
        "nsubj         2  100.00   50.00     100.00",
        "root          2  100.00  100.00     100.00",
        "det           2   50.00   50.00      50.00",
        "obj           1  100.00    0.00       0.00",
        "obl           0    0.00    0.00       0.00",
        "",
        "gold   predicted  words",
        "nsubj  obl            1",
        "obj    obl            1",
    ]


def test_for_programs(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["parse", "score", *files, "--json", "--breakdown", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["breakdown"]["distance"]["1"]["words"] == 4
    assert found["breakdown"]["deprel"]["det"]["uas"] == 50
    assert sorted(found["breakdown"]["confusions"]) == [["nsubj", "obl", 1], ["obj", "obl", 1]]
    assert cli.main(["parse", "score", *files, "--json", "-q"]) == 0
    assert "breakdown" not in json.loads(capsys.readouterr().out)


def test_rare_kinds_are_counted_and_unknown_ones_are_no_errors() -> None:
    words = [{"form": f"w{k}", "xpos": f"T{k:02}", "head": 0 if k == 0 else 1, "deprel": "dep"} for k in range(20)]
    gold = Treebank.of([words])
    found = breakdown_of(gold, gold)
    assert "xpos" in found and "upos" not in found and found["confusions"] == []
    assert "5 that are rarer: --json has all" in list(breakdown_lines(found))
    partly = gold.with_columns(heads=[0] + [-1] * 19, deprel=["dep"] + ["_"] * 19)
    found = breakdown_of(gold, partly)
    assert found["confusions"] == [] and found["distance"]["root"]["words"] == 1
