"""Kernels for sparse features: mixing codes to 64-bit keys, a table of keys, and products with sparse matrices.

A key of 0 stands for "does not fire". Products add up in the order of rows whichever way they are cut, so that the
number of threads, and the choice between scattering by row and gathering by column, cannot change a bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "add_transposed",
    "compress",
    "count_fires",
    "gather_columns",
    "insert",
    "look_up",
    "look_up_hashed",
    "mix_column",
    "mix_role",
    "mix_span",
    "multiply",
    "place",
    "scatter_rows",
    "touched",
    "transpose",
]

BEFORE, AFTER = -1, -2  # codes of what lies outside a sentence; a code that is given is never negative when it is mixed


@njit(cache=True, nogil=True, inline="always")
def _mix(h, code):
    """The next key from the key so far and one more code (the finaliser of SplitMix64)."""
    z = h + np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return z if z != np.uint64(0) else np.uint64(1)


@njit(cache=True, nogil=True)
def mix_column(keys, codes):
    """One more code for each part; a negative one ends the feature."""
    for p in range(len(keys)):
        if keys[p] != np.uint64(0):
            keys[p] = _mix(keys[p], codes[p]) if codes[p] >= 0 else np.uint64(0)


@njit(cache=True, nogil=True)
def mix_role(keys, at, codes, offset, starts, stops):
    """One more code for each part: that of the word `offset` places from position ``at[p]``, within its sentence."""
    for p in range(len(keys)):
        if keys[p] == np.uint64(0):
            continue
        if at[p] < 0:
            keys[p] = np.uint64(0)
            continue
        word = at[p] + offset
        if word < starts[at[p]]:
            keys[p] = _mix(keys[p], BEFORE)
        elif word >= stops[at[p]]:
            keys[p] = _mix(keys[p], AFTER)
        elif codes[word] < 0:
            keys[p] = np.uint64(0)
        else:
            keys[p] = _mix(keys[p], codes[word])


@njit(cache=True, nogil=True)
def mix_span(keys, first, last, codes, offsets, starts, stops, where, out):
    """For each part that fires, one key for each position of its span.

    Parameters
    ----------
    keys : uint64[n]
        From the items that do not belong to the span.
    first, last : int[n]
        Positions first..last - 1.
    codes : int64[n_items, n_words]
    offsets : int64[n_items]
    where : int64[n + 1]
        Part *p* writes ``out[where[p]:where[p + 1]]``.
    """
    for p in range(len(keys)):
        for i in range(where[p + 1] - where[p]):
            at = first[p] + i
            key = keys[p]
            for item in range(len(offsets)):
                word = at + offsets[item]
                if key == np.uint64(0):
                    break
                if word < starts[at]:
                    key = _mix(key, BEFORE)
                elif word >= stops[at]:
                    key = _mix(key, AFTER)
                elif codes[item, word] < 0:
                    key = np.uint64(0)
                else:
                    key = _mix(key, codes[item, word])
            out[where[p] + i] = key


# --- the table of keys: open addressing, linear probing, no more than half full


@njit(cache=True, nogil=True)
def insert(keys, fires, table, counts, filled):
    """Count each key that fires, taking up new ones; returns (keys read, places filled) when done or half full.

    Parameters
    ----------
    keys : uint64[n]
    fires : bool[n] or bool[0]
        Which to count; empty for all.
    table : uint64[2^b]
        0 where free.
    counts : int64[2^b]
    """
    mask = np.uint64(len(table) - 1)
    for p in range(len(keys)):
        key = keys[p]
        if key == np.uint64(0) or (len(fires) and not fires[p]):
            continue
        if 2 * filled >= len(table):
            return p, filled
        slot = key & mask
        while table[slot] != np.uint64(0) and table[slot] != key:
            slot = (slot + np.uint64(1)) & mask
        if table[slot] == np.uint64(0):
            table[slot] = key
            filled += 1
        counts[slot] += 1
    return len(keys), filled


@njit(cache=True, nogil=True)
def place(keys, table, numbers):
    """Put key *i* into the table with number *i*."""
    mask = np.uint64(len(table) - 1)
    for i in range(len(keys)):
        slot = keys[i] & mask
        while table[slot] != np.uint64(0):
            slot = (slot + np.uint64(1)) & mask
        table[slot] = keys[i]
        numbers[slot] = i


@njit(cache=True, nogil=True)
def look_up(keys, table, numbers, out):
    """The number of each key; −1 where it does not fire or is not known."""
    mask = np.uint64(len(table) - 1)
    for p in range(len(keys)):
        out[p] = -1
        key = keys[p]
        if key == np.uint64(0):
            continue
        slot = key & mask
        while table[slot] != np.uint64(0):
            if table[slot] == key:
                out[p] = numbers[slot]
                break
            slot = (slot + np.uint64(1)) & mask


@njit(cache=True, nogil=True)
def look_up_hashed(keys, bits, out):
    """The first `bits` bits of each key; −1 where it does not fire."""
    for p in range(len(keys)):
        out[p] = -1 if keys[p] == np.uint64(0) else np.int64(keys[p] >> np.uint64(64 - bits))


@njit(cache=True, nogil=True)
def count_fires(numbers, where, counts):
    """Add to ``counts[p]`` how many of ``numbers[where[p]:where[p + 1]]`` are features."""
    for p in range(len(counts)):
        for i in range(where[p], where[p + 1]):
            if numbers[i] >= 0:
                counts[p] += 1


@njit(cache=True, nogil=True)
def compress(numbers, where, heads, out):
    """Write the features of each part to ``out[heads[p]]`` and on, moving ``heads[p]`` along."""
    for p in range(len(heads)):
        for i in range(where[p], where[p + 1]):
            if numbers[i] >= 0:
                out[heads[p]] = numbers[i]
                heads[p] += 1


# --- products: rows are parts, columns are features


@njit(cache=True, nogil=True)
def multiply(block, count, indptr, indices, values, dense, weights, out):
    """``out[r] = Σ values · weights[indices]`` over row *r*, and the dense columns with the last weights."""
    n = len(indptr) - 1
    tail = len(weights) - dense.shape[1]
    for r in range(block * n // count, (block + 1) * n // count):
        score = 0.0
        if len(values):
            for i in range(indptr[r], indptr[r + 1]):
                score += values[i] * weights[np.uint64(indices[i])]
        else:
            for i in range(indptr[r], indptr[r + 1]):
                score += weights[np.uint64(indices[i])]
        for d in range(dense.shape[1]):
            score += dense[r, d] * weights[tail + d]
        out[r] = score


@njit(cache=True, nogil=True)
def scatter_rows(first, last, shift, indptr, indices, values, dense, x, out):
    """``out += F[first:last]ᵀ x``, where row *r* reads ``x[r - shift]``; rows with 0 cost nothing."""
    tail = len(out) - dense.shape[1]
    for r in range(first, last):
        much = x[r - shift]
        if much == 0.0:
            continue
        if len(values):
            for i in range(indptr[r], indptr[r + 1]):
                out[np.uint64(indices[i])] += values[i] * much
        else:
            for i in range(indptr[r], indptr[r + 1]):
                out[np.uint64(indices[i])] += much
        for d in range(dense.shape[1]):
            out[tail + d] += dense[r, d] * much


@njit(cache=True, nogil=True)
def touched(first, last, shift, indptr, indices, x, seen, out, filled):
    """Features of the rows first..last - 1 (of those with ``x[r - shift] != 0`` if `x` is not empty), each once.

    `seen` is all False and has to be cleared by the caller at ``out[:result]``.
    """
    for r in range(first, last):
        if len(x) and x[r - shift] == 0.0:
            continue
        for i in range(indptr[r], indptr[r + 1]):
            if not seen[indices[i]]:
                seen[indices[i]] = True
                out[filled] = indices[i]
                filled += 1
    return filled


@njit(cache=True, nogil=True)
def transpose(indptr, indices, values, starts, rows, out_values):
    """Entries by column, rows ascending in each; `starts` int64[n_columns + 1] is overwritten."""
    starts[:] = 0
    for i in range(len(indices)):
        starts[indices[i] + 1] += 1
    for c in range(len(starts) - 1):
        starts[c + 1] += starts[c]
    heads = starts[:-1].copy()
    for r in range(len(indptr) - 1):
        for i in range(indptr[r], indptr[r + 1]):
            c = indices[i]
            rows[heads[c]] = r
            if len(values):
                out_values[heads[c]] = values[i]
            heads[c] += 1


@njit(cache=True, nogil=True)
def gather_columns(block, count, cuts, starts, rows, values, x, out):
    """``out[c] += Σ values · x[rows]`` over column *c*, for the columns of one block."""
    for c in range(cuts[block], cuts[block + 1]):
        much = out[c]
        if len(values):
            for i in range(starts[c], starts[c + 1]):
                much += values[i] * x[np.uint64(rows[i])]
        else:
            for i in range(starts[c], starts[c + 1]):
                much += x[np.uint64(rows[i])]
        out[c] = much


@njit(cache=True, nogil=True)
def add_transposed(block, count, dense, x, out):
    """``out[d] += Σ_r dense[r, d] x[r]`` for the dense columns d of one block."""
    for d in range(block, dense.shape[1], count):
        much = out[d]
        for r in range(dense.shape[0]):
            if x[r] != 0.0:
                much += dense[r, d] * x[r]
        out[d] = much
