"""Orderings that papers report of ways to train an aligner, and whether they hold here, by paired resamples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from benchmarks.quality.variant_measures import RECALL, THRESHOLDS, Measured

YES, NO, OPEN = "yes", "**no**", "not told apart"
LEVEL = 0.05


@dataclass(frozen=True)
class Claim:
    """An ordering on one set: measures that should rise from left to right."""

    group: str
    text: str
    numbers: tuple[Measured, ...]

    @property
    def p_values(self) -> list[float]:
        """Of each step, two-sided."""
        return [(after - before).p_value for before, after in pairwise(self.numbers)]

    @property
    def verdict(self) -> str:
        """Yes if every step rises significantly, no if one falls significantly; else chance may have done it."""
        steps = [(after - before).value > 0 for before, after in pairwise(self.numbers)]
        told = [p < LEVEL for p in self.p_values]
        if any(clear and not rises for rises, clear in zip(steps, told, strict=True)):
            return NO
        return YES if all(steps) and all(told) else OPEN


class Find:
    """Measures of the variants of one set; "posterior", "viterbi", "points", "one_to_one": means of both directions."""

    def __init__(self, found: Mapping[tuple[Any, ...], Mapping[str, Measured]]) -> None:
        self._found = found  # by (setting, model, constraint, decode_constraint, iterations, extra)

    def __call__(
        self,
        column: str,
        constraint: str,
        decode: str = "",
        *,
        model: str = "hmm",
        setting: str = "papers",
        iterations: int = 5,
        extra: str = "",
    ) -> Measured:
        row = self._found[setting, model, constraint, decode or constraint, iterations, extra]
        if column in row:
            return row[column]
        return (row[f"{column}_forward"] + row[f"{column}_backward"]).halved()

    def plain(self, column: str = "AER", **options: Any) -> Measured:
        """The better of the two ways to join the directions of plain training."""
        return min((self(column, "none", decode, **options) for decode in ("none", "agreement")), key=lambda m: m.value)


def claims(find: Find, steps: int) -> Iterator[Claim]:
    """All of them; `steps` are those of Model 1 without constraint in the papers' setting."""
    for group, make in (
        ("What constraints are for", _main),
        ("Graça et al. 2010", _graca),
        ("Liang et al. 2006", lambda find: _liang(find, steps)),
        ("Ganchev et al. 2008", _ganchev),
    ):
        for text, *numbers in make(find):
            yield Claim(group, text, tuple(numbers))


def _main(find: Find) -> Iterator[tuple[Any, ...]]:
    """Constraints lower the error, and do what they are meant to do."""
    for setting, name in (("papers", "papers' setting"), ("defaults", "our defaults")):
        for column, error in (("AER", "joined AER"), ("AER_lowest", "lowest AER")):
            for constraint in ("agreement", "bijective", "symmetric"):
                numbers = find(column, constraint, setting=setting), find.plain(column, setting=setting)
                yield f"{error}, {name}: {constraint} < plain", *numbers
    for column, name, constraint in (
        ("symmetry", "symmetry (Graça: 48, 90)", "symmetric"),
        ("one_to_one", "1-1 share (Graça: 78, 97)", "bijective"),
        ("one_to_one", "1-1 share", "symmetric"),
    ):
        yield f"{name}: plain < {constraint}", find(column, "none"), find(column, constraint)


def _graca(find: Find) -> Iterator[tuple[Any, ...]]:
    """Graça, Ganchev and Taskar 2010. Plain training always has five iterations."""
    constraints = ("symmetric", "bijective")
    for column, error in (("AER", "joined AER"), ("AER_lowest", "lowest AER")):
        for constraint in constraints:
            numbers = find(column, constraint, iterations=2), find.plain(column)
            yield f"{error} after 2 iterations: {constraint} < plain", *numbers
    for iterations in (2, 5):
        after = f"after {iterations} iterations"
        for column, name in (("AER", "joined AER"), ("posterior", "AER of single directions")):
            numbers = tuple(find(column, constraint, iterations=iterations) for constraint in constraints)
            yield f"{name} {after}: symmetric < bijective", *numbers
        for constraint in constraints:
            numbers = find("posterior", constraint, iterations=iterations), find("posterior", "none")
            yield f"AER of single directions {after}: {constraint} < plain", *numbers
            area = find("area", constraint, iterations=iterations)
            yield f"area {after}: plain < {constraint}", find("area", "none"), area
        areas = tuple(find("area", constraint, iterations=iterations) for constraint in reversed(constraints))
        yield f"area {after}: bijective < symmetric", *areas
    for constraint in constraints:
        numbers = find("AER", constraint, iterations=2), find("AER", constraint, "none", iterations=2)
        yield f"joined AER after 2 iterations, {constraint}: projected at decoding < not projected", *numbers
        at = find("P_at_R", "none"), find("P_at_R", constraint, iterations=2)
        yield f"precision at a recall of {RECALL:.0%}: plain < {constraint}, 2 iterations", *at
    for constraint in ("none", *constraints):
        numbers = find("posterior", constraint), find("viterbi", constraint)
        yield f"AER of single directions, {constraint}: posterior < Viterbi", *numbers
    yield "AER of plain training: soft union < single directions", find("AER", "none"), find("posterior", "none")
    for constraint in constraints:
        rare = find("rare_P", "none"), find("rare_P", constraint, iterations=2)
        yield f"precision of rare words: plain < {constraint}, 2 iterations", *rare
        rare = find("rare_R", constraint, iterations=2), find("rare_R", "none")
        yield f"recall of rare words (slightly lower in the paper): {constraint}, 2 iterations < plain", *rare
    loose = find("area", "symmetric", iterations=2, extra="dual_tolerance=1.0")
    tight = find("area", "symmetric", iterations=2)
    yield "area of symmetric, 2 iterations: tolerance 1 < tolerance 0.01 (Graça: 70, 85)", loose, tight


def _liang(find: Find, steps: int) -> Iterator[tuple[Any, ...]]:
    """Liang, Taskar and Klein 2006; joined by the product of posteriors."""
    names = {"hmm": "HMM", "model2": "Model 2", "model1": "Model 1"}
    trained = {"agreement": "agreement", "none": "independent"}

    def product(column: str, model: str, constraint: str) -> Measured:
        iterations = steps if (model, constraint) == ("model1", "none") else 5  # as many steps in all
        return find(column, constraint, "agreement", model=model, iterations=iterations)

    for column, error in (("AER", "joined AER"), ("AER_lowest", "lowest AER")):
        table = {(m, c): product(column, m, c) for m in names for c in trained}
        for model, name in names.items():
            yield f"{error}, {name}: agreement < independent", *(table[model, c] for c in trained)
        for constraint, name in trained.items():
            yield f"{error}, {name}: HMM < Model 2 < Model 1", *(table[m, constraint] for m in names)
        gain = {m: table[m, "agreement"].below(table[m, "none"]) for m in names}
        for model in ("model1", "model2"):
            text = f"relative gain of agreement in {error}, percent: {names[model]} < HMM"
            yield text, gain[model], gain["hmm"]
        for model in ("model2", "hmm"):
            for constraint, name in trained.items():
                viterbi = product("viterbi_both", model, constraint)
                text = f"{names[model]}, {name}: {error} < that of intersected Viterbi paths"
                yield text, table[model, constraint], viterbi
    yield (
        "AER of the HMM: agreement, joined < agreement, single directions < independent, single directions",
        find("AER", "agreement"), find("posterior", "agreement", "none"), find("posterior", "none"),
    )  # fmt: skip
    numbers = find("symmetry", "none"), find("symmetry", "agreement", "none")
    yield "symmetry of own posteriors: independent < agreement", *numbers
    every = [find(f"AER_{threshold}", "agreement") for threshold in THRESHOLDS]
    best, worst = min(every, key=lambda m: m.value), max(every, key=lambda m: m.value)
    yield "AER flat for thresholds from 0.2 to 0.5: the highest < the lowest + 1", worst, _plus(best, 1.0)
    uniform = find("AER", "agreement", extra="model1_iterations=0")
    yield "uniform start, agreement < Model 1 as start, agreement + 1", uniform, _plus(find("AER", "agreement"), 1.0)
    alone = find("AER", "none", "agreement", extra="model1_iterations=0")
    yield "uniform start: agreement < independent", uniform, alone
    yield "independent: Model 1 as start < uniform start", find("AER", "none", "agreement"), alone
    for extra, name in (
        ("model1_constraint=agreement", "agreement in Model 1 already"),
        ("null=length", "null weight 1 / (I + 1)"),
        ("final=True", "transitions to the end"),
    ):
        yield f"agreement: {name} < without it", find("AER", "agreement", extra=extra), find("AER", "agreement")


def _plus(measure: Measured, points: float) -> Measured:
    return Measured(measure.value + points, measure.draws + points)


def _ganchev(find: Find) -> Iterator[tuple[Any, ...]]:
    """Ganchev, Graça and Taskar 2008."""
    for constraint, name, iterations in (("none", "plain", 5), ("symmetric", "symmetric, 2 iterations", 2)):
        options = {"iterations": iterations}
        points, viterbi = (find(column, constraint, **options) for column in ("points", "viterbi"))
        yield f"AER of single directions, {name}: posterior points < Viterbi", points, viterbi
        points, viterbi = (find(column, constraint, **options) for column in ("points_grown", "viterbi_grown"))
        yield f"AER of grow-diag-final-and, {name}: posterior points < Viterbi", points, viterbi
    tight = find("area", "symmetric", iterations=2)
    for steps in (1, 5):
        loose = find("area", "symmetric", iterations=2, extra=f"dual_search=fixed dual_steps={steps}")
        yield f"area of symmetric, 2 iterations: fixed steps, {steps} < converged", loose, tight
    common = find("common_R", "none"), find("common_R", "symmetric", iterations=2)
    yield "recall of common words: plain < symmetric, 2 iterations", *common
    rare = find("rare_P", "none"), find("rare_P", "symmetric", iterations=2)
    yield "precision of rare words: plain < symmetric, 2 iterations", *rare
