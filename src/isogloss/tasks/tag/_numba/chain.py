"""Chains over short lists of labels, of order 1 and 2: sums, best sequences and steps of learning.

Positions of a sentence are counted with two places outside before it and one after it, which have one label, k: word t
is position t + 2. Position t has the labels ``lists[t, :sizes[t]]`` with scores ``nodes[t]``. A move from label x to
label y is scored by ``moves[u * n_units + v]`` for u the unit x, v the unit y, and for all pairs of parts u of x, v of
y; at order 2 also by ``triples``, in a table of all triples where there is room, else hashed.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.tasks.tag._numba.scores import (
    NEGLIGIBLE,
    add_real,
    add_units,
    climb,
    label_scores,
    look_up_real,
    shortlist,
    update_real,
    update_row,
)

__all__ = ["learn_chains", "predict_chains", "prune"]


@njit(cache=True, nogil=True)
def _triple(x, y, z, n_labels, room):
    if room == n_labels * n_labels * n_labels:
        return (x * n_labels + y) * n_labels + z
    h = np.uint64((x * n_labels + y) * n_labels + z) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(20)) % np.uint64(room))


@njit(cache=True, nogil=True)
def _move(x, y, heads, members, moves, n_units):
    total = moves[x * n_units + y]
    for m in range(heads[x] + 1, heads[x + 1]):
        at = members[m] * n_units
        for o in range(heads[y] + 1, heads[y + 1]):
            total += moves[at + members[o]]
    return total


@njit(cache=True, nogil=True)
def _score_moves(n, lists, sizes, heads, members, moves, n_units, edges):
    """Scores of moves into position t, to edges[t, i, j]: from the i-th label of t − 1 to the j-th of t."""
    for t in range(2, n):
        for i in range(sizes[t - 1]):
            for j in range(sizes[t]):
                edges[t, i, j] = _move(lists[t - 1, i], lists[t, j], heads, members, moves, n_units)


@njit(cache=True, nogil=True)
def _total(x, n, hard):
    top = x[0]
    for i in range(1, n):
        top = max(top, x[i])
    if hard or top == -np.inf:
        return top
    mass = 0.0
    for i in range(n):
        mass += np.exp(x[i] - top)
    return top + np.log(mass)


@njit(cache=True, nogil=True)
def _first_order(n, sizes, nodes, edges, alpha, beta, hard):
    """Sums (or best scores) of what leads to and from each label, and of everything."""
    x = np.empty(edges.shape[1])
    alpha[1, 0] = 0.0
    for t in range(2, n):
        for j in range(sizes[t]):
            for i in range(sizes[t - 1]):
                x[i] = alpha[t - 1, i] + edges[t, i, j]
            alpha[t, j] = _total(x, sizes[t - 1], hard) + nodes[t, j]
    beta[n - 1, 0] = 0.0
    for t in range(n - 2, 0, -1):
        for i in range(sizes[t]):
            for j in range(sizes[t + 1]):
                x[j] = edges[t + 1, i, j] + nodes[t + 1, j] + beta[t + 1, j]
            beta[t, i] = _total(x, sizes[t + 1], hard)
    return alpha[n - 1, 0]


@njit(cache=True, nogil=True)
def _second_order(n, lists, sizes, nodes, edges, triples, n_labels, alpha, beta, hard):
    """The same, for pairs of labels: alpha[t, i, j] and beta[t, i, j] for the i-th of t − 1 and the j-th of t."""
    room = len(triples)
    x = np.empty(edges.shape[1])
    alpha[1, 0, 0] = 0.0
    for t in range(2, n):
        for i in range(sizes[t - 1]):
            for j in range(sizes[t]):
                for h in range(sizes[t - 2]):
                    at = _triple(lists[t - 2, h], lists[t - 1, i], lists[t, j], n_labels, room)
                    x[h] = alpha[t - 1, h, i] + triples[at]
                alpha[t, i, j] = _total(x, sizes[t - 2], hard) + edges[t, i, j] + nodes[t, j]
    for i in range(sizes[n - 2]):
        beta[n - 1, i, 0] = 0.0
    for t in range(n - 2, 0, -1):
        for h in range(sizes[t - 1]):
            for i in range(sizes[t]):
                for j in range(sizes[t + 1]):
                    at = _triple(lists[t - 1, h], lists[t, i], lists[t + 1, j], n_labels, room)
                    x[j] = triples[at] + edges[t + 1, i, j] + nodes[t + 1, j] + beta[t + 1, i, j]
                beta[t, h, i] = _total(x, sizes[t + 1], hard)
    for i in range(sizes[n - 2]):
        x[i] = alpha[n - 1, i, 0]
    return _total(x, sizes[n - 2], hard)


@njit(cache=True, nogil=True)
def _posteriors(order, n, sizes, alpha1, beta1, alpha2, beta2, total, hard, out):
    """Posterior of each label of each list; with `hard`, how good the best sequence through it is, and 1 is best."""
    for t in range(2, n - 1):
        for j in range(sizes[t]):
            if order == 1:
                out[t, j] = np.exp(alpha1[t, j] + beta1[t, j] - total)
                continue
            out[t, j] = 0.0
            for i in range(sizes[t - 1]):
                p = np.exp(alpha2[t, i, j] + beta2[t, i, j] - total)
                out[t, j] = max(out[t, j], p) if hard else out[t, j] + p


@njit(cache=True, nogil=True)
def _surround(n, lists, sizes, outside):
    """The places before and after a sentence."""
    for t in (0, 1, n - 1):
        lists[t, 0] = outside
        sizes[t] = 1


@njit(cache=True, nogil=True)
def prune(
    block, count, sentences, offsets, indptr, indices, starts, units, heads, members, real, weights, gold, margin,
    n_units, lists, sizes,
):  # fmt: skip
    """Labels worth a look at each word of some sentences by the scores of order 0; the gold one is always among them.

    lists : int32[n_words, most]; sizes : int32[n_words].
    """
    by_unit, scores = np.empty(n_units, np.float32), np.empty(len(heads) - 2, np.float32)
    values = np.empty(len(real.blocks), np.float32)
    for i in range(block * len(sentences) // count, (block + 1) * len(sentences) // count):
        for r in range(offsets[sentences[i]], offsets[sentences[i] + 1]):
            look_up_real(r, real, values)
            add_units(r, indptr, indices, starts, units, weights, by_unit)
            add_real(values, weights, n_units, by_unit)
            top = label_scores(by_unit, heads, members, scores)
            size = shortlist(scores, top, margin, lists.shape[1], lists[r])
            there = False
            for j in range(size):
                there = there or lists[r, j] == gold[r]
            if not there:
                if size < lists.shape[1]:
                    size += 1
                lists[r, size - 1] = gold[r]
            sizes[r] = size


@njit(cache=True, nogil=True)
def _add(at, much, slopes, touched, n):
    """Collect a gradient; returns how many weights it touches so far."""
    if slopes[at] == 0.0:
        touched[n] = at
        n += 1
    slopes[at] += much
    return n


@njit(cache=True, nogil=True)
def _collect_move(x, y, much, heads, members, n_units, slopes, touched, n):
    n = _add(x * n_units + y, much, slopes, touched, n)
    for m in range(heads[x] + 1, heads[x + 1]):
        for o in range(heads[y] + 1, heads[y + 1]):
            n = _add(members[m] * n_units + members[o], much, slopes, touched, n)
    return n


@njit(cache=True, nogil=True)
def _climb_all(n, slopes, touched, weights, sums, sizes, rate, l1, l2):
    for i in range(n):
        at = touched[i]
        slope = np.float32(slopes[at])
        slopes[at] = 0.0
        if abs(slope) > NEGLIGIBLE:
            climb(weights, sums, sizes, at, slope, rate, l1, l2)


@njit(cache=True, nogil=True)
def learn_chains(
    order, sentences, offsets, indptr, indices, starts, units, heads, members, real, gold, short, short_sizes,
    weights, sums, past, moves, moves_sums, moves_past, triples, triples_sums, triples_past,
    rate, l1, l2, n_units,
):  # fmt: skip
    """One pass over the given sentences, a step for each; returns Σ log p of the gold labels."""
    k, most, longest = len(heads) - 2, short.shape[1], 3
    for s in sentences:
        longest = max(longest, offsets[s + 1] - offsets[s] + 3)
    lists, sizes = np.zeros((longest, most), np.int64), np.zeros(longest, np.int64)
    nodes, edges = np.zeros((longest, most)), np.zeros((longest, most, most))
    alpha1, beta1 = np.zeros((longest, most)), np.zeros((longest, most))
    wide = most if order == 2 else 1
    alpha2, beta2 = np.zeros((longest, wide, wide)), np.zeros((longest, wide, wide))
    posterior, right = np.zeros((longest, most)), np.zeros(longest, np.int64)
    by_unit, slopes = np.empty(n_units, np.float32), np.empty(n_units, np.float32)
    values = np.empty((longest, len(real.blocks)), np.float32)
    parts = 1
    for y in range(k):
        parts = max(parts, heads[y + 1] - heads[y])
    move_slopes, move_touched = np.zeros(len(moves)), np.empty(most * most * (parts * parts + 1), np.int64)
    triple_slopes, triple_touched = np.zeros(len(triples)), np.empty(longest * wide**3, np.int64)
    value = 0.0
    for s in sentences:
        first, n = offsets[s], offsets[s + 1] - offsets[s] + 3
        if n == 3:
            continue
        _surround(n, lists, sizes, k)
        right[0] = right[1] = right[n - 1] = 0
        for t in range(2, n - 1):
            r = first + t - 2
            look_up_real(r, real, values[t])
            add_units(r, indptr, indices, starts, units, weights, by_unit)
            add_real(values[t], weights, n_units, by_unit)
            sizes[t] = short_sizes[r]
            for j in range(sizes[t]):
                y = short[r, j]
                lists[t, j] = y
                if y == gold[r]:
                    right[t] = j
                nodes[t, j] = 0.0
                for m in range(heads[y], heads[y + 1]):
                    nodes[t, j] += by_unit[members[m]]
        nodes[n - 1, 0] = 0.0
        _score_moves(n, lists, sizes, heads, members, moves, n_units, edges)
        if order == 1:
            total = _first_order(n, sizes, nodes, edges, alpha1, beta1, False)
        else:
            total = _second_order(n, lists, sizes, nodes, edges, triples, k + 1, alpha2, beta2, False)
        _posteriors(order, n, sizes, alpha1, beta1, alpha2, beta2, total, False, posterior)
        posterior[n - 1, 0] = 1.0
        value -= total
        triple_n = 0
        for t in range(2, n):
            value += nodes[t, right[t]] + edges[t, right[t - 1], right[t]]
            touched = 0
            for i in range(sizes[t - 1]):
                for j in range(sizes[t]):
                    x, y = lists[t - 1, i], lists[t, j]
                    hit = i == right[t - 1] and j == right[t]
                    if order == 1:
                        p = np.exp(alpha1[t - 1, i] + edges[t, i, j] + nodes[t, j] + beta1[t, j] - total)
                    else:
                        p = 0.0
                        rest = edges[t, i, j] + nodes[t, j] + beta2[t, i, j] - total
                        for h in range(sizes[t - 2]):
                            z = lists[t - 2, h]
                            at = _triple(z, x, y, k + 1, len(triples))
                            q = np.exp(alpha2[t - 1, h, i] + triples[at] + rest)
                            p += q
                            mine = 1.0 if hit and h == right[t - 2] else 0.0
                            if mine > 0:
                                value += triples[at]
                            triple_n = _add(at, mine - q, triple_slopes, triple_touched, triple_n)
                    much = (1.0 if hit else 0.0) - p
                    touched = _collect_move(x, y, much, heads, members, n_units, move_slopes, move_touched, touched)
            # Scores of later positions are in `nodes` and `edges` already: steps taken here do not disturb them.
            _climb_all(touched, move_slopes, move_touched, moves, moves_sums, moves_past, rate, l1, l2)
            if t == n - 1:
                continue
            slopes[:] = np.float32(0)
            for j in range(sizes[t]):
                much = np.float32((1.0 if j == right[t] else 0.0) - posterior[t, j])
                y = lists[t, j]
                for m in range(heads[y], heads[y + 1]):
                    slopes[members[m]] += much
            update_row(first + t - 2, indptr, indices, starts, units, slopes, weights, sums, past, rate, l1, l2)
            update_real(values[t], slopes, weights, sums, past, rate, real.l1, l2)
        _climb_all(triple_n, triple_slopes, triple_touched, triples, triples_sums, triples_past, rate, l1, l2)
    return value


@njit(cache=True, nogil=True)
def predict_chains(
    block, count, order, hard, offsets, indptr, indices, starts, units, heads, members, real, pruner, margin,
    weights, moves, triples, n_units, labels, lists_out, chances, totals,
):  # fmt: skip
    """Labels of all sentences of a block, with the short lists and the posterior of each label in them.

    labels : int32[n_words]; lists_out : int32[n_words, most], −1 behind the end; chances : float32[n_words, most];
    totals : float64[n_sentences], log Z, or the score of the best sequence when `hard`.
    """
    n_sentences = len(offsets) - 1
    k, most, longest = len(heads) - 2, lists_out.shape[1], 3
    begin, end = block * n_sentences // count, (block + 1) * n_sentences // count
    for s in range(begin, end):
        longest = max(longest, offsets[s + 1] - offsets[s] + 3)
    lists, sizes = np.zeros((longest, most), np.int64), np.zeros(longest, np.int64)
    nodes, edges = np.zeros((longest, most)), np.zeros((longest, most, most))
    alpha1, beta1 = np.zeros((longest, most)), np.zeros((longest, most))
    wide = most if order == 2 else 1
    alpha2, beta2 = np.zeros((longest, wide, wide)), np.zeros((longest, wide, wide))
    posterior = np.zeros((longest, most))
    by_unit, scores = np.empty(n_units, np.float32), np.empty(k, np.float32)
    values = np.empty(len(real.blocks), np.float32)
    for s in range(begin, end):
        first, n = offsets[s], offsets[s + 1] - offsets[s] + 3
        totals[s] = 0.0
        if n == 3:
            continue
        _surround(n, lists, sizes, k)
        for t in range(2, n - 1):
            r = first + t - 2
            look_up_real(r, real, values)
            add_units(r, indptr, indices, starts, units, pruner, by_unit)
            add_real(values, pruner, n_units, by_unit)
            top = label_scores(by_unit, heads, members, scores)
            sizes[t] = shortlist(scores, top, margin, most, lists[t])
            add_units(r, indptr, indices, starts, units, weights, by_unit)
            add_real(values, weights, n_units, by_unit)
            for j in range(sizes[t]):
                nodes[t, j] = 0.0
                for m in range(heads[lists[t, j]], heads[lists[t, j] + 1]):
                    nodes[t, j] += by_unit[members[m]]
        nodes[n - 1, 0] = 0.0
        _score_moves(n, lists, sizes, heads, members, moves, n_units, edges)
        if order == 1:
            totals[s] = _first_order(n, sizes, nodes, edges, alpha1, beta1, hard)
        else:
            totals[s] = _second_order(n, lists, sizes, nodes, edges, triples, k + 1, alpha2, beta2, hard)
        _posteriors(order, n, sizes, alpha1, beta1, alpha2, beta2, totals[s], hard, posterior)
        for t in range(2, n - 1):
            r, best = first + t - 2, 0
            for j in range(most):
                inside = j < sizes[t]
                lists_out[r, j] = lists[t, j] if inside else -1
                chances[r, j] = posterior[t, j] if inside else 0.0
                if inside and posterior[t, j] > posterior[t, best]:
                    best = j
            labels[r] = lists[t, best]
