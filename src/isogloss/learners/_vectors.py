"""Inner products of long vectors, the same to the bit on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks, using_threads

__all__ = ["dot", "summed"]

Array = NDArray[np.float64]
NUMBERS_PER_BLOCK = 1 << 15


def dot(a: Array, b: Array) -> float:
    """a · b."""
    from isogloss.learners._numba import vectors

    return summed(vectors.dot, a, b)


def summed(kernel: Any, *args: Any) -> float:
    """Run a kernel over blocks of its last vector and add up what each leaves, in order."""
    blocks = max(1, len(args[-1]) // NUMBERS_PER_BLOCK)
    shares = np.zeros(blocks)
    if blocks == 1:
        kernel(0, 1, *args, shares)
        return float(shares[0])
    with using_threads():
        run_blocks(kernel, blocks, *args, shares)
    total = 0.0
    for share in shares:
        total += float(share)
    return total
