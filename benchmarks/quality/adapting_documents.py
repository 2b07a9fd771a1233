"""Classifiers that learn from reviews of one kind of product and label those of another: a row for each pair and split.

python -m benchmarks.quality.adapting_documents                     all rows that are missing
python -m benchmarks.quality.adapting_documents --only ours,base    some models
python -m benchmarks.quality.adapting_documents --splits 2          the first splits alone
python -m benchmarks.quality.adapting_documents --again             replace rows that other code has made
python -m benchmarks.quality.adapting_documents --distances         distances of domains, and their rank correlation
python -m benchmarks.quality.adapting_documents --clock             seconds and memory, each in a process of its own
python -m benchmarks.quality.adapting_documents --table             run nothing: write the tables of docs/adapt.md

Reviews of books, films and electronics (Blitzer, Dredze and Pereira 2007), 2,000 each. A split has 1,600 documents to
learn from and 400 to score; copies of a text are on one side. The target's 1,600 are unlabelled; its 400 are not seen
before they are scored. Models: `base`, `scl`, `scl-mi` and `scl-mi+targ` have the features of the paper; `nb` has ours
and does not adapt; `ours` is what `DocumentClassifier` does by default, and `given prior` is told the true proportions;
`ours 70/30` and `given 70/30` have a target, to adapt to and to score, in which 70% are positive; `in-domain` learns
from the target's labels; those with `+targ` are told fifty of them beside what they learn from. The clock runs on
documents that are halves of two reviews each: 12,000 for structural correspondence, in two domains, and a million words
in either for a diagnosis.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from functools import cache
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
PAPER: dict[str, Any] = {"ngrams": 2, "weighting": "none", "l2": 1e-4, "own_columns": False}
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
    "base+targ": {"method": "none", **PAPER},
    "ours+targ": {},
    "joined columns": {"own_columns": False},
}
"""Options of each model; the rest are as by default."""
COMPARED = (
    ("scl", "base"), ("scl-mi", "base"), ("scl-mi", "scl"), ("scl-mi+targ", "scl-mi"), ("base+targ", "base"),
    ("ours", "nb"), ("ours+targ", "ours"), ("given prior", "ours"), ("given 70/30", "ours 70/30"),
)  # fmt: skip
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
CLOCK = (
    "date", "machine", "version", "commit", "what", "threads", "documents", "words", "features", "seconds",
    "cpu_seconds", "megabytes",
)  # fmt: skip
CLOCKED = ("scl-mi, 1,000 pivots", "diagnose, texts", "diagnose, with labels")
THREADS = 2
NOT_YET = "Not measured yet: `python -m benchmarks.quality.adapting_documents --distances` makes the rows."
PAGE = Path(__file__).parents[2] / "docs" / "adapt.md"


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("adapting_documents.csv"), COLUMNS, KEY)


def distances() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("adapting_documents-distances.csv"), APART, ("one", "other"))


def clocked() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("adapting_documents-clock.csv"), CLOCK, ("what", "threads"))


@cache
def read(name: str) -> LabelledDocuments:
    folder = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "sentiment"
    return LabelledDocuments.read(folder / f"{name}.tsv.gz", label=0, text=(2, 3))


@cache
def cut(name: str, split: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Documents of a domain to learn from, and to score."""
    return read(name).held_out(1 / 5, split)


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
    (train, _), (new, test) = (cut(name, split) for name in (source, target))
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
    there = {
        tuple(row[name] for name in KEY) for row in kept.read() if not again or rows.is_of(row, rows.commit())
    }  # fmt: skip
    for split in range(splits):
        for model in only:
            for source, target in permutations(DOMAINS, 2):
                if (model, source, target, str(split)) in there:
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


# --- the clock


def halves(names: tuple[str, ...], seed: int, documents: int = 10**9, words: int = 10**9) -> LabelledDocuments:
    """Halves of two reviews with the same label as one document, until there are enough of them."""
    reviews = [[text for label, text in read(name) if label == wanted] for wanted in ("neg", "pos") for name in names]
    rng, made, met = np.random.default_rng(seed), list[tuple[str | None, list[str]]](), 0
    while len(made) < documents and met < words:
        kind = len(made) % len(reviews)
        one, other = (reviews[kind][int(rng.integers(len(reviews[kind])))] for _ in range(2))
        label = "neg" if kind < len(names) else "pos"
        made.append((label, [*one[: len(one) // 2], *other[len(other) // 2 :]]))
        met += len(made[-1][1])
    return LabelledDocuments.of(made)


def clock_one(what: str) -> None:
    """A row, in this process."""
    from isogloss.tasks.adapt import diagnose

    if what.startswith("scl-mi"):
        given = halves(("books",), 0, documents=6000), halves(("dvd", "electronics"), 1, documents=6000)
    else:
        given = halves(("books", "dvd"), 0, words=10**6), halves(("electronics", "dvd"), 1, words=10**6)
        if what.endswith("texts"):
            given = given[0].unlabelled(), given[1]
    features = 0
    began, spent = time.perf_counter(), time.process_time()
    if what.startswith("scl-mi"):
        options = {**PAPER, "min_count": 2, "pivots": 1000, "threads": THREADS}  # 270,000 sequences
        features = DocumentClassifier("scl-mi", **options).fit(given[0], given[1].unlabelled()).n_features_
    else:
        diagnose(*given, threads=THREADS)
    clocked().put([{
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(), "what": what,
        "threads": THREADS, "documents": sum(map(len, given)), "words": sum(one.text.n_words for one in given),
        "features": features or "", "seconds": f"{time.perf_counter() - began:.1f}",
        "cpu_seconds": f"{time.process_time() - spent:.1f}",
        "megabytes": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
    }])  # fmt: skip


def clock() -> None:
    for what in CLOCKED:
        command = [sys.executable, "-m", "benchmarks.quality.adapting_documents", "--clock", "--one", what]
        subprocess.run(command, check=True)
        print(clocked().find(what=what), file=sys.stderr, flush=True)


def clock_table() -> str:
    heads = [
        "| what | documents | words | features | seconds | of processors | MB |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    used = rows.Used()
    for row in clocked().read():
        used.add("", row["what"], row)
        numbers = [f"{int(row[name]):,}" if row[name] else "" for name in ("documents", "words", "features")]
        heads.append(
            f"| {row['what']} | {' | '.join(numbers)} | {row['seconds']} | {row['cpu_seconds']} | {row['megabytes']} |"
        )
    return used.below("\n".join(heads)) if len(heads) > 2 else NOT_YET.replace("--distances", "--clock")


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
        test = cut(target, int(split))[1]
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
        return f"| {better} | {worse} | not measured | | | |"
    sums = np.array([sum(each) for each in found.values()])
    moved, n = sums[sums != 0], sum(len(each) for each in found.values())
    rng = np.random.default_rng(0)
    drawn = np.array([abs(int(rng.choice((-1, 1), len(moved)) @ moved)) for _ in range(DRAWS)])
    p = (1 + int((drawn >= abs(int(moved.sum()))).sum())) / (1 + DRAWS)
    said = f"< {2 / DRAWS:.1g}" if p < 2 / DRAWS else f"{p:.2g}"
    made = [{key: row["commit"] for key, row in pooled(model).items()} for model in (better, worse)]
    alike = "yes" if all(made[0][key] == made[1][key] for key in made[0].keys() & made[1].keys()) else "no"
    return f"| {better} | {worse} | {100 * float(sums.sum()) / n:+.2f} | {len(found):,} | {said} | {alike} |"


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
                used.add(model, f"split {row['split']}", row)
    rows.fill(PAGE, "documents", used.below("\n".join(lines)))
    heads = ["| better? | than | difference | documents | p | of one commit |", "|---|---|---:|---:|---:|---|"]
    for model in dict.fromkeys(name for pair in COMPARED for name in pair):
        for row in pooled(model).values():
            used.add(model, f"split {row['split']}", row)
    rows.fill(PAGE, "orders", used.below("\n".join([*heads, *(compared(*pair) for pair in COMPARED)])))
    far, heads = distances().read(), ["| one | other | held out | training |", "|---|---|---:|---:|"]
    for row in far:
        used.add(row["one"], row["other"], row)
    lines = [f"| {row['one']} | {row['other']} | {row['held_out']} | {row['training']} |" for row in far]
    rows.fill(PAGE, "clock", clock_table())
    rows.fill(PAGE, "distances", used.below("\n".join([*heads, *lines]) + correlation()) if far else NOT_YET)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--distances", action="store_true")
    parser.add_argument("--clock", action="store_true")
    parser.add_argument("--one", choices=CLOCKED, help=argparse.SUPPRESS)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.one:
        clock_one(given.one)
        return
    if given.clock:
        clock()
    elif given.distances:
        measure_distances()
    elif not given.table:
        run(given.only.split(","), given.splits, given.again)
    if PAGE.exists():
        table()


if __name__ == "__main__":
    main()
