"""Every example in a docstring is run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import isogloss

MODULES = [
    found.name
    for found in pkgutil.walk_packages(isogloss.__path__, "isogloss.")
    if "._numba" not in found.name and "._gpu" not in found.name and not found.name.endswith("__main__")
]


@pytest.mark.parametrize("name", ["isogloss", *MODULES])
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [case for name in MODULES for case in finder.find(importlib.import_module(name)) if case.examples]
    assert len(found) > 40
