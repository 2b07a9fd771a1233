"""Learning to rank: translations by human judgement, and speeches with the help of another language.

python -m benchmarks.quality.ranking                    all rows that are missing
python -m benchmarks.quality.ranking --only outputs     human rankings of translations (WMT, Czech to English)
python -m benchmarks.quality.ranking --only speeches    speeches of the European Parliament, English helped by French
python -m benchmarks.quality.ranking --only objective   the objective beside that of scikit-learn's LinearSVC
python -m benchmarks.quality.ranking --again            replace rows that are there
python -m benchmarks.quality.ranking --table            run nothing: write the tables of docs/rank.md

Outputs: ten folds over groups; in each, the regularisation is chosen on held-out groups of the training part. The
objective needs scikit-learn: SKLEARN_PYTHON names a Python that has it.

Speeches: queries are agenda items; every speech is in one of the two languages only, so that none is the translation
of another. Grades: 2 for the same agenda item, 1 for the same date, 0 for neither. Queries are translated word by word,
by a lexicon that our aligner made of other Europarl text. Four folds over queries, as in the paper.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import rows
from isogloss import __version__
from isogloss.data.groups import Candidate, Group, Groups
from isogloss.metrics._resampling import paired
from isogloss.metrics.overlap import bleu, chrf, words_13a
from isogloss.metrics.ranking import _counts, _rates
from isogloss.metrics.scores import Sample
from isogloss.tasks.documents.dictionaries import read_translations
from isogloss.tasks.documents.outputs import words_of
from isogloss.tasks.documents.ranking import BilingualRanker

PAGE = Path("docs/rank.md")
WORK = Path("out/ranking")
PAIRS = 60_000
"""Sentence pairs that the lexicon is made of."""
DRAW = " draw "
DOCUMENTS = 20
"""Of a query, in each language."""
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "system", "against", "n", "pairs", "pairs_low",
    "pairs_high", "tau", "tau_low", "tau_high", "difference", "difference_low", "difference_high", "p", "ours", "peer",
    "cpu_seconds",
)  # fmt: skip
KEY = ("data", "system", "against")
Scores = list[Any]


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("ranking.csv"), COLUMNS, KEY)


def folder() -> Path:
    return Path(os.environ.get("ISOGLOSS_DATA", "../shared/data"))


def crossed(
    groups: Groups, folds: int, learn: Callable[[Groups], Any], aggregators: Sequence[str] = ("mean",)
) -> dict[str, Scores]:
    """Scores of every group by each aggregator, by what was learnt from the other folds; an item is in one fold."""
    items = sorted({_item(group) for group in groups})
    place = dict(zip(items, np.random.default_rng(0).permutation(len(items)).tolist(), strict=True))
    fold_of = np.array([place[_item(group)] % folds for group in groups])
    found: dict[str, Scores] = {name: [None] * len(groups) for name in aggregators}
    for fold in range(folds):
        ranker = learn(groups.take(fold_of != fold))
        out = np.flatnonzero(fold_of == fold)
        for name in aggregators:
            ranker.set_params(aggregator=name)
            for number, scores in zip(out.tolist(), ranker.predict(groups.take(out)), strict=True):
                found[name][number] = scores
    return found


def _item(group: Group) -> str:
    """What groups are of, without the mark of their draw."""
    return group.id.partition(DRAW)[0]


def by_item(scores: Scores, gold: Groups) -> NDArray[np.float64]:
    """Counts of `isogloss.metrics.ranking` for each item, over all of its draws: what chance draws."""
    counts = _counts(scores, gold, "ranking")
    items = {name: number for number, name in enumerate(dict.fromkeys(_item(group) for group in gold))}
    found = np.zeros((len(items), counts.shape[1]))
    np.add.at(found, [items[_item(group)] for group in gold], counts)
    return found


def put(
    data: str, found: dict[str, Scores], gold: Groups, base: Scores, against: str, measure: str, spent: float
) -> None:
    """A row for each system, beside a base."""
    made = []
    for name, scores in found.items():
        counts = by_item(scores, gold)
        sample = Sample(counts, _rates)  # type: ignore[arg-type]
        value, bounds = sample.percent(), sample.intervals()
        row: dict[str, object] = {
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
            "command": "python -m benchmarks.quality.ranking", "data": data, "system": name, "n": len(counts),
            "cpu_seconds": spent,
        }  # fmt: skip
        for each in ("pairs", "tau"):
            row |= {each: value[each], f"{each}_low": bounds[each][0], f"{each}_high": bounds[each][1]}
        if name != against:
            both: Any = np.stack([counts, by_item(base, gold)], axis=1)
            gain = paired(both, lambda sums: _rates(sums)[measure], 10_000, 0, "ranking")
            low, high = gain["interval"]
            row |= {"against": against, "difference": gain["delta"], "difference_low": low, "difference_high": high}
            row["p"] = f"{gain['p_value']:.4f}"
        made.append(row)
        said = f"pairs {value['pairs']:.2f}, tau {value['tau']:.2f} {row.get('difference', '')} {row.get('p', '')}"
        print(f"{data} {name}: {said}", file=sys.stderr, flush=True)
    results().put(made)


# --- outputs of systems


def outputs() -> None:
    gold = Groups.read(folder() / "ranking/wmt-mt-rankings/cs-en.dev.rankings.gz")
    found: dict[str, Scores] = {
        "chrF++": [[chrf(each.text, group.reference) for each in group.candidates] for group in gold],
        "BLEU": [
            [bleu(words_13a(each.text), words_13a(group.reference)) for each in group.candidates] for group in gold
        ],
    }
    clock = time.process_time()
    found["ours"] = crossed(gold, 10, lambda some: BilingualRanker(balance="pairs").fit(some))["mean"]
    put("outputs", found, gold, found["chrF++"], "chrF++", "pairs", time.process_time() - clock)
    different = Groups(tuple(replace(group, candidates=tuple(_first(group))) for group in gold), "outputs that differ")
    kept = {
        name: [np.array(own)[_rows(group)] for own, group in zip(each, gold, strict=True)]
        for name, each in found.items()
    }
    put("outputs that differ", kept, different, kept["chrF++"], "chrF++", "pairs", 0.0)


def _rows(group: Group) -> list[int]:
    """The first of outputs that are the same."""
    seen: dict[str, int] = {}
    for k, each in enumerate(group.candidates):
        seen.setdefault(each.text, k)
    return list(seen.values())


def _first(group: Group) -> Iterable[Candidate]:
    return (group.candidates[k] for k in _rows(group))


# --- the objective beside another program

_PEER = """
import sys, json, time, numpy as np
from sklearn.svm import LinearSVC
given = np.load(sys.argv[1])
X, share, l2 = given["differences"], given["shares"], float(given["l2"])
sign = np.where(np.arange(len(X)) % 2, -1.0, 1.0)
clock = time.process_time()
made = LinearSVC(C=1 / l2, loss="hinge", fit_intercept=False, max_iter=20000, tol=1e-6)
made.fit(X * sign[:, None], sign, sample_weight=share)
w = made.coef_[0]
spent = time.process_time() - clock
value = 0.5 * l2 * w @ w + (share * np.maximum(0, 1 - X @ w)).sum()
print(json.dumps({"value": value, "seconds": spent}))
"""


def objective() -> None:
    """P(w) of both on the same differences, by three strengths of regularisation."""
    from isogloss.learners.pairs import PairAscent, Pegasos
    from isogloss.learners.runner import run

    peer = os.environ.get("SKLEARN_PYTHON", "")
    if not peer:
        print("objective: skipped; SKLEARN_PYTHON should name a Python that has scikit-learn", file=sys.stderr)
        return
    gold = Groups.read(folder() / "ranking/wmt-mt-rankings/cs-en.dev.rankings.gz")
    pairs = wmt_pairs(gold)
    for strength in (1e-3, 1e-2, 1e-1):
        l2 = strength * float(pairs.shares.sum())
        with tempfile.TemporaryDirectory() as place:
            np.savez(f"{place}/given.npz", differences=pairs.differences(), shares=pairs.shares, l2=l2)
            answer = subprocess.run(
                [peer, "-c", _PEER, f"{place}/given.npz"], capture_output=True, text=True, check=True
            )
        theirs = json.loads(answer.stdout.splitlines()[-1])
        for name, learner, rounds in (
            ("dual", PairAscent(pairs, l2=l2), 100),
            ("pegasos", Pegasos(pairs, l2=l2), 100),
        ):
            made: Any = learner
            clock = time.process_time()
            result = run(
                made, made.init(), iterations=rounds,
                should_stop=lambda _, info: getattr(info, "distance", 1.0) < 1e-3,
            )  # fmt: skip
            spent = time.process_time() - clock
            value = made.primal(getattr(result.state, "average", result.state.weights))
            row = {
                "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
                "command": "python -m benchmarks.quality.ranking --only objective", "data": f"objective {strength:g}",
                "system": name, "against": "LinearSVC", "n": len(pairs), "ours": value, "peer": theirs["value"],
                "difference": 100 * (value / theirs["value"] - 1), "cpu_seconds": spent,
            }  # fmt: skip
            results().put([row])
            print(f"λ = {strength:g}, {name}: {value:.3f}, LinearSVC {theirs['value']:.3f}, "
                  f"{spent:.2f} s and {theirs['seconds']:.2f} s", file=sys.stderr)  # fmt: skip


def wmt_pairs(gold: Groups) -> Any:
    """The differences that `BilingualRanker` would learn from."""
    seen: list[Any] = []

    class Looking(BilingualRanker):
        def _trained(self, prepared: Any, *rest: Any, **more: Any) -> Any:
            seen.append(self._pairs(prepared))
            return super()._trained(prepared, *rest, **more)

    Looking(regularisation=0.1, iterations=1).fit(gold)
    return seen[-1]


# --- speeches


def lexicon(source: str, target: str) -> Path:
    """Made by our aligner of other Europarl text, and kept."""
    place = WORK / f"{source}-{target}.tsv"
    if not place.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        for language in (source, target):
            with gzip.open(folder() / f"bitext/europarl-{source}-{target}-400k/{language}.txt.gz", "rt") as text:
                lines = [next(text) for _ in range(PAIRS)]
            (WORK / f"{language}.txt").write_text("".join(lines), encoding="utf-8")
        files = [str(WORK / f"{language}.txt") for language in (source, target)]
        program = [sys.executable, "-m", "isogloss"]
        subprocess.run([*program, "align", *files, "--scores", "-o", str(WORK / "links.txt")], check=True)
        least = ["--least", "0.02", "--least-count", "2"]
        subprocess.run([*program, "lexicon", *files, str(WORK / "links.txt"), *least, "-o", str(place)], check=True)
    return place


class Speech:
    """A speech in all languages, and where it was given."""

    def __init__(self, number: int, fields: Sequence[str], texts: dict[str, str]) -> None:
        self.number, self.date, self.texts = number, fields[0], texts
        title = re.sub(r"^[\d.\s]*", "", fields[5])
        self.title = re.sub(r"\(.*?\)", " ", title).strip()
        self.item = (fields[0], fields[5].strip())


def read_speeches(languages: Sequence[str]) -> list[Speech]:
    place = folder() / "polylingual/europarl-speeches"
    fields = [line.split("\t") for line in (place / "meta.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    texts = {}
    for language in languages:
        with gzip.open(place / f"{language}.txt.gz", "rt", encoding="utf-8") as text:
            texts[language] = text.read().split("\n")
    return [Speech(k, own, {language: lines[k] for language, lines in texts.items()}) for k, own in enumerate(fields)]


def speeches(seed: int = 0, *, random_others: bool = False) -> Groups:
    """Queries with graded documents in both languages; with `random_others`, those of the other are drawn.

    Every query is there twice: the second time, each speech is in the other language.
    """
    words: dict[str, tuple[str, float]] = {}
    for source, target, chance in read_translations(lexicon("en", "fr")):
        if chance > words.get(source.lower(), ("", 0.0))[1]:
            words[source.lower()] = (target.lower(), chance)
    every = read_speeches(("en", "fr"))
    rng, chance = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    items: dict[tuple[str, str], list[Speech]] = defaultdict(list)
    for speech in every:
        items[speech.item].append(speech)
    sides: dict[int, str] = {}
    for members in items.values():  # half of the speeches of an item in each language
        order = rng.permutation(len(members)).tolist()
        begin = int(rng.integers(2))
        sides |= {members[k].number: ("en", "fr")[(begin + place) % 2] for place, k in enumerate(order)}
    swapped = {number: "fr" if side == "en" else "en" for number, side in sides.items()}
    dates = defaultdict(set)  # what comes on several days is a formality: votes, question time
    for speech in every:
        dates[speech.title.lower()].add(speech.date)
    made = []
    for draw, own in enumerate((sides, swapped)):
        collections = {side: [each for each in every if own[each.number] == side] for side in ("en", "fr")}
        for item, members in items.items():
            title = members[0].title
            if len(members) < 2 or not title or len(dates[title.lower()]) > 1:
                continue
            queries = {"en": title, "fr": " ".join(words[word][0] for word in words_of(title) if word in words)}
            found = {side: _documents(item, side, documents, rng) for side, documents in collections.items()}
            if random_others:
                drawn = chance.choice(len(collections["fr"]), DOCUMENTS, replace=False)
                found["fr"] = [Candidate(str(k), collections["fr"][k].texts["fr"]) for k in drawn]
            name = f"{item[0]} {item[1]}{DRAW}{draw}"
            made.append(Group(name, tuple(found["en"]), queries["en"], "", tuple(found["fr"]), queries["fr"]))
    return Groups(tuple(made), "speeches")


def _documents(item: tuple[str, str], side: str, documents: list[Speech], rng: np.random.Generator) -> list[Candidate]:
    """Those of the agenda item and of its day, and others by chance: if BM25 chose these, it would seem to mislead."""
    grades = np.array([2 * (each.item == item) + (each.date == item[0] and each.item != item) for each in documents])
    first = np.sort(np.lexsort((rng.random(len(grades)), grades == 0))[:DOCUMENTS])
    return [Candidate(str(documents[k].number), documents[k].texts[side], grade=float(grades[k])) for k in first]


IR = ("index",)
ALL = (*IR, "dic", "ratio", "mt")
SYSTEMS: dict[str, dict[str, Any]] = {
    "monolingual": {"constraints": 0},
    "IR": {"features": IR},
    "IR+DIC": {"features": (*IR, "dic")},
    "IR+DIC+RATIO": {"features": (*IR, "dic", "ratio")},
    "IR+DIC+RATIO+MT": {"features": ALL},
    "IR+DIC+RATIO, two others": {"features": (*IR, "dic", "ratio"), "constraints": 2},
    "IR+DIC+RATIO+MT, best others": {"features": ALL, "choose": "grades"},
    "IR+DIC+RATIO+MT, random others": {"features": ALL, "choose": "given"},
}
NAMES = {"mean": "H-2", "max": "H-1", "softmax": "softmax", "weighted": "weighted", "borda": "borda"}


def run_speeches(only: str = "") -> None:
    """Systems one after the other; the monolingual one is what all stand beside."""
    place = WORK / "monolingual.json"
    for name, options in SYSTEMS.items():
        if only and name != only:
            continue
        gold = speeches(random_others=name.endswith("random others"))
        chosen = {**options, "lexicon": str(lexicon("en", "fr"))} if "dic" in options.get("features", ()) else options
        clock = time.process_time()
        ways = ("mean",) if name == "monolingual" else tuple(NAMES) if options["features"] == ALL else ("mean", "max")
        made = crossed(gold, 4, lambda some, chosen=chosen: BilingualRanker(**chosen).fit(some), ways)  # type: ignore[misc]
        spent = time.process_time() - clock
        if name == "monolingual":
            place.write_text(json.dumps([own.tolist() for own in made["mean"]]))
        base = [np.array(own) for own in json.loads(place.read_text())]
        found = {name if name == "monolingual" else f"{name}, {NAMES[way]}": made[way] for way in ways}
        put("speeches", found, gold, base, "monolingual", "tau", spent)


# --- tables


def table(data: str) -> str:
    found = [row for row in results().read() if row["data"] == data]
    used = rows.Used()
    lines = ["| ranked by | pairs right | tau | more than the first | p |", "|---|---|---|---|---|"]
    for row in sorted(found, key=lambda row: bool(row["against"])):
        used.add("", row["system"], row)
        low, high = (float(row[f"pairs_{end}"]) for end in ("low", "high"))
        cells = [row["system"], f"{float(row['pairs']):.1f} [{low:.1f}, {high:.1f}]", f"{float(row['tau']) / 100:.3f}"]
        gain = ""
        if row["against"]:
            scale, form = (1, ".1f") if data.startswith("outputs") else (100, ".3f")
            low, middle, high = (float(row[f"difference{end}"]) / scale for end in ("_low", "", "_high"))
            gain = f"{middle:+{form}} [{low:+{form}}, {high:+{form}}]"
        lines.append("| " + " | ".join([*cells, gain, row["p"]]) + " |")
    return used.below("\n".join(lines))


def objective_table() -> str:
    found = [row for row in results().read() if row["data"].startswith("objective")]
    used = rows.Used()
    lines = ["| λ | learner | our objective | LinearSVC's | difference | CPU seconds |", "|---|---|---|---|---|---|"]
    for row in found:
        used.add("", row["data"], row)
        lines.append(
            f"| {row['data'].split()[1]} | {row['system']} | {row['ours']} | {row['peer']} | "
            f"{float(row['difference']):+.2f}% | {row['cpu_seconds']} |"
        )
    return used.below("\n".join(lines))


PARTS: dict[str, Callable[[], None]] = {"outputs": outputs, "objective": objective, "speeches": run_speeches}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.ranking", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", choices=("", *PARTS), help="default: all")
    parser.add_argument("--system", default="", choices=("", *SYSTEMS), help="of the speeches; default: all")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--table", action="store_true", help="run nothing: write the tables into their page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        for data in ("outputs", "outputs that differ", "speeches"):
            rows.fill(PAGE, data, table(data))
        rows.fill(PAGE, "objective", objective_table())
        return
    if not folder().exists():
        print(f"ranking: skipped, there is no {folder()}; see ISOGLOSS_DATA", file=sys.stderr)
        return
    for name in [arguments.only] if arguments.only else PARTS:
        done = any(row["data"].startswith(name) for row in results().read())
        if name == "speeches" and arguments.system:
            run_speeches(arguments.system)
        elif arguments.again or not done:
            PARTS[name]()


if __name__ == "__main__":
    main()
