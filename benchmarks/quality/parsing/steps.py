"""Where the time of parsing goes, and what finding candidate links costs: rows of parsing-steps.csv.

python -m benchmarks.quality.parsing.steps            en-ewt
python -m benchmarks.quality.parsing.steps --text hu  another treebank

A first-order parser learns from the first 1,500 training sentences, gold tags, in two passes, and parses the test part.
Rows have CPU seconds of one thread, the least of several runs: all of `predict`, its steps, and candidate links with
the weights of each link looked up one by one (as `PartScorer` does) in place of once for each code.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from benchmarks import rows
from benchmarks.quality.parsing import run
from benchmarks.quality.parsing.texts import GOLD, TEXTS, code_of, given
from isogloss import __version__
from isogloss.data import Treebank
from isogloss.engine.threads import using_threads
from isogloss.tasks.parse import DependencyParser, quick
from isogloss.tasks.parse.words import encode

TEXT, SENTENCES, PASSES, REPEAT = "en-ewt", 1500, 2, 5
KEY = ("data", "step")
COLUMNS = (
    *("date", "machine", "version", "commit", "code", *KEY, "sentences", "words", "links", "cpu_seconds"),
    *("per_second", "command"),
)
COMMAND = "python -m benchmarks.quality.parsing.steps"


def results() -> rows.Rows:
    return rows.Rows(run.FOLDER / "parsing-steps.csv", COLUMNS, KEY)


def least(work: Callable[[], Any]) -> float:
    """CPU seconds, the least of several runs; kernels are compiled before."""
    work()
    spent = []
    for _ in range(REPEAT):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def measure(text: str) -> list[dict[str, object]]:
    """A row for each step."""
    files = given(text, GOLD)
    train, test = Treebank.read(files.train), Treebank.read(files.test)
    parser = DependencyParser(order=1, iterations=PASSES, threads=1).fit(train.part(0, min(SENTENCES, len(train))))
    learnt, seen, words = parser._seen(test)
    assert learnt.filter is not None
    candidates = learnt.filter.candidates
    every = int((words.lengths**2).sum())
    with using_threads(1):
        steps = {
            "predict": least(lambda: parser.predict(test)),
            "words": least(lambda: encode(seen, learnt.columns)),
            "candidates": least(lambda: candidates(words)),
        }
        with patch.object(quick, "WORTH", -1.0):
            steps["candidates, one by one"] = least(lambda: candidates(words))
        steps["trees"] = least(lambda: [trees.marginals() for trees in parser._trees(words)]) - steps["candidates"]
    base = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": run.commit(),
        "code": code_of(*run.PARSER_SOURCES), "data": text, "sentences": len(test), "words": test.n_words,
        "links": every, "command": COMMAND if text == TEXT else f"{COMMAND} --text {text}",
    }  # fmt: skip
    return [base | {"step": step, "cpu_seconds": s, "per_second": len(test) / s} for step, s in steps.items()]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.parsing.steps", description=__doc__.split("\n")[0])
    parser.add_argument("--text", default=TEXT, help=f"one of {', '.join(TEXTS)}; default: {TEXT}")
    arguments = parser.parse_args(argv)
    if arguments.text not in TEXTS:
        raise SystemExit(f"--text: {arguments.text} should be among {', '.join(TEXTS)}")
    run.commit()
    found = measure(arguments.text)
    results().put(found)
    for row in found:
        said = f"{row['step']}: {row['cpu_seconds']:.3f} CPU s, {row['per_second']:,.0f} sentences a second"
        print(f"{row['data']} {said}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
