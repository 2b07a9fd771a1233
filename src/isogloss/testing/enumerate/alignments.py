"""All word alignments of a pair in one direction, and in both at once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import Array, BruteForce
from isogloss.testing.enumerate.matchings import matchings

__all__ = ["JointAgreement", "alignment_score", "alignments", "brute_force_alignments", "joint_agreement"]


def alignments(n: int, m: int) -> list[tuple[int, ...]]:
    """All (m + 1)ⁿ ways to give each of n words one of m positions or null, −1."""
    return list(itertools.product(range(-1, m), repeat=n))


def alignment_score(
    alignment: Sequence[int],
    emission: ArrayLike,
    null_emission: ArrayLike,
    initial: ArrayLike,
    jump: ArrayLike,
    null_weight: float,
    final: ArrayLike | None = None,
) -> float:
    """Log probability of words and alignment: jumps are measured from the last word that is not null (the j⁻ rule)."""
    emission, null_emission = np.asarray(emission), np.asarray(null_emission)
    initial, jump = np.asarray(initial), np.asarray(jump)
    m = emission.shape[1]
    with np.errstate(divide="ignore"):
        log_null, log_real = np.log([null_weight, 1 - null_weight])
    score: Any = 0.0
    last = None
    for t, position in enumerate(alignment):
        if position < 0:
            score += log_null + null_emission[t]
            continue
        score += log_real + (initial[position] if last is None else jump[last, position]) + emission[t, position]
        last = position
    if final is not None:
        score += np.asarray(final)[m if last is None else last]
    return float(score)


def brute_force_alignments(
    emission: ArrayLike,
    null_emission: ArrayLike,
    initial: ArrayLike,
    jump: ArrayLike,
    null_weight: float,
    final: ArrayLike | None = None,
) -> BruteForce:
    """Every alignment of one sentence pair in one direction; parts are links, float64[n, m]."""
    n, m = np.asarray(emission).shape
    listed = alignments(n, m)
    parts = np.zeros((len(listed), n, m))
    for row, alignment in zip(parts, listed, strict=True):
        for t, position in enumerate(alignment):
            if position >= 0:
                row[t, position] = 1.0
    model = (emission, null_emission, initial, jump, null_weight, final)
    return BruteForce(listed, parts, np.array([alignment_score(a, *model) for a in listed]))


class JointAgreement(NamedTuple):
    """The exact E-step of alignment by agreement for one pair."""

    objective: float
    """log p₁(x) + log p₂(x) + log Σ_z p₁(z|x) p₂(z|x), equation 3."""
    matchings: list[frozenset[tuple[int, int]]]
    forward: list[tuple[int, ...]]
    """Each matching as an alignment of the target words."""
    backward: list[tuple[int, ...]]
    """Each matching as an alignment of the source words."""
    probabilities: Array
    """q(z), float64[count]."""


def joint_agreement(n_source: int, n_target: int, forward: Any, backward: Any) -> JointAgreement:
    """q(z) ∝ p₁(z|x) p₂(z|x) over all matchings (Liang, Taskar and Klein 2006, section 4 and appendix).

    Parameters
    ----------
    forward, backward : callable
        Joint log score of an alignment of the target (source) words: log p₁(x, a), log p₂(x, a).
    """
    listed = matchings(n_source, n_target)
    there, back, log_scores = [], [], np.empty(len(listed))
    for row, links in enumerate(listed):
        to_source, to_target = {j: i for i, j in links}, dict(links)
        there.append(tuple(to_source.get(j, -1) for j in range(n_target)))
        back.append(tuple(to_target.get(i, -1) for i in range(n_source)))
        log_scores[row] = forward(there[-1]) + backward(back[-1])
    top = log_scores.max()
    weight = np.exp(log_scores - top)
    return JointAgreement(float(top + np.log(weight.sum())), listed, there, back, weight / weight.sum())
