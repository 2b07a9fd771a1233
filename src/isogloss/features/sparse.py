"""`Sparse`: which features each part of a structure has, for millions of parts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ParameterError

__all__ = ["Sparse"]

Array = NDArray[np.float64]

ROWS_PER_BLOCK = 1 << 13
ENTRIES_PER_BLOCK = 1 << 17
NO_VALUES = np.zeros(0)


class Sparse:
    """A matrix F[n_rows, n_features]: rows are parts (or positions), columns are features.

    Most features are indicators and cost four bytes an entry. Real-valued features that every part has stand beside
    them as dense columns; they are the last features.

    Parameters
    ----------
    indptr : int64[n_rows + 1]
        The indicators of row *r* are ``indices[indptr[r]:indptr[r + 1]]``.
    indices : int32[n_entries]
    n_indicators : int
        Columns that `indices` may name.
    values : float64[n_entries], optional
        What the entries are if not 1.
    dense : float64[n_rows, d], optional
        Real-valued features, columns n_indicators … n_indicators + d - 1.

    Notes
    -----
    Both products run on the threads of `using_threads`. Sums are taken in the order of rows, however many threads there
    are, so that the result is the same to the bit.

    Examples
    --------
    >>> F = Sparse.of([[0, 2], [], [2]], 3, dense=[[0.5], [0.0], [1.0]])
    >>> F.scores([1.0, 2.0, 4.0, 10.0]).tolist(), F.totals([1.0, 1.0, -1.0]).tolist()
    ([10.0, 0.0, 14.0], [1.0, 0.0, 0.0, -0.5])
    """

    def __init__(
        self,
        indptr: ArrayLike,
        indices: ArrayLike,
        n_indicators: int,
        values: ArrayLike | None = None,
        dense: ArrayLike | None = None,
    ) -> None:
        self.indptr = np.ascontiguousarray(indptr, np.int64)
        self.indices = np.ascontiguousarray(indices, np.int32)
        self.n_indicators = n_indicators
        self.values = np.ascontiguousarray(NO_VALUES if values is None else values, np.float64)
        ends = self.indptr  # kernels trust it
        if (
            ends.ndim != 1
            or not len(ends)
            or ends[0] != 0
            or ends[-1] != len(self.indices)
            or (np.diff(ends) < 0).any()
        ):
            raise ParameterError(f"Sparse: indptr should begin with 0, never fall, and end with {len(self.indices)}")
        self.dense = np.ascontiguousarray(np.zeros((self.n_rows, 0)) if dense is None else dense, np.float64)
        if self.dense.ndim != 2 or len(self.dense) != self.n_rows:
            raise ParameterError(f"Sparse: dense should be [{self.n_rows}, any], not {list(self.dense.shape)}")
        if len(self.values) not in (0, len(self.indices)):
            raise ParameterError(f"Sparse: {len(self.values)} values for {len(self.indices)} entries")
        if len(self.indices) and not 0 <= int(self.indices.min()) <= int(self.indices.max()) < n_indicators:
            raise ParameterError(f"Sparse: features should be numbers from 0 to {n_indicators - 1}")

    @classmethod
    def of(cls, rows: Iterable[Iterable[int]], n_indicators: int, dense: ArrayLike | None = None) -> Sparse:
        """From lists of features; for tests and small work."""
        lists = [list(row) for row in rows]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in lists])]).astype(np.int64)
        flat = np.array([feature for row in lists for feature in row], np.int32)
        return cls(indptr, flat, n_indicators, dense=dense)

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_features(self) -> int:
        """Columns in all: the length of the weights."""
        return self.n_indicators + int(self.dense.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes held, without the copy by columns that threads work on (four more for each entry)."""
        return sum(array.nbytes for array in (self.indptr, self.indices, self.values, self.dense))

    def __repr__(self) -> str:
        return f"Sparse({self.n_rows} rows, {self.n_features} features, {len(self.indices)} indicators set)"

    def rows(self, start: int, stop: int) -> Sparse:
        """The rows start … stop - 1; shares the memory."""
        first, last = self.indptr[start], self.indptr[stop]
        values = self.values[first:last] if len(self.values) else None
        indptr = self.indptr[start : stop + 1] - first
        return Sparse(indptr, self.indices[first:last], self.n_indicators, values, self.dense[start:stop])

    # --- products

    def scores(self, weights: ArrayLike, start: int = 0, stop: int | None = None) -> Array:
        """F w, float64[n_rows]: the score of each part; of the rows start … stop - 1 only, if given."""
        from isogloss.features._numba.sparse import multiply

        vector = self._checked(weights, self.n_features, "weights")
        last = self.n_rows if stop is None else stop
        out = np.empty(last - start)
        args = (self.indptr[start : last + 1], self.indices, self.values, self.dense[start:last], vector, out)
        blocks = len(out) // ROWS_PER_BLOCK
        if blocks <= 1:  # asking for threads takes longer
            multiply(0, 1, *args)
            return out
        with using_threads():
            run_blocks(multiply, blocks, *args)
        return out

    def totals(self, parts: ArrayLike) -> Array:
        """Fᵀ x, float64[n_features]: how much of each feature the parts have together, part *r* counted x[r] times."""
        out = np.zeros(self.n_features)
        self.add_totals(parts, out)
        return out

    def add_totals(self, parts: ArrayLike, out: Array, start: int = 0, stop: int | None = None) -> None:
        """Add Fᵀ x over the rows start … stop - 1, to which `parts` belongs, to `out`, in place."""
        from isogloss.features._numba.sparse import add_transposed, gather_columns, scatter_rows

        last = self.n_rows if stop is None else stop
        x = self._checked(parts, last - start, "parts")
        if out.shape != (self.n_features,):
            raise ParameterError(f"{self!r}: totals are {self.n_features} numbers, not {list(out.shape)}")
        by_rows = (start, last, start, self.indptr, self.indices, self.values, self.dense, x, out)
        if last - start < self.n_rows or len(self.indices) < ENTRIES_PER_BLOCK:
            scatter_rows(*by_rows)
            return
        with using_threads() as threads:
            if threads == 1:
                scatter_rows(*by_rows)
                return
            starts, rows, values, cuts = self.by_column
            run_blocks(gather_columns, len(cuts) - 1, cuts, starts, rows, values, x, out)
            width = self.dense.shape[1]
            if width:
                run_blocks(add_transposed, width, self.dense, x, out[self.n_indicators :])

    @cached_property
    def by_column(self) -> tuple[NDArray[np.int64], NDArray[np.int32], Array, NDArray[np.int64]]:
        """Column starts, rows of each, values of each, and where blocks of columns of about equal work begin."""
        from isogloss.features._numba.sparse import transpose

        starts, rows = np.empty(self.n_indicators + 1, np.int64), np.empty(len(self.indices), np.int32)
        values = np.empty(len(self.values))
        transpose(self.indptr, self.indices, self.values, starts, rows, values)
        blocks = max(1, len(rows) // ENTRIES_PER_BLOCK)
        cuts = np.searchsorted(starts, np.arange(1, blocks) * (len(rows) // blocks))
        return starts, rows, values, np.concatenate([[0], cuts, [self.n_indicators]]).astype(np.int64)

    def support(self, ranges: Iterable[tuple[int, int]], parts: Array | None = None) -> NDArray[np.int64]:
        """The features that fire in the given ranges of rows, each once, dense ones always.

        With `parts` (one range only) rows whose entry is 0 are passed over.
        """
        from isogloss.features._numba.sparse import touched

        bounds = list(ranges)
        x = NO_VALUES if parts is None else np.ascontiguousarray(parts, np.float64)
        width = self.dense.shape[1]
        room = min(self.n_indicators, sum(int(self.indptr[b] - self.indptr[a]) for a, b in bounds))
        out, filled = np.empty(room + width, np.int64), 0
        for first, last in bounds:
            filled = touched(first, last, first, self.indptr, self.indices, x, self._seen, out, filled)
        self._seen[out[:filled]] = False
        out[filled : filled + width] = self.n_indicators + np.arange(width)
        return out[: filled + width]

    @cached_property
    def _seen(self) -> NDArray[np.bool_]:
        return np.zeros(self.n_indicators, np.bool_)

    def _checked(self, vector: ArrayLike, size: int, what: str) -> Array:
        array = np.ascontiguousarray(vector, np.float64)
        if array.shape != (size,):
            raise ParameterError(f"{self!r}: {what} should be {size} numbers, not {list(array.shape)}")
        return array
