"""Morphemes found again in their word: where each begins, at the least cost of edits."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["surface_cuts"]

EMPTY = 100
"""What a morpheme without any letter costs: more than edits would, so that it happens only in words too short."""


@njit(cache=True, nogil=True)
def surface_cuts(letters, word_offsets, canonical, morph_offsets, first_morph, out):
    """Ends of pieces: for each word, `out` at the places of its morphemes gets where their pieces end.

    Parameters
    ----------
    letters, canonical : int32[.]
        Letters of words, and of morphemes, as numbers.
    word_offsets, first_morph : int64[n_words + 1]
        Where letters, and morphemes, of each word begin.
    morph_offsets : int64[n_morphemes + 1]

    Notes
    -----
    The cheapest alignment of the morphemes' letters, one after the other, with those of the word: 1 for a letter that
    is replaced, left out or put in, and `EMPTY` for a morpheme that gets none. Among equals, letters that were put in
    stay with what stands before them.
    """
    for w in range(len(word_offsets) - 1):
        word = letters[word_offsets[w] : word_offsets[w + 1]]
        n = len(word)
        first, last = first_morph[w], first_morph[w + 1]
        if last <= first:
            continue
        begin = morph_offsets[first]
        m = morph_offsets[last] - begin
        many = last - first
        border = np.zeros(m + 1, np.int64)  # how many morphemes end there
        for i in range(first, last):
            border[morph_offsets[i + 1] - begin] += 1
        # here[j, f]: i letters of morphemes and j of the word are done; f: the current morpheme has some
        far = 1 << 40
        costs = np.full((2, n + 1, 2), far, np.int64)
        back = np.full((m + 1, n + 1, 2), -1, np.int8)
        costs[0, 0, 0] = 0
        for i in range(m + 1):
            here, below = costs[i % 2], costs[1 - i % 2]
            below[:] = far
            for j in range(n + 1):
                for f in range(2):
                    cost = here[j, f]
                    if cost >= far:
                        continue
                    if j < n and cost + 1 < here[j + 1, 1]:
                        here[j + 1, 1], back[i, j + 1, 1] = cost + 1, 3 * f
                    if i == m:
                        continue
                    opens = i > 0 and border[i] > 0
                    toll = EMPTY if opens and f == 0 else 0
                    kept = 0 if opens else f
                    if cost + toll + 1 < below[j, kept]:
                        below[j, kept], back[i + 1, j, kept] = cost + toll + 1, 1 + 3 * f
                    if j < n:
                        value = cost + toll + int(canonical[begin + i] != word[j])
                        if value < below[j + 1, 1]:
                            below[j + 1, 1], back[i + 1, j + 1, 1] = value, 2 + 3 * f
        f = 1 if costs[m % 2, n, 1] <= costs[m % 2, n, 0] + EMPTY else 0
        i, j, number = m, n, many - 1
        out[last - 1] = n
        while i > 0 or j > 0:
            move = back[i, j, f]
            kind = move % 3
            if kind == 0:
                j -= 1
            elif kind == 1:
                i -= 1
            else:
                i, j = i - 1, j - 1
            if kind > 0 and i > 0 and border[i] > 0:
                for _ in range(border[i]):
                    number -= 1
                    out[first + number] = j
            f = move // 3
