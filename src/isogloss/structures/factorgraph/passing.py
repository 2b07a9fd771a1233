"""Belief propagation: who talks to whom, in which order, and what is believed in the end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, NoReturn

import numpy as np

from isogloss.structures.base import Array, InfeasibleError, kept
from isogloss.structures.factorgraph.family import Family, Ints, Unary
from isogloss.structures.factorgraph.variables import Variables

__all__ = ["ConvergenceReport", "Evidence", "Incoming", "Options", "Wiring", "pass_messages"]

EXACT = 1e-13  # without cycles messages come to rest but for the last digits
BULK = 0.5  # the residual schedule renews the factors whose news is at least this share of the greatest


@dataclass(frozen=True)
class Options:
    """How messages are passed; see `FactorGraph.run`."""

    iterations: int | None = None
    tolerance: float = 1e-8
    damping: float = 0.0
    schedule: str = "synchronous"


@dataclass(frozen=True)
class ConvergenceReport:
    """How belief propagation went.

    Attributes
    ----------
    iterations : int
        Rounds of messages; with the residual schedule, rounds in which some factors spoke.
    changes : tuple of float
        The largest change of a message in every round, relative where messages are large.
    converged : bool
        Whether the last change was within the tolerance.
    updates : int
        How many times a factor sent its messages.
    exact : bool
        The graph has no cycles, so that what converged is right; otherwise it is an approximation.
    largest : float
        The largest finite message, log-odds or log weight, by absolute value.
    """

    iterations: int
    changes: tuple[float, ...]
    converged: bool
    updates: int
    exact: bool
    largest: float = 0.0

    @property
    def remedy(self) -> str:
        """What to try; empty when all is well."""
        if self.converged:
            return ""
        if self.exact:
            return "the graph has no cycles: leave iterations at None, and damping at 0, and it will converge"
        if self.largest > 1e4:
            return (
                "messages grow without end, as they do where two factors state the same constraint: leave one out, or "
                "ask for a few rounds with iterations=5, tolerance=0"
            )
        recent = [change for change in self.changes[-10:] if math.isfinite(change)]
        if len(recent) > 1 and recent[-1] < 0.8 * recent[0]:
            return "the changes still shrink: give more iterations"
        return "the messages swing: try damping=0.5 or schedule='residual', or merge factors that form short cycles"

    def __str__(self) -> str:
        end = "converged" if self.converged else "did not converge"
        last = f", last change {self.changes[-1]:.1e}" if self.changes else ""
        words = f"belief propagation {end} after {self.iterations} iterations{last}"
        return f"{words}; {self.remedy}" if self.remedy else words


class Evidence(NamedTuple):
    """What variables were told, added up: `Wiring.gather`."""

    finite: Array
    below: Ints
    above: Ints


Incoming = list[tuple[Array, ...]]


class Wiring:
    """All messages of a graph in one vector: where they stand, and what they are about. Shared by graphs that differ
    in scores and observations only.

    A Boolean has one cell, its log-odds; a variable of k values has k, their log weights.
    """

    def __init__(self, sizes: Ints, families: Sequence[Family]) -> None:
        self.families = families
        self.sizes = sizes  # int64[n_variables]: 0 for Booleans, else k
        widths = np.maximum(sizes, 1)
        self.first = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        self.speakers = [at for at, family in enumerate(families) if not isinstance(family, Unary)]
        self.n_factors = 0
        self.views: list[list[tuple[slice, tuple[int, ...], int]]] = []
        cells, owners, variables, offset = [], [], [], 0
        for at in self.speakers:
            family, view = families[at], []
            for slot, owner in zip(family.slots, family.owners(), strict=True):
                about = self.cells(slot)
                view.append((slice(offset, offset + about.size), about.shape, slot.k))
                offset += about.size
                cells.append(about.ravel())
                width = max(slot.k, 1)
                owners.append(np.repeat(owner.ravel() + self.n_factors, width))
                variables.append(np.repeat(slot.numbers.ravel(), width))
            self.views.append(view)
            self.n_factors += family.count
        empty = [np.zeros(0, np.int64)]
        self.cell = np.concatenate(cells or empty)
        self.owner = np.concatenate(owners or empty)
        self.variable = np.concatenate(variables or empty)

    @property
    def n_cells(self) -> int:
        return int(self.first[-1])

    @cached_property
    def boolean_cell(self) -> Array:
        """bool[n_cells]."""
        return np.repeat(self.sizes == 0, np.maximum(self.sizes, 1))

    @cached_property
    def boolean_message(self) -> Array:
        """bool[n_messages]."""
        return np.asarray(self.boolean_cell[self.cell])

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Factor and variable of every edge of the graph, one edge for all values of a variable."""
        first = self.cell == self.first[self.variable]
        return self.owner[first], self.variable[first]

    def cells(self, variables: Variables) -> Ints:
        """int64[shape] or int64[shape, k]: where the beliefs about these variables stand."""
        first = self.first[variables.numbers]
        return first[..., None] + np.arange(variables.k) if variables.k else first

    def gather(self, prior: Array, told: Array, messages: Array) -> tuple[Evidence, int]:
        """Sums at all cells, and a cell at which two sayings contradict each other, or −1."""
        from isogloss.structures._numba.messages import cell_sums

        n = self.n_cells
        evidence = Evidence(np.empty(n), np.empty(n, np.int32), np.empty(n, np.int32))
        return evidence, int(cell_sums(prior, told, self.cell, messages, *evidence))

    def incoming(self, messages: Array, evidence: Evidence) -> tuple[Incoming, Array, int]:
        """What every family hears, the sums without its own words; the same as one vector; a hopeless cell, or −1."""
        from isogloss.structures._numba.messages import cavities

        flat = np.empty(len(messages))
        cavities(self.cell, messages, *evidence, flat)
        heard: Incoming = []
        for number in range(len(self.views)):
            arrays, bad = self.shaped(number, flat, 0)
            if bad >= 0:
                return heard, flat, bad
            heard.append(arrays)
        return heard, flat, -1

    def shaped(self, number: int, flat: Array, first: int) -> tuple[tuple[Array, ...], int]:
        """What one family hears, of a vector that begins with message `first`; and a hopeless cell, or −1."""
        arrays = []
        for where, shape, k in self.views[number]:
            array = flat[where.start - first : where.stop - first].reshape(shape)
            if k and array.size:
                top = array.max(axis=-1, keepdims=True)
                if (top == -np.inf).any():
                    at = int(np.flatnonzero(top.ravel() == -np.inf)[0])
                    return (), int(self.cell[where][at * k])
                array -= top
            arrays.append(array)
        return tuple(arrays), -1

    def totals(self, evidence: Evidence) -> Array:
        """float64[n_cells]: log-odds and log weights with infinities in their place."""
        return np.where(evidence.below > 0, -np.inf, np.where(evidence.above > 0, np.inf, evidence.finite))

    def raise_contradiction(self, cell: int, names: Sequence[Variables]) -> NoReturn:
        """Say which variable has no value left."""
        number = int(np.searchsorted(self.first, cell, side="right")) - 1
        self.raise_hopeless(number, names)

    def raise_hopeless(self, number: int, names: Sequence[Variables]) -> NoReturn:
        """Say so by the name of the variable."""
        place = next(v for v in names if v.size and v.numbers.flat[0] <= number <= v.numbers.flat[-1])
        index = [int(i) for i in np.unravel_index(number - int(place.numbers.flat[0]), place.shape)]
        what = f"none of its {place.k} values" if place.k else "neither true nor false"
        raise InfeasibleError(
            f"FactorGraph: {place.name}{index} can be {what}: hard factors, scores of minus infinity and observed "
            f"values contradict each other. Free an observation, or make a hard factor soft"
        )


class _Passing:
    """One run: the messages, and how to renew them."""

    def __init__(
        self,
        wiring: Wiring,
        scores: Sequence[Array],
        prior: Array,
        told: Array,
        names: Sequence[Variables],
        options: Options,
        maximise: bool,
        messages: Array,
    ) -> None:
        self.wiring, self.scores, self.prior, self.told, self.names = wiring, scores, prior, told, names
        self.options, self.maximise, self.messages = options, maximise, messages

    def listen(self) -> tuple[Incoming, Array]:
        evidence, bad = self.wiring.gather(self.prior, self.told, self.messages)
        if bad >= 0:
            self.wiring.raise_contradiction(bad, self.names)
        heard, flat, bad = self.wiring.incoming(self.messages, evidence)
        if bad >= 0:
            self.wiring.raise_contradiction(bad, self.names)
        return heard, flat

    def speak(
        self, heard: Sequence[tuple[Array, ...]] | Mapping[int, tuple[Array, ...]], out: Array,
        who: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """Write new messages of all families, or of some, into `out`, damped."""
        for at in range(len(self.wiring.speakers)) if who is None else who:
            number = self.wiring.speakers[at]
            family = self.wiring.families[number]
            try:
                sent = family.send(self.scores[number], heard[at], self.maximise and family.maximises)
            except InfeasibleError as finding:
                raise InfeasibleError(f"FactorGraph, {family.kind} factors: {finding}") from finding
            if self.maximise and not family.maximises:
                sent = tuple(np.where(message == -np.inf, message, 0.0) for message in sent)
            for (where, _, _), message in zip(self.wiring.views[at], sent, strict=True):
                out[where] = message.ravel()
        share = self.options.damping
        if share:
            with np.errstate(invalid="ignore"):
                mixed = share * self.messages + (1 - share) * out
            soft = np.isfinite(self.messages) & np.isfinite(out)
            out[soft] = mixed[soft]

    def change(self, new: Array, out: Array) -> float:
        from isogloss.structures._numba.messages import changes

        worst = float(changes(self.messages, new, out))
        if math.isnan(worst):
            at = int(np.flatnonzero(np.isnan(new))[0])
            self.wiring.raise_hopeless(int(self.wiring.variable[at]), self.names)
        return worst

    def synchronous(self, limit: int) -> tuple[list[float], int]:
        """All factors speak at once; then all listen."""
        trace: list[float] = []
        change = np.empty(len(self.messages))
        while len(trace) < limit and not (trace and trace[-1] <= self.options.tolerance):
            heard, _ = self.listen()
            new = np.empty(len(self.messages))
            self.speak(heard, new)
            trace.append(self.change(new, change))
            self.messages = new
        return trace, len(trace) * self.wiring.n_factors

    def grouped(self, limit: int) -> tuple[list[float], int]:
        """Families speak one after the other, in the order of addition; each hears what was said just before.

        Sums at variables are taken anew in every round, and moved by each family's news within it.
        """
        from isogloss.structures._numba.messages import cavities, retell

        wiring = self.wiring
        trace: list[float] = []
        change = np.empty(len(self.messages))
        while len(trace) < limit and not (trace and trace[-1] <= self.options.tolerance):
            evidence, bad = wiring.gather(self.prior, self.told, self.messages)
            before = self.messages.copy()
            for at, view in enumerate(wiring.views):
                if bad >= 0:
                    wiring.raise_contradiction(bad, self.names)
                own = slice(view[0][0].start, view[-1][0].stop)
                cell, said = wiring.cell[own], self.messages[own]
                flat = np.empty(len(said))
                cavities(cell, said, *evidence, flat)
                heard, bad = wiring.shaped(at, flat, own.start)
                if bad >= 0:
                    wiring.raise_contradiction(bad, self.names)
                new = self.messages.copy() if self.options.damping else self.messages
                old = said.copy()
                self.speak({at: heard}, new, [at])
                if np.isnan(new[own]).any():
                    self.change(new, change)
                self.messages = new
                bad = int(retell(cell, old, new[own], *evidence))
            if bad >= 0:
                wiring.raise_contradiction(bad, self.names)
            self.messages, new = before, self.messages
            trace.append(self.change(new, change))
            self.messages = new
        return trace, len(trace) * wiring.n_factors

    def residual(self, limit: int) -> tuple[list[float], int]:
        """Those factors speak that have heard the most news since they last spoke."""
        from isogloss.structures._numba.messages import changes, worst_by_owner

        wiring = self.wiring
        count = len(self.messages)
        used = np.full(count, np.nan)
        left, change, news = np.zeros(count), np.empty(count), np.empty(wiring.n_factors)
        families = [np.unique(wiring.owner[view[0][0].start : view[-1][0].stop]) for view in wiring.views]
        trace: list[float] = []
        updates, fresh = 0, True
        while updates < limit * wiring.n_factors:
            heard, flat = self.listen()
            if fresh:
                news[:], fresh = np.inf, False
            else:
                changes(used, flat, change)
                np.maximum(change, left, out=change)
                worst_by_owner(wiring.owner, change, news)
            worst = float(news.max(initial=0.0))
            if trace:
                trace[-1] = worst
                if worst <= self.options.tolerance:
                    break
            chosen = news >= BULK * worst
            who = [at for at, owned in enumerate(families) if chosen[owned].any()]
            new = self.messages.copy()
            self.speak(heard, new, who)
            mine = chosen[wiring.owner]
            new[~mine] = self.messages[~mine]
            self.change(new, change)
            kept_back = self.options.damping / (1.0 - self.options.damping)
            left[mine] = np.where(np.isfinite(change[mine]), change[mine], 0.0) * kept_back
            used[mine] = flat[mine]
            self.messages = new
            updates += int(chosen.sum())
            trace.append(worst)
        return trace, updates


def pass_messages(
    wiring: Wiring,
    scores: Sequence[Array],
    prior: Array,
    told: Array,
    names: Sequence[Variables],
    options: Options,
    *,
    maximise: bool,
    exact: bool,
    start: Array | None = None,
) -> tuple[Array, ConvergenceReport]:
    """Run belief propagation; messages, and how it went."""
    messages = np.zeros(len(wiring.cell)) if start is None else np.array(start)
    limit, tolerance = options.iterations, options.tolerance
    if exact and not options.damping:  # news crosses a graph without cycles in no more rounds than it has factors
        limit = wiring.n_factors + 2 if limit is None else limit
        options = replace(options, tolerance=min(tolerance, EXACT))
    run = _Passing(wiring, scores, prior, told, names, options, maximise, messages)
    limit = 200 if limit is None else limit
    if wiring.n_factors == 0:
        run.listen()
        return kept(messages), ConvergenceReport(0, (), True, 0, exact)
    trace, updates = getattr(run, options.schedule)(limit)
    converged = bool(trace) and trace[-1] <= tolerance
    largest = float(np.abs(run.messages[np.isfinite(run.messages)]).max(initial=0.0))
    return kept(run.messages), ConvergenceReport(len(trace), tuple(trace), converged, updates, exact, largest)
