"""What was asked for beforehand, and whether the rows show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean

from benchmarks import rows
from benchmarks.quality.parsing import orderings, run
from benchmarks.quality.parsing.models import Model
from benchmarks.quality.parsing.orderings import SIGNIFICANT
from benchmarks.quality.parsing.studies import (
    FIRST,
    MALT_XPOS,
    MALTPARSER,
    MEASURES,
    OURS,
    PEERS,
    SECOND,
    UDPIPE_1,
    WITH_XPOS,
    Job,
)
from benchmarks.quality.parsing.texts import GOLD, MAIN, PREDICTED

ABOVE_MALT = 3.0
"""Points of UAS, second order on en-ewt with gold tags."""
RATES = {FIRST: 1500, SECOND: 200}
"""Sentences a second on two threads."""
MINUTES = {FIRST: 10, SECOND: 60}
MEGABYTES = 4096
NOT_YET = "*not measured yet*"
NAMES = {
    FIRST: "Isogloss, order 1", SECOND: "Isogloss, order 2", UDPIPE_1: "UDPipe", MALTPARSER: "MaltParser",
    MALT_XPOS: "MaltParser, XPOS",
}  # fmt: skip
SETTING_NAMES = {GOLD: "gold tags", PREDICTED: "predicted tags"}


def _shown(model: Model, tags: str) -> str:
    """A system in the list of commits, where gold tags go without saying."""
    name = NAMES.get(model) or f"`{str(model).removeprefix('isogloss ')}`"
    return name if tags == GOLD else f"{name} with {tags} tags"


class Find:
    """Rows of jobs, and tests between them."""

    def __init__(self, found: list[rows.Row], tests: list[rows.Row]) -> None:
        self._rows = {tuple(row[name] for name in run.KEY): row for row in found}
        self._tests = {tuple(row[n] for n in ("data", "tags", "first", "second", "measure")): row for row in tests}
        self.used = rows.Used()

    def __call__(self, job: Job) -> rows.Row | None:
        row = self._rows.get(tuple(str(value) for value in run.key_of(job).values()))
        if row is not None:
            self.used.add(_shown(job.model, job.tags), job.text, row)
        return row

    def test(self, text: str, tags: str, first: Model, second: Model, measure: str) -> rows.Row | None:
        row = self._tests.get((text, tags, str(first), str(second), measure))
        if row is not None:
            self.used.add(_shown(first, tags), text, row)  # its commit is that of our row
        return row

    def common(self, tags: str, models: Sequence[Model]) -> list[str]:
        """Main treebanks for which all these systems have rows that may be compared."""
        found = []
        for source in MAIN:
            own = [self(Job(source.name, tags, each)) for each in models]
            known = [row for row in own if row is not None]
            if len(known) == len(models) and run.are_comparable(known):
                found.append(source.name)
        return found

    def mean(self, texts: Sequence[str], tags: str, model: Model, column: str) -> float:
        found = [self(Job(text, tags, model)) for text in texts]
        return mean(float(row[column]) for row in found if row is not None)


def table(find: Find, speeds: list[rows.Row], searches: list[rows.Row]) -> str:
    """A line for each thing that was asked for, with its numbers."""
    lines = ["| asked for | measured |\n|---|---|"]
    asked = (*_peers(find), *_other(find), *orderings.all_of(find, searches), *_speed(speeds))
    lines += [f"| {title} | {verdict} |" for title, verdict in asked]
    for row in searches:
        find.used.add(*orderings.searched_place(row), row)
    for row in speeds:
        find.used.add("speed", f"{row['model']} {row['options']}", row)
    return "\n".join(lines)


def _holds(whether: bool, count: int = 0, peer: Model | None = None) -> str:
    """Yes or no; of some treebanks alone, a yes is but one so far."""
    if peer is not None and whether and count < _asked(peer):
        return "so far"
    return "yes" if whether else "**no**"


def _asked(peer: Model) -> int:
    """Treebanks on which a peer is compared."""
    return len(WITH_XPOS) if peer == MALT_XPOS else len(MAIN)


def _peers(find: Find) -> Iterator[tuple[str, str]]:
    for ours in OURS:
        for tags in (GOLD, PREDICTED):
            for peer in (*PEERS, MALT_XPOS):
                title = f"{NAMES[ours]}, {SETTING_NAMES[tags]}:"
                yield f"{title} mean above {NAMES[peer]}", better_on_the_mean(find, tags, ours, peer)
                yield (
                    f"{title} on no treebank significantly below {NAMES[peer]}",
                    nowhere_worse(find, tags, ours, peer),
                )


def better_on_the_mean(find: Find, tags: str, ours: Model, peer: Model) -> str:
    """UAS and LAS over the main treebanks."""
    texts = find.common(tags, (ours, peer))
    if not texts:
        return NOT_YET
    means = {name: [find.mean(texts, tags, each, name) for each in (ours, peer)] for name in map(str.upper, MEASURES)}
    holds = _holds(all(own > other for own, other in means.values()), len(texts), peer)
    shown = ", ".join(f"{name} {own:.2f} and {other:.2f}" for name, (own, other) in means.items())
    return f"{holds}: {shown}{_so_far(len(texts), peer)}"


def nowhere_worse(find: Find, tags: str, ours: Model, peer: Model) -> str:
    """Differences that the paired bootstrap calls significant, and which have the wrong sign."""
    tests = [find.test(source.name, tags, ours, peer, name) for source in MAIN for name in MEASURES]
    known = [row for row in tests if row is not None]
    if not known:
        return NOT_YET
    worse = [row for row in known if float(row["difference"]) < 0 and float(row["p"]) < SIGNIFICANT]
    shown = ", ".join(f"{row['data']} {row['measure'].upper()} {float(row['difference']):+.2f}" for row in worse)
    count = len(known) // len(MEASURES)
    return f"{_holds(not worse, count, peer)}{': ' + shown if shown else ''}{_so_far(count, peer)}"


def _so_far(count: int, peer: Model) -> str:
    return "" if count == _asked(peer) else f" ({count} of {_asked(peer)} treebanks)"


def _other(find: Find) -> Iterator[tuple[str, str]]:
    own, malt = find(Job("en-ewt", GOLD, SECOND)), find(Job("en-ewt", GOLD, MALT_XPOS))
    verdict = NOT_YET
    if own is not None and malt is not None:
        gap = float(own["UAS"]) - float(malt["UAS"])
        verdict = f"{_holds(gap >= ABOVE_MALT)}: {float(own['UAS']):.2f} and {float(malt['UAS']):.2f}, {gap:+.2f}"
    yield f"en-ewt, gold tags: UAS of order 2 at least {ABOVE_MALT:g} above MaltParser, XPOS", verdict


def _rates(row: rows.Row, asked: int, by_model: dict[tuple[str, str], rows.Row]) -> str:
    """Sentences a second, of the whole command and once started; beside the peers that were clocked."""
    parts = []
    for title, column in (("the whole command", "per_second_whole"), ("once started", "per_second")):
        rate = float(row[column] or "nan")
        others = {NAMES[peer]: by_model.get((peer.kind, peer.options)) for peer in PEERS}
        beside = "".join(f", {name} {float(peer[column]):,.0f}" for name, peer in others.items() if peer)
        parts.append(f"{title}: {_holds(rate >= asked)}, {rate:,.0f}{beside}")
    return "; ".join(parts)


def _speed(speeds: list[rows.Row]) -> Iterator[tuple[str, str]]:
    by_model = {(row["model"], row["options"]): row for row in speeds}
    for ours in OURS:
        row = by_model.get((ours.kind, ours.options))
        name = NAMES[ours]
        if row is None:
            for asked in ("parsing", "learning", "memory"):
                yield f"{name}: {asked} of en-ewt", NOT_YET
            continue
        yield f"{name}: {RATES[ours]:,} sentences of en-ewt a second on 2 threads", _rates(row, RATES[ours], by_model)
        minutes = float(row["train_seconds"]) / 60
        yield (
            f"{name}: learns en-ewt in {MINUTES[ours]} minutes",
            f"{_holds(minutes <= MINUTES[ours])}: {minutes:.1f} on {row['train_threads']} threads",
        )
        most = max(float(row["train_mb"]), float(row["parse_mb"]))
        yield f"{name}: memory below 4 GB on en-ewt", f"{_holds(most < MEGABYTES)}: {most:,.0f} MB"
