"""Scores of links: features with weights, found in a table as they are needed and never listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks
from isogloss.errors import ModelError
from isogloss.structures.base import kept
from isogloss.structures.batch import Stack, run_sentences
from isogloss.tasks.parse.features import DYNAMIC, Templates, splitmix
from isogloss.tasks.parse.words import Words

__all__ = ["Gradient", "LinkScorer", "Table", "count_keys", "numbers_of"]

SENTENCES = 8
"""Sentences of a block, where a few are worked on."""


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

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, eq=False)
class Gradient:
    """Of some sentences: entries ``places[k]`` … ``ends[k] - 1`` of `numbers` (of weights) and `parts` are the k-th."""

    places: NDArray[np.int64]
    ends: NDArray[np.int64]
    numbers: NDArray[np.int32]
    parts: NDArray[np.float32]


def numbers_of(templates: Templates) -> tuple[Any, ...]:
    """Templates as kernels take them."""
    dynamic = np.array([splitmix(2 << 20 | k) for k in range(len(DYNAMIC))], np.uint64)
    factors = np.array([splitmix(3 << 20 | k) | 1 for k in range(3)], np.uint64)
    return templates.starts, templates.terms, templates.factors, dynamic, factors


def count_keys(
    words: Words,
    templates: Templates,
    heads: NDArray[np.int32],
    offsets: NDArray[np.int64],
    *,
    min_count: int = 1,
    reach: int = 0,
) -> NDArray[np.uint64]:
    """uint64[n]: keys of the features that fire on gold links at least `min_count` times.

    `reach` adds those of all links that are not longer than it.
    """
    from isogloss.tasks.parse._numba.features import collect

    slots, counts = np.zeros(1 << 12, np.uint64), np.zeros(1 << 12, np.int32)
    given = (words.starts, words.lengths, (words.codes, words.features, words.kinds), numbers_of(templates))
    everything = np.arange(len(words))
    slots, counts, _ = collect(everything, *given, heads, offsets, reach, slots, counts, 0)
    found = np.flatnonzero(counts >= min_count)
    return np.asarray(slots[found])


class LinkScorer:
    """Scores links by the weights of their features.

    Parameters
    ----------
    templates : Templates
    table : Table
    weights : float32[n_features], optional
        While learning; without them the table holds the weights itself.
    """

    def __init__(self, templates: Templates, table: Table, weights: NDArray[np.float32] | None = None) -> None:
        self.templates, self.table = templates, table
        self.weights = np.zeros(0, np.float32) if weights is None else weights
        self._packed = weights is None
        self._numbers = numbers_of(templates)

    @classmethod
    def packed(cls, templates: Templates, keys: NDArray[np.uint64], weights: NDArray[np.float32]) -> LinkScorer:
        """One that is fast, and does not learn."""
        if keys.shape != weights.shape or keys.dtype != np.uint64 or weights.dtype != np.float32:
            raise ModelError("the arrays of the saved parser do not belong together. Train it again, or copy it whole")
        return cls(templates, Table.of(keys, weights.view(np.uint32)))

    def _given(self, words: Words, sentences: NDArray[np.int64]) -> tuple[Any, ...]:
        columns = (words.codes, words.features, words.kinds)
        return sentences, words.starts, words.lengths, columns, self._numbers, self.table.slots

    def scores(self, words: Words, sentences: NDArray[np.int64]) -> Stack:
        """float64[n + 1, n + 1] for each of some sentences, as (head, child), on the threads of `using_threads`."""
        from isogloss.tasks.parse._numba.features import score_links

        sizes = words.lengths[sentences] + 1
        offsets = np.zeros(len(sentences) + 1, np.int64)
        np.cumsum(sizes * sizes, out=offsets[1:])
        values = np.empty(int(offsets[-1]))
        given = self._given(words, sentences)
        run_sentences(score_links, len(sentences), *given, self.weights, self._packed, offsets, values)
        return Stack(kept(values), offsets, np.stack([sizes, sizes], axis=1))

    def gradient(
        self, words: Words, sentences: NDArray[np.int64], values: Stack, *, least: float = 0.0
    ) -> Gradient:  # fmt: skip
        """Σ value · features over all links: templates are walked again; values up to `least` in size count as 0."""
        from isogloss.tasks.parse._numba.features import count_active, emit_links, most_keys

        active = np.empty(len(sentences), np.int64)
        run_blocks(count_active, 1, values.offsets, values.values, least, active)
        most = 2 * most_keys(len(self.templates), words.features.shape[1])
        places = np.zeros(len(sentences), np.int64)
        np.cumsum(most * active[:-1], out=places[1:])
        room = int(most * active.sum())
        ends, numbers, parts = places.copy(), np.empty(room, np.int32), np.empty(room, np.float32)
        given = (*self._given(words, sentences), values.offsets, values.values, least)
        run_sentences(emit_links, len(sentences), *given, places, numbers, parts, ends)
        return Gradient(places, ends, numbers, parts)
