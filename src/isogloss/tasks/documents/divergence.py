"""How far apart mixtures of topics are, and which documents are nearest."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import run_blocks
from isogloss.errors import ParameterError
from isogloss.tasks.documents._numba.divergence import pairwise

__all__ = ["distances", "divergence"]

Array = NDArray[np.float64]
ROWS = 16
"""Rows of a block."""


def divergence(distributions: ArrayLike) -> float:
    r"""Jensen-Shannon divergence of K distributions, from 0 to 1.

    .. math:: \mathrm{JS} = \frac{1}{K \log_2 K} \sum_k \mathrm{KL}_2(p_k \| \bar p), \qquad
              \bar p = \frac{1}{K} \sum_k p_k

    0 if they are all the same, 1 if no two have anything in common. For K = 2 it is the usual one in bits; for more,
    whose largest value is :math:`\log_2 K`, it is divided by that.

    Examples
    --------
    >>> divergence([[1.0, 0.0], [0.0, 1.0]]), divergence([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    (1.0, 0.0)
    """
    given = np.asarray(distributions, np.float64)
    if given.ndim != 2 or len(given) < 2 or (given < 0).any() or not np.allclose(given.sum(axis=1), 1):
        raise ParameterError("divergence: give two or more distributions, rows of numbers that add up to 1")
    whole = _entropies(given.mean(axis=0)[None])[0] - _entropies(given).mean()
    return float(np.clip(whole / np.log2(len(given)), 0.0, 1.0))


def distances(first: Array, second: Array) -> Array:
    """float64[n, m]: the Jensen-Shannon divergence, in bits, of every row of one matrix with every row of another."""
    out = np.empty((len(first), len(second)))
    blocks = max(1, -(-len(first) // ROWS))
    run_blocks(pairwise, blocks, first, second, _entropies(first), _entropies(second), out)
    return out


def _entropies(rows: Array) -> Array:
    """float64[n], in bits."""
    return np.asarray(-(rows * np.log2(np.where(rows > 0, rows, 1.0))).sum(axis=1), np.float64)
