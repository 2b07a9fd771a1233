"""Sentences with names and relations: files in and out, ways to tag, rows and slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data import Mentions, Text
from isogloss.data.formats.mentions import SCHEMES, decode_tags, encode_tags, scheme_of
from isogloss.errors import MentionsError, ParameterError

COLUMNS = "Melbourne NP B-LOC\n( Fpa O\nSan NC B-LOC\nJosé NP I-LOC\n\n\nEFE NC B-ORG\n. Fp O\n"


@st.composite
def names(draw: Any) -> tuple[int, list[tuple[int, int, str]]]:
    """A number of words, and names among them that do not overlap."""
    n = draw(st.integers(0, 7))
    found, at = [], 0
    while at < n:
        width, kind = draw(st.integers(1, 3)), draw(st.sampled_from(["PER", "LOC", "geo-loc", None]))
        end = min(n, at + width)
        if kind is not None:
            found.append((at, end, kind))
        at = end
    return n, found


def chunks(tags: list[str]) -> set[tuple[int, int, str]]:
    """What conlleval.pl takes for chunks, word by word, as its subroutines endOfChunk and startOfChunk say."""
    found, begin = set(), 0
    rows = [("O", "")] + [(tag[0], tag[2:]) for tag in tags] + [("O", "")]
    for t in range(1, len(rows)):
        (p, before), (c, kind) = rows[t - 1], rows[t]
        ended = (p in "BI" and c in "BOS") or p in "ES" or before != kind
        if ended and p != "O":
            found.add((begin, t - 1, before))
        if c in "BS" or (p in "OES" and c in "EI") or (c != "O" and before != kind):
            begin = t - 1
    return found


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y", "E-Y"]), max_size=7))
@settings(max_examples=300, deadline=None)
def test_tags_are_read_as_conlleval_reads_them(tags: list[str]) -> None:
    assert set(decode_tags(tags)) == chunks(tags)


@given(names(), st.sampled_from(SCHEMES))
def test_names_come_back_from_tags(drawn: tuple[int, list[tuple[int, int, str]]], scheme: str) -> None:
    n, entities = drawn
    assert decode_tags(encode_tags(n, entities, scheme)) == entities


@given(st.lists(names(), min_size=1, max_size=4), st.sampled_from(SCHEMES), st.sampled_from([" ", "\t"]), st.booleans())
@settings(max_examples=100, deadline=None)
def test_files_come_back_byte_for_byte_and_with_other_names(
    drawn: list[tuple[int, list[tuple[int, int, str]]]], scheme: str, separator: str, speech: bool
) -> None:
    drawn = [one for one in drawn if one[0]]
    lines = []
    for n, entities in drawn:
        tags = encode_tags(n, entities, scheme)
        lines += [separator.join([f"w{t}é", *(["NN"] if speech else []), tag]) for t, tag in enumerate(tags)] + [""]
    data = "\n".join(lines).encode()
    read = Mentions.from_bytes(data, format="columns")
    assert read.to_bytes() == data
    assert [list(read.entities(s)) for s in range(len(read))] == [entities for _, entities in drawn]
    assert ("tag" in read.columns) == (speech and bool(drawn))
    none = read.with_entities([[] for _ in drawn])
    assert none.n_entities == 0
    again = Mentions.from_bytes(none.to_bytes(), format="columns")
    assert again.n_entities == 0 and again.n_words == read.n_words
    back = none.with_entities([entities for _, entities in drawn])
    assert back.to_bytes() == data


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), st.sampled_from(
    [b"\n", b"\n\n", b" ", b"\t", b"\r", b"\0", b"-", b"B-", b"I-X", b"O", "é".encode(), "\u2028".encode(), b"\x0b"]
)), max_size=6))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_damaged_files_are_read_or_refused_in_words(edits: list[tuple[float, int, bytes]]) -> None:
    data = COLUMNS.encode()
    for place, lost, new in edits:
        at = int(place * len(data))
        data = data[:at] + new + data[at + lost :]
    try:
        data.decode()
        read = Mentions.from_bytes(data, format="columns")
    except (MentionsError, UnicodeDecodeError):
        return
    assert read.to_bytes() == (data if len(read) else b"")
    names = [[(0, int(n), "Z")] for n in read.lengths]
    assert Mentions.from_bytes(read.with_entities(names).to_bytes(), format="columns").n_entities == len(read)


def test_the_scheme_of_a_file_is_kept() -> None:
    for scheme in ("IOB1", "BIOES", "BILOU"):
        tags = encode_tags(5, [(0, 2, "A"), (2, 3, "A"), (4, 5, "B")], scheme)
        assert scheme_of([tags]) == scheme
        read = Mentions.from_bytes("\n".join(f"w {tag}" for tag in tags).encode())
        other = read.with_entities([[(0, 1, "C"), (1, 3, "C")]])
        wanted = encode_tags(5, [(0, 1, "C"), (1, 3, "C")], scheme)
        assert other.to_bytes().decode() == "\n".join(f"w {tag}" for tag in wanted)


def test_columns_of_words_and_rows() -> None:
    read = Mentions.from_bytes(COLUMNS.encode(), "esp")
    assert repr(read) == "Mentions(2 sentences, 6 words, 3 names, 'esp')"
    assert read.strings("tag", 1) == ("NC", "Fp") and read.words(0) == ("Melbourne", "(", "San", "José")
    assert str(read[0]) == "[Melbourne LOC] ( [San José LOC]" and read.line_of(1) == 7
    assert read[1:].to_bytes() == b"EFE NC B-ORG\n. Fp O\n"
    turned = read.take([1, 0])
    assert turned.entities(1) == read.entities(0)
    assert Mentions.from_bytes(turned.to_bytes()).entities(1) == read.entities(0)
    assert read.statistics()["types"] == {"LOC": 2, "ORG": 1}


def test_words_without_tags_get_a_column() -> None:
    for text, wanted in ((b"Ada\nsleeps\n", b"Ada B-PER\nsleeps O\n"), (b"Ada\tNN\n", b"Ada\tNN\tB-PER\n")):
        read = Mentions.from_bytes(text, format="columns")
        assert read.n_entities == 0 and read.with_entities([[(0, 1, "PER")]]).to_bytes() == wanted


def test_text_is_written_as_columns() -> None:
    found = Mentions.from_text(Text.of(["Ada sleeps", "", "in London"])).with_entities([[(0, 1, "PER")], [], []])
    assert found.to_bytes() == b"Ada B-PER\nsleeps O\n\n\nin O\nLondon O\n\n"


def test_relations_follow_their_names() -> None:
    words = ["Ada", "and", "Bob", "met"]
    made = Mentions.of([(words, [(2, 3, "PER"), (0, 1, "PER")], [(0, 1, "met")]), (["Cleo"], [(0, 1, "PER")])])
    assert made.entities(0) == ((0, 1, "PER"), (2, 3, "PER")) and made.relations(0) == ((1, 0, "met"),)
    assert made.take([1, 0]).relations(1) == ((1, 0, "met"),) and made[1:].n_relations == 0
    assert made.with_entities([[(0, 1, "PER")], []], [[0.5], []]).confidence is not None
    assert made[0].as_dict()["relations"] == [[1, 0, "met"]]


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(MentionsError, match="x, line 3: 2 columns in 'b O', where lines before have 3"):
        Mentions.from_bytes(b"a N O\n\nb O\n", "x")
    with pytest.raises(MentionsError, match="x, line 2: 'Q-PER' in the last column is no tag of names"):
        Mentions.from_bytes(b"a B-PER\nb Q-PER\n", "x")
    with pytest.raises(ParameterError, match=r"sentence 1: names 1 to 3 and up to 2 overlap"):
        Mentions.of([(["a", "b", "c"], [(0, 2, "X"), (1, 3, "X")])]).to_bytes()
    with pytest.raises(ParameterError, match="sentence 0 has 1 words, and no name from 0 to 2"):
        Mentions.of([(["a"], [(0, 2, "X")])])
    with pytest.raises(ParameterError, match="sentence 0 has 1 names, and a relation between 0 and -1"):
        Mentions.of([(["a"], [(0, 1, "X")], [(0, 4, "r")])])
    with pytest.raises(ParameterError, match="'a b' cannot stand in a column"):
        Mentions.of([(["a b"], [])]).to_bytes()
    with pytest.raises(ParameterError, match=r"should be one of .*columns"):
        Mentions.from_bytes(b"", format="tables")
    assert len(Mentions.from_bytes(b"")) == 0 and len(Mentions.from_bytes(b"\n\n")) == 0
    assert np.array_equal(Mentions.from_bytes(b"").offsets, [0])
