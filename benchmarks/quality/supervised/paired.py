"""Differences between rows, tested on the same test pairs: made from links, and kept in supervised-paired.csv."""

from __future__ import annotations

from benchmarks import rows, scoring
from benchmarks.quality.supervised import run
from benchmarks.quality.supervised.studies import Job, comparisons
from benchmarks.quality.supervised.texts import benchmark
from isogloss.data import Links
from isogloss.metrics import compare, score_links

COLUMNS = ("data", "n_train", "title", "AER", "against", "difference", "low", "high", "p", "commit")
KEY = ("data", "n_train", "title")
COLUMN_OF = {"aer": "AER", "recall": "R"}
"""Where a row has the measure that is compared; tests have it under AER whatever it is, and the title says so."""
TOLERANCE = 0.001


def results() -> rows.Rows:
    return rows.Rows(run.FOLDER / "supervised-paired.csv", COLUMNS, KEY)


def refresh(found: list[rows.Row]) -> list[rows.Row]:
    """Compare wherever both rows are there with the links they were made from; else keep what was written down.

    What was written down of rows that have changed since is dropped: it is a test of other numbers.
    """
    by_key = {tuple(row[name] for name in run.KEY): row for row in found}
    fresh, stale = [], set[tuple[str, ...]]()
    for pair in comparisons():
        job = pair.better
        place = benchmark(job.text, 1)
        both = [by_key.get(tuple(str(value) for value in run.key_of(each).values())) for each in (job, pair.worse)]
        key = job.text, str(job.n_train), pair.title
        if both[0] is None or both[1] is None:
            stale.add(key)
            continue
        column = COLUMN_OF[pair.measure]
        old = next((row for row in results().read() if tuple(row[name] for name in KEY) == key), None)
        known = [float(row[column]) for row in both if row is not None]
        if old is not None and [float(old["AER"]), float(old["against"])] != known:
            stale.add(key)
        gold = place.test(job.n_train).links
        links = [_links(each, row, gold) for each, row in zip((job, pair.worse), both, strict=True) if row is not None]
        if links[0] is None or links[1] is None:
            continue
        stale.discard(key)
        test = compare(links[0], links[1], gold, seed=scoring.SEED, measure=pair.measure)
        fresh.append(
            {
                "data": job.text, "n_train": job.n_train, "title": pair.title, "AER": both[0][column],
                "against": both[1][column], "difference": test.delta, "low": test.interval[0],
                "high": test.interval[1], "p": f"{test.p_value:.4f}", "commit": both[0]["commit"],
            }
        )  # fmt: skip
    file = results()
    file.put(fresh)
    return [row for row in file.read() if tuple(row[name] for name in KEY) not in stale]


def _links(job: Job, row: rows.Row, gold: Links) -> Links | None:
    """The links behind a row, if they are still there."""
    links = run.kept_links(job)
    if links is None or len(links) != len(gold):
        return None
    return links if abs(score_links(links, gold, bootstrap=0).aer - float(row["AER"])) < TOLERANCE else None
