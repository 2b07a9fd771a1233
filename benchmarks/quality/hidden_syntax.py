"""Relations and roles with no trees, given ones, and trees that nobody annotated: F1 with intervals and comparisons.

python -m benchmarks.quality.hidden_syntax                         all rows that are missing
python -m benchmarks.quality.hidden_syntax --only conll04-pairs    some data
python -m benchmarks.quality.hidden_syntax --again                 replace rows that are there
python -m benchmarks.quality.hidden_syntax --table                 run nothing: write the tables of the page

CoNLL04: names given, five folds over all 1,441 sentences, every pair of names a candidate. SemEval-2010 task 8: the
8,000 training sentences, official macro F1 on the 2,717 of the test. Universal Propositions: learnt on dev, tested on
test, predicates given. The tagger of relations learns from EWT, the parser of "given" from its first 5,000 sentences.
"pairs": pairs are seen as in Naradowsky et al. 2012, by their two ends and the distance; "all": by all words between
and around as well. Penalties and thresholds were chosen on one fold of another cut, and on a part of dev.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import rows
from isogloss import __version__, store
from isogloss.data import Mentions, Propositions, Treebank
from isogloss.metrics import compare_relations, compare_roles, score_relations, score_roles
from isogloss.tasks.extract import RelationExtractor, RoleLabeller
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.tag import CrfTagger

PLACE = Path("out/hidden-syntax")
COLUMNS = (
    "date", "machine", "version", "commit", "data", "syntax", "f1", "low", "high", "precision", "recall", "unlabelled",
    "senses", "against", "delta", "delta_low", "delta_high", "p", "pass_seconds", "train_cpu",
)  # fmt: skip
FOLDS, SEED = 5, 1
PAGE = Path(__file__).parents[2] / "docs" / "extract-hidden-syntax.md"


class Data(NamedTuple):
    """What is learnt and tested, in which conditions."""

    make: Callable[..., Any]
    parts: Callable[[], Iterator[tuple[Any, Any]]]
    """Of each fold, what to learn from and what to test on."""
    options: dict[str, Any]
    syntax: tuple[str, ...]
    score: Callable[..., Any]
    compare: Callable[..., Any]


def data_folder() -> Path:
    return Path(os.environ.get("ISOGLOSS_DATA", "../shared/data"))


def _conll04() -> Iterator[tuple[Mentions, Mentions]]:
    parts = [Mentions.read(data_folder() / f"relations/conll04/{part}.txt.gz") for part in ("train", "dev", "test")]
    whole = Mentions.of([(p.words(s), p.entities(s), p.relations(s)) for p in parts for s in range(len(p))])
    fold = np.random.default_rng(SEED).permutation(len(whole)) % FOLDS
    for k in range(FOLDS):
        yield whole.take(fold != k), whole.take(fold == k)


def _semeval() -> Iterator[tuple[Mentions, Mentions]]:
    train, test = (Mentions.read(data_folder() / f"relations/semeval2010-task8/{p}.txt.gz") for p in ("train", "test"))
    yield train, test


def _up(language: str) -> Callable[[], Iterator[tuple[Propositions, Propositions]]]:
    def parts() -> Iterator[tuple[Propositions, Propositions]]:
        dev, test = (
            Propositions.read(data_folder() / f"srl/up/{language}.{part}.conllu.gz") for part in ("dev", "test")
        )
        yield dev, test

    return parts


RELATIONS = ("none", "hidden-constituency", "hidden-dependency", "given")
ROLES = ("none", "given", "hidden-dependency", "joint")
_OF_PAIRS: dict[str, Any] = {"features": "pairs", "l2": 2.0, "threshold": 0.4}
_OF_ROLES: dict[str, Any] = {"features": "pairs", "l2": 10.0, "threshold": 0.3, "iterations": 12}


def _relations(parts: Callable[[], Iterator[Any]], **options: Any) -> Data:
    return Data(RelationExtractor, parts, options, RELATIONS, score_relations, compare_relations)


def _roles(language: str, **options: Any) -> Data:
    return Data(RoleLabeller, _up(language), options, ROLES, score_roles, compare_roles)


DATA = {
    "conll04-pairs": _relations(_conll04, **_OF_PAIRS),
    "conll04-all": _relations(_conll04, features="all", l2=10.0, threshold=0.4),
    "semeval": _relations(_semeval, features="all", l2=10.0, threshold=0.3),
    "up-en-pairs": _roles("en", **_OF_ROLES),
    "up-de-pairs": _roles("de", **_OF_ROLES),
    "up-fr-pairs": _roles("fr", **_OF_ROLES),
}


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("hidden_syntax.csv"), COLUMNS, ("data", "syntax"))


def helpers(syntax: str) -> dict[str, Any]:
    """The tagger of all conditions and, for given trees, the parser; kept in a folder once they have learnt."""
    made: dict[str, Callable[[], Any]] = {"tagger": lambda: CrfTagger("xpos", iterations=4).fit(_ewt())}
    if syntax == "given":
        made["parser"] = lambda: DependencyParser(order=1, projective=True, tags="predicted", iterations=3).fit(
            _ewt()[:5000]
        )
    found = {}
    for name, make in made.items():
        place = PLACE / name
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            make().save(place)
        found[name] = store.load(place)
    return found


def _ewt() -> Treebank:
    return Treebank.read(data_folder() / "treebanks/en-ewt/train.conllu.gz")


def run(name: str, syntax: str, threads: int) -> tuple[Any, Any, float, float]:
    """What is found in all folds together, what is right, CPU seconds of learning, and those of a pass."""
    data = DATA[name]
    found, gold, cpu, passes = [], [], 0.0, 0
    given = helpers(syntax) if data.make is RelationExtractor else {}
    for train, test in data.parts():
        estimator = data.make(syntax=syntax, threads=threads, **data.options)
        began = time.process_time()
        estimator.fit(train, **given)
        cpu += time.process_time() - began
        passes += len(estimator.trace_)
        found.append(estimator.predict(test))
        gold.append(test)
    return _joined(found), _joined(gold), cpu, cpu / passes


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return Mentions.of([(p.words(s), p.entities(s), p.relations(s)) for p in parts for s in range(len(p))])


def measure(name: str, threads: int, again: bool) -> None:
    """All conditions of some data, each beside none, and hidden ones beside given."""
    data, kept = DATA[name], results()
    if not again and all(kept.has(data=name, syntax=syntax) for syntax in data.syntax):
        return
    seen: dict[str, Any] = {}
    for syntax in data.syntax:
        found, gold, cpu, each = run(name, syntax, threads)
        seen[syntax] = found
        score = data.score(found, gold)
        row: dict[str, object] = {
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
            "data": name, "syntax": syntax, "f1": score.f1, "low": score.interval[0], "high": score.interval[1],
            "precision": score.precision, "recall": score.recall, "unlabelled": score.unlabelled,
            "senses": getattr(score, "senses", ""), "pass_seconds": each, "train_cpu": cpu,
        }  # fmt: skip
        if syntax != "none":
            told = data.compare(found, seen["none"], gold)
            row |= {
                "against": "none", "delta": told.delta, "delta_low": told.interval[0], "delta_high": told.interval[1],
                "p": told.p_value,
            }  # fmt: skip
        kept.put([row])
        print(f"{name} {syntax}: F1 {score.f1:.2f}, unlabelled {score.unlabelled:.2f}, {cpu:.0f} CPU s", flush=True)


TITLES = {
    "conll04-pairs": "CoNLL04, pairs", "conll04-all": "CoNLL04, all", "semeval": "SemEval (macro)",
    "up-en-pairs": "roles en", "up-de-pairs": "roles de", "up-fr-pairs": "roles fr",
}  # fmt: skip


def table() -> str:
    """The table of the page."""
    used = rows.Used()
    lines = [
        "| | syntax | F1 | interval | unlabelled | beside none | p | CPU s a pass |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, title in TITLES.items():
        for row in results().find(data=name):
            beside = f"{float(row['delta']):+.2f}" if row["delta"] else ""
            cells = [
                title,
                row["syntax"],
                f"{float(row['f1']):.2f}",
                f"{float(row['low']):.1f}–{float(row['high']):.1f}",
            ]
            cells += [f"{float(row['unlabelled']):.2f}", beside, row["p"], f"{float(row['pass_seconds']):.1f}"]
            lines.append(f"| {' | '.join(cells)} |")
            used.add(row["syntax"], title, row)
    return used.below("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(DATA))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    told = parser.parse_args()
    if not told.table:
        for name in told.only.split(","):
            measure(name, told.threads, told.again)
    rows.fill(PAGE, "results", table())


if __name__ == "__main__":
    main()
