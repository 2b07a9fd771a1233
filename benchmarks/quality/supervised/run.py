"""One row: learn from gold, align the test pairs, score them, and compare with the unsupervised default."""

from __future__ import annotations

import gc
import hashlib
import re
import resource
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import rows, scoring
from benchmarks.quality.supervised import active, texts
from benchmarks.quality.supervised.models import HMM
from benchmarks.quality.supervised.studies import Job
from benchmarks.quality.supervised.texts import Benchmark, Gold, benchmark, code_of
from isogloss import __version__
from isogloss.data import Links
from isogloss.data.formats import read_links, write_links
from isogloss.metrics import compare, score_links
from isogloss.tasks.align.features import PairFeatures
from isogloss.tasks.align.supervised.parts import take_pairs
from isogloss.tasks.align.supervised.training import make_folds

FOLDER = Path(__file__).parents[1]
LINKS = texts.KEPT / "links"
KEY = ("data", "n_train", "order", "model", "features", "options")
COLUMNS = (
    *("date", "machine", "version", "commit", "code", *KEY, "n_test"),
    *("P", "R", "F", "AER", "AER_low", "AER_high", "links"),
    *("AER_cv", "chosen", "against_hmm", "against_low", "against_high", "p"),
    *("seconds", "cpu_seconds", "decode_seconds", "peak_mb", "threads", "command", "signature"),
)
SEED = 0
FOLDS = 5


def results() -> rows.Rows:
    return rows.Rows(FOLDER / "supervised.csv", COLUMNS, KEY)


def key_of(job: Job) -> dict[str, object]:
    """The columns that say which run a row is of."""
    model = job.model
    return {
        "data": job.text, "n_train": job.n_train, "order": job.order, "model": model.kind,
        "features": model.feature_text, "options": model.option_text,
    }  # fmt: skip


def code() -> str:
    """A hash of all sources that a row depends on."""
    return code_of("tasks/align", "data", "learners", "structures")


@cache
def commit() -> str:
    """Of the checkout when first asked."""
    return rows.commit()


def gold_to_learn(place: Benchmark, job: Job) -> Gold:
    """The pairs that a job learns from: the first, all, or the first of an order drawn by the seed it names."""
    pool = place.pool
    if job.n_train > len(pool):
        raise SystemExit(f"{job}: there are {len(pool)} pairs to learn from")
    if job.order == "first":
        return pool.take(np.arange(job.n_train))
    if job.order == "all":
        return pool
    kind, number = job.order.split()
    if kind == "suggest":
        return pool.take(np.sort(active.suggested(place, job.model, int(number), job.n_train)))
    return pool.take(np.sort(active.drawn(len(pool), int(number))[: job.n_train]))


def measure(job: Job, threads: int) -> dict[str, object]:
    """The row of a job."""
    place = benchmark(job.text, threads)
    test = place.test(job.n_train)
    reference = place.reference(job.n_train)
    found: dict[str, Any]
    if job.model.kind == HMM:
        links, found = reference, {"seconds": place.reference_seconds}
    else:
        links, found = learn(place, job, test, threads)
    write_links(links, links_of(job))
    return key_of(job) | scores(links, reference, test.links) | found | about(job, threads)


def learn(place: Benchmark, job: Job, test: Gold, threads: int) -> tuple[Links, dict[str, Any]]:
    """Train and decode, with features that are there already; times are of weights and structures alone."""
    aligner = job.model.make(SEED, threads)
    train = gold_to_learn(place, job)
    own, other = (place.features(gold, aligner) for gold in (train, test))
    reset_peak()
    start, cpu = time.perf_counter(), time.process_time()
    aligner.fit_features(own, train.links)
    trained, cpu_trained = time.perf_counter(), time.process_time()
    links = aligner.predict_features(other)
    done = time.perf_counter()
    setting = {name: value for name, value in aligner.setting_.as_dict().items() if value is not None}
    peak = peak_mb()
    return links, {
        "AER_cv": held_out_error(job, aligner, own, train.links, threads),
        "chosen": " ".join(f"{name}={value:g}" for name, value in setting.items()),
        "seconds": trained - start,
        "cpu_seconds": cpu_trained - cpu,
        "decode_seconds": done - trained,
        "peak_mb": peak,
    }


def held_out_error(job: Job, aligner: Any, features: PairFeatures, gold: Links, threads: int) -> object:
    """AER of five-fold cross-validation inside the training gold: that by which the aligner chose, if it did."""
    if aligner.tuning_:
        return 100 * min(tried["aer"] for tried in aligner.tuning_)
    if not job.cross_validated:
        return ""
    every = np.arange(len(gold))
    folds = make_folds(len(gold), FOLDS, SEED)
    parts = []
    for fold in folds:
        rest = np.setdiff1d(every, fold)
        other = job.model.make(SEED, threads).fit_features(take_pairs(features, rest), gold.take(rest))
        parts += list(other.predict_features(take_pairs(features, fold)))
    return score_links(Links.of(parts), gold.take(np.concatenate(folds)), bootstrap=0).aer


def scores(links: Links, reference: Links, gold: Links) -> dict[str, object]:
    """Error rates with intervals, and the paired difference from the reference."""
    score = score_links(links, gold, seed=scoring.SEED)
    low, high = score.intervals["aer"]
    test = compare(links, reference, gold, seed=scoring.SEED)
    return {
        "n_test": len(gold), "P": score.precision, "R": score.recall, "F": score.f1,
        "AER": score.aer, "AER_low": low, "AER_high": high, "links": score.links,
        "against_hmm": test.delta, "against_low": test.interval[0], "against_high": test.interval[1],
        "p": f"{test.p_value:.4f}", "signature": score.signature,
    }  # fmt: skip


def about(job: Job, threads: int) -> dict[str, object]:
    studies = sorted(tag for tag in job.tags if tag != job.text)
    return {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": commit(), "code": code(),
        "threads": threads,
        "command": f"python -m benchmarks.quality.supervised --only {job.text}/{studies[-1]} --models {job.model.kind}",
    }  # fmt: skip


def links_of(job: Job) -> Path:
    """Where the links of a job are kept, for comparisons between rows."""
    LINKS.mkdir(parents=True, exist_ok=True)
    text = repr(sorted(key_of(job).items()))
    return LINKS / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.txt"


def kept_links(job: Job) -> Links | None:
    path = links_of(job)
    return read_links(path, format="pharaoh", index_base=0) if path.exists() else None


# --- memory: the largest this process was since the last reset


def reset_peak() -> None:
    gc.collect()
    with suppress(OSError):  # elsewhere the peak is that of the process so far
        Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    try:
        found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
        assert found is not None
        return int(found[1]) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
