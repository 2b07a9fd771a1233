"""Segmentations whose segments look back on one more: a sweep over positions and back again, in any semiring.

A sequence of n positions is made of words, whose borders are known and which no segment crosses. One vector has its
scores: ``segments[n_spans, 3, k]`` by span and the place of the segment in its word (first, second, later), then
``steps[2, k + 1, k + 1]`` from label to label inside a word and across its border, with the beginning as last row and
the end as last column, then ``pairs[n_pairs, n_classes]`` of two neighbours in a word by the class of the second label.

What a position remembers is a label and a *slot*. Without pairs there are two slots inside a word: the last segment is
the first of its word (1) or is not (0), which says the place of the next. With pairs there is a slot for each length
of the last segment. At the end of a word there is one: nothing but the label is carried over to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from isogloss.structures._numba.semiring import total, weights

__all__ = ["Places", "places_of", "remembering", "remembering_all", "slots", "step"]


class Places(NamedTuple):
    """Where things are: for each position, the word that ends or goes on there, and its first span and pair."""

    first: np.ndarray
    last: np.ndarray
    span: np.ndarray
    pair: np.ndarray
    longest: int
    k: int
    classes: np.ndarray
    paired: bool
    steps: int
    pairs: int
    n_classes: int


@njit(cache=True, nogil=True)
def places_of(words, longest, k, classes, n_classes, paired):
    n = words.sum()
    first, last = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    span, pair = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    begin, n_spans, n_pairs = 0, 0, 0
    for w in range(len(words)):
        end = begin + words[w]
        for t in range(begin, end):
            first[t + 1], last[t + 1] = begin, end
            span[t], pair[t] = n_spans, n_pairs
            n_spans += min(end - t, longest)
            n_pairs += min(t - begin, longest) * min(end - t, longest)
        begin = end
    steps = n_spans * 3 * k
    pairs = steps + 2 * (k + 1) * (k + 1)
    return Places(first, last, span, pair, longest, k, classes, paired, steps, pairs, n_classes)


@njit(cache=True, nogil=True)
def slots(at, t):
    """How many slots position t has."""
    if t == at.last[t]:
        return 1
    return min(t - at.first[t], at.longest) if at.paired else 2


@njit(cache=True, nogil=True)
def _incoming(at, t, slot, label, scores, enter, x, where):
    """Fill x with the scores of all that ends in a segment of this label before t, and leads to this slot.

    ``where`` has numbers for each: its begin, the slot there, the part of its segment and that of its pair or −1.
    """
    many = 0
    first, last, longest = at.first[t], at.last[t], at.longest
    for width in range(1, min(longest, t - first) + 1):
        begin = t - width
        if t != last and slot != (width - 1 if at.paired else int(begin == first)):
            continue
        own = (at.span[begin] + width - 1) * 3 * at.k + label
        for before in range(1 if begin == first else slots(at, begin)):
            part, pair, extra = own, -1, 0.0
            if begin > first:
                if at.paired:
                    part += at.k if begin - before - 1 == first else 2 * at.k
                    number = at.pair[begin] + before * min(last - begin, longest) + width - 1
                    pair = at.pairs + number * at.n_classes + at.classes[label]
                    extra = scores[pair]
                else:
                    part += (2 - before) * at.k
            x[many] = enter[begin, before, label] + scores[part] + extra
            where[many, 0], where[many, 1], where[many, 2], where[many, 3] = begin, before, part, pair
            many += 1
    return many


@njit(cache=True, nogil=True)
def _stepping(at, t, slot, label, scores, alpha, x):
    """Fill x with the scores of all that goes before a segment of this label that begins at t, by the label before."""
    row = step(at, t == at.last[t], 0, label)
    for other in range(at.k):
        x[other] = alpha[t, slot, other] + scores[row + other * (at.k + 1)]


@njit(cache=True, nogil=True)
def step(at, crossing, before, label):
    """The part that a step has."""
    return at.steps + ((at.k + 1) * crossing + before) * (at.k + 1) + label


@njit(cache=True, nogil=True)
def _forward(sr, at, n, scores, alpha, enter, x, where, ends):
    """Fill `alpha` and `enter`, what ends and what begins at positions, and `ends`, by the last label."""
    k = at.k
    before = np.empty(k)
    for label in range(k):
        enter[0, 0, label] = scores[step(at, 1, k, label)]
    for t in range(1, n + 1):
        for slot in range(slots(at, t)):
            for label in range(k):
                many = _incoming(at, t, slot, label, scores, enter, x, where)
                alpha[t, slot, label] = total(sr, x[:many])
            if t < n:
                for label in range(k):
                    _stepping(at, t, slot, label, scores, alpha, before)
                    enter[t, slot, label] = total(sr, before)
    for label in range(k):
        ends[label] = alpha[n, 0, label] + scores[step(at, 1, label, k)]


@njit(cache=True, nogil=True)
def _backward(sr, at, n, scores, alpha, enter, x, where, ends, u, grad):
    """The loops of `_forward`, reversed."""
    k = at.k
    w, before, v = np.empty(len(x)), np.empty(k), np.empty(k)
    mass, entered = np.zeros(alpha.shape), np.zeros(enter.shape)
    weights(sr, ends, mass[n, 0], u[2 * n] if len(u) else 0.0)
    for label in range(k):
        grad[step(at, 1, label, k)] = mass[n, 0, label]
    for t in range(n, 0, -1):
        for slot in range(slots(at, t)):
            for label in range(k if t < n else 0):
                here = entered[t, slot, label]
                if here == 0.0:
                    continue
                _stepping(at, t, slot, label, scores, alpha, before)
                weights(sr, before, v, u[2 * t] if len(u) else 0.0)
                row = step(at, t == at.last[t], 0, label)
                for other in range(k):
                    grad[row + other * (k + 1)] += here * v[other]
                    mass[t, slot, other] += here * v[other]
            for label in range(k):
                here = mass[t, slot, label]
                if here == 0.0:
                    continue
                many = _incoming(at, t, slot, label, scores, enter, x, where)
                weights(sr, x[:many], w[:many], u[2 * t - 1] if len(u) else 0.0)
                for i in range(many):
                    much = here * w[i]
                    entered[where[i, 0], where[i, 1], label] += much
                    grad[where[i, 2]] += much
                    if where[i, 3] >= 0:
                        grad[where[i, 3]] += much
    for label in range(k):
        grad[step(at, 1, k, label)] = entered[0, 0, label]


@njit(cache=True, nogil=True)
def remembering(sr, scores, words, longest, k, classes, n_classes, paired, grad, u):
    """⊕ over all segmentations of the scores of their segments, steps and pairs.

    Parameters
    ----------
    sr : LOG, MAX or DRAW
    scores, grad : float64[n_parts]
        Zeros in `grad` are overwritten with the derivative of the result.
    words : int64[n_words]
        Positions of each word, one or more.
    classes : int64[k]
        Of labels, from 0 to n_classes - 1: what pairs look at.
    u : float64[2 n + 1]
        Uniform on [0, 1), read by DRAW only; may be empty for the others.
    """
    n = words.sum()
    if n == 0:
        return 0.0  # the empty segmentation
    if k == 0 or longest == 0:
        return -np.inf
    at = places_of(words, longest, k, classes, n_classes, paired)
    n_slots = max(1, min(longest, words.max())) if paired else 2
    alpha, enter = np.full((n + 1, n_slots, k), -np.inf), np.full((n + 1, n_slots, k), -np.inf)
    x, where, ends = np.empty(longest * n_slots), np.empty((longest * n_slots, 4), np.int64), np.empty(k)
    _forward(sr, at, n, scores, alpha, enter, x, where, ends)
    _backward(sr, at, n, scores, alpha, enter, x, where, ends, u, grad)
    return total(sr, ends)


@njit(cache=True, nogil=True)
def remembering_all(
    block, blocks, sr, scores, offsets, words, word_offsets, longest, ks, classes, class_offsets, n_classes, paired,
    grad, u, starts, values,
):  # fmt: skip
    """`remembering` of sentences block, block + blocks, …; sentence *s* reads ``u[starts[s]:starts[s + 1]]``."""
    for s in range(block, len(values), blocks):
        here = slice(offsets[s], offsets[s + 1])
        values[s] = remembering(
            sr, scores[here], words[word_offsets[s] : word_offsets[s + 1]], longest, ks[s],
            classes[class_offsets[s] : class_offsets[s + 1]], n_classes, paired, grad[here],
            u[starts[s] : starts[s + 1]],
        )  # fmt: skip
