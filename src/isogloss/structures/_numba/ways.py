"""The best of several sorted lists of ways to get somewhere: what k-best sweeps over positions share."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["next_way"]


@njit(cache=True, nogil=True)
def next_way(ways, added, heads, n_lists, size):
    """The next best way of `n_lists` falling lists, once what is added to each list is added, and whose it is.

    Parameters
    ----------
    ways : float64[n_lists, size]
    added : float64[n_lists]
    heads : int64[n_lists]
        How many of each list were taken.

    Returns
    -------
    score : float
        −∞ if no list has any left.
    which : int
        −1 then. Among equals the first.
    """
    top, at = -np.inf, -1
    for i in range(n_lists):
        if heads[i] < size:
            score = ways[i, heads[i]] + added[i]
            if score > top:
                top, at = score, i
    return top, at
