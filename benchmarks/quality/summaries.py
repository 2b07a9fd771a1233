"""Which measure of summaries to trust: REALSumm, 100 documents with summaries by 24 systems that people have judged.

python -m benchmarks.quality.summaries                       all rows that are missing
python -m benchmarks.quality.summaries --only rouge          our ROUGE beside that of rouge-score
python -m benchmarks.quality.summaries --only measures       how measures order systems, and summaries, beside people
python -m benchmarks.quality.summaries --only learnt         a combination learnt by our ranker, each system left out
python -m benchmarks.quality.summaries --only judges         extracts beside judges
python -m benchmarks.quality.summaries --again               replace rows that are there
python -m benchmarks.quality.summaries --table               run nothing: write the tables of docs/summaries.md

People: LitePyramid recall. The abstractive rows of bart_out.txt are left out, since they carry judgements of another
output. ROUGE_PYTHON names a Python that has rouge-score.

Judges: nobody has marked sentences in this set, so the eleven extractive systems are the judges: a sentence is worth 1
to a system that took it. An extractive system is scored by the ten others.
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
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import rows
from isogloss import __version__
from isogloss.data.groups import Candidate, Group, Groups
from isogloss.data.summaries import Judged, Summaries, Summary
from isogloss.metrics.meta import correlate, meta_table
from isogloss.metrics.rouge import rouge_l, rouge_lsum, rouge_n, rouge_words
from isogloss.tasks.documents.index import Index
from isogloss.tasks.documents.outputs import OUTPUT_FEATURES, output_features, words_of
from isogloss.tasks.documents.ranking import BilingualRanker
from isogloss.tasks.documents.summaries import EXTRACTORS, extract, measured, score_summaries

PAGE = Path("docs/summaries.md")
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "system", "measure", "value", "low", "high", "value2",
    "low2", "high2", "low_systems", "high_systems", "low2_systems", "high2_systems", "n", "cpu_seconds",
)  # fmt: skip
KEY = ("data", "system", "measure")
FAULTY = ("abs", "bart_out.txt")
STRENGTHS = (0.003, 0.01, 0.03)
"""Regularisations of the combination that are tried."""
SENTENCES = 3
"""Of an extract, as many as most systems take."""
DRAWS = 10
"""Of the extractor that takes sentences by chance."""


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("summaries.csv"), COLUMNS, KEY)


def folder() -> Path:
    return Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "summarisation/realsumm"


def put(made: list[dict[str, object]], part: str, spent: float) -> None:
    base = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": f"python -m benchmarks.quality.summaries --only {part}", "cpu_seconds": spent,
    }  # fmt: skip
    results().put([{**base, **row} for row in made])


def lines(marked: str) -> str:
    return "\n".join(sentence.strip() for sentence in re.findall(r"<t>(.*?)</t>", marked, re.DOTALL))


@cache
def read() -> Summaries:
    with gzip.open(folder() / "scores.jsonl.gz", "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    made = [
        Summary(
            str(row["doc"]), f"{row['type']}:{row['system'].removesuffix('.txt')}", lines(row["summary"]),
            (lines(row["reference"]),), float(row["human_litepyramid"]),
        )
        for row in sorted(found, key=lambda row: (row["doc"], row["type"], row["system"]))
        if (row["type"], row["system"]) != FAULTY
    ]  # fmt: skip
    return Summaries(tuple(made), "REALSumm")


# --- ROUGE

_PEER = """
import sys, json
from rouge_score.rouge_scorer import RougeScorer
made = RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"])
for line in open(sys.argv[1]):
    reference, summary = json.loads(line)
    found = made.score(reference, summary)
    print(json.dumps([x for name in ("rouge1", "rouge2", "rougeL", "rougeLsum") for x in found[name]]))
"""


def rouge() -> None:
    """The largest difference over all summaries."""
    peer = os.environ.get("ROUGE_PYTHON", "")
    if not peer:
        print("rouge: skipped; ROUGE_PYTHON should name a Python that has rouge-score", file=sys.stderr)
        return
    some = read()
    with tempfile.TemporaryDirectory() as place:
        given = Path(place) / "given.jsonl"
        given.write_text("".join(json.dumps([each.references[0], each.text]) + "\n" for each in some))
        answer = subprocess.run([peer, "-c", _PEER, str(given)], capture_output=True, text=True, check=True).stdout
    clock, worst = time.process_time(), 0.0
    for each, line in zip(some, answer.splitlines(), strict=True):
        summary, reference = each.text, each.references[0]
        ours = (
            *rouge_n(summary, reference, 1), *rouge_n(summary, reference, 2), *rouge_l(summary, reference),
            *rouge_lsum(summary.split("\n"), reference.split("\n")),
        )  # fmt: skip
        worst = max(worst, float(np.abs(np.array(ours) - json.loads(line)).max()))
    row = {"data": "rouge", "system": "rouge-score 0.1.2", "measure": "largest difference", "value": f"{worst:.2e}"}
    put([{**row, "n": len(some)}], "rouge", time.process_time() - clock)
    print(f"ROUGE: at most {worst:.2e} from rouge-score over {len(some)} summaries", file=sys.stderr)


# --- measures beside people


def put_meta(data: str, values: dict[str, NDArray[np.float64]], part: str, spent: float) -> None:
    """Rows of a meta table: of all systems, and of the extractive ones alone."""
    some = read()
    people = some.table([each.human for each in some])
    tables = {name: some.table(own) for name, own in values.items()}
    extractive = [k for k, name in enumerate(some.systems) if name.startswith("ext:")]
    for which, columns in ((data, list(range(people.shape[1]))), (f"{data}, extractive", extractive)):
        found = meta_table({name: own[:, columns] for name, own in tables.items()}, people[:, columns])
        made: list[dict[str, object]] = []
        for name, one in found.items():
            row: dict[str, object] = {"data": which, "system": "", "measure": name, "n": one.documents}
            for mark, value, bounds, others in (
                ("", one.system, one.system_interval, one.system_by_systems),
                ("2", one.summary, one.summary_interval, one.summary_by_systems),
            ):
                row |= {f"value{mark}": value, f"low{mark}": bounds[0], f"high{mark}": bounds[1]}
                row |= {f"low{mark}_systems": others[0], f"high{mark}_systems": others[1]}
            made.append(row)
            print(f"{which} {name}: system {one.system:.3f}, summary {one.summary:.3f}", file=sys.stderr)
        put(made, part, spent)


def measures() -> None:
    clock = time.process_time()
    values = measured(read())
    put_meta("measures", values, "measures", time.process_time() - clock)


def learnt() -> None:
    """Each system left out: people's judgements of the others teach what counts, in general and in each document.

    Features are all measures, what outputs are seen by, and, for each document apart, which words and which two words
    of the reference a summary has. The regularisation is chosen on the first half of the documents.
    """
    some, clock = read(), time.process_time()
    groups = Groups(tuple(_judged_groups(some)))
    half, people = len(groups) // 2, some.table([each.human for each in some])
    tried = {}
    for strength in STRENGTHS:
        table = some.table(np.pad(_left_out(some, groups[:half], strength), (0, len(some) // 2)))
        tried[strength] = correlate(table[:half], people[:half], bootstrap=0).summary
        print(f"{strength:g}: {tried[strength]:.3f}, {time.process_time() - clock:.0f} s", file=sys.stderr, flush=True)
    best = max(tried, key=tried.__getitem__)
    found = _left_out(some, groups, best)
    put_meta("learnt", {f"learnt, system left out, λ = {best:g}": found}, "learnt", time.process_time() - clock)
    second = correlate(some.table(found)[half:], people[half:])
    row: dict[str, object] = {"data": "learnt, second half", "system": "", "measure": f"λ = {best:g}"}
    row |= {"value2": second.summary, "low2": second.summary_interval[0], "high2": second.summary_interval[1]}
    put([{**row, "value": second.system, "n": second.documents}], "learnt", time.process_time() - clock)
    print(f"second half of the documents: {second.summary:.3f}", file=sys.stderr)


def _judged_groups(some: Summaries) -> Iterator[Group]:
    """A group for each document, its summaries with features."""
    found = measured(some)
    index = Index.of([words_of(each.references[0]) for each in some if each.system == some.systems[0]])
    for document in some.documents:
        own = [k for k, each in enumerate(some) if each.document == document]
        reference = some[own[0]].references[0]
        seen = output_features([some[k].text for k in own], reference, index)
        wanted, members = _pieces(reference), []
        for k, row in zip(own, seen.tolist(), strict=True):
            features = dict(zip(OUTPUT_FEATURES, row, strict=True)) | {name: float(found[name][k]) for name in found}
            features |= {f"{document}:{piece}": 1.0 for piece in sorted(wanted & _pieces(some[k].text))}
            members.append(Candidate(some[k].system, grade=some[k].human, features=features))
        yield Group(document, tuple(members))


def _pieces(text: str) -> set[str]:
    """Stems of longer words, and pairs of neighbouring words."""
    words = [word[:5] for word in rouge_words(text)]
    return {word for word in words if len(word) > 3} | {" ".join(pair) for pair in pairwise(words)}


def _left_out(some: Summaries, groups: Groups, strength: float) -> NDArray[np.float64]:
    """Scores of the summaries of these documents, each by a model that has not seen a judgement of its system.

    Summaries that are letter by letter the same have the same score, the mean over the models.
    """
    columns = []
    for number, system in enumerate(some.systems):
        ranker = BilingualRanker(regularisation=strength, balance="pairs", tolerance=5e-3)
        own = np.array([scores[number] for scores in ranker.fit(_without(groups, system)).predict(groups)])
        columns.append(own / np.linalg.norm(list(ranker.feature_weights().values())))
    flat = np.stack(columns, axis=1).ravel()  # summaries stand document by document, systems in one order
    same: dict[tuple[str, str], list[float]] = {}
    for each, score in zip(some[: len(flat)], flat.tolist(), strict=True):
        same.setdefault((each.document, each.text), []).append(score)
    return np.array([np.mean(same[each.document, each.text]) for each in some[: len(flat)]])


def _without(groups: Groups, system: str) -> Groups:
    """The same candidates, one of which has no grade: it is there for the scale, and not learnt from."""
    made = []
    for group in groups:
        members = (
            Candidate(each.id, features=each.features) if each.id == system else each for each in group.candidates
        )
        made.append(Group(group.id, tuple(members)))
    return Groups(tuple(made))


# --- extracts


def sentences_of(text: str) -> tuple[str, ...]:
    """A document is one piece here: it is cut behind full stops, question marks and exclamation marks."""
    bare = re.sub(r"</?t>", " ", text)
    found = (" ".join(piece.split()) for piece in re.split(r"(?<= [.?!])\s+(?:'' )?", bare))
    return tuple(piece for piece in found if len(rouge_words(piece)) > 1)


def placed(sentence: str, document: list[set[str]]) -> int | None:
    """The sentence of the document that has the most of its words, if it has four of five."""
    words = set(rouge_words(sentence))
    if not words:
        return None
    shares = [len(words & other) / len(words | other) for other in document]
    best = int(np.argmax(shares)) if shares else -1
    return best if best >= 0 and shares[best] > 0.5 else None


def judges() -> None:
    clock, some = time.process_time(), read()
    with gzip.open(folder() / "source_docs.txt.gz", "rt", encoding="utf-8") as file:
        documents = {str(k): sentences_of(line) for k, line in enumerate(file)}
    collection = Index.of([words_of(" ".join(each)) for each in documents.values()])
    taken: dict[str, dict[str, tuple[int, ...]]] = {name: {} for name in documents}
    lost = every = 0
    for each in some:
        if each.system.startswith("ext:"):
            sets = [set(rouge_words(sentence)) for sentence in documents[each.document]]
            places = [placed(sentence, sets) for sentence in each.text.split("\n")]
            lost, every = lost + sum(at is None for at in places), every + len(places)
            taken[each.document][each.system] = tuple(sorted({at for at in places if at is not None}))
    print(f"{lost} of {every} sentences of extracts are in no sentence of their document", file=sys.stderr)
    systems = sorted({name for each in taken.values() for name in each})
    made: list[dict[str, object]] = []
    for name in (*EXTRACTORS, *systems):
        judged, chosen = {}, []
        for document, sentences in documents.items():
            others = {who: own for who, own in taken[document].items() if who != name}
            worth = {who: np.isin(np.arange(len(sentences)), own).astype(float) for who, own in others.items() if own}
            judged[document] = Judged(document, sentences, worth)
            draws = DRAWS if name == "random" else 1
            for draw in range(draws):
                own = taken[document].get(name)
                if name in EXTRACTORS:
                    seed = int(document) + 1000 * draw
                    own = tuple(extract(sentences, name, size=SENTENCES, collection=collection, seed=seed))
                chosen.append(Summary(document, f"{name} {draw}" if name == "random" else name, extract=own))
        found = score_summaries(Summaries(tuple(chosen)), judged)
        for measure in next(iter(found.values())):
            several = [own[measure] for own in found.values()]
            bounds = np.mean([value.interval for value in several], axis=0).tolist()
            made.append(
                {
                    "data": "judges", "system": name, "measure": measure, "low": bounds[0], "high": bounds[1],
                    "value": float(np.mean([value.mean for value in several])), "n": several[0].documents,
                }
            )  # fmt: skip
        shown = {row["measure"]: round(float(str(row["value"])), 3) for row in made if row["system"] == name}
        print(name, shown, file=sys.stderr)
    put(made, "judges", time.process_time() - clock)


# --- tables


def cell(row: rows.Row, mark: str = "") -> str:
    value, low, high = (float(row[f"{name}{mark}"]) for name in ("value", "low", "high"))
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def meta_lines(kinds: tuple[str, ...]) -> str:
    used = rows.Used()
    out = [
        "| measure | systems, [over documents] | [over systems] | summaries, [over documents] | [over systems] |",
        "|---|---|---|---|---|",
    ]
    found = [row for row in results().read() if row["data"] in kinds]
    for row in sorted(found, key=lambda row: -float(row["value2"])):
        used.add("", row["measure"], row)
        beside = [f"[{float(row[f'low{m}_systems']):.3f}, {float(row[f'high{m}_systems']):.3f}]" for m in ("", "2")]
        out.append(f"| {row['measure']} | {cell(row)} | {beside[0]} | {cell(row, '2')} | {beside[1]} |")
    return used.below("\n".join(out))


def judge_lines() -> str:
    used = rows.Used()
    shown = ("precision", "kappa", "utility-chance", "utility", "utility-judges", "utility-normal")
    found: dict[str, dict[str, rows.Row]] = {}
    for row in results().read():
        if row["data"] == "judges":
            found.setdefault(row["system"], {})[row["measure"]] = row
            used.add("", row["system"], row)
    out = ["| extracts of | precision | kappa | R | S | J | D |", "|" + "---|" * 7]
    for name, own in sorted(found.items(), key=lambda item: -float(item[1]["utility-normal"]["value"])):
        out.append(f"| {name} | " + " | ".join(cell(own[measure]) for measure in shown) + " |")
    return used.below("\n".join(out))


PARTS: dict[str, Callable[[], Any]] = {"rouge": rouge, "measures": measures, "learnt": learnt, "judges": judges}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.summaries", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", choices=("", *PARTS), help="default: all")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--table", action="store_true", help="run nothing: write the tables into their page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        rows.fill(PAGE, "measures", meta_lines(("measures", "learnt")))
        rows.fill(PAGE, "extractive", meta_lines(("measures, extractive", "learnt, extractive")))
        rows.fill(PAGE, "judges", judge_lines())
        return
    if not folder().exists():
        print(f"summaries: skipped, there is no {folder()}; see ISOGLOSS_DATA", file=sys.stderr)
        return
    for name in [arguments.only] if arguments.only else PARTS:
        if arguments.again or not any(row["data"].startswith(name) for row in results().read()):
            PARTS[name]()


if __name__ == "__main__":
    main()
