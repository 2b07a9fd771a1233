"""Differences between rows, tested on the same test sentences: made from trees, and kept in parsing-paired.csv."""

from __future__ import annotations

from benchmarks import rows, scoring
from benchmarks.quality.parsing import run
from benchmarks.quality.parsing.studies import MEASURES, Job, comparisons, jobs
from benchmarks.quality.parsing.texts import gold
from isogloss.data import Treebank
from isogloss.metrics import compare_trees, score_trees
from isogloss.metrics.parsing import SCORED

KEY = ("data", "tags", "first", "second", "measure")
COLUMNS = (*KEY, "score", "against", "difference", "low", "high", "p", "text", "commit")
TOLERANCE = 0.001


def results() -> rows.Rows:
    return rows.Rows(run.FOLDER / "parsing-paired.csv", COLUMNS, KEY)


def refresh(found: list[rows.Row]) -> list[rows.Row]:
    """Compare wherever both rows are there with the trees they were made from; else keep what was written down.

    Rows of other tags (another `text`) are not compared. What is written down of rows that have changed since is left
    out of the answer.
    """
    by_key = {tuple(row[name] for name in run.KEY): row for row in found}
    file = results()
    kept = {tuple(row[name] for name in KEY): row for row in file.read()}
    fresh: list[dict[str, object]] = []
    valid = set()
    for a, b in comparisons():
        first, second = (by_key.get(tuple(str(value) for value in run.key_of(job).values())) for job in (a, b))
        if first is None or second is None or first["text"] != second["text"]:
            continue
        for measure in MEASURES:
            key = (a.text, a.tags, str(a.model), str(b.model), measure)
            both = first[measure.upper()], second[measure.upper()]
            valid.add(key)
            if key in kept and (kept[key]["score"], kept[key]["against"], kept[key]["text"]) == (*both, first["text"]):
                continue
            made = _compare(a, b, first, second, measure)
            if made is None:
                valid.discard(key)
            else:
                fresh.append(dict(zip(KEY, key, strict=True)) | made)
    if fresh:
        file.put(fresh)
    return [row for row in file.read() if tuple(row[name] for name in KEY) in valid]


def refresh_crossing() -> None:
    """Write the share of crossing links into rows that were made before it was counted and whose trees are there."""
    found, file = {tuple(row[name] for name in run.KEY): row for row in run.results().read()}, run.results()
    fresh: list[dict[str, object]] = []
    for job in jobs():
        row = found.get(tuple(str(value) for value in run.key_of(job).values()))
        if row is None or row["crossing"] or not row["UAS"]:
            continue
        trees = _trees(job, row)
        if trees is not None:
            fresh.append({**row, **run.crossing(job.text, trees)})
    if fresh:
        file.put(fresh)


def _compare(a: Job, b: Job, first: rows.Row, second: rows.Row, measure: str) -> dict[str, object] | None:
    trees = [_trees(job, row) for job, row in ((a, first), (b, second))]
    if trees[0] is None or trees[1] is None:
        return None
    test = compare_trees(trees[0], trees[1], gold(a.text), measure=measure, seed=scoring.SEED)
    return {
        "score": first[measure.upper()], "against": second[measure.upper()], "difference": test.delta,
        "low": test.interval[0], "high": test.interval[1], "p": f"{test.p_value:.4f}",
        "text": first["text"], "commit": first["commit"] if a.model.kind == "isogloss" else second["commit"],
    }  # fmt: skip


def _trees(job: Job, row: rows.Row) -> Treebank | None:
    """The trees behind a row, if they are still there."""
    path = run.trees_of(job)
    if not path.exists():
        return None
    trees = Treebank.read(path)
    score = score_trees(trees, gold(job.text), bootstrap=0, columns=SCORED)
    same = all(abs(score[name] - float(row[name.upper()])) < TOLERANCE for name in MEASURES)
    return trees if same else None
