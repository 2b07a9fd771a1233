"""Walking templates over parts that have labels: a feature has a row of weights, one for each label.

A feature is looked up once for a part, and its row is read in one piece.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.walk import _choose, _numbers, _prepare, _room
from isogloss.structures._numba.lanes import prefetch

__all__ = ["active_parts", "emit_label_rows", "row_rooms", "score_label_rows"]


@njit(cache=True, nogil=True)
def score_label_rows(block, blocks, view, sentences, places, numbering, n_labels, weights, out):
    """The scores of every label of every part of some sentences; those of the k-th begin at row ``places[k]``."""
    nothing = np.zeros(0)
    row = np.empty(n_labels, weights.dtype)
    for s in range(block, len(sentences), blocks):
        start, stop = view.offsets[sentences[s]], view.offsets[sentences[s] + 1]
        ready, at = _prepare(view, start, stop), start
        parts, found, ends, numbers = _room(ready[4])
        while at < stop:
            count, at = _choose(parts, at, stop, nothing, 0, 0.0)
            _numbers(view, parts, count, numbering, ready, found, ends, numbers)
            i = 0
            for k in range(count):
                row[:] = 0
                while i < ends[k]:
                    if i + 4 < ends[count - 1]:
                        ahead = numbers[i + 4] * n_labels
                        for step in range(0, n_labels, 16):
                            prefetch(weights, ahead + step)
                    first = numbers[i] * n_labels
                    for label in range(n_labels):
                        row[label] += weights[first + label]
                    i += 1
                to = (places[s] + parts[k] - start) * n_labels
                for label in range(n_labels):
                    out[to + label] = row[label]


@njit(cache=True, nogil=True)
def active_parts(block, blocks, sentences, offsets, places, n_labels, values, least, active, labels):
    """The largest value of each part in size, and how many of its labels have one above `least`."""
    for s in range(block, len(sentences), blocks):
        many = offsets[sentences[s] + 1] - offsets[sentences[s]]
        for p in range(places[s], places[s] + many):
            top, count = 0.0, 0
            for at in range(p * n_labels, (p + 1) * n_labels):
                size = abs(values[at])
                top = max(top, size)
                count += size > least
            active[p], labels[p] = top, count


@njit(cache=True, nogil=True)
def row_rooms(view, sentences, places, active, labels, least, rooms):
    """How many entries the gradients of each sentence have at most."""
    members, spans, at, until = view.members, view.spans, view.at, view.until
    times = 2 if len(view.bins) else 1
    for k in range(len(sentences)):
        start, stop = view.offsets[sentences[k]], view.offsets[sentences[k] + 1]
        rooms[k] = 0
        for p in range(start, stop):
            here = places[k] + p - start
            if active[here] > least:
                most = len(view.starts)
                for role in range(len(spans)):
                    if spans[role]:
                        most += max(0, until[role, p] - at[role, p]) * (members[role + 1] - members[role])
                rooms[k] += times * most * labels[here]


@njit(cache=True, nogil=True)
def emit_label_rows(
    block, blocks, view, sentences, places, numbering, n_labels, values, active, least, begins, ends_out, out_numbers,
    out_values,
):  # fmt: skip
    """For every feature of a part and every label with a value above `least` in size: number of the weight, value."""
    which = np.empty(n_labels, np.int64)
    for s in range(block, len(sentences), blocks):
        start, stop = view.offsets[sentences[s]], view.offsets[sentences[s] + 1]
        ready, at, done = _prepare(view, start, stop), start, begins[s]
        parts, found, ends, numbers = _room(ready[4])
        while at < stop:
            count, at = _choose(parts, at, stop, active, start - places[s], least)
            if count == 0:
                break
            _numbers(view, parts, count, numbering, ready, found, ends, numbers)
            i = 0
            for k in range(count):
                own, many = (places[s] + parts[k] - start) * n_labels, 0
                for label in range(n_labels):
                    if abs(values[own + label]) > least:
                        which[many] = label
                        many += 1
                while i < ends[k]:
                    first = numbers[i] * n_labels
                    for j in range(many):
                        out_numbers[done] = first + which[j]
                        out_values[done] = values[own + which[j]]
                        done += 1
                    i += 1
        ends_out[s] = done
