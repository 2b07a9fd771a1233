"""`Choice`: one of some candidates; `Choices`: many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import run_sums
from isogloss.errors import ParameterError
from isogloss.structures.base import Array, Distribution, InfeasibleError, checked_scores, kept
from isogloss.structures.batch import Batch, Stack

__all__ = ["Choice", "Choices"]


class Choice(Distribution[int]):
    r"""A distribution over candidates, of which one is chosen: each is a part of its own.

    .. math:: p(y) = \frac{e^{s_y}}{\sum_k e^{s_k}}

    An n-best list is one, where what the search has left out does not count.

    Parameters
    ----------
    scores : float64[n]
        −∞ forbids a candidate. Without candidates nothing is allowed.

    Examples
    --------
    >>> dist = Choice(np.log([3.0, 1.0, 0.5, 0.5]))
    >>> dist.argmax(), dist.marginals().round(3).tolist(), round(dist.log_prob(1), 3)
    (0, [0.6, 0.2, 0.1, 0.1], -1.609)
    """

    def __init__(self, scores: ArrayLike) -> None:
        self.scores = checked_scores(scores, "Choice: scores", (None,))

    def __repr__(self) -> str:
        return f"Choice({len(self.scores)})"

    @classmethod
    def batch(cls, scores: Iterable[ArrayLike]) -> Choices:
        """Many at once, from one array of scores for each."""
        return Choices(Stack.of(scores, "Choices", 1))

    def _one(self) -> Choices:
        return Choices(Stack.one(self.scores))

    def _solve(self) -> tuple[float, Array]:
        batch = self._one()
        values, marginals = batch._solve()
        if values[0] == -np.inf:
            self._refuse()
        return float(values[0]), marginals[0]

    def _refuse(self) -> None:
        raise InfeasibleError(f"{self!r}: there is no candidate that is allowed")

    def argmax(self) -> int:
        """The best candidate, the first of equals."""
        if not len(self.scores) or self.scores.max() == -np.inf:
            self._refuse()
        return int(self.scores.argmax())

    def sample(self, rng: np.random.Generator) -> int:
        """One candidate drawn from the distribution."""
        return _drawn(self.marginals(), float(rng.random()))

    def parts(self, y: Any) -> Array:
        """1 for the candidate."""
        if not 0 <= int(y) < len(self.scores):
            raise ParameterError(f"{self!r}: there is no candidate {y!r}")
        out = np.zeros(len(self.scores))
        out[int(y)] = 1.0
        return out

    def k_best(self, k: int) -> list[tuple[float, int]]:
        """The `k` best candidates with their scores."""
        order = np.argsort(-self.scores, kind="stable")[:k].tolist()
        return [(float(self.scores[y]), y) for y in order if self.scores[y] > -np.inf]

    def hessian_vector(self, vector: ArrayLike) -> Array:
        """∇² log Z · vector: p · (vector − its mean)."""
        values = np.asarray(vector, np.float64)
        p = self.marginals()
        return p * (values - float(p @ values))

    def _read(self, parts: Array) -> int:
        return int(np.argmax(parts)) if parts.size else 0

    def _remake(self, scores: Array) -> Self:
        return type(self)(scores)


class Choices(Batch[int]):
    """Many choices, each among its own candidates.

    Parameters
    ----------
    scores : Stack
        A vector of scores for each choice.

    Examples
    --------
    >>> many = Choice.batch([np.zeros(2), np.zeros(5)])
    >>> np.exp(many.log_partition()).round(6).tolist(), many.argmax()
    ([2.0, 5.0], [0, 0])
    """

    def __init__(self, scores: Stack) -> None:
        self.scores = scores.checked("Choices")

    def __getitem__(self, s: int) -> Choice:
        return Choice(self.scores[s])

    def _spread(self, each: Array) -> Array:
        """A number of each choice, for each of its candidates."""
        return np.repeat(each, np.diff(self.scores.offsets))

    def _tops(self) -> Array:
        """The best score of each choice, −∞ where there is none."""
        values, offsets = self.scores.values, self.scores.offsets
        tops = np.full(len(self), -np.inf)
        filled = np.diff(offsets) > 0
        if filled.any():
            tops[filled] = np.maximum.reduceat(values, offsets[:-1][filled])
        return tops

    def _solve(self) -> tuple[Array, Stack]:
        tops = self._tops()
        base = np.where(tops == -np.inf, 0.0, tops)
        each = np.exp(self.scores.values - self._spread(base))
        sums = run_sums(each, self.scores.offsets)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = base + np.log(sums)
            marginals = each / self._spread(sums)
        return values, self.scores.like(np.nan_to_num(marginals))

    def argmax(self) -> list[int]:
        """The best candidate of each, the first of equals."""
        self._refuse_infeasible(self._tops())
        is_best = self.scores.values == self._spread(self._tops())
        places = np.flatnonzero(is_best)
        first = np.searchsorted(places, self.scores.offsets[:-1])
        return list((places[first] - self.scores.offsets[:-1]).tolist())

    def sample(self, rng: np.random.Generator) -> list[int]:
        """One candidate for each."""
        marginals = self.marginals()
        return [_drawn(p, u) for p, u in zip(marginals, rng.random(len(self)).tolist(), strict=True)]

    def parts(self, structures: Sequence[Any]) -> Stack:
        """1 for the candidates."""
        chosen = np.asarray(self._one_each(structures), np.int64)
        if ((chosen < 0) | (chosen >= np.diff(self.scores.offsets))).any():
            raise ParameterError(f"{self!r}: {structures!r} are not candidates")
        out = np.zeros(len(self.scores.values))
        out[self.scores.offsets[:-1] + chosen] = 1.0
        return self.scores.like(out)

    def hessian_vector(self, vectors: Stack) -> Stack:
        """∇² log Z · vector of each."""
        p = self.marginals().values
        means = run_sums(p * vectors.values, self.scores.offsets)
        return self.scores.like(kept(p * (vectors.values - self._spread(means))))

    def _remake(self, scores: Stack) -> Self:
        return type(self)(scores)

    def _take(self, items: NDArray[np.int64]) -> Choices:
        return Choices(self.scores.take(items))


def _drawn(p: Array, u: float) -> int:
    """The candidate that a uniform number falls on; never one of probability 0."""
    ends = np.cumsum(p)
    place = int(np.searchsorted(ends, u * ends[-1], side="right"))
    return min(place, int(np.flatnonzero(p)[-1]))
