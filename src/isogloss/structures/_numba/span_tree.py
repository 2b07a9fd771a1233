"""Labelled spans: labels are summed, maximised or drawn span by span, and a chart of brackets does the rest.

Scores of a sentence are a block [n_spans, n_labels], spans numbered by width, then by start. With `bare`, a span of one
word may have no label, at score 0, unless it is the whole sentence and `rooted`. Kernels that take `(block, count)`
work on the sentences block, block + count, … of a batch.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.brackets import best_inside, log_inside, log_outside, stride, walk
from isogloss.structures._numba.brackets_scaled import room, scaled
from isogloss.structures._numba.lanes import WIDTH, add, exponential, largest, load, maximum, store
from isogloss.structures._numba.lanes import total as lane_total
from isogloss.structures._numba.semiring import total, weights
from isogloss.structures.semiring import LOG, MAX

__all__ = ["best_spans", "drawn_spans", "log_spans", "marginal_spans"]


@njit(inline="always")
def _largest_length(lengths, block, count):
    top = 1
    for s in range(block, len(lengths), count):
        top = max(top, lengths[s])
    return top


@njit(inline="always")
def _bare_words(n, bare, rooted):
    """How many spans, from the first on, may have no label."""
    return n if bare and not (rooted and n == 1) else 0


@njit(cache=True, nogil=True)
def _top(scores, first, last):
    """max scores[first:last]."""
    best, at = -np.inf, first
    if last - first >= WIDTH:
        lanes = load(scores, first)
        at += WIDTH
        while at + WIDTH <= last:
            lanes = maximum(lanes, load(scores, at))
            at += WIDTH
        best = largest(lanes)
    for t in range(at, last):
        if scores[t] > best:
            best = scores[t]
    return best


@njit(cache=True, nogil=True)
def _sum(values, first, last):
    """Σ values[first:last], always in the same order."""
    mass, at = 0.0, first
    if last - first >= WIDTH:
        lanes = load(values, first)
        at += WIDTH
        while at + WIDTH <= last:
            lanes = add(lanes, load(values, at))
            at += WIDTH
        mass = lane_total(lanes)
    for t in range(at, last):
        mass += values[t]
    return mass


@njit(cache=True, nogil=True)
def _exponentiate(values, first, last, few):
    """exp of values[first:last], all at most 0, in place; `few` is float64[WIDTH]."""
    at = first
    while at + WIDTH <= last:
        store(values, at, exponential(load(values, at)))
        at += WIDTH
    if at < last:
        for t in range(WIDTH):
            few[t] = values[at + t] if at + t < last else 0.0
        store(few, 0, exponential(load(few, 0)))
        for t in range(at, last):
            values[t] = few[t - at]


@njit(cache=True, nogil=True)
def _condense(scores, start, spans, labels, words, shares, logs, masses, few):
    """Sum the labels of each span: `shares` becomes exp(score − best of the span), `logs` the log sum.

    `masses` is what shares are to be divided by, so that the probability of a label is its share of the span's.
    """
    for s in range(spans):
        first = start + s * labels
        top = _top(scores, first, first + labels)
        if s < words and top < 0.0:
            top = 0.0
        masses[s] = top
        for t in range(first, first + labels):
            shares[t] = scores[t] - top if top > -np.inf else -np.inf
    _exponentiate(shares, start, start + spans * labels, few)
    for s in range(spans):
        first, top = start + s * labels, masses[s]
        mass = _sum(shares, first, first + labels)
        if s < words:
            mass += np.exp(-top)
        masses[s] = mass
        logs[s] = top + np.log(mass) if mass > 0.0 else -np.inf


@njit(cache=True, nogil=True)
def _spread(start, spans, labels, posteriors, masses, shares):
    """Posteriors of spans to those of their labels, in place of the shares."""
    for s in range(spans):
        first = start + s * labels
        factor = posteriors[s] / masses[s] if masses[s] > 0.0 else 0.0
        for t in range(first, first + labels):
            shares[t] *= factor


@njit(cache=True, nogil=True)
def marginal_spans(block, count, scores, offsets, lengths, n_labels, binary, bare, rooted, grad, values):
    """log Z and marginals of many sentences in scaled probabilities; NaN where these might not fit, for `log_spans`.

    Parameters
    ----------
    scores, grad : float64[n_values]
        Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``, a block [n_spans, n_labels[s]]; `grad` is overwritten.
    lengths : int64[n_sentences]
        Numbers of words.
    values : float64[n_sentences]
        Overwritten with log Z.
    """
    most = _largest_length(lengths, block, count)
    spans = most * (most + 1) // 2
    work, few, scratch = np.empty(room(most)), np.empty(WIDTH), np.empty((4, spans))
    for s in range(block, len(lengths), count):
        n = lengths[s]
        spans = n * (n + 1) // 2
        logs, masses = scratch[0, :spans], scratch[1, :spans]
        words = _bare_words(n, bare, rooted)
        _condense(scores, offsets[s], spans, n_labels[s], words, grad, logs, masses, few)
        values[s] = scaled(n, logs, binary, rooted, scratch[2, :spans], work, scratch[3, :spans])
        if not np.isnan(values[s]):
            _spread(offsets[s], spans, n_labels[s], scratch[3, :spans], masses, grad)


@njit(cache=True, nogil=True)
def log_spans(block, count, scores, offsets, lengths, n_labels, binary, bare, rooted, grad, values):
    """The same in logarithms throughout; sentences with a value other than NaN are left alone."""
    few = np.empty(WIDTH)
    for s in range(block, len(lengths), count):
        n = lengths[s]
        if not np.isnan(values[s]):
            continue
        if n == 0:
            values[s] = 0.0
            continue
        spans, size = n * (n + 1) // 2, n + 1
        scratch, charts = np.empty((3, spans)), np.full((5, size, size), -np.inf)
        x, w, pair, both = np.empty(size), np.empty(size), np.empty(2), np.empty(2)
        words = _bare_words(n, bare, rooted)
        _condense(scores, offsets[s], spans, n_labels[s], words, grad, scratch[0], scratch[1], few)
        log_inside(LOG, n, scratch[0], binary, charts, x, pair)
        values[s] = charts[0, 0, n] if rooted or binary else charts[1, n, 0]
        scratch[2] = 0.0
        if values[s] > -np.inf:
            log_outside(LOG, n, binary, rooted, charts, charts[3], charts[4], x, w, pair, both, scratch[2])
        _spread(offsets[s], spans, n_labels[s], scratch[2], scratch[1], grad)


@njit(cache=True, nogil=True)
def best_spans(block, count, scores, offsets, lengths, n_labels, binary, bare, rooted, starts, spans, labels, counts,
               values):  # fmt: skip
    """The best trees of many sentences.

    Parameters
    ----------
    starts : int64[n_sentences]
        Where the spans of each sentence begin, with room for 2n of them.
    spans, labels : int64[...]
        Overwritten with the numbers of spans and their labels.
    counts : int64[n_sentences]
        Overwritten with the number of constituents.
    values : float64[n_sentences]
        Overwritten with the best score; −∞ where no tree is allowed.
    """
    most = _largest_length(lengths, block, count)
    size, none = most + 1, np.empty(0)
    logs, work = np.empty(most * size // 2), np.empty(3 * size * stride(size))
    x, w, pair, both, stack = (
        np.empty(size),
        np.empty(size),
        np.empty(2),
        np.empty(2),
        np.empty((2 * size, 3), np.int64),
    )
    for s in range(block, len(lengths), count):
        n, wide = lengths[s], n_labels[s]
        counts[s] = 0
        if n == 0:
            values[s] = 0.0
            continue
        words = _bare_words(n, bare, rooted)
        for number in range(n * (n + 1) // 2):
            first = offsets[s] + number * wide
            logs[number] = _top(scores, first, first + wide)
            if number < words and logs[number] < 0.0:
                logs[number] = 0.0
        charts = work[: 3 * (n + 1) * stride(n + 1)].reshape((3, n + 1, stride(n + 1)))
        best_inside(n, logs, binary, charts)
        values[s] = charts[0, 0, n] if rooted or binary else charts[1, n, 0]
        if values[s] == -np.inf:
            continue
        found, _ = walk(MAX, n, binary, rooted, charts, none, x, w, pair, both, stack, spans[starts[s] :])
        at = starts[s]
        for t in range(starts[s], starts[s] + found):
            number = spans[t]
            first = offsets[s] + number * wide
            for label in range(wide):
                if scores[first + label] == logs[number]:
                    spans[at], labels[at] = number, label
                    at += 1
                    break
        counts[s] = at - starts[s]


@njit(cache=True, nogil=True)
def drawn_spans(block, count, sr, scores, offsets, lengths, n_labels, binary, bare, rooted, u, draws, starts, spans,
                labels, counts, values):  # fmt: skip
    """One tree drawn for each of many sentences; arguments as for `best_spans`, and sentence *s* reads at most 4n
    numbers from ``u[draws[s]]`` on. `sr` is DRAW."""
    for s in range(block, len(lengths), count):
        n, wide, size = lengths[s], n_labels[s], lengths[s] + 1
        counts[s] = 0
        if n == 0:
            values[s] = 0.0
            continue
        words, n_spans = _bare_words(n, bare, rooted), n * size // 2
        logs, charts, row = np.empty(n_spans), np.full((3, size, size), -np.inf), np.empty(wide + 1)
        x, w, pair, both = np.empty(size), np.empty(size), np.empty(2), np.empty(2)
        stack, picked = np.empty((2 * size, 3), np.int64), np.empty(wide + 1)
        for number in range(n_spans):
            used = _row(scores, offsets[s] + number * wide, wide, number < words, row)
            logs[number] = total(sr, row[:used])
        log_inside(sr, n, logs, binary, charts, x, pair)
        values[s] = charts[0, 0, n] if rooted or binary else charts[1, n, 0]
        if values[s] == -np.inf:
            continue
        mine = u[draws[s] :]
        found, drawn = walk(sr, n, binary, rooted, charts, mine, x, w, pair, both, stack, spans[starts[s] :])
        at = starts[s]
        for t in range(starts[s], starts[s] + found):
            number = spans[t]
            used = _row(scores, offsets[s] + number * wide, wide, number < words, row)
            weights(sr, row[:used], picked[:used], mine[drawn])
            drawn += 1
            for label in range(wide):
                if picked[label] > 0.0:
                    spans[at], labels[at] = number, label
                    at += 1
        counts[s] = at - starts[s]


@njit(inline="always")
def _row(scores, first, wide, bare, row):
    """The scores of a span's labels, and 0 for none where that is allowed; returns how many they are."""
    for label in range(wide):
        row[label] = scores[first + label]
    row[wide] = 0.0
    return wide + 1 if bare else wide
