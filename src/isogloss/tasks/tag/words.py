"""What a tagger sees of words: the word, its beginnings and endings, how it is written, and its neighbours.

Codes are hashes of the letters, so that no list of words belongs to a model, and new words have codes as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.features import Axis, Templates

__all__ = ["AFFIX", "TEMPLATES", "joined", "template_names", "templates_of", "word_axis", "word_codes"]

AFFIX = 5
"""Letters of the longest beginnings and endings."""

OWN = (
    (), "form", "word", *(f"prefix{n}" for n in range(1, AFFIX)), *(f"suffix{n}" for n in range(1, AFFIX + 1)),
    "shape", "look", "look & first", "look & suffix2", "look & suffix3",
)  # fmt: skip
AROUND = (
    "word[-1]", "word[+1]", "word[-2]", "word[+2]", "word[-1] & word", "word & word[+1]",
    "word[-1] & word[+1]", "word[-2] & word[-1]", "word[+1] & word[+2]",
    "suffix2[-1]", "suffix2[+1]", "suffix3[-1]", "suffix3[+1]", "suffix3[-2]", "suffix3[+2]",
    "look[-1]", "look[+1]", "suffix3 & suffix3[-1]", "suffix3 & suffix3[+1]",
)  # fmt: skip
TEMPLATES = OWN + AROUND
"""The templates of `isogloss.features` that are used unless others are given."""


def word_codes(types: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """int64[n_types] for each attribute: form, word (in small letters), prefix1 …, suffix1 …, shape and look.

    Examples
    --------
    >>> codes = word_codes(["House", "house", "Mouse"])
    >>> [bool(codes[name][0] == codes[name][1]) for name in ("form", "word", "shape")]
    [False, True, False]
    >>> [bool(codes[name][1] == codes[name][2]) for name in ("suffix4", "suffix5", "prefix1")]
    [True, False, False]
    """
    from isogloss.tasks.tag._numba.words import affix_codes, shape_codes

    letters, offsets = _letters(types)
    small, small_offsets = _letters([word.lower() for word in types])
    n = len(types)
    form, word = np.empty(n, np.int64), np.empty(n, np.int64)
    prefixes, suffixes = np.empty((AFFIX, n), np.int64), np.empty((AFFIX, n), np.int64)
    affix_codes(letters, offsets, AFFIX, form, prefixes, suffixes)
    affix_codes(small, small_offsets, AFFIX, word, prefixes, suffixes)
    shapes, looks = np.empty(n, np.int64), np.empty(n, np.int64)
    shape_codes(_kinds(letters), offsets, shapes, looks)
    found = {"form": form, "word": word, "shape": shapes, "look": looks}
    found |= {f"prefix{m + 1}": prefixes[m] for m in range(AFFIX)}
    return found | {f"suffix{m + 1}": suffixes[m] for m in range(AFFIX)}


def _letters(words: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """All words as numbers of characters, one after the other."""
    joined = "".join(words).encode("utf-32-le", "surrogatepass")
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    return np.frombuffer(joined, np.uint32), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _kinds(letters: NDArray[np.uint32]) -> NDArray[np.int64]:
    """What sort of character each one is; asked once for each that occurs."""
    found, where = np.unique(letters, return_inverse=True)
    return np.array([_kind(chr(number)) for number in found.tolist()], np.int64)[where]


def _kind(character: str) -> int:
    if character.isalpha():
        return 1 if character.isupper() or character.istitle() else 0 if character.islower() else 6
    if character.isdigit() or character.isnumeric():
        return 2
    return 3 if character in "-‐‑–" else 4 if character == "." else 5


def word_axis(ids: NDArray[np.int32], types: Sequence[str], offsets: NDArray[np.int64]) -> Axis:
    """The words of all sentences with the codes that templates look at, and `first`: 1 at the beginning of a sentence.

    ids : int32[n_words], numbers of `types`; offsets : int64[n_sentences + 1].
    """
    used = np.zeros(len(types), np.bool_)
    used[ids] = True
    numbers = np.cumsum(used) - 1
    kept = [types[i] for i in np.flatnonzero(used).tolist()]
    at = numbers[ids]
    first = np.zeros(len(ids), np.int64)
    first[offsets[:-1][np.diff(offsets) > 0]] = 1
    return Axis(offsets, first=first, **{name: codes[at] for name, codes in word_codes(kept).items()})


def joined(texts: Sequence[Treebank]) -> tuple[NDArray[np.int32], list[str], NDArray[np.int64]]:
    """Words of all texts as numbers of one list of types, the types, and where sentences begin."""
    types = list(dict.fromkeys(word for text in texts for word in text.columns["form"].vocabulary.types))
    joint = Vocabulary(types)
    ids = [joint.encode(text.columns["form"].vocabulary)[text.columns["form"].ids] for text in texts]
    lengths = np.concatenate([text.lengths for text in texts])
    return np.concatenate(ids).astype(np.int32), types, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def template_names(
    given: Sequence[str | Sequence[str]] | None, default: Sequence[str | Sequence[str]] = TEMPLATES
) -> tuple[str | tuple[str, ...], ...]:
    """Templates as an option keeps them, the default without any: what a saved model has as lists are tuples again."""
    chosen = default if given is None else given
    return tuple(item if isinstance(item, str) else tuple(item) for item in chosen)


@cache
def templates_of(names: tuple[str | tuple[str, ...], ...]) -> Templates:
    """Templates ready for use, made once for each tuple of names."""
    return Templates(names)
