"""All derivations of an inversion transduction grammar, by what may stand around a core and what a core is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import BruteForce

__all__ = ["bitree_derivations", "brute_force_bitrees"]

Cell = tuple[int, int, int, int]
Part = tuple[int, int, int, int, int]
Derivation = frozenset[Part]


def _chain(core: Cell, whole: Cell) -> Iterator[Part]:
    """The cells that a core goes through while nulls are attached: to both ends of the source, then of the target."""
    i, k, j, h = core
    yield (i, k, j, h, -1)
    while i > whole[0]:
        i -= 1
        yield (i, k, j, h, -1)
    while k < whole[1]:
        k += 1
        yield (i, k, j, h, -1)
    while j > whole[2]:
        j -= 1
        yield (i, k, j, h, -1)
    while h < whole[3]:
        h += 1
        yield (i, k, j, h, -1)


def _shrunk(cell: Cell) -> Iterator[Cell]:
    i, k, j, h = cell
    for first in range(i, k):
        for last in range(first + 1, k + 1):
            for left in range(j, h):
                for right in range(left + 1, h + 1):
                    yield first, last, left, right


def _split(cell: Cell) -> Iterator[tuple[Cell, Cell]]:
    i, k, j, h = cell
    for p in range(i + 1, k):
        for q in range(j + 1, h):
            yield (i, p, j, q), (p, k, q, h)
            yield (i, p, q, h), (p, k, j, q)


def bitree_derivations(
    n_source: int, n_target: int, terminals: Iterable[tuple[Cell, int]], *, free: bool = False
) -> list[Derivation]:
    """All derivations with these terminals, cells with numbers of patterns; the empty one has no link at all.

    Examples
    --------
    >>> links = [((i, i + 1, j, j + 1), 0) for i in range(2) for j in range(2)]
    >>> len(bitree_derivations(2, 2, links)), len(bitree_derivations(1, 2, links[:2]))
    (7, 3)
    """
    listed = list(terminals)

    def leaves(cell: Cell) -> Iterator[Derivation]:
        for box, kind in listed:
            if box == cell:
                yield frozenset([(*cell, kind)])

    def joined(cell: Cell) -> Iterator[Derivation]:
        for left, right in _split(cell):
            for first in wholes(left):
                for second in wholes(right):
                    yield first | second

    def wholes(cell: Cell) -> Iterator[Derivation]:
        for core in _shrunk(cell):
            if not free and ((core[1] < cell[1] != n_source) or (core[3] < cell[3] != n_target)):
                continue
            made = list(leaves(core)) + (list(joined(core)) if free else [])
            for one in made:
                yield one | frozenset(_chain(core, cell))
        if not free:
            for one in joined(cell):
                yield one | {(*cell, -1)}

    found = [frozenset[Part]()]
    if n_source and n_target:
        found += list(wholes((0, n_source, 0, n_target)))
    return found


def brute_force_bitrees(
    scores: ArrayLike,
    size: tuple[int, int],
    cells: Sequence[Sequence[int]],
    terms: Sequence[Sequence[int]],
    patterns: Sequence[tuple[int, int, Sequence[tuple[int, int]]]],
    *,
    free: bool = False,
) -> BruteForce:
    """Every derivation; parts are words without links of both sides, terminals (cell, pattern) and cells."""
    array, (n, m) = np.asarray(scores, np.float64), size
    boxes = [tuple(int(corner) for corner in cell) for cell in cells]
    place: dict[tuple[int, ...], int] = {(*box, -1): n + m + len(terms) + c for c, box in enumerate(boxes)}
    place |= {(*boxes[c], int(kind)): n + m + t for t, (c, kind) in enumerate(terms)}
    listed = bitree_derivations(n, m, [(boxes[c], int(kind)) for c, kind in terms], free=free)  # type: ignore[misc]
    listed = [one for one in listed if all(part in place for part in one)]
    parts = np.zeros((len(listed), len(array)))
    for row, one in zip(parts, listed, strict=True):
        row[: n + m] = 1.0
        for part in one:
            row[place[part]] = 1.0
            if part[4] >= 0:
                for i, j in patterns[part[4]][2]:
                    row[part[0] + i] = row[n + part[2] + j] = 0.0
    log_scores = np.array([array[row > 0].sum() for row in parts])
    return BruteForce(listed, parts, log_scores)
