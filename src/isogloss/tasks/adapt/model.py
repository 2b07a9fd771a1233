"""What a document classifier sees of documents, and what it has learnt of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.labelled import LabelledDocuments
from isogloss.data.rows import gathered
from isogloss.features.sparse import Sparse
from isogloss.layout import Layout, Numbers, Strings, check
from isogloss.learners.linear import LinearWeights, fit_linear, naive_bayes_weights, softmax
from isogloss.tasks.adapt.correspondence import Places
from isogloss.tasks.adapt.seen import Seen

__all__ = [
    "Corrected", "FittedClassifier", "Rule", "calibrate", "calibrated", "chosen_rows", "joined_rows", "scaled",
]  # fmt: skip

Array = NDArray[np.float64]
WEAKEST = 1e-3
"""The least that scores of two labels count for."""
_LAYOUT: Layout = {
    "labels": Strings("n_labels", distinct=True, least=2, cells=True),
    "scale": Numbers("float64", ("n_features",), least=0),
    "table": Numbers("float32", ("n_features", "n_places")),
    "centre": Numbers("float64", ("n_places",)),
    "spread": Numbers("float64", ("n_places",), least=1e-30),
    "weights": Numbers("float64", ("n_scores", "n_seen")),
    "bias": Numbers("float64", ("n_scores",)),
    "slopes": Numbers("float64", ("n_scores", "n_scores")),
    "offsets": Numbers("float64", ("n_scores",)),
}
_CORRECTED: Layout = {
    "corrected_weights": Numbers("float64", ("n_scores", "n")),
    "corrected_bias": Numbers("float64", ("n_scores",)),
    "corrected_by": Numbers("uint8", (1,), below=2),
}


def scaled(rows: Sparse, scale: Array, dense: Array | None = None) -> Sparse:
    """The same rows with each feature times its scale, of length 1, and others beside them; rows of zeros stay."""
    values = scale[rows.indices] * (rows.values if len(rows.values) else 1.0)
    of = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    lengths = np.sqrt(np.bincount(of, values**2, minlength=rows.n_rows))
    values = values / np.where(lengths > 0, lengths, 1.0)[of]
    return Sparse(rows.indptr, rows.indices, rows.n_indicators, values, dense)


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
    places : Places
        What stands beside them: where documents lie by their words.
    linear : LinearWeights
        Of features, then of places.
    """

    scale: Array
    places: Places
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
        places: Places | None = None,
        places_l2: float = 0.0,
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
        beside = Places.none(rows.n_indicators) if places is None else places
        bias = np.zeros(1 if targets.shape[1] == 2 else targets.shape[1]) if centred else None
        penalty = np.append(np.full(len(scale), l2), np.full(len(beside.centre), places_l2))
        seen = scaled(rows, scale, beside.of(rows))
        return cls(scale, beside, fit_linear(seen, targets, counts=counts, loss=loss, penalty=penalty, bias=bias))

    def seen(self, rows: Sparse, *more: Array) -> Sparse:
        """Rows as the rule sees them."""
        return scaled(rows, self.scale, np.concatenate([self.places.of(rows), *more], axis=1))

    def scores(self, rows: Sparse) -> Array:
        """float64[n, n_labels]."""
        return self.linear.scores(self.seen(rows))


@dataclass(frozen=True, eq=False)
class Corrected:
    r"""A rule that was corrected with a few labels of the target domain.

    .. math:: \min_{w, v} \frac1n \sum_j L(w \cdot x_j + v \cdot \theta x_j, y_j) + \lambda \|w\|^2
        + \mu \|v - v_s\|^2

    What the source knows of places stays, unless labels speak against it. What it knows of words comes in by one more
    feature of x, which is either the label that the rule of the source gives [1]_, or what its weights of words say
    (score), whose own weight is drawn to 1: without labels, the rule is then that of the source. With the label, places
    have their say twice, and words no more than one of equal size in every document.

    rule : Rule
        Of the source.
    linear : LinearWeights
        Of features, places, and what the source says: one number for two labels, and one for each of more. Labels are
        +1 and −1, or 1 and 0.
    by : "score" or "label"

    References
    ----------
    .. [1] Blitzer, Dredze and Pereira, ACL 2007, section 5.
    """

    rule: Rule
    linear: LinearWeights
    by: str = "score"

    @classmethod
    def learnt(
        cls, rule: Rule, rows: Sparse, targets: Array, *, loss: str, l2: float, places_l2: float, by: str = "score"
    ) -> Corrected:
        """Corrected by the labels of some rows; without any, the source decides, and v stays."""
        marks = _marks(rule, rows, by)
        n, h, wide = len(rule.scale), len(rule.places.centre), marks.shape[1]
        penalty = np.concatenate([np.full(n, l2), np.full(h, places_l2), np.full(wide, l2)])
        centre = np.zeros((len(rule.linear.bias), n + h + wide))
        centre[:, n : n + h] = rule.linear.weights[:, n:]
        if by == "score" or not rows.n_rows:
            centre[:, n + h :] = np.eye(len(centre))
        bias = np.zeros(len(centre))  # a bias has no penalty: learnt from few labels it would outweigh all the rest
        if not rows.n_rows:
            return cls(rule, LinearWeights(centre, bias), by)
        options: dict[str, Any] = {"loss": loss, "penalty": penalty, "centre": centre, "bias": bias}
        return cls(rule, fit_linear(rule.seen(rows, marks), targets, **options), by)

    def scores(self, rows: Sparse) -> Array:
        """float64[n, n_labels]."""
        return self.linear.scores(self.rule.seen(rows, _marks(self.rule, rows, self.by)))


def _marks(rule: Rule, rows: Sparse, by: str) -> Array:
    """What the source says of each row, as features."""
    scores = rule.scores(rows)
    if by == "score":
        words = rule.linear.weights.copy()
        words[:, len(rule.scale) :] = 0.0
        said = LinearWeights(words, rule.linear.bias).scores(rule.seen(rows))
        return np.asarray(said[:, 1:] - said[:, :1] if said.shape[1] == 2 else said)
    best = np.eye(scores.shape[1])[scores.argmax(axis=1)]
    return np.asarray(best[:, 1:] - best[:, :1] if scores.shape[1] == 2 else best)


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """What `DocumentClassifier` has learnt.

    labels : tuple of str
    features : Seen
    rule : Rule or Corrected
    calibration : LinearWeights
        From scores to log posteriors, up to a constant.
    """

    labels: tuple[str, ...]
    features: Seen
    rule: Rule | Corrected
    calibration: LinearWeights

    def scores(self, documents: LabelledDocuments, counts: bool) -> Array:
        """float64[n, n_labels]: log posteriors up to a constant for each document."""
        return calibrated(self.calibration, self.rule.scores(self.features.matrix(documents, counts=counts)))

    def posteriors(self, documents: LabelledDocuments, counts: bool) -> Array:
        """float64[n, n_labels]."""
        return softmax(self.scores(documents, counts))

    # --- keeping

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        from isogloss.store import pack_strings

        blob, offsets = pack_strings(self.labels)
        rule = self.rule.rule if isinstance(self.rule, Corrected) else self.rule
        more = dict[str, NDArray[Any]]()
        if isinstance(self.rule, Corrected):
            more = {
                "corrected_weights": self.rule.linear.weights, "corrected_bias": self.rule.linear.bias,
                "corrected_by": np.array([self.rule.by == "score"], np.uint8),
            }  # fmt: skip
        return {
            "labels": blob, "labels_offsets": offsets, "scale": rule.scale, "weights": rule.linear.weights,
            "bias": rule.linear.bias, "slopes": self.calibration.weights, "offsets": self.calibration.bias,
            "table": rule.places.table, "centre": rule.places.centre, "spread": rule.places.spread, **more,
            **self.features.to_arrays(),
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], columns: Sequence[int]) -> FittedClassifier:
        """The inverse of `to_arrays`; `columns` are those that are seen on their own."""
        features = Seen.from_arrays(arrays, columns)
        found = check(arrays, _LAYOUT, "the saved classifier", {"n_features": len(features)})
        labels, bias, n = tuple(found["labels"]), found["bias"], len(features)
        wide = n + len(found["centre"])
        if len(bias) != (1 if len(labels) == 2 else len(labels)) or found["weights"].shape[1] != wide:
            raise ValueError(f"there are {len(labels)} labels, and weights {list(found['weights'].shape)}")
        places = Places(found["table"], found["centre"], found["spread"])
        source = Rule(found["scale"], places, LinearWeights(found["weights"], bias))
        rule: Rule | Corrected = source
        if "corrected_weights" in arrays:
            more = check(arrays, _CORRECTED, "the saved classifier", {"n_scores": len(bias), "n": wide + len(bias)})
            by = "score" if int(more["corrected_by"][0]) else "label"
            rule = Corrected(source, LinearWeights(more["corrected_weights"], more["corrected_bias"]), by)
        return cls(labels, features, rule, LinearWeights(found["slopes"], found["offsets"]))


def calibrated(calibration: LinearWeights, scores: Array) -> Array:
    """float64[n, n_labels]: log posteriors, up to a constant, of scores."""
    return calibration.scores(_as_rows(scores))


def calibrate(scores: Array, targets: Array, *, centred: bool = False, decided: bool = False) -> LinearWeights:
    """How sure scores are, learnt from those of documents that they were not learnt from (Platt scaling).

    With `centred`, scores of 0 leave labels as probable as they are among the targets. With `decided`, equal scores
    make labels equally probable: a few documents say little about where the border between two labels lies. Scores
    that seem to speak for the wrong of two labels, as those of a few documents may by chance, count very little, but
    are not turned round.
    """
    logs = np.log(np.maximum(targets.mean(axis=0), 1e-300))
    known = logs[1:] - logs[:1] if len(logs) == 2 else logs
    known = np.zeros_like(known) if decided else known
    bias = known if centred or decided else None
    found = fit_linear(_as_rows(scores), targets, loss="logistic", penalty=1e-4, tolerance=1e-9, bias=bias)
    turned = len(found.bias) == 1 and found.weights[0, 0] < WEAKEST
    return LinearWeights([[WEAKEST]], known) if turned else found


def _as_rows(scores: Array) -> Sparse:
    """Scores as dense features: all of them or, of two labels, their difference."""
    dense = scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores
    return Sparse(np.zeros(len(scores) + 1, np.int64), np.zeros(0, np.int32), 0, dense=dense)
