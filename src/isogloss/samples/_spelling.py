"""How the stems and endings of the synthetic languages are spelt.

Stems are numbered, and a number is written in syllables as others write it in digits: no two stems are spelt alike, and
the common ones, whose numbers are small, are short. Source stems end in a consonant and target stems in a vowel; the
function words of both are single open syllables.
"""

from __future__ import annotations

from functools import cache, cached_property
from math import gcd

import numpy as np
from numpy.typing import NDArray

from isogloss.samples._grammar import ADJ, CLOSED, NOUN, OPEN, VARIANTS, VERB, closed_words

__all__ = ["Speller", "split_code"]

_ONSETS = (
    ("p", "t", "k", "b", "d", "g", "s", "f", "m", "n", "l", "r", "v", "h", "sh", "st"),
    ("p", "t", "k", "s", "h", "j", "l", "m", "n", "r", "v", "š", "č", "ž", "ts", "kv"),
)
_VOWELS = (("a", "e", "i", "o", "u"), ("a", "e", "i", "o", "u", "y", "ä", "ö"))
_CODAS = (("n", "r", "s", "l", "t", "m", "k", "d"), ("",))
_SHORTEST = (1, 2)  # syllables of a stem
_SYLLABLES = tuple([o + v for o in onsets for v in vowels] for onsets, vowels in zip(_ONSETS, _VOWELS, strict=True))
_ALL_VOWELS = frozenset("aeiouyäöøæ")
_FRONT = frozenset("eiyäöæ")

# Regular sound changes of cognates, into letters that no source stem has: cognates stay apart from each other.
_SHIFTS = str.maketrans({"o": "ø", "e": "æ", "v": "w", "k": "c"})
_PUNCTUATION = (".", "?")


class Speller:
    """The words of one grammar, both sides."""

    def __init__(self, seed: int):
        rng = np.random.default_rng([seed, 2])
        self._add = [int(x) for x in rng.integers(0, 2**62, size=2)]
        self._closed = [self._function_words(side, rng) for side in (0, 1)]
        self._endings = _endings(rng)

    @staticmethod
    def _function_words(side: int, rng: np.random.Generator) -> list[str]:
        order = rng.permutation(len(_SYLLABLES[side]))
        words = [_SYLLABLES[side][k] for k in order[: sum(n for _, n in CLOSED)]]
        for number, mark in zip(closed_words("PUNCT"), _PUNCTUATION, strict=True):
            words[number] = mark
        return words

    def function_word(self, number: int, side: int) -> str:
        """The listed word with a number; see `closed_words`."""
        return self._closed[side][number]

    def stem(self, number: int, side: int) -> str:
        """The stem with a number, as the language spells it when it is not borrowed.

        Stems of k syllables are counted through in the order of a fixed affine permutation, so that neighbours in
        frequency do not look alike.
        """
        syllables, codas, length = _SYLLABLES[side], _CODAS[side], _SHORTEST[side]
        base = len(syllables)
        size = base**length * len(codas)
        while number >= size:
            number -= size
            length += 1
            size *= base
        number = (number * _multiplier(size) + self._add[side]) % size
        number, coda = divmod(number, len(codas))
        spelt = codas[coda]
        for _ in range(length):
            number, syllable = divmod(number, base)
            spelt = syllables[syllable] + spelt
        return spelt

    def cognate(self, number: int, shifted: bool) -> str:
        """The target stem of a cognate: the source stem, as it is or through regular sound changes."""
        stem = self.stem(number, 0)
        return stem.replace("sh", "š").translate(_SHIFTS) if shifted else stem

    def endings(self, stem: str, tag: int, feature: int, side: int) -> tuple[str, ...]:
        """The endings of an inflected word, in order; none for the unmarked form."""
        if side == 0:
            return self._endings[0][tag, feature]
        vowel = next(letter for letter in reversed(stem) if letter in _ALL_VOWELS)
        return self._endings[1 + (vowel in _FRONT)][tag, feature]

    @cached_property
    def pairs_of_function_words(self) -> list[tuple[str, str, str]]:
        """(source, its usual translation, its other translation) of the function words that both sides have."""
        found = []
        for name, n in CLOSED[:7]:
            words = closed_words(name)
            for k, number in enumerate(words):
                other = words[(k + 1) % n] if name != "PUNCT" else number
                found.append((self._closed[0][number], self._closed[1][number], self._closed[1][other]))
        return found


def _endings(rng: np.random.Generator) -> list[dict[tuple[int, int], tuple[str, ...]]]:
    """Endings by tag and feature (number + 2 · case or tense): of the source, of back and of front target stems.

    The source marks number on nouns and tense on verbs, one ending each. The target strings endings together: number
    and case on nouns, tense and number on verbs, number on adjectives; their vowel follows the last of the stem.
    """
    source = [str(v + c) for v, c in zip(rng.permutation(list("aeiou")), rng.permutation(list("nrslt")), strict=True)]
    onsets, codas = rng.permutation(list("ptkshjlmnrv"))[:6], rng.permutation(list("nrst"))
    target = [
        f"{onset}%s{coda}" for onset, coda in zip(onsets, [codas[0], "", codas[1], "", "", codas[2]], strict=True)
    ]
    tables: list[dict[tuple[int, int], tuple[str, ...]]] = [{}, {}, {}]
    for feature in range(6):
        plural, rest = feature & 1, feature >> 1
        tables[0][NOUN, feature] = (source[0],) * plural
        tables[0][VERB, feature] = (source[rest],) * (rest > 0)
        tables[0][ADJ, feature] = ()
        for table, vowel in ((tables[1], "a"), (tables[2], "e")):
            endings = [ending % vowel for ending in target]
            table[NOUN, feature] = (endings[0],) * plural + (endings[rest],) * (rest > 0)
            table[VERB, feature] = (endings[2 + rest],) * (rest > 0) + (endings[5],) * plural
            table[ADJ, feature] = (endings[0],) * plural
    return tables


@cache
def _multiplier(size: int) -> int:
    """Near the golden section of `size` and coprime to it."""
    candidate = int(size * 0.6180339887) | 1
    while gcd(candidate, size) != 1:
        candidate += 2
    return candidate


def split_code(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Word number, feature and open-class tag (meaningless for function words) of each code."""
    words = codes >> 3
    return words, codes & 7, words // VARIANTS % OPEN
