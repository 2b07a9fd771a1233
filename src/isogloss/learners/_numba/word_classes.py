"""Classes of words from the words beside them: EM of the aggregate Markov model, and greedy merging (Brown)."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["aggregate_step", "brown", "merge_all"]

FREE = -1
NEAR = 1e-10
"""Losses that differ by less are taken for equal, and the first pair is merged: the same on any processor."""


@njit(cache=True, nogil=True)
def aggregate_step(block, blocks, begins, contexts, counts, given, emit, fresh, sums, values):
    r"""Posteriors of classes for the pairs of each word; what they add to both tables.

    .. math:: q(z \mid w, w') \propto P(z \mid w)\, P(w' \mid z)

    ``fresh[w]`` gets the new P(z | w) before it is normalised, ``sums[block]`` what pairs add to P(w' | z), and
    ``values[block]`` their log-likelihood. A block has every n-th word, so that threads do not matter.
    """
    k = given.shape[1]
    q = np.empty(k)
    for w in range(block, len(begins) - 1, blocks):
        for z in range(k):
            fresh[w, z] = 0.0
        for at in range(begins[w], begins[w + 1]):
            c, total = contexts[at], 0.0
            for z in range(k):
                q[z] = given[w, z] * emit[c, z]
                total += q[z]
            values[block] += counts[at] * np.log(max(total, 1e-300))
            share = counts[at] / max(total, 1e-300)
            for z in range(k):
                fresh[w, z] += share * q[z]
                sums[block, c, z] += share * q[z]


# --- Brown ------------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def _term(n, left, right, total):
    """What a pair of classes adds to the mutual information of neighbours."""
    return n / total * np.log(n * total / (left * right)) if n > 0 else 0.0


@njit(cache=True, nogil=True)
def _about(d, e, x, n, left, right, total, q):
    """What class x has to do with the loss of merging d and e, which are other classes."""
    apart = q[d, x] + q[x, d] + q[e, x] + q[x, e]
    after = _term(n[d, x] + n[e, x], left[d] + left[e], right[x], total)
    before = _term(n[x, d] + n[x, e], left[x], right[d] + right[e], total)
    return apart - after - before


@njit(cache=True, nogil=True)
def _loss(d, e, n, left, right, total, q, there):
    """How much mutual information is lost when two classes become one."""
    inner = n[d, d] + n[e, e] + n[d, e] + n[e, d]
    found = q[d, d] + q[e, e] + q[d, e] + q[e, d] - _term(inner, left[d] + left[e], right[d] + right[e], total)
    for x in range(len(there)):
        if there[x] and x != d and x != e:
            found += _about(d, e, x, n, left, right, total, q)
    return found


@njit(cache=True, nogil=True)
def _add(x, sign, n, left, right, total, q, there, losses):
    """Take class x into the losses of all pairs of other classes, or out of them."""
    for d in range(len(there)):
        if not there[d] or d == x:
            continue
        for e in range(d + 1, len(there)):
            if there[e] and e != x:
                losses[d, e] += sign * _about(d, e, x, n, left, right, total, q)


@njit(cache=True, nogil=True)
def _own(x, n, left, right, total, q, there, losses):
    """The losses of merging class x with each other."""
    for d in range(len(there)):
        if there[d] and d != x:
            a, b = (d, x) if d < x else (x, d)
            losses[a, b] = _loss(a, b, n, left, right, total, q, there)


@njit(cache=True, nogil=True)
def _refresh(x, n, left, right, total, q, there):
    for y in range(len(there)):
        if there[y]:
            q[x, y] = _term(n[x, y], left[x], right[y], total)
            q[y, x] = _term(n[y, x], left[y], right[x], total)


@njit(cache=True, nogil=True)
def _cheapest(there, losses):
    least = np.inf
    for d in range(len(there)):
        for e in range(d + 1, len(there)):
            if there[d] and there[e] and losses[d, e] < least:
                least = losses[d, e]
    for d in range(len(there)):
        for e in range(d + 1, len(there)):
            if there[d] and there[e] and losses[d, e] <= least + NEAR:
                return d, e
    return -1, -1


@njit(cache=True, nogil=True)
def _merge(d, e, n, left, right, total, q, there, losses):
    """Class e becomes part of class d."""
    _add(d, -1.0, n, left, right, total, q, there, losses)
    there[d] = False  # so that what e has to do with pairs of d is not touched: it is made anew
    _add(e, -1.0, n, left, right, total, q, there, losses)
    there[d], there[e] = True, False
    n[d, d] += n[e, e] + n[d, e] + n[e, d]
    for x in range(len(there)):
        if x != d and x != e:
            n[d, x] += n[e, x]
            n[x, d] += n[x, e]
    n[e, :] = 0.0
    n[:, e] = 0.0
    left[d] += left[e]
    right[d] += right[e]
    _refresh(d, n, left, right, total, q, there)
    _add(d, 1.0, n, left, right, total, q, there, losses)
    _own(d, n, left, right, total, q, there, losses)


@njit(cache=True, nogil=True)
def brown(begins, after, counts, back_begins, before, back_counts, left, right, classes, slots):
    """Put words into classes, the most frequent first: a new class each, and the two merged that lose least.

    Word w is followed by ``after[begins[w]:begins[w + 1]]`` and preceded by ``before[...]``; words are in order of
    frequency. ``slots[w]`` gets the class of w, below `classes`. Returns the state: counts of neighbours and sums.
    """
    size, total = classes + 1, left.sum()
    n, q, losses = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size))
    to_left, to_right = np.zeros(size), np.zeros(size)
    there = np.zeros(size, np.bool_)
    slots[:] = FREE
    for w in range(len(begins) - 1):
        free = 0
        while there[free]:
            free += 1
        to_left[free], to_right[free] = left[w], right[w]
        slots[w] = free
        for at in range(begins[w], begins[w + 1]):
            if slots[after[at]] != FREE:
                n[free, slots[after[at]]] += counts[at]
        for at in range(back_begins[w], back_begins[w + 1]):
            if before[at] != w and slots[before[at]] != FREE:
                n[slots[before[at]], free] += back_counts[at]
        there[free] = True
        _refresh(free, n, to_left, to_right, total, q, there)
        _add(free, 1.0, n, to_left, to_right, total, q, there, losses)
        _own(free, n, to_left, to_right, total, q, there, losses)
        if there.sum() > classes:
            d, e = _cheapest(there, losses)
            _merge(d, e, n, to_left, to_right, total, q, there, losses)
            for v in range(w + 1):
                if slots[v] == e:
                    slots[v] = d
    return n, to_left, to_right, there


@njit(cache=True, nogil=True)
def merge_all(n, left, right, there, total, merges):
    """Merge classes until one is left; ``merges[i]`` has the i-th pair: the second became part of the first."""
    size = len(there)
    q, losses = np.zeros((size, size)), np.zeros((size, size))
    for x in range(size):
        if there[x]:
            _refresh(x, n, left, right, total, q, there)
    for d in range(size):
        for e in range(d + 1, size):
            if there[d] and there[e]:
                losses[d, e] = _loss(d, e, n, left, right, total, q, there)
    for step in range(len(merges)):
        d, e = _cheapest(there, losses)
        merges[step, 0], merges[step, 1] = d, e
        _merge(d, e, n, left, right, total, q, there, losses)
