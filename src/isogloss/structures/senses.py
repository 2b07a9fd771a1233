"""`SenseTree`: trees with valence over words that have one of several senses each; `SenseTrees`: many at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, Program, checked_scores, expected, kept
from isogloss.structures.batch import ProgramBatch, Stack
from isogloss.structures.heads import crosses, link_scores
from isogloss.structures.semiring import LOG, Semiring
from isogloss.structures.valence import swept

__all__ = ["SenseTree", "SenseTrees"]

Slots = NDArray[np.int64]


class SenseTree(Program[Slots]):
    r"""A distribution over a tree with valence and a sense of each word, such as the source word that it translates.

    As `ValenceTree`, with *slots* in place of words: word *w* has ``senses[w]`` of them, side by side, and takes part
    in a tree with one. Scores of links depend on the senses of both ends; everything else may, too.

    Parameters
    ----------
    scores : float64[N+1, N+1]
        Log score of each link (head, child) between slots 1 … N; row 0 is the root. Links within a word are not read.
    stops : float64[N+1, 2, V_s, 2]
    children : float64[N+1, N+1, V_c]
    senses : int64[n]
        How many senses each word has, at least one; N in all.
    nearest_first : bool

    Notes
    -----
    Exact, in O(n³k²V) time for k senses a word. A structure is int64[N]: the head of each slot, a slot or 0 for the
    root, and −1 for senses that the word does not have; `split` makes heads and senses of words of it.

    References
    ----------
    D. A. Smith, Efficient inference for trees and alignments, PhD thesis, 2010, section 4.6: charts whose items are
    annotated by source words.

    Examples
    --------
    >>> dist = SenseTree(np.zeros((4, 4)), np.zeros((4, 2, 2, 2)), np.zeros((4, 4, 1)), [2, 1])
    >>> round(float(np.exp(dist.log_partition())), 9), dist.split(dist.argmax())  # 2 trees, 2 senses
    (4.0, (array([0, 1]), array([0, 0])))
    """

    def __init__(
        self, scores: ArrayLike, stops: ArrayLike, children: ArrayLike, senses: ArrayLike, *, nearest_first: bool = True
    ) -> None:
        self.scores = link_scores(scores, "SenseTree")
        size = len(self.scores)
        self.stops = checked_scores(stops, "SenseTree: stops", (size, 2, None, 2))
        self.children = checked_scores(children, "SenseTree: children", (size, size, None))
        if not self.stops.shape[2] or not self.children.shape[2]:
            raise ParameterError("SenseTree: stops and children should have at least one class of valence")
        self.senses = checked_senses(senses, size - 1, "SenseTree")
        self.nearest_first = bool(nearest_first)

    @classmethod
    def batch(
        cls,
        scores: Iterable[ArrayLike],
        stops: Iterable[ArrayLike],
        children: Iterable[ArrayLike],
        senses: Iterable[ArrayLike],
        *,
        nearest_first: bool = True,
    ) -> SenseTrees:
        """Many sentences at once, from one array of each kind for each."""
        return SenseTrees(
            Stack.of(scores, "SenseTrees: scores", 2),
            Stack.of(stops, "SenseTrees: stops", 4),
            Stack.of(children, "SenseTrees: children", 3),
            list(senses),
            nearest_first=nearest_first,
        )

    def __repr__(self) -> str:
        return f"SenseTree(n={self.n}, slots={len(self.scores) - 1}, nearest_first={self.nearest_first})"

    @property
    def n(self) -> int:
        """Number of words."""
        return len(self.senses)

    @cached_property
    def words(self) -> Slots:
        """int64[N]: the word of each slot, from 0."""
        return np.repeat(np.arange(self.n), self.senses)

    # --- the dynamic program

    def _all_kinds(self, semiring: Semiring, u: Array) -> tuple[float, tuple[Array, ...]]:
        stacks = (_one(self.scores), _one(self.stops), _one(self.children))
        values, grads = swept(semiring, stacks, self.nearest_first, u, np.zeros(2, np.int64), [self.senses])
        shaped = (grad.reshape(table.shape) for grad, table in zip(grads, self.part_scores(), strict=True))
        return float(values[0]), tuple(shaped)

    def _sweep(self, semiring: Semiring, u: Array) -> tuple[float, Array]:
        value, grads = self._all_kinds(semiring, u)
        return value, grads[0]

    @cached_property
    def _sums(self) -> tuple[float, tuple[Array, ...]]:
        value, grads = self._all_kinds(LOG, np.empty(0))
        if value == -np.inf:
            self._raise_infeasible()
        return value, tuple(kept(grad) for grad in grads)

    def _solve(self) -> tuple[float, Array]:
        value, grads = self._sums
        return value, grads[0]

    def _draws(self) -> int:
        return 5 * self.n + 1

    def _raise_infeasible(self) -> NoReturn:
        raise InfeasibleError(
            f"{self!r}: the allowed links and decisions make no projective tree with one root child. Give the parts of "
            "at least one tree finite scores"
        )

    # --- trees and parts

    def _checked(self, y: Any) -> Slots:
        slots = np.asarray(y)
        size = len(self.scores) - 1
        if slots.shape == (0,) == (size,):
            return np.zeros(0, np.int64)
        right = slots.shape == (size,) and slots.dtype.kind in "iu" and -1 <= slots.min() <= slots.max() <= size
        if not right or (np.bincount(self.words[slots >= 0], minlength=self.n) != 1).any():
            raise ParameterError(f"{self!r}: a structure has the head of one slot of each word, and -1, not {y!r}")
        return slots.astype(np.int64)

    def split(self, y: ArrayLike) -> tuple[Slots, Slots]:
        """int64[n], int64[n]: the head of each word, as for `ValenceTree`, and its sense, from 0."""
        slots = self._checked(y)
        used = np.flatnonzero(slots >= 0)
        heads = np.where(slots[used] > 0, self.words[np.maximum(slots[used], 1) - 1] + 1, 0)
        return heads, used - (np.cumsum(self.senses) - self.senses)

    def _is_tree(self, slots: Slots) -> bool:
        """Whether heads are slots that are used, and make a projective tree with one root child."""
        used = slots[slots >= 0]
        if (slots[used[used > 0] - 1] < 0).any():
            return False
        heads, _ = self.split(slots)
        above = np.concatenate([[0], heads])
        for _ in range(self.n.bit_length()):
            above = above[above]
        return not above.any() and np.count_nonzero(heads == 0) == min(1, self.n) and not crosses(heads)

    def parts(self, y: ArrayLike) -> Array:
        """float64[N+1, N+1]: 1 for each link (head, child) of the structure, 0 elsewhere."""
        slots = self._checked(y)
        out, used = np.zeros(self.scores.shape), np.flatnonzero(slots >= 0)
        out[slots[used], used + 1] = 1.0
        return out

    def _read(self, parts: Array) -> Slots:
        return np.where(parts[:, 1:].any(axis=0), parts[:, 1:].argmax(axis=0), -1).astype(np.int64)

    def score(self, y: ArrayLike) -> float:
        """Log score of a structure, not normalised; −∞ for what is no projective tree with one root child."""
        slots = self._checked(y)
        if not self._is_tree(slots):
            return -math.inf
        return sum(
            expected(used, scores) for scores, used in zip(self.part_scores(), self.kinds_of(slots), strict=True)
        )

    def _remake(self, scores: Array) -> Self:
        return self.with_part_scores(scores, self.stops, self.children)

    # --- several kinds of parts

    def part_scores(self) -> tuple[Array, ...]:
        """Scores of links, of decisions to stop, and of children."""
        return self.scores, self.stops, self.children

    def part_marginals(self) -> tuple[Array, ...]:
        """Expected numbers of links, of decisions to stop, and of children."""
        return self._sums[1]

    def kinds_of(self, y: ArrayLike) -> tuple[Array, ...]:
        """How often the structure has each part, in arrays like those of `part_scores`."""
        slots = self._checked(y)
        stops, children = np.zeros(self.stops.shape), np.zeros(self.children.shape)
        last_stop, last_child = self.stops.shape[2] - 1, self.children.shape[2] - 1
        for head in np.flatnonzero(slots >= 0) + 1:
            taken = np.flatnonzero(slots == head) + 1
            for side, some in ((0, taken[taken < head][::-1]), (1, taken[taken > head])):
                for v, child in enumerate(some if self.nearest_first else some[::-1]):
                    stops[head, side, min(v, last_stop), 0] += 1.0
                    children[head, child, min(v, last_child)] += 1.0
                stops[head, side, min(len(some), last_stop), 1] += 1.0
        return self.parts(slots), stops, children

    def with_part_scores(self, *scores: Array) -> Self:
        """The same sentence with other scores of every kind, in the order of `part_scores`."""
        links, stops, children = scores
        return type(self)(links, stops, children, self.senses, nearest_first=self.nearest_first)

    def stop_marginals(self) -> Array:
        """float64[N+1, 2, V_s, 2]: how often each decision is expected."""
        return self._sums[1][1]

    def child_marginals(self) -> Array:
        """float64[N+1, N+1, V_c]: posterior of each link with the valence of its child."""
        return self._sums[1][2]

    def link_marginals(self) -> Array:
        """float64[n+1, n+1]: posterior of each link between words, senses summed out."""
        node = np.append(0, self.words + 1)
        out = np.zeros((self.n + 1, self.n + 1))
        np.add.at(out, (node[:, None], node[None, :]), self.marginals())
        return out

    def entropy(self) -> float:
        """−Σ p log p in nats, as log Z − Σ marginals · scores over the allowed parts."""
        value, grads = self._sums
        for marginals, scores in zip(grads, self.part_scores(), strict=True):
            value -= expected(marginals, scores)
        return max(0.0, value)


def _one(table: Array) -> Stack:
    return Stack(table.reshape(-1), np.array([0, table.size]), np.array([table.shape], np.int64))


def checked_senses(senses: ArrayLike, slots: int, place: str) -> Slots:
    """int64[n], once they are known to add up to the number of slots."""
    found = np.asarray(senses, np.int64)
    if found.ndim != 1 or (len(found) and found.min() < 1) or found.sum() != slots:
        raise ParameterError(
            f"{place}: senses should be whole numbers from 1 on that add up to {slots}, not {senses!r}"
        )
    return found


class SenseTrees(ProgramBatch[Slots]):
    """Many distributions over trees and senses: the batch view of `SenseTree`, with the same numbers to the bit.

    Parameters
    ----------
    scores, stops, children : Stack
        float64[N+1, N+1], [N+1, 2, V_s, 2] and [N+1, N+1, V_c] for each sentence.
    senses : for each sentence int64[n]
    nearest_first : bool
    """

    def __init__(
        self, scores: Stack, stops: Stack, children: Stack, senses: Sequence[ArrayLike], *, nearest_first: bool = True
    ) -> None:
        size, count = scores.shapes[:, 0], len(scores)
        shaped = (
            scores.shapes.shape == (count, 2)
            and stops.shapes.shape == (count, 4)
            and children.shapes.shape == (count, 3)
            and all(bool((stack.shapes >= 1).all()) for stack in (scores, stops, children))
            and bool((scores.shapes == size[:, None]).all() and (children.shapes[:, :2] == size[:, None]).all())
            and bool((stops.shapes[:, 0] == size).all() and (stops.shapes[:, [1, 3]] == 2).all())
        )
        if not shaped or len(senses) != count:
            raise ParameterError(
                "SenseTrees: scores [N+1, N+1], stops [N+1, 2, V, 2], children [N+1, N+1, V] and senses are needed for "
                "every sentence, the root first"
            )
        for name, stack in (("scores", scores), ("stops", stops), ("children", children)):
            stack.checked(f"SenseTrees: {name}")
        self.scores, self.stops, self.children = scores, stops, children
        pairs = enumerate(zip(senses, size.tolist(), strict=True))
        self.senses = [checked_senses(one, n - 1, f"SenseTrees: sentence {s}") for s, (one, n) in pairs]
        self.nearest_first = bool(nearest_first)

    def __getitem__(self, s: int) -> SenseTree:
        scores, stops, children = self.scores[s], self.stops[s], self.children[s]
        return SenseTree(scores, stops, children, self.senses[s], nearest_first=self.nearest_first)

    def _remake(self, scores: Stack) -> Self:
        return type(self)(scores, self.stops, self.children, self.senses, nearest_first=self.nearest_first)

    def _take(self, items: NDArray[np.int64]) -> SenseTrees:
        scores, stops, children = (stack.take(items) for stack in (self.scores, self.stops, self.children))
        some = [self.senses[s] for s in items.tolist()]
        return SenseTrees(scores, stops, children, some, nearest_first=self.nearest_first)

    def _all_kinds(self, semiring: Semiring, u: Array, starts: NDArray[np.int64]) -> tuple[Array, list[Array]]:
        return swept(semiring, (self.scores, self.stops, self.children), self.nearest_first, u, starts, self.senses)

    def _sweep(self, semiring: Semiring, u: Array, starts: NDArray[np.int64]) -> tuple[Array, Stack]:
        values, grads = self._all_kinds(semiring, u, starts)
        return values, self.scores.like(grads[0])

    @cached_property
    def _sums(self) -> tuple[Array, list[Array]]:
        values, grads = self._all_kinds(LOG, np.empty(0), np.zeros(len(self) + 1, np.int64))
        self._refuse_infeasible(values)
        return values, [kept(grad) for grad in grads]

    def _solve(self) -> tuple[Array, Stack]:
        values, grads = self._sums
        return values, self.scores.like(grads[0])

    def _draws(self) -> NDArray[np.int64]:
        return np.array([5 * len(senses) + 1 for senses in self.senses], np.int64)

    def _structures(self, parts: Stack) -> Sequence[Slots]:
        return [self[s]._read(one) for s, one in enumerate(parts)]

    def stop_marginals(self) -> Stack:
        """How often each decision is expected, laid out as `stops`."""
        return self.stops.like(self._sums[1][1])

    def child_marginals(self) -> Stack:
        """Posteriors of links with the valence of their children, laid out as `children`."""
        return self.children.like(self._sums[1][2])

    def entropy(self) -> Array:
        """float64[n_sentences]: −Σ p log p in nats."""
        values, grads = self._sums
        out = values.copy()
        for s in range(len(self)):
            for grad, stack in zip(grads, (self.scores, self.stops, self.children), strict=True):
                here = slice(stack.offsets[s], stack.offsets[s + 1])
                out[s] -= expected(grad[here], stack.values[here])
        return np.maximum(0.0, out)
