"""Links of a split out of a system's output, and their scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist

import numpy as np

from benchmarks.corpora import Set
from benchmarks.systems import Run
from isogloss.data import Links
from isogloss.data.formats import read_links
from isogloss.metrics import AlignmentScore, Comparison, compare, score_links
from isogloss.tasks.align.symmetrise import symmetrise_links

SEED = 7
HEURISTICS = ("intersection", "grow-diag", "grow-diag-final", "grow-diag-final-and", "union")
METHODS = ("forward", "backward", *HEURISTICS)


def outputs(run: Run, data: Set, split: str, methods: tuple[str, ...] = METHODS) -> dict[str, Links]:
    """What a run says about a split: its links, or, for two directions, the links of each symmetrisation."""
    forward = _read(run.forward, data.lines[split])
    if run.backward is None:
        return {"": forward}
    backward = _read(run.backward, data.lines[split])
    links = {"forward": forward, "backward": backward}
    shapes = np.array(data.shapes(split))
    return {
        method: links[method] if method in links else symmetrise_links(forward, backward, shapes, method)
        for method in methods
    }


def score(links: Links, data: Set, split: str) -> AlignmentScore:
    """Scores with bootstrap intervals."""
    return score_links(links, gold(data.gold(split)), seed=SEED)


def difference(ours: Links, theirs: Links, data: Set, split: str) -> Comparison:
    """The paired bootstrap."""
    return compare(ours, theirs, gold(data.gold(split)), seed=SEED)


@dataclass(frozen=True)
class Apart:
    """A difference of two scores of which only the scores and their 95% intervals are left."""

    difference: float
    low: float
    high: float
    p: float


def apart(first: tuple[float, float, float], second: tuple[float, float, float]) -> Apart:
    """The difference of two (score, low, high), as though they had been drawn apart.

    Both systems find the same sentences hard, so that paired differences vary less than this says: it errs on the side
    of no difference.

    Examples
    --------
    >>> found = apart((90.0, 89.0, 91.0), (88.0, 87.0, 89.0))
    >>> found.difference, round(found.low, 2), round(found.high, 2), round(found.p, 4)
    (2.0, 0.59, 3.41, 0.0056)
    """
    normal = NormalDist()
    wide = normal.inv_cdf(0.975)
    spread = math.hypot(*((high - low) / (2 * wide) for _, low, high in (first, second)))
    difference = first[0] - second[0]
    p = 2 * (1 - normal.cdf(abs(difference) / spread)) if spread else float(difference == 0)
    return Apart(difference, difference - wide * spread, difference + wide * spread, p)


@cache
def gold(path: Path) -> Links:
    return read_links(path, index_base=0)


def _read(path: Path, lines: range) -> Links:
    links = read_links(path, format="pharaoh", index_base=0)
    if len(links) < lines.stop:
        raise SystemExit(f"{path}: has {len(links)} lines, but gold lines end at {lines.stop}; was the run cut short?")
    return links.part(lines.start, lines.stop)
