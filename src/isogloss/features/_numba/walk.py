"""Walking templates over parts: keys of a few parts at a time, which are counted, numbered, scored or given shares.

Nothing is listed but the keys of `CHUNK` parts. What a word adds to the sums of templates is found once for each
sentence and role where the word belongs to several parts. Arrays are taken out of a `View` once for each chunk: that
costs as much as some dozen features.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import key_of, mix
from isogloss.features._numba.table import insert, number_of, room_for
from isogloss.features.mixing import AFTER, BEFORE
from isogloss.structures._numba.lanes import prefetch

__all__ = ["count_keys", "emit_features", "list_keys", "number_features", "rooms_of", "score_parts"]

CHUNK = 32
OFTEN = 2
"""Words that so many parts look at are worth a row of sums."""


@njit(cache=True, nogil=True)
def _add_word(word, low, high, first, last, terms, factors, codes, width, sums, able, at):
    """What a word adds, in a role, to the templates that look at it; and whether they may fire.

    The terms of the role are first … last - 1, the word's sentence is low … high - 1.
    """
    for i in range(at, at + width):
        sums[i] = 0
        able[i] = True
    for k in range(first, last):
        i, there = at + terms[k, 0], word + terms[k, 2]
        if there < low:
            code = np.int64(BEFORE)
        elif there >= high:
            code = np.int64(AFTER)
        else:
            code = codes[terms[k, 1] + there]
            if code < 0:
                able[i] = False
                continue
        sums[i] += np.uint64(code) * factors[k]


@njit(cache=True, nogil=True)
def _uses(at, until, span, start, stop):
    """How often parts look at words in a role, the first of these words, how many there are to the last, and how many
    words the longest span has."""
    times, low, high, longest = 0, np.int64(1) << 62, np.int64(-1), np.int64(0)
    for p in range(start, stop):
        begin = at[p]
        end = until[p] if span else begin + 1
        if begin < 0 or begin >= end:
            continue
        times += end - begin
        low, high, longest = min(low, begin), max(high, end), max(longest, end - begin)
    return times, low, max(high - low, 0), longest


@njit(cache=True, nogil=True)
def _prepare(view, start, stop):
    """Sums of the words that the parts of a sentence look at.

    places : int64[n_roles]
        Where the sums of each role begin, or −1 where they are made when they are needed, at the end.
    lows : int64[n_roles]
        The words whose sums are the first.
    sums, able : uint64[room], bool[room]
    most : int
        Codes that a part can have.
    """
    members, spans, terms, factors, codes = view.members, view.spans, view.terms, view.factors, view.codes
    n_roles, room, most = len(spans), 0, len(view.starts)
    places, lows, sizes = np.full(n_roles, -1, np.int64), np.zeros(n_roles, np.int64), np.zeros(n_roles, np.int64)
    for role in range(n_roles):
        width = members[role + 1] - members[role]
        times, lows[role], sizes[role], longest = _uses(view.at[role], view.until[role], spans[role], start, stop)
        if times >= OFTEN * sizes[role]:
            places[role] = room
            room += sizes[role] * width
        if spans[role]:
            most += longest * width
    sums, able = np.empty(room + len(view.starts), np.uint64), np.empty(room + len(view.starts), np.bool_)
    for role in range(n_roles):
        if places[role] >= 0:
            width, base = members[role + 1] - members[role], view.words[role]
            for w in range(sizes[role]):
                word = lows[role] + w
                _add_word(
                    word, view.first[base + word], view.last[base + word], view.terms_of[role],
                    view.terms_of[role + 1], terms, factors, codes, width, sums, able, places[role] + w * width,
                )  # fmt: skip
    return places, lows, sums, able, most


@njit(cache=True, nogil=True)
def _codes(view, parts, count, ready, found, ends):
    """Codes of all features of some parts: of templates that look at no span, then of the words of spans.

    Those of the k-th part end before ``ends[k]``, where those of the next begin.
    """
    starts, wide, column_terms, column_factors = view.starts, view.wide, view.column_terms, view.column_factors
    terms_of, terms, factors, members, templates = view.terms_of, view.terms, view.factors, view.members, view.templates
    spans, words, first, last, codes = view.spans, view.words, view.first, view.last, view.codes
    at, until, columns = view.at, view.until, view.columns
    places, lows, sums, able, _ = ready
    n, spare, m = len(starts), len(sums) - len(starts), 0
    totals, fires = np.empty(n, np.uint64), np.empty(n, np.bool_)
    for k in range(count):
        p = parts[k]
        for t in range(n):
            totals[t] = starts[t]
            fires[t] = True
        for c in range(len(column_terms)):
            t, code = column_terms[c, 0], columns[column_terms[c, 1], p]
            if code < 0:
                fires[t] = False
            else:
                totals[t] += np.uint64(code) * column_factors[c]
        for role in range(len(spans)):
            if spans[role]:
                continue
            a, b, word = members[role], members[role + 1], at[role, p]
            if word < 0:
                for i in range(a, b):
                    fires[templates[i]] = False
                continue
            row = places[role] + (word - lows[role]) * (b - a)
            if places[role] < 0:
                row, own = spare, words[role] + word
                _add_word(word, first[own], last[own], terms_of[role], terms_of[role + 1], terms, factors, codes, b - a,
                          sums, able, row)  # fmt: skip
            for i in range(b - a):
                t = templates[a + i]
                totals[t] += sums[row + i]
                fires[t] = fires[t] and able[row + i]
        for t in range(n):
            if fires[t] and not wide[t]:
                found[m] = mix(totals[t])
                m += 1
        for role in range(len(spans)):
            if not spans[role]:
                continue
            a, b = members[role], members[role + 1]
            for word in range(at[role, p], until[role, p]):
                row = places[role] + (word - lows[role]) * (b - a)
                if places[role] < 0:
                    row, own = spare, words[role] + word
                    _add_word(word, first[own], last[own], terms_of[role], terms_of[role + 1], terms, factors, codes,
                              b - a, sums, able, row)  # fmt: skip
                for i in range(b - a):
                    t = templates[a + i]
                    if fires[t] and able[row + i]:
                        found[m] = mix(totals[t] + sums[row + i])
                        m += 1
        ends[k] = m


@njit(cache=True, nogil=True)
def _numbers(view, parts, count, numbering, ready, found, ends, numbers):
    """Numbers of the known features of some parts, each followed by that of its variant; `ends` as in `_codes`."""
    bits, slots, keys = numbering
    bins = view.bins
    _codes(view, parts, count, ready, found, ends)
    if not bits:
        mask = np.uint64(len(slots) // 2 - 1)
        for i in range(ends[count - 1]):
            prefetch(slots, np.int64(2) * np.int64(found[i] & mask))
    known, i = 0, 0
    for k in range(count):
        bin_ = bins[parts[k]] if len(bins) else 0
        while i < ends[k]:
            for variant in range(2 if bin_ else 1):
                number = number_of(bits, slots, keys, key_of(found[i], bin_ * variant))
                if number >= 0:
                    numbers[known] = number
                    known += 1
            i += 1
        ends[k] = known


@njit(cache=True, nogil=True)
def _choose(parts, begin, stop, values, shift, least):
    """The next parts from `begin` on with a value above `least` in size, a chunk at most; how many, and where to go on.

    The value of part p is ``values[p - shift]``; without values all parts are taken.
    """
    count = 0
    while begin < stop and count < CHUNK:
        if len(values) == 0 or abs(values[begin - shift]) > least:
            parts[count] = begin
            count += 1
        begin += 1
    return count, begin


@njit(cache=True, nogil=True)
def _room(most):
    """Parts of a chunk, their codes, where these end, and numbers."""
    return np.empty(CHUNK, np.int64), np.empty(CHUNK * most, np.uint64), np.empty(CHUNK, np.int64), np.empty(
        2 * CHUNK * most, np.int64
    )  # fmt: skip


@njit(cache=True, nogil=True)
def list_keys(view, out):
    """uint64[n_parts]: keys of one template that looks at no span; 0 where it does not fire."""
    nothing = np.zeros(0)
    for s in range(len(view.offsets) - 1):
        at, stop = view.offsets[s], view.offsets[s + 1]
        ready = _prepare(view, at, stop)
        parts, found, ends, _ = _room(ready[4])
        while at < stop:
            count, at = _choose(parts, at, stop, nothing, 0, 0.0)
            _codes(view, parts, count, ready, found, ends)
            for k in range(count):
                begin = ends[k - 1] if k else 0
                out[parts[k]] = key_of(found[begin], 0) if ends[k] > begin else np.uint64(0)


@njit(cache=True, nogil=True)
def count_keys(view, first, last, marked, slots, counts, used):
    """Count the keys of the parts of the sentences first … last - 1; the tables, and how many keys are in.

    marked : float64[n_parts] or float64[0]
        Parts with 0 are not counted; empty for all.
    """
    bins = view.bins
    for s in range(first, last):
        at, stop = view.offsets[s], view.offsets[s + 1]
        ready = _prepare(view, at, stop)
        parts, found, ends, _ = _room(ready[4])
        while at < stop:
            count, at = _choose(parts, at, stop, marked, 0, 0.0)
            if count == 0:
                break
            _codes(view, parts, count, ready, found, ends)
            slots, counts = room_for(slots, counts, used, 2 * ends[count - 1])
            mask = np.uint64(len(slots) - 1)
            for i in range(ends[count - 1]):
                prefetch(slots, np.int64(found[i] & mask))
            i = 0
            for k in range(count):
                bin_ = bins[parts[k]] if len(bins) else 0
                while i < ends[k]:
                    for variant in range(2 if bin_ else 1):
                        used += insert(slots, counts, key_of(found[i], bin_ * variant))
                    i += 1
    return slots, counts, used


@njit(cache=True, nogil=True)
def rooms_of(view, sentences, places, values, least, rooms):
    """How many features the parts of each sentence have at most; with values, those above `least` in size alone."""
    members, spans, at, until = view.members, view.spans, view.at, view.until
    times = 2 if len(view.bins) else 1
    for k in range(len(sentences)):
        start, stop = view.offsets[sentences[k]], view.offsets[sentences[k] + 1]
        rooms[k] = 0
        for p in range(start, stop):
            if len(values) == 0 or abs(values[places[k] + p - start]) > least:
                most = len(view.starts)
                for role in range(len(spans)):
                    if spans[role]:
                        most += max(0, until[role, p] - at[role, p]) * (members[role + 1] - members[role])
                rooms[k] += times * most


@njit(cache=True, nogil=True)
def number_features(view, first, last, numbering, lengths, out):
    """List the features of the parts of the sentences first … last - 1, and how many each part has; how many in all."""
    zero, done, nothing = view.offsets[first], 0, np.zeros(0)
    for s in range(first, last):
        at, stop = view.offsets[s], view.offsets[s + 1]
        ready = _prepare(view, at, stop)
        parts, found, ends, numbers = _room(ready[4])
        while at < stop:
            count, at = _choose(parts, at, stop, nothing, 0, 0.0)
            _numbers(view, parts, count, numbering, ready, found, ends, numbers)
            for k in range(count):
                lengths[parts[k] - zero] = ends[k] - (ends[k - 1] if k else 0)
            for i in range(ends[count - 1]):
                out[done + i] = numbers[i]
            done += ends[count - 1]
    return done


@njit(cache=True, nogil=True)
def score_parts(block, blocks, view, sentences, places, numbering, weights, out):
    """The score of every part of some sentences; those of the k-th begin at ``places[k]``."""
    nothing = np.zeros(0)
    for s in range(block, len(sentences), blocks):
        start, stop = view.offsets[sentences[s]], view.offsets[sentences[s] + 1]
        ready, at = _prepare(view, start, stop), start
        parts, found, ends, numbers = _room(ready[4])
        while at < stop:
            count, at = _choose(parts, at, stop, nothing, 0, 0.0)
            _numbers(view, parts, count, numbering, ready, found, ends, numbers)
            for i in range(ends[count - 1]):
                prefetch(weights, numbers[i])
            i = 0
            for k in range(count):
                total = 0.0
                while i < ends[k]:
                    total += weights[numbers[i]]
                    i += 1
                out[places[s] + parts[k] - start] = total


@njit(cache=True, nogil=True)
def emit_features(
    block, blocks, view, sentences, places, numbering, values, least, begins, ends_out, out_numbers, out_values
):  # fmt: skip
    """For every feature of a part with a value above `least` in size, the number of its weight and the value.

    Those of the k-th sentence begin at ``begins[k]`` and end before ``ends_out[k]``.
    """
    for s in range(block, len(sentences), blocks):
        start, stop = view.offsets[sentences[s]], view.offsets[sentences[s] + 1]
        ready, at, done = _prepare(view, start, stop), start, begins[s]
        parts, found, ends, numbers = _room(ready[4])
        while at < stop:
            count, at = _choose(parts, at, stop, values, start - places[s], least)
            if count == 0:
                break
            _numbers(view, parts, count, numbering, ready, found, ends, numbers)
            i = 0
            for k in range(count):
                value = values[places[s] + parts[k] - start]
                while i < ends[k]:
                    out_numbers[done + i] = numbers[i]
                    out_values[done + i] = value
                    i += 1
            done += i
        ends_out[s] = done
