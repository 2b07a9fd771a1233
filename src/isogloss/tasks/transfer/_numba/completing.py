"""Partial trees, completed at random."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import GOLDEN, mix
from isogloss.structures._numba.partial import add_link, longest, rows_for

__all__ = ["fill_at_random"]


@njit(cache=True, nogil=True)
def _shuffle(items, count, state):
    """Fisher and Yates; returns where the sequence of random numbers has come to."""
    for k in range(count - 1, 0, -1):
        state += GOLDEN
        other = np.int64(mix(state) % np.uint64(k + 1))
        items[k], items[other] = items[other], items[k]
    return state


@njit(cache=True, nogil=True)
def fill_at_random(block, count, offsets, seeds, single_root, heads):
    """Give words without a head, in random order, the first of all heads, in random order, that a tree can have.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
    seeds : uint64[n_sentences]
    single_root : bool
    heads : int32[n_words]
        Partial projective trees, −1 where not known; whole ones after.
    """
    top = longest(offsets, block, count)
    rows, orphans, parents = rows_for(top), np.empty(top, np.int64), np.empty(top + 1, np.int64)
    for s in range(block, len(offsets) - 1, count):
        own = heads[offsets[s] : offsets[s + 1]]
        n, state, lost = len(own), seeds[s], 0
        for word in range(n):
            if own[word] < 0:
                orphans[lost] = word + 1
                lost += 1
        state = _shuffle(orphans, lost, state)
        for k in range(lost):
            for head in range(n + 1):
                parents[head] = head
            state = _shuffle(parents, n + 1, state)
            for at in range(n + 1):
                if add_link(own, orphans[k], parents[at], single_root, rows):
                    break
