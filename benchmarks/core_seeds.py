"""Whether a difference between two checkouts is more than chance: items of `benchmarks.core` with several seeds.

python -m benchmarks.core_seeds --before df22950 --only dictionary/de --seeds 8    seeds 0 to 7
python -m benchmarks.core_seeds --table                                            run nothing: write the table

`benchmarks.core` runs an item with one seed, and its paired bootstrap asks whether two *outputs* differ. A learner that
begins at random, or takes sentences in random order, gives other outputs with other seeds, and so does one that adds
the same numbers in another order. Here both checkouts learn with several seeds, and Student's interval of the mean of
their differences is that of another seed. Seeds of which there are rows of both commits are not run again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from benchmarks import core, rows
from benchmarks.core import AFTER, BEFORE, Checkout, Command, Item
from benchmarks.headline import choose

SEEDED = ("dictionary", "parse", "joint")
"""Groups of items whose first command, the one that learns, has the option --seed."""
COLUMNS = ("date", "machine", BEFORE, AFTER, "item", "measure", "seed", "score_before", "score_after", "command")


def results() -> rows.Rows:
    return rows.Rows(core.HERE / "core-seeds.csv", COLUMNS, ("item", "measure", "seed"))


def seeded(item: Item, seed: int) -> Item:
    """The same item, learnt with another seed."""

    def commands(place: Path, quick: bool) -> list[Command]:
        learn, *rest = item.commands(place, quick)
        return [[*learn, "--seed", str(seed)], *rest]

    return replace(item, name=f"{item.name}-seeds", commands=commands)


def run(chosen: Sequence[Item], before: str, seeds: range, threads: int) -> None:
    """Write the rows that are missing, seed by seed."""
    core.KEPT.mkdir(parents=True, exist_ok=True)
    file = results()
    with core.checkout(before) as other:
        sides = {BEFORE: other, AFTER: Checkout(core.ROOT, rows.commit(core.ROOT))}
        for sources in sides.values():
            sources.check()
        commits = {side: sources.commit for side, sources in sides.items()}
        for seed in seeds:
            for item in chosen:
                if not file.has(item=item.name, seed=seed, **commits):
                    made = core.run_item(seeded(item, seed), sides, 1, threads, quick=False)
                    file.put(row | {"item": item.name, "seed": seed} for row in made)


def table(found: list[rows.Row]) -> str:
    """A line for each item and measure: means over seeds ± their standard deviation, and the mean difference."""
    if not found:
        return "No rows yet."
    lines = ["| | measure | seeds | before | after | difference [95%] | p |", "|" + "---|" * 7]
    for item, measure in dict.fromkeys((row["item"], row["measure"]) for row in found):
        own = [row for row in found if (row["item"], row["measure"]) == (item, measure)]
        lines.append(f"| {item} | {measure.upper()} | {len(own)} | {' | '.join(_cells(own))} |")
    pairs = dict.fromkeys((row[BEFORE], row[AFTER]) for row in found)
    made = "; ".join(f"before {before}, after {after}" for before, after in pairs)
    return "\n".join([*lines, "", f"Commits of the rows: {made}."])


def _cells(own: list[rows.Row]) -> list[str]:
    before, after = (np.array([float(row[f"score_{side}"]) for row in own]) for side in (BEFORE, AFTER))
    shown = [f"{values.mean():.2f} ± {_spread(values)}" for values in (before, after)]
    gap = f"{after.mean() - before.mean():+.2f}"
    if len(own) < 2:
        return [*shown, gap, ""]
    test: Any = ttest_rel(after, before)
    low, high = test.confidence_interval()
    p = f"{test.pvalue:.4f}"
    return [*shown, f"{gap} [{low:+.2f}, {high:+.2f}]", f"**{p}**" if test.pvalue < core.SIGNIFICANT else p]


def _spread(values: np.ndarray) -> str:
    return f"{values.std(ddof=1):.2f}" if len(values) > 1 else "?"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.core_seeds", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--before", help="another checkout (a folder), or a commit")
    parser.add_argument("--only", default="", help="an item or a group, as benchmarks.core names them")
    parser.add_argument("--seeds", type=int, default=4, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="run nothing: write the table of the page")
    arguments = parser.parse_args(argv)
    if not arguments.table:
        if not arguments.before:
            parser.error("--before: name another checkout or a commit to compare with")
        chosen = [item for item in choose(core.items(), arguments.only) if item.name.split("/")[0] in SEEDED]
        seeds = range(arguments.first, arguments.first + arguments.seeds)
        run(chosen, arguments.before, seeds, arguments.threads)
    rows.fill(core.PAGE, "core seeds", table(results().read()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
