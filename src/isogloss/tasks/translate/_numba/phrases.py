"""Phrase pairs that agree with links, as kernels over the sentences of a whole text.

Positions of words are places in ``ids.values`` of their side. A phrase is where it starts and how many words it has; an
occurrence of a phrase pair is two of these.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import GOLDEN, mix

__all__ = [
    "Linked", "collect", "count_first_words", "count_orientations", "describe", "format_pairs", "number_phrases",
    "reach", "usual",
]  # fmt: skip

Linked = namedtuple(
    "Linked",
    [
        "source_offsets",  # int64[n_pairs + 1]: sentences within ids.values
        "target_offsets",
        "source_ids",  # int32[n_tokens]
        "target_ids",
        "source_reach",  # int32[n_tokens, 2]: lowest and highest target word linked to a source token; -1 when none
        "target_reach",
        "starts",  # int64[n_source_tokens + 1]: links of each source token
        "partner",  # int32[n_links]: their target word, within its sentence
    ],
)
"""A text with its links, as the kernels take it."""

_EMPTY = -1
_POWERS = np.array([float(f"1e{exponent}") for exponent in range(-300, 3)])  # _POWERS[300 + k] is 10 to the k


@njit(cache=True, nogil=True)
def reach(at, partner, n_tokens):
    """The lowest and the highest word that each token is linked to, -1 for tokens without links: int32[n_tokens, 2]."""
    found = np.full((n_tokens, 2), -1, np.int32)
    for link in range(at.size):
        token, other = at[link], partner[link]
        if found[token, 0] < 0 or other < found[token, 0]:
            found[token, 0] = other
        if other > found[token, 1]:
            found[token, 1] = other
    return found


@njit(cache=True, nogil=True)
def _spans(text, pair, max_length, found):
    """All phrase pairs of a sentence pair: source start, source end, target start, target end (ends not included).

    For every target span, the smallest source span that holds its links; it agrees if none of its words is linked
    outside of the target span. Words without links at either end may belong to it or not.
    """
    source_first, target_first = text.source_offsets[pair], text.target_offsets[pair]
    n_source = text.source_offsets[pair + 1] - source_first
    n_target = text.target_offsets[pair + 1] - target_first
    n = 0
    for start in range(n_target):
        low, high = n_source, np.int64(-1)
        for last in range(start, min(start + max_length, n_target)):
            if text.target_reach[target_first + last, 0] >= 0:
                low = min(low, text.target_reach[target_first + last, 0])
                high = max(high, text.target_reach[target_first + last, 1])
            if high < 0:
                continue
            if high - low >= max_length:
                break  # it only grows
            agrees = True
            for word in range(low, high + 1):
                if text.source_reach[source_first + word, 0] < 0:
                    continue
                if (
                    text.source_reach[source_first + word, 0] < start
                    or text.source_reach[source_first + word, 1] > last
                ):
                    agrees = False
                    break
            if not agrees:
                continue
            left = low
            while True:
                right = high
                while right - left < max_length:
                    if n == len(found):
                        found = np.concatenate((found, np.empty_like(found)))
                    found[n, 0], found[n, 1], found[n, 2], found[n, 3] = left, right + 1, start, last + 1
                    n += 1
                    right += 1
                    if right >= n_source or text.source_reach[source_first + right, 0] >= 0:
                        break
                left -= 1
                if left < 0 or text.source_reach[source_first + left, 0] >= 0 or high - left >= max_length:
                    break
    return n, found


@njit(cache=True, nogil=True)
def count_first_words(text, max_length, n_source_types, n_target_types):
    """How many occurrences of phrase pairs start with each word: int64[n_types] for source and for target."""
    source_counts, target_counts = np.zeros(n_source_types, np.int64), np.zeros(n_target_types, np.int64)
    found = np.empty((256, 4), np.int64)
    for pair in range(text.source_offsets.size - 1):
        n, found = _spans(text, pair, max_length, found)
        for k in range(n):
            source_counts[text.source_ids[text.source_offsets[pair] + found[k, 0]]] += 1
            target_counts[text.target_ids[text.target_offsets[pair] + found[k, 2]]] += 1
    return source_counts, target_counts


@njit(cache=True, nogil=True)
def collect(text, max_length, by_target, rank, first_rank, last_rank, size):
    """The occurrences whose source (or target) phrase starts with a word of rank first_rank..last_rank - 1.

    Returns
    -------
    number : int64[size]
        The place of each among all occurrences of the text.
    source_at, target_at : int64[size]
    source_length, target_length : uint8[size]
    """
    number, source_at, target_at = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    source_length, target_length = np.empty(size, np.uint8), np.empty(size, np.uint8)
    found = np.empty((256, 4), np.int64)
    at = seen = 0
    for pair in range(text.source_offsets.size - 1):
        n, found = _spans(text, pair, max_length, found)
        for k in range(n):
            source, target = text.source_offsets[pair] + found[k, 0], text.target_offsets[pair] + found[k, 2]
            word = text.target_ids[target] if by_target else text.source_ids[source]
            if first_rank <= rank[word] < last_rank:
                number[at], source_at[at], target_at[at] = seen, source, target
                source_length[at], target_length[at] = found[k, 1] - found[k, 0], found[k, 3] - found[k, 2]
                at += 1
            seen += 1
    return number, source_at, target_at, source_length, target_length


@njit(cache=True, nogil=True)
def _mixed(value):
    """Bits of a number spread over all of it; 0 does not stay 0."""
    return mix(np.uint64(value) + GOLDEN)


@njit(cache=True, nogil=True)
def number_phrases(ids, at, length):
    """Number equal phrases alike, in order of first appearance.

    Returns
    -------
    number : int32[n]
    first : int64[n_phrases]
        Where among `at` each phrase appears first.
    """
    n = at.size
    number, first = np.empty(n, np.int32), np.empty(n, np.int64)
    n_slots = 16
    while n_slots < 2 * n:
        n_slots *= 2
    slots = np.full(n_slots, _EMPTY, np.int32)
    mask = np.uint64(n_slots - 1)
    n_phrases = 0
    for k in range(n):
        mixed = np.uint64(length[k])
        for word in range(at[k], at[k] + length[k]):
            mixed = _mixed(mixed ^ np.uint64(ids[word]))
        slot = mixed & mask
        while True:
            phrase = slots[slot]
            if phrase == _EMPTY:
                slots[slot] = phrase = n_phrases
                first[n_phrases] = k
                n_phrases += 1
                break
            other = first[phrase]
            same = length[other] == length[k]
            if same:
                for word in range(length[k]):
                    if ids[at[other] + word] != ids[at[k] + word]:
                        same = False
                        break
            if same:
                break
            slot = (slot + np.uint64(1)) & mask
        number[k] = phrase
    return number, first[:n_phrases].copy()


@njit(cache=True, nogil=True)
def _signature(text, source, source_length, target_in_sentence, max_length):
    """One number for the links inside an occurrence: bits of a matrix while that fits, beyond that a hash."""
    key = np.uint64(0)
    for word in range(source_length):
        for link in range(text.starts[source + word], text.starts[source + word + 1]):
            cell = np.uint64(word * max_length + text.partner[link] - target_in_sentence)
            key ^= np.uint64(1) << cell if max_length <= 8 else _mixed(cell)
    return key


@njit(cache=True, nogil=True)
def usual(text, sentence_start, order, starts, source_at, target_at, source_length, max_length):
    """For each group of occurrences of one pair, the first with the links that the pair most often has.

    Parameters
    ----------
    sentence_start : int64[n]
        Where the target sentence of each occurrence starts.
    order : int64[n]
        The occurrences, those of a group one after the other.
    starts : int64[n_groups + 1]
        Where in `order` each group starts.

    Returns
    -------
    chosen : int64[n_groups]
    """
    chosen = np.empty(starts.size - 1, np.int64)
    for group in range(starts.size - 1):
        first, last = starts[group], starts[group + 1]
        chosen[group] = order[first]
        if last - first == 1:
            continue
        keys = np.empty(last - first, np.uint64)
        for k in range(first, last):
            one = order[k]
            keys[k - first] = _signature(
                text, source_at[one], source_length[one], target_at[one] - sentence_start[one], max_length
            )
        places = np.argsort(keys, kind="mergesort")  # stable: the first of equal ones stays first
        best = run = 0
        for k in range(keys.size):
            if k > 0 and keys[places[k]] != keys[places[k - 1]]:
                run = k
            length, place = k - run + 1, order[first + places[run]]
            if length > best or (length == best and place < chosen[group]):
                best, chosen[group] = length, place
    return chosen


@njit(cache=True, nogil=True)
def _linked(text, pair, i, j):
    """Whether words i and j of a sentence pair are linked; so are the places before both sentences and behind both."""
    n_source = text.source_offsets[pair + 1] - text.source_offsets[pair]
    n_target = text.target_offsets[pair + 1] - text.target_offsets[pair]
    if i < 0 or j < 0:
        return i < 0 and j < 0
    if i >= n_source or j >= n_target:
        return i >= n_source and j >= n_target
    token, found = text.source_offsets[pair] + i, False
    for link in range(text.starts[token], text.starts[token + 1]):
        found |= text.partner[link] == j
    return found


@njit(cache=True, nogil=True)
def _orientation(text, pair, same, other, j):
    """0 if word j is linked to the place where it stands in the same order, 1 if to the other one, 2 otherwise."""
    follows, swaps = _linked(text, pair, same, j), _linked(text, pair, other, j)
    if follows == swaps:
        return 2
    return 0 if follows else 1


@njit(cache=True, nogil=True)
def count_orientations(text, sentence, order, starts, source_at, target_at, source_length, target_length):
    """How often what stands before each phrase pair, and what stands behind it, is monotone, swapped or neither.

    A pair is monotone with what is before it if the words before both its sides are linked; it is swapped if the word
    before its target side is linked to the one behind its source side. Behind it is the same, seen from the other end.

    Parameters
    ----------
    sentence : int64[n]
        The sentence pair of each occurrence.
    order, starts
        Groups of occurrences of one pair, as in `usual`.

    Returns
    -------
    counts : int32[n_groups, 6]
    """
    counts = np.zeros((starts.size - 1, 6), np.int32)
    for group in range(starts.size - 1):
        for k in range(starts[group], starts[group + 1]):
            one = order[k]
            pair = sentence[one]
            first = source_at[one] - text.source_offsets[pair]
            begin = target_at[one] - text.target_offsets[pair]
            end, until = first + source_length[one], begin + target_length[one]
            counts[group, _orientation(text, pair, first - 1, end, begin - 1)] += 1
            counts[group, 3 + _orientation(text, pair, end, first - 1, until)] += 1
    return counts


@njit(cache=True, nogil=True)
def describe(text, sentence_start, source_at, target_at, source_length, target_length, of_link, from_null):
    r"""Lexical weights of occurrences, of the source given the target and the other way: float64[n, 2].

    .. math:: w(t \mid s, a) = \prod_j \frac{1}{|\{i : (i, j) \in a\}|} \sum_{(i, j) \in a} p(t_j \mid s_i)

    with :math:`p(t_j \mid \text{null})` for words without links.

    Parameters
    ----------
    of_link : float64[n_links, 2]
        p(target | source), p(source | target) of the words of each link.
    from_null : float64[n_source_types], float64[n_target_types]
    """
    weights = np.ones((source_at.size, 2))
    sums, counts = np.empty(256), np.empty(256, np.int64)
    for k in range(source_at.size):
        sums[: target_length[k]] = 0
        counts[: target_length[k]] = 0
        for token in range(source_at[k], source_at[k] + source_length[k]):
            total = 0.0
            for link in range(text.starts[token], text.starts[token + 1]):
                place = sentence_start[k] + text.partner[link] - target_at[k]
                sums[place] += of_link[link, 0]
                counts[place] += 1
                total += of_link[link, 1]
            n_links = text.starts[token + 1] - text.starts[token]
            weights[k, 0] *= total / n_links if n_links else from_null[0][text.source_ids[token]]
        for word in range(target_length[k]):
            missing = from_null[1][text.target_ids[target_at[k] + word]]
            weights[k, 1] *= sums[word] / counts[word] if counts[word] else missing
    return weights


@njit(cache=True, nogil=True)
def _put_integer(out, end, value):
    n_digits, rest = 1, value
    while rest >= 10:
        rest //= 10
        n_digits += 1
    for k in range(n_digits):
        out[end + n_digits - 1 - k] = 48 + value % 10
        value //= 10
    return end + n_digits


@njit(cache=True, nogil=True)
def _put_number(out, end, value):
    """A number from 0 to 1 with six significant digits, without trailing zeros, as printf's %g writes it."""
    if value >= 1 or value < 1e-299:
        out[end] = 49 if value >= 1 else 48
        return end + 1
    exponent = int(np.floor(np.log10(value)))
    digits = int(np.round(value / _POWERS[300 + exponent] * 1e5))
    if digits >= 1_000_000 or digits < 100_000:  # rounded up to a power of ten, or the logarithm was a hair off
        exponent += 1 if digits >= 1_000_000 else -1
        digits = int(np.round(value / _POWERS[300 + exponent] * 1e5))
    n_digits = 6
    while n_digits > 1 and digits % 10 == 0:
        digits //= 10
        n_digits -= 1
    if exponent == 0:  # 0.9999999
        out[end] = 49
        return end + 1
    if exponent >= -4:
        out[end], out[end + 1] = 48, 46
        end += 2
        for _ in range(-exponent - 1):
            out[end] = 48
            end += 1
        return _put_integer(out, end, digits)
    after = _put_integer(out, end + 1, digits)  # the point goes behind the first digit
    out[end] = out[end + 1]
    out[end + 1] = 46
    end = after if n_digits > 1 else end + 1
    out[end], out[end + 1], out[end + 2] = 101, 45, 48
    return _put_integer(out, end + 2 + (exponent > -10), -exponent)  # at least two digits of the exponent


@njit(cache=True, nogil=True)
def _put_phrase(out, end, ids, at, length, letters, starts):
    for token in range(at, at + length):
        for k in range(starts[ids[token]], starts[ids[token] + 1]):
            out[end] = letters[k]
            end += 1
        out[end] = 32
        end += 1
    return end


@njit(cache=True, nogil=True)
def _put_bars(out, end):
    out[end] = out[end + 1] = out[end + 2] = 124
    out[end + 3] = 32
    return end + 4


@njit(cache=True, nogil=True)
def format_pairs(text, sentence_start, source_at, target_at, source_length, target_length, scores, counts, spelling):
    """Phrase pairs as lines: ``source ||| target ||| scores ||| links ||| counts``.

    Parameters
    ----------
    scores : float64[n, 4]
    counts : int64[n, 3]
    spelling : (letters uint8[.], starts int64[n_types + 1]) of the source, then of the target
        Type k is spelt ``letters[starts[k]:starts[k + 1]]``.
    """
    source_letters, source_starts, target_letters, target_starts = spelling
    out = np.empty(1 << 16, np.uint8)
    end = 0
    for k in range(source_at.size):
        size = 256
        for token in range(source_at[k], source_at[k] + source_length[k]):
            word = text.source_ids[token]
            size += (
                source_starts[word + 1] - source_starts[word] + 1 + 24 * (text.starts[token + 1] - text.starts[token])
            )
        for token in range(target_at[k], target_at[k] + target_length[k]):
            word = text.target_ids[token]
            size += target_starts[word + 1] - target_starts[word] + 1
        while end + size > out.size:
            out = np.concatenate((out, np.empty_like(out)))
        end = _put_phrase(out, end, text.source_ids, source_at[k], source_length[k], source_letters, source_starts)
        end = _put_bars(out, end)
        end = _put_phrase(out, end, text.target_ids, target_at[k], target_length[k], target_letters, target_starts)
        end = _put_bars(out, end)
        for score in scores[k]:
            end = _put_number(out, end, score)
            out[end] = 32
            end += 1
        end = _put_bars(out, end)
        for word in range(source_length[k]):
            for link in range(text.starts[source_at[k] + word], text.starts[source_at[k] + word + 1]):
                end = _put_integer(out, end, word)
                out[end] = 45
                end = _put_integer(out, end + 1, sentence_start[k] + text.partner[link] - target_at[k])
                out[end] = 32
                end += 1
        end = _put_bars(out, end)
        for count in counts[k]:
            end = _put_integer(out, end, count)
            out[end] = 32
            end += 1
        out[end - 1] = 10
    return out[:end]
