"""Texts, treebanks, links and the like: what they say of themselves in one line, their first rows, and slices."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from isogloss.data import Alignment, Bitext, Column, Links, TagDictionary, Text, Treebank, Vocabulary

N = 12
PAIRS = [([f"a{k}"] * (k % 4), ["<b>", "x\ny", f"b{k}"][: k % 3 + 1]) for k in range(N)]
BITEXT = Bitext.of(PAIRS)
LINKS = Links.of(
    Alignment(frozenset({(k, k + 1)}), frozenset({(0, k)} - {(k, k + 1)}), probability={(k, k + 1): 0.5})
    for k in range(N)
)
TREES = Treebank.of(
    [[{"form": f"w{k}", "upos": "X", "head": 0 if not k else 1, "deprel": "<dep>"} for k in range(n % 4 + 1)]
     for n in range(N)]
)  # fmt: skip
TEXT = BITEXT.target
RAGGED = BITEXT.source.ids
SEQUENCES: dict[str, Any] = {"bitext": BITEXT, "text": TEXT, "treebank": TREES, "links": LINKS, "ragged": RAGGED}
WORDS = Vocabulary(["<b>", "das", "Haus"] * 20)
TAGS = TagDictionary({"<b>": "NOUN", "the": "DET"})
SHOWN: dict[str, Any] = {**SEQUENCES, "vocabulary": WORDS, "dictionary": TAGS}


# --- one line, and first rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHOWN)
def test_one_line(name: str) -> None:
    said = repr(SHOWN[name])
    assert "\n" not in said and len(said) < 100 and said.startswith(type(SHOWN[name]).__name__ + "(")
    assert f"{len(SHOWN[name])} " in said


def test_lines_have_sizes_and_names() -> None:
    assert repr(BITEXT) == "Bitext(12 pairs, 18 and 24 words)"
    named = Bitext(Text.of(["a"], "news.de"), Text.of(["b c"], "news.en"))
    assert repr(named) == "Bitext(1 pair, 1 and 2 words, 'news.de' and 'news.en')"
    assert repr(named.source) == "Text(1 sentence, 1 word, 'news.de')"
    assert repr(Treebank.of([[("a",)]] * 1200, "x.conllu")) == "Treebank(1,200 sentences, 1,200 words, 'x.conllu')"
    assert repr(LINKS) == "Links(12 pairs, 24 links, 12 of them possible, with probabilities)"
    assert repr(TREES.columns["upos"]) == "Column(30 words, 1 kind)" == repr(Column.of(["X"] * 30))
    assert repr(LINKS[0]) == "Alignment(1 link, 1 possible: '0-1')"
    assert repr(TREES[1]) == "Sentence('sentence 2', 'w0 w1')"
    whole = Alignment(frozenset((k, k) for k in range(99)), posterior=np.zeros((99, 99)))
    assert "\n" not in repr(whole) and len(repr(whole)) < 100


@pytest.mark.parametrize("name", SHOWN)
def test_first_rows_are_safe_tables(name: str) -> None:
    drawn = SHOWN[name]._repr_html_()
    found = ElementTree.fromstring(drawn)
    rows = found.findall(".//tbody/tr")
    assert len(rows) == min(5, len(SHOWN[name])) and "http" not in drawn and "<b>" not in drawn
    assert (f"and {len(SHOWN[name]) - 5:,} more" in drawn) == (len(SHOWN[name]) > 5)


def test_empty_things_show_themselves() -> None:
    for thing in (*SEQUENCES.values(), WORDS):
        empty = thing[:0] if thing is not WORDS else Vocabulary([])
        assert ElementTree.fromstring(empty._repr_html_()).findall(".//tbody/tr") == [] and "0 " in repr(empty)


def test_a_sentence_draws_its_tree() -> None:
    drawn = ElementTree.fromstring(TREES[1]._repr_html_())
    assert "w1" in ElementTree.tostring(drawn, encoding="unicode")
    assert TREES[1].words == TREES.words(1) and len(TREES[1]) == 2 and TREES[1].heads == (0, 1)


# --- slices ----------------------------------------------------------------------------------------------------------

PLAIN: dict[str, list[Any]] = {
    "bitext": [(tuple(a), tuple(b)) for a, b in PAIRS],
    "text": [tuple(b) for _, b in PAIRS],
    "treebank": [tuple(f"w{k}" for k in range(n % 4 + 1)) for n in range(N)],
    "links": [[(k, k + 1)] for k in range(N)],
    "ragged": [[BITEXT.source.vocabulary.index_of(word) for word in a] for a, _ in PAIRS],
}
VALUE: dict[str, Callable[[Any], Any]] = {
    "bitext": lambda row: row,
    "text": lambda row: row,
    "treebank": lambda row: row.words,
    "links": lambda row: sorted(row.links),
    "ragged": lambda row: row.tolist(),
}


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize(
    "rows", [slice(2), slice(3, 9), slice(-4, None), slice(None, None, 2), slice(None, None, -1), slice(9, 2, -3),
             slice(5, 2), slice(100, 200), slice(-100, 3)]
)  # fmt: skip
def test_slices_are_those_of_lists(name: str, rows: slice) -> None:
    whole, plain, value = SEQUENCES[name], PLAIN[name], VALUE[name]
    part = whole[rows]
    assert type(part) is type(whole) and len(part) == len(plain[rows])
    assert [value(row) for row in part] == plain[rows] == [value(part[k]) for k in range(len(part))]
    again = part[::2]
    assert [value(row) for row in again] == plain[rows][::2]


@pytest.mark.parametrize("name", SEQUENCES)
def test_single_rows(name: str) -> None:
    whole, plain, value = SEQUENCES[name], PLAIN[name], VALUE[name]
    for row in (0, 3, -1, -N, np.int64(5), np.int32(-2)):
        assert value(whole[row]) == plain[row]
    for row in (N, -N - 1, np.int64(N)):
        with pytest.raises(IndexError, match=f"no row {row} among {N}"):
            whole[row]
    for row in ("a", 1.5, None):
        with pytest.raises(TypeError):
            whole[row]
    mask = np.arange(N) % 3 == 0
    assert [value(row) for row in whole.take(mask)] == plain[::3]
    for wrong in ([N], mask[:3], [0.5], [[0]]):
        with pytest.raises(IndexError, match=r"rows? "):
            whole.take(wrong)


def test_neighbouring_rows_share_arrays() -> None:
    assert np.shares_memory(BITEXT[2:5].source.ids.values, BITEXT.source.ids.values)
    assert np.shares_memory(TREES[2:5].heads, TREES.heads)
    assert np.shares_memory(LINKS[2:5].source, LINKS.source)


def test_parts_know_their_lines_and_words() -> None:
    assert [BITEXT[rows].line_of(0) for rows in (slice(3, 6), slice(8, None, -2))] == [4, 9]
    assert BITEXT[8::-2][1:].line_of(0) == 7 and BITEXT[::3].swapped().line_of(1) == 4
    linked = Links(LINKS.offsets, LINKS.source, LINKS.target, bitext=BITEXT)
    assert linked[::-1][0].source == BITEXT[-1][0]
    assert TREES[::-1].to_bytes().count(b"\n\n") == N
    with pytest.raises(IndexError):
        TREES.words(N)
