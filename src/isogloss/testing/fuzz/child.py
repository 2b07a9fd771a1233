"""A process that runs cases: `python -m isogloss.testing.fuzz.child MODEL FOLDER SCRATCH FIRST STOP SECONDS MEMORY`.

It writes a line of JSON to the standard output before each case and after it; stacks of crashes go to standard error.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from isogloss import store
from isogloss.testing.fuzz.cases import exercise, run_case

__all__ = ["main"]

BY_THE_CLOCK = 20
"""How much longer than in processor time a case may take by the clock: machines are shared."""


def main(given: Sequence[str]) -> None:
    """Run cases until one of them ends the process."""
    model, (folder, scratch), (first, stop) = given[0], map(Path, given[1:3]), map(int, given[3:5])
    seconds, memory = float(given[5]), int(given[6])
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # nobody else writes among the events
    faulthandler.enable()
    warnings.simplefilter("ignore")
    saved = store.read(folder)
    exercise(store.load(folder), scratch)  # kernels are compiled now, and count for no case
    _limit_memory(memory)
    faulthandler.register(signal.SIGPROF, chain=True)  # says where, and ends the process even within a kernel
    for seed in range(first, stop):
        print(json.dumps({"seed": seed}), file=events)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        faulthandler.dump_traceback_later(BY_THE_CLOCK * seconds, exit=True)
        found = run_case(model, saved, seed, scratch)
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps({"outcome": found} if isinstance(found, str) else {"failure": asdict(found)}), file=events)


def _limit_memory(more: int) -> None:
    """Let the process have so many bytes more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main(sys.argv[1:])
