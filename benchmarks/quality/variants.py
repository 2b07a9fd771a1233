"""Ways to train the aligner, beside what their papers report: constraints, models, symmetry and one-to-one shares.

python -m benchmarks.quality.variants                         three Hansards sets, all variants
python -m benchmarks.quality.variants --sets hansards-10k     another choice of sets
python -m benchmarks.quality.variants --table                 run nothing: write docs/benchmarks-variants.md
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import rows, scoring
from benchmarks.corpora import Set, all_sets
from benchmarks.quality.variant_claims import Find, claims
from benchmarks.quality.variant_measures import Measured, Outcome
from isogloss import __version__
from isogloss.data import Bitext, Links
from isogloss.metrics import bijectivity, compare, score_links
from isogloss.tasks.align import HMMAligner, Model1Aligner, Model2Aligner

HERE = Path(__file__).parent
PAGE = Path("docs/benchmarks-variants.md")
SETS = "en-fr.hansards,hansards-1k,hansards-10k"
ALIGNERS = {"model1": Model1Aligner, "model2": Model2Aligner, "hmm": HMMAligner}
# No prior knowledge and no leaving out. The papers do not smooth; we need some pseudo-count, and this one is small.
PAPERS: dict[str, Any] = {
    "leave_out": 0.0, "decode_leave_out": 0.0, "spelling": 0.0, "stems": 0.0, "smoothing": 1e-4,
    "model1_iterations": 5,
}  # fmt: skip
STEPS = {"papers": 10, "defaults": 8}
"""Iterations of Model 1 without constraint: as many as Model 1 with agreement has, with those that come first."""
KEY = ("data", "setting", "model", "constraint", "decode_constraint", "iterations", "extra")
MEASURES = (
    *("viterbi_forward", "viterbi_backward", "viterbi_both", "viterbi_grown"),
    *("points_forward", "points_backward", "points_grown", "posterior_forward", "posterior_backward"),
    *("AER", "AER_lowest", "area", "P_at_R", "AER_0.2", "AER_0.3", "AER_0.4", "AER_0.5"),
    *("rare_P", "rare_R", "common_P", "common_R", "symmetry", "one_to_one_forward", "one_to_one_backward"),
)
COLUMNS = (
    *("date", "machine", "version", "commit", *KEY, *MEASURES),
    *("AER_low", "AER_high", "P", "R", "threshold", "AER_dev_threshold", "one_to_one_gold", "violation", "objective"),
    *("against_none", "p", "options", "command", "signature"),
)
CLAIMS = ("date", "machine", "version", "commit", "data", "group", "claim", "verdict", "numbers", "p", "command")


@dataclass(frozen=True)
class Variant:
    """One way to train and decode: a row. `extra` are further options, as `name=value` with spaces between."""

    setting: str
    model: str = "hmm"
    constraint: str = "none"
    decode_constraint: str = "none"
    iterations: int = 5
    extra: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """What the aligner is told; the default aligner is told nothing."""
        if self.setting == "default aligner":
            return {}
        names = ("constraint", "decode_constraint", "iterations")
        told = {name: getattr(self, name) for name in names} | (PAPERS if self.setting == "papers" else {})
        return told | {name: _value(value) for name, value in (word.split("=") for word in self.extra.split())}

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in KEY[1:])

    @property
    def name(self) -> str:
        what = f"{self.setting}: {self.model}, {self.constraint} / {self.decode_constraint}, {self.iterations}"
        return f"{what} {self.extra}".rstrip()


def _value(text: str) -> Any:
    """An option as Python has it."""
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def variants() -> Iterator[Variant]:
    """Every row of a set. Plain training comes before what is compared with it."""
    for setting in ("papers", "defaults"):
        for model in ("model1", "model2"):
            steps = STEPS[setting] if model == "model1" else 5
            yield Variant(setting, model, "none", "agreement", steps)  # Liang et al. multiply posteriors
            yield Variant(setting, model, "agreement", "agreement")
        for constraint in ("none", "agreement"):
            for decode_constraint in ("none", "agreement"):
                yield Variant(setting, "hmm", constraint, decode_constraint)
        for constraint in ("bijective", "symmetric"):
            yield Variant(setting, "hmm", constraint, constraint)
            if setting == "papers":  # Graça et al. usually stop after two iterations
                yield Variant(setting, "hmm", constraint, constraint, iterations=2)
                yield Variant(setting, "hmm", constraint, "none", iterations=2)
    yield Variant("default aligner", "hmm", "agreement", "symmetric")
    for steps in (1, 5, 40):
        yield Variant("papers", "hmm", "symmetric", "symmetric", 2, f"dual_search=fixed dual_steps={steps}")
    for tolerance in (1.0, 0.1):
        yield Variant("papers", "hmm", "symmetric", "symmetric", 2, f"dual_tolerance={tolerance}")
    yield Variant("papers", "hmm", "bijective", "bijective", 2, "dual_search=fixed dual_steps=40")
    for constraint in ("none", "agreement"):
        yield Variant("papers", "hmm", constraint, "agreement", extra="model1_iterations=0")
    for extra in ("model1_constraint=agreement", "null=length", "final=True", "train_length=40"):
        yield Variant("papers", "hmm", "agreement", "agreement", extra=extra)
    yield Variant("papers", "hmm", "agreement", "agreement", extra="model1_constraint=agreement null=length final=True")


def measure(variant: Variant, outcome: Outcome, found: dict[str, Measured], plain: list[Links]) -> dict[str, object]:
    """The row of a variant; `plain` are the links of plain training in the same setting, joined in different ways."""
    data, gold = outcome.data, outcome.gold
    score = scoring.score(outcome.joined, data, "test")
    low, high = score.intervals["aer"]
    gap = {}
    if variant.constraint != "none":  # against the better way to join: kind to plain training
        best = min(plain, key=lambda links: _aer(links, gold))
        test = compare(outcome.joined, best, gold, resamples=2000, seed=scoring.SEED)
        gap = {"against_none": test.delta, "p": f"{test.p_value:.4f}"}
    sure = gold if gold.possible is None else gold.keep(~gold.possible)
    dev = outcome.dev_threshold
    return {
        **dict(zip(KEY[1:], variant.key, strict=True)),
        "data": data.name,
        "date": rows.today(),
        "machine": rows.machine(),
        "version": __version__,
        "commit": rows.commit(),
        **{name: found[name].value for name in MEASURES},
        "AER_low": low,
        "AER_high": high,
        "P": score.precision,
        "R": score.recall,
        "threshold": outcome.aligner.threshold_,
        "AER_dev_threshold": "" if dev is None else _aer(outcome.above(dev), gold),
        "one_to_one_gold": 100 * bijectivity(sure),
        "violation": f"{outcome.violation:.4f}",
        "objective": outcome.aligner.trace_[-1],
        **gap,
        "options": " ".join(f"{name}={value}" for name, value in variant.options.items()),
        "command": f"python -m benchmarks.quality.variants --sets {data.name}",
        "signature": score.signature,
    }


def _aer(links: Links, gold: Links) -> float:
    return score_links(links, gold, bootstrap=0).aer


def results() -> rows.Rows:
    return rows.Rows(HERE / "variants.csv", COLUMNS, KEY)


def verdicts() -> rows.Rows:
    """Whether what papers say holds, a row for each set and ordering."""
    return rows.Rows(HERE / "variants-claims.csv", CLAIMS, ("data", "group", "claim"))


def is_done(data: Set) -> bool:
    """Whether this commit has made all rows of a set; they are made together, since they are compared."""
    file = results()
    keys = (dict(zip(KEY[1:], each.key, strict=True)) for each in variants())
    return all(file.is_done(data=data.name, **key, outdated=True) for key in keys)


def run(data: Set) -> None:
    """All variants on the text of a set, and what they say of the papers."""
    data.assemble()
    bitext = Bitext.read(data.source, data.target)
    plain: dict[tuple[str, str], list[Links]] = defaultdict(list)
    every: dict[tuple[Any, ...], dict[str, Measured]] = {}
    for variant in variants():
        outcome = Outcome(ALIGNERS[variant.model](threads=1, **variant.options), data, bitext)
        setting = "defaults" if variant.setting == "default aligner" else variant.setting
        if variant.constraint == "none" and not variant.extra:
            plain[setting, variant.model].append(outcome.joined)
        every[variant.key] = outcome.measures()
        row = measure(variant, outcome, every[variant.key], plain[setting, variant.model])
        results().put([row])
        print(f"{data.name:16} {variant.name:75} AER {row['AER']:5.2f}", file=sys.stderr, flush=True)
    same = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "data": data.name, "command": f"python -m benchmarks.quality.variants --sets {data.name}",
    }  # fmt: skip
    verdicts().put(
        {
            **same, "group": claim.group, "claim": claim.text, "verdict": claim.verdict,
            "numbers": ", ".join(f"{number.value:.1f}" for number in claim.numbers),
            "p": ", ".join(f"{p:.3f}" for p in claim.p_values),
        }
        for claim in claims(Find(every), STEPS["papers"])
    )  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    from benchmarks.quality.variant_page import page

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
    text = page(results().read(), verdicts().read())
    print(text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
