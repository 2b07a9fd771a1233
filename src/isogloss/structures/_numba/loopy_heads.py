r"""Messages of factors that ask which head a word has: what may be above a link, and which links cross.

A word has one of its heads, so that there is one variable with many values for each word; what a factor says to it is a
weight for each head. The factors of Smith 2010 (GRAND, section 2.2; NOCROSS, section 3.4.2) speak to links that are
true or false each for itself: as if a word could have several heads, or demanding again and again that it has one.
Where a factor speaks to no more than one link into a word, as runs of children do, both are the same.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "AT_MOST_ONE", "FREE", "MOST", "TINY", "believe_crossings", "believe_grands", "clipped", "crossings", "grands",
    "may_cross", "ranks_of_heads", "settle", "softplus", "sure",
]  # fmt: skip

AT_MOST_ONE, FREE = 3, 4
"""Constraints from which on words may lack a head; with the last they may have several, and are treated as if not."""
MOST = 60.0
"""Messages beyond this, as log-odds, are this."""
TINY = 1e-30


@njit(cache=True, nogil=True)
def softplus(x):
    return x + np.log1p(np.exp(-x)) if x > 0 else np.log1p(np.exp(x))


@njit(cache=True, nogil=True)
def sure(x):
    """σ(x)."""
    return 1.0 / (1.0 + np.exp(-x)) if x > 0 else np.exp(x) / (1.0 + np.exp(x))


@njit(cache=True, nogil=True)
def clipped(x):
    return min(MOST, max(-MOST, x))


@njit(cache=True, nogil=True)
def settle(starts, constraint, total, told, shares, chances, lacks):
    """Probabilities of the heads of every word, of which it has one, and of none where that may be (`lacks`).

    `total` less `told` is what links hear from all but the tree, and stays as it is; `shares` is what the tree says of
    the heads of a word beside each other. Log-odds `total` are made those of the probabilities again, of which they
    stray where links into the same word were told different things.
    """
    may_lack = constraint >= AT_MOST_ONE
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
        for a in range(low, high if constraint < FREE else low):
            rest = lacks[word]
            for b in range(low, high):
                rest += chances[b] if b != a else 0.0
            heard = total[a] - told[a]
            if heard > -np.inf:
                total[a] = np.log(max(chances[a], TINY)) - np.log(max(rest, TINY))
                told[a] = total[a] - heard


@njit(cache=True, nogil=True)
def _above(p, upper, lower, weights, told, chances):
    """Of the pairs from p on with the same lower link: where they end; the probability of the upper ones (by all but
    these pairs) before it is divided to be that of one head, and what is then expected of their weights."""
    end, b = p, lower[p]
    whole, worth, rest = 0.0, 0.0, 1.0
    while end < len(lower) and lower[end] == b:
        chance = chances[upper[end]]
        rest -= chance
        whole += chance / told[end]
        worth += chance / told[end] * weights[end]
        end += 1
    rest = max(0.0, rest)
    whole = max(whole + rest, TINY)
    return end, whole, (worth + rest) / whole


@njit(cache=True, nogil=True)
def grands(upper, lower, weights, total, told, told_upper, chances, news):
    r"""Let every link h → c speak with the link above it, which is one of those into h.

    .. math:: m_{hc} = \log \sum_g q_g e^{s_{ghc}}, \qquad w_g = 1 + p_{hc} (e^{s_{ghc}} - 1)

    with q the probabilities of the heads of h and p that of the link, both without what this factor said; `told` are
    the m of each link, `told_upper` the w of each pair. The reference has a factor for each pair, as if there could be
    several links into h.
    """
    news[:] = 0.0
    p = 0
    while p < len(lower):
        b = lower[p]
        end, _, worth = _above(p, upper, lower, weights, told_upper, chances)
        chance, message = sure(total[b] - told[b]), np.log(max(worth, TINY))
        news[b] += message - told[b]
        told[b] = message
        for q in range(p, end):
            w = max(1.0 + chance * (weights[q] - 1.0), TINY)
            news[upper[q]] += np.log(w / told_upper[q])
            told_upper[q] = w
        p = end
    for a in range(len(total)):
        total[a] += news[a]


@njit(cache=True, nogil=True)
def believe_grands(upper, lower, weights, total, told, told_upper, chances, beliefs):
    """Beliefs of grandparents; what they add to log Z."""
    size, p = 0.0, 0
    while p < len(lower):
        b = lower[p]
        end, above, worth = _above(p, upper, lower, weights, told_upper, chances)
        chance = sure(total[b] - told[b])
        whole = max(1.0 + chance * (worth - 1.0), TINY)
        for q in range(p, end):
            beliefs[q] = chance * chances[upper[q]] / told_upper[q] / above * weights[q] / whole
        size += np.log(whole * above / max(1.0 + chance * (np.exp(told[b]) - 1.0), TINY))
        p = end
    return size


@njit(cache=True, nogil=True)
def ranks_of_heads(n, starts, head):
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
def may_cross(n, starts, head, ranks, may):
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
def _add_up(low, high, values, sums):
    sums[0] = 0.0
    for a in range(low, high):
        sums[a - low + 1] = sums[a - low] + values[a]


@njit(cache=True, nogil=True)
def _without(low, high, word, other, told, chances, lacks):
    """Take out of the heads low … high − 1 of a word what its crossings with `other` said; returns 1 / E[what]."""
    whole = lacks[word]
    for a in range(low, high):
        chances[a] /= told[a, other]
        whole += chances[a]
    whole = max(whole, TINY)  # where several heads may be there at once, all that is left of others may be 0
    lacks[word] /= whole
    for a in range(low, high):
        chances[a] /= whole
    return whole


@njit(cache=True, nogil=True)
def _say_crossing(low, high, word, other, extra, head, ranks, sums, count, total, told, chances):
    r"""Tell the heads low … high − 1 of a word what crossing the link into `other` is worth, e^score − 1 = `extra`.

    .. math:: w_i = 1 + (e^s - 1) \sum_{k\ crosses\ i} q_k

    with q the probabilities of the heads of the other word, without what this factor said of them.
    """
    for a in range(low, high):
        met = min(1.0, max(0.0, _met(head[a], word, other, ranks, sums, count)))
        worth = max(1.0 + extra * met, TINY)
        total[a] += np.log(worth / told[a, other])
        told[a, other] = worth
        chances[a] *= worth


@njit(cache=True, nogil=True)
def crossings(n, starts, head, scores, may, ranks, total, told, chances, lacks, work):
    """Let all pairs of words whose links may cross speak, one after the other; `chances` and `lacks` follow."""
    sums_j, sums_k = work[0], work[1]
    at = 0
    for k in range(2, n + 1):
        low_k, high_k = starts[k - 1], starts[k]
        for j in range(1, k):
            if may[at]:
                low_j, high_j = starts[j - 1], starts[j]
                extra = np.exp(clipped(scores[at])) - 1.0
                _without(low_j, high_j, j, k, told, chances, lacks)
                _without(low_k, high_k, k, j, told, chances, lacks)
                _add_up(low_j, high_j, chances, sums_j)
                _add_up(low_k, high_k, chances, sums_k)
                _say_crossing(low_j, high_j, j, k, extra, head, ranks[k], sums_k, high_k - low_k, total, told, chances)
                _say_crossing(low_k, high_k, k, j, extra, head, ranks[j], sums_j, high_j - low_j, total, told, chances)
            at += 1


@njit(cache=True, nogil=True)
def believe_crossings(n, starts, head, scores, may, ranks, told, chances, lacks, work, beliefs):
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
                worth = np.exp(clipped(scores[at]))
                whole = max(1.0 + (worth - 1.0) * meet, TINY)
                beliefs[at] = worth * meet / whole
                size += np.log(whole * without_j * without_k)
                for word, other, without in ((j, k, without_j), (k, j, without_k)):
                    lacks[word] *= without
                    for a in range(starts[word - 1], starts[word]):
                        chances[a] *= told[a, other] * without
            at += 1
    return size
