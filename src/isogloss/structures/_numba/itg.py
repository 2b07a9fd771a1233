"""Inversion transduction grammars over one sentence pair, and over many: sums, the best, and draws.

Scores come and parts go as one vector a pair; see `terminal` in `itg_chart` for its layout.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.itg_chart import GOAL, HIGH, LOW, OUTER, START, inside, make_plan, make_rows
from isogloss.structures._numba.itg_outside import more_memory, outside
from isogloss.structures._numba.itg_rows import PADDING, level_of, log_of
from isogloss.structures._numba.itg_walk import walk

__all__ = ["BEST", "DRAW", "POSTERIORS", "chart_cells", "itg", "itgs", "used_rows"]

POSTERIORS, BEST, DRAW = (np.int64(want) for want in range(3))

# With terms of at most 1, a number that falls below 2e-308 was worth less than that, times the ways to complete it:
# with so many words, fewer than 1e180. Against a total of 1e-100 that is nothing. Nor can the sum overflow.
PLAIN_WORDS, PLAIN_LEAST, PLAIN_MOST = 200, 1e-100, 1e300


@njit(cache=True, nogil=True)
def chart_cells(n_source, n_target, counts, limit, bounds):
    """How many cells a chart has."""
    return make_rows(n_source, n_target, counts, limit, bounds)[1]


@njit(cache=True, nogil=True)
def used_rows(shape, normal, scores, levels, counts, limit, bounds):
    """int16[2, n_spans, n_target]: from where to where each row has cells of an alignment of the highest level.

    Without spans when nothing is allowed. Parameters as for `itg`.
    """
    rows, cells = make_rows(shape[0], shape[1], counts, limit, bounds)
    plan = make_plan(shape, normal, limit, cells)
    size = plan[OUTER] + more_memory(plan, rows) + PADDING
    m, e = np.empty(size), np.empty(size, np.int64)
    inside(plan, scores, levels, counts, rows, m, e, 0.0)
    if m[plan[GOAL]] == 0.0:
        return np.empty((2, 0, shape[1]), np.int16)
    used = np.zeros(cells, np.bool_)
    outside(plan, rows, m, e, np.zeros(len(scores)), used)
    found = np.zeros((2, rows.shape[1], shape[1]), np.int16)
    for s in range(rows.shape[1]):
        for j in range(shape[1]):
            first, last, start = np.int64(rows[LOW, s, j]), np.int64(rows[HIGH, s, j]), rows[START, s, j]
            while first < last and not used[start + first]:
                first += 1
            while first < last and not used[start + last - 1]:
                last -= 1
            found[0, s, j], found[1, s, j] = first, last
    return found


@njit(cache=True, nogil=True)
def itg(want, shape, normal, scores, levels, counts, limit, bounds, exact, u, out):
    """`itg_in` with memory of its own."""
    return itg_in(np.empty(0), want, shape, normal, scores, levels, counts, limit, bounds, exact, u, out)[:2]


@njit(cache=True, nogil=True)
def itg_in(memory, want, shape, normal, scores, levels, counts, limit, bounds, exact, u, out):
    """log of the sum over all alignments of the highest level, and that level; or the best score, and 0; and memory.

    −∞ when nothing is allowed.

    Parameters
    ----------
    memory : float64[.]
        To work in, whatever it holds; more is taken where it is too small, and returned for the next sentence: memory
        that is new costs as much time as a chart.
    want : POSTERIORS, BEST or DRAW
    shape : int64[3]
        Source words, target words, and block sizes above 1.
    normal : bool
        Normal form, or the simple grammar.
    scores : float64[n_terms]
        Log scores of links, nulls and blocks.
    levels : int64[n_terms]
        What each term adds to the level; empty when all have the same. BEST does not read it.
    counts, limit : int64[n_source + 1, n_target + 1], int
        Cumulative counts of confident links, and how many of them a cell may break; negative: any number.
    bounds : int16[2, n_spans, n_target]
        From where to where each row of the chart goes, where that is known; no spans otherwise.
    exact : bool
        Do not try plain numbers first. They are tried when no levels are given, are meant for scores of at most 0, of
        which the best alignments come close to 0, and give way to wide numbers when that does not hold.
    u : float64[n]
        Uniform on [0, 1), read by DRAW only.
    out : float64[n_terms]
        Zeros; overwritten with posteriors, or with the parts of one alignment.
    """
    rows, cells = make_rows(shape[0], shape[1], counts, limit, bounds)
    plan = make_plan(shape, normal, limit, cells)
    size = plan[OUTER] + (more_memory(plan, rows) if want == POSTERIORS else 0) + PADDING
    if len(memory) < size:
        memory = np.empty(size)
    m, e = memory[:size], np.empty(0, np.int64)
    wide = want != BEST and (exact or len(levels) > 0 or shape[0] + shape[1] > PLAIN_WORDS)
    if not wide:
        inside(plan, scores, levels, counts, rows, m, e, -np.inf if want == BEST else 0.0)
        wide = want != BEST and not PLAIN_LEAST <= m[plan[GOAL]] <= PLAIN_MOST
    if wide:
        e = np.empty(size, np.int64)
        inside(plan, scores, levels, counts, rows, m, e, 0.0)
    value, level = log_of(m, e, plan[GOAL]), level_of(m, e, plan[GOAL])
    if value > -np.inf:
        if want == POSTERIORS:
            outside(plan, rows, m, e, out, np.empty(0, np.bool_))
        else:
            walk(plan, rows, m, e, u if want == DRAW else u[:0], out)
    return value, level, memory


@njit(cache=True, nogil=True)
def itgs(
    block, count, order, want, shapes, normal, scores, offsets, levels, level_offsets, counts, count_offsets, limits,
    bounds, bound_offsets, exact, u, starts, out, values, tops,
):  # fmt: skip
    """`itg` on sentences ``order[block]``, ``order[block + count]``, … of many; best with the largest first.

    Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]`` and so on; `levels`, `counts` and `bounds` are empty where
    it has none.
    """
    memory = np.empty(0)
    for t in range(block, len(shapes), count):
        s = order[t]
        here = counts[count_offsets[s] : count_offsets[s + 1]]
        if limits[s] < 0:
            table = np.zeros((1, 1), np.int64)
        else:
            table = here.reshape((shapes[s, 0] + 1, shapes[s, 1] + 1))
        first, last, width = bound_offsets[s], bound_offsets[s + 1], max(1, shapes[s, 1])
        known = bounds[first:last].reshape((2, (last - first) // (2 * width), width))
        values[s], tops[s], memory = itg_in(
            memory, want, shapes[s], normal[s], scores[offsets[s] : offsets[s + 1]],
            levels[level_offsets[s] : level_offsets[s + 1]], table, limits[s], known, exact,
            u[starts[s] : starts[s + 1]], out[offsets[s] : offsets[s + 1]],
        )  # fmt: skip
