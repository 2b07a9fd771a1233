"""Classifiers that learn from reviews of one kind of product and label those of another: a row for each pair and split.

python -m benchmarks.quality.adapting_documents                     all rows that are missing
python -m benchmarks.quality.adapting_documents --only ours,base    some models
python -m benchmarks.quality.adapting_documents --splits 2          the first splits alone
python -m benchmarks.quality.adapting_documents --again             replace rows that are there
python -m benchmarks.quality.adapting_documents --distances         distances of domains, and their rank correlation
python -m benchmarks.quality.adapting_documents --table             run nothing: write the tables of docs/adapt.md

Reviews of books, films and electronics (Blitzer, Dredze and Pereira 2007), 2,000 each. A split has 1,600 documents to
learn from and 400 to score; copies of a text are on one side. The target's 1,600 are unlabelled; its 400 are not seen
before they are scored. Models: `base`, `scl`, `scl-mi` and `scl-mi+targ` have the features of the paper; `nb` has ours
and does not adapt; `ours` is what `DocumentClassifier` does by default, and `given prior` is told the true proportions;
`ours 70/30` and `given 70/30` have a target, to adapt to and to score, in which 70% are positive; `in-domain` learns
from the target's labels.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from benchmarks import rows
from isogloss import __version__
from isogloss.data import LabelledDocuments
from isogloss.tasks.adapt import DocumentClassifier, proxy_a_distance

DOMAINS = ("books", "dvd", "electronics")
PAPER: dict[str, Any] = {"ngrams": 2, "weighting": "none", "l2": 1e-4}
MODELS: dict[str, dict[str, Any]] = {
    "ours": {},
    "base": {"method": "none", **PAPER},
    "in-domain": {"method": "none"},
    "nb": {"method": "none"},
    "given prior": {"prior": {"neg": 0.5, "pos": 0.5}},
    "ours 70/30": {},
    "given 70/30": {"prior": {"neg": 0.3, "pos": 0.7}},
    "scl-mi": {"method": "scl-mi", **PAPER},
    "scl-mi+targ": {"method": "scl-mi", **PAPER},
    "scl": {"method": "scl", **PAPER},
}
"""Options of each model; the rest are as by default."""
LABELS = 50
SPLITS = 5
DRAWS = 10000
"""Draws of a permutation test."""
COLUMNS = (
    "date", "machine", "version", "commit", "command", "model", "source", "target", "split", "n_train", "n_unlabelled",
    "n_test", "accuracy", "right", "prior", "cpu_seconds",
)  # fmt: skip
KEY = ("model", "source", "target", "split")
APART = ("date", "machine", "version", "commit", "one", "other", "held_out", "training", "cpu_seconds")
NOT_YET = "Not measured yet: `python -m benchmarks.quality.adapting_documents --distances` makes the rows."
PAGE = Path(__file__).parents[2] / "docs" / "adapt.md"


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("adapting_documents.csv"), COLUMNS, KEY)


def distances() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("adapting_documents-distances.csv"), APART, ("one", "other"))


def read(name: str) -> LabelledDocuments:
    folder = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "sentiment"
    return LabelledDocuments.read(folder / f"{name}.tsv.gz", label=0, text=(2, 3))


def resampled_numbers(documents: LabelledDocuments, seed: int) -> NDArray[np.int64]:
    """Documents that are left if there are to be fewer negative ones, so that 70% are positive."""
    good = np.array([label == "pos" for label in documents.labels])
    kept = np.random.default_rng(seed).choice(np.flatnonzero(~good), round(good.sum() * 3 / 7), replace=False)
    return np.sort(np.append(np.flatnonzero(good), kept))


def resampled(documents: LabelledDocuments, seed: int) -> LabelledDocuments:
    """With fewer negative documents, so that 70% are positive."""
    return documents.take(resampled_numbers(documents, seed))


def few_of(documents: LabelledDocuments, seed: int) -> LabelledDocuments:
    """As many of each label, fifty in all."""
    labels, rng = np.array(documents.labels), np.random.default_rng(seed)
    chosen = [rng.permutation(np.flatnonzero(labels == name))[: LABELS // 2] for name in documents.names]
    return documents.take(np.sort(np.concatenate(chosen)))


def measure(model: str, texts: dict[str, LabelledDocuments], source: str, target: str, split: int) -> dict[str, object]:
    """A row."""
    (train, _), (new, test) = (texts[name].held_out(1 / 5, split) for name in (source, target))
    given, unlabelled, scored = texts[source].take(train), texts[target].take(new), texts[target].take(test)
    if model.endswith("70/30"):
        unlabelled, scored = resampled(unlabelled, split), resampled(scored, split)
    few = few_of(unlabelled, split) if model.endswith("+targ") else None
    began = time.process_time()
    if model == "in-domain":
        classifier = DocumentClassifier(**MODELS[model]).fit(unlabelled)
    else:
        classifier = DocumentClassifier(**MODELS[model]).fit(given, unlabelled.unlabelled(), few)
    right = np.array([one == other for one, other in zip(classifier.predict(scored), scored.labels, strict=True)])
    return {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": "python -m benchmarks.quality.adapting_documents", "model": model, "source": source,
        "target": target, "split": split, "n_train": len(given), "n_unlabelled": len(unlabelled),
        "n_test": len(scored), "accuracy": f"{100 * right.mean():.2f}", "right": "".join(map(str, right.astype(int))),
        "prior": " ".join(f"{share:.3f}" for share in classifier.prior_),
        "cpu_seconds": f"{time.process_time() - began:.1f}",
    }  # fmt: skip


def run(only: list[str], splits: int, again: bool) -> None:
    texts, kept = {name: read(name) for name in DOMAINS}, results()
    there = {tuple(row[name] for name in KEY) for row in kept.read()}
    for split in range(splits):
        for model in only:
            for source, target in permutations(DOMAINS, 2):
                if not again and (model, source, target, str(split)) in there:
                    continue
                row = measure(model, texts, source, target, split)
                kept.put([row])
                print(f"{model} {source} {target} {split}: {row['accuracy']}", file=sys.stderr, flush=True)


def measure_distances() -> None:
    texts, kept = {name: read(name) for name in DOMAINS}, distances()
    halves = {f"{name}, one half": texts[name][::2] for name in DOMAINS}
    pairs = [(one, other, texts[one], texts[other]) for one, other in zip(DOMAINS, DOMAINS[1:] + DOMAINS[:1])]
    pairs += [(name, half, texts[half.split(",")[0]][1::2], halves[half]) for name, half in zip(DOMAINS, halves)]
    for one, other, first, second in pairs:
        began = time.process_time()
        found = proxy_a_distance(first, second)
        base = {"date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit()}
        spent = f"{time.process_time() - began:.1f}"
        numbers = {"held_out": f"{found.held_out:.2f}", "training": f"{found.training:.2f}", "cpu_seconds": spent}
        kept.put([{**base, "one": one, "other": other, **numbers}])
        print(f"{one} {other}: {found}", file=sys.stderr, flush=True)


# --- tables


def pooled(model: str) -> dict[tuple[str, ...], rows.Row]:
    """Rows of a model by pair and split."""
    return {tuple(row[name] for name in KEY[1:]): row for row in results().find(model=model)}


def interval(model: dict[tuple[str, ...], rows.Row]) -> tuple[float, float, float]:
    """The mean accuracy of pairs, and its 95% interval, by resampling the documents of each pair and split."""
    rng = np.random.default_rng(0)
    hits = [np.array(list(row["right"]), np.int64) for row in model.values()]
    drawn = np.stack([rng.choice(hit, (1000, len(hit))).mean(axis=1) for hit in hits]).mean(axis=0) * 100
    mean = 100 * float(np.mean([hit.mean() for hit in hits]))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return mean, float(low), float(high)


def by_document(better: str, worse: str) -> dict[tuple[str, int], list[int]]:
    """How much better one model labels each document of the target than another: a list for each document.

    A document is scored for two sources and perhaps in several splits, and copies of a text are one document.
    """
    one, other, found = pooled(better), pooled(worse), dict[tuple[str, int], list[int]]()
    texts = {name: read(name) for name in DOMAINS}
    for key in sorted(one.keys() & other.keys()):
        _, target, split = key
        test = texts[target].held_out(1 / 5, int(split))[1]
        if better.endswith("70/30"):
            test = test[resampled_numbers(texts[target].take(test), int(split))]
        copies = texts[target].duplicates()[test]
        marks = zip(copies.tolist(), one[key]["right"], other[key]["right"], strict=True)
        for copy, first, second in marks:
            found.setdefault((target, copy), []).append(int(first) - int(second))
    return found


def compared(better: str, worse: str) -> str:
    """Whether one model is better than another: a permutation test by document.

    If the models were alike, all that is known of one document could as well have the other sign, together.
    """
    found = by_document(better, worse)
    if not found:
        return f"| {better} | {worse} | not measured | | |"
    sums = np.array([sum(each) for each in found.values()])
    moved, n = sums[sums != 0], sum(len(each) for each in found.values())
    rng = np.random.default_rng(0)
    drawn = np.array([abs(int(rng.choice((-1, 1), len(moved)) @ moved)) for _ in range(DRAWS)])
    p = (1 + int((drawn >= abs(int(moved.sum()))).sum())) / (1 + DRAWS)
    said = f"< {2 / DRAWS:.1g}" if p < 2 / DRAWS else f"{p:.2g}"
    return f"| {better} | {worse} | {100 * float(sums.sum()) / n:+.2f} | {len(found):,} | {said} |"


def correlation() -> str:
    """The rank correlation of distances and of what the base loses, over the pairs of domains."""
    base, best = pooled("base"), pooled("in-domain")
    far = {frozenset((row["one"], row["other"])): float(row["held_out"]) for row in distances().read()}
    lost = dict[tuple[str, str], list[float]]()
    for key in base.keys() & best.keys():
        lost.setdefault((key[0], key[1]), []).append(float(best[key]["accuracy"]) - float(base[key]["accuracy"]))
    if not lost or not all(frozenset(pair) in far for pair in lost):
        return ""
    means = {pair: float(np.mean(values)) for pair, values in lost.items()}
    pairs = sorted(means)
    each = spearmanr([far[frozenset(pair)] for pair in pairs], [means[pair] for pair in pairs]).statistic
    both = sorted({frozenset(pair) for pair in pairs}, key=sorted)
    mean = {pair: np.mean([means[one] for one in pairs if frozenset(one) == pair]) for pair in both}
    together = spearmanr([far[pair] for pair in both], [mean[pair] for pair in both]).statistic
    return (
        f"\n\nRank correlation of the held-out distance with what `base` loses: {each:+.2f} over {len(pairs)} ordered "
        f"pairs, {together:+.2f} over {len(both)} pairs whose two directions are averaged."
    )


def table() -> None:
    used, lines = rows.Used(), ["| model | runs | mean of pairs | 95% interval |", "|---|---:|---:|---|"]
    for model in MODELS:
        if found := pooled(model):
            mean, low, high = interval(found)
            lines.append(f"| {model} | {len(found)} | {mean:.1f} | {low:.1f} to {high:.1f} |")
            for row in found.values():
                used.add(model, "-".join(row[name] for name in KEY[1:]), row)
    rows.fill(PAGE, "documents", used.below("\n".join(lines)))
    orders = [("scl", "base"), ("scl-mi", "scl"), ("scl-mi+targ", "scl-mi"), ("ours", "nb"), ("given prior", "ours"),
              ("given 70/30", "ours 70/30")]  # fmt: skip
    heads = ["| better? | than | difference | documents | p |", "|---|---|---:|---:|---:|"]
    for model in dict.fromkeys(name for pair in orders for name in pair):
        for row in pooled(model).values():
            used.add(model, "-".join(row[name] for name in KEY[1:]), row)
    rows.fill(PAGE, "orders", used.below("\n".join([*heads, *(compared(*pair) for pair in orders)])))
    far, heads = distances().read(), ["| one | other | held out | training |", "|---|---|---:|---:|"]
    for row in far:
        used.add(row["one"], row["other"], row)
    lines = [f"| {row['one']} | {row['other']} | {row['held_out']} | {row['training']} |" for row in far]
    rows.fill(PAGE, "distances", used.below("\n".join([*heads, *lines]) + correlation()) if far else NOT_YET)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--distances", action="store_true")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.distances:
        measure_distances()
    elif not given.table:
        run(given.only.split(","), given.splits, given.again)
    if PAGE.exists():
        table()


if __name__ == "__main__":
    main()
