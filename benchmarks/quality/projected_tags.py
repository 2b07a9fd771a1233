"""Taggers without tagged text: a dictionary, links to a tagged translation, or both; rows for each language and system.

python -m benchmarks.quality.projected_tags                 all rows that are missing
python -m benchmarks.quality.projected_tags --only de,pt    some languages
python -m benchmarks.quality.projected_tags --dev           scored on development files instead, for choosing options
python -m benchmarks.quality.projected_tags --again         replace rows that are there
python -m benchmarks.quality.projected_tags --table         run nothing: fill the tables of its page

The bitext is Europarl (English on the source side), tagged by a `CrfTagger` that learnt from the English Web Treebank
and linked by `HMMAligner`; both are made once for each commit and kept in out/projected. Dictionaries are of
Wiktionary. Scores are accuracies on PUD (news and Wikipedia), in the twelve universal tags. Options were chosen on the
development files of the German and Spanish GSD treebanks (--dev; there is none for Portuguese); PUD was scored once.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from benchmarks import corpora, rows
from isogloss import __version__
from isogloss.data.bitext import Bitext
from isogloss.data.formats.links import read_links, write_links
from isogloss.data.links import Links
from isogloss.data.tag_dictionary import TagDictionary
from isogloss.data.tagsets import retagged
from isogloss.data.treebank import Treebank
from isogloss.tasks.align import HMMAligner
from isogloss.tasks.tag import CrfTagger, DictionaryTagger, ProjectedTagger

LANGUAGES = ("de", "es", "pt")
DEVELOPMENT = {"de": "de-gsd/dev", "es": "es-gsd/dev"}
PAIRS = 10_000
SYSTEMS: dict[str, dict[str, Any]] = {
    "dictionary": {"sources": "d"},
    "links": {"sources": "l"},
    "both": {"sources": "dl"},
    "links, hmm": {"sources": "l", "learner": "hmm"},
    "both, hmm": {"sources": "dl", "learner": "hmm"},
    "both, hmm, order 2": {"sources": "dl", "learner": "hmm", "order": 2},
    "both, order 2": {"sources": "dl", "order": 2},
    "both, soft": {"sources": "dl", "soft": True},
    "both, hmm, soft": {"sources": "dl", "learner": "hmm", "soft": True, "iterations": 20},
    "both, 2,500 pairs": {"sources": "dl", "pairs": 2_500},
    "both, 40,000 pairs": {"sources": "dl", "pairs": 40_000},
}
COLUMNS = (
    "date", "machine", "version", "commit", "command", "language", "part", "system", "options", "pairs", "words",
    "accuracy", "known", "unknown", "difference", "p", "train_cpu_seconds", "train_seconds", "words_per_second",
)  # fmt: skip
KEY = ("language", "part", "system")
PAGE = Path("docs/tag-from-translations.md")


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("projected_tags.csv"), COLUMNS, KEY)


@cache
def kept() -> Path:
    """Where tags and links are kept: other code makes others."""
    folder = Path("out/projected") / (rows.commit() or "no commit")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def treebank(name: str) -> Treebank:
    read = Treebank.read(corpora.data_folder() / "treebanks" / f"{name}.conllu.gz")
    return retagged(read, "universal12", keep_untagged=True)


def english() -> Treebank:
    """The English side with tags, made once."""
    file = kept() / "en.conllu"
    if not file.exists():
        parts = [Treebank.read(corpora.data_folder() / "treebanks/en-ewt" / f"{n}.conllu.gz") for n in ("train", "dev")]
        tagger = CrfTagger().fit(*parts)
        tagger.predict(europarl("de").source).write(file)
    return Treebank.read(file)


def europarl(language: str) -> Bitext:
    texts = corpora.data_folder() / "bitext/europarl-7way"
    return Bitext.read(texts / "en.txt.gz", texts / f"{language}.txt.gz")


def links(language: str, bitext: Bitext) -> Links:
    """Made once, of the whole bitext."""
    file = kept() / f"en-{language}.links"
    if not file.exists():
        write_links(HMMAligner().fit_predict(bitext), file, scores=True)
    return read_links(file, bitext=bitext)


def trained(system: str, language: str, words: TagDictionary) -> tuple[Any, int]:
    """A tagger, and the pairs that it has seen."""
    options = dict(SYSTEMS[system])
    sources, pairs = options.pop("sources"), options.pop("pairs", PAIRS)
    whole = europarl(language)
    bitext = whole.part(0, pairs)
    if sources == "d":
        return DictionaryTagger(words, **options).fit(bitext.target), pairs
    source = english().part(0, pairs)
    if sources == "l":
        source = retagged(source, "universal12")
    tagger = ProjectedTagger(words if "d" in sources else None, **options)
    return tagger.fit(bitext, source, links=links(language, whole).part(0, pairs)), pairs


def measure(language: str, part: str, system: str, against: dict[str, np.ndarray]) -> dict[str, object]:
    """One row; which words are right is kept in `against`."""
    test = treebank(f"pud/{language}" if part == "test" else DEVELOPMENT[language])
    words = TagDictionary.read(corpora.data_folder() / "tagdict" / f"{language}.tsv.gz")
    links(language, europarl(language)), english()  # not in the time
    wall, cpu = time.perf_counter(), time.process_time()
    tagger, pairs = trained(system, language, words)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    tagger.predict_proba(test.part(0, 10))  # kernels are there
    start = time.perf_counter()
    found = tagger.predict(test)
    seconds = time.perf_counter() - start
    ids, vocabulary = found.columns["upos"]
    gold, tags = test.columns["upos"]
    right = tags.encode(vocabulary)[ids] == gold
    forms, types = test.columns["form"]
    listed = words.known(types.types)[forms]
    against[system] = right
    alone = [against[name] for name in ("dictionary", "links") if name in against and system.startswith("both")]
    row: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": "python -m benchmarks.quality.projected_tags", "language": language, "part": part,
        "system": system, "pairs": pairs, "words": test.n_words, "accuracy": 100 * float(right.mean()),
        "options": " ".join(f"{key}={value}" for key, value in tagger.options_.items()),
        "known": 100 * float(right[listed].mean()), "unknown": 100 * float(right[~listed].mean()),
        "train_cpu_seconds": cpu, "train_seconds": wall, "words_per_second": test.n_words / seconds,
    }  # fmt: skip
    if alone:
        better = max(alone, key=lambda each: float(each.mean()))
        gained, lost = int(np.sum(right & ~better)), int(np.sum(~right & better))
        row["difference"] = 100 * float(right.mean() - better.mean())
        row["p"] = f"{binomtest(gained, gained + lost).pvalue if gained + lost else 1.0:.2g}"
    print(f"{language} {part} {system}: {row['accuracy']:.2f}, {cpu:.0f} CPU s", file=sys.stderr, flush=True)
    return row


def table(part: str) -> str:
    """Accuracy by language, their mean, and by how much the better of the two sources alone is surpassed."""
    found = {tuple(row[name] for name in KEY): row for row in results().read()}
    names = [name for name in LANGUAGES if part == "test" or name in DEVELOPMENT]
    lines = [f"| | {' | '.join(names)} | mean | above the better alone |", "|---" * (len(names) + 3) + "|"]
    used = []
    for system in SYSTEMS:
        cells = [found.get((name, part, system)) for name in names]
        if any(cell is None for cell in cells):
            continue
        used += [(system, name, cell) for name, cell in zip(names, cells, strict=True) if cell]
        values = [float(cell["accuracy"]) for cell in cells if cell]
        gaps = [float(cell["difference"]) for cell in cells if cell and cell["difference"]]
        gap = f"{np.mean(gaps):+.2f}" if gaps else ""
        lines.append(f"| {system} | {' | '.join(f'{v:.2f}' for v in values)} | {np.mean(values):.2f} | {gap} |")
    return "\n".join([*lines, "", rows.commits(used)])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.projected_tags", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="languages, such as de,pt; default: all")
    parser.add_argument("--systems", default="", help="some of them, with ; between; the two sources alone come along")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--dev", action="store_true", help="score development files instead")
    parser.add_argument("--table", action="store_true", help="run nothing: fill the tables of its page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        rows.fill(PAGE, "table", table("test"))
        rows.fill(PAGE, "development", table("dev"))
        return
    file, part = results(), "dev" if arguments.dev else "test"
    chosen = arguments.systems.split(";") if arguments.systems else list(SYSTEMS)
    for language in arguments.only.split(",") if arguments.only else DEVELOPMENT if arguments.dev else LANGUAGES:
        right: dict[str, np.ndarray] = {}
        same = {"language": language, "part": part, "outdated": arguments.outdated}
        missing = [each for each in chosen if arguments.again or not file.is_done(**same, system=each)]
        if any(system.startswith("both") for system in missing):
            missing = list(dict.fromkeys(["dictionary", "links", *missing]))
        for system in missing:
            file.put([measure(language, part, system, right)])


if __name__ == "__main__":
    main()
