"""`Chain`: sequences of states, scored by neighbours; `Chains`: many of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.ragged import Ragged
from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, checked_scores
from isogloss.structures.semiring import DRAW, LOG, MAX, Semiring

__all__ = ["Chain", "Chains"]


class Chain:
    r"""A distribution over sequences :math:`y_0 \dots y_{n-1}` of `k` states.

    .. math:: p(y) = \frac{1}{Z} \exp \sum_t scores[t, y_{t-1}, y_t]

    Parameters
    ----------
    scores : float64[n, k, k]
        Log score of the step from state *i* at t − 1 to state *j* at t; −∞ forbids. At t = 0 there is nothing to come
        from: only the row ``scores[0, 0, :]`` is read, and the marginals of the other rows are 0. The array is copied.

    Notes
    -----
    Everything is exact, in O(n k²). `marginals` and `log_partition` are computed together, once. A chain of no
    positions has one sequence, the empty one, and log partition 0. Where every sequence is forbidden,
    `InfeasibleError` is raised.

    Examples
    --------
    >>> dist = Chain(np.log([[[0.5, 0.5], [1, 1]], [[0.9, 0.1], [0.2, 0.8]]]))
    >>> dist.argmax().tolist(), round(dist.log_partition(), 12) + 0.0, round(float(dist.marginals()[1, 0, 1]), 3)
    ([0, 0], 0.0, 0.05)
    """

    def __init__(self, scores: ArrayLike) -> None:
        self.scores = checked_scores(scores, "Chain: scores", (None, None, None))
        if self.scores.shape[1] != self.scores.shape[2]:
            raise ParameterError(f"Chain: scores should be [n, k, k], not {list(self.scores.shape)}")
        self._solved: tuple[float, Array] | None = None

    @property
    def n(self) -> int:
        """Number of positions."""
        return int(self.scores.shape[0])

    @property
    def k(self) -> int:
        """Number of states."""
        return int(self.scores.shape[1])

    def __repr__(self) -> str:
        return f"Chain(n={self.n}, k={self.k})"

    def _sweep(self, semiring: Semiring, u: Array) -> tuple[float, Array]:
        from isogloss.structures._numba.chain import chain

        grad = np.zeros_like(self.scores)
        value = float(chain(semiring, self.scores, grad, u))
        if value == -np.inf:
            _raise_infeasible(self.scores, "Chain")
        return value, grad

    def _log(self) -> tuple[float, Array]:
        if self._solved is None:
            value, grad = self._sweep(LOG, np.empty(0))
            grad.flags.writeable = False
            self._solved = value, grad
        return self._solved

    def log_partition(self) -> float:
        """log Z, the log of the sum over all sequences."""
        return self._log()[0]

    def marginals(self) -> Array:
        """float64[n, k, k]: posterior of each step, the derivative of log Z; read-only, kept after the first call."""
        return self._log()[1]

    def node_marginals(self) -> Array:
        """float64[n, k]: posterior of each state at each position."""
        return np.asarray(self.marginals().sum(axis=1))

    def argmax(self) -> NDArray[np.int64]:
        """int64[n]: the best sequence; among equals, the one with the lowest states counted from the end."""
        return _read(self._sweep(MAX, np.empty(0))[1])

    def sample(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """int64[n]: one sequence drawn from the distribution."""
        return _read(self._sweep(DRAW, rng.random(self.n))[1])

    def score(self, y: ArrayLike) -> float:
        """Log score of a sequence, not normalised."""
        steps = self._steps(y)
        return float(self.scores[steps].sum())

    def log_prob(self, y: ArrayLike) -> float:
        """log p(y); −∞ for a forbidden sequence."""
        return self.score(y) - self.log_partition()

    def entropy(self) -> float:
        """−Σ p log p in nats, as log Z − Σ marginals · scores over the allowed steps."""
        value, marginals = self._log()
        used = marginals > 0
        return max(0.0, value - float(marginals[used] @ self.scores[used]))

    def parts(self, y: ArrayLike) -> Array:
        """float64[n, k, k]: 1 for each step that the sequence takes, 0 elsewhere."""
        out = np.zeros_like(self.scores)
        out[self._steps(y)] = 1.0
        return out

    def from_parts(self, parts: ArrayLike) -> NDArray[np.int64]:
        """int64[n]: the sequence that takes these steps; the inverse of `parts`."""
        parts = np.asarray(parts, np.float64)
        if parts.shape != self.scores.shape:
            raise ParameterError(f"{self!r}: parts should be {list(self.scores.shape)}, not {list(parts.shape)}")
        y = _read(parts)
        if not np.array_equal(self.parts(y), parts):
            raise ParameterError(f"{self!r}: these parts are not one sequence; marginals? take argmax() or sample()")
        return y

    def with_scores(self, scores: ArrayLike) -> Chain:
        """The same positions and states under other scores."""
        other = Chain(scores)
        if other.scores.shape != self.scores.shape:
            raise ParameterError(
                f"{self!r}: new scores should be {list(self.scores.shape)}, not {list(other.scores.shape)}"
            )
        return other

    def clamp(self, y: ArrayLike) -> Chain:
        """The chain in which `y` is the only sequence allowed, with the score it has here."""
        return Chain(np.where(self.parts(y) > 0, self.scores, -np.inf))

    def _steps(self, y: ArrayLike) -> tuple[NDArray[np.int64], ...]:
        states = np.asarray(y, np.int64)
        if states.shape != (self.n,) or (self.n and not 0 <= states.min() <= states.max() < self.k):
            raise ParameterError(f"{self!r}: a sequence is {self.n} states from 0 to {self.k - 1}, not {y!r}")
        before = np.concatenate([np.zeros(min(self.n, 1), np.int64), states[:-1]])
        return np.arange(self.n), before, states


class Chains:
    """Many chains of any lengths and numbers of states, worked on together: the batch view of `Chain`.

    Sentences, not cells, go to threads, and every number equals, to the bit, what `Chain` gives for the sentence alone.
    Numba's threads are meant to be started from one Python thread at a time.

    Parameters
    ----------
    scores : Ragged
        Row *s* is the scores of sentence *s*, float64[lengths[s], states[s], states[s]], flattened.
    lengths, states : int64[n_sentences]
        Positions and states of each sentence.

    Examples
    --------
    >>> many = Chains.of([np.zeros((2, 3, 3)), np.zeros((0, 1, 1)), np.zeros((3, 2, 2))])
    >>> np.exp(many.log_partition()).round(6).tolist(), [len(y) for y in many.argmax()]
    ([9.0, 1.0, 8.0], [2, 0, 3])
    """

    def __init__(self, scores: Ragged, lengths: ArrayLike, states: ArrayLike) -> None:
        self.lengths = np.ascontiguousarray(lengths, np.int64)
        self.states = np.ascontiguousarray(states, np.int64)
        if not np.array_equal(self.lengths * self.states**2, scores.lengths):
            raise ParameterError("Chains: row s of scores should hold lengths[s] * states[s]² numbers, for every s")
        values = checked_scores(scores.values[scores.offsets[0] : scores.offsets[-1]], "Chains: scores", (None,))
        self.scores = Ragged(values, scores.offsets - scores.offsets[0])
        self._starts = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        self._solved: tuple[Array, Ragged] | None = None

    @classmethod
    def of(cls, scores: Iterable[ArrayLike]) -> Chains:
        """From one float64[n, k, k] for each sentence."""
        blocks: list[Any] = [np.asarray(block, np.float64) for block in scores]
        for s, block in enumerate(blocks):
            if block.ndim != 3 or block.shape[1] != block.shape[2]:
                raise ParameterError(f"Chains: scores of sentence {s} should be [n, k, k], not {list(block.shape)}")
        shapes = np.array([block.shape[:2] for block in blocks], np.int64).reshape(len(blocks), 2)
        return cls(Ragged.of([block.ravel() for block in blocks], np.float64), shapes[:, 0], shapes[:, 1])

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, sentence: int) -> Chain:
        shape = (int(self.lengths[sentence]), int(self.states[sentence]), int(self.states[sentence]))
        return Chain(self.scores[sentence].reshape(shape))

    def _sweep(self, semiring: Semiring, u: Array) -> tuple[Array, Ragged]:
        from isogloss.structures._numba.chain import chains

        grad, values = np.zeros_like(self.scores.values), np.empty(len(self))
        shape = (self.scores.offsets, self.lengths, self.states)
        chains(semiring, self.scores.values, *shape, grad, u, self._starts, values)
        forbidden = np.flatnonzero(values == -np.inf)
        if len(forbidden):
            first = int(forbidden[0])
            place = f"Chains: sentence {first}" + (f" (one of {len(forbidden)})" if len(forbidden) > 1 else "")
            _raise_infeasible(self[first].scores, place)
        return values, Ragged(grad, self.scores.offsets)

    def _log(self) -> tuple[Array, Ragged]:
        if self._solved is None:
            self._solved = self._sweep(LOG, np.empty(0))
            for array in (self._solved[0], self._solved[1].values):
                array.flags.writeable = False
        return self._solved

    def _sequences(self, parts: Ragged) -> Ragged:
        from isogloss.structures._numba.chain import sequences

        states = np.empty(int(self.lengths.sum()), np.int64)
        sequences(parts.values, parts.offsets, self.lengths, self.states, self._starts, states)
        return Ragged(states, self._starts)

    def log_partition(self) -> Array:
        """float64[n_sentences]: log Z of each."""
        return self._log()[0]

    def marginals(self) -> Ragged:
        """Posteriors of steps, laid out as `scores`."""
        return self._log()[1]

    def argmax(self) -> Ragged:
        """The best sequence of each sentence."""
        return self._sequences(self._sweep(MAX, np.empty(0))[1])

    def sample(self, rng: np.random.Generator) -> Ragged:
        """One sequence for each sentence; the same numbers are drawn as by one `Chain.sample` after the other."""
        return self._sequences(self._sweep(DRAW, rng.random(int(self.lengths.sum())))[1])


def _read(parts: Array) -> NDArray[np.int64]:
    """The state that each position moves to, from indicators of steps."""
    if parts.shape[0] == 0:
        return np.zeros(0, np.int64)
    return np.asarray(parts.sum(axis=1).argmax(axis=1), np.int64)


def _raise_infeasible(scores: Array, place: str) -> NoReturn:
    """Say where the last allowed path breaks off."""
    reached, broken = np.zeros(0, np.bool_), 0
    for t, block in enumerate(scores):
        allowed = block > -np.inf
        reached = (allowed[:1] if t == 0 else allowed[reached]).any(axis=0)
        if not reached.any():
            broken = t
            break
    raise InfeasibleError(
        f"{place}: no sequence is allowed; nothing reaches position {broken} of {scores.shape[0]} "
        f"with {scores.shape[1]} states. Give at least one path a finite score"
    )
