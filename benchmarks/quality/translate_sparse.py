"""Sparse features of translators: phrases, tags and links beside dense features, and what steps are drawn to.

python -m benchmarks.quality.translate_sparse                    rows that are missing
python -m benchmarks.quality.translate_sparse --systems dense,all  some systems
python -m benchmarks.quality.translate_sparse --again            replace rows that are there
python -m benchmarks.quality.translate_sparse --compare          paired differences of what is kept under out/
python -m benchmarks.quality.translate_sparse --table            run nothing: fill the tables of the page

German to English of Multi30k, pairs with 5 to 15 words on both sides. Weights are tuned, and passes are chosen, on val;
every system translates test2016 once. Tags are UPOS by conditional random fields that learnt from the lower-cased dev
and test parts of German GSD and from the first 5,000 trees of English EWT. Every
system with sparse features begins with what the dense one has learnt; its seconds are CPU seconds of one thread beyond
that.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import re
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpora, rows
from isogloss import __version__
from isogloss.data import Bitext, Links, Text
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.learners.runner import Keeping
from isogloss.metrics import compare_translations, score_translations
from isogloss.progress import QuietProgress
from isogloss.tasks.align import HMMAligner
from isogloss.tasks.tag import CrfTagger
from isogloss.tasks.translate import Translator
from isogloss.tasks.translate.translator import Tags

DATA = "de-en"
PARTS = {"train": "train", "dev": "val", "test": "test2016"}
SHORTEST, LONGEST = 5, 15
OUT = Path("out/translate-sparse")
TREES = {"de": (("de-gsd/dev", "de-gsd/test"), None), "en": (("en-ewt/train",), 5000)}
"""What taggers learn from, and how many trees of it."""
COMMON: dict[str, Any] = {"beam": 30, "pops": 100, "nbest": 50, "iterations": 6, "threads": 1}
LEARNT: dict[str, Any] = {"learn_on": 8000, "epochs": 1, "folds": 3}
STEPS: dict[str, Any] = {"features": "all", "trainer": "perceptron", "proposals": 10, **LEARNT}
SYSTEMS: dict[str, dict[str, Any]] = {
    "dense": {},
    **{name: {"features": name, **LEARNT} for name in ("phrases", "pos", "all")},
    **{f"perceptron, {update}": {**STEPS, "update": update} for update in ("local", "hybrid", "bold")},
}
TAGGED = ("pos", "all")
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "system", "features", "trainer", "update", "learn_on",
    "epochs", "pairs", "reachable", "learnt_dev", "dev", "bleu", "bleu_low", "bleu_high", "chrf", "ratio", "signature",
    "train_cpu_seconds", "words_per_second",
)  # fmt: skip
PAIRED = ("date", "commit", "data", "first", "second", "difference", "low", "high", "p")
PAGE = Path("docs/translate-sparse.md")


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("translate_sparse.csv"), COLUMNS, ("data", "system"))


def differences() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("translate_sparse-paired.csv"), PAIRED, ("data", "first", "second"))


# --- texts


@cache
def bitext(part: str) -> Bitext:
    """The pairs of a part that are neither short nor long."""
    folder = corpora.data_folder() / "bitext" / "multi30k"
    whole = Bitext.read(*(folder / f"{PARTS[part]}.{language}.gz" for language in DATA.split("-")))
    sides = whole.source.ids.lengths, whole.target.ids.lengths
    return whole.take(np.logical_and.reduce([(side >= SHORTEST) & (side <= LONGEST) for side in sides]))


def plain(text: Bitext) -> list[str]:
    return [" ".join(row) for row in text.target]


@cache
def links() -> Links:
    return HMMAligner(threads=1).fit_predict(bitext("train"))


def trees(language: str) -> Treebank:
    """The trees of a language in small letters."""
    names, most = TREES[language]
    data = b"".join(
        gzip.decompress((corpora.data_folder() / "treebanks" / f"{name}.conllu.gz").read_bytes()) for name in names
    )
    lower = re.sub(r"(?m)^([\d.-]+\t)([^\t]+)", lambda m: m[1] + m[2].lower(), data.decode("utf-8"))
    found = Treebank.from_bytes(lower.encode())
    return found if most is None else found.part(0, most)


@cache
def tags() -> tuple[Text, Text]:
    """The tags of the training text, kept for the next time."""
    sides = []
    for language, text in zip(DATA.split("-"), (bitext("train").source, bitext("train").target), strict=True):
        place = OUT / f"tags.{language}.txt"
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            tagger = CrfTagger(order=1, iterations=5, threads=1).fit(trees(language))
            found = tagger.predict(text)
            lines = (" ".join(found.strings("upos", s)) + "\n" for s in range(len(found)))
            place.write_text("".join(lines), encoding="utf-8")
        sides.append(Text.of(place.read_text(encoding="utf-8").splitlines(), str(place)))
    return sides[0], sides[1]


# --- measuring


def output(system: str) -> Path:
    return OUT / f"{DATA}-{system.replace(', ', '-')}.txt"


def base() -> Translator:
    """The translator with dense features, kept for the others, which begin with what it has learnt."""
    place = OUT / f"{DATA}.dense"
    if not place.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        Translator(**COMMON).fit(bitext("train"), bitext("dev"), links=links()).save(place)
    return Translator.load(place)


def fitted(system: str) -> tuple[Translator, float]:
    """A translator as its options say, and the CPU seconds beyond those of the dense one."""
    dense, options = base(), SYSTEMS[system]
    if not options:
        return dense, 0.0
    made, quiet = copy.copy(dense).set_params(**options), QuietProgress()
    given = Tags(*tags()) if made.features in TAGGED else None
    between, began = links(), time.process_time()
    with using_threads(1):
        made._learn_sparse(bitext("train"), bitext("dev"), between, None, given, Keeping(), quiet)
        made._tune(bitext("dev"), Keeping(), quiet)
    return made, time.process_time() - began


def measure(system: str) -> dict[str, object]:
    test = bitext("test")
    made, learning = fitted(system)
    made.predict(test.source[:2])
    began = time.process_time()
    lines = made.predict(test.source)
    seconds = time.process_time() - began
    OUT.mkdir(parents=True, exist_ok=True)
    output(system).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    score = score_translations(lines, plain(test), tokenise="none")
    ratio = sum(len(line.split()) for line in lines) / test.target.n_words
    shown, steps = made.options_ if made.features != "dense" else {}, made.trainer != "risk"
    row: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": "python -m benchmarks.quality.translate_sparse", "data": DATA, "system": system,
        "features": made.features, "trainer": shown.get("trainer", ""),
        "update": shown.get("update", "") if steps else "", "learn_on": shown.get("learn_on", ""),
        "epochs": shown.get("epochs", ""), "pairs": len(bitext("train")),
        "reachable": "" if made.reachable_ is None else made.reachable_,
        "learnt_dev": float(made.learning_.max()) if len(made.learning_) else "", "dev": float(made.tuning_.max()),
        "bleu": score.bleu, "bleu_low": score.interval[0], "bleu_high": score.interval[1], "chrf": score.chrf,
        "ratio": ratio, "signature": score.signature, "train_cpu_seconds": learning,
        "words_per_second": test.source.n_words / max(seconds, 1e-9),
    }  # fmt: skip
    print(
        f"{system}: BLEU {score.bleu:.2f} (dev {row['dev']:.2f}), chrF {score.chrf:.2f}, {learning:.0f} CPU s",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    return row


PAIRS = [
    *(("dense", name) for name in SYSTEMS if name != "dense"), ("phrases", "pos"), ("pos", "all"),
    ("perceptron, hybrid", "perceptron, local"), ("perceptron, bold", "perceptron, hybrid"),
]  # fmt: skip
"""What is compared: what the second has beyond the first."""


def compare() -> None:
    right = plain(bitext("test"))
    for first, second in PAIRS:
        places = output(second), output(first)
        if all(place.exists() for place in places):
            sides = [place.read_text(encoding="utf-8").split("\n")[:-1] for place in places]
            found = compare_translations(*sides, right, tokenise="none")
            row: dict[str, object] = {
                "date": rows.today(), "commit": rows.commit(), "data": DATA, "first": first, "second": second,
                "difference": found.delta, "low": found.interval[0], "high": found.interval[1],
                "p": f"{found.p_value:.2g}",
            }  # fmt: skip
            differences().put([row])


# --- the tables of the page


def system_table() -> str:
    used = rows.Used()
    lines = [
        "| system | learnt on | passes | BLEU on dev | on test | beyond dense | chrF | CPU seconds | words a second |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for system in SYSTEMS:
        for row in results().find(data=DATA, system=system):
            used.add("", system, row)
            learnt = f"{int(row['learn_on']):,}" if row["learn_on"] else ""
            lines.append(
                f"| {system} | {learnt} | {row['epochs']} | {float(row['dev']):.2f} | {float(row['bleu']):.2f} "
                f"[{float(row['bleu_low']):.1f}, {float(row['bleu_high']):.1f}] | {told('dense', system)} "
                f"| {float(row['chrf']):.1f} | {float(row['train_cpu_seconds']):.0f} "
                f"| {float(row['words_per_second']):,.0f} |"
            )
    return used.below("\n".join(lines))


def pair_table() -> str:
    used = rows.Used()
    head, lines = ["| comparison | difference in BLEU |", "|---|---|"], []
    for first, second in PAIRS:
        for row in differences().find(data=DATA, first=first, second=second) if first != "dense" else ():
            used.add("", f"{second} − {first}", row)
            lines.append(f"| {second} − {first} | {told(first, second)} |")
    return used.below("\n".join([*head, *lines])) if lines else ""


def told(first: str, second: str) -> str:
    for row in differences().find(data=DATA, first=first, second=second):
        low, high = float(row["low"]), float(row["high"])
        return f"{float(row['difference']):+.2f} [{low:+.2f}, {high:+.2f}] (p {row['p']})"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", default=None)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        rows.fill(PAGE, "systems", system_table())
        rows.fill(PAGE, "pairs", pair_table())
        return
    if asked.compare:
        compare()
        return
    for system in re.split(r",(?! )", asked.systems) if asked.systems else SYSTEMS:
        if not results().is_done(outdated=asked.again, data=DATA, system=system):
            results().put([measure(system)])
    compare()


if __name__ == "__main__":
    main()
