"""The page about ways to train the aligner, made from their rows."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import rows
from benchmarks.quality import calibration
from benchmarks.quality.variant_claims import LEVEL, NO, OPEN, YES

INTRO = """\
# Benchmarks: variants and calibration

<!-- Made by `python -m benchmarks.quality.variants --table` from the rows in benchmarks/quality/; do not edit. -->

How the ways to train the aligner compare with one another and with what their papers report, and how far its
probabilities can be believed. Rows: `variants.csv`, `variants-claims.csv` and `calibration.csv` in
`benchmarks/quality/`. How good the default aligner is beside others is on [the page of benchmarks](benchmarks.md).

```
python -m benchmarks.quality.variants             # three sets, some minutes
python -m benchmarks.quality.calibration          # every gold set but the largest
python -m benchmarks.quality.variants --table     # this page
```

Isogloss {VERSIONS}, {MACHINES}, {DATES}.

## What was run

- **Papers' setting**: no leaving out of own evidence, no spelling, no stems; `smoothing=0.0001`. Five iterations of
  Model 1, then five of the model (Model 1 by itself has ten in either case: five without constraint and five with
  agreement, or ten without); projections also with two, where Graça et al. usually stop. They end where the constraint
  is violated by 0.01 at the most, or after 200 steps. What still differs from the papers: long pairs are kept, the text
  is small (2,867, 1,447 and 10,447 pairs), and thresholds are found without labels. A weight of null by length,
  transitions to the end, agreement in the Model 1 that comes first, and a limit on the length of pairs to learn from
  are rows of their own.
- **Our defaults**: the same variants with leaving out and priors on. The *default aligner* is trained by agreement and
  decoded under symmetry, with nine fixed steps.
- **Decoding** says what posteriors are read: *own*, each direction's as it is; *product* of both (Liang et al.); or
  *projected* under the constraint of training (Graça et al.).
- **Viterbi** and **posterior** are AER of the links source to target / target to source by themselves (for posteriors
  with a label-free threshold for each direction); *both* is the intersection of the Viterbi paths. Viterbi paths
  know nothing of projections and leaving out.
- **Joined** is the AER of what `predict` gives: mean of both posteriors, label-free threshold, 95% interval.
  *Dev*: threshold chosen on the dev split instead, where there is one. *Lowest* is the lowest AER that any threshold
  reaches on the scored pairs: a property of the curve, not a result. *Area* is under precision over recall, up to the
  highest recall that posteriors told from 0 reach.
- **Symmetry** is intersection over union of the two directions' posterior links; **1-1** the share of links whose
  words have no other link, for each direction. Of the sure gold links {GOLD} are one-to-one (Graça et al. count 98.1%).
- **Against none** is the difference in joined AER from plain training of the same model and setting, joined in the way
  (mean or product) that is better for it, and the p-value of a paired bootstrap (2,000 resamples; it cannot fall
  below 0.001).

All in percent.
"""

CALIBRATION = """\
## Calibration of the default aligner

Expected calibration error (ten bins, in percent): of links with probability *p*, is a share *p* right? The aim is
below 5. *Links* are those that are predicted; *cells* all word pairs with a posterior of at least 0.01. Links that the
gold has as possible only are neither right nor wrong and left out. A gold that leaves kinds of words out (PUD links
content words only) calls right links wrong; *annotated* judges only links with at least one word that the gold links
to something. That forgives some links that are wrong, so the truth lies between both columns.
"""

REMARK = f"""\
A step from left to right counts if a paired bootstrap over sentence pairs (2,000 resamples, two-sided) has p < {LEVEL}:
*{YES}* if every step rises so, {NO} if one falls so, and *{OPEN}* otherwise. *Joined* AER depends on the label-free
threshold, which takes posteriors at their word; *lowest* AER takes the threshold out of the comparison.
"""

TITLES = (("papers", "Papers' setting"), ("defaults", "Our defaults"))


def page(found: list[rows.Row], claims: list[rows.Row]) -> str:
    """The whole page, in Markdown."""
    if not found:
        raise SystemExit("variants.csv has no rows yet: run python -m benchmarks.quality.variants")
    others = calibration.results().read()
    names = list(dict.fromkeys(row["data"] for row in found))
    dates = sorted(row["date"] for row in [*found, *others])
    values = {
        "VERSIONS": ", ".join(sorted({row["version"] for row in found})),
        "MACHINES": "; ".join(sorted({row["machine"] for row in found})),
        "DATES": dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}",
        "GOLD": ", ".join(sorted({f"{float(row['one_to_one_gold']):.1f}%" for row in found})),
    }
    intro = INTRO
    for name, value in values.items():
        intro = intro.replace("{" + name + "}", value)
    parts = [intro]
    for name in names:
        parts.append(f"## {name}\n")
        rows_of = [row for row in found if row["data"] == name]
        for setting, title in TITLES:
            parts.append(f"{title}:\n\n{_table(rows_of, setting)}\n")
        parts.append(f"{FURTHER}\n{_further(rows_of)}\n")
        parts.append(f"{TIGHTNESS}\n{_tightness(rows_of)}\n")
    parts.append(f"## How the gain depends on the size of the text\n\n{_sizes(found, names)}\n")
    parts.append(f"## Do the papers' orderings hold?\n\n{_verdict(claims)}\n")
    return "\n".join([*parts, CALIBRATION, calibration.table(others)]) + "\n"


FURTHER = """\
AER of each direction with as many links as Viterbi has (*points*, Ganchev et al. 2008), and of grow-diag-final-and on
Viterbi paths and on points; joined AER at fixed thresholds; precision at a recall of 85%; precision / recall of links
with a rare word (seen fewer than five times in the text) and of all others:
"""
TIGHTNESS = """\
How tight projections are: what is left of the violation, for each pair on the mean, in decoding (distance of the two
directions; for bijectivity the largest excess of uses):
"""


def _chosen(found: list[rows.Row], setting: str) -> list[rows.Row]:
    """Rows of a setting; those of the defaults end with the default aligner."""
    return [
        row
        for row in found
        if row["setting"] == setting or (setting == "defaults" and row["setting"] == "default aligner")
    ]


def _table(found: list[rows.Row], setting: str) -> str:
    lines = [
        "| training | decoding | iterations | Viterbi | both | posterior | joined [95%] | dev | lowest | area "
        "| symmetry | 1-1 | against none, p |",
        "|" + "---|" * 13,
    ]
    used = []
    for row in _chosen(found, setting):
        cells = list(_line(row))
        used.append(("", ", ".join(cells[:3]), row))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", rows.commits(used)])


def _number(row: rows.Row, column: str, digits: int = 1) -> str:
    return f"{float(row[column]):.{digits}f}" if row[column] else ""


def _names(row: rows.Row) -> tuple[str, str]:
    """What was trained, and how it was decoded."""
    if row["setting"] == "default aligner":
        return "**default aligner**", f"projected, {row['decode_constraint']}"
    models = {"model1": "Model 1", "model2": "Model 2", "hmm": "HMM"}
    training = f"{models[row['model']]}, {row['constraint']}"
    if row["extra"]:
        training += f", `{row['extra']}`"
    return training, {"none": "own", "agreement": "product"}.get(row["decode_constraint"], "projected")


def _line(row: rows.Row) -> Iterator[str]:
    yield from _names(row)
    yield row["iterations"]
    yield f"{_number(row, 'viterbi_forward')} / {_number(row, 'viterbi_backward')}"
    yield _number(row, "viterbi_both")
    one_set = row["decode_constraint"] == "agreement"  # both directions have the product: nothing to compare
    yield "" if one_set else f"{_number(row, 'posterior_forward')} / {_number(row, 'posterior_backward')}"
    yield f"{_number(row, 'AER', 2)} [{_number(row, 'AER_low')}, {_number(row, 'AER_high')}]"
    yield _number(row, "AER_dev_threshold")
    yield _number(row, "AER_lowest")
    yield _number(row, "area")
    yield "" if one_set else _number(row, "symmetry")
    shares = _number(row, "one_to_one_forward"), _number(row, "one_to_one_backward")
    yield shares[0] if one_set else " / ".join(shares)
    yield f"{float(row['against_none']):+.2f}, {float(row['p']):.3f}" if row["against_none"] else ""


def _further(found: list[rows.Row]) -> str:
    lines = [
        "| training | decoding | iterations | points | grown: Viterbi, points | 0.2 | 0.3 | 0.4 | 0.5 | P at R | rare "
        "| common |",
        "|" + "---|" * 12,
    ]
    used = []
    for row in found:
        if row["model"] == "hmm" and not row["extra"]:
            setting = "" if row["setting"] != "defaults" else " (our defaults)"
            training, decoded = _names(row)
            cells = [
                training + setting, decoded, row["iterations"],
                f"{_number(row, 'points_forward')} / {_number(row, 'points_backward')}",
                f"{_number(row, 'viterbi_grown')}, {_number(row, 'points_grown')}",
                *(_number(row, f"AER_{threshold}") for threshold in ("0.2", "0.3", "0.4", "0.5")),
                _number(row, "P_at_R"),
                *(f"{_number(row, f'{kind}_P')} / {_number(row, f'{kind}_R')}" for kind in ("rare", "common")),
            ]  # fmt: skip
            used.append(("", ", ".join(cells[:3]), row))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", rows.commits(used)])


def _tightness(found: list[rows.Row]) -> str:
    lines = ["| training | iterations | violation | objective | joined | lowest | area |", "|" + "---|" * 7]
    used = []
    for row in found:
        projected = row["constraint"] == row["decode_constraint"] and row["constraint"] in ("bijective", "symmetric")
        if projected and row["setting"] == "papers":
            cells = [
                _names(row)[0], row["iterations"], row["violation"], _number(row, "objective", 2),
                _number(row, "AER", 2), _number(row, "AER_lowest"), _number(row, "area"),
            ]  # fmt: skip
            used.append(("", ", ".join(cells[:2]), row))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", rows.commits(used)])


def _sizes(found: list[rows.Row], names: list[str]) -> str:
    """Relative changes of joined AER in the papers' setting."""
    lines = [
        "Relative change of joined AER against plain training, in the papers' setting (projections after two\n"
        "iterations), without a verdict: three texts are too few.\n",
        "| text | plain | agreement | bijective | symmetric |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for name in names:
        table = {
            (row["constraint"], row["decode_constraint"], row["iterations"]): float(row["AER"])
            for row in found
            if row["data"] == name and row["setting"] == "papers" and row["model"] == "hmm" and not row["extra"]
        }
        plain = min(table["none", decode, "5"] for decode in ("none", "agreement"))
        ways = (("agreement", "5"), ("bijective", "2"), ("symmetric", "2"))
        gains = [f"{100 * (table[way, way, iterations] / plain - 1):+.0f}%" for way, iterations in ways]
        lines.append(f"| {name} | {plain:.1f} | {' | '.join(gains)} |")
    used = [(row["data"], row["constraint"], row) for row in found if row["setting"] == "papers"]
    return "\n".join([*lines, "", rows.commits(used)])


def _verdict(claims: list[rows.Row]) -> str:
    """What holds, what does not, and every ordering with its numbers."""
    names = list(dict.fromkeys(row["data"] for row in claims))
    groups: dict[str, dict[str, dict[str, rows.Row]]] = {}
    for row in claims:
        groups.setdefault(row["group"], {}).setdefault(row["claim"], {})[row["data"]] = row
    lines = [REMARK]
    table = [f"| should rise from left to right | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for title, group in groups.items():
        verdicts = {claim: [row["verdict"] for row in on_sets.values()] for claim, on_sets in group.items()}
        held = [claim for claim, said in verdicts.items() if all(v == YES for v in said)]
        failing = [claim for claim, said in verdicts.items() if NO in said]
        what = "These fail on one at least:" if failing else "None fails."
        lines += [f"**{title}**: {len(held)} of {len(group)} hold on every set. {what}", ""]
        for claim in failing:
            where = ", ".join(name for name, row in group[claim].items() if row["verdict"] == NO)
            lines.append(f"- {claim} (not on {where})")
        lines += [""] if failing else []
        table.append(f"| **{title}** |" + " |" * len(names))
        for claim, on_sets in group.items():
            cells = (_cell(on_sets.get(name)) for name in names)
            table.append(f"| {claim} | {' | '.join(cells)} |")
    used = [(row["data"], row["group"], row) for row in claims]
    return "\n".join([*lines, *table, "", rows.commits(used)])


def _cell(row: rows.Row | None) -> str:
    return f"{row['verdict']}: {row['numbers']} (p {row['p']})" if row else ""
