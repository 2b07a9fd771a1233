"""Log Z and marginals of `aligned_segments` in probabilities: many times faster than in logarithms, and as exact.

Every node v gets a potential, the score of the best way there if positions could be chosen freely at each arc; the
weight of an arc is exp of its own score, of the best of its row and of the largest step, between the potentials of its
two ends. At borders of words, which all paths pass, sums are scaled to 1. What could go wrong is underflow, and it is
ruled out: every weight of a part that is not exactly 0 has to be at least `LEAST` (as in
`isogloss.structures._numba.chain_scaled`), forward sums below `LEAST` are dropped, such as that of no link so far in
the middle of a sentence, and the backward sums show whether anything was lost: what was dropped at a node has a
posterior of less than `LEAST` times its backward sum, which may be `NOTICED` at most. No forward sum may be above
`MOST`. Where a bound is broken, the kernel in logarithms takes over for the sentence.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.aligned_segments import aligned_segments, begins_of
from isogloss.structures._numba.chain_scaled import LEAST, LOWEST

__all__ = ["log_aligned_segments", "log_aligned_segments_all"]

MOST = 1.0 / LEAST  # the largest forward sum to work with
NOTICED = 1e-20 / LEAST  # a posterior below 1e-20 does not change any sum


@njit(cache=True, nogil=True)
def _raise(scores, begin, end, out, at):
    """Weights of scores, less the largest, which is returned; NaN where one is too small, −∞ where all are 0."""
    top = -np.inf
    for c in range(begin, end):
        top = max(top, scores[c])
    if top == -np.inf:
        out[at : at + end - begin] = 0.0
        return top
    for c in range(begin, end):
        less = scores[c] - top
        if less < LOWEST:
            if less > -np.inf:
                return np.nan
            out[at + c - begin] = 0.0
        else:
            out[at + c - begin] = np.exp(less)
    return top


@njit(cache=True, nogil=True)
def _potentials(scores, at_arcs, tails, heads, rows, across, tops, tolls, level, own):
    """Fill weights of arcs between potentials; whether all fit."""
    level[:] = -np.inf
    level[0] = 0.0
    for a in range(len(tails)):
        score = level[tails[a]] + scores[at_arcs + a] + tops[rows[a]] + tolls[across[tails[a]]]
        level[heads[a]] = max(level[heads[a]], score)
        own[a] = score
    for a in range(len(tails)):
        if own[a] == -np.inf:
            own[a] = 0.0
            continue
        less = own[a] - level[heads[a]]
        if less < LOWEST:
            return False
        own[a] = np.exp(less)
    return True


@njit(cache=True, nogil=True)
def _settle(values):
    """Drop what is too small to work with; whether nothing is too large."""
    fits = True
    for i in range(len(values)):
        if values[i] < LEAST:
            values[i] = 0.0
        elif not values[i] <= MOST:
            fits = False
    return fits


@njit(cache=True, nogil=True)
def _forward(m, tails, heads, rows, across, begins, em, own, steps, alpha, carried, enter, scales):
    """Fill forward sums; whether all fit."""
    width, last = m + 1, len(across) - 1
    alpha[0, 1, m] = 1.0
    for v in range(last + 1):
        if not _settle(alpha[v, 0]) or not _settle(alpha[v, 1]):
            return False
        mass = 0.0
        for i in range(width):
            carried[v, i] = alpha[v, 0, i] + alpha[v, 1, i]
            mass += carried[v, i]
        scales[v] = 1.0
        if (across[v] or v == last) and mass > 0.0:
            scales[v] = mass
            for i in range(width):
                carried[v, i] /= mass
        if v == last:
            break
        table = steps[across[v]]
        link, null = enter[v, 0], enter[v, 1]
        for i in range(width):
            much = carried[v, i]
            if much == 0.0:
                continue
            for j in range(m):
                link[j] += much * table[i, j]
            null[i] = much * table[i, m]
        for a in range(begins[v], begins[v + 1]):
            weight = own[a]
            if weight == 0.0:
                continue
            row, linked, left = em[rows[a]], alpha[heads[a], 0], alpha[heads[a], 1]
            for j in range(m):
                linked[j] += weight * row[j] * link[j]
            weight *= row[m]
            for i in range(width):
                left[i] += weight * null[i]
    return True


@njit(cache=True, nogil=True)
def _backward(m, tails, heads, rows, across, begins, em, own, steps, finals, carried, enter, scales, mass, at_arcs,
              grad):  # fmt: skip
    """Posteriors, from what follows each node; whether nothing was lost by what was dropped before."""
    width, last = m + 1, len(across) - 1
    at_steps = at_arcs + len(tails)
    at_final = at_steps + 2 * width * width
    after, turned = np.zeros((last + 1, width)), np.empty((2, width, width))
    flows = np.zeros((2, width, width))
    for kind in range(2):
        turned[kind] = steps[kind].T
    for i in range(width):
        after[last, i] = finals[i] / mass
        grad[at_final + i] = carried[last, i] * after[last, i]
        after[last, i] /= scales[last]
        if after[last, i] > NOTICED:
            return False
    linked, left = np.empty(width), np.empty(width)
    for v in range(last - 1, -1, -1):
        linked[:], left[:] = 0.0, 0.0
        link, null = enter[v, 0], enter[v, 1]
        for a in range(begins[v], begins[v + 1]):
            weight = own[a]
            if weight == 0.0:
                continue
            row, behind, at = em[rows[a]], after[heads[a]], rows[a] * width
            whole = 0.0
            for j in range(m):
                part = weight * row[j] * behind[j]
                linked[j] += part
                part *= link[j]
                grad[at + j] += part
                whole += part
            weight *= row[m]
            nulls = 0.0
            for i in range(width):
                part = weight * behind[i]
                left[i] += part
                nulls += part * null[i]
            grad[at + m] += nulls
            grad[at_arcs + a] += whole + nulls
        kind = across[v]
        before, table, flow = after[v], turned[kind], flows[kind]
        for j in range(m):
            much = linked[j]
            if much == 0.0:
                continue
            for i in range(width):
                before[i] += much * table[j, i]
                flow[j, i] += much * carried[v, i]
        for i in range(width):
            before[i] += left[i] * table[m, i]
            flow[m, i] += left[i] * carried[v, i]
            before[i] /= scales[v]
            if not before[i] <= NOTICED:
                return False
    for kind in range(2):
        for j in range(width):
            for i in range(width):
                grad[at_steps + (kind * width + i) * width + j] = flows[kind, j, i] * turned[kind, j, i]
    return True


@njit(cache=True, nogil=True)
def log_aligned_segments(sr, scores, n_rows, m, tails, heads, rows, across, grad):
    """What `aligned_segments` gives with LOG, by probabilities where they fit."""
    width, n_nodes = m + 1, len(across)
    at_arcs = n_rows * width
    at_steps = at_arcs + len(tails)
    at_final = at_steps + 2 * width * width
    em, tops, own = np.empty(at_arcs), np.empty(n_rows), np.empty(len(tails))
    moves, finals, tolls = np.empty(2 * width * width), np.empty(width), np.empty(2)
    fits = True
    for r in range(n_rows):
        tops[r] = _raise(scores, r * width, (r + 1) * width, em, r * width)
        fits = fits and not np.isnan(tops[r])
    for kind in range(2):
        begin = at_steps + kind * width * width
        tolls[kind] = _raise(scores, begin, begin + width * width, moves, kind * width * width)
        fits = fits and not np.isnan(tolls[kind])
    end = _raise(scores, at_final, at_final + width, finals, 0)
    level = np.empty(n_nodes)
    if fits and not np.isnan(end) and _potentials(
        scores, at_arcs, tails, heads, rows, across, tops, tolls, level, own
    ):  # fmt: skip
        steps, table = moves.reshape(2, width, width), em.reshape(n_rows, width)
        begins = begins_of(tails, n_nodes)
        alpha, carried = np.zeros((n_nodes, 2, width)), np.zeros((n_nodes, width))
        enter, scales = np.zeros((n_nodes, 2, width)), np.empty(n_nodes)
        if _forward(m, tails, heads, rows, across, begins, table, own, steps, alpha, carried, enter, scales):
            mass = 0.0
            for i in range(width):
                mass += carried[n_nodes - 1, i] * finals[i]
            if mass >= LEAST and _backward(
                m, tails, heads, rows, across, begins, table, own, steps, finals, carried, enter, scales, mass,
                at_arcs, grad,
            ):  # fmt: skip
                value = np.log(mass) + level[n_nodes - 1] + end
                for v in range(n_nodes):
                    value += np.log(scales[v])
                return value
            grad[:] = 0.0
    return aligned_segments(sr, scores, n_rows, m, tails, heads, rows, across, grad, np.empty(0))


@njit(cache=True, nogil=True)
def log_aligned_segments_all(
    block, blocks, sr, scores, offsets, n_rows, ms, tails, heads, rows, arc_offsets, across, node_offsets, grad, values
):
    """`log_aligned_segments` of sentences block, block + blocks, …"""
    for s in range(block, len(values), blocks):
        here, own = slice(offsets[s], offsets[s + 1]), slice(arc_offsets[s], arc_offsets[s + 1])
        values[s] = log_aligned_segments(
            sr, scores[here], n_rows[s], ms[s], tails[own], heads[own], rows[own],
            across[node_offsets[s] : node_offsets[s + 1]], grad[here],
        )  # fmt: skip
