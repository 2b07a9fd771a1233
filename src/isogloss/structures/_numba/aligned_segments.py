"""Paths through a lattice of segments with a source position for each: one sweep over nodes, and the same backward.

A sentence has one vector of scores: ``emission[n_rows, m + 1]`` (a segment under each of m source positions, then under
null), ``weights[n_arcs]``, ``inside[m + 1, m + 1]`` and ``across[m + 1, m + 1]`` (from the position that is carried,
the last row being for none yet, to each position, the last column being for null), and ``final[m + 1]``.

Nodes are numbered so that arcs go up; arcs come by their tails. What a node has to remember is how it was arrived at
(0 by a link, 1 by null) and which position is carried.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.semiring import total, weights

__all__ = ["aligned_segments", "aligned_segments_all", "arcs_into", "begins_of"]


@njit(cache=True, nogil=True)
def begins_of(tails, n_nodes):
    """int64[n_nodes + 1]: where the arcs out of each node begin."""
    found = np.zeros(n_nodes + 1, np.int64)
    for a in range(len(tails)):
        found[tails[a] + 1] += 1
    for v in range(n_nodes):
        found[v + 1] += found[v]
    return found


@njit(cache=True, nogil=True)
def arcs_into(heads, n_nodes):
    """The arcs into each node, in order, and where those of each begin."""
    begins = begins_of(heads, n_nodes)
    place, found = begins[:-1].copy(), np.empty(len(heads), np.int64)
    for a in range(len(heads)):
        found[place[heads[a]]] = a
        place[heads[a]] += 1
    return found, begins


@njit(cache=True, nogil=True)
def _drawn(u, at):
    return u[at] if len(u) else 0.0


@njit(cache=True, nogil=True)
def _arrives(v, how, i, m, scores, tails, rows, arcs, begins, enter, at_arcs, x):
    """Fill x with the scores of all that arrives at a node in one way."""
    width = m + 1
    column = i if how == 0 else m
    count = begins[v + 1] - begins[v]
    for c in range(count):
        a = arcs[begins[v] + c]
        x[c] = enter[tails[a], how, i] + scores[at_arcs + a] + scores[rows[a] * width + column]
    return count


@njit(cache=True, nogil=True)
def aligned_segments(sr, scores, n_rows, m, tails, heads, rows, across, grad, u):
    """⊕ over all paths with a position, or null, for each arc.

    Parameters
    ----------
    sr : LOG, MAX or DRAW
    scores, grad : float64[n_parts]
        Zeros in `grad` are overwritten with the derivative of the result.
    n_rows, m : int
    tails, heads, rows : int32[n_arcs]
        By tails, which rise; a head is above its tail.
    across : uint8[n_nodes]
        Which table steps out of a node use.
    u : float64[3 n_nodes + 1]
        Uniform on [0, 1), read by DRAW only; may be empty for the others.
    """
    width, n_nodes = m + 1, len(across)
    at_arcs = n_rows * width
    at_steps = at_arcs + len(tails)
    at_final = at_steps + 2 * width * width
    alpha = np.full((n_nodes, 2, width), -np.inf)
    carried, enter = np.full((n_nodes, width), -np.inf), np.full((n_nodes, 2, width), -np.inf)
    arcs, begins = arcs_into(heads, n_nodes)
    size = max(width, 1)
    for v in range(n_nodes):
        size = max(size, begins[v + 1] - begins[v])
    x, w, pair, shares = np.empty(size), np.empty(size), np.empty(2), np.empty(2)
    alpha[0, 1, m] = 0.0
    for v in range(n_nodes):
        if v:
            for how in range(2):
                for i in range(m if how == 0 else width):
                    count = _arrives(v, how, i, m, scores, tails, rows, arcs, begins, enter, at_arcs, x)
                    if count:
                        alpha[v, how, i] = total(sr, x[:count])
        for i in range(width):
            pair[0], pair[1] = alpha[v, 0, i], alpha[v, 1, i]
            carried[v, i] = total(sr, pair)
        table = at_steps + (width * width if across[v] else 0)
        for j in range(m):
            for i in range(width):
                x[i] = carried[v, i] + scores[table + i * width + j]
            enter[v, 0, j] = total(sr, x[:width])
        for i in range(width):
            enter[v, 1, i] = carried[v, i] + scores[table + i * width + m]
    last = n_nodes - 1
    for i in range(width):
        x[i] = carried[last, i] + scores[at_final + i]
    value = total(sr, x[:width])
    if value == -np.inf:
        return value
    held, entered = np.zeros(width), np.zeros((n_nodes, 2, width))
    for v in range(last, -1, -1):
        held[:] = 0.0
        if v == last:
            for i in range(width):
                x[i] = carried[last, i] + scores[at_final + i]
            weights(sr, x[:width], held, _drawn(u, 3 * n_nodes))
            for i in range(width):
                grad[at_final + i] = held[i]
        else:
            table = at_steps + (width * width if across[v] else 0)
            for j in range(m):
                much = entered[v, 0, j]
                if much == 0.0:
                    continue
                for i in range(width):
                    x[i] = carried[v, i] + scores[table + i * width + j]
                weights(sr, x[:width], w[:width], _drawn(u, 3 * v))
                for i in range(width):
                    grad[table + i * width + j] += much * w[i]
                    held[i] += much * w[i]
            for i in range(width):
                grad[table + i * width + m] += entered[v, 1, i]
                held[i] += entered[v, 1, i]
        if v == 0:
            break
        for i in range(width):
            if held[i] == 0.0:
                continue
            pair[0], pair[1] = alpha[v, 0, i], alpha[v, 1, i]
            weights(sr, pair, shares, _drawn(u, 3 * v + 1))
            for how in range(2):
                much = held[i] * shares[how]
                if much == 0.0:
                    continue
                column = i if how == 0 else m
                count = _arrives(v, how, i, m, scores, tails, rows, arcs, begins, enter, at_arcs, x)
                weights(sr, x[:count], w[:count], _drawn(u, 3 * v + 2))
                for c in range(count):
                    a = arcs[begins[v] + c]
                    grad[at_arcs + a] += much * w[c]
                    grad[rows[a] * width + column] += much * w[c]
                    entered[tails[a], how, i] += much * w[c]
    return value


@njit(cache=True, nogil=True)
def aligned_segments_all(
    block, blocks, sr, scores, offsets, n_rows, ms, tails, heads, rows, arc_offsets, across, node_offsets, grad, u,
    starts, values,
):  # fmt: skip
    """`aligned_segments` of sentences block, block + blocks, …; sentence *s* reads ``u[starts[s]:starts[s + 1]]``."""
    for s in range(block, len(values), blocks):
        here, own = slice(offsets[s], offsets[s + 1]), slice(arc_offsets[s], arc_offsets[s + 1])
        values[s] = aligned_segments(
            sr, scores[here], n_rows[s], ms[s], tails[own], heads[own], rows[own],
            across[node_offsets[s] : node_offsets[s + 1]], grad[here], u[starts[s] : starts[s + 1]],
        )  # fmt: skip
