"""Where compiled kernels are kept, so that only the first run compiles.

Numba keeps compiled code beside the source, and raises where neither that nor its own folder under the home can be
written: a read-only install in a container without a home. `ensure_cache` finds a folder, before the first kernel is
made (`numba_cache` sees to that); where there is none, or the disk fills up, kernels are compiled in every process.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path

from isogloss._version import __version__
from isogloss.engine.stale import MANIFEST, STAMP, discard_stale
from isogloss.errors import IsoglossError
from isogloss.places import prove, refusal

__all__ = ["EVERYTHING", "cold", "could_not_keep", "ensure_cache", "kernels", "mark_warm", "troubles"]

PACKAGE = Path(__file__).resolve().parent.parent
EVERYTHING = "everything"
"""The job of compiling all kernels; when it was done, no job is cold."""
_VARIABLE = "NUMBA_CACHE_DIR"
_ROOM = 64 * 2**20  # what all kernels take
_troubles: list[str] = []
_not_kept: list[Exception] = []


def could_not_keep(problem: Exception) -> None:
    """Take note that the code of a kernel could not be kept, for this reason."""
    if not _not_kept:
        _troubles.append(f"compiled kernels could not be kept ({problem}), so that the next run compiles them again")
    _not_kept.append(problem)


def troubles() -> tuple[str, ...]:
    """What went wrong with keeping kernels in this process, in sentences for the user."""
    return tuple(_troubles)


@cache
def ensure_cache() -> Path | None:
    """Choose, once in a process, the folder for compiled kernels; None when nothing can be written.

    The first of these that can be written: the folder `NUMBA_CACHE_DIR` names, the package's own `__pycache__` folders,
    ``$XDG_CACHE_HOME/isogloss`` or ``~/.cache/isogloss``, a private folder among the temporary ones. That it can be is
    found out by writing. What was compiled from sources that have changed since is removed. Imports nothing heavy,
    never fails.
    """
    folder = _chosen()
    if folder is not None:
        discard_stale(PACKAGE, folder)
    return folder


def _chosen() -> Path | None:
    named = Path(os.environ[_VARIABLE]).absolute() if os.environ.get(_VARIABLE) else None
    problem = None if named is None else _problem(named, 0o777)
    if named is not None and problem is None:
        _tell_numba(named)  # not a place that changes with the current folder
        return named
    folder = _unnamed()
    if problem is not None:
        where = "nowhere" if folder is None else f"in {folder}"
        _troubles.append(f"{_VARIABLE}: {problem}. Compiled kernels are kept {where} instead")
    elif folder is None:
        _troubles.append(f"compiled kernels can be kept nowhere, so every run compiles. Let {_VARIABLE} name a folder")
    return folder


def _unnamed() -> Path | None:
    """The first folder of our own choice that can be used; Numba is told of it."""
    beside = PACKAGE / "__pycache__"
    if all(_may_write(folder / "__pycache__") for folder in _source_folders()) and _problem(beside, 0o777) is None:
        _tell_numba(None)
        return beside
    folder = _user_folder() or _temporary_folder()
    _tell_numba(folder)
    return folder


def _source_folders() -> list[Path]:
    """The package's folders; Numba keeps the kernels of each file beside it."""
    return [Path(folder) for folder, _, files in os.walk(PACKAGE) if any(name.endswith(".py") for name in files)]


def _may_write(folder: Path) -> bool:
    """Whether the system would let us make files in `folder`, or make it; `_problem` of one of many is proof enough."""
    try:
        while not os.path.lexists(folder):
            folder = folder.parent
        return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        return False


def _problem(folder: Path, mode: int) -> str | None:
    """Make the folder, if it is not there, and prove by a file that kernels can be kept in it; else say why not."""
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        prove(folder / MANIFEST, lasting=False)
        if shutil.disk_usage(folder).free < _ROOM:
            raise OSError(errno.ENOSPC, f"kernels take {_ROOM >> 20} megabytes")
    except OSError as problem:
        return str(refusal(folder, problem))
    except IsoglossError as problem:
        return str(problem)
    return None


def _made(folder: Path) -> bool:
    """Make `folder` for its owner alone: what lies there will be run as code."""
    return _problem(folder, 0o700) is None


def _user_folder() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(base):  # no home is known; a relative XDG_CACHE_HOME is to be ignored
        return None
    folder = Path(base, "isogloss", "kernels")
    return folder if _made(folder) else None


def _temporary_folder() -> Path | None:
    try:
        base = tempfile.gettempdir()
    except OSError:
        return None
    own = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(base, f"isogloss-kernels-{own}")
    if not _made(folder):
        return None
    found = folder.lstat()
    if os.name == "posix" and (found.st_uid != own or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077):
        return None  # somebody else made it, and could put code there
    return folder


def _tell_numba(folder: Path | None) -> None:
    """Let Numba keep kernels in the folder; None leaves it to Numba, which then keeps them beside their sources."""
    if folder is None:
        os.environ.pop(_VARIABLE, None)
    else:
        os.environ[_VARIABLE] = str(folder)
    config = sys.modules.get("numba.core.config")
    if config is not None:  # it has read the variable already
        config.CACHE_DIR = "" if folder is None else str(folder)  # type: ignore[attr-defined]


def kernels() -> list[Path]:
    """The files of compiled code that are kept."""
    folder = ensure_cache()
    if folder is None:
        return []
    return sorted((PACKAGE if folder == PACKAGE / "__pycache__" else folder).rglob("*.nbc"))


def _stamp(job: str) -> Path | None:
    """The file that says: on this machine, with these versions, the kernels of `job` have been compiled."""
    folder = ensure_cache()
    if folder is None:
        return None
    from importlib.metadata import version

    from llvmlite.binding import get_host_cpu_name  # type: ignore[import-untyped]

    python = f"py{sys.version_info[0]}{sys.version_info[1]}"
    key = [__version__, python, version("numba"), get_host_cpu_name(), job]
    return folder / STAMP.format("-".join("".join(c if c.isalnum() else "." for c in part) for part in key))


def cold(job: str = "kernels") -> bool:
    """Whether the kernels of `job` have still to be compiled here, so that the first run can say why it takes longer.

    A guess: true until `mark_warm` was called for the same versions of Isogloss, Python and Numba and the same kind of
    processor, and true always where nothing can be kept.
    """
    stamps = [_stamp(job), _stamp(EVERYTHING)]
    return not any(stamp is not None and stamp.exists() for stamp in stamps)


def mark_warm(job: str = "kernels") -> None:
    """Remember that the kernels of `job` are compiled and kept; call it at the end of a run that used them."""
    stamp = _stamp(job)
    if stamp is not None and not _not_kept:
        try:
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()
        except OSError:
            return  # the next run says once more that it compiles; nothing else is lost
