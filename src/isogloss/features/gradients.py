"""`Gradient`: what a few items add to the gradient of weights, as lists that kernels walk.

A minibatch touches a small part of the weights of a large model; a dense vector of all of them would cost more than the
minibatch itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks, using_threads

__all__ = ["Gradient"]

FEW = 1 << 14
"""Entries, up to which handing them to threads would take longer than adding them."""


@dataclass(frozen=True, eq=False)
class Gradient:
    """Of some items, one after the other; a weight may occur any number of times.

    Parameters
    ----------
    places, ends : int64[n_items]
        Entries ``places[k] … ends[k] - 1`` are those of the k-th item. There may be gaps between items.
    numbers : int32[room] or int64[room]
        Numbers of weights.
    values : float32[room] or float64[room]
        What each entry adds to the derivative by its weight.

    Examples
    --------
    >>> of_two = Gradient.of([([0, 2, 0], [1.0, 2.0, 3.0]), ([1], [5.0])])
    >>> of_two.merged()
    (array([0, 1, 2]), array([4., 5., 2.]))
    """

    places: NDArray[np.int64]
    ends: NDArray[np.int64]
    numbers: NDArray[Any]
    values: NDArray[Any]

    @classmethod
    def of(cls, items: list[tuple[Any, Any]]) -> Gradient:
        """Of lists of numbers and values, one pair for each item; for tests and small work."""
        offsets = np.cumsum([0, *(len(numbers) for numbers, _ in items)])
        numbers = np.concatenate([np.zeros(0, np.int64), *(np.asarray(n, np.int64) for n, _ in items)])
        values = np.concatenate([np.zeros(0), *(np.asarray(v, np.float64) for _, v in items)])
        return cls(offsets[:-1], offsets[1:], numbers, values)

    @classmethod
    def whole(cls, slope: NDArray[np.float64]) -> Gradient:
        """A dense gradient as that of one item."""
        used = np.flatnonzero(slope)
        return cls(np.zeros(1, np.int64), np.array([len(used)], np.int64), used, slope[used])

    @classmethod
    def joined(cls, several: Sequence[Gradient], shifts: Sequence[int] | None = None) -> Gradient:
        """One after the other, as of more items, without gaps; numbers of the i-th are moved by ``shifts[i]``."""
        from isogloss.features._numba.lists import pack

        room = sum(one.n_entries for one in several)
        kind = np.result_type(*(one.values.dtype for one in several))
        highest = np.result_type(*(one.numbers.dtype for one in several))
        numbers, values, to = np.empty(room, highest), np.empty(room, kind), 0
        bounds = [np.empty((len(one), 2), np.int64) for one in several]
        for one, own, shift in zip(several, bounds, shifts or [0] * len(several), strict=True):
            to = pack(one.places, one.ends, one.numbers, one.values, shift, to, own, numbers, values)
        places, ends = np.ascontiguousarray(np.concatenate(bounds).T)
        return cls(places, ends, numbers, values)

    def by_item(self, n: int) -> Gradient:
        """The same with one list for each of n items, where `joined` has put several gradients of them in a row.

        Examples
        --------
        >>> both = Gradient.joined([Gradient.of([([0], [1.0]), ([1], [2.0])]), Gradient.of([([5], [3.0]), ([], [])])])
        >>> of_two = both.by_item(2)
        >>> of_two.places.tolist(), of_two.ends.tolist(), of_two.numbers.tolist()
        ([0, 2], [2, 3], [0, 5, 1])
        """
        if len(self) == n:
            return self
        assert n and len(self) % n == 0, f"{len(self)} lists are not several of {n} items"
        order = np.arange(len(self)).reshape(-1, n).T.ravel()
        lengths = (self.ends - self.places)[order]
        starts = np.cumsum(lengths) - lengths
        at = np.arange(int(lengths.sum())) + np.repeat(self.places[order] - starts, lengths)
        ends = np.cumsum(lengths.reshape(n, -1).sum(axis=1))
        return Gradient(np.concatenate([[0], ends[:-1]]), ends, self.numbers[at], self.values[at])

    def __len__(self) -> int:
        """How many items there are."""
        return len(self.places)

    @property
    def n_entries(self) -> int:
        return int((self.ends - self.places).sum())

    def add_to(self, out: NDArray[np.float64], share: float = 1.0) -> None:
        """Add share · the sum over all items to a vector over all weights, the same on any number of threads."""
        from isogloss.features._numba.lists import add_entries

        given = (self.places, self.ends, self.numbers, self.values, float(share), out)
        with using_threads() as threads:
            run_blocks(add_entries, threads if self.n_entries > FEW else 1, *given)

    def merged(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The sum over all items: numbers of weights, each once and ascending, and values."""
        from isogloss.features._numba.lists import add_entries

        at = self.support()
        sums = np.zeros(len(at))
        numbers = np.searchsorted(at, self.numbers)  # what lies in gaps is not looked at
        add_entries(0, 1, self.places, self.ends, numbers, self.values, 1.0, sums)
        return at, sums

    def listed(self) -> NDArray[Any]:
        """Numbers of weights of all entries, without gaps."""
        lengths = self.ends - self.places
        starts = np.cumsum(lengths) - lengths
        return np.asarray(self.numbers[np.arange(int(lengths.sum())) + np.repeat(self.places - starts, lengths)])

    def support(self) -> NDArray[np.int64]:
        """Numbers of all weights that occur, each once and ascending."""
        return np.unique(self.listed()).astype(np.int64)
