"""Features of links: those of words alone, of parts of speech, and of one other attribute at both ends."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.tasks.parse._numba.codes import mix

__all__ = ["MOST", "collect", "find", "insert", "insert_all", "morph_slots", "pos_between", "pos_slots", "word_slots"]

MOST = 128
"""Features of one cell of a factor at most: 64 parts of speech may lie between two words."""
_EMPTY = np.uint64(0)
_ONE = np.uint64(1)
_A, _B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_C, _D = np.uint64(0x165667B19E3779F9), np.uint64(0x27D4EB2F165667C5)
_T = np.uint64(0x85EBCA77C2B2AE63)


@njit(cache=True, nogil=True, inline="always")
def _code(template, a, b, c, d):
    """A code of four things under a template; never that of an empty place."""
    code = mix(mix(np.uint64(template) * _T + np.uint64(a) * _A) + mix(np.uint64(b) * _B + np.uint64(c) * _C)
               + np.uint64(d) * _D)  # fmt: skip
    return code if code != _EMPTY else _ONE


@njit(cache=True, nogil=True)
def find(keys, code):
    """The place of a code in the table, -1 if it has none."""
    mask = np.uint64(len(keys) - 1)
    at = code & mask
    while keys[at] != code:
        if keys[at] == _EMPTY:
            return -1
        at = (at + _ONE) & mask
    return np.int64(at)


@njit(cache=True, nogil=True)
def insert(keys, code):
    """Make a place for a code; whether it is new."""
    mask = np.uint64(len(keys) - 1)
    at = code & mask
    while keys[at] != code:
        if keys[at] == _EMPTY:
            keys[at] = code
            return True
        at = (at + _ONE) & mask
    return False


@njit(cache=True, nogil=True)
def _shape_of(head, child):
    """Direction, and direction with length: 1, 2, 3, 4, 5 to 10, more."""
    length = abs(head - child)
    bin_ = length if length <= 4 else (5 if length <= 10 else 6)
    way = 1 if head < child else 2
    if head == 0:
        way = 3
        bin_ = 0
    return np.uint64(way), np.uint64(way * 8 + bin_)


@njit(cache=True, nogil=True)
def word_codes(sentence, head, child, out):
    """Codes of WORD-LINK; returns how many, and how many of them do not look at words."""
    way, shape = _shape_of(head, child)
    hw, cw, hp, cp = sentence.words[head], sentence.words[child], sentence.prefixes[head], sentence.prefixes[child]
    out[0] = _code(1, shape, 0, 0, 0)
    out[1] = _code(2, hw, shape, 0, 0)
    out[2] = _code(3, cw, shape, 0, 0)
    out[3] = _code(4, hw, cw, way, 0)
    out[4] = _code(5, hp, shape, 0, 0)
    out[5] = _code(6, cp, shape, 0, 0)
    out[6] = _code(7, hp, cp, way, 0)
    out[7] = _code(8, hw, cp, way, 0)
    out[8] = _code(9, hp, cw, way, 0)
    return 9, 1


@njit(cache=True, nogil=True)
def pos_codes(sentence, head, child, p, q, between, out):
    """Codes of POS-LINK where the head is a `p` and the child a `q`; all other parts of speech are fixed.

    Returns how many, and how many of them, the first, do not look at words.
    """
    way, shape = _shape_of(head, child)
    hw, cw, hp, cp = sentence.words[head], sentence.words[child], sentence.prefixes[head], sentence.prefixes[child]
    context = sentence.context
    before_h, after_h = context[head] + 1, context[head + 2] + 1
    before_c, after_c = context[child] + 1, context[child + 2] + 1
    both = (p + 1) * 256 + q + 1
    out[0] = _code(20, p, shape, 0, 0)
    out[1] = _code(21, q, shape, 0, 0)
    out[2] = _code(22, both, shape, 0, 0)
    out[3] = _code(23, both, before_h, way, 0)
    out[4] = _code(24, both, after_h, way, 0)
    out[5] = _code(25, both, before_c, way, 0)
    out[6] = _code(26, both, after_c, way, 0)
    out[7] = _code(27, both, after_h, before_c, shape)
    out[8] = _code(28, both, before_h, before_c, shape)
    out[9] = _code(29, both, after_h, after_c, shape)
    out[10] = _code(30, both, before_h, after_c, shape)
    count, rest = 11, between
    value = 0
    while rest:
        if rest & _ONE:
            out[count] = _code(31, both, value, way, 0)
            count += 1
        rest >>= _ONE
        value += 1
    plain = count
    out[count] = _code(40, hw, p, shape, 0)
    out[count + 1] = _code(41, cw, q, shape, 0)
    out[count + 2] = _code(42, hw, cw, both, way)
    out[count + 3] = _code(43, cw, both, shape, 0)
    out[count + 4] = _code(44, hw, cw, q, way)
    out[count + 5] = _code(45, hw, both, shape, 0)
    out[count + 6] = _code(46, hw, cw, p, way)
    out[count + 7] = _code(47, hp, p, shape, 0)
    out[count + 8] = _code(48, cp, q, shape, 0)
    out[count + 9] = _code(49, hp, cp, both, way)
    out[count + 10] = _code(50, cp, both, shape, 0)
    out[count + 11] = _code(51, hp, both, shape, 0)
    return count + 12, plain


@njit(cache=True, nogil=True)
def morph_codes(sentence, head, child, a, v, w, out):
    """Codes of MORPH-LINK for attribute `a` with value `v` at the head and `w` at the child.

    Neither is null, which is agreement, or that of the head is: then it governs the child. Returns how many codes there
    are, and how many of them, the first, do not look at words.
    """
    way, shape = _shape_of(head, child)
    pair, agree = (a * 256 + v) * 256 + w, a * 2 + (1 if v == w else 0)
    fixed = (sentence.context[head + 1] + 1) * 256 + sentence.context[child + 1] + 1
    if v == 0:
        out[0] = _code(66, pair, shape, 0, 0)
        out[1] = _code(67, pair, fixed, way, 0)
        out[2] = _code(68, pair, sentence.words[head], way, 0)
        return 3, 2
    out[0] = _code(60, pair, 0, 0, 0)
    out[1] = _code(61, agree, 0, 0, 0)
    out[2] = _code(62, pair, shape, 0, 0)
    out[3] = _code(63, agree, shape, 0, 0)
    out[4] = _code(64, pair, fixed, way, 0)
    out[5] = _code(65, agree, fixed, shape, 0)
    return 6, 6


@njit(cache=True, nogil=True)
def _places(keys, codes, count, out):
    kept = 0
    for k in range(count):
        at = find(keys, codes[k])
        if at >= 0:
            out[kept] = at
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def word_slots(keys, sentence, head, child, codes, out):
    """Places of the features of WORD-LINK that are known; returns how many."""
    count, _ = word_codes(sentence, head, child, codes)
    return _places(keys, codes, count, out)


@njit(cache=True, nogil=True)
def pos_slots(keys, sentence, head, child, p, q, between, codes, out):
    """The same of POS-LINK."""
    count, _ = pos_codes(sentence, head, child, p, q, between, codes)
    return _places(keys, codes, count, out)


@njit(cache=True, nogil=True)
def morph_slots(keys, sentence, head, child, a, v, w, codes, out):
    """The same of MORPH-LINK."""
    count, _ = morph_codes(sentence, head, child, a, v, w, codes)
    return _places(keys, codes, count, out)


@njit(cache=True, nogil=True)
def pos_between(context, head, child):
    """The fixed parts of speech strictly between two nodes, as the bits of a number."""
    found = _EMPTY
    for node in range(min(head, child) + 1, max(head, child)):
        found |= _ONE << np.uint64(min(max(context[node + 1], 0), 63))
    return found


@njit(cache=True, nogil=True)
def insert_all(keys, codes, count):
    fresh = 0
    for k in range(count):
        fresh += insert(keys, codes[k])
    return fresh


@njit(cache=True, nogil=True)
def collect(keys, sentence, n_attributes, reach, government, room):
    """Make places for the features of a sentence with its right values: all of right links, and of wrong ones those
    that look at no words.

    Features that look at words are also taken from wrong links up to the length `reach`.
    Returns how many are new; where that is more than `room`, the work was left unfinished for want of it.
    """
    codes = np.empty(MOST, np.uint64)
    fresh = 0
    n = len(sentence.words) - 1
    for child in range(1, n + 1):
        for head in range(n + 1):
            if fresh > room:
                return fresh
            if head == child:
                continue
            right = sentence.heads[child] == head or abs(head - child) <= reach
            between = pos_between(sentence.context, head, child)
            count, plain = word_codes(sentence, head, child, codes)
            fresh += insert_all(keys, codes, count if right else plain)
            for a in range(n_attributes):
                x, y = head * n_attributes + a, child * n_attributes + a
                for i in range(sentence.starts[x], sentence.starts[x + 1]):
                    for j in range(sentence.starts[y], sentence.starts[y + 1]):
                        v, w = sentence.values[i], sentence.values[j]
                        true = i - sentence.starts[x] == sentence.gold[x] and j - sentence.starts[y] == sentence.gold[y]
                        if not true:
                            continue
                        if a == 0:
                            count, plain = pos_codes(sentence, head, child, v, w, between, codes)
                        elif w and (v or government):
                            count, plain = morph_codes(sentence, head, child, a, v, w, codes)
                        else:
                            continue
                        fresh += insert_all(keys, codes, count if right else plain)
    return fresh
