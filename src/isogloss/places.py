"""Places to write to: proved before the work begins, and the operating system's refusals in the user's words."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import socket
import stat
import time
import zlib
from contextlib import suppress
from functools import cache

from isogloss.errors import DataError, UsageError

__all__ = ["FULL", "is_written_directly", "own_mark", "prove", "refusal", "remove_leftovers", "sync"]

Place = str | os.PathLike[str]

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the system says when a disk, a quota or a limit has no room left."""

_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM)
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP)  # some network file systems
_BLOCK = 4096
_STALE_SECONDS = 3600.0
"""What nobody has touched for so long is left over, where there is no way to ask its process."""


def prove(path: Place, *, lasting: bool = True) -> None:
    """Find out that a file or folder can be written at `path` by writing: a small file beside it, removed at once.

    What is there is not touched. With `lasting`, the small file is to reach the disk, as some file systems say only
    then that they are full.

    Raises
    ------
    DataError
        The disk is full, or fails.
    UsageError
        There is no such folder, it may not be written to, or the name is not possible there.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> prove(os.path.join(folder, "links.txt"))
    >>> os.listdir(folder)
    []
    """
    target = os.path.realpath(path)
    remove_leftovers(os.path.dirname(target), ".isogloss-", ".part")
    trial = os.path.join(os.path.dirname(target), f".isogloss-{own_mark()}.part")
    try:
        with suppress(FileNotFoundError):
            os.lstat(target)  # a name may be too long
        try:
            with open(trial, "xb", buffering=0) as file:
                file.write(bytes(_BLOCK))
                if lasting:
                    sync(file.fileno())
        finally:
            with suppress(OSError):
                os.unlink(trial)
    except OSError as problem:
        raise refusal(path, problem) from None


def refusal(path: Place, problem: Exception) -> DataError | UsageError:
    """What to raise when the system refused to write at `path`."""
    name, number = os.fspath(path), getattr(problem, "errno", None)
    reason = (getattr(problem, "strerror", None) or str(problem)).lower()
    if number in FULL:
        return DataError(
            f"{name}: the disk is full ({reason}), so nothing was written there. Make room, or write to another disk"
        )
    if number == errno.EIO:
        return DataError(f"{name}: could not be written, because the disk failed ({reason})")
    if number == errno.EROFS:
        return UsageError(f"{name}: cannot be written, because the disk is read-only there. Write to another place")
    if number in _NOT_ALLOWED:
        return UsageError(f"{name}: cannot be written, because you may not ({reason}). Write where you may")
    if number in _NO_FOLDER:
        folder = os.path.dirname(os.path.realpath(name))
        return UsageError(f"{name}: there is no folder {folder} to write it in. Make it first, or write elsewhere")
    return UsageError(f"{name}: cannot be written ({reason})")


def sync(handle: int) -> None:
    """Ask that what was written be on the disk before we go on; not on file systems that cannot tell."""
    try:
        os.fsync(handle)
    except OSError as problem:
        if problem.errno not in _CANNOT_SYNC:
            raise


def is_written_directly(path: Place) -> bool:
    """Whether `path` is a device, a pipe or a stream of this process, beside which nothing can be put."""
    if os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


# --- what is being written, and what was never finished


def own_mark() -> str:
    """What stands in the name of a file or folder that is being written: whose it is, and something random.

    `remove_leftovers` sees from it whether its process is still there.
    """
    return f"{_machine()}-{os.getpid()}-{secrets.token_hex(4)}"


def remove_leftovers(folder: Place, begin: str, end: str = "") -> None:
    """Delete what killed processes left of their writing: names that are `begin`, an `own_mark` and `end`.

    What a process of this machine writes goes as soon as that process is gone; whatever else there is (of other
    machines, containers or earlier versions) when it has not been touched for an hour.
    """
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        whose = name.removeprefix(begin).removesuffix(end)
        if name != begin + whose + end or not whose:
            continue
        path = os.path.join(folder, name)
        with suppress(OSError):
            if _is_left_over(path, whose):
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    os.unlink(path)


def _is_left_over(path: str, whose: str) -> bool:
    machine, _, rest = whose.partition("-")
    process = rest.partition("-")[0]
    if os.name == "posix" and machine == _machine() and process.isdecimal():
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return True
        except OSError:  # somebody else's
            return False
        return False
    return time.time() - os.lstat(path).st_mtime > _STALE_SECONDS


@cache
def _machine() -> str:
    """Of this machine since it was started, or this container: processes with one number elsewhere are others."""
    known = [socket.gethostname()]
    with suppress(OSError, ValueError):
        known.append(os.readlink("/proc/self/ns/pid"))
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            known.append(file.read())
    return f"{zlib.crc32(repr(known).encode()):08x}"
