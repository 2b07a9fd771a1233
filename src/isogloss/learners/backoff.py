"""`BackOff`: distributions that are smoothed by less specific ones, level by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError

__all__ = ["BackOff", "Level", "interpolated"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def interpolated(counts: ArrayLike, totals: ArrayLike, lower: ArrayLike, alpha: float) -> Array:
    r"""Relative frequencies with a lower distribution as pseudo-counts.

    .. math:: \frac{c(v) + \alpha\, p(v)}{c + \alpha}

    Infinite α gives the lower distribution, as do counts of 0; α = 0 gives relative frequencies.

    Examples
    --------
    >>> [interpolated([3.0, 1.0], 4.0, [0.5, 0.5], alpha).tolist() for alpha in (0.0, 4.0, np.inf)]
    [[0.75, 0.25], [0.625, 0.375], [0.5, 0.5]]
    """
    own, whole, base = (np.asarray(one, np.float64) for one in (counts, totals, lower))
    if not alpha >= 0:
        raise ParameterError(f"back-off: alpha should be 0 or more, not {alpha!r}")
    if alpha == np.inf:
        return np.array(np.broadcast_to(base, np.broadcast_shapes(own.shape, whole.shape, base.shape)))
    weight = whole + alpha
    some = weight > 0
    return np.where(some, (own + alpha * base) / np.where(some, weight, 1.0), base)


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
        How much the level below counts.
    """

    contexts: Integers
    parents: Integers
    alpha: float

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
            if level.contexts.shape != level.parents.shape:
                raise ParameterError(f"BackOff: level {at} has {sizes[at]} contexts and {len(level.parents)} parents")
            if at and level.parents.size and not 0 <= level.parents.min() <= level.parents.max() < sizes[at - 1]:
                raise ParameterError(f"BackOff: parents of level {at} should be events of level {at - 1}")

    def counts(self, counts: ArrayLike) -> list[Array]:
        """Counts of the events of each level, from those of the most specific."""
        own = np.asarray(counts, np.float64)
        if own.shape != self.levels[-1].contexts.shape:
            raise ParameterError(f"BackOff: there are {len(self.levels[-1].contexts)} events, and {own.size} counts")
        found = [own]
        for below, level in zip(self.levels[-2::-1], self.levels[:0:-1], strict=True):
            found.append(np.bincount(level.parents, found[-1], len(below.contexts)))
        return found[::-1]

    def probabilities(self, counts: ArrayLike, base: ArrayLike) -> Array:
        """float64[n_events]: those of the most specific level."""
        lower = np.asarray(base, np.float64)
        for level, own in zip(self.levels, self.counts(counts), strict=True):
            totals = np.bincount(level.contexts, own, level.n_contexts)
            lower = interpolated(own, totals[level.contexts], lower[level.parents], level.alpha)
        return lower

    def remainders(self, counts: ArrayLike) -> Array:
        """float64[n_contexts]: what an outcome that no level has seen gets, times its base probability.

        The product of :math:`\\alpha_l / (n(c) + \\alpha_l)` over all levels.
        """
        everything = self.counts(counts)
        above: Array = np.ones(1)
        context_below: Integers = np.zeros(self.levels[0].n_contexts, np.int64)
        for at, (level, own) in enumerate(zip(self.levels, everything, strict=True)):
            totals = np.bincount(level.contexts, own, level.n_contexts)
            if at:
                context_below = np.zeros(level.n_contexts, np.int64)
                context_below[level.contexts] = self.levels[at - 1].contexts[level.parents]
            above = above[context_below] * interpolated(
                np.zeros(len(totals)), totals, np.ones(len(totals)), level.alpha
            )
        return above
