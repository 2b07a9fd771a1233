r"""Labels that spread over a graph: Gaussian fields and harmonic functions.

.. math:: E(f) = \tfrac12 \sum_{ij} w_{ij} (f_i - f_j)^2, \qquad f_L = y_L, \qquad
    f_U = (D_{UU} - W_{UU})^{-1} W_{UL} f_L

Each unlabelled value is the weighted mean of its neighbours, and the probability that a random walk from there first
meets a labelled node of that label.

References
----------
Zhu, Ghahramani and Lafferty, Semi-Supervised Learning Using Gaussian Fields and Harmonic Functions, ICML 2003.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.learners.semi_supervised.proportions import checked_proportions

__all__ = ["class_mass", "harmonic", "propagated"]

Array = NDArray[np.float64]


def harmonic(
    graph: Any, labels: ArrayLike, n_labels: int, *, external: ArrayLike | None = None, trust: float = 0.1
) -> Array:
    """The harmonic function of each label, by one sparse linear system.

    Parameters
    ----------
    graph : sparse matrix or float64[n, n]
        Weights of edges, symmetric, 0 or more; the diagonal is not looked at.
    labels : int64[n]
        −1 for unlabelled nodes.
    n_labels : int
    external : float64[n, n_labels], optional
        What another classifier says of each node: a further node, a *dongle*, that hangs on each unlabelled one,
    trust : float
        and is gone to with this probability, above 0 and at most 1.

    Returns
    -------
    float64[n, n_labels]
        Rows sum to 1. Nodes that no label reaches have equal shares, and a warning says how many there are.

    Examples
    --------
    >>> chain = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> harmonic(chain, [0, -1, -1, 1], 2)[:, 1].round(3).tolist()
    [0.0, 0.333, 0.667, 1.0]
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import spsolve

    weights, known = _checked(graph, labels, n_labels)
    n = len(known)
    given = None if external is None else np.asarray(external, np.float64)
    if given is not None and (given.shape != (n, n_labels) or not np.isfinite(given).all() or not 0 < trust <= 1):
        raise ParameterError(
            f"harmonic: external should be finite numbers [{n}, {n_labels}], and trust above 0 and at most 1"
        )
    out = np.full((n, n_labels), 1 / n_labels)
    there = np.flatnonzero(known >= 0)
    out[there] = np.eye(n_labels)[known[there]]
    if given is None:
        _, part = connected_components(weights, directed=False)
        reached = np.isin(part, part[there])
        if not reached.all():
            lost = int((~reached).sum())
            warnings.warn(f"harmonic: no label reaches {lost} of {n} nodes; all labels are equal there", stacklevel=2)
        open_ = np.flatnonzero((known < 0) & reached)
    else:
        open_ = np.flatnonzero(known < 0)
    if not len(open_):
        return out
    degrees = np.asarray(weights.sum(axis=1)).ravel()[open_]
    alone = degrees == 0
    walk = sparse.diags(1 / np.where(alone, 1.0, degrees)) @ weights[open_]
    share = 0.0 if given is None else trust
    right = (1 - share) * (walk[:, there] @ out[there])
    if given is not None:
        right = right + np.where(alone, 1.0, share)[:, None] * given[open_]
    system = sparse.identity(len(open_), format="csc") - (1 - share) * walk[:, open_]
    found = spsolve(sparse.csc_matrix(system), right)
    out[open_] = np.asarray(found).reshape(len(open_), n_labels)
    return out


def propagated(
    graph: Any, labels: ArrayLike, n_labels: int, *, iterations: int = 100000, tolerance: float = 1e-12
) -> Array:
    """The same by propagation: every unlabelled node takes the mean of its neighbours, again and again."""
    from scipy import sparse

    weights, known = _checked(graph, labels, n_labels)
    degrees = np.asarray(weights.sum(axis=1)).ravel()
    walk = sparse.diags(1 / np.where(degrees > 0, degrees, 1.0)) @ weights
    there = known >= 0
    out = np.full((len(known), n_labels), 1 / n_labels)
    out[there] = np.eye(n_labels)[known[there]]
    stays = there | (degrees == 0)
    for _ in range(iterations):
        fresh = np.where(stays[:, None], out, walk @ out)
        if np.abs(fresh - out).max(initial=0.0) < tolerance:
            return fresh
        out = fresh
    return out


def class_mass(values: ArrayLike, proportions: ArrayLike) -> Array:
    r"""Class mass normalisation: :math:`q_c f_{ic} / \sum_j f_{jc}`, of unlabelled nodes.

    Decide by the largest in each row. Columns sum to the proportions; one that is all 0 stays so.

    Examples
    --------
    >>> class_mass([[0.9, 0.1], [0.8, 0.2]], [0.5, 0.5]).argmax(axis=1).tolist()
    [0, 1]
    """
    found = np.asarray(values, np.float64)
    shares = checked_proportions(proportions, found.shape[1], "class_mass")
    mass = found.sum(axis=0)
    return np.asarray(shares * found / np.where(mass > 0, mass, 1.0))


def _checked(graph: Any, labels: ArrayLike, n_labels: int) -> tuple[Any, NDArray[np.int64]]:
    from scipy import sparse

    weights, known = sparse.csr_matrix(graph, dtype=np.float64), np.asarray(labels, np.int64)
    n = len(known)
    if weights.shape != (n, n) or (n and not -1 <= known.min() <= known.max() < n_labels):
        raise ParameterError(f"harmonic: give a graph [{n}, {n}] for {n} labels from -1 to {n_labels - 1}")
    if not np.isfinite(weights.data).all():
        raise ParameterError("harmonic: weights of edges should be finite")
    if weights.nnz and (weights.data.min() < 0 or abs(weights - weights.T).max() > 1e-9 * weights.data.max()):
        raise ParameterError("harmonic: weights of edges should be symmetric, and 0 or more")
    found = sparse.csr_matrix(weights - sparse.diags(weights.diagonal()))
    found.eliminate_zeros()  # an edge of weight 0 is no edge, and leads to no label
    return found, known
