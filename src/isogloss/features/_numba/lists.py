"""Gradients as lists of (number of a weight, value), see `isogloss.features.gradients`: adding them up, and packing."""

from __future__ import annotations

from numba import njit

__all__ = ["add_entries", "pack"]


@njit(cache=True, nogil=True)
def add_entries(block, blocks, places, ends, numbers, values, share, out):
    """Add share · the entries of all items to a dense vector."""
    for k in range(len(places)):
        for j in range(places[k], ends[k]):
            if blocks == 1 or numbers[j] % blocks == block:
                out[numbers[j]] += share * values[j]


@njit(cache=True, nogil=True)
def pack(places, ends, numbers, values, shift, to, packed, numbers_out, values_out):
    """Copy the entries of items one after the other, from `to` on, numbers moved by `shift`; where they end."""
    for k in range(len(places)):
        packed[k, 0] = to
        for j in range(places[k], ends[k]):
            numbers_out[to], values_out[to] = numbers[j] + shift, values[j]
            to += 1
        packed[k, 1] = to
    return to
