"""Paths of one length in a sparse directed graph: sums, the best, draws, and moments of what is added up on the way.

Edges are listed by the node they lead to: those into v are `starts[v] .. starts[v + 1]`, and `sources` has the nodes
they come from. Messages are kept normalised: the log of the mass of all paths that end in a node, and beside it *means*
over these paths, so that no score overflows. `into[t, e]` is the probability that a path which is in v at t + 1 came by
edge e.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.semiring import total, weights

__all__ = ["draw_path", "path_moments", "path_steps", "path_sums", "path_sweep"]


@njit(cache=True, nogil=True)
def path_sums(sr, nodes, edges, begin, starts, sources, alpha):
    """alpha[t, v] = ⊕ over paths of t + 1 nodes that end in v; returns ⊕ over all paths of whole length."""
    length, n = alpha.shape
    widest = 1
    for v in range(n):
        widest = max(widest, starts[v + 1] - starts[v])
        alpha[0, v] = begin[v] + nodes[v]
    x = np.empty(widest)
    for t in range(1, length):
        for v in range(n):
            first, many = starts[v], starts[v + 1] - starts[v]
            for e in range(many):
                x[e] = alpha[t - 1, sources[first + e]] + edges[first + e]
            alpha[t, v] = nodes[v] + total(sr, x[:many])
    return total(sr, alpha[length - 1])


@njit(cache=True, nogil=True)
def path_sweep(sr, nodes, edges, begin, starts, sources, u, node_grad, edge_grad, path):
    """⊕ over paths, and its derivative by the scores; with MAX and DRAW also the path itself.

    u : float64[length], uniform on [0, 1): read by DRAW alone
    node_grad, edge_grad : zeros, to which uses of nodes and edges are added
    path : int64[length], written by MAX and DRAW
    """
    length, n = len(path), len(nodes)
    alpha = np.empty((length, n))
    value = path_sums(sr, nodes, edges, begin, starts, sources, alpha)
    if value == -np.inf:
        return value
    widest = 1
    for v in range(n):
        widest = max(widest, starts[v + 1] - starts[v])
    x, w = np.empty(widest), np.empty(widest)
    mass, before = np.zeros(n), np.zeros(n)
    weights(sr, alpha[length - 1], mass, u[length - 1])
    for t in range(length - 1, -1, -1):
        before[:] = 0.0
        for v in range(n):
            here = mass[v]
            if here == 0.0:
                continue
            node_grad[v] += here
            path[t] = v
            if t == 0:
                continue
            first, many = starts[v], starts[v + 1] - starts[v]
            for e in range(many):
                x[e] = alpha[t - 1, sources[first + e]] + edges[first + e]
            weights(sr, x[:many], w[:many], u[t - 1])
            for e in range(many):
                edge_grad[first + e] += here * w[e]
                before[sources[first + e]] += here * w[e]
        mass, before = before, mass
    return value


@njit(cache=True, nogil=True)
def path_steps(nodes, edges, starts, sources, alpha, value, into, masses):
    """From the sums of `path_sums`: into[t, e], and masses[t, v], the probability that a path is in v at t."""
    length, n = alpha.shape
    for v in range(n):
        masses[length - 1, v] = np.exp(alpha[length - 1, v] - value)
    for t in range(length - 1, 0, -1):
        masses[t - 1, :] = 0.0
        for v in range(n):
            arrived = alpha[t, v] - nodes[v] if alpha[t, v] > -np.inf else -np.inf
            for e in range(starts[v], starts[v + 1]):
                u = sources[e]
                share = 0.0
                if arrived > -np.inf:
                    share = np.exp(alpha[t - 1, u] + edges[e] - arrived)
                into[t - 1, e] = share
                masses[t - 1, u] += masses[t, v] * share


@njit(cache=True, nogil=True)
def draw_path(into, starts, sources, last, values, u, first, second, path):
    r"""One path with probability proportional to π(y) (Σ_t values[y_t])², where π has the steps `into`.

    last : float64[n], probabilities of the last node under π
    u : float64[length], uniform on [0, 1)
    first, second : float64[length, n], room for the means of the sum and of its square over paths that end in a node
    """
    length, n = first.shape
    for v in range(n):
        first[0, v] = values[v]
        second[0, v] = values[v] * values[v]
    for t in range(1, length):
        for v in range(n):
            mean, square = 0.0, 0.0
            for e in range(starts[v], starts[v + 1]):
                mean += into[t - 1, e] * first[t - 1, sources[e]]
                square += into[t - 1, e] * second[t - 1, sources[e]]
            own = values[v]
            first[t, v] = mean + own
            second[t, v] = square + own * (2.0 * mean + own)
    mass = 0.0
    for v in range(n):
        mass += last[v] * max(second[length - 1, v], 0.0)
    at, reached, aim = -1, 0.0, u[length - 1] * mass
    for v in range(n):
        share = last[v] * max(second[length - 1, v], 0.0)
        if share > 0.0 and reached <= aim:  # the last possible node takes what rounding leaves
            at = v
        reached += share
    if at < 0:
        return False
    path[length - 1] = at
    later = values[at]
    for t in range(length - 2, -1, -1):
        mass = 0.0
        for e in range(starts[at], starts[at + 1]):
            v = sources[e]
            mass += into[t, e] * max(second[t, v] + later * (2.0 * first[t, v] + later), 0.0)
        chosen, reached, aim = -1, 0.0, u[t] * mass
        for e in range(starts[at], starts[at + 1]):
            v = sources[e]
            share = into[t, e] * max(second[t, v] + later * (2.0 * first[t, v] + later), 0.0)
            if share > 0.0 and reached <= aim:
                chosen = v
            reached += share
        if chosen < 0:
            return False
        at = chosen
        path[t] = at
        later += values[at]
    return True


@njit(cache=True, nogil=True)
def path_moments(into, starts, sources, masses, values, node_sums, edge_sums):
    r"""Uses of nodes and edges, weighted by the square of what a path adds up: Σ_y π(y) uses(y) ‖Σ_t values[y_t]‖².

    Given the node at t, what comes before and what comes after are independent, so that
    E‖a + b‖² = E‖a‖² + 2 E a · E b + E‖b‖²: means of vectors and of squared lengths are all that is sent.

    values : float64[n, r]
    node_sums, edge_sums : zeros, to which is added
    """
    length, n = masses.shape
    r = values.shape[1]
    means, squares = np.zeros((length, n, r)), np.zeros((length, n))
    own = np.empty(n)
    for v in range(n):
        own[v] = 0.0
        for d in range(r):
            own[v] += values[v, d] * values[v, d]
    for t in range(length):
        for v in range(n):
            if masses[t, v] == 0.0:
                continue
            square, inner = own[v], 0.0
            if t > 0:
                for e in range(starts[v], starts[v + 1]):
                    share = into[t - 1, e]
                    if share > 0.0:
                        square += share * squares[t - 1, sources[e]]
                        for d in range(r):
                            means[t, v, d] += share * means[t - 1, sources[e], d]
                for d in range(r):
                    inner += means[t, v, d] * values[v, d]
            for d in range(r):
                means[t, v, d] += values[v, d]
            squares[t, v] = square + 2.0 * inner
    # Backwards: after[v], what a path adds up behind v, and its square; summed with weights, divided when used.
    after, after_square = np.zeros((n, r)), np.zeros(n)
    for t in range(length - 1, -1, -1):
        sums, sum_squares = np.zeros((n, r)), np.zeros(n)
        for v in range(n):
            here = masses[t, v]
            if here == 0.0:
                continue
            inner, behind = 0.0, 0.0
            for d in range(r):
                inner += means[t, v, d] * after[v, d]
                behind += values[v, d] * after[v, d]
            node_sums[v] += here * (squares[t, v] + 2.0 * inner + after_square[v])
            if t == 0:
                continue
            with_own = after_square[v] + 2.0 * behind + own[v]
            for e in range(starts[v], starts[v + 1]):
                share = here * into[t - 1, e]
                if share == 0.0:
                    continue
                u = sources[e]
                inner = 0.0
                for d in range(r):
                    whole = after[v, d] + values[v, d]
                    inner += means[t - 1, u, d] * whole
                    sums[u, d] += share * whole
                sum_squares[u] += share * with_own
                edge_sums[e] += share * (squares[t - 1, u] + 2.0 * inner + with_own)
        if t > 0:
            for v in range(n):
                here = masses[t - 1, v]
                if here > 0.0:
                    after_square[v] = sum_squares[v] / here
                    for d in range(r):
                        after[v, d] = sums[v, d] / here
