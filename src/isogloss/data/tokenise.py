"""A plain tokeniser for text in any script, which says where in the line each token stands.

It is meant for text that nobody has tokenised yet, and makes choices that suit word links: articles that lean on
their noun (``l'homme``) and English clitics (``do n't``, ``John 's``) are tokens; numbers, addresses, tags and
placeholders are kept whole; scripts that put no spaces between words are cut into characters. It asks for no language
and knows no list of abbreviations.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np

from isogloss.data.bitext import Text
from isogloss.data.ragged import Ragged
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError

__all__ = ["NormalForm", "normalise_words", "spaces_after", "tokenise", "tokenise_bytes", "tokenise_text"]

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

# Thai, Lao, Myanmar, Khmer, Hiragana, Katakana, Han; their digits are written as numbers are elsewhere, and left out.
_SPACELESS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u1000-\u103f\u104a-\u108f\u109a-\u109f\ua9e0-\ua9ef"
    "\ua9fa-\ua9ff\uaa60-\uaa7f\u1780-\u17d3\u17d7\u17dc\u17dd\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\uff66-\uff9f\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_SPACELESS_FAR = "\U0001aff0-\U0001b16f\U00020000-\U0003ffff"  # rare Kana and Han beyond the first 65,536 characters
_JOINERS = "\u00ad\u200c\u200d\u2060\uff9e\uff9f"  # stay with what stands before them, as marks do
_JOINERS_FAR = "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\U000e0100-\U000e01ef"
_INVISIBLE = "\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2061-\u2069\ufeff"  # between tokens, in none

# Articles, pronouns and prepositions that lose their vowel, in French, Catalan, Occitan and Italian.
_ELIDED = "[cdjlmnstv]|qu|gl|(?:jus|lors|puis|quoi|pres|quel)qu|entr|(?:[bcdns]|qu)?[aeou]ll|un|quest|sant|anch|tutt"
_CLITIC = "s|d|m|re|ve|ll"


def _ranges(points: Iterable[int]) -> str:
    """A set of characters, as it is written between the brackets of a regular expression."""
    spans: list[list[int]] = []
    for point in points:
        if spans and spans[-1][1] == point - 1:
            spans[-1][1] = point
        else:
            spans.append([point, point])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in spans)


@cache
def _mark() -> str:
    """A pattern for one combining mark or joiner.

    The set comes from Python's own Unicode tables. It is in two halves, since `re` finds a character in a large set at
    once only if all of the set is within the first 65,536.
    """
    near, far = (
        _ranges(point for point in plane if unicodedata.category(chr(point))[0] == "M")
        for plane in (range(0x10000), range(0x10000, 0x20000))
    )
    return f"(?:[{near}{_JOINERS}]|[{far}{_JOINERS_FAR}])"


@cache
def _words(spaceless: str) -> re.Pattern[str]:
    """The pattern of a token; each kind is tried before those below it."""
    mark = _mark()
    letter = rf"[^\W\d_{spaceless}]"
    written = rf"[^\W{spaceless}]"  # letters, digits and _ of scripts with spaces
    word = f"{written}++(?:{mark}++{written}*+)*+"
    clitic = rf"(?i:{_CLITIC})(?!\w)"
    negation = r"(?i:n)['’](?i:t)(?!\w)"
    symbol = rf"[^\w\s{_INVISIBLE}]"
    kinds = {
        "address": rf"(?i:https?://|ftp://|www\.)(?:{written}|[-./?%&=+#:@~,;!$*()'])*(?:{written}|[/#=&%+~$-])",
        "e-mail": r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
        "tag": r"</?[A-Za-z][A-Za-z0-9:._-]*+(?:\s[^<>]*+)?>|</?[A-Za-z][A-Za-z0-9:._-]*+/>",
        "placeholder": r"[$%#]?\{\{?[\w.:,+-]*+\}\}?|%\(\w+\)[a-zA-Z]|%(?:\d+\$)?[sdif](?!\w)|&(?:[A-Za-z]++|#\d++);",
        "number": r"\d{1,3}(?:[\u00a0\u202f]\d{3})++(?!\d)(?:[.,]\d++)?|\d++(?:[.,:/\u066b\u066c]\d++)++",
        "initials": rf"(?:{letter}\.){{2,}}(?!\w)",
        "clitic": rf"{negation}|['’](?i:{_CLITIC})(?![\w'’])",
        "elision": rf"(?i:{_ELIDED})['’](?!{clitic})(?={letter})|(?i:[cdjlmnst]|qu)['’](?!\S)",
        "negated": rf"(?=[A-Za-z]++['’](?i:t)(?!\w))[A-Za-z]+(?={negation})",
        "word": rf"{word}(?:(?:[-‐‑·׳״]|['’](?!{clitic})){word})*+",
        "ellipsis": r"\.{2,}",
        "flag": "[\U0001f1e6-\U0001f1ff]{2}",
        "symbol": rf"{symbol}(?:{mark}*\u200d{symbol})*",  # several when joined, as emoji are
        "character": rf"[^\s{_INVISIBLE}]",
    }
    return re.compile(f"(?:{'|'.join(kinds.values())}){mark}*+")


@cache
def _characters() -> re.Pattern[str]:
    return re.compile(rf"[^\s{_INVISIBLE}]{_mark()}*+")


_FAR = re.compile(f"[{_SPACELESS_FAR}]")
_CHUNK = re.compile(r"\S+")
_SPACES = re.compile(r"[ \t-\r]")  # ASCII white space
_SPACED = re.compile(r"[^ \t-\r]+")
_CROSSING = re.compile(r"<[A-Za-z]|\d[\u00a0\u202f]")  # tags and grouped numbers: all that may have white space inside


def tokenise(line: str) -> list[tuple[int, int]]:
    """Where each token of a line starts and ends, in characters.

    White space is between tokens and in none, except inside a tag.

    Examples
    --------
    >>> line = "L'homme n'a pas 1,000.5 euros, don't you?"
    >>> [line[start:end] for start, end in tokenise(line)]
    ["L'", 'homme', "n'", 'a', 'pas', '1,000.5', 'euros', ',', 'do', "n't", 'you', '?']
    >>> line = "私は <b>Tom</b> です…"
    >>> [line[start:end] for start, end in tokenise(line)]
    ['私', 'は', '<b>', 'Tom', '</b>', 'で', 'す', '…']
    """
    if _CROSSING.search(line):
        return list(_cut(line))
    return [
        (start + first, start + last)
        for start, chunk in ((match.start(), match.group()) for match in _CHUNK.finditer(line))
        for first, last in _cut_again(chunk)
    ]


def _cut(text: str) -> tuple[tuple[int, int], ...]:
    spaceless = _SPACELESS
    if not text.isascii() and _FAR.search(text):  # slower by half, and hardly ever needed
        spaceless += _SPACELESS_FAR
    return tuple(match.span() for match in _words(spaceless).finditer(text))


_cut_again = lru_cache(1 << 16)(_cut)  # what stands between spaces comes again and again


def _each_character(line: str) -> list[tuple[int, int]]:
    return [match.span() for match in _characters().finditer(line)]


def _between_spaces(line: str) -> list[tuple[int, int]]:
    return [match.span() for match in _SPACED.finditer(line)]


_CUTS = {"unicode": tokenise, "characters": _each_character, "space": _between_spaces}


def normalise_words(text: Text, form: NormalForm | None) -> Text:
    """The same words in a Unicode normal form, one for each; a form with a space in it is not used."""
    if form is None:
        return text

    def normal(word: str) -> str:
        changed = unicodedata.normalize(form, word)
        return word if _SPACES.search(changed) else changed

    vocabulary, mapping = text.vocabulary.mapped(normal)
    ids = Ragged(np.append(mapping, np.int32(0))[text.ids.values], text.ids.offsets)
    return replace(text, ids=ids, vocabulary=vocabulary)


def tokenise_text(lines: Sequence[str], mode: str = "unicode", *, name: str = "<memory>") -> Text:
    """Tokenise lines, keeping them and where in them each token stands.

    Parameters
    ----------
    lines : sequence of str
        A sentence each.
    mode : {"unicode", "characters", "space"}
        As `tokenise` does, a token for each character (with its combining marks) that is not white space, or what
        stands between ASCII white space.
    name : str
        The file, for messages.

    Returns
    -------
    Text
        With `spans` and `lines`: token k of sentence i is ``lines[i][start:end]``, where start, end are
        ``spans[i][k]``.
    """
    if mode not in _CUTS:
        raise ParameterError(f"tokenise_text: mode should be one of {', '.join(_CUTS)}, not {mode!r}")
    cut = _CUTS[mode]
    numbers: dict[str, int] = {}
    ids: list[int] = []
    spans: list[tuple[int, int]] = []
    offsets = np.zeros(len(lines) + 1, np.int64)
    for row, line in enumerate(lines, 1):
        found = cut(line)
        spans += found
        ids += [numbers.setdefault(line[start:end], len(numbers)) for start, end in found]
        offsets[row] = len(ids)
    places = np.array(spans, np.int32).reshape(-1, 2)
    return Text(Ragged(np.array(ids, np.int32), offsets), Vocabulary(numbers), name, Ragged(places, offsets), lines)


def tokenise_bytes(data: bytes, mode: str, form: NormalForm | None = None, *, name: str = "<memory>") -> Text:
    """Tokenise UTF-8 text, a sentence a line, in a Unicode normal form: of each line or, with "space", of each word."""
    lines = data.decode().split("\n")
    if not lines[-1]:
        lines.pop()
    lines = [line.removesuffix("\r") for line in lines]
    if mode == "space":
        return normalise_words(tokenise_text(lines, mode, name=name), form)
    if form is not None:
        lines = [unicodedata.normalize(form, line) for line in lines]
    return tokenise_text(lines, mode, name=name)


_ESCAPED = str.maketrans({" ": "\\s", "\t": "\\t", "\r": "\\r", "\n": "\\n", "|": "\\p", "\\": "\\\\"})


def spaces_after(text: Text, sentence: int) -> tuple[str, list[str]]:
    """The line of a sentence, and what MISC says of the white space after each of its words."""
    words = text.tokens(sentence)
    if text.spans is None or text.lines is None:
        return " ".join(words), ["_"] * len(words)
    line, spans = text.lines[sentence], text.spans[sentence].tolist()
    after = []
    for (_, stop), (start, _) in pairwise(spans):
        gap = line[stop:start].translate(_ESCAPED)
        after.append({"\\s": "_", "": "SpaceAfter=No"}.get(gap, f"SpacesAfter={gap}"))
    return line.strip(), after + ["_"] * bool(spans)
