"""Which system should be above which, treebank by treebank, and where the rows show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol

from benchmarks import rows
from benchmarks.quality.parsing import search
from benchmarks.quality.parsing.models import Model
from benchmarks.quality.parsing.studies import (
    CROSSING,
    FACTORS,
    FULL,
    MEASURES,
    ROUNDS,
    TREE,
    USUAL_ROUNDS,
    WEAKER,
    Job,
    constrained,
    decoded,
    margins,
    passed,
)
from benchmarks.quality.parsing.texts import GOLD

NOT_YET = "*not measured yet*"
LEAST = 2
"""Treebanks on which an ordering was asked for."""
SIGNIFICANT = 0.05
NOCROSS = FACTORS["+ NOCROSS"]
SEARCHED = {"grand": ("LINK+GRAND", 0.4), "grand,siblings": ("LINK+GRAND+CHILDSEQ", 2.4)}
"""Search errors in percent that the specification reports after ten rounds."""
REPORTED_ROUNDS = 10
SUMS = {search.EXACT: "exact sums, as there", search.BELIEFS: "beliefs"}
Seen = tuple[bool, str] | None


class Finder(Protocol):
    """Rows of jobs, and tests between them."""

    def __call__(self, job: Job) -> rows.Row | None: ...

    def test(self, text: str, tags: str, first: Model, second: Model, measure: str) -> rows.Row | None: ...


def all_of(find: Finder, searches: list[rows.Row]) -> Iterator[tuple[str, str]]:
    """A line for each ordering."""
    chain = (TREE, NOCROSS, FULL)
    yield "UAS: TREE < TREE+NOCROSS < full", verdict({text: ascending(find, text, chain) for text in CROSSING})
    over = {text: crossings(find, text) for text in CROSSING}
    yield "words with crossing links: gold < TREE, and TREE+NOCROSS nearer to gold", verdict(over)
    for order in (1, 2):
        both = decoded(order, "mbr"), decoded(order, "map")
        yield f"UAS, likelihood, order {order}: best tree below minimum risk, p < {SIGNIFICANT}", tested(find, *both)
    both = margins("map"), margins("mbr")
    yield f"UAS, MIRA: minimum risk below best tree, p < {SIGNIFICANT}", tested(find, *both)
    for title, constraints in (("NOT2", WEAKER[:1]), ("the other weaker constraints", WEAKER[1:])):
        weakened = {text: weaker_is_worse(find, text, constraints, training=True) for text in CROSSING}
        yield f"UAS: {title} in training below TREE, p < {SIGNIFICANT}", verdict(weakened)
    weakened = {text: weaker_is_worse(find, text, WEAKER, training=False) for text in CROSSING}
    yield f"UAS: weaker constraints in decoding alone below TREE, p < {SIGNIFICANT} (not asked for)", verdict(weakened)
    few = passed(ROUNDS[0]), passed(ROUNDS[-1])
    title = f"UAS, order 2: {ROUNDS[0]} round < {ROUNDS[-1]} rounds"
    yield title, verdict({text: ascending(find, text, few) for text in CROSSING})
    few = passed(USUAL_ROUNDS), passed(ROUNDS[0])
    yield f"UAS, order 2: {ROUNDS[0]} round below {USUAL_ROUNDS}, p < {SIGNIFICANT}", tested(find, *few)
    for factors, (name, reported) in SEARCHED.items():
        title = f"search error of {name} falls with rounds to about {reported}% at {REPORTED_ROUNDS}"
        for learnt in search.LEARNERS:
            words = f"{title}; learnt with {SUMS[learnt]}"
            yield words, searched(searches, factors, search.OURS, learnt, reported)
            if any(row["features"] == search.SMITH for row in searches):
                yield f"{words}, features as there", searched(searches, factors, search.SMITH, learnt, reported)


def verdict(found: dict[str, Seen], least: int = LEAST) -> str:
    """Where something holds, where not, and where rows are missing; yes if it does on `least` treebanks.

    Examples
    --------
    >>> verdict({"a": (True, "1 < 2"), "b": (True, "3 < 4"), "c": (False, "2 > 1"), "d": None})
    'yes: held on a (1 < 2), b (3 < 4); not on c (2 > 1); not measured yet: d'
    """
    held, not_held = (
        [f"{text} ({one[1]})" for text, one in found.items() if one and one[0] == k] for k in (True, False)
    )
    missing = [text for text, one in found.items() if one is None]
    if len(missing) == len(found):
        return NOT_YET
    parts = []
    if held:
        parts.append(f"held on {', '.join(held)}")
    if not_held:
        parts.append(f"not on {', '.join(not_held)}")
    if missing:
        parts.append(f"not measured yet: {', '.join(missing)}")
    answer = "yes" if len(held) >= least else "*open*" if len(held) + len(missing) >= least else "**no**"
    return f"{answer}: {'; '.join(parts)}"


def tested(find: Finder, better: Model, worse: Model, least: int = LEAST) -> str:
    """Where the first is significantly above the second, where below, and where they cannot be told apart.

    Yes if it is above on `least` treebanks and nowhere below; no if it is below on some, or above on too few.
    """
    above, below, apart, missing = [list[str]() for _ in range(4)]
    for text in CROSSING:
        test = find.test(text, GOLD, better, worse, MEASURES[0])
        if test is None:
            missing.append(text)
            continue
        gap = float(test["difference"])
        which = apart if float(test["p"]) >= SIGNIFICANT else above if gap > 0 else below
        which.append(f"{text} ({gap:+.2f}, p = {test['p']})")
    if len(missing) == len(CROSSING):
        return NOT_YET
    names = {
        "held on": above,
        "the other way on": below,
        "cannot be told apart on": apart,
        "not measured yet:": missing,
    }
    few = len(above) < least
    answer = "**no**" if below or (few and len(above) + len(missing) < least) else "*open*" if few else "yes"
    said = [f"{name} {', '.join(own)}" for name, own in names.items() if own]
    return f"{answer}: {'; '.join(said)}"


def values_of(find: Finder, text: str, models: Sequence[Model], column: str = "UAS") -> list[float] | None:
    """A column of rows of the same text; None if one is missing."""
    found = [find(Job(text, GOLD, model)) for model in models]
    known = [row for row in found if row is not None and row.get(column, "") != ""]
    if len(known) < len(models) or len({row["text"] for row in known}) > 1:
        return None
    return [float(row[column]) for row in known]


def ascending(find: Finder, text: str, models: Sequence[Model], *, equal: bool = False) -> Seen:
    """Whether UAS rises from each to the next (with `equal`, does not fall), and the numbers."""
    found = values_of(find, text, models)
    if found is None:
        return None
    return all(a <= b if equal else a < b for a, b in pairwise(found)), _chain(found)


def _chain(values: Sequence[float]) -> str:
    shown = f"{values[0]:.2f}"
    for before, value in pairwise(values):
        shown += f" {'<' if before < value else '>' if before > value else '='} {value:.2f}"
    return shown


def crossings(find: Finder, text: str) -> Seen:
    """Whether first order predicts more crossing links than gold has, and NOCROSS comes nearer to gold."""
    found = values_of(find, text, (TREE, NOCROSS), "crossing")
    row = find(Job(text, GOLD, TREE))
    if found is None or row is None:
        return None
    (tree, nocross), right = found, float(row["gold_crossing"])
    holds = tree > right and abs(nocross - right) < tree - right
    return holds, f"{right:.1f}% gold, {tree:.1f}% TREE, {nocross:.1f}% NOCROSS"


def weaker_is_worse(find: Finder, text: str, constraints: Sequence[str], *, training: bool) -> Seen:
    """Whether each of these constraints is significantly below a tree, and by how much."""
    tests = [find.test(text, GOLD, TREE, constrained(each, training=training), MEASURES[0]) for each in constraints]
    known = [test for test in tests if test is not None]
    if len(known) < len(tests):
        return None
    holds = all(float(test["difference"]) > 0 and float(test["p"]) < SIGNIFICANT for test in known)
    gaps = (f"{-float(test['difference']):+.2f}, p = {test['p']}" for test in known)
    return holds, "; ".join(f"{name} {gap}" for name, gap in zip(constraints, gaps, strict=True))


def searched_place(row: rows.Row) -> tuple[str, str]:
    """What a row of the search study is of, in words."""
    what = (row["data"], row["factors"], f"{row['features'] or 'our'} features", row["learnt"])
    what += ("all links",) if row["prune"] == "0" else ()
    return "/".join(what), f"{row['rounds']} rounds"


def searched(searches: list[rows.Row], factors: str, features: str, learnt: str, reported: float) -> str:
    """Search errors by rounds; it holds if the error falls, up to a tenth of a point, to what was reported or less."""
    by_run: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in searches:
        if (row["factors"], row["features"], row["learnt"]) == (factors, features, learnt):
            own = by_run.setdefault((row["data"], row["longest"], row.get("prune", "")), {})
            own[int(row["rounds"])] = float(row["search_error"])
    shown, holds = [], []
    for (text, longest, prune), errors in by_run.items():
        if not set(search.ROUNDS) <= set(errors):
            continue
        values = [errors[rounds] for rounds in search.ROUNDS]
        falls = all(after <= before + 0.1 for before, after in pairwise(values))
        holds.append(falls and values[0] >= values[-1] and round(errors[REPORTED_ROUNDS], 1) <= reported)
        where = f"{text}, {'all' if longest == '0' else f'up to {longest}'} words{', all links' * (prune == '0')}"
        shown.append(f"{where}: {', '.join(f'{value:.2f}%' for value in values)}")
    if not shown:
        return NOT_YET
    rounds = ", ".join(map(str, search.ROUNDS))
    return f"{'yes' if all(holds) else '**no**'}: after {rounds} rounds {'; '.join(shown)}"
