"""Spans of a sentence: fence-posts 0 ≤ i < j ≤ n, numbered by width, then by start."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError

__all__ = ["n_spans", "n_words", "span_number", "spans_of"]


def n_spans(n: int) -> int:
    """How many spans n words have, those of one word and the whole sentence included.

    Examples
    --------
    >>> [n_spans(n) for n in range(5)]
    [0, 1, 3, 6, 10]
    """
    return n * (n + 1) // 2


def n_words(spans: int) -> int:
    """The number of words that a sentence of so many spans has, or −1 if there is none.

    Examples
    --------
    >>> [n_words(spans) for spans in (0, 1, 2, 3, 6)]
    [0, 1, -1, 2, 3]
    """
    n = (math.isqrt(8 * spans + 1) - 1) // 2
    return n if n_spans(n) == spans else -1


def span_number(i: int, j: int, n: int) -> int:
    """The number of the span from fence-post `i` to `j` among those of n words: narrow ones first, then by start.

    Examples
    --------
    >>> span_number(0, 1, 3), span_number(2, 3, 3), span_number(0, 2, 3), span_number(0, 3, 3)
    (0, 2, 3, 5)
    """
    if not 0 <= i < j <= n:
        raise ParameterError(f"span_number: a span of {n} words is 0 <= i < j <= {n}, not {(i, j)!r}")
    shorter = j - i - 1
    return shorter * n - shorter * (shorter - 1) // 2 + i


def spans_of(n: int) -> NDArray[np.int64]:
    """int64[n_spans, 2]: all spans of n words, in the order of their numbers.

    Examples
    --------
    >>> spans_of(3).tolist()
    [[0, 1], [1, 2], [2, 3], [0, 2], [1, 3], [0, 3]]
    """
    widths = np.repeat(np.arange(1, n + 1), np.arange(n, 0, -1))
    firsts = np.concatenate([[0], np.cumsum(np.arange(n, 0, -1))])[widths - 1].astype(np.int64)
    starts = np.arange(len(widths)) - firsts
    return np.stack([starts, starts + widths], axis=1).astype(np.int64)
