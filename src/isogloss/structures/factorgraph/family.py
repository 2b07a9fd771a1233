"""What a family of equal factors does; the families themselves are in the modules beside this one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isogloss.structures.base import Array
from isogloss.structures.factorgraph.variables import Variables

__all__ = ["Choice", "Family", "Ints", "Unary", "as_log_weights"]

Ints = NDArray[np.int64]
Choice = tuple[Ints, Ints]  # variables, and a value for each


class Family(ABC):
    """Factors of one kind over arrays of variables, worked on together; plain data, no scores.

    A family has `slots`, arrays of variables. A message is an array shaped like its slot, of log-odds for Booleans; for
    variables of k values there is one more axis, of log weights. Scores come from outside, shaped `shape`, so that a
    graph under other scores shares the family.
    """

    kind: ClassVar[str]
    maximises: ClassVar[bool] = True  # whether it can send messages of maxima
    slots: tuple[Variables, ...]
    shape: tuple[int, ...] = (0,)
    count: int

    @abstractmethod
    def owners(self) -> tuple[Ints, ...]:
        """For every slot, shaped like it, which factor (0 … count − 1) each variable belongs to."""

    @abstractmethod
    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        """Messages to the variables, from what the variables were told by all others."""

    @abstractmethod
    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        """The sum of the factors' log totals under what came in, −∞ where one allows nothing; and expected parts."""

    @abstractmethod
    def parts(self, values: Sequence[Ints]) -> Array | None:
        """Which scores an assignment uses, shaped `shape`; None where it breaks a rule."""

    def choose(self, scores: Array, incoming: Sequence[Array], factor: int, rng: Any) -> Choice | None:
        """Values for all variables of one factor at once: the best (rng None) or a draw; None: one by one, please."""
        return None

    def reveal(self, parts: Array) -> Choice | None:
        """Values of variables that can be read off from parts."""
        return None

    def options(self) -> dict[str, Any]:
        """What the constructor needs besides slots and shape: plain numbers, for saving."""
        return {}

    def arrays(self) -> dict[str, Ints]:
        """The same, arrays."""
        return {}


class Unary(Family):
    """Scores of single values: of true for Booleans, of each of k. The graph adds them up before messages are sent."""

    kind = "unary"

    def __init__(self, variables: Variables) -> None:
        self.slots = (variables,)
        self.shape = (*variables.shape, variables.k) if variables.k else variables.shape
        self.count = variables.size

    def owners(self) -> tuple[Ints, ...]:
        return (np.arange(self.count).reshape(self.slots[0].shape),)

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        return (scores,)

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        raise NotImplementedError("unary scores are part of the variables")

    def parts(self, values: Sequence[Ints]) -> Array | None:
        k = self.slots[0].k
        return (values[0][..., None] == np.arange(k)).astype(np.float64) if k else values[0].astype(np.float64)

    def reveal(self, parts: Array) -> Choice | None:
        values = parts.argmax(axis=-1) if self.slots[0].k else (parts > 0).astype(np.int64)
        return self.slots[0].numbers.ravel(), values.ravel()


def as_log_weights(log_odds: Array) -> Array:
    """float64[..., 2]: log weights of false and true, (0, a), or (−∞, 0) where the log-odds are +∞."""
    certain = log_odds == np.inf
    return np.stack([np.where(certain, -np.inf, 0.0), np.where(certain, 0.0, log_odds)], axis=-1)
