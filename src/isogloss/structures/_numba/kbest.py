"""The k best derivations of a chart, lazily: cells look no further than what is asked of them.

A chart is a set of *cells*, each the union over its *edges* of what a left and a right cell have, either of which may
be missing; an edge has a score of its own, and a tag, which is for the caller. It is a named tuple of arrays, for whose
type `edges_of` and `best_of` are overloaded, so that kernels are compiled for it and kept on disk.

The derivations of a cell come out of a heap, best first. After the one that joins item p of the left cell and item q of
the right cell by some edge come (p, q + 1) and, if q is the first, (p + 1, q), so that each pair enters once; the next
item of a cell is only looked for when it is needed there. Huang and Chiang, Better k-best parsing, IWPT 2005,
algorithm 3.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["best_of", "edges_of", "k_derivations"]

ONE, OTHER, TAG = 0, 1, 2  # of an edge: the left cell, the right cell (−1: none), and the tag
EDGE, LEFT, RIGHT, FOLLOWS, CHILD, SIBLING = 0, 1, 2, 3, 4, 5
"""Of a node, which is a derivation that was found or waits in the heap of its cell: its edge, the nodes below (−1:
none; −2: the first of its cell, which is not looked for yet), the next derivation of the same cell, and links of the
heap."""
FIRST, LAST, HEAP, SEEN, DONE = 0, 1, 2, 3, 4  # of a cell: nodes, or −1; whether it was opened, and has no more
OPEN, MOVE_LEFT, MOVE_RIGHT, POP, LINK = 0, 1, 2, 3, 4  # what is to be done next for a cell


def edges_of(chart, cell, edges, extras):
    """Write the edges of a cell, if there is room for them, and return how many there are.

    edges : int64[room, 3]
        Left cell, right cell (−1 for none), and tag of each.
    extras : float64[room]
        Scores of the edges themselves; edges with −∞ need not be listed.
    """
    raise NotImplementedError


def best_of(chart, cell):
    """The score of the best derivation of a cell, −∞ if there is none."""
    raise NotImplementedError


@njit(cache=True, nogil=True)
def _joined(nodes, scores, a, b):
    """Two heaps as one: higher scores first, and among equals the one that came first. Either may be −1."""
    if a < 0:
        return b
    if b < 0:
        return a
    if scores[b] > scores[a] or (scores[b] == scores[a] and b < a):
        a, b = b, a
    nodes[b, SIBLING] = nodes[a, CHILD]
    nodes[a, CHILD] = b
    return a


@njit(cache=True, nogil=True)
def _without_first(nodes, scores, root):
    """The heap without its first node: its children joined by pairs, then all."""
    pairs, at = -1, nodes[root, CHILD]
    while at >= 0:
        other = nodes[at, SIBLING]
        rest = nodes[other, SIBLING] if other >= 0 else -1
        nodes[at, SIBLING] = -1
        if other >= 0:
            nodes[other, SIBLING] = -1
        both = _joined(nodes, scores, at, other)
        nodes[both, SIBLING] = pairs
        pairs, at = both, rest
    heap = -1
    while pairs >= 0:
        rest = nodes[pairs, SIBLING]
        nodes[pairs, SIBLING] = -1
        heap, pairs = _joined(nodes, scores, heap, pairs), rest
    return heap


@njit(cache=True, nogil=True)
def _push(nodes, scores, used, cells, cell, edge, left, right, score):
    node = used[1]
    used[1] += 1
    scores[node] = score
    nodes[node] = -1
    nodes[node, EDGE], nodes[node, LEFT], nodes[node, RIGHT] = edge, left, right
    cells[cell, HEAP] = _joined(nodes, scores, cells[cell, HEAP], node)


@njit(cache=True, nogil=True)
def _move(nodes, scores, used, cells, cell, edges, extras, side):
    """Put the successor of the last derivation on one side into the heap; returns a cell that must advance first."""
    last = cells[cell, LAST]
    edge, left, right = nodes[last, EDGE], nodes[last, LEFT], nodes[last, RIGHT]
    mine, theirs = (left, right) if side == LEFT else (right, left)
    if mine < 0 or (side == LEFT and right >= 0 and right != cells[edges[edge, OTHER], FIRST]):
        return -1
    below, new = edges[edge, ONE if side == LEFT else OTHER], nodes[mine, FOLLOWS]
    if new < 0:
        return -1 if cells[below, DONE] else below
    score = extras[edge] + scores[new] + (scores[theirs] if theirs >= 0 else 0.0)
    _push(nodes, scores, used, cells, cell, edge, new if side == LEFT else left, right if side == LEFT else new, score)
    return -1


@njit(cache=True, nogil=True)
def _link(nodes, cells, edges, node):
    """Say which derivations the node is made of, where that was left open; returns a cell that must advance first."""
    edge = nodes[node, EDGE]
    for side in (LEFT, RIGHT):
        if nodes[node, side] == -2:
            below = edges[edge, ONE if side == LEFT else OTHER]
            if cells[below, FIRST] < 0:
                return below
            nodes[node, side] = cells[below, FIRST]
    return -1


@njit(cache=True, nogil=True)
def _advance(chart, edges, extras, nodes, scores, used, cells, stack, depth):
    """Find the next derivation of the cell at the bottom of the stack, unless it has no more, and whatever that needs.

    Returns 0, or how deep the stack is where there was not enough room: to be called again with twice as much.
    """
    while depth:
        cell, phase, node = stack[depth - 1, 0], stack[depth - 1, 1], stack[depth - 1, 2]
        if used[1] + 2 > len(nodes):
            return depth
        below = -1
        if phase == OPEN and not cells[cell, SEEN]:
            at = used[0]
            count = edges_of(chart, cell, edges[at:], extras[at:])
            if at + count > len(edges) or used[1] + count > len(nodes):
                return depth
            cells[cell, SEEN] = 1
            used[0] += count
            for edge in range(at, at + count):
                one, other = edges[edge, ONE], edges[edge, OTHER]
                score = extras[edge] + (best_of(chart, one) if one >= 0 else 0.0)
                score += best_of(chart, other) if other >= 0 else 0.0
                if score > -np.inf:
                    _push(nodes, scores, used, cells, cell, edge, min(one, 0) - (one >= 0) * 2,
                          min(other, 0) - (other >= 0) * 2, score)  # fmt: skip
            phase = POP
        elif phase <= MOVE_LEFT:
            below = _move(nodes, scores, used, cells, cell, edges, extras, LEFT)
            phase = MOVE_RIGHT if below < 0 else MOVE_LEFT
        elif phase == MOVE_RIGHT:
            below = _move(nodes, scores, used, cells, cell, edges, extras, RIGHT)
            phase = POP if below < 0 else MOVE_RIGHT
        elif phase == POP:
            node = cells[cell, HEAP]
            if node < 0:
                cells[cell, DONE] = 1
                depth -= 1
                continue
            cells[cell, HEAP] = _without_first(nodes, scores, node)
            phase = LINK
        else:
            below = _link(nodes, cells, edges, node)
            if below < 0:
                last = cells[cell, LAST]
                if last < 0:
                    cells[cell, FIRST] = node
                else:
                    nodes[last, FOLLOWS] = node
                cells[cell, LAST] = node
                depth -= 1
                continue
        stack[depth - 1, 1], stack[depth - 1, 2] = phase, node
        if below >= 0:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = below, OPEN, -1
            depth += 1
    return 0


@njit(cache=True, nogil=True)
def _read(nodes, edges, node, tags, stack):
    """The tags of all edges of a derivation; returns how many."""
    found, depth = 0, 1
    stack[0, 0] = node
    while depth:
        depth -= 1
        node = stack[depth, 0]
        tags[found] = edges[nodes[node, EDGE], TAG]
        found += 1
        for side in (RIGHT, LEFT):
            if nodes[node, side] >= 0:
                stack[depth, 0] = nodes[node, side]
                depth += 1
    return found


@njit(cache=True, nogil=True)
def _twice(numbers, values):
    """Copies of two arrays of one length, twice as long; loops, since slices of arrays compile slowly."""
    more, others = np.empty((2 * len(values), numbers.shape[1]), np.int64), np.empty(2 * len(values))
    for at in range(len(values)):
        others[at] = values[at]
        for column in range(numbers.shape[1]):
            more[at, column] = numbers[at, column]
    return more, others


@njit(cache=True, nogil=True)
def k_derivations(chart, n_cells, goal, k, longest, values):
    """The `k` best derivations of cell `goal`: the tags of their edges, one derivation after the other.

    Parameters
    ----------
    longest : int
        Edges of a derivation at most.
    values : float64[k]
        Overwritten with scores, best first.

    Returns
    -------
    tags : int64[count, longest]
        Of all edges of each derivation, what is above before what is below, left before right.
    lengths : int64[count]
        How many edges each derivation has.
    """
    edges, extras = np.empty((8 * longest, 3), np.int64), np.empty(8 * longest)
    nodes, scores = np.empty((8 * longest, 6), np.int64), np.empty(8 * longest)
    used, cells = np.zeros(2, np.int64), np.zeros((n_cells, 5), np.int64)
    for cell in range(n_cells):
        cells[cell, FIRST] = cells[cell, LAST] = cells[cell, HEAP] = -1
    stack, roots = np.empty((longest + 2, 3), np.int64), np.empty(k, np.int64)
    count = depth = 0
    before = -1
    while count < k:
        if not depth:
            stack[0, 0], stack[0, 1], stack[0, 2] = goal, OPEN, -1
            depth, before = 1, cells[goal, LAST]
        depth = _advance(chart, edges, extras, nodes, scores, used, cells, stack, depth)
        if depth:
            edges, extras = _twice(edges, extras)
            nodes, scores = _twice(nodes, scores)
        elif cells[goal, LAST] == before:
            break
        else:
            roots[count] = cells[goal, LAST]
            values[count] = scores[roots[count]]
            count += 1
    tags, lengths = np.empty((count, longest), np.int64), np.empty(count, np.int64)
    for rank in range(count):
        lengths[rank] = _read(nodes, edges, roots[rank], tags[rank], stack)
    return tags, lengths
