"""From keys to numbers: the one table of keys, the index of a model's features, and hashing without a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ModelError, ParameterError
from isogloss.layout import Numbers, check, check_table

__all__ = ["KEYS", "Hashed", "Index", "KeyTable", "Keys", "Lookup", "Numbering"]

Keys = NDArray[np.uint64]

LEAST_KEY = 1 << 32
KEYS = Numbers("uint64", "features", least=LEAST_KEY, order="strict")
"""How the keys of an `Index` are declared in a saved model; the upper half of a key is never 0."""

_LEAST_SIZE = 64


class Lookup(NamedTuple):
    """A numbering as kernels take it (`isogloss.features._numba.table.number_of`).

    bits : int
        Of a key, which are its number; 0 if a table says it.
    slots, keys : uint32[2 · size], uint64[n_features]
        Empty with `bits`.
    """

    bits: int
    slots: NDArray[np.uint32]
    keys: Keys


class Numbering(Protocol):
    """From keys to feature numbers."""

    @property
    def n_features(self) -> int: ...

    @property
    def lookup(self) -> Lookup: ...

    def numbers(self, keys: Keys, /) -> NDArray[np.int32]:
        """int32[n]: −1 where a key is 0 or unknown."""
        ...


def _numbers(numbering: Numbering, keys: Keys) -> NDArray[np.int32]:
    from isogloss.features._numba.table import numbers_of

    out = np.empty(len(keys), np.int32)
    numbers_of(numbering.lookup, np.ascontiguousarray(keys), out)
    return out


@dataclass(frozen=True, eq=False)
class KeyTable:
    """Keys of features, each with its number or another payload; see `isogloss.features._numba.table`.

    Parameters
    ----------
    keys : uint64[n_features]
        As `isogloss.features._numba.mixing.key_of` makes them.
    slots : uint32[2 · size]

    Examples
    --------
    >>> table = KeyTable.of(np.array([5 << 32, 7 << 32 | 9], np.uint64), np.array([3, 4], np.uint32))
    >>> len(table), table.payload.tolist()
    (2, [3, 4])
    """

    keys: Keys
    slots: NDArray[np.uint32]

    @classmethod
    def of(cls, keys: Keys, payload: NDArray[np.uint32] | None = None) -> KeyTable:
        """A table that is at most half full; the payload is the number of the key unless given."""
        from isogloss.features._numba.table import build

        size = _LEAST_SIZE
        while size < 2 * len(keys):
            size *= 2
        slots = np.zeros(2 * size, np.uint32)
        build(keys, np.arange(len(keys), dtype=np.uint32) if payload is None else payload, slots)
        return cls(keys, slots)

    @classmethod
    def ready(cls, slots: NDArray[np.uint32], name: str, place: str) -> KeyTable:
        """One that was kept as it is, under a name; what is no table is refused. Its keys are not known.

        `place` is what it belongs to, for messages: "the saved parser".
        """
        slots = check({name: slots}, {name: Numbers("uint32", "slots")}, f"the features of {place}")[name]
        if len(slots) % 2 or len(slots) < 2 * _LEAST_SIZE:
            raise ModelError(f"{name} of {place} is no table of features. Train it again, or copy it whole")
        check_table(slots[::2] != 0, f"{name} of {place}")
        return cls(np.zeros(0, np.uint64), slots)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def payload(self) -> NDArray[np.uint32]:
        """uint32[n_features]: of all slots that are taken, in their order."""
        return np.asarray(self.slots[1::2][self.slots[::2] != 0])


class Hashed:
    """Features numbered by the first `bits` bits of their keys: no index is kept, and some features share a number."""

    def __init__(self, bits: int) -> None:
        if not 1 <= bits <= 30:
            raise ParameterError(f"Hashed: bits should be from 1 to 30, not {bits!r}")
        self.bits = bits

    def __repr__(self) -> str:
        return f"Hashed(bits={self.bits})"

    @property
    def n_features(self) -> int:
        return 1 << self.bits

    @property
    def lookup(self) -> Lookup:
        """For kernels."""
        return Lookup(self.bits, np.zeros(0, np.uint32), np.zeros(0, np.uint64))

    def numbers(self, keys: Keys) -> NDArray[np.int32]:
        """int32[n]: −1 where a key is 0."""
        return _numbers(self, keys)


class Index:
    """The features of a model, one number each; what is not among them is left out.

    Parameters
    ----------
    keys : uint64[n_features]
        Ascending, no two alike. Feature *i* has key ``keys[i]``.
    """

    def __init__(self, keys: ArrayLike) -> None:
        self.keys = np.ascontiguousarray(keys, np.uint64)
        sound = self.keys.ndim == 1 and not (self.keys[1:] <= self.keys[:-1]).any()
        if not sound or (len(self.keys) and self.keys[0] < LEAST_KEY):
            raise ModelError("Index: keys should be ascending, with none twice and none 0. Is the saved model damaged?")

    def __repr__(self) -> str:
        return f"Index({self.n_features} features)"

    @property
    def n_features(self) -> int:
        return len(self.keys)

    @cached_property
    def lookup(self) -> Lookup:
        """For kernels; the table is made when it is first needed."""
        return Lookup(0, KeyTable.of(self.keys).slots, self.keys)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        return {"keys": self.keys}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Index:
        """The inverse of `to_arrays`."""
        return cls(arrays["keys"])

    def numbers(self, keys: Keys) -> NDArray[np.int32]:
        """int32[n]: −1 where a key is 0 or not in the index."""
        return _numbers(self, keys)
