"""Passes over pairs of rows of which one should be above the other: what ranking margins are learnt by.

Rows are sparse: numbers of features and their values from ``starts[row]`` to ``starts[row + 1]``. A difference of two
rows is never written out. Passes go pair by pair, since each needs the weights that the one before has left.
"""

from __future__ import annotations

from numba import njit

__all__ = ["ascend", "hinges", "pegasos"]


@njit(cache=True, nogil=True, inline="always")
def _score(starts, features, values, row, weights):
    """w · x."""
    total = 0.0
    for k in range(starts[row], starts[row + 1]):
        total += weights[features[k]] * values[k]
    return total


@njit(cache=True, nogil=True, inline="always")
def _add(starts, features, values, row, much, weights):
    """w += much · x."""
    for k in range(starts[row], starts[row + 1]):
        weights[features[k]] += much * values[k]


@njit(cache=True, nogil=True)
def hinges(starts, features, values, above, below, shares, weights):
    """Σ share · max(0, 1 − w · (x⁺ − x⁻)), and how many pairs are in the wrong order or tied."""
    total, wrong = 0.0, 0
    for k in range(len(above)):
        better = _score(starts, features, values, above[k], weights)
        margin = better - _score(starts, features, values, below[k], weights)
        wrong += margin <= 0.0
        if margin < 1.0:
            total += shares[k] * (1.0 - margin)
    return total, wrong


@njit(cache=True, nogil=True)
def ascend(order, starts, features, values, above, below, shares, squares, l2, alphas, weights):
    """Each pair's α to where the dual is highest while all others stay."""
    for k in order:
        better, worse, before = above[k], below[k], alphas[k]
        margin = _score(starts, features, values, better, weights) - _score(starts, features, values, worse, weights)
        if squares[k] > 0.0:
            after = min(max(before + l2 * (1.0 - margin) / squares[k], 0.0), shares[k])
        else:  # two rows that are alike: no weights tell them apart
            after = shares[k]
        if after != before:
            alphas[k] = after
            step = (after - before) / l2
            _add(starts, features, values, better, step, weights)
            _add(starts, features, values, worse, -step, weights)


@njit(cache=True, nogil=True)
def pegasos(drawn, starts, features, values, above, below, rate, radius, met, weights, mean):
    """Steps of length 1 / (rate · t) along the hinge of each pair drawn; the mean counts the t-th weights t times.

    Returns Σ of the hinges as they were met, and how many were above 0.
    """
    lacking, updates = 0.0, 0
    for k in drawn:
        met += 1
        better, worse = above[k], below[k]
        margin = _score(starts, features, values, better, weights) - _score(starts, features, values, worse, weights)
        lack = 1.0 - margin
        for j in range(len(weights)):
            weights[j] *= 1.0 - 1.0 / met
        if lack > 0.0:
            step = 1.0 / (rate * met)
            _add(starts, features, values, better, step, weights)
            _add(starts, features, values, worse, -step, weights)
            lacking += lack
            updates += 1
        length = 0.0
        for j in range(len(weights)):
            length += weights[j] * weights[j]
        shrink = radius / length**0.5 if length > radius * radius else 1.0
        share = 2.0 / (met + 1.0)
        for j in range(len(weights)):
            weights[j] *= shrink
            mean[j] += share * (weights[j] - mean[j])
    return lacking, updates
