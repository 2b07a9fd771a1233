"""Tables of the page about studies of our own parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from benchmarks import rows
from benchmarks.quality.parsing import search
from benchmarks.quality.parsing.models import Model
from benchmarks.quality.parsing.orderings import SIGNIFICANT, searched_place
from benchmarks.quality.parsing.studies import (
    CROSSING,
    FACTORS,
    MEASURES,
    ROUNDS,
    SECOND_TRAINERS,
    TRAINERS,
    TREE,
    USUAL_ROUNDS,
    WEAKER,
    Job,
    constrained,
    decoded,
    margins,
    passed,
    trained,
)
from benchmarks.quality.parsing.texts import GOLD
from benchmarks.quality.parsing.verdicts import Find

NOT_YET = "*No rows yet.*"
MISSING = "·"
ABOUT_FACTORS = """\
Gold tags, trees that may cross, five rounds of belief propagation; each line adds a factor to the line above.
UAS / LAS, and percent of words whose link crosses another; · is a row that is missing. \\* differs from the line above
(p < 0.05, paired bootstrap, UAS).
"""
ABOUT_CONSTRAINTS = """\
Gold tags, order 1, UAS: less than a tree is demanded when a model of trees parses, and in brackets in learning as well.
Decoding gives a tree in any case. \\* differs from TREE (p < 0.05).
"""
ABOUT_DECODERS = """\
Gold tags, UAS / LAS of the same model decoded in two ways. \\* the better by UAS (p < 0.05).
"""
ABOUT_TRAINERS = """\
Gold tags, UAS / LAS; order 1 but for the last lines. Margins are decoded by the best tree, the others by minimum risk.
\\* differs from likelihood of the same order (p < 0.05, UAS); · is a row that is missing.
"""
ABOUT_ROUNDS = f"""\
Gold tags, order 2, UAS / LAS of one model, which learnt with {USUAL_ROUNDS} rounds, parsing with others. \\* differs
from {USUAL_ROUNDS} rounds (p < 0.05, UAS).
"""
ABOUT_SEARCH = """\
Projective second-order parsers with our features or with those of Smith's dissertation (whose larger parts look at tags
alone), which learnt with exact sums or with beliefs (five rounds), on test sentences in which no links cross: 1 −
the share of links of the exact tree (most right heads in expectation, by the exact program over the same scores) that
belief propagation finds, in percent, a mean over sentences. *Posteriors*: probability that is on other links, in
percent. *UAS* of belief propagation, and of the exact program over the same scores. Seconds are of inference alone.
A quick parser chooses candidate links first, but for rows with *all links*.
"""
Table = list[str]


def both(row: rows.Row | None) -> str:
    """UAS / LAS of a row."""
    return MISSING if row is None else f"{float(row['UAS']):.2f} / {float(row['LAS']):.2f}"


def star(find: Find, text: str, first: Model, second: Model, *, better: bool = False) -> str:
    """A star where two rows differ in UAS (with `better`, where the first is the better)."""
    test = find.test(text, GOLD, first, second, MEASURES[0])
    if test is None or float(test["p"]) >= SIGNIFICANT or (better and float(test["difference"]) < 0):
        return ""
    return " \\*"


def across(find: Find, title: str, models: Mapping[str, Model], against: Mapping[str, tuple[Model, Model]]) -> Table:
    """Systems down, treebanks across; stars by the pairs in `against`."""
    lines = [f"| {title} | {' | '.join(CROSSING)} |", "|" + "---|" * (len(CROSSING) + 1)]
    for name, model in models.items():
        own = [find(Job(text, GOLD, model)) for text in CROSSING]
        if any(own):
            marks = [star(find, text, *against[name]) if name in against else "" for text in CROSSING]
            lines.append(
                f"| {name} | {' | '.join(f'{both(row)}{mark}' for row, mark in zip(own, marks, strict=True))} |"
            )
    return lines


def _whole(about: str, lines: Table, head: int = 2) -> str:
    return "\n".join([about, *lines]) if len(lines) > head else NOT_YET


def factors(find: Find) -> str:
    """From a tree alone to all factors, with the links that cross."""
    lines = [f"| | {' | '.join(f'{text} | crossing' for text in CROSSING)} |", "|" + "---|" * (2 * len(CROSSING) + 1)]
    steps = list(FACTORS.items())
    found = {text: [find(Job(text, GOLD, model)) for _, model in steps] for text in CROSSING}
    for k, (name, model) in enumerate(steps):
        if any(found[text][k] for text in CROSSING):
            cells = []
            for text in CROSSING:
                mark = star(find, text, model, steps[k - 1][1]) if k else ""
                cells.append(f"{both(found[text][k])}{mark} | {_share(found[text][k], 'crossing')}")
            lines.append(f"| {name} | {' | '.join(cells)} |")
    if len(lines) == 2:
        return NOT_YET
    right = [next((row for row in found[text] if row is not None), None) for text in CROSSING]
    shares = [_share(row, "gold_crossing") for row in right]
    lines.append(f"| *gold* | {' | '.join(f' | {share}' for share in shares)} |")
    return _whole(ABOUT_FACTORS, lines + ["", *_steps(find)])


def _share(row: rows.Row | None, column: str) -> str:
    return MISSING if row is None or not row.get(column) else f"{float(row[column]):.1f}"


def _steps(find: Find) -> Table:
    """Differences between neighbours, and of all factors together."""
    names = list(FACTORS)
    pairs = [(after, before) for before, after in pairwise(names)] + [(names[-1], names[0])]
    lines = [f"| UAS, difference (p) | {' | '.join(CROSSING)} |", "|" + "---|" * (len(CROSSING) + 1)]
    for first, second in pairs:
        tests = [find.test(text, GOLD, FACTORS[first], FACTORS[second], MEASURES[0]) for text in CROSSING]
        if any(tests):
            cells = [MISSING if t is None else f"{float(t['difference']):+.2f} ({t['p']})" for t in tests]
            lines.append(f"| {first} against {second.removeprefix('+ ')} | {' | '.join(cells)} |")
    return lines if len(lines) > 2 else []


def constraints(find: Find) -> str:
    """Table 3.3 of the specification: less than a tree in decoding, and in learning."""
    lines = [f"| | {' | '.join(CROSSING)} |", "|" + "---|" * (len(CROSSING) + 1)]
    for constraint in WEAKER:
        ways = [constrained(constraint, training=training) for training in (False, True)]
        own = {text: [_uas(find, text, model) for model in ways] for text in CROSSING}
        if any(value != MISSING for values in own.values() for value in values):
            lines.append(f"| {constraint} | {' | '.join(f'{a} ({b})' for a, b in own.values())} |")
    found = [find(Job(text, GOLD, TREE)) for text in CROSSING]
    if len(lines) > 2:
        values = [MISSING if row is None else f"{float(row['UAS']):.2f}" for row in found]
        lines.append(f"| tree | {' | '.join(values)} |")
    return _whole(ABOUT_CONSTRAINTS, lines)


def _uas(find: Find, text: str, model: Model) -> str:
    row = find(Job(text, GOLD, model))
    return MISSING if row is None else f"{float(row['UAS']):.2f}{star(find, text, TREE, model)}"


def decoders(find: Find) -> str:
    models, against = dict[str, Model](), dict[str, tuple[Model, Model]]()
    for order in (1, 2):
        for decoder, name in (("mbr", "minimum risk"), ("map", "best tree")):
            models[f"likelihood, order {order}, {name}"] = decoded(order, decoder)
        against[f"likelihood, order {order}, minimum risk"] = decoded(order, "mbr"), decoded(order, "map")
    models |= {"MIRA, order 1, minimum risk": margins("mbr"), "MIRA, order 1, best tree": margins("map")}
    against["MIRA, order 1, best tree"] = margins("map"), margins("mbr")
    return _whole(ABOUT_DECODERS, across(find, "", models, against))


def trainers(find: Find) -> str:
    models = {name: trained(name) for name in TRAINERS}
    against = {name: (model, trained(TRAINERS[0])) for name, model in models.items() if name != TRAINERS[0]}
    for name in dict.fromkeys(each for own in SECOND_TRAINERS.values() for each in own):
        models[f"{name}, order 2"] = trained(name, 2)
        if name != TRAINERS[0]:
            against[f"{name}, order 2"] = trained(name, 2), trained(TRAINERS[0], 2)
    return _whole(ABOUT_TRAINERS, across(find, "", models, against))


def rounds(find: Find) -> str:
    models = {str(count): passed(count) for count in ROUNDS}
    against = {str(count): (passed(USUAL_ROUNDS), passed(count)) for count in ROUNDS if count != USUAL_ROUNDS}
    return _whole(ABOUT_ROUNDS, across(find, "rounds", models, against))


FEATURES = {search.OURS: "ours", search.SMITH: "Smith's"}


def searches(found: Sequence[rows.Row]) -> str:
    """Search errors, a line for each treebank, factors and number of rounds."""
    head = (
        "| treebank | factors | features | learnt with | sentences | rounds | search error | same trees | posteriors "
    )
    lines = [f"{head}| UAS (exact) | s | exact s |", "|" + "---|" * 12]
    order = {",".join(each): k for k, each in enumerate(search.FACTORS)}
    for row in sorted(
        found,
        key=lambda r: (
            r["data"],
            int(r["longest"]),
            order[r["factors"]],
            r["features"],
            r["prune"],
            r["learnt"] != search.EXACT,
            int(r["rounds"]),
        ),
    ):
        length = "all" if row["longest"] == "0" else f"≤ {row['longest']} words"
        length += ", all links" if row["prune"] == "0" else ""
        shown = [f"{float(row[name]):.2f}" for name in ("search_error", "same_trees", "belief_error")]
        lines.append(
            f"| {row['data']} | {row['factors']} | {FEATURES[row['features']]} | {row['learnt']} "
            f"| {row['sentences']} ({length}) | {row['rounds']} | {' | '.join(shown)} "
            f"| {float(row['UAS']):.2f} ({float(row['UAS_exact']):.2f}) | {float(row['seconds']):.2f} "
            f"| {float(row['seconds_exact']):.2f} |"
        )
    used = ((*searched_place(row), row) for row in found)
    return _whole(ABOUT_SEARCH, [*lines, "", rows.commits(used)] if found else lines)
