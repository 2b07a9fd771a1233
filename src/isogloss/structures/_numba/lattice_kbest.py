"""The k best sequences over lists of labels: Viterbi with that many ways to reach each state."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.ways import next_way

__all__ = ["best_sequences"]


@njit(cache=True, nogil=True)
def _merge(lists, added, heads, n_lists, size, own, best, back):
    """Fill one state with its best ways; `own` is added to all."""
    heads[:n_lists] = 0
    for c in range(size):
        top, at = next_way(lists, added, heads, n_lists, size)
        if at < 0:
            break
        best[c], back[c] = top + own, at * size + heads[at]
        heads[at] += 1


@njit(cache=True, nogil=True)
def _fill(order, starts, first, last, scores, size, best, back):
    """Best ways to each state; at order 2 a state is the labels of t − 1 and of t, the latter running fastest."""
    widest = 1
    for t in range(first, last):
        widest = max(widest, starts[t + 1] - starts[t])
    lists, added, heads = np.empty((widest, size)), np.zeros(widest), np.empty(widest, np.int64)
    node, edge = 0, starts[last] - starts[first]
    triple, past = edge, 0
    for t in range(first + 1, last):
        triple += (starts[t] - starts[t - 1]) * (starts[t + 1] - starts[t])
    for t in range(first, last):
        wide, here = starts[t + 1] - starts[t], t - first
        rows = starts[t] - starts[t - 1] if t > first else 1
        above = starts[t - 1] - starts[t - 2] if t > first + 1 else 1
        if t == first:
            for j in range(wide):
                best[here, j, 0] = scores[node + j]
        elif order == 1:
            for j in range(wide):
                for i in range(rows):
                    lists[i] = best[here - 1, i]
                    added[i] = scores[edge + i * wide + j]
                _merge(lists, added, heads, rows, size, scores[node + j], best[here, j], back[here, j])
        else:
            for i in range(rows):
                for j in range(wide):
                    for h in range(above):
                        lists[h] = best[here - 1, h * rows + i]
                        added[h] = 0.0 if t == first + 1 else scores[triple + (h * rows + i) * wide + j]
                    own = scores[node + j] + scores[edge + i * wide + j]
                    _merge(lists, added, heads, above, size, own, best[here, i * wide + j], back[here, i * wide + j])
            if t > first + 1:
                triple += above * rows * wide
        node += wide
        if t > first:
            edge += rows * wide
        past = rows * wide if order == 2 and t > first else wide
    return past


@njit(cache=True, nogil=True)
def best_sequences(block, blocks, lists, scores, size, found, labels):
    """The best `size` sequences of the sentences block, block + blocks, …, best first.

    Parameters
    ----------
    lists : Lists
    scores : float64[n_parts]
    found : float64[n_sentences, size]
        Overwritten with scores; −∞ once there are no more.
    labels : int64[n_positions * size]
        Overwritten with the sequences of a sentence one after the other.
    """
    order, offsets, starts, given, begins = lists
    for s in range(block, len(offsets) - 1, blocks):
        first, last = offsets[s], offsets[s + 1]
        n = last - first
        found[s] = -np.inf
        if n == 0:
            found[s, 0] = 0.0
            continue
        most = 1
        for t in range(first, last):
            wide = starts[t + 1] - starts[t]
            most = max(most, wide * (starts[t] - starts[t - 1]) if order == 2 and t > first else wide)
        best, back = np.full((n, most, size), -np.inf), np.zeros((n, most, size), np.int64)
        states = _fill(order, starts, first, last, scores[begins[s] : begins[s + 1]], size, best, back)
        heads, nothing = np.zeros(states, np.int64), np.zeros(states)
        for c in range(size):
            top, state = next_way(best[n - 1], nothing, heads, states, size)
            if state < 0:
                break
            found[s, c] = top
            rank = heads[state]
            heads[state] += 1
            for t in range(n - 1, -1, -1):
                wide = starts[first + t + 1] - starts[first + t]
                labels[(first * size) + c * n + t] = given[starts[first + t] + state % wide]
                step = back[t, state, rank]
                if order == 1:
                    state, rank = step // size, step % size
                elif t > 0:
                    rows = starts[first + t] - starts[first + t - 1]
                    i = state // wide
                    state, rank = (step // size) * rows + i if t > 1 else i, step % size
