"""Max-margin parsing (Taskar et al. 2004): sentences of up to 15 words of the WSJ sample, from a generative grammar on.

python -m benchmarks.quality.margin_parsing                      all rows that are missing
python -m benchmarks.quality.margin_parsing --only lexical       some models
python -m benchmarks.quality.margin_parsing --dev --only basic   score trees 3,301 to 3,514, and write no row
python -m benchmarks.quality.margin_parsing --table              run nothing: write the table of docs/constituency.md

Learnt from those of the first 3,300 trees that have up to 15 words, tested on those of the last 400. GENERATIVE:
relative frequencies of rules, and words by `isogloss.tasks.parse.constituency.lexicon`. BASIC: the same rules with
weights, words fixed. LEXICAL: and words at the edges of spans. LEXICAL+AUX: and whether the generative parser, and a classifier of single
spans, have a bracket there; both are learnt on one half of the trees for the other. Weights are those of the structured
support vector machine, found by block-coordinate Frank-Wolfe until the gap between primal and dual is small.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import rows
from benchmarks.quality.constituency import _wsj
from isogloss.data import Constituents
from isogloss.data.constituents import unescaped
from isogloss.features.sparse import Sparse
from isogloss.learners.frank_wolfe import FrankWolfe
from isogloss.learners.loglinear import Likelihood
from isogloss.learners.models import LinearModel
from isogloss.learners.optimisers import Lbfgs
from isogloss.learners.rule_model import RuleModel, constituent_costs
from isogloss.learners.runner import run
from isogloss.learners.split_merge import SplitMerge
from isogloss.metrics import score_brackets
from isogloss.structures import Cfgs, Chain, InfeasibleError
from isogloss.structures.latent_cfg import LatentGrammar
from isogloss.structures.spans import spans_of
from isogloss.tasks.parse.constituency.derivations import Derivations
from isogloss.tasks.parse.constituency.grammar import lexicon_of
from isogloss.tasks.parse.constituency.lexicon import Lexicon, WordCounts
from isogloss.tasks.parse.constituency.trees import Labels, plain, trees_of

LONGEST = 15
MODELS = ("generative", "basic", "lexical", "lexical+aux")
COLUMNS = (
    "date", "machine", "commit", "model", "trees", "test", "f1", "low", "high", "precision", "recall", "exact", "l2",
    "passes", "primal", "dual", "gap", "seconds",
)  # fmt: skip
L2, PASSES, SMALL_GAP = 10.0, 30, 0.02
"""The penalty, chosen on trees 3,301 to 3,514; passes at most; the gap, as a share of the primal, at which to stop."""
PAGE = Path(__file__).parents[2] / "docs" / "constituency.md"


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("margin-parsing.csv"), COLUMNS, ("model",))


def short(trees: Constituents) -> Constituents:
    """Those of up to 15 words, without function tags and traces."""
    flat = plain(trees)
    return flat.take((flat.lengths <= LONGEST) & (flat.lengths > 0))


@dataclass
class Generative:
    """The grammar that some trees show: relative frequencies of rules, words by their spelling if they are rare."""

    labels: Labels
    derived: Derivations
    grammar: LatentGrammar
    lexicon: Lexicon
    known: WordCounts

    @classmethod
    def of(cls, trees: Constituents) -> Generative:
        labels, flat = Labels.of(trees)
        derived = Derivations.of(flat, labels)
        lexicon = lexicon_of(flat, derived)
        learner = SplitMerge(derived.trees, cycles=0, words=lexicon.weights)
        grammar = learner.step(learner.init(LatentGrammar.flat(derived.rules, lexicon.tags)))[0].params
        uses = grammar.annotated(derived.trees).word_uses()
        return cls(labels, derived, grammar, lexicon, lexicon.estimated(grammar, uses))

    def distributions(self, trees: Constituents, *, bare: bool = False) -> Cfgs:
        """Over the trees of sentences; `bare` with scores of words alone."""
        forms = [unescaped(word) for k in range(len(trees)) for word in trees.words(k)]
        numbers = {form: number for number, form in enumerate(dict.fromkeys(forms))}
        table = self.lexicon.table(self.known, list(numbers))
        table[table < 1e-4 * table.max(axis=1, keepdims=True)] = 0.0
        found = self.grammar.coarse(trees.lengths, np.array([numbers[form] for form in forms], np.int64), table)
        if not bare:
            return found
        values = np.array(found.scores.values)
        scores = found.scores.like(values)
        for s in range(len(found)):
            parts = self.derived.rules.split(scores[s])
            parts.binary[...], parts.unary[...] = 0.0, 0.0
            parts.outer[...] = np.where(parts.outer > -np.inf, 0.0, -np.inf)
        return Cfgs(scores, found.grammar)

    def spans(self, tree: Any) -> frozenset[tuple[int, int, int]]:
        """The labelled spans of a derivation."""
        symbols, unary = (
            self.derived.symbols,
            {tuple(rule): k for k, rule in enumerate(self.derived.rules.unary.tolist())},
        )
        found = []
        for i, j, seen, made in tree:
            label = symbols.labels[made] if seen == made else symbols.changes[unary[seen, made]]
            if label >= 0:
                found.append((i, j, int(label)))
        return frozenset(found)

    def derivations(self) -> list[frozenset[tuple[int, int, int, int]]]:
        """The trees that it was learnt from."""
        made = []
        starts, nodes = self.derived.trees.starts.tolist(), self.derived.trees.nodes.tolist()
        for first, last in pairwise(starts):
            spans: list[tuple[int, int]] = []
            for own, _, _, _, left, right in nodes[first:last]:
                del own
                spans.append((len(spans), len(spans) + 1) if left < 0 else (spans[left][0], spans[right][1]))
            made.append(frozenset(
                (*span, seen, own) for span, (own, seen, *_) in zip(spans, nodes[first:last], strict=True)
            ))  # fmt: skip
        return made


def found_trees(model: Generative, many: Cfgs, trees: Constituents) -> tuple[Constituents, list[frozenset[Any]]]:
    """The best trees, and their labelled spans; a bracket around all words where the grammar has none."""
    chosen: list[frozenset[Any]] = []
    for s in range(len(many)):
        n = int(trees.lengths[s])
        try:
            chosen.append(model.spans(many[s].argmax()))
        except InfeasibleError:
            chosen.append(frozenset([(0, n, 0)]))
    words, tags = ([part(k) for k in range(len(trees))] for part in (trees.words, trees.tags))
    return trees_of(words, tags, chosen, model.labels, "found"), chosen


def edges(words: tuple[str, ...], i: int, j: int, common: set[str]) -> list[str]:
    """Names of the features of a span: words at its edges, exactly with its length if that is up to 3."""

    def at(k: int) -> str:
        word = "<" if k < 0 else ">" if k >= len(words) else unescaped(words[k])
        return word if word in common or word in "<>" else f"~{word[-2:]}"

    made = [
        f"first {at(i)}", f"before {at(i - 1)}", f"last {at(j - 1)}", f"after {at(j)}", f"begin {at(i - 1)} {at(i)}",
        f"end {at(j - 1)} {at(j)}",
    ]  # fmt: skip
    made += [f"middle {at(i + 1)}"] if j - i == 3 else []
    return [f"{name} {j - i}" if j - i <= 3 else name for name in made]


def flat_names(words: tuple[str, ...], tags: tuple[str, ...], i: int, j: int, common: set[str]) -> list[str]:
    """What the classifier of single spans sees: edges, and tags around and inside."""
    tag = lambda k: tags[k] if 0 <= k < len(tags) else "#"  # noqa: E731
    pairs = [(i - 1, i), (j - 1, j), (i - 1, j), (i, j - 1)]
    made = [f"tag {name} {tag(k)}" for name, k in (("-", i - 1), ("[", i), ("]", j - 1), ("+", j))]
    made += [f"tags {number} {tag(a)} {tag(b)}" for number, (a, b) in enumerate(pairs)]
    return [*edges(words, i, j, common), *made, "all " + " ".join(tags[i:j]), f"length {min(j - i, 10)}"]


class Names:
    """Features that occur twice or more, numbered."""

    def __init__(self, lists: list[list[str]]) -> None:
        counts = Counter(name for names in lists for name in names)
        self.numbers = {name: k for k, name in enumerate(sorted(name for name, c in counts.items() if c > 1))}

    def matrix(self, lists: list[list[str]]) -> Sparse:
        return Sparse.of([[self.numbers[n] for n in names if n in self.numbers] for names in lists], len(self.numbers))


class Flat:
    """A classifier of single spans: bracket or none."""

    def __init__(self, lists: list[list[str]], right: list[bool]) -> None:
        self.names = Names(lists)
        learner = Lbfgs(Likelihood(self._model(lists), gold=[[int(one)] for one in right]), l2=1.0)
        self.weights = run(learner, learner.init(), iterations=40).state.weights

    def _model(self, lists: list[list[str]]) -> LinearModel:
        own = self.names.matrix(lists)
        chains = Chain.batch([np.zeros((1, 2, 2))] * len(lists))
        return LinearModel(chains, Sparse(_spread(own), own.indices, own.n_indicators))

    def brackets(self, lists: list[list[str]]) -> list[bool]:
        return (self.names.matrix(lists).scores(self.weights) > 0).tolist()


def _spread(own: Sparse) -> np.ndarray:
    """Rows of spans as the second of four parts of a chain of one position with two labels."""
    lengths = np.zeros((own.n_rows, 4), np.int64)
    lengths[:, 1] = np.diff(own.indptr)
    return np.concatenate([[0], np.cumsum(lengths.ravel())])


def listed(trees: Constituents) -> list[tuple[int, int, int]]:
    """All spans of all sentences: the sentence, and both ends."""
    return [(s, i, j) for s, n in enumerate(trees.lengths.tolist()) for i, j in spans_of(n).tolist()]


def brackets_of(trees: Constituents) -> list[set[tuple[int, int]]]:
    return [{(i, j) for i, j, _ in trees[s].brackets()} for s in range(len(trees))]


def auxiliary(train: Constituents, other: Constituents, common: set[str]) -> list[list[str]]:
    """What the generative parser and the classifier of spans say of each span of other sentences."""
    model = Generative.of(train)
    parsed, _ = found_trees(model, model.distributions(other), other)
    lists = [flat_names(train.words(s), train.tags(s), i, j, common) for s, i, j in listed(train)]
    gold, guess = brackets_of(train), brackets_of(parsed)
    flat = Flat(lists, [(i, j) in gold[s] for s, i, j in listed(train)])
    tags = [tuple(_tags(model, other.words(s))) for s in range(len(other))]
    told = flat.brackets([flat_names(other.words(s), tags[s], i, j, common) for s, i, j in listed(other)])
    return [
        [f"generative {(i, j) in guess[s]} {min(j - i, 4)}", f"flat {one} {min(j - i, 4)}"]
        for (s, i, j), one in zip(listed(other), told, strict=True)
    ]


def _tags(model: Generative, words: tuple[str, ...]) -> list[str]:
    """The most probable tag of each word by itself."""
    table = model.lexicon.table(model.known, [unescaped(word) for word in words]) * model.known.totals
    names = model.derived.symbols.tags
    return [names[k] for k in table[:, : len(names)].argmax(axis=1).tolist()]


def span_lists(trees: Constituents, common: set[str], more: list[list[str]] | None) -> list[list[str]]:
    found = [edges(trees.words(s), i, j, common) for s, i, j in listed(trees)]
    return found if more is None else [own + added for own, added in zip(found, more, strict=True)]


def measure(name: str, train: Constituents, test: Constituents, l2: float, passes: int) -> dict[str, object]:
    """Learn one model, and score it."""
    began = time.process_time()
    model = Generative.of(train)
    told: dict[str, object] = {"l2": "", "passes": "", "primal": "", "dual": "", "gap": ""}
    if name == "generative":
        many = model.distributions(test)
    else:
        learnt, weights, told = learn(name, model, train, l2, passes)
        many = learnt(test, weights)
    score = score_brackets(found_trees(model, many, test)[0], test)
    low, high = score.interval
    return {
        "date": rows.today(), "machine": rows.machine(), "commit": rows.commit(), "model": name, "trees": len(train),
        "test": len(test), "f1": score.f1, "low": low, "high": high, "precision": score.precision,
        "recall": score.recall, "exact": score.exact, "seconds": time.process_time() - began, **told,
    }  # fmt: skip


def learn(
    name: str, model: Generative, train: Constituents, l2: float, passes: int
) -> tuple[Any, Any, dict[str, object]]:
    """A function from sentences and weights to distributions, weights, and how far they are from the best."""
    counts = Counter(unescaped(word) for k in range(len(train)) for word in train.words(k))
    common = {word for word, count in counts.items() if count > 1}
    names: Names | None = None
    lists: list[list[str]] = []
    if name != "basic":
        more = None
        if name == "lexical+aux":
            half = len(train) // 2
            more = auxiliary(train[half:], train[:half], common) + auxiliary(train[:half], train[half:], common)
        lists = span_lists(train, common, more)
        names = Names(lists)
    spans = None if names is None else names.matrix(lists)
    right, bare = model.derivations(), model.distributions(train, bare=True)
    learner = FrankWolfe(
        RuleModel(bare, spans), right, constituent_costs(bare, right, range(len(model.derived.symbols.tags))), l2=l2,
        certify=5,
    )  # fmt: skip

    def near(_: Any, info: Any) -> bool:
        if not np.isnan(info.gap):
            print(f"  {name}: primal {info.primal:.1f}, dual {info.objective:.1f}, gap {info.gap:.1f}", flush=True)
        return bool(info.gap < SMALL_GAP * info.primal)

    result = run(learner, learner.init(), iterations=passes, should_stop=near)
    primal = learner.primal(result.state.weights)
    told = {"l2": l2, "passes": len(result.trace), "primal": primal, "dual": float(result.trace[-1]),
            "gap": primal - float(result.trace[-1])}  # fmt: skip

    def distributions(trees: Constituents, weights: Any) -> Cfgs:
        rows_of = None
        if names is not None:
            more = auxiliary(train, trees, common) if name == "lexical+aux" else None
            rows_of = names.matrix(span_lists(trees, common, more))
        found = RuleModel(model.distributions(trees, bare=True), rows_of)
        return found.batch(weights, np.arange(len(trees)))  # type: ignore[return-value]

    return distributions, result.state.weights, told


def table() -> str:
    """One line for each model."""
    found = {row["model"]: row for row in results().read()}
    used = rows.Used()
    lines = ["| model | precision | recall | F1 | gap, of the primal | passes |", "|---" * 6 + "|"]
    for name in MODELS:
        if (row := found.get(name)) is None:
            continue
        gap = f"{100 * float(row['gap']) / float(row['primal']):.1f}%" if row["gap"] else ""
        f1 = f"{float(row['f1']):.1f} ({float(row['low']):.1f} to {float(row['high']):.1f})"
        cells = (name.upper(), f"{float(row['precision']):.1f}", f"{float(row['recall']):.1f}", f1, gap, row["passes"])
        lines.append(f"| {' | '.join(cells)} |")
        used.add(name.upper(), "wsj", row)
    return used.below("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--l2", type=float, default=L2)
    parser.add_argument("--passes", type=int, default=PASSES)
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        rows.fill(PAGE, "margin-parsing", table())
        return
    trees = _wsj()
    train, test = short(trees[:3300]), short(trees[3300:3514] if asked.dev else trees[-400:])
    for name in asked.only.split(","):
        if not (asked.dev or asked.again) and results().has(model=name):
            continue
        made = measure(name, train, test, asked.l2, asked.passes)
        if not asked.dev:
            results().put([made])
        print(f"{name}: F1 {made['f1']:.2f} of {len(test)} sentences, {made['seconds']:.0f} CPU s", flush=True)


if __name__ == "__main__":
    main()
