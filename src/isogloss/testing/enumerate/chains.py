"""All sequences of a chain."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce, brute_force

__all__ = ["brute_force_chain", "chain_parts", "chains"]


def chains(scores: Array) -> list[tuple[int, ...]]:
    """All sequences of k states over n positions."""
    n, _, k = scores.shape
    return list(itertools.product(range(k), repeat=n))


def chain_parts(scores: Array, y: tuple[int, ...]) -> Array:
    """Indicator of the steps (t, y[t-1], y[t]); position 0 comes from row 0."""
    out = np.zeros(scores.shape)
    for t, state in enumerate(y):
        out[t, y[t - 1] if t else 0, state] = 1.0
    return out


def brute_force_chain(scores: ArrayLike) -> BruteForce:
    """Every sequence of a chain.

    >>> round(float(np.exp(brute_force_chain(np.zeros((3, 2, 2))).log_partition)), 9)
    8.0
    """
    return brute_force(chains, chain_parts, scores)
