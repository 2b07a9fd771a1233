"""Pairs of candidates with hidden matchings: the best matching of each pair, and sums over the pairs of a sentence."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.matching import best_matching

__all__ = ["expected_edges", "matchings"]


@njit(cache=True, nogil=True)
def matchings(block, blocks, weights, cells, shapes, lists, starts, nodes, pairs, room, edges, counts):
    """Match the nodes of every pair of candidates of the items block, block + blocks, ….

    Parameters
    ----------
    weights : float64[n_cells]
        The weight of each pair of nodes; those that are not positive are never matched.
    cells, pairs, room : int64[n_items + 1]
        Where the pairs of nodes, the pairs of candidates, and the places for matched pairs of each item begin.
    shapes : int64[n_items, 4]
        Nodes of both sides, candidates of both sides.
    lists : int64[n_items, 2]
        The number of the first candidate of each side among all candidates.
    starts, nodes
        The nodes of candidate c are ``nodes[starts[c]:starts[c + 1]]``, counted within the item and the side.
    edges : int64[n_places]
        Overwritten with the numbers of matched pairs of nodes, those of a pair of candidates side by side.
    counts : int64[n_pairs]
        Overwritten with the number of matched pairs of nodes of each pair of candidates.
    """
    for s in range(block, len(shapes), blocks):
        many = shapes[s, 1]
        at, place = pairs[s], room[s]
        for a in range(shapes[s, 2]):
            one = nodes[starts[lists[s, 0] + a] : starts[lists[s, 0] + a + 1]]
            for b in range(shapes[s, 3]):
                two = nodes[starts[lists[s, 1] + b] : starts[lists[s, 1] + b + 1]]
                counts[at] = 0
                if len(one) and len(two):
                    gain = np.empty((len(one), len(two)))
                    for i in range(len(one)):
                        for j in range(len(two)):
                            gain[i, j] = weights[cells[s] + one[i] * many + two[j]]
                    partner = np.empty(len(one), np.int64)
                    best_matching(gain, np.zeros(len(one)), np.zeros(len(two)), partner)
                    for i in range(len(one)):
                        if partner[i] >= 0 and gain[i, partner[i]] > 0.0:
                            edges[place] = cells[s] + one[i] * many + two[partner[i]]
                            place += 1
                            counts[at] += 1
                at += 1


@njit(cache=True, nogil=True)
def expected_edges(block, blocks, base, weights, shapes, pairs, room, edges, counts, gold, edge, share, values):
    """Log-probabilities of the right pairs of candidates, what is expected of edges, and shares of candidates.

    Parameters
    ----------
    base : float64[n_pairs]
        The part of the score of each pair of candidates that has no matching.
    gold : int64[n_items]
        The right pair of candidates of each item, counted within it.
    edge : float64[n_cells]
        Zeros that become (right − expected) numbers of each matched pair of nodes.
    share : float64[n_pairs]
        Overwritten with the probability of each pair of candidates.
    values : float64[n_items]
        Overwritten with the log-probabilities of the right ones.
    """
    for s in range(block, len(shapes), blocks):
        first, last = pairs[s], pairs[s + 1]
        place, top = room[s], -np.inf
        for p in range(first, last):
            score = base[p]
            for q in range(place, place + counts[p]):
                score += weights[edges[q]]
            place += counts[p]
            share[p] = score
            top = max(top, score)
        total = 0.0
        for p in range(first, last):
            total += np.exp(share[p] - top)
        log_z = top + np.log(total)
        values[s] = share[first + gold[s]] - log_z
        place = room[s]
        for p in range(first, last):
            share[p] = np.exp(share[p] - log_z)
            change = (1.0 if p == first + gold[s] else 0.0) - share[p]
            for q in range(place, place + counts[p]):
                edge[edges[q]] += change
            place += counts[p]
