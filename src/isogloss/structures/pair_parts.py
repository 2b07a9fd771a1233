"""Candidates of sentence pairs, links of two trees and word links, and the parts over them that may have scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import gathered
from isogloss.errors import ParameterError
from isogloss.structures.base import Array
from isogloss.structures.batch import Stack, run_sentences
from isogloss.structures.tree_parts import BINS, Candidates, TreeParts

__all__ = ["CONFIGURATIONS", "PairCandidates", "PairParts"]

CONFIGURATIONS = ("mono", "swap", "sdouble", "tdouble", "sgrand", "ssib", "tgrand", "tsib", "synch")
"""How links of two trees and word links fit together; the last is hard, and has no scores."""
SECTIONS = ("target", "source", "links", "source_fertility", "target_fertility", "configurations")
"""Parts of a pair, in the order of their scores."""
Places = NDArray[np.int64]
Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class PairCandidates:
    """What may be there in many pairs.

    Parameters
    ----------
    source, target : Candidates
        Heads that words may have.
    link_offsets : int64[n_pairs + 1]
    links : int32[n_links, 2]
        Word links that may be there, (source word, target word) from 0, in ascending order.
    source_odds, target_odds : float64[n_links_of_trees], optional
        What separate parsers think of links of the trees, as log-odds: relations of words count (grandparents,
        siblings) whose two links have a sum above 0. All if not given.
    known : bool
        The source trees are known: each word has its only candidate as head.
    """

    source: Candidates
    target: Candidates
    link_offsets: Places
    links: Ints
    source_odds: Array | None = None
    target_odds: Array | None = None
    known: bool = False

    def __post_init__(self) -> None:
        if not len(self.source) == len(self.target) == len(self.link_offsets) - 1:
            raise ParameterError(
                f"PairCandidates: {len(self.source)} and {len(self.target)} sentences and links of "
                f"{len(self.link_offsets) - 1} pairs; give as many of each"
            )
        for side, own in (("source", self.source), ("target", self.target)):
            _check_heads(side, own)
        if self.known and (np.diff(self.source.starts) != 1).any():
            raise ParameterError("PairCandidates: where source trees are known, every word has exactly one head")
        self._check_links()

    def _check_links(self) -> None:
        """Kernels index with word links."""
        offsets, links = self.link_offsets, self.links
        if links.shape != (int(offsets[-1]), 2) or offsets[0] != 0 or (np.diff(offsets) < 0).any():
            raise ParameterError(
                f"PairCandidates: link_offsets should rise from 0 to the number of word links, {len(links)}"
            )
        sizes = np.stack([np.diff(self.source.offsets), np.diff(self.target.offsets)], axis=1)
        outside = np.flatnonzero(((links < 0) | (links >= np.repeat(sizes, np.diff(offsets), axis=0))).any(axis=1))
        if len(outside):
            pair = int(np.searchsorted(offsets, outside[0], side="right")) - 1
            raise ParameterError(
                f"PairCandidates: pair {pair} has the word link {links[outside[0]].tolist()}, and {sizes[pair, 0]} and "
                f"{sizes[pair, 1]} words; they count from 0"
            )

    def __len__(self) -> int:
        return len(self.link_offsets) - 1

    @classmethod
    def all(cls, source: ArrayLike, target: ArrayLike) -> PairCandidates:
        """Every link of trees, and every word link, of sentences with these lengths."""
        n, m = np.asarray(source, np.int64), np.asarray(target, np.int64)
        cells = [np.argwhere(np.ones((a, b), np.bool_)) for a, b in zip(n.tolist(), m.tolist(), strict=True)]
        offsets = np.concatenate([[0], np.cumsum([len(one) for one in cells])]).astype(np.int64)
        links = np.concatenate([np.zeros((0, 2), np.int64), *cells]).astype(np.int32)
        return cls(Candidates.all(n), Candidates.all(m), offsets, links)


class _Counts(NamedTuple):
    """Where configurations, indicators, and pairs of links behind these begin in each pair."""

    configurations: Places
    indicators: Places
    pairs: Places


@dataclass(frozen=True, eq=False)
class PairParts:
    """All parts of some sentence pairs in one vector: of each pair the sections of `SECTIONS`.

    Made by `PairParts.of`; `isogloss.structures._numba.pair_parts` says how variables are numbered.

    Parameters
    ----------
    target : TreeParts
        With its families.
    source : TreeParts
        Links alone.
    known : bool
        Whether the source trees are certain; their links then are no parts.
    link_offsets, links
        See `PairCandidates`.
    counts
        Where what follows begins in each pair.
    kinds : int8[n_configurations]
        Numbers of `CONFIGURATIONS`.
    slots : int32[n_configurations, 4]
        Variables: target link, source link, word link of the heads and of the children.
    nodes : int32[n_configurations, 4]
        Head and child of the source, head and child of the target; 0 is the root.
    first, second, starts : int32
        Pairs of variables of each indicator; there is one more start in each pair.
    begins : int64[n_pairs, 7]
        Where the sections of each pair begin in the vector, and where it ends.
    """

    target: TreeParts
    source: TreeParts
    known: bool
    link_offsets: Places
    links: Ints
    counts: _Counts
    kinds: NDArray[np.int8]
    slots: Ints
    nodes: Ints
    first: Ints
    second: Ints
    starts: Ints
    begins: Places

    @classmethod
    def of(
        cls,
        candidates: PairCandidates,
        configurations: Sequence[str] = CONFIGURATIONS[:-1],
        families: Sequence[str] = (),
        pairs: Places | None = None,
    ) -> PairParts:
        """The parts of some pairs, or of all, with target trees that have these families."""
        from isogloss.structures._numba.pair_parts import fill_pairs, measure_pairs

        if unknown := sorted(set(configurations) - set(CONFIGURATIONS)):
            raise ParameterError(f"PairParts: there are {', '.join(CONFIGURATIONS)}, not {', '.join(unknown)}")
        if "crossing" in families:
            raise ParameterError("PairParts: links that cross have no scores here; leave this family out")
        chosen = np.arange(len(candidates)) if pairs is None else np.ascontiguousarray(pairs, np.int64)
        target = TreeParts.of(candidates.target, families, chosen)
        source = TreeParts.of(candidates.source, (), chosen)
        link_offsets, rows = gathered(candidates.link_offsets, chosen)
        wanted = np.array([name in configurations for name in CONFIGURATIONS])
        given = (
            source.lengths, target.lengths, source.link_offsets, source.head, source.child, target.link_offsets,
            target.head, target.child, candidates.known, _odds(candidates.source_odds, candidates.source, chosen),
            _odds(candidates.target_odds, candidates.target, chosen), link_offsets, candidates.links[rows], wanted,
        )  # fmt: skip
        sizes = np.zeros((len(chosen), 3), np.int64)
        run_sentences(measure_pairs, len(chosen), *given, sizes)
        counts = _Counts(*(_offsets(column) for column in sizes.T))
        n_configurations, n_indicators, n_pairs = (int(one[-1]) for one in counts)
        kinds, slots = np.empty(n_configurations, np.int8), np.empty((n_configurations, 4), np.int32)
        nodes, starts = np.empty((n_configurations, 4), np.int32), np.zeros(n_indicators + len(chosen), np.int32)
        first, second = np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int32)
        run_sentences(fill_pairs, len(chosen), *given, *counts, kinds, slots, nodes, first, second, starts)
        soft = np.diff(np.concatenate([[0], np.cumsum(kinds < CONFIGURATIONS.index("synch"))])[counts.configurations])
        parts = np.stack([
            target.begins[:, 5] - target.begins[:, 0],
            np.zeros(len(chosen), np.int64) if candidates.known else np.diff(source.link_offsets),
            np.diff(link_offsets), BINS * source.lengths, BINS * target.lengths, soft,
        ], axis=1)  # fmt: skip
        begins = np.zeros((len(chosen), 7), np.int64)
        np.cumsum(parts, axis=1, out=begins[:, 1:])
        begins += _offsets(parts.sum(axis=1))[:-1, None]
        return cls(
            target, source, candidates.known, link_offsets, candidates.links[rows], counts, kinds, slots, nodes, first,
            second, starts, begins,
        )  # fmt: skip

    def take(self, items: Places) -> PairParts:
        """The parts of some pairs, by their numbers, in that order."""
        link_offsets, rows = gathered(self.link_offsets, items)
        conf_offsets, conf = gathered(self.counts.configurations, items)
        indicators = _offsets(np.diff(self.counts.indicators)[items])
        pair_offsets, pairs = gathered(self.counts.pairs, items)
        _, starts = gathered(self.counts.indicators + np.arange(len(self) + 1), items)
        begins = self.begins[items]
        shifts = _offsets(begins[:, 6] - begins[:, 0])[:-1] - begins[:, 0]
        return PairParts(
            self.target.take(items), self.source.take(items), self.known, link_offsets, self.links[rows],
            _Counts(conf_offsets, indicators, pair_offsets), self.kinds[conf], self.slots[conf], self.nodes[conf],
            self.first[pairs], self.second[pairs], self.starts[starts], begins + shifts[:, None],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.begins)

    @property
    def n_parts(self) -> int:
        return int(self.begins[-1, 6]) if len(self) else 0

    @cached_property
    def offsets(self) -> Places:
        """int64[n_pairs + 1]: where the vector of each pair begins."""
        return np.append(self.begins[:, 0], self.n_parts)

    def places(self, section: str) -> Places:
        """Where the parts of one section are in the vector, pair after pair."""
        k = SECTIONS.index(section)
        return _ranges(self.begins[:, k], self.begins[:, k + 1])

    @cached_property
    def target_links(self) -> Places:
        """Where links of target trees are in the vector."""
        counts = np.diff(self.target.link_offsets)
        return _ranges(self.begins[:, 0], self.begins[:, 0] + counts)

    @cached_property
    def soft(self) -> NDArray[np.bool_]:
        """bool[n_configurations]: those that have scores; of each pair they come before the others."""
        return np.asarray(self.kinds < CONFIGURATIONS.index("synch"))

    def stack(self, values: Array) -> Stack:
        """A vector over all parts as one array for each pair."""
        return Stack(values, self.offsets, np.diff(self.offsets)[:, None])

    @property
    def layout(self) -> tuple[Any, ...]:
        """As kernels take it."""
        return (
            *self.target.layout[:-1], self.source.lengths, self.source.link_offsets, self.source.head,
            self.source.child, self.known, self.link_offsets, self.links, *self.counts, self.kinds, self.slots,
            self.first, self.second, self.starts, self.begins, BINS,
        )  # fmt: skip


def _check_heads(side: str, candidates: Candidates) -> None:
    """Kernels index with candidate heads."""
    lengths = np.diff(candidates.offsets)
    words = np.repeat(lengths, lengths)
    if len(candidates.starts) != len(words) + 1 or int(candidates.starts[-1]) != len(candidates.heads):
        raise ParameterError(f"PairCandidates: the {side} candidates should have a start for each word, and one more")
    most = np.repeat(words, np.diff(candidates.starts))
    outside = np.flatnonzero((candidates.heads < 0) | (candidates.heads > most))
    if len(outside):
        word = int(np.searchsorted(candidates.starts, outside[0], side="right")) - 1
        raise ParameterError(
            f"PairCandidates: word {word} of the {side} text has the head {candidates.heads[outside[0]]}, where its "
            f"sentence has {words[word]} words. Heads count from 1, 0 is the root"
        )


def _odds(given: Array | None, candidates: Candidates, chosen: Places) -> Array:
    """Log-odds of the candidate links of some sentences; +1 where all relations count."""
    offsets, places = gathered(candidates.starts[candidates.offsets], chosen)
    return np.ones(int(offsets[-1])) if given is None else np.asarray(given, np.float64)[places]


def _ranges(first: Places, last: Places) -> Places:
    sizes = last - first
    ends = np.cumsum(sizes)
    return np.asarray(np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(first - (ends - sizes), sizes))


def _offsets(counts: Places) -> Places:
    out = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=out[1:])
    return out
