"""Every path through a lattice of segments, with every source position or none for each of its arcs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import BruteForce

__all__ = ["brute_force_aligned_segments"]


def brute_force_aligned_segments(
    arcs: Sequence[tuple[int, int, int]],
    borders: Sequence[bool],
    emission: ArrayLike,
    weights: ArrayLike,
    steps: tuple[ArrayLike, ArrayLike],
    final: ArrayLike,
) -> BruteForce:
    """Paths as (arc, position) with −1 for null; parts are emissions, weights, steps inside and across, and ends.

    >>> free = np.zeros((2, 2))
    >>> whole = brute_force_aligned_segments(
    ...     [(0, 1, 0), (0, 2, 1), (1, 2, 2)], [True, False, True], np.zeros((3, 2)), np.zeros(3), (free, free), [0, 0])
    >>> round(float(np.exp(whole.log_partition)), 9)      # ab, or a b, each from one position or null
    6.0
    """
    rows, own, ends = (np.asarray(one, np.float64) for one in (emission, weights, final))
    tables = [np.asarray(one, np.float64) for one in steps]
    m = rows.shape[1] - 1
    paths: list[list[int]] = []

    def extend(node: int, taken: list[int]) -> None:
        if node == len(borders) - 1:
            paths.append(taken)
            return
        for number, (tail, head, _) in enumerate(arcs):
            if tail == node:
                extend(head, [*taken, number])

    extend(0, [])
    listed, parts, values = [], [], []
    everything = np.concatenate([rows.ravel(), own, tables[0].ravel(), tables[1].ravel(), ends])
    for path in paths:
        for positions in itertools.product(range(-1, m), repeat=len(path)):
            used = [np.zeros(one.shape) for one in (rows, own, *tables, ends)]
            carried = m
            for arc, position in zip(path, positions, strict=True):
                tail, _, row = arcs[arc]
                used[0][row, position] += 1  # −1 is the last column
                used[1][arc] += 1
                used[3 if borders[tail] else 2][carried, position] += 1
                carried = carried if position < 0 else position
            used[4][carried] += 1
            flat = np.concatenate([one.ravel() for one in used])
            listed.append(tuple(zip(path, positions, strict=True)))
            parts.append(flat)
            values.append(float((flat[flat > 0] * everything[flat > 0]).sum()))
    return BruteForce(listed, np.array(parts).reshape(len(listed), len(everything)), np.array(values))
