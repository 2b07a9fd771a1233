"""What semi-supervised classifiers are given: rows, some of which have labels, as scikit-learn hands them over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError, UsageError
from isogloss.estimator import Estimator
from isogloss.features.sparse import Sparse

__all__ = ["Classifier", "Given", "as_rows", "copy_of"]

Array = NDArray[np.float64]


class Given(NamedTuple):
    """Rows and what is known of them.

    rows : float64[n, d] or scipy.sparse.csr_matrix
    classes : array[n_classes]
        The labels that occur, in order.
    numbers : int64[n]
        The number of the label of each row, −1 for rows without.
    """

    rows: Any
    classes: NDArray[Any]
    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, X: Any, y: ArrayLike | Sequence[Any], place: str) -> Given:
        """−1 and None stand for no label, as in scikit-learn."""
        rows, labels = as_rows(X, place), list(np.asarray(y, object).ravel())
        if len(labels) != rows.shape[0]:
            raise ParameterError(f"{place}: {rows.shape[0]} rows, but {len(labels)} labels")
        none = np.array([label is None or (not isinstance(label, str) and label == -1) for label in labels], bool)
        known = [label for label, without in zip(labels, none, strict=True) if not without]
        if len({isinstance(label, str) for label in known}) > 1 or not all(map(_is_label, known)):
            raise ParameterError(f"{place}: labels should be all whole numbers or all strings")
        classes = np.array(sorted(set(known)))
        if not len(classes):
            raise ParameterError(f"{place}: no row has a label; -1 and None stand for none")
        number_of = {label: number for number, label in enumerate(classes.tolist())}
        numbers = np.full(len(labels), -1, np.int64)
        numbers[~none] = [number_of[label if isinstance(label, str) else int(label)] for label in known]
        return cls(rows, classes, numbers)


def _is_label(label: Any) -> bool:
    whole = isinstance(label, int | float | np.integer | np.floating | np.bool_) and float(label).is_integer()
    return isinstance(label, str) or whole


def as_rows(X: Any, place: str) -> Any:
    """A matrix of floats, dense or sparse as it is given; `Sparse` becomes one of SciPy."""
    from scipy import sparse

    if isinstance(X, Sparse):
        stored = X.values if len(X.values) else np.ones(len(X.indices))
        found = sparse.csr_matrix((stored, X.indices, X.indptr), shape=(X.n_rows, X.n_indicators))
        return sparse.hstack([found, X.dense], format="csr") if X.dense.shape[1] else found
    found = sparse.csr_matrix(X, dtype=np.float64) if sparse.issparse(X) else np.asarray(X, np.float64)
    values = found.data if sparse.issparse(found) else found
    if found.ndim != 2 or not np.isfinite(values).all():
        raise ParameterError(f"{place}: rows should be a matrix of finite numbers, a row for each item")
    return found


def copy_of(base: Any) -> Any:
    """A classifier with the same options that has learnt nothing, as scikit-learn's `clone` makes it."""
    return type(base)(**base.get_params(deep=False))


class Classifier(Estimator):
    """What semi-supervised classifiers have in common: ``fit(X, y)`` with −1 or None for rows without a label.

    They keep to the conventions of scikit-learn, whose pipelines and searches take them.

    Attributes
    ----------
    classes_ : array[n_classes]
        Labels in order, as `predict_proba` has them.
    """

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of a member of its pipelines; nobody else calls this."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier", target_tags=TargetTags(required=True), classifier_tags=ClassifierTags(),
            input_tags=InputTags(sparse=True),
        )  # fmt: skip

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from rows, some of which have labels.

        Parameters
        ----------
        X : float64[n, d], sparse matrix or Sparse
        y : int64[n], or sequence of str or None
            −1 and None stand for no label.
        """
        self.check_params()
        given = Given.of(X, y, type(self).__name__)
        self.classes_, self.n_features_in_ = given.classes, given.rows.shape[1]
        self._learn(given)
        return self

    def _learn(self, given: Given) -> None:
        raise NotImplementedError

    def _posteriors(self, rows: Any) -> Array:
        raise NotImplementedError

    def predict_proba(self, X: Any) -> Array:
        """float64[n, n_classes]: the posterior of each label, in the order of `classes_`."""
        if not hasattr(self, "classes_"):
            raise UsageError(f"{type(self).__name__}: nothing has been learnt; call fit first")
        rows = as_rows(X, type(self).__name__)
        if rows.shape[1] != self.n_features_in_:
            raise ParameterError(
                f"{type(self).__name__}: rows have {rows.shape[1]} features, but {self.n_features_in_} were learnt"
            )
        return self._posteriors(rows)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each row."""
        found = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[found])

    def score(self, X: Any, y: ArrayLike) -> float:
        """The share of rows that get the right label, from 0 to 1, as in scikit-learn."""
        return float((self.predict(X) == np.asarray(y)).mean())
