"""What strategies share: scores with holes, and unequal sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

__all__ = ["Array", "numbers", "pair_sizes"]

Array = NDArray[np.float64]


def numbers(draw: Any, shape: tuple[int, ...], *, holes: float, spread: float = 3.0) -> Array:
    """Log scores from a drawn seed: Hypothesis chooses sizes and corners, NumPy fills in the numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = rng.normal(0.0, spread, shape)
    return np.where(rng.random(shape) < holes, -np.inf, scores)


@st.composite
def pair_sizes(draw: Any, *, least: int = 0, most: int = 4) -> tuple[int, int]:
    """(n_source, n_target), unequal, often 0 or 1 on one side."""
    n_source = draw(st.integers(least, most))
    n_target = draw(st.integers(least, most).filter(lambda n: n != n_source))
    return n_source, n_target
