"""Scores of chains."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from isogloss.testing.strategies.base import Array, numbers

__all__ = ["chain_scores"]


@st.composite
def chain_scores(
    draw: Any, *, min_n: int = 0, max_n: int = 4, max_k: int = 3, allow_minus_inf: bool = True, ties: bool = True
) -> Array:
    """float64[n, k, k]; some are all zero, some have forbidden steps, possibly so many that nothing is allowed."""
    n, k = draw(st.integers(min_n, max_n)), draw(st.integers(1, max_k))
    if ties and draw(st.integers(0, 9)) == 0:
        return np.zeros((n, k, k))
    holes = draw(st.sampled_from([0.0, 0.2, 0.5])) if allow_minus_inf else 0.0
    return numbers(draw, (n, k, k), holes=holes, spread=draw(st.sampled_from([0.1, 3.0, 30.0])))
