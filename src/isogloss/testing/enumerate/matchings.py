"""All sets of links in which words have few."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import BruteForce

__all__ = ["brute_force_matching", "link_sets", "matching_score", "matchings"]


def matchings(n_source: int, n_target: int) -> list[frozenset[tuple[int, int]]]:
    """All sets of links (source, target) in which no word has more than one.

    >>> len(matchings(2, 3)), len(matchings(3, 3))
    (13, 34)
    """
    found = []
    for size in range(min(n_source, n_target) + 1):
        for chosen in itertools.combinations(range(n_source), size):
            for partners in itertools.permutations(range(n_target), size):
                found.append(frozenset(zip(chosen, partners, strict=True)))
    return found


def link_sets(n_source: int, n_target: int, most_source: int, most_target: int) -> list[frozenset[tuple[int, int]]]:
    """All sets of links in which source words have at most `most_source` links, and target words `most_target`.

    >>> len(link_sets(2, 2, 1, 1)), len(link_sets(2, 2, 2, 2)), len(link_sets(2, 2, 2, 1))
    (7, 16, 9)
    """
    one_word = [c for size in range(most_source + 1) for c in itertools.combinations(range(n_target), size)]
    found = []
    for rows in itertools.product(one_word, repeat=n_source):
        degrees = [0] * n_target
        for row in rows:
            for j in row:
                degrees[j] += 1
        if max(degrees, default=0) <= most_target:
            found.append(frozenset((i, j) for i, row in enumerate(rows) for j in row))
    return found


def matching_score(
    links: Iterable[tuple[int, int]],
    scores: ArrayLike,
    source_null: ArrayLike = 0.0,
    target_null: ArrayLike = 0.0,
    source_penalty: ArrayLike | None = None,
    target_penalty: ArrayLike | None = None,
    pairs: tuple[Any, Any] | None = None,
) -> float:
    """Log score of a set of links, term by term from the definition.

    `source_penalty` and `target_penalty` are [n, D − 1], what the second, third, … link of a word takes; `pairs` is
    ([(i, j, k, l), …], [score, …]).
    """
    table, chosen = np.asarray(scores, np.float64), set(links)
    n_source, n_target = table.shape
    total = sum((float(table[link]) for link in chosen), 0.0)
    for side, (n, null, penalty) in enumerate(
        ((n_source, source_null, source_penalty), (n_target, target_null, target_penalty))
    ):
        nulls = np.broadcast_to(np.asarray(null, np.float64), (n,))
        for word in range(n):
            degree = sum(link[side] == word for link in chosen)
            if degree == 0:
                total += float(nulls[word])
            for further in range(degree - 1):
                total -= float(np.asarray(penalty)[word, further])
    for (i, j, k, m), score in zip(*(pairs or ((), ())), strict=True):
        if (i, j) in chosen and (k, m) in chosen:
            total += float(score)
    return total


def brute_force_matching(
    scores: ArrayLike,
    source_null: ArrayLike = 0.0,
    target_null: ArrayLike = 0.0,
    source_penalty: ArrayLike | None = None,
    target_penalty: ArrayLike | None = None,
    pairs: tuple[Any, Any] | None = None,
) -> BruteForce:
    """Every set of links, with as many a word as there are penalties, plus one; parts are links.

    >>> round(float(np.exp(brute_force_matching(np.zeros((2, 3))).log_partition)), 9)
    13.0
    """
    table = np.asarray(scores, np.float64)
    n_source, n_target = table.shape
    most = [1 if penalty is None else np.shape(penalty)[1] + 1 for penalty in (source_penalty, target_penalty)]
    listed = matchings(n_source, n_target) if most == [1, 1] else link_sets(n_source, n_target, *most)
    parts = np.zeros((len(listed), n_source, n_target))
    for row, links in zip(parts, listed, strict=True):
        for link in links:
            row[link] = 1.0
    model = (table, source_null, target_null, source_penalty, target_penalty, pairs)
    return BruteForce(listed, parts, np.array([matching_score(links, *model) for links in listed]))
