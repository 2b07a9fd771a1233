"""The tagger's chains over short lists of labels, of order 1 and 2: scores, steps of learning, and new text.

Positions of a sentence are counted with two places outside before it and one after it, which have one label, k: word t
is position t + 2. Position t has the labels ``labels[begins[t]:begins[t + 1]]`` with scores ``nodes`` beside them. A
move from label x to label y is scored by ``moves[u * n_units + v]`` for u the unit x, v the unit y, and for all pairs
of parts u of x, v of y; at order 2 also by ``triples``, in a table of all triples where there is room, else hashed.
Sums are those of `isogloss.structures._numba.lattice`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import GOLDEN
from isogloss.learners._numba.steps import climb
from isogloss.structures._numba.lattice import (
    U,
    exponentiate,
    label_posteriors,
    log_backward,
    log_forward,
    new_chart,
    room,
    sums,
)
from isogloss.structures.semiring import LOG, MAX
from isogloss.tasks.tag._numba.scores import (
    NEGLIGIBLE,
    add_real,
    add_units,
    label_scores,
    look_up_real,
    shortlist,
    update_real,
    update_row,
)

__all__ = ["ROOM_BITS", "learn_chains", "predict_chains", "prune"]

ROOM_BITS = 20
"""Weights of triples, at most 2 to this power: more triples than these share weights by hashing."""
_REST = np.uint64(64 - ROOM_BITS)


@njit(cache=True, nogil=True)
def _triple(x, y, z, n_labels, room):
    """The place of a triple: its own, or the upper bits of a product, which mix all below them (Knuth, TAOCP 6.4)."""
    number = (x * n_labels + y) * n_labels + z
    if room == n_labels * n_labels * n_labels:
        return number
    return np.int64(np.uint64(number) * GOLDEN >> _REST)


@njit(cache=True, nogil=True)
def _move(x, y, heads, members, moves, n_units):
    total = moves[x * n_units + y]
    for m in range(heads[x] + 1, heads[x + 1]):
        at = members[m] * n_units
        for o in range(heads[y] + 1, heads[y + 1]):
            total += moves[at + members[o]]
    return total


class Moves(NamedTuple):
    """What steps between labels are scored by."""

    heads: Any
    members: Any
    weights: Any
    n_units: Any
    triples: Any


@njit(cache=True, nogil=True)
def _fill(order, n, starts, labels, nodes, by, chart):
    """Log scores of states and steps of a sentence; the two places before it and the one after it have no own score."""
    sizes, states, steps, n_labels = chart.sizes, chart.states, chart.steps, len(by.heads) - 1
    s, p = U(0), U(0)
    for t in range(n):
        own, wide = starts[t], starts[t + 1] - starts[t]
        sizes[t] = wide
        if t < 2:
            states[s], steps[p] = 0.0, 0.0
            s += U(1)
            p += U(t)
            continue
        before, rows = starts[t - 1], own - starts[t - 1]
        for i in range(rows):
            for j in range(wide):
                score = _move(labels[before + i], labels[own + j], by.heads, by.members, by.weights, by.n_units)
                if order == 1:
                    steps[p] = score
                    p += U(1)
                else:
                    states[s] = nodes[own + j] + score
                    s += U(1)
        if order == 1:
            for j in range(wide):
                states[s] = nodes[own + j]
                s += U(1)
            continue
        for h in range(starts[t - 2], before):
            for i in range(before, own):
                for j in range(own, own + wide):
                    at = _triple(labels[h], labels[i], labels[j], n_labels, len(by.triples))
                    steps[p] = by.triples[at]
                    p += U(1)


@njit(cache=True, nogil=True)
def _gold(order, n, right, chart):
    """The log score of the right labels, of which `right` has the places in their lists."""
    here, at, count, state, score = 0, 0, 0, 0, 0.0
    for t in range(n):
        wide = chart.sizes[t]
        if t > 0:
            score += chart.steps[at + state * wide + right[t]]
            at += count * wide
        paired = order == 2 and t > 0
        state = (right[t - 1] * wide if paired else 0) + right[t]
        score += chart.states[here + state]
        count = wide * (chart.sizes[t - 1] if paired else 1)
        here += count
    return score


@njit(cache=True, nogil=True)
def _posteriors(order, hard, keep, n, starts, labels, nodes, by, chart):
    """log Z, or the best score, after `_fill`; posteriors of states, and of steps if kept, are left in the chart."""
    if hard:
        total = log_forward(MAX, order, n, chart)
        log_backward(MAX, order, n, total, chart, False)
        return total
    total = exponentiate(order, n, chart) + sums(order, n, chart, keep)
    if np.isnan(total):
        _fill(order, n, starts, labels, nodes, by, chart)
        total = log_forward(LOG, order, n, chart)
        log_backward(LOG, order, n, total, chart, keep)
    return total


@njit(cache=True, nogil=True)
def _score_nodes(own, end, labels, by_unit, heads, members, nodes):
    """Scores of the labels at one position, from those of their units."""
    for e in range(own, end):
        total = 0.0
        for m in range(heads[labels[e]], heads[labels[e] + 1]):
            total += by_unit[members[m]]
        nodes[e] = total


@njit(cache=True, nogil=True)
def _outside(t, starts, labels, nodes, label):
    """A place before or after the sentence."""
    labels[starts[t]], nodes[starts[t]] = label, 0.0
    starts[t + 1] = starts[t] + 1


@njit(cache=True, nogil=True)
def _roomy(order, n, starts, chart):
    """The chart, or a larger one if the sentence does not fit."""
    states, steps = room(order, starts, 0, n)
    if n <= len(chart.sizes) and states <= len(chart.states) and steps <= len(chart.steps):
        return chart
    return new_chart(max(n, len(chart.sizes)), max(2 * states, len(chart.states)), max(2 * steps, len(chart.steps)))


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
    weights, weights_sums, past, moves, moves_sums, moves_past, triples, triples_sums, triples_past,
    rate, l1, l2, n_units,
):  # fmt: skip
    """One pass over the given sentences, a step for each; returns Σ log p of the gold labels."""
    k, most, longest = len(heads) - 2, short.shape[1], 3
    for s in sentences:
        longest = max(longest, offsets[s + 1] - offsets[s] + 3)
    begins, right = np.zeros(longest + 1, np.int64), np.zeros(longest, np.int64)
    labels, nodes, posterior = np.empty(longest * most, np.int64), np.empty(longest * most), np.empty(longest * most)
    by_unit, slopes = np.empty(n_units, np.float32), np.empty(n_units, np.float32)
    values = np.empty((longest, len(real.blocks)), np.float32)
    parts = 1
    for y in range(k):
        parts = max(parts, heads[y + 1] - heads[y])
    move_slopes, move_touched = np.zeros(len(moves)), np.empty(most * most * (parts * parts + 1), np.int64)
    triple_slopes, triple_touched = np.zeros(len(triples)), np.empty(0, np.int64)
    by, chart = Moves(heads, members, moves, n_units, triples), new_chart(longest, 0, 0)
    value = 0.0
    for s in sentences:
        first, n = offsets[s], offsets[s + 1] - offsets[s] + 3
        if n == 3:
            continue
        right[0] = right[1] = right[n - 1] = 0
        for t in range(n):
            if t < 2 or t == n - 1:
                _outside(t, begins, labels, nodes, k)
                continue
            r, own = first + t - 2, begins[t]
            look_up_real(r, real, values[t])
            add_units(r, indptr, indices, starts, units, weights, by_unit)
            add_real(values[t], weights, n_units, by_unit)
            begins[t + 1] = own + short_sizes[r]
            for j in range(short_sizes[r]):
                labels[own + j] = short[r, j]
                if short[r, j] == gold[r]:
                    right[t] = j
            _score_nodes(own, begins[t + 1], labels, by_unit, heads, members, nodes)
        chart = _roomy(order, n, begins, chart)
        if order == 2 and len(triple_touched) < len(chart.steps):
            triple_touched = np.empty(len(chart.steps), np.int64)
        _fill(order, n, begins, labels, nodes, by, chart)
        value += _gold(order, n, right, chart)
        value -= _posteriors(order, False, True, n, begins, labels, nodes, by, chart)
        label_posteriors(order, n, chart, False, posterior)
        triple_n = 0
        if order == 2:
            triple_n = _collect_triples(n, begins, labels, right, chart, k + 1, triple_slopes, triple_touched)
        # At order 1 moves are steps, at order 2 they are states; before those of t = 2 is one, from place to place.
        at = 1 if order == 1 else 2
        for t in range(2, n):
            touched, before, own = 0, begins[t - 1], begins[t]
            for i in range(own - before):
                for j in range(begins[t + 1] - own):
                    much = (1.0 if i == right[t - 1] and j == right[t] else 0.0) - (
                        chart.steps[at] if order == 1 else chart.states[at]
                    )
                    at += 1
                    touched = _collect_move(
                        labels[before + i], labels[own + j], much, heads, members, n_units, move_slopes, move_touched,
                        touched,
                    )  # fmt: skip
            # Posteriors of later positions are known already: steps taken here do not disturb them.
            _climb_all(touched, move_slopes, move_touched, moves, moves_sums, moves_past, rate, l1, l2)
            if t == n - 1:
                continue
            slopes[:] = np.float32(0)
            for j in range(begins[t + 1] - own):
                much = np.float32((1.0 if j == right[t] else 0.0) - posterior[own + j])
                y = labels[own + j]
                for m in range(heads[y], heads[y + 1]):
                    slopes[members[m]] += much
            update_row(first + t - 2, indptr, indices, starts, units, slopes, weights, weights_sums, past, rate, l1, l2)
            update_real(values[t], slopes, weights, weights_sums, past, rate, real.l1, l2)
        _climb_all(triple_n, triple_slopes, triple_touched, triples, triples_sums, triples_past, rate, l1, l2)
    return value


@njit(cache=True, nogil=True)
def _collect_triples(n, begins, labels, right, chart, n_labels, slopes, touched):
    """The gradient of weights of triples, from posteriors of steps; returns how many weights it touches."""
    count, at = 0, 1
    for t in range(2, n):
        for h in range(begins[t - 2], begins[t - 1]):
            for i in range(begins[t - 1], begins[t]):
                for j in range(begins[t], begins[t + 1]):
                    hit = h - begins[t - 2] == right[t - 2] and i - begins[t - 1] == right[t - 1]
                    hit = hit and j - begins[t] == right[t]
                    place = _triple(labels[h], labels[i], labels[j], n_labels, len(slopes))
                    count = _add(place, (1.0 if hit else 0.0) - chart.steps[at], slopes, touched, count)
                    at += 1
    return count


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
    begins, lists = np.zeros(longest + 1, np.int64), np.empty(longest * most, np.int64)
    nodes, posterior = np.empty(longest * most), np.empty(longest * most)
    by_unit, scores = np.empty(n_units, np.float32), np.empty(k, np.float32)
    values = np.empty(len(real.blocks), np.float32)
    by, chart = Moves(heads, members, moves, n_units, triples), new_chart(longest, 0, 0)
    for s in range(begin, end):
        first, n = offsets[s], offsets[s + 1] - offsets[s] + 3
        totals[s] = 0.0
        if n == 3:
            continue
        for t in range(n):
            if t < 2 or t == n - 1:
                _outside(t, begins, lists, nodes, k)
                continue
            r, own = first + t - 2, begins[t]
            look_up_real(r, real, values)
            add_units(r, indptr, indices, starts, units, pruner, by_unit)
            add_real(values, pruner, n_units, by_unit)
            top = label_scores(by_unit, heads, members, scores)
            begins[t + 1] = own + shortlist(scores, top, margin, most, lists[own : own + most])
            add_units(r, indptr, indices, starts, units, weights, by_unit)
            add_real(values, weights, n_units, by_unit)
            _score_nodes(own, begins[t + 1], lists, by_unit, heads, members, nodes)
        chart = _roomy(order, n, begins, chart)
        _fill(order, n, begins, lists, nodes, by, chart)
        totals[s] = _posteriors(order, hard, False, n, begins, lists, nodes, by, chart)
        label_posteriors(order, n, chart, hard, posterior)
        for t in range(2, n - 1):
            r, own, size, best = first + t - 2, begins[t], begins[t + 1] - begins[t], 0
            for j in range(most):
                inside = j < size
                lists_out[r, j] = lists[own + j] if inside else -1
                chances[r, j] = posterior[own + j] if inside else 0.0
                if inside and posterior[own + j] > posterior[own + best]:
                    best = j
            labels[r] = lists[own + best]
