"""Memory and time of `isogloss align` by the length of the text: python -m benchmarks.scale [--texts ...].

Texts are nested: the first pairs of the joined Europarl text (28 words a line), and of a synthetic one that counts like
it and has no end (`benchmarks/synthetic.py`). Each is aligned in a fixed amount of memory, and in as much as it takes
if nobody says how much it may have; with `--systems`, by eflomal and fast_align too, which are asked for no bound.
The processor does the work, or `--device cuda` a GPU, whatever the machine has.
Rows go to benchmarks/scale.csv and replace those of the same text, system, version and options.
"""

from __future__ import annotations

import argparse
import os
import sys
from itertools import islice
from pathlib import Path

from benchmarks import clock, rows, synthetic, systems
from benchmarks.corpora import OUT, Set, all_sets

JOINED = "joined"
SYNTHETIC = "synthetic"
TEXTS = ("joined-100000", "joined-199764", "synthetic-400000", "synthetic-1000000", "synthetic-4000000")
MEMORY = "4GB"
FREE = "free"
COLUMNS = (
    *("date", "machine", "commit", "data", "pairs", "system", "version", "options"),
    *("seconds", "cpu_seconds", "peak_mb", "remark", "command"),
)


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).parent / "scale.csv", COLUMNS, ("data", "system", "version", "options"))


def files_of(name: str) -> tuple[Path, Path, int]:
    """The files of a text such as ``joined-100000``, and its pairs."""
    kind, _, number = name.partition("-")
    n_pairs = int(number)
    if kind == SYNTHETIC:
        return *synthetic.assemble(n_pairs, processes=len(os.sched_getaffinity(0))), n_pairs
    if kind != JOINED:
        raise SystemExit(f"{name}: texts are called {JOINED}-NUMBER or {SYNTHETIC}-NUMBER")
    whole = all_sets()["europarl-en-fr-joined"]
    whole.assemble()
    place = OUT / name
    place.mkdir(parents=True, exist_ok=True)
    parts = []
    for path in (whole.source, whole.target):
        parts.append(place / path.name)
        with open(path, encoding="utf-8") as file, open(parts[-1], "w", encoding="utf-8") as part:
            part.writelines(islice(file, n_pairs))
    return parts[0], parts[1], n_pairs


def measure(name: str, memory: str, threads: int, device: str = "cpu", remark: str = "") -> None:
    """Align a text and write its row."""
    source, target, n_pairs = files_of(name)
    bound = [] if memory == FREE else ["--memory", memory]
    links = OUT / f"{name}.{device}.threads={threads}.links"
    command = [sys.executable, "-m", "isogloss", "align", str(source), str(target), "-o", str(links)]
    command += ["--quiet", "--threads", str(threads), "--device", device, *bound]
    cost = clock.measure(command, threads=threads)
    said = " ".join(["isogloss align SOURCE TARGET -o LINKS", *command[8:]])
    ours = systems.find(systems.ISOGLOSS)
    options = f"threads={threads} memory={memory} device={device}"
    put(name, n_pairs, ours.name, ours.version, options, **cost, remark=remark, command=said)


def measure_peer(name: str, system: str, threads: int, remark: str = "") -> None:
    """Align a text with a program of others and write its row."""
    if not name.startswith(SYNTHETIC):
        raise SystemExit(f"{name}: `python -m benchmarks.speed` times {system} on texts that are not synthetic")
    _, _, n_pairs = files_of(name)
    peer = systems.find(system)
    run = peer.run(Set(name, "", (), None, None, False, ""), threads)
    cost = {"seconds": run.seconds, "cpu_seconds": run.cpu_seconds, "peak_mb": run.peak_mb}
    put(name, n_pairs, peer.name, peer.version, f"threads={threads}", **cost, remark=remark, command=run.command)


def put(data: str, pairs: int, system: str, version: str, options: str, **more: object) -> None:
    """Write a row, and say it."""
    row: dict[str, object] = {"date": rows.today(), "machine": rows.machine(), "commit": rows.commit(), "data": data}
    row |= {"pairs": pairs, "system": system, "version": version, "options": options, **more}
    results().put([row])
    print(table([{name: rows.plain(value) for name, value in row.items()}]).splitlines()[-1], file=sys.stderr)


def table(found: list[rows.Row] | None = None) -> str:
    """The rows as a table, with the cost of a thousand pairs."""
    lines = ["| text | pairs | system | options | wall s | CPU s | peak MB | CPU ms a pair |", "|" + "---|" * 8]
    chosen = results().read() if found is None else found
    order = ("data", "system", "options")
    for row in sorted(chosen, key=lambda row: (row["data"].split("-")[0], int(row["pairs"]), *map(row.get, order))):
        cpu = float(row["cpu_seconds"])
        lines.append(
            f"| {row['data']} | {int(row['pairs']):,} | {row['system']} | {row['options']} | "
            f"{float(row['seconds']):.0f} | {cpu:.0f} | {float(row['peak_mb']):.0f} | "
            f"{1000 * cpu / int(row['pairs']):.2f} |"
        )
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__.split("\n")[0])
    parser.add_argument("--texts", default=",".join(TEXTS))
    parser.add_argument("--memory", default=f"{MEMORY},{FREE}", help=f"sizes, or {FREE} for what the command takes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--systems", default=systems.ISOGLOSS, help="isogloss, eflomal, fast_align")
    parser.add_argument("--remark", default="", help="what else the machine did")
    parser.add_argument("--table", action="store_true", help="only show the rows that are there")
    arguments = parser.parse_args(argv)
    for name in [] if arguments.table else arguments.texts.split(","):
        for system in arguments.systems.split(","):
            if system != systems.ISOGLOSS:
                measure_peer(name, system, arguments.threads, arguments.remark)
                continue
            for memory in arguments.memory.split(","):
                measure(name, memory, arguments.threads, arguments.device, arguments.remark)
    print(table())


if __name__ == "__main__":
    main()
