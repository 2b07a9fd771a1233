"""Charts of grammars whose symbols have hidden states, over the cells that are left.

Weights are blocks as in `isogloss.structures._numba.latent_trees`. Cells are listed span by span: the symbols that may
be made over it, and those that may be seen from above. A cell has one number for each state; those of a span share a
scale. Kernels work on the sentences block, block + count, … of a batch.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.spans import dot, span_at

__all__ = ["latent_posteriors"]

NEGLIGIBLE = 1e-14
"""Spans with less posterior are not followed further down."""


@njit(cache=True, nogil=True)
def _rescale(values, first, last):
    """Divide by the largest; its log, −∞ where all are 0."""
    top = 0.0
    for t in range(first, last):
        top = max(top, values[t])
    if top == 0.0:
        return -np.inf
    share = 1.0 / top
    for t in range(first, last):
        values[t] *= share
    return np.log(top)


@njit(cache=True, nogil=True)
def _places(sizes, bounds, symbols, first, last):
    """Where the states of each cell of a sentence begin, and behind the last of them."""
    begin = bounds[first]
    places = np.empty(bounds[last] - begin + 1, np.int64)
    at = 0
    for t in range(bounds[last] - begin):
        places[t] = at
        at += sizes[symbols[begin + t]]
    places[-1] = at
    return places


@njit(cache=True, nogil=True, error_model="numpy")
def _multiply(s, one, other, share, sizes, rules, lists, row, chart, pair):
    """Add what two neighbouring spans make together to the span of both."""
    pairs, starts, parents, numbers, of_binary, binary = rules
    inner, top = chart
    begins, symbols, places = lists
    many = len(sizes)
    for t in range(begins[one], begins[one + 1]):
        b = symbols[t]
        left, k_left = places[t], sizes[b]
        for r in range(begins[other], begins[other + 1]):
            p = pairs[b * many + symbols[r]]
            if p < 0:
                continue
            right, k_right = places[r], sizes[symbols[r]]
            wide, ready = k_left * k_right, False
            for q in range(starts[p], starts[p + 1]):
                at = row[parents[q]]
                if at < 0:
                    continue
                if not ready:
                    for y in range(k_left):
                        mine = share * top[left + y]
                        for z in range(k_right):
                            pair[y * k_right + z] = mine * top[right + z]
                    ready = True
                block = of_binary[numbers[q]]
                for x in range(sizes[parents[q]]):
                    inner[at + x] += dot(binary, block + x * wide, pair, 0, wide)


@njit(cache=True, nogil=True, error_model="numpy")
def _inside(n, sizes, states, rules, single, lists, row, words, chart, scales, pair):
    """Fill the charts; log Z, −∞ where nothing is left."""
    lone_starts, lower, of_lone, lone, stay = single
    inner, top = chart[0], chart[1]
    (begins, symbols, places), seen = lists
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            s = span_at(i, j, n)
            scales[0][s], scales[1][s] = -np.inf, -np.inf
            first, last = begins[s], begins[s + 1]
            if first == last:
                continue
            for t in range(first, last):
                row[symbols[t]] = places[t]
            scale = 0.0
            if j - i == 1:
                for t in range(first, last):
                    a = symbols[t]
                    for x in range(sizes[a]):
                        inner[places[t] + x] = words[i, states[a] + x]
            else:
                scale = -np.inf
                for k in range(i + 1, j):
                    scale = max(scale, scales[1][span_at(i, k, n)] + scales[1][span_at(k, j, n)])
                for k in range(i + 1, j):
                    one, other = span_at(i, k, n), span_at(k, j, n)
                    far = scales[1][one] + scales[1][other]
                    if far > -np.inf:
                        _multiply(s, one, other, np.exp(far - scale), sizes, rules, seen, row, (inner, top), pair)
            if scale > -np.inf:
                scales[0][s] = scale + _rescale(inner, places[first], places[last])
            if scales[0][s] > -np.inf and seen[0][s] < seen[0][s + 1]:
                for t in range(seen[0][s], seen[0][s + 1]):
                    a, to = seen[1][t], seen[2][t]
                    if row[a] >= 0:
                        for x in range(sizes[a]):
                            top[to + x] = inner[row[a] + x] * stay[states[a] + x]
                    for q in range(lone_starts[a], lone_starts[a + 1]):
                        b = lower[q]
                        if row[b] >= 0:
                            for x in range(sizes[a]):
                                top[to + x] += dot(lone, of_lone[q] + x * sizes[b], inner, row[b], sizes[b])
                scales[1][s] = scales[0][s] + _rescale(top, seen[2][seen[0][s]], seen[2][seen[0][s + 1]])
            for t in range(first, last):
                row[symbols[t]] = -1
    return scales[1][n * (n + 1) // 2 - 1]


@njit(cache=True, nogil=True, error_model="numpy")
def _divide(one, other, share, sizes, rules, lists, row, live, chart, pair):
    """Hand down what the span of both has to two neighbouring spans."""
    pairs, starts, parents, numbers, of_binary, binary = rules
    below, top, above = chart
    begins, symbols, places = lists
    many = len(sizes)
    for t in range(begins[one], begins[one + 1]):
        b = symbols[t]
        left, k_left = places[t], sizes[b]
        for r in range(begins[other], begins[other + 1]):
            p = pairs[b * many + symbols[r]]
            if p < 0:
                continue
            right, k_right = places[r], sizes[symbols[r]]
            wide, used = k_left * k_right, False
            for q in range(starts[p], starts[p + 1]):
                a = parents[q]
                if row[a] < 0 or not live[a]:
                    continue
                if not used:
                    for y in range(wide):
                        pair[y] = 0.0
                    used = True
                block = of_binary[numbers[q]]
                for x in range(sizes[a]):
                    mine = below[row[a] + x] * share
                    for y in range(wide):
                        pair[y] += mine * binary[block + y]
                    block += wide
            if used:
                for y in range(k_left):
                    mine, passed = top[left + y], 0.0
                    for z in range(k_right):
                        passed += pair[y * k_right + z] * top[right + z]
                        above[right + z] += pair[y * k_right + z] * mine
                    above[left + y] += passed


@njit(cache=True, nogil=True, error_model="numpy")
def _outside(n, sizes, states, rules, single, lists, row, live, root, chart, scales, pair, value, out):
    """Posteriors from the charts; an outside number is what its inside number is to be multiplied with."""
    lone_starts, lower, of_lone, lone, stay = single
    inner, top, below, above = chart
    (begins, symbols, places), seen = lists
    made, viewed, of_symbol, of_change, part, totals = out
    whole = n * (n + 1) // 2 - 1
    share = np.exp(scales[1][whole] - value)
    for t in range(seen[0][whole], seen[0][whole + 1]):
        a = seen[1][t]
        for x in range(sizes[a]):
            above[seen[2][t] + x] = root[states[a] + x] * share
    for i in range(n):
        for j in range(n, i, -1):
            s = span_at(i, j, n)
            if scales[1][s] == -np.inf:
                continue
            first, last = seen[2][seen[0][s]], seen[2][seen[0][s + 1]]
            if dot(top, first, above, first, last - first) < NEGLIGIBLE:
                continue
            for t in range(begins[s], begins[s + 1]):
                row[symbols[t]] = places[t]
            share = np.exp(scales[0][s] - scales[1][s])
            for t in range(seen[0][s], seen[0][s + 1]):
                a, to = seen[1][t], seen[2][t]
                viewed[t] = dot(top, to, above, to, sizes[a])
                mass = 0.0
                for x in range(sizes[a]):
                    above[to + x] *= share
                    if row[a] >= 0:
                        passed = above[to + x] * stay[states[a] + x]
                        below[row[a] + x] += passed
                        mass += passed * inner[row[a] + x]
                if totals.shape[1] and of_symbol[a] >= 0:
                    totals[s, of_symbol[a]] += part * mass
                for q in range(lone_starts[a], lone_starts[a + 1]):
                    b = lower[q]
                    if row[b] < 0:
                        continue
                    mass = 0.0
                    for x in range(sizes[a]):
                        mine, block = above[to + x], of_lone[q] + x * sizes[b]
                        for y in range(sizes[b]):
                            passed = mine * lone[block + y]
                            below[row[b] + y] += passed
                            mass += passed * inner[row[b] + y]
                    if totals.shape[1]:
                        totals[s, of_change[q]] += part * mass
            for t in range(begins[s], begins[s + 1]):
                made[t] = dot(inner, places[t], below, places[t], sizes[symbols[t]])
                live[symbols[t]] = made[t] >= NEGLIGIBLE
            for k in range(i + 1, j):
                one, other = span_at(i, k, n), span_at(k, j, n)
                if scales[1][one] == -np.inf or scales[1][other] == -np.inf:
                    continue
                share = np.exp(scales[1][one] + scales[1][other] - scales[0][s])
                if share > 0.0:
                    _divide(one, other, share, sizes, rules, seen, row, live, (below, top, above), pair)
            for t in range(begins[s], begins[s + 1]):
                row[symbols[t]] = -1


@njit(cache=True, nogil=True)
def latent_posteriors(block, count, lengths, firsts, offsets, tokens, table, sizes, states, pairs, starts, parents,
                      numbers, of_binary, binary, lone_starts, lower, of_lone, lone, stay, root, made_bounds,
                      made_symbols, seen_bounds, seen_symbols, of_symbol, of_change, part, made, seen, totals,
                      values):  # fmt: skip
    """log Z of many sentences over the cells that are left, and posteriors, summed over states.

    Parameters
    ----------
    lengths, firsts, offsets : int64[n_sentences]
        Words of each sentence, where they begin among all words, and where its spans begin among all spans.
    tokens : int64[n_words]
        The row of each word in `table`, float64[n_types, n_states]: its score with each state of a tag.
    sizes, states, of_binary, binary, lone, stay, root
        The grammar, as in `sum_annotations`.
    pairs : int64[S · S]
        The number of a right-hand side, or −1; rules starts[p] … starts[p + 1] - 1 have it, with `parents` on the left
        and the number `numbers`.
    lone_starts, lower, of_lone : int64[...]
        Unary rules by their left-hand sides: those of symbol a are lone_starts[a] … lone_starts[a + 1] - 1, with the
        symbol on the right and the place of the block.
    made_bounds, made_symbols, seen_bounds, seen_symbols : int64[...]
        The symbols that may be made over span s are made_symbols[made_bounds[s]:made_bounds[s + 1]], ascending.
    of_symbol, of_change : int64[S], int64[U]
        The column of `totals` to which a symbol that is made and seen counts (−1 for none), and a unary rule, in the
        order of `lower`.
    part : float
        What is multiplied with posteriors before they are added to `totals`.
    made, seen : float64[n_cells]
        Overwritten with the posteriors of cells.
    totals : float64[n_spans, n_columns]
        Posteriors are added to it; without columns, none are.
    values : float64[n_sentences]
        Overwritten with log Z; −∞ where the cells make no tree, and posteriors are 0.
    """
    rules = (pairs, starts, parents, numbers, of_binary, binary)
    single = (lone_starts, lower, of_lone, lone, stay)
    widest = 1
    for a in range(len(sizes)):
        widest = max(widest, sizes[a])
    pair = np.empty(widest * widest)
    row, live = np.full(len(sizes), -1, np.int64), np.zeros(len(sizes), np.bool_)
    for s in range(block, len(lengths), count):
        n, first = lengths[s], offsets[s]
        spans = n * (n + 1) // 2
        last = first + spans
        own, others = made_bounds[first], seen_bounds[first]
        made[own : made_bounds[last]], seen[others : seen_bounds[last]] = 0.0, 0.0
        values[s] = 0.0
        if n == 0:
            continue
        lists = (
            (made_bounds[first : last + 1] - own, made_symbols[own : made_bounds[last]],
             _places(sizes, made_bounds, made_symbols, first, last)),
            (seen_bounds[first : last + 1] - others, seen_symbols[others : seen_bounds[last]],
             _places(sizes, seen_bounds, seen_symbols, first, last)),
        )  # fmt: skip
        inner, outer = lists[0][2][-1], lists[1][2][-1]
        chart = (np.zeros(inner), np.zeros(outer), np.zeros(inner), np.zeros(outer))
        scales = (np.empty(spans), np.empty(spans))
        words = np.empty((n, table.shape[1]))
        for i in range(n):
            words[i] = table[tokens[firsts[s] + i]]
        scale = _inside(n, sizes, states, rules, single, lists, row, words, chart, scales, pair)
        mass = 0.0
        for t in range(lists[1][0][spans - 1], lists[1][0][spans]):
            a = lists[1][1][t]
            mass += dot(chart[1], lists[1][2][t], root, states[a], sizes[a])
        values[s] = scale + np.log(mass) if mass > 0.0 and scale > -np.inf else -np.inf
        if values[s] > -np.inf:
            out = (made[own : made_bounds[last]], seen[others : seen_bounds[last]], of_symbol, of_change, part,
                   totals[first:last])  # fmt: skip
            _outside(n, sizes, states, rules, single, lists, row, live, root, chart, scales, pair, values[s],
                     out)  # fmt: skip
