"""`Summaries`: what systems made of documents, with references, judgements of people, and what judges would extract."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import Rows, counted, row_numbers
from isogloss.errors import DocumentsError

__all__ = ["Judged", "Summaries", "Summary"]


@dataclass(frozen=True)
class Summary:
    """What one system made of one document.

    Parameters
    ----------
    document, system : str
    text : str
        A sentence a line, where sentences matter.
    references : tuple of str
        Summaries by people.
    human : float
        What people think of it, higher is better; not a number where that is not known.
    extract : tuple of int, optional
        The sentences of the document that it took, from 0 on.
    """

    document: str
    system: str
    text: str = ""
    references: tuple[str, ...] = ()
    human: float = math.nan
    extract: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Judged:
    """A document whose sentences judges have weighed.

    Parameters
    ----------
    document : str
    sentences : tuple of str
    utilities : mapping of str to float64[n_sentences]
        What each sentence is worth to each judge, 0 or more.
    subsumed : tuple of (int, int)
        All that the first sentence says, the second says as well.
    """

    document: str
    sentences: tuple[str, ...]
    utilities: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    subsumed: tuple[tuple[int, int], ...] = ()

    @property
    def matrix(self) -> NDArray[np.float64]:
        """float64[n_judges, n_sentences]."""
        return np.array(list(self.utilities.values()), np.float64).reshape(-1, len(self.sentences))


@dataclass(frozen=True, eq=False, repr=False)
class Summaries(Rows[Summary]):
    """Summaries of some documents by some systems, at most one by each of each.

    Examples
    --------
    >>> Summaries((Summary("d1", "lead", "A cat ."), Summary("d1", "other", "A dog .")))
    Summaries(2 summaries, 1 document, 2 systems)
    """

    summaries: tuple[Summary, ...]
    name: str = "<memory>"

    def __post_init__(self) -> None:
        seen: set[tuple[str, str]] = set()
        for each in self.summaries:
            key = (each.document, each.system)
            if key in seen:
                raise DocumentsError(f"{self.name}: two summaries of document {key[0]!r} by system {key[1]!r}")
            seen.add(key)

    @classmethod
    def read(cls, path: str | PathLike[str], **options: Any) -> Summaries:
        """Read JSON lines; see `isogloss.data.formats.summaries.read_summaries`."""
        from isogloss.data.formats.summaries import read_summaries

        return read_summaries(path, **options)

    @property
    def documents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.document for each in self.summaries))

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.system for each in self.summaries))

    def table(self, values: ArrayLike) -> NDArray[np.float64]:
        """float64[n_documents, n_systems]: a number for each summary in its place; NaN where there is none."""
        documents, systems = ({name: k for k, name in enumerate(names)} for names in (self.documents, self.systems))
        made = np.full((len(documents), len(systems)), np.nan)
        for each, value in zip(self.summaries, np.asarray(values, np.float64).tolist(), strict=True):
            made[documents[each.document], systems[each.system]] = value
        return made

    def __len__(self) -> int:
        return len(self.summaries)

    def part(self, start: int, stop: int) -> Summaries:
        """Summaries start..stop-1."""
        return replace(self, summaries=self.summaries[start:stop])

    def take(self, numbers: ArrayLike) -> Summaries:
        """Summaries by their numbers, in that order, or by a mask of booleans."""
        rows = row_numbers(numbers, len(self), "Summaries").tolist()
        return replace(self, summaries=tuple(self.summaries[row] for row in rows))

    def _row(self, number: int) -> Summary:
        return self.summaries[number]

    def _said(self) -> list[str]:
        name = [] if self.name == "<memory>" else [repr(self.name)]
        many = f"{len(self):,} summar{'y' if len(self) == 1 else 'ies'}"
        return [many, counted(len(self.documents), "document"), counted(len(self.systems), "system"), *name]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[each.document, each.system, each.text[:80], each.human] for each in self.summaries[:most]]
        return {"heads": ["document", "system", "text", "human"], "rows": rows, "total": len(self)}
