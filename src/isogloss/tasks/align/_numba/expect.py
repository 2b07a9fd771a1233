r"""The E-step over many sentence pairs: scores from the pair table, inference, constraints, posteriors.

Both directions of a pair are worked on together. *Forward* is the target generated from the source: a chain over target
words whose states are source positions. Posteriors are written as whole numbers, in units of 1/65535: four bytes a cell
for both directions, and sums of them are exact whatever the order.

Symmetry [1]_ asks for the :math:`q` closest to both directional posteriors whose link marginals agree. Its dual is
minimised by steps :math:`\lambda_{ij} \mathrel{+}= \eta\,(\overrightarrow{q}_{ij} - \overleftarrow{q}_{ij})`, that is
by multiplying the emission of link (i, j) with :math:`w = e^{-\lambda_{ij}}` in one direction and dividing by it in the
other.

References
----------
.. [1] Graça, Ganchev and Taskar, CL 2010, section 3.4; the balanced dual of Ganchev et al., ACL 2008, section 3.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit, prange

from isogloss.structures._numba.jumps import (
    BUCKETS,
    backward_pass,
    first_weights,
    forward_pass,
    independent,
    jump_counts,
    jump_norms,
    log_likelihood,
    padded,
    viterbi,
)
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

__all__ = ["MODELS", "MODES", "UNIT", "Pairs", "Parameters", "best_paths", "expect"]

MODELS = {"model1": 1, "model2": 2, "hmm": 3}
MODES = {"none": 0, "agreement": 1, "bijective": 2, "symmetric": 3}
_MODEL2, _HMM = MODELS["model2"], MODELS["hmm"]
_AGREEMENT, _BIJECTIVE, _SYMMETRIC = MODES["agreement"], MODES["bijective"], MODES["symmetric"]
UNIT = 65535  # the whole number that stands for probability 1
_BLOCKS = 64  # pieces of work handed to threads; fixed, so that sums do not depend on how many threads there are
_TINY = np.float32(1e-9)
_KERNEL = {"cache": True, "nogil": True, "error_model": "numpy"}

# A text as arrays: word numbers (-1: unknown), where sentences start, and the table entry of every cell (-1: none).
Pairs = namedtuple("Pairs", "source_ids source_offsets target_ids target_offsets cell_offsets cells")

# All that the E-step reads. `weights[entry]`: pseudo-counts of the pair, forward and backward, whose row sums are
# `source_mass` and `target_mass`; `floor` stands for a pair without entry. `*_null`: pseudo-counts of null by type, and
# `null_mass` their sums. The last element of what is listed by type is for unknown words. `jumps`, `first`, `diagonal`:
# distortion, a row a direction. `own_*`: how much of the stem prior of a word is owed to each occurrence of its pair.
Parameters = namedtuple(
    "Parameters",
    "weights source_mass target_mass source_null target_null null_mass jumps first diagonal p0 floor "
    "own_source own_target share_source share_target",
)


@njit(**_KERNEL)
def _gather(pairs, p, s, leave_out, posterior, nulls, scratch):
    """Emissions of both directions into scratch, rows scaled to a maximum of 1; returns the logs of the scales.

    With `leave_out` 1, what this pair itself put into the table in the last E-step is taken out again, so that rare
    words are judged by other sentences (as a collapsed sampler does); 0 keeps it.
    """
    forward, backward, target_null, source_null = scratch[0], scratch[1], scratch[2], scratch[3]
    source = pairs.source_ids[pairs.source_offsets[s] : pairs.source_offsets[s + 1]]
    target = pairs.target_ids[pairs.target_offsets[s] : pairs.target_offsets[s + 1]]
    n, m = source.size, target.size
    wide, high = padded(m), padded(n)
    base = pairs.cell_offsets[s]
    unit = leave_out / np.float32(UNIT)
    one = np.float32(1.0)
    own_f, share_f = np.empty(m, np.float32), np.empty(m, np.float32)
    used = np.zeros(m, np.float32)
    for j in range(m):
        own_f[j], share_f[j] = p.own_target[target[j]], p.share_target[target[j]]
    for i in range(n):
        e = source[i]
        own = np.float32(0.0)
        own_e, share_e = p.own_source[e], p.share_source[e]
        for j in range(m):
            entry = pairs.cells[base + i * m + j]
            a = b = p.floor
            if entry >= 0:
                a, b = p.weights[entry, 0], p.weights[entry, 1]
            forward[j * high + i] = a
            backward[i * wide + j] = b
        if leave_out > 0:
            for j in range(m):
                qa, qb = posterior[base + i * m + j, 0] * unit, posterior[base + i * m + j, 1] * unit
                a, b = forward[j * high + i], backward[i * wide + j]
                forward[j * high + i] = max(p.floor, a - qa * (one + own_e * share_f[j]))
                backward[i * wide + j] = max(p.floor, b - qb * (one + own_f[j] * share_e))
                own += qa
                used[j] += qb
        inverse = one / max(_TINY, p.source_mass[e] - own)
        for j in range(m):
            forward[j * high + i] *= inverse
    logs_f = logs_b = 0.0
    for j in range(m):
        inverse = np.float32(1.0) / max(_TINY, p.target_mass[target[j]] - used[j])
        own = nulls[1][pairs.target_offsets[s] + j] * unit if leave_out > 0 else np.float32(0.0)
        target_null[j] = max(_TINY, p.target_null[target[j]] - own) / (p.null_mass[1] - own)
        top = target_null[j]
        for i in range(n):
            backward[i * wide + j] *= inverse
            top = max(top, forward[j * high + i])
        logs_f += np.log(np.float64(top))
        scale = np.float32(1.0) / top
        target_null[j] *= scale
        for i in range(n):
            forward[j * high + i] *= scale
        for i in range(n, high):
            forward[j * high + i] = 0.0
    for i in range(n):
        own = nulls[0][pairs.source_offsets[s] + i] * unit if leave_out > 0 else np.float32(0.0)
        source_null[i] = max(_TINY, p.source_null[source[i]] - own) / (p.null_mass[0] - own)
        top = source_null[i]
        for j in range(m):
            top = max(top, backward[i * wide + j])
        logs_b += np.log(np.float64(top))
        scale = np.float32(1.0) / top
        source_null[i] *= scale
        for j in range(m):
            backward[i * wide + j] *= scale
        for j in range(m, wide):
            backward[i * wide + j] = 0.0
    return logs_f, logs_b


@njit(**_KERNEL)
def _diagonal_prior(weights, n, m, stride, prior):
    """Model 2: prior[t, j] by bucket of j - floor(t m / n), normalised."""
    middle = (weights.size - 2) // 2
    for t in range(n):
        centre = (t + 1) * m // n - 1
        norm = 0.0
        for j in range(m):
            d = j - centre + middle
            x = weights[d] if 0 <= d < weights.size - 1 else weights[weights.size - 1]
            prior[t * stride + j] = x
            norm += x
        for j in range(m):
            prior[t * stride + j] /= norm
        for j in range(m, stride):
            prior[t * stride + j] = 0.0


@njit(**_KERNEL)
def _uniform_prior(n, m, stride, prior):
    """Model 1: every position alike."""
    for t in range(n):
        prior[t * stride : t * stride + m] = np.float32(1.0 / m)
        prior[t * stride + m : (t + 1) * stride] = 0.0


@njit(**_KERNEL)
def _diagonal_counts(weights, n, m, stride, posterior, counts):
    """Expected offsets and their divisors, for the same exact M-step as the jumps have."""
    middle = (weights.size - 2) // 2
    last = weights.size - 1
    for t in range(n):
        centre = (t + 1) * m // n - 1
        norm = placed = 0.0
        for j in range(m):
            d = j - centre + middle
            norm += weights[d] if 0 <= d < last else weights[last]
            placed += posterior[t * stride + j]
        for j in range(m):
            d = j - centre + middle
            bucket = d if 0 <= d < last else last
            counts[0, bucket] += posterior[t * stride + j]
            counts[1, bucket] += placed / norm


@njit(**_KERNEL)
def _infer(model, emission, null, n, m, p0, jumps, inverse, first, prior, work, posterior):
    """Link posteriors of one direction; returns log p of the generated words (under the scaled emissions)."""
    stride = padded(m)
    if model != _HMM:
        return independent(emission, null, n, m, stride, prior, p0, posterior)
    mass, real, scale, row, beta = work
    z = forward_pass(emission, null, n, m, stride, jumps, inverse, first, p0, mass, real, scale, row)
    backward_pass(emission, null, n, m, stride, jumps, inverse, p0, z, real, scale, row, beta, posterior)
    return log_likelihood(z, scale, n)


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
def _symmetric_step(n, m, rate, forward, backward, qf, qb, tilt, turned, tilted_forward, tilted_backward):
    """One step on the dual: tilt both emissions towards each other; returns the squared distance before the step."""
    wide, high = padded(m), padded(n)
    for i in range(n):
        for j in range(m):
            turned[i * wide + j] = qf[j * high + i]
        for j in range(m, wide):
            turned[i * wide + j] = 0.0
    speed = splat(np.float32(rate))
    sums = splat(np.float32(0.0))
    for i in range(n):
        for j in range(i * wide, (i + 1) * wide, WIDTH):
            gap = subtract(load(qb, j), load(turned, j))
            sums = multiply_add(gap, gap, sums)
            w = multiply(load(tilt, j), _exponential(multiply(speed, gap)))
            store(tilt, j, w)
            store(tilted_backward, j, divide(load(backward, j), w))
    for j in range(m):
        for i in range(n):
            tilted_forward[j * high + i] = forward[j * high + i] * tilt[i * wide + j]
    return total(sums)


@njit(**_KERNEL)
def _bijective_step(n, m, stride, rate, emission, q, multiplier, tilted):
    """Projected gradient step for E[uses of each generating word] <= 1; returns the largest excess before the step."""
    worst = 0.0
    for j in range(m):
        uses = 0.0
        for t in range(n):
            uses += q[t * stride + j]
        excess = uses - 1.0
        if excess > 0.0 or multiplier[j] > 0.0:
            worst = max(worst, abs(excess))
        multiplier[j] = max(0.0, multiplier[j] + rate * excess)
        factor = np.float32(np.exp(-multiplier[j]))
        for t in range(n):
            tilted[t * stride + j] = emission[t * stride + j] * factor
    return worst


@njit(**_KERNEL)
def _one_pair(model, mode, pairs, p, s, steps, rate, tolerance, leave_out, learn, posterior, nulls, scratch, counts):
    """Constrained posteriors of pair s; returns (forward log p, backward log p, bound on the objective, residual)."""
    n = pairs.source_offsets[s + 1] - pairs.source_offsets[s]
    m = pairs.target_offsets[s + 1] - pairs.target_offsets[s]
    wide, high = padded(m), padded(n)
    (forward, backward, target_null, source_null, prior_f, prior_b, qf, qb, tilt, turned, tilted_f, tilted_b) = scratch[
        :12
    ]
    mass, real, scale, row, beta, inverse_n, inverse_m, first_n, first_m, leaving, entering, sums = scratch[12:]
    work = (mass, real, scale, row, beta)
    logs_f, logs_b = _gather(pairs, p, s, leave_out, posterior, nulls, (forward, backward, target_null, source_null))
    p0 = np.float32(p.p0)
    if model == _HMM:
        jump_norms(p.jumps[0], n, inverse_n)
        jump_norms(p.jumps[1], m, inverse_m)
        first_weights(p.first[0], n, first_n)
        first_weights(p.first[1], m, first_m)
    elif model == _MODEL2:
        _diagonal_prior(p.diagonal[0], m, n, high, prior_f)
        _diagonal_prior(p.diagonal[1], n, m, wide, prior_b)
    else:
        _uniform_prior(m, n, high, prior_f)
        _uniform_prior(n, m, wide, prior_b)
    lf = _infer(model, forward, target_null, m, n, p0, p.jumps[0], inverse_n, first_n, prior_f, work, qf)
    lb = _infer(model, backward, source_null, n, m, p0, p.jumps[1], inverse_m, first_m, prior_b, work, qb)
    bound, residual = lf + lb, 0.0
    ef, eb = forward, backward
    if mode == _SYMMETRIC and steps > 0:
        ef, eb = tilted_f, tilted_b
        tilt[: n * wide] = 1.0
        tilted_f[: m * high] = forward[: m * high]
        for _ in range(steps):
            residual = _symmetric_step(n, m, rate, forward, backward, qf, qb, tilt, turned, tilted_f, tilted_b)
            af = _infer(model, ef, target_null, m, n, p0, p.jumps[0], inverse_n, first_n, prior_f, work, qf)
            ab = _infer(model, eb, source_null, n, m, p0, p.jumps[1], inverse_m, first_m, prior_b, work, qb)
            bound = af + ab
            if residual < tolerance * tolerance:
                break
        residual = 0.0
        for i in range(n):
            for j in range(m):
                gap = qf[j * high + i] - qb[i * wide + j]
                residual += gap * gap
                bound -= np.log(np.float64(tilt[i * wide + j])) * gap
        residual = np.sqrt(residual)
    elif mode == _BIJECTIVE and steps > 0:
        ef, eb = tilted_f, tilted_b
        tilted_f[: m * high] = forward[: m * high]
        tilted_b[: n * wide] = backward[: n * wide]
        lambda_n, lambda_m = np.zeros(n), np.zeros(m)
        open_f = open_b = True
        for _ in range(steps):
            if open_f:
                open_f = _bijective_step(m, n, high, rate, forward, qf, lambda_n, tilted_f) > tolerance
                af = _infer(model, ef, target_null, m, n, p0, p.jumps[0], inverse_n, first_n, prior_f, work, qf)
            if open_b:
                open_b = _bijective_step(n, m, wide, rate, backward, qb, lambda_m, tilted_b) > tolerance
                ab = _infer(model, eb, source_null, n, m, p0, p.jumps[1], inverse_m, first_m, prior_b, work, qb)
            if not (open_f or open_b):
                break
        bound = af + ab
        for i in range(n):
            uses = 0.0
            for j in range(m):
                uses += qf[j * high + i]
            bound += lambda_n[i] * uses
            residual = max(residual, uses - 1.0)
        for j in range(m):
            uses = 0.0
            for i in range(n):
                uses += qb[i * wide + j]
            bound += lambda_m[j] * uses
            residual = max(residual, uses - 1.0)
    if learn and model == _HMM:
        z = forward_pass(ef, target_null, m, n, high, p.jumps[0], inverse_n, first_n, p0, mass, real, scale, row)
        jump_counts(
            ef, target_null, m, n, high, p.jumps[0], inverse_n, p.first[0], first_n, p0, z, mass, scale, row, beta,
            leaving, entering, sums, counts[0],
        )  # fmt: skip
        z = forward_pass(eb, source_null, n, m, wide, p.jumps[1], inverse_m, first_m, p0, mass, real, scale, row)
        jump_counts(
            eb, source_null, n, m, wide, p.jumps[1], inverse_m, p.first[1], first_m, p0, z, mass, scale, row, beta,
            leaving, entering, sums, counts[1],
        )  # fmt: skip
    elif learn and model == _MODEL2:
        _diagonal_counts(p.diagonal[0], m, n, high, qf, counts[0])
        _diagonal_counts(p.diagonal[1], n, m, wide, qb, counts[1])
    _write(mode, pairs, s, n, m, qf, qb, posterior, nulls)
    return lf + logs_f, lb + logs_b, bound + logs_f + logs_b, residual


@njit(**_KERNEL)
def _write(mode, pairs, s, n, m, qf, qb, posterior, nulls):
    """Posteriors and null posteriors of pair s, as whole numbers."""
    wide, high = padded(m), padded(n)
    base = pairs.cell_offsets[s]
    for j in range(m):
        linked = 0.0
        for i in range(n):
            linked += qf[j * high + i]
        nulls[1][pairs.target_offsets[s] + j] = np.uint16(max(0.0, 1.0 - linked) * UNIT + 0.5)
    for i in range(n):
        linked = 0.0
        for j in range(m):
            a, b = qf[j * high + i], qb[i * wide + j]
            linked += b
            if mode == _AGREEMENT:
                a = b = a * b
            cell = base + i * m + j
            posterior[cell, 0] = np.uint16(min(np.float32(1.0), a) * UNIT + np.float32(0.5))
            posterior[cell, 1] = np.uint16(min(np.float32(1.0), b) * UNIT + np.float32(0.5))
        nulls[0][pairs.source_offsets[s] + i] = np.uint16(max(0.0, 1.0 - linked) * UNIT + 0.5)


@njit(**_KERNEL)
def _scratch(n, m):
    """Work space for pairs of up to n source and m target words."""
    long = max(n, m)
    wide = padded(long)
    area = max(n * padded(m), m * padded(n))
    return (
        np.empty(area, np.float32),  # forward emissions
        np.empty(area, np.float32),  # backward emissions
        np.empty(long, np.float32),  # null emissions of target words
        np.empty(long, np.float32),  # null emissions of source words
        np.empty(area, np.float32),  # prior of Models 1 and 2, forward
        np.empty(area, np.float32),  # and backward
        np.empty(area, np.float32),  # forward posterior
        np.empty(area, np.float32),  # backward posterior
        np.empty(area, np.float32),  # tilt
        np.empty(area, np.float32),  # forward posterior, turned
        np.empty(area, np.float32),  # tilted forward emissions
        np.empty(area, np.float32),  # tilted backward emissions
        np.empty(area, np.float32),  # mass
        np.empty(area, np.float32),  # real
        np.empty(2 * long + 2, np.float32),  # scale
        np.zeros(wide + 2 * WIDTH, np.float32),  # row
        np.empty(wide, np.float32),  # beta
        np.empty(wide, np.float32),  # norms of source positions
        np.empty(wide, np.float32),  # norms of target positions
        np.empty(wide, np.float32),  # first word, source positions
        np.empty(wide, np.float32),  # first word, target positions
        np.empty(wide, np.float32),  # leaving
        np.empty(wide, np.float32),  # entering
        np.empty(BUCKETS * WIDTH, np.float32),  # sums by jump
    )


@njit(**_KERNEL, parallel=True)
def expect(
    model, mode, pairs, p, start, stop, limit, steps, rate, tolerance, leave_out, learn, posterior, nulls, scores
):
    """E-step over pairs start..stop-1, on threads.

    Pairs with an empty side, or a side of more than `limit` words, are passed over (their posteriors stay as they are).
    Fills `posterior` uint16[n_cells, 2], `nulls` (source, target) and scores[pair] = (forward, backward log p). Returns
    the distortion counts of both directions [2, 4, BUCKETS], and the sums of bounds, of residuals and of pairs.
    """
    counts = np.zeros((_BLOCKS, 2, 4, BUCKETS))
    sums = np.zeros((_BLOCKS, 3))
    for block in prange(_BLOCKS):
        n = m = 1
        for s in range(start + block, stop, _BLOCKS):
            a = pairs.source_offsets[s + 1] - pairs.source_offsets[s]
            b = pairs.target_offsets[s + 1] - pairs.target_offsets[s]
            if a <= limit and b <= limit:
                n, m = max(n, a), max(m, b)
        scratch = _scratch(n, m)
        for s in range(start + block, stop, _BLOCKS):
            a = pairs.source_offsets[s + 1] - pairs.source_offsets[s]
            b = pairs.target_offsets[s + 1] - pairs.target_offsets[s]
            if a == 0 or b == 0 or a > limit or b > limit:
                continue
            lf, lb, bound, residual = _one_pair(
                model, mode, pairs, p, s, steps, rate, tolerance, leave_out, learn, posterior, nulls, scratch,
                counts[block],
            )  # fmt: skip
            scores[s, 0], scores[s, 1] = lf, lb
            sums[block, 0] += bound
            sums[block, 1] += residual
            sums[block, 2] += 1
    return counts.sum(axis=0), sums.sum(axis=0)


@njit(**_KERNEL)
def _best_choices(emission, null, n, m, prior, p0, path):
    """Models 1 and 2: the best position of every word on its own, -1 for null."""
    stride = padded(m)
    for t in range(n):
        top = p0 * null[t]
        path[t] = -1
        for j in range(m):
            value = (1.0 - p0) * prior[t * stride + j] * emission[t * stride + j]
            if value > top:
                top = value
                path[t] = j


@njit(**_KERNEL, parallel=True)
def best_paths(model, pairs, p, start, stop, limit, forward, backward):
    """Viterbi of both directions: forward[target token] is a source position or -1, backward[source token] likewise."""
    for block in prange(_BLOCKS):
        for s in range(start + block, stop, _BLOCKS):
            n = pairs.source_offsets[s + 1] - pairs.source_offsets[s]
            m = pairs.target_offsets[s + 1] - pairs.target_offsets[s]
            if n == 0 or m == 0 or n > limit or m > limit:
                continue
            scratch = _scratch(n, m)
            none = np.empty(0, np.uint16)
            four = (scratch[0], scratch[1], scratch[2], scratch[3])
            _gather(pairs, p, s, np.float32(0.0), none.reshape(0, 2), (none, none), four)
            ahead = forward[pairs.target_offsets[s] : pairs.target_offsets[s + 1]]
            back = backward[pairs.source_offsets[s] : pairs.source_offsets[s + 1]]
            if model != _HMM:
                _diagonal_prior(p.diagonal[0], m, n, padded(n), scratch[4])
                _best_choices(scratch[0], scratch[2], m, n, scratch[4], p.p0, ahead)
                _diagonal_prior(p.diagonal[1], n, m, padded(m), scratch[5])
                _best_choices(scratch[1], scratch[3], n, m, scratch[5], p.p0, back)
                continue
            inverse, first = np.empty(padded(max(n, m)), np.float32), np.empty(padded(max(n, m)), np.float32)
            jump_norms(p.jumps[0], n, inverse)
            first_weights(p.first[0], n, first)
            viterbi(scratch[0], scratch[2], m, n, padded(n), p.jumps[0], inverse, first, p.p0, ahead)
            jump_norms(p.jumps[1], m, inverse)
            first_weights(p.first[1], m, first)
            viterbi(scratch[1], scratch[3], n, m, padded(m), p.jumps[1], inverse, first, p.p0, back)
