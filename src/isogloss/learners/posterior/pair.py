"""Two directions seen as one structure, and the two constraints of word alignment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Generic, TypeVar, Unpack

import numpy as np

from isogloss.errors import ParameterError
from isogloss.learners.posterior.features import Features
from isogloss.learners.posterior.project import Projection, Search, project
from isogloss.learners.posterior.together import Array
from isogloss.structures import AlignmentChain, Structure

__all__ = ["Pair", "bijective", "project_pair"]

F = TypeVar("F", bound=Structure)
B = TypeVar("B", bound=Structure)


class Pair(Generic[F, B]):
    r"""Two structures seen as one: the scores of `forward`, then those of `backward`, end to end.

    With ``balanced=True`` (variant N) each keeps half of the mass whatever the scores, as if a feature that tells the
    two apart were held at its expectation:
    :math:`\log Z = \tfrac12 \log Z_f + \tfrac12 \log Z_b`, with marginals :math:`\tfrac12 q_f, \tfrac12 q_b`.
    With ``balanced=False`` (variant J) it is the mixture of the two posteriors, whose weights
    :math:`\pi, 1 - \pi` move when they are re-scored: :math:`\log Z = \log(\tfrac12 R_f + \tfrac12 R_b)` up to a
    constant, where R is the partition function relative to that of the pair first made.
    """

    def __init__(
        self, forward: F, backward: B, *, balanced: bool = True, base: tuple[float, float] | None = None
    ) -> None:
        self.forward, self.backward, self.balanced = forward, backward, balanced
        self.base = base or (forward.log_partition(), backward.log_partition())

    @property
    def scores(self) -> Array:
        return np.concatenate([self.forward.scores.ravel(), self.backward.scores.ravel()])

    @property
    def share(self) -> float:
        """π, the share of the mixture that falls to `forward`; ½ when balanced."""
        if self.balanced:
            return 0.5
        forward, backward = self._log_ratios()
        return float(np.exp(forward - np.logaddexp(forward, backward)))

    def _log_ratios(self) -> tuple[float, float]:
        return self.forward.log_partition() - self.base[0], self.backward.log_partition() - self.base[1]

    def log_partition(self) -> float:
        forward, backward = self._log_ratios()
        middle = 0.5 * (forward + backward) if self.balanced else float(np.logaddexp(forward, backward) - np.log(2.0))
        return 0.5 * (self.base[0] + self.base[1]) + middle

    def marginals(self) -> Array:
        share = self.share
        return np.concatenate(
            [share * self.forward.marginals().ravel(), (1 - share) * self.backward.marginals().ravel()]
        )

    def split(self, scores: Array) -> tuple[Array, Array]:
        """An array like `scores`, as one for each of the two."""
        size = self.forward.scores.size
        return scores[:size].reshape(self.forward.scores.shape), scores[size:].reshape(self.backward.scores.shape)

    def with_scores(self, scores: Array) -> Pair[F, B]:
        forward, backward = self.split(np.asarray(scores, np.float64))
        pair = self.forward.with_scores(forward), self.backward.with_scores(backward)
        return Pair(*pair, balanced=self.balanced, base=self.base)

    def argmax(self) -> tuple[Any, Any]:
        """The best of each."""
        return self.forward.argmax(), self.backward.argmax()

    def sample(self, rng: np.random.Generator) -> tuple[Any, Any]:
        """A draw from each."""
        return self.forward.sample(rng), self.backward.sample(rng)

    def parts(self, y: tuple[Any, Any]) -> Array:
        """The parts of both."""
        return np.concatenate([self.forward.parts(y[0]).ravel(), self.backward.parts(y[1]).ravel()])


def project_pair(
    forward: F,
    backward: B,
    *,
    slack: float = 0.001,
    balanced: bool = True,
    **search: Unpack[Search],
) -> Projection[Pair[F, B]]:
    r"""Symmetry: make the two directions give every link the same posterior.

    .. math:: \min_\lambda\; \tfrac12\log R_f(\lambda) + \tfrac12\log R_b(\lambda) + \epsilon\|\lambda\|_2,
        \qquad \nabla = -\tfrac12 (q_f - q_b) + \epsilon\lambda/\|\lambda\|_2

    The forward score of link (i, j) is lowered by λ_ij and the backward score raised by it; null is untouched.

    Parameters
    ----------
    forward : structure over [n_target, n_source]
        Target words generated from source words, such as an `AlignmentChain`.
    backward : structure over [n_source, n_target]
        The other way.
    slack : float
        ε: afterwards :math:`\|q_f - q_b\|_2 \le 2\epsilon`, up to twice the tolerance. Where a link is impossible in
        one direction only, ε > 0 keeps λ finite.
    balanced : bool
        True: each direction stays normalised (dual above), so that posteriors become equal and every column sums to at
        most 1. False: the literal mixture of equation 15, in which :math:`\pi q_f = (1-\pi) q_b`; for study.
    **search
        `tolerance`, `steps`, `optimiser`, `rate` and `start` as in `project`. ``optimiser="fixed", rate=2, slack=0``
        takes the steps of Ganchev et al. 2008, algorithm 1, whose λ has the other sign.

    Returns
    -------
    Projection
        `q` is a `Pair` with `q.forward` and `q.backward`; `multipliers` is float64[n_source, n_target].

    Raises
    ------
    InfeasibleError
        For instance when neither direction has null and the lengths differ.
    """
    n_target, n_source = forward.scores.shape
    if backward.scores.shape != (n_source, n_target):
        raise ParameterError(
            f"project_pair: forward is [target, source] = {[n_target, n_source]}, so backward should be "
            f"{[n_source, n_target]}, not {list(backward.scores.shape)}. Is one of them the wrong way round?"
        )
    pair = Pair(forward, backward, balanced=balanced)

    def expectations(marginals: Array) -> Array:
        there, back = pair.split(marginals)
        return (there.T - back).ravel()

    def scores_from(multipliers: Array) -> Array:
        links = multipliers.reshape(n_source, n_target)
        return np.concatenate([links.T.ravel(), -links.ravel()])

    features, bound = Features(expectations, scores_from), np.zeros(n_source * n_target)
    found = project(pair, features, bound, equality=True, slack=slack, **search)
    return replace(found, multipliers=found.multipliers.reshape(n_source, n_target))


def bijective(
    dist: AlignmentChain,
    *,
    most: float = 1.0,
    slack: float = 0.0,
    **search: Unpack[Search],
) -> Projection[AlignmentChain]:
    r"""Bijectivity: use every generating word at most once, in expectation.

    .. math:: \sum_t q(a_t = j) \le 1 \quad\text{for every generating word } j

    Parameters
    ----------
    dist : AlignmentChain
        One direction; or any other structure whose scores are [generated word, generating word].
    most : float
        The bound, 1 for bijectivity.
    **search
        `tolerance`, `steps`, `optimiser`, `rate` and `start` as in `project`.

    Returns
    -------
    Projection
        `multipliers` is float64[m], λ ≥ 0, and positive only where a word is used `most` times.

    Raises
    ------
    InfeasibleError
        When there are more words to generate than `most` · m allows and null cannot take the rest.
    """
    n, m = dist.scores.shape

    def expectations(marginals: Array) -> Array:
        return np.asarray(marginals.sum(axis=0))

    def scores_from(multipliers: Array) -> Array:
        return np.broadcast_to(multipliers, (n, m))

    return project(dist, Features(expectations, scores_from), np.full(m, float(most)), slack=slack, **search)
