"""Codes of strings: 63 bits, each of which depends on all that went in. Codes of words are not negative."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import mix

__all__ = ["lay_marks", "marker_codes", "string_codes"]

_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def string_codes(letters, offsets, salt, codes):
    """uint64[n]: a code for each string ``letters[offsets[i]:offsets[i + 1]]`` and kind of thing, the `salt`."""
    for i in range(len(offsets) - 1):
        h = _BASIS ^ np.uint64(salt)
        for p in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(letters[p])) * _PRIME
        codes[i] = mix(h) >> _ONE


MARKER, THROUGH_NOUNS, CLAUSE, STOP = 1, 2, 3, 4
"""What a word is to the search for markers: one itself, part of a noun phrase, of a clause, or (from here) an end."""

REACH = 8


@njit(cache=True, nogil=True)
def marker_codes(starts, lengths, kinds, lemmas, none, markers):
    """The word that marks each word's phrase (``in`` for *in the old house*), found without a tree.

    To the left over what may stand within the phrase, else the next word to the right if it is a marker; `none` where
    there is none. A first-order model does not see the children of a child, and in Universal Dependencies the
    preposition that decides where a noun is attached is one of these.
    """
    for s in range(len(starts)):
        first = starts[s] + 2
        for i in range(1, lengths[s] + 1):
            at = first + i
            markers[at] = none
            own = kinds[at]
            if own == MARKER or own > STOP:
                continue
            widest = THROUGH_NOUNS if own == THROUGH_NOUNS else CLAUSE
            for j in range(i - 1, max(0, i - 1 - REACH), -1):
                kind = kinds[first + j]
                if kind == MARKER:
                    markers[at] = lemmas[first + j]
                    break
                if kind > widest or kind == 0:
                    break
            if markers[at] == none and i < lengths[s] and kinds[at + 1] == MARKER:
                markers[at] = mix(lemmas[at + 1]) >> _ONE


@njit(cache=True, nogil=True)
def lay_marks(sentences, offsets, starts, cells, given, begins, marks):
    """Marks of links, [n + 1, n + 1] of each sentence as (head, child), by child; pieces of a sentence have none."""
    s, at = 0, 0
    for piece in range(len(offsets) - 1):
        n, first = offsets[piece + 1] - offsets[piece], starts[piece] + 2
        while sentences[s + 1] <= offsets[piece] and s + 2 < len(sentences):
            s += 1
        whole = sentences[s] == offsets[piece] and sentences[s + 1] == offsets[piece + 1]
        for c in range(1, n + 1):
            begins[first + c] = at
            for h in range(n + 1):
                if whole:
                    for k in range(given.shape[1]):
                        marks[at, k] = given[cells[s] + h * (n + 1) + c, k]
                at += 1
