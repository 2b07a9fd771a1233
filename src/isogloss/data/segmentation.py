"""`Segmentation`: text whose words are cut into morphemes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.bitext import Text
from isogloss.data.graphemes import graphemes
from isogloss.data.ragged import Ragged
from isogloss.data.rows import Rows, counted, row_numbers
from isogloss.errors import ParameterError

__all__ = ["MARK", "Segmentation", "surface_pieces"]

MARK = "@@"
"""What each morpheme but the first of its word begins with in files."""
Morphemes = tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Segmentation(Rows[tuple[Morphemes, ...]]):
    """Words cut into morphemes: `segmentation[0]` has the morphemes of each word of a line.

    A line has one word or a sentence. Words that are cut alike share an analysis.

    Parameters
    ----------
    text : Text
        The words, a row for each line.
    analyses : sequence of tuple of str
        All ways in which some word is cut.
    chosen : int32[n_words]
        The analysis of each word of the text.
    labels : sequence of tuple of str, optional
        For each analysis, the type of each morpheme: prefix, stem or suffix.
    confidence : float64[n_words], optional
        How probable the analysis of each word is.

    Examples
    --------
    >>> words = Segmentation.of([("unhappy", ["un", "happy"]), ("happily", ["happy", "ly"])])
    >>> words, words[0], words.is_surface
    (Segmentation(2 lines, 2 words, 4 morphemes), (('un', 'happy'),), False)
    >>> words.surface()[1]
    (('happi', 'ly'),)
    """

    text: Text
    analyses: Sequence[Morphemes]
    chosen: NDArray[np.int32]
    labels: Sequence[Morphemes] | None = None
    confidence: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if len(self.chosen) != self.text.n_words:
            raise ParameterError(f"Segmentation: {self.text.n_words} words, but {len(self.chosen)} analyses of them")

    @classmethod
    def of(
        cls,
        lines: Iterable[tuple[str | Sequence[str], Sequence[str] | Sequence[Sequence[str]]]],
        name: str = "<memory>",
    ) -> Segmentation:
        """From words with their morphemes, or from sentences with those of each word.

        >>> Segmentation.of([("cats sleep", [["cat", "s"], ["sleep"]])])[0]
        (('cat', 's'), ('sleep',))
        """
        sentences: list[list[str]] = []
        found: list[Morphemes] = []
        for line, given in lines:
            words = line.split() if isinstance(line, str) else list(line)
            each = [given] if all(isinstance(one, str) for one in given) and len(words) == 1 else list(given)
            if len(each) != len(words) or any(isinstance(one, str) for one in each):
                raise ParameterError(f"Segmentation.of: {line!r:.60} should have morphemes for each of its words")
            sentences.append(words)
            found += [tuple(map(str, one)) for one in each]
        return cls.at(Text.of(sentences, name), found)

    @classmethod
    def at(
        cls, text: Text, morphemes: Sequence[Morphemes], confidence: NDArray[np.float64] | None = None
    ) -> Segmentation:  # fmt: skip
        """From the morphemes of each word of a text, one after the other."""
        numbers: dict[Morphemes, int] = {}
        chosen = np.array([numbers.setdefault(one, len(numbers)) for one in morphemes], np.int32)
        return cls(text, list(numbers), chosen, None, confidence)

    @classmethod
    def read(cls, path: str | PathLike[str], **options: Any) -> Segmentation:
        """Read a file; see `isogloss.data.formats.segmentations.read_segmentation`."""
        from isogloss.data.formats.segmentations import read_segmentation

        return read_segmentation(path, **options)

    @property
    def name(self) -> str:
        """The file, for messages."""
        return self.text.name

    def __len__(self) -> int:
        return len(self.text)

    @property
    def n_words(self) -> int:
        return self.text.n_words

    @property
    def n_morphemes(self) -> int:
        """The number of morphemes of all words together."""
        sizes = np.array([len(one) for one in self.analyses], np.int64)
        return int(sizes[self.chosen].sum())

    @property
    def is_surface(self) -> bool:
        """Whether the morphemes of every word are its pieces."""
        pairs = self._pairs()
        return all("".join(self.analyses[one]) == word for word, one in pairs)

    def _pairs(self) -> list[tuple[str, int]]:
        """Each word with an analysis, once."""
        both = np.unique(np.stack([self.text.ids.flat.astype(np.int64), self.chosen.astype(np.int64)], axis=1), axis=0)
        return [(self.text.vocabulary[word], one) for word, one in both.tolist()]

    def words(self) -> list[tuple[str, Morphemes]]:
        """Each word of the text with its morphemes, in order."""
        types = self.text.vocabulary.types
        pairs = zip(self.text.ids.flat.tolist(), self.chosen.tolist(), strict=True)
        return [(types[word], self.analyses[one]) for word, one in pairs]

    def surface(self) -> Segmentation:
        """The same with pieces of words in place of morphemes that are no pieces; see `surface_pieces`."""
        both = np.stack([self.text.ids.flat.astype(np.int64), self.chosen.astype(np.int64)], axis=1)
        pairs, inverse = np.unique(both, axis=0, return_inverse=True)
        words = [self.text.vocabulary[word] for word in pairs[:, 0].tolist()]
        pieces = surface_pieces(words, [self.analyses[one] for one in pairs[:, 1].tolist()])
        numbers: dict[Morphemes, int] = {}
        own = np.array([numbers.setdefault(one, len(numbers)) for one in pieces], np.int32)
        return Segmentation(self.text, list(numbers), own[inverse.ravel()], None, self.confidence)

    def to_bytes(self, *, labels: bool = False, confidence: bool = False) -> bytes:
        """As files have it: the line, a tab, and morphemes, of which each but the first of a word has `@@` before it.

        With `labels` the next column has the types of morphemes, with `confidence` the next the probability of words.
        """
        shown = [f" {MARK}".join(one) for one in self.analyses]
        kinds = [f" {MARK}".join(one) for one in (self.labels or ())] if labels else []
        ends, chosen = self.text.ids.offsets - self.text.ids.offsets[0], self.chosen.tolist()
        rows = []
        for s in range(len(self)):
            words, own = self.text.tokens(s), chosen[ends[s] : ends[s + 1]]
            row = [" ".join(words), " ".join(shown[one] for one in own)]
            if kinds:
                row.append(" ".join(kinds[one] for one in own))
            if confidence and self.confidence is not None:
                row.append(" ".join(f"{p:.4f}" for p in self.confidence[ends[s] : ends[s + 1]].tolist()))
            rows.append("\t".join(row) if own else "")
        return "".join(f"{row}\n" for row in rows).encode("utf-8", "surrogatepass")

    # --- rows

    def part(self, start: int, stop: int) -> Segmentation:
        """Lines start..stop-1."""
        ends = self.text.ids.offsets - self.text.ids.offsets[0]
        own = slice(int(ends[start]), int(ends[max(start, stop)]))
        sure = None if self.confidence is None else self.confidence[own]
        return replace(self, text=self.text.part(start, stop), chosen=self.chosen[own], confidence=sure)

    def take(self, numbers: ArrayLike) -> Segmentation:
        """Lines by their numbers, in that order, or by a mask."""
        rows = row_numbers(numbers, len(self), "Segmentation")
        ends = (self.text.ids.offsets - self.text.ids.offsets[0]).astype(np.int64)
        places = Ragged(np.arange(self.n_words), ends).take(rows).flat
        sure = None if self.confidence is None else self.confidence[places]
        return replace(self, text=self.text.take(rows), chosen=self.chosen[places], confidence=sure)

    def _row(self, number: int) -> tuple[Morphemes, ...]:
        ends = self.text.ids.offsets - self.text.ids.offsets[0]
        return tuple(self.analyses[one] for one in self.chosen[ends[number] : ends[number + 1]].tolist())

    def _said(self) -> list[str]:
        name = [] if self.name == "<memory>" else [repr(self.name)]
        sizes = [(len(self), "line"), (self.n_words, "word"), (self.n_morphemes, "morpheme")]
        return [*(counted(*size) for size in sizes), *name]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [
            [" ".join(self.text.tokens(s)), " ".join(f" {MARK}".join(one) for one in self[s])]
            for s in range(min(most, len(self)))
        ]
        return {"heads": ["line", "morphemes"], "rows": rows, "total": len(self)}


def surface_pieces(words: Sequence[str], morphemes: Sequence[Morphemes]) -> list[Morphemes]:
    """The piece of its word that belongs to each morpheme, at the least cost of edits.

    Morphemes that make up their word, one after the other, are its pieces. Others, such as happy and ly of happily, are
    aligned with it letter by letter: 1 for each letter that is replaced, left out or put in, none of them a matter of
    case; letters that are put in between two morphemes belong to the first. A word with fewer letters than morphemes
    has fewer pieces. So are morphemes that begin with a mark, such as a vowel sign, which is never cut off the letter
    before it.

    Examples
    --------
    >>> surface_pieces(["happily", "stopping", "men"], [("happy", "ly"), ("stop", "ing"), ("man", "s")])
    [('happi', 'ly'), ('stopp', 'ing'), ('me', 'n')]
    >>> surface_pieces(["cafe\\u0301s"], [("cafe", "\\u0301s")])[0] == ("cafe\\u0301", "s")
    True
    """
    found = list(morphemes)
    apart = [i for i, word in enumerate(words) if not _are_pieces(word, found[i])]
    if not apart:
        return found
    from isogloss.data._numba.surface import surface_cuts

    letters = [graphemes(words[i]) for i in apart]
    numbers: dict[str, int] = {}

    def coded(clusters: Iterable[str]) -> list[int]:
        return [numbers.setdefault(one.lower(), len(numbers)) for one in clusters]

    given = Ragged.of([coded(word) for word in letters])
    canonical = Ragged.of([coded(graphemes(one)) for i in apart for one in found[i]])
    first = np.concatenate([[0], np.cumsum([len(found[i]) for i in apart])]).astype(np.int64)
    ends = np.zeros(int(first[-1]), np.int64)
    surface_cuts(given.values, given.offsets, canonical.values, canonical.offsets, first, ends)
    for row, i in enumerate(apart):
        cuts = sorted({0, *ends[first[row] : first[row + 1]].tolist()})
        pieces = ["".join(letters[row][a:b]) for a, b in pairwise(cuts)]
        found[i] = tuple(pieces) or (words[i],)
    return found


def _are_pieces(word: str, morphemes: Morphemes) -> bool:
    """Whether morphemes make up their word, and none begins within one of its letters."""
    if "".join(morphemes) != word:
        return False
    if word.isascii() or len(morphemes) == 1:
        return True
    letters = graphemes(word)
    if len(letters) == len(word):
        return True
    return {*accumulate(map(len, morphemes))} <= {*accumulate(map(len, letters))}
