"""Word alignment: Isogloss beside its peers on the gold sets, one CSV row a run.

python -m benchmarks.quality.align                        every set, every system, rows that are missing
python -m benchmarks.quality.align --dev                  score the dev splits: for choosing settings
python -m benchmarks.quality.align --systems isogloss --again --sets en-cs.czenali --options='--constraint none'
python -m benchmarks.quality.align --table                print the comparison and write docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import rows, scoring, systems
from benchmarks.corpora import Set, all_sets
from benchmarks.quality import table

HERE = Path(__file__).parent
COLUMNS = (
    *("date", "machine", "commit", "data", "system", "version", "options", "run"),
    *("P", "R", "F", "AER", "AER_low", "AER_high", "links"),
    *("seconds", "cpu_seconds", "peak_mb", "command", "signature"),
)
KEY = ("data", "system", "version", "options", "run")
RUNS_OF_A_SAMPLER = 3


def results(split: str) -> rows.Rows:
    """The rows of the dev or of the test splits."""
    return rows.Rows(HERE / ("align-dev.csv" if split == "dev" else "align.csv"), COLUMNS, KEY)


def measure(
    system: systems.System, data: Set, split: str, threads: int, number: int, arguments: argparse.Namespace
) -> None:
    """Make the rows of one run, unless they are there."""
    file = results(split)
    plain = " ".join([f"threads={threads}", *system.options])
    same = {"data": data.name, "system": system.name, "version": system.version, "run": number}
    is_peer = system.name != systems.ISOGLOSS
    last = f"{plain} symmetrisation={scoring.METHODS[-1]}" if is_peer and data.splits else plain
    if not arguments.again and file.is_done(**same, options=last, outdated=arguments.outdated):
        return
    # A peer stays what it is, so one run of it serves the dev and the test split; ours changes and is run anew.
    run = None if arguments.again or not is_peer else system.kept(data, threads, number)
    run = run or system.run(data, threads, number, arguments.repeat)
    common = {
        **same,
        "date": rows.today(),
        "machine": rows.machine(),
        "commit": rows.commit(),
        "seconds": run.seconds,
        "cpu_seconds": run.cpu_seconds,
        "peak_mb": run.peak_mb,
        "command": run.command,
    }
    if not data.splits:
        file.put([common | {"options": plain}])
        _say(f"{data.name:20} {system.name:10} {plain:12} {run.seconds:8.1f} s")
        return
    made = list(_scored(run, data, split, plain))
    file.put(common | row for row in made)
    best = min(made, key=lambda row: row["AER"])
    _say(f"{data.name:20} {system.name:10} {best['options']:45} AER {best['AER']:5.2f} {run.seconds:8.1f} s")


def _scored(run: systems.Run, data: Set, split: str, options: str) -> Iterator[dict[str, Any]]:
    for method, links in scoring.outputs(run, data, split).items():
        score = scoring.score(links, data, split)
        low, high = score.intervals["aer"]
        yield {
            "options": f"{options} symmetrisation={method}" if method else options,
            "P": score.precision,
            "R": score.recall,
            "F": score.f1,
            "AER": score.aer,
            "AER_low": low,
            "AER_high": high,
            "links": score.links,
            "signature": score.signature,
        }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.align", description=__doc__.split("\n")[0])
    parser.add_argument("--sets", help="names from sets.tsv, split by commas; default: all with gold")
    parser.add_argument("--systems", default="isogloss,eflomal,fast_align")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, each a row; default: 1,2")
    parser.add_argument("--options", default="", help="for isogloss align: --options='--constraint none', another row")
    parser.add_argument("--runs", type=int, default=RUNS_OF_A_SAMPLER, help="runs of systems that draw at random")
    parser.add_argument("--repeat", type=int, default=1, help="run each command so often and keep the best time")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--dev", action="store_true", help="score the dev splits, into align-dev.csv")
    parser.add_argument("--table", action="store_true", help="run nothing: print the table and write the page")
    arguments = parser.parse_args(argv)
    split = "dev" if arguments.dev else "test"
    if arguments.table:
        table.report(results(split).read(), split)
        return
    known = all_sets()
    chosen = arguments.sets.split(",") if arguments.sets else [name for name in known if known[name].splits]
    for name in chosen:
        if name not in known:
            parser.error(f"--sets: there is no {name!r} in sets.tsv; there are {', '.join(known)}")
    failures = 0
    numbers_of_threads = [int(number) for number in arguments.threads.split(",")]
    for system_name in arguments.systems.split(","):
        try:
            system = systems.find(system_name, tuple(shlex.split(arguments.options)))
        except systems.NotHere as missing:
            _say(f"left out: {missing}")
            continue
        for name in chosen:
            if known[name].splits and not known[name].has_gold(split):
                continue
            for threads in numbers_of_threads:
                # Quality is the mean over runs with the first number of threads; the others are there for the clock.
                runs = arguments.runs if system.random and threads == numbers_of_threads[0] else 1
                for number in range(1, runs + 1):
                    try:
                        measure(system, known[name], split, threads, number, arguments)
                    except RuntimeError as failure:
                        _say(f"{name:20} {failure}")
                        failures += 1
    if failures:
        raise SystemExit(f"{failures} runs failed and have no row")


if __name__ == "__main__":
    main()
