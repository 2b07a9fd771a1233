"""All ways to cut a sequence of words into labelled segments that look back on one more."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce
from isogloss.testing.enumerate.segments import segmentations

__all__ = ["brute_force_segments2"]


def brute_force_segments2(
    segments: ArrayLike,
    steps: ArrayLike,
    words: Sequence[int],
    longest: int,
    pairs: ArrayLike | None = None,
    classes: Sequence[int] | None = None,
) -> BruteForce:
    """Every segmentation in which no segment crosses a word's border; parts are those of segments, steps and pairs.

    >>> whole = brute_force_segments2(np.zeros((4, 3, 2)), np.zeros((2, 3, 3)), [2, 1], 2)
    >>> round(float(np.exp(whole.log_partition)), 9)      # (2 + 2²) ways for the first word, 2 for the second
    12.0
    """
    scores, moves = np.asarray(segments, np.float64), np.asarray(steps, np.float64)
    k = scores.shape[2]
    kinds = list(range(k)) if classes is None else list(classes)
    between = np.zeros((0, 1)) if pairs is None else np.asarray(pairs, np.float64)
    borders = [0, *itertools.accumulate(words)]
    spans = [
        (i, j)
        for a, z in itertools.pairwise(borders)
        for i in range(a, z)
        for j in range(i + 1, min(z, i + longest) + 1)
    ]  # fmt: skip
    couples = [
        ((i, t), (t, j))
        for a, z in itertools.pairwise(borders)
        for t in range(a + 1, z)
        for i in range(t - 1, max(a, t - longest) - 1, -1)
        for j in range(t + 1, min(z, t + longest) + 1)
    ]
    listed, parts, values = [], [], []
    for y in segmentations(borders[-1], longest, k):
        if any(begin < border < end for begin, end, _ in y for border in borders):
            continue
        own, taken, met = np.zeros(scores.shape), np.zeros(moves.shape), np.zeros(between.shape)
        for at, (begin, end, label) in enumerate(y):
            if begin in borders:
                own[spans.index((begin, end)), 0, label] += 1
                taken[1, y[at - 1][2] if at else k, label] += 1
                continue
            own[spans.index((begin, end)), 1 if y[at - 1][0] in borders else 2, label] += 1
            taken[0, y[at - 1][2], label] += 1
            if pairs is not None:
                met[couples.index((y[at - 1][:2], (begin, end))), kinds[label]] += 1
        if y:
            taken[1, y[-1][2], k] += 1
        used = np.concatenate([own.ravel(), taken.ravel(), met.ravel()])
        everything = np.concatenate([scores.ravel(), moves.ravel(), between.ravel()])
        listed.append(y)
        parts.append(used)
        values.append(float((used[used > 0] * everything[used > 0]).sum()))
    indicators: Array = np.array(parts).reshape(len(listed), -1)
    return BruteForce(listed, indicators, np.array(values))
