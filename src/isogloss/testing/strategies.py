"""Hypothesis strategies: small scores and sentence pairs, with lengths unequal and corners included."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

__all__ = ["AlignmentInputs", "alignment_inputs", "alignment_pairs", "chain_scores", "pair_sizes"]

Array = NDArray[np.float64]


class AlignmentInputs(NamedTuple):
    """The arguments of `AlignmentChain`, in its order."""

    emission: Array
    null_emission: Array
    initial: Array
    jump: Array
    null_weight: float
    final: Array | None


def _numbers(draw: Any, shape: tuple[int, ...], *, holes: float, spread: float = 3.0) -> Array:
    """Log scores from a drawn seed: Hypothesis chooses sizes and corners, NumPy fills in the numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = rng.normal(0.0, spread, shape)
    return np.where(rng.random(shape) < holes, -np.inf, scores)


@st.composite
def chain_scores(
    draw: Any, *, min_n: int = 0, max_n: int = 4, max_k: int = 3, allow_minus_inf: bool = True, ties: bool = True
) -> Array:
    """float64[n, k, k]; some are all zero, some have forbidden steps, possibly so many that nothing is allowed."""
    n, k = draw(st.integers(min_n, max_n)), draw(st.integers(1, max_k))
    if ties and draw(st.integers(0, 9)) == 0:
        return np.zeros((n, k, k))
    holes = draw(st.sampled_from([0.0, 0.2, 0.5])) if allow_minus_inf else 0.0
    return _numbers(draw, (n, k, k), holes=holes, spread=draw(st.sampled_from([0.1, 3.0, 30.0])))


@st.composite
def pair_sizes(draw: Any, *, least: int = 0, most: int = 4) -> tuple[int, int]:
    """(n_source, n_target), unequal, often 0 or 1 on one side."""
    n_source = draw(st.integers(least, most))
    n_target = draw(st.integers(least, most).filter(lambda n: n != n_source))
    return n_source, n_target


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
    rows = _normalised(_numbers(draw, (m + 1, m), holes=0.0))
    with_final = draw(st.booleans()) if final is None else final
    return AlignmentInputs(
        emission=_numbers(draw, (n, m), holes=share, spread=spread),
        null_emission=_numbers(draw, (n,), holes=0.0, spread=spread),
        initial=rows[0],
        jump=rows[1:],
        null_weight=draw(st.sampled_from([0.05, 0.2, 0.5])) if null_weight is None else null_weight,
        final=_numbers(draw, (m + 1,), holes=0.0) if with_final else None,
    )


@st.composite
def alignment_pairs(
    draw: Any, /, *, least: int = 1, most: int = 3, **options: Any
) -> tuple[AlignmentInputs, AlignmentInputs]:
    """Both directions of one sentence pair of unequal lengths: forward makes target words, backward source words."""
    n_source, n_target = draw(pair_sizes(least=least, most=most))
    forward = draw(alignment_inputs(n_target, n_source, **options))
    return forward, draw(alignment_inputs(n_source, n_target, **options))
