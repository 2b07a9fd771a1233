"""The best set of links as a linear program: relaxed for bounds and rounding, with integers for the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, vstack

from isogloss.errors import IsoglossError
from isogloss.structures.base import Array
from isogloss.structures.matching.parts import Indices, Problem, concave

__all__ = ["INTEGRAL", "LinkProgram", "greedy", "link_program"]

INTEGRAL = 1e-6  # HiGHS takes a variable for whole within this


class _Rows:
    """Rows of a sparse matrix with lower and upper bounds, added in bulk."""

    def __init__(self) -> None:
        self.entries: list[tuple[Indices, Indices, Array]] = []
        self.lower: list[Array] = []
        self.upper: list[Array] = []
        self.count = 0

    def add(self, rows: Indices, columns: Indices, values: float | Array, lower: Array, upper: Array) -> None:
        """Entries at rows counted from 0 here; as many bounds as rows."""
        self.entries.append((rows + self.count, columns, np.broadcast_to(np.asarray(values, np.float64), rows.shape)))
        self.lower.append(lower)
        self.upper.append(upper)
        self.count += len(lower)

    def matrix(self, n_columns: int) -> coo_array:
        rows, columns, values = (np.concatenate([entry[at] for entry in self.entries]) for at in range(3))
        return coo_array((values, (rows, columns)), shape=(self.count, n_columns))


@dataclass
class LinkProgram:
    """max cost · x + constant, where lower ≤ A x ≤ upper and x between its bounds; the first variables are links."""

    cells: Indices
    cost: Array
    constant: float
    least: Array
    most: Array
    whole: NDArray[np.bool_]
    matrix: coo_array
    lower: Array
    upper: Array

    def solve(
        self, *, integral: bool, time_limit: float | None = None, without: Sequence[Indices] = ()
    ) -> tuple[str, float, float, Array | None]:
        """Status ("optimal", "infeasible" or "time"), value, bound, and x of the links, or None.

        `without` are sets of cells that may not come back as answers.
        """
        matrix, lower, upper = self.matrix, self.lower, self.upper
        if without:
            place = {int(cell): at for at, cell in enumerate(self.cells)}
            cuts = np.zeros((len(without), len(self.cost)))
            cuts[:, : len(self.cells)] = -1.0
            for row, cells in zip(cuts, without, strict=True):
                row[[place[int(cell)] for cell in cells]] = 1.0
            matrix = vstack([matrix, coo_array(cuts)])
            lower = np.append(lower, np.full(len(cuts), -np.inf))
            upper = np.append(upper, [len(cells) - 1.0 for cells in without])
        if len(self.cost) == 0:
            feasible = bool(np.all(lower <= 0) and np.all(upper >= 0))
            return ("optimal" if feasible else "infeasible"), self.constant, self.constant, np.zeros(0)
        found = milp(
            -self.cost,
            integrality=self.whole.astype(np.int64) if integral else np.zeros(len(self.cost), np.int64),
            bounds=Bounds(self.least, self.most),
            constraints=LinearConstraint(matrix.tocsc(), lower, upper),
            options={"mip_rel_gap": 0.0} | ({"time_limit": time_limit} if time_limit is not None else {}),
        )
        if found.status == 2:
            return "infeasible", -np.inf, -np.inf, None
        if found.status not in (0, 1):
            raise IsoglossError(f"Matching: the linear program was given up: {found.message}")
        x = None if found.x is None else np.asarray(found.x[: len(self.cells)])
        value = -np.inf if x is None else self.constant - float(found.fun)
        bound = getattr(found, "mip_dual_bound", None)
        limit = value if found.status == 0 else np.inf
        if integral and bound is not None:
            limit = self.constant - float(bound)
        return ("optimal" if found.status == 0 else "time"), value, limit, x


def link_program(problem: Problem, *, prune: bool = True) -> LinkProgram:
    """The integer program of a matching, equations 1 to 3 of Lacoste-Julien et al. 2006, with nulls.

    With `prune`, links that cannot pay even with every pair that they are part of are left out: dropping such a link
    from a solution, whole or in part, never lowers its value.
    """
    scores, tables = problem.scores, (problem.source_table, problem.target_table)
    m = scores.shape[1]
    cells = np.flatnonzero(scores > -np.inf)
    if prune:
        cells = cells[_worth(problem)[cells]]
    words = cells // max(m, 1), cells % max(m, 1)
    rows, blocks = _Rows(), [scores.ravel()[cells].copy()]
    least, most, whole = [np.zeros(len(cells))], [np.ones(len(cells))], [np.ones(len(cells), np.bool_)]
    constant, width = 0.0, len(cells)
    for table, word in zip(tables, words, strict=True):
        must = np.argmax(table > -np.inf, axis=1) if len(table) else np.zeros(0, np.int64)
        constant += float(np.take_along_axis(table, must[:, None], axis=1).sum())
        if table.shape[1] == 2:  # at most one link: fold the null into the links
            blocks[0] -= np.where(table[:, 0] > -np.inf, table[:, 0], 0.0)[word]
            rows.add(word, np.arange(len(cells)), 1.0, must.astype(np.float64), np.ones(len(table)))
            continue
        cost, low, high, integer = _step_variables(table, must)
        at = width + np.arange(cost.size).reshape(cost.shape)
        owner = np.repeat(np.arange(len(table)), cost.shape[1])
        zero = np.zeros(len(table))
        rows.add(
            np.append(word, owner), np.append(np.arange(len(cells)), at.ravel()),
            np.append(np.ones(len(cells)), np.full(at.size, -1.0)), zero, zero,
        )  # fmt: skip
        above, below = at[integer][:, :-1].ravel(), at[integer][:, 1:].ravel()  # step d + 1 only after step d
        _add_below(rows, below, above)
        for block, values in ((blocks, cost), (least, low), (most, high)):
            block.append(values.ravel())
        whole.append(np.repeat(integer, cost.shape[1]))
        width += cost.size
    width += _add_pairs(rows, problem, cells, width, blocks)
    for block, value in ((least, 0.0), (most, 1.0)):
        block.append(np.full(len(blocks[-1]), value))
    whole.append(np.zeros(len(blocks[-1]), np.bool_))
    return LinkProgram(
        cells, np.concatenate(blocks), constant, np.concatenate(least), np.concatenate(most), np.concatenate(whole),
        rows.matrix(width), np.concatenate(rows.lower), np.concatenate(rows.upper),
    )  # fmt: skip


def _add_below(rows: _Rows, lesser: Indices, greater: Indices) -> None:
    """lesser − greater ≤ 0, one row for each."""
    at = np.arange(len(lesser))
    rows.add(
        np.append(at, at), np.append(lesser, greater), np.repeat([1.0, -1.0], len(at)),
        np.full(len(at), -np.inf), np.zeros(len(at)),
    )  # fmt: skip


def _worth(problem: Problem) -> NDArray[np.bool_]:
    """bool[n_source · n_target]: links that some solution might need."""
    scores, (n, m) = problem.scores, problem.scores.shape
    gains = np.zeros(n * m)
    np.add.at(gains, problem.pair_links.ravel(), np.repeat(np.maximum(problem.pair_scores, 0.0), 2))
    bound, bests = scores + gains.reshape(n, m), []
    for table, axis in ((problem.source_table, 1), (problem.target_table, 0)):
        with np.errstate(invalid="ignore"):
            steps = np.diff(table, axis=1)
        must = table[:, 0] == -np.inf
        best = np.where(must, np.inf, np.where(np.isnan(steps), -np.inf, steps).max(axis=1, initial=-np.inf))
        bests.append(np.expand_dims(best, axis))
    with np.errstate(invalid="ignore"):  # a forbidden link of a word that must have one: not worth it
        return np.asarray((bound + bests[0] + bests[1] > 0).ravel())


def _step_variables(table: Array, must: Indices) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """Cost, least and most of the variables "at least d links", d = 1 …, and which words need whole ones."""
    d = np.arange(1, table.shape[1])
    forced = d <= must[:, None]
    allowed = forced | (table[:, 1:] > -np.inf)
    with np.errstate(invalid="ignore"):
        cost = np.where(forced | ~allowed, 0.0, np.diff(table, axis=1))
    return cost, forced.astype(np.float64), allowed.astype(np.float64), ~concave(table)


def _add_pairs(rows: _Rows, problem: Problem, cells: Indices, width: int, blocks: list[Array]) -> int:
    """Variables "both links are there", whose number is returned; their costs are added to `blocks`."""
    m = problem.scores.shape[1]
    place = np.full(problem.scores.size, -1)
    place[cells] = np.arange(len(cells))
    first, second = place[problem.pair_links[:, 0]], place[problem.pair_links[:, 1]]
    possible = (first >= 0) & (second >= 0) & (problem.pair_scores != 0)
    for table, word in (
        (problem.source_table, problem.pair_links // max(m, 1)),
        (problem.target_table, problem.pair_links % max(m, 1)),
    ):
        if table.shape[1] == 2:
            possible &= word[:, 0] != word[:, 1]
    first, second, scores = first[possible], second[possible], problem.pair_scores[possible]
    never, costs = scores == -np.inf, scores > -np.inf
    at = np.arange(int(never.sum()))
    rows.add(
        np.append(at, at), np.append(first[never], second[never]), 1.0, np.full(len(at), -np.inf), np.ones(len(at))
    )
    first, second, scores = first[costs], second[costs], scores[costs]
    variable, gain = width + np.arange(len(scores)), scores > 0
    _add_below(rows, variable[gain], first[gain])
    _add_below(rows, variable[gain], second[gain])
    at = np.arange(int((~gain).sum()))  # a pair that costs is there as soon as both links are: z ≥ z₁ + z₂ − 1
    rows.add(
        np.concatenate([at, at, at]), np.concatenate([first[~gain], second[~gain], variable[~gain]]),
        np.repeat([1.0, 1.0, -1.0], len(at)), np.full(len(at), -np.inf), np.ones(len(at)),
    )  # fmt: skip
    blocks.append(scores)
    return len(scores)


def greedy(problem: Problem, wanted: Array) -> NDArray[np.bool_]:
    """Take links in the order of `wanted` (≥ ½ only), while numbers of links and forbidden pairs allow.

    The repair of a rounded solution: among equals the better score first, then the lower words.
    """
    n, m = problem.scores.shape
    order = np.lexsort((np.arange(n * m), -problem.scores.ravel(), -wanted.ravel()))
    source_left, target_left = (
        np.where(table > -np.inf, np.arange(table.shape[1]), 0).max(axis=1, initial=0)
        for table in (problem.source_table, problem.target_table)
    )
    never: dict[int, list[int]] = {}
    for a, b in problem.pair_links[problem.pair_scores == -np.inf].tolist():
        never.setdefault(a, []).append(b)
        never.setdefault(b, []).append(a)
    linked = np.zeros((n, m), np.bool_)
    for cell in order[wanted.ravel()[order] >= 0.5 - INTEGRAL].tolist():
        i, j = divmod(cell, m)
        if source_left[i] and target_left[j] and not any(linked.flat[other] for other in never.get(cell, ())):
            linked[i, j] = True
            source_left[i] -= 1
            target_left[j] -= 1
    return linked
