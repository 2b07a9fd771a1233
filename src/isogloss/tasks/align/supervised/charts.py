"""Structures behind ITG aligners: charts that are pruned and fit, blocks by list, and many of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.structures import Blocks, Flat, Itg, Matching
from isogloss.structures.batch import Batch, Stack
from isogloss.structures.itg_batch import Itgs

__all__ = ["BlockItg", "Charts", "FlatItgs", "Pruner", "spread_to_blocks"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
LinkSet = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Pruner:
    """Cuts charts down with the posteriors of two directional models, until they fit.

    Parameters
    ----------
    chart_limit : int
        Bytes that a chart may take.
    confident, cell_limit, negligible : float
        See `Itg.prune`. Where a chart does not fit, cells that break half as many confident links are dropped too, and
        half of these again, down to 1.
    """

    chart_limit: int
    confident: float = 0.9
    cell_limit: int = 2
    negligible: float = 1e-4

    def __call__(self, dist: Itg, forward: ArrayLike | None = None, backward: ArrayLike | None = None) -> Itg | None:
        """The chart, or None if it does not fit; not pruned without posteriors."""
        if forward is None or backward is None:
            return dist if dist.chart_bytes() <= self.chart_limit else None
        limit = self.cell_limit
        while True:
            found = dist.prune(
                forward, backward, confident=self.confident, cell_limit=limit, negligible=self.negligible
            )
            if found.chart_bytes() <= self.chart_limit:
                return found
            if limit <= 1:
                return None
            limit //= 2


class BlockItg:
    """An `Itg` some of whose blocks have scores, as a list; all others are forbidden. What `Flat` needs.

    Parameters
    ----------
    itg : Itg
        With blocks.
    places : (int64[.], int64[.])
        Which, in the raveled arrays of `Blocks`.
    """

    def __init__(self, itg: Itg, places: tuple[Indices, Indices]) -> None:
        self.itg, self.places = itg, places

    def __repr__(self) -> str:
        return f"BlockItg({self.itg!r}, {sum(map(len, self.places))} blocks)"

    def listed(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Arrays of links, nulls and all blocks, with those blocks alone that have scores."""
        blocks = (side.ravel()[at] for side, at in zip(arrays[3:], self.places, strict=True))
        return (*arrays[:3], *blocks)

    def part_scores(self) -> tuple[Array, ...]:
        """Scores of links, source nulls, target nulls, and the blocks listed of either side."""
        return self.listed(self.itg.part_scores())

    def part_marginals(self) -> tuple[Array, ...]:
        """Posteriors of the same."""
        return self.listed(self.itg.part_marginals())

    def kinds_of(self, y: Any) -> tuple[Array, ...]:
        """1 for each part that an alignment has."""
        return self.listed(self.itg.kinds_of(y))

    def with_part_scores(self, *scores: Array) -> Self:
        """The same pair with other scores of all parts."""
        assert self.itg.blocks is not None
        blocks = [filled(side.shape, at, new) for side, at, new in zip(self.itg.blocks, self.places, scores[3:])]
        links, source, target = scores[:3]
        return type(self)(self.itg.with_scores(links, source, target, Blocks(*blocks)), self.places)

    def log_partition(self) -> float:
        """log Z."""
        return self.itg.log_partition()

    def argmax(self) -> LinkSet:
        """The best alignment."""
        return self.itg.argmax()

    def sample(self, rng: np.random.Generator) -> LinkSet:
        """One alignment drawn."""
        return self.itg.sample(rng)

    def minimum_loss(self, sure: Any, possible: Any) -> Self:
        """Over the alignments of least loss alone; see `Itg.minimum_loss`."""
        return type(self)(self.itg.minimum_loss(sure, possible), self.places)

    def totals(self, links: ArrayLike) -> tuple[Array, Array]:
        """The sum over the links of each block listed."""
        assert self.itg.blocks is not None
        blocks = Blocks.from_links(links, self.itg.blocks[0].shape[2] + 1, mean=False)
        return blocks[0].ravel()[self.places[0]], blocks[1].ravel()[self.places[1]]


def filled(shape: tuple[int, ...], places: Indices, values: Array) -> Array:
    """Minus infinity but for some places."""
    out = np.full(shape, -np.inf)
    out.ravel()[places] = values
    return out


def spread_to_blocks(flat: Flat[Any], links: ArrayLike) -> Array:
    """Numbers of links as numbers of all parts: a block has those of its links together, nulls have 0."""
    dist = flat.dist
    cells = np.asarray(links, np.float64)
    blocks = dist.totals(cells) if isinstance(dist, BlockItg) else ()
    return np.concatenate([cells.ravel(), np.zeros(sum(cells.shape)), *blocks])


class FlatItgs(Batch[LinkSet]):
    """Many `Flat` of `Itg` or `BlockItg`, on threads: what `LinearModel` takes as a batch."""

    def __init__(self, flats: Sequence[Flat[Any]]) -> None:
        self._flats = list(flats)
        self.scores = Stack.of([flat.scores for flat in self._flats], "FlatItgs", 1)

    def __getitem__(self, s: int) -> Any:
        return self._flats[s]

    @cached_property
    def _itgs(self) -> Itgs:
        dists = [flat.dist for flat in self._flats]
        return Itgs([dist.itg if isinstance(dist, BlockItg) else dist for dist in dists])

    def _solve(self) -> tuple[Array, Stack]:
        out: list[Array] = []
        for flat, arrays in zip(self._flats, self._itgs.part_marginals(), strict=True):
            out += flat.dist.listed(arrays) if isinstance(flat.dist, BlockItg) else arrays
        return self._itgs.log_partition(), self.scores.like(np.concatenate([np.zeros(0), *map(np.ravel, out)]))

    def narrowed(self) -> Self:
        """The same in charts without cells that are not used; see `Itg.narrowed`."""
        narrow, new = self._itgs.narrowed(), list[Flat[Any]]()
        for s, flat in enumerate(self._flats):
            dist = flat.dist
            new.append(Flat(BlockItg(narrow[s], dist.places) if isinstance(dist, BlockItg) else narrow[s]))
        return type(self)(new)

    def argmax(self) -> list[LinkSet]:
        """The best alignment of each."""
        return self._itgs.argmax()

    def sample(self, rng: np.random.Generator) -> list[LinkSet]:
        """One alignment of each."""
        return self._itgs.sample(rng)

    def _remake(self, scores: Stack) -> Self:
        return type(self)([flat.with_scores(new) for flat, new in zip(self._flats, scores, strict=True)])


class Charts:
    """Many pairs for prediction: each an `Itg`, or a `Matching` where its chart would be too large."""

    def __init__(self, dists: Sequence[Itg | Matching]) -> None:
        self.dists = list(dists)
        self.large = np.array([not isinstance(dist, Itg) for dist in self.dists], np.bool_)

    def __len__(self) -> int:
        return len(self.dists)

    def __getitem__(self, pair: int) -> Itg | Matching:
        return self.dists[pair]

    @cached_property
    def itgs(self) -> Itgs:
        """Those with a chart."""
        return Itgs([dist for dist in self.dists if isinstance(dist, Itg)])

    @cached_property
    def _matchings(self) -> Any:
        rest = [dist for dist in self.dists if isinstance(dist, Matching)]
        return Matching.batch(
            [dist.scores for dist in rest], [dist.source_null for dist in rest], [dist.target_null for dist in rest]
        )

    def _merged(self, charted: Sequence[Any], rest: Sequence[Any]) -> list[Any]:
        first, second = iter(charted), iter(rest)
        return [next(second) if large else next(first) for large in self.large]

    def argmax(self) -> list[LinkSet]:
        """The best links of each pair."""
        return self._merged(self.itgs.argmax(), self._matchings.argmax() if self.large.any() else ())

    def marginals(self) -> list[Array]:
        """Posterior of every cell of each pair."""
        rest = self._matchings.marginals() if self.large.any() else ()
        return self._merged(list(self.itgs.marginals()), list(rest))
