"""Tagging from a hundred labelled sentences and a graph: the second experiment of He, Gillenwater and Taskar, 2013.

python -m benchmarks.quality.graph_tagging                  all rows that are missing: three sets of labelled sentences
python -m benchmarks.quality.graph_tagging --full           ten sets
python -m benchmarks.quality.graph_tagging --only bg,de     some languages
python -m benchmarks.quality.graph_tagging --baselines 60   GP and GP->CRF alone, with another number of neighbours
python -m benchmarks.quality.graph_tagging --again          replace rows that are there
python -m benchmarks.quality.graph_tagging --table          run nothing: write the table of docs/tag-with-neighbours.md

Universal tags (12). 1,000 sentences are drawn and split into ten sets of 100 labelled ones; all other sentences of the
treebank are unlabelled text and test at the same time. Errors are percentages of their words. Options of the tagger
(features of the graph in small letters, strength, rounds) were chosen on Portuguese, which is not among the rows.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import rows
from isogloss import __version__
from isogloss.data.tagsets import to_universal12
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.threads import using_threads
from isogloss.learners.loglinear import Lbfgs, Likelihood, Total
from isogloss.learners.runner import run
from isogloss.tasks.tag.graph import GraphTagger, Material

TEXTS = {
    "bg": ("bg-btb/dev", "bg-btb/test"),
    "de": ("de-gsd/dev", "de-gsd/test"),
    "el": ("el-gdt/train",),
    "en": ("en-lines/dev", "en-lines/test"),
    "es": ("es-gsd/dev", "es-gsd/test"),
    "hu": ("hu-szeged/train", "hu-szeged/dev", "hu-szeged/test"),
    "it": ("partut/it.train", "partut/it.dev", "partut/it.test"),
    "la": ("la-proiel/dev", "la-proiel/test"),
}
PAGE = Path("docs/tag-with-neighbours.md")
METHODS = ("GP", "GP->CRF", "CRF", "PR1", "PR")
NEIGHBOURS = 60
"""Those of the paper, with which its baselines are shown as well."""
COLUMNS = (
    "date", "machine", "version", "commit", "command", "text", "labels", "method", "decoder", "options", "sentences",
    "words", "error", "unseen_words", "unseen_error", "rounds", "seconds", "cpu_seconds",
)  # fmt: skip
KEY = ("text", "labels", "method", "decoder")
Note = Callable[[str, str, NDArray[Any], int], None]


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("graph_tagging.csv"), COLUMNS, KEY)


def folder() -> Path:
    return Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "treebanks"


def read(names: tuple[str, ...]) -> Treebank:
    """All parts of a treebank as one, with universal tags."""
    data = b"".join(gzip.decompress((folder() / f"{name}.conllu.gz").read_bytes()) for name in names)
    trees = Treebank.from_bytes(data, names[0])
    ids, vocabulary = trees.columns["upos"]
    mapped, numbers = vocabulary.mapped(to_universal12)
    return trees.with_columns(upos=Column(numbers[ids].astype(np.int32), Vocabulary(mapped)))


def split(trees: Treebank, number: int) -> tuple[Treebank, Treebank]:
    """A hundred sentences, and all others."""
    order = np.random.default_rng(2013).permutation(len(trees))
    chosen = np.zeros(len(trees), np.bool_)
    chosen[order[100 * number : 100 * (number + 1)]] = True
    return trees.take(chosen), trees.take(~chosen)


def named(method: str, neighbours: int | None) -> str:
    """A baseline that has another number of neighbours than the tagger says so."""
    return method if neighbours is None else f"{method}, {neighbours} neighbours"


def measure(material: Material, note: Note, neighbours: int | None = None) -> None:
    """All methods on one set, or the baselines alone; `note` is told method, decoder, numbers of labels and rounds."""
    spread, _ = material.propagated()
    note(named("GP", neighbours), "", spread, 0)
    learner = material.regularised()
    with using_threads():
        state = learner.init()
        if neighbours is None:
            note("CRF", "p", decoded(material.unlabelled.distributions(state.weights)), 0)
        guesses = np.split(spread, material.text.offsets[1:-1])
        both = Total([learner.supervised, Likelihood(material.unlabelled, gold=guesses)])
        climber = Lbfgs(both, l2=learner.l2)
        taught = run(climber, climber.init(state.weights), iterations=60, tolerance=1e-5).state.weights
        note(named("GP->CRF", neighbours), "p", decoded(material.unlabelled.distributions(taught)), 0)
        if neighbours is not None:
            return
        for done in range(1, material.tagger.iterations + 1):
            before = state.objective
            state, info = learner.step(state)
            still = info.objective - before < material.tagger.tolerance * abs(info.objective)
            last = still or done == material.tagger.iterations
            if done == 1 or last:
                name = "PR" if last else "PR1"
                note(name, "q", decoded(learner.expect(state).q.members[0]), done)
                note(name, "p", decoded(material.unlabelled.distributions(state.weights)), done)
            if last:
                break


def decoded(chains: Any) -> NDArray[Any]:
    return np.asarray(chains.marginals().values.reshape(-1, chains.k).argmax(axis=1))


def measure_set(name: str, trees: Treebank, number: int, command: str, neighbours: int | None = None) -> None:
    labelled, rest = split(trees, number)
    clock, cpu = time.time(), time.process_time()
    tagger = GraphTagger() if neighbours is None else GraphTagger(neighbours=neighbours)
    material = Material(tagger, labelled, rest)
    ids, vocabulary = rest.columns["upos"]
    gold = Vocabulary(material.labels).encode(vocabulary)[ids]
    known = set(labelled.columns["form"].ids.tolist())
    unseen = ~np.isin(rest.columns["form"].ids, list(known))  # one vocabulary: both are parts of one treebank
    shown = " ".join(
        f"{key}={getattr(tagger, key)}" for key in ("order", "neighbours", "strength", "sigma", "iterations")
    )
    base: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": command,
        "text": name, "labels": number, "options": shown, "sentences": len(rest), "words": rest.n_words,
        "unseen_words": int(unseen.sum()),
    }  # fmt: skip

    def note(method: str, decoder: str, found: NDArray[Any], rounds: int) -> None:
        wrong = found != gold
        row = {**base, "method": method, "decoder": decoder, "rounds": rounds, "error": 100 * float(wrong.mean())}
        row |= {"unseen_error": 100 * float(wrong[unseen].mean())}
        row |= {"seconds": time.time() - clock, "cpu_seconds": time.process_time() - cpu}
        results().put([row])
        print(
            f"{name} {number} {method} {decoder}: {row['error']:.2f} %, unseen {row['unseen_error']:.2f} %, "
            f"{row['seconds']:.0f} s",
            file=sys.stderr,
            flush=True,
        )

    measure(material, note, neighbours)


def means(kept: list[rows.Row], text: str | None, method: str, decoder: str, column: str = "error") -> float:
    """Of all sets of one language, or of the languages' means."""
    if text is None:
        names = sorted({row["text"] for row in kept})
        return float(np.mean([means(kept, name, method, decoder, column) for name in names]))
    some = [float(r[column]) for r in kept if (r["text"], r["method"], r["decoder"]) == (text, method, decoder)]
    return float(np.mean(some)) if some else float("nan")


def shown(value: float) -> str:
    """A mean; · where rows are missing."""
    return "·" if np.isnan(value) else f"{value:.2f}"


SHOWN = (("GP", ""), ("GP->CRF", "p"), ("CRF", "p"), ("PR1", "q"), ("PR", "q"), ("PR", "p"))


def table() -> str:
    """Errors of each language and method, means over sets, and of words that the labelled sentences do not have."""
    kept = results().read()
    whole = {(row["text"], row["labels"]) for row in kept if row["method"] == "PR" and row["decoder"] == "p"}
    kept = [row for row in kept if (row["text"], row["labels"]) in whole]
    names = [f"{method}, {decoder}" if method.startswith("PR") else method for method, decoder in SHOWN]
    lines = [f"| language | sets | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for text in [*sorted({row["text"] for row in kept}), None]:
        sets = len({row["labels"] for row in kept if row["text"] == text})
        cells = [shown(means(kept, text, *each)) for each in SHOWN]
        lines.append(f"| {text or 'mean'} | {sets if text else ''} | {' | '.join(cells)} |")
    cells = [shown(means(kept, None, *each, "unseen_error")) for each in SHOWN]
    lines.append(f"| mean, unseen words | | {' | '.join(cells)} |")
    used = [(row["text"], f"set {row['labels']}", row) for row in kept if (row["method"], row["decoder"]) in SHOWN]
    return "\n".join([*lines, "", rows.commits(used)])


def neighbours_table() -> str:
    """Baselines with as many neighbours as the tagger has and with those of the paper, on the same sets."""
    kept, last = results().read(), (named("GP->CRF", NEIGHBOURS), "p")
    whole = {(row["text"], row["labels"]) for row in kept if (row["method"], row["decoder"]) == last}
    kept = [row for row in kept if (row["text"], row["labels"]) in whole]
    if not kept:
        return "*Not measured yet.*"
    columns = [("GP", ""), (named("GP", NEIGHBOURS), ""), ("GP->CRF", "p"), last, ("CRF", "p")]
    lines = [f"| language | sets | {' | '.join(name for name, _ in columns)} |", "|---" * (len(columns) + 2) + "|"]
    for text in [*sorted({row["text"] for row in kept}), None]:
        sets = len({row["labels"] for row in kept if row["text"] == text})
        cells = [shown(means(kept, text, *each)) for each in columns]
        lines.append(f"| {text or 'mean'} | {sets if text else ''} | {' | '.join(cells)} |")
    used = [(row["method"], row["text"], row) for row in kept if (row["method"], row["decoder"]) in columns]
    return "\n".join([*lines, "", rows.commits(used)])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.graph_tagging", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="languages, such as bg,de; default: all")
    parser.add_argument("--baselines", type=int, metavar="N", help="GP and GP->CRF alone, with N neighbours")
    parser.add_argument("--sets", type=int, default=3, help="sets of labelled sentences; default: 3")
    parser.add_argument("--full", action="store_true", help="ten sets of labelled sentences, not three")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--table", action="store_true", help="run nothing: write the table into its page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        rows.fill(PAGE, "table", table())
        rows.fill(PAGE, "neighbours", neighbours_table())
        return
    if not folder().exists():
        print(f"graph_tagging: skipped, there is no {folder()}; see ISOGLOSS_DATA", file=sys.stderr)
        return
    command = "python -m benchmarks.quality.graph_tagging" + (" --full" if arguments.full else "")
    neighbours, last = arguments.baselines, "PR"
    if neighbours:
        command, last = f"{command} --baselines {neighbours}", named("GP->CRF", neighbours)
    for number in range(10 if arguments.full else arguments.sets):
        for name in arguments.only.split(",") if arguments.only else TEXTS:
            same = {"text": name, "labels": number, "method": last, "decoder": "p"}  # the last that a set writes
            if arguments.again or not results().is_done(**same, outdated=arguments.outdated):
                measure_set(name, read(TEXTS[name]), number, command, neighbours or None)


if __name__ == "__main__":
    main()
