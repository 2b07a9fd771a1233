"""`Itg`: alignments by an inversion transduction grammar, with nulls and many-to-one blocks."""

from __future__ import annotations  # noqa: I001

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, Distribution, InfeasibleError, checked_scores, kept
from isogloss.structures.itg_parts import (
    NO_BOUNDS, Blocks, Links, Pruning, Terminal, checked_blocks, checked_nulls, gold_counts, is_separable, lifted,
    make_pruning, shifted, spread, terminals,
)  # fmt: skip
from isogloss.structures.semiring import DRAW, LOG, MAX, Draw, Log, Max, Semiring

if TYPE_CHECKING:
    from isogloss.structures.itg_batch import Itgs

__all__ = ["Itg"]

Levels = NDArray[np.int64]
NO_COUNTS = np.zeros((1, 1), np.int64)
NO_LEVELS = np.zeros(0, np.int64)
WANTED: dict[type[Semiring], int] = {Log: 0, Max: 1, Draw: 2}  # POSTERIORS, BEST and DRAW of the kernels
FREE_WORDS = 24  # with free nulls, the most words on both sides together: time grows with the sixth power


class Itg(Distribution[Links]):
    r"""A distribution over the alignments that an inversion transduction grammar can build.

    .. math:: \log p(a) = \sum_{(i,j) \in a} s_{ij} + \sum_{i \notin a} s_i + \sum_{j \notin a} s_j - \log Z

    Every word is linked to at most one word, or stands in a block, or is null; the order of the linked words is a
    separable permutation (no 2413, no 3142). A block is scored by itself, not by its links.

    Parameters
    ----------
    scores : float64[n_source, n_target]
        Log score of each link; −∞ forbids.
    source_null, target_null : float or float64[n_source], float64[n_target]
        Log score of leaving a word unaligned. −∞ for both: every word must be aligned.
    normal_form : bool
        With the normal form each alignment has one derivation, and everything here is exact. False takes the simple
        grammar, in which n links in a row can be bracketed in Catalan(n − 1) ways: `argmax` and `k_best` are the same,
        sums (`log_partition`, `marginals`, `log_prob`, `sample`) weigh an alignment by its number of derivations, and
        `entropy` is that of derivations.
    blocks : Blocks, optional
        Scores of terminals that link one word to several neighbours, up to the size that the arrays have room for.
    free_nulls : bool
        With ``normal_form=False``: nulls are leaves like any other, wherever they fall, which multiplies derivations
        beyond measure (1×1 has 5, 2×2 290, 3×3 34,088). For counts and comparison, up to 24 words in all.

    Notes
    -----
    A chart of n_source² n_target² / 4 cells in O(n_source³ n_target³ / 18) steps; 16 bytes a number, `chart_bytes` says
    how many in all. `prune` cuts cells and links away with the posteriors of two directional models. Sums that leave
    the range of float64 are done again with exponents of 64 bits: scores of any size are right. Where everything is
    forbidden, `InfeasibleError` is raised.

    `marginals` and `parts` are about links, in terminals of one word each and in blocks alike; without blocks they are
    the derivatives by `scores`. Learners that score blocks take ``Flat(dist)``, in which every terminal is a part.

    References
    ----------
    Haghighi, Blitzer, DeNero and Klein, Better word alignments with supervised ITG models, ACL 2009; normal form with
    nulls in figure 2. We need no sentinel words (the smallest cell with all links has its nulls around it) and five
    numbers a cell instead of eight.

    Examples
    --------
    >>> dist = Itg(np.log([[8.0, 1.0], [1.0, 4.0]]))
    >>> sorted(dist.argmax()), round(float(np.exp(dist.log_partition())), 9)
    ([(0, 0), (1, 1)], 48.0)
    >>> round(float(np.exp(Itg(np.zeros((5, 5))).log_partition())))  # alignments of five words with five
    1466
    """

    chart_limit = 2**31
    """Bytes that a chart may take; more is an error that says what to do."""
    _wide = False  # sums in numbers of any range at once, without trying plain ones first; for tests

    def __init__(
        self,
        scores: ArrayLike,
        source_null: ArrayLike = 0.0,
        target_null: ArrayLike = 0.0,
        normal_form: bool = True,
        blocks: Blocks | None = None,
        *,
        free_nulls: bool = False,
    ) -> None:
        self.scores = checked_scores(scores, "Itg: scores", (None, None))
        self.source_null = checked_nulls(source_null, self.scores.shape[0], "source_null")
        self.target_null = checked_nulls(target_null, self.scores.shape[1], "target_null")
        self.blocks = None if blocks is None else checked_blocks(blocks, (self.n_source, self.n_target), "Itg")
        if free_nulls and normal_form:
            raise ParameterError(
                "Itg: free_nulls goes with normal_form=False; the normal form has a place for each null"
            )
        if free_nulls and self.n_source + self.n_target > FREE_WORDS:
            raise ParameterError(f"{self!r}: free_nulls is for at most {FREE_WORDS} words in all; leave it out")
        self.normal_form, self.free_nulls = bool(normal_form), bool(free_nulls)
        self._pruning: Pruning | None = None
        self._levels: Levels | None = None

    @property
    def n_source(self) -> int:
        """Number of source words."""
        return int(self.scores.shape[0])

    @property
    def n_target(self) -> int:
        """Number of target words."""
        return int(self.scores.shape[1])

    def __repr__(self) -> str:
        size = "" if self.blocks is None else f", blocks of up to {self.blocks[0].shape[2] + 1}"
        return f"Itg({self.n_source}×{self.n_target}{size})"

    @classmethod
    def batch(
        cls,
        scores: Iterable[ArrayLike],
        source_null: Sequence[ArrayLike] | float = 0.0,
        target_null: Sequence[ArrayLike] | float = 0.0,
        normal_form: bool = True,
        blocks: Sequence[Blocks | None] | None = None,
    ) -> Itgs:
        """Many pairs at once: one array of `scores` for each, and one or the same for all of the rest."""
        from isogloss.structures.itg_batch import Itgs

        listed = list(scores)

        def each(values: Any, name: str) -> Sequence[Any]:
            if values is None or (not isinstance(values, list | tuple) and np.ndim(values) == 0):
                return [values] * len(listed)
            if len(values) != len(listed):
                raise ParameterError(
                    f"Itg.batch: {name} should be a number, or one entry for each of {len(listed)} pairs"
                )
            return list(values)

        nulls = each(source_null, "source_null"), each(target_null, "target_null")
        made = []
        for s, (cells, left, right, own) in enumerate(zip(listed, *nulls, each(blocks, "blocks"), strict=True)):
            try:
                made.append(cls(cells, left, right, normal_form, own))
            except ParameterError as finding:
                raise ParameterError(f"sentence {s}: {finding}") from finding
        return Itgs(made)

    # --- one vector of all terms, as the kernels see them

    @property
    def _size(self) -> int:
        return 0 if self.blocks is None else int(self.blocks.many_source.shape[2])

    @property
    def _shape(self) -> NDArray[np.int64]:
        return np.array([self.n_source, self.n_target, self._size], np.int64)

    @cached_property
    def _terms(self) -> Array:
        return kept(np.concatenate([array.ravel() for array in self.part_scores()]))

    @cached_property
    def _allowed(self) -> Array:
        """Terms, −∞ where pruning has dropped them."""
        return self._terms if self._pruning is None else kept(np.where(self._pruning.keep, self._terms, -np.inf))

    def _split(self, vector: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """A vector of all terms as one array for each kind."""
        arrays = self.part_scores()
        pieces = np.split(vector, np.cumsum([array.size for array in arrays])[:-1])
        return tuple(piece.reshape(array.shape) for piece, array in zip(pieces, arrays, strict=True))

    def _copied(self, *parts: Array, **changes: Any) -> Self:
        """The same options, but for `levels` and `pruning` if given, with other parts, already checked."""
        new = object.__new__(type(self))
        new.scores, new.source_null, new.target_null = (kept(array) for array in parts[:3])
        new.blocks = Blocks(*(kept(array) for array in parts[3:])) if len(parts) > 3 else None
        new.normal_form, new.free_nulls = self.normal_form, self.free_nulls
        new._levels = changes.get("levels", self._levels)
        new._pruning = changes.get("pruning", self._pruning)
        return new

    # --- sweeps

    def chart_bytes(self) -> int:
        """Memory that `marginals` takes at its peak; `argmax` takes less than half."""
        return self._bytes(self._pruning)

    def _bytes(self, pruning: Pruning | None) -> int:
        spans = self.n_source * (self.n_source + 1) // 2
        cells = spans * self.n_target * (self.n_target + 1) // 2
        if pruning is not None:
            cells = pruning.cells
        return 16 * (6 * cells + 8 * cells // max(1, self.n_source) + len(self._terms)) + 72 * spans * self.n_target

    def _refuse_large(self, pruning: Pruning | None) -> int:
        """Bytes that the chart takes; an error if these are too many."""
        need = self._bytes(pruning)
        if need > self.chart_limit:
            raise ParameterError(
                f"{self!r}: the chart would take {need / 2**30:.1f} GiB, more than Itg.chart_limit "
                f"({self.chart_limit / 2**30:.1f} GiB). Prune it with prune(forward, backward), or raise the limit"
            )
        return need

    def _run(self, semiring: Semiring, u: Array, pruning: Pruning | None) -> tuple[float, Array, int]:
        """⊕ over all alignments, its derivative by all terms, and the level; value −∞ where nothing is allowed."""
        scores = self._terms if pruning is None else self._allowed
        out = np.zeros(len(scores))
        if self.free_nulls:
            from isogloss.structures._numba.itg_free import free_itg

            return float(free_itg(semiring, self._shape, scores, u, out)), out, 0
        from isogloss.structures._numba.itg import itg

        self._refuse_large(pruning)
        shift, levels = 0.0, NO_LEVELS if self._levels is None else self._levels
        if semiring is not MAX:
            scores, shift = shifted(scores, self.n_source, self.n_target, self._size)
        elif self._levels is not None:
            scores = lifted(scores, self._levels)
        if shift == -np.inf:
            return shift, out, 0
        limit, counts, bounds = -1, NO_COUNTS, NO_BOUNDS
        if pruning is not None:
            limit, counts, bounds = pruning.limit, pruning.counts, pruning.bounds
        want, wide = WANTED[type(semiring)], self._wide
        value, level = itg(want, self._shape, self.normal_form, scores, levels, counts, limit, bounds, wide, u, out)
        return float(value) + shift, out, int(level)

    def _swept(self, semiring: Semiring, u: Array) -> tuple[float, Array, int]:
        """`_run`, on the unpruned chart if the pruned one derives nothing."""
        value, out, level = self._run(semiring, u, self._pruning)
        if value == -np.inf and self._pruning is not None:
            value, out, level = self._run(semiring, u, None)
        if value == -np.inf:
            self._raise_infeasible()
        return value, out, level

    def _raise_infeasible(self) -> NoReturn:
        linked = self._spread(self._terms > -np.inf)
        nulls = ("source", self.source_null, linked.any(axis=1)), ("target", self.target_null, linked.any(axis=0))
        for name, null, covered in nulls:
            for word in np.flatnonzero((null == -np.inf) & ~covered):
                raise InfeasibleError(
                    f"{self!r}: {name} word {int(word)} has no link, no block and no null that is allowed. "
                    "Give one of them a finite score"
                )
        raise InfeasibleError(
            f"{self!r}: no alignment is allowed: words that cannot be null cannot all be linked in an order that the "
            "grammar can build. Give nulls a finite score"
        )

    def _spread(self, vector: NDArray[Any]) -> NDArray[Any]:
        """[n_source, n_target]: for each link, the sum over the terminals that have it."""
        return spread(vector, self.n_source, self.n_target, self._size)

    # --- what `Distribution` asks for

    @cached_property
    def _full(self) -> tuple[float, Array, int]:
        value, posterior, level = self._swept(LOG, np.empty(0))
        return value, kept(posterior), level

    def _solve(self) -> tuple[float, Array]:
        value, posterior, _ = self._full
        return value, self._spread(posterior)

    def log_partition(self) -> float:
        """log Z, the log of the sum over all alignments; of derivations, with the simple grammar."""
        return self._full[0]

    def marginals(self) -> Array:
        """float64[n_source, n_target]: posterior of each link, whatever terminal it stands in; read-only."""
        return self._solved[1]

    def null_marginals(self) -> tuple[Array, Array]:
        """float64[n_source], float64[n_target]: posterior that each word is unaligned."""
        parts = self.part_marginals()
        return parts[1], parts[2]

    def block_marginals(self) -> Blocks:
        """Posterior of each block, shaped like `blocks`; with no blocks, arrays with a last axis of 0."""
        parts = self.part_marginals()
        return Blocks(*parts[3:]) if len(parts) > 3 else Blocks(*(np.zeros((*self.scores.shape, 0)) for _ in range(2)))

    def argmax(self) -> Links:
        """The best alignment; among equals, always the same one."""
        return self._links(self._swept(MAX, np.empty(0))[1])

    def sample(self, rng: np.random.Generator) -> Links:
        """One alignment drawn from the distribution."""
        return self._links(self._swept(DRAW, rng.random(self._draws()))[1])

    def _draws(self) -> int:
        return 4 * min(self.n_source, self.n_target) + 2 * (self.n_source + self.n_target) + 2

    def _links(self, vector: Array) -> Links:
        return frozenset((int(i), int(j)) for i, j in np.argwhere(self._spread(vector) > 0))

    def terminals(self, links: Iterable[tuple[int, int]]) -> tuple[Terminal, ...]:
        """The terminals of an alignment in source order, once it is known to be one of this family."""
        found = terminals(links)
        for one in found:
            n_source, n_target = one.source + one.n_source, one.target + one.n_target
            if one.source < 0 or one.target < 0 or n_source > self.n_source or n_target > self.n_target:
                raise ParameterError(
                    f"{self!r}: links reach from (0, 0) to {self.n_source - 1, self.n_target - 1}; {one}"
                )
            if max(one.n_source, one.n_target) > self._size + 1:
                raise ParameterError(f"{self!r}: no block may have {max(one.n_source, one.n_target)} words; {one}")
        if not is_separable(one.target for one in found):
            raise ParameterError(f"{self!r}: no inversion transduction grammar can build the order of these links")
        return found

    def kinds_of(self, y: Iterable[tuple[int, int]]) -> tuple[Array, ...]:
        """1 for each link, null and block that stands as a terminal in an alignment, shaped as `part_scores`."""
        out = [np.zeros_like(array) for array in self.part_scores()]
        out[1][:] = out[2][:] = 1.0
        for i, j, n_source, n_target in self.terminals(y):
            out[1][i : i + n_source] = out[2][j : j + n_target] = 0.0
            if n_source == n_target == 1:
                out[0][i, j] = 1.0
            else:
                out[3 if n_source > 1 else 4][i, j, n_source + n_target - 3] = 1.0
        return tuple(out)

    def _vector_of(self, y: Iterable[tuple[int, int]]) -> Array:
        return np.concatenate([array.ravel() for array in self.kinds_of(y)])

    def parts(self, y: Iterable[tuple[int, int]]) -> Array:
        """float64[n_source, n_target]: 1 for each link of the alignment, in blocks or not."""
        return np.asarray(self._spread(self._vector_of(y)))

    def _read(self, parts: Array) -> Links:
        return frozenset((int(i), int(j)) for i, j in np.argwhere(parts != 0))

    def score(self, y: Iterable[tuple[int, int]]) -> float:
        """Log score of an alignment, not normalised: its links, nulls and blocks."""
        return float(self._terms[self._vector_of(y) > 0].sum())

    def log_prob(self, y: Iterable[tuple[int, int]]) -> float:
        """log p(y); −∞ for a forbidden alignment, and for one that pruning or a restriction leaves out."""
        used = self._vector_of(y) > 0
        value = float(self._terms[used].sum())
        if self._levels is not None and int(self._levels[used].sum()) != self.level():
            return -np.inf
        if value > -np.inf and (self._pruning is not None or not self.normal_form):
            alone = self._copied(*self._split(np.where(used, self._terms, -np.inf)), pruning=self._pruning)
            value = alone._run(LOG, np.empty(0), self._pruning)[0]
            if value == -np.inf and self._run(MAX, np.empty(0), self._pruning)[0] == -np.inf:  # the chart fell back
                value = alone._run(LOG, np.empty(0), None)[0]
        return value - self.log_partition()

    def entropy(self) -> float:
        """−Σ p log p in nats, over alignments; over derivations, with the simple grammar."""
        value, posterior, _ = self._full
        used = posterior > 0
        return max(0.0, value - float(posterior[used] @ self._terms[used]))

    def k_best(self, k: int) -> list[tuple[float, Links]]:
        """The `k` best alignments with their scores, best first; fewer if there are fewer.

        Exact, by at most k n_source searches, each with the terminals of the first words fixed.
        """
        from isogloss.structures.itg_kbest import k_best

        return k_best(self, k)

    # --- other scores, all kinds of parts

    def _remake(self, scores: Array) -> Self:
        return self.with_part_scores(scores, *self.part_scores()[1:])

    def with_scores(
        self,
        scores: ArrayLike,
        source_null: ArrayLike | None = None,
        target_null: ArrayLike | None = None,
        blocks: Blocks | None = None,
    ) -> Self:
        """The same pair under other scores, with the same pruning and restriction; what is not given stays."""
        new = checked_scores(scores, f"{self!r}: scores", self.scores.shape)
        left = self.source_null if source_null is None else checked_nulls(source_null, self.n_source, "source_null")
        right = self.target_null if target_null is None else checked_nulls(target_null, self.n_target, "target_null")
        there = self.blocks if blocks is None else checked_blocks(blocks, (self.n_source, self.n_target), repr(self))
        if (there is None) != (self.blocks is None) or (
            there is not None and self.blocks is not None and there[0].shape != self.blocks[0].shape
        ):
            raise ParameterError(f"{self!r}: new blocks should have the shapes of the old; make a new Itg instead")
        return self._copied(new, left, right, *(there or ()))

    def adding(self, links: ArrayLike) -> Self:
        """The same pair with `links` added to the score of each link, and to each block for all links that it has.

        The derivative of log Z by `links` is `marginals`, with blocks or without: loss-augmented decoding and posterior
        regularisation over links work with this.
        """
        extra = checked_scores(links, f"{self!r}: links", self.scores.shape)
        parts = self.part_scores()
        more = Blocks.from_links(extra, self._size + 1, mean=False) if self._size else ()
        return self._copied(
            parts[0] + extra, *parts[1:3], *(np.asarray(old + new) for old, new in zip(parts[3:], more, strict=True))
        )

    def clamp(self, y: Iterable[tuple[int, int]]) -> Self:
        """The distribution in which `y` alone is allowed, with the score it has here."""
        alone = np.where(self._vector_of(y) > 0, self._terms, -np.inf)
        return self._copied(*self._split(alone), levels=None, pruning=None)

    def part_scores(self) -> tuple[Array, ...]:
        """Scores of links, source nulls, target nulls and, with blocks, blocks of source and of target words."""
        return (self.scores, self.source_null, self.target_null, *(self.blocks or ()))

    def part_marginals(self) -> tuple[Array, ...]:
        """Posterior of each part as a terminal, shaped as `part_scores`: the derivatives of log Z by these."""
        return self._split(self._full[1])

    def with_part_scores(self, *scores: Array) -> Self:
        """The same pair with other scores of all kinds of parts."""
        links, left, right, *blocks = scores
        return self.with_scores(links, left, right, Blocks(*blocks) if blocks else None)

    # --- pruning

    def prune(
        self,
        forward: ArrayLike,
        backward: ArrayLike,
        *,
        confident: float = 0.9,
        cell_limit: float = 8,
        negligible: float = 1e-4,
    ) -> Self:
        """The same distribution without what two directional models hold for impossible.

        A link is confident when its posterior exceeds `confident` in either direction. A cell is dropped when it breaks
        more than `cell_limit` confident links, that is, has exactly one of their ends; a link is dropped when both
        posteriors are below `negligible`, and a block when all its links are. ``cell_limit=inf, negligible=0`` drops
        nothing. If the rest derives no alignment at all, the unpruned chart is used.

        Parameters
        ----------
        forward, backward : float64[n_source, n_target]
            Posterior of each link in each direction, both indexed (source, target).

        References
        ----------
        Haghighi and others 2009, section 6.2. We differ: they do not say what becomes of blocks.
        """
        if self.free_nulls:
            raise ParameterError(f"{self!r}: free_nulls cannot be pruned")
        sizes, shape = self._size + 1, (self.n_source, self.n_target)
        cut = make_pruning(forward, backward, shape, sizes, repr(self), confident, cell_limit, negligible)
        return self._copied(*self.part_scores(), pruning=cut)

    def unpruned(self) -> Self:
        """The same distribution with all cells and links."""
        return self._copied(*self.part_scores(), pruning=None)

    # --- alignments of least loss

    def restricted(self, links: ArrayLike) -> Self:
        """The distribution over those alignments alone that have the highest sum of `links`, integers for each link.

        One sweep in the pair semiring finds that sum and log Z over the alignments that reach it; `level` is the sum.
        Forbidden links and pruned cells do not count: the sum is the highest that is left.

        References
        ----------
        Haghighi and others 2009, section 5.2, who put the count into the chart's state instead.
        """
        if self.free_nulls:
            raise ParameterError(f"{self!r}: free_nulls cannot be restricted")
        counts = np.asarray(links)
        if counts.shape != self.scores.shape or not np.array_equal(counts, np.round(counts)):
            raise ParameterError(f"{self!r}: restricted(links) takes whole numbers, {list(self.scores.shape)}")
        levels = self._of_links(counts.astype(np.float64)).astype(np.int64)
        return self._copied(*self.part_scores(), levels=levels)

    def level(self) -> int:
        """The sum that all alignments of a restricted distribution have; 0 without a restriction."""
        return self._full[2]

    def minimum_loss(self, sure: Any, possible: Any = (), *, within: bool = True) -> Self:
        """The distribution over the alignments nearest to gold: those that miss least of `sure` and add least to both.

        The loss of an alignment counts the sure links it misses and the links it has that are neither sure nor
        possible; the least loss is ``len(sure) - result.level()``.

        Parameters
        ----------
        sure, possible : set of links, or bool[n_source, n_target]
        within : bool
            Allow sure and possible links only. Without blocks this changes nothing; with blocks, False adds alignments
            of the same loss whose blocks bridge a gap.

        References
        ----------
        Haghighi and others 2009, equation 5 and footnote 6, which holds for alignments without blocks.
        """
        counts = gold_counts(sure, possible, self.scores.shape, repr(self))
        target = self.restricted(counts)
        if not within:
            return target
        outside = self._of_links((counts < 0).astype(np.float64)) > 0
        parts = self._split(np.where(outside, -np.inf, self._terms))
        return target._copied(*parts)

    def narrowed(self) -> Self:
        """The same restricted distribution in a chart without the cells that none of its alignments has.

        Which cells these are does not depend on scores, as long as the same terms are allowed: worth while when many
        scores are tried, none of them −∞ that is not here. As it is without a restriction.
        """
        if self._levels is None or not self.scores.size:
            return self
        from isogloss.structures._numba.itg import chart_cells, used_rows

        cut = self._pruning
        if cut is None:
            cut = Pruning(np.ones(len(self._terms), np.bool_), NO_COUNTS, -1, 0, NO_BOUNDS)
        terms = kept(np.where(cut.keep & (self._terms > -np.inf), 0.0, -np.inf))
        bounds = used_rows(self._shape, self.normal_form, terms, self._levels, cut.counts, cut.limit, cut.bounds)
        if not bounds.shape[1]:  # the whole chart is used instead
            return self
        cells = int(chart_cells(self.n_source, self.n_target, cut.counts, cut.limit, bounds))
        return self._copied(*self.part_scores(), pruning=Pruning(cut.keep, cut.counts, cut.limit, cells, bounds))

    def best_in_class(self, sure: Any, possible: Any = ()) -> Links:
        """One alignment of least loss: the fewest links among these, and among equals always the same one.

        Forbidden links and pruned cells stay so.
        """
        counts = (
            gold_counts(sure, possible, self.scores.shape, repr(self)) - 2.0**-12
        )  # fewer links among equals; no pair has 4,096 words
        terms = np.where(self._allowed > -np.inf, self._of_links(counts), -np.inf)
        return self._copied(*self._split(terms), levels=None).argmax()

    def _of_links(self, links: Array) -> Array:
        """float64[n_terms]: sum over the links of each terminal; 0 for nulls, and for blocks past the end."""
        blocks = Blocks.from_links(links, self._size + 1, mean=False) if self._size else ()
        more = [np.where(side > -np.inf, side, 0.0).ravel() for side in blocks]
        return np.asarray(np.concatenate([links.ravel(), np.zeros(self.n_source + self.n_target), *more]))
