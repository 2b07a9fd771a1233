"""`PairLabeller`: what finding relations and finding roles have in common.

Every pair of a sentence has a label or none, beside a hidden tree that is summed out. A subclass says which pairs a
text has, what they look like and what is right.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import UsageError
from isogloss.features import Templates
from isogloss.learners.models import Given
from isogloss.learners.passes import Course, LearntInPasses, Passed, learner_of
from isogloss.tasks.extract.coupled import CoupledFeatures, CoupledModel, Problem, labels_by_sentence
from isogloss.tasks.extract.fitted_pairs import FittedPairs
from isogloss.tasks.extract.pair_options import PairOptions
from isogloss.tasks.parse.constituency.words import Known

__all__ = ["PairLabeller"]

TREE_OF = {
    "none": "none", "given": "none", "joint": "projective", "hidden-dependency": "projective",
    "hidden-constituency": "brackets",
}  # fmt: skip
"""Kinds of trees, by what is said of syntax."""
LEAST = 1e-4
"""Parts whose posterior is so near to what it should be are left alone in a step."""


class PairLabeller(PairOptions, LearntInPasses[FittedPairs]):
    """An estimator that gives labels to pairs of words or names."""

    @property
    def _tree(self) -> str:
        return "spanning" if self.crossing else TREE_OF[self.syntax]

    @property
    @abstractmethod
    def _templates(self) -> dict[str, Templates]:
        """What pairs, connectors and parts of trees are seen by."""

    # --- learning

    def _unfinished(
        self,
        labels: tuple[str, ...],
        known: Known,
        problem: Problem,
        right: NDArray[np.int64],
        templates: Mapping[str, Templates],
        *,
        min_count: int,
        start: float,
    ) -> FittedPairs:
        """What there is to learn: features of the pairs that are right, with the weights to begin with."""
        features = CoupledFeatures.collected(
            templates, problem, right, len(labels), min_count=min_count, bits=self.bits
        )  # fmt: skip
        return FittedPairs(labels, known, features, features.start(start))

    def _raise_likelihood(
        self,
        course: Course,
        name: str,
        unfinished: FittedPairs,
        problem: Problem,
        right: NDArray[np.int64],
        *,
        trees: list[Any] | None = None,
        score: Callable[[FittedPairs], float] | None = None,
    ) -> tuple[FittedPairs, Passed]:
        """Raise the likelihood of labels, with trees summed out.

        Parameters
        ----------
        right : int64[n_pairs]
            Labels.
        trees : list, optional
            Trees of all sentences that are right, where these are learnt as well.
        score : callable, optional
            How good a model is on other sentences.
        """

        def learnt(weights: NDArray[Any]) -> FittedPairs:
            return replace(unfinished, weights=np.asarray(weights, np.float32))

        offsets = np.concatenate([[0], np.cumsum(problem.couplings.pairs)]).astype(np.int64)
        known: dict[str, Any] = {"labels": labels_by_sentence(right, offsets)}
        if trees is not None:
            known["trees"] = trees
        model = CoupledModel(unfinished.features, problem, at_most_one=self.at_most_one)
        learner = learner_of(model, Given(**known), self.pass_settings, course.progress.within, least=LEAST)
        tried = None if score is None else lambda weights: score(learnt(weights))
        passed = course.run(learner, name, tried, start=unfinished.weights)
        return learnt(passed.weights).compact(), passed

    # --- predicting

    def _chances(self, problem: Problem, learnt: FittedPairs) -> list[NDArray[np.float64]]:
        """float64[n_pairs, n_labels] of each sentence: posteriors of labels."""
        return [rows.copy() for _, rows in learnt.posteriors(problem, self.at_most_one)]

    def _with_trees(self) -> FittedPairs:
        """What was learnt, where there are hidden trees."""
        if self._tree == "none":
            raise UsageError(f"latent_trees: there are none with syntax {self.syntax!r}")
        return self._learnt

    @property
    def n_features_(self) -> int:
        """How many weights there are."""
        return len(self._learnt.weights)
