"""`Subset`: any set of parts, each there or not by itself; `Subsets`: many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, Distribution, checked_scores, kept
from isogloss.structures.batch import Batch, Stack

__all__ = ["Subset", "Subsets"]

Places = frozenset[tuple[int, ...]]
Flags = NDArray[np.bool_]


class Subset(Distribution[Places]):
    r"""A distribution over the subsets of the cells of an array, in which cells know nothing of each other.

    .. math:: p(y) = \prod_{c} \frac{e^{s_c [c \in y]}}{1 + e^{s_c}}

    Links of a sentence pair are such sets where nothing forbids that a word has several. A subset is a frozenset of
    places, tuples of numbers.

    Parameters
    ----------
    scores : float64[...]
        Log odds of each cell; −∞ forbids it.
    required : bool[...], optional
        Cells that every set has. One that is forbidden as well leaves nothing.

    Examples
    --------
    >>> dist = Subset([[0.0, -np.inf], [2.0, -1.0]])
    >>> sorted(dist.argmax()), dist.marginals().round(3).tolist()
    ([(1, 0)], [[0.5, 0.0], [0.881, 0.269]])
    >>> round(float(np.exp(Subset(np.zeros(5)).log_partition())))
    32
    """

    def __init__(self, scores: ArrayLike, required: ArrayLike | None = None) -> None:
        self.scores = checked_scores(scores, "Subset: scores", np.shape(scores))
        self.required = _checked(required, self.scores.shape)
        if (self.scores[self.required] == -np.inf).any():
            raise ParameterError("Subset: a cell is both required and forbidden; allow it, or leave it out")

    def __repr__(self) -> str:
        return f"Subset({'×'.join(map(str, self.scores.shape))})"

    @classmethod
    def batch(cls, scores: Iterable[ArrayLike], required: Iterable[ArrayLike] | None = None) -> Subsets:
        """Many at once, from one array of scores for each."""
        stack = Stack.of(scores, "Subsets")
        if required is None:
            return Subsets(stack)
        flags = Stack.of((np.asarray(one, np.float64) for one in required), "Subsets: required")
        return Subsets(stack, flags.values > 0)

    def _solve(self) -> tuple[float, Array]:
        value, marginals = _sums(self.scores.ravel(), self.required.ravel())
        return float(value.sum()), marginals.reshape(self.scores.shape)

    def argmax(self) -> Places:
        """The cells with a score above 0, and those that are required."""
        return self._read(((self.scores > 0) | self.required).astype(np.float64))

    def sample(self, rng: np.random.Generator) -> Places:
        """One subset drawn from the distribution."""
        return self._read((rng.random(self.scores.shape) < self.marginals()).astype(np.float64))

    def parts(self, y: Iterable[Sequence[int]]) -> Array:
        """1 for each cell of the subset."""
        out = np.zeros(self.scores.shape)
        shape: tuple[int, ...] = out.shape
        for place in y:
            cell = tuple(map(int, place))
            if len(cell) != len(shape) or not all(0 <= i < n for i, n in zip(cell, shape, strict=True)):
                raise ParameterError(f"{self!r}: {place!r} is no cell")
            out[cell] = 1.0
        return out

    def score(self, y: Any) -> float:
        """Log score of a subset; −∞ without the cells that are required."""
        used = self.parts(y) > 0
        return -np.inf if (self.required & ~used).any() else float(self.scores[used].sum())

    def _read(self, parts: Array) -> Places:
        return frozenset(tuple(map(int, place)) for place in np.argwhere(parts > 0))

    def _remake(self, scores: Array) -> Self:
        return type(self)(scores, self.required)

    def clamp(self, y: Any) -> Self:
        """The distribution in which `y` alone is allowed, with the score it has here."""
        used = self.parts(y) > 0
        return type(self)(np.where(used, self.scores, -np.inf), used)


class Subsets(Batch[Places]):
    """Many subsets, each of an array of its own shape.

    Parameters
    ----------
    scores : Stack
    required : bool[n_cells], optional
        Cells that every set has, laid out as the scores are.

    Examples
    --------
    >>> many = Subset.batch([np.zeros((1, 2)), np.ones((0, 3))])
    >>> np.exp(many.log_partition()).round(6).tolist(), many.marginals().values.tolist()
    ([4.0, 1.0], [0.5, 0.5])
    """

    independent: ClassVar[bool] = True
    """Cells know nothing of each other, so that the probability of several of them is the product of theirs."""

    def __init__(self, scores: Stack, required: Flags | None = None) -> None:
        self.scores = scores.checked("Subsets")
        self.required = _checked(required, scores.values.shape)
        if (scores.values[self.required] == -np.inf).any():
            raise ParameterError("Subsets: a cell is both required and forbidden; allow it, or leave it out")

    def _own(self, s: int) -> Flags:
        return self.required[self.scores.offsets[s] : self.scores.offsets[s + 1]].reshape(self.scores[s].shape)

    def __getitem__(self, s: int) -> Subset:
        return Subset(self.scores[s], self._own(s % len(self)))

    def _solve(self) -> tuple[Array, Stack]:
        values, marginals = _sums(self.scores.values, self.required)
        pieces = (values[a:b].sum() for a, b in zip(self.scores.offsets[:-1], self.scores.offsets[1:], strict=True))
        return np.fromiter(pieces, np.float64, len(self)), self.scores.like(marginals)

    def argmax(self) -> list[Places]:
        """The best subset of each."""
        return [self[s].argmax() for s in range(len(self))]

    def sample(self, rng: np.random.Generator) -> list[Places]:
        """One subset for each."""
        return [self[s].sample(rng) for s in range(len(self))]

    def _remake(self, scores: Stack) -> Self:
        return type(self)(scores, self.required)

    def _take(self, items: NDArray[np.int64]) -> Subsets:
        flags = [self._own(s).ravel() for s in items.tolist()]
        return Subsets(self.scores.take(items), np.concatenate([np.zeros(0, np.bool_), *flags]))

    def clamp(self, structures: Sequence[Any]) -> Self:
        """The distributions in which these subsets alone are allowed."""
        used = self.parts(structures).values > 0
        return self.holding(used, ~used)

    def log_prob(self, structures: Sequence[Any]) -> Array:
        """float64[n]: log p(y) of one subset for each."""
        return np.array([self[s].log_prob(y) for s, y in enumerate(self._one_each(structures))], np.float64)

    def holding(self, required: Flags, forbidden: Flags) -> Self:
        """The distributions over those subsets that have the required cells and none of the forbidden ones."""
        return type(self)(self.scores.like(kept(np.where(forbidden, -np.inf, self.scores.values))), required)


def _sums(scores: Array, required: Flags) -> tuple[Array, Array]:
    """log Z of each cell alone, and its marginal."""
    values = np.where(required, scores, np.logaddexp(0.0, scores))
    return values, np.where(required, 1.0, np.exp(scores - np.logaddexp(0.0, scores)))


def _checked(required: ArrayLike | None, shape: tuple[int, ...]) -> Flags:
    flags = np.zeros(shape, np.bool_) if required is None else np.array(required, np.bool_)
    if flags.shape != shape:
        raise ParameterError(f"Subset: required should have the shape of the scores, {list(shape)}")
    flags.flags.writeable = False
    return flags
