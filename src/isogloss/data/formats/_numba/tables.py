"""Tables of words, a row a line and a tab between columns: where every field stands, and how to put others in."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.data._numba.scan import _grow, _same

__all__ = [
    "BAD_EMPTY_NODE",
    "BAD_HEAD",
    "BAD_ID",
    "BAD_RANGE",
    "COLUMNS",
    "HEAD_OUTSIDE",
    "NO_FORM",
    "ORDER",
    "RANGE_OUTSIDE",
    "UNEVEN",
    "intern",
    "scan_table",
    "splice",
]

FINE, COLUMNS, BAD_ID, ORDER, BAD_RANGE, RANGE_OUTSIDE, BAD_EMPTY_NODE, NO_FORM, BAD_HEAD, HEAD_OUTSIDE, UNEVEN = range(
    11
)

_TAB, _LINE_FEED, _RETURN, _SPACE, _HASH, _DASH, _DOT, _UNDERSCORE = 9, 10, 13, 32, 35, 45, 46, 95
_EMPTY = -1


@njit(cache=True, nogil=True)
def _number(data, start, stop):
    """The number that starts there, and where it ends; an end equal to `start` says there is none."""
    value, at = 0, start
    while at < stop and at < start + 9 and 48 <= data[at] <= 57:
        value = value * 10 + data[at] - 48
        at += 1
    return value, at


@njit(cache=True, nogil=True)
def _count_rows(data):
    """Lines that are neither empty nor comments; an upper bound is enough."""
    rows = 0
    fresh = True
    for byte in data:
        if fresh and byte != _LINE_FEED and byte != _RETURN and byte != _HASH:
            rows += 1
        fresh = byte == _LINE_FEED
    return rows


@njit(cache=True, nogil=True)
def _outside(heads, first, stop):
    """The first word whose head is not in its sentence, or -1."""
    for word in range(first, stop):
        if heads[word] > stop - first:
            return word
    return -1


@njit(cache=True, nogil=True)
def scan_table(data, n_fields, exact, head_field, groups):
    """Find words and sentences.

    Parameters
    ----------
    data : uint8[n_bytes]
    n_fields : int
        Columns to find; a row has as many, or at least as many if not `exact`, and then all of a sentence alike.
    exact : bool
    head_field : int
        Which column, from 0, holds the head.
    groups : bool
        Whether there may be multiword tokens (``2-3``) and empty nodes (``2.1``).

    Returns
    -------
    problem : (int, int, int)
        One of the constants above, where the line starts, and a number that says more.
    rows : int64[n_words]
        Where the row of each word starts.
    fields : int32[n_words, n_fields + 1]
        Where its fields start, counted from the row; field k ends one byte before field k + 1 starts.
    heads : int32[n_words]
    offsets : int64[n_sentences + 1]
    blocks : int64[n_sentences + 1]
        Where the text of a sentence, comments before and empty line after it, starts.
    """
    most = _count_rows(data)
    rows = np.empty(most, np.int64)
    fields = np.empty((most, n_fields + 1), np.int32)
    heads = np.empty(most, np.int32)
    offsets = np.zeros(most + 1, np.int64)
    blocks = np.zeros(most + 1, np.int64)
    marks = np.empty(n_fields + 1, np.int32)
    words = sentences = first = 0
    range_end = range_line = width = 0
    problem = (FINE, 0, 0)
    at = 0
    while at <= data.size + 1:
        start = at  # beyond the end there is an empty line, so that the last sentence ends too
        blank = True
        n_found = 1
        marks[0] = 0
        comment = start < data.size and data[start] == _HASH
        while at < data.size and data[at] != _LINE_FEED:
            byte = data[at]
            if byte == _TAB:
                if n_found <= n_fields:
                    marks[n_found] = at + 1 - start
                n_found += 1
            elif byte != _SPACE and byte != _RETURN:
                blank = False
            at += 1
        stop = at
        if stop > start and data[stop - 1] == _RETURN:
            stop -= 1
        at += 1
        if comment:
            continue
        if blank:
            if words > first:
                wrong = _outside(heads, first, words)
                if wrong >= 0:
                    problem = (HEAD_OUTSIDE, rows[wrong], words - first)
                elif range_end > words - first:
                    problem = (RANGE_OUTSIDE, range_line, words - first)
                if problem[0] != FINE:
                    break
                sentences += 1
                offsets[sentences] = words
                blocks[sentences] = min(at, data.size)
            elif range_end > 0:
                problem = (RANGE_OUTSIDE, range_line, 0)
                break
            first, range_end, width = words, 0, 0
            continue
        if n_found != n_fields and (exact or n_found < n_fields):
            problem = (COLUMNS, start, n_found)
            break
        if width != 0 and n_found != width:
            problem = (UNEVEN, start, width)
            break
        width = n_found
        if n_found == n_fields:
            marks[n_fields] = stop + 1 - start
        known = words - first  # words of the sentence so far
        value, end = _number(data, start, stop)
        id_stop = start + marks[1] - 1
        if end == start:
            problem = (BAD_ID, start, known + 1)
            break
        if end < id_stop:
            second, last = _number(data, end + 1, id_stop)
            if not groups or last != id_stop or last == end + 1 or (data[end] != _DASH and data[end] != _DOT):
                problem = (BAD_ID, start, known + 1)
                break
            if data[end] == _DOT:
                if value != known:
                    problem = (BAD_EMPTY_NODE, start, known)
                    break
                continue
            if value != known + 1 or second < value or value <= range_end:
                problem = (BAD_RANGE, start, known + 1)
                break
            range_end, range_line = second, start
            continue
        if value != known + 1:
            problem = (ORDER, start, known + 1)
            break
        if marks[2] - marks[1] == 1:
            problem = (NO_FORM, start, 0)
            break
        head_start, head_stop = start + marks[head_field], start + marks[head_field + 1] - 1
        head, end = _number(data, head_start, head_stop)
        if head_stop - head_start == 1 and data[head_start] == _UNDERSCORE:
            head = -1
        elif end == head_start or end != head_stop:
            problem = (BAD_HEAD, start, 0)
            break
        rows[words] = start
        fields[words] = marks
        heads[words] = head
        words += 1
    if sentences:
        blocks[sentences] = data.size  # what follows the last sentence goes with it
    return (
        problem,
        rows[:words].copy(),
        fields[:words].copy(),
        heads[:words].copy(),
        offsets[: sentences + 1].copy(),
        blocks[: sentences + 1].copy(),
    )


@njit(cache=True, nogil=True)
def intern(data, rows, fields, field):
    """Number the different contents of a column in order of first appearance.

    Returns
    -------
    ids : int32[n_words]
    starts : int64[n_types]
    lengths : int32[n_types]
        Where in `data` each type stands first.
    """
    ids = np.empty(rows.size, np.int32)
    starts = np.empty(1024, np.int64)
    lengths = np.empty(1024, np.int32)
    hashes = np.empty(1024, np.uint64)
    slots = np.full(4096, _EMPTY, np.int32)
    n_types = 0
    for row in range(rows.size):
        start = rows[row] + fields[row, field]
        length = fields[row, field + 1] - 1 - fields[row, field]
        mixed = np.uint64(14695981039346656037)  # FNV-1a
        for at in range(start, start + length):
            mixed = (mixed ^ np.uint64(data[at])) * np.uint64(1099511628211)
        mixed ^= mixed >> np.uint64(32)
        mask = np.uint64(slots.size - 1)
        slot = mixed & mask
        while True:
            number = slots[slot]
            if number == _EMPTY:
                if n_types == starts.size:
                    starts = np.concatenate((starts, np.empty_like(starts)))
                    lengths = np.concatenate((lengths, np.empty_like(lengths)))
                    hashes = np.concatenate((hashes, np.empty_like(hashes)))
                number = n_types
                slots[slot] = number
                starts[number], lengths[number], hashes[number] = start, length, mixed
                n_types += 1
                if n_types * 2 > slots.size:
                    slots = _grow(slots, hashes, n_types)
                break
            if hashes[number] == mixed and lengths[number] == length and _same(data, starts[number], start, length):
                break
            slot = (slot + np.uint64(1)) & mask
        ids[row] = number
    return ids, starts[:n_types].copy(), lengths[:n_types].copy()


@njit(cache=True, nogil=True)
def _copy(out, end, data, start, stop):
    for at in range(start, stop):
        out[end] = data[at]
        end += 1
    return end


@njit(cache=True, nogil=True)
def splice(data, blocks, offsets, rows, fields, cuts, letters, starts, ids):
    """The text of sentences, with other contents in some columns.

    Parameters
    ----------
    data : uint8[n_bytes]
    blocks : int64[n_sentences, 2]
        Where the text of each sentence starts and stops.
    offsets, rows, fields : as `scan_table` gives them
    cuts : int64[n_cuts]
        Columns to replace, ascending.
    letters : uint8[.]
        The new contents one after the other; content k is ``letters[starts[k]:starts[k + 1]]``.
    starts : int64[n_contents + 1]
    ids : int64[n_cuts, n_words]
        Which content each word gets.

    Returns
    -------
    uint8[n]
    """
    n_sentences = offsets.size - 1
    size = 0
    for sentence in range(n_sentences):
        size += blocks[sentence, 1] - blocks[sentence, 0]
    for cut in range(cuts.size):
        for word in range(rows.size):
            size -= fields[word, cuts[cut] + 1] - 1 - fields[word, cuts[cut]]
            size += starts[ids[cut, word] + 1] - starts[ids[cut, word]]
    out = np.empty(size, np.uint8)
    end = 0
    for sentence in range(n_sentences):
        at = blocks[sentence, 0]
        for word in range(offsets[sentence], offsets[sentence + 1]):
            for cut in range(cuts.size):
                field = cuts[cut]
                end = _copy(out, end, data, at, rows[word] + fields[word, field])
                end = _copy(out, end, letters, starts[ids[cut, word]], starts[ids[cut, word] + 1])
                at = rows[word] + fields[word, field + 1] - 1
        end = _copy(out, end, data, at, blocks[sentence, 1])
    return out
