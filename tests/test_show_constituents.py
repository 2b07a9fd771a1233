"""Drawings of trees of constituents: characters, pictures, pages, and the command."""

from __future__ import annotations

from pathlib import Path
from xml.dom import minidom

import pytest

from isogloss.cli import main
from isogloss.data import Constituents
from isogloss.errors import ParameterError
from isogloss.show import constituents_svg, constituents_terminal, tree_page

GOLD = "(S (NP (DT The) (NN dog)) (VP (VBZ sleeps)))"
FOUND = "(S (NP (DT The)) (VP (NN dog) (NN sleeps)))"


def both() -> dict[str, object]:
    return Constituents.of([FOUND]).as_dict(0, Constituents.of([GOLD]), ("found", "gold"))


def test_characters() -> None:
    drawn = constituents_terminal(both())
    assert drawn.splitlines()[:7] == ["S", "├─NP ≠", "│ └─DT The", "└─VP ≠", "  ├─NN dog", "  └─NN≠VBZ sleeps",
                                      "≠ NP over The dog"]  # fmt: skip
    assert "2 not in gold, 2 in gold alone" in drawn
    assert "\x1b[31" in constituents_terminal(both(), colour=True)
    same = Constituents.of([GOLD])
    assert "no difference" in constituents_terminal(same.as_dict(0, same))
    assert constituents_terminal(Constituents.of([""]).as_dict(0)) == "tree 1: 0 words, 0 brackets"
    assert all(len(line) <= 20 for line in constituents_terminal(both(), width=20).splitlines()[:8])


def test_pictures() -> None:
    picture = constituents_svg(both())
    minidom.parseString(picture)
    assert picture.count("≠ ") == 4 and ">sleeps<" in picture
    escaped = Constituents.assembled([["<b>"]], [["&"]], [[("<S>", [0])]])
    text = constituents_svg(escaped.as_dict(0))
    minidom.parseString(text)
    assert "<b>" not in text and "&lt;b&gt;" in text
    minidom.parseString(constituents_svg(Constituents.of([""]).as_dict(0)))
    assert Constituents.of([GOLD])[0]._repr_html_().startswith("<svg")


def test_wrong_dictionaries_are_refused() -> None:
    for key, value in (("parents", [-1]), ("attached", [0, 0, 9]), ("parents", [-1, 2, 0]), ("tags", ["X"])):
        with pytest.raises(ParameterError, match="show"):
            constituents_svg(both() | {key: value})
    with pytest.raises(ParameterError, match="keys"):
        constituents_terminal({"words": []})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gold.mrg").write_text(f"( {GOLD} )\n( {GOLD} )\n")
    (tmp_path / "found.mrg").write_text(f"(TOP {FOUND})\n(TOP {GOLD})\n")
    gold, found = str(tmp_path / "gold.mrg"), str(tmp_path / "found.mrg")
    assert main(["view", found, gold, "--terminal", "-q"]) == 0
    assert "tree 1: found.mrg | gold.mrg" in capsys.readouterr().out
    assert main(["view", found, gold, "-o", str(tmp_path / "page.html"), "-q"]) == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 1 and "F1 against gold.mrg" in page
    assert main(["view", gold, "--line", "2", "-o", str(tmp_path / "tree.svg"), "-q"]) == 0
    minidom.parse(str(tmp_path / "tree.svg"))
    assert main(["view", gold, "-o", str(tmp_path / "tree.svg"), "-q"]) == 2
    assert main(["view", gold, "--line", "3"]) == 2
    assert "".join(tree_page([both()])).count("<svg") == 1


def test_chains_and_tags_that_differ_are_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "a.mrg", tmp_path / "b.mrg"
    first.write_text("(S (NP (NN a)) (VP (VB b)))\n(S (NP (NN a)))\n(S (A a))\n")
    second.write_text("(S (NP (NP (NN a))) (VP (VB b)))\n(S (NP (NNS a)))\n(S (A a))\n")
    assert main(["view", str(first), str(second), "--terminal"]) == 0
    told = capsys.readouterr()
    assert "2 of 3 trees differ" in told.err
    assert "1 with other tags" in told.out and "no difference" not in told.out
    second.write_text("\n(S (NP (NN a)))\n(S (A a))\n")
    assert main(["view", str(first), str(second), "--terminal", "--quiet"]) == 0
    assert "VB b" in capsys.readouterr().out
    assert main(["view", str(first), str(tmp_path / "c.conllu"), "--terminal"]) == 2
    assert "cannot be drawn together" in capsys.readouterr().err
