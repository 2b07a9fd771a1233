"""Beliefs, Bethe's log Z, and the gradient of the likelihood of one sentence."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.tasks.parse.joint._numba.build import build
from isogloss.tasks.parse.joint._numba.propagate import (
    chain,
    chain_chart,
    distribution,
    factor_parts,
    neighbours_of,
    propagate,
    tell_tree,
    within_of,
)

__all__ = ["beliefs", "bethe", "gold_score", "gradient"]


@njit(cache=True, nogil=True)
def _read(sentence, graph, links, tags, chances):
    """Beliefs of tags and links from what messages say."""
    nothing = np.zeros(len(graph.totals))
    for x in range(len(sentence.starts) - 1):
        start, stop = sentence.starts[x], sentence.starts[x + 1]
        distribution(graph.totals, nothing, start, stop, tags[start:stop])
    if links:
        size = graph.link_totals.shape[0]
        for child in range(1, size):
            total = 0.0
            for head in range(size):
                if head != child:
                    chances[head, child] = 1.0 / (1.0 + np.exp(-graph.link_totals[head, child]))
                    total += chances[head, child]
            for head in range(size):
                chances[head, child] /= total


@njit(cache=True, nogil=True)
def beliefs(sentence, shape, weights, potentials, links, projective, single, iterations, tolerance):
    """Posteriors of the values of all tags, float64[n_values], and of links, float64[n + 1, n + 1]; iterations."""
    graph = build(sentence, shape, weights, links)
    took = propagate(sentence, shape, potentials, graph, links, projective, single, iterations, tolerance)
    size = len(sentence.words)
    tags, chances = np.zeros(len(sentence.values)), np.zeros((size, size))
    _settle(sentence, shape, potentials, graph)
    _read(sentence, graph, links, tags, chances)
    return tags, chances, took


@njit(cache=True, nogil=True)
def _settle(sentence, shape, potentials, graph):
    """Let chains speak once more, so that what links said reaches the neighbours; log Z of all chains."""
    chart, log_z = chain_chart(sentence, len(shape.sizes)), 0.0
    for a in range(len(shape.sizes)):
        log_z += chain(sentence, shape, neighbours_of(shape, potentials, a), a, graph, chart, False)
    return log_z


@njit(cache=True, nogil=True)
def gold_score(sentence, shape, weights, potentials, graph, links):
    """The log score of the right tags and tree, of a graph in which no message was sent yet."""
    n_attributes, score = len(shape.sizes), 0.0
    for a in range(n_attributes):
        table, last = neighbours_of(shape, potentials, a), shape.sizes[a]
        for node in range(1, len(sentence.words)):
            x = node * n_attributes + a
            c = sentence.starts[x] + sentence.gold[x]
            score += graph.totals[c] + np.log(table[last, sentence.values[c]])
            last = sentence.values[c]
            if a:
                b = sentence.starts[node * n_attributes] + sentence.gold[node * n_attributes]
                score += np.log(within_of(shape, potentials, a)[sentence.values[b], last])
        score += np.log(table[last, shape.sizes[a]])
    if links:
        for child in range(1, len(sentence.words)):
            score += graph.link_totals[sentence.heads[child], child]
        for f in range(len(graph.head)):
            if sentence.heads[graph.child[f]] == graph.head[f]:
                x = graph.head[f] * n_attributes + graph.attribute[f]
                y = graph.child[f] * n_attributes + graph.attribute[f]
                wide = sentence.starts[y + 1] - sentence.starts[y]
                score += graph.scores[graph.cells[f] + sentence.gold[x] * wide + sentence.gold[y]]
    return score


@njit(cache=True, nogil=True)
def bethe(sentence, shape, potentials, graph, links, projective, single):
    r"""Bethe's log Z, from messages: :math:`\sum_f \log Z_f + \sum_v (1 - d_v) \log Z_v`.

    Where messages rest, its derivatives are the beliefs; with factors of links that are all constant it is exact for
    one attribute. :math:`Z_f` takes what variables told the factor, and :math:`Z_v` all that a variable was told.
    """
    n_attributes, nodes = len(shape.sizes), len(sentence.words)
    degrees, log_z = np.zeros(nodes * n_attributes, np.int64), _settle(sentence, shape, potentials, graph)
    p, q = np.empty(shape.sizes.max() + 1), np.empty(shape.sizes.max() + 1)
    for node in range(1, nodes):
        for a in range(n_attributes):
            x, y = node * n_attributes, node * n_attributes + a
            degrees[y] += 1
            first, last, start, stop = (
                sentence.starts[x],
                sentence.starts[x + 1],
                sentence.starts[y],
                sentence.starts[y + 1],
            )
            if a == 0:
                continue
            degrees[x] += 1
            degrees[y] += 1
            log_z += distribution(graph.totals[first:last], graph.to_pos[y], 0, last - first, p)
            log_z += distribution(graph.totals, graph.to_attribute, start, stop, q)
            table, total = within_of(shape, potentials, a), 0.0
            for b in range(first, last):
                for c in range(start, stop):
                    total += p[b - first] * q[c - start] * table[sentence.values[b], sentence.values[c]]
            log_z += np.log(total)
    if links:
        log_z += _bethe_links(sentence, n_attributes, graph, projective, single, degrees)
    nothing = np.zeros(len(graph.totals))
    for x in range(n_attributes, len(degrees)):
        start, stop = sentence.starts[x], sentence.starts[x + 1]
        log_z += (1 - degrees[x]) * distribution(graph.totals, nothing, start, stop, p)
    return log_z


@njit(cache=True, nogil=True)
def _bethe_links(sentence, n_attributes, graph, projective, single, degrees):
    size = len(sentence.words)
    among, given = np.ones((size, size), np.int64), graph.given.copy()
    log_z = 0.0
    for f in range(len(graph.head)):
        first, last, start, stop = factor_parts(sentence, n_attributes, graph, f)
        room, middle, end = graph.rooms[f], graph.rooms[f] + last - first, graph.rooms[f + 1]
        head, child, wide = graph.head[f], graph.child[f], stop - start
        if head:
            degrees[head * n_attributes + graph.attribute[f]] += 1
            log_z += distribution(
                graph.totals[first:last], graph.to_tags[room:middle], 0, last - first, given[room:middle]
            )
        else:
            given[room] = 1.0
        degrees[child * n_attributes + graph.attribute[f]] += 1
        log_z += distribution(graph.totals[start:stop], graph.to_tags[middle:end], 0, wide, given[middle:end])
        among[head, child] += 1
        total = 0.0
        for i in range(last - first):
            for j in range(wide):
                total += given[room + i] * given[middle + j] * graph.tables[graph.cells[f] + i * wide + j]
        log_z += np.logaddexp(0.0, graph.link_totals[head, child] - graph.to_link[f] + graph.tops[f] + np.log(total))
    for child in range(1, size):
        for head in range(size):
            if head != child:
                log_z += (1 - among[head, child]) * np.logaddexp(0.0, graph.link_totals[head, child])
    return log_z + tell_tree(graph, projective, single)


@njit(cache=True, nogil=True)
def _roomy(places, values, at, more):
    """The lists, with room for so many more derivatives."""
    if at + more <= len(places):
        return places, values
    size = max(2 * len(places), at + more)
    wider, deeper = np.empty(size, np.int64), np.empty(size)
    wider[:at], deeper[:at] = places[:at], values[:at]
    return wider, deeper


@njit(cache=True, nogil=True)
def _unigram_derivatives(sentence, shape, tags, node, small, places, values, at):
    """Right less expected features of TAG-UNIGRAM of one word; there is room for them."""
    n_attributes, width = len(shape.sizes), shape.value_starts[-1]
    where, off, count = np.empty(width, np.int64), np.empty(width), 0
    for a in range(n_attributes):
        x = node * n_attributes + a
        start = sentence.starts[x]
        for c in range(start, sentence.starts[x + 1]):
            rest = (1.0 if c - start == sentence.gold[x] else 0.0) - tags[c]
            if abs(rest) > small:
                where[count], off[count] = shape.value_starts[a] + sentence.values[c], rest
                count += 1
    for k in range(sentence.feature_starts[node], sentence.feature_starts[node + 1]):
        row = sentence.features[k] * width
        for c in range(count):
            places[at], values[at] = row + where[c], off[c]
            at += 1
    return at


@njit(cache=True, nogil=True)
def _bigram_derivatives(sentence, shape, a, node, pairs, tags, small, places, values, at):
    """Those of TAG-BIGRAM of one word with the one before, and with the edges; there is room for them.

    pairs : float64[n]
        Posteriors of the values of the word before and of the word, from the second word on.
    """
    n_attributes, edge, n = len(shape.sizes), shape.sizes[a], len(sentence.words) - 1
    x = node * n_attributes + a
    start, stop = sentence.starts[x], sentence.starts[x + 1]
    for c in range(start, stop if node == 1 or node == n else start):
        off = (1.0 if c - start == sentence.gold[x] else 0.0) - tags[c]
        v = sentence.values[c]
        if node == 1 and abs(off) > small:
            places[at], values[at] = shape.bigrams[a] + edge * (edge + 1) + v, off
            at += 1
        if node == n and abs(off) > small:
            places[at], values[at] = shape.bigrams[a] + v * (edge + 1) + edge, off
            at += 1
    if node == 1:
        return at
    first, last, p = sentence.starts[x - n_attributes], sentence.starts[x - n_attributes + 1], 0
    for b in range(first, last):
        v = sentence.values[b]
        for c in range(start, stop):
            w = sentence.values[c]
            off = -pairs[p]
            p += 1
            if b - first == sentence.gold[x - n_attributes] and c - start == sentence.gold[x]:
                off += 1.0
            if abs(off) > small:
                places[at], values[at] = shape.bigrams[a] + v * (edge + 1) + w, off
                at += 1
    return at


@njit(cache=True, nogil=True)
def _tag_derivatives(sentence, shape, potentials, graph, tags, small, places, values, at):
    """Right less expected features of TAG-BIGRAM, TAG-CONSISTENCY, and TAG-UNIGRAM.

    Chains speak once more, attribute by attribute, so that what others said reaches the neighbours; `tags` get beliefs.
    """
    n_attributes, n = len(shape.sizes), len(sentence.words) - 1
    most = shape.sizes.max() + 1
    chart, p, q, nothing = chain_chart(sentence, n_attributes), np.empty(most), np.empty(most), np.zeros(len(tags))
    for a in range(n_attributes):
        chain(sentence, shape, neighbours_of(shape, potentials, a), a, graph, chart, True)
        start, stop = 0, 0
        for node in range(1, n + 1):
            x = node * n_attributes + a
            first, last = sentence.starts[x], sentence.starts[x + 1]
            distribution(graph.totals, nothing, first, last, tags[first:last])
            own = last - first
            before = sentence.starts[x - n_attributes + 1] - sentence.starts[x - n_attributes]
            start, stop = stop, stop + own * chart.sizes[node - 1]
            parts = sentence.starts[node * n_attributes + 1] - sentence.starts[node * n_attributes]
            if own * before * parts == 1 and 1 < node < n:
                continue
            places, values = _roomy(places, values, at, own * (before + parts + 2))
            at = _bigram_derivatives(
                sentence, shape, a, node, chart.steps[start:stop], tags, small, places, values, at
            )  # fmt: skip
            if a and own * parts > 1:
                table_within = within_of(shape, potentials, a)
                at = _consistency_derivatives(
                    sentence, shape, table_within, graph, node, a, p, q, small, places, values, at
                )
    for node in range(1, n + 1):
        own = sentence.starts[(node + 1) * n_attributes] - sentence.starts[node * n_attributes]
        features = sentence.feature_starts[node + 1] - sentence.feature_starts[node]
        places, values = _roomy(places, values, at, own * features)
        at = _unigram_derivatives(sentence, shape, tags, node, small, places, values, at)
    return places, values, at


@njit(cache=True, nogil=True)
def _consistency_derivatives(sentence, shape, table, graph, node, a, p, q, small, places, values, at):
    x, y = node * len(shape.sizes), node * len(shape.sizes) + a
    first, last, start, stop = sentence.starts[x], sentence.starts[x + 1], sentence.starts[y], sentence.starts[y + 1]
    distribution(graph.totals[first:last], graph.to_pos[y], 0, last - first, p)
    distribution(graph.totals, graph.to_attribute, start, stop, q)
    mass = 0.0
    for b in range(first, last):
        for c in range(start, stop):
            mass += p[b - first] * q[c - start] * table[sentence.values[b], sentence.values[c]]
    for b in range(first, last):
        for c in range(start, stop):
            v, w = sentence.values[b], sentence.values[c]
            off = -p[b - first] * q[c - start] * table[v, w] / mass
            if b - first == sentence.gold[x] and c - start == sentence.gold[y]:
                off += 1.0
            if abs(off) > small:
                places[at], values[at] = shape.consistency[a] + v * shape.sizes[a] + w, off
                at += 1
    return at


@njit(cache=True, nogil=True)
def _put_all(places, values, at, start, graph, k, off):
    """A derivative for each feature of list k."""
    first, last = graph.fired_ends[k], graph.fired_ends[k + 1]
    places, values = _roomy(places, values, at, last - first)
    for j in range(first, last):
        places[at], values[at] = start + graph.fired[j], off
        at += 1
    return places, values, at


@njit(cache=True, nogil=True)
def _link_derivatives(sentence, shape, graph, chances, small, places, values, at):
    """Right less expected features of WORD-LINK, POS-LINK and MORPH-LINK."""
    n_attributes, start, n, f = len(shape.sizes), shape.link_start, len(sentence.words) - 1, 0
    for child in range(1, n + 1):
        for head in range(n + 1):
            if head == child:
                continue
            right = sentence.heads[child] == head
            off = (1.0 if right else 0.0) - chances[head, child]
            if abs(off) <= small and chances[head, child] <= small:  # nothing to learn: on to the factors of the next
                while f < len(graph.head) and graph.head[f] == head and graph.child[f] == child:
                    f += 1
                continue
            k = graph.fired_first[head, child]
            if abs(off) > small:
                places, values, at = _put_all(places, values, at, start, graph, k, off)
            for a in range(n_attributes):
                x, y = head * n_attributes + a, child * n_attributes + a
                here = f < len(graph.head) and graph.head[f] == head and graph.child[f] == child
                here = here and graph.attribute[f] == a
                first, last, begin, end = (
                    sentence.starts[x],
                    sentence.starts[x + 1],
                    sentence.starts[y],
                    sentence.starts[y + 1],
                )
                scale = 0.0
                if here:
                    scale = _scale(graph, f, last - first, end - begin)
                for i in range(last - first):
                    for j in range(end - begin):
                        v, w = sentence.values[first + i], sentence.values[begin + j]
                        if a and not (w and (v or shape.government)):
                            continue
                        k += 1
                        cell = chances[head, child]
                        if here:
                            cell = graph.given[graph.rooms[f] + i] * graph.given[graph.rooms[f] + last - first + j]
                            cell *= graph.tables[graph.cells[f] + i * (end - begin) + j] * scale
                        elif last - first + end - begin > 2:
                            cell = 0.0  # cannot be: a factor that is not constant has its place
                        good = right and i == sentence.gold[x] and j == sentence.gold[y]
                        off = (1.0 if good else 0.0) - cell
                        if abs(off) > small:
                            places, values, at = _put_all(places, values, at, start, graph, k, off)
                f += here
    return places, values, at


@njit(cache=True, nogil=True)
def _scale(graph, f, n_head, n_child):
    """What the products of a ternary factor are multiplied by to be probabilities that its link is there."""
    room, middle, total = graph.rooms[f], graph.rooms[f] + n_head, 0.0
    for i in range(n_head):
        for j in range(n_child):
            total += graph.given[room + i] * graph.given[middle + j] * graph.tables[graph.cells[f] + i * n_child + j]
    told = graph.link_totals[graph.head[f], graph.child[f]] - graph.to_link[f] + graph.tops[f]
    if told > 0.0:
        return 1.0 / (np.exp(-told) + total)
    odds = np.exp(told)
    return odds / (1.0 + odds * total)


@njit(cache=True, nogil=True)
def gradient(sentence, shape, weights, potentials, links, tag, projective, single, iterations, tolerance, small):
    """Derivatives of the log-likelihood of one sentence by beliefs of its factors.

    Parameters
    ----------
    links : bool
        Whether there are links at all.
    tag : bool
        Whether tags are learnt; those of a pipeline's parser are not.
    small : float
        Derivatives by the score of a cell up to this size are left out: nearly all links are nearly impossible.

    Returns
    -------
    places : int64[n]
        Of the weights, some of them more than once.
    values : float64[n]
    float
        The log-likelihood, with Bethe's log Z; 0 without links, where nobody looks at it.
    """
    graph = build(sentence, shape, weights, links)
    score = gold_score(sentence, shape, weights, potentials, graph, links) if links else 0.0
    propagate(sentence, shape, potentials, graph, links, projective, single, iterations, tolerance)
    size = len(sentence.words)
    tags, chances = np.zeros(len(sentence.values)), np.zeros((size, size))
    places, values, at = np.empty(4096, np.int64), np.empty(4096), 0
    if links:
        _settle(sentence, shape, potentials, graph)
        _read(sentence, graph, links, tags, chances)
        _refresh(sentence, len(shape.sizes), graph)
        places, values, at = _link_derivatives(sentence, shape, graph, chances, small, places, values, at)
    if tag:
        places, values, at = _tag_derivatives(sentence, shape, potentials, graph, tags, small, places, values, at)
    if links:
        score -= bethe(sentence, shape, potentials, graph, links, projective, single)
    return places[:at], values[:at], score


@njit(cache=True, nogil=True)
def _refresh(sentence, n_attributes, graph):
    """What tags tell ternary factors in the end."""
    for f in range(len(graph.head)):
        first, last, start, stop = factor_parts(sentence, n_attributes, graph, f)
        room, middle, end = graph.rooms[f], graph.rooms[f] + last - first, graph.rooms[f + 1]
        distribution(graph.totals[first:last], graph.to_tags[room:middle], 0, last - first, graph.given[room:middle])
        distribution(graph.totals[start:stop], graph.to_tags[middle:end], 0, stop - start, graph.given[middle:end])
