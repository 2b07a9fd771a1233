"""`BackOff`: distributions that are smoothed by less specific ones, level by level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError

__all__ = ["BackOff", "Level"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Level:
    """One level: events, the context in which each occurs, and the event of the level below that it is.

    Parameters
    ----------
    contexts : int64[n_events]
        The context of each event; what is normalised over the events that share it.
    parents : int64[n_events]
        The event one level further down, of which this is the same outcome in a more specific context; at the lowest
        level its number in the base distribution.
    alpha : float
        How much the level below counts: 0 leaves relative frequencies, infinity the level below alone.
    """

    contexts: Integers
    parents: Integers
    alpha: float

    def __post_init__(self) -> None:
        if not self.alpha >= 0:
            raise ParameterError(f"back-off: alpha should be 0 or more, not {self.alpha!r}")
        if self.contexts.shape != self.parents.shape:
            raise ParameterError(f"back-off: {len(self.contexts)} contexts and {len(self.parents)} parents of events")

    @property
    def n_contexts(self) -> int:
        return int(self.contexts.max(initial=-1)) + 1


class BackOff:
    r"""Recursively interpolated distributions of expected counts.

    .. math:: P_l(v \mid c) = \frac{n(v, c) + \alpha_l P_{l-1}(v \mid c')}{n(c) + \alpha_l}

    where context *c'* says less than *c*, down to a base distribution that is given. Each level adds up to one over
    its events if those below do; where a level lists some events only (the others have counts of 0), what is missing
    is :math:`\alpha_l / (n(c) + \alpha_l)` of what the level below gives to the others.

    Parameters
    ----------
    levels : sequence of Level
        From the least to the most specific. Counts are those of the last one.

    References
    ----------
    Naradowsky and Toutanova, ACL 2011, section 3: an approximation to the posterior mode under a hierarchical Dirichlet
    prior.

    Examples
    --------
    >>> outcomes = Level(np.zeros(2, int), np.arange(2), 1.0)                # of two outcomes, in one context
    >>> specific = Level(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), 2.0)  # in each of two
    >>> found = BackOff([outcomes, specific]).probabilities([3.0, 0.0, 0.0, 0.0], [0.5, 0.5])
    >>> found.round(3).tolist()
    [0.95, 0.05, 0.875, 0.125]
    """

    def __init__(self, levels: Sequence[Level]) -> None:
        self.levels = tuple(levels)
        sizes = [len(level.contexts) for level in self.levels]
        for at, level in enumerate(self.levels):
            if at and level.parents.size and not 0 <= level.parents.min() <= level.parents.max() < sizes[at - 1]:
                raise ParameterError(f"BackOff: parents of level {at} should be events of level {at - 1}")

    def counts(self, counts: ArrayLike) -> list[Array]:
        """Counts of the events of each level, from those of the most specific."""
        own = np.asarray(counts, np.float64)
        if own.shape != self.levels[-1].contexts.shape:
            raise ParameterError(f"BackOff: there are {len(self.levels[-1].contexts)} events, and {own.size} counts")
        found = [own]
        for below, level in zip(self.levels[-2::-1], self.levels[:0:-1], strict=True):
            found.append(_sums(level.parents, found[-1], len(below.contexts)))
        return found[::-1]

    def probabilities(self, counts: ArrayLike, base: ArrayLike, removed: Sequence[ArrayLike] | None = None) -> Array:
        """float64[n_events]: those of the most specific level.

        Parameters
        ----------
        counts : float64[n_events]
            Of the most specific level.
        base : float64[n_outcomes]
        removed : sequence of float64[n_events], optional
            For each level, what is taken from the count of each event and given to the level below, as in absolute
            discounting; never more than the count.
        """
        lower = np.asarray(base, np.float64)
        for level, own, whole, freed in self._each(counts, removed):
            share = _share(freed, whole, level.alpha)[level.contexts] * lower[level.parents]
            if level.alpha == np.inf:
                lower = share
                continue
            weight = (whole + level.alpha)[level.contexts]
            some = weight > 0
            lower = np.where(some, own / np.where(some, weight, 1.0), 0.0) + share
        return lower

    def remainders(self, counts: ArrayLike, removed: Sequence[ArrayLike] | None = None) -> Array:
        """float64[n_contexts]: what an outcome that no level has seen gets, times its base probability.

        It is the product, over all levels, of what they leave to the level below.
        """
        above: Array = np.ones(1)
        for at, (level, _, whole, freed) in enumerate(self._each(counts, removed)):
            below = np.zeros(level.n_contexts, np.int64)
            if at:
                below[level.contexts] = self.levels[at - 1].contexts[level.parents]
            above = above[below] * _share(freed, whole, level.alpha)
        return above

    def _each(
        self, counts: ArrayLike, removed: Sequence[ArrayLike] | None
    ) -> Iterator[tuple[Level, Array, Array, Array]]:
        """Each level, the counts of its events that stay, those of its contexts, and what is taken from these."""
        for at, (level, own) in enumerate(zip(self.levels, self.counts(counts), strict=True)):
            whole = _sums(level.contexts, own, level.n_contexts)
            stay = own if removed is None else np.maximum(own - np.asarray(removed[at], np.float64), 0.0)
            yield level, stay, whole, _sums(level.contexts, own - stay, level.n_contexts)


def _sums(places: Integers, values: Array, size: int) -> Array:
    return np.bincount(places, values, size).astype(np.float64, copy=False)


def _share(freed: Array, whole: Array, alpha: float) -> Array:
    """What contexts leave to the level below."""
    if alpha == np.inf:
        return np.ones(len(whole))
    some = whole + alpha > 0
    return np.where(some, (freed + alpha) / np.where(some, whole + alpha, 1.0), 1.0)
