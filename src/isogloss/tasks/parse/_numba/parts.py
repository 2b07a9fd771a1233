"""Features of all parts of a sentence: scores, gradients and counts.

Parts are laid out as `isogloss.structures.tree_parts.TreeParts` says. For each sentence they are first listed as up to
three words and a bin; links have the keys of `features`, the other families sums of what each of the words adds.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import key_of, mix
from isogloss.features._numba.table import find, insert, room_for
from isogloss.structures._numba.lanes import prefetch
from isogloss.structures._numba.tree_parts import cross
from isogloss.tasks.parse._numba.features import PAD, bin_of, keys_of_link, most_keys, sides

__all__ = ["collect_parts", "count_active", "emit_parts", "score_parts"]

GRAND, SIBLINGS, VALENCE, CROSSING = 1, 2, 3, 4
N_FAMILIES = 5
NEVER = -1


@njit(cache=True, nogil=True)
def _nearness(far):
    return 0 if far == 1 else 1 if far <= 3 else 2


@njit(cache=True, nogil=True)
def grand_bin(g, h, c):
    """1 … 18: the order of the three words, and how far the child is."""
    order = (g < h) + 2 * (h < c) + 4 * (g < c)
    if order > 4:  # 3 and 4 contradict themselves
        order -= 2
    return 3 * order + _nearness(abs(h - c)) + 1


@njit(cache=True, nogil=True)
def sibling_bin(h, nearer, farther, right, n):
    """1 … 8: the side, and how far the two are from each other; 4 and 8 where one of them is the edge."""
    far = 3 if nearer < 0 or farther > n else _nearness(abs(farther - nearer))
    return 4 * right + far + 1


@njit(cache=True, nogil=True)
def list_parts(k, n, layout, out):
    """Three words and a bin for each part of the k-th sentence; −1 and n + 1 stand for what is before and after."""
    _, link_offsets, pair_offsets, run_offsets, head, child, upper, lower, run_starts, run_links, begins, bins = layout
    base, run, zero = link_offsets[k], run_offsets[k], begins[k, 0]
    n_links = begins[k, 1] - zero
    for a in range(n_links):
        h, c = head[base + a], child[base + a]
        out[a, 0], out[a, 1], out[a, 2], out[a, 3] = h, c, 0, bin_of(h, c)
    at = n_links
    for p in range(pair_offsets[k], pair_offsets[k] + begins[k, 2] - begins[k, 1]):
        g, h, c = head[base + upper[p]], head[base + lower[p]], child[base + lower[p]]
        out[at, 0], out[at, 1], out[at, 2], out[at, 3] = g, h, c, grand_bin(g, h, c)
        at += 1
    for r in range(2 * (n + 1) if begins[k, 3] > begins[k, 2] else 0):
        h, here = r // 2, run_starts[run + r]
        m = run_starts[run + r + 1] - here
        for j in range(1, m + 2 if m else 1):
            farther = child[base + run_links[base + here + j - 1]] if j <= m else n + 1
            for i in range(j):
                nearer = child[base + run_links[base + here + i - 1]] if i else -1
                out[at, 0], out[at, 1], out[at, 2] = h, nearer, farther
                out[at, 3] = sibling_bin(h, nearer, farther, r % 2, n)
                at += 1
    for r in range(2 * (n + 1) if begins[k, 4] > begins[k, 3] else 0):
        some = run_starts[run + r + 1] > run_starts[run + r]
        for v in range(bins):
            out[at, 0], out[at, 1], out[at, 2] = r // 2, 0, 0
            out[at, 3] = (r % 2) * bins + v + 1 if some else NEVER
            at += 1
    if begins[k, 5] > begins[k, 4]:
        _list_crossings(n, base, n_links, head, child, out, at)


@njit(cache=True, nogil=True)
def _list_crossings(n, base, n_links, head, child, out, at):
    for k in range(1, n + 1):
        for j in range(1, k):
            row = at + (k - 1) * (k - 2) // 2 + j - 1
            out[row, 0], out[row, 1], out[row, 2], out[row, 3] = j, k, 0, NEVER
    for a in range(n_links):
        for b in range(a):
            j, k = child[base + b], child[base + a]
            row = at + (k - 1) * (k - 2) // 2 + j - 1
            if j < k and out[row, 3] < 0 and cross(head[base + b], j, head[base + a], k):
                out[row, 3] = 0


@njit(cache=True, nogil=True)
def _role_sums(codes, first, n, templates):
    """uint64[3, n + 3, n_templates]: what each word, from −1 to n + 1, adds to a code in each place of a part."""
    starts, terms, factors, roles = templates
    out = np.zeros((3, n + 3, len(starts)), np.uint64)
    for i in range(n + 3):
        for t in range(len(starts)):
            out[0, i, t] = starts[t]
        for k in range(len(terms)):
            place = 0 if terms[k, 1] == roles[0] else 1 if terms[k, 1] == roles[1] else 2
            row = min(max(first + i - 1 + terms[k, 2], first - PAD), first + n + PAD)
            out[place, i, terms[k, 0]] += codes[row, terms[k, 3]] * factors[k]
    return out


@njit(cache=True, nogil=True)
def _prepared(k, n, first, words, links, families, layout):
    """What words add to the codes of links and of the other families, and all parts of the k-th sentence."""
    b = layout[10][k]
    heads, children = np.empty((n + 1, len(links[0])), np.uint64), np.empty((n + 1, len(links[0])), np.uint64)
    sides(words[0], first, n, links[0], links[1], links[2], heads, children)
    nothing = np.zeros((3, 0, 0), np.uint64)
    grand = _role_sums(words[0], first, n, families[0]) if b[2] > b[1] else nothing
    siblings = _role_sums(words[0], first, n, families[1]) if b[3] > b[2] else nothing
    valence = _role_sums(words[0], first, n, families[2]) if b[4] > b[3] else nothing
    crossing = _role_sums(words[0], first, n, families[3]) if b[5] > b[4] else nothing
    listed = np.empty((b[5] - b[0], 4), np.int64)
    list_parts(k, n, layout, listed)
    return (heads, children, (grand, siblings, valence, crossing)), listed


@njit(cache=True, nogil=True)
def _codes(family, part, first, n, words, links, tables, found, which):
    """Codes of all templates of a part; how many."""
    heads, children, sums = tables
    if family == 0:
        return keys_of_link(part[0], part[1], first, n, words, heads, children, links[3], links[4], found, which)
    own = sums[family - 1]
    if family == VALENCE:
        for t in range(own.shape[2]):
            found[t] = mix(own[0, part[0] + 1, t])
    elif family == CROSSING:
        for t in range(own.shape[2]):
            found[t] = mix(own[0, part[0] + 1, t] + own[1, part[1] + 1, t])
    else:
        for t in range(own.shape[2]):
            found[t] = mix(own[0, part[0] + 1, t] + own[1, part[1] + 1, t] + own[2, part[2] + 1, t])
    return own.shape[2]


@njit(cache=True, nogil=True)
def _most(words, links, families):
    most = most_keys(len(links[0]), words[1].shape[1])
    for f in range(4):
        most = max(most, len(families[f][0]))
    return most


@njit(cache=True, nogil=True)
def _ask(table, mask, found, m):
    """Ask for the memory where keys will be looked for; variants of a key lie in the same line."""
    for t in range(m):
        prefetch(table, np.int64(2) * np.int64(found[t] & mask))


@njit(cache=True, nogil=True)
def score_parts(
    block, blocks, sentences, starts, lengths, words, links, families, table, weights, packed, layout, out
):  # fmt: skip
    """The score of every part of some sentences."""
    begins = layout[10]
    mask = np.uint64(len(table) // 2 - 1)
    as_weights = table.view(np.float32)
    most = _most(words, links, families)
    found, which = np.empty(most, np.uint64), np.empty(2 * most, np.int64)
    for k in range(block, len(sentences), blocks):
        s = sentences[k]
        n, first = lengths[s], starts[s] + PAD
        tables, listed = _prepared(k, n, first, words, links, families, layout)
        for family in range(N_FAMILIES):
            for at in range(begins[k, family], begins[k, family + 1]):
                part = listed[at - begins[k, 0]]
                out[at] = 0.0
                if part[3] == NEVER:
                    continue
                m = _codes(family, part, first, n, words, links, tables, found, which)
                _ask(table, mask, found, m)
                hits = 0
                for t in range(m):
                    if family != VALENCE:
                        i = find(table, mask, key_of(found[t], 0))
                        if i >= 0:
                            which[hits] = i
                            hits += 1
                        elif not packed:  # then no variant is in the table either
                            continue
                    if part[3] > 0:
                        i = find(table, mask, key_of(found[t], part[3]))
                        if i >= 0:
                            which[hits] = i
                            hits += 1
                total = 0.0
                if packed:
                    for h in range(hits):
                        total += as_weights[2 * which[h] + 1]
                else:
                    for h in range(hits):
                        prefetch(weights, np.int64(table[2 * which[h] + 1]))
                    for h in range(hits):
                        total += weights[table[2 * which[h] + 1]]
                out[at] = total


@njit(cache=True, nogil=True)
def count_active(block, blocks, begins, values, least, counts):
    """How many links, and how many other parts, of each sentence have a value above `least` in size."""
    for k in range(block, len(begins), blocks):
        counts[k, 0] = counts[k, 1] = 0
        for i in range(begins[k, 0], begins[k, 5]):
            if abs(values[i]) > least:
                counts[k, 0 if i < begins[k, 1] else 1] += 1


@njit(cache=True, nogil=True)
def emit_parts(
    block, blocks, sentences, starts, lengths, words, links, families, table, layout, values, least, places, numbers,
    parts, ends,
):  # fmt: skip
    """The gradient of each sentence: for every feature of a part with a value, the number of its weight and the value.

    Those of the k-th sentence begin at ``places[k]`` of `numbers` and `parts`, and end before ``ends[k]``.
    """
    begins = layout[10]
    mask = np.uint64(len(table) // 2 - 1)
    most = _most(words, links, families)
    found, which = np.empty(most, np.uint64), np.empty(most, np.int64)
    for k in range(block, len(sentences), blocks):
        s = sentences[k]
        n, first, out = lengths[s], starts[s] + PAD, places[k]
        tables, listed = _prepared(k, n, first, words, links, families, layout)
        for family in range(N_FAMILIES):
            for at in range(begins[k, family], begins[k, family + 1]):
                part = listed[at - begins[k, 0]]
                if abs(values[at]) <= least or part[3] == NEVER:
                    continue
                m = _codes(family, part, first, n, words, links, tables, found, which)
                _ask(table, mask, found, m)
                for t in range(m):
                    for variant in range(1 if family == VALENCE else 0, 2 if part[3] > 0 else 1):
                        i = find(table, mask, key_of(found[t], part[3] * variant))
                        if i < 0:
                            break
                        numbers[out], parts[out] = table[2 * i + 1], values[at]
                        out += 1
        ends[k] = out


@njit(cache=True, nogil=True)
def collect_parts(
    sentences, starts, lengths, words, links, families, lexical, layout, gold, support, slots, counts, used
):  # fmt: skip
    """Count the keys of parts that are gold; the tables, and how many keys are in.

    With `support` 1 also those of other parts, of templates that are not lexical; with 2 those of all. Pairs of words
    that cross keep all theirs: where links never cross, that is to be learnt.
    """
    begins = layout[10]
    most = _most(words, links, families)
    found, which = np.empty(most, np.uint64), np.empty(most, np.int64)
    for k in range(len(sentences)):
        s = sentences[k]
        n, first = lengths[s], starts[s] + PAD
        tables, listed = _prepared(k, n, first, words, links, families, layout)
        for family in range(N_FAMILIES):
            for at in range(begins[k, family], begins[k, family + 1]):
                part = listed[at - begins[k, 0]]
                right = gold[at] > 0
                if part[3] == NEVER or not (right or support or family == CROSSING):
                    continue
                m = _codes(family, part, first, n, words, links, tables, found, which)
                slots, counts = room_for(slots, counts, used, 2 * m)
                for t in range(m):
                    if not right and support < 2 and family != CROSSING:
                        shown = which[t] == 6 if family == 0 and t >= len(links[0]) else lexical[family][t]
                        if shown:
                            continue
                    if family != VALENCE:
                        used += insert(slots, counts, key_of(found[t], 0))
                    if part[3] > 0:
                        used += insert(slots, counts, key_of(found[t], part[3]))
    return slots, counts, used
