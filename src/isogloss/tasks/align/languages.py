"""Whether a text is of the languages of an aligner, source and target in this order: by the words that it knows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.reading import Reading, check_reading, word_counts

if TYPE_CHECKING:
    from isogloss.data import Bitext, Vocabulary

__all__ = ["Homes", "KnownWords", "homes_of", "text_for", "words_of"]

ENOUGH = 20
"""Words with letters, on each side, before anything is said of a text."""
TIMES = 3.0
"""A word is at home on the side where it is so many times as frequent as on the other."""
MARGIN = 0.25
"""A text looks swapped if, on both sides, so many more words are at home on the other side of the model."""


class KnownWords(NamedTuple):
    """The words of one side that a model knows, and how often it met them: int64[n_words]."""

    words: Vocabulary
    counts: NDArray[np.int64]

    def frequencies(self, words: list[str]) -> NDArray[np.float64]:
        """How frequent each word was, from 0 to 1."""
        found: NDArray[np.float64] = np.append(self.counts, 0)[self.words.encode(words)] / max(1, self.counts.sum())
        return found


@dataclass(frozen=True)
class Homes:
    """Words of a text, by the side of the model on which they are at home.

    Parameters
    ----------
    total : int64[2]
        Words with letters of source and target.
    here, there : int64[2]
        How many of them are at home on the same side of the model, and on its other side. What is about as frequent on
        both (names, numbers, cognates) is at home on neither.
    """

    total: NDArray[np.int64]
    here: NDArray[np.int64]
    there: NDArray[np.int64]

    @property
    def enough(self) -> bool:
        """Whether there are words enough to judge by."""
        return bool(self.total.min() >= ENOUGH)

    @property
    def swapped(self) -> str | None:
        """The finding if source and target look exchanged, else None.

        Both sides must speak for it, so that lines which were left in the other language do not.
        """
        if not self.enough or ((self.there - self.here) / self.total).min() < MARGIN:
            return None
        here, there = (" / ".join(f"{share:.0%}" for share in part / self.total) for part in (self.here, self.there))
        return (
            f"source and target look swapped: {here} of their words are words of this side of the model, and {there} "
            "of the other side"
        )


def words_of(aligner: Any, bitext: Bitext) -> tuple[dict[str, int], dict[str, int]]:
    """How often words with letters occur in the first pairs of a text, as the aligner sees them."""
    lowercase = aligner.options_.get("lowercase", True)
    return word_counts(bitext.source, lowercase=lowercase), word_counts(bitext.target, lowercase=lowercase)


def homes_of(aligner: Any, source: Mapping[str, int], target: Mapping[str, int]) -> Homes:
    """Where the words of a text are at home in an aligner, given how often they occur.

    Examples
    --------
    >>> from isogloss.data import Bitext
    >>> from isogloss.tasks.align import HMMAligner
    >>> text = Bitext.of([("das Haus in Berlin", "the house in Berlin")] * 20)
    >>> aligner = HMMAligner().fit(text)
    >>> homes_of(aligner, *words_of(aligner, text.swapped())).swapped
    'source and target look swapped: 0% / 0% of their words are words of this side of the model, and 50% / 50% of the \
other side'
    """
    first, second = aligner.known_words_
    sides = _homes(source, first, second), _homes(target, second, first)
    return Homes(*(np.array(pair, np.int64) for pair in zip(*sides, strict=True)))


def _homes(counts: Mapping[str, int], own: KnownWords, other: KnownWords) -> tuple[int, int, int]:
    """Words of one side: all, those at home there, and those at home on the other side."""
    words, occurrences = list(counts), np.array(list(counts.values()), np.int64)
    here, there = own.frequencies(words), other.frequencies(words)
    return (
        int(occurrences.sum()),
        int(occurrences[(here > 0) & (here >= TIMES * there)].sum()),
        int(occurrences[(there > 0) & (there >= TIMES * here)].sum()),
    )


def text_for(aligner: Any, given: Any) -> Bitext:
    """What an aligner is applied to, made of anything `as_bitext` takes; files are read as those of its training were.

    Warns of a text that was read in another way, or whose sides look swapped.
    """
    from isogloss.data.formats import IsoglossWarning, as_bitext
    from isogloss.data.formats.convert import is_files

    remembered: Reading | None = aligner.reading_
    bitext = as_bitext(given, **(remembered.options if remembered is not None and is_files(given) else {}))
    check_reading(remembered, bitext.source, bitext.target)
    found = homes_of(aligner, *words_of(aligner, bitext)).swapped
    if found is not None:
        names = f"{bitext.source.name}, {bitext.target.name}"
        warnings.warn(f"{names}: {found}. bitext.swapped() exchanges them", IsoglossWarning, stacklevel=4)
    return bitext
