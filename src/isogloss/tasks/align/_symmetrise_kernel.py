# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
"""Symmetrisation as a kernel over the links of many pairs.

The points that may be chosen are the union of both directions, so one pair is a short list of points rather than a
matrix: memory and time follow the number of links, not the product of the lengths.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["BOTH_UNCOVERED", "EITHER_UNCOVERED", "NO_FINAL", "symmetrised"]

NO_FINAL, EITHER_UNCOVERED, BOTH_UNCOVERED = 0, 1, 2

_FORWARD, _BACKWARD, _BOTH = 1, 2, 3

# The four straight neighbours, then the four diagonal ones. The order is part of the result: a point that is added
# covers two words, and may shut out the next.
_TARGET_STEP = np.array([-1, 0, 1, 0, -1, -1, 1, 1])
_SOURCE_STEP = np.array([0, -1, 0, 1, -1, 1, -1, 1])


@njit(cache=True, nogil=True)
def _merge(forward_source, forward_target, backward_source, backward_target, source, target, kind):
    """Union of two lists ordered by (source, target), each point once, with the direction(s) it is in."""
    n = f = b = 0
    while f < forward_source.size or b < backward_source.size:
        order = 0  # negative: the next point is the forward one; positive: the backward one
        if b == backward_source.size:
            order = -1
        elif f == forward_source.size:
            order = 1
        elif forward_source[f] != backward_source[b]:
            order = -1 if forward_source[f] < backward_source[b] else 1
        elif forward_target[f] != backward_target[b]:
            order = -1 if forward_target[f] < backward_target[b] else 1
        if order <= 0:
            s, t, which = forward_source[f], forward_target[f], _BOTH if order == 0 else _FORWARD
        else:
            s, t, which = backward_source[b], backward_target[b], _BACKWARD
        f += order <= 0
        b += order >= 0
        if n > 0 and source[n - 1] == s and target[n - 1] == t:  # a link that was written twice
            kind[n - 1] |= which
            continue
        source[n], target[n], kind[n] = s, t, which
        n += 1
    return n


@njit(cache=True, nogil=True)
def _by_target(target, n, starts, order):
    """Stable counting sort: points start..stop of target word t are ``order[starts[t]:starts[t + 1]]``."""
    n_target = 0
    for point in range(n):
        n_target = max(n_target, target[point] + 1)
    starts[: n_target + 2] = 0
    for point in range(n):
        starts[target[point] + 2] += 1
    for t in range(2, n_target + 2):
        starts[t] += starts[t - 1]
    for point in range(n):
        order[starts[target[point] + 1]] = point
        starts[target[point] + 1] += 1
    return n_target


@njit(cache=True, nogil=True)
def _find(source, order, start, stop, wanted):
    """The point with that source word among the points of one target word, or -1."""
    while start < stop:
        middle = (start + stop) // 2
        found = source[order[middle]]
        if found == wanted:
            return order[middle]
        if found < wanted:
            start = middle + 1
        else:
            stop = middle
    return -1


@njit(cache=True, nogil=True)
def _grow(source, target, order, starts, n, n_target, neighbours, chosen, source_covered, target_covered):
    """Add neighbours of chosen points which cover a new word, until a whole scan adds nothing.

    A point added after the scan's place is looked at in the same scan, one added before it only in the next.
    """
    added = True
    while added:
        added = False
        for place in range(n):
            point = order[place]
            if not chosen[point]:
                continue
            for step in range(neighbours):
                t = target[point] + _TARGET_STEP[step]
                s = source[point] + _SOURCE_STEP[step]
                if t < 0 or t >= n_target or s < 0 or s >= source_covered.size:
                    continue
                if source_covered[s] and target_covered[t]:
                    continue
                other = _find(source, order, starts[t], starts[t + 1], s)
                if other >= 0:
                    chosen[other] = source_covered[s] = target_covered[t] = added = True


@njit(cache=True, nogil=True)
def _finish(source, target, order, kind, n, which, final, chosen, source_covered, target_covered):
    """Add the points of one direction which cover a new word, or two new words."""
    for place in range(n):
        point = order[place]
        if kind[point] != which or chosen[point]:
            continue
        s, t = source[point], target[point]
        new_words = 2 - source_covered[s] - target_covered[t]
        if new_words == 2 or (new_words == 1 and final == EITHER_UNCOVERED):
            chosen[point] = source_covered[s] = target_covered[t] = True


@njit(cache=True, nogil=True)
def _choose(source, target, kind, n, neighbours, final, start_from_union, chosen, covered, starts, order):
    """Mark the points of one pair that are chosen."""
    source_covered, target_covered = covered
    for point in range(n):
        chosen[point] = start_from_union or kind[point] == _BOTH
        source_covered[source[point]] = target_covered[target[point]] = False
    for point in range(n):
        if chosen[point]:
            source_covered[source[point]] = target_covered[target[point]] = True
    if neighbours > 0 or final != NO_FINAL:
        n_target = _by_target(target, n, starts, order)
        _grow(source, target, order, starts, n, n_target, neighbours, chosen, source_covered, target_covered)
    if final != NO_FINAL:
        _finish(source, target, order, kind, n, _FORWARD, final, chosen, source_covered, target_covered)
        _finish(source, target, order, kind, n, _BACKWARD, final, chosen, source_covered, target_covered)


@njit(cache=True, nogil=True)
def _most(values):
    return values.max() + 1 if values.size > 0 else 0


@njit(cache=True, nogil=True)
def symmetrised(f_offsets, f_source, f_target, b_offsets, b_source, b_target, neighbours, final, start_from_union):
    """Combine forward (`f_`) and backward (`b_`) links, pair by pair.

    The links of every row must be ordered by (source, target), and so are those of the answer.

    Parameters
    ----------
    f_offsets, b_offsets : int64[n_pairs + 1]
    f_source, f_target, b_source, b_target : int32[n_links of that direction]
    neighbours : int
        0, 4 (straight) or 8 (straight, then diagonal).
    final : int
        NO_FINAL, EITHER_UNCOVERED or BOTH_UNCOVERED.
    start_from_union : bool
        Keep every point; the rest has nothing left to do.

    Returns
    -------
    offsets : int64[n_pairs + 1]
    source, target : int32[n_links]
    """
    n_pairs = f_offsets.size - 1
    widest = 0
    for pair in range(n_pairs):
        widest = max(widest, f_offsets[pair + 1] - f_offsets[pair] + b_offsets[pair + 1] - b_offsets[pair])
    n_source, n_target = max(_most(f_source), _most(b_source)), max(_most(f_target), _most(b_target))
    source, target = np.empty(widest, np.int64), np.empty(widest, np.int64)
    kind, order = np.empty(widest, np.int64), np.empty(widest, np.int64)
    chosen = np.empty(widest, np.bool_)
    starts = np.empty(n_target + 2, np.int64)
    covered = (np.zeros(n_source, np.bool_), np.zeros(n_target, np.bool_))

    out_offsets = np.zeros(n_pairs + 1, np.int64)
    out_source = np.empty(f_source.size + b_source.size, np.int32)
    out_target = np.empty_like(out_source)
    written = 0
    for pair in range(n_pairs):
        f, b = slice(f_offsets[pair], f_offsets[pair + 1]), slice(b_offsets[pair], b_offsets[pair + 1])
        n = _merge(f_source[f], f_target[f], b_source[b], b_target[b], source, target, kind)
        _choose(source, target, kind, n, neighbours, final, start_from_union, chosen, covered, starts, order)
        for point in range(n):
            if chosen[point]:
                out_source[written], out_target[written] = source[point], target[point]
                written += 1
        out_offsets[pair + 1] = written
    return out_offsets, out_source[:written].copy(), out_target[:written].copy()
