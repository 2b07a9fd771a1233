"""What a factor graph believes once messages have been passed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, kept
from isogloss.structures.factorgraph.family import Unary
from isogloss.structures.factorgraph.passing import ConvergenceReport, Evidence, Incoming
from isogloss.structures.factorgraph.sequences import links_grid
from isogloss.structures.factorgraph.variables import Factors, Variables

if TYPE_CHECKING:
    from isogloss.structures.factorgraph.graph import FactorGraph

__all__ = ["Beliefs"]


class Beliefs:
    """The outcome of `FactorGraph.run`: beliefs about variables and factors, log Z, and how it went.

    Right where `report.exact` and `report.converged`; an approximation otherwise. After a run of maxima, beliefs are
    those of the best assignments, and `log_partition` is the score of the best one.
    """

    def __init__(self, graph: FactorGraph, messages: Array, report: ConvergenceReport, maximise: bool) -> None:
        self.graph = graph
        self.messages = messages
        self.report = report
        self.maximise = maximise

    def __repr__(self) -> str:
        return f"Beliefs({self.graph!r}: {self.report})"

    @cached_property
    def _gathered(self) -> tuple[Evidence, Incoming]:
        wiring = self.graph._wiring
        evidence, bad = wiring.gather(self.graph._prior, self.graph._evidence, self.messages)
        if bad < 0:
            heard, _, bad = wiring.incoming(self.messages, evidence)
        if bad >= 0:
            wiring.raise_contradiction(bad, self.graph._blocks)
        return evidence, heard

    @cached_property
    def _totals(self) -> Array:
        """float64[n_cells]: log-odds of Booleans, log weights of the others with the best at 0."""
        wiring = self.graph._wiring
        totals = wiring.totals(self._gathered[0])
        for block in self.graph._blocks:
            if block.k and block.size:
                cells = wiring.cells(block).reshape(-1, block.k)
                top = totals[cells].max(axis=1)
                if (top == -np.inf).any():
                    number = block.numbers.flat[int(np.flatnonzero(top == -np.inf)[0])]
                    wiring.raise_hopeless(int(number), self.graph._blocks)
                totals[cells] -= top[:, None]
        return totals

    def log_odds(self, variables: Variables) -> Array:
        """float64[shape]: log-odds of Booleans being true, ±∞ where certain; float64[shape, k]: log weights of values,
        the best of them 0."""
        self.graph._own(variables)
        return np.asarray(self._totals[self.graph._wiring.cells(variables)])

    def probabilities(self, variables: Variables) -> Array:
        """float64[shape]: belief that each Boolean is true; for k values, float64[shape, k]."""
        logs = self.log_odds(variables)
        if not variables.k:
            with np.errstate(over="ignore"):
                return np.asarray(1.0 / (1.0 + np.exp(-logs)))
        mass = np.exp(logs)
        return np.asarray(mass / mass.sum(axis=-1, keepdims=True))

    def best(self, variables: Variables) -> NDArray[np.int64]:
        """int64[shape]: the most likely value of each variable by itself; among equals the lowest."""
        logs = self.log_odds(variables)
        return np.asarray(logs.argmax(axis=-1) if variables.k else logs > 0, np.int64)

    def marginals(self) -> Array:
        """float64[n_scores]: expected parts by the factors' own beliefs, as `FactorGraph.scores` lies."""
        return self._solved[1]

    def of(self, factors: Factors) -> Array:
        """Expected parts of some factors, shaped as their scores."""
        return factors.of(self.marginals())

    def incoming(self, factors: Factors) -> tuple[Array, ...]:
        """What these factors hear, one array for each of their arrays of variables."""
        return self._gathered[1][self.graph._wiring.speakers.index(factors.number)]

    def outgoing(self, factors: Factors) -> tuple[Array, ...]:
        """What these factors say."""
        view = self.graph._wiring.views[self.graph._wiring.speakers.index(factors.number)]
        return tuple(self.messages[where].reshape(shape) for where, shape, _ in view)

    def log_partition(self) -> float:
        r"""log Z by the Bethe free energy, from the totals of factors m, variables i and edges between them.

        .. math:: \log Z \approx \sum_m \log Z_m + \sum_i \log Z_i - \sum_{(m,i)} \log Z_{mi}

        Right on graphs without cycles; elsewhere an approximation, whose derivative by the scores is `marginals()` once
        messages have converged.

        References
        ----------
        Smith 2010, equation 2.19, to which this is equal where messages have converged; Yedidia, Freeman and Weiss,
        Constructing free-energy approximations, IEEE Transactions on Information Theory 51(7), 2005.
        """
        return self._solved[0]

    @cached_property
    def _solved(self) -> tuple[float, Array]:
        graph, wiring = self.graph, self.graph._wiring
        totals, (evidence, heard) = self._totals, self._gathered
        marginals = np.zeros(len(graph.scores))
        value = self._variable_masses(evidence) - self._edge_masses(heard)
        for number, (family, factors) in enumerate(zip(wiring.families, graph._factors, strict=True)):
            if isinstance(family, Unary):
                if factors.of(marginals).size:
                    factors.of(marginals)[...] = self.probabilities(family.slots[0])
                continue
            at = wiring.speakers.index(number)
            log_total, expected = family.believe(factors.of(graph.scores), heard[at], self.maximise)
            if log_total == -np.inf:
                raise InfeasibleError(
                    f"FactorGraph: the {family.kind} factors allow nothing that the others allow: hard factors, scores "
                    f"of minus infinity and observed values contradict each other"
                )
            value += log_total
            factors.of(marginals)[...] = expected
        del totals
        marginals[graph.scores == -np.inf] = 0.0
        return float(value), kept(marginals)

    def _variable_masses(self, evidence: Evidence) -> float:
        from isogloss.structures._numba.messages import log_masses

        wiring = self.graph._wiring
        mine = wiring.boolean_cell
        finite, below, above = (array[mine] for array in evidence)
        value = float(log_masses(finite, below, above, self.maximise))
        totals = wiring.totals(evidence)
        return value + sum(
            _log_mass(totals[wiring.cells(block)], self.maximise) for block in self.graph._blocks if block.k
        )

    def _edge_masses(self, heard: Incoming) -> float:
        from isogloss.structures._numba.messages import log_masses

        value = 0.0
        for view, arrays in zip(self.graph._wiring.views, heard, strict=True):
            for (where, shape, k), array in zip(view, arrays, strict=True):
                said = self.messages[where].reshape(shape)
                if k:
                    value += _log_mass(said + array, self.maximise)
                    continue
                both = np.stack([said.ravel(), array.ravel()])
                infinite = np.isinf(both)
                finite = np.where(infinite, 0.0, both).sum(axis=0)
                below = (both == -np.inf).sum(axis=0).astype(np.int32)
                above = (both == np.inf).sum(axis=0).astype(np.int32)
                value += float(log_masses(finite, below, above, self.maximise))
        return value

    def best_tree(
        self,
        links: Variables,
        *,
        projective: bool = True,
        single_root: bool = False,
        weights: Literal["probability", "log-odds"] = "probability",
    ) -> NDArray[np.int64]:
        """int64[n]: the head of each word in the tree with the most expected right attachments.

        Parameters
        ----------
        links : Boolean[n + 1, n + 1]
            (head, child); node 0 is the root.
        weights : "probability" or "log-odds"
            The first maximises expected accuracy; the second is what the reference writes, and nearly always agrees.

        References
        ----------
        Smith 2010, section 2.6 and equation 3.18.
        """
        from isogloss.structures.projective import ProjectiveTree
        from isogloss.structures.spanning import SpanningTree

        links_grid(links, "best_tree")
        if weights not in ("probability", "log-odds"):
            raise ParameterError(f"Beliefs.best_tree: weights should be 'probability' or 'log-odds', not {weights!r}")
        logs = self.log_odds(links)
        scores = np.clip(logs, -1e4, 1e4) if weights == "log-odds" else self.probabilities(links)
        scores = np.where(logs == -np.inf, -np.inf, scores)
        return (ProjectiveTree if projective else SpanningTree)(scores, single_root=single_root).argmax()


def _log_mass(logs: Array, maximise: bool) -> float:
    """Σ over rows of the log total of the last axis."""
    if not logs.size:
        return 0.0
    return float((logs.max(axis=-1) if maximise else np.logaddexp.reduce(logs, axis=-1)).sum())
