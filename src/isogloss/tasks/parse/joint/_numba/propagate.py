"""Belief propagation over a sentence: chains of each attribute, then words, then links, then the tree, and back."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.arithmetic import Logs, Plain
from isogloss.structures._numba.eisner import log_trees, marginal_trees
from isogloss.structures._numba.lattice import log_backward, log_forward, new_chart, sums
from isogloss.structures._numba.spanning import spanning_trees
from isogloss.structures.semiring import LOG

__all__ = [
    "chain",
    "chain_chart",
    "distribution",
    "factor_parts",
    "neighbours_of",
    "propagate",
    "tell_tree",
    "tree_marginals",
    "within_of",
]

LEAST = 1e-300
LOWEST = -1e5  # stands for the logarithm of 0 in messages that are found in logarithms
_FARTHEST = 600.0  # log-odds beyond are as good as certain; and their exponentials are still numbers


@njit(cache=True, nogil=True)
def tree_marginals(scores, projective, single, out):
    """log Z and marginals of trees with these log weights of links (head, child); NaN if they cannot be had."""
    size = scores.shape[0]
    offsets, sizes = np.array([0, size * size]), np.array([size])
    values, flat, grad = np.zeros(1), scores.copy().reshape(size * size), out.reshape(size * size)
    chosen = np.ones(1, np.bool_)
    grad[:] = 0.0
    if projective:
        marginal_trees(0, 1, flat, offsets, sizes, single, grad, values)
        if np.isnan(values[0]):
            grad[:] = 0.0
            log_trees(0, 1, LOG, flat, offsets, sizes, single, np.empty(0), np.zeros(2, np.int64), grad, values)
    else:
        spanning_trees(0, 1, Plain(0), chosen, flat, offsets, sizes, single, False, grad, values)
        if np.isnan(values[0]):
            grad[:] = 0.0
            spanning_trees(0, 1, Logs(0), chosen, flat, offsets, sizes, single, False, grad, values)
    return values[0]


@njit(cache=True, nogil=True, inline="always")
def _log(x):
    return np.log(max(x, LEAST))


@njit(cache=True, nogil=True)
def distribution(totals, told, start, stop, out):
    """out ∝ exp(totals - told) for the values start … stop - 1; returns the logarithm of what was divided by."""
    top, mass = -np.inf, 0.0
    for c in range(start, stop):
        top = max(top, totals[c] - told[c])
    for c in range(start, stop):
        out[c - start] = np.exp(totals[c] - told[c] - top)
        mass += out[c - start]
    for c in range(stop - start):
        out[c] /= mass
    return top + np.log(mass)


@njit(cache=True, nogil=True)
def chain_chart(sentence, n_attributes):
    """Room for the chain of any attribute."""
    nodes, states, steps = len(sentence.words), 0, 0
    for a in range(n_attributes):
        some, more, before = 2, 0, 1
        for node in range(1, nodes):
            x = node * n_attributes + a
            wide = sentence.starts[x + 1] - sentence.starts[x]
            some, more, before = some + wide, more + before * wide, wide
        states, steps = max(states, some), max(steps, more + before)
    return new_chart(nodes + 1, states, steps)


@njit(cache=True, nogil=True)
def _fill_chain(sentence, n_attributes, potentials, a, graph, logs, chart):
    """What others said, and the table: an edge, the words, and an edge again, as weights or as logarithms.

    Returns
    -------
    float
        The logarithm of what weights of words were divided by.
    """
    edge, n, log_z = potentials.shape[0] - 1, len(sentence.words) - 1, 0.0
    sizes, states, steps = chart.sizes, chart.states, chart.steps
    sizes[0] = sizes[n + 1] = 1
    states[0] = 0.0 if logs else 1.0
    s, p, before, here = 1, 0, 0, 0
    for node in range(1, n + 2):
        start, stop = here, here
        if node <= n:
            x = node * n_attributes + a
            start, stop = sentence.starts[x], sentence.starts[x + 1]
            norm = distribution(graph.totals, graph.from_chain, start, stop, states[s : s + stop - start])
            log_z += norm
            sizes[node] = stop - start
            for c in range(start, stop if logs else start):
                states[s + c - start] = graph.totals[c] - graph.from_chain[c] - norm
        else:
            states[s] = states[0]
        for b in range(sizes[node - 1]):
            v = edge if node == 1 else sentence.values[before + b]
            for c in range(sizes[node]):
                w = edge if node > n else sentence.values[start + c]
                steps[p] = np.log(potentials[v, w]) if logs else potentials[v, w]
                p += 1
        s, before, here = s + sizes[node], start, stop
    return log_z


@njit(cache=True, nogil=True)
def chain(sentence, shape, potentials, a, graph, chart, keep):
    """What TAG-BIGRAM of one attribute says to each value.

    Parameters
    ----------
    potentials : float64[size + 1, size + 1]
    chart : Chart
        Overwritten; positions are an edge, the words, and an edge. If steps are kept, they are posteriors of pairs.

    Returns
    -------
    float
        log Z of the chain, whose unary scores are what others said.
    """
    n_attributes, n = len(shape.sizes), len(sentence.words) - 1
    log_z = _fill_chain(sentence, n_attributes, potentials, a, graph, False, chart)
    value = sums(1, n + 2, chart, keep)
    logs = np.isnan(value)
    if logs:
        _fill_chain(sentence, n_attributes, potentials, a, graph, True, chart)
        value = log_forward(LOG, 1, n + 2, chart)
        log_backward(LOG, 1, n + 2, value, chart, keep)
    s = 1
    for node in range(1, n + 1):
        x = node * n_attributes + a
        for c in range(sentence.starts[x], sentence.starts[x + 1]):
            message = max(chart.alpha[s] - value, LOWEST) if logs else _log(chart.alpha[s])
            graph.totals[c] += message - graph.from_chain[c]
            graph.from_chain[c] = message
            s += 1
    return log_z + value


@njit(cache=True, nogil=True)
def _consistency(sentence, n_attributes, potentials, a, graph, p, q):
    """TAG-CONSISTENCY of one attribute with the part of speech, in all words."""
    starts, values, totals = sentence.starts, sentence.values, graph.totals
    to_pos, to_attribute = graph.to_pos, graph.to_attribute
    for node in range(1, len(sentence.words)):
        x, y = node * n_attributes, node * n_attributes + a
        first, last, start, stop = starts[x], starts[x + 1], starts[y], starts[y + 1]
        if last - first == 1 and stop - start == 1:
            continue
        distribution(totals[first:last], to_pos[y], 0, last - first, p)
        distribution(totals, to_attribute, start, stop, q)
        for c in range(start, stop):
            total = 0.0
            for b in range(first, last):
                total += p[b - first] * potentials[values[b], values[c]]
            message = _log(total)
            totals[c] += message - to_attribute[c]
            to_attribute[c] = message
        for b in range(first, last):
            total = 0.0
            for c in range(start, stop):
                total += q[c - start] * potentials[values[b], values[c]]
            message = _log(total)
            totals[b] += message - to_pos[y, b - first]
            to_pos[y, b - first] = message


@njit(cache=True, nogil=True)
def factor_parts(sentence, n_attributes, graph, f):
    x = graph.head[f] * n_attributes + graph.attribute[f]
    y = graph.child[f] * n_attributes + graph.attribute[f]
    return sentence.starts[x], sentence.starts[x + 1], sentence.starts[y], sentence.starts[y + 1]


@njit(cache=True, nogil=True)
def _tell_links(sentence, n_attributes, graph):
    """From ternary factors to links: the log of the sum over tags of the table."""
    for f in range(len(graph.head)):
        first, last, start, stop = factor_parts(sentence, n_attributes, graph, f)
        room, middle, at = graph.rooms[f], graph.rooms[f] + last - first, graph.cells[f]
        end = graph.rooms[f + 1]
        distribution(graph.totals[first:last], graph.to_tags[room:middle], 0, last - first, graph.given[room:middle])
        distribution(graph.totals[start:stop], graph.to_tags[middle:end], 0, stop - start, graph.given[middle:end])
        total = 0.0
        for i in range(last - first):
            row = 0.0
            for j in range(stop - start):
                row += graph.given[middle + j] * graph.tables[at + i * (stop - start) + j]
            total += graph.given[room + i] * row
        message = _log(total) + graph.tops[f]
        graph.link_totals[graph.head[f], graph.child[f]] += message - graph.to_link[f]
        graph.to_link[f] = message


@njit(cache=True, nogil=True)
def _tell_tags(sentence, n_attributes, graph):
    """From ternary factors to tags: log(1 + odds of the link * sum over the other tag of the table)."""
    for f in range(len(graph.head)):
        first, last, start, stop = factor_parts(sentence, n_attributes, graph, f)
        room, middle, at, wide = graph.rooms[f], graph.rooms[f] + last - first, graph.cells[f], stop - start
        told = graph.link_totals[graph.head[f], graph.child[f]] - graph.to_link[f] + graph.tops[f]
        odds = np.exp(min(max(told, -_FARTHEST), _FARTHEST))
        for i in range(last - first if last - first > 1 else 0):
            total = 0.0
            for j in range(wide):
                total += graph.given[middle + j] * graph.tables[at + i * wide + j]
            message = np.log1p(odds * total)
            graph.totals[first + i] += message - graph.to_tags[room + i]
            graph.to_tags[room + i] = message
        for j in range(wide if wide > 1 else 0):
            total = 0.0
            for i in range(last - first):
                total += graph.given[room + i] * graph.tables[at + i * wide + j]
            message = np.log1p(odds * total)
            graph.totals[start + j] += message - graph.to_tags[middle + j]
            graph.to_tags[middle + j] = message


@njit(cache=True, nogil=True)
def tell_tree(graph, projective, single):
    """What TREE says to each link: log-odds of its marginal, less what it was told; log Z."""
    size = graph.link_totals.shape[0]
    scores, marginals = graph.link_totals - graph.from_tree, np.zeros((size, size))
    log_z = tree_marginals(scores, projective, single, marginals)
    if np.isnan(log_z):  # scores too far apart for sums over trees
        for child in range(1, size):
            top = scores[:, child].max()
            for head in range(size):
                if head != child:
                    scores[head, child] = max(scores[head, child], top - _FARTHEST / 10)
        log_z = tree_marginals(scores, projective, single, marginals)
    rest = np.empty(size)
    for child in range(1, size):
        below = 0.0
        for head in range(size):
            rest[head] = below
            below += marginals[head, child]
        below = 0.0
        for head in range(size - 1, -1, -1):
            rest[head] += below
            below += marginals[head, child]
        for head in range(size):
            if head != child:
                total = _log(marginals[head, child]) - _log(rest[head])
                graph.from_tree[head, child] = total - scores[head, child]
                graph.link_totals[head, child] = total
    return log_z


@njit(cache=True, nogil=True)
def neighbours_of(shape, potentials, a):
    """The table of TAG-BIGRAM of an attribute: [size + 1, size + 1]."""
    size, start = shape.sizes[a] + 1, shape.bigrams[a] - shape.bigrams[0]
    return potentials[start : start + size * size].reshape((size, size))


@njit(cache=True, nogil=True)
def within_of(shape, potentials, a):
    """The table of TAG-CONSISTENCY of an attribute: [n_pos, size]."""
    start = shape.consistency[a] - shape.bigrams[0]
    return potentials[start : start + shape.sizes[0] * shape.sizes[a]].reshape((shape.sizes[0], shape.sizes[a]))


@njit(cache=True, nogil=True)
def propagate(sentence, shape, potentials, graph, links, projective, single, iterations, tolerance):
    """Send messages until they rest (no total moves by more than `tolerance`) or `iterations` are over.

    Parameters
    ----------
    potentials : float64[n]
        exp of all weights of TAG-BIGRAM and TAG-CONSISTENCY.

    Returns
    -------
    int
        How many iterations it took.
    """
    n_attributes, values = len(shape.sizes), len(sentence.values)
    chart = chain_chart(sentence, n_attributes)
    most = shape.sizes.max() + 1
    p, q, old = np.empty(most), np.empty(most), np.empty(values if tolerance > 0.0 else 0)
    for iteration in range(iterations):
        old[:] = graph.totals[: len(old)]
        for a in range(n_attributes):
            chain(sentence, shape, neighbours_of(shape, potentials, a), a, graph, chart, False)
        for a in range(1, n_attributes):
            _consistency(sentence, n_attributes, within_of(shape, potentials, a), a, graph, p, q)
        if links:
            _tell_links(sentence, n_attributes, graph)
            tell_tree(graph, projective, single)
            _tell_tags(sentence, n_attributes, graph)
        if tolerance > 0.0 and _rests(sentence, graph, old, tolerance):
            return iteration + 1
    return iterations


@njit(cache=True, nogil=True)
def _rests(sentence, graph, old, tolerance):
    """Whether no log-ratio between values of a variable has moved."""
    for x in range(len(sentence.starts) - 1):
        first = sentence.starts[x]
        moved = graph.totals[first] - old[first]
        for c in range(first, sentence.starts[x + 1]):
            if abs(graph.totals[c] - old[c] - moved) > tolerance:
                return False
    return True
