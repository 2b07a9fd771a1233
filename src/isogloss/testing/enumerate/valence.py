"""All projective trees of a short sentence with one root child, scored as the dependency model with valence does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce
from isogloss.testing.enumerate.trees import tree_parts, trees

__all__ = ["brute_force_valence", "valence_parts"]


def valence_parts(
    heads: Sequence[int], stop_valences: int, child_valences: int, nearest_first: bool = True
) -> tuple[Array, Array]:
    """How often a tree has each decision, float64[n+1, 2, V_s, 2], and each child, float64[n+1, n+1, V_c].

    Each word is asked about each other child of its head on its side: how many were generated before it.

    >>> stops, children = valence_parts([2, 0, 2, 2], 2, 2)
    >>> np.argwhere(children).tolist()  # word 3 is the first and word 4 the second child of word 2 on the right
    [[2, 1, 0], [2, 3, 0], [2, 4, 1]]
    """
    n = len(heads)
    stops, children = np.zeros((n + 1, 2, stop_valences, 2)), np.zeros((n + 1, n + 1, child_valences))
    for word in range(1, n + 1):
        head = heads[word - 1]
        for side, others in enumerate((range(1, word), range(word + 1, n + 1))):
            count = sum(heads[other - 1] == word for other in others)
            stops[word, side, min(count, stop_valences - 1), 1] += 1.0
        if head == 0:
            continue
        sisters = [w for w in range(1, n + 1) if heads[w - 1] == head and w != word and (w > head) == (word > head)]
        nearer = [w for w in sisters if abs(w - head) < abs(word - head)]
        earlier = len(nearer) if nearest_first else len(sisters) - len(nearer)
        stops[head, int(word > head), min(earlier, stop_valences - 1), 0] += 1.0
        children[head, word, min(earlier, child_valences - 1)] += 1.0
    return stops, children


def brute_force_valence(
    scores: ArrayLike, stops: ArrayLike, children: ArrayLike, nearest_first: bool = True
) -> BruteForce:
    """Every projective tree with one root child, with scores of links, of decisions to stop and of children.

    >>> [len(brute_force_valence(np.zeros((n, n)), np.zeros((n, 2, 2, 2)), np.zeros((n, n, 1))).structures)
    ...  for n in range(1, 6)]
    [1, 1, 2, 7, 30]
    """
    links, decisions, taken = (np.asarray(table, np.float64) for table in (scores, stops, children))
    listed = trees(len(links) - 1, projective=True, single_root=True)
    parts = np.array([tree_parts(heads) for heads in listed])
    log_scores = np.array([links[indicator > 0].sum() for indicator in parts])
    for row, heads in enumerate(listed):
        used = valence_parts(heads, decisions.shape[2], taken.shape[2], nearest_first)
        for table, times in zip((decisions, taken), used, strict=True):
            log_scores[row] += sum(table[at] * times[at] for at in map(tuple, np.argwhere(times > 0)))
    return BruteForce(listed, parts, log_scores)
