"""Kernels that count and choose cells by their posterior."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["choose_cells", "count_cells", "count_values", "drop_cells"]

_KERNEL = {"cache": True, "nogil": True, "error_model": "numpy"}
_SCALE = np.float32(1.0 / (2 * 65535))


@njit(**_KERNEL)
def _value(posterior, cell, direction):
    """Twice the posterior of a cell in units: the sum of both directions, or twice one of them."""
    if direction == 0:
        return np.int64(posterior[cell, 0]) + np.int64(posterior[cell, 1])
    return 2 * np.int64(posterior[cell, direction - 1])


@njit(**_KERNEL)
def count_values(posterior, direction, bins):
    """bins[value] += 1 for every cell."""
    for cell in range(posterior.shape[0]):
        bins[_value(posterior, cell, direction)] += 1


@njit(**_KERNEL)
def drop_cells(posterior, least):
    """Set cells to 0 whose directions add up to less than `least`."""
    for cell in range(posterior.shape[0]):
        if _value(posterior, cell, 0) < least:
            posterior[cell, 0] = posterior[cell, 1] = 0


@njit(**_KERNEL)
def count_cells(cell_offsets, posterior, direction, least, counts):
    """counts[pair + 1] = number of cells of the pair whose value is at least `least`."""
    for s in range(cell_offsets.size - 1):
        n = 0
        for cell in range(cell_offsets[s], cell_offsets[s + 1]):
            n += _value(posterior, cell, direction) >= least
        counts[s + 1] = n


@njit(**_KERNEL)
def choose_cells(cell_offsets, target_offsets, posterior, direction, least, offsets, source, target, probability):
    """Write those cells as links, by source, then target."""
    for s in range(cell_offsets.size - 1):
        at = offsets[s]
        width = target_offsets[s + 1] - target_offsets[s]
        for cell in range(cell_offsets[s], cell_offsets[s + 1]):
            value = _value(posterior, cell, direction)
            if value >= least:
                k = cell - cell_offsets[s]
                source[at], target[at] = k // width, k % width
                probability[at] = value * _SCALE
                at += 1
