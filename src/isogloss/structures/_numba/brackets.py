"""Bracketings: spans from narrow to wide, in logarithms, with LOG, MAX or DRAW.

A chart works on one log weight for each span; labels have been summed or maximised before (`span_tree`). With i < k,

    inner(i, k) = ⊕_{i < j < k}  beta(i, j) ⊗ rest(j, k)           two or more constituents side by side
    beta(i, k)  = weight(i, k) ⊗ inner(i, k)                       one constituent; weight(i, k) alone for one word
    rest(i, k)  = beta(i, k) ⊕ inner(i, k)                         one or more constituents; binary: beta(i, k)

and a tree is beta(0, n); rest(0, n) where the whole sentence need not be a constituent. Every tree has exactly one
derivation. Charts are [n+1, row]; `turned` holds rest transposed, turned[k, i], so that all sums run along rows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.lanes import WIDTH, add, largest, load, maximum
from isogloss.structures._numba.semiring import total, weights

__all__ = ["best_inside", "first_of_width", "log_inside", "log_outside", "stride", "walk"]

BETA, TURNED, INNER = 0, 1, 2


@njit(cache=True, nogil=True)
def stride(size):
    """Length of a row: room for one vector too many, and an odd number of cache lines, so that columns spread."""
    lines = (size + WIDTH + 7) // 8
    return 8 * (lines + 1 - lines % 2)


@njit(inline="always")
def first_of_width(n, width):
    """The number of the span of this width that begins at 0."""
    return (width - 1) * n - (width - 1) * (width - 2) // 2


@njit(inline="always")
def _terms(beta, turned, i, k, x):
    for j in range(i + 1, k):
        x[j - i - 1] = beta[i, j] + turned[k, j]


@njit(cache=True, nogil=True)
def log_inside(sr, n, logs, binary, charts, x, pair):
    """Fill the three charts, narrow spans first; `logs` is float64[n_spans]. `x` and `pair` are scratch."""
    beta, turned, inner = charts[BETA], charts[TURNED], charts[INNER]
    for i in range(n):
        beta[i, i + 1] = turned[i + 1, i] = logs[i]
    for width in range(2, n + 1):
        first = first_of_width(n, width)
        for i in range(n - width + 1):
            k = i + width
            _terms(beta, turned, i, k, x)
            inner[i, k] = total(sr, x[: width - 1])
            beta[i, k] = turned[k, i] = inner[i, k] + logs[first + i]
            if not binary:
                pair[0], pair[1] = beta[i, k], inner[i, k]
                turned[k, i] = total(sr, pair)


@njit(cache=True, nogil=True)
def log_outside(sr, n, binary, rooted, charts, d_beta, d_rest, x, w, pair, both, out):
    """Posteriors of spans into `out`, float64[n_spans], from filled charts of a finite total.

    d_beta, d_rest : float64[n+1, n+1] or larger
        Scratch: posteriors of beta(i, k) and rest(i, k), the second at [i, k] too.
    """
    beta, turned, inner = charts[BETA], charts[TURNED], charts[INNER]
    for i in range(n + 1):
        for k in range(n + 1):
            d_beta[i, k] = d_rest[i, k] = 0.0
    if rooted or binary:
        d_beta[0, n] = 1.0
    else:
        d_rest[0, n] = 1.0
    for width in range(n, 0, -1):
        first = first_of_width(n, width)
        for i in range(n - width + 1):
            k = i + width
            d, extra = d_beta[i, k], d_rest[i, k]
            split = 0.0
            if binary or width == 1:
                d += extra
            elif extra > 0.0:
                pair[0], pair[1] = beta[i, k], inner[i, k]
                weights(sr, pair, both, 0.0)
                d += extra * both[0]
                split = extra * both[1]
            out[first + i] = min(1.0, d)  # no more than rounding is cut
            split += d
            if width == 1 or split == 0.0:
                continue
            _terms(beta, turned, i, k, x)
            weights(sr, x[: width - 1], w[: width - 1], 0.0)
            for j in range(i + 1, k):
                d_beta[i, j] += split * w[j - i - 1]
                d_rest[j, k] += split * w[j - i - 1]


@njit(cache=True, nogil=True)
def _best(a, i, b, k, length):
    """max a[i + t] + b[k + t] for t < length; reads on to a whole vector, where one of the two must be −∞."""
    lanes = add(load(a, i), load(b, k))
    for t in range(WIDTH, length, WIDTH):
        lanes = maximum(lanes, add(load(a, i + t), load(b, k + t)))
    return largest(lanes)


@njit(cache=True, nogil=True)
def best_inside(n, logs, binary, charts):
    """`log_inside` with MAX, sixteen numbers at once; rows of `charts` are at least n + 1 + WIDTH long."""
    row = charts.shape[2]
    area = (n + 1) * row
    flat = charts.reshape(charts.size)
    for at in range(3 * area):
        flat[at] = -np.inf
    beta, turned, inner = flat[:area], flat[area : 2 * area], flat[2 * area : 3 * area]
    for i in range(n):
        beta[i * row + i + 1] = turned[(i + 1) * row + i] = logs[i]
    for width in range(2, n + 1):
        first = first_of_width(n, width)
        for i in range(n - width + 1):
            k = i + width
            best = _best(beta, i * row + i + 1, turned, k * row + i + 1, width - 1)
            inner[i * row + k] = best
            beta[i * row + k] = turned[k * row + i] = best + logs[first + i]
            if not binary:
                turned[k * row + i] = max(best, best + logs[first + i])


@njit(inline="always")
def _chosen(w):
    for t in range(len(w)):
        if w[t] > 0.0:
            return t
    return 0


@njit(cache=True, nogil=True)
def walk(sr, n, binary, rooted, charts, u, x, w, pair, both, stack, spans):
    """The best tree (MAX) or a drawn one (DRAW) from filled charts of a finite total.

    Parameters
    ----------
    u : float64[2n or more]
        Uniform on [0, 1); read by DRAW only, may be empty for MAX.
    stack : int64[2n + 1, 3]
        Scratch.
    spans : int64[2n]
        Overwritten with the numbers of the spans of the tree.

    Returns
    -------
    (int, int)
        How many spans the tree has, and how many numbers of `u` were used.
    """
    beta, turned, inner = charts[BETA], charts[TURNED], charts[INNER]
    found, drawn, depth = 0, 0, 1
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, 0 if rooted or binary else 1
    while depth:
        depth -= 1
        i, k, loose = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        width, bracket = k - i, True
        if loose and not binary and width > 1:
            pair[0], pair[1] = beta[i, k], inner[i, k]
            weights(sr, pair, both, u[drawn] if len(u) else 0.0)
            drawn += 1
            bracket = both[0] > 0.0
        if bracket:
            spans[found] = first_of_width(n, width) + i
            found += 1
        if width == 1:
            continue
        _terms(beta, turned, i, k, x)
        weights(sr, x[: width - 1], w[: width - 1], u[drawn] if len(u) else 0.0)
        drawn += 1
        j = i + 1 + _chosen(w[: width - 1])
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = j, k, 1
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = i, j, 0
        depth += 2
    return found, drawn
