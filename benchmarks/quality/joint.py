"""Joint morphology and parsing against its pipeline: rows for each treebank, model and measure.

python -m benchmarks.quality.joint                  all rows that are missing
python -m benchmarks.quality.joint --only hu,la     some treebanks
python -m benchmarks.quality.joint --again          replace rows that are there
python -m benchmarks.quality.joint --table          run nothing: print the table of docs/parse-joint.md
python -m benchmarks.quality.joint --held-out       a fifth of the training text instead of the test file: for choosing

Hungarian learns from its training file. Latin and Ancient Greek, of which only the development and test files are here,
learn from the former. The tagger is learnt once, in the time of the pipeline; the others take it over. Options were
chosen on a fifth of the training text of Latin; test files were scored once.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from benchmarks import rows
from isogloss import __version__
from isogloss.data.treebank import Treebank
from isogloss.tasks.parse.joint import JointMorphologyParser
from isogloss.tasks.parse.joint.scoring import right_values

TEXTS = {
    "hu": ("hu-szeged/train", "hu-szeged/test"),
    "la": ("la-proiel/dev", "la-proiel/test"),
    "grc": ("grc-proiel/dev", "grc-proiel/test"),
}
MODELS: dict[str, dict[str, Any]] = {
    "pipeline": {"joint": False},
    "joint": {},
    "gold pipeline": {"joint": False, "tags": "gold"},
    "pipeline, government": {"joint": False, "government": True},
    "joint, government": {"government": True},
}
AGAINST = {"joint": "pipeline", "gold pipeline": "pipeline", "joint, government": "pipeline, government"}
"""What a model is compared with."""
COLUMNS = (
    "date", "machine", "version", "commit", "text", "part", "model", "options", "n_train", "n_test", "words", "measure",
    "all", "non_null", "n_non_null", "difference", "better", "worse", "p", "train_cpu_seconds", "predict_cpu_seconds",
)  # fmt: skip
KEY = ("text", "part", "model", "measure")


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("joint.csv"), COLUMNS, KEY)


def read(name: str) -> Treebank:
    folder = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "treebanks"
    return Treebank.read(folder / f"{name}.conllu.gz")


def texts(name: str, *, held_out: bool) -> tuple[Treebank, Treebank]:
    """What is learnt from and what is scored."""
    train, test = TEXTS[name]
    trees = read(train)
    if not held_out:
        return trees, read(test)
    fold = np.arange(len(trees)) // 10 % 5
    return trees.take(fold != 4), trees.take(fold == 4)


def right(found: Treebank, gold: Treebank, measure: str) -> tuple[np.ndarray, np.ndarray]:
    """bool[n_words]: which words are right, and which have a value at all."""
    if measure == "uas":
        return found.heads == gold.heads, gold.heads >= 0
    return right_values(found, gold, measure)


def compared(first: np.ndarray, second: np.ndarray) -> dict[str, object]:
    """McNemar's exact test on the words where one model is right and the other is not."""
    better, worse = int(np.sum(first & ~second)), int(np.sum(~first & second))
    p = binomtest(better, better + worse).pvalue if better + worse else 1.0
    gap = 100 * float(first.mean() - second.mean())
    return {"difference": gap, "better": better, "worse": worse, "p": f"{p:.2g}"}


def measure(name: str, *, held_out: bool) -> list[dict[str, object]]:
    """All rows of one treebank."""
    train, test = texts(name, held_out=held_out)
    base: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(), "text": name,
        "part": "held out" if held_out else "test", "n_train": len(train), "n_test": len(test), "words": test.n_words,
    }  # fmt: skip
    fresh: list[dict[str, object]] = []
    parsed: dict[str, Treebank] = {}
    like = None
    for model, options in MODELS.items():
        start = time.process_time()
        parser = JointMorphologyParser(**options, threads=2).fit(train, like=like)  # all with the same tagger
        like = like or parser
        middle = time.process_time()
        found = parser.predict(test)
        spent = {"train_cpu_seconds": middle - start, "predict_cpu_seconds": time.process_time() - middle}
        shown = " ".join(f"{key}={value}" for key, value in parser.options_.items())
        parsed[model] = found
        names = ["uas"] if model == "gold pipeline" else ["uas", *parser.values_]
        for each in names:
            good, there = right(found, test, each)
            row = {**base, **spent, "model": model, "options": shown, "measure": each, "all": 100 * float(good.mean())}
            row["non_null"] = 100 * float(good[there].mean()) if there.any() else ""
            row["n_non_null"] = int(there.sum())
            if model in AGAINST:
                row |= compared(good, right(parsed[AGAINST[model]], test, each)[0])
            fresh.append(row)
        uas = next(row["all"] for row in fresh if row["model"] == model and row["measure"] == "uas")
        print(f"{name} {model}: UAS {uas:.2f}, {middle - start:.0f} CPU s", file=sys.stderr, flush=True)
    return fresh


AGAINST_GOVERNMENT = ("pipeline, government", "joint, government")
SHOWN = ("uas", "upos", "Case", "Number", "Gender", "Person", "Tense", "Mood", "Voice", "VerbForm", "Degree")


def table(pipeline: str = "pipeline", joint: str = "joint", shown: tuple[str, ...] = SHOWN) -> str:
    """Pipeline and joint model of each treebank, all words / words that have a value, and the test of the former."""
    found = {tuple(row[name] for name in KEY): row for row in results().read()}
    lines = []
    for name in TEXTS:
        for each in shown:
            first, second = (found.get((name, "test", model, each)) for model in (pipeline, joint))
            if first is None or second is None:
                continue
            cells = [f"{float(row['all']):.2f} / {float(row['non_null']):.2f}" for row in (first, second)]
            if each == "uas":
                cells = [f"{float(row['all']):.2f}" for row in (first, second)]
            lines.append(
                f"| {name} | {each} | {' | '.join(cells)} | {float(second['difference']):+.2f} | {second['p']} |"
            )
    header = "| treebank | | pipeline | joint | difference | p |\n|---|---|---|---|---|---|"
    return "\n".join([header, *lines])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.joint", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="treebanks, such as hu,la; default: all")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--held-out", action="store_true", help="score a fifth of the training text instead")
    parser.add_argument("--table", action="store_true", help="run nothing: print the table")
    arguments = parser.parse_args(argv)
    if arguments.table:
        print(table())
        print("\nwith government\n\n" + table(*AGAINST_GOVERNMENT, ("uas", "Case", "Number", "Gender")))
        return
    file, part = results(), "held out" if arguments.held_out else "test"
    for name in arguments.only.split(",") if arguments.only else TEXTS:
        if arguments.again or not file.has(text=name, part=part):
            file.put(measure(name, held_out=arguments.held_out))


if __name__ == "__main__":
    main()
