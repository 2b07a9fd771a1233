"""Markup in the target: nothing lost, nothing torn, and where a person would put it."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import samples
from isogloss.cli import main
from isogloss.data import Alignment
from isogloss.errors import LinksError
from isogloss.tasks.transfer import place_markup, strip_markup, transfer_markup

MARK = re.compile(r"</?[a-z]+\d*/?>|\{\d+\}")  # all that the strategy below writes


@st.composite
def marked_lines(draw):
    """A source line with nested tags, spaced at random, and the number of its words; all tags are different."""
    n_words = draw(st.integers(0, 6))
    names = iter(range(100))

    def inner(words, depth):
        items = []
        while words or draw(st.booleans()):
            kind = draw(st.sampled_from("wwwepn" if depth < 3 else "wwep"))
            if kind == "w":
                if not words:
                    break
                items.append(words.pop(0))
            elif kind == "e":
                items.append(f"<x{next(names)}/>")
            elif kind == "p":
                items.append(f"{{{next(names)}}}")
            else:
                name = f"b{next(names)}"
                held = words[: draw(st.integers(0, len(words)))]
                del words[: len(held)]
                items += [f"<{name}>", *inner(held, depth + 1), f"</{name}>"]
        return items

    items = inner([f"w{k}" for k in range(n_words)], 0)
    line = ""
    for before, item in zip([None, *items], items, strict=False):
        words = before is not None and before[0] == "w" and item[0] == "w"
        line += (" " if words or draw(st.booleans()) else "") + item
    return line


@st.composite
def problems(draw):
    line = draw(marked_lines())
    n_source = len(strip_markup(line)[0])
    n_target = draw(st.integers(0, 6))
    cells = [(i, j) for i in range(n_source) for j in range(n_target)]
    links = draw(st.sets(st.sampled_from(cells), max_size=8)) if cells else set()
    return line, [f"t{k}" for k in range(n_target)], links


def parents(line):
    """The tag around each tag, by a reader that knows nothing of ours; fails where tags are not well-formed."""
    stack, found = [None], {}
    for mark in MARK.findall(line):
        if mark.startswith("</"):
            assert stack.pop() == f"<{mark[2:]}", f"{mark} closes nothing in {line}"
            continue
        found[mark] = stack[-1]
        if mark.startswith("<b"):
            stack.append(mark)
    assert stack == [None], f"{stack} not closed in {line}"
    return found


@settings(deadline=None, max_examples=400)
@given(problems())
def test_every_tag_once_nested_as_before_and_words_untouched(problem):
    line, target, links = problem
    placed = transfer_markup(line, " ".join(target), links).line
    assert Counter(MARK.findall(placed)) == Counter(MARK.findall(line))
    assert parents(placed) == parents(line)
    assert MARK.sub("", placed).split() == target
    assert strip_markup(placed)[0] == target


@settings(deadline=None, max_examples=200)
@given(marked_lines())
def test_onto_itself_changes_nothing(line):
    """Linked word by word to itself, a line keeps its tags where they are and in their order."""
    tokens, tags = strip_markup(line)
    placed = place_markup(tags, len(tokens), tokens, [(k, k) for k in range(len(tokens))])
    again = strip_markup(placed.line)
    assert again[0] == tokens
    around = [tag for tag in tags if not tag.inside]
    if len(around) == len(tags):
        assert [tag.text for tag in again[1]] == [tag.text for tag in tags]
        assert [tag.position for tag in again[1]] == [tag.position for tag in tags]


@pytest.mark.parametrize(
    ("source", "target", "links", "expected"),
    [
        ("the <b>red</b> house", "la maison rouge", "0-0 1-2 2-1", "la maison <b>rouge</b>"),
        ("the <b> red </b> house", "la maison rouge", "0-0 1-2 2-1", "la maison <b> rouge </b>"),
        # a pair of tags around everything takes in words without links
        ("<p>a house</p>", "so ein Haus .", "0-1 1-2", "<p>so ein Haus .</p>"),
        # at the edge of the sentence too, but not beyond words of others
        ("<b>a</b> house", "so ein Haus", "0-1 1-2", "<b>so ein</b> Haus"),
        ("he <b>calls</b> him", "er ruft ihn an", "0-0 1-1 1-3 2-2", "er <b>ruft ihn an</b>"),
        # a stray link does not stretch the pair over half the sentence
        ("a <b>b c</b> d e f", "B C D E F B A", "1-0 2-1 3-2 4-3 5-4 1-5 0-6", "<b>B C</b> D E F B A"),
        # the second element keeps its words though the first is linked around it
        ("<b>a</b> <i>b</i>", "A B A", "0-0 1-1 0-2", "<b>A</b> <i>B</i> A"),
        # no links: words without links between the neighbours
        ("x <b>y</b> z", "X Y Z", "0-0 2-2", "X <b>Y</b> Z"),
        ("x <b>y</b> z", "X Z", "0-0 2-1", "X <b></b> Z"),
        ("see <x/> below", "siehe unten", "0-0 1-1", "siehe <x/> unten"),
        ("<x/> see below <y/>", "unten siehe", "0-1 1-0", "<x/> unten siehe <y/>"),
        ("see {0} <br> %1$s", "siehe", "0-0", "siehe {0} <br> %1$s"),
        ("see {0} and {1}", "{1} und {0} siehe", "0-3 1-1", "{1} und {0} siehe"),
        ("<a><b>x</b> y</a> z", "Z Y X", "0-2 1-1 2-0", "Z <a>Y <b>X</b></a>"),
        ('<g id="1">x <x id="2"/>y</g>', "Y X", "0-1 1-0", '<g id="1"><x id="2"/>Y X</g>'),
        ('<g id="1">x<x id="2"/> y</g>', "Y X", "0-1 1-0", '<g id="1">Y X<x id="2"/></g>'),
        ("", "nichts", "", "nichts"),
        ("<b></b>", "", "", "<b></b>"),
        # not well-formed: every tag is kept all the same
        ("<b>x <i>y</b> z</i>", "X Y Z", "0-0 1-1 2-2", "<b>X <i>Y</b> Z</i>"),
        # not markup
        ("if a < b and c > d", "wenn a < b", "0-0", "wenn a < b"),
    ],
)
def test_where_a_person_would_put_it(source, target, links, expected):
    pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
    assert transfer_markup(source, target, pairs).line == expected


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ('<bpt i="1">&lt;b&gt;</bpt>x<ept i="1">&lt;/b&gt;</ept>', "open close"),
        ('<bx id="1" rid="7"/>x<ex id="2" rid="7"/>', "open close"),
        ('<sc id="1"/>x<ec startRef="1"/>', "open close"),
        ('<ph id="1">{img}</ph>x<it pos="begin">y</it>', "point point"),
        ("<a href=\"x>y\" title='<b>'>x</a>", "open close"),
        ("<g id=1/>x<BR>y<img src=a/b.png>", "point point point"),
        ("<!-- <b> -->x</i>", "point point"),
        ("<b>x<i>y</b>", "open point close"),
    ],
)
def test_kinds_of_tags(line, kinds):
    assert " ".join(tag.kind for tag in strip_markup(line)[1]) == kinds


@pytest.mark.parametrize(
    "placeholder", ["{0}", "{}", "{name}", "{{user name}}", "${x}", "%{x}", "%s", "%1$d", "%.2f", "%(n)s", "%-5d", "%@"]
)
def test_placeholders(placeholder):
    assert [tag.text for tag in strip_markup(f"a {placeholder} b")[1]] == [placeholder]
    assert strip_markup(f"a {placeholder}b", placeholders=False)[1] == []


@pytest.mark.parametrize("text", ["100% sure", "5 %", "50%d", "{a b}", "<3", "x<y", "100%s"])
def test_text_that_is_not_markup(text):
    assert strip_markup(text)[1] == []


def test_tags_inside_words():
    tokens, tags = strip_markup("un<b>do</b>ne it")
    assert tokens == ["undone", "it"]
    assert [(tag.position, tag.inside) for tag in tags] == [(0, True), (0, True)]
    assert transfer_markup("un<b>do</b>ne it", "es zurück", [(0, 1), (1, 0)]).line == "es <b>zurück</b>"


def test_untokenised_lines_keep_their_spaces():
    placed = transfer_markup(
        "The <b>red house</b>, please.", "La  maison rouge, svp.", [(0, 0), (1, 2), (2, 1), (3, 3)], tokenise="unicode"
    )
    assert placed.line == "La  <b>maison rouge</b>, svp."


def test_guesses_are_told():
    sure = transfer_markup("a <b>b</b> <x/> c", "A B C", [(0, 0), (1, 1), (2, 2)])
    assert sure.guesses == ()
    told = transfer_markup("a <b>b</b> <i>c</i> d <x/> e", "D A B E B", [(0, 1), (1, 2), (1, 4), (3, 0), (4, 3)])
    assert {(guess.tag, guess.reason) for guess in told.guesses} == {
        ("<b>", "scattered"),
        ("<i>", "unlinked"),
        ("<x/>", "between"),
    }


def test_probabilities_decide_whose_word_it_is():
    links = frozenset({(0, 0), (1, 0), (1, 1)})
    first, second = (Alignment(links, probability={(0, 0): p, (1, 0): 1 - p, (1, 1): 1.0}) for p in (0.9, 0.1))
    assert transfer_markup("<b>a</b> <i>b</i>", "X Y", first).line == "<b>X</b> <i>Y</i>"
    assert transfer_markup("<b>a</b> <i>b</i>", "X Y", second).line == "<b></b> <i>X Y</i>"


def test_links_of_the_line_with_its_markup_are_refused():
    with pytest.raises(LinksError, match="without its markup"):
        transfer_markup("<b> a </b>", "A", [(1, 0)])


# The command ---------------------------------------------------------------------------------------------------------


def run(capsysbinary, *arguments):
    status = main([str(argument) for argument in arguments])
    told = capsysbinary.readouterr()
    return status, told.out.decode(), told.err.decode()


@pytest.fixture
def files(tmp_path):
    (tmp_path / "marked").write_text("the <b>red</b> house\n\nsee {0} below\n")
    (tmp_path / "target").write_text("la maison rouge\r\n\nvoir ci-dessous\n", newline="")
    (tmp_path / "links").write_text("0-0 1-2 2-1\n\n0-0 1-1\n")
    return tmp_path


def test_command_places_through_links(files, capsysbinary):
    status, out, err = run(capsysbinary, "transfer-markup", files / "marked", files / "target", files / "links")
    assert (status, out) == (0, "la maison <b>rouge</b>\r\n\nvoir {0} ci-dessous\n")
    assert "3 tags placed in 2 lines" in err and "guess" not in err


def test_command_strips(files, capsysbinary):
    status, out, _ = run(capsysbinary, "transfer-markup", files / "marked", "--strip")
    assert (status, out) == (0, "the red house\n\nsee below\n")
    status, out, _ = run(capsysbinary, "transfer-markup", files / "marked", "--strip", "--keep-placeholders")
    assert out.splitlines()[2] == "see {0} below"


def test_command_reports_guesses(files, capsysbinary):
    (files / "links").write_text("0-0 2-1\n\n\n")
    arguments = (files / "marked", files / "target", files / "links", "--report", files / "report")
    status, out, err = run(capsysbinary, "transfer-markup", *arguments)
    assert (status, out.splitlines()[0]) == (0, "la <b></b> maison rouge")
    assert (files / "report").read_text() == "1\t<b>\tunlinked\n3\t{0}\tbetween\n"
    assert "a guess in 2 of them, first in line 1" in err


def test_command_trains_itself_or_takes_a_model(tmp_path, capsysbinary):
    from isogloss.tasks.align import HMMAligner

    bitext = samples.bitext("en-de")
    HMMAligner().fit(bitext).save(tmp_path / "model")
    marked = samples.path("en-de", "source").read_text().replace("book", "<b>book</b>")
    (tmp_path / "marked").write_text(marked)
    target = samples.path("en-de", "target")
    for more in ([], ["--model", tmp_path / "model"]):
        status, out, _ = run(capsysbinary, "transfer-markup", tmp_path / "marked", target, *more)
        assert status == 0
        assert out.count("<b>") == marked.count("<b>") and "<b>Buch</b>" in out
        assert MARK.sub("", out) == target.read_text()


def test_command_refuses(files, capsysbinary):
    for arguments, status, word in [
        (["marked"], 2, "--strip"),
        (["marked", "target", "links", "--model", "x"], 2, "exclude"),
        (["marked", "target", "--strip"], 2, "--strip"),
        (["marked", "marked", "missing"], 2, "missing"),
        (["marked", "links", "marked"], 1, "line 1"),
    ]:
        found = run(
            capsysbinary,
            "transfer-markup",
            *(argument if argument.startswith("-") else files / argument for argument in arguments),
        )
        assert found[0] == status and word in found[2] and not found[1]
    (files / "target").write_text("x\n")
    status, out, err = run(capsysbinary, "transfer-markup", files / "marked", files / "target", files / "links")
    assert (status, out) == (1, "") and "has 3 lines but" in err
