"""`Shelf`: arrays by name, in memory as long as there is room, then in files."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Shelf"]


class Shelf:
    """Where the shards of a text and what is known of them lie between two visits.

    What is put on a shelf comes back the same, to the bit, from memory or from files. Files are written and read as a
    whole, and never mapped: mapped pages would count as memory of the process.

    Parameters
    ----------
    room : int, optional
        Bytes that may lie in memory; what comes after goes into files. None for no limit: then nothing is written.
    folder : str, optional
        Where a folder for the files is made when the first is written; by default that of the system. It goes when the
        shelf is closed, or when nobody holds it any more.

    Examples
    --------
    >>> shelf = Shelf(room=0)
    >>> shelf.put("a", np.arange(3), np.zeros((0, 2), np.uint16))
    >>> [array.shape for array in shelf.get("a")], "b" in shelf, shelf.in_files > 0
    ([(3,), (0, 2)], False, True)
    """

    def __init__(self, room: int | None = None, folder: str | None = None) -> None:
        self.room, self.folder = room, folder
        self.in_memory = self.in_files = 0
        self._arrays: dict[str, tuple[NDArray[Any], ...]] = {}
        self._written: dict[str, list[tuple[np.dtype[Any], tuple[int, ...]]]] = {}
        self._place: str | None = None

    def put(self, name: str, *arrays: NDArray[Any]) -> None:
        """Keep arrays under a name, in place of what was there. They should not be changed afterwards."""
        self.drop(name)
        size = sum(array.nbytes for array in arrays)
        if self.has_room(size):
            self._arrays[name] = arrays
            self.in_memory += size
            return
        with open(self._path(name), "wb", buffering=0) as file:
            for array in arrays:
                np.ascontiguousarray(array).tofile(file)
        self._written[name] = [(array.dtype, array.shape) for array in arrays]
        self.in_files += size

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more may lie in memory."""
        return self.room is None or self.in_memory + size <= self.room

    def get(self, name: str) -> tuple[NDArray[Any], ...]:
        """What was put there last."""
        if name in self._arrays:
            return self._arrays[name]
        with open(self._path(name), "rb", buffering=0) as file:
            return tuple(
                np.fromfile(file, dtype, int(np.prod(shape))).reshape(shape) for dtype, shape in self._written[name]
            )

    def drop(self, name: str) -> None:
        """Forget what is kept under a name, if there is something."""
        if name in self._arrays:
            self.in_memory -= sum(array.nbytes for array in self._arrays.pop(name))
        elif name in self._written:
            self.in_files -= sum(int(np.prod(shape)) * dtype.itemsize for dtype, shape in self._written.pop(name))
            os.unlink(self._path(name))

    def __contains__(self, name: str) -> bool:
        return name in self._arrays or name in self._written

    def close(self) -> None:
        """Forget everything, and take the folder away."""
        self._arrays, self._written = {}, {}
        self.in_memory = self.in_files = 0
        if self._place is not None:
            self._removal()
            self._place = None

    def _path(self, name: str) -> str:
        if self._place is None:
            self._place = tempfile.mkdtemp(prefix="isogloss-", dir=self.folder)
            self._removal = weakref.finalize(self, shutil.rmtree, self._place, ignore_errors=True)
        return os.path.join(self._place, name)
