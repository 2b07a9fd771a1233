"""`MatchingAligner`: every word has at most one link, and the best set of links is a matching."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isogloss.learners.margin import Mira, Perceptron
from isogloss.structures import Flat, Matching
from isogloss.tasks.align.features import PairFeatures
from isogloss.tasks.align.supervised.base import SupervisedAligner
from isogloss.tasks.align.supervised.parts import Parts
from isogloss.tasks.align.supervised.training import Problem, Setting

__all__ = ["MatchingAligner"]

Array = NDArray[np.float64]


class MatchingAligner(SupervisedAligner):
    _kind = "matching"
    TRAINERS: ClassVar[tuple[str, ...]] = ("mira", "perceptron")
    DEFAULTS: ClassVar[Mapping[str, Setting]] = {
        "mira": Setting(missed=3.0, iterations=15, passes=15),
        "perceptron": Setting(missed=1.0, iterations=15, passes=30),
    }

    def structures(self, features: PairFeatures) -> list[Any]:
        return [Flat(Matching(np.zeros(shape))) for shape in features.shapes.tolist()]

    def distributions(self, features: PairFeatures, parts: Parts, weights: Array) -> Any:
        links, source, target = parts.scores(weights)
        cells = [links[features.cells_of(k)].reshape(features.shape(k)) for k in range(len(features))]
        nulls = [source[features.source_of(k)] for k in range(len(features))]
        others = [target[features.target_of(k)] for k in range(len(features))]
        return Matching.batch(cells, nulls, others)

    def learner(self, problem: Problem, setting: Setting) -> Any:
        about: dict[str, Any] = {"passes": setting.passes, "seed": self.seed}
        if self.trainer == "perceptron":
            return Perceptron(problem.model, problem.targets, problem.costs, **about)
        return Mira(problem.model, problem.targets, problem.costs, cap=setting.regularisation, **about)
