"""Ctrl-C at any time is one line and status 130, also while the program is still importing what it needs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from isogloss import _start, samples
from isogloss.cli import _frame

SOURCE, TARGET, GOLD = (str(samples.path("en-de", what)) for what in ("source", "target", "gold"))
TREES = str(samples.path("en-de", "source-trees"))

SCRIPT = "import sys\nfrom isogloss.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
COMMANDS = {
    "align": ["align", SOURCE, TARGET, "-o", "links"],
    "score": ["score", GOLD, GOLD],
    "tag": ["tag", "train", TREES, "--save", "tagger"],
    "doctor": ["doctor", "--environment"],
}
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")


def stopped(command: list[str], after: float, folder: Path) -> tuple[int, str]:
    """What a process says that is sent Ctrl-C so many seconds after its start."""
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, **streams) as process:
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    return process.returncode, said


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("module", [True, False])
def test_ctrl_c_in_the_first_second(arguments: list[str], module: bool, tmp_path: Path) -> None:
    (tmp_path / "isogloss").write_text(SCRIPT)  # as pip makes it
    program = [sys.executable, *(["-m", "isogloss"] if module else ["isogloss"])]
    delays = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
    with ThreadPoolExecutor(len(delays)) as pool:
        answers = list(pool.map(lambda after: stopped([*program, *arguments], after, tmp_path), delays))
    for after, (status, said) in zip(delays, answers, strict=True):
        place = f"after {after} s: {status} {said}"
        if status == 130:
            last = said.splitlines()[-1]  # a checkpoint is named where training had begun already
            assert last.startswith("isogloss: ") and "stopped by Ctrl-C" in last and "Traceback" not in said, place
        elif (
            status
        ):  # Python itself was starting or ending, and none of our files was running but the line that sees to it
            lines = said.replace("\\", "/").splitlines()
            ours = [next_one for line, next_one in pairwise(lines) if "isogloss/" in line]
            assert all("import isogloss._start" in line for line in ours), place


def test_only_the_program_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who imports the package keeps the Ctrl-C that they have."""
    assert signal.getsignal(signal.SIGINT) is not _start.end_at_once
    for argv, whole, expected in (
        (["/usr/bin/isogloss", "align"], [], True),
        (["C:\\Scripts\\isogloss.exe".replace("\\", os.sep)], [], True),
        (["-m", "align"], ["python", "-m", "isogloss", "align"], True),
        (["-m"], ["python", "-m", "pytest"], False),
        (["/usr/lib/pytest/__main__.py"], ["python", "-m", "pytest", "isogloss"], False),
        (["isogloss.py"], [], False),
        ([""], [], False),
        ([], [], False),
    ):
        monkeypatch.setattr(sys, "argv", argv)
        monkeypatch.setattr(sys, "orig_argv", whole)
        assert _start.is_program() == expected, argv


def test_compiled_code_that_is_stopped_while_it_is_imported(capfd: pytest.CaptureFixture[str]) -> None:
    """It may raise something else than what the signal raised, or nothing and hand back a status."""

    def raises() -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise SystemError("initialization raised an unreported exception") from None
        return 0

    def returns() -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return 130
        return 0

    def prints() -> int:
        """As NumPy's `import_array` does it: `PyErr_Print` calls the hook, then another exception is raised."""
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
            raise ImportError("numpy.core.multiarray failed to import") from None
        return 0

    def prints_and_goes_on() -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        time.sleep(30)
        return 0

    for work in (raises, returns, prints, prints_and_goes_on):
        assert _frame.guarded(work) == 130
        assert capfd.readouterr().err == "isogloss: stopped by Ctrl-C\n"


def test_a_signal_is_sent_again_on_windows_without_ending_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(_frame.os, "name", "nt")
    monkeypatch.setattr(_frame._thread, "interrupt_main", sent.append)
    monkeypatch.setattr(_frame.os, "kill", lambda *_: pytest.fail("os.kill ends the process there"))
    _frame._send(signal.SIGINT)
    assert sent == [signal.SIGINT]
