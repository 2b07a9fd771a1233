"""Features of links: those of words alone, of parts of speech, and of one other attribute at both ends.

Templates are those of `isogloss.tasks.parse.joint.features`, keys and tables those of `isogloss.features`. What a link
looks like is laid out once (`see_link`), and tags are put in as they are tried.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import key_of, mix
from isogloss.features._numba.table import find, insert, room_for
from isogloss.structures._numba.lanes import prefetch

__all__ = ["collect", "morph_keys", "morph_places", "pos_keys", "pos_places", "see_link", "word_keys", "word_places",
           "workspace"]  # fmt: skip

MOST = 128
"""Features of one cell of a factor at most: 64 parts of speech may lie between two words."""
WORDS, TAGS, BETWEEN, TAGS_AND_WORDS, GOVERNMENT, AGREEMENT = range(6)
DIRECTION, SHAPE, HEAD_WORD, CHILD_WORD, HEAD_PREFIX, CHILD_PREFIX, HEAD_FIXED, CHILD_FIXED = 0, 1, 2, 3, 4, 5, 6, 9
HEAD_TAG, CHILD_TAG, PLACE_BETWEEN, ATTRIBUTE, HEAD_VALUE, CHILD_VALUE, AGREES = 12, 13, 14, 15, 16, 17, 18
N_SEEN = 19
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def workspace():
    """What is seen of a link, the parts of speech between, keys of features, and places of weights."""
    return np.empty(N_SEEN, np.uint64), np.empty(1, np.uint64), np.empty(MOST, np.uint64), np.empty(MOST, np.int64)


@njit(cache=True, nogil=True)
def see_link(sentence, head, child, work):
    """Lay out what all features of a link look at."""
    seen, between = work[0], work[1]
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
    between[0] = _between(sentence.context, head, child)


@njit(cache=True, nogil=True)
def _between(context, head, child):
    """The fixed parts of speech strictly between two nodes, as the bits of a number."""
    found = np.uint64(0)
    for node in range(min(head, child) + 1, max(head, child)):
        found |= _ONE << np.uint64(min(max(context[node + 1], 0), 63))
    return found


@njit(cache=True, nogil=True)
def _fill(first, last, starts, begins, terms, factors, seen, keys, at):
    for t in range(first, last):
        total = starts[t]
        for k in range(begins[t], begins[t + 1]):
            total += seen[terms[k]] * factors[k]
        keys[at] = key_of(mix(total), 0)
        at += 1
    return at


@njit(cache=True, nogil=True, inline="always")
def _put(templates, family, work, at):
    """Keys of the templates of a family from place `at` on; where the next would be."""
    families, starts, begins, terms, factors = templates
    return _fill(families[family], families[family + 1], starts, begins, terms, factors, work[0], work[2], at)


@njit(cache=True, nogil=True, inline="always")
def word_keys(templates, work):
    """Keys of WORD-LINK; returns how many, and how many of them, the first, do not look at words."""
    return _put(templates, WORDS, work, 0), 1


@njit(cache=True, nogil=True)
def pos_keys(templates, p, q, work):
    """Keys of POS-LINK where the head is a `p` and the child a `q`; all other parts of speech are fixed."""
    seen = work[0]
    seen[HEAD_TAG], seen[CHILD_TAG] = p, q
    count = _put(templates, TAGS, work, 0)
    rest, value = work[1][0], 0
    while rest:
        if rest & _ONE:
            seen[PLACE_BETWEEN] = value
            count = _put(templates, BETWEEN, work, count)
        rest >>= _ONE
        value += 1
    return _put(templates, TAGS_AND_WORDS, work, count), count


@njit(cache=True, nogil=True)
def morph_keys(templates, a, v, w, work):
    """Keys of MORPH-LINK for attribute `a` with value `v` at the head and `w` at the child.

    Neither is null, which is agreement, or that of the head is: then it governs the child.
    """
    seen = work[0]
    seen[ATTRIBUTE], seen[HEAD_VALUE], seen[CHILD_VALUE], seen[AGREES] = a, v, w, 1 if v == w else 0
    if v == 0:
        return _put(templates, GOVERNMENT, work, 0), 2
    count = _put(templates, AGREEMENT, work, 0)
    return count, count


@njit(cache=True, nogil=True)
def _places(table, keys, count, places):
    """Numbers of the keys that are known; returns how many."""
    mask, known = np.uint64(len(table) // 2 - 1), 0
    for k in range(count):
        prefetch(table, np.int64(2) * np.int64(keys[k] & mask))
    for k in range(count):
        i = find(table, mask, keys[k])
        if i >= 0:
            places[known] = table[2 * i + 1]
            known += 1
    return known


@njit(cache=True, nogil=True, inline="always")
def word_places(shape, work):
    """Places of the features of WORD-LINK that are known, among those of links; returns how many."""
    return _places(shape.table, work[2], word_keys(shape.templates, work)[0], work[3])


@njit(cache=True, nogil=True, inline="always")
def pos_places(shape, p, q, work):
    """The same of POS-LINK."""
    return _places(shape.table, work[2], pos_keys(shape.templates, p, q, work)[0], work[3])


@njit(cache=True, nogil=True, inline="always")
def morph_places(shape, a, v, w, work):
    """The same of MORPH-LINK."""
    return _places(shape.table, work[2], morph_keys(shape.templates, a, v, w, work)[0], work[3])


@njit(cache=True, nogil=True)
def _insert_all(slots, counts, used, keys, count):
    slots, counts = room_for(slots, counts, used, count)
    for k in range(count):
        used += insert(slots, counts, keys[k])
    return slots, counts, used


@njit(cache=True, nogil=True)
def collect(templates, sentence, n_attributes, reach, government, slots, counts, used):
    """Count the features of a sentence with its right values: all of right links, and of wrong ones those that look at
    no words.

    Features that look at words are also taken from wrong links up to the length `reach`. Returns the tables, and how
    many keys are in.
    """
    work = workspace()
    n = len(sentence.words) - 1
    for child in range(1, n + 1):
        for head in range(n + 1):
            if head == child:
                continue
            right = sentence.heads[child] == head or abs(head - child) <= reach
            see_link(sentence, head, child, work)
            count, plain = word_keys(templates, work)
            slots, counts, used = _insert_all(slots, counts, used, work[2], count if right else plain)
            for a in range(n_attributes):
                x, y = head * n_attributes + a, child * n_attributes + a
                for i in range(sentence.starts[x], sentence.starts[x + 1]):
                    for j in range(sentence.starts[y], sentence.starts[y + 1]):
                        v, w = sentence.values[i], sentence.values[j]
                        true = i - sentence.starts[x] == sentence.gold[x] and j - sentence.starts[y] == sentence.gold[y]
                        if not true:
                            continue
                        if a == 0:
                            count, plain = pos_keys(templates, v, w, work)
                        elif w and (v or government):
                            count, plain = morph_keys(templates, a, v, w, work)
                        else:
                            continue
                        slots, counts, used = _insert_all(slots, counts, used, work[2], count if right else plain)
    return slots, counts, used
