"""Aligners that learn from hand-aligned sentences, beside the unsupervised default: one CSV row a run.

python -m benchmarks.quality.supervised --list                       what there is to run
python -m benchmarks.quality.supervised                              all rows that are missing
python -m benchmarks.quality.supervised --only hansards-2k/features  one study on one text
python -m benchmarks.quality.supervised --only sets,curves --models matching
python -m benchmarks.quality.supervised --stale                      also rows that other code has made
python -m benchmarks.quality.supervised --outdated --quoted          those of the first tables that another commit made
python -m benchmarks.quality.supervised --speed                      clock learning and decoding
python -m benchmarks.quality.supervised --table                      run nothing: write docs/benchmarks-supervised.md
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

from benchmarks.quality.supervised import run
from benchmarks.quality.supervised.models import NotYet
from benchmarks.quality.supervised.studies import Job, choose
from benchmarks.rows import is_of


def is_wanted(
    job: Job, found: dict[tuple[str, ...], dict[str, str]], again: bool, stale: bool, outdated: bool = False
) -> bool:
    """Whether a job has no row yet, or one that is to be made anew."""
    row = found.get(tuple(str(value) for value in run.key_of(job).values()))
    if again or row is None or (stale and row["code"] != run.code()):
        return True
    return outdated and not is_of(row, run.commit())


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.supervised", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="studies and texts: hansards-2k/features,sets; default: all")
    parser.add_argument("--models", default="", help="hmm, matching, quadratic, itg, or a model as --list names it")
    parser.add_argument(
        "--pairs", default="", help="numbers of gold pairs to learn from, 0 for all: 0,100; default: all"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--stale", action="store_true", help="replace rows that other code than this has made")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--quoted", action="store_true", help="only rows that the first tables of the pages quote")
    parser.add_argument("--speed", action="store_true", help="clock learning and decoding instead")
    parser.add_argument("--list", action="store_true", help="run nothing: say what would be run")
    parser.add_argument("--table", action="store_true", help="run nothing: compare the rows and write the page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        from benchmarks.quality.supervised import page

        page.report()
        return
    if arguments.speed:
        from benchmarks.quality.supervised import speed

        speed.measure_all(arguments.models, arguments.threads, again=arguments.again)
        return
    run.code(), run.commit()  # of now: sources may change while a long run goes on
    file = run.results()
    found = {tuple(row[name] for name in run.KEY): row for row in file.read()}
    wanted = [
        job
        for job in choose(arguments.only, arguments.models, arguments.pairs)
        if is_wanted(job, found, arguments.again, arguments.stale, arguments.outdated)
    ]
    if arguments.quoted:
        from benchmarks.quality.supervised import page

        quoted = page.quoted()
        wanted = [job for job in wanted if job in quoted]
    missing: set[str] = set()
    for job in wanted:
        if arguments.list:
            print(job, *sorted(job.tags), sep="  ")
            continue
        if str(job.model) in missing:
            continue
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row = run.measure(job, arguments.threads)
        except NotYet as problem:
            missing.add(str(job.model))
            _say(f"left out: {problem}")
            continue
        file.put([row])
        _say(f"{job!s:95} AER {row['AER']:5.2f} ({row['against_hmm']:+5.2f}) {time.perf_counter() - start:6.1f} s")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
