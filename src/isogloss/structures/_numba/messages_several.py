"""Messages of factors over several Booleans: all true at once, how many are true, and whether one of some pairs is.

Conventions are those of `isogloss.structures._numba.messages`: log-odds, ±∞ where certain; a variable that is certainly
true has the weights 0 and 1. Nothing is divided out.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.messages import odds, plus

__all__ = [
    "conjunction_beliefs", "conjunctions", "indicator_totals", "indicators", "number_beliefs", "numbers_true",
]  # fmt: skip


@njit(cache=True, nogil=True)
def _weights(a):
    """Log weights of false and true."""
    return (-np.inf, 0.0) if a == np.inf else (0.0, a)


@njit(cache=True, nogil=True)
def _share(a, maximise):
    """log of the share that true has of both; of the better one with maxima."""
    if a == np.inf or a == -np.inf:
        return 0.0 if a > 0 else -np.inf
    if maximise:
        return min(0.0, a)
    return -np.log1p(np.exp(-a)) if a > 0 else a - np.log1p(np.exp(a))


# --- all true ---------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _all_and_rest(incoming, f, left_out, maximise):
    """Logs of the share of "all true but the one left out", and of everything else."""
    whole, weakest = 0.0, np.inf
    for i in range(len(incoming)):
        if i != left_out:
            whole += _share(incoming[i, f], maximise)
            weakest = min(weakest, incoming[i, f])
    if not maximise:
        return whole, np.log(-np.expm1(whole)) if whole < 0.0 else -np.inf
    return whole, 0.0 if whole < 0.0 else -weakest


@njit(cache=True, nogil=True)
def conjunctions(scores, incoming, outgoing, maximise):
    """Messages of factors worth exp(score) where all of their Booleans are true, and 1 otherwise.

    Parameters
    ----------
    scores : float64[count]
    incoming, outgoing : float64[arity, count]
    """
    for f in range(len(scores)):
        for i in range(len(incoming)):
            whole, rest = _all_and_rest(incoming, f, i, maximise)
            outgoing[i, f] = plus(whole + scores[f], rest, maximise)


@njit(cache=True, nogil=True)
def conjunction_beliefs(scores, incoming, beliefs, maximise):
    """Belief that all are true; returns the sum of the factors' log totals, −∞ if one allows nothing."""
    value = 0.0
    for f in range(len(scores)):
        whole, rest = _all_and_rest(incoming, f, -1, maximise)
        total = plus(whole + scores[f], rest, maximise)
        beliefs[f] = np.exp(whole + scores[f] - total) if total > -np.inf else 0.0
        value += total
        for i in range(len(incoming)):
            false, true = _weights(incoming[i, f])
            value += plus(false, true, maximise)
    return value


# --- how many are true ------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _count(scores, row, ahead, behind, maximise):
    """Charts of how many are true before each place, and of what the rest is worth from there on."""
    m, bins = len(row), len(scores)
    ahead[0, :] = -np.inf
    ahead[0, 0] = 0.0
    behind[m, :] = scores
    for j in range(m):
        false, true = _weights(row[j])
        for v in range(bins):
            ahead[j + 1, v] = ahead[j, v] + false
        for v in range(bins):
            up = min(v + 1, bins - 1)
            ahead[j + 1, up] = plus(ahead[j + 1, up], ahead[j, v] + true, maximise)
    for j in range(m - 1, -1, -1):
        false, true = _weights(row[j])
        for v in range(bins):
            behind[j, v] = plus(false + behind[j + 1, v], true + behind[j + 1, min(v + 1, bins - 1)], maximise)


@njit(cache=True, nogil=True)
def _charts(offsets, bins):
    longest = 0
    for f in range(len(offsets) - 1):
        longest = max(longest, offsets[f + 1] - offsets[f])
    return np.empty((longest + 1, bins)), np.empty((longest + 1, bins))


@njit(cache=True, nogil=True)
def numbers_true(scores, offsets, incoming, outgoing, maximise):
    """Messages of factors that score the number of true Booleans of a row, the last number for so many or more.

    Parameters
    ----------
    scores : float64[count, bins]
    offsets : int64[count + 1]
        Row *f* is ``incoming[offsets[f]:offsets[f + 1]]``.
    """
    bins = scores.shape[1]
    ahead, behind = _charts(offsets, bins)
    for f in range(len(scores)):
        row = incoming[offsets[f] : offsets[f + 1]]
        _count(scores[f], row, ahead, behind, maximise)
        for j in range(len(row)):
            true = false = -np.inf
            for v in range(bins):
                true = plus(true, ahead[j, v] + behind[j + 1, min(v + 1, bins - 1)], maximise)
                false = plus(false, ahead[j, v] + behind[j + 1, v], maximise)
            outgoing[offsets[f] + j] = odds(true, false)


@njit(cache=True, nogil=True)
def number_beliefs(scores, offsets, incoming, beliefs, maximise):
    """Beliefs of the numbers; returns the sum of log totals, −∞ where one factor allows nothing."""
    bins, value = scores.shape[1], 0.0
    ahead, behind = _charts(offsets, bins)
    for f in range(len(scores)):
        row = incoming[offsets[f] : offsets[f + 1]]
        _count(scores[f], row, ahead, behind, maximise)
        total = behind[0, 0]
        for v in range(bins):
            beliefs[f, v] = np.exp(ahead[len(row), v] + scores[f, v] - total) if total > -np.inf else 0.0
        value += total
    return value


# --- one of some pairs ------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _pair(a, b, maximise):
    """Log weights of "not both" and of "both" of two Booleans."""
    false_a, true_a = _weights(a)
    false_b, true_b = _weights(b)
    return plus(false_a + plus(false_b, true_b, maximise), true_a + false_b, maximise), true_a + true_b


@njit(cache=True, nogil=True)
def _to_one(partner, one, other, maximise):
    """What a Boolean is told whose partner heard this, where both are worth `one` and everything else `other`."""
    false, true = _weights(partner)
    return odds(plus(true + one, false + other, maximise), plus(false, true, maximise) + other)


@njit(cache=True, nogil=True)
def indicators(offsets, first, second, whole, to_first, to_second, to_whole, maximise):
    """Messages of factors in which a Boolean is true where exactly one pair of its group is, false where none is.

    Group *f* has the pairs ``offsets[f] … offsets[f + 1] - 1``; more than one true pair is not allowed.
    """
    longest = 0
    for f in range(len(whole)):
        longest = max(longest, offsets[f + 1] - offsets[f])
    none, one = np.empty(longest + 1), np.empty(longest + 1)
    for f in range(len(whole)):
        low, count = offsets[f], offsets[f + 1] - offsets[f]
        none[count], one[count] = 0.0, -np.inf  # of the pairs from here on
        for p in range(count - 1, -1, -1):
            lacks, has = _pair(first[low + p], second[low + p], maximise)
            none[p] = none[p + 1] + lacks
            one[p] = plus(one[p + 1] + lacks, none[p + 1] + has, maximise)
        to_whole[f] = odds(one[0], none[0])
        false, true = _weights(whole[f])
        none_before, one_before = 0.0, -np.inf
        for p in range(count):
            a, b = first[low + p], second[low + p]
            others_none = none_before + none[p + 1]
            others_one = plus(one_before + none[p + 1], none_before + one[p + 1], maximise)
            this, other = others_none + true, plus(others_none + false, others_one + true, maximise)
            to_first[low + p] = _to_one(b, this, other, maximise)
            to_second[low + p] = _to_one(a, this, other, maximise)
            lacks, has = _pair(a, b, maximise)
            one_before = plus(one_before + lacks, none_before + has, maximise)
            none_before += lacks


@njit(cache=True, nogil=True)
def indicator_totals(offsets, first, second, whole, maximise):
    """Sum of the log totals of the same factors, −∞ where one allows nothing."""
    value = 0.0
    for f in range(len(whole)):
        none, one = 0.0, -np.inf
        for p in range(offsets[f], offsets[f + 1]):
            lacks, has = _pair(first[p], second[p], maximise)
            one = plus(one + lacks, none + has, maximise)
            none += lacks
        false, true = _weights(whole[f])
        value += plus(one + true, none + false, maximise)
    return value
