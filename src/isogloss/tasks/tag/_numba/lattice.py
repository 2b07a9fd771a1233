"""Hidden Markov chains over the labels that each token may have: expected counts, of order 1 and 2.

Token t has the labels ``labels[starts[t]:starts[t + 1]]`` with weights beside them: emission probabilities, up to a
factor of the token. Before a sentence stands label k. Transitions are probabilities, ``moves[i * k + j]`` from i to j
at order 1 and ``moves[(h * (k + 1) + i) * k + j]`` at order 2. Sums are scaled at each position, so that long sentences
neither vanish nor overflow; a sentence whose sum vanishes all the same has the value −∞ and no posterior.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["expected_1", "expected_2"]


@njit(cache=True, nogil=True)
def _forward_1(first, last, starts, labels, weights, k, moves, alpha, scales):
    """Scaled sums to alpha[e], for each entry e of the sentence; returns Σ log scales."""
    value = 0.0
    for t in range(first, last):
        here, there = starts[t], starts[t + 1]
        total = 0.0
        for e in range(here, there):
            j = labels[e]
            x = 0.0
            if t == first:
                x = moves[k * k + j]
            else:
                for d in range(starts[t - 1], here):
                    x += alpha[d] * moves[labels[d] * k + j]
            alpha[e] = x * weights[e]
            total += alpha[e]
        if not (total > 0.0 and total < np.inf):
            return -np.inf
        scales[t - first] = 1.0 / total
        for e in range(here, there):
            alpha[e] *= scales[t - first]
        value += np.log(total)
    return value


@njit(cache=True, nogil=True)
def _backward_1(first, last, starts, labels, weights, k, moves, posterior, scales, counts, beta, new):
    """`posterior` holds alpha and becomes the posterior; expected transitions are added to counts."""
    beta[:] = 1.0
    for t in range(last - 1, first - 1, -1):
        here, there = starts[t], starts[t + 1]
        for e in range(here, there):
            posterior[e] *= beta[e - here]
            beta[e - here] *= weights[e] * scales[t - first]
        if t == first:
            for e in range(here, there):
                counts[k * k + labels[e]] += posterior[e]
            return
        before = starts[t - 1]
        for d in range(before, here):
            at = labels[d] * k
            total = 0.0
            for e in range(here, there):
                much = moves[at + labels[e]] * beta[e - here]
                total += much
                counts[at + labels[e]] += posterior[d] * much
            new[d - before] = total
        for d in range(here - before):
            beta[d] = new[d]


@njit(cache=True, nogil=True)
def expected_1(block, count, offsets, starts, labels, weights, k, moves, posterior, counts, values):
    """Sentences of one block: log sums to values[s], posteriors to posterior[e], transitions to counts[block]."""
    n = len(offsets) - 1
    one, two = block * n // count, (block + 1) * n // count
    longest = 0
    for s in range(one, two):
        longest = max(longest, offsets[s + 1] - offsets[s])
    scales, beta, new = np.empty(longest), np.empty(k), np.empty(k)
    for s in range(one, two):
        first, last = offsets[s], offsets[s + 1]
        values[s] = _forward_1(first, last, starts, labels, weights, k, moves, posterior, scales)
        if values[s] == -np.inf:
            posterior[starts[first] : starts[last]] = 0.0
        elif last > first:
            _backward_1(first, last, starts, labels, weights, k, moves, posterior, scales, counts[block], beta, new)


@njit(cache=True, nogil=True)
def _forward_2(first, last, starts, labels, weights, k, moves, places, alpha, scales):
    """Scaled sums for pairs: alpha[places[t] + i * d + j] for the i-th label of t − 1 and the j-th of t, of d."""
    value = 0.0
    for t in range(first, last):
        here, d = starts[t], starts[t + 1] - starts[t]
        at = places[t - first]
        total = 0.0
        n_i = starts[t] - starts[t - 1] if t > first else 1
        n_h = starts[t - 1] - starts[t - 2] if t > first + 1 else 1
        for i in range(n_i):
            y = labels[starts[t - 1] + i] if t > first else k
            row = at + i * d
            for j in range(d):
                alpha[row + j] = 0.0
            for h in range(n_h):
                x = labels[starts[t - 2] + h] if t > first + 1 else k
                before = alpha[places[t - first - 1] + h * n_i + i] if t > first else 1.0
                base = (x * (k + 1) + y) * k
                for j in range(d):
                    alpha[row + j] += before * moves[base + labels[here + j]]
            for j in range(d):
                alpha[row + j] *= weights[here + j]
                total += alpha[row + j]
        if not (total > 0.0 and total < np.inf):
            return -np.inf
        scales[t - first] = 1.0 / total
        for e in range(at, at + n_i * d):
            alpha[e] *= scales[t - first]
        value += np.log(total)
    return value


@njit(cache=True, nogil=True)
def _backward_2(first, last, starts, labels, weights, k, moves, places, alpha, scales, posterior, counts, beta, new):
    """Posteriors of labels to posterior[e]; expected transitions are added to counts."""
    beta[:] = 1.0
    for t in range(last - 1, first - 1, -1):
        here, d = starts[t], starts[t + 1] - starts[t]
        at, scale = places[t - first], scales[t - first]
        n_i = starts[t] - starts[t - 1] if t > first else 1
        n_h = starts[t - 1] - starts[t - 2] if t > first + 1 else 1
        for j in range(d):
            posterior[here + j] = 0.0
        for i in range(n_i):
            for j in range(d):
                posterior[here + j] += alpha[at + i * d + j] * beta[i * d + j]
                beta[i * d + j] *= weights[here + j] * scale
        for h in range(n_h):
            x = labels[starts[t - 2] + h] if t > first + 1 else k
            for i in range(n_i):
                y = labels[starts[t - 1] + i] if t > first else k
                before = alpha[places[t - first - 1] + h * n_i + i] if t > first else 1.0
                base = (x * (k + 1) + y) * k
                total = 0.0
                for j in range(d):
                    z = base + labels[here + j]
                    much = moves[z] * beta[i * d + j]
                    total += much
                    counts[z] += before * much
                new[h * n_i + i] = total
        for e in range(n_h * n_i):
            beta[e] = new[e]


@njit(cache=True, nogil=True)
def expected_2(block, count, offsets, starts, labels, weights, k, moves, posterior, counts, values):
    """The same as `expected_1`, at order 2."""
    n = len(offsets) - 1
    one, two = block * n // count, (block + 1) * n // count
    longest, most = 0, 0
    for s in range(one, two):
        longest = max(longest, offsets[s + 1] - offsets[s])
        pairs = 0
        for t in range(offsets[s], offsets[s + 1]):
            pairs += (starts[t + 1] - starts[t]) * (starts[t] - starts[t - 1] if t > offsets[s] else 1)
        most = max(most, pairs)
    scales, places, alpha = np.empty(longest), np.empty(longest, np.int64), np.empty(most)
    beta, new = np.empty(k * k), np.empty(k * k)
    for s in range(one, two):
        first, last = offsets[s], offsets[s + 1]
        pairs = 0
        for t in range(first, last):
            places[t - first] = pairs
            pairs += (starts[t + 1] - starts[t]) * (starts[t] - starts[t - 1] if t > first else 1)
        values[s] = _forward_2(first, last, starts, labels, weights, k, moves, places, alpha, scales)
        if values[s] == -np.inf:
            posterior[starts[first] : starts[last]] = 0.0
            continue
        _backward_2(
            first, last, starts, labels, weights, k, moves, places, alpha, scales, posterior, counts[block], beta, new
        )  # fmt: skip
