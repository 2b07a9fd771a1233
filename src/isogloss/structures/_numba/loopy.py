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
from isogloss.structures._numba.tree_parts import cross, pairs_of_run
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
def _told(a, score):
    """What a link is told by a pair whose other link has log-odds a: log (1 + e^(a + s)) − log (1 + e^a)."""
    if a == -np.inf:
        return 0.0
    if score == -np.inf:
        return _clipped(-_softplus(a))
    return _clipped(_softplus(a + score) - _softplus(a))


@njit(cache=True, nogil=True)
def _pairs(first, second, scores, n_soft, total, told, news):
    """Let all pairs speak; `told` is [n_pairs, 2], what each said last. Pairs from `n_soft` on exclude each other."""
    news[:] = 0.0
    for p in range(len(first)):
        a, b = first[p], second[p]
        score = scores[p] if p < n_soft else -np.inf
        heard_a, heard_b = total[a] - told[p, 0], total[b] - told[p, 1]
        to_a, to_b = _told(heard_b, score), _told(heard_a, score)
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
    return _clipped(np.log(max(true, 1e-300)) - np.log(max(false, 1e-300)))


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
def _alone(starts, word, other, total, told, chance, lack, alone):
    """The log-odds of the links into `word` by all but the crossings with `other`: p, 1 − p, and that it alone is true.

    Returns the probability that none is, and Σ softplus.
    """
    none, whole = 1.0, 0.0
    for a in range(starts[word - 1], starts[word]):
        heard = total[a] - told[a, other]
        chance[a], lack[a] = _sure(heard), max(_sure(-heard), 1e-300)
        none *= lack[a]
        whole += _softplus(heard)
    for a in range(starts[word - 1], starts[word]):
        alone[a] = min(1.0, chance[a] / lack[a] * none)
    return none, whole


@njit(cache=True, nogil=True)
def _say_crossing(starts, word, other, extra, head, child, none, chance, lack, alone, total, told, both):
    r"""Tell the links into `word` what crossing links into `other` is worth, e^score − 1 = `extra`.

    Where a word has no head or several the factor is worth 1, so that it says nothing where the score is 0:

    .. math:: m_i = \log (1 + x\, P_i C_i) - \log \Big(1 + x \sum_{i' \ne i} s_{i'} C_{i'}\Big)

    with P the probability that no other link into the word is true, C that one link alone goes into the other word and
    crosses, and s that i' alone of the others is true. Smith 2010, section 3.4.2, demands one head of both words as
    well; the tree says that already.
    """
    low, high = starts[word - 1], starts[word]
    for a in range(low, high):
        both[a] = 0.0
        for b in range(starts[other - 1], starts[other]):
            if cross(head[a], child[a], head[b], child[b]):
                both[a] += alone[b]
    for a in range(low, high):
        others_false = none / lack[a]
        rivals = 0.0
        for b in range(low, high):
            if b != a:
                rivals += chance[b] / lack[b] * both[b]
        true, false = 1.0 + extra * min(1.0, others_false) * both[a], 1.0 + extra * min(1.0, others_false * rivals)
        message = _odds(true, false)
        total[a] += message - told[a, other]
        told[a, other] = message


@njit(cache=True, nogil=True)
def _crossings(n, starts, head, child, scores, may, total, told, work, beliefs, final):
    """Let all pairs of words whose links may cross speak; in the end their beliefs, and log Z."""
    chance, lack, alone, both = work
    size, at = 0.0, 0
    for k in range(2, n + 1):
        for j in range(1, k):
            if not may[at]:
                beliefs[at] = 0.0
                at += 1
                continue
            extra = np.exp(min(MOST, scores[at])) - 1.0
            none_j, whole_j = _alone(starts, j, k, total, told, chance, lack, alone)
            none_k, whole_k = _alone(starts, k, j, total, told, chance, lack, alone)
            if final:
                meet = 0.0
                for a in range(starts[j - 1], starts[j]):
                    for b in range(starts[k - 1], starts[k]):
                        if cross(head[a], child[a], head[b], child[b]):
                            meet += alone[a] * alone[b]
                meet = min(1.0, meet)
                beliefs[at] = (extra + 1.0) * meet / max(1.0 + extra * meet, 1e-300)
                size += whole_j + whole_k + np.log(max(1.0 + extra * meet, 1e-300))
            else:
                _say_crossing(starts, j, k, extra, head, child, none_j, chance, lack, alone, total, told, both)
                _say_crossing(starts, k, j, extra, head, child, none_k, chance, lack, alone, total, told, both)
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
def _tree(starts, head, child, constraint, single, total, told, matrix, marginals, work, beliefs):
    """Let the constraint on all links speak; beliefs of links, and its log Z."""
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
                    message = np.log(max(beliefs[a], _TINY)) - np.log(max(rest, _TINY)) - heard
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
def _may_cross(n, starts, head, child, may):
    """Which pairs of words have links that can cross; how many pairs each link takes part in."""
    degree = np.zeros(len(head), np.int64)
    at = 0
    for k in range(2, n + 1):
        for j in range(1, k):
            may[at] = False
            for a in range(starts[j - 1], starts[j]):
                for b in range(starts[k - 1], starts[k]):
                    if cross(head[a], child[a], head[b], child[b]):
                        may[at] = True
            if may[at]:
                degree[starts[j - 1] : starts[j]] += 1
                degree[starts[k - 1] : starts[k]] += 1
            at += 1
    return degree


@njit(cache=True, nogil=True)
def believe(
    block, blocks, lengths, link_offsets, pair_offsets, run_offsets, link_head, link_child, upper, lower, run_starts,
    run_links, begins, bins, scores, constraint, not_two, no_cycle, single, iterations, tolerance, beliefs, values,
    rounds, heard_by_tree,
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
        n, base, run = lengths[k], link_offsets[k], run_offsets[k]
        count = link_offsets[k + 1] - base
        head, child = link_head[base : base + count], link_child[base : base + count]
        starts = np.zeros(n + 1, np.int64)
        for a in range(count):
            starts[child[a]] += 1
        for c in range(1, n + 1):
            starts[c] += starts[c - 1]
        runs, order = run_starts[run : run + 2 * (n + 1) + 1], run_links[base : base + count]
        n_soft = begins[k, 2] - begins[k, 1]
        first, second = upper[pair_offsets[k] : pair_offsets[k] + n_soft], lower[pair_offsets[k] :][:n_soft]
        if not_two or no_cycle:
            more = _hard_pairs(starts, head, child, not_two, no_cycle)
            first, second = np.concatenate((first, more[0])), np.concatenate((second, more[1]))
        total = scores[begins[k, 0] : begins[k, 1]].copy()
        news, tree_told, run_told, count_told = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count)
        pair_told = np.zeros((len(first), 2))
        grand = scores[begins[k, 1] : begins[k, 2]]
        pair_weights = np.exp(np.minimum(MOST, scores[begins[k, 2] : begins[k, 3]]))
        count_weights = np.exp(np.minimum(MOST, scores[begins[k, 3] : begins[k, 4]]))
        with_runs, with_counts = begins[k, 3] > begins[k, 2], begins[k, 4] > begins[k, 3]
        with_crossings = begins[k, 5] > begins[k, 4]
        longest = 0
        for r in range(2 * (n + 1)):
            longest = max(longest, runs[r + 1] - runs[r])
        wide = max(longest + 1, bins)
        work = (np.empty(longest), np.empty(longest), np.empty(longest), np.empty((longest + 2, wide)),
                np.empty((longest + 2, wide)))  # fmt: skip
        may = np.zeros(n * (n - 1) // 2 if with_crossings else 0, np.bool_)
        degree = np.zeros(count, np.int64)
        cross_told = np.zeros((count if with_crossings else 0, n + 1))
        if with_crossings:
            degree = _may_cross(n, starts, head, child, may)
        cross_work = (np.empty(count), np.empty(count), np.empty(count), np.empty(count))
        matrix, marginals = np.empty((n + 1, n + 1)), np.empty((n + 1, n + 1))
        tree_work = np.empty(room(n + 1) if constraint == PROJECTIVE else 0)
        own = beliefs[begins[k, 0] : begins[k, 1]]
        of_runs, of_counts = beliefs[begins[k, 2] : begins[k, 3]], beliefs[begins[k, 3] : begins[k, 4]]
        of_crossings, cross_scores = beliefs[begins[k, 4] : begins[k, 5]], scores[begins[k, 4] : begins[k, 5]]
        before = total.copy()
        tree_value = _tree(starts, head, child, constraint, single, total, tree_told, matrix, marginals, tree_work, own)
        loopy = len(first) > 0 or with_runs or with_counts or with_crossings
        rounds[k] = 0
        while loopy and tree_value > -np.inf and rounds[k] < iterations:
            rounds[k] += 1
            before[:] = total
            if len(first):
                _pairs(first, second, grand, n_soft, total, pair_told, news)
            if with_runs:
                _runs(0, runs, order, pair_weights, bins, total, run_told, work, of_runs, False)
            if with_counts:
                _runs(1, runs, order, count_weights, bins, total, count_told, work, of_counts, False)
            if with_crossings:
                _crossings(n, starts, head, child, cross_scores, may, total, cross_told, cross_work, of_crossings,
                           False)  # fmt: skip
            tree_value = _tree(starts, head, child, constraint, single, total, tree_told, matrix, marginals, tree_work,
                               own)  # fmt: skip
            change = 0.0
            for a in range(count):
                if total[a] > -np.inf:
                    change = max(change, abs(total[a] - before[a]) / max(1.0, abs(total[a])))
            if change <= tolerance:
                break
        for a in range(count):
            heard_by_tree[base + a] = total[a] - tree_told[a]
        values[k] = tree_value
        if not tree_value > -np.inf:
            continue
        values[k] += _believe_pairs(first, second, grand, n_soft, total, pair_told, beliefs[begins[k, 1] :], degree)
        if with_runs:
            values[k] += _runs(0, runs, order, pair_weights, bins, total, run_told, work, of_runs, True)
        if with_counts:
            values[k] += _runs(1, runs, order, count_weights, bins, total, count_told, work, of_counts, True)
        if with_crossings:
            values[k] += _crossings(n, starts, head, child, cross_scores, may, total, cross_told, cross_work,
                                    of_crossings, True)  # fmt: skip
        families = with_runs + with_counts + (constraint < FREE) - 1
        for a in range(count):
            if total[a] > -np.inf:
                values[k] -= (degree[a] + families) * _softplus(total[a])


@njit(cache=True, nogil=True)
def _believe_pairs(first, second, scores, n_soft, total, told, beliefs, degree):
    """Beliefs of pairs that have scores; log Z of all; and how many each link is in, added to `degree`."""
    size = 0.0
    for p in range(len(first)):
        a, b = first[p], second[p]
        score = scores[p] if p < n_soft else -np.inf
        heard_a, heard_b = total[a] - told[p, 0], total[b] - told[p, 1]
        degree[a] += 1
        degree[b] += 1
        top = max(0.0, max(heard_a, heard_b), heard_a + heard_b + score)
        both = np.exp(heard_a + heard_b + score - top)
        whole = np.exp(-top) + np.exp(heard_a - top) + np.exp(heard_b - top) + both
        size += top + np.log(whole)
        if p < n_soft:
            beliefs[p] = both / whole
    return size
