"""`Bitext` and `Text`: sentences, their words as numbers, and where each came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.ragged import Ragged
from isogloss.data.reading import TextForm
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import BitextError

__all__ = ["Bitext", "Text"]


@dataclass(frozen=True, eq=False)
class Text:
    """One side of a bitext.

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
    name: str = "<memory>"
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

    def part(self, rows: slice) -> Text:
        """A contiguous range of sentences, sharing the arrays."""
        return replace(
            self,
            ids=self.ids[rows],
            spans=None if self.spans is None else self.spans[rows],
            lines=None if self.lines is None else self.lines[rows],
        )


def _words(line: str) -> list[str]:
    """Tokens between ASCII white space, as in files: a no-break space is part of its word."""
    return [word.decode() for word in line.encode().split()]


@dataclass(frozen=True, eq=False)
class Bitext:
    """Sentence pairs: what a task is fitted on and applied to.

    Pairs are numbered from 0; `line_of` gives the line of the file a pair came from, for messages. Empty lines stay, so
    that one line in is one line out.

    Examples
    --------
    >>> pairs = Bitext.of([("das Haus", "the house"), ("", "")])
    >>> len(pairs), pairs.source.tokens(0), pairs.target.ids[0].tolist()
    (2, ('das', 'Haus'), [0, 1])
    """

    source: Text
    target: Text
    first_line: int = 1

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

    def __getitem__(self, pair: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.source.tokens(pair), self.target.tokens(pair)

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        return (self[pair] for pair in range(len(self)))

    def line_of(self, pair: int) -> int:
        """The line, from 1, of the file that pair came from."""
        return self.first_line + pair

    def part(self, start: int, stop: int) -> Bitext:
        """Pairs start..stop-1, sharing the arrays; `line_of` still speaks of the file."""
        rows = slice(start, stop)
        return Bitext(self.source.part(rows), self.target.part(rows), self.first_line + start)

    def swapped(self) -> Bitext:
        """Source and target exchanged."""
        return Bitext(self.target, self.source, self.first_line)

    @property
    def cells(self) -> NDArray[np.int64]:
        """Number of word pairs (source length times target length) in each sentence pair."""
        return self.source.ids.lengths * self.target.ids.lengths
