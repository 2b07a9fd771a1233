"""Scores of the parts of `FamilyTrees`, gathered from several scorers, and spread to them again."""

from __future__ import annotations

from numba import njit

__all__ = ["gather_parts", "spread_parts"]


@njit(cache=True, nogil=True)
def gather_parts(block, blocks, lengths, offsets, spans, words, labels, label, below, place, pair, out):
    """label[spans, L], below[spans, L], word[n, L], split[n, L], pair[L, L] of each sentence into one vector.

    spans, words : int64[n_sentences]
        How many spans and words the sentences before each have. Rows of `place` have those of words, then of splits.
    """
    for s in range(block, len(lengths), blocks):
        n, at = lengths[s], offsets[s]
        many, first, word = n * (n + 1) // 2 * labels, spans[s] * labels, words[s] * 2 * labels
        for t in range(many):
            out[at + t] = label[first + t]
            out[at + many + t] = below[first + t]
        at += 2 * many
        for i in range(n):
            for a in range(labels):
                out[at + i * labels + a] = place[word + i * 2 * labels + a]
                out[at + (n + i) * labels + a] = place[word + (2 * i + 1) * labels + a]
        at += 2 * n * labels
        for t in range(labels * labels):
            out[at + t] = pair[t]


@njit(cache=True, nogil=True)
def spread_parts(block, blocks, lengths, offsets, spans, words, labels, values, label, below, place, pair):
    """The inverse; `pair` is float64[n_sentences, L · L]."""
    for s in range(block, len(lengths), blocks):
        n, at = lengths[s], offsets[s]
        many, first, word = n * (n + 1) // 2 * labels, spans[s] * labels, words[s] * 2 * labels
        for t in range(many):
            label[first + t] = values[at + t]
            below[first + t] = values[at + many + t]
        at += 2 * many
        for i in range(n):
            for a in range(labels):
                place[word + i * 2 * labels + a] = values[at + i * labels + a]
                place[word + (2 * i + 1) * labels + a] = values[at + (n + i) * labels + a]
        at += 2 * n * labels
        for t in range(labels * labels):
            pair[s, t] = values[at + t]
