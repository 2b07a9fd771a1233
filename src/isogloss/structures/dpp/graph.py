"""`PathGraph`, a sparse directed graph with paths of one length, and `Paths`, a distribution over them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, checked_scores, expected, kept
from isogloss.structures.dpp.base import node_numbers
from isogloss.structures.semiring import DRAW, LOG, MAX, Semiring

__all__ = ["PathGraph", "Paths"]

Path = tuple[int, ...]
TOLERANCE = 1e-6
"""How far above 1 rounding may bring probabilities before they are refused."""


@dataclass(frozen=True, eq=False)
class PathGraph:
    """A directed graph, and how long its paths are.

    Parameters
    ----------
    n : int
        Number of nodes.
    edges : int64[n_edges, 2]
        From which node to which; none twice. Edges from a node to itself and cycles are allowed.
    length : int
        Number of nodes of a path, 1 or more.
    begins : bool[n], optional
        Where paths may begin; everywhere if not given.

    Examples
    --------
    >>> PathGraph(3, [[0, 1], [1, 2]], 2).with_end()                    # the path 2, 3 is the node 2 alone
    PathGraph(4 nodes, 6 edges, length=2)
    """

    n: int
    edges: NDArray[np.int64]
    length: int
    begins: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        for name, least in (("n", 0), ("length", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise ParameterError(f"PathGraph: {name} should be a whole number, {least} or more, not {value!r}")
        edges = np.array(self.edges)
        if not edges.size:
            edges = np.zeros((0, 2), np.int64)
        if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
            raise ParameterError("PathGraph: edges should be pairs of node numbers, [n_edges, 2]")
        if len(edges) and not (edges.min() >= 0 and edges.max() < self.n):
            raise ParameterError(f"PathGraph: an edge has a node that is not from 0 to {self.n - 1}")
        codes = edges[:, 1].astype(np.int64) * self.n + edges[:, 0]
        if len(np.unique(codes)) < len(codes):
            raise ParameterError("PathGraph: an edge is given twice")
        object.__setattr__(self, "edges", edges.astype(np.int64))
        if self.begins is not None:
            begins = np.array(self.begins)
            if begins.shape != (self.n,) or begins.dtype != np.bool_:
                raise ParameterError(f"PathGraph: begins should be {self.n} times True or False")
            object.__setattr__(self, "begins", begins)

    def __repr__(self) -> str:
        return f"PathGraph({self.n} nodes, {len(self.edges)} edges, length={self.length})"

    def with_end(self) -> PathGraph:
        """With one more node, the last, to which all nodes and itself lead, and at which no path begins: paths of this
        length *or shorter*, which end in it. Its edges come behind those that are here, from node 0 on."""
        to_end = np.column_stack([np.arange(self.n + 1), np.full(self.n + 1, self.n)])
        begins = np.ones(self.n, np.bool_) if self.begins is None else self.begins
        return PathGraph(self.n + 1, np.vstack([self.edges, to_end]), self.length, np.append(begins, False))

    @cached_property
    def layout(self) -> tuple[Array, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Log scores of beginnings; where the edges into each node start; their sources; their numbers in `edges`."""
        order = np.lexsort((self.edges[:, 0], self.edges[:, 1]))
        counts = np.bincount(self.edges[:, 1], minlength=self.n)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        begin = np.zeros(self.n) if self.begins is None else np.where(self.begins, 0.0, -np.inf)
        return begin, starts, np.ascontiguousarray(self.edges[order, 0]), order

    @cached_property
    def _numbers(self) -> dict[tuple[int, int], int]:
        return {(u, v): number for number, (u, v) in enumerate(self.edges.tolist())}

    def checked(self, path: Any, place: str) -> Path:
        """A path as a tuple; `ParameterError` if it is not `length` numbers of nodes."""
        nodes = node_numbers(list(path), self.n, place)
        if len(nodes) != self.length:
            raise ParameterError(f"{place}: a path has {self.length} nodes, not {len(nodes)}")
        return tuple(nodes.tolist())

    def edge_numbers(self, path: Path) -> list[int] | None:
        """The edges of a path; None if the graph lacks one of them, or no path begins there."""
        if self.begins is not None and not self.begins[path[0]]:
            return None
        found = [self._numbers.get(step, -1) for step in pairwise(path)]
        return None if -1 in found else found

    def longest(self) -> int | None:
        """Nodes on the longest path; None where a cycle makes paths of any length."""
        from scipy.sparse import csr_matrix

        steps = csr_matrix((np.ones(len(self.edges)), (self.edges[:, 1], self.edges[:, 0])), shape=(self.n, self.n))
        reached = (np.ones(self.n) if self.begins is None else self.begins.astype(np.float64)) > 0
        for length in range(self.n + 1):
            if not reached.any():
                return length
            reached = (steps @ reached) > 0
        return None


class Paths:
    r"""A distribution over the paths of a graph, all of one length.

    .. math:: \pi(y) \propto \exp\Big(\sum_t scores[y_t] + \sum_t scores[n + e_t]\Big)

    Parameters
    ----------
    graph : PathGraph
    scores : float64[n + n_edges]
        Log scores of the nodes, then of the edges; −∞ forbids.

    Notes
    -----
    Everything is exact and takes O(length · n_edges). A path is a tuple of nodes. Parts are *uses*: a path that comes
    through a node twice uses it twice. There is no `from_parts`, since paths through cycles may have the same uses.

    Examples
    --------
    >>> dist = Paths(PathGraph(3, [[0, 1], [1, 2], [0, 2]], 2), np.log([1, 1, 1, 1, 2, 5]))
    >>> dist.argmax(), round(float(np.exp(dist.log_partition())), 9), dist.marginals().round(3).tolist()
    ((0, 2), 8.0, [0.75, 0.375, 0.875, 0.125, 0.25, 0.625])
    """

    def __init__(self, graph: PathGraph, scores: ArrayLike) -> None:
        self.graph = graph
        self.scores = checked_scores(scores, "Paths: scores", (graph.n + len(graph.edges),))

    def __repr__(self) -> str:
        return f"Paths({self.graph!r})"

    @property
    def _arrays(self) -> tuple[Array, Array, Array, NDArray[np.int64], NDArray[np.int64]]:
        """What kernels take: scores of nodes, of edges by target, beginnings, and where edges are."""
        begin, starts, sources, order = self.graph.layout
        n = self.graph.n
        return np.ascontiguousarray(self.scores[:n]), self.scores[n:][order], begin, starts, sources

    def _sweep(self, semiring: Semiring, u: Array) -> tuple[float, Array, Path]:
        from isogloss.structures._numba.paths import path_sweep

        n, order = self.graph.n, self.graph.layout[3]
        nodes, edges, path = np.zeros(n), np.zeros(len(order)), np.zeros(self.graph.length, np.int64)
        rest: tuple[Any, ...] = (*self._arrays, u, nodes, edges, path)
        value = float(path_sweep(semiring, *rest)) if n else -np.inf
        if value == -np.inf:
            self.raise_infeasible()
        grad = np.empty(len(self.scores))
        grad[:n], grad[n + order] = nodes, edges
        return value, grad, tuple(path.tolist())

    @cached_property
    def _solved(self) -> tuple[float, Array]:
        value, grad, _ = self._sweep(LOG, np.empty(self.graph.length))
        return value, kept(grad)

    @cached_property
    def steps(self) -> tuple[float, Array, Array]:
        """log Z; float64[length − 1, n_edges], by target, the probability that a path came by each edge into its node;
        float64[length, n], the probability that it is in each node at each place. For `PathDpp`."""
        from isogloss.structures._numba.paths import path_steps, path_sums

        n, length = self.graph.n, self.graph.length
        nodes, edges, begin, starts, sources = self._arrays
        alpha = np.full((length, n), -np.inf)
        value = float(path_sums(LOG, nodes, edges, begin, starts, sources, alpha)) if n else -np.inf
        into, masses = np.zeros((length - 1, len(edges))), np.zeros((length, n))
        if value > -np.inf:
            path_steps(nodes, edges, starts, sources, alpha, value, into, masses)
            if not (into.max(initial=0.0) < 1 + TOLERANCE and masses.max() < 1 + TOLERANCE):
                largest = np.abs(self.scores[self.scores > -np.inf]).max()
                raise ParameterError(
                    f"{self!r}: scores of {largest:.3g} are too large for sums over paths in float64. Scale them down"
                )
        return value, into, masses

    def log_partition(self) -> float:
        """log of the sum over all paths."""
        return self._solved[0]

    def marginals(self) -> Array:
        """Expected number of uses of each node and each edge."""
        return self._solved[1]

    def argmax(self) -> Path:
        """The best path; among equals always the same."""
        return self._sweep(MAX, np.empty(self.graph.length))[2]

    def sample(self, rng: np.random.Generator) -> Path:
        """One path."""
        return self._sweep(DRAW, rng.random(self.graph.length))[2]

    def parts(self, y: Iterable[int]) -> Array:
        """How often a path uses each node and each edge; `ParameterError` if it is no path of the graph."""
        path = self.graph.checked(y, repr(self))
        edges = self.graph.edge_numbers(path)
        if edges is None:
            raise ParameterError(f"{self!r}: {path} is not a path of the graph")
        found = np.zeros(len(self.scores))
        np.add.at(found, [*path, *(self.graph.n + e for e in edges)], 1.0)
        return found

    def score(self, y: Iterable[int]) -> float:
        """Log score of a path, not normalised; −∞ for what is no path of the graph."""
        path = self.graph.checked(y, repr(self))
        edges = self.graph.edge_numbers(path)
        return -np.inf if edges is None else float(self.scores[[*path, *(self.graph.n + e for e in edges)]].sum())

    def log_prob(self, y: Iterable[int]) -> float:
        """log π(y)."""
        return self.score(y) - self.log_partition()

    def entropy(self) -> float:
        """−Σ π log π in nats."""
        value, marginals = self._solved
        return max(0.0, value - expected(marginals, self.scores))

    def with_scores(self, scores: ArrayLike) -> Paths:
        """The same graph under other scores."""
        return Paths(self.graph, checked_scores(scores, f"{self!r}: scores", self.scores.shape))

    def raise_infeasible(self) -> NoReturn:
        """Say that there is no path, and how long paths can be."""
        longest = self.graph.longest()
        if longest is not None and longest < self.graph.length:
            raise InfeasibleError(
                f"{self!r}: no path has {self.graph.length} nodes; the longest "
                + (f"has {longest}" if longest else "has none: there is no node to begin at")
            )
        raise InfeasibleError(f"{self!r}: every path of {self.graph.length} nodes has a forbidden node or edge")
