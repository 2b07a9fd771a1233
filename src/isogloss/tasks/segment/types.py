"""`WordTypes`: the different words of a text as letters, each once, and the numbers of their substrings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.graphemes import graphemes
from isogloss.data.ragged import Ragged
from isogloss.data.rows import row_numbers
from isogloss.errors import ModelError, ParameterError
from isogloss.layout import REMEDY
from isogloss.structures.batch import run_sentences
from isogloss.structures.semimarkov2 import n_word_spans

__all__ = ["FREQUENCIES", "Substrings", "WordTypes", "letters_of"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

FREQUENCIES = ("types", "log", "tokens")
"""How much a word counts that occurs n times: once, 1 + log₂ n times, n times."""


def letters_of(word: str) -> tuple[str, ...]:
    """The graphemes of a word without their case; as many as those of the word itself.

    >>> letters_of("Été")
    ('é', 't', 'é')
    """
    return tuple(one.lower() for one in graphemes(word))


@dataclass(frozen=True, eq=False)
class WordTypes:
    """Words as numbers of letters, and how much each counts.

    Parameters
    ----------
    letters : Ragged of int32
        A row for each word; ``len(alphabet)`` stands for letters that are not in the alphabet.
    alphabet : sequence of str
    weights : float64[n_words]

    Examples
    --------
    >>> words = WordTypes.of(["tea", "eat", "Tea"])
    >>> words.alphabet, words.letters[2].tolist(), len(words)
    (('t', 'e', 'a'), [0, 1, 2], 3)
    >>> WordTypes.of(["tee", "ten"], alphabet=words.alphabet).letters[1].tolist()
    [0, 1, 3]
    """

    letters: Ragged
    alphabet: Sequence[str]
    weights: Array

    @classmethod
    def of(
        cls, words: Iterable[str], weights: ArrayLike | None = None, *, alphabet: Sequence[str] | None = None
    ) -> WordTypes:
        """From words, of which none is empty; the alphabet is that of the words, unless it is given."""
        each = [letters_of(word) for word in words]
        if not all(each):
            raise ParameterError("WordTypes.of: a word is empty")
        numbers = {letter: number for number, letter in enumerate(alphabet or ())}
        if alphabet is None:
            for word in each:
                for letter in word:
                    numbers.setdefault(letter, len(numbers))
        other = len(numbers)
        rows = Ragged.of([[numbers.get(letter, other) for letter in word] for word in each])
        own = np.ones(len(each)) if weights is None else np.array(weights, np.float64)
        if own.shape != (len(each),) or not (own >= 0).all() or not np.isfinite(own).all():
            raise ParameterError(f"WordTypes.of: weights should be {len(each)} finite numbers, 0 or more")
        return cls(rows, tuple(numbers), own)

    def __len__(self) -> int:
        return len(self.letters)

    def part(self, start: int, stop: int) -> WordTypes:
        """Words start..stop-1."""
        return replace(self, letters=self.letters.part(start, stop), weights=self.weights[start : max(start, stop)])

    def take(self, numbers: ArrayLike) -> WordTypes:
        """Words by their numbers."""
        rows = row_numbers(numbers, len(self), "WordTypes")
        return replace(self, letters=self.letters.take(rows), weights=self.weights[rows])

    @staticmethod
    def weighed(counts: ArrayLike, frequencies: str) -> Array:
        """How much words count that occur so often; see `FREQUENCIES`.

        >>> WordTypes.weighed([1, 8], "log").tolist()
        [1.0, 4.0]
        """
        often = np.asarray(counts, np.float64)
        if frequencies not in FREQUENCIES:
            raise ParameterError(f"frequencies should be one of {', '.join(FREQUENCIES)}, not {frequencies!r}")
        if frequencies == "types":
            return np.ones(len(often))
        return often.copy() if frequencies == "tokens" else 1.0 + np.log2(np.maximum(often, 1.0))


@dataclass(frozen=True, eq=False)
class Substrings:
    """Strings of letters, numbered from 0: a trie, in which every node is a string, and its parent is without its last.

    Parameters
    ----------
    parents : int32[n]
        Smaller than the number of the node itself; −1 for strings of one letter.
    letters : int32[n]
        The last letter of each.
    n_letters, longest : int

    Examples
    --------
    >>> words = WordTypes.of(["ab", "abb"])
    >>> found, spans = Substrings.grown(words.letters, 2, 3)
    >>> len(found), spans.tolist(), found.lengths.tolist()      # a ab b, a ab abb b bb b
    (5, [0, 1, 2, 0, 1, 3, 2, 4, 2], [1, 2, 1, 3, 2])
    """

    parents: NDArray[np.int32]
    letters: NDArray[np.int32]
    n_letters: int
    longest: int

    @classmethod
    def grown(cls, words: Ragged, n_letters: int, longest: int) -> tuple[Substrings, NDArray[np.int32]]:
        """All substrings of some words, of up to `longest` letters, and the number of each span of each word."""
        from isogloss.tasks.segment._numba.spans import fill_table, grow

        values, offsets = words.values.astype(np.int32, copy=False), words.offsets
        sizes = n_word_spans(words.lengths, longest)
        spans = np.empty(int(sizes.sum()), np.int32)
        most = int((words.lengths * np.minimum(words.lengths, longest)).max(initial=0))
        size = 1 << max(4, int(4 * most).bit_length())
        parents, letters = np.empty(0, np.int32), np.empty(0, np.int32)
        keys, nodes = np.full(size, -1, np.int64), np.zeros(size, np.int32)
        word = count = at = 0
        while True:
            parents, letters = (np.resize(one, len(keys) // 2) for one in (parents, letters))
            word, count, at = grow(
                word, values, offsets, longest, n_letters, keys, nodes, parents, letters, count, spans, at
            )
            if word == len(words):
                break
            keys, nodes = np.full(4 * len(keys), -1, np.int64), np.zeros(4 * len(keys), np.int32)
            fill_table(parents[:count], letters[:count], n_letters, keys, nodes)
        return cls(parents[:count].copy(), letters[:count].copy(), n_letters, longest), spans

    def __len__(self) -> int:
        return len(self.parents)

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """int32[n]: letters of each string; strings that are too long by more than one letter have 0."""
        found = np.zeros(len(self), np.int32)
        level, depth = np.flatnonzero(self.parents < 0), 1
        by_parent = np.argsort(self.parents, kind="stable")
        ordered = self.parents[by_parent]
        while len(level) and depth <= self.longest + 1:
            found[level] = depth
            low, high = np.searchsorted(ordered, level), np.searchsorted(ordered, level, side="right")
            own = Ragged(by_parent, np.concatenate([[0], np.cumsum(high - low)]).astype(np.int64))
            places = np.repeat(low - own.offsets[:-1], high - low) + np.arange(int(own.offsets[-1]))
            level, depth = by_parent[places], depth + 1
        return found

    @cached_property
    def _table(self) -> tuple[Integers, NDArray[np.int32]]:
        from isogloss.tasks.segment._numba.spans import fill_table

        size = 1 << max(4, (2 * len(self)).bit_length())
        keys, nodes = np.full(size, -1, np.int64), np.zeros(size, np.int32)
        fill_table(self.parents, self.letters, self.n_letters, keys, nodes)
        return keys, nodes

    def spans(self, words: Ragged) -> NDArray[np.int32]:
        """The number of each span of each word, −1 for strings that are not here."""
        from isogloss.tasks.segment._numba.spans import walk

        starts = span_starts(words, self.longest)
        found = np.empty(int(starts[-1]), np.int32)
        values = words.values.astype(np.int32, copy=False)
        run_sentences(
            walk, len(words), values, words.offsets, self.longest, self.n_letters, *self._table, starts, found
        )
        return found

    def find(self, strings: Ragged) -> NDArray[np.int32]:
        """int32[n]: the number of each string, −1 for those that are not here."""
        starts = span_starts(strings, self.longest)[:-1]
        short = (strings.lengths > 0) & (strings.lengths <= self.longest)
        found = np.full(len(strings), -1, np.int32)
        found[short] = self.spans(strings)[(starts + strings.lengths - 1)[short]]
        return found

    def kept(self, wanted: NDArray[np.bool_]) -> tuple[Substrings, Integers]:
        """Some of the strings with all that they begin with, and the old numbers of these."""
        mask, lengths = wanted.copy(), self.lengths
        for depth in range(int(lengths.max(initial=0)), 1, -1):
            mask[self.parents[mask & (lengths == depth)]] = True
        old = np.flatnonzero(mask)
        new = np.cumsum(mask, dtype=np.int64) - 1
        parents = np.where(self.parents[old] < 0, -1, new[self.parents[old]]).astype(np.int32)
        return replace(self, parents=parents, letters=self.letters[old]), old

    def strings(self, alphabet: Sequence[str]) -> list[str]:
        """All of them as text."""
        found: list[str] = []
        for parent, letter in zip(self.parents.tolist(), self.letters.tolist(), strict=True):
            found.append((found[parent] if parent >= 0 else "") + alphabet[letter])
        return found

    def check(self) -> None:
        """Refuse what is no trie: parents come before their children, no string is there twice, none is too long."""
        both = (self.parents.astype(np.int64) + 1) * self.n_letters + self.letters
        if (self.parents >= np.arange(len(self))).any() or len(np.unique(both)) < len(both):
            raise ModelError("the substrings of this model are not numbered as they should be. " + REMEDY)
        if self.lengths.max(initial=0) > self.longest:
            raise ModelError(f"this model has substrings of more than {self.longest} letters. " + REMEDY)


def span_starts(words: Ragged, longest: int) -> Integers:
    """int64[n_words + 1]: where the spans of each word begin."""
    return np.concatenate([[0], np.cumsum(n_word_spans(words.lengths, longest))]).astype(np.int64)
