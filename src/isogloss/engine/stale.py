"""Throw away compiled kernels whose sources have changed.

Numba compiles what a kernel calls into it, and notices a change in the file of the kernel alone: when a function in
another file changes, as after an update, it would go on using the old one. So we keep, beside the compiled kernels,
what each of their files and all it imports of ours looked like, and remove what no longer fits.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path

__all__ = ["discard_stale"]

MANIFEST = "kernels.json"
STAMP = "isogloss-{}.warm"
_IMPORT = re.compile(r"^\s*(?:from\s+(isogloss[\w.]*)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+(isogloss[\w.]*))", re.M)


def discard_stale(package: Path, folder: Path) -> list[Path]:
    """Remove the compiled kernels of every file that changed, or imports something that did.

    Parameters
    ----------
    package : Path
        Where the sources are; kernels are in its folders called `_numba`.
    folder : Path
        Where compiled kernels are kept: the `__pycache__` of the package, which stands for those of all its folders, or
        another one.

    Returns
    -------
    list of Path
        The source files whose compiled kernels were removed. Never fails: a folder that cannot be written keeps what it
        has.
    """
    kernels = [path for place in sorted(package.rglob("_numba")) for path in sorted(place.glob("*.py"))]
    if not kernels:
        return []
    manifest = folder / MANIFEST
    before = _read(manifest)
    looks = _looks(package)
    if before.get("looks") == looks:
        return []
    sources = _Sources(package)
    now = {str(path.relative_to(package)): sources.fingerprint(path) for path in kernels}
    old = before.get("kernels", {})
    stale = [path for path in kernels if old.get(str(path.relative_to(package))) != now[str(path.relative_to(package))]]
    with suppress(OSError):
        for path in stale:
            for compiled in _compiled(path, package, folder):
                compiled.unlink(missing_ok=True)
        for stamp in folder.glob(STAMP.format("*")) if stale else ():
            stamp.unlink(missing_ok=True)  # it said that nothing is left to compile
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = manifest.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps({"looks": looks, "kernels": now}))
        unfinished.replace(manifest)
    return stale


def _read(manifest: Path) -> dict[str, dict[str, str]]:
    with suppress(OSError, ValueError):
        found = json.loads(manifest.read_text())
        if isinstance(found, dict):
            return found
    return {}


def _looks(package: Path) -> dict[str, str]:
    """Size and time of every source, which are quicker to ask for than what is in them."""
    found = {}
    for folder, _, names in os.walk(package):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                status = os.stat(path)
                found[os.path.relpath(path, package)] = f"{status.st_size} {status.st_mtime_ns}"
    return found


def _compiled(path: Path, package: Path, folder: Path) -> list[Path]:
    """What Numba has made of a file: beside it, or in the folder that it was told of."""
    beside = folder == package / "__pycache__"
    places = [path.parent / "__pycache__"] if beside else sorted(folder.glob(f"{path.parent.name}_*"))
    return [found for place in places for found in place.glob(f"{path.stem}.*.nb?")]


class _Sources:
    """Files of the package, and what they import of it."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self._imports: dict[Path, set[Path]] = {}
        self._digests: dict[Path, bytes] = {}

    def fingerprint(self, path: Path) -> str:
        """Of a file and of everything of ours that it imports, directly or not."""
        seen, waiting = {path}, [path]
        while waiting:
            for found in self._imported(waiting.pop()):
                if found not in seen:
                    seen.add(found)
                    waiting.append(found)
        return hashlib.sha256(b"".join(self._digests[one] for one in sorted(seen))).hexdigest()

    def _imported(self, path: Path) -> set[Path]:
        if path not in self._imports:
            text = path.read_bytes()
            self._digests[path] = hashlib.sha256(text).digest()
            self._imports[path] = set()
            for module, names, plain in _IMPORT.findall(text.decode("utf-8", "replace")):
                inside = self.package.joinpath(*(module or plain).split(".")[1:])
                tails = ["", *re.findall(r"\w+", names)]  # a name may be a module, too
                for place in (inside / tail for tail in tails):
                    for candidate in (place.with_suffix(".py"), place / "__init__.py"):
                        if candidate.is_file() and candidate != self.package / "__init__.py":
                            self._imports[path].add(candidate)
        return self._imports[path]
