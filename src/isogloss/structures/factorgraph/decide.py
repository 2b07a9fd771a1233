"""One assignment out of a factor graph: the best, or a draw, factor by factor."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isogloss.structures.base import InfeasibleError, kept
from isogloss.structures.factorgraph.beliefs import Beliefs
from isogloss.structures.factorgraph.family import Choice, Ints
from isogloss.structures.factorgraph.passing import Options
from isogloss.structures.semiring import DRAW, MAX, weights

if TYPE_CHECKING:
    from isogloss.structures.factorgraph.graph import FactorGraph

__all__ = ["decide"]

TIE = 1e-9  # values nearer to each other than this, relative to what was added up, are chosen factor by factor


def decide(graph: FactorGraph, rng: np.random.Generator | None) -> NDArray[np.int64]:
    """The best assignment (rng None), or a draw; with cycles, one that keeps the hard factors.

    Without cycles `_by_factors` is exact. With cycles it may settle a factor in a way that others cannot follow; then
    variables are settled one by one, the surest first, and what leads to a contradiction is taken back.
    """
    exact = graph.exact
    options = replace(graph.options, iterations=None, damping=0.0) if exact else graph.options
    found = graph._run(options, True) if rng is None else graph.beliefs
    found.log_partition()  # raises where some factor allows nothing
    if exact:
        return _by_factors(found, options, rng)
    try:
        values = _by_factors(found, options, rng)
        if graph.score(values) > -np.inf:
            return values
    except InfeasibleError:
        pass
    values = _one_by_one(graph, options)
    if graph.score(values) == -np.inf:
        raise InfeasibleError(
            f"{graph!r}: no assignment was found that keeps all hard factors. The graph has cycles, so that this need "
            f"not mean that there is none; try damping, or softer factors"
        )
    return values


def _by_factors(found: Beliefs, options: Options, rng: np.random.Generator | None) -> NDArray[np.int64]:
    """Settle one factor in every connected part of what is open, observe that, pass messages, and go on.

    Conditioning on what was settled leaves the rest a graph of the same kind, so that without cycles the outcome is the
    best assignment, or an exact draw. A factor that cannot send maxima is settled first in its part, by what it hears,
    and then need not send any.
    """
    graph = found.graph
    values = np.full(graph.n_variables, -1, np.int64)
    while True:
        _read_certain(found, values)
        if rng is None and graph.exact and all(family.maximises for family in graph._families):
            _read_clear(found, values)
        for numbers, picked in _settle(found, values, rng):
            values[numbers] = picked
        if (values >= 0).all():
            return values
        found = _observed(graph, values)._run(options, rng is None)


def _one_by_one(graph: FactorGraph, options: Options) -> NDArray[np.int64]:
    """Settle the surest variable by its belief, or otherwise if that leads to a contradiction, and go on."""
    values = np.full(graph.n_variables, -1, np.int64)
    current = graph
    found = current._run(options, False)
    while True:
        _read_certain(found, values)
        open_ = np.flatnonzero(values < 0)
        if not len(open_):
            return values
        surest, value = _surest(found, open_)
        try:
            attempt = _told(current, surest, value, True)
            found = attempt._run(options, False)
            found.log_partition()
        except InfeasibleError:
            attempt = _told(current, surest, value, False)
            found = attempt._run(options, False)
        current = attempt


def _surest(found: Beliefs, open_: Ints) -> tuple[int, int]:
    """The open variable whose best value is farthest from the next, and that value."""
    wiring = found.graph._wiring
    best = (-np.inf, 0, 0)
    for variable in open_:
        logs = found._totals[wiring.first[variable] : wiring.first[variable + 1]]
        if wiring.sizes[variable] == 0:
            logs = np.array([0.0, logs[0]])
        order = np.argsort(-logs, kind="stable")
        best = max(best, (float(logs[order[0]] - logs[order[1]]), -int(variable), int(order[0])))
    return -best[1], best[2]


def _told(graph: FactorGraph, variable: int, value: int, so: bool) -> FactorGraph:
    """The graph in which a variable has a value, or does not."""
    wiring = graph._wiring
    evidence = np.array(graph._evidence)
    cells = slice(wiring.first[variable], wiring.first[variable + 1])
    if wiring.sizes[variable] == 0:
        evidence[cells] = np.inf if (value == 1) == so else -np.inf
    else:
        evidence[cells][(np.arange(wiring.sizes[variable]) == value) != so] = -np.inf
    other = graph._copy()
    other._evidence = kept(evidence)
    return other


def _read_certain(found: Beliefs, values: Ints) -> None:
    """Fill in the variables that have one value left."""
    open_ = found.graph._undecided(found._totals)
    for block in found.graph._blocks:
        numbers = block.numbers.ravel()
        sure = ~open_[numbers]
        values[numbers[sure]] = found.best(block).ravel()[sure]


def _read_clear(found: Beliefs, values: Ints) -> None:
    """Fill in the variables whose best value is better than any other: all best assignments agree on them."""
    scale = TIE * (1.0 + np.abs(found.graph.scores[np.isfinite(found.graph.scores)]).max(initial=0.0))
    for block in found.graph._blocks:
        if not block.size:
            continue
        logs = found.log_odds(block)
        if block.k == 1:
            clear = np.ones(block.shape, np.bool_)
        elif block.k:
            clear = np.partition(logs, block.k - 2, axis=-1)[..., -2] < -scale
        else:
            clear = np.abs(logs) > scale
        values[block.numbers[clear]] = found.best(block)[clear]


def _settle(found: Beliefs, values: Ints, rng: np.random.Generator | None) -> list[Choice]:
    """Values for the variables of one factor in every connected part, and for variables without open factors."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    wiring = found.graph._wiring
    open_ = values < 0
    factor, variable = wiring.pairs
    mine = open_[variable]
    factor, variable = factor[mine], variable[mine]
    degree = np.bincount(factor, minlength=wiring.n_factors)
    size = wiring.n_factors + len(values)
    edges = coo_array((np.ones(len(factor)), (factor, variable + wiring.n_factors)), shape=(size, size))
    label = connected_components(edges, directed=False)[1]
    counts = [wiring.families[at].count for at in wiring.speakers]
    mute = np.repeat([rng is None and not wiring.families[at].maximises for at in wiring.speakers], counts)
    involved = np.flatnonzero(degree)
    order = involved[np.lexsort((involved, -degree[involved], ~mute[involved].astype(np.bool_), label[involved]))]
    firsts = order[np.unique(label[order], return_index=True)[1]]
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    chosen: list[Choice] = []
    for number in firsts:
        at = int(np.searchsorted(starts, number, side="right")) - 1
        family = wiring.families[wiring.speakers[at]]
        scores = found.graph._factors[wiring.speakers[at]].of(found.graph.scores)
        pick = family.choose(scores, found._gathered[1][at], int(number - starts[at]), rng)
        chosen.append(pick if pick is not None else _single(found, int(variable[factor == number][0]), rng))
    touched = np.zeros(len(values), np.bool_)
    touched[variable] = True
    return chosen + [_single(found, int(v), rng) for v in np.flatnonzero(open_ & ~touched)]


def _single(found: Beliefs, variable: int, rng: np.random.Generator | None) -> Choice:
    """A value for one variable, from what is believed of it."""
    wiring = found.graph._wiring
    logs = found._totals[wiring.first[variable] : wiring.first[variable + 1]]
    if wiring.sizes[variable] == 0:
        logs = np.array([0.0, logs[0]])
    picked = np.zeros(len(logs))
    weights(MAX if rng is None else DRAW, logs, picked, 0.0 if rng is None else rng.random())
    return np.array([variable]), np.array([int(picked.argmax())])


def _observed(graph: FactorGraph, values: Ints) -> FactorGraph:
    """The graph in which the variables with a value have it."""
    wiring = graph._wiring
    evidence = np.array(graph._evidence)
    for block in graph._blocks:
        numbers = block.numbers.ravel()
        numbers = numbers[values[numbers] >= 0]
        if not block.k:
            evidence[wiring.first[numbers]] = np.where(values[numbers] > 0, np.inf, -np.inf)
            continue
        cells = wiring.first[numbers][:, None] + np.arange(block.k)
        evidence[cells] = np.where(values[numbers][:, None] == np.arange(block.k), 0.0, -np.inf)
    other = graph._copy()
    other._evidence = kept(evidence)
    if graph.exact:
        other.__dict__["exact"] = True  # observing makes no cycles
    return other
