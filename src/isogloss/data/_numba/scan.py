"""From bytes to word numbers: the one loop over characters, as a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["scan"]

_NEWLINE = 10
_EMPTY = -1


@njit(cache=True, nogil=True)
def _is_space(byte):
    return byte == 32 or 9 <= byte <= 13


@njit(cache=True, nogil=True)
def _count(data):
    """Number of tokens and of lines; a last line without a newline counts."""
    tokens = lines = 0
    inside = False
    for byte in data:
        if _is_space(byte):
            inside = False
            lines += byte == _NEWLINE
        elif not inside:
            inside = True
            tokens += 1
    if data.size > 0 and data[-1] != _NEWLINE:
        lines += 1
    return tokens, lines


@njit(cache=True, nogil=True)
def _grow(slots, hashes, n_types):
    wider = np.full(slots.size * 4, _EMPTY, np.int32)
    mask = np.uint64(wider.size - 1)
    for word in range(n_types):
        at = hashes[word] & mask
        while wider[at] != _EMPTY:
            at = (at + np.uint64(1)) & mask
        wider[at] = word
    return wider


@njit(cache=True, nogil=True)
def _same(data, a_start, b_start, length):
    for k in range(length):  # noqa: SIM110
        if data[a_start + k] != data[b_start + k]:
            return False
    return True


@njit(cache=True, nogil=True)
def _scan(data):
    n_tokens, n_lines = _count(data)
    ids = np.empty(n_tokens, np.int32)
    offsets = np.zeros(n_lines + 1, np.int64)
    starts = np.empty(1024, np.int64)
    lengths = np.empty(1024, np.int32)
    hashes = np.empty(1024, np.uint64)
    slots = np.full(4096, _EMPTY, np.int32)
    n_types = token = line = 0
    at = 0
    while at < data.size:
        byte = data[at]
        if _is_space(byte):
            if byte == _NEWLINE:
                line += 1
                offsets[line] = token
            at += 1
            continue
        start = at
        mixed = np.uint64(14695981039346656037)  # FNV-1a
        while at < data.size and not _is_space(data[at]):
            mixed = (mixed ^ np.uint64(data[at])) * np.uint64(1099511628211)
            at += 1
        mixed ^= mixed >> np.uint64(32)
        mask = np.uint64(slots.size - 1)
        slot = mixed & mask
        while True:
            word = slots[slot]
            if word == _EMPTY:
                if n_types == starts.size:
                    starts = np.concatenate((starts, np.empty_like(starts)))
                    lengths = np.concatenate((lengths, np.empty_like(lengths)))
                    hashes = np.concatenate((hashes, np.empty_like(hashes)))
                word = n_types
                slots[slot] = word
                starts[word], lengths[word], hashes[word] = start, at - start, mixed
                n_types += 1
                if n_types * 2 > slots.size:
                    slots = _grow(slots, hashes, n_types)
                break
            if (
                hashes[word] == mixed
                and lengths[word] == at - start
                and _same(data, starts[word], start, lengths[word])
            ):
                break
            slot = (slot + np.uint64(1)) & mask
        ids[token] = word
        token += 1
    if line < n_lines:
        offsets[n_lines] = token
    return ids, offsets, starts[:n_types].copy(), lengths[:n_types].copy()


def scan(data: bytes) -> tuple[Any, Any, list[str]]:
    """Split UTF-8 text into lines (at LF) and tokens (at ASCII white space), and number the word types.

    Types are numbered in order of first appearance. Nothing but LF ends a line: U+2028, form feeds and lone carriage
    returns are inside it, and the carriage return of CRLF is white space like any other.

    Returns
    -------
    ids : int32[n_tokens]
    offsets : int64[n_lines + 1]
    types : list of str
    """
    ids, offsets, starts, lengths = _scan(np.frombuffer(data, np.uint8))
    return ids, offsets, [data[a : a + n].decode() for a, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
