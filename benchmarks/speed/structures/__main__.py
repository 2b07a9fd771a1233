"""Speed of structures, side by side: python -m benchmarks.speed.structures [--tasks ...] [--sizes ...] [--tries ...].

We and the peers take turns on the same numbers, so that what disturbs the machine disturbs all; the best of several
tries is kept. Peers run in the Python that STRUCTURE_PEERS names (torch, torch-struct, python-crfsuite); without it,
only our rows are made. Rows go to benchmarks/speed/structures.csv and replace those of the same problem and system.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import rows
from benchmarks.speed.structures import ours
from isogloss import __version__

SIZES = (10, 20, 40, 80)
COLUMNS = (
    *("date", "machine", "commit", "task", "size", "labels", "batch", "system", "threads"),
    *("seconds", "cpu_seconds", "microseconds_each", "tries", "check", "command"),
)
Result = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One kind of problem: our side, and who else can do it."""

    name: str
    work: Callable[[int, int, int], ours.Work]
    cells: int
    """A batch is so large that its sentences have about this many positions to the power."""
    power: int = 1
    labels: tuple[int, ...] = (0,)
    sizes: tuple[int, ...] = SIZES
    peer: bool = False
    also: dict[str, Callable[[int, int, int], ours.Work]] | None = None
    """Rivals that run in this process, by name."""

    def batch(self, n: int) -> int:
        return max(1, min(2000, self.cells // n**self.power))


TASKS = (
    Task("chain", ours.chain, 20_000, labels=(17, 45), peer=True),
    Task("crf", ours.crf, 20_000, labels=(17, 45), peer=True),
    Task("projective", ours.projective, 4_000_000, 3, peer=True),
    Task("spanning", ours.spanning, 4_000_000, 3, peer=True),
    Task("spans", ours.spans, 800_000, 3, labels=(20,), peer=True),
    Task("grammar", ours.grammar, 200_000, 3, labels=(10,), sizes=(10, 20, 40), peer=True),
    Task("matching", ours.matching, 400_000, 2, also={"scipy": ours.scipy_matching}),
    Task("itg pruned", ours.itg_pruned, 1, sizes=(10, 20, 40)),
    Task("itg", ours.itg, 1, sizes=(5, 10, 15)),
    Task("bp link+ptree", ours.bp("link+ptree"), 1),
    Task("bp link+tree", ours.bp("link+tree"), 1),
    Task("bp link+ptree+grand", ours.bp("link+ptree+grand"), 1),
    Task("bp link+ptree+nocross", ours.bp("link+ptree+nocross"), 1),
    Task("bp link+ptree+grand+nocross", ours.bp("link+ptree+grand+nocross"), 1),
)


class Peers:
    """The other Python, kept running, so that it too is warm."""

    def __init__(self, python: str) -> None:
        script = Path(__file__).with_name("peers.py")
        self.process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def solve(self, **problem: object) -> Result:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(problem) + "\n")
        self.process.stdin.flush()
        answer: Result = json.loads(self.process.stdout.readline() or '{"absent": "the peers ended"}')
        return answer


@contextmanager
def peers() -> Iterator[Peers | None]:
    python = os.environ.get("STRUCTURE_PEERS")
    if not python:
        print("left out: peers (STRUCTURE_PEERS names no Python that has them)", file=sys.stderr)
        yield None
        return
    found = Peers(python)
    try:
        yield found
    finally:
        found.process.terminate()


def clock(work: ours.Work) -> Result:
    start, cpu = time.perf_counter(), time.process_time()
    check = work()
    return {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu, "check": check}


def side_by_side(task: Task, n: int, labels: int, threads: int, tries: int, others: Peers | None) -> None:
    """Clock everybody on one problem, in turns, and write a row for each."""
    batch = task.batch(n)
    mine = {f"isogloss {__version__}": task.work, **(task.also or {})}
    works = {name: ours.threaded(prepare(n, batch, labels), threads) for name, prepare in mine.items()}
    runs: dict[str, list[Result]] = {}
    for work in works.values():
        work()  # compiled and warm
    for attempt in range(tries + 1):
        for name, work in works.items():
            runs.setdefault(name, []).append(clock(work))
        if task.peer and others is not None:
            found = others.solve(task=task.name, n=n, batch=batch, labels=labels, threads=threads)
            if "absent" in found:
                print(f"left out: {found['absent']}", file=sys.stderr)
                others = None
            elif attempt:  # its first is for warming up
                runs.setdefault(found["system"], []).append(found)
    for name, results in runs.items():
        best = min(results, key=lambda result: float(result["seconds"]))
        row = {
            "date": rows.today(),
            "machine": rows.machine(),
            "commit": rows.commit(),
            "task": task.name,
            "size": n,
            "labels": labels,
            "batch": batch,
            "system": name,
            "threads": threads,
            "seconds": f"{best['seconds']:.6f}",
            "cpu_seconds": f"{best['cpu_seconds']:.6f}",
            "microseconds_each": f"{best['seconds'] / batch * 1e6:.2f}",
            "tries": len(results),
            "check": f"{best['check']:.6g}",
            "command": f"python -m benchmarks.speed.structures --tasks '{task.name}' --sizes {n} --threads {threads}",
        }
        table_file().put([row])
        print(
            f"{task.name:28} {n:4} {labels or '':4} {name:24} {row['microseconds_each']:>12} µs each "
            f"{row['cpu_seconds']:>10} CPU s  check {row['check']}",
            file=sys.stderr,
        )


def table_file() -> rows.Rows:
    path = Path(__file__).parent.parent / "structures.csv"
    return rows.Rows(path, COLUMNS, ("task", "size", "labels", "system", "threads"))


def current_rows() -> list[rows.Row]:
    """The rows, of each system those of the version that was measured last."""
    found = table_file().read()
    split = ({**row, **dict(zip(("name", "version"), row["system"].rsplit(" ", 1), strict=False))} for row in found)
    return rows.newest(({"version": "", **row} for row in split), ("task", "size", "labels", "name", "threads"))


def table() -> str:
    """The rows as a table: microseconds a sentence at each size, and the slope between the two largest."""
    found = current_rows()
    kinds = list(dict.fromkeys((row["task"], row["labels"], row["system"], row["threads"]) for row in found))
    lines = ["| problem | labels | system | threads | µs a sentence, by size | slope |", "|---|---|---|---|---|---|"]
    for kind in kinds:
        own = [row for row in found if (row["task"], row["labels"], row["system"], row["threads"]) == kind]
        times = sorted((int(row["size"]), float(row["microseconds_each"])) for row in own)
        cells = ", ".join(f"{size}: {micro:.0f}" if micro >= 10 else f"{size}: {micro:.1f}" for size, micro in times)
        slope = ""
        if len(times) > 1:
            (small, before), (large, after) = times[-2:]
            slope = f"{math.log(after / before) / math.log(large / small):.1f}"
        task, labels, system, threads = kind
        lines.append(f"| {task} | {'' if labels == '0' else labels} | {system} | {threads} | {cells} | {slope} |")
    used = [(row["system"], f"{row['task']} {row['size']}", row) for row in found]
    return "\n".join([*lines, "", rows.commits(used)]) if found else ""


PAGE = """# How fast structures are

Made from [rows](../../benchmarks/speed/structures.csv) by `python -m benchmarks.speed.structures --page`; the rows by
`STRUCTURE_PEERS=/path/to/python python -m benchmarks.speed.structures`, where that Python has torch, torch-struct and
python-crfsuite. {machines}; {dates}. Best of several tries, in which everybody takes turns on the same numbers. The
machine was shared: ratios within a problem mean more than microseconds.

{table}

- *chain*: scores from 8 attributes a position, log Z and all marginals of labels; crfsuite's tagger computes forward
  and backward scores and one marginal. *crf*: one evaluation of likelihood and gradient in training, attributes ×
  labels and transitions as features; crfsuite's time is that of its L-BFGS iterations divided by their evaluations.
  crfsuite has one thread. Both reach the same optimum.
- *projective*, *spanning*: log Z and marginals of a batch; torch-struct in float32, its matrix-tree theorem with 10⁻⁵
  added to every weight and its inverse from LAPACK, ours in float64 without subtractions, which is a little slower.
- *spans*: log Z and marginals of binary trees with a label on every span; *grammar*: the same of a grammar with as many
  symbols as labels, as many tags, and all rules among them; torch-struct in float32, gradients by autograd.
- *matching*: one object a sentence, made and solved; SciPy is `linear_sum_assignment` on the same gains.
- *itg*: log Z and marginals of one pair, in normal form with nulls; *pruned* as in Haghighi et al. 2009.
- *bp*: five iterations over one sentence with the factors named. Times add up over families, and grow with n³ once the
  numbers outweigh the calls.
"""


def page() -> str:
    found = current_rows()
    machines = "; ".join(sorted({row["machine"] for row in found}))
    dates = ", ".join(sorted({row["date"] for row in found}))
    return PAGE.format(machines=machines, dates=dates, table=table())


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.speed.structures", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tasks", default=",".join(task.name for task in TASKS))
    parser.add_argument("--sizes", help="by default those of each task")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="measure nothing; write docs/structures/speed.md")
    arguments = parser.parse_args(argv)
    if arguments.page:
        Path("docs/structures/speed.md").write_text(page(), encoding="utf-8")
        return
    known = {task.name: task for task in TASKS}
    chosen = arguments.tasks.split(",")
    for name in chosen:
        if name not in known:
            parser.error(f"--tasks: there is no {name!r}; there are {', '.join(known)}")
    with peers() as others:
        for task in (known[name] for name in chosen):
            sizes = [int(size) for size in arguments.sizes.split(",")] if arguments.sizes else task.sizes
            for labels in task.labels:
                for n in sizes:
                    side_by_side(task, n, labels, arguments.threads, arguments.tries, others)
    print(table())


if __name__ == "__main__":
    main()
