"""Spanning trees of one sentence and of many: log Z, marginals, and how marginals move with the scores.

The walks of `escape` run in plain float64. Where link weights differ by more than float64 can hold, and it matters,
they run again in logarithms. It matters when a link of weight 1e-300 (per child, the best link has 1) could have a
posterior above 1e-100; smaller ones are dropped. That is known afterwards: the posterior of a link with weight u is at
most u times the largest :math:`e_j(i) / N_j`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.arithmetic import (
    Logs,
    divide,
    logarithm,
    moving,
    nothing,
    number,
    plus,
    slope,
    stored,
    times,
)
from isogloss.structures._numba.escape import KERNEL, escapes

__all__ = ["gather", "spanning_moments", "spanning_trees"]

IMPOSSIBLE, WHOLE, SPLIT = 0, 1, 2  # what `reach` finds: also the number of pieces
_LARGEST = np.log(1e200)  # e / N below this: links that were dropped have posteriors below 1e-100
_EPSILON = 2.3e-16
_LOST = 1e-6  # refuse where rounding could cost more than this of a probability


@njit(**KERNEL)
def _search(scores, start, towards, seen):
    """Mark the nodes that `start` can reach; with `towards`, the words that can reach it. Returns how many."""
    n = scores.shape[0] - 1
    stack, height, found = np.empty(n + 1, np.int64), 1, 1
    stack[0] = start
    seen[start] = True
    while height:
        height -= 1
        node = stack[height]
        for other in range(1, n + 1):
            if not seen[other] and (scores[other, node] if towards else scores[node, other]) > -np.inf:
                seen[other] = True
                stack[height] = other
                height += 1
                found += 1
    return found


@njit(**KERNEL)
def reach(scores, single, core):
    """Whether there is a tree at all, decided by which links are allowed.

    With one root child, every word is below it, so that it is one of the words that can reach all others. They are
    strongly connected, and no other word can be the head of one of them: trees fall into a tree with one root child
    over this core, and a forest of the others below it. Returns IMPOSSIBLE, WHOLE, or SPLIT when there are others.

    Parameters
    ----------
    core : bool[n + 1]
        Overwritten with the words of the core; all words without `single`.
    """
    n = scores.shape[0] - 1
    for word in range(n + 1):
        core[word] = word > 0
    dense = True
    for head in range(n + 1):
        for child in range(1, n + 1):
            dense = dense and (head == child or scores[head, child] > -np.inf)
    if dense:
        return WHOLE
    first, found, seen = 0, 0, np.zeros(n + 1, np.bool_)
    for word in range(n + 1):  # whoever reaches all is the last of those that the ones before do not reach
        if not seen[word] and (word > 0) == single:
            first = word
            found = _search(scores, word, found < 0, seen)
    if not single:
        return WHOLE if found == n + 1 else IMPOSSIBLE
    for word in range(n + 1):
        seen[word] = core[word] = False
    if _search(scores, first, found < 0, seen) < n:
        return IMPOSSIBLE
    size = _search(scores, first, found >= 0, core)
    for word in range(1, n + 1):
        if core[word] and scores[0, word] > -np.inf:
            return WHOLE if size == n else SPLIT
    return IMPOSSIBLE


@njit(**KERNEL)
def gather(scores, words, tops, single, weights, root):
    """Lay out log weights by child, each child's best at 0, for the words `words` below the nodes `tops`.

    `tops` together are the root: their weights are added up. With `single`, the best of a child is taken among words,
    and all root weights are shifted together. Returns the sum of what was taken off, to be added to log Z.
    """
    m, taken = len(words), 0.0
    for a in range(m):
        child = words[a]
        high, sum_root = -np.inf, -np.inf
        for b in range(m):
            if b != a:
                high = max(high, scores[words[b], child])
        for top in tops:
            sum_root = plus(Logs(0), sum_root, scores[top, child])
        high = sum_root if not single and sum_root > high else high
        high = 0.0 if high == -np.inf else high
        for b in range(m):
            weights[a, b] = scores[words[b], child] - high if b != a else -np.inf
        root[a] = sum_root - high
        taken += high
    if single:
        high = root[0]
        for a in range(m):
            high = max(high, root[a])
        for a in range(m):
            root[a] -= high
        taken += high
    return taken


@njit(**KERNEL)
def _shares(scores, tops, child, shares):
    """How the weight of the root falls on the nodes that together are it; returns the log of that weight."""
    high, total = -np.inf, 0.0
    for top in tops:
        high = max(high, scores[top, child])
    for t in range(len(tops)):
        shares[t] = np.exp(scores[tops[t], child] - high) if high > -np.inf else 0.0
        total += shares[t]
    for t in range(len(tops)):
        shares[t] = shares[t] / total if total > 0.0 else 0.0
    return high + np.log(total) if total > 0.0 else -np.inf


@njit(**KERNEL)
def _fill(ar, scores, words, tops, weights, root, escape, whole, marginals, logs):
    """Posteriors of the links of one piece, or their logarithms, however small.

    For each child the posteriors add up to 1, also where rounding has moved N.
    """
    shares = np.empty(len(tops))
    for a in range(len(words)):
        child = words[a]
        log_root = _shares(scores, tops, child, shares)
        above = divide(ar, root[a], whole[a])
        total = number(ar, above)
        for b in range(len(words)):
            if b != a:
                mass = divide(ar, times(ar, weights[a, b], escape[b, a]), whole[a])
                marginals[words[b], child] = logarithm(ar, mass) if logs else number(ar, mass)
                total += number(ar, mass)
        if logs:
            for t in range(len(tops) if log_root > -np.inf else 0):
                marginals[tops[t], child] = logarithm(ar, above) + (scores[tops[t], child] - log_root)
            continue
        for b in range(len(words)):
            if b != a:
                marginals[words[b], child] /= total
        for t in range(len(tops)):
            marginals[tops[t], child] = number(ar, above) / total * shares[t]


@njit(**KERNEL)
def _solve_piece(ar, scores, words, tops, single, marginals, logs):
    """log Z and marginals of the words `words` below `tops`; NaN where this arithmetic is not enough."""
    m = len(words)
    weights, root, escape, whole = np.empty((m, m)), np.empty(m), np.empty((m, m)), np.empty(m)
    taken = gather(scores, words, tops, single, weights, root)
    for a in range(m):
        for b in range(m):
            weights[a, b] = stored(ar, weights[a, b])
        root[a] = stored(ar, root[a])
    log_z, largest, range_n = escapes(ar, weights, root, single, escape, whole)
    if nothing(ar) == 0.0:
        enough = largest < _LARGEST
    else:
        enough = m * _EPSILON * max(largest, range_n) < _LOST
    if not enough:
        return np.nan
    _fill(ar, scores, words, tops, weights, root, escape, whole, marginals, logs)
    return taken + log_z


@njit(**KERNEL)
def _members(core, wanted):
    """The words that are in the core, or those that are not."""
    found = np.empty(len(core), np.int64)
    count = 0
    for word in range(1, len(core)):
        if core[word] == wanted:
            found[count] = word
            count += 1
    return found[:count]


@njit(**KERNEL)
def spanning_trees(block, count, ar, chosen, scores, offsets, sizes, single, logs, marginals, values):
    """log Z and marginals of those of the sentences block, block + count, … that are chosen.

    Parameters
    ----------
    ar : Plain(0) or Logs(0)
    chosen : bool[n_sentences]
    scores, marginals : float64[n_values]
        Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``, a block [sizes[s], sizes[s]] of (head, child), sizes
        counting the root. Marginals come as zeros and are overwritten where a tree can have a link.
    logs : bool
        Write the logarithms of marginals; they come as −∞.
    values : float64[n_sentences]
        log Z; −∞ where no tree is allowed, NaN where the arithmetic is not enough.
    """
    for s in range(block, len(sizes), count):
        if not chosen[s]:
            continue
        shape = (sizes[s], sizes[s])
        matrix = scores[offsets[s] : offsets[s + 1]].reshape(shape)
        out = marginals[offsets[s] : offsets[s + 1]].reshape(shape)
        core = np.empty(sizes[s], np.bool_)
        kind = reach(matrix, single, core)
        values[s] = 0.0 if kind else -np.inf
        tops = np.zeros(1, np.int64)
        for piece in range(kind if sizes[s] > 1 else 0):  # the core, then what is below it
            words = _members(core, piece == 0)
            values[s] += _solve_piece(ar, matrix, words, tops, single and piece == 0, out, logs)
            tops = words


@njit(**KERNEL)
def _move_piece(ar, scores, vector, words, tops, single, out):
    """Derivatives of the marginals of one piece: the same walk over numbers that carry derivatives."""
    m = len(words)
    logs, log_root, shares = np.empty((m, m)), np.empty(m), np.empty(len(tops))
    weights, root = np.empty((m, m), np.complex128), np.empty(m, np.complex128)
    escape, whole = np.empty((m, m), np.complex128), np.empty(m, np.complex128)
    gather(scores, words, tops, single, logs, log_root)
    for a in range(m):
        child, rate = words[a], 0.0
        _shares(scores, tops, child, shares)
        for t in range(len(tops)):
            if shares[t] > 0.0:
                rate += shares[t] * vector[tops[t], child]
        root[a] = moving(ar, stored(ar, log_root[a]), rate)
        for b in range(m):
            rate = vector[words[b], child] if logs[a, b] > -np.inf else 0.0
            weights[a, b] = moving(ar, stored(ar, logs[a, b]), rate)
    escapes(ar, weights, root, single, escape, whole)
    for a in range(m):
        child = words[a]
        _shares(scores, tops, child, shares)
        mass = divide(ar, root[a], whole[a])
        for t in range(len(tops)):
            if shares[t] > 0.0:
                rate = slope(ar, mass) + vector[tops[t], child] - slope(ar, root[a])
                out[tops[t], child] = number(ar, mass) * shares[t] * rate
        for b in range(m):
            if b != a:
                mass = divide(ar, times(ar, weights[a, b], escape[b, a]), whole[a])
                out[words[b], child] = number(ar, mass) * slope(ar, mass)


@njit(**KERNEL)
def spanning_moments(block, count, ar, chosen, scores, offsets, sizes, single, vectors, out):
    """d/dε of the marginals at scores + ε vector, for those of the sentences block, block + count, … that are chosen.

    Parameters
    ----------
    ar, chosen
        The arithmetic with which `spanning_trees` succeeded on the chosen sentences.
    vectors, out : float64[n_values]
        Laid out as `scores`; `out` comes as zeros.
    """
    for s in range(block, len(sizes), count):
        if not chosen[s]:
            continue
        shape, start, stop = (sizes[s], sizes[s]), offsets[s], offsets[s + 1]
        matrix, vector = scores[start:stop].reshape(shape), vectors[start:stop].reshape(shape)
        moved, core = out[start:stop].reshape(shape), np.empty(sizes[s], np.bool_)
        kind = reach(matrix, single, core)
        tops = np.zeros(1, np.int64)
        for piece in range(kind if sizes[s] > 1 else 0):
            words = _members(core, piece == 0)
            _move_piece(ar, matrix, vector, words, tops, single and piece == 0, moved)
            tops = words
