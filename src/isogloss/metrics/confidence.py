"""How good are the probabilities of links? Precision-recall curves, thresholds and calibration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Links
from isogloss.errors import LinksError, ParameterError
from isogloss.metrics._counts import Keys, check_rows, contained, gold_keys, link_keys, rates

__all__ = ["Calibration", "Curve", "best_threshold", "calibration", "curve", "threshold_at_recall"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """Precision, recall, F and AER of the links with probability of at least each threshold.

    Point 0 is the empty set, with an infinite threshold; from there thresholds fall and sets grow.

    Parameters
    ----------
    threshold, precision, recall, f1, aer : float64[n_points]
    links : int64[n_points]
        The size of each set.
    """

    threshold: Floats
    precision: Floats
    recall: Floats
    f1: Floats
    aer: Floats
    links: NDArray[np.int64]

    @property
    def area(self) -> float:
        """Area under precision over recall, by trapezoids, from recall 0 to the highest recall that is reached."""
        return float(np.sum(np.diff(self.recall) * (self.precision[1:] + self.precision[:-1]) / 2))

    def best_threshold(self) -> float:
        """The threshold of lowest AER; of equal ones the highest, which keeps fewest links."""
        return float(self.threshold[int(np.argmin(self.aer))])

    def threshold_at_recall(self, recall: float) -> float:
        """The highest threshold whose links reach that recall, so that precisions can be compared there."""
        if not 0 <= recall <= 1:
            raise ParameterError(f"threshold_at_recall: recall should be between 0 and 1, not {recall!r}")
        enough = self.recall >= recall
        if not enough.any():
            raise ParameterError(
                f"threshold_at_recall: all links together reach a recall of {self.recall[-1]:.4f}, not {recall}. "
                "Write links of lower probability too, or ask for less"
            )
        return float(self.threshold[int(enough.argmax())])

    def as_dict(self, points: int = 200) -> dict[str, Any]:
        """Plain data for a picture, in percent, thinned to so many points at most.

        Thresholds are as they are; that of the empty set is None.
        """
        at = np.unique(np.linspace(0, len(self.threshold) - 1, min(points, len(self.threshold))).round().astype(int))
        percent = {name: (100 * getattr(self, name)[at]).tolist() for name in ("precision", "recall", "f1", "aer")}
        threshold = [None, *self.threshold[at][1:].tolist()]  # JSON has no infinity
        return {"threshold": threshold, **percent, "links": self.links[at].tolist(), "area": 100 * self.area}


def curve(predicted: Links, gold: Links) -> Curve:
    """The precision-recall curve over all thresholds.

    Parameters
    ----------
    predicted : Links
        With probabilities; as many links as can be had, since those left out can never be reached.
    gold : Links

    Examples
    --------
    >>> links = Links.of([{(0, 0), (1, 1)}])
    >>> from dataclasses import replace
    >>> scored = replace(links, probability=np.array([0.9, 0.4], np.float32))
    >>> curve(scored, Links.of([{(0, 0)}])).precision.tolist()
    [1.0, 1.0, 0.5]
    """
    keys, probability, sure, allowed = _scored(predicted, gold)
    order = np.argsort(-probability, kind="stable")
    probability = probability[order]
    in_sure, in_allowed = contained(keys, sure)[order], contained(keys, allowed)[order]
    last_of_equals = np.flatnonzero(np.append(np.diff(probability) != 0, True))[: len(keys)]
    links = np.concatenate([[0], last_of_equals + 1])
    sure_hits = np.concatenate([[0], np.cumsum(in_sure)[last_of_equals]])
    hits = np.concatenate([[0], np.cumsum(in_allowed)[last_of_equals]])
    whole = np.ones(len(links), np.int64)
    rate = rates(np.stack([links, sure_hits, hits, len(sure) * whole, len(allowed) * whole], axis=1))
    threshold = np.concatenate([[np.inf], probability[last_of_equals]])
    return Curve(threshold, rate["precision"], rate["recall"], rate["f1"], rate["aer"], links)


def best_threshold(predicted: Links, gold: Links) -> float:
    """The threshold of lowest AER: keep the links with ``probability >= threshold``. Infinite if none is worth keeping.

    For tuning on a development set; a threshold chosen on the pairs it is scored on flatters itself.
    """
    return curve(predicted, gold).best_threshold()


def threshold_at_recall(predicted: Links, gold: Links, recall: float) -> float:
    """The highest threshold at which the links with ``probability >= threshold`` reach that recall (0 to 1)."""
    return curve(predicted, gold).threshold_at_recall(recall)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Do links with probability p turn out right in a share p of cases?

    Parameters
    ----------
    error : float
        Expected calibration error, 0 to 1.
    lower, upper : float64[bins]
        Edges of the bins; a probability on an edge belongs to the bin above it, 1 to the last bin.
    count : int64[bins]
        Links in each bin.
    confidence, accuracy : float64[bins]
        Mean probability and share of right links in each bin; NaN where there are none.
    skipped : int
        Links that are possible only, and so neither right nor wrong.
    """

    error: float
    lower: Floats
    upper: Floats
    count: NDArray[np.int64]
    confidence: Floats
    accuracy: Floats
    skipped: int = field(default=0)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, in percent; empty bins have None."""
        rows = zip(self.lower, self.upper, self.count, self.confidence, self.accuracy, strict=True)
        return {
            "error": 100 * self.error,
            "skipped": self.skipped,
            "bins": [
                {
                    "lower": 100 * float(lower),
                    "upper": 100 * float(upper),
                    "count": int(count),
                    "confidence": 100 * float(confidence) if count else None,
                    "accuracy": 100 * float(accuracy) if count else None,
                }
                for lower, upper, count, confidence, accuracy in rows
            ],
        }

    def __str__(self) -> str:
        return f"ECE = {100 * self.error:.2f} | bins:{len(self.count)}|links:{self.count.sum()}|skipped:{self.skipped}"


def calibration(
    predicted: Links,
    gold: Links,
    bins: int = 10,
    *,
    possible: Literal["skip", "right", "wrong"] = "skip",
) -> Calibration:
    r"""Expected calibration error of the probabilities of links, with bins of equal width.

    .. math:: ECE = \sum_b \frac{n_b}{n}\,\bigl|\mathrm{accuracy}_b - \mathrm{confidence}_b\bigr|

    A link is right if it is sure in the gold and wrong if it is not there. The gold does not decide on a link that is
    possible only: it is left out of the count, unless `possible` says otherwise. Only the links that are given are
    judged; those below the threshold of a decoder are not among them.

    Parameters
    ----------
    predicted : Links
        With probabilities between 0 and 1.
    bins : int
    possible : "skip", "right" or "wrong"
        What a link is that the gold has as possible only.

    References
    ----------
    C. Guo et al., On Calibration of Modern Neural Networks, ICML 2017, equation 3.
    """
    if bins < 1:
        raise ParameterError(f"calibration: bins should be a positive integer, not {bins!r}")
    if possible not in ("skip", "right", "wrong"):
        raise ParameterError(f"calibration: possible should be 'skip', 'right' or 'wrong', not {possible!r}")
    keys, probability, sure, allowed = _scored(predicted, gold)
    if len(keys) and not (probability.min() >= 0 and probability.max() <= 1):
        raise LinksError(
            f"calibration: probabilities go from {probability.min()} to {probability.max()}; they should be between "
            "0 and 1. Are they log scores?"
        )
    right, allowed_here = contained(keys, sure), contained(keys, allowed)
    judged = np.ones(len(keys), bool)
    if possible == "right":
        right = allowed_here
    elif possible == "skip":
        judged = right | ~allowed_here
    probability, right = probability[judged], right[judged]
    bin_of = np.minimum((probability * bins).astype(np.int64), bins - 1)
    count = np.bincount(bin_of, minlength=bins)
    mass = np.bincount(bin_of, weights=probability, minlength=bins)
    hits = np.bincount(bin_of, weights=right, minlength=bins)
    error = float(np.abs(hits - mass).sum() / len(right)) if len(right) else 0.0
    full = np.where(count > 0, count, 1)
    edges = np.arange(bins + 1) / bins
    return Calibration(
        error,
        edges[:-1],
        edges[1:],
        count,
        np.where(count > 0, mass / full, np.nan),
        np.where(count > 0, hits / full, np.nan),
        int(len(keys) - judged.sum()),
    )


def _scored(predicted: Links, gold: Links) -> tuple[Keys, Floats, Keys, Keys]:
    """Keys of the predicted links, each once with its highest probability, and keys of sure and of all gold links."""
    check_rows(predicted, gold, "the prediction", "the gold")
    if predicted.probability is None:
        raise LinksError("the links have no probabilities; write them with `isogloss align --scores`")
    (keys, all_gold), _ = link_keys(predicted, gold)
    probability = predicted.probability.astype(float)
    if np.isnan(probability).any():
        at = int(np.isnan(probability).argmax())
        raise LinksError(
            f"link {predicted.source[at]}-{predicted.target[at]} of pair {predicted.pair[at]} has no probability; "
            "every link needs one, written i-j:p"
        )
    if not np.all(keys[1:] > keys[:-1]):
        order = np.lexsort((-probability, keys))
        keys, probability = keys[order], probability[order]
        first = np.append(True, keys[1:] != keys[:-1])
        keys, probability = keys[first], probability[first]
    return keys, probability, *gold_keys(gold, all_gold)
