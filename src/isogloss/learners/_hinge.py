"""The structured hinge loss of each item, by loss-augmented search: what the margin learners ask again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.learners.margin import Cost
from isogloss.learners.models import LinearModel, Model
from isogloss.structures import Flat, Structure
from isogloss.structures.batch import Batch

__all__ = ["Hinge", "Rival", "score_of"]

Array = NDArray[np.float64]


class Rival(NamedTuple):
    """The structure that an item is furthest from beating by its loss."""

    value: float
    """The hinge: what the target lacks of its margin over it."""
    at: NDArray[np.int64]
    """Features in which target and rival differ, each once …"""
    much: Array
    """… and by how much: f(target) − f(rival)."""


class Hinge:
    r"""Σ over items of :math:`\max_y [score(y) + \ell(y)] - score(y^*)`.

    Parameters
    ----------
    place : str
        For errors: the learner.
    model : Model
    targets, costs : one for each item
    relaxed : bool
        Maximise over the linear relaxation; structures need `relaxation()` and the model is a `LinearModel`.
    """

    def __init__(
        self, place: str, model: Model, targets: Sequence[Any], costs: Sequence[Cost], *, relaxed: bool = False
    ) -> None:
        for name, given in (("targets", targets), ("costs", costs)):
            if len(given) != len(model):
                raise ParameterError(f"{place}: {len(given)} {name} for {len(model)} items")
        if relaxed and not isinstance(model, LinearModel):
            raise ParameterError(f"{place}: relaxed=True needs a LinearModel, not {type(model).__name__}")
        self.place, self.model, self.targets, self.costs, self.relaxed = place, model, targets, costs, relaxed

    def at(self, weights: Array, item: int) -> Rival:
        """The rival of one item."""
        dist = self.model.distribution(weights, item)
        augmented = self._augmented(dist, item)
        if self.relaxed:
            return self._relaxed(dist, augmented, item)
        found = augmented.argmax()
        at, much = self.model.difference(item, self.targets[item], found)
        return Rival(self._value(dist, item, score_of(augmented, found)), at, much)

    def total(self, weights: Array) -> float:
        """Σ of the hinges of all items, in their order; batches are searched at once."""
        model = self.model
        if self.relaxed or not (isinstance(model, LinearModel) and isinstance(model.structures, Batch)):
            return float(sum(self._best(weights, item) for item in range(len(model))))
        dists: Any = model.distributions(weights)
        costs = np.concatenate([np.zeros(0), *(np.ravel(cost.parts) for cost in self.costs)])
        augmented = dists.with_scores(dists.scores.like(dists.scores.values + costs))
        values = (
            self._value(dists[item], item, score_of(augmented[item], found))
            for item, found in enumerate(augmented.argmax())
        )
        return float(sum(values))

    def losses(self) -> Array:
        """float64[n_items]: the loss of each target itself, 0 unless the gold is outside the class."""
        zeros = np.zeros(self.model.n_weights)
        dists = (self.model.distribution(zeros, item) for item in range(len(self.model)))
        of = (cost.of(dist.parts(y)) for dist, y, cost in zip(dists, self.targets, self.costs, strict=True))
        return np.fromiter(of, np.float64, len(self.model))

    def _augmented(self, dist: Structure, item: int) -> Structure:
        return dist.with_scores(dist.scores + self.costs[item].parts)

    def _best(self, weights: Array, item: int) -> float:
        dist = self.model.distribution(weights, item)
        augmented = self._augmented(dist, item)
        best = self._relaxation(augmented).value if self.relaxed else score_of(augmented, augmented.argmax())
        return self._value(dist, item, float(best))

    def _value(self, dist: Structure, item: int, best: float) -> float:
        target = score_of(dist, self.targets[item])
        if target == -np.inf:
            raise ParameterError(
                f"{self.place}: the target of item {item} is forbidden; margin.nearest(dist, cost) finds the nearest "
                "that is allowed"
            )
        return best + self.costs[item].constant - target

    def _relaxation(self, augmented: Any) -> Any:
        inner = augmented.dist if isinstance(augmented, Flat) else augmented
        if not hasattr(inner, "relaxation"):
            raise ParameterError(f"{self.place}: relaxed=True needs structures with relaxation(), such as Matching")
        return inner.relaxation()

    def _relaxed(self, dist: Structure, augmented: Structure, item: int) -> Rival:
        found = self._relaxation(augmented)
        kinds = found.parts if isinstance(dist, Flat) else (found.links,)
        point = np.concatenate([np.ravel(kind) for kind in kinds])
        model: Any = self.model
        first, last = int(model._offsets[item]), int(model._offsets[item + 1])
        parts = np.ravel(dist.parts(self.targets[item])) - point
        at = model.features.support([(first, last)], parts)
        totals = np.zeros(model.n_weights)
        model.features.add_totals(parts, totals, first, last)
        return Rival(self._value(dist, item, float(found.value)), at, totals[at])


def score_of(dist: Any, y: Any) -> float:
    """Log score of a structure, with what its parts do not show, such as the nulls of a matching that is not `Flat`."""
    if isinstance(dist, Flat):
        return score_of(dist.dist, y) if hasattr(dist.dist, "score") else _summed(dist, y)
    return float(dist.score(y)) if hasattr(dist, "score") else _summed(dist, y)


def _summed(dist: Structure, y: Any) -> float:
    parts = dist.parts(y)
    used = parts > 0
    return float(parts[used] @ dist.scores[used])
