"""What factors hear, and small factor graphs without cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from isogloss.testing.strategies.base import Array, numbers

__all__ = ["FactorTree", "factor_trees", "log_odds", "log_weights"]


@st.composite
def log_odds(draw: Any, shape: tuple[int, ...], *, infinite: bool = True) -> Array:
    """float64[shape]: what is heard about Booleans; some are certain, most often false."""
    logs = numbers(draw, shape, holes=0.0, spread=draw(st.sampled_from([0.1, 2.0, 40.0])))
    if infinite and draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        share = rng.random(shape)
        logs = np.where(share < 0.25, -np.inf, np.where(share > 0.93, np.inf, logs))
    return logs


@st.composite
def log_weights(draw: Any, shape: tuple[int, ...], *, infinite: bool = True) -> Array:
    """float64[shape], shape[-1] values: what is heard about other variables; the best is 0, and one is possible."""
    holes = draw(st.sampled_from([0.0, 0.3])) if infinite else 0.0
    logs = numbers(draw, shape, holes=holes, spread=draw(st.sampled_from([0.1, 2.0, 40.0])))
    logs[(logs == -np.inf).all(axis=-1)] = 0.0
    return np.asarray(logs - logs.max(axis=-1, keepdims=True))


@dataclass(frozen=True)
class FactorTree:
    """Variables in a tree, or several, with a table for each two that are joined.

    sizes : number of values of each variable; 0 stands for a Boolean
    unary : one float64[k] for each variable (float64[1] for Booleans: of true)
    edges : (variable, variable, float64[size, size])
    """

    sizes: list[int]
    unary: list[Array]
    edges: list[tuple[int, int, Array]]


@st.composite
def factor_trees(draw: Any, *, most: int = 5, holes: float = 0.15) -> FactorTree:
    """Each variable is joined to an earlier one, or to none; Booleans and variables of up to three values."""
    sizes = draw(st.lists(st.sampled_from([0, 0, 1, 2, 3]), min_size=1, max_size=most))
    spread = draw(st.sampled_from([0.3, 2.0, 20.0]))
    unary = [numbers(draw, (max(size, 1),), holes=holes, spread=spread) for size in sizes]
    edges = []
    for v in range(1, len(sizes)):
        other = draw(st.integers(-1, v - 1))
        if other >= 0:
            shape = (sizes[other] or 2, sizes[v] or 2)
            edges.append((other, v, numbers(draw, shape, holes=holes, spread=spread)))
    return FactorTree(sizes, unary, edges)
