"""Messages of factors that score whether the links into two words cross."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.messages import odds, plus

__all__ = ["crossing_beliefs", "crossings"]


@njit(cache=True, nogil=True)
def _as_one_head(a, word, out):
    """Log weights of the heads of `word` when exactly one is right; a certain head leaves no other."""
    certain = 0
    for k in range(len(a)):
        if a[k] == np.inf and k != word:
            certain += 1
    for k in range(len(a)):
        if k == word or certain > 1:
            out[k] = -np.inf
        elif certain == 1:
            out[k] = 0.0 if a[k] == np.inf else -np.inf
        else:
            out[k] = a[k]


@njit(cache=True, nogil=True)
def _apart(x, j, other, cross, clear, maximise):
    """Log weight of the heads of `other` (given as x) whose link crosses, or not, the link from head i to j, for all i.

    The interval between i and j grows outward from j, so that all sums are made by adding; O(n).
    """
    size = len(x)
    before, after = np.empty(size + 1), np.empty(size + 1)  # heads below, heads from here on
    before[0], after[size] = -np.inf, -np.inf
    for k in range(size):
        before[k + 1] = plus(before[k], x[k], maximise)
    for k in range(size - 1, -1, -1):
        after[k] = plus(after[k + 1], x[k], maximise)
    for step in (-1, 1):
        inner = -np.inf
        i = j + step
        while 0 <= i < size:
            low, high = (i, j) if step < 0 else (j, i)
            if i == other:
                cross[i], clear[i] = -np.inf, before[size]
            elif low < other < high:
                cross[i] = plus(before[low], after[high + 1], maximise)
                clear[i] = plus(plus(x[low], x[high], maximise), inner, maximise)
            else:
                cross[i] = inner
                clear[i] = plus(before[low + 1], after[high], maximise)
            inner = plus(inner, x[i], maximise)
            i += step
    cross[j], clear[j] = -np.inf, -np.inf


@njit(cache=True, nogil=True)
def _within_reach(x):
    """The largest of log weights, or NaN where finite ones lie too far apart for plain numbers."""
    top, bottom = -np.inf, np.inf
    for k in range(len(x)):
        if x[k] > -np.inf:
            top = max(top, x[k])
            bottom = min(bottom, x[k])
    return top if top < np.inf and top - bottom < 200.0 else np.nan


@njit(cache=True, nogil=True)
def _scaled(x, x_top, a, a_top, j, other, worth, weight, out):
    """The messages to one word by plain sums: the same sums as by `_apart`, five times as fast.

    `x` are log weights of the heads of the other word, `a` log-odds of the heads of word j; `worth` is e^score.
    """
    size = len(x)
    q, before, after = np.empty(size), np.empty(size + 1), np.empty(size + 1)
    before[0], after[size] = 0.0, 0.0
    for k in range(size):
        q[k] = np.exp(x[k] - x_top)
        before[k + 1] = before[k] + q[k]
    for k in range(size - 1, -1, -1):
        after[k] = after[k + 1] + q[k]
    for step in (-1, 1):
        inner = 0.0
        i = j + step
        while 0 <= i < size:
            low, high = (i, j) if step < 0 else (j, i)
            if i == other:
                weight[i] = before[size]
            elif low < other < high:
                weight[i] = worth * (before[low] + after[high + 1]) + q[low] + q[high] + inner
            else:
                weight[i] = worth * inner + before[low + 1] + after[high]
            inner += q[i]
            i += step
    weight[j] = 0.0
    left = 0.0
    for i in range(size):
        out[i] = left
        q[i] = np.exp(a[i] - a_top) * weight[i]
        left += q[i]
    right = 0.0
    for i in range(size - 1, -1, -1):
        rest = out[i] + right
        right += q[i]
        if i == j or weight[i] == 0.0:
            out[i] = np.nan if rest == 0.0 and i != j else -np.inf
        else:
            out[i] = np.inf if rest == 0.0 else np.log(weight[i] / rest) - a_top


@njit(cache=True, nogil=True)
def crossings(scores, first, second, incoming, outgoing, maximise):
    """Messages of factors worth exp(score) where the links into two words cross, 1 where they do not, and 0 unless each
    of the two words has exactly one head.

    Parameters
    ----------
    scores : float64[n_pairs]
    first, second : int64[n_pairs]
        The two words.
    incoming, outgoing : float64[n_pairs, 2, n + 1]
        Log-odds of the links from every head to the first and to the second word; outgoing is overwritten. A word is
        never its own head.
    """
    size = incoming.shape[2]
    x, cross, clear = np.empty(size), np.empty(size), np.empty(size)
    for f in range(len(scores)):
        for side in range(2):
            j, other = (first[f], second[f]) if side == 0 else (second[f], first[f])
            a, out = incoming[f, side], outgoing[f, side]
            _as_one_head(incoming[f, 1 - side], other, x)
            x_top, a_top = _within_reach(x), _within_reach(a)
            plain = -200.0 < scores[f] < 200.0 or scores[f] == -np.inf
            if plain and not maximise and x_top > -np.inf and a_top > -np.inf:
                _scaled(x, x_top, a, a_top, j, other, np.exp(scores[f]), clear, out)
                continue
            _apart(x, j, other, cross, clear, maximise)
            left = -np.inf
            for i in range(size):
                clear[i] = plus(scores[f] + cross[i], clear[i], maximise)
                out[i] = left
                if clear[i] > -np.inf:
                    left = plus(left, a[i] + clear[i], maximise)
            right = -np.inf
            for i in range(size - 1, -1, -1):
                rest = plus(out[i], right, maximise)
                out[i] = -np.inf if rest == np.inf or i == j else odds(clear[i], rest)
                if clear[i] > -np.inf:
                    right = plus(right, a[i] + clear[i], maximise)


@njit(cache=True, nogil=True)
def crossing_beliefs(scores, first, second, incoming, beliefs, maximise):
    """Belief that the two links cross; returns the sum of the factors' log totals."""
    size = incoming.shape[2]
    heads, x, cross, clear = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    value = 0.0
    for f in range(len(scores)):
        _as_one_head(incoming[f, 0], first[f], heads)
        _as_one_head(incoming[f, 1], second[f], x)
        _apart(x, first[f], second[f], cross, clear, maximise)
        crossed, total = -np.inf, -np.inf
        for i in range(size):
            crossed = plus(crossed, heads[i] + scores[f] + cross[i], maximise)
            total = plus(total, heads[i] + clear[i], maximise)
        total = plus(total, crossed, maximise)
        beliefs[f] = np.exp(crossed - total) if total > -np.inf else 0.0
        value += total
    return value
