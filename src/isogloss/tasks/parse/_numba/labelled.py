"""Labels of candidate links: scores of all labels of each link, summed out, and their gradients.

Links are those of `isogloss.structures.tree_parts.TreeParts`, with the codes of `features`; tables and rows of labels
are those of `labels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.tasks.parse._numba.features import PAD, keys_of_link, most_keys, sides
from isogloss.tasks.parse._numba.labels import add_pairs, add_rows, bin_of_label, normalise, rows_of

__all__ = ["collect_link_labels", "emit_link_labels", "score_link_labels"]


@njit(cache=True, nogil=True)
def _sides(first, n, words, links):
    heads, children = np.empty((n + 1, len(links[0])), np.uint64), np.empty((n + 1, len(links[0])), np.uint64)
    sides(words[0], first, n, links[0], links[1], links[2], heads, children)
    return heads, children


@njit(cache=True, nogil=True)
def _rows_of_link(p, c, first, n, words, links, tables, table, rows, found, which, hits):
    """The rows that the features of a link have; how many."""
    m = keys_of_link(p, c, first, n, words, tables[0], tables[1], links[3], links[4], found, which)
    return rows_of(found, m, bin_of_label(p, c), table, rows, hits)


@njit(cache=True, nogil=True)
def score_link_labels(
    block, blocks, sentences, starts, lengths, words, links, table, rows, labels, weights, n_labels, layout, sums, best,
    chances,
):  # fmt: skip
    """For each link the log of the sum over labels, the greatest probability of a label, and, if asked, all of them."""
    link_offsets, head, child = layout[1], layout[4], layout[5]
    most = most_keys(len(links[0]), words[1].shape[1])
    found, which, hits = np.empty(most, np.uint64), np.empty(most, np.int64), np.empty(2 * most, np.int64)
    scores = np.empty(n_labels)
    for k in range(block, len(sentences), blocks):
        s = sentences[k]
        n, first = lengths[s], starts[s] + PAD
        tables = _sides(first, n, words, links)
        for a in range(link_offsets[k], link_offsets[k + 1]):
            n_hits = _rows_of_link(head[a], child[a], first, n, words, links, tables, table, rows, found, which, hits)
            add_rows(hits, n_hits, rows, labels, weights, scores)
            sums[a] = normalise(scores)
            best[a] = scores.max()
            if len(chances):
                chances[a] = scores


@njit(cache=True, nogil=True)
def emit_link_labels(
    block, blocks, sentences, starts, lengths, words, links, table, rows, labels, layout, values, least, places,
    numbers, parts, ends,
):  # fmt: skip
    """The gradient of each sentence, as `emit_parts` gives it, from derivatives by the score of each labelled link."""
    link_offsets, head, child = layout[1], layout[4], layout[5]
    most = most_keys(len(links[0]), words[1].shape[1])
    found, which, hits = np.empty(most, np.uint64), np.empty(most, np.int64), np.empty(2 * most, np.int64)
    for k in range(block, len(sentences), blocks):
        s, out = sentences[k], places[k]
        n, first = lengths[s], starts[s] + PAD
        tables = _sides(first, n, words, links)
        for a in range(link_offsets[k], link_offsets[k + 1]):
            if not (np.abs(values[a]) > least).any():
                continue
            n_hits = _rows_of_link(head[a], child[a], first, n, words, links, tables, table, rows, found, which, hits)
            for h in range(n_hits):
                for e in range(rows[hits[h]], rows[hits[h] + 1]):
                    value = values[a, labels[e]]
                    if abs(value) > least:
                        numbers[out], parts[out] = e, value
                        out += 1
        ends[k] = out


@njit(cache=True, nogil=True)
def collect_link_labels(starts, lengths, words, links, heads, gold, offsets, slots, tags):
    """All pairs of a key and a label that occur on gold links, in two tables; free slots have key 0."""
    most = most_keys(len(links[0]), words[1].shape[1])
    found, which = np.empty(most, np.uint64), np.empty(most, np.int64)
    used = 0
    for s in range(len(starts)):
        n, first = lengths[s], starts[s] + PAD
        tables = _sides(first, n, words, links)
        for c in range(1, n + 1):
            p, label = heads[offsets[s] + c - 1], gold[offsets[s] + c - 1]
            if p < 0 or label < 0:
                continue
            m = keys_of_link(p, c, first, n, words, tables[0], tables[1], links[3], links[4], found, which)
            slots, tags, used = add_pairs(slots, tags, used, found, m, bin_of_label(p, c), label)
    return slots, tags
