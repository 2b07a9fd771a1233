"""Sums over long vectors in a fixed order, so that any number of threads gives the same bits.

Indices are unsigned, for Numba then leaves out the test for counting from the end.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["add_and_dot", "dot", "scale_and_dot"]


@njit(cache=True, nogil=True)
def _dot(a, b, start, stop):
    """Four sums side by side: the processor need not wait for one addition to begin the next."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    one = np.uint64(1)
    i = np.uint64(start)
    whole, end = np.uint64(start + (stop - start) // 4 * 4), np.uint64(stop)
    while i < whole:
        s0 += a[i] * b[i]
        s1 += a[i + one] * b[i + one]
        s2 += a[i + one + one] * b[i + one + one]
        s3 += a[i + one + one + one] * b[i + one + one + one]
        i += np.uint64(4)
    while i < end:
        s0 += a[i] * b[i]
        i += one
    return (s0 + s1) + (s2 + s3)


@njit(cache=True, nogil=True)
def dot(block, count, a, b, out):
    """``out[block]`` = the block's share of a · b."""
    n = len(a)
    out[block] = _dot(a, b, block * n // count, (block + 1) * n // count)


@njit(cache=True, nogil=True)
def add_and_dot(block, count, much, a, x, b, out):
    """x += much · a, then ``out[block]`` = the block's share of x · b."""
    n = len(x)
    start, stop = block * n // count, (block + 1) * n // count
    for i in range(np.uint64(start), np.uint64(stop)):
        x[i] += much * a[i]
    out[block] = _dot(x, b, start, stop)


@njit(cache=True, nogil=True)
def scale_and_dot(block, count, much, x, b, out):
    """x *= much, then ``out[block]`` = the block's share of x · b."""
    n = len(x)
    start, stop = block * n // count, (block + 1) * n // count
    for i in range(np.uint64(start), np.uint64(stop)):
        x[i] *= much
    out[block] = _dot(x, b, start, stop)
