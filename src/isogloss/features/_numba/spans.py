"""Codes of what short spans are made of."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import mix

__all__ = ["phrase_codes"]

_POSITIVE = np.uint64((1 << 62) - 1)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def phrase_codes(block, blocks, offsets, part_offsets, longest, codes, out):
    """A code for the sequence of codes that each span has, spans by their first word and then by their length.

    codes : int64[n_words]; out : int64[n_spans].
    """
    for s in range(block, len(offsets) - 1, blocks):
        at = part_offsets[s]
        for first in range(offsets[s], offsets[s + 1]):
            sequence = np.uint64(0)
            for word in range(first, min(first + longest, offsets[s + 1])):
                sequence = mix(sequence * _FACTOR + np.uint64(codes[word]) + np.uint64(1))
                out[at] = np.int64(sequence & _POSITIVE)
                at += 1
