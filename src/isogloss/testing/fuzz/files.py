"""Changes of the files of a saved model, whose sizes and checksum are then made right again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from isogloss import store
from isogloss.testing.fuzz.values import WRONG, change_value, shown

__all__ = ["damage"]

Rng = np.random.Generator
_MARK = "@isogloss@"
_RAW = (
    "NaN", "-Infinity", "1e999", "-0", "1" + "0" * 400, "1" + "0" * 6000, "1.0", "0.1e-400", "[" * 100_000,
    "[" * 900 + "]" * 900, '{"a":1,"a":2}', '"\\ud800"', '"\\u0000"', "'x'", "", "true", "nul", "01", "[1,]",
)  # fmt: skip
"""Texts in the place of a value, many of which `json.dumps` would never write."""
_DTYPES = ("BF16", "F8_E4M3", "F8_E5M2", "F16", "U64", "I8", "BOOL", "C64", "F4", "X9", "f64", "", 7, None)


def damage(folder: Path, rng: Rng) -> str:
    """Change the header or the file of arrays of a model folder; says how. The checksum fits in most cases."""
    header = json.loads((folder / store.HEADER).read_bytes())
    data = (folder / store.ARRAYS).read_bytes()
    if rng.random() < 0.5:
        data, said = _damage_arrays(data, rng)
        (folder / store.ARRAYS).write_bytes(data)
        header["bytes"], header["sha256"] = len(data), hashlib.sha256(data).hexdigest()
        if rng.random() < 0.7:
            header["arrays"] = _told(data)
        text = store.as_json(header).encode()
    else:
        text, said = _damage_header(header, rng)
    (folder / store.HEADER).write_bytes(text)
    return said


def _told(data: bytes) -> Any:
    """What the header of the arrays' file says of them, in the words of the model's header."""
    names = {"F64": "float64", "F32": "float32", "F16": "float16", "BOOL": "bool", "BF16": "bfloat16"}
    names |= {
        f"{kind}{bits}": f"{name}{bits}" for kind, name in (("I", "int"), ("U", "uint")) for bits in (8, 16, 32, 64)
    }
    try:
        tensors = _split(data)[0]
        return {
            name: {"dtype": names.get(told["dtype"], told["dtype"]), "shape": told["shape"]}
            for name, told in tensors.items()
            if name != "__metadata__"
        }
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return {}


# --- model.json -------------------------------------------------------------------------------------------------------


def _damage_header(header: dict[str, Any], rng: Rng) -> tuple[bytes, str]:
    draw = rng.random()
    if draw < 0.4:
        said = change_value(header, rng)
        return json.dumps(header).encode(), f"{store.HEADER}{said}"
    if draw < 0.8:
        holder, key = _somewhere(header, rng)
        raw = _RAW[rng.integers(len(_RAW))]
        holder[key] = _MARK
        text = json.dumps(header).replace(json.dumps(_MARK), raw)
        return text.encode(), f"{store.HEADER}: {key!r} is {shown(raw)}"
    text = json.dumps(header)
    again = ", ".join(f"{json.dumps(key)}: {json.dumps(WRONG[rng.integers(len(WRONG))])}" for key in header)
    whole: dict[str, Callable[[], bytes]] = {
        "has all keys twice": lambda: f"{text[:-1]}, {again}}}".encode(),
        "is empty": lambda: b"",
        "is a list": lambda: f"[{text}]".encode(),
        "is nested": lambda: b"[" * 200_000,
        "is cut": lambda: text.encode()[: int(rng.integers(len(text)))],
        "has a byte order mark": lambda: text.encode("utf-8-sig"),
        "is UTF-16": lambda: text.encode("utf-16"),
        "has a byte that is not UTF-8": lambda: text.encode().replace(b"options", b"opt\xffons", 1),
        "has a NUL": lambda: text.encode() + b"\0",
    }
    said = list(whole)[rng.integers(len(whole))]
    return whole[said](), f"{store.HEADER} {said}"


def _somewhere(header: dict[str, Any], rng: Rng) -> tuple[Any, Any]:
    """A key of the header, or of a dictionary within it."""
    holder: dict[str, Any] = header
    while True:
        keys = list(holder)
        key = keys[rng.integers(len(keys))]
        if not isinstance(holder[key], dict) or not holder[key] or rng.random() < 0.2:
            return holder, key
        holder = holder[key]


# --- model.safetensors ------------------------------------------------------------------------------------------------


def _split(data: bytes) -> tuple[Any, bytes]:
    """The header, which its length in eight bytes goes before, and the numbers."""
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def _joined(header: Any, numbers: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def _damage_arrays(data: bytes, rng: Rng) -> tuple[bytes, str]:
    header, numbers = _split(data)
    if rng.random() < 0.65:
        names = [name for name in header if name != "__metadata__"]
        name = names[rng.integers(len(names))]
        field, value = _wrong_field(header[name], rng)
        header[name][field] = value
        return _joined(header, numbers), f"{store.ARRAYS}: {field} of {name} is {shown(value)}"
    size, text = len(data) - 8 - len(numbers), json.dumps(header).encode()
    whole: dict[str, Callable[[], bytes]] = {
        "has a header of 2⁶³ bytes": lambda: (2**63).to_bytes(8, "little") + data[8:],
        "has a header of 2⁶⁴ - 1 bytes": lambda: (2**64 - 1).to_bytes(8, "little") + data[8:],
        "has a header of 99 MB": lambda: (99_000_000).to_bytes(8, "little") + data[8:],
        "has a header longer by one": lambda: (size + 1).to_bytes(8, "little") + data[8:],
        "has no header": lambda: bytes(8) + data[8:],
        "is empty": lambda: b"",
        "is cut": lambda: data[: int(rng.integers(len(data)))],
        "has more bytes than arrays": lambda: data + bytes(int(rng.integers(1, 100))),
        "has a header that is a list": lambda: _joined([header], numbers),
        "has a header that is not UTF-8": lambda: _joined(text.replace(b"dtype", b"dt\xffpe", 1), numbers),
        "has all arrays twice": lambda: _joined(text[:-1] + b", " + text[1:], numbers),
        "has a nested header": lambda: _joined(b'{"a":' + b"[" * 100_000, numbers),
        "has numbers for metadata": lambda: _joined(header | {"__metadata__": {"a": 1}}, numbers),
        "has random numbers": lambda: _joined(header, rng.bytes(len(numbers))),
    }
    said = list(whole)[rng.integers(len(whole))]
    return whole[said](), f"{store.ARRAYS} {said}"


def _wrong_field(told: dict[str, Any], rng: Rng) -> tuple[str, Any]:
    """The dtype, shape or offsets of an array, as they should not be."""
    start, stop = told["data_offsets"]
    shape = told["shape"]
    wrong: dict[str, tuple[Any, ...]] = {
        "dtype": _DTYPES,
        "shape": (
            [-1], [2**63], [2**32, 2**32], [0], [], [*shape, 1], [1, *shape], shape[::-1], [1.5], ["3"], None, 7, {},
            [True], [0, 2**62], [2**62, 4], [1] * 40, [-1, -1], [10**30],
        ),
        "data_offsets": (
            [0, stop], [0, 0], [start, stop + 1], [start - 1, stop], [stop, start], [start, 2**63],
            [float(start), stop], [-1, stop], [start], [], None, [start, stop, stop], [0, 8], [10**30, 10**31],
            ["0", "8"], [start + 1, stop + 1],
        ),
    }  # fmt: skip
    field = list(wrong)[rng.integers(len(wrong))]
    return field, wrong[field][rng.integers(len(wrong[field]))]
