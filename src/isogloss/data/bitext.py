"""`Bitext` and `Text`: sentences, their words as numbers, and where each came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.ragged import Ragged
from isogloss.data.reading import TextForm
from isogloss.data.rows import Rows, counted, row_numbers
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import BitextError

__all__ = ["Bitext", "Text"]

_UNNAMED = "<memory>"


@dataclass(frozen=True, eq=False, repr=False)
class Text(Rows[tuple[str, ...]]):
    """One side of a bitext: `text[0]` has the words of a sentence, and `text[:10]` is a text.

    Parameters
    ----------
    ids : Ragged of int32
        Word numbers, a row per sentence; an empty line is an empty row.
    vocabulary : Vocabulary
        The words as the user wrote them, case kept.
    name : str
        The file, for messages.
    spans : Ragged of int32[., 2], optional
        Where each token starts and ends in its line, in characters; only when a tokeniser made the tokens.
    lines : list of str, optional
        The untokenised lines that `spans` speaks of.
    form : TextForm, optional
        How the file was read; None for what was made in memory.
    """

    ids: Ragged
    vocabulary: Vocabulary
    name: str = _UNNAMED
    spans: Ragged | None = None
    lines: Sequence[str] | None = None
    form: TextForm | None = None

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "<memory>") -> Text:
        """Scan UTF-8 text: a sentence per line, tokens between white space."""
        from isogloss.data._numba.scan import scan

        ids, offsets, types = scan(data)
        return cls(Ragged(ids, offsets), Vocabulary(types), name)

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str] | str], name: str = "<memory>") -> Text:
        """From token lists, or strings to be split at white space."""
        numbers: dict[str, int] = {}
        rows = [
            [numbers.setdefault(word, len(numbers)) for word in (_words(s) if isinstance(s, str) else s)]
            for s in sentences
        ]
        return cls(Ragged.of(rows), Vocabulary(numbers), name)

    def __len__(self) -> int:
        return len(self.ids)

    def tokens(self, sentence: int) -> tuple[str, ...]:
        """The words of one sentence, as written."""
        types = self.vocabulary.types
        return tuple(types[number] for number in self.ids[sentence].tolist())

    def _row(self, number: int) -> tuple[str, ...]:
        return self.tokens(number)

    def part(self, start: int, stop: int) -> Text:
        """Sentences start..stop-1, sharing the arrays."""
        rows = slice(start, stop)
        return replace(
            self,
            ids=self.ids[rows],
            spans=None if self.spans is None else self.spans[rows],
            lines=None if self.lines is None else self.lines[rows],
        )

    def take(self, numbers: ArrayLike) -> Text:
        """Sentences by their numbers, in that order, or by a mask of booleans."""
        rows = row_numbers(numbers, len(self), "Text")
        return replace(
            self,
            ids=self.ids.take(rows),
            spans=None if self.spans is None else self.spans.take(rows),
            lines=None if self.lines is None else [self.lines[row] for row in rows.tolist()],
        )

    @property
    def n_words(self) -> int:
        return len(self.ids.flat)

    def _said(self) -> list[str]:
        name = [] if self.name == _UNNAMED else [repr(self.name)]
        return [counted(len(self), "sentence"), counted(self.n_words, "word"), *name]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[number, " ".join(words)] for number, words in enumerate(self[:most])]
        return {"heads": ["", "sentence"], "rows": rows, "total": len(self)}


def _words(line: str) -> list[str]:
    """Tokens between ASCII white space, as in files: a no-break space is part of its word."""
    return [word.decode() for word in line.encode().split()]


@dataclass(frozen=True, eq=False, repr=False)
class Bitext(Rows[tuple[tuple[str, ...], tuple[str, ...]]]):
    """Sentence pairs: what a task is fitted on and applied to.

    Pairs are numbered from 0: `bitext[0]` has the words of both sides, and `bitext[:10]` is a bitext. `line_of` gives
    the line of the file a pair came from, for messages. Empty lines stay, so that one line in is one line out.

    Parameters
    ----------
    source, target : Text
    first_line : int
        The line of the file that the first pair came from.
    line_numbers : int64[n_pairs], optional
        The line of each, where they do not follow each other.

    Examples
    --------
    >>> pairs = Bitext.of([("das Haus", "the house"), ("", "")])
    >>> len(pairs), pairs.source.tokens(0), pairs.target.ids[0].tolist()
    (2, ('das', 'Haus'), [0, 1])
    >>> pairs[::-1], pairs[-1], pairs[::-1].line_of(0)
    (Bitext(2 pairs, 2 and 2 words), ((), ()), 2)
    """

    source: Text
    target: Text
    first_line: int = 1
    line_numbers: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise BitextError(
                f"{self.source.name} has {len(self.source)} lines but {self.target.name} has {len(self.target)}: "
                "line k of one must translate line k of the other. Was a line lost or joined on one side?"
            )

    @classmethod
    def of(cls, pairs: Iterable[tuple[Sequence[str] | str, Sequence[str] | str]]) -> Bitext:
        """From pairs of strings (split at white space) or of token lists."""
        both = list(pairs)
        return cls(Text.of(source for source, _ in both), Text.of(target for _, target in both))

    @classmethod
    def read(cls, source: str | PathLike[str], target: str | PathLike[str] | None = None, **options: Any) -> Bitext:
        """Read a bitext from one file or two; see `isogloss.data.formats.read_bitext` for the options."""
        from isogloss.data.formats import read_bitext

        return read_bitext(source, target, **options)

    def __len__(self) -> int:
        return len(self.source)

    def _row(self, number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.source.tokens(number), self.target.tokens(number)

    def line_of(self, pair: int) -> int:
        """The line, from 1, of the file that pair came from."""
        return self.first_line + pair if self.line_numbers is None else int(self.line_numbers[pair])

    def part(self, start: int, stop: int) -> Bitext:
        """Pairs start..stop-1, sharing the arrays; `line_of` still speaks of the file."""
        return Bitext(
            self.source.part(start, stop),
            self.target.part(start, stop),
            self.first_line + start,
            None if self.line_numbers is None else self.line_numbers[start:stop],
        )

    def take(self, numbers: ArrayLike) -> Bitext:
        """Pairs by their numbers, in that order, or by a mask of booleans; `line_of` still speaks of the file."""
        rows = row_numbers(numbers, len(self), "Bitext")
        lines = self.first_line + rows if self.line_numbers is None else self.line_numbers[rows]
        return replace(self, source=self.source.take(rows), target=self.target.take(rows), line_numbers=lines)

    def swapped(self) -> Bitext:
        """Source and target exchanged."""
        return replace(self, source=self.target, target=self.source)

    def _said(self) -> list[str]:
        names = [repr(name) for name in dict.fromkeys((self.source.name, self.target.name)) if name != _UNNAMED]
        words = f"{self.source.n_words:,} and {counted(self.target.n_words, 'word')}"
        return [counted(len(self), "pair"), words, *([" and ".join(names)] if names else [])]

    def _first_rows(self, most: int) -> dict[str, Any]:
        shown = enumerate(self[:most])
        rows = [[number, " ".join(source), " ".join(target)] for number, (source, target) in shown]
        return {"heads": ["", "source", "target"], "rows": rows, "total": len(self)}

    @property
    def cells(self) -> NDArray[np.int64]:
        """Number of word pairs (source length times target length) in each sentence pair."""
        return self.source.ids.lengths * self.target.ids.lengths
