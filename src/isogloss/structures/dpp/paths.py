"""`PathDpp`: sets of paths of a graph, each good, and unlike each other; with random projections of their features."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, kept
from isogloss.structures.dpp.base import Determinantal, checked_features, checked_size, greedy
from isogloss.structures.dpp.graph import Path, PathGraph, Paths

__all__ = ["PathDpp", "enough_dimensions", "projected"]

POOL = 48
"""Draws whose paths `argmax` chooses from."""


class PathDpp(Determinantal[Path, frozenset[Path]]):
    r"""A structured determinantal point process: its items are all paths of a graph, of which there may be any number.

    .. math:: P(Y) \propto \det L_Y, \quad L_{yy'} = q(y)\, \phi(y)^\top \phi(y')\, q(y'), \quad
        \log q^2(y) = \sum_t scores[y_t] + \sum_t scores[n + e_t], \quad \phi(y) = \sum_t \phi(y_t)

    Parameters
    ----------
    graph : PathGraph
    scores : float64[n + n_edges]
        Logarithms of squared quality of nodes, then of edges: :math:`2 \beta w` in the paper's words. −∞ forbids.
    features : float64[n, dimensions]
        φ of the nodes.
    size : int, optional
        k, the number of paths of every set; any number if not given.

    Notes
    -----
    A set is a frozenset of tuples of nodes. All is exact but `argmax`. L is never formed. The dual kernel
    :math:`C = \sum_y q^2 \phi \phi^\top` is log Z of `Paths` and the second moment of φ over its paths, for which the
    messages need vectors, not matrices: what is before a node and what is behind it are independent,

    .. math:: C / Z = \sum_t \sum_v \pi_t(v) \big[\phi_v \phi_v^\top + f_t(v) \phi_v^\top + \phi_v f_t(v)^\top\big]

    with :math:`f_t(v)` the mean of :math:`\sum_{s<t} \phi(y_s)` over the paths that are in v at t. This takes
    O(length · (n_edges d + n d²)) in place of O(length · n_edges · d²), and since messages are means beside log sums,
    no score overflows. A draw takes O(length · n_edges) for each path; `into` of `Paths.steps` is kept, eight bytes
    times length times edges.

    `argmax` is greedy over the paths of some draws and the best path: its determinant is at least :math:`1/(k!)^2` of
    the best set that can be made of *these* paths, and `log_bound` bounds that of any. The best path next to others has
    no dynamic program, since the logarithm of a sum of features is no sum. There is no `entropy` and no `from_parts`.

    References
    ----------
    Gillenwater, Kulesza and Taskar, Discovering Diverse and Salient Threads in Document Collections, EMNLP 2012,
    sections 3 and 4. Kulesza and Taskar, Structured Determinantal Point Processes, NIPS 2010.

    Examples
    --------
    >>> graph = PathGraph(4, [[0, 1], [0, 2], [1, 3], [2, 3]], 2)
    >>> dist = PathDpp(graph, np.zeros(8), np.eye(4), size=2)
    >>> dist.spectrum.rank, round(float(np.exp(dist.log_partition())), 9)       # Σ det: 4 of 2·2 − 1, 2 of 2·2
    (3, 20.0)
    >>> len(dist.sample(np.random.default_rng(1)))
    2
    """

    def __init__(self, graph: PathGraph, scores: ArrayLike, features: ArrayLike, *, size: int | None = None) -> None:
        self.paths = Paths(graph, scores)
        self.graph, self.scores = graph, self.paths.scores
        self.features = checked_features(features, graph.n, "PathDpp")
        self.size = checked_size(size, "PathDpp")

    def __repr__(self) -> str:
        dimensions = self.features.shape[1]
        return f"PathDpp({self.graph!r}, dimensions={dimensions}, size={self.size})"

    def _moments(self) -> tuple[float, Array]:
        from scipy.sparse import csr_matrix

        value, into, masses = self.paths.steps
        _, starts, sources, _ = self.graph.layout
        features, shape = self.features, (self.graph.n, self.graph.n)
        before, crossed = np.zeros_like(features), np.zeros((features.shape[1],) * 2)
        for t in range(1, self.graph.length):
            before = csr_matrix((into[t - 1], sources, starts), shape=shape) @ (before + features)
            crossed += (before * masses[t][:, None]).T @ features
        own = (features * masses.sum(axis=0)[:, None]).T @ features
        return value, own + crossed + crossed.T

    @cached_property
    def _marginals(self) -> Array:
        from isogloss.structures._numba.paths import path_moments

        _, into, masses = self.paths.steps
        _, starts, sources, order = self.graph.layout
        values = np.ascontiguousarray(self.features @ (self.spectrum.vectors * np.sqrt(self._shares())))
        n, nodes, edges = self.graph.n, np.zeros(self.graph.n), np.zeros(len(order))
        path_moments(into, starts, sources, masses, values, nodes, edges)
        found = np.empty(len(self.scores))
        found[:n], found[n + order] = nodes, edges
        return kept(np.maximum(found, 0.0))

    def marginals(self) -> Array:
        """float64[n + n_edges]: expected number of times that the paths of a set use each node and each edge."""
        return self._marginals

    def argmax(self) -> frozenset[Path]:
        """A set with a large determinant, made of the paths of some draws; the same at every call. See the notes."""
        rng = np.random.default_rng(0)
        drawn = [self.sample(rng) for _ in range(POOL)]
        pool = sorted({path for one in drawn for path in one} | {self.paths.argmax()})
        scores = np.array([self.paths.score(path) for path in pool])
        vectors = np.array([self._vector(path, self.features) for path in pool])
        found = frozenset(pool[row] for row in greedy(scores, vectors, self.size))
        whole = [one for one in [found, *drawn] if self.size is None or len(one) == self.size]
        return max(whole, key=self.score)

    def parts(self, y: Any) -> Array:
        """How often the paths of a set use each node and each edge."""
        return np.asarray(sum((self.paths.parts(path) for path in self._items(y)), np.zeros(len(self.scores))))

    def _draw(self, values: Array, rng: np.random.Generator) -> Path | None:
        from isogloss.structures._numba.paths import draw_path

        _, into, masses = self.paths.steps
        _, starts, sources, _ = self.graph.layout
        first, second = self._room
        path = np.zeros(self.graph.length, np.int64)
        u = rng.random(self.graph.length)
        found = draw_path(into, starts, sources, masses[-1], values, u, first, second, path)
        return tuple(path.tolist()) if found else None

    @cached_property
    def _room(self) -> tuple[Array, Array]:
        shape = (self.graph.length, self.graph.n)
        return np.empty(shape), np.empty(shape)

    def _vector(self, item: Path, features: Array) -> Array:
        return np.asarray(features[list(item)].sum(axis=0))

    def _item_score(self, item: Path) -> float:
        return self.paths.score(item)

    def _items(self, y: Any) -> list[Path]:
        return [self.graph.checked(path, repr(self)) for path in y]

    def _set(self, items: Iterable[Path]) -> frozenset[Path]:
        return frozenset(items)

    def _remake(self, scores: Array) -> Self:
        return type(self)(self.graph, scores, self.features, size=self.size)

    def _raise_infeasible(self) -> NoReturn:
        self.paths.raise_infeasible()


def projected(features: Any, dimensions: int, rng: np.random.Generator, *, constant: float = 0.0) -> Array:
    r"""Features by a random projection :math:`G \phi`, entries of G from N(0, 1 / d), and a constant one behind them.

    Volumes of a few vectors, and so determinants, hardly change (theorem 1 of the paper). The constant ρ is appended
    after the projection, so that its size is as given.

    Parameters
    ----------
    features : sparse matrix or array [n, D]
    dimensions : int
        d. Where D is not larger, features stay as they are: nothing would be saved.
    constant : float
        ρ; nothing is appended where it is 0.

    Returns
    -------
    float64[n, d] or float64[n, d + 1]

    Examples
    --------
    >>> projected(np.eye(9), 3, np.random.default_rng(0), constant=0.5).shape
    (9, 4)
    """
    if isinstance(dimensions, bool) or not isinstance(dimensions, (int, np.integer)) or dimensions < 1:
        raise ParameterError(f"projected: dimensions should be a positive integer, not {dimensions!r}")
    if not 0 <= constant < np.inf:
        raise ParameterError(f"projected: constant should be a finite number, 0 or more, not {constant!r}")
    n, given = features.shape
    if given > dimensions:
        made = np.asarray(features @ (rng.standard_normal((given, dimensions)) / np.sqrt(dimensions)))
    else:
        made = np.asarray(features.toarray() if hasattr(features, "toarray") else features, np.float64)
    return np.hstack([made, np.full((n, 1), float(constant))]) if constant else made


def enough_dimensions(log_paths: float, size: int, epsilon: float, delta: float = 0.1) -> int:
    r"""How many dimensions keep the distribution, :math:`\|P - \tilde P\|_1 \le e^{6 k \epsilon} - 1`, with 1 − δ.

    .. math:: d = \max\Big\{\frac{2k}{\epsilon}, \frac{24}{\epsilon^2}
        \Big(\frac{\log(3 / \delta)}{\log N} + 1\Big) \log 2N + k - 1\Big\}

    A law of scale rather than advice: far fewer do in practice.

    Parameters
    ----------
    log_paths : float
        log N, above 0: `log_partition` of `Paths` with scores 0.
    epsilon, delta : float
        Above 0 and below 1/2.

    References
    ----------
    Gillenwater, Kulesza and Taskar, EMNLP 2012, theorem 1.

    Examples
    --------
    >>> enough_dimensions(40.0, 5, 0.1), enough_dimensions(80.0, 5, 0.1)
    (105972, 201902)
    """
    if not (log_paths > 0 and size >= 1 and 0 < epsilon < 0.5 and 0 < delta < 0.5):
        raise ParameterError(
            "enough_dimensions: log_paths > 0, size >= 1, epsilon and delta between 0 and 1/2 are needed"
        )
    lemma = 24 / epsilon**2 * (np.log(3 / delta) / log_paths + 1) * (np.log(2) + log_paths) + size - 1
    return int(np.ceil(max(2 * size / epsilon, lemma)))
