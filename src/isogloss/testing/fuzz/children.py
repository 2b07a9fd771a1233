"""Many cases in processes of their own, since a case may end its process, or not end at all.

A child says which case it begins before it begins it. When it dies, another goes on behind that case.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from isogloss import store
from isogloss.errors import DataError
from isogloss.testing.fuzz.cases import Case, Failure, place_of

__all__ = ["Report", "fuzz"]

SECONDS = 5.0
"""Processor time that a case may take."""
MEMORY = 2**30
"""Bytes that a case may take."""
_PATIENCE = 12
"""How much longer a case may take that may have had to compile kernels."""
CHILD = (sys.executable, "-m", "isogloss.testing.fuzz.child")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass
class Report:
    """What became of some cases."""

    failures: list[Failure] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    tell: Callable[[Failure], None] | None = None

    def add(self, failure: Failure) -> None:
        self.failures.append(failure)
        self.outcomes["failed"] += 1
        if self.tell is not None:
            self.tell(failure)


def fuzz(
    model: str,
    folder: Path,
    first: int = 0,
    count: int = 100,
    *,
    kernels: Path | None = None,
    tell: Callable[[Failure], None] | None = None,
) -> Report:
    """Run cases of a saved model.

    Parameters
    ----------
    model : str
        Its name in `isogloss.testing.fuzz.models.MODELS`; seeds are those of the name.
    folder : path
        Where it was saved.
    first, count : int
        The seeds.
    kernels : path, optional
        Check the bounds of every access in kernels, which are kept in this folder. Compiling them takes minutes.
    tell : function, optional
        Called with each failure as soon as it is known.
    """
    report, stop, known = Report(tell=tell), first + count, set[tuple[str, str]]()
    with tempfile.TemporaryDirectory(dir=_quick_place()) as scratch:
        children = _Children(model, folder, Path(scratch), kernels)
        while first < stop:
            death = children.run(range(first, stop), report)
            if death is None:
                break
            first = death.seed + 1
            if (death.error, death.place) in known:
                death = replace(death, message=f"{death.message}, not tried again: another case failed there")
            else:
                confirmed = children.confirmed(death)
                if confirmed is None:
                    report.outcomes["compiled"] += 1
                    continue
                death = confirmed
            known.add((death.error, death.place))
            report.add(death)
    return report


def _quick_place() -> str | None:
    """A folder in memory, if there is one: models are written and read all the time."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@dataclass(frozen=True)
class _Children:
    """Starts processes that run cases of one model."""

    model: str
    folder: Path
    scratch: Path
    kernels: Path | None

    def run(self, seeds: range, report: Report, patience: int = 1) -> Failure | None:
        """Run cases until one of them ends the process, which is then given back."""
        seed = -1
        seconds, memory = patience * SECONDS, patience * MEMORY
        command = (*CHILD, self.model, self.folder, self.scratch, seeds.start, seeds.stop, seconds, memory)
        with tempfile.TemporaryFile("w+", errors="replace") as stderr:
            with subprocess.Popen(
                list(map(str, command)), stdout=subprocess.PIPE, stderr=stderr, env=self._environment(), text=True
            ) as child:
                assert child.stdout is not None
                for line in child.stdout:
                    event = json.loads(line)
                    seed = event.get("seed", seed)
                    if "failure" in event:
                        report.add(Failure(**event["failure"]))
                    elif "outcome" in event:
                        report.outcomes[event["outcome"]] += 1
            stderr.seek(0)
            said = stderr.read()
        if child.returncode == 0:
            return None
        slow = child.returncode == -signal.SIGPROF or "Timeout (" in said
        if seed < 0 or (child.returncode > 0 and not slow):
            raise DataError(
                f"{self.model}, seed {seed}: the process that runs cases broke down itself:\n{said[-3000:]}"
            )
        return self._death(seed, said, "too slow" if slow else "crash", signal.Signals(-child.returncode).name)

    def _environment(self) -> dict[str, str]:
        found = os.environ | {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        if self.kernels is not None:
            found |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(self.kernels)}
        return found

    def _death(self, seed: int, said: str, error: str, signal_name: str) -> Failure:
        place = place_of((file, int(line)) for file, line in _FRAME.findall(said))
        change = Case.of(self.model, store.read(self.folder), seed, self.scratch).change
        return Failure(self.model, seed, error, place, signal_name, change)

    def confirmed(self, death: Failure) -> Failure | None:
        """The same failure, found by the case alone; None when all it did was to compile kernels."""
        alone = range(death.seed, death.seed + 1)
        if death.error == "too slow":
            patient = self.run(alone, Report(), _PATIENCE)
            if patient is not None:
                return replace(patient, message=f"takes more than {_PATIENCE * SECONDS:.0f} s")
        again = self.run(alone, Report())
        if again is None and death.error == "crash":
            return replace(death, message=f"{death.message}, but not alone: cases before it may have broken memory")
        return again
