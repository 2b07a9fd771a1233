"""From the whole down through the chart, one choice after the other: the best alignment, or a draw."""

from __future__ import annotations  # noqa: I001

import numpy as np
from numba import njit

from isogloss.structures._numba.itg_chart import (
    CELLS, CHART, EDGES, HIGH, LOW, N_SOURCE, N_TARGET, NORMAL, NULLS, SL, START, TERMS, VR, WIDTH, S, V, W, span,
    terminal,
)  # fmt: skip
from isogloss.structures._numba.itg_rows import ONE, ZERO, level_of, log_of

__all__ = ["walk"]

LEAF, NULL, SPLITS = (np.int64(option) for option in range(3))  # what a cell can be, in the order it is offered


@njit(cache=True, nogil=True)
def _pick(x, levels, n, u, best):
    """Which of n options: the first of the best, or the one that `u` falls on. Only the highest level counts."""
    level, top, first = 0, -np.inf, -1
    for t in range(n):
        if x[t] == -np.inf:
            continue
        if first < 0 or levels[t] > level or (levels[t] == level and x[t] > top):
            level, top, first = levels[t], x[t], t
    if best:
        return first
    mass = 0.0
    for t in range(n):
        x[t] = np.exp(x[t] - top) if levels[t] == level else 0.0
        mass += x[t]
    at, running = first, 0.0
    for t in range(n):
        if x[t] > 0.0 and running <= u * mass:  # the last takes what rounding leaves of the unit
            at = t
        running += x[t]
    return at


@njit(cache=True, nogil=True)
def _offer(m, e, x, levels, t, a, b):
    """Option t is the product of numbers a and b; ZERO stands for cells that are not there."""
    x[t], levels[t] = -np.inf, 0
    if m[a] != m[ZERO] and m[b] != m[ZERO]:
        x[t] = log_of(m, e, a) + log_of(m, e, b)
        levels[t] = level_of(m, e, a) + level_of(m, e, b)


@njit(cache=True, nogil=True)
def _at(plan, rows, symbol, i, k, j, h):
    """Where a cell stands; ZERO if it is not there."""
    s = span(plan[N_SOURCE], i, k)
    if i >= k or j >= h or not rows[LOW, s, j] <= h < rows[HIGH, s, j]:
        return ZERO
    return plan[CHART] + symbol * plan[CELLS] + rows[START, s, j] + h


@njit(cache=True, nogil=True)
def _splits(plan, rows, m, e, i, k, j, h, symbol, x, levels, t):
    """Options t and on: all cuts of the cell in two, a VR or an SL first; returns the number after the last."""
    for p in range(i + 1, k):
        for q in range(j + 1, h):
            if symbol == VR:
                left, right = _at(plan, rows, symbol, i, p, j, q), _at(plan, rows, W, p, k, q, h)
            else:
                left, right = _at(plan, rows, symbol, i, p, q, h), _at(plan, rows, W, p, k, j, q)
            _offer(m, e, x, levels, t, left, right)
            t += 1
    return t


@njit(cache=True, nogil=True)
def _push(stack, depth, symbol, i, k, j, h):
    cell = stack[depth]
    cell[0], cell[1], cell[2], cell[3], cell[4] = symbol, i, k, j, h


@njit(cache=True, nogil=True)
def _open(plan, rows, m, e, best, x, levels, u, stack, depth, out):
    """Open a W, S or V: take its terminal, or its source null, or push its two parts; returns the new depth."""
    cell = stack[depth]
    symbol, i, k, j, h = cell[0], cell[1], cell[2], cell[3], cell[4]
    at, null = terminal(plan, i, k, j, h), plan[NULLS] + k - 1
    _offer(m, e, x, levels, LEAF, ONE, plan[TERMS] + at if at >= 0 else ZERO)
    _offer(m, e, x, levels, NULL, null, _at(plan, rows, symbol, i, k - 1, j, h) if symbol != W else ZERO)
    inverted = SPLITS
    if symbol != V or not plan[NORMAL]:
        inverted = _splits(plan, rows, m, e, i, k, j, h, VR, x, levels, SPLITS)
    count = inverted
    if symbol != S or not plan[NORMAL]:
        count = _splits(plan, rows, m, e, i, k, j, h, SL, x, levels, inverted)
    chosen = _pick(x, levels, count, u, best)
    if chosen == LEAF:
        out[at] = 1.0
        return depth
    if chosen == NULL:
        out[null - plan[TERMS]] = 1.0
        cell[2] = k - 1
        return depth + 1
    straight, ways = chosen < inverted, h - j - 1
    chosen -= SPLITS if straight else inverted
    p, q = i + 1 + chosen // ways, j + 1 + chosen % ways
    if straight:
        _push(stack, depth, W, p, k, q, h)
        _push(stack, depth + 1, VR, i, p, j, q)
    else:
        _push(stack, depth, W, p, k, j, q)
        _push(stack, depth + 1, SL, i, p, q, h)
    return depth + 2


@njit(cache=True, nogil=True)
def _strip(plan, rows, m, e, best, x, levels, u, cell, out):
    """Take a target null off an SL or VR, or turn to the S or V below; the cell stays on the stack."""
    symbol, i, k, j, h = cell[0], cell[1], cell[2], cell[3], cell[4]
    left = symbol == SL
    null = plan[NULLS] + plan[N_SOURCE] + (j if left else h - 1)
    shorter = _at(plan, rows, symbol, i, k, j + 1, h) if left and j + 1 < h else ZERO
    if not left:
        shorter = _at(plan, rows, symbol, i, k, j, h - 1)
    _offer(m, e, x, levels, LEAF, ONE, _at(plan, rows, symbol - 2, i, k, j, h))
    _offer(m, e, x, levels, NULL, null, shorter)
    if _pick(x, levels, SPLITS, u, best) == LEAF:
        cell[0] = symbol - 2
        return
    out[null - plan[TERMS]] = 1.0
    if left:
        cell[3] = j + 1
    else:
        cell[4] = h - 1


@njit(cache=True, nogil=True)
def _begin(plan, rows, m, e, best, x, levels, u, stack, out):
    """Choose the cell that holds all links and mark the nulls around it; returns the depth, 0 for nulls alone."""
    n_source, n_target, edges, width = plan[N_SOURCE], plan[N_TARGET], plan[EDGES], plan[WIDTH]
    _offer(m, e, x, levels, LEAF, edges + width, edges + 3 * width)
    for i in range(n_source):
        for k in range(i + 1, n_source + 1):
            s = span(n_source, i, k)
            for j in range(n_target):
                ends = log_of(m, e, edges + width + k) + log_of(m, e, edges + 2 * width + j)
                for h in range(rows[LOW, s, j], rows[HIGH, s, j]):
                    at = 1 + rows[START, s, j] + h
                    _offer(m, e, x, levels, at, edges + i, plan[CHART] + at - 1)
                    x[at] += ends + log_of(m, e, edges + 3 * width + h)
    chosen = _pick(x, levels, plan[CELLS] + 1, u, best) - 1
    _push(stack, ZERO, W, n_source, n_source, n_target, n_target)
    for i in range(n_source):
        for k in range(i + 1, n_source + 1):
            s = span(n_source, i, k)
            for j in range(n_target):
                h = chosen - rows[START, s, j]
                if chosen >= 0 and rows[LOW, s, j] <= h < rows[HIGH, s, j]:
                    _push(stack, ZERO, W, i, k, j, h)
    nulls = n_source * n_target
    for word in range(n_source):
        out[nulls + word] = 0.0 if stack[0, 1] <= word < stack[0, 2] else 1.0
    for word in range(n_target):
        out[nulls + n_source + word] = 0.0 if stack[0, 3] <= word < stack[0, 4] else 1.0
    return 1 if chosen >= 0 else 0


@njit(cache=True, nogil=True)
def walk(plan, rows, m, e, u, out):
    """Mark in `out`, laid out as the terms, the parts of the best alignment, or of one drawn with the numbers `u`."""
    n_source, n_target, best = plan[N_SOURCE], plan[N_TARGET], len(u) == 0
    options = max(plan[CELLS] + 1, 2 + 2 * n_source * n_target)
    x, levels = np.empty(options), np.empty(options, np.int64)
    stack = np.empty((2 * (n_source + n_target) + 4, 5), np.int64)
    turn = 0
    depth = _begin(plan, rows, m, e, best, x, levels, 0.0 if best else u[0], stack, out)
    while depth > 0:
        turn += 1
        draw = 0.0 if best else u[turn]
        cell = stack[depth - 1]
        if cell[0] == SL or cell[0] == VR:
            _strip(plan, rows, m, e, best, x, levels, draw, cell, out)
        else:
            depth = _open(plan, rows, m, e, best, x, levels, draw, stack, depth - 1, out)
