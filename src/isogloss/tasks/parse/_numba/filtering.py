"""Which candidates stay."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["choose", "count"]


@njit(cache=True, nogil=True)
def choose(block, blocks, offsets, starts, heads, beliefs, best, gold, threshold, most, kept):
    """Mark, for each word, links that are likely enough, the `most` likeliest at most, and the best and gold ones."""
    for s in range(block, len(offsets) - 1, blocks):
        for w in range(offsets[s], offsets[s + 1]):
            low, high = starts[w], starts[w + 1]
            top, likely = 0.0, 0
            for a in range(low, high):
                top = max(top, beliefs[a])
            for a in range(low, high):
                kept[a] = beliefs[a] >= threshold * top
                likely += kept[a]
            if likely > most:
                order = np.argsort(-beliefs[low:high])
                for rank in range(most, high - low):
                    kept[low + order[rank]] = False
            for a in range(low, high):
                if heads[a] == best[w] or heads[a] == gold[w]:
                    kept[a] = True


@njit(cache=True, nogil=True)
def count(starts, kept):
    """int64[n_words]: how many candidates of each word stay."""
    out = np.zeros(len(starts) - 1, np.int64)
    for w in range(len(out)):
        for a in range(starts[w], starts[w + 1]):
            out[w] += kept[a]
    return out
