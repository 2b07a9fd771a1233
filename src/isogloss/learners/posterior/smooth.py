r"""Convex differentiable penalties of expected features, for `exponentiated`: expectations to (value, gradient).

`penalties.Linear` and `penalties.Quadratic` (with `hinge`, the squared hinge) are of this kind too, and any function of
yours may be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from isogloss.errors import ParameterError
from isogloss.learners.posterior.penalties import Quadratic
from isogloss.learners.posterior.together import Array

__all__ = ["GraphLaplacian", "Histogram", "Smooth", "squared_hinge"]

Smooth: TypeAlias = Callable[[Array], tuple[float, Array]]
"""h: float64[m] to its value and its gradient, float64[m]."""


def squared_hinge(bound: ArrayLike, weights: ArrayLike | float = 1.0) -> Quadratic:
    """½ Σ w_i (m_i − b_i)₊²: a constraint m ≤ b that may be bought off."""
    return Quadratic(bound, weights, hinge=True)


class GraphLaplacian:
    r"""Similar vertices should have similar labels.

    .. math:: h = \tfrac12 \sum_k \sum_{a,b} w_{ab} (\tilde m_{ak} - \tilde m_{bk})^2
        = \sum_k \tilde m_{\cdot k}^\top L\, \tilde m_{\cdot k}, \qquad
        \tilde m_{ak} = m_{ak} / c_a, \qquad \frac{\partial h}{\partial m_{ak}} = \frac{2}{c_a} (L \tilde m)_{ak}

    where m is the expected number of times that positions of vertex *a* bear label *k* (`label_features`).

    Parameters
    ----------
    weights : sparse matrix [n_vertices, n_vertices]
        w, symmetric and not negative; the diagonal does not matter.
    counts : float64[n_vertices]
        c, positions of each vertex, those in `fixed` included. A vertex without any takes no part.
    n_labels : int
    fixed : float64[n_vertices, n_labels], optional
        Labels that are known and not inferred: how often each vertex bears each in labelled sentences that are not part
        of the structure. (Labelled sentences may also stay in it, as ``dist.clamp(labels)``.)
    normalise_by_count : bool
        False leaves the factor 1 / c out of the gradient, as printed in the reference; the result is then no gradient
        unless all counts are equal, and nothing is promised. For comparison.

    References
    ----------
    He, Gillenwater and Taskar, Graph-Based Posterior Regularization for Semi-Supervised Structured Prediction, CoNLL
    2013, section 4. We differ: the factor 1 / c, which the printed gradient lacks.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> h = GraphLaplacian(csr_matrix([[0.0, 2.0], [2.0, 0.0]]), [1, 2], 2)
    >>> h(np.array([1.0, 0.0, 1.0, 1.0]))      # vertex 0 always bears label 0, vertex 1 half of the time
    (1.0, array([ 2., -2., -1.,  1.]))
    """

    def __init__(
        self,
        weights: Any,
        counts: ArrayLike,
        n_labels: int,
        *,
        fixed: ArrayLike | None = None,
        normalise_by_count: bool = True,
    ) -> None:
        from scipy.sparse import coo_matrix, csr_matrix

        self.counts, self.n_labels = np.asarray(counts, np.float64), n_labels
        size = len(self.counts)
        matrix = coo_matrix(weights)
        if matrix.shape != (size, size):
            raise ParameterError(
                f"GraphLaplacian: {size} counts, so weights should be {[size, size]}, not {matrix.shape}"
            )
        if not (np.isfinite(matrix.data).all() and (matrix.data >= 0).all() and abs(matrix - matrix.T).sum() < 1e-9):
            raise ParameterError("GraphLaplacian: weights should be finite, 0 or more, and symmetric")
        self.fixed = np.zeros((size, n_labels)) if fixed is None else np.asarray(fixed, np.float64)
        if self.fixed.shape != (size, n_labels):
            raise ParameterError(f"GraphLaplacian: fixed should be {[size, n_labels]}, not {list(self.fixed.shape)}")
        self.normalise_by_count = normalise_by_count
        self.shares = np.divide(1.0, self.counts, out=np.zeros(size), where=self.counts > 0)
        used = (matrix.row != matrix.col) & (self.counts[matrix.row] > 0) & (self.counts[matrix.col] > 0)
        pairs = (matrix.data[used], (matrix.row[used], matrix.col[used]))
        self.weights = csr_matrix(pairs, shape=matrix.shape)
        self.degrees = np.asarray(self.weights.sum(axis=1)).ravel()

    def averages(self, expectations: Array) -> Array:
        """float64[n_vertices, n_labels]: m̃, how often each vertex bears each label; 0 where it has no positions."""
        return np.asarray((expectations.reshape(self.fixed.shape) + self.fixed) * self.shares[:, None])

    def __call__(self, expectations: Array) -> tuple[float, Array]:
        average = self.averages(expectations)
        pull = self.degrees[:, None] * average - self.weights @ average
        scale = self.shares[:, None] if self.normalise_by_count else 1.0
        return float((average * pull).sum()), np.asarray(2.0 * pull * scale).ravel()

    def differences(self) -> tuple[Any, Quadratic]:
        r"""The same penalty for `regularise`: a matrix D and a quadratic penalty R with :math:`R(D m) = h(m)`.

        Returns
        -------
        sparse matrix [n_edges · n_labels, n_vertices · n_labels], Quadratic
            One feature for each edge and label, :math:`\tilde m_{ak} - \tilde m_{bk}`. Multiply the matrix by one of
            `label_features`, or hand in `Features` that apply both.
        """
        from scipy.sparse import coo_matrix, csr_matrix, identity, kron

        edges = coo_matrix(self.weights)
        once = edges.row < edges.col
        ends, weights = (edges.row[once], edges.col[once]), edges.data[once]
        at = np.arange(len(weights))
        values = np.concatenate([self.shares[ends[0]], -self.shares[ends[1]]])
        shape = (len(weights), len(self.counts))
        incidence = csr_matrix((values, (np.tile(at, 2), np.concatenate(ends))), shape=shape)
        matrix = kron(incidence, identity(self.n_labels), format="csr")
        known = -np.asarray(matrix @ self.fixed.ravel())
        return matrix, Quadratic(known, np.repeat(2.0 * weights, self.n_labels))


class Histogram:
    r"""The divergence of a histogram of labels from a target.

    .. math:: h = \sum_k r_k \log \frac{r_k}{t_k} - r_k + t_k, \qquad r = m / total, \qquad
        \frac{\partial h}{\partial m_k} = \frac{1}{total} \log \frac{r_k}{t_k}

    which is KL(r ‖ t) when all labels are counted and add up to `total`.

    Parameters
    ----------
    target : float64[m]
        t, positive, adding up to 1.
    total : float
        Number of positions counted.

    Examples
    --------
    >>> value, gradient = Histogram([0.5, 0.25, 0.25], 8)(np.array([4.0, 2.0, 2.0]))
    >>> value, gradient.tolist()
    (0.0, [0.0, 0.0, 0.0])
    """

    def __init__(self, target: ArrayLike, total: float) -> None:
        self.target, self.total = np.asarray(target, np.float64), float(total)
        if self.target.ndim != 1 or not (self.target > 0).all() or abs(self.target.sum() - 1) > 1e-9:
            raise ParameterError(
                f"Histogram: target should be positive numbers that add up to 1, not {target!r}. A label that may not "
                "occur is better forbidden, with a score of minus infinity"
            )
        if not 0 < self.total < np.inf:
            raise ParameterError(f"Histogram: total should be the positive number of positions counted, not {total!r}")

    def __call__(self, expectations: Array) -> tuple[float, Array]:
        share = expectations / self.total
        # A label that is forbidden everywhere has share 0; its gradient moves nothing, but has to be a number.
        ratio = np.log(np.maximum(share, 1e-300) / self.target)
        return float((share * ratio - share + self.target).sum()), ratio / self.total
