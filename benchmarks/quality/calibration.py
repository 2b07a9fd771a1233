"""Do links with probability p turn out right in a share p of cases? The default aligner on every gold set.

python -m benchmarks.quality.calibration                          all sets but the largest
python -m benchmarks.quality.calibration --all                    those too
python -m benchmarks.quality.calibration --sets en-cs.czenali     a choice
python -m benchmarks.quality.variants --table                     the table goes to docs/benchmarks-variants.md
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median

import numpy as np
from numpy.typing import NDArray

from benchmarks import rows, scoring
from benchmarks.corpora import Set, all_sets
from isogloss import __version__
from isogloss.data import Bitext, Links
from isogloss.metrics import calibration
from isogloss.tasks.align import HMMAligner
from isogloss.tasks.align import decode as decoding

HERE = Path(__file__).parent
LARGE = ("hansards-100k", "hansards-227k")
LEAST = 0.01  # cells below it are nearly all of the cells, and right to be where they are
BINS = 10
AIM = 5.0
CELLS, LINKS = f"cells >= {LEAST:g}", "links"
KEY = ("data", "over")
COLUMNS = (
    *("date", "machine", "version", "commit", *KEY, "threshold"),
    *("ECE", "confidence", "accuracy", "judged", "possible_only", "ECE_possible_right", "ECE_annotated"),
    *("command", "signature"),
)


def results() -> rows.Rows:
    return rows.Rows(HERE / "calibration.csv", COLUMNS, KEY)


def measure(data: Set) -> Iterator[dict[str, object]]:
    """Both rows of a set: over all cells with some posterior, and over the links that are predicted."""
    data.assemble()
    bitext = Bitext.read(data.source, data.target)
    aligner = HMMAligner(threads=1).fit(bitext)
    corpus, _, evidence = aligner._evidence(bitext)
    gold, lines = scoring.gold(data.gold("test")), data.lines["test"]
    for over, least in ((CELLS, LEAST), (LINKS, aligner.threshold_)):
        links = decoding.links_above(corpus.pairs, evidence.posterior, least).part(lines.start, lines.stop)
        result = calibration(links, gold, BINS)
        some, judged = result.count > 0, int(result.count.sum())
        yield {
            "date": rows.today(),
            "machine": rows.machine(),
            "version": __version__,
            "commit": rows.commit(),
            "data": data.name,
            "over": over,
            "threshold": least,
            "ECE": 100 * result.error,
            "confidence": 100 * float(np.dot(result.count[some], result.confidence[some])) / max(1, judged),
            "accuracy": 100 * float(np.dot(result.count[some], result.accuracy[some])) / max(1, judged),
            "judged": judged,
            "possible_only": result.skipped,
            "ECE_possible_right": 100 * calibration(links, gold, BINS, possible="right").error,
            "ECE_annotated": 100 * calibration(links.keep(_annotated(links, gold)), gold, BINS).error,
            "command": f"python -m benchmarks.quality.calibration --sets {data.name}",
            "signature": f"bins:{BINS}|possible:skip|null:no|index:0|n:{len(gold)}|v:{__version__}",
        }


def _annotated(links: Links, gold: Links) -> NDArray[np.bool_]:
    """Links with a word that the gold links to something: where it says nothing of either, it may not have tried."""
    known = np.zeros(len(links.source), bool)
    for side in ("source", "target"):
        stride = 1 + max(int(getattr(some, side).max(initial=0)) for some in (links, gold))
        words = [some.pair * stride + getattr(some, side) for some in (links, gold)]
        known |= np.isin(words[0], words[1])
    return known


def table(found: list[rows.Row]) -> str:
    """A line for each set, those that count in the mean first, and what they come to."""
    by_set: dict[str, dict[str, rows.Row]] = defaultdict(dict)
    for row in found:
        by_set[row["data"]][row["over"]] = row
    known = all_sets()
    complete = [name for name in known if {CELLS, LINKS} <= by_set.get(name, {}).keys()]
    if not complete:
        return "No rows yet."
    lines = [
        "| set | links: ECE | confidence | accuracy | judged | annotated: ECE | cells: ECE | confidence | accuracy |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    counted = [name for name in complete if known[name].counted]
    others = [name for name in complete if not known[name].counted]
    for names, title in ((counted, "sets that count"), (others, "other sets")):
        lines += [f"| {name} | {_cells(by_set[name])} |" for name in names]
        if names:
            means = [mean(float(by_set[name][over]["ECE"]) for name in names) for over in (LINKS, CELLS)]
            lines.append(f"| **mean of {len(names)} {title}** | **{means[0]:.2f}** | | | | | **{means[1]:.2f}** | | |")
    summaries = [
        _summary([by_set[name] for name in names], title)
        for names, title in ((counted, "sets that count"), (others, "other sets"))
        if names
    ]
    used = [("", name, row) for name in complete for row in by_set[name].values()]
    return "\n".join([*lines, "", rows.commits(used), "", *summaries])


def _cells(both: dict[str, rows.Row]) -> str:
    links, cells = both[LINKS], both[CELLS]
    numbers = [
        *(f"{float(links['ECE']):.2f}", f"{float(links['confidence']):.1f}", f"{float(links['accuracy']):.1f}"),
        links["judged"],
        f"{float(links['ECE_annotated']):.2f}" if links["ECE_annotated"] else "",
        *(f"{float(cells['ECE']):.2f}", f"{float(cells['confidence']):.1f}", f"{float(cells['accuracy']):.1f}"),
    ]
    return " | ".join(numbers)


def _summary(sets: list[dict[str, rows.Row]], title: str) -> str:
    links, cells = ([float(both[over]["ECE"]) for both in sets] for over in (LINKS, CELLS))
    sure = sum(float(both[LINKS]["confidence"]) > float(both[LINKS]["accuracy"]) for both in sets)
    return (
        f"- {len(sets)} {title}: on the links {sum(error < AIM for error in links)} are below {AIM:g} (median "
        f"{median(links):.2f}, from {min(links):.2f} to {max(links):.2f}), on the cells "
        f"{sum(error < AIM for error in cells)}; links are more confident than right on {sure}."
    )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.calibration", description=__doc__.split("\n")[0])
    parser.add_argument("--sets", help="names from sets.tsv, split by commas")
    parser.add_argument("--all", action="store_true", help=f"also {' and '.join(LARGE)}")
    arguments = parser.parse_args(argv)
    known = all_sets()
    with_gold = [name for name, data in known.items() if data.has_gold("test")]
    chosen = [name for name in with_gold if arguments.all or name not in LARGE]
    if arguments.sets:
        chosen = arguments.sets.split(",")
        for name in chosen:
            if name not in with_gold:
                parser.error(f"--sets: there is no {name!r} with gold in sets.tsv; there are {', '.join(with_gold)}")
    for name in chosen:
        made = list(measure(known[name]))
        results().put(made)
        cells, links = (row["ECE"] for row in made)
        print(f"{name:20} ECE {links:5.2f} on links, {cells:5.2f} on cells", file=sys.stderr, flush=True)
    print(table(results().read()))


if __name__ == "__main__":
    main()
