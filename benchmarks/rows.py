"""Rows of measurements in small CSV files: read, replaced and written under a lock, so that runs can overlap."""

from __future__ import annotations

import csv
import fcntl
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

Row = dict[str, str]


def machine() -> str:
    """The processor and the number of cores we may use."""
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model)
    return f"{model} ({len(os.sched_getaffinity(0))} cores)"


def today() -> str:
    return date.today().isoformat()


SOURCES = ("src", ":(glob)benchmarks/**/*.py")
"""What a row depends on: not the rows themselves and not the pages, so that committing them makes no row outdated."""


def commit(folder: Path | None = None) -> str:
    """The last commit that changed the sources, with + where they have changed since.

    Outside of a checkout, what BENCHMARK_COMMIT says, or nothing.

    Parameters
    ----------
    folder : path, optional
        The checkout; by default that of the working directory.
    """
    git = ["git", "-C", str(folder or ".")]
    asked = (["log", "-1", "--format=%h", "--", *SOURCES], ["status", "--porcelain", "--", *SOURCES])
    try:
        name, changed = (
            subprocess.run([*git, *each], capture_output=True, text=True, check=True).stdout.strip() for each in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("BENCHMARK_COMMIT", "")
    return name + ("+" if changed else "")


def is_of(row: Row, commit: str) -> bool:
    """Whether a commit has made a row. What sources with changes have made never counts: nobody knows the changes.

    Examples
    --------
    >>> is_of({"commit": "1a"}, "1a"), is_of({"commit": "1a"}, "2b"), is_of({"commit": "1a+"}, "1a+"), is_of({}, "")
    (True, False, False, False)
    """
    return bool(commit) and not commit.endswith("+") and row.get("commit") == commit


def newest(found: Iterable[Row], same: Sequence[str]) -> list[Row]:
    """Of rows that are alike in some columns, those of the version that was measured last.

    Examples
    --------
    >>> old, new = ({"data": "de", "version": v, "date": d} for v, d in (("0.1", "2026-11-15"), ("0.2", "2026-11-16")))
    >>> newest([old, new, new, old], ["data"]) == [new, new]
    True
    """
    kept = list(found)
    last: dict[tuple[str, ...], tuple[str, int, str]] = {}
    for k, row in enumerate(kept):
        key = tuple(row[name] for name in same)
        last[key] = max(last.get(key, ("", -1, "")), (row["date"], k, row["version"]))
    return [row for row in kept if row["version"] == last[tuple(row[name] for name in same)][2]]


def fill(page: Path, name: str, table: str) -> None:
    """Put a table into a page, between ``<!-- name -->`` and ``<!-- end -->``."""
    text, begin, end = page.read_text(encoding="utf-8"), f"<!-- {name} -->\n", "<!-- end -->"
    before, found, rest = text.partition(begin)
    if not found or end not in rest:
        raise ValueError(f"{page}: there is no place for {name} ({begin.strip()} ... {end})")
    page.write_text(f"{before}{begin}{table}\n{end}{rest.split(end, 1)[1]}", encoding="utf-8")


def commits(used: Iterable[tuple[str, str, Row]]) -> str:
    """What stands below a table: the commit of every row in it, given as column, line and row.

    Examples
    --------
    >>> a, b = {"commit": "1a"}, {"commit": "2b+"}
    >>> commits([("ours", "de", a), ("ours", "fr", a)])
    'Commit of all rows: 1a.'
    >>> commits([("ours", "de", a), ("ours", "fr", b), ("theirs", "de", a), ("theirs", "fr", a)])
    'Commits of the rows: 1a: ours (de) · theirs; 2b+: ours (fr).'
    >>> commits([("ours", "de", {"commit": ""}), ("", "fr", a)])
    'Commits of the rows: not recorded: ours; 1a: fr.'
    """
    columns: dict[str, dict[str, None]] = {}
    by_commit: dict[str, dict[str, dict[str, None]]] = {}
    for column, line, row in used:
        columns.setdefault(column, {})[line] = None
        made = row.get("commit") or "not recorded"
        by_commit.setdefault(made, {}).setdefault(column, {})[line] = None
    if len(by_commit) == 1:
        return f"Commit of all rows: {next(iter(by_commit))}."
    shown = []
    for made, found in by_commit.items():
        parts = []
        for column, lines in found.items():
            some = "" if len(lines) == len(columns[column]) else f" ({', '.join(lines)})"
            parts.append(f"{column}{some}" if column else ", ".join(lines))
        shown.append(f"{made}: {' · '.join(parts)}")
    return f"Commits of the rows: {'; '.join(shown)}."


class Used:
    """The rows that a table takes, for the line below it."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, Row]] = []

    def add(self, column: str, line: str, row: Row) -> None:
        self._rows.append((column, line, row))

    def below(self, table: str) -> str:
        """A table with the commits of the rows that were added since the last one."""
        used, self._rows = self._rows, []
        return f"{table.rstrip()}\n\n{commits(used)}" if used else table


class Rows:
    """A CSV file with a header, where rows with the same key replace one another.

    Parameters
    ----------
    path : Path
    columns : sequence of str
    key : sequence of str
        The columns that say which run a row is of.
    """

    def __init__(self, path: Path, columns: Sequence[str], key: Sequence[str]) -> None:
        self.path, self.columns, self.key = path, tuple(columns), tuple(key)

    def read(self) -> list[Row]:
        if not self.path.exists():
            return []
        with open(self.path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def has(self, **columns: object) -> bool:
        """Whether a row with these values is there."""
        return bool(self.find(**columns))

    def find(self, **columns: object) -> list[Row]:
        """The rows with these values; a column that a file does not have yet is empty."""
        wanted = {name: plain(value) for name, value in columns.items()}
        return [row for row in self.read() if all(row.get(name, "") == value for name, value in wanted.items())]

    def is_done(self, *, outdated: bool, **columns: object) -> bool:
        """Whether rows are there that need not be made: with `outdated`, rows that this commit has made."""
        found = self.find(**columns)
        if outdated:
            now = commit()
            return bool(found) and all(is_of(row, now) for row in found)
        return bool(found)

    def put(self, fresh: Iterable[dict[str, object]]) -> None:
        """Add rows, or replace those with the same key, in place."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock_file = Path("out") / f"{self.path.name}.lock"
        lock_file.parent.mkdir(exist_ok=True)
        with open(lock_file, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            rows = {self._key(row): row for row in self.read()}
            for new in fresh:
                row = {name: plain(new.get(name, "")) for name in self.columns}
                rows[self._key(row)] = row
            unfinished = self.path.with_suffix(".unfinished")
            with open(unfinished, "w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, self.columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows.values())
            unfinished.rename(self.path)

    def _key(self, row: Row) -> tuple[str, ...]:
        return tuple(row[name] for name in self.key)


def plain(value: object) -> str:
    """A value as files have it."""
    return f"{value:.3f}" if isinstance(value, float) else str(value)
