"""Steps of weights along sparse gradients, the same whatever the number of threads.

A gradient is a list of (number of a weight, value); block *b* of *blocks* owns the weights with number ≡ b, so that
every weight sees its values in the order of the sentences.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["adagrad", "averaged", "clamp_heads", "margin_step"]

_FLOOR = np.float32(1e-6)


@njit(cache=True, nogil=True)
def adagrad(block, blocks, places, ends, numbers, parts, step, rate, l2, weights, squares, gradient, totals, last):
    r"""One step down the sum of the gradients of a minibatch, each weight with a length of its own.

    .. math:: w_i \leftarrow w_i (1 - \eta \lambda)^{steps} - \eta\, g_i / \sqrt{\textstyle\sum g_i^2}

    `totals` and `last` keep the sum of all earlier values of each weight, for the mean.
    """
    for k in range(len(places)):
        for j in range(places[k], ends[k]):
            if numbers[j] % blocks == block:
                gradient[numbers[j]] += parts[j]
    for k in range(len(places)):
        for j in range(places[k], ends[k]):
            i = numbers[j]
            if i % blocks != block or gradient[i] == 0:
                continue
            g, waited = gradient[i], step - last[i]
            gradient[i] = 0
            totals[i] += weights[i] * waited
            last[i] = step
            squares[i] += g * g
            kept = weights[i] * max(np.float32(0), 1 - rate * l2 * waited) if l2 > 0 else weights[i]
            weights[i] = kept - rate * g / (np.sqrt(squares[i]) + _FLOOR)


@njit(cache=True, nogil=True)
def margin_step(places, ends, numbers, parts, step, losses, most, weights, gradient, totals, last):
    """Steps of MIRA, sentence by sentence: as long as is needed for the margin to be the loss, and at most `most`.

    ``losses[k]`` is the hinge at the weights that the sentence was parsed with; where `most` is 0, all steps have
    length 1 (the perceptron).
    """
    for k in range(len(places)):
        if places[k] == ends[k]:
            continue
        for j in range(places[k], ends[k]):
            gradient[numbers[j]] += parts[j]
        size = 0.0
        for j in range(places[k], ends[k]):  # every weight once: the first visit takes its value and clears it
            i = numbers[j]
            size += np.float64(gradient[i]) * gradient[i]
            parts[j], gradient[i] = gradient[i], 0
        length = 1.0
        if most > 0:
            length = min(most, losses[k] / size) if size > 0 and losses[k] > 0 else 0.0
        for j in range(places[k], ends[k]):
            if parts[j] != 0:
                i = numbers[j]
                totals[i] += weights[i] * (step - last[i])
                last[i] = step
                weights[i] -= np.float32(length) * parts[j]


@njit(cache=True, nogil=True)
def averaged(block, blocks, step, weights, totals, last, out):
    """The mean of the weights over all steps so far."""
    for i in range(block * len(weights) // blocks, (block + 1) * len(weights) // blocks):
        out[i] = (totals[i] + weights[i] * (step - last[i])) / max(1, step)


@njit(cache=True, nogil=True)
def clamp_heads(offsets, sizes, heads, values):
    """Forbid all links of words whose head is known but the one from that head; −1 is not known."""
    word = 0
    for k in range(len(sizes)):
        n = sizes[k]
        for c in range(1, n):
            if heads[word] >= 0:
                for p in range(n):
                    if p != heads[word]:
                        values[offsets[k] + p * n + c] = -np.inf
            word += 1
