"""A process that runs cases, `python -m isogloss.testing.fuzz.child`: jobs come to its standard input, a line each.

A job is an object in JSON, whose fields are those of `children.Job`. The process writes such lines to the standard
output: before each case its seed, after it what became of it, and after a job that it is done; stacks of crashes go to
standard error.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from isogloss import store
from isogloss.testing.fuzz.cases import exercise, run_case

__all__ = ["main"]

BY_THE_CLOCK = 20
"""How much longer than in processor time a case may take by the clock: machines are shared."""


def main() -> None:
    """Run jobs until there are no more, or a case ends the process."""
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # nobody else writes among the events
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)  # says where, and ends the process even within a kernel
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        _run(events, **json.loads(line))


def _run(
    events: TextIO, model: str, folder: str, scratch: str, first: int, stop: int, seconds: float, memory: int
) -> None:  # fmt: skip
    def tell(**event: Any) -> None:
        print(json.dumps(event), file=events)

    saved = store.read(folder)
    _limit_memory(None)
    exercise(store.load(folder), Path(scratch))  # kernels are compiled now, and count for no case
    _limit_memory(memory)
    for seed in range(first, stop):
        tell(seed=seed)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        faulthandler.dump_traceback_later(BY_THE_CLOCK * seconds, exit=True)
        found = run_case(model, saved, seed, Path(scratch))
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_PROF, 0)
        if isinstance(found, str):
            tell(outcome=found)
        else:
            tell(failure=asdict(found))
    tell(done=True)


def _limit_memory(more: int | None) -> None:
    """Let the process have so many bytes more than it has, or any number."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = most
    if more is not None:
        limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))


if __name__ == "__main__":
    main()
