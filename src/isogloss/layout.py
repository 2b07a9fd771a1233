"""What the arrays of a saved model must look like: declared beside the class that they belong to, checked here.

A model folder comes from anywhere, and kernels index with what it holds without looking: an array of another type or
size, an offset that goes back, a number of a word that is not there would read and write outside of arrays. So every
array that is taken from a saved model is declared with its type, shape and range, and nothing is used before `check`
has seen it. Sizes have names: all arrays that share a name have to agree about it.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ModelError
from isogloss.store import pack_strings, unpack_strings

__all__ = [
    "Layout",
    "Numbers",
    "Offsets",
    "Strings",
    "check",
    "check_table",
    "collect",
    "integer",
    "number",
    "texts",
    "vector",
]

REMEDY = "The model was damaged, or written by another version: copy it again, or train it again"

LARGEST = 1e30
"""Floats of a model are not larger than this, so that sums of many of them are finite, in float32 too."""

LONGEST_RUN = 4096
"""Taken slots of a hash table in a row; in a table of good keys that is half full there are some dozens."""
COUNTS = 2**40
"""Counts are below this."""

Size = int | str
"""A number, or a name such as ``"n"`` or ``"n + 1"``."""


@dataclass(frozen=True)
class Numbers:
    """An array of numbers: ``Numbers("int32", ("n", 2), least=0, below="m")`` is int32[n, 2] with numbers of m things.

    Floats are finite, and at most `LARGEST` in size; minus infinity is allowed among log probabilities (`logs`).
    `least` is the least value, `below` is greater than the greatest. `order` says that a vector never falls
    (``"rising"``), or always rises (``"strict"``).
    """

    dtype: str
    shape: Size | tuple[Size, ...] = ()
    least: float | None = None
    below: Size | float | None = None
    order: Literal["any", "rising", "strict"] = "any"
    logs: bool = False

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The shape as a tuple, also of a vector."""
        return self.shape if isinstance(self.shape, tuple) else (self.shape,)


@dataclass(frozen=True)
class Offsets:
    """int64[count + 1]: where rows begin among `total` things; from 0 to `total`, never falling."""

    count: Size
    total: Size


@dataclass(frozen=True)
class Strings:
    """`count` strings as `isogloss.store.pack_strings` packs them: bytes under the name, and the array `offsets`.

    Without a name of their own offsets are called ``<name>_offsets``. `distinct` says that no string occurs twice,
    `least` how many there are at the least, `cells` that each can stand in a cell of a table such as CoNLL-U.
    """

    count: Size
    offsets: str | None = None
    distinct: bool = False
    least: int = 0
    cells: bool = False

    def offsets_of(self, name: str) -> str:
        return self.offsets or f"{name}_offsets"


Layout = dict[str, Numbers | Offsets | Strings]


def check(
    arrays: Mapping[str, NDArray[Any]], layout: Layout, place: str, sizes: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """The declared arrays, checked: strings as lists of str, all others as they are.

    Parameters
    ----------
    arrays : mapping of str to array
        Others than those that are declared may be among them.
    layout : mapping
    place : str
        What the arrays belong to, for messages: "the word counts of this model".
    sizes : mapping of str to int
        Sizes that are known beforehand; others are read off the arrays.

    Raises
    ------
    ModelError
        An array is missing, or is not as declared.

    Examples
    --------
    >>> layout = {"rows": Offsets("n", "k"), "columns": Numbers("int32", "k", least=0, below=5)}
    >>> rows, columns = np.array([0, 2, 3]), np.array([4, 0, 1], np.int32)
    >>> check({"rows": rows, "columns": columns}, layout, "the table")["rows"].tolist()
    [0, 2, 3]
    >>> check({"rows": rows, "columns": columns + 1}, layout, "the table")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    isogloss.errors.ModelError: the table: array 'columns' has 5 where numbers should be at most 4. ...
    """
    checking = _Checking(arrays, dict(sizes or {}), place)
    for name, field in layout.items():
        checking.outside(name, field)
    return {name: checking.inside(name, field) for name, field in layout.items()}


def check_table(filled: NDArray[np.bool_], place: str) -> None:
    """Refuse a hash table in which looking for a key would not end, or not soon.

    `filled` says which slots of a table with open addressing are taken. There should be a power of two of them, at
    least half of them free, and no long run without a free one.
    """
    size = len(filled)
    sound = size > 0 and not size & (size - 1) and 2 * np.count_nonzero(filled) <= size
    if not sound or _longest_gap(filled) > LONGEST_RUN:
        raise ModelError(f"{place}: this is no table of features. {REMEDY}")


def _longest_gap(filled: NDArray[np.bool_]) -> int:
    """From one free slot to the next, the last being followed by the first; 0 where it is clearly short enough."""
    half = LONGEST_RUN // 2
    if len(filled) % half == 0 and not filled.reshape(-1, half).all(axis=1).any():
        return 0  # a longer gap would have all of an aligned half in it; tables have millions of slots, and are sound
    free = np.flatnonzero(~filled)
    return int(np.diff(free, append=free[0] + len(filled)).max())


def collect(model: Any, layout: Layout) -> dict[str, NDArray[Any]]:
    """The declared arrays of an object, from attributes of the same names: what `check` takes back."""
    found: dict[str, NDArray[Any]] = {}
    for name, field in layout.items():
        value = getattr(model, name)
        if isinstance(field, Strings):
            found[name], found[field.offsets_of(name)] = pack_strings(value)
        else:
            found[name] = value
    return found


class _Checking:
    """First types and shapes, which say how large everything is; then values, which depend on that."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], sizes: dict[str, int], place: str) -> None:
        self.arrays, self.sizes, self.place = arrays, sizes, place

    def outside(self, name: str, field: Numbers | Offsets | Strings) -> None:
        if isinstance(field, Strings):
            self._fit(name, "uint8", (f"bytes of {name}",))
            self._fit(field.offsets_of(name), "int64", (_more(field.count, 1),))
        elif isinstance(field, Offsets):
            self._fit(name, "int64", (_more(field.count, 1),))
        else:
            self._fit(name, field.dtype, field.sizes)

    def inside(self, name: str, field: Numbers | Offsets | Strings) -> Any:
        array = self.arrays[name]
        if isinstance(field, Strings):
            return self._strings(name, field)
        if isinstance(field, Offsets):
            self._offsets(name, array, self._size(field.total))
        else:
            self._range(name, array, field)
        return np.asarray(array, array.dtype.newbyteorder("="), order="C")  # as kernels are compiled for

    def _fit(self, name: str, dtype: str, shape: tuple[Size, ...]) -> None:
        if name not in self.arrays:
            self._refuse(f"array {name!r} is missing")
        array = self.arrays[name]
        fits = array.dtype.name == dtype and len(array.shape) == len(shape)
        for there, size in zip(array.shape, shape):
            symbol, more = _parts(size)
            known = self.sizes.setdefault(symbol, max(0, there - more)) if symbol else 0
            fits = fits and there == known + more
        if not fits:
            wanted = ", ".join(self._words(size) for size in shape)
            self._refuse(f"array {name!r} is {array.dtype.name}{list(array.shape)} and should be {dtype}[{wanted}]")

    def _range(self, name: str, array: NDArray[Any], field: Numbers) -> None:
        if not array.size:
            return
        least, greatest = array.min(), array.max()
        if field.logs:
            least = array.min(where=array != -np.inf, initial=0)
            greatest = max(least, greatest)
        if array.dtype.kind == "f" and not (abs(least) <= LARGEST and abs(greatest) <= LARGEST):  # false for NaN too
            self._refuse(f"array {name!r} has numbers that are infinite, not numbers, or larger than {LARGEST:g}")
        if field.least is not None and least < field.least:
            self._refuse(f"array {name!r} has {least} where numbers should be at least {field.least}")
        if field.below is not None:
            below = field.below if isinstance(field.below, float) else self._size(field.below)
            if greatest >= below:
                most = f"below {below}" if array.dtype.kind == "f" else f"at most {below - 1}"
                self._refuse(f"array {name!r} has {greatest} where numbers should be {most}")
        if field.order != "any":
            falls = array[1:] < array[:-1] if field.order == "rising" else array[1:] <= array[:-1]
            if falls.any():
                self._refuse(f"array {name!r} is not in ascending order")

    def _offsets(self, name: str, array: NDArray[Any], total: int) -> None:
        if array[0] != 0 or array[-1] != total or (array[1:] < array[:-1]).any():
            self._refuse(f"array {name!r} does not go from 0 to {total} in ascending order")

    def _strings(self, name: str, field: Strings) -> list[str]:
        blob, offsets = self.arrays[name], self.arrays[field.offsets_of(name)]
        self._offsets(field.offsets_of(name), offsets, len(blob))
        found = unpack_strings(blob, offsets)
        if len(found) < field.least:
            self._refuse(f"array {name!r} has {len(found)} strings and should have {field.least} or more")
        if field.distinct and len(set(found)) < len(found):
            self._refuse(f"array {name!r} has the same string twice")
        if field.cells and not all(map(_is_cell, found)):
            self._refuse(f"array {name!r} has a string that cannot be written to a table")
        return found

    def _words(self, size: Size) -> str:
        """A size for people: as a number, if it is known."""
        return str(self._size(size)) if _parts(size)[0] in {"", *self.sizes} else str(size)

    def _size(self, size: Size) -> int:
        symbol, more = _parts(size)
        return (self.sizes[symbol] if symbol else 0) + more

    def _refuse(self, finding: str) -> NoReturn:
        raise ModelError(f"{self.place}: {finding}. {REMEDY}")


def _parts(size: Size) -> tuple[str, int]:
    """The name in a size, if any, and what is added to it."""
    if isinstance(size, int):
        return "", size
    name, _, more = size.partition(" + ")
    return name, int(more or 0)


def _more(size: Size, more: int) -> Size:
    name, already = _parts(size)
    return f"{name} + {already + more}" if name else already + more


# --- what headers hold


def number(value: Any, name: str, *, least: float = -LARGEST, most: float = LARGEST) -> float:
    """A number of a header, if it is one from `least` to `most`; `ModelError` otherwise.

    Examples
    --------
    >>> number(1, "threshold", least=0, most=1)
    1.0
    >>> number("1", "threshold")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    isogloss.errors.ModelError: 'threshold' should be a number from -1e+30 to 1e+30, not '1'. ...
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ModelError(f"{name!r} should be a number from {least:g} to {most:g}, not {_short(value)}. {REMEDY}")
    return float(value)


def integer(value: Any, name: str, *, least: int = 0, most: int = 2**53) -> int:
    """A whole number of a header, if it is one from `least` to `most`; `ModelError` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ModelError(f"{name!r} should be a whole number from {least} to {most}, not {_short(value)}. {REMEDY}")
    return value


def vector(value: Any, name: str) -> NDArray[np.float64]:
    """float64[n]: a list of numbers of a header, which may be infinite or not numbers; `ModelError` otherwise."""
    plain = isinstance(value, list) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in value)
    if not plain or any(isinstance(x, int) and abs(x) > LARGEST for x in value):
        raise ModelError(f"{name!r} should be a list of numbers, not {_short(value)}. {REMEDY}")
    return np.array(value, np.float64)


def _is_cell(text: str) -> bool:
    return bool(text) and not any(c in "\t\n\r" or "\ud800" <= c <= "\udfff" for c in text)


def texts(value: Any, name: str, *, distinct: bool = True, cells: bool = False) -> tuple[str, ...]:
    """A list of strings of a header; `ModelError` otherwise. `cells` as in `Strings`, but for empty strings."""
    plain = isinstance(value, list | tuple) and all(isinstance(x, str) for x in value)
    if not plain or (distinct and len(set(value)) < len(value)):
        kind = "different strings" if distinct else "strings"
        raise ModelError(f"{name!r} should be a list of {kind}, not {_short(value)}. {REMEDY}")
    if cells and not all(_is_cell(x) for x in value if x):
        raise ModelError(f"{name!r} has a string that cannot be written to a table. {REMEDY}")
    return tuple(value)


def _short(value: Any) -> str:
    return reprlib.repr(value)
