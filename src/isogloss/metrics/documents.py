"""How good are these labels of documents? Those that are right, with intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import DocumentsError
from isogloss.metrics.scores import Sample, Score

__all__ = ["DocumentScore", "score_documents"]


@dataclass(frozen=True, kw_only=True, repr=False)
class DocumentScore(Score):
    """Documents with the right label, in percent; not a number without documents.

    Parameters
    ----------
    accuracy : float
    labels : mapping of str to dict
        For each label how many documents have it (`documents`), were given it (`found`), and both (`right`).
    """

    accuracy: float
    labels: Mapping[str, Mapping[str, int]] = field(hash=False)

    @property
    def measures(self) -> tuple[str, ...]:
        """`accuracy` alone."""
        return ("accuracy",)

    @property
    def headline(self) -> str:
        """Always `accuracy`."""
        return "accuracy"

    def _further(self) -> dict[str, Any]:
        return {"labels": {label: dict(row) for label, row in self.labels.items()}}


def score_documents(
    predicted: Sequence[str], gold: Sequence[str | None], *, bootstrap: int = 1000, seed: int = 0
) -> DocumentScore:
    """Score labels of the same documents.

    Examples
    --------
    >>> score_documents(["pos", "neg", "pos"], ["pos", "pos", "pos"], bootstrap=0)  # doctest: +ELLIPSIS
    ACCURACY = 66.67 | labels:2|n:3|seed:0|v:...
    """
    if len(predicted) != len(gold):
        raise DocumentsError(f"{len(predicted)} labels for {len(gold)} documents: not the same documents")
    right = np.array([one == other for one, other in zip(predicted, gold, strict=True)], np.int64)
    names = sorted({*predicted, *(label for label in gold if label is not None)})
    there, found = Counter(gold), Counter(predicted)
    hits = Counter(label for label, hit in zip(gold, right.tolist(), strict=True) if hit)

    def rates(counts: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
        all_, hit = np.moveaxis(np.asarray(counts, float), -1, 0)
        return {"accuracy": hit / np.where(all_ > 0, all_, math.nan)}

    sample = Sample(np.stack([np.ones(len(right), np.int64), right], axis=1), rates, bootstrap, seed)
    signature = sample.signed(f"labels:{len(names)}", f"n:{len(gold)}")
    by_label = {name: {"documents": there[name], "found": found[name], "right": hits[name]} for name in names}
    accuracy = sample.percent()["accuracy"] if len(gold) else math.nan
    return DocumentScore(accuracy=accuracy, labels=by_label, n=len(gold), signature=signature, sample=sample)
