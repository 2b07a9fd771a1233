"""What was asked for beforehand, and whether the rows show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import mean

from benchmarks import rows
from benchmarks.quality.supervised import run
from benchmarks.quality.supervised.models import WEAK, WEAK_AND_IBM
from benchmarks.quality.supervised.studies import (
    ACTIVE_MODEL,
    ACTIVE_SEEDS,
    ACTIVE_TEXTS,
    ALL,
    COSTS,
    DRAWN,
    FIRST,
    HANSARDS,
    MARGIN,
    REFERENCE,
    SMALL,
    STEPS,
    Job,
    candidates,
    draw,
    itg_family,
    matching,
    quadratic_family,
    suggested,
)
from isogloss.tasks.align.features import SETS

GOAL = -15.0
"""Percent of the unsupervised error, for the mean over sets."""


class Find:
    """The row of a job."""

    def __init__(self, found: list[rows.Row]) -> None:
        self._rows = {tuple(row[name] for name in run.KEY): row for row in found}
        self.used = rows.Used()

    def __call__(self, job: Job) -> rows.Row | None:
        row = self._rows.get(tuple(str(value) for value in run.key_of(job).values()))
        if row is not None:
            self.used.add(job.model.kind, f"{job.text}/{job.n_train or 'all'}", row)
        return row

    def reference(self, text: str) -> rows.Row | None:
        return self(Job(text, 0, ALL, REFERENCE))

    def chosen(self, text: str, n: int) -> rows.Row | None:
        """Of the candidates for a set, the one that cross-validation inside 100 gold pairs (or all) likes best."""
        order = FIRST if text in HANSARDS else draw(0) if n else ALL
        judged = [(self(Job(text, min(n, 100), order, each)), each) for each in candidates().values()]
        errors = {each: float(row["AER_cv"]) for row, each in judged if row is not None}
        return self(Job(text, n, order, min(errors, key=lambda each: errors[each]))) if errors else None

    def mean_over_sets(self, n: int) -> tuple[float, float, int] | None:
        """Means of the unsupervised default and of the chosen models; sets with about 100 pairs have all of them."""
        pairs = [(self.reference(text), self.chosen(text, n if text in DRAWN else 0)) for text in (*DRAWN, *SMALL)]
        both = [(float(a["AER"]), float(b["AER"])) for a, b in pairs if a is not None and b is not None]
        return (mean(a for a, _ in both), mean(b for _, b in both), len(both)) if both else None

    def mean(self, jobs: Iterator[Job]) -> float | None:
        found = [row for row in map(self, jobs) if row is not None]
        return mean(float(row["AER"]) for row in found) if found else None


def table(find: Find, tests: list[rows.Row]) -> str:
    """A line for each thing that was asked for, with its numbers."""
    lines = ["| asked for | measured |\n|---|---|"]
    for title, verdict in (*_hansards(find), *_elsewhere(find)):
        lines.append(f"| {title} | {verdict} |")
    return "\n".join(lines)


def _order(numbers: Sequence[float | None], *, falling: bool = True, digits: int = 2) -> str:
    """Whether numbers fall (or rise) from left to right."""
    if None in numbers:
        return "*not measured yet*"
    known = [number for number in numbers if number is not None]
    holds = all(b < a if falling else b > a for a, b in pairwise(known))
    return f"{'yes' if holds else '**no**'}: {', '.join(f'{number:.{digits}f}' for number in known)}"


def _hansards(find: Find) -> Iterator[tuple[str, str]]:
    for text in HANSARDS:

        def numbers(
            models: Sequence[object], column: str = "AER", n: int = 100, text: str = text
        ) -> list[float | None]:
            found = [find(Job(text, n, FIRST, each)) for each in models]  # type: ignore[arg-type]
            return [None if row is None else float(row[column]) for row in found]

        yield f"{text}: every set of features lowers the error", _order(numbers([matching(sets) for sets in STEPS]))
        for n in (100, 200):
            both = [matching(trainer="perceptron"), matching(trainer=MARGIN)]
            yield f"{text}, {n}: large margin below perceptron, all features", _order(numbers(both, n=n))
            for features, name in ((WEAK_AND_IBM, "weak features and Models 1 and 2"), (SETS, "all features")):
                family = quadratic_family(features)
                asked = [family[key] for key in ("M", "M+Q", "M+F+Q")]
                yield f"{text}, {n}: M, M+Q, M+F+Q fall, {name}", _order(numbers(asked, n=n))
                yield (
                    f"{text}, {n}: M, M+F (a small difference), {name}",
                    _order(numbers([family["M"], family["M+F"]], n=n)),
                )
        family = itg_family(WEAK)
        yield f"{text}: ITG at or below 1-1, weak features", _order(numbers([family["MIRA 1-1"], family["MIRA ITG"]]))
        likelihoods = [family["MIRA ITG"], family["Likelihood ITG-N"]]
        yield f"{text}: likelihood with posterior decoding below MIRA, weak features", _order(numbers(likelihoods))
        for features, name in ((WEAK, "weak"), (SETS, "all")):
            recalls = numbers([matching(features, missed=c) for c in COSTS], "R")
            yield f"{text}: recall rises with the cost of missing, {name} features", _order(recalls, falling=False)
        yield (
            f"{text}: model chosen by cross-validation, all features, below unsupervised",
            _best(find, text),
        )


def _best(find: Find, text: str) -> str:
    parts = []
    for n in (100, 200):
        row, reference = find.chosen(text, n), find(Job(text, n, FIRST, REFERENCE))
        if row is not None and reference is not None:
            gap, low, high = (float(row[f"against_{name}"]) for name in ("hmm", "low", "high"))
            holds = "yes" if gap < 0 else "**no**"
            parts.append(
                f"{n} pairs: {holds}, {float(reference['AER']):.2f} to {float(row['AER']):.2f}, {gap:+.2f} "
                f"[{low:+.2f}, {high:+.2f}] ({row['model']})"
            )
    return "; ".join(parts) or "*not measured yet*"


def _elsewhere(find: Find) -> Iterator[tuple[str, str]]:
    for n in (100, 400):
        means = find.mean_over_sets(n)
        verdict = "*not measured yet*"
        if means is not None:
            relative = 100 * (means[1] / means[0] - 1)
            verdict = f"{'yes' if relative <= GOAL else '**no**'}: {means[0]:.2f} to {means[1]:.2f}, {relative:+.1f}%"
            verdict += "" if means[2] == len((*DRAWN, *SMALL)) else f" ({means[2]} sets so far)"
        yield f"mean over five sets, {n} pairs: chosen model at least 15% below unsupervised", verdict
    for text in ACTIVE_TEXTS:
        random = find.mean(Job(text, 200, draw(k), ACTIVE_MODEL) for k in ACTIVE_SEEDS)
        chosen = find.mean(Job(text, 140, suggested(k), ACTIVE_MODEL) for k in ACTIVE_SEEDS)
        yield f"{text}: 140 pairs by `suggest` below the error of 200 drawn at random", _order([random, chosen])
