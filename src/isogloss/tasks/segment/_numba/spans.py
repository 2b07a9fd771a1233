"""Substrings of words as nodes of a trie, and scores and counts of spans by these numbers.

A node is a substring; its parent is the same without the last letter. Children are found in a table with open
addressing whose keys are exact: (parent + 1) · n_letters + letter, where −1 is the empty string. Spans of a word come
by begin and then by length, as in `isogloss.structures.semimarkov2`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import mix

__all__ = ["boundary_posteriors", "count_spans", "fill_table", "gains", "grow", "lay_out", "span_posteriors", "walk"]


@njit(cache=True, nogil=True)
def _slot(keys, key):
    """Where a key is, or where it would be."""
    mask = len(keys) - 1
    at = np.int64(mix(np.uint64(key)) >> np.uint64(1)) & mask
    while keys[at] >= 0 and keys[at] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def fill_table(parents, letters, n_letters, keys, nodes):
    """Put all nodes into a table of −1."""
    for node in range(len(parents)):
        key = (parents[node] + 1) * n_letters + letters[node]
        at = _slot(keys, key)
        keys[at], nodes[at] = key, node


@njit(cache=True, nogil=True)
def grow(word, values, offsets, longest, n_letters, keys, nodes, parents, letters, count, spans, at_span):
    """Number the substrings of words from `word` on; stops before the table is half full.

    Returns the next word, the number of nodes and that of spans so far.
    """
    room = len(keys) // 2
    while word < len(offsets) - 1:
        first, last = offsets[word], offsets[word + 1]
        n = last - first
        if count + n * min(n, longest) > min(room, len(parents)):
            break
        for begin in range(first, last):
            node = -1
            for t in range(begin, min(last, begin + longest)):
                key = (node + 1) * n_letters + values[t]
                slot = _slot(keys, key)
                if keys[slot] < 0:
                    keys[slot], nodes[slot] = key, count
                    parents[count], letters[count] = node, values[t]
                    count += 1
                node = nodes[slot]
                spans[at_span] = node
                at_span += 1
        word += 1
    return word, count, at_span


@njit(cache=True, nogil=True)
def walk(block, blocks, values, offsets, longest, n_letters, keys, nodes, starts, spans):
    """The node of each span, −1 where there is none; words block, block + blocks, …"""
    for word in range(block, len(offsets) - 1, blocks):
        first, last = offsets[word], offsets[word + 1]
        at = starts[word]
        for begin in range(first, last):
            node, known = -1, True
            for t in range(begin, min(last, begin + longest)):
                if known:
                    letter = values[t]
                    slot = _slot(keys, (node + 1) * n_letters + letter) if 0 <= letter < n_letters else -1
                    known = slot >= 0 and keys[slot] >= 0
                    node = nodes[slot] if known else -1
                spans[at] = node
                at += 1


@njit(cache=True, nogil=True)
def lay_out(
    block, blocks, values, offsets, longest, spans, starts, table, unseen, spelling, stop, penalty, boundary, steps,
    marks, scores, score_offsets,
):  # fmt: skip
    """Scores of the segments and steps of each word, as `SemiMarkov2` has them.

    table : float64[n_nodes, k]; unseen : float64[k]
        Log scores of morphemes, and what those that have no node add to their spelling.
    spelling : float64[n_letters + 1]
        Of letters, the last for those that are not known; `stop` is added once a morpheme.
    penalty : float64[k, longest + 1]
        Of lengths.
    boundary : float64[2, 3, k]
        Of a word that goes on (0) or ends (1) after a morpheme, by its place and label.
    steps : float64[2 (k + 1)²]
    marks : int8[n_letters_of_words] or empty
        After each letter: 1 a known boundary, 0 known to be none, −1 not known.
    """
    k = table.shape[1]
    for word in range(block, len(offsets) - 1, blocks):
        first, last = offsets[word], offsets[word + 1]
        row, out = starts[word], score_offsets[word]
        for begin in range(first, last):
            spelt, allowed = stop, len(marks) == 0 or begin == first or marks[begin - 1] != 0
            for t in range(begin, min(last, begin + longest)):
                width = t - begin + 1
                letter = values[t]
                spelt += spelling[letter if 0 <= letter < len(spelling) - 1 else len(spelling) - 1]
                node, ends = spans[row], int(t == last - 1)
                fits = allowed and (len(marks) == 0 or ends == 1 or marks[t] != 0)
                for place in range(3):
                    for label in range(k):
                        score = -np.inf
                        if fits:
                            score = unseen[label] + spelt if node < 0 else table[node, label]
                            score += penalty[label, width] + boundary[ends, place, label]
                        scores[out] = score
                        out += 1
                row += 1
                allowed = allowed and (len(marks) == 0 or ends == 1 or marks[t] != 1)
        for i in range(len(steps)):
            scores[out] = steps[i]
            out += 1


@njit(cache=True, nogil=True)
def count_spans(
    offsets, longest, spans, starts, weights, marginals, score_offsets, k, counts, largest, largest_typed, ends, steps
):  # fmt: skip
    """Add expected counts: counts[n_nodes, k] of morphemes, ends[2, 3, k] of boundaries after them, and of steps.

    largest[n_nodes] and largest_typed[n_nodes, k] become the most that a single span has given to a morpheme, of any
    type and of each. One word after the other, so that sums do not depend on threads.
    """
    for word in range(len(offsets) - 1):
        first, last = offsets[word], offsets[word + 1]
        row, at, weight = starts[word], score_offsets[word], weights[word]
        for begin in range(first, last):
            low, high = (0, 1) if begin == first else (1, 3)
            for t in range(begin, min(last, begin + longest)):
                node, last_one, whole = spans[row], int(t == last - 1), 0.0
                for label in range(k):
                    much = 0.0
                    for place in range(low, high):
                        part = weight * marginals[at + place * k + label]
                        ends[last_one, place, label] += part
                        much += part
                    if much > 0.0:
                        counts[node, label] += much
                        largest_typed[node, label] = max(largest_typed[node, label], much)
                        whole += much
                largest[node] = max(largest[node], whole)
                at += 3 * k
                row += 1
        for i in range(len(steps)):
            steps[i] += weight * marginals[at + i]


@njit(cache=True, nogil=True)
def span_posteriors(block, blocks, offsets, longest, starts, marginals, score_offsets, k, out):
    """out[n_spans, k]: the posterior of each span with each label."""
    for word in range(block, len(offsets) - 1, blocks):
        n = offsets[word + 1] - offsets[word]
        row, at = starts[word], score_offsets[word]
        for begin in range(n):
            low, high = (0, 1) if begin == 0 else (1, 3)
            for _ in range(min(longest, n - begin)):
                for label in range(k):
                    much = 0.0
                    for place in range(low, high):
                        much += marginals[at + place * k + label]
                    out[row, label] = much
                at += 3 * k
                row += 1


@njit(cache=True, nogil=True)
def boundary_posteriors(block, blocks, offsets, longest, starts, posteriors, out_offsets, out):
    """How probable a boundary after each letter but the last of a word is, from `span_posteriors`."""
    k = posteriors.shape[1]
    for word in range(block, len(offsets) - 1, blocks):
        n = offsets[word + 1] - offsets[word]
        row = starts[word]
        for begin in range(n):
            much = 0.0
            for _ in range(min(longest, n - begin)):
                for label in range(k):
                    much += posteriors[row, label]
                row += 1
            if begin:
                out[out_offsets[word] + begin - 1] = min(much, 1.0)


@njit(cache=True, nogil=True)
def gains(block, blocks, offsets, longest, starts, posteriors, out_offsets, boundaries, threshold, little, scores,
          score_offsets):  # fmt: skip
    """Replace scores that are not −∞ by what is expected to be gained: p − threshold for the boundary that a span
    begins with, and `little` times its posterior; 0 for steps."""
    k = posteriors.shape[1]
    for word in range(block, len(offsets) - 1, blocks):
        n = offsets[word + 1] - offsets[word]
        row, at = starts[word], score_offsets[word]
        for begin in range(n):
            gain = boundaries[out_offsets[word] + begin - 1] - threshold if begin else 0.0
            for _ in range(min(longest, n - begin)):
                for _ in range(3):
                    for label in range(k):
                        if scores[at] > -np.inf:
                            scores[at] = gain + little * posteriors[row, label]
                        at += 1
                row += 1
        while at < score_offsets[word + 1]:
            if scores[at] > -np.inf:
                scores[at] = 0.0
            at += 1
