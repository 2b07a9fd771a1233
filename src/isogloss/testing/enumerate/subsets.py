"""All subsets of the cells of an array, and all of its cells alone."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce, brute_force

__all__ = ["brute_force_choice", "brute_force_subsets", "subset_parts", "subsets"]


def subsets(scores: Array) -> list[frozenset[tuple[int, ...]]]:
    """Every subset of the cells."""
    cells = list(np.ndindex(*scores.shape))
    return [frozenset(y) for size in range(len(cells) + 1) for y in itertools.combinations(cells, size)]


def subset_parts(scores: Array, y: frozenset[tuple[int, ...]]) -> Array:
    """Indicator of the cells of a subset."""
    out = np.zeros(scores.shape)
    for cell in y:
        out[cell] = 1.0
    return out


def brute_force_subsets(scores: ArrayLike) -> BruteForce:
    """Every subset of an array of any shape.

    >>> round(float(np.exp(brute_force_subsets(np.zeros((2, 2))).log_partition)), 9)
    16.0
    """
    return brute_force(subsets, subset_parts, scores)


def brute_force_choice(scores: ArrayLike) -> BruteForce:
    """Every candidate of a list."""
    return brute_force(lambda each: list(range(len(each))), lambda each, y: np.eye(len(each))[y], scores)
