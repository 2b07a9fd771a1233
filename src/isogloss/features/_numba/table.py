"""Tables of keys, with open addressing and linear probing, at most half full.

While keys are collected they stand in a table whole: uint64[size], 0 where a slot is free, beside any other array of
the same size (`insert` counts in it). A finished table is uint32[2 · size]: the upper half of a key, its fingerprint, 0
where a slot is free; and a payload, such as a number, or a weight (as float32). Keys with the same fingerprint are told
apart by where they lie, so that `find` takes a key that is not in a table for one that is once in some 10⁹ times. Where
the keys themselves are at hand, `number_of` compares them and is never wrong.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["build", "find", "insert", "number_of", "numbers_of", "room_for", "seek"]

_HALF = np.uint64(32)
_ZERO = np.uint64(0)


# --- while keys are collected


@njit(cache=True, nogil=True)
def seek(slots, key):
    """The slot of a whole key, or the free one where it would be."""
    mask = len(slots) - 1
    i = np.int64(key & np.uint64(mask))
    while slots[i] != _ZERO and slots[i] != key:
        i = (i + 1) & mask
    return i


@njit(cache=True, nogil=True)
def insert(slots, counts, key):
    """Count a key; 1 if it is new."""
    i = seek(slots, key)
    if slots[i] == key:
        counts[i] += 1
        return 0
    slots[i] = key
    counts[i] = 1
    return 1


@njit(cache=True, nogil=True)
def room_for(slots, beside, used, more):
    """The table, and what stands beside it, with room for so many more keys."""
    size = len(slots)
    while 2 * (used + more) > size:
        size *= 2
    if size == len(slots):
        return slots, beside
    wider, moved = np.zeros(size, np.uint64), np.zeros(size, beside.dtype)
    for k in range(len(slots)):
        if slots[k] != _ZERO:
            i = seek(wider, slots[k])
            wider[i], moved[i] = slots[k], beside[k]
    return wider, moved


# --- finished tables


@njit(cache=True, nogil=True)
def build(keys, payload, table):
    """Put keys, which all differ, with their payload into an empty table."""
    mask = np.uint64(len(table) // 2 - 1)
    for k in range(len(keys)):
        i = np.int64(keys[k] & mask)
        while table[2 * i] != 0:
            i = (i + 1) & np.int64(mask)
        table[2 * i] = np.uint32(keys[k] >> _HALF)
        table[2 * i + 1] = payload[k]


@njit(cache=True, nogil=True)
def find(table, mask, key):
    """The slot of a key, or −1."""
    fingerprint = np.uint32(key >> _HALF)
    i = np.int64(key & mask)
    while True:
        there = table[2 * i]
        if there == fingerprint:
            return i
        if there == 0:
            return -1
        i = (i + 1) & np.int64(mask)


@njit(cache=True, nogil=True)
def number_of(bits, table, keys, key):
    """The number of a key, or −1: its first bits, or what the table says; see `isogloss.features.table.Lookup`."""
    if bits:
        return np.int64(key >> np.uint64(64 - bits))
    mask = np.uint64(len(table) // 2 - 1)
    fingerprint = np.uint32(key >> _HALF)
    i = np.int64(key & mask)
    while table[2 * i] != 0:
        if table[2 * i] == fingerprint and keys[table[2 * i + 1]] == key:
            return np.int64(table[2 * i + 1])
        i = (i + 1) & np.int64(mask)
    return np.int64(-1)


@njit(cache=True, nogil=True)
def numbers_of(numbering, keys, out):
    """The number of each key; −1 where it is 0 or not known."""
    bits, table, known = numbering
    for k in range(len(keys)):
        out[k] = -1 if keys[k] == _ZERO else number_of(bits, table, known, keys[k])
