"""Bracketed trees in bytes: where words, tags and labels stand, and how nodes hang together."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["EMPTY_NODE", "FINE", "NOT_OPEN", "OUTSIDE", "SEVERAL_WORDS", "UNCLOSED", "WORD_WITHOUT_TAG", "scan_trees"]

FINE, OUTSIDE, NOT_OPEN, UNCLOSED, EMPTY_NODE, WORD_WITHOUT_TAG, SEVERAL_WORDS = range(7)

_LINE_FEED, _SPACE, _OPEN, _CLOSE = 10, 32, 40, 41
_NODE, _WORD = -1, -2


@njit(cache=True, nogil=True, inline="always")
def _is_space(byte):
    return byte == _SPACE or 9 <= byte <= 13


@njit(cache=True, nogil=True)
def _past_space(data, at):
    while at < data.size and _is_space(data[at]):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _past_atom(data, at):
    while at < data.size and not _is_space(data[at]) and data[at] != _OPEN and data[at] != _CLOSE:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _past_line(data, at):
    """Behind the end of the line, if only spaces stand before it; otherwise where something else begins."""
    while at < data.size and _is_space(data[at]) and data[at] != _LINE_FEED:
        at += 1
    return at + 1 if at < data.size and data[at] == _LINE_FEED else at


@njit(cache=True, nogil=True)
def _bracket(data, at):
    """What an opening bracket begins.

    Returns
    -------
    what : int
        `_NODE`, `_WORD`, or a problem.
    begin, end, follows, stop : int
        Where the label or tag begins and ends, and the word behind it.
    then : int
        Where to go on, or what is wrong.
    """
    begin = at + 1
    end = _past_atom(data, begin)
    follows = _past_space(data, end)
    if follows >= data.size:
        return UNCLOSED, begin, end, follows, follows, at
    if data[follows] == _CLOSE and end > begin:
        return EMPTY_NODE, begin, end, follows, follows, begin
    if data[follows] == _OPEN or data[follows] == _CLOSE:
        return _NODE, begin, end, follows, follows, follows
    stop = _past_atom(data, follows)
    closing = _past_space(data, stop)
    if closing >= data.size:
        return UNCLOSED, begin, end, follows, stop, at
    if data[closing] != _CLOSE:
        return WORD_WITHOUT_TAG if data[closing] == _OPEN else SEVERAL_WORDS, begin, end, follows, stop, begin
    if end == begin:
        return WORD_WITHOUT_TAG, begin, end, follows, stop, follows
    return _WORD, begin, end, follows, stop, closing + 1


@njit(cache=True, nogil=True)
def scan_trees(data, empty_lines):
    """Find trees, their nodes and words.

    Parameters
    ----------
    data : uint8[n_bytes]
    empty_lines : bool
        Whether an empty line between trees is a tree without words.

    Returns
    -------
    problem : (int, int)
        One of the constants above, and the byte at which it was found.
    tags, words, labels : int64[n, 2]
        Where each begins and ends; a label may be empty.
    attached : int32[n_words]
        The node that each word hangs on, counted within its tree; -1 for none.
    parents : int32[n_nodes]
        The same for nodes, which stand in pre-order.
    offsets, node_offsets : int64[n_trees + 1]
    blocks : int64[n_trees, 2]
        Where the text of each tree begins and ends, with the line end behind it.
    """
    opened, lines = 0, 0
    for byte in data:
        opened += byte == _OPEN
        lines += byte == _LINE_FEED
    tags, words = np.empty((opened, 2), np.int64), np.empty((opened, 2), np.int64)
    labels = np.empty((opened, 2), np.int64)
    attached, parents, firsts = np.empty(opened, np.int32), np.empty(opened, np.int32), np.empty(opened, np.int64)
    most = opened + (lines if empty_lines else 0)
    offsets, node_offsets = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
    blocks = np.zeros((most, 2), np.int64)
    n_words, n_nodes, n_trees, depth, current = 0, 0, 0, 0, -1
    at, block, started, hollow, code, place = 0, 0, 0, -1, FINE, 0
    fresh = True  # no tree has begun in this line
    while at < data.size and code == FINE:
        byte = data[at]
        if _is_space(byte):
            at += 1
            if byte == _LINE_FEED and depth == 0:
                if empty_lines and fresh:
                    blocks[n_trees] = block, at
                    n_trees += 1
                    offsets[n_trees], node_offsets[n_trees] = n_words, n_nodes
                    block = at
                fresh = True
            continue
        if byte == _CLOSE:
            if depth == 0:
                code, place = NOT_OPEN, at
                break
            at += 1
            depth -= 1
            last = node_offsets[n_trees] + current
            if n_words == firsts[last] and hollow < 0:
                hollow = labels[last, 0]  # wrong, unless nothing at all is in this tree
            current = parents[last]
        elif byte != _OPEN:
            code, place = OUTSIDE if depth == 0 else WORD_WITHOUT_TAG, at
            break
        else:
            if depth == 0:
                started, fresh = at, False
            what, begin, end, follows, stop, then = _bracket(data, at)
            if what >= 0:
                code, place = what, started if what == UNCLOSED else then
                break
            at = then
            if what == _NODE:
                labels[n_nodes] = begin, end
                parents[n_nodes] = current
                firsts[n_nodes] = n_words
                current = n_nodes - node_offsets[n_trees]
                n_nodes += 1
                depth += 1
                continue
            tags[n_words], words[n_words] = (begin, end), (follows, stop)
            attached[n_words] = current
            n_words += 1
        if depth == 0:  # the tree is whole
            if n_words == offsets[n_trees]:
                n_nodes = node_offsets[n_trees]  # `()` and `(())` are trees of nothing
            elif hollow >= 0:
                code, place = EMPTY_NODE, hollow
                break
            at = _past_line(data, at)
            fresh = fresh or data[at - 1] == _LINE_FEED
            blocks[n_trees] = block, at
            n_trees += 1
            offsets[n_trees], node_offsets[n_trees] = n_words, n_nodes
            block, current, hollow = at, -1, -1
    if code == FINE and depth > 0:
        code, place = UNCLOSED, started
    if n_trees:
        blocks[n_trees - 1, 1] = data.size if code == FINE else blocks[n_trees - 1, 1]
    return (
        (code, place),
        tags[:n_words].copy(), words[:n_words].copy(), labels[:n_nodes].copy(), attached[:n_words].copy(),
        parents[:n_nodes].copy(), offsets[: n_trees + 1].copy(), node_offsets[: n_trees + 1].copy(),
        blocks[:n_trees].copy(),
    )  # fmt: skip
