"""Places to write to: proved before the work begins, and the operating system's refusals in the user's words."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress

from isogloss.errors import DataError, UsageError

__all__ = ["FULL", "is_written_directly", "prove", "refusal", "sync"]

Place = str | os.PathLike[str]

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the system says when a disk, a quota or a limit has no room left."""

_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM)
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP)  # some network file systems
_BLOCK = 4096


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
    trial = os.path.join(os.path.dirname(target), f".isogloss-{secrets.token_hex(6)}.part")
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
