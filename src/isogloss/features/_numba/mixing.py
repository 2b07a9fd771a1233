"""The one mixer of keys.

A template gives a part the code ``mix(start + Σ code · factor)`` (`isogloss.features.mixing`): what goes in is added
up, so that what a word adds is summed once for the word, whatever the number of parts that it belongs to. Variants of a
code (bin 0: as it is; 1, 2, …: together with a bin of the part, such as direction and length) have keys that differ in
the fingerprint (the upper half) and lie within one line of 8 slots (the lowest three bits), so that looking up two
variants touches memory once. The fingerprint of a key is never 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["GOLDEN", "key_of", "mix"]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴ divided by the golden ratio: what SplitMix64 steps by."""

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_LOW = np.uint64(7)
_HALF = np.uint64(32)
_WHOLE = np.uint64(0xFFFFFFFF)
_STEP = np.uint64(0x9E3779B1)
_FIVE = np.uint64(5)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@njit(cache=True, nogil=True, inline="always")
def mix(h):
    """A bijection of 64-bit numbers in which every bit depends on all others: the finaliser of SplitMix64."""
    h = (h ^ (h >> np.uint64(30))) * _FIRST
    h = (h ^ (h >> np.uint64(27))) * _SECOND
    return h ^ (h >> np.uint64(31))


@njit(cache=True, nogil=True)
def key_of(code, bin_):
    """The key of a variant of a code."""
    b = np.uint64(bin_)
    fingerprint = (code >> _HALF) ^ ((b * _STEP) & _WHOLE)
    if fingerprint == _ZERO:
        fingerprint = _ONE
    low = (code & (_WHOLE ^ _LOW)) | ((code + b * _FIVE) & _LOW)
    return (fingerprint << _HALF) | low
