"""Codes of links: the specialised walk of templates over pairs of words, with what else a parser sees of a link.

Keys are those of `isogloss.features`: what a template adds up as a head and as a child is summed once for each word
(`sides`). While learning, a variant of a code is in a table only together with bin 0: it is not looked for where that
is missing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import mix

__all__ = ["bin_of", "keys_of_link", "most_keys", "sides"]

PAD = 2
N_BINS = 7
MOST_BETWEEN = 16
MOST_MARKS = 4


@njit(cache=True, nogil=True)
def bin_of(head, child):
    """1 … 7 for children to the right by distance, 8 … 14 to the left."""
    far = child - head if child > head else head - child
    length = far if far <= 4 else 5 if far <= 7 else 6 if far <= 12 else 7
    return length if child > head else length + N_BINS


@njit(cache=True, nogil=True)
def sides(codes, first, n, starts, terms, factors, heads, children):
    """What each word adds to the codes of templates as a head and as a child: uint64[n + 1, n_templates] each."""
    for i in range(n + 1):
        for t in range(len(starts)):
            heads[i, t] = starts[t]
            children[i, t] = 0
        for k in range(len(terms)):
            value = codes[first + i + terms[k, 2], terms[k, 3]] * factors[k]
            if terms[k, 1] == 0:
                heads[i, terms[k, 0]] += value
            else:
                children[i, terms[k, 0]] += value


@njit(cache=True, nogil=True)
def _dynamic(p, c, first, n, words, dynamic, places, out, which, m):
    """Append what may fire more than once; the new number of codes."""
    codes, features, kinds, begins, opinions = words
    tag_p, tag_c = codes[first + p, 2], codes[first + c, 2]
    pair = tag_p * places[0] + tag_c * places[1]
    low, high = (p, c) if p < c else (c, p)
    begin, verbs, marks, joins = m, 0, 0, 0
    for b in range(low + 1, high):
        kind = kinds[first + b]
        verbs += kind == 1
        marks += kind == 2
        joins += kind == 3
        if m - begin < MOST_BETWEEN:
            code = mix(dynamic[0] + pair + codes[first + b, 4] * places[2])
            k = begin
            while k < m and out[k] != code:
                k += 1
            if k == m:
                out[m], which[m] = code, 0
                m += 1
    counts = np.uint64(min(verbs, 3) * 16 + min(marks, 3) * 4 + min(joins, 3) + 1)
    out[m], which[m] = mix(dynamic[1] + pair + counts * places[2]), 1
    m += 1
    for a in range(features.shape[1]):
        of_c, of_p = features[first + c, a], features[first + p, a]
        if of_c:
            out[m], which[m] = mix(dynamic[2] + pair + of_c * places[2]), 2
            out[m + 1] = mix(dynamic[6] + codes[first + p, 1] * places[0] + tag_c * places[1] + of_c * places[2])
            which[m + 1] = 6
            m += 2
        if of_p:
            out[m], which[m] = mix(dynamic[3] + pair + of_p * places[2]), 3
            m += 1
        if of_c and of_p:
            same = np.uint64(2 * a + (of_c == of_p) + 1)
            out[m], which[m] = mix(dynamic[4] + pair + same * places[2]), 4
            out[m + 1] = mix(dynamic[5] + pair + of_p * places[2] + of_c * places[3])
            which[m + 1] = 5
            m += 2
    if p == 0:
        place = np.uint64(min(c, 4) * 8 + min(n - c, 4) + 1)
        out[m], which[m] = mix(dynamic[7] + tag_c * places[0] + place * places[1]), 7
        m += 1
    for k in range(opinions.shape[1]):
        mark = np.uint64(opinions[begins[first + c] + p, k])
        if mark:
            mark += np.uint64(256 * k)
            out[m], which[m] = mix(dynamic[8] + mark * places[0]), 8
            out[m + 1], which[m + 1] = mix(dynamic[9] + pair + mark * places[2]), 9
            m += 2
    return m


@njit(cache=True, nogil=True)
def keys_of_link(p, c, first, n, words, heads, children, dynamic, places, out, which):
    """Codes of all templates that fire on the link from p to c; `which` numbers the dynamic ones. Returns how many."""
    n_templates = heads.shape[1]
    for t in range(n_templates):
        out[t] = mix(heads[p, t] + children[c, t])
    return _dynamic(p, c, first, n, words, dynamic, places, out, which, n_templates)


@njit(cache=True, nogil=True)
def most_keys(n_templates, n_attributes):
    """Codes that one link can have."""
    return n_templates + MOST_BETWEEN + 2 + 5 * n_attributes + 2 * MOST_MARKS
