"""Scores of trees with valence."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

from isogloss.testing.strategies.base import Array, numbers

__all__ = ["ValenceInputs", "valence_inputs"]


class ValenceInputs(NamedTuple):
    """What a `ValenceTree` is made of."""

    scores: Array
    stops: Array
    children: Array
    nearest_first: bool


@st.composite
def valence_inputs(
    draw: Any, *, min_n: int = 0, max_n: int = 4, most_classes: int = 4, allow_minus_inf: bool = True
) -> ValenceInputs:
    """Links [n+1, n+1], stops [n+1, 2, V_s, 2] and children [n+1, n+1, V_c]; cells that are not read hold numbers."""
    n = draw(st.integers(min_n, max_n))
    stop_valences, child_valences = draw(st.integers(1, most_classes)), draw(st.integers(1, most_classes))
    holes = draw(st.sampled_from([0.0, 0.1, 0.3])) if allow_minus_inf else 0.0
    spread = draw(st.sampled_from([0.1, 3.0, 30.0]))
    return ValenceInputs(
        numbers(draw, (n + 1, n + 1), holes=holes, spread=spread),
        numbers(draw, (n + 1, 2, stop_valences, 2), holes=holes, spread=spread),
        numbers(draw, (n + 1, n + 1, child_valences), holes=holes, spread=spread),
        draw(st.booleans()),
    )
