"""Dependency parsers beside UDPipe 1 and MaltParser: one CSV row a run.

python -m benchmarks.quality.parsing --list                      what there is to run
python -m benchmarks.quality.parsing                             all rows that are missing
python -m benchmarks.quality.parsing --only hu/peers             one study on one treebank
python -m benchmarks.quality.parsing --models malt --tags gold   one system in one setting
python -m benchmarks.quality.parsing --stale                     also rows that other code or other tags have made
python -m benchmarks.quality.parsing --outdated --quoted         what the first tables quote, if another commit made it
python -m benchmarks.quality.parsing --speed                     clock parsing
python -m benchmarks.quality.parsing --merge OTHER.csv           run nothing: take over rows made elsewhere
python -m benchmarks.quality.parsing --table                     run nothing: write docs/benchmarks-parsing.md
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.quality.parsing import run, texts
from benchmarks.quality.parsing.models import NotHere
from benchmarks.quality.parsing.studies import Job, choose
from benchmarks.rows import is_of


def is_wanted(
    job: Job, found: dict[tuple[str, ...], dict[str, str]], *, again: bool, stale: bool, outdated: bool = False
) -> bool:
    """Whether a job has no row yet, or one that is to be made anew."""
    row = found.get(tuple(str(value) for value in run.key_of(job).values()))
    if again or row is None or (outdated and not is_of(row, run.commit())):
        return True
    try:
        return stale and run.is_stale(job, row)
    except NotHere:
        return False


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.parsing", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="treebanks and studies: hu/peers,crossing; default: all")
    parser.add_argument("--models", default="", help="isogloss, udpipe, malt, or a system as --list names it")
    parser.add_argument("--tags", default="", help=f"{', '.join(texts.SETTINGS)}; default: all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="replace rows that are there, and learn anew")
    parser.add_argument("--stale", action="store_true", help="replace rows that other code or other tags have made")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--quoted", action="store_true", help="only rows that the first tables of the pages quote")
    parser.add_argument("--speed", action="store_true", help="clock parsing instead, with models that are kept")
    parser.add_argument("--list", action="store_true", help="run nothing: say what would be run")
    parser.add_argument("--table", action="store_true", help="run nothing: compare the rows and write the page")
    parser.add_argument("--merge", type=Path, help="run nothing: take over the rows of another file")
    arguments = parser.parse_args(argv)
    if arguments.merge:
        _say(f"{run.merge(arguments.merge)} rows from {arguments.merge}")
        return
    if arguments.table:
        from benchmarks.quality.parsing import page

        page.report()
        return
    if arguments.speed:
        from benchmarks.quality.parsing import speed

        speed.measure_all(arguments.models, again=arguments.again, outdated=arguments.outdated)
        return
    run.commit()  # of now: sources may change while a long run goes on
    if (arguments.stale or arguments.outdated) and not arguments.list:
        for text in texts.forget_stale_tags():
            _say(f"{text}: another tagger made its tags; they are made anew")
    file = run.results()
    found = {tuple(row[name] for name in run.KEY): row for row in file.read()}
    wanted = [
        job
        for job in choose(arguments.only, arguments.models, arguments.tags)
        if is_wanted(job, found, again=arguments.again, stale=arguments.stale, outdated=arguments.outdated)
    ]
    if arguments.quoted:
        from benchmarks.quality.parsing import page

        quoted = page.quoted()
        wanted = [job for job in wanted if job in quoted]
    if arguments.list:
        for job in wanted:
            print(job, *sorted(job.studies), sep="  ")
        return
    _run(wanted, arguments.threads, again=arguments.again)


def _run(wanted: list[Job], threads: int, *, again: bool) -> None:
    file, missing = run.results(), set[str]()
    for job in wanted:
        if str(job.model) in missing:
            continue
        start = time.perf_counter()
        try:
            row = run.measure(job, threads, again=again)
        except (NotHere, RuntimeError) as problem:
            if isinstance(problem, NotHere) or "not there yet" in str(problem):
                missing.add(str(job.model))
            _say(f"left out: {job}: {problem}")
            continue
        file.put([row])
        shown = f"UAS {row['UAS']:5.2f} LAS {row['LAS']:5.2f}" if row["UAS"] != "" else f"UPOS {row['UPOS']:5.2f}"
        _say(f"{job!s:60} {shown} {time.perf_counter() - start:6.1f} s")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
