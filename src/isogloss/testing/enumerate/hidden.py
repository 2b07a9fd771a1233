"""All labellings of pairs together with all trees: what is summed when syntax is hidden."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce
from isogloss.testing.enumerate.brackets import all_spans, bracketings
from isogloss.testing.enumerate.trees import tree_parts, trees

__all__ = ["brute_force_hidden"]


def _all_trees(n: int, tree: str, single_root: bool) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Every tree, as it is written, and the parts that it has."""
    if tree == "none":
        yield (), np.zeros(0)
    elif tree == "brackets":
        for spans in bracketings(n, binary=True):
            held = tuple(int(span in spans) for span in all_spans(n))
            yield held, np.array(held, np.float64)
    else:
        for heads in trees(n, projective=tree == "projective", single_root=single_root):
            yield heads, tree_parts(heads).ravel()


def brute_force_hidden(
    scores: ArrayLike,
    n: int,
    n_pairs: int,
    n_labels: int,
    connectors: Sequence[tuple[int, Sequence[int]]],
    *,
    tree: str = "projective",
    single_root: bool = True,
    at_most_one: bool = False,
) -> BruteForce:
    """Every labelling of the pairs with every tree over n words.

    `connectors` are pairs with the parts of the tree all of which have to be there: one for a soft NAND of two, two for
    one of three. Scores are pair[P], label[P, L], connector[C] and those of the tree, as one vector.

    >>> one = brute_force_hidden(np.zeros(1 + 2 + 1 + 9), 2, 1, 2, [(0, (5,))])
    >>> len(one.structures), one.marginals[:4].round(3).tolist()        # two trees, one of which has the link 1 -> 2
    (6, [0.667, 0.333, 0.333, 0.333])
    """
    values = np.asarray(scores, np.float64)
    structures, rows = [], []
    choices = range(-1, n_labels + at_most_one)
    for written, cells in _all_trees(n, tree, single_root):
        for labels in itertools.product(choices, repeat=n_pairs):
            pair = np.array([label >= 0 for label in labels], np.float64)
            named = np.array([[label == a for a in range(n_labels)] for label in labels], np.float64)
            joined = [pair[p] * np.prod([cells[c] for c in parts]) for p, parts in connectors]
            structures.append((*labels, *written))
            rows.append(np.concatenate([pair, named.ravel(), np.array(joined, np.float64), cells]))
    parts = np.array(rows).reshape(len(rows), len(values))
    return BruteForce(structures, parts, np.array([values[row > 0].sum() for row in parts]))
