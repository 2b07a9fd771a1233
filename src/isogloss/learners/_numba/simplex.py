"""Points brought below the caps of their groups, in place."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["lower_to_caps"]


@njit(cache=True, nogil=True)
def lower_to_caps(point, groups, caps):
    """The nearest point with Σ ≤ cap in every group and nothing below 0; see `isogloss.learners.posterior.capped`.

    Parameters
    ----------
    point : float64[m]
        0 or more; overwritten.
    groups : int64[m]
        From 0 to len(caps) - 1.
    caps : float64[n_groups]
    """
    sums, inside = np.zeros(len(caps)), np.zeros(len(caps), np.int64)
    for i in range(len(point)):
        sums[groups[i]] += point[i]
    active, count = np.empty(len(point), np.int64), 0
    for i in range(len(point)):
        if sums[groups[i]] > caps[groups[i]] and point[i] > 0.0:
            active[count] = i
            count += 1
    while count > 0:
        sums[:] = 0.0
        inside[:] = 0
        for t in range(count):
            sums[groups[active[t]]] += point[active[t]]
            inside[groups[active[t]]] += 1
        for g in range(len(caps)):
            sums[g] = (sums[g] - caps[g]) / max(inside[g], 1)  # by how much what is left of the group is too high
        left = 0
        for t in range(count):
            i = active[t]
            if point[i] > sums[groups[i]]:
                active[left] = i
                left += 1
            else:
                point[i] = 0.0
        if left == count:
            for t in range(count):
                point[active[t]] -= sums[groups[active[t]]]
            return
        count = left
