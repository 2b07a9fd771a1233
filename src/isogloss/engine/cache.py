"""Where compiled kernels are kept, so that only the first run compiles.

Numba keeps compiled code beside the source, and raises where neither that nor its own folder under the home can be
written: a read-only install in a container without a home. `ensure_cache` finds a folder before the first kernel is
imported, and when there is none at all, lets kernels compile in every process instead.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path

from isogloss._version import __version__
from isogloss.engine.stale import discard_stale

__all__ = ["cold", "ensure_cache", "mark_warm"]

PACKAGE = Path(__file__).resolve().parent.parent
_VARIABLE = "NUMBA_CACHE_DIR"
_ROOM = 64 * 2**20  # Numba lets an error of a full disk through to the caller of a kernel


@cache
def ensure_cache() -> Path | None:
    """Choose, once in a process, the folder for compiled kernels; None when nothing can be written.

    The first of these that can be written: the folder `NUMBA_CACHE_DIR` names, the package's own `__pycache__` folders,
    ``$XDG_CACHE_HOME/isogloss`` or ``~/.cache/isogloss``, a private folder among the temporary ones. What was compiled
    from sources that have changed since is removed. Cheap, imports nothing heavy, never fails. Call it before the first
    kernel is imported.
    """
    folder = _chosen()
    if folder is not None:
        discard_stale(PACKAGE, folder)
    return folder


def _chosen() -> Path | None:
    named = os.environ.get(_VARIABLE)
    if named and _writable(Path(named)):
        return Path(named)
    if all(_writable(folder / "__pycache__") for folder in _source_folders()):
        return PACKAGE / "__pycache__"
    for folder in (_user_folder(), _temporary_folder()):
        if folder is not None:
            _tell_numba(folder)
            return folder
    _do_without()
    return None


def _source_folders() -> list[Path]:
    """The package's folders; Numba keeps the kernels of each file beside it."""
    return [Path(folder) for folder, _, files in os.walk(PACKAGE) if any(name.endswith(".py") for name in files)]


def _writable(folder: Path) -> bool:
    """Whether files can be made in `folder`, or could be once it is made, with some room on the disk."""
    try:
        while not os.path.lexists(folder):
            folder = folder.parent
        return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) and shutil.disk_usage(folder).free > _ROOM
    except OSError:
        return False


def _made(folder: Path) -> bool:
    """Make `folder` for its owner alone, and prove it by a file: what lies there will be run as code."""
    try:
        if not _writable(folder):
            return False
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


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


def _tell_numba(folder: Path) -> None:
    os.environ[_VARIABLE] = str(folder)
    numba = sys.modules.get("numba")
    if numba is not None:  # it has read the variable already
        numba.config.CACHE_DIR = str(folder)


def _do_without() -> None:
    """Make `cache=True` mean nothing in this process, where Numba would raise instead."""
    from numba.core.dispatcher import Dispatcher

    Dispatcher.enable_caching = lambda self: None  # type: ignore[method-assign]


def _stamp(job: str) -> Path | None:
    """The file that says: on this machine, with these versions, the kernels of `job` have been compiled."""
    folder = ensure_cache()
    if folder is None:
        return None
    from importlib.metadata import version

    from llvmlite.binding import get_host_cpu_name  # type: ignore[import-untyped]

    python = f"py{sys.version_info[0]}{sys.version_info[1]}"
    key = [__version__, python, version("numba"), get_host_cpu_name(), job]
    return folder / ("isogloss-" + "-".join("".join(c if c.isalnum() else "." for c in part) for part in key) + ".warm")


def cold(job: str = "kernels") -> bool:
    """Whether the kernels of `job` have still to be compiled here, so that the first run can say why it takes longer.

    A guess: true until `mark_warm` was called for the same versions of Isogloss, Python and Numba and the same kind of
    processor, and true always where nothing can be kept.
    """
    stamp = _stamp(job)
    return stamp is None or not stamp.exists()


def mark_warm(job: str = "kernels") -> None:
    """Remember that the kernels of `job` are compiled; call it at the end of a run that used them."""
    stamp = _stamp(job)
    if stamp is not None:
        try:
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()
        except OSError:
            return  # the next run says once more that it compiles; nothing else is lost
