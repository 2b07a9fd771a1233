"""Sums over long vectors in a fixed order, so that any number of threads gives the same bits."""

from __future__ import annotations

from numba import njit

__all__ = ["add_and_dot", "dot", "scale_and_dot"]


@njit(cache=True, nogil=True)
def _dot(a, b, start, stop):
    """Four sums side by side: the processor need not wait for one addition to begin the next."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = start + (stop - start) // 4 * 4
    for i in range(start, whole, 4):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
    for i in range(whole, stop):
        s0 += a[i] * b[i]
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
    for i in range(start, stop):
        x[i] += much * a[i]
    out[block] = _dot(x, b, start, stop)


@njit(cache=True, nogil=True)
def scale_and_dot(block, count, much, x, b, out):
    """x *= much, then ``out[block]`` = the block's share of x · b."""
    n = len(x)
    start, stop = block * n // count, (block + 1) * n // count
    for i in range(start, stop):
        x[i] *= much
    out[block] = _dot(x, b, start, stop)
