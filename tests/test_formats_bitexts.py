"""Parallel texts: round trips for every format, streams, bad input, and whatever people hold in memory."""

from __future__ import annotations

import io
import os
import sys
import tracemalloc
import warnings
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import Bitext
from isogloss.data.formats import IsoglossWarning, as_bitext, read_bitext, stream_bitext, write_bitext
from isogloss.errors import BitextError, ParameterError, UsageError

# What is no ASCII white space, no mark of byte order and may stand in XML.
characters = st.one_of(
    st.sampled_from("abzAé|'\"<>&\u00a0\u2028\u0085\u3000\u0301ש日𠀀👍-_:"),
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff\ufffe\uffff "),
)
words = st.text(characters, min_size=1, max_size=6).filter(lambda word: "|||" not in word)
sentences = st.lists(words, max_size=5).map(tuple)
bitexts = st.lists(st.tuples(sentences, sentences), max_size=6)


def both(folder, source: str | bytes, target: str | bytes) -> tuple[str, str]:
    for name, text in (("a.de", source), ("a.en", target)):
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(folder / "a.de"), str(folder / "a.en")


def one(folder, text: str | bytes, name: str = "a.de-en") -> str:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(folder / name)


def feed(monkeypatch, data: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.encode())))


# Round trips

SHAPES = [("pair", ""), ("bars", ".txt"), ("tsv", ".tsv"), ("tmx", ".tmx")]


@settings(max_examples=60, deadline=None)
@given(pairs=bitexts, shape=st.sampled_from(SHAPES), press=st.sampled_from(["", ".gz", ".xz", ".zst"]))
def test_round_trip(tmp_path_factory, pairs, shape, press):
    format, suffix = shape
    folder = tmp_path_factory.mktemp("r")
    paths = [folder / f"{side}{suffix}{press}" for side in ("source", "target")][: 2 if format == "pair" else 1]
    bitext = as_bitext(pairs)
    write_bitext(bitext, *paths, format=format)
    again = read_bitext(*paths, format=format)
    assert list(again) == pairs
    if pairs and (format == "tmx" or any(s or t for s, t in pairs)):
        assert list(read_bitext(*paths)) == pairs  # the format found by itself
    parts = list(stream_bitext(*paths, format=format, size=2))
    assert [pair for part in parts for pair in part] == pairs
    assert [part.first_line for part in parts] == list(range(1, len(pairs) + 1, 2))


@settings(max_examples=25, deadline=None)
@given(pairs=bitexts)
def test_tokens_with_spaces_inside_stay_one_token(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("s") / "a"
    odd = [((*source, "a b\tc", ""), target) for source, target in pairs]
    write_bitext(as_bitext(odd), path)
    assert [len(s) for s, _ in read_bitext(path, format="bars")] == [len(s) for s, _ in odd]


def test_writing_bars_into_bars_is_refused(tmp_path):
    bitext = as_bitext([("a", "b"), ("a ||| b", "c")])
    with pytest.raises(BitextError, match=r"line 2: '\|\|\|' is in the text"):
        write_bitext(bitext, tmp_path / "a.txt")
    assert os.listdir(tmp_path) == []
    write_bitext(bitext, tmp_path / "a.tsv")
    assert list(read_bitext(tmp_path / "a.tsv")) == list(bitext)


def test_writing_to_standard_output(capfdbinary):
    write_bitext(as_bitext([("a b", "c")]), None)
    write_bitext(as_bitext([("a b", "c")]), "-", format="tsv")
    assert capfdbinary.readouterr().out == b"a b ||| c\na b\tc\n"


def test_writing_untokenised_lines(tmp_path):
    bitext = read_bitext(*both(tmp_path, "L'eau, oui.\n", "Water,  yes.\n"), tokenise="unicode")
    write_bitext(bitext, tmp_path / "tokens.tsv")
    write_bitext(bitext, tmp_path / "lines.tsv", untokenised=True)
    assert (tmp_path / "tokens.tsv").read_text() == "L' eau , oui .\tWater , yes .\n"
    assert (tmp_path / "lines.tsv").read_text() == "L'eau, oui.\tWater,  yes.\n"


def test_a_part_is_written_as_a_part(tmp_path):
    bitext = as_bitext([("a", "b"), ("c d", "e"), ("f", "g")])
    write_bitext(bitext.part(1, 3), tmp_path / "s", tmp_path / "t")
    assert (tmp_path / "s").read_text() == "c d\nf\n"


# Bad and odd input


def test_lines_and_words_are_what_they_seem(tmp_path):
    source = b"\xef\xbb\xbfdas Haus\r\n\r\n  ein\tHund \r\n" + "a\u2028b c\x0cd".encode()
    bitext = read_bitext(*both(tmp_path, source, "the house\n\na dog\nx y\n"))
    assert [s for s, _ in bitext] == [("das", "Haus"), (), ("ein", "Hund"), ("a\u2028b", "c", "d")]
    assert bitext.line_of(2) == 3 and bitext.source.name.endswith("a.de")


def test_bitext_read_is_this_reader(tmp_path):
    assert list(Bitext.read(*both(tmp_path, "x\n", "y\n"))) == [(("x",), ("y",))]


def test_unequal_line_counts(tmp_path):
    paths = both(tmp_path, "a\nb\nc\n", "x\ny\n")
    with pytest.raises(BitextError, match=r"a\.de has 3 lines but .*a\.en has 2"):
        read_bitext(*paths)
    for size in (1, 2, 3, 100):
        with pytest.raises(BitextError, match=r"a\.de has 3 lines but .*a\.en has 2"):
            list(stream_bitext(*paths, size=size))
        with pytest.raises(BitextError, match=r"a\.en has 2 lines but .*a\.de has 3"):
            list(stream_bitext(*reversed(paths), size=size))


def test_a_last_line_needs_no_newline(tmp_path):
    assert len(read_bitext(*both(tmp_path, "a\nb", "x\ny\n"))) == 2
    assert [len(part) for part in stream_bitext(*both(tmp_path, "a\nb", "x\ny\n"), size=1)] == [1, 1]


def test_empty_files_are_empty_bitexts(tmp_path):
    assert len(read_bitext(*both(tmp_path, "", ""))) == 0
    assert len(read_bitext(one(tmp_path, ""))) == 0
    assert list(stream_bitext(one(tmp_path, ""))) == []
    assert list(stream_bitext(*both(tmp_path, "", ""))) == []


def test_a_very_long_line(tmp_path):
    line = " ".join(f"w{k}" for k in range(5000))
    bitext = read_bitext(*both(tmp_path, line + "\n", "x\n"))
    assert len(bitext.source.tokens(0)) == 5000 and bitext.source.tokens(0)[-1] == "w4999"


def test_not_utf8_and_damage_are_said_for_either_side(tmp_path):
    with pytest.raises(BitextError, match=r"a\.en, line 2: byte e9"):
        read_bitext(*both(tmp_path, "a\nb\n", b"x\n\xe9\n"))
    assert read_bitext(*both(tmp_path, "a\nb\n", b"x\n\xe9\n"), encoding="latin-1")[1] == (("b",), ("é",))
    with pytest.raises(BitextError, match="line 2: byte e9"):
        list(stream_bitext(*both(tmp_path, "a\nb\n", b"x\n\xe9\n"), size=1))
    with pytest.raises(UsageError, match="no such file"):
        read_bitext(tmp_path / "no.de", tmp_path / "no.en")


def test_the_same_file_twice(tmp_path):
    path = one(tmp_path, "a b\n")
    os.symlink(path, tmp_path / "again")
    with pytest.warns(IsoglossWarning, match="both source and target"):
        assert read_bitext(path, tmp_path / "again")[0] == (("a", "b"), ("a", "b"))


def test_options_that_contradict_each_other(tmp_path):
    path = one(tmp_path, "a ||| b\n")
    for wrong in (
        {"format": "xml"},
        {"tokenise": "moses"},
        {"normalise": "nfc"},
        {"columns": (0,)},
        {"languages": "en"},
    ):
        with pytest.raises(ParameterError):
            read_bitext(path, **wrong)
    with pytest.raises(UsageError, match="both of them"):
        read_bitext(path, format="pair")
    with pytest.raises(UsageError, match="two were given"):
        read_bitext(path, path, format="tsv")
    with pytest.raises(UsageError, match="one side only"):
        read_bitext("-", "-")
    with pytest.raises(ParameterError, match="size"):
        stream_bitext(path, size=0)
    with pytest.raises(UsageError):
        write_bitext(as_bitext([]), path, format="pair")
    with pytest.raises(UsageError):
        write_bitext(as_bitext([]), None, path)


# Bars and columns


def test_bars(tmp_path):
    text = "das Haus ||| the house\n ||| x\ny |||\n|||\n\na||| ||| |||b\r\na\t|||\tb"
    expected = [
        (("das", "Haus"), ("the", "house")),
        ((), ("x",)),
        (("y",), ()),
        ((), ()),
        ((), ()),
        (("a|||",), ("|||b",)),
        (("a",), ("b",)),
    ]
    assert list(read_bitext(one(tmp_path, text))) == expected


@pytest.mark.parametrize("size", [1, 2, 10])
def test_a_line_without_bars_is_named(tmp_path, size):
    path = one(tmp_path, "a ||| b\n\ndas Haus the house\n")
    for read in (read_bitext, lambda path: list(stream_bitext(path, size=size))):
        with pytest.raises(BitextError) as caught:
            read(path)
        assert "a.de-en, line 3: no ' ||| ' in 'das Haus the house'. Two files? give both" in str(caught.value)


def test_three_fields_need_a_choice(tmp_path):
    path = one(tmp_path, "a ||| b ||| 0-0\n")
    with pytest.raises(BitextError, match="line 1: 3 columns where 2 are needed"):
        read_bitext(path)
    assert read_bitext(path, columns=(1, 0))[0] == (("b",), ("a",))
    with pytest.raises(BitextError, match="3 columns where 4 are needed"):
        read_bitext(path, columns=(0, 3))


def test_columns(tmp_path):
    path = one(tmp_path, "7\tdas Haus\tthe house\r\n8\t\tx\n\n", "a.tsv")
    assert list(read_bitext(path, columns=(1, 2))) == [
        (("das", "Haus"), ("the", "house")),
        ((), ("x",)),
        ((), ()),
    ]
    with pytest.raises(BitextError, match=r"a\.tsv, line 1: 3 columns where 6 are needed"):
        read_bitext(path, columns=(5, 1))
    with pytest.raises(BitextError, match=r"line 2: no tab in 'x y'"):
        read_bitext(one(tmp_path, "a\tb\nx y\n"))


WEB = {
    "0.93\tdas Haus\tthe house\n": "0 is '0.93', 1 is 'das Haus' and 2 is 'the house'. Please .* --columns 1,2 ",
    "das Haus\tthe house\t0.93\n": "2 is '0.93'. Please say .* --columns 0,1 ",
    "http://a.de/x\thttp://a.en/x\tdas Haus\tthe house\t1\n": " and 4 is '1'. .* --columns 2,3 ",
    "1\t2\t3\n": "--columns 0,1 ",
    "\t".join("abcdefghijk") + "\n": "11 columns where 2 are needed: 0 is 'a', .* 7 is 'h', .... Please",
    "\n0.9 ||| das Haus ||| the house\n": r"line 2: 3 columns .* mend this one, or say .* \(columns=\(1, 2\)",
    "a b\tc d\ne\tf\tg h\n": "line 2: .* No line before has so many: mend this one, or say .* --columns 0,1 ",
}


@pytest.mark.parametrize("text", WEB)
def test_a_third_column_is_never_guessed(tmp_path, monkeypatch, text):
    for read in (read_bitext, as_bitext, lambda path: list(stream_bitext(path, size=1))):
        for name in ("a.tsv", "a.txt"):
            with pytest.raises(BitextError, match=WEB[text]):
                read(one(tmp_path, text, "a.txt" if "|||" in text else name))
        feed(monkeypatch, text)
        with pytest.raises(BitextError, match=WEB[text]):
            read("-")


def test_a_score_before_bars_is_no_word(tmp_path):
    path = one(tmp_path, "\n0.93\tdas Haus ||| the house\n")
    for read in (read_bitext, lambda path: list(stream_bitext(path))):
        with pytest.raises(BitextError, match=r"line 2: both a tab and ' \|\|\| ' in .*--format tsv or --format bars"):
            read(path)
    assert read_bitext(path, format="bars")[1] == (("0.93", "das", "Haus"), ("the", "house"))
    assert read_bitext(one(tmp_path, "das Haus\t|||\tthe house\t\n"))[0] == (("das", "Haus"), ("the", "house"))


def test_columns_that_were_chosen_may_be_among_many(tmp_path):
    text = "0.93\tdas Haus\tthe house\n0.1\tein\ta\turl\n\n\t\t\n"
    expected = [(("das", "Haus"), ("the", "house")), (("ein",), ("a",)), ((), ()), ((), ())]
    path = one(tmp_path, text, "a.tsv")
    assert list(read_bitext(path, columns=(1, 2))) == expected
    assert [pair for part in stream_bitext(path, columns=(1, 2), size=1) for pair in part] == expected
    with pytest.raises(BitextError, match=r"line 1: 3 columns where 100000000000001 are needed.*Columns 1 and 1000"):
        read_bitext(path, columns=(1, 10**14))
    assert len(read_bitext(one(tmp_path, "\n"), columns=(1, 10**14))) == 1


def test_one_text_without_a_separator_is_told_to_bring_the_other(tmp_path):
    with pytest.raises(BitextError, match=r"line 1: no ' \|\|\| ' and no tab in 'das Haus'\. Two files"):
        read_bitext(one(tmp_path, "das Haus\nein Hund\n"))


def test_each_side_may_have_its_encoding(tmp_path):
    paths = both(tmp_path, "das Café\n".encode("latin-1"), "the café\n".encode("utf-16-le"))
    for options in (
        {"source_encoding": "latin-1", "target_encoding": "utf-16-le"},
        {"source_encoding": "latin-1", "encoding": "utf-16-le"},
        {"encoding": "latin-1", "target_encoding": "utf-16-le"},
    ):
        for bitext in (Bitext.read(*paths, **options), as_bitext(paths, **options), *stream_bitext(*paths, **options)):
            assert list(bitext) == [(("das", "Café"), ("the", "café"))]
    with pytest.raises(UsageError, match=r"one encoding\. Give --encoding"):
        read_bitext(one(tmp_path, "a ||| b\n"), source_encoding="latin-1")
    with pytest.raises(ParameterError, match="encoding should be a text encoding"):
        read_bitext(*paths, source_encoding="")


# Streams


def test_standard_input(monkeypatch, tmp_path):
    feed(monkeypatch, "a ||| b\nc ||| d\n")
    assert len(read_bitext("-")) == 2
    feed(monkeypatch, "a\tb\nc\td\n")
    assert [len(part) for part in stream_bitext("-", size=1)] == [1, 1]
    feed(monkeypatch, "x\ny\n")
    assert list(read_bitext("-", one(tmp_path, "a\nb\n")))[1] == (("y",), ("b",))
    feed(monkeypatch, "x\n")
    with pytest.raises(BitextError, match=r"<stdin> has 1 lines but .* has 2"):
        list(stream_bitext("-", one(tmp_path, "a\nb\n")))


def test_a_pipe_that_pauses_is_answered(monkeypatch):
    reading, writing = os.pipe()
    with open(reading) as stdin, open(writing, "wb", buffering=0) as pipe:
        monkeypatch.setattr(sys, "stdin", stdin)
        pipe.write(b"a ||| b\nc ||")
        parts = stream_bitext("-")
        assert list(next(parts)) == [(("a",), ("b",))]
        pipe.write(b"| d\ne ||| f\n")
        part = next(parts)
        assert list(part) == [(("c",), ("d",)), (("e",), ("f",))] and part.line_of(1) == 3
        pipe.close()
        assert next(parts, None) is None


def test_a_stream_does_not_hold_the_file(tmp_path):
    line = "alpha beta gamma delta ||| un deux trois quatre cinq\n"
    path = one(tmp_path, line * 100_000)
    list(stream_bitext(one(tmp_path, line, "small"), size=1))  # kernels are loaded now
    tracemalloc.start()
    assert sum(len(part) for part in stream_bitext(path, size=1000)) == 100_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(line) * 100_000 / 4


# Normalisation and tokenisation


def test_normalisation_keeps_the_number_of_tokens(tmp_path):
    paths = both(tmp_path, "Cafe\u0301 Café a\u00a0b ﬁn ´\n", "x\n")
    assert read_bitext(*paths).source.tokens(0)[0] == "Cafe\u0301"
    composed = read_bitext(*paths, normalise="NFC").source
    assert composed.tokens(0) == ("Café", "Café", "a\u00a0b", "ﬁn", "´") and composed.ids[0].tolist()[:2] == [0, 0]
    compatible = read_bitext(*paths, normalise="NFKC").source.tokens(0)
    assert compatible == ("Café", "Café", "a\u00a0b", "fin", "´")


def test_normalisation_comes_before_the_tokeniser(tmp_path):
    source = read_bitext(*both(tmp_path, "Cafe\u0301, ﬁn.\r\n", "x\n"), normalise="NFKC", tokenise="unicode").source
    assert source.lines == ["Café, fin."] and source.tokens(0) == ("Café", ",", "fin", ".")
    assert source.spans is not None and source.spans[0].tolist() == [[0, 4], [4, 5], [6, 9], [9, 10]]


def test_characters(tmp_path):
    paths = both(tmp_path, "日本 語\n\n", "a b\n\n")
    bitext = read_bitext(*paths, tokenise="characters")
    assert bitext[0] == (("日", "本", "語"), ("a", "b")) and bitext[1] == ((), ())
    parts = list(stream_bitext(*paths, tokenise="characters", size=1))
    assert [list(part.source.lines or []) for part in parts] == [["日本 語"], [""]]


# TMX


def tmx(*units: str, head: str = '<?xml version="1.0"?>') -> str:
    return f'{head}<tmx version="1.4"><header srclang="en"/><body>{"".join(units)}</body></tmx>'


def unit(**segments: str) -> str:
    tuvs = (f'<tuv xml:lang="{code.replace("_", "-")}"><seg>{text}</seg></tuv>' for code, text in segments.items())
    return f"<tu><prop>p</prop>{''.join(tuvs)}</tu>"


def test_tmx_languages(tmp_path):
    units = unit(en_GB="a", fr="b", de="c"), unit(de="f", en_US="d", fr="e")
    path = one(tmp_path, tmx(*units), "a.tmx")
    assert list(read_bitext(path, languages=("en", "fr"))) == [(("a",), ("b",)), (("d",), ("e",))]
    assert list(read_bitext(path, languages=("de", "EN"))) == [(("c",), ("a",)), (("f",), ("d",))]
    assert list(read_bitext(path, languages=("de_AT", "fr-CA"))) == [(("c",), ("b",)), (("f",), ("e",))]
    with pytest.warns(IsoglossWarning, match="2 of 2 units lack en-gb or en-us"):  # neither stands for the other
        assert list(read_bitext(path, languages=("en-GB", "en-US"))) == [(("a",), ()), ((), ("d",))]
    with pytest.raises(BitextError, match=r"no segment in 'it' \(languages found: de, en-gb, en-us, fr\)"):
        read_bitext(path, languages=("en", "it"))


@pytest.mark.parametrize(
    "units, message",
    [
        ([unit(en="a", fr="b", de="c")], "unit 1: a third language, de, beside en and fr. .*--languages en,fr "),
        ([unit(en="a", fr="b"), unit(en_GB="c", fr="d"), unit(de="e", fr="f")], "unit 3: a third language, de, beside"),
        ([unit(de="x"), unit(en="a", fr="b")], "unit 1: a third language, de, beside en and fr"),
        ([unit(pt_BR="a", en="b", pt_PT="c")], "a third language, pt-pt, beside pt-br and en"),
        ([unit(pt_BR="a", pt_PT="b"), unit(pt="c", pt_BR="a")], "unit 2: a third language, pt, beside pt-br and pt-pt"),
        ([unit(en="a", fr="b"), unit(x="c").replace(' xml:lang="x"', "")], r"a third language, \(none\), .* en,fr "),
    ],
)
def test_a_third_tmx_language_is_never_guessed(tmp_path, units, message):
    for name in ("a.tmx", "a.xml"):
        path = one(tmp_path, tmx(*units), name)
        for read in (read_bitext, lambda path: list(stream_bitext(path, size=1))):
            with pytest.raises(BitextError, match=message):
                read(path)


def test_tmx_dialects_of_two_languages_are_two(tmp_path):
    path = one(tmp_path, tmx(unit(en_GB="a", fr="b"), unit(fr_CA="d", en_US="c")), "a.tmx")
    assert list(read_bitext(path)) == [(("a",), ("b",)), (("c",), ("d",))]


def test_tmx_units_without_a_side_stay(tmp_path):
    path = one(tmp_path, tmx(unit(en="x"), unit(en="a", fr="b"), unit(fr="c")), "a.tmx")
    for read in (read_bitext, lambda path: [pair for part in stream_bitext(path, size=1) for pair in part]):
        with pytest.warns(IsoglossWarning, match="2 of 3 units lack en or fr"):
            assert list(read(path)) == [(("x",), ()), (("a",), ("b",)), ((), ("c",))]
    with pytest.raises(BitextError, match="no unit has two languages"):
        read_bitext(one(tmp_path, tmx(unit(en="x")), "a.tmx"))
    assert len(read_bitext(one(tmp_path, tmx(), "a.tmx"))) == 0


def test_tmx_inline_elements_and_space(tmp_path):
    inner = (
        '<bpt i="1">&lt;b&gt;</bpt>bo<hi>ld</hi><ept i="1">&lt;/b&gt;</ept>er<ph>&lt;br<sub>alt</sub>/&gt;</ph>next'
        "\n\t line &amp; <it pos='begin'>x</it><ut>y</ut>&#233;<unknown>kept</unknown>"
    )
    path = one(tmp_path, tmx(unit(en=inner, fr="z")), "a.tmx")
    assert read_bitext(path)[0][0] == ("bolder", "next", "line", "&", "ékept")
    assert read_bitext(path, tokenise="unicode").source.lines == ["bolder next line & ékept"]


def test_tmx_dialects(tmp_path):
    old = tmx(unit(en="a", fr="b"), head="").replace("xml:lang", "lang")
    spaced = tmx(unit(en="a", fr="b")).replace("<tmx", '<tmx xmlns="http://www.lisa.org/tmx14"')
    declared = tmx(unit(en="a", fr="b"), head='<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">')
    for text in (old, spaced, declared):
        assert list(read_bitext(one(tmp_path, text, "a.tmx"))) == [(("a",), ("b",))]
        assert list(read_bitext(one(tmp_path, text, "a.xml"))) == [(("a",), ("b",))]
        assert list(*stream_bitext(one(tmp_path, text, "a.xml"))) == [(("a",), ("b",))]


def test_tmx_encodings(tmp_path):
    text = tmx(unit(en="é", fr="ü"), head='<?xml version="1.0" encoding="{}"?>')
    for name in ("utf-8", "utf-16", "iso-8859-1", "windows-1252"):
        path = one(tmp_path, text.format(name).encode(name), "a.tmx")
        assert list(read_bitext(path)) == [(("é",), ("ü",))]
    path = one(tmp_path, tmx(unit(en="é", fr="ü")).encode("latin-1"), "a.tmx")  # does not say that it is Latin 1
    with pytest.raises(BitextError, match="not well-formed"):
        read_bitext(path)
    assert list(read_bitext(path, encoding="latin-1")) == [(("é",), ("ü",))]
    path = one(tmp_path, text.format("shift_jis").replace("ü", "語").encode("shift_jis", "ignore"), "a.tmx")
    with pytest.raises(BitextError, match="encoding"):
        read_bitext(path)
    assert read_bitext(path, encoding="shift_jis")[0][1] == ("語",)


@pytest.mark.parametrize("declared", ["klingon", "hex", "rot13", "idna", "undefined", "utf-7", "punycode", "ucs-4"])
def test_tmx_declared_encodings_that_nobody_can_read(tmp_path, declared):
    path = one(tmp_path, tmx(unit(en="a", fr="b"), head=f'<?xml version="1.0" encoding="{declared}"?>'), "a.tmx")
    for read in (read_bitext, lambda path: list(stream_bitext(path))):
        with pytest.raises(BitextError, match=r"a\.tmx: its first line declares an encoding .* Mend .* --encoding"):
            read(path)


LONG = {
    "attribute": unit(en="a", fr="b").replace("<tuv", '<tuv note="{}"', 1),
    "comment": "<!-- {} -->" + unit(en="a", fr="b"),
    "instruction": "<?note {}?>" + unit(en="a", fr="b"),
    "name": "<n{}/>" + unit(en="a", fr="b"),
}


@pytest.mark.parametrize("kind", LONG)
def test_tmx_markup_without_end_is_refused(tmp_path, kind):
    """The parser reads such a token from its beginning each time it is fed: the square of the length."""
    assert len(read_bitext(one(tmp_path, tmx(LONG[kind].format("x" * 500_000)), "a.tmx"))) == 1
    for name in ("a.tmx", "a.xml"):
        path = one(tmp_path, tmx("\n" + LONG[kind].format("x" * 1_200_000)), name)
        with pytest.raises(BitextError, match=rf"{name}, line 2: a tag, comment .* longer than 1,048,576 .* missing"):
            read_bitext(path)


def test_tmx_text_may_be_long_and_takes_time_in_proportion(tmp_path):
    path = one(tmp_path, tmx(unit(en="word " * 500_000, fr="<![CDATA[" + "mot " * 500_000 + "]]>")), "a.tmx")
    source, target = read_bitext(path)[0]
    assert len(source) == len(target) == 500_000


def test_tmx_nesting_is_bounded(tmp_path):
    def nested(depth: int) -> str:
        return one(tmp_path, tmx(unit(en="<hi>" * depth + "a" + "</hi>" * depth, fr="b")), "a.tmx")

    assert read_bitext(nested(900))[0] == (("a",), ("b",))
    with pytest.raises(BitextError, match=r"a\.tmx, line 1: more than 1,000 elements inside each other"):
        read_bitext(nested(100_000))


BOMB = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 12))
ENTITIES = {
    "laughs": f'<!DOCTYPE tmx [<!ENTITY l0 "ha">{BOMB}]>',
    "outside": '<!DOCTYPE tmx [<!ENTITY l11 SYSTEM "file:///etc/passwd">]>',
    "parameter": '<!DOCTYPE tmx [<!ENTITY % l11 SYSTEM "http://localhost/x.dtd"> %l11;]>',
}


@pytest.mark.parametrize("kind", ENTITIES)
def test_tmx_entities_are_refused(tmp_path, kind):
    path = one(tmp_path, tmx(unit(en="&l11;", fr="b"), head='<?xml version="1.0"?>' + ENTITIES[kind]), "a.tmx")
    with pytest.raises(BitextError, match=r"a\.tmx, line 1: declares or calls the entity 'l"):
        read_bitext(path)
    with pytest.raises(BitextError, match="entity"):
        list(stream_bitext(path))


def test_tmx_that_is_broken(tmp_path):
    whole = tmx(unit(en="a", fr="b"), unit(en="c", fr="d"))
    for cut in (10, 60, len(whole) - 3):
        with pytest.raises(BitextError, match=r"a\.tmx, line 1, column \d+: not well-formed XML"):
            read_bitext(one(tmp_path, whole[:cut], "a.tmx"))
    with pytest.raises(BitextError, match="not well-formed XML: undefined entity"):
        read_bitext(one(tmp_path, tmx(unit(en="&what;", fr="b")), "a.tmx"))
    with pytest.raises(BitextError, match="outermost element is <xliff>"):
        read_bitext(one(tmp_path, "<?xml version='1.0'?><xliff></xliff>", "a.tmx"))
    with pytest.raises(BitextError, match="not well-formed"):
        read_bitext(one(tmp_path, "", "a.tmx"))


# What people hold in memory


class Frame:
    """What pandas and polars frames have in common, as far as we use it."""

    def __init__(self, **columns):
        self.columns = list(columns)
        self._columns = columns

    def __getitem__(self, name):
        return SimpleNamespace(to_list=lambda: list(self._columns[name]))


def document(*tokens):
    return [SimpleNamespace(text=token) for token in tokens]


ONE = [(("das", "Haus"), ("the", "house"))]


@pytest.mark.parametrize(
    "thing",
    [
        [("das Haus", "the house")],
        (["das  Haus", "the house\n"],),
        [(["das", "Haus"], "the house")],
        [(("das", "Haus"), ["the", "house"])],
        iter([("das Haus", "the house")]),
        [{"source": "das Haus", "target": "the house", "id": 3}],
        [{"translation": {"de": "das Haus", "en": "the house"}}],
        [{"de": "das Haus", "en": "the house"}],
        Frame(de=["das Haus"], en=["the house"]),
        Frame(id=[7], target=["the house"], source=["das Haus"]),
        Frame(de=[["das", "Haus"]], en=["the house"]),
        [(document("das", "Haus"), document("the", "house"))],
    ],
)
def test_many_things_are_bitexts(thing):
    assert list(as_bitext(thing)) == ONE


def test_paths_and_bitexts_are_bitexts(tmp_path):
    paths = both(tmp_path, "das Haus\n", "the house\n")
    assert list(as_bitext(paths)) == ONE
    assert list(as_bitext((tmp_path / "a.de", tmp_path / "a.en"), normalise="NFC")) == ONE
    assert list(as_bitext(one(tmp_path, "das Haus\tthe house\n"))) == ONE
    bitext = Bitext.of(ONE)
    assert as_bitext(bitext) is bitext


def test_strings_are_split_as_lines_of_files_are(tmp_path):
    text = "a\u00a0b\u2028c\u3000d e\x1cf"
    assert as_bitext([(text, text)])[0] == read_bitext(*both(tmp_path, text, text))[0]
    assert as_bitext([(text, ["x"]), (text, text)])[1] == as_bitext([(text, text)])[0]
    assert as_bitext([(text, text), (["x"], ["y"])])[0] == as_bitext([(text, text)])[0]


def test_missing_cells_are_empty(tmp_path):
    frame = Frame(source=["a", None, float("nan")], target=["x", "y", "z"])
    assert list(as_bitext(frame)) == [(("a",), ("x",)), ((), ("y",)), ((), ("z",))]
    assert len(as_bitext([])) == 0


@pytest.mark.parametrize(
    "thing",
    [
        3,
        {"source": "a"},
        ["ab"],
        [("a", "b", "c")],
        [("a", 3)],
        [(["a", 3], "b")],
        [{"x": "a"}],
        Frame(x=["a"]),
        Frame(score=[0.9], de=["a"]),
        Frame(score=[0.9], de=["a"], en=["b"]),
        Frame(de=["a"], en=["b"], score=[0.9]),
    ],
)
def test_other_things_are_not(thing):
    with pytest.raises(ParameterError, match="bitext"):
        as_bitext(thing)


def test_rows_must_be_alike():
    with pytest.raises(ParameterError, match="item 1 should have 'de' and 'en'"):
        as_bitext([{"translation": {"de": "a", "en": "b"}}, {"translation": {"de": "a", "fr": "b"}}])
    with pytest.raises(ParameterError, match="with paths only"):
        as_bitext([("a", "b")], normalise="NFC")
    with pytest.raises(BitextError, match="half a character"):
        as_bitext([("a\ud800", "b")])


def test_ordinary_reading_warns_of_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_bitext(*both(tmp_path, "a\n", "b\n"))
        read_bitext(one(tmp_path, tmx(unit(en="a", fr="b")), "a.tmx"))
