"""All paths of a small graph, and all sets of items or paths with their determinants."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce

__all__ = ["all_paths", "brute_force_dpp", "brute_force_path_dpp", "brute_force_paths"]

Edges = Sequence[Sequence[int]]


def all_paths(n: int, edges: Edges, length: int, begins: Sequence[bool] | None = None) -> list[tuple[int, ...]]:
    """Every sequence of nodes in which each two neighbours are an edge.

    >>> all_paths(3, [[0, 1], [1, 2], [2, 2]], 3)
    [(0, 1, 2), (1, 2, 2), (2, 2, 2)]
    """
    there = {(u, v) for u, v in edges}
    return [
        path
        for path in itertools.product(range(n), repeat=length)
        if all(step in there for step in itertools.pairwise(path)) and (begins is None or begins[path[0]])
    ]


def brute_force_paths(
    n: int, edges: Edges, length: int, scores: ArrayLike, begins: Sequence[bool] | None = None
) -> BruteForce:
    """Every path, with scores of nodes and then of edges; parts are how often each is used."""
    array, place = np.asarray(scores, np.float64), {tuple(edge): n + k for k, edge in enumerate(edges)}
    listed = all_paths(n, edges, length, begins)
    uses: Array = np.zeros((len(listed), len(array)))
    log_scores = []
    for row, path in enumerate(listed):
        used = [*path, *(place[step] for step in itertools.pairwise(path))]
        for part in used:
            uses[row, part] += 1.0
        log_scores.append(sum(float(array[part]) for part in used))
    return BruteForce(listed, uses, np.array(log_scores))


def brute_force_dpp(scores: ArrayLike, features: ArrayLike, size: int | None = None) -> BruteForce:
    """Every set of items, or of `size` items, scored by log det(L_Y).

    >>> found = brute_force_dpp([0.0, 0.0], [[2.0, 0.0], [1.0, 1.0]])
    >>> found.structures, np.exp(found.log_scores).round(9).tolist()
    ([(), (0,), (1,), (0, 1)], [1.0, 4.0, 2.0, 4.0])
    """
    own, vectors = np.asarray(scores, np.float64), np.asarray(features, np.float64)
    n = len(own)
    listed = [y for k in range(n + 1) if size in (None, k) for y in itertools.combinations(range(n), k)]
    parts: Array = np.zeros((len(listed), n))
    log_scores = np.empty(len(listed))
    for row, y in enumerate(listed):
        parts[row, list(y)] = 1.0
        log_scores[row] = _log_det(own[list(y)], vectors[list(y)])
    return BruteForce(listed, parts, log_scores)


def brute_force_path_dpp(
    n: int,
    edges: Edges,
    length: int,
    scores: ArrayLike,
    features: ArrayLike,
    size: int | None = None,
    begins: Sequence[bool] | None = None,
) -> tuple[BruteForce, Array]:
    """Every set of paths, scored by log det(L_Y); and the dual kernel, Σ q² φ φᵀ over all paths."""
    paths, nodes = brute_force_paths(n, edges, length, scores, begins), np.asarray(features, np.float64)
    names = all_paths(n, edges, length, begins)
    vectors = np.array([nodes[list(path)].sum(axis=0) for path in names]).reshape(-1, nodes.shape[1])
    sets = brute_force_dpp(paths.log_scores, vectors, size)
    listed = [frozenset(names[row] for row in np.flatnonzero(used)) for used in sets.parts]
    dual = (vectors * np.exp(paths.log_scores)[:, None]).T @ vectors
    return BruteForce(listed, sets.parts @ paths.parts, sets.log_scores), dual


def _log_det(scores: Array, vectors: Array) -> float:
    """Σ scores + log det of the products of vectors of length 1, by elimination with the largest pivot."""
    if not len(scores):
        return 0.0
    if not (scores > -np.inf).all():
        return -np.inf
    lengths = np.sqrt((vectors**2).sum(axis=1))
    if not (lengths > 0).all():
        return -np.inf
    sign, value = np.linalg.slogdet((vectors @ vectors.T) / np.outer(lengths, lengths))
    if sign <= 0 or value < np.log(1e-13):
        return -np.inf
    return float(scores.sum() + 2 * np.log(lengths).sum() + value)
