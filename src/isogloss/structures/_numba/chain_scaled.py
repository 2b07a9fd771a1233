"""Log Z and marginals of chains in probabilities: many times faster than in logarithms, and as exact.

Scores are exponentiated once, less their maximum, and the forward weights are scaled at every position. What could go
wrong is underflow, and it is ruled out, not hoped for: a sentence is worked on here only as long as every weight of a
step, of a node and of a forward state that is not exactly 0 is at least `LEAST`, about 10⁻¹⁰⁰. The product of three
such is still a normal number, so that a weight of 0 means forbidden, and nothing that is allowed is lost. Backward
weights need no bound: forward times backward is a posterior, and those that underflow are posteriors below 10⁻²⁰⁰.
Where the bound is broken, the kernel in logarithms takes over for the sentence.

Layout. Rows are padded to a multiple of eight with zeros. With C contexts (1, or k at order 2; see `chain`), the state
(i, j) is at i·width + j, so that label j of all contexts is a column; the step (h, i, j) is at (i·k + h)·width + j.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.chain import factored
from isogloss.structures._numba.lanes import (
    add,
    exponential,
    largest,
    load_eight,
    maximum,
    multiply,
    multiply_add,
    splat_eight,
    spread_eight,
    store,
    subtract,
    total,
    where_positive,
)

__all__ = ["LEAST", "LOWEST", "aligned", "combine", "factored_log", "mass_of"]

LOWEST = -230.0  # log of the smallest weight to work with
LEAST = np.exp(LOWEST)


@njit(cache=True, nogil=True)
def combine(out, at, weights, weight, stride, rows, row, step, count, width):
    """out[at + j] = Σ_r weights[weight + r·stride] · rows[row + r·step + j], for 0 ≤ j < width.

    Three vectors at a time, even and odd r apart: enough sums in flight to hide how long one takes.
    """
    zero = splat_eight(0.0)
    j = 0
    while j + 24 <= width:
        a, b, c, d, e, f = zero, zero, zero, zero, zero, zero
        w, p = weight, row + j
        for _ in range(count // 2):
            x, y, q = spread_eight(weights, w), spread_eight(weights, w + stride), p + step
            a, d = multiply_add(x, load_eight(rows, p), a), multiply_add(y, load_eight(rows, q), d)
            b, e = multiply_add(x, load_eight(rows, p + 8), b), multiply_add(y, load_eight(rows, q + 8), e)
            c, f = multiply_add(x, load_eight(rows, p + 16), c), multiply_add(y, load_eight(rows, q + 16), f)
            w, p = w + 2 * stride, p + 2 * step
        if count % 2:
            x = spread_eight(weights, w)
            a = multiply_add(x, load_eight(rows, p), a)
            b = multiply_add(x, load_eight(rows, p + 8), b)
            c = multiply_add(x, load_eight(rows, p + 16), c)
        store(out, at + j, add(a, d))
        store(out, at + j + 8, add(b, e))
        store(out, at + j + 16, add(c, f))
        j += 24
    while j < width:
        a, b = zero, zero
        w, p = weight, row + j
        for _ in range(count // 2):
            a = multiply_add(spread_eight(weights, w), load_eight(rows, p), a)
            b = multiply_add(spread_eight(weights, w + stride), load_eight(rows, p + step), b)
            w, p = w + 2 * stride, p + 2 * step
        if count % 2:
            a = multiply_add(spread_eight(weights, w), load_eight(rows, p), a)
        store(out, at + j, add(a, b))
        j += 8


@njit(cache=True, nogil=True)
def aligned(size):
    """Room for numbers that begins where a vector should: one that lies across two lines of the cache takes longer."""
    room = np.empty(size + 8)
    skip = (-(room.ctypes.data // 8)) % 8
    return room[skip : skip + size]


@njit(cache=True, nogil=True)
def _node_weights(nodes, row, k, width, holes, x, out, at):
    """Write exp of the node scores of a position, less their maximum; returns it, and by how much others fall short.

    Row `row` of `nodes` is read where `x` is empty, and else `x`, padded with −∞. `holes` is 0 for labels and −∞ for
    padding. Neither padding nor what is −∞ falls short.
    """
    one, huge = splat_eight(1.0), splat_eight(1e300)
    best = splat_eight(-np.inf)
    for j in range(0, width, 8):
        here = load_eight(holes, j)
        given = load_eight(x, j) if len(x) else where_positive(add(here, one), load_eight(nodes, row + j))
        best = maximum(best, add(given, here))
    top = largest(best)
    if top == -np.inf:
        return top, 0.0
    shift, depth = splat_eight(top), splat_eight(0.0)
    for j in range(0, width, 8):
        here = load_eight(holes, j)
        given = load_eight(x, j) if len(x) else where_positive(add(here, one), load_eight(nodes, row + j))
        given = add(given, here)
        store(out, at + j, exponential(subtract(given, shift)))
        depth = maximum(depth, where_positive(add(given, huge), subtract(shift, given)))
    return top, largest(depth)


@njit(cache=True, nogil=True)
def _nodes(nodes, row, n, k, width, start, end, holes, x, b):
    """Node weights b[t, j] of a sentence; returns the sum of what was taken off, and whether weights can hold them."""
    value, worst = 0.0, 0.0
    for t in range(n):
        here = row + t * k
        if 0 < t < n - 1 and here + width <= len(nodes):
            top, depth = _node_weights(nodes, here, k, width, holes, x[:0], b, t * width)
        else:
            for j in range(k):
                x[j] = nodes[here + j] + (start[j] if t == 0 else 0.0) + (end[j] if t == n - 1 else 0.0)
            top, depth = _node_weights(nodes, here, k, width, holes, x, b, t * width)
        if top == -np.inf:
            return top, True
        value += top
        worst = max(worst, depth)
    return value, worst <= -LOWEST


@njit(cache=True, nogil=True)
def mass_of(q, at, size):
    """The sum of `size` weights, or −1 if it or one of them is too small to go on with."""
    mass, least, lack = splat_eight(0.0), splat_eight(LEAST), splat_eight(0.0)
    for j in range(at, at + size, 8):
        weight = load_eight(q, j)
        mass = add(mass, weight)
        lack = maximum(lack, where_positive(weight, subtract(least, weight)))
    return -1.0 if largest(lack) > 0.0 else total(mass)


@njit(cache=True, nogil=True)
def _forward(n, k, order, contexts, width, weights, shifts, b, q):
    """Forward weights q[t, i, j]; returns log Z, and whether the weights can hold it.

    A position is divided by the sum of the one before, not by its own, which would have to be waited for:
    q[t, i, j] = b[t, j] Σ_h q[t-1, h, i] weights[h, i, j], where b[t] has taken up that division.
    """
    size, stride = contexts * width, 1 if contexts == 1 else width
    for j in range(0, size, 8):
        store(q, j, load_eight(b, j) if j < width else splat_eight(0.0))
    value, product = 0.0, 1.0
    mass = mass_of(q, 0, size)
    for t in range(1, n):
        here, which = t * size, 1 if t >= order else 0
        value += shifts[which]
        for i in range(contexts):
            rows = (which * contexts + i) * k * width
            combine(q, here + i * width, q, here - size + i, stride, weights, rows, width, k, width)
        if mass <= 0.0:
            break
        product *= mass
        if product < 1e-100 or product > 1e100:
            value += np.log(product)
            product = 1.0
        inverse = splat_eight(1.0 / mass)
        for j in range(0, width, 8):
            node = multiply(load_eight(b, t * width + j), inverse)
            store(b, t * width + j, node)
            for i in range(here + j, here + size, width):
                store(q, i, multiply(load_eight(q, i), node))
        mass = mass_of(q, here, size)
    if mass == 0.0:
        return -np.inf, True
    if mass < 0.0:
        return 0.0, False
    return value + np.log(product) + np.log(mass), True


@njit(cache=True, nogil=True)
def _posterior(q, at, beta, size, width, k, label, grad, row):
    """Posteriors of the labels of one position into `grad`; returns 1 / their sum before they were made to sum to 1.

    Rounding alone keeps that from being 1, but it would add up along the sentence.
    """
    mass = splat_eight(0.0)
    for j in range(0, width, 8):
        both = splat_eight(0.0)
        for i in range(j, size, width):
            both = multiply_add(load_eight(q, at + i), load_eight(beta, i), both)
        store(label, j, both)
        mass = add(mass, both)
    inverse = 1.0 / total(mass)
    whole = k // 8 * 8
    for j in range(0, whole, 8):
        store(grad, row + j, multiply(load_eight(label, j), splat_eight(inverse)))
    for j in range(whole, k):
        grad[row + j] = label[j] * inverse
    return inverse


@njit(cache=True, nogil=True)
def _backward(n, k, order, contexts, width, transposed, b, q, v, beta, back, now, grad, row):
    """Posteriors of labels into `grad`, and v[t, i, j] = b[t, j] · backward weight of state (i, j) at t.

    The posterior of step (h, i, j) into t is then q[t-1, h, i] · weights[h, i, j] · v[t, i, j].
    """
    size, unit = contexts * width, 1 if k > 0 else 0  # were it plainly 1, `combine` would be compiled again for it
    last = splat_eight(1.0 / mass_of(q, (n - 1) * size, size))
    for j in range(0, size, 8):
        store(beta, j, where_positive(load_eight(q, (n - 1) * size + j), last))
    for t in range(n - 1, -1, -1):
        here, which = t * size, 1 if t >= order else 0
        inverse = splat_eight(_posterior(q, here, beta, size, width, k, now, grad, row + t * k))
        if t == 0:
            return
        for j in range(0, width, 8):
            node = load_eight(b, t * width + j)
            for i in range(j, size, width):
                weight = multiply(load_eight(beta, i), node)
                store(now, i, weight)
                store(v, here + i, multiply(weight, inverse))
        for i in range(contexts):
            rows = (which * contexts + i) * k * width
            combine(back, i * width, now, i * width, unit, transposed, rows, width, k, width)
        if contexts > 1:  # from [i, h] to [h, i]
            for i in range(k):
                for h in range(k):
                    beta[h * width + i] = back[i * width + h]
        for j in range(0, size, 8):  # what cannot be reached has no share, whatever it leads to
            weight = load_eight(back, j) if contexts == 1 else load_eight(beta, j)
            store(beta, j, where_positive(load_eight(q, here - size + j), weight))


@njit(cache=True, nogil=True)
def _outer(sums, at, q, state, stride, v, row, size, count, k, width):
    """sums[at + h·width + j] += Σ_t q[state + h·stride + t·size] · v[row + t·size + j], for 0 ≤ h < k, 0 ≤ j < width.

    Three h and three vectors at a time, so that each is read once for three uses.
    """
    for top in range(0, k, 3):
        three = top + 3 <= k
        j = 0
        while three and j + 24 <= width:
            out, w = at + top * width + j, state + top * stride
            a0, a1, a2 = load_eight(sums, out), load_eight(sums, out + 8), load_eight(sums, out + 16)
            out += width
            b0, b1, b2 = load_eight(sums, out), load_eight(sums, out + 8), load_eight(sums, out + 16)
            out += width
            c0, c1, c2 = load_eight(sums, out), load_eight(sums, out + 8), load_eight(sums, out + 16)
            for p in range(row + j, row + j + count * size, size):
                x, y, z = load_eight(v, p), load_eight(v, p + 8), load_eight(v, p + 16)
                a, b, c = spread_eight(q, w), spread_eight(q, w + stride), spread_eight(q, w + 2 * stride)
                a0, a1, a2 = multiply_add(a, x, a0), multiply_add(a, y, a1), multiply_add(a, z, a2)
                b0, b1, b2 = multiply_add(b, x, b0), multiply_add(b, y, b1), multiply_add(b, z, b2)
                c0, c1, c2 = multiply_add(c, x, c0), multiply_add(c, y, c1), multiply_add(c, z, c2)
                w += size
            store(sums, out, c0), store(sums, out + 8, c1), store(sums, out + 16, c2)
            out -= width
            store(sums, out, b0), store(sums, out + 8, b1), store(sums, out + 16, b2)
            out -= width
            store(sums, out, a0), store(sums, out + 8, a1), store(sums, out + 16, a2)
            j += 24
        for h in range(top, min(top + 3, k)):  # what is left over
            for i in range(j, width, 8):
                out, w = at + h * width + i, state + h * stride
                a0 = load_eight(sums, out)
                for p in range(row + i, row + i + count * size, size):
                    a0 = multiply_add(spread_eight(q, w), load_eight(v, p), a0)
                    w += size
                store(sums, out, a0)


@njit(cache=True, nogil=True)
def _count(n, k, order, contexts, width, q, v, sums, at):
    """sums[which, i, h, j] += Σ_t q[t-1, h, i] v[t, i, j]: expected steps, once multiplied by the weights."""
    size, stride = contexts * width, 1 if contexts == 1 else width
    for i in range(contexts):
        for which in range(order % 2, 2):  # order 1 knows no first step apart
            first = 1 if which == 0 else order
            count = max(0, min(n, 2) - 1 if which == 0 else n - order)
            steps = at + (which * contexts + i) * k * width
            before, here = (first - 1) * size + i, first * size + i * width
            _outer(sums, steps, q, before, stride, v, here, size, count, k, width)


@njit(cache=True, nogil=True)
def factored_log(
    block, blocks, sr, nodes, offsets, k, order, contexts, tables, start, end, weights, transposed, shifts, safe,
    grad, sums, counts, values,
):  # fmt: skip
    """`factored_chains` in LOG, for the sentences block, block + blocks, …

    Parameters
    ----------
    sr : LOG
        For the sentences that need logarithms.
    weights, transposed : float64[2 * contexts * k * width]
        exp(tables − shifts) as [which, i, h, j], and as [which, i, j, h]; padding is 0.
    shifts : float64[2]
    safe : bool
        No weight but 0 is below `LEAST`.
    sums : float64[blocks * 2 * contexts * k * width]
        Laid out as `weights`, one for each block; times these, they are to be added to `counts`.
    grad, counts, values
        As in `factored_chains`.
    """
    width, longest = -(-k // 8) * 8, 0
    for s in range(block, len(values), blocks):
        longest = max(longest, offsets[s + 1] - offsets[s])
    size = contexts * width
    holes, x = aligned(width), np.full(width, -np.inf)
    for j in range(width):
        holes[j] = 0.0 if j < k else -np.inf
    b, q, v = aligned(longest * width), aligned(longest * size), aligned(longest * size)
    beta, back, now = aligned(size), aligned(size), aligned(size)
    beta[:] = 0.0
    for s in range(block, len(values), blocks):
        here, there = offsets[s], offsets[s + 1]
        n, value, fine = there - here, 0.0, False
        if safe and n > 0 and k > 0:
            value, fine = _nodes(nodes, here * k, n, k, width, start, end, holes, x, b)
            if fine and value > -np.inf:
                rest, fine = _forward(n, k, order, contexts, width, weights, shifts, b, q)
                value += rest
        if not fine:
            value = factored(
                sr, nodes[here * k : there * k], n, k, contexts, tables, start, end,
                grad[here * k : there * k], counts[block], nodes[:0],
            )  # fmt: skip
        elif value > -np.inf:
            _backward(n, k, order, contexts, width, transposed, b, q, v, beta, back, now, grad, here * k)
            _count(n, k, order, contexts, width, q, v, sums, block * 2 * contexts * k * width)
        values[s] = value
