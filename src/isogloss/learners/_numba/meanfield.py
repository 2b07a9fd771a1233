"""Products of marginals over tuples of parts: what the coupled parts of a mean-field approximation tell each other."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["add_fields", "products"]


@njit(cache=True, nogil=True)
def products(tuples: NDArray[np.int64], marginals: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """The product of the marginals of each tuple; -1 stands for no part."""
    for t in range(len(tuples)):
        value = 1.0
        for a in range(tuples.shape[1]):
            if tuples[t, a] >= 0:
                value *= marginals[tuples[t, a]]
        out[t] = value


@njit(cache=True, nogil=True)
def add_fields(
    tuples: NDArray[np.int64],
    weights: NDArray[np.float64],
    marginals: NDArray[np.float64],
    start: int,
    stop: int,
    out: NDArray[np.float64],
) -> None:
    """Add to each part start <= p < stop, at ``out[p - start]``, what its tuples are worth if it is there."""
    for t in range(len(tuples)):
        own, value = -1, weights[t]
        for a in range(tuples.shape[1]):
            part = tuples[t, a]
            if start <= part < stop:
                own = part
            elif part >= 0:
                value *= marginals[part]
        if own >= 0:
            out[own - start] += value
