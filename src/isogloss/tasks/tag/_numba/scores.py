"""Scores of labels at positions, from sparse attributes; which of them are worth a look; and steps of learning.

A label is scored by *units*: itself, and with bundles of features each of its parts (``Case=Nom``). Unit y is label y
itself for y < k, unit k stands for what is outside the sentence, parts come after. Attribute *a* has weights for the
units ``units[starts[a]:starts[a + 1]]``; label *y* consists of the units ``members[heads[y]:heads[y + 1]]``.

Real-valued attributes, of which a position has all, are looked up (see `isogloss.tasks.tag.learning.Real`): attribute f
is ``table[places[row, blocks[f]], dimensions[f]]``, and 0 where nothing is known. Each unit has weights for all of
them, which stand behind those of the other attributes, unit after unit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.learners._numba.steps import climb, climb_all

__all__ = [
    "NEGLIGIBLE", "add_real", "add_units", "label_scores", "learn_labels", "look_up_real", "shortlist",
    "update_real", "update_row",
]  # fmt: skip

NEGLIGIBLE = np.float32(1e-6)
"""Gradients of a weight that are smaller are passed over: most are, once most words have the right label."""
SMALL = np.float32(1e-4)
"""The same for real-valued attributes, of which every position has hundreds."""


@njit(cache=True, nogil=True)
def add_units(row, indptr, indices, starts, units, weights, out):
    """The score of every unit at a position, to `out`."""
    out[:] = np.float32(0)
    for e in range(indptr[row], indptr[row + 1]):
        a = np.uint64(indices[e])
        for p in range(np.uint64(starts[a]), np.uint64(starts[a + np.uint64(1)])):
            out[np.uint64(units[p])] += weights[p]


@njit(cache=True, nogil=True)
def look_up_real(row, real, out):
    """The real-valued attributes of a position, to `out`."""
    for f in range(len(out)):
        at = real.places[row, real.blocks[f]]
        out[f] = real.table[at, real.dimensions[f]] if at >= 0 else np.float32(0)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _product(x, y):
    total = np.float32(0)
    for f in range(len(x)):
        total += x[f] * y[f]
    return total


@njit(cache=True, nogil=True)
def add_real(values, weights, n_units, out):
    """What real-valued attributes add to the score of every unit."""
    many = len(values)
    first = len(weights) - many * n_units
    if many:
        for u in range(n_units):
            out[u] += _product(values, weights[first + u * many : first + (u + 1) * many])


@njit(cache=True, nogil=True)
def label_scores(by_unit, heads, members, out):
    """Scores of labels from those of their units; returns the highest."""
    top = np.float32(-np.inf)
    for y in range(len(out)):
        total = np.float32(0)
        for m in range(heads[y], heads[y + 1]):
            total += by_unit[members[m]]
        out[y] = total
        top = max(top, total)
    return top


@njit(cache=True, nogil=True)
def update_row(row, indptr, indices, starts, units, slopes, weights, sums, sizes, rate, l1, l2):
    """A step for all weights of a position, given the slope of each unit."""
    for e in range(indptr[row], indptr[row + 1]):
        a = indices[e]
        for p in range(starts[a], starts[a + 1]):
            slope = slopes[units[p]]
            if abs(slope) > NEGLIGIBLE:
                climb(weights, sums, sizes, p, slope, rate, l1, l2)


@njit(cache=True, nogil=True)
def update_real(values, slopes, weights, sums, sizes, rate, l1, l2):
    """The same for real-valued attributes."""
    many, n_units = len(values), len(slopes)
    first = len(weights) - many * n_units
    if many:
        for u in range(n_units):
            if abs(slopes[u]) > SMALL:
                own = slice(first + u * many, first + (u + 1) * many)
                climb_all(values, slopes[u], weights[own], sums[own], sizes[own], rate, l1, l2)


@njit(cache=True, nogil=True)
def learn_labels(
    sentences, offsets, indptr, indices, starts, units, heads, members, real, gold, weights, sums, sizes,
    rate, l1, l2, n_units,
):  # fmt: skip
    """One pass over the words of the given sentences, each by itself (order 0); returns Σ log p of the gold labels."""
    k = len(heads) - 2
    by_unit, slopes = np.empty(n_units, np.float32), np.empty(n_units, np.float32)
    scores, values = np.empty(k, np.float32), np.empty(len(real.blocks), np.float32)
    value = 0.0
    for s in sentences:
        for r in range(offsets[s], offsets[s + 1]):
            y = gold[r]
            look_up_real(r, real, values)
            add_units(r, indptr, indices, starts, units, weights, by_unit)
            add_real(values, weights, n_units, by_unit)
            top = label_scores(by_unit, heads, members, scores)
            gap = scores[y] - top
            mass = np.float32(0)
            for j in range(k):
                scores[j] = np.exp(scores[j] - top)
                mass += scores[j]
            value += gap - np.log(mass)
            slopes[:] = np.float32(0)
            for j in range(k):
                p = scores[j] / mass
                if j == y:
                    p -= np.float32(1)
                if abs(p) > NEGLIGIBLE:
                    for m in range(heads[j], heads[j + 1]):
                        slopes[members[m]] -= p
            update_row(r, indptr, indices, starts, units, slopes, weights, sums, sizes, rate, l1, l2)
            update_real(values, slopes, weights, sums, sizes, rate, real.l1, l2)
    return value


@njit(cache=True, nogil=True)
def shortlist(scores, top, margin, most, out):
    """Labels within `margin` of the best score, at most so many of the best, best first; returns how many."""
    n = 0
    for y in range(len(scores)):
        s = scores[y]
        if s < top - margin:
            continue
        if n == most:
            if s <= scores[out[n - 1]]:
                continue
            n -= 1
        at = n
        while at > 0 and scores[out[at - 1]] < s:
            out[at] = out[at - 1]
            at -= 1
        out[at] = y
        n += 1
    return n
