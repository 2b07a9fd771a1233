"""`Ragged`: many short rows in one array, without padding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["Ragged"]


@dataclass(frozen=True, eq=False)
class Ragged:
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
    >>> rows[0].tolist(), len(rows), rows.lengths.tolist()
    ([3, 1], 3, [2, 0, 1])
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

    @overload
    def __getitem__(self, row: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, row: slice) -> Ragged: ...
    def __getitem__(self, row: int | slice) -> NDArray[Any] | Ragged:
        if isinstance(row, slice):
            start, stop, step = row.indices(len(self))
            if step != 1:
                raise IndexError(f"Ragged: rows are taken in steps of 1, not {step}")
            return Ragged(self.values, self.offsets[start : max(stop, start) + 1])
        if row < 0:
            row += len(self)
        if not 0 <= row < len(self):
            raise IndexError(f"Ragged: no row {row} among {len(self)}")
        return self.values[self.offsets[row] : self.offsets[row + 1]]
