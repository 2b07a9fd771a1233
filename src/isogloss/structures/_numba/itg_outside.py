"""The chart of an inversion transduction grammar, swept down: posteriors of links, nulls and blocks.

The order of `inside` backwards: spans that begin earlier first, the longer first. What W is worth outside its cell is
kept for the whole chart; for S, V, SL and VR it is only needed for the spans with one beginning at a time.
"""

from __future__ import annotations  # noqa: I001

import numpy as np
from numba import njit

from isogloss.structures._numba.itg_chart import (
    CELLS, CHART, EDGES, FREE, GOAL, HIGH, LOW, N_SOURCE, N_TARGET, NORMAL, NULLS, OUTER, SIZE, SL, SL_FROM, SL_TO,
    START, TERMS, VR, VR_FROM, VR_TO, VR_TOP, W_FROM, W_TO, W_TOP, WIDTH, S, V, around, span, terminal,
)  # fmt: skip
from isogloss.structures._numba.itg_rows import (
    ONE, SINGLE, ZERO, add_dot, add_product, between, clear, counts, invert, posterior, settle,
)  # fmt: skip
from isogloss.structures._numba.lanes import WIDTH as LANES
from isogloss.structures._numba.lanes import add, load, multiply, multiply_add, splat, store, total

__all__ = ["more_memory", "outside"]


@njit(cache=True, nogil=True)
def _extents(plan, rows):
    """Where the cells of each first source word begin in a symbol, and the most that one has."""
    n_source = plan[N_SOURCE]
    begins, most = np.zeros(n_source + 1, np.int64), 0
    begins[n_source] = plan[CELLS]
    if plan[N_TARGET]:
        for i in range(n_source - 1, -1, -1):
            s = span(n_source, i, i + 1)
            begins[i] = rows[START, s, 0] + rows[LOW, s, 0]
            most = max(most, begins[i + 1] - begins[i])
    return begins, most


@njit(cache=True, nogil=True)
def more_memory(plan, rows):
    """Numbers that the sweep down needs after ``plan[OUTER]``."""
    return plan[CELLS] + 4 * _extents(plan, rows)[1]


@njit(cache=True, nogil=True)
def _drop_unbuilt(m, e, at, outer, n):
    """Nothing flows into what is zero, for instance into a pruned cell; the rest is made ready to multiply."""
    for t in range(n):
        if m[at + t] == m[ZERO]:
            clear(m, e, outer + t, SINGLE)
    settle(m, e, outer, n)


@njit(cache=True, nogil=True)
def _root(plan, rows, m, e, out):
    """What the whole gives each cell, and the nulls around it."""
    n_source, n_target, free, width = plan[N_SOURCE], plan[N_TARGET], plan[FREE] + 2, plan[WIDTH]
    tail = plan[EDGES] + 3 * width
    before, after = np.zeros((2, width)), np.zeros((2, width))
    clear(m, e, free, SINGLE)
    add_product(m, e, free, plan[EDGES] + width, tail, SINGLE)
    settle(m, e, free, SINGLE)
    none = posterior(m, e, free, plan[GOAL])
    for i in range(n_source):
        for k in range(i + 1, n_source + 1):
            s = span(n_source, i, k)
            for j in range(n_target):
                first, last, base = rows[W_FROM, s, j], rows[W_TO, s, j], plan[OUTER] + rows[START, s, j]
                if first >= last:
                    continue
                around(plan, m, e, i, k, j)
                clear(m, e, free, SINGLE)
                add_product(m, e, free, free - 1, plan[GOAL], SINGLE)
                settle(m, e, free, SINGLE)
                add_product(m, e, base + first, free, tail + first, last - first)
                settle(m, e, base + first, last - first)
                for h in range(first, last):
                    chance = posterior(m, e, plan[CHART] + rows[START, s, j] + h, base + h)
                    before[0, i] += chance
                    after[0, k] += chance
                    before[1, j] += chance
                    after[1, h] += chance
    for side in range(2):
        n, nulls = plan[N_SOURCE + side], n_source * n_target + side * n_source
        behind, ahead = none, 0.0
        for t in range(n):
            behind += after[side, t]
            out[nulls + t] += behind
        for t in range(n - 1, -1, -1):
            ahead += before[side, t + 1]
            out[nulls + t] += ahead


@njit(cache=True, nogil=True)
def _take_null(plan, m, e, null, a, b, n, outer, out):
    """A null joins cells from b on to make those seen from outside from a on: its share, and what flows past it."""
    if n <= 0:
        return
    free = plan[FREE]
    clear(m, e, free, SINGLE)
    add_dot(m, e, free, a, b, n)
    settle(m, e, free, SINGLE)
    out[null] += posterior(m, e, free, plan[TERMS] + null)
    add_product(m, e, outer, plan[TERMS] + null, a, n)


@njit(cache=True, nogil=True)
def _open_row(plan, rows, m, e, i, k, j, outs, most, out, used):
    """From W, SL and VR of a row to its terminals, its nulls and its two sequences, which are left in S and V.

    The chart of a symbol is at ``base + symbol * cells``, seen from outside it is at ``seen + symbol * most``.
    Cells that some alignment has are marked in `used`, if it has room.
    """
    n_source, cells, s = plan[N_SOURCE], plan[CELLS], span(plan[N_SOURCE], i, k)
    first, last, start = rows[LOW, s, j], rows[HIGH, s, j], rows[START, s, j]
    base, seen, width = plan[CHART] + start, outs + start, last - first
    nulls = plan[NULLS] - plan[TERMS]
    _drop_unbuilt(m, e, base + first, plan[OUTER] + start + first, width)
    for symbol in (SL, VR):
        _drop_unbuilt(m, e, base + symbol * cells + first, seen + symbol * most + first, width)
    if j + 1 < plan[N_TARGET]:
        h, end = max(first, rows[LOW, s, j + 1]), min(last, rows[HIGH, s, j + 1])
        below = rows[START, s, j + 1] + h
        inner, outer = plan[CHART] + SL * cells + below, outs + SL * most + below
        _take_null(plan, m, e, nulls + n_source + j, seen + SL * most + h, inner, end - h, outer, out)
    at, outer = base + VR * cells, seen + VR * most
    for h in range(last - 1, first, -1):
        if m[at + h - 1] == m[ZERO]:  # a pruned cell lets nothing past
            continue
        _take_null(plan, m, e, nulls + n_source + h - 1, outer + h, at + h - 1, SINGLE, outer + h - 1, out)
        settle(m, e, outer + h - 1, SINGLE)
    for symbol in (S, V):
        outer = seen + symbol * most
        add_product(m, e, outer + first, ONE, outer + 2 * most + first, width)
        _drop_unbuilt(m, e, base + symbol * cells + first, outer + first, width)
        if k - i > 1:
            h, end = max(first, rows[LOW, s - 1, j]), min(last, rows[HIGH, s - 1, j])
            before = rows[START, s - 1, j] + h
            inner, past = plan[CHART] + symbol * cells + before, outs + symbol * most + before
            _take_null(plan, m, e, nulls + k - 1, outer + h, inner, end - h, past, out)
    if len(used):
        for h in range(first, last):
            found = counts(m, e, base + h, plan[OUTER] + start + h)
            for symbol in (S, V, SL, VR):
                found = found or counts(m, e, base + symbol * cells + h, seen + symbol * most + h)
            used[start + h] = found
    _join_row(plan, m, e, i, k, j, first, last, seen + S * most, seen + V * most, plan[OUTER] + start, out)


@njit(cache=True, nogil=True)
def _open_narrow(plan, rows, m, i, k, j, outs, most, out):
    """`_open_row` without exponents, in one go from the last cell of the row to the first."""
    n_source, cells, s = plan[N_SOURCE], plan[CELLS], span(plan[N_SOURCE], i, k)
    first, last, start = rows[LOW, s, j], rows[HIGH, s, j], rows[START, s, j]
    base, seen, whole_at, terms = plan[CHART] + start, outs + start, plan[OUTER] + start, plan[TERMS]
    nulls = plan[NULLS] - terms
    h_before, end_before, shorter, source_null = last, last, ZERO, m[plan[NULLS] + k - 1]
    if k - i > 1:
        h_before, end_before, shorter = rows[LOW, s - 1, j], rows[HIGH, s - 1, j], rows[START, s - 1, j]
    before, past = plan[CHART] + S * cells + shorter, outs + S * most + shorter
    h_below, end_below, lower, left_null = last, last, ZERO, m[plan[NULLS] + n_source + j]
    if j + 1 < plan[N_TARGET]:
        h_below, end_below, lower = rows[LOW, s, j + 1], rows[HIGH, s, j + 1], rows[START, s, j + 1]
    below, under = plan[CHART] + SL * cells + lower, outs + SL * most + lower
    leaves, normal = j + plan[SIZE] + 2, plan[NORMAL]
    right, left_share, source_share = 0.0, 0.0, 0.0
    for h in range(last - 1, first - 1, -1):
        inner = m[base + VR * cells + h]
        if inner != 0.0:
            null = nulls + n_source + h
            if right != 0.0:  # of the cell after this one
                out[null] += right * inner * m[terms + null]
                right *= m[terms + null]
            right += m[seen + VR * most + h]
        else:
            right = 0.0
        left = m[seen + SL * most + h] if m[base + SL * cells + h] != 0.0 else 0.0
        if left != 0.0 and h_below <= h < end_below:
            left_share += left * m[below + h]
            m[under + h] += left_null * left
        straight = m[seen + S * most + h] + left if m[base + S * cells + h] != 0.0 else 0.0
        inverted = m[seen + V * most + h] + right if m[base + V * cells + h] != 0.0 else 0.0
        if h_before <= h < end_before:
            source_share += straight * m[before + h] + inverted * m[before + cells + h]
            m[past + h] += source_null * straight
            m[past + most + h] += source_null * inverted
        whole = m[whole_at + h] if m[base + h] != 0.0 else 0.0
        if h < leaves:
            at = terminal(plan, i, k, j, h)
            if at >= 0:
                out[at] += (whole + straight + inverted) * m[terms + at]
        if normal:
            straight, inverted = straight + whole, inverted + whole
        else:
            straight = inverted = whole = whole + straight + inverted
        m[whole_at + h], m[seen + S * most + h], m[seen + V * most + h] = whole, straight, inverted
    out[nulls + n_source + j] += left_share * left_null
    out[nulls + k - 1] += source_share * source_null


@njit(cache=True, nogil=True)
def _join_row(plan, m, e, i, k, j, first, last, straight, inverted, whole, out):
    """What W, S and V are worth together goes to terminals and sequences."""
    free, width = plan[FREE], last - first
    for h in range(first, min(last, j + plan[SIZE] + 2)):
        at = terminal(plan, i, k, j, h)
        if at >= 0:
            clear(m, e, free, SINGLE)
            for outer in (whole, straight, inverted):
                add_product(m, e, free, ONE, outer + h, SINGLE)
            settle(m, e, free, SINGLE)
            out[at] += posterior(m, e, free, plan[TERMS] + at)
    if not plan[NORMAL]:
        add_product(m, e, whole + first, ONE, straight + first, width)
        add_product(m, e, whole + first, ONE, inverted + first, width)
        settle(m, e, whole + first, width)
        clear(m, e, straight + first, width)
        clear(m, e, inverted + first, width)
    for outer in (straight, inverted):
        add_product(m, e, outer + first, ONE, whole + first, width)
        settle(m, e, outer + first, width)


@njit(cache=True, nogil=True)
def _unmultiply_lanes(rows, m, c, at_c, a, at_a, from_a, outer_a, b, at_b, from_b, outer_b):
    """`_unmultiply` without exponents, sixteen numbers of a row of B at a time."""
    n, nothing = rows.shape[2] - 1, splat(0.0)
    top = W_TOP if from_a == W_FROM else VR_TOP
    for q in range(rows[from_b, b, n], rows[from_b + 1, b, n]):
        first_j, last_j = rows[top, a, q], rows[top + 1, a, q]
        if first_j >= last_j:
            continue
        last, start = rows[from_b + 1, b, q], rows[START, b, q]
        for h in range(rows[from_b, b, q], last, LANES):
            inner = between(ZERO, last - h, load(m, at_b + start + h), nothing)
            sums = nothing
            for j in range(first_j, last_j):
                low, high = rows[LOW, c, j] - h, rows[HIGH, c, j] - h
                if not rows[from_a, a, j] <= q < rows[from_a + 1, a, j] or low >= LANES or high <= 0 or low >= high:
                    continue
                x, at = m[at_a + rows[START, a, j] + q], outer_a + rows[START, a, j] + q
                if x == 0.0:
                    continue
                worth = between(low, high, load(m, at_c + rows[START, c, j] + h), nothing)
                sums = multiply_add(splat(x), worth, sums)
                m[at] += total(multiply(worth, inner))
            at = outer_b + start + h
            old = load(m, at)
            store(m, at, between(ZERO, last - h, add(old, sums), old))


@njit(cache=True, nogil=True)
def _unmultiply(plan, rows, m, e, c, at_c, a, at_a, from_a, outer_a, b, at_b, from_b, outer_b):
    """The derivative of C = A B: what C is worth goes to A and to B."""
    n, zero = plan[N_TARGET], m[ZERO]
    if len(e) == 0:
        _unmultiply_lanes(rows, m, c, at_c, a, at_a, from_a, outer_a, b, at_b, from_b, outer_b)
        return
    for j in range(rows[from_a, a, n], rows[from_a + 1, a, n]):
        first, last = rows[LOW, c, j], rows[HIGH, c, j]
        if first >= last:
            continue
        row_a, row_c = rows[START, a, j], at_c + rows[START, c, j]
        for q in range(rows[from_a, a, j], min(rows[from_a + 1, a, j], n)):
            if m[at_a + row_a + q] == zero:
                continue
            h, end = max(first, rows[from_b, b, q]), min(last, rows[from_b + 1, b, q])
            if h < end:
                row_b = rows[START, b, q] + h
                add_dot(m, e, outer_a + row_a + q, row_c + h, at_b + row_b, end - h)
                add_product(m, e, outer_b + row_b, at_a + row_a + q, row_c + h, end - h)


@njit(cache=True, nogil=True)
def outside(plan, rows, m, e, out, used):
    """Add to `out`, laid out as the terms, the posterior of each; memory is as `inside` left it, and changes.

    In wide numbers, cells that some alignment of the highest level has are marked in `used`, bool[n_cells] or empty.
    """
    n_source, cells, chart, outer = plan[N_SOURCE], plan[CELLS], plan[CHART], plan[OUTER]
    clear(m, e, outer, len(m) - outer)
    invert(m, e, plan[GOAL])
    _root(plan, rows, m, e, out)
    begins, most = _extents(plan, rows)
    for i in range(n_source):
        outs = outer + cells - most - begins[i]
        clear(m, e, outer + cells, 4 * most)
        for k in range(n_source, i, -1):
            s = span(n_source, i, k)
            for j in range(plan[N_TARGET]):
                if rows[SL_FROM, s, j] < rows[SL_TO, s, j] or rows[VR_FROM, s, j] < rows[VR_TO, s, j]:
                    if len(e) == 0:
                        _open_narrow(plan, rows, m, i, k, j, outs, most, out)
                    else:
                        _open_row(plan, rows, m, e, i, k, j, outs, most, out, used)
            for p in range(i + 1, k):
                a, b = span(n_source, i, p), span(n_source, p, k)
                _unmultiply(
                    plan, rows, m, e, s, outs + S * most, a, chart + VR * cells, VR_FROM, outs + VR * most,
                    b, chart, W_FROM, outer,
                )  # fmt: skip
                _unmultiply(
                    plan, rows, m, e, s, outs + V * most, b, chart, W_FROM, outer,
                    a, chart + SL * cells, SL_FROM, outs + SL * most,
                )  # fmt: skip
