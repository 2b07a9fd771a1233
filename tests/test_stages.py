"""Folders of stages: what a killed process leaves in them, and what is none of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from isogloss.errors import UsageError
from isogloss.places import own_mark
from isogloss.tasks.transfer.stages import FILE, Stages


def test_a_run_that_was_killed_while_it_began_goes_on(tmp_path: Path) -> None:
    """Killed after the folder was made and before its first file had its name."""
    (tmp_path / f".{FILE}.{own_mark()}.part").write_bytes(b'{"see')
    Stages(tmp_path, True, {"seed": 0})
    assert (tmp_path / FILE).read_text() == '{"seed": 0}'
    with pytest.raises(UsageError, match="other options"):
        Stages(tmp_path, True, {"seed": 1})


@pytest.mark.parametrize("name", ["letter.txt", ".letter", "letter.part"])
def test_files_of_others_are_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("dear")
    with pytest.raises(UsageError, match="it has other files"):
        Stages(tmp_path, False, {})
    assert [file.name for file in tmp_path.iterdir()] == [name]
