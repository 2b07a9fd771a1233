"""How alike two words are spelt: the longest common subsequence, sixty-four letters at a time."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.engine.threads import run_blocks
from isogloss.tasks.align._numba.lexicon import blocks_for

__all__ = ["alike"]


@njit(cache=True, nogil=True)
def _common(masks, letters, start, stop):
    """Length of the longest common subsequence, by Hyyrö's bit-vector recurrence; the first word is in `masks`."""
    v = ~np.uint64(0)
    for at in range(start, stop):
        u = v & masks[letters[at]]
        v = (v + u) | (v - u)
    n = 0
    v = ~v
    while v:
        v &= v - np.uint64(1)
        n += 1
    return n


@njit(cache=True, nogil=True)
def _alike(
    block,
    count,
    rows,
    columns,
    a_letters,
    a_starts,
    a_same,
    b_letters,
    b_starts,
    b_same,
    n_letters,
    shortest,
    least,
    out,
):
    masks = np.zeros(n_letters, np.uint64)
    for word in range(block, rows.size - 1, count):
        start, stop = a_starts[word], a_starts[word + 1]
        long = stop - start
        fit = shortest <= long <= 64
        if fit:
            for k in range(long):
                masks[a_letters[start + k]] |= np.uint64(1) << np.uint64(k)
        for entry in range(rows[word], rows[word + 1]):
            other = columns[entry]
            if a_same[word] >= 0 and a_same[word] == b_same[other]:
                out[entry] = 1.0
                continue
            size = b_starts[other + 1] - b_starts[other]
            if not fit or size < shortest or size > 64 or 2 * min(long, size) <= least * (long + size):
                continue
            ratio = 2.0 * _common(masks, b_letters, b_starts[other], b_starts[other + 1]) / (long + size)
            if ratio > least:
                out[entry] = ratio
        if fit:
            for k in range(long):
                masks[a_letters[start + k]] = 0


def alike(rows, columns, a_letters, a_starts, a_same, b_letters, b_starts, b_same, n_letters, shortest, least, out):
    """out[entry] = 1 for words of one form, else the common subsequence ratio 2 L / (|a| + |b|) where it is > `least`.

    Letters are numbers below `n_letters`; words shorter than `shortest` or longer than 64 letters count only when they
    are the same. ``*_same`` are numbers of whole forms, -1 for words whose identity says nothing.
    """
    run_blocks(
        _alike, blocks_for(rows.size - 1), rows, columns, a_letters, a_starts, a_same, b_letters, b_starts, b_same,
        n_letters, shortest, least, out,
    )  # fmt: skip
