"""Which symbols of a binary grammar a model of labelled spans leaves over each span."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.spans import span_at

__all__ = ["vouch_cells"]


@njit(cache=True, nogil=True)
def vouch_cells(block, count, lengths, firsts, offsets, tokens, likely, posteriors, starts, tops, ends, inside, least,
                made, seen):  # fmt: skip
    """Mark the symbols to which labelled spans give at least `least`.

    A label is a chain of symbols, of which the first is seen and the last was made. Where trees are binary to the
    right, the symbol `inside` A over (i, j) is the rest of some A over (h, j) with h < i, and has no more posterior
    than all of these together.

    Parameters
    ----------
    lengths, firsts, offsets : int64[n_sentences]
        Words of each sentence, where they begin among all words, and where its spans begin among all spans.
    tokens : int64[n_words]
        The row of each word in `likely`, bool[n_types, n_tags]: which tags it may have. Tags are the first symbols;
        they are seen where the word may be bare.
    posteriors : float64[n_spans · L]
        Of labels, those of sentence s from starts[s] on.
    tops, ends : int64[L]
        The first and the last symbol of a label; −1 where the grammar has it not.
    inside : int64[S]
        The symbol of what is left of a symbol when its first children are taken away; −1 where there is none.
    made, seen : bool[n_spans, S]
        Overwritten.
    """
    labels, symbols, tags = len(tops), len(inside), likely.shape[1]
    above, below, run = np.empty(symbols), np.empty(symbols), np.empty(symbols)
    for s in range(block, len(lengths), count):
        n = lengths[s]
        for j in range(1, n + 1):
            run[:] = 0.0
            for i in range(j):
                number = span_at(i, j, n)
                here, at = offsets[s] + number, starts[s] + number * labels
                above[:], below[:] = 0.0, 0.0
                mass = 0.0
                for label in range(labels):
                    if posteriors[at + label] > 0.0:
                        mass += posteriors[at + label]
                        if tops[label] >= 0:
                            above[tops[label]] += posteriors[at + label]
                        if ends[label] >= 0:
                            below[ends[label]] += posteriors[at + label]
                for a in range(symbols):
                    seen[here, a] = above[a] >= least
                    made[here, a] = j - i > 1 and below[a] >= least
                if j - i > 1:
                    for a in range(tags, symbols):
                        if inside[a] >= 0:
                            made[here, inside[a]] = seen[here, inside[a]] = run[a] >= least
                            run[a] += below[a]
                else:
                    bare = 1.0 - mass >= least
                    for a in range(tags):
                        made[here, a] = likely[tokens[firsts[s] + i], a]
                        seen[here, a] = bare and made[here, a]
