"""Which rows there are: each is a model, a text, how many gold pairs it learns from and how they were chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from benchmarks.quality.supervised.models import HMM, WEAK, WEAK_AND_IBM, Model, model
from benchmarks.quality.supervised.texts import TEXTS
from isogloss.tasks.align.features import SETS

HANSARDS = ("hansards-2k", "hansards-100k")
DRAWN = ("en-cs.czenali", "grc-fi.helfi", "ja-en.kftt")
"""Sets with gold enough for learning curves."""
SMALL = ("en-et.xlwa", "en-ru.xlwa")
"""Two XL-WA pairs, named before anything was run: one that agglutinates, one in another script."""
SIZES = (25, 50, 100, 200, 400)
DRAWS = (0, 1, 2)
FIRST, ALL = "first", "all"
ACTIVE_TEXTS = ("en-cs.czenali", "grc-fi.helfi")
ACTIVE_SIZES = (25, 50, 75, 100, 125, 140, 200)
ACTIVE_SEEDS = (0, 1, 2, 3)
STEPS = (
    ("association",),
    ("association", "position"),
    ("association", "position", "shape", "frequency"),
    WEAK,
    WEAK_AND_IBM,
    (*WEAK_AND_IBM, "hmm"),
    SETS,
)
"""Feature sets in the order in which Taskar et al. add theirs; HMM posteriors stand where they have Model 4. The last
step has those of words cut short, and what surrounds a link."""
MARGIN = "frank-wolfe"
TRAINERS = ("perceptron", "mira", "extragradient", MARGIN)
COSTS = (1.0, 3.0, 10.0)
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Job:
    """What makes one row. `tags` say which studies want it and are no part of what it is."""

    text: str
    n_train: int
    order: str
    model: Model
    tags: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def cross_validated(self) -> bool:
        """Whether the error on held-out pairs of the training gold is wanted, to choose between models."""
        return self.n_train in (0, 100) and bool(self.tags & {"sets", "best"})

    def __str__(self) -> str:
        return f"{self.text} {self.n_train} {self.order}: {self.model}"


REFERENCE = Model(HMM, ())


def matching(features: tuple[str, ...] = SETS, trainer: str = MARGIN, **options: object) -> Model:
    return model("matching", features, trainer=trainer, tune=False, **options)


def quadratic(features: tuple[str, ...] = SETS, *, fertility: int, pairs: bool) -> Model:
    return model("quadratic", features, trainer=MARGIN, fertility=fertility, pairs=pairs, tune=False)


def itg(features: tuple[str, ...] = SETS, trainer: str = "mira", *, blocks: bool, grammar: str = "normal") -> Model:
    """Likelihood decodes by posteriors; the grammar makes no difference for MIRA."""
    more = {} if trainer == "mira" else {"grammar": grammar}
    return model("itg", features, trainer=trainer, blocks="auto" if blocks else None, **more, tune=False)


def quadratic_family(features: tuple[str, ...]) -> dict[str, Model]:
    """As Lacoste-Julien et al. name them."""
    return {
        "M": matching(features),
        "M+F": quadratic(features, fertility=2, pairs=False),
        "M+Q": quadratic(features, fertility=1, pairs=True),
        "M+F+Q": quadratic(features, fertility=2, pairs=True),
    }


def itg_family(features: tuple[str, ...]) -> dict[str, Model]:
    """As Haghighi et al. name them: families, ways to learn, and grammars (S simple, N normal form)."""
    return {
        "MIRA 1-1": matching(features, "mira"),
        "MIRA ITG": itg(features, blocks=False),
        "MIRA BITG": itg(features, blocks=True),
        "Likelihood ITG-S": itg(features, "likelihood", blocks=False, grammar="simple"),
        "Likelihood ITG-N": itg(features, "likelihood", blocks=False),
        "Likelihood BITG-S": itg(features, "likelihood", blocks=True, grammar="simple"),
        "Likelihood BITG-N": itg(features, "likelihood", blocks=True),
    }


def itg_ways() -> dict[str, Model]:
    """Ways of blocks beyond those of the paper's table: costs of errors in the likelihood, links in one run."""
    plain = itg_family(SETS)["Likelihood BITG-N"]
    return {
        "Softmax-margin BITG-N": itg(trainer="softmax-margin", blocks=True),
        "Likelihood BITG-N, competitive": replace(plain, options=(*plain.options, ("competitive", True))),
    }


def seeded(each: Model, seed: int) -> Model:
    """The same with another order of the pairs in training."""
    return replace(each, options=(*each.options, ("seed", seed))) if seed else each


def candidates() -> dict[str, Model]:
    """Models among which cross-validation inside the training gold chooses for a text."""
    return {
        "matching": matching(),
        "M+F+Q": quadratic(fertility=2, pairs=True),
        "BITG": itg(trainer="likelihood", blocks=True),
    }


def curve_models() -> dict[str, Model]:
    return {"matching": matching(), "M+F+Q": quadratic(fertility=2, pairs=True)}


ACTIVE_MODEL = matching()
"""Choosing and learning again after every few pairs should take seconds."""


def _hansards() -> Iterator[tuple[str, int, Model]]:
    for n in (100, 200):
        yield "reference", n, REFERENCE
        for sets in STEPS if n == 100 else STEPS[-2:]:
            yield "features", n, matching(sets)
        for trainer in TRAINERS:
            yield "trainers", n, matching(trainer=trainer)
            if n == 100:
                yield "trainers", n, matching(WEAK, trainer)
        for features in (WEAK_AND_IBM, SETS):
            for each in quadratic_family(features).values():
                yield "quadratic", n, each
    for features in (WEAK, SETS):
        for missed in COSTS:
            yield "costs", 100, matching(features, missed=missed)
    for sets in (WEAK, SETS):
        for each in itg_family(sets).values():
            yield "itg", 100, each
    for each in itg_ways().values():
        yield "itg", 100, each
    for n in (100, 200):
        for each in candidates().values():
            yield "best", n, each


def _seeds() -> Iterator[tuple[str, int, Model]]:
    for each in quadratic_family(SETS).values():
        for seed in SEEDS:
            yield "seeds", 100, seeded(each, seed)


def _sets() -> Iterator[tuple[str, str, int, str, Model]]:
    for text in (*DRAWN, *SMALL):
        yield "reference", text, 0, ALL, REFERENCE
        for n in (100, 400) if text in DRAWN else (0,):
            for each in candidates().values():
                yield "sets", text, n, draw(0) if n else ALL, each
    for each in curve_models().values():
        for number in DRAWS if each.kind == "matching" else DRAWS[:1]:
            for text in DRAWN:
                for n in SIZES:
                    yield "curves", text, n, draw(number), each
    for text in ACTIVE_TEXTS:
        for number in ACTIVE_SEEDS:
            for n in ACTIVE_SIZES:
                for order in (draw(number), suggested(number)):
                    yield "active", text, n, order, ACTIVE_MODEL


def draw(number: int) -> str:
    return f"draw {number}"


def suggested(number: int) -> str:
    """Begins with the first pairs of that draw and goes on with suggestions."""
    return f"suggest {number}"


def jobs() -> list[Job]:
    """Every row once, with the tags of all studies that want it. `n_train` 0 is all gold there is to learn from."""
    found: dict[Job, set[str]] = {}
    for text in HANSARDS:
        for study, n, each in _hansards():
            found.setdefault(Job(text, n, FIRST, each), set()).update((study, text, "hansards"))
    for study, n, each in _seeds():
        found.setdefault(Job(HANSARDS[0], n, FIRST, each), set()).update((study, HANSARDS[0], "hansards"))
    for study, text, n, order, each in _sets():
        found.setdefault(Job(text, n, order, each), set()).update((study, text))
    return [replace(job, tags=frozenset(tags)) for job, tags in found.items()]


def choose(only: str, models: str, pairs: str = "") -> list[Job]:
    """Jobs by tags and kinds of model: "hansards-2k/features,curves" are two groups, the first with two tags each."""
    known = {tag for job in jobs() for tag in job.tags}
    groups = [set(group.split("/")) for group in only.split(",")] if only else [set[str]()]
    for group in groups:
        if not group <= known:
            raise SystemExit(f"--only: {', '.join(sorted(group - known))} should be among {', '.join(sorted(known))}")
    kinds = models.split(",") if models else []
    sizes = [int(number) for number in pairs.split(",")] if pairs else []
    wanted = [job for job in jobs() if any(group <= job.tags for group in groups)]
    wanted = [job for job in wanted if not sizes or job.n_train in sizes]
    return [job for job in wanted if not kinds or job.model.kind in kinds or str(job.model) in kinds]


@dataclass(frozen=True)
class Paired:
    """Two rows whose difference in a measure is tested: the first is expected to be better."""

    title: str
    better: Job
    worse: Job
    measure: str = "aer"


def comparisons() -> Iterator[Paired]:
    """All pairs of rows that are tested, and that verdicts ask for."""
    for text in HANSARDS:
        for n in (100, 200):
            yield from _of_trainers(text, n)
            if n == 100:
                yield from _of_grammars(text)
                yield from _of_features(text)
                yield from _of_costs(text)
            for features, name in ((WEAK_AND_IBM, "weak+ibm"), (SETS, "all")):
                family = quadratic_family(features)
                for better, worse in (("M+F", "M"), ("M+Q", "M"), ("M+F+Q", "M+Q"), ("M+F+Q", "M")):
                    yield _pair(f"{better} against {worse}, {name} features", text, n, family[better], family[worse])


def _of_trainers(text: str, n: int) -> Iterator[Paired]:
    for features, name in ((WEAK, "weak"), (SETS, "all")):
        if features == SETS or n == 100:
            for trainer in TRAINERS[1:]:
                title = f"{trainer} against perceptron, {name} features"
                yield _pair(title, text, n, matching(features, trainer), matching(features, "perceptron"))


def _of_grammars(text: str) -> Iterator[Paired]:
    for features, name in ((WEAK, "weak"), (SETS, "all")):
        family = itg_family(features)
        for better, worse in (
            ("MIRA ITG", "MIRA 1-1"), ("MIRA BITG", "MIRA ITG"), ("Likelihood ITG-N", "MIRA ITG"),
            ("Likelihood BITG-N", "MIRA BITG"), ("Likelihood ITG-N", "Likelihood ITG-S"),
        ):  # fmt: skip
            yield _pair(f"{better} against {worse}, {name} features", text, 100, family[better], family[worse])
    for name, each in itg_ways().items():
        plain = itg_family(SETS)["Likelihood BITG-N"]
        yield _pair(f"{name} against Likelihood BITG-N, all features", text, 100, each, plain)


def _of_features(text: str) -> Iterator[Paired]:
    for number, (fewer, more) in enumerate(pairwise(STEPS)):
        yield _pair(
            f"features of step {number + 2} against step {number + 1}", text, 100, matching(more), matching(fewer)
        )


def _of_costs(text: str) -> Iterator[Paired]:
    for features, name in ((WEAK, "weak"), (SETS, "all")):
        for low, high in pairwise(COSTS):
            title = f"recall with missed {high:g} against {low:g}, {name} features"
            more, less = matching(features, missed=high), matching(features, missed=low)
            yield _pair(title, text, 100, more, less, "recall")


def _pair(title: str, text: str, n: int, a: Model, b: Model, measure: str = "aer") -> Paired:
    return Paired(title, Job(text, n, FIRST, a), Job(text, n, FIRST, b), measure)


assert set(TEXTS) == {*HANSARDS, *DRAWN, *SMALL}
