"""The best spanning tree, in O(n²): Chu-Liu-Edmonds on a dense graph, as Tarjan and Gabow and others arrange it.

A path grows from a word towards the root: each of its ends takes its best head. Where the path closes on itself, the
cycle becomes one node, whose links in are worth what they gain over the link that they replace. When the path comes to
the root or to a word that is connected already, the next path begins. In the end cycles are opened from the outermost
inwards, each where its chosen link comes in.

With one root child only, trees are compared first by the number of their root links and then by score. Since the
members of a cycle never hold on to the root, that is the same algorithm with one more rule: the root is taken when
there is no other head. No large constant is subtracted, and no digit lost.

References
----------
Tarjan, Finding optimum branchings, Networks 7, 1977; Camerini, Fratta and Maffioli, A note on finding optimum
branchings, Networks 9, 1979. Zmigrod, Vieira and Cotterell, Please mind the root: decoding arborescences for dependency
parsing, EMNLP 2020, on one root child; we differ by the rule above.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["best_tree", "best_trees"]

_KERNEL = {"cache": True, "nogil": True}
_FRESH, _ON_PATH, _DONE = 0, 1, 2


@njit(**_KERNEL)
def _best_head(row, top, node, n, single):
    """The best head outside `node`: the lowest among equals, −1 if there is none."""
    best, weight = -1, -np.inf
    for head in range(1 if single else 0, n + 1):
        if row[head] > weight and top[head] != node:
            best, weight = head, row[head]
    if single and best < 0 and row[0] > -np.inf:
        best = 0
    return best


@njit(**_KERNEL)
def _contract(members, gains, slots, rows, entry, top, node, n):
    """Make the cycle `members` one node, kept in the row of the first; its links are worth what they gain."""
    into = slots[members[0]]
    for at in range(len(members)):
        row, gain = slots[members[at]], gains[members[at]]
        for head in range(n + 1):
            value = rows[row, head] - gain
            if at == 0:
                rows[into, head] = value
            elif value > rows[into, head]:
                rows[into, head], entry[into, head] = value, entry[row, head]
    for at in range(len(members)):
        for word in range(1, n + 1):
            if top[word] == members[at]:
                top[word] = node
    slots[node] = into


@njit(**_KERNEL)
def _open(n, nodes, above, links, heads):
    """Heads of all words, from the chosen link (head, child) of every node, the cycles opened from outside inwards."""
    settled = np.zeros(nodes, np.bool_)
    for node in range(nodes - 1, 0, -1):
        if settled[node]:
            continue
        child = links[node, 1]
        heads[child - 1] = links[node, 0]
        while child != node:
            settled[child] = True
            child = above[child]


@njit(**_KERNEL)
def best_tree(scores, single, heads):
    """Fill heads[n] with the best tree and return its score; −∞ if no tree is allowed.

    Parameters
    ----------
    scores : float64[n + 1, n + 1]
        (head, child); −∞ forbids, the diagonal and column 0 are not read.
    """
    n = scores.shape[0] - 1
    rows, entry = np.empty((n + 1, n + 1)), np.empty((n + 1, n + 1), np.int64)
    for word in range(1, n + 1):
        for head in range(n + 1):
            rows[word, head], entry[word, head] = scores[head, word], word
    top, slots = np.arange(n + 1), np.arange(2 * n + 2)  # the node that a word is in; the row that a node is in
    state, above = np.zeros(2 * n + 2, np.int64), np.zeros(2 * n + 2, np.int64)
    gains, links = np.empty(2 * n + 2), np.zeros((2 * n + 2, 2), np.int64)
    path, length, nodes, root_links = np.empty(2 * n + 2, np.int64), 0, n + 1, 0
    for word in range(1, n + 1):
        if state[top[word]] == _DONE:
            continue
        path[0], length = top[word], 1
        while length:
            node = path[length - 1]
            state[node] = _ON_PATH
            row = slots[node]
            head = _best_head(rows[row], top, node, n, single)
            if head < 0:
                return -np.inf
            gains[node], links[node, 0], links[node, 1] = rows[row, head], head, entry[row, head]
            other = top[head]
            if head == 0 or state[other] == _DONE:
                root_links += head == 0
                for at in range(length):
                    state[path[at]] = _DONE
                length = 0
            elif state[other] == _FRESH:
                path[length] = other
                length += 1
            else:
                at = length - 1
                while path[at] != other:
                    at -= 1
                for member in path[at:length]:
                    above[member] = nodes
                _contract(path[at:length], gains, slots, rows, entry, top, nodes, n)
                path[at], length = nodes, at + 1
                nodes += 1
    if single and root_links > 1:
        return -np.inf
    _open(n, nodes, above, links, heads)
    value = 0.0
    for word in range(1, n + 1):
        value += scores[heads[word - 1], word]
    return value


@njit(**_KERNEL)
def best_trees(block, count, scores, offsets, sizes, single, heads, starts, values):
    """`best_tree` of the sentences block, block + count, …

    Parameters
    ----------
    scores : float64[n_values]
        Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``, a block [sizes[s], sizes[s]], sizes counting the root.
    heads : int64[n_words]
        Sentence *s* is written to ``heads[starts[s]:starts[s + 1]]``.
    values : float64[n_sentences]
    """
    for s in range(block, len(sizes), count):
        matrix = scores[offsets[s] : offsets[s + 1]].reshape((sizes[s], sizes[s]))
        values[s] = best_tree(matrix, single, heads[starts[s] : starts[s + 1]])
