"""Trees as characters and as SVG: nothing is lost, nothing escapes, differences show."""

from __future__ import annotations

import random
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data import Treebank
from isogloss.errors import ParameterError, TreebankError
from isogloss.show import tree_page, tree_svg, tree_terminal
from isogloss.show._measure import display_width
from isogloss.show._tree_picture import Side

SVG = "{http://www.w3.org/2000/svg}"
OPEN = {"│": "ud", "─": "lr", "╭": "rd", "╰": "ru", "├": "rud", "┬": "lrd", "┴": "lru", "┼": "lrud"}


def test_one_tree_by_hand() -> None:
    tree = {"words": ["She", "reads", "old", "books", "."], "heads": [2, 0, 4, 2, 2], "tags": list("PVANX")}
    assert tree_terminal(tree).splitlines() == [
        "    ╭─▶ 1 She    P",
        "╭─┬─┴─● 2 reads  V",
        "│ │ ╭─▶ 3 old    A",
        "│ ╰─┴─▶ 4 books  N",
        "╰─────▶ 5 .      X",
        "5 words",
    ]


def test_two_trees_by_hand() -> None:
    first = Treebank.of([[("a", "X", 2, "det"), ("b", "Y", 0, "root"), ("c", "Z", 2, "obj")]])
    second = first.with_columns(heads=[2, 0, 1], deprel=["amod", "root", "obj"])
    drawn = first.with_misc("Confidence", ["0.5", "1", "0.75"]).as_dict(0, second, ("ours", "gold"))
    assert tree_terminal(drawn).splitlines() == [
        "  ╭─▶ 1 a ◀─┬─╮  X  det   0.50  amod  ≠",
        "╭─┴─● 2 b ●─╯ │  Y  root  1.00  root",
        "╰───▶ 3 c ◀───╯  Z  obj   0.75  obj   ≠",
        "sentence 1: ours | gold: 3 words, 1 with other heads,",
        "  1 with other labels alone, mean confidence 0.75",
    ]
    coloured = tree_terminal(drawn, colour=True).splitlines()
    assert [line.startswith("\x1b[31;1m") for line in coloured] == [True, False, True, False, False]
    with pytest.raises(TreebankError, match="are not those in"):
        first.as_dict(0, Treebank.of([[("x", "X", 0, "root")]]))


def links_in(drawing: list[str]) -> set[tuple[int, int]]:
    """The pairs of words that lines of a drawing connect, found by walking along them."""
    rows = [re.split("[▶●?]", line)[0] for line in drawing]
    found = set()
    for row, text in enumerate(rows):
        for column, sign in enumerate(text):
            if "d" in OPEN.get(sign, "") and "r" in OPEN[sign]:  # an arc begins here and goes down to where it turns
                for below in range(row + 1, len(rows)):
                    here = OPEN[rows[below][column]]
                    assert "u" in here
                    if "r" in here:
                        found.add((row, below))
                    if "d" not in here:
                        break
    return found


@given(st.integers(1, 8), st.integers(0, 2**30))
@settings(max_examples=100, deadline=None)
def test_lines_of_a_drawing_are_the_links(n: int, seed: int) -> None:
    rng = random.Random(seed)  # a random projective tree: hang spans below their heads
    heads = [0] * n

    def hang(low: int, high: int, parent: int) -> None:
        if low <= high:
            head = rng.randint(low, high)
            heads[head] = parent
            hang(low, head - 1, head + 1)
            hang(head + 1, high, head + 1)

    hang(0, n - 1, 0)
    drawing = tree_terminal({"words": ["w"] * n, "heads": heads}).splitlines()[:-1]
    links = {(min(k, head - 1), max(k, head - 1)) for k, head in enumerate(heads) if head}
    assert links == links_in(drawing)
    assert [("●" if head == 0 else "▶") in line for head, line in zip(heads, drawing, strict=True)] == [True] * n


words = st.text(max_size=8)
numbers = st.one_of(st.none(), st.floats(0, 1))


@st.composite
def pictures(draw: st.DrawFn) -> dict[str, Any]:
    n = draw(st.integers(0, 6))

    def side() -> dict[str, Any]:
        rows: dict[str, Any] = {"heads": draw(st.lists(st.integers(-1, n), min_size=n, max_size=n))}
        if draw(st.booleans()):
            rows["labels"] = draw(st.lists(words, min_size=n, max_size=n))
        if draw(st.booleans()):
            rows["confidence"] = draw(st.lists(numbers, min_size=n, max_size=n))
        return rows

    picture = {"words": draw(st.lists(words, min_size=n, max_size=n)), **side(), "title": draw(words)}
    if draw(st.booleans()):
        picture.update(other=side(), names=[draw(words), draw(words)])
    return picture


@given(pictures(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_tree_can_be_drawn(picture: dict[str, Any], standalone: bool) -> None:
    root = ElementTree.fromstring(tree_svg(picture, standalone=standalone))
    sides = [picture, *([picture["other"]] if "other" in picture else [])]
    drawn = sum(
        head == 0 or (head > 0 and head != k) for side in sides for k, head in enumerate(side["heads"], start=1)
    )
    assert len(root.findall(f"{SVG}g")) == drawn
    assert not any("script" in element.tag or "href" in " ".join(element.attrib) for element in root.iter())
    text = tree_terminal(picture)
    lines = text.split("\n")
    assert len(lines) > len(picture["words"])
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", text)


def test_svg_shows_differences_and_confidence() -> None:
    first = Treebank.of([[("a<b", "X", 2, "det"), ("b", "Y", 0, "root"), ("c", "Z", 2, "obj")]])
    drawn = first.with_misc("Confidence", ["0.5", "1", "0.75"]).as_dict(0, first.with_columns(heads=[2, 0, 1]))
    root = ElementTree.fromstring(tree_svg(drawn))
    groups = root.findall(f"{SVG}g")
    titles = [group.findtext(f"{SVG}title") for group in groups]
    assert "b → a<b: det (0.50)" in titles and "root → b: root (1.00)" in titles and "a<b → c: obj" in titles
    labels = [text.text for text in root.findall(f"{SVG}text[@class='link']")]
    assert sorted(map(str, labels)) == sorted(["det 50%", "root 100%", "≠ obj 75%", "det", "root", "≠ obj"])
    assert "prefers-color-scheme" in tree_svg(drawn) and "<style>" not in tree_svg(drawn, standalone=False)


def test_right_to_left_and_wide_words() -> None:
    tree = {"words": ["قرأت", "كتابا"], "heads": [0, 1]}
    xs = [float(e.attrib["x"]) for e in ElementTree.fromstring(tree_svg(tree)).findall(f"{SVG}text")[:2]]
    assert xs[0] > xs[1]
    assert tree_svg(tree).count('direction="rtl"') == 2
    lines = tree_terminal({"words": ["日本語", "a"], "heads": [0, 1], "labels": ["root", "x"]}).splitlines()
    assert display_width(lines[0].split("root")[0]) == display_width(lines[1].split("x")[0])


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ({"words": ["a"]}, "keys 'words' and 'heads'"),
        ({"words": ["a"], "heads": []}, "0 heads for 1 words"),
        ({"words": ["a"], "heads": [2]}, "word 1 has head 2"),
        ({"words": ["a"], "heads": [0], "labels": ["x", "y"]}, "2 labels for 1 words"),
        ({"words": ["a"], "heads": [0], "other": {}}, "0 heads for 1 words"),
    ],
)
def test_wrong_trees_are_refused(tree: dict[str, Any], says: str) -> None:
    for draw in (tree_svg, tree_terminal):
        with pytest.raises(ParameterError, match=says):
            draw(tree)


def levels_by_definition(heads: list[int]) -> list[tuple[int, int, int]]:
    """Arcs (head, word, level), shortest first, each compared with all that are placed."""
    pairs = [(head - 1, word) for word, head in enumerate(heads) if head > 0 and head - 1 != word]
    placed: list[tuple[int, int, int]] = []
    for head, word in sorted(pairs, key=lambda pair: (abs(pair[0] - pair[1]), min(pair))):
        low, high = min(head, word), max(head, word)
        spans = [(min(a, b), max(a, b), level) for a, b, level in placed]
        level = 1 + max((level for first, last, level in spans if first < high and low < last), default=0)
        while any(level == other and (low == last or high == first) for first, last, other in spans):
            level += 1
        placed.append((head, word, level))
    return placed


@given(st.integers(1, 12).flatmap(lambda n: st.lists(st.integers(-1, n), min_size=n, max_size=n)))
@settings(deadline=None)
def test_arcs_lie_above_those_they_cover(heads: list[int]) -> None:
    side = Side.of({"heads": heads}, len(heads))
    assert [tuple(arc) for arc in side.arcs()] == levels_by_definition(heads)


@given(pictures(), st.integers(60, 100))
@settings(max_examples=100, deadline=None)
def test_drawings_keep_to_the_width(picture: dict[str, Any], width: int) -> None:
    """Columns do not shrink below four characters; those of two trees of six words fit into sixty."""
    rows = tree_terminal(picture, width=width).split("\n")[: len(picture["words"])]
    assert all(display_width(row) <= width for row in rows)


def test_words_of_very_long_sentences_name_their_heads() -> None:
    n = 5000
    heads = [0] + [1 + (7919 * k) % k for k in range(1, n)]  # crossing without end
    text = tree_terminal({"words": [f"w{k}" for k in range(n)], "heads": heads, "labels": ["dep"] * n}, width=60)
    lines = text.split("\n")
    assert len(lines) == n + 1 and max(map(display_width, lines)) <= 60
    assert lines[0].split() == ["1", "w0", "●", "dep"]
    assert lines[9].split() == ["10", "w9", f"↑{heads[9]}", f"w{heads[9] - 1}", "dep"]
    assert tree_svg({"words": ["w"] * n, "heads": heads}).count("<path") == 2 * n


def test_tags_of_two_taggers() -> None:
    tree = {"words": ["a", "b"], "heads": [0, 1], "tags": ["X", "Y"], "other": {"heads": [0, 1], "tags": ["X", "Z"]}}
    lines = tree_terminal(tree).splitlines()
    assert lines[:2] == ["╭─● 1 a ●─╮  X", "╰─▶ 2 b ◀─╯  Y≠Z  ≠"]
    assert lines[2].endswith("1 with other tags alone")
    assert "Y≠Z" in tree_svg(tree)


def test_a_page_of_trees() -> None:
    trees = [
        {"words": ["a<b", "c"], "heads": [2, 0], "labels": ["x", "root"], "title": "</script>"},
        {"words": ["قرأت", "كتابا"], "heads": [0, 1], "number": 7},
    ]
    text = "".join(tree_page(iter(trees), title="T & U", summary={"sentences": 2}))
    assert text.count("<svg") == 2 and "<title>T &amp; U</title>" in text and "a&lt;b" in text
    assert text.count("</script>") == 1 and "http" not in text.replace(
        'xmlns="http://www.w3.org/2000/svg"', ""
    ).replace('http-equiv="', "")
    assert 'dir="rtl" data-number="7"' in text
    assert "nothing to show" in "".join(tree_page([]))
    two = "".join(tree_page([{**trees[0], "other": {"heads": [0, 1]}, "names": ["ours", "gold"]}]))
    assert "Above the words: ours; below them: gold" in two
