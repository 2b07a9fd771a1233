r"""Many structures, each of which must keep a share of its own set of parts in expectation.

.. math:: \min_q KL(q \| p) \quad\text{where}\quad E_q[cons] \ge \eta, \qquad
    cons(y) = \sum_{e \in C} a_e [e \in y] \Big/ \sum_{e \in C} a_e

One constraint for each structure, and none that couples two: the dual of each is a function of one number,

.. math:: g(\lambda) = \log E_p[e^{\lambda\, cons}] - \eta \lambda, \qquad g'(\lambda) = E_{q_\lambda}[cons] - \eta,
    \qquad q_\lambda \propto p\, e^{\lambda\, cons}, \qquad \lambda \ge 0

whose derivative only rises. All sentences are searched at once, each within a bracket of its own, by secants through
the log-odds of what is kept: they are nearly straight, so that a few inferences are enough.

References
----------
Ganchev, Gillenwater and Taskar, Dependency Grammar Induction via Bitext Projection Constraints, ACL 2009, section 4. We
differ: where the parts of C exclude each other, no structure keeps a share of η of them, and the reference leaves open
what to do. η is then lowered to a little below what the best structure keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import gathered
from isogloss.errors import ParameterError
from isogloss.learners.posterior.project import Projection
from isogloss.learners.posterior.together import Array, Together
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch

__all__ = ["Conserved", "PartSets", "attainable_shares", "conserve", "conserving"]

Places = NDArray[np.int64]
MARGIN = 0.01
"""How far below what can be kept at most a share is asked for; the multiplier would be infinite otherwise."""
MOST = 40.0
"""What a part can gain at most, in nats."""
_SMALL = 1e-12


@dataclass(frozen=True, eq=False)
class PartSets:
    """Some parts of each structure of a batch, with weights.

    Parameters
    ----------
    offsets : int64[n + 1]
        The parts of structure *s* are ``places[offsets[s]:offsets[s + 1]]``; it may have none.
    places : int64[n_chosen]
        Where they stand within the scores of their structure, in C order, each at most once.
    weights : float64[n_chosen]
        What they count, more than 0.
    """

    offsets: Places
    places: Places
    weights: Array

    @classmethod
    def of(cls, sets: list[ArrayLike], weights: list[ArrayLike] | None = None) -> PartSets:
        """One list of places for each structure; all count the same without weights."""
        listed = [np.asarray(places, np.int64) for places in sets]
        offsets = np.concatenate([[0], np.cumsum([len(places) for places in listed])]).astype(np.int64)
        places = np.concatenate([np.zeros(0, np.int64), *listed])
        if weights is None:
            return cls(offsets, places, np.ones(len(places)))
        return cls(offsets, places, np.concatenate([np.zeros(0), *(np.asarray(each, np.float64) for each in weights)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, items: Places) -> PartSets:
        """Those of some structures."""
        offsets, at = gathered(self.offsets, items)
        return PartSets(offsets, self.places[at], self.weights[at])

    def checked(self, batch: Batch[Any]) -> PartSets:
        """The sets themselves, with weights of at most 1, once they are known to fit."""
        counts = np.diff(self.offsets)
        if (
            len(self) != len(batch)
            or self.offsets[0] != 0
            or (counts < 0).any()
            or len(self.places) != self.offsets[-1]
        ):
            raise ParameterError(
                f"PartSets: {len(self)} sets were given for {len(batch)} structures; give one for each"
            )
        sizes = np.repeat(np.diff(batch.scores.offsets), counts)
        if len(self.places) and not ((self.places >= 0) & (self.places < sizes)).all():
            raise ParameterError("PartSets: places should be those of parts within the scores of their structure")
        if len(self.weights) != len(self.places) or not ((self.weights > 0) & (self.weights < np.inf)).all():
            raise ParameterError("PartSets: weights should be finite and more than 0, one for each part")
        keys = np.sort(np.repeat(batch.scores.offsets[:-1], counts) + self.places)
        if (np.diff(keys) == 0).any():
            raise ParameterError("PartSets: a part is named twice; give each once, with its weight")
        largest = np.ones(len(self))
        some = counts > 0
        if some.any():
            largest[some] = np.maximum.reduceat(self.weights, self.offsets[:-1][some])
        return PartSets(self.offsets, self.places, self.weights / np.repeat(largest, counts))

    def sums(self, values: Array) -> Array:
        """float64[n]: sums of a vector over all chosen parts."""
        owner = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return np.bincount(owner, values, minlength=len(self)).astype(np.float64)

    def within(self, batch: Batch[Any]) -> Places:
        """int64[n_chosen]: where the parts stand among those of all structures."""
        return np.asarray(np.repeat(batch.scores.offsets[:-1], np.diff(self.offsets)) + self.places)


@dataclass(frozen=True, eq=False)
class Conserved:
    """The nearest distributions that keep enough, one for each structure.

    Parameters
    ----------
    marginals : float64[n_parts]
        Of all structures, laid out as their scores.
    values : float64[n]
        log Z − KL(q‖p) of each, by the dual.
    divergence : float64[n]
        KL(q‖p), by the dual.
    gains : float64[n]
        What the score of a part of the largest weight gains; 0 where p keeps enough. λ is this times ``sizes``.
    sizes : float64[n]
        Σ a_e, weights being divided by the largest: |C| where all parts count the same.
    shares : float64[n]
        E_q[cons]; 1 where there is nothing to keep.
    asked : float64[n]
        η, lowered where no structure keeps so much.
    evaluations : int
        How many structures were re-scored, in all.
    """

    marginals: Array
    values: Array
    divergence: Array
    gains: Array
    sizes: Array
    shares: Array
    asked: Array
    evaluations: int

    @property
    def multipliers(self) -> Array:
        """float64[n]: λ."""
        return self.gains * self.sizes


def attainable_shares(batch: Batch[Any], sets: PartSets) -> Array:
    """float64[n]: the largest share of its set that a structure can keep; 1 where there is nothing to keep.

    It depends on which parts are allowed, not on their scores.

    Examples
    --------
    >>> from isogloss.structures import ProjectiveTree
    >>> trees = ProjectiveTree.batch([np.zeros((3, 3))])
    >>> attainable_shares(trees, PartSets.of([[1, 7]])).tolist()                 # two heads of one word: 0 and 2
    [0.5]
    """
    sets = sets.checked(batch)
    return _attainable(batch, sets)


def _attainable(batch: Batch[Any], sets: PartSets) -> Array:
    worth = np.where(batch.scores.values > -np.inf, 0.0, -np.inf)
    at = sets.within(batch)
    worth[at] += sets.weights
    best = batch.with_scores(batch.scores.like(kept(worth))).best_scores()
    sizes = sets.sums(sets.weights)
    return np.where(sizes > 0, np.minimum(best / np.maximum(sizes, _SMALL), 1.0), 1.0)


def conserve(
    batch: Batch[Any],
    sets: PartSets,
    share: float | Array,
    *,
    margin: float = MARGIN,
    tolerance: float = 1e-4,
    most: float = MOST,
    start: Array | None = None,
    attainable: Array | None = None,
    steps: int = 100,
) -> Conserved:
    """The nearest distribution to each structure that keeps at least a share of its parts in expectation.

    Parameters
    ----------
    batch : Batch
        Such as `ProjectiveTrees`; any batch whose marginals are exact.
    sets : PartSets
        C of each structure.
    share : float, or float64[n]
        η.
    margin : float
        η is lowered to this far below what a structure can keep at most.
    tolerance : float
        How near to η E_q[cons] must come.
    most : float
        What a part can gain at most. Where that is not enough, less than η is kept: the constraint then is a penalty,
        ``most`` · |C| times what is missing.
    start : float64[n], optional
        Gains to begin with, such as those of the last pass.
    attainable : float64[n], optional
        What `attainable_shares` gives, if that is known already. It has to be given for structures that have other
        scores beside those of `scores`, such as `ValenceTrees`: those would count as well.
    steps : int
        Inferences that a structure may take at most.

    Examples
    --------
    >>> from isogloss.structures import ProjectiveTree
    >>> trees = ProjectiveTree.batch([np.zeros((3, 3))])                        # 0 -> 1 -> 2, 0 -> 2 -> 1, 0 -> 1, 2
    >>> found = conserve(trees, PartSets.of([[5]]), 0.9)                         # 1 -> 2, which has 1/3
    >>> found.marginals.reshape(3, 3)[1, 2].round(3), found.gains.round(3).tolist()          # log (0.9/0.1 / (1/2))
    (np.float64(0.9), [2.89])
    """
    sets = sets.checked(batch)
    n, sizes = len(batch), sets.sums(sets.weights)
    asked = np.broadcast_to(np.asarray(share, np.float64), n).copy()
    if not ((asked >= 0) & (asked <= 1)).all():
        raise ParameterError(f"conserve: share should be from 0 to 1, not {share!r}")
    if not 0 < margin < 1 or not tolerance > 0 or not 0 < most < np.inf:
        raise ParameterError("conserve: margin, tolerance and most should be more than 0, and margin less than 1")
    totals, marginals = batch.log_partition(), batch.marginals().values.copy()
    shares = _shares(sets, sizes, marginals[sets.within(batch)])
    rows = np.flatnonzero(shares < asked)
    top = np.ones(n)
    if len(rows):
        top[rows] = _attainable(batch.take(rows), sets.take(rows)) if attainable is None else attainable[rows]
        asked[rows] = np.minimum(asked[rows], top[rows] - margin)
    rows = rows[shares[rows] < asked[rows] - tolerance]
    gains, divergence, evaluations = np.zeros(n), np.zeros(n), 0
    if len(rows):
        tilted = _Tilted(batch.take(rows), sets.take(rows), sizes[rows])
        begin = None if start is None else np.asarray(start, np.float64)[rows]
        evaluations = tilted.search(shares[rows], asked[rows], top[rows], tolerance, most, begin, steps)
        gains[rows], shares[rows] = tilted.gains, tilted.shares
        divergence[rows] = tilted.gains * sizes[rows] * asked[rows] - (tilted.totals - totals[rows])
        marginals[gathered(batch.scores.offsets, rows)[1]] = tilted.marginals
    divergence = np.maximum(divergence, 0.0)
    return Conserved(marginals, totals - divergence, divergence, gains, sizes, shares, asked, evaluations)


def conserving(
    sets: PartSets,
    share: float | Array,
    attainable: Array | None = None,
    *,
    margin: float = MARGIN,
    tolerance: float = 1e-4,
    most: float = MOST,
) -> Callable[[Together, Array | None], Projection[Together]]:
    """The same for a whole text, as EM takes it (`project_corpus`): the nearest distributions, re-scored.

    Parameters are those of `conserve`; sets are those of the sentences of one batch. Each search begins with the gains
    of the last step.
    """

    def project(text: Together, start: Array | None) -> Projection[Together]:
        (batch,) = text.members
        assert isinstance(batch, Batch)
        found = conserve(
            batch, sets, share, margin=margin, tolerance=tolerance, most=most, start=start, attainable=attainable
        )
        scores = batch.scores.values.copy()
        own = sets.checked(batch)
        scores[own.within(batch)] += own.weights * np.repeat(found.gains, np.diff(own.offsets))
        missing = float(np.maximum(found.asked - found.shares, 0.0).max(initial=0.0))
        return Projection(
            Together([batch.with_scores(batch.scores.like(kept(scores)))]), divergence=float(found.divergence.sum()),
            cost=0.0, bound=float(found.values.sum()), violation=missing, evaluations=found.evaluations,
            converged=missing <= tolerance, multipliers=found.gains, dual=-float(found.divergence.sum()), gap=0.0,
        )  # fmt: skip

    return project


def _shares(sets: PartSets, sizes: Array, chances: Array) -> Array:
    return np.where(sizes > 0, sets.sums(sets.weights * chances) / np.maximum(sizes, _SMALL), 1.0)


def _odds(shares: Array, top: Array) -> Array:
    """Log-odds of what is kept, of all that can be: nearly a straight line in the gain."""
    x = np.clip(shares / np.maximum(top, _SMALL), _SMALL, 1 - _SMALL)
    return np.asarray(np.log(x) - np.log1p(-x))


class _Tilted:
    """Structures whose parts gain something, and what they are like then."""

    def __init__(self, batch: Batch[Any], sets: PartSets, sizes: Array) -> None:
        self.batch, self.sets, self.sizes = batch, sets, sizes
        self.gains, self.shares, self.totals = np.zeros(len(batch)), np.zeros(len(batch)), np.zeros(len(batch))
        self.marginals = np.empty(len(batch.scores.values))

    def move(self, rows: Places, gains: Array) -> None:
        """Let the parts of some structures gain so much."""
        some, own = self.batch.take(rows), self.sets.take(rows)
        places, scores = own.within(some), some.scores.values.copy()
        scores[places] += own.weights * np.repeat(gains, np.diff(own.offsets))
        found = some.with_scores(some.scores.like(kept(scores)))
        marginals = found.marginals().values
        self.gains[rows], self.totals[rows] = gains, found.log_partition()
        self.shares[rows] = _shares(own, self.sizes[rows], marginals[places])
        self.marginals[gathered(self.batch.scores.offsets, rows)[1]] = marginals

    def search(
        self,
        before: Array,
        asked: Array,
        top: Array,
        tolerance: float,
        most: float,
        start: Array | None,
        steps: int,
    ) -> int:
        """Find the gain at which each keeps what is asked; returns how many structures were re-scored."""
        n, goal, evaluations = len(before), _odds(asked, top), 0
        low, high, at_high = np.zeros(n), np.full(n, most), np.full(n, np.inf)  # infinite: nothing known above yet
        at_low = _odds(before, top) - goal
        guess = np.clip(-at_low if start is None else np.where(start > 0, start, -at_low), _SMALL, most)
        rows, width = np.arange(n), high - low
        for step in range(steps):
            self.move(rows, guess[rows])
            evaluations += len(rows)
            excess, odds = self.shares[rows] - asked[rows], _odds(self.shares[rows], top[rows]) - goal[rows]
            more, less = rows[excess > 0], rows[excess <= 0]
            high[more], at_high[more] = guess[more], odds[excess > 0]
            low[less], at_low[less] = guess[less], odds[excess <= 0]
            rows = rows[(np.abs(excess) > tolerance) & ((excess > 0) | (guess[rows] < most))]
            if not len(rows):
                break
            guess[rows] = _crossing(low[rows], high[rows], at_low[rows], at_high[rows], most)
            if step % 3 == 2:  # a bracket that hardly shrinks is halved
                slow = rows[np.isfinite(at_high[rows]) & (high[rows] - low[rows] > width[rows] / 2)]
                guess[slow] = (low[slow] + high[slow]) / 2
                width[rows] = high[rows] - low[rows]
        return evaluations


def _crossing(low: Array, high: Array, at_low: Array, at_high: Array, most: float) -> Array:
    """Where a straight line meets 0, well inside the bracket; beyond `low` if nothing above is known yet."""
    known, inner = np.isfinite(at_high), 0.02 * (high - low)
    slope = np.where(known, at_high - at_low, 1.0)
    line = low - at_low * (high - low) / np.maximum(slope, _SMALL)
    beyond = np.minimum(most, low + np.maximum(-2.0 * at_low, 0.5))
    return np.asarray(np.where(known, np.clip(line, low + inner, high - inner), beyond))
