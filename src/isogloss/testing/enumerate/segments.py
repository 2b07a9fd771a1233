"""All ways to cut a sentence into labelled segments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce

__all__ = ["brute_force_segments", "segmentations"]

Cut = tuple[tuple[int, int, int], ...]


def segmentations(n: int, longest: int, k: int) -> Iterator[Cut]:
    """All segments (begin, end, label) of n positions, each way to cut them and each choice of labels.

    >>> len(list(segmentations(3, 3, 2)))
    18
    """
    for size in range(n + 1):
        for inner in itertools.combinations(range(1, n), max(0, size - 1)):
            places = [0, *inner, n] if size else [0]
            if places[-1] != n or any(b - a > longest for a, b in itertools.pairwise(places)):
                continue
            for labels in itertools.product(range(k), repeat=size):
                yield tuple(zip(places[:-1], places[1:], labels, strict=True))


def brute_force_segments(segments: ArrayLike, steps: ArrayLike) -> BruteForce:
    """Every segmentation; parts are segments, float64[n, longest, k], then steps, float64[n - 1, k, k], in one vector.

    >>> round(float(np.exp(brute_force_segments(np.zeros((2, 2, 3)), np.zeros((1, 3, 3))).log_partition)), 9)
    12.0
    """
    whole, between = np.asarray(segments, np.float64), np.asarray(steps, np.float64)
    n, longest, k = whole.shape
    listed, parts, scores = list(segmentations(n, longest, k)), [], []
    for y in listed:
        own, moves, score = np.zeros(whole.shape), np.zeros(between.shape), 0.0
        for begin, end, label in y:
            own[begin, end - begin - 1, label] = 1.0
            score += whole[begin, end - begin - 1, label]
        for (_, _, before), (begin, _, label) in itertools.pairwise(y):
            moves[begin - 1, before, label] = 1.0
            score += between[begin - 1, before, label]
        parts.append(np.concatenate([own.ravel(), moves.ravel()]))
        scores.append(score)
    indicators: Array = np.array(parts).reshape(len(listed), whole.size + between.size)
    return BruteForce(listed, indicators, np.array(scores))
