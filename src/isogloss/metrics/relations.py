"""How good are these relations? Precision, recall and F1 of labelled pairs of names, micro- or macro-averaged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.mentions import Mentions
from isogloss.errors import MentionsError, ParameterError
from isogloss.metrics._resampling import Difference, paired
from isogloss.metrics.scores import F1Score, Sample, precision_recall

__all__ = ["AVERAGES", "RelationComparison", "RelationScore", "average_for", "compare_relations", "score_relations"]

AVERAGES = ("micro", "macro")
"""Over all relations together; or the mean over labels, as SemEval-2010 task 8 has it."""


@dataclass(frozen=True, kw_only=True, repr=False)
class RelationScore(F1Score):
    """Relations that are right, in percent: the same two names, in the same direction, with the same label.

    Parameters
    ----------
    precision, recall, f1 : float
        Over all relations together, or their means over labels.
    unlabelled : float
        F1 of pairs of names, whatever the label and the direction.
    average : str
        "micro" or "macro".
    relations, found, right : int
        Relations of gold, those that were found, and those of them that are right.
    labels : mapping of str to mapping
        `precision`, `recall` and `f1` of each label, whose direction has to be right.
    """

    unlabelled: float
    average: str
    relations: int
    right: int
    labels: Mapping[str, Mapping[str, float]] = field(hash=False)

    @property
    def measures(self) -> tuple[str, ...]:
        """All of them."""
        return ("precision", "recall", "f1", "unlabelled")

    def _further(self) -> dict[str, Any]:
        counts = {name: self[name] for name in ("relations", "found", "right")}
        return {"average": self.average, **counts, "labels": {label: dict(row) for label, row in self.labels.items()}}


@dataclass(frozen=True)
class RelationComparison(Difference):
    """The difference in F1 of two systems that looked for relations in the same sentences."""

    def __str__(self) -> str:
        return self.said_of("f1")


def average_for(gold: Mentions) -> str:
    """How scores are averaged as a rule: "macro" for files of SemEval, "micro" for others."""
    from isogloss.data.formats.relations import MarkedSource

    return "macro" if isinstance(gold.source, MarkedSource) else "micro"


def score_relations(
    predicted: Mentions, gold: Mentions, *, average: str | None = None, bootstrap: int = 1000, seed: int = 0
) -> RelationScore:
    r"""Score relations between the same names.

    .. math:: P = \frac{\text{right}}{\text{found}}, \quad R = \frac{\text{right}}{\text{gold}}, \quad
              F_1 = \frac{2PR}{P+R}

    Parameters
    ----------
    predicted, gold : Mentions
        Of the same sentences and names.
    average : "micro" or "macro", optional
        Over all relations together, or the mean over the labels of gold: the official score of SemEval-2010 task 8,
        whose nine relations count, with their direction, and Other does not. "macro" for files of SemEval and "micro"
        for others if not given.
    bootstrap, seed
        As in `isogloss.metrics.score_trees`.

    References
    ----------
    Hendrickx et al., SemEval-2010 task 8, SemEval 2010, section 5 (the 9-way evaluation with direction).

    Examples
    --------
    >>> names = [(0, 1, "PER"), (2, 3, "LOC"), (4, 5, "LOC")]
    >>> gold = Mentions.of([("a b c d e".split(), names, [(0, 1, "Live_In"), (1, 2, "In")])])
    >>> score = score_relations(gold.with_relations([[(0, 1, "Live_In"), (2, 1, "In")]]), gold, bootstrap=0)
    >>> score.precision, score.recall, score.f1, score.unlabelled
    (50.0, 50.0, 50.0, 100.0)
    """
    average = average_for(gold) if average is None else average
    if average not in AVERAGES:
        raise ParameterError(f"score_relations: average should be micro or macro, not {average!r}")
    names, counts = _counts(predicted, gold)
    sample = Sample(counts, _Rates(average, len(names)), bootstrap, seed)
    totals = counts.sum(axis=0).reshape(-1, 3)
    labels = {}
    for label, row in zip(names, totals[2:], strict=True):
        rates = {name: 100 * float(rate) for name, rate in precision_recall(row).items()}
        labels[label] = {**rates, "relations": int(row[2]), "found": int(row[1])}
    right, found, wanted = totals[0].tolist()
    signature = sample.signed("relations:directed", f"average:{average}", f"n:{len(gold)}", f"relations:{wanted}")
    return RelationScore(
        **sample.percent(), average=average, relations=wanted, found=found, right=right, labels=labels, n=len(gold),
        signature=signature, sample=sample,
    )  # fmt: skip


def compare_relations(
    first: Mentions,
    second: Mentions,
    gold: Mentions,
    *,
    average: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> RelationComparison:
    """F1 of two systems on the same sentences: their difference in percent, its interval and how likely chance is."""
    known = sorted({label for one in (first, second, gold) for label in one.labels.vocabulary})
    counts = [_counts(system, gold, known)[1] for system in (first, second)]
    rates = _Rates(average_for(gold) if average is None else average, len(known))
    both = np.stack(counts, axis=1)
    return RelationComparison(**paired(both, lambda sums: rates(sums)["f1"], resamples, seed, "compare_relations"))


class _Rates:
    """Measures of summed counts: right, found and wanted of all, of pairs whatever the label, and of each label."""

    def __init__(self, average: str, n_labels: int) -> None:
        self.average, self.n_labels = average, n_labels

    def __call__(self, counts: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
        table = np.asarray(counts, np.float64).reshape(*np.shape(counts)[:-1], 2 + self.n_labels, 3)
        unlabelled = precision_recall(table[..., 1, :])["f1"]
        if self.average == "micro":
            return {**precision_recall(table[..., 0, :]), "unlabelled": unlabelled}
        each = table[..., 2:, :]
        there = each[..., 2] > 0
        many = np.maximum(1, there.sum(axis=-1))
        means = {name: np.where(there, rate, 0.0).sum(axis=-1) / many for name, rate in precision_recall(each).items()}
        return {**means, "unlabelled": unlabelled}


def _counts(
    predicted: Mentions, gold: Mentions, known: list[str] | None = None
) -> tuple[list[str], NDArray[np.int64]]:  # fmt: skip
    """Labels, and of each sentence right, found and wanted: of all, of pairs, and of each label."""
    if len(predicted) != len(gold):
        raise MentionsError(
            f"{predicted.name} has {len(predicted)} sentences and {gold.name} {len(gold)}: not the same text"
        )
    names = known or sorted({label for one in (predicted, gold) for label in one.labels.vocabulary})
    row = {label: 2 + k for k, label in enumerate(names)}
    counts = np.zeros((len(gold), 2 + len(names), 3), np.int64)
    for s in range(len(gold)):
        ours, theirs = _relations(predicted, s), _relations(gold, s)
        if [name[:2] for name in predicted.entities(s)] != [name[:2] for name in gold.entities(s)]:
            raise MentionsError(
                f"sentence {s + 1}: {predicted.name}, line {predicted.line_of(s)}, and {gold.name}, line "
                f"{gold.line_of(s)}, have different names; relations are scored between the same ones"
            )
        for column, found in enumerate((ours & theirs, ours, theirs)):
            counts[s, 0, column] = len(found)
            for _, _, label in found:
                counts[s, row[label], column] += 1
        pairs, truth = ({frozenset(one[:2]) for one in found} for found in (ours, theirs))
        counts[s, 1] = len(pairs & truth), len(pairs), len(truth)
    return names, counts.reshape(len(gold), -1)


def _relations(mentions: Mentions, s: int) -> set[tuple[int, int, str]]:
    return set(mentions.relations(s))
