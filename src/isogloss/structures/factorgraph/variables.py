"""Handles: `Variables` are what factors are put on, `Factors` are what their scores and beliefs are found by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError

__all__ = ["Factors", "Variables"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Variables:
    """An array of variables of a factor graph; indexing it as an array gives fewer of them, or the same one often.

    Attributes
    ----------
    numbers : int64[...]
        Where each variable stands in an assignment.
    k : int
        How many values each has, from 0; 0 for Booleans, whose values are 0 and 1.

    Examples
    --------
    >>> from isogloss.structures import FactorGraph
    >>> links = FactorGraph().boolean((3, 3), name="links")
    >>> links, links[1:, 0].shape, links.T.shape
    (links: Boolean[3, 3], (2,), (3, 3))
    """

    numbers: Ints
    k: int
    name: str = ""
    graph: object = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape

    @property
    def size(self) -> int:
        return int(self.numbers.size)

    @property
    def n_values(self) -> int:
        """2 for Booleans."""
        return self.k or 2

    @property
    def T(self) -> Variables:
        """The same variables, axes reversed."""
        return self._like(self.numbers.T)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Variables:
        return self._like(np.asarray(self.numbers[index], np.int64))

    def __repr__(self) -> str:
        kind = f"{self.k} values" if self.k else "Boolean"
        return f"{self.name or 'variables'}: {kind}{list(self.shape)}"

    def reshape(self, *shape: int) -> Variables:
        """The same variables in another shape."""
        return self._like(self.numbers.reshape(*shape))

    def of(self, assignment: ArrayLike) -> Ints:
        """int64[shape]: the values of these variables in an assignment to all."""
        return np.asarray(np.asarray(assignment, np.int64)[self.numbers])

    def _like(self, numbers: Ints) -> Variables:
        return Variables(np.ascontiguousarray(numbers), self.k, self.name, self.graph)


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors that were added together: `of` finds their part of the scores or marginals of the whole graph."""

    number: int
    kind: str
    count: int
    start: int
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"{self.count} {self.kind} factors, scores {list(self.shape)}"

    def of(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Their own numbers, shaped as they were given, among those of all soft factors."""
        stop = self.start + int(np.prod(self.shape))
        if vector.ndim != 1 or len(vector) < stop:
            raise ParameterError(f"{self!r}: a vector of all scores or marginals is needed, not {list(vector.shape)}")
        return vector[self.start : stop].reshape(self.shape)
