"""Second-order projective parsing with exact sums in place of belief propagation, over the same parts and scores.

For comparison alone: O(n⁴) time and arrays of n³ cells, with factors GRAND and CHILDSEQ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Treebank
from isogloss.structures import ProjectiveTrees
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import TreeParts
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.inference import Shape

CELLS = 1 << 23
"""Triples of words in the dense arrays that are there at a time."""
FAMILIES = {"grand", "siblings"}
Array = NDArray[np.float64]


class Run(NamedTuple):
    """The children that a head may have on one side, outward: nodes with the head itself first, and their parts."""

    head: int
    nodes: NDArray[np.int64]
    parts: slice


def runs_of(parts: TreeParts, k: int) -> Iterator[Run]:
    """Those of one sentence that are not empty; `isogloss.structures._numba.tree_parts` says how pairs are numbered."""
    base, at = parts.link_offsets[k], int(parts.begins[k, 2])
    starts = parts.run_starts[parts.run_offsets[k] : parts.run_offsets[k + 1]]
    for number, (start, stop) in enumerate(pairwise(starts[: 2 * int(parts.lengths[k]) + 3].tolist())):
        m = stop - start
        if m:
            children = parts.child[base + parts.run_links[base + start : base + stop]]
            count = (m + 1) * (m + 2) // 2
            yield Run(number // 2, np.append(number // 2, children), slice(at, at + count))
            at += count


class Dense(NamedTuple):
    """One sentence as the exact program takes it: a tree has the score of `TreeParts`, less `constant`."""

    scores: Array
    siblings: Array | None
    grandparents: Array | None
    constant: float


def dense(parts: TreeParts, values: Array, k: int) -> Dense:
    """The scores of one sentence in arrays over all words; links that are no candidates have −∞.

    Children in a row end with a part of their own, (last child, none after), which the exact program does not have: it
    is spread over the links, each adding its own and taking back that of the one before.
    """
    if not set(parts.families) <= FAMILIES:
        raise SystemExit(f"the exact program has parts for {', '.join(FAMILIES)}, not for {', '.join(parts.families)}")
    size, (links, pairs) = int(parts.lengths[k]) + 1, _places(parts, k)
    scores = np.full((size, size), -np.inf)
    scores[links] = values[parts.begins[k, 0] : parts.begins[k, 1]]
    above = beside = None
    constant = 0.0
    if "grand" in parts.families:
        above = np.zeros((size,) * 3)
        above[pairs] = values[parts.begins[k, 1] : parts.begins[k, 2]]
    if "siblings" in parts.families:
        beside = np.zeros((size,) * 3)
        for head, nodes, here in runs_of(parts, k):
            own, m = values[here], len(nodes) - 1
            ends = own[(m + 1) * m // 2 :]
            for j in range(1, m + 1):
                beside[head, nodes[:j], nodes[j]] = own[j * (j - 1) // 2 :][:j] + ends[j] - ends[:j]
            constant += float(ends[0])
    return Dense(scores, beside, above, constant)


def sparse(parts: TreeParts, k: int, links: Array, beside: Array | None, above: Array | None) -> Array:
    """Posteriors of the parts of one sentence, from those of the exact program."""
    found = np.zeros(int(parts.begins[k, 5] - parts.begins[k, 0]))
    first, (cells, pairs) = parts.begins[k, 0], _places(parts, k)
    found[: parts.begins[k, 1] - first] = links[cells]
    if above is not None:
        found[parts.begins[k, 1] - first : parts.begins[k, 2] - first] = above[pairs]
    if beside is not None:
        for head, nodes, here in runs_of(parts, k):
            m = len(nodes) - 1
            own = found[here.start - first : here.stop - first]
            last = np.append(1.0, links[head, nodes[1:]])  # the chance to be there, less that of any further one
            for j in range(1, m + 1):
                own[j * (j - 1) // 2 :][:j] = beside[head, nodes[:j], nodes[j]]
                last[:j] -= beside[head, nodes[:j], nodes[j]]
            own[(m + 1) * m // 2 :] = np.maximum(last, 0.0)
    return found


def _places(parts: TreeParts, k: int) -> tuple[tuple[NDArray[np.int32], ...], tuple[NDArray[np.int32], ...]]:
    """Where links (head, child) and pairs (grandparent, head, child) of a sentence stand in the arrays."""
    links = slice(parts.link_offsets[k], parts.link_offsets[k + 1])
    head, child = parts.head[links], parts.child[links]
    pairs = slice(parts.pair_offsets[k], parts.pair_offsets[k + 1])
    upper, lower = parts.upper[pairs], parts.lower[pairs]
    return (head, child), (head[upper], head[lower], child[lower])


def exact(parts: TreeParts, values: Array, *, single_root: bool) -> Iterator[tuple[range, ProjectiveTrees, Array]]:
    """Numbers of some sentences at a time, their exact distributions, and what to add to log Z of each."""
    cubes = np.cumsum((parts.lengths + 1) ** 3) // CELLS
    cuts = [0, *(np.flatnonzero(np.diff(cubes)) + 1).tolist(), len(parts)]
    for start, stop in pairwise(cuts):
        found = [dense(parts, values, k) for k in range(start, stop)]
        beside = [one.siblings for one in found if one.siblings is not None]
        above = [one.grandparents for one in found if one.grandparents is not None]
        trees = ProjectiveTrees.of(
            [one.scores for one in found], single_root=single_root, siblings=beside or None, grandparents=above or None
        )
        yield range(start, stop), trees, np.array([one.constant for one in found])


class ExactTrees(LoopyTrees):
    """As `LoopyTrees` for projective trees, with exact sums."""

    @cached_property
    def _run(self) -> tuple[Array, Array, NDArray[np.int64], Array]:
        parts, values = self.layout, self.scores.values
        log_z, beliefs = np.empty(len(parts)), np.empty(parts.n_parts)
        for sentences, trees, constants in exact(parts, values, single_root=self.single_root):
            here = slice(sentences.start, sentences.stop)
            log_z[here] = trees.log_partition() + constants
            links = trees.marginals()
            beside = trees.sibling_marginals() if trees.siblings is not None else None
            above = trees.grandparent_marginals() if trees.grandparents is not None else None
            for i, k in enumerate(sentences):
                own = sparse(
                    parts, k, links[i], None if beside is None else beside[i], None if above is None else above[i]
                )
                beliefs[parts.begins[k, 0] : parts.begins[k, 5]] = own
        return log_z, beliefs, np.zeros(len(parts), np.int64), values[parts.link_places]


@dataclass(frozen=True)
class ExactShape(Shape):
    """Projective trees with exact sums where parts are larger than links."""

    def trees(self, parts: TreeParts, scores: Array) -> LoopyTrees:
        if not parts.families:
            return super().trees(parts, scores)
        return ExactTrees(parts, scores, constraint=self.constraint, single_root=self.single_root)


class ExactParser(DependencyParser):
    """Learns by the likelihood of exact sums; what it saves is a parser as any other.

    Relations have to be learnt after trees (``labels="second"``): learnt together, both have sums of their own.
    """

    def _shape(self, treebank: Treebank) -> Shape:
        if self.labels != "second":
            raise SystemExit(f"exact sums are of trees without relations: labels='second', not {self.labels!r}")
        shape = super()._shape(treebank)
        return ExactShape(shape.constraint, shape.single_root, shape.families, shape.rounds)
