"""The README does what it says: its Python is a doctest, its shell lines are run, and its output is compared."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def assert_same(text: str, expected: str, command: str) -> None:
    """The same words; numbers may differ in the last places, as processors do."""
    number = r"\d+\.\d+"
    assert re.sub(number, "#", text) == re.sub(number, "#", expected), command
    found, promised = (list(map(float, re.findall(number, part))) for part in (text, expected))
    assert found == pytest.approx(promised, abs=0.02), command


def test_python_of_the_readme(here: Path) -> None:
    (code,) = blocks("python")
    test = doctest.DocTestParser().get_doctest(code, {}, "README", str(README), 0)
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert result.attempted >= 8
    assert result.failed == 0


def test_commands_of_the_readme(here: Path) -> None:
    (script,) = blocks("console")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = 0
    for part in re.split(r"^\$ ", script, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, env={**os.environ, "PATH": path}, check=False
        )
        assert done.returncode == 0, done.stderr
        assert_same(done.stdout, expected, command)
        ran += 1
    assert ran >= 5
    assert "<html" in (here / "page.html").read_text(encoding="utf-8")


def test_readme_fits_a_screen_and_names_no_machine() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 110
    assert not re.search(r"/(root|home|tmp|work)/", text)
