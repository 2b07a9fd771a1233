"""Trees of both sides of a bitext and links between their words, found together and apart.

python -m benchmarks.quality.joint_bilingual                 all rows that are missing
python -m benchmarks.quality.joint_bilingual --only fr,ru    some languages beside English
python -m benchmarks.quality.joint_bilingual --again         replace rows that are there
python -m benchmarks.quality.joint_bilingual --dev           score on the dev files of ParTUT: for choosing settings
python -m benchmarks.quality.joint_bilingual --clock         how long a pair takes, and ten steps of training
python -m benchmarks.quality.joint_bilingual --table         run nothing: write the tables of docs/joint.md

French learns from the 803 pairs of ParTUT without links, and is scored on PUD; the English parser learns from all
English trees of ParTUT but those of the pairs that it judges. Russian and Arabic learn from two thirds of PUD with its
links and are scored on the rest, in turn; their English parser is learnt from the English Web Treebank. Aligners learn
from the words of all pairs, and French from 20,000 pairs of Europarl as well: links are never seen by them. In PUD,
content words alone are linked: links that are found between two words without any in gold do not count. `equal` is the
recall at the precision that the separate aligner has.
"""

from __future__ import annotations

import argparse
import gzip
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import rows
from benchmarks.corpora import data_folder
from isogloss import __version__
from isogloss.data import Bitext, Links, Treebank
from isogloss.data.formats import read_links
from isogloss.data.tree_pairs import TreePairs
from isogloss.metrics import compare, compare_trees, score_links
from isogloss.metrics._resampling import paired
from isogloss.metrics.pairs import bracket_counts, content_links, score_pairs
from isogloss.progress import QuietProgress
from isogloss.tasks.align import HMMAligner
from isogloss.tasks.joint import JointParserAligner
from isogloss.tasks.joint.coupled import Models
from isogloss.tasks.joint.opinions import Opinions, fold_rows
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.transfer.stages import Stages

PAGE = Path("docs/joint.md")
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "part", "system", "pairs", "source_uas", "source_las",
    "source_brackets", "target_uas", "target_las", "target_brackets", "precision", "recall", "equal", "seconds",
)  # fmt: skip
PAIRED = ("date", "commit", "data", "part", "system", "measure", "delta", "low", "high", "p")
SPEED = ("date", "machine", "commit", "objective", "pair_ms", "most_ms", "pairs", "steps", "seconds")
LANGUAGES = {"fr": "French", "ru": "Russian", "ar": "Arabic"}
SYSTEMS: dict[str, dict[str, Any]] = {
    "weighted": {"coupling": "none", "grain": "coarse"},
    "coarse": {"grain": "coarse"},
    "mono": {"coupling": "mono"},
    "joint": {},
    "bound": {"objective": "bound", "iterations": 10},
    "itg-weighted": {"coupling": "none", "grain": "coarse", "linking": "itg"},
    "itg": {"linking": "itg"},
}
"""Options of what is scored beside `separate`."""
PARSING = ("data", "features", "learners", "structures", "tasks/parse", "tasks/tag")
"""The code that a parser depends on."""
EUROPARL = 20_000
OUTER = 3
INNER = 3
OUT = Path("out/joint_bilingual")


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("joint_bilingual.csv"), COLUMNS, ("data", "part", "system"))


def compared() -> rows.Rows:
    return rows.Rows(
        Path(__file__).with_name("joint_bilingual-paired.csv"), PAIRED, ("data", "part", "system", "measure")
    )


def speeds() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("joint_bilingual-speed.csv"), SPEED, ("objective",))


class Round(NamedTuple):
    """Pairs to learn from with what other models think of them, and pairs to score."""

    train: TreePairs
    models: Models
    judged: Opinions
    test: TreePairs


# --- text


def treebank(name: str) -> Treebank:
    return Treebank.read(data_folder() / "treebanks" / f"{name}.conllu.gz")


def partut(language: str, split: str) -> TreePairs:
    """The pairs of ParTUT that both languages have, by the numbers of their sentences."""
    sides = [treebank(f"partut/{code}.{split}") for code in ("en", language)]
    places = [{number: k for k, number in enumerate(_numbers(side))} for side in sides]
    both = sorted(set(places[0]) & set(places[1]))
    taken = [side.take([own[number] for number in both]) for side, own in zip(sides, places, strict=True)]
    return TreePairs(taken[0], taken[1])


def _numbers(trees: Treebank) -> list[int]:
    return [int(re.findall(r"\d+", name)[-1]) for name in trees.sent_ids]


def pud(language: str) -> TreePairs:
    folder = data_folder() / "alignment" / f"en-{language}.pud"
    sides = [Treebank.read(folder / f"test.{side}.conllu.gz") for side in ("src", "tgt")]
    return TreePairs(sides[0], sides[1], read_links(folder / "test.gold.txt", n_pairs=len(sides[0])))


def aligner_of(language: str, texts: list[TreePairs]) -> HMMAligner:
    """One that has learnt from words alone."""
    pairs: list[Any] = []
    if language == "fr":
        sides = []
        for code in ("en", language):
            with gzip.open(data_folder() / "bitext" / "europarl-7way" / f"{code}.txt.gz", "rt") as file:
                sides.append([line.split() for _, line in zip(range(EUROPARL), file)])
        pairs += zip(*sides, strict=True)
    for text in texts:
        pairs += [(text.source.words(s), text.target.words(s)) for s in range(len(text))]
    return HMMAligner().fit(Bitext.of(pairs))


def kept_parser(name: str, trees: Treebank, **options: Any) -> DependencyParser:
    """A parser, learnt once for all runs with the same code of parsers."""
    asked = ["git", "log", "-1", "--format=%h", "--", *(f"src/isogloss/{room}" for room in PARSING)]
    known = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    place = OUT / f"{name}-{known}.parser"
    if place.exists():
        return DependencyParser.load(place)
    parser = DependencyParser(**options).fit(trees)
    place.parent.mkdir(parents=True, exist_ok=True)
    parser.save(place)
    return parser


def rounds(language: str, dev: bool) -> Iterator[Round]:
    """What is learnt from and scored, once for French, in turn for the others."""
    if language == "fr":
        yield from _partut_round(dev)
        return
    pairs, english = pud(language), kept_parser("ewt", treebank("en-ewt/train"), iterations=6)
    aligner, every = aligner_of(language, [pairs]), np.arange(len(pairs))
    nothing = Stages(None, False, {})
    for fold in fold_rows(len(pairs), OUTER):
        train = pairs.take(np.setdiff1d(every, fold))
        made, given = JointParserAligner(folds=INNER), Models(english, None, aligner)  # type: ignore[arg-type]
        models = made._models(train, given, "whole", nothing, QuietProgress())
        yield Round(train, models, made._cross_fitted(train, given, nothing, QuietProgress()), pairs.take(fold))


def _partut_round(dev: bool) -> Iterator[Round]:
    train, test = partut("fr", "train"), partut("fr", "dev") if dev else pud("fr")
    aligner = aligner_of("fr", [train, partut("fr", "dev"), pud("fr")])
    english, numbers = treebank("partut/en.train"), np.array(_numbers(treebank("partut/en.train")))
    own, every, parts = np.array(_numbers(train.source)), np.arange(len(train)), []
    for k, fold in enumerate(fold_rows(len(train), 5)):
        parsers = (
            kept_parser(f"en-{k}", english.take(~np.isin(numbers, own[fold]))),
            kept_parser(f"fr-{k}", train.target.take(np.setdiff1d(every, fold))),
        )
        parts.append(Opinions.of(train.take(fold), *parsers, aligner))
    models = Models(kept_parser("en", english), kept_parser("fr", train.target), aligner)
    yield Round(train, models, Opinions.joined(parts), test)


# --- scores


class Answers(NamedTuple):
    """What a system found in all rounds, with gold and posteriors of links."""

    found: list[TreePairs]
    gold: list[TreePairs]
    posteriors: list[Any]


def run(language: str, dev: bool) -> tuple[dict[str, Answers], dict[str, float]]:
    answers: dict[str, Answers] = {name: Answers([], [], []) for name in ("separate", *SYSTEMS)}
    seconds = dict.fromkeys(answers, 0.0)
    for one in rounds(language, dev):
        for name, options in SYSTEMS.items():
            if options.get("linking") == "itg" and language == "fr":
                continue  # ParTUT has sentences of 250 words
            began = time.perf_counter()
            joint = JointParserAligner(**options)
            joint._agree(one.train, one.models, one.judged, Stages(None, False, {}), QuietProgress())
            if name == next(iter(SYSTEMS)):
                judged = list(joint._opinions(one.test))
                answers["separate"].found.append(joint.separate(one.test))
                answers["separate"].gold.append(one.test)
            answers[name].found.append(joint._decoded(one.test, judged))
            answers[name].gold.append(one.test)
            answers[name].posteriors.extend(
                grid for found in joint._found(judged) for grid in found.components[0].marginals()
            )
            seconds[name] += time.perf_counter() - began
            print(language, name, f"{seconds[name]:.0f} s", flush=True)
    return answers, seconds


def whole(parts: list[TreePairs]) -> TreePairs:
    """The pairs of all rounds, one after the other."""
    from isogloss.data.joining import join_treebanks

    source, target = (join_treebanks([getattr(part, side) for part in parts]) for side in ("source", "target"))
    if any(part.links is None for part in parts):
        return TreePairs(source, target)
    return TreePairs(source, target, Links.of([row for part in parts for row in part.links or ()]))


def at_precision(posteriors: list[Any], gold: Links, wanted: float) -> Links:
    """The links above the lowest threshold with which content links are this precise."""
    chosen = Links.of([[]] * len(gold))
    for threshold in np.arange(0.95, 0.04, -0.01):
        found = Links.of([[(int(i), int(j)) for i, j in np.argwhere(grid > threshold)] for grid in posteriors])
        found = content_links(found, gold)
        if score_links(found, gold, bootstrap=0).precision < wanted:
            break
        chosen = found
    return chosen


def measure(language: str, part: str) -> None:
    answers, seconds = run(language, part == "dev")
    gold = whole(answers["separate"].gold)
    found = {name: whole(own.found) for name, own in answers.items() if own.found}
    kept: dict[str, Links] = {}
    fresh = []
    for name, own in found.items():
        scores = score_pairs(own, gold, content=True, bootstrap=0)
        row: dict[str, Any] = {
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
            "command": f"python -m benchmarks.quality.joint_bilingual --only {language}", "data": language,
            "part": part, "system": name, "pairs": len(gold),
            "source_uas": scores.source.uas, "source_las": scores.source.las,
            "source_brackets": scores.source_brackets, "target_uas": scores.target.uas,
            "target_las": scores.target.las, "target_brackets": scores.target_brackets, "seconds": seconds[name],
        }  # fmt: skip
        if gold.links is not None and scores.links is not None and own.links is not None:
            row |= {"precision": scores.links.precision, "recall": scores.links.recall}
            if name == "separate":
                precise = scores.links.precision
                kept[name] = content_links(own.links, gold.links)
            else:
                kept[name] = at_precision(answers[name].posteriors, gold.links, precise)
            row["equal"] = score_links(kept[name], gold.links, bootstrap=0).recall
        fresh.append(row)
    results().put(fresh)
    compared().put(_paired(language, part, found, gold, kept))


def _paired(
    language: str, part: str, found: dict[str, TreePairs], gold: TreePairs, kept: dict[str, Links]
) -> Iterator[dict[str, object]]:
    """Differences from the separate models, with intervals."""
    base = found["separate"]
    for name, own in found.items():
        if name == "separate":
            continue
        told: dict[str, Any] = {}
        for side in ("source", "target"):
            ours, theirs, right = getattr(own, side), getattr(base, side), getattr(gold, side)
            told[f"{side}_uas"] = compare_trees(ours, theirs, right, measure="uas")
            counts = np.stack([bracket_counts(ours, right), bracket_counts(theirs, right)], axis=1)
            told[f"{side}_brackets"] = paired(counts, _f1, 10_000, 0, "brackets")
        if gold.links is not None:
            told["equal"] = compare(kept[name], kept["separate"], gold.links, measure="recall")
        for measured, result in told.items():
            values = result if isinstance(result, dict) else result.as_dict()
            low, high = values["interval"]
            yield {
                "date": rows.today(), "commit": rows.commit(), "data": language, "part": part, "system": name,
                "measure": measured, "delta": values["delta"], "low": low, "high": high, "p": values["p_value"],
            }  # fmt: skip


def _f1(counts: Any) -> Any:
    common, made, there = counts[..., 0], counts[..., 1], counts[..., 2]
    return 2 * common / np.maximum(1, made + there)


# --- the clock and the page


def clock(objective: str) -> None:
    """How long mean field takes for a pair of about 25 words on one core, and ten steps of training with 999 pairs."""
    from isogloss.engine.threads import using_threads

    pairs = pud("fr")
    models = Models(
        kept_parser("en", treebank("partut/en.train")),
        kept_parser("fr", partut("fr", "train").target),
        aligner_of("fr", [partut("fr", "train"), pairs]),
    )
    near = np.flatnonzero((abs(pairs.source.lengths - 25) <= 1) & (abs(pairs.target.lengths - 27) <= 3))[:20]
    joint, train = JointParserAligner(iterations=10, objective=objective), pairs.take(np.arange(999))
    began = time.perf_counter()
    joint._agree(train, models, Opinions.of(train, *models), Stages(None, False, {}), QuietProgress())
    passes = time.perf_counter() - began
    with using_threads(1):
        for _ in range(2):  # the first time compiles
            taken = []
            for number in near.tolist():
                opinions = Opinions.of(pairs.take([number]), *models)
                began = time.perf_counter()
                list(joint._found([opinions]))
                taken.append(time.perf_counter() - began)
    row = {
        "date": rows.today(), "machine": rows.machine(), "commit": rows.commit(), "objective": objective,
        "pair_ms": 1000 * float(np.median(taken)), "most_ms": 1000 * max(taken), "pairs": len(train),
        "steps": len(joint.trace_), "seconds": passes,
    }  # fmt: skip
    speeds().put([row])


def table() -> str:
    """Scores of all systems, beside the separate models."""
    used = rows.Used()
    heads = [
        "",
        "system",
        "UAS en",
        "UAS",
        "brackets en",
        "brackets",
        "links: precision",
        "recall",
        "at equal precision",
    ]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    wanted = (
        "source_uas", "target_uas", "source_brackets", "target_brackets", "precision", "recall", "equal",
    )  # fmt: skip
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
    """How long pairs and learning take."""
    used = rows.Used()
    lines = [
        "| objective | a pair of 25 words, one core | pairs | steps | learning, two cores |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in speeds().read():
        pair, learning = f"{float(row['pair_ms']):.1f} ms", f"{float(row['seconds']):.0f} s"
        lines.append(f"| {row['objective']} | {pair} | {row['pairs']} | {row['steps']} | {learning} |")
        used.add("time", row["objective"], row)
    return used.below("\n".join(lines))


def main() -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--only", help="languages, with commas")
    for flag in ("again", "dev", "clock", "table"):
        asked.add_argument(f"--{flag}", action="store_true")
    given = asked.parse_args()
    if given.table:
        rows.fill(PAGE, "joint", table())
        rows.fill(PAGE, "joint speed", speed_table())
        return
    if given.clock:
        for objective in ("fields", "bound"):
            clock(objective)
        return
    part = "dev" if given.dev else "test"
    for language in given.only.split(",") if given.only else LANGUAGES:
        if given.again or not results().has(data=language, part=part):
            measure(language, part)


if __name__ == "__main__":
    main()
