"""Links as bytes: parsers and a printer that look at every character once.

A parser returns arrays of links and, when it meets something it cannot read, a code from `FAULTS` and the byte where
the bad token starts; the caller finds the line and puts it into words.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NOT_A_LINK, NEGATIVE, TOO_LARGE, NOT_A_SCORE, NOT_A_NUMBER, NOT_S_OR_P = 1, 2, 3, 4, 5, 6
NO_RECORD, NO_OPENING, NO_CLOSING, SENTENCE_0 = 7, 8, 9, 10
FAULTS = {
    NOT_A_LINK: "is not a link",
    NEGATIVE: "has a negative index",
    TOO_LARGE: "has an index that is too large",
    NOT_A_SCORE: "has no number for a score",
    NOT_A_NUMBER: "is not a word number",
    NOT_S_OR_P: "is neither S nor P",
    NO_RECORD: "does not start a record",
    NO_OPENING: "stands where '({' should be",
    NO_CLOSING: "stands where '})' should be",
    SENTENCE_0: "is sentence 0",
}

_NEWLINE, _SPACE, _MINUS, _COLON, _DOT, _PLUS = 10, 32, 45, 58, 46, 43
_LARGEST = 1_000_000_000
_OPEN, _CLOSE, _BRACE_OPEN, _BRACE_CLOSE, _HASH = 40, 41, 123, 125, 35


@njit(cache=True, nogil=True)
def _is_space(byte):
    return byte == _SPACE or 9 <= byte <= 13


@njit(cache=True, nogil=True)
def _is_digit(byte):
    return 48 <= byte <= 57


@njit(cache=True, nogil=True)
def _token_end(data, at):
    while at < data.size and not _is_space(data[at]):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _gap_end(data, at):
    """Past the white space, but not past the end of the line."""
    while at < data.size and data[at] != _NEWLINE and _is_space(data[at]):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _line_end(data, at):
    while at < data.size and data[at] != _NEWLINE:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _index(data, at, stop):
    """A whole number: (value, where it ends); the value is minus a fault when there is none."""
    if at < stop and data[at] == _MINUS and at + 1 < stop and _is_digit(data[at + 1]):
        return -NEGATIVE, at
    value, start = 0, at
    while at < stop and _is_digit(data[at]):
        value = value * 10 + (data[at] - 48)
        if value > _LARGEST:
            return -TOO_LARGE, at
        at += 1
    if at == start:
        return -NOT_A_NUMBER, at
    return value, at


@njit(cache=True, nogil=True)
def _score(data, at, stop):
    """A decimal number that fills at..stop: (value, whether it is one)."""
    sign = 1.0
    if at < stop and (data[at] == _MINUS or data[at] == _PLUS):
        sign = -1.0 if data[at] == _MINUS else 1.0
        at += 1
    digits, exponent, n_digits = 0.0, 0, 0
    seen_dot = False
    while at < stop and (_is_digit(data[at]) or (data[at] == _DOT and not seen_dot)):
        if data[at] == _DOT:
            seen_dot = True
        else:
            n_digits += 1
            if digits < 1e17:  # further digits cannot change a float
                digits = digits * 10 + (data[at] - 48)
                exponent -= seen_dot
            else:
                exponent += not seen_dot
        at += 1
    if n_digits == 0:
        return 0.0, False
    if at < stop and (data[at] == 101 or data[at] == 69):  # e, E
        at += 1
        down = at < stop and data[at] == _MINUS
        if at < stop and (data[at] == _MINUS or data[at] == _PLUS):
            at += 1
        power, start = 0, at
        while at < stop and _is_digit(data[at]):
            power = min(power * 10 + (data[at] - 48), 9999)
            at += 1
        if at == start:
            return 0.0, False
        exponent += -power if down else power
    if exponent < 0:  # dividing by an exact power of ten rounds once
        value = digits / 10.0 ** min(-exponent, 22) / 10.0 ** max(-exponent - 22, 0)
    else:
        value = digits * 10.0**exponent
    return sign * value, at == stop


@njit(cache=True, nogil=True)
def _count(data):
    """Tokens and lines; a last line without a newline counts."""
    n_tokens = n_lines = 0
    inside = False
    for byte in data:
        if _is_space(byte):
            inside = False
            n_lines += byte == _NEWLINE
        elif not inside:
            inside = True
            n_tokens += 1
    if data.size > 0 and data[-1] != _NEWLINE:
        n_lines += 1
    return n_tokens, n_lines


@njit(cache=True, nogil=True)
def parse_pharaoh(data):
    """Lines of ``i-j``, ``ipj``, ``i-j:p`` and ``ipj:p``.

    Returns
    -------
    offsets : int64[n_lines + 1]
    source, target : int32[n_links]
    probability : float32[n_links]
        Not a number where none was written.
    possible : bool[n_links]
    some_scores, some_possible : bool
    fault, place : int
        0 when all is well.
    """
    n_tokens, n_lines = _count(data)
    offsets = np.zeros(n_lines + 1, np.int64)
    source, target = np.empty(n_tokens, np.int32), np.empty(n_tokens, np.int32)
    probability, possible = np.full(n_tokens, np.nan, np.float32), np.zeros(n_tokens, np.bool_)
    some_scores = some_possible = False
    fault = at = line = link = 0
    while at < data.size:
        if _is_space(data[at]):
            if data[at] == _NEWLINE:
                line += 1
                offsets[line] = link
            at += 1
            continue
        stop = _token_end(data, at)
        i, middle = _index(data, at, stop)
        if i < 0:
            fault = NOT_A_LINK if i == -NOT_A_NUMBER else -i
            break
        unsure = middle < stop and (data[middle] == 112 or data[middle] == 80)  # p, P
        if middle >= stop or not (unsure or data[middle] == _MINUS):
            fault = NOT_A_LINK
            break
        j, end = _index(data, middle + 1, stop)
        if j < 0:
            fault = NOT_A_LINK if j == -NOT_A_NUMBER else -j
            break
        if end < stop:
            if data[end] != _COLON:
                fault = NOT_A_LINK
                break
            value, good = _score(data, end + 1, stop)
            if not good:
                fault = NOT_A_SCORE
                break
            probability[link] = value
            some_scores = True
        source[link], target[link], possible[link] = i, j, unsure
        some_possible |= unsure
        link += 1
        at = stop
    if line < n_lines:
        offsets[n_lines] = link
    return (
        offsets,
        source[:link],
        target[:link],
        probability[:link],
        possible[:link],
        some_scores,
        some_possible,
        fault,
        at,
    )


@njit(cache=True, nogil=True)
def parse_naacl(data):
    """Lines of ``sentence source target [S|P] [score]``.

    Returns
    -------
    sentence, source, target : int32[n_links]
        As written, from 1; 0 in source or target is the null word.
    probability, possible, some_scores, some_possible, fault, place
        As in `parse_pharaoh`.
    """
    _, n_lines = _count(data)
    numbers = np.empty((n_lines, 3), np.int32)
    probability, possible = np.full(n_lines, np.nan, np.float32), np.zeros(n_lines, np.bool_)
    some_scores = some_possible = False
    fault = at = link = 0
    while at < data.size:
        at = _gap_end(data, at)
        if at < data.size and data[at] == _NEWLINE:
            at += 1
            continue
        if at == data.size:
            break
        for k in range(3):
            stop = _token_end(data, at)
            value, end = _index(data, at, stop)
            if value < 0 or end < stop:
                fault = NOT_A_NUMBER if value >= 0 else -value
                break
            if k == 0 and value == 0:
                fault = SENTENCE_0
                break
            numbers[link, k] = value
            at = _gap_end(data, stop)
        if fault > 0:
            break
        stop = _token_end(data, at)
        if stop - at == 1 and (data[at] == 83 or data[at] == 80):  # S, P
            possible[link] = data[at] == 80
            some_possible |= data[at] == 80
            at = _gap_end(data, stop)
            stop = _token_end(data, at)
        if stop > at:
            value, good = _score(data, at, stop)
            if not good:
                fault = NOT_S_OR_P if stop - at == 1 else NOT_A_SCORE
                break
            probability[link] = value
            some_scores = True
            at = _gap_end(data, stop)
        if at < data.size and data[at] != _NEWLINE:
            fault = NOT_A_SCORE
            break
        link += 1
    sentence, source, target = numbers[:link, 0].copy(), numbers[:link, 1].copy(), numbers[:link, 2].copy()
    return sentence, source, target, probability[:link], possible[:link], some_scores, some_possible, fault, at


@njit(cache=True, nogil=True)
def _is_pair(data, at, first, second):
    """Whether the token at `at` is just these two characters."""
    return (
        at + 1 < data.size
        and data[at] == first
        and data[at + 1] == second
        and (at + 2 == data.size or _is_space(data[at + 2]))
    )


@njit(cache=True, nogil=True)
def parse_giza(data):
    """Records of three lines: ``# Sentence pair (n) ...``, the words, and ``NULL ({ 2 }) word ({ 1 3 }) ...``.

    Returns
    -------
    sentence, outer, inner : int32[n_links]
        From 1: the sentence, the word of the third line (null left out), the word of the second line.
    last : int
        The highest sentence number, linked or not.
    fault, place : int
    """
    n_tokens, _ = _count(data)
    sentence, outer, inner = np.empty(n_tokens, np.int32), np.empty(n_tokens, np.int32), np.empty(n_tokens, np.int32)
    fault = at = link = last = 0
    while at < data.size and fault == 0:
        at = _gap_end(data, at)
        if at < data.size and data[at] == _NEWLINE:
            at += 1
            continue
        if at == data.size:
            break
        end = _line_end(data, at)
        number = at
        while number < end and data[number] != _OPEN:
            number += 1
        value, stop = _index(data, number + 1, end)
        if data[at] != _HASH or value < 0 or stop == end or data[stop] != _CLOSE:
            fault = NO_RECORD
            break
        if value == 0:
            fault = SENTENCE_0
            break
        last = max(last, value)
        at = _gap_end(data, min(_line_end(data, min(end + 1, data.size)) + 1, data.size))  # past the second line
        word = -1
        while at < data.size and data[at] != _NEWLINE:
            word += 1
            at = _gap_end(data, _token_end(data, at))
            if not _is_pair(data, at, _OPEN, _BRACE_OPEN):
                fault = NO_OPENING
                break
            at = _gap_end(data, at + 2)
            while at < data.size and data[at] != _NEWLINE and not _is_pair(data, at, _BRACE_CLOSE, _CLOSE):
                stop = _token_end(data, at)
                position, end = _index(data, at, stop)
                if position < 1 or end < stop:
                    fault = -position if position < 0 else NOT_A_NUMBER
                    break
                if word > 0:
                    sentence[link], outer[link], inner[link] = value, word, position
                    link += 1
                at = _gap_end(data, stop)
            if fault > 0:
                break
            if at == data.size or data[at] == _NEWLINE:
                fault = NO_CLOSING
                break
            at = _gap_end(data, at + 2)
    return sentence[:link], outer[:link], inner[:link], last, fault, at


@njit(cache=True, nogil=True)
def _sort(keys, order):
    """Shell sort of the keys, equal ones by `order`, both in place: rows are short and nearly sorted.

    `np.argsort` would do, and takes seconds to compile.
    """
    gap = 1
    while gap < keys.size // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, keys.size):
            key, place, at = keys[k], order[k], k
            while at >= gap and (keys[at - gap] > key or (keys[at - gap] == key and order[at - gap] > place)):
                keys[at], order[at] = keys[at - gap], order[at - gap]
                at -= gap
            keys[at], order[at] = key, place
        gap //= 3


@njit(cache=True, nogil=True)
def put_in_order(offsets, source, target, probability, possible):
    """Order each row by source, then target, in place, and drop repetitions: sure beats possible, then the first wins.

    Returns the new offsets; links are moved to the front of the arrays.
    """
    kept = np.zeros_like(offsets)
    end = 0
    for row in range(offsets.size - 1):
        first, last = offsets[row], offsets[row + 1]
        keys = np.empty(last - first, np.int64)
        for k in range(first, last):
            keys[k - first] = (np.int64(source[k]) << 32) | (np.int64(target[k]) << 1) | np.int64(possible[k])
        order = np.arange(keys.size)
        _sort(keys, order)
        chances = probability[first:last].copy()
        for k in range(order.size):
            key = keys[k]
            if k > 0 and key >> 1 == keys[k - 1] >> 1:
                continue
            source[end], target[end] = key >> 32, (key >> 1) & 0x7FFFFFFF
            possible[end], probability[end] = (key & 1) == 1, chances[order[k]]
            end += 1
        kept[row + 1] = end
    return kept


@njit(cache=True, nogil=True)
def _n_digits(value):
    n = 1
    while value >= 10:
        value //= 10
        n += 1
    return n


@njit(cache=True, nogil=True)
def _put_number(out, end, value):
    n = _n_digits(value)
    for k in range(n):
        out[end + n - 1 - k] = 48 + value % 10
        value //= 10
    return end + n


@njit(cache=True, nogil=True)
def _put_score(out, end, value):
    """Four decimals, as printf writes them: the product is exact for float32, and halves go to the even digit."""
    if value < 0:
        out[end] = _MINUS
        end += 1
    scaled = abs(np.float64(value)) * 10_000.0
    whole = np.int64(np.floor(scaled))
    rest = scaled - whole
    if rest > 0.5 or (rest == 0.5 and whole % 2 == 1):
        whole += 1
    end = _put_number(out, end, whole // 10_000)
    out[end] = _DOT
    whole %= 10_000
    for k in range(4):
        out[end + 4 - k] = 48 + whole % 10
        whole //= 10
    return end + 5


@njit(cache=True, nogil=True)
def _has_score(probability, link):
    return link < probability.size and np.abs(probability[link]) < 1e9  # false of what is not a number, too


@njit(cache=True, nogil=True)
def format_pharaoh(offsets, source, target, probability, possible):
    """Lines of links; `probability` and `possible` may be empty arrays."""
    n_rows = offsets.size - 1
    size = 2 * (offsets[n_rows] - offsets[0]) + n_rows
    for link in range(offsets[0], offsets[n_rows]):
        size += _n_digits(source[link]) + _n_digits(target[link])
        if _has_score(probability, link):
            size += 7 + _n_digits(np.int64(np.abs(probability[link])) + 1)
    out = np.empty(size, np.uint8)
    end = 0
    for row in range(n_rows):
        for link in range(offsets[row], offsets[row + 1]):
            if link > offsets[row]:
                out[end] = _SPACE
                end += 1
            end = _put_number(out, end, source[link])
            out[end] = 112 if possible.size > 0 and possible[link] else _MINUS
            end = _put_number(out, end + 1, target[link])
            if _has_score(probability, link):
                out[end] = _COLON
                end = _put_score(out, end + 1, probability[link])
        out[end] = _NEWLINE
        end += 1
    return out[:end]


@njit(cache=True, nogil=True)
def format_naacl(offsets, source, target, probability, possible, first):
    """A line for each link: ``sentence source target S|P [score]``, all from 1; the first row is sentence `first`."""
    n_rows = offsets.size - 1
    size = 6 * (offsets[n_rows] - offsets[0])
    for row in range(n_rows):
        size += (offsets[row + 1] - offsets[row]) * _n_digits(row + first)
        for link in range(offsets[row], offsets[row + 1]):
            size += _n_digits(source[link] + 1) + _n_digits(target[link] + 1)
            if _has_score(probability, link):
                size += 7 + _n_digits(np.int64(np.abs(probability[link])) + 1)
    out = np.empty(size, np.uint8)
    end = 0
    for row in range(n_rows):
        for link in range(offsets[row], offsets[row + 1]):
            end = _put_number(out, end, row + first)
            out[end] = _SPACE
            end = _put_number(out, end + 1, source[link] + 1)
            out[end] = _SPACE
            end = _put_number(out, end + 1, target[link] + 1)
            out[end] = _SPACE
            out[end + 1] = 80 if possible.size > 0 and possible[link] else 83
            end += 2
            if _has_score(probability, link):
                out[end] = _SPACE
                end = _put_score(out, end + 1, probability[link])
            out[end] = _NEWLINE
            end += 1
    return out[:end]
