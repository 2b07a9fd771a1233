"""All constituent trees of a short sentence: unlabelled or labelled, binary or of any fan-out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce

__all__ = ["all_spans", "bracketings", "brute_force_brackets", "brute_force_spans"]

Span = tuple[int, int]
Spans = frozenset[Span]


def all_spans(n: int) -> list[Span]:
    """The spans of n words, narrow ones first, then by start.

    >>> all_spans(2)
    [(0, 1), (1, 2), (0, 2)]
    """
    return [(i, i + width) for width in range(1, n + 1) for i in range(n - width + 1)]


def _cross(a: Span, b: Span) -> bool:
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


@lru_cache(maxsize=64)
def nested_sets(n: int) -> tuple[Spans, ...]:
    """All sets of spans of several words, the whole sentence left out, in which no two cross."""
    middle = [span for span in all_spans(n) if 1 < span[1] - span[0] < n]
    found = []
    for size in range(max(1, n - 1)):
        for some in itertools.combinations(middle, size):
            if not any(_cross(a, b) for a, b in itertools.combinations(some, 2)):
                found.append(frozenset(some))
    return tuple(found)


def bracketings(n: int, *, binary: bool) -> Iterator[Spans]:
    """All trees over n words, with single words and the whole sentence.

    >>> [[sum(1 for _ in bracketings(n, binary=binary)) for n in range(6)] for binary in (True, False)]
    [[1, 1, 1, 2, 5, 14], [1, 1, 1, 3, 11, 45]]
    """
    if n == 0:
        yield frozenset()
        return
    always = frozenset(span for span in all_spans(n) if span[1] - span[0] in (1, n))
    for some in nested_sets(n):
        if not binary or len(some) == max(0, n - 2):  # as many as can be: no constituent has more than two parts
            yield always | some


def brute_force_brackets(scores: ArrayLike, *, binary: bool) -> BruteForce:
    """Every bracketing of float64[n_spans] scores."""
    values = np.asarray(scores, np.float64)
    spans = all_spans(next(n for n in itertools.count() if n * (n + 1) // 2 == len(values)))
    listed = list(bracketings(spans[-1][1] if spans else 0, binary=binary))
    parts = np.array([[float(span in tree) for span in spans] for tree in listed]).reshape(len(listed), len(spans))
    return BruteForce(listed, parts, np.array([values[part > 0].sum() for part in parts]))


def brute_force_spans(scores: ArrayLike, *, binary: bool, rooted: bool = True) -> BruteForce:
    """Every tree of labelled spans of float64[n_spans, n_labels] scores, as sets of (i, j, label).

    >>> len(brute_force_spans(np.zeros((3, 1)), binary=False).structures)        # two words, each with a label or none
    4
    """
    values = np.asarray(scores, np.float64)
    spans = all_spans(next(n for n in itertools.count() if n * (n + 1) // 2 == len(values)))
    n, labels = spans[-1][1] if spans else 0, values.shape[1]
    shapes: list[Spans] = []
    for tree in bracketings(n, binary=binary):
        if binary or not n:
            shapes.append(tree)
            continue
        must = {span for span in tree if 1 < span[1] - span[0] < n} | ({(0, n)} if rooted else set())
        free = [span for span in spans if (span[1] - span[0] in (1, n)) and span not in must]
        for size in range(len(free) + 1):
            shapes += [frozenset(must | set(some)) for some in itertools.combinations(free, size)]
    listed: list[frozenset[tuple[int, int, int]]] = []
    for shape in shapes:
        for chosen in itertools.product(range(labels), repeat=len(shape)):
            listed.append(frozenset((i, j, label) for (i, j), label in zip(sorted(shape), chosen, strict=True)))
    number = {span: at for at, span in enumerate(spans)}
    parts: Array = np.zeros((len(listed), *values.shape))
    for row, constituents in enumerate(listed):
        for i, j, label in constituents:
            parts[row, number[i, j], label] = 1.0
    return BruteForce(listed, parts, np.array([values[part > 0].sum() for part in parts]))
