"""Arrays of the host on the device, and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

__all__ = ["fetched", "put", "solved"]


def put(array: Any, device: str = "cuda") -> Any:
    """An array on the device; one that may not be written is only read."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writ", UserWarning)
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def fetched(tensor: Any) -> Any:
    """A tensor as an array of the host."""
    return tensor.cpu().numpy()


def solved(kernel: Callable[..., Any], stack: Any, *more: Any, device: str = "cuda") -> tuple[Any, Any]:
    """log Z and marginals of a `Stack` by a kernel of this folder: ``kernel(values, offsets, *more)`` on the device."""
    moved = [put(array, device) if isinstance(array, np.ndarray) else array for array in more]
    values, marginals = kernel(put(stack.values, device), put(stack.offsets, device), *moved)
    return fetched(values), fetched(marginals)
