"""Cells of charts: which symbols may be made over a span, and which may be seen from above."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.structures.base import Array

__all__ = ["CellPosteriors", "Cells", "Columns", "Layer"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Layer(NamedTuple):
    """Symbols over spans, as lists.

    bounds : int64[n_spans + 1]
        The symbols of span s are ``symbols[bounds[s]:bounds[s + 1]]``, ascending.
    symbols : int64[n_cells]
    """

    bounds: Ints
    symbols: Ints

    @classmethod
    def of(cls, marked: Bools) -> Layer:
        """From bool[n_spans, S].

        Examples
        --------
        >>> Layer.of(np.array([[True, False, True], [False, False, False]]))
        Layer(bounds=array([0, 2, 2]), symbols=array([0, 2]))
        """
        counts = np.count_nonzero(marked, axis=1)
        return cls(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.nonzero(marked)[1].astype(np.int64))

    @property
    def spans(self) -> Ints:
        """int64[n_cells]: the span of each cell."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    def kept(self, chosen: Bools) -> Layer:
        """The cells that are chosen, bool[n_cells]."""
        before = np.concatenate([[0], np.cumsum(chosen)]).astype(np.int64)
        return Layer(before[self.bounds], self.symbols[chosen])

    def placed(self, numbers: Array, n_symbols: int) -> Array:
        """float64[n_spans, S]: numbers of cells at their places, 0 elsewhere."""
        out = np.zeros((len(self.bounds) - 1, n_symbols))
        out[self.spans, self.symbols] = numbers
        return out

    def holds(self, n_symbols: int) -> bool:
        """Whether a kernel may index with it."""
        rising = len(self.bounds) > 0 and self.bounds[0] == 0 and bool((np.diff(self.bounds) >= 0).all())
        inside = not len(self.symbols) or 0 <= self.symbols.min() <= self.symbols.max() < n_symbols
        return rising and inside and int(self.bounds[-1]) == len(self.symbols)


class Cells(NamedTuple):
    """The cells of many sentences, one sentence after the other: symbols made, and symbols seen from above."""

    made: Layer
    seen: Layer

    @classmethod
    def of(cls, made: Bools, seen: Bools) -> Cells:
        """From bool[n_spans, S] twice."""
        return cls(Layer.of(made), Layer.of(seen))


class CellPosteriors(NamedTuple):
    """Posteriors of cells, summed over states.

    values : float64[n_sentences]
        log Z; −∞ where the cells make no tree, and posteriors are 0.
    made, seen : float64[n_cells]
        In the order of the layers of `Cells`.
    """

    values: Array
    made: Array
    seen: Array


class Columns(NamedTuple):
    """A table to which posteriors are added.

    of_symbol : int64[S]
        The column for a symbol that is made and seen over a span, −1 for none.
    of_unary : int64[U]
        The column for a unary rule over a span.
    totals : float64[n_spans, n_columns]
    share : float
        What posteriors are multiplied with.
    """

    of_symbol: Ints
    of_unary: Ints
    totals: Array
    share: float = 1.0
