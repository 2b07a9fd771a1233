"""Everything that people use has a short name: `import isogloss as ig`."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import isogloss as ig
from isogloss import store

NAMES = sorted(set(ig.__all__) - {"__version__"})


def imported_for_types() -> set[tuple[str, str]]:
    """What stands below `if TYPE_CHECKING`, for editors and checkers of types: (where it is from, name)."""
    tree = ast.parse(Path(ig.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return {(line.module, name.name) for line in block.body for name in line.names}


def test_one_list_of_names() -> None:
    assert imported_for_types() == {(home, name) for name, home in ig._HOMES.items()}
    assert set(ig._HOMES) == set(NAMES)
    assert sum(len(names.split()) for names in ig._NAMES.values()) == len(NAMES)
    assert dir(ig) == sorted(ig.__all__)


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
