"""Another annotation style from 0, 10 and 100 trees: table 4.1 of Smith, 2010, on converted treebanks.

python -m benchmarks.quality.restyle                        all rows that are missing: three draws of the few trees
python -m benchmarks.quality.restyle --only en-ewt          one treebank
python -m benchmarks.quality.restyle --draws 1              fewer draws
python -m benchmarks.quality.restyle --plain                configurations alone, as in the thesis
python -m benchmarks.quality.restyle --again                replace rows that are there
python -m benchmarks.quality.restyle --table                run nothing: write the tables of docs/parse-restyle.md

Four styles: coordination as in UD or Prague, prepositions as heads or children. Old trees are gold, or by an order-1
parser of the old style with gold tags that learnt from the first trees of the training part; the few trees are drawn
from the others. Everything was chosen on en-ewt dev; the rows are on test.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import rows
from isogloss import __version__
from isogloss.data.treebank import Treebank
from isogloss.metrics import score_trees
from isogloss.tasks.parse import DependencyParser, StyleAdapter
from isogloss.tasks.parse.styles import convert

TEXTS = {"en-ewt": 5000, "el-gdt": 1000}
"""Treebanks, and how many trees the old parser learns from."""
STYLES = {
    "UD-PrepHead": ("ud", "head"),
    "UD-PrepChild": ("ud", "child"),
    "Prague-PrepHead": ("prague", "head"),
    "Prague-PrepChild": ("prague", "child"),
}
SIZES = (0, 10, 100)
KINDS = ("gold", "parse")
PAGE = Path("docs/parse-restyle.md")
MODELS = Path("out/restyle")
COLUMNS = (
    "date", "machine", "version", "commit", "command", "text", "kind", "source", "target", "features", "trees", "draw",
    "uas", "las", "l2", "weights", "seconds", "cpu_seconds",
)  # fmt: skip
KEY = ("text", "kind", "source", "target", "features", "trees", "draw")


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("restyle.csv"), COLUMNS, KEY)


def folder() -> Path:
    return Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "treebanks"


class Sides(NamedTuple):
    """Sentences to draw from, and those of the test, with old trees of one style and kind."""

    pool: Treebank
    test: Treebank


def old_parser(text: str, style: str) -> DependencyParser:
    """The parser of an old style, kept for the next time."""
    place = MODELS / f"{text}-{style}-{TEXTS[text]}"
    if not place.exists():
        trees = Treebank.read(folder() / text / "train.conllu.gz").part(0, TEXTS[text])
        MODELS.mkdir(parents=True, exist_ok=True)
        DependencyParser(order=1).fit(convert(trees, *STYLES[style])).save(place)
    return DependencyParser.load(place)


def old_trees(text: str, kind: str, style: str, gold: Sides) -> Sides:
    made = Sides(*(convert(trees, *STYLES[style]) for trees in gold))
    if kind == "gold":
        return made
    parser = old_parser(text, style)
    return Sides(*(parser.predict(trees) for trees in made))


def draws(text: str, count: int) -> Sides:
    """The trees that the few are drawn from, as many as are needed, in the order of the draws; and the test."""
    train = Treebank.read(folder() / text / "train.conllu.gz")
    order = TEXTS[text] + np.random.default_rng(2010).permutation(len(train) - TEXTS[text])
    return Sides(train.take(order[: count * max(SIZES)]), Treebank.read(folder() / text / "test.conllu.gz"))


def measure(text: str, kind: str, arguments: argparse.Namespace, command: str) -> None:
    """All pairs of styles, a draw after the other."""
    count, plain = arguments.draws, arguments.plain
    gold = draws(text, count)
    old = {style: old_trees(text, kind, style, gold) for style in STYLES}
    new = {style: Sides(*(convert(trees, *STYLES[style]) for trees in gold)) for style in STYLES}
    for draw in range(count):
        for source in STYLES:
            for target in STYLES:
                for size in SIZES:
                    key: dict[str, object] = {
                        "text": text, "kind": kind, "source": source, "target": target,
                        "features": "configurations" if plain else "paths", "trees": size, "draw": draw,
                    }  # fmt: skip
                    if arguments.again or not results().is_done(**key, outdated=arguments.outdated):
                        row = one(old[source], new[target], size, draw, relations=not plain)
                        base = {"date": rows.today(), "machine": rows.machine(), "version": __version__}
                        results().put([{**base, "commit": rows.commit(), "command": command, **key, **row}])
                        shown = " ".join(map(str, key.values()))
                        print(f"{shown}: UAS {row['uas']:.2f} LAS {row['las']:.2f}", file=sys.stderr, flush=True)


def one(old: Sides, new: Sides, size: int, draw: int, *, relations: bool) -> dict[str, float]:
    """Learn from some trees of a draw, and score the test."""
    clock, cpu = time.time(), time.process_time()
    few = slice(draw * max(SIZES), draw * max(SIZES) + size)
    adapter = StyleAdapter(relations=relations).fit(new.pool[few], old.pool[few])
    found = score_trees(adapter.predict(old.test), new.test)
    spent = {"seconds": time.time() - clock, "cpu_seconds": time.process_time() - cpu}
    return {"uas": found.uas, "las": found.las, "l2": adapter.l2_, "weights": adapter.n_features_, **spent}


# --- tables


def mean(kept: list[rows.Row], measure: str = "uas", **same: object) -> float:
    some = [float(row[measure]) for row in kept if all(row[name] == str(value) for name, value in same.items())]
    return float(np.mean(some)) if some else float("nan")


def whole() -> list[rows.Row]:
    """The rows of draws that have all pairs of styles and sizes: means over others would not compare."""
    found = results().read()
    same = ("text", "kind", "features", "draw")
    counts = Counter(tuple(row[name] for name in same) for row in found)
    return [row for row in found if counts[tuple(row[name] for name in same)] == len(STYLES) ** 2 * len(SIZES)]


def table(text: str) -> str:
    """0 / 10 / 100 trees for every pair of styles."""
    kept = [row for row in whole() if row["text"] == text and row["features"] == "paths"]
    lines = [f"| old trees | {' | '.join(STYLES)} |", "|---" * (len(STYLES) + 1) + "|"]
    for source in STYLES:
        for kind in KINDS:
            if not any((row["source"], row["kind"]) == (source, kind) for row in kept):
                continue
            cells = []
            for target in STYLES:
                pair = {"kind": kind, "source": source, "target": target}
                cells.append(" / ".join(f"{mean(kept, trees=size, **pair):.1f}" for size in SIZES))
            lines.append(f"| {kind} {source} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", rows.commits((row["kind"], row["source"], row) for row in kept)])


def summary() -> str:
    """Means over the pairs of different styles, and over the four pairs of the same."""
    kept = whole()
    lines = ["| treebank | old trees | features | draws | styles | measure | 0 | 10 | 100 |", "|---" * 9 + "|"]
    found = {(row["text"], row["kind"], row["features"]) for row in kept}
    for text, kind, features in sorted(found, key=lambda each: (list(TEXTS).index(each[0]), each[1:])):
        own = [row for row in kept if (row["text"], row["kind"], row["features"]) == (text, kind, features)]
        count = len({row["draw"] for row in own})
        for name, equal in (("differ", False), ("same", True)):
            some = [row for row in own if (row["source"] == row["target"]) == equal]
            for measure in ("uas", "las"):
                cells = " | ".join(f"{mean(some, measure, trees=size):.1f}" for size in SIZES)
                lines.append(f"| {text} | {kind} | {features} | {count} | {name} | {measure.upper()} | {cells} |")
    return "\n".join([*lines, "", rows.commits((row["text"], row["kind"], row) for row in kept)])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.restyle", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="treebanks, such as en-ewt; default: all")
    parser.add_argument("--kind", default="", choices=("", *KINDS), help="gold or parse; default: both")
    parser.add_argument("--draws", type=int, default=3, help="how often the few trees are drawn")
    parser.add_argument("--plain", action="store_true", help="configurations alone, without relations and paths")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--table", action="store_true", help="run nothing: write the tables into their page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        for text in TEXTS:
            rows.fill(PAGE, text, table(text))
        rows.fill(PAGE, "summary", summary())
        return
    if not folder().exists():
        print(f"restyle: skipped, there is no {folder()}; see ISOGLOSS_DATA", file=sys.stderr)
        return
    command = "python -m benchmarks.quality.restyle" + (" --plain" if arguments.plain else "")
    for text in arguments.only.split(",") if arguments.only else TEXTS:
        for kind in [arguments.kind] if arguments.kind else KINDS:
            measure(text, kind, arguments, command)


if __name__ == "__main__":
    main()
