"""Scores of inversion transduction grammars."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

from isogloss.testing.strategies.base import Array, numbers, pair_sizes

__all__ = ["ItgInputs", "itg_inputs"]


class ItgInputs(NamedTuple):
    """Scores of links, of nulls and, unless None, of blocks."""

    scores: Array
    source_null: Array
    target_null: Array
    blocks: tuple[Array, Array] | None


@st.composite
def itg_inputs(draw: Any, *, most: int = 4, size: int | None = None, holes: bool = True) -> ItgInputs:
    """A pair of unequal lengths; sometimes with forbidden links and nulls, possibly so many that nothing is allowed.

    `size` is the most words of a block, drawn from 1 to 4 when not given.
    """
    n_source, n_target = draw(pair_sizes(most=most))
    words = draw(st.integers(1, 4)) if size is None else size
    spread = draw(st.sampled_from([0.1, 3.0, 30.0]))
    share = draw(st.sampled_from([0.0, 0.3])) if holes else 0.0
    shape = (n_source, n_target)
    sides = [numbers(draw, (*shape, words - 1), holes=share, spread=spread) for _ in range(2)] if words > 1 else None
    return ItgInputs(
        numbers(draw, shape, holes=share, spread=spread),
        numbers(draw, (n_source,), holes=share / 2, spread=spread),
        numbers(draw, (n_target,), holes=share / 2, spread=spread),
        None if sides is None else (sides[0], sides[1]),
    )
