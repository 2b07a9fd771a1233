"""Kernels of the phrase table: what is known of a phrase pair besides its scores, and looking up phrases of a text."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

__all__ = ["SIDE", "Pairs", "find_phrases", "fit_together", "links_inside"]

SIDE = 7
"""The most words of a phrase on either side, so that the links inside a pair fit into 49 bits."""

Pairs = namedtuple(
    "Pairs",
    [
        "source_starts",  # int64[n_phrases + 1]
        "source_words",  # int32[.]: the words of each source phrase; phrases are in ascending order, word by word
        "first_words",  # int64[n_words + 1]: where the phrases that begin with each word begin
        "pair_starts",  # int64[n_phrases + 1]: where the pairs of each source phrase begin
        "target_starts",  # int64[n_pairs + 1]
        "target_words",  # int32[.]
        "scores",  # float32[n_pairs, n_scores]
        "constellations",  # int32[n_pairs]
    ],
)
"""A phrase table, as kernels take it."""


@njit(cache=True, nogil=True)
def links_inside(text, sentence_start, source_at, target_at, source_length, target_length):
    """The links inside occurrences of phrase pairs with the lengths of both sides, as one number: int64[n].

    Bit SIDE · i + j says that word i of the source phrase is linked to word j of the target phrase; the lengths, less
    one, are above.
    """
    out = np.empty(len(source_at), np.int64)
    for k in range(len(source_at)):
        bits = np.int64(0)
        for i in range(source_length[k]):
            for link in range(text.starts[source_at[k] + i], text.starts[source_at[k] + i + 1]):
                j = sentence_start[k] + text.partner[link] - target_at[k]
                bits |= np.int64(1) << np.int64(SIDE * i + j)
        shape = np.int64(source_length[k] - 1) * SIDE + np.int64(target_length[k] - 1)
        out[k] = bits | shape << np.int64(SIDE * SIDE)
    return out


@njit(cache=True, nogil=True)
def _ascends(pairs, k):
    """Whether source phrase k stands behind the one before it, word by word."""
    first, second, end = pairs.source_starts[k - 1], pairs.source_starts[k], pairs.source_starts[k + 1]
    for place in range(end - second):
        if first + place == second:  # the one before is a beginning of it
            return True
        one, other = pairs.source_words[first + place], pairs.source_words[second + place]
        if one != other:
            return one < other
    return False


@njit(cache=True, nogil=True)
def fit_together(pairs):
    """Whether every source phrase has pairs, all phrases have 1 to SIDE words, and source phrases are in ascending
    order and begin with the words that `first_words` says."""
    for k in range(len(pairs.source_starts) - 1):
        length = pairs.source_starts[k + 1] - pairs.source_starts[k]
        if length < 1 or length > SIDE or pairs.pair_starts[k + 1] <= pairs.pair_starts[k]:
            return False
        if k and not _ascends(pairs, k):
            return False
    for k in range(len(pairs.target_starts) - 1):
        length = pairs.target_starts[k + 1] - pairs.target_starts[k]
        if length < 1 or length > SIDE:
            return False
    for word in range(len(pairs.first_words) - 1):
        for k in range(pairs.first_words[word], pairs.first_words[word + 1]):
            if pairs.source_words[pairs.source_starts[k]] != word:
                return False
    return True


@njit(cache=True, nogil=True)
def _narrowed(pairs, low, high, place, word):
    """Of the phrases low … high - 1, which agree before `place`, those that have this word there."""
    first, last = low, high
    while first < last:
        middle = (first + last) >> 1
        at = pairs.source_starts[middle] + place
        if at < pairs.source_starts[middle + 1] and pairs.source_words[at] >= word:
            last = middle
        else:  # a phrase stands before those that go on where it ends
            first = middle + 1
    begin, last = first, high
    while first < last:
        middle = (first + last) >> 1
        at = pairs.source_starts[middle] + place
        if pairs.source_words[at] > word:
            last = middle
        else:
            first = middle + 1
    return begin, first


@njit(cache=True, nogil=True)
def find_phrases(pairs, ids, offsets, longest):
    """All spans of sentences that the table has pairs for, by first word and length.

    Parameters
    ----------
    ids : int32[n_tokens]
        Word numbers of the table, -1 for words that it does not know.
    offsets : int64[n_sentences + 1]

    Returns
    -------
    found : int64[n_spans, 4]
        First word within the sentence, end, first pair, end of its pairs. A word that is no phrase by itself has a span
        without pairs.
    starts : int64[n_sentences + 1]
        Where the spans of each sentence begin.
    """
    found = np.empty((4 * len(ids) + 16, 4), np.int64)
    starts, n = np.zeros(len(offsets), np.int64), 0
    for s in range(len(offsets) - 1):
        for i in range(offsets[s], offsets[s + 1]):
            low, high = np.int64(0), np.int64(0)
            if ids[i] >= 0:
                low, high = pairs.first_words[ids[i]], pairs.first_words[ids[i] + 1]
            length = 1
            while length <= longest:
                if n == len(found):
                    found = np.concatenate((found, np.empty_like(found)))
                whole = low < high and pairs.source_starts[low + 1] - pairs.source_starts[low] == length
                if whole or length == 1:
                    found[n, 0], found[n, 1] = i - offsets[s], i - offsets[s] + length
                    found[n, 2] = pairs.pair_starts[low] if whole else 0
                    found[n, 3] = pairs.pair_starts[low + 1] if whole else 0
                    n += 1
                if low == high or i + length >= offsets[s + 1] or ids[i + length] < 0:
                    break
                low, high = _narrowed(pairs, low, high, length, ids[i + length])
                length += 1
        starts[s + 1] = n
    return found[:n].copy(), starts
