"""Sweeps over charts of bispans, in any semiring, and how charts are made.

A cell is a bispan. What stands in it is built in a fixed order, so that nulls around a core have one place each:

=====  ============================================================================================
TERM   a terminal
CUT    two cells side by side, in the same order or swapped
P1     a core, TERM (and CUT, where nulls are free), and source nulls on its left, one after the other
P2     the same, and source nulls on its right
P3     the same, and target nulls on its left
P4     the same, and target nulls on its right
WHOLE  P4, or CUT where nulls are only at terminals: what may be a part of a larger cell
=====  ============================================================================================

Unless nulls are free, those on the right are only for the end of the sentence.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.semiring import total, weights

__all__ = ["bitrees", "candidates", "count_splits", "fill_splits", "useful"]

TERM, CUT, P1, P2, P3, P4, WHOLE = range(7)
N_STATES = 7


@njit(cache=True, nogil=True)
def _two(sr, x, first, second):
    x[0], x[1] = first, second
    return total(sr, x[:2])


@njit(cache=True, nogil=True)
def _share(sr, x, out, n, u, turn):
    """Weights of the first n numbers of x; with numbers in u, one is used."""
    draw = 0.0
    if len(u):
        draw = u[turn]
    weights(sr, x[:n], out[:n], draw)
    return turn + 1


@njit(cache=True, nogil=True)
def _cuts(splits, begin, end, state, x):
    for e in range(begin, end):
        x[e - begin] = state[WHOLE, splits[e, 0]] + state[WHOLE, splits[e, 1]]


@njit(cache=True, nogil=True)
def _inside(sr, free, n, m, cells, terms, splits, starts, around, scores, state, x):
    """States of all cells, small ones first."""
    n_cells, n_terms = len(cells), len(terms)
    first_term = n + m
    first_cell = first_term + n_terms
    at = 0
    for c in range(n_cells):
        i, k, j, h = cells[c]
        own = scores[first_cell + c]
        count = 0
        while at < n_terms and terms[at] == c:
            x[count] = scores[first_term + at]
            at, count = at + 1, count + 1
        state[TERM, c] = total(sr, x[:count]) + own
        _cuts(splits, starts[c], starts[c + 1], state, x)
        state[CUT, c] = total(sr, x[: starts[c + 1] - starts[c]]) + own
        before = around[c]
        x[0] = state[TERM, c]
        x[1] = state[CUT, c] if free else -np.inf
        x[2] = scores[i] + own + state[P1, before[0]] if before[0] >= 0 else -np.inf
        state[P1, c] = total(sr, x[:3])
        grown = scores[k - 1] + own + state[P2, before[1]] if before[1] >= 0 else -np.inf
        state[P2, c] = _two(sr, x, state[P1, c], grown)
        grown = scores[n + j] + own + state[P3, before[2]] if before[2] >= 0 else -np.inf
        state[P3, c] = _two(sr, x, state[P2 if free or k == n else P1, c], grown)
        grown = scores[n + h - 1] + own + state[P4, before[3]] if before[3] >= 0 else -np.inf
        state[P4, c] = _two(sr, x, state[P3, c], grown)
        best = state[P4 if free or h == m else P3, c]
        state[WHOLE, c] = best if free else _two(sr, x, best, state[CUT, c])


@njit(cache=True, nogil=True)
def _outside(sr, free, n, m, cells, terms, splits, starts, around, scores, state, u, turn, back, x, w, grad):
    """Derivatives by all scores, from that of the whole in `back`, large cells first."""
    n_terms = len(terms)
    first_term = n + m
    first_cell = first_term + n_terms
    at = n_terms
    for c in range(len(cells) - 1, -1, -1):
        i, k, j, h = cells[c]
        own = scores[first_cell + c]
        before = around[c]
        used = 0.0
        count = 0
        while at > 0 and terms[at - 1] == c:
            at, count = at - 1, count + 1
        if back[WHOLE, c] > 0.0:
            last = P4 if free or h == m else P3
            if free:
                back[last, c] += back[WHOLE, c]
            else:
                x[0], x[1] = state[last, c], state[CUT, c]
                turn = _share(sr, x, w, 2, u, turn)
                back[last, c] += back[WHOLE, c] * w[0]
                back[CUT, c] += back[WHOLE, c] * w[1]
        if back[P4, c] > 0.0:
            x[0] = state[P3, c]
            x[1] = scores[n + h - 1] + own + state[P4, before[3]] if before[3] >= 0 else -np.inf
            turn = _share(sr, x, w, 2, u, turn)
            back[P3, c] += back[P4, c] * w[0]
            if w[1] > 0.0:
                grown = back[P4, c] * w[1]
                back[P4, before[3]] += grown
                grad[n + h - 1] += grown
                used += grown
        if back[P3, c] > 0.0:
            last = P2 if free or k == n else P1
            x[0] = state[last, c]
            x[1] = scores[n + j] + own + state[P3, before[2]] if before[2] >= 0 else -np.inf
            turn = _share(sr, x, w, 2, u, turn)
            back[last, c] += back[P3, c] * w[0]
            if w[1] > 0.0:
                grown = back[P3, c] * w[1]
                back[P3, before[2]] += grown
                grad[n + j] += grown
                used += grown
        if back[P2, c] > 0.0:
            x[0] = state[P1, c]
            x[1] = scores[k - 1] + own + state[P2, before[1]] if before[1] >= 0 else -np.inf
            turn = _share(sr, x, w, 2, u, turn)
            back[P1, c] += back[P2, c] * w[0]
            if w[1] > 0.0:
                grown = back[P2, c] * w[1]
                back[P2, before[1]] += grown
                grad[k - 1] += grown
                used += grown
        if back[P1, c] > 0.0:
            x[0] = state[TERM, c]
            x[1] = state[CUT, c] if free else -np.inf
            x[2] = scores[i] + own + state[P1, before[0]] if before[0] >= 0 else -np.inf
            turn = _share(sr, x, w, 3, u, turn)
            back[TERM, c] += back[P1, c] * w[0]
            back[CUT, c] += back[P1, c] * w[1]
            if w[2] > 0.0:
                grown = back[P1, c] * w[2]
                back[P1, before[0]] += grown
                grad[i] += grown
                used += grown
        if back[CUT, c] > 0.0:
            begin, end = starts[c], starts[c + 1]
            _cuts(splits, begin, end, state, x)
            turn = _share(sr, x, w, end - begin, u, turn)
            for e in range(begin, end):
                share = back[CUT, c] * w[e - begin]
                if share > 0.0:
                    back[WHOLE, splits[e, 0]] += share
                    back[WHOLE, splits[e, 1]] += share
        if back[TERM, c] > 0.0:
            for t in range(count):
                x[t] = scores[first_term + at + t]
            turn = _share(sr, x, w, count, u, turn)
            for t in range(count):
                grad[first_term + at + t] = back[TERM, c] * w[t]
        grad[first_cell + c] = used + back[TERM, c] + back[CUT, c]


@njit(cache=True, nogil=True)
def bitrees(
    block, blocks, sr, free, rows, sizes, cell_offsets, cells, term_offsets, terms, splits, split_starts, around,
    scores, offsets, u, draws, grad, values,
):  # fmt: skip
    """⊕ over the derivations of some pairs, and its derivatives; item s is about the chart of pair ``rows[s]``."""
    for s in range(block, len(rows), blocks):
        pair = rows[s]
        n, m = sizes[pair]
        own, out = scores[offsets[s] : offsets[s + 1]], grad[offsets[s] : offsets[s + 1]]
        out[:] = 0.0
        first, last = cell_offsets[pair], cell_offsets[pair + 1]
        here, starts = cells[first:last], split_starts[first : last + 1]
        near, found = around[first:last], terms[term_offsets[pair] : term_offsets[pair + 1]]
        widest = max(4, len(found))
        for c in range(len(here)):
            widest = max(widest, starts[c + 1] - starts[c])
        x, w = np.empty(widest), np.empty(widest)
        state, back = np.empty((N_STATES, len(here))), np.zeros((N_STATES, len(here)))
        _inside(sr, free, n, m, here, found, splits, starts, near, own, state, x)
        nothing = 0.0
        for word in range(n + m):
            nothing += own[word]
        x[0] = nothing
        x[1] = state[WHOLE, len(here) - 1] if len(here) else -np.inf
        values[s] = total(sr, x[:2])
        mine = u[draws[s] : draws[s + 1]]
        turn = _share(sr, x, w, 2, mine, 0)
        for word in range(n + m):
            out[word] = w[0]
        if len(here) and w[1] > 0.0:
            back[WHOLE, len(here) - 1] = w[1]
            _outside(sr, free, n, m, here, found, splits, starts, near, own, state, mine, turn, back, x, w, out)


@njit(cache=True, nogil=True)
def candidates(n, m, counts, limit, out):
    """Bispans that break at most `limit` links (all, if negative); how many. `counts` are links before each corner."""
    found = 0
    for i in range(n):
        for k in range(i + 1, n + 1):
            on_source = counts[k, m] - counts[i, m]
            for j in range(m):
                for h in range(j + 1, m + 1):
                    inside = counts[k, h] - counts[i, h] - counts[k, j] + counts[i, j]
                    broken = on_source + counts[n, h] - counts[n, j] - 2 * inside
                    whole = k - i == n and h - j == m
                    if limit < 0 or broken <= limit or whole:
                        if len(out):
                            out[found, 0], out[found, 1], out[found, 2], out[found, 3] = i, k, j, h
                        found += 1
    return found


@njit(cache=True, nogil=True)
def _number(n, m, cells):
    """Numbers of cells by their corners, −1 where there is none."""
    number = np.full(((n + 1) * (n + 1), (m + 1) * (m + 1)), -1, np.int32)
    for c in range(len(cells)):
        i, k, j, h = cells[c]
        number[i * (n + 1) + k, j * (m + 1) + h] = c
    return number


@njit(cache=True, nogil=True)
def _find_splits(n, m, cell, number, out, at):
    """Pairs of cells that make up a cell, written from `at` on if there is room; the number after the last."""
    i, k, j, h = cell
    wide = len(out) > 0
    for p in range(i + 1, k):
        first, second = number[i * (n + 1) + p], number[p * (n + 1) + k]
        for q in range(j + 1, h):
            left, right = first[j * (m + 1) + q], second[q * (m + 1) + h]
            if left >= 0 and right >= 0:
                if wide:
                    out[at, 0], out[at, 1] = left, right
                at += 1
            left, right = first[q * (m + 1) + h], second[j * (m + 1) + q]
            if left >= 0 and right >= 0:
                if wide:
                    out[at, 0], out[at, 1] = left, right
                at += 1
    return at


@njit(cache=True, nogil=True)
def count_splits(n, m, cells, starts):
    """Where the splits of each cell begin."""
    number, nothing = _number(n, m, cells), np.zeros((0, 2), np.int32)
    starts[0] = 0
    for c in range(len(cells)):
        starts[c + 1] = _find_splits(n, m, cells[c], number, nothing, starts[c])


@njit(cache=True, nogil=True)
def fill_splits(n, m, cells, starts, splits, around):
    """Splits of all cells, and the cells with one word less on either end of either side."""
    number = _number(n, m, cells)
    for c in range(len(cells)):
        i, k, j, h = cells[c]
        _find_splits(n, m, cells[c], number, splits, starts[c])
        source, target = i * (n + 1) + k, j * (m + 1) + h
        around[c, 0] = number[source + n + 1, target] if k - i > 1 else -1
        around[c, 1] = number[source - 1, target] if k - i > 1 else -1
        around[c, 2] = number[source, target + m + 1] if h - j > 1 else -1
        around[c, 3] = number[source, target - 1] if h - j > 1 else -1


@njit(cache=True, nogil=True)
def useful(cells, terms, starts, splits, around, keep):
    """Mark the cells that can be built and that the whole can be built of, as far as corners tell."""
    n_cells = len(cells)
    built = np.zeros(n_cells, np.bool_)
    for t in range(len(terms)):
        built[terms[t]] = True
    for c in range(n_cells):
        for side in range(4):
            if around[c, side] >= 0 and built[around[c, side]]:
                built[c] = True
        for e in range(starts[c], starts[c + 1]):
            if built[c]:
                break
            if built[splits[e, 0]] and built[splits[e, 1]]:
                built[c] = True
    keep[:] = False
    if n_cells:
        keep[n_cells - 1] = True
    for c in range(n_cells - 1, -1, -1):
        if not keep[c]:
            continue
        for side in range(4):
            if around[c, side] >= 0 and built[around[c, side]]:
                keep[around[c, side]] = True
        for e in range(starts[c], starts[c + 1]):
            if built[splits[e, 0]] and built[splits[e, 1]]:
                keep[splits[e, 0]] = True
                keep[splits[e, 1]] = True
