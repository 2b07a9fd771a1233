"""Why a word gets its tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isogloss.data.treebank import Treebank
from isogloss.features import positions
from isogloss.tasks.tag.words import word_axis

if TYPE_CHECKING:
    from isogloss.tasks.tag.base import Comparison
    from isogloss.tasks.tag.crf import CrfTagger

__all__ = ["explain"]


def explain(tagger: CrfTagger, found: Comparison, word: int) -> dict[str, Any]:
    """See `CrfTagger.explain`."""
    one, chances, chosen, other, said = found
    return {
        **said,
        "attributes": _attributes(tagger, one, word, chosen, other),
        "neighbours": _neighbours(tagger, chances.argmax(axis=1), word, chosen, other),
    }


def _attributes(tagger: CrfTagger, one: Treebank, word: int, chosen: int, other: int) -> list[dict[str, Any]]:
    """What each template adds to the score of the one less that of the other, the largest first."""
    learnt = tagger._learnt
    ids, vocabulary = one.columns["form"]
    keys = tagger._templates.keys(positions(word_axis(ids, vocabulary.types, one.offsets)))[word]
    found = []
    heads, members, _ = learnt.units
    mine, theirs = (set(members[heads[y] : heads[y + 1]].tolist()) for y in (chosen, other))
    for name, number in zip(tagger._templates.names, learnt.index.numbers(keys).tolist(), strict=True):
        if number < 0:
            continue
        row = slice(int(learnt.rows.starts[number]), int(learnt.rows.starts[number + 1]))
        units, weights = learnt.rows.units[row].tolist(), learnt.weights.nodes[row].tolist()
        much = sum(w * ((u in mine) - (u in theirs)) for u, w in zip(units, weights, strict=True))
        if much:
            found.append({"template": name or "(always)", "weight": much})
    if learnt.adapted is not None:
        found += _places(tagger, one, word, chosen, other)
    return sorted(found, key=lambda entry: -abs(entry["weight"]))


def _places(tagger: CrfTagger, one: Treebank, word: int, chosen: int, other: int) -> list[dict[str, Any]]:
    """The same for the places of attributes in a correspondence."""
    learnt = tagger._learnt
    heads, members, size = learnt.units
    real = learnt.adapted.real(one)
    weights = learnt.weights.nodes[len(learnt.rows.units) :].reshape(size, len(real.blocks))
    mine, theirs = (weights[members[heads[y] : heads[y + 1]]].sum(axis=0) for y in (chosen, other))
    found = []
    for b, name in enumerate(learnt.adapted.correspondence.names):
        at, own = int(real.places[word, b]), real.blocks == b
        much = float((mine - theirs)[own] @ real.table[at, real.dimensions[own]]) if at >= 0 else 0.0
        if much:
            found.append({"template": f"{name} (correspondence)", "weight": much})
    return found


def _neighbours(tagger: CrfTagger, tags: Any, word: int, chosen: int, other: int) -> list[dict[str, Any]]:
    """What the move from the tag before and the move to the tag after add."""
    learnt = tagger._learnt
    k, units = learnt.units.k, learnt.units
    moves = learnt.weights.moves.reshape(units.size, units.size)

    def move(x: int, y: int) -> float:
        u, v = (units.members[units.heads[label] : units.heads[label + 1]] for label in (x, y))
        return float(moves[u[0], v[0]] + moves[np.ix_(u[1:], v[1:])].sum())

    before = int(tags[word - 1]) if word else k
    after = int(tags[word + 1]) if word + 1 < len(tags) else k
    name = (*learnt.labels, "(outside)")
    return [
        {"place": "before", "tag": name[before], "weight": move(before, chosen) - move(before, other)},
        {"place": "after", "tag": name[after], "weight": move(chosen, after) - move(other, after)},
    ]
