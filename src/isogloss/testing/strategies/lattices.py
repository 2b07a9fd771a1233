"""Lists of labels, and scores over them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from isogloss.testing.strategies.base import Array, numbers

__all__ = ["LatticeInputs", "lattice_inputs"]


class LatticeInputs(NamedTuple):
    """What a chain over lists of labels is made of."""

    lists: list[list[int]]
    order: int
    scores: Array
    """float64[n_parts]: of nodes, edges and, at order 2, triples."""
    transitions: Array
    """float64[k + 1, k] or float64[k + 1, k + 1, k]: for chains with shared transitions, whose nodes have scores."""

    @property
    def nodes(self) -> Array:
        """float64[n_entries]."""
        return self.scores[: sum(map(len, self.lists))]


@st.composite
def lattice_inputs(
    draw: Any, *, max_n: int = 4, k: int = 4, spreads: tuple[float, ...] = (0.1, 3.0, 300.0, 1e4)
) -> LatticeInputs:
    """Lists of unequal lengths, some of one label, with holes in their scores; the larger spreads go beyond what
    probabilities can hold in float64."""
    order, n = draw(st.integers(1, 2)), draw(st.integers(0, max_n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lists = [rng.permutation(k)[: rng.integers(1, k)].tolist() for _ in range(n)]
    sizes = list(map(len, lists))
    count = sum(int(np.prod(sizes[t + 1 - many : t + 1])) for many in range(1, order + 2) for t in range(many - 1, n))
    holes, spread = draw(st.sampled_from([0.0, 0.1, 0.4])), draw(st.sampled_from(spreads))
    scores = numbers(draw, (count,), holes=holes, spread=spread)
    return LatticeInputs(lists, order, scores, numbers(draw, (k + 1,) * order + (k,), holes=holes, spread=spread))
