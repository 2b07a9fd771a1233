"""docs/benchmarks-parsing.md, made from the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

from benchmarks import rows
from benchmarks.quality.parsing import paired, run, search, sections, speed, steps, verdicts
from benchmarks.quality.parsing.models import Model
from benchmarks.quality.parsing.studies import (
    CROSSING,
    CROSSING_PEERS,
    FIRST,
    MALT_XPOS,
    MEASURES,
    OUR_TAGGER,
    OURS,
    PEERS,
    SECOND,
    STRAIGHT,
    UDPIPE_1,
    Job,
    shaped,
)
from benchmarks.quality.parsing.texts import GOLD, LEMMAS, MAIN, OWN, PREDICTED, SMALL
from benchmarks.quality.parsing.verdicts import NAMES, Find

HERE = Path(__file__).parent
PAGE = Path("docs/benchmarks-parsing.md")
GUIDE = Path("docs/parse.md")
"""Has a short form of the first tables."""
NOT_YET = "*No rows yet.*"
ABOUT_MEANS = (
    "Means are over the treebanks for which every system that has rows in the table has one; an empty cell "
    "has no row.\n"
)
ABOUT_CROSSING = """\
Gold tags, UAS / LAS. Many links cross in the first four treebanks, hardly any in the last. \\* differs from projective
trees of the same order (p < 0.05, UAS).
"""
ABOUT_SPEED = f"""\
The test part of en-ewt (2,077 sentences), gold tags, from CoNLL-U to CoNLL-U on two threads, the best of three. *Whole
command* is one text with all that it takes to start; *running* is the rate of {speed.TIMES - 1} more texts of the same
size.
"""
ABOUT_STEPS = f"""\
Where the time of order 1 goes once it is started, on one thread (a parser that learnt from {steps.SENTENCES:,}
sentences; `python -m benchmarks.quality.parsing.steps`). *One by one*: candidate links as they were found before, with
the same result.
"""


def report() -> None:
    """Print the page and write it, and the table of the guide."""
    paired.refresh_crossing()
    found = run.results().read()
    if not found:
        raise SystemExit("parsing.csv has no rows yet: run python -m benchmarks.quality.parsing")
    find = Find(found, paired.refresh(found))
    text = page(find, found)
    print(text)
    PAGE.write_text(text, encoding="utf-8")
    rows.fill(GUIDE, "parsing", find.used.below(_guide(find)))


class _Asking(Find):
    """Remembers which jobs it was asked for and has rows of."""

    def __init__(self, found: list[rows.Row], tests: list[rows.Row]) -> None:
        super().__init__(found, tests)
        self.jobs: dict[Job, None] = {}

    def __call__(self, job: Job) -> rows.Row | None:
        row = super().__call__(job)
        if row is not None:
            self.jobs[job] = None
        return row

    def test(self, text: str, tags: str, first: Model, second: Model, measure: str) -> rows.Row | None:
        row = super().test(text, tags, first, second, measure)
        if row is not None:
            self.jobs.update(dict.fromkeys((Job(text, tags, first), Job(text, tags, second))))
        return row


def quoted() -> list[Job]:
    """Jobs whose rows the first tables quote: scores with gold tags, what was asked for, and the table of the guide."""
    asking = _Asking(run.results().read(), paired.results().read())
    _scores(asking, GOLD, OURS)
    _guide(asking)
    verdicts.table(asking, speed.results().read(), search.results().read())
    return list(asking.jobs)


def page(find: Find, found: list[rows.Row]) -> str:
    """The whole page, in Markdown."""
    speeds, searches = speed.results().read(), search.results().read()
    parts = [(HERE / "page.md").read_text(encoding="utf-8").replace("{PROVENANCE}", _provenance(found))]
    below = find.used.below
    parts += ["## What was asked for, and what is measured", below(verdicts.table(find, speeds, searches))]
    everyone = (*OURS, *PEERS, MALT_XPOS)
    for tags, title in ((GOLD, "Gold tags"), (PREDICTED, "Predicted tags")):
        parts += [f"## {title}", below(_scores(find, tags, everyone))]
        parts += [below(_differences(find, tags, (*PEERS, MALT_XPOS)))]
    parts += ["## Own tags, from words alone", below(_scores(find, OWN, (*OURS, UDPIPE_1)))]
    parts += [below(_differences(find, OWN, (UDPIPE_1,))), "## Tagging", below(_tagging(find))]
    parts += ["## Gold tags and lemmas", below(_scores(find, LEMMAS, OURS))]
    for title, section in {
        "Links that cross": _crossing,
        "From a tree alone to all factors": sections.factors,
        "Less than a tree": sections.constraints,
        "Decoders": sections.decoders,
        "Trainers": sections.trainers,
        "Rounds of messages": sections.rounds,
    }.items():
        parts += [f"## {title}", below(section(find))]
    parts += ["## What belief propagation misses", sections.searches(searches)]
    parts += ["## What it costs", below(_costs(find)), "## Speed", _speeds(speeds)]
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def _provenance(found: list[rows.Row]) -> str:
    dates = sorted({row["date"] for row in found})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    own = [row for row in found if row["model"].startswith("isogloss")]
    commits = ", ".join(sorted({row["commit"] for row in own}))
    ours = f"Isogloss {', '.join(sorted({row['version'] for row in found}))}" + (f" ({commits})" if own else "")
    peers = sorted(
        {f"{NAMES[each]} {row['system_version']}" for row in found for each in PEERS if row["model"] == each.kind}
    )
    return f"{', '.join([ours, *peers])}; {'; '.join(sorted({row['machine'] for row in found}))}, {when}."


# --- quality


def _both(row: rows.Row | None) -> str:
    return "" if row is None else f"{float(row['UAS']):.2f} / {float(row['LAS']):.2f}"


def _scores(find: Find, tags: str, models: Sequence[Model]) -> str:
    """UAS / LAS of systems on treebanks, and the mean."""
    lines = [f"UAS / LAS. {ABOUT_MEANS}", f"| treebank | {' | '.join(NAMES[each] for each in models)} |"]
    lines.append("|" + "---|" * (len(models) + 1))
    some = False
    names = [source.name for source in (*MAIN, *SMALL)]
    for text in names:
        own = [find(Job(text, tags, each)) for each in models]
        if any(own):
            some = True
            lines.append(f"| {text} | {' | '.join(map(_both, own))} |")
    if not some:
        return NOT_YET
    measured = [
        each for each in models if each != MALT_XPOS and any(find(Job(source.name, tags, each)) for source in MAIN)
    ]
    common = find.common(tags, measured)
    if common:
        cells = []
        for each in models:
            means = [find.mean(common, tags, each, name.upper()) for name in MEASURES] if each in measured else []
            cells.append(" / ".join(f"{value:.2f}" for value in means))
        lines.append(f"| **mean of {len(common)}** | {' | '.join(cells)} |")
    return "\n".join(lines)


def _guide(find: Find) -> str:
    """UAS / LAS of systems that have rows for all main treebanks; treebanks across."""
    names = [source.name for source in MAIN]
    lines = [f"| tags | | {' | '.join(names)} | mean |", "|" + "---|" * (len(names) + 3)]
    for tags in (GOLD, PREDICTED):
        for model in (*reversed(OURS), *PEERS):
            own = [find(Job(text, tags, model)) for text in names]
            known = [row for row in own if row is not None]
            if len(known) < len(own):
                continue
            numbers = [[float(row[name.upper()]) for row in known] for name in MEASURES]
            cells = [" / ".join(f"{value:.1f}" for value in both) for both in zip(*numbers, strict=True)]
            cells.append(" / ".join(f"{mean(values):.1f}" for values in numbers))
            lines.append(f"| {tags} | {NAMES[model].removeprefix('Isogloss, ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _differences(find: Find, tags: str, peers: Sequence[Model]) -> str:
    """Ours against peers, and the second order against the first."""
    pairs = [(ours, peer) for ours in reversed(OURS) for peer in peers] + [(SECOND, FIRST)]
    lines = [
        "Differences [95%], p; positive is better.\n",
        "| treebank | | against | UAS | p | LAS | p |\n|---|---|---|---|---|---|---|",
    ]
    count = len(lines)
    for source in (*MAIN, *SMALL):
        for first, second in pairs:
            tests = [find.test(source.name, tags, first, second, measure) for measure in MEASURES]
            if all(tests):
                cells = " | ".join(_gap(row) for row in tests if row is not None)
                lines.append(f"| {source.name} | {NAMES[first]} | {NAMES[second]} | {cells} |")
    return "\n".join(lines) if len(lines) > count else ""


def _gap(row: rows.Row) -> str:
    gap, low, high = (float(row[name]) for name in ("difference", "low", "high"))
    return f"{gap:+.2f} [{low:+.2f}, {high:+.2f}] | {row['p']}"


def _tagging(find: Find) -> str:
    lines = [
        "Percent of words with the right UPOS, XPOS and universal features.\n",
        "| treebank | ours: UPOS | XPOS | UFeats | UDPipe: UPOS | XPOS | UFeats |\n|---|---|---|---|---|---|---|",
    ]
    count = len(lines)
    for source in MAIN:
        own = find(Job(source.name, PREDICTED, OUR_TAGGER)), find(Job(source.name, OWN, UDPIPE_1))
        if any(own):
            cells = [f"{float(row[name]):.2f}" if row else "" for row in own for name in ("UPOS", "XPOS", "UFeats")]
            lines.append(f"| {source.name} | {' | '.join(cells)} |")
    return "\n".join(lines) if len(lines) > count else NOT_YET


def _crossing(find: Find) -> str:
    """Systems down, treebanks across."""
    named: dict[str, Model] = {NAMES[each]: each for each in PEERS}
    named |= {
        f"{NAMES[plain]}, `{each.options}`": each for plain, each in zip(PEERS[::-1], CROSSING_PEERS, strict=True)
    }
    for order, ours in enumerate(OURS, 1):
        named[NAMES[ours]] = ours
        for projective in (True, False):
            named[f"{NAMES[ours]}, {'projective' if projective else 'nonprojective'}"] = shaped(
                order, projective=projective
            )
    texts = (*CROSSING, *STRAIGHT)
    lines = [f"{ABOUT_CROSSING}\n| | {' | '.join(texts)} |", "|" + "---|" * (len(texts) + 1)]
    count = len(lines)
    for name, each in named.items():
        own = [find(Job(text, GOLD, each)) for text in texts]
        if any(own):
            marks = [_free_star(find, text, each) for text in texts]
            cells = " | ".join(f"{_both(row)}{mark}" for row, mark in zip(own, marks, strict=True))
            lines.append(f"| {name} | {cells} |")
    return "\n".join(lines) if len(lines) > count else NOT_YET


def _free_star(find: Find, text: str, model: Model) -> str:
    """A star for trees that may cross which differ from those that may not."""
    for order in (1, 2):
        if model == shaped(order, projective=False):
            return sections.star(find, text, model, shaped(order, projective=True))
    return ""


# --- cost


def _costs(find: Find) -> str:
    head = "| treebank | system | sentences | learning s | MB | parsing s | MB | model MB | threads |"
    lines = ["Gold tags.\n", head, "|" + "---|" * 9]
    for source in (*MAIN, *SMALL):
        for each in (*OURS, *PEERS):
            row = find(Job(source.name, GOLD, each))
            if row is not None:
                lines.append(f"| {source.name} | {NAMES[each]} | {row['n_train']} | {' | '.join(_cost(row))} |")
    return "\n".join(lines)


def _cost(row: rows.Row) -> Iterator[str]:
    for phase in ("train", "parse"):
        yield f"{float(row[f'{phase}_seconds']):.0f} ({float(row[f'{phase}_cpu_seconds']):.0f})"
        yield f"{float(row[f'{phase}_mb']):.0f}"
    yield f"{float(row['model_mb']):.0f}"
    yield row["threads"]


def _speeds(found: list[rows.Row]) -> str:
    if not found:
        return NOT_YET
    head = "| system | whole command s | sentences/s | running sentences/s | MB | learning s | MB |"
    lines = [ABOUT_SPEED, head, "|" + "---|" * 7]
    for each in (*OURS, *PEERS):
        for row in found:
            if (row["model"], row["options"]) == (each.kind, each.options):
                rates = f"{float(row['per_second_whole']):,.0f} | {float(row['per_second'] or 'nan'):,.0f}"
                learning = f"{float(row['train_seconds']):.0f} ({float(row['train_cpu_seconds']):.0f})"
                lines.append(
                    f"| {NAMES[each]} | {float(row['seconds']):.1f} ({float(row['cpu_seconds']):.1f}) | {rates} "
                    f"| {float(row['parse_mb']):.0f} | {learning} | {float(row['train_mb']):.0f} |"
                )
    used = [("", f"{row['model']} {row['options']}".strip(), row) for row in found]
    return "\n".join([*lines, "", rows.commits(used), *_steps()])


def _steps() -> list[str]:
    """CPU seconds of the steps of parsing, if they were measured."""
    found = steps.results().read()
    if not found:
        return []
    lines = ["", ABOUT_STEPS, "| treebank | step | CPU s | sentences/s |", "|---|---|---|---|"]
    for row in found:
        cells = f"{float(row['cpu_seconds']):.3f} | {float(row['per_second']):,.0f}"
        lines.append(f"| {row['data']} | {row['step']} | {cells} |")
    return [*lines, "", rows.commits((row["step"], row["data"], row) for row in found)]
