"""From scores of links to trees: which structure, and how a tree is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.structures.batch import Batch, Stack

__all__ = ["DECODERS", "best_trees", "chances_of", "trees_of"]

DECODERS = ("mbr", "map")


def trees_of(scores: Stack, *, projective: bool, single_root: bool) -> Batch[Any]:
    """The distributions over trees with these scores of links."""
    if projective:
        from isogloss.structures.projective_batch import ProjectiveTrees

        return ProjectiveTrees(scores, single_root=single_root)
    from isogloss.structures.spanning import SpanningTrees

    return SpanningTrees(scores, single_root=single_root)


def best_trees(trees: Batch[Any], decoder: str) -> NDArray[np.int32]:
    r"""int32[n_words]: heads of all sentences, one after the other.

    ``mbr`` gives the tree with the most right heads in expectation, :math:`\arg\max_y \sum_j p(y_j \mid x)`; ``map``
    the most probable tree.
    """
    if decoder not in DECODERS:
        raise ParameterError(f"decoder should be one of {', '.join(DECODERS)}, not {decoder!r}")
    found = trees.with_scores(trees.marginals()).argmax() if decoder == "mbr" else trees.argmax()
    return np.concatenate([np.zeros(0, np.int32), *found]).astype(np.int32)


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
