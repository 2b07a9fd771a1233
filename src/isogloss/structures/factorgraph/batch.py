"""`FactorGraphs`: many factor graphs under one roof, with the methods of one for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.structures.base import Array, InfeasibleError
from isogloss.structures.batch import Batch, Stack
from isogloss.structures.factorgraph.graph import FactorGraph

__all__ = ["FactorGraphs"]


class FactorGraphs(Batch[NDArray[np.int64]]):
    """Factor graphs of any shapes, one for each sentence, worked on one after the other.

    Factors are grouped within a graph, not across graphs: sentences of one text seldom have the same factors, and
    within a sentence the groups are large enough. Every number is, to the bit, that of the graph alone.

    Examples
    --------
    >>> one, two = FactorGraph(), FactorGraph()
    >>> _ = one.unary(one.boolean(2), [0.0, 0.0]), two.unary(two.multinomial(1, 3), [[0.0, 0.0, 0.0]])
    >>> np.exp(FactorGraphs([one, two]).log_partition()).round(9).tolist()
    [4.0, 3.0]
    """

    def __init__(self, graphs: Iterable[FactorGraph]) -> None:
        self.graphs = tuple(graphs)
        self.scores = Stack.of([graph.scores for graph in self.graphs], "FactorGraphs", 1)

    def __getitem__(self, s: int) -> FactorGraph:
        return self.graphs[s]

    def _remake(self, scores: Stack) -> Self:
        return type(self)(graph.with_scores(scores[s]) for s, graph in enumerate(self.graphs))

    def _take(self, items: NDArray[np.int64]) -> FactorGraphs:
        return FactorGraphs(self.graphs[s] for s in items.tolist())

    def _solve(self) -> tuple[Array, Stack]:
        values, marginals = np.empty(len(self)), self.scores.like(np.zeros(len(self.scores.values)))
        for s, graph in enumerate(self.graphs):
            try:
                values[s] = graph.log_partition()
                marginals[s][...] = graph.marginals()
            except InfeasibleError:
                values[s] = -np.inf
        return values, marginals

    def argmax(self) -> list[NDArray[np.int64]]:
        """The best assignment of each graph; see `FactorGraph.argmax`."""
        return [self._named(s, graph.argmax) for s, graph in enumerate(self.graphs)]

    def sample(self, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """One assignment drawn for each graph; refused where one has cycles."""
        return [self._named(s, graph.sample, rng) for s, graph in enumerate(self.graphs)]

    def clamp(self, structures: Sequence[Any]) -> Self:
        """The graphs in which these assignments alone are allowed; see `FactorGraph.clamp`."""
        return type(self)(self[s].clamp(y) for s, y in enumerate(self._one_each(structures)))
