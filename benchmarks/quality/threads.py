"""Threads through the ACL Anthology (Gillenwater, Kulesza and Taskar 2012): rows of draws, planted stories, speed.

python -m benchmarks.quality.threads                   all rows that are missing
python -m benchmarks.quality.threads --part draws      some of draws, planted, speed, kdpp
python -m benchmarks.quality.threads --part draws --only "k-means|LDA"     some systems, or seeds of planted
python -m benchmarks.quality.threads --again           replace rows that are there
python -m benchmarks.quality.threads --table           run nothing: write the tables of docs/threads.md
python -m benchmarks.quality.threads --choose          papers before 2006 only: what options were chosen on

draws: five threads of eight papers. "inside" is the mean cosine (tf-idf) of neighbours in a thread, "between" that of
two threads of a set, each the sum of its papers' vectors; both in percent, with 95% intervals over draws (seeds, for
the baselines). k-means and LDA cut the papers into eight slices of time with as many papers each. k-means (spherical)
takes the paper nearest to each centre, LDA (scikit-learn, in a Python of its own: THREADS_PEER) the paper whose words
are most probable under each topic; both link slices by the one-to-one matching with the highest cosines. "independent"
are threads drawn one by one from the same model with k = 1. Options are the defaults, which were chosen with --choose
by inside − between.

planted: five stories of eight papers are hidden among the 13,238, each with words of its own mixed into the words of a
paper and with links to the two before; citations of the others lead to older papers at random, since real ones make
coherent threads in great number. "within" is the share of threads that lie within one story, "covered" the number
of stories that a set has such a thread of.

kdpp: seconds for a plain k-DPP of documents, ours and that of DPPy, from the same features.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import clock, rows
from isogloss import __version__
from isogloss.data import Documents
from isogloss.data.bitext import Text
from isogloss.data.formats.document_records import read_document_tables
from isogloss.structures import Dpp
from isogloss.tasks.documents.thread_graph import word_vectors
from isogloss.tasks.documents.threads import Threads

K, LENGTH, DRAWS, BEST, K_MEANS_SEEDS, LDA_SEEDS = 5, 8, 100, 20, 30, 5
PLANTED_SEEDS = range(1, 6)
PARTS = ("draws", "planted", "speed", "kdpp")
COLUMNS = (
    "date", "machine", "version", "commit", "command", "part", "data", "system", "setting", "draws", "inside",
    "inside_low", "inside_high", "between", "between_low", "between_high", "within", "covered", "seconds",
    "cpu_seconds", "peak_mb", "first_cpu_seconds",
)  # fmt: skip
KEY = ("part", "data", "system", "setting")
Sets = list[list[tuple[int, ...]]]


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("threads.csv"), COLUMNS, KEY)


def folder() -> Path:
    return Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "citations" / "aan"


def papers() -> Documents:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_document_tables(folder() / "nodes.tsv.gz", folder() / "edges.tsv.gz")


def row_of(part: str, system: str, setting: str = "", **more: object) -> dict[str, object]:
    made: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": "python -m benchmarks.quality.threads " + " ".join(sys.argv[1:]), "part": part, "data": "aan",
        "system": system, "setting": setting, **more,
    }  # fmt: skip
    print(part, system, setting, {k: round(v, 2) for k, v in more.items() if isinstance(v, float)}, file=sys.stderr)
    return made


# --- measures


def measured(vectors: Any, sets: Sets) -> tuple[np.ndarray, np.ndarray]:
    """Mean cosine of neighbours, and of two threads, of each set; in percent."""
    inside, between = [], []
    for threads in sets:
        steps = [step for path in threads for step in pairwise(path)]
        first, then = (vectors[[step[end] for step in steps]] for end in (0, 1))
        inside.append(float(first.multiply(then).sum(axis=1).mean()))
        sums = np.vstack([np.asarray(vectors[list(path)].sum(axis=0)).ravel() for path in threads])
        sums /= np.linalg.norm(sums, axis=1, keepdims=True)
        between.append(float(np.mean([sums[a] @ sums[b] for a, b in combinations(range(len(sums)), 2)])))
    return 100 * np.array(inside), 100 * np.array(between)


def with_interval(name: str, values: np.ndarray) -> dict[str, float]:
    """The mean, and 95% of means of draws from the draws."""
    rng = np.random.default_rng(0)
    means = values[rng.integers(0, len(values), (2000, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return {name: float(values.mean()), f"{name}_low": float(low), f"{name}_high": float(high)}


def drawn_row(system: str, vectors: Any, sets: Sets, seconds: float, setting: str = "") -> dict[str, object]:
    inside, between = measured(vectors, sets)
    return row_of(
        "draws", system, setting, draws=len(sets), cpu_seconds=seconds / len(sets), **with_interval("inside", inside),
        **with_interval("between", between),
    )  # fmt: skip


# --- baselines


def slices(documents: Documents) -> list[np.ndarray]:
    """Rows of documents in eight slices of time, as many in each."""
    assert documents.dates is not None
    return list(np.array_split(np.argsort(documents.dates, kind="stable"), LENGTH))


def linked(chosen: list[list[int]], likeness: Callable[[int], np.ndarray]) -> list[tuple[int, ...]]:
    """Threads of the chosen documents, slice to slice by the one-to-one matching with the highest likeness."""
    from scipy.optimize import linear_sum_assignment

    threads = [[row] for row in chosen[0]]
    order = list(range(len(chosen[0])))  # which cluster of the slice each thread is at
    for at in range(1, len(chosen)):
        first, then = linear_sum_assignment(-likeness(at))
        to = dict(zip(first.tolist(), then.tolist(), strict=True))
        order = [to[cluster] for cluster in order]
        for thread, cluster in zip(threads, order, strict=True):
            thread.append(chosen[at][cluster])
    return [tuple(thread) for thread in threads]


def k_means(documents: Documents, vectors: Any, seed: int, iterations: int = 20) -> list[tuple[int, ...]]:
    """Spherical k-means in each slice, the paper nearest to each centre."""
    rng, chosen = np.random.default_rng(seed), []
    for some in slices(documents):
        some = some[np.diff(vectors.indptr)[some] > 0]
        part = vectors[some]
        centres = part[rng.choice(len(some), K, replace=False)].toarray()
        for _ in range(iterations):
            cosine = part @ centres.T
            cluster = cosine.argmax(axis=1)
            fresh = np.vstack([np.asarray(part[cluster == c].sum(axis=0)).ravel() for c in range(K)])
            lengths = np.linalg.norm(fresh, axis=1, keepdims=True)
            fresh = np.where(lengths > 0, fresh / np.where(lengths > 0, lengths, 1), centres)
            if np.allclose(fresh, centres):
                break
            centres = fresh
        cosine = np.where((part @ centres.T).argmax(axis=1)[:, None] == np.arange(K), part @ centres.T, -1.0)
        chosen.append(some[cosine.argmax(axis=0)].tolist())
    return linked(chosen, lambda at: (vectors[chosen[at - 1]] @ vectors[chosen[at]].T).toarray())


PEER = """
import json, sys, time
import numpy as np
from scipy.sparse import load_npz
from sklearn.decomposition import LatentDirichletAllocation
counts = load_npz(sys.argv[1]).tocsr()
slices = json.load(open(sys.argv[2]))
out = []
for seed in range(int(sys.argv[3])):
    began = time.process_time()
    chosen, topics = [], []
    for rows in slices:
        part = counts[rows]
        lda = LatentDirichletAllocation(int(sys.argv[4]), random_state=seed, learning_method="batch").fit(part)
        words = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
        lengths = np.asarray(part.sum(axis=1)).ravel()
        score = np.asarray(part @ np.log(words).T) / np.maximum(lengths, 1)[:, None]
        score[lengths < 20] = -np.inf
        chosen.append([int(rows[k]) for k in score.argmax(axis=0)])
        topics.append(words / np.linalg.norm(words, axis=1, keepdims=True))
    near = [(topics[at - 1] @ topics[at].T).tolist() for at in range(1, len(topics))]
    out.append({"chosen": chosen, "near": near, "seconds": time.process_time() - began})
json.dump(out, sys.stdout)
"""


def lda(documents: Documents) -> tuple[Sets, float]:
    """LDA of each slice by scikit-learn; the paper whose words are most probable under each topic."""
    from scipy.sparse import save_npz

    peer = os.environ.get("THREADS_PEER", sys.executable)
    counts = documents.pruned(min_documents=3, max_share=0.25, lowercase=True, letters=True).counts()
    with tempfile.TemporaryDirectory() as place:
        save_npz(f"{place}/counts.npz", counts)
        Path(f"{place}/slices.json").write_text(json.dumps([some.tolist() for some in slices(documents)]))
        command = [peer, "-c", PEER, f"{place}/counts.npz", f"{place}/slices.json", str(LDA_SEEDS), str(K)]
        single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        found = json.loads(subprocess.run(command, check=True, capture_output=True, env=os.environ | single).stdout)
    sets = [linked(one["chosen"], lambda at, near=one["near"]: np.array(near[at - 1])) for one in found]  # type: ignore[misc]
    return sets, sum(one["seconds"] for one in found)


# --- parts


def timed(make: Callable[[], Iterable[list[tuple[int, ...]]]]) -> tuple[Sets, float]:
    began = time.process_time()
    return list(make()), time.process_time() - began


SYSTEMS = ("k-SDPP", "k-SDPP, best of 20", "independent", "k-SDPP, similar documents", "k-means", "LDA")


def draws(system: str) -> dict[str, object]:
    documents = papers()
    vectors, rng = word_vectors(documents), np.random.default_rng(0)
    if system == "LDA":
        return drawn_row(system, vectors, *lda(documents))
    if system == "k-means":
        return drawn_row(
            system, vectors, *timed(lambda: (k_means(documents, vectors, seed) for seed in range(K_MEANS_SEEDS)))
        )
    model = Threads(K, LENGTH, links="similar" if "similar" in system else "given").fit(documents)
    model.sample(rng)  # kernels are compiled
    if "best" in system:
        return drawn_row(
            system, vectors, *timed(lambda: (list(model.predict([seed])[0].threads) for seed in range(BEST)))
        )
    draw = model.independent if system == "independent" else model.sample
    return drawn_row(system, vectors, *timed(lambda: (list(draw(rng).threads) for _ in range(DRAWS))))


def with_stories(documents: Documents, rng: np.random.Generator) -> tuple[Documents, np.ndarray]:
    """The papers, and five stories of eight among them, strong ones and weak ones; and whose story each is, −1 none."""
    assert documents.dates is not None and documents.ids is not None
    text = documents.text()
    words = list(text.vocabulary)
    lengths = text.ids.lengths
    usual = np.flatnonzero((lengths > 100) & (documents.dates < np.datetime64("2010-01-01")))
    rows_of, ids, dates, links = [], [], [], []
    order = np.argsort(documents.dates, kind="stable")
    for story in range(K):
        own = [f"planted{story}word{k}" for k in range(30)]
        share = 50 - 3 * story  # words of the story, of some 160: cosines of .4 to .5
        years = np.sort(rng.choice(np.arange(1990, 2011), LENGTH, replace=False))
        for place, year in enumerate(years.tolist()):
            around = [words[k] for k in text.ids[int(rng.choice(usual))].tolist()]
            rows_of.append(around[: len(around) - share] + rng.choice(own, share).tolist())
            name = f"planted-{story}-{place}"
            ids.append(name)
            dates.append(f"{year}")
            links += [(name, f"planted-{story}-{before}") for before in range(max(0, place - 2), place)]
            older = order[: np.searchsorted(documents.dates[order], np.datetime64(f"{year}-01-01"))]
            newer = order[np.searchsorted(documents.dates[order], np.datetime64(f"{year + 1}-01-01")) :]
            links += [(name, documents.ids[k]) for k in rng.choice(older, 3, replace=False).tolist()]
            links += [(documents.ids[k], name) for k in rng.choice(newer, 3, replace=False).tolist()]
    both = Text.of([*(text.tokens(k) for k in range(len(text))), *rows_of])
    old = []
    for citing in documents.links[:, 0].tolist():  # as many citations, of older papers at random
        older = np.searchsorted(documents.dates[order], documents.dates[citing])
        if older:
            old.append((documents.ids[citing], documents.ids[order[rng.integers(older)]]))
    old = list(dict.fromkeys(old))
    days = np.concatenate([documents.dates, np.array(dates, "datetime64[D]")])
    made = replace(documents, texts=(both,), ids=(*documents.ids, *ids), dates=days).linked([*old, *links])
    return made, np.concatenate([np.full(len(documents), -1), np.repeat(np.arange(K), LENGTH)])


def planted(seed: int) -> Iterable[dict[str, object]]:
    rng = np.random.default_rng(seed)
    documents, story = with_stories(papers(), rng)
    model = Threads(K, 6, seed=seed).fit(documents)
    found = {
        "k-SDPP": [model.sample(rng) for _ in range(20)],
        "k-SDPP, best of 20": model.predict(range(5)),
        "independent": [model.independent(rng) for _ in range(20)],
    }
    for name, sets in found.items():
        within, covered = np.mean([told(one.threads, story) for one in sets], axis=0)
        more = {"within": 100 * float(within), "covered": float(covered)}
        yield row_of("planted", name, f"seed {seed}", draws=len(sets), **more)


def told(threads: Iterable[tuple[int, ...]], story: np.ndarray) -> tuple[float, float]:
    """The share of threads within one story, and the number of stories with such a thread."""
    whole = [set(story[list(path)].tolist()) for path in threads]
    pure = [next(iter(one)) for one in whole if len(one) == 1 and -1 not in one]
    return len(pure) / K, float(len(set(pure)))


def speed() -> Iterable[dict[str, object]]:
    files = ["--documents", str(folder() / "nodes.tsv.gz"), "--links", str(folder() / "edges.tsv.gz")]
    with tempfile.TemporaryDirectory() as place:
        for setting, more in (
            ("one draw", ["--samples", "1"]),
            ("best of 20", []),
            ("similar", ["--follow", "similar"]),
        ):
            command = [sys.executable, "-m", "isogloss", "threads", *files, "-k", str(K), "--length", str(LENGTH)]
            spent = clock.measure([*command, "-o", f"{place}/threads.json", "-q", *more], threads=2)
            yield row_of("speed", "isogloss threads", setting, draws=1, **spent)


DPPY = """
import json, sys, time
import numpy as np
from dppy.finite_dpps import FiniteDPP
features, size, draws = np.load(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
began = time.process_time()
dpp = FiniteDPP("likelihood", L_gram_factor=features.T)
dpp.sample_exact_k_dpp(size=size, random_state=0)
first = time.process_time() - began
began = time.process_time()
for seed in range(draws):
    dpp.sample_exact_k_dpp(size=size, random_state=seed)
print(json.dumps([first, (time.process_time() - began) / draws]))
"""


def kdpp() -> Iterable[dict[str, object]]:
    """Plain k-DPPs of 13,238 documents with 50 features, 10 of them: CPU seconds of the first draw, and of more."""
    features, size, many = Threads().fit(papers()).graph_.features, 10, 50
    peer, single = os.environ.get("THREADS_PEER", sys.executable), {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as place:
        np.save(f"{place}/features.npy", features)
        command = [peer, "-c", DPPY, f"{place}/features.npy", str(size), str(many)]
        said = subprocess.run(command, check=True, capture_output=True, env=os.environ | single, text=True).stdout
    first, each = json.loads(said.strip().splitlines()[-1])
    yield row_of("kdpp", "DPPy", "n 13,238, k 10", draws=many, cpu_seconds=each, first_cpu_seconds=first)
    began = time.process_time()
    process, rng = Dpp(np.zeros(len(features)), features, size=size), np.random.default_rng(0)
    process.sample(rng)
    first, began = time.process_time() - began, time.process_time()
    for _ in range(many):
        process.sample(rng)
    each = (time.process_time() - began) / many
    yield row_of("kdpp", "isogloss", "n 13,238, k 10", draws=many, cpu_seconds=each, first_cpu_seconds=first)


def choose() -> None:
    """Inside and between of draws from papers before 2006, by options."""
    documents = papers()
    assert documents.dates is not None
    documents = documents.take(documents.dates < np.datetime64("2006-01-01"))
    vectors, rng = word_vectors(documents), np.random.default_rng(1)
    for features, neighbours in (("neighbours", None), ("neighbours", 100), ("words", None)):
        model = Threads(K, LENGTH, features=features, neighbours=neighbours).fit(documents)
        for beta in (1.0, 2.0, 3.0, 4.0, 5.0):
            for node in (0.0, 0.05, 0.1, 0.25, 0.5):
                for constant in (0.0, 1.0, 2.0):
                    model.set_params(beta=beta, node_weight=node, constant=constant)
                    inside, between = measured(vectors, [list(model.sample(rng).threads) for _ in range(30)])
                    print(
                        f"{features} {neighbours} beta {beta} node {node} constant {constant}: inside "
                        f"{inside.mean():.1f}, between {between.mean():.1f}, {inside.mean() - between.mean():+.1f}"
                    )


# --- tables


def table() -> None:
    page, found = Path("docs/threads.md"), results()
    lines = ["| threads | inside | between | CPU s a set |", "|---|---|---|---|"]
    used = []
    for row in sorted(found.find(part="draws"), key=lambda row: SYSTEMS.index(row["system"])):
        used.append(("", row["system"], row))
        spans = [
            f"{float(row[name]):.1f} [{float(row[f'{name}_low']):.1f}, {float(row[f'{name}_high']):.1f}]"
            for name in ("inside", "between")
        ]
        lines.append(
            f"| {row['system']} ({row['draws']}) | {spans[0]} | {spans[1]} | {float(row['cpu_seconds']):.2f} |"
        )
    rows.fill(page, "draws", "\n".join([*lines, "", rows.commits(used)]))
    lines, used = ["| threads | within one story, % | stories covered, of 5 |", "|---|---|---|"], []
    for system in dict.fromkeys(row["system"] for row in found.find(part="planted")):
        seeds = found.find(part="planted", system=system)
        used += [("", system, row) for row in seeds]
        within, covered = (np.mean([float(row[name]) for row in seeds]) for name in ("within", "covered"))
        lines.append(f"| {system} ({len(seeds)} seeds of {seeds[0]['draws']}) | {within:.1f} | {covered:.2f} |")
    rows.fill(page, "planted", "\n".join([*lines, "", rows.commits(used)]))
    lines, used = ["| what | seconds | CPU seconds | peak memory, MB |", "|---|---|---|---|"], []
    for row in found.find(part="speed"):
        used.append(("", row["setting"], row))
        lines.append(
            f"| whole command, {row['setting']} | {float(row['seconds']):.1f} | {float(row['cpu_seconds']):.1f} | "
            f"{float(row['peak_mb']):,.0f} |"
        )
    for row in found.find(part="kdpp"):
        used.append(("", f"k-DPP {row['system']}", row))
        lines.append(
            f"| k-DPP of 10 documents, {row['system']} | | {float(row['cpu_seconds']):.3f} a draw, "
            f"{float(row['first_cpu_seconds']):.2f} the first | |"
        )
    rows.fill(page, "speed", "\n".join([*lines, "", rows.commits(used)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--only", help="systems of draws, or seeds of planted, separated by |")
    for flag in ("--again", "--table", "--choose"):
        parser.add_argument(flag, action="store_true")
    given = parser.parse_args()
    if given.choose:
        choose()
        return
    only = given.only.split("|") if given.only else None
    for part in () if given.table else given.part.split(","):
        if part == "draws":
            for system in only or SYSTEMS:
                if given.again or not results().has(part=part, system=system):
                    results().put([draws(system)])
        elif part == "planted":
            for seed in map(int, only) if only else PLANTED_SEEDS:
                if given.again or not results().has(part=part, setting=f"seed {seed}"):
                    results().put(planted(seed))
        elif given.again or not results().has(part=part):
            results().put(speed() if part == "speed" else kdpp())
    table()


if __name__ == "__main__":
    main()
