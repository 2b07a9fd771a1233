"""`Vocabulary`: word types and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.rows import Shown, counted

__all__ = ["Vocabulary"]


class Vocabulary(Shown, Sequence[str]):
    """Word types, numbered from 0 in order of first appearance.

    Examples
    --------
    >>> words = Vocabulary(["the", "The", "house"])
    >>> words[2], words.index_of("house"), words.index_of("mouse")
    ('house', 2, -1)
    >>> lower, mapping = words.mapped(str.lower)
    >>> list(lower), mapping.tolist()
    (['the', 'house'], [0, 0, 1])
    >>> words
    Vocabulary(3 words)
    """

    def __init__(self, types: Iterable[str]):
        self.types = list(types)

    def __len__(self) -> int:
        return len(self.types)

    def __getitem__(self, number):  # type: ignore[no-untyped-def]
        return self.types[number]

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)

    def __contains__(self, word: object) -> bool:
        return word in self._numbers

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.types)}

    def index_of(self, word: str) -> int:
        """The number of a word, or -1."""
        return self._numbers.get(word, -1)

    def encode(self, words: Iterable[str]) -> NDArray[np.int32]:
        """The numbers of words, -1 for those that are not here."""
        numbers = self._numbers
        return np.array([numbers.get(word, -1) for word in words], np.int32)

    def mapped(self, form: Callable[[str], str]) -> tuple[Vocabulary, NDArray[np.int32]]:
        """The vocabulary of forms (`str.lower`, a stem, ...) and, for every type here, the number of its form."""
        numbers: dict[str, int] = {}
        mapping = np.array([numbers.setdefault(form(word), len(numbers)) for word in self.types], np.int32)
        return Vocabulary(numbers), mapping

    def _said(self) -> list[str]:
        return [counted(len(self), "word")]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[number, word] for number, word in enumerate(self.types[:most])]
        return {"heads": ["number", "word"], "rows": rows, "total": len(self)}
