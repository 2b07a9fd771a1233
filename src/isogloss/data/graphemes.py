"""Grapheme clusters: what people take for one letter, however many code points it has.

A base with its combining marks, a Hangul syllable written as jamo, an emoji joined of several, and a flag are one
each, so that nothing is ever cut between a letter and its accent. The rules are those of Unicode's annex 29 for
extended clusters, read off the categories that Python knows; its table of Indic conjuncts is left out, so that
consonants which a virama joins are two clusters, as in its versions before 15.1.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

__all__ = ["graphemes"]

_JOINER = "\u200d"
_NON_JOINERS = {"\u200c", "\u00ad"}
"""Stay with what stands before them; a soft hyphen is not a letter of its own."""
_THAI_VOWELS = {"\u0e33", "\u0eb3"}
"""Letters by category that are spacing marks by use."""
_PREPENDED = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")

OTHER, EXTENDING, JOINER, PREPENDED, FLAG, LEADING, VOWEL, TRAILING, OPEN, CLOSED, PICTURE = range(11)
_AFTER = {(LEADING, LEADING), (LEADING, VOWEL), (LEADING, OPEN), (LEADING, CLOSED), (OPEN, VOWEL), (OPEN, TRAILING),
          (VOWEL, VOWEL), (VOWEL, TRAILING), (CLOSED, TRAILING), (TRAILING, TRAILING)}  # fmt: skip
"""Neighbours in one Hangul syllable."""


@lru_cache(maxsize=1 << 16)
def _kind(character: str) -> int:
    point = ord(character)
    if character == _JOINER:
        return JOINER
    if unicodedata.category(character)[0] == "M" or character in _NON_JOINERS or character in _THAI_VOWELS:
        return EXTENDING
    if 0x1F3FB <= point <= 0x1F3FF or 0xE0020 <= point <= 0xE007F or character in "\uff9e\uff9f":
        return EXTENDING
    if 0x1F1E6 <= point <= 0x1F1FF:
        return FLAG
    if 0x1100 <= point <= 0x115F or 0xA960 <= point <= 0xA97C:
        return LEADING
    if 0x1160 <= point <= 0x11A7 or 0xD7B0 <= point <= 0xD7C6:
        return VOWEL
    if 0x11A8 <= point <= 0x11FF or 0xD7CB <= point <= 0xD7FB:
        return TRAILING
    if 0xAC00 <= point <= 0xD7A3:
        return CLOSED if (point - 0xAC00) % 28 else OPEN
    if character in _PREPENDED:
        return PREPENDED
    return PICTURE if unicodedata.category(character) == "So" else OTHER


def graphemes(word: str) -> tuple[str, ...]:
    """The clusters of a word, from left to right; together they are the word.

    Examples
    --------
    >>> graphemes("né"), [len(one) for one in graphemes("ne\\u0301e")], graphemes("\\U00010330\\U00010331")
    (('n', 'é'), [1, 2, 1], ('𐌰', '𐌱'))
    >>> [len(graphemes(word)) for word in ("\\u1112\\u1161\\u11ab", "🇨🇿🇸🇰", "👩\\u200d🔬x")]
    [1, 2, 2]
    """
    if word.isascii() or len(word) < 2:
        return tuple(word)
    kinds = [_kind(character) for character in word]
    if max(kinds) == OTHER:
        return tuple(word)
    starts, flags, picture = [0], int(kinds[0] == FLAG), kinds[0] == PICTURE
    for at in range(1, len(word)):
        before, here = kinds[at - 1], kinds[at]
        joined = (
            here in (EXTENDING, JOINER)
            or before == PREPENDED
            or (before, here) in _AFTER
            or (here == FLAG and before == FLAG and flags % 2 == 1)
            or (here == PICTURE and before == JOINER and picture)
        )
        if not joined:
            starts.append(at)
            picture = here == PICTURE
        flags = flags + 1 if here == FLAG and before == FLAG else int(here == FLAG)
    return tuple(word[a:b] for a, b in zip(starts, [*starts[1:], len(word)], strict=True))
