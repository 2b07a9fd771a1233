r"""Spanning trees drawn exactly in O(n³), whatever the scores.

Heads are drawn one word after the other, each given those before: a word that has its head is from then on a word whose
walk can only go there. The head of j is i with probability proportional to :math:`u(i, j)\, e_j(i)`, where
:math:`e_j(i)` is the probability that the walk from i comes to the root before j (see `escape`). To find it anew for
every word, sentences are halved: with the right half taken out, the left half is dealt with in the same way; then the
left half, its heads known, is taken out, and the right half is dealt with. What is passed down is the graph over the
words of the part, and for every other word where the walk from it first enters the part, or that it comes to the root.

Wilson's algorithm draws from the same distribution by running the walks; where scores are extreme it may run for ever.

References
----------
Wilson, Generating random spanning trees more quickly than the cover time, STOC 1996. Harvey and Xu, Generating random
spanning trees via fast matrix multiplication, LATIN 2016, halve in the same way with updates of an inverse; we differ
in having no subtractions.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.arithmetic import nothing, number, plus, stored, times
from isogloss.structures._numba.escape import KERNEL, depth_of, eliminate, rotated
from isogloss.structures._numba.spanning import gather

__all__ = ["sampled_trees"]

_LEAST = 1e-250  # below this, plain numbers may have lost what decides


@njit(**KERNEL)
def _pick(weights, u):
    """An index drawn with probability proportional to its weight; the last possible takes what rounding leaves."""
    total = 0.0
    for i in range(len(weights)):
        total += weights[i]
    at, cumulative = 0, 0.0
    for i in range(len(weights)):
        if weights[i] > 0.0 and cumulative <= u * total:
            at = i
        cumulative += weights[i]
    return at


@njit(**KERNEL)
def _draw_head(ar, weights, root, j, out_root, u, mass):
    """The head of word j, −1 for the root, −2 if all weights are gone; `out_root` says how likely each other word comes
    to the root before j."""
    m = len(root)
    high = root[j]
    mass[m] = root[j]
    for i in range(m):
        mass[i] = nothing(ar) if i == j else times(ar, weights[j, i], out_root[i])
        high = max(high, mass[i])
    if not (nothing(ar) < 0.0 or high > _LEAST):
        return -2
    for i in range(m + 1):
        mass[i] = number(ar, mass[i] - high if nothing(ar) < 0.0 else mass[i] / high)
    at = _pick(mass, u)
    return -1 if at == m else at


@njit(**KERNEL)
def _decide(ar, inner, first, keep, size, start, half, heads, entry, entry_root):
    """Rewrite the rows of the left half, which are last in `inner`: its words go where their heads are.

    A head outside the part is replaced by where the walk from it enters the part.
    """
    for k in range(keep, size):
        row, head = inner[k], heads[start + k - keep]
        for i in range(size):
            row[i] = nothing(ar)
        first[k] = nothing(ar)
        if head < 0:
            first[k] = stored(ar, 0.0)
        elif start <= head < start + size:
            row[head - start - half if head >= start + half else keep + head - start] = stored(ar, 0.0)
        else:
            for i in range(keep):
                row[i] = entry[head, half + i]
            for i in range(half):
                row[keep + i] = entry[head, i]
            first[k] = entry_root[head]


@njit(**KERNEL)
def _enter(ar, inner, first, keep, size, left, right, start, entry, entry_root, out, out_root):
    """Where walks enter the words left … left + keep − 1 of the part; the rest, from `right` on, is now out."""
    for k in range(keep, size):  # from words of the part that are out
        row, step = out[right + k - keep], inner[k]
        for t in range(keep):
            row[t] = step[t]
        out_root[right + k - keep] = first[k]
        for i in range(keep, k):
            known = out[right + i - keep]
            for t in range(keep):
                row[t] = plus(ar, row[t], times(ar, step[i], known[t]))
            out_root[right + k - keep] = plus(
                ar, out_root[right + k - keep], times(ar, step[i], out_root[right + i - keep])
            )
    for x in range(len(out_root)):  # from words outside the part
        if start <= x < start + size:
            continue
        row, old = out[x], entry[x]
        for t in range(keep):
            row[t] = old[left - start + t]
        out_root[x] = entry_root[x]
        for k in range(size - keep):
            share = old[right - start + k]
            if share == nothing(ar):
                continue
            known = out[right + k]
            for t in range(keep):
                row[t] = plus(ar, row[t], times(ar, share, known[t]))
            out_root[x] = plus(ar, out_root[x], times(ar, share, out_root[right + k]))


@njit(**KERNEL)
def _draw(ar, weights, root, u, heads):
    """Fill heads[m] with the head of each word, −1 for the root; weights[j, i] of child j and head i.

    Returns False, and leaves heads unfinished, where plain numbers have run out of range.
    """
    m, depth = len(root), depth_of(len(root))
    graphs, roots, pivots = np.empty((depth + 1, m, m)), np.empty((depth + 1, m)), np.empty(m)
    entries, entry_roots, mass = np.empty((depth + 1, m, m)), np.empty((depth + 1, m)), np.empty(m + 1)
    starts, sizes, turn = np.zeros(depth + 1, np.int64), np.zeros(depth + 1, np.int64), np.zeros(depth + 1, np.int64)
    sizes[0] = m
    level = 0
    while level >= 0:
        start, size = starts[level], sizes[level]
        half = (size + 1) // 2
        if size == 1:
            heads[start] = _draw_head(ar, weights, root, start, entry_roots[level], u[start], mass)
            if heads[start] == -2:
                return False
            level -= 1
            continue
        if turn[level] == 2:
            level -= 1
            continue
        inner, first, entry, entry_root = graphs[level + 1], roots[level + 1], entries[level], entry_roots[level]
        left, right, keep = (start, start + half, half) if turn[level] == 0 else (start + half, start, size - half)
        graph, above = (graphs[level], roots[level]) if level else (weights, root)
        rotated(graph, above, left - start, size, inner, first)
        if turn[level] == 1:
            _decide(ar, inner, first, keep, size, start, half, heads, entry, entry_root)
        eliminate(ar, inner, first, keep, size, False, pivots)
        _enter(
            ar, inner, first, keep, size, left, right, start,
            entry, entry_root, entries[level + 1], entry_roots[level + 1],
        )  # fmt: skip
        starts[level + 1], sizes[level + 1], turn[level + 1] = left, keep, 0
        turn[level] += 1
        level += 1
    return True


@njit(**KERNEL)
def _sample(ar, scores, single, marginals, u, heads):
    """One tree; `u` holds a uniform number for each word. False where plain numbers have run out of range."""
    n, top = scores.shape[0] - 1, 0
    if single and n:
        top = _pick(marginals[0], u[0])  # then all others are below this word, and the root is out
        heads[top - 1] = 0
    m = n - 1 if single else n
    if m <= 0:
        return True
    words, tops = np.empty(m, np.int64), np.empty(1, np.int64)
    tops[0] = top
    a = 0
    for word in range(1, n + 1):
        if word != top:
            words[a] = word
            a += 1
    weights, root, found = np.empty((m, m)), np.empty(m), np.empty(m, np.int64)
    gather(scores, words, tops, False, weights, root)
    for a in range(m):
        for b in range(m):
            weights[a, b] = stored(ar, weights[a, b])
        root[a] = stored(ar, root[a])
    if not _draw(ar, weights, root, u[n - m :], found):
        return False
    for a in range(m):
        heads[words[a] - 1] = top if found[a] < 0 else words[found[a]]
    return True


@njit(**KERNEL)
def sampled_trees(block, count, ar, chosen, scores, offsets, sizes, single, marginals, u, heads, starts):
    """One tree for each of the sentences block, block + count, … that are chosen; `chosen` is left at those that have
    run out of range, to be drawn again in logarithms.

    Parameters
    ----------
    ar, chosen
        The arithmetic with which `spanning_trees` succeeded on the chosen sentences.
    scores, marginals : float64[n_values]
        As `spanning_trees` takes and leaves them.
    u : float64[n_words]
        Uniform on [0, 1); sentence *s* reads ``u[starts[s]:starts[s + 1]]``.
    heads : int64[n_words]
        Overwritten.
    """
    for s in range(block, len(sizes), count):
        if not chosen[s]:
            continue
        shape, start, stop = (sizes[s], sizes[s]), offsets[s], offsets[s + 1]
        matrix, posterior = scores[start:stop].reshape(shape), marginals[start:stop].reshape(shape)
        draws, out = u[starts[s] : starts[s + 1]], heads[starts[s] : starts[s + 1]]
        chosen[s] = not _sample(ar, matrix, single, posterior, draws, out)
