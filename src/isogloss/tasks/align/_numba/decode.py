"""Kernels that count and choose cells by their posterior."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.engine.threads import run_blocks

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
def _count_values(block, count, posterior, direction, bins):
    size = posterior.shape[0]
    for cell in range(size * block // count, size * (block + 1) // count):
        bins[block, _value(posterior, cell, direction)] += 1


def count_values(posterior, direction, n_bins):
    """How many cells have each value: int64[n_bins]."""
    count = _blocks_for(len(posterior))
    bins = np.zeros((count, n_bins), np.int64)
    run_blocks(_count_values, count, posterior, direction, bins)
    return bins.sum(axis=0)


@njit(**_KERNEL)
def _drop_cells(block, count, posterior, least):
    size = posterior.shape[0]
    for cell in range(size * block // count, size * (block + 1) // count):
        if _value(posterior, cell, 0) < least:
            posterior[cell, 0] = posterior[cell, 1] = 0


def drop_cells(posterior, least):
    """Set cells to 0 whose directions add up to less than `least`."""
    run_blocks(_drop_cells, _blocks_for(len(posterior)), posterior, least)


def _blocks_for(n_cells):
    """Pieces of work for the threads, by the number of cells alone."""
    return max(1, min(16, n_cells >> 16))


@njit(**_KERNEL)
def _count_cells(block, count, cell_offsets, posterior, direction, least, counts):
    for s in range(block, cell_offsets.size - 1, count):
        n = 0
        for cell in range(cell_offsets[s], cell_offsets[s + 1]):
            n += _value(posterior, cell, direction) >= least
        counts[s + 1] = n


def count_cells(cell_offsets, posterior, direction, least, counts):
    """counts[pair + 1] = number of cells of the pair whose value is at least `least`."""
    run_blocks(_count_cells, _blocks_for(len(posterior)), cell_offsets, posterior, direction, least, counts)


@njit(**_KERNEL)
def _choose_cells(
    block, count, cell_offsets, target_offsets, posterior, direction, least, offsets, source, target, probability
):
    for s in range(block, cell_offsets.size - 1, count):
        at = offsets[s]
        width = target_offsets[s + 1] - target_offsets[s]
        for cell in range(cell_offsets[s], cell_offsets[s + 1]):
            value = _value(posterior, cell, direction)
            if value >= least:
                k = cell - cell_offsets[s]
                source[at], target[at] = k // width, k % width
                probability[at] = value * _SCALE
                at += 1


def choose_cells(cell_offsets, target_offsets, posterior, direction, least, offsets, source, target, probability):
    """Write those cells as links, by source, then target."""
    run_blocks(
        _choose_cells, _blocks_for(len(posterior)), cell_offsets, target_offsets, posterior, direction, least, offsets,
        source, target, probability,
    )  # fmt: skip
