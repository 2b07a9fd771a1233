"""Labels of links: keys of a link in a known tree, and maximum-entropy scores of its labels.

Tables are those of `isogloss.features`; the payload of a key is the number of its row, and row *r*
has weights for the labels ``labels[rows[r]:rows[r + 1]]``, those it was met with.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import GOLDEN, key_of, mix
from isogloss.features._numba.table import find, room_for, seek
from isogloss.structures._numba.lanes import prefetch
from isogloss.tasks.parse._numba.features import PAD

__all__ = [
    "add_pairs", "add_rows", "bin_of_label", "collect_labels", "emit_labels", "keys_of_label", "keys_of_pairs",
    "normalise", "predict_labels", "rows_of",
]  # fmt: skip

N_ROLES = 7
MISSING = -1


@njit(cache=True, nogil=True)
def places_of(c, n, heads, places):
    """Words of each role for child *c* in a tree, −1 where there is none; see `isogloss.tasks.parse.features.ROLES`."""
    p = heads[c - 1]
    places[:] = MISSING
    places[0], places[1] = p, c
    if p > 0:
        places[2] = heads[p - 1]
    for other in range(1, n + 1):
        if other == c:
            continue
        if heads[other - 1] == p:
            if other < c:
                places[3] = other
            elif places[4] < 0:
                places[4] = other
        elif heads[other - 1] == c:
            if places[5] < 0:
                places[5] = other
            places[6] = other


@njit(cache=True, nogil=True)
def keys_of_label(first, places, codes, features, templates, out):
    """Codes of all templates of a link; how many there are."""
    starts, terms, factors, dynamic, by_place = templates
    for t in range(len(starts)):
        out[t] = starts[t]
    for k in range(len(terms)):
        place = places[terms[k, 1]]
        row = first + place + terms[k, 2] if place >= 0 else first - 1
        out[terms[k, 0]] += codes[row, terms[k, 3]] * factors[k]
    m = len(starts)
    for t in range(m):
        out[t] = mix(out[t])
    p, c = places[0], places[1]
    pair = codes[first + p, 2] * by_place[0] + codes[first + c, 2] * by_place[1]
    edge = np.uint64((places[3] < 0) + 2 * (places[4] < 0) + 4 * (places[5] < 0) + 8)
    out[m] = mix(dynamic[0] + pair + edge * by_place[2])
    m += 1
    for a in range(features.shape[1]):
        of_c, of_p = features[first + c, a], features[first + p, a]
        if of_c:
            out[m] = mix(dynamic[1] + pair + of_c * by_place[2])
            out[m + 1] = mix(dynamic[2] + codes[first + p, 1] * by_place[0] + of_c * by_place[1])
            m += 2
        if of_c and of_p:
            out[m] = mix(dynamic[3] + pair + np.uint64(2 * a + (of_c == of_p) + 1) * by_place[2])
            m += 1
    return m


@njit(cache=True, nogil=True)
def bin_of_label(p, c):
    """1 … 6: the side, and whether the link is of length 1, 2 to 4, or more; 7 for the root."""
    if p == 0:
        return 7
    far = abs(p - c)
    return (1 if far == 1 else 2 if far <= 4 else 3) + (3 if c < p else 0)


@njit(cache=True, nogil=True)
def add_pairs(slots, tags, used, codes, m, bin_, label):
    """Put the keys of *m* codes and their variants, each with a label, into a table; the table, and how full it is.

    A slot has the sum of the key and a multiple of the label, which stands beside it; see `keys_of_pairs`.
    """
    slots, tags = room_for(slots, tags, used, 2 * m)
    for t in range(m):
        for variant in range(2):
            pair = key_of(codes[t], bin_ * variant) + np.uint64(label) * GOLDEN
            i = seek(slots, pair)
            if slots[i] != pair:
                slots[i], tags[i] = pair, label
                used += 1
    return slots, tags, used


@njit(cache=True, nogil=True)
def keys_of_pairs(pairs, labels):
    """uint64[n]: the keys in the slots of `add_pairs`."""
    keys = np.empty(len(pairs), np.uint64)
    for i in range(len(pairs)):
        keys[i] = pairs[i] - np.uint64(labels[i]) * GOLDEN
    return keys


@njit(cache=True, nogil=True)
def collect_labels(starts, lengths, words, templates, heads, gold, offsets, slots, tags):
    """All pairs of a key and a label that occur, in two tables; free slots have key 0."""
    found = np.empty(len(templates[0]) + 1 + 3 * words[1].shape[1], np.uint64)
    places = np.empty(N_ROLES, np.int64)
    used = 0
    for s in range(len(starts)):
        tree = heads[offsets[s] : offsets[s + 1]]
        for c in range(1, lengths[s] + 1):
            label = gold[offsets[s] + c - 1]
            if label < 0 or tree[c - 1] < 0:
                continue
            places_of(c, lengths[s], tree, places)
            m = keys_of_label(starts[s] + PAD, places, words[0], words[1], templates, found)
            bin_ = bin_of_label(tree[c - 1], c)
            slots, tags, used = add_pairs(slots, tags, used, found, m, bin_, label)
    return slots, tags


@njit(cache=True, nogil=True)
def rows_of(found, m, bin_, table, rows, hits):
    """The rows that *m* codes and their variants have; how many."""
    mask = np.uint64(len(table) // 2 - 1)
    for t in range(m):
        prefetch(table, np.int64(2) * np.int64(found[t] & mask))
    n_hits = 0
    for t in range(m):
        for variant in range(2):
            i = find(table, mask, key_of(found[t], bin_ * variant))
            if i >= 0:
                hits[n_hits] = table[2 * i + 1]
                prefetch(rows, hits[n_hits])
                n_hits += 1
    return n_hits


@njit(cache=True, nogil=True)
def add_rows(hits, n_hits, rows, labels, weights, scores):
    """Scores of all labels: the sum of some rows."""
    for h in range(n_hits):
        prefetch(labels, rows[hits[h]])
        prefetch(weights, rows[hits[h]])
    scores[:] = 0.0
    for h in range(n_hits):
        for e in range(rows[hits[h]], rows[hits[h] + 1]):
            scores[labels[e]] += weights[e]


@njit(cache=True, nogil=True)
def _scores(first, n, c, tree, words, templates, table, rows, labels, weights, found, places, hits, scores):
    """Scores of the labels of one link, and the rows that they come from; how many rows."""
    places_of(c, n, tree, places)
    m = keys_of_label(first, places, words[0], words[1], templates, found)
    n_hits = rows_of(found, m, bin_of_label(tree[c - 1], c), table, rows, hits)
    add_rows(hits, n_hits, rows, labels, weights, scores)
    return n_hits


@njit(cache=True, nogil=True)
def normalise(scores):
    """Probabilities in place; log Z."""
    top = scores.max()
    total = 0.0
    for y in range(len(scores)):
        scores[y] = np.exp(scores[y] - top)
        total += scores[y]
    for y in range(len(scores)):
        scores[y] /= total
    return top + np.log(total)


@njit(cache=True, nogil=True)
def predict_labels(block, blocks, starts, lengths, words, templates, table, rows, labels, weights, heads, offsets, out):
    """float32[n_words, n_labels]: probabilities of the labels of each word's link."""
    most = len(templates[0]) + 1 + 3 * words[1].shape[1]
    found, places = np.empty(most, np.uint64), np.empty(N_ROLES, np.int64)
    hits, scores = np.empty(2 * most, np.int64), np.empty(out.shape[1])
    for s in range(block, len(starts), blocks):
        tree = heads[offsets[s] : offsets[s + 1]]
        for c in range(1, lengths[s] + 1):
            _scores(starts[s] + PAD, lengths[s], c, tree, words, templates, table, rows, labels, weights,
                    found, places, hits, scores)  # fmt: skip
            normalise(scores)
            for y in range(len(scores)):
                out[offsets[s] + c - 1, y] = scores[y]


@njit(cache=True, nogil=True)
def emit_labels(
    block, blocks, sentences, starts, lengths, words, templates, table, rows, labels, weights, heads, gold, offsets,
    n_labels, places_out, numbers, parts, ends, losses,
):  # fmt: skip
    """The gradient of the log-likelihood of the labels, as lists; `losses` are minus the log-likelihood."""
    most = len(templates[0]) + 1 + 3 * words[1].shape[1]
    found, places = np.empty(most, np.uint64), np.empty(N_ROLES, np.int64)
    hits, scores = np.empty(2 * most, np.int64), np.empty(n_labels)
    for k in range(block, len(sentences), blocks):
        s, at = sentences[k], places_out[k]
        tree = heads[offsets[s] : offsets[s + 1]]
        losses[k] = 0.0
        for c in range(1, lengths[s] + 1):
            right = gold[offsets[s] + c - 1]
            if right < 0 or tree[c - 1] < 0:
                continue
            n_hits = _scores(starts[s] + PAD, lengths[s], c, tree, words, templates, table, rows, labels, weights,
                             found, places, hits, scores)  # fmt: skip
            own = scores[right]
            losses[k] += normalise(scores) - own
            scores[right] -= 1.0
            for h in range(n_hits):
                for e in range(rows[hits[h]], rows[hits[h] + 1]):
                    if abs(scores[labels[e]]) > 1e-3:
                        numbers[at], parts[at] = e, -scores[labels[e]]
                        at += 1
        ends[k] = at
