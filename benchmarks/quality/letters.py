"""Handwritten letters, two labelled words of each kind: the first experiment of He, Gillenwater and Taskar, CoNLL 2013.

python -m benchmarks.quality.letters                all rows that are missing: three sets of labelled words
python -m benchmarks.quality.letters --full         ten sets
python -m benchmarks.quality.letters --choose       cross-validation inside the labelled words of the first set
python -m benchmarks.quality.letters --table        run nothing: write the table into docs/learners/graphs.md

52,152 letters of 6,877 words, 55 of them different; 110 words are labelled, the rest is unlabelled text and test at the
same time. Errors are percentages of the letters of the unlabelled words. The graph is kept in out/letters.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import rows
from benchmarks.quality import letters_graph
from benchmarks.quality.letters_graph import Letters
from isogloss import __version__
from isogloss.engine.threads import using_threads
from isogloss.learners.graphs import propagate
from isogloss.learners.loglinear import ChainModel, Lbfgs, Likelihood, Total
from isogloss.learners.posterior import GraphLaplacian
from isogloss.learners.runner import run
from isogloss.learners.semi_supervised import Regularised, vertex_features

K = 26
CACHE, PAGE = Path("out/letters"), Path("docs/learners/graphs.md")
METHODS = ("GP", "GP->CRF", "CRF", "PR1", "PR")
PAPER = {"GP": 17.57, "GP->CRF": 15.07, "CRF": 9.82, "PR1": 6.03, "PR": 4.89}
OPTIONS: dict[str, float] = {"strength": 0.1, "bandwidth": 10.0, "neighbours": 20, "sigma": 100.0}
ROUNDS, LOUDER = 3, 10.0
COLUMNS = (
    "date", "machine", "version", "commit", "command", "labels", "method", "decoder", "options", "letters", "error",
    "iterations", "seconds", "cpu_seconds",
)  # fmt: skip
KEY = ("labels", "method", "decoder", "options")


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("letters.csv"), COLUMNS, KEY)


class Pixels:
    """Scores of letters from the pixels of an image and of the two beside it; features for `ChainModel`.

    Pixels that are on are scaled so that together they weigh as much as the transitions that fire at a position: three
    labels, two, and one. (Cross-validation inside the labelled words of sets 0 and 1 prefers 3 to 1, 7 and 20.)
    """

    FIRED = 3.0

    def __init__(self, values: NDArray[np.float64]) -> None:
        self.values, self.attributes, self.k = values, SimpleNamespace(n_rows=len(values)), K

    @classmethod
    def of(cls, letters: Letters) -> Pixels:
        own = letters.pixels.astype(np.float64)
        before, after = np.zeros_like(own), np.zeros_like(own)
        before[1:], after[:-1] = own[:-1], own[1:]
        before[letters.offsets[:-1]] = 0.0
        after[letters.offsets[1:] - 1] = 0.0
        window = np.concatenate([before, own, after], axis=1)
        window *= cls.FIRED / np.maximum(window.sum(axis=1, keepdims=True), 1.0)
        return cls(np.concatenate([window, np.ones((len(own), 1))], axis=1))

    def times(self, factor: float) -> Pixels:
        """Pixels that count so much more; their weights count so much less."""
        values = self.values * factor
        values[:, -1] = 1.0
        return Pixels(values)

    def take(self, at: NDArray[np.int64]) -> Pixels:
        return Pixels(np.ascontiguousarray(self.values[at]))

    @property
    def n_weights(self) -> int:
        return self.values.shape[1] * K

    def nodes(self, weights: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray((self.values[rows] if len(rows) else self.values) @ weights.reshape(-1, K))

    def add_totals(self, x: Any, out: Any, rows: Any, scale: float) -> None:
        out += scale * ((self.values[rows] if len(rows) else self.values).T @ x.reshape(-1, K)).ravel()


class Experiment:
    """One set of labelled words: models, the graph and what is right."""

    def __init__(
        self, letters: Letters, pixels: Pixels, labelled: NDArray[np.int64], options: dict[str, float]
    ) -> None:
        self.letters, self.options = letters, options
        known = np.zeros(len(letters.words), np.bool_)
        known[labelled] = True
        lengths = np.diff(letters.offsets)
        is_known = np.repeat(known, lengths)
        self.at, self.rest = np.flatnonzero(is_known), np.flatnonzero(~is_known)

        def models(seen: Pixels) -> list[ChainModel]:
            return [
                ChainModel(seen.take(where), lengths[words], order=2)  # type: ignore[arg-type]
                for where, words in ((self.at, known), (self.rest, ~known))
            ]

        self.labelled, self.unlabelled = models(pixels)
        # The same field in other units: in few steps of L-BFGS, features of small values would hardly be learnt.
        self.loud = models(pixels.times(LOUDER))
        self.gold = np.split(letters.labels[self.at], np.cumsum(lengths[known])[:-1])
        self.graph = letters_graph.graph(
            letters, CACHE, bandwidth=options["bandwidth"], neighbours=int(options["neighbours"])
        )
        self.fixed = np.zeros((len(letters.labels), K))
        self.fixed[self.at, letters.labels[self.at]] = 1.0

    @property
    def l2(self) -> float:
        return self.options["sigma"] ** -2

    def error(self, found: NDArray[np.int64]) -> float:
        """Percentage of the letters of unlabelled words that are wrong."""
        return 100 * float(np.mean(found != self.letters.labels[self.rest]))

    def decoded(self, chains: Any) -> NDArray[np.int64]:
        """The most probable label of each letter."""
        return np.asarray(chains.marginals().values.reshape(-1, K).argmax(axis=1))

    def propagated(self) -> NDArray[np.int64]:
        return np.asarray(propagate(self.graph, self.fixed, tolerance=1e-4).labels[self.rest].argmax(axis=1))

    def climb(self, objective: Any, steps: int = 200, start: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        learner = Lbfgs(objective, l2=self.l2)
        with using_threads():
            return run(learner, learner.init(start), iterations=steps, tolerance=1e-6).state.weights

    def regularised(self) -> Regularised:
        penalty = GraphLaplacian(self.graph, np.ones(len(self.fixed)), K, fixed=self.fixed)
        features = vertex_features(self.rest, len(self.fixed), K)
        options = {"strength": self.options["strength"], "l2": self.l2}
        known, rest = self.loud
        return Regularised(known, self.gold, rest, features, penalty, **options, inner=10, climbs=20)

    def louder(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of the quiet models for the loud ones."""
        out = weights.copy()
        out[: 384 * K] /= LOUDER
        return out


def label_set(letters: Letters, number: int) -> NDArray[np.int64]:
    """Two words of each kind, drawn at random."""
    rng = np.random.default_rng([number, 2013])
    kinds = np.unique(np.array(letters.words), return_inverse=True)[1]
    return np.sort(np.concatenate([rng.choice(np.flatnonzero(kinds == kind), 2, replace=False) for kind in range(55)]))


Note = Callable[[str, str, float, int], None]


def measure(experiment: Experiment, missing: Callable[[str], bool], note: Note) -> None:
    """The methods that are missing, on one set of labelled words; `note` is told method, decoder, error, iterations."""
    supervised = Likelihood(experiment.labelled, gold=experiment.gold)
    weights = experiment.climb(supervised)
    if missing("CRF"):
        note("CRF", "p", experiment.error(experiment.decoded(experiment.unlabelled.distributions(weights))), 0)
    if missing("PR"):
        regularise(experiment, weights, note)
    if missing("GP") or missing("GP->CRF"):
        spread = experiment.propagated()
        note("GP", "", experiment.error(spread), 0)
        guesses = np.split(spread, np.cumsum(experiment.unlabelled.lengths)[:-1])
        both = Total([supervised, Likelihood(experiment.unlabelled, gold=guesses)])
        taught = experiment.climb(both, 80, weights)
        note("GP->CRF", "p", experiment.error(experiment.decoded(experiment.unlabelled.distributions(taught))), 0)


def regularise(experiment: Experiment, weights: NDArray[np.float64], note: Note) -> None:
    """PR after one round (PR1) and after all; q is that of the weights which the round ends with."""
    learner = experiment.regularised()
    state = learner.init(experiment.louder(weights))
    for done in range(1, ROUNDS + 1):
        state, info = learner.step(state)
        print(f"  {done}: {info}", file=sys.stderr, flush=True)
        with using_threads():
            for decoder, chains in (
                ("q", learner.expect(state).q.members[0]),
                ("p", experiment.loud[1].distributions(state.weights)),
            ):
                name = "PR" if done == ROUNDS else f"PR{done}"
                note(name, decoder, experiment.error(experiment.decoded(chains)), done)


def shown_options(options: dict[str, float]) -> str:
    return " ".join(f"{name}={value:g}" for name, value in options.items())


def measure_set(
    letters: Letters,
    pixels: Pixels,
    number: int,
    options: dict[str, float],
    command: str,
    *,
    again: bool,
    outdated: bool,
) -> None:
    shown = shown_options(options)
    base: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": command, "labels": number, "options": shown,
    }  # fmt: skip
    experiment = Experiment(letters, pixels, label_set(letters, number), options)
    clock, cpu = time.time(), time.process_time()

    def note(method: str, decoder: str, error: float, iterations: int) -> None:
        spent = {"seconds": time.time() - clock, "cpu_seconds": time.process_time() - cpu}
        results().put(
            [{**base, **spent, "method": method, "decoder": decoder, "error": error, "iterations": iterations,
              "letters": len(experiment.rest)}]
        )  # fmt: skip
        print(f"set {number} {method} {decoder}: {error:.2f} %, {spent['seconds']:.0f} s", file=sys.stderr, flush=True)

    def missing(method: str) -> bool:
        return again or not results().is_done(labels=number, method=method, options=shown, outdated=outdated)

    measure(experiment, missing, note)


def choose(letters: Letters, pixels: Pixels, grid: list[dict[str, float]]) -> None:
    """Half of the labelled words of the first set hidden: the error on them, for each setting."""
    words = label_set(letters, 0)
    kinds = np.unique(np.array(letters.words)[words], return_inverse=True)[1]
    order = np.lexsort((words, kinds))
    shown = np.sort(words[order[::2]])
    hidden = np.setdiff1d(words, shown)
    for options in grid:
        experiment = Experiment(letters, pixels, shown, options)
        inside = np.isin(np.repeat(np.arange(len(letters.words)), np.diff(letters.offsets))[experiment.rest], hidden)
        weights = experiment.climb(Likelihood(experiment.labelled, gold=experiment.gold))
        errors = []
        learner = experiment.regularised()
        state = learner.init(experiment.louder(weights))
        for _ in range(ROUNDS):
            state, _ = learner.step(state)
            with using_threads():
                found = experiment.decoded(learner.expect(state).q.members[0])
            errors.append(100 * float(np.mean(found[inside] != letters.labels[experiment.rest][inside])))
            print(f"  {errors[-1]:.2f}", file=sys.stderr, flush=True)
        print(options, "error on hidden labelled words after each iteration:", np.round(errors, 2), flush=True)


def table() -> str:
    """Means over sets, beside the paper's."""
    kept = [row for row in results().read() if row["options"] == shown_options(OPTIONS)]
    lines = ["| | GP | GP->CRF | CRF | PR1 | PR |", "|---|---|---|---|---|---|"]
    numbers = sorted({row["labels"] for row in kept})
    for decoder, name in (("q", "from q"), ("p", "from the CRF")):
        cells = []
        for method in METHODS:
            wanted = decoder if method.startswith("PR") else "" if method == "GP" else "p"
            some = [float(row["error"]) for row in kept if (row["method"], row["decoder"]) == (method, wanted)]
            spread = f" ± {np.std(some, ddof=1):.2f}" if len(some) > 1 else ""
            cells.append(f"{np.mean(some):.2f}{spread}" if some else "")
        lines.append(f"| decoded {name}, sets: {len(numbers)} | {' | '.join(cells)} |")
    lines.append(f"| the paper, sets: 10 | {' | '.join(f'{PAPER[method]:.2f}' for method in METHODS)} |")
    used = [(row["method"], f"set {row['labels']}", row) for row in kept]
    return "\n".join([*lines, "", rows.commits(used)])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.letters", description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true", help="ten sets of labelled words, not three")
    parser.add_argument("--only", type=int, help="one set, from 0")
    parser.add_argument("--choose", action="store_true", help="cross-validation inside the labelled words")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--table", action="store_true", help="run nothing: write the table into its page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        rows.fill(PAGE, "table", table())
        return
    if not letters_graph.data_file().exists():
        print(f"letters: skipped, there is no {letters_graph.data_file()}; see ISOGLOSS_DATA", file=sys.stderr)
        return
    letters = letters_graph.read()
    pixels = Pixels.of(letters)
    if arguments.choose:
        choose(letters, pixels, [{**OPTIONS, "strength": strength} for strength in (0.03, 0.1, 0.3)])
        return
    command = "python -m benchmarks.quality.letters" + (" --full" if arguments.full else "")
    for number in range(10 if arguments.full else 3) if arguments.only is None else [arguments.only]:
        same = {"labels": number, "options": shown_options(OPTIONS)}
        done = all(results().is_done(**same, method=method, outdated=arguments.outdated) for method in METHODS)
        if arguments.again or not done:
            measure_set(letters, pixels, number, OPTIONS, command, again=arguments.again, outdated=arguments.outdated)


if __name__ == "__main__":
    main()
