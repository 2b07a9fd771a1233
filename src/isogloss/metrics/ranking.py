"""How good is this order? Pairs in the right order and Kendall's tau, ties in the gold left out, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.groups import Groups
from isogloss.errors import DocumentsError, ParameterError
from isogloss.metrics._resampling import Difference, paired
from isogloss.metrics.scores import Sample, Score

__all__ = ["RankComparison", "RankScore", "compare_rankings", "kendall_tau", "ordered_pairs", "score_ranking"]


def ordered_pairs(scores: ArrayLike, grades: ArrayLike) -> tuple[int, int, int]:
    """Of the pairs with different grades: how many have the better one above, how many below, how many tie.

    What has no grade (not a number) is in no pair.

    Examples
    --------
    >>> ordered_pairs([0.9, 0.5, 0.5], [3, 2, 1])
    (2, 0, 1)
    """
    found, right = (np.asarray(each, np.float64) for each in (scores, grades))
    above, below = np.nonzero(right[:, None] > right[None, :])
    gain = found[above] - found[below]
    return int((gain > 0).sum()), int((gain < 0).sum()), int((gain == 0).sum())


def kendall_tau(scores: ArrayLike, grades: ArrayLike) -> float:
    r"""(P − Q) / (P + Q + T) over the pairs with different grades; not a number where there is none.

    P are in the right order and Q in the wrong one. Ties T of the scores are neither, but count below: who ties all
    pairs but one has said little. Without ties it is Kendall's tau.

    Examples
    --------
    >>> kendall_tau([3, 2, 1], [30, 20, 10]), kendall_tau([1, 2, 3], [30, 20, 10]), kendall_tau([1, 1], [2, 1])
    (1.0, -1.0, 0.0)
    """
    right, wrong, tied = ordered_pairs(scores, grades)
    every = right + wrong + tied
    return (right - wrong) / every if every else math.nan


@dataclass(frozen=True, kw_only=True, repr=False)
class RankScore(Score):
    """Pairs in the right order, in percent, and Kendall's tau.

    Parameters
    ----------
    pairs : float
        Of all pairs with different grades, those that are in the right order; a tie is not.
    tau : float
        Kendall's tau times 100, from −100 to 100: the mean over groups that have different grades.
    untied : int
        Pairs with different grades.
    groups : int
        Groups that have such pairs.
    """

    pairs: float
    tau: float
    untied: int
    groups: int

    @property
    def measures(self) -> tuple[str, ...]:
        """`pairs`; `tau`, which may be negative, stands beside it."""
        return ("pairs",)

    @property
    def headline(self) -> str:
        """Always `pairs`."""
        return "pairs"

    @cached_property
    def tau_interval(self) -> tuple[float, float]:
        """95% bootstrap interval of `tau`; not numbers where none was asked for."""
        return self.sample.intervals().get("tau", (math.nan, math.nan))

    def _further(self) -> dict[str, Any]:
        beside = {"tau": self.tau, "untied": self.untied, "groups": self.groups}
        bounds = self.tau_interval
        return beside if math.isnan(bounds[0]) else beside | {"tau_interval": list(bounds)}


def _counts(scores: Sequence[ArrayLike], gold: Groups, place: str) -> NDArray[np.float64]:
    """float64[n_groups, 5]: right, wrong and tied pairs; tau and 1 where there are any."""
    if not isinstance(gold, Groups):
        raise ParameterError(f"{place}: give Groups, as Groups.read('groups.jsonl'), not {type(gold).__name__}")
    if len(scores) != len(gold):
        raise DocumentsError(f"{place}: scores of {len(scores)} groups, but {gold.name} has {len(gold)}")
    rows = np.zeros((len(gold), 5))
    for number, (own, group) in enumerate(zip(scores, gold, strict=True)):
        if np.shape(own) != (len(group.candidates),):
            raise DocumentsError(
                f"{place}: group {group.id!r} of {gold.name} has {len(group.candidates)} candidates, and the ranking "
                f"{np.size(own)} scores"
            )
        rows[number, :3] = ordered_pairs(own, group.grades)
        if rows[number, :3].any():
            rows[number, 3:] = kendall_tau(own, group.grades), 1
    return rows


def _rates(counts: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
    right, wrong, tied, tau, groups = np.moveaxis(np.asarray(counts, np.float64), -1, 0)
    every = right + wrong + tied
    with np.errstate(invalid="ignore", divide="ignore"):
        return {"pairs": right / every, "tau": tau / groups}


def score_ranking(scores: Sequence[ArrayLike], gold: Groups, *, bootstrap: int = 1000, seed: int = 0) -> RankScore:
    """Score an order against grades.

    Parameters
    ----------
    scores : sequence of float64[n_candidates]
        One array for each group, higher is better; such as `BilingualRanker.predict` gives.
    gold : Groups
    bootstrap : int
        Resamples of groups for intervals; 0 for none.
    seed : int

    Examples
    --------
    >>> gold = Groups.of([("a", [("1", 2, {}), ("2", 1, {}), ("3", 1, {})]), ("b", [("1", 1, {}), ("2", 0, {})])])
    >>> score = score_ranking([[0.9, 0.1, 0.5], [0.1, 0.2]], gold, bootstrap=0)
    >>> round(score.pairs, 2), score.tau, score.untied
    (66.67, 0.0, 3)
    """
    counts = _counts(scores, gold, "score_ranking")
    sample = Sample(counts, _rates, bootstrap, seed)  # type: ignore[arg-type]
    found = sample.percent()
    untied, groups = int(counts[:, :3].sum()), int(counts[:, 4].sum())
    signature = sample.signed("ties:left out", f"n:{len(gold)}", f"pairs:{untied}")
    return RankScore(
        pairs=found["pairs"], tau=found["tau"], untied=untied, groups=groups, n=len(gold), signature=signature,
        sample=sample,
    )  # fmt: skip


@dataclass(frozen=True)
class RankComparison(Difference):
    """The difference of two orders in pairs or tau, with what chance alone would do."""

    measure: str = "pairs"

    def __str__(self) -> str:
        return self.said_of(self.measure)


def compare_rankings(
    first: Sequence[ArrayLike], second: Sequence[ArrayLike], gold: Groups, *, measure: str = "pairs",
    resamples: int = 1000, seed: int = 0,
) -> RankComparison:  # fmt: skip
    """Whether one order is better than another by more than chance: both on the same resamples of groups.

    Parameters
    ----------
    first, second
        As `scores` of `score_ranking`.
    gold : Groups
    measure : "pairs" or "tau"
    resamples, seed : int
    """
    if measure not in ("pairs", "tau"):
        raise ParameterError(f"compare_rankings: measure should be 'pairs' or 'tau', not {measure!r}")
    both: Any = np.stack([_counts(each, gold, "compare_rankings") for each in (first, second)], axis=1)
    made = paired(both, lambda sums: _rates(sums)[measure], resamples, seed, "compare_rankings")
    return RankComparison(**made, measure=measure)
