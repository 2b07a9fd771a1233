"""Codes of spans: their words, how long they are, and what is inside of them."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import mix

__all__ = ["BALANCED", "COLUMNS", "span_codes"]

FIRST, STOP, LENGTH, SEQUENCE, OUTLINE, BALANCE, CONTENT = range(7)
COLUMNS = 7
BALANCED, UNEVEN_QUOTES, UNEVEN_BRACKETS = 0, 1, 2
LONGEST_SEQUENCE = 8
LONGEST_OUTLINE = 10
_POSITIVE = np.uint64((1 << 62) - 1)


@njit(cache=True, nogil=True)
def _length_bin(length):
    if length <= 5:
        return length
    if length <= 7:
        return 6
    if length <= 10:
        return 7
    if length <= 15:
        return 8
    if length <= 20:
        return 9
    return 10 if length <= 30 else 11


@njit(cache=True, nogil=True)
def _joined(sequence, code):
    return mix(sequence * np.uint64(0x9E3779B97F4A7C15) + np.uint64(code) + np.uint64(1))


@njit(cache=True, nogil=True)
def span_codes(block, blocks, offsets, part_offsets, tags, classes, marks, out):
    """Codes of all spans of some sentences, narrow ones first, then by start.

    tags, classes : int64[n_words]
        Codes of tags, and of coarser ones.
    marks : int64[n_words]
        1 and 2 open and close a quotation, 3 and 4 a bracket; 5 is a comma, 6 a coordination, 7 a verb; 0 is none of
        these.
    out : int64[COLUMNS, n_spans]
        First word and the one behind the last, among all words; length in bins; tags in order, of short spans; classes
        in order, repetitions left out, of longer ones; whether quotations and brackets are whole; and which marks are
        inside, how often.
    """
    for s in range(block, len(offsets) - 1, blocks):
        first, n = offsets[s], offsets[s + 1] - offsets[s]
        sequences, outlines = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        lasts, sizes = np.full(n, -1, np.int64), np.zeros(n, np.int64)
        counts, lowest = np.zeros((n, 8), np.int64), np.zeros(n, np.int64)
        at = part_offsets[s]
        for width in range(1, n + 1):
            for i in range(n - width + 1):
                word = first + i + width - 1  # what this span has more than the one before it
                sequences[i] = _joined(sequences[i], tags[word])
                if classes[word] != lasts[i]:
                    outlines[i] = _joined(outlines[i], classes[word])
                    lasts[i] = classes[word]
                    sizes[i] += 1
                counts[i, marks[word]] += 1
                lowest[i] = min(lowest[i], counts[i, 3] - counts[i, 4])
                out[FIRST, at], out[STOP, at] = first + i, word + 1
                out[LENGTH, at] = _length_bin(width)
                short = width <= LONGEST_SEQUENCE
                out[SEQUENCE, at] = np.int64(sequences[i] & _POSITIVE) if short else -1
                outline = width > 2 and sizes[i] <= LONGEST_OUTLINE
                out[OUTLINE, at] = np.int64(outlines[i] & _POSITIVE) if outline else -1
                balance = BALANCED
                if counts[i, 1] != counts[i, 2]:
                    balance = UNEVEN_QUOTES
                if lowest[i] < 0 or counts[i, 3] != counts[i, 4]:
                    balance += UNEVEN_BRACKETS
                out[BALANCE, at] = balance
                out[CONTENT, at] = (
                    min(counts[i, 5], 3) * 16 + min(counts[i, 6], 3) * 4 + min(counts[i, 7], 3)
                )  # fmt: skip
                at += 1
