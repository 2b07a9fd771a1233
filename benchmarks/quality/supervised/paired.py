"""Differences between rows, tested on the same test pairs: made from links, and kept in supervised-paired.csv."""

from __future__ import annotations

from benchmarks import rows, scoring
from benchmarks.quality.supervised import run
from benchmarks.quality.supervised.studies import Job, comparisons
from benchmarks.quality.supervised.texts import benchmark
from isogloss.data import Links
from isogloss.metrics import compare, score_links

COLUMNS = ("data", "n_train", "title", "AER", "against", "difference", "low", "high", "p", "commit")
TOLERANCE = 0.001


def results() -> rows.Rows:
    return rows.Rows(run.FOLDER / "supervised-paired.csv", COLUMNS, ("data", "n_train", "title"))


def refresh(found: list[rows.Row]) -> list[rows.Row]:
    """Compare wherever both rows are there with the links they were made from; else keep what was written down."""
    by_key = {tuple(row[name] for name in run.KEY): row for row in found}
    fresh = []
    for title, a, b in comparisons():
        place = benchmark(a.text, 1)
        both = [by_key.get(tuple(str(value) for value in run.key_of(job).values())) for job in (a, b)]
        if both[0] is None or both[1] is None:
            continue
        gold = place.test(a.n_train).links
        links = [_links(job, row, gold) for job, row in zip((a, b), both, strict=True) if row is not None]
        if links[0] is None or links[1] is None:
            continue
        test = compare(links[0], links[1], gold, seed=scoring.SEED)
        fresh.append(
            {
                "data": a.text, "n_train": a.n_train, "title": title, "AER": both[0]["AER"], "against": both[1]["AER"],
                "difference": test.delta, "low": test.interval[0], "high": test.interval[1],
                "p": f"{test.p_value:.4f}", "commit": both[0]["commit"],
            }
        )  # fmt: skip
    file = results()
    file.put(fresh)
    return file.read()


def _links(job: Job, row: rows.Row, gold: Links) -> Links | None:
    """The links behind a row, if they are still there."""
    links = run.kept_links(job)
    if links is None or len(links) != len(gold):
        return None
    return links if abs(score_links(links, gold, bootstrap=0).aer - float(row["AER"])) < TOLERANCE else None
