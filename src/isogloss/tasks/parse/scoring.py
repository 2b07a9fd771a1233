"""Scores of links and of larger parts: features with weights, found in a table as they are needed and never listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks
from isogloss.errors import ModelError
from isogloss.layout import Numbers, check, check_table
from isogloss.structures.base import Array, kept
from isogloss.structures.batch import run_sentences
from isogloss.structures.tree_parts import FAMILIES, Candidates, TreeParts
from isogloss.tasks.parse.features import (
    DYNAMIC,
    LINK_TEMPLATES,
    PART_ROLES,
    PART_TEMPLATES,
    ROLES,
    Templates,
    splitmix,
)
from isogloss.tasks.parse.options import SUPPORTS
from isogloss.tasks.parse.words import Columns, Words

__all__ = ["SUPPORTS", "FeatureSet", "Gradient", "PartScorer", "Table", "count_keys"]

LEAST = 1e-3
"""Weights up to this size are not kept."""
SENTENCES = 256
"""Sentences whose parts are listed at a time while features are collected."""


@dataclass(frozen=True, eq=False)
class Table:
    """Keys of features, each with the number of its weight; see `isogloss.tasks.parse._numba.features`.

    Parameters
    ----------
    keys : uint64[n_features]
    slots : uint32[2 · size]
    """

    keys: NDArray[np.uint64]
    slots: NDArray[np.uint32]

    @classmethod
    def of(cls, keys: NDArray[np.uint64], payload: NDArray[np.uint32] | None = None) -> Table:
        """A table that is at most half full; the payload is the number of the key unless given."""
        from isogloss.tasks.parse._numba.features import build

        size = 64
        while size < 2 * len(keys):
            size *= 2
        slots = np.zeros(2 * size, np.uint32)
        build(keys, np.arange(len(keys), dtype=np.uint32) if payload is None else payload, slots)
        return cls(keys, slots)

    @classmethod
    def ready(cls, slots: NDArray[np.uint32], place: str) -> Table:
        """One that was kept as it is; what is no table is refused. Its keys are not known."""
        slots = check({place: slots}, {place: Numbers("uint32", "slots")}, "the features of the saved parser")[place]
        if len(slots) % 2 or len(slots) < 128:
            raise ModelError(f"{place} of the saved parser is no table of features. Train it again, or copy it whole")
        check_table(slots[::2] != 0, f"{place} of the saved parser")
        return cls(np.zeros(0, np.uint64), slots)

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, eq=False)
class Gradient:
    """Of some sentences: entries ``places[k]`` … ``ends[k] - 1`` of `numbers` (of weights) and `parts` are the k-th."""

    places: NDArray[np.int64]
    ends: NDArray[np.int64]
    numbers: NDArray[np.int32]
    parts: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """Templates of links, and of each family of larger parts.

    Parameters
    ----------
    links : Templates
    parts : mapping of str to Templates
        By `FAMILIES`; families that are not there are empty.
    """

    links: Templates
    parts: Mapping[str, Templates]

    @classmethod
    def of(
        cls, columns: Columns, families: Sequence[str] = (), links: Sequence[str] = LINK_TEMPLATES, *, base: int = 0
    ) -> FeatureSet:
        """The templates that say something with these columns."""
        parts = {
            name: Templates.of(PART_TEMPLATES[name] if name in families else (), columns, base=base + 2 + number)
            for number, name in enumerate(FAMILIES)
        }
        return cls(Templates.of(links, columns, base=base), parts)

    def numbers(self) -> tuple[Any, Any]:
        """Templates as kernels take them."""
        dynamic = np.array([splitmix(2 << 20 | k) for k in range(len(DYNAMIC))], np.uint64)
        factors = np.array([splitmix(3 << 20 | k) | 1 for k in range(3)], np.uint64)
        families = []
        for name in FAMILIES:
            own = self.parts[name]
            roles = np.array([ROLES.index(role) for role in PART_ROLES[name]], np.int64)
            families.append((own.starts, own.terms, own.factors, roles))
        return (self.links.starts, self.links.terms, self.links.factors, dynamic, factors), tuple(families)

    @property
    def lexical(self) -> tuple[NDArray[np.bool_], ...]:
        """Of links and each family: whether templates look at words."""
        return self.links.lexical, *(self.parts[name].lexical for name in FAMILIES)

    def most_keys(self, n_attributes: int) -> tuple[int, int]:
        """The most keys, with their variants, that a link and any other part can have."""
        from isogloss.tasks.parse._numba.features import most_keys

        return 2 * most_keys(len(self.links), n_attributes), 2 * max(len(own) for own in self.parts.values())


def count_keys(
    words: Words,
    features: FeatureSet,
    candidates: Candidates,
    families: Sequence[str],
    heads: NDArray[np.int32],
    *,
    min_count: int = 1,
    support: str = "gold",
) -> NDArray[np.uint64]:
    """uint64[n]: keys of the features that fire at least `min_count` times, on gold parts or more; see `SUPPORTS`."""
    from isogloss.tasks.parse._numba.parts import collect_parts

    slots, counts, used = np.zeros(1 << 12, np.uint64), np.zeros(1 << 12, np.int32), 0
    given = (words.starts, words.lengths, words.arrays, *features.numbers(), features.lexical)
    for start in range(0, len(words), SENTENCES):
        sentences = np.arange(start, min(start + SENTENCES, len(words)))
        parts = TreeParts.of(candidates, families, sentences)
        here = heads[candidates.offsets[start] : candidates.offsets[sentences[-1] + 1]]
        gold, kind = parts.indicate(here), SUPPORTS.index(support)
        slots, counts, used = collect_parts(sentences, *given, parts.layout, gold, kind, slots, counts, used)
    return np.asarray(slots[np.flatnonzero(counts >= min_count)])


class PartScorer:
    """Scores parts by the weights of their features.

    Parameters
    ----------
    features : FeatureSet
    table : Table
    weights : float32[n_features], optional
        While learning; without them the table holds the weights itself.
    """

    def __init__(self, features: FeatureSet, table: Table, weights: NDArray[np.float32] | None = None) -> None:
        self.features, self.table = features, table
        self.weights = np.zeros(0, np.float32) if weights is None else weights
        self._packed = weights is None
        self._numbers = features.numbers()

    @classmethod
    def packed(cls, features: FeatureSet, keys: NDArray[np.uint64], weights: NDArray[np.float32]) -> PartScorer:
        """One that is fast, and does not learn; weights up to `LEAST` are left out."""
        held = np.abs(weights) > LEAST
        return cls(features, Table.of(keys[held], np.ascontiguousarray(weights[held]).view(np.uint32)))

    @classmethod
    def ready(cls, features: FeatureSet, slots: NDArray[np.uint32], place: str) -> PartScorer:
        """The same, of the slots of its table, which are of a saved model."""
        table = Table.ready(slots, place)
        weights = np.ascontiguousarray(table.slots[1::2]).view(np.float32)[table.slots[::2] != 0]
        check({place: weights}, {place: Numbers("float32", "weights")}, "the weights of the saved parser")
        return cls(features, table)

    @property
    def n_features(self) -> int:
        """How many features have weights."""
        return int(np.count_nonzero(self.table.slots[::2]))

    def _given(self, words: Words, sentences: NDArray[np.int64]) -> tuple[Any, ...]:
        return sentences, words.starts, words.lengths, words.arrays, *self._numbers, self.table.slots

    def scores(self, words: Words, sentences: NDArray[np.int64], parts: TreeParts) -> Array:
        """float64[n_parts]: of the parts of some sentences, on the threads of `using_threads`."""
        from isogloss.tasks.parse._numba.parts import score_parts

        values = np.empty(parts.n_parts)
        given = self._given(words, sentences)
        run_sentences(score_parts, len(sentences), *given, self.weights, self._packed, parts.layout, values)
        return kept(values)

    def gradient(
        self, words: Words, sentences: NDArray[np.int64], parts: TreeParts, values: Array, *, least: float = 0.0
    ) -> Gradient:
        """Σ value · features over all parts: templates are walked again; values up to `least` in size count as 0."""
        from isogloss.tasks.parse._numba.parts import count_active, emit_parts

        active = np.empty((len(sentences), 2), np.int64)
        run_blocks(count_active, 1, parts.begins, values, least, active)
        rooms = active @ np.array(self.features.most_keys(words.features.shape[1]))
        places = np.zeros(len(sentences), np.int64)
        np.cumsum(rooms[:-1], out=places[1:])
        room = int(rooms.sum())
        ends, numbers, shares = places.copy(), np.empty(room, np.int32), np.empty(room, np.float32)
        given = (*self._given(words, sentences), parts.layout, values, least)
        run_sentences(emit_parts, len(sentences), *given, places, numbers, shares, ends)
        return Gradient(places, ends, numbers, shares)
