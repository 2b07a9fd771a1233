"""How two words stand to each other in a source tree: the configurations of quasi-synchronous grammars.

A link x → y of one tree is described by the configuration of x' and y', the words that x and y go with, in another
tree: of the same sentence in another style, or of its translation. Nothing is forbidden; each configuration is more or
less probable.

References
----------
Smith and Eisner, Quasi-synchronous grammars: alignment by soft projection of syntactic dependencies, WMT 2006. Smith,
PhD thesis, Johns Hopkins 2010, section 4.3 and figure 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import row_number
from isogloss.engine.threads import run_blocks
from isogloss.errors import ParameterError

__all__ = ["CONFIGURATIONS", "NULL", "Configurations", "Paths", "configurations", "configurations_of_pairs", "paths"]

CONFIGURATIONS = (
    "same", "parent-child", "child-parent", "siblings", "grandparent", "c-command", "none", "null",
)  # fmt: skip
"""By number, in the order in which they are looked for: the first that fits is taken.

The same word; x' is the head of y'; y' is the head of x'; both have the same head; x' is the head of the head of y';
x' c-commands y': the head of x' is above y', and x' is not; none of these; or one of the two words goes with nothing.
The root is a node like words: it is the head of the root word, and children of the root (there may be several) are
siblings. A word whose head is not known has no place in the tree but above its own children.
"""
NULL = CONFIGURATIONS.index("null")
SENTENCES_PER_BLOCK = 64
LONGEST = 4
"""Links that a path may have."""


@dataclass(frozen=True, eq=False)
class Configurations:
    """The configuration of every pair (x', y') of nodes, as int8[n + 1, n + 1] for each sentence, the root first.

    Parameters
    ----------
    values : int8[n_pairs]
    offsets : int64[n_sentences + 1]
        Where the pairs of each sentence begin.
    """

    values: NDArray[np.int8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, s: int) -> NDArray[np.int8]:
        at = row_number(s, len(self), "Configurations")
        own = self.values[self.offsets[at] : self.offsets[at + 1]]
        return own.reshape(isqrt(len(own)), -1)

    def __iter__(self) -> Iterator[NDArray[np.int8]]:
        return (self[s] for s in range(len(self)))


def configurations(heads: ArrayLike, offsets: ArrayLike) -> Configurations:
    """The configuration of every pair of nodes of source trees.

    Parameters
    ----------
    heads : int[n_words]
        Of all sentences: 0 for the root, 1 to n, or −1 where not known.
    offsets : int[n_sentences + 1]

    Examples
    --------
    >>> tree = configurations([2, 0, 2, 3], [0, 4])[0]
    >>> [CONFIGURATIONS[c] for c in tree[1]]                                      # of word 1 to the root, 1, 2, 3, 4
    ['none', 'same', 'child-parent', 'siblings', 'c-command']
    """
    tree, bounds, sizes = _checked(heads, offsets)
    places = np.concatenate([[0], np.cumsum(sizes * sizes)]).astype(np.int64)
    out = np.empty(int(places[-1]), np.int8)
    from isogloss.tasks.parse._numba.configurations import configure

    run_blocks(configure, max(1, len(sizes) // SENTENCES_PER_BLOCK), bounds, tree, places, out)
    return Configurations(out, places)


def configurations_of_pairs(matrix: NDArray[np.int8], x: ArrayLike, y: ArrayLike) -> NDArray[np.int8]:
    """int8: the configurations of pairs of nodes of one sentence; `NULL` where either is −1, a word without partner.

    Examples
    --------
    >>> tree = configurations([0, 1], [0, 2])[0]
    >>> [CONFIGURATIONS[c] for c in configurations_of_pairs(tree, [0, 1, 1], [1, 2, -1])]
    ['parent-child', 'parent-child', 'null']
    """
    first, second = np.broadcast_arrays(np.asarray(x, np.int64), np.asarray(y, np.int64))
    most = len(matrix) - 1
    for nodes in (first, second):
        if nodes.size and not -1 <= nodes.min() <= nodes.max() <= most:
            raise ParameterError(f"configurations_of_pairs: nodes should be numbers from -1 to {most}")
    return np.where((first < 0) | (second < 0), NULL, matrix[first, second]).astype(np.int8)


class Paths(NamedTuple):
    """Codes of the ways between pairs of nodes, laid out as the values of `configurations`; −1 where there is none.

    Parameters
    ----------
    relations : int64[n_pairs]
        Of directions and relations.
    inner : int64[n_pairs]
        The same without the relation by which a phrase hangs on x' itself, where the way leads down from there by two
        links or more: in *saw cats and dogs*, from *saw* to *and* it is "down conj, down cc", whatever *cats* is to
        *saw*.
    tags : int64[n_pairs]
        Of directions and the tags of the nodes on the way.
    """

    relations: NDArray[np.int64]
    inner: NDArray[np.int64]
    tags: NDArray[np.int64]


def paths(
    heads: ArrayLike,
    offsets: ArrayLike,
    relations: NDArray[np.uint64],
    tags: NDArray[np.uint64],
    longest: int = LONGEST,
) -> Paths:
    """The ways of 1 to `longest` links from x' to y' through the tree; ours, finer than `configurations`.

    Parameters
    ----------
    heads, offsets
        As of `configurations`; there should be no cycle.
    relations, tags : uint64[n_words]
        Codes of the relations of words to their heads, and of their tags.
    longest : int
    """
    tree, bounds, sizes = _checked(heads, offsets)
    if relations.shape != tree.shape or tags.shape != tree.shape:
        raise ParameterError(f"paths: relations and tags should have {len(tree)} codes, one for each word")
    places = np.concatenate([[0], np.cumsum(sizes * sizes)]).astype(np.int64)
    out = np.empty((3, int(places[-1])), np.int64)
    from isogloss.tasks.parse._numba.configurations import trace_paths

    codes = (np.ascontiguousarray(relations), np.ascontiguousarray(tags))
    run_blocks(trace_paths, max(1, len(sizes) // SENTENCES_PER_BLOCK), bounds, tree, *codes, longest, places, out)
    return Paths(*out)


def _checked(heads: ArrayLike, offsets: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Heads and offsets as kernels take them, and the number of nodes of each sentence."""
    tree, bounds = np.ascontiguousarray(heads, np.int32), np.ascontiguousarray(offsets, np.int64)
    if bounds.ndim != 1 or not len(bounds) or bounds[0] != 0 or bounds[-1] != len(tree) or (np.diff(bounds) < 0).any():
        raise ParameterError(f"configurations: offsets should begin with 0, never fall, and end with {len(tree)}")
    lengths = np.diff(bounds)
    if ((tree < -1) | (tree > np.repeat(lengths, lengths))).any():
        raise ParameterError("configurations: heads should be numbers from -1 to the number of words of the sentence")
    return tree, bounds, lengths + 1
