"""Small graphs with paths, and features of their nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from isogloss.testing.strategies.base import Array, numbers

__all__ = ["PathInputs", "path_inputs"]


class PathInputs(NamedTuple):
    """What a distribution over paths, or over sets of them, is made of."""

    n: int
    edges: list[tuple[int, int]]
    length: int
    begins: NDArray[np.bool_] | None
    scores: Array
    """float64[n + n_edges]"""
    features: Array
    """float64[n, dimensions]"""


@st.composite
def path_inputs(
    draw: Any, *, max_n: int = 4, max_length: int = 3, spread: float = 0.7, most_paths: int = 14
) -> PathInputs:
    """Sparse and dense graphs with cycles, loops and nodes alone; forbidden nodes and edges; a node with features 0."""
    n, length = draw(st.integers(1, max_n)), draw(st.integers(1, max_length))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.2, 0.5, 1.0]))
    edges = [(u, v) for u in range(n) for v in range(n) if rng.random() < density]
    while _count(n, edges, length) > most_paths:
        edges.pop(int(rng.integers(len(edges))))
    edges = [edges[k] for k in rng.permutation(len(edges))]
    begins = rng.random(n) < 0.7 if draw(st.booleans()) else None
    scores = numbers(draw, (n + len(edges),), holes=draw(st.sampled_from([0.0, 0.1])), spread=spread)
    features = rng.normal(size=(n, draw(st.integers(1, 4))))
    if draw(st.booleans()):
        features[int(rng.integers(n))] = 0.0
    return PathInputs(n, edges, length, begins, scores, features)


def _count(n: int, edges: list[tuple[int, int]], length: int) -> int:
    steps = np.zeros((n, n))
    for u, v in edges:
        steps[u, v] = 1.0
    return int(np.linalg.matrix_power(steps, length - 1).sum())
