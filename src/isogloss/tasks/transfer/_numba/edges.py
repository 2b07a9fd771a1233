"""Links of trees carried through links of words, pair by pair."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["carry_edges", "count_heads", "list_heads"]


@njit(cache=True, nogil=True)
def count_heads(block, count, offsets, first_words, values, least, counts):
    """How many heads of each word have a posterior of at least `least`; arguments as for `list_heads`."""
    for s in range(block, len(first_words) - 1, count):
        n = first_words[s + 1] - first_words[s]
        here = values[offsets[s] : offsets[s + 1]].reshape((n + 1, n + 1))
        for head in range(n + 1):
            for child in range(1, n + 1):
                if here[head, child] >= least:
                    counts[first_words[s] + child - 1] += 1


@njit(cache=True, nogil=True)
def list_heads(block, count, offsets, first_words, values, least, ends, out_head, out_chance):
    """The heads of each word that have a posterior of at least `least`.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
        Sentence *s* is ``values[offsets[s]:offsets[s + 1]]``, float64[n + 1, n + 1] as (head, child).
    first_words : int64[n_sentences + 1]
    ends : int64[n_words]
        Where each word may write; moved to where it ends.
    """
    for s in range(block, len(first_words) - 1, count):
        n = first_words[s + 1] - first_words[s]
        here = values[offsets[s] : offsets[s + 1]].reshape((n + 1, n + 1))
        for head in range(n + 1):
            for child in range(1, n + 1):
                if here[head, child] >= least:
                    word = first_words[s] + child - 1
                    out_head[ends[word]], out_chance[ends[word]] = head, here[head, child]
                    ends[word] += 1


@njit(cache=True, nogil=True)
def _first_links(source, low, high, n, starts):
    """Where the links of each source word begin; links are ordered by source."""
    at = low
    for word in range(n):
        while at < high and source[at] < word:
            at += 1
        starts[word] = at
    starts[n] = high


@njit(cache=True, nogil=True)
def carry_edges(
    block, count, edge_starts, edge_head, edge_chance, edge_kind, first_words, n_source, n_target, link_offsets,
    source, target, chance, summed, rooms, out_child, out_head, out_chance, out_kind, out_origin, filled,
):  # fmt: skip
    """Links p → c of the source, for every p' linked to p and c' linked to c.

    Parameters
    ----------
    edge_starts : int64[n_source_words + 1]
        The heads that each word of the source may have: ``edge_head[edge_starts[w]:edge_starts[w + 1]]``.
    edge_head, edge_kind : int32[n_edges]
        The head, 0 for the root, from 1 in its sentence; and the relation, −1 for none.
    edge_chance : float64[n_edges]
    first_words, n_source, n_target : int64[n_pairs]
        Where the words of a pair begin among all of the source; and numbers of words.
    link_offsets, source, target, chance
        Links of each pair, ordered by source.
    summed : bool
        What reaches the same link of the target is added up; otherwise the most probable counts alone.
    rooms : int64[n_pairs + 1]
        Where each pair may write; what it needs at most.
    out_child, out_head, out_chance, out_kind, out_origin
        What was carried, by child, then head, both from 1 (a head of 0 is the root); the relation and the child, from
        1, of the source's link that gave most.
    filled : int64[n_pairs]
        How many were written.
    """
    top_source, top_target = 0, 0
    for pair in range(block, len(n_source), count):
        top_source, top_target = max(top_source, n_source[pair]), max(top_target, n_target[pair])
    starts = np.empty(top_source + 1, np.int64)
    total = np.zeros((top_target, top_target + 1))
    best = np.zeros((top_target, top_target + 1))
    kind = np.empty((top_target, top_target + 1), np.int32)
    origin = np.empty((top_target, top_target + 1), np.int32)
    for pair in range(block, len(n_source), count):
        n, m, base = n_source[pair], n_target[pair], first_words[pair]
        low, high = link_offsets[pair], link_offsets[pair + 1]
        _first_links(source, low, high, n, starts)
        for c in range(n):
            for edge in range(edge_starts[base + c], edge_starts[base + c + 1]):
                head = edge_head[edge]
                heads_from, heads_to = (low, low + 1) if head == 0 else (starts[head - 1], starts[head])
                for own in range(starts[c], starts[c + 1]):
                    child = target[own]
                    for other in range(heads_from, heads_to):
                        above = 0 if head == 0 else target[other] + 1
                        if above == child + 1:
                            continue
                        value = edge_chance[edge] * chance[own]
                        if head > 0:
                            value *= chance[other]
                        if summed:
                            total[child, above] += value
                        if value > best[child, above]:
                            best[child, above] = value
                            kind[child, above] = edge_kind[edge]
                            origin[child, above] = c + 1
        at = rooms[pair]
        for child in range(m):
            for above in range(m + 1):
                value = best[child, above]
                if value > 0.0:
                    out_child[at], out_head[at] = child + 1, above
                    out_chance[at] = total[child, above] if summed else value
                    out_kind[at], out_origin[at] = kind[child, above], origin[child, above]
                    best[child, above] = total[child, above] = 0.0
                    at += 1
        filled[pair] = at - rooms[pair]
