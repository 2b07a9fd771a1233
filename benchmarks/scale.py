"""Memory and time of `isogloss align` by the length of the text: python -m benchmarks.scale [--texts ...].

Texts are nested: the first pairs of the joined Europarl text (28 words a line), and of a synthetic one that counts like
it and has no end (`benchmarks/synthetic.py`). Each is aligned in a fixed amount of memory, and in as much as it takes
if nobody says how much it may have.
Rows go to benchmarks/scale.csv and replace those of the same text, version and options.
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

from benchmarks import clock, rows, synthetic, systems
from benchmarks.corpora import OUT, all_sets

JOINED = "joined"
SYNTHETIC = "synthetic"
TEXTS = ("joined-100000", "joined-199764", "synthetic-400000", "synthetic-1000000", "synthetic-4000000")
MEMORY = "4GB"
FREE = "free"
COLUMNS = (
    *("date", "machine", "commit", "data", "pairs", "version", "options"),
    *("seconds", "cpu_seconds", "peak_mb", "command"),
)


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).parent / "scale.csv", COLUMNS, ("data", "version", "options"))


def files_of(name: str) -> tuple[Path, Path, int]:
    """The files of a text such as ``joined-100000``, and its pairs."""
    kind, _, number = name.partition("-")
    n_pairs = int(number)
    if kind == SYNTHETIC:
        return *synthetic.assemble(n_pairs), n_pairs
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


def measure(name: str, memory: str, threads: int) -> None:
    """Align a text and write its row."""
    source, target, n_pairs = files_of(name)
    ours = systems.find(systems.ISOGLOSS)
    bound = [] if memory == FREE else ["--memory", memory]
    command = [sys.executable, "-m", "isogloss", "align", str(source), str(target), "-o", str(OUT / f"{name}.links")]
    command += ["--quiet", "--threads", str(threads), *bound]
    cost = clock.measure(command, threads=threads)
    row = {
        "date": rows.today(),
        "machine": rows.machine(),
        "commit": rows.commit(),
        "data": name,
        "pairs": n_pairs,
        "version": ours.version,
        "options": f"threads={threads} memory={memory}",
        **cost,
        "command": " ".join(["isogloss", *command[3:5], "...", *command[7:]]),
    }
    results().put([row])
    print(table([row]).splitlines()[-1], file=sys.stderr)


def table(found: list[rows.Row] | None = None) -> str:
    """The rows as a table, with the cost of a thousand pairs."""
    lines = ["| text | pairs | options | wall s | CPU s | peak MB | CPU ms a pair |", "|" + "---|" * 7]
    chosen = results().read() if found is None else found
    for row in sorted(chosen, key=lambda row: (row["data"].split("-")[0], int(row["pairs"]), row["options"])):
        cpu = float(row["cpu_seconds"])
        lines.append(
            f"| {row['data']} | {int(row['pairs']):,} | {row['options']} | {float(row['seconds']):.0f} | {cpu:.0f} | "
            f"{float(row['peak_mb']):.0f} | {1000 * cpu / int(row['pairs']):.2f} |"
        )
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__.split("\n")[0])
    parser.add_argument("--texts", default=",".join(TEXTS))
    parser.add_argument("--memory", default=f"{MEMORY},{FREE}", help=f"sizes, or {FREE} for what the command takes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="only show the rows that are there")
    arguments = parser.parse_args(argv)
    for name in [] if arguments.table else arguments.texts.split(","):
        for memory in arguments.memory.split(","):
            measure(name, memory, arguments.threads)
    print(table())


if __name__ == "__main__":
    main()
