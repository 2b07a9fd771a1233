"""How probable names are."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["name_posteriors"]


@njit(cache=True, nogil=True)
def name_posteriors(block, blocks, lengths, offsets, k, marginals, places, longest, out):
    """How probable each span is to be a name of each type, by the posteriors of pairs of tags.

    A chain forgets what lies before a tag: p(name) = p(begin) · Π p(go on | before) · (1 − p(go on | last)).

    marginals : float64[Σ n k k]
        Of tags and those before them, sentence *s* from ``offsets[s]``; tag 0 is outside, 2t + 1 begins type t, and
        2t + 2 goes on.
    out : float64[Σ n longest types]
        Sentence *s* from ``places[s]``.
    """
    types = (k - 1) // 2
    for s in range(block, len(lengths), blocks):
        n, at = lengths[s], offsets[s]
        own = np.zeros((n, k))
        for t in range(n):
            for i in range(k):
                for j in range(k):
                    own[t, j] += marginals[at + (t * k + i) * k + j]
        for b in range(n):
            for kind in range(types):
                begin, inside = 2 * kind + 1, 2 * kind + 2
                chance, last = own[b, begin], begin
                for width in range(1, longest + 1):
                    place = places[s] + (b * longest + width - 1) * types + kind
                    t = b + width
                    if t > n:
                        out[place] = 0.0
                        continue
                    further = 0.0
                    if t < n and own[t - 1, last] > 0.0:
                        further = min(1.0, marginals[at + (t * k + last) * k + inside] / own[t - 1, last])
                    out[place] = chance * (1.0 - further)
                    chance *= further
                    last = inside
