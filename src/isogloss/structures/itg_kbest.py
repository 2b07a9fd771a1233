"""The k best alignments of an `Itg`: lazily from one chart, or by splitting what is left around each one found."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.structures import kbest
from isogloss.structures.base import Array
from isogloss.structures.itg_parts import NO_BOUNDS, Links, Pruning, lifted
from isogloss.structures.semiring import MAX

if TYPE_CHECKING:
    from isogloss.structures.itg import Itg

__all__ = ["k_best"]

LAZY_WORDS = 240  # the lazy search goes as deep as the words of both sides; Python allows no more than this
Item = tuple[int, int, int, int, int]  # symbol, source span, target span
Whole = NDArray[np.int64]


def k_best(dist: Itg, k: int) -> list[tuple[float, Links]]:
    """The `k` best alignments with their scores, best first, each once."""
    kbest.checked_k(k, repr(dist))
    pruning = dist._pruning
    if pruning is not None and dist._run(MAX, np.empty(0), pruning)[0] == -np.inf:
        pruning = None
    lazy = dist.normal_form and dist.n_source + dist.n_target <= LAZY_WORDS
    found = _lazily(dist, k, pruning) if lazy else _by_splitting(dist, k, pruning)
    if not found:
        dist._raise_infeasible()
    return [(float(dist._terms[terms].sum()), _links(dist, terms)) for terms in found]


def _links(dist: Itg, terms: Sequence[int]) -> Links:
    vector = np.zeros(len(dist._terms))
    vector[list(terms)] = 1.0
    return dist._links(vector)


# --- lazily: in the normal form, derivations are alignments


class _Edge(NamedTuple):
    """One way to make an item: what it uses up, and of what it is made."""

    score: float
    terms: tuple[int, ...]
    items: tuple[Item, ...]


class _Derivations:
    """The derivations of one item found so far, best first, and those that may come next."""

    def __init__(self, edges: list[_Edge], best: list[float]) -> None:
        self.edges = edges
        self.found: list[tuple[float, int, tuple[int, ...]]] = []
        self.queue = [(-value, at, (0,) * len(edge.items)) for at, (edge, value) in enumerate(zip(edges, best))]
        heapq.heapify(self.queue)
        self.seen = {(at, ranks) for _, at, ranks in self.queue}


class _Forest:
    """The chart of the best, read as a hypergraph.

    References
    ----------
    Huang and Chiang, Better k-best parsing, IWPT 2005, algorithm 3.
    """

    def __init__(self, dist: Itg, k: int, pruning: Pruning | None) -> None:
        from isogloss.structures._numba import itg_chart as chart
        from isogloss.structures.itg import NO_COUNTS, NO_LEVELS

        dist._refuse_large(pruning)
        scores = dist._terms if pruning is None else dist._allowed
        scores = scores if dist._levels is None else lifted(scores, dist._levels)
        limit, counts = (-1, NO_COUNTS) if pruning is None else (pruning.limit, pruning.counts)
        self.chart, self.dist, self.k, self.scores = chart, dist, k, scores
        bounds = NO_BOUNDS if pruning is None else pruning.bounds
        self.rows, cells = chart.make_rows(dist.n_source, dist.n_target, counts, limit, bounds)
        self.plan = chart.make_plan(dist._shape, True, limit, cells)
        self.memory = np.empty(int(self.plan[chart.OUTER]) + 16)
        chart.inside(self.plan, scores, NO_LEVELS, counts, self.rows, self.memory, np.empty(0, np.int64), -np.inf)
        self.items: dict[Item, _Derivations] = {}

    def value(self, symbol: int, i: Whole, k: Whole, j: Whole, h: Whole) -> Array:
        """Best score of each of many cells; −∞ for cells that are not there."""
        chart, n = self.chart, self.dist.n_source
        whole = (k > i) & (h > j)
        spans, row = np.where(whole, i * n - i * (i - 1) // 2 + k - i - 1, 0), np.where(whole, j, 0)
        there = whole & (self.rows[chart.LOW, spans, row] <= h) & (h < self.rows[chart.HIGH, spans, row])
        at = self.plan[chart.CHART] + symbol * self.plan[chart.CELLS] + self.rows[chart.START, spans, row] + h
        return np.where(there, self.memory[np.where(there, at, 0)], -np.inf)

    def rank(self, item: Item, rank: int) -> tuple[float, int, tuple[int, ...]] | None:
        """The derivation of an item that comes at `rank`, or None."""
        here = self.items.get(item)
        if here is None:
            here = self.items[item] = _Derivations(*self.edges(item))
        while len(here.found) <= rank:
            if here.found:
                _, at, ranks = here.found[-1]
                for child in range(len(ranks)):
                    self.offer(here, at, tuple(r + (c == child) for c, r in enumerate(ranks)))
            if not here.queue:
                return None
            cost, at, ranks = heapq.heappop(here.queue)
            here.found.append((-cost, at, ranks))
        return here.found[rank]

    def offer(self, here: _Derivations, at: int, ranks: tuple[int, ...]) -> None:
        if (at, ranks) in here.seen:
            return
        here.seen.add((at, ranks))
        parts = [self.rank(item, rank) for item, rank in zip(here.edges[at].items, ranks, strict=True)]
        if all(part is not None for part in parts):
            value = here.edges[at].score + sum(part[0] for part in parts if part is not None)
            heapq.heappush(here.queue, (-value, at, ranks))

    def edges(self, item: Item) -> tuple[list[_Edge], list[float]]:
        """The best ways to make an item, at most k of them, and their scores."""
        chart, dist = self.chart, self.dist
        symbol, i, k, j, h = item
        if symbol < 0:
            return self.wholes()
        edges: list[_Edge] = []
        nulls = dist.n_source * dist.n_target
        if symbol in (chart.SL, chart.VR):
            left = symbol == chart.SL
            null = nulls + dist.n_source + (j if left else h - 1)
            shorter = (symbol, i, k, j + 1, h) if left else (symbol, i, k, j, h - 1)
            edges = [_Edge(0.0, (), ((symbol - 2, i, k, j, h),)), _Edge(self.scores[null], (null,), (shorter,))]
        else:
            term = int(chart.terminal(self.plan, i, k, j, h))
            if term >= 0:
                edges.append(_Edge(self.scores[term], (term,), ()))
            if symbol != chart.W and k - i > 1:
                null = nulls + k - 1
                edges.append(_Edge(self.scores[null], (null,), ((symbol, i, k - 1, j, h),)))
            edges += self.splits(symbol, i, k, j, h)
        return self.allowed(edges)

    def allowed(self, edges: list[_Edge]) -> tuple[list[_Edge], list[float]]:
        values = [edge.score + sum(self.of(item) for item in edge.items) for edge in edges]
        there = [at for at, value in enumerate(values) if value > -np.inf]
        return [edges[at] for at in there], [values[at] for at in there]

    def of(self, item: Item) -> float:
        """`value` of one cell, without the cost of arrays."""
        (symbol, i, k, j, h), chart, n = item, self.chart, self.dist.n_source
        if i >= k or j >= h:
            return -np.inf
        s = i * n - i * (i - 1) // 2 + k - i - 1
        if not self.rows[chart.LOW, s, j] <= h < self.rows[chart.HIGH, s, j]:
            return -np.inf
        at = self.plan[chart.CHART] + symbol * self.plan[chart.CELLS] + self.rows[chart.START, s, j] + h
        return float(self.memory[at])

    def splits(self, symbol: int, i: int, k: int, j: int, h: int) -> list[_Edge]:
        chart = self.chart
        p, q = (axis.ravel() for axis in np.meshgrid(np.arange(i + 1, k), np.arange(j + 1, h), indexing="ij"))
        one = np.ones_like(p)
        found: list[tuple[float, _Edge]] = []
        for first in (chart.VR, chart.SL):
            if (symbol, first) in ((chart.S, chart.SL), (chart.V, chart.VR)):
                continue
            bounds = ((j * one, q), (q, h * one)) if first == chart.VR else ((q, h * one), (j * one, q))
            values = self.value(first, i * one, p, *bounds[0]) + self.value(chart.W, p, k * one, *bounds[1])
            for at in np.argsort(-values, kind="stable")[: self.k]:
                (a, b), (c, d) = ((int(edge[at]) for edge in pair) for pair in bounds)
                cut = int(p[at])
                items: tuple[Item, ...] = ((int(first), i, cut, a, b), (int(chart.W), cut, k, c, d))
                found.append((float(values[at]), _Edge(0.0, (), items)))
        found.sort(key=lambda pair: -pair[0])
        return [edge for value, edge in found[: self.k] if value > -np.inf]

    def wholes(self) -> tuple[list[_Edge], list[float]]:
        """All nulls, or the smallest cell with all links and nulls around it."""
        chart, dist, width = self.chart, self.dist, self.plan[self.chart.WIDTH]
        edges = self.memory[self.plan[chart.EDGES] :][: 4 * width].reshape(4, width)
        lengths = (self.rows[chart.HIGH] - self.rows[chart.LOW])[:, : dist.n_target].clip(0).ravel()
        row = np.repeat(np.arange(len(lengths)), lengths)
        begins, ends = np.triu_indices(dist.n_source + 1, 1)
        spans, j = np.divmod(row, max(1, dist.n_target))
        i, k = begins[spans], ends[spans]
        h = np.arange(len(row)) - self.rows[chart.START, spans, j]
        values = self.memory[self.plan[chart.CHART] :][: len(row)] + (
            edges[0, i] + edges[1, k] + edges[2, j] + edges[3, h]
        )
        nulls = dist.n_source * dist.n_target
        none = _Edge(float(edges[1, 0] + edges[3, 0]), tuple(range(nulls, nulls + dist.n_source + dist.n_target)), ())
        ways = [none]
        for at in np.argsort(-values, kind="stable")[: self.k]:
            a, b, c, d = (int(bound[at]) for bound in (i, k, j, h))
            words = [*range(a), *range(b, dist.n_source)]
            words += [dist.n_source + word for word in (*range(c), *range(d, dist.n_target))]
            around = float(edges[0, a] + edges[1, b] + edges[2, c] + edges[3, d])
            ways.append(_Edge(around, tuple(nulls + word for word in words), ((int(chart.W), a, b, c, d),)))
        return self.allowed(ways)

    def terms(self, item: Item, rank: int) -> list[int]:
        """The terms of a derivation that has been found."""
        out: list[int] = []
        left = [(item, rank)]
        while left:
            item, rank = left.pop()
            found = self.rank(item, rank)
            assert found is not None
            edge = self.items[item].edges[found[1]]
            out += edge.terms
            left += zip(edge.items, found[2], strict=True)
        return out


def _lazily(dist: Itg, k: int, pruning: Pruning | None) -> list[list[int]]:
    forest, whole = _Forest(dist, k, pruning), (-1, 0, 0, 0, 0)
    found: list[list[int]] = []
    while len(found) < k and forest.rank(whole, len(found)) is not None:
        terms = forest.terms(whole, len(found))
        if dist._levels is not None and int(dist._levels[terms].sum()) < int(dist._levels[(found or [terms])[0]].sum()):
            break
        found.append(terms)
    return found


# --- by splitting: an alignment is seen as one term for each source word


def _by_splitting(dist: Itg, k: int, pruning: Pruning | None) -> list[list[int]]:
    levels, none = dist._levels, np.empty(0)
    terms, covers = dist._terms if pruning is None else dist._allowed, _covers(dist)
    top = dist.level()

    def best(fixed: Sequence[int], banned: frozenset[int]) -> tuple[float, Sequence[int]] | None:
        left = terms.copy()
        for word, term in enumerate(fixed):
            left[covers[word]] = -np.inf
            left[term] = terms[term]
        left[list(banned)] = -np.inf
        there = dist._copied(*dist._split(left), pruning=pruning)
        value, out, _ = there._run(MAX, none, pruning)
        if value == -np.inf or (levels is not None and int(levels[out > 0].sum()) != top):
            return None
        return float(terms[out > 0].sum()), [int(np.flatnonzero(out * cover)[0]) for cover in covers]

    found = []
    for _, choices in kbest.k_best(best, k):
        links = _links(dist, choices)
        found.append([int(term) for term in np.flatnonzero(dist._vector_of(links))])
    return found


def _covers(dist: Itg) -> NDArray[np.bool_]:
    """bool[n_source, n_terms]: which terms have a source word in them."""
    out = np.zeros((dist.n_source, len(dist._terms)), np.bool_)
    for word, row in enumerate(out):
        links, source_null, _, *blocks = dist._split(row)
        links[word], source_null[word] = True, True
        if blocks:
            blocks[1][word] = True
            for m in range(blocks[0].shape[2]):
                blocks[0][max(0, word - m - 1) : word + 1, :, m] = True
    return out
