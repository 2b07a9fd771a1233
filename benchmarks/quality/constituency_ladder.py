"""Max-margin parsing: does each kind of feature add what Taskar et al. (2004) say it does?

python -m benchmarks.quality.constituency_ladder                 all rows that are missing
python -m benchmarks.quality.constituency_ladder --longest 15    sentences of at most so many words
python -m benchmarks.quality.constituency_ladder --rungs basic   some rungs
python -m benchmarks.quality.constituency_ladder --search        F1 of rungs on dev for some C; makes no rows
python -m benchmarks.quality.constituency_ladder --table         run nothing: write the table of docs/constituency.md

The WSJ sample: the first 3,300 trees to learn from, trees 3,301 to 3,514 to choose C on, the last 400 to test; of each
those of at most `--longest` words (to learn from, of at most 25 where that is 40). Rungs: GENERATIVE (a treebank
grammar), BASIC (its rules with weights), LEXICAL (words at the edges of spans as well), LEXICAL+AUX (what the grammar
and a classifier of single spans say as well, learnt in two folds), and FLAT, that classifier alone. Weights of the
middle three are found by Frank-Wolfe on the dual until the duality gap is small beside the objective. They are added to
the log probabilities of the grammar: the penalty draws them to these, and not to 0 as in the paper ("BASIC, from 0").
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import rows
from benchmarks.quality.constituency import PAGE, data_folder
from isogloss.data import Constituents, Text, Treebank
from isogloss.data.constituent_forms import Markov
from isogloss.data.constituents import unescaped
from isogloss.data.rows import gathered
from isogloss.engine.threads import using_threads
from isogloss.features import Index, Parts, Templates
from isogloss.learners.frank_wolfe import FrankWolfe
from isogloss.learners.rule_model import RuleModel, constituent_costs
from isogloss.metrics import compare_brackets, score_brackets
from isogloss.tasks.parse.constituency.margins import (
    AUXILIARY,
    LEXICAL,
    Chart,
    FlatSpans,
    Generative,
    edge_parts,
    marked_spans,
)
from isogloss.tasks.parse.constituency.trees import Labels, as_spans, plain, trees_of
from isogloss.tasks.parse.constituency.words import Known, Sentences
from isogloss.tasks.tag import CrfTagger, jackknife

PLACE = Path("out/ladder")
COLUMNS = (
    "date", "machine", "commit", "longest", "rung", "c", "trees", "test", "f1", "low", "high", "precision", "recall",
    "dev_f1", "passes", "primal", "dual", "gap", "rivals", "delta", "p", "cpu",
)  # fmt: skip
RUNGS = {"generative": (), "basic-0": (), "basic": (), "lexical": LEXICAL, "lexical+aux": (*LEXICAL, *AUXILIARY)}
BELOW = {"basic-0": "generative", "basic": "generative", "lexical": "basic", "lexical+aux": "lexical"}
TITLES = {
    "generative": "GENERATIVE", "basic-0": "BASIC, from 0", "basic": "BASIC", "lexical": "LEXICAL",
    "lexical+aux": "LEXICAL+AUX", "flat": "FLAT alone",
}  # fmt: skip
MARKOV = {15: Markov(horizontal=1, vertical=2), 40: Markov(horizontal=0, vertical=2)}
LEARN = {15: 15, 40: 25}
"""Trees to learn from have at most so many words."""
C = {"basic-0": 0.1, "basic": 0.1, "lexical": 0.1, "lexical+aux": 0.1}
"""Chosen on dev sentences of at most 15 words, by `--search`, for either length."""
GRID = (0.01, 0.03, 0.1, 0.3, 1.0)
GAP = 0.02
"""Learning stops when the duality gap is this share of the objective."""
PASSES, CERTIFY = 60, 5


@dataclass(frozen=True, eq=False)
class Seen:
    """Sentences with everything that rungs see of them."""

    trees: Constituents
    charts: list[Chart | None]
    parts: Parts

    @property
    def used(self) -> list[int]:
        """Sentences with a chart."""
        return [k for k, chart in enumerate(self.charts) if chart is not None]


def _part(longest: int, some: slice) -> Constituents:
    trees = plain(Constituents.read(data_folder() / "constituency/wsj-sample/trees.mrg.gz")[some])
    return Constituents.of([str(trees[k]) for k in range(len(trees)) if 0 < trees.lengths[k] <= longest])


def _words(trees: Constituents) -> list[tuple[str, ...]]:
    return [trees.words(k) for k in range(len(trees))]


def _treebank(trees: Constituents) -> Treebank:
    words = [[unescaped(word) for word in sentence] for sentence in _words(trees)]
    return Treebank.from_text(Text.of(words)).with_columns(xpos=trees.columns["tag"])


def _told(grammar: Generative, flat: FlatSpans, charts: list[Chart | None], trees: Constituents, parts: Parts,
          ) -> dict[str, NDArray[np.int64]]:  # fmt: skip
    """What a grammar's best trees, and a classifier of spans, say about all spans."""
    return {
        "generative": grammar.brackets(charts, trees.lengths).astype(np.int64),
        "flat": (flat.chances(parts) > 0.5).astype(np.int64),
    }


class Problem:
    """Charts and features of all sentences of at most `longest` words."""

    def __init__(self, longest: int) -> None:
        train = _part(LEARN[longest], slice(0, 3300))
        dev, test = (_part(longest, part) for part in (slice(3300, 3514), slice(-400, None)))
        self.markov = MARKOV[longest]
        self.grammar = Generative.fit(train, self.markov)
        tagger, bank = CrfTagger("xpos", threads=1), _treebank(train)
        tags = jackknife(bank, tagger, 5, threads=1).columns["xpos"]
        tagger.fit(bank)
        known = Known.of(train.columns["form"], 2)
        parts = edge_parts(Sentences.of(train.offsets, train.columns["form"], tags, known))
        labels, bare = Labels.of(train)
        gold = marked_spans(as_spans(bare, labels), train.lengths)
        charts = list(self.grammar.charts(_words(train), self.grammar.right()))
        self.train = Seen(train, charts, parts.with_columns(**self._jackknifed(train, parts, gold)))
        self.flat = FlatSpans.fit(parts, gold)
        self.others: dict[str, Seen] = {}
        for name, part in (("dev", dev), ("test", test)):
            found = tagger.predict(_treebank(part)).columns["xpos"]
            parts = edge_parts(Sentences.of(part.offsets, part.columns["form"], found, known))
            charts = list(self.grammar.charts(_words(part)))
            told = _told(self.grammar, self.flat, charts, part, parts)
            self.others[name] = Seen(part, charts, parts.with_columns(**told))

    def _jackknifed(self, train: Constituents, parts: Parts, gold: NDArray[np.bool_]) -> dict[str, NDArray[np.int64]]:
        """What a grammar and a classifier of every other sentence tell of the ones between."""
        found = {name: np.zeros(parts.n_parts, np.int64) for name in AUXILIARY}
        every = np.arange(len(train))
        for fold in (0, 1):
            learn, use = every[every % 2 != fold], every[every % 2 == fold]
            some, other = (Constituents.of([str(train[k]) for k in items.tolist()]) for items in (learn, use))
            grammar = Generative.fit(some, self.markov)
            (starts, here), (fresh, there) = gathered(parts.offsets, learn), gathered(parts.offsets, use)
            flat = FlatSpans.fit(parts.chosen(here, starts), gold[here])
            charts = list(grammar.charts(_words(other)))
            told = _told(grammar, flat, charts, other, parts.chosen(there, fresh))
            for name in AUXILIARY:
                found[name][there] = told[name]
        return found

    # --- rungs

    def model(self, seen: Seen, index: Index | None, rung: str) -> RuleModel:
        """The sentences that have charts, with weights for rules and for features of spans."""
        templates = RUNGS[rung]
        charts = [seen.charts[k] for k in seen.used]
        spans = None
        if index is not None:
            starts, rows_ = gathered(seen.parts.offsets, np.array(seen.used, np.int64))
            spans = Templates(templates, kind="edges").matrix(seen.parts.chosen(rows_, starts), index)
        rules = self.grammar.derived.rules
        trees = [chart.bare() if rung.endswith("-0") else chart.trees for chart in charts if chart]
        numbers = [chart.rules for chart in charts if chart]
        return RuleModel(trees, spans, rules=numbers, n_rules=len(rules.binary) + len(rules.unary))

    def index(self, templates: Sequence[str]) -> Index | None:
        """Features that fire at least twice on spans that may have a symbol."""
        if not templates:
            return None
        left = [np.zeros(0, bool)]
        for chart, n in zip(self.train.charts, self.train.trees.lengths.tolist(), strict=True):
            if chart is None:
                left.append(np.zeros(n * (n + 1) // 2, bool))
            else:
                left.append((chart.trees.grammar.split(chart.trees.scores).inner > -np.inf).any(axis=1))
        return Templates(templates, kind="edges").index(self.train.parts, gold=np.concatenate(left), min_count=2)

    def learn(self, rung: str, c: float, passes: int, within: Callable[..., None]) -> Learnt:
        """Weights by Frank-Wolfe on the dual, with the certificate of the last pass that has one."""
        index = self.index(RUNGS[rung])
        model = self.model(self.train, index, rung)
        right = self.grammar.right()
        charts = [(self.train.charts[k], right[k]) for k in self.train.used]
        targets = [chart.local(tree) for chart, tree in charts if chart]
        free = [np.flatnonzero(self.grammar.free[chart.symbols]) for chart, _ in charts if chart]
        trees = [chart.trees for chart, _ in charts if chart]
        learner = FrankWolfe(
            model, targets, constituent_costs(trees, targets, free), l2=1.0 / c, certify=CERTIFY, between=10
        )  # fmt: skip
        state = learner.init()
        for number in range(1, passes + 1):
            state, info = learner.step(state)
            if not np.isnan(info.gap):
                # the objective of the paper is C times ours, in the same units as its loss
                told = Certificate(number, c * info.primal, c * info.objective, c * info.gap, info.rivals)
                within(told, index, state)
                if info.gap <= GAP * info.primal:
                    break
        return Learnt(index, state.weights, told)

    def parsed(self, seen: Seen, rung: str, learnt: Learnt | None) -> Constituents:
        """Trees of sentences: the best by weights or, without these, by the grammar."""
        model = None if learnt is None else self.model(seen, learnt.index, rung)
        number = {k: at for at, k in enumerate(seen.used)}
        spans, tags = [], []
        for k, chart in enumerate(seen.charts):
            n = int(seen.trees.lengths[k])
            if chart is None:  # the grammar has no tree: one node over all words
                spans.append(frozenset([(0, n, self.grammar.labels.names.index("S"))]))
                tags.append(["NN"] * n)
                continue
            best = chart.best
            if model is not None and learnt is not None:
                best = model.distribution(learnt.weights, number[k]).argmax()
            found, own = self.grammar.spans(best, chart.symbols)
            spans.append(found)
            tags.append(own)
        return trees_of(_words(seen.trees), tags, spans, self.grammar.labels, "found")


class Certificate(NamedTuple):
    """How near the optimum learning has come: P(w), the dual, and what is between them."""

    passes: int
    primal: float
    dual: float
    gap: float
    rivals: int


class Learnt(NamedTuple):
    """Weights of a rung."""

    index: Index | None
    weights: NDArray[np.float64]
    told: Certificate


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("constituency_ladder.csv"), COLUMNS, ("longest", "rung"))


def _flat_row(problem: Problem) -> dict[str, object]:
    """The classifier of spans alone: brackets without labels, of spans that are no single words."""
    seen = problem.others["test"]
    labels, bare = Labels.of(seen.trees)
    gold = marked_spans(as_spans(bare, labels), seen.trees.lengths)
    wide = seen.parts.roles["last"].at > seen.parts.roles["first"].at
    found, gold = (seen.parts.columns["flat"] > 0)[wide], gold[wide]
    precision, recall = 100 * (found & gold).sum() / max(1, found.sum()), 100 * (found & gold).sum() / gold.sum()
    return {"rung": "flat", "f1": 2 * precision * recall / (precision + recall), "precision": precision,
            "recall": recall}  # fmt: skip


def measure(problem: Problem, longest: int, rung: str) -> dict[str, object]:
    """One row."""
    began, learnt, test = time.process_time(), None, problem.others["test"]
    row: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "commit": rows.commit(), "longest": longest, "rung": rung,
        "trees": len(problem.train.trees), "test": len(test.trees),
    }  # fmt: skip
    if rung == "flat":
        return row | _flat_row(problem)
    if rung != "generative":
        learnt = problem.learn(rung, C[rung], PASSES, lambda told, *_: print(f"{rung}: {told}", flush=True))
        row |= {"c": C[rung]} | learnt.told._asdict()
    dev = problem.others["dev"]
    row["dev_f1"] = score_brackets(problem.parsed(dev, rung, learnt), dev.trees, bootstrap=0).f1
    found = problem.parsed(test, rung, learnt)
    found.write(PLACE / f"{longest}-{rung}.mrg")
    score = score_brackets(found, test.trees)
    low, high = score.interval
    row |= {"f1": score.f1, "low": low, "high": high, "precision": score.precision, "recall": score.recall}
    below = PLACE / f"{longest}-{BELOW.get(rung)}.mrg"
    if below.exists():
        told = compare_brackets(found, Constituents.read(below), test.trees)
        row |= {"delta": told.delta, "p": told.p_value}
    return row | {"cpu": time.process_time() - began}


def search(longest: int, rungs: Sequence[str], grid: Sequence[float], passes: int) -> None:
    """F1 on dev of each rung for each C."""
    problem = Problem(longest)
    dev = problem.others["dev"]
    plain_f1 = score_brackets(problem.parsed(dev, "generative", None), dev.trees, bootstrap=0).f1
    print(f"generative: dev {plain_f1:.2f}; {problem.grammar.derived.rules}", flush=True)
    for rung in (rung for rung in rungs if rung not in ("flat", "generative")):
        for c in grid:
            began = time.process_time()

            def look(told: Certificate, index: Any, state: Any, rung: str = rung, c: float = c,
                     began: float = began) -> None:  # fmt: skip
                f1 = [score_brackets(problem.parsed(dev, rung, Learnt(index, weights, told)), dev.trees,
                                     bootstrap=0).f1 for weights in (state.average, state.weights)]  # fmt: skip
                spent = time.process_time() - began
                print(f"{rung} C {c}: {told}, dev {f1[0]:.2f} (last {f1[1]:.2f}), {spent:.0f} CPU s", flush=True)

            problem.learn(rung, c, passes, look)


def _chance(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def table() -> str:
    """F1 of every rung."""
    found, used = results().read(), rows.Used()
    heads = ("words", "rung", "precision", "recall", "F1", "above the rung below", "C", "passes", "duality gap")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for longest in MARKOV:
        for rung, title in TITLES.items():
            for row in (row for row in found if row["longest"] == str(longest) and row["rung"] == rung):
                cells = [f"{float(row['precision']):.1f}", f"{float(row['recall']):.1f}", f"{float(row['f1']):.1f}"]
                if row["low"]:
                    cells[2] += f" ({float(row['low']):.1f} to {float(row['high']):.1f})"
                cells.append(f"{float(row['delta']):+.1f} (p {_chance(float(row['p']))})" if row["delta"] else "")
                if row["gap"]:
                    share = f"{float(row['gap']):.2g} of {float(row['primal']):.0f}"
                    cells += [f"{float(row['c']):g}", row["passes"], share]
                else:
                    cells += [""] * 3
                lines.append(f"| up to {longest} | {title} | " + " | ".join(cells) + " |")
                used.add(title, f"up to {longest}", row)
    return used.below("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longest", default="15,40")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--rungs", default=",".join(TITLES))
    parser.add_argument("--grid", default=",".join(map(str, GRID)))
    parser.add_argument("--passes", type=int, default=PASSES)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        rows.fill(PAGE, "ladder", table())
        return
    PLACE.mkdir(parents=True, exist_ok=True)
    with using_threads(1):
        for longest in map(int, asked.longest.split(",")):
            if asked.search:
                search(longest, asked.rungs.split(","), [float(c) for c in asked.grid.split(",")], asked.passes)
                continue
            every = asked.rungs.split(",")
            wanted = [rung for rung in every if asked.again or not results().has(longest=longest, rung=rung)]
            problem = Problem(longest) if wanted else None  # charts take the longest to make, and serve all rungs
            for rung in wanted:
                row = measure(problem, longest, rung)
                results().put([row])
                print({name: row.get(name) for name in ("longest", "rung", "f1", "gap", "cpu")}, flush=True)


if __name__ == "__main__":
    main()
