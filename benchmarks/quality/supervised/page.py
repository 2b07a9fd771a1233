"""docs/benchmarks-supervised.md, made from the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean

from benchmarks import rows
from benchmarks.quality.supervised import checks, guide, paired, run, speed, verdicts
from benchmarks.quality.supervised.models import WEAK, WEAK_AND_IBM, Model
from benchmarks.quality.supervised.studies import (
    ACTIVE_MODEL,
    ACTIVE_SEEDS,
    ACTIVE_SIZES,
    ACTIVE_TEXTS,
    ALL,
    COSTS,
    DRAWN,
    DRAWS,
    FIRST,
    HANSARDS,
    REFERENCE,
    SEEDS,
    SIZES,
    SMALL,
    STEPS,
    TRAINERS,
    Job,
    candidates,
    curve_models,
    draw,
    itg_family,
    itg_ways,
    matching,
    quadratic_family,
    seeded,
    suggested,
)
from benchmarks.quality.supervised.verdicts import Find
from isogloss.tasks.align.features import SETS

HERE = Path(__file__).parent
PAGE = Path("docs/benchmarks-supervised.md")
STEP_NAMES = (
    "association", "+ position", "+ shape, frequency", "+ context, lexical", "+ Models 1 and 2", "+ HMM",
    "+ stems, surroundings, trust",
)  # fmt: skip
HEAD = "| model | AER [95%] | P | R | CV | against unsupervised [95%] | p | seconds | MB |\n|" + "---|" * 9
NOT_YET = "*No rows yet.*"
ABOUT_SETS = """\
In each cell the error on test and, in brackets, that of cross-validation inside the 100 pairs (or all) that it learns
from, by which the model in bold was chosen; with 400 pairs it is the model that was chosen with 100.
"""
ABOUT_ACTIVE = """\
Matching, mean over draws; in brackets the lowest and the highest. Suggestions begin with
the first 25 pairs of a draw and come 25 at a time, each time from a model that has learnt from those before.
"""
ABOUT_CHECKS = """\
What the papers say without learning (raw Dice; the links of each class nearest to gold) and of ways to learn and to
search, made by `python -m benchmarks.quality.supervised.checks`. The first is expected to have the lower error.
"""
ABOUT_SPEED = """\
Learning from 100 gold pairs of Hansards without tuning, after the text without labels was read (*text*); CPU seconds in
brackets, since other work ran beside it. Decoding is from words to links of new Europarl pairs, one thread, in sentence
pairs for each CPU second, by the words of the longer side (above 40, neighbouring pairs joined).
"""


def report() -> None:
    """Print the page and write it, and the tables of the guide."""
    found = run.results().read()
    if not found:
        raise SystemExit("supervised.csv has no rows yet: run python -m benchmarks.quality.supervised")
    find = Find(found)
    text = page(find, found)
    print(text)
    PAGE.write_text(text, encoding="utf-8")
    guide.fill(find)


class _Asking(Find):
    """Remembers which jobs it was asked for and has rows of."""

    def __init__(self, found: list[rows.Row]) -> None:
        super().__init__(found)
        self.jobs: dict[Job, None] = {}

    def __call__(self, job: Job) -> rows.Row | None:
        row = super().__call__(job)
        if row is not None:
            self.jobs[job] = None
        return row


def quoted() -> list[Job]:
    """Jobs whose rows the first tables quote: what was asked for, and the table of errors of the guide."""
    asking = _Asking(run.results().read())
    guide.errors(asking)
    verdicts.table(asking, [])
    return list(asking.jobs)


def page(find: Find, found: list[rows.Row]) -> str:
    """The whole page, in Markdown."""
    intro = (HERE / "page.md").read_text(encoding="utf-8").replace("{PROVENANCE}", _provenance(found))
    tests = paired.refresh(found)
    below = find.used.below
    parts = [intro, "## What was asked for, and what is measured", below(verdicts.table(find, tests))]
    for text in HANSARDS:
        parts += _hansards(find, text)
    parts += ["## Differences, tested in pairs", _paired(tests), "## Other sets", below(_sets(find))]
    parts += ["## Learning curves", below(_curves(find)), "## Choosing what to align", below(_active(find))]
    if checks.results().read():
        parts += ["## Structures and trainers by themselves", ABOUT_CHECKS, checks.table()]
    parts += ["## Speed and memory", _speed()]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _provenance(found: list[rows.Row]) -> str:
    dates = sorted({row["date"] for row in found})
    codes = {row["code"]: row["commit"] for row in found}
    made = ", ".join(sorted({row["version"] for row in found}))
    by = f"code of {len(codes)} states ({', '.join(sorted(set(codes.values())))})" if len(codes) > 1 else ""
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    machines = "; ".join(sorted({row["machine"] for row in found}))
    return f"Isogloss {made}, {by or 'commit ' + next(iter(codes.values()))}; {machines}, {when}."


# --- Hansards


def _hansards(find: Find, text: str) -> Iterator[str]:
    yield f"## {text}"
    for n, n_test in ((100, 347), (200, 247)):
        studies = {
            "Features, added one set at a time (large margin)": dict(
                zip(STEP_NAMES, map(matching, STEPS), strict=True)
            ),
            "Ways to learn, all features": {trainer: matching(trainer=trainer) for trainer in TRAINERS},
            "Ways to learn, weak features": {trainer: matching(WEAK, trainer) for trainer in TRAINERS},
            "More than one link, neighbouring links: weak features and Models 1 and 2": quadratic_family(WEAK_AND_IBM),
            "More than one link, neighbouring links: all features": quadratic_family(SETS),
            "Grammars: weak features": itg_family(WEAK),
            "Grammars: all features": itg_family(SETS) | itg_ways(),
            **{
                f"{name}, all features, by the seed of the order of pairs": _by_seed(each)
                for name, each in quadratic_family(SETS).items()
            },
            "Cost of a missed link, weak features": {f"{c:g}": matching(WEAK, missed=c) for c in COSTS},
            "Cost of a missed link, all features": {f"{c:g}": matching(missed=c) for c in COSTS},
        }
        reference = find(Job(text, n, FIRST, REFERENCE))
        if reference is None:
            continue
        yield f"### {n} pairs to learn from, {n_test} to test"
        yield f"Unsupervised default: {_aer(reference)}, P {_one(reference, 'P')}, R {_one(reference, 'R')}."
        for title, models in studies.items():
            lines = _lines(find, {name: Job(text, n, FIRST, each) for name, each in models.items()})
            if len(lines) > ("by the seed" in title):  # one seed says nothing of the others
                yield find.used.below("\n".join([f"**{title}**\n", HEAD, *lines]))


def _by_seed(each: Model) -> dict[str, Model]:
    return {f"seed {seed}": seeded(each, seed) for seed in SEEDS}


def _lines(find: Find, named: dict[str, Job]) -> list[str]:
    found = ((name, find(job)) for name, job in named.items())
    return [f"| {name} | {' | '.join(_cells(row))} |" for name, row in found if row is not None]


def _cells(row: rows.Row) -> Iterator[str]:
    yield _aer(row)
    yield _one(row, "P")
    yield _one(row, "R")
    yield _one(row, "AER_cv")
    gap, low, high = (float(row[f"against_{name}"]) for name in ("hmm", "low", "high"))
    yield f"{gap:+.2f} [{low:+.2f}, {high:+.2f}]"
    yield row["p"]
    yield f"{float(row['seconds']):.0f} ({float(row['cpu_seconds']):.0f})" if row["cpu_seconds"] else ""
    yield f"{float(row['peak_mb']):.0f}" if row["peak_mb"] else ""


def _aer(row: rows.Row) -> str:
    return f"{float(row['AER']):.2f} [{_one(row, 'AER_low')}, {_one(row, 'AER_high')}]"


def _one(row: rows.Row, column: str) -> str:
    return f"{float(row[column]):.1f}" if row[column] else ""


def _paired(tests: list[rows.Row]) -> str:
    if not tests:
        return NOT_YET
    lines = [
        "The first is expected to have the lower error, after the papers; a negative difference says that it has.\n",
        "| text | gold pairs | | AER | | difference [95%] | p |\n|---|---|---|---|---|---|---|",
    ]
    for row in tests:
        gap = f"{float(row['difference']):+.2f} [{float(row['low']):+.2f}, {float(row['high']):+.2f}]"
        numbers = f"{float(row['AER']):.2f} | {float(row['against']):.2f}"
        lines.append(f"| {row['data']} | {row['n_train']} | {row['title']} | {numbers} | {gap} | {row['p']} |")
    used = [(row["title"], f"{row['data']}/{row['n_train']}", row) for row in tests]
    return "\n".join([*lines, "", rows.commits(used)])


# --- other sets


def _sets(find: Find) -> str:
    names = list(candidates())
    lines = [
        ABOUT_SETS,
        f"| set | gold pairs | unsupervised | {' | '.join(names)} | chosen against unsupervised [95%] | relative |",
        "|" + "---|" * (len(names) + 5),
    ]
    some = False
    for text in (*DRAWN, *SMALL):
        for n in (100, 400) if text in DRAWN else (0,):
            reference, chosen = find.reference(text), find.chosen(text, n)
            if reference is None or chosen is None:
                continue
            some = True
            cells = []
            for each in candidates().values():
                row = find(Job(text, n, draw(0) if n else ALL, each))
                cell = "" if row is None else f"{float(row['AER']):.2f}"
                if row is not None and row["AER_cv"]:
                    cell += f" ({_one(row, 'AER_cv')})"
                cells.append(f"**{cell}**" if row is chosen else cell)
            gap, low, high = (float(chosen[f"against_{name}"]) for name in ("hmm", "low", "high"))
            relative = 100 * gap / float(reference["AER"])
            lines.append(
                f"| {text} | {n or 'all of dev'} | {float(reference['AER']):.2f} | {' | '.join(cells)} "
                f"| {gap:+.2f} [{low:+.2f}, {high:+.2f}] | {relative:+.1f}% |"
            )
    if not some:
        return NOT_YET
    for label, first in (("100 or all of dev", 100), ("400 or all of dev", 400)):
        mean_row = find.mean_over_sets(first)
        if mean_row is not None:
            reference_mean, chosen_mean, count = mean_row
            relative = 100 * (chosen_mean / reference_mean - 1)
            change = f"{chosen_mean - reference_mean:+.2f}"
            empty = " |" * len(names)
            lines.append(
                f"| **mean of {count}** | {label} | **{reference_mean:.2f}** |{empty} {change} | **{relative:+.1f}%** |"
            )
    return "\n".join(lines)


def _curves(find: Find) -> str:
    lines = [f"Mean over {len(DRAWS)} draws of the gold pairs; in brackets the lowest and the highest.\n"]
    lines += [f"| set | model | unsupervised | {' | '.join(map(str, SIZES))} |", "|" + "---|" * (len(SIZES) + 3)]
    some = False
    for text in DRAWN:
        reference = find.reference(text)
        for name, each in curve_models().items():
            cells = [_spread(find, (Job(text, n, draw(k), each) for k in DRAWS)) for n in SIZES]
            if any(cells) and reference is not None:
                some = True
                lines.append(f"| {text} | {name} | {float(reference['AER']):.2f} | {' | '.join(cells)} |")
    return "\n".join(lines) if some else NOT_YET


def _active(find: Find) -> str:
    lines = [
        ABOUT_ACTIVE,
        f"| text | pairs chosen | {' | '.join(map(str, ACTIVE_SIZES))} |",
        "|" + "---|" * (len(ACTIVE_SIZES) + 2),
    ]
    some = False
    for text in ACTIVE_TEXTS:
        for name, order in (("at random", draw), ("by `suggest`", suggested)):
            cells = []
            for n in ACTIVE_SIZES:
                cells.append(_spread(find, (Job(text, n, order(k), ACTIVE_MODEL) for k in ACTIVE_SEEDS)))
            some = some or any(cells)
            lines.append(f"| {text} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) if some else NOT_YET


def _spread(find: Find, wanted: Iterable[Job]) -> str:
    found = [float(row["AER"]) for row in map(find, wanted) if row is not None]
    if not found:
        return ""
    return f"{mean(found):.2f} ({min(found):.1f}-{max(found):.1f})" if len(found) > 1 else f"{found[0]:.2f}"


# --- speed


def _speed() -> str:
    found = speed.results().read()
    if not found:
        return NOT_YET
    lengths = list(dict.fromkeys(row["words"] for row in found))
    lines = [
        ABOUT_SPEED,
        f"| model | text s | learning s | MB | {' | '.join(f'{words} words' for words in lengths)} | MB |",
        "|" + "---|" * (len(lengths) + 5),
    ]
    for name, each in speed.models().items():
        own = {row["words"]: row for row in found if speed.is_of(row, each)}
        if own:
            first = next(iter(own.values()))
            rates = [
                f"{float(own[w]['pairs']) / float(own[w]['decode_cpu_seconds']):.3g}" if w in own else ""
                for w in lengths
            ]
            most = max(float(row["decode_mb"]) for row in own.values())
            train = f"{float(first['train_seconds']):.0f} ({float(first['train_cpu_seconds']):.0f})"
            lines.append(
                f"| {name} | {float(first['text_seconds']):.0f} | {train} | {float(first['train_mb']):.0f} "
                f"| {' | '.join(rates)} | {most:.0f} |"
            )
    return "\n".join([*lines, "", rows.commits((row["model"], f"{row['words']} words", row) for row in found)])
