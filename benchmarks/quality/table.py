"""The comparison, made from rows: printed for people at work, and written into docs/benchmarks.md and README.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks import rows, scoring, systems
from benchmarks.corpora import Set, all_sets

HERE = Path(__file__).parent
PAGE = Path("docs/benchmarks.md")
SYSTEMS = (systems.ISOGLOSS, systems.EFLOMAL, systems.FAST_ALIGN)
PAIRED = (
    "data",
    "split",
    "version",
    "commit",
    "AER",
    "against",
    "symmetrisation",
    "difference",
    "low",
    "high",
    "p",
    "how",
)
SAME = 0.001
MARK = "symmetrisation="

Row = dict[str, str]


@dataclass(frozen=True)
class Best:
    """A system on a set: the mean over its runs of its best symmetrisation."""

    aer: float
    low: float
    high: float
    method: str
    rows: tuple[Row, ...]


def best(found: list[Row]) -> dict[str, dict[str, Best]]:
    """For every set and system with a plain command, the symmetrisation with the lowest mean AER."""
    grouped: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows.newest(found, ("data", "system")):
        further = row["options"].split()[1:]  # the first is threads=
        is_plain = not further or (len(further) == 1 and further[0].startswith(MARK))
        if row["AER"] and is_plain:
            grouped[row["data"], row["system"]]["".join(further).removeprefix(MARK)].append(row)
    result: dict[str, dict[str, Best]] = defaultdict(dict)
    for (data, system), methods in grouped.items():
        means = {method: mean(float(row["AER"]) for row in group) for method, group in methods.items()}
        method = min(means, key=means.__getitem__)
        group = methods[method]
        low, high = (mean(float(row[name]) for row in group) for name in ("AER_low", "AER_high"))
        result[data][system] = Best(means[method], low, high, method, tuple(group))
    return result


def paired(table: dict[str, dict[str, Best]], split: str) -> dict[str, Row]:
    """Isogloss against eflomal on each set: from the links where they are still there, else as it was written down.

    If other links have been made since, and eflomal's are gone, from the intervals of both (`scoring.apart`).
    """
    file = rows.Rows(HERE / "align-paired.csv", PAIRED, ("data", "split"))
    kept = {row["data"]: row for row in file.read() if row["split"] == split}
    known = all_sets()
    for name, entries in table.items():
        if systems.ISOGLOSS in entries and systems.EFLOMAL in entries and name in known:
            ours, theirs = entries[systems.ISOGLOSS], entries[systems.EFLOMAL]
            same = name in kept and abs(float(kept[name]["AER"]) - ours.aer) < SAME
            test = _compare(known[name], split, ours, theirs) or (None if same else _apart(ours, theirs))
            if test is not None:
                file.put([{"data": name, "split": split, **_about(ours, theirs), **test}])
    return {row["data"]: row for row in file.read() if row["split"] == split and row["data"] in table}


def _about(ours: Best, theirs: Best) -> dict[str, object]:
    row = ours.rows[-1]
    return {
        "version": row["version"], "commit": row["commit"], "AER": row["AER"],
        "against": f"eflomal {_middle(theirs)['version']}", "symmetrisation": theirs.method,
    }  # fmt: skip


def _middle(best: Best) -> Row:
    """The run nearest to the mean."""
    return min(best.rows, key=lambda row: abs(float(row["AER"]) - best.aer))


def _apart(ours: Best, theirs: Best) -> dict[str, object]:
    found = scoring.apart((ours.aer, ours.low, ours.high), (theirs.aer, theirs.low, theirs.high))
    tested = {"difference": found.difference, "low": found.low, "high": found.high, "how": "intervals"}
    return tested | {"p": f"{found.p:.4f}"}


def _compare(data: Set, split: str, ours: Best, theirs: Best) -> dict[str, object] | None:
    links = []
    for row, method in ((ours.rows[-1], ours.method), (_middle(theirs), theirs.method)):
        threads = int(row["options"].split()[0].removeprefix("threads="))
        run = systems.System(row["system"], row["version"], ()).kept(data, threads, int(row["run"]))
        if run is None:
            return None
        links.append(scoring.outputs(run, data, split, (method,))[method])
        if abs(scoring.score(links[-1], data, split).aer - float(row["AER"])) > SAME:
            return None  # the links on disk are of another run than the row
    result = scoring.difference(links[0], links[1], data, split)
    low, high = result.interval
    tested = {"difference": result.delta, "low": low, "high": high, "how": "paired"}
    return tested | {"p": f"{result.p_value:.4f}"}


def report(found: list[Row], split: str) -> None:
    """Print the tables; those of the test splits also go to the page."""
    table = best(found)
    tests = paired(table, split)
    known = all_sets()
    counted = [name for name in known if known[name].counted and name in table]
    others = [name for name in known if not known[name].counted and name in table]
    parts = [_quality(counted, table, tests, with_mean=True)]
    if others:
        parts.append(_quality(others, table, tests, with_mean=False))
    print("\n\n".join(parts))
    if split == "test":
        from benchmarks.quality import readme
        from benchmarks.speed import __main__ as speed

        PAGE.write_text(_page(parts, speed.table(), rows.newest(found, ("data", "system"))), encoding="utf-8")
        readme.fill(table, counted, rows.newest(speed.results().read(), ("data", "system", "options")))


def _quality(names: list[str], table: dict[str, dict[str, Best]], tests: dict[str, Row], *, with_mean: bool) -> str:
    lines = [
        "| set | Isogloss | eflomal | fast_align | against eflomal | difference [95%] | p |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in names:
        entries = table[name]
        cells = [_cell(entries.get(system)) for system in SYSTEMS]
        test = tests.get(name)
        gap = (
            f"{float(test['difference']):+.2f} [{float(test['low']):+.2f}, {float(test['high']):+.2f}]" if test else ""
        )
        lines.append(
            f"| {name} | {' | '.join(cells)} | {_relative(entries)} | {gap} | {test['p'] if test else ''} |",
        )
    if with_mean:
        both = [name for name in names if all(system in table[name] for system in SYSTEMS[:2])]
        lines += [_mean(some, table) for some in ([both, names] if both and both != names else [names])]
    used = [(system, name, row) for name in names for system in SYSTEMS for row in _rows_of(table[name].get(system))]
    return "\n".join([*lines, "", rows.commits(used)])


def _rows_of(entry: Best | None) -> tuple[Row, ...]:
    return () if entry is None else entry.rows


def _mean(names: list[str], table: dict[str, dict[str, Best]]) -> str:
    """The last row: means of the systems that have a value on every one of these sets."""
    means = {
        system: Best(mean(table[name][system].aer for name in names), 0, 0, "", ())
        for system in SYSTEMS
        if names and all(system in table[name] for name in names)
    }
    cells = [f"**{means[system].aer:.2f}**" if system in means else "" for system in SYSTEMS]
    relative = _relative(means)
    return f"| **mean of {len(names)}** | {' | '.join(cells)} | {f'**{relative}**' if relative else ''} | | |"


def _cell(entry: Best | None) -> str:
    if entry is None:
        return ""
    how = f" {entry.method}" if entry.method else ""
    return f"{entry.aer:.2f} [{entry.low:.1f}, {entry.high:.1f}]{how}"


def _relative(entries: dict[str, Best]) -> str:
    if systems.ISOGLOSS not in entries or systems.EFLOMAL not in entries:
        return ""
    return f"{100 * (entries[systems.ISOGLOSS].aer / entries[systems.EFLOMAL].aer - 1):+.1f}%"


def _machines(found: list[Row]) -> Iterator[str]:
    """Where and when each system was run."""
    for system in SYSTEMS:
        own = [row for row in found if row["system"] == system]
        if own:
            dates = sorted({row["date"] for row in own})
            when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
            yield f"{system}: {', '.join(sorted({row['machine'] for row in own}))}, {when}"


def _page(parts: list[str], speed: str, found: list[Row]) -> str:
    from benchmarks import headline

    versions = sorted({f"{row['system']} {row['version']}" for row in found})
    text = (HERE / "page.md").read_text(encoding="utf-8")
    others = parts[1] if len(parts) > 1 else "No rows yet."
    values = {"COUNTED": parts[0], "OTHERS": others, "SPEED": speed or "No rows yet."}
    values["HEADLINE"] = headline.overview()
    values |= {"VERSIONS": ", ".join(versions), "MACHINES": "; ".join(_machines(found))}
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text
