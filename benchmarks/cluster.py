"""Workers beside threads, exact EM beside learning from chunks: python -m benchmarks.cluster [speed|quality|reduce].

`speed` aligns a text in this process and with 1, 2, ... workers (processes, tasks of Ray, or jobs that wait for it as
those of an array do), and holds the links with their probabilities against each other, byte by byte. `quality` aligns
227,000 pairs of the Hansards in four ways: exact EM over shards, on workers; ``--chunk``, where each chunk is learnt
from once; and twice as texts are aligned that are too long for a machine: what is known of a sample goes as a prior
into chunks that know nothing of each other. AER is that of the 447 test pairs.
`reduce` writes, reads and adds up results of workers on a table of a node's size, without any text.
Rows go to benchmarks/cluster.csv and replace those of the same text, version and options.
"""

from __future__ import annotations

import argparse
import filecmp
import random
import shlex
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks import clock, rows, synthetic, systems
from benchmarks.corpora import OUT, Set, all_sets

SPEED, QUALITY = "hansards-100k", "hansards-227k"
CHUNK = 20_000
COLUMNS = (
    *("date", "machine", "commit", "data", "version", "options"),
    *("seconds", "cpu_seconds", "peak_mb", "same_bytes", "aer", "command"),
)


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).parent / "cluster.csv", COLUMNS, ("data", "version", "options"))


def row_of(data: str, options: str, **more: object) -> None:
    """Write a row, and say it."""
    row = {"date": rows.today(), "machine": rows.machine(), "commit": rows.commit(), "data": data}
    row |= {"version": systems.find(systems.ISOGLOSS).version, "options": options}
    row |= {"same_bytes": "", "aer": "", "command": "", **more}
    results().put([row])
    print(f"{data} {options}: {more}", file=sys.stderr)


def command_of(text: Set, output: Path, *more: str) -> list[str]:
    start = [sys.executable, "-m", "isogloss", "align", str(text.source), str(text.target), "-o", str(output)]
    return [*start, "--quiet", "--scores", "--device", "cpu", *more]


def said(command: list[str]) -> str:
    """A command without what is only of this machine."""
    return " ".join(["isogloss", "align", "SOURCE", "TARGET", *command[8:]])


def text_of(name: str) -> Set:
    """A text of the corpora, or a synthetic one such as ``synthetic-100000``."""
    kind, _, number = name.partition("-")
    if kind == "synthetic":
        synthetic.assemble(int(number))
        return Set(name, "", (), None, None, False, "")
    text = all_sets()[name]
    text.assemble()
    return text


def speed(name: str, workers: list[int], kinds: list[str]) -> None:
    """Threads, then workers of each kind, one thread each, on as many cores as there are workers."""
    text = text_of(name)
    first = OUT / f"{name}.threads.links"
    command = command_of(text, first, "--threads", "1")
    row_of(name, "local, 1 thread", **clock.measure(command, threads=1), command=said(command))
    for kind in kinds:
        for n in workers:
            output = OUT / f"{name}.{kind}.links"
            more = ["--engine", kind, "--workers", str(n), "--threads", "1"]
            with tempfile.TemporaryDirectory(dir=OUT) as place:
                if kind == "array":
                    more += ["--work-folder", f"{place}/run"]
                command = command_of(text, output, *more)
                run = _with_jobs(command, f"{place}/run", n) if kind == "array" else command
                cost = clock.measure(run, threads=n)
            same = "yes" if filecmp.cmp(first, output, shallow=False) else "no"
            shown = said(command).replace(f"{place}/run", "DIR")
            row_of(name, f"{kind}, {n} workers", **cost, same_bytes=same, command=shown)


def _with_jobs(command: list[str], folder: str, n: int) -> list[str]:
    """A command that waits for jobs of an array, and the jobs beside it, so that the clock counts all."""
    job = [sys.executable, "-m", "isogloss", "align-worker", folder, "--of", str(n), "--threads", "1"]
    jobs = "".join(f"{shlex.join([*job, '--index', str(k)])} & " for k in range(n))
    return ["bash", "-c", f"{jobs}{shlex.join(command)} && wait"]


# --- exact EM and two approximations ----------------------------------------------------------------------------------


def aer_of(text: Set, links: object) -> str:
    """AER of the test pairs, which are among the first of the text."""
    from isogloss.data.formats import read_links
    from isogloss.metrics import score_links

    there = text.lines["test"]
    gold = read_links(text.gold("test"))
    return f"{score_links(links[there.start : there.stop], gold).aer:.2f}"  # type: ignore[index]


def exact(text: Set, options: str, *more: str) -> None:
    """A command that aligns the whole text."""
    from isogloss.data.formats import read_links

    output = OUT / f"{text.name}.quality.links"
    command = command_of(text, output, *more)
    cost = clock.measure(command)
    row_of(text.name, options, **cost, aer=aer_of(text, read_links(output)), command=said(command))


def sampled(text: Set, as_lexicon: bool) -> None:
    """A prior from a sample, then the chunk that has the test pairs: others would not change its links."""
    from isogloss.data import Bitext
    from isogloss.tasks.align import HMMAligner

    began, cpu = time.perf_counter(), time.process_time()
    pairs = list(text.pairs())
    chunk = Bitext.of([(source.split(), target.split()) for source, target in pairs[:CHUNK]])
    drawn = sorted(random.Random(0).sample(range(len(pairs)), CHUNK))
    sample = Bitext.of([(pairs[k][0].split(), pairs[k][1].split()) for k in drawn])
    known = HMMAligner(threads=1).fit(sample)
    if as_lexicon:
        counts: Counter[tuple[str, str]] = Counter()
        for (source, target), links in zip(sample, known.predict(sample), strict=True):
            counts.update((source[i].lower(), target[j].lower()) for i, j in links.links)
        lexicon = [(source, target, float(count)) for (source, target), count in counts.items()]
        links = HMMAligner(threads=1, lexicon=lexicon).fit_predict(chunk)
    else:
        links = known.update(chunk).predict(chunk)
    how = "links of a sample as a lexicon, then a chunk" if as_lexicon else "model of a sample, updated by a chunk"
    cost = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu, "peak_mb": ""}
    row_of(text.name, how, **cost, aer=aer_of(text, links))


def quality(workers: int) -> None:
    text = all_sets()[QUALITY]
    text.assemble()
    sampled(text, as_lexicon=False)
    sampled(text, as_lexicon=True)
    exact(text, f"--chunk {CHUNK}", "--chunk", str(CHUNK), "--threads", "1")
    exact(text, "exact EM over shards", "--engine", "processes", "--workers", str(workers), "--threads", "1")


# --- the reduce alone -------------------------------------------------------------------------------------------------


def reduce(entries: int, groups: int) -> None:
    """Dense results of some workers: written with their hashes, then read, checked and added."""
    import numpy as np

    from isogloss.engine import parcels

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(dir=OUT) as place:
        counts = rng.integers(0, 1 << 24, (entries, 2), np.uint32)
        began, cpu = time.perf_counter(), time.process_time()
        for group in range(groups):
            parcels.write(Path(place) / f"group-{group}", {"counts": counts}, {})
        total = np.zeros((entries, 2), np.int64)
        for group in range(groups):
            total += parcels.read(Path(place) / f"group-{group}").arrays["counts"]
        assert (total == groups * counts.astype(np.int64)).all()
        cost = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu, "peak_mb": ""}
    name = f"{entries / 1e6:g} million entries"
    row_of(name, f"reduce of {groups} groups", **cost)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.cluster", description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="*", default=["speed", "quality"], choices=["speed", "quality", "reduce"])
    parser.add_argument("--text", default=SPEED)
    parser.add_argument("--workers", default="1,2", help="numbers of workers")
    parser.add_argument("--engines", default="processes", help="processes, array, ray")
    parser.add_argument("--entries", type=int, default=25_000_000, help="of the table, for reduce")
    arguments = parser.parse_args(argv)
    workers = [int(n) for n in arguments.workers.split(",")]
    if "quality" in arguments.what:
        quality(max(workers))
    if "reduce" in arguments.what:
        reduce(arguments.entries, max(workers))
    if "speed" in arguments.what:
        speed(arguments.text, workers, arguments.engines.split(","))


if __name__ == "__main__":
    main()
