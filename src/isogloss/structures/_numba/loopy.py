r"""Belief propagation over the links of many sentences: one kernel, sentences on threads.

All is said in log-odds of a link. Families speak in turn (grandparents, runs, numbers of children, crossings, and the
tree last), each hearing what the others said before, so that after every round the beliefs of links are the marginals
of the tree and add up to 1 for each word; between families, `settle` sees to the latter. Inside families, probabilities
p and 1 − p take the place of odds, so that nothing overflows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.arithmetic import Logs, Plain
from isogloss.structures._numba.eisner import log_trees
from isogloss.structures._numba.eisner_scaled import room, scaled
from isogloss.structures._numba.loopy_heads import (
    AT_MOST_ONE,
    FREE,
    MOST,
    TINY,
    believe_crossings,
    believe_grands,
    clipped,
    crossings,
    grands,
    may_cross,
    ranks_of_heads,
    settle,
    softplus,
    sure,
)
from isogloss.structures._numba.spanning import spanning_trees
from isogloss.structures._numba.tree_parts import pairs_of_run
from isogloss.structures.semiring import LOG

__all__ = ["AT_MOST_ONE", "EXACTLY_ONE", "FREE", "PROJECTIVE", "TREE", "believe"]

TREE, PROJECTIVE, EXACTLY_ONE = 0, 1, 2
"""What is demanded of all links together; from EXACTLY_ONE on each word stands for itself."""
APART = 200.0
"""Links into a word that are further below the best of them, as log-odds, count as this far: sums over trees then keep
their digits, also where messages contradict each other."""
_PLAIN, _LOGS, _SUMS = Plain(0), Logs(0), LOG


@njit(cache=True, nogil=True)
def _hard(first, second, total, told, news):
    """Let pairs of links that exclude each other speak: m = −log (1 + e^a), with a the log-odds of the other link;
    `told` is [n_pairs, 2], what each said last."""
    news[:] = 0.0
    for p in range(len(first)):
        a, b = first[p], second[p]
        to_a, to_b = -softplus(total[b] - told[p, 1]), -softplus(total[a] - told[p, 0])
        news[a] += to_a - told[p, 0]
        news[b] += to_b - told[p, 1]
        told[p, 0], told[p, 1] = to_a, to_b
    for a in range(len(total)):
        total[a] += news[a]


@njit(cache=True, nogil=True)
def _run(m, weights, chance, ahead, behind, true, false):
    """Both messages to each link of a run, up to a common factor; log of the sum over all that can be true.

    Parameters
    ----------
    weights : float64[pairs_of_run(m)]
        e^score of each pair.
    chance : float64[m]
        p of each link by what else is said.
    ahead : float64[m + 2, m + 1]
        ``ahead[j, i]``: of what lies before link j, with i the last that is true.
    behind : float64[m + 2, m + 1]
        ``behind[j, i]``: of what lies from link j on.
    """
    size = 0.0
    for i in range(m + 1):
        behind[m + 1, i] = weights[(m + 1) * m // 2 + i]
    for j in range(m, 0, -1):
        p, at, top = chance[j - 1], j * (j - 1) // 2, 0.0
        for i in range(j):
            behind[j, i] = (1.0 - p) * behind[j + 1, i] + p * weights[at + i] * behind[j + 1, j]
            top = max(top, behind[j, i])
        if top > 0:
            size += np.log(top)
            for i in range(j):
                behind[j, i] /= top
    size += np.log(max(behind[1, 0], 1e-300))
    ahead[1, 0] = 1.0
    for j in range(1, m + 1):
        p, at, entering, passing = chance[j - 1], j * (j - 1) // 2, 0.0, 0.0
        for i in range(j):
            entering += ahead[j, i] * weights[at + i]
            passing += ahead[j, i] * behind[j + 1, i]
        true[j - 1], false[j - 1] = entering * behind[j + 1, j], passing
        top = p * entering
        for i in range(j):
            ahead[j + 1, i] = (1.0 - p) * ahead[j, i]
            top = max(top, ahead[j + 1, i])
        ahead[j + 1, j] = p * entering
        if top > 0:
            for i in range(j + 1):
                ahead[j + 1, i] /= top
    return size


@njit(cache=True, nogil=True)
def _counts(m, weights, chance, ahead, behind, true, false):
    """As `_run` for the number of true links, in as many bins as there are weights."""
    bins = len(weights)
    for v in range(bins):
        behind[m + 1, v] = weights[v]
        ahead[1, v] = 0.0
    for j in range(m, 0, -1):
        p = chance[j - 1]
        for v in range(bins):
            behind[j, v] = (1.0 - p) * behind[j + 1, v] + p * behind[j + 1, min(v + 1, bins - 1)]
    ahead[1, 0] = 1.0
    for j in range(1, m + 1):
        p = chance[j - 1]
        true[j - 1] = false[j - 1] = 0.0
        for v in range(bins):
            true[j - 1] += ahead[j, v] * behind[j + 1, min(v + 1, bins - 1)]
            false[j - 1] += ahead[j, v] * behind[j + 1, v]
            ahead[j + 1, v] = (1.0 - p) * ahead[j, v]
        for v in range(bins):
            ahead[j + 1, min(v + 1, bins - 1)] += p * ahead[j, v]
    return np.log(max(behind[1, 0], 1e-300))


@njit(cache=True, nogil=True)
def _odds(true, false):
    return clipped(np.log(max(true, 1e-300) / max(false, 1e-300)))


@njit(cache=True, nogil=True)
def _runs(kind, run_starts, run_links, weights, bins, total, told, work, beliefs, final):
    """Let all runs speak (kind 0: pairs of neighbours; 1: numbers); in the end (`final`) their beliefs and log Z."""
    chance, true, false, ahead, behind = work
    at, size = 0, 0.0
    for r in range(len(run_starts) - 1):
        here, m = run_starts[r], run_starts[r + 1] - run_starts[r]
        n_parts = pairs_of_run(m) if kind == 0 else bins
        if m == 0:
            if kind == 1 and final:
                beliefs[at : at + n_parts] = 0.0
                beliefs[at] = 1.0
                size += np.log(weights[at])
            at += n_parts
            continue
        own = weights[at : at + n_parts]
        whole = 0.0
        for j in range(m):
            heard = total[run_links[here + j]] - told[run_links[here + j]]
            chance[j] = sure(heard)
            whole += softplus(heard)
        if kind == 0:
            whole += _run(m, own, chance, ahead, behind, true, false)
        else:
            whole += _counts(m, own, chance, ahead, behind, true, false)
        if final:
            size += whole
            if kind == 0:
                _believe_run(m, own, chance, ahead, behind, true, false, beliefs[at : at + n_parts])
            else:
                scale = 0.0
                for v in range(bins):
                    scale += ahead[m + 1, v] * own[v]
                for v in range(bins):
                    beliefs[at + v] = ahead[m + 1, v] * own[v] / max(scale, TINY)
        else:
            for j in range(m):
                a = run_links[here + j]
                message = _odds(true[j], false[j])
                total[a] += message - told[a]
                told[a] = message
        at += n_parts
    return size


@njit(cache=True, nogil=True)
def _believe_run(m, weights, chance, ahead, behind, true, false, beliefs):
    for j in range(1, m + 1):
        p, at = chance[j - 1], j * (j - 1) // 2
        scale = p * true[j - 1] + (1.0 - p) * false[j - 1]
        for i in range(j):
            beliefs[at + i] = ahead[j, i] * weights[at + i] * p * behind[j + 1, j] / max(scale, TINY)
    at, scale = (m + 1) * m // 2, 0.0
    for i in range(m + 1):
        beliefs[at + i] = ahead[m + 1, i] * weights[at + i]
        scale += beliefs[at + i]
    for i in range(m + 1):
        beliefs[at + i] /= max(scale, TINY)


@njit(cache=True, nogil=True)
def _solve_tree(scores, constraint, single, marginals, work):
    """log Z and marginals of a tree with these scores [n + 1, n + 1]; NaN where float64 is not enough."""
    size = scores.shape[0]
    marginals[:, :] = 0.0
    flat, grad = scores.reshape(-1), marginals.reshape(-1)
    offsets, sizes = np.array([0, size * size]), np.array([size])
    value = np.full(1, np.nan)
    if constraint == PROJECTIVE:
        value[0] = scaled(scores, single, marginals, work)
        if np.isnan(value[0]):
            log_trees(0, 1, _SUMS, flat, offsets, sizes, single, np.empty(0), np.zeros(2, np.int64), grad, value)
        return value[0]
    chosen = np.ones(1, np.bool_)
    spanning_trees(0, 1, _PLAIN, chosen, flat, offsets, sizes, single, False, grad, value)
    if np.isnan(value[0]):
        marginals[:, :] = 0.0
        spanning_trees(0, 1, _LOGS, chosen, flat, offsets, sizes, single, False, grad, value)
    return value[0]


@njit(cache=True, nogil=True)
def _tree(starts, head, child, constraint, single, total, told, shares, matrices, work, beliefs):
    """Let the constraint on all links speak; beliefs of links, and its log Z. `shares` is what a tree says of the heads
    of a word beside each other, p ∝ exp(heard + share); other constraints leave it 0."""
    matrix, marginals = matrices[0], matrices[1]
    n = matrix.shape[0] - 1
    size = 0.0
    if constraint <= PROJECTIVE:
        matrix[:, :] = -np.inf
        for word in range(1, n + 1):
            top = -np.inf
            for a in range(starts[word - 1], starts[word]):
                top = max(top, total[a] - told[a])
            for a in range(starts[word - 1], starts[word]):
                heard = total[a] - told[a]
                matrix[head[a], word] = max(heard, top - APART) if heard > -np.inf else heard
        size = _solve_tree(matrix, constraint, single, marginals, work)
        if not size > -np.inf:
            return size
        for a in range(len(total)):
            beliefs[a] = marginals[head[a], child[a]]
    for word in range(1, n + 1):
        low, high = starts[word - 1], starts[word]
        if constraint <= PROJECTIVE:
            for a in range(low, high):
                rest = 0.0
                for b in range(low, high):
                    rest += beliefs[b] if b != a else 0.0
                heard = total[a] - told[a]
                if heard > -np.inf:
                    shares[a] = np.log(max(beliefs[a], TINY)) - heard
                    message = shares[a] - np.log(max(rest, TINY))
                    told[a] = message
                    total[a] = heard + message
        elif constraint < FREE:
            size += _one_head(low, high, constraint == AT_MOST_ONE, total, told, beliefs)
    if constraint == FREE:
        for a in range(len(total)):
            beliefs[a] = sure(total[a])
    return size


@njit(cache=True, nogil=True)
def _one_head(low, high, none, total, told, beliefs):
    """EXACTLY1, or ATMOST1 (`none`), of one word: m = −log (Σ odds of the others, and 1 if none may be)."""
    top = 0.0 if none else -np.inf
    for a in range(low, high):
        beliefs[a] = total[a] - told[a]  # what is heard, for now
        top = max(top, beliefs[a])
    whole = np.exp(-top) if none else 0.0
    for a in range(low, high):
        whole += np.exp(beliefs[a] - top)
    for a in range(low, high):
        rest = np.exp(-top) if none else 0.0
        for b in range(low, high):
            if b != a:
                rest += np.exp(beliefs[b] - top)
        message = clipped(-top - np.log(max(rest, TINY)))
        if beliefs[a] > -np.inf:
            told[a] = message
            total[a] = beliefs[a] + message
    for a in range(low, high):
        beliefs[a] = np.exp(beliefs[a] - top) / whole
    return top + np.log(whole)


@njit(cache=True, nogil=True)
def _hard_pairs(starts, head, child, not_two, no_cycle):
    """Pairs of links that exclude each other: with the same child (NOT2), or the same two words (NO2CYCLE)."""
    first, second = np.empty(0, np.int32), np.empty(0, np.int32)
    for turn in range(2 if not_two or no_cycle else 0):
        count = 0
        for a in range(len(head)):
            for b in range(a):
                same = not_two and child[a] == child[b]
                turned = no_cycle and head[a] == child[b] and head[b] == child[a]
                if same or turned:
                    if turn:
                        first[count], second[count] = b, a
                    count += 1
        if not turn:
            first, second = np.empty(count, np.int32), np.empty(count, np.int32)
    return first, second


@njit(cache=True, nogil=True)
def _believe_hard(first, second, total, told, degree):
    """log Z of all pairs that exclude each other; how many each link is in is added to `degree`."""
    size = 0.0
    for p in range(len(first)):
        a, b = first[p], second[p]
        heard_a, heard_b = total[a] - told[p, 0], total[b] - told[p, 1]
        degree[a] += 1
        degree[b] += 1
        top = max(0.0, max(heard_a, heard_b))
        size += top + np.log(np.exp(-top) + np.exp(heard_a - top) + np.exp(heard_b - top))
    return size


@njit(cache=True, nogil=True)
def _starts(n, child):
    """int64[n + 1]: the links into each word, which are listed by child."""
    starts = np.zeros(n + 1, np.int64)
    for a in range(len(child)):
        starts[child[a]] += 1
    for c in range(1, n + 1):
        starts[c] += starts[c - 1]
    return starts


@njit(cache=True, nogil=True)
def _room_for_runs(runs, bins):
    longest = 0
    for r in range(len(runs) - 1):
        longest = max(longest, runs[r + 1] - runs[r])
    wide = max(longest + 1, bins)
    return (
        np.empty(longest), np.empty(longest), np.empty(longest), np.empty((longest + 2, wide)),
        np.empty((longest + 2, wide)),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _change(total, before):
    """The largest change of log-odds, relative where they are large."""
    change = 0.0
    for a in range(len(total)):
        if total[a] > -np.inf:
            change = max(change, abs(total[a] - before[a]) / max(1.0, abs(total[a])))
    return change


@njit(cache=True, nogil=True)
def _sentence(n, links, pairs, runs, bins, scores, demands, iterations, tolerance, beliefs, heard):
    """Messages within one sentence: beliefs of all parts, what the tree heard, log Z, and the number of rounds.

    Parameters
    ----------
    links, pairs : (head, child), (upper, lower)
    runs : (run_starts, run_links)
    scores, beliefs : tuple of five arrays
        Of links, grandparents, siblings, valences and crossings.
    demands : (constraint, not_two, no_cycle, single_root)
    """
    head, child = links
    upper, lower = pairs
    constraint, not_two, no_cycle, single = demands
    starts, count = _starts(n, child), len(head)
    weights = np.exp(np.minimum(MOST, scores[1]))
    first, second = _hard_pairs(starts, head, child, not_two, no_cycle)
    neighbours, counts = np.exp(np.minimum(MOST, scores[2])), np.exp(np.minimum(MOST, scores[3]))
    crossing = len(scores[4]) > 0
    may, ranks = np.zeros(len(scores[4]), np.bool_), np.empty((0, 0), np.int32)
    if crossing:
        ranks = ranks_of_heads(n, starts, head)
        may_cross(n, starts, head, ranks, may)
    total, before, news, shares = scores[0].copy(), np.empty(count), np.empty(count), np.zeros(count)
    tree_told, run_told, count_told, grand_told = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count)
    hard_told, upper_told = np.zeros((len(first), 2)), np.ones(len(upper))
    cross_told, cross_work = np.ones((count if crossing else 0, n + 1)), np.empty((2, count + 1 if crossing else 0))
    chances, lacks = np.empty(count), np.empty(n + 1)
    run_work, tree_work = _room_for_runs(runs[0], bins), np.empty(room(n + 1) if constraint == PROJECTIVE else 0)
    matrices = np.empty((2, n + 1, n + 1))
    value = _tree(starts, head, child, constraint, single, total, tree_told, shares, matrices, tree_work, beliefs[0])
    rounds = 0
    more = len(first) or len(upper) or len(neighbours) or len(counts) or crossing
    while more and value > -np.inf and rounds < iterations:
        rounds += 1
        before[:] = total
        if len(first):
            _hard(first, second, total, hard_told, news)
        if len(upper):
            settle(starts, constraint, total, tree_told, shares, chances, lacks)
            grands(upper, lower, weights, total, grand_told, upper_told, chances, news)
            settle(starts, constraint, total, tree_told, shares, chances, lacks)
        if len(neighbours):
            _runs(0, runs[0], runs[1], neighbours, bins, total, run_told, run_work, beliefs[2], False)
            settle(starts, constraint, total, tree_told, shares, chances, lacks)
        if len(counts):
            _runs(1, runs[0], runs[1], counts, bins, total, count_told, run_work, beliefs[3], False)
        if crossing:
            settle(starts, constraint, total, tree_told, shares, chances, lacks)
            crossings(n, starts, head, scores[4], may, ranks, total, cross_told, chances, lacks, cross_work)
        value = _tree(
            starts, head, child, constraint, single, total, tree_told, shares, matrices, tree_work, beliefs[0]
        )  # fmt: skip
        if _change(total, before) <= tolerance:
            break
    for a in range(count):
        heard[a] = total[a] - tree_told[a]
    if not value > -np.inf:
        return value, rounds
    if len(upper) or crossing:
        settle(starts, constraint, total, tree_told, shares, chances, lacks)
    value += believe_grands(upper, lower, weights, total, grand_told, upper_told, chances, beliefs[1])
    if len(neighbours):
        value += _runs(0, runs[0], runs[1], neighbours, bins, total, run_told, run_work, beliefs[2], True)
    if len(counts):
        value += _runs(1, runs[0], runs[1], counts, bins, total, count_told, run_work, beliefs[3], True)
    if crossing:
        value += believe_crossings(
            n, starts, head, scores[4], may, ranks, cross_told, chances, lacks, cross_work, beliefs[4]
        )  # fmt: skip
    degree = np.full(count, (len(neighbours) > 0) + (len(counts) > 0) + (constraint < FREE) - 1, np.int64)
    value += _believe_hard(first, second, total, hard_told, degree)
    for a in range(count):
        if total[a] > -np.inf:
            value -= degree[a] * softplus(total[a])
    return value, rounds


@njit(cache=True, nogil=True)
def believe(
    block, blocks, lengths, link_offsets, pair_offsets, run_offsets, link_head, link_child, upper, lower, run_starts,
    run_links, begins, bins, scores, constraint, not_two, no_cycle, single, iterations, tolerance, beliefs, values,
    rounds, heard,
):  # fmt: skip
    """Pass messages, and write what is believed of every part, Bethe's log Z, the rounds, and what the tree heard.

    Parameters
    ----------
    scores, beliefs : float64[n_parts]
        ``begins[k]`` says where links, grandparents, pairs of runs, valences and crossings of a sentence begin.
    constraint : int
        TREE, PROJECTIVE, EXACTLY_ONE, AT_MOST_ONE or FREE.
    not_two, no_cycle : bool
        Whether two links into a word, or two that turn each other round, exclude each other.
    values : float64[n_sentences]
        −∞ where no tree is allowed, NaN where float64 is not enough.
    """
    for k in range(block, len(lengths), blocks):
        n, low, high, b = lengths[k], link_offsets[k], link_offsets[k + 1], begins[k]
        first, last = pair_offsets[k], pair_offsets[k] + b[2] - b[1]
        given = (
            scores[b[0] : b[1]],
            scores[b[1] : b[2]],
            scores[b[2] : b[3]],
            scores[b[3] : b[4]],
            scores[b[4] : b[5]],
        )
        own = (beliefs[b[0] : b[1]], beliefs[b[1] : b[2]], beliefs[b[2] : b[3]], beliefs[b[3] : b[4]],
               beliefs[b[4] : b[5]])  # fmt: skip
        values[k], rounds[k] = _sentence(
            n, (link_head[low:high], link_child[low:high]), (upper[first:last], lower[first:last]),
            (run_starts[run_offsets[k] : run_offsets[k] + 2 * n + 3], run_links[low:high]), bins, given,
            (constraint, not_two, no_cycle, single), iterations, tolerance, own, heard[low:high],
        )  # fmt: skip
