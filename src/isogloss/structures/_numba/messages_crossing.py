"""Messages of factors that score whether the links into two words cross."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.messages import odds, plus

__all__ = ["crossing_beliefs", "crossings", "soft_crossing_beliefs", "soft_crossings"]


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


# --- without the demand that each word has one head -------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _add(x, y, maximise):
    return max(x, y) if maximise else x + y


@njit(cache=True, nogil=True)
def _weigh(a, word, true, false, maximise):
    """Weights of true and false from log-odds, the total (or the best) 1; returns the log of what was divided out."""
    value = 0.0
    for k in range(len(a)):
        if k == word or a[k] == -np.inf:
            true[k], false[k] = 0.0, 1.0
        elif a[k] == np.inf:
            true[k], false[k] = 1.0, 0.0
        else:
            small = np.exp(-abs(a[k]))
            both = 1.0 if maximise else 1.0 + small
            true[k], false[k] = (1.0 / both, small / both) if a[k] > 0.0 else (small / both, 1.0 / both)
            value += plus(0.0, a[k], maximise)
    return value


@njit(cache=True, nogil=True)
def _one_that_crosses(true, false, j, other, cross, rest, maximise):
    """For every head i of word j: the weight of `other` having one head, by a link that crosses i → j, and of anything
    else about `other`; returns the weight of everything about it. All by adding."""
    size = len(true)
    before, after = np.empty(size + 1), np.empty(size + 1)  # products of false on either side, then sums
    none, one, more = 1.0, 0.0, 0.0
    after[size] = 1.0
    for k in range(size - 1, -1, -1):
        after[k] = after[k + 1] * false[k]
    q = np.empty(size)
    for k in range(size):
        q[k] = none * true[k] * after[k + 1]  # this head and no other
        more = _add(more * _add(true[k], false[k], maximise), one * true[k], maximise)
        one = _add(one * false[k], none * true[k], maximise)
        none = none * false[k]
    before[0], after[size] = 0.0, 0.0
    for k in range(size):
        before[k + 1] = _add(before[k], q[k], maximise)
    for k in range(size - 1, -1, -1):
        after[k] = _add(after[k + 1], q[k], maximise)
    otherwise = _add(none, more, maximise)
    for step in (-1, 1):
        inner = 0.0
        i = j + step
        while 0 <= i < size:
            low, high = (i, j) if step < 0 else (j, i)
            if i == other:
                cross[i], clear = 0.0, before[size]
            elif low < other < high:
                cross[i] = _add(before[low], after[high + 1], maximise)
                clear = _add(_add(q[low], q[high], maximise), inner, maximise)
            else:
                cross[i], clear = inner, _add(before[low + 1], after[high], maximise)
            rest[i] = _add(clear, otherwise, maximise)
            inner = _add(inner, q[i], maximise)
            i += step
    cross[j], rest[j] = 0.0, _add(before[size], otherwise, maximise)
    return _add(before[size], otherwise, maximise)


@njit(cache=True, nogil=True)
def _count(state, true, false, cross, rest, maximise):
    """One more head: none, one, one that crosses, one that does not, more than one."""
    state[4] = _add(state[4] * _add(true, false, maximise), state[1] * true, maximise)
    for s, weight in ((1, 1.0), (2, cross), (3, rest)):
        state[s] = _add(state[s] * false, state[0] * true * weight, maximise)
    state[0] = state[0] * false


@njit(cache=True, nogil=True)
def _log_sum(plain, crossed, score, certain, maximise):
    """log(plain + e^score crossed); a sum too small for a number is no contradiction unless all is certain."""
    value = np.log(plain) if plain > 0.0 else (-np.inf if certain else np.log(1e-300))
    return plus(value, score + np.log(crossed), maximise) if crossed > 0.0 else value


@njit(cache=True, nogil=True)
def soft_crossings(scores, first, second, incoming, outgoing, maximise):
    """As `crossings`, but worth 1 where one of the words has no head or several: the tree beside it sees to that."""
    size = incoming.shape[2]
    true, false, x_true, x_false = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    cross, rest = np.empty(size), np.empty(size)
    left, right = np.empty((size + 1, 5)), np.empty(5)
    for f in range(len(scores)):
        for side in range(2):
            j, other = (first[f], second[f]) if side == 0 else (second[f], first[f])
            a, out = incoming[f, side], outgoing[f, side]
            _weigh(a, j, true, false, maximise)
            _weigh(incoming[f, 1 - side], other, x_true, x_false, maximise)
            total = _one_that_crosses(x_true, x_false, j, other, cross, rest, maximise)
            unsure = 0
            for k in range(size):
                unsure += (k != j and abs(a[k]) < np.inf) + (k != other and abs(incoming[f, 1 - side, k]) < np.inf)
            left[0, :] = 0.0
            left[0, 0] = 1.0
            for i in range(size):
                left[i + 1, :] = left[i, :]
                _count(left[i + 1], true[i], false[i], cross[i], rest[i], maximise)
            right[:] = 0.0
            right[0] = 1.0
            for i in range(size - 1, -1, -1):
                here = left[i]
                none = here[0] * right[0]
                one = _add(here[1] * right[0], here[0] * right[1], maximise)
                crossed = _add(here[2] * right[0], here[0] * right[2], maximise)
                apart = _add(here[3] * right[0], here[0] * right[3], maximise)
                any_right = _add(_add(right[0], right[1], maximise), right[4], maximise)
                any_left = _add(here[0], here[1], maximise)
                more = _add(_add(here[1] * right[1], here[4] * any_right, maximise), any_left * right[4], maximise)
                certain = unsure == (1 if i != j and abs(a[i]) < np.inf else 0)
                plain = _add(none * rest[i], total * _add(one, more, maximise), maximise)
                yes = _log_sum(plain, none * cross[i], scores[f], certain, maximise)
                plain = _add(total * _add(none, more, maximise), apart, maximise)
                no = _log_sum(plain, crossed, scores[f], certain, maximise)
                out[i] = 0.0 if i == j else odds(yes, no)
                _count(right, true[i], false[i], cross[i], rest[i], maximise)


@njit(cache=True, nogil=True)
def soft_crossing_beliefs(scores, first, second, incoming, beliefs, maximise):
    """As `crossing_beliefs`, of the factors of `soft_crossings`."""
    size = incoming.shape[2]
    true, false, x_true, x_false = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    cross, rest, state = np.empty(size), np.empty(size), np.empty(5)
    value = 0.0
    for f in range(len(scores)):
        value += _weigh(incoming[f, 0], first[f], true, false, maximise)
        value += _weigh(incoming[f, 1], second[f], x_true, x_false, maximise)
        total = _one_that_crosses(x_true, x_false, first[f], second[f], cross, rest, maximise)
        state[:] = 0.0
        state[0] = 1.0
        certain = True
        for i in range(size):
            _count(state, true[i], false[i], cross[i], rest[i], maximise)
            certain = certain and (true[i] == 0.0 or false[i] == 0.0) and (x_true[i] == 0.0 or x_false[i] == 0.0)
        plain = _add(total * _add(state[0], state[4], maximise), state[3], maximise)
        log_total = _log_sum(plain, state[2], scores[f], certain, maximise)
        crossed = scores[f] + np.log(state[2]) if state[2] > 0.0 else -np.inf
        beliefs[f] = np.exp(crossed - log_total) if log_total > -np.inf else 0.0
        value += log_total
    return value
