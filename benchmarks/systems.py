"""The aligners that are compared, each run as a program of its own with the flags its authors recommend."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.clock import measure
from benchmarks.corpora import Set

EFLOMAL_REQUIREMENT = "eflomal==2.0.0"
FAST_ALIGN_COMMIT = "cab1e9a"
ISOGLOSS, EFLOMAL, FAST_ALIGN = "isogloss", "eflomal", "fast_align"


class NotHere(Exception):
    """A peer that this machine does not have; the message says how to get it."""


@dataclass(frozen=True)
class Run:
    """What a system wrote for a text, and what it cost."""

    forward: Path
    backward: Path | None
    seconds: float
    cpu_seconds: float
    peak_mb: float
    command: str


@dataclass(frozen=True)
class System:
    """A program that aligns: `run` clocks it on the text of a set.

    `random` says that two runs differ, so that quality is a mean over runs. `command` in a `Run` is written with plain
    file names, so that rows read the same on every machine.
    """

    name: str
    version: str
    program: tuple[str, ...]
    options: tuple[str, ...] = ()
    random: bool = field(default=False)

    def run(self, data: Set, threads: int, number: int = 1, repeat: int = 1) -> Run:
        """Align the text of a set; the best of `repeat` times by the wall clock."""
        data.assemble()
        place = self.place(data, threads, number)
        place.mkdir(parents=True, exist_ok=True)
        (place / "cost.json").unlink(missing_ok=True)  # written last: a run cut short is no run
        best = min((self._once(data, place, threads) for _ in range(repeat)), key=lambda run: run.seconds)
        cost = {"seconds": best.seconds, "cpu_seconds": best.cpu_seconds, "peak_mb": best.peak_mb}
        (place / "cost.json").write_text(json.dumps(cost | {"command": best.command}))
        return best

    def kept(self, data: Set, threads: int, number: int = 1) -> Run | None:
        """The last run with these settings, if its output is still there."""
        place = self.place(data, threads, number)
        if not (place / "cost.json").exists():
            return None
        return Run(*self._outputs(place), **json.loads((place / "cost.json").read_text()))

    def place(self, data: Set, threads: int, number: int) -> Path:
        extra = "".join(f" {option}" for option in self.options).replace("/", "_")
        return data.place / f"{self.name}-{self.version}{extra} threads={threads} run={number}".replace(" ", "+")

    def _outputs(self, place: Path) -> tuple[Path, Path | None]:
        return place / "forward.txt", (None if self.name == ISOGLOSS else place / "backward.txt")

    def _once(self, data: Set, place: Path, threads: int) -> Run:
        forward, backward = self._outputs(place)
        shown = Path(self.program[-1]).name
        flags: list[Any]
        if self.name == ISOGLOSS:
            flags = ["align", data.source, data.target, "-o", forward, "--threads", str(threads), *self.options]
            cost = measure([*self.program, *flags], threads=threads, log=place / "log.txt")
            tail = "".join(f" {option}" for option in self.options)
            command = f"{shown} align SOURCE TARGET -o LINKS --threads {threads}{tail}"
        elif self.name == EFLOMAL:
            flags = ["--overwrite", "-s", data.source, "-t", data.target, "-f", forward, "-r", backward]
            cost = measure([*self.program, *flags], threads=threads, log=place / "log.txt")
            command = f"{shown} -s SOURCE -t TARGET -f FORWARD -r BACKWARD"
        else:
            flags = ["-i", data.joint, "-d", "-o", "-v"]
            there = measure([*self.program, *flags], forward, threads, log=place / "log.txt")
            back = measure([*self.program, *flags, "-r"], backward, threads, log=place / "log.txt")
            cost = {name: there[name] + back[name] for name in ("seconds", "cpu_seconds")}
            cost["peak_mb"] = max(there["peak_mb"], back["peak_mb"])
            command = f"{shown} -i JOINT -d -o -v > FORWARD; {shown} -i JOINT -d -o -v -r > BACKWARD"
        return Run(forward, backward, command=command, **cost)


def find(name: str, options: tuple[str, ...] = ()) -> System:
    """The system of that name, installed if need be; `options` are further arguments for Isogloss."""
    if name == ISOGLOSS:
        from isogloss import __version__

        return System(ISOGLOSS, __version__, (str(Path(sys.executable).with_name("isogloss")),), options)
    if name == EFLOMAL:
        program = Path(os.environ.get("EFLOMAL") or _install_eflomal())
        python = program.with_name("python")
        version = subprocess.run(
            [python, "-c", "import importlib.metadata as m; print(m.version('eflomal'))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        return System(EFLOMAL, version, (str(python), str(program)), random=True)
    if name == FAST_ALIGN:
        program_name = os.environ.get("FAST_ALIGN") or shutil.which("fast_align")
        if not program_name:
            raise NotHere("fast_align: set FAST_ALIGN to its program (build it from github.com/clab/fast_align).")
        return System(FAST_ALIGN, os.environ.get("FAST_ALIGN_VERSION", FAST_ALIGN_COMMIT), (program_name,))
    raise SystemExit(f"--systems: {name!r} should be one of {ISOGLOSS}, {EFLOMAL}, {FAST_ALIGN}")


def _install_eflomal() -> Path:
    """A private environment with eflomal, which is GPL and therefore only ever run beside us, never imported."""
    program = Path("out/peers/bin/eflomal-align")
    if not program.exists():
        print(f"installing {EFLOMAL_REQUIREMENT} under out/peers", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "out/peers"], check=True)
        install = ["out/peers/bin/python", "-m", "pip", "install", "--quiet", EFLOMAL_REQUIREMENT]
        if subprocess.run(install).returncode:
            raise NotHere("eflomal: pip could not install it; set EFLOMAL to its eflomal-align.")
    return program.absolute()
