"""What both kinds of dependency tree share: scores of links, and trees written as the head of each word."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, Distribution, checked_scores
from isogloss.structures.batch import Stack

__all__ = ["HeadTree", "Heads", "crosses", "heads_of", "is_rooted", "link_scores"]

Heads = NDArray[np.int64]


def link_scores(scores: ArrayLike, place: str) -> Array:
    """`scores`, once they are known to be log scores [n + 1, n + 1] of links (head, child), the root first."""
    array = checked_scores(scores, f"{place}: scores", (None, None))
    if array.shape[0] != array.shape[1] or not len(array):
        raise ParameterError(f"{place}: scores should be [n+1, n+1], the root first, not {list(array.shape)}")
    return array


def crosses(heads: Heads) -> bool:
    """Whether two links, those of the root included, cross when drawn above the sentence."""
    words = np.arange(1, len(heads) + 1)
    low, high = np.minimum(words, heads), np.maximum(words, heads)
    starts_inside = (low[:, None] < low) & (low < high[:, None])
    return bool((starts_inside & (high[:, None] < high)).any())


def is_rooted(heads: Heads) -> bool:
    """Whether everything hangs on the root, directly or through others."""
    above = np.concatenate([[0], heads])
    for _ in range(len(heads).bit_length()):  # 2, 4, 8, … steps up
        above = above[above]
    return not above.any()


def heads_of(parts: Stack) -> list[Heads]:
    """For each sentence int64[n]: the tree that has these links (head, child)."""
    from isogloss.structures._numba.eisner import read_heads

    sizes = np.ascontiguousarray(parts.shapes[:, 0])
    starts = np.concatenate([[0], np.cumsum(sizes - 1)]).astype(np.int64)
    heads = np.empty(int(starts[-1]), np.int64)
    read_heads(parts.values, parts.offsets, sizes, starts, heads)
    return [heads[starts[s] : starts[s + 1]] for s in range(len(parts))]


class HeadTree(Distribution[Heads]):
    """A distribution over dependency trees of n words; `scores` is float64[n + 1, n + 1], indexed (head, child).

    A tree is an int64[n] array: word *m* hangs on ``heads[m - 1]``, and node 0 is the root.
    """

    single_root: bool

    @property
    def n(self) -> int:
        """Number of words; the root is not counted."""
        return len(self.scores) - 1

    def _checked(self, y: Any) -> Heads:
        heads = np.asarray(y)
        if heads.shape == (0,) == (self.n,):
            return np.zeros(0, np.int64)
        if heads.shape != (self.n,) or heads.dtype.kind not in "iu" or not 0 <= heads.min() <= heads.max() <= self.n:
            raise ParameterError(f"{self!r}: a tree is {self.n} heads from 0 to {self.n}, one a word, not {y!r}")
        return heads.astype(np.int64)

    def _is_tree(self, heads: Heads) -> bool:
        """Whether everything hangs on the root, and the root has as many children as it may."""
        return is_rooted(heads) and not (self.single_root and np.count_nonzero(heads == 0) > 1)

    def parts(self, y: ArrayLike) -> Array:
        """float64[n + 1, n + 1]: 1 for each link (head, child) of the heads `y`, 0 elsewhere."""
        heads = self._checked(y)
        out = np.zeros(self.scores.shape)
        out[heads, np.arange(1, self.n + 1)] = 1.0
        return out

    def _read(self, parts: Array) -> Heads:
        return np.asarray(parts[:, 1:].argmax(axis=0), np.int64)

    def from_parts(self, parts: ArrayLike) -> Heads:
        """int64[n]: the tree that has these links; the inverse of `parts`."""
        heads = super().from_parts(parts)
        if not self._is_tree(heads):
            raise ParameterError(f"{self!r}: the heads {heads.tolist()} are not a tree of this kind")
        return heads
