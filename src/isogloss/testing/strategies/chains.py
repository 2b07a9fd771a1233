"""Scores of chains."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from isogloss.testing.strategies.base import Array, numbers

__all__ = ["FactoredInputs", "chain_scores", "factored_inputs"]


@st.composite
def chain_scores(
    draw: Any,
    *,
    order: int = 1,
    min_n: int = 0,
    max_n: int = 4,
    max_k: int = 3,
    allow_minus_inf: bool = True,
    ties: bool = True,
) -> Array:
    """float64[n, k, k], or float64[n, k, k, k] for order 2; some are all zero, some have forbidden steps, possibly so
    many that nothing is allowed."""
    n, k = draw(st.integers(min_n, max_n)), draw(st.integers(1, max_k))
    shape = (n, *[k] * (order + 1))
    if ties and draw(st.integers(0, 9)) == 0:
        return np.zeros(shape)
    holes = draw(st.sampled_from([0.0, 0.2, 0.5])) if allow_minus_inf else 0.0
    return numbers(draw, shape, holes=holes, spread=draw(st.sampled_from([0.1, 3.0, 30.0])))


class FactoredInputs(NamedTuple):
    """What a chain with shared transitions is made of."""

    nodes: Array
    transitions: Array
    start: Array | None
    end: Array | None
    pairs: Array | None

    @property
    def options(self) -> dict[str, Array | None]:
        """All but the nodes, as keywords."""
        return {"transitions": self.transitions, "start": self.start, "end": self.end, "pairs": self.pairs}


@st.composite
def factored_inputs(
    draw: Any, *, order: int = 1, max_n: int = 4, max_k: int = 3, spreads: tuple[float, ...] = (0.1, 3.0, 300.0)
) -> FactoredInputs:
    """Nodes and shared scores with holes; the spread of 300 goes beyond what probabilities can hold in float64."""
    n, k = draw(st.integers(0, max_n)), draw(st.integers(1, max_k))
    holes, spread = draw(st.sampled_from([0.0, 0.2, 0.4])), draw(st.sampled_from(spreads))

    def scores(*shape: int) -> Array | None:
        return numbers(draw, shape, holes=holes, spread=spread) if draw(st.booleans()) else None

    nodes = numbers(draw, (n, k), holes=holes, spread=spread)
    transitions = numbers(draw, (k,) * (order + 1), holes=holes, spread=spread)
    return FactoredInputs(nodes, transitions, scores(k), scores(k), scores(k, k) if order == 2 else None)
