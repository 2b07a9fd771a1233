"""The factor graph of a sentence: its scores, and messages that say nothing yet."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.tasks.parse.joint._numba.features import list_cell, list_words, most_fired, see_link, workspace
from isogloss.tasks.parse.joint._numba.layout import Graph

__all__ = ["build"]


@njit(cache=True, nogil=True)
def _unary(sentence, shape, weights, totals):
    """TAG-UNIGRAM."""
    n_attributes, width = len(shape.sizes), shape.value_starts[-1]
    places = np.empty(width, np.int64)
    for node in range(1, len(sentence.words)):
        first, last = sentence.starts[node * n_attributes], sentence.starts[(node + 1) * n_attributes]
        for a in range(n_attributes):
            x = node * n_attributes + a
            for c in range(sentence.starts[x], sentence.starts[x + 1]):
                places[c - first] = shape.value_starts[a] + sentence.values[c]
        for k in range(sentence.feature_starts[node], sentence.feature_starts[node + 1]):
            row = sentence.features[k] * width
            for c in range(first, last):
                totals[c] += weights[row + places[c - first]]


@njit(cache=True, nogil=True)
def _varies(sentence, x, y, a, government):
    """Whether a factor between two variables is more than a constant."""
    first, last = sentence.starts[x], sentence.starts[x + 1]
    start, stop = sentence.starts[y], sentence.starts[y + 1]
    if (last - first) * (stop - start) == 1:
        return False
    if a == 0:
        return True
    here, there = government, False
    for c in range(first, last):
        here |= sentence.values[c] != 0
    for c in range(start, stop):
        there |= sentence.values[c] != 0
    return here and there


@njit(cache=True, nogil=True)
def _count(sentence, shape):
    """How many factors there are, how many cells they have, and to how many values they speak; and on how many cells
    features may fire, and at most how many."""
    factors = cells = rooms = lists = fired = 0
    n, n_attributes, government, families = (
        len(sentence.words) - 1, len(shape.sizes), shape.government, shape.templates.families,
    )  # fmt: skip
    starts, values = sentence.starts, sentence.values
    for child in range(1, n + 1):
        for head in range(n + 1):
            if head == child:
                continue
            lists += 1
            fired += most_fired(families, -1, 0)
            for a in range(n_attributes):
                x, y = head * n_attributes + a, child * n_attributes + a
                first, second = starts[x + 1] - starts[x], starts[y + 1] - starts[y]
                many = first * second
                if _varies(sentence, x, y, a, government):
                    factors += 1
                    cells += many
                    rooms += first + second
                elif a:
                    v, w = values[starts[x]], values[starts[y]]
                    many = 1 if many == 1 and w and (v or government) else 0
                lists += many
                fired += many * most_fired(families, a, abs(head - child))
    return factors, cells, rooms, lists, fired


@njit(cache=True, nogil=True)
def _sum(weights, start, fired, first, last):
    total = 0.0
    for k in range(first, last):
        total += weights[start + fired[k]]
    return total


@njit(cache=True, nogil=True)
def _links(sentence, shape, weights, graph):
    """WORD-LINK, POS-LINK and MORPH-LINK: scores, and the features that fire, which gradients need again."""
    n_attributes, start, government, templates = len(shape.sizes), shape.link_start, shape.government, shape.templates
    work, table, families, tried = workspace(templates), shape.table, templates.families, templates.tried
    fired, ends = graph.fired, graph.fired_ends
    n, f, k, to = len(sentence.words) - 1, 0, 0, 0
    for child in range(1, n + 1):
        for head in range(n + 1):
            if head == child:
                continue
            see_link(templates, sentence, head, child, work)
            graph.fired_first[head, child] = k
            to = list_words(table, families, tried, work, fired, ends[k])
            static = _sum(weights, start, fired, ends[k], to)
            if len(sentence.links):
                static += sentence.links[head, child]
            k += 1
            ends[k] = to
            for a in range(n_attributes):
                x, y = head * n_attributes + a, child * n_attributes + a
                varies = _varies(sentence, x, y, a, government)
                at = graph.cells[f]
                for i in range(sentence.starts[x], sentence.starts[x + 1]):
                    for j in range(sentence.starts[y], sentence.starts[y + 1]):
                        v, w = sentence.values[i], sentence.values[j]
                        score = 0.0
                        if a == 0 or (w and (v or government)):
                            to = list_cell(table, families, tried, a, v, w, work, fired, ends[k])
                            score = _sum(weights, start, fired, ends[k], to)
                            k += 1
                            ends[k] = to
                        if varies:
                            graph.scores[at] = score
                            at += 1
                        else:
                            static += score
                if varies:
                    graph.head[f], graph.child[f], graph.attribute[f] = head, child, a
                    top = graph.scores[graph.cells[f] : at].max()
                    graph.tops[f] = top
                    for c in range(graph.cells[f], at):
                        graph.tables[c] = np.exp(graph.scores[c] - top)
                    wide = sentence.starts[x + 1] - sentence.starts[x] + sentence.starts[y + 1] - sentence.starts[y]
                    graph.cells[f + 1], graph.rooms[f + 1] = at, graph.rooms[f] + wide
                    f += 1
            graph.link_totals[head, child] = static


@njit(cache=True, nogil=True)
def build(sentence, shape, weights, links):
    """The graph of a sentence, with factors of links or, for a tagger, without.

    A ternary factor whose tags can have one value each is a constant, and goes to the score of its link.
    """
    n_attributes, n = len(shape.sizes), len(sentence.words) - 1
    values, variables, size = len(sentence.values), (n + 1) * n_attributes, n + 1 if links else 0
    factors, cells, rooms, lists, fired = _count(sentence, shape) if links else (0, 0, 0, 0, 0)
    graph = Graph(
        np.zeros(values), np.zeros(values), np.zeros(values), np.zeros((variables, shape.sizes[0] + 1)),
        np.full((n + 1, n + 1), -np.inf), np.zeros((n + 1, n + 1)),
        np.zeros(factors, np.int64), np.zeros(factors, np.int64), np.zeros(factors, np.int64),
        np.zeros(factors + 1, np.int64), np.zeros(factors + 1, np.int64), np.zeros(cells), np.zeros(cells),
        np.zeros(factors), np.zeros(factors), np.zeros(rooms), np.zeros(rooms),
        np.empty(fired, np.uint32), np.zeros(lists + 1, np.int64), np.zeros((size, size), np.int64),
    )  # fmt: skip
    graph.totals[:] = sentence.prior
    _unary(sentence, shape, weights, graph.totals)
    if links:
        _links(sentence, shape, weights, graph)
    return graph
