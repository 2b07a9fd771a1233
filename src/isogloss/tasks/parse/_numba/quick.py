"""Scores of all links of many sentences by features that take few values, each looked up once.

A link has the weight of its code as it is and the weight of the code together with its direction and length
(`isogloss.features`). Where words differ in few ways, such as by their tags, the same codes come again and again: all
weights of each are laid side by side, ``weights[place : place + N_WEIGHTS]``, and links only add them up.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import key_of, mix
from isogloss.features._numba.table import find, room_for, seek
from isogloss.tasks.parse._numba.features import MOST_BETWEEN, N_BINS, PAD, bin_of, sides

__all__ = ["N_COUNTS", "N_PLACES", "N_WEIGHTS", "add_up", "sums_of_words", "weigh", "weigh_between"]

N_WEIGHTS = 2 * N_BINS + 1
N_COUNTS = 64
N_PLACES = 4 * 8 + 4 + 2
_ZERO = np.uint64(0)


@njit(cache=True, nogil=True)
def _number(values, out, first):
    """Number values by the order in which they come: `out`, where each comes first, and how many there are."""
    slots, numbers, used, zero, count = np.zeros(64, np.uint64), np.zeros(64, np.int64), 0, -1, 0
    for k in range(len(values)):
        key = mix(values[k])  # a bijection; 0 stays 0, which tables have no room for
        if key == _ZERO:
            if zero < 0:
                zero = count
                first[count] = k
                count += 1
            out[k] = zero
            continue
        slots, numbers = room_for(slots, numbers, used, 1)
        i = seek(slots, key)
        if slots[i] == _ZERO:
            slots[i], numbers[i] = key, count
            used += 1
            first[count] = k
            count += 1
        out[k] = numbers[i]
    return count


@njit(cache=True, nogil=True)
def sums_of_words(sentences, starts, lengths, codes, links, rows):
    """What the words of some sentences, with their roots, add to codes, by few numbers.

    Returns, for templates as heads and as children (2 · n_templates columns), tags and codes between: the numbers,
    int64[n_rows, 2 · n_templates + 2]; what each stands for, uint64[n_rows, 2 · n_templates + 2]; and how many there
    are of each.
    """
    templates, n_rows = len(links[0]), rows[-1]
    width = 2 * templates + 2
    sums = np.empty((width, n_rows), np.uint64)
    for k in range(len(sentences)):
        n, first = lengths[sentences[k]], starts[sentences[k]] + PAD
        heads, children = np.empty((n + 1, templates), np.uint64), np.empty((n + 1, templates), np.uint64)
        sides(codes, first, n, links[0], links[1], links[2], heads, children)
        for i in range(n + 1):
            for t in range(templates):
                sums[t, rows[k] + i], sums[templates + t, rows[k] + i] = heads[i, t], children[i, t]
            sums[width - 2, rows[k] + i], sums[width - 1, rows[k] + i] = codes[first + i, 2], codes[first + i, 4]
    numbers, stand_for = np.empty((n_rows, width), np.int64), np.empty((n_rows, width), np.uint64)
    counts, out, places = np.empty(width, np.int64), np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    for w in range(width):
        counts[w] = _number(sums[w], out, places)
        numbers[:, w] = out
        for v in range(counts[w]):
            stand_for[v, w] = sums[w, places[v]]
    return numbers, stand_for, counts


@njit(cache=True, nogil=True)
def _lay(table, mask, code, weights, place):
    """All weights of a code: as it is, and with each bin; 0 where there is none."""
    as_weights = table.view(np.float32)
    for b in range(N_WEIGHTS):
        i = find(table, mask, key_of(code, b))
        weights[place + b] = as_weights[2 * i + 1] if i >= 0 else np.float32(0.0)


@njit(cache=True, nogil=True)
def weigh(block, blocks, table, stand_for, counts, templates, begins, weights):
    """Weights of each template, by what it is as a head and as a child."""
    mask = np.uint64(len(table) // 2 - 1)
    for t in range(templates):
        wide = counts[templates + t]
        for h in range(block, counts[t], blocks):
            for c in range(wide):
                place = begins[t] + (h * wide + c) * N_WEIGHTS
                _lay(table, mask, mix(stand_for[h, t] + stand_for[c, templates + t]), weights, place)


@njit(cache=True, nogil=True)
def weigh_between(block, blocks, table, stand_for, counts, templates, dynamic, places, begins, weights):
    """Weights of what lies between, of how much of it there is, and of where a child of the root stands."""
    mask = np.uint64(len(table) // 2 - 1)
    tags, between = counts[2 * templates], counts[2 * templates + 1]
    for pair in range(block, tags * tags, blocks):
        p, c = stand_for[pair // tags, 2 * templates], stand_for[pair % tags, 2 * templates]
        both = p * places[0] + c * places[1]
        for b in range(between):
            code = mix(dynamic[0] + both + stand_for[b, 2 * templates + 1] * places[2])
            _lay(table, mask, code, weights, begins[templates] + (pair * between + b) * N_WEIGHTS)
        for count in range(N_COUNTS):
            code = mix(dynamic[1] + both + np.uint64(count + 1) * places[2])
            _lay(table, mask, code, weights, begins[templates + 1] + (pair * N_COUNTS + count) * N_WEIGHTS)
    for tag in range(block, tags, blocks):
        for place in range(N_PLACES):
            code = mix(dynamic[7] + stand_for[tag, 2 * templates] * places[0] + np.uint64(place) * places[1])
            _lay(table, mask, code, weights, begins[templates + 2] + (tag * N_PLACES + place) * N_WEIGHTS)


@njit(cache=True, nogil=True, inline="always")
def _add(total, weights, place, bin_):
    return (total + weights[place]) + weights[place + bin_]


@njit(cache=True, nogil=True)
def _link(p, c, n, numbers, row, counts, templates, begins, weights, seen, m, count):
    """The score of one link; `seen` has what lies between, in the order of `isogloss.tasks.parse._numba.features`."""
    bin_, total = bin_of(p, c), 0.0
    for t in range(templates):
        pair = numbers[row + p, t] * counts[templates + t] + numbers[row + c, templates + t]
        total = _add(total, weights, begins[t] + pair * N_WEIGHTS, bin_)
    tags, between = counts[2 * templates], counts[2 * templates + 1]
    both = numbers[row + p, 2 * templates] * tags + numbers[row + c, 2 * templates]
    for k in range(m):
        total = _add(total, weights, begins[templates] + (both * between + seen[k]) * N_WEIGHTS, bin_)
    total = _add(total, weights, begins[templates + 1] + (both * N_COUNTS + count) * N_WEIGHTS, bin_)
    if p == 0:
        place = numbers[row + c, 2 * templates] * N_PLACES + min(c, 4) * 8 + min(n - c, 4) + 1
        total = _add(total, weights, begins[templates + 2] + place * N_WEIGHTS, bin_)
    return total


@njit(cache=True, nogil=True)
def add_up(
    block, blocks, sentences, starts, lengths, kinds, rows, offsets, numbers, counts, templates, begins, weights, out
):  # fmt: skip
    """The score of every link, by child and then head, as `isogloss.structures.tree_parts.Candidates.all` has them."""
    seen, stamps = np.empty(MOST_BETWEEN, np.int64), np.zeros(counts[2 * templates + 1], np.int64)
    stamp = 0
    for k in range(block, len(sentences), blocks):
        s, row, base = sentences[k], rows[k], offsets[k]
        n, first = lengths[s], starts[s] + PAD
        for low in range(n + 1):
            m = verbs = marks = joins = 0
            stamp += 1
            for high in range(low + 1, n + 1):
                count = min(verbs, 3) * 16 + min(marks, 3) * 4 + min(joins, 3)
                given = (n, numbers, row, counts, templates, begins, weights, seen, m, count)
                out[base + (high - 1) * n + low] = _link(low, high, *given)
                if low:
                    out[base + (low - 1) * n + high - 1] = _link(high, low, *given)
                kind, code = kinds[first + high], numbers[row + high, 2 * templates + 1]
                verbs += kind == 1
                marks += kind == 2
                joins += kind == 3
                if m < MOST_BETWEEN and stamps[code] != stamp:
                    seen[m], stamps[code] = code, stamp
                    m += 1
