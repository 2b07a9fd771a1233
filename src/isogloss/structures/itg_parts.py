"""What alignments of an `Itg` are made of: terminals, blocks, and what pruning leaves of them."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, checked_scores, kept

__all__ = ["Blocks", "Links", "Pruning", "Terminal", "terminals"]

Links = frozenset[tuple[int, int]]
NO_BOUNDS = np.zeros((2, 0, 1), np.int16)


class Terminal(NamedTuple):
    """`n_source` source words from `source` on, linked to `n_target` target words from `target` on."""

    source: int
    target: int
    n_source: int = 1
    n_target: int = 1

    @property
    def links(self) -> Links:
        """All links of the terminal."""
        sources = range(self.source, self.source + self.n_source)
        return frozenset((i, j) for i in sources for j in range(self.target, self.target + self.n_target))


class Blocks(NamedTuple):
    """Scores of terminals that link one word to several neighbours on the other side; −∞ forbids.

    Both arrays are float64[n_source, n_target, size − 1], where `size` is the most words that a block may hold. Blocks
    that would reach past the end of the sentence are forbidden whatever their scores.

    Examples
    --------
    >>> blocks = Blocks.from_links(np.zeros((3, 2)), size=2, bias=-1.0)
    >>> blocks.many_source[:, 0, 0], blocks.many_target[:, :, 0].tolist()
    (array([ -1.,  -1., -inf]), [[-1.0, -inf], [-1.0, -inf], [-1.0, -inf]])
    """

    many_source: Array
    """[i, j, m]: source words i … i + m + 1 with target word j."""
    many_target: Array
    """[i, j, m]: source word i with target words j … j + m + 1."""

    @classmethod
    def from_links(cls, scores: ArrayLike, size: int = 4, *, mean: bool = True, bias: ArrayLike = 0.0) -> Blocks:
        """Blocks of up to `size` words that score the mean, or the sum, of their links, plus `bias` (for each length).

        Parameters
        ----------
        scores : float64[n_source, n_target]
        bias : float or float64[size − 1]
            Added to blocks of 2, 3, … words.
        """
        cells = checked_scores(scores, "Blocks: scores", (None, None))
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 2:
            raise ParameterError(f"Blocks: size should be 2 or more words, not {size!r}")
        extra = np.broadcast_to(np.asarray(bias, np.float64), (size - 1,))
        sides = []
        for axis in (0, 1):
            out = np.full((*cells.shape, size - 1), -np.inf)
            for m in range(2, min(size, cells.shape[axis]) + 1):
                windows = np.lib.stride_tricks.sliding_window_view(cells, m, axis=axis).sum(axis=-1)
                out[tuple(slice(n) for n in windows.shape) + (m - 2,)] = windows / (m if mean else 1) + extra[m - 2]
            sides.append(out)
        return cls(*sides)


def checked_blocks(blocks: Blocks | tuple[ArrayLike, ArrayLike], shape: tuple[int, int], place: str) -> Blocks:
    """Read-only copies, with −∞ where a block would reach past the end."""
    if not isinstance(blocks, tuple) or len(blocks) != 2:
        raise ParameterError(f"{place}: blocks should be Blocks(many_source, many_target), or None")
    sides = []
    for axis, name in enumerate(Blocks._fields):
        array = np.array(checked_scores(blocks[axis], f"{place}: blocks.{name}", (*shape, None)))
        room = shape[axis] - np.arange(shape[axis])  # words from each place to the end
        fits = room[:, None] >= np.arange(array.shape[2]) + 2
        sides.append(kept(np.where(fits[:, None, :] if axis == 0 else fits[None, :, :], array, -np.inf)))
    if sides[0].shape != sides[1].shape:
        raise ParameterError(f"{place}: both arrays of blocks should allow as many words, not {sides[0].shape[2] + 1} "
                             f"and {sides[1].shape[2] + 1}; fill the shorter with minus infinity")  # fmt: skip
    return Blocks(*sides)


def terminals(links: Iterable[tuple[int, int]]) -> tuple[Terminal, ...]:
    """The terminals that make up a set of links, in source order; every set of links has one such reading or none.

    Words that are linked, directly or through others, belong to one terminal, in which one side is a single word and
    the other an unbroken run of words.

    Examples
    --------
    >>> terminals({(0, 1), (1, 1), (2, 0)})
    (Terminal(source=0, target=1, n_source=2, n_target=1), Terminal(source=2, target=0, n_source=1, n_target=1))
    """
    targets: dict[int, list[int]] = {}
    sources: dict[int, list[int]] = {}
    for i, j in sorted(links):
        targets.setdefault(i, []).append(j)
        sources.setdefault(j, []).append(i)
    found = []
    for i, row in targets.items():
        column = sources[row[0]]
        crossed = (len(row) > 1 and any(len(sources[j]) > 1 for j in row)) or (
            len(column) > 1 and any(len(targets[other]) > 1 for other in column)
        )
        if crossed:
            raise ParameterError(
                f"Itg: the links of source word {i} are many to many; a terminal has one word on a side"
            )
        if row[-1] - row[0] + 1 != len(row) or column[-1] - column[0] + 1 != len(column):
            raise ParameterError(
                f"Itg: the links around source word {i} leave a gap; blocks are unbroken runs of words"
            )
        if i == column[0]:
            found.append(Terminal(i, row[0], len(column), len(row)))
    return tuple(found)


def is_separable(order: Iterable[int]) -> bool:
    """Whether different numbers can be sorted by swapping neighbouring runs, that is, do not stand as 2413 or 3142.

    Neighbouring runs are put together from left to right whenever their numbers follow each other: linear time.

    Examples
    --------
    >>> is_separable([2, 1, 0, 3]), is_separable([1, 3, 0, 2])
    (True, False)
    """
    values = list(order)
    ranks = {value: rank for rank, value in enumerate(sorted(values))}
    stack: list[tuple[int, int]] = []
    for value in values:
        low = high = ranks[value]
        while stack and (stack[-1][1] + 1 == low or high + 1 == stack[-1][0]):
            before = stack.pop()
            low, high = min(low, before[0]), max(high, before[1])
        stack.append((low, high))
    return len(stack) <= 1


class Pruning(NamedTuple):
    """What pruning leaves: terms, and how many confident links a cell may break."""

    keep: NDArray[np.bool_]
    """bool[n_terms]: links, nulls and blocks that may be used."""
    counts: NDArray[np.int64]
    """int64[n_source + 1, n_target + 1]: confident links before each corner."""
    limit: int
    """Negative: any number."""
    cells: int
    """How many cells are left."""
    bounds: NDArray[np.int16]
    """int16[2, n_spans, n_target]: from where to where rows of the chart go if that is known, or no spans."""


def make_pruning(
    forward: ArrayLike, backward: ArrayLike, shape: tuple[int, int], size: int, place: str,
    confident: float, cell_limit: float, negligible: float,
) -> Pruning:  # fmt: skip
    """Cells and terminals that two directional posteriors leave; see `Itg.prune`."""
    from isogloss.structures._numba.itg import chart_cells

    both = []
    for name, matrix in (("forward", forward), ("backward", backward)):
        array = np.asarray(matrix, np.float64)
        if array.shape != shape or not np.all(array >= 0):
            raise ParameterError(
                f"{place}: {name} should be posteriors of links, {list(shape)}, indexed (source, target)"
            )
        both.append(array)
    if not cell_limit >= 0:
        raise ParameterError(f"{place}: cell_limit should be a number of links, 0 or more, not {cell_limit!r}")
    highest = np.maximum(*both)
    links = highest >= negligible
    counts = np.zeros((shape[0] + 1, shape[1] + 1), np.int64)
    counts[1:, 1:] = (highest > confident).cumsum(axis=0).cumsum(axis=1)
    grown = Blocks.from_links(np.where(links, 1.0, 0.0), size, mean=False) if size > 1 else ()
    keep = np.concatenate([links.ravel(), np.ones(sum(shape), np.bool_), *(side.ravel() > 0 for side in grown)])
    limit = -1 if cell_limit == np.inf or counts[-1, -1] <= cell_limit else int(cell_limit)
    return Pruning(keep, counts, limit, int(chart_cells(*shape, counts, limit, NO_BOUNDS)), NO_BOUNDS)


def gold_counts(sure: Any, possible: Any, shape: tuple[int, ...], place: str) -> Array:
    """+1 for sure links, 0 for possible ones, −1 for others; links are a set of pairs or an array of booleans."""
    counts = np.full(shape, -1.0)
    for name, links, value in (("possible", possible, 0.0), ("sure", sure, 1.0)):
        if isinstance(links, np.ndarray) and links.shape == shape:
            counts[links.astype(np.bool_)] = value
            continue
        for i, j in links:
            if not (0 <= i < shape[0] and 0 <= j < shape[1]):
                raise ParameterError(f"{place}: {name} link {(i, j)} is outside the pair")
            counts[i, j] = value
    return counts


def lifted(scores: Array, levels: NDArray[np.int64]) -> Array:
    """Scores in which a higher level wins whatever the rest."""
    finite = scores[scores > -np.inf]
    return kept(np.asarray(scores + levels * (1.0 + 2.0 * np.abs(finite).sum())))  # read-only: one compiled kernel


def spread(vector: NDArray[Any], n_source: int, n_target: int, size: int) -> NDArray[Any]:
    """[n_source, n_target]: for each link, the sum over the terminals that have it."""
    cells = n_source * n_target
    out = np.array(vector[:cells]).reshape(n_source, n_target)
    for axis in range(2):
        first = cells + n_source + n_target + axis * cells * size
        side = vector[first : first + cells * size].reshape(n_source, n_target, size)
        for m in range(size):
            room = out.shape[axis] - m - 1
            if room > 0:
                block = side[:room, :, m] if axis == 0 else side[:, :room, m]
                for step in range(m + 2):
                    out[(slice(None),) * axis + (slice(step, step + room),)] += block
    return out


def shifted(terms: Array, n_source: int, n_target: int, size: int) -> tuple[Array, float]:
    """Terms of at most 0 that differ from `terms` by one constant an alignment, and that constant.

    Every alignment has each word in exactly one terminal or null, so that a potential taken from each word changes no
    posterior. The potentials are feasible for the dual of the assignment problem: no term exceeds those of its words.
    Blocks have them raised to equal shares; links then have them lowered as far as they allow, one side at a time. The
    closer to the optimum, the closer the best alignment is to 0. −∞ when some word can be nowhere.
    """
    cells, words = n_source * n_target, n_source + n_target
    links = terms[:cells].reshape(n_source, n_target)
    floors = [terms[cells : cells + n_source].copy(), terms[cells + n_source : cells + words].copy()]
    sides = terms[cells + words :].reshape(2, n_source, n_target, size)
    windows = [(axis, m, (n_source, n_target)[axis] - m - 1) for axis in range(2) for m in range(size)]
    windows = [(axis, m, room) for axis, m, room in windows if room > 0 and cells]
    for axis, m, room in windows:
        share = sides[axis, :, :, m] / (m + 3)
        many, one = share.max(axis=1 - axis)[:room], share.max(axis=axis)
        for step in range(m + 2):
            np.maximum(floors[axis][step : step + room], many, out=floors[axis][step : step + room])
        np.maximum(floors[1 - axis], one, out=floors[1 - axis])
    alpha, beta = floors
    if cells:
        alpha, beta = np.maximum(alpha, links.max(axis=1) / 2), np.maximum(beta, links.max(axis=0) / 2)
    if -np.inf in alpha or -np.inf in beta:
        return terms, -np.inf
    for _ in range(2 if cells else 0):
        beta = np.maximum(floors[1], (links - alpha[:, None]).max(axis=0))
        alpha = np.maximum(floors[0], (links - beta).max(axis=1))
    out = terms.copy()
    out[:cells] = (links - alpha[:, None] - beta).ravel()
    out[cells : cells + n_source] -= alpha
    out[cells + n_source : cells + words] -= beta
    sides = out[cells + words :].reshape(2, n_source, n_target, size)
    for axis, m, room in windows:
        taken = np.sum([(alpha, beta)[axis][step : step + room] for step in range(m + 2)], axis=0)
        if axis == 0:
            sides[0, :room, :, m] -= taken[:, None] + beta
        else:
            sides[1, :, :room, m] -= alpha[:, None] + taken
    return kept(out), float(alpha.sum() + beta.sum())


def checked_nulls(values: ArrayLike, n: int, name: str) -> Array:
    array = np.asarray(values, np.float64)
    return checked_scores(np.broadcast_to(array, (n,)) if array.ndim == 0 else array, f"Itg: {name}", (n,))
