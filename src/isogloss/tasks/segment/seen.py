"""Words as the supervised segmenter sees them: letters, what the text says of their substrings, what a model believes.

What is known of substrings is counted over the different words of a text without labels: how many words begin with a
string, end with it, or have it somewhere; whether it is a word itself; how many different letters follow it at the
beginning of words (its successor variety), or precede it at their end (Hafer and Weiss, Word segmentation by letter
successor varieties, 1974).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.ragged import Ragged
from isogloss.features import Axis, Parts, phrases, positions, spans
from isogloss.layout import Layout, Numbers, Strings, check
from isogloss.tasks.parse.constituency.words import code_of
from isogloss.tasks.segment.types import Substrings, WordTypes, letters_of, span_starts

__all__ = ["KNOWN", "Seen", "TextKnowledge", "seen_words"]

Integers = NDArray[np.int64]
MOST = 8
"""Varieties of letters above this are alike."""
KNOWN = ("begins", "ends", "inside", "word", "next", "before")
"""What is known of a substring."""
BESIDE = ("next", "left", "before", "right")
"""What is known of a place in a word: how many letters follow what is left of it, whether that is a word; and what is
right of it, likewise."""
LEAST = 2
"""Strings in fewer words are forgotten, unless they are words."""
POSTERIOR_BINS = np.array([0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98])


@dataclass(frozen=True, eq=False)
class TextKnowledge:
    """What the words of a text say of their substrings.

    Parameters
    ----------
    alphabet : tuple of str
    substrings : Substrings
    table : uint16[6, n_substrings]
        See `KNOWN`: numbers of words, then 1 for words, then numbers of letters, up to `MOST`.
    words : int64[n_words]
        Codes of the words, ascending.

    Examples
    --------
    >>> text = TextKnowledge.of(["walk", "walks", "talk", "talks"], longest=8)
    >>> row = text.of_strings(["walk", "s", "alk"])
    >>> row[:, 0].tolist(), row[:, 1].tolist()
    ([2, 0, 2, 1, 2, 1], [0, 2, 2, 0, 0, 1])
    """

    alphabet: tuple[str, ...]
    substrings: Substrings
    table: NDArray[np.uint16]
    words: Integers

    @classmethod
    def of(cls, words: Iterable[str], longest: int) -> TextKnowledge:
        """What the different words of a text say, whatever their case."""
        every = list(dict.fromkeys("".join(letters_of(word)) for word in words))
        types = WordTypes.of(every)
        n_letters = max(1, len(types.alphabet))
        strings, found = Substrings.grown(types.letters, n_letters, longest)
        n, places = len(strings), Places(types.letters, longest)
        once = np.unique(places.owners * max(1, n) + found) % max(1, n)
        table = np.zeros((len(KNOWN), n), np.int64)
        first, last = found[places.starting], found[places.ending]
        table[0], table[1] = np.bincount(first, minlength=n), np.bincount(last, minlength=n)
        table[2] = np.bincount(once, minlength=n)
        table[3, found[places.starting & places.ending]] = 1
        table[4] = _different(first, places.following[places.starting], n, n_letters)
        table[5] = _different(last, places.preceding[places.ending], n, n_letters)
        table[4:] = np.minimum(table[4:], MOST)
        kept, old = strings.kept((table[2] >= LEAST) | (table[3] > 0))
        codes = np.array(sorted(map(code_of, every)), np.int64)
        return cls(tuple(types.alphabet), kept, np.minimum(table[:, old], 65535).astype(np.uint16), codes)

    @property
    def longest(self) -> int:
        """The most letters of a substring."""
        return self.substrings.longest

    def encode(self, words: Sequence[str]) -> WordTypes:
        """Words in the letters of the text."""
        return WordTypes.of(words, alphabet=self.alphabet)

    def has(self, words: Sequence[str]) -> NDArray[np.bool_]:
        """bool[n]: whether words are words of the text."""
        codes = np.array([code_of("".join(letters_of(word))) for word in words], np.int64)
        at = np.minimum(np.searchsorted(self.words, codes), max(0, len(self.words) - 1))
        return np.asarray(self.words[at] == codes) if len(self.words) else np.zeros(len(words), np.bool_)

    def spans(self, words: Sequence[str], types: WordTypes, places: Places) -> Integers:
        """int64[6, n_spans]: what other words of the text say of each span; what a word says itself is left out.

        The model meets words that are not in the text, and what it learns should hold for them.
        """
        table = np.pad(self.table, ((0, 0), (0, 1))).astype(np.int64)
        found = np.asarray(table[:, self.substrings.spans(types.letters)])
        own = self.has(words)[places.owners]
        found[0] -= own & places.starting
        found[1] -= own & places.ending
        found[2] -= own
        found[3] -= own & places.starting & places.ending
        few = found[:3] < LEAST
        found[4][few[0]], found[5][few[1]] = 0, 0
        found[:3] = np.where(few, 0, np.log2(np.maximum(found[:3], 1)).astype(np.int64) + 1)
        return np.maximum(found, 0)

    def of_strings(self, strings: Sequence[str]) -> Integers:
        """int64[6, n]: what is known of strings, the first three rows as 1 + log₂; of long ones nothing."""
        out = np.zeros((len(KNOWN), len(strings)), np.int64)
        there = np.array([k for k, one in enumerate(strings) if one], np.int64)
        types = self.encode([strings[k] for k in there.tolist()])
        lengths = np.asarray(types.letters.lengths)
        starts, found = span_starts(types.letters, self.longest)[:-1], self.substrings.spans(types.letters)
        short = lengths <= self.longest
        numbers = found[(starts + lengths - 1)[short]]
        own = np.pad(self.table, ((0, 0), (0, 1))).astype(np.int64)[:, numbers]  # the last column is of unknown ones
        own[:3] = np.where(own[:3] < LEAST, 0, np.log2(np.maximum(own[:3], 1)).astype(np.int64) + 1)
        out[:, there[short]] = own
        return out

    # --- keeping

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        from isogloss.store import pack_strings

        blob, offsets = pack_strings(self.alphabet)
        strings = {"parents": self.substrings.parents, "letters": self.substrings.letters}
        return {"alphabet": blob, "alphabet_offsets": offsets, **strings, "table": self.table, "words": self.words}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], longest: int) -> TextKnowledge:
        """The inverse of `to_arrays`; what is wrong with it is refused."""
        layout: Layout = {
            "alphabet": Strings("alphabet", distinct=True),
            "parents": Numbers("int32", "strings", least=-1, below="strings"),
            "letters": Numbers("int32", "strings", least=0, below="alphabet"),
            "table": Numbers("uint16", (len(KNOWN), "strings")),
            "words": Numbers("int64", "words", order="rising"),
        }
        own = check(arrays, layout, "what the saved model knows of its text")
        alphabet = tuple(own["alphabet"])
        strings = Substrings(own["parents"], own["letters"], max(1, len(alphabet)), longest)
        strings.check()
        return cls(alphabet, strings, own["table"], own["words"])


class Places:
    """Where each span of some words begins and ends."""

    def __init__(self, letters: Ragged, longest: int) -> None:
        offsets = np.asarray(letters.offsets - letters.offsets[0], np.int64)
        lengths = np.diff(offsets)
        word = np.repeat(np.arange(len(lengths)), lengths)
        left = offsets[1:][word] - np.arange(len(word))  # letters up to the end of the word
        counts = np.minimum(left, longest)
        before = np.cumsum(counts) - counts
        begin = np.repeat(np.arange(len(word)), counts)
        end = begin + np.arange(int(counts.sum())) - before[begin] + 1
        values = np.append(letters.flat.astype(np.int64), 0)
        self.owners: Integers = word[begin]
        self.begin, self.end = begin, end
        self.starting = begin == offsets[self.owners]
        self.ending = end == offsets[self.owners + 1]
        self.following: Integers = np.where(self.ending, -1, values[np.minimum(end, len(word))])
        self.preceding: Integers = np.where(self.starting, -1, values[begin - 1])


def _different(strings: Integers, letters: Integers, n: int, n_letters: int) -> Integers:
    """int64[n]: how many different letters stand beside each string; the border of a word is one of them."""
    pairs = np.unique(strings.astype(np.int64) * (n_letters + 1) + letters + 1)
    return np.bincount(pairs // (n_letters + 1), minlength=n)


@dataclass(frozen=True, eq=False)
class Seen:
    """Words as codes.

    Parameters
    ----------
    axis : Axis
        What is known of each letter, and of the place before it.
    columns : dict of str to int64[n_spans]
        What is known of each span of up to `longest` letters.
    longest : int
    """

    axis: Axis
    columns: Mapping[str, Integers]
    longest: int

    def positions(self) -> Parts:
        """A part for each letter: whether a piece begins there."""
        return positions(self.axis)

    def spans(self) -> Parts:
        """A part for each span."""
        return spans(self.axis, self.longest).with_columns(**self.columns)

    @property
    def lengths(self) -> Integers:
        """Letters of each word."""
        return np.diff(self.axis.offsets)


def look_of(word: str) -> int:
    """How a word is written: 0 in small letters, 1 with a capital first, 2 with other capitals, 3 with a digit."""
    if any(letter.isdigit() for letter in word):
        return 3
    if word == word.lower():
        return 0
    return 1 if word[1:] == word[1:].lower() else 2


def seen_words(words: Sequence[str], text: TextKnowledge, model: Any = None) -> Seen:
    """Words as codes.

    Parameters
    ----------
    words : sequence of str
        None of them empty.
    text : TextKnowledge
    model : MorphemeModel, optional
        What has learnt without labels, and says how probable borders and pieces are. Its longest morphemes are those
        of the text's substrings.
    """
    types = text.encode(words)
    letters, longest = types.letters, text.longest
    places = Places(letters, longest)
    known = text.spans(words, types, places)
    lengths = np.asarray(letters.lengths, np.int64)
    alphabet = np.array([*map(code_of, text.alphabet), code_of("\0")], np.int64)
    axis_of: dict[str, Any] = {
        "letter": alphabet[letters.flat],
        "look": np.repeat(np.array([look_of(word) for word in words], np.int64), lengths),
    }
    n = int(lengths.sum())
    for name in BESIDE:
        axis_of[name] = np.zeros(n, np.int64)
    whole = places.starting & places.ending
    left, right = places.starting & ~whole, places.ending & ~whole
    for name, row, of, at in (
        ("next", 4, left, places.end), ("left", 3, left, places.end),
        ("before", 5, right, places.begin), ("right", 3, right, places.begin),
    ):  # fmt: skip
        axis_of[name][at[of]] = known[row, of]
    columns = {**dict(zip(KNOWN[:4], known, strict=False)), "length": places.end - places.begin}
    columns["place"] = places.starting + 2 * places.ending
    if model is not None:
        believed = model.posteriors(model.encode(words))
        inner = np.ones(n, np.bool_)
        inner[np.cumsum(lengths) - lengths] = False
        axis_of["border"] = np.zeros(n, np.int64)
        axis_of["border"][inner] = _binned(believed.boundaries.flat)
        each = believed.spans.flat.reshape(len(places.begin), -1)
        columns["believed"], columns["type"] = _binned(each.sum(axis=1)), each.argmax(axis=1)
    offsets = np.asarray(letters.offsets - letters.offsets[0], np.int64)
    columns["piece"] = phrases(Axis(offsets, letter=axis_of["letter"]), longest, "letter")
    for name, of, at in (("begun", left, places.end), ("rest", right, places.begin)):
        axis_of[name] = np.full(n, -1, np.int64)
        axis_of[name][at[of]] = columns["piece"][of]
    return Seen(Axis(offsets, **axis_of), columns, longest)


def _binned(probabilities: NDArray[np.float64]) -> Integers:
    return np.searchsorted(POSTERIOR_BINS, probabilities).astype(np.int64)
