"""Kernels over many chains with lists of labels.

Positions of sentence *s* are offsets[s] … offsets[s + 1] − 1, and position t may have the labels
``labels[starts[t]:starts[t + 1]]``. The parts of a sentence stand at ``begins[s]`` and after: a node for each label of
each position; an edge for each pair of labels of neighbours, (i, j) at i · n_j + j; at order 2 a triple for each three
of them, (h, i, j) at (h · n_i + i) · n_j + j; positions in order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from isogloss.structures._numba.lattice import (
    U,
    exponentiate,
    label_posteriors,
    log_backward,
    log_forward,
    new_chart,
    room,
    sums,
    walk,
)
from isogloss.structures.semiring import LOG

__all__ = [
    "Lists", "count_parts", "factored_paths", "factored_sums", "find_entries", "indicate", "lattice_paths",
    "lattice_sums", "list_edges", "list_triples",
]  # fmt: skip


class Lists(NamedTuple):
    """The labels that positions may have, as kernels take them."""

    order: Any
    offsets: Any
    """int64[n_sentences + 1]"""
    starts: Any
    """int64[n_positions + 1]"""
    labels: Any
    """int64[n_entries]"""
    begins: Any
    """int64[n_sentences + 1]: where the parts of each sentence begin."""


@njit(cache=True, nogil=True)
def _edges(starts, first, last):
    count = 0
    for t in range(first + 1, last):
        count += (starts[t] - starts[t - 1]) * (starts[t + 1] - starts[t])
    return count


@njit(cache=True, nogil=True)
def _triples(starts, first, last):
    count = 0
    for t in range(first + 2, last):
        count += (starts[t - 1] - starts[t - 2]) * (starts[t] - starts[t - 1]) * (starts[t + 1] - starts[t])
    return count


@njit(cache=True, nogil=True)
def count_parts(order, offsets, starts, counts):
    """Nodes, edges and triples of each sentence, to int64[n_sentences, 3]."""
    for s in range(len(counts)):
        first, last = offsets[s], offsets[s + 1]
        counts[s, 0] = starts[last] - starts[first]
        counts[s, 1] = _edges(starts, first, last)
        counts[s, 2] = _triples(starts, first, last) if order == 2 else 0


@njit(cache=True, nogil=True)
def list_edges(offsets, starts, out):
    """The entries that each edge leads from and to, to int64[n_edges, 2]."""
    at = 0
    for s in range(len(offsets) - 1):
        for t in range(offsets[s] + 1, offsets[s + 1]):
            for d in range(starts[t - 1], starts[t]):
                for e in range(starts[t], starts[t + 1]):
                    out[at, 0], out[at, 1] = d, e
                    at += 1


@njit(cache=True, nogil=True)
def list_triples(offsets, starts, out):
    """The three entries of each triple, to int64[n_triples, 3]."""
    at = 0
    for s in range(len(offsets) - 1):
        for t in range(offsets[s] + 2, offsets[s + 1]):
            for c in range(starts[t - 2], starts[t - 1]):
                for d in range(starts[t - 1], starts[t]):
                    for e in range(starts[t], starts[t + 1]):
                        out[at, 0], out[at, 1], out[at, 2] = c, d, e
                        at += 1


@njit(cache=True, nogil=True)
def find_entries(block, count, starts, labels, wanted, entries):
    """The entry of each position that has the wanted label, to int64[n_positions]; −1 where the list has none."""
    for t in range(block, len(wanted), count):
        entries[t] = -1
        for e in range(starts[t], starts[t + 1]):
            if labels[e] == wanted[t]:
                entries[t] = e


@njit(cache=True, nogil=True)
def indicate(block, count, lists, entries, out):
    """1 for each part that the sequences with these entries have, else 0."""
    order, offsets, starts, _, begins = lists
    for s in range(block, len(offsets) - 1, count):
        first, last = offsets[s], offsets[s + 1]
        out[begins[s] : begins[s + 1]] = 0.0
        edge = begins[s] + starts[last] - starts[first]
        triple = edge + _edges(starts, first, last)
        for t in range(first, last):
            e, wide = entries[t], starts[t + 1] - starts[t]
            out[begins[s] + e - starts[first]] = 1.0
            if t > first:
                rows = starts[t] - starts[t - 1]
                at = (entries[t - 1] - starts[t - 1]) * wide + e - starts[t]
                out[edge + at] = 1.0
                edge += rows * wide
                if order == 2 and t > first + 1:
                    out[triple + (entries[t - 2] - starts[t - 2]) * rows * wide + at] = 1.0
                    triple += (starts[t - 1] - starts[t - 2]) * rows * wide


@njit(cache=True, nogil=True)
def _chart_of(block, count, order, offsets, starts, stride):
    """Room for all sentences of a block: block, block + count, … with stride, else from block to block neighbours."""
    n = len(offsets) - 1
    one, two, by = (block, n, count) if stride else (block * n // count, (block + 1) * n // count, 1)
    positions, states, steps = 0, 0, 0
    for s in range(one, two, by):
        some, more = room(order, starts, offsets[s], offsets[s + 1])
        positions, states, steps = max(positions, offsets[s + 1] - offsets[s]), max(states, some), max(steps, more)
    return new_chart(positions, states, steps)


# --- scores of all parts


@njit(cache=True, nogil=True)
def _fill(order, starts, first, last, scores, chart):
    """Scores of the parts of a sentence to those of states and steps."""
    sizes, states, steps = chart.sizes, chart.states, chart.steps
    nodes, edge = starts[last] - starts[first], starts[last] - starts[first]
    s, p, triple = 0, 0, edge + _edges(starts, first, last)
    for t in range(first, last):
        wide, at = starts[t + 1] - starts[t], starts[t] - starts[first]
        sizes[t - first] = wide
        if order == 1 or t == first:
            states[s : s + wide] = scores[at : at + wide]
            s += wide
            continue
        rows = starts[t] - starts[t - 1]
        for _ in range(rows):
            for j in range(wide):
                states[s + j] = scores[at + j] + scores[edge + j]
            s += wide
            edge += wide
        many = rows * wide * (starts[t - 1] - starts[t - 2] if t > first + 1 else 1)
        if t == first + 1:
            steps[p : p + many] = 0.0
        else:
            steps[p : p + many] = scores[triple : triple + many]
            triple += many
        p += many
    if order == 1:
        steps[: len(scores) - nodes] = scores[nodes:]


@njit(cache=True, nogil=True)
def _read(order, n, chart, nodes, out):
    """The inverse of `_fill`, for posteriors; `nodes` of the parts are nodes."""
    sizes, states, steps = chart.sizes, chart.states, chart.steps
    label_posteriors(order, n, chart, False, out)
    if order == 1:
        out[nodes:] = steps[: len(out) - nodes]
    elif n > 1:
        pairs, first = 0, sizes[0]
        for t in range(1, n):
            pairs += sizes[t - 1] * sizes[t]
        out[nodes : nodes + pairs] = states[first : first + pairs]
        none = sizes[0] * sizes[1]  # steps to the second position are no parts
        out[nodes + pairs :] = steps[none : none + len(out) - nodes - pairs]


@njit(cache=True, nogil=True)
def lattice_sums(block, count, lists, scores, marginals, values):
    """log Z of the sentences block, block + count, … and marginals of all parts; −∞ where nothing is allowed."""
    order, offsets, starts, _, begins = lists
    chart = _chart_of(block, count, order, offsets, starts, True)
    for s in range(block, len(values), count):
        first, last = offsets[s], offsets[s + 1]
        given, out = scores[begins[s] : begins[s + 1]], marginals[begins[s] : begins[s + 1]]
        _fill(order, starts, first, last, given, chart)
        shift = exponentiate(order, last - first, chart)
        value = shift + sums(order, last - first, chart, True)
        if np.isnan(value):
            _fill(order, starts, first, last, given, chart)
            value = log_forward(LOG, order, last - first, chart)
            if value > -np.inf:
                log_backward(LOG, order, last - first, value, chart, True)
        values[s] = value
        if value > -np.inf:
            _read(order, last - first, chart, starts[last] - starts[first], out)
        else:
            out[:] = 0.0


@njit(cache=True, nogil=True)
def lattice_paths(block, count, sr, lists, scores, u, paths, values):
    """The best or a drawn sequence of each sentence: the label of each position, and the best score or log Z."""
    order, offsets, starts, labels, begins = lists
    chart = _chart_of(block, count, order, offsets, starts, True)
    for s in range(block, len(values), count):
        first, last = offsets[s], offsets[s + 1]
        _fill(order, starts, first, last, scores[begins[s] : begins[s + 1]], chart)
        _walk(sr, order, first, last, starts, labels, chart, u, paths, values, s)


@njit(cache=True, nogil=True)
def _walk(sr, order, first, last, starts, labels, chart, u, paths, values, s):
    values[s] = log_forward(sr, order, last - first, chart)
    if values[s] > -np.inf:
        walk(sr, order, last - first, chart, u[first:last], paths[first:last])
        for t in range(first, last):
            paths[t] = labels[starts[t] + paths[t]]


# --- one table of transitions for all positions


@njit(cache=True, nogil=True)
def _fill_factored(lists, first, last, k, nodes, table, logs, chart, bases):
    """States and steps of a sentence; ``bases[b]`` is where the table has the steps from state b.

    Returns
    -------
    float
        The sum of the highest scores of nodes, which the weights were divided by; 0 with `logs`.
    """
    order, starts, labels = lists.order, lists.starts, lists.labels
    sizes, states, steps, k1 = chart.sizes, chart.states, chart.steps, U(k + 1)
    shift, past, here, at = 0.0, U(0), U(0), U(0)
    for t in range(first, last):
        own, wide = U(starts[t]), U(starts[t + 1] - starts[t])
        rows = U(starts[t] - starts[t - 1]) if order == 2 and t > first else U(1)
        sizes[t - first] = wide
        for b in range(past, here):
            base = bases[b]
            for j in range(wide):
                steps[at + j] = table[base + U(labels[own + j])]
            at += wide
        top = 0.0
        if not logs:
            top = nodes[own]
            for j in range(U(1), wide):
                top = max(top, nodes[own + j])
            top = top if top > -np.inf else 0.0
            shift += top
        for j in range(wide):
            x = nodes[own + j] if logs else np.exp(nodes[own + j] - top)
            if t == first:
                y = table[_outside(order, k) + U(labels[own + j])]
                x = x + y if logs else x * y
            for i in range(rows):
                states[here + i * wide + j] = x
        for i in range(rows):
            before = U(0)
            if order == 2:
                before = (U(labels[U(starts[t - 1]) + i]) if t > first else U(k)) * k1
            for j in range(wide):
                bases[here + i * wide + j] = (before + U(labels[own + j])) * U(k)
        past, here = here, here + rows * wide
    return shift


@njit(cache=True, nogil=True)
def _outside(order, k):
    """Where the table has the steps to the first label of a sentence."""
    return U(k * k) if order == 1 else U((k * (k + 1) + k) * k)


@njit(cache=True, nogil=True)
def _count_steps(lists, first, last, k, chart, bases, counts):
    """Add the posteriors of steps, and of the first label, to the cells of the table that they are scored by."""
    order, starts, labels, states, steps = lists.order, lists.starts, lists.labels, chart.states, chart.steps
    past, here, at = U(0), U(0), U(0)
    for t in range(first, last):
        own, wide = U(starts[t]), U(starts[t + 1] - starts[t])
        if t == first:
            for j in range(wide):
                counts[_outside(order, k) + U(labels[own + j])] += states[j]
        for b in range(past, here):
            base = bases[b]
            for j in range(wide):
                counts[base + U(labels[own + j])] += steps[at + j]
            at += wide
        past, here = here, here + (U(starts[t] - starts[t - 1]) if order == 2 and t > first else U(1)) * wide


@njit(cache=True, nogil=True)
def factored_sums(block, count, lists, k, nodes, table, logs, top, marginals, counts, values):
    """log Z and marginals of nodes of the sentences of one block; expected transitions are added to counts[block].

    table, logs : float64[n]
        Weights of transitions, at most 1, and their logarithms, with `top` added: from label x to label y at x · k + y,
        at order 2 from w and x to y at (w · (k + 1) + x) · k + y. Label k stands for the places before a sentence.
    """
    order, offsets, starts, _, _ = lists
    n = len(values)
    chart = _chart_of(block, count, order, offsets, starts, False)
    bases = np.empty(len(chart.states), np.uint64)
    for s in range(block * n // count, (block + 1) * n // count):
        first, last = offsets[s], offsets[s + 1]
        out = marginals[starts[first] : starts[last]]
        value = _fill_factored(lists, first, last, k, nodes, table, False, chart, bases) + (last - first) * top
        value += sums(order, last - first, chart, True)
        if np.isnan(value):
            _fill_factored(lists, first, last, k, nodes, logs, True, chart, bases)
            value = log_forward(LOG, order, last - first, chart)
            if value > -np.inf:
                log_backward(LOG, order, last - first, value, chart, True)
        values[s] = value
        if value > -np.inf:
            label_posteriors(order, last - first, chart, False, out)
            _count_steps(lists, first, last, k, chart, bases, counts[block])
        else:
            out[:] = 0.0


@njit(cache=True, nogil=True)
def factored_paths(block, count, sr, lists, k, nodes, logs, u, paths, values):
    """The same as `lattice_paths`, for transitions that are the same everywhere."""
    order, offsets, starts, labels, _ = lists
    chart = _chart_of(block, count, order, offsets, starts, True)
    bases = np.empty(len(chart.states), np.uint64)
    for s in range(block, len(values), count):
        first, last = offsets[s], offsets[s + 1]
        _fill_factored(lists, first, last, k, nodes, logs, True, chart, bases)
        _walk(sr, order, first, last, starts, labels, chart, u, paths, values, s)
