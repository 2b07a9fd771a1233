"""From word numbers back to bytes."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def join_words(ids, offsets, letters, starts):
    """Lines of words: the words of a row with a space between them, a newline after each row.

    Parameters
    ----------
    ids : int32[n_tokens]
    offsets : int64[n_rows + 1]
    letters : uint8[n_bytes]
        All word types, one after the other; type k is ``letters[starts[k]:starts[k + 1]]``.
    starts : int64[n_types + 1]

    Returns
    -------
    lines : uint8[n]
    """
    n_rows = offsets.size - 1
    size = n_rows
    for row in range(n_rows):
        first, last = offsets[row], offsets[row + 1]
        size += max(last - first - 1, 0)
        for at in range(first, last):
            size += starts[ids[at] + 1] - starts[ids[at]]
    lines = np.empty(size, np.uint8)
    end = 0
    for row in range(n_rows):
        first, last = offsets[row], offsets[row + 1]
        for at in range(first, last):
            if at > first:
                lines[end] = 32
                end += 1
            for k in range(starts[ids[at]], starts[ids[at] + 1]):
                lines[end] = letters[k]
                end += 1
        lines[end] = 10
        end += 1
    return lines
