"""Constituents of both sides of a bitext and links between them, found together and apart.

python -m benchmarks.quality.joint_constituents                 all rows that are missing
python -m benchmarks.quality.joint_constituents --only fr,ru    some languages beside English
python -m benchmarks.quality.joint_constituents --systems joint some systems; `separate` is always scored
python -m benchmarks.quality.joint_constituents --again         replace rows that are there
python -m benchmarks.quality.joint_constituents --dev           score on the dev files of ParTUT: for choosing settings
python -m benchmarks.quality.joint_constituents --clock         how long a pair takes
python -m benchmarks.quality.joint_constituents --table         run nothing: write the tables of docs/joint.md

Constituents are made from dependencies: a word with all that depends on it, under its tag. French learns from the pairs
of ParTUT without links, and is scored on PUD. Russian and Arabic learn from two thirds of PUD with its links and
are scored on the rest, in turn. Parsers of both sides learn from the same pairs, in folds, and see gold tags; aligners
learn from the words of all pairs, and French from 20,000 pairs of Europarl as well. Pairs of more than 50 words are
left out. In PUD, content words alone are linked: links that are found between two words without any in gold do not
count. `equal` is the recall at the precision that the separate aligner has.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import rows
from benchmarks.quality.joint_bilingual import PARSING, aligner_of, at_precision, partut, pud
from isogloss import __version__
from isogloss.data import ConstituentPairs, Constituents, Links
from isogloss.metrics import compare, compare_brackets, score_links
from isogloss.metrics.constituent_pairs import score_constituent_pairs
from isogloss.metrics.pairs import content_links
from isogloss.progress import QuietProgress
from isogloss.tasks.joint import JointConstituentAligner
from isogloss.tasks.joint.bracket_opinions import BracketOpinions
from isogloss.tasks.joint.coupled import Models
from isogloss.tasks.joint.opinions import fold_rows
from isogloss.tasks.parse.constituency import ConstituencyParser
from isogloss.tasks.transfer.stages import Stages

PAGE = Path("docs/joint.md")
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "part", "system", "pairs", "source_f1", "target_f1",
    "precision", "recall", "equal", "seconds",
)  # fmt: skip
PAIRED = ("date", "commit", "data", "part", "system", "measure", "delta", "low", "high", "p")
SPEED = ("date", "machine", "commit", "pairs", "bispans", "pair_ms", "most_ms")
LANGUAGES = {"fr": "French", "ru": "Russian", "ar": "Arabic"}
SYSTEMS: dict[str, dict[str, Any]] = {
    "weighted": {"coupling": "none"},
    "joint": {},
    "coarse": {"grain": "coarse"},
    "fields": {"objective": "fields"},
}
"""Options of what is scored beside `separate`; without coupling, links are those of the grammar alone."""
PASSES = 5
OUTER = 3
INNER = 3
LONGEST = 50
OUT = Path("out/joint_constituents")


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("joint_constituents.csv"), COLUMNS, ("data", "part", "system"))


def compared() -> rows.Rows:
    return rows.Rows(
        Path(__file__).with_name("joint_constituents-paired.csv"), PAIRED, ("data", "part", "system", "measure")
    )


def speeds() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("joint_constituents-speed.csv"), SPEED, ("pairs",))


class Round(NamedTuple):
    """Pairs to learn from with what other models think of them, and pairs to score."""

    train: ConstituentPairs
    models: Models
    judged: BracketOpinions
    test: ConstituentPairs


# --- text


def short(pairs: Any) -> ConstituentPairs:
    """Pairs of at most 50 words a side, with constituents."""
    lengths = np.maximum(pairs.source.lengths, pairs.target.lengths)
    return ConstituentPairs.from_dependencies(pairs.take(np.flatnonzero((lengths <= LONGEST) & (lengths > 0))))


def kept_parser(name: str, trees: Constituents) -> ConstituencyParser:
    """A parser, learnt once for all runs with the same code of parsers."""
    asked = ["git", "log", "-1", "--format=%h", "--", *(f"src/isogloss/{room}" for room in PARSING)]
    known = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    place = OUT / f"{name}-{known}.parser"
    if place.exists():
        return ConstituencyParser.load(place)
    parser = ConstituencyParser(tags="gold", iterations=PASSES).fit(trees)
    place.parent.mkdir(parents=True, exist_ok=True)
    parser.save(place)
    return parser


def parsers(name: str, language: str, pairs: ConstituentPairs) -> tuple[ConstituencyParser, ConstituencyParser]:
    """Those of both sides; English ones are the same for all languages with the same English text."""
    shared = "en-fr" if language == "fr" else f"en-pud-{len(pairs)}"
    return kept_parser(f"{shared}-{name}", pairs.source), kept_parser(f"{language}-{name}", pairs.target)


def cross_fitted(name: str, language: str, pairs: ConstituentPairs, aligner: Any, folds: int) -> BracketOpinions:
    """What parsers think of pairs that have learnt from the others."""
    parts, every = [], np.arange(len(pairs))
    for k, fold in enumerate(fold_rows(len(pairs), folds)):
        own = parsers(f"{name}{k}", language, pairs.take(np.setdiff1d(every, fold)))
        parts.append(BracketOpinions.of(pairs.take(fold), *own, aligner))
    return BracketOpinions.joined(parts)


def rounds(language: str, dev: bool) -> Iterator[Round]:
    """What is learnt from and scored, once for French, in turn for the others."""
    if language == "fr":
        whole = [partut("fr", "train"), partut("fr", "dev"), pud("fr")]
        aligner = aligner_of("fr", whole)
        train, test = short(whole[0]), short(whole[1 if dev else 2])
        models = Models(*parsers("", "fr", train), aligner)
        yield Round(train, models, cross_fitted("", "fr", train, aligner, 5), test)
        return
    pairs, aligner = short(pud(language)), aligner_of(language, [pud(language)])
    every = np.arange(len(pairs))
    for k, fold in enumerate(fold_rows(len(pairs), OUTER)):
        train, name = pairs.take(np.setdiff1d(every, fold)), f"{k}-"
        models = Models(*parsers(name, language, train), aligner)
        yield Round(train, models, cross_fitted(name, language, train, aligner, INNER), pairs.take(fold))


# --- scores


class Answers(NamedTuple):
    """What a system found in all rounds, with gold and posteriors of links."""

    found: list[ConstituentPairs]
    gold: list[ConstituentPairs]
    posteriors: list[Any]


def run(language: str, dev: bool, systems: list[str]) -> tuple[dict[str, Answers], dict[str, float]]:
    answers: dict[str, Answers] = {name: Answers([], [], []) for name in ("separate", *systems)}
    seconds = dict.fromkeys(answers, 0.0)
    for one in rounds(language, dev):
        judged: list[BracketOpinions] = []
        for name in systems:
            began = time.perf_counter()
            joint = JointConstituentAligner(**SYSTEMS[name])
            joint._agree(one.train, one.models, one.judged, Stages(None, False, {}), QuietProgress())
            if not judged:
                judged = list(joint._opinions(one.test))
                answers["separate"].found.append(joint.separate(one.test))
                answers["separate"].gold.append(one.test)
            answers[name].found.append(joint._decoded(one.test, judged))
            answers[name].gold.append(one.test)
            for found in joint._found(judged):
                bispans: Any = found.components[0]
                answers[name].posteriors.extend(bispans.link_marginals())
            seconds[name] += time.perf_counter() - began
            print(language, name, f"{seconds[name]:.0f} s", flush=True)
    return answers, seconds


def whole(parts: list[ConstituentPairs]) -> ConstituentPairs:
    """The pairs of all rounds, one after the other."""
    source, target = (Constituents.joined([getattr(part, side) for part in parts]) for side in ("source", "target"))
    if any(part.links is None for part in parts):
        return ConstituentPairs(source, target)
    return ConstituentPairs(source, target, Links.of([row for part in parts for row in part.links or ()]))


def measure(language: str, part: str, systems: list[str]) -> None:
    answers, seconds = run(language, part == "dev", systems)
    gold = whole(answers["separate"].gold)
    found = {name: whole(own.found) for name, own in answers.items()}
    chosen: dict[str, Links] = {}
    fresh = []
    for name, own in found.items():
        scores = score_constituent_pairs(own, gold, content=True, bootstrap=0)
        row: dict[str, Any] = {
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
            "command": f"python -m benchmarks.quality.joint_constituents --only {language}", "data": language,
            "part": part, "system": name, "pairs": len(gold), "source_f1": scores.source.f1,
            "target_f1": scores.target.f1, "seconds": seconds[name],
        }  # fmt: skip
        if gold.links is not None and scores.links is not None and own.links is not None:
            row |= {"precision": scores.links.precision, "recall": scores.links.recall}
            if name == "separate":
                precise = scores.links.precision
                chosen[name] = content_links(own.links, gold.links)
            else:
                chosen[name] = at_precision(answers[name].posteriors, gold.links, precise)
            row["equal"] = score_links(chosen[name], gold.links, bootstrap=0).recall
        fresh.append(row)
    results().put(fresh)
    compared().put(_paired(language, part, found, gold, chosen))


def _paired(
    language: str, part: str, found: dict[str, ConstituentPairs], gold: ConstituentPairs, chosen: dict[str, Links]
) -> Iterator[dict[str, object]]:
    """Differences from the separate models, with intervals."""
    base = found["separate"]
    for name, own in found.items():
        if name == "separate":
            continue
        told: dict[str, Any] = {
            f"{side}_f1": compare_brackets(getattr(own, side), getattr(base, side), getattr(gold, side))
            for side in ("source", "target")
        }
        if gold.links is not None:
            told["equal"] = compare(chosen[name], chosen["separate"], gold.links, measure="recall")
        for measured, result in told.items():
            values = result.as_dict()
            low, high = values["interval"]
            yield {
                "date": rows.today(), "commit": rows.commit(), "data": language, "part": part, "system": name,
                "measure": measured, "delta": values["delta"], "low": low, "high": high, "p": values["p_value"],
            }  # fmt: skip


# --- the clock and the page


def clock() -> None:
    """CPU time of mean field for a pair of about 25 words on one core, once models have said what they think."""
    from isogloss.engine.threads import using_threads

    train, test = short(partut("fr", "train")), short(pud("fr"))
    models = Models(*parsers("", "fr", train), aligner_of("", [pud("fr")]))
    joint, few = JointConstituentAligner(iterations=3), train.take(np.arange(100))
    joint._agree(few, models, BracketOpinions.of(few, *models), Stages(None, False, {}), QuietProgress())
    lengths = test.source.lengths, test.target.lengths
    near = np.flatnonzero((abs(lengths[0] - 25) <= 1) & (abs(lengths[1] - 27) <= 3))[:20]
    taken, sizes = [], []
    with using_threads(1):
        for again in range(2):  # the first time compiles
            for number in near.tolist():
                opinions = BracketOpinions.of(test.take([number]), *models)
                began = time.process_time()
                found = list(joint._found([opinions]))
                bispans: Any = found[0].components[0]
                if again:
                    taken.append(time.process_time() - began)
                    sizes.append(len(bispans.chart.cells))
    speeds().put([{
        "date": rows.today(), "machine": rows.machine(), "commit": rows.commit(), "pairs": len(near),
        "bispans": int(np.median(sizes)), "pair_ms": 1000 * float(np.median(taken)), "most_ms": 1000 * max(taken),
    }])  # fmt: skip


def table() -> str:
    """Scores of all systems, beside the separate models."""
    used = rows.Used()
    heads = ["", "system", "brackets en", "brackets", "links: precision", "recall", "at equal precision"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    wanted = ("source_f1", "target_f1", "precision", "recall", "equal")
    for language, title in LANGUAGES.items():
        for system in ("separate", *SYSTEMS):
            for row in results().find(data=language, part="test", system=system):
                marks = {
                    other["measure"]: "*"
                    for other in compared().find(data=language, part="test", system=system)
                    if float(other["p"]) < 0.05
                }
                cells = [f"{float(row[name]):.1f}{marks.get(name, '')}" if row[name] else "" for name in wanted]
                lines.append("| " + " | ".join([title, system, *cells]) + " |")
                used.add("scores", title, row)
    return used.below("\n".join(lines))


def speed_table() -> str:
    """How long a pair takes."""
    used = rows.Used()
    lines = ["| pairs of about 25 words | bispans | median, CPU time | most |", "|---:|---:|---:|---:|"]
    for row in speeds().read():
        times = (f"{float(row[name]):.0f} ms" for name in ("pair_ms", "most_ms"))
        lines.append("| " + " | ".join([row["pairs"], row["bispans"], *times]) + " |")
        used.add("time", "pairs", row)
    return used.below("\n".join(lines))


def main() -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--only", help="languages, with commas")
    asked.add_argument("--systems", help=f"some of {', '.join(SYSTEMS)}, with commas")
    for flag in ("again", "dev", "clock", "table"):
        asked.add_argument(f"--{flag}", action="store_true")
    given = asked.parse_args()
    if given.table:
        rows.fill(PAGE, "joint constituents", table())
        rows.fill(PAGE, "joint constituents speed", speed_table())
        return
    if given.clock:
        clock()
        return
    part = "dev" if given.dev else "test"
    systems = given.systems.split(",") if given.systems else list(SYSTEMS)
    for language in given.only.split(",") if given.only else LANGUAGES:
        missing = [
            name for name in systems if given.again or not results().has(data=language, part=part, system=name)
        ]  # fmt: skip
        if missing:
            measure(language, part, missing)


if __name__ == "__main__":
    main()
