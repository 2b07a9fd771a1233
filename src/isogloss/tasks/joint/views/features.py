"""How pairs of nodes are seen: links between their words, their labels and their sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.features.sparse import Sparse

__all__ = ["FIRST", "Grid", "PairFeatures"]

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
BOTH, SOURCE_ONLY, TARGET_ONLY = "links inside both", "links out of the source", "links out of the target"
DENSITIES = (BOTH, SOURCE_ONLY, TARGET_ONLY)
FIRST = {BOTH: 1.0, SOURCE_ONLY: -1.0, TARGET_ONLY: -1.0, "same label": 0.5}
"""Weights of the first matchings: nodes whose words are linked with each other go together."""
MOST_CHILDREN = 4


class Grid:
    """Probabilities of the links of a pair, with sums over all rectangles at hand.

    >>> grid = Grid(np.array([[0.5, 0.0], [0.25, 1.0]]))
    >>> both, source, target = grid.densities(np.array([[0, 1]]), np.array([[0, 2]]))
    >>> both.tolist(), source.tolist(), target.tolist()
    ([[0.5]], [[0.0]], [[1.25]])
    """

    def __init__(self, links: Array) -> None:
        self.sums = np.zeros((links.shape[0] + 1, links.shape[1] + 1))
        self.sums[1:, 1:] = links.cumsum(axis=0).cumsum(axis=1)

    def densities(self, source: Numbers, target: Numbers) -> tuple[Array, Array, Array]:
        """Links with both ends, with the source end alone, and with the target end alone inside of two spans.

        source : int64[n, 2], target : int64[m, 2]; float64[n, m] each.
        """
        sums = self.sums
        (b, e), (c, f) = source.T[:, :, None], target.T[:, None, :]
        both = sums[e, f] - sums[b, f] - sums[e, c] + sums[b, c]
        rows, columns = sums[e, -1] - sums[b, -1], sums[-1, f] - sums[-1, c]
        return tuple(np.maximum(one, 0.0) for one in (both, rows - both, columns - both))  # type: ignore[return-value]


@dataclass(frozen=True)
class PairFeatures:
    """The features of pairs of nodes.

    Values come first, then indicators of pairs of labels and, of trees, of numbers of children and of directions.

    Parameters
    ----------
    source, target : tuple of str
        Labels of both sides; others have no indicator.
    threshold : float
        Links more probable than that are links.
    trees : bool
        Whether nodes are links of trees.
    least : float
        Pairs of nodes whose words are linked less than that have no features, and are not matched.
    shared : callable
        What a label is called in both languages; labels that are called the same are the same.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    threshold: float
    trees: bool = False
    least: float = 0.0
    shared: Callable[[str], str] = str

    @property
    def values(self) -> tuple[str, ...]:
        """Names of real-valued features."""
        hard = tuple(f"sure {name}" for name in DENSITIES)
        of_trees = ("words linked", "heads linked", "words and heads linked", "same direction") if self.trees else ()
        return (*DENSITIES, *hard, "pair", "same label", "difference of lengths", *of_trees)

    @property
    def names(self) -> tuple[str, ...]:
        """All features in the order of the weights."""
        pairs = tuple(f"{one} – {two}" for one in self.source for two in self.target)
        sizes = range(MOST_CHILDREN + 1)
        children = tuple(f"{one} and {two} children" for one in sizes for two in sizes) if self.trees else ()
        return (*self.values, *pairs, *children)

    def first(self) -> Array:
        """Weights of the first matchings."""
        return np.array([FIRST.get(name, 0.0) for name in self.names])

    def matrix(self, source: Sequence[Numbers], target: Sequence[Numbers], links: Sequence[Array]) -> Sparse:
        """A row for each pair of nodes of each item, source node by source node, from tables of nodes."""
        counts, indices, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
        for one, two, posteriors in zip(source, target, links, strict=True):
            kept, numbers, much = self._rows(one, two, np.asarray(posteriors, np.float64))
            counts.append(np.where(kept, numbers.shape[1], 0))
            indices.append(numbers[kept].ravel())
            values.append(much[kept].ravel())
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        return Sparse(indptr, np.concatenate(indices), len(self.names), np.concatenate(values))

    def _rows(
        self, one: Numbers, two: Numbers, links: Array
    ) -> tuple[NDArray[np.bool_], Numbers, Array]:  # fmt: skip
        """For each pair of nodes: whether it has features, their numbers, and their values."""
        soft = Grid(links).densities(one[:, :2], two[:, :2])
        hard = Grid((links > self.threshold).astype(np.float64)).densities(one[:, :2], two[:, :2])
        shape = soft[0].shape
        same = self._same()[one[:, 2][:, None], two[:, 2][None, :]]
        wide = (one[:, 1] - one[:, 0])[:, None] - (two[:, 1] - two[:, 0])[None, :]
        columns: list[Array] = [*soft, *hard, np.ones(shape), same, np.abs(wide).astype(np.float64)]
        kept = soft[0] >= self.least
        n_values, pairs = len(self.values), len(self.source) * len(self.target)
        label = np.where(
            (one[:, 2][:, None] >= 0) & (two[:, 2][None, :] >= 0),
            n_values + one[:, 2][:, None] * len(self.target) + two[:, 2][None, :], 0,
        )  # fmt: skip
        indicators = [label]
        if self.trees:
            words, heads = _between(links, one[:, 3], two[:, 3]), _between(links, one[:, 4], two[:, 4])
            turned = (one[:, 4] < one[:, 3])[:, None] == (two[:, 4] < two[:, 3])[None, :]
            columns += [words, heads, words * heads, turned.astype(np.float64)]
            kept = words >= self.least
            most = np.minimum(one[:, 5], MOST_CHILDREN)[:, None], np.minimum(two[:, 5], MOST_CHILDREN)[None, :]
            indicators.append(n_values + pairs + most[0] * (MOST_CHILDREN + 1) + most[1])
        numbers = [np.broadcast_to(np.int64(k), shape) for k in range(n_values)] + indicators
        columns += [(each > 0).astype(np.float64) for each in indicators]
        flat = [np.stack([each.ravel() for each in some], axis=1) for some in (numbers, columns)]
        return kept.ravel(), flat[0].astype(np.int64), flat[1].astype(np.float64)

    def _same(self) -> Array:
        """float64[n_source + 1, n_target + 1]: whether labels are the same; the last ones stand for unknown labels."""
        out = np.zeros((len(self.source) + 1, len(self.target) + 1))
        for i, label in enumerate(self.source):
            for j, other in enumerate(self.target):
                out[i, j] = self.shared(label) == self.shared(other)
        return out


def _between(links: Array, words: Numbers, others: Numbers) -> Any:
    """float64[n, m]: probabilities of links between words; two roots are linked, a root and a word are not."""
    padded = np.zeros((links.shape[0] + 1, links.shape[1] + 1))
    padded[:-1, :-1] = links
    padded[-1, -1] = 1.0
    return padded[words[:, None], others[None, :]]
