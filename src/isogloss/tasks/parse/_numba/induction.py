"""Kernels of grammar induction: counts to begin with, and heads of punctuation marks."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["attach_marks", "harmonic_counts"]


@njit(cache=True, nogil=True)
def harmonic_counts(tags, offsets, constant, nearest_first, root, stop, child):
    """Add up what is expected if every word is the root with 1/n, and else hangs on others by their distance.

    P(h → m) = (1 − 1/n) · (1 / (|h − m| + c)) / Σ_h' (1 / (|h' − m| + c)). Which words of a side are children is
    decided for each alone, so that the number of children has a Poisson binomial distribution.

    Parameters
    ----------
    tags : int64[n_words]
    offsets : int64[n_sentences + 1]
    root : float64[k]
    stop : float64[k, 2, V_s, 2]
    child : float64[k, 2, V_c, k]
    """
    last_stop, last_child = stop.shape[2] - 1, child.shape[2] - 1
    for s in range(len(offsets) - 1):
        begin = offsets[s]
        n = offsets[s + 1] - begin
        if n == 0:
            continue
        totals = np.zeros(n)
        for m in range(n):
            root[tags[begin + m]] += 1.0 / n
            for h in range(n):
                if h != m:
                    totals[m] += 1.0 / (abs(h - m) + constant)
        chances = np.empty(n + 1)
        for h in range(n):
            for side in range(2):
                count = n - 1 - h if side else h
                chances[:] = 0.0
                chances[0] = 1.0  # of the number of children so far
                for t in range(count):
                    step = t + 1 if nearest_first else count - t
                    m = h + step if side else h - step
                    p = (1.0 - 1.0 / n) / (step + constant) / totals[m]
                    for v in range(t + 1):
                        taken = p * chances[v]
                        stop[tags[begin + h], side, min(v, last_stop), 0] += taken
                        child[tags[begin + h], side, min(v, last_child), tags[begin + m]] += taken
                    for v in range(t + 1, 0, -1):
                        chances[v] = chances[v] * (1.0 - p) + chances[v - 1] * p
                    chances[0] *= 1.0 - p
                for v in range(count + 1):
                    stop[tags[begin + h], side, min(v, last_stop), 1] += chances[v]


@njit(cache=True, nogil=True)
def attach_marks(offsets, marks, heads):
    """Hang the marks of each sentence on words, without a crossing.

    A mark between two words hangs on the lowest word that has both below it, or is one of them; a mark at the
    beginning or end on the root's child. Where there are marks alone, the first is the root's child.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
    marks : bool[n_words]
    heads : int32[n_words]
        Of words, trees with one root child, counted with the marks among them; those of marks are overwritten.
    """
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        top = -1
        for word in range(begin, end):
            if not marks[word] and heads[word] == 0:
                top = word
        for mark in range(begin, end):
            if not marks[mark]:
                continue
            if top < 0:  # nothing but marks
                heads[mark] = 0 if mark == begin else 1
                continue
            before, after = mark - 1, mark + 1
            while before >= begin and marks[before]:
                before -= 1
            while after < end and marks[after]:
                after += 1
            found = top
            if before >= begin and after < end:
                found = _lowest_above(begin, heads, before, after)
            heads[mark] = found - begin + 1


@njit(cache=True, nogil=True)
def _lowest_above(begin, heads, one, other):
    """The lowest word that is above both, or one of them."""
    node = one
    while True:
        below = other
        while below >= begin and below != node:
            below = begin + heads[below] - 1 if heads[below] > 0 else begin - 1
        if below == node:
            return node
        node = begin + heads[node] - 1
