"""What text looks like before anything is drawn: how wide it is, which way it runs, what must not be printed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = ["clip", "display_width", "printable", "runs_right_to_left"]

_ZERO_WIDTH = frozenset({"Mn", "Me", "Cf"})
_JOINER = "\u200d"

# Control characters could steer a terminal, lone surrogates cannot be encoded, and XML allows neither.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """The text with control characters, line separators and lone surrogates replaced by U+FFFD.

    >>> printable("red\\x1b[31m")
    'red\ufffd[31m'
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def display_width(text: str) -> int:
    """Number of terminal columns: 2 for wide and full-width characters, 0 for combining and invisible ones.

    Characters of ambiguous width count 1, as terminals outside East Asian locales draw them. What follows a zero-width
    joiner is part of the same picture.

    >>> display_width("naïve"), display_width("日本語"), display_width("e\u0301")
    (5, 6, 1)
    """
    width = 0
    joined = False
    for character in text:
        if not joined:
            width += _character_width(character)
        joined = character == _JOINER
    return width


def _character_width(character: str) -> int:
    if character == "\u00ad":  # the soft hyphen is the one format character that terminals draw
        return 1
    if unicodedata.category(character) in _ZERO_WIDTH or "\u1160" <= character <= "\u11ff":  # Hangul vowels and finals
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis, in at most `width` columns (at least 1).

    >>> clip("Donaudampfschiff", 6), clip("日本語", 4), clip("Haus", 4)
    ('Donau…', '日…', 'Haus')
    """
    if display_width(text) <= width:
        return text
    end = 0
    while end < len(text) and display_width(text[: end + 1]) < width:
        end += 1
    return text[:end] + "…"


def runs_right_to_left(words: Iterable[str], otherwise: bool = False) -> bool:
    """Whether the first letter that has a direction is Hebrew, Arabic or the like; `otherwise` when none has.

    >>> runs_right_to_left(["2", "שלום"]), runs_right_to_left(["a", "ب"]), runs_right_to_left(["12"], True)
    (True, False, True)
    """
    for word in words:
        for character in word:
            kind = unicodedata.bidirectional(character)
            if kind in ("R", "AL"):
                return True
            if kind == "L":
                return False
    return otherwise
