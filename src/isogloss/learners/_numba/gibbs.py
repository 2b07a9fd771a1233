r"""Kernels of `isogloss.learners.gibbs`: sweeps of the collapsed sampler, the counts that it works on, and their joint.

Words of all languages are numbered through. Of a segment (the words of one document in one language) and a topic t,
``coef[t] = (N_td + alpha_t) / (N_t + W beta)``; a word is then of topic t with probability proportional to ``coef[t] *
(N_wt + beta)``. The counts N_wt of a word are a list of the topics that it has, the most frequent first, as in
SparseLDA (Yao, Mimno and McCallum, KDD 2009). The sum over topics of ``coef[t] * N_wt`` runs over the list; the rest of
the mass, ``beta * sum(coef)``, is known beforehand and seldom drawn from, sixteen topics at once. So what a word costs
hardly depends on the number of topics. A word that keeps its topic changes no count at all.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import GOLDEN, mix
from isogloss.structures._numba.lanes import WIDTH, add, load, prefetch, store

__all__ = ["chances", "count_topics", "first_topics", "joint", "list_counts", "merge", "mixtures", "sweep"]

_UNIT = 2.0**-53
_ELEVEN = np.uint64(11)
LENGTH = 4
"""Lists have room for a multiple of so many entries, the last of which is 0."""
_AHEAD = np.uint64(8)  # words whose counts are asked for before they are needed
_ONE, _TWO, _THREE, _LENGTH = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(LENGTH)


@njit(cache=True, nogil=True, inline="always")
def stream(key, sweep, document):
    """Where the random numbers of a document in a sweep begin: they do not depend on what else is drawn."""
    return mix(mix(key + np.uint64(sweep + 1) * GOLDEN) + np.uint64(document + 1) * GOLDEN)


@njit(cache=True, nogil=True, inline="always")
def uniform(state):
    """A number from 0 to 1, 1 excluded."""
    return np.float64(mix(state) >> _ELEVEN) * _UNIT


@njit(cache=True, nogil=True)
def first_topics(key, segments, n_languages, n_topics, topics):
    """Topics at random, all alike probable."""
    for d in range((len(segments) - 1) // n_languages):
        state = stream(key, -1, d)
        for i in range(segments[d * n_languages], segments[(d + 1) * n_languages]):
            state += GOLDEN
            topics[i] = min(n_topics - 1, np.int64(uniform(state) * n_topics))


@njit(cache=True, nogil=True, inline="always")
def _take(entries, first, topic, one, mask):
    """One less of a topic: its entry sinks to its place."""
    k = first
    while (entries[k] & mask) != topic:
        k += _ONE
    entry = entries[k] - one
    if entry < one:
        entry = entries.dtype.type(0)
    while entries[k + _ONE] > entry:
        entries[k] = entries[k + _ONE]
        k += _ONE
    entries[k] = entry


@njit(cache=True, nogil=True, inline="always")
def _give(entries, first, k, topic, one):
    """One more of a topic: its entry at k, or a new one, rises to its place."""
    entry = entries[k] + one if entries[k] > 0 else one + topic
    while k > first and entries[k - _ONE] < entry:
        entries[k] = entries[k - _ONE]
        k -= _ONE
    entries[k] = entry


@njit(cache=True, nogil=True, inline="always")
def _place(entries, first, topic, mask):
    """Where a topic is in a list, or its end."""
    k = first
    while entries[k] > 0 and (entries[k] & mask) != topic:
        k += _ONE
    return k


@njit(cache=True, nogil=True)
def list_counts(words, topics, starts, bits, entries):
    """Fill the lists of all words, which are empty, from the topics of their occurrences."""
    kind = entries.dtype.type
    one, mask = kind(1 << bits), kind((1 << bits) - 1)
    for i in range(len(words)):
        first, topic = np.uint64(starts[words[i]]), kind(topics[i])
        _give(entries, first, _place(entries, first, topic, mask), topic, one)


@njit(cache=True, nogil=True)
def _from_rest(coef, sums, old, mass, n):
    """A topic by its coefficient alone: first one of sixteen lanes, then one of its topics; never one of weight 0."""
    some = load(coef, 0)
    for b in range(WIDTH, len(coef), WIDTH):
        some = add(some, load(coef, b))
    store(sums, 0, some)
    lane = 0
    for j in range(WIDTH):
        if sums[j] > 0.0:
            lane = j
            if mass < sums[j]:
                break
            mass -= sums[j]
    chosen = old
    for t in range(lane, n, WIDTH):
        x = coef[t]
        if x > 0.0:
            chosen = t
            mass -= x
            if mass < 0.0:
                break
    return chosen


@njit(cache=True, nogil=True, error_model="numpy")
def sweep(
    block, blocks, cuts, key, number, slots, segments, topics, alpha, leans, beta, smoothing, lists, bits, totals
):  # fmt: skip
    """Draw the topics of all words of a block of documents once, in order, each given all others.

    cuts : int64[blocks + 1], the documents of each block; segments : int64[n_documents * n_languages + 1]
    slots : uint32[n], where the list of each word begins, in units of `LENGTH`
    topics : integer[n], changed in place; alpha : float64[n_topics]; smoothing : float64[n_languages], W beta
    leans : float64[n_documents, n_topics], what is added to alpha of each document; no rows where nothing is
    lists : unsigned[blocks, n_entries]: ``count << bits | topic``, falling, and at least one 0 behind the last
    totals : int64[blocks, n_languages, n_topics]; lists and totals are a block's own.

    Numbers are unsigned where they are indices: Numba looks for negative ones otherwise.
    """
    n_languages, n = totals.shape[1], len(alpha)
    entries, total = lists[block], totals[block]
    kind = entries.dtype.type
    zero, one, mask, shift = kind(0), kind(1 << bits), kind((1 << bits) - 1), kind(bits)
    coef, sums = np.zeros(-(-n // WIDTH) * WIDTH), np.zeros(WIDTH)
    counts = np.empty(n)  # of the topics of a document, with alpha
    inverses, lesses = np.empty((n_languages, n)), np.empty((n_languages, n))
    for language in range(n_languages):
        for t in range(n):
            inverses[language, t] = 1.0 / (total[language, t] + smoothing[language])
            lesses[language, t] = 1.0 / (total[language, t] - 1 + smoothing[language])  # one word left out
    for d in range(cuts[block], cuts[block + 1]):
        counts[:] = alpha
        if len(leans):
            counts += leans[d]
        for i in range(segments[d * n_languages], segments[(d + 1) * n_languages]):
            counts[topics[i]] += 1.0
        state = stream(key, number, d)
        for language in range(n_languages):
            own, inverse, less, smooth = total[language], inverses[language], lesses[language], smoothing[language]
            start, stop = segments[d * n_languages + language], segments[d * n_languages + language + 1]
            if start == stop:
                continue
            for t in range(n):
                coef[t] = counts[t] * inverse[t]
            rest = coef.sum()
            for i in range(np.uint64(start), np.uint64(stop)):
                prefetch(entries, np.uint64(slots[min(i + _AHEAD, np.uint64(stop - 1))]) * _LENGTH)
                old, first = np.uint64(topics[i]), np.uint64(slots[i]) * _LENGTH
                before = coef[old]
                without = (counts[old] - 1.0) * less[old]
                coef[old] = without
                left = rest - before + without
                whole, k = -without, first  # the list has this word still
                while True:
                    a, b, c, e = entries[k], entries[k + _ONE], entries[k + _TWO], entries[k + _THREE]
                    whole += (
                        np.float64(np.int64(a >> shift)) * coef[np.uint64(a & mask)]
                        + np.float64(np.int64(b >> shift)) * coef[np.uint64(b & mask)]
                    ) + (
                        np.float64(np.int64(c >> shift)) * coef[np.uint64(c & mask)]
                        + np.float64(np.int64(e >> shift)) * coef[np.uint64(e & mask)]
                    )
                    k += _LENGTH
                    if entries[k - _ONE] == zero:
                        break
                state += GOLDEN
                mass = uniform(state) * (whole + beta * left)
                listed = mass < whole
                if listed:
                    k, new = first, old
                    while True:
                        entry = entries[k]
                        new = np.uint64(entry & mask)
                        mass -= (np.float64(np.int64(entry >> shift)) - (1.0 if new == old else 0.0)) * coef[new]
                        if mass < 0.0 or entries[k + _ONE] == zero:
                            break
                        k += _ONE
                else:
                    k, new = first, np.uint64(_from_rest(coef, sums, np.int64(old), (mass - whole) / beta, n))
                if new == old:
                    coef[old] = before
                    continue
                topics[i] = new
                counts[old] -= 1.0
                counts[new] += 1.0
                own[old] -= 1
                own[new] += 1
                inverse[old] = less[old]
                less[old] = 1.0 / (own[old] - 1 + smooth)
                less[new] = inverse[new]
                inverse[new] = 1.0 / (own[new] + smooth)
                after = counts[new] * inverse[new]
                rest = left - coef[new] + after
                coef[new] = after
                _take(entries, first, kind(old), one, mask)
                if not listed:
                    k = _place(entries, first, kind(new), mask)
                elif entries[k] == zero or np.uint64(entries[k] & mask) != new:
                    k -= _ONE  # the entry of the old topic sank past it
                _give(entries, first, k, kind(new), one)


@njit(cache=True, nogil=True)
def merge(part, parts, starts, bits, lists, merged, fresh):
    """The lists that blocks have come to, in one: what there was, and what each block has changed of it.

    ``fresh = merged + sum over blocks of (list of the block - merged)``, for the words of one part.
    """
    mask, blocks, n_words = (1 << bits) - 1, lists.shape[0], len(starts) - 1
    counts, met, seen = np.zeros(1 << bits, np.int64), np.empty(1 << bits, np.int64), np.zeros(1 << bits, np.bool_)
    for w in range(part * n_words // parts, (part + 1) * n_words // parts):
        many = 0
        for b in range(-1, blocks):
            entries = merged if b < 0 else lists[b]
            for k in range(starts[w], starts[w + 1]):
                entry = np.int64(entries[k])
                if entry == 0:
                    break
                t = entry & mask
                if not seen[t]:
                    seen[t] = True
                    met[many] = t
                    many += 1
                counts[t] += (entry >> bits) * ((1 - blocks) if b < 0 else 1)
        end = starts[w]
        for k in range(many):
            t = met[k]
            if counts[t] > 0:
                entry, place = fresh.dtype.type(counts[t] << bits | t), end
                while place > starts[w] and fresh[place - 1] < entry:
                    fresh[place] = fresh[place - 1]
                    place -= 1
                fresh[place] = entry
                end += 1
            counts[t], seen[t] = 0, False
        fresh[end : starts[w + 1]] = 0


@njit(cache=True, nogil=True)
def count_topics(topics, segments, totals):
    """How many words of each language have each topic: int64[n_languages, n_topics], zeros before."""
    n_languages = totals.shape[0]
    for s in range(len(segments) - 1):
        for i in range(segments[s], segments[s + 1]):
            totals[s % n_languages, topics[i]] += 1


@njit(cache=True, nogil=True)
def joint(entries, bits, totals, smoothing, beta, topics, segments, alpha, leans):
    """log P(words, topics) with the multinomials summed out; the prior of document d is alpha + leans[d]."""
    n_languages, n = totals.shape
    value, at_beta = 0.0, math.lgamma(beta)
    known = np.array([math.lgamma(c + beta) - at_beta for c in range(1024)])
    for k in range(len(entries)):
        c = np.int64(entries[k]) >> bits
        if c > 0:
            value += known[c] if c < 1024 else math.lgamma(c + beta) - at_beta
    for language in range(n_languages):
        at_sum = math.lgamma(smoothing[language])
        for t in range(n):
            value += at_sum - math.lgamma(totals[language, t] + smoothing[language])
    prior, whole, counts = alpha.copy(), alpha.sum(), np.zeros(n, np.int64)
    for d in range((len(segments) - 1) // n_languages):
        start, stop = segments[d * n_languages], segments[(d + 1) * n_languages]
        if len(leans):
            prior[:] = alpha + leans[d]
            whole = prior.sum()
        counts[:] = 0
        for i in range(start, stop):
            counts[topics[i]] += 1
        value += math.lgamma(whole) - math.lgamma(stop - start + whole)
        for t in range(n):
            if counts[t] > 0:
                value += math.lgamma(counts[t] + prior[t]) - math.lgamma(prior[t])
    return value


# --- documents that are new, whose words have fixed distributions


@njit(cache=True, nogil=True)
def _word_shares(words, start, stop, starts, topics, counts, language, totals, smoothing, beta, out):
    """phi of some words: float64[stop - start, n_topics], (N_wt + beta) / (N_t + W beta)."""
    n = out.shape[1]
    for i in range(start, stop):
        own = language[i]
        for t in range(n):
            out[i - start, t] = beta / (totals[own, t] + smoothing[own])
        for k in range(starts[words[i]], starts[words[i] + 1]):
            t = topics[k]
            out[i - start, t] = (counts[k] + beta) / (totals[own, t] + smoothing[own])


@njit(cache=True, nogil=True)
def _own_key(key, words, start, stop):
    """A key that depends on the words of a document alone: the same document is always judged the same."""
    state = key
    for i in range(start, stop):
        state = mix(state + np.uint64(words[i] + 1) * GOLDEN)
    return state


@njit(cache=True, nogil=True, inline="always")
def _choose(shares, i, nd, alpha, values, u):
    """A topic of word i given those of the others."""
    n, whole = len(alpha), 0.0
    for t in range(n):
        whole += shares[i, t] * (nd[t] + alpha[t])
        values[t] = whole
    mass, chosen = u * whole, 0
    while chosen < n - 1 and values[chosen] <= mass:
        chosen += 1
    return chosen


@njit(cache=True, nogil=True)
def mixtures(
    block, blocks, key, words, language, offsets, starts, topics, counts, totals, smoothing, beta, alphas, prior, burn,
    samples, out,
):  # fmt: skip
    """The topics of documents by Gibbs sampling, words' distributions being fixed: float64[n_documents, n_topics].

    language : int64[n], of each word; starts, topics, counts : of each word of the vocabularies, its topics
    alphas : float64[., n_topics]; document d has row prior[d]; burn, samples : sweeps before and during the average.
    """
    n_documents, n = len(offsets) - 1, alphas.shape[1]
    nd, values = np.zeros(n), np.zeros(n)
    for d in range(block * n_documents // blocks, (block + 1) * n_documents // blocks):
        start, stop = offsets[d], offsets[d + 1]
        alpha, size = alphas[prior[d]], offsets[d + 1] - offsets[d]
        shares, z = np.empty((size, n)), np.zeros(size, np.int64)
        _word_shares(words, start, stop, starts, topics, counts, language, totals, smoothing, beta, shares)
        nd[:] = 0.0
        state = _own_key(key, words, start, stop)
        for i in range(size):
            state += GOLDEN
            z[i] = _choose(shares, i, nd, alpha, values, uniform(state))
            nd[z[i]] += 1.0
        out[d] = 0.0
        for number in range(burn + samples if size else 0):
            for i in range(size):
                nd[z[i]] -= 1.0
                state += GOLDEN
                z[i] = _choose(shares, i, nd, alpha, values, uniform(state))
                nd[z[i]] += 1.0
            if number >= burn:
                out[d] += nd
        out[d] = (out[d] / samples + alpha) / (size + alpha.sum())


@njit(cache=True, nogil=True)
def chances(
    block, blocks, key, words, language, offsets, starts, topics, counts, totals, smoothing, beta, alphas, prior,
    resample, out,
):  # fmt: skip
    """The left-to-right estimator: probability of each word given those before it, in each of several runs.

    out : float64[runs, n], from which both forms of the estimate follow
    resample : whether the topics of all words before are drawn again at each word.
    """
    n_documents, n = len(offsets) - 1, alphas.shape[1]
    nd, values = np.zeros(n), np.zeros(n)
    for d in range(block * n_documents // blocks, (block + 1) * n_documents // blocks):
        start, stop = offsets[d], offsets[d + 1]
        alpha, size = alphas[prior[d]], offsets[d + 1] - offsets[d]
        whole = alpha.sum()
        shares, z = np.empty((size, n)), np.zeros(size, np.int64)
        _word_shares(words, start, stop, starts, topics, counts, language, totals, smoothing, beta, shares)
        state = _own_key(key, words, start, stop)
        for run in range(out.shape[0]):
            nd[:] = 0.0
            for i in range(size):
                for before in range(i if resample else 0):
                    nd[z[before]] -= 1.0
                    state += GOLDEN
                    z[before] = _choose(shares, before, nd, alpha, values, uniform(state))
                    nd[z[before]] += 1.0
                state += GOLDEN
                z[i] = _choose(shares, i, nd, alpha, values, uniform(state))
                out[run, start + i] = values[n - 1] / (i + whole)
                nd[z[i]] += 1.0
