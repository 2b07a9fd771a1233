"""`AlignedSegments`: words cut into segments that come from source positions; `AlignedSegmentsBatch`: many at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.ragged import Ragged
from isogloss.data.rows import gathered
from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, Program, checked_scores, kept
from isogloss.structures.batch import ProgramBatch, Stack, run_sentences
from isogloss.structures.semiring import Log, Semiring

__all__ = ["AlignedPath", "AlignedSegments", "AlignedSegmentsBatch", "SegmentLattice", "n_aligned_parts"]

AlignedPath = tuple[tuple[int, int], ...]
"""The arcs of a path from left to right, each with its source position, −1 for null."""
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SegmentLattice:
    """The ways to cut a sentence: paths from the first node to the last.

    Parameters
    ----------
    arcs : int[n_arcs, 3]
        The node where each arc begins, that where it ends, which is larger, and its row of emissions, by the first of
        them. Arcs with the same row overlap: no path takes two of them.
    borders : bool[n_nodes]
        Whether each node is the border of a word (the first and the last are). No arc leads over such a node.

    Examples
    --------
    >>> SegmentLattice([[0, 1, 0], [0, 2, 1], [1, 2, 2]], [True, False, True]).n_rows   # one word: ab, or a b
    3
    """

    arcs: ArrayLike
    borders: ArrayLike

    def __post_init__(self) -> None:
        arcs = np.array(self.arcs, np.int32).reshape(-1, 3)
        borders = np.array(self.borders, np.bool_).astype(np.uint8)
        tails, heads, rows = arcs.T
        n = len(borders)
        if not n or not borders[0] or not borders[-1]:
            raise ParameterError("SegmentLattice: the first and the last node should be borders of words")
        if len(arcs) and not (tails.min() >= 0 and (tails < heads).all() and heads.max() < n and rows.min() >= 0):
            raise ParameterError(f"SegmentLattice: arcs should go up, from 0 to {n - 1}, and have rows from 0 on")
        if (np.diff(tails) < 0).any():
            raise ParameterError("SegmentLattice: arcs should come by the nodes where they begin")
        before = np.cumsum(borders)
        if len(arcs) and (before[heads - 1] > before[tails]).any():
            raise ParameterError("SegmentLattice: an arc leads over the border of a word")
        first, last = np.full(self._rows(rows), n), np.full(self._rows(rows), -1)
        np.minimum.at(first, rows, heads)
        np.maximum.at(last, rows, tails)
        if (first <= last).any():
            raise ParameterError(f"SegmentLattice: a path may take row {int(np.argmax(first <= last))} twice")
        for name, array in (("arcs", arcs), ("borders", borders)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @staticmethod
    def _rows(rows: NDArray[np.int32]) -> int:
        return int(rows.max(initial=-1)) + 1

    @property
    def n_rows(self) -> int:
        """Rows of emissions."""
        return self._rows(np.asarray(self.arcs)[:, 2])


def n_aligned_parts(n_rows: ArrayLike, n_arcs: ArrayLike, m: ArrayLike) -> Integers:
    """int64[n_sentences]: how many scores sentences have, with m source positions each.

    >>> n_aligned_parts([3], [3], [2]).tolist()     # 3 · 3 emissions, 3 arcs, 2 · 3 · 3 steps, 3 ends
    [33]
    """
    width = np.asarray(m, np.int64) + 1
    return np.asarray(np.asarray(n_rows) * width + np.asarray(n_arcs) + 2 * width * width + width, np.int64)


class AlignedSegments(Program[AlignedPath]):
    r"""A distribution over the ways to cut a sentence, and where each segment comes from, as in an alignment HMM.

    .. math:: p(y) = \frac1Z \exp \Big( \sum_i weights[arc_i] + emission[row_i, a_i]
        + steps_{w_i}[c_{i-1}, a_i] + final[c_I] \Big)

    for a path of arcs through a `SegmentLattice`, each with a source position or null, :math:`a_i`. What is carried,
    :math:`c_i`, is the last real position, m before there is any: null does not forget it. The table of steps is
    `across` for arcs that begin at the border of a word, `inside` for others.

    Parameters
    ----------
    lattice : SegmentLattice
    emission : float64[n_rows, m + 1]
        Log score of each segment under each source position, and in the last column under null; −∞ forbids.
    weights : float64[n_arcs]
        Of arcs themselves.
    inside, across : float64[m + 1, m + 1]
        From the position that is carried (row m: none yet) to each position and, in column m, to null.
    final : float64[m + 1]
        Of the position that is carried at the end.

    Attributes
    ----------
    scores : float64[n_parts]
        Emissions, weights, inside, across and final, one after the other: what `marginals`, `parts` and `with_scores`
        have. A step is used as often as it is taken, so that `parts` and `marginals` count it.

    Notes
    -----
    Exact, in O(n_nodes · m² + n_arcs · m). With every word whole this is `AlignmentChain`.

    References
    ----------
    Naradowsky and Toutanova, Unsupervised Bilingual Morpheme Segmentation and Alignment with Context-rich Hidden
    Semi-Markov Models, ACL 2011, section 4. What a segment knows of those before it in its word is in the nodes: there
    may be several for one place between letters.

    Examples
    --------
    >>> lattice = SegmentLattice([[0, 1, 0], [0, 2, 1], [1, 2, 2]], [True, False, True])
    >>> free = np.zeros((3, 3))                                            # two source positions, and null
    >>> dist = AlignedSegments(lattice, np.zeros((3, 3)), np.zeros(3), free, free, np.zeros(3))
    >>> round(float(np.exp(dist.log_partition())), 6)                      # ab: 3 ways; a b: 3 · 3
    12.0
    >>> emission = np.zeros((3, 3))
    >>> emission[0, 1] = emission[2, 0] = 2.0
    >>> dist.with_emission(emission).argmax()
    ((0, 1), (2, 0))
    """

    def __init__(
        self,
        lattice: SegmentLattice,
        emission: ArrayLike,
        weights: ArrayLike,
        inside: ArrayLike,
        across: ArrayLike,
        final: ArrayLike,
    ) -> None:
        self.lattice = lattice
        given = checked_scores(emission, "AlignedSegments: emission", (lattice.n_rows, None))
        width = given.shape[1]
        if not width:
            raise ParameterError("AlignedSegments: emission should have a column for null")
        self.m = width - 1
        arcs = checked_scores(weights, "AlignedSegments: weights", (len(self.arcs),))
        steps = [
            checked_scores(one, f"AlignedSegments: {name}", (width, width))
            for name, one in (("inside", inside), ("across", across))
        ]
        ends = checked_scores(final, "AlignedSegments: final", (width,))
        self.scores = kept(np.concatenate([given.ravel(), arcs, *(one.ravel() for one in steps), ends]))

    @classmethod
    def _of(cls, lattice: SegmentLattice, scores: Array, m: int) -> Self:
        """From what is already checked."""
        made = cls.__new__(cls)
        made.lattice, made.scores, made.m = lattice, scores, m
        return made

    @classmethod
    def batch(cls, sentences: Iterable[AlignedSegments]) -> AlignedSegmentsBatch:
        """Many sentences at once."""
        each = list(sentences)
        stack = Stack.of([one.scores for one in each], "AlignedSegmentsBatch", 1)
        arcs = [one.arcs for one in each]
        offsets = np.concatenate([[0], np.cumsum([len(own) for own in arcs])]).astype(np.int64)
        borders = Ragged.of([np.asarray(one.lattice.borders).tolist() for one in each], np.uint8)
        rows = np.array([one.lattice.n_rows for one in each], np.int64)
        m = np.array([one.m for one in each], np.int64)
        table = np.concatenate([np.zeros((0, 3), np.int32), *arcs])
        return AlignedSegmentsBatch(stack, LatticeRows(table, offsets, borders, rows), m)

    @property
    def arcs(self) -> NDArray[np.int32]:
        """int32[n_arcs, 3]: those of the lattice."""
        return np.asarray(self.lattice.arcs)

    def __repr__(self) -> str:
        return f"AlignedSegments({len(np.asarray(self.lattice.borders))} nodes, {len(self.arcs)} arcs, m={self.m})"

    def _sweep(self, semiring: Semiring, u: Array) -> tuple[float, Array]:
        from isogloss.structures._numba.aligned_segments import aligned_segments
        from isogloss.structures._numba.aligned_segments_scaled import log_aligned_segments

        grad = np.zeros(len(self.scores))
        tails, heads, rows = (np.ascontiguousarray(one) for one in self.arcs.T)
        shape = (self.lattice.n_rows, self.m, tails, heads, rows, np.array(self.lattice.borders))
        if isinstance(semiring, Log):
            return float(log_aligned_segments(semiring, self.scores, *shape, grad)), grad
        return float(aligned_segments(semiring, self.scores, *shape, grad, u)), grad

    def _draws(self) -> int:
        return 3 * len(np.asarray(self.lattice.borders)) + 1

    def _raise_infeasible(self) -> NoReturn:
        raise InfeasibleError(
            f"{self!r}: the allowed arcs and steps lead to no end. Give those of at least one path finite scores"
        )

    def _remake(self, scores: Array) -> Self:
        return self._of(self.lattice, scores, self.m)

    def _read(self, parts: Array) -> AlignedPath:
        return _path(parts, self.arcs, self.lattice.n_rows, self.m)

    # --- views

    def _kinds(self, vector: Array) -> tuple[Array, Array, Array, Array]:
        """Emissions, weights, both tables of steps, and final, of a vector over parts."""
        width = self.m + 1
        n_rows, n_arcs = self.lattice.n_rows, len(self.arcs)
        first, second, third = np.cumsum([n_rows * width, n_arcs, 2 * width * width]).tolist()
        emission, weights, steps, final = np.split(vector, [first, second, third])
        return emission.reshape(n_rows, width), weights, steps.reshape(2, width, width), final

    def with_emission(self, emission: ArrayLike) -> Self:
        """The same sentence with other emissions."""
        _, *others = self._kinds(self.scores)
        given = checked_scores(emission, f"{self!r}: emission", (self.lattice.n_rows, self.m + 1))
        return self._remake(kept(np.concatenate([given.ravel(), *(one.ravel() for one in others)])))

    def emission_marginals(self) -> Array:
        """float64[n_rows, m + 1]: the posterior of each segment with each source position, null last."""
        return self._kinds(self.marginals())[0]

    def arc_marginals(self) -> Array:
        """float64[n_arcs]: the posterior of each arc."""
        return self._kinds(self.marginals())[1]

    def step_marginals(self) -> Array:
        """float64[2, m + 1, m + 1]: how often each step is expected, inside words and across their borders."""
        return self._kinds(self.marginals())[2]

    def score(self, y: Any) -> float:
        """Log score of a path, not normalised."""
        used = self.parts(y)
        some = used > 0
        return float(used[some] @ self.scores[some])

    def parts(self, y: Any) -> Array:
        """float64[n_parts]: how often each part is used."""
        out = np.zeros(len(self.scores))
        own = self.lattice
        used = _numbers(y, self.arcs, np.asarray(own.borders), own.n_rows, self.m, repr(self))
        np.add.at(out, used, 1.0)
        return out


@dataclass(frozen=True, eq=False)
class LatticeRows:
    """Lattices of many sentences, one after the other."""

    arcs: NDArray[np.int32]
    """int32[., 3]."""
    offsets: Integers
    """int64[n + 1]: where the arcs of each begin."""
    borders: Ragged
    """uint8 for each node of each."""
    n_rows: Integers
    """int64[n]."""

    def __getitem__(self, s: int) -> SegmentLattice:
        return SegmentLattice(self.arcs[self.offsets[s] : self.offsets[s + 1]], self.borders[s])

    def take(self, items: Integers) -> LatticeRows:
        """Some of them."""
        offsets, places = gathered(self.offsets, items)
        return LatticeRows(self.arcs[places], offsets, self.borders.take(items), self.n_rows[items])


class AlignedSegmentsBatch(ProgramBatch[AlignedPath]):
    """Many distributions over aligned segmentations: the batch view of `AlignedSegments`.

    Every number equals, to the bit, what `AlignedSegments` gives for the sentence alone, on any number of threads.

    Parameters
    ----------
    scores : Stack
        float64[n_parts] for each sentence.
    lattices : LatticeRows
    m : int64[n_sentences]
        Source positions.

    Examples
    --------
    >>> word = SegmentLattice([[0, 1, 0], [0, 2, 1], [1, 2, 2]], [True, False, True])
    >>> many = AlignedSegments.batch(
    ...     AlignedSegments(word, np.zeros((3, w)), np.zeros(3), np.zeros((w, w)), np.zeros((w, w)), np.zeros(w))
    ...     for w in (1, 2, 3))
    >>> np.exp(many.log_partition()).round(6).tolist()
    [2.0, 6.0, 12.0]
    """

    def __init__(self, scores: Stack, lattices: LatticeRows, m: ArrayLike) -> None:
        self.lattices, self.m = lattices, np.asarray(m, np.int64)
        sizes = n_aligned_parts(lattices.n_rows, np.diff(lattices.offsets), self.m)
        if not np.array_equal(np.diff(scores.offsets), sizes):
            raise ParameterError("AlignedSegmentsBatch: scores should have all parts of every sentence")
        self.scores = scores.checked("AlignedSegmentsBatch: scores")

    def __getitem__(self, s: int) -> AlignedSegments:
        return AlignedSegments._of(self.lattices[s], self.scores[s], int(self.m[s]))

    def _remake(self, scores: Stack) -> Self:
        return type(self)(scores, self.lattices, self.m)

    def _take(self, items: Integers) -> AlignedSegmentsBatch:
        return AlignedSegmentsBatch(self.scores.take(items), self.lattices.take(items), self.m[items])

    def _sweep(self, semiring: Semiring, u: Array, starts: Integers) -> tuple[Array, Stack]:
        from isogloss.structures._numba.aligned_segments import aligned_segments_all
        from isogloss.structures._numba.aligned_segments_scaled import log_aligned_segments_all

        scores = self.scores.values.view()
        scores.flags.writeable = False  # so that kernels are compiled for one type
        grad, values, own = np.zeros(len(scores)), np.empty(len(self)), self.lattices
        tails, heads, rows = (np.ascontiguousarray(one) for one in own.arcs.T)
        given = (
            scores, self.scores.offsets, own.n_rows, self.m, tails, heads, rows, own.offsets, own.borders.values,
            own.borders.offsets, grad,
        )  # fmt: skip
        if isinstance(semiring, Log):
            run_sentences(log_aligned_segments_all, len(self), semiring, *given, values)
        else:
            run_sentences(aligned_segments_all, len(self), semiring, *given, u, starts, values)
        return values, self.scores.like(grad)

    def _draws(self) -> Integers:
        return np.asarray(3 * self.lattices.borders.lengths + 1, np.int64)

    def _structures(self, parts: Stack) -> list[AlignedPath]:
        own = self.lattices
        return [
            _path(parts[s], own.arcs[own.offsets[s] : own.offsets[s + 1]], int(own.n_rows[s]), int(self.m[s]))
            for s in range(len(self))
        ]


def _path(parts: Array, arcs: NDArray[np.int32], n_rows: int, m: int) -> AlignedPath:
    """The arcs that have a 1 among parts, and the positions of their rows."""
    width = m + 1
    taken = np.flatnonzero(parts[n_rows * width : n_rows * width + len(arcs)])
    if not n_rows:
        return ()
    columns = parts[: n_rows * width].reshape(n_rows, width)[arcs[taken, 2]].argmax(axis=1)
    return tuple(zip(taken.tolist(), np.where(columns == m, -1, columns).tolist(), strict=True))


def _numbers(
    y: Any, arcs: NDArray[np.int32], borders: NDArray[np.uint8], n_rows: int, m: int, place: str
) -> Sequence[int]:
    """Which parts a path has; a step comes as often as it is taken."""
    try:
        path = [(int(arc), int(position)) for arc, position in y]
    except (TypeError, ValueError) as finding:
        raise ParameterError(f"{place}: a path has (arc, position) of each segment, not {y!r}") from finding
    width, node, carried = m + 1, 0, m
    steps = n_rows * width + len(arcs)
    found: list[int] = []
    for arc, position in path:
        if not 0 <= arc < len(arcs) or int(arcs[arc, 0]) != node or not -1 <= position < m:
            raise ParameterError(
                f"{place}: {(arc, position)} cannot be the next of its segments: arcs go on where the one before ends, "
                f"and positions are from 0 to {m - 1}, or -1 for null"
            )
        column = m if position < 0 else position
        found += [int(arcs[arc, 2]) * width + column, n_rows * width + arc]
        found.append(steps + (int(borders[node]) * width + carried) * width + column)
        node, carried = int(arcs[arc, 1]), carried if position < 0 else position
    if node != len(borders) - 1:
        raise ParameterError(f"{place}: the path ends at node {node}, and the sentence at {len(borders) - 1}")
    return [*found, steps + 2 * width * width + carried]
