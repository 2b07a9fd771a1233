"""Joint morphology and parsing against its pipeline and the other parser: rows for each treebank, model and measure.

python -m benchmarks.quality.joint                  all rows that are missing
python -m benchmarks.quality.joint --only hu,la     some treebanks
python -m benchmarks.quality.joint --models joint   some models; two are tested against each other when run together
python -m benchmarks.quality.joint --again          replace rows that are there
python -m benchmarks.quality.joint --table          run nothing: write the tables of docs/parse-joint.md
python -m benchmarks.quality.joint --held-out       a fifth of the training text instead of the test file: for choosing

Hungarian learns from its training file. Latin and Ancient Greek, of which only the development and test files are here,
learn from the former. The tagger is learnt once, in the time of the first model; the others take it over, but for
`DependencyParser(tags="predicted")`, which brings its own, and the model with a dictionary. Options of the joint model,
how much it listens to a full parser among them, were chosen on a fifth of the training text of Latin, those of
`DependencyParser` are its defaults; test files were scored once.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from benchmarks import rows
from benchmarks.quality.parsing import run
from benchmarks.quality.parsing.models import UDPIPE
from benchmarks.quality.parsing.texts import PREDICTED
from isogloss import __version__
from isogloss.data.treebank import Treebank
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.joint import JointMorphologyParser
from isogloss.tasks.parse.joint.schema import Schema
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
    "joint, dictionary": {"dictionary": "train"},
    "DependencyParser": {"tags": "predicted"},
    "joint, stacked": {"stack_links": 0.2},
}
AGAINST = {
    "joint": "pipeline", "gold pipeline": "pipeline", "joint, government": "pipeline, government",
    "joint, dictionary": "joint", "DependencyParser": "joint", "joint, stacked": "DependencyParser",
}  # fmt: skip
"""What a model is compared with, when both are run together."""
OWN_TAGGER = {"joint, dictionary", "DependencyParser"}
"""Models that do not take over the tagger of the first; a dictionary also says which tags the tagger looks at."""
COLUMNS = (
    "date", "machine", "version", "commit", "text", "part", "model", "options", "n_train", "n_test", "words", "measure",
    "all", "non_null", "n_non_null", "difference", "better", "worse", "p", "train_cpu_seconds", "predict_cpu_seconds",
)  # fmt: skip
KEY = ("text", "part", "model", "measure")
SIGNIFICANT = 0.05
PAGE = Path("docs/parse-joint.md")


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


def measure(name: str, models: Sequence[str], *, held_out: bool) -> list[dict[str, object]]:
    """All rows of these models on one treebank."""
    train, test = texts(name, held_out=held_out)
    base: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(), "text": name,
        "part": "held out" if held_out else "test", "n_train": len(train), "n_test": len(test), "words": test.n_words,
    }  # fmt: skip
    fresh: list[dict[str, object]] = []
    parsed: dict[str, Treebank] = {}
    like = None
    names = Schema.of(train).names
    for model in models:
        start, options = time.process_time(), MODELS[model]
        parser: JointMorphologyParser | DependencyParser
        if model == "DependencyParser":
            parser = DependencyParser(**options, threads=2).fit(train)
        else:
            own = model in OWN_TAGGER
            parser = JointMorphologyParser(**options, threads=2).fit(train, like=None if own else like)
            like = like or (None if own else parser)  # all with the same tagger
        middle = time.process_time()
        found = parsed[model] = parser.predict(test)
        spent = {"train_cpu_seconds": middle - start, "predict_cpu_seconds": time.process_time() - middle}
        shown = " ".join(f"{key}={value}" for key, value in parser.options_.items() if key != "templates")
        for each in ["uas"] if model == "gold pipeline" else ["uas", *names]:
            good, there = right(found, test, each)
            row = {**base, **spent, "model": model, "options": shown, "measure": each, "all": 100 * float(good.mean())}
            row["non_null"] = 100 * float(good[there].mean()) if there.any() else ""
            row["n_non_null"] = int(there.sum())
            if AGAINST.get(model) in parsed:
                row |= compared(good, right(parsed[AGAINST[model]], test, each)[0])
            fresh.append(row)
        uas = next(row["all"] for row in fresh if row["model"] == model and row["measure"] == "uas")
        print(f"{name} {model}: UAS {uas:.2f}, {middle - start:.0f} CPU s", file=sys.stderr, flush=True)
    return fresh


SHOWN = ("uas", "upos", "Case", "Number", "Gender", "Person", "Tense", "Mood", "Voice", "VerbForm", "Degree")
FEW = ("uas", "Case", "Number", "Gender")
COMPARED = {
    "pipeline": ("pipeline", "joint", SHOWN),
    "separate": ("joint", "DependencyParser", SHOWN),
    "stacked": ("DependencyParser", "joint, stacked", SHOWN),
    "dictionary": ("joint", "joint, dictionary", FEW),
    "government": ("pipeline, government", "joint, government", FEW),
}
"""Tables of the page: two models, of which the second is tested against the first, and what is shown."""


def test_rows() -> dict[tuple[str, str, str], rows.Row]:
    """Rows of test files, by treebank, model and measure."""
    return {(row["text"], row["model"], row["measure"]): row for row in results().read() if row["part"] == "test"}


def table(first: str, second: str, shown: tuple[str, ...]) -> str:
    """Two models on each treebank, all words / words that have a value, and the test of the former."""
    found, used = test_rows(), []
    lines = [f"| treebank | | {first} | {second} | difference | p |\n|---|---|---|---|---|---|"]
    for name in TEXTS:
        for each in shown:
            both = [found.get((name, model, each)) for model in (first, second)]
            if None in both:
                continue
            used += [(row["model"], name, row) for row in both]
            cells = [f"{float(row['all']):.2f} / {float(row['non_null']):.2f}" for row in both]
            if each == "uas":
                cells = [f"{float(row['all']):.2f}" for row in both]
            gap = float(both[1]["difference"] or float(both[1]["all"]) - float(both[0]["all"]))
            lines.append(f"| {name} | {each} | {' | '.join(cells)} | {gap:+.2f} | {both[1]['p']} |")
    if not used:
        return "*Not measured yet.*"
    return "\n".join([*lines, "", verdict(first, second, shown), "", rows.commits(used)])


def verdict(first: str, second: str, shown: tuple[str, ...]) -> str:
    """In which measures the second model is above the first and in which below, by McNemar's test, in words."""
    found, told = test_rows(), dict[str, list[str]](above=[], below=[], apart=[])
    for name in TEXTS:
        for each in shown:
            row = found.get((name, second, each))
            if row is not None and row["p"]:
                way = (
                    "apart" if float(row["p"]) >= SIGNIFICANT else "above" if float(row["difference"]) > 0 else "below"
                )
                told[way].append(f"{name} {each}")
    if not any(told.values()):
        return f"{second} and {first} were not run together yet."
    said = [
        f"{second} is {way} {first} (p < {SIGNIFICANT}) in {', '.join(told[way]) or 'nothing'}"
        for way in ("above", "below")
    ]
    return "; ".join([*said, f"they cannot be told apart in {', '.join(told['apart']) or 'nothing'}"]) + "."


def costs() -> str:
    """UAS and CPU seconds of every model, and of UDPipe where parsing.csv has a row of it."""
    found, udpipe = test_rows(), {}
    for row in run.results().read():
        if (row["tags"], row["model"]) == (PREDICTED, UDPIPE):
            udpipe[row["data"]] = row | {"all": row["UAS"], "predict_cpu_seconds": row["parse_cpu_seconds"]}
    lines = [f"| UAS; CPU s to learn and to parse | {' | '.join(TEXTS)} |\n|---|{'---|' * len(TEXTS)}"]
    used = []
    for model in (*MODELS, "UDPipe, tags of our tagger"):
        own = {name: found.get((name, model, "uas")) if model in MODELS else udpipe.get(name) for name in TEXTS}
        used += [(model, name, row) for name, row in own.items() if row]
        cells = (
            f"{float(row['all']):.2f}; {float(row['train_cpu_seconds']):.0f}, {float(row['predict_cpu_seconds']):.0f}"
            if row
            else ""
            for row in own.values()
        )
        if any(own.values()):
            lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", rows.commits(used)])


def write_tables() -> None:
    """Put the tables between their markers on the docs page."""
    for name, compared_ in COMPARED.items():
        rows.fill(PAGE, f"joint {name}", table(*compared_))
    rows.fill(PAGE, "joint costs", costs())


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.joint", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="treebanks, such as hu,la; default: all")
    parser.add_argument("--models", default="", help=f"some of {', '.join(MODELS)}, with ; between; default: all")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--held-out", action="store_true", help="score a fifth of the training text instead")
    parser.add_argument("--table", action="store_true", help="run nothing: write the tables of the docs page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        write_tables()
        return
    file, part = results(), "held out" if arguments.held_out else "test"
    models = arguments.models.split(";") if arguments.models else list(MODELS)
    for name in arguments.only.split(",") if arguments.only else TEXTS:
        same = {"text": name, "part": part, "outdated": arguments.outdated}
        missing = [each for each in models if arguments.again or not file.is_done(**same, model=each)]
        if missing:
            file.put(measure(name, missing, held_out=arguments.held_out))


if __name__ == "__main__":
    main()
