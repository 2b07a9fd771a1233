"""Grammars of languages without a treebank: German and Spanish from English through Europarl; rows for each method.

python -m benchmarks.quality.transfer_grammar                   all rows that are missing, scored on PUD
python -m benchmarks.quality.transfer_grammar --only de         some languages
python -m benchmarks.quality.transfer_grammar --methods quasi   some methods; quasi comes along
python -m benchmarks.quality.transfer_grammar --dev             scored on development files instead, for choosing
python -m benchmarks.quality.transfer_grammar --again           replace rows that are there
python -m benchmarks.quality.transfer_grammar --table           run nothing: fill the tables of its page

The comparison of Smith 2010, table 4.3: dependency models with valence over tags that are learnt beside source trees,
from projected ones, from tags alone, or not at all. Source treebank and bitext are as in `benchmarks.quality.transfer`.
Links, taggers and parsers that the methods of a language share are made once for each commit, and kept under
out/transfer-grammar; rows have that commit as `inputs`. Settings were chosen on development
files of the GSD treebanks (`--dev`); PUD was scored once. Tags are gold where text is parsed, and projected where
grammars are learnt. Punctuation counts. Columns that end in 10 are of sentences of at most ten words.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpora, rows
from benchmarks.quality.transfer import DEVELOPMENT, TREES, short, treebank
from isogloss import __version__
from isogloss.data.bitext import Bitext
from isogloss.data.treebank import Treebank
from isogloss.metrics.parsing import compare_trees, score_trees
from isogloss.progress import QuietProgress
from isogloss.tasks.parse.induction import GrammarInducer
from isogloss.tasks.transfer import TransferredParser
from isogloss.tasks.transfer.chain import Chain, Given
from isogloss.tasks.transfer.grammars import LINKED, LONGEST, new_grammar
from isogloss.tasks.transfer.stages import Stages
from isogloss.tasks.transfer.views import universal

LANGUAGES = ("de", "es")
METHODS: dict[str, dict[str, Any] | None] = {
    "every word on the one before": None,
    "every word on the next": None,
    "EM": None,
    "hard": {"method": "hard", "model": "grammar"},
    "partial": {"method": "partial"},
    "posterior": {"method": "posterior", "model": "grammar"},
    "quasi": {"method": "quasi"},
    "gold trees": None,
}
"""Options of `TransferredParser`; None for what it does not learn."""
CHOICES: dict[str, dict[str, Any]] = {
    "quasi, renormalised": {"renormalised": True},
    "quasi, learnt configurations": {"fixed": False},
    "quasi, renormalised and learnt": {"renormalised": True, "fixed": False},
    "quasi, all sentences": {"linked": 0.0},
}
"""What else is scored on development files: the main method with other settings of `Beside`, or other sentences."""
MAIN = "quasi"
EM_LONGEST, EM_SENTENCES = 15, 10_000
"""EM from tags alone has sentences of at most so many words (Smith 2010), and so many of them."""
SHARED = ("links", "usable", "source", "target_tagger", "projected")
"""What the methods of a language have in common."""
COLUMNS = (
    "date", "machine", "version", "commit", "inputs", "command", "language", "part", "method", "options", "learnt_from",
    "sentences", "words", "uas", "uas10", "difference", "p", "difference10", "p10", "cpu_seconds",
)  # fmt: skip
KEY = ("language", "part", "method")
PAGE = Path("docs/parse-from-translations.md")
KEPT = Path("out/transfer-grammar")


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("transfer_grammar.csv"), COLUMNS, KEY)


@cache
def chain(language: str) -> tuple[Chain, str]:
    """What all methods of a language share, and the commit that made it."""
    texts = corpora.data_folder() / "bitext/europarl-7way"
    bitext = Bitext.read(texts / "en.txt.gz", texts / f"{language}.txt.gz")
    given = Given(bitext, treebank("en-ewt/train"))
    commit = rows.commit()
    place = KEPT / (commit or "unknown") / language
    place.parent.mkdir(parents=True, exist_ok=True)
    made = Chain.of(TransferredParser(longest=LONGEST), given, QuietProgress(), place, place.exists())
    for name in SHARED:
        getattr(made, name)
    object.__setattr__(made, "stages", Stages(None, False, {}))  # grammars are not kept
    return made, commit


def learnt(language: str, method: str) -> GrammarInducer:
    """A grammar by some method."""
    if method == "gold trees":
        trees = universal(treebank(TREES[language]))
        return GrammarInducer(learner="em", longest=LONGEST, iterations=1).fit(trees, heads=True)
    shared, _ = chain(language)
    if method == "EM":
        text = shared.projected.text.part(0, EM_SENTENCES)
        return GrammarInducer(learner="em", longest=EM_LONGEST).fit(text)
    own = copy.copy(shared)
    settings = METHODS[MAIN if method in CHOICES else method]
    assert settings is not None
    parser = TransferredParser(longest=LONGEST, **settings)
    parser.check_params()
    object.__setattr__(own, "options", parser)
    if method not in CHOICES:
        return own._grammar(own.projected)
    other = dict(CHOICES[method])
    text, evidence = own._beside(own.projected, other.pop("linked", LINKED))
    beside = replace(evidence["beside"], **other)
    return new_grammar(parser.method, own.longest, parser.threads).fit(text, beside=beside)


def neighbours(gold: Treebank, step: int) -> Treebank:
    """Every word on the one before (−1) or on the next (1); the first or the last is the root."""
    place = np.arange(gold.n_words) - np.repeat(gold.offsets[:-1], gold.lengths) + 1 + step
    heads = np.where(place > np.repeat(gold.lengths, gold.lengths), 0, place)
    return gold.with_columns(heads=heads.astype(np.int32))


def parser_of(language: str, method: str) -> tuple[Callable[[Treebank], Treebank], str, int | str]:
    """What parses, its options, and the sentences that it was learnt from."""
    if method.startswith("every word"):
        step = 1 if method.endswith("next") else -1
        return (lambda gold: neighbours(gold, step)), "", ""
    grammar = learnt(language, method)
    return grammar.predict, " ".join(f"{key}={value}" for key, value in grammar.options_.items()), grammar.n_sentences_


def measure(language: str, part: str, method: str, against: dict[str, Treebank]) -> dict[str, object]:
    """A row; the trees are kept in `against`."""
    (file,) = (f"pud/{language}",) if part == "test" else DEVELOPMENT[language]
    gold = universal(treebank(file))
    _, inputs = chain(language)
    began = time.process_time()
    parse, options, sentences = parser_of(language, method)
    seconds = time.process_time() - began
    found = against[method] = parse(gold)
    few = short(gold)
    row: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "inputs": inputs, "command": "python -m benchmarks.quality.transfer_grammar", "language": language,
        "part": part, "method": method, "options": options, "learnt_from": sentences, "sentences": len(gold),
        "words": gold.n_words, "uas": float(score_trees(found, gold).uas),
        "uas10": float(score_trees(found.take(few), gold.take(few)).uas), "cpu_seconds": seconds,
    }  # fmt: skip
    if method != MAIN:
        for some, suffix in ((np.arange(len(gold)), ""), (few, "10")):
            trees = (against[MAIN].take(some), found.take(some), gold.take(some))
            compared = compare_trees(*trees, measure="uas")
            row[f"difference{suffix}"], row[f"p{suffix}"] = compared.delta, f"{compared.p_value:.2g}"
    print(
        f"{language} {part} {method}: UAS {row['uas']:.2f}, {row['uas10']:.2f} of short sentences, {sentences} "
        f"sentences, {seconds:.0f} CPU s",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    return row


def table(part: str) -> str:
    """UAS by method and language, of all sentences and of those of at most ten words."""
    found = {tuple(row[name] for name in KEY): row for row in results().read()}
    heads = [f"{name}{suffix}" for suffix in ("", ", at most 10 words") for name in LANGUAGES]
    lines = [f"| | {' | '.join(heads)} | learnt from |", "|---" * (len(heads) + 2) + "|"]
    used = []
    for method in METHODS if part == "test" else METHODS | CHOICES:
        cells = [found.get((name, part, method)) for name in LANGUAGES]
        if not any(cells):
            continue
        used += [(method, name, cell) for name, cell in zip(LANGUAGES, cells, strict=True) if cell]
        values = [_value(cell, suffix) for suffix in ("", "10") for cell in cells]
        numbers = [f"{int(cell['learnt_from']):,}" for cell in cells if cell and cell["learnt_from"]]
        lines.append(f"| {method} | {' | '.join(values)} | {' and '.join(numbers)} |")
    return "\n".join([*lines, "", rows.commits(used)]) if used else "There are no rows yet."


def _value(row: rows.Row | None, suffix: str) -> str:
    """A star where the main method is better by more than chance, an exclamation mark where it is worse."""
    if row is None:
        return ""
    mark = ""
    if row.get(f"p{suffix}") and float(row[f"p{suffix}"]) < 0.05:
        mark = "*" if float(row[f"difference{suffix}"]) > 0 else "!"
    return f"{float(row[f'uas{suffix}']):.2f}{mark}"


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.transfer_grammar", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(LANGUAGES), help="languages, such as de; default: all")
    parser.add_argument("--methods", default="", help="some of them, with ; between; the main one comes along")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--dev", action="store_true", help="score development files instead")
    parser.add_argument("--table", action="store_true", help="run nothing: fill the tables of its page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        rows.fill(PAGE, "grammars", table("test"))
        rows.fill(PAGE, "grammars-development", table("dev"))
        return
    file, part = results(), "dev" if arguments.dev else "test"
    chosen = (
        arguments.methods.split(";") if arguments.methods else list(METHODS | CHOICES if arguments.dev else METHODS)
    )
    for language in arguments.only.split(","):
        trees: dict[str, Treebank] = {}
        same = {"language": language, "part": part, "outdated": arguments.outdated}
        missing = [one for one in chosen if arguments.again or not file.is_done(**same, method=one)]
        if missing:
            missing = [MAIN, *(one for one in missing if one != MAIN)]
        file.put([measure(language, part, method, trees) for method in missing])


if __name__ == "__main__":
    main()
