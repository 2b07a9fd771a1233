"""A bitext as the kernels take it: word forms as numbers, and the word pairs that occur together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Text, Vocabulary

__all__ = ["Corpus"]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentence pairs with their own table of word pairs.

    Parameters
    ----------
    source_words, target_words : Vocabulary
        Word forms (lower case, unless case is kept) that occur.
    pairs : Pairs
        Word numbers, sentence offsets, and the table entry of every cell.
    rows, columns : int64[n_source_types + 1], int32[n_entries]
        The table: entries ``rows[e]:rows[e + 1]`` belong to source form e, ``columns`` says with which target form.
    occurrences : tuple of arrays
        Where each source form occurs (see `_numba.lexicon.occurrences`).
    skipped : bool[n_pairs]
        Pairs that are passed over: a side is empty, or longer than `max_length`.
    """

    source_words: Vocabulary
    target_words: Vocabulary
    pairs: Any
    rows: NDArray[np.int64]
    columns: NDArray[np.int32]
    occurrences: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]
    skipped: NDArray[np.bool_]
    max_length: int

    @classmethod
    def of(cls, bitext: Bitext, *, lowercase: bool, max_length: int) -> Corpus:
        from isogloss.tasks.align._numba.expect import Pairs
        from isogloss.tasks.align._numba.lexicon import index_cells, occurrences

        lengths = bitext.source.ids.lengths, bitext.target.ids.lengths
        empty = (lengths[0] == 0) | (lengths[1] == 0)
        skipped = empty | (lengths[0] > max_length) | (lengths[1] > max_length)
        source_words, source_ids, source_offsets = _forms(bitext.source, lowercase, skipped)
        target_words, target_ids, target_offsets = _forms(bitext.target, lowercase, skipped)
        cell_offsets = np.zeros(len(bitext) + 1, np.int64)
        np.cumsum(np.diff(source_offsets) * np.diff(target_offsets), out=cell_offsets[1:])
        cells = np.empty(cell_offsets[-1], np.int32)
        starts, sentence, position = occurrences(source_ids, source_offsets, len(source_words))
        rows, columns = index_cells(
            starts, sentence, position, target_ids, target_offsets, cell_offsets, max(1, len(target_words)), cells
        )
        pairs = Pairs(source_ids, source_offsets, target_ids, target_offsets, cell_offsets, cells)
        where = (starts, sentence, position)
        return cls(source_words, target_words, pairs, rows, columns, where, skipped, max_length)

    def __len__(self) -> int:
        return len(self.skipped)

    @property
    def n_cells(self) -> int:
        return len(self.pairs.cells)

    @cached_property
    def source_counts(self) -> NDArray[np.int64]:
        """How often each source form occurs."""
        return np.bincount(self.pairs.source_ids, minlength=len(self.source_words))

    @cached_property
    def target_counts(self) -> NDArray[np.int64]:
        return np.bincount(self.pairs.target_ids, minlength=len(self.target_words))

    def shape(self, pair: int) -> tuple[int, int]:
        """Words of a pair on both sides; (0, 0) when it is skipped."""
        a, b = self.pairs.source_offsets, self.pairs.target_offsets
        return int(a[pair + 1] - a[pair]), int(b[pair + 1] - b[pair])


def _forms(
    text: Text, lowercase: bool, skipped: NDArray[np.bool_]
) -> tuple[Vocabulary, NDArray[np.int32], NDArray[np.int64]]:
    """Forms that occur, the form of every token, and sentence offsets; skipped sentences become empty."""
    start, stop = text.ids.offsets[0], text.ids.offsets[-1]
    values, offsets = text.ids.values[start:stop], text.ids.offsets - start
    if skipped.any():
        lengths = np.diff(offsets)
        values = values[np.repeat(~skipped, lengths)]
        offsets = np.concatenate([[0], np.cumsum(np.where(skipped, 0, lengths))]).astype(np.int64)
    used = np.zeros(len(text.vocabulary), bool)
    used[values] = True
    types = text.vocabulary.types
    chosen = np.flatnonzero(used)
    forms, numbers = Vocabulary([types[k] for k in chosen]).mapped(str.lower if lowercase else str)
    mapping = np.full(len(types) or 1, -1, np.int32)
    mapping[chosen] = numbers
    return forms, mapping[values], offsets
