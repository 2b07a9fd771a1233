"""Chains in probabilities, with scores of their own for every step; see `chain_scaled` for how and why.

The weights of steps are written where their posteriors will be, so that no second array of that size is needed. Their
rows are not padded: a vector may reach into the next row, and what it brings from there is put out.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.chain import chain
from isogloss.structures._numba.chain_scaled import LOWEST, aligned, combine, mass_of
from isogloss.structures._numba.lanes import (
    add,
    exponential,
    largest,
    load_eight,
    maximum,
    multiply,
    multiply_add,
    splat_eight,
    store,
    subtract,
    total,
    where_positive,
)

__all__ = ["chains_log"]


@njit(cache=True, nogil=True)
def _step_weights(scores, at, size, out, x):
    """Write exp of `size` scores, less their maximum; returns it, and by how much others fall short (−∞ does not)."""
    whole = size // 8 * 8
    x[:] = -np.inf
    for j in range(whole, size):
        x[j - whole] = scores[at + j]
    best = load_eight(x, 0)
    for j in range(at, at + whole, 8):
        best = maximum(best, load_eight(scores, j))
    top = largest(best)
    if top == -np.inf:
        return top, 0.0
    shift, huge, depth = splat_eight(top), splat_eight(1e300), splat_eight(0.0)
    for j in range(at, at + whole, 8):
        given = load_eight(scores, j)
        store(out, j, exponential(subtract(given, shift)))
        depth = maximum(depth, where_positive(add(given, huge), subtract(shift, given)))
    given = load_eight(x, 0)
    depth = maximum(depth, where_positive(add(given, huge), subtract(shift, given)))
    store(x, 0, exponential(subtract(given, shift)))
    for j in range(whole, size):
        out[at + j] = x[j - whole]
    return top, largest(depth)


@njit(cache=True, nogil=True)
def _forward(scores, at, n, k, order, contexts, width, holes, x, q, scales, grad):
    """Step weights into `grad`, forward weights q[t, i, j]; returns log Z, and whether the weights can hold it."""
    size, steps, stride = contexts * width, contexts * k * k, 1 if contexts == 1 else width
    one, value, product, mass = splat_eight(1.0), 0.0, 1.0, 1.0
    for t in range(n):
        block, here = at + t * steps, t * size
        used = k if t == 0 else steps if t >= order else k * k  # of order 2, position 1 comes from (0, i)
        top, depth = _step_weights(scores, block, used, grad, x)
        for j in range(block + used, block + steps):
            grad[j] = 0.0
        if top == -np.inf:
            return top, True
        if depth > -LOWEST:
            return 0.0, False
        scales[t] = 1.0 / mass
        value += top
        for i in range(contexts):
            into, rows = here + i * width, block + i * k
            if t == 0:
                for j in range(width):
                    q[into + j] = grad[rows + j] if i == 0 and j < k else 0.0
                continue
            combine(q, into, q, here - size + i, stride, grad, rows, contexts * k, k, width)
            for j in range(0, width, 8):
                weight = multiply(load_eight(q, into + j), splat_eight(scales[t]))
                store(q, into + j, where_positive(add(load_eight(holes, j), one), weight))
        mass = mass_of(q, here, size)
        if mass == 0.0:
            return -np.inf, True
        if mass < 0.0:
            return 0.0, False
        product *= mass
        if product < 1e-100 or product > 1e100:
            value += np.log(product)
            product = 1.0
    return value + np.log(product), True


@njit(cache=True, nogil=True)
def _posteriors(at, n, k, contexts, width, holes, q, scales, beta, v, grad):
    """Step weights in `grad` are replaced by posteriors, q[t-1, h, i] · weight · backward weight of (i, j) at t."""
    size, steps, stride, whole = contexts * width, contexts * k * k, 1 if contexts == 1 else width, k // 8 * 8
    one = splat_eight(1.0)
    for j in range(0, size, 8):
        store(beta, j, where_positive(load_eight(q, (n - 1) * size + j), one))
    for t in range(n - 1, -1, -1):
        here, mass = t * size, splat_eight(0.0)
        for j in range(0, size, 8):
            mass = multiply_add(load_eight(q, here + j), load_eight(beta, j), mass)
        inverse = 1.0 / total(mass)
        if t == 0:
            for j in range(k):
                grad[at + j] = q[j] * beta[j] * inverse
            return
        scale = splat_eight(inverse * scales[t])
        for j in range(0, size, 8):
            store(v, j, multiply(load_eight(beta, j), scale))
        for h in range(k):
            for i in range(contexts):
                row, state = at + t * steps + (h * contexts + i) * k, h * stride + i
                before = q[here - size + state]
                if before == 0.0:  # cannot be reached, whatever it leads to
                    beta[state] = 0.0
                    for j in range(row, row + k):
                        grad[j] = 0.0
                    continue
                factor, mass = splat_eight(before), splat_eight(0.0)
                for j in range(0, whole, 8):
                    weight = multiply(load_eight(grad, row + j), load_eight(v, i * width + j))
                    mass = add(mass, weight)
                    store(grad, row + j, multiply(weight, factor))
                if whole < k:
                    weight = multiply(load_eight(grad, row + whole), load_eight(v, i * width + whole))
                    mass = add(mass, where_positive(add(load_eight(holes, whole), one), weight))
                    for j in range(whole, k):
                        grad[row + j] *= v[i * width + j] * before
                beta[state] = total(mass)


@njit(cache=True, nogil=True)
def chains_log(block, blocks, sr, order, scores, offsets, shapes, grad, values):
    """`chains` in LOG, for the sentences block, block + blocks, …

    Parameters
    ----------
    sr : LOG
        For the sentences that need logarithms.
    grad : float64[n_values + 8]
        Need not be zeros; the last eight are never written.
    scores, offsets, shapes, values
        As in `chains`.
    """
    most, widest, longest = 0, 8, 0
    for s in range(block, len(shapes), blocks):
        longest = max(longest, shapes[s, 0])
        width = -(-shapes[s, 1] // 8) * 8
        most, widest = max(most, shapes[s, 0] * shapes[s, 2] * width), max(widest, shapes[s, 2] * width)
    q, scales, x, holes = aligned(most), np.empty(longest), np.empty(8), np.empty(widest)
    beta, v = np.zeros(widest), np.zeros(widest)
    for s in range(block, len(shapes), blocks):
        here, n, k, contexts = offsets[s], shapes[s, 0], shapes[s, 1], shapes[s, 2]
        width, value, fine = -(-k // 8) * 8, 0.0, False
        if n > 0 and k > 0:
            for j in range(width):
                holes[j] = 0.0 if j < k else -np.inf
            for j in range(contexts * width):
                beta[j] = 0.0
            value, fine = _forward(scores, here, n, k, order, contexts, width, holes, x, q, scales, grad)
        if not fine:
            for j in range(here, offsets[s + 1]):
                grad[j] = 0.0
            there = offsets[s + 1]
            value = chain(sr, scores[here:there], n, k, contexts, grad[here:there], scores[:0])
        elif value > -np.inf:
            _posteriors(here, n, k, contexts, width, holes, q, scales, beta, v, grad)
        values[s] = value
