"""All alignments of an inversion transduction grammar, found by what they are, not by the grammar that builds them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce

__all__ = ["brute_force_itg", "is_block_itg", "itg_alignments", "itg_kinds"]

Links = frozenset[tuple[int, int]]
Cell = tuple[int, int, int, int]  # first source word and after the last, first target word and after the last


def _separable(order: Sequence[int]) -> bool:
    """No four of the numbers stand as 2413 or as 3142."""
    for four in itertools.combinations(order, 4):
        ranks = tuple(sorted(four).index(value) for value in four)
        if ranks in ((1, 3, 0, 2), (2, 0, 3, 1)):
            return False
    return True


def _cells(links: Links) -> list[Cell] | None:
    """The boxes around connected links, in source order; None if one is no word with an unbroken run of words."""
    left, cells = set(links), []
    while left:
        group, new = set(), {min(left)}
        while new:
            group |= new
            new = {other for other in left - group for one in new if other[0] == one[0] or other[1] == one[1]}
        sources, targets = {i for i, _ in group}, {j for _, j in group}
        box = (min(sources), max(sources) + 1, min(targets), max(targets) + 1)
        full = len(group) == (box[1] - box[0]) * (box[3] - box[2])
        if not full or min(len(sources), len(targets)) > 1:
            return None
        cells.append(box)
        left -= group
    return cells


def is_block_itg(links: Links, size: int = 1) -> bool:
    """Whether a set of links is an alignment of the family whose blocks have up to `size` words.

    >>> is_block_itg(frozenset({(0, 0), (1, 0)})), is_block_itg(frozenset({(0, 0), (1, 0)}), size=2)
    (False, True)
    """
    cells = _cells(links)
    if cells is None or any(max(k - i, h - j) > size for i, k, j, h in cells):
        return False
    return _separable([j for _, _, j, _ in cells])


def _choices(i: int, n_source: int, free: frozenset[int], size: int) -> Iterator[tuple[int, Links]]:
    """Null, a link or a block for source word i: the next source word, and the links."""
    yield i + 1, frozenset()
    for j in sorted(free):
        for m in range(1, size + 1):
            if i + m <= n_source:
                yield i + m, frozenset((word, j) for word in range(i, i + m))
            if m > 1 and all(j + step in free for step in range(m)):
                yield i + 1, frozenset((i, j + step) for step in range(m))


def itg_alignments(n_source: int, n_target: int, size: int = 1) -> list[Links]:
    """All alignments of the family: one word to one, or blocks of up to `size` words, in a separable order.

    >>> [len(itg_alignments(n, n)) for n in range(5)], len(itg_alignments(3, 4, size=4))
    ([1, 2, 7, 34, 207], 215)
    """
    found: list[Links] = []

    def extend(i: int, free: frozenset[int], links: Links) -> None:
        if i == n_source:
            if _separable([j for _, _, j, _ in _cells(links) or []]):
                found.append(links)
            return
        for after, more in _choices(i, n_source, free, size):
            extend(after, free - {j for _, j in more}, links | more)

    extend(0, frozenset(range(n_target)), frozenset())
    return found


def itg_kinds(links: Links, n_source: int, n_target: int, size: int = 1) -> list[Array]:
    """1 for each link alone, source null, target null, block of source words and block of target words."""
    shape = (n_source, n_target)
    out = [np.zeros(shape), np.ones(n_source), np.ones(n_target), *(np.zeros((*shape, size - 1)) for _ in range(2))]
    for i, k, j, h in _cells(links) or []:
        out[1][i:k] = out[2][j:h] = 0.0
        if (k - i, h - j) == (1, 1):
            out[0][i, j] = 1.0
        else:
            out[3 if k - i > 1 else 4][i, j, max(k - i, h - j) - 2] = 1.0
    return out


def brute_force_itg(
    scores: ArrayLike,
    source_null: ArrayLike = 0.0,
    target_null: ArrayLike = 0.0,
    blocks: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    flat: bool = False,
) -> BruteForce:
    """Every alignment; parts are links, or with `flat` links, nulls and blocks one after the other."""
    array = np.asarray(scores, np.float64)
    n_source, n_target = array.shape
    sides = [np.zeros((*array.shape, 0))] * 2 if blocks is None else [np.asarray(side, np.float64) for side in blocks]
    size = sides[0].shape[2] + 1
    nulls = (np.broadcast_to(source_null, n_source), np.broadcast_to(target_null, n_target))
    terms = np.concatenate([np.ravel(part) for part in (array, *nulls, *sides)])
    listed = itg_alignments(n_source, n_target, size)
    kinds = [np.concatenate([k.ravel() for k in itg_kinds(y, n_source, n_target, size)]) for y in listed]
    log_scores = np.array([terms[used > 0].sum() for used in kinds])
    if flat:
        return BruteForce(listed, np.array(kinds), log_scores)
    parts = np.zeros((len(listed), *array.shape))
    for row, links in zip(parts, listed, strict=True):
        for link in links:
            row[link] = 1.0
    return BruteForce(listed, parts, log_scores)
