r"""Belief propagation over the links of many sentences: one kernel, sentences on threads.

All is said in log-odds of a link. Families speak in turn (pairs, runs, numbers of children, crossings, and the tree
last), each hearing what the others said before, so that after every round the beliefs of links are the marginals of the
tree and add up to 1 for each word. Inside families, probabilities p and 1 − p take the place of odds, so that nothing
overflows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.arithmetic import Logs, Plain
from isogloss.structures._numba.eisner import log_trees
from isogloss.structures._numba.eisner_scaled import room, scaled
from isogloss.structures._numba.spanning import spanning_trees
from isogloss.structures._numba.tree_parts import pairs_of_run
from isogloss.structures.semiring import LOG

__all__ = ["AT_MOST_ONE", "EXACTLY_ONE", "FREE", "PROJECTIVE", "TREE", "believe"]

TREE, PROJECTIVE, EXACTLY_ONE, AT_MOST_ONE, FREE = 0, 1, 2, 3, 4
"""What is demanded of all links together; from EXACTLY_ONE on each word stands for itself."""
MOST = 60.0
"""Messages beyond this, as log-odds, are this."""
APART = 200.0
"""Links into a word that are further below the best of them, as log-odds, count as this far: sums over trees then keep
their digits, also where messages contradict each other."""
_TINY = 1e-30
_SURE = 40.0
_PLAIN, _LOGS, _SUMS = Plain(0), Logs(0), LOG


@njit(cache=True, nogil=True)
def _softplus(x):
    return x + np.log1p(np.exp(-x)) if x > 0 else np.log1p(np.exp(x))


@njit(cache=True, nogil=True)
def _sure(x):
    """σ(x)."""
    return 1.0 / (1.0 + np.exp(-x)) if x > 0 else np.exp(x) / (1.0 + np.exp(x))


@njit(cache=True, nogil=True)
def _clipped(x):
    return min(MOST, max(-MOST, x))


@njit(cache=True, nogil=True)
def _told(a, weight):
    """What a link is told by a pair whose other link has log-odds a: log (1 + e^a w) − log (1 + e^a), w = e^score."""
    odds = np.exp(min(a, _SURE))
    return np.log(max((1.0 + odds * weight) / (1.0 + odds), _TINY))


@njit(cache=True, nogil=True)
def _pairs(first, second, weights, total, told, news):
    """Let all pairs speak; `told` is [n_pairs, 2], what each said last, `weights` e^score."""
    news[:] = 0.0
    for p in range(len(first)):
        a, b = first[p], second[p]
        to_a, to_b = _told(total[b] - told[p, 1], weights[p]), _told(total[a] - told[p, 0], weights[p])
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
    return _clipped(np.log(max(true, 1e-300) / max(false, 1e-300)))


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
            chance[j] = _sure(heard)
            whole += _softplus(heard)
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
                    beliefs[at + v] = ahead[m + 1, v] * own[v] / scale
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
            beliefs[at + i] = ahead[j, i] * weights[at + i] * p * behind[j + 1, j] / scale
    at, scale = (m + 1) * m // 2, 0.0
    for i in range(m + 1):
        beliefs[at + i] = ahead[m + 1, i] * weights[at + i]
        scale += beliefs[at + i]
    for i in range(m + 1):
        beliefs[at + i] /= scale


@njit(cache=True, nogil=True)
def _heads(starts, total, told, shares, may_lack, chances, lacks):
    """Probabilities of the heads of every word, of which it has one, and of none where that may be (`lacks`).

    `total` less `told` is what links hear from all but the tree, and `shares` what the tree says of the heads of a word
    beside each other.
    """
    for word in range(1, len(starts)):
        low, high = starts[word - 1], starts[word]
        top = 0.0 if may_lack else -np.inf
        for a in range(low, high):
            chances[a] = total[a] - told[a] + shares[a]
            top = max(top, chances[a])
        whole = lacks[word] = np.exp(-top) if may_lack else 0.0
        for a in range(low, high):
            chances[a] = np.exp(chances[a] - top) if chances[a] > -np.inf else 0.0
            whole += chances[a]
        lacks[word] /= whole
        for a in range(low, high):
            chances[a] /= whole


@njit(cache=True, nogil=True)
def _without(low, high, word, other, told, chances, lacks):
    """Take out of the heads low … high − 1 of a word what its crossings with `other` said; returns 1 / E[what]."""
    whole = lacks[word]
    for a in range(low, high):
        chances[a] /= told[a, other]
        whole += chances[a]
    lacks[word] /= whole
    for a in range(low, high):
        chances[a] /= whole
    return whole


@njit(cache=True, nogil=True)
def _ranks(n, starts, head):
    """int32[n + 1, n + 2]: how many links into a word come from heads before a given one; links lie by head."""
    ranks = np.empty((n + 1, n + 2), np.int32)
    for word in range(1, n + 1):
        a = starts[word - 1]
        for h in range(n + 2):
            while a < starts[word] and head[a] < h:
                a += 1
            ranks[word, h] = a - starts[word - 1]
    return ranks


@njit(cache=True, nogil=True)
def _met(h, word, other, ranks, sums, count):
    """Σ over the links into the word `other` that cross the link h → word, of what `sums` adds up in order of heads."""
    if h == other:
        return sums[0]  # 0
    left, right = (h, word) if h < word else (word, h)
    if left < other and other < right:
        return sums[ranks[left]] + sums[count] - sums[ranks[right + 1]]
    return sums[ranks[right]] - sums[ranks[left + 1]]


@njit(cache=True, nogil=True)
def _add_up(low, high, values, sums):
    sums[0] = 0.0
    for a in range(low, high):
        sums[a - low + 1] = sums[a - low] + values[a]


@njit(cache=True, nogil=True)
def _say_crossing(low, high, word, other, extra, head, ranks, sums, count, total, told, chances):
    r"""Tell the heads low … high − 1 of a word what crossing the link into `other` is worth, e^score − 1 = `extra`.

    .. math:: w_i = 1 + (e^s - 1) \sum_{k\ crosses\ i} q_k

    with q the probabilities of the heads of the other word, without what this factor said of them.
    """
    for a in range(low, high):
        met = min(1.0, max(0.0, _met(head[a], word, other, ranks, sums, count)))
        worth = max(1.0 + extra * met, _TINY)
        total[a] += np.log(worth / told[a, other])
        told[a, other] = worth
        chances[a] *= worth


@njit(cache=True, nogil=True)
def _crossings(n, starts, head, scores, may, ranks, total, told, chances, lacks, work):
    r"""Let all pairs of words whose links may cross speak.

    What a factor asks is which head either word has: it speaks of one variable with many values for each word, not of
    links that are true or false each for itself, so that it need not repeat that a word has one head (as the factor of
    Smith 2010, section 3.4.2, does), and does not take several into account either. Where no more than a link of a word
    is spoken of, as by all other factors, both are the same.
    """
    sums_j, sums_k = work[0], work[1]
    at = 0
    for k in range(2, n + 1):
        low_k, high_k = starts[k - 1], starts[k]
        for j in range(1, k):
            if may[at]:
                low_j, high_j = starts[j - 1], starts[j]
                extra = np.exp(_clipped(scores[at])) - 1.0
                _without(low_j, high_j, j, k, told, chances, lacks)
                _without(low_k, high_k, k, j, told, chances, lacks)
                _add_up(low_j, high_j, chances, sums_j)
                _add_up(low_k, high_k, chances, sums_k)
                _say_crossing(low_j, high_j, j, k, extra, head, ranks[k], sums_k, high_k - low_k, total, told, chances)
                _say_crossing(low_k, high_k, k, j, extra, head, ranks[j], sums_j, high_j - low_j, total, told, chances)
            at += 1


@njit(cache=True, nogil=True)
def _believe_crossings(n, starts, head, scores, may, ranks, told, chances, lacks, work, beliefs):
    """Beliefs of pairs of words whose links cross; what they add to log Z."""
    sums, size, at = work[0], 0.0, 0
    for k in range(2, n + 1):
        low, high = starts[k - 1], starts[k]
        for j in range(1, k):
            beliefs[at] = 0.0
            if may[at]:
                without_j = _without(starts[j - 1], starts[j], j, k, told, chances, lacks)
                without_k = _without(low, high, k, j, told, chances, lacks)
                _add_up(low, high, chances, sums)
                meet = 0.0
                for a in range(starts[j - 1], starts[j]):
                    meet += chances[a] * _met(head[a], j, k, ranks[k], sums, high - low)
                meet = min(1.0, max(0.0, meet))
                worth = np.exp(_clipped(scores[at]))
                whole = max(1.0 + (worth - 1.0) * meet, _TINY)
                beliefs[at] = worth * meet / whole
                size += np.log(whole * without_j * without_k)
                for word, other, without in ((j, k, without_j), (k, j, without_k)):
                    lacks[word] *= without
                    for a in range(starts[word - 1], starts[word]):
                        chances[a] *= told[a, other] * without
            at += 1
    return size


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
                    shares[a] = np.log(max(beliefs[a], _TINY)) - heard
                    message = shares[a] - np.log(max(rest, _TINY))
                    told[a] = message
                    total[a] = heard + message
        elif constraint < FREE:
            size += _one_head(low, high, constraint == AT_MOST_ONE, total, told, beliefs)
    if constraint == FREE:
        for a in range(len(total)):
            beliefs[a] = _sure(total[a])
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
        message = _clipped(-top - np.log(max(rest, _TINY)))
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
    for turn in range(2):
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
def _may_cross(n, starts, head, ranks, may):
    """Which pairs of words have links that can cross."""
    numbers = np.arange(len(head) + 1)
    at = 0
    for k in range(2, n + 1):
        for j in range(1, k):
            may[at] = False
            for a in range(starts[j - 1], starts[j]):
                if _met(head[a], j, k, ranks[k], numbers, starts[k] - starts[k - 1]) > 0:
                    may[at] = True
                    break
            at += 1


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
    first, second = pairs
    constraint, not_two, no_cycle, single = demands
    starts, count, n_soft = _starts(n, child), len(head), len(first)
    weights = np.exp(np.minimum(MOST, scores[1]))
    if not_two or no_cycle:
        more = _hard_pairs(starts, head, child, not_two, no_cycle)
        first, second = np.concatenate((first, more[0])), np.concatenate((second, more[1]))
        weights = np.concatenate((weights, np.zeros(len(more[0]))))
    neighbours, counts = np.exp(np.minimum(MOST, scores[2])), np.exp(np.minimum(MOST, scores[3]))
    crossing = len(scores[4]) > 0
    may, degree, ranks = np.zeros(len(scores[4]), np.bool_), np.zeros(count, np.int64), np.empty((0, 0), np.int32)
    if crossing:
        ranks = _ranks(n, starts, head)
        _may_cross(n, starts, head, ranks, may)
    total, before, news, shares = scores[0].copy(), np.empty(count), np.empty(count), np.zeros(count)
    tree_told, run_told, count_told, pair_told = (
        np.zeros(count),
        np.zeros(count),
        np.zeros(count),
        np.zeros((len(first), 2)),
    )
    cross_told, cross_work = np.ones((count if crossing else 0, n + 1)), np.empty((2, count + 1 if crossing else 0))
    chances, lacks, may_lack = np.empty(count), np.empty(n + 1), constraint >= AT_MOST_ONE
    run_work, tree_work = _room_for_runs(runs[0], bins), np.empty(room(n + 1) if constraint == PROJECTIVE else 0)
    matrices = np.empty((2, n + 1, n + 1))
    value = _tree(starts, head, child, constraint, single, total, tree_told, shares, matrices, tree_work, beliefs[0])
    rounds = 0
    while (len(first) or len(neighbours) or len(counts) or crossing) and value > -np.inf and rounds < iterations:
        rounds += 1
        before[:] = total
        _pairs(first, second, weights, total, pair_told, news)
        if len(neighbours):
            _runs(0, runs[0], runs[1], neighbours, bins, total, run_told, run_work, beliefs[2], False)
        if len(counts):
            _runs(1, runs[0], runs[1], counts, bins, total, count_told, run_work, beliefs[3], False)
        if crossing:
            _heads(starts, total, tree_told, shares, may_lack, chances, lacks)
            _crossings(n, starts, head, scores[4], may, ranks, total, cross_told, chances, lacks, cross_work)
        value = _tree(
            starts, head, child, constraint, single, total, tree_told, shares, matrices, tree_work, beliefs[0]
        )
        if _change(total, before) <= tolerance:
            break
    for a in range(count):
        heard[a] = total[a] - tree_told[a]
    if not value > -np.inf:
        return value, rounds
    value += _believe_pairs(first, second, weights, n_soft, total, pair_told, beliefs[1], degree)
    if len(neighbours):
        value += _runs(0, runs[0], runs[1], neighbours, bins, total, run_told, run_work, beliefs[2], True)
    if len(counts):
        value += _runs(1, runs[0], runs[1], counts, bins, total, count_told, run_work, beliefs[3], True)
    if crossing:
        _heads(starts, total, tree_told, shares, may_lack, chances, lacks)
        value += _believe_crossings(
            n, starts, head, scores[4], may, ranks, cross_told, chances, lacks, cross_work, beliefs[4]
        )  # fmt: skip
    families = (len(neighbours) > 0) + (len(counts) > 0) + (constraint < FREE) - 1
    for a in range(count):
        if total[a] > -np.inf:
            value -= (degree[a] + families) * _softplus(total[a])
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


@njit(cache=True, nogil=True)
def _believe_pairs(first, second, weights, n_soft, total, told, beliefs, degree):
    """Beliefs of pairs that have scores; log Z of all; and how many each link is in, added to `degree`."""
    size = 0.0
    for p in range(len(first)):
        a, b = first[p], second[p]
        heard_a, heard_b = total[a] - told[p, 0], total[b] - told[p, 1]
        degree[a] += 1
        degree[b] += 1
        top = max(0.0, max(heard_a, heard_b), heard_a + heard_b)
        both = np.exp(heard_a + heard_b - top) * weights[p]
        whole = np.exp(-top) + np.exp(heard_a - top) + np.exp(heard_b - top) + both
        size += top + np.log(max(whole, 1e-300))
        if p < n_soft:
            beliefs[p] = both / max(whole, 1e-300)
    return size
