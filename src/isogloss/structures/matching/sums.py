"""Sums over sets of links: which road is taken, and what comes back from it."""

from __future__ import annotations

import math
import warnings
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array
from isogloss.structures.matching.parts import Indices, Problem

__all__ = ["Convergence", "Inference", "Sums", "chosen_method", "draw", "program_cells", "sum_up", "walk_from"]

Inference = Literal["auto", "exact", "bp"]

# Work that "auto" does for an exact answer, and that "exact" agrees to: some hundredths of a second, a few seconds.
AUTO_CELLS, MOST_CELLS = 2**21, 2**27
AUTO_SETS, MOST_SETS = 2**16, 2**23

TOLERANCE, ITERATIONS = 1e-9, 2000
DAMPING, PAIR_DAMPING = 0.0, 0.3  # pairs close short loops, around which undamped messages can swing


class Convergence(NamedTuple):
    """How belief propagation ended."""

    iterations: int
    change: float
    """Largest relative change of a message in the last iteration."""
    converged: bool


class Sums(NamedTuple):
    """log Z and the marginals of all kinds of parts."""

    value: float
    links: Array
    source_degrees: Array
    """float64[n_source, D + 1]: posterior of each number of links."""
    target_degrees: Array
    pairs: Array
    convergence: Convergence | None
    """None when exact."""


def program_cells(n: int, m: int, source_width: int, target_width: int) -> tuple[float, bool]:
    """Steps of the exact program (widths are largest degree + 1), and whether source words should be its columns."""
    by_source = n * m * source_width * float(target_width) ** min(m, 100)
    by_target = n * m * target_width * float(source_width) ** min(n, 100)
    return min(by_source, by_target), by_target < by_source


def _sets(problem: Problem) -> float:
    """Not fewer than the sets of links that there are."""
    allowed = problem.scores > -np.inf
    counts = []
    for axis, table in ((1, problem.source_table), (0, problem.target_table)):
        logs = [math.log(sum(math.comb(int(c), d) for d in range(table.shape[1]))) for c in allowed.sum(axis=axis)]
        counts.append(math.fsum(logs))
    return math.exp(min(*counts, 700.0))


def chosen_method(problem: Problem, inference: Inference, place: str) -> str:
    """ "program", "list" or "bp"; ParameterError when "exact" is asked for and out of reach."""
    if inference == "bp":
        return "bp"
    n, m = problem.scores.shape
    pairs = len(problem.pair_scores) > 0
    if pairs:
        work, auto, most = _sets(problem), AUTO_SETS, MOST_SETS
    else:
        widths = problem.source_table.shape[1], problem.target_table.shape[1]
        work, auto, most = program_cells(n, m, *widths)[0], AUTO_CELLS, MOST_CELLS
    if inference == "auto":
        return ("list" if pairs else "program") if work <= auto else "bp"
    if work > most:
        what = "sets of links with pair scores" if pairs else "states of the program"
        raise ParameterError(
            f"{place}: an exact sum would go through about {work:.0e} {what}; the most is {most:.0e}. "
            'Forbid links that hardly matter, or use inference="bp"'
        )
    return "list" if pairs else "program"


def near(problem: Problem) -> tuple[Indices, Indices, Array, Indices]:
    """Pairs of each link in C order, every pair twice: starts, other link, score, and where each pair stands first."""
    ends = problem.pair_links.T.ravel()
    order = np.argsort(ends, kind="stable")
    others, scores = problem.pair_links[:, ::-1].T.ravel()[order], np.tile(problem.pair_scores, 2)[order]
    starts = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=problem.scores.size))]).astype(np.int64)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return starts, np.ascontiguousarray(others, np.int64), scores, place[: len(problem.pair_scores)]


def _empty(problem: Problem) -> tuple[Array, Array, Array, Array]:
    given = problem.scores, problem.source_table, problem.target_table, problem.pair_scores
    links, source, target, pairs = (np.zeros(array.shape) for array in given)
    return links, source, target, pairs


def sum_up(problem: Problem, method: str) -> Sums:
    """log Z (−∞ when nothing is allowed) and marginals by "program", "list" or "bp"."""
    return {"program": _by_program, "list": _by_list, "bp": _by_beliefs}[method](problem)


def _turned(problem: Problem) -> bool:
    n, m = problem.scores.shape
    return program_cells(n, m, problem.source_table.shape[1], problem.target_table.shape[1])[1]


def _by_program(problem: Problem) -> Sums:
    from isogloss.structures._numba.matching_sums import sum_links

    links, source, target, pairs = _empty(problem)
    given = problem.scores, problem.source_table, problem.target_table
    value = sum_links(_turned(problem), *given, links, source, target)
    return Sums(float(value), links, source, target, pairs, None)


def _by_list(problem: Problem) -> Sums:
    from isogloss.structures._numba.matching_sums import list_links

    links, source, target, pairs = _empty(problem)
    starts, other, scores, place = near(problem)
    both = np.zeros(len(other))
    args = (
        problem.scores,
        problem.source_table,
        problem.target_table,
        starts,
        other,
        scores,
        links,
        source,
        target,
        both,
    )
    top = list_links(0, 0.0, 0.0, *args)
    if top == -np.inf:
        return Sums(-np.inf, links, source, target, pairs, None)
    total = list_links(1, 0.0, top, *args)
    return Sums(top + math.log(total), links / total, source / total, target / total, both[place] / total, None)


def _by_beliefs(problem: Problem) -> Sums:
    from isogloss.structures._numba.matching_beliefs import beliefs

    links, source, target, pairs = _empty(problem)
    info = np.zeros(2)
    first, second = (problem.pair_links[:, end].copy() for end in (0, 1))
    damping = PAIR_DAMPING if len(pairs) else DAMPING
    value = beliefs(
        problem.scores, problem.source_table, problem.target_table, first, second, problem.pair_scores,
        damping, TOLERANCE, ITERATIONS, links, source, target, pairs, info,
    )  # fmt: skip
    convergence = Convergence(int(info[0]), float(info[1]), bool(info[1] <= TOLERANCE))
    return Sums(float(value), links, source, target, pairs, convergence)


def warn_unless(converged: bool, place: str) -> None:
    """Say once and for all that beliefs have not settled."""
    if not converged:
        warnings.warn(
            f"{place}: belief propagation has not settled after {ITERATIONS} iterations, and marginals are rough; "
            "see .convergence. Smaller scores, or fewer words that must be linked, make it easier",
            RuntimeWarning,
            stacklevel=4,
        )


def draw(problem: Problem, method: str, rng: np.random.Generator) -> NDArray[np.bool_] | None:
    """One exact draw, or None when nothing is allowed; `method` is "program" or "list"."""
    if method == "list":
        return _draw_from_list(problem, rng)
    from isogloss.structures._numba.matching_sums import draw_links

    n, m = problem.scores.shape
    linked = np.zeros((n, m), np.bool_)
    u = rng.random(1 + n * m + max(n, m))
    value = draw_links(_turned(problem), problem.scores, problem.source_table, problem.target_table, u, linked)
    return None if value == -np.inf else linked


def _draw_from_list(problem: Problem, rng: np.random.Generator) -> NDArray[np.bool_] | None:
    from isogloss.structures._numba.matching_sums import list_links

    links, source, target, _ = _empty(problem)
    starts, other, scores, _ = near(problem)
    args = problem.scores, problem.source_table, problem.target_table, starts, other, scores, links, source, target
    top = list_links(0, 0.0, 0.0, *args, np.zeros(len(other)))
    if top == -np.inf:
        return None
    total = list_links(1, 0.0, top, *args, np.zeros(len(other)))
    list_links(2, min(rng.random() * total, np.nextafter(total, 0.0)), top, *args, np.zeros(len(other)))
    return links > 0.5


def walk_from(problem: Problem, linked: NDArray[np.bool_], sweeps: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A Metropolis walk of so many sweeps, a step for each cell; `linked` must be allowed."""
    from isogloss.structures._numba.matching_beliefs import walk

    starts, other, scores, _ = near(problem)
    linked = np.array(linked, np.bool_)
    if linked.size == 0:
        return linked
    left = sweeps * linked.size
    while left:  # numbers are drawn in blocks, so that long walks over long sentences stay small
        steps = min(left, 2**16)
        u = rng.random((steps, 4))
        walk(linked, problem.scores, problem.source_table, problem.target_table, starts, other, scores, u)
        left -= steps
    return linked
