"""What was asked for beforehand, and whether the rows show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import mean

from benchmarks import rows
from benchmarks.quality.supervised import run
from benchmarks.quality.supervised.paired import COLUMN_OF
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
    Paired,
    candidates,
    comparisons,
    draw,
    suggested,
)

LEVEL = 0.05
"""The p-value below which a paired test shows a difference."""
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

    def all_better(self, n: int) -> bool:
        """Whether every chosen model is below the unsupervised default by more than chance."""
        chosen = [self.chosen(text, n if text in DRAWN else 0) for text in (*DRAWN, *SMALL)]
        return all(row is None or (float(row["against_hmm"]) < 0 and float(row["p"]) < LEVEL) for row in chosen)

    def mean(self, jobs: Iterator[Job]) -> float | None:
        found = [row for row in map(self, jobs) if row is not None]
        return mean(float(row["AER"]) for row in found) if found else None


Tests = Mapping[tuple[str, str, str], rows.Row]
"""Paired tests by text, number of gold pairs and title."""


def table(find: Find, tests: list[rows.Row]) -> str:
    """A line for each thing that was asked for, with its numbers."""
    known = {(row["data"], row["n_train"], row["title"]): row for row in tests}
    lines = ["| asked for | measured |\n|---|---|"]
    for title, verdict in (*_hansards(find, known), *_elsewhere(find)):
        lines.append(f"| {title} | {verdict} |")
    return "\n".join(lines)


def judged(numbers: Sequence[float], tests: Sequence[rows.Row | None], *, falling: bool = True) -> str:
    """Whether numbers fall (or rise) from left to right, as paired tests of neighbours say; never as eyes do.

    "yes" where every step goes the right way with p below 0.05; "**no**" where one goes the wrong way with such a p;
    "not shown" otherwise, with the largest p of the steps, or of those that go the wrong way.
    """
    shown = ", ".join(f"{number:.2f}" for number in numbers)
    known = [test for test in tests if test is not None]
    if len(known) < len(tests):
        return f"*not tested yet*: {shown}"
    steps = [((float(test["difference"]) < 0) == falling, float(test["p"])) for test in known]
    wrong = [p for right, p in steps if not right]
    if not wrong and all(p < LEVEL for _, p in steps):
        return f"yes: {shown}"
    if any(p < LEVEL for p in wrong):
        return f"**no**: {shown} (p = {min(wrong):.2g} the other way)"
    return f"not shown: {shown} (p = {max(wrong or [p for _, p in steps]):.2g})"


def _chain(find: Find, tests: Tests, pairs: Sequence[Paired], *, falling: bool = True) -> str:
    """The verdict on rows each of which should be better than the one before."""
    column = COLUMN_OF[pairs[0].measure]
    found = [find(job) for job in (pairs[0].worse, *(pair.better for pair in pairs))]
    known = [row for row in found if row is not None]
    if len(known) < len(found):
        return "*not measured yet*"
    own = [tests.get((pair.better.text, str(pair.better.n_train), pair.title)) for pair in pairs]
    return judged([float(row[column]) for row in known], own, falling=falling)


def _hansards(find: Find, tests: Tests) -> Iterator[tuple[str, str]]:
    every = {(pair.better.text, pair.better.n_train, pair.title): pair for pair in comparisons()}
    for text in HANSARDS:

        def verdict(n: int, *titles: str, falling: bool = True, text: str = text) -> str:
            return _chain(find, tests, [every[text, n, title] for title in titles], falling=falling)

        steps = [f"features of step {k} against step {k - 1}" for k in range(2, len(STEPS) + 1)]
        yield f"{text}: every set of features lowers the error", verdict(100, *steps)
        for n in (100, 200):
            margin = f"{MARGIN} against perceptron, all features"
            yield f"{text}, {n}: large margin below perceptron, all features", verdict(n, margin)
            for name, words in (("weak+ibm", "weak features and Models 1 and 2"), ("all", "all features")):
                falls = [f"{a} against {b}, {name} features" for a, b in (("M+Q", "M"), ("M+F+Q", "M+Q"))]
                yield f"{text}, {n}: M, M+Q, M+F+Q fall, {words}", verdict(n, *falls)
                yield f"{text}, {n}: M+F below M, {words}", verdict(n, f"M+F against M, {name} features")
        yield f"{text}: ITG at or below 1-1, weak features", verdict(100, "MIRA ITG against MIRA 1-1, weak features")
        likelihood = "Likelihood ITG-N against MIRA ITG, weak features"
        yield f"{text}: likelihood with posterior decoding below MIRA, weak features", verdict(100, likelihood)
        for name in ("weak", "all"):
            rises = [f"recall with missed {b:g} against {a:g}, {name} features" for a, b in pairwise(COSTS)]
            words = f"{text}: recall rises with the cost of missing, {name} features"
            yield words, verdict(100, *rises, falling=False)
        yield f"{text}: model chosen by cross-validation, all features, below unsupervised", _best(find, text)


def _best(find: Find, text: str) -> str:
    parts = []
    for n in (100, 200):
        row, reference = find.chosen(text, n), find(Job(text, n, FIRST, REFERENCE))
        if row is not None and reference is not None:
            gap, low, high = (float(row[f"against_{name}"]) for name in ("hmm", "low", "high"))
            holds = "not shown" if float(row["p"]) >= LEVEL else "yes" if gap < 0 else "**no**"
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
            holds = "yes" if relative <= GOAL and find.all_better(n) else "**no**"
            verdict = f"{holds}: {means[0]:.2f} to {means[1]:.2f}, {relative:+.1f}%"
            verdict += "" if means[2] == len((*DRAWN, *SMALL)) else f" ({means[2]} sets so far)"
        yield f"mean over five sets, {n} pairs: chosen model at least 15% below unsupervised", verdict
    for text in ACTIVE_TEXTS:
        random = find.mean(Job(text, 200, draw(k), ACTIVE_MODEL) for k in ACTIVE_SEEDS)
        chosen = find.mean(Job(text, 140, suggested(k), ACTIVE_MODEL) for k in ACTIVE_SEEDS)
        verdict = "*not measured yet*"
        if random is not None and chosen is not None:
            verdict = f"means of {len(ACTIVE_SEEDS)} draws, not tested: {random:.2f}, {chosen:.2f}"
        yield f"{text}: 140 pairs by `suggest` below the error of 200 drawn at random", verdict
