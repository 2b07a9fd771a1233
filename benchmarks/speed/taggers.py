"""Seconds of taggers without tagged text: learning from a dictionary, building a graph, tagging.

python -m benchmarks.speed.taggers        all, 2 threads; rows go to taggers.csv

Text is Europarl and EWT, the dictionary is of Wiktionary. Kernels are compiled before the clock starts; CPU seconds are
those of all threads. BLAS has one thread, as in commands.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks import corpora, rows
from isogloss import __version__
from isogloss.data.bitext import Bitext
from isogloss.data.tag_dictionary import TagDictionary
from isogloss.data.tagsets import retagged
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.tasks.tag import CrfTagger, DictionaryTagger, GraphTagger
from isogloss.tasks.tag.base import ColumnTagger
from isogloss.tasks.tag.similarity import common_suffixes, context_axis, similarity, trigrams

COLUMNS = ("date", "machine", "version", "commit", "command", "work", "size", "unit", "seconds", "cpu_seconds", "rate")
THREADS, TRIES = 2, 3
PAPER = {"features": "paper", "iterations": 50, "start": "random", "first_order": 0}


def clocked(work: Callable[[], object]) -> tuple[float, float]:
    """The least of some tries: wall and CPU seconds."""
    tries = []
    for _ in range(TRIES):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        tries.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(tries)


def graph(text: Treebank) -> int:
    """Build a graph of trigrams; how many types it has."""
    ids, vocabulary = text.columns["form"]
    with using_threads(THREADS):
        axis = context_axis(ids, vocabulary.types, text.offsets, common_suffixes(vocabulary.types))
        vertices = trigrams(axis)
        similarity(axis, vertices, 10)
    return vertices.size


def measure() -> None:
    data = corpora.data_folder()
    file = rows.Rows(Path(__file__).with_name("taggers.csv"), COLUMNS, ("work",))

    def put(work: str, size: int, unit: str, seconds: tuple[float, float]) -> None:
        row: dict[str, object] = {
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
            "command": "python -m benchmarks.speed.taggers", "work": work, "size": size, "unit": unit,
            "seconds": seconds[0], "cpu_seconds": seconds[1], "rate": size / seconds[0],
        }  # fmt: skip
        file.put([row])
        print(f"{work}: {size:,} {unit}, {seconds[0]:.1f} s, {seconds[1]:.1f} CPU s, {size / seconds[0]:,.0f} a second")

    lines = Bitext.read(*(data / "bitext/europarl-7way" / f"{name}.txt.gz" for name in ("en", "de")))
    german = Treebank.from_text(lines.target[:4_700])
    words = TagDictionary.read(data / "tagdict/de.tsv.gz")
    english = Treebank.read(data / "treebanks/en-ewt/train.conllu.gz")
    test = Treebank.from_text(lines.target[20_000:25_000])
    DictionaryTagger(words, threads=THREADS, **PAPER).fit(german.part(0, 100))  # type: ignore[arg-type]
    for name, options in (("SHMM-ME, paper's settings", PAPER), ("SHMM-ME, defaults", {})):
        learn = DictionaryTagger(words, threads=THREADS, **options)  # type: ignore[arg-type]
        put(f"learn {name}", german.n_words, "words", clocked(lambda learn=learn: learn.fit(german)))  # type: ignore[misc]
    size = graph(english.part(0, 100)) and graph(english)
    put("graph of trigrams", size, "types", clocked(lambda: graph(english)))
    few = retagged(english.part(0, 100), "universal12")
    taggers: dict[str, ColumnTagger] = {
        "DictionaryTagger": learn,
        "CrfTagger": CrfTagger(iterations=2, threads=THREADS).fit(english.part(0, 2_000)),
        "GraphTagger": GraphTagger(iterations=1, threads=THREADS).fit(few, english.part(100, 600)),
    }
    for name, tagger in taggers.items():
        tagger.predict(test.part(0, 100))
        put(f"tag by {name}", test.n_words, "words", clocked(lambda tagger=tagger: tagger.predict(test)))  # type: ignore[misc]


if __name__ == "__main__":
    measure()
