"""Taggers that learn from news and tag abstracts of biomedicine: a row for each model and number of sentences.

python -m benchmarks.quality.adapting_tags                      all rows that are missing
python -m benchmarks.quality.adapting_tags --only 100,500       some numbers of labelled sentences
python -m benchmarks.quality.adapting_tags --again              replace rows that are there
python -m benchmarks.quality.adapting_tags --dev                score GENIA's dev and held-out news: for choosing
python -m benchmarks.quality.adapting_tags --table              run nothing: write the tables of docs/adapt-tagger.md

Labelled: the first sentences of the sample of the Wall Street Journal (Penn tags). Not labelled: the words of the
whole sample, and of the files `future_use` and `dev` of GENIA. Tested on the file `test` of GENIA. Models:
`supervised`; `source` has places learnt from the news alone (the method of Ando and Zhang); `both` has places learnt
from both domains (structural correspondence learning).
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
from isogloss.data.bitext import Text
from isogloss.data.treebank import Column, Treebank
from isogloss.metrics._resampling import paired
from isogloss.tasks.tag import CrfTagger
from isogloss.tasks.tag.adapting import Correspondence

SIZES = ("100", "500", "1000", "all")
PLACES: dict[str, dict[str, Any]] = {
    "source": {"threshold": 50},
    "both": {},
}
"""Options of the correspondence of each model; those of `both` are the defaults of `Correspondence`."""
MODELS = ("supervised", "source", "both")
AGAINST = {"source": ("supervised",), "both": ("supervised", "source")}
COLUMNS = (
    "date", "machine", "version", "commit", "command", "part", "size", "model", "options", "pivots", "n_train",
    "n_test", "words", "unknown_words", "ceiling", "all", "unknown", "known", "merged", "places_seconds",
    "places_cpu_seconds", "train_seconds", "train_cpu_seconds", "predict_cpu_seconds",
)  # fmt: skip
KEY = ("part", "size", "model")
PAIRED = ("part", "size", "model", "against", "words", "difference", "low", "high", "p_bootstrap", "better", "worse",
          "p_mcnemar", "error_reduction", "commit")  # fmt: skip
PAIRED_KEY = ("part", "size", "model", "against", "words")
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]"}
MERGED = {"NNP": "NN", "NNPS": "NNS"}
"""Names are common nouns in GENIA: what is right if the difference is passed over."""
PAGE = Path(__file__).parents[2] / "docs" / "adapt-tagger.md"


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("adapting_tags.csv"), COLUMNS, KEY)


def comparisons() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("adapting_tags-paired.csv"), PAIRED, PAIRED_KEY)


def read(name: str) -> Treebank:
    folder = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "treebanks"
    trees = Treebank.read(folder / f"{name}.conllu.gz")
    ids, vocabulary = trees.columns["form"]
    # The news have names of brackets where the abstracts have brackets.
    types, numbers = vocabulary.mapped(lambda word: BRACKETS.get(word, word))
    return trees.with_columns(form=Column(numbers[ids], types))


def texts(*, dev: bool) -> tuple[Treebank, Text, Text, dict[str, Treebank]]:
    """What is learnt from: labelled, words of the source, words of the target; and what is scored."""
    news, parts = read("wsj-sample/wsj"), [read(f"genia/{name}") for name in ("future_use", "dev")]
    target = Text.of([part.words(s) for part in parts for s in range(len(part))], name="GENIA")
    if not dev:
        return news, news.text(), target, {"test": read("genia/test")}
    fold = np.arange(len(news)) // 10 % 10
    return news.take(fold != 9), news.text(), target, {"dev": parts[1], "held out": news.take(fold == 9)}


def tags(trees: Treebank) -> np.ndarray:
    ids, vocabulary = trees.columns["xpos"]
    return np.array(vocabulary.types, object)[ids]


def unknown(train: Treebank, test: Treebank) -> np.ndarray:
    """bool[n_words]: words that the labelled text does not have."""
    ids, vocabulary = train.columns["form"]
    known = {vocabulary[i] for i in np.unique(ids).tolist()}
    ids, vocabulary = test.columns["form"]
    return np.array([word not in known for word in vocabulary.types])[ids]


def compared(first: np.ndarray, second: np.ndarray, which: np.ndarray, lengths: np.ndarray) -> dict[str, object]:
    """The first model beside the second, on some of the words: McNemar's exact test, and resampled sentences."""
    better, worse = int(np.sum(first & ~second & which)), int(np.sum(~first & second & which))
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    counts = np.stack(
        [
            np.stack([np.bincount(sentence[right & which], minlength=len(lengths)) for right in (first, second)], 1),
            np.repeat(np.bincount(sentence[which], minlength=len(lengths))[:, None], 2, axis=1),
        ],
        axis=2,
    )
    drawn = paired(counts, lambda c: c[..., 0] / np.maximum(1, c[..., 1]), 1000, 0, "adapting_tags")
    errors = int(np.sum(~second & which))
    return {
        "difference": f"{drawn['delta']:.3f}", "low": f"{drawn['interval'][0]:.3f}",
        "high": f"{drawn['interval'][1]:.3f}", "p_bootstrap": f"{drawn['p_value']:.4f}", "better": better,
        "worse": worse, "p_mcnemar": f"{binomtest(better, better + worse).pvalue if better + worse else 1.0:.2g}",
        "error_reduction": f"{100 * (better - worse) / max(1, errors):.2f}",
    }  # fmt: skip


class Bench:
    """Rows of one setting; correspondences are learnt once."""

    def __init__(self, *, dev: bool) -> None:
        self.labelled, self.source, self.target, self.tests = texts(dev=dev)
        self._places: dict[str, tuple[Correspondence, dict[str, object]]] = {}
        self.command = "python -m benchmarks.quality.adapting_tags" + " --dev" * dev

    def places(self, model: str) -> tuple[Correspondence | None, dict[str, object]]:
        if model not in PLACES:
            return None, {"options": "", "pivots": 0, "places_seconds": 0.0, "places_cpu_seconds": 0.0}
        if model not in self._places:
            wall, cpu = time.perf_counter(), time.process_time()
            given = () if model == "source" else (self.target,)
            found = Correspondence(**PLACES[model]).fit(self.source, *given)
            self._places[model] = found, {
                "options": " ".join(f"{name}={value}" for name, value in found.options_.items() if name != "templates"),
                "pivots": len(found.pivots_), "places_seconds": f"{time.perf_counter() - wall:.1f}",
                "places_cpu_seconds": f"{time.process_time() - cpu:.1f}",
            }  # fmt: skip
        return self._places[model]

    def measure(self, size: str) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        """Rows of all models for so many labelled sentences, and their comparisons."""
        train = self.labelled if size == "all" else self.labelled.part(0, int(size))
        base: dict[str, object] = {
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
            "command": self.command, "size": size, "n_train": len(train),
        }  # fmt: skip
        found, pairs = [], []
        right: dict[tuple[str, str], np.ndarray] = {}
        for model in MODELS:
            places, spent = self.places(model)
            wall, cpu = time.perf_counter(), time.process_time()
            tagger = CrfTagger("xpos").fit(train, correspondence=places)
            times = {"train_seconds": time.perf_counter() - wall, "train_cpu_seconds": time.process_time() - cpu}
            for part, test in self.tests.items():
                cpu = time.process_time()
                predicted = tags(tagger.predict(test))
                times["predict_cpu_seconds"] = time.process_time() - cpu
                gold, new = tags(test), unknown(train, test)
                right[part, model] = good = predicted == gold
                row = base | spent | {name: f"{value:.2f}" for name, value in times.items()}
                row |= {"part": part, "model": model, "n_test": len(test), "words": len(gold)}
                row |= {"unknown_words": int(new.sum()), "all": f"{100 * good.mean():.3f}"}
                row |= {"unknown": f"{100 * good[new].mean():.3f}", "known": f"{100 * good[~new].mean():.3f}"}
                merged = [np.array([MERGED.get(tag, tag) for tag in each]) for each in (predicted, gold)]
                row["merged"] = f"{100 * np.mean(merged[0] == merged[1]):.3f}"
                row["ceiling"] = f"{100 * np.isin(gold, tagger.labels_).mean():.3f}"
                found.append(row)
                print(f"{part} {size} {model}: {row['all']}, unknown {row['unknown']}", file=sys.stderr, flush=True)
                for other in AGAINST.get(model, ()):
                    for words, which in (("all", np.ones_like(new)), ("unknown", new)):
                        key = {"part": part, "size": size, "model": model, "against": other, "words": words}
                        made = compared(good, right[part, other], which, test.lengths)
                        pairs.append(key | made | {"commit": base["commit"]})
        return found, pairs


def table(part: str = "test") -> str:
    """Accuracy of all models at all sizes, and what they gain."""
    found = {tuple(row[name] for name in KEY): row for row in results().read()}
    gains = {tuple(row[name] for name in PAIRED_KEY): row for row in comparisons().read()}
    head = "| labelled sentences | supervised | places: news | places: both | both − supervised | p | both − news | p |"
    lines, used = [], []
    for words in ("all", "unknown"):
        lines += ["", f"{'All' if words == 'all' else 'Unknown'} words:", "", head, "|" + "---|" * 8]
        for size in SIZES:
            row = [found.get((part, size, model)) for model in MODELS]
            if any(each is None for each in row):
                continue
            cells = [f"{float(each[words]):.2f}" for each in row if each is not None]
            used += [(model, each["n_train"], each) for model, each in zip(MODELS, row, strict=True) if each]
            for other in AGAINST["both"]:
                gain = gains[part, size, "both", other, words]
                low, high = float(gain["low"]), float(gain["high"])
                cells += [f"{float(gain['difference']):+.2f} [{low:+.2f}, {high:+.2f}]", gain["p_mcnemar"]]
            lines.append(f"| {row[0]['n_train'] if row[0] else size} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", rows.commits(used)]).strip()


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.adapting_tags", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="numbers of labelled sentences, such as 100,all; default: all")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--dev", action="store_true", help="score GENIA's dev and held-out news instead of the test")
    parser.add_argument("--table", action="store_true", help="run nothing: write the tables of docs/adapt-tagger.md")
    arguments = parser.parse_args(argv)
    if arguments.table:
        rows.fill(PAGE, "table", table())
        return
    file, part = results(), "dev" if arguments.dev else "test"
    bench: Bench | None = None
    for size in arguments.only.split(",") if arguments.only else SIZES:
        if arguments.again or not file.is_done(part=part, size=size, outdated=arguments.outdated):
            bench = bench or Bench(dev=arguments.dev)
            found, pairs = bench.measure(size)
            file.put(found)
            comparisons().put(pairs)


if __name__ == "__main__":
    main()
