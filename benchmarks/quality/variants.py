"""Ways to train the aligner, beside what their papers report: constraints, models, symmetry and one-to-one shares.

python -m benchmarks.quality.variants                         en-fr.hansards and hansards-10k, all variants
python -m benchmarks.quality.variants --sets hansards-10k     another choice of sets
python -m benchmarks.quality.variants --table                 run nothing: write docs/benchmarks-variants.md
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks import rows, scoring
from benchmarks.corpora import Set, all_sets
from benchmarks.quality import calibration
from isogloss import __version__
from isogloss.data import Bitext, Links
from isogloss.metrics import bijectivity, compare, curve, score_links, symmetry
from isogloss.tasks.align import HMMAligner, Model1Aligner, Model2Aligner
from isogloss.tasks.align import decode as decoding
from isogloss.tasks.align.symmetrise import symmetrise_links

HERE = Path(__file__).parent
PAGE = Path("docs/benchmarks-variants.md")
SETS = "en-fr.hansards,hansards-10k"
ALIGNERS = {"model1": Model1Aligner, "model2": Model2Aligner, "hmm": HMMAligner}
# No prior knowledge and no leaving out. The papers do not smooth; we need some pseudo-count, and this one is small.
PAPERS: dict[str, Any] = {
    "leave_out": 0.0, "decode_leave_out": 0.0, "spelling": 0.0, "stems": 0.0, "smoothing": 1e-4, "dual_steps": 40,
    "model1_iterations": 5,
}  # fmt: skip
LEAST = 1 / (2 * decoding.UNIT)  # the smallest posterior that is told from 0
KEY = ("data", "setting", "model", "constraint", "decode_constraint", "iterations")
COLUMNS = (
    *("date", "machine", "version", "commit", *KEY),
    *("viterbi_forward", "viterbi_backward", "viterbi_both"),
    *("posterior_forward", "posterior_backward"),
    *("AER", "AER_low", "AER_high", "P", "R", "threshold", "AER_dev_threshold", "AER_lowest", "area"),
    *("symmetry", "one_to_one_forward", "one_to_one_backward", "one_to_one_gold"),
    *("against_none", "p", "options", "command", "signature"),
)


@dataclass(frozen=True)
class Variant:
    """One way to train and decode: a row."""

    setting: str
    model: str = "hmm"
    constraint: str = "none"
    decode_constraint: str = "none"
    iterations: int = 5

    @property
    def options(self) -> dict[str, Any]:
        """What the aligner is told; the default aligner is told nothing."""
        if self.setting == "default aligner":
            return {}
        names = ("constraint", "decode_constraint", "iterations")
        return {name: getattr(self, name) for name in names} | (PAPERS if self.setting == "papers" else {})

    @property
    def name(self) -> str:
        return f"{self.setting}: {self.model}, {self.constraint} / {self.decode_constraint}, {self.iterations}"


def variants() -> Iterator[Variant]:
    """Every row of a set. Plain training comes before what is compared with it."""
    for setting in ("papers", "defaults"):
        for model in ("model1", "model2"):
            for constraint in ("none", "agreement"):
                yield Variant(setting, model, constraint, "agreement")  # Liang et al. multiply posteriors
        for constraint in ("none", "agreement"):
            for decode_constraint in ("none", "agreement"):
                yield Variant(setting, "hmm", constraint, decode_constraint)
        for constraint in ("bijective", "symmetric"):
            yield Variant(setting, "hmm", constraint, constraint)
            if setting == "papers":  # Graça et al. usually stop after two iterations
                yield Variant(setting, "hmm", constraint, constraint, iterations=2)
                yield Variant(setting, "hmm", constraint, "none", iterations=2)
    yield Variant("default aligner", "hmm", "agreement", "symmetric")


class Outcome:
    """A trained aligner on the text of a set: the links of a split, read from it in several ways."""

    def __init__(self, variant: Variant, data: Set, bitext: Bitext) -> None:
        self.data = data
        self.aligner = ALIGNERS[variant.model](threads=1, **variant.options).fit(bitext)
        self._corpus, self._model, self._evidence = self.aligner._evidence(bitext)

    def above(self, threshold: float, direction: decoding.Direction = "both", split: str = "test") -> Links:
        """Cells of a split whose posterior reaches a threshold."""
        links = decoding.links_above(self._corpus.pairs, self._evidence.posterior, threshold, direction)
        return self._part(links, split)

    @cached_property
    def joined(self) -> Links:
        """Links as `predict` gives them: the mean of both directions above the label-free threshold."""
        return self.above(self.aligner.threshold_)

    @cached_property
    def directional(self) -> tuple[Links, Links]:
        """Posterior decoding of each direction by itself, each with its own label-free threshold."""
        return self._direction("forward"), self._direction("backward")

    def _direction(self, direction: decoding.Direction) -> Links:
        bins = decoding.spectrum(self._evidence.posterior, direction)
        return self.above(decoding.expected_f_threshold(bins), direction)

    @cached_property
    def paths(self) -> tuple[Links, Links]:
        """Viterbi paths of each direction: the parameters as they stand, nothing projected and nothing left out."""
        found = self.aligner._best_paths(self._corpus, self._model)
        forward, backward = decoding.links_of_paths(self._corpus.pairs, *found)
        return self._part(forward, "test"), self._part(backward, "test")

    def _part(self, links: Links, split: str) -> Links:
        lines = self.data.lines[split]
        return links.part(lines.start, lines.stop)


def measure(variant: Variant, outcome: Outcome, plain: list[Links]) -> dict[str, object]:
    """The row of a variant; `plain` are the links of plain training in the same setting, joined in different ways."""
    data = outcome.data
    gold = scoring.gold(data.gold("test"))
    score = scoring.score(outcome.joined, data, "test")
    low, high = score.intervals["aer"]
    points = curve(outcome.above(LEAST), gold)
    both = symmetrise_links(*outcome.paths, np.array(data.shapes("test")), "intersection")
    gap = {}
    if variant.constraint != "none":  # against the better way to join: kind to plain training
        best = min(plain, key=lambda links: _aer(links, gold))
        test = compare(outcome.joined, best, gold, resamples=2000, seed=scoring.SEED)
        gap = {"against_none": test.delta, "p": f"{test.p_value:.4f}"}
    sure = gold if gold.possible is None else gold.keep(~gold.possible)
    return {
        **{name: getattr(variant, name) for name in KEY if name != "data"},
        "data": data.name,
        "date": rows.today(),
        "machine": rows.machine(),
        "version": __version__,
        "commit": rows.commit(),
        "viterbi_forward": _aer(outcome.paths[0], gold),
        "viterbi_backward": _aer(outcome.paths[1], gold),
        "viterbi_both": _aer(both, gold),
        "posterior_forward": _aer(outcome.directional[0], gold),
        "posterior_backward": _aer(outcome.directional[1], gold),
        "AER": score.aer,
        "AER_low": low,
        "AER_high": high,
        "P": score.precision,
        "R": score.recall,
        "threshold": outcome.aligner.threshold_,
        "AER_dev_threshold": _with_dev_threshold(outcome, gold),
        "AER_lowest": 100 * float(points.aer.min()),
        "area": 100 * points.area,
        "symmetry": 100 * symmetry(*outcome.directional),
        "one_to_one_forward": 100 * bijectivity(outcome.directional[0]),
        "one_to_one_backward": 100 * bijectivity(outcome.directional[1]),
        "one_to_one_gold": 100 * bijectivity(sure),
        **gap,
        "options": " ".join(f"{name}={value}" for name, value in variant.options.items()),
        "command": f"python -m benchmarks.quality.variants --sets {data.name}",
        "signature": score.signature,
    }


def _aer(links: Links, gold: Links) -> float:
    return score_links(links, gold, bootstrap=0).aer


def _with_dev_threshold(outcome: Outcome, gold: Links) -> object:
    """AER with the threshold that is best on the dev split; nothing where there is none."""
    if not outcome.data.has_gold("dev"):
        return ""
    dev = curve(outcome.above(LEAST, split="dev"), scoring.gold(outcome.data.gold("dev")))
    return _aer(outcome.above(min(1.0, dev.best_threshold())), gold)


def results() -> rows.Rows:
    return rows.Rows(HERE / "variants.csv", COLUMNS, KEY)


def is_done(data: Set) -> bool:
    """Whether this commit has made all rows of a set; they are made together, since they are compared."""
    file = results()
    keys = ({name: getattr(each, name) for name in KEY if name != "data"} for each in variants())
    return all(file.is_done(data=data.name, **key, outdated=True) for key in keys)


def run(data: Set) -> None:
    """All variants on the text of a set."""
    data.assemble()
    bitext = Bitext.read(data.source, data.target)
    plain: dict[tuple[str, str], list[Links]] = defaultdict(list)
    for variant in variants():
        outcome = Outcome(variant, data, bitext)
        setting = "defaults" if variant.setting == "default aligner" else variant.setting
        if variant.constraint == "none":
            plain[setting, variant.model].append(outcome.joined)
        row = measure(variant, outcome, plain[setting, variant.model])
        results().put([row])
        print(f"{data.name:16} {variant.name:55} AER {row['AER']:5.2f}", file=sys.stderr, flush=True)


# --- the page, made from the rows

INTRO = """\
# Benchmarks: variants and calibration

<!-- Made by `python -m benchmarks.quality.variants --table` from the rows in benchmarks/quality/; do not edit. -->

How the ways to train the aligner compare with one another and with what their papers report, and how far its
probabilities can be believed. Rows: `benchmarks/quality/variants.csv` and `benchmarks/quality/calibration.csv`. How
good the default aligner is beside others is on [the page of benchmarks](benchmarks.md).

```
python -m benchmarks.quality.variants             # two sets, some minutes
python -m benchmarks.quality.calibration          # every gold set but the largest
python -m benchmarks.quality.variants --table     # this page
```

Isogloss {VERSIONS}, {MACHINES}, {DATES}.

## What was run

- **Papers' setting**: no leaving out of own evidence, no spelling, no stems; `smoothing=0.0001`, `dual_steps=40`. Five
  iterations of Model 1, then five of the model; projections also with two, where Graça et al. usually stop. What still
  differs from the papers: null has a constant weight (0.15), long pairs are kept, the text is small (2,867 and 10,447
  pairs), the Model 1 before a Model 2 or HMM is trained without constraint, and thresholds are found without labels.
- **Our defaults**: the same variants with leaving out and priors on, 20 dual steps. The *default aligner* is trained
  by agreement and decoded under symmetry.
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

REMARK = """\
*Joined* AER depends on the label-free threshold, which takes posteriors at their word; *lowest* AER takes the
threshold out of the comparison.
"""


@dataclass(frozen=True)
class Claim:
    """An ordering from a paper on one set: numbers that should rise from left to right."""

    text: str
    numbers: tuple[float, ...]
    tolerance: float = 0.0

    @property
    def holds(self) -> bool:
        return all(b > a - self.tolerance for a, b in pairwise(self.numbers))

    def __str__(self) -> str:
        return f"{'yes' if self.holds else '**no**'}: {', '.join(f'{number:.1f}' for number in self.numbers)}"


class Find:
    """Numbers of the rows of one set; "posterior", "viterbi" and "one_to_one" are means of both directions."""

    def __init__(self, found: list[rows.Row], data: str) -> None:
        self._rows = {tuple(row[name] for name in KEY[1:]): row for row in found if row["data"] == data}

    def __call__(
        self,
        column: str,
        constraint: str,
        decode: str = "",
        *,
        model: str = "hmm",
        setting: str = "papers",
        iterations: int = 5,
    ) -> float:
        row = self._rows[setting, model, constraint, decode or constraint, str(iterations)]
        if column in row:
            return float(row[column])
        return mean(float(row[f"{column}_{direction}"]) for direction in ("forward", "backward"))

    def plain(self, column: str = "AER", **options: Any) -> float:
        """The better of the two ways to join the directions of plain training."""
        return min(self(column, "none", decode, **options) for decode in ("none", "agreement"))


def main_claims(find: Find) -> Iterator[Claim]:
    """Constraints lower the error, and do what they are meant to do."""
    for setting, name in (("papers", "papers' setting"), ("defaults", "our defaults")):
        for column, error in (("AER", "joined AER"), ("AER_lowest", "lowest AER")):
            for constraint in ("agreement", "bijective", "symmetric"):
                numbers = find(column, constraint, setting=setting), find.plain(column, setting=setting)
                yield Claim(f"{error}, {name}: {constraint} < plain", numbers)
    for column, name, constraint in (
        ("symmetry", "symmetry (Graça: 48, 90)", "symmetric"),
        ("one_to_one", "1-1 share (Graça: 78, 97)", "bijective"),
        ("one_to_one", "1-1 share", "symmetric"),
    ):
        yield Claim(f"{name}: plain < {constraint}", (find(column, "none"), find(column, constraint)))


def claims_of_graca(find: Find) -> Iterator[Claim]:
    """Graça, Ganchev and Taskar 2010. Plain training always has five iterations."""
    constraints = ("symmetric", "bijective")
    for column, error in (("AER", "joined AER"), ("AER_lowest", "lowest AER")):
        for constraint in constraints:
            numbers = find(column, constraint, iterations=2), find.plain(column)
            yield Claim(f"{error} after 2 iterations: {constraint} < plain", numbers)
    for iterations in (2, 5):
        after = f"after {iterations} iterations"
        joined = tuple(find("AER", constraint, iterations=iterations) for constraint in constraints)
        yield Claim(f"joined AER {after}: symmetric < bijective", joined)
        single = tuple(find("posterior", constraint, iterations=iterations) for constraint in constraints)
        yield Claim(
            f"AER of single directions {after}: symmetric < bijective < plain", (*single, find("posterior", "none"))
        )
        areas = tuple(find("area", constraint, iterations=iterations) for constraint in reversed(constraints))
        yield Claim(
            f"area {after}: plain < bijective <= symmetric (within 0.1)", (find("area", "none"), *areas), tolerance=0.1
        )
    for constraint in constraints:
        numbers = find("AER", constraint, iterations=2), find("AER", constraint, "none", iterations=2)
        yield Claim(f"joined AER after 2 iterations, {constraint}: projected at decoding < not projected", numbers)
    for constraint in ("none", *constraints):
        numbers = find("posterior", constraint), find("viterbi", constraint)
        yield Claim(f"AER of single directions, {constraint}: posterior < Viterbi", numbers)


def claims_of_liang(find: Find) -> Iterator[Claim]:
    """Liang, Taskar and Klein 2006; joined by the product of posteriors."""
    names = {"hmm": "HMM", "model2": "Model 2", "model1": "Model 1"}
    trained = {"agreement": "agreement", "none": "independent"}
    for column, error in (("AER", "joined AER"), ("AER_lowest", "lowest AER")):
        table = {(m, c): find(column, c, "agreement", model=m) for m in names for c in trained}
        for model, name in names.items():
            yield Claim(f"{error}, {name}: agreement < independent", tuple(table[model, c] for c in trained))
        for constraint, name in trained.items():
            yield Claim(f"{error}, {name}: HMM < Model 2 < Model 1", tuple(table[m, constraint] for m in names))
        gain = {m: 100 * (1 - table[m, "agreement"] / table[m, "none"]) for m in names}
        yield Claim(
            f"relative gain of agreement in {error}, percent: better of Models 1 and 2 < HMM",
            (max(gain["model1"], gain["model2"]), gain["hmm"]),
        )
        for model in ("model2", "hmm"):
            for constraint, name in trained.items():
                viterbi = find("viterbi_both", constraint, "agreement", model=model)
                yield Claim(
                    f"{names[model]}, {name}: {error} < that of intersected Viterbi paths",
                    (table[model, constraint], viterbi),
                )
    yield Claim(
        "AER of the HMM: agreement, joined < agreement, single directions < independent, single directions",
        (find("AER", "agreement"), find("posterior", "agreement", "none"), find("posterior", "none")),
    )
    numbers = find("symmetry", "none"), find("symmetry", "agreement", "none")
    yield Claim("symmetry of own posteriors: independent < agreement", numbers)


def page(found: list[rows.Row]) -> str:
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
        for setting, title in (("papers", "Papers' setting"), ("defaults", "Our defaults")):
            parts.append(f"{title}:\n\n{_table(found, name, setting)}\n")
    complete = [name for name in names if sum(row["data"] == name for row in found) == len(list(variants()))]
    parts.append(f"## Do the papers' orderings hold?\n\n{_verdict(found, complete)}\n")
    return "\n".join([*parts, CALIBRATION, calibration.table(others)]) + "\n"


def _table(found: list[rows.Row], data: str, setting: str) -> str:
    lines = [
        "| training | decoding | iterations | Viterbi | both | posterior | joined [95%] | dev | lowest | area "
        "| symmetry | 1-1 | against none, p |",
        "|" + "---|" * 13,
    ]
    used = []
    for row in found:
        is_default = setting == "defaults" and row["setting"] == "default aligner"
        if row["data"] == data and (row["setting"] == setting or is_default):
            cells = list(_line(row))
            used.append(("", ", ".join(cells[:3]), row))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", rows.commits(used)])


def _line(row: rows.Row) -> Iterator[str]:
    def number(column: str, digits: int = 1) -> str:
        return f"{float(row[column]):.{digits}f}" if row[column] else ""

    names = {"model1": "Model 1", "model2": "Model 2", "hmm": "HMM"}
    is_default = row["setting"] == "default aligner"
    yield "**default aligner**" if is_default else f"{names[row['model']]}, {row['constraint']}"
    decoding_name = {"none": "own", "agreement": "product"}.get(row["decode_constraint"], "projected")
    yield f"{decoding_name}, {row['decode_constraint']}" if is_default else decoding_name
    yield row["iterations"]
    yield f"{number('viterbi_forward')} / {number('viterbi_backward')}"
    yield number("viterbi_both")
    one_set = row["decode_constraint"] == "agreement"  # both directions have the product: nothing to compare
    yield "" if one_set else f"{number('posterior_forward')} / {number('posterior_backward')}"
    yield f"{number('AER', 2)} [{number('AER_low')}, {number('AER_high')}]"
    yield number("AER_dev_threshold")
    yield number("AER_lowest")
    yield number("area")
    yield "" if one_set else number("symmetry")
    shares = number("one_to_one_forward"), number("one_to_one_backward")
    yield shares[0] if one_set else " / ".join(shares)
    yield f"{float(row['against_none']):+.2f}, {float(row['p']):.3f}" if row["against_none"] else ""


def _verdict(found: list[rows.Row], names: list[str]) -> str:
    """What holds, what does not, and every ordering with its numbers."""
    groups = {
        "What constraints are for": main_claims,
        "Graça et al. 2010": claims_of_graca,
        "Liang et al. 2006": claims_of_liang,
    }
    lines = [REMARK]
    table = [f"| should rise from left to right | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for title, claims in groups.items():
        group = list(zip(*(claims(Find(found, name)) for name in names), strict=True))  # an ordering on every set
        failing = [
            f"- {on_sets[0].text} (not on {', '.join(name for name, claim in zip(names, on_sets) if not claim.holds)})"
            for on_sets in group
            if not all(claim.holds for claim in on_sets)
        ]
        what = "These do not:" if failing else "None fails."
        lines += [f"**{title}**: {len(group) - len(failing)} of {len(group)} hold on every set. {what}", ""]
        lines += [*failing, ""] if failing else []
        table.append(f"| **{title}** |" + " |" * len(names))
        table += [f"| {on_sets[0].text} | {' | '.join(map(str, on_sets))} |" for on_sets in group]
    used = [(row["data"], row["setting"], row) for row in found if row["data"] in names]
    return "\n".join([*lines, *table, "", rows.commits(used)])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.variants", description=__doc__.split("\n")[0])
    parser.add_argument("--sets", default=SETS, help=f"names from sets.tsv, split by commas; default: {SETS}")
    parser.add_argument("--outdated", action="store_true", help="leave sets that this commit has run")
    parser.add_argument("--table", action="store_true", help="run nothing: print the tables and write the page")
    arguments = parser.parse_args(argv)
    if not arguments.table:
        known = all_sets()
        for name in arguments.sets.split(","):
            if name not in known or not known[name].has_gold("test"):
                parser.error(f"--sets: there is no {name!r} with gold in sets.tsv; there are {', '.join(known)}")
        for name in arguments.sets.split(","):
            if not (arguments.outdated and is_done(known[name])):
                run(known[name])
        return
    text = page(results().read())
    print(text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
