"""The k best trees of labelled spans: a chart of brackets as `kbest` sees it.

Cells, for N spans: beta of span c is number c, inner N + c, rest 2N + c, and the labels of the span 3N + c, whose edges
have nothing below them. Tags are span · (n_labels + 1) + label for labels, where the last stands for none, and −1 for
everything else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from isogloss.structures._numba.brackets import best_inside, first_of_width, stride
from isogloss.structures._numba.kbest import best_of, edges_of, k_derivations

__all__ = ["k_trees"]


class SpanChart(NamedTuple):
    """A filled chart of maxima."""

    n: Any
    binary: Any
    bare: Any
    """How many spans, from the first on, may have no label."""
    scores: Any
    """float64[n_spans, n_labels]"""
    logs: Any
    charts: Any
    ends: Any
    """int64[n_spans, 2]"""


@njit(cache=True, nogil=True)
def _best(chart, cell):
    spans = len(chart.logs)
    kind, span = cell // spans, cell % spans
    i, k = chart.ends[span, 0], chart.ends[span, 1]
    if kind == 3:
        return chart.logs[span]
    if kind == 2:
        return chart.charts[1, k, i]
    return chart.charts[2 if kind == 1 else 0, i, k]


@overload(best_of)
def _best_of(chart, cell):
    if getattr(chart, "instance_class", None) is SpanChart:
        return lambda chart, cell: _best(chart, cell)
    return None


@njit(cache=True, nogil=True)
def _edges(chart, cell, edges, extras):
    spans, labels = chart.scores.shape
    kind, span = cell // spans, cell % spans
    i, k = chart.ends[span, 0], chart.ends[span, 1]
    loose = 0 if chart.binary else 2 * spans
    count = 1
    if kind == 3:
        count = labels + 1 if span < chart.bare else labels
    elif kind == 1:
        count = k - i - 1
    elif kind == 2:
        count = 2 if k - i > 1 else 1
    if count > len(edges):
        return count
    edges[:count] = -1
    extras[:count] = 0.0
    if kind == 3:
        for label in range(count):
            edges[label, 2] = span * (labels + 1) + label
            if label < labels:
                extras[label] = chart.scores[span, label]
    elif kind == 1:
        for j in range(i + 1, k):
            edges[j - i - 1, 0] = first_of_width(chart.n, j - i) + i
            edges[j - i - 1, 1] = loose + first_of_width(chart.n, k - j) + j
    elif kind == 0:  # its label first, then what is inside
        edges[0, 0] = 3 * spans + span
        if k - i > 1:
            edges[0, 1] = spans + span
    else:
        edges[0, 0] = span
        if count == 2:
            edges[1, 0] = spans + span
    return count


@overload(edges_of)
def _edges_of(chart, cell, edges, extras):
    if getattr(chart, "instance_class", None) is SpanChart:
        return lambda chart, cell, edges, extras: _edges(chart, cell, edges, extras)
    return None


@njit(cache=True, nogil=True)
def k_trees(scores, ends, n, binary, bare, rooted, k, values):
    """The `k` best trees of one sentence of at least one word: tags and their numbers, as `k_derivations` gives."""
    spans, labels = scores.shape
    words = n if bare and not (rooted and n == 1) else 0
    logs, charts = np.empty(spans), np.empty((3, n + 1, stride(n + 1)))
    for span in range(spans):
        logs[span] = -np.inf
        for label in range(labels):
            logs[span] = max(logs[span], scores[span, label])
        if span < words:
            logs[span] = max(logs[span], 0.0)
    best_inside(n, logs, binary, charts)
    chart = SpanChart(n, binary, words, scores, logs, charts, ends)
    goal = spans - 1 if rooted or binary else 3 * spans - 1
    return k_derivations(chart, 4 * spans, goal, k, 8 * n, values)
