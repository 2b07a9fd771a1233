"""Arrays in files that several processes share: data whose name holds its hash, and a marker that is written last.

A parcel ``x`` is two files: ``x.json``, the marker, and ``x-HASH.bin``, the arrays one after the other. A parcel is
there when its marker is; the marker says which file the arrays lie in, where each begins, and the SHA-256 of them all.
Both are written under another name and renamed, so that processes which write the same parcel at the same time, or die
while they do, leave a whole one or none.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import DataError

__all__ = ["Damaged", "Parcel", "forget", "hash_of", "mark", "marker", "read", "write"]

Arrays = dict[str, NDArray[Any]]
_ALIGNED = 64


class Damaged(DataError):
    """A parcel whose arrays are missing or have changed since they were written."""


class Parcel(NamedTuple):
    """What was written: arrays and plain data, and the hash of both."""

    arrays: Arrays
    meta: dict[str, Any]
    hash: str


def write(path: Path, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> str:
    """Write a parcel, in place of one that is there; returns its hash."""
    said, pieces, found = _packed(arrays, meta)
    data = _data(path, found)
    temporary = _temporary(data)
    try:
        with open(temporary, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, data)
        mark(path, {**said, "sha256": found})
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    return found


def hash_of(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> str:
    """The hash of a parcel that is not written."""
    return _packed(arrays, meta)[2]


def _packed(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any], str]:
    """What the marker says, the bytes of the data, and the hash of both."""
    listed: list[dict[str, Any]] = []
    pieces: list[Any] = []
    at = 0
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        listed.append({"name": name, "dtype": plain.dtype.str, "shape": list(plain.shape), "at": at})
        rest = -plain.nbytes % _ALIGNED
        pieces += [plain.reshape(-1).view(np.uint8).data, bytes(rest)]
        at += plain.nbytes + rest
    said = {"arrays": listed, "bytes": at, "meta": dict(meta)}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    for piece in pieces:
        digest.update(piece)
    return said, pieces, digest.hexdigest()


def mark(path: Path, said: Mapping[str, Any]) -> None:
    """Write a marker alone: plain data that are there as a whole or not at all."""
    temporary = _temporary(path)
    temporary.write_text(json.dumps(said), encoding="utf-8")
    os.replace(temporary, _marker(path))


def marker(path: Path) -> dict[str, Any] | None:
    """What the marker of a parcel says; None if the parcel is not there."""
    try:
        said = json.loads(_marker(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) else None


def read(path: Path) -> Parcel:
    """A parcel with its arrays mapped into memory, which processes of a machine share; changes stay in this process.

    Raises
    ------
    Damaged
        It is not there, or not as it was written.
    """
    said = marker(path)
    try:
        if said is None:
            raise ValueError("no marker")
        with open(_data(path, said["sha256"]), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != said["bytes"]:
                raise ValueError("cut")
            held: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else bytearray()
        digest = hashlib.sha256(json.dumps({k: v for k, v in said.items() if k != "sha256"}, sort_keys=True).encode())
        digest.update(held)
        if digest.hexdigest() != said["sha256"]:
            raise ValueError("changed")
        arrays = {one["name"]: _array(held, one) for one in said["arrays"]}
        return Parcel(arrays, dict(said["meta"]), str(said["sha256"]))
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise Damaged(f"{path}: damaged or missing ({problem})") from problem


def forget(path: Path) -> None:
    """Take a parcel away: first its marker, so that nobody looks for the rest."""
    said = marker(path)
    with suppress(FileNotFoundError):
        os.unlink(_marker(path))
    if said is not None and "sha256" in said:
        with suppress(FileNotFoundError):
            os.unlink(_data(path, str(said["sha256"])))


def _array(held: Any, one: Mapping[str, Any]) -> NDArray[Any]:
    dtype, shape = np.dtype(one["dtype"]), tuple(one["shape"])
    size = int(np.prod(shape))
    if not size:
        return np.zeros(shape, dtype)
    return np.frombuffer(held, dtype, size, one["at"]).reshape(shape)


def _marker(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _data(path: Path, digest: str) -> Path:
    return path.with_name(f"{path.name}-{digest[:16]}.bin")


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")
