"""Sums of products over vectors of lanes, and their derivatives: the inner loops of charts in scaled probabilities."""

from __future__ import annotations

from numba import njit

from isogloss.structures._numba.lanes import WIDTH, load, multiply, multiply_add, splat, store, total

__all__ = ["add_products", "dot"]


@njit(cache=True, nogil=True)
def dot(a, i, b, k, length):
    """Σ a[i + t] b[k + t] for t < length; reads on to a whole vector, where one of the two must be 0."""
    lanes = multiply(load(a, i), load(b, k))
    for t in range(WIDTH, length, WIDTH):
        lanes = multiply_add(load(a, i + t), load(b, k + t), lanes)
    return total(lanes)


@njit(cache=True, nogil=True)
def add_products(a, i, b, k, factor, d_a, d_b, length):
    """The derivative of factor · Σ a[i + t] b[k + t]: into d_a[i + t] and d_b[k + t], and on to a whole vector."""
    factors = splat(factor)
    for t in range(0, length, WIDTH):
        store(d_a, i + t, multiply_add(factors, load(b, k + t), load(d_a, i + t)))
        store(d_b, k + t, multiply_add(factors, load(a, i + t), load(d_b, k + t)))
