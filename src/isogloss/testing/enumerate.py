"""Answers by another road: list every structure, score it, add up. itertools and NumPy, and nothing of ours.

Everything here is exponential and meant for sizes up to about 4. Nothing is shared with the dynamic programs that are
held against it, not even the handling of minus infinity.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "BruteForce",
    "JointAgreement",
    "alignment_score",
    "alignments",
    "brute_force",
    "brute_force_alignments",
    "brute_force_chain",
    "chain_parts",
    "chains",
    "joint_agreement",
    "matchings",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BruteForce:
    """All structures of a small problem.

    structures : one hashable object each, as `argmax` and `sample` of the structure under test give them
    parts : float64[count, *scores.shape], which parts each structure has
    log_scores : float64[count]
    """

    structures: Sequence[tuple[int, ...]]
    parts: Array
    log_scores: Array

    @property
    def log_partition(self) -> float:
        top = self.log_scores.max(initial=-np.inf)
        return float(top if top == -np.inf else top + np.log(np.exp(self.log_scores - top).sum()))

    @property
    def probabilities(self) -> Array:
        """float64[count]; all zero when everything is forbidden."""
        total = self.log_partition
        return np.exp(self.log_scores - total) if total > -np.inf else np.zeros(len(self.log_scores))

    @property
    def marginals(self) -> Array:
        return np.tensordot(self.probabilities, self.parts, 1)

    @property
    def entropy(self) -> float:
        p = self.probabilities[self.probabilities > 0]
        return float(-(p * np.log(p)).sum())

    @property
    def best(self) -> float:
        return float(self.log_scores.max(initial=-np.inf))

    def divergence(self, other: BruteForce) -> float:
        """KL of this from `other`, over the same structures."""
        q, p = self.probabilities, other.probabilities
        used = q > 0
        return float((q[used] * np.log(q[used] / p[used])).sum())


def brute_force(
    structures: Callable[[Array], Sequence[tuple[int, ...]]],
    parts: Callable[[Array, tuple[int, ...]], Array],
    scores: ArrayLike,
) -> BruteForce:
    """List, score and keep; the score of a structure is the sum of the scores of its parts."""
    array = np.asarray(scores, np.float64)
    listed = list(structures(array))
    indicators = np.array([parts(array, y) for y in listed]).reshape(len(listed), *array.shape)
    log_scores = np.array([array[indicator > 0].sum() for indicator in indicators])
    return BruteForce(listed, indicators, log_scores)


def chains(scores: Array) -> list[tuple[int, ...]]:
    """All sequences of k states over n positions."""
    n, _, k = scores.shape
    return list(itertools.product(range(k), repeat=n))


def chain_parts(scores: Array, y: tuple[int, ...]) -> Array:
    """Indicator of the steps (t, y[t-1], y[t]); position 0 comes from row 0."""
    out = np.zeros(scores.shape)
    for t, state in enumerate(y):
        out[t, y[t - 1] if t else 0, state] = 1.0
    return out


def brute_force_chain(scores: ArrayLike) -> BruteForce:
    """Every sequence of a chain.

    >>> round(float(np.exp(brute_force_chain(np.zeros((3, 2, 2))).log_partition)), 9)
    8.0
    """
    return brute_force(chains, chain_parts, scores)


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


def matchings(n_source: int, n_target: int) -> list[frozenset[tuple[int, int]]]:
    """All sets of links (source, target) in which no word has more than one.

    >>> len(matchings(2, 3)), len(matchings(3, 3))
    (13, 34)
    """
    found = []
    for size in range(min(n_source, n_target) + 1):
        for chosen in itertools.combinations(range(n_source), size):
            for partners in itertools.permutations(range(n_target), size):
                found.append(frozenset(zip(chosen, partners, strict=True)))
    return found


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
