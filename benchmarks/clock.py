"""The clock around a whole command: wall seconds, CPU seconds of its process tree, and peak memory.

The command is started by a tiny process of its own (this file, run as a script): Linux counts the memory of the parent
at the moment of starting into the peak of the child, and the harness with its tables is larger than some peers.
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False  # as in typing, which the small process does without
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MEBIBYTE_IN_KIBIBYTES = 1024


def measure(
    command: Sequence[str | Path],
    stdout: Path | None = None,
    threads: int | None = None,
    log: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Run a command and return {"seconds", "cpu_seconds", "peak_mb"}.

    Parameters
    ----------
    command : sequence of str or path
    stdout : path, optional
        Where its output goes; by default nowhere.
    threads : int, optional
        Pin the command to that many cores and tell OpenMP so: some programs take more than they are given.
    log : path, optional
        Where its messages go; their end is quoted if the command fails.
    environment : mapping, optional
        Variables beside those of this process.

    Notes
    -----
    `cpu_seconds` adds up the process and all it waited for. `peak_mb` is the largest single process of the tree, which
    is kind to programs that work in several processes.
    """
    import subprocess

    launcher = [sys.executable, "-I", "-S", os.path.abspath(__file__), str(threads or 0)]
    result = subprocess.run(
        launcher + [str(stdout or os.devnull), str(log or os.devnull)] + [str(part) for part in command],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, **(environment or {})},
    )
    report: dict[str, float] = json.loads(result.stdout)
    if report.pop("status") != 0:
        said = ""
        if log is not None and os.path.exists(log):
            with open(log, errors="replace") as file:
                said = "".join(file.readlines()[-5:]).strip()
        raise RuntimeError(f"{os.path.basename(command[0])} failed: {said or 'no message'}")
    return report


def _launch(threads: int, stdout: str, log: str, command: list[str]) -> dict[str, float]:
    environment = dict(os.environ)
    if threads:
        environment["OMP_NUM_THREADS"] = str(threads)
        cores = sorted(os.sched_getaffinity(0))
        first = os.getpid() % max(1, len(cores) - threads + 1)  # two harnesses at once should not share a core
        os.sched_setaffinity(0, cores[first : first + threads])
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(stdout, flags, 0o644), 1)
            os.dup2(os.open(log, flags, 0o644), 2)
            os.execvpe(command[0], command, environment)
        finally:
            os._exit(127)
    _, status, usage = os.wait4(child, 0)
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / MEBIBYTE_IN_KIBIBYTES,
        "status": os.waitstatus_to_exitcode(status),
    }


if __name__ == "__main__":
    json.dump(_launch(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]), sys.stdout)
