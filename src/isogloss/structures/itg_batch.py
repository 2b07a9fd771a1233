"""`Itgs`: many alignments by inversion transduction grammars, worked on together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, kept
from isogloss.structures.batch import Batch, Stack, run_sentences
from isogloss.structures.itg import WANTED, Itg
from isogloss.structures.itg_parts import Blocks, Links, lifted, shifted, spread
from isogloss.structures.semiring import DRAW, LOG, MAX, Semiring

__all__ = ["Itgs"]


class Itgs(Batch[Links]):
    """Many `Itg`, each with its own sizes, pruning and restriction, with one answer of each method for every pair.

    Pairs go to threads; every number equals, to the bit, what the `Itg` alone gives.

    Parameters
    ----------
    structures : sequence of Itg
        ``Itg.batch(scores, …)`` makes them from lists of arrays.

    Examples
    --------
    >>> many = Itg.batch([np.zeros((1, 1)), np.zeros((2, 3)), np.zeros((0, 2))])
    >>> np.exp(many.log_partition()).round(6).tolist(), [m.shape for m in many.marginals()]
    ([2.0, 13.0, 1.0], [(1, 1), (2, 3), (0, 2)])
    """

    def __init__(self, structures: Sequence[Itg]) -> None:
        for s, one in enumerate(structures):
            if not isinstance(one, Itg) or one.free_nulls:
                raise ParameterError(f"Itgs: sentence {s} should be an Itg without free_nulls, not {one!r}")
        self._structures = list(structures)
        self.scores = Stack.of([one.scores for one in self._structures], "Itgs", 2)

    def __getitem__(self, s: int) -> Itg:
        return self._structures[s]

    def _run(self, semiring: Semiring, u: Array, starts: NDArray[np.int64]) -> tuple[Array, Stack, NDArray[np.int64]]:
        """Values, derivatives by all terms, and levels."""
        from isogloss.structures._numba.itg import itgs

        ones = self._structures
        sizes = np.zeros(len(ones), np.int64)
        for s, one in enumerate(ones):
            try:
                sizes[s] = one._refuse_large(one._pruning)
            except ParameterError as finding:
                raise ParameterError(f"sentence {s}: {finding}") from finding
        terms = [one._allowed for one in ones]
        shifts = np.zeros(len(ones))
        for s, (one, term) in enumerate(zip(ones, terms, strict=True)):
            if semiring is not MAX:
                terms[s], shifts[s] = shifted(term, one.n_source, one.n_target, one._size)
            elif one._levels is not None:
                terms[s] = lifted(term, one._levels)
        scores = Stack.of(terms, "Itgs", 1)
        levels, level_offsets = _joined([None if semiring is MAX else one._levels for one in ones])
        counts, count_offsets = _joined([None if one._pruning is None else one._pruning.counts.ravel() for one in ones])
        limits = np.array([-1 if one._pruning is None else one._pruning.limit for one in ones], np.int64)
        bounds, bound_offsets = _joined([None if one._pruning is None else one._pruning.bounds.ravel() for one in ones])
        shapes = np.array([one._shape for one in ones], np.int64).reshape(len(ones), 3)
        normal = np.array([one.normal_form for one in ones], np.bool_)
        out, values, tops = np.zeros(len(scores.values)), np.empty(len(ones)), np.zeros(len(ones), np.int64)
        order = np.argsort(-sizes, kind="stable")
        run_sentences(
            itgs, len(ones), order, WANTED[type(semiring)], shapes, normal, scores.values, scores.offsets, levels,
            level_offsets, counts, count_offsets, limits, bounds.astype(np.int16, copy=False), bound_offsets,
            False, u, starts, out, values, tops,
        )  # fmt: skip
        values += shifts
        parts = scores.like(out)
        for s in map(
            int, np.flatnonzero(values == -np.inf)
        ):  # the unpruned chart, or an error that says what is missing
            try:
                values[s], again, tops[s] = ones[s]._swept(semiring, u[starts[s] : starts[s + 1]])
                parts[s][:] = again
            except InfeasibleError:
                continue
        self._refuse_infeasible(values)
        return values, parts, tops

    @cached_property
    def _full(self) -> tuple[Array, Stack, NDArray[np.int64]]:
        return self._run(LOG, np.empty(0), np.zeros(len(self) + 1, np.int64))

    def _spread(self, parts: Stack) -> list[Array]:
        shapes = [(one.n_source, one.n_target, one._size) for one in self._structures]
        return [np.asarray(spread(part, *shape)) for part, shape in zip(parts, shapes, strict=True)]

    def _solve(self) -> tuple[Array, Stack]:
        values, parts, _ = self._full
        cells = [part.ravel() for part in self._spread(parts)]
        return values, self.scores.like(np.concatenate(cells) if cells else np.zeros(0))

    def _links(self, parts: Stack) -> list[Links]:
        return [frozenset((int(i), int(j)) for i, j in np.argwhere(part > 0)) for part in self._spread(parts)]

    def argmax(self) -> list[Links]:
        """The best alignment of each pair."""
        return self._links(self._run(MAX, np.empty(0), np.zeros(len(self) + 1, np.int64))[1])

    def sample(self, rng: np.random.Generator) -> list[Links]:
        """One alignment for each pair; the same numbers are drawn as by one pair after the other."""
        starts = np.concatenate([[0], np.cumsum([one._draws() for one in self._structures])]).astype(np.int64)
        return self._links(self._run(DRAW, rng.random(int(starts[-1])), starts)[1])

    def part_marginals(self) -> list[tuple[Array, ...]]:
        """Posteriors of all kinds of parts of each pair, as `Itg.part_marginals`."""
        return [one._split(kept(part)) for one, part in zip(self._structures, self._full[1], strict=True)]

    def null_marginals(self) -> list[tuple[Array, Array]]:
        """Posterior that each source word and each target word is unaligned, for each pair."""
        return [(parts[1], parts[2]) for parts in self.part_marginals()]

    def block_marginals(self) -> list[Blocks]:
        """Posterior of each block, for each pair."""
        empty = [np.zeros((one.n_source, one.n_target, 0)) for one in self._structures]
        pairs = zip(self.part_marginals(), empty, strict=True)
        return [Blocks(*parts[3:]) if len(parts) > 3 else Blocks(none, none) for parts, none in pairs]

    def narrowed(self) -> Self:
        """The same restricted distributions in charts without the cells that no alignment has; see `Itg.narrowed`."""
        found: list[Itg] = list(self._structures)

        def narrow(block: int, count: int) -> None:
            for s in range(block, len(found), count):
                found[s] = found[s].narrowed()

        run_sentences(narrow, len(found))
        return type(self)(found)

    def level(self) -> NDArray[np.int64]:
        """int64[n_sentences]: `Itg.level` of each."""
        return self._full[2]

    def entropy(self) -> Array:
        """float64[n_sentences]: −Σ p log p in nats."""
        rows = zip(self._structures, *self._full[:2], strict=True)
        used = ((one._terms, value, part, part > 0) for one, value, part in rows)
        return np.array([max(0.0, value - float(part[on] @ terms[on])) for terms, value, part, on in used], np.float64)

    def log_prob(self, structures: Sequence[Any]) -> Array:
        """float64[n_sentences]: log p(y) of one alignment for each pair."""
        return np.array([self[s].log_prob(y) for s, y in enumerate(self._one_each(structures))], np.float64)

    def clamp(self, structures: Sequence[Any]) -> Self:
        """The distributions in which these alignments alone are allowed; see `Itg.clamp`."""
        return type(self)([self[s].clamp(y) for s, y in enumerate(self._one_each(structures))])

    def _remake(self, scores: Stack) -> Self:
        return type(self)([one.with_scores(new) for one, new in zip(self._structures, scores, strict=True)])

    def _take(self, items: NDArray[np.int64]) -> Itgs:
        return Itgs([self._structures[s] for s in items.tolist()])

    def with_parts(self, parts: Iterable[Sequence[ArrayLike]]) -> Self:
        """The same pairs with other scores of all kinds of parts, as `Itg.with_part_scores`."""
        new = zip(self._structures, parts, strict=True)
        return type(self)([one.with_part_scores(*(np.asarray(a, np.float64) for a in arrays)) for one, arrays in new])


def _joined(arrays: Sequence[NDArray[Any] | None]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """One vector of all, and where each begins; nothing for None."""
    lengths = [0 if array is None else len(array) for array in arrays]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    there = [array for array in arrays if array is not None]
    return (np.concatenate(there) if there else np.zeros(0, np.int64)), offsets
