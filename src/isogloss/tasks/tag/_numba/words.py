"""Codes of words, of their beginnings and of their endings: hashes that are the same in every text and process."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import mix

__all__ = ["affix_codes", "shape_codes"]

_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)


@njit(cache=True, nogil=True)
def _finish(h):
    """A hash as a code: not negative, all bits depending on all others."""
    return np.int64(mix(h) >> np.uint64(1))


@njit(cache=True, nogil=True)
def affix_codes(letters, offsets, longest, whole, prefixes, suffixes):
    """Codes of whole words, int64[n]; of their first 1 … longest letters, int64[longest, n]; and of their last ones.

    Word *i* is ``letters[offsets[i]:offsets[i + 1]]``. A word that has fewer letters has no such code: −1.
    """
    for i in range(len(offsets) - 1):
        first, last = offsets[i], offsets[i + 1]
        h = _BASIS
        for p in range(first, last):
            h = (h ^ np.uint64(letters[p])) * _PRIME
            if p - first < longest:
                prefixes[p - first, i] = _finish(h)
        whole[i] = _finish(h)
        h = _BASIS
        for m in range(longest):
            if m < last - first:
                h = (h ^ np.uint64(letters[last - 1 - m])) * _PRIME
                suffixes[m, i] = _finish(h)
            else:
                prefixes[m, i] = suffixes[m, i] = -1


@njit(cache=True, nogil=True)
def shape_codes(kinds, offsets, shapes, looks):
    """Codes of how words look: the kinds of their characters with repetitions left out, and a set of properties.

    Properties: first a capital; all capitals; a capital inside; a digit; digits alone; a hyphen; no letter or digit
    at all; a full stop; some letter. Kinds: 0 small letter, 1 capital, 2 digit, 3 hyphen, 4 full stop, 5 any other
    mark, 6 letter without case.
    """
    for i in range(len(offsets) - 1):
        first, last = offsets[i], offsets[i + 1]
        seen = np.zeros(7, np.int64)
        h, before = _BASIS, -1
        inside = 0
        for p in range(first, last):
            kind = kinds[p]
            seen[kind] += 1
            if kind == 1 and p > first:
                inside = 1
            if kind != before:
                h = (h ^ np.uint64(kind + 1)) * _PRIME
                before = kind
        shapes[i] = _finish(h)
        n = last - first
        letters = seen[0] + seen[1] + seen[6]
        bits = 0
        bits |= 1 if n and kinds[first] == 1 else 0
        bits |= 2 if seen[1] > 1 and seen[1] == letters else 0
        bits |= 4 * inside
        bits |= 8 if seen[2] else 0
        bits |= 16 if n and seen[2] == n else 0
        bits |= 32 if seen[3] else 0
        bits |= 64 if letters + seen[2] == 0 else 0
        bits |= 128 if seen[4] else 0
        bits |= 256 if letters else 0
        looks[i] = bits
