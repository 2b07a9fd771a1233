"""Steps of weights along sparse gradients, the same whatever the number of threads.

A gradient is a list of (number of a weight, value); block *b* of *blocks* owns the weights with number ≡ b, so that
every weight sees its values in the order of the sentences.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.lanes import prefetch

__all__ = ["LAST", "TOTALS", "adagrad", "averaged", "margin_step"]

_FLOOR = np.float32(0.3)
"""Added to the root of Σ g²: weights whose gradient is faint then stay small, in place of moving by a whole step."""

GRADIENT, SQUARES, TOTALS, LAST = 0, 1, 2, 3
"""Columns of the state of a weight: its gradient in a minibatch, Σ g² so far, and, for the mean, the sum of all earlier
values and the step they reach to."""
AHEAD = 12
"""How many entries ahead memory is asked for: weights are met in no order."""


@njit(cache=True, nogil=True)
def adagrad(block, blocks, places, ends, numbers, parts, step, rate, l2, weights, state):
    r"""One step down the sum of the gradients of a minibatch, each weight with a length of its own.

    .. math:: w_i \leftarrow w_i (1 - \eta \lambda)^{steps} - \eta\, g_i / \sqrt{\textstyle\sum g_i^2}
    """
    for k in range(len(places)):
        for j in range(places[k], ends[k]):
            if j + AHEAD < ends[k]:
                prefetch(state, 4 * np.int64(numbers[j + AHEAD]))
            if numbers[j] % blocks == block:
                state[numbers[j], GRADIENT] += parts[j]
    for k in range(len(places)):
        for j in range(places[k], ends[k]):
            i = numbers[j]
            if j + AHEAD < ends[k]:
                prefetch(state, 4 * np.int64(numbers[j + AHEAD]))
                prefetch(weights, np.int64(numbers[j + AHEAD]))
            if i % blocks != block or state[i, GRADIENT] == 0:
                continue
            g, waited = state[i, GRADIENT], step - state[i, LAST]
            state[i, GRADIENT] = 0
            state[i, SQUARES] += g * g
            state[i, TOTALS] += weights[i] * waited
            state[i, LAST] = step
            kept = weights[i] * max(np.float32(0), 1 - rate * l2 * waited) if l2 > 0 else weights[i]
            weights[i] = kept - rate * g / (np.sqrt(state[i, SQUARES]) + _FLOOR)


@njit(cache=True, nogil=True)
def margin_step(places, ends, numbers, parts, step, losses, most, weights, state):
    """Steps of MIRA, sentence by sentence: as long as is needed for the margin to be the loss, and at most `most`.

    ``losses[k]`` is the hinge at the weights that the sentence was parsed with; where `most` is 0, all steps have
    length 1 (the perceptron).
    """
    for k in range(len(places)):
        if places[k] == ends[k]:
            continue
        for j in range(places[k], ends[k]):
            state[numbers[j], GRADIENT] += parts[j]
        size = 0.0
        for j in range(places[k], ends[k]):  # every weight once: the first visit takes its value and clears it
            i = numbers[j]
            size += np.float64(state[i, GRADIENT]) * state[i, GRADIENT]
            parts[j], state[i, GRADIENT] = state[i, GRADIENT], 0
        length = 1.0
        if most > 0:
            length = min(most, losses[k] / size) if size > 0 and losses[k] > 0 else 0.0
        for j in range(places[k], ends[k]):
            if parts[j] != 0:
                i = numbers[j]
                state[i, TOTALS] += weights[i] * (step - state[i, LAST])
                state[i, LAST] = step
                weights[i] -= np.float32(length) * parts[j]


@njit(cache=True, nogil=True)
def averaged(block, blocks, step, weights, state, out):
    """The mean of the weights over all steps so far."""
    for i in range(block * len(weights) // blocks, (block + 1) * len(weights) // blocks):
        out[i] = (state[i, TOTALS] + weights[i] * (step - state[i, LAST])) / max(np.float32(1), step)
