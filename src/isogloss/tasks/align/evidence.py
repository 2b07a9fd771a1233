"""What an E-step says of the cells of a text, and the little of it that is kept from one step to the next."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ModelError
from isogloss.layout import Layout, Numbers, Offsets, check
from isogloss.tasks.align.corpus import Corpus, Words

__all__ = ["CHECKPOINT", "Evidence", "Kept", "check_kept"]

CHECKPOINT = "the evidence of this checkpoint"
_KEPT = ("starts", "cells", "source_null", "target_null", "scores")


class Evidence(NamedTuple):
    """What an E-step says of some pairs: posteriors in units of 1/65535 and log-probabilities."""

    posterior: NDArray[np.uint16]  # [n_cells, 2]
    source_null: NDArray[np.uint16]  # [n_source_tokens]
    target_null: NDArray[np.uint16]  # [n_target_tokens]
    scores: NDArray[np.float64]  # [n_pairs, 2], log p of each side given the other

    @classmethod
    def of(cls, pairs: Any, posterior: NDArray[np.uint16] | None = None) -> Evidence:
        """Room for that of `pairs`, in `posterior` if it is given."""
        if posterior is None:
            posterior = np.zeros((len(pairs.cells), 2), np.uint16)
        return cls(
            posterior,
            np.zeros(len(pairs.source_ids), np.uint16),
            np.zeros(len(pairs.target_ids), np.uint16),
            np.full((len(pairs.cell_offsets) - 1, 2), np.nan),
        )

    @classmethod
    def joined(cls, parts: Iterable[Evidence]) -> Evidence:
        """That of consecutive parts of a text as one."""
        columns = list(zip(*parts, strict=True))
        return cls(*(np.concatenate(column) for column in columns))


class Kept:
    """Evidence of a text from one step to the next, on the shelf of the text: few cells of each pair.

    Cells that are not here have posterior 0, and have put nothing into the table: counts are the sums of what is kept.
    A step writes the new evidence of a shard over the old.
    """

    _numbers = count()

    def __init__(self, corpus: Corpus) -> None:
        self.corpus, self.name = corpus, f"evidence-{next(self._numbers)}"

    def put(self, shard: int, pairs: Any, evidence: Evidence) -> None:
        """Keep what is not 0."""
        from isogloss.tasks.align._numba.expect import keep_cells

        starts, cells = keep_cells(pairs.cell_offsets, evidence.posterior)
        self.corpus.shelf.put(self._at(shard), starts, cells, *evidence[1:])

    def before(self, shard: int, pairs: Any) -> tuple[Any, ...]:
        """As the E-step takes it: (starts, cells) and null posteriors."""
        from isogloss.tasks.align._numba.expect import no_evidence

        if self._at(shard) not in self.corpus.shelf:
            nothing: tuple[Any, ...] = no_evidence(pairs)
            return nothing
        starts, cells, source_null, target_null, _ = self.corpus.shelf.get(self._at(shard))
        return starts, cells, (source_null, target_null)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, under names of their own, for `isogloss.store`."""
        found: dict[str, NDArray[Any]] = {}
        for shard in range(len(self.corpus.shards)):
            if self._at(shard) in self.corpus.shelf:
                arrays = zip(_KEPT, self.corpus.shelf.get(self._at(shard)), strict=True)
                found |= {f"evidence.{shard}.{name}": array for name, array in arrays}
        return found

    @classmethod
    def from_arrays(cls, corpus: Corpus, arrays: dict[str, NDArray[Any]]) -> Kept:
        """What `arrays` gave; refuses evidence that is not of this text, because kernels index with it."""
        kept = cls(corpus)
        for shard in range(len(corpus.shards)):
            there = [arrays[key] for name in _KEPT if (key := f"evidence.{shard}.{name}") in arrays]
            if there:
                check_kept(dict(zip(_KEPT, there, strict=True)), corpus, shard)
                corpus.shelf.put(kept._at(shard), *(array.copy() for array in there))
        return kept

    def shard(self, shard: int) -> tuple[Words, NDArray[np.uint16]]:
        """The words of a shard, and the posterior of every cell, uint16[n_cells, 2], valid until the next is asked for.

        Cells that are not kept have 0.
        """
        from isogloss.tasks.align._numba.expect import spread_cells

        words = self.corpus.words(shard)
        room = self.corpus.space("posterior", 2 * int(words.cell_offsets[-1]), np.uint16).reshape(-1, 2)
        starts, cells = self.corpus.shelf.get(self._at(shard))[:2]
        spread_cells(words.cell_offsets, starts, cells, room)
        return words, room

    @property
    def scores(self) -> NDArray[np.float64]:
        """Log-probability of each side of every pair given the other, float64[n_pairs, 2]."""
        shards = range(len(self.corpus.shards))
        return np.concatenate([np.zeros((0, 2)), *(self.corpus.shelf.get(self._at(shard))[-1] for shard in shards)])

    def stored(self, shard: int) -> dict[str, NDArray[Any]]:
        """What is kept of a shard, as arrays by name."""
        return dict(zip(_KEPT, self.corpus.shelf.get(self._at(shard)), strict=True))

    def store(self, shard: int, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep what `stored` gave, here or in another process."""
        self.corpus.shelf.put(self._at(shard), *(arrays[name] for name in _KEPT))

    def drop(self, shard: int) -> None:
        """Forget what is kept of a shard."""
        self.corpus.shelf.drop(self._at(shard))

    def _at(self, shard: int) -> str:
        return f"{self.name}-{shard}"


def check_kept(arrays: dict[str, NDArray[Any]], corpus: Corpus, shard: int, what: str = CHECKPOINT) -> None:
    """Refuse evidence that is not of the shard: kernels index with it."""
    words = corpus.words(shard)
    layout: Layout = {
        "starts": Offsets("pairs", "kept"),
        "cells": Numbers("uint16", ("kept", 3)),
        "source_null": Numbers("uint16", len(words.source_ids)),
        "target_null": Numbers("uint16", len(words.target_ids)),
    }
    found = check(arrays, layout, what, {"pairs": len(words.source_offsets) - 1})
    starts, gaps = found["starts"], found["cells"][:, 0]
    places = np.concatenate([[0], np.cumsum(gaps, dtype=np.int64)])
    outside = np.diff(places[starts]) >= np.maximum(1, np.diff(words.cell_offsets))
    if outside.any() or arrays["scores"].shape != (len(starts) - 1, 2) or arrays["scores"].dtype != np.float64:
        raise ModelError(f"{what} is of another text. Start again without resuming")
