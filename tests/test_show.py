"""Pictures of alignments: what is drawn, that nothing in a word can break out of it, and that it lines up."""

from __future__ import annotations

import doctest
import importlib
import io
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from isogloss import show
from isogloss.errors import LinksError, ParameterError, UsageError
from isogloss.show._measure import clip, display_width, runs_right_to_left

SVG = "{http://www.w3.org/2000/svg}"
FRENCH = {
    "source": ["the", "small", "house", "was", "sold"],
    "target": ["la", "petite", "maison", "a", "été", "vendue"],
    "links": [[0, 0, 0.98], [1, 1, 0.6], [2, 2, 0.4], [3, 4, 0.2], [4, 3, 0.7]],
    "gold": {"sure": [[0, 0], [1, 1], [2, 2], [4, 5]], "possible": [[3, 4], [3, 3]]},
    "line": 7,
}
JAPANESE = {
    "source": ["私", "は", "本", "を", "借りました"],
    "target": ["I", "borrowed", "ﾎﾝ", "books"],
    "links": [[0, 0, 0.9], [4, 1, 0.8], [2, 3, 0.3]],
}
ARABIC = {
    "source": ["the", "president", "(", "yesterday", ")"],
    "target": ["الرئيس", "(", "أمس", ")", "x"],
    "links": [[1, 0, 0.9], [2, 1, 0.9], [3, 2, 0.8], [4, 3, 0.9]],
}
NASTY = [
    "<script>alert(1)</script>",
    "</script><!--",
    "\"&'",
    "a\x1b[31mb",
    "\u2028",
    "\ud800",
    "\u202eabc",
    "]]>",
    "\x00",
    "",
]


@st.composite
def pairs(draw, words=None):
    if words is None:
        words = st.one_of(st.text(max_size=8), st.sampled_from(NASTY), st.sampled_from(["שלום", "日本", "e\u0301"]))
    source, target = draw(st.lists(words, max_size=6)), draw(st.lists(words, max_size=7))
    cells = [[i, j] for i in range(len(source)) for j in range(len(target))]
    some = st.lists(st.sampled_from(cells), unique_by=tuple) if cells else st.just([])
    probability = st.one_of(st.none(), st.integers(0, 100).map(lambda percent: percent / 100))
    made = {"source": source, "target": target, "links": [[*link, draw(probability)] for link in sorted(draw(some))]}
    if draw(st.booleans()):
        sure = sorted(draw(some))
        made["gold"] = {"sure": sure, "possible": sorted(link for link in draw(some) if link not in sure)}
    if draw(st.booleans()):
        made |= {"other": [[*link, None] for link in sorted(draw(some))], "names": ["ours", "<theirs>"]}
    if draw(st.booleans()):
        made |= {"line": 3, "confidence": 0.5, "title": draw(words)}
    return made


def kinds(d):
    """Right, wrong and missed links, from the definitions."""
    links = {(i, j) for i, j, *_ in d["links"]}
    sure = {tuple(link) for link in d["gold"]["sure"]}
    allowed = sure | {tuple(link) for link in d["gold"]["possible"]}
    return links & allowed, links - allowed, sure - links


# ---- measures ----


@given(st.text(st.sampled_from("abé日本語ｱＡ한글العשלו…░█│·—\u0301\u05b7"), max_size=12), st.integers(1, 12))
def test_width_is_that_of_another_library_and_clipping_keeps_to_it(text, width):
    assert display_width(text) == cell_len(text)
    assert display_width(clip(text, width)) <= max(width, 1)
    assert text.startswith(clip(text, width).removesuffix("…")) or clip(text, width) == text


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["shalom", "שלום"], False), (["«", "12", "سلام"], True), (["!"], False), ([], False), (["𞤀"], True)],
)
def test_direction_is_that_of_the_first_letter(words, expected):
    assert runs_right_to_left(words) is expected


# ---- notebook figure ----


@given(pairs())
def test_figure_is_well_formed_and_keeps_every_word_as_text(d):
    root = ElementTree.fromstring(show.alignment(d))
    assert not list(root.iter("script")) and not list(root.iter(f"{SVG}script"))
    assert not list(root.iter("b"))
    if d["source"] and d["target"]:
        assert len(root.findall(f"./div/{SVG}svg/{SVG}text")) == len(d["source"]) + len(d["target"])


@given(
    pairs(words=st.sampled_from(["a", "日本", "שלום"])).filter(lambda d: "gold" in d and d["source"] and d["target"])
)
def test_figure_marks_wrong_and_missed_by_shape(d):
    """A cross for each wrong link and a ring for each missed one, wherever colour cannot be seen."""
    right, wrong, missed = kinds(d)
    svg = ElementTree.fromstring(show.alignment(d)).find(f"./div/{SVG}svg")
    groups = svg.findall(f"{SVG}g")
    crosses = [g for g in groups if any(p.get("fill") == "none" for p in g.findall(f"{SVG}path"))]
    rings = [g for g in groups if any(c.get("fill") == "none" for c in g.findall(f"{SVG}circle"))]
    boxes = [g for g in groups if len([r for r in g.findall(f"{SVG}rect") if r.get("stroke")]) == 1]
    filled = [g for g in groups if any(p.get("fill").startswith("#") for p in g.findall(f"{SVG}path"))]
    assert (len(crosses), len(rings)) == (len(wrong), len(missed))
    assert len(filled) == len(right) + len(wrong)
    assert len(boxes) == len({tuple(link) for key in ("sure", "possible") for link in d["gold"][key]})


def test_figure_names_words_and_probability_on_hover():
    titles = [title.text for title in ElementTree.fromstring(show.alignment(FRENCH)).iter(f"{SVG}title")]
    assert "house — maison: 0.40, sure in gold" in titles
    assert "sold — a: 0.70, wrong: not in gold" in titles
    assert "sold — vendue: missed: sure in gold" in titles


def test_figure_shades_by_probability_and_takes_the_colour_of_the_page():
    text = show.alignment(FRENCH)
    opacity = [float(found) for found in re.findall(r'fill-opacity="([\d.]+)"', text.split("</svg>")[0])]
    assert opacity == sorted(opacity[:4], reverse=True) + opacity[4:]
    assert (
        "currentColor" in text and "black" not in text and "http:" not in text.replace("http://www.w3.org/2000/svg", "")
    )


def columns_of(d):
    svg = ElementTree.fromstring(show.alignment(d)).find(f"./div/{SVG}svg")
    return [float(g.find(f"{SVG}rect").get("x")) for g in svg.findall(f"{SVG}g")], svg


def test_target_columns_run_in_reading_direction():
    diagonal = {"links": [[0, 0], [1, 1], [2, 2]], "source": ["a", "b", "c"]}
    left_to_right, _ = columns_of(diagonal | {"target": ["x", "y", "z"]})
    right_to_left, svg = columns_of(diagonal | {"target": ["واحد", "اثنان", "("]})
    assert left_to_right == sorted(left_to_right) and right_to_left == sorted(right_to_left, reverse=True)
    labels = svg.findall(f"{SVG}text")
    assert [label.get("direction") for label in labels] == ["ltr"] * 3 + ["rtl"] * 3  # the bracket follows its sentence
    assert all(label.get("unicode-bidi") == "isolate" for label in labels)
    # source words now stand right of the grid: their left edge, which is where an English word starts, touches it
    assert {label.get("text-anchor") for label in labels[:3]} == {"start"}
    assert float(labels[0].get("x")) > max(right_to_left)


def test_figure_leaves_room_for_wide_characters():
    wide = columns_of({"source": ["日本語日本語"], "target": ["a"], "links": [[0, 0]]})[0][0]
    narrow = columns_of({"source": ["nihong"], "target": ["a"], "links": [[0, 0]]})[0][0]
    assert wide > 6 * 14 and wide > narrow  # six full squares of a 14 pixel font


def test_posterior_without_a_link_is_a_dot_and_fills_in_a_missing_probability():
    d = {"source": ["a"], "target": ["x", "y", "z"], "links": [[0, 0, None]], "posterior": [[0.7, 0.25, 0.001]]}
    titles = [title.text for title in ElementTree.fromstring(show.alignment(d)).iter(f"{SVG}title")]
    assert titles == ["a — x: 0.70", "a — y: 0.25, not linked"]


def test_figure_halves_the_squares_of_systems_that_differ():
    d = {"source": ["a", "b", "c"], "target": ["x"], "links": [[0, 0], [1, 0]], "other": [[0, 0], [2, 0]]}
    svg = ElementTree.fromstring(show.alignment(d)).find(f"./div/{SVG}svg")
    outlines = [re.findall("[A-Z]", g.find(f"{SVG}path").get("d")) for g in svg.findall(f"{SVG}g")]
    assert outlines == [list("MHVHZ"), list("MHLZ"), list("MVHZ")]  # square, upper left half, lower right half


def test_alignment_value_draws_itself():
    from isogloss.data import Alignment

    html = Alignment(frozenset({(0, 1)}), frozenset({(1, 0)}), ("das", "<b>"), ("the", "x"))._repr_html_()
    assert "&lt;b&gt;" in html and "<b>" not in html and "stroke-dasharray" in html


# ---- terminal ----


def grid_columns(drawing, stems):
    """Display columns of the line of stems, and of everything that is drawn in the rows below it."""
    lines = drawing.split("\n")
    at = next(k for k, line in enumerate(lines) if line.split() == ["│"] * stems)
    return lines, at, [cell_len(lines[at][:k]) for k, character in enumerate(lines[at]) if character == "│"]


def character_at(line, column):
    return next(c for k, c in enumerate(line) if cell_len(line[:k]) == column and cell_len(c) > 0)


@pytest.mark.parametrize("d", [FRENCH, JAPANESE, ARABIC], ids=["french", "japanese", "arabic"])
def test_terminal_squares_stand_under_their_words(d):
    lines, at, columns = grid_columns(show.terminal(d), len(d["target"]))
    linked = {(i, j) for i, j, *_ in d["links"]}
    for j, word in enumerate(d["target"]):
        header = lines[at - len(d["target"]) + j].replace("\u200e", "")
        assert header.endswith(word) and cell_len(header.removesuffix(word)) == columns[j]
    for i, word in enumerate(d["source"]):
        row = lines[at + 1 + i]
        assert word in row
        for j, column in enumerate(columns):
            assert (character_at(row, column) in "░▒▓█") == ((i, j) in linked)


def test_terminal_shades_and_gold_marks():
    rows = show.terminal(FRENCH).split("\n")[7:12]
    assert rows == [
        "  the [█] ·  ·  ·  ·  ·",
        "small  · [▓] ·  ·  ·  ·",
        "house  ·  · [▒] ·  ·  ·",
        "  was  ·  ·  · ( )(░) ·",
        " sold  ·  ·  ·  ▓! · [ ]",
    ]


def test_terminal_tells_two_systems_apart():
    d = {"source": ["a", "b"], "target": ["x", "y"], "links": [[0, 0, 0.9], [1, 0, 0.9]], "other": [[0, 0], [1, 1]]}
    drawing = show.terminal(d | {"names": ["new", "old"]})
    assert [line.split() for line in drawing.split("\n")[3:5]] == [["a", "█", "·"], ["b", "1", "2"]]
    assert "1 only new" in drawing and "2 only old" in drawing and "2 differ from old" in drawing


@given(pairs(), st.integers(20, 100), st.sampled_from(["auto", "grid", "list"]))
@settings(max_examples=60)
def test_terminal_keeps_to_its_width_and_passes_no_control_character(d, width, layout):
    drawing = show.terminal(d, width=width, layout=layout)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", drawing)
    drawing.encode()
    lines = drawing.split("\n")
    caption = max(k for k, line in enumerate(lines) if re.search(r"(^| )\d+ links?($|[:,])", line))
    if layout == "grid" or width > 70:  # in a list one word and its remarks stay together
        assert all(display_width(line) <= width for line in lines[:caption])
    coloured = show.terminal(d, width=width, layout=layout, colour=True)
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == drawing


def test_terminal_colours_only_when_asked():
    assert "\x1b" not in show.terminal(FRENCH)
    assert "\x1b[31;1m ▓!\x1b[0m" in show.terminal(FRENCH, colour=True)


def long_pair(n):
    words = [f"word{k}" for k in range(n)]
    return {"source": words, "target": words, "links": [[k, k, 0.5] for k in range(n - 1)]}


def test_long_pairs_become_panels_and_then_a_list():
    panels = show.terminal(long_pair(50), width=80)
    assert panels.count("\n\n") == 1 and panels.count("▓▓") == 49
    listed = show.terminal(long_pair(150), width=80).split("\n")
    assert listed[3] == "  word3 — word3 (0.50)"
    assert listed[149] == "word149 — ·" and listed[150] == "      · — word149"


def test_terminal_refuses_nonsense():
    with pytest.raises(ParameterError, match="layout"):
        show.terminal(FRENCH, layout="circle")
    with pytest.raises(ParameterError, match="width"):
        show.terminal(FRENCH, width=3)


# ---- empty pairs and wrong dictionaries ----

EMPTY = [
    {"source": [], "target": [], "links": []},
    {"source": [], "target": ["x"], "links": []},
    {"source": ["a"], "target": [], "links": [], "gold": {"sure": [], "possible": []}},
    {"source": ["a"], "target": ["x"], "links": []},
]


@pytest.mark.parametrize("d", EMPTY)
def test_empty_sentences_and_no_links_are_drawn(d):
    ElementTree.fromstring(show.alignment(d))
    assert "0 links" in show.terminal(d)
    assert embedded("".join(show.page([d])))[0]["links"] == []


@pytest.mark.parametrize("draw", [show.alignment, show.terminal, lambda d: list(show.page([d]))])
def test_wrong_dictionaries_are_named(draw):
    base = {"source": ["a"], "target": ["x", "y"], "links": []}
    with pytest.raises(LinksError, match=r"link 0-2 in 'links' of line 12 .* 1 and 2 words"):
        draw(base | {"links": [[0, 2]], "line": 12})
    with pytest.raises(LinksError, match="'gold'"):
        draw(base | {"gold": {"sure": [[-1, 0]]}})
    with pytest.raises(LinksError, match="transposed"):
        draw(base | {"posterior": [[0.1], [0.2]]})
    with pytest.raises(ParameterError, match="split"):
        draw(base | {"source": "a b"})
    with pytest.raises(ParameterError, match="no 'target'"):
        draw({"source": [], "links": []})
    with pytest.raises(ParameterError, match="names"):
        draw(base | {"names": "both"})


# ---- page ----


class Reader(HTMLParser):
    """Reads as a browser does: the content of a script ends at the first `</script`."""

    VOID = frozenset({"meta", "input", "br", "link", "img"})

    def __init__(self, text):
        super().__init__()
        self.open, self.scripts, self.tags, self.text = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        else:
            self.text.append(data)


def embedded(text):
    return json.loads(Reader(text).scripts[0])


@given(st.lists(pairs(), max_size=3))
@settings(max_examples=50)
def test_page_carries_its_pairs_unchanged_and_stays_well_formed(given_pairs):
    text = "".join(show.page(given_pairs, title="<script>&", summary={"aer": 9.254, "<b>": "</dl>"}))
    text.encode()
    reader = Reader(text)
    assert not reader.open and len(reader.scripts) == 3
    assert reader.text.count("<script>&") == 2 and "9.25" in reader.text and "</dl>" in reader.text
    records = json.loads(reader.scripts[0])
    assert len(records) == len(given_pairs)
    for record, d in zip(records, given_pairs, strict=True):
        assert {key: record[key] for key in d if key != "names" or "other" in d} == d
        assert record["rtl"] == [int(runs_right_to_left(d[side])) for side in ("source", "target")]


def test_page_escapes_what_would_end_its_script():
    text = "".join(show.page([{"source": NASTY, "target": ["<!--<script>", "a\u2029b"], "links": []}]))
    data = text.split('id="pairs">')[1].split("</script>")[0]
    assert not re.search("[<>&\u2028\u2029\ud800]", data)
    assert json.loads(data)[0]["source"] == NASTY


def test_page_asks_the_network_for_nothing():
    text = "".join(show.page([FRENCH, JAPANESE]))
    reader = Reader(text)
    policy = next(a["content"] for tag, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert not [a for _, a in reader.tags if "src" in a or "href" in a]
    assert "@import" not in text and "url(" not in text
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in text  # words reach the page as text only


def test_page_is_made_as_pairs_arrive():
    taken = []

    def source():
        for k in range(3):
            taken.append(k)
            yield FRENCH | {"line": k}

    pieces = show.page(source())
    seen = [len(taken) for _ in pieces]
    assert sorted(set(seen)) == [0, 1, 2, 3]


def test_posterior_is_kept_where_it_adds_something():
    d = {"source": ["a"], "target": ["x", "y", "z"], "links": [[0, 0]], "posterior": [[0.7, 0.123456, 0.001]]}
    record = embedded("".join(show.page([d])))[0]
    assert record["links"] == [[0, 0, 0.7]] and record["posterior"] == [[0, 1, 0.1235]]


def test_unknown_probabilities_do_not_break_the_data():
    d = {"source": ["a"], "target": ["x"], "links": [[0, 0, float("nan")]], "confidence": float("inf")}
    record = embedded("".join(show.page([d])))[0]
    assert record["links"] == [[0, 0, None]] and "confidence" not in record


def test_file_appears_whole_or_not_at_all(tmp_path):
    goal = tmp_path / "page.html"
    goal.write_text("old")
    with pytest.raises(LinksError):
        show.write_page([FRENCH, FRENCH | {"links": [[99, 0]]}], goal)
    assert goal.read_text() == "old" and list(tmp_path.iterdir()) == [goal]
    show.write_page(iter([FRENCH]), str(goal), title="new")
    assert embedded(goal.read_text(encoding="utf-8"))[0]["line"] == 7 and list(tmp_path.iterdir()) == [goal]
    stream = io.StringIO()
    show.write_page([FRENCH], stream, title="new")
    assert stream.getvalue() == goal.read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="no folder"):
        show.write_page([], tmp_path / "absent" / "page.html")


# ---- the page in a browser ----

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


def in_browser(tmp_path, given_pairs, state):
    """The document after its scripts have run."""
    goal = tmp_path / "page.html"
    show.write_page(given_pairs, goal)
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += f" --disable-component-update --disable-sync --user-data-dir={tmp_path / 'profile'}"
    flags += " --virtual-time-budget=3000 --window-size=1200,2000 --dump-dom"
    done = subprocess.run(
        [BROWSER, *flags.split(), f"{goal.as_uri()}#{state}"], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode or "<html" not in done.stdout:
        pytest.skip(f"the browser did not start: {done.stderr[-200:]}")
    return done.stdout


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome here; the page is checked without one above")
def test_page_in_a_browser_counts_sorts_and_draws(tmp_path):
    other = {"source": ["eins"], "target": ["one"], "links": [[0, 0, 0.9]], "gold": {"sure": [[0, 0]]}, "line": 1}
    document = in_browser(tmp_path, [other, FRENCH, ARABIC | {"line": 9}], "sort=errors&view=both&t=0.5")
    assert re.findall(r'<article[^>]*id="pair-(\d+)"', document) == ["7", "1", "9"]
    # by hand: 0-0, 1-1 and 4-3 of FRENCH and the one link of the other stay; sure are 5, found 3
    scores = dict(re.findall(r'data-score="first-(\w+)">([^<]*)<', document))
    assert scores == {"P": "75.0", "R": "60.0", "F": "66.7", "AER": f"{100 * (1 - (3 + 3) / (4 + 5)):.1f}"}
    card = document.split('id="pair-7"')[1].split("</article>")[0]
    assert card.count('class="curve wrong"') == card.count('class="mark wrong"') == 1
    assert card.count('class="curve missed"') == card.count('class="mark missed"') == 2
    right_to_left = document.split('id="pair-9"')[1]
    assert re.search(r'class="words target" dir="rtl"', right_to_left)
    assert re.search(r'dir="auto" data-t="0">الرئيس', right_to_left)


# ---- house rules ----


def test_import_is_cheap():
    code = "import sys; from isogloss import show; print([m for m in ('numpy', 'numba', 'rich') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


@pytest.mark.parametrize("module", ["", "._measure", "._pair", "._console", "._figure", "._page"])
def test_examples_in_docstrings(module):
    assert doctest.testmod(importlib.import_module("isogloss.show" + module)).failed == 0
