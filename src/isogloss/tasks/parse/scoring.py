"""Scores of links and of larger parts: features with weights, found in a table as they are needed and never listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks
from isogloss.features import KeyTable, Templates
from isogloss.features.gradients import Gradient
from isogloss.features.mixing import factors_of, starts_of
from isogloss.layout import Numbers, check
from isogloss.structures.base import Array, kept
from isogloss.structures.batch import run_sentences
from isogloss.structures.tree_parts import FAMILIES, Candidates, TreeParts
from isogloss.tasks.parse.features import (
    DYNAMIC,
    LINK_ROLES,
    LINK_TEMPLATES,
    PART_ROLES,
    PART_TEMPLATES,
    ROLES,
    lexical,
    numbered,
    templates_for,
)
from isogloss.tasks.parse.options import SUPPORTS
from isogloss.tasks.parse.views import templates_of_atoms
from isogloss.tasks.parse.words import ATOMS, Columns, Words

__all__ = ["SUPPORTS", "FeatureSet", "PartScorer", "count_keys", "counted_keys"]

LEAST = 1e-3
"""Weights up to this size are not kept."""
SENTENCES = 256
"""Sentences whose parts are listed at a time while features are collected."""


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """Templates of links, and of each family of larger parts.

    Parameters
    ----------
    links : Templates
    parts : mapping of str to Templates
        By `FAMILIES`; families that are not there are empty.
    atoms : tuple of str
        The columns of codes that templates look at.
    """

    links: Templates
    parts: Mapping[str, Templates]
    atoms: tuple[str, ...] = ATOMS

    @classmethod
    def of(cls, columns: Columns, families: Sequence[str] = (), links: Sequence[str] = LINK_TEMPLATES) -> FeatureSet:
        """The templates that say something with these columns, with those of atoms that views add."""
        more = templates_of_atoms(columns.more)
        parts = {
            name: templates_for(
                (*PART_TEMPLATES[name], *more.get(name, ())) if name in families else (), columns, kind=name,
                roles=PART_ROLES[name],
            )
            for name in FAMILIES
        }  # fmt: skip
        own = dict.fromkeys((*links, *more["links"]))  # who names templates may name those of views, too
        return cls(templates_for(tuple(own), columns, roles=LINK_ROLES), parts, columns.atoms)

    def numbers(self) -> tuple[Any, Any]:
        """Templates as kernels take them."""
        families = []
        for name in FAMILIES:
            roles = np.array([ROLES.index(role) for role in PART_ROLES[name]], np.int64)
            families.append((*numbered(self.parts[name], self.atoms), roles))
        return (*numbered(self.links, self.atoms), starts_of(DYNAMIC), factors_of(4)), tuple(families)

    @property
    def lexical(self) -> tuple[NDArray[np.bool_], ...]:
        """Of links and each family: whether templates look at words."""
        return lexical(self.links), *(lexical(self.parts[name]) for name in FAMILIES)

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
    keys, counts = counted_keys(words, features, candidates, families, heads, support=support)
    return np.asarray(keys[counts >= min_count])


def counted_keys(
    words: Words,
    features: FeatureSet,
    candidates: Candidates,
    families: Sequence[str],
    heads: NDArray[np.int32],
    *,
    support: str = "gold",
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Keys of the features that fire on gold parts or more, and how often; with support "all" heads may be −1."""
    from isogloss.tasks.parse._numba.parts import collect_parts

    slots, counts, used = np.zeros(1 << 12, np.uint64), np.zeros(1 << 12, np.int32), 0
    given = (words.starts, words.lengths, words.arrays, *features.numbers(), features.lexical)
    for start in range(0, len(words), SENTENCES):
        sentences = np.arange(start, min(start + SENTENCES, len(words)))
        parts = TreeParts.of(candidates, families, sentences)
        here = heads[candidates.offsets[start] : candidates.offsets[sentences[-1] + 1]]
        gold, kind = parts.indicate(here), SUPPORTS.index(support)
        slots, counts, used = collect_parts(sentences, *given, parts.layout, gold, kind, slots, counts, used)
    held = np.flatnonzero(counts > 0)
    return slots[held], counts[held]


class PartScorer:
    """Scores parts by the weights of their features.

    Parameters
    ----------
    features : FeatureSet
    table : KeyTable
    weights : float32[n_features], optional
        While learning; without them the table holds the weights itself.
    """

    def __init__(self, features: FeatureSet, table: KeyTable, weights: NDArray[np.float32] | None = None) -> None:
        self.features, self.table = features, table
        self.weights = np.zeros(0, np.float32) if weights is None else weights
        self._packed = weights is None
        self._numbers = features.numbers()

    @classmethod
    def packed(cls, features: FeatureSet, keys: NDArray[np.uint64], weights: NDArray[np.float32]) -> PartScorer:
        """One that is fast, and does not learn; weights up to `LEAST` are left out."""
        held = np.abs(weights) > LEAST
        return cls(features, KeyTable.of(keys[held], np.ascontiguousarray(weights[held]).view(np.uint32)))

    @classmethod
    def ready(cls, features: FeatureSet, slots: NDArray[np.uint32], place: str) -> PartScorer:
        """The same, of the slots of its table, which are of a saved model."""
        table = KeyTable.ready(slots, place, "the saved parser")
        weights = table.payload.view(np.float32)
        check({place: weights}, {place: Numbers("float32", "weights")}, "the weights of the saved parser")
        return cls(features, table)

    def with_weights(self, weights: NDArray[np.float32]) -> PartScorer:
        """The same features with other weights."""
        if weights is self.weights:
            return self
        other = copy(self)
        other.weights, other._packed = weights, False
        return other

    @property
    def is_packed(self) -> bool:
        """Whether the table holds the weights itself, so that nothing is learnt."""
        return self._packed

    @property
    def n_features(self) -> int:
        """How many features have weights."""
        return int(np.count_nonzero(self.table.slots[::2]))

    @property
    def link_numbers(self) -> Any:
        """Templates of links, and of what else is seen of them, as kernels take them."""
        return self._numbers[0]

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
