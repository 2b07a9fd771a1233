"""Parsers for languages without a treebank: from English through Europarl; rows for each language and method.

python -m benchmarks.quality.transfer                       all rows that are missing, scored on PUD
python -m benchmarks.quality.transfer --only de,pt          some languages
python -m benchmarks.quality.transfer --methods complete    some methods
python -m benchmarks.quality.transfer --dev                 scored on development files instead, for choosing options
python -m benchmarks.quality.transfer --again               replace rows that are there
python -m benchmarks.quality.transfer --table               run nothing: fill the tables of its page

The source treebank is the English Web Treebank (train), the bitext 40,000 pairs of Europarl. Everything is learnt
anew, but for what the methods of a language share: the English tagger and parser, links, the target tagger and the
delexicalised parser are made once. Options were chosen on development files of the German and Spanish GSD treebanks;
PUD was scored once. Scores count punctuation; relations are compared without subtypes.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpora, rows
from isogloss import __version__
from isogloss.data.bitext import Bitext
from isogloss.data.treebank import Treebank
from isogloss.metrics.parsing import compare_trees, score_trees
from isogloss.progress import QuietProgress
from isogloss.tasks.transfer import TransferredParser
from isogloss.tasks.transfer.chain import Chain, Given
from isogloss.tasks.transfer.parser import _Fitted

LANGUAGES = ("de", "es", "fr", "it", "pt")
DEVELOPMENT = {
    "de": ("de-gsd/dev",), "es": ("es-gsd/dev",), "fr": ("partut/fr.dev", "partut/fr.test"),
    "it": ("partut/it.dev", "partut/it.test"),
}  # fmt: skip
METHODS: dict[str, dict[str, Any]] = {
    "delexicalised": {"method": "delexicalised"},
    "random": {"method": "random"},
    "hard": {"method": "hard"},
    "posterior": {"method": "posterior"},
    "density": {"method": "density"},
    "complete": {"method": "complete"},
    "complete, order 2": {"method": "complete", "order": 2},
}
MAIN = "complete"
COLUMNS = (
    "date", "machine", "version", "commit", "command", "language", "part", "method", "tags", "options", "pairs",
    "sentences", "words", "uas", "las", "uas10", "upos", "difference", "p", "cpu_seconds",
)  # fmt: skip
KEY = ("language", "part", "method", "tags")
PAGE = Path("docs/parse-from-translations.md")
ENGLISH: dict[str, Any] = {}
"""What chains of all languages have in common: the parsed source side, and the delexicalised parser."""


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("transfer.csv"), COLUMNS, KEY)


def treebank(name: str) -> Treebank:
    return Treebank.read(corpora.data_folder() / "treebanks" / f"{name}.conllu.gz")


@cache
def chain(language: str) -> Chain:
    """What all methods of a language share; the English side is shared by all languages."""
    texts = corpora.data_folder() / "bitext/europarl-7way"
    bitext = Bitext.read(texts / "en.txt.gz", texts / f"{language}.txt.gz")
    given = Given(bitext, treebank("en-ewt/train"))
    made = Chain.of(TransferredParser(), given, QuietProgress(), None, False)
    vars(made).update(ENGLISH)
    ENGLISH.update(source=made.source, delexicalised=made.delexicalised)
    return made


def learnt(language: str, method: str) -> TransferredParser:
    """A parser by some method."""
    own = copy.copy(chain(language))  # with all that was made so far
    parser = TransferredParser(**METHODS[method])
    object.__setattr__(own, "options", parser)
    parser._fitted = _Fitted(*own.learn())
    parser.reading_ = None
    return parser


def short(trees: Treebank) -> np.ndarray:
    """Sentences of at most ten words."""
    return np.flatnonzero(trees.lengths <= 10)


def measure(language: str, part: str, method: str, against: dict[str, list[Treebank]]) -> list[dict[str, object]]:
    """A row with gold tags and one with predicted tags; the trees are kept in `against`."""
    files = (f"pud/{language}",) if part == "test" else DEVELOPMENT[language]
    gold = [treebank(name) for name in files]
    began = time.process_time()
    parser = learnt(language, method)
    seconds = time.process_time() - began
    made = []
    for tags in ("given", "predicted"):
        found = [parser.predict(one, tags=tags) for one in gold]
        against[f"{method}, {tags}"] = found
        scores = [score_trees(one, other) for one, other in zip(found, gold, strict=True)]
        words = [one.n_words for one in gold]
        few = [score_trees(one.take(short(g)), g.take(short(g))) for one, g in zip(found, gold, strict=True)]
        row: dict[str, object] = {
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
            "command": "python -m benchmarks.quality.transfer", "language": language, "part": part, "method": method,
            "tags": tags, "options": " ".join(f"{key}={value}" for key, value in parser.options_.items()),
            "pairs": parser.report_["pairs"], "sentences": sum(map(len, gold)), "words": sum(words),
            "uas": float(np.average([s.uas for s in scores], weights=words)),
            "las": float(np.average([s.las for s in scores], weights=words)),
            "uas10": float(np.average([s.uas for s in few], weights=[max(1, g.take(short(g)).n_words) for g in gold])),
            "upos": 100.0 if tags == "given" else float(np.average([s.upos for s in scores], weights=words)),
            "cpu_seconds": seconds,
        }  # fmt: skip
        other = against.get(f"{MAIN}, {tags}")
        if other is not None and method != MAIN and len(gold) == 1:
            compared = compare_trees(other[0], found[0], gold[0], measure="uas")
            row["difference"], row["p"] = compared.delta, f"{compared.p_value:.2g}"
        made.append(row)
        print(
            f"{language} {part} {method}, {tags} tags: UAS {row['uas']:.2f}, LAS {row['las']:.2f}, {seconds:.0f} CPU s",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    return made


def table(part: str, tags: str, column: str) -> str:
    """A score by language and method; those not measured yet are left open, and so is the mean then."""
    found = {tuple(row[name] for name in KEY): row for row in results().read()}
    names = [name for name in LANGUAGES if part == "test" or name in DEVELOPMENT]
    lines = [f"| | {' | '.join(names)} | mean |", "|---" * (len(names) + 2) + "|"]
    used = []
    for method in METHODS:
        cells = [found.get((name, part, method, tags)) for name in names]
        if not any(cells):
            continue
        used += [(method, name, cell) for name, cell in zip(names, cells, strict=True) if cell]
        marks = [_mark(cell) if cell and column == "uas" else "" for cell in cells]
        values = [f"{float(c[column]):.2f}{mark}" if c else "" for c, mark in zip(cells, marks, strict=True)]
        mean = f"{np.mean([float(cell[column]) for cell in cells if cell]):.2f}" if all(cells) else ""
        lines.append(f"| {method} | {' | '.join(values)} | {mean} |")
    return "\n".join([*lines, "", rows.commits(used)])


def _mark(row: rows.Row) -> str:
    """A star where the main method is better by more than chance."""
    return "*" if row["p"] and float(row["p"]) < 0.05 and float(row["difference"]) > 0 else ""


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.transfer", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="languages, such as de,pt; default: all")
    parser.add_argument("--methods", default="", help="some of them, with ; between; the main one comes along")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--dev", action="store_true", help="score development files instead")
    parser.add_argument("--table", action="store_true", help="run nothing: fill the tables of its page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        rows.fill(PAGE, "given", table("test", "given", "uas"))
        rows.fill(PAGE, "predicted", table("test", "predicted", "uas"))
        rows.fill(PAGE, "labelled", table("test", "predicted", "las"))
        return
    file, part = results(), "dev" if arguments.dev else "test"
    chosen = arguments.methods.split(";") if arguments.methods else list(METHODS)
    for language in arguments.only.split(",") if arguments.only else DEVELOPMENT if arguments.dev else LANGUAGES:
        trees: dict[str, list[Treebank]] = {}
        same = {"language": language, "part": part, "outdated": arguments.outdated}
        missing = [one for one in chosen if arguments.again or not file.is_done(**same, method=one, tags="given")]
        if missing and missing != [MAIN]:
            missing = [MAIN, *(one for one in missing if one != MAIN)]
        for method in missing:
            file.put(measure(language, part, method, trees))


if __name__ == "__main__":
    main()
