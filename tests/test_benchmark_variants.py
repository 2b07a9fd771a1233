"""Verdicts about orderings of ways to train an aligner: by paired resamples, and not by numbers alone."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.quality import variant_measures
from benchmarks.quality.variant_claims import NO, OPEN, YES, Claim, Find
from benchmarks.quality.variant_measures import Measured, measured
from benchmarks.quality.variants import KEY, Variant, variants


def around(value: float, spread: float, seed: int = 0) -> Measured:
    return Measured(value, value + spread * np.random.default_rng(seed).normal(size=2000))


@pytest.mark.parametrize(
    ("numbers", "wanted"),
    [
        ((around(10, 0.1), around(12, 0.1, 1)), YES),
        ((around(12, 0.1), around(10, 0.1, 1)), NO),
        ((around(10, 3.0), around(11, 3.0, 1)), OPEN),
        ((around(10, 3.0), around(11, 3.0)), YES),  # both move alike: the pairs are what counts
        ((around(10, 0.1), around(12, 0.1, 1), around(12.1, 1.0, 2)), OPEN),
        ((around(10, 0.1), around(12, 0.1, 1), around(8, 1.0, 2)), NO),
    ],
)
def test_a_claim_holds_if_every_step_is_told_from_chance(numbers: tuple[Measured, ...], wanted: str) -> None:
    assert Claim("", "", numbers).verdict == wanted


def test_measures_are_drawn_on_the_same_pairs() -> None:
    rng = np.random.default_rng(1)
    counts = np.stack([rng.integers(0, 5, 60), np.full(60, 5)], axis=1)
    one = measured(counts, variant_measures._share)
    more = measured(counts + [1, 1], variant_measures._share)
    assert one.value == pytest.approx(100 * counts[:, 0].sum() / 300)
    assert one.draws.std() == pytest.approx(100 * counts[:, 0].std() / 5 / np.sqrt(60), rel=0.1)
    assert (more - one).p_value < 0.01 and ((more - one).draws > 0).all()
    assert (one - one).p_value == 1.0 and one.below(more).value == pytest.approx(100 * (1 - one.value / more.value))


def test_variants_differ_and_are_found_again() -> None:
    every = list(variants())
    assert len({variant.key for variant in every}) == len(every) and len(every[0].key) == len(KEY) - 1
    extra = Variant("papers", extra="null=length dual_steps=5 final=True dual_tolerance=0.5").options
    assert (extra["null"], extra["dual_steps"], extra["final"], extra["dual_tolerance"]) == ("length", 5, True, 0.5)
    low, high = around(10, 1.0), around(20, 1.0)
    find = Find({every[0].key: {"viterbi_forward": low, "viterbi_backward": high}})
    setting, model, constraint, decode, iterations, _ = every[0].key
    assert find("viterbi", constraint, decode, model=model, setting=setting, iterations=iterations).value == 15.0
