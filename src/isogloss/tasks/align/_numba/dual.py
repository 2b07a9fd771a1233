r"""Projections of both directions of a pair onto a constraint: the dual, and steps that lower it.

Tilted by multipliers, the emissions of a pair give other posteriors q; the projection [1]_ is the q whose multipliers
minimise the dual. Up to a constant it is, with p of the tilted emissions,

- symmetry: :math:`D(\lambda) = \log \overrightarrow{p} + \log \overleftarrow{p}`, a multiplier for each cell, whose
  slope is :math:`\overleftarrow{q}_{ij} - \overrightarrow{q}_{ij}`;
- bijectivity: :math:`D(\lambda) = \sum_j \lambda_j + \log p` of both directions, a multiplier of at least 0 for each
  generating word, whose slope is 1 less its expected uses.

*Fixed* steps go down the slope by one rate, as in Ganchev et al. 2008; they cost one inference each and may overshoot
for ever. The *adaptive* search goes a way that follows from how slopes changed along the last steps: for symmetry that
of L-BFGS [2]_, for bijectivity, with its bounds, that of the spectral projected gradient [3]_. A step that leads too
high, or too far beyond the lowest point of its way, is shortened. Multipliers stay within `FARTHEST` of 0, so that
float32 holds the tilted emissions. `learners.posterior` does the same for any structure, in float64.

References
----------
.. [1] Graça, Ganchev and Taskar, CL 2010, sections 3.3 and 3.4; the balanced dual of Ganchev et al., ACL 2008.
.. [2] Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4.
.. [3] Birgin, Martínez and Raydan, Nonmonotone Spectral Projected Gradient Methods on Convex Sets, SIAM Journal on
   Optimization 2000, algorithm SPG2. We differ in both: where a step is shortened, the slopes at its ends say how far.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.jumps import padded
from isogloss.structures._numba.lanes import (
    WIDTH,
    divide,
    load,
    multiply,
    multiply_add,
    splat,
    store,
    subtract,
    total,
)

__all__ = [
    "MEMORY",
    "MODES",
    "RECENT",
    "aim",
    "along",
    "bijective_step",
    "bound_of",
    "multipliers",
    "remember",
    "shift",
    "slopes",
    "symmetric_step",
    "tilt",
    "turn",
]

MODES = {"none": 0, "agreement": 1, "bijective": 2, "symmetric": 3}
_SYMMETRIC = MODES["symmetric"]
FARTHEST = 40.0  # the largest multiplier: e^40 in one direction, and e^-40 in the other, leave float32 some room
RECENT = 8  # values of D, of which a step for bijectivity may not rise above the highest
MEMORY = 5  # steps that L-BFGS remembers
_KERNEL = {"cache": True, "nogil": True, "error_model": "numpy"}


# --- fixed steps


@njit(**_KERNEL)
def _exponential(x):
    """exp of every lane, for |x| up to about 8: (sum of x^k / (16^k k!))^16."""
    one = splat(np.float32(1.0))
    y = multiply(x, splat(np.float32(1.0 / 16.0)))
    v = multiply_add(y, splat(np.float32(1.0 / 24.0)), splat(np.float32(1.0 / 6.0)))
    v = multiply_add(y, v, splat(np.float32(0.5)))
    v = multiply_add(y, v, one)
    v = multiply_add(y, v, one)
    v = multiply(v, v)
    v = multiply(v, v)
    v = multiply(v, v)
    return multiply(v, v)


@njit(**_KERNEL)
def symmetric_step(n, m, rate, space):
    """One step on the dual: tilt both emissions towards each other; returns the squared distance before the step."""
    wide, high = padded(m), padded(n)
    qf, qb = space.q
    for i in range(n):
        for j in range(m):
            space.turned[i * wide + j] = qf[j * high + i]
        for j in range(m, wide):
            space.turned[i * wide + j] = 0.0
    speed = splat(np.float32(rate))
    sums = splat(np.float32(0.0))
    for i in range(n):
        for j in range(i * wide, (i + 1) * wide, WIDTH):
            gap = subtract(load(qb, j), load(space.turned, j))
            sums = multiply_add(gap, gap, sums)
            w = multiply(load(space.tilt, j), _exponential(multiply(speed, gap)))
            store(space.tilt, j, w)
            store(space.tilted[1], j, divide(load(space.emission[1], j), w))
    for j in range(m):
        for i in range(n):
            space.tilted[0][j * high + i] = space.emission[0][j * high + i] * space.tilt[i * wide + j]
    return total(sums)


@njit(**_KERNEL)
def bijective_step(n, m, rate, space):
    """Projected gradient step for E[uses of each generating word] <= 1; returns the largest excess before the step."""
    worst = 0.0
    for d in range(2):
        stride, q = padded(m[d]), space.q[d]
        multiplier = space.search[0, d * padded(m[0]) :]
        for j in range(m[d]):
            uses = 0.0
            for t in range(n[d]):
                uses += q[t * stride + j]
            if uses > 1.0 or multiplier[j] > 0.0:
                worst = max(worst, abs(uses - 1.0))
            multiplier[j] = max(0.0, multiplier[j] + rate * (uses - 1.0))
            factor = np.float32(np.exp(-multiplier[j]))
            for t in range(n[d]):
                space.tilted[d][t * stride + j] = space.emission[d][t * stride + j] * factor
    return worst


# --- the adaptive search


@njit(**_KERNEL)
def multipliers(mode, m):
    """How many numbers hold the multipliers of a pair; those of the padding stay 0."""
    return m[0] * padded(m[1]) if mode == _SYMMETRIC else padded(m[0]) + padded(m[1])


@njit(**_KERNEL)
def slopes(mode, n, m, multiplier, slope, q):
    """Fills `slope` with those of D for the posteriors q; returns how far these are from the constraint.

    For symmetry that is the distance of both directions; for bijectivity the largest excess of uses, or lack of them
    where the multiplier is not 0.
    """
    return (
        _symmetric_slopes(m[0], m[1], slope, q) if mode == _SYMMETRIC else _bijective_slopes(n, m, multiplier, slope, q)
    )


@njit(**_KERNEL)
def _symmetric_slopes(a, b, slope, q):
    wide, high = padded(b), padded(a)
    qf, qb = q
    sums = splat(np.float32(0.0))
    for i in range(a):
        row = i * wide
        for j in range(b):
            slope[row + j] = qf[j * high + i]
        for j in range(b, wide):
            slope[row + j] = 0.0
        for j in range(row, row + wide, WIDTH):
            gap = subtract(load(qb, j), load(slope, j))
            store(slope, j, gap)
            sums = multiply_add(gap, gap, sums)
    return np.sqrt(np.float64(total(sums)))


@njit(**_KERNEL)
def _bijective_slopes(n, m, multiplier, slope, q):
    worst = 0.0
    for d in range(2):
        stride, start = padded(m[d]), d * padded(m[0])
        for j in range(start, start + stride):
            slope[j] = 0.0
        for t in range(n[d]):
            for j in range(m[d]):
                slope[start + j] += q[d][t * stride + j]
        for j in range(start, start + m[d]):
            slope[j] = np.float32(1.0) - slope[j]
            if slope[j] < 0.0 or multiplier[j] > 0.0:
                worst = max(worst, abs(np.float64(slope[j])))
    return worst


@njit(**_KERNEL)
def aim(mode, length, multiplier, slope, way):
    """Fills `way` with a step of `length` down the slope, as far as multipliers may go.

    Returns its slope and its squared length.
    """
    least = np.float32(-FARTHEST if mode == _SYMMETRIC else 0.0)
    down, squared = 0.0, 0.0
    for k in range(len(way)):
        x = multiplier[k]
        step = min(np.float32(FARTHEST), max(least, x - np.float32(length) * slope[k])) - x
        way[k] = step
        down += np.float64(step) * slope[k]
        squared += np.float64(step) * step
    return down, squared


@njit(**_KERNEL)
def turn(known, multiplier, slope, way, steps, changes, products):
    """Fills `way` with that of L-BFGS, from `known` steps and changes of the slope, as far as multipliers may go.

    Step k is in row k % MEMORY of `steps` and `changes`, and `products` has its product with the change. Returns the
    slope of the way, and its squared length.
    """
    shares = np.empty(MEMORY)
    way[:] = 0.0
    shift(-1.0, way, slope)
    first = max(0, known - MEMORY)
    for k in range(known - 1, first - 1, -1):
        row = k % MEMORY
        shares[row] = along(steps[row], way) / products[row]
        shift(-shares[row], way, changes[row])
    last = (known - 1) % MEMORY
    scale = np.float32(products[last] / along(changes[last], changes[last]))
    for k in range(len(way)):
        way[k] *= scale
    for k in range(first, known):
        row = k % MEMORY
        shift(shares[row] - along(changes[row], way) / products[row], way, steps[row])
    for k in range(len(way)):
        x = multiplier[k]
        way[k] = min(np.float32(FARTHEST), max(np.float32(-FARTHEST), x + way[k])) - x
    return along(way, slope), along(way, way)


@njit(**_KERNEL)
def remember(known, part, way, slope, before, steps, changes, products):
    """Keep a step and the change of the slope from `before`, unless it says nothing; returns how many are known."""
    row = known % MEMORY
    steps[row] = 0.0
    shift(part, steps[row], way)
    changes[row] = slope
    shift(-1.0, changes[row], before)
    products[row] = along(steps[row], changes[row])
    norms = along(steps[row], steps[row]) * along(changes[row], changes[row])
    return known + 1 if products[row] > 1e-6 * np.sqrt(norms) else known


@njit(**_KERNEL)
def along(way, slope):
    """The sum of products of two vectors of whole lanes: the slope of D along a way."""
    sums = splat(np.float32(0.0))
    for k in range(0, len(way), WIDTH):
        sums = multiply_add(load(way, k), load(slope, k), sums)
    return np.float64(total(sums))


@njit(**_KERNEL)
def shift(part, multiplier, way):
    """Go a part of the way."""
    share = splat(np.float32(part))
    for k in range(0, len(way), WIDTH):
        store(multiplier, k, multiply_add(share, load(way, k), load(multiplier, k)))


@njit(**_KERNEL)
def tilt(mode, n, m, multiplier, emission, weight, tilted):
    """Emissions as multipliers tilt them; returns the sum of multipliers that D has for bijectivity."""
    if mode == _SYMMETRIC:
        _tilt_cells(m[0], m[1], multiplier, emission, weight, tilted)
        return 0.0
    value = 0.0
    for d in range(2):
        stride, start = padded(m[d]), d * padded(m[0])
        for j in range(m[d]):
            value += multiplier[start + j]
            factor = np.float32(np.exp(-multiplier[start + j]))
            for t in range(n[d]):
                tilted[d][t * stride + j] = emission[d][t * stride + j] * factor
    return value


@njit(**_KERNEL)
def _tilt_cells(a, b, multiplier, emission, weight, tilted):
    wide, high = padded(b), padded(a)
    turn = splat(np.float32(-1.0))
    for j in range(0, a * wide, WIDTH):
        w = _far_exponential(multiply(turn, load(multiplier, j)))
        store(weight, j, w)
        store(tilted[1], j, divide(load(emission[1], j), w))
    for j in range(b):
        for i in range(a):
            tilted[0][j * high + i] = emission[0][j * high + i] * weight[i * wide + j]


@njit(**_KERNEL)
def _far_exponential(x):
    """exp of every lane, to a thousandth for |x| up to `FARTHEST`: (sum of x^k / (64^k k!))^64."""
    one = splat(np.float32(1.0))
    y = multiply(x, splat(np.float32(1.0 / 64.0)))
    v = multiply_add(y, splat(np.float32(1.0 / 720.0)), splat(np.float32(1.0 / 120.0)))
    v = multiply_add(y, v, splat(np.float32(1.0 / 24.0)))
    v = multiply_add(y, v, splat(np.float32(1.0 / 6.0)))
    v = multiply_add(y, v, splat(np.float32(0.5)))
    v = multiply_add(y, v, one)
    v = multiply_add(y, v, one)
    for _ in range(6):
        v = multiply(v, v)
    return v


# --- what a projection came to


@njit(**_KERNEL)
def bound_of(mode, budget, a, b, value, space):
    r"""log p less the divergence of q, and how far q is from the constraint.

    With emissions tilted by :math:`e^{-\lambda f}`, log p of the tilted model plus :math:`\lambda^\top E_q[f]` is
    :math:`\log p - KL(q \,\|\, p)`.
    """
    wide, high = padded(b), padded(a)
    qf, qb = space.q
    violation = 0.0
    if budget == 0:
        return value, violation
    if mode == _SYMMETRIC:
        for i in range(a):
            for j in range(b):
                gap = qf[j * high + i] - qb[i * wide + j]
                violation += gap * gap
                value -= np.log(np.float64(space.tilt[i * wide + j])) * gap
        return value, np.sqrt(violation)
    for i in range(a):
        uses = 0.0
        for j in range(b):
            uses += qf[j * high + i]
        value += space.search[0, i] * uses
        violation = max(violation, uses - 1.0)
    for j in range(b):
        uses = 0.0
        for i in range(a):
            uses += qb[i * wide + j]
        value += space.search[0, high + j] * uses
        violation = max(violation, uses - 1.0)
    return value, violation
