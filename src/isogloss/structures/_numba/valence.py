"""Projective trees with valence (DMV and its extensions): Eisner's spans, with the state of the head beside them.

Words are 0 … n-1 here and boundaries between them 0 … n, so that a head h and a boundary b name a span with its side:
the words from h up to b if b > h, and from b up to h if b ≤ h. A head walks through states on each side; a child of
class v takes it from state ``before`` to state ``after`` (v to v + 1 when the nearest child has class 0, v + 1 to v
when the farthest has; both capped). Start and end weights hold the decision to stop.

    inner[s, h, m]  = ⊕_{k between h and m}  part[s, h, k] ⊗ closed[m, k]
    taken[s, h, m]  = ⊕_{v: after(v) = s}    inner[before(v), h, m] ⊗ weight[v, h, m]
    part[s, h, b]   = ⊕_{m between h and b}  taken[s, h, m] ⊗ closed[m, b]         (start[s] on an empty span)
    closed[h, b]    = ⊕_s  part[s, h, b] ⊗ end[s]

and a tree is ⊕_r root[r] ⊗ closed[r, 0] ⊗ closed[r, n]. Every projective tree with one root child has exactly one
derivation. `turned` is `closed` transposed: all loops run along rows. O(n³ V) time, O(n² V) room.

A word may have several senses, one of which it has in a tree, and scores may depend on the senses of head and child.
Then h and m above are *slots*, pairs of a word and a sense, those of word w being first[w] … first[w+1] - 1; boundaries
remain those of words, and "between" is said of words. Without senses, slots are words.

Kernels that take `(block, count)` work on the sentences block, block + count, … of a batch.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.semiring import total, weights

__all__ = ["log_valence_trees", "marginal_valence_trees"]

_GROWTH = 1.9095425048844386  # log(27/4), by which the number of trees grows
_REACH = 690.0  # a little below log(1.8e308), the largest float64


@njit(inline="always")
def _before(v, last, nearest_first):
    return v if nearest_first else min(v + 1, last)


@njit(inline="always")
def _after(v, last, nearest_first):
    return min(v + 1, last) if nearest_first else v


@njit(cache=True, nogil=True)
def _log_weights(scores, stops, children, first, nearest_first, root, start, end, weight):
    """Scores of the parts to those of the program: weight[v, h, m] of a child of class v, and those of states."""
    slots, states = scores.shape[0] - 1, weight.shape[0]
    last_stop, last_child = stops.shape[2] - 1, children.shape[2] - 1
    for m in range(slots):
        root[m] = scores[0, m + 1]
        for side in range(2):
            for s in range(states):
                stop, free = stops[m + 1, side, min(s, last_stop), 1], 0.0 if s == 0 else -np.inf
                start[side, m, s] = free if nearest_first else stop
                end[side, m, s] = stop if nearest_first else free
    for word in range(len(first) - 1):
        for h in range(first[word], first[word + 1]):
            for v in range(states):
                for m in range(slots):
                    side = 1 if m > h else 0
                    taken = stops[h + 1, side, min(v, last_stop), 0] + children[h + 1, m + 1, min(v, last_child)]
                    own = first[word] <= m < first[word + 1]
                    weight[v, h, m] = -np.inf if own else scores[h + 1, m + 1] + taken


@njit(cache=True, nogil=True)
def _add_marginals(d_weight, d_state, d_scores, d_stops, d_children):
    """What the program expects, added up by part; `d_state` is that of the states that hold the decision to stop."""
    states, n = d_weight.shape[0], d_weight.shape[1]  # slots
    last_stop, last_child = d_stops.shape[2] - 1, d_children.shape[2] - 1
    for v in range(states):
        for h in range(n):
            for m in range(n):
                p = d_weight[v, h, m]
                if p > 0.0:
                    d_scores[h + 1, m + 1] += p
                    d_children[h + 1, m + 1, min(v, last_child)] += p
                    d_stops[h + 1, 1 if m > h else 0, min(v, last_stop), 0] += p
    for side in range(2):
        for h in range(n):
            for s in range(states):
                d_stops[h + 1, side, min(s, last_stop), 1] += d_state[side, h, s]
    for h in range(n + 1):
        for m in range(1, n + 1):
            d_scores[h, m] = min(1.0, d_scores[h, m])  # no more than rounding is cut
            for v in range(last_child + 1):
                d_children[h, m, v] = min(1.0, d_children[h, m, v])


# --- in plain probabilities


@njit(cache=True, nogil=True)
def _scale(root, start, end, weight, first, nearest_first):
    """Logarithms to weights of at most 1: every word has one head, and stops once on each side.

    Returns the logarithm of what was divided by; −∞ where a word has no head or cannot stop.
    """
    states, slots = weight.shape[0], weight.shape[1]
    stop, free = (end, start) if nearest_first else (start, end)
    shift = 0.0
    for word in range(len(first) - 1):
        low, high = first[word], first[word + 1]
        top = root[low:high].max()
        for v in range(states):
            for h in range(slots):
                for m in range(low, high):
                    top = max(top, weight[v, h, m])
        if top == -np.inf:
            return top
        shift += top
        for m in range(low, high):
            root[m] = np.exp(root[m] - top)
        for v in range(states):
            for h in range(slots):
                for m in range(low, high):
                    weight[v, h, m] = np.exp(weight[v, h, m] - top)
        for side in range(2):
            top = stop[side, low:high].max()
            if top == -np.inf:
                return top
            shift += top
            for h in range(low, high):
                for s in range(states):
                    stop[side, h, s] = np.exp(stop[side, h, s] - top)
                    free[side, h, s] = np.exp(free[side, h, s])
    return shift


@njit(cache=True, nogil=True)
def _inside(start, end, weight, first, nearest_first, part, taken, inner, closed, turned):
    """Fill the charts, which are zero before, narrow spans first."""
    states, n = weight.shape[0], len(first) - 1
    last = states - 1
    for d in range(n):
        for head in range(n):
            for side in range(2):
                child = head + d if side else head - d
                if d == 0 or child < 0 or child >= n:
                    continue
                low, high = min(head, child) + 1, max(head, child) + 1
                for h in range(first[head], first[head + 1]):
                    for m in range(first[child], first[child + 1]):
                        for s in range(states):
                            mass = 0.0
                            for k in range(low, high):
                                mass += part[s, h, k] * closed[m, k]
                            inner[s, h, m] = mass
                        for v in range(states):
                            of = inner[_before(v, last, nearest_first), h, m]
                            taken[_after(v, last, nearest_first), h, m] += of * weight[v, h, m]
        for head in range(n):
            for side in range(2):
                child = head + d if side else head - d
                if child < 0 or child >= n:
                    continue
                b = child + side
                low, high = (first[head + 1], first[child + 1]) if side else (first[child], first[head])
                for h in range(first[head], first[head + 1]):
                    sealed = 0.0
                    for s in range(states):
                        mass = start[side, h, s] if d == 0 else 0.0
                        for m in range(low, high):
                            mass += taken[s, h, m] * turned[b, m]
                        part[s, h, b] = mass
                        sealed += mass * end[side, h, s]
                    closed[h, b] = turned[b, h] = sealed


@njit(cache=True, nogil=True)
def _outside(start, end, weight, first, nearest_first, charts, adjoints, d_weight, d_state):
    """The loops of `_inside`, reversed; `d_weight` and `d_state` come out as posteriors."""
    part, taken, inner, closed, turned = charts
    d_part, d_taken, d_closed, d_turned = adjoints
    states, n = weight.shape[0], len(first) - 1
    last = states - 1
    for d in range(n - 1, -1, -1):
        for head in range(n):
            for side in range(2):
                child = head + d if side else head - d
                if child < 0 or child >= n:
                    continue
                b = child + side
                low, high = (first[head + 1], first[child + 1]) if side else (first[child], first[head])
                for h in range(first[head], first[head + 1]):
                    above = d_closed[h, b] + d_turned[b, h]
                    for s in range(states):
                        here = d_part[s, h, b] + above * end[side, h, s]
                        if nearest_first:
                            d_state[side, h, s] += above * part[s, h, b] * end[side, h, s]
                        elif d == 0:
                            d_state[side, h, s] = here * start[side, h, s]
                        if here == 0.0:
                            continue
                        for m in range(low, high):
                            d_taken[s, h, m] += here * turned[b, m]
                            d_turned[b, m] += here * taken[s, h, m]
        if d == 0:
            break
        for head in range(n):
            for side in range(2):
                child = head + d if side else head - d
                if child < 0 or child >= n:
                    continue
                low, high = min(head, child) + 1, max(head, child) + 1
                for h in range(first[head], first[head + 1]):
                    for m in range(first[child], first[child + 1]):
                        for v in range(states):
                            s = _before(v, last, nearest_first)
                            pull = d_taken[_after(v, last, nearest_first), h, m] * weight[v, h, m]
                            d_weight[v, h, m] = pull * inner[s, h, m]
                            if pull == 0.0:
                                continue
                            for k in range(low, high):
                                d_part[s, h, k] += pull * closed[m, k]
                                d_closed[m, k] += pull * part[s, h, k]


@njit(cache=True, nogil=True)
def _room(slots, n, states):
    """float64 that `_scaled` works in."""
    return states * (5 * slots * slots + 2 * slots * (n + 1) + 6 * slots) + 4 * slots * (n + 1) + slots


@njit(cache=True, nogil=True)
def _scaled(scores, stops, children, first, nearest_first, d_scores, d_stops, d_children, work):
    """log Z and marginals of a sentence, or NaN where the numbers might not fit, and then nothing is written.

    A product that underflows is wrong by at most 5e-324, and what it is wrong by enters log Z times the sum of all that
    can stand around it, over Z. That sum is below the number of trees with senses, as every weight is at most 1, and
    there are n³V² products for each pair of senses.
    """
    slots, n = scores.shape[0] - 1, len(first) - 1
    states = max(stops.shape[2], children.shape[2])
    bound = n * _GROWTH + 3 * np.log(slots + 1) + 2 * np.log(states)
    for word in range(n):
        bound += np.log(first[word + 1] - first[word])
    if bound > _REACH:
        return np.nan
    square, long, small, wide = states * slots * slots, states * slots * (n + 1), 2 * slots * states, slots * (n + 1)
    work[: _room(slots, n, states)] = 0.0
    at = 0
    weight = work[at : at + square].reshape((states, slots, slots))
    taken = work[at + square : at + 2 * square].reshape((states, slots, slots))
    inner = work[at + 2 * square : at + 3 * square].reshape((states, slots, slots))
    d_taken = work[at + 3 * square : at + 4 * square].reshape((states, slots, slots))
    d_weight = work[at + 4 * square : at + 5 * square].reshape((states, slots, slots))
    at += 5 * square
    part = work[at : at + long].reshape((states, slots, n + 1))
    d_part = work[at + long : at + 2 * long].reshape((states, slots, n + 1))
    at += 2 * long
    start = work[at : at + small].reshape((2, slots, states))
    end = work[at + small : at + 2 * small].reshape((2, slots, states))
    d_state = work[at + 2 * small : at + 3 * small].reshape((2, slots, states))
    at += 3 * small
    closed = work[at : at + wide].reshape((slots, n + 1))
    d_closed = work[at + wide : at + 2 * wide].reshape((slots, n + 1))
    turned = work[at + 2 * wide : at + 3 * wide].reshape((n + 1, slots))
    d_turned = work[at + 3 * wide : at + 4 * wide].reshape((n + 1, slots))
    at += 4 * wide
    root = work[at : at + slots]

    _log_weights(scores, stops, children, first, nearest_first, root, start, end, weight)
    shift = _scale(root, start, end, weight, first, nearest_first)
    if shift == -np.inf:
        return np.nan
    _inside(start, end, weight, first, nearest_first, part, taken, inner, closed, turned)
    z = 0.0
    for r in range(slots):
        z += root[r] * closed[r, 0] * closed[r, n]
    if not (z > 0.0 and np.log(z) >= bound - _REACH):
        return np.nan
    for r in range(slots):
        d_scores[0, r + 1] = min(1.0, root[r] / z * closed[r, 0] * closed[r, n])
        d_closed[r, 0] += root[r] / z * closed[r, n]
        d_closed[r, n] += root[r] / z * closed[r, 0]
    charts = (part, taken, inner, closed, turned)
    adjoints = (d_part, d_taken, d_closed, d_turned)
    _outside(start, end, weight, first, nearest_first, charts, adjoints, d_weight, d_state)
    _add_marginals(d_weight, d_state, d_scores, d_stops, d_children)
    return shift + np.log(z)


@njit(cache=True, nogil=True)
def marginal_valence_trees(
    block, count, scores, stops, children, offsets, sizes, firsts, nearest_first, d_scores, d_stops, d_children, values
):
    """log Z and marginals of many sentences in scaled probabilities; NaN where these might not fit.

    Parameters
    ----------
    scores, stops, children : float64[...]
        Sentence *s* of N slots has [N+1, N+1], [N+1, 2, V_s, 2] and [N+1, N+1, V_c] from ``offsets[0, s]``,
        ``offsets[1, s]`` and ``offsets[2, s]`` on.
    offsets : int64[4, n_sentences]
    sizes : int64[n_sentences, 4]
        N + 1, V_s, V_c, and n + 1 of each.
    firsts : int64[...]
        From ``offsets[3, s]`` on, n + 1 numbers: where the slots of each word begin, and N.
    d_scores, d_stops, d_children : float64[...]
        Zero before; overwritten with marginals.
    values : float64[n_sentences]
        Overwritten.
    """
    work = np.empty(0)
    for sentence in range(block, len(sizes), count):
        size, v_s, v_c, bounds = sizes[sentence]
        if size == 1:
            values[sentence] = 0.0
            continue
        room = _room(size - 1, bounds - 1, max(v_s, v_c))
        if len(work) < room:
            work = np.empty(room)
        first = firsts[offsets[3, sentence] : offsets[3, sentence] + bounds]
        at, to = offsets[0, sentence], offsets[0, sentence] + size * size
        here, out = scores[at:to].reshape((size, size)), d_scores[at:to].reshape((size, size))
        at, to = offsets[1, sentence], offsets[1, sentence] + size * 4 * v_s
        stop, d_stop = stops[at:to].reshape((size, 2, v_s, 2)), d_stops[at:to].reshape((size, 2, v_s, 2))
        at, to = offsets[2, sentence], offsets[2, sentence] + size * size * v_c
        child, d_child = children[at:to].reshape((size, size, v_c)), d_children[at:to].reshape((size, size, v_c))
        values[sentence] = _scaled(here, stop, child, first, nearest_first, out, d_stop, d_child, work)


# --- in any semiring, in logarithms


@njit(cache=True, nogil=True)
def _inside_in(sr, start, end, weight, first, nearest_first, part, taken, inner, closed, turned, x):
    states, n = weight.shape[0], len(first) - 1
    last = states - 1
    for d in range(n):
        for head in range(n):
            for side in range(2):
                child = head + d if side else head - d
                if d == 0 or child < 0 or child >= n:
                    continue
                low = min(head, child) + 1
                for h in range(first[head], first[head + 1]):
                    for m in range(first[child], first[child + 1]):
                        for s in range(states):
                            for t in range(d):
                                x[t] = part[s, h, low + t] + closed[m, low + t]
                            inner[s, h, m] = total(sr, x[:d])
                        for s in range(states):
                            terms = 0
                            for v in range(states):
                                if _after(v, last, nearest_first) == s:
                                    x[terms] = inner[_before(v, last, nearest_first), h, m] + weight[v, h, m]
                                    terms += 1
                            taken[s, h, m] = total(sr, x[:terms])
        for head in range(n):
            for side in range(2):
                child = head + d if side else head - d
                if child < 0 or child >= n:
                    continue
                b = child + side
                low, high = (first[head + 1], first[child + 1]) if side else (first[child], first[head])
                for h in range(first[head], first[head + 1]):
                    for s in range(states):
                        for m in range(low, high):
                            x[m - low] = taken[s, h, m] + turned[b, m]
                        part[s, h, b] = total(sr, x[: high - low]) if d else start[side, h, s]
                    for s in range(states):
                        x[s] = part[s, h, b] + end[side, h, s]
                    closed[h, b] = turned[b, h] = total(sr, x[:states])


@njit(cache=True, nogil=True)
def _outside_in(sr, end, weight, first, nearest_first, u, charts, adjoints, d_weight, d_state, x, w):
    """The loops of `_inside_in`, reversed; `u` is read from its second number on."""
    part, taken, inner, closed, turned = charts
    d_part, d_taken, d_closed = adjoints
    states, n = weight.shape[0], len(first) - 1
    last, drawn = states - 1, 1
    pulls = np.zeros(states)
    for d in range(n - 1, -1, -1):
        for head in range(n):
            for side in range(2):
                child = head + d if side else head - d
                if child < 0 or child >= n:
                    continue
                b = child + side
                low, high = (first[head + 1], first[child + 1]) if side else (first[child], first[head])
                for h in range(first[head], first[head + 1]):
                    above = d_closed[h, b]
                    if above != 0.0:
                        for s in range(states):
                            x[s] = part[s, h, b] + end[side, h, s]
                        weights(sr, x[:states], w[:states], u[drawn] if len(u) else 0.0)
                        drawn += 1
                        for s in range(states):
                            d_part[s, h, b] += above * w[s]
                            if nearest_first:
                                d_state[side, h, s] += above * w[s]
                    for s in range(states):
                        here = d_part[s, h, b]
                        if d == 0 and not nearest_first:
                            d_state[side, h, s] = here
                        if d == 0 or here == 0.0:
                            continue
                        for m in range(low, high):
                            x[m - low] = taken[s, h, m] + turned[b, m]
                        weights(sr, x[: high - low], w[: high - low], u[drawn] if len(u) else 0.0)
                        drawn += 1
                        for m in range(low, high):
                            d_taken[s, h, m] += here * w[m - low]
                            d_closed[m, b] += here * w[m - low]
        if d == 0:
            break
        for head in range(n):
            for side in range(2):
                child = head + d if side else head - d
                if child < 0 or child >= n:
                    continue
                low = min(head, child) + 1
                for h in range(first[head], first[head + 1]):
                    for m in range(first[child], first[child + 1]):
                        pulls[:] = 0.0
                        for s in range(states):
                            if d_taken[s, h, m] == 0.0:
                                continue
                            terms = 0
                            for v in range(states):
                                if _after(v, last, nearest_first) == s:
                                    x[terms] = inner[_before(v, last, nearest_first), h, m] + weight[v, h, m]
                                    terms += 1
                            weights(sr, x[:terms], w[:terms], u[drawn] if len(u) else 0.0)
                            drawn += 1
                            terms = 0
                            for v in range(states):
                                if _after(v, last, nearest_first) == s:
                                    d_weight[v, h, m] = d_taken[s, h, m] * w[terms]
                                    pulls[_before(v, last, nearest_first)] += d_weight[v, h, m]
                                    terms += 1
                        for s in range(states):
                            if pulls[s] == 0.0:
                                continue
                            for t in range(d):
                                x[t] = part[s, h, low + t] + closed[m, low + t]
                            weights(sr, x[:d], w[:d], u[drawn] if len(u) else 0.0)
                            drawn += 1
                            for t in range(d):
                                d_part[s, h, low + t] += pulls[s] * w[t]
                                d_closed[m, low + t] += pulls[s] * w[t]


@njit(cache=True, nogil=True)
def _sweep(sr, scores, stops, children, first, nearest_first, u, d_scores, d_stops, d_children):
    """⊕ over all trees of a sentence, and its derivatives, which are zero before."""
    slots, n = scores.shape[0] - 1, len(first) - 1
    states = max(stops.shape[2], children.shape[2])
    root, weight = np.empty(slots), np.empty((states, slots, slots))
    start, end = np.empty((2, slots, states)), np.empty((2, slots, states))
    part, closed, turned = np.empty((states, slots, n + 1)), np.empty((slots, n + 1)), np.empty((n + 1, slots))
    taken, inner = np.empty((states, slots, slots)), np.empty((states, slots, slots))
    x, w = np.empty(max(slots, states) + 1), np.empty(max(slots, states) + 1)
    _log_weights(scores, stops, children, first, nearest_first, root, start, end, weight)
    _inside_in(sr, start, end, weight, first, nearest_first, part, taken, inner, closed, turned, x)
    for r in range(slots):
        x[r] = root[r] + closed[r, 0] + closed[r, n]
    value = total(sr, x[:slots])
    if value == -np.inf:
        return value
    weights(sr, x[:slots], w[:slots], u[0] if len(u) else 0.0)
    d_part, d_closed, d_taken = np.zeros((states, slots, n + 1)), np.zeros((slots, n + 1)), np.zeros(weight.shape)
    d_weight, d_state = np.zeros(weight.shape), np.zeros((2, slots, states))
    for r in range(slots):
        d_scores[0, r + 1] = w[r]
        d_closed[r, 0] += w[r]
        d_closed[r, n] += w[r]
    charts, adjoints = (part, taken, inner, closed, turned), (d_part, d_taken, d_closed)
    _outside_in(sr, end, weight, first, nearest_first, u, charts, adjoints, d_weight, d_state, x, w)
    _add_marginals(d_weight, d_state, d_scores, d_stops, d_children)
    return value


@njit(cache=True, nogil=True)
def log_valence_trees(
    block, count, sr, scores, stops, children, offsets, sizes, firsts, nearest_first, u, starts, d_scores, d_stops,
    d_children, values,
):  # fmt: skip
    """⊕ and its derivatives for many sentences, in logarithms throughout; arguments as for `marginal_valence_trees`.

    u : float64[...]
        Sentence *s* reads at most 5n + 1 numbers from ``u[starts[s]]`` on; empty when nothing is drawn.
    values : float64[n_sentences]
        Overwritten with ⊕; −∞ where no tree is allowed. Sentences with a value other than NaN are left alone.
    """
    for sentence in range(block, len(sizes), count):
        size, v_s, v_c, bounds = sizes[sentence]
        if not np.isnan(values[sentence]):
            continue
        if size == 1:
            values[sentence] = 0.0
            continue
        at, to = offsets[0, sentence], offsets[0, sentence] + size * size
        here, out = scores[at:to].reshape((size, size)), d_scores[at:to].reshape((size, size))
        at, to = offsets[1, sentence], offsets[1, sentence] + size * 4 * v_s
        stop, d_stop = stops[at:to].reshape((size, 2, v_s, 2)), d_stops[at:to].reshape((size, 2, v_s, 2))
        at, to = offsets[2, sentence], offsets[2, sentence] + size * size * v_c
        child, d_child = children[at:to].reshape((size, size, v_c)), d_children[at:to].reshape((size, size, v_c))
        first = firsts[offsets[3, sentence] : offsets[3, sentence] + bounds]
        draws = u[starts[sentence] :] if len(u) else u
        values[sentence] = _sweep(sr, here, stop, child, first, nearest_first, draws, out, d_stop, d_child)
