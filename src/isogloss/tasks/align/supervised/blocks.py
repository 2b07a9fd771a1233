"""Blocks for ITG aligners: which there are, and their features.

A block links one word to two or more neighbours on the other side. A pair of n × m words has some 2 n m blocks of each
length, most of them absurd; only those are looked at whose links are all worth a thought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isogloss.tasks.align.features import PairFeatures
from isogloss.tasks.align.features.blocks import LONGEST
from isogloss.tasks.align.supervised.parts import Kind, Parts, link_and_null_parts
from isogloss.tasks.align.supervised.targets import GoldCells

__all__ = ["LARGEST", "BlockParts", "Candidates", "block_parts", "find_candidates", "largest_block"]

Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]
Indicators = tuple[Indices, NDArray[np.int32]]

SIDES = ("source", "target")
LARGEST = 4
"""Words in a block, at most, if gold decides."""
SHARE = 0.01
"""Of the sure links, that blocks of a length or longer must hold if gold is to have them allowed."""
LEAST = ("dice", "hmm_forward", "hmm_backward")
"""Features of which a block has the least over its links too, not only the mean."""
PHRASES = ("ngram_count", "ngram_pmi")
"""What is known of the several words of a block; see `isogloss.tasks.align.features.blocks`."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Blocks of one side of many pairs, pair after pair, each pair's in the order of `Blocks` arrays.

    Parameters
    ----------
    side : int
        0 for several source words with one target word, 1 for the other way round.
    size : int
        The most words in a block.
    pair : int64[n_blocks]
    place : int64[n_blocks]
        Where it stands in the raveled array [n_source, n_target, size − 1] of its pair.
    first : int64[n_blocks]
        Row of its first link among the cells of all pairs.
    step : int64[n_blocks]
        From one link to the next, in rows.
    length : int64[n_blocks]
        Words of the side that has several.
    counts : int64[n_pairs]
        Blocks of each pair.
    """

    side: int
    size: int
    pair: Indices
    place: Indices
    first: Indices
    step: Indices
    length: Indices
    counts: Indices

    @cached_property
    def offsets(self) -> Indices:
        """Where the blocks of each pair start, and the end."""
        return _starts(self.counts)

    def places_of(self, pair: int) -> Indices:
        """The places of one pair."""
        return self.place[self.offsets[pair] : self.offsets[pair + 1]]


def find_candidates(features: PairFeatures, size: int, keep: Flags | None = None) -> tuple[Candidates, Candidates]:
    """Blocks of up to `size` words whose links are all kept: several source words, several target words.

    Parameters
    ----------
    keep : bool[n_cells], optional
        Links worth a thought; all if not given.
    """
    shapes, offsets = features.shapes, features.cell_offsets
    n_cells = int(offsets[-1])
    pair = np.repeat(np.arange(len(features)), np.diff(offsets))
    width = shapes[pair, 1]
    own = np.arange(n_cells) - offsets[pair]
    row, column = own // np.maximum(1, width), own % np.maximum(1, width)
    kept = np.ones(n_cells, np.bool_) if keep is None else keep
    found = []
    for side, step in enumerate((width, np.ones(n_cells, np.int64))):
        room = shapes[pair, side] - (row, column)[side]  # words from here to the end
        cells, lengths = [], []
        alive = np.flatnonzero(kept)
        for length in range(2, size + 1):
            alive = alive[room[alive] >= length]
            alive = alive[kept[alive + (length - 1) * step[alive]]]
            cells.append(alive)
            lengths.append(np.full(len(alive), length, np.int64))
        first, length_ = np.concatenate(cells), np.concatenate(lengths)
        order = np.lexsort((length_, first))
        first, length_ = first[order], length_[order]
        place = own[first] * (size - 1) + length_ - 2
        counts = np.bincount(pair[first], minlength=len(features)).astype(np.int64)
        found.append(Candidates(side, size, pair[first], place, first, step[first], length_, counts))
    return found[0], found[1]


class BlockParts(Parts):
    """Links, nulls, and blocks of either side."""

    def __init__(self, kinds: Sequence[Kind], candidates: tuple[Candidates, Candidates]) -> None:
        super().__init__(kinds)
        self.candidates = candidates


def block_parts(features: PairFeatures, size: int, keep: Flags | None = None) -> BlockParts:
    """The parts of an `Itg` with blocks of up to `size` words, of which those with links outside `keep` are left out.

    A block has the mean of each feature of its links, the least of some, every lexical indicator that one of its links
    has, and an indicator of its length; with the set "blocks" among the features, also how often its several words
    stand together and what they look like. Each side has weights of its own.
    """
    candidates = find_candidates(features, size, keep)
    kinds = [_kind(features, side) for side in candidates]
    return BlockParts([*link_and_null_parts(features).kinds, *kinds], candidates)


def _kind(features: PairFeatures, blocks: Candidates) -> Kind:
    lengths = range(2, blocks.size + 1)
    used = [k for k, name in enumerate(features.link_names) if name != "bias"]  # the lengths are the bias
    least = [k for k in used if features.link_names[k] in LEAST]
    spans, shapes, shape_names = _phrases(features, blocks)
    names = [f"length {length}" for length in lengths]
    names += [features.link_names[k] for k in used] + [f"least {features.link_names[k]}" for k in least]
    values = np.empty((len(blocks.first), len(names) + len(PHRASES)), np.float32)
    own, mean, low, last = np.split(values, np.cumsum([len(lengths), len(used), len(least)]), axis=1)
    own[:] = blocks.length[:, None] == np.array(lengths)
    link = features.links[blocks.first]
    mean[:], low[:], last[:] = link[:, used], link[:, least], spans
    for k in range(1, blocks.size):
        some = np.flatnonzero(blocks.length > k)
        link = features.links[blocks.first[some] + k * blocks.step[some]]
        mean[some] += link[:, used]
        low[some] = np.minimum(low[some], link[:, least])
    mean /= blocks.length[:, None]
    indicators, indicator_names = shapes, shape_names
    if features.lexical is not None:
        indicators = _beside(_union(features.lexical, blocks), shapes, len(features.lexical_names))
        indicator_names = (*features.lexical_names, *shape_names)
    name = f"{SIDES[blocks.side]} block"
    return Kind(name, (*names, *PHRASES), values, blocks.counts, indicators, indicator_names)


def _phrases(features: PairFeatures, blocks: Candidates) -> tuple[NDArray[np.float32], Indicators, tuple[str, ...]]:
    """Statistics of the several words, float32[n_blocks, 2], and indicators of shapes; nothing without "blocks"."""
    none = np.zeros(len(blocks.first) + 1, np.int64), np.zeros(0, np.int32)
    spans = np.zeros((len(blocks.first), len(PHRASES)), np.float32)
    found = features.further.get("blocks")
    if found is None:
        return spans, none, ()
    n, m = features.shapes[blocks.pair].T
    cell = blocks.place // (blocks.size - 1)
    rows = found.offsets[blocks.pair] + (blocks.side * n * m + cell) * (LONGEST - 1) + blocks.length - 2
    there = blocks.length <= LONGEST
    spans[there] = found.values[rows[there]][:, [found.names.index(name) for name in PHRASES]]
    if found.indicators is None:
        return spans, none, ()
    indptr, indices = found.indicators  # at most one shape a block
    fired = np.zeros(len(rows), np.int64)
    fired[there] = np.diff(indptr)[rows[there]]
    return spans, (_starts(fired), indices[indptr[rows[fired > 0]]]), found.indicator_names


def _beside(first: Indicators, second: Indicators, width: int) -> Indicators:
    """Two matrices of indicators side by side."""
    rows = [np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)) for indptr, _ in (first, second)]
    order = np.argsort(np.concatenate(rows), kind="stable")
    indices = np.concatenate([first[1], second[1] + width]).astype(np.int32)[order]
    return _starts(np.diff(first[0]) + np.diff(second[0])), indices


def _starts(sizes: Indices) -> Indices:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _union(lexical: Indicators, blocks: Candidates) -> Indicators:
    """The indicators that some link of a block has, each once."""
    indptr, indices = lexical
    owner = np.repeat(np.arange(len(blocks.first)), blocks.length)
    starts = np.repeat(np.cumsum(blocks.length) - blocks.length, blocks.length)
    cells = blocks.first[owner] + (np.arange(len(owner)) - starts) * blocks.step[owner]
    fired = np.diff(indptr)[cells]
    ends = np.cumsum(fired)
    at = np.repeat(indptr[cells] - (ends - fired), fired) + np.arange(int(ends[-1]) if len(ends) else 0)
    width = int(indices.max(initial=0)) + 1
    keys = np.unique(np.repeat(owner, fired) * width + indices[at])
    rows = np.bincount(keys // width, minlength=len(blocks.first))
    return _starts(rows), (keys % width).astype(np.int32)


def largest_block(gold: GoldCells) -> int | None:
    """How many words blocks need to have room for, by what is sure; None where nearly all links are one to one.

    The largest number up to `LARGEST` such that blocks of so many words or more hold at least `SHARE` of sure links.

    Examples
    --------
    >>> sure = np.array([[True, False], [True, False], [False, True]])
    >>> largest_block(GoldCells(np.array([[3, 2]]), sure.ravel(), np.zeros(6, np.bool_)))
    2
    """
    held = np.zeros(LARGEST + 1, np.int64)  # sure links in blocks of so many words
    for k in range(len(gold)):
        sure = gold.of_pair(k)[0]
        rows, columns = sure.sum(axis=1), sure.sum(axis=0)
        for flags, many, ones in ((sure, rows, columns), (sure.T, columns, rows)):
            for word in np.flatnonzero(many > 1).tolist():
                others = np.flatnonzero(flags[word])
                if others[-1] - others[0] + 1 == len(others) and (ones[others] == 1).all():
                    held[min(len(others), LARGEST)] += len(others)
    enough = held[::-1].cumsum()[::-1] >= max(1.0, SHARE * gold.sure.sum())
    found = [length for length in range(2, LARGEST + 1) if enough[length]]
    return max(found) if found else None
