"""Exact sums over sets of links: a program over degrees, and, where pairs are scored, a list of all sets."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["draw_links", "list_links", "sum_links", "sums_of_many"]


@njit(cache=True, nogil=True)
def _add(a, b):
    """log(eᵃ + eᵇ)."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@njit(cache=True, nogil=True)
def _row(scores, i, powers, base, start, layers):
    """All ways to choose the links of row i: layers[j, r, state] sums over the cells before j, with r links so far."""
    k, most, states = scores.shape[1], layers.shape[1] - 1, len(start)
    for r in range(most + 1):
        for state in range(states):
            layers[0, r, state] = start[state] if r == 0 else -np.inf
    for j in range(k):
        score, step = scores[i, j], powers[j]
        for r in range(most + 1):
            for state in range(states):
                total = layers[j, r, state]
                if r > 0 and score > -np.inf and (state // step) % base > 0:
                    total = _add(total, layers[j, r - 1, state - step] + score)
                layers[j + 1, r, state] = total


@njit(cache=True, nogil=True)
def _forward(scores, row_table, column_table, alpha, layers, powers, last):
    """alpha[i, state]: rows before i have given the columns the degrees in `state`; returns log Z."""
    n, k = scores.shape
    base, states = column_table.shape[1], alpha.shape[1]
    for j in range(k):
        powers[j] = base**j
    for state in range(states):
        alpha[0, state] = 0.0 if state == 0 else -np.inf
        last[state] = 0.0
        for j in range(k):
            last[state] += column_table[j, (state // powers[j]) % base]
    for i in range(n):
        _row(scores, i, powers, base, alpha[i], layers)
        for state in range(states):
            total = -np.inf
            for r in range(row_table.shape[1]):
                total = _add(total, layers[k, r, state] + row_table[i, r])
            alpha[i + 1, state] = total
    total = -np.inf
    for state in range(states):
        total = _add(total, alpha[n, state] + last[state])
    return total


@njit(cache=True, nogil=True)
def _copied(scores, turned):
    """A copy, or a copy of the transpose: one type of array for all that follows, so that it is compiled once."""
    n, m = scores.shape
    out = np.empty((m, n) if turned else (n, m))
    for i in range(n):
        for j in range(m):
            if turned:
                out[j, i] = scores[i, j]
            else:
                out[i, j] = scores[i, j]
    return out


@njit(cache=True, nogil=True)
def sum_links(turned, scores, source_table, target_table, links, source_degrees, target_degrees):
    """Exact log Z and marginals, by a program whose states are the degrees of all words of one side.

    O(n_source n_target D (D′ + 1)ᵏ) with k words of the side that is in the states.

    Parameters
    ----------
    turned : bool
        Whether the source words are that side; the one with fewer words should be.
    scores, links : float64[n_source, n_target]
        `links` is overwritten with the posterior of each link.
    source_table, source_degrees : float64[n_source, D + 1]
        Score of having 0, 1, … links; overwritten, the posterior of it.
    target_table, target_degrees : float64[n_target, D′ + 1]

    Returns
    -------
    log Z, −∞ when nothing is allowed.
    """
    n, m = scores.shape
    if not turned:
        return _sum_rows(_copied(scores, False), source_table, target_table, links, source_degrees, target_degrees)
    out = np.empty((m, n))
    value = _sum_rows(_copied(scores, True), target_table, source_table, out, target_degrees, source_degrees)
    for i in range(n):
        for j in range(m):
            links[i, j] = out[j, i]
    return value


@njit(cache=True, nogil=True)
def _sum_rows(scores, row_table, column_table, links, row_degrees, column_degrees):
    n, k = scores.shape
    most, base = row_table.shape[1] - 1, column_table.shape[1]
    states = base**k
    alpha, layers = np.empty((n + 1, states)), np.empty((k + 1, most + 1, states))
    powers, beta = np.empty(k, np.int64), np.empty(states)
    value = _forward(scores, row_table, column_table, alpha, layers, powers, beta)
    links[:], row_degrees[:], column_degrees[:] = 0.0, 0.0, 0.0
    if value == -np.inf:
        return value
    for state in range(states):
        p = np.exp(alpha[n, state] + beta[state] - value)
        for j in range(k):
            column_degrees[j, (state // powers[j]) % base] += p
    after = np.empty((most + 1, states))
    for i in range(n - 1, -1, -1):
        _row(scores, i, powers, base, alpha[i], layers)
        for r in range(most + 1):
            for state in range(states):
                after[r, state] = beta[state] + row_table[i, r]
                row_degrees[i, r] += np.exp(layers[k, r, state] + after[r, state] - value)
        for j in range(k - 1, -1, -1):
            score, step, p = scores[i, j], powers[j], 0.0
            if score == -np.inf:
                continue
            for r in range(most):
                for state in range(states):
                    if (state // step) % base < base - 1:
                        on = after[r + 1, state + step] + score
                        p += np.exp(layers[j, r, state] + on - value)
                        after[r, state] = _add(after[r, state], on)
            links[i, j] = p
        for state in range(states):
            beta[state] = after[0, state]
    return value


@njit(cache=True, nogil=True)
def draw_links(turned, scores, source_table, target_table, u, linked):
    """One exact draw: the forward pass of `sum_links`, then choices from the end.

    `u` holds 1 + n_source · n_target + max(n_source, n_target) uniform numbers; `linked` is overwritten.
    """
    n, m = scores.shape
    if not turned:
        return _draw_rows(_copied(scores, False), source_table, target_table, u, linked)
    out = np.empty((m, n), np.bool_)
    value = _draw_rows(_copied(scores, True), target_table, source_table, u, out)
    for i in range(n):
        for j in range(m):
            linked[i, j] = out[j, i]
    return value


@njit(cache=True, nogil=True)
def _draw_rows(scores, row_table, column_table, u, linked):
    n, k = scores.shape
    most, base = row_table.shape[1] - 1, column_table.shape[1]
    states = base**k
    alpha, layers = np.empty((n + 1, states)), np.empty((k + 1, most + 1, states))
    powers, last = np.empty(k, np.int64), np.empty(states)
    value = _forward(scores, row_table, column_table, alpha, layers, powers, last)
    linked[:] = False
    if value == -np.inf:
        return value
    state, mass = -1, 0.0
    for s in range(states):
        p = np.exp(alpha[n, s] + last[s] - value)
        if p > 0.0 and mass <= u[0]:  # the last allowed takes what rounding leaves of the unit
            state = s
        mass += p
    at = 1
    for i in range(n - 1, -1, -1):
        _row(scores, i, powers, base, alpha[i], layers)
        links_left, mass = -1, 0.0
        for r in range(most + 1):
            p = np.exp(layers[k, r, state] + row_table[i, r] - alpha[i + 1, state])
            if p > 0.0 and mass <= u[at]:
                links_left = r
            mass += p
        at += 1
        for j in range(k - 1, -1, -1):
            if links_left > 0 and scores[i, j] > -np.inf and (state // powers[j]) % base > 0:
                on = layers[j, links_left - 1, state - powers[j]] + scores[i, j]
                off = layers[j, links_left, state]
                # a share of 1 beats every u, so that what has no other way is never missed
                if on > -np.inf and (off == -np.inf or u[at] < np.exp(on - _add(on, off))):
                    linked[i, j] = True
                    links_left -= 1
                    state -= powers[j]
            at += 1
    return value


@njit(cache=True, nogil=True)
def sums_of_many(block, count, chosen, scores, offsets, shapes, tables, starts, sides, links, degrees, values):
    """`sum_links` on those of the sentences block, block + count, … of a batch that `chosen` marks.

    Parameters
    ----------
    tables, degrees : float64[n_values]
        For each sentence, from starts[s, 0], the table of the source words, and from starts[s, 1] that of the target
        words; sides[s] has their numbers of columns, and whether the source words are to be the columns of the program.
    """
    for s in range(block, len(shapes), count):
        if not chosen[s]:
            continue
        n, m = shapes[s]
        own = scores[offsets[s] : offsets[s + 1]].reshape((n, m))
        out = links[offsets[s] : offsets[s + 1]].reshape((n, m))
        a, b, c = starts[s, 0], starts[s, 1], starts[s + 1, 0]
        source, target = tables[a:b].reshape((n, sides[s, 0])), tables[b:c].reshape((m, sides[s, 1]))
        source_out, target_out = degrees[a:b].reshape((n, sides[s, 0])), degrees[b:c].reshape((m, sides[s, 1]))
        values[s] = sum_links(sides[s, 2] > 0, own, source, target, out, source_out, target_out)


@njit(cache=True, nogil=True)
def list_links(
    mode, limit, top, scores, source_table, target_table, starts, other, pair_scores,
    links, source_degrees, target_degrees, pairs,
):  # fmt: skip
    """Visit every allowed set of links, with scores of pairs; for very small problems.

    Parameters
    ----------
    mode : int
        0: find the best score. 1: sum exp(score − top), for all sets and, in the arrays, for each part. 2: stop where
        that sum passes `limit`, with the set reached in `links`.
    starts, other, pair_scores : int64[n_source · n_target + 1], int64[q], float64[q]
        Pairs of each link (links count in C order), so that every pair comes twice.
    links, source_degrees, target_degrees, pairs : zeros
    """
    n, m = scores.shape
    source_degree, target_degree = np.zeros(n, np.int64), np.zeros(m, np.int64)
    on, sums = np.zeros(n * m, np.bool_), np.zeros(n * m + 1)
    answer = -np.inf if mode == 0 else 0.0
    e, back = 0, False
    while e >= 0:
        if e == n * m:  # everything is decided: count it, and go back to the last link that is on
            score = sums[e]
            for i in range(n):
                score += source_table[i, source_degree[i]]
            for j in range(m):
                score += target_table[j, target_degree[j]]
            if mode == 0:
                answer = max(answer, score)
            else:
                p = np.exp(score - top)
                answer += p
                if mode == 1:
                    _count(p, on, source_degree, target_degree, starts, other, links, source_degrees, target_degrees,
                           pairs)  # fmt: skip
                elif answer > limit:
                    for q in range(n * m):
                        links[q // m, q % m] = on[q]
                    return answer
            back = True
            e -= 1
            continue
        i, j = e // m, e % m
        if back:
            if on[e]:  # it was on; now leave it off
                on[e], back = False, False
                source_degree[i] -= 1
                target_degree[j] -= 1
                sums[e + 1] = sums[e]
                e += 1
            else:
                e -= 1
            continue
        score = scores[i, j]
        for q in range(starts[e], starts[e + 1]):
            if other[q] < e and on[other[q]]:
                score += pair_scores[q]
        full = source_degree[i] + 1 == source_table.shape[1] or target_degree[j] + 1 == target_table.shape[1]
        sums[e + 1] = sums[e]
        if not full and score > -np.inf:
            on[e] = True
            source_degree[i] += 1
            target_degree[j] += 1
            sums[e + 1] += score
        e += 1
    return answer


@njit(cache=True, nogil=True)
def _count(p, on, source_degree, target_degree, starts, other, links, source_degrees, target_degrees, pairs):
    m = len(target_degree)
    for e in range(len(on)):
        if on[e]:
            links[e // m, e % m] += p
            for q in range(starts[e], starts[e + 1]):
                if on[other[q]]:
                    pairs[q] += p
    for i in range(len(source_degree)):
        source_degrees[i, source_degree[i]] += p
    for j in range(m):
        target_degrees[j, target_degree[j]] += p
