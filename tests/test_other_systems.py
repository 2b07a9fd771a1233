"""What Windows and macOS do differently, as far as it can be tried elsewhere."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from isogloss import samples, store
from isogloss.data.formats import files
from isogloss.engine import threads as threads_module
from isogloss.tasks.align.doctor import estimate

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(("system", "writable"), [("nt", True), ("posix", False)])
def test_windows_syncs_what_it_may_write_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, writable: bool
) -> None:
    asked: list[int] = []
    real = os.open
    (tmp_path / "file").write_text("x")
    with monkeypatch.context() as patch:
        patch.setattr(store.os, "open", lambda path, flags: asked.append(flags) or real(path, flags))
        patch.setattr(store.os, "name", system)
        store._sync(tmp_path / "file")
        if system == "nt":
            store._sync(tmp_path)  # folders cannot be opened there
    assert [bool(flags & os.O_RDWR) for flags in asked] == [writable]


def test_windows_cannot_ask_a_pipe_whether_it_would_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(10038, "an operation was attempted on something that is not a socket")

    monkeypatch.setattr(files.select, "select", refuse)
    out, into = os.pipe()
    with open(out, "rb") as reader, open(into, "wb") as writer:
        writer.write(b"one line\n")
        writer.flush()
        assert files._would_wait(reader)
    (tmp_path / "file").write_text("x")
    with open(tmp_path / "file", "rb") as file:
        assert not files._would_wait(file)
    monkeypatch.undo()
    assert not files._would_wait(io.BytesIO(b"x"))


def test_doctor_counts_the_cores_of_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(threads_module, "_quota_once", lambda: 2**16)
    assert estimate(samples.bitext("en-de")).threads == 8
    assert estimate(samples.bitext("en-de"), threads=3).threads == 3


@pytest.mark.parametrize(("system", "folder"), [("Windows_NT", "Scripts"), ("", "bin")])
def test_make_finds_the_programs_of_the_environment(system: str, folder: str) -> None:
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    command = ["make", "--dry-run", "--always-make", f"OS={system}", "VENV=env", "lint"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"env/{folder}/ruff check" in done.stdout
