"""Keys of links, and tables of keys.

A template gives a link a 64-bit code *h*. Its variants (bin 0: as it is; 1, 2, …: with direction and length) have keys
that differ in the fingerprint (upper half) and lie within one line of 8 slots (lowest three bits), so that looking up
two variants touches memory once. A table is uint32[2 · size]: fingerprint, 0 where a slot is free, and a payload, the
number of the weight while learning, the weight itself (as float32) afterwards. While learning, a variant is in a table
only together with bin 0: it is not looked for where that is missing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.tasks.parse._numba.codes import mix

__all__ = ["bin_of", "build", "find", "insert", "key_of", "keys_of_link", "most_keys", "room_for", "sides"]

PAD = 2
N_BINS = 7
MOST_BETWEEN = 16
N_DYNAMIC = 8
_LOW = np.uint64(7)
_HALF = np.uint64(32)
_WHOLE = np.uint64(0xFFFFFFFF)
_STEP = np.uint64(0x9E3779B1)
_FIVE = np.uint64(5)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@njit(cache=True, nogil=True)
def key_of(h, bin_):
    """The key of a variant."""
    b = np.uint64(bin_)
    fingerprint = (h >> _HALF) ^ ((b * _STEP) & _WHOLE)
    if fingerprint == _ZERO:
        fingerprint = _ONE
    low = (h & (_WHOLE ^ _LOW)) | ((h + b * _FIVE) & _LOW)
    return (fingerprint << _HALF) | low


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
def bin_of(head, child):
    """1 … 7 for children to the right by distance, 8 … 14 to the left."""
    far = child - head if child > head else head - child
    length = far if far <= 4 else 5 if far <= 7 else 6 if far <= 12 else 7
    return length if child > head else length + N_BINS


@njit(cache=True, nogil=True)
def sides(codes, first, n, starts, terms, factors, heads, children):
    """What each word adds to the codes of templates as a head and as a child: uint64[n + 1, n_templates] each."""
    for i in range(n + 1):
        for t in range(len(starts)):
            heads[i, t] = starts[t]
            children[i, t] = 0
        for k in range(len(terms)):
            value = codes[first + i + terms[k, 2], terms[k, 3]] * factors[k]
            if terms[k, 1] == 0:
                heads[i, terms[k, 0]] += value
            else:
                children[i, terms[k, 0]] += value


@njit(cache=True, nogil=True)
def _dynamic(p, c, first, n, words, dynamic, factors3, out, which, m):
    """Append what may fire more than once; the new number of codes."""
    codes, features, kinds = words
    tag_p, tag_c = codes[first + p, 2], codes[first + c, 2]
    pair = tag_p * factors3[0] + tag_c * factors3[1]
    low, high = (p, c) if p < c else (c, p)
    begin, verbs, marks, joins = m, 0, 0, 0
    for b in range(low + 1, high):
        kind = kinds[first + b]
        verbs += kind == 1
        marks += kind == 2
        joins += kind == 3
        if m - begin < MOST_BETWEEN:
            code = mix(dynamic[0] + pair + codes[first + b, 4] * factors3[2])
            k = begin
            while k < m and out[k] != code:
                k += 1
            if k == m:
                out[m], which[m] = code, 0
                m += 1
    counts = np.uint64(min(verbs, 3) * 16 + min(marks, 3) * 4 + min(joins, 3) + 1)
    out[m], which[m] = mix(dynamic[1] + pair + counts * factors3[2]), 1
    m += 1
    for a in range(features.shape[1]):
        of_c, of_p = features[first + c, a], features[first + p, a]
        if of_c:
            out[m], which[m] = mix(dynamic[2] + pair + of_c * factors3[2]), 2
            out[m + 1] = mix(dynamic[6] + codes[first + p, 1] * factors3[0] + tag_c * factors3[1] + of_c * factors3[2])
            which[m + 1] = 6
            m += 2
        if of_p:
            out[m], which[m] = mix(dynamic[3] + pair + of_p * factors3[2]), 3
            m += 1
        if of_c and of_p:
            same = np.uint64(2 * a + (of_c == of_p) + 1)
            out[m], which[m] = mix(dynamic[4] + pair + same * factors3[2]), 4
            out[m + 1] = mix(dynamic[5] + pair + (of_p * factors3[2] + of_c) * factors3[2])
            which[m + 1] = 5
            m += 2
    if p == 0:
        place = np.uint64(min(c, 4) * 8 + min(n - c, 4) + 1)
        out[m], which[m] = mix(dynamic[7] + tag_c * factors3[1] + place * factors3[2]), 7
        m += 1
    return m


@njit(cache=True, nogil=True)
def keys_of_link(p, c, first, n, words, heads, children, dynamic, factors3, out, which):
    """Codes of all templates that fire on the link from p to c; `which` numbers the dynamic ones. Returns how many."""
    n_templates = heads.shape[1]
    for t in range(n_templates):
        out[t] = mix(heads[p, t] + children[c, t])
    return _dynamic(p, c, first, n, words, dynamic, factors3, out, which, n_templates)


@njit(cache=True, nogil=True)
def most_keys(n_templates, n_attributes):
    """Codes that one link can have."""
    return n_templates + MOST_BETWEEN + 2 + 5 * n_attributes


@njit(cache=True, nogil=True)
def insert(slots, counts, key):
    """Count a key in a table of whole keys; 1 if it is new."""
    mask = len(slots) - 1
    i = np.int64(key & np.uint64(mask))
    while slots[i] != _ZERO:
        if slots[i] == key:
            counts[i] += 1
            return 0
        i = (i + 1) & mask
    slots[i] = key
    counts[i] = 1
    return 1


@njit(cache=True, nogil=True)
def room_for(slots, counts, used, more):
    """Tables with room for so many more keys."""
    size = len(slots)
    while 2 * (used + more) > size:
        size *= 2
    if size == len(slots):
        return slots, counts
    wider, numbers = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    for k in range(len(slots)):
        if slots[k] != _ZERO:
            i = np.int64(slots[k] & np.uint64(size - 1))
            while wider[i] != _ZERO:
                i = (i + 1) & (size - 1)
            wider[i], numbers[i] = slots[k], counts[k]
    return wider, numbers
