"""`Bitree`: derivations of an inversion transduction grammar, whose parts are bispans; `Bitrees`: many of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, Program, checked_scores, kept
from isogloss.structures.batch import ProgramBatch, Stack, run_sentences
from isogloss.structures.bichart import PATTERNS, Bichart
from isogloss.structures.semiring import MAX, Semiring

__all__ = ["NULLS", "Bitree", "Bitrees", "Derivation"]

Ints = NDArray[np.int64]
Derivation = frozenset[tuple[int, int, int, int, int]]
NULLS = ("low", "free")
"""Where words without a link may be attached."""
BISPAN = -1


class Bitree(Program[Derivation]):
    r"""A distribution over the binary trees that an inversion transduction grammar builds over a sentence pair.

    .. math:: p(a) \propto \exp \Big[ \sum_{b \in a} s_b + \sum_{terminals} s_t + \sum_{nulls} s_w \Big]

    Bispans are joined in the same order or swapped, and every binary tree is another derivation, so that any phrase may
    be a bispan: what `Itg` leaves out, whose normal form has one tree an alignment and few bispans. A derivation is the
    set of the bispans (i, k, j, h, −1) that it goes through, each once, and its terminals (i, k, j, h, pattern); the
    empty set has no links at all.

    Parameters
    ----------
    chart : Bichart
        Of one pair: what bispans and terminals there are.
    scores : float64[n_parts]
        Of words without a link, source words first, of terminals and of bispans; −∞ forbids.
    nulls : "low" or "free"
        "low": a word without a link is attached to the terminal behind it, or to the last one, source words first. One
        derivation is left of each binary tree over the terminals. "free": to any bispan beside it, so that phrases may
        be bispans with and without it; then an alignment has more derivations the more words have no link.

    References
    ----------
    Burkett, Blitzer and Klein, Joint parsing and alignment with weakly synchronized grammars, NAACL 2010, section 3 and
    8.1 (terminals of two words with three, and with a gap).

    Examples
    --------
    >>> chart = Bichart.full(2, 2, patterns=[0])
    >>> dist = Bitree(chart, np.zeros(int(chart.n_parts[0])))
    >>> round(float(np.exp(dist.log_partition())))  # no link, four ways to have one, two to have both
    7
    >>> dist.link_marginals().round(3).tolist()
    [[0.286, 0.286], [0.286, 0.286]]
    """

    def __init__(self, chart: Bichart, scores: ArrayLike, *, nulls: str = "low") -> None:
        if len(chart) != 1:
            raise ParameterError(f"Bitree: the chart should be that of one pair, not of {len(chart)}")
        self.scores = checked_scores(scores, "Bitree: scores", (int(chart.n_parts[0]),))
        self.chart, self.free = chart, _checked_nulls(nulls)

    def __repr__(self) -> str:
        n, m = self.chart.sizes[0].tolist()
        return f"Bitree({n}×{m}, {len(self.chart.cells)} bispans)"

    @classmethod
    def batch(cls, chart: Bichart, scores: Iterable[ArrayLike], *, nulls: str = "low") -> Bitrees:
        """All pairs of a chart, one vector of scores for each."""
        return Bitrees(chart, Stack.of(scores, "Bitrees", 1), nulls=nulls)

    def _sweep(self, semiring: Semiring, u: Array) -> tuple[float, Array]:
        sizes = np.array([0, len(self.scores)], np.int64)
        alone = Bitrees._made(self.chart, np.zeros(1, np.int64), self.free, Stack.one(self.scores))
        values, grad = alone._sweep(semiring, u, np.array([0, len(u)], np.int64))
        return float(values[0]), grad.values[sizes[0] : sizes[1]]

    def _draws(self) -> int:
        return int(_draws(self.chart.sizes)[0])

    def _raise_infeasible(self) -> NoReturn:
        raise InfeasibleError(
            f"{self!r}: every derivation has something that is forbidden. Allow links, or words without any"
        )

    def parts(self, y: Any) -> Array:
        """float64[n_parts]: 1 for each bispan, terminal and word without a link of a derivation."""
        n, m = self.chart.sizes[0].tolist()
        cells, terms = self.chart.cells, self.chart.terms
        number = {tuple(cell): c for c, cell in enumerate(cells.tolist())}
        place = {tuple(term): t for t, term in enumerate(terms.tolist())}
        out = np.zeros(len(self.scores))
        out[: n + m] = 1.0
        for *corner, kind in y:
            c = number.get(tuple(corner), -1)
            if kind == BISPAN and c >= 0:
                out[n + m + len(terms) + c] = 1.0
                continue
            t = place.get((c, kind), -1)
            if t < 0:
                raise ParameterError(f"{self!r}: the chart has no bispan or terminal {(*corner, kind)}")
            out[n + m + t] = 1.0
            for i, j in PATTERNS[kind].links:
                out[corner[0] + i] = out[n + corner[2] + j] = 0.0
        return out

    def _read(self, parts: Array) -> Derivation:
        n_words, (cells, terms) = int(self.chart.sizes.sum()), (self.chart.cells, self.chart.terms)
        used = np.flatnonzero(parts[n_words : n_words + len(terms)] > 0)
        found = [(*cells[c].tolist(), kind) for c, kind in terms[used].tolist()]
        found += [(*cell, BISPAN) for cell in cells[parts[n_words + len(terms) :] > 0].tolist()]
        return frozenset(found)

    def _remake(self, scores: Array) -> Self:
        other = object.__new__(type(self))
        other.chart, other.free, other.scores = self.chart, self.free, scores
        return other

    def link_marginals(self) -> Array:
        """float64[n_source, n_target]: posterior of each link, summed over the terminals that have it."""
        return _links(self.chart, 0, self.marginals())


def _checked_nulls(nulls: Any) -> bool:
    if nulls not in NULLS:
        raise ParameterError(f"Bitree: nulls should be 'low' or 'free', not {nulls!r}")
    return bool(nulls == "free")


def _draws(sizes: Ints) -> Ints:
    """Numbers that a draw takes: a derivation has at most so many bispans, and seven choices in each."""
    return 14 * np.asarray(sizes.sum(axis=1)) + 2


def _links(chart: Bichart, pair: int, parts: Array) -> Array:
    out = np.zeros(chart.sizes[pair])
    term, i, j = chart.links_of(pair)
    np.add.at(out, (i, j), parts[chart.first_terms[pair] + term])
    return out


class Bitrees(ProgramBatch[Derivation]):
    """Many `Bitree`: the pairs of a chart, or some of them, any number of times.

    Parameters
    ----------
    chart : Bichart
    scores : Stack
        float64[n_parts] of each pair.
    nulls : "low" or "free"

    Examples
    --------
    >>> chart = Bichart.joined([Bichart.full(1, 1), Bichart.full(1, 2)])
    >>> many = Bitree.batch(chart, [np.zeros(4), np.zeros(9)])
    >>> np.exp(many.log_partition()).round(6).tolist()
    [2.0, 4.0]
    """

    def __init__(self, chart: Bichart, scores: Stack, *, nulls: str = "low") -> None:
        self.scores = scores.checked("Bitrees")
        if scores.shapes.shape[1] != 1 or not np.array_equal(scores.shapes[:, 0], chart.n_parts):
            raise ParameterError("Bitrees: scores should be a vector over the parts of each pair of the chart")
        self.chart, self.free = chart, _checked_nulls(nulls)
        self.rows = np.arange(len(chart), dtype=np.int64)
        self._levels: Array | None = None

    @classmethod
    def _made(cls, chart: Bichart, rows: Ints, free: bool, scores: Stack, levels: Array | None = None) -> Bitrees:
        other = object.__new__(cls)
        other.chart, other.rows, other.free, other.scores, other._levels = chart, rows, free, scores, levels
        return other

    def __getitem__(self, s: int) -> Bitree:
        """Pair *s* alone; a restriction is left to those of a batch."""
        one = object.__new__(Bitree)
        one.chart, one.free = _alone(self.chart, int(self.rows[s])), self.free
        one.scores = kept(np.array(self.scores[s]))
        return one

    def _remake(self, scores: Stack) -> Self:
        return self._made(self.chart, self.rows, self.free, scores, self._levels)  # type: ignore[return-value]

    def _take(self, items: Ints) -> Bitrees:
        levels = None if self._levels is None else self.scores.like(self._levels).take(items).values
        return self._made(self.chart, self.rows[items], self.free, self.scores.take(items), levels)

    def _draws(self) -> Ints:
        return _draws(self.chart.sizes[self.rows])

    def _sweep(self, semiring: Semiring, u: Array, starts: Ints) -> tuple[Array, Stack]:
        if self._levels is None:
            return self._swept(semiring, self.scores.values, u, starts)
        allowed = np.where(self.scores.values > -np.inf, self._levels, -np.inf)
        highest = self._swept(MAX, allowed, np.empty(0), np.zeros(len(self) + 1, np.int64))[0]
        lifts = _lifts(self.scores)
        each = np.repeat(lifts, np.diff(self.scores.offsets))
        values, grad = self._swept(semiring, self.scores.values + each * self._levels, u, starts)
        reached = highest > -np.inf
        return np.where(reached, values - lifts * np.where(reached, highest, 0.0), -np.inf), grad

    def _swept(self, semiring: Semiring, scores: Array, u: Array, starts: Ints) -> tuple[Array, Stack]:
        from isogloss.structures._numba.bitree import bitrees

        chart, grad, values = self.chart, np.empty(len(scores)), np.empty(len(self))
        run_sentences(
            bitrees, len(self), semiring, self.free, self.rows, chart.sizes, chart.cell_offsets, chart.cells,
            chart.term_offsets, np.ascontiguousarray(chart.terms[:, 0]), chart.splits, chart.split_starts,
            chart.around, kept(np.asarray(scores).view()), self.scores.offsets, u, starts, grad, values,
        )  # fmt: skip
        return values, self.scores.like(grad)

    def _structures(self, parts: Stack) -> list[Derivation]:
        return [self[s]._read(one) for s, one in enumerate(parts)]

    def restricted(self, levels: ArrayLike) -> Bitrees:
        """The distributions over those derivations alone that have the highest sum of `levels`, whole numbers of parts.

        With 1 for each right link of a terminal and −1 for each wrong one, what is left are the derivations of the
        alignments that are nearest to gold.
        """
        whole = np.array(levels, np.float64)
        if whole.shape != self.scores.values.shape or not np.array_equal(whole, np.round(whole)):
            raise ParameterError(f"{self!r}: restricted(levels) takes a whole number for each part of all pairs")
        return self._made(self.chart, self.rows, self.free, self.scores, kept(whole))

    def link_marginals(self) -> list[Array]:
        """float64[n_source, n_target] of each pair: posterior of each link, summed over the terminals that have it."""
        return [_links(self.chart, int(row), one) for row, one in zip(self.rows, self.marginals(), strict=True)]


def _alone(chart: Bichart, pair: int) -> Bichart:
    """One pair of a chart."""
    cells, terms = slice(*chart.cell_offsets[pair : pair + 2]), slice(*chart.term_offsets[pair : pair + 2])
    starts = chart.split_starts[cells.start : cells.stop + 1]
    return Bichart(
        chart.sizes[pair : pair + 1], np.array([0, cells.stop - cells.start]), chart.cells[cells],
        np.array([0, terms.stop - terms.start]), chart.terms[terms], starts - starts[0],
        chart.splits[starts[0] : starts[-1]], chart.around[cells],
    )  # fmt: skip


def _lifts(scores: Stack) -> Array:
    """A power of two for each pair that no difference of scores of two derivations reaches, twice over."""
    size = np.where(scores.values > -np.inf, np.abs(scores.values), 0.0)
    totals = np.add.reduceat(np.append(size, 0.0), scores.offsets[:-1]) if len(scores) else np.zeros(0)
    totals = np.where(np.diff(scores.offsets) > 0, totals, 0.0)
    return np.exp2(np.ceil(np.log2(64.0 + 2.0 * totals)))
