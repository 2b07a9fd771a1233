"""Cells counted and chosen by posterior on a GPU, as in `_numba.decode`: int32 a cell, forward in the lower half."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["choose_cells", "count_values"]

_PIECE = 1 << 28
_UNIT = 65535


def _values(posterior: Any) -> Any:
    """Twice the mean posterior of cells in units."""
    return (posterior & 0xFFFF) + ((posterior >> 16) & 0xFFFF)


def count_values(posterior: Any) -> Any:
    """How many cells have each value: int64[2 * 65535 + 1]."""
    bins = torch.zeros(2 * _UNIT + 1, dtype=torch.int64, device=posterior.device)
    for piece in torch.split(posterior, _PIECE):
        values = _values(piece[piece != 0])  # nearly all cells are 0; counting them one by one would be slow
        bins += torch.bincount(values, minlength=len(bins))
    bins[0] += len(posterior) - bins.sum()
    return bins


def choose_cells(posterior: Any, cell_offsets: Any, target_offsets: Any, least: int) -> tuple[Any, Any, Any, Any]:
    """Cells whose value is at least `least`, as links: offsets, source, target and probability, on the host."""
    widths = torch.diff(target_offsets)
    counts = torch.zeros(len(cell_offsets), dtype=torch.int64, device=posterior.device)
    found: list[tuple[Any, ...]] = []
    for number, piece in enumerate(torch.split(posterior, _PIECE)):
        values = _values(piece)
        cell = torch.nonzero(values >= least).flatten()
        value = values[cell]
        cell += number * _PIECE
        pair = torch.searchsorted(cell_offsets, cell, right=True) - 1
        counts[1:] += torch.bincount(pair, minlength=len(widths))
        cell -= cell_offsets[pair]
        width = widths[pair]
        source, target = (cell // width).to(torch.int32), (cell % width).to(torch.int32)
        probability = value.to(torch.float32) * (1.0 / (2 * _UNIT))
        found.append((source, target, probability))
    offsets = torch.cumsum(counts, 0).cpu().numpy()
    joined = [torch.cat(parts).cpu().numpy() for parts in zip(*found, strict=True)]
    return offsets, joined[0], joined[1], joined[2]
