"""From scores of parts to trees: which distribution, and how a tree is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, kept
from isogloss.structures.batch import Batch, Stack
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import TreeParts
from isogloss.tasks.parse.options import DECODERS, MOST_ROUNDS

__all__ = ["DECODERS", "MOST_ROUNDS", "Shape", "best_trees", "chances_of", "pieces"]

CELLS = 1 << 20
"""Links that are scored at a time."""


@dataclass(frozen=True)
class Shape:
    """What trees are like, and how beliefs about them are found.

    Parameters
    ----------
    constraint : str
        One of `isogloss.structures.loopy.CONSTRAINTS`.
    single_root : bool
    families : tuple of str
        Larger parts that have scores; none for first order.
    rounds : int
        Of belief propagation.
    """

    constraint: str = "projective"
    single_root: bool = True
    families: tuple[str, ...] = ()
    rounds: int = 5

    @property
    def projective(self) -> bool:
        return self.constraint == "projective"

    @property
    def options(self) -> dict[str, Any]:
        """Those of `LoopyTrees`."""
        return {"constraint": self.constraint, "single_root": self.single_root, "iterations": self.rounds}

    def trees(self, parts: TreeParts, scores: Array) -> LoopyTrees:
        """The distributions over trees with these scores."""
        return LoopyTrees(parts, scores, **self.options)


def best_trees(trees: LoopyTrees, decoder: str) -> NDArray[np.int32]:
    r"""int32[n_words]: heads of all sentences, one after the other.

    ``mbr`` gives the tree with the most right heads in expectation, :math:`\arg\max_y \sum_j p(y_j \mid x)`; ``map``
    the most probable tree (with more than links scored, the most probable by the messages that the tree hears).
    """
    if decoder not in DECODERS:
        raise ParameterError(f"decoder should be one of {', '.join(DECODERS)}, not {decoder!r}")
    found: Any = trees.argmax() if decoder == "map" else _most_expected(trees).argmax()
    return np.concatenate([np.zeros(0, np.int32), *found]).astype(np.int32)


def _most_expected(trees: LoopyTrees) -> Batch[Any]:
    """Trees over the candidates, scored by posteriors."""
    parts = trees.layout
    worth = parts.of_links(trees.marginals().values[parts.link_places], -np.inf)
    return trees.tree_factor().with_scores(worth.like(kept(worth.values)))


def chances_of(marginals: Stack, heads: NDArray[np.int32]) -> NDArray[np.float64]:
    """float64[n_words]: the posterior of each word's link to its head."""
    return marginals.values[cells_of(marginals, heads)]


def cells_of(stack: Stack, heads: NDArray[np.int32]) -> NDArray[np.int64]:
    """int64[n_words]: where the link of each word stands in the values of a stack."""
    sizes = stack.shapes[:, 0]
    words = sizes - 1
    first = np.concatenate([[0], np.cumsum(words)[:-1]]).astype(np.int64)
    child = np.arange(len(heads)) - np.repeat(first, words) + 1
    return np.asarray(np.repeat(stack.offsets[:-1], words) + heads.astype(np.int64) * np.repeat(sizes, words) + child)


def pieces(lengths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Runs of sentences that have about `CELLS` links."""
    cells = np.cumsum((lengths + 1) ** 2) // CELLS
    cuts = np.flatnonzero(np.diff(cells)) + 1
    for start, stop in zip(np.append(0, cuts).tolist(), np.append(cuts, len(lengths)).tolist(), strict=True):
        if stop > start:
            yield np.arange(start, stop)
