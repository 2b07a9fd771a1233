"""The chart of an inversion transduction grammar, swept up.

A cell is a source span [i, k) with a target span [j, h), neither empty. The normal form with nulls (Haghighi and others
2009, figure 2) needs four symbols for straight cells and four for inverted ones; since N̄ and Ī both come out as the
sum of everything that a cell can be before nulls, five numbers a cell are enough:

=== =============================================================================================================
W   everything without nulls at its edges: a terminal, a straight or an inverted sequence
S   a terminal or a straight sequence, with source nulls at its right edge (N₁₀)
V   a terminal or an inverted sequence, with source nulls at its right edge (I₁₀)
SL  S with target nulls at its left edge (N₁₁): what an inverted sequence is made of, before its last
VR  V with target nulls at its right edge (I₁₁): what a straight sequence is made of, before its last
=== =============================================================================================================

straight(i, k, j, h) = ⊕ over p, q of VR(i, p, j, q) ⊗ W(p, k, q, h)
inverted(i, k, j, h) = ⊕ over p, q of W(p, k, j, q) ⊗ SL(i, p, q, h)

With the spans of one side fixed, both are products of triangular matrices over the other. The simple grammar has
S = V = W plus nulls: bracketing is free and nulls still have one place each. There are no sentinel words: the whole is
the smallest cell that holds all links, with nulls around it, or nulls alone.

The target spans of one source span s are rows, one for each j, of ends h from ``rows[LOW, s, j]`` to below
``rows[HIGH, s, j]``; the number for h stands ``rows[START, s, j] + h`` after the beginning of its symbol. Pruning
narrows rows, and zeros stay where a row has a hole; sweeps go only as far in a row as something was built.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.itg_rows import ONE, SINGLE, ZERO, add_product, between, clear, put, settle
from isogloss.structures._numba.lanes import WIDTH as LANES
from isogloss.structures._numba.lanes import add, load, maximum, multiply_add, splat, store

__all__ = ["around", "inside", "make_plan", "make_rows", "span", "terminal"]

W, S, V, SL, VR = (np.int64(symbol) for symbol in range(5))  # in the order of their numbers in memory

# A row: bounds that pruning leaves, where it stands, and from where to where W, SL and VR were built. One more row for
# each source span says from which to which row something was built at all. Without exponents it is noted too from which
# to which row W and VR were built in each column; then `h` stands in place of `j`.
LOW, HIGH, START, W_FROM, W_TO, SL_FROM, SL_TO, VR_FROM, VR_TO, W_TOP, W_BOTTOM, VR_TOP, VR_BOTTOM = (
    np.int64(column) for column in range(13)
)

# The plan: sizes, options, and where things begin in memory. EDGES are products of nulls: before each place and from
# each place on, first on the source side and then on the target side, WIDTH numbers each. OUTER is W seen from outside.
N_SOURCE, N_TARGET, SIZE, NORMAL, LIMIT, CELLS, TERMS, NULLS, EDGES, WIDTH, GOAL, FREE, CHART, OUTER = (
    np.int64(entry) for entry in range(14)
)


@njit(cache=True, nogil=True)
def span(n, i, k):
    """Number of the span [i, k) of n words; spans with one beginning stand together, the shorter first."""
    return i * n - i * (i - 1) // 2 + k - i - 1


@njit(cache=True, nogil=True)
def terminal(plan, i, k, j, h):
    """Which term the terminal over source words [i, k) and target words [j, h) is, or −1 if there is none.

    Terms are links [n_source, n_target], source nulls, target nulls, then blocks [n_source, n_target, size] of m + 2
    source words from i on with target word j, and as many of source word i with m + 2 target words from j on.
    """
    n_target, size = plan[N_TARGET], plan[SIZE]
    links, cell = plan[N_SOURCE] * n_target, i * n_target + j
    if k - i == 1:
        if h - j == 1:
            return cell
        if h - j <= size + 1:
            return links * (1 + size) + plan[N_SOURCE] + n_target + cell * size + h - j - 2
    elif h - j == 1 and k - i <= size + 1:
        return links + plan[N_SOURCE] + n_target + cell * size + k - i - 2
    return -1


@njit(cache=True, nogil=True)
def _pruned(counts, limit, i, k, j, h):
    """Whether more than `limit` confident links have exactly one end in the cell; `counts` are cumulative."""
    last, end = counts.shape[0] - 1, counts.shape[1] - 1
    lines = counts[k, end] - counts[i, end]
    columns = counts[last, h] - counts[last, j]
    both = counts[k, h] - counts[i, h] - counts[k, j] + counts[i, j]
    return lines + columns - 2 * both > limit


@njit(cache=True, nogil=True)
def make_rows(n_source, n_target, counts, limit, bounds):
    """The rows that pruning leaves, and how many cells they hold. A negative `limit` prunes nothing.

    `bounds`, int16[2, n_spans, n_target] or without spans, has LOW and HIGH of all rows where these are known.
    """
    rows = np.empty((13, n_source * (n_source + 1) // 2, n_target + 1), np.int32)
    total = 0
    for i in range(n_source):
        for k in range(i + 1, n_source + 1):
            for j in range(n_target):
                first, last = j + 1, n_target + 1
                s = span(n_source, i, k)
                if bounds.shape[1]:
                    first, last = np.int64(bounds[0, s, j]), np.int64(bounds[1, s, j])
                elif limit >= 0:
                    while first < last and _pruned(counts, limit, i, k, j, first):
                        first += 1
                    while first < last and _pruned(counts, limit, i, k, j, last - 1):
                        last -= 1
                rows[LOW, s, j], rows[HIGH, s, j], rows[START, s, j] = first, last, total - first
                total += last - first
    return rows, total


@njit(cache=True, nogil=True)
def make_plan(shape, normal, limit, cells):
    """The plan for `cells` cells; its last number is the memory that the sweep up takes."""
    plan = np.empty(14, np.int64)
    plan[N_SOURCE], plan[N_TARGET], plan[SIZE] = shape[0], shape[1], shape[2]
    plan[NORMAL], plan[LIMIT], plan[CELLS] = 1 if normal else 0, limit, cells
    links = shape[0] * shape[1]
    plan[TERMS] = 2
    plan[NULLS] = 2 + links
    plan[EDGES] = 2 + links * (1 + 2 * shape[2]) + shape[0] + shape[1]
    plan[WIDTH] = max(shape[0], shape[1]) + 1
    plan[GOAL] = plan[EDGES] + 4 * plan[WIDTH]
    plan[FREE] = plan[GOAL] + 1
    plan[CHART] = plan[FREE] + 3
    plan[OUTER] = plan[CHART] + 5 * cells
    return plan


@njit(cache=True, nogil=True)
def _multiply_lanes(rows, m, plain, c, base_c, a, base_a, from_a, b, base_b, from_b):
    """`_multiply` without exponents: sixteen numbers of a row of C at a time, kept in registers until they are done.

    Loads may reach into neighbouring rows; what they find there is not used.
    """
    n, zero = rows.shape[2] - 1, m[ZERO]
    top, bottom = rows[from_b, b, n], rows[from_b + 1, b, n]
    for j in range(rows[from_a, a, n], min(rows[from_a + 1, a, n], bottom)):
        last, row_a = rows[HIGH, c, j], base_a + rows[START, a, j]
        first_q, last_q = max(rows[from_a, a, j], top), min(rows[from_a + 1, a, j], bottom, last - 1)
        if first_q >= last_q:
            continue
        for h in range(rows[LOW, c, j], last, LANES):
            at = base_c + rows[START, c, j] + h
            sums = load(m, at)
            for q in range(first_q, last_q):
                x, low, high = m[row_a + q], rows[from_b, b, q] - h, rows[from_b + 1, b, q] - h
                if x == zero or low >= high or low >= LANES or high <= 0:
                    continue
                others = load(m, base_b + rows[START, b, q] + h)
                if plain:
                    sums = between(low, high, multiply_add(splat(x), others, sums), sums)
                else:
                    sums = between(low, high, maximum(add(splat(x), others), sums), sums)
            store(m, at, between(ZERO, last - h, sums, load(m, at)))


@njit(cache=True, nogil=True)
def _multiply(plan, rows, m, e, c, symbol_c, a, symbol_a, from_a, b, symbol_b, from_b):
    """C ⊕= A B, matrices of source spans c, a and b; rows of A and B as far as they were built."""
    n, cells, chart, zero = plan[N_TARGET], plan[CELLS], plan[CHART], m[ZERO]
    base_a, base_b, base_c = chart + symbol_a * cells, chart + symbol_b * cells, chart + symbol_c * cells
    if len(e) == 0:
        _multiply_lanes(rows, m, zero == 0.0, c, base_c, a, base_a, from_a, b, base_b, from_b)
        return
    for j in range(rows[from_a, a, n], rows[from_a + 1, a, n]):
        first, last = rows[LOW, c, j], rows[HIGH, c, j]
        if first >= last:
            continue
        row_a, row_c = base_a + rows[START, a, j], base_c + rows[START, c, j]
        for q in range(rows[from_a, a, j], min(rows[from_a + 1, a, j], n)):
            if m[row_a + q] == zero:
                continue
            h, end = max(first, rows[from_b, b, q]), min(last, rows[from_b + 1, b, q])
            if h < end:
                add_product(m, e, row_c + h, row_a + q, base_b + rows[START, b, q] + h, end - h)


@njit(cache=True, nogil=True)
def _plus(plain, x, y):
    return x + y if plain else max(x, y)


@njit(cache=True, nogil=True)
def _times(plain, x, y):
    return x * y if plain else x + y


@njit(cache=True, nogil=True)
def _finish_narrow(plan, counts, rows, m, i, k, j):
    """`_finish_row` and `_note_built` without exponents, in one go: rows are short, a dozen cells as a rule."""
    n_source, cells, s, zero = plan[N_SOURCE], plan[CELLS], span(plan[N_SOURCE], i, k), m[ZERO]
    plain, limit, normal, nulls = zero == 0.0, plan[LIMIT], plan[NORMAL], plan[NULLS]
    first, last = rows[LOW, s, j], rows[HIGH, s, j]
    w = plan[CHART] + rows[START, s, j]
    st, iv, sl, vr = w + S * cells, w + V * cells, w + SL * cells, w + VR * cells
    h_before, end_before, before, source_null = last, last, ZERO, m[nulls + k - 1]
    if k - i > 1:
        h_before, end_before = rows[LOW, s - 1, j], rows[HIGH, s - 1, j]
        before = plan[CHART] + rows[START, s - 1, j] + S * cells
    h_below, end_below, below, left_null = last, last, ZERO, m[nulls + n_source + j]
    if j + 1 < plan[N_TARGET]:
        h_below, end_below = rows[LOW, s, j + 1], rows[HIGH, s, j + 1]
        below = plan[CHART] + rows[START, s, j + 1] + SL * cells
    leaves, previous = j + plan[SIZE] + 2, zero
    from_w, from_sl, from_vr, to_w, to_sl, to_vr = last, last, last, first, first, first
    for h in range(first, last):
        if limit >= 0 and _pruned(counts, limit, i, k, j, h):
            m[w + h] = m[st + h] = m[iv + h] = m[sl + h] = m[vr + h] = previous = zero
            continue
        straight, inverted = m[st + h], m[iv + h]
        whole = _plus(plain, straight, inverted)
        if h < leaves:
            at = terminal(plan, i, k, j, h)
            if at >= 0:
                leaf = m[plan[TERMS] + at]
                whole = _plus(plain, whole, leaf)
                straight, inverted = _plus(plain, straight, leaf), _plus(plain, inverted, leaf)
        if not normal:
            straight = inverted = whole
        if h_before <= h < end_before:
            straight = _plus(plain, straight, _times(plain, source_null, m[before + h]))
            inverted = _plus(plain, inverted, _times(plain, source_null, m[before + cells + h]))
        left = straight
        if h_below <= h < end_below:
            left = _plus(plain, left, _times(plain, left_null, m[below + h]))
        right = inverted
        if previous != zero:
            right = _plus(plain, right, _times(plain, m[nulls + n_source + h - 1], previous))
        m[w + h], m[st + h], m[iv + h], m[sl + h], m[vr + h] = whole, straight, inverted, left, right
        previous = right
        if whole != zero:
            from_w, to_w = min(from_w, h), h + 1
            rows[W_TOP, s, h] = j  # rows come last first
            rows[W_BOTTOM, s, h] = max(rows[W_BOTTOM, s, h], j + 1)
        if left != zero:
            from_sl, to_sl = min(from_sl, h), h + 1
        if right != zero:
            from_vr, to_vr = min(from_vr, h), h + 1
            rows[VR_TOP, s, h] = j
            rows[VR_BOTTOM, s, h] = max(rows[VR_BOTTOM, s, h], j + 1)
    _note(rows, s, j, W_FROM, from_w, to_w)
    _note(rows, s, j, SL_FROM, from_sl, to_sl)
    _note(rows, s, j, VR_FROM, from_vr, to_vr)


@njit(cache=True, nogil=True)
def _note(rows, s, j, first_at, h, end):
    """Row (s, j) of a symbol was built from h to `end`."""
    rows[first_at, s, j], rows[first_at + 1, s, j] = h, end
    if h < end:
        n = rows.shape[2] - 1
        rows[first_at, s, n] = j  # rows come last first
        rows[first_at + 1, s, n] = max(rows[first_at + 1, s, n], j + 1)


@njit(cache=True, nogil=True)
def _note_built(rows, m, s, j, base, first_at):
    """Note how far row (s, j) of the symbol at `base` was built."""
    h, end, zero = rows[LOW, s, j], rows[HIGH, s, j], m[ZERO]
    base += rows[START, s, j]
    while h < end and m[base + h] == zero:
        h += 1
    while h < end and m[base + end - 1] == zero:
        end -= 1
    _note(rows, s, j, first_at, h, end)


@njit(cache=True, nogil=True)
def _finish_row(plan, counts, rows, m, e, i, k, j):
    """From the two sequences of a row, standing in S and V, its five numbers a cell."""
    n_source, cells, limit, s = plan[N_SOURCE], plan[CELLS], plan[LIMIT], span(plan[N_SOURCE], i, k)
    first, last = rows[LOW, s, j], rows[HIGH, s, j]
    base, width = plan[CHART] + rows[START, s, j], last - first
    for symbol in (S, V):
        settle(m, e, base + symbol * cells + first, width)
        add_product(m, e, base + first, ONE, base + symbol * cells + first, width)
    for h in range(first, min(last, j + plan[SIZE] + 2)):
        at = terminal(plan, i, k, j, h)
        if at >= 0:
            for symbol in (W, S, V):
                add_product(m, e, base + symbol * cells + h, ONE, plan[TERMS] + at, SINGLE)
    settle(m, e, base + first, width)
    for symbol in (S, V):
        here = base + symbol * cells
        if not plan[NORMAL]:
            clear(m, e, here + first, width)
            add_product(m, e, here + first, ONE, base + first, width)
        if k - i > 1:
            h, end = max(first, rows[LOW, s - 1, j]), min(last, rows[HIGH, s - 1, j])
            before = plan[CHART] + symbol * cells + rows[START, s - 1, j]
            add_product(m, e, here + h, plan[NULLS] + k - 1, before + h, end - h)
        settle(m, e, here + first, width)
        add_product(m, e, here + 2 * cells + first, ONE, here + first, width)
    if j + 1 < plan[N_TARGET]:
        h, end = max(first, rows[LOW, s, j + 1]), min(last, rows[HIGH, s, j + 1])
        below = plan[CHART] + SL * cells + rows[START, s, j + 1]
        add_product(m, e, base + SL * cells + h, plan[NULLS] + n_source + j, below + h, end - h)
    settle(m, e, base + SL * cells + first, width)
    for h in range(first, last):
        at = base + VR * cells + h
        if limit >= 0 and _pruned(counts, limit, i, k, j, h):
            for symbol in range(5):
                clear(m, e, base + symbol * cells + h, SINGLE)
        elif h > first:
            add_product(m, e, at, plan[NULLS] + n_source + h - 1, at - 1, SINGLE)
            settle(m, e, at, SINGLE)


@njit(cache=True, nogil=True)
def inside(plan, scores, levels, counts, rows, m, e, zero):
    """Fill memory with terms, edges and chart; the total is number ``plan[GOAL]``.

    `zero` is that of the arithmetic: −∞ for the best, 0 for sums.
    """
    n_source, n_target, cells, chart = plan[N_SOURCE], plan[N_TARGET], plan[CELLS], plan[CHART]
    m[ZERO] = zero
    clear(m, e, ZERO, SINGLE)
    put(m, e, ONE, 0.0, ZERO)
    for t in range(len(scores)):
        put(m, e, plan[TERMS] + t, scores[t], levels[t] if len(levels) else ZERO)
    clear(m, e, plan[EDGES], chart - plan[EDGES] + 5 * cells)
    for i in range(n_source - 1, -1, -1):
        for k in range(i + 1, n_source + 1):
            s = span(n_source, i, k)
            for p in range(i + 1, k):
                a, b = span(n_source, i, p), span(n_source, p, k)
                _multiply(plan, rows, m, e, s, S, a, VR, VR_FROM, b, W, W_FROM)
                _multiply(plan, rows, m, e, s, V, b, W, W_FROM, a, SL, SL_FROM)
            for column in range(W_FROM, VR_TO + 1):
                rows[column, s, n_target] = 0
            for column in range(W_TOP, VR_BOTTOM + 1 if len(e) == 0 else W_TOP):
                for h in range(n_target + 1):
                    rows[column, s, h] = 0
            for j in range(n_target - 1, -1, -1):
                if rows[LOW, s, j] >= rows[HIGH, s, j]:
                    for column in range(W_FROM, VR_TO + 1):
                        rows[column, s, j] = 0
                    continue
                if len(e) == 0:
                    _finish_narrow(plan, counts, rows, m, i, k, j)
                    continue
                _finish_row(plan, counts, rows, m, e, i, k, j)
                _note_built(rows, m, s, j, chart, W_FROM)
                _note_built(rows, m, s, j, chart + SL * cells, SL_FROM)
                _note_built(rows, m, s, j, chart + VR * cells, VR_FROM)
    _edges(plan, m, e)
    _goal(plan, rows, m, e)


@njit(cache=True, nogil=True)
def _edges(plan, m, e):
    """Products of the nulls before each place, and from each place on."""
    for side in range(2):
        n, nulls = plan[N_SOURCE + side], plan[NULLS] + side * plan[N_SOURCE]
        before = plan[EDGES] + 2 * side * plan[WIDTH]
        after = before + plan[WIDTH]
        add_product(m, e, before, ONE, ONE, SINGLE)
        add_product(m, e, after + n, ONE, ONE, SINGLE)
        for t in range(n):
            add_product(m, e, before + t + 1, nulls + t, before + t, SINGLE)
            add_product(m, e, after + n - 1 - t, nulls + n - 1 - t, after + n - t, SINGLE)
            settle(m, e, before + t + 1, SINGLE)
            settle(m, e, after + n - 1 - t, SINGLE)


@njit(cache=True, nogil=True)
def around(plan, m, e, i, k, j):
    """Into number ``plan[FREE] + 1``: the nulls around source span [i, k) and before target word j."""
    free, edges, width = plan[FREE], plan[EDGES], plan[WIDTH]
    clear(m, e, free, SINGLE + 1)
    add_product(m, e, free, edges + i, edges + width + k, SINGLE)
    settle(m, e, free, SINGLE)
    add_product(m, e, free + 1, edges + 2 * width + j, free, SINGLE)
    settle(m, e, free + 1, SINGLE)


@njit(cache=True, nogil=True)
def _goal(plan, rows, m, e):
    """All nulls, or some cell and nulls around it."""
    n_source, goal, free = plan[N_SOURCE], plan[GOAL], plan[FREE] + 2
    tail = plan[EDGES] + 3 * plan[WIDTH]
    add_product(m, e, goal, plan[EDGES] + plan[WIDTH], tail, SINGLE)
    for i in range(n_source):
        for k in range(i + 1, n_source + 1):
            s = span(n_source, i, k)
            for j in range(plan[N_TARGET]):
                if rows[W_FROM, s, j] >= rows[W_TO, s, j]:
                    continue
                around(plan, m, e, i, k, j)
                if len(e) == 0:
                    plain, factor, total = m[ZERO] == 0.0, m[free - 1], m[goal]
                    for h in range(rows[W_FROM, s, j], rows[W_TO, s, j]):
                        one = _times(plain, _times(plain, factor, m[tail + h]), m[plan[CHART] + rows[START, s, j] + h])
                        total = _plus(plain, total, one)
                    m[goal] = total
                    continue
                for h in range(rows[W_FROM, s, j], rows[W_TO, s, j]):
                    clear(m, e, free, SINGLE)
                    add_product(m, e, free, free - 1, tail + h, SINGLE)
                    settle(m, e, free, SINGLE)
                    add_product(m, e, goal, free, plan[CHART] + rows[START, s, j] + h, SINGLE)
    settle(m, e, goal, SINGLE)
