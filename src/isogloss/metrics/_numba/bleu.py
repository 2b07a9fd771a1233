"""Words that a translation shares with a reference, in runs of one to four."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import GOLDEN, mix

__all__ = ["count_matches"]


@njit(cache=True, nogil=True)
def _keys(words, first, last, order):
    """One number for each run of words, in ascending order."""
    n = max(last - first - order + 1, 0)
    keys = np.empty(n, np.uint64)
    for k in range(n):
        key = np.uint64(order)
        for at in range(first + k, first + k + order):
            key = mix(key ^ (np.uint64(words[at]) + GOLDEN))
        keys[k] = key
    keys.sort()
    return keys


@njit(cache=True, nogil=True)
def count_matches(block, blocks, words, starts, reference_words, reference_starts, of_reference, out):
    """Runs of one to four words that are right, those that there are, and the lengths of both: int64[n, 10]."""
    for item in range(block, len(starts) - 1, blocks):
        first, last = starts[item], starts[item + 1]
        reference = of_reference[item]
        begin, end = reference_starts[reference], reference_starts[reference + 1]
        for order in range(1, 5):
            ours, theirs = _keys(words, first, last, order), _keys(reference_words, begin, end, order)
            i = j = right = 0
            while i < len(ours) and j < len(theirs):
                if ours[i] == theirs[j]:
                    right += 1
                    i += 1
                    j += 1
                elif ours[i] < theirs[j]:
                    i += 1
                else:
                    j += 1
            out[item, order - 1], out[item, 3 + order] = right, len(ours)
        out[item, 8], out[item, 9] = last - first, end - begin
