"""Scores of brackets and of labelled spans."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from isogloss.testing.strategies.base import Array, numbers

__all__ = ["bracket_scores", "span_scores"]


@st.composite
def bracket_scores(draw: Any, *, max_n: int = 5) -> Array:
    """float64[n_spans]; some are all zero, some have forbidden spans, of single words, too."""
    n = draw(st.integers(0, max_n))
    return _scores(draw, (n * (n + 1) // 2,))


@st.composite
def span_scores(draw: Any, *, max_n: int = 3, max_labels: int = 2) -> Array:
    """float64[n_spans, n_labels], likewise."""
    n = draw(st.integers(0, max_n))
    return _scores(draw, (n * (n + 1) // 2, draw(st.integers(1, max_labels))))


def _scores(draw: Any, shape: tuple[int, ...]) -> Array:
    if draw(st.integers(0, 9)) == 0:
        return np.zeros(shape)
    holes = draw(st.sampled_from([0.0, 0.1, 0.3]))
    return numbers(draw, shape, holes=holes, spread=draw(st.sampled_from([0.1, 3.0, 30.0, 300.0])))
