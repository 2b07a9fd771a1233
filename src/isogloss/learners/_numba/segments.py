"""Scores of segments, gathered from those of positions and of spans, and spread to them again.

Position t has scores ``nodes[t, c]`` in some columns, among them one for where a segment of label y begins
(``first[y]``), and one for where it goes on (``inside[y]``; −1 for labels whose segments have one position). Spans are
listed by their first position, then by their length, up to the end of the sentence.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["gather_segments", "spread_segments"]


@njit(cache=True, nogil=True)
def gather_segments(
    block, blocks, lengths, offsets, positions, rows, longest, first, inside, nodes, spans, steps, start, end, out
):  # fmt: skip
    """Scores of the segments and steps of each sentence into one vector; those that cannot be are −∞.

    positions, rows : int64[n_sentences]
        How many positions and spans the sentences before each have.
    nodes : float64[n_positions, n_columns]; spans : float64[n_spans, k]; steps : float64[k, k]; start, end : float64[k]
    """
    k = len(first)
    base = np.empty(k)  # what the positions of a segment add up to
    for s in range(block, len(lengths), blocks):
        n, at, row = lengths[s], offsets[s], rows[s]
        for b in range(n):
            for width in range(1, longest + 1):
                here = at + (b * longest + width - 1) * k
                if b + width > n:
                    for y in range(k):
                        out[here + y] = -np.inf
                    continue
                t = positions[s] + b + width - 1
                for y in range(k):
                    if width == 1:
                        base[y] = nodes[t, first[y]] + (start[y] if b == 0 else 0.0)
                    elif inside[y] < 0:
                        base[y] = -np.inf
                    else:
                        base[y] += nodes[t, inside[y]]
                    out[here + y] = base[y] + spans[row, y] + (end[y] if b + width == n else 0.0)
                row += 1
        at += n * longest * k
        for t in range(n - 1):
            for x in range(k):
                for y in range(k):
                    out[at + (t * k + x) * k + y] = steps[x, y]


@njit(cache=True, nogil=True)
def spread_segments(
    block, blocks, lengths, offsets, positions, rows, longest, first, inside, values, nodes, spans, shared
):  # fmt: skip
    """The transpose: what each position, span, step, first and last label has of a vector over parts.

    nodes, spans : overwritten; shared : float64[n_sentences, k · k + 2 k], steps, then first and last labels.
    """
    k = len(first)
    for s in range(block, len(lengths), blocks):
        n, at, row = lengths[s], offsets[s], rows[s]
        nodes[positions[s] : positions[s] + n] = 0.0
        shared[s] = 0.0
        for b in range(n):
            for width in range(1, min(longest, n - b) + 1):
                here = at + (b * longest + width - 1) * k
                for y in range(k):
                    spans[row, y] = values[here + y]
                    if b + width == n:
                        shared[s, k * k + k + y] += values[here + y]
                row += 1
            for y in range(k):  # from the longest down: a position is in all that reach it
                total = 0.0
                for width in range(min(longest, n - b), 0, -1):
                    total += values[at + (b * longest + width - 1) * k + y]
                    column = inside[y] if width > 1 else first[y]
                    if column >= 0:
                        nodes[positions[s] + b + width - 1, column] += total
                if b == 0:
                    shared[s, k * k + y] += total
        at += n * longest * k
        for t in range(n - 1):
            for step in range(k * k):
                shared[s, step] += values[at + t * k * k + step]
