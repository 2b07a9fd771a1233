"""Parsers from the treebanks of several other languages, by tags: each of the 15 PUD languages left out in turn.

python -m benchmarks.quality.several_sources                rows that are missing
python -m benchmarks.quality.several_sources --only hi,th   some languages
python -m benchmarks.quality.several_sources --dev          development languages (el, bg, hu, la, grc, got) instead
python -m benchmarks.quality.several_sources --again        replace rows that are there
python -m benchmarks.quality.several_sources --table        run nothing: fill the tables of its page

PUD is parallel. Sources are learnt from one half of its sentences, and the language that is left out is parsed
in the other half, both ways round: no translation of a sentence that is scored was ever learnt from. Tags are gold.
Sources are weighted by the tags of the half that is parsed. Scores count punctuation; relations are compared without
subtypes. English alone is learnt from the same half; for English itself there is no such row. The 15 parsers of each
half are learnt once and kept under out/, by commit. The exponent is the paper's; that directions are corrected, and
how, was chosen on the development languages.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpora, rows
from isogloss import __version__
from isogloss.data.joining import join_treebanks
from isogloss.data.treebank import Treebank
from isogloss.metrics.parsing import compare_trees, score_trees
from isogloss.tasks.transfer import DelexicalisedParser

LANGUAGES = ("ar", "cs", "de", "en", "es", "fi", "fr", "gl", "hi", "id", "it", "pt", "ru", "th", "zh")
DEVELOPMENT = {
    "el": "el-gdt/dev", "bg": "bg-btb/dev", "hu": "hu-szeged/dev", "la": "la-proiel/dev", "grc": "grc-proiel/dev",
    "got": "got-proiel/dev",
}  # fmt: skip
PIVOT = "en"
HALF = 500
MAIN = "weighted"
METHODS: dict[str, dict[str, Any]] = {
    MAIN: {},
    "directions as they are": {"directions": False},
    "all alike": {"exponent": 0},
    "the nearest": {"exponent": 100, "directions": False},
}
"""Options of each way to combine; `PIVOT` alone is beside them."""
ALONE = "English alone"
USUAL = (MAIN, ALONE)
"""What is scored on PUD unless more is asked for."""
KEPT = Path("out/several")
COLUMNS = (
    "date", "machine", "version", "commit", "command", "language", "part", "method", "options", "sources", "sentences",
    "words", "uas", "las", "difference", "p", "shares", "cpu_seconds",
)  # fmt: skip
KEY = ("language", "part", "method")
PAGE = Path("docs/transfer-several.md")


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("several_sources.csv"), COLUMNS, KEY)


def treebank(name: str) -> Treebank:
    return Treebank.read(corpora.data_folder() / "treebanks" / f"{name}.conllu.gz")


def half(trees: Treebank, number: int) -> Treebank:
    """The first or the second half of a PUD treebank."""
    assert len(trees) == 2 * HALF
    return trees.part(number * HALF, (number + 1) * HALF)


@cache
def every_source(number: int) -> DelexicalisedParser:
    """All languages, learnt from one half; each is left out where it is parsed."""
    trees = {name: treebank(f"pud/{name}") for name in LANGUAGES}
    ids = [tuple(part.sent_ids for part in (half(one, 0), half(one, 1))) for one in trees.values()]
    assert len(set(ids)) == 1 and not set(ids[0][0]) & set(ids[0][1]), "halves share sentences"
    commit = rows.commit()
    place = KEPT / commit / f"half{number + 1}"
    if place.exists() and commit and not commit.endswith("+"):
        return DelexicalisedParser.load(place)
    began = time.process_time()
    made = DelexicalisedParser().fit({name: half(one, number) for name, one in trees.items()})
    print(f"15 sources, half {number + 1}: {time.process_time() - began:.0f} CPU s", file=sys.stderr, flush=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    made.save(place)
    return made


def with_options(parser: DelexicalisedParser, names: list[str], options: dict[str, Any]) -> DelexicalisedParser:
    made = parser.with_sources(names)
    made.set_params(**options)
    return made


def tasks(language: str) -> list[tuple[DelexicalisedParser, Treebank]]:
    """What is parsed, with what was learnt from other sentences in other languages."""
    others = [name for name in LANGUAGES if name != language]
    if language in DEVELOPMENT:
        return [(every_source(0), treebank(DEVELOPMENT[language]))]
    gold = treebank(f"pud/{language}")
    return [(every_source(1 - number).with_sources(others), half(gold, number)) for number in (0, 1)]


def measure(language: str, chosen: list[str], trees: dict[str, Treebank]) -> list[dict[str, object]]:
    """A row for each way to combine sources; what the main one finds is kept in `trees`, for comparison."""
    made = []
    for method in chosen:
        began = time.process_time()
        found, gold, shares = [], [], {}
        for parser, text in tasks(language):
            names = [PIVOT] if method == ALONE else list(parser.sources_)
            own = with_options(parser, names, METHODS.get(method, {}))
            for name, share in own.weights_for(text).items():
                shares[name] = shares.get(name, 0.0) + share
            found.append(own.predict(text))
            gold.append(text)
        seconds = time.process_time() - began
        right, parsed = join_treebanks(gold), join_treebanks(found)
        trees[method] = parsed
        score = score_trees(parsed, right)
        nearest = sorted(shares, key=lambda name: -shares[name])[:4]
        row: dict[str, object] = {
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
            "command": "python -m benchmarks.quality.several_sources", "language": language, "part": part_of(language),
            "method": method, "options": " ".join(f"{key}={value}" for key, value in own.options_.items()),
            "sources": len(names), "sentences": len(right), "words": right.n_words, "uas": score.uas, "las": score.las,
            "shares": " ".join(f"{name}={shares[name] / len(gold):.2f}" for name in nearest), "cpu_seconds": seconds,
        }  # fmt: skip
        if method != MAIN and MAIN in trees:
            compared = compare_trees(trees[MAIN], parsed, right, measure="uas")
            row["difference"], row["p"] = compared.delta, f"{compared.p_value:.2g}"
        made.append(row)
        print(
            f"{language} {method}: UAS {score.uas:.2f}, LAS {score.las:.2f}, {row['shares']}, {seconds:.0f} CPU s",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    return made


def part_of(language: str) -> str:
    return "dev" if language in DEVELOPMENT else "test"


def table(part: str) -> str:
    """Scores by language and method, and their means without English."""
    found = {tuple(row[name] for name in KEY): row for row in results().read()}
    names = [name for name in (LANGUAGES if part == "test" else DEVELOPMENT) if (name, part, MAIN) in found]
    methods = [m for m in (*METHODS, ALONE) if all((n, part, m) in found for n in names if n != PIVOT or m != ALONE)]
    heads = [f"{method}, {column.upper()}" for column in ("uas", "las") for method in methods]
    lines = [f"| | {' | '.join(heads)} | nearest sources |", "|---" * (len(heads) + 2) + "|"]
    values: dict[str, list[float]] = {head: [] for head in heads}
    used = []
    for name in names:
        cells = []
        for head in heads:
            method, _, column = head.rpartition(", ")
            row = found.get((name, part, method))
            cells.append("" if row is None else f"{float(row[column.lower()]):.1f}")
            if row is not None:
                used.append((method, name, row))
                if name != PIVOT:
                    values[head].append(float(row[column.lower()]))
        lines.append(f"| {name} | {' | '.join(cells)} | {found[name, part, MAIN]['shares'].replace('=', ' ')} |")
    means = " | ".join(f"{np.mean(values[head]):.2f}" for head in heads)
    lines.append(f"| mean{' without English' * (part == 'test')} | {means} | |")
    return "\n".join([*lines, "", rows.commits(used)])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.several_sources", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="languages, such as hi,th; default: all")
    parser.add_argument("--methods", default="", help="some of them, with ; between; the main one comes along")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--dev", action="store_true", help="development languages instead")
    parser.add_argument("--table", action="store_true", help="run nothing: fill the tables of its page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        rows.fill(PAGE, "test", table("test"))
        rows.fill(PAGE, "development", table("dev"))
        return
    file = results()
    chosen = arguments.methods.split(";") if arguments.methods else [*METHODS, ALONE] if arguments.dev else USUAL
    for language in arguments.only.split(",") if arguments.only else DEVELOPMENT if arguments.dev else LANGUAGES:
        same = {"language": language, "part": part_of(language), "outdated": arguments.outdated}
        missing = [one for one in chosen if arguments.again or not file.is_done(**same, method=one)]
        missing = [one for one in missing if one != ALONE or language != PIVOT]
        if missing and missing[0] != MAIN:
            missing = [MAIN, *missing]
        file.put(measure(language, missing, {}))


if __name__ == "__main__":
    main()
