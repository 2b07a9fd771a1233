"""Kernels of `isogloss.tasks.documents.divergence`."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["pairwise"]


@njit(cache=True, nogil=True)
def pairwise(block, blocks, first, second, entropies, others, out):
    """Jensen-Shannon divergence, in bits, of rows of one block of the first with all rows of the second.

    JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2; entropies : of the first, others : of the second.
    """
    n = first.shape[1]
    for i in range(block * len(first) // blocks, (block + 1) * len(first) // blocks):
        for j in range(len(second)):
            mixed = 0.0
            for t in range(n):
                m = 0.5 * (first[i, t] + second[j, t])
                if m > 0.0:
                    mixed -= m * math.log2(m)
            out[i, j] = min(1.0, max(0.0, mixed - 0.5 * (entropies[i] + others[j])))
    return np.int64(0)
