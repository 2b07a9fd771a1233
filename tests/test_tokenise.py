"""The tokeniser: what is a token, and that offsets cut it out of its line."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isogloss.data.tokenise import tokenise, tokenise_text
from isogloss.errors import ParameterError

BETWEEN = "\u061c\u180e\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\ufeff" + "".join(
    map(chr, range(0x2061, 0x206A))
)


def cut(line: str) -> list[str]:
    return [line[start:end] for start, end in tokenise(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ""),
        ("   \t ", ""),
        ("Hello, world!", "Hello|,|world|!"),
        ("(“Well?”)", "(|“|Well|?|”|)"),
        ("Wait... what.. no.", "Wait|...|what|..|no|."),
        ("state-of-the-art  -- yes", "state-of-the-art|-|-|yes"),
        # elisions and clitics
        ("l'homme L’eau qu'il d'accord j'ai", "l'|homme|L’|eau|qu'|il|d'|accord|j'|ai"),
        ("aujourd'hui d'aujourd'hui prud'homme", "aujourd'hui|d'|aujourd'hui|prud'homme"),
        ("dell'arte all'alba un'altra quest'anno", "dell'|arte|all'|alba|un'|altra|quest'|anno"),
        ("don't CAN'T won’t isn't", "do|n't|CA|N'T|wo|n’t|is|n't"),
        ("John's we're they've I'll I'd I'm it’s", "John|'s|we|'re|they|'ve|I|'ll|I|'d|I|'m|it|’s"),
        ("do n't John 's l' homme", "do|n't|John|'s|l'|homme"),
        ("O'Brien's rock'n'roll 'quoted' boys' toys", "O'Brien|'s|rock'n'roll|'|quoted|'|boys|'|toys"),
        ("м'яч İstanbul'da col·legi", "м'яч|İstanbul'da|col·legi"),
        ("M's t'es d's", "M|'s|t'|es|d|'s"),
        # numbers
        ("1,000.5 12:30 3/4 1.2.2003 50%", "1,000.5|12:30|3/4|1.2.2003|50|%"),
        ("1\u202f000\u00a0000,50 and 3.5km", "1\u202f000\u00a0000,50|and|3.5|km"),
        ("1\u00a0000,5, 2\u00a0kg", "1\u00a0000,5|,|2|\u00a0".removesuffix("|\u00a0") + "|kg"),
        ("٣٫٥ १२३", "٣٫٥|१२३"),
        # kept whole
        (
            "See https://example.com/a?b=1&c=(2), or www.x.org.",
            "See|https://example.com/a?b=1&c=(2|)|,|or|www.x.org|.",
        ),
        ("Mail a.b+c@ex-ample.co.uk, please", "Mail|a.b+c@ex-ample.co.uk|,|please"),
        ("{0} {{name}} ${x} %s %1$d %(who)s &amp; &#8217;", "{0}|{{name}}|${x}|%s|%1$d|%(who)s|&amp;|&#8217;"),
        ('<b>Click</b> <a href="x y">here</a><br/>', '<b>|Click|</b>|<a href="x y">|here|</a>|<br/>'),
        ("a < b > c <3", "a|<|b|>|c|<|3"),
        ("e.g. U.S.A. a.b.c", "e.g.|U.S.A.|a|.|b|.|c"),
        # scripts without spaces
        ("私はTom2です。", "私|は|Tom2|で|す|。"),
        ("カタカナー ﾊﾞ 人口12,345人", "カ|タ|カ|ナ|ー|ﾊﾞ|人|口|12,345|人"),
        ("ดีครับ ๑๒๓", "ดี|ค|รั|บ|๑๒๓"),
        ("ພາສາ ភាសា မြန်မာ", "ພ|າ|ສ|າ|ភា|សា|မြ|န်|မာ"),
        ("𠀀𠀁ab", "𠀀|𠀁|ab"),
        ("한국어 조선말", "한국어|조선말"),
        # marks stay with their base
        ("e\u0301te\u0301 नमस्ते दुनिया", "e\u0301te\u0301|नमस्ते|दुनिया"),
        ("מַזָּל كِتَاب می\u200cخواهم", "מַזָּל|كِتَاب|می\u200cخواهم"),
        ("!\u0301 \u0301x", "!\u0301|\u0301|x"),
        ("👩\u200d💻 👍🏽 🇫🇷🇩🇪 ❤\ufe0f", "👩\u200d💻|👍🏽|🇫🇷|🇩🇪|❤\ufe0f"),
        # invisible characters are between tokens
        ("a\u200bb \ufeffc \u200ed\u2028e", "a|b|c|d|e"),
        ("foo_bar __x__", "foo_bar|__x__"),
    ],
)
def test_tokens(line, expected):
    assert cut(line) == (expected.split("|") if expected else [])


pieces = st.one_of(
    st.text(st.sampled_from("aB1é日本กာ̈\u0301\u200d'’.,-@:/{}<>%&;$_ \t\u00a0\u2028\u200b👍🇫𠀀ञ्ज")),
    st.sampled_from(
        ["l'", "n't", "'s", "http://a.b", "x@y.z", "<a b>", "</b>", "1,000", "1\u00a0000", "...", "{0}", " "]
    ),
    st.text(max_size=3),
)
lines = st.lists(pieces, max_size=8).map("".join)


@settings(deadline=None, max_examples=300)
@given(lines)
@example("<a \n>")
@example("1\xa0000\u0301")
def test_tokens_cover_all_but_white_space_in_order(line):
    spans = tokenise(line)
    at = 0
    for start, end in spans:
        assert at <= start < end <= len(line)
        assert all(c.isspace() or c in BETWEEN for c in line[at:start])
        token = line[start:end]
        assert not token[0].isspace() and not token[-1].isspace()
        if any(c.isspace() for c in token):
            plain = "".join(c for c in token if unicodedata.category(c)[0] != "M")
            assert token[0] == "<" or re.fullmatch(r"[\d\s.,]+", plain)
        if unicodedata.category(token[0])[0] == "M":  # only where there is no base before it
            assert start == 0 or line[start - 1].isspace() or line[start - 1] in BETWEEN
        at = end
    assert all(c.isspace() or c in BETWEEN for c in line[at:])


@settings(deadline=None)
@given(st.lists(lines, max_size=4), st.sampled_from(["unicode", "characters"]))
def test_spans_slice_back_to_tokens(lines, mode):
    text = tokenise_text(lines, mode)
    assert len(text) == len(lines) and text.spans is not None and list(text.lines or []) == lines
    for row, line in enumerate(lines):
        assert tuple(line[start:end] for start, end in text.spans[row].tolist()) == text.tokens(row)
    part = text[1:3]
    assert [part.tokens(row) for row in range(len(part))] == [text.tokens(row) for row in range(len(text))][1:3]


@settings(deadline=None)
@given(lines)
def test_characters_are_single(line):
    for token in tokenise_text([line], "characters").tokens(0):
        assert all(unicodedata.category(c)[0] in "MC" or c in "\uff9e\uff9f🏻🏼🏽🏾🏿" for c in token[1:])


def test_vocabulary_is_in_order_of_appearance():
    text = tokenise_text(["b a b", "c, a"])
    assert text.vocabulary.types == ["b", "a", "c", ","] and text.ids.values.tolist() == [0, 1, 0, 2, 3, 1]


def test_an_unknown_mode_is_refused():
    with pytest.raises(ParameterError, match="unicode, characters, space"):
        tokenise_text([], "moses")


LONG = ["a", "a.", "1", "1,", "'", "a'", "<a ", "{", "a@", "\u0301", "a\u0301", "日", "http://", "&a", "-a", "👩\u200d"]


@pytest.mark.parametrize("unit", LONG)
def test_no_line_takes_very_long(unit):
    start = time.process_time()
    tokenise(unit * 20_000)
    assert time.process_time() - start < 2
