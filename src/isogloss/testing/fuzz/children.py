"""Many cases in a process of their own, since a case may end its process, or not end at all.

A child says which case it begins before it begins it. When it dies, another goes on behind that case. One that lives
takes the next model: to start it, and to load kernels, takes longer than some tens of cases.
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
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Self

from isogloss import store
from isogloss.errors import DataError
from isogloss.testing.fuzz.cases import Case, Failure, place_of

__all__ = ["Children", "Report", "fuzz"]

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
    children: Children | None = None,
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
    children : Children, optional
        Who runs them, also for other models; a process for this model alone if not given.
    tell : function, optional
        Called with each failure as soon as it is known.
    """
    if children is None:
        with Children() as own:
            return fuzz(model, folder, first, count, children=own, tell=tell)
    report, stop, known = Report(tell=tell), first + count, set[tuple[str, str]]()
    with tempfile.TemporaryDirectory(dir=_quick_place()) as scratch:
        job = Job(model, str(folder), scratch, first, stop, SECONDS, MEMORY)
        while job.first < stop:
            death = children.run(job, report)
            if death is None:
                break
            job = replace(job, first=death.seed + 1)
            if (death.error, death.place) in known:
                death = replace(death, message=f"{death.message}, not tried again: another case failed there")
            else:
                confirmed = children.confirmed(job, death)
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
class Job:
    """Cases of one model: where it is saved, their seeds, and what each may take."""

    model: str
    folder: str
    scratch: str
    first: int
    stop: int
    seconds: float
    memory: int


class Children:
    """A process that runs cases, and another in its place when it dies; to be used in a ``with`` statement.

    Parameters
    ----------
    kernels : path, optional
        Check the bounds of every access in kernels, which are kept in this folder. Compiling them takes minutes.
    """

    def __init__(self, kernels: Path | None = None) -> None:
        self.kernels = kernels
        self._child: subprocess.Popen[str] | None = None
        self._stderr: IO[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self._close()

    def run(self, job: Job, report: Report) -> Failure | None:
        """Run cases until one of them ends the process, which is then given back."""
        child, stderr = self._started()
        assert child.stdin is not None and child.stdout is not None
        begun, seed = os.fstat(stderr.fileno()).st_size, -1
        print(json.dumps(asdict(job)), file=child.stdin, flush=True)
        for line in child.stdout:
            event: dict[str, Any] = json.loads(line)
            seed = event.get("seed", seed)
            if "failure" in event:
                report.add(Failure(**event["failure"]))
            elif "outcome" in event:
                report.outcomes[event["outcome"]] += 1
            elif "done" in event:
                return None
        status = child.wait()
        stderr.seek(begun)
        said = stderr.read()
        self._close()
        slow = status == -signal.SIGPROF or "Timeout (" in said
        if seed < 0 or (status >= 0 and not slow):
            raise DataError(f"{job.model}, seed {seed}: the process that runs cases broke down itself:\n{said[-3000:]}")
        what = signal.Signals(-status).name if status < 0 else "by the clock"
        return _death(job, seed, said, "too slow" if slow else "crash", what)

    def confirmed(self, job: Job, death: Failure) -> Failure | None:
        """The same failure, found by the case alone in a fresh process; None when all it did was to compile kernels."""
        alone = replace(job, first=death.seed, stop=death.seed + 1)
        if death.error == "too slow":
            patient = self.run(replace(alone, seconds=_PATIENCE * SECONDS, memory=_PATIENCE * MEMORY), Report())
            if patient is not None:
                return replace(patient, message=f"takes more than {_PATIENCE * SECONDS:.0f} s")
        again = self.run(alone, Report())
        if again is None and death.error == "crash":
            return replace(death, message=f"{death.message}, but not alone: cases before it may have broken memory")
        return again

    def _started(self) -> tuple[subprocess.Popen[str], IO[str]]:
        """The process that is there, or a new one."""
        if self._child is not None and self._child.poll() is not None:
            self._close()
        if self._child is None or self._stderr is None:
            environment = os.environ | {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            if self.kernels is not None:
                environment |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(self.kernels)}
            self._stderr = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - as long as the process
            self._child = subprocess.Popen(
                list(CHILD), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, env=environment,
                text=True,
            )  # fmt: skip
        return self._child, self._stderr

    def _close(self) -> None:
        """End the process, if it has not ended, and forget it."""
        if self._child is not None:
            with self._child as child:  # it ends with its input
                assert child.stdin is not None
                child.stdin.close()
        if self._stderr is not None:
            self._stderr.close()
        self._child = self._stderr = None


def _death(job: Job, seed: int, said: str, error: str, message: str) -> Failure:
    place = place_of((file, int(line)) for file, line in _FRAME.findall(said))
    change = Case.of(job.model, store.read(job.folder), seed, Path(job.scratch)).change
    return Failure(job.model, seed, error, place, message, change)
