"""All projective trees of a short sentence with one root child, and all senses of its words."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import BruteForce
from isogloss.testing.enumerate.trees import trees
from isogloss.testing.enumerate.valence import valence_parts

__all__ = ["brute_force_senses"]


def brute_force_senses(
    scores: ArrayLike, stops: ArrayLike, children: ArrayLike, senses: Sequence[int], nearest_first: bool = True
) -> BruteForce:
    """Every tree with every choice of senses; a structure is the head of each slot, −1 for senses that are not chosen.

    >>> tables = np.zeros((5, 5)), np.zeros((5, 2, 2, 2)), np.zeros((5, 5, 1))
    >>> len(brute_force_senses(*tables, [2, 1, 1]).structures)  # 7 trees, 2 choices
    14
    """
    links, decisions, taken = (np.asarray(table, np.float64) for table in (scores, stops, children))
    first = [sum(senses[:word]) for word in range(len(senses))]
    listed, parts, log_scores = [], [], []
    for heads in trees(len(senses), projective=True, single_root=True):
        counted = valence_parts(heads, decisions.shape[2], taken.shape[2], nearest_first)
        for choice in itertools.product(*map(range, senses)):
            slot = [0, *(begin + sense + 1 for begin, sense in zip(first, choice, strict=True))]
            structure, indicator, value = [-1] * sum(senses), np.zeros(links.shape), 0.0
            for word, head in enumerate(heads, 1):
                structure[slot[word] - 1] = slot[head]
                indicator[slot[head], slot[word]] = 1.0
                value += links[slot[head], slot[word]]
            for word, *rest in np.argwhere(counted[0] > 0).tolist():
                value += counted[0][word, *rest] * decisions[slot[word], *rest]
            for head, child, v in np.argwhere(counted[1] > 0).tolist():
                value += taken[slot[head], slot[child], v]
            listed.append(tuple(structure))
            parts.append(indicator)
            log_scores.append(value)
    return BruteForce(listed, np.array(parts).reshape(len(listed), *links.shape), np.array(log_scores))
