"""Codes of phrases, sums of sparse features over options, and the moves that derivations make."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import GOLDEN, mix

__all__ = ["add_option_scores", "gram_codes", "linked_words", "moves_of", "phrase_codes"]

ABOVE = np.uint64(1)
"""How far codes are shifted, so that they are not negative as int64."""


@njit(cache=True, nogil=True)
def phrase_codes(starts, words, out):
    """One number for the words of each phrase, not negative."""
    for k in range(len(starts) - 1):
        code = np.uint64(0)
        for at in range(starts[k], starts[k + 1]):
            code = mix(code ^ (np.uint64(words[at]) + GOLDEN))
        out[k] = np.int64(code >> ABOVE)


@njit(cache=True, nogil=True)
def gram_codes(offsets, words, tags, base, length, codes, patterns):
    """Of the phrase of so many words that begins at each token, the code of its words and that of its tags.

    The code of tags t₁ … tₙ is Σ (tₖ + 1) · baseᵏ⁻¹. Both are −1 where the phrase does not end in the sentence.
    """
    for s in range(len(offsets) - 1):
        for i in range(offsets[s], offsets[s + 1]):
            codes[i] = patterns[i] = -1
            if i + length > offsets[s + 1]:
                continue
            code, pattern, power = np.uint64(0), np.int64(0), np.int64(1)
            for k in range(length):
                code = mix(code ^ (np.uint64(words[i + k]) + GOLDEN))
                pattern += (tags[i + k] + 1) * power
                power *= base
            codes[i], patterns[i] = np.int64(code >> ABOVE), pattern


@njit(cache=True, nogil=True)
def linked_words(chosen, phrases, source_starts, source_words, target_starts, target_words, kinds, side, starts, codes):
    """Codes of the linked words of some pairs, one after the other; or, while `codes` is empty, how many there are.

    Parameters
    ----------
    phrases : int64[n]
        The source phrase of each.
    kinds : int64[n]
        Bit side · i + j says that word i of the source phrase is linked to word j of the target phrase.
    starts : int64[n + 1]
    """
    n = np.int64(0)
    for k in range(len(chosen)):
        starts[k] = n
        source, target = source_starts[phrases[k]], target_starts[chosen[k]]
        for i in range(source_starts[phrases[k] + 1] - source):
            for j in range(target_starts[chosen[k] + 1] - target):
                if (kinds[k] >> (side * i + j)) & 1:
                    if len(codes):
                        code = mix(np.uint64(source_words[source + i]) + GOLDEN)
                        codes[n] = np.int64(mix(code ^ np.uint64(target_words[target + j])) >> ABOVE)
                    n += 1
    starts[len(chosen)] = n


@njit(cache=True, nogil=True)
def add_option_scores(rows, indptr, indices, weights, out):
    """Add to each option the weights of the features in its row; −1 stands for no row."""
    for k in range(len(rows)):
        if rows[k] >= 0:
            total = 0.0
            for e in range(indptr[rows[k]], indptr[rows[k] + 1]):
                total += weights[indices[e]]
            out[k] += total


@njit(cache=True, nogil=True)
def moves_of(
    lengths, jump_starts, swap_starts, longest, firsts, ends, sentence, item_starts, picked, jumps, swaps
):  # fmt: skip
    """Where derivations jump and swap: a cell of the jumps for each phrase, and one of the swaps or −1.

    Parameters
    ----------
    swap_starts : int64[n_sentences + 1]
        Empty where phrases do not swap.
    firsts, ends : int64[n_options]
        The span of each option.
    sentence : int64[n_items]
    item_starts : int64[n_items + 1]
    picked : int64[.]
        Options of each derivation in the order of the translation.
    """
    for item in range(len(item_starts) - 1):
        s, last, gap, reached = sentence[item], 0, 0, 0
        for k in range(item_starts[item], item_starts[item + 1]):
            first, end = firsts[picked[k]], ends[picked[k]]
            jumps[k] = jump_starts[s] + last * lengths[s] + first
            swaps[k] = -1
            if len(swap_starts) and first > gap:
                swaps[k] = swap_starts[s] + (gap * longest + first - gap - 1) * longest + end - first - 1
            reached = max(reached, end)
            if first == gap:
                gap = reached
            last = end
