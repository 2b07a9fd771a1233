"""How good are these roles? Precision, recall and F1 of arguments, with and without their labels, and senses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.propositions import Propositions
from isogloss.errors import TreebankError
from isogloss.metrics._resampling import Difference, paired
from isogloss.metrics.scores import F1Score, Sample, precision_recall

__all__ = ["RoleComparison", "RoleScore", "compare_roles", "score_roles"]


@dataclass(frozen=True, kw_only=True, repr=False)
class RoleScore(F1Score):
    """Arguments that are right, in percent.

    Parameters
    ----------
    precision, recall, f1 : float
        Of arguments with their roles.
    unlabelled : float
        F1 of arguments, whatever their roles.
    senses : float
        Predicates whose sense is right.
    semantic : float
        F1 of arguments with their roles and of senses together, as CoNLL-2009 has it: a sense is one more argument.
    arguments, found, right : int
    """

    unlabelled: float
    senses: float
    semantic: float
    arguments: int
    right: int

    @property
    def measures(self) -> tuple[str, ...]:
        """All of them."""
        return ("precision", "recall", "f1", "unlabelled", "senses", "semantic")

    def _shown(self) -> tuple[str, ...]:
        return ("f1", "unlabelled", "senses")

    def _further(self) -> dict[str, Any]:
        return {"average": "micro", **{name: self[name] for name in ("arguments", "found", "right")}}


@dataclass(frozen=True)
class RoleComparison(Difference):
    """The difference of two systems that looked for arguments in the same sentences."""

    measure: str = "f1"

    def __str__(self) -> str:
        return self.said_of(self.measure)


def score_roles(predicted: Propositions, gold: Propositions, *, bootstrap: int = 1000, seed: int = 0) -> RoleScore:
    """Score the arguments of the same predicates.

    Parameters
    ----------
    predicted, gold : Propositions
        Of the same sentences and predicates.
    bootstrap, seed
        As in `isogloss.metrics.score_trees`.

    References
    ----------
    Hajič et al., The CoNLL-2009 shared task, CoNLL 2009, section 2.

    Examples
    --------
    >>> from isogloss.data import Treebank
    >>> words = Treebank.of([[("She",), ("sleeps",), ("well",)]])
    >>> gold = Propositions.of(words, [[(1, "sleep.01", ((0, "A0"), (2, "AM")))]])
    >>> score = score_roles(gold.with_predicates([[(1, "sleep.01", ((0, "A1"),))]]), gold, bootstrap=0)
    >>> score.f1, round(score.unlabelled, 2), score.senses, score.semantic
    (0.0, 66.67, 100.0, 40.0)
    """
    counts = _counts(predicted, gold)
    sample = Sample(counts, _rates, bootstrap, seed)
    right, _, found, wanted, *_ = counts.sum(axis=0).tolist()
    signature = sample.signed("roles:words", f"n:{len(gold)}", f"predicates:{gold.n_predicates}", f"arguments:{wanted}")
    return RoleScore(
        **sample.percent(), arguments=wanted, found=found, right=right, n=len(gold), signature=signature, sample=sample
    )


def compare_roles(
    first: Propositions,
    second: Propositions,
    gold: Propositions,
    *,
    measure: str = "f1",
    resamples: int = 10_000,
    seed: int = 0,
) -> RoleComparison:
    """A measure of two systems on the same sentences: their difference in percent, its interval and its p-value."""
    both = np.stack([_counts(system, gold) for system in (first, second)], axis=1)
    found = paired(both, lambda sums: _rates(sums)[measure], resamples, seed, "compare_roles")
    return RoleComparison(**found, measure=measure)


def _counts(predicted: Propositions, gold: Propositions) -> NDArray[np.int64]:
    """int64[n_sentences, 6]: right with and without roles, found and wanted arguments; right senses, predicates."""
    if len(predicted) != len(gold) or not np.array_equal(predicted.words, gold.words):
        raise TreebankError(
            f"{predicted.name} and {gold.name} have other sentences or predicates; both should have the same"
        )
    counts = np.zeros((len(gold), 6), np.int64)
    for s in range(len(gold)):
        for (_, sense, found), (_, truth, wanted) in zip(predicted.predicates(s), gold.predicates(s), strict=True):
            counts[s, 0] += len(set(found) & set(wanted))
            counts[s, 1] += len({word for word, _ in found} & {word for word, _ in wanted})
            counts[s, 2:4] += len(found), len(wanted)
            counts[s, 4:] += sense == truth, 1
    return counts


def _rates(counts: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
    right, bare, found, wanted, senses, predicates = np.moveaxis(np.asarray(counts, np.float64), -1, 0)
    whole = np.maximum(found + wanted, 1)
    return {
        **precision_recall(np.stack([right, found, wanted], axis=-1)),
        "unlabelled": 2 * bare / whole,
        "senses": senses / np.maximum(predicates, 1),
        "semantic": 2 * (right + senses) / np.maximum(found + wanted + 2 * predicates, 1),
    }
