"""Looking up n-grams: a trie of nodes, from each of which one finds the next by a word.

A *node* is an n-gram, node 0 the empty one. Its children are the n-grams that go on with one more word; they lie one
after the other, in the order of their words, and node 1 + w is word w alone. A *state* is the longest end of what has
been said that some n-gram goes on from: all that the next word's probability depends on, as one number.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

__all__ = ["ROOT", "Grams", "next_word", "score_sentences"]

Grams = namedtuple(
    "Grams",
    [
        "words",  # int32[n_nodes]: the last word of each n-gram; 0 at the root
        "probabilities",  # float32[n_nodes]: log p(last word | the words before it)
        "follows",  # int32[n_nodes]: the state after the n-gram
        "starts",  # int64[n_inner + 1]: where the children of each node that may have some begin
        "backoffs",  # float32[n_inner]: log of what is left for words that do not follow
        "shorter",  # int32[n_inner]: the longest end of the n-gram that is a node, but for itself
        "lengths",  # uint8[n_inner]: words of the n-gram
    ],
)
"""An n-gram language model, as kernels take it. Nodes below `n_inner` are those of all orders but the highest."""

ROOT = 0


@njit(cache=True, nogil=True)
def next_word(grams, state, word):
    """log p(word | state), and the state after it."""
    left = np.float32(0.0)
    while state != ROOT:
        low, high = grams.starts[state], grams.starts[state + 1]
        while low < high:
            middle = (low + high) >> 1
            if grams.words[middle] < word:
                low = middle + 1
            else:
                high = middle
        if low < grams.starts[state + 1] and grams.words[low] == word:
            return left + grams.probabilities[low], grams.follows[low]
        left += grams.backoffs[state]
        state = grams.shorter[state]
    return left + grams.probabilities[1 + word], grams.follows[1 + word]


@njit(cache=True, nogil=True)
def score_sentences(block, blocks, grams, ids, offsets, begin, end, out):
    """log p of every sentence with its end: float64[n_sentences]."""
    for s in range(block, len(offsets) - 1, blocks):
        state, total = grams.follows[1 + begin], 0.0
        for k in range(offsets[s], offsets[s + 1]):
            gained, state = next_word(grams, state, ids[k])
            total += gained
        out[s] = total + next_word(grams, state, end)[0]
