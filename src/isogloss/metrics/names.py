"""How good are these names? Precision, recall and F1 of exact spans with their types, as conlleval counts them."""

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

__all__ = ["MEASURES", "EntityComparison", "EntityScore", "check_same_sentences", "compare_entities", "score_entities"]

MEASURES = ("precision", "recall", "f1")


@dataclass(frozen=True, kw_only=True, repr=False)
class EntityScore(F1Score):
    """Names that are right, in percent: the same words and the same type.

    Parameters
    ----------
    precision, recall, f1 : float
        Over all names of all types together (micro-averaged).
    entities, found, right : int
        Names of gold, names that were found, and those of them that are right.
    types : mapping of str to mapping
        `precision`, `recall` and `f1` of each type, and its `entities` and `found`.
    """

    entities: int
    right: int
    types: Mapping[str, Mapping[str, float]] = field(hash=False)

    @property
    def measures(self) -> tuple[str, ...]:
        """All of them."""
        return MEASURES

    def _further(self) -> dict[str, Any]:
        counts = {name: self[name] for name in ("entities", "found", "right")}
        return {"average": "micro", **counts, "types": {kind: dict(row) for kind, row in self.types.items()}}


@dataclass(frozen=True)
class EntityComparison(Difference):
    """The difference in F1 of two systems that looked for names in the same sentences."""

    def __str__(self) -> str:
        return self.said_of("f1")


def score_entities(predicted: Mentions, gold: Mentions, *, bootstrap: int = 1000, seed: int = 0) -> EntityScore:
    r"""Score names as conlleval does: one is right if its first word, its last word and its type are.

    .. math:: P = \frac{\text{right}}{\text{found}}, \quad R = \frac{\text{right}}{\text{gold}}, \quad
              F_1 = \frac{2PR}{P+R}

    Where nothing was found, precision is 0, as in conlleval, and so on.

    Parameters
    ----------
    predicted, gold : Mentions
        Of the same words.
    bootstrap, seed
        As in `isogloss.metrics.score_trees`.

    References
    ----------
    Tjong Kim Sang, Introduction to the CoNLL-2002 shared task, CoNLL 2002.

    Examples
    --------
    >>> words = ["Ada", "Byron", "in", "London"]
    >>> gold = Mentions.of([(words, [(0, 2, "PER"), (3, 4, "LOC")])])
    >>> score = score_entities(Mentions.of([(words, [(0, 1, "PER"), (3, 4, "LOC")])]), gold, bootstrap=0)
    >>> score.precision, score.recall, score.f1, score.types["LOC"]["f1"]
    (50.0, 50.0, 50.0, 100.0)
    """
    check_same_sentences(predicted, gold)
    by_type = _counts(predicted, gold)
    sample = Sample(np.sum([*by_type.values(), _nothing(gold)], axis=0), precision_recall, bootstrap, seed)
    measures = sample.percent()
    right, found, wanted = sample.counts.sum(axis=0).tolist()
    types = {}
    for kind, counts in sorted(by_type.items()):
        total = counts.sum(axis=0)
        rates = {name: 100 * float(rate) for name, rate in precision_recall(total).items()}
        types[kind] = {**rates, "entities": int(total[2]), "found": int(total[1])}
    signature = sample.signed("names:exact", "average:micro", f"n:{len(gold)}", f"names:{wanted}")
    return EntityScore(
        **measures, entities=wanted, found=found, right=right, types=types, n=len(gold), signature=signature,
        sample=sample,
    )  # fmt: skip


def compare_entities(
    first: Mentions, second: Mentions, gold: Mentions, *, resamples: int = 10_000, seed: int = 0
) -> EntityComparison:
    """F1 of two systems on the same sentences: their difference in percent, its interval and how likely chance is."""
    counts = []
    for system in (first, second):
        check_same_sentences(system, gold)
        counts.append(np.sum([*_counts(system, gold).values(), _nothing(gold)], axis=0))
    both = np.stack(counts, axis=1)
    return EntityComparison(
        **paired(both, lambda sums: precision_recall(sums)["f1"], resamples, seed, "compare_entities")
    )


def check_same_sentences(predicted: Mentions, gold: Mentions) -> None:
    """Both must be of the same words."""
    for one in (predicted, gold):
        if not isinstance(one, Mentions):
            raise ParameterError(f"give Mentions, as Mentions.read('names.conll'), not {type(one).__name__}")
    if len(predicted) != len(gold):
        raise MentionsError(
            f"{predicted.name} has {len(predicted)} sentences and {gold.name} {len(gold)}: not the same text"
        )
    for s in np.flatnonzero(predicted.lengths != gold.lengths)[:1].tolist():
        raise MentionsError(
            f"sentence {s + 1} has {predicted.lengths[s]} words in {predicted.name}, line {predicted.line_of(s)}, and "
            f"{gold.lengths[s]} in {gold.name}, line {gold.line_of(s)}: not the same text"
        )
    ids, vocabulary = predicted.columns["form"]
    truth, types = gold.columns["form"]
    differ = np.flatnonzero(types.encode(vocabulary)[ids] != truth) if len(ids) else np.zeros(0, np.int64)
    if len(differ):
        at = int(differ[0])
        s = int(np.searchsorted(gold.offsets, at, side="right")) - 1
        raise MentionsError(
            f"sentence {s + 1}: {vocabulary[ids[at]]!r:.40} in {predicted.name}, line {predicted.line_of(s)}, where "
            f"{gold.name} has {types[truth[at]]!r:.40}: not the same text"
        )


def _nothing(gold: Mentions) -> NDArray[np.int64]:
    return np.zeros((len(gold), 3), np.int64)


def _counts(predicted: Mentions, gold: Mentions) -> dict[str, NDArray[np.int64]]:
    """Right, found and wanted names of each type in each sentence: int64[n_sentences, 3]."""
    counts: dict[str, NDArray[np.int64]] = {}
    for s in range(len(gold)):
        ours, theirs = set(predicted.entities(s)), set(gold.entities(s))
        for column, names in enumerate((ours & theirs, ours, theirs)):
            for _, _, kind in names:
                if kind not in counts:
                    counts[kind] = _nothing(gold)
                counts[kind][s, column] += 1
    return counts
