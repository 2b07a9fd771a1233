r"""The E-step on a GPU: what `_numba.expect` does, one warp a sentence pair.

The numbers are those of the Numba kernel up to rounding, and so is the order of work: weights are gathered with own
evidence left out, both directions are inferred, perhaps tilted towards each other, and posteriors are written as whole
numbers in units of 1/65535. Posteriors are kept as one int32 a cell, the forward one in the lower half.

- Pairs are sorted into buckets by the power of two that holds their longer side; a program takes every `programs`-th
  pair of a bucket, and that number depends on the bucket alone. Counts of entries are added up with atomic additions of
  whole numbers, and what is no whole number (jumps, log-likelihoods) by program, in order: every run gives the same
  bytes.
- Rows of emissions and posteriors lie in scratch memory of the program, which stays in the cache. A step of the chain
  holds its states in registers. The eleven shifted rows that a jump needs are one gather of [16, M].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

__all__ = ["LONGEST", "MODELS", "MODES", "UNIT", "Learnt", "Parameters", "Text", "buckets", "expect"]

MODELS = {"model1": 1, "hmm": 3}
MODES = {"none": 0, "agreement": 1, "symmetric": 3}
UNIT = 65535
LONGEST = 1024  # words a side may have
_BUCKETS, _FIRST, _BAND = 12, 11, 5  # as in structures/_numba/jumps.py
_WINDOW = 16  # shifted rows, the first eleven of which are used
_SCRATCH = 1 << 28  # numbers that scratch memory has at the most

_TINY = tl.constexpr(1e-9)
_SCALE = tl.constexpr(65535.0)
_ROWS = tl.constexpr(_WINDOW)
_TAIL = tl.constexpr(_BUCKETS - 1)
_LAST = tl.constexpr(_FIRST - 1)
_REACH = tl.constexpr(_BAND)
_AGREEMENT, _SYMMETRIC = tl.constexpr(1), tl.constexpr(3)


class Text(NamedTuple):
    """Sentence pairs on the device; `cells` has the entry of every cell."""

    source_ids: Any  # int32[n_source_tokens]
    source_offsets: Any  # int64[n_pairs + 1]
    target_ids: Any
    target_offsets: Any
    cell_offsets: Any  # int64[n_pairs + 1]
    cells: Any  # int32[n_cells]


class Parameters(NamedTuple):
    """As `_numba.expect.Parameters`, on the device; distortion is on the host, float64[2, .]."""

    weights: Any  # float32[n_entries, 2]
    source_mass: Any  # float32[n_types + 1]
    target_mass: Any
    source_null: Any
    target_null: Any
    null_mass: Any  # float32[2]
    jumps: Any
    first: Any
    p0: float
    floor: float
    own_source: Any
    own_target: Any
    share_source: Any
    share_target: Any


class Learnt(NamedTuple):
    """What an E-step of training adds up: counts of entries and nulls (whole numbers), jumps, and the objective."""

    counts: Any  # int64[n_entries, 1 or 2]; one column where both directions agree
    source_null: Any  # int64[n_types]
    target_null: Any
    jumps: Any  # float64[2, 4, 12], on the host
    objective: float


def buckets(source_offsets: Any, target_offsets: Any) -> list[tuple[int, Any]]:
    """Pairs by the power of two that holds both sides, from 16 on: (size, numbers of pairs), empty pairs left out."""
    a, b = torch.diff(source_offsets), torch.diff(target_offsets)
    longer = torch.where((a > 0) & (b > 0), torch.maximum(a, b), torch.zeros_like(a))
    found, low, size = [], 0, 16
    while low < LONGEST:
        chosen = torch.nonzero((longer > low) & (longer <= size)).flatten()
        if len(chosen):
            found.append((size, chosen))
        low, size = size, 2 * size
    return found


@triton.jit
def _window(x, at, inside, M: tl.constexpr):
    """[16, M]: row d is x, shifted as `at` says; zero outside."""
    return tl.where(inside, tl.gather(tl.broadcast_to(x[None, :], (_ROWS, M)), at, 1), 0.0)


@triton.jit
def _independent(E, null, q, n, m, p0, M: tl.constexpr):
    """Model 1: every word chooses on its own."""
    lane = tl.arange(0, M)
    share = (1.0 - p0) / m.to(tl.float32)
    value = 0.0
    for t in range(n):
        x = share * tl.load(E + t * M + lane, mask=lane < m, other=0.0)
        z = tl.sum(x, 0) + p0 * tl.load(null + t)
        value += tl.log(z)
        tl.store(q + t * M + lane, x / z)
    return value


@triton.jit
def _forward(
    E, null, real, mass_out, scale, n, m, band, tail, inverse, first, p0, M: tl.constexpr, LEARN: tl.constexpr
):
    """Forward sweep: alpha of real states, their mass with null if `LEARN`, scales; returns Z and log p."""
    lane = tl.arange(0, M)
    shift = tl.arange(0, _ROWS)
    at = lane[None, :] - (shift[:, None] - _REACH)
    inside = (at >= 0) & (at < M) & (shift[:, None] <= 2 * _REACH)
    at = tl.where(inside, at, 0)
    q0 = 1.0 - p0
    mass = tl.load(E + lane, mask=lane < m, other=0.0) * (q0 * first)
    tl.store(real + lane, mass)
    if LEARN:
        tl.store(mass_out + lane, mass)
    tl.store(scale, 1.0)
    tl.store(scale + M, 1.0)
    unmet = tl.load(null) * p0
    value = 0.0
    for t in range(1, n):
        e = tl.load(E + t * M + lane, mask=lane < m, other=0.0)
        stay = tl.load(null + t) * p0
        h = mass * inverse
        whole = tl.sum(h, 0)
        r = 1.0 / (whole + unmet)
        tl.store(scale + t, r)
        tl.store(scale + M + t, unmet)
        x = tl.sum(band[:, None] * _window(h, at, inside, M), 0)
        alpha = e * (q0 * r * x + (unmet * q0 * r * first + q0 * tail * whole * r))
        mass = stay * r * mass + alpha
        tl.store(real + t * M + lane, alpha)
        if LEARN:
            tl.store(mass_out + t * M + lane, mass)
        unmet *= stay * r
        value -= tl.log(r)
    z = tl.sum(mass, 0) + unmet
    return z, value + tl.log(z)


@triton.jit
def _backward(
    E, null, q, mass_in, scale, n, m, z, band, tail, inverse, first, jumps, first_norm, p0, learnt,
    M: tl.constexpr, LEARN: tl.constexpr,
):  # fmt: skip
    """Backward sweep: alpha in `q` becomes the posterior. With `LEARN`, `learnt` [4, 16] takes jumps and divisors."""
    lane = tl.arange(0, M)
    shift = tl.arange(0, _ROWS)
    at = lane[None, :] + (shift[:, None] - _REACH)
    inside = (at >= 0) & (at < M) & (shift[:, None] <= 2 * _REACH)
    reached = inside & (at < m)
    at = tl.where(inside, at, 0)
    q0 = 1.0 - p0
    beta = tl.zeros((M,), tl.float32) + 1.0 / z
    entering = tl.zeros((M,), tl.float32)
    leaving = tl.zeros((M,), tl.float32)
    moved = tl.zeros((_ROWS, M), tl.float32)
    for back in range(1, n):
        t = n - back
        e = tl.load(E + t * M + lane, mask=lane < m, other=0.0)
        r = tl.load(scale + t)
        stay = tl.load(null + t) * p0 * r
        tl.store(q + t * M + lane, tl.load(q + t * M + lane) * beta)
        u = e * beta
        around = _window(u, at, inside, M)
        x = tail * tl.sum(u, 0) + tl.sum(band[:, None] * around, 0)
        h = q0 * r * inverse
        if LEARN:
            entering += tl.load(scale + M + t) * q0 * r * u
            here = h * tl.load(mass_in + (t - 1) * M + lane)
            leaving += here * x
            moved += here[None, :] * around
        beta = stay * beta + h * x
    tl.store(q + lane, tl.load(q + lane) * beta)
    if LEARN:
        entering += q0 * tl.load(E + lane, mask=lane < m, other=0.0) * beta
        entered = (first * entering).to(tl.float64)
        place = tl.minimum(lane, _LAST)
        mine = (place[None, :] == shift[:, None]) & (lane[None, :] < m)
        old = learnt + shift
        near = (jumps * tl.sum(moved, 1)).to(tl.float64)
        far = tl.maximum(0.0, tl.sum(leaving.to(tl.float64), 0) - tl.sum(near, 0))
        tl.store(old, tl.load(old) + tl.where(shift == _TAIL, far, near))
        share = tl.where(lane < m, (leaving * inverse).to(tl.float64), 0.0)
        within = tl.sum(tl.where(reached, share[None, :], 0.0), 1)
        beyond = tl.maximum(0, lane - _REACH) + tl.maximum(0, m - 1 - lane - _REACH)
        outside = tl.sum(share * beyond.to(tl.float64), 0)
        tl.store(old + _ROWS, tl.load(old + _ROWS) + tl.where(shift == _TAIL, outside, within))
        tl.store(old + 2 * _ROWS, tl.load(old + 2 * _ROWS) + tl.sum(tl.where(mine, entered[None, :], 0.0), 1))
        total = tl.sum(entered, 0) / first_norm
        places = tl.sum(mine.to(tl.int32), 1).to(tl.float64)
        tl.store(old + 3 * _ROWS, tl.load(old + 3 * _ROWS) + total * places)


@triton.jit
def _distortion(cumulated, firsts, m, M: tl.constexpr):
    """Inverse norms of jumps from each position, the distribution of the first real word, and its norm."""
    lane = tl.arange(0, M)
    tail = tl.load(cumulated + _ROWS - 1)
    low = tl.minimum(tl.maximum(0, _REACH - lane), 2 * _REACH + 1)
    high = tl.maximum(low, tl.minimum(2 * _REACH + 1, m - lane + _REACH))
    norm = m.to(tl.float64) * tail + tl.load(cumulated + high) - tl.load(cumulated + low)
    inverse = tl.where(lane < m, 1.0 / norm, 0.0).to(tl.float32)
    weight = tl.where(lane < m, tl.load(firsts + tl.minimum(lane, _LAST)), 0.0)
    total = tl.sum(weight, 0)
    return inverse, (weight / total).to(tl.float32), total


@triton.jit
def _tilt(F, B, qf, qb, a, b, rate, M: tl.constexpr):
    """One step on the dual: both emissions are tilted towards each other; returns the squared distance before it."""
    lane = tl.arange(0, M)
    distance = 0.0
    for j in range(b):
        here = lane < a
        gap = tl.load(qb + lane * M + j, mask=here, other=0.0) - tl.load(qf + j * M + lane, mask=here, other=0.0)
        distance += tl.sum(gap * gap, 0)
        old = tl.load(F + j * M + lane, mask=here, other=0.0)
        tl.store(F + j * M + lane, old * tl.exp(rate * gap), mask=here)
    for i in range(a):
        here = lane < b
        gap = tl.load(qb + i * M + lane, mask=here, other=0.0) - tl.load(qf + lane * M + i, mask=here, other=0.0)
        old = tl.load(B + i * M + lane, mask=here, other=0.0)
        tl.store(B + i * M + lane, old * tl.exp(-rate * gap), mask=here)
    return distance


@triton.jit
def _gather(
    first_cell, source, target, a, b, cells, weights, source_mass, target_mass, source_null, target_null, null_mass,
    own_source, own_target, share_source, share_target, posterior, source_left, target_left, floor, leave_out,
    F, B, ahead, nulls, M: tl.constexpr, LEAVE: tl.constexpr,
):  # fmt: skip
    """Emissions of both directions, scaled to a maximum of 1, and of null; returns the logs of the scales."""
    lane = tl.arange(0, M)
    here = lane < b
    unit = leave_out / _SCALE
    word = tl.load(target + lane, mask=here, other=0)
    used = tl.zeros((M,), tl.float32)
    top = tl.zeros((M,), tl.float32)
    if LEAVE:
        share_t = tl.load(share_target + word, mask=here, other=0.0)
        own_t = tl.load(own_target + word, mask=here, other=0.0)
    for i in range(a):
        cell = first_cell + i * b + lane
        entry = tl.load(cells + cell, mask=here, other=-1).to(tl.int64)
        known = entry >= 0
        x = tl.where(here, tl.load(weights + 2 * entry, mask=known, other=0.0), 0.0)
        y = tl.where(here, tl.load(weights + 2 * entry + 1, mask=known, other=0.0), 0.0)
        x = tl.where(here & (entry < 0), floor, x)
        y = tl.where(here & (entry < 0), floor, y)
        this = tl.load(source + i)
        mass = tl.load(source_mass + this)
        if LEAVE:
            before = tl.load(posterior + cell, mask=here, other=0)
            qa = (before & 0xFFFF).to(tl.float32) * unit
            qb = ((before >> 16) & 0xFFFF).to(tl.float32) * unit
            x = tl.where(here, tl.maximum(floor, x - qa * (1.0 + tl.load(own_source + this) * share_t)), 0.0)
            y = tl.where(here, tl.maximum(floor, y - qb * (1.0 + own_t * tl.load(share_source + this))), 0.0)
            mass -= tl.sum(qa, 0)
            used += qb
        x = x / tl.maximum(_TINY, mass)
        top = tl.maximum(top, x)
        tl.store(ahead + i * M + lane, x)
        tl.store(B + i * M + lane, y)
    null = tl.load(target_null + word, mask=here, other=1.0)
    whole = tl.load(null_mass + 1)
    if LEAVE:
        own = tl.load(target_left + lane, mask=here, other=0).to(tl.float32) * unit
        null = tl.maximum(_TINY, null - own) / tl.maximum(_TINY, whole - own)
    else:
        null = tl.maximum(_TINY, null) / tl.maximum(_TINY, whole)
    high = tl.maximum(null, top)
    log_f = tl.sum(tl.where(here, tl.log(high), 0.0), 0)
    down = 1.0 / high
    tl.store(nulls + lane, null * down)
    column = 1.0 / tl.maximum(_TINY, tl.load(target_mass + word, mask=here, other=1.0) - used)
    log_b = 0.0
    for i in range(a):
        this = tl.load(source + i)
        tl.store(F + lane * M + i, tl.load(ahead + i * M + lane) * down, mask=here)
        y = tl.load(B + i * M + lane) * column
        null_i = tl.load(source_null + this)
        whole_i = tl.load(null_mass)
        if LEAVE:
            mine = tl.load(source_left + i).to(tl.float32) * unit
            null_i = tl.maximum(_TINY, null_i - mine) / tl.maximum(_TINY, whole_i - mine)
        else:
            null_i = tl.maximum(_TINY, null_i) / tl.maximum(_TINY, whole_i)
        greatest = tl.maximum(null_i, tl.max(y, 0))
        log_b += tl.log(greatest)
        tl.store(nulls + M + i, null_i / greatest)
        tl.store(B + i * M + lane, y / greatest)
    return log_f, log_b


@triton.jit
def _write(
    first_cell, source, target, a, b, qf, qb, cells, posterior, source_left, target_left, counts, null_source,
    null_target, least, M: tl.constexpr, MODE: tl.constexpr, LEARN: tl.constexpr,
):  # fmt: skip
    """Posteriors as whole numbers, and their sums by entry and by type of the words left alone.

    A cell that is below `least` in both directions has 0.
    """
    lane = tl.arange(0, M)
    here = lane < b
    linked = tl.zeros((M,), tl.float32)
    for i in range(a):
        x = tl.load(qf + lane * M + i, mask=here, other=0.0)
        y = tl.load(qb + i * M + lane, mask=here, other=0.0)
        linked += x
        rest = (tl.maximum(0.0, 1.0 - tl.sum(y, 0)) * _SCALE + 0.5).to(tl.int32)
        tl.store(source_left + i, rest)
        if MODE == _AGREEMENT:
            x = x * y
            y = x
        p = (tl.minimum(1.0, x) * _SCALE + 0.5).to(tl.int32)
        r = (tl.minimum(1.0, y) * _SCALE + 0.5).to(tl.int32)
        enough = (p >= least) | (r >= least)
        p = tl.where(enough, p, 0)
        r = tl.where(enough, r, 0)
        cell = first_cell + i * b + lane
        tl.store(posterior + cell, p | (r << 16), mask=here)
        if LEARN:
            tl.atomic_add(null_source + tl.load(source + i), rest.to(tl.int64), sem="relaxed")
            entry = tl.load(cells + cell, mask=here, other=0).to(tl.int64)
            if MODE == _AGREEMENT:
                tl.atomic_add(counts + entry, p.to(tl.int64), mask=here & (p > 0), sem="relaxed")
            else:
                tl.atomic_add(counts + 2 * entry, p.to(tl.int64), mask=here & (p > 0), sem="relaxed")
                tl.atomic_add(counts + 2 * entry + 1, r.to(tl.int64), mask=here & (r > 0), sem="relaxed")
    rest = (tl.maximum(0.0, 1.0 - linked) * _SCALE + 0.5).to(tl.int32)
    tl.store(target_left + lane, rest, mask=here)
    if LEARN:
        word = tl.load(target + lane, mask=here, other=0)
        tl.atomic_add(null_target + word, rest.to(tl.int64), mask=here, sem="relaxed")


@triton.jit
def _expect(
    chosen, n_chosen, programs, source_ids, source_offsets, target_ids, target_offsets, cell_offsets, cells, weights,
    source_mass, target_mass, source_null, target_null, null_mass, bands, cumulated, firsts, own_source, own_target,
    share_source, share_target, posterior, source_left, target_left, counts, null_source, null_target, scores, learnt,
    scratch, p0, floor, leave_out, rate, nearness, steps, least, M: tl.constexpr, MODEL: tl.constexpr,
    MODE: tl.constexpr, LEARN: tl.constexpr, LEAVE: tl.constexpr,
):  # fmt: skip
    """Every `programs`-th of the chosen pairs. `bands` [2, 2, 16]: jumps less the tail, and jumps; the tail last."""
    number = tl.program_id(0)
    shift = tl.arange(0, _ROWS)
    area: tl.constexpr = M * M
    F = scratch + number.to(tl.int64) * (5 * area + 6 * M)
    B, qf, qb, mass = F + area, F + 2 * area, F + 3 * area, F + 4 * area
    nulls = F + 5 * area
    scale = nulls + 2 * M
    mine = learnt + number.to(tl.int64) * 8 * _ROWS
    for k in range(number, n_chosen, programs):
        s = tl.load(chosen + k)
        source_at, target_at = tl.load(source_offsets + s), tl.load(target_offsets + s)
        a = (tl.load(source_offsets + s + 1) - source_at).to(tl.int32)
        b = (tl.load(target_offsets + s + 1) - target_at).to(tl.int32)
        first_cell = tl.load(cell_offsets + s)
        log_f, log_b = _gather(
            first_cell, source_ids + source_at, target_ids + target_at, a, b, cells, weights, source_mass, target_mass,
            source_null, target_null, null_mass, own_source, own_target, share_source, share_target, posterior,
            source_left + source_at, target_left + target_at, floor, leave_out, F, B, qb, nulls, M, LEAVE,
        )  # fmt: skip
        tl.debug_barrier()
        ahead, back = 0.0, 0.0
        if MODEL == 1:
            ahead = _independent(F, nulls, qf, b, a, p0, M)
            back = _independent(B, nulls + M, qb, a, b, p0, M)
        else:
            inverse_f, first_f, norm_f = _distortion(cumulated, firsts, a, M)
            inverse_b, first_b, norm_b = _distortion(cumulated + _ROWS, firsts + _ROWS, b, M)
            step = 0
            last = steps
            while step <= last:
                band = tl.where(shift < _TAIL, tl.load(bands + shift), 0.0)
                jumps = tl.where(shift < _TAIL, tl.load(bands + _ROWS + shift), 0.0)
                tail = tl.load(bands + _TAIL)
                z, value = _forward(F, nulls, qf, mass, scale, b, a, band, tail, inverse_f, first_f, p0, M, LEARN)
                ahead = tl.where(step == 0, value, ahead)
                tl.debug_barrier()
                _backward(
                    F, nulls, qf, mass, scale, b, a, z, band, tail, inverse_f, first_f, jumps, norm_f, p0, mine,
                    M, LEARN,
                )  # fmt: skip
                tl.debug_barrier()
                band = tl.where(shift < _TAIL, tl.load(bands + 2 * _ROWS + shift), 0.0)
                jumps = tl.where(shift < _TAIL, tl.load(bands + 3 * _ROWS + shift), 0.0)
                tail = tl.load(bands + 2 * _ROWS + _TAIL)
                z, value = _forward(B, nulls + M, qb, mass, scale, a, b, band, tail, inverse_b, first_b, p0, M, LEARN)
                back = tl.where(step == 0, value, back)
                tl.debug_barrier()
                _backward(
                    B, nulls + M, qb, mass, scale, a, b, z, band, tail, inverse_b, first_b, jumps, norm_b, p0,
                    mine + 4 * _ROWS, M, LEARN,
                )  # fmt: skip
                tl.debug_barrier()
                if MODE == _SYMMETRIC:
                    if step < last:
                        distance = _tilt(F, B, qf, qb, a, b, rate, M)
                        last = tl.where(distance < nearness, step + 1, last)
                    tl.debug_barrier()
                step += 1
        tl.debug_barrier()
        _write(
            first_cell, source_ids + source_at, target_ids + target_at, a, b, qf, qb, cells, posterior,
            source_left + source_at, target_left + target_at, counts, null_source, null_target, least, M, MODE, LEARN,
        )  # fmt: skip
        tl.store(scores + 2 * s, (ahead + log_f).to(tl.float64))
        tl.store(scores + 2 * s + 1, (back + log_b).to(tl.float64))
        tl.debug_barrier()


def _programs(size: int, n: int) -> int:
    """Programs for a bucket, by its size and number of pairs alone."""
    return max(1, min(n, 8192, _SCRATCH // (5 * size * size + 6 * size)))


def expect(
    kind: str,
    constraint: str,
    text: Text,
    p: Parameters,
    groups: list[tuple[int, Any]],
    posterior: Any,
    nulls: tuple[Any, Any],
    scores: Any,
    *,
    steps: int = 0,
    rate: float = 1.0,
    tolerance: float = 0.0,
    leave_out: float = 0.0,
    learn: bool = False,
    least: int = 1,
) -> Learnt | None:
    """E-step over the pairs of `groups` (see `buckets`); what was counted, if it is to `learn`.

    Fills `posterior` int32[n_cells], where cells below `least` in both directions have 0, `nulls` (source, target:
    int32 by token) and `scores` float64[n_pairs, 2].
    Constraints that have a dual can be decoded with, not learnt with.
    """
    if learn and constraint == "symmetric":
        raise ValueError("the E-step on a GPU learns without constraint or with agreement")
    device = posterior.device
    counts = null_source = null_target = torch.zeros(1, dtype=torch.int64, device=device)
    if learn:
        agreed = constraint == "agreement"
        counts = torch.zeros((len(p.weights), 1 if agreed else 2), dtype=torch.int64, device=device)
        null_source = torch.zeros(len(p.source_null), dtype=torch.int64, device=device)
        null_target = torch.zeros(len(p.target_null), dtype=torch.int64, device=device)
    bands, cumulated, firsts = (torch.from_numpy(x).to(device) for x in _tables(p.jumps, p.first))
    jumped = torch.zeros((2, 4, _WINDOW), dtype=torch.float64, device=device)
    for size, chosen in groups:
        programs = _programs(size, len(chosen))
        scratch = torch.empty(programs * (5 * size * size + 6 * size), dtype=torch.float32, device=device)
        learnt = torch.zeros((programs, 2, 4, _WINDOW), dtype=torch.float64, device=device)
        _expect[(programs,)](
            chosen, len(chosen), programs, text.source_ids, text.source_offsets, text.target_ids, text.target_offsets,
            text.cell_offsets, text.cells, p.weights, p.source_mass, p.target_mass, p.source_null, p.target_null,
            p.null_mass, bands, cumulated, firsts, p.own_source, p.own_target, p.share_source, p.share_target,
            posterior, nulls[0], nulls[1], counts, null_source, null_target, scores, learnt, scratch,
            p.p0, p.floor, leave_out, rate, tolerance * tolerance, steps if constraint == "symmetric" else 0,
            least, M=size, MODEL=MODELS[kind], MODE=MODES[constraint], LEARN=learn, LEAVE=leave_out > 0.0,
            num_warps=1 if size <= 128 else 4 if size <= 512 else 8,
        )  # fmt: skip
        jumped += learnt.sum(dim=0)
    if not learn:
        return None
    used = torch.cat([chosen for _, chosen in groups])
    return Learnt(counts, null_source, null_target, jumped[:, :, :_BUCKETS].cpu().numpy(), float(scores[used].sum()))


def _tables(jumps: Any, first: Any) -> tuple[Any, Any, Any]:
    """Distortion as the kernel reads it: bands [2, 2, 16], cumulated jumps with the tail last [2, 16], firsts."""
    import numpy as np

    bands, cumulated, firsts = np.zeros((2, 2, _WINDOW), np.float32), np.zeros((2, _WINDOW)), np.zeros((2, _WINDOW))
    for d in range(2):
        tail = jumps[d, _BUCKETS - 1]
        bands[d, 0, : _BUCKETS - 1] = jumps[d, :-1] - tail
        bands[d, 1, : _BUCKETS - 1] = jumps[d, :-1]
        bands[d, :, _BUCKETS - 1] = tail
        cumulated[d, 1:_BUCKETS] = np.cumsum(jumps[d, :-1] - tail)
        cumulated[d, -1] = tail
        firsts[d, :_FIRST] = first[d]
    return bands, cumulated, firsts
