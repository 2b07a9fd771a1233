"""Log Z and marginals of `semimarkov2` in probabilities: several times faster than in logarithms, and as exact.

Every position t gets a potential, the score of the best way there if labels could be chosen freely:
:math:`C_t = \\max_b (C_b + \\max segments[b, t] + c)`, with c the largest score of a step (and of a pair). The weight
of a segment is :math:`\\exp(s + C_b - C_t + c)`, so that sums over all that ends at a position begin near 1 and grow
with the number of ways there. What could go wrong is underflow, and it is ruled out as in
`isogloss.structures._numba.chain_scaled`: every weight of a part, and every forward sum, that is not exactly 0 has to
be at least `LEAST`, so that a product of three is a normal number. In words of some hundred letters sums could also
grow until they overflow, or until what goes with them backward underflows: none may be above `MOST`. Where a bound is
broken, the kernel in logarithms takes over for the sequence.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.chain_scaled import LEAST, LOWEST
from isogloss.structures._numba.semimarkov2 import places_of, remembering, slots

__all__ = ["log_remembering", "log_remembering_all"]

MOST = 1.0 / LEAST  # the largest forward sum to work with


@njit(cache=True, nogil=True)
def _highest(scores, begin, end):
    top = -np.inf
    for i in range(begin, end):
        if scores[i] > top:
            top = scores[i]
    return top


@njit(cache=True, nogil=True)
def _raised(score):
    """exp of a score; −1 if it is too small for a weight that is not 0."""
    if score == -np.inf:
        return 0.0
    return np.exp(score) if score >= LOWEST else -1.0


@njit(cache=True, nogil=True)
def _weigh_steps(at, n, scores, moves):
    """Weights of steps, less the largest, which is returned; NaN where one is too small, −∞ where there is none."""
    size = (at.k + 1) * (at.k + 1)
    top = _highest(scores, at.steps, at.steps + 2 * size)
    if top == -np.inf:
        return top
    for i in range(2 * size):
        moves[i] = _raised(scores[at.steps + i] - top)
        if moves[i] < 0.0:
            return np.nan
    return top


@njit(cache=True, nogil=True)
def _weigh_pairs(at, scores, met):
    """The same of pairs, into zeros."""
    if not at.paired:
        return 0.0
    top = _highest(scores, at.pairs, len(scores))
    if top == -np.inf:
        return 0.0  # all are forbidden, and have weight 0
    for i in range(len(met)):
        met[i] = _raised(scores[at.pairs + i] - top)
        if met[i] < 0.0:
            return np.nan
    return top


@njit(cache=True, nogil=True)
def _weigh_segments(at, n, scores, toll, toll_pairs, own, level):
    """Weights of segments between potentials; whether all fit. `toll` is what every segment pays, for its step."""
    k, longest = at.k, at.longest
    level[0] = 0.0
    for t in range(1, n + 1):
        first = at.first[t]
        best = -np.inf
        for begin in range(max(first, t - longest), t):
            if level[begin] == -np.inf:
                continue
            row = (at.span[begin] + t - begin - 1) * 3 * k
            if begin == first:
                top = _highest(scores, row, row + k) + toll
            else:
                top = _highest(scores, row + k, row + 3 * k) + toll + toll_pairs
            best = max(best, level[begin] + top)
        level[t] = best
        if best == -np.inf:
            continue
        for begin in range(max(first, t - longest), t):
            row = (at.span[begin] + t - begin - 1) * 3 * k
            if level[begin] == -np.inf:
                continue
            extra = toll if begin == first else toll + toll_pairs
            shift = level[begin] - best + extra
            low, high = (0, k) if begin == first else (k, 3 * k)
            for i in range(row + low, row + high):
                own[i] = _raised(scores[i] + shift)
                if own[i] < 0.0:
                    return False
    return True


@njit(cache=True, nogil=True)
def _out_of_bounds(values, count):
    for i in range(count):  # noqa: SIM110
        if 0.0 < values[i] < LEAST or values[i] > MOST:
            return True
    return False


@njit(cache=True, nogil=True)
def _multiply(row, moves, begin, k, out):
    """out += row · moves, the table of k + 1 columns that begins there."""
    for i in range(k):
        much = row[i]
        if much > 0.0:
            base = begin + i * (k + 1)
            for j in range(k):
                out[j] += much * moves[base + j]


@njit(cache=True, nogil=True)
def _forward(at, n, moves, met, own, alpha, enter):
    """Fill `alpha` and `enter`; whether all sums fit."""
    k, longest, block = at.k, at.longest, (at.k + 1) * (at.k + 1)
    for label in range(k):
        enter[0, 0, label] = moves[block + k * (k + 1) + label]
    for begin in range(n):
        first, last = at.first[begin + 1], at.last[begin + 1]
        starting = begin == first
        wide = min(longest, last - begin)
        here = 1 if starting else slots(at, begin)
        for before in range(here):
            for width in range(1, wide + 1):
                t = begin + width
                slot = 0 if t == last else width - 1 if at.paired else int(starting)
                row = (at.span[begin] + width - 1) * 3 * k
                pair = -1
                if not starting:
                    if at.paired:
                        row += k if begin - before - 1 == first else 2 * k
                        pair = (at.pair[begin] + before * wide + width - 1) * at.n_classes
                    else:
                        row += (2 - before) * k
                if pair < 0:
                    for label in range(k):
                        alpha[t, slot, label] += enter[begin, before, label] * own[row + label]
                else:
                    for label in range(k):
                        extra = met[pair + at.classes[label]]
                        alpha[t, slot, label] += enter[begin, before, label] * own[row + label] * extra
        t = begin + 1
        if t < n:  # nothing more arrives there
            for slot in range(slots(at, t)):
                if _out_of_bounds(alpha[t, slot], k):
                    return False
                _multiply(alpha[t, slot], moves, block if t == at.last[t] else 0, k, enter[t, slot])
                if _out_of_bounds(enter[t, slot], k):
                    return False
    return not _out_of_bounds(alpha[n, 0], k)


@njit(cache=True, nogil=True)
def _backward(at, n, moves, met, own, alpha, enter, ends, after, share, grad):
    """Posteriors: `ends` and `after` are the sums over all that follows what ends and what begins at positions."""
    k, longest, block = at.k, at.longest, (at.k + 1) * (at.k + 1)
    for label in range(k):
        last_step = moves[block + label * (k + 1) + k]
        ends[n, 0, label] = last_step * share
        grad[at.steps + block + label * (k + 1) + k] = alpha[n, 0, label] * ends[n, 0, label]
    for begin in range(n - 1, -1, -1):
        first, last = at.first[begin + 1], at.last[begin + 1]
        starting = begin == first
        wide = min(longest, last - begin)
        for before in range(1 if starting else slots(at, begin)):
            for width in range(1, wide + 1):
                t = begin + width
                slot = 0 if t == last else width - 1 if at.paired else int(starting)
                row = (at.span[begin] + width - 1) * 3 * k
                pair = -1
                if not starting:
                    if at.paired:
                        row += k if begin - before - 1 == first else 2 * k
                        pair = (at.pair[begin] + before * wide + width - 1) * at.n_classes
                    else:
                        row += (2 - before) * k
                for label in range(k):
                    weight = own[row + label] * ends[t, slot, label]
                    if pair >= 0:
                        kind = pair + at.classes[label]
                        weight *= met[kind]
                        grad[at.pairs + kind] += weight * enter[begin, before, label]
                    after[begin, before, label] += weight
                    grad[row + label] += weight * enter[begin, before, label]
        if begin == 0:
            for label in range(k):
                grad[at.steps + block + k * (k + 1) + label] = enter[0, 0, label] * after[0, 0, label]
            continue
        table = block if begin == at.last[begin] else 0
        for slot in range(slots(at, begin)):
            for i in range(k):
                much, base, total = alpha[begin, slot, i], table + i * (k + 1), 0.0
                if much == 0.0:
                    continue
                for j in range(k):
                    flow = moves[base + j] * after[begin, slot, j]
                    total += flow
                    grad[at.steps + base + j] += much * flow
                ends[begin, slot, i] = total


@njit(cache=True, nogil=True)
def log_remembering(sr, scores, words, longest, k, classes, n_classes, paired, grad):
    """What `remembering` gives with LOG, by probabilities where they fit."""
    n = words.sum()
    none = np.empty(0)
    if n == 0 or k == 0 or longest == 0:
        return remembering(sr, scores, words, longest, k, classes, n_classes, paired, grad, none)
    at = places_of(words, longest, k, classes, n_classes, paired)
    moves, met, own = np.empty(2 * (k + 1) * (k + 1)), np.zeros(len(scores) - at.pairs), np.zeros(at.steps)
    toll, toll_pairs, level = _weigh_steps(at, n, scores, moves), _weigh_pairs(at, scores, met), np.empty(n + 1)
    if toll == -np.inf:
        return -np.inf
    fits = not (np.isnan(toll) or np.isnan(toll_pairs))
    if fits and _weigh_segments(at, n, scores, toll, toll_pairs, own, level):
        if level[n] == -np.inf:
            return -np.inf
        many = max(1, min(longest, words.max())) if paired else 2
        alpha, enter = np.zeros((n + 1, many, k)), np.zeros((n + 1, many, k))
        if _forward(at, n, moves, met, own, alpha, enter):
            mass = 0.0
            for label in range(k):
                mass += alpha[n, 0, label] * moves[(k + 1) * (k + 1) + label * (k + 1) + k]
            if mass == 0.0:
                return -np.inf
            if mass >= LEAST:
                ends, after = np.zeros((n + 1, many, k)), np.zeros((n + 1, many, k))
                _backward(at, n, moves, met, own, alpha, enter, ends, after, 1.0 / mass, grad)
                return np.log(mass) + level[n] + toll  # the step to the end pays as well
    return remembering(sr, scores, words, longest, k, classes, n_classes, paired, grad, none)


@njit(cache=True, nogil=True)
def log_remembering_all(
    block, blocks, sr, scores, offsets, words, word_offsets, longest, ks, classes, class_offsets, n_classes, paired,
    grad, values,
):  # fmt: skip
    """`log_remembering` of sentences block, block + blocks, …"""
    for s in range(block, len(values), blocks):
        here = slice(offsets[s], offsets[s + 1])
        values[s] = log_remembering(
            sr, scores[here], words[word_offsets[s] : word_offsets[s + 1]], longest, ks[s],
            classes[class_offsets[s] : class_offsets[s + 1]], n_classes, paired, grad[here],
        )  # fmt: skip
