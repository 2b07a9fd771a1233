"""Translation memories (TMX 1.1 to 1.4), read as a stream and never trusted.

Entities that a document declares, and entities outside it, are refused: they are how a kilobyte becomes a gigabyte, and
how a file reads other files.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from isogloss.data.formats.files import IsoglossWarning
from isogloss.errors import BitextError

__all__ = ["format_tmx", "tmx_pairs"]

_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_PAIRED_CODE = {"bpt", "ept"}  # bold on, bold off: within words, too
_LONE_CODE = {"ph", "it", "ut"}  # a break, an image: never within words
_GAPS = re.compile(r"[ \t\r\n]+")
_FED = 1 << 16  # bytes that the parser is given at a time
_NOT_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

MOST_IN_MARKUP = 1 << 20
"""The longest tag, comment or declaration that is read, in bytes.

The parser takes each of them from its beginning again whenever it is fed, so that the time would grow with the square
of the length. Text between tags may have any length.
"""

MOST_DEPTH = 1000
"""How many elements may be inside each other: each costs memory until it ends, and TMX has a dozen."""

Unit = list[tuple[str, str]]


class _Units:
    """Hears the parser and keeps, for each translation unit, its segments with their languages."""

    def __init__(self) -> None:
        self.root = ""
        self.depth = self.deepest = 0
        self.units: list[Unit] = []
        self._unit: Unit | None = None
        self._language = ""
        self._words: list[str] | None = None
        self._inside_code = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition("}")[2]
        self.root = self.root or tag
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if self._words is not None:
            if self._inside_code or tag in _PAIRED_CODE or tag in _LONE_CODE:
                self._inside_code += 1
            if tag in _LONE_CODE:
                self._words.append(" ")
        elif tag == "tu":
            self._unit = []
        elif tag == "tuv":
            self._language = (attributes.get(_XML_LANG) or attributes.get("lang") or "").lower().replace("_", "-")
        elif tag == "seg":
            self._words = []

    def end(self, tag: str) -> None:
        tag = tag.rpartition("}")[2]
        self.depth -= 1
        if self._inside_code:
            self._inside_code -= 1
        elif tag == "seg" and self._words is not None:
            if self._unit is not None:
                self._unit.append((self._language, _GAPS.sub(" ", "".join(self._words)).strip(" ")))
            self._words = None
        elif tag == "tu" and self._unit is not None:
            self.units.append(self._unit)
            self._unit = None

    def data(self, text: str) -> None:
        if self._words is not None and not self._inside_code:
            self._words.append(text)

    def close(self) -> None:
        """Called by the parser at the end; everything has been taken already."""


def _units(pieces: Iterable[bytes], name: str, encoding: str | None) -> Iterator[Unit]:
    from defusedxml.ElementTree import DefusedXMLParser

    heard = _Units()
    parser = DefusedXMLParser(target=heard, encoding=encoding)
    n_fed = 0
    for piece in _slices(pieces):
        with _explained(name, parser):
            parser.feed(piece)
        n_fed += len(piece)
        _check_bounds(heard, n_fed, parser.parser, name)
        yield from heard.units
        heard.units.clear()
    with _explained(name, parser):
        parser.close()
    yield from heard.units


def _slices(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        for at in range(0, len(piece), _FED):
            yield piece[at : at + _FED]


def _check_bounds(heard: _Units, n_fed: int, parser: Any, name: str) -> None:
    if heard.root not in ("", "tmx"):
        raise BitextError(f"{name}: the outermost element is <{heard.root:.60}>, not <tmx>. Another kind of XML?")
    place = f"{name}, line {parser.CurrentLineNumber}"
    if heard.deepest > MOST_DEPTH:
        raise BitextError(
            f"{place}: more than {MOST_DEPTH:,} elements inside each other, which no translation memory has. "
            "Is an end tag missing?"
        )
    if n_fed - max(parser.CurrentByteIndex, 0) > MOST_IN_MARKUP:
        raise BitextError(
            f"{place}: a tag, comment or declaration begins here that is longer than {MOST_IN_MARKUP:,} bytes. "
            "Is a quotation mark or a '>' missing? Otherwise shorten it"
        )


@contextmanager
def _explained(name: str, parser: Any) -> Iterator[None]:
    """What the parser complains of, in our words."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import ParseError

    try:
        yield
    except DefusedXmlException as problem:
        what = getattr(problem, "name", None) or getattr(problem, "sysid", None) or ""
        raise BitextError(
            f"{name}, line {parser.parser.CurrentLineNumber}: declares or calls the entity '{what:.60}', which is "
            "refused: such entities can fill the memory or read other files. Put their text in their place"
        ) from None
    except ParseError as problem:
        line, column = problem.position
        what = str(problem).split(":")[0]
        raise BitextError(f"{name}, line {line}, column {column}: not well-formed XML: {what}") from None
    except (LookupError, ValueError) as problem:  # an encoding that Python, or the parser, does not know
        raise BitextError(
            f"{name}: its first line declares an encoding that cannot be read ({problem}). "
            "Mend the declaration, or say what it is, as in --encoding shift_jis (encoding='shift_jis' in Python)"
        ) from None


def tmx_pairs(
    pieces: Iterable[bytes], name: str, languages: tuple[str, str] | None = None, encoding: str | None = None
) -> Iterator[tuple[str, str]]:
    """The segments of two languages, a pair for each unit; a language that a unit lacks is an empty string.

    Parameters
    ----------
    pieces : iterable of bytes
        The file.
    languages : (str, str), optional
        Source and target. "en" also takes "en-GB". Without it: the first two languages that meet in one unit, and a
        third is refused.
    encoding : str, optional
        Overrides what the file says of itself.
    """
    wanted = None if languages is None else (_code(languages[0]), _code(languages[1]))
    held: list[Unit] = []
    seen: dict[str, int] = {}
    n_units = n_partial = 0
    found = [False, False]
    for unit in _units(pieces, name, encoding):
        n_units += 1
        for language, _ in unit:
            seen[language] = seen.get(language, 0) + 1
        held.append(unit)
        if wanted is None:
            codes = list(dict.fromkeys(language for language, _ in unit))
            if len(codes) < 2:
                continue
            wanted = (codes[0], codes[1])
        for number, waiting in enumerate(held, n_units - len(held) + 1):
            sides = [_segment(waiting, wanted, side) for side in range(2)]
            if languages is None:
                _check_third(waiting, sides, wanted, f"{name}, unit {number}")
            found = [before or side is not None for before, side in zip(found, sides, strict=True)]
            n_partial += None in sides
            source, target = ("" if side is None else side[1] for side in sides)
            yield source, target
        held.clear()
    there = ", ".join(sorted(code or "(none)" for code in seen)) or "none"
    if wanted is None and n_units:
        raise BitextError(f"{name}: no unit has two languages (languages found: {there})")
    for side in range(2):
        if n_units and wanted is not None and not found[side]:
            raise BitextError(f"{name}: no segment in '{wanted[side]}' (languages found: {there})")
    if n_partial and wanted is not None:
        warnings.warn(
            f"{name}: {n_partial} of {n_units} units lack {wanted[0]} or {wanted[1]}; that side is left empty",
            IsoglossWarning,
            stacklevel=3,
        )


def _code(language: str) -> str:
    return language.lower().replace("_", "-")


def _segment(unit: Unit, wanted: tuple[str, str], side: int) -> tuple[str, str] | None:
    """The segment of a language: of just that code, else of its first part, unless both languages share that."""
    for language, text in unit:
        if language == wanted[side]:
            return language, text
    first, other = (wanted[k].partition("-")[0] for k in (side, 1 - side))
    if first != other:
        for language, text in unit:
            if language.partition("-")[0] == first:
                return language, text
    return None


def _check_third(unit: Unit, sides: list[tuple[str, str] | None], wanted: tuple[str, str], place: str) -> None:
    """Refuse a language that is neither of the two that were found first."""
    taken = {side[0] for side in sides if side is not None}
    third = next((language for language, _ in unit if language not in taken), None)
    if third is not None:
        one, other, *_ = (code for code in (*wanted, third) if code)
        first, second, third = (code or "(none)" for code in (*wanted, third))
        raise BitextError(
            f"{place}: a third language, {third}, beside {first} and {second}. Say which two to read, as in "
            f"--languages {one},{other} (languages=('{one}', '{other}') in Python)"
        )


def format_tmx(pairs: Iterable[tuple[str, str]], languages: tuple[str, str]) -> Iterator[str]:
    """A TMX 1.4 document, piece by piece. Characters that XML cannot hold become U+FFFD."""
    tags = [f'"{escape(language)}"' for language in languages]
    yield (
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n<header creationtool="isogloss" '
        'creationtoolversion="1" segtype="sentence" o-tmf="isogloss" adminlang="en" '
        f'srclang={tags[0]} datatype="plaintext"/>\n<body>\n'
    )
    for pair in pairs:
        clean = (escape(_NOT_XML.sub("\ufffd", text), quote=False) for text in pair)
        segments = (f"<tuv xml:lang={tag}><seg>{text}</seg></tuv>" for tag, text in zip(tags, clean, strict=True))
        yield f"<tu>{''.join(segments)}</tu>\n"
    yield "</body>\n</tmx>\n"
