"""Features of links: those of words alone, of parts of speech, and of one other attribute at both ends.

Templates are those of `isogloss.tasks.parse.joint.features`, keys and tables those of `isogloss.features`. What a link
adds to the sum of each template is found once (`see_link`), and what tags add comes in as they are tried.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import key_of, mix
from isogloss.features._numba.table import find, insert, room_for
from isogloss.structures._numba.lanes import prefetch

__all__ = ["collect", "list_cell", "list_words", "morph_keys", "most_fired", "pos_keys", "see_link", "word_keys",
           "workspace"]  # fmt: skip

MOST = 128
"""Features of one cell of a factor at most: 64 parts of speech may lie between two words."""
WORDS, TAGS, BETWEEN, TAGS_AND_WORDS, GOVERNMENT, AGREEMENT = range(6)
DIRECTION, SHAPE, HEAD_WORD, CHILD_WORD, HEAD_PREFIX, CHILD_PREFIX, HEAD_FIXED, CHILD_FIXED = 0, 1, 2, 3, 4, 5, 6, 9
N_SEEN = 12
SUMS, KEYS, REST = range(3)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def workspace(templates):
    """uint64[3, n]: sums of templates over what is seen of a link; keys; and what lies between.

    It is one array, and kernels below are handed arrays, not records: taking an array out of a record counts who holds
    it, which takes as long as a key.
    """
    return np.empty((3, max(MOST, len(templates.starts))), np.uint64)


@njit(cache=True, nogil=True)
def see_link(templates, sentence, head, child, work):
    """Find what the features of a link have in common whatever its tags are."""
    seen = np.empty(N_SEEN, np.uint64)
    length = abs(head - child)
    bin_ = length if length <= 4 else (5 if length <= 10 else 6)
    way = 1 if head < child else 2
    if head == 0:
        way = 3
        bin_ = 0
    seen[DIRECTION], seen[SHAPE] = way, way * 8 + bin_
    seen[HEAD_WORD], seen[CHILD_WORD] = sentence.words[head], sentence.words[child]
    seen[HEAD_PREFIX], seen[CHILD_PREFIX] = sentence.prefixes[head], sentence.prefixes[child]
    for k in range(3):
        seen[HEAD_FIXED + k] = sentence.context[head + k] + 1
        seen[CHILD_FIXED + k] = sentence.context[child + k] + 1
    work[REST, 0] = _between(sentence.context, head, child)
    _add_up(templates.starts, templates.begins, templates.terms, templates.factors, seen, work)


@njit(cache=True, nogil=True)
def _add_up(starts, begins, terms, factors, seen, work):
    for t in range(len(starts)):
        total = starts[t]
        for k in range(begins[t], begins[t + 1]):
            total += seen[terms[k]] * factors[k]
        work[SUMS, t] = total


@njit(cache=True, nogil=True)
def _between(context, head, child):
    """The fixed parts of speech strictly between two nodes, as the bits of a number."""
    found = np.uint64(0)
    for node in range(min(head, child) + 1, max(head, child)):
        found |= _ONE << np.uint64(min(max(context[node + 1], 0), 63))
    return found


@njit(cache=True, nogil=True)
def _put(families, tried, family, work, a, b, c, d, at):
    """Keys of the templates of a family from place `at` on, where these are tried; where the next would be."""
    a, b, c, d = np.uint64(a), np.uint64(b), np.uint64(c), np.uint64(d)
    for t in range(families[family], families[family + 1]):
        total = work[SUMS, t] + a * tried[t, 0] + b * tried[t, 1] + c * tried[t, 2] + d * tried[t, 3]
        work[KEYS, at] = key_of(mix(total), 0)
        at += 1
    return at


@njit(cache=True, nogil=True)
def word_keys(families, tried, work):
    """Keys of WORD-LINK; returns how many, and how many of them, the first, do not look at words."""
    return _put(families, tried, WORDS, work, 0, 0, 0, 0, 0), 1


@njit(cache=True, nogil=True)
def pos_keys(families, tried, p, q, work):
    """Keys of POS-LINK where the head is a `p` and the child a `q`; all other parts of speech are fixed."""
    count = _put(families, tried, TAGS, work, p, q, 0, 0, 0)
    rest, value = work[REST, 0], 0
    while rest:
        if rest & _ONE:
            count = _put(families, tried, BETWEEN, work, p, q, value, 0, count)
        rest >>= _ONE
        value += 1
    return _put(families, tried, TAGS_AND_WORDS, work, p, q, 0, 0, count), count


@njit(cache=True, nogil=True)
def morph_keys(families, tried, a, v, w, work):
    """Keys of MORPH-LINK for attribute `a` with value `v` at the head and `w` at the child.

    Neither is null, which is agreement, or that of the head is: then it governs the child.
    """
    if v == 0:
        return _put(families, tried, GOVERNMENT, work, a, v, w, 0, 0), 2
    count = _put(families, tried, AGREEMENT, work, a, v, w, 1 if v == w else 0, 0)
    return count, count


@njit(cache=True, nogil=True)
def _list_known(table, count, work, fired, at):
    """Put the numbers of the keys that are known into `fired` from place `at` on; where the next would be."""
    mask = np.uint64(len(table) // 2 - 1)
    for k in range(count):
        prefetch(table, np.int64(2) * np.int64(work[KEYS, k] & mask))
    for k in range(count):
        i = find(table, mask, work[KEYS, k])
        if i >= 0:
            fired[at] = table[2 * i + 1]
            at += 1
    return at


@njit(cache=True, nogil=True)
def list_words(table, families, tried, work, fired, at):
    """List the features of WORD-LINK that are known, by their numbers among those of links."""
    return _list_known(table, word_keys(families, tried, work)[0], work, fired, at)


@njit(cache=True, nogil=True)
def list_cell(table, families, tried, a, v, w, work, fired, at):
    """The same of POS-LINK (attribute 0) or MORPH-LINK with these values."""
    if a == 0:
        return _list_known(table, pos_keys(families, tried, v, w, work)[0], work, fired, at)
    return _list_known(table, morph_keys(families, tried, a, v, w, work)[0], work, fired, at)


@njit(cache=True, nogil=True)
def most_fired(families, a, far):
    """How many features fire at most on a cell of an attribute, or (-1) on words alone, of a link of this length."""
    if a < 0:
        return families[WORDS + 1] - families[WORDS]
    if a == 0:
        others = (families[BETWEEN + 1] - families[BETWEEN]) * min(far - 1, 64)
        return families[BETWEEN] - families[TAGS] + others + families[GOVERNMENT] - families[TAGS_AND_WORDS]
    return max(families[AGREEMENT] - families[GOVERNMENT], families[AGREEMENT + 1] - families[AGREEMENT])


@njit(cache=True, nogil=True)
def _insert_all(slots, counts, used, work, count):
    slots, counts = room_for(slots, counts, used, count)
    for k in range(count):
        used += insert(slots, counts, work[KEYS, k])
    return slots, counts, used


@njit(cache=True, nogil=True)
def collect(templates, sentence, n_attributes, reach, government, slots, counts, used):
    """Count the features of a sentence with its right values: all of right links, and of wrong ones those that look at
    no words.

    Features that look at words are also taken from wrong links up to the length `reach`. Returns the tables, and how
    many keys are in.
    """
    work, families, tried = workspace(templates), templates.families, templates.tried
    n = len(sentence.words) - 1
    for child in range(1, n + 1):
        for head in range(n + 1):
            if head == child:
                continue
            right = sentence.heads[child] == head or abs(head - child) <= reach
            see_link(templates, sentence, head, child, work)
            count, plain = word_keys(families, tried, work)
            slots, counts, used = _insert_all(slots, counts, used, work, count if right else plain)
            for a in range(n_attributes):
                x, y = head * n_attributes + a, child * n_attributes + a
                for i in range(sentence.starts[x], sentence.starts[x + 1]):
                    for j in range(sentence.starts[y], sentence.starts[y + 1]):
                        v, w = sentence.values[i], sentence.values[j]
                        true = i - sentence.starts[x] == sentence.gold[x] and j - sentence.starts[y] == sentence.gold[y]
                        if not true:
                            continue
                        if a == 0:
                            count, plain = pos_keys(families, tried, v, w, work)
                        elif w and (v or government):
                            count, plain = morph_keys(families, tried, a, v, w, work)
                        else:
                            continue
                        slots, counts, used = _insert_all(slots, counts, used, work, count if right else plain)
    return slots, counts, used
