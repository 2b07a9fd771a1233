"""`Bichart`: the bispans of sentence pairs of which derivations of an inversion transduction grammar are built."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError

__all__ = ["PATTERNS", "Bichart", "Pattern"]

Ints = NDArray[np.int64]
Cells = NDArray[np.int32]
Flags = NDArray[np.bool_]


class Pattern(NamedTuple):
    """What a terminal links: words of a source and of a target span, by their places in it."""

    n_source: int
    n_target: int
    links: tuple[tuple[int, int], ...]


def _full(n_source: int, n_target: int) -> Pattern:
    return Pattern(n_source, n_target, tuple((i, j) for i in range(n_source) for j in range(n_target)))


def _gapped(first: int) -> tuple[Pattern, Pattern]:
    """Three words of which the outer two are linked to one word, and the middle one to its neighbour; and the same the
    other way round."""
    links = ((0, first), (1, 1 - first), (2, first))
    return Pattern(3, 2, links), Pattern(2, 3, tuple(sorted((j, i) for i, j in links)))


PATTERNS = (
    _full(1, 1), _full(1, 2), _full(1, 3), _full(2, 1), _full(3, 1), _full(2, 2), _full(2, 3), _full(3, 2),
    *_gapped(0), *_gapped(1),
)  # fmt: skip
"""Terminals: a link, one word with two or three, full blocks of two with two or three, and those with a gap."""
ROOM = 2**28
"""The most entries of the table that finds cells by their corners, four bytes each, while a chart is made."""


@dataclass(frozen=True, eq=False)
class Bichart:
    """Which bispans and terminals the derivations of some sentence pairs may have.

    Parts of a pair are numbered one after the other: source words and target words without a link, terminals, bispans.

    Parameters
    ----------
    sizes : int64[n_pairs, 2]
        Source and target words.
    cell_offsets : int64[n_pairs + 1]
    cells : int32[n_cells, 4]
        Bispans (i, k, j, h): source words i … k − 1 with target words j … h − 1; those of a pair begin with the
        smallest, by words of both sides, and end with the whole pair.
    term_offsets : int64[n_pairs + 1]
    terms : int32[n_terms, 2]
        The cell of each terminal, counted within its pair, and the number of its pattern in `PATTERNS`.
    split_starts : int64[n_cells + 1]
    splits : int32[n_splits, 2]
        The two cells that make up a cell, counted within the pair.
    around : int32[n_cells, 4]
        The cells without the first and without the last source word, and the same of the target; −1 for none.
    """

    sizes: Ints
    cell_offsets: Ints
    cells: Cells
    term_offsets: Ints
    terms: Cells
    split_starts: Ints
    splits: Cells
    around: Cells

    @classmethod
    def full(cls, n_source: int, n_target: int, patterns: Iterable[int] = range(len(PATTERNS))) -> Bichart:
        """One pair with all bispans and terminals.

        Examples
        --------
        >>> chart = Bichart.full(2, 2)
        >>> len(chart.cells), len(chart.terms), chart.n_parts.tolist()
        (9, 9, [22])
        """
        return cls.of([np.ones((n_source, n_target), np.bool_)], patterns)

    @classmethod
    def of(
        cls,
        links: Sequence[ArrayLike],
        patterns: Iterable[int] = range(len(PATTERNS)),
        *,
        confident: Sequence[ArrayLike] | None = None,
        broken: float = np.inf,
    ) -> Bichart:
        """Pairs with the terminals whose links are all allowed, and the bispans that may be built of them.

        Parameters
        ----------
        links : list of bool[n_source, n_target]
            Allowed links of each pair.
        patterns : iterable of int
            Numbers of patterns that terminals may have.
        confident : list of bool[n_source, n_target], optional
            Links that are held for certain.
        broken : float
            How many of these a bispan may break, that is, have exactly one of their ends.
        """
        kinds = sorted(set(patterns))
        if not all(0 <= kind < len(PATTERNS) for kind in kinds):
            raise ParameterError(f"Bichart: patterns are numbers from 0 to {len(PATTERNS) - 1}, not {kinds}")
        grids = [np.asarray(one, np.bool_) for one in links]
        sure = [None] * len(grids) if confident is None else [np.asarray(one, np.bool_) for one in confident]
        limit = -1 if broken == np.inf or confident is None else int(broken)
        made = []
        for s, (grid, own) in enumerate(zip(grids, sure, strict=True)):
            if grid.ndim != 2 or (own is not None and own.shape != grid.shape):
                raise ParameterError(f"Bichart: pair {s}: links should be [n_source, n_target], both arrays alike")
            made.append(_one(grid, own, kinds, limit))
        return cls.joined(made)

    @classmethod
    def joined(cls, charts: Sequence[Bichart]) -> Bichart:
        """The pairs of several charts, one after the other."""
        nothing = _assembled(np.zeros((0, 2), np.int64), [], [], [])
        every = [nothing, *charts]

        def chained(each: list[Ints]) -> Ints:
            ends = np.cumsum([0, *(int(one[-1]) for one in each)])
            moved = [one[1:] + end for one, end in zip(each, ends[:-1].tolist(), strict=True)]
            return np.concatenate([np.zeros(1, np.int64), *moved])

        def column(name: str) -> Any:
            return np.concatenate([getattr(one, name) for one in every])

        return cls(
            column("sizes"), chained([one.cell_offsets for one in every]), column("cells"),
            chained([one.term_offsets for one in every]), column("terms"),
            chained([one.split_starts for one in every]), column("splits"), column("around"),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def n_parts(self) -> Ints:
        """int64[n_pairs]: how many parts each pair has."""
        return np.asarray(self.first_cells + np.diff(self.cell_offsets))

    @cached_property
    def first_terms(self) -> Ints:
        """int64[n_pairs]: the number of the first terminal among the parts of each pair."""
        return np.asarray(self.sizes.sum(axis=1))

    @cached_property
    def first_cells(self) -> Ints:
        """int64[n_pairs]: the number of the first bispan among the parts of each pair."""
        return self.first_terms + np.diff(self.term_offsets)

    def cells_of(self, pair: int) -> Cells:
        """int32[n, 4]: the bispans of a pair."""
        return self.cells[self.cell_offsets[pair] : self.cell_offsets[pair + 1]]

    def terms_of(self, pair: int) -> Cells:
        """int32[n, 2]: cell and pattern of the terminals of a pair."""
        return self.terms[self.term_offsets[pair] : self.term_offsets[pair + 1]]

    def links_of(self, pair: int) -> tuple[Ints, Ints, Ints]:
        """Terminal, source word and target word of all links that terminals of a pair have."""
        terms, cells = self.terms_of(pair), self.cells_of(pair)
        found = [np.zeros((0, 3), np.int64)]
        for kind in np.unique(terms[:, 1]).tolist():
            rows = np.flatnonzero(terms[:, 1] == kind)
            corners = cells[terms[rows, 0]]
            for i, j in PATTERNS[kind].links:
                found.append(np.stack([rows, corners[:, 0] + i, corners[:, 2] + j], axis=1))
        joined = np.concatenate(found)
        joined = joined[np.lexsort(joined.T[::-1])]
        return joined[:, 0], joined[:, 1], joined[:, 2]

    def kept(self, cells: Flags) -> Bichart:
        """The chart with some of its bispans alone, bool[n_cells]; whole pairs are always kept."""
        made = []
        for s in range(len(self)):
            own, terms = self.cells_of(s), self.terms_of(s)
            stays = np.array(cells[self.cell_offsets[s] : self.cell_offsets[s + 1]])
            stays[-1:] = True
            number = np.cumsum(stays) - 1
            left = terms[stays[terms[:, 0]]]
            moved = np.stack([number[left[:, 0]], left[:, 1]], axis=1).astype(np.int32)
            made.append(_linked(self.sizes[s], own[stays], moved))
        return Bichart.joined(made)


def _one(links: Flags, confident: Flags | None, kinds: Sequence[int], limit: int) -> Bichart:
    """The chart of one pair: all bispans that do not break too many links and are of use."""
    from isogloss.structures._numba.bitree import candidates, useful

    n, m = links.shape
    if (n + 1) ** 2 * (m + 1) ** 2 > ROOM:
        raise ParameterError(
            f"Bichart: a pair of {n} and {m} words is too long. Leave out pairs of more than 100 words or so"
        )
    counts = np.zeros((n + 1, m + 1), np.int64)
    if confident is not None:
        counts[1:, 1:] = confident.cumsum(axis=0).cumsum(axis=1)
    size = candidates(n, m, counts, limit, np.zeros((0, 4), np.int32))
    cells = np.zeros((size, 4), np.int32)
    candidates(n, m, counts, limit, cells)
    order = np.argsort(cells[:, 1] - cells[:, 0] + cells[:, 3] - cells[:, 2], kind="stable")
    cells = np.ascontiguousarray(cells[order])
    made = _linked(np.array([n, m], np.int64), cells, _terminals(links, cells, kinds))
    keep = np.zeros(len(cells), np.bool_)
    useful(made.cells, made.terms[:, 0].copy(), made.split_starts, made.splits, made.around, keep)
    return made if keep.all() else made.kept(keep)


def _terminals(links: Flags, cells: Cells, kinds: Sequence[int]) -> Cells:
    """Cell and pattern of all terminals with allowed links."""
    found = [np.zeros((0, 2), np.int32)]
    sizes = np.stack([cells[:, 1] - cells[:, 0], cells[:, 3] - cells[:, 2]], axis=1)
    for kind in kinds:
        pattern = PATTERNS[kind]
        rows = np.flatnonzero((sizes[:, 0] == pattern.n_source) & (sizes[:, 1] == pattern.n_target))
        good = np.ones(len(rows), np.bool_)
        for i, j in pattern.links:
            good &= links[cells[rows, 0] + i, cells[rows, 2] + j]
        rows = rows[good]
        found.append(np.stack([rows, np.full(len(rows), kind)], axis=1).astype(np.int32))
    joined = np.concatenate(found)
    return np.ascontiguousarray(joined[np.lexsort((joined[:, 1], joined[:, 0]))])


def _linked(size: Ints, cells: Cells, terms: Cells) -> Bichart:
    """One pair with the splits of its cells."""
    from isogloss.structures._numba.bitree import count_splits, fill_splits

    n, m = size.tolist()
    starts = np.zeros(len(cells) + 1, np.int64)
    cells = np.ascontiguousarray(cells)
    count_splits(n, m, cells, starts)
    splits, around = np.zeros((int(starts[-1]), 2), np.int32), np.zeros((len(cells), 4), np.int32)
    fill_splits(n, m, cells, starts, splits, around)
    return _assembled(np.array([[n, m]], np.int64), [cells], [terms], [(starts, splits, around)])


def _assembled(sizes: Ints, cells: list[Cells], terms: list[Cells], linked: list[Any]) -> Bichart:
    if not cells:
        zero, none = np.zeros(1, np.int64), np.zeros((0, 2), np.int32)
        return Bichart(sizes, zero, np.zeros((0, 4), np.int32), zero, none, zero, none, np.zeros((0, 4), np.int32))
    starts, splits, around = linked[0]
    ends = np.array([0, len(cells[0])], np.int64), np.array([0, len(terms[0])], np.int64)
    return Bichart(sizes, ends[0], cells[0], ends[1], terms[0], starts, splits, around)
