"""What the posteriors of another parser say of each link, as small numbers."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.tree_parts import cross

__all__ = ["mark_links"]


@njit(cache=True, nogil=True)
def mark_links(offsets, sizes, beliefs, borders, marks):
    """Marks of [n + 1, n + 1] links of each sentence, as (head, child); see `isogloss.tasks.parse.adapting.stacking`.

    `borders` of posteriors: faint, less than likely, likely, sure.
    """
    for s in range(len(sizes)):
        size, at = sizes[s], offsets[s]
        best = np.zeros(size, np.int64)
        for c in range(1, size):
            for h in range(size):
                if beliefs[at + h * size + c] > beliefs[at + best[c] * size + c]:
                    best[c] = h
        for c in range(1, size):
            for h in range(size):
                p = beliefs[at + h * size + c]
                if h == best[c]:
                    marks[at + h * size + c] = 3 + (p >= borders[1]) + (p >= borders[2]) + (p >= borders[3])
                elif p >= borders[0]:
                    marks[at + h * size + c] = 1 + (p >= borders[1])
                elif h != c:
                    for other in range(1, size):
                        if other != c and cross(best[other], other, h, c):
                            marks[at + h * size + c] = 7
                            break
