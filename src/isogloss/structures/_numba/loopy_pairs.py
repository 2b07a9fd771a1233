r"""Belief propagation over two trees and the word links between them: one kernel, sentence pairs on threads.

All is said in log-odds of variables: links of the target tree, links of the source tree, word links, indicators. Groups
of factors speak in turn (fertilities, indicators, configurations, families of the target tree, the source tree, the
target tree), each hearing what the others said before; within a group all speak at once. Probabilities p and 1 − p take
the place of odds inside of factors, so that nothing overflows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.eisner_scaled import room
from isogloss.structures._numba.loopy import PROJECTIVE, _change, _room_for_runs, _runs, _starts, _tree
from isogloss.structures._numba.loopy_heads import MOST, TINY, believe_grands, clipped, grands, settle, softplus, sure
from isogloss.structures._numba.pair_parts import SYNCH, TRUE

__all__ = ["believe_pairs"]


@njit(cache=True, nogil=True)
def _chance(slot, total, told):
    """Probability of a variable by all that others say of it."""
    if slot < 0:
        return 1.0 if slot == TRUE else 0.0
    return sure(total[slot] - told)


# --- soft configurations ----------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _say_together(count, slots, weights, total, told, news):
    r"""Let configurations speak, worth e^score where all of their variables are true.

    .. math:: m_i = \log \Big(1 + (e^s - 1) \prod_{j \ne i} p_j\Big)
    """
    for f in range(count):
        a, b = _chance(slots[f, 0], total, told[f, 0]), _chance(slots[f, 1], total, told[f, 1])
        c, d = _chance(slots[f, 2], total, told[f, 2]), _chance(slots[f, 3], total, told[f, 3])
        ab, cd, extra = a * b, c * d, weights[f] - 1.0
        for k, others in enumerate((b * cd, a * cd, ab * d, ab * c)):
            if slots[f, k] >= 0:
                message = np.log(max(1.0 + extra * others, TINY))
                news[slots[f, k]] += message - told[f, k]
                told[f, k] = message


@njit(cache=True, nogil=True)
def _believe_together(count, slots, weights, total, told, degree, beliefs):
    """Beliefs of configurations; what they add to log Z."""
    size = 0.0
    for f in range(count):
        every = 1.0
        for k in range(4):
            slot = slots[f, k]
            every *= _chance(slot, total, told[f, k])
            if slot >= 0:
                degree[slot] += 1
                size += softplus(total[slot] - told[f, k])
        whole = max(1.0 + (weights[f] - 1.0) * every, TINY)
        beliefs[f] = weights[f] * every / whole
        size += np.log(whole)
    return size


# --- SYNCH ------------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _ruled_out(t, s, m, k):
    """The probability of what SYNCH forbids: two of a target link, a source link and the heads' word link, without the
    third, above children that are linked."""
    return k * (s * t * (1.0 - m) + s * m * (1.0 - t) + t * m * (1.0 - s))


@njit(cache=True, nogil=True)
def _say_synchronous(begin, end, slots, total, told, news):
    """Let SYNCH speak: log of what is left where a variable is true, less that where it is false."""
    for f in range(begin, end):
        t, s = _chance(slots[f, 0], total, told[f, 0]), _chance(slots[f, 1], total, told[f, 1])
        m, k = _chance(slots[f, 2], total, told[f, 2]), _chance(slots[f, 3], total, told[f, 3])
        for place in range(4):
            slot = slots[f, place]
            if slot < 0:
                continue
            if place == 0:
                true, false = _ruled_out(1.0, s, m, k), _ruled_out(0.0, s, m, k)
            elif place == 1:
                true, false = _ruled_out(t, 1.0, m, k), _ruled_out(t, 0.0, m, k)
            elif place == 2:
                true, false = _ruled_out(t, s, 1.0, k), _ruled_out(t, s, 0.0, k)
            else:
                true, false = _ruled_out(t, s, m, 1.0), 0.0
            message = clipped(np.log(max(1.0 - true, TINY)) - np.log(max(1.0 - false, TINY)))
            news[slot] += message - told[f, place]
            told[f, place] = message


@njit(cache=True, nogil=True)
def _believe_synchronous(begin, end, slots, total, told, degree):
    size = 0.0
    for f in range(begin, end):
        for place in range(4):
            if slots[f, place] >= 0:
                degree[slots[f, place]] += 1
                size += softplus(total[slots[f, place]] - told[f, place])
        t, s = _chance(slots[f, 0], total, told[f, 0]), _chance(slots[f, 1], total, told[f, 1])
        m, k = _chance(slots[f, 2], total, told[f, 2]), _chance(slots[f, 3], total, told[f, 3])
        size += np.log(max(1.0 - _ruled_out(t, s, m, k), TINY))
    return size


# --- indicators -------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _odds_of_pairs(low, high, first, second, total, told_pairs, odds):
    """Odds of both of each pair; returns their sum, and the log of the probability that there is none."""
    whole, none = 0.0, 0.0
    for p in range(low, high):
        both = sure(total[first[p]] - told_pairs[p, 0]) * sure(total[second[p]] - told_pairs[p, 1])
        odds[p] = both / max(1.0 - both, TINY)
        whole += odds[p]
        none += np.log(max(1.0 - both, TINY))
    return whole, none


@njit(cache=True, nogil=True)
def _say_indicators(after, starts, first, second, total, told_pairs, told_whole, odds, news):
    """Let indicators speak: variable ``after + g`` is true where one of the pairs of group g is, and they one at most.

    With h the odds of pairs and e those of the indicator, a pair is worth e / (1 + e Σ h of the others), and each link
    of it is told what the other one makes of this.
    """
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        whole, _ = _odds_of_pairs(low, high, first, second, total, told_pairs, odds)
        heard = np.exp(clipped(total[after + g] - told_whole[g]))
        message = clipped(np.log(max(whole, TINY)))
        news[after + g] += message - told_whole[g]
        told_whole[g] = message
        for p in range(low, high):
            others = 0.0
            for q in range(low, high):
                others += odds[q] if q != p else 0.0
            worth = heard / (1.0 + heard * others)
            chances = sure(total[first[p]] - told_pairs[p, 0]), sure(total[second[p]] - told_pairs[p, 1])
            for k in range(2):
                variable = first[p] if k == 0 else second[p]
                message = clipped(np.log(max(1.0 + (worth - 1.0) * chances[1 - k], TINY)))
                news[variable] += message - told_pairs[p, k]
                told_pairs[p, k] = message


@njit(cache=True, nogil=True)
def _believe_indicators(after, starts, first, second, total, told_pairs, told_whole, odds, degree):
    size = 0.0
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        whole, none = _odds_of_pairs(low, high, first, second, total, told_pairs, odds)
        size += none + softplus(total[after + g] - told_whole[g] + np.log(max(whole, TINY)))
        degree[after + g] += 1
        for p in range(low, high):
            size += softplus(total[first[p]] - told_pairs[p, 0]) + softplus(total[second[p]] - told_pairs[p, 1])
            degree[first[p]] += 1
            degree[second[p]] += 1
    return size


# --- one pair ---------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _by_target(n_target, links):
    """Where the word links of each target word begin, and their numbers."""
    starts = np.zeros(n_target + 1, np.int32)
    for a in range(len(links)):
        starts[links[a, 1] + 1] += 1
    for j in range(n_target):
        starts[j + 1] += starts[j]
    places, order = starts[:-1].copy(), np.empty(len(links), np.int32)
    for a in range(len(links)):
        order[places[links[a, 1]]] = a
        places[links[a, 1]] += 1
    return starts, order


@njit(cache=True, nogil=True)
def _by_source(n_source, links):
    starts = np.zeros(n_source + 1, np.int32)
    for a in range(len(links)):
        starts[links[a, 0] + 1] += 1
    for i in range(n_source):
        starts[i + 1] += starts[i]
    return starts, np.arange(len(links)).astype(np.int32)


@njit(cache=True, nogil=True)
def _flush(total, news):
    for v in range(len(total)):
        total[v] += news[v]
    news[:] = 0.0


@njit(cache=True, nogil=True)
def _pair(n, m, target, source, known, links, factors, bins, scores, demands, iterations, tolerance, beliefs, heard):
    """Messages within one pair: beliefs of all parts, what the trees heard, log Z, and the number of rounds.

    Parameters
    ----------
    n, m : int
        Words of the target and of the source.
    target : (head, child, upper, lower, run_starts, run_links)
    source : (head, child)
    links : int32[n_links, 2]
    factors : (n_soft, slots, starts, first, second)
    scores, beliefs : tuple of nine arrays
        Of target links, grandparents, siblings, valences; source links; word links; fertilities of either side;
        configurations.
    demands : (constraint, single_root, source_constraint, source_single_root)
    heard : (float64[n_target_links], float64[n_source_links])
    """
    n_soft, slots, starts, first, second = factors
    weights = np.exp(np.minimum(MOST, scores[8]))
    n_t, n_s = len(target[0]), len(scores[4])
    after = n_t + n_s + len(links)
    total = np.zeros(after + len(starts) - 1)
    total[:n_t], total[n_t : n_t + n_s], total[n_t + n_s : after] = scores[0], scores[4], scores[5]
    own, other, words = total[:n_t], total[n_t : n_t + n_s], total[n_t + n_s : after]
    news, before, degree = np.zeros(len(total)), np.empty(len(total)), np.zeros(len(total), np.int64)
    told, told_pairs, told_whole = np.zeros((len(slots), 4)), np.zeros((len(first), 2)), np.zeros(len(starts) - 1)
    odds = np.empty(len(first))
    grand_weights = np.exp(np.minimum(MOST, scores[1]))
    neighbours, counts = np.exp(np.minimum(MOST, scores[2])), np.exp(np.minimum(MOST, scores[3]))
    grand_told, upper_told = np.zeros(n_t), np.ones(len(target[2]))
    run_told, count_told, chances, lacks = np.zeros(n_t), np.zeros(n_t), np.empty(n_t), np.empty(n + 1)
    fertile = (np.exp(np.minimum(MOST, scores[6])), np.exp(np.minimum(MOST, scores[7])))
    rows = (_by_source(m, links), _by_target(n, links))
    word_told = np.zeros((2, len(links)))
    run_work, word_work = _room_for_runs(target[4], bins), _room_for_runs(np.array([0, len(links)], np.int32), bins)
    trees = (_starts(n, target[1]), _starts(0 if n_s == 0 else m, source[1] if n_s else source[1][:0]))
    tree_told, shares = np.zeros(n_t), np.zeros(n_t)
    other_told, other_shares = np.zeros(n_s), np.zeros(n_s)
    matrices, other_matrices = np.empty((2, n + 1, n + 1)), np.empty((2, m + 1, m + 1))
    work = np.empty(room(n + 1) if demands[0] == PROJECTIVE else 0)
    other_work = np.empty(room(m + 1) if demands[2] == PROJECTIVE and n_s else 0)
    source_value = 0.0
    value = _tree(
        trees[0], target[0], target[1], demands[0], demands[1], own, tree_told, shares, matrices, work, beliefs[0]
    )  # fmt: skip
    if n_s:
        source_value = _tree(
            trees[1], source[0], source[1], demands[2], demands[3], other, other_told, other_shares, other_matrices,
            other_work, beliefs[4],
        )  # fmt: skip
    rounds = 0
    while value > -np.inf and source_value > -np.inf and rounds < iterations:
        rounds += 1
        before[:] = total
        for side in range(2):
            _runs(
                1, rows[side][0], rows[side][1], fertile[side], bins, words, word_told[side], word_work,
                beliefs[6 + side], False,
            )  # fmt: skip
        if len(told_whole):
            _say_indicators(after, starts, first, second, total, told_pairs, told_whole, odds, news)
            _flush(total, news)
        if n_soft:
            _say_together(n_soft, slots, weights, total, told, news)
            _flush(total, news)
        if len(slots) > n_soft:
            _say_synchronous(n_soft, len(slots), slots, total, told, news)
            _flush(total, news)
        if len(target[2]):
            settle(trees[0], demands[0], own, tree_told, shares, chances, lacks)
            grands(target[2], target[3], grand_weights, own, grand_told, upper_told, chances, news[:n_t])
            news[:] = 0.0
        settle(trees[0], demands[0], own, tree_told, shares, chances, lacks)
        if len(neighbours):
            _runs(0, target[4], target[5], neighbours, bins, own, run_told, run_work, beliefs[2], False)
            settle(trees[0], demands[0], own, tree_told, shares, chances, lacks)
        if len(counts):
            _runs(1, target[4], target[5], counts, bins, own, count_told, run_work, beliefs[3], False)
        if n_s:
            source_value = _tree(
                trees[1], source[0], source[1], demands[2], demands[3], other, other_told, other_shares,
                other_matrices, other_work, beliefs[4],
            )  # fmt: skip
        value = _tree(
            trees[0], target[0], target[1], demands[0], demands[1], own, tree_told, shares, matrices, work, beliefs[0]
        )  # fmt: skip
        if _change(total, before) <= tolerance:
            break
    for a in range(n_t):
        heard[0][a] = own[a] - tree_told[a]
    for a in range(n_s):
        heard[1][a] = other[a] - other_told[a]
    value += source_value
    if not value > -np.inf:
        return value, rounds
    for a in range(len(links)):
        beliefs[5][a] = sure(words[a])
    for side in range(2):
        value += _runs(
            1, rows[side][0], rows[side][1], fertile[side], bins, words, word_told[side], word_work, beliefs[6 + side],
            True,
        )  # fmt: skip
    if len(target[2]):
        settle(trees[0], demands[0], own, tree_told, shares, chances, lacks)
    value += believe_grands(
        target[2], target[3], grand_weights, own, grand_told, upper_told, chances, beliefs[1]
    )  # fmt: skip
    if len(neighbours):
        value += _runs(0, target[4], target[5], neighbours, bins, own, run_told, run_work, beliefs[2], True)
    if len(counts):
        value += _runs(1, target[4], target[5], counts, bins, own, count_told, run_work, beliefs[3], True)
    value += _believe_together(n_soft, slots, weights, total, told, degree, beliefs[8])
    value += _believe_synchronous(n_soft, len(slots), slots, total, told, degree)
    value += _believe_indicators(after, starts, first, second, total, told_pairs, told_whole, odds, degree)
    degree[:n_t] += (len(neighbours) > 0) + (len(counts) > 0) + 1
    degree[n_t : n_t + n_s] += 1
    degree[n_t + n_s : after] += 2
    for v in range(len(total)):
        if total[v] > -np.inf:
            value -= (degree[v] - 1) * softplus(total[v])
    return value, rounds


@njit(cache=True, nogil=True)
def believe_pairs(
    block, blocks, t_lengths, t_link_offsets, t_pair_offsets, t_run_offsets, t_head, t_child, upper, lower, run_starts,
    run_links, t_begins, s_lengths, s_link_offsets, s_head, s_child, known, link_offsets, links, conf_offsets,
    group_offsets, pair_offsets, kinds, slots, first, second, starts, begins, bins, scores, constraint, single,
    source_constraint, source_single, iterations, tolerance, beliefs, values, rounds, heard, source_heard,
):  # fmt: skip
    """Pass messages, and write what is believed of every part, Bethe's log Z, the rounds, and what the trees heard.

    Parameters
    ----------
    scores, beliefs : float64[n_parts]
        Laid out as `PairParts` says.
    constraint, source_constraint : int
        TREE or PROJECTIVE.
    values : float64[n_pairs]
        −∞ where nothing is allowed, NaN where float64 is not enough.
    """
    for k in range(block, len(t_lengths), blocks):
        n, m, b, t = t_lengths[k], s_lengths[k], begins[k], t_begins[k]
        shift = b[0] - t[0]
        low, high = t_link_offsets[k], t_link_offsets[k + 1]
        first_pair, last_pair = t_pair_offsets[k], t_pair_offsets[k] + t[2] - t[1]
        s_low, s_high = s_link_offsets[k], s_link_offsets[k + 1]
        own_slots = slots[conf_offsets[k] : conf_offsets[k + 1]]
        n_soft = 0
        while n_soft < len(own_slots) and kinds[conf_offsets[k] + n_soft] != SYNCH:
            n_soft += 1
        given = (
            scores[t[0] + shift : t[1] + shift], scores[t[1] + shift : t[2] + shift],
            scores[t[2] + shift : t[3] + shift], scores[t[3] + shift : t[4] + shift], scores[b[1] : b[2]],
            scores[b[2] : b[3]], scores[b[3] : b[4]], scores[b[4] : b[5]], scores[b[5] : b[6]],
        )  # fmt: skip
        own = (
            beliefs[t[0] + shift : t[1] + shift], beliefs[t[1] + shift : t[2] + shift],
            beliefs[t[2] + shift : t[3] + shift], beliefs[t[3] + shift : t[4] + shift], beliefs[b[1] : b[2]],
            beliefs[b[2] : b[3]], beliefs[b[3] : b[4]], beliefs[b[4] : b[5]], beliefs[b[5] : b[6]],
        )  # fmt: skip
        target = (
            t_head[low:high], t_child[low:high], upper[first_pair:last_pair], lower[first_pair:last_pair],
            run_starts[t_run_offsets[k] : t_run_offsets[k] + 2 * n + 3], run_links[low:high],
        )  # fmt: skip
        pairs = slice(pair_offsets[k], pair_offsets[k + 1])
        factors = (
            n_soft, own_slots, starts[group_offsets[k] + k : group_offsets[k + 1] + k + 1], first[pairs], second[pairs],
        )  # fmt: skip
        values[k], rounds[k] = _pair(
            n, m, target, (s_head[s_low:s_high], s_child[s_low:s_high]), known,
            links[link_offsets[k] : link_offsets[k + 1]], factors, bins, given,
            (constraint, single, source_constraint, source_single), iterations, tolerance, own,
            (heard[low:high], source_heard[s_low : s_low + b[2] - b[1]]),
        )  # fmt: skip
