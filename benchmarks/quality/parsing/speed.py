"""How fast models parse, from CoNLL-U to CoNLL-U on two threads; rows go to parsing-speed.csv.

The test part of one treebank is parsed once and several times over, by models that the quality rows have learnt: the
whole command counts what it takes to start, the difference of the two is the rate once it is running.
"""

from __future__ import annotations

import json
import sys

from benchmarks import rows
from benchmarks.clock import measure as clock
from benchmarks.quality.parsing import run
from benchmarks.quality.parsing.models import ISOGLOSS, NotHere
from benchmarks.quality.parsing.studies import OURS, PEERS, Job
from benchmarks.quality.parsing.texts import GOLD, KEPT, given, gold

TEXT = "en-ewt"
TIMES = 10
REPEAT = 3
THREADS = 2
KEY = ("data", "model", "options")
COLUMNS = (
    *("date", "machine", "version", "commit", "code", "system_version", *KEY, "sentences", "seconds", "cpu_seconds"),
    *("times", "seconds_all", "cpu_seconds_all", "per_second_whole", "per_second", "parse_mb", "train_seconds"),
    *("train_cpu_seconds", "train_mb", "train_threads", "threads", "command"),
)
COMMAND = "python -m benchmarks.quality.parsing --speed"


def results() -> rows.Rows:
    return rows.Rows(run.FOLDER / "parsing-speed.csv", COLUMNS, KEY)


def measure(job: Job) -> dict[str, object]:
    """The row of a job whose model is kept; the best of a few times by the wall clock."""
    version, place = job.model.version, run.model_of(job)
    if not (place / "trained.json").exists():
        raise NotHere(f"{job.model}: no model is kept; run --only {TEXT}/peers --models {job.model.kind!r} first")
    learnt = json.loads((place / "trained.json").read_text())
    if job.model.kind == ISOGLOSS and learnt["code"] != run.code(job):
        raise NotHere(f"{job.model}: other code has learnt the model that is kept; run --only {TEXT}/peers --stale")
    files = given(job.text, job.tags)
    folder = KEPT / "speed"
    folder.mkdir(parents=True, exist_ok=True)
    several = folder / f"{job.text}-{TIMES}.conllu"
    several.write_bytes(files.test.read_bytes() * TIMES)
    found = {}
    for name, test in (("once", files.test), ("all", several)):
        command = job.model.apply(test, job.tags, place, folder / "parsed.conllu", THREADS)
        reports = [clock(command, threads=THREADS, log=folder / "log.txt") for _ in range(REPEAT)]
        found[name] = min(reports, key=lambda report: report["seconds"])
    sentences = len(gold(job.text))
    return run.about(job, THREADS) | rates(found["once"], found["all"], sentences) | {
        "data": job.text, "model": job.model.kind, "options": job.model.options, "system_version": version,
        "train_seconds": learnt["seconds"], "train_cpu_seconds": learnt["cpu_seconds"], "train_mb": learnt["peak_mb"],
        "train_threads": learnt["threads"], "command": COMMAND,
    }  # fmt: skip


def rates(once: dict[str, float], several: dict[str, float], sentences: int) -> dict[str, object]:
    """Sentences a second: of the whole command over all texts, and of what is added by texts after the first.

    Examples
    --------
    >>> found = rates({"seconds": 2.0, "cpu_seconds": 2.0}, {"seconds": 6.0, "cpu_seconds": 6.0, "peak_mb": 1.0}, 1000)
    >>> found["per_second_whole"], found["per_second"]
    (500.0, 1000.0)
    """
    more = several["seconds"] - once["seconds"]
    return {
        "sentences": sentences, "seconds": once["seconds"], "cpu_seconds": once["cpu_seconds"], "times": TIMES,
        "seconds_all": several["seconds"], "cpu_seconds_all": several["cpu_seconds"],
        "per_second_whole": sentences / once["seconds"], "parse_mb": several["peak_mb"],
        "per_second": sentences * (TIMES - 1) / more if more > 0 else "",
    }  # fmt: skip


def measure_all(models: str, *, again: bool, outdated: bool = False) -> None:
    """Rows that are missing."""
    file = results()
    kinds = models.split(",") if models else []
    for model in (*OURS, *PEERS):
        job = Job(TEXT, GOLD, model)
        same = {"data": TEXT, "model": model.kind, "options": model.options}
        if (kinds and model.kind not in kinds and str(model) not in kinds) or (
            not again and file.is_done(**same, outdated=outdated)
        ):
            continue
        try:
            row = measure(job)
        except (NotHere, RuntimeError) as problem:
            print(f"left out: {problem}", file=sys.stderr, flush=True)
            continue
        file.put([row])
        rate = row["per_second"]
        said = f"{rate:.0f} sentences a second" if isinstance(rate, float) else "too noisy for a rate"
        print(f"{model!s:25} {said}", file=sys.stderr, flush=True)
