"""Options of sentences, the phrase pairs of their spans with all that is known of them, and sums over derivations."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.tasks.translate._numba.decode import orientation
from isogloss.tasks.translate._numba.language_model import next_word

__all__ = ["count_options", "derive", "gather_options", "option_scores", "within"]


@njit(cache=True, nogil=True)
def count_options(pairs, spans):
    """How many options all spans have, and how many words these have; a span without pairs has one of one word."""
    n, words = np.int64(0), np.int64(0)
    for k in range(len(spans)):
        if spans[k, 2] == spans[k, 3]:
            n += 1
            words += 1
        else:
            n += spans[k, 3] - spans[k, 2]
            words += pairs.target_starts[spans[k, 3]] - pairs.target_starts[spans[k, 2]]
    return n, words


@njit(cache=True, nogil=True)
def gather_options(pairs, spans, span_starts, offsets, ids, copies, unknown, chosen, starts, words, copied, placed):
    """Write the options of all spans, one after the other.

    Parameters
    ----------
    spans : int64[n_spans, 4]
        First word, end, first pair, end of pairs.
    ids : int32[n_tokens]
    copies : int32[n_tokens]
        What each token is as a word of the target, where it is copied; `unknown` for those that are none.
    chosen : int64[n_options]
        The pair of each option; -1 for a word that is copied.
    starts : int64[n_options + 1]
    words : int32[.]
        Words of the options.
    copied : int32[n_options]
        The number of a token that is copied though the target does not know it, otherwise -1.
    placed : int64[n_spans, 4]
        First word, end, first option, end of options.
    """
    n, at = 0, 0
    starts[0] = 0
    for s in range(len(span_starts) - 1):
        for k in range(span_starts[s], span_starts[s + 1]):
            placed[k, 0], placed[k, 1], placed[k, 2] = spans[k, 0], spans[k, 1], n
            if spans[k, 2] == spans[k, 3]:
                chosen[n] = -1
                token = offsets[s] + spans[k, 0]
                words[at], copied[n] = copies[token], ids[token] if copies[token] == unknown else -1
                at += 1
                n += 1
                starts[n] = at
            for pair in range(spans[k, 2], spans[k, 3]):
                chosen[n], copied[n] = pair, -1
                for word in range(pairs.target_starts[pair], pairs.target_starts[pair + 1]):
                    words[at] = pairs.target_words[word]
                    at += 1
                n += 1
                starts[n] = at
            placed[k, 3] = n


@njit(cache=True, nogil=True)
def option_scores(pairs, chosen, starts, weights, words_weight, phrase_weight, out):
    """Add what the table, the number of words and the phrase itself give each option."""
    for k in range(len(chosen)):
        total = words_weight * (starts[k + 1] - starts[k]) + phrase_weight
        if chosen[k] >= 0:
            for f in range(len(weights)):
                total += weights[f] * pairs.scores[chosen[k], f]
        out[k] += total


@njit(cache=True, nogil=True)
def derive(
    options, chosen, pairs, grams, begin, end, firsts, ends, item_starts, picked, turns, orientations, n_scores, out
):
    """What derivations add up to: float64[n_items, n_dense].

    Columns: log p of the language model, −distance, words, phrases, then the scores of the table, then the orientations
    of each phrase with that before it and with that behind it.

    Parameters
    ----------
    firsts, ends : int64[n_options]
        The span of each option.
    item_starts : int64[n_items + 1]
    picked : int64[.]
        Options of each derivation in the order of the translation.
    turns : int32[n_options]
        The row of `orientations` of each option; none are added if there are none.
    orientations : float32[n_rows, 6]
    """
    for item in range(len(item_starts) - 1):
        state, last, began, before = grams.follows[1 + begin], 0, 0, -1
        out[item] = 0.0
        for k in range(item_starts[item], item_starts[item + 1]):
            option = picked[k]
            out[item, 1] -= abs(firsts[option] - last)
            if len(turns):
                column = 4 + n_scores + orientation(last, began, firsts[option], ends[option])
                out[item, column] += orientations[turns[option], column - 4 - n_scores]
                if before >= 0:
                    out[item, column + 3] += orientations[turns[before], column - 1 - n_scores]
            last, began, before = ends[option], firsts[option], option
            out[item, 3] += 1
            for at in range(options.target_starts[option], options.target_ends[option]):
                gained, state = next_word(grams, state, options.target_words[at])
                out[item, 0] += gained
                out[item, 2] += 1
            if chosen[option] >= 0:
                for f in range(n_scores):
                    out[item, 4 + f] += pairs.scores[chosen[option], f]
        out[item, 0] += next_word(grams, state, end)[0]


@njit(cache=True, nogil=True)
def within(option_starts, target_starts, words, copied, references, starts, fits):
    """Say of each option whether its words stand, one after the other, in the reference of its sentence."""
    for s in range(len(option_starts) - 1):
        for k in range(option_starts[s], option_starts[s + 1]):
            size = target_starts[k + 1] - target_starts[k]
            for place in range(starts[s], starts[s + 1] - size + 1):
                same = True
                for i in range(size):
                    word = words[target_starts[k] + i] if copied[k] < 0 else -2 - copied[k]
                    if references[place + i] != word:
                        same = False
                        break
                if same:
                    fits[k] = True
                    break
