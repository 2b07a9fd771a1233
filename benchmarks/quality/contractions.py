"""How well contractions are split: our lists on the surface words of treebanks.

python -m benchmarks.quality.contractions                 all rows of dev sets that are missing
python -m benchmarks.quality.contractions --only it       some languages
python -m benchmarks.quality.contractions --again         replace rows that are there
python -m benchmarks.quality.contractions --test          the rows of test sets, on which nothing was chosen
python -m benchmarks.quality.contractions --table         run nothing: write the tables of docs/contractions.md

The surface words of gold (`1-2 della`) are split by the list of the language. A word is right if its parts are those of
gold, case aside. Lists were written with the train and dev sets in view, never with the test sets.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import rows
from isogloss import __version__
from isogloss.data import Text, Treebank
from isogloss.data.contractions import Contractions, split_text
from isogloss.metrics import score_trees

DEV = {
    "de": ("German GSD dev", "de-gsd/dev"), "es": ("Spanish GSD dev", "es-gsd/dev"),
    "fr-train": ("French ParTUT train", "partut/fr.train"), "fr": ("French ParTUT dev", "partut/fr.dev"),
    "it-train": ("Italian ParTUT train", "partut/it.train"), "it": ("Italian ParTUT dev", "partut/it.dev"),
    "el": ("Greek GDT dev", "el-gdt/dev"),
}  # fmt: skip
TEST = {f"{code}-pud": (f"{title} PUD", f"pud/{code}") for code, title in {
    "de": "German", "es": "Spanish", "fr": "French", "gl": "Galician", "it": "Italian", "pt": "Portuguese",
    "cs": "Czech", "fi": "Finnish",
}.items()}  # fmt: skip
ARTICLES = {"fr": ("des",), "it": ("dei", "degli", "delle")}
"""Forms that are an article of their own as well."""
CHOICES = {
    "list": "", "always": ", always split", "learnt": ", learnt from train alone", "both": ", learnt, then the list",
}  # fmt: skip
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "words", "choice", "gold", "found", "right", "precision",
    "recall", "f1_whole", "f1_split",
)  # fmt: skip
PAGE = Path(__file__).parents[2] / "docs" / "contractions.md"


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("contractions.csv"), COLUMNS, ("data", "words", "choice"))


def read(name: str) -> Treebank:
    folder = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "treebanks"
    return Treebank.read(folder / f"{name}.conllu.gz")


def surface(gold: Treebank) -> tuple[list[list[str]], list[list[tuple[str, ...]]]]:
    """The surface words of each sentence, and the parts of each."""
    ranges = {first: (stop, form) for first, stop, form in gold.ranges.rows()}
    tokens, parts = [], []
    for sentence in range(len(gold)):
        words, start, at = gold.words(sentence), int(gold.offsets[sentence]), 0
        tokens.append([])
        parts.append([])
        while at < len(words):
            stop, form = ranges.get(start + at, (start + at + 1, words[at]))
            tokens[-1].append(form)
            parts[-1].append(words[at : stop - start])
            at = stop - start
    return tokens, parts


def measure(name: str, title_and_file: tuple[str, str]) -> list[dict[str, object]]:
    """A row for all words, one for those that patterns are of, and one for each choice of an ambiguous form.

    Where there is a train set, also what is learnt from it, alone and with the list.
    """
    gold = read(title_and_file[1])
    language = name.partition("-")[0]
    rules = Contractions.of_language(language)
    tokens, parts = surface(gold)
    found = [counted(name, "all", "list", rules, tokens, parts, lambda word: True)]
    text = Text.of(tokens)
    for key, tried in (("f1_whole", None), ("f1_split", rules)):
        score = score_trees(split_text(text, tried), gold, words="surface", bootstrap=0, columns=["upos"])
        found[0][key] = f"{score.word_f1:.2f}"
    if any(form.startswith("*") for form in rules):
        short = {form for form in rules if len(rules[form]) > 1 and "*" not in form and rules.rule(form).note != "verb"}
        found.append(counted(name, "patterns", "list", rules, tokens, parts, lambda word: word.lower() not in short))
    if name == language and f"{language}-train" in DEV:
        learnt = Contractions.learn(read(DEV[f"{language}-train"][1]), language)
        for choice, tried in (("learnt", learnt), ("both", learnt | rules)):
            found.append(counted(name, "all", choice, tried, tokens, parts, lambda word: True))
    forms = ARTICLES.get(language, ())
    if forms:
        always = Contractions({form: rules[form] for form in forms})
        for choice, tried in (("list", rules), ("always", rules | always)):
            found.append(
                counted(name, " ".join(forms), choice, tried, tokens, parts, lambda word: word.lower() in forms)
            )
    return found


def counted(
    name: str, words: str, choice: str, rules: Contractions, tokens: list[list[str]],
    parts: list[list[tuple[str, ...]]], chosen: Callable[[str], bool],
) -> dict[str, object]:  # fmt: skip
    gold = found = right = 0
    for sentence, theirs in zip(tokens, parts, strict=True):
        for word, mine, other in zip(sentence, rules.split(sentence), theirs, strict=True):
            if chosen(word):
                gold += len(other) > 1
                found += len(mine) > 1
                right += len(mine) > 1 and [part.lower() for part in mine] == [part.lower() for part in other]
    flag = " --test" if name in TEST else ""
    return {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": f"python -m benchmarks.quality.contractions{flag} --only {name}", "data": name, "words": words,
        "choice": choice, "gold": gold, "found": found, "right": right,
        "precision": f"{100 * right / max(found, 1):.2f}", "recall": f"{100 * right / max(gold, 1):.2f}",
    }  # fmt: skip


def table(treebanks: dict[str, tuple[str, str]]) -> str:
    known = {(row["data"], row["words"], row["choice"]): row for row in results().read()}
    used = rows.Used()
    lines = [
        "| treebank | words | split in gold | precision | recall | F of words, whole → split |",
        "|---|---|---|---|---|---|",
    ]
    for (name, words, choice), row in sorted(known.items(), key=lambda item: list({**DEV, **TEST}).index(item[0][0])):
        if name not in treebanks:
            continue
        title = treebanks[name][0]
        used.add("all", f"{title}, {words}, {choice}", row)
        what = f"{words}{CHOICES[choice]}"
        change = f"{row['f1_whole']} → {row['f1_split']}" if row["f1_split"] else ""
        lines.append(f"| {title} | {what} | {row['gold']} | {row['precision']} | {row['recall']} | {change} |")
    return used.below("\n".join(lines))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.contractions", description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="treebanks, with commas between")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--test", action="store_true", help="test sets instead of dev sets")
    parser.add_argument("--table", action="store_true", help="write the tables of docs/contractions.md and run nothing")
    given = parser.parse_args(argv)
    treebanks = TEST if given.test else DEV
    for name in [] if given.table else given.only.split(",") if given.only else treebanks:
        if given.again or not results().is_done(data=name, words="all", outdated=given.outdated):
            results().put(measure(name, treebanks[name]))
    rows.fill(PAGE, "dev", table(DEV))
    rows.fill(PAGE, "test", table(TEST))
    return 0


if __name__ == "__main__":
    sys.exit(main())
