"""How words are written, as arrays: folded letters, forms to compare, and what kind of word each is; any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.tasks.align.priors import fold

__all__ = ["Writing", "letters_of", "writing_of"]

_VOWELS = re.compile("[aeiouy]+")
_SHORT = 3  # letters of a word that is called short
_MARKS = str.maketrans(
    {
        **dict.fromkeys("“”„‟«»‹›「」『』〝〞″＂", '"'), **dict.fromkeys("‘’‚‛′´`＇", "'"),
        **dict.fromkeys("–—―‒‐‑−ーｰ－", "-"), **dict.fromkeys("。．｡۔।॥", "."), **dict.fromkeys("，、､،", ","),
        **dict.fromkeys("；؛", ";"), **dict.fromkeys("？؟", "?"), "！": "!", "：": ":", "…": "...",
        **dict.fromkeys("（［【〔", "("), **dict.fromkeys("）］】〕", ")"),
    }
)  # fmt: skip


class Writing(NamedTuple):
    """What one word looks like; None where a form says nothing."""

    folded: str
    consonants: str | None
    digits: str | None
    punctuation: str | None
    number: bool
    short: bool
    script: str | None


@lru_cache(maxsize=1 << 18)
def writing_of(word: str) -> Writing:
    """Look at one word.

    `folded` has no case, accents and script (see `fold`); `consonants` is that without a, e, i, o, u, y, None if fewer
    than two letters are left; `digits` the word's digits in whatever script, None without any; `punctuation` the word
    itself, in plain marks, if it has neither letters nor digits. A number has digits and no letters.

    >>> writing_of("Élysée").consonants, writing_of("٣٫٥").digits, writing_of("«").punctuation
    ('ls', '35', '"')
    >>> writing_of("日本").script, writing_of("Москва").folded
    ('CJK', 'moskva')
    """
    folded = fold(word)
    letters = any(c.isalpha() for c in word)
    digits = "".join(str(unicodedata.digit(c)) for c in word if unicodedata.digit(c, None) is not None) or None
    consonants = _VOWELS.sub("", folded)
    mark = None
    if not letters and not any(c.isalnum() for c in word):
        mark = word.translate(_MARKS)
    return Writing(
        folded,
        consonants if letters and sum(c.isalpha() for c in consonants) > 1 else None,
        digits,
        mark,
        digits is not None and not letters,
        mark is None and len(folded) <= _SHORT,
        next((_script(c) for c in word if c.isalpha()), None),
    )


@lru_cache(maxsize=1 << 14)
def _script(letter: str) -> str:
    """The script of a letter, as the first word of its Unicode name says it."""
    return unicodedata.name(letter, "?").split(" ")[0].split("-")[0]


def letters_of(
    source: Sequence[str], target: Sequence[str]
) -> tuple[tuple[NDArray[np.int32], NDArray[np.int64]], tuple[NDArray[np.int32], NDArray[np.int64]], int]:
    """Letters of two lists of words as numbers from 0, the same for the same letter: (letters, starts) of each side.

    The third is how many different letters there are.
    """
    text = "".join(source) + "".join(target)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    known, inverse = np.unique(codes, return_inverse=True)
    sizes = [len(word) for word in source], [len(word) for word in target]
    starts = [np.concatenate([[0], np.cumsum(size)]).astype(np.int64) for size in sizes]
    numbers: NDArray[np.int32] = inverse.astype(np.int32).reshape(-1)
    cut = int(starts[0][-1])
    return (numbers[:cut], starts[0]), (numbers[cut:], starts[1]), len(known)
