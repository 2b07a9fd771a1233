"""`NGrams`: the words of a document and what follows them, as rows of a sparse matrix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Text
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.layout import Layout, Numbers, Strings, check

__all__ = ["NUMBER", "NGrams", "plain_form"]

NUMBER = "<num>"
"""What stands for every number."""
_NUMBER = re.compile(r"\d[\d.,:/]*$")
_LAYOUT: Layout = {
    "words": Strings("n_words", "word_offsets", distinct=True),
    "before": Numbers("int32", ("n_longer",), least=0),
    "last": Numbers("int32", ("n_longer",), least=0, below="n_words"),
    "sizes": Numbers("int64", ("longest",), least=0),
}


def plain_form(word: str) -> str:
    """A word in small letters; a number as `NUMBER`.

    Examples
    --------
    >>> plain_form("The"), plain_form("1,000.5"), plain_form("mp3")
    ('the', '<num>', 'mp3')
    """
    return NUMBER if _NUMBER.match(word) else word.lower()


@dataclass(frozen=True, eq=False)
class NGrams:
    """Words, and sequences of two or more words, that are known, with a number each.

    A sequence is known by the sequence without its last word, and by that word: `words` come first, then sequences of
    two, of three and so on. Sequences do not cross from one document to the next.

    Parameters
    ----------
    words : Vocabulary
        In their plain form.
    before : int32[n_longer]
        Of each sequence of two words and more, the number of what is before its last word,
    last : int32[n_longer]
        and the number of its last word; for each length in ascending order of both.
    sizes : int64[longest]
        How many there are of each length.

    Examples
    --------
    >>> known = NGrams.of([Text.of(["a good book", "a good film of 1984", "Good"])], longest=2, least=2)
    >>> list(known.names), known.matrix(Text.of(["A good good book"])).indices.tolist()
    (['a', 'good', 'a good'], [0, 1, 2])
    """

    words: Vocabulary
    before: NDArray[np.int32]
    last: NDArray[np.int32]
    sizes: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.sizes.sum())

    @property
    def longest(self) -> int:
        """The most words of a sequence."""
        return len(self.sizes)

    @classmethod
    def of(cls, texts: Sequence[Text], *, longest: int = 2, least: int = 1) -> NGrams:
        """Those of some texts that occur in `least` documents or more of all texts together."""
        if not texts or longest < 1 or least < 1:
            raise ParameterError("NGrams.of: give one text or more, and positive numbers for longest and least")
        every = Vocabulary(dict.fromkeys(plain_form(word) for text in texts for word in text.vocabulary))
        rows, starts = _joined(texts, every)
        row_of = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        many = _in_rows(rows, row_of, len(every))
        held = np.flatnonzero(many >= least)
        number_of = np.full(len(every) + 1, -1, np.int32)  # the last entry is for words that are not there
        number_of[held] = np.arange(len(held))
        words = Vocabulary(every[k] for k in held.tolist())
        units = number_of[rows].astype(np.int64)
        sizes, before, last = [len(held)], [], []
        at, first = units, 0
        for _ in range(longest - 1):
            pairs = _followed(at, units, row_of, len(words))
            codes, counts = _counted(pairs, row_of)
            codes = codes[counts >= least]
            before.append((codes // max(1, len(words))).astype(np.int32))
            last.append((codes % max(1, len(words))).astype(np.int32))
            first += sizes[-1]
            at = _looked_up(codes, pairs, first)
            sizes.append(len(codes))
        none = np.zeros(0, np.int32)
        return cls(words, np.concatenate([none, *before]), np.concatenate([none, *last]), np.array(sizes, np.int64))

    @cached_property
    def _codes(self) -> list[NDArray[np.int64]]:
        """For each length from two on, the code of every sequence, in ascending order."""
        cuts = np.cumsum(self.sizes[1:])[:-1]
        codes = self.before.astype(np.int64) * max(1, len(self.words)) + self.last
        return np.split(codes, cuts)

    def occurrences(self, text: Text) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The document and the number of every known sequence in a text, with repetitions."""
        forms = self.words.encode(plain_form(word) for word in text.vocabulary)
        number_of = np.append(forms, np.int32(-1)).astype(np.int64)
        units = number_of[text.ids.flat] if text.n_words else np.zeros(0, np.int64)
        row_of = np.repeat(np.arange(len(text)), text.ids.lengths)
        found_rows, found = [row_of[units >= 0]], [units[units >= 0]]
        at, first = units, int(self.sizes[0])
        for codes in self._codes if self.longest > 1 else []:
            at = _looked_up(codes, _followed(at, units, row_of, len(self.words)), first)
            first += len(codes)
            found_rows.append(row_of[at >= 0])
            found.append(at[at >= 0])
        return np.concatenate(found_rows), np.concatenate(found)

    def matrix(self, text: Text, *, counts: bool = False) -> Sparse:
        """A row for each document: which sequences it has or, with `counts`, how often."""
        rows, columns = self.occurrences(text)
        wide = max(1, len(self))
        codes, many = np.unique(rows * wide + columns, return_counts=True)
        starts = np.searchsorted(codes, np.arange(len(text) + 1) * wide)
        return Sparse(starts, codes % wide, len(self), many.astype(np.float64) if counts else None)

    @property
    def names(self) -> tuple[str, ...]:
        """Every sequence as it is written."""
        names = list(self.words)
        for before, last in zip(self.before.tolist(), self.last.tolist(), strict=True):
            names.append(f"{names[before]} {self.words[last]}")
        return tuple(names)

    def parts(self) -> list[NDArray[np.int64]]:
        """The words of each sequence, by their numbers, each once."""
        found = [np.array([k], np.int64) for k in range(len(self.words))]
        for before, last in zip(self.before.tolist(), self.last.tolist(), strict=True):
            found.append(np.unique(np.append(found[before], last)))
        return found

    # --- keeping

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        from isogloss.store import pack_strings

        blob, offsets = pack_strings(self.words.types)
        return {
            "words": blob, "word_offsets": offsets, "before": self.before, "last": self.last, "sizes": self.sizes,
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> NGrams:
        """The inverse of `to_arrays`; what is wrong with it is refused."""
        found = check(arrays, _LAYOUT, "the saved sequences of words")
        made = cls(Vocabulary(found["words"]), found["before"], found["last"], found["sizes"])
        starts = np.concatenate([[0], np.cumsum(made.sizes)])
        if not len(made.sizes) or made.sizes[0] != len(made.words) or starts[-1] - starts[1] != len(made.before):
            raise ValueError("the numbers of words and sequences do not fit each other")
        for k, codes in enumerate(made._codes if made.longest > 1 else []):
            own = made.before[starts[k + 1] - starts[1] : starts[k + 2] - starts[1]]
            inside = not len(own) or (starts[k] <= own.min() and own.max() < starts[k + 1])
            if not inside or (np.diff(codes) <= 0).any():
                raise ValueError("sequences of words are not in order")
        return made


def _joined(texts: Iterable[Text], words: Vocabulary) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All words by their numbers in one vocabulary, and where documents begin."""
    flat, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for text in texts:
        number_of = words.encode(plain_form(word) for word in text.vocabulary).astype(np.int64)
        flat.append(number_of[text.ids.flat] if text.n_words else np.zeros(0, np.int64))
        lengths.append(np.asarray(text.ids.lengths, np.int64))
    return np.concatenate(flat), np.concatenate([[0], np.cumsum(np.concatenate(lengths))])


def _in_rows(columns: NDArray[np.int64], rows: NDArray[np.int64], wide: int) -> NDArray[np.int64]:
    """In how many rows each column is."""
    once = np.unique(rows * max(1, wide) + columns) % max(1, wide)
    return np.bincount(once, minlength=wide)


def _followed(at: NDArray[Any], units: NDArray[Any], rows: NDArray[np.int64], wide: int) -> NDArray[np.int64]:
    """int64[n_words]: code of the sequence that ends at a word, of what ends before it and the word; −1 if none."""
    out = np.full(len(units), -1, np.int64)
    if len(units) > 1:
        there = (at[:-1] >= 0) & (units[1:] >= 0) & (rows[1:] == rows[:-1])
        out[1:] = np.where(there, at[:-1].astype(np.int64) * max(1, wide) + units[1:], -1)
    return out


def _counted(codes: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Codes in ascending order, and in how many rows each is."""
    there = codes >= 0
    found, number = np.unique(codes[there], return_inverse=True)
    return found, _in_rows(number.reshape(-1).astype(np.int64), rows[there], len(found))


def _looked_up(known: NDArray[np.int64], codes: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """int64[n]: the number of each code among those that are known, from `first`; −1 for others."""
    if not len(known):
        return np.full(len(codes), -1, np.int64)
    place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where((codes >= 0) & (known[place] == codes), place + first, -1)
