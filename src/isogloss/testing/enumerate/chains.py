"""All sequences of a chain."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce, brute_force

__all__ = ["brute_force_chain", "brute_force_factored", "chain_parts", "chains"]


def chains(scores: Array) -> list[tuple[int, ...]]:
    """All sequences of k labels over n positions, for scores [n, k, k], [n, k, k, k] or of nodes, [n, k]."""
    n, k = scores.shape[0], scores.shape[-1]
    return list(itertools.product(range(k), repeat=n))


def chain_parts(scores: Array, y: Sequence[int]) -> Array:
    """Indicator of the steps (t, y[t-1], y[t]) or (t, y[t-2], y[t-1], y[t]); before the beginning there are zeros."""
    out = np.zeros(scores.shape)
    for t in range(len(y)):
        step = [y[before] if before >= 0 else 0 for before in range(t + 2 - scores.ndim, t + 1)]
        out[(t, *step)] = 1.0
    return out


def brute_force_chain(scores: ArrayLike) -> BruteForce:
    """Every sequence of a chain of order 1, float64[n, k, k], or 2, float64[n, k, k, k].

    >>> round(float(np.exp(brute_force_chain(np.zeros((3, 2, 2))).log_partition)), 9)
    8.0
    """
    return brute_force(chains, chain_parts, scores)


def brute_force_factored(
    nodes: ArrayLike,
    transitions: ArrayLike,
    start: ArrayLike | None = None,
    end: ArrayLike | None = None,
    pairs: ArrayLike | None = None,
) -> BruteForce:
    """Every sequence of a chain with shared transitions; parts are labels at positions, float64[n, k].

    >>> round(float(np.exp(brute_force_factored(np.zeros((3, 2)), np.zeros((2, 2))).log_partition)), 9)
    8.0
    """
    array, table = np.asarray(nodes, np.float64), np.asarray(transitions, np.float64)
    listed = chains(array)
    parts = np.zeros((len(listed), *array.shape))
    log_scores = np.zeros(len(listed))
    for row, y in enumerate(listed):
        for t, label in enumerate(y):
            parts[row, t, label] = 1.0
            log_scores[row] += array[t, label]
            if t + 1 >= table.ndim:
                log_scores[row] += table[tuple(y[t + 1 - table.ndim : t + 1])]
            if pairs is not None and t >= 1:
                log_scores[row] += np.asarray(pairs)[y[t - 1], label]
        if y and start is not None:
            log_scores[row] += np.asarray(start)[y[0]]
        if y and end is not None:
            log_scores[row] += np.asarray(end)[y[-1]]
    return BruteForce(listed, parts, log_scores)
