r"""The E-step over many sentence pairs: scores from the pair table, inference, constraints, posteriors.

Both directions of a pair are worked on together. *Forward* is the target generated from the source: a chain over target
words whose states are source positions. Posteriors are written as whole numbers, in units of 1/65535: four bytes a cell
for both directions, and sums of them are exact whatever the order. What an E-step keeps for the next one, where own
evidence is left out, are the cells that are not 0 alone: for each pair a run of (gap, forward, backward), where the gap
is how far the cell lies behind the one before (`keep_cells`).

Under symmetry and bijectivity posteriors are projected: the emissions are tilted by multipliers that `dual` looks for.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from isogloss.engine.threads import run_blocks
from isogloss.structures._numba.jumps import (
    BUCKETS,
    ROWS,
    backward_pass,
    first_weights,
    forward_pass,
    independent,
    jump_counts,
    jump_norms,
    last_weights,
    log_likelihood,
    padded,
    viterbi,
)
from isogloss.structures._numba.lanes import WIDTH, largest, load, maximum, multiply, prefetch, splat, store
from isogloss.tasks.align._numba.dual import (
    MEMORY,
    MODES,
    RECENT,
    aim,
    along,
    bijective_step,
    bound_of,
    multipliers,
    remember,
    shift,
    slopes,
    symmetric_step,
    tilt,
    turn,
)

__all__ = [
    "MODELS",
    "MODES",
    "UNIT",
    "Pairs",
    "Parameters",
    "best_paths",
    "expect",
    "keep_cells",
    "no_evidence",
    "spread_cells",
]

MODELS = {"model1": 1, "model2": 2, "hmm": 3}
_MODEL2, _HMM = MODELS["model2"], MODELS["hmm"]
_AGREEMENT, _BIJECTIVE, _SYMMETRIC = MODES["agreement"], MODES["bijective"], MODES["symmetric"]
UNIT = 65535  # the whole number that stands for probability 1
_FAR = 65535  # the longest gap between cells that are kept
_TINY = np.float32(1e-9)
_SHORTEST, _LONGEST = 1e-2, 1e2  # steps of the adaptive search
_PAST = 0.9  # of the slope at its begin, how much a step may rise again at its end
_KERNEL = {"cache": True, "nogil": True, "error_model": "numpy"}

# A text as arrays: word numbers (-1: unknown), where sentences start, and the table entry of every cell (-1: none;
# -2 - g: none, but its words belong to the pair of classes g).
Pairs = namedtuple("Pairs", "source_ids source_offsets target_ids target_offsets cell_offsets cells")

# All that the E-step reads. `weights[entry]`: pseudo-counts of the pair, forward and backward, whose row sums are
# `source_mass` and `target_mass`; `floor` stands for a pair without entry. `*_null`: pseudo-counts of null by type, and
# `null_mass` their sums. The last element of what is listed by type is for unknown words. `jumps`, `first`, `last`,
# `diagonal`: distortion, a row a direction. `p0`: the probability of null; 0 is 1 / (m + 1) where m words can be linked
# to. `own_*`: how much of the stem prior of a word is owed to each occurrence of its pair; a row for each way to
# cut words to stems, as in `share_*`, which say how much of its stem a word is. `pull[g]`: the stem prior of a pair of
# classes, of which a word has its share by the first way, for cells without entry.
Parameters = namedtuple(
    "Parameters",
    "weights source_mass target_mass source_null target_null null_mass jumps first last diagonal p0 floor "
    "own_source own_target share_source share_target pull",
)


# Work space of a thread. Pairs of arrays are for the forward and the backward direction. `search`: multipliers of a
# projection; with an adaptive search, also the way that it goes, slopes, and steps before, in further rows.
Space = namedtuple(
    "Space",
    "emission null prior q tilted inverse first last search tilt turned mass real scale row beta "
    "leaving entering sums logp",
)


@njit(**_KERNEL)
def _gather(pairs, p, s, leave_out, starts, kept, nulls, space):
    """Emissions of both directions, rows scaled to a maximum of 1; returns the logs of the scales.

    With `leave_out` 1, what this pair itself put into the table in the last E-step is taken out again, so that rare
    words are judged by other sentences (as a collapsed sampler does); 0 keeps it. All work is on rows of target words,
    by source word; the forward emissions are turned at the end.
    """
    source = pairs.source_ids[pairs.source_offsets[s] : pairs.source_offsets[s + 1]]
    target = pairs.target_ids[pairs.target_offsets[s] : pairs.target_offsets[s + 1]]
    n, m = source.size, target.size
    wide = padded(m)
    one, unit = np.float32(1.0), leave_out / np.float32(UNIT)
    ahead, back = space.turned, space.emission[1]
    used, top, share = space.first[0], space.first[1], space.inverse[0]  # scratch; filled for good later
    for j in range(0, wide, WIDTH):
        store(top, j, splat(np.float32(0.0)))
        store(used, j, splat(np.float32(0.0)))
    for j in range(m):
        share[j] = p.share_target[0, target[j]]
    at = last = np.int64(0)
    if leave_out > 0:
        at, last = starts[s], starts[s + 1]
    cell = np.int64(kept[at, 0]) if at < last else np.int64(0)
    for i in range(n):
        row = i * wide
        first = pairs.cell_offsets[s] + i * m
        own, share_e = np.float32(0.0), p.share_source[0, source[i]]
        _gather_row(pairs.cells, first, p.weights, p.floor, m, ahead, back, row)
        if p.pull.size > 0:
            _gather_strays(pairs.cells, first, p.pull, share, share_e, m, ahead, back, row)
        while at < last and cell < (i + 1) * m:
            j = cell - i * m
            qa, qb = np.float32(kept[at, 1]) * unit, np.float32(kept[at, 2]) * unit
            counted = one if pairs.cells[first + j] >= 0 else np.float32(0.0)
            owed_a = owed_b = counted
            for k in range(p.own_source.shape[0] if counted > 0 else 1):
                owed_a += p.own_source[k, source[i]] * p.share_target[k, target[j]]
                owed_b += p.own_target[k, target[j]] * p.share_source[k, source[i]]
            ahead[row + j] = max(p.floor, ahead[row + j] - qa * owed_a)
            back[row + j] = max(p.floor, back[row + j] - qb * owed_b)
            own += qa
            used[j] += qb
            at += 1
            if at < last:
                cell += np.int64(kept[at, 0])
        inverse = splat(one / max(_TINY, p.source_mass[source[i]] - own))
        for j in range(0, wide, WIDTH):
            x = multiply(inverse, load(ahead, row + j))
            store(ahead, row + j, x)
            store(top, j, maximum(load(top, j), x))
    logs_f = _scale_columns(p, pairs.target_offsets[s], target, leave_out, unit, nulls[1], space)
    logs_b = _scale_rows(p, pairs.source_offsets[s], source, m, leave_out, unit, nulls[0], space)
    high = padded(n)
    for j in range(m):
        for i in range(n):
            space.emission[0][j * high + i] = ahead[i * wide + j]
        for i in range(n, high):
            space.emission[0][j * high + i] = 0.0
    return logs_f, logs_b


@njit(**_KERNEL)
def _gather_row(cells, first, weights, floor, m, ahead, back, row):
    """Weights of the cells of one source word, while those of the next are fetched; zero in the padding."""
    for cell in range(first + m, min(first + 2 * m, cells.size)):
        prefetch(weights, 2 * max(np.int64(0), np.int64(cells[cell])))
    for j in range(m):
        entry = cells[first + j]
        if entry >= 0:
            ahead[row + j], back[row + j] = weights[entry, 0], weights[entry, 1]
        else:
            ahead[row + j] = back[row + j] = floor
    for j in range(m, padded(m)):
        ahead[row + j] = back[row + j] = 0.0


@njit(**_KERNEL)
def _gather_strays(cells, first, pull, share, share_e, m, ahead, back, row):
    """Cells without entry have the prior of the classes of their words."""
    for j in range(m):
        entry = cells[first + j]
        if entry < -1:
            ahead[row + j] += pull[-2 - entry, 0] * share[j]
            back[row + j] += pull[-2 - entry, 1] * share_e


@njit(**_KERNEL)
def _scale_columns(p, start, target, leave_out, unit, nulls, space):
    """Null emissions and scales of target words: 1 / mass for the backward emissions, 1 / maximum for the forward."""
    one, logs = np.float32(1.0), 0.0
    used, top, null = space.first[0], space.first[1], space.null[0]
    for j in range(target.size):
        own = np.float32(nulls[start + j]) * unit if leave_out > 0 else np.float32(0.0)
        null[j] = max(_TINY, p.target_null[target[j]] - own) / max(_TINY, p.null_mass[1] - own)
        high = max(null[j], top[j])
        logs += np.log(np.float64(high))
        top[j] = one / high
        null[j] *= top[j]
        used[j] = one / max(_TINY, p.target_mass[target[j]] - used[j])
    return logs


@njit(**_KERNEL)
def _scale_rows(p, start, source, m, leave_out, unit, nulls, space):
    """Null emissions of source words; both emissions scaled, row by row."""
    one, logs, wide = np.float32(1.0), 0.0, padded(m)
    used, top, null = space.first[0], space.first[1], space.null[1]
    ahead, back = space.turned, space.emission[1]
    for i in range(source.size):
        high = splat(np.float32(0.0))
        for j in range(0, wide, WIDTH):
            store(ahead, i * wide + j, multiply(load(ahead, i * wide + j), load(top, j)))
            x = multiply(load(back, i * wide + j), load(used, j))
            store(back, i * wide + j, x)
            high = maximum(high, x)
        own = np.float32(nulls[start + i]) * unit if leave_out > 0 else np.float32(0.0)
        null[i] = max(_TINY, p.source_null[source[i]] - own) / max(_TINY, p.null_mass[0] - own)
        greatest = max(null[i], largest(high))
        logs += np.log(np.float64(greatest))
        scale = one / greatest
        null[i] *= scale
        lanes = splat(scale)
        for j in range(0, wide, WIDTH):
            store(back, i * wide + j, multiply(lanes, load(back, i * wide + j)))
    return logs


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
def _uniform_prior(m, prior):
    """Model 1: every position alike, in one row that all words share."""
    for j in range(padded(m)):
        prior[j] = np.float32(1.0 / m) if j < m else np.float32(0.0)


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
def _infer(model, emission, null, n, m, p0, jumps, inverse, first, last, prior, work, posterior):
    """Link posteriors of one direction; returns log p of the generated words (under the scaled emissions)."""
    stride = padded(m)
    if model != _HMM:
        return independent(emission, null, n, m, stride, prior, stride if model == _MODEL2 else 0, p0, posterior)
    mass, real, scale, row, beta = work
    z = forward_pass(emission, null, n, m, stride, jumps, inverse, first, last, p0, mass, real, scale, row)
    backward_pass(emission, null, n, m, stride, jumps, inverse, last, p0, z, real, scale, row, beta, posterior)
    return log_likelihood(z, scale, n)


@njit(**_KERNEL, inline="always")  # a call hands all arrays of the space over, which takes longer than a short pair
def _infer_both(model, emission, n, m, p, p0, space):
    """Link posteriors of both directions; returns the sum of log p."""
    work = (space.mass, space.real, space.scale, space.row, space.beta)
    for d in range(2):
        space.logp[d] = _infer(
            model, emission[d], space.null[d], n[d], m[d], p0[d], p.jumps[d], space.inverse[d], space.first[d],
            space.last[d], space.prior[d], work, space.q[d],
        )  # fmt: skip
    return space.logp[0] + space.logp[1]


@njit(**_KERNEL)
def _null_weights(p0, m):
    """The probability of null in both directions."""
    return (p0, p0) if p0 > 0.0 else (1.0 / (m[0] + 1), 1.0 / (m[1] + 1))


@njit(**_KERNEL)
def _descend(model, mode, n, m, p, p0, steps, rate, tolerance, space):
    """The adaptive search of `dual`, of at most so many inferences; returns log p of the last."""
    size = multipliers(mode, m)
    multiplier, way, slope, before = (
        space.search[0, :size], space.search[1, :size], space.search[2, :size], space.search[3, :size],
    )  # fmt: skip
    steps_gone, changes = space.search[4 : 4 + MEMORY, :size], space.search[4 + MEMORY :, :size]
    products, recent = np.empty(MEMORY), np.full(RECENT, -np.inf)
    multiplier[:] = 0.0
    value = recent[0] = space.logp[0] + space.logp[1]
    apart = slopes(mode, n, m, multiplier, slope, space.q)
    length, used, accepted, known = rate, 0, 1, 0
    while apart >= tolerance and used < steps:
        if known > 0:
            down, squared = turn(known, multiplier, slope, way, steps_gone, changes, products)
        if known == 0 or down >= 0.0:
            known = 0
            down, squared = aim(mode, length, multiplier, slope, way)
        if down >= 0.0:
            break
        before[:] = slope
        part, top = 1.0, recent.max() if mode == _BIJECTIVE else recent[(accepted - 1) % RECENT]
        shift(part, multiplier, way)
        while True:
            linear = tilt(mode, n, m, multiplier, space.emission, space.tilt, space.tilted)
            value = _infer_both(model, space.tilted, n, m, p, p0, space)
            used += 1
            apart = slopes(mode, n, m, multiplier, slope, space.q)
            ahead = along(way, slope)
            noise = 1e-6 * (1.0 + abs(value))
            is_low = value + linear <= top + 1e-4 * part * down + noise
            if (is_low and ahead <= -_PAST * down) or apart < tolerance or used == steps or part < 1e-3:
                break
            shorter = part * min(0.5, max(0.1, down / (down - ahead)))
            shift(shorter - part, multiplier, way)
            part = shorter
        recent[accepted % RECENT] = value + linear
        accepted += 1
        length = min(_LONGEST, max(_SHORTEST, part * squared / max(1e-12, ahead - down)))
        if mode == _SYMMETRIC:
            known = remember(known, part, way, slope, before, steps_gone, changes, products)
    return value


@njit(**_KERNEL)
def _one_pair(
    model, mode, pairs, p, s, steps, rate, tolerance, adaptive, leave_out, learn, least, starts, kept, nulls, posterior,
    new_nulls, space, counts,
):  # fmt: skip
    """Constrained posteriors of pair s; returns (forward log p, backward log p, bound on the objective, violation)."""
    a = pairs.source_offsets[s + 1] - pairs.source_offsets[s]
    b = pairs.target_offsets[s + 1] - pairs.target_offsets[s]
    n, m = (b, a), (a, b)  # generated words and the positions they choose from, forward and backward
    weights = _null_weights(p.p0, m)
    p0 = (np.float32(weights[0]), np.float32(weights[1]))
    work = (space.mass, space.real, space.scale, space.row, space.beta)
    logs = _gather(pairs, p, s, leave_out, starts, kept, nulls, space)
    for d in range(2):
        if model == _HMM:
            jump_norms(p.jumps[d], m[d], space.inverse[d])
            first_weights(p.first[d], m[d], space.first[d])
            last_weights(p.last[d], m[d], space.last[d])
        elif model == _MODEL2:
            _diagonal_prior(p.diagonal[d], n[d], m[d], padded(m[d]), space.prior[d])
        else:
            _uniform_prior(m[d], space.prior[d])
    budget = steps if mode in (_SYMMETRIC, _BIJECTIVE) else 0
    tilted = space.tilted if budget > 0 else space.emission
    if budget > 0:
        _copy(space.emission[0], space.tilted[0], b * padded(a))
        _copy(space.emission[1], space.tilted[1], a * padded(b))
        _fill(space.tilt, a * padded(b), np.float32(1.0))
        space.search[0, : padded(a) + padded(b)] = 0.0
    plain, value = (0.0, 0.0), 0.0
    done = False
    at_once = learn and budget == 0 and model == _HMM
    fixed = 0 if adaptive else budget
    for step in range(fixed + 1):
        for d in range(2):
            if at_once:
                space.logp[d] = _infer_and_learn(d, tilted[d], n[d], m[d], p, p0[d], space, counts[d])
                continue
            space.logp[d] = _infer(
                model, tilted[d], space.null[d], n[d], m[d], p0[d], p.jumps[d], space.inverse[d], space.first[d],
                space.last[d], space.prior[d], work, space.q[d],
            )  # fmt: skip
        value = space.logp[0] + space.logp[1]
        if step == 0:
            plain = (space.logp[0], space.logp[1])
        if done or step == fixed:
            break
        if mode == _SYMMETRIC:
            done = symmetric_step(a, b, rate, space) < tolerance * tolerance
        else:
            done = bijective_step(n, m, rate, space) < tolerance
    if adaptive and budget > 0:
        value = _descend(model, mode, n, m, p, p0, budget, rate, tolerance, space)
    bound, violation = bound_of(mode, budget, a, b, value, space)
    if learn and not at_once:
        _learn(model, tilted, n, m, p, p0, space, counts)
    _write(mode, pairs, s, a, b, space.q[0], space.q[1], least, posterior, new_nulls)
    return plain[0] + logs[0], plain[1] + logs[1], bound + logs[0] + logs[1], violation


@njit(**_KERNEL)
def _copy(source, target, size):
    for k in range(size):
        target[k] = source[k]


@njit(**_KERNEL)
def _fill(target, size, value):
    for k in range(size):
        target[k] = value


@njit(**_KERNEL)
def _infer_and_learn(d, emission, n, m, p, p0, space, counts):
    """Posteriors of one direction of the HMM, and its distortion counts; returns log p as `_infer` does."""
    stride = padded(m)
    z = forward_pass(
        emission, space.null[d], n, m, stride, p.jumps[d], space.inverse[d], space.first[d], space.last[d], p0,
        space.mass, space.real, space.scale, space.row,
    )  # fmt: skip
    jump_counts(
        emission, space.null[d], n, m, stride, p.jumps[d], space.inverse[d], p.first[d], space.first[d], p.last[d],
        space.last[d], p0, z, space.mass, space.real, space.scale, space.row, space.beta, space.leaving,
        space.entering, space.sums, space.q[d], counts,
    )  # fmt: skip
    return log_likelihood(z, space.scale, n)


@njit(**_KERNEL)
def _learn(model, emission, n, m, p, p0, space, counts):
    """Distortion counts of both directions."""
    for d in range(2):
        if model == _HMM:
            _infer_and_learn(d, emission[d], n[d], m[d], p, p0[d], space, counts[d])
        elif model == _MODEL2:
            _diagonal_counts(p.diagonal[d], n[d], m[d], padded(m[d]), space.q[d], counts[d])


@njit(**_KERNEL)
def _write(mode, pairs, s, n, m, qf, qb, least, posterior, nulls):
    """Posteriors and null posteriors of pair s, as whole numbers; 0 for a cell below `least` in both directions."""
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
            forward = np.uint16(min(np.float32(1.0), a) * UNIT + np.float32(0.5))
            backward = np.uint16(min(np.float32(1.0), b) * UNIT + np.float32(0.5))
            if forward < least and backward < least:
                forward = backward = np.uint16(0)
            posterior[cell, 0], posterior[cell, 1] = forward, backward
        nulls[0][pairs.source_offsets[s] + i] = np.uint16(max(0.0, 1.0 - linked) * UNIT + 0.5)


@njit(**_KERNEL)
def _space(n, m, adaptive):
    """Work space for pairs of up to n source and m target words, perhaps with room for an adaptive search."""
    long = max(n, m)
    wide = padded(long)
    area = max(n * padded(m), m * padded(n))
    searched = max(area, 2 * wide) if adaptive else 2 * wide
    return Space(
        (np.empty(area, np.float32), np.empty(area, np.float32)),
        (np.empty(long, np.float32), np.empty(long, np.float32)),
        (np.empty(area, np.float32), np.empty(area, np.float32)),
        (np.empty(area, np.float32), np.empty(area, np.float32)),
        (np.empty(area, np.float32), np.empty(area, np.float32)),
        (np.empty(wide, np.float32), np.empty(wide, np.float32)),
        (np.empty(wide, np.float32), np.empty(wide, np.float32)),
        (np.empty(wide, np.float32), np.empty(wide, np.float32)),
        np.empty((4 + 2 * MEMORY if adaptive else 1, searched), np.float32),
        np.empty(area, np.float32),
        np.empty(area, np.float32),
        np.empty(area, np.float32),
        np.empty(area, np.float32),
        np.empty(2 * long + 2, np.float32),
        np.zeros(wide + 2 * WIDTH, np.float32),
        np.empty(wide, np.float32),
        np.empty(wide, np.float32),
        np.empty(wide, np.float32),
        np.empty(BUCKETS * WIDTH, np.float32),
        np.empty(2),
    )


@njit(**_KERNEL)
def _fixed(value):
    """To the nearest 2⁻²⁰: sums of such numbers are exact up to 2³³, so that no order of pairs or shards matters."""
    return np.rint(value * 1048576.0) / 1048576.0


@njit(**_KERNEL)
def _work(
    block, count, model, mode, pairs, p, start, stop, limit, steps, rate, tolerance, adaptive, leave_out, learn, least,
    starts, kept, nulls, posterior, new_nulls, scores, counts, sums,
):  # fmt: skip
    """Every `count`-th pair from start + block on, in one work space."""
    n = m = 1
    for s in range(start + block, stop, count):
        a = pairs.source_offsets[s + 1] - pairs.source_offsets[s]
        b = pairs.target_offsets[s + 1] - pairs.target_offsets[s]
        if a <= limit and b <= limit:
            n, m = max(n, a), max(m, b)
    space = _space(n, m, adaptive)
    own = np.zeros((2, ROWS, BUCKETS))
    for s in range(start + block, stop, count):
        a = pairs.source_offsets[s + 1] - pairs.source_offsets[s]
        b = pairs.target_offsets[s + 1] - pairs.target_offsets[s]
        if a == 0 or b == 0 or a > limit or b > limit:
            posterior[pairs.cell_offsets[s] : pairs.cell_offsets[s + 1]] = 0
            continue
        own[:] = 0.0
        forward, backward, bound, violation = _one_pair(
            model, mode, pairs, p, s, steps, rate, tolerance, adaptive, leave_out, learn, least, starts, kept, nulls,
            posterior, new_nulls, space, own,
        )  # fmt: skip
        scores[s, 0], scores[s, 1] = forward, backward
        if learn:
            for d in range(2):
                for k in range(ROWS):
                    for bucket in range(BUCKETS):
                        counts[block, d, k, bucket] += _fixed(own[d, k, bucket])
        sums[block, 0] += _fixed(bound)
        sums[block, 1] += _fixed(violation)
        sums[block, 2] += 1


def _blocks_for(start, stop):
    """Pieces of work for the threads, by the number of pairs alone, so that sums do not depend on the threads."""
    return max(1, min(64, (stop - start) // 16))


def no_evidence(pairs):
    """What is left out where nothing is: no cells of any pair, and null posteriors of 0."""
    starts = np.zeros(len(pairs.cell_offsets), np.int64)
    nulls = np.zeros(len(pairs.source_ids), np.uint16), np.zeros(len(pairs.target_ids), np.uint16)
    return starts, np.zeros((0, 3), np.uint16), nulls


def expect(
    model, mode, pairs, p, start, stop, limit, steps, rate, tolerance, adaptive, leave_out, learn, before, posterior,
    nulls, scores, least=1,
):  # fmt: skip
    """E-step over pairs start..stop-1, on threads.

    `before` is what these pairs put into the table: (starts, kept) as `keep_cells` gives them and the null posteriors;
    `no_evidence` where nothing is left out. Pairs with an empty side, or a side of more than `limit` words, are passed
    over: their posteriors are 0. `steps`, `rate`, `tolerance` and `adaptive` are of the search for multipliers, see
    `dual`. Fills `posterior` uint16[n_cells, 2], where cells that are below `least` units in both directions are 0,
    `nulls` (source, target) and scores[pair] = (forward, backward log p). Returns the distortion counts of both
    directions [2, ROWS, BUCKETS], and the sums of bounds, of violations and of pairs.
    """
    count = _blocks_for(start, stop)
    counts, sums = np.zeros((count, 2, ROWS, BUCKETS)), np.zeros((count, 3))
    run_blocks(
        _work, count, model, mode, pairs, p, start, stop, limit, steps, float(rate), float(tolerance),
        bool(adaptive), np.float32(leave_out), bool(learn), np.uint16(least), *before, posterior, nulls, scores, counts,
        sums,
    )  # fmt: skip
    return counts.sum(axis=0), sums.sum(axis=0)


@njit(**_KERNEL)
def _count_kept(block, count, cell_offsets, both, sizes):
    for s in range(block, cell_offsets.size - 1, count):
        before, n = cell_offsets[s], 0
        for cell in range(cell_offsets[s], cell_offsets[s + 1]):
            if both[cell] != 0:
                n += 1 + (cell - before - 1) // _FAR if cell > before else 1
                before = cell
        sizes[s + 1] = n


@njit(**_KERNEL)
def _write_kept(block, count, cell_offsets, both, posterior, starts, kept):
    for s in range(block, cell_offsets.size - 1, count):
        before, at = cell_offsets[s], starts[s]
        for cell in range(cell_offsets[s], cell_offsets[s + 1]):
            if both[cell] != 0:
                while cell - before > _FAR:  # too far for a gap: steps of probability 0 on the way
                    kept[at, 0], kept[at, 1], kept[at, 2] = _FAR, 0, 0
                    before += _FAR
                    at += 1
                kept[at, 0] = cell - before
                kept[at, 1], kept[at, 2] = posterior[cell, 0], posterior[cell, 1]
                before = cell
                at += 1


def keep_cells(cell_offsets, posterior):
    """Cells of each pair that are not 0: starts int64[n_pairs + 1], kept uint16[., 3] = (gap, forward, backward)."""
    both = posterior.reshape(-1).view(np.uint32)  # 0 where both directions are
    count = _blocks_for(0, len(cell_offsets) - 1)
    starts = np.zeros(len(cell_offsets), np.int64)
    run_blocks(_count_kept, count, cell_offsets, both, starts)
    np.cumsum(starts, out=starts)
    kept = np.empty((starts[-1], 3), np.uint16)
    run_blocks(_write_kept, count, cell_offsets, both, posterior, starts, kept)
    return starts, kept


@njit(**_KERNEL)
def _spread_kept(block, count, cell_offsets, starts, kept, posterior):
    for s in range(block, cell_offsets.size - 1, count):
        for cell in range(cell_offsets[s], cell_offsets[s + 1]):
            posterior[cell, 0] = posterior[cell, 1] = 0
        cell = cell_offsets[s]
        for at in range(starts[s], starts[s + 1]):
            cell += np.int64(kept[at, 0])
            posterior[cell, 0], posterior[cell, 1] = kept[at, 1], kept[at, 2]


def spread_cells(cell_offsets, starts, kept, posterior):
    """What `keep_cells` was made of: fills posterior[n_cells, 2]."""
    count = _blocks_for(0, len(cell_offsets) - 1)
    run_blocks(_spread_kept, count, cell_offsets, starts, kept, posterior)


@njit(**_KERNEL)
def _best_choices(emission, null, n, m, prior, prior_stride, p0, path):
    """Models 1 and 2: the best position of every word on its own, -1 for null."""
    stride = padded(m)
    for t in range(n):
        top = p0 * null[t]
        path[t] = -1
        for j in range(m):
            value = (1.0 - p0) * prior[t * prior_stride + j] * emission[t * stride + j]
            if value > top:
                top = value
                path[t] = j


@njit(**_KERNEL)
def _best_paths(block, count, model, pairs, p, start, stop, limit, forward, backward):
    for s in range(start + block, stop, count):
        n = pairs.source_offsets[s + 1] - pairs.source_offsets[s]
        m = pairs.target_offsets[s + 1] - pairs.target_offsets[s]
        if n == 0 or m == 0 or n > limit or m > limit:
            continue
        space = _space(n, m, False)
        none = np.empty(0, np.uint16)
        _gather(pairs, p, s, np.float32(0.0), np.empty(0, np.int64), none.reshape(0, 3), (none, none), space)
        ahead = forward[pairs.target_offsets[s] : pairs.target_offsets[s + 1]]
        back = backward[pairs.source_offsets[s] : pairs.source_offsets[s + 1]]
        sizes, paths = (m, n), (ahead, back)
        p0 = _null_weights(p.p0, (n, m))
        for d in range(2):
            states = sizes[1 - d]
            if model == _HMM:
                jump_norms(p.jumps[d], states, space.inverse[d])
                first_weights(p.first[d], states, space.first[d])
                last_weights(p.last[d], states, space.last[d])
                viterbi(
                    space.emission[d], space.null[d], sizes[d], states, padded(states), p.jumps[d], space.inverse[d],
                    space.first[d], space.last[d], p0[d], paths[d],
                )  # fmt: skip
            else:
                if model == _MODEL2:
                    _diagonal_prior(p.diagonal[d], sizes[d], states, padded(states), space.prior[d])
                else:
                    _uniform_prior(states, space.prior[d])
                apart = padded(states) if model == _MODEL2 else 0
                _best_choices(
                    space.emission[d], space.null[d], sizes[d], states, space.prior[d], apart, p0[d], paths[d]
                )  # fmt: skip


def best_paths(model, pairs, p, start, stop, limit, forward, backward):
    """Viterbi of both directions: forward[target token] is a source position or -1, backward[source token] likewise."""
    run_blocks(_best_paths, _blocks_for(start, stop), model, pairs, p, start, stop, limit, forward, backward)
