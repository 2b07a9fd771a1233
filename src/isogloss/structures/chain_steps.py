"""What chains with shared transitions share: the scores of steps, their exponentials, and counts of steps."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, checked_scores, kept

__all__ = ["SharedSteps", "StepCounts", "StepWeights", "aligned_zeros"]


class SharedSteps:
    """Scores of steps that all sentences share, checked once."""

    def __init__(
        self,
        transitions: ArrayLike,
        start: ArrayLike | None,
        end: ArrayLike | None,
        pairs: ArrayLike | None,
        place: str,
    ) -> None:
        array = np.asarray(transitions, np.float64)
        if array.ndim not in (2, 3) or len(set(array.shape)) != 1:
            raise ParameterError(
                f"{place}: transitions should be [k, k], or [k, k, k] for order 2, not {list(array.shape)}"
            )
        self.transitions = checked_scores(array, f"{place}: transitions", array.shape)
        k = self.k = int(array.shape[0])
        self.order = array.ndim - 1
        self.start = checked_scores(np.zeros(k) if start is None else start, f"{place}: start", (k,))
        self.end = checked_scores(np.zeros(k) if end is None else end, f"{place}: end", (k,))
        if pairs is not None and self.order == 1:
            raise ParameterError(f"{place}: pairs are for order 2; add them to the transitions")
        self.pairs = checked_scores(np.zeros((k, k)) if pairs is None else pairs, f"{place}: pairs", (k, k))

    @property
    def contexts(self) -> int:
        return self.k if self.order == 2 else 1

    @cached_property
    def tables(self) -> Array:
        """float64[2, contexts * k * k]: scores of the step into position 1, and of those into all later ones."""
        if self.order == 1:
            return np.stack([self.transitions.ravel()] * 2)
        first = np.full(self.transitions.shape, -np.inf)
        first[:1] = self.pairs
        return np.stack([first.ravel(), (self.transitions + self.pairs).ravel()])

    @cached_property
    def weights(self) -> StepWeights:
        """exp of the tables, for the kernel that works in probabilities."""
        from isogloss.structures._numba.chain_scaled import LOWEST

        k, width = self.k, -(-self.k // 8) * 8
        shifts = np.array([table.max(initial=-np.inf) for table in self.tables])
        shifts[shifts == -np.inf] = 0.0
        shifted = (self.tables - shifts[:, None]).reshape(2, k, self.contexts, k).transpose(0, 2, 1, 3)  # [., i, h, j]
        safe = not ((shifted < LOWEST) & (shifted > -np.inf)).any()
        plain, transposed = aligned_zeros((2, self.contexts, k, width)), aligned_zeros((2, self.contexts, k, width))
        plain[..., :k] = np.exp(shifted)
        transposed[..., :k] = plain[..., :k].swapaxes(2, 3)
        return StepWeights(plain, transposed, shifts, safe)


class StepWeights(NamedTuple):
    """See `factored_log`."""

    plain: Array
    transposed: Array
    shifts: Array
    safe: bool


class StepCounts:
    """How often each shared step is taken, or expected to be: the derivatives of log Z by the shared scores.

    Attributes
    ----------
    transitions : float64[k, k] or float64[k, k, k]
    pairs : float64[k, k]
        Of neighbours, at every t ≥ 1; at order 1 the same as `transitions`.
    start, end : float64[k]
        Of first and of last labels.
    """

    def __init__(self, transitions: Array, pairs: Array, start: Array, end: Array) -> None:
        self.transitions, self.pairs, self.start, self.end = map(kept, (transitions, pairs, start, end))


def aligned_zeros(shape: tuple[int, ...]) -> Array:
    """Zeros that begin at a multiple of 64 bytes, where wide vectors like to be."""
    room = np.zeros(int(np.prod(shape)) + 8)
    skip = -(room.ctypes.data // 8) % 8
    return room[skip : len(room) - 8 + skip].reshape(shape)
