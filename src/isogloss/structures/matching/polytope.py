r"""The polytope of a matching: links between 0 and 1, and what follows from them for nulls and further links.

A word with links :math:`z_{ij}`, null :math:`n_i` and further links :math:`s_{id}`, d = 2 … D, keeps

.. math:: \sum_j z_{ij} = 1 - n_i + \sum_d s_{id}.

With :math:`1 - s_{id}` as further columns of the matrix of links this is a bound on the sum of a row, D − 1 to D, and
the null is D less the sum: a projection is that of a matrix with bounds on rows and columns, whatever the fertility.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array
from isogloss.structures.matching.assignment import _kernels

if TYPE_CHECKING:
    from isogloss.structures.matching.distribution import Matching

__all__ = ["LinkPolytope", "PartPolytope"]

SWEEPS = 100_000


class LinkPolytope:
    """A `Polytope` whose coordinates are a matrix with bounds on the sums of rows and columns; parts are all of it.

    Parameters
    ----------
    allowed : bool[n, m]
        What need not be 0.
    row_bounds, column_bounds : float64[2, n], float64[2, m]
        Least and most.
    """

    def __init__(self, allowed: NDArray[np.bool_], row_bounds: Array, column_bounds: Array, place: str) -> None:
        self.shape: tuple[int, int] = (allowed.shape[0], allowed.shape[1])
        self.place, self._forbidden = place, ~allowed
        self._bounds = (*np.ascontiguousarray(row_bounds), *np.ascontiguousarray(column_bounds))

    @classmethod
    def of(cls, dist: Matching) -> LinkPolytope:
        """Of links alone; ParameterError where other scores would not show."""
        hidden = [array[array > -np.inf].any() for array in dist.part_scores()[1:]]
        if any(hidden) or len(dist._pair_scores):
            raise ParameterError(
                f"{dist!r}.polytope: nulls, penalties and pairs have scores that links do not show; take "
                "Flat(dist).polytope(), which has them as parts"
            )
        dist._refuse_infeasible()
        bounds = []
        for table in (dist._problem.source_table, dist._problem.target_table):
            open_ = table > -np.inf
            bounds.append(np.stack([open_.argmax(axis=1), table.shape[1] - 1 - open_[:, ::-1].argmax(axis=1)]))
        rows, columns = (np.asarray(each, np.float64) for each in bounds)
        return cls(dist.scores > -np.inf, rows, columns, repr(dist))

    @property
    def n_coordinates(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def n_prices(self) -> int:
        return self.shape[1]

    def start(self) -> Array:
        """The nearest to nothing."""
        return self.project(np.zeros(self.n_coordinates), np.zeros(self.n_prices))

    def parts(self, point: Array) -> Array:
        """The point itself."""
        return point

    def pull(self, scores: Array) -> Array:
        """The scores themselves, 0 where they are not finite."""
        return np.where(np.isfinite(scores), scores, 0.0)

    def project(self, point: Array, prices: Array, tolerance: float = 1e-10) -> Array:
        """The nearest point; `prices` are the dual variables of the columns."""
        matrix = np.array(point, np.float64).reshape(self.shape)
        matrix[self._forbidden] = -np.inf
        if _kernels().nearest_from(matrix, *self._bounds, prices, tolerance, SWEEPS) < 0:
            warnings.warn(
                f"{self.place}: the projection has not settled after {SWEEPS} sweeps", RuntimeWarning, stacklevel=3
            )
        return matrix.ravel()


class PartPolytope(LinkPolytope):
    """The same with nulls and further links as parts, in the order of `Matching.part_scores`."""

    def __init__(self, dist: Matching) -> None:
        if len(dist._pair_scores) or dist._least is not None:
            raise ParameterError(
                f"{dist!r}: there is no projection on a polytope with pairs of links, or of a clamped matching; "
                "FrankWolfe needs none"
            )
        dist._refuse_infeasible()
        self.n_source, self.n_target = dist.n_source, dist.n_target
        self._steps = dist._source_steps > -np.inf, dist._target_steps > -np.inf
        n, m = self.n_source, self.n_target
        more_columns, more_rows = (steps.shape[1] for steps in self._steps)
        allowed = np.zeros((n + more_rows, m + more_columns), np.bool_)
        allowed[:n, :m] = dist.scores > -np.inf
        allowed[:n, m:], allowed[n:, :m] = self._steps[0], self._steps[1].T
        self._most = tuple(1.0 + steps.sum(axis=1) for steps in self._steps)
        bounds = []
        nulls, others = (dist.source_null, dist.target_null), (more_rows, more_columns)
        for most, null, extra, room in zip(self._most, nulls, others, (m, n), strict=True):
            least = most - (null > -np.inf)
            free = np.stack([np.zeros(extra), np.full(extra, float(room))])
            bounds.append(np.concatenate([np.stack([least, most]), free], axis=1))
        super().__init__(allowed, bounds[0], bounds[1], repr(dist))

    def start(self) -> Array:
        """The nearest to no links, so that words are alone where they may be."""
        matrix = np.zeros(self.shape)
        matrix[: self.n_source, self.n_target :] = 1.0
        matrix[self.n_source :, : self.n_target] = 1.0
        return self.project(matrix.ravel(), np.zeros(self.n_prices))

    def parts(self, point: Array) -> Array:
        """Links, nulls and further links, float64[n_parts]."""
        n, m, matrix = self.n_source, self.n_target, point.reshape(self.shape)
        nulls = self._most[0] - matrix[:n].sum(axis=1), self._most[1] - matrix[:, :m].sum(axis=0)
        steps = (
            np.where(self._steps[0], 1.0 - matrix[:n, m:], 0.0),
            np.where(self._steps[1], 1.0 - matrix[n:, :m].T, 0.0),
        )
        kinds = (matrix[:n, :m], *(np.clip(null, 0.0, 1.0) for null in nulls), *steps)
        return np.concatenate([np.ravel(kind) for kind in kinds])

    def pull(self, scores: Array) -> Array:
        """float64[n_coordinates]: a link also takes from the nulls of its words."""
        n, m = self.n_source, self.n_target
        sizes = (n * m, n, m, self._steps[0].size)
        finite = np.where(np.isfinite(scores), scores, 0.0)
        links, source, target, *steps = np.split(finite, np.cumsum(sizes))
        matrix = np.zeros(self.shape)
        matrix[:n, :m] = links.reshape(n, m)
        matrix[:n, m:] = -np.where(self._steps[0], steps[0].reshape(self._steps[0].shape), 0.0)
        matrix[n:, :m] = -np.where(self._steps[1], steps[1].reshape(self._steps[1].shape), 0.0).T
        matrix[:n] -= source[:, None]
        matrix[:, :m] -= target
        matrix[self._forbidden] = 0.0
        return matrix.ravel()
