"""Projective trees of second order: links scored with the sibling before the child, with the head's own head, or both.

One program serves siblings in O(n³) and grandparents, with or without siblings, in O(n⁴). The charts are those of
`eisner`, one for each grandparent g of what hangs below head h (g outside the span), or a single one when grandparents
do not count; ``order`` is 1 or 0 accordingly and multiplies the first index. A third chart holds what lies between two
neighbouring children of h:

    pair[h, i, k]   = ⊕_{i ≤ j < k}  closed[h, i, j] ⊗ closed[h, k, j+1]                        (h outside i … k)
    open_[g, h, m]  = scores[h, m] ⊗ grandparents[g, h, m] ⊗ ( closed[h, m, next to h] ⊗ siblings[h, h, m]
                      ⊕  ⊕_{j between h and m}  open_[g, h, j] ⊗ pair[h, j, m] ⊗ siblings[h, j, m] )
    closed[g, h, m] = ⊕_{j after h, up to m}  open_[g, h, j] ⊗ closed[h, j, m]

Eisner 1996 and McDonald and Pereira 2006 (siblings); Koo and Collins, Efficient third-order dependency parsers, ACL
2010, models 1 and 2 (grandparents, grand-siblings).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.semiring import total, weights

__all__ = ["second_order_trees"]


@njit(cache=True, nogil=True)
def _pair_terms(closed, h, i, k, x):
    for j in range(i, k):
        x[j - i] = closed[h, i, j] + closed[h, k, j + 1]


@njit(cache=True, nogil=True)
def _open_terms(closed, open_, pair, siblings, g, a, h, m, x):
    """`a` is the index of h as a grandparent: h itself or, when grandparents do not count, 0."""
    step = 1 if h < m else -1
    x[0] = closed[a, m, h + step] + siblings[h, h, m]
    for t in range(1, abs(m - h)):
        j = h + t * step
        x[t] = open_[g, h, j] + pair[a, m, j] + siblings[h, j, m]


@njit(cache=True, nogil=True)
def _closed_terms(open_, turned, g, a, h, m, x):
    step = 1 if h < m else -1
    for t in range(abs(m - h)):
        j = h + (t + 1) * step
        x[t] = open_[g, h, j] + turned[a, m, j]


@njit(cache=True, nogil=True)
def _skips(order, i, k, g):
    """Whether no subtree over i … k can hang below a head whose own head is g."""
    if i == 0:
        return g != 0  # the root has no head; 0 stands for none
    return order == 1 and i <= g <= k


@njit(cache=True, nogil=True)
def _inside(sr, scores, siblings, grandparents, order, first, charts, x):
    closed, turned, open_, pair = charts[0], charts[1], charts[2], charts[3]
    size = scores.shape[0]
    for g in range(closed.shape[0]):
        for i in range(size):
            closed[g, i, i] = turned[g, i, i] = 0.0
    for width in range(1, size - first):
        for i in range(first, size - width):
            k = i + width
            for h in range(closed.shape[0]):
                if i > 0 and not _skips(order, i, k, h):
                    _pair_terms(closed, h, i, k, x)
                    pair[h, i, k] = pair[h, k, i] = total(sr, x[:width])
            for g in range(closed.shape[0]):
                if _skips(order, i, k, g):
                    continue
                for h, m in ((i, k), (k, i)):
                    if m == 0:
                        continue
                    _open_terms(closed, open_, pair, siblings, g, order * h, h, m, x)
                    extra = grandparents[g, h, m] if order == 1 and h > 0 else 0.0
                    open_[g, h, m] = scores[h, m] + extra + total(sr, x[:width])
                    _closed_terms(open_, turned, g, order * h, h, m, x)
                    closed[g, h, m] = turned[g, m, h] = total(sr, x[:width])


@njit(cache=True, nogil=True)
def _root(sr, scores, siblings, single_root, closed, u, x, w, d_closed, d_scores, d_siblings):
    """⊕ over all trees, and the derivative by the cells that it is made of."""
    n = scores.shape[0] - 1
    if not single_root:
        d_closed[0, 0, n] = 1.0
        return closed[0, 0, n]
    for r in range(1, n + 1):
        x[r - 1] = scores[0, r] + siblings[0, 0, r] + closed[0, r, 1] + closed[0, r, n]
    weights(sr, x[:n], w[:n], u[0] if len(u) else 0.0)
    for r in range(1, n + 1):
        d_scores[0, r] = d_siblings[0, 0, r] = w[r - 1]
        d_closed[0, r, 1] += w[r - 1]
        d_closed[0, r, n] += w[r - 1]
    return total(sr, x[:n])


@njit(cache=True, nogil=True)
def _outside(sr, siblings, order, first, u, charts, x, w, d_scores, d_siblings, d_grandparents):
    closed, turned, open_, pair = charts[0], charts[1], charts[2], charts[3]
    d_closed, d_open, d_pair = charts[4], charts[5], charts[6]
    size, drawn = d_scores.shape[0], first  # a single root has used the first number
    for width in range(size - 1 - first, 0, -1):
        for i in range(first, size - width):
            k = i + width
            for g in range(closed.shape[0]):
                if _skips(order, i, k, g):
                    continue
                for h, m in ((i, k), (k, i)):
                    a, step = order * h, 1 if h < m else -1
                    d = d_closed[g, h, m] if m else 0.0
                    if d != 0.0:
                        _closed_terms(open_, turned, g, a, h, m, x)
                        weights(sr, x[:width], w[:width], u[drawn] if len(u) else 0.0)
                        drawn += 1
                        for t in range(width):
                            j = h + (t + 1) * step
                            d_open[g, h, j] += d * w[t]
                            d_closed[a, j, m] += d * w[t]
                    d = d_open[g, h, m] if m else 0.0
                    if d != 0.0:
                        d_scores[h, m] += d
                        if order == 1 and h > 0:
                            d_grandparents[g, h, m] += d
                        _open_terms(closed, open_, pair, siblings, g, a, h, m, x)
                        weights(sr, x[:width], w[:width], u[drawn] if len(u) else 0.0)
                        drawn += 1
                        d_siblings[h, h, m] += d * w[0]
                        d_closed[a, m, h + step] += d * w[0]
                        for t in range(1, width):
                            j = h + t * step
                            d_siblings[h, j, m] += d * w[t]
                            d_open[g, h, j] += d * w[t]
                            d_pair[a, min(j, m), max(j, m)] += d * w[t]
            for h in range(closed.shape[0]):
                d = d_pair[h, i, k]
                if d != 0.0:
                    _pair_terms(closed, h, i, k, x)
                    weights(sr, x[:width], w[:width], u[drawn] if len(u) else 0.0)
                    drawn += 1
                    for j in range(i, k):
                        d_closed[h, i, j] += d * w[j - i]
                        d_closed[h, k, j + 1] += d * w[j - i]


@njit(cache=True, nogil=True)
def second_order_trees(
    block, count, sr, scores, siblings, grandparents, offsets, cubes, sizes, order, single_root, u, starts,
    d_scores, d_siblings, d_grandparents, values,
):  # fmt: skip
    """⊕ over the trees of many sentences, with derivatives by scores of all three kinds, which are zero before.

    Parameters
    ----------
    scores, d_scores : float64[n_values]
        Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``, a block [sizes[s], sizes[s]].
    siblings, grandparents and their derivatives : float64[n_triples]
        Sentence *s* is ``siblings[cubes[s]:cubes[s + 1]]``, three axes of sizes[s]. With order 0 the grandparents are
        not read or written.
    u : float64[...]
        Sentence *s* reads at most 3n numbers from ``u[starts[s]]`` on; empty when nothing is drawn.
    """
    for s in range(block, len(sizes), count):
        size, first = sizes[s], 1 if single_root else 0
        if size == 1:
            values[s] = 0.0
            continue
        links = scores[offsets[s] : offsets[s + 1]].reshape((size, size))
        sisters = siblings[cubes[s] : cubes[s + 1]].reshape((size, size, size))
        d_links = d_scores[offsets[s] : offsets[s + 1]].reshape((size, size))
        d_sisters = d_siblings[cubes[s] : cubes[s + 1]].reshape((size, size, size))
        at = cubes[s] * order
        above = grandparents[at : at + order * size * size * size].reshape((order * size, size, size))
        d_above = d_grandparents[at : at + order * size * size * size].reshape((order * size, size, size))
        charts = np.zeros((7, size if order else 1, size, size))
        x, w = np.empty(size), np.empty(size)
        draws = u[starts[s] :] if len(u) else u
        _inside(sr, links, sisters, above, order, first, charts, x)
        values[s] = _root(sr, links, sisters, single_root, charts[0], draws, x, w, charts[4], d_links, d_sisters)
        if values[s] > -np.inf:
            _outside(sr, sisters, order, first, draws, charts, x, w, d_links, d_sisters, d_above)
