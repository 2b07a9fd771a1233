"""Covariances of the steps of a chain with a sum over its steps, from posteriors of steps alone.

A chain given its posteriors is a Markov chain, forwards and backwards. Two passes of conditional means, one in each
direction, give what the sum is on average when a step is taken; no score, logarithm or exponential is needed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["chain_covariances"]


@njit(cache=True, nogil=True)
def _centre(mu, values, n, size, out):
    """`values` less their mean at each position, where every sequence takes one step; to `out`."""
    for t in range(n):
        mean = 0.0
        for c in range(t * size, (t + 1) * size):
            mean += mu[c] * values[c]
        for c in range(t * size, (t + 1) * size):
            out[c] = values[c] - mean


@njit(cache=True, nogil=True)
def _covariances(mu, values, n, k, contexts, out):
    """Step (a, b, j) at a position leads from state a · contexts + b to state b · k + j."""
    states, size = k * contexts, k * contexts * k
    _centre(mu, values, n, size, out)
    here, there, mass = np.zeros(states), np.zeros(states), np.zeros(states)
    later = np.zeros(n * states)  # mean of what follows, in each state
    for t in range(n - 1, 0, -1):
        for s in range(states):
            total, weight = 0.0, 0.0
            for j in range(k):
                c = t * size + s * k + j
                after = (s % contexts) * k + j
                total += mu[c] * (out[c] + later[t * states + after])
                weight += mu[c]
            later[(t - 1) * states + s] = total / weight if weight > 0.0 else 0.0
    for t in range(n):
        there[:] = 0.0
        mass[:] = 0.0
        for s in range(states):
            for j in range(k):
                c = t * size + s * k + j
                after = (s % contexts) * k + j
                so_far = here[s] + out[c]  # mean of what came before, and this step
                there[after] += mu[c] * so_far
                mass[after] += mu[c]
                out[c] = mu[c] * (so_far + later[t * states + after]) if mu[c] > 0.0 else 0.0
        for s in range(states):
            here[s] = there[s] / mass[s] if mass[s] > 0.0 else 0.0


@njit(cache=True, nogil=True)
def chain_covariances(block, blocks, marginals, values, offsets, sizes, out):
    """Sentences block, block + blocks, …; sizes[s] is length, labels and contexts (1 at order 1, k at order 2)."""
    for s in range(block, len(sizes), blocks):
        a, b = offsets[s], offsets[s + 1]
        _covariances(marginals[a:b], values[a:b], sizes[s, 0], sizes[s, 1], sizes[s, 2], out[a:b])
