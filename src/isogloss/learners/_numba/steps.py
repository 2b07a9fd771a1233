"""Steps of weights along sparse gradients, the same whatever the number of threads: one of each kind for all learners.

A gradient is a list of (number of a weight, value), see `isogloss.features.gradients`; it points to where the objective
rises. Block *b* of *blocks* owns the weights with number ≡ b, so that every weight sees its values in the order of the
items. Weights are float32 or float64, and so is the memory beside them, `MEMORY` numbers for each weight.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.lanes import prefetch

__all__ = [
    "FTRL_MEMORY", "GRADIENT", "LAST", "MEMORY", "NO_MEAN", "SQUARES", "TOTALS", "adagrad", "averaged", "climb",
    "climb_all", "ftrl", "margin_step", "penalise_adagrad", "penalise_sgd", "sgd",
]  # fmt: skip

GRADIENT, SQUARES, TOTALS, LAST = 0, 1, 2, 3
"""Columns of the memory of a weight: its gradient within a minibatch, Σ g² so far, and, for the mean, the sum of all
earlier values and the step they reach to. `ftrl` has √Σ g² and z in place of Σ g² and the sum of values, no more."""
MEMORY, FTRL_MEMORY, NO_MEAN = 4, 3, 2
"""How many columns there are: without a mean of the weights the first two are enough, and more fits into a cache."""
AHEAD = 12
"""How many entries ahead memory is asked for: weights are met in no order."""


@njit(cache=True, nogil=True)
def _collect(block, blocks, places, ends, numbers, values, memory):
    """Sum the entries of a minibatch by weight; the weights, in the order in which they first occur.

    A weight whose sum comes back to 0 on the way may be listed again: whoever walks the list clears sums as it goes.
    """
    met, many = np.empty((ends - places).sum(), numbers.dtype), 0
    for k in range(len(places)):
        for j in range(places[k], ends[k]):
            if j + AHEAD < ends[k]:
                prefetch(memory, memory.shape[1] * np.int64(numbers[j + AHEAD]))
            i = numbers[j]
            if blocks == 1 or i % blocks == block:  # division takes longer than all the rest
                before = memory[i, GRADIENT]
                memory[i, GRADIENT] = before + values[j]
                if before == 0:
                    met[many] = i
                    many += 1
    return met[:many]


@njit(cache=True, nogil=True, inline="always")
def _counted(weight, step, i, memory):
    """Take the weight into the sum of its values up to this step, where there is a mean."""
    if memory.shape[1] == NO_MEAN:
        return
    memory[i, TOTALS] += weight * (step - memory[i, LAST])
    memory[i, LAST] = step


@njit(cache=True, nogil=True)
def _rate_of(i, borders, rates):
    """The rate of a weight: that of the last border up to its number."""
    at = 0
    while at + 1 < len(borders) and borders[at + 1] <= i:
        at += 1
    return rates[at]


@njit(cache=True, nogil=True)
def _shrunk(weight, times, squares, rate, damping, floor, l1, l2):
    r"""A weight after the proximal steps of so many batches, all at once; numbers alone, which are handed over fast.

    With step length h = rate / (√(δ + Σ g²) + floor), which stays as it is while no gradient comes, t steps of
    :math:`w \leftarrow sign(w) (|w| - \lambda_1 h)_+ / (1 + \lambda_2 h)` are

    .. math:: |w| \leftarrow \big(|w| s^t - \lambda_1 h\, (s + s^2 + \dots + s^t)\big)_+,
        \qquad s = 1 / (1 + \lambda_2 h)
    """
    divisor = np.sqrt(damping + squares) + floor
    if divisor == 0:  # no gradient ever came
        return weight
    length, size = rate / divisor, abs(weight)
    shrink = 1.0 / (1.0 + l2 * length)
    all_of_it = shrink if times == 1 else shrink**times  # a whole number, of which powers take a few products
    size *= all_of_it
    if l1 > 0:
        ladder = np.float64(times)  # where shrink is 1, or so near that the closed form loses its digits
        if (1.0 - shrink) * times >= 1e-6:
            ladder = shrink * (1.0 - all_of_it) / (1.0 - shrink)
        size = max(size - l1 * length * ladder, 0.0)
    return size if weight > 0 else -size


@njit(cache=True, nogil=True)
def adagrad(
    block, blocks, places, ends, numbers, values, step, borders, rates, damping, floor, now, l1, l2, last, weights,
    memory,
):  # fmt: skip
    r"""One step up the sum of the gradients of a minibatch, each weight with a length of its own.

    .. math:: w_i \leftarrow w_i + \eta\, g_i / (\sqrt{\delta + \textstyle\sum g_i^2} + floor)

    Before it, penalties that a weight has waited for; `last` is empty where there are none.
    """
    met = _collect(block, blocks, places, ends, numbers, values, memory)
    for j in range(len(met)):
        if j + AHEAD < len(met):
            prefetch(memory, memory.shape[1] * np.int64(met[j + AHEAD]))
            prefetch(weights, np.int64(met[j + AHEAD]))
            if len(last):
                prefetch(last, np.int64(met[j + AHEAD]))
        i = met[j]
        g, rate = memory[i, GRADIENT], _rate_of(i, borders, rates)
        if g == 0:
            continue
        memory[i, GRADIENT] = 0
        if len(last):
            weight, times = np.float64(weights[i]), now - last[i]
            last[i] = now
            if times != 0 and weight != 0:
                weights[i] = _shrunk(weight, times, np.float64(memory[i, SQUARES]), rate, damping, floor, l1, l2)
        memory[i, SQUARES] += g * g
        _counted(weights[i], step, i, memory)
        weights[i] += rate * g / (np.sqrt(damping + memory[i, SQUARES]) + floor)


@njit(cache=True, nogil=True)
def penalise_adagrad(
    block, blocks, some, numbers, now, borders, rates, damping, floor, l1, l2, last, weights, memory
):  # fmt: skip
    """The penalties that weights have waited for, up to batch `now`: of those in `numbers` if `some`, else of all."""
    many = len(numbers) if some else len(weights)
    for j in range(many):
        i = numbers[j] if some else j
        weight, times = np.float64(weights[i]), now - last[i]
        if weight == 0 or times == 0 or (blocks > 1 and i % blocks != block):
            continue
        last[i] = now
        squares, rate = np.float64(memory[i, SQUARES]), _rate_of(i, borders, rates)
        weights[i] = _shrunk(weight, times, squares, rate, damping, floor, l1, l2)


@njit(cache=True, nogil=True)
def sgd(block, blocks, places, ends, numbers, values, step, length, weights, memory):
    """One step of one length for all weights."""
    for i in _collect(block, blocks, places, ends, numbers, values, memory):
        g = memory[i, GRADIENT]
        if g != 0:
            memory[i, GRADIENT] = 0
            _counted(weights[i], step, i, memory)
            weights[i] += length * g


@njit(cache=True, nogil=True)
def penalise_sgd(block, blocks, some, numbers, now, taken, last, weights):
    """What l2 takes between batch ``last[i]`` and batch `now`; ``taken[b]`` is the log of all it took before b."""
    many = len(numbers) if some else len(weights)
    for j in range(many):
        i = numbers[j] if some else j
        if blocks == 1 or i % blocks == block:
            weights[i] *= np.exp(taken[now] - taken[last[i]])
            last[i] = now


@njit(cache=True, nogil=True)
def climb(weights, sums, sizes, i, slope, rate, l1, l2):
    r"""One step of FTRL-Proximal for weight i: AdaGrad's step, with l1 and l2 taken over all steps in closed form.

    .. math:: z \leftarrow z + g + \sigma w,\quad \sigma = (s' - s) / \eta,\quad s' = \sqrt{s^2 + g^2}, \qquad
        w = \operatorname{sign}(z)\, (|z| - \lambda_1)_+ \big/ \big((1 + s') / \eta + \lambda_2\big)

    `sizes` holds s = √Σ g², `sums` holds z: the columns `SQUARES` and `TOTALS` of the memory, each in one piece.

    References
    ----------
    McMahan et al., Ad Click Prediction, KDD 2013, algorithm 1, with β = 1 and the signs of ascent.
    """
    before = sizes[i]
    after = np.sqrt(before * before + slope * slope)
    sizes[i] = after
    total = sums[i] + slope + (after - before) / rate * weights[i]
    sums[i] = total
    over = abs(total) - l1
    if over > 0:
        much = over / ((np.float32(1) + after) / rate + l2)
        weights[i] = much if total > 0 else -much
    else:
        weights[i] = np.float32(0)


@njit(cache=True, nogil=True, error_model="numpy")
def climb_all(values, slope, weights, sums, sizes, rate, l1, l2):
    """`climb` for neighbours in memory, along slope · values: without branches, it takes many at a time."""
    for f in range(len(values)):
        own, before, weight = slope * values[f], sizes[f], weights[f]
        after = np.sqrt(before * before + own * own)
        sizes[f] = after
        total = sums[f] + own + (after - before) / rate * weight
        sums[f] = total
        much = max(abs(total) - l1, np.float32(0)) / ((np.float32(1) + after) / rate + l2)
        weights[f] = much if total > 0 else -much


@njit(cache=True, nogil=True)
def ftrl(block, blocks, places, ends, numbers, values, rate, l1, l2, weights, memory):
    """One step of FTRL-Proximal along the sum of the gradients of a minibatch."""
    sums, sizes = memory[:, TOTALS], memory[:, SQUARES]
    for i in _collect(block, blocks, places, ends, numbers, values, memory):
        g = memory[i, GRADIENT]
        if g != 0:
            memory[i, GRADIENT] = 0
            climb(weights, sums, sizes, i, g, rate, l1, l2)


@njit(cache=True, nogil=True)
def margin_step(places, ends, numbers, values, step, lacks, most, borders, rates, weights, memory):
    """Steps of MIRA, item by item: as long as is needed for the margin to be the loss, and at most ``most[k]``.

    ``lacks[k]`` is the hinge at the weights that the item was searched with; where `most` is below 0, the step has
    length 1 (the perceptron). A weight moves by its rate times the step, as if its feature were multiplied with the
    root of the rate. `values` are overwritten.
    """
    for k in range(len(places)):
        if places[k] == ends[k]:
            continue
        for j in range(places[k], ends[k]):
            memory[numbers[j], GRADIENT] += values[j]
        size = 0.0
        for j in range(places[k], ends[k]):  # every weight once: the first visit takes its value and clears it
            i = numbers[j]
            much = memory[i, GRADIENT] * _rate_of(i, borders, rates)
            size += np.float64(memory[i, GRADIENT]) * much
            values[j], memory[i, GRADIENT] = much, 0
        length = 1.0
        if most[k] >= 0:
            length = min(most[k], lacks[k] / size) if size > 0 and lacks[k] > 0 else 0.0
        for j in range(places[k], ends[k]):
            if values[j] != 0 and length != 0:
                i = numbers[j]
                _counted(weights[i], step, i, memory)
                weights[i] += length * values[j]


@njit(cache=True, nogil=True)
def averaged(block, blocks, step, weights, memory, out):
    """The mean of the weights over all steps so far."""
    for i in range(block * len(weights) // blocks, (block + 1) * len(weights) // blocks):
        out[i] = (memory[i, TOTALS] + weights[i] * (step - memory[i, LAST])) / max(1, step)
