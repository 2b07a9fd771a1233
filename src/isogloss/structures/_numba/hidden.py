"""Labelled pairs that are coupled to a tree: what pairs tell the tree, and what its posteriors tell the pairs.

Scores of a sentence are one block: pair[P], label[P, L], connector[C], and those of the parts of its tree ("cells").
A pair whose label is known is told by a number: a label, `NO_PAIR`, or `UNKNOWN`; the number of labels stands for a
pair without a label, which `at_most_one` allows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.loopy_heads import softplus, sure

__all__ = ["NO_PAIR", "UNKNOWN", "label_pairs", "shared_pair", "spread", "weigh"]

NO_PAIR, UNKNOWN = -1, -2


@njit(cache=True, nogil=True)
def _total(scores, at, labels, bare, best):
    """log Σ exp of the labels of a pair, with one more term of 1 for a bare one; or the largest."""
    top = 0.0 if bare else -np.inf
    for a in range(labels):
        top = max(top, scores[at + a])
    if best or top == -np.inf:
        return top
    total = np.exp(-top) if bare else 0.0
    for a in range(labels):
        total += np.exp(scores[at + a] - top)
    return top + np.log(total)


@njit(cache=True, nogil=True)
def _either(x, best):
    """log(1 + exp x), or max(0, x)."""
    return max(0.0, x) if best else softplus(x)


@njit(cache=True, nogil=True)
def weigh(
    block, blocks, scores, offsets, pairs, labels, starts, couplings, pair, cell, bare, known, best, cells, weights,
    values, tree,
):  # fmt: skip
    """Sum the labels of every pair, and hand the rest to the tree.

    starts, couplings, cells : int64[n_sentences + 1]
        Where the pairs, the connectors and the cells of each sentence begin.
    pair, cell : int64[n_couplings]
        The pair and the cell of each connector, numbered in its sentence.
    weights : float64[n_pairs]
        Out: log A of each pair, the total weight of being true; of its known label, if it has one.
    values : float64[n_sentences]
        Out: Σ log(1 + A).
    tree : float64[n_cells]
        Out: scores of the tree, log ω + log(1 + A δ) − log(1 + A).
    """
    for s in range(block, len(pairs), blocks):
        at, many = offsets[s], pairs[s]
        values[s] = 0.0
        for p in range(many):
            q, row = starts[s] + p, at + many + p * labels
            if known[q] == NO_PAIR:
                weights[q] = -np.inf
            elif known[q] == UNKNOWN:
                weights[q] = scores[at + p] + _total(scores, row, labels, bare, best)
                values[s] += _either(weights[q], best)
            else:
                weights[q] = scores[at + p] + (scores[row + known[q]] if known[q] < labels else 0.0)
                values[s] += weights[q]
        first, mine = at + many * (1 + labels), couplings[s + 1] - couplings[s]
        for c in range(cells[s + 1] - cells[s]):
            tree[cells[s] + c] = scores[first + mine + c]
        for c in range(mine):
            q, to = starts[s] + pair[couplings[s] + c], cells[s] + cell[couplings[s] + c]
            if known[q] == UNKNOWN:
                tree[to] += _either(weights[q] + scores[first + c], best) - _either(weights[q], best)
            elif known[q] != NO_PAIR:
                tree[to] += scores[first + c]


@njit(cache=True, nogil=True)
def spread(
    block, blocks, scores, offsets, pairs, labels, starts, couplings, pair, cell, bare, known, cells, weights, tree, out
):  # fmt: skip
    """Posteriors of all parts from those of the tree, `tree`: laid out as the scores.

    A pair is true with σ(a) + Σ μ (σ(a + d) − σ(a)), which is σ(a) to the bit where all d are 0.
    """
    for s in range(block, len(pairs), blocks):
        at, many = offsets[s], pairs[s]
        first, mine = at + many * (1 + labels), couplings[s + 1] - couplings[s]
        for p in range(many):
            q = starts[s] + p
            if known[q] == UNKNOWN:
                out[at + p] = sure(weights[q])
            else:
                out[at + p] = 0.0 if known[q] == NO_PAIR else 1.0
        for c in range(cells[s + 1] - cells[s]):
            out[first + mine + c] = tree[cells[s] + c]
        for c in range(mine):
            p, mu = pair[couplings[s] + c], tree[cells[s] + cell[couplings[s] + c]]
            q = starts[s] + p
            if known[q] == UNKNOWN:
                true = sure(weights[q] + scores[first + c])
                out[first + c] = mu * true
                out[at + p] += mu * (true - sure(weights[q]))
            else:
                out[first + c] = 0.0 if known[q] == NO_PAIR else mu
        for p in range(many):
            q, row = starts[s] + p, at + many + p * labels
            out[at + p] = min(1.0, max(0.0, out[at + p]))
            for a in range(labels):
                out[row + a] = 0.0
                if known[q] == a:
                    out[row + a] = 1.0
                elif known[q] == UNKNOWN and weights[q] > -np.inf:
                    out[row + a] = out[at + p] * np.exp(scores[at + p] + scores[row + a] - weights[q])


@njit(cache=True, nogil=True)
def label_pairs(
    block, blocks, scores, offsets, pairs, labels, starts, couplings, pair, cell, bare, known, best, cells, tree, u, out
):  # fmt: skip
    """The best labels of all pairs, or drawn ones, once the tree is there (`tree`: 1 for each cell that it has)."""
    for s in range(block, len(pairs), blocks):
        at, many = offsets[s], pairs[s]
        first = at + many * (1 + labels)
        extra = np.zeros(many)
        for c in range(couplings[s], couplings[s + 1]):
            if tree[cells[s] + cell[c]] > 0:
                extra[pair[c]] += scores[first + c - couplings[s]]
        terms = np.empty(labels + 2)
        for p in range(many):
            q, row = starts[s] + p, at + many + p * labels
            if known[q] != UNKNOWN:
                out[q] = known[q]
                continue
            for a in range(labels):
                terms[a] = scores[at + p] + extra[p] + scores[row + a]
            terms[labels] = scores[at + p] + extra[p] if bare else -np.inf
            terms[labels + 1] = 0.0
            chosen = labels + 1
            if best:
                for a in range(labels + 1):
                    if terms[a] > terms[chosen]:
                        chosen = a
            else:
                chosen = _drawn(terms, u[q])
            out[q] = chosen if chosen <= labels else NO_PAIR


@njit(cache=True, nogil=True)
def _drawn(terms, u):
    """A number drawn with probabilities proportional to exp of the terms."""
    top = terms.max()
    left = u * np.exp(terms - top).sum()
    last = 0
    for a in range(len(terms)):
        if terms[a] > -np.inf:
            last = a
            left -= np.exp(terms[a] - top)
            if left < 0:
                break
    return last


@njit(cache=True, nogil=True)
def shared_pair(couplings, pair, cell, lengths, spans):
    """A sentence and two of its connectors that belong to one pair and could both be in one tree; −1 if there is none.

    Two links exclude each other if they have the same child, or are the two directions of one; two spans, if they
    cross. Connectors of a pair stand side by side.
    """
    for s in range(len(couplings) - 1):
        for c in range(couplings[s], couplings[s + 1]):
            d = c + 1
            while d < couplings[s + 1] and pair[d] == pair[c]:
                if not _exclude(cell[c], cell[d], lengths[s], spans):
                    return s, c, d
                d += 1
    return -1, -1, -1


@njit(cache=True, nogil=True)
def _exclude(one, other, n, spans):
    if one == other:
        return False
    if spans:
        a, b = _ends(one, n)
        c, d = _ends(other, n)
        return a < c < b < d or c < a < d < b
    head, child = one // (n + 1), one % (n + 1)
    above, below = other // (n + 1), other % (n + 1)
    return child == below or (head == below and child == above)


@njit(cache=True, nogil=True)
def _ends(number, n):
    """Fence-posts of a span by its number."""
    width = 1
    while number >= n - width + 1:
        number -= n - width + 1
        width += 1
    return number, number + width
