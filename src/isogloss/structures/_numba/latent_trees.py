"""Annotations of given trees: every node has a hidden state of its symbol, and all of them are summed out.

Nodes of a tree come children first; node v has the symbol that was made and the one that is seen from above, as
`isogloss.structures.cfg` has them. Blocks of weights are [states of A, states of B, states of C] for A → B C, one after
the other. Numbers of a node are divided by the largest of them, whose logs add up to the log probability of the tree.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["sum_annotations"]


@njit(cache=True, nogil=True)
def _divide(values, first, last):
    """Divide by the largest; the largest."""
    top = 0.0
    for t in range(first, last):
        top = max(top, values[t])
    if top > 0.0:
        share = 1.0 / top
        for t in range(first, last):
            values[t] *= share
    return top


@njit(cache=True, nogil=True, error_model="numpy")
def _up(v, sizes, nodes, weights, places, states, charts, where):
    """Inside numbers of a node; the log of what they were divided by."""
    made, seen, rule, unary, left, right = nodes[v]
    binary, lone, stay, words = weights[0], weights[1], weights[2], weights[3]
    inner, top = charts[0], charts[1]
    wide, at = sizes[made], where[v, 0]
    if left < 0:
        for a in range(wide):
            inner[at + a] = words[places[2][rule] + a]
    else:
        block, one, other = places[0][rule], where[left, 1], where[right, 1]
        k_left, k_right = sizes[nodes[left, 1]], sizes[nodes[right, 1]]
        for a in range(wide):
            mass = 0.0
            for b in range(k_left):
                part = 0.0
                for c in range(k_right):
                    part += binary[block] * top[other + c]
                    block += 1
                mass += part * top[one + b]
            inner[at + a] = mass
    scale = _divide(inner, at, at + wide)
    to = where[v, 1]
    if unary < 0:
        for a in range(wide):
            top[to + a] = inner[at + a] * stay[states[made] + a]
    else:
        block = places[1][unary]
        for a in range(sizes[seen]):
            mass = 0.0
            for b in range(wide):
                mass += lone[block] * inner[at + b]
                block += 1
            top[to + a] = mass
    again = _divide(top, to, to + sizes[seen])
    charts[4][2 * v], charts[4][2 * v + 1] = scale, again
    return np.log(scale) + np.log(again)


@njit(cache=True, nogil=True, error_model="numpy")
def _down(v, sizes, nodes, weights, places, states, charts, where, counts):
    """Outside numbers of what is below a node, and expected uses of its rules."""
    made, seen, rule, unary, left, right = nodes[v]
    binary, lone, stay = weights[0], weights[1], weights[2]
    inner, top, out_inner, out_top = charts[0], charts[1], charts[2], charts[3]
    wide, at, to = sizes[made], where[v, 0], where[v, 1]
    share = 1.0 / charts[4][2 * v + 1]
    if unary < 0:
        for a in range(wide):
            out_inner[at + a] = out_top[to + a] * stay[states[made] + a] * share
            counts[2][states[made] + a] += top[to + a] * out_top[to + a]
    else:
        block = places[1][unary]
        for b in range(wide):
            out_inner[at + b] = 0.0
        for a in range(sizes[seen]):
            above = out_top[to + a] * share
            for b in range(wide):
                passed = above * lone[block]
                out_inner[at + b] += passed
                counts[1][block] += passed * inner[at + b]
                block += 1
    if left < 0:
        for a in range(wide):
            counts[3][places[2][rule] + a] += inner[at + a] * out_inner[at + a]
        return
    share = 1.0 / charts[4][2 * v]
    block, one, other = places[0][rule], where[left, 1], where[right, 1]
    k_left, k_right = sizes[nodes[left, 1]], sizes[nodes[right, 1]]
    for b in range(k_left):
        out_top[one + b] = 0.0
    for c in range(k_right):
        out_top[other + c] = 0.0
    for a in range(wide):
        above = out_inner[at + a] * share
        if above == 0.0:
            block += k_left * k_right
            continue
        for b in range(k_left):
            part, mine = 0.0, top[one + b]
            for c in range(k_right):
                passed = above * binary[block + c]
                part += passed * top[other + c]
                out_top[other + c] += passed * mine
                counts[0][block + c] += passed * mine * top[other + c]
            out_top[one + b] += part
            block += k_right


@njit(cache=True, nogil=True)
def _lose(first, wide, inside, outside, start, shares, losses):
    """Add what the log probability would lose, were neighbouring states of a node one state."""
    for a in range(0, wide - 1, 2):
        one, other = inside[start + a] * outside[start + a], inside[start + a + 1] * outside[start + a + 1]
        mixed = shares[first + a] * inside[start + a] + shares[first + a + 1] * inside[start + a + 1]
        left = 1.0 - one - other + mixed * (outside[start + a] + outside[start + a + 1])
        losses[(first + a) // 2] -= np.log(max(left, 1e-300))


@njit(cache=True, nogil=True)
def sum_annotations(block, count, starts, nodes, sizes, binary, lone, stay, words, root, of_binary, of_lone, of_words,
                    states, shares, counted, losses, values):  # fmt: skip
    """Log probabilities of trees, summed over annotations, and expected uses of all weights.

    Parameters
    ----------
    starts : int64[n_trees + 1]
        Where the nodes of each tree begin; this block works on trees block, block + count, …
    nodes : int64[n_nodes, 6]
        Symbol made, symbol seen, number of the binary rule or of the entry of the lexicon, number of the unary rule or
        −1, and the two nodes below, counted from the start of the tree, or −1 for words.
    sizes : int64[S]
        States of each symbol.
    binary, lone, stay, words, root : float64[...]
        Weights: of binary rules, of unary ones, of no unary rule, of words, of the symbol above all.
    of_binary, of_lone, of_words, states : int64[...]
        Where the blocks of rules, entries and symbols begin.
    shares : float64[n_states]
        How often each state is used among the two that would be one; empty where losses are not asked for.
    counted : float64[blocks, n_weights]
        In the row of this block expected uses are added up, kinds in the order binary, lone, stay, words, root.
    losses : float64[blocks, n_states // 2]
    values : float64[n_trees]
    """
    most, wide = 1, 1
    for s in range(block, len(starts) - 1, count):
        most = max(most, starts[s + 1] - starts[s])
    for a in range(len(sizes)):
        wide = max(wide, sizes[a])
    room = most * wide
    charts = (np.empty(room), np.empty(room), np.empty(room), np.empty(room), np.empty(2 * most))
    where = np.empty((most, 2), np.int64)
    weights, places = (binary, lone, stay, words), (of_binary, of_lone, of_words)
    row = counted[block]
    first, second = len(binary), len(binary) + len(lone)
    third, fourth = second + len(stay), second + len(stay) + len(words)
    counts = (row[:first], row[first:second], row[second:third], row[third:fourth], row[fourth:])
    for s in range(block, len(starts) - 1, count):
        tree = nodes[starts[s] : starts[s + 1]]
        n, value = len(tree), 0.0
        values[s] = 0.0
        if n == 0:
            continue
        for v in range(n):
            where[v, 0], where[v, 1] = v * wide, v * wide
            value += _up(v, sizes, tree, weights, places, states, charts, where)
        seen = tree[n - 1, 1]
        at, mass = where[n - 1, 1], 0.0
        for a in range(sizes[seen]):
            mass += charts[1][at + a] * root[states[seen] + a]
        values[s] = value + np.log(mass) if mass > 0.0 else -np.inf
        if values[s] == -np.inf or np.isnan(values[s]):
            values[s] = -np.inf
            continue
        for a in range(sizes[seen]):
            charts[3][at + a] = root[states[seen] + a] / mass
            counts[4][states[seen] + a] += charts[1][at + a] * charts[3][at + a]
        for v in range(n - 1, -1, -1):
            _down(v, sizes, tree, weights, places, states, charts, where, counts)
            if len(shares):
                made = tree[v, 0]
                _lose(states[made], sizes[made], charts[0], charts[2], where[v, 0], shares, losses[block])
                if tree[v, 3] >= 0:
                    seen = tree[v, 1]
                    _lose(states[seen], sizes[seen], charts[1], charts[3], where[v, 1], shares, losses[block])
