"""Batch MIRA over lists of candidates with dense features: hopes, fears and steps, a few items at a time."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.learners._numba.steps import margin_step

__all__ = ["look", "move"]


@njit(cache=True, nogil=True)
def look(items, starts, features, counts, background, weights, scores, beside):
    """Scores of the candidates of some items, and their counts beside those of earlier items.

    Parameters
    ----------
    items : int64[.]
    starts : int64[n_items + 1]
    features : float64[n, n_weights]
    counts : float64[n, n_counts]
    background : float64[n_counts]
    weights : float64[n_weights]
    scores : float64[.]
        Written: item after item.
    beside : float64[., n_counts]
        Written likewise.

    Returns
    -------
    int
        How many candidates there are.
    """
    n = 0
    for k in range(len(items)):
        for c in range(starts[items[k]], starts[items[k] + 1]):
            total = 0.0
            for i in range(len(weights)):
                total += weights[i] * features[c, i]
            scores[n] = total
            for i in range(len(background)):
                beside[n, i] = counts[c, i] + background[i]
            n += 1
    return n


@njit(cache=True, nogil=True)
def move(items, starts, features, counts, scores, qualities, cap, step, fading, background, weights, memory):
    """A step of each item by which its hope would win over its fear, and counts of hopes, which fade.

    Parameters
    ----------
    items, starts, features, counts, scores, weights
        As for `look`.
    qualities : float64[.]
        Of each candidate, in the order of `scores`.
    cap : float
        The most that one item may change the weights by.
    step : float
        The number of the step, for the mean.
    fading : float
    background : float64[n_counts]
        Overwritten.
    memory : float64[n_weights, .]
        As `isogloss.learners._numba.steps` has it.
    """
    width, first = len(weights), 0
    borders, rates = np.zeros(1, np.int64), np.ones(1)
    places, ends = np.arange(len(items)) * width, (np.arange(len(items)) + 1) * width
    numbers, values = np.empty(len(items) * width, np.int32), np.zeros(len(items) * width)
    lacks = np.zeros(len(items))
    for k in range(len(items)):
        begin = starts[items[k]]
        size = starts[items[k] + 1] - begin
        for i in range(width):
            numbers[k * width + i] = i
        if size == 0:
            continue
        hope = fear = 0
        for c in range(1, size):
            if scores[first + c] + qualities[first + c] > scores[first + hope] + qualities[first + hope]:
                hope = c
            if scores[first + c] - qualities[first + c] > scores[first + fear] - qualities[first + fear]:
                fear = c
        loss = qualities[first + hope] - qualities[first + fear]
        lacks[k] = loss - (scores[first + hope] - scores[first + fear])
        for i in range(width):
            values[k * width + i] = features[begin + hope, i] - features[begin + fear, i]
        if fading > 0:
            for i in range(len(background)):
                background[i] = background[i] * fading + counts[begin + hope, i]
        first += size
    margin_step(places, ends, numbers, values, step, lacks, np.full(len(items), cap), borders, rates, weights, memory)
