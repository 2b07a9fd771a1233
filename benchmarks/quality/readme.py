"""The table of README.md, a few lines of docs/benchmarks.md, from the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from benchmarks import rows, systems
from benchmarks.quality.table import SYSTEMS, Best

PAGE = Path("README.md")
ERRORS = {
    "English-French Hansards, 1k / 10k / 100k pairs": ("hansards-1k", "hansards-10k", "hansards-100k"),
    "English-Czech, 2.5k pairs": ("en-cs.czenali",),
    "English-Estonian, 1.4k pairs": ("en-et.xlwa",),
    "Japanese-English, 1.2k pairs": ("ja-en.kftt",),
}
CLOCKED = {
    "en-fr.hansards": "Hansards 2.9k", "hansards-100k": "Hansards 100k",
    "europarl-7way-en-fr": "Europarl 40k", "europarl-en-fr-400k": "Europarl 400k",
}  # fmt: skip
WEIGHED = {"europarl-7way-en-fr": "Europarl 40k", "europarl-en-fr-400k": "Europarl 400k"}
THREADS = "threads=2"
Entries = dict[str, dict[str, Best]]


def fill(table: Entries, counted: Sequence[str], speeds: list[rows.Row]) -> None:
    """Write the table, and what stands below it, into README.md."""
    used = rows.Used()
    lines = ["| text | Isogloss | eflomal 2.0.0 | fast_align |", "|---|---|---|---|"]
    means = [[mean(table[name][system].aer for name in counted)] for system in SYSTEMS]
    lines.append(_line(f"mean of the {len(counted)} sets that count", means, "{:.1f}".format))
    for title, names in ERRORS.items():
        lines.append(_line(title, [[table[name][system].aer for name in names] for system in SYSTEMS], "{:.1f}".format))
    for name in dict.fromkeys([*counted, *(name for names in ERRORS.values() for name in names)]):
        for system in SYSTEMS:
            for row in table[name][system].rows:
                used.add(f"errors of {system}", name, row)
    clock = {(row["data"], row["system"]): row for row in speeds if row["options"] == THREADS}
    seconds = [[float(clock[name, system]["seconds"]) for name in CLOCKED] for system in SYSTEMS]
    alike = len({clock[name, system]["machine"] for name in CLOCKED for system in SYSTEMS}) == 1
    title = f"seconds: {' / '.join(CLOCKED.values())} pairs"
    lines.append(_line(title, seconds, lambda s: f"{s:.{int(s < 10)}f}", bold=alike))
    lengths = {name: float(clock[name, systems.ISOGLOSS]["words"]) for name in WEIGHED}
    weighed = " / ".join(f"{title} pairs of {lengths[name]:.0f} words" for name, title in WEIGHED.items())
    memory = [[float(clock[name, system]["peak_mb"]) / 1000 for name in WEIGHED] for system in SYSTEMS]
    lines.append(_line(f"GB of memory: {weighed}", memory, "{:.1f}".format))
    for name in CLOCKED:
        for system in SYSTEMS:
            used.add(f"seconds and GB of {system}", name, clock[name, system])
    ours = [row for (_, system), row in clock.items() if system == systems.ISOGLOSS]
    long = max(ours, key=lambda row: float(row["words"]))
    used.add("GB of long lines", long["data"], long)
    about = _about([row for (name, _), row in clock.items() if name in CLOCKED], long)
    rows.fill(PAGE, "alignment", used.below("\n".join([*lines, "", about])))


def _line(
    title: str, numbers: Sequence[Sequence[float]], shown: Callable[[float], str], *, bold: bool = True
) -> str:  # fmt: skip
    """One line, numbers of a system in one cell; the least of each in bold, unless they cannot be compared."""
    least = [min(values) if bold else None for values in zip(*numbers, strict=True)]
    cells = (
        " / ".join(f"**{shown(x)}**" if x == low else shown(x) for x, low in zip(own, least, strict=True))
        for own in numbers
    )
    return f"| {title} | {' | '.join(cells)} |"


def _about(clocked: list[rows.Row], long: rows.Row) -> str:
    """How it was measured, on which machine if it was not the same for all, and what the longest lines took."""
    ours = [row for row in clocked if row["system"] == systems.ISOGLOSS]
    version, date, tries = (", ".join(sorted({row[name] for row in ours})) for name in ("version", "date", "tries"))
    machine = ", ".join(sorted({row["machine"] for row in ours}))
    others = {row["machine"] for row in clocked if row["system"] in SYSTEMS}
    if others != {row["machine"] for row in ours}:
        peers = sorted({row["machine"] for row in clocked if row["system"] in SYSTEMS[1:]})
        machine += f" (peers: {', '.join(peers)}, so that seconds are of different machines)"
    return (
        f"Version {version}. Seconds and memory: {machine}, {date}, whole commands with 2 threads, best of {tries} "
        "tries. Memory goes with the product of the lengths of both sides: "
        f"{int(long['pairs']):,} pairs of {float(long['words']):.0f} words took {float(long['peak_mb']) / 1000:.1f} GB."
    )
