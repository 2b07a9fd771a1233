"""Products of marginals over tuples of parts: what the coupled parts of a mean-field approximation tell each other."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["add_all_fields", "add_fields", "others", "products", "update_each"]


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


@njit(cache=True, nogil=True)
def update_each(
    starts: NDArray[np.int64],
    members: NDArray[np.int64],
    tuples: NDArray[np.int64],
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
    moving: NDArray[np.bool_],
    first: int,
    marginals: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Update parts that know nothing of each other, one by one, each by the marginals that the ones before it got.

    The tuples of part first + p are ``members[starts[p]:starts[p + 1]]``. Parts that are not `moving` stay. `out` gets
    the scores of those that move: their own, and what their tuples are worth.
    """
    for p in range(len(scores)):
        if not moving[p]:
            continue
        value = scores[p]
        for k in range(starts[p], starts[p + 1]):
            t = members[k]
            worth = weights[t]
            for a in range(tuples.shape[1]):
                part = tuples[t, a]
                if part >= 0 and part != first + p:
                    worth *= marginals[part]
            value += worth
        out[p] = value
        if value >= 0:
            marginals[first + p] = 1.0 / (1.0 + np.exp(-value))
        else:
            odds = np.exp(value)
            marginals[first + p] = odds / (1.0 + odds)


@njit(cache=True, nogil=True)
def others(tuples: NDArray[np.int64], marginals: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """For each place of each tuple, the product of the marginals of its other parts; 0 for places that are not used."""
    for t in range(len(tuples)):
        for a in range(tuples.shape[1]):
            value = 1.0 if tuples[t, a] >= 0 else 0.0
            for b in range(tuples.shape[1]):
                if b != a and tuples[t, b] >= 0:
                    value *= marginals[tuples[t, b]]
            out[t, a] = value


@njit(cache=True, nogil=True)
def add_all_fields(
    tuples: NDArray[np.int64], weights: NDArray[np.float64], shares: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Add to each part what its tuples are worth, where `shares` has what `others` found."""
    for t in range(len(tuples)):
        for a in range(tuples.shape[1]):
            if tuples[t, a] >= 0:
                out[tuples[t, a]] += weights[t] * shares[t, a]
