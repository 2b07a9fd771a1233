"""`FactorGraph`: variables, factors over them, and belief propagation."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, Distribution, kept
from isogloss.structures.factorgraph.beliefs import Beliefs
from isogloss.structures.factorgraph.builder import Builder
from isogloss.structures.factorgraph.family import Ints, Unary
from isogloss.structures.factorgraph.passing import Options, pass_messages
from isogloss.structures.factorgraph.variables import Variables
from isogloss.structures.semiring import LOG, Log, Max

if TYPE_CHECKING:
    from isogloss.structures.factorgraph.batch import FactorGraphs

__all__ = ["FactorGraph"]

SCHEDULES = ("synchronous", "grouped", "residual")


class FactorGraph(Builder, Distribution[NDArray[np.int64]]):
    r"""A distribution over Booleans and variables of k values, as a product of factors.

    .. math:: p(A) = \frac{1}{Z} \prod_m F_m(A)

    Variables and factors are added in arrays: thousands of equal factors are one call and one array operation. Soft
    factors have scores, log :math:`F_m`; hard ones allow or forbid. Inference is belief propagation: exact where the
    graph has no cycles (`exact` says so), an approximation otherwise. A chain or a tree counts as one factor.

    Parameters
    ----------
    iterations : int, optional
        Rounds of messages at most; without it, as many as a graph without cycles needs, else 200.
    tolerance : float
        Messages that change by less have converged; 0 asks for all rounds, whether they converge or not.
    damping : float
        The share of its old message that a factor keeps, from 0 to below 1.
    schedule : "synchronous", "grouped" or "residual"
        All factors speak at once; factors that were added together do, one group after the other, each hearing what
        those before it said in the same round; or those with the most news.

    Notes
    -----
    An assignment y is int64[n_variables], all variables in order of addition; ``links.of(y)`` gives those of an array.
    `scores` and `marginals()` are vectors of all soft factors in order of addition; what adds factors returns a handle
    whose `of` finds their share. `log_partition` is that of Bethe, and `marginals` (beliefs of factors) its derivative.
    `argmax` is exact without cycles, `sample` only possible without cycles; see both.

    References
    ----------
    Smith and Eisner, Dependency Parsing by Belief Propagation, EMNLP 2008; Smith, Efficient Inference for Trees and
    Alignments, PhD 2010, chapters 2 and 3.

    Examples
    --------
    >>> g = FactorGraph()
    >>> rain, wet = g.boolean(1, name="rain"), g.boolean(1, name="wet")
    >>> prior = g.unary(rain, [-1.0])
    >>> both = g.table([rain, wet], np.log([[[0.9, 0.1], [0.2, 0.8]]]))
    >>> g.exact, g.run().probabilities(wet).round(3).tolist(), g.given(wet, True).argmax().tolist()
    (True, [0.288], [1, 1])
    """

    def __init__(
        self,
        *,
        iterations: int | None = None,
        tolerance: float = 1e-8,
        damping: float = 0.0,
        schedule: str = "synchronous",
    ) -> None:
        self.options = _checked_options(Options(iterations, tolerance, damping, schedule))
        self.scores = kept(np.zeros(0))
        self._evidence = kept(np.zeros(0))
        self._blocks, self._families, self._factors = (), (), ()
        self._mark = object()

    def __repr__(self) -> str:
        return f"FactorGraph({self.n_variables} variables, {sum(len(f) for f in self._factors)} factors)"

    # --- observations

    def given(self, variables: Variables, values: ArrayLike) -> Self:
        """The graph in which these variables have these values: its log Z is that of the assignments that agree."""
        self._own(variables)
        seen = np.broadcast_to(np.asarray(values), variables.shape)
        if seen.size and not (seen.min() >= 0 and seen.max() < variables.n_values):
            raise ParameterError(f"{self!r}: values of {variables!r} are 0 to {variables.n_values - 1}")
        if variables.k:
            told = np.where(seen[..., None] == np.arange(variables.k), 0.0, -np.inf)
        else:
            told = np.where(seen.astype(np.bool_), np.inf, -np.inf)
        other = self._copy()
        other._observe(told, variables)
        return other

    def clamp(self, y: Any) -> Self:
        """The graph in which `y` alone is allowed."""
        values = self._assignment(y)
        other = self
        for block in self._blocks:
            other = other.given(block, block.of(values))
        return other

    # --- inference

    @cached_property
    def _prior(self) -> Array:
        """float64[n_cells]: the sums of unary scores."""
        prior = np.zeros(self._wiring.n_cells)
        unary = [at for at, family in enumerate(self._families) if isinstance(family, Unary)]
        for at in unary:
            cells = self._wiring.cells(self._families[at].slots[0])
            np.add.at(prior, cells.ravel(), self._factors[at].of(self.scores).ravel())
        return prior

    @cached_property
    def exact(self) -> bool:
        """Whether the graph has no cycles, so that belief propagation is exact; variables with one value left do not
        count, and neither do unary scores."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        wiring = self._wiring
        factor, variable = wiring.pairs
        open_ = self._undecided(np.where(np.isinf(self._evidence), self._evidence, self._prior))[variable]
        factor, variable = factor[open_], variable[open_]
        size = wiring.n_factors + self.n_variables
        ends = (factor, variable + wiring.n_factors)
        edges = coo_array((np.ones(len(factor)), ends), shape=(size, size))
        parts = connected_components(edges, directed=False, return_labels=False)
        return len(factor) == size - int(parts)

    def _undecided(self, logs: Array) -> NDArray[np.bool_]:
        """bool[n_variables]: which variables have more than one value left, by log-odds and log weights."""
        wiring = self._wiring
        out = np.isfinite(logs[wiring.first[:-1]])
        for block in self._blocks:
            if block.k and block.size:
                out[block.numbers.ravel()] = (logs[wiring.cells(block)] > -np.inf).sum(axis=-1).ravel() > 1
        return out

    def run(
        self,
        *,
        iterations: int | None = None,
        tolerance: float | None = None,
        damping: float | None = None,
        schedule: str | None = None,
        semiring: Log | Max = LOG,
        start: Beliefs | None = None,
    ) -> Beliefs:
        """Pass messages until they stay as they are.

        Parameters
        ----------
        iterations, tolerance, damping, schedule
            As of the constructor; what is not given is as there.
        semiring : LOG or MAX
            Sums (marginals) or maxima (best assignments). Maxima over nonprojective trees are not to be had in good
            time: `argmax` finds its way around them, `run` refuses.
        start : Beliefs, optional
            Messages to begin with, from a graph of the same factors: near the answer when scores have changed little.
        """
        mine = self.options
        options = _checked_options(
            Options(
                mine.iterations if iterations is None else iterations,
                mine.tolerance if tolerance is None else tolerance,
                mine.damping if damping is None else damping,
                mine.schedule if schedule is None else schedule,
            )
        )
        if isinstance(semiring, Max):
            for family in self._families:
                if not family.maximises:
                    raise ParameterError(
                        f"FactorGraph.run: {family.kind} factors without projectivity send no messages of maxima; "
                        f"use argmax(), the LOG semiring, or projective=True"
                    )
        if start is not None and len(start.messages) != len(self._wiring.cell):
            raise ParameterError(f"FactorGraph.run: start has messages of another graph, {start.graph!r}")
        return self._run(options, isinstance(semiring, Max), None if start is None else start.messages)

    def _run(self, options: Options, maximise: bool, start: Array | None = None) -> Beliefs:
        scores = [factors.of(self.scores) for factors in self._factors]
        messages, report = pass_messages(
            self._wiring,
            scores,
            self._prior,
            self._evidence,
            self._blocks,
            options,
            maximise=maximise,
            exact=self.exact,
            start=start,
        )
        return Beliefs(self, messages, report, maximise)

    @cached_property
    def beliefs(self) -> Beliefs:
        """The outcome of `run()`, once; warns where messages do not converge."""
        found = self.run()
        self._warn(found)
        return found

    def _warn(self, found: Beliefs) -> None:
        if not found.report.converged and self.options.tolerance > 0:
            warnings.warn(f"{self!r}: {found.report}", RuntimeWarning, stacklevel=4)

    def _solve(self) -> tuple[float, Array]:
        return self.beliefs.log_partition(), self.beliefs.marginals()

    def argmax(self) -> NDArray[np.int64]:
        """int64[n_variables]: the best assignment.

        Exact where there are no cycles (with nonprojective trees: no more than one to a connected part). Elsewhere
        factors are settled one after the other, largest first, each by the max-product messages that it then hears, or
        variables, surest first: all hard factors hold in what comes back, but it need not be the best.
        """
        from isogloss.structures.factorgraph.decide import decide

        return decide(self, None)

    def sample(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """int64[n_variables]: one assignment, drawn exactly; refused where there are cycles."""
        from isogloss.structures.factorgraph.decide import decide

        if not self.exact:
            raise ParameterError(
                f"{self!r}: the graph has cycles, and belief propagation cannot draw from it. Observe variables with "
                f"given() until no cycle is left, or draw from the beliefs of one tree or chain"
            )
        return decide(self, rng)

    # --- assignments

    def parts(self, y: Any) -> Array:
        """float64[n_scores]: which soft parts an assignment uses; ParameterError if it breaks a hard factor."""
        found = self._parts(y)
        if isinstance(found, str):
            raise ParameterError(f"{self!r}: {found}")
        return found

    def _parts(self, y: Any) -> Array | str:
        values = self._assignment(y)
        out = np.zeros(len(self.scores))
        for family, factors in zip(self._families, self._factors, strict=True):
            found = family.parts([slot.of(values) for slot in family.slots])
            if found is None:
                return f"the assignment breaks the {family.kind} factors"
            factors.of(out)[...] = found
        return out

    def score(self, y: Any) -> float:
        """Log score of an assignment, not normalised; −∞ where it breaks a hard factor or an observation."""
        parts = self._parts(y)
        if isinstance(parts, str) or not self._agrees(self._assignment(y)):
            return -np.inf
        return float(self.scores[parts > 0].sum())

    def _agrees(self, values: Ints) -> bool:
        wiring = self._wiring
        cells = wiring.first[:-1] + np.where(wiring.sizes > 0, values, 0)
        told = self._evidence[cells]
        truth = np.where(values > 0, told > -np.inf, told < np.inf)
        return bool(np.where(wiring.sizes > 0, told > -np.inf, truth).all())

    def _assignment(self, y: Any) -> Ints:
        values = np.asarray(y, np.int64)
        limits = np.where(self._wiring.sizes > 0, self._wiring.sizes, 2)
        if values.shape != (self.n_variables,) or (values < 0).any() or (values >= limits).any():
            raise ParameterError(
                f"{self!r}: an assignment is one value for each of {self.n_variables} variables, not {y!r}"
            )
        return values

    def _read(self, parts: Array) -> NDArray[np.int64]:
        values = np.zeros(self.n_variables, np.int64)
        for family, factors in zip(self._families, self._factors, strict=True):
            found = family.reveal(factors.of(parts)) if factors.of(parts).size else None
            if found is not None:
                values[found[0]] = found[1]
        return values

    # --- the same graph, otherwise

    def _remake(self, scores: Array) -> Self:
        other = self._copy()
        other.scores = scores
        return other

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The graph as plain data: what JSON can say, and arrays; `from_arrays` makes the same graph again."""
        from isogloss.structures.factorgraph.plain import to_arrays

        return to_arrays(self)

    @staticmethod
    def batch(graphs: Iterable[FactorGraph]) -> FactorGraphs:
        """Many graphs, one for each sentence, with the methods of one for all."""
        from isogloss.structures.factorgraph.batch import FactorGraphs

        return FactorGraphs(graphs)

    @classmethod
    def from_arrays(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """From what `to_arrays` gave."""
        from isogloss.structures.factorgraph.plain import from_arrays

        return from_arrays(cls, header, arrays)


def _checked_options(options: Options) -> Options:
    if options.iterations is not None and not (isinstance(options.iterations, int) and options.iterations > 0):
        raise ParameterError(f"FactorGraph: iterations should be a positive integer, not {options.iterations!r}")
    if not options.tolerance >= 0:
        raise ParameterError(f"FactorGraph: tolerance should be 0 or more, not {options.tolerance!r}")
    if not 0 <= options.damping < 1:
        raise ParameterError(f"FactorGraph: damping should be at least 0 and below 1, not {options.damping!r}")
    if options.schedule not in SCHEDULES:
        raise ParameterError(f"FactorGraph: schedule should be one of {SCHEDULES}, not {options.schedule!r}")
    return options
