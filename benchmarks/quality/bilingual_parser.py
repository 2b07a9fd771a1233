"""A parser of a language with few trees, with the help of an English one: accuracy by number of trees, and the clock.

python -m benchmarks.quality.bilingual_parser                 all rows that are missing
python -m benchmarks.quality.bilingual_parser --only fr,ru    some languages beside English
python -m benchmarks.quality.bilingual_parser --sizes 10,100  with so many trees alone
python -m benchmarks.quality.bilingual_parser --systems 'joint;target only;monolingual'
python -m benchmarks.quality.bilingual_parser --again         replace rows that are there
python -m benchmarks.quality.bilingual_parser --dev           on pairs of ParTUT, for choosing settings
python -m benchmarks.quality.bilingual_parser --clock         seconds of belief propagation for its variants
python -m benchmarks.quality.bilingual_parser --table         run nothing: write the tables of docs/joint.md

PUD is cut into three parts; the trees of two are learnt from, the first so many of a fixed shuffle, and the third is
scored, in turn. The English parser is learnt from 2,000 sentences of the English Web Treebank, the aligner from the
words of all pairs (French: and of 20,000 of Europarl). `target only` is the same model without configurations.
`monolingual` is our parser of order 2 with all of its parts, learnt from the same trees. Stars: different from
`target only` with as many trees, by paired bootstrap over sentences, p < 0.05.

Trees that were found are kept in out/bilingual_parser, a file for each third, so that a run that was stopped goes on
where it was, and rows are written when all thirds of a number of trees are there.

The clock is of belief propagation alone, one core, over pairs of PUD French with 20 to 30 words, with the weights that
100 pairs give; the last column has what the reference had, in seconds of its own time, as multiples of `target only`.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import rows
from benchmarks.quality.joint_bilingual import LANGUAGES, aligner_of, kept_parser, partut, pud, treebank
from isogloss import __version__
from isogloss.data.joining import join_treebanks
from isogloss.data.tree_pairs import TreePairs
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.metrics import compare_trees, score_trees
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import TreeParts
from isogloss.tasks.joint import BilingualParser
from isogloss.tasks.joint.bilingual import FAMILIES
from isogloss.tasks.joint.looking import bilingual_templates, source_view
from isogloss.tasks.joint.opinions import fold_rows
from isogloss.tasks.joint.pair_model import PairModel
from isogloss.tasks.parse import DependencyParser

PAGE = Path("docs/joint.md")
OUT = Path("out/bilingual_parser")
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "part", "system", "trees", "pairs", "uas", "las",
    "seconds",
)  # fmt: skip
PAIRED = ("date", "commit", "data", "part", "system", "trees", "against", "delta", "low", "high", "p")
SPEED = ("date", "machine", "commit", "variant", "pairs", "milliseconds", "rounds", "configurations", "reference")
SIZES = (10, 20, 50, 100, 200, 300, 600)
VARIANTS = 100
"""Trees with which all systems are compared."""
ONLY, JOINT, ALONE = "target only", "joint", "monolingual"
SYSTEMS: dict[str, dict[str, Any]] = {
    ONLY: {"coupling": "none"},
    JOINT: {},
    "best source": {"source_trees": "best"},
    "mono": {"coupling": "mono"},
    "mono, best source": {"coupling": "mono", "source_trees": "best"},
    "mono, fixed": {"coupling": "mono", "weights": "fixed"},
    "synch, fixed": {"coupling": "synch", "weights": "fixed"},
    "gold source": {"source_trees": "given"},
}
"""Options of what is learnt; the first two with any number of trees."""
ENGLISH = 2000
"""Sentences that the English parser learns from."""
OUTER = 3
LONGEST = 80
"""Words of a sentence of ParTUT, at most."""
CLOCK = {
    "edge-factored": 0.06, ONLY: 0.54, "1-best source": 1.43, JOINT: 2.56, "1-best source, mono": 1.15, "mono": 1.52,
    "synchronous": 2.72,
}  # fmt: skip
"""What is timed, and the seconds of the reference (Smith 2010, table 4.4)."""


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("bilingual_parser.csv"), COLUMNS, ("data", "part", "system", "trees"))


def compared() -> rows.Rows:
    place = Path(__file__).with_name("bilingual_parser-paired.csv")
    return rows.Rows(place, PAIRED, ("data", "part", "system", "trees", "against"))


def speeds() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("bilingual_parser-speed.csv"), SPEED, ("variant",))


def english_parser() -> DependencyParser:
    """Of some sentences of the English Web Treebank, which has several kinds of text one after the other."""
    trees = treebank("en-ewt/train")
    some = np.sort(np.random.default_rng(0).permutation(len(trees))[:ENGLISH])
    return kept_parser(f"ewt-{ENGLISH}", trees.take(some), iterations=4)


class Round(NamedTuple):
    """Pairs to learn from, in the order in which they are taken, and pairs to score."""

    pool: TreePairs
    test: TreePairs
    aligner: Any


def rounds(language: str, dev: bool) -> Iterator[Round]:
    """Of PUD in turn, or one of ParTUT."""
    if dev:
        pairs = partut("fr", "train")
        short = np.maximum(pairs.source.lengths, pairs.target.lengths) <= LONGEST
        pairs = pairs.take(np.flatnonzero(short))
        order = np.random.default_rng(0).permutation(len(pairs))
        aligner = aligner_of("fr", [pairs, partut("fr", "dev")])
        yield Round(pairs.take(order[:-250]), pairs.take(np.sort(order[-250:])), aligner)
        return
    pairs = pud(language)
    aligner, every = aligner_of(language, [pairs]), np.arange(len(pairs))
    for fold in fold_rows(len(pairs), OUTER):
        pool = np.random.default_rng(0).permutation(np.setdiff1d(every, fold))
        yield Round(pairs.take(pool), pairs.take(fold), aligner)


class Asked(NamedTuple):
    """What is to be measured."""

    language: str
    part: str
    sizes: tuple[int, ...]
    systems: tuple[str, ...]
    commit: str
    again: bool = False

    def wanted(self) -> list[tuple[str, int]]:
        """Systems with numbers of trees that have no row yet."""
        return [
            (system, trees)
            for trees in self.sizes
            for system in self.systems
            if (trees == VARIANTS or system in (ALONE, ONLY, JOINT))
            and (self.again or not results().has(data=self.language, part=self.part, system=system, trees=trees))
        ]

    def place(self, fold: int, system: str, trees: int) -> Path:
        """Where the trees are kept that were found in a third."""
        name = re.sub("[^a-z]+", "-", system)
        return OUT / self.commit / f"{self.language}-{self.part}-{fold}-{name}-{trees}.conllu"


def measure(asked: Asked) -> None:
    wanted = asked.wanted()
    if not wanted:
        return
    english = english_parser()
    gold: list[Treebank] = []
    for number, one in enumerate(rounds(asked.language, asked.part == "dev")):
        gold.append(one.test.target)
        for trees in dict.fromkeys(trees for _, trees in wanted):
            names = [system for system, size in wanted if size == trees]
            missing = [name for name in names if not asked.place(number, name, trees).exists()]
            if missing:
                train = one.pool.take(np.arange(min(trees, len(one.pool))))
                for system, found, seconds in _trees(missing, train, one, english):
                    place = asked.place(number, system, trees)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.with_suffix(".seconds").write_text(f"{seconds:.3f}")
                    found.write(place)
                print(asked.language, number, trees, flush=True)
    right = join_treebanks(gold)
    own = {key: _kept(asked, key, len(gold)) for key in wanted}
    fresh = []
    for (system, trees), (found, seconds) in own.items():
        score = score_trees(found, right, bootstrap=0)
        fresh.append({
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": asked.commit,
            "command": f"python -m benchmarks.quality.bilingual_parser --only {asked.language}", "data": asked.language,
            "part": asked.part, "system": system, "trees": trees, "pairs": len(right), "uas": score.uas,
            "las": score.las, "seconds": seconds,
        })  # fmt: skip
    results().put(fresh)
    every = {
        (system, trees): _kept(asked, (system, trees), len(gold))[0]
        for trees in SIZES
        for system in (ALONE, *SYSTEMS)
        if all(asked.place(k, system, trees).exists() for k in range(len(gold)))
    }
    compared().put(_paired(asked.language, asked.part, every, right))


def _trees(
    systems: list[str], train: TreePairs, one: Round, english: DependencyParser
) -> Iterator[tuple[str, Treebank, float]]:
    """What some systems find after learning from the same trees, with the seconds of processors that they took."""
    given: dict[str, Any] = {"source_parser": english, "aligner": one.aligner}
    if set(systems) - {ALONE}:
        given["target_parser"] = DependencyParser(order=2, factors=list(FAMILIES), labels="second").fit(train.target)
    for system in systems:
        began = time.process_time()
        if system == ALONE:
            found = DependencyParser().fit(train.target).predict(one.test.target)
        else:
            found = BilingualParser(**SYSTEMS[system]).fit(train, **given).predict(one.test).target
        yield system, found, time.process_time() - began


def _kept(asked: Asked, key: tuple[str, int], folds: int) -> tuple[Treebank, float]:
    """The trees of all thirds, and their seconds."""
    places = [asked.place(fold, *key) for fold in range(folds)]
    seconds = sum(float(place.with_suffix(".seconds").read_text()) for place in places)
    return join_treebanks([Treebank.read(place) for place in places]), seconds


def _paired(
    language: str, part: str, found: dict[tuple[str, int], Treebank], gold: Treebank
) -> Iterator[dict[str, Any]]:
    """Differences in UAS from the target-only model with as many trees; and with twice as many, of the joint one."""
    for (system, trees), own in found.items():
        against = [(ONLY, trees)] * (system != ONLY) + [(ONLY, 2 * trees)] * (system == JOINT)
        for rival in against:
            if rival not in found:
                continue
            told = compare_trees(own, found[rival], gold, measure="uas")
            values: dict[str, Any] = told if isinstance(told, dict) else told.as_dict()
            low, high = values["interval"]
            yield {
                "date": rows.today(), "commit": rows.commit(), "data": language, "part": part, "system": system,
                "trees": trees, "against": f"{rival[0]}, {rival[1]}", "delta": values["delta"], "low": low,
                "high": high, "p": values["p_value"],
            }  # fmt: skip


def clock() -> None:
    """Milliseconds a pair of belief propagation, with weights that have learnt."""
    english = english_parser()
    pairs = pud("fr")
    aligner = aligner_of("fr", [pairs])
    some = np.flatnonzero((pairs.source.lengths >= 20) & (pairs.target.lengths >= 20))
    some = some[(pairs.source.lengths[some] <= 30) & (pairs.target.lengths[some] <= 30)]
    train, test = pairs.take(some[:VARIANTS]), pairs.take(some[VARIANTS : 2 * VARIANTS])
    alone = DependencyParser(order=2, factors=list(FAMILIES), labels="second").fit(train.target)
    given: dict[str, Any] = {"source_parser": english, "target_parser": alone, "aligner": aligner}
    wanted = {
        ONLY: SYSTEMS[ONLY], JOINT: {}, "1-best source": SYSTEMS["best source"], "mono": SYSTEMS["mono"],
        "1-best source, mono": SYSTEMS["mono, best source"], "synchronous": SYSTEMS["synch, fixed"],
    }  # fmt: skip
    fresh = []
    for name, options in wanted.items():
        parser = BilingualParser(**{"rounds": 40, **options}).fit(train, **given)
        fitted = parser._learnt
        view = source_view(english, test.source, parser.source_trees, parser.heads)
        looked = parser._look(test, fitted.models, view)
        demands = parser._demands(fitted.models)
        model = PairModel(looked, demands, fitted.scorer, bilingual_templates(parser.grain), fitted.keys)
        batch = model.batch(fitted.weights, np.arange(len(looked)))
        if name == ONLY:
            layout = batch.layout.target
            scores = batch.scores.values[batch.layout.places("target")]
            options_of = {"constraint": demands.constraint, "single_root": True, "iterations": 40}
            fresh.append(_timed(name, lambda a=layout, b=scores, c=options_of: LoopyTrees(a, b, **c), len(test)))
            links = TreeParts.of(looked.candidates.target)
            fresh.append(
                _timed(
                    "edge-factored",
                    lambda a=links, b=scores[layout.link_places], c=options_of: LoopyTrees(a, b, **c),
                    len(test),
                )
            )
            continue
        row = _timed(name, lambda b=batch: b.with_scores(b.scores), len(test))
        fresh.append(row | {"configurations": len(batch.layout.kinds) / len(test)})
    speeds().put(fresh)


def _timed(name: str, make: Any, count: int) -> dict[str, Any]:
    """The least of five runs on one core."""
    with using_threads(1):
        taken = []
        for _ in range(6):  # the first one may compile
            one = make()
            began = time.perf_counter()
            one.marginals()
            taken.append(time.perf_counter() - began)
    return {
        "date": rows.today(), "machine": rows.machine(), "commit": rows.commit(), "variant": name, "pairs": count,
        "milliseconds": 1000 * min(taken[1:]) / count, "rounds": float(one.rounds.mean()), "configurations": 0,
        "reference": CLOCK[name],
    }  # fmt: skip


# --- the page


def curve() -> str:
    """UAS by the number of target trees, where something was measured."""
    used = rows.Used()
    measured = [size for size in SIZES if results().has(part="test", trees=str(size))]
    heads = ["", "system", *map(str, measured)]
    lines = ["| " + " | ".join(heads) + " |", "|---|---|" + "---:|" * len(measured)]
    for language, title in LANGUAGES.items():
        for system in (ALONE, ONLY, JOINT):
            cells = []
            for trees in measured:
                mark, cell = _mark(language, system, trees), ""
                for row in results().find(data=language, part="test", system=system, trees=str(trees)):
                    cell = f"{float(row['uas']):.1f}{mark}"
                    used.add("curves", title, row)
                cells.append(cell)
            if any(cells):
                lines.append("| " + " | ".join([title, system, *cells]) + " |")
    return used.below("\n".join(lines))


def _mark(language: str, system: str, trees: int) -> str:
    found = compared().find(data=language, part="test", system=system, trees=str(trees), against=f"{ONLY}, {trees}")
    return "*" if any(float(row["p"]) < 0.05 for row in found) else ""


def variants() -> str:
    """All systems with the same number of trees."""
    used = rows.Used()
    lines = ["| system | " + " | ".join(LANGUAGES.values()) + " |", "|---|" + "---:|" * len(LANGUAGES)]
    for system in (ALONE, *SYSTEMS):
        cells = []
        for language, title in LANGUAGES.items():
            cell = ""
            for row in results().find(data=language, part="test", system=system, trees=str(VARIANTS)):
                cell = f"{float(row['uas']):.1f}{_mark(language, system, VARIANTS)}"
                used.add("variants", title, row)
            cells.append(cell)
        lines.append("| " + " | ".join([system, *cells]) + " |")
    return used.below("\n".join(lines))


def worth() -> str:
    """How many trees the other language is worth, and what is gained, by rows."""
    lines = []
    for language, title in LANGUAGES.items():
        curves = {
            system: {
                int(row["trees"]): float(row["uas"])
                for row in results().find(data=language, part="test", system=system)
            }
            for system in (ONLY, JOINT)
        }
        if VARIANTS not in curves[JOINT]:
            continue
        factors = [f"{factor:.1f} at {trees}" for trees, factor in _factors(curves[ONLY], curves[JOINT])]
        gain = curves[JOINT][VARIANTS] - curves[ONLY][VARIANTS]
        line = f"- {title}: {gain:+.1f} UAS with {VARIANTS} trees"
        if factors:
            line += f"; as good as the target alone with this many times the trees: {', '.join(factors)}"
        lines.append(f"{line}.")
    return "\n".join(lines)


def _factors(alone: dict[int, float], joint: dict[int, float]) -> Iterator[tuple[int, float]]:
    """For each number of trees, by which factor more the target alone needs, where its curve goes as high."""
    sizes = sorted(set(alone) & set(joint))
    heights = np.maximum.accumulate([alone[size] for size in sizes])
    for trees in sizes:
        if joint[trees] <= heights[-1]:
            needed = float(np.exp(np.interp(joint[trees], heights, np.log(sizes))))
            yield trees, needed / trees


def speed_table() -> str:
    """Milliseconds, and multiples of the target alone beside those of the reference."""
    used = rows.Used()
    found = {row["variant"]: row for row in speeds().read()}
    lines = [
        "| variant | ms a pair | rounds | configurations | times target only | reference |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    if not found:
        return "\n".join(lines)
    base, theirs = float(found[ONLY]["milliseconds"]), CLOCK[ONLY]
    for name, seconds in CLOCK.items():
        row = found[name]
        own = float(row["milliseconds"])
        lines.append(
            f"| {name} | {own:.2f} | {float(row['rounds']):.1f} | {float(row['configurations']):.0f} | "
            f"{own / base:.2f} | {seconds / theirs:.2f} |"
        )
        used.add("time", name, row)
    return used.below("\n".join(lines))


def main() -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--only", help="languages, with commas")
    asked.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of trees, with commas")
    asked.add_argument("--systems", default=";".join((ALONE, *SYSTEMS)), help="systems, with semicolons")
    for flag in ("again", "dev", "clock", "table"):
        asked.add_argument(f"--{flag}", action="store_true")
    given = asked.parse_args()
    if given.table:
        for name, made in (
            ("bilingual curve", curve), ("bilingual variants", variants), ("bilingual worth", worth),
            ("bilingual speed", speed_table),
        ):  # fmt: skip
            if f"<!-- {name} -->" in PAGE.read_text(encoding="utf-8"):
                rows.fill(PAGE, name, made())
        return
    if given.clock:
        clock()
        return
    sizes = tuple(int(size) for size in given.sizes.split(","))
    systems = tuple(given.systems.split(";"))
    languages = ["fr"] if given.dev else given.only.split(",") if given.only else list(LANGUAGES)
    for language in languages:
        measure(Asked(language, "dev" if given.dev else "test", sizes, systems, rows.commit(), given.again))


if __name__ == "__main__":
    main()
