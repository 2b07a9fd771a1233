"""Names of a package that are imported when they are asked for, so that a command pays only for what it uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazily"]


def lazily(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` of a package.

    A package says its names twice: in imports below ``if TYPE_CHECKING``, for editors and checkers of types, and to
    `lazily`, for Python. `tests/test_names.py` holds both and `__all__` together. A name that is also that of a module
    in the package cannot be given: once that module is imported, the name stands for it.

    Parameters
    ----------
    package : str
        `__name__` of the package.
    names : dict of str to str
        Module to its names, with spaces between them. Modules of the package begin with a dot; ``"."`` stands for
        modules that are names themselves.

    Examples
    --------
    >>> get, names = lazily("isogloss.data", {".ragged": "Ragged", ".bitext": "Bitext Text"})
    >>> get("Ragged")
    <class 'isogloss.data.ragged.Ragged'>
    >>> names()[:2]                             # all that `__all__` has
    ['Alignment', 'Bitext']
    """
    homes = {name: home for home, several in names.items() for name in several.split()}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        found = import_module(f".{name}", package) if home == "." else getattr(import_module(home, package), name)
        setattr(sys.modules[package], name, found)
        return found

    def listed() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return get, listed
