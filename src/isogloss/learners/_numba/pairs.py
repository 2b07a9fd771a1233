"""Passes over pairs of rows of which one should be above the other: what ranking margins are learnt by.

A difference of two rows is never written out. Both passes go pair by pair, since each needs the weights that the one
before has left; whoever has several problems puts those on threads.
"""

from __future__ import annotations

from numba import njit

__all__ = ["ascend", "hinges", "pegasos"]


@njit(cache=True, nogil=True, inline="always")
def _margin(rows, above, below, weights):
    """w · (x⁺ − x⁻)."""
    total = 0.0
    for j in range(len(weights)):
        total += weights[j] * (rows[above, j] - rows[below, j])
    return total


@njit(cache=True, nogil=True)
def hinges(rows, above, below, shares, weights):
    """Σ share · max(0, 1 − w · (x⁺ − x⁻)), and how many pairs are in the wrong order or tied."""
    total, wrong = 0.0, 0
    for k in range(len(above)):
        margin = _margin(rows, above[k], below[k], weights)
        wrong += margin <= 0.0
        if margin < 1.0:
            total += shares[k] * (1.0 - margin)
    return total, wrong


@njit(cache=True, nogil=True)
def ascend(order, rows, above, below, shares, squares, l2, alphas, weights):
    """Each pair's α to where the dual is highest while all others stay."""
    for k in order:
        better, worse, before = above[k], below[k], alphas[k]
        slope = 1.0 - _margin(rows, better, worse, weights)
        if squares[k] > 0.0:
            after = min(max(before + l2 * slope / squares[k], 0.0), shares[k])
        else:  # two rows that are alike: no weights tell them apart
            after = shares[k]
        if after != before:
            alphas[k] = after
            step = (after - before) / l2
            for j in range(len(weights)):
                weights[j] += step * (rows[better, j] - rows[worse, j])


@njit(cache=True, nogil=True)
def pegasos(drawn, rows, above, below, rate, radius, met, weights, mean):
    """Steps of length 1 / (rate · t) along the hinge of each pair drawn; the mean counts the t-th weights t times.

    Returns Σ of the hinges as they were met, and how many were above 0.
    """
    lacking, updates = 0.0, 0
    for k in drawn:
        met += 1
        better, worse = above[k], below[k]
        lack = 1.0 - _margin(rows, better, worse, weights)
        length = 0.0
        step = 1.0 / (rate * met)
        for j in range(len(weights)):
            weights[j] *= 1.0 - 1.0 / met
            if lack > 0.0:
                weights[j] += step * (rows[better, j] - rows[worse, j])
            length += weights[j] * weights[j]
        if length > radius * radius:
            shrink = radius / length**0.5
            for j in range(len(weights)):
                weights[j] *= shrink
        share = 2.0 / (met + 1.0)
        for j in range(len(weights)):
            mean[j] += share * (weights[j] - mean[j])
        if lack > 0.0:
            lacking += lack
            updates += 1
    return lacking, updates
