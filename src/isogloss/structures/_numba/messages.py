"""Messages of belief propagation: sums at variables, and factors that touch a few variables each.

Boolean messages are log-odds in [−∞, +∞]; messages over k values are log weights whose best is 0. A factor never
divides out what it was told: every message to a variable is summed from the other variables, so that infinite evidence
needs no special care. Where a factor can make a variable neither true nor false, the message is NaN, and the caller
raises. `maximise` turns every sum into a maximum.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "cavities",
    "cell_sums",
    "changes",
    "log_masses",
    "odds",
    "one_of",
    "one_of_totals",
    "pair_beliefs",
    "pairs",
    "plus",
    "retell",
    "table_beliefs",
    "tables",
    "worst_by_owner",
]


@njit(cache=True, nogil=True)
def plus(x, y, maximise):
    """log(eˣ + eʸ), or the greater of the two."""
    high, low = (x, y) if x > y else (y, x)
    if maximise or low == -np.inf or high == np.inf:
        return high
    return high + np.log1p(np.exp(low - high))


@njit(cache=True, nogil=True)
def odds(true, false):
    """Log-odds of two log weights; NaN where both are impossible."""
    if true == -np.inf:
        return np.nan if false == -np.inf else -np.inf
    return np.inf if false == -np.inf else true - false


# --- variables --------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def cell_sums(prior, told, cell, messages, finite, below, above):
    """Add up what is said about every cell: the finite part, and how often −∞ and +∞ were said.

    Parameters
    ----------
    prior, told : float64[n_cells]
        Scores of single variables, and what was observed: 0, or −∞ or +∞.
    cell : int64[n_messages]
    messages : float64[n_messages]
    finite, below, above : float64[n_cells], int32[n_cells], int32[n_cells]
        Overwritten.

    Returns
    -------
    int
        A cell of which both −∞ and +∞ were said, or −1.
    """
    for c in range(len(prior)):
        below[c], above[c], finite[c] = 0, 0, 0.0
        if prior[c] == -np.inf:
            below[c] = 1
        else:
            finite[c] = prior[c]
        if told[c] == -np.inf:
            below[c] += 1
        elif told[c] == np.inf:
            above[c] += 1
    for e in range(len(cell)):
        m, c = messages[e], cell[e]
        if m == -np.inf:
            below[c] += 1
        elif m == np.inf:
            above[c] += 1
        else:
            finite[c] += m
    for c in range(len(prior)):
        if below[c] > 0 and above[c] > 0:
            return c
    return -1


@njit(cache=True, nogil=True)
def cavities(cell, messages, finite, below, above, out):
    """What each message's cell was told by everybody else."""
    for e in range(len(cell)):
        m, c = messages[e], cell[e]
        low, high, rest = below[c], above[c], finite[c]
        if m == -np.inf:
            low -= 1
        elif m == np.inf:
            high -= 1
        else:
            rest -= m
        out[e] = -np.inf if low > 0 else (np.inf if high > 0 else rest)


@njit(cache=True, nogil=True)
def retell(cell, old, new, finite, below, above):
    """Move sums at cells from old messages to new ones; returns a cell of which both −∞ and +∞ were said, or −1."""
    wrong = -1
    for e in range(len(cell)):
        c = cell[e]
        for m, sign in ((old[e], -1), (new[e], 1)):
            if m == -np.inf:
                below[c] += sign
            elif m == np.inf:
                above[c] += sign
            else:
                finite[c] += sign * m
        if below[c] > 0 and above[c] > 0:
            wrong = c
    return wrong


@njit(cache=True, nogil=True)
def changes(old, new, out):
    """|new − old|, relative where numbers are large, infinite where one is; returns the largest, NaN if any is."""
    worst = 0.0
    for e in range(len(old)):
        x, y = old[e], new[e]
        if x == y:
            out[e] = 0.0
        else:
            size = abs(y)
            out[e] = np.inf if size == np.inf else abs(y - x) / (size if size > 1.0 else 1.0)
            if not out[e] <= worst:
                worst = out[e]
                if np.isnan(worst):
                    return worst
    return worst


@njit(cache=True, nogil=True)
def worst_by_owner(owner, change, out):
    """The largest change among the messages of every factor."""
    out[:] = 0.0
    for e in range(len(owner)):
        if change[e] > out[owner[e]]:
            out[owner[e]] = change[e]


@njit(cache=True, nogil=True)
def log_masses(finite, below, above, maximise):
    """Σ over Boolean cells of log(weight of false + weight of true).

    False has weight 1 and true the exponential of the log-odds, except that +∞ stands for weights 0 and 1: factors,
    variables and edges all keep to this, so that the choice cancels in the Bethe sum.
    """
    value = 0.0
    for c in range(len(finite)):
        if below[c] > 0:
            continue
        value += finite[c] if above[c] > 0 else plus(0.0, finite[c], maximise)
    return value


# --- two Booleans -----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _from_partner(a, score, worth, maximise):
    """log((1 + e^(a + score)) / (1 + e^a)); `worth` is e^score, or −1 where that is too large or small to be used."""
    if a == np.inf:
        return score
    if a == -np.inf:
        return 0.0
    if maximise or worth < 0.0:
        return plus(0.0, a + score, maximise) - plus(0.0, a, maximise)
    if a <= 0.0:
        small = np.exp(a)
        return np.log((1.0 + small * worth) / (1.0 + small))
    small = np.exp(-a)
    return np.log((small + worth) / (1.0 + small))


@njit(cache=True, nogil=True)
def pairs(scores, first, second, to_first, to_second, maximise):
    """Messages of factors worth exp(score) when both of two Booleans are true, and 1 otherwise."""
    for f in range(len(scores)):
        worth = np.exp(scores[f]) if -600.0 < scores[f] < 600.0 else -1.0
        to_first[f] = _from_partner(second[f], scores[f], worth, maximise)
        to_second[f] = _from_partner(first[f], scores[f], worth, maximise)


@njit(cache=True, nogil=True)
def pair_beliefs(scores, first, second, beliefs, maximise):
    """Belief that both are true; returns the sum of the factors' log totals, −∞ if one allows nothing."""
    value = 0.0
    for f in range(len(scores)):
        a, b = first[f], second[f]
        total = -np.inf
        if a < np.inf and b < np.inf:
            total = 0.0
        if b < np.inf:
            total = plus(total, 0.0 if a == np.inf else a, maximise)
        if a < np.inf:
            total = plus(total, 0.0 if b == np.inf else b, maximise)
        both = (0.0 if a == np.inf else a) + (0.0 if b == np.inf else b) + scores[f]
        total = plus(total, both, maximise)
        beliefs[f] = np.exp(both - total) if total > -np.inf else 0.0
        value += total
    return value


# --- small tables -----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _advance(digits, sizes):
    for i in range(len(sizes) - 1, -1, -1):
        digits[i] += 1
        if digits[i] < sizes[i]:
            return
        digits[i] = 0


@njit(cache=True, nogil=True)
def tables(scores, sizes, incoming, outgoing, maximise):
    """Messages of factors that are tables over a few variables.

    Parameters
    ----------
    scores : float64[count, Π sizes]
    sizes : int64[arity]
        Number of values of each variable.
    incoming, outgoing : float64[count, Σ sizes]
        Log weights of the values of all variables of a factor, one variable after the other. Outgoing is overwritten.
    """
    count, n_cells = scores.shape
    arity, width = len(sizes), incoming.shape[1]
    starts, digits = np.zeros(arity, np.int64), np.zeros(arity, np.int64)
    for i in range(1, arity):
        starts[i] = starts[i - 1] + sizes[i - 1]
    top, mass = np.empty(width), np.empty(width)
    for f in range(count):
        for w in range(width):
            top[w], mass[w] = -np.inf, 0.0
        for sweep in range(1 if maximise else 2):
            digits[:] = 0
            for c in range(n_cells):
                if scores[f, c] > -np.inf:
                    for i in range(arity):
                        x = scores[f, c]
                        for j in range(arity):
                            if j != i:
                                x += incoming[f, starts[j] + digits[j]]
                        at = starts[i] + digits[i]
                        if sweep == 0:
                            if x > top[at]:
                                top[at] = x
                        elif top[at] > -np.inf:
                            mass[at] += np.exp(x - top[at])
                _advance(digits, sizes)
        for w in range(width):
            outgoing[f, w] = top[w] if maximise or top[w] == -np.inf else top[w] + np.log(mass[w])


@njit(cache=True, nogil=True)
def table_beliefs(scores, sizes, incoming, beliefs, totals, maximise):
    """Belief of every cell, and the log total of every factor (−∞ and no belief where nothing is allowed)."""
    count, n_cells = scores.shape
    arity = len(sizes)
    digits = np.zeros(arity, np.int64)
    for f in range(count):
        digits[:] = 0
        top = -np.inf
        for c in range(n_cells):
            x, start = scores[f, c], 0
            for i in range(arity):
                x += incoming[f, start + digits[i]]
                start += sizes[i]
            beliefs[f, c] = x
            if x > top:
                top = x
            _advance(digits, sizes)
        mass = 0.0
        for c in range(n_cells):
            beliefs[f, c] = np.exp(beliefs[f, c] - top) if top > -np.inf else 0.0
            mass += beliefs[f, c]
        for c in range(n_cells):
            beliefs[f, c] = beliefs[f, c] / mass if mass > 0.0 else 0.0
        totals[f] = top if maximise or top == -np.inf else top + np.log(mass)


# --- exactly one, at most one -----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def one_of(offsets, incoming, outgoing, at_most, maximise):
    """Messages of factors that allow one true Boolean of each row, or also none: minus the log-sum of the others.

    Row *f* is ``incoming[offsets[f]:offsets[f + 1]]``; sums come from the left and the right, never by subtraction.
    """
    for f in range(len(offsets) - 1):
        left = 0.0 if at_most else -np.inf
        for e in range(offsets[f], offsets[f + 1]):
            outgoing[e] = left
            left = plus(left, incoming[e], maximise)
        right = -np.inf
        for e in range(offsets[f + 1] - 1, offsets[f] - 1, -1):
            outgoing[e] = -plus(outgoing[e], right, maximise)
            right = plus(right, incoming[e], maximise)


@njit(cache=True, nogil=True)
def one_of_totals(offsets, incoming, at_most, maximise):
    """Sum of the log totals of the same factors; −∞ where a row allows nothing."""
    value = 0.0
    for f in range(len(offsets) - 1):
        total, certain = (0.0 if at_most else -np.inf), 0
        for e in range(offsets[f], offsets[f + 1]):
            if incoming[e] == np.inf:
                certain += 1
            else:
                total = plus(total, incoming[e], maximise)
        value += total if certain == 0 else (0.0 if certain == 1 else -np.inf)
    return value
