"""Why words are a name: what fires on them, and how much it counts."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from isogloss.features import Parts, Templates
from isogloss.learners.supported import Supported
from isogloss.tasks.extract.features import Seen
from isogloss.tasks.extract.labels import OUTSIDE
from isogloss.tasks.extract.names import FittedNames

__all__ = ["features_of"]


def features_of(learnt: FittedNames, seen: Seen, begin: int, end: int, kind: int) -> list[dict[str, Any]]:
    """Of the words begin … end - 1 of the only sentence, for type number `kind`; see `EntityTagger.explain`."""
    size = len(learnt.words.pairs.labels)
    parts, weights = seen.words(), learnt.weights[:size]
    found: list[dict[str, Any]] = []
    for word in range(begin, end):
        label = 2 * kind + (1 if word == begin else 2)
        for entry in _fired(learnt.words, parts, word, weights, label, OUTSIDE):
            found.append({"word": word, **entry})
    if learnt.spans is not None:
        whole, longest = seen.spans(learnt.longest), learnt.longest
        n = len(seen.axis)
        row = sum(min(n - first, longest) for first in range(begin)) + end - begin - 1
        own = learnt.weights[size : size + len(learnt.spans.pairs.labels)]
        found += _fired(learnt.spans, whole, row, own, kind + 1, None)
    return sorted(found, key=lambda entry: -abs(entry["weight"]))


def _fired(
    family: Supported, parts: Parts, part: int, weights: NDArray[Any], label: int, other: int | None
) -> list[dict[str, Any]]:
    """Templates that fire on a part, with the weight of one label less that of another."""
    found = []
    for name in family.templates.names:
        alone = Templates([name] if name else [()], kind=family.templates.kind)
        matrix = alone.matrix(parts, family.index)
        for number in matrix.indices[matrix.indptr[part] : matrix.indptr[part + 1]].tolist():
            row = slice(*family.pairs.starts[number : number + 2].tolist())
            labels, own = family.pairs.labels[row], weights[row]
            much = float(own[labels == label].sum()) - float(0.0 if other is None else own[labels == other].sum())
            if much:
                found.append({"feature": name or "always", "weight": much})
    return found
