"""How good is a ranking in which one candidate is right? The share of queries that find it among the first 1, 5, …"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.metrics.scores import Sample, Score

__all__ = ["RANKS", "RankScore", "ranks_of", "score_ranks"]

RANKS = (1, 5, 10, 20)


@dataclass(frozen=True, kw_only=True, repr=False)
class RankScore(Score):
    """Queries whose right candidate is among the first so many, in percent.

    Parameters
    ----------
    top1, top5, top10, top20 : float
    candidates : int
        Among which each query chooses.
    """

    top1: float
    top5: float
    top10: float
    top20: float
    candidates: int

    @property
    def measures(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(f"top{rank}" for rank in RANKS)

    @property
    def headline(self) -> str:
        """`top1`."""
        return "top1"

    def _shown(self) -> tuple[str, ...]:
        return self.measures

    def _further(self) -> dict[str, int]:
        return {"candidates": self.candidates}


def ranks_of(distances: ArrayLike) -> NDArray[np.int64]:
    """The rank, from 1, of candidate k for query k; others that are as near stand before it.

    Examples
    --------
    >>> ranks_of([[0.1, 0.2], [0.3, 0.3]]).tolist()
    [1, 2]
    """
    given = np.asarray(distances, np.float64)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ParameterError(f"ranks_of: candidate k is right for query k, but distances are {list(given.shape)}")
    return np.asarray((given <= np.diagonal(given)[:, None]).sum(axis=1), np.int64)


def score_ranks(ranks: ArrayLike, candidates: int, *, how: str = "", bootstrap: int = 1000, seed: int = 0) -> RankScore:
    """Score the ranks, from 1, at which each query found what is right for it.

    `how` is put into the signature: what was compared, and by which distance.

    Examples
    --------
    >>> score_ranks([1, 3, 12, 1], 50, bootstrap=0).as_dict()["top5"]
    75.0
    """
    found = np.asarray(ranks, np.int64)
    counts = np.column_stack([found <= rank for rank in RANKS] + [np.ones(len(found))]).astype(np.int64)

    def rates(sums: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
        return {f"top{rank}": sums[..., k] / np.maximum(sums[..., -1], 1) for k, rank in enumerate(RANKS)}

    sample = Sample(counts, rates, bootstrap, seed)
    signature = sample.signed("retrieval", how, f"candidates:{candidates}", f"n:{len(found)}")
    return RankScore(**sample.percent(), candidates=candidates, n=len(found), signature=signature, sample=sample)
