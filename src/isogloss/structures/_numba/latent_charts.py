"""Charts of grammars whose symbols have hidden states, over the cells that a coarser grammar has left.

Weights are blocks as in `isogloss.structures._numba.latent_trees`. A cell has one number for each state; those of a
span share a scale. Kernels work on the sentences block, block + count, … of a batch.
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
def _lay_out(spans, sizes, allowed, cells, lists, bounds):
    """Where the states of each cell that is left begin, and the symbols of each span; how much room all take."""
    at, listed = 0, 0
    for s in range(spans):
        bounds[s] = listed
        for a in range(len(sizes)):
            cells[s, a] = -1
            if allowed[s, a]:
                cells[s, a] = at
                at += sizes[a]
                lists[listed] = a
                listed += 1
    bounds[spans] = listed
    return at


@njit(cache=True, nogil=True, error_model="numpy")
def _inside(n, sizes, states, rules, cells, lists, bounds, words, chart, scales, pair):
    """Fill the charts; log Z, −∞ where nothing is left."""
    pairs, starts, parents, numbers, of_binary, binary, upper, lower, of_lone, lone, stay, root = rules
    inner, top = chart[0], chart[1]
    made, seen = cells
    symbols = len(sizes)
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            s = span_at(i, j, n)
            scale = 0.0
            if j - i == 1:
                for t in range(bounds[0][s], bounds[0][s + 1]):
                    a = lists[0][t]
                    for x in range(sizes[a]):
                        inner[made[s, a] + x] = words[i, states[a] + x]
            else:
                scale = -np.inf
                for k in range(i + 1, j):
                    scale = max(scale, scales[1][span_at(i, k, n)] + scales[1][span_at(k, j, n)])
                if bounds[0][s] < bounds[0][s + 1] and scale > -np.inf:
                    for k in range(i + 1, j):
                        one, other = span_at(i, k, n), span_at(k, j, n)
                        share = np.exp(scales[1][one] + scales[1][other] - scale)
                        if share == 0.0:
                            continue
                        for t in range(bounds[1][one], bounds[1][one + 1]):
                            b = lists[1][t]
                            for r in range(bounds[1][other], bounds[1][other + 1]):
                                c = lists[1][r]
                                p = pairs[b * symbols + c]
                                if p < 0:
                                    continue
                                wide, ready = sizes[b] * sizes[c], False
                                for q in range(starts[p], starts[p + 1]):
                                    a = parents[q]
                                    if made[s, a] < 0:
                                        continue
                                    if not ready:
                                        for y in range(sizes[b]):
                                            mine = share * top[seen[one, b] + y]
                                            for z in range(sizes[c]):
                                                pair[y * sizes[c] + z] = mine * top[seen[other, c] + z]
                                        ready = True
                                    block = of_binary[numbers[q]]
                                    for x in range(sizes[a]):
                                        inner[made[s, a] + x] += dot(binary, block + x * wide, pair, 0, wide)
            scales[2][s] = scale
            scales[0][s], scales[1][s] = -np.inf, -np.inf
            if bounds[0][s] == bounds[0][s + 1] or scale == -np.inf:
                continue
            first, last = made[s, lists[0][bounds[0][s]]], lists[0][bounds[0][s + 1] - 1]
            scales[0][s] = scale + _rescale(inner, first, made[s, last] + sizes[last])
            if scales[0][s] == -np.inf or bounds[1][s] == bounds[1][s + 1]:
                continue
            for t in range(bounds[1][s], bounds[1][s + 1]):
                a = lists[1][t]
                if made[s, a] >= 0:
                    for x in range(sizes[a]):
                        top[seen[s, a] + x] = inner[made[s, a] + x] * stay[states[a] + x]
            for q in range(len(upper)):
                a, b = upper[q], lower[q]
                if seen[s, a] >= 0 and made[s, b] >= 0:
                    for x in range(sizes[a]):
                        top[seen[s, a] + x] += dot(lone, of_lone[q] + x * sizes[b], inner, made[s, b], sizes[b])
            first, last = seen[s, lists[1][bounds[1][s]]], lists[1][bounds[1][s + 1] - 1]
            scales[1][s] = scales[0][s] + _rescale(top, first, seen[s, last] + sizes[last])
    whole = n * (n + 1) // 2 - 1
    mass = 0.0
    for t in range(bounds[1][whole], bounds[1][whole + 1]):
        a = lists[1][t]
        for x in range(sizes[a]):
            mass += top[seen[whole, a] + x] * root[states[a] + x]
    return scales[1][whole] + np.log(mass) if mass > 0.0 else -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _outside(n, sizes, states, rules, cells, lists, bounds, chart, scales, pair, value, out):
    """Posteriors from the charts; an outside number is what its inside number is to be multiplied with."""
    pairs, starts, parents, numbers, of_binary, binary, upper, lower, of_lone, lone, stay, root = rules
    inner, top, below, above = chart
    made, seen = cells
    symbols = len(sizes)
    whole = n * (n + 1) // 2 - 1
    share = np.exp(scales[1][whole] - value)
    for t in range(bounds[1][whole], bounds[1][whole + 1]):
        a = lists[1][t]
        for x in range(sizes[a]):
            above[seen[whole, a] + x] = root[states[a] + x] * share
    for i in range(n):
        for j in range(n, i, -1):
            s = span_at(i, j, n)
            if scales[1][s] == -np.inf:
                continue
            first, last = seen[s, lists[1][bounds[1][s]]], lists[1][bounds[1][s + 1] - 1]
            if dot(top, first, above, first, seen[s, last] + sizes[last] - first) < NEGLIGIBLE:
                continue
            share = np.exp(scales[0][s] - scales[1][s])
            for t in range(bounds[1][s], bounds[1][s + 1]):
                a = lists[1][t]
                mass = 0.0
                for x in range(sizes[a]):
                    above[seen[s, a] + x] *= share
                    if made[s, a] >= 0:
                        passed = above[seen[s, a] + x] * stay[states[a] + x]
                        below[made[s, a] + x] += passed
                        mass += passed * inner[made[s, a] + x]
                out[1][s, a] = mass
            for q in range(len(upper)):
                a, b = upper[q], lower[q]
                if seen[s, a] >= 0 and made[s, b] >= 0:
                    mass = 0.0
                    for x in range(sizes[a]):
                        mine, block = above[seen[s, a] + x], of_lone[q] + x * sizes[b]
                        for y in range(sizes[b]):
                            passed = mine * lone[block + y]
                            below[made[s, b] + y] += passed
                            mass += passed * inner[made[s, b] + y]
                    out[2][s, q] = mass
            for t in range(bounds[0][s], bounds[0][s + 1]):
                a = lists[0][t]
                out[0][s, a] = dot(inner, made[s, a], below, made[s, a], sizes[a])
            if j - i == 1:
                continue
            for k in range(i + 1, j):
                one, other = span_at(i, k, n), span_at(k, j, n)
                share = np.exp(scales[1][one] + scales[1][other] - scales[0][s])
                if share == 0.0 or scales[1][one] == -np.inf or scales[1][other] == -np.inf:
                    continue
                for t in range(bounds[1][one], bounds[1][one + 1]):
                    b = lists[1][t]
                    for r in range(bounds[1][other], bounds[1][other + 1]):
                        c = lists[1][r]
                        p = pairs[b * symbols + c]
                        if p < 0:
                            continue
                        wide, used = sizes[b] * sizes[c], False
                        for q in range(starts[p], starts[p + 1]):
                            a = parents[q]
                            if made[s, a] < 0 or out[0][s, a] < NEGLIGIBLE:
                                continue
                            if not used:
                                pair[:wide] = 0.0
                                used = True
                            block = of_binary[numbers[q]]
                            for x in range(sizes[a]):
                                mine = below[made[s, a] + x] * share
                                for y in range(wide):
                                    pair[y] += mine * binary[block + y]
                                block += wide
                        if used:
                            for y in range(sizes[b]):
                                mine, passed = top[seen[one, b] + y], 0.0
                                for z in range(sizes[c]):
                                    passed += pair[y * sizes[c] + z] * top[seen[other, c] + z]
                                    above[seen[other, c] + z] += pair[y * sizes[c] + z] * mine
                                above[seen[one, b] + y] += passed


@njit(cache=True, nogil=True)
def latent_posteriors(block, count, lengths, firsts, offsets, tokens, table, sizes, states, pairs, starts, parents,
                      numbers, of_binary, binary, upper, lower, of_lone, lone, stay, root, made_ok, seen_ok, made,
                      stays, changes, values):  # fmt: skip
    """log Z of many sentences over the cells that are left, and posteriors, summed over states.

    Parameters
    ----------
    lengths, firsts, offsets : int64[n_sentences]
        Words of each sentence, where they begin among all words, and where its spans begin among all spans.
    tokens : int64[n_words]
        The row of each word in `table`, float64[n_types, n_states]: its score with each state of a tag.
    sizes, states, of_binary, binary, of_lone, lone, stay, root
        The grammar, as in `sum_annotations`.
    pairs : int64[S · S]
        The number of a right-hand side, or −1; rules starts[p] … starts[p + 1] - 1 have it, with `parents` on the left
        and the number `numbers`.
    upper, lower : int64[U]
    made_ok, seen_ok : bool[n_spans, S]
        Which symbols may be made, and be seen, over each span.
    made, stays : float64[n_spans, S]
        Overwritten with the posteriors of a symbol made over a span, and of one that is made and seen.
    changes : float64[n_spans, U]
        Overwritten with the posteriors of unary rules over spans.
    values : float64[n_sentences]
        Overwritten with log Z; −∞ where the cells make no tree, and posteriors are 0.
    """
    rules = (pairs, starts, parents, numbers, of_binary, binary, upper, lower, of_lone, lone, stay, root)
    symbols, widest = len(sizes), 1
    for a in range(symbols):
        widest = max(widest, sizes[a])
    pair = np.empty(widest * widest)
    for s in range(block, len(lengths), count):
        n, first = lengths[s], offsets[s]
        spans = n * (n + 1) // 2
        here = slice(first, first + spans)
        made[here], stays[here], changes[here] = 0.0, 0.0, 0.0
        values[s] = 0.0
        if n == 0:
            continue
        cells = (np.empty((spans, symbols), np.int64), np.empty((spans, symbols), np.int64))
        lists = (np.empty(spans * symbols, np.int64), np.empty(spans * symbols, np.int64))
        bounds = (np.empty(spans + 1, np.int64), np.empty(spans + 1, np.int64))
        inner = _lay_out(spans, sizes, made_ok[here], cells[0], lists[0], bounds[0])
        outer = _lay_out(spans, sizes, seen_ok[here], cells[1], lists[1], bounds[1])
        chart = (np.zeros(inner), np.zeros(outer), np.zeros(inner), np.zeros(outer))
        scales = (np.empty(spans), np.empty(spans), np.empty(spans))
        words = np.empty((n, table.shape[1]))
        for i in range(n):
            words[i] = table[tokens[firsts[s] + i]]
        values[s] = _inside(n, sizes, states, rules, cells, lists, bounds, words, chart, scales, pair)
        if values[s] > -np.inf:
            out = (made[here], stays[here], changes[here])
            _outside(n, sizes, states, rules, cells, lists, bounds, chart, scales, pair, values[s], out)
