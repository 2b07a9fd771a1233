"""`SenseTree`: trees with valence over words that have one of several senses each; `SenseTrees`: many at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError
from isogloss.structures.batch import Stack
from isogloss.structures.heads import crosses, is_rooted
from isogloss.structures.valence import ValenceBatch, ValenceProgram

__all__ = ["SenseTree", "SenseTrees"]

Slots = NDArray[np.int64]


class SenseTree(ValenceProgram):
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
        self._set(scores, stops, children, nearest_first)
        self.senses = checked_senses(senses, len(self.scores) - 1, "SenseTree")

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

    def _senses(self) -> Slots:
        return self.senses

    def _with(self, scores: Array, stops: Array, children: Array) -> Self:
        other = super()._with(scores, stops, children)
        other.senses = self.senses
        return other

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
        return is_rooted(heads) and np.count_nonzero(heads == 0) == min(1, self.n) and not crosses(heads)

    def parts(self, y: ArrayLike) -> Array:
        """float64[N+1, N+1]: 1 for each link (head, child) of the structure, 0 elsewhere."""
        slots = self._checked(y)
        out, used = np.zeros(self.scores.shape), np.flatnonzero(slots >= 0)
        out[slots[used], used + 1] = 1.0
        return out

    def _read(self, parts: Array) -> Slots:
        return np.where(parts[:, 1:].any(axis=0), parts[:, 1:].argmax(axis=0), -1).astype(np.int64)

    def link_marginals(self) -> Array:
        """float64[n+1, n+1]: posterior of each link between words, senses summed out."""
        node = np.append(0, self.words + 1)
        out = np.zeros((self.n + 1, self.n + 1))
        np.add.at(out, (node[:, None], node[None, :]), self.marginals())
        return out


def checked_senses(senses: ArrayLike, slots: int, place: str) -> Slots:
    """int64[n], once they are known to add up to the number of slots."""
    found = np.asarray(senses, np.int64)
    if found.ndim != 1 or (len(found) and found.min() < 1) or found.sum() != slots:
        raise ParameterError(
            f"{place}: senses should be whole numbers from 1 on that add up to {slots}, not {senses!r}"
        )
    return found


class SenseTrees(ValenceBatch):
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
        self._set(scores, stops, children, nearest_first)
        if len(senses) != len(scores):
            raise ParameterError(f"SenseTrees: {len(senses)} arrays of senses were given; give one for each sentence")
        size = scores.shapes[:, 0]
        pairs = enumerate(zip(senses, size.tolist(), strict=True))
        self.senses = [checked_senses(one, n - 1, f"SenseTrees: sentence {s}") for s, (one, n) in pairs]

    def __getitem__(self, s: int) -> SenseTree:
        scores, stops, children = self.scores[s], self.stops[s], self.children[s]
        return SenseTree(scores, stops, children, self.senses[s], nearest_first=self.nearest_first)

    def _remake(self, scores: Stack) -> Self:
        return type(self)(scores, self.stops, self.children, self.senses, nearest_first=self.nearest_first)

    def _take(self, items: NDArray[np.int64]) -> SenseTrees:
        scores, stops, children = (stack.take(items) for stack in self._kinds())
        some = [self.senses[s] for s in items.tolist()]
        return SenseTrees(scores, stops, children, some, nearest_first=self.nearest_first)

    def _senses(self) -> list[Slots]:
        return self.senses

    def _draws(self) -> NDArray[np.int64]:
        return np.array([5 * len(senses) + 1 for senses in self.senses], np.int64)

    def _structures(self, parts: Stack) -> Sequence[Slots]:
        return [self[s]._read(one) for s, one in enumerate(parts)]
