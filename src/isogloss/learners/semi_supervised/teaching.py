r"""Classifiers that label for themselves, or for each other: self-training and co-training.

Self-training takes the labels that a classifier is surest of, and learns again. Co-training has two classifiers, each
of which sees other features (a *view*), and each takes turns at labelling the rows that it is surest of for both. That
works where each view is enough to tell labels apart, and where the views' errors are independent given the label: what
one classifier is sure of is then no more than chance to the other. `view_diagnosis` asks the labelled rows for both.

References
----------
Blum and Mitchell, Combining Labeled and Unlabeled Data with Co-Training, COLT 1998. Blitzer and Zhu, Semi-supervised
Learning for Natural Language Processing, ACL-08 tutorial.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.estimator import option
from isogloss.learners.semi_supervised.given import Array, Classifier, Given, copy_of
from isogloss.learners.semi_supervised.hidden_labels import HiddenLabelNaiveBayes

__all__ = ["CoTraining", "SelfTraining", "ViewDiagnosis", "view_diagnosis"]

Numbers = NDArray[np.int64]
FOLDS = 5
FEWEST = 30
"""Labelled rows that can say something of views."""
DRIFT = 0.25
"""Self-training warns when the share of a label moves by more than this."""


def _taught(base: Any, rows: Any, numbers: Numbers) -> Any:
    """A classifier that has learnt from these rows; without one of ours or of the user's, naive Bayes."""
    made = HiddenLabelNaiveBayes(check=False) if base is None else copy_of(base)
    return made.fit(rows, numbers)


def _judged(taught: Any, rows: Any, n_classes: int) -> Array:
    """float64[n, n_classes]: posteriors; a label that was not among those learnt from has 0."""
    found = np.zeros((rows.shape[0], n_classes))
    found[:, np.asarray(taught.classes_, np.int64)] = taught.predict_proba(rows)
    return found


class SelfTraining(Classifier):
    """A classifier that learns again from the labels that it was sure of.

    Parameters
    ----------
    base : classifier, optional
        With `fit`, `predict_proba` and `get_params`, as in scikit-learn; naive Bayes if not given.
    threshold : float
        Unlabelled rows whose best label has this posterior or more are learnt from. Above 1, none are.
    rounds : int
        Labels are given anew in each round, so that early errors can be taken back.

    Attributes
    ----------
    n_added_ : tuple of int
        How many unlabelled rows had a label in each round.

    Examples
    --------
    >>> X = [[3, 0, 1, 0], [0, 3, 0, 1], [1, 0, 6, 0], [0, 1, 0, 6], [0, 0, 3, 0]]
    >>> found = SelfTraining(threshold=0.6).fit(X, ["a", "b", None, None, None])
    >>> found.predict([[0, 0, 1, 0]]).tolist(), found.n_added_
    (['a'], (3, 3))
    """

    base: Any = option(default=None, kind=object, help="The classifier; naive Bayes if not given.")
    threshold: float = option(default=0.9, least=0, help="How sure a label has to be to be learnt from.")
    rounds: int = option(default=10, least=1, help="Rounds, at most; it ends when labels stay the same.")

    def _learn(self, given: Given) -> None:
        known, hidden = np.flatnonzero(given.numbers >= 0), np.flatnonzero(given.numbers < 0)
        numbers, counts = given.numbers.copy(), list[int]()
        self._taught = _taught(self.base, given.rows[known], given.numbers[known])
        for _ in range(self.rounds if len(hidden) else 0):
            posteriors = _judged(self._taught, given.rows[hidden], len(given.classes))
            fresh = np.where(posteriors.max(axis=1) >= self.threshold, posteriors.argmax(axis=1), -1)
            counts.append(int((fresh >= 0).sum()))
            same = np.array_equal(fresh, numbers[hidden])
            numbers[hidden] = fresh
            if same or not counts[-1]:
                break
            used = np.flatnonzero(numbers >= 0)
            self._taught = _taught(self.base, given.rows[used], numbers[used])
        self.n_added_ = tuple(counts)
        self._warn_of_drift(given, numbers)

    def _warn_of_drift(self, given: Given, numbers: Numbers) -> None:
        """Warn if one label swallows the unlabelled rows."""
        k, added = len(given.classes), numbers[(given.numbers < 0) & (numbers >= 0)]
        if not len(added):
            return
        before = np.bincount(given.numbers[given.numbers >= 0], minlength=k) / (given.numbers >= 0).sum()
        after = np.bincount(added, minlength=k) / len(added)
        worst = int(np.abs(after - before).argmax())
        if abs(after[worst] - before[worst]) > DRIFT:
            warnings.warn(
                f"SelfTraining: label {given.classes[worst]!s} is {100 * after[worst]:.0f}% of what was labelled, and "
                f"{100 * before[worst]:.0f}% of what had labels. If that is not so, keep labels to their shares: "
                "isogloss.learners.semi_supervised.with_proportions",
                stacklevel=4,
            )

    def _posteriors(self, rows: Any) -> Array:
        return _judged(self._taught, rows, len(self.classes_))


class ViewDiagnosis(NamedTuple):
    """What labelled rows say of two views, by classifiers that did not learn from them.

    accuracies : (float, float)
        Of each view alone, from 0 to 1.
    majority : float
        The share of the most frequent label.
    correlation : float
        Of the two views' errors given the label, from −1 to 1: the correlation within each label, weighed by its rows.
    margin : float
        Two standard errors of a correlation of 0.
    """

    accuracies: tuple[float, float]
    majority: float
    correlation: float
    margin: float

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against co-training."""
        said = [
            f"view {k} alone is right for {100 * accuracy:.0f}% of the labelled rows, and the most frequent label is "
            f"{100 * self.majority:.0f}% of them: the view is not enough to tell labels apart"
            for k, accuracy in enumerate(self.accuracies, 1)
            if accuracy <= self.majority
        ]
        if self.correlation > self.margin:
            said.append(
                f"errors of the two views go together (correlation {self.correlation:.2f} given the label): the views "
                "are not independent, and what one labels teaches the other little"
            )
        return tuple(said)


def view_diagnosis(X: Any, y: Any, views: Sequence[Any], *, base: Any = None, seed: int = 0) -> ViewDiagnosis:
    """Ask labelled rows whether two views are enough by themselves, and independent given the label.

    Parameters
    ----------
    X, y
        As for `CoTraining.fit`; rows without labels are passed over.
    views : two sequences of int
        Columns of each view.
    base : classifier, optional
    seed : int
        Of the order of rows in five folds.

    Examples
    --------
    >>> y = np.arange(40) % 2
    >>> X = np.stack([y, 1 - y, y, 1 - y], axis=1)
    >>> view_diagnosis(X, y, [[0, 1], [2, 3]]).warnings
    ()
    """
    given = Given.of(X, y, "view_diagnosis")
    known, parts = np.flatnonzero(given.numbers >= 0), _parts(views, given.rows.shape[1], "view_diagnosis")
    numbers, k = given.numbers[known], len(given.classes)
    folds = np.random.default_rng(seed).permutation(len(known)) % FOLDS
    wrong = np.ones((2, len(known)), bool)
    for fold in np.unique(folds):
        there, away = folds != fold, folds == fold
        if not there.any():
            continue
        for view, columns in enumerate(parts):
            rows = given.rows[known][:, columns]
            taught = _taught(base, rows[there], numbers[there])
            wrong[view, away] = _judged(taught, rows[away], k).argmax(axis=1) != numbers[away]
    shares = np.bincount(numbers, minlength=k) / len(known)
    together = 0.0
    for label in range(k):
        one, other = (each[numbers == label].astype(float) for each in wrong)
        if len(one) and one.std() > 0 and other.std() > 0:
            together += float(shares[label] * np.corrcoef(one, other)[0, 1])
    accuracies = (1 - float(wrong[0].mean()), 1 - float(wrong[1].mean()))
    return ViewDiagnosis(accuracies, float(shares.max()), together, 2 / float(np.sqrt(len(known))))


def _parts(views: Any, wide: int, place: str) -> tuple[Numbers, Numbers]:
    """The columns of two views."""
    try:
        one, other = (np.asarray(view) for view in views)
    except (TypeError, ValueError):
        raise ParameterError(f"{place}: views should be two lists of columns, not {views!r:.80}") from None
    for each in (one, other):
        if each.dtype.kind not in "iu" and each.size:  # booleans are a mask, and would be read as columns 0 and 1
            raise ParameterError(f"{place}: views should be two lists of columns by number, not {views!r:.80}")
        if each.ndim != 1 or not len(each) or each.min() < 0 or each.max() >= wide:
            raise ParameterError(f"{place}: each view should list columns from 0 to {wide - 1}, and one or more")
    return one.astype(np.int64), other.astype(np.int64)


class CoTraining(Classifier):
    r"""Two classifiers that see other features and label for each other.

    In each round, each classifier labels the rows of a small pool that it is surest of, `add` of each label, for both;
    the pool is filled up again from the other unlabelled rows. Predictions multiply what both say,
    :math:`p(y \mid x) \propto p_1(y \mid x^{(1)})\, p_2(y \mid x^{(2)})`.

    Parameters
    ----------
    views : two sequences of int
        Columns of each view. They may overlap; with two equal views this is self-training.
    base : classifier, optional
        With `fit`, `predict_proba` and `get_params`, as in scikit-learn; naive Bayes if not given.
    add : int, or sequence of int
        How many rows a classifier labels in a round: of each label, or for each label in the order of `classes_`.
    pool : int
        Rows that are there to be labelled.
    rounds : int
    check : bool
        Whether the labelled rows, if there are 30 or more, are asked about the views (`view_diagnosis`), with a warning
        if these are not enough by themselves or not independent.
    seed : int
        Of the order in which rows come into the pool.

    Attributes
    ----------
    added_ : tuple of int64[n_added]
        The rows that were labelled in each round, in order; those of the first classifier come first.
    given_ : int64[n]
        The number of the label of each row in the end, −1 for rows that never got one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(300) % 2
    >>> X = rng.poisson(np.where(np.stack([y, 1 - y] * 2, axis=1), 3.0, 1.0))
    >>> found = CoTraining([[0, 1], [2, 3]]).fit(X, [*y[:6], *[-1] * 294])
    >>> len(np.concatenate(found.added_)), bool(found.score(X, y) > 0.9)
    (120, True)
    """

    views: Any = option(default=None, kind=object, kw_only=False, help="The columns of each of two views.")
    base: Any = option(default=None, kind=object, help="The classifier of each view; naive Bayes if not given.")
    add: Any = option(default=1, kind=(int, list, tuple), help="Rows that a classifier labels in a round, by label.")
    pool: int = option(default=75, least=1, help="Rows that are there to be labelled.")
    rounds: int = option(default=30, least=1, help="Rounds, at most.")
    check: bool = option(default=True, help="Ask the labelled rows about the views, and warn.")
    seed: int = option(default=0, least=0, help="Seed of the order in which rows come into the pool.")

    def _learn(self, given: Given) -> None:
        k, views = len(given.classes), _parts(self.views, given.rows.shape[1], "CoTraining")
        wanted = [self.add] * k if isinstance(self.add, int) else list(self.add)
        if len(wanted) != k or any(not isinstance(n, int) or n < 0 for n in wanted) or not sum(wanted):
            raise ParameterError(f"CoTraining: add should be a number of rows for each of {k} labels, not {self.add!r}")
        numbers = given.numbers.copy()
        if self.check and len(known := np.flatnonzero(numbers >= 0)) >= FEWEST:
            told = view_diagnosis(given.rows[known], numbers[known], views, base=self.base, seed=self.seed)
            for line in told.warnings:
                warnings.warn(f"CoTraining: {line}", stacklevel=4)
        waiting = np.random.default_rng(self.seed).permutation(np.flatnonzero(numbers < 0)).tolist()
        pool, waiting, added = waiting[: self.pool], waiting[self.pool :], list[Numbers]()
        pair = self._pair(given, numbers, views)
        for _ in range(self.rounds):
            if not pool:
                break
            fresh = list[int]()
            for taught, columns in zip(pair, views, strict=True):
                posteriors = _judged(taught, given.rows[pool][:, columns], k) if pool else np.zeros((0, k))
                for label, count in enumerate(wanted):
                    free = [at for at in np.argsort(-posteriors[:, label], kind="stable") if numbers[pool[at]] < 0]
                    for at in free[:count]:
                        numbers[pool[at]] = label
                        fresh.append(pool[at])
            pool = [row for row in pool if numbers[row] < 0]
            more = min(self.pool - len(pool), len(waiting))
            pool, waiting = pool + waiting[:more], waiting[more:]
            added.append(np.array(fresh, np.int64))
            pair = self._pair(given, numbers, views)
        self._pair_taught, self._views = pair, views
        self.added_, self.given_ = tuple(added), numbers

    def _pair(self, given: Given, numbers: Numbers, views: tuple[Numbers, Numbers]) -> tuple[Any, Any]:
        known = np.flatnonzero(numbers >= 0)
        one, other = (_taught(self.base, given.rows[known][:, columns], numbers[known]) for columns in views)
        return one, other

    def _posteriors(self, rows: Any) -> Array:
        k = len(self.classes_)
        pairs = zip(self._pair_taught, self._views, strict=True)
        joint = np.multiply(*(np.maximum(_judged(taught, rows[:, columns], k), 1e-300) for taught, columns in pairs))
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))
