"""Parts of trees over candidate links: which pairs there are, and which parts a tree has.

Links of a sentence are listed by child, then head. The children that a head may have on one side, outward, are a *run*;
run 2h is to the left of h, run 2h + 1 to the right. In a run of m links, the pair (i, j) with 0 ≤ i < j ≤ m + 1 says
that after its i-th link the j-th is the next that is true (0: none before, m + 1: none after), and has number
j (j − 1) / 2 + i.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["cross", "indicate", "lay_out", "measure", "pairs_of_run"]


@njit(cache=True, nogil=True)
def pairs_of_run(m):
    """How many pairs a run of m links has; none if it is empty."""
    return (m + 1) * (m + 2) // 2 if m > 0 else 0


@njit(cache=True, nogil=True)
def cross(h, c, h2, c2):
    """Whether two links cross when drawn above the sentence."""
    low, high = (h, c) if h < c else (c, h)
    low2, high2 = (h2, c2) if h2 < c2 else (c2, h2)
    return (low < low2 and low2 < high and high < high2) or (low2 < low and low < high2 and high2 < high)


@njit(cache=True, nogil=True)
def measure(sentences, word_offsets, starts, heads, counts):
    """counts[k] = (links, grandparent pairs, pairs within runs) of the k-th sentence."""
    for k in range(len(sentences)):
        first, n = word_offsets[sentences[k]], word_offsets[sentences[k] + 1] - word_offsets[sentences[k]]
        sizes = np.zeros(2 * (n + 1), np.int64)
        links, grands = 0, 0
        for c in range(1, n + 1):
            for at in range(starts[first + c - 1], starts[first + c]):
                h = heads[at]
                links += 1
                sizes[2 * h + (c > h)] += 1
                if h > 0:
                    for up in range(starts[first + h - 1], starts[first + h]):
                        grands += heads[up] != c
        counts[k, 0], counts[k, 1], counts[k, 2] = links, grands, 0
        for r in range(len(sizes)):
            counts[k, 2] += pairs_of_run(sizes[r])


@njit(cache=True, nogil=True)
def lay_out(
    block, blocks, sentences, word_offsets, starts, heads, with_grand, link_offsets, pair_offsets, run_offsets,
    link_head, link_child, upper, lower, run_starts, run_links,
):  # fmt: skip
    """Write links, pairs (numbers of links within the sentence) and runs."""
    for k in range(block, len(sentences), blocks):
        first, n = word_offsets[sentences[k]], word_offsets[sentences[k] + 1] - word_offsets[sentences[k]]
        base, run = link_offsets[k], run_offsets[k]
        origin = starts[first]
        at_pair = pair_offsets[k]
        for r in range(2 * (n + 1) + 1):
            run_starts[run + r] = 0
        for c in range(1, n + 1):
            for at in range(starts[first + c - 1], starts[first + c]):
                h, number = heads[at], at - origin
                link_head[base + number], link_child[base + number] = h, c
                run_starts[run + 2 * h + (c > h) + 1] += 1
                if with_grand and h > 0:
                    for up in range(starts[first + h - 1], starts[first + h]):
                        if heads[up] != c:
                            upper[at_pair], lower[at_pair] = up - origin, number
                            at_pair += 1
        for r in range(2 * (n + 1)):
            run_starts[run + r + 1] += run_starts[run + r]
        filled = np.zeros(2 * (n + 1), np.int64)
        n_links = link_offsets[k + 1] - base
        for number in range(n_links):
            h = link_head[base + number]
            if link_child[base + number] > h:
                r = 2 * h + 1
                run_links[base + run_starts[run + r] + filled[r]] = number
                filled[r] += 1
        for number in range(n_links - 1, -1, -1):
            h = link_head[base + number]
            if link_child[base + number] < h:
                run_links[base + run_starts[run + 2 * h] + filled[2 * h]] = number
                filled[2 * h] += 1


@njit(cache=True, nogil=True)
def indicate(
    block, blocks, lengths, link_offsets, pair_offsets, run_offsets, link_head, link_child, upper, lower, run_starts,
    run_links, begins, bins, true, out,
):  # fmt: skip
    """1 for each part that the links which are `true` have, 0 elsewhere.

    ``begins[k]`` says where links, grandparents, pairs of runs, valences and crossings of a sentence begin and end.
    """
    for k in range(block, len(lengths), blocks):
        n, base, run = lengths[k], link_offsets[k], run_offsets[k]
        out[begins[k, 0] : begins[k, 5]] = 0.0
        n_links = link_offsets[k + 1] - base
        for number in range(n_links):
            out[begins[k, 0] + number] = true[base + number]
        for p in range(begins[k, 2] - begins[k, 1]):
            pair = pair_offsets[k] + p
            out[begins[k, 1] + p] = true[base + upper[pair]] and true[base + lower[pair]]
        at = begins[k, 2]
        for r in range(2 * (n + 1)):
            here = run_starts[run + r]
            m = run_starts[run + r + 1] - here
            last, count = 0, 0
            for j in range(1, m + 1):
                if true[base + run_links[base + here + j - 1]]:
                    if begins[k, 3] > begins[k, 2]:
                        out[at + j * (j - 1) // 2 + last] = 1.0
                    last = j
                    count += 1
            if begins[k, 3] > begins[k, 2]:
                if m > 0:
                    out[at + (m + 1) * m // 2 + last] = 1.0
                at += pairs_of_run(m)
            if begins[k, 4] > begins[k, 3]:
                out[begins[k, 3] + r * bins + min(count, bins - 1)] = 1.0
        if begins[k, 5] > begins[k, 4]:
            _indicate_crossings(n_links, base, link_head, link_child, true, out[begins[k, 4] : begins[k, 5]])


@njit(cache=True, nogil=True)
def _indicate_crossings(n_links, base, link_head, link_child, true, out):
    """Pair (j, k), j < k, of words has number (k − 1)(k − 2) / 2 + j − 1."""
    for a in range(n_links):
        if true[base + a]:
            for b in range(a):
                if true[base + b]:
                    j, k = link_child[base + b], link_child[base + a]
                    if cross(link_head[base + b], j, link_head[base + a], k):
                        out[(k - 1) * (k - 2) // 2 + j - 1] = 1.0
