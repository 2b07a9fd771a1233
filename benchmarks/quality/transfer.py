"""Parsers for languages without a treebank: from English through Europarl; rows for each language and method.

python -m benchmarks.quality.transfer                       all rows that are missing, scored on PUD
python -m benchmarks.quality.transfer --only de,pt          some languages
python -m benchmarks.quality.transfer --methods complete    some methods
python -m benchmarks.quality.transfer --dev                 scored on development files instead, for choosing options
python -m benchmarks.quality.transfer --again               replace rows that are there
python -m benchmarks.quality.transfer --table               run nothing: fill the tables of its page

The source treebank is the English Web Treebank (train), the bitext 40,000 pairs of Europarl. Everything is learnt
anew, but for what the methods of a language share: links, the target tagger and what is projected are made once, and
the English tagger, parser and delexicalised parser once for each commit (kept under out/transfer). Options were chosen
on development files of the German and Spanish GSD treebanks and of the French and Italian ParTUT (`--dev`, methods that
change one option each); PUD was scored once. Scores count punctuation; relations are compared without subtypes. Columns
that end in 10 are of sentences of at most ten words.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpora, rows
from isogloss import __version__, store
from isogloss.data.bitext import Bitext
from isogloss.data.joining import join_treebanks
from isogloss.data.tag_dictionary import TagDictionary
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
    "complete, order 2": {"order": 2},
    "complete, dictionary": {"dictionary": True},
}
"""What is scored on PUD. With `dictionary`, the target tagger has the tags of Wiktionary, where there are some."""
CHOICES: dict[str, dict[str, Any]] = {
    "complete, 2 rounds": {"rounds": 2},
    "complete, 5,000 sentences": {"sentences": 5_000},
    "complete, 20,000 sentences": {"sentences": 20_000},
    "complete, at most 20 words": {"longest": 20},
    "complete, at most 40 words": {"longest": 40},
    "complete, 1 draw": {"draws": 1},
    "complete, 32 draws": {"draws": 32},
    "complete, 100 trees": {"trees": 100},
    "posterior, share 0.8": {"method": "posterior", "share": 0.8},
    "posterior, shares by agreement": {"method": "posterior", "shares": "agreement"},
}
"""What else is scored on development files: one option is another in each; or so many trees of the target language."""
DICTIONARIES = ("de", "es", "pt")
TREES = {"de": "de-gsd/test", "es": "es-gsd/test", "fr": "partut/fr.train", "it": "partut/it.train"}
"""Trees of other texts than those that are scored."""
MAIN = "complete"
COLUMNS = (
    "date", "machine", "version", "commit", "command", "language", "part", "method", "tags", "options", "pairs",
    "sentences", "words", "uas", "las", "uas10", "upos", "difference", "p", "difference10", "p10", "cpu_seconds",
)  # fmt: skip
KEY = ("language", "part", "method", "tags")
PAGE = Path("docs/parse-from-translations.md")
KEPT = Path("out/transfer")
ENGLISH = ("source_tagger", "source_parser", "delexicalised")
"""What chains of all languages have in common."""


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("transfer.csv"), COLUMNS, KEY)


def treebank(name: str) -> Treebank:
    return Treebank.read(corpora.data_folder() / "treebanks" / f"{name}.conllu.gz")


@cache
def chain(language: str) -> Chain:
    """What all methods of a language share; the English models are shared by all languages."""
    texts = corpora.data_folder() / "bitext/europarl-7way"
    bitext = Bitext.read(texts / "en.txt.gz", texts / f"{language}.txt.gz")
    given = Given(bitext, treebank("en-ewt/train"))
    made = Chain.of(TransferredParser(), given, QuietProgress(), None, False)
    vars(made).update({name: english(made, name) for name in ENGLISH})
    return made


def english(made: Chain, name: str) -> Any:
    """A model of the English side, made once for each commit."""
    commit = rows.commit()
    place = KEPT / commit / name
    if place.exists() and commit and not commit.endswith("+"):
        return store.load(place)
    model = getattr(made, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    model.save(place)
    return model


def learnt(language: str, method: str) -> TransferredParser:
    """A parser by some method; what it shares with others is made for all of them."""
    settings = dict((METHODS | CHOICES)[method])
    words = None
    if settings.pop("dictionary", False):
        words = TagDictionary.read(corpora.data_folder() / "tagdict" / f"{language}.tsv.gz")
    trees = treebank(TREES[language]).part(0, settings.pop("trees")) if "trees" in settings else None
    parser = TransferredParser(words, **settings)
    base = chain(language)
    own = copy.copy(base)
    object.__setattr__(own, "given", replace(base.given, trees=trees))
    same_pairs = parser.longest == base.options.longest
    shared = {"links": True, "usable": same_pairs, "source": same_pairs, "target_tagger": words is None}
    shared["projected"] = words is None and same_pairs and parser.method != "delexicalised"
    for name, holds in shared.items():
        vars(own).pop(name, None)
        if holds:
            vars(own)[name] = getattr(base, name)
    return fitted(own, parser)


def fitted(own: Chain, parser: TransferredParser) -> TransferredParser:
    """A parser with what a chain has learnt by its options."""
    made = copy.copy(own)
    object.__setattr__(made, "options", parser)
    parser._fitted = _Fitted(*made.learn())
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
        if other is not None and method != MAIN:
            right, ours, theirs = (join_treebanks(trees) for trees in (gold, other, found))
            for some, suffix in ((np.arange(len(right)), ""), (short(right), "10")):
                compared = compare_trees(ours.take(some), theirs.take(some), right.take(some), measure="uas")
                row[f"difference{suffix}"], row[f"p{suffix}"] = compared.delta, f"{compared.p_value:.2g}"
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
    for method in METHODS if part == "test" else METHODS | CHOICES:
        cells = [found.get((name, part, method, tags)) for name in names]
        if not any(cells):
            continue
        used += [(method, name, cell) for name, cell in zip(names, cells, strict=True) if cell]
        suffix = "10" if column.endswith("10") else ""
        marks = [_mark(cell, suffix) if cell and column.startswith("uas") else "" for cell in cells]
        values = [f"{float(c[column]):.2f}{mark}" if c else "" for c, mark in zip(cells, marks, strict=True)]
        mean = f"{np.mean([float(cell[column]) for cell in cells if cell]):.2f}" if all(cells) else ""
        lines.append(f"| {method} | {' | '.join(values)} | {mean} |")
    return "\n".join([*lines, "", rows.commits(used)])


def _mark(row: rows.Row, suffix: str) -> str:
    """A star where the main method is better by more than chance, an exclamation mark where it is worse."""
    if not row.get(f"p{suffix}") or float(row[f"p{suffix}"]) >= 0.05:
        return ""
    return "*" if float(row[f"difference{suffix}"]) > 0 else "!"


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
        rows.fill(PAGE, "tags", table("test", "predicted", "upos"))
        rows.fill(PAGE, "short", table("test", "given", "uas10"))
        rows.fill(PAGE, "development", table("dev", "given", "uas"))
        rows.fill(PAGE, "development-predicted", table("dev", "predicted", "uas"))
        return
    file, part = results(), "dev" if arguments.dev else "test"
    chosen = (
        arguments.methods.split(";") if arguments.methods else list(METHODS | CHOICES if arguments.dev else METHODS)
    )
    for language in arguments.only.split(",") if arguments.only else DEVELOPMENT if arguments.dev else LANGUAGES:
        trees: dict[str, list[Treebank]] = {}
        same = {"language": language, "part": part, "outdated": arguments.outdated}
        offered = [one for one in chosen if language in DICTIONARIES or "dictionary" not in one]
        missing = [one for one in offered if arguments.again or not file.is_done(**same, method=one, tags="given")]
        if missing and missing != [MAIN]:
            missing = [MAIN, *(one for one in missing if one != MAIN)]
        for method in missing:
            file.put(measure(language, part, method, trees))


if __name__ == "__main__":
    main()
