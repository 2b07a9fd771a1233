"""What linking words by their morphemes as well is worth: `isogloss align` with and without --segment.

python -m benchmarks.quality.align_segments               rows of test sets that are missing
python -m benchmarks.quality.align_segments --dev         the same of dev sets, by which settings were chosen
python -m benchmarks.quality.align_segments --sets en-et.xlwa,grc-fi.helfi --again
python -m benchmarks.quality.align_segments --table       run nothing: write the tables of docs/align-morphemes.md

Texts are those of `benchmarks.quality.align`. Differences to the default aligner are paired over resamples of sentence
pairs (bootstrap, 10,000).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks import rows, scoring, systems
from benchmarks.corpora import Set, all_sets
from isogloss import __version__
from isogloss.data import Links

DEV = {
    "en-et.xlwa": "dev", "en-ru.xlwa": "dev", "en-sl.xlwa": "dev", "en-cs.czenali": "dev", "grc-fi.helfi": "dev",
}  # fmt: skip
"""Sets by which settings were chosen, besides the silver links of train sets."""
ASKED = ("grc-fi.helfi", "en-et.xlwa", "en-tr.silveralign", "en-ru.xlwa")
"""Sets of languages with many forms of a word, by which the method is judged."""
OTHERS = (
    "en-cs.czenali", "en-sl.xlwa", "en-da.xlwa", "en-es.xlwa", "en-it.xlwa", "en-pt.xlwa", "en-fr.hansards",
    "hansards-10k", "ro-en.wpt",
)  # fmt: skip
TITLES = {
    "grc-fi.helfi": "Greek-Finnish Bible", "en-et.xlwa": "English-Estonian", "en-tr.silveralign": "English-Turkish",
    "en-ru.xlwa": "English-Russian", "en-cs.czenali": "English-Czech", "en-sl.xlwa": "English-Slovene",
    "en-da.xlwa": "English-Danish", "en-es.xlwa": "English-Spanish", "en-it.xlwa": "English-Italian",
    "en-pt.xlwa": "English-Portuguese", "en-fr.hansards": "English-French Hansards", "ro-en.wpt": "Romanian-English",
    "hansards-10k": "English-French Hansards, 10,447 pairs",
}  # fmt: skip
DEFAULT, BOTH = "", "--segment both"
WAYS = (DEFAULT, BOTH, "--segment source", "--segment target")
TRIED = (
    "--segment both --morpheme-weight 0.3", "--segment both --morpheme-weight 1", "--segment both --cut-length 1",
    "--segment both --cut-count 1000000", "--segment both --cut-count 20",
)  # fmt: skip
"""Settings of which one was chosen on dev."""
COLUMNS = (
    *("date", "machine", "commit", "version", "data", "split", "options", "pairs", "P", "R", "AER", "links"),
    *("difference", "low", "high", "p", "seconds", "cpu_seconds", "peak_mb", "command", "signature"),
)
PAGE = Path(__file__).parents[2] / "docs" / "align-morphemes.md"
THREADS = 1


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("align_segments.csv"), COLUMNS, ("data", "split", "options"))


def links_of(data: Set, split: str, options: str, again: bool) -> tuple[Links, systems.Run]:
    """The links of a split by the command with some options, and what it cost."""
    program = (sys.executable, "-m", systems.ISOGLOSS)
    system = systems.System(systems.ISOGLOSS, __version__, program, tuple(options.split()))
    run = None if again else system.kept(data, THREADS)
    run = run or system.run(data, THREADS)
    return scoring.outputs(run, data, split)[""], run


def measure(data: Set, split: str, ways: tuple[str, ...], again: bool, outdated: bool) -> None:
    """Make the rows of a set; the default is run first, and all others are compared with it."""
    file = results()
    same = {"data": data.name, "split": split}
    missing = [way for way in ways if again or not file.is_done(**same, options=way, outdated=outdated)]
    if not missing:
        return
    base, _ = links_of(data, split, DEFAULT, again or outdated)
    for way in missing:
        links, run = links_of(data, split, way, (again or outdated) and way != DEFAULT)
        score = scoring.score(links, data, split)
        row: dict[str, Any] = {
            **same, "date": rows.today(), "machine": rows.machine(), "commit": rows.commit(), "version": __version__,
            "options": way, "pairs": len(links), "P": score.precision, "R": score.recall, "AER": score.aer,
            "links": score.links, "seconds": run.seconds, "cpu_seconds": run.cpu_seconds, "peak_mb": run.peak_mb,
            "command": run.command, "signature": score.signature,
        }  # fmt: skip
        if way != DEFAULT:
            found = scoring.difference(links, base, data, split)
            row |= {"difference": found.delta, "low": found.interval[0], "high": found.interval[1], "p": found.p_value}
        file.put([row])
        print(f"{data.name:20} {split:5} {way:40} AER {score.aer:6.2f}", file=sys.stderr, flush=True)


def table(sets: dict[str, str], ways: tuple[str, ...]) -> str:
    """AER of the default, and of each way with its difference; bold where the difference is significant."""
    known = {(row["data"], row["split"], row["options"]): row for row in results().read()}
    used = rows.Used()
    heads = ["text", "pairs", "default", *(f"`{_short(way) if ways == TRIED else way}`" for way in ways)]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for name, split in sets.items():
        base = known.get((name, split, DEFAULT))
        if base is None:
            continue
        used.add("default", TITLES[name], base)
        cells = [TITLES[name], base["pairs"], f"{float(base['AER']):.2f}"]
        for way in ways:
            row = known.get((name, split, way))
            cells.append("" if row is None else _cell(row))
            if row is not None:
                used.add(way, TITLES[name], row)
        lines.append("| " + " | ".join(cells) + " |")
    return used.below("\n".join(lines))


def _short(way: str) -> str:
    """An option that stands beside --segment both."""
    return way.removeprefix(BOTH).strip()


def _cell(row: rows.Row) -> str:
    shown = f"{float(row['AER']):.2f} ({float(row['difference']):+.2f})"
    return f"**{shown}**" if float(row["p"]) < 0.05 else shown


def costs(sets: dict[str, str]) -> str:
    """Precision, recall, links and seconds of the default and of both sides cut."""
    known = {(row["data"], row["split"], row["options"]): row for row in results().read()}
    used = rows.Used()
    lines = ["| text | | precision | recall | links | CPU s | peak MB |", "|---|---|---:|---:|---:|---:|---:|"]
    for name, split in sets.items():
        for way in (DEFAULT, BOTH):
            if (row := known.get((name, split, way))) is not None:
                used.add(way or "default", TITLES[name], row)
                p, r = float(row["P"]), float(row["R"])
                cost = f"{float(row['cpu_seconds']):.0f} | {float(row['peak_mb']):.0f}"
                lines.append(f"| {TITLES[name]} | {way or 'default'} | {p:.1f} | {r:.1f} | {row['links']} | {cost} |")
    return used.below("\n".join(lines))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.align_segments", description=__doc__.split("\n")[0])
    parser.add_argument("--sets", help="names from sets.tsv, split by commas")
    parser.add_argument("--dev", action="store_true", help="dev sets, with the settings that were tried")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--table", action="store_true", help="run nothing: write the tables of docs/align-morphemes.md")
    given = parser.parse_args(argv)
    tests = dict.fromkeys((*ASKED, *OTHERS), "test")
    if not given.table:
        sets, known = DEV if given.dev else tests, all_sets()
        for name in given.sets.split(",") if given.sets else sets:
            if name not in sets:
                parser.error(f"--sets: {name!r} should be one of {', '.join(sets)}")
            ways = WAYS + TRIED if given.dev else WAYS if name in ASKED else (DEFAULT, BOTH)
            measure(known[name], sets[name], ways, given.again, given.outdated)
    rows.fill(PAGE, "asked", table(dict.fromkeys(ASKED, "test"), WAYS[1:]))
    rows.fill(PAGE, "others", table(dict.fromkeys(OTHERS, "test"), (BOTH,)))
    rows.fill(PAGE, "dev", table(DEV, WAYS[1:]))
    rows.fill(PAGE, "tried", table(DEV, TRIED))
    rows.fill(PAGE, "costs", costs(dict.fromkeys(ASKED, "test")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
