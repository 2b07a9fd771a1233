"""The chain: one sweep forward, and the same sweep backward, for orders 1 and 2 and in any semiring.

Both orders are one program. A state at position t is what the next step has to remember: the label y[t] at order 1, the
pair (y[t-1], y[t]) at order 2. With `contexts` C = 1 or C = k, state (i, j) is number i·k + j, a step from state (h, i)
to state (i, j) is number (h·C + i)·k + j of a table [k, k] or [k, k, k], and at order 1 the only i is 0. At position 0
the states are (0, j), so that what would have to come from before the beginning is never read.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import overload

from isogloss.structures._numba.semiring import total, weights
from isogloss.structures.semiring import Max

__all__ = ["chain", "chains", "factored", "factored_chains", "k_best"]


def _forward(sr, before, table, k, contexts, x, after):
    """after[i, j] = ⊕_h before[h, i] + table[h, i, j]; replaced at compile time."""
    raise NotImplementedError


@njit(cache=True, nogil=True)
def _forward_sum(sr, before, table, k, contexts, x, after):
    for i in range(contexts):
        for j in range(k):
            for h in range(k):
                x[h] = before[h * contexts + i] + table[(h * contexts + i) * k + j]
            after[i * k + j] = total(sr, x)


@njit(cache=True, nogil=True)
def _forward_best(sr, before, table, k, contexts, x, after):
    after[:] = -np.inf
    for h in range(k):
        for i in range(contexts):
            here = before[h * contexts + i]
            row, into = table[(h * contexts + i) * k : (h * contexts + i + 1) * k], after[i * k : (i + 1) * k]
            for j in range(k):  # row by row, which vectorises
                way = here + row[j]
                into[j] = way if way > into[j] else into[j]


@overload(_forward)
def _compiled_forward(sr, before, table, k, contexts, x, after):
    if sr.instance_class is Max:
        return lambda sr, before, table, k, contexts, x, after: _forward_best(sr, before, table, k, contexts, x, after)
    return lambda sr, before, table, k, contexts, x, after: _forward_sum(sr, before, table, k, contexts, x, after)


@njit(cache=True, nogil=True)
def _backward(sr, before, table, k, contexts, mass, x, w, draw, grad, mass_before):
    """The loops of `_forward`: hand the mass of each state on to the steps into it, and to the states before."""
    for i in range(contexts):
        for j in range(k):
            here = mass[i * k + j]
            if here == 0.0:
                continue
            for h in range(k):
                x[h] = before[h * contexts + i] + table[(h * contexts + i) * k + j]
            weights(sr, x, w, draw)
            for h in range(k):
                grad[(h * contexts + i) * k + j] += here * w[h]
                mass_before[h * contexts + i] += here * w[h]


@njit(cache=True, nogil=True)
def chain(sr, scores, n, k, contexts, grad, u):
    """⊕ over y of Σ_t scores[t, y[t-1], y[t]], or of Σ_t scores[t, y[t-2], y[t-1], y[t]].

    Parameters
    ----------
    sr : LOG, MAX or DRAW
    scores : float64[n * contexts * k * k]
        The array [n, k, k] (contexts = 1) or [n, k, k, k] (contexts = k), flat.
    grad : float64[n * contexts * k * k]
        Zeros, overwritten with the derivative of the result: marginals, best path or sampled path. It stays zero
        where nothing is allowed, and the result is then −∞.
    u : float64[n]
        Uniform on [0, 1), read by DRAW only; may be empty for the others.
    """
    if n == 0:
        return 0.0  # the empty sequence
    if k == 0:
        return -np.inf  # positions, and nothing to put there
    states, steps = contexts * k, contexts * k * k
    alpha, mass = np.full((n, states), -np.inf), np.zeros((n, states))
    x, w = np.empty(k), np.empty(k)
    for j in range(k):
        alpha[0, j] = scores[j]
    for t in range(1, n):
        _forward(sr, alpha[t - 1], scores[t * steps : (t + 1) * steps], k, contexts, x, alpha[t])
    value = total(sr, alpha[n - 1])
    weights(sr, alpha[n - 1], mass[n - 1], u[n - 1] if len(u) else 0.0)
    for t in range(n - 1, 0, -1):
        draw = u[t - 1] if len(u) else 0.0
        table, out = scores[t * steps : (t + 1) * steps], grad[t * steps : (t + 1) * steps]
        _backward(sr, alpha[t - 1], table, k, contexts, mass[t], x, w, draw, out, mass[t - 1])
    for j in range(k):
        grad[j] = mass[0, j]
    return value


@njit(cache=True, nogil=True)
def chains(block, blocks, sr, scores, offsets, shapes, grad, u, starts, values):
    """`chain` on the sentences block, block + blocks, …

    Parameters
    ----------
    scores, grad : float64[n_values]
        Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``.
    shapes : int64[n_sentences, 3]
        Length, labels and contexts of each sentence.
    u : float64[Σ lengths]
        Sentence *s* reads ``u[starts[s]:starts[s + 1]]``; empty when nothing is drawn.
    values : float64[n_sentences]
        Overwritten with the result of every sentence.
    """
    for s in range(block, len(shapes), blocks):
        here, there = offsets[s], offsets[s + 1]
        draws = u[starts[s] : starts[s + 1]]
        n, k, contexts = shapes[s, 0], shapes[s, 1], shapes[s, 2]
        values[s] = chain(sr, scores[here:there], n, k, contexts, grad[here:there], draws)


@njit(cache=True, nogil=True)
def factored(sr, nodes, n, k, contexts, tables, start, end, grad, counts, u):
    """The chain whose step scores are sums: one for the label at its position, one for the step wherever it is taken.

    Parameters
    ----------
    nodes, grad : float64[n * k]
        Scores of labels at positions, and zeros to be overwritten with their derivatives.
    tables, counts : float64[2, contexts * k * k]
        Scores of the step into position 1 and of the steps into all later ones; their derivatives are *added* to
        `counts`. At order 2 the step into position 1 comes from (0, i).
    start, end : float64[k]
        Scores of the first and the last label.
    """
    if n == 0:
        return 0.0
    if k == 0:
        return -np.inf
    states = contexts * k
    alpha, mass = np.full((n, states), -np.inf), np.zeros((n, states))
    x, w = np.empty(k), np.empty(k)
    for t in range(n):
        if t == 0:
            for j in range(k):
                alpha[0, j] = start[j]
        else:
            _forward(sr, alpha[t - 1], tables[min(t - 1, 1)], k, contexts, x, alpha[t])
        for i in range(contexts):
            for j in range(k):
                alpha[t, i * k + j] += nodes[t * k + j]
                if t == n - 1:
                    alpha[t, i * k + j] += end[j]
    value = total(sr, alpha[n - 1])
    weights(sr, alpha[n - 1], mass[n - 1], u[n - 1] if len(u) else 0.0)
    for t in range(n - 1, -1, -1):
        for i in range(contexts):
            for j in range(k):
                grad[t * k + j] += mass[t, i * k + j]
        if t > 0:
            draw, table = u[t - 1] if len(u) else 0.0, min(t - 1, 1)
            _backward(
                sr, alpha[t - 1], tables[table], k, contexts, mass[t], x, w, draw, counts[table], mass[t - 1]
            )  # fmt: skip
    return value


@njit(cache=True, nogil=True)
def factored_chains(block, blocks, sr, nodes, offsets, k, contexts, tables, start, end, grad, counts, u, values):
    """`factored` on the sentences block, block + blocks, …; each block adds to counts of its own.

    Parameters
    ----------
    nodes, grad : float64[n_positions * k]
    offsets : int64[n_sentences + 1]
        Sentence *s* is the positions offsets[s] … offsets[s + 1] − 1.
    counts : float64[blocks, 2, contexts * k * k]
    u : float64[n_positions]
        Empty when nothing is drawn.
    values : float64[n_sentences]
        Overwritten.
    """
    for s in range(block, len(values), blocks):
        here, there = offsets[s], offsets[s + 1]
        draws = u[here:there] if len(u) else u
        values[s] = factored(
            sr, nodes[here * k : there * k], there - here, k, contexts, tables, start, end,
            grad[here * k : there * k], counts[block], draws,
        )  # fmt: skip


@njit(cache=True, nogil=True)
def k_best(scores, n, k, contexts, size, found, labels):
    """The best `size` sequences: Viterbi with that many candidates for each state, best first.

    Parameters
    ----------
    scores : float64[n * contexts * k * k]
        As in `chain`, with n and k at least 1.
    found : float64[size]
        Overwritten with scores; −∞ once there are no more.
    labels : int64[size, n]
        Overwritten with the sequences.

    Notes
    -----
    Candidate c of state (i, j) is the c-th best way to reach it. All that could come next are at the heads of k sorted
    lists, one for each h, so that a position takes O(contexts k² size). Among equals the smaller h comes first.
    """
    states, steps = contexts * k, contexts * k * k
    best = np.full((n, states, size), -np.inf)
    back = np.zeros((n, states, size), np.int64)
    heads = np.zeros(states, np.int64)
    for j in range(k):
        best[0, j, 0] = scores[j]
    for t in range(1, n):
        for i in range(contexts):
            for j in range(k):
                heads[:k] = 0
                for c in range(size):
                    top, at = -np.inf, -1
                    for h in range(k):
                        if heads[h] < size:
                            way = best[t - 1, h * contexts + i, heads[h]]
                            way += scores[t * steps + (h * contexts + i) * k + j]
                            if way > top:
                                top, at = way, h
                    if at < 0:
                        break
                    best[t, i * k + j, c] = top
                    back[t, i * k + j, c] = (at * contexts + i) * size + heads[at]
                    heads[at] += 1
    heads[:] = 0
    for c in range(size):
        top, at = -np.inf, -1
        for state in range(states):
            if heads[state] < size and best[n - 1, state, heads[state]] > top:
                top, at = best[n - 1, state, heads[state]], state
        found[c] = top
        if at < 0:
            continue
        state, rank = at, heads[at]
        heads[at] += 1
        for t in range(n - 1, -1, -1):
            labels[c, t] = state % k
            state, rank = back[t, state, rank] // size, back[t, state, rank] % size
