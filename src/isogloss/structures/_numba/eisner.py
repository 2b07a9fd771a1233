"""Projective trees: Eisner's spans, one sweep from narrow to wide and the same sweep back.

Two charts serve both directions: ``closed[h, m]`` is everything between node h and node m inclusive with head h (m to
its right or left), ``open_[h, m]`` the same with a link from h to m. With i < k,

    inner(i, k)   = ⊕_{i ≤ j < k}  closed[i, j] ⊗ closed[k, j+1]
    open_[i, k]   = inner(i, k) ⊗ scores[i, k]            open_[k, i] = inner(i, k) ⊗ scores[k, i]
    closed[i, k]  = ⊕_{i < j ≤ k}  open_[i, j] ⊗ closed[j, k]
    closed[k, i]  = ⊕_{i ≤ j < k}  open_[k, j] ⊗ closed[j, i]

and a tree is closed[0, n]; with a single root, ⊕_r scores[0, r] ⊗ closed[r, 1] ⊗ closed[r, n] over charts without node
0. Every projective tree has exactly one derivation. `turned` is `closed` transposed: all loops run along rows.
Kernels that take `(block, count)` work on the sentences block, block + count, … of a batch.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.eisner_best import best_inside
from isogloss.structures._numba.eisner_scaled import room, scaled, stride
from isogloss.structures._numba.semiring import total, weights
from isogloss.structures.semiring import MAX

__all__ = ["best_trees", "best_with_link", "log_trees", "marginal_trees", "read_heads"]


@njit(inline="always")
def _clear(table, value):
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            table[i, j] = value


@njit(inline="always")
def _inner_terms(closed, i, k, x):
    for j in range(i, k):
        x[j - i] = closed[i, j] + closed[k, j + 1]


@njit(inline="always")
def _closed_terms(open_, turned, h, m, x):
    """The farthest child of h on the side of m, from left to right, and what lies beyond it."""
    low = h + 1 if h < m else m
    for t in range(abs(m - h)):
        x[t] = open_[h, low + t] + turned[m, low + t]


@njit(inline="always")
def inside(sr, scores, first, closed, turned, open_, x):
    """Fill the charts over the nodes `first` … n; column 0 of `scores` counts as forbidden."""
    size = scores.shape[0]
    for i in range(size):
        closed[i, i] = turned[i, i] = 0.0
    for width in range(1, size - first):
        for i in range(first, size - width):
            k = i + width
            _inner_terms(closed, i, k, x)
            inner = total(sr, x[:width])
            for h, m in ((i, k), (k, i)):
                open_[h, m] = inner + scores[h, m] if m else -np.inf
                _closed_terms(open_, turned, h, m, x)
                closed[h, m] = turned[m, h] = total(sr, x[:width])


@njit(inline="always")
def _root_terms(scores, closed, x):
    """The score of each word as the only child of the root, into x[0] … x[n-1]."""
    n = scores.shape[0] - 1
    for r in range(1, n + 1):
        x[r - 1] = scores[0, r] + closed[r, 1] + closed[r, n]


@njit(inline="always")
def _split(sr, x, w, u, drawn):
    """`weights` with the next number of `u`, if there are any; not inlined, to keep compiling short."""
    weights(sr, x, w, u[drawn] if len(u) else 0.0)


@njit(inline="always")
def _outside(sr, first, u, grad, charts, x, w):
    closed, turned, open_, d_closed, d_open = charts[0], charts[1], charts[2], charts[3], charts[4]
    size, drawn = grad.shape[0], first  # a single root has used the first number
    for width in range(size - 1 - first, 0, -1):
        for i in range(first, size - width):
            k = i + width
            for h, m in ((i, k), (k, i)):
                d, low = d_closed[h, m], h + 1 if h < m else m
                if d != 0.0:
                    _closed_terms(open_, turned, h, m, x)
                    _split(sr, x[:width], w[:width], u, drawn)
                    drawn += 1
                    for t in range(width):
                        d_open[h, low + t] += d * w[t]
                        d_closed[low + t, m] += d * w[t]
                grad[h, m] = min(1.0, d_open[h, m])  # no more than rounding is cut
            d = d_open[i, k] + d_open[k, i]
            if d != 0.0:
                _inner_terms(closed, i, k, x)
                _split(sr, x[:width], w[:width], u, drawn)
                drawn += 1
                for t in range(width):
                    d_closed[i, i + t] += d * w[t]
                    d_closed[k, i + t + 1] += d * w[t]


@njit(inline="always")
def _back(sr, scores, single_root, u, grad, charts, x, w):
    """⊕ over all trees from filled charts, and its derivative into `grad`, which is zero."""
    n, first = scores.shape[0] - 1, 1 if single_root else 0
    _clear(charts[3], 0.0)
    _clear(charts[4], 0.0)
    if single_root:
        _root_terms(scores, charts[0], x)
        value = total(sr, x[:n])
        _split(sr, x[:n], w[:n], u, 0)
        for r in range(1, n + 1):
            grad[0, r] = w[r - 1]
            charts[3, r, 1] += w[r - 1]
            charts[3, r, n] += w[r - 1]
    else:
        value = charts[0, 0, n]
        charts[3, 0, n] = 1.0
    if value > -np.inf:
        _outside(sr, first, u, grad, charts, x, w)
    return value


@njit(inline="always")
def _largest(sizes, block, count):
    top = 1
    for s in range(block, len(sizes), count):
        top = max(top, sizes[s])
    return top


@njit(cache=True, nogil=True)
def log_trees(block, count, sr, scores, offsets, sizes, single_root, u, starts, grad, values):
    """log Z and a drawn tree (DRAW) or marginals (LOG) of many sentences, in logarithms throughout.

    Parameters
    ----------
    scores, grad : float64[n_values]
        Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``, a block [sizes[s], sizes[s]]; `grad` is zero before.
    sizes : int64[n_sentences]
        Numbers of nodes: words and the root.
    u : float64[...]
        Sentence *s* reads at most 2n numbers from ``u[starts[s]]`` on; empty when nothing is drawn.
    values : float64[n_sentences]
        Overwritten with ⊕; −∞ where no tree is allowed. Sentences with a value other than NaN are left alone.
    """
    work, x, w = np.empty(0), np.empty(0), np.empty(0)
    for s in range(block, len(sizes), count):
        size = sizes[s]
        if not np.isnan(values[s]):
            continue
        if size == 1:
            values[s] = 0.0
            continue
        if len(x) < size:
            work, x, w = np.empty(5 * size * size), np.empty(size), np.empty(size)
        here = scores[offsets[s] : offsets[s + 1]].reshape((size, size))
        out = grad[offsets[s] : offsets[s + 1]].reshape((size, size))
        charts = work[: 5 * size * size].reshape((5, size, size))
        draws = u[starts[s] :] if len(u) else u
        inside(sr, here, 1 if single_root else 0, charts[0], charts[1], charts[2], x)
        values[s] = _back(sr, here, single_root, draws, out, charts, x, w)


@njit(cache=True, nogil=True)
def best_trees(block, count, scores, offsets, sizes, single_root, grad, values):
    """The best trees of many sentences; arguments as for `log_trees`."""
    top = _largest(sizes, block, count)
    work, x, w, none = np.empty(5 * top * stride(top)), np.empty(top), np.empty(top), np.empty(0)
    for s in range(block, len(sizes), count):
        size = sizes[s]
        if size == 1:
            values[s] = 0.0
            continue
        here = scores[offsets[s] : offsets[s + 1]].reshape((size, size))
        out = grad[offsets[s] : offsets[s + 1]].reshape((size, size))
        charts = work[: 5 * size * stride(size)].reshape((5, size, stride(size)))
        best_inside(here, 1 if single_root else 0, charts)
        values[s] = _back(MAX, here, single_root, none, out, charts, x, w)


@njit(cache=True, nogil=True)
def marginal_trees(block, count, scores, offsets, sizes, single_root, grad, values):
    """log Z and marginals of many sentences in scaled probabilities; NaN where these might not fit, for `log_trees`."""
    work = np.empty(room(_largest(sizes, block, count)))
    for s in range(block, len(sizes), count):
        size = sizes[s]
        here = scores[offsets[s] : offsets[s + 1]].reshape((size, size))
        out = grad[offsets[s] : offsets[s + 1]].reshape((size, size))
        values[s] = scaled(here, single_root, out, work)


@njit(cache=True, nogil=True)
def best_with_link(scores, single_root, out):
    """The score of the best tree with each link (algorithm B.4): the sweep back with max in place of sums.

    `out` is −∞ before, and stays so for links that no allowed tree has.
    """
    size = scores.shape[0]
    n, first = size - 1, 1 if single_root else 0
    charts = np.full((5, size, stride(size)), -np.inf)
    closed, turned, open_, b_closed, b_open = charts[0], charts[1], charts[2], charts[3], charts[4]
    if n == 0:
        return
    best_inside(scores, first, charts)
    if single_root:
        for r in range(1, size):
            out[0, r] = scores[0, r] + closed[r, 1] + closed[r, n]
            b_closed[r, 1] = max(b_closed[r, 1], scores[0, r] + closed[r, n])
            b_closed[r, n] = max(b_closed[r, n], scores[0, r] + closed[r, 1])
    else:
        b_closed[0, n] = 0.0
    for width in range(n - first, 0, -1):
        for i in range(first, size - width):
            k = i + width
            for j in range(i + 1, k + 1):
                b_open[i, j] = max(b_open[i, j], b_closed[i, k] + turned[k, j])
                b_closed[j, k] = max(b_closed[j, k], b_closed[i, k] + open_[i, j])
            for j in range(i, k):
                b_open[k, j] = max(b_open[k, j], b_closed[k, i] + turned[i, j])
                b_closed[j, i] = max(b_closed[j, i], b_closed[k, i] + open_[k, j])
            out[i, k], out[k, i] = b_open[i, k] + open_[i, k], b_open[k, i] + open_[k, i]
            inner = max(b_open[i, k] + scores[i, k], b_open[k, i] + scores[k, i] if i else -np.inf)
            for j in range(i, k):
                b_closed[i, j] = max(b_closed[i, j], inner + closed[k, j + 1])
                b_closed[k, j + 1] = max(b_closed[k, j + 1], inner + closed[i, j])


@njit(cache=True, nogil=True)
def read_heads(parts, offsets, sizes, starts, heads):
    """The head of every word of every sentence, from indicators of links as `best_trees` and `log_trees` write them.

    heads : int64[Σ n], sentence *s* at ``heads[starts[s]:starts[s + 1]]``.
    """
    for s in range(len(sizes)):
        for head in range(sizes[s]):
            for child in range(1, sizes[s]):
                if parts[offsets[s] + head * sizes[s] + child] > 0.0:
                    heads[starts[s] + child - 1] = head
