"""Changes of saved models: one to three of a model's arrays, options and meta data, some of which leave it valid."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.errors import ModelError
from isogloss.testing.fuzz.values import change_value, shown

__all__ = ["mutate"]

Array = NDArray[Any]
Rng = np.random.Generator
_HOW_MANY = (1, 1, 1, 2, 2, 3)
"""Changes of one model, drawn from these."""
_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "bool", "float16", "float32", "float64")
_FLOATS = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 5e-324, 1e-45, 1e-300, 1e30, 3e38, 1e308, -1e308)


@dataclass
class _Draft:
    """A model that is being changed."""

    kind: str
    options: dict[str, Any]
    arrays: dict[str, Array]
    meta: dict[str, Any]
    rng: Rng

    def any_name(self) -> str:
        names = list(self.arrays)
        return names[self.rng.integers(len(names))]


Change = Callable[[_Draft, str], str | None]
"""Changes a draft at one array; says how, or None where that array cannot be changed so."""


def mutate(saved: store.Saved, rng: Rng) -> tuple[store.Saved, str]:
    """A copy of a saved model with one to three changes, and what they are.

    Parameters
    ----------
    saved : Saved
        A valid model; it stays as it is.
    rng : Generator
        The same state makes the same changes.
    """
    arrays = {name: array.copy() for name, array in saved.arrays.items()}
    draft = _Draft(saved.kind, deepcopy(saved.options), arrays, deepcopy(saved.meta), rng)
    done = [_change(draft) for _ in range(rng.choice(_HOW_MANY))]
    made = replace(saved, kind=draft.kind, options=draft.options, arrays=draft.arrays, meta=draft.meta)
    return made, "; ".join(done)


def _change(draft: _Draft) -> str:
    where = draft.rng.random()
    if where < 0.12:
        return "options" + change_value(draft.options, draft.rng)
    if where < 0.24:
        return "meta" + change_value(draft.meta, draft.rng)
    if where < 0.26:
        kinds = sorted(store.KINDS)
        draft.kind = kinds[draft.rng.integers(len(kinds))]
        return f"kind becomes {draft.kind}"
    return _change_arrays(draft)


def _change_arrays(draft: _Draft) -> str:
    while draft.arrays:
        name = draft.any_name()
        change = _CHANGES[draft.rng.integers(len(_CHANGES))]
        with np.errstate(all="ignore"):
            said = change(draft, name)
        if said is not None:
            return f"{name} {said}"
    return "there are no arrays"


# --- elements ---------------------------------------------------------------------------------------------------------


def _some(rng: Rng, size: int) -> NDArray[np.int64]:
    """Places among `size`: one, few, a range, or all."""
    draw = rng.random()
    if draw < 0.6:
        return rng.integers(size, size=1)
    if draw < 0.75:
        return rng.integers(size, size=rng.integers(2, 9))
    if draw < 0.9:
        start, stop = np.sort(rng.integers(size + 1, size=2))
        return np.arange(start, stop)
    return np.arange(size)


def _whole_numbers(draft: _Draft) -> list[int]:
    """Numbers that lie at the borders of what indexes of this model may be, and of what machines can hold."""
    lengths = {n for array in draft.arrays.values() for n in (*array.shape, array.size)}
    near = {n + step for n in lengths for step in (-1, 0, 1)}
    return [*sorted(near), -1, -2, 0, 1, 2, 2**7, 2**8 - 1, 2**15, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63)]


def _set(draft: _Draft, name: str) -> str | None:
    """Elements become an extreme value."""
    array, rng = draft.arrays[name], draft.rng
    if not array.size:
        return None
    places = _some(rng, array.size)
    value: Any
    if array.dtype.kind == "f":
        value = _FLOATS[rng.integers(len(_FLOATS))]
    elif array.dtype.kind == "b":
        value = bool(rng.integers(2))
    else:
        limits = np.iinfo(array.dtype)
        numbers = [*(n for n in _whole_numbers(draft) if limits.min <= n <= limits.max), limits.min, limits.max]
        value = numbers[rng.integers(len(numbers))]
    array.reshape(-1)[places] = value
    return f"{_places(places)} {'is' if len(places) == 1 else 'are'} {value}"


def _step(draft: _Draft, name: str) -> str | None:
    """Elements become larger or smaller by one, or twice as large, or of the other sign."""
    array, rng = draft.arrays[name], draft.rng
    if not array.size or array.dtype.kind == "b":
        return None
    places = _some(rng, array.size)
    flat, one = array.reshape(-1), array.dtype.type(1)
    steps: dict[str, Callable[[Array], Array]] = {
        "plus one": lambda x: x + one, "minus one": lambda x: x - one, "doubled": lambda x: x + x,
        "negated": lambda x: -x,
    }  # fmt: skip
    said = list(steps)[rng.integers(len(steps))]
    flat[places] = steps[said](flat[places])
    return f"{_places(places)} {said}"


def _exchange(draft: _Draft, name: str) -> str | None:
    array, rng = draft.arrays[name], draft.rng
    if array.size < 2:
        return None
    one, other = rng.integers(array.size, size=2)
    flat = array.reshape(-1)
    flat[one], flat[other] = flat[other], flat[one]
    return f"[{one}] and [{other}] are exchanged"


def _order(draft: _Draft, name: str) -> str | None:
    array, rng = draft.arrays[name], draft.rng
    if array.ndim == 0 or len(array) < 2:
        return None
    orders: dict[str, Callable[[], Array]] = {
        "sorted": lambda: np.sort(array, axis=0), "reversed": lambda: array[::-1].copy(),
        "shuffled": lambda: rng.permutation(array), "rolled": lambda: np.roll(array, 1, axis=0),
    }  # fmt: skip
    said = list(orders)[rng.integers(len(orders))]
    draft.arrays[name] = orders[said]()
    return f"is {said}"


def _rows(draft: _Draft, name: str) -> str | None:
    """A row becomes a copy of another."""
    array, rng = draft.arrays[name], draft.rng
    if array.ndim == 0 or len(array) < 2:
        return None
    one, other = rng.integers(len(array), size=2)
    array[one] = array[other]
    return f"row {one} is a copy of row {other}"


def _offsets(draft: _Draft, name: str) -> str | None:
    """What looks like offsets no longer rises, begins or ends elsewhere, or overflows."""
    array, rng = draft.arrays[name], draft.rng
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) < 2 or np.any(array[1:] < array[:-1]):
        return None
    most, middle = np.iinfo(array.dtype).max, int(rng.integers(len(array)))
    if array.dtype.kind == "u":
        array[middle] = most
        return f"rises to {most} at {middle}"
    breaks: dict[str, Callable[[], Any]] = {
        "falls after": lambda: array.__setitem__(slice(middle, None), array[middle:][::-1].copy()),
        "has its largest value at": lambda: array.__setitem__(middle, array[-1] + 1),
        "is negative before": lambda: array.__setitem__(slice(None, middle + 1), -1 - array[: middle + 1]),
        "is huge from on": lambda: array.__setitem__(slice(middle, None), most - array[middle:]),
        "overflows at": lambda: array.__setitem__(middle, -most),
        "is shifted from on": lambda: array.__setitem__(slice(middle, None), array[middle:] + 1),
        "is 0 up to": lambda: array.__setitem__(slice(None, middle), 0),
    }
    said = list(breaks)[rng.integers(len(breaks))]
    breaks[said]()
    return f"{said} {middle}"


def _places(places: NDArray[np.int64]) -> str:
    listed = ", ".join(map(str, places[:3].tolist()))
    return f"[{listed}]" if len(places) <= 3 else f"[{listed}, …] ({len(places)} elements)"


# --- shapes and types -------------------------------------------------------------------------------------------------


def _resize(draft: _Draft, name: str) -> str | None:
    array, rng = draft.arrays[name], draft.rng
    if array.ndim == 0:
        return None
    sizes = {0, 1, 2, len(array) - 1, len(array) + 1, len(array) // 2, 2 * len(array), len(array) + 100}
    choices = sorted(n for n in sizes if n >= 0)
    size = choices[rng.integers(len(choices))]
    draft.arrays[name] = _resized(array, size, rng)
    return f"has {size} rows in place of {len(array)}"


def _resized(array: Array, size: int, rng: Rng) -> Array:
    """The first rows, and copies of the last one or rows of zeros, where there are not enough."""
    if size <= len(array):
        return array[:size].copy()
    last = array[-1:] if len(array) and rng.random() < 0.5 else np.zeros((1, *array.shape[1:]), array.dtype)
    return np.concatenate([array, np.repeat(last, size - len(array), axis=0)])


def _resize_all(draft: _Draft, name: str) -> str | None:
    """All arrays of the same length become shorter or longer together, so that they still fit each other."""
    if draft.arrays[name].ndim == 0:
        return None
    before = len(draft.arrays[name])
    size = max(0, before + int(draft.rng.integers(-2, 3)))
    for other, array in draft.arrays.items():
        if array.ndim and len(array) == before:
            draft.arrays[other] = _resized(array, size, draft.rng)
    return f"and all others of {before} rows have {size}"


def _reshape(draft: _Draft, name: str) -> str | None:
    array, rng = draft.arrays[name], draft.rng
    shapes: dict[str, Callable[[], Array]] = {
        "has an axis more in front": lambda: array[None],
        "has an axis more behind": lambda: array[..., None],
        "is transposed": lambda: array.T.copy(),
        "is flat": lambda: array.reshape(-1),
        "is a number": lambda: array.reshape(-1)[:1].reshape(()) if array.size else np.zeros((), array.dtype),
        "is empty": lambda: array.reshape(-1)[:0],
        "has no columns": lambda: np.zeros((*array.shape, 0), array.dtype),
        "has columns": lambda: np.stack([array, array], axis=-1),
        "has fewer columns": lambda: array[..., :-1].copy(),
    }
    said = list(shapes)[rng.integers(len(shapes))]
    if array.ndim == 0 and said == "has fewer columns":
        return None
    draft.arrays[name] = shapes[said]()
    return f"{said}: {list(draft.arrays[name].shape)}"


def _cast(draft: _Draft, name: str) -> str | None:
    dtype = _DTYPES[draft.rng.integers(len(_DTYPES))]
    draft.arrays[name] = draft.arrays[name].astype(dtype)
    return f"is of {dtype}"


# --- whole arrays -----------------------------------------------------------------------------------------------------


def _take_another(draft: _Draft, name: str) -> str | None:
    other = draft.any_name()
    draft.arrays[name] = draft.arrays[other].copy()
    return f"is a copy of {other}"


def _drop(draft: _Draft, name: str) -> str | None:
    del draft.arrays[name]
    return "is deleted"


def _add(draft: _Draft, name: str) -> str | None:
    added = f"{name}_more" if draft.rng.random() < 0.5 else f"{name.rpartition('.')[0]}.more"
    draft.arrays[added] = draft.arrays[name].copy()
    return f"stands there as {added} as well"


# --- contents ---------------------------------------------------------------------------------------------------------


def _json(draft: _Draft, name: str) -> str | None:
    """Bytes that are JSON are changed as such."""
    array = draft.arrays[name]
    if array.dtype != np.uint8 or array.ndim != 1 or array[:1].tobytes() not in (b"{", b"["):
        return None
    try:
        value = json.loads(array.tobytes())
    except ValueError:
        return None
    said = change_value(value, draft.rng)
    draft.arrays[name] = np.frombuffer(json.dumps(value).encode(), np.uint8).copy()
    return f"as JSON{said}"


_NOT_UTF8 = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82")


def _strings(draft: _Draft, name: str) -> str | None:
    """Of the strings that some bytes and offsets hold, one becomes another; both arrays fit each other again."""
    blob, rng = draft.arrays[name], draft.rng
    if blob.dtype != np.uint8 or blob.ndim != 1:
        return None
    own = [other for other, array in draft.arrays.items() if _fits(array, blob) and _related(other, name)]
    if not own:
        return None
    offsets = own[rng.integers(len(own))]
    try:
        words = store.unpack_strings(blob, draft.arrays[offsets])
    except ModelError:  # changed before
        return None
    if not words:
        return None
    said = _change_words(words, rng)
    blob, draft.arrays[offsets] = store.pack_strings(words)
    draft.arrays[name] = blob.copy()
    if rng.random() < 0.2 and len(blob):
        bad = _NOT_UTF8[rng.integers(len(_NOT_UTF8))][: len(blob)]
        at = int(rng.integers(len(blob) - len(bad) + 1))
        draft.arrays[name][at : at + len(bad)] = np.frombuffer(bad, np.uint8)
        said += f", and {bad!r} at byte {at}"
    return f"and {offsets}: {said}"


def _fits(array: Array, blob: Array) -> bool:
    return bool(array.ndim == 1 and array.dtype == np.int64 and len(array) > 1 and array[-1] == len(blob))


def _related(one: str, other: str) -> bool:
    """Offsets and bytes have names that begin alike: `words` and `words_offsets`, `names.blob` and `names.offsets`."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other)))
    return one != other and 2 * common > len(other)


def _change_words(words: list[str], rng: Rng) -> str:
    at, other = rng.integers(len(words), size=2).tolist()
    new = ("", words[other], "\u0000", " ", "a b", "\t", "\ud800", "é" * 2000, words[at].upper(), "NULL", "_", "x|y=z")
    draw = rng.random()
    if draw < 0.15:
        words.insert(at, words[other])
        return f"string {other} once more at {at}"
    if draw < 0.3:
        del words[at]
        return f"string {at} is left out"
    words[at] = new[rng.integers(len(new))]
    return f"string {at} is {shown(words[at])}"


_CHANGES: tuple[Change, ...] = (
    *(_set,) * 8, *(_step,) * 4, *(_offsets,) * 3, *(_exchange,) * 2, *(_resize,) * 3, *(_resize_all,) * 2,
    *(_json,) * 8, *(_strings,) * 4, *(_reshape,) * 2, *(_cast,) * 2, _order, _rows, _take_another, _drop, _add,
)  # fmt: skip
"""Those that are named several times are as many times as likely; a header of JSON is one array of many."""
