"""Weighted context-free grammars in normal form: sums in scaled probabilities, and one sweep in any semiring.

Scores of a sentence are one block: binary[R], unary[U], inner[spans, S] and, if there are unary rules, outer[spans, S];
spans are numbered by width, then by start. `inner` is the symbol that a binary rule or a word makes, `outer` the one
that the rule above sees, after at most one unary rule. Kernels work on the sentences block, block + count, …

`sum_cfgs` keeps two copies of the chart, in which all spans with the same start, or the same end, and the same symbol
lie side by side: what two symbols give together over all splits of a span is then one product of two vectors, whatever
the number of rules that have them on the right. Rules are a list or, where there are many, a table. Cells hold numbers
relative to a scale of their own, the log of the largest; what is below 1e-300 of it counts as 0. Where scores are so
far apart that this could matter (`_APART`), and where nothing is left, the value is NaN, for `sweep_cfgs` with LOG.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.semiring import total, weights
from isogloss.structures._numba.spans import dot, normalise, span_at

__all__ = ["sum_cfgs", "sweep_cfgs"]

_APART = 60.0
"""Scores of this size and more are not multiplied as probabilities."""
_DENSE = 4
"""Where a fourth of all combinations of left-hand and right-hand sides, or more, are rules, they lie in a table."""


@njit(cache=True, nogil=True)
def _apart(scores, first, last):
    """Whether some score is too large, or too small, to be multiplied as a probability."""
    widest = 0.0
    for t in range(first, last):
        if scores[t] > -np.inf:
            widest = max(widest, abs(scores[t]))
    return widest > _APART


@njit(cache=True, nogil=True)
def _stretch(n, i, j, symbols, m_top, left, right, ranges, f, one, other):
    """Left and right parts of all splits of a span, times what their scales are beside the largest; returns that."""
    size = n + 1
    high = -np.inf
    for k in range(i + 1, j):
        high = max(high, m_top[i, k] + m_top[k, j])
    if high == -np.inf:
        return high
    for k in range(i + 1, j):
        f[k] = np.exp(m_top[i, k] + m_top[k, j] - high)
    for a in range(symbols):
        at, to = (i * symbols + a) * size, a * size
        for k in range(ranges[0, i, a], min(ranges[1, i, a], j - 1) + 1):
            one[to + k] = left[at + k] * f[k]
        if len(other):
            at = (j * symbols + a) * size
            for k in range(max(ranges[2, j, a], i + 1), ranges[3, j, a] + 1):
                other[to + k] = right[at + k] * f[k]
    return high


@njit(cache=True, nogil=True, inline="always")
def _splits(i, j, b, c, ranges):
    """The first and the last place at which b may end and c begin."""
    return max(ranges[0, i, b], max(ranges[2, j, c], i + 1)), min(min(ranges[1, i, b], j - 1), ranges[3, j, c])


@njit(cache=True, nogil=True, error_model="numpy")
def _inside(n, symbols, rules, pairs, firsts, starts, parents, table, masses, lone, upper, lower, factors, f, one,
            charts, ranges, inner, m_own, m_top, high):  # fmt: skip
    """Fill the charts; log Z, −∞ where nothing is left."""
    size, none, dense = n + 1, np.empty(0), len(table) > 0
    left, right = charts[0], charts[1]
    row, top = np.empty(symbols), np.empty(symbols)
    for j in range(1, size):
        for i in range(j - 1, -1, -1):
            s = span_at(i, j, n)
            scale = 0.0
            if j - i == 1:
                for a in range(symbols):
                    row[a] = factors[0, s, a]
            else:
                row[:] = 0.0
                scale = _stretch(n, i, j, symbols, m_top, left, right, ranges, f, one, none)
                if scale > -np.inf:
                    masses[: len(masses) if dense else 0] = 0.0
                    for b in range(symbols):
                        if ranges[0, i, b] >= j:
                            continue
                        for p in range(firsts[b], firsts[b + 1]):
                            c = pairs[p, 1]
                            low, last = _splits(i, j, b, c, ranges)
                            if low > last:
                                continue
                            mass = dot(one, b * size + low, right, (j * symbols + c) * size + low, last - low + 1)
                            if dense:
                                masses[p] = mass
                                continue
                            for q in range(starts[p], starts[p + 1]):
                                row[parents[q]] += rules[q] * mass
                    for a in range(len(table)):
                        row[a] = dot(table[a], 0, masses, 0, len(masses))
                    for a in range(symbols):
                        row[a] *= factors[0, s, a]
            high[s] = scale
            m_own[s] = scale + normalise(row) if scale > -np.inf else -np.inf
            m_top[i, j] = m_own[s]
            if m_own[s] == -np.inf:
                inner[s] = 0.0
                continue
            inner[s] = row
            for a in range(symbols):
                top[a] = row[a]
            if len(lone):
                for q in range(len(lone)):
                    top[upper[q]] += lone[q] * row[lower[q]]
                for a in range(symbols):
                    top[a] *= factors[1, s, a]
                m_top[i, j] = m_own[s] + normalise(top)
                if m_top[i, j] == -np.inf:
                    continue
            for a in range(symbols):
                if top[a] > 0.0:
                    left[(i * symbols + a) * size + j] = top[a]
                    right[(j * symbols + a) * size + i] = top[a]
                    ranges[0, i, a], ranges[1, i, a] = min(ranges[0, i, a], j), j
                    ranges[2, j, a], ranges[3, j, a] = i, max(ranges[3, j, a], i)
    if m_top[0, n] == -np.inf:
        return -np.inf
    mass = 0.0
    for a in range(symbols):
        mass += left[a * size + n]
    return m_top[0, n] + np.log(mass)


@njit(cache=True, nogil=True, error_model="numpy")
def _outside(n, symbols, rules, pairs, starts, parents, table, uses, masses, lone, upper, lower, factors, f, one, other,
             charts, ranges, inner, m_own, m_top, high, value, least, counts, lone_counts, cells, outer):  # fmt: skip
    """Posteriors from the charts; an outside number is what its inside number is to be multiplied with.

    With a `table` of rules, `uses` is raised by their expected numbers of uses, less their own weight; with a list,
    `counts` is.
    """
    size, dense = n + 1, len(table) > 0
    left, right, out_left, out_right = charts[0], charts[1], charts[2], charts[3]
    out, below, sums = np.empty(symbols), np.empty(symbols), np.zeros(len(pairs))
    touched, pair_of = np.empty(len(parents) + 1, np.int64), np.empty(len(parents), np.int64)
    for p in range(len(pairs)):
        pair_of[starts[p] : starts[p + 1]] = p
    by_parent = np.argsort(parents, kind="mergesort")
    bounds = np.searchsorted(parents[by_parent], np.arange(symbols + 1))
    for i in range(n):
        for j in range(n, i, -1):
            s = span_at(i, j, n)
            if m_top[i, j] == -np.inf:
                continue
            mass = 0.0
            for a in range(symbols):
                at, to = (i * symbols + a) * size + j, (j * symbols + a) * size + i
                out[a] = np.exp(m_top[0, n] - value) if j - i == n else out_left[at] + out_right[to]
                mass += left[at] * out[a]
            if mass < least:
                continue
            if len(lone):
                for a in range(symbols):
                    outer[s, a] = left[(i * symbols + a) * size + j] * out[a]
                share = np.exp(m_own[s] - m_top[i, j])
                for a in range(symbols):
                    out[a] *= factors[1, s, a] * share
                    below[a] = out[a]
                for q in range(len(lone)):
                    passed = out[upper[q]] * lone[q]
                    below[lower[q]] += passed
                    lone_counts[q] += passed * inner[s, lower[q]]
            else:
                for a in range(symbols):
                    below[a] = out[a]
            for a in range(symbols):
                cells[s, a] = inner[s, a] * below[a]
            if j - i == 1:
                continue
            share = np.exp(high[s] - m_own[s])
            for a in range(symbols):
                below[a] *= factors[0, s, a] * share if cells[s, a] >= least else 0.0
            _stretch(n, i, j, symbols, m_top, left, right, ranges, f, one, other)
            found = 0
            if dense:
                found = len(pairs)
                for a in range(len(table)):
                    for p in range(found):
                        sums[p] += table[a, p] * below[a]
            for a in range(0 if dense else symbols):
                if below[a] > 0.0:
                    for t in range(bounds[a], bounds[a + 1]):
                        p = pair_of[by_parent[t]]
                        if sums[p] == 0.0:
                            touched[found] = p
                            found += 1
                        sums[p] += rules[by_parent[t]] * below[a]
            for t in range(found):
                p = t if dense else touched[t]
                passed, sums[p], masses[p] = sums[p], 0.0, 0.0
                b, c = pairs[p, 0], pairs[p, 1]
                low, last = _splits(i, j, b, c, ranges)
                if low > last or passed == 0.0:
                    continue
                at, to = b * size, c * size
                mass = dot(one, at + low, right, (j * symbols + c) * size + low, last - low + 1)
                if mass == 0.0:
                    continue
                masses[p] = mass
                for q in range(0 if dense else starts[p], 0 if dense else starts[p + 1]):
                    counts[q] += rules[q] * below[parents[q]] * mass
                row, column = (i * symbols + b) * size, (j * symbols + c) * size
                for k in range(low, last + 1):
                    out_left[row + k] += passed * other[to + k]
                for k in range(low, last + 1):
                    out_right[column + k] += passed * one[at + k]
            for a in range(len(table)):
                for p in range(len(pairs)):
                    uses[a, p] += below[a] * masses[p]


@njit(cache=True, nogil=True)
def sum_cfgs(block, count, scores, offsets, lengths, symbols, order, pairs, starts, parents, upper, lower, least,
             grad, values):  # fmt: skip
    """log Z and marginals of many sentences in scaled probabilities; NaN where these might not fit.

    Parameters
    ----------
    scores, grad : float64[n_values]
        Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``; `grad` is overwritten.
    lengths : int64[n_sentences]
    symbols : int
    order, parents : int64[R]
        The number of each binary rule, sorted by its right-hand side, and its left-hand side.
    pairs : int64[P, 2]
        Right-hand sides, each once; the rules of pair p are starts[p] … starts[p + 1] - 1 of `order`.
    upper, lower : int64[U]
        Both sides of each unary rule.
    least : float
        Symbols over spans with less posterior are not followed further down.
    values : float64[n_sentences]
        Overwritten with log Z.
    """
    binary, unary = len(order), len(upper)
    rules, lone = np.empty(binary), np.empty(unary)
    counts, lone_counts = np.empty(binary), np.empty(unary)
    tops = 0
    for q in range(binary):
        tops = max(tops, parents[q] + 1)
    if binary * _DENSE < tops * len(pairs):
        tops = 0
    table, uses, masses = np.zeros((tops, len(pairs))), np.empty((tops, len(pairs))), np.zeros(len(pairs))
    firsts = np.searchsorted(pairs[:, 0], np.arange(symbols + 1))
    for s in range(block, len(lengths), count):
        n, first = lengths[s], offsets[s]
        size, spans = n + 1, n * (n + 1) // 2
        grad[first : offsets[s + 1]] = 0.0
        if n == 0:
            values[s] = 0.0
            continue
        values[s] = np.nan
        if _apart(scores, first, offsets[s + 1]):
            continue
        for q in range(binary):
            rules[q] = np.exp(scores[first + order[q]])
        for p in range(len(pairs) if tops else 0):
            for q in range(starts[p], starts[p + 1]):
                table[parents[q], p] = rules[q]
        for q in range(unary):
            lone[q] = np.exp(scores[first + binary + q])
        layers = 2 if unary else 1
        at = first + binary + unary
        factors = np.exp(scores[at : at + layers * spans * symbols]).reshape((layers, spans, symbols))
        charts, ranges = np.zeros((4, size * symbols * size)), np.empty((4, size, symbols), np.int64)
        ranges[0], ranges[1], ranges[2], ranges[3] = size, -1, size, -1
        inner, m_own, m_top = np.empty((spans, symbols)), np.empty(spans), np.full((size, size), -np.inf)
        f, one, other, high = np.empty(size), np.empty(symbols * size), np.empty(symbols * size), np.empty(spans)
        value = _inside(n, symbols, rules, pairs, firsts, starts, parents, table, masses, lone, upper, lower, factors,
                        f, one, charts, ranges, inner, m_own, m_top, high)  # fmt: skip
        if value == -np.inf:
            continue
        values[s] = value
        counts[:], lone_counts[:], uses[:] = 0.0, 0.0, 0.0
        cells = grad[at : at + spans * symbols].reshape((spans, symbols))
        outer = cells
        if unary:
            outer = grad[at + spans * symbols : at + 2 * spans * symbols].reshape((spans, symbols))
        _outside(n, symbols, rules, pairs, starts, parents, table, uses, masses, lone, upper, lower, factors, f, one,
                 other, charts, ranges, inner, m_own, m_top, high, value, least, counts, lone_counts, cells,
                 outer)  # fmt: skip
        for p in range(len(pairs) if tops else 0):
            for q in range(starts[p], starts[p + 1]):
                counts[q] = rules[q] * uses[parents[q], p]
        for q in range(binary):
            grad[first + order[q]] = counts[q]
        for q in range(unary):
            grad[first + binary + q] = lone_counts[q]


@njit(cache=True, nogil=True)
def _options(i, j, n, a, top, binary_at, rules, lefts, rights, starts, scores, x):
    """Scores of all ways to make a symbol by a binary rule, rule by rule and split by split; how many they are."""
    t = 0
    for q in range(starts[a], starts[a + 1]):
        score = scores[binary_at + rules[q]]
        for k in range(i + 1, j):
            x[t] = score + top[i, k, lefts[q]] + top[k, j, rights[q]]
            t += 1
    return t


@njit(cache=True, nogil=True)
def sweep_cfgs(block, count, sr, scores, offsets, lengths, symbols, rules, lefts, rights, starts, lone, lowers,
               lone_starts, u, draws, grad, values):  # fmt: skip
    """⊕ over the trees of many sentences, and its derivative by the scores, in logarithms.

    Parameters
    ----------
    sr : semiring
    scores, offsets, lengths, symbols, grad, values
        As for `sum_cfgs`; sentences with a value other than NaN are left alone.
    rules, lefts, rights : int64[R]
        The number of each binary rule, sorted by its left-hand side, and its right-hand side; those of symbol a are
        starts[a] … starts[a + 1] - 1.
    lone, lowers, lone_starts
        The same for unary rules.
    u : float64[...]
        With DRAW, sentence *s* reads at most 4n numbers from ``u[draws[s]]`` on.
    """
    binary, unary, most = len(rules), len(lone), 0
    for a in range(symbols):
        most = max(most, starts[a + 1] - starts[a])
    longest = 0
    for s in range(block, len(lengths), count):
        longest = max(longest, lengths[s])
    x, w = np.empty(max(most * longest, unary + 1, symbols)), np.empty(max(most * longest, unary + 1, symbols))
    for s in range(block, len(lengths), count):
        n, first = lengths[s], offsets[s]
        if not np.isnan(values[s]):
            continue
        grad[first : offsets[s + 1]] = 0.0
        if n == 0:
            values[s] = 0.0
            continue
        spans = n * (n + 1) // 2
        inner_at = first + binary + unary
        outer_at = inner_at + spans * symbols
        inner, top = np.full((n + 1, n + 1, symbols), -np.inf), np.full((n + 1, n + 1, symbols), -np.inf)
        for width in range(1, n + 1):
            for i in range(n - width + 1):
                j = i + width
                at = span_at(i, j, n) * symbols
                for a in range(symbols):
                    made = 0.0
                    if width > 1:
                        used = _options(i, j, n, a, top, first, rules, lefts, rights, starts, scores, x)
                        made = total(sr, x[:used])
                    inner[i, j, a] = made + scores[inner_at + at + a]
                for a in range(symbols):
                    if unary == 0:
                        top[i, j, a] = inner[i, j, a]
                        continue
                    x[0] = inner[i, j, a]
                    used = 1
                    for q in range(lone_starts[a], lone_starts[a + 1]):
                        x[used] = scores[first + binary + lone[q]] + inner[i, j, lowers[q]]
                        used += 1
                    top[i, j, a] = total(sr, x[:used]) + scores[outer_at + at + a]
        values[s] = total(sr, top[0, n])
        if values[s] == -np.inf:
            continue
        above, below = np.zeros((n + 1, n + 1, symbols)), np.zeros(symbols)
        drawn = draws[s]
        weights(sr, top[0, n], above[0, n], u[drawn] if len(u) else 0.0)
        drawn += 1
        for width in range(n, 0, -1):
            for i in range(n - width + 1):
                j = i + width
                at = span_at(i, j, n) * symbols
                below[:] = 0.0
                for a in range(symbols):
                    mass = above[i, j, a]
                    if mass == 0.0:
                        continue
                    if unary == 0:
                        below[a] = mass
                        continue
                    grad[outer_at + at + a] = mass
                    x[0] = inner[i, j, a]
                    used = 1
                    for q in range(lone_starts[a], lone_starts[a + 1]):
                        x[used] = scores[first + binary + lone[q]] + inner[i, j, lowers[q]]
                        used += 1
                    weights(sr, x[:used], w[:used], u[drawn] if len(u) else 0.0)
                    drawn += 1
                    below[a] += mass * w[0]
                    for q in range(lone_starts[a], lone_starts[a + 1]):
                        share = mass * w[1 + q - lone_starts[a]]
                        grad[first + binary + lone[q]] += share
                        below[lowers[q]] += share
                for a in range(symbols):
                    mass = below[a]
                    if mass == 0.0:
                        continue
                    grad[inner_at + at + a] = mass
                    if width == 1:
                        continue
                    used = _options(i, j, n, a, top, first, rules, lefts, rights, starts, scores, x)
                    weights(sr, x[:used], w[:used], u[drawn] if len(u) else 0.0)
                    drawn += 1
                    t = 0
                    for q in range(starts[a], starts[a + 1]):
                        for k in range(i + 1, j):
                            if w[t] > 0.0:
                                share = mass * w[t]
                                grad[first + rules[q]] += share
                                above[i, k, lefts[q]] += share
                                above[k, j, rights[q]] += share
                            t += 1
