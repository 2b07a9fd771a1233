"""Small grammars with scores for short sentences."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from isogloss.testing.strategies.base import Array, numbers

__all__ = ["CfgInputs", "cfg_inputs"]


class CfgInputs(NamedTuple):
    """A grammar, and the scores of a sentence of n words under it."""

    n: int
    n_symbols: int
    binary: list[tuple[int, ...]]
    unary: list[tuple[int, ...]]
    scores: Array


@st.composite
def cfg_inputs(draw: Any, *, max_n: int = 3, max_symbols: int = 2) -> CfgInputs:
    """Grammars of all sizes, with and without unary rules; forbidden rules and symbols, far and near scores."""
    n, symbols = draw(st.integers(0, max_n)), draw(st.integers(1, max_symbols))
    every = [(a, b, c) for a in range(symbols) for b in range(symbols) for c in range(symbols)]
    lone = [(a, b) for a in range(symbols) for b in range(symbols) if a != b]
    binary = draw(st.lists(st.sampled_from(every), unique=True))
    unary = draw(st.lists(st.sampled_from(lone), unique=True)) if lone else []
    cells = n * (n + 1) // 2 * symbols * (2 if unary else 1)
    shape = (len(binary) + len(unary) + cells,)
    if draw(st.integers(0, 9)) == 0:
        return CfgInputs(n, symbols, binary, unary, np.zeros(shape))
    holes, spread = draw(st.sampled_from([0.0, 0.1])), draw(st.sampled_from([0.1, 3.0, 30.0, 300.0]))
    return CfgInputs(n, symbols, binary, unary, numbers(draw, shape, holes=holes, spread=spread))
