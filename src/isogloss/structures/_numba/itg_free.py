"""The simple grammar of inversion transduction with nulls wherever they fall: X → [X X] | ⟨X X⟩ | terminal | null.

Cells may be empty on one side, every null is a leaf like any other, and one alignment has a great many derivations.
Kept for its counts and as a reference: O(n⁶) with logarithms, for small pairs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.itg_chart import terminal
from isogloss.structures._numba.semiring import total, weights

__all__ = ["free_itg"]


@njit(cache=True, nogil=True)
def _options(plan, scores, chart, i, k, j, h, x, leaf):
    """Fill x with all ways to make the cell: a leaf, then each split both ways. Returns how many."""
    n_source, n_target = plan[0], plan[1]
    at = -1
    if k > i and h > j:
        at = terminal(plan, i, k, j, h)
    elif k - i == 1:
        at = n_source * n_target + i
    elif h - j == 1 and k == i:
        at = n_source * n_target + n_source + j
    x[0], leaf[0], count = (scores[at] if at >= 0 else -np.inf), at, 1
    for p in range(i, k + 1):
        for q in range(j, h + 1):
            x[count] = chart[i, p, j, q] + chart[p, k, q, h]
            x[count + 1] = chart[i, p, q, h] + chart[p, k, j, q]
            count += 2
    return count


@njit(cache=True, nogil=True)
def free_itg(sr, plan, scores, u, out):
    """⊕ over all derivations, and its derivative in `out`, laid out as the scores; −∞ when nothing is allowed.

    Parameters
    ----------
    sr : LOG, MAX or DRAW
    plan : int64[3]
        Source words, target words, and block sizes above 1.
    scores : float64[n_terms]
    u : float64[2 (n_source + n_target)]
        Uniform on [0, 1), read by DRAW only.
    out : float64[n_terms]
        Zeros, overwritten.
    """
    n_source, n_target = plan[0], plan[1]
    if n_source + n_target == 0:
        return 0.0
    chart = np.full((n_source + 1, n_source + 1, n_target + 1, n_target + 1), -np.inf)
    adjoint, turn = np.zeros_like(chart), 0
    most = 1 + 2 * (n_source + 1) * (n_target + 1)
    x, w, leaf = np.empty(most), np.empty(most), np.empty(1, np.int64)
    words = n_source + n_target
    for size in range(1, words + 1):
        for width in range(max(0, size - n_target), min(n_source, size) + 1):
            for i in range(n_source - width + 1):
                for j in range(n_target - size + width + 1):
                    k, h = i + width, j + size - width
                    count = _options(plan, scores, chart, i, k, j, h, x, leaf)
                    chart[i, k, j, h] = total(sr, x[:count])
    adjoint[0, n_source, 0, n_target] = 1.0
    for size in range(words, 0, -1):
        for width in range(max(0, size - n_target), min(n_source, size) + 1):
            for i in range(n_source - width + 1):
                for j in range(n_target - size + width + 1):
                    k, h = i + width, j + size - width
                    flow = adjoint[i, k, j, h]
                    if flow == 0.0 or chart[i, k, j, h] == -np.inf:
                        continue
                    itself, chart[i, k, j, h] = chart[i, k, j, h], -np.inf  # a cell is no part of itself
                    count = _options(plan, scores, chart, i, k, j, h, x, leaf)
                    chart[i, k, j, h] = itself
                    weights(sr, x[:count], w[:count], u[turn] if len(u) else 0.0)
                    turn += 1
                    if leaf[0] >= 0:
                        out[leaf[0]] += flow * w[0]
                    at = 1
                    for p in range(i, k + 1):
                        for q in range(j, h + 1):
                            if w[at] > 0.0:
                                adjoint[i, p, j, q] += flow * w[at]
                                adjoint[p, k, q, h] += flow * w[at]
                            if w[at + 1] > 0.0:
                                adjoint[i, p, q, h] += flow * w[at + 1]
                                adjoint[p, k, j, q] += flow * w[at + 1]
                            at += 2
    return chart[0, n_source, 0, n_target]
