"""Arrays of the host on the device, and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

__all__ = ["fetched", "put", "solved"]


_LARGE = 1 << 20  # bytes from which memory is pinned for the copy; torch keeps such memory for the next one


def put(array: Any, device: str = "cuda", *, pinned: bool = True) -> Any:
    """An array on the device; one that may not be written is only read. Pinning pays where sizes come again."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writ", UserWarning)
        tensor = torch.from_numpy(np.ascontiguousarray(array))
    if device == "cpu":
        return tensor
    if pinned and tensor.nbytes >= _LARGE:
        tensor = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor)
    return tensor.to(device, non_blocking=True)


def fetched(tensor: Any) -> Any:
    """A tensor as an array of the host."""
    if tensor.device.type == "cpu" or tensor.nbytes < _LARGE:
        return tensor.cpu().numpy()
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor).numpy()


def solved(kernel: Callable[..., Any], stack: Any, *more: Any, device: str = "cuda") -> tuple[Any, Any]:
    """log Z and marginals of a `Stack` by a kernel of this folder: ``kernel(values, offsets, *more)`` on the device."""
    moved = [put(array, device) if isinstance(array, np.ndarray) else array for array in more]
    values, marginals = kernel(put(stack.values, device), put(stack.offsets, device), *moved)
    return fetched(values), fetched(marginals)
