"""Walking templates over parts: keys of one part at a time, which are counted, numbered, scored or given shares.

Nothing is listed but the keys of one part. What a word adds to the sums of templates is found once for each sentence
and role where the word belongs to several parts.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import key_of, mix
from isogloss.features._numba.table import insert, number_of, room_for
from isogloss.features.mixing import AFTER, BEFORE
from isogloss.structures._numba.lanes import prefetch

__all__ = ["count_keys", "emit_features", "list_keys", "number_features", "rooms_of", "score_parts"]

OFTEN = 2
"""Words that so many parts look at are worth a row of sums."""


@njit(cache=True, nogil=True)
def _add_word(view, role, word, sums, fires, at):
    """What a word adds, in a role, to the templates that look at it; and whether they may fire."""
    base, first = view.words[role], view.members[role]
    width = view.members[role + 1] - first
    for i in range(width):
        sums[at + i] = 0
        fires[at + i] = True
    low, high = view.first[base + word], view.last[base + word]
    for k in range(view.terms_of[role], view.terms_of[role + 1]):
        i, there = at + view.terms[k, 0], word + view.terms[k, 2]
        if there < low:
            code = np.int64(BEFORE)
        elif there >= high:
            code = np.int64(AFTER)
        else:
            code = view.codes[view.terms[k, 1] + there]
            if code < 0:
                fires[i] = False
                continue
        sums[i] += np.uint64(code) * view.factors[k]


@njit(cache=True, nogil=True)
def _uses(view, role, start, stop):
    """How often the parts look at words in a role, the first of these words, and how many there are to the last."""
    times, low, high = 0, np.int64(1) << 62, np.int64(-1)
    for p in range(start, stop):
        begin = view.at[role, p]
        end = view.until[role, p] if view.spans[role] else begin + 1
        if begin < 0 or begin >= end:
            continue
        times += end - begin
        low, high = min(low, begin), max(high, end)
    return times, low, max(high - low, 0)


@njit(cache=True, nogil=True)
def _prepare(view, start, stop):
    """Sums of the words that the parts of a sentence look at: where those of each role begin, or −1, and for whom."""
    n_roles = len(view.spans)
    places, lows = np.full(n_roles, -1, np.int64), np.zeros(n_roles, np.int64)
    sizes, room = np.zeros(n_roles, np.int64), 0
    for role in range(n_roles):
        times, lows[role], sizes[role] = _uses(view, role, start, stop)
        if times >= OFTEN * sizes[role]:
            places[role] = room
            room += sizes[role] * (view.members[role + 1] - view.members[role])
    sums, fires = np.empty(room, np.uint64), np.empty(room, np.bool_)
    for role in range(n_roles):
        if places[role] >= 0:
            width = view.members[role + 1] - view.members[role]
            for w in range(sizes[role]):
                _add_word(view, role, lows[role] + w, sums, fires, places[role] + w * width)
    return places, lows, sums, fires


@njit(cache=True, nogil=True)
def _workspace(view, start, stop):
    """Sums of one part, what one word adds, and room for the codes of any of the parts."""
    n, longest = len(view.starts), 0
    for role in range(len(view.spans)):
        if view.spans[role]:
            most = 0
            for p in range(start, stop):
                most = max(most, view.until[role, p] - view.at[role, p])
            longest += most * (view.members[role + 1] - view.members[role])
    return np.empty(n, np.uint64), np.empty(n, np.bool_), np.empty(n, np.uint64), np.empty(n, np.bool_), n + longest


@njit(cache=True, nogil=True)
def _row(view, role, word, ready, row, may):
    """Where what a word adds is: in the sums of the sentence, or in `row`, made now."""
    places, lows, sums, fires = ready
    if places[role] >= 0:
        return sums, fires, places[role] + (word - lows[role]) * (view.members[role + 1] - view.members[role])
    _add_word(view, role, word, row, may, 0)
    return row, may, 0


@njit(cache=True, nogil=True)
def _totals(view, p, ready, totals, fires, row, may):
    """Sums of all templates on a part, but for words of spans."""
    for t in range(len(totals)):
        totals[t] = view.starts[t]
        fires[t] = True
    for k in range(len(view.column_terms)):
        t, code = view.column_terms[k, 0], view.columns[view.column_terms[k, 1], p]
        if code < 0:
            fires[t] = False
        else:
            totals[t] += np.uint64(code) * view.column_factors[k]
    for role in range(len(view.spans)):
        if view.spans[role]:
            continue
        first, last, word = view.members[role], view.members[role + 1], view.at[role, p]
        if word < 0:
            for i in range(first, last):
                fires[view.templates[i]] = False
            continue
        sums, able, at = _row(view, role, word, ready, row, may)
        for i in range(last - first):
            t = view.templates[first + i]
            totals[t] += sums[at + i]
            fires[t] = fires[t] and able[at + i]


@njit(cache=True, nogil=True)
def _codes(view, p, ready, work, found):
    """Codes of all features of a part: of templates that look at no span, then of the words of spans. How many."""
    totals, fires, row, may, _ = work
    _totals(view, p, ready, totals, fires, row, may)
    m = 0
    for t in range(len(totals)):
        if fires[t] and not view.wide[t]:
            found[m] = mix(totals[t])
            m += 1
    for role in range(len(view.spans)):
        if not view.spans[role]:
            continue
        first, last = view.members[role], view.members[role + 1]
        for word in range(view.at[role, p], view.until[role, p]):
            sums, able, at = _row(view, role, word, ready, row, may)
            for i in range(last - first):
                t = view.templates[first + i]
                if fires[t] and able[at + i]:
                    found[m] = mix(totals[t] + sums[at + i])
                    m += 1
    return m


@njit(cache=True, nogil=True)
def _numbered(view, p, numbering, ready, work, found, numbers):
    """Numbers of the known features of a part, each code followed by its variant; how many."""
    m, bin_, known = _codes(view, p, ready, work, found), view.bins[p] if len(view.bins) else 0, 0
    if not numbering.bits:
        mask = np.uint64(len(numbering.slots) // 2 - 1)
        for i in range(m):
            prefetch(numbering.slots, np.int64(2) * np.int64(found[i] & mask))
    for i in range(m):
        for variant in range(2 if bin_ else 1):
            number = number_of(numbering, key_of(found[i], bin_ * variant))
            if number >= 0:
                numbers[known] = number
                known += 1
    return known


@njit(cache=True, nogil=True)
def _most(view, p):
    """Features that a part can have."""
    most = len(view.starts)
    for role in range(len(view.spans)):
        if view.spans[role]:
            width = view.members[role + 1] - view.members[role]
            most += max(0, view.until[role, p] - view.at[role, p]) * width
    return 2 * most if len(view.bins) else most


@njit(cache=True, nogil=True)
def list_keys(view, out):
    """uint64[n_parts, n_templates]: keys of templates that look at no span; 0 where they do not fire."""
    for s in range(len(view.offsets) - 1):
        start, stop = view.offsets[s], view.offsets[s + 1]
        ready = _prepare(view, start, stop)
        totals, fires, row, may, _ = _workspace(view, start, stop)
        for p in range(start, stop):
            _totals(view, p, ready, totals, fires, row, may)
            for t in range(len(totals)):
                out[p, t] = key_of(mix(totals[t]), 0) if fires[t] else np.uint64(0)


@njit(cache=True, nogil=True)
def count_keys(view, first, last, marked, slots, counts, used):
    """Count the keys of the parts of the sentences first … last - 1; the tables, and how many keys are in.

    marked : bool[n_parts] or bool[0]
        Which parts to count; empty for all.
    """
    for s in range(first, last):
        start, stop = view.offsets[s], view.offsets[s + 1]
        ready, work = _prepare(view, start, stop), _workspace(view, start, stop)
        found = np.empty(work[4], np.uint64)
        for p in range(start, stop):
            if len(marked) and not marked[p]:
                continue
            m, bin_ = _codes(view, p, ready, work, found), view.bins[p] if len(view.bins) else 0
            slots, counts = room_for(slots, counts, used, 2 * m)
            for i in range(m):
                prefetch(slots, np.int64(found[i] & np.uint64(len(slots) - 1)))
            for i in range(m):
                for variant in range(2 if bin_ else 1):
                    used += insert(slots, counts, key_of(found[i], bin_ * variant))
    return slots, counts, used


@njit(cache=True, nogil=True)
def rooms_of(view, sentences, places, values, least, rooms):
    """How many features the parts of each sentence have at most; with values, those above `least` in size alone."""
    for k in range(len(sentences)):
        start, stop = view.offsets[sentences[k]], view.offsets[sentences[k] + 1]
        rooms[k] = 0
        for p in range(start, stop):
            if len(values) == 0 or abs(values[places[k] + p - start]) > least:
                rooms[k] += _most(view, p)


@njit(cache=True, nogil=True)
def number_features(view, first, last, numbering, lengths, out):
    """List the features of the parts of the sentences first … last - 1, and how many each part has; how many in all."""
    begin, done = view.offsets[first], 0
    for s in range(first, last):
        start, stop = view.offsets[s], view.offsets[s + 1]
        ready, work = _prepare(view, start, stop), _workspace(view, start, stop)
        found, numbers = np.empty(work[4], np.uint64), np.empty(2 * work[4], np.int64)
        for p in range(start, stop):
            m = _numbered(view, p, numbering, ready, work, found, numbers)
            lengths[p - begin] = m
            for i in range(m):
                out[done + i] = numbers[i]
            done += m
    return done


@njit(cache=True, nogil=True)
def score_parts(block, blocks, view, sentences, places, numbering, weights, out):
    """The score of every part of some sentences; those of the k-th begin at ``places[k]``."""
    for k in range(block, len(sentences), blocks):
        start, stop = view.offsets[sentences[k]], view.offsets[sentences[k] + 1]
        ready, work = _prepare(view, start, stop), _workspace(view, start, stop)
        found, numbers = np.empty(work[4], np.uint64), np.empty(2 * work[4], np.int64)
        for p in range(start, stop):
            m = _numbered(view, p, numbering, ready, work, found, numbers)
            for i in range(m):
                prefetch(weights, numbers[i])
            total = 0.0
            for i in range(m):
                total += weights[numbers[i]]
            out[places[k] + p - start] = total


@njit(cache=True, nogil=True)
def emit_features(
    block, blocks, view, sentences, places, numbering, values, least, begins, ends, out_numbers, out_values
):  # fmt: skip
    """For every feature of a part with a value above `least` in size, the number of its weight and the value.

    Those of the k-th sentence begin at ``begins[k]`` and end before ``ends[k]``.
    """
    for k in range(block, len(sentences), blocks):
        start, stop = view.offsets[sentences[k]], view.offsets[sentences[k] + 1]
        ready, work = _prepare(view, start, stop), _workspace(view, start, stop)
        found, numbers = np.empty(work[4], np.uint64), np.empty(2 * work[4], np.int64)
        at = begins[k]
        for p in range(start, stop):
            value = values[places[k] + p - start]
            if not abs(value) > least:
                continue
            m = _numbered(view, p, numbering, ready, work, found, numbers)
            for i in range(m):
                out_numbers[at + i] = numbers[i]
                out_values[at + i] = value
            at += m
        ends[k] = at
