"""Scores of dependency trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from isogloss.testing.strategies.base import Array, numbers

__all__ = ["tree_scores"]


@st.composite
def tree_scores(draw: Any, *, min_n: int = 0, max_n: int = 4, allow_minus_inf: bool = True, ties: bool = True) -> Array:
    """float64[n+1, n+1], indexed (head, child); some are all zero, some have forbidden links.

    The diagonal and column 0, which no tree uses, hold numbers too: structures have to overlook them.
    """
    n = draw(st.integers(min_n, max_n))
    if ties and draw(st.integers(0, 9)) == 0:
        return np.zeros((n + 1, n + 1))
    holes = draw(st.sampled_from([0.0, 0.2, 0.5])) if allow_minus_inf else 0.0
    return numbers(draw, (n + 1, n + 1), holes=holes, spread=draw(st.sampled_from([0.1, 3.0, 30.0])))
