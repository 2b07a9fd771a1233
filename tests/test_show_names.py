"""Names drawn over a sentence: with characters, as SVG, on a page, and by `isogloss view`."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from isogloss import samples, show
from isogloss.cli import main
from isogloss.data import Mentions
from isogloss.errors import ParameterError

ONE = Mentions.of(
    [(["<Ada>", "met", "Bob", "Ross", "in", "York"], [(0, 1, "PER"), (2, 4, "PER"), (5, 6, "LOC")], [(0, 1, "knows")])]
)[0].as_dict()


def test_characters() -> None:
    assert show.names_terminal(ONE).splitlines() == [
        "[<Ada> PER] met [Bob Ross PER] in [York LOC]", "<Ada> -knows-> Bob Ross", "sentence 1, 6 words, 3 names",
    ]  # fmt: skip
    both = ONE | {
        "other": {"entities": [[0, 1, "PER"], [2, 3, "PER"]]},
        "names": ["ours", "gold"],
        "title": "sentence 1",
    }
    drawn = show.names_terminal(both, colour=True)
    assert "\x1b[31;1m[≠ Bob Ross PER]\x1b[0m" in drawn and "\x1b[36m[<Ada> PER]\x1b[0m" in drawn
    assert "gold: " in drawn and "3 names in ours, 2 names in gold" in drawn
    narrow = show.names_terminal(ONE, width=24).splitlines()
    assert len(narrow) > 3
    with pytest.raises(ParameterError, match="at least 20 columns"):
        show.names_terminal(ONE, width=5)


def test_svg_is_well_formed_and_marks_what_differs() -> None:
    root = ElementTree.fromstring(show.names_svg(ONE))
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert tags.count("line") == 3 and tags.count("path") == 1
    both = show.names_svg(ONE | {"other": {"entities": [[5, 6, "LOC"], [2, 3, "PER"]]}, "confidence": [0.9, 0.5, 0.1]})
    assert both.count("≠") == 3 and "(0.50)" in both
    assert ElementTree.fromstring(show.names_svg({"words": ["שלום", "עולם"], "entities": [[0, 1, "X"]]})) is not None
    assert Mentions.of([(["Ada"], [(0, 1, "PER")])])[0]._repr_html_().startswith("<svg")


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(ParameterError, match="names should be words 0 to 6"):
        show.names_svg(ONE | {"entities": [[0, 9, "X"]]})
    with pytest.raises(ParameterError, match="between two names"):
        show.names_svg(ONE | {"relations": [[0, 7, "x"]]})


def test_view(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = str(samples.path("en-de", "source-names"))
    changed = tmp_path / "found.conll"
    changed.write_text(Path(gold).read_text().replace("Anna B-PER", "Anna O", 1))
    assert main(["view", gold, "--line", "3", "--terminal", "-q"]) == 0
    assert "Yesterday [Anna PER] bought three books in [Berlin LOC] ." in capsys.readouterr().out
    assert main(["view", str(changed), gold, "--terminal"]) == 0
    told = capsys.readouterr()
    assert "[≠ Anna PER]" in told.out and "1 of 90 sentences differ" in told.err
    page, picture = tmp_path / "page.html", tmp_path / "one.svg"
    assert main(["view", str(changed), gold, "-o", str(page), "-q"]) == 0
    assert "F1 against en-de.en.conll" in page.read_text() and page.read_text().count("<svg") == 1
    assert main(["view", gold, "--line", "51", "-o", str(picture), "-q"]) == 0
    assert ElementTree.fromstring(picture.read_text()) is not None
    for given, finding in (
        ([gold, gold, gold], "two files with names can be drawn side by side, not 3"),
        ([gold, "--line", "999"], "has 90 sentences"),
        ([gold, "--model", "m"], "--model is for two texts"),
    ):
        assert main(["view", *given]) == 2
        assert finding in capsys.readouterr().err
