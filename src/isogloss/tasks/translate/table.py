"""The phrase table of a translator: arrays sorted by source phrase, in memory or in a file.

It is made of what `extract_phrases` finds, and holds for each phrase pair its words, the logarithms of its scores, the
links that it most often has inside (its *constellation*), and how likely it is to be monotone, swapped or neither with
what stands before it and behind it (its *orientation*, of which few differ: most pairs occur once).

Memory: 4 bytes for each word of a phrase pair's target side and of each source phrase, 32 for a phrase pair with its
four scores, 16 for a source phrase. Of a saved model the table may stay in its file, from which the pages that a text
needs are read (``Translator.load(..., mapped=True)``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links, Text, Vocabulary
from isogloss.errors import ModelError
from isogloss.layout import Layout, Numbers, Offsets, check
from isogloss.progress import Progress
from isogloss.tasks.translate.lexicon import ranks
from isogloss.tasks.translate.phrases import PhraseTable, extract_phrases

__all__ = ["LAYOUT", "ORIENTATIONS", "SCORES", "Entry", "TranslationTable"]

SCORES = ("source_given_target", "source_lexical", "target_given_source", "target_lexical")
ORIENTATIONS = tuple(f"{how}_{side}" for side in ("before", "behind") for how in ("monotone", "swap", "apart"))
PRIOR = 3.0
"""What the orientation of all pairs together weighs in that of one, in occurrences."""
LEAST = 1e-7
"""No probability is taken for less: lexical weights may be 0."""
_SIDE = 7  # as kernels have it, which take long to import

Integers = NDArray[np.int64]

LAYOUT: Layout = {
    "source_starts": Offsets("phrases", "source tokens"),
    "source_words": Numbers("int32", "source tokens", least=0, below="source words"),
    "first_words": Offsets("source words", "phrases"),
    "pair_starts": Offsets("phrases", "pairs"),
    "target_starts": Offsets("pairs", "target tokens"),
    "target_words": Numbers("int32", "target tokens", least=0, below="target words"),
    "scores": Numbers("float32", ("pairs", "scores")),
    "constellations": Numbers("int32", "pairs", least=0, below="kinds"),
    "kinds": Numbers("int64", "kinds", least=0, order="strict"),
    "turns": Numbers("int32", "pairs", least=0, below="orientations"),
    "orientations": Numbers("float32", ("orientations", len(ORIENTATIONS))),
}
"""Arrays of a phrase table, see `isogloss.tasks.translate._numba.table.Pairs`; `kinds` are the constellations.

`turns` says which row of `orientations`, logarithms of probabilities, is that of a pair. Row 0 is that of all together.
"""


class Entry(NamedTuple):
    """A phrase pair: words, logarithms of scores, the links inside, and logarithms of orientations."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    scores: tuple[float, ...]
    links: tuple[tuple[int, int], ...]
    orientations: tuple[float, ...]


class TranslationTable:
    """Phrase pairs by source phrase.

    Parameters
    ----------
    source, target : Vocabulary
        Words of both sides, in alphabetical order (by code points).
    arrays : mapping of str to array
        As `LAYOUT` has them.

    Examples
    --------
    >>> text = Bitext.of([("ein Haus", "a house"), ("ein altes Haus", "an old house")])
    >>> table = TranslationTable.of(text, Links.of([[(0, 0), (1, 1)], [(0, 0), (1, 1), (2, 2)]]))
    >>> for entry in table.entries("altes Haus".split()):
    ...     print(" ".join(entry.target), np.exp(entry.scores).round(2).tolist(), entry.links)
    old house [1.0, 1.0, 1.0, 1.0] ((0, 0), (1, 1))
    """

    def __init__(self, source: Vocabulary, target: Vocabulary, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.source, self.target, self.arrays = source, target, dict(arrays)

    def __repr__(self) -> str:
        return f"TranslationTable({len(self):,} pairs of {self.n_phrases:,} phrases)"

    def __len__(self) -> int:
        """How many phrase pairs there are."""
        return len(self.arrays["constellations"])

    @property
    def n_phrases(self) -> int:
        """How many source phrases there are."""
        return len(self.arrays["pair_starts"]) - 1

    @property
    def n_scores(self) -> int:
        """How many scores a pair has."""
        return int(self.arrays["scores"].shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @cached_property
    def longest(self) -> int:
        """Words of the longest source phrase."""
        return int(np.diff(self.arrays["source_starts"]).max(initial=1))

    @cached_property
    def pairs(self) -> Any:
        """For kernels."""
        from isogloss.tasks.translate._numba.table import Pairs

        return Pairs(*(self.arrays[name] for name in Pairs._fields))

    @cached_property
    def followers(self) -> tuple[Integers, Integers]:
        """Orientations that agree in what comes behind: the number of each, and one row for each number."""
        _, first, numbers = np.unique(
            self.arrays["orientations"][:, 3:], axis=0, return_index=True, return_inverse=True
        )
        return numbers.reshape(-1).astype(np.int64), first

    # --- making

    @classmethod
    def of(
        cls,
        bitext: Bitext,
        links: Links,
        *,
        max_length: int = 5,
        least_count: int = 1,
        candidates: int = 100,
        progress: Progress | None = None,
    ) -> TranslationTable:
        """Phrase pairs of a linked text.

        Parameters
        ----------
        bitext, links, max_length, least_count, progress
            As for `extract_phrases`; phrases have at most seven words.
        candidates : int
            Keep so many target phrases for each source phrase, those that it is linked to most often.
        """
        gathered = _Gathered(bitext, max_length, candidates)
        for part in extract_phrases(bitext, links, max_length=max_length, least_count=least_count, progress=progress):
            gathered.add(part)
        return gathered.table()

    @classmethod
    def from_arrays(
        cls, source: Vocabulary, target: Vocabulary, arrays: Mapping[str, NDArray[Any]], n_scores: int
    ) -> TranslationTable:
        """From the arrays of a saved model, which are checked: kernels follow their numbers without asking."""
        from isogloss.tasks.translate._numba.table import fit_together

        sizes = {"source words": len(source), "target words": len(target), "scores": n_scores}
        found = check(arrays, LAYOUT, "the phrase table", sizes)
        made = cls(source, target, found)
        if not fit_together(made.pairs) or (
            len(found["kinds"]) and found["kinds"].max() >= np.int64(1) << (_SIDE * _SIDE + 6)
        ):
            raise ModelError("the phrase table: its phrases do not fit together. Copy the model again")
        if not len(found["orientations"]):
            raise ModelError("the phrase table: has no orientations. Copy the model again")
        return made

    # --- looking

    def spans(self, text: Text) -> tuple[Integers, Integers]:
        """All spans of sentences that there are pairs for, see `find_phrases`, and where those of each sentence begin.

        A word that is no phrase by itself has a span without pairs.
        """
        from isogloss.tasks.translate._numba.table import find_phrases

        ids = self.source.encode(text.vocabulary)[text.ids.flat] if len(text.vocabulary) else text.ids.flat
        offsets = text.ids.offsets - text.ids.offsets[0]
        found: tuple[Integers, Integers] = find_phrases(self.pairs, ids, offsets, self.longest)
        return found

    def target_of(self, pair: int) -> tuple[str, ...]:
        """The words of the target side of a pair."""
        starts = self.arrays["target_starts"]
        words = self.arrays["target_words"][starts[pair] : starts[pair + 1]]
        return tuple(self.target.types[word] for word in words.tolist())

    def links_of(self, pair: int) -> tuple[tuple[int, int], ...]:
        """The links that a pair most often has inside, counted from 0."""
        bits = int(self.arrays["kinds"][self.arrays["constellations"][pair]])
        return tuple((i, j) for i in range(_SIDE) for j in range(_SIDE) if bits >> (_SIDE * i + j) & 1)

    def orientation_of(self, pair: int) -> tuple[float, ...]:
        """Logarithms of `ORIENTATIONS` of a pair; of what is copied for -1."""
        row = self.arrays["turns"][pair] if pair >= 0 else 0
        return tuple(self.arrays["orientations"][row].tolist())

    def entries(self, source: list[str] | tuple[str, ...]) -> Iterator[Entry]:
        """The pairs of a source phrase."""
        found, _ = self.spans(Text.of([source]))
        for first, end, begin, until in found.tolist():
            if first == 0 and end == len(source):
                for pair in range(begin, until):
                    scores = tuple(self.arrays["scores"][pair].tolist())
                    links, turn = self.links_of(pair), self.orientation_of(pair)
                    yield Entry(tuple(source), self.target_of(pair), scores, links, turn)


class _Gathered:
    """Parts of a phrase table, put one behind the other."""

    def __init__(self, bitext: Bitext, max_length: int, candidates: int) -> None:
        self.bitext, self.candidates = bitext, candidates
        self.rank = [ranks(side.vocabulary) for side in (bitext.source, bitext.target)]
        self.columns: list[tuple[NDArray[Any], ...]] = []

    def add(self, part: PhraseTable) -> None:
        """One more part; its source phrases come after those of all parts before."""
        from isogloss.tasks.translate._numba.table import links_inside

        source_words = _words(self.rank[0][self.bitext.source.ids.values], part.source_at, part.source_length)
        first = _first_of_each(source_words, part.source_length)
        place = np.arange(len(part)) - np.repeat(np.flatnonzero(first), np.diff([*np.flatnonzero(first), len(part)]))
        kept = np.flatnonzero(place < self.candidates)
        first = first[kept]
        columns = (part.source_at[kept], part.target_at[kept], part.source_length[kept], part.target_length[kept])
        text = part._corpus.text
        kinds = links_inside(text, part._corpus.sentence_start(columns[1]), *columns)
        with np.errstate(divide="ignore"):
            scores = np.log(np.maximum(part.scores[kept], LEAST)).astype(np.float32)
        one = np.flatnonzero(first)
        source = _words(self.rank[0][self.bitext.source.ids.values], columns[0][one], columns[2][one])
        target = _words(self.rank[1][self.bitext.target.ids.values], columns[1], columns[3])
        sizes = np.diff([*one, len(kept)])
        turned = part.orientations[kept]
        self.columns.append((source, columns[2][one], sizes, target, columns[3], scores, kinds, turned))

    def table(self) -> TranslationTable:
        """All of it."""
        empty = (np.zeros(0, np.int32), np.zeros(0, np.uint8), np.zeros(0, np.int64))
        nothing = (
            *empty, *empty[:2], np.zeros((0, len(SCORES)), np.float32), np.zeros(0, np.int64),
            np.zeros((0, len(ORIENTATIONS)), np.int32),
        )  # fmt: skip
        every = [np.concatenate(each) for each in zip(nothing, *self.columns, strict=True)]
        source, source_lengths, sizes, target, target_lengths, scores, kinds, turned = every
        turns, orientations = _orientations(turned)
        known, numbers = np.unique(kinds, return_inverse=True)
        vocabularies = [Vocabulary(sorted(side.vocabulary.types)) for side in (self.bitext.source, self.bitext.target)]
        starts = _offsets(source_lengths)
        begins = np.bincount(source[starts[:-1]], minlength=len(vocabularies[0]))
        arrays = {
            "source_starts": starts, "source_words": source, "first_words": _offsets(begins),
            "pair_starts": _offsets(sizes), "target_starts": _offsets(target_lengths), "target_words": target,
            "scores": scores, "constellations": numbers.astype(np.int32), "kinds": known, "turns": turns,
            "orientations": orientations,
        }  # fmt: skip
        return TranslationTable(vocabularies[0], vocabularies[1], arrays)


def _orientations(counts: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Which orientation each pair has, and the logarithms of all that differ; the first is that of all pairs together.

    The counts of a pair are smoothed with `PRIOR` occurrences of what all pairs do.
    """
    known, rows = np.unique(
        np.concatenate([np.zeros((1, counts.shape[1]), np.int32), counts]), axis=0, return_inverse=True
    )
    general = counts.sum(axis=0, dtype=np.float64) + 0.5
    found = np.empty(known.shape)
    for side in (slice(0, 3), slice(3, 6)):
        prior = PRIOR * general[side] / general[side].sum()
        found[:, side] = (known[:, side] + prior) / (known[:, side].sum(axis=1, keepdims=True) + PRIOR)
    return rows.reshape(-1)[1:].astype(np.int32), np.log(found).astype(np.float32)


def _words(ids: NDArray[np.int32], at: Integers, length: NDArray[np.uint8]) -> NDArray[np.int32]:
    """The words of phrases, one after the other."""
    ends = np.cumsum(length, dtype=np.int64)
    places = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(at - (ends - length), length)
    return np.asarray(ids[places], np.int32)


def _first_of_each(words: NDArray[np.int32], length: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether each phrase differs from the one before it."""
    starts = _offsets(length)
    first = np.ones(len(length), bool)
    same = length[1:] == length[:-1]
    for k in range(int(length.max(initial=0))):
        inside = np.flatnonzero(same & (length[1:] > k)) + 1
        same[inside - 1] &= words[starts[inside] + k] == words[starts[inside - 1] + k]
    first[1:] = ~same
    return first


def _offsets(lengths: NDArray[Any]) -> Integers:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
