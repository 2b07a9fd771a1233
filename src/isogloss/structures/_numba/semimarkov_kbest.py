"""The k best segmentations of a sentence: the sweep of `semimarkov` with that many ways to reach each place."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.ways import next_way

__all__ = ["best_segmentations"]


@njit(cache=True, nogil=True)
def _fill(scores, n, longest, k, size, ends, widths, enters, befores):
    """Ways to end in a label before each place, and to begin with one at it, best first.

    Each way is the best that is left of several sorted lists: `widths` and `befores` number the list, times `size`,
    with the place in it added.
    """
    steps = n * longest * k
    lists, added = np.empty((max(longest, k), size)), np.empty(max(longest, k))
    heads = np.empty(max(longest, k), np.int64)
    for end in range(1, n + 1):
        many = min(longest, end)
        for label in range(k):
            for width in range(1, many + 1):
                lists[width - 1] = enters[end - width, label]
                added[width - 1] = scores[((end - width) * longest + width - 1) * k + label]
            heads[:many] = 0
            for c in range(size):
                top, at = next_way(lists, added, heads, many, size)
                if at < 0:
                    break
                ends[end, label, c] = top
                widths[end, label, c] = at * size + heads[at]
                heads[at] += 1
        if end == n:
            break
        for label in range(k):
            for other in range(k):
                added[other] = scores[steps + ((end - 1) * k + other) * k + label]
            heads[:k] = 0
            for c in range(size):
                top, at = next_way(ends[end], added, heads, k, size)
                if at < 0:
                    break
                enters[end, label, c] = top
                befores[end, label, c] = at * size + heads[at]
                heads[at] += 1


@njit(cache=True, nogil=True)
def best_segmentations(block, blocks, scores, offsets, lengths, longest, k, size, starts, found, counts, segments):
    """The best `size` segmentations of the sentences block, block + blocks, …, best first.

    Parameters
    ----------
    scores, offsets, lengths, longest, k
        As in `segmentations`.
    starts : int64[n_sentences]
        Where the segments of each sentence may be written: `size` times as many as it has positions.
    found : float64[n_sentences, size]
        Overwritten with scores; −∞ once there are no more.
    counts : int64[n_sentences, size]
        Overwritten with numbers of segments.
    segments : int64[n_places, 3]
        Overwritten with first position, the one behind the last, and label of segments, from the last one to the first;
        each segmentation has as many places as the sentence has positions.
    """
    for s in range(block, len(lengths), blocks):
        n = lengths[s]
        found[s] = -np.inf
        counts[s] = 0
        if n == 0:
            found[s, 0] = 0.0  # the empty segmentation
            continue
        if k == 0 or longest == 0:
            continue
        ends, enters = np.full((n + 1, k, size), -np.inf), np.full((n, k, size), -np.inf)
        widths, befores = np.zeros((n + 1, k, size), np.int64), np.zeros((n, k, size), np.int64)
        enters[0, :, 0] = 0.0
        _fill(scores[offsets[s] : offsets[s + 1]], n, longest, k, size, ends, widths, enters, befores)
        heads, nothing = np.zeros(k, np.int64), np.zeros(k)
        for c in range(size):
            top, label = next_way(ends[n], nothing, heads, k, size)
            if label < 0:
                break
            found[s, c] = top
            rank, end, place = heads[label], n, starts[s] + c * n
            heads[label] += 1
            while True:
                shorter, rank = widths[end, label, rank] // size, widths[end, label, rank] % size
                segments[place, 0], segments[place, 1], segments[place, 2] = end - shorter - 1, end, label
                place += 1
                end -= shorter + 1
                if end == 0:
                    break
                label, rank = befores[end, label, rank] // size, befores[end, label, rank] % size
            counts[s, c] = place - starts[s] - c * n
