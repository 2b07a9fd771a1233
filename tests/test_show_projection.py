"""Pictures of what links carry: the terminal, SVG, the page, and the command."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from isogloss import samples, show
from isogloss.data import Treebank
from isogloss.data.bitext import Text
from isogloss.data.contractions import Contractions, bitext_of_treebanks, split_text
from isogloss.errors import ParameterError

SVG = "{http://www.w3.org/2000/svg}"


def pair() -> dict[str, Any]:
    return {
        "source": {"words": ["she", "sleeps", "<well>"], "heads": [2, 0, 2], "labels": ["nsubj", "root", "advmod"]},
        "target": {"words": ["sie", "schläft", "gut"], "heads": [2, 0, 1], "labels": ["nsubj", "root", "advmod"]},
        "links": [[0, 0, 0.9], [1, 1], [2, 2, 0.4]],
        "edges": [[2, 1, 0.9], [0, 2, 1.0], [2, 3, 0.3]],
        "title": "pair 1",
    }


def drawn(svg: str, kind: str) -> list[ET.Element]:
    return [element for element in ET.fromstring(svg).iter(f"{SVG}path") if element.get("class") == kind]


def test_links_are_lines_and_what_they_carry_is_dashed_by_its_probability() -> None:
    svg = show.projection_svg(pair())
    assert len(drawn(svg, "word-link")) == 3
    carried = drawn(svg, "carried")
    assert len(carried) == 3 and all(path.get("stroke-dasharray") for path in carried)
    told = {path[0].text: path for path in carried}
    assert set(told) == {
        "schläft → sie, carried (0.90)",
        "root → schläft, carried (1.00)",
        "schläft → gut, carried (0.30)",
    }
    faint, strong = told["schläft → gut, carried (0.30)"], told["root → schläft, carried (1.00)"]
    assert float(str(faint.get("stroke-opacity"))) < float(str(strong.get("stroke-opacity")))
    assert faint.get("stroke") != strong.get("stroke")  # the tree has another head there
    assert len(list(ET.fromstring(svg).iter(f"{SVG}g"))) == 6
    assert "pair 1: 3 links, edges carried to 3 of 3 words, 2 of 3 in the tree" in svg


def test_a_carried_link_of_the_tree_lies_on_its_arc() -> None:
    svg = show.projection_svg(pair())
    arcs = {group[0].text: group[1].get("d") for group in ET.fromstring(svg).iter(f"{SVG}g")}
    carried = {path[0].text: path.get("d") for path in drawn(svg, "carried")}
    assert carried["schläft → sie, carried (0.90)"] == arcs["schläft → sie: nsubj"]
    assert carried["schläft → gut, carried (0.30)"] not in arcs.values()


def test_words_are_escaped_and_the_page_needs_nothing() -> None:
    text = "".join(show.projection_page([pair(), pair()], title="Two <pairs>"))
    assert text.count("<svg") == 2 and "<well>" not in text and "&lt;well&gt;" in text and "Two &lt;pairs&gt;" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "There is nothing to show" in "".join(show.projection_page([]))


def test_empty_sentences_single_words_and_words_from_right_to_left() -> None:
    empty = {"source": {"words": [], "heads": []}, "target": {"words": [], "heads": []}, "links": []}
    ET.fromstring(show.projection_svg(empty))
    one = {"source": {"words": ["yes"], "heads": [0]}, "target": {"words": ["כן"], "heads": [-1]}, "links": [[0, 0]]}
    svg = show.projection_svg(one | {"edges": [[0, 1, 0.5]]})
    assert 'direction="rtl"' in svg and len(drawn(svg, "carried")) == 1
    words = ["אחת", "שתיים"]
    two = {
        "source": {"words": ["one", "two"], "heads": [0, 1]},
        "target": {"words": words, "heads": [0, 1]},
        "links": [],
    }
    places = {e.text: float(str(e.get("x"))) for e in ET.fromstring(show.projection_svg(two)).iter(f"{SVG}text")}
    assert places["one"] < places["two"] and places["אחת"] > places["שתיים"]


def test_the_terminal_shows_the_most_probable_head_that_arrived() -> None:
    given = pair()
    given["edges"] = [*given["edges"], [1, 3, 0.6]]
    lines = show.projection_terminal(given).splitlines()
    assert "links: she~sie sleeps~schläft <well>~gut" in lines
    assert lines[-1].startswith("tree | carried: 3 words, no difference")
    given["edges"] = [[2, 3, 0.6]]
    assert "≠" in show.projection_terminal(given)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"links": [[0, 3]]}, "links should be of 3 source and 3 target words"),
        ({"edges": [[4, 1]]}, "edges should be of 3 target words"),
        ({"edges": [[1, 1]]}, "edges should be of 3 target words"),
        ({"target": {"words": ["a"]}}, "'words' and 'heads'"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        show.projection_svg(pair() | change)
    with pytest.raises(ParameterError, match="key 'links'"):
        show.projection_svg({key: value for key, value in pair().items() if key != "links"})


def test_tokens_of_treebanks() -> None:
    trees = split_text(Text.of(["Zum Haus am See", "", "Im Garten"]), Contractions.of_language("de"))
    english = Treebank.from_text(Text.of(["to the house", "", "in"]))
    pairs = bitext_of_treebanks(trees, english)
    assert [pairs.surface[k][0] for k in range(3)] == [("Zum", "Haus", "am", "See"), (), ("Im", "Garten")]
    assert [row.tolist() for row in pairs.source_words] == [[0, 0, 1, 2, 2, 3], [], [0, 0, 1]]
    assert [row.tolist() for row in pairs.target_words] == [[0, 1, 2], [], [0]]


def command(*arguments: Any) -> int:
    from isogloss.cli import main

    return main([str(one) for one in arguments])


def test_view_draws_two_treebanks_and_their_links(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trees = [samples.path("en-de", f"{side}-trees") for side in ("source", "target")]
    links = tmp_path / "links"
    gold = samples.gold("en-de")[: len(Treebank.read(trees[0]))]
    links.write_text("".join(f"{row}\n" for row in gold))
    page, picture, short = tmp_path / "page.html", tmp_path / "one.svg", tmp_path / "short.conllu"
    Treebank.read(trees[1])[:3].write(short)
    assert command("view", *trees, links, "-o", page) == 0
    assert page.read_text().count("<svg") == len(gold) and "stroke-dasharray" in page.read_text()
    assert "Carried edges that are in the trees" in page.read_text()
    assert command("view", *trees, links, "--line", 3, "-o", picture) == 0
    ET.parse(picture)
    capfd.readouterr()
    assert command("view", *trees, links, "--terminal", "--line", 1) == 0
    assert "links: " in capfd.readouterr().out
    for arguments, words in (
        ((*trees, links, "-o", picture), "a picture has one pair"),
        ((*trees, links, "--gold", trees[0]), "leave out --gold"),
        ((*trees, "--links-of", "words"), "--links-of says what LINKS"),
        ((*trees, links, "--line", 999, "-o", page), "--line 999"),
        ((trees[0], short, links), "translation of the first"),
    ):
        assert command("view", *arguments) != 0
        assert words in capfd.readouterr().err


def test_links_of_words_and_of_tokens(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    german = (
        "1-2\tZum\t_\t_\t_\t_\t_\t_\t_\t_\n1\tZu\t_\tADP\t_\t_\t3\tcase\t_\t_\n2\tdem\t_\tDET\t_\t_\t3\tdet\t_\t_\n"
    )
    german += "3\tHaus\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    source, target, links = (tmp_path / name for name in ("en.conllu", "de.conllu", "links"))
    Treebank.of([[("homewards", "ADV", 0, "root")]]).write(source)
    target.write_text(german.replace(" ", "\t"))
    links.write_text("0-1\n")
    assert command("view", source, target, links, "--terminal") == 0
    assert "homewards~Haus" in capfd.readouterr().out
    assert command("view", source, target, links, "--terminal", "--links-of", "words") == 0
    assert "homewards~dem" in capfd.readouterr().out
