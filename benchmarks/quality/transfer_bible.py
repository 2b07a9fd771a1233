"""Parsers through the Bible: English to Czech, Latin and Ancient Greek; rows for each language and method.

python -m benchmarks.quality.transfer_bible                 rows that are missing
python -m benchmarks.quality.transfer_bible --only cs       some languages
python -m benchmarks.quality.transfer_bible --again         replace rows that are there
python -m benchmarks.quality.transfer_bible --table         run nothing: fill the table of its page

The bitext has the verses that both editions have (Czech of 1613, the Vulgate, the Byzantine text); the source
treebank is the English Web Treebank (train). Czech is scored on PUD, Latin and Greek on the test files of PROIEL,
much of which is New Testament: the verses that are scored, by ``Ref`` in MISC, are left out of the bitext, with both
their neighbours. Everything is as it comes: nothing was chosen on these texts. Scores count punctuation; relations
are compared without subtypes.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks import corpora, rows
from benchmarks.quality import transfer
from isogloss import __version__
from isogloss.data.bitext import Bitext
from isogloss.data.treebank import Treebank
from isogloss.metrics.parsing import compare_trees, score_trees
from isogloss.progress import QuietProgress
from isogloss.tasks.transfer import TransferredParser
from isogloss.tasks.transfer.chain import Chain, Given

GOLD = {"cs": "pud/cs", "la": "la-proiel/test", "grc": "grc-proiel/test"}
METHODS = ("complete", "delexicalised")
BOOKS = {"MATT": "MAT", "MARK": "MRK", "LUKE": "LUK", "JOHN": "JHN", "ACTS": "ACT"}
"""Books that PROIEL calls otherwise; the others have the same names."""
COLUMNS = (
    "date", "machine", "version", "commit", "command", "language", "method", "tags", "pairs", "words", "uas", "las",
    "upos", "difference", "p", "cpu_seconds",
)  # fmt: skip
KEY = ("language", "method", "tags")
PAGE = transfer.PAGE


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("transfer_bible.csv"), COLUMNS, KEY)


def verse(reference: str) -> str:
    """How the Bible names a verse that PROIEL refers to.

    Examples
    --------
    >>> verse("MATT_5.1"), verse("ROM_2.11"), verse("1.49.2")
    ('MAT 5:1', 'ROM 2:11', '')
    """
    book, found, place = reference.partition("_")
    return f"{BOOKS.get(book, book)} {place.replace('.', ':')}" if found else ""


def scored_verses(gold: Treebank) -> set[str]:
    """The verses that some word of a treebank is of."""
    parts = (part for misc in gold.columns["misc"].vocabulary for part in misc.split("|"))
    return {verse(part.partition("=")[2]) for part in parts if part.lower().startswith("ref=")} - {""}


@cache
def chain(language: str) -> Chain:
    """What all methods of a language share."""
    texts = corpora.data_folder() / "bitext/bible"
    whole = Bitext.read(texts / "en.txt.gz", texts / f"{language}.txt.gz")
    names = Bitext.read(texts / "vref.txt.gz", texts / "vref.txt.gz").source
    left_out = scored_verses(transfer.treebank(GOLD[language]))
    lines = [" ".join(names[k]) for k in range(len(names))]
    found = np.array([line in left_out for line in lines])
    near = found | np.append(found[1:], False) | np.append(False, found[:-1])
    usable = (whole.source.ids.lengths > 0) & (whole.target.ids.lengths > 0) & ~near
    ranges = np.array(["<range>" in (*whole.source[k], *whole.target[k]) for k in range(len(whole))])
    joined = ranges | np.append(ranges[1:], False)  # a verse that is joined with the next on one side alone
    bitext = whole.take(np.flatnonzero(usable & ~joined))
    print(f"{language}: {len(bitext):,} verses, {int(found.sum()):,} are scored", file=sys.stderr, flush=True)
    given = Given(bitext, transfer.treebank("en-ewt/train"))
    made = Chain.of(TransferredParser(threads=1), given, QuietProgress(), None, False)
    vars(made).update({name: transfer.english(made, name) for name in transfer.ENGLISH})
    return made


def measure(language: str) -> list[dict[str, object]]:
    """Rows of all methods, with gold and with predicted tags."""
    gold = transfer.treebank(GOLD[language])
    made, best = [], {}
    for method in METHODS:
        began = time.process_time()
        parser = transfer.fitted(chain(language), TransferredParser(method=method, threads=1))
        seconds = time.process_time() - began
        for tags in ("given", "predicted"):
            found = parser.predict(gold, tags=tags)
            score = score_trees(found, gold, bootstrap=0)
            row: dict[str, object] = {
                "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
                "command": "python -m benchmarks.quality.transfer_bible", "language": language, "method": method,
                "tags": tags, "pairs": parser.report_["pairs"], "words": gold.n_words, "uas": score.uas,
                "las": score.las, "upos": 100.0 if tags == "given" else score.upos, "cpu_seconds": seconds,
            }  # fmt: skip
            if tags in best:
                compared = compare_trees(best[tags], found, gold, measure="uas")
                row["difference"], row["p"] = compared.delta, f"{compared.p_value:.2g}"
            best.setdefault(tags, found)
            made.append(row)
            print(f"{language} {method}, {tags} tags: UAS {score.uas:.2f}, LAS {score.las:.2f}", file=sys.stderr)
    return made


def table() -> str:
    """Scores by language and method."""
    heads = [f"{name}, {tags} tags" for tags in ("gold", "predicted") for name in ("UAS", "LAS")]
    lines = [f"| | verses | {' | '.join(heads)} | UPOS |", "|---" * (len(heads) + 3) + "|"]
    used, found = [], results()
    for language in GOLD:
        for method in METHODS:
            pair = [found.find(language=language, method=method, tags=tags) for tags in ("given", "predicted")]
            if not all(pair):
                continue
            cells = [f"{float(line[name]):.1f}" for [line] in pair for name in ("uas", "las")]
            used += [(method, language, line) for [line] in pair]
            upos = f"{float(pair[1][0]['upos']):.1f}"
            lines.append(f"| {language}, {method} | {int(pair[0][0]['pairs']):,} | {' | '.join(cells)} | {upos} |")
    return "\n".join([*lines, "", rows.commits(used)])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.transfer_bible", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="languages, such as cs; default: all")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--table", action="store_true", help="run nothing: fill the table of its page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        rows.fill(PAGE, "bible", table())
        return
    file = results()
    for language in arguments.only.split(",") if arguments.only else GOLD:
        if arguments.again or not file.has(language=language):
            file.put(measure(language))


if __name__ == "__main__":
    main()
