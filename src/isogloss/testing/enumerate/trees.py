"""All dependency trees of a short sentence: projective or not, with one root child or any number."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce

__all__ = ["brute_force_trees", "grandparent_parts", "sibling_parts", "tree_parts", "trees"]

Heads = tuple[int, ...]


@lru_cache(maxsize=64)
def trees(n: int, *, projective: bool = False, single_root: bool = False) -> tuple[Heads, ...]:
    """All trees over words 1 … n below node 0, each as the head of every word.

    >>> [len(trees(n, projective=True)) for n in range(5)], [len(trees(n)) for n in range(5)]
    ([1, 1, 3, 12, 55], [1, 1, 3, 16, 125])
    >>> [len(trees(n, single_root=True)) for n in range(5)]
    [1, 1, 2, 9, 64]
    """
    found = []
    for heads in itertools.product(range(n + 1), repeat=n):
        if single_root and n and heads.count(0) != 1:
            continue
        if _reaches_root(heads) and not (projective and _crosses(heads)):
            found.append(heads)
    return tuple(found)


def _reaches_root(heads: Heads) -> bool:
    for word in range(1, len(heads) + 1):
        node, steps = word, 0
        while node and steps <= len(heads):
            node, steps = heads[node - 1], steps + 1
        if node:
            return False
    return True


def _crosses(heads: Heads) -> bool:
    """Whether two links, those of the root included, cross when drawn above the sentence."""
    links = [(min(head, word), max(head, word)) for word, head in enumerate(heads, 1)]
    return any(a < c < b < d or c < a < d < b for (a, b), (c, d) in itertools.combinations(links, 2))


def tree_parts(heads: Sequence[int]) -> Array:
    """float64[n+1, n+1]: the links (head, child) of a tree."""
    out = np.zeros((len(heads) + 1, len(heads) + 1))
    for word, head in enumerate(heads, 1):
        out[head, word] = 1.0
    return out


def sibling_parts(heads: Sequence[int]) -> Array:
    """float64[n+1, n+1, n+1]: (head, previous, child) of every link.

    `previous` is the next child of the head towards it on the same side; it is the head itself for the nearest child.

    >>> np.argwhere(sibling_parts([0, 1, 1])).tolist()  # word 1 has children 2 and 3
    [[0, 0, 1], [1, 1, 2], [1, 2, 3]]
    """
    out = np.zeros((len(heads) + 1,) * 3)
    for word, head in enumerate(heads, 1):
        between = range(head + 1, word) if head < word else range(head - 1, word, -1)
        sisters = [other for other in between if heads[other - 1] == head]
        out[head, sisters[-1] if sisters else head, word] = 1.0
    return out


def grandparent_parts(heads: Sequence[int]) -> Array:
    """float64[n+1, n+1, n+1]: (grandparent, head, child) of every link whose head is a word.

    >>> np.argwhere(grandparent_parts([0, 1, 2])).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """
    out = np.zeros((len(heads) + 1,) * 3)
    for word, head in enumerate(heads, 1):
        if head:
            out[heads[head - 1], head, word] = 1.0
    return out


def brute_force_trees(
    scores: ArrayLike,
    *,
    projective: bool = False,
    single_root: bool = False,
    siblings: ArrayLike | None = None,
    grandparents: ArrayLike | None = None,
) -> BruteForce:
    """Every tree of float64[n+1, n+1] link scores (head, child), with scores of second order where given.

    >>> round(float(np.exp(brute_force_trees(np.zeros((4, 4))).log_partition)), 9)
    16.0
    """
    links = np.asarray(scores, np.float64)
    listed = trees(len(links) - 1, projective=projective, single_root=single_root)
    parts = np.array([tree_parts(heads) for heads in listed])
    log_scores = np.array([links[indicator > 0].sum() for indicator in parts])
    for table, indicators in ((siblings, sibling_parts), (grandparents, grandparent_parts)):
        if table is not None:
            log_scores = log_scores + [np.asarray(table)[indicators(heads) > 0].sum() for heads in listed]
    return BruteForce(listed, parts, log_scores)
