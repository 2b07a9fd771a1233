"""Everything that people use has a short name: `import isogloss as ig`."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import isogloss as ig
from isogloss import store

NAMES = sorted(set(ig.__all__) - {"__version__"})
ROOT = Path(ig.__file__).parent
LAZY = sorted(
    ".".join(("isogloss", *file.parent.relative_to(ROOT).parts))
    for file in ROOT.rglob("__init__.py")
    if "lazily(" in file.read_text(encoding="utf-8")
)
"""Packages whose names are imported when they are asked for."""


def imported_for_types(package: str, block: list[ast.stmt]) -> set[tuple[str, str]]:
    """What stands below `if TYPE_CHECKING`, for editors and checkers of types: (where it is from, name)."""
    found = set()
    for line in block:
        assert isinstance(line, ast.ImportFrom) and line.module is not None
        home = "." if line.module == package else line.module.removeprefix(package)
        found |= {(home, name.name) for name in line.names}
    return found


@pytest.mark.parametrize("package", LAZY)
def test_one_list_of_names(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    (made,) = (node.value for node in block.orelse if isinstance(node, ast.Assign))
    assert isinstance(made, ast.Call)
    told = [(home, name) for home, names in ast.literal_eval(made.args[1]).items() for name in names.split()]
    assert len(told) == len(set(told))
    assert set(told) == imported_for_types(package, block.body)
    imported = {name.name for line in tree.body if isinstance(line, ast.ImportFrom) for name in line.names}
    given = {name for _, name in told}
    assert given == set(module.__all__) - imported - {"__version__"}
    modules = {path.stem for path in Path(module.__file__).parent.iterdir()}
    assert given & modules <= {name for home, name in told if home == "."}
    assert dir(module) == sorted(module.__all__)


@pytest.mark.parametrize("package", LAZY)
def test_every_name_of_a_package_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert all(getattr(module, name) is getattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_what_it_says(name: str) -> None:
    found = getattr(ig, name)
    assert getattr(found, "__name__", name).split(".")[-1] == name
    assert getattr(ig, name) is found


def test_whatever_can_be_saved_has_a_short_name() -> None:
    assert {home.partition(":")[2] for home in store.KINDS.values()} <= set(NAMES)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'isogloss' has no attribute 'HMMAlinger'"):
        _ = ig.HMMAlinger  # type: ignore[attr-defined]


def test_the_import_brings_nothing_heavy() -> None:
    script = "import sys, isogloss; print([name for name in ('numpy', 'numba', 'scipy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
