"""The factor graph of a sentence: its scores, and messages that say nothing yet."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.tasks.parse.joint._numba.features import morph_places, pos_places, see_link, word_places, workspace
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
def _count(sentence, n_attributes, government):
    """How many factors there are, how many cells they have, and to how many values they speak."""
    factors = cells = rooms = 0
    n = len(sentence.words) - 1
    for child in range(1, n + 1):
        for head in range(n + 1):
            for a in range(n_attributes if head != child else 0):
                x, y = head * n_attributes + a, child * n_attributes + a
                if _varies(sentence, x, y, a, government):
                    first, second = (
                        sentence.starts[x + 1] - sentence.starts[x],
                        sentence.starts[y + 1] - sentence.starts[y],
                    )
                    factors += 1
                    cells += first * second
                    rooms += first + second
    return factors, cells, rooms


@njit(cache=True, nogil=True)
def _sum(weights, start, slots, count):
    total = 0.0
    for k in range(count):
        total += weights[start + slots[k]]
    return total


@njit(cache=True, nogil=True)
def _links(sentence, shape, weights, graph):
    """WORD-LINK, POS-LINK and MORPH-LINK."""
    n_attributes, start, government, work = len(shape.sizes), shape.link_start, shape.government, workspace()
    n, f = len(sentence.words) - 1, 0
    for child in range(1, n + 1):
        for head in range(n + 1):
            if head == child:
                continue
            see_link(sentence, head, child, work)
            static = _sum(weights, start, work[3], word_places(shape, work))
            for a in range(n_attributes):
                x, y = head * n_attributes + a, child * n_attributes + a
                varies = _varies(sentence, x, y, a, government)
                at = graph.cells[f]
                for i in range(sentence.starts[x], sentence.starts[x + 1]):
                    for j in range(sentence.starts[y], sentence.starts[y + 1]):
                        v, w = sentence.values[i], sentence.values[j]
                        score = 0.0
                        if a == 0:
                            score = _sum(weights, start, work[3], pos_places(shape, v, w, work))
                        elif w and (v or government):
                            score = _sum(weights, start, work[3], morph_places(shape, a, v, w, work))
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
    values, variables = len(sentence.values), (n + 1) * n_attributes
    factors, cells, rooms = _count(sentence, n_attributes, shape.government) if links else (0, 0, 0)
    graph = Graph(
        np.zeros(values), np.zeros(values), np.zeros(values), np.zeros((variables, shape.sizes[0] + 1)),
        np.full((n + 1, n + 1), -np.inf), np.zeros((n + 1, n + 1)),
        np.zeros(factors, np.int64), np.zeros(factors, np.int64), np.zeros(factors, np.int64),
        np.zeros(factors + 1, np.int64), np.zeros(factors + 1, np.int64), np.zeros(cells), np.zeros(cells),
        np.zeros(factors), np.zeros(factors), np.zeros(rooms), np.zeros(rooms),
    )  # fmt: skip
    graph.totals[:] = sentence.prior
    _unary(sentence, shape, weights, graph.totals)
    if links:
        _links(sentence, shape, weights, graph)
    return graph
