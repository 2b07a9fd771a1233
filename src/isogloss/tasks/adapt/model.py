"""What a document classifier sees of documents, and what it has learnt of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Text
from isogloss.data.rows import gathered
from isogloss.features.ngrams import NGrams
from isogloss.features.sparse import Sparse
from isogloss.layout import Layout, Numbers, Strings, check
from isogloss.learners.linear import LinearWeights, fit_linear, naive_bayes_weights, softmax

__all__ = ["FittedClassifier", "Rule", "chosen_rows", "joined_rows", "scaled"]

Array = NDArray[np.float64]
_LAYOUT: Layout = {
    "labels": Strings("n_labels", distinct=True, least=2, cells=True),
    "scale": Numbers("float64", ("n_features",), least=0),
    "weights": Numbers("float64", ("n_scores", "n_features")),
    "bias": Numbers("float64", ("n_scores",)),
    "slopes": Numbers("float64", ("n_scores", "n_scores")),
    "offsets": Numbers("float64", ("n_scores",)),
}


def scaled(rows: Sparse, scale: Array) -> Sparse:
    """The same rows with each feature times its scale, of length 1; rows of zeros stay."""
    values = scale[rows.indices] * (rows.values if len(rows.values) else 1.0)
    of = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    lengths = np.sqrt(np.bincount(of, values**2, minlength=rows.n_rows))
    return Sparse(rows.indptr, rows.indices, rows.n_indicators, values / np.where(lengths > 0, lengths, 1.0)[of])


def joined_rows(one: Sparse, other: Sparse) -> Sparse:
    """The rows of both, one after the other."""
    indptr = np.concatenate([one.indptr, one.indptr[-1] + other.indptr[1:]])
    values = np.concatenate([one.values, other.values]) if len(one.values) or len(other.values) else None
    dense = np.concatenate([one.dense, other.dense])
    return Sparse(indptr, np.concatenate([one.indices, other.indices]), one.n_indicators, values, dense)


def chosen_rows(rows: Sparse, numbers: NDArray[np.int64]) -> Sparse:
    """Some of the rows."""
    indptr, at = gathered(rows.indptr, numbers)
    values = rows.values[at] if len(rows.values) else None
    return Sparse(indptr, rows.indices[at], rows.n_indicators, values, rows.dense[numbers])


@dataclass(frozen=True, eq=False)
class Rule:
    """How rows become scores of labels.

    scale : float64[n_features]
        What features are multiplied by before rows are brought to length 1.
    linear : LinearWeights
    """

    scale: Array
    linear: LinearWeights

    @classmethod
    def learnt(
        cls,
        rows: Sparse,
        targets: Array,
        counts: Array,
        *,
        weighting: str,
        loss: str,
        l2: float,
        columns: Any = None,
        centred: bool = False,
    ) -> Rule:
        """The rule of least loss; with `columns`, booleans, the other features count nothing.

        With `centred`, the scores of a document without features are 0.
        """
        scale = np.ones(rows.n_indicators)
        if weighting == "naive-bayes":
            each = naive_bayes_weights(rows, targets, counts)
            scale = np.sqrt((each**2).mean(axis=0))  # with one score, |r|
        if columns is not None:
            scale = np.where(columns, scale, 0.0)
        bias = np.zeros(1 if targets.shape[1] == 2 else targets.shape[1]) if centred else None
        return cls(scale, fit_linear(scaled(rows, scale), targets, counts=counts, loss=loss, penalty=l2, bias=bias))

    def scores(self, rows: Sparse) -> Array:
        """float64[n, n_labels]."""
        return self.linear.scores(scaled(rows, self.scale))


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """What `DocumentClassifier` has learnt.

    labels : tuple of str
    features : NGrams
    rule : Rule
    calibration : LinearWeights
        From scores to log posteriors, up to a constant.
    """

    labels: tuple[str, ...]
    features: NGrams
    rule: Rule
    calibration: LinearWeights

    def scores(self, text: Text, counts: bool) -> Array:
        """float64[n, n_labels]: log posteriors up to a constant for each document."""
        return calibrated(self.calibration, self.rule.scores(self.features.matrix(text, counts=counts)))

    def posteriors(self, text: Text, counts: bool) -> Array:
        """float64[n, n_labels]."""
        return softmax(self.scores(text, counts))

    # --- keeping

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        from isogloss.store import pack_strings

        blob, offsets = pack_strings(self.labels)
        return {
            "labels": blob, "labels_offsets": offsets, "scale": self.rule.scale, "weights": self.rule.linear.weights,
            "bias": self.rule.linear.bias, "slopes": self.calibration.weights, "offsets": self.calibration.bias,
            **self.features.to_arrays(),
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> FittedClassifier:
        """The inverse of `to_arrays`."""
        features = NGrams.from_arrays(arrays)
        found = check(arrays, _LAYOUT, "the saved classifier", {"n_features": len(features)})
        labels = tuple(found["labels"])
        if len(found["bias"]) != (1 if len(labels) == 2 else len(labels)):
            raise ValueError(f"there are {len(labels)} labels, and {len(found['bias'])} rows of weights")
        rule = Rule(found["scale"], LinearWeights(found["weights"], found["bias"]))
        return cls(labels, features, rule, LinearWeights(found["slopes"], found["offsets"]))

    def with_calibration(self, calibration: LinearWeights) -> FittedClassifier:
        """The same classifier, otherwise sure of itself."""
        return replace(self, calibration=calibration)


def calibrated(calibration: LinearWeights, scores: Array) -> Array:
    """float64[n, n_labels]: log posteriors, up to a constant, of scores."""
    return calibration.scores(_as_rows(scores))


def calibrate(scores: Array, targets: Array, *, centred: bool = False) -> LinearWeights:
    """How sure scores are, learnt from those of documents that they were not learnt from (Platt scaling).

    With `centred`, scores of 0 leave labels as probable as they are among the targets.
    """
    bias = None
    if centred:
        logs = np.log(targets.mean(axis=0))
        bias = logs[1:] - logs[:1] if len(logs) == 2 else logs
    return fit_linear(_as_rows(scores), targets, loss="logistic", penalty=1e-4, tolerance=1e-9, bias=bias)


def _as_rows(scores: Array) -> Sparse:
    """Scores as dense features: all of them or, of two labels, their difference."""
    dense = scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores
    return Sparse(np.zeros(len(scores) + 1, np.int64), np.zeros(0, np.int32), 0, dense=dense)
