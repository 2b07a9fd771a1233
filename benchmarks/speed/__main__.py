"""Speed of whole commands, side by side: python -m benchmarks.speed [--sets ...] [--systems ...] [--threads ...].

Systems take turns, so that what disturbs the machine disturbs all of them; the best of several tries is kept. Rows go
to benchmarks/speed/align.csv and replace those of the same data, system, version and options.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks import rows, systems
from benchmarks.corpora import Set, all_sets

SETS = ("en-fr.hansards", "europarl-7way-en-fr", "hansards-100k", "europarl-en-fr-400k", "europarl-en-fr-joined")
START_UP = "ten-pairs"
CLOCK_ONLY = 0  # the number of our runs: those from 1 on belong to the quality rows, and their links are kept
PLAIN = "isogloss-plain"  # the HMM without constraints: what fast_align's model is nearest to
PLAIN_OPTIONS = ("--constraint", "none")
COLUMNS = (
    *("date", "machine", "commit", "data", "pairs", "words", "system", "version", "options"),
    *("seconds", "cpu_seconds", "peak_mb", "median_seconds", "tries", "command"),
)


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).parent / "align.csv", COLUMNS, ("data", "system", "version", "options"))


def find(name: str) -> systems.System:
    return systems.find(systems.ISOGLOSS, PLAIN_OPTIONS) if name == PLAIN else systems.find(name)


def side_by_side(data: Set, chosen: dict[str, systems.System], threads: int, tries: int, remark: str = "") -> None:
    """Clock every system on a text, in turns, and write a row for each."""
    data.assemble()
    runs: dict[str, list[systems.Run]] = {name: [] for name in chosen}
    for _ in range(tries):
        for name, system in chosen.items():
            runs[name].append(system.run(data, threads, CLOCK_ONLY))
    pairs, words = size(data)
    for name, system in chosen.items():
        fastest = min(runs[name], key=lambda run: run.seconds)
        row = {
            "date": rows.today(),
            "machine": rows.machine(),
            "commit": rows.commit(),
            "data": data.name,
            "pairs": pairs,
            "words": f"{words:.1f}",
            "system": name,
            "version": system.version,
            "options": f"threads={threads}{remark}",
            "seconds": fastest.seconds,
            "cpu_seconds": fastest.cpu_seconds,
            "peak_mb": fastest.peak_mb,
            "median_seconds": median(run.seconds for run in runs[name]),
            "tries": tries,
            "command": fastest.command,
        }
        results().put([row])
        print(
            f"{data.name:20} {name:15} {row['options']:16} {fastest.seconds:8.2f} s {fastest.cpu_seconds:8.2f} CPU s "
            f"{fastest.peak_mb:7.0f} MB",
            file=sys.stderr,
        )


def size(data: Set) -> tuple[int, float]:
    """Pairs of a text, and words of a sentence: the mean over both sides."""
    pairs = words = 0
    for path in (data.source, data.target):
        with open(path, "rb") as file:
            counts = [len(line.split()) for line in file]
        pairs, words = len(counts), words + sum(counts)
    return pairs, words / (2 * pairs)


def start_up(data: Set, threads: int, tries: int) -> None:
    """A handful of pairs: with an empty cache of compiled kernels (the first run ever), and with a warm one."""
    ours = {systems.ISOGLOSS: find(systems.ISOGLOSS)}
    before = os.environ.get("NUMBA_CACHE_DIR")
    with tempfile.TemporaryDirectory() as empty:
        os.environ["NUMBA_CACHE_DIR"] = empty
        try:
            side_by_side(data, ours, threads, 1, " cold")
        finally:
            del os.environ["NUMBA_CACHE_DIR"]
            if before is not None:
                os.environ["NUMBA_CACHE_DIR"] = before
    ours[systems.ISOGLOSS].run(data, threads, CLOCK_ONLY)
    side_by_side(data, ours, threads, tries, " warm")


def table() -> str:
    """The rows as a table, the systems of a set beside each other."""
    found = rows.newest(results().read(), ("data", "system", "options"))
    names = [systems.ISOGLOSS, PLAIN, systems.EFLOMAL, systems.FAST_ALIGN]
    lines = ["| text | pairs | words | options | system | wall s | CPU s | peak MB | machine |", "|" + "---|" * 9]
    order = [START_UP, *SETS]
    found.sort(
        key=lambda row: (
            order.index(row["data"]) if row["data"] in order else len(order),
            row["options"],
            names.index(row["system"]) if row["system"] in names else len(names),
        )
    )
    for row in found:
        cost = f"{float(row['seconds']):.2f} | {float(row['cpu_seconds']):.2f} | {float(row['peak_mb']):.0f}"
        label = f"{row['system']} {row['version']}"
        text = f"{row['data']} | {row['pairs']} | {row['words']} | {row['options']}"
        lines.append(f"| {text} | {label} | {cost} | {row['machine']} |")
    if not found:
        return ""
    used = [(row["system"], f"{row['data']} {row['options']}", row) for row in found]
    return "\n".join([*lines, "", rows.commits(used)])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.speed", description=__doc__.split("\n")[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--systems", default=f"isogloss,eflomal,fast_align,{PLAIN}")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--no-start-up", action="store_true", help="leave out the rows of ten pairs, cold and warm")
    arguments = parser.parse_args(argv)
    chosen = {}
    for name in arguments.systems.split(","):
        try:
            chosen[name] = find(name)
        except systems.NotHere as missing:
            print(f"left out: {missing}", file=sys.stderr)
    known = all_sets()
    for name in arguments.sets.split(","):
        if name not in known:
            parser.error(f"--sets: there is no {name!r}; there are {', '.join(known)}")
    numbers_of_threads = [int(number) for number in arguments.threads.split(",")]
    if systems.ISOGLOSS in chosen and not arguments.no_start_up:
        start_up(known[START_UP], max(numbers_of_threads), arguments.tries)
    for name in (name for name in chosen if name.startswith(systems.ISOGLOSS)):
        chosen[name].run(known[START_UP], 1, CLOCK_ONLY)  # compile what is not compiled yet, outside the clock
    for name in arguments.sets.split(","):
        for threads in numbers_of_threads:
            side_by_side(known[name], chosen, threads, arguments.tries)


if __name__ == "__main__":
    main()
