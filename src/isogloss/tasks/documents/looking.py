"""Topics as plain dictionaries, for tables and pages."""

from __future__ import annotations

from typing import Any

import numpy as np

from isogloss.data.documents import Documents
from isogloss.tasks.documents.topics import PolylingualTopics

__all__ = ["as_page", "as_rows"]

DOCUMENTS, WORDS = 8, 60
"""Documents that are shown behind a topic, and words of each."""
STEPS = 60
"""Columns of a time line, at most."""


def as_rows(model: PolylingualTopics, n: int = 10) -> list[dict[str, Any]]:
    """Each topic with its number, its share of all words, its prior, its share in each language, and its words."""
    shares, totals = model.shares(), model._learnt.words.totals
    whole = totals.sum(axis=0) / max(1, totals.sum())
    return [
        {
            "topic": t,
            "share": float(whole[t]),
            "alpha": float(model.alpha_[t]),
            "shares": {name: float(own[t]) for name, own in shares.items()},
            "words": words,
        }
        for t, words in enumerate(model.top_words(n))
    ]


def as_page(model: PolylingualTopics, documents: Documents | None, n: int = 15) -> dict[str, Any]:
    """What `isogloss.show.topics` draws: topics, the largest first, with documents and shares over time if given."""
    rows = as_rows(model, n)
    made: dict[str, Any] = {"languages": list(model.languages_), "topics": rows}
    if documents is not None and len(documents):
        found = model.transform(documents)
        for t, row in enumerate(rows):
            best = np.argsort(-found[:, t], kind="stable")[:DOCUMENTS]
            row["documents"] = [_document(documents, int(d), float(found[d, t])) for d in best]
        made |= _over_time(documents, found, rows)
    rows.sort(key=lambda row: (-row["share"], row["topic"]))
    return made


def _document(documents: Documents, number: int, share: float) -> dict[str, Any]:
    one = documents[number]
    texts = {name: " ".join(words[:WORDS]) + (" …" if len(words) > WORDS else "") for name, words in one.words.items()}
    return {"id": one.id, "date": None if one.date is None else one.date.isoformat(), "share": share, "texts": texts}


def _over_time(documents: Documents, found: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean share of each topic in each year, or in each month where there are few years; none without dates."""
    if documents.dates is None:
        return {}
    known = ~np.isnat(documents.dates)
    if not known.any():
        return {}
    years = documents.dates[known].astype("datetime64[Y]")
    unit = "M" if len(np.unique(years)) <= 3 else "Y"
    steps = documents.dates[known].astype(f"datetime64[{unit}]")
    times, place = np.unique(steps, return_inverse=True)
    while len(times) > STEPS:  # neighbours are joined
        times, place = times[::2], place // 2
    counts = np.bincount(place, minlength=len(times))
    for t, row in enumerate(rows):
        sums = np.bincount(place, weights=found[known, t], minlength=len(times))
        row["times"] = (sums / np.maximum(1, counts)).tolist()
    return {"times": [str(time) for time in times], "counts": counts.tolist()}
