"""Messages of factors that read their variables in order: chains, sequences of children, numbers of children.

Each is a forward and a backward sweep whose product, without the variable's own evidence, is the message to it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.messages import odds, plus

__all__ = ["chain1", "chain2", "child_beliefs", "children", "valence", "valence_beliefs"]


@njit(cache=True, nogil=True)
def chain1(scores, incoming, outgoing, maximise):
    """Messages of a chain with a table for every two neighbours.

    Parameters
    ----------
    scores : float64[n - 1, k, k]
    incoming, outgoing : float64[n, k]
        Log weights; outgoing is overwritten.
    """
    n, k = incoming.shape
    behind, ahead = np.zeros(k), np.zeros(k)
    new = np.empty(k)
    for v in range(k):
        outgoing[0, v] = 0.0
    for t in range(1, n):
        for j in range(k):
            x = -np.inf
            for i in range(k):
                x = plus(x, behind[i] + incoming[t - 1, i] + scores[t - 1, i, j], maximise)
            new[j] = x
        for j in range(k):
            behind[j] = new[j]
            outgoing[t, j] = new[j]
    for t in range(n - 2, -1, -1):
        for i in range(k):
            x = -np.inf
            for j in range(k):
                x = plus(x, scores[t, i, j] + incoming[t + 1, j] + ahead[j], maximise)
            new[i] = x
        for i in range(k):
            ahead[i] = new[i]
            outgoing[t, i] += new[i]


@njit(cache=True, nogil=True)
def chain2(scores, incoming, outgoing, maximise):
    """Messages of a chain with a table for every three neighbours: scores float64[n - 2, k, k, k], n at least 2."""
    n, k = incoming.shape
    behind = np.empty((n, k, k))  # of values at t - 1 and t: all before t, without t itself
    for s in range(k):
        for t in range(k):
            behind[1, s, t] = incoming[0, s]
    for at in range(2, n):
        for s in range(k):
            for t in range(k):
                x = -np.inf
                for r in range(k):
                    x = plus(x, behind[at - 1, r, s] + scores[at - 2, r, s, t], maximise)
                behind[at, s, t] = x + incoming[at - 1, s]
    ahead, new = np.zeros((k, k)), np.empty((k, k))  # of values at t - 1 and t: all after t
    for at in range(n - 1, 0, -1):
        if at < n - 1:
            for s in range(k):
                for t in range(k):
                    x = -np.inf
                    for u in range(k):
                        x = plus(x, scores[at - 1, s, t, u] + incoming[at + 1, u] + ahead[t, u], maximise)
                    new[s, t] = x
            for s in range(k):
                for t in range(k):
                    ahead[s, t] = new[s, t]
        for t in range(k):
            x = -np.inf
            for s in range(k):
                x = plus(x, behind[at, s, t] + ahead[s, t], maximise)
            outgoing[at, t] = x
    for s in range(k):
        x = -np.inf
        for t in range(k):
            x = plus(x, incoming[1, t] + ahead[s, t], maximise)
        outgoing[0, s] = x


# --- children of a head, outward on one side --------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _children_behind(scores, side, head, row, a, behind, start, maximise):
    """`behind[c]`: all choices up to the one that takes child c − 1 (0: none yet); `start[p]`: the first state that can
    still be the last one taken when child p is looked at, after the last child that must be taken."""
    behind[0], first = 0.0, 0
    for p in range(len(row)):
        start[p] = first
        x = -np.inf
        for c in range(first, p + 1):
            x = plus(x, behind[c] + scores[side, head, head if c == 0 else row[c - 1], row[p]], maximise)
        if a[p] == np.inf:
            behind[p + 1], first = x, p + 1
        else:
            behind[p + 1] = x + a[p]
    return first


@njit(cache=True, nogil=True)
def children(scores, n, incoming, outgoing, maximise):
    """Messages of factors on the children of each head, read outward on either side as a chain of bigrams.

    Parameters
    ----------
    scores : float64[2, n + 1, n + 1, n + 1]
        (side, head, previous child, next child); side 0 is left. The head itself stands for both ends of the sequence.
    incoming, outgoing : float64[n + 1, n + 1]
        Log-odds of links (head, child); outgoing is overwritten, self-loops and links to the root are told 0.
    """
    outgoing[:, :] = 0.0
    behind, ahead = np.empty(n + 2), np.empty(n + 2)
    start = np.empty(n + 1, np.int64)
    for head in range(n + 1):
        for side in range(2):
            row = np.arange(head - 1, 0, -1) if side == 0 else np.arange(head + 1, n + 1)
            size = len(row)
            a = np.empty(size)
            for p in range(size):
                a[p] = incoming[head, row[p]]
            _children_behind(scores, side, head, row, a, behind, start, maximise)
            for c in range(size + 1):
                ahead[c] = scores[side, head, head if c == 0 else row[c - 1], head]
            for p in range(size - 1, -1, -1):
                true, false = -np.inf, -np.inf
                for c in range(start[p], p + 1):
                    step = scores[side, head, head if c == 0 else row[c - 1], row[p]]
                    true = plus(true, behind[c] + step + ahead[p + 1], maximise)
                    false = plus(false, behind[c] + ahead[c], maximise)
                outgoing[head, row[p]] = odds(true, false)
                for c in range(p + 1):
                    take = scores[side, head, head if c == 0 else row[c - 1], row[p]] + ahead[p + 1]
                    ahead[c] = take if a[p] == np.inf else plus(ahead[c], a[p] + take, maximise)


@njit(cache=True, nogil=True)
def child_beliefs(scores, n, incoming, beliefs, maximise):
    """Beliefs in bigrams of children, shaped like `scores`; returns the sum of the log totals."""
    beliefs[:, :, :, :] = 0.0
    behind, ahead = np.empty(n + 2), np.empty(n + 2)
    start = np.empty(n + 1, np.int64)
    value = 0.0
    for head in range(n + 1):
        for side in range(2):
            row = np.arange(head - 1, 0, -1) if side == 0 else np.arange(head + 1, n + 1)
            size = len(row)
            a = np.empty(size)
            for p in range(size):
                a[p] = incoming[head, row[p]]
            last = _children_behind(scores, side, head, row, a, behind, start, maximise)
            total = -np.inf
            for c in range(size + 1):
                ahead[c] = scores[side, head, head if c == 0 else row[c - 1], head]
                if c >= last:
                    total = plus(total, behind[c] + ahead[c], maximise)
            value += total
            if total == -np.inf:
                continue
            for c in range(last, size + 1):
                beliefs[side, head, head if c == 0 else row[c - 1], head] = np.exp(behind[c] + ahead[c] - total)
            for p in range(size - 1, -1, -1):
                own = 0.0 if a[p] == np.inf else a[p]
                for c in range(p + 1):
                    before = head if c == 0 else row[c - 1]
                    take = scores[side, head, before, row[p]] + own + ahead[p + 1]
                    if c >= start[p]:
                        beliefs[side, head, before, row[p]] = np.exp(behind[c] + take - total)
                    ahead[c] = take if a[p] == np.inf else plus(ahead[c], take, maximise)
    return value


@njit(cache=True, nogil=True)
def _counted(a, counts, behind, maximise):
    """`behind[p, v]`: v children (or more, for the last bin) among the first p."""
    behind[0, :] = -np.inf
    behind[0, 0] = 0.0
    for p in range(len(a)):
        own = 0.0 if a[p] == np.inf else a[p]
        for v in range(counts):
            behind[p + 1, v] = -np.inf if a[p] == np.inf else behind[p, v]
        for v in range(counts):
            to = min(v + 1, counts - 1)
            behind[p + 1, to] = plus(behind[p + 1, to], behind[p, v] + own, maximise)


@njit(cache=True, nogil=True)
def valence(scores, n, incoming, outgoing, maximise):
    """Messages of factors on the number of children of each head on either side.

    Parameters
    ----------
    scores : float64[2, n + 1, bins]
        (side, head, number of children); the last bin is that many or more.
    incoming, outgoing : float64[n + 1, n + 1]
        As of `children`.
    """
    counts = scores.shape[2]
    outgoing[:, :] = 0.0
    behind, ahead, new = np.empty((n + 2, counts)), np.empty(counts), np.empty(counts)
    for head in range(n + 1):
        for side in range(2):
            row = np.arange(head - 1, 0, -1) if side == 0 else np.arange(head + 1, n + 1)
            a = np.empty(len(row))
            for p in range(len(row)):
                a[p] = incoming[head, row[p]]
            _counted(a, counts, behind, maximise)
            for v in range(counts):
                ahead[v] = scores[side, head, v]
            for p in range(len(row) - 1, -1, -1):
                own = 0.0 if a[p] == np.inf else a[p]
                true, false = -np.inf, -np.inf
                for v in range(counts):
                    more = ahead[min(v + 1, counts - 1)]
                    true = plus(true, behind[p, v] + more, maximise)
                    false = plus(false, behind[p, v] + ahead[v], maximise)
                    new[v] = own + more if a[p] == np.inf else plus(ahead[v], own + more, maximise)
                outgoing[head, row[p]] = odds(true, false)
                for v in range(counts):
                    ahead[v] = new[v]


@njit(cache=True, nogil=True)
def valence_beliefs(scores, n, incoming, beliefs, maximise):
    """Beliefs in numbers of children, shaped like `scores`; returns the sum of the log totals."""
    counts = scores.shape[2]
    behind = np.empty((n + 2, counts))
    value = 0.0
    for head in range(n + 1):
        for side in range(2):
            row = np.arange(head - 1, 0, -1) if side == 0 else np.arange(head + 1, n + 1)
            a = np.empty(len(row))
            for p in range(len(row)):
                a[p] = incoming[head, row[p]]
            _counted(a, counts, behind, maximise)
            total = -np.inf
            for v in range(counts):
                total = plus(total, behind[len(row), v] + scores[side, head, v], maximise)
            for v in range(counts):
                x = behind[len(row), v] + scores[side, head, v]
                beliefs[side, head, v] = np.exp(x - total) if total > -np.inf else 0.0
            value += total
    return value
