"""How two trees and the links between their words agree: tuples of links, and the features that tuples are seen by.

For a link x → y of the target and source words x', y' with word links (x', x), (y', y), the configurations are those of
quasi-synchronous grammars [1]_:

========  =======================================================================================
mono      x' → y' is a link of the source
swap      y' → x' is
root      x and x' are the roots
tdouble   x' = y': a link of the target within what one source word is linked to
sdouble   the same of the source
sgrand    x' is the grandparent of y'
ssib      x' and y' are siblings
tgrand    x' → y' is a link of the source, and x is the grandparent of y
tsib      the same, and x and y are siblings
========  =======================================================================================

A tuple has the links of trees and the word links of a configuration. Grandparents and siblings are two links of one
tree, whose probability is no product; they enter as values, by what the parser of that side thinks of them.

References
----------
.. [1] Smith, Efficient inference for trees and alignments, PhD thesis, Johns Hopkins 2010, section 4.7. We differ: an
   indicator variable of grandparents and siblings is replaced by its expectation under the separate parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.features.parts import Axis, Parts, Role
from isogloss.features.sparse import Sparse
from isogloss.features.table import Numbering
from isogloss.features.templates import Templates
from isogloss.learners.meanfield import Coupling
from isogloss.structures.batch import Batch
from isogloss.tasks.joint.opinions import Opinions

__all__ = ["CONFIGURATIONS", "Agreement", "templates_of"]

CONFIGURATIONS = (
    "source", "target", "odds", "link", "mono", "swap", "root", "sdouble", "tdouble", "sgrand", "ssib", "tgrand",
    "tsib",
)  # fmt: skip
"""The first four are of single parts: a head of either side by its log posterior, a word link by its log odds, and a
word link as such."""
_NUMBER = {name: k for k, name in enumerate(CONFIGURATIONS)}
LEAST = 0.1
"""Grandparents and siblings that are less probable are not looked at."""
DISTANCES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Where bins of the distance of a word link from the diagonal begin."""
ROLES = ("source_head", "source_child", "target_head", "target_child")
COARSE = ("configuration", "configuration & order")
ROOT = 0
Ints = NDArray[np.int64]


def templates_of(grain: str) -> Templates:
    """What tuples are seen by: configuration and order, and these with the tags of some or all of their words."""
    tags = [f"{role}.tag" for role in ROLES]
    subsets = [" & ".join(["configuration", *some]) for k in range(1, 5) for some in combinations(tags, k)]
    fine = [*subsets, " & ".join(["configuration", "order", *tags]), "configuration & order & target_child.tag"]
    return Templates([*(COARSE if grain != "fine" else COARSE[:1]), *(fine if grain != "coarse" else ())], kind="joint")


class _Rows(NamedTuple):
    """Some tuples of one pair: cells of the three components (−1 for none), nodes, and what they are worth."""

    configuration: str
    links: tuple[Any, Any]
    """Cells of two word links, or −1."""
    heads: tuple[Any, Any]
    """Cells of a link of each tree, or −1."""
    nodes: tuple[Any, Any, Any, Any]
    order: Any
    value: Any
    chances: tuple[Any, Any] = (1.0, 1.0)
    """What the aligner thinks of the two word links."""


class _Table(NamedTuple):
    parts: Ints
    nodes: Ints
    configuration: Ints
    order: Ints
    value: NDArray[np.float64]


class Agreement:
    """The tuples of some pairs, for `mean_field`, with what they are seen by.

    Parameters
    ----------
    components : three batches
        Word links, trees of the source and trees of the target.
    opinions : Opinions
    tags : dict of str to int
        Numbers of tags, from 1; others are not seen.
    which : str
        The option `coupling`.
    """

    def __init__(self, components: list[Batch[Any]], opinions: Opinions, tags: dict[str, int], which: str) -> None:
        several = bool(getattr(components[0], "independent", False))
        sizes = [len(one.scores.values) for one in components]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        tables, counts = [], []
        self.axes = [
            _axis(one.shapes[:, 0] - 1, words, tags)
            for one, words in ((opinions.source, opinions.source_tags), (opinions.target, opinions.target_tags))
        ]
        for s in range(len(components[0])):
            rows = list(_single(components, s))
            rows += [row for row in _double(components, opinions, s) if _wanted(row.configuration, which)]
            table = _table([piece for row in rows for piece in _fitting(row, several)])
            shift = np.array([starts[0], starts[0], starts[1], starts[2]]) + [
                components[k].scores.offsets[s] for k in (0, 0, 1, 2)
            ]
            begins = np.array([self.axes[k].offsets[s] for k in (0, 0, 1, 1)])
            moved = np.where(table.parts < 0, -1, table.parts + shift)
            tables.append(table._replace(parts=moved, nodes=np.where(table.nodes < 0, -1, table.nodes + begins)))
            counts.append(len(table.order))
        whole = _Table(*(np.concatenate(column) for column in zip(_EMPTY, *tables, strict=True)))
        self.offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.coupling = Coupling(sizes, whole.parts, [0] if several else [])
        self.value = whole.value
        roles = {role: Role(self.axes[k // 2], whole.nodes[:, k].copy()) for k, role in enumerate(ROLES)}
        columns = {"configuration": whole.configuration, "order": whole.order}
        self.parts = Parts(len(whole.value), self.offsets, roles, columns)

    def features(self, templates: Templates, numbering: Numbering) -> Sparse:
        """A row for each tuple: indicators, times what the tuple is worth."""
        plain = templates.matrix(self.parts, numbering)
        values = np.repeat(self.value, np.diff(plain.indptr))
        return Sparse(plain.indptr, plain.indices, plain.n_indicators, values)


_EMPTY = _Table(
    np.zeros((0, 4), np.int64), np.zeros((0, 4), np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
)


def _axis(lengths: Ints, words: list[str], tags: dict[str, int]) -> Axis:
    """Nodes of all sentences, each with the root first."""
    offsets = np.concatenate([[0], np.cumsum(lengths + 1)]).astype(np.int64)
    codes = np.full(int(offsets[-1]), ROOT, np.int64)
    inner = np.ones(len(codes), np.bool_)
    inner[offsets[:-1]] = False
    codes[inner] = [tags.get(tag, -1) for tag in words]
    return Axis(offsets, tag=codes)


def _wanted(configuration: str, which: str) -> bool:
    return which == "all" or (which == "mono" and configuration in ("mono", "root"))


def _single(components: list[Batch[Any]], s: int) -> Iterator[_Rows]:
    """Scores of single parts, which say how much each of the separate models counts."""
    for k, name in ((1, "source"), (2, "target")):
        scores = components[k].scores[s]
        head, child = _arcs(scores)
        nodes = (head, child, -1, -1) if k == 1 else (-1, -1, head, child)
        cells = head * len(scores) + child
        places = (cells, -1) if k == 1 else (-1, cells)
        yield _Rows(name, (-1, -1), places, nodes, (child > head).astype(np.int64), scores[head, child])
    scores = components[0].scores[s]
    i, j = np.nonzero(scores > -np.inf)
    cells = i * scores.shape[1] + j
    gap = np.abs((i + 0.5) / max(1, scores.shape[0]) - (j + 0.5) / max(1, scores.shape[1]))
    order = np.searchsorted(DISTANCES, gap, side="right")
    yield _Rows("odds", (cells, -1), (-1, -1), (-1, i + 1, -1, j + 1), 0, scores[i, j])
    yield _Rows("link", (cells, -1), (-1, -1), (-1, i + 1, -1, j + 1), order, 1.0)


def _arcs(scores: NDArray[np.float64]) -> tuple[Ints, Ints]:
    """Heads and children of what is allowed."""
    allowed = scores > -np.inf
    np.fill_diagonal(allowed, False)
    allowed[:, 0] = False
    head, child = np.nonzero(allowed)
    return head, child


def _double(components: list[Batch[Any]], opinions: Opinions, s: int) -> Iterator[_Rows]:
    """Configurations of links of trees and word links."""
    links, source, target = (component.scores[s] for component in components)
    i, j = np.nonzero(links > -np.inf)
    cells, chance = i * links.shape[1] + j, opinions.links[s][i, j]
    width, height = len(source), len(target)
    there = []
    for scores in (source, target):
        allowed = np.zeros(scores.shape, np.bool_)
        allowed[_arcs(scores)] = True
        there.append(allowed)
    in_source, in_target = there
    both = in_source[0, i + 1] & in_target[0, j + 1]
    at = np.flatnonzero(both)
    yield _Rows(
        "root", (cells[at], -1), (i[at] + 1, j[at] + 1), (0, i[at] + 1, 0, j[at] + 1), 0, 1.0
    )  # fmt: skip
    a, b = np.nonzero(~np.eye(len(i), dtype=np.bool_))
    head, child, over, under = i[a] + 1, i[b] + 1, j[a] + 1, j[b] + 1  # x', y', x, y
    order = (child > head) + 2 * (under > over)
    on_source, on_target = in_source[head, child], in_target[over, under]
    source_cell, target_cell = head * width + child, over * height + under

    def found(name: str, rows: NDArray[np.bool_], on: tuple[Any, Any], value: Any = 1.0) -> _Rows:
        at = np.flatnonzero(rows)
        chosen = [cell if np.isscalar(cell) else cell[at] for cell in on]
        nodes = (head[at], child[at], over[at], under[at])
        return _Rows(
            name, (cells[a[at]], cells[b[at]]), (chosen[0], chosen[1]), nodes, order[at],
            value if np.isscalar(value) else value[at], (chance[a[at]], chance[b[at]]),
        )  # fmt: skip

    yield found("mono", on_source & on_target, (source_cell, target_cell))
    yield found("swap", in_source[child, head] & on_target, (child * width + head, target_cell))
    yield found("sdouble", on_source & (over == under), (source_cell, -1))
    yield found("tdouble", on_target & (head == child), (-1, target_cell))
    for side, posterior, first, second, on, cell in (
        ("s", opinions.source[s], head, child, on_target, (-1, target_cell)),
        ("t", opinions.target[s], over, under, on_source, (source_cell, -1)),
    ):
        # not by BLAS, which sums in another order on other threads
        grand = np.einsum("ab,bc->ac", posterior, posterior)[first, second]
        siblings = np.einsum("ba,bc->ac", posterior, posterior)[first, second]
        yield found(side + "grand", on & (grand >= LEAST) & (first != second), cell, np.minimum(grand, 1.0))
        yield found(side + "sib", on & (siblings >= LEAST) & (first != second), cell, np.minimum(siblings, 1.0))


def _fitting(row: _Rows, several: bool) -> Iterator[_Rows]:
    """The tuples themselves or, where two word links of one tuple are no product, two with one of them each.

    The other one then enters as a value, by what the aligner thinks of it.
    """
    first, second = row.links
    if several or np.isscalar(first) or np.isscalar(second):
        yield row
        return
    yield row._replace(links=(first, -1), value=0.5 * row.value * row.chances[1])
    yield row._replace(links=(-1, second), value=0.5 * row.value * row.chances[0])


def _table(rows: list[_Rows]) -> _Table:
    """Rows of all configurations as one table."""
    parts, nodes, configurations, orders, values = [], [], [], [], []
    for row in rows:
        columns = [*row.links, *row.heads, *row.nodes]
        n = next(len(column) for column in columns if not np.isscalar(column))
        whole = np.stack([np.broadcast_to(np.asarray(column, np.int64), n) for column in columns], axis=1)
        parts.append(whole[:, :4])
        nodes.append(whole[:, 4:])
        configurations.append(np.full(n, _NUMBER[row.configuration]))
        orders.append(np.broadcast_to(np.asarray(row.order, np.int64), n))
        values.append(np.broadcast_to(np.asarray(row.value, np.float64), n))
    pieces = (parts, nodes, configurations, orders, values)
    return _Table(*(np.concatenate(column) for column in pieces))
