r"""Structural learning: what the predictors of many problems have in common, by alternating optimisation (ASO).

.. math:: \min_{\Theta, \{u_\ell, v_\ell\}} \sum_\ell \Big[ \frac1{n_\ell} \sum_i L(u_\ell \cdot x_i^\ell, y_i^\ell)
    + \lambda \|u_\ell - \Theta^\top v_\ell\|^2 \Big] \quad \text{such that} \quad \Theta \Theta^\top = I_h

With Θ and v known, each u is a linear classifier that is drawn to Θᵀv; with the u known, Θ is the h first left singular
vectors of all u side by side, and v = Θu. Neither step raises the objective. The problems come from text without
labels, such as whether a frequent word is there; a problem with few labels then learns from [x; Θx].

References
----------
Ando and Zhang, A Framework for Learning Predictive Structures from Multiple Tasks and Unlabeled Data, JMLR 6, 2005.
`isogloss.learners.correspondence` has the form of this for two domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.linear import LinearLoss, LinearWeights, fit_linear

__all__ = ["SharedSubspace", "structural_learning"]

Array = NDArray[np.float64]


class SharedSubspace(NamedTuple):
    """What problems have in common.

    theta : float64[h, n_features]
        Θ, with orthonormal rows.
    weights : float64[n_problems, n_features]
        The predictors u.
    trace : float64[2 * rounds]
        The objective after each step; it never rises.
    """

    theta: Array
    weights: Array
    trace: Array

    def places(self, X: Any) -> Array:
        """float64[n, h]: Θx of each row."""
        from isogloss.learners.semi_supervised.given import as_rows

        return np.asarray(as_rows(X, "SharedSubspace") @ self.theta.T)


def structural_learning(
    problems: Sequence[tuple[Any, ArrayLike]],
    h: int,
    *,
    regularisation: float = 1e-3,
    rounds: int = 1,
    loss: str = "huber",
    tolerance: float = 1e-8,
) -> SharedSubspace:
    """Learn the subspace that the predictors of many problems of yes or no share.

    Parameters
    ----------
    problems : sequence of (X, y)
        X is float64[n, d], a sparse matrix or `Sparse`, with the same features in all problems; y has n booleans, or
        numbers above 0 for yes. What gives the answer away must not be among the features.
    h : int
        Dimensions.
    regularisation : float
        λ.
    rounds : int
        Usually one is enough.
    loss : "huber" or "logistic"

    Examples
    --------
    All problems look at the sum of the first two features:

    >>> rng = np.random.default_rng(0)
    >>> problems = [(X, X[:, 0] + X[:, 1] > t) for X, t in ((rng.normal(size=(50, 4)), t) for t in (-0.5, 0, 0.5))]
    >>> np.abs(structural_learning(problems, 1).theta).round(1).tolist()
    [[0.7, 0.7, 0.0, 0.0]]
    """
    given = [_problem(X, y, number) for number, (X, y) in enumerate(problems)]
    wide = {rows.n_features for rows, _ in given}
    if len(wide) != 1 or not regularisation > 0 or h < 1 or rounds < 1:
        raise ParameterError(
            "structural_learning: give one problem or more, all with the same features, and positive numbers for h, "
            "rounds and regularisation"
        )
    d, m = wide.pop(), len(given)
    theta, v = np.zeros((min(h, d, m), d)), np.zeros((m, min(h, d, m)))
    found: list[LinearWeights | None] = [None] * m
    u, trace = np.zeros((m, d)), list[float]()
    options: dict[str, Any] = {"loss": loss, "penalty": regularisation}

    def objective() -> float:
        total = 0.0
        for (rows, targets), own, centre in zip(given, found, v @ theta, strict=True):
            assert own is not None
            at = np.append(own.weights[0], own.bias)
            total -= LinearLoss(rows, targets, centre=centre[None], **options).add_gradient(at, np.zeros(d + 1))
        return total

    for _ in range(rounds):
        for number, (rows, targets) in enumerate(given):
            own = fit_linear(
                rows, targets, centre=(v[number] @ theta)[None], tolerance=tolerance, iterations=1000,
                start=found[number], **options,
            )  # fmt: skip
            found[number], u[number] = own, own.weights[0]
        trace.append(objective())
        vectors, _, _ = np.linalg.svd(u.T, full_matrices=False)
        vectors = vectors[:, : len(theta)]
        theta = (vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(theta))] < 0, -1, 1)).T
        v = u @ theta.T
        trace.append(objective())
    return SharedSubspace(theta, u, np.array(trace))


def _problem(X: Any, y: ArrayLike, number: int) -> tuple[Sparse, Array]:
    """Rows, and targets of no and yes."""
    from scipy import sparse

    from isogloss.learners.semi_supervised.given import as_rows

    found, yes = as_rows(X, "structural_learning"), np.asarray(y, np.float64) > 0
    if yes.shape != (found.shape[0],):
        raise ParameterError(f"structural_learning: problem {number} has {found.shape[0]} rows and {yes.size} answers")
    if sparse.issparse(found):
        rows = Sparse(found.indptr.astype(np.int64), found.indices, found.shape[1], found.data)
    else:
        rows = Sparse(np.zeros(len(found) + 1, np.int64), np.zeros(0, np.int32), 0, dense=found)
    return rows, np.stack([~yes, yes], axis=1).astype(np.float64)
