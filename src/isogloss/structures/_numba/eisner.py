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

from isogloss.structures._numba.eisner_scaled import room, scaled
from isogloss.structures._numba.semiring import total, weights
from isogloss.structures.semiring import LOG, MAX

__all__ = ["best_with_link", "inside", "marginal_trees", "one_tree_each", "read_heads"]


@njit(cache=True, nogil=True)
def _clear(table, value):
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            table[i, j] = value


@njit(cache=True, nogil=True)
def inside(sr, scores, first, closed, turned, open_, x):
    """Fill the charts over the nodes `first` … n; column 0 of `scores` counts as forbidden."""
    size = scores.shape[0]
    for i in range(size):
        closed[i, i] = turned[i, i] = 0.0
    for width in range(1, size - first):
        for i in range(first, size - width):
            k = i + width
            for j in range(i, k):
                x[j - i] = closed[i, j] + closed[k, j + 1]
            inner = total(sr, x[:width])
            open_[i, k] = inner + scores[i, k]
            open_[k, i] = inner + scores[k, i] if i else -np.inf
            for j in range(i + 1, k + 1):
                x[j - i - 1] = open_[i, j] + turned[k, j]
            closed[i, k] = turned[k, i] = total(sr, x[:width])
            for j in range(i, k):
                x[j - i] = open_[k, j] + turned[i, j]
            closed[k, i] = turned[i, k] = total(sr, x[:width])


@njit(cache=True, nogil=True)
def _root_terms(scores, closed, x):
    """The score of each word as the only child of the root, into x[0] … x[n-1]."""
    n = scores.shape[0] - 1
    for r in range(1, n + 1):
        x[r - 1] = scores[0, r] + closed[r, 1] + closed[r, n]


@njit(cache=True, nogil=True)
def _sweep(sr, scores, single_root, u, grad, charts, x, w):
    """⊕ over all trees, and its derivative into `grad`, which is zero.

    charts : float64[5, n+1, n+1], anything; u : float64[2n] or empty.
    """
    size = scores.shape[0]
    n, first = size - 1, 1 if single_root else 0
    if n == 0:
        return 0.0
    closed, turned, open_, d_closed, d_open = charts[0], charts[1], charts[2], charts[3], charts[4]
    inside(sr, scores, first, closed, turned, open_, x)
    _clear(d_closed, 0.0)
    _clear(d_open, 0.0)
    drawn = 0
    if single_root:
        _root_terms(scores, closed, x)
        value = total(sr, x[:n])
        weights(sr, x[:n], w[:n], u[0] if len(u) else 0.0)
        drawn = 1
        for r in range(1, size):
            grad[0, r] = w[r - 1]
            d_closed[r, 1] += w[r - 1]
            d_closed[r, n] += w[r - 1]
    else:
        value = closed[0, n]
        d_closed[0, n] = 1.0
    if value == -np.inf:
        return value
    for width in range(n - first, 0, -1):
        for i in range(first, size - width):
            k = i + width
            if d_closed[i, k] != 0.0:
                for j in range(i + 1, k + 1):
                    x[j - i - 1] = open_[i, j] + turned[k, j]
                weights(sr, x[:width], w[:width], u[drawn] if len(u) else 0.0)
                drawn += 1
                for j in range(i + 1, k + 1):
                    d_open[i, j] += d_closed[i, k] * w[j - i - 1]
                    d_closed[j, k] += d_closed[i, k] * w[j - i - 1]
            if d_closed[k, i] != 0.0:
                for j in range(i, k):
                    x[j - i] = open_[k, j] + turned[i, j]
                weights(sr, x[:width], w[:width], u[drawn] if len(u) else 0.0)
                drawn += 1
                for j in range(i, k):
                    d_open[k, j] += d_closed[k, i] * w[j - i]
                    d_closed[j, i] += d_closed[k, i] * w[j - i]
            grad[i, k], grad[k, i] = d_open[i, k], d_open[k, i]
            inner = d_open[i, k] + d_open[k, i]
            if inner != 0.0:
                for j in range(i, k):
                    x[j - i] = closed[i, j] + closed[k, j + 1]
                weights(sr, x[:width], w[:width], u[drawn] if len(u) else 0.0)
                drawn += 1
                for j in range(i, k):
                    d_closed[i, j] += inner * w[j - i]
                    d_closed[k, j + 1] += inner * w[j - i]
    return value


@njit(cache=True, nogil=True)
def _largest(sizes, block, count):
    top = 1
    for s in range(block, len(sizes), count):
        top = max(top, sizes[s])
    return top


@njit(cache=True, nogil=True)
def one_tree_each(block, count, sr, scores, offsets, sizes, single_root, u, starts, grad, values):
    """The best tree (MAX) or a drawn one (DRAW) of many sentences; for LOG, sums in logarithms throughout.

    Parameters
    ----------
    scores, grad : float64[n_values]
        Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``, a block [sizes[s], sizes[s]]; `grad` is zero before.
    sizes : int64[n_sentences]
        Numbers of nodes: words and the root.
    u : float64[...]
        Sentence *s* reads at most 2n numbers from ``u[starts[s]]`` on; empty when nothing is drawn.
    values : float64[n_sentences]
        Overwritten with ⊕; −∞ where no tree is allowed.
    """
    top = _largest(sizes, block, count)
    work, x, w = np.empty(5 * top * top), np.empty(top), np.empty(top)
    for s in range(block, len(sizes), count):
        size = sizes[s]
        here = scores[offsets[s] : offsets[s + 1]].reshape((size, size))
        out = grad[offsets[s] : offsets[s + 1]].reshape((size, size))
        charts = work[: 5 * size * size].reshape((5, size, size))
        draws = u[starts[s] :] if len(u) else u
        values[s] = _sweep(sr, here, single_root, draws, out, charts, x, w)


@njit(cache=True, nogil=True)
def marginal_trees(block, count, scores, offsets, sizes, single_root, grad, values):
    """log Z and marginals of many sentences: in scaled probabilities where these fit, else in logarithms."""
    top = _largest(sizes, block, count)
    work, logs, x = np.empty(room(top)), np.empty(0), np.empty(2 * top)
    for s in range(block, len(sizes), count):
        size = sizes[s]
        here = scores[offsets[s] : offsets[s + 1]].reshape((size, size))
        out = grad[offsets[s] : offsets[s + 1]].reshape((size, size))
        values[s] = scaled(here, single_root, out, work)
        if np.isnan(values[s]):
            if len(logs) == 0:
                logs = np.empty(5 * top * top)
            charts = logs[: 5 * size * size].reshape((5, size, size))
            _clear(out, 0.0)
            values[s] = _sweep(LOG, here, single_root, x[:0], out, charts, x[:top], x[top:])


@njit(cache=True, nogil=True)
def best_with_link(scores, single_root, out):
    """The score of the best tree with each link (algorithm B.4): the sweep back with max in place of sums.

    `out` is −∞ before, and stays so for links that no allowed tree has.
    """
    size = scores.shape[0]
    n, first = size - 1, 1 if single_root else 0
    charts, x = np.full((5, size, size), -np.inf), np.empty(size)
    closed, turned, open_, b_closed, b_open = charts[0], charts[1], charts[2], charts[3], charts[4]
    if n == 0:
        return
    inside(MAX, scores, first, closed, turned, open_, x)
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
    """The head of every word of every sentence, from indicators of links as `one_tree_each` writes them.

    heads : int64[Σ n], sentence *s* at ``heads[starts[s]:starts[s + 1]]``.
    """
    for s in range(len(sizes)):
        for head in range(sizes[s]):
            for child in range(1, sizes[s]):
                if parts[offsets[s] + head * sizes[s] + child] > 0.0:
                    heads[starts[s] + child - 1] = head
