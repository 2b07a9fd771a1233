"""Graphs of things that resemble one another, and labels that spread along their edges.

Sparse matrices go in and come out: `pmi` weighs counts of features, `nearest` finds the rows most alike, `mutual` makes
a symmetric graph of them, and `propagate` carries labels from vertices that have some to those that have none. What
rows and features are is the caller's business; `learners.posterior.GraphLaplacian` makes a penalty of a graph.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ParameterError, UsageError

__all__ = ["Propagated", "mutual", "nearest", "pmi", "propagate"]

Array = NDArray[np.float64]
ROWS_PER_BLOCK = 256
MOST_WORK = 3e11
"""Products of entries up to which `nearest` is exact by itself: some ten minutes of one core."""


def pmi(counts: Any, *, positive: bool = True, corpus_size: bool = True) -> Any:
    r"""Pointwise mutual information of rows and columns of a matrix of counts.

    .. math:: v_{tf} = \log \frac{N\, \#(f \wedge t)}{\#(f)\, \#(t)}

    Parameters
    ----------
    counts : sparse matrix [n, m]
        How often thing t is seen with feature f: 0 or more.
    positive : bool
        Leave out what is not above 0: features that say nothing of a row, or only what it is not.
    corpus_size : bool
        False leaves N out, as printed in the reference. All values are then negative (none above 0), and what is rare
        weighs least, so that cosines say something else; for comparison. `positive` does not apply.

    Returns
    -------
    csr_matrix [n, m]

    References
    ----------
    He, Gillenwater and Taskar, Graph-Based Posterior Regularization for Semi-Supervised Structured Prediction, CoNLL
    2013, section 5.1.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> np.exp(pmi(csr_matrix([[2, 0], [1, 1]])).toarray()).round(3).tolist()     # exp(0) = 1: not there
    [[1.333, 1.0], [1.0, 2.0]]
    """
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(counts, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if not (np.isfinite(matrix.data).all() and (matrix.data >= 0).all()):
        raise ParameterError("pmi: counts should be finite numbers, 0 or more")
    matrix.eliminate_zeros()
    by_row, by_column = (np.asarray(matrix.sum(axis=axis)).ravel() for axis in (1, 0))
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    total = max(float(by_row.sum()), 1e-300) if corpus_size else 1.0
    matrix.data = np.log(matrix.data) + np.log(total) - np.log(by_row[rows]) - np.log(by_column[matrix.indices])
    if positive and corpus_size:
        matrix.data[matrix.data < 1e-12] = 0.0  # rounding of what is 0
        matrix.eliminate_zeros()
    return matrix


def nearest(
    matrix: Any,
    k: int,
    *,
    least: float = 0.0,
    cut: int | None = None,
    exact: bool | Literal["auto"] = "auto",
    seed: int = 0,
) -> Any:
    r"""The k rows that are most alike to each row, by the cosine.

    Parameters
    ----------
    matrix : sparse matrix or array [n, m]
        A row for each thing. A row of zeros is like nothing.
    k : int
        Neighbours of each row at most.
    least : float
        Only cosines above this count; 0 or more.
    cut : int, optional
        Columns that more than this many rows have are not multiplied (they still count in the norm). What half of all
        rows have says little and costs most.
    exact : bool or "auto"
        True compares all rows that share a column, through an inverted index on threads; the work is the sum of the
        squares of rows in each column. False asks `pynndescent` (``pip install isogloss[graph]``), which finds nearly
        all neighbours. "auto" is exact unless the work is more than some ten minutes' and `pynndescent` is there.
    seed : int
        Of the approximate search.

    Returns
    -------
    csr_matrix [n, n]
        Cosines with the neighbours; no row is its own. Of rows equally alike the first are taken.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> nearest(csr_matrix([[1.0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 0]]), 1).toarray().round(3).tolist()
    [[0.0, 0.707, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ParameterError(f"nearest: k should be a positive integer, not {k!r}")
    if not 0 <= least < np.inf or (cut is not None and cut < 1):
        raise ParameterError(f"nearest: least >= 0 and cut >= 1 are needed, not {least!r} and {cut!r}")
    if exact not in (True, False, "auto"):
        raise ParameterError(f'nearest: exact should be True, False or "auto", not {exact!r}')
    rows = _unit_rows(matrix)
    searched = rows
    if cut is not None:
        often = np.bincount(rows.indices, minlength=rows.shape[1]) > cut
        searched = rows.copy()
        searched.data[often[searched.indices]] = 0.0
        searched.eliminate_zeros()
    if exact == "auto":
        work = float((np.bincount(searched.indices, minlength=1).astype(np.float64) ** 2).sum())
        exact = work <= MOST_WORK or find_spec("pynndescent") is None
    # Without neighbours to leave out there is nothing to approximate.
    found = _exactly(searched, k, least) if exact or rows.shape[0] <= k + 1 else _roughly(rows, k, least, seed)
    found.sort_indices()
    return found


def _unit_rows(matrix: Any) -> Any:
    """Rows of length 1, columns ascending."""
    from scipy.sparse import csr_matrix

    rows = csr_matrix(matrix, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if not np.isfinite(rows.data).all():
        raise ParameterError("nearest: the matrix should hold finite numbers")
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    rows.data /= np.repeat(lengths, np.diff(rows.indptr))
    return rows


def _exactly(rows: Any, k: int, least: float) -> Any:
    from isogloss.learners._numba.graphs import top_products

    n = rows.shape[0]
    k = max(1, min(int(k), n - 1))
    columns = rows.tocsc()
    columns.sort_indices()
    near, cosines, filled = np.zeros((n, k), np.int32), np.zeros((n, k)), np.zeros(n, np.int64)
    by_row = (rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)
    by_column = (columns.indptr.astype(np.int64), columns.indices.astype(np.int32), columns.data)
    with using_threads():
        run_blocks(top_products, -(-n // ROWS_PER_BLOCK), *by_row, *by_column, k, float(least), near, cosines, filled)
    return _as_matrix(near, cosines, np.arange(k) < filled[:, None])


def _roughly(rows: Any, k: int, least: float, seed: int) -> Any:
    try:
        from pynndescent import NNDescent  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise UsageError(
            "nearest: exact=False needs pynndescent: pip install 'isogloss[graph]'. exact=True needs nothing"
        ) from error
    n = rows.shape[0]
    some = np.flatnonzero(np.diff(rows.indptr) > 0)  # a cosine with nothing is no number
    index = NNDescent(
        rows[some].astype(np.float32), metric="cosine", n_neighbors=min(max(k + 1, 30), len(some)), random_state=seed
    )
    found, _ = index.neighbor_graph
    near, held = np.zeros((n, found.shape[1]), np.int64), np.zeros((n, found.shape[1]), np.bool_)
    near[some], held[some] = some[np.maximum(found, 0)], (found >= 0) & (some[np.maximum(found, 0)] != some[:, None])
    cosines = np.zeros(near.shape)
    at, place = np.nonzero(held)
    cosines[at, place] = np.asarray(rows[at].multiply(rows[near[at, place]]).sum(axis=1)).ravel()
    order = np.argsort(np.where(held, -cosines, np.inf), axis=1, kind="stable")[:, :k]
    near, cosines, held = (np.take_along_axis(array, order, axis=1) for array in (near, cosines, held))
    return _as_matrix(near, cosines, held & (cosines > least))


def _as_matrix(near: NDArray[Any], values: Array, held: NDArray[np.bool_]) -> Any:
    from scipy.sparse import csr_matrix

    n = len(near)
    starts = np.concatenate([[0], np.cumsum(held.sum(axis=1))])
    return csr_matrix((values[held], near[held], starts), shape=(n, n))


def mutual(neighbours: Any) -> Any:
    """The graph of those who name each other: symmetric, nobody linked to itself.

    neighbours : sparse matrix [n, n]
        Such as `nearest` gives, weights above 0. Where the two weights of an edge differ, the smaller is taken.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> mutual(csr_matrix([[0, 0.5, 0.2], [0.5, 0, 0], [0, 0.3, 0]])).toarray().tolist()
    [[0.0, 0.5, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    matrix = _graph(neighbours, "mutual")
    both = matrix.minimum(matrix.T).tocsr()
    both.setdiag(0.0)
    both.eliminate_zeros()
    both.sort_indices()
    return both


def _graph(matrix: Any, place: str) -> Any:
    from scipy.sparse import csr_matrix

    graph = csr_matrix(matrix, dtype=np.float64)
    if graph.shape[0] != graph.shape[1] or not (np.isfinite(graph.data).all() and (graph.data >= 0).all()):
        raise ParameterError(f"{place}: a graph is a square matrix of finite weights, 0 or more, not {graph!r}")
    return graph


class Propagated(NamedTuple):
    """What `propagate` found."""

    labels: Array
    """float64[n, k]: how much of each label each vertex has; rows add up to 1."""
    reached: NDArray[np.bool_]
    """bool[n]: False in parts of the graph where no vertex was labelled; these have the prior."""
    iterations: int
    """Products with the graph."""
    converged: bool


def propagate(
    graph: Any,
    known: ArrayLike,
    *,
    labelled: ArrayLike | None = None,
    prior: ArrayLike | None = None,
    mass: ArrayLike | None = None,
    method: Literal["solve", "iterate"] = "solve",
    tolerance: float = 1e-8,
    iterations: int = 10_000,
) -> Propagated:
    r"""Label propagation: each vertex without labels becomes the weighted mean of its neighbours (a Gaussian field).

    .. math:: \min_f \tfrac12 \sum_{ab} w_{ab} (f_a - f_b)^2, \quad f_L = y_L, \qquad
        f_U = (D_{UU} - W_{UU})^{-1} W_{UL}\, y_L

    :math:`f_{ac}` is the probability that a random walk from a first meets label c. The limit of the *graph
    propagation* of He et al. is this f, with a uniform prior.

    Parameters
    ----------
    graph : sparse matrix [n, n]
        Symmetric weights, 0 or more; the diagonal does not matter.
    known : float64[n, k]
        Labels of the labelled vertices: rows that add up to 1. Other rows are not looked at.
    labelled : bool[n], optional
        Which vertices have labels; those whose row in `known` is not all 0 otherwise.
    prior : float64[k], optional
        What parts of the graph without any label are given; uniform otherwise.
    mass : float64[k], optional
        Class mass normalisation: labels of the vertices that were reached are scaled so that together they have these
        proportions, :math:`q_c f_{ac} / \sum_b f_{bc}`, then each vertex to 1 again.
    method : "solve" or "iterate"
        Conjugate gradients, or f ← D⁻¹ W f with the labelled clamped. The result is the same.
    tolerance : float
        Of the residual, relative; of the largest change in an iteration.
    iterations : int
        At most.

    References
    ----------
    Zhu, Ghahramani and Lafferty, Semi-Supervised Learning Using Gaussian Fields and Harmonic Functions, ICML 2003. He,
    Gillenwater and Taskar, CoNLL 2013, section 5 (the baseline GP).

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> path = csr_matrix([[0, 1.0, 0, 0, 0], [1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]])
    >>> found = propagate(path, [[1, 0], [0, 0], [0, 0], [0, 1], [0, 0]])
    >>> found.labels.round(3).tolist()
    [[1.0, 0.0], [0.667, 0.333], [0.333, 0.667], [0.0, 1.0], [0.5, 0.5]]
    >>> found.reached.tolist()
    [True, True, True, True, False]
    """
    from scipy.sparse.csgraph import connected_components

    weights = _graph(graph, "propagate").copy()
    weights.setdiag(0.0)
    weights.eliminate_zeros()
    n = weights.shape[0]
    if abs(weights - weights.T).sum() > 1e-9 * max(1.0, abs(weights).sum()):
        raise ParameterError("propagate: the graph should be symmetric; mutual(nearest(...)) is")
    if method not in ("solve", "iterate"):
        raise ParameterError(f'propagate: method should be "solve" or "iterate", not {method!r}')
    given = np.array(known, np.float64)
    if given.ndim != 2 or len(given) != n or not given.shape[1]:
        raise ParameterError(f"propagate: known should be [{n}, number of labels], not {list(given.shape)}")
    has = given.any(axis=1) if labelled is None else np.asarray(labelled, np.bool_)
    if has.shape != (n,) or not np.allclose(given[has].sum(axis=1), 1) or not np.isfinite(given[has]).all():
        raise ParameterError("propagate: the rows of `known` that are labelled should add up to 1")
    k = given.shape[1]
    start = np.full(k, 1 / k) if prior is None else _proportions(prior, k, "prior")
    _, part = connected_components(weights, directed=False)
    reached = np.isin(part, np.unique(part[has]))
    labels = np.where(has[:, None], given, start)
    free = np.flatnonzero(reached & ~has)
    spent, converged = 0, True
    if len(free):
        rows = weights[free]
        steps = _solved if method == "solve" else _iterated
        labels[free], spent, converged = steps(rows, free, labels, has, tolerance, iterations)
    if mass is not None:
        labels = _with_mass(labels, reached, has, _proportions(mass, k, "mass"))
    return Propagated(labels, reached, spent, converged)


def _proportions(values: ArrayLike, k: int, name: str) -> Array:
    array = np.asarray(values, np.float64)
    if array.shape != (k,) or not (array >= 0).all() or not 0 < array.sum() < np.inf:
        raise ParameterError(f"propagate: {name} should be {k} numbers, 0 or more, not {values!r}")
    return np.asarray(array / array.sum())


def _solved(
    rows: Any, free: NDArray[np.int64], labels: Array, has: NDArray[np.bool_], tolerance: float, iterations: int
) -> tuple[Array, int, bool]:
    """Conjugate gradients for all labels side by side, scaled by the degrees."""
    from scipy.sparse import diags

    degrees = np.asarray(rows.sum(axis=1)).ravel()[:, None]
    system = (diags(degrees.ravel()) - rows[:, free]).tocsr()
    right = np.asarray(rows @ np.where(has[:, None], labels, 0.0))
    found = right / degrees
    residual = right - system @ found
    scaled = residual / degrees
    direction, product = scaled.copy(), (residual * scaled).sum(axis=0)
    limit = tolerance * np.sqrt((right * right).sum(axis=0))
    spent = 0
    while spent < iterations and (np.sqrt((residual * residual).sum(axis=0)) > limit).any():
        spent += 1
        through = system @ direction
        curvature = (direction * through).sum(axis=0)
        step = np.divide(product, curvature, out=np.zeros_like(product), where=curvature > 0)  # a label may be done
        found += step * direction
        residual -= step * through
        scaled = residual / degrees
        before, product = product, (residual * scaled).sum(axis=0)
        direction = scaled + np.divide(product, before, out=np.zeros_like(product), where=before > 0) * direction
    converged = not (np.sqrt((residual * residual).sum(axis=0)) > limit).any()
    found = np.clip(found, 0.0, None)  # rounding
    return found / found.sum(axis=1, keepdims=True), spent, converged


def _iterated(
    rows: Any, free: NDArray[np.int64], labels: Array, has: NDArray[np.bool_], tolerance: float, iterations: int
) -> tuple[Array, int, bool]:
    from scipy.sparse import diags

    steps = diags(1.0 / np.asarray(rows.sum(axis=1)).ravel()) @ rows
    now = labels.copy()
    for spent in range(1, iterations + 1):
        new = np.asarray(steps @ now)
        change = float(np.abs(new - now[free]).max())
        now[free] = new
        if change <= tolerance:
            return new, spent, True
    return now[free], iterations, False


def _with_mass(labels: Array, reached: NDArray[np.bool_], has: NDArray[np.bool_], wanted: Array) -> Array:
    free = reached & ~has
    sums = labels[free].sum(axis=0)
    out = labels.copy()
    scaled = labels[free] * np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0)
    total = scaled.sum(axis=1, keepdims=True)
    out[free] = np.divide(scaled, total, out=labels[free].copy(), where=total > 0)
    return out
