"""Labelled spans that see the label above them: sums and best trees, with a vector over labels in every cell.

Scores of a sentence of n words and L labels are one block: label[spans, L], below[spans, L], word[n, L], split[n, L]
and pair[L, L]; spans are numbered by width, then by start. Cells hold numbers relative to a scale of their own, the log
of the largest, so that nothing overflows; what is below 1e-300 of the largest label of a cell counts as 0. Where scores
are so far apart that this could matter (`_APART`), and where nothing is left, sums are made in logarithms instead.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.spans import normalise, span_at

__all__ = ["best_families", "draw_families", "family_parts", "log_families", "sum_families"]

NEGLIGIBLE = 1e-14
"""Cells with less posterior are not followed further down."""
_NONE = -1
_APART = 60.0
"""Scores of this size and more are not multiplied as probabilities."""


@njit(cache=True, nogil=True)
def _exp_row(scores, at, labels, out):
    """exp(scores − best) of a row, and the best; −∞ where all are."""
    top = -np.inf
    for a in range(labels):
        top = max(top, scores[at + a])
    for a in range(labels):
        out[a] = np.exp(scores[at + a] - top) if top > -np.inf else 0.0
    return top


@njit(cache=True, nogil=True, error_model="numpy")
def _combine(n, i, k, labels, child, rest, m_child, m_rest, out):
    """Σ over splits of a first child and the rest, label by label; returns the scale."""
    top = -np.inf
    for j in range(i + 1, k):
        top = max(top, m_child[span_at(i, j, n)] + m_rest[span_at(j, k, n)])
    out[:] = 0.0
    if top == -np.inf:
        return top
    for j in range(i + 1, k):
        a, b = span_at(i, j, n), span_at(j, k, n)
        share = np.exp(m_child[a] + m_rest[b] - top)
        if share > 0.0:
            one, other = child[a], rest[b]
            for label in range(labels):
                out[label] += share * one[label] * other[label]
    return top + normalise(out)


@njit(cache=True, nogil=True, error_model="numpy")
def _inside(n, labels, scores, start, pairs, m_pair, splits, charts, scales, few):
    """Fill the charts; log Z."""
    own, child, labelled, inner, rest = charts[0], charts[1], charts[2], charts[3], charts[4]
    m_own, m_child, m_inner, m_rest = scales[0], scales[1], scales[2], scales[3]
    spans = n * (n + 1) // 2
    at_below, at_word = start + spans * labels, start + 2 * spans * labels
    row, sums = few[0], few[1]
    for width in range(1, n + 1):
        for i in range(n - width + 1):
            k = i + width
            s = span_at(i, k, n)
            top = _exp_row(scores, start + s * labels, labels, own[s])
            m_inner[s] = 0.0
            if width > 1:
                m_inner[s] = _combine(n, i, k, labels, child, rest, m_child, m_rest, inner[s])
                for a in range(labels):
                    own[s, a] *= inner[s, a]
            m_own[s] = top + m_inner[s]
            m_own[s] += normalise(own[s]) if m_own[s] > -np.inf else 0.0
            if width == n:
                continue
            sums[:] = 0.0
            if m_own[s] > -np.inf:
                for b in range(labels):
                    x = own[s, b]
                    if x > 0.0:
                        for a in range(labels):
                            sums[a] += pairs[b, a] * x
            top = _exp_row(scores, at_below + s * labels, labels, row)
            for a in range(labels):
                labelled[s, a] = sums[a] * row[a]
            m_child[s] = m_own[s] + m_pair + top
            if width == 1:
                top = _exp_row(scores, at_word + i * labels, labels, row)
                highest = max(top, m_child[s])
                one = np.exp(m_child[s] - highest) if highest > -np.inf else 0.0
                other = np.exp(top - highest) if highest > -np.inf else 0.0
                for a in range(labels):
                    labelled[s, a] *= one
                    child[s, a] = labelled[s, a] + other * row[a]
                m_child[s] = highest
            else:
                child[s] = labelled[s]
            largest = 0.0
            for a in range(labels):
                largest = max(largest, child[s, a])
            if largest > 0.0:
                m_child[s] += np.log(largest)
                for a in range(labels):
                    child[s, a] /= largest
                    labelled[s, a] /= largest
            else:
                m_child[s] = -np.inf
            if i == 0:
                continue
            highest = max(m_child[s], m_inner[s] if width > 1 else -np.inf)
            m_rest[s] = highest
            if highest == -np.inf:
                rest[s] = 0.0
                continue
            one, split = np.exp(m_child[s] - highest), splits[i]
            other = np.exp(m_inner[s] - highest) if width > 1 else 0.0
            for a in range(labels):
                rest[s, a] = split[a] * (one * child[s, a] + (other * inner[s, a] if width > 1 else 0.0))
            m_rest[s] += split[labels]
    s = spans - 1
    total = 0.0
    for b in range(labels):
        total += own[s, b]
    return m_own[s] + np.log(total) if m_own[s] > -np.inf else -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _outside(n, labels, start, pairs, splits, charts, scales, adjoints, few, grad):
    """Posteriors of all parts into `grad`, laid out as the scores."""
    own, child, labelled, inner, rest = charts[0], charts[1], charts[2], charts[3], charts[4]
    m_child, m_inner, m_rest = scales[1], scales[2], scales[3]
    d_child, d_rest = adjoints[0], adjoints[1]
    spans = n * (n + 1) // 2
    at_below, at_word, at_split = start + spans * labels, start + 2 * spans * labels, start + (2 * spans + n) * labels
    at_pair = at_split + n * labels
    d_own, d_inner, d_sums = few[1], few[2], few[3]
    for width in range(n, 0, -1):
        for i in range(n - width + 1):
            k = i + width
            s = span_at(i, k, n)
            d_inner[:] = 0.0
            if width == n:
                total = 0.0
                for b in range(labels):
                    total += own[s, b]
                for b in range(labels):
                    d_own[b] = 1.0 / total
            else:
                mass = 0.0
                for a in range(labels):
                    mass += d_child[s, a] * child[s, a]
                if i > 0:
                    for a in range(labels):
                        mass += d_rest[s, a] * rest[s, a]
                if not mass > NEGLIGIBLE:
                    continue
                if i > 0:
                    highest = max(m_child[s], m_inner[s] if width > 1 else -np.inf)
                    one, split = np.exp(m_child[s] - highest), splits[i]
                    other = np.exp(m_inner[s] - highest) if width > 1 else 0.0
                    for a in range(labels):
                        d = d_rest[s, a]
                        grad[at_split + i * labels + a] += d * rest[s, a]
                        d_child[s, a] += d * split[a] * one
                        d_inner[a] = d * split[a] * other
                for a in range(labels):
                    held = d_child[s, a] * labelled[s, a]
                    grad[at_below + s * labels + a] = held
                    if width == 1:
                        grad[at_word + i * labels + a] = d_child[s, a] * (child[s, a] - labelled[s, a])
                # what a label below asks of labels: held is d_sums · sums, label by label
                d_own[:] = 0.0
                for a in range(labels):
                    held = grad[at_below + s * labels + a]
                    d_sums[a] = 0.0
                    if held > 0.0:
                        total = 0.0
                        for b in range(labels):
                            total += pairs[b, a] * own[s, b]
                        d_sums[a] = held / total
                for b in range(labels):
                    x, total = own[s, b], 0.0
                    if x > 0.0:
                        for a in range(labels):
                            held = d_sums[a] * pairs[b, a]
                            total += held
                            grad[at_pair + b * labels + a] += held * x
                        d_own[b] = total
            for b in range(labels):
                held = d_own[b] * own[s, b]
                grad[start + s * labels + b] = held
                if width > 1 and held > 0.0:
                    d_inner[b] += held / inner[s, b]
            if width > 1:
                for j in range(i + 1, k):
                    a, b = span_at(i, j, n), span_at(j, k, n)
                    share = np.exp(m_child[a] + m_rest[b] - m_inner[s])
                    if share > 0.0:
                        for label in range(labels):
                            d = share * d_inner[label]
                            d_child[a, label] += d * rest[b, label]
                            d_rest[b, label] += d * child[a, label]


@njit(cache=True, nogil=True)
def sum_families(block, count, scores, offsets, lengths, labels, grad, values):
    """log Z and posteriors of many sentences in scaled probabilities; NaN where these might not do."""
    most = 1
    for s in range(block, len(lengths), count):
        most = max(most, lengths[s])
    spans = most * (most + 1) // 2
    charts, adjoints = np.empty((5, spans, labels)), np.empty((2, spans, labels))
    scales, few, pairs = np.empty((4, spans)), np.empty((4, labels)), np.empty((labels, labels))
    splits = np.empty((most, labels + 1))  # exp of the scores of each place, relative to the best, which stands last
    for s in range(block, len(lengths), count):
        n, start = lengths[s], offsets[s]
        grad[start : offsets[s + 1]] = 0.0
        if n == 0:
            values[s] = 0.0
            continue
        spans = n * (n + 1) // 2
        at = start + (2 * spans + 2 * n) * labels
        m_pair, far = -np.inf, 0.0
        for t in range(start, offsets[s + 1]):
            if scores[t] > -np.inf:
                far = max(far, abs(scores[t]))
        if far > _APART:
            values[s] = np.nan
            continue
        for t in range(labels * labels):
            m_pair = max(m_pair, scores[at + t])
        for b in range(labels):
            for a in range(labels):
                pairs[b, a] = np.exp(scores[at + b * labels + a] - m_pair) if m_pair > -np.inf else 0.0
        for i in range(n):
            splits[i, labels] = _exp_row(scores, start + (2 * spans + n + i) * labels, labels, splits[i])
        values[s] = _inside(n, labels, scores, start, pairs, m_pair, splits, charts, scales, few)
        if values[s] > -np.inf:
            adjoints[:, :spans] = 0.0
            _outside(n, labels, start, pairs, splits, charts, scales, adjoints, few, grad)
        else:
            values[s] = np.nan


@njit(cache=True, nogil=True, inline="always")
def _either(x, y):
    """log(exp x + exp y)."""
    top = max(x, y)
    return top if top == -np.inf else top + np.log(np.exp(x - top) + np.exp(y - top))


@njit(cache=True, nogil=True)
def _log_inside(n, labels, scores, start, charts, x):
    own, labelled, child, inner, rest = charts[0], charts[1], charts[2], charts[3], charts[4]
    spans = n * (n + 1) // 2
    at_below, at_word, at_split = start + spans * labels, start + 2 * spans * labels, start + (2 * spans + n) * labels
    at_pair = at_split + n * labels
    for width in range(1, n + 1):
        for i in range(n - width + 1):
            k = i + width
            t = span_at(i, k, n)
            for a in range(labels):
                inner[t, a] = -np.inf
                if width > 1:
                    for j in range(i + 1, k):
                        x[j] = child[span_at(i, j, n), a] + rest[span_at(j, k, n), a]
                    inner[t, a] = _log_sum(x, i + 1, k)
                own[t, a] = scores[start + t * labels + a] + (inner[t, a] if width > 1 else 0.0)
            if width == n:
                continue
            for a in range(labels):
                for b in range(labels):
                    x[b] = own[t, b] + scores[at_pair + b * labels + a]
                labelled[t, a] = _log_sum(x, 0, labels) + scores[at_below + t * labels + a]
                child[t, a] = labelled[t, a]
                if width == 1:
                    child[t, a] = _either(labelled[t, a], scores[at_word + i * labels + a])
                if i > 0:
                    rest[t, a] = _either(child[t, a], inner[t, a]) + scores[at_split + i * labels + a]
    for b in range(labels):
        x[b] = own[spans - 1, b]
    return _log_sum(x, 0, labels)


@njit(cache=True, nogil=True)
def _log_sum(x, first, last):
    top = -np.inf
    for t in range(first, last):
        top = max(top, x[t])
    if top == -np.inf:
        return top
    total = 0.0
    for t in range(first, last):
        total += np.exp(x[t] - top)
    return top + np.log(total)


@njit(cache=True, nogil=True)
def _log_outside(n, labels, scores, start, value, charts, of_child, of_rest, of_own, grad):
    """Posteriors handed down: what a cell has is shared among what it was made of."""
    own, labelled, child, inner, rest = charts[0], charts[1], charts[2], charts[3], charts[4]
    spans = n * (n + 1) // 2
    at_below, at_word, at_split = start + spans * labels, start + 2 * spans * labels, start + (2 * spans + n) * labels
    at_pair = at_split + n * labels
    of_child[:spans], of_rest[:spans] = 0.0, 0.0
    for width in range(n, 0, -1):
        for i in range(n - width + 1):
            k = i + width
            t = span_at(i, k, n)
            for a in range(labels):
                of_own[a] = np.exp(own[t, a] - value) if width == n else 0.0
            if width < n:
                for a in range(labels):
                    grad[at_split + i * labels + a] += of_rest[t, a]
                    if of_rest[t, a] > 0.0:
                        of_child[t, a] += of_rest[t, a] * np.exp(
                            child[t, a] + scores[at_split + i * labels + a] - rest[t, a]
                        )
                    if of_child[t, a] > 0.0:
                        held = of_child[t, a] * np.exp(labelled[t, a] - child[t, a])
                        grad[at_below + t * labels + a] = held
                        if width == 1:
                            grad[at_word + i * labels + a] = max(of_child[t, a] - held, 0.0)
                        for b in range(labels):
                            if held > 0.0 and own[t, b] > -np.inf:
                                share = own[t, b] + scores[at_pair + b * labels + a] + scores[at_below + t * labels + a]
                                share = held * np.exp(share - labelled[t, a])
                                grad[at_pair + b * labels + a] += share
                                of_own[b] += share
            for a in range(labels):
                grad[start + t * labels + a] = of_own[a]
                mass = of_own[a]
                if width < n and of_rest[t, a] > 0.0 and width > 1:
                    mass += of_rest[t, a] * np.exp(inner[t, a] + scores[at_split + i * labels + a] - rest[t, a])
                if mass > 0.0 and width > 1:
                    for j in range(i + 1, k):
                        one, other = span_at(i, j, n), span_at(j, k, n)
                        share = mass * np.exp(child[one, a] + rest[other, a] - inner[t, a])
                        of_child[one, a] += share
                        of_rest[other, a] += share


@njit(cache=True, nogil=True)
def log_families(block, count, scores, offsets, lengths, labels, grad, values):
    """The same in logarithms throughout; sentences with a value other than NaN are left alone."""
    for s in range(block, len(lengths), count):
        if not np.isnan(values[s]):
            continue
        n, start = lengths[s], offsets[s]
        spans = n * (n + 1) // 2
        charts, shares = np.full((5, spans, labels), -np.inf), np.empty((2, spans, labels))
        grad[start : offsets[s + 1]] = 0.0
        values[s] = _log_inside(n, labels, scores, start, charts, np.empty(max(n + 1, labels)))
        if values[s] > -np.inf:
            _log_outside(n, labels, scores, start, values[s], charts, shares[0], shares[1], np.empty(labels), grad)


@njit(cache=True, nogil=True)
def best_families(block, count, scores, offsets, lengths, labels, starts, found_spans, found_labels, counts, values):
    """The best tree of each of many sentences, as span numbers and labels; room for 2n of them at ``starts[s]``."""
    for s in range(block, len(lengths), count):
        n, start = lengths[s], offsets[s]
        counts[s] = 0
        if n == 0:
            values[s] = 0.0
            continue
        spans = n * (n + 1) // 2
        at_below, at_word = start + spans * labels, start + 2 * spans * labels
        at_split = at_word + n * labels
        at_pair = at_split + n * labels
        child, rest = np.full((spans, labels), -np.inf), np.full((spans, labels), -np.inf)
        own, inner = np.full((spans, labels), -np.inf), np.full((spans, labels), -np.inf)
        which = np.full((spans, labels), _NONE, np.int64)  # of a child, its label, or none for a bare word
        where = np.full((spans, labels), _NONE, np.int64)
        more = np.zeros((spans, labels), np.bool_)  # whether the rest is several children
        for width in range(1, n + 1):
            for i in range(n - width + 1):
                k = i + width
                t = span_at(i, k, n)
                for j in range(i + 1, k):
                    one, other = span_at(i, j, n), span_at(j, k, n)
                    for a in range(labels):
                        x = child[one, a] + rest[other, a]
                        if x > inner[t, a]:
                            inner[t, a] = x
                            where[t, a] = j
                for b in range(labels):
                    own[t, b] = scores[start + t * labels + b] + (inner[t, b] if width > 1 else 0.0)
                if width == n:
                    continue
                for b in range(labels):
                    if own[t, b] > -np.inf:
                        for a in range(labels):
                            x = own[t, b] + scores[at_pair + b * labels + a]
                            if x > child[t, a]:
                                child[t, a] = x
                                which[t, a] = b
                for a in range(labels):
                    child[t, a] += scores[at_below + t * labels + a]
                    if width == 1 and scores[at_word + i * labels + a] >= child[t, a]:
                        child[t, a] = scores[at_word + i * labels + a]
                        which[t, a] = _NONE
                    if i > 0:
                        more[t, a] = width > 1 and inner[t, a] > child[t, a]
                        rest[t, a] = max(child[t, a], inner[t, a]) + scores[at_split + i * labels + a]
        root, best = 0, -np.inf
        for b in range(labels):
            if own[spans - 1, b] > best:
                root, best = b, own[spans - 1, b]
        values[s] = best
        if best == -np.inf:
            continue
        stack, top = np.empty((4 * n + 4, 4), np.int64), 1  # begin, end, label of the node or of its parent, what it is
        stack[0] = 0, n, root, 0
        while top:
            top -= 1
            i, k, a, what = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
            t = span_at(i, k, n)
            if what == 1:  # a child of a
                if which[t, a] == _NONE:
                    continue
                a, what = which[t, a], 0
            if what == 2 and not more[t, a]:
                stack[top] = i, k, a, 1
                top += 1
                continue
            if what == 0:
                found_spans[starts[s] + counts[s]], found_labels[starts[s] + counts[s]] = t, a
                counts[s] += 1
                if k - i == 1:
                    continue
            j = where[t, a]
            stack[top] = i, j, a, 1
            stack[top + 1] = j, k, a, 2
            top += 2


@njit(cache=True, nogil=True)
def _drawn(x, first, last, u):
    """The place in x[first:last], log weights, that a uniform number falls on; only places that are allowed."""
    top, place = _log_sum(x, first, last), _NONE
    left = u
    for t in range(first, last):
        if x[t] > -np.inf:
            place = t  # the last one, if rounding leaves something
            left -= np.exp(x[t] - top)
            if left < 0.0:
                break
    return place


@njit(cache=True, nogil=True)
def draw_families(
    block, count, scores, offsets, lengths, labels, starts, uniform, found_spans, found_labels, counts, values
):
    """A tree of each of many sentences, as often as it is probable, from ``uniform[2 starts[s]:]``, 4n numbers.

    Results are as those of `best_families`, but for log Z in `values`.
    """
    for s in range(block, len(lengths), count):
        n, start = lengths[s], offsets[s]
        counts[s] = 0
        values[s] = 0.0
        if n == 0:
            continue
        spans = n * (n + 1) // 2
        at_below, at_word = start + spans * labels, start + 2 * spans * labels
        at_pair = at_word + 2 * n * labels
        charts, x = np.full((5, spans, labels), -np.inf), np.empty(max(n, labels) + 1)
        own, child, inner, rest = charts[0], charts[2], charts[3], charts[4]
        values[s] = _log_inside(n, labels, scores, start, charts, x)
        if values[s] == -np.inf:
            continue
        x[:labels] = own[spans - 1]
        used = 2 * starts[s]
        stack, top = np.empty((4 * n + 4, 4), np.int64), 1  # begin, end, label of the node or of its parent, what it is
        stack[0] = 0, n, _drawn(x, 0, labels, uniform[used]), 0
        while top:
            top -= 1
            i, k, a, what = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
            t = span_at(i, k, n)
            if what == 2:  # the children of a that are left: one, or several
                x[0], x[1] = child[t, a], inner[t, a]
                if k - i > 1:
                    used += 1
                if k - i == 1 or _drawn(x, 0, 2, uniform[used]) == 0:
                    what = 1
            if what == 1:  # a child of a: a bare word, or a constituent with some label
                for b in range(labels):
                    x[b] = own[t, b] + scores[at_pair + b * labels + a] + scores[at_below + t * labels + a]
                x[labels] = scores[at_word + i * labels + a] if k - i == 1 else -np.inf
                used += 1
                a = _drawn(x, 0, labels + 1, uniform[used])
                if a == labels:
                    continue
                what = 0
            if what == 0:
                found_spans[starts[s] + counts[s]], found_labels[starts[s] + counts[s]] = t, a
                counts[s] += 1
                if k - i == 1:
                    continue
            for j in range(i + 1, k):
                x[j] = child[span_at(i, j, n), a] + rest[span_at(j, k, n), a]
            used += 1
            j = _drawn(x, i + 1, k, uniform[used])
            stack[top] = i, j, a, 1
            stack[top + 1] = j, k, a, 2
            top += 2


@njit(cache=True, nogil=True)
def family_parts(n, labels, begins, ends, kinds, parents, out):
    """Count the parts of one tree into `out`; nodes in pre-order, with the number of the node above, −1 for none."""
    spans = n * (n + 1) // 2
    at_below, at_word, at_split = spans * labels, 2 * spans * labels, (2 * spans + n) * labels
    at_pair = at_split + n * labels
    above = np.full(n, _NONE, np.int64)
    for t in range(len(begins)):
        out[span_at(begins[t], ends[t], n) * labels + kinds[t]] += 1.0
        for word in range(begins[t], ends[t]):
            above[word] = t  # the lowest stays
    for t in range(len(begins)):
        if parents[t] >= 0:
            a = kinds[parents[t]]
            out[at_below + span_at(begins[t], ends[t], n) * labels + a] += 1.0
            out[at_pair + kinds[t] * labels + a] += 1.0
            if begins[t] > begins[parents[t]]:
                out[at_split + begins[t] * labels + a] += 1.0
    for word in range(n):
        t = above[word]
        if t >= 0 and ends[t] - begins[t] > 1:
            out[at_word + word * labels + kinds[t]] += 1.0
            if word > begins[t]:
                out[at_split + word * labels + kinds[t]] += 1.0
