"""Inputs of matchings."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from isogloss.testing.strategies.base import Array, numbers, pair_sizes

__all__ = ["MatchingInputs", "matching_inputs"]


class MatchingInputs(NamedTuple):
    """The arguments of `testing.brute_force_matching`, in its order."""

    scores: Array
    source_null: Array
    target_null: Array
    source_penalty: Array | None
    target_penalty: Array | None
    pairs: tuple[Array, Array] | None


@st.composite
def matching_inputs(
    draw: Any,
    *,
    least: int = 0,
    most: int = 4,
    fertility: int = 1,
    pairs: bool = False,
    required: bool = False,
    holes: bool = True,
) -> MatchingInputs:
    """Scores, nulls and, if asked for, penalties for up to `fertility` links a word and scores of pairs of links.

    Sizes are unequal. Some scores are whole numbers, so that there are ties; with `required`, some nulls are −∞.
    """
    n, m = draw(pair_sizes(least=least, most=most))
    share = draw(st.sampled_from([0.0, 0.3])) if holes else 0.0
    whole, spread = draw(st.booleans()), draw(st.sampled_from([0.5, 2.0]))
    must = draw(st.sampled_from([0.0, 0.3])) if required else 0.0

    def fill(shape: tuple[int, ...], missing: float) -> Array:
        values = numbers(draw, shape, holes=missing, spread=spread)
        return np.round(values) if whole else values

    nulls = [fill((words,), must) if draw(st.booleans()) or must else np.zeros(words) for words in (n, m)]
    steps: list[Array | None] = [None, None]
    if fertility > 1:
        for side, words in enumerate((n, m)):
            width = draw(st.integers(0, fertility - 1))
            steps[side] = np.maximum.accumulate(np.abs(fill((words, width), 0.0)), axis=1)
    listed: tuple[Array, Array] | None = None
    if pairs:
        cells = list(itertools.product(range(n), range(m)))
        both = np.array([a + b for a, b in itertools.combinations(cells, 2)], np.int64).reshape(-1, 4)
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        both = both[rng.random(len(both)) < draw(st.sampled_from([0.2, 1.0]))]
        listed = both, fill((len(both),), draw(st.sampled_from([0.0, 0.2])))
    return MatchingInputs(fill((n, m), share), nulls[0], nulls[1], steps[0], steps[1], listed)
