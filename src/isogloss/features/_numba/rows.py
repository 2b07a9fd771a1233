"""Parts that have labels, and features with a row of weights, one for each label: rows are read in one piece.

A row has `width` weights: those of the labels and, if it is longer, one that all labels share. Features from `n_wide`
on have nothing but a shared weight; these lie behind the rows. Features of part p are
``features[starts[p]:starts[p + 1]]``; parts of sentence s are ``offsets[s]:offsets[s + 1]``, and those of the k-th of
some sentences begin at row ``places[k]`` of their scores.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.lanes import prefetch

__all__ = ["emit_label_rows", "row_rooms", "score_label_rows"]

AHEAD = 4
"""How many features ahead memory is asked for."""
LINE = 16
"""Weights of a line of memory."""


@njit(cache=True, nogil=True)
def score_label_rows(
    block, blocks, starts, features, offsets, sentences, places, n_labels, width, n_wide, weights, out
):  # fmt: skip
    """The scores of every label of every part of some sentences."""
    row, behind = np.empty(width, weights.dtype), n_wide * width - n_wide
    for s in range(block, len(sentences), blocks):
        start, stop = offsets[sentences[s]], offsets[sentences[s] + 1]
        last = starts[stop] - 1
        for p in range(start, stop):
            row[:] = 0
            for i in range(starts[p], starts[p + 1]):
                ahead = np.int64(features[min(i + AHEAD, last)])
                if ahead < n_wide:
                    for step in range(0, width, LINE):
                        prefetch(weights, ahead * width + step)
                else:
                    prefetch(weights, behind + ahead)
                feature = np.int64(features[i])
                if feature < n_wide:
                    first = feature * width
                    for label in range(width):
                        row[label] += weights[first + label]
                else:
                    row[width - 1] += weights[behind + feature]
            to = (places[s] + p - start) * n_labels
            shared = row[width - 1] if width > n_labels else row.dtype.type(0)
            for label in range(n_labels):
                out[to + label] = row[label] + shared


@njit(cache=True, nogil=True)
def _shares(values, own, n_labels, width, row):
    """What each weight of a row gets from a part whose values begin at `own`; the shared one gets their sum."""
    total = 0.0
    for label in range(n_labels):
        row[label] = values[own + label]
        total += values[own + label]
    if width > n_labels:
        row[n_labels] = total


@njit(cache=True, nogil=True)
def row_rooms(block, blocks, starts, features, offsets, sentences, places, n_labels, width, n_wide, values, least,
              rooms):  # fmt: skip
    """How many entries the gradients of each sentence have at most."""
    row = np.empty(width)
    for s in range(block, len(sentences), blocks):
        start, stop = offsets[sentences[s]], offsets[sentences[s] + 1]
        rooms[s] = 0
        for p in range(start, stop):
            _shares(values, (places[s] + p - start) * n_labels, n_labels, width, row)
            many = 0
            for at in range(width):
                many += abs(row[at]) > least
            rooms[s] += many * (starts[p + 1] - starts[p])


@njit(cache=True, nogil=True)
def emit_label_rows(
    block, blocks, starts, features, offsets, sentences, places, n_labels, width, n_wide, values, least, begins, ends,
    numbers, shares,
):  # fmt: skip
    """For every feature of a part and every value above `least` in size: number of the weight, value."""
    row, which, behind = np.empty(width), np.empty(width, np.int64), n_wide * width - n_wide
    for s in range(block, len(sentences), blocks):
        start, stop, done = offsets[sentences[s]], offsets[sentences[s] + 1], begins[s]
        for p in range(start, stop):
            _shares(values, (places[s] + p - start) * n_labels, n_labels, width, row)
            many = 0
            for at in range(width):
                if abs(row[at]) > least:
                    which[many] = at
                    many += 1
            if many == 0:
                continue
            common = width > n_labels and which[many - 1] == n_labels
            for i in range(starts[p], starts[p + 1]):
                feature = np.int64(features[i])
                if feature < n_wide:
                    for j in range(many):
                        numbers[done] = feature * width + which[j]
                        shares[done] = row[which[j]]
                        done += 1
                elif common:
                    numbers[done] = behind + feature
                    shares[done] = row[n_labels]
                    done += 1
        ends[s] = done
