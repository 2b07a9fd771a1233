"""Kernels that look through a whole corpus for the doctor."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import mix

__all__ = ["best_shifts", "sampled_cooccurrences"]


@njit(cache=True, nogil=True)
def _match(i, j, source, target, source_words, source_offsets, target_words, target_offsets, weights, spread):
    """How much likelier it is that lines i and j belong together than that they do not: a log-odds, roughly.

    Lengths that fit speak for it, and so do rare words that stand in both; different marks at the end against it.
    """
    tight, loose = spread
    difference = target[j, 0] - source[i, 0]
    score = np.log(loose / tight) - 0.5 * difference**2 * (1 / tight**2 - 1 / loose**2)
    score = min(max(score, -2.0), 2.0)
    if source[i, 1] != target[j, 1]:
        score -= 1.0
    a, b = source_offsets[i], target_offsets[j]
    shared = 0.0
    while a < source_offsets[i + 1] and b < target_offsets[j + 1]:
        if source_words[a] == target_words[b]:
            shared += weights[source_words[a]]
            a += 1
            b += 1
        elif source_words[a] < target_words[b]:
            a += 1
        else:
            b += 1
    n = max(source_offsets[i + 1] - source_offsets[i], target_offsets[j + 1] - target_offsets[j])
    if shared == 0.0 and n > 0:
        score -= 0.5
    return score + min(shared, 8.0)


@njit(cache=True, nogil=True)
def best_shifts(
    source,
    target,
    source_words,
    source_offsets,
    target_words,
    target_offsets,
    weights,
    spread,
    low,
    high,
    last,
    penalty,
):
    """The best guess of which target line each source line belongs to: int32[n_source], as target line - source line.

    A path through shifts low..high that starts at 0 and ends at `last`, each change of the shift costing `penalty`.

    Parameters
    ----------
    source, target : float64[n_lines, 2]
        Logarithm of the length, centred so that equal means as long as expected; a number for the mark at the end.
    source_words, source_offsets, target_words, target_offsets
        Words that may stand in both languages, numbered alike, each line's in ascending order.
    weights : float64[.]
        What sharing such a word is worth.
    spread : (float64, float64)
        Standard deviation of the difference of lengths of lines that belong together, and of any two.
    """
    n, n_shifts = len(source), high - low + 1
    value = np.full(n_shifts, -np.inf)
    value[-low] = 0.0
    came = np.empty((n, n_shifts), np.int16)
    for i in range(n):
        top = 0
        for k in range(1, n_shifts):
            if value[k] > value[top]:
                top = k
        best = value[top] - penalty
        for k in range(n_shifts):
            came[i, k] = k
            if value[k] < best:
                value[k] = best
                came[i, k] = top
            j = i + low + k
            if 0 <= j < len(target):
                value[k] += _match(
                    i, j, source, target, source_words, source_offsets, target_words, target_offsets, weights, spread
                )
            else:
                value[k] -= 3.0  # this line has no counterpart
    shifts = np.empty(n, np.int32)
    k = last - low
    for i in range(n - 1, -1, -1):
        shifts[i] = low + k
        k = came[i, k]
    return shifts


@njit(cache=True, nogil=True)
def sampled_cooccurrences(source_ids, source_offsets, target_ids, target_offsets, n_target_types, bits, longest, room):
    """Word pairs that stand in a sentence pair together, of a random share 1 / 2**bits of all word pairs.

    Which ones depends on the words alone, so that the number of *different* ones, times 2**bits, estimates that of
    all.
    """
    found = np.empty(room, np.int64)
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    n = 0
    for pair in range(source_offsets.size - 1):
        first, last = target_offsets[pair], target_offsets[pair + 1]
        if last - first > longest or source_offsets[pair + 1] - source_offsets[pair] > longest:
            continue
        for i in range(source_offsets[pair], source_offsets[pair + 1]):
            word = np.int64(source_ids[i]) * n_target_types
            for j in range(first, last):
                key = np.uint64(word + target_ids[j])
                if (mix(key) >> np.uint64(40)) & mask == 0:
                    if n == found.size:
                        found = np.concatenate((found, np.empty_like(found)))
                    found[n] = np.int64(key)
                    n += 1
    return found[:n]
