"""Differences between rows, tested on the same test sentences: made from trees, and kept in parsing-paired.csv.

Where the trees of a row are gone, those of a peer that learns for an hour say, the intervals of both rows are compared
as though they had been drawn apart (`how`), which finds fewer differences.
"""

from __future__ import annotations

from benchmarks import rows, scoring
from benchmarks.quality.parsing import run
from benchmarks.quality.parsing.studies import MEASURES, Job, comparisons, jobs
from benchmarks.quality.parsing.texts import gold
from isogloss.data import Treebank
from isogloss.metrics import compare_trees, score_trees
from isogloss.metrics.parsing import SCORED

KEY = ("data", "tags", "first", "second", "measure")
COLUMNS = (*KEY, "score", "against", "difference", "low", "high", "p", "text", "commit", "how")
PAIRED, APART = "paired", "intervals"
TOLERANCE = 0.001


def results() -> rows.Rows:
    return rows.Rows(run.FOLDER / "parsing-paired.csv", COLUMNS, KEY)


def refresh(found: list[rows.Row]) -> list[rows.Row]:
    """Compare wherever both rows are there and have changed since they were last compared.

    Rows of other tags (another `text`) are not compared, unless one is a peer's.
    """
    by_key = {tuple(row[name] for name in run.KEY): row for row in found}
    file = results()
    kept = {tuple(row[name] for name in KEY): row for row in file.read()}
    fresh: list[dict[str, object]] = []
    valid = set()
    for a, b in comparisons():
        first, second = (by_key.get(tuple(str(value) for value in run.key_of(job).values())) for job in (a, b))
        if first is None or second is None or not run.are_comparable((first, second)):
            continue
        for measure in MEASURES:
            key = (a.text, a.tags, str(a.model), str(b.model), measure)
            both = first[measure.upper()], second[measure.upper()]
            valid.add(key)
            old = kept.get(key, {})
            same = (old.get("score"), old.get("against"), old.get("text")) == (*both, first["text"])
            if same and old.get("how") != APART:
                continue
            fresh.append(dict(zip(KEY, key, strict=True)) | _compare(a, b, first, second, measure))
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


def _compare(a: Job, b: Job, first: rows.Row, second: rows.Row, measure: str) -> dict[str, object]:
    name = measure.upper()
    about = {
        "score": first[name], "against": second[name], "text": first["text"],
        "commit": first["commit"] if a.model.kind == "isogloss" else second["commit"],
    }  # fmt: skip
    trees = [_trees(job, row) for job, row in ((a, first), (b, second))]
    if trees[0] is None or trees[1] is None:
        known = [(float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"])) for row in (first, second)]
        found = scoring.apart(*known)
        tested = {"difference": found.difference, "low": found.low, "high": found.high, "how": APART}
        return about | tested | {"p": f"{found.p:.4f}"}
    test = compare_trees(trees[0], trees[1], gold(a.text), measure=measure, seed=scoring.SEED)
    tested = {"difference": test.delta, "low": test.interval[0], "high": test.interval[1], "how": PAIRED}
    return about | tested | {"p": f"{test.p_value:.4f}"}


def _trees(job: Job, row: rows.Row) -> Treebank | None:
    """The trees behind a row, if they are still there."""
    path = run.trees_of(job)
    if not path.exists():
        return None
    trees = Treebank.read(path)
    score = score_trees(trees, gold(job.text), bootstrap=0, columns=SCORED)
    same = all(abs(score[name] - float(row[name.upper()])) < TOLERANCE for name in MEASURES)
    return trees if same else None
