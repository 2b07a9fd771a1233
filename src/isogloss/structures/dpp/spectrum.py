"""Eigenvalues of a determinantal point process: their elementary symmetric polynomials, and which are chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from isogloss.structures.base import Array

__all__ = ["Spectrum", "log_elementary"]


def log_elementary(logs: Array, k: int) -> Array:
    r"""Logarithms of the elementary symmetric polynomials of the first m numbers, for all m.

    .. math:: E^l_m = E^l_{m-1} + \lambda_m E^{l-1}_{m-1}, \qquad E^0_m = 1

    All terms are positive and sums are in logarithms, so that nothing cancels or overflows.

    Parameters
    ----------
    logs : float64[n]
        Logarithms of the numbers; −∞ for 0.
    k : int

    Returns
    -------
    float64[n + 1, k + 1]
        log E, by the number of numbers and the degree.

    Examples
    --------
    >>> np.exp(log_elementary(np.log([1.0, 2.0, 3.0]), 2)).round(9).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 3.0, 2.0], [1.0, 6.0, 11.0]]
    """
    table = np.full((len(logs) + 1, k + 1), -np.inf)
    table[:, 0] = 0.0
    for m, log in enumerate(logs.tolist(), 1):
        table[m, 1:] = np.logaddexp(table[m - 1, 1:], log + table[m - 1, :-1])
    return table


@dataclass(frozen=True, eq=False)
class Spectrum:
    r"""Eigenvalues and eigenvectors of the dual kernel :math:`C = e^{s} M = \sum_y q^2(y) \phi(y) \phi(y)^\top`.

    Parameters
    ----------
    scale : float
        s, so that M has numbers of the size of the features however large the scores are.
    values : float64[rank]
        Eigenvalues of M that are above rounding, ascending.
    vectors : float64[dimensions, rank]
        Their eigenvectors, of length 1.
    """

    scale: float
    values: Array
    vectors: Array

    @classmethod
    def of(cls, scale: float, moments: Array) -> Self:
        """The spectrum of e^scale · moments; eigenvalues below rounding (a few ε of the largest) are left out."""
        values, vectors = np.linalg.eigh(0.5 * (moments + moments.T))
        top = float(values.max(initial=0.0))
        used = values > max(len(values), 1) * 4 * np.finfo(np.float64).eps * top
        return cls(scale, values[used], vectors[:, used])

    @property
    def rank(self) -> int:
        """How many eigenvalues are not 0, and so the size of the largest set with any probability."""
        return len(self.values)

    @property
    def logs(self) -> Array:
        """Logarithms of the eigenvalues of C."""
        return np.asarray(np.log(self.values) + self.scale)

    def log_partition(self, size: int | None) -> float:
        """log of the sum of det(L_Y) over sets of `size`: log E^k; over all sets if none is given: log det(L + I)."""
        if size is None:
            return float(np.logaddexp(0.0, self.logs).sum())
        # With the scale taken out, which sets of k have k times: differences keep their digits.
        return float(log_elementary(np.log(self.values), size)[-1, size] + size * self.scale)

    def chances(self, size: int | None) -> Array:
        r"""Probability that each eigenvector is chosen.

        .. math:: P(j \in J) = \lambda_j E^{k-1}_{(-j)} / E^k, \qquad \lambda_j / (1 + \lambda_j)
            \text{ where any size goes}
        """
        if size is None:
            return np.asarray(np.exp(-np.logaddexp(0.0, -self.logs)))
        if not size:
            return np.zeros(self.rank)
        logs = np.log(self.values)
        before = log_elementary(logs, size)
        behind = log_elementary(logs[::-1], size)[::-1]
        j = np.arange(self.rank)
        ways = before[j, :size] + behind[j + 1, :size][:, ::-1]  # degree l before, size - 1 - l behind
        return np.asarray(np.exp(logs + np.logaddexp.reduce(ways, axis=1) - before[-1, size]))

    def choose(self, size: int | None, u: Array) -> NDArray[np.int64]:
        """Numbers of the eigenvectors whose elementary process is drawn from; `u` is float64[rank], uniform."""
        if size is None:
            return np.flatnonzero(u < self.chances(None))
        logs, chosen, left = np.log(self.values), [], size
        table = log_elementary(logs, size)
        for m in range(self.rank, 0, -1):
            if left == 0:
                break
            if left == m or u[m - 1] < np.exp(logs[m - 1] + table[m - 1, left - 1] - table[m, left]):
                chosen.append(m - 1)
                left -= 1
        return np.array(chosen[::-1], np.int64)

    def log_bound(self, size: int | None) -> float:
        """No set has a larger log det(L_Y): the sum of the largest `size` log eigenvalues (Cauchy's interlacing)."""
        logs = np.sort(self.logs)[::-1]
        return float(np.maximum(logs, 0.0).sum() if size is None else logs[:size].sum())
