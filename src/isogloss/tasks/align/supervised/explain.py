"""Why two words are linked, or are not, by a supervised aligner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext
from isogloss.errors import UsageError
from isogloss.tasks.align.features import PairFeatures
from isogloss.tasks.align.supervised.parts import Parts

if TYPE_CHECKING:
    from isogloss.tasks.align.supervised.base import SupervisedAligner

__all__ = ["check_words", "explain"]

Array = NDArray[np.float64]
TOP = 5
LINKS, SOURCE, TARGET = 0, 1, 2  # kinds of parts, in the order of every aligner


def check_words(bitext: Bitext, pair: int, source: int | None, target: int | None) -> None:
    """`UsageError` unless the pair and its words are there."""
    if source is None and target is None:
        raise UsageError("explain: name a word or two, by source=position and target=position")
    if not 0 <= pair < len(bitext):
        raise UsageError(f"explain: there is no pair {pair}; pairs are numbered 0 to {len(bitext) - 1}")
    for side, position, words in zip(("source", "target"), (source, target), bitext[pair], strict=True):
        if position is not None and not 0 <= position < len(words):
            raise UsageError(f"explain: pair {pair} has no {side} word {position}; it has {len(words)}")


def explain(
    aligner: SupervisedAligner,
    features: PairFeatures,
    words: tuple[tuple[str, ...], tuple[str, ...]],
    pair: int,
    source: int | None,
    target: int | None,
) -> dict[str, Any]:
    """See `SupervisedAligner.explain`; `features` are those of the one pair."""
    n, m = features.shape(0)
    if n == 0 or m == 0:
        return {"pair": pair, "source": None, "target": None, "linked": False, "features": [], "competitors": {},
                "reason": "the pair was passed over: a side is empty or too long"}  # fmt: skip
    parts, weights = aligner.parts(features), aligner._weights
    scores, *nulls = parts.scores(weights)[: TARGET + 1]
    scores, (source_null, target_null) = scores.reshape(n, m), nulls
    gains = scores - source_null[:, None] - target_null
    dists = aligner.distributions(features, parts, weights / aligner.temperature_)
    probability = aligner.link_probabilities(dists)[0]
    linked = aligner._predict(features, probability=False)[0][0]
    if source is None:
        source = int(np.argmax(probability[:, target]))
    if target is None:
        target = int(np.argmax(probability[source]))

    def candidate(i: int, j: int) -> dict[str, Any]:
        return {
            "source": i, "target": j, "words": [words[0][i], words[1][j]], "score": float(scores[i, j]),
            "gain": float(gains[i, j]), "probability": float(probability[i, j]), "linked": (i, j) in linked,
        }  # fmt: skip

    answer = {"pair": pair, **candidate(source, target)}
    answer["features"] = _contributions(parts, weights, LINKS, source * m + target)
    answer["nulls"] = {
        "source": {"score": float(source_null[source]), "features": _contributions(parts, weights, SOURCE, source)},
        "target": {"score": float(target_null[target]), "features": _contributions(parts, weights, TARGET, target)},
    }
    others = {"source": [(source, j) for j in range(m) if j != target],
              "target": [(i, target) for i in range(n) if i != source]}  # fmt: skip
    answer["competitors"] = {
        side: [candidate(*cell) for cell in sorted(cells, key=lambda cell: -gains[cell])[:TOP]]
        for side, cells in others.items()
    }
    answer["reason"] = _reason(answer)
    return answer


def _contributions(parts: Parts, weights: Array, kind: int, row: int) -> list[dict[str, Any]]:
    """What each feature adds to the score of a part, the largest in size first."""
    found = [
        {"feature": name, "value": value, "weight": weight, "contribution": weight * value}
        for name, weight, value in parts.contributions(weights, kind, row)
    ]
    return sorted(found, key=lambda entry: (-abs(entry["contribution"]), entry["feature"]))


def _reason(answer: dict[str, Any]) -> str:
    first, second = answer["words"]
    used = [entry for entry in answer["features"] if entry["contribution"]]
    helped = ", ".join(entry["feature"] for entry in used if entry["contribution"] > 0)
    most = [entry["feature"] for entry in used if entry["contribution"] > 0][:3]
    least = [entry["feature"] for entry in used if entry["contribution"] < 0][:3]
    if answer["linked"]:
        return f"{first} is linked to {second}, mostly by {', '.join(most)}" if helped else f"{first} - {second}"
    rivals = [entry for side in ("source", "target") for entry in answer["competitors"][side] if entry["linked"]]
    if rivals:
        taken = " and ".join(f"{a} - {b}" for a, b in (entry["words"] for entry in rivals))
        return f"{first} is not linked to {second}: {taken} is there instead"
    against = f", mostly for {', '.join(least)}" if least else ""
    return f"{first} is not linked to {second}: both are better without a link{against}"
