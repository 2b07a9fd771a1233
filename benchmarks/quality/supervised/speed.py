"""How fast models learn and decode, and what memory they take; rows go to supervised-speed.csv.

Learning: 100 gold pairs of Hansards, settings as they come. Decoding: text that was not seen, from words to links, by
length: what a chart makes of long pairs is another thing than what it makes of short ones.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

from benchmarks import rows
from benchmarks.corpora import all_sets
from benchmarks.quality.supervised import run
from benchmarks.quality.supervised.models import Model, NotYet
from benchmarks.quality.supervised.studies import itg, matching, quadratic
from benchmarks.quality.supervised.texts import benchmark
from isogloss import __version__
from isogloss.data import Bitext

TEXT = "hansards-2k"
N_TRAIN = 100
LONG = "europarl-7way-en-fr"
LENGTHS = {10: 100, 20: 100, 40: 40, 80: 20, 120: 10}
"""Words of the longer side, within a tenth, and how many pairs of that length are decoded."""
LONGEST = 40
COLUMNS = (
    *("date", "machine", "version", "commit", "code", "model", "features", "options", "words", "pairs"),
    *("text_seconds", "train_seconds", "train_cpu_seconds", "decode_seconds", "decode_cpu_seconds", "per_second"),
    *("train_mb", "decode_mb", "threads", "command"),
)
KEY = ("model", "features", "options", "words", "threads")
COMMAND = "python -m benchmarks.quality.supervised --speed"


def results() -> rows.Rows:
    return rows.Rows(run.FOLDER / "supervised-speed.csv", COLUMNS, KEY)


def models() -> dict[str, Model]:
    """Every class, as it comes."""
    return {
        "matching": matching(),
        "M+F": quadratic(fertility=2, pairs=False),
        "M+F+Q": quadratic(fertility=2, pairs=True),
        "ITG, MIRA": itg(blocks=False),
        "BITG, MIRA": itg(blocks=True),
        "BITG, likelihood": itg(trainer="likelihood", blocks=True),
    }


def is_of(row: rows.Row, each: Model) -> bool:
    """Whether a row is of this model."""
    return (row["model"], row["features"], row["options"]) == (each.kind, each.feature_text, each.option_text)


def texts() -> dict[int, Bitext]:
    """New pairs of about each length; the text ends at 40 words, and longer pairs are neighbouring ones joined."""
    data = all_sets()[LONG]
    data.assemble()
    text = Bitext.read(data.source, data.target)
    found = {}
    for length, count in LENGTHS.items():
        pairs: list[tuple[list[str], list[str]]] = []
        source, target = list[str](), list[str]()
        for more_source, more_target in text:
            source, target = [*source, *more_source], [*target, *more_target]
            words = max(len(source), len(target))
            if abs(words - length) <= length / 10:
                pairs.append((source, target))
            if words >= length * 0.9 or length <= LONGEST:
                source, target = [], []
            if len(pairs) == count:
                break
        found[length] = Bitext.of(pairs)
    return found


def measure(chosen: Model, new: dict[int, Bitext], threads: int) -> list[dict[str, Any]]:
    """A row for each length."""
    place = benchmark(TEXT, threads)
    aligner = chosen.make(run.SEED, threads)
    gold = place.pool.take(np.arange(N_TRAIN))
    bitext = place.bitext(gold)
    start = time.perf_counter()
    extractor = aligner.new_extractor().fit(place.text)
    text_seconds = time.perf_counter() - start
    run.reset_peak()
    start, cpu = time.perf_counter(), time.process_time()
    aligner.fit(bitext, gold.links, extractor=extractor)
    common = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": run.commit(),
        "code": run.code(), "model": chosen.kind, "features": chosen.feature_text, "options": chosen.option_text,
        "text_seconds": text_seconds, "train_seconds": time.perf_counter() - start,
        "train_cpu_seconds": time.process_time() - cpu, "train_mb": run.peak_mb(), "threads": threads,
        "command": COMMAND,
    }  # fmt: skip
    aligner.predict(bitext.part(0, 5), probability=False)  # compiled, if it was not yet
    return [common | _decoded(aligner, text) | {"words": words} for words, text in new.items()]


def _decoded(aligner: Any, text: Bitext) -> dict[str, Any]:
    run.reset_peak()
    start, cpu = time.perf_counter(), time.process_time()
    aligner.predict(text, probability=False)
    seconds = time.perf_counter() - start
    return {
        "pairs": len(text), "decode_seconds": seconds, "decode_cpu_seconds": time.process_time() - cpu,
        "per_second": len(text) / seconds, "decode_mb": run.peak_mb(),
    }  # fmt: skip


def measure_all(kinds: str, threads: int, *, again: bool) -> None:
    """Rows that are missing."""
    file, new = results(), texts()
    for name, chosen in models().items():
        same = {"model": chosen.kind, "features": chosen.feature_text, "options": chosen.option_text}
        if (kinds and chosen.kind not in kinds.split(",")) or (not again and file.has(**same, threads=threads)):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = measure(chosen, new, threads)
        except NotYet as problem:
            print(f"left out: {problem}", file=sys.stderr, flush=True)
            continue
        file.put(made)
        rates = ", ".join(f"{row['words']}: {row['per_second']:.1f}" for row in made)
        print(
            f"{name:20} {made[0]['train_seconds']:6.1f} s; sentences/s by words: {rates}", file=sys.stderr, flush=True
        )
