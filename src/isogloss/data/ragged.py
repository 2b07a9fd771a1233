"""`Ragged`: many short rows in one array, without padding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from isogloss.data.rows import Rows, counted, gathered, row_numbers

__all__ = ["Ragged"]


@dataclass(frozen=True, eq=False, repr=False)
class Ragged(Rows[NDArray[Any]]):
    """Rows of unequal length: row *i* is ``values[offsets[i]:offsets[i + 1]]``.

    Parameters
    ----------
    values : array[n_values]
        All rows, one after the other.
    offsets : int64[n_rows + 1]
        Where each row starts, and the end of the last. ``offsets[0]`` need not be 0: a slice of rows shares ``values``.

    Examples
    --------
    >>> rows = Ragged.of([[3, 1], [], [2]])
    >>> rows[0].tolist(), len(rows), rows.lengths.tolist(), rows[::-1]
    ([3, 1], 3, [2, 0, 1], Ragged(3 rows, 3 values of int32))
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]], dtype: DTypeLike = np.int32) -> Ragged:
        """Pack a sequence of sequences."""
        rows = list(rows)
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        values = np.empty(offsets[-1], dtype)
        for row, start, stop in zip(rows, offsets[:-1], offsets[1:], strict=True):
            values[start:stop] = row
        return cls(values, offsets)

    @classmethod
    def concatenate(cls, parts: Sequence[Ragged]) -> Ragged:
        """The rows of all parts, in order."""
        lengths = np.concatenate([part.lengths for part in parts])
        values = np.concatenate([part.flat for part in parts])
        return cls(values, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @property
    def flat(self) -> NDArray[Any]:
        """The values of these rows alone, one row after the other; `values` may hold those of other rows as well."""
        return self.values[self.offsets[0] : self.offsets[-1]]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield self.values[start:stop]

    def part(self, start: int, stop: int) -> Ragged:
        """Rows start..stop-1, sharing `values`."""
        return Ragged(self.values, self.offsets[start : max(start, stop) + 1])

    def take(self, numbers: ArrayLike) -> Ragged:
        """Rows by their numbers, in that order, or by a mask of booleans."""
        offsets, places = gathered(self.offsets, row_numbers(numbers, len(self), "Ragged"))
        return Ragged(self.values[places], offsets)

    def _row(self, number: int) -> NDArray[Any]:
        row: NDArray[Any] = self.values[self.offsets[number] : self.offsets[number + 1]]
        return row

    def _said(self) -> list[str]:
        return [counted(len(self), "row"), f"{counted(len(self.flat), 'value')} of {self.values.dtype}"]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[number, " ".join(map(str, row.tolist()))] for number, row in enumerate(self[:most])]
        return {"heads": ["row", "values"], "rows": rows, "total": len(self)}
