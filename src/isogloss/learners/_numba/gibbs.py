r"""Kernels of `isogloss.learners.gibbs`: sweeps of the collapsed sampler, the counts that it works on, and their joint.

Words of all languages are numbered through. Of a segment (the words of one document in one language) and a topic t,
``coef[t] = (N_td + alpha_t) / (N_t + W beta)``; a word is then of topic t with probability proportional to ``coef[t] *
(N_wt + beta)``. The counts N_wt of a word are a list of the topics that it has, the most frequent first, as in
SparseLDA (Yao, Mimno and McCallum, KDD 2009). The sum over topics of ``coef[t] * N_wt`` runs over the list; the rest of
the mass, ``beta * sum(coef)``, is known beforehand and seldom drawn from, sixteen topics at once. So what a word costs
hardly depends on the number of topics.
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
_AHEAD = 6  # words whose counts are asked for before they are needed


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
def _take(entries, first, last, topic, one, mask):
    """One less of a topic: its entry sinks to its place."""
    k = first
    while (np.int64(entries[k]) & mask) != topic or entries[k] < one:
        k += 1
    entry = entries[k] - one
    if entry < one:
        entry = entries.dtype.type(0)
    while k + 1 < last and entries[k + 1] > entry:
        entries[k] = entries[k + 1]
        k += 1
    entries[k] = entry


@njit(cache=True, nogil=True, inline="always")
def _give(entries, first, topic, one, mask):
    """One more of a topic: its entry, or a new one, rises to its place."""
    k = first
    while entries[k] != 0 and (np.int64(entries[k]) & mask) != topic:
        k += 1
    entry = entries[k] + one if entries[k] != 0 else entries.dtype.type(one + topic)
    while k > first and entries[k - 1] < entry:
        entries[k] = entries[k - 1]
        k -= 1
    entries[k] = entry


@njit(cache=True, nogil=True)
def list_counts(words, topics, starts, bits, entries):
    """Fill the lists of all words, which are empty, from the topics of their occurrences."""
    one, mask = entries.dtype.type(1 << bits), (1 << bits) - 1
    for i in range(len(words)):
        _give(entries, starts[words[i]], np.int64(topics[i]), one, mask)


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


@njit(cache=True, nogil=True)
def sweep(
    block, blocks, cuts, key, number, words, segments, topics, alpha, beta, smoothing, lists, starts, bits, totals
):  # fmt: skip
    """Draw the topics of all words of a block of documents once, in order, each given all others.

    cuts : int64[blocks + 1], the documents of each block; segments : int64[n_documents * n_languages + 1]
    topics : integer[n], changed in place; alpha : float64[n_topics]; smoothing : float64[n_languages], W beta
    lists : integer[blocks, n_entries]; those of word w begin at starts[w]: ``count << bits | topic``, falling, then 0
    totals : int64[blocks, n_languages, n_topics]; lists and totals are a block's own.
    """
    n_languages, n = totals.shape[1], len(alpha)
    entries, total = lists[block], totals[block]
    coef, sums, nd = np.zeros(-(-n // WIDTH) * WIDTH), np.zeros(WIDTH), np.zeros(n)
    inverse, scores = np.empty((n_languages, n)), np.zeros(n + 1)
    for language in range(n_languages):
        for t in range(n):
            inverse[language, t] = 1.0 / (total[language, t] + smoothing[language])
    one, mask = entries.dtype.type(1 << bits), (1 << bits) - 1
    for d in range(cuts[block], cuts[block + 1]):
        nd[:] = 0.0
        for i in range(segments[d * n_languages], segments[(d + 1) * n_languages]):
            nd[topics[i]] += 1.0
        state = stream(key, number, d)
        for language in range(n_languages):
            own, each, smooth = total[language], inverse[language], smoothing[language]
            start, stop = segments[d * n_languages + language], segments[d * n_languages + language + 1]
            if start == stop:
                continue
            rest = 0.0
            for t in range(n):
                coef[t] = (nd[t] + alpha[t]) * each[t]
            for t in range(n):
                rest += coef[t]
            for i in range(start, stop):
                if i + _AHEAD < stop:
                    prefetch(entries, starts[words[i + _AHEAD]])
                old, first, last = np.int64(topics[i]), starts[words[i]], starts[words[i] + 1]
                nd[old] -= 1.0
                own[old] -= 1
                each[old] = 1.0 / (own[old] + smooth)
                rest -= coef[old]
                coef[old] = (nd[old] + alpha[old]) * each[old]
                rest += coef[old]
                _take(entries, first, last, old, one, mask)
                whole = 0.0
                for k in range(first, last):
                    entry = np.int64(entries[k])
                    if entry == 0:
                        break
                    whole += (entry >> bits) * coef[entry & mask]
                    scores[k - first] = whole
                state += GOLDEN
                mass = uniform(state) * (whole + beta * rest)
                if mass < whole:
                    k = 0
                    while scores[k] <= mass:
                        k += 1
                    new = np.int64(entries[first + k]) & mask
                else:
                    new = _from_rest(coef, sums, old, (mass - whole) / beta, n)
                topics[i] = new
                nd[new] += 1.0
                own[new] += 1
                each[new] = 1.0 / (own[new] + smooth)
                rest -= coef[new]
                coef[new] = (nd[new] + alpha[new]) * each[new]
                rest += coef[new]
                _give(entries, first, new, one, mask)


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
def joint(entries, bits, totals, smoothing, beta, topics, segments, alpha):
    """log P(words, topics) with the multinomials summed out."""
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
    whole, counts = alpha.sum(), np.zeros(n, np.int64)
    at_alpha = np.array([math.lgamma(alpha[t]) for t in range(n)])
    for d in range((len(segments) - 1) // n_languages):
        start, stop = segments[d * n_languages], segments[(d + 1) * n_languages]
        counts[:] = 0
        for i in range(start, stop):
            counts[topics[i]] += 1
        value += math.lgamma(whole) - math.lgamma(stop - start + whole)
        for t in range(n):
            if counts[t] > 0:
                value += math.lgamma(counts[t] + alpha[t]) - at_alpha[t]
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
