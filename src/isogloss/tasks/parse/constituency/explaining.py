"""Why words are a constituent, or are none: what fires on a span, with its weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from isogloss.data.constituents import Constituents
from isogloss.errors import UsageError
from isogloss.features import Templates
from isogloss.structures.spans import span_number
from isogloss.tasks.parse.constituency.fitted import FittedSpans
from isogloss.tasks.parse.constituency.parsing import distributions, posteriors
from isogloss.tasks.parse.constituency.seen import Seen
from isogloss.tasks.parse.constituency.words import span_parts
from isogloss.tasks.parse.cutting import LONGEST

__all__ = ["explain"]

LISTED = 5
"""Labels that are listed with their probabilities."""


def explain(seen: Seen, learnt: FittedSpans, sentence: int, begin: int, end: int, label: str | None) -> dict[str, Any]:
    """See `ConstituencyParser.explain`."""
    n = len(seen.words[sentence]) if 0 <= sentence < len(seen.words) else 0
    if not 0 <= begin < end <= n:
        raise UsageError(f"explain: there are no words {begin} to {end} in a sentence {sentence}; all count from 0")
    if n > LONGEST:
        raise UsageError(f"explain: the sentence has more than {LONGEST} words. Cut it")
    if label is not None and label not in learnt.labels:
        raise UsageError(f"explain: the parser knows no label {label!r}; it knows {', '.join(learnt.labels)}")
    alone = Constituents.assembled([seen.words[sentence]], [seen.tags[sentence]], [[]])
    one = Seen.of(alone, learnt, gold=seen.gold)
    (trees,) = distributions(one, learnt)
    row = np.asarray(posteriors(trees)[0])[span_number(begin, end, n)]
    best = np.argsort(-row, kind="stable").tolist()
    chosen = best[0] if label is None else learnt.labels.index(label)
    part = span_number(begin, end, n)
    found = _features(span_parts(one.codes), part, learnt, chosen)
    return {
        "words": list(seen.words[sentence][begin:end]),
        "label": learnt.labels[chosen],
        "probability": float(row[chosen]),
        "score": float(trees.scores.values[part * len(learnt.labels) + chosen]),
        "labels": {learnt.labels[k]: float(row[k]) for k in best[:LISTED]},
        "features": found,
    }


def _features(parts: Any, part: int, learnt: FittedSpans, label: int) -> list[dict[str, Any]]:
    """What fires on a span, template by template, with its weight for a label; the largest first."""
    found = []
    features, rows = learnt.features, learnt.features.split(learnt.weights)
    own = np.empty(features.indices["label"].n_features)
    wide = np.asarray(features.wide)
    own[wide], own[~wide] = rows["label"][:, label] + rows["label"][:, -1], rows["bracket"]
    for name in features.templates["label"].names:
        matrix = Templates([name] if name else [()], kind="label").matrix(parts, features.indices["label"])
        for number in matrix.indices[matrix.indptr[part] : matrix.indptr[part + 1]].tolist():
            found.append({"feature": name or "always", "weight": float(own[number])})
    return sorted(found, key=lambda entry: -abs(entry["weight"]))
