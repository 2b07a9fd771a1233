"""Derivations of the synthetic grammar: one sentence pair from one counter, whatever came before it.

Random numbers are SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014),
started from a hash of the seed and the number of the pair: pair 17 is the same in a text of 20 and of 20 million.

Functions are called from as few places as possible, since every call is inlined and compiled again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import GOLDEN, mix
from isogloss.samples import _grammar as g

_UNIT = 2.0**-53
_FAR = 2.0**46  # beyond this rank every stem of the tail is new

_TARGET = 1
_BOTH = 3  # bits: 1 the source, 2 the target

# Columns of the table of nodes.
_PARENT, _RELATION, _TAG, _SIDES, _ANCHOR, _NUMBER, _TENSE, _CASE, _TURNED, _WORD = range(10)  # _WORD + side
_COLUMNS = 11

# The properties of a concept: each a uniform number that a knob is compared with. Whether it has a synonym is 0 for the
# source and 1 for the target.
FERTILE, FERTILE_SIDE, COGNATE, SHIFTED = 2, 3, 4, 5

SECOND = 0.3  # how often the second of two synonyms is used
_DETERMINER = 0.6  # how often a noun comes with one
_PLURAL = 0.35

_NOUN, _VERB, _ADJ, _DET, _ADP, _PRON, _PUNCT = g.NOUN, g.VERB, g.ADJ, g.DET, g.ADP, g.PRON, g.PUNCT
_AUX, _PART, _OPEN, _VARIANTS, _SHIFT = g.AUX, g.PART, g.OPEN, g.VARIANTS, g.SHIFT
_ROOT, _NSUBJ, _OBJ, _ADVMOD, _DETR, _CASER = g.ROOT, g.NSUBJ, g.OBJ, g.ADVMOD, g.DETR, g.CASE
_CONJ, _PUNCTR, _COMPOUND, _PARTICLE, _AUXR, _DISCOURSE = (
    g.CONJ,
    g.PUNCTR,
    g.COMPOUND,
    g.PARTICLE,
    g.AUXR,
    g.DISCOURSE,
)
_OF_NOUNS, _OF_VERBS, _OF_OTHERS, _PARTICLES = (g.OPEN + row for row in range(g.OF_NOUNS, g.PARTICLES + 1))
_TAIL, _FREE, _FERTILITY, _NULL, _AMBIGUITY = g.TAIL, g.FREE, g.FERTILITY, g.NULL, g.AMBIGUITY
_SHORTEST, _LONGEST = g.SHORTEST, g.LONGEST


@njit(cache=True, nogil=True)
def _uniform(state):
    state[0] += GOLDEN
    return np.float64(mix(state[0]) >> np.uint64(11)) * _UNIT


@njit(cache=True, nogil=True)
def _property(key, concept, salt):
    return np.float64(mix(mix(np.uint64(concept) + key) + np.uint64(salt + 1) * GOLDEN) >> np.uint64(11)) * _UNIT


@njit(cache=True, nogil=True)
def properties(key, concepts, salt):
    """One uniform number for each concept: float64[n]."""
    out = np.empty(concepts.size)
    for k in range(concepts.size):
        out[k] = _property(key, concepts[k], salt)
    return out


@njit(cache=True, nogil=True)
def _draw(tables, row, state):
    """A word of a class: from its list, or for open classes a rank of the Pareto tail beyond it."""
    u = _uniform(state)
    low, high = 0, tables.counts[row, 0]
    end = high
    while low < high:
        middle = (low + high) // 2
        if tables.shares[row, middle] <= u:
            low = middle + 1
        else:
            high = middle
    if low < end:
        return low
    # quantile of the tail: (end + shift) (1 - u)^(-tail) - shift, in logarithms since it may not fit a float
    log_rank = np.log(end + _SHIFT) - tables.knobs[_TAIL] * np.log(1.0 - _uniform(state))
    if log_rank >= np.log(_FAR):
        return np.int64(_FAR * (1.0 + _uniform(state)))
    return np.int64(np.exp(log_rank) - _SHIFT)


@njit(cache=True, nogil=True)
def _add(nodes, sizes, parent, relation, tag, sides, anchor):
    """Append a node without words; `sizes` counts nodes, source words and target words."""
    node = nodes[sizes[0]]
    node[_PARENT], node[_RELATION], node[_TAG], node[_SIDES], node[_ANCHOR] = parent, relation, tag, sides, anchor
    sizes[0] += 1
    sizes[1] += sides & 1
    sizes[2] += sides >> 1
    return sizes[0] - 1


@njit(cache=True, nogil=True)
def _choose_words(nodes, sizes, tables, state, at, plain):
    """Words for a node of both sides, and the second word of concepts that take two."""
    tag = nodes[at, _TAG]
    drawn = _draw(tables, tag, state)
    if tag >= _OPEN:
        first, ambiguity = tables.counts[tag, 1], tables.knobs[_AMBIGUITY]
        nodes[at, _WORD] = -1 - (first + drawn)
        if tag == _PRON:
            nodes[at, _NUMBER] = drawn % 2
        if tag != _PUNCT and _uniform(state) < ambiguity:
            drawn = (drawn + 1) % tables.counts[tag, 0]  # now and then the translation is the neighbour in the list
        nodes[at, _WORD + 1] = -1 - (first + drawn)
        return
    concept = drawn * _OPEN + tag
    for side in range(2):
        synonym = _property(tables.key[1], concept, side) < tables.knobs[_AMBIGUITY] and _uniform(state) < SECOND
        nodes[at, _WORD + side] = concept * _VARIANTS + synonym
    if not plain and _property(tables.key[1], concept, FERTILE) < tables.knobs[_FERTILITY]:
        side = int(_property(tables.key[1], concept, FERTILE_SIDE) < 0.5)
        verb = tag == _VERB
        extra = _add(nodes, sizes, at, _PARTICLE if verb else _COMPOUND, _PART if verb else tag, 1 << side, at)
        particle = -1 - (tables.counts[_PARTICLES, 1] + drawn % tables.counts[_PARTICLES, 0])
        nodes[extra, _WORD + side] = particle if verb else concept * _VARIANTS + 2


@njit(cache=True, nogil=True)
def _add_nulls(nodes, sizes, tables, state, head):
    """Words that have no counterpart: articles in the source, case markers in the target, auxiliaries in both."""
    for side in range(2):
        if _uniform(state) >= tables.knobs[_NULL]:
            continue
        row, relation, tag = _OF_OTHERS, _DISCOURSE, _PART
        if nodes[head, _TAG] == _NOUN:
            row, relation, tag = _OF_NOUNS, _DETR if side == 0 else _CASER, _DET if side == 0 else _ADP
        elif nodes[head, _TAG] == _VERB:
            row, relation, tag = _OF_VERBS, _AUXR, _AUX
        at = _add(nodes, sizes, head, relation, tag, 1 << side, -1)
        nodes[at, _WORD + side] = -1 - (tables.counts[row, 1] + _draw(tables, row, state))


@njit(cache=True, nogil=True)
def _add_unit(nodes, sizes, tables, state, parent, relation, plain):
    """The dependent that a relation asks for, with its function word and perhaps a determiner."""
    unit = tables.units[relation]
    at = sizes[0]
    for part in range(3):
        if part == 0:
            tag = int(unit[0])
            if _uniform(state) < unit[1]:
                tag = _PRON
            head, its_relation, its_tag = parent, relation, tag
        elif part == 1:
            if tag == _PRON or unit[2] < 0:
                continue
            head, its_relation, its_tag = at, int(unit[2]), int(unit[3])
        else:
            if tag != _NOUN or _uniform(state) >= _DETERMINER:
                continue
            head, its_relation, its_tag = at, _DETR, _DET
        new = _add(nodes, sizes, head, its_relation, its_tag, _BOTH, -1)
        _choose_words(nodes, sizes, tables, state, new, plain)
        if not plain:
            content = its_tag < _OPEN or its_tag == _PRON or head < 0
            _add_nulls(nodes, sizes, tables, state, new if content else head)


@njit(cache=True, nogil=True)
def _draw_rule(nodes, sizes, tables, state):
    """A head and one of its rules; the relation is -1 when the head has none left."""
    head = int(_uniform(state) * sizes[0])
    tag = nodes[head, _TAG]
    if tag >= _OPEN or nodes[head, _SIDES] != _BOTH:
        return head, -1
    u = _uniform(state)
    for k in range(tables.rules.shape[1]):
        if u < tables.rules[tag, k, 1]:
            relation = int(tables.rules[tag, k, 0])
            used = 0
            for child in range(head + 1, sizes[0]):
                same = nodes[child, _PARENT] == head and nodes[child, _RELATION] == relation
                used += same and nodes[child, _SIDES] == _BOTH  # one-sided words do not use a rule up
            return head, relation if used < tables.rules[tag, k, 2] else -1
    return head, -1


@njit(cache=True, nogil=True)
def _grow(nodes, sizes, tables, state):
    """A tree for both sides, words from the head outwards, until the longer side has the drawn length.

    What does not fit is taken back. To fit is to leave room for plain words (adverbs with one translation) that can
    bring the shorter side up to the least length, so that the loop always ends within the lengths.
    """
    shortest, longest = int(tables.knobs[_SHORTEST]), int(tables.knobs[_LONGEST])
    goal = shortest + int((longest - shortest + 1) * (_uniform(state) + _uniform(state)) / 2)
    sizes[:] = 0
    step = failures = 0
    while step < 3 or max(sizes[1], sizes[2]) < goal or min(sizes[1], sizes[2]) < shortest:
        parent, relation, plain = 0, _ADVMOD, True
        if step == 0:
            parent, relation, plain = -1, _ROOT, failures > 0
        elif step == 1:
            relation = _PUNCTR if goal >= 4 else -1
        elif step == 2:
            relation, plain = _NSUBJ, False
        elif failures < 30:
            parent, relation = _draw_rule(nodes, sizes, tables, state)
            plain = False
        fits = False
        if relation >= 0:
            before, source, target = sizes[0], sizes[1], sizes[2]
            _add_unit(nodes, sizes, tables, state, parent, relation, plain)
            more, less = max(sizes[1], sizes[2]), min(sizes[1], sizes[2])
            fits = more <= longest and longest - more >= shortest - less
            if not fits:
                sizes[0], sizes[1], sizes[2] = before, source, target
        step += fits or step in (1, 2)
        failures = 0 if fits else failures + 1


@njit(cache=True, nogil=True)
def _inflect(nodes, n, tables, state):
    """Number, tense and case; verbs take the number of their subject, adjectives of their noun."""
    for at in range(n):
        node = nodes[at]
        relation, parent, tag = node[_RELATION], node[_PARENT], node[_TAG]
        node[_TURNED] = relation != _PUNCTR and _uniform(state) < tables.knobs[_FREE]
        node[_TENSE] = int(_uniform(state) * 3)
        plural = _uniform(state) < _PLURAL
        if tag == _NOUN:
            node[_NUMBER] = plural
        elif tag == _VERB:
            node[_NUMBER] = 0
        elif tag == _ADJ:
            node[_NUMBER] = nodes[parent, _NUMBER]
        node[_CASE] = 0 if relation == _NSUBJ else 1 if relation == _OBJ else 2
        if relation == _CONJ:
            node[_CASE] = nodes[parent, _CASE]
        elif relation == _NSUBJ:
            nodes[parent, _NUMBER] = node[_NUMBER]


@njit(cache=True, nogil=True)
def _place(nodes, n, tables, side, position, work):
    """Positions of the words of one side: within the span of each head, dependents by side and distance."""
    span, start, left, far = work[0], work[1], work[2], work[3]
    span[:n] = 0
    for at in range(n - 1, -1, -1):
        if not nodes[at, _SIDES] >> side & 1:
            left[at] = -1
            continue
        span[at] += 1
        relation = nodes[at, _RELATION]
        left[at] = tables.relations[relation, side] ^ (nodes[at, _TURNED] if side == _TARGET else 0)
        far[at] = tables.relations[relation, 2] * n + at
        if nodes[at, _PARENT] >= 0:
            span[nodes[at, _PARENT]] += span[at]
    start[0] = 0
    for at in range(n):
        position[at] = start[at]
        for a in range(at + 1, n):
            if nodes[a, _PARENT] == at and left[a] == 1:
                position[at] += span[a]
        for a in range(at + 1, n):
            if nodes[a, _PARENT] != at or left[a] < 0:
                continue
            start[a] = start[at] if left[a] else position[at] + 1
            for b in range(at + 1, n):
                if nodes[b, _PARENT] == at and left[b] == left[a] and b != a and (far[b] > far[a]) == left[a]:
                    start[a] += span[b]


@njit(cache=True, nogil=True)
def _write_side(nodes, n, side, position, at, codes, heads, tags, relations):
    for node in range(n):
        if nodes[node, _SIDES] >> side & 1:
            tag, where, word = nodes[node, _TAG], at + position[node], nodes[node, _WORD + side]
            feature = 0
            if word >= 0 and word % _VARIANTS != 2:  # the second of two words does not inflect
                rest = nodes[node, _CASE] if tag == _NOUN else nodes[node, _TENSE] if tag == _VERB else 0
                feature = nodes[node, _NUMBER] + 2 * rest
            codes[where] = word * 8 + feature
            heads[where] = 0 if nodes[node, _PARENT] < 0 else position[nodes[node, _PARENT]] + 1
            tags[where] = tag
            relations[where] = nodes[node, _RELATION]


@njit(cache=True, nogil=True)
def _write_links(nodes, n, position, at, source, target):
    """Links by source, then target; returns where the next pair begins."""
    first = at
    for node in range(n):
        sides = nodes[node, _SIDES]
        anchor = node if sides == _BOTH else nodes[node, _ANCHOR]
        if anchor < 0:
            continue
        i = position[0, node if sides & 1 else anchor]
        j = position[1, node if sides & 2 else anchor]
        k = at
        while k > first and (source[k - 1] > i or (source[k - 1] == i and target[k - 1] > j)):
            source[k], target[k] = source[k - 1], target[k - 1]
            k -= 1
        source[k], target[k] = i, j
        at += 1
    return at


@njit(cache=True, nogil=True)
def derive(tables, start, stop):
    """Pairs start..stop-1.

    Returns
    -------
    lengths : int64[3, n_pairs]
        Source words, target words and links of each pair.
    codes : int64[2, .], heads : int32[2, .], tags, relations : int8[2, .]
        By side, all pairs one after the other; the rows are longer than what is used.
    links : int32[2, .]
        Source and target position of each link.
    """
    count, longest = stop - start, int(tables.knobs[_LONGEST])
    most = count * longest
    lengths = np.zeros((3, count), np.int64)
    codes, heads = np.empty((2, most), np.int64), np.empty((2, most), np.int32)
    tags, relations = np.empty((2, most), np.int8), np.empty((2, most), np.int8)
    links = np.empty((2, 2 * most), np.int32)
    # a unit that does not fit is taken back: leave room for the largest, 3 words with a second and two null words each
    nodes = np.zeros((2 * longest + 16, _COLUMNS), np.int64)
    position = np.zeros((2, nodes.shape[0]), np.int64)
    work = np.zeros((4, nodes.shape[0]), np.int64)
    sizes, at = np.zeros(3, np.int64), np.zeros(3, np.int64)
    state = np.empty(1, np.uint64)
    for pair in range(count):
        state[0] = mix(tables.key[0] + np.uint64(start + pair) * GOLDEN)
        _grow(nodes, sizes, tables, state)
        n = sizes[0]
        _inflect(nodes, n, tables, state)
        for side in range(2):
            _place(nodes, n, tables, side, position[side], work)
            _write_side(nodes, n, side, position[side], at[side], codes[side], heads[side], tags[side], relations[side])
            lengths[side, pair] = sizes[1 + side]
        lengths[2, pair] = _write_links(nodes, n, position, at[2], links[0], links[1]) - at[2]
        at += lengths[:, pair]
    return lengths, codes, heads, tags, relations, links
