"""Memory that a command may have: what was asked for, or most of what is free."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from isogloss.errors import UsageError

__all__ = ["LEAST", "free_memory", "is_large", "most_of_what_is_free", "size_of"]

LEAST = 600_000_000
"""Bytes without which training does not begin: the interpreter, a shard of the text, and some table."""
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SHARE = 0.8
_LARGE = 30_000_000  # bytes of text
_COMPRESSED = {".gz": 4, ".xz": 6, ".zst": 4, ".bz2": 5}


def size_of(text: str) -> int:
    """A size in bytes.

    >>> size_of("4GB"), size_of("1.5 GiB"), size_of("900M")
    (4000000000, 1610612736, 900000000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]i?|)b?\s*", text.lower())
    if match is None:
        raise UsageError(f"--memory {text}: this is no size. Write a number and a unit, as in 4GB or 900MB")
    size = int(float(match[1]) * (_UNITS | _BINARY)[match[2]])
    if size < LEAST:
        raise UsageError(f"--memory {text}: training takes {LEAST // 10**6} MB at the least")
    return size


def free_memory() -> int | None:
    """Bytes that could be had now, in this container if there is one; None where the system does not say."""
    found = []
    with suppress(OSError, ValueError, KeyError, IndexError):
        with open("/proc/meminfo", encoding="ascii") as file:
            table = dict(line.split(":", 1) for line in file)
        found.append(int(table["MemAvailable"].split()[0]) * 1024)
    with suppress(OSError, ValueError):
        limit, used = (_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
        found.append(max(0, limit - used))
    if not found:
        with suppress(OSError, ValueError, AttributeError):  # macOS; Windows has no `sysconf`
            found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(found, default=None)


def _number(path: str) -> int:
    with open(path, encoding="ascii") as file:
        return int(file.read())


def most_of_what_is_free() -> int | None:
    """What a command takes that was not told how much it may have."""
    free = free_memory()
    return None if free is None else max(LEAST, int(_SHARE * free))


def is_large(*paths: str | None) -> bool:
    """Whether a text is so large that it is better read a part at a time; text that comes through a pipe is not."""
    given = [path for path in paths if path is not None]
    if not all(os.path.isfile(path) for path in given):
        return False
    sizes = (os.path.getsize(path) * _COMPRESSED.get(os.path.splitext(path)[1], 1) for path in given)
    return sum(sizes) > _LARGE
