"""`AlignmentChain`: the alignment HMM of one sentence pair in one direction, as a chain with null states."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, Distribution, checked_scores
from isogloss.structures.chain import Chain

__all__ = ["AlignmentChain"]


class AlignmentChain(Distribution[NDArray[np.int64]]):
    r"""Which word of the generating sentence (m words) each word of the generated sentence (n words) comes from.

    .. math:: p(a, words) = final[pos(a_{n-1})] \prod_t p(a_t \mid pos(a_{t-1}))\, emission[t, a_t]

    A word that comes from none (null) keeps the position of the last real link and emits by `null_emission`. As a chain
    this takes 2m + 1 states: 0 … m − 1 real; m … 2m − 1 null, carrying a position; 2m null before any real link. Null
    can be entered only in place, with weight :math:`p_0`; a real move has weight :math:`1 - p_0` times the jump from
    the position carried, or times the initial distribution when there is none yet.

    Parameters
    ----------
    emission : float64[n, m]
        Log score of generated word t under generating word j. These are the `scores` that `with_scores` replaces.
    null_emission : float64[n]
        Log score of generated word t under null.
    initial : float64[m]
        Log probability that the first real link goes to j.
    jump : float64[m, m]
        Log probability of moving from position i to position j, each row normalised, without the factor 1 − p₀.
    null_weight : float
        p₀, the probability of null at every word.
    final : float64[m + 1], optional
        Log score out of the position carried at the end; the last entry is for a sentence without any real link.

    Notes
    -----
    Built as a general `Chain` over 2m + 1 states in O(n m²) time and memory: this is the reference that the fast
    kernels are held against, and the form that the generic learners take. `marginals` and `parts` are over links only,
    float64[n, m]; null is what is missing from a row. With no generated word the empty alignment has the score
    ``final[m]``; with no generating word every word is null.

    References
    ----------
    Graça, Ganchev and Taskar, Learning Tractable Word Alignment Models with Complex Constraints, Computational
    Linguistics 36(3), 2010, section 2.1 (null states). Liang, Taskar and Klein, Alignment by Agreement, HLT-NAACL 2006,
    equation 1 (initial and final transitions). We add the state for null before any real link, which both leave open.

    Examples
    --------
    >>> uniform = np.log(np.full((2, 2), 0.5))
    >>> dist = AlignmentChain(np.log([[0.9, 0.1], [0.1, 0.8]]), np.log([0.1, 0.1]), uniform[0], uniform, 0.2)
    >>> dist.argmax().tolist(), dist.posterior().round(3).tolist(), dist.null_posterior().round(3).tolist()
    ([0, 1], [[0.857, 0.095], [0.105, 0.842]], [0.048, 0.053])
    """

    def __init__(
        self,
        emission: ArrayLike,
        null_emission: ArrayLike,
        initial: ArrayLike,
        jump: ArrayLike,
        null_weight: float,
        final: ArrayLike | None = None,
    ) -> None:
        self.scores = checked_scores(emission, "AlignmentChain: emission", (None, None))
        n, m = self.scores.shape
        self.null_emission = checked_scores(null_emission, "AlignmentChain: null_emission", (n,))
        self.initial = checked_scores(initial, "AlignmentChain: initial", (m,))
        self.jump = checked_scores(jump, "AlignmentChain: jump", (m, m))
        self.final = checked_scores(np.zeros(m + 1) if final is None else final, "AlignmentChain: final", (m + 1,))
        if not 0 <= null_weight <= 1:
            raise ParameterError(f"AlignmentChain: null_weight should be a probability, not {null_weight!r}")
        self.null_weight = float(null_weight)

    @property
    def n(self) -> int:
        """Words generated."""
        return int(self.scores.shape[0])

    @property
    def m(self) -> int:
        """Words to generate from."""
        return int(self.scores.shape[1])

    def __repr__(self) -> str:
        return f"AlignmentChain(n={self.n}, m={self.m})"

    @cached_property
    def chain(self) -> Chain:
        """The same distribution over the 2m + 1 states."""
        n, m = self.n, self.m
        with np.errstate(divide="ignore"):
            null, real = np.log(self.null_weight), np.log1p(-self.null_weight)
        scores = np.full((n, 2 * m + 1, 2 * m + 1), -np.inf)
        carried = np.arange(m)
        into_real = real + self.scores[:, None, :]
        scores[1:, :m, :m] = self.jump + into_real[1:]
        scores[1:, m : 2 * m, :m] = self.jump + into_real[1:]
        scores[1:, 2 * m, :m] = self.initial + into_real[1:, 0]
        into_null = null + self.null_emission
        scores[1:, carried, m + carried] = into_null[1:, None]
        scores[1:, m + carried, m + carried] = into_null[1:, None]
        scores[1:, 2 * m, 2 * m] = into_null[1:]
        if n:
            scores[0, 0, :m] = self.initial + into_real[0, 0]
            scores[0, 0, 2 * m] = into_null[0]
            scores[n - 1] += np.concatenate([self.final[:m], self.final])
        return Chain(scores)

    def _states(self, alignment: ArrayLike) -> NDArray[np.int64]:
        """The path of states that an alignment (−1 for null) takes."""
        links = np.asarray(alignment, np.int64)
        if links.shape != (self.n,) or (self.n and not -1 <= links.min() <= links.max() < self.m):
            raise ParameterError(
                f"{self!r}: an alignment is {self.n} positions from 0 to {self.m - 1}, -1 for null, not {alignment!r}"
            )
        latest = np.maximum.accumulate(np.where(links >= 0, np.arange(self.n), -1)) if self.n else links
        before = np.where(latest >= 0, links[latest], self.m)  # m + m is the null state before any real link
        return np.where(links >= 0, links, self.m + before)

    def _links(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(states < self.m, states, -1)

    def _solve(self) -> tuple[float, Array]:
        """Log probability of the generated sentence, and the posterior of each link, float64[n, m]."""
        value = self.chain.log_partition() + (0.0 if self.n else float(self.final[self.m]))
        return value, self.chain.node_marginals()[:, : self.m]

    def posterior(self) -> Array:
        """float64[n, m]: posterior of each link; the same as `marginals`."""
        return self.marginals()

    def null_posterior(self) -> Array:
        """float64[n]: posterior of null for each generated word."""
        return np.asarray(self.chain.node_marginals()[:, self.m :].sum(axis=1))

    def jump_counts(self) -> Array:
        """float64[m, m]: expected number of moves from position i to position j, nulls skipped."""
        edges = self.chain.marginals()[1:].sum(axis=0)
        return np.asarray(edges[: self.m, : self.m] + edges[self.m : 2 * self.m, : self.m])

    def initial_counts(self) -> Array:
        """float64[m]: probability that the first real link goes to j."""
        edges = self.chain.marginals()
        return np.asarray(edges[:1, 0, : self.m].sum(axis=0) + edges[1:, 2 * self.m, : self.m].sum(axis=0))

    def final_counts(self) -> Array:
        """float64[m + 1]: probability of each position carried at the end; the last entry is for no real link."""
        m = self.m
        if self.n == 0:
            return np.append(np.zeros(m), 1.0)
        last = self.chain.node_marginals()[-1]
        return np.append(last[:m] + last[m : 2 * m], last[2 * m])

    def argmax(self) -> NDArray[np.int64]:
        """int64[n]: the best alignment, −1 for null."""
        return self._links(self.chain.argmax())

    def sample(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """int64[n]: an alignment drawn from the posterior, −1 for null."""
        return self._links(self.chain.sample(rng))

    def score(self, alignment: ArrayLike) -> float:
        """Log probability of the generated sentence together with the alignment."""
        return self.chain.score(self._states(alignment)) + (0.0 if self.n else float(self.final[self.m]))

    def entropy(self) -> float:
        """Entropy of the posterior over alignments, in nats."""
        return self.chain.entropy()

    def parts(self, alignment: ArrayLike) -> Array:
        """float64[n, m]: 1 for each link; the row of a null word is zero."""
        states = self._states(alignment)
        out = np.zeros((self.n, self.m))
        linked = np.flatnonzero(states < self.m)
        out[linked, states[linked]] = 1.0
        return out

    def from_parts(self, parts: ArrayLike) -> NDArray[np.int64]:
        """int64[n]: the alignment with these links; the inverse of `parts`."""
        parts = np.asarray(parts, np.float64)
        if parts.shape != self.scores.shape or not np.isin(parts, (0, 1)).all() or (parts.sum(axis=1) > 1).any():
            raise ParameterError(f"{self!r}: parts should be [{self.n}, {self.m}], 0 or 1, with one 1 a row at most")
        return self._read(parts)

    def _read(self, parts: Array) -> NDArray[np.int64]:
        if self.m == 0:
            return np.full(self.n, -1, np.int64)
        return np.where(parts.any(axis=1), parts.argmax(axis=1), -1)

    def with_scores(self, emission: ArrayLike, null_emission: ArrayLike | None = None) -> AlignmentChain:
        """The same sentence pair under other emission scores; jumps and, unless given, null keep theirs."""
        new = checked_scores(emission, f"{self!r}: emission", self.scores.shape)
        return self._remake(new, null_emission)

    def _remake(self, scores: Array, null_emission: ArrayLike | None = None) -> AlignmentChain:
        null = self.null_emission if null_emission is None else null_emission
        return AlignmentChain(scores, null, self.initial, self.jump, self.null_weight, self.final)

    def clamp(self, alignment: ArrayLike) -> AlignmentChain:
        """The same sentence pair with one alignment allowed, which keeps the score it has here."""
        links = self.parts(alignment) > 0
        null = np.where(links.any(axis=1), -np.inf, self.null_emission)
        return self.with_scores(np.where(links, self.scores, -np.inf), null)
