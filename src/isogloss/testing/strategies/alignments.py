"""Inputs of word alignment."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from isogloss.testing.strategies.base import Array, numbers, pair_sizes

__all__ = ["AlignmentInputs", "alignment_inputs", "alignment_pairs"]


class AlignmentInputs(NamedTuple):
    """The arguments of `AlignmentChain`, in its order."""

    emission: Array
    null_emission: Array
    initial: Array
    jump: Array
    null_weight: float
    final: Array | None


def _normalised(scores: Array) -> Array:
    """Log probabilities along the last axis."""
    return scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True) if scores.size else scores


@st.composite
def alignment_inputs(
    draw: Any,
    n: int | None = None,
    m: int | None = None,
    *,
    most: int = 3,
    null_weight: float | None = None,
    final: bool | None = None,
    holes: bool = False,
    spread: float = 2.0,
) -> AlignmentInputs:
    """Emissions, jumps and null of one direction; n words generated from m, drawn unequal when not given."""
    if n is None or m is None:
        m, n = draw(pair_sizes(most=most))
    share = draw(st.sampled_from([0.0, 0.3])) if holes else 0.0
    rows = _normalised(numbers(draw, (m + 1, m), holes=0.0))
    with_final = draw(st.booleans()) if final is None else final
    return AlignmentInputs(
        emission=numbers(draw, (n, m), holes=share, spread=spread),
        null_emission=numbers(draw, (n,), holes=0.0, spread=spread),
        initial=rows[0],
        jump=rows[1:],
        null_weight=draw(st.sampled_from([0.05, 0.2, 0.5])) if null_weight is None else null_weight,
        final=numbers(draw, (m + 1,), holes=0.0) if with_final else None,
    )


@st.composite
def alignment_pairs(
    draw: Any, /, *, least: int = 1, most: int = 3, **options: Any
) -> tuple[AlignmentInputs, AlignmentInputs]:
    """Both directions of one sentence pair of unequal lengths: forward makes target words, backward source words."""
    n_source, n_target = draw(pair_sizes(least=least, most=most))
    forward = draw(alignment_inputs(n_target, n_source, **options))
    return forward, draw(alignment_inputs(n_source, n_target, **options))
