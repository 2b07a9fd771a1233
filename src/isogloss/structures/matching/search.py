"""The best sets of links: which solver is asked, and what it answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, kept
from isogloss.structures.kbest import k_best
from isogloss.structures.matching.assignment import best_flow, best_partners
from isogloss.structures.matching.parts import Indices, concave

if TYPE_CHECKING:
    from isogloss.structures.matching.distribution import Matching
    from isogloss.structures.matching.programs import LinkProgram

__all__ = ["Links", "Method", "Relaxation", "Solution", "k_best_links", "links_at", "relaxation", "solve"]

Links = frozenset[tuple[int, int]]
Method = Literal["auto", "flow", "milp", "lp"]


class Solution(NamedTuple):
    """The answer of a search for the best set of links, and how far it can be trusted."""

    links: Links
    score: float
    bound: float
    """No set of links scores more, up to the solver's tolerance of 1e-6."""
    method: str
    """What found it: "matching", "flow", "milp" or "lp"."""
    optimal: bool


class Relaxation(NamedTuple):
    """The best fractional solution: an upper bound, and a point of the relaxed polytope."""

    value: float
    links: Array
    parts: tuple[Array, ...]
    """All kinds of parts, in the order of `Matching.part_scores`."""
    integral: bool
    """Whether it is one set of links; then that is the best one."""


def links_at(linked: NDArray[np.bool_]) -> Links:
    """The links that are marked."""
    return frozenset((i, j) for i, j in np.argwhere(linked).tolist())


def _links_of_cells(dist: Matching, cells: Indices) -> Links:
    return frozenset(divmod(cell, dist.n_target) for cell in cells.tolist())


def solve(dist: Matching, method: Method, *, time_limit: float | None, repair: bool) -> Solution:
    """See `Matching.solve`."""
    problem = dist._problem
    linear = len(problem.pair_scores) == 0 and bool(
        concave(problem.source_table).all() and concave(problem.target_table).all()
    )
    if method == "auto":
        method = "flow" if linear else "milp"
    if method == "flow":
        if not linear:
            raise ParameterError(f'{dist!r}: flow knows no pairs, and no null above a penalty; method="milp" does')
        return _by_flow(dist)
    if method == "milp":
        return _by_program(dist, time_limit)
    if method == "lp":
        return _by_rounding(dist, time_limit, repair)
    raise ParameterError(f'{dist!r}: method should be "auto", "flow", "milp" or "lp", not {method!r}')


def _by_flow(dist: Matching) -> Solution:
    if dist._plain:
        links, method = dist.argmax(), "matching"
    else:
        linked, method = best_flow(dist._problem), "flow"
        if linked is None:
            dist._raise_infeasible()
        links = links_at(linked)
    score = dist.score(links)
    return Solution(links, score, score, method, True)


def _by_program(dist: Matching, time_limit: float | None) -> Solution:
    """The relaxation first, which is often integral; then the integer program, as long as time allows."""
    from isogloss.structures.matching.programs import link_program

    start, program = time.monotonic(), link_program(dist._problem)
    rounded = _rounded(dist, program, time_limit, repair=True)
    if rounded is not None and rounded.optimal:
        return rounded._replace(method="milp")
    left = None if time_limit is None else max(0.1 * time_limit, time_limit - (time.monotonic() - start))
    status, _, bound, x = program.solve(integral=True, time_limit=left)
    if status == "infeasible":
        dist._raise_infeasible()
    found = [] if rounded is None else [rounded]
    if x is not None:
        links = _links_of_cells(dist, program.cells[x > 0.5])
        score = dist.score(links)
        found.append(Solution(links, score, max(score, bound), "milp", status == "optimal"))
        if status == "optimal":
            return found[-1]
    best = max(found, key=lambda solution: solution.score, default=_best_without_pairs(dist))
    if best.score == -np.inf:  # an answer is owed: there are words that must have a link
        return _by_program(dist, None)
    return best._replace(bound=min(bound, *(solution.bound for solution in found), np.inf))


def _by_rounding(dist: Matching, time_limit: float | None, repair: bool) -> Solution:
    from isogloss.structures.matching.programs import link_program

    found = _rounded(dist, link_program(dist._problem), time_limit, repair) or _best_without_pairs(dist)
    if repair and found.score == -np.inf:  # some word was left without the link that it must have
        return _by_program(dist, None)
    return found


def _best_without_pairs(dist: Matching) -> Solution:
    """What there is when time is up before anything else is found."""
    links = solve(dist._without_pairs(), "auto", time_limit=None, repair=True).links
    return Solution(links, dist.score(links), np.inf, "flow", False)


def _rounded(dist: Matching, program: LinkProgram, time_limit: float | None, repair: bool) -> Solution | None:
    """Links of a half or more in the relaxation; None when time is up."""
    from isogloss.structures.matching.programs import INTEGRAL, greedy

    found = _relaxed(dist, program, time_limit)
    if found is None:
        return None
    bound, fractions = found
    linked = fractions >= 0.5 - INTEGRAL
    if repair:
        linked = greedy(dist._problem, fractions)
        _settle(dist, linked, np.argwhere((fractions > INTEGRAL) & (fractions < 1 - INTEGRAL)))
    score = dist._score_of(linked)
    return Solution(links_at(linked), score, max(score, bound), "lp", bound <= score + 1e-9 * (1 + abs(score)))


def _settle(dist: Matching, linked: NDArray[np.bool_], loose: Indices) -> None:
    """Switch links that the relaxation left open, one at a time, as long as that pays."""
    best, paid = dist._score_of(linked), True
    while paid:
        paid = False
        for i, j in loose.tolist():
            linked[i, j] ^= True
            score = dist._score_of(linked)
            if score > best + 1e-9:
                best, paid = score, True
            else:
                linked[i, j] ^= True


def _relaxed(dist: Matching, program: LinkProgram, time_limit: float | None = None) -> tuple[float, Array] | None:
    """Value and links of the relaxation, or None when time is up."""
    status, value, _, x = program.solve(integral=False, time_limit=time_limit)
    if status == "infeasible":
        dist._raise_infeasible()
    if status != "optimal" or x is None:
        return None
    fractions = np.zeros(dist.scores.size)
    fractions[program.cells] = np.clip(x, 0.0, 1.0)
    return value, fractions.reshape(dist.scores.shape)


def relaxation(dist: Matching) -> Relaxation:
    """See `Matching.relaxation`."""
    from isogloss.structures.matching.programs import link_program

    found = _relaxed(dist, link_program(dist._problem))
    assert found is not None  # there was no time limit
    value, links = found
    first, second = (links.ravel()[dist._pair_links[:, end]] for end in (0, 1))
    pairs = np.where(dist._pair_scores >= 0, np.minimum(first, second), np.maximum(0.0, first + second - 1))
    integral = bool((np.abs(links - links.round()) < 1e-6).all())
    return Relaxation(value, links, (*dist._kinds(links)[:5], pairs), integral)


def k_best_links(dist: Matching, k: int) -> list[tuple[float, Links]]:
    """See `Matching.k_best`."""
    if not dist._plain:
        return _k_best_by_programs(dist, k)

    def best(fixed: Sequence[int], banned: frozenset[int]) -> tuple[float, Sequence[int]] | None:
        return _best_given(dist, fixed, banned)

    found = k_best(best, k)
    return [(score, frozenset((i, j) for i, j in enumerate(y) if j >= 0)) for score, y in found]


def _best_given(dist: Matching, fixed: Sequence[int], banned: frozenset[int]) -> tuple[float, Sequence[int]] | None:
    """The best partners when the first are fixed and the next may not be in `banned`; see `kbest.Best`."""
    at = len(fixed)
    left = np.ones(dist.n_target, np.bool_)
    left[[j for j in fixed if j >= 0]] = False
    columns = np.flatnonzero(left)
    scores, null = dist.scores[at:, columns], dist.source_null[at:]
    if banned:
        scores[0, np.isin(columns, list(banned))] = -np.inf
        if -1 in banned:
            null = null.copy()
            null[0] = -np.inf
    partner = best_partners(kept(np.ascontiguousarray(scores)), kept(null), kept(dist.target_null[columns]))
    if partner is None:
        return None
    choices = np.concatenate([np.asarray(fixed, np.int64), np.append(columns, -1)[partner]])
    return _score_of_partners(dist, choices), choices.tolist()


def _score_of_partners(dist: Matching, partner: Indices) -> float:
    linked, alone = partner >= 0, np.ones(dist.n_target, np.bool_)
    alone[partner[linked]] = False
    total = dist.scores[np.flatnonzero(linked), partner[linked]].sum() + dist.source_null[~linked].sum()
    return float(total + dist.target_null[alone].sum())


def _k_best_by_programs(dist: Matching, k: int) -> list[tuple[float, Links]]:
    from isogloss.structures.matching.programs import link_program

    program = link_program(dist._problem, prune=False)
    found: list[tuple[float, Links]] = []
    taken: list[Indices] = []
    while len(found) < k:
        status, _, _, x = program.solve(integral=True, without=taken)
        if status == "infeasible" or x is None:
            break
        taken.append(program.cells[x > 0.5])
        links = _links_of_cells(dist, taken[-1])
        found.append((dist.score(links), links))
    found.sort(key=lambda entry: -entry[0])  # the solver's tolerance may have swapped near equals
    return found
