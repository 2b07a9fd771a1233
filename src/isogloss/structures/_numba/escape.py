r"""Walks from word to head until the root: how likely each word gets there before it meets a given other.

Every quantity of the distribution over spanning trees that `spanning` needs is a sum of products of link weights, and
is computed here without one subtraction. Take the walk that steps from word k to head i with probability
:math:`u(i, k) / d_k`, where :math:`d_k = \sum_i u(i, k)`. To take word k out of the graph is to let others step over
it,

.. math:: u'(i, j) = u(i, j) + u(i, k)\, u(k, j) / d_k,

which is a step of Gaussian elimination on the Kirchhoff matrix, its pivot :math:`d_k` found as a sum of what is left
instead of as a difference (Grassmann, Taksar and Heyman). The product of the pivots is Z. With all words but j out,
the pivot of j is :math:`N_j = \sum_i u(i, j)\, e_j(i)`, where :math:`e_j(i)` is the probability that the walk from i
comes to the root before it comes to j, and

.. math:: p(i \to j) = u(i, j)\, e_j(i) / N_j .

All of :math:`e` take O(n³): to leave one out of many, take out the right half, then deal with the left half in the same
way; and the other way round. A word that is out finds its :math:`e` from those that stayed longer.

Only one root child: let all root weights shrink together. To leading order nothing changes but that the pivots are
without the root's share, and :math:`e` is measured in units of the shrinking factor.

References
----------
Grassmann, Taksar and Heyman, Regenerative analysis and steady state distributions for Markov chains, Operations
Research 33(5), 1985. Alfa, Xue and Ye, Accurate computation of the smallest eigenvalue of a diagonally dominant
M-matrix, Mathematics of Computation 71, 2002, for the accuracy of such eliminations. The halving and the leading order
are ours.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.arithmetic import divide, logarithm, nothing, plus, stored, times

__all__ = ["KERNEL", "depth_of", "eliminate", "escapes", "rotated"]

KERNEL = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
_AGREE = 1e-8  # what two roads to N may differ by


@njit(**KERNEL)
def depth_of(m):
    """How many times m words can be halved until one is left."""
    depth = 0
    while (1 << depth) < m:
        depth += 1
    return depth


@njit(**KERNEL)
def eliminate(ar, weights, root, keep, size, single, pivots):
    """Take the words keep … size − 1 out, the last first.

    Parameters
    ----------
    weights : [≥ size, ≥ size]
        weights[j, i] is the weight of head i for child j, in the arithmetic `ar`. The rows that are kept become those
        of the smaller graph; row k of a word taken out becomes the probabilities of its steps to the words before it.
    root : [≥ size]
        The same for head 0. With `single`, the step to the root is in units of the shrinking factor.
    pivots : [≥ size]
        Entry k is overwritten with the pivot of word k.
    """
    for k in range(size - 1, keep - 1, -1):
        step = weights[k]
        pivot = nothing(ar) if single else root[k]
        for i in range(k):
            pivot = plus(ar, pivot, step[i])
        pivots[k] = pivot
        for i in range(k):
            step[i] = divide(ar, step[i], pivot)
        root[k] = divide(ar, root[k], pivot)
        for j in range(k):
            row, share = weights[j], weights[j, k]
            if share == nothing(ar):
                continue
            for i in range(k):
                row[i] = plus(ar, row[i], times(ar, share, step[i]))
            root[j] = plus(ar, root[j], times(ar, share, root[k]))


@njit(**KERNEL)
def _follow(ar, steps, root, keep, size, left, right, escape):
    """Escapes of the words that were taken out, from those of the words that stayed.

    Words left … left + keep − 1 stayed, words right … were taken out; targets are the words that stayed.
    """
    for k in range(keep, size):
        step, out = steps[k], escape[right + k - keep, left : left + keep]
        for t in range(keep):
            out[t] = root[k]
        for i in range(k):
            share = step[i]
            if share == nothing(ar):
                continue
            known = escape[left + i if i < keep else right + i - keep, left : left + keep]
            for t in range(keep):
                out[t] = plus(ar, out[t], times(ar, share, known[t]))


@njit(**KERNEL)
def escapes(ar, weights, root, single, escape, whole):
    """Fill escape[i, j], the probability of coming from i to the root before j, and whole[j] = N_j.

    Parameters
    ----------
    weights : [m, m]
        weights[j, i] of child j and head i, in the arithmetic `ar`; nothing on the diagonal.
    root : [m]
        Weight of head 0 for each child.
    single : bool
        One root child only.
    escape : [m, m], whole : [m]
        Overwritten, in the same arithmetic.

    Returns
    -------
    log Z; the log of the largest e / N; the largest |log N|. The last two are NaN if something overflowed or vanished,
    or if N as a pivot and N as the sum over heads are not the same.
    """
    m, depth = len(root), depth_of(len(root))
    graphs, roots = np.empty((depth + 1, m, m), weights.dtype), np.empty((depth + 1, m), weights.dtype)
    pivots, last = np.empty(m, weights.dtype), np.empty(m, weights.dtype)
    starts, sizes, turn = np.zeros(depth + 1, np.int64), np.zeros(depth + 1, np.int64), np.zeros(depth + 1, np.int64)
    sizes[0] = m
    log_z, level = 0.0, 0
    while level >= 0:
        start, size = starts[level], sizes[level]
        half = (size + 1) // 2
        graph, above = (graphs[level], roots[level]) if level else (weights, root)
        if size == 1:
            last[start] = above[0]
            escape[start, start] = nothing(ar)
            if start == 0:
                log_z += logarithm(ar, last[0])
            level -= 1
            continue
        inner, first = graphs[level + 1], roots[level + 1]
        if turn[level]:  # back from a half
            by = 0 if turn[level] == 1 else half
            _follow(ar, inner, first, size - by if by else half, size, start + by, start + half - by, escape)
            if by:
                level -= 1
                continue
        by = half if turn[level] else 0
        keep = size - by if by else half
        rotated(graph, above, by, size, inner, first)
        eliminate(ar, inner, first, keep, size, single, pivots)
        if start == 0 and by == 0:
            for k in range(keep, size):
                log_z += logarithm(ar, pivots[k])
        starts[level + 1], sizes[level + 1], turn[level + 1] = start + by, keep, 0
        turn[level] += 1
        level += 1
    largest, range_n = _add_up(ar, weights, root, escape, last, whole)
    return log_z, largest, range_n


@njit(**KERNEL)
def _add_up(ar, weights, root, escape, last, whole):
    """whole[j] = N_j as the sum over heads, held against N_j as a pivot."""
    m = len(root)
    largest, range_n = 0.0, 0.0
    for j in range(m):
        whole[j] = root[j]
        high = stored(ar, 0.0)
        for i in range(m):
            if i != j:
                whole[j] = plus(ar, whole[j], times(ar, weights[j, i], escape[i, j]))
                if not escape[i, j].real <= high:
                    high = escape[i, j].real
        log_n = logarithm(ar, whole[j])
        if not (abs(log_n) < np.inf and abs(log_n - logarithm(ar, last[j])) < _AGREE and high < np.inf):
            return np.nan, np.nan
        largest, range_n = max(largest, logarithm(ar, high) - log_n), max(range_n, abs(log_n))
    return largest, range_n


@njit(**KERNEL)
def rotated(graph, root, by, size, out, root_out):
    """Copy the graph with its words in the order by, by + 1, …, size − 1, 0, …, by − 1."""
    rest = size - by
    for j in range(size):
        source = j + by if j < rest else j - rest
        head, tail = graph[source, :by], graph[source, by:size]
        row, end = out[j, :rest], out[j, rest:size]
        for i in range(len(row)):
            row[i] = tail[i]
        for i in range(len(end)):
            end[i] = head[i]
        root_out[j] = root[source]
