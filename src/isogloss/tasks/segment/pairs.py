"""Sentence pairs as numbers, and their words as lattices of morphemes that come from source words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.ragged import Ragged
from isogloss.structures.aligned_segments import AlignedSegmentsBatch, LatticeRows, n_aligned_parts
from isogloss.structures.base import kept
from isogloss.structures.batch import Stack, run_sentences
from isogloss.tasks.segment.distortion import n_steps
from isogloss.tasks.segment.lattices import WordLattices

__all__ = ["Cells", "Pairs", "Params", "SentencePairs", "cell_offsets", "numbered", "offsets_of"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
BATCH = 1 << 22
"""Scores of sentence pairs that are worked on together."""


class Params(NamedTuple):
    """What is learnt: log scores, and the model of words alone that morphemes are backed off to."""

    entries: Array
    """float64[n_entries]: log P(morpheme | source word, type) of pairs that occur together."""
    shares: Array
    """float64[(n_source + 1) k]: what other morphemes have, beside their own log probability; null is the last word."""
    table: Array
    unseen: Array
    ends: Array
    steps: Array
    weights: Array
    """Of transitions between types."""
    jumps: Array
    """Of distortion."""
    done: Array
    """float64[1]: iterations so far."""


@dataclass(frozen=True, eq=False)
class SentencePairs:
    """Sentence pairs as numbers.

    Parameters
    ----------
    words : Ragged of int64
        The number, among different words, of each target word.
    source : Ragged of int64
        The numbers of source words, −1 for words that are not known. Where the source is cut, they are its morphemes.
    owners : Ragged of int64
        The word of the sentence that each of them belongs to.
    n_source : int64[n_pairs]
        How many words each source sentence has.
    """

    words: Ragged
    source: Ragged
    owners: Ragged
    n_source: Integers

    def __len__(self) -> int:
        return len(self.words)

    def part(self, start: int, stop: int) -> SentencePairs:
        """Pairs start..stop-1."""
        words, source, owners = (
            _own(one.part(start, min(stop, len(self)))) for one in (self.words, self.source, self.owners)
        )
        return SentencePairs(words, source, owners, self.n_source[start:stop])


class Cells(NamedTuple):
    """The pair of a morpheme and a source word that each cell of sentence pairs is."""

    entries: NDArray[np.int32]
    offsets: Integers


@dataclass(frozen=True, eq=False)
class Pairs:
    """Sentence pairs with all that does not change while something is learnt of them.

    Parameters
    ----------
    given : SentencePairs
    lattices : WordLattices
        Of all different words.
    cells : Cells
    sizes : int64[n]
        The different numbers of source words, rising.
    """

    given: SentencePairs
    lattices: WordLattices
    cells: Cells
    sizes: Integers

    @classmethod
    def of(cls, given: SentencePairs, lattices: WordLattices, cells: Cells) -> Pairs:
        """With the numbers of source words that there are."""
        return cls(given, lattices, cells, np.unique(given.source.lengths))

    def part(self, some: range) -> Pairs:
        """Some of the pairs; their cells share the array."""
        start, stop = some.start, some.stop
        offsets = self.cells.offsets[start : stop + 1]
        cells = Cells(self.cells.entries[offsets[0] : offsets[-1]], offsets - offsets[0])
        return replace(self, given=self.given.part(start, stop), cells=cells)

    def joined(self) -> LatticeRows:
        """The lattices of sentences."""
        from isogloss.tasks.segment._numba.bilingual import join_lattices

        own, words = self.lattices, self.given.words
        nodes = _sums(own.nodes - 1, words) + 1
        arcs, rows = (_sums(np.diff(one), words) for one in (own.arcs_at, own.rows_at))
        arc_offsets, node_offsets = offsets_of(arcs), offsets_of(nodes)
        table = np.empty((3, int(arc_offsets[-1])), np.int32)
        borders = np.empty(int(node_offsets[-1]), np.uint8)
        given = (words.values, words.offsets, own.nodes, own.arcs, own.arcs_at, own.rows_at, *table)
        run_sentences(join_lattices, len(words), *given, arc_offsets, borders, node_offsets)
        return LatticeRows(table.T, arc_offsets, Ragged(borders, node_offsets), rows)

    def batches(self) -> list[range]:
        """Sentences in runs whose scores fit into memory together."""
        own, words = self.lattices, self.given.words
        arcs, rows = (_sums(np.diff(one), words) for one in (own.arcs_at, own.rows_at))
        sizes = n_aligned_parts(rows, arcs, self.given.source.lengths)
        number = (np.cumsum(sizes) - sizes) // BATCH
        borders = np.flatnonzero(np.diff(number, prepend=-1, append=-2))
        return [range(a, b) for a, b in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)]

    def distributions(
        self, params: Params, row_scores: Array, arc_scores: Array, tables: Array
    ) -> AlignedSegmentsBatch:
        """The distribution over the ways to cut and align each sentence."""
        from isogloss.tasks.segment._numba.bilingual import lay_out_pairs

        joined, own, words, source = self.joined(), self.lattices, self.given.words, self.given.source
        sizes = n_aligned_parts(joined.n_rows, np.diff(joined.offsets), source.lengths)
        offsets = offsets_of(sizes)
        scores = np.empty(int(offsets[-1]))
        k = len(params.unseen)
        run_sentences(
            lay_out_pairs, len(words), words.values, words.offsets, own.arcs_at, own.rows_at, own.rows[:, 2].copy(),
            row_scores, arc_scores, source.values, source.offsets, self.cells.entries, self.cells.offsets,
            params.entries, params.shares, k, tables, self.table_offsets, self.which_size, scores, offsets,
        )  # fmt: skip
        return AlignedSegmentsBatch(Stack(kept(scores), offsets, sizes[:, np.newaxis]), joined, source.lengths)

    @property
    def table_offsets(self) -> Integers:
        """int64[n_sizes + 1]: where the tables of steps for each number of source words begin."""
        return offsets_of(n_steps(self.sizes))

    @property
    def which_size(self) -> Integers:
        """int64[n_pairs]: which of `sizes` each has."""
        return np.searchsorted(self.sizes, self.given.source.lengths)


def _own(rows: Ragged) -> Ragged:
    """Rows with an array of their own, which begins with the first."""
    return Ragged(rows.flat, rows.offsets - rows.offsets[0])


def offsets_of(sizes: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _sums(sizes: Integers, words: Ragged) -> Integers:
    """int64[n_pairs]: sums over the words of each."""
    before = offsets_of(sizes[words.flat])
    offsets = words.offsets - words.offsets[0]
    return np.asarray(before[offsets[1:]] - before[offsets[:-1]], np.int64)


def cell_offsets(pairs: SentencePairs, lattices: WordLattices) -> Integers:
    return offsets_of(_sums(np.diff(lattices.rows_at), pairs.words) * (pairs.source.lengths + 1))


def numbered(
    pairs: SentencePairs, lattices: WordLattices, units: Integers, n_source: int, n_units: int
) -> tuple[Cells, NDArray[np.int32], NDArray[np.int32]]:
    """The entry of each cell; the morpheme and the source word of each entry, null being the last."""
    from isogloss.tasks.segment._numba.bilingual import number_entries

    words, source = pairs.words, pairs.source
    order = np.argsort(source.values, kind="stable")
    first = offsets_of(np.bincount(source.values, minlength=n_source))
    offsets, none = cell_offsets(pairs, lattices), np.zeros(0, np.int32)
    given = (order, first, units, words.values, words.offsets, lattices.rows_at, n_units, source.offsets, source.values,
             offsets)  # fmt: skip
    count = number_entries(*given, 0, none, none, none, n_source)
    cells = np.empty(int(offsets[-1]), np.int32)
    entries, owners = np.empty(count, np.int32), np.empty(count, np.int32)
    number_entries(*given, 1, cells, entries, owners, n_source)
    return Cells(cells, offsets), entries, owners
