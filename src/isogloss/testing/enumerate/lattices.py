"""All sequences over lists of labels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce

__all__ = ["brute_force_factored_lattice", "brute_force_lattice", "lattice_part_names"]

Lists = Sequence[Sequence[int]]


def lattice_part_names(lists: Lists, order: int = 1) -> list[tuple[int, ...]]:
    """(t, label), then (t, label before, label), then at order 2 (t, two labels before, label): every part, in order.

    >>> lattice_part_names([[3, 5], [0]])
    [(0, 3), (0, 5), (1, 0), (1, 3, 0), (1, 5, 0)]
    """
    return [
        (t, *labels)
        for many in range(1, order + 2)
        for t in range(many - 1, len(lists))
        for labels in itertools.product(*lists[t + 1 - many : t + 1])
    ]


def brute_force_lattice(lists: Lists, scores: ArrayLike, order: int = 1) -> BruteForce:
    """Every sequence of labels from the lists, with scores of all parts.

    >>> round(float(np.exp(brute_force_lattice([[3, 5], [0], [1, 2, 3]], np.zeros(11)).log_partition)), 9)
    6.0
    """
    array, place = np.asarray(scores, np.float64), {n: i for i, n in enumerate(lattice_part_names(lists, order))}
    listed = list(itertools.product(*lists))
    parts: Array = np.zeros((len(listed), len(place)))
    for row, y in enumerate(listed):
        for many in range(1, order + 2):
            for t in range(many - 1, len(y)):
                parts[row, place[(t, *y[t + 1 - many : t + 1])]] = 1.0
    return BruteForce(listed, parts, np.array([array[used > 0].sum() for used in parts]))


def brute_force_factored_lattice(lists: Lists, nodes: ArrayLike, transitions: ArrayLike) -> tuple[BruteForce, Array]:
    """The same with shared transitions, [k + 1, k] or [k + 1, k + 1, k]: parts are nodes; and expected transitions."""
    own, table = np.asarray(nodes, np.float64), np.asarray(transitions, np.float64)
    place = {name: i for i, name in enumerate(lattice_part_names(lists, 0))}
    k, order = table.shape[-1], table.ndim - 1
    listed = list(itertools.product(*lists))
    parts: Array = np.zeros((len(listed), len(place)))
    used: Array = np.zeros((len(listed), *table.shape))
    for row, y in enumerate(listed):
        whole = (k,) * order + y
        for t, label in enumerate(y):
            parts[row, place[t, label]] = 1.0
            used[(row, *whole[t : t + order + 1])] += 1.0
    flat = used.reshape(len(listed), -1)
    log_scores = [own[p > 0].sum() + (u[u > 0] * table.ravel()[u > 0]).sum() for p, u in zip(parts, flat, strict=True)]
    truth = BruteForce(listed, parts, np.array(log_scores))
    return truth, np.tensordot(truth.probabilities, used, 1)
