r"""Naive Bayes by EM over labels that are hidden.

.. math:: \max_\theta\; \sum_{i \in L} \log p(x_i, y_i; \theta) + \gamma \sum_{i \in U} \log \sum_y p(x_i, y; \theta)
    + \log p(\theta)

with a multinomial over features for each label, and Dirichlet priors. γ = 0 is the classifier of the labelled rows
alone; at γ = 1 an unlabelled row says as much as a labelled one. Where the model does not fit, likelihood rises and
accuracy falls: `HiddenLabelNaiveBayes` asks the labelled rows about that, and warns.

References
----------
Nigam, McCallum, Thrun and Mitchell, Text Classification from Labeled and Unlabeled Documents using EM, Machine Learning
39, 2000 (the weight γ). Blitzer and Zhu, Semi-supervised Learning for Natural Language Processing, ACL-08 tutorial.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.estimator import option
from isogloss.learners.em import EM
from isogloss.learners.linear import softmax
from isogloss.learners.runner import run
from isogloss.learners.semi_supervised.given import Array, Classifier, Given
from isogloss.structures import FactoredChain

__all__ = ["HiddenLabelNaiveBayes", "HiddenLabels", "Weighed"]

FOLDS = 5
FEWEST = 10
"""Labelled rows that can say something of the model."""
SURE = 0.05
"""A warning is given where chance would do the same less often than this."""


class Weighed(NamedTuple):
    """Rows that count alike; the labels of all are known, or those of none.

    rows : float64[n, d] or scipy.sparse.csr_matrix, of 0 and more
    numbers : int64[n] or None
    weight : float
    """

    rows: Any
    numbers: NDArray[np.int64] | None
    weight: float


class HiddenLabels:
    """The model, for `isogloss.learners.em.EM`: parameters are log probabilities, float64[n_labels, d + 1].

    The last column has those of the labels themselves.
    """

    def __init__(self, n_labels: int, n_features: int, smoothing: float) -> None:
        self.n_labels, self.n_features, self.smoothing = n_labels, n_features, smoothing

    def zero_counts(self) -> Array:
        return np.zeros((self.n_labels, self.n_features + 1))

    def scores(self, params: Array, rows: Any) -> Array:
        """float64[n, n_labels]: log p(x, y)."""
        return np.asarray(rows @ params[:, :-1].T + params[:, -1])

    def distributions(self, params: Array, batch: Any) -> list[FactoredChain]:
        """Rows are the positions of a chain without transitions: all of one weight are one structure."""
        found = []
        for item in batch:
            scores = self.scores(params, item.rows)
            if item.numbers is not None:
                allowed = np.arange(self.n_labels) == item.numbers[:, None]
                scores = np.where(allowed, scores, -np.inf)
            found.append(FactoredChain(scores, np.zeros((self.n_labels, self.n_labels))))
        return found

    def weights(self, batch: Any) -> Array:
        return np.array([item.weight for item in batch])

    def expected_counts(self, item: Any, q: Any) -> Array:
        posteriors = q.marginals()
        each = np.asarray((item.rows.T @ posteriors).T)
        return np.asarray(item.weight * np.append(each, posteriors.sum(axis=0)[:, None], axis=1))

    def maximise(self, counts: Array) -> Array:
        smooth = counts + self.smoothing
        features, labels = smooth[:, :-1], smooth[:, -1:]
        return np.append(np.log(features / features.sum(axis=1, keepdims=True)), np.log(labels / labels.sum()), axis=1)

    def log_prior(self, params: Array) -> float:
        return self.smoothing * float(params.sum())


class HiddenLabelNaiveBayes(Classifier):
    """Naive Bayes of counts that learns from rows with labels and, by EM, from rows without.

    Parameters
    ----------
    weight : float
        γ: what an unlabelled row counts.
    smoothing : float
        What is added to each count.
    iterations, tolerance : int, float
        Of EM.
    check : bool
        Whether labelled rows are asked if EM does harm, with a warning if so: each is labelled by models for which its
        label was hidden.

    Attributes
    ----------
    trace_ : float64[n_iterations]
        The objective, which never falls; empty without unlabelled rows.

    Examples
    --------
    >>> X = [[3, 0, 1, 0], [0, 3, 0, 1], [0, 0, 3, 0], [1, 0, 2, 0], [0, 1, 0, 2]]
    >>> found = HiddenLabelNaiveBayes().fit(X, ["a", "b", None, None, None])
    >>> found.predict([[0, 0, 1, 0], [0, 0, 0, 1]]).tolist()
    ['a', 'b']
    """

    weight: float = option(default=1.0, least=0, most=1, help="What an unlabelled row counts beside a labelled one.")
    smoothing: float = option(default=1.0, above=0, help="What is added to each count.")
    iterations: int = option(default=100, least=1, help="Steps of EM, at most.")
    tolerance: float = option(default=1e-7, least=0, help="EM ends when the objective changes by less than this share.")
    check: bool = option(default=True, help="Ask the labelled rows whether EM does harm, and warn if so.")

    def _learn(self, given: Given) -> None:
        values = getattr(given.rows, "data", given.rows)
        if np.asarray(values).min(initial=0.0) < 0:
            raise ParameterError("HiddenLabelNaiveBayes: features should be counts, 0 or more")
        self._params, self.trace_ = self._fitted(given, given.numbers, self.weight)
        if self.check and self.weight > 0 and (given.numbers < 0).any():
            self._ask(given)

    def _fitted(self, given: Given, numbers: NDArray[np.int64], weight: float) -> tuple[Array, Array]:
        model = HiddenLabels(len(given.classes), given.rows.shape[1], self.smoothing)
        known, hidden = np.flatnonzero(numbers >= 0), np.flatnonzero(numbers < 0)
        labelled = Weighed(given.rows[known], numbers[known], 1.0)
        first = model.maximise(model.expected_counts(labelled, model.distributions(model.zero_counts(), [labelled])[0]))
        if not len(hidden) or not weight:
            return first, np.zeros(0)
        learner = EM(model, [[labelled, Weighed(given.rows[hidden], None, weight)]])
        found = run(learner, learner.init(first), iterations=self.iterations, tolerance=self.tolerance)
        return np.asarray(found.state.params), np.asarray(found.trace)

    def _posteriors(self, rows: Any) -> Array:
        model = HiddenLabels(len(self.classes_), rows.shape[1], self.smoothing)
        return softmax(model.scores(self._params, rows))

    def _ask(self, given: Given) -> None:
        """Warn if labelled rows whose labels are hidden are labelled worse with EM than without, by a sign test."""
        from scipy.stats import binomtest

        known = np.flatnonzero(given.numbers >= 0)
        if len(known) < FEWEST:
            return
        folds = np.random.default_rng(0).permutation(len(known)) % FOLDS
        right = np.zeros((2, len(known)), bool)
        model = HiddenLabels(len(given.classes), given.rows.shape[1], self.smoothing)
        for fold in range(FOLDS):
            numbers = given.numbers.copy()
            away = known[folds == fold]
            numbers[away] = -1
            if not (numbers >= 0).any():
                return
            for k, weight in enumerate((0.0, self.weight)):
                params = self._fitted(given, numbers, weight)[0]
                right[k, folds == fold] = model.scores(params, given.rows[away]).argmax(axis=1) == given.numbers[away]
        lost, won = int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())
        if lost > won and binomtest(lost, lost + won, alternative="greater").pvalue < SURE:
            before, after = (100 * each.mean() for each in right)
            warnings.warn(
                f"HiddenLabelNaiveBayes: EM does harm. Of {len(known)} labelled rows, {after:.0f}% are right when "
                f"their labels are hidden, and {before:.0f}% without EM: the model does not fit the unlabelled rows. "
                "Lower the weight",
                stacklevel=4,
            )
