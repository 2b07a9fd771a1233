r"""Learning to rank: the support vector machine over differences of rows of which one should be above the other.

Both learners lower

.. math:: P(w) = \tfrac12 \lambda_2 \|w\|^2 + \sum_k c_k \max\big(0,\; 1 - w \cdot (x^+_k - x^-_k)\big)

which is `isogloss.learners.frank_wolfe` for structures of two members, in kernels that take nanoseconds a feature.
`PairAscent` works on the dual, knows how long each step should be, and says how far from the optimum it is at most.
`Pegasos` steps along the hinge of one pair at a time, as the paper does.

References
----------
Joachims, Optimizing Search Engines using Clickthrough Data, KDD 2002 (ranking SVM). Hsieh et al., A Dual Coordinate
Descent Method for Large-scale Linear SVM, ICML 2008. Shalev-Shwartz, Singer, Srebro and Cotter, Pegasos, Mathematical
Programming 127, 2011. Gao, Blitzer, Zhou and Wong, Exploiting Bilingual Information to Improve Web Search, ACL 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError

__all__ = ["AscentInfo", "AscentState", "PairAscent", "Pairs", "Pegasos", "PegasosInfo", "PegasosState"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows of features, and which of them should be above which.

    Parameters
    ----------
    rows : float64[n_rows, n_features]
    above, below : int64[n_pairs]
        Numbers of rows: in pair k, row above[k] should have the higher score.
    shares : float64[n_pairs], optional
        What each pair counts; 1 unless given.

    Examples
    --------
    >>> pairs = Pairs(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]), [0, 1], [1, 2])
    >>> pairs.differences().tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """

    rows: Array
    above: Indices
    below: Indices
    shares: Array = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        rows = np.ascontiguousarray(self.rows, np.float64)
        above, below = (np.asarray(each, np.int64).ravel() for each in (self.above, self.below))
        shares = np.ones(len(above)) if self.shares is None else np.asarray(self.shares, np.float64).ravel()
        if rows.ndim != 2 or not np.isfinite(rows).all():
            raise ParameterError(f"Pairs: rows should be finite numbers[n_rows, n_features], not {rows.shape}")
        if not len(above) == len(below) == len(shares) or not (shares >= 0).all() or not np.isfinite(shares).all():
            raise ParameterError("Pairs: above, below and shares should be of one length, and shares 0 or more")
        numbers = np.concatenate([above, below])
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= len(rows)):
            raise ParameterError(f"Pairs: above and below should be numbers of {len(rows)} rows")
        for name, array in (("rows", rows), ("above", above), ("below", below), ("shares", shares)):
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.above)

    @property
    def n_features(self) -> int:
        return int(self.rows.shape[1])

    @cached_property
    def sparse(self) -> tuple[Indices, NDArray[np.int32], Array]:
        """Where rows begin, and the numbers and values of features that are not 0: what kernels walk."""
        row, feature = np.nonzero(self.rows)
        starts = np.zeros(len(self.rows) + 1, np.int64)
        np.cumsum(np.bincount(row, minlength=len(self.rows)), out=starts[1:])
        return starts, feature.astype(np.int32), self.rows[row, feature]

    def differences(self) -> Array:
        """float64[n_pairs, n_features]: x⁺ − x⁻ of each pair, for other programs and for tests."""
        return np.asarray(self.rows[self.above] - self.rows[self.below])

    def squares(self) -> Array:
        """float64[n_pairs]: the squared length of each difference; some at a time, as all may not fit into memory."""
        found, size = np.empty(len(self)), max(1, (1 << 22) // max(1, self.n_features))
        for start in range(0, len(self), size):
            some = slice(start, start + size)
            found[some] = ((self.rows[self.above[some]] - self.rows[self.below[some]]) ** 2).sum(axis=1)
        return found


class _OverPairs:
    """What both learners are made with."""

    def __init__(self, pairs: Pairs, *, l2: float, seed: int) -> None:
        if not 0 < l2 < np.inf:
            raise ParameterError(f"{type(self).__name__}: l2 should be a positive number, not {l2!r}")
        self.pairs, self.l2, self.seed = pairs, float(l2), seed

    def primal(self, weights: ArrayLike) -> float:
        """P(w): half the squared norm times l2, and the hinges of all pairs."""
        return self._primal(weights)[0]

    def _primal(self, weights: ArrayLike) -> tuple[float, int]:
        from isogloss.learners._numba.pairs import hinges

        w, all_of = np.asarray(weights, np.float64), self.pairs
        total, wrong = hinges(*all_of.sparse, all_of.above, all_of.below, all_of.shares, w)
        return 0.5 * self.l2 * float(w @ w) + total, wrong

    def _rng(self, iteration: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, iteration])


class AscentState(NamedTuple):
    """What the next pass needs."""

    weights: Array
    iteration: int
    alphas: Array
    """float64[n_pairs]: what each pair has in the weights, from 0 to its share: w = Σ α (x⁺ − x⁻) / l2."""


class AscentInfo(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """The dual, which never falls: P(w) of the best weights is at least that."""
    primal: float
    gap: float
    """primal − objective: the weights are at most that far from the optimum."""
    wrong: int
    """Pairs that the weights put in the wrong order, or nowhere."""

    @property
    def distance(self) -> float:
        """The gap as a share of the primal: when to stop."""
        return self.gap / max(self.primal, 1e-300)


class PairAscent(_OverPairs):
    r"""Coordinate ascent on the dual: a pair at a time, to where the dual is highest while all others stay.

    .. math:: \alpha_k \leftarrow clip\Big(\alpha_k + \lambda_2 \frac{1 - w \cdot d_k}{\|d_k\|^2},\; 0,\; c_k\Big),
        \qquad w = \tfrac{1}{\lambda_2} \sum_k \alpha_k d_k, \qquad d_k = x^+_k - x^-_k

    Parameters
    ----------
    pairs : Pairs
    l2 : float
        λ₂; 1 / C of the usual support vector machine. Hinges are summed, not averaged.
    seed : int
        Of the order of pairs, anew for each pass.
    passes : int
        Over all pairs in a step, before the gap is measured.

    References
    ----------
    Hsieh et al. 2008, algorithm 1, without shrinking.

    Examples
    --------
    >>> from isogloss.learners.runner import run
    >>> learner = PairAscent(Pairs(np.array([[2.0], [1.0], [0.0]]), [0, 1], [1, 2]), l2=1.0)
    >>> result = run(learner, learner.init(), iterations=20, should_stop=lambda _, info: info.distance < 1e-9)
    >>> result.state.weights.round(6).tolist(), round(float(result.trace[-1]), 6)
    ([1.0], 0.5)
    """

    def __init__(self, pairs: Pairs, *, l2: float = 1.0, seed: int = 0, passes: int = 10) -> None:
        super().__init__(pairs, l2=l2, seed=seed)
        if passes < 1:
            raise ParameterError(f"PairAscent: passes should be a positive integer, not {passes!r}")
        self.passes = passes
        self._squares = pairs.squares()

    def init(self) -> AscentState:
        """Before the first pass: no pair has a share in the weights, which are 0."""
        return AscentState(np.zeros(self.pairs.n_features), 0, np.zeros(len(self.pairs)))

    def dual(self, state: AscentState) -> float:
        """D(α) = Σ α − ½ l2 ‖w‖²."""
        return float(state.alphas.sum()) - 0.5 * self.l2 * float(state.weights @ state.weights)

    def step(self, state: AscentState) -> tuple[AscentState, AscentInfo]:
        """Some passes over all pairs, in orders that the seed and the iteration decide."""
        from isogloss.learners._numba.pairs import ascend

        weights, alphas, rng, every = state.weights.copy(), state.alphas.copy(), self._rng(state.iteration), self.pairs
        given = (*every.sparse, every.above, every.below, every.shares, self._squares, self.l2)
        for _ in range(self.passes):
            ascend(rng.permutation(len(every)), *given, alphas, weights)
        new = AscentState(weights, state.iteration + 1, alphas)
        dual, (primal, wrong) = self.dual(new), self._primal(weights)
        return new, AscentInfo(dual, primal, max(0.0, primal - dual), wrong)

    def dump(self, state: AscentState) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """For checkpoints."""
        return {"weights": state.weights, "alphas": state.alphas}, {"iteration": state.iteration}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> AscentState:
        """The inverse of `dump`."""
        return AscentState(**{**arrays, **meta})


class PegasosState(NamedTuple):
    """What the next pass needs."""

    weights: Array
    iteration: int
    mean: Array
    """Of the weights after each pair met, pair t counted t times."""
    met: int
    """Pairs met in all passes."""

    @property
    def average(self) -> Array:
        """The mean: what to predict with."""
        return self.mean if self.met else self.weights


class PegasosInfo(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """−P at the averaged weights after the pass."""
    updates: int
    """Pairs with a hinge above 0 when they were met."""
    wrong: int
    """Pairs that the averaged weights put in the wrong order, or nowhere."""


class Pegasos(_OverPairs):
    r"""Stochastic steps along the hinge of one pair at a time, drawn by its share.

    .. math:: w \leftarrow \big(1 - \tfrac1t\big) w + \tfrac{1}{\lambda t}\, [w \cdot d < 1]\, d, \qquad
        \lambda = \lambda_2 \big/ \textstyle\sum_k c_k

    then, if it is longer, w is cut to the radius 1 / √λ. The mean of all w, the t-th counted t times, is what to
    predict with: its error falls as 1 / t. A pass meets as many pairs as there are.

    Parameters
    ----------
    pairs, l2
        As for `PairAscent`; both have the same optimum.
    seed : int
        Of the draws.

    References
    ----------
    Shalev-Shwartz et al. 2011, figure 1; the averaging is of Lacoste-Julien, Schmidt and Bach, arXiv 1212.2002.
    """

    def __init__(self, pairs: Pairs, *, l2: float = 1.0, seed: int = 0) -> None:
        super().__init__(pairs, l2=l2, seed=seed)
        self._ends = np.cumsum(pairs.shares)

    def init(self, weights: ArrayLike | None = None) -> PegasosState:
        """The state before the first pass, at the given weights or at 0."""
        start = np.zeros(self.pairs.n_features) if weights is None else np.array(weights, np.float64)
        if start.shape != (self.pairs.n_features,):
            raise ParameterError(f"Pegasos.init: weights should be {self.pairs.n_features} numbers")
        return PegasosState(start, 0, np.zeros(len(start)), 0)

    def step(self, state: PegasosState) -> tuple[PegasosState, PegasosInfo]:
        """As many pairs as there are, drawn anew."""
        from isogloss.learners._numba.pairs import pegasos

        weights, mean, every = state.weights.copy(), state.mean.copy(), self.pairs
        whole = float(self._ends[-1]) if len(every) else 0.0
        updates, met = 0, state.met
        if whole > 0:
            rate = self.l2 / whole
            at = self._rng(state.iteration).random(len(every)) * whole
            drawn = np.minimum(np.searchsorted(self._ends, at, side="right"), len(every) - 1)
            given = (*every.sparse, every.above, every.below, rate, rate**-0.5, met)
            _, updates = pegasos(drawn, *given, weights, mean)
            met += len(every)
        new = PegasosState(weights, state.iteration + 1, mean, met)
        primal, wrong = self._primal(new.average)
        return new, PegasosInfo(-primal, updates, wrong)

    def dump(self, state: PegasosState) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """For checkpoints."""
        return {"weights": state.weights, "mean": state.mean}, {"iteration": state.iteration, "met": state.met}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> PegasosState:
        """The inverse of `dump`."""
        return PegasosState(**{**arrays, **meta})
