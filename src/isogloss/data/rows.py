"""What texts, treebanks, links and ragged arrays have in common: rows by number, and how they show themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from operator import index
from typing import Any, Generic, Self, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Rows", "Shown", "counted", "gathered", "row_number", "row_numbers", "run_sums"]

Row = TypeVar("Row", covariant=True)

_MOST_ROWS = 5
"""Rows that a notebook shows."""


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> counted(1, "pair"), counted(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def row_number(row: SupportsIndex, n_rows: int, name: str) -> int:
    """A row counted from 0; negative numbers count from the end, and what is not there is an `IndexError`."""
    number = index(row)
    if not -n_rows <= number < n_rows:
        raise IndexError(f"{name}: there is no row {number} among {n_rows}, counted from 0")
    return number % n_rows


def row_numbers(rows: ArrayLike, n_rows: int, name: str) -> NDArray[np.int64]:
    """Rows counted from 0, of numbers or of a mask of booleans."""
    chosen = np.asarray(rows)
    if chosen.dtype == bool and chosen.shape == (n_rows,):
        return np.flatnonzero(chosen)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise IndexError(
            f"{name}: rows are chosen by whole numbers or by {n_rows} booleans, not by {chosen.dtype} of shape "
            f"{chosen.shape}"
        )
    outside = chosen[(chosen < -n_rows) | (chosen >= n_rows)]
    if outside.size:
        raise IndexError(f"{name}: there is no row {outside[0]} among {n_rows}, counted from 0")
    return np.where(chosen < 0, chosen + n_rows, chosen).astype(np.int64)


def gathered(offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The offsets of some rows once they stand one after the other, and where their values are now.

    Examples
    --------
    >>> gathered(np.array([0, 2, 2, 5]), np.array([2, 0]))
    (array([0, 3, 5]), array([2, 3, 4, 0, 1]))
    """
    starts, lengths = offsets[:-1][rows], np.diff(offsets)[rows]
    fresh = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=fresh[1:])
    return fresh, np.arange(fresh[-1]) + np.repeat(starts - fresh[:-1], lengths)


def run_sums(values: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64[n]: sums of consecutive runs of values; runs may be empty."""
    out, some = np.zeros(len(offsets) - 1), np.diff(offsets) > 0
    if some.any():
        out[some] = np.add.reduceat(values, offsets[:-1][some])
    return out


class Shown:
    """Says in one line what it is, and shows its first rows as a table in a notebook."""

    @abstractmethod
    def _said(self) -> list[str]:
        """What the line says: sizes first, then names."""

    @abstractmethod
    def _first_rows(self, most: int) -> dict[str, Any]:
        """The first rows as plain data, for `isogloss.show.table`: "heads", "rows", and "total", how many there are."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._said())})"

    def _repr_html_(self) -> str:
        from isogloss import show

        return show.table({"caption": repr(self), **self._first_rows(_MOST_ROWS)})


class Rows(Shown, Generic[Row]):
    """Rows by number: one as a value, several, by a slice, as the same class. Neighbouring rows share the arrays."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def part(self, start: int, stop: int) -> Self:
        """Rows start..stop-1, without a copy."""

    @abstractmethod
    def take(self, numbers: ArrayLike) -> Self:
        """Rows by their numbers, in that order, or by a mask of booleans."""

    @abstractmethod
    def _row(self, number: int) -> Row:
        """A row by its number, from 0 to n - 1."""

    @overload
    def __getitem__(self, rows: SupportsIndex) -> Row: ...
    @overload
    def __getitem__(self, rows: slice) -> Self: ...
    def __getitem__(self, rows: SupportsIndex | slice) -> Row | Self:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            return self.part(start, max(start, stop)) if step == 1 else self.take(np.arange(start, stop, step))
        return self._row(row_number(rows, len(self), type(self).__name__))

    def __iter__(self) -> Iterator[Row]:
        return (self._row(number) for number in range(len(self)))
