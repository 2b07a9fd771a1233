"""What chance does to scores: resamples of sentences, intervals, and paired differences of two systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError

__all__ = ["Difference", "interval_of", "paired", "resampled"]

_BLOCK = 1 << 22  # draws held at once while resampling: 32 MB


def resampled(counts: NDArray[Any], resamples: int, seed: int) -> NDArray[np.float64]:
    """Sums of counts over sentence pairs drawn with replacement.

    Parameters
    ----------
    counts : array[n_pairs, ...]
    resamples : int
    seed : int

    Returns
    -------
    float64[resamples, ...]
    """
    n_pairs = len(counts)
    flat = counts.reshape(n_pairs, -1).astype(float)
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, flat.shape[1]))
    block = max(1, _BLOCK // max(n_pairs, 1))
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        drawn = rng.integers(n_pairs, size=(size, n_pairs)) + n_pairs * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * n_pairs).reshape(size, n_pairs)
        sums[start : start + size] = times.astype(float) @ flat
    return sums.reshape(resamples, *counts.shape[1:])


def interval_of(values: NDArray[np.float64]) -> tuple[float, float]:
    """The middle 95% of resampled values."""
    low, high = np.quantile(values, [0.025, 0.975]).tolist()
    return low, high


@dataclass(frozen=True)
class Difference:
    """The difference of two systems, with what chance alone would do; in percent, but for the p-value.

    Parameters
    ----------
    first, second : float
        The measure of each.
    delta : float
        ``first - second``.
    interval : (float, float)
        95% paired bootstrap interval of `delta`.
    p_value : float
        Two-sided.
    """

    first: float
    second: float
    delta: float
    interval: tuple[float, float]
    p_value: float
    n: int
    resamples: int
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data; rates, difference and interval in percent, the p-value as it is."""
        return {
            "first": self.first,
            "second": self.second,
            "delta": self.delta,
            "interval": list(self.interval),
            "p_value": self.p_value,
            "n": self.n,
            "resamples": self.resamples,
            "seed": self.seed,
        }

    def said_of(self, measure: str) -> str:
        """One line, with all that is needed to find it again."""
        low, high = self.interval
        return (
            f"Δ{measure.upper()} = {self.delta:+.2f} [{low:+.2f}, {high:+.2f}], "
            f"p = {self.p_value:.4f} | {self.first:.2f} - {self.second:.2f}|n:{self.n}|"
            f"resamples:{self.resamples}|seed:{self.seed}"
        )


def paired(
    counts: NDArray[np.int64],
    rate: Callable[[NDArray[Any]], NDArray[np.float64]],
    resamples: int,
    seed: int,
    place: str,
) -> dict[str, Any]:
    """The fields of a `Difference`: both systems on the same resamples of sentences.

    The p-value is twice the smaller share of resamples in which the difference has the one or the other sign (ties
    count on both sides, and one resample is added to each share, so that p is never 0).

    Parameters
    ----------
    counts : int64[n_sentences, 2, n_counts]
        Of both systems.
    rate : callable
        The measure, float64[...] from 0 to 1, of summed counts array[..., n_counts].
    place : str
        Who asks, for messages.

    References
    ----------
    P. Koehn, Statistical Significance Tests for Machine Translation Evaluation, EMNLP 2004, here two-sided.
    """
    if resamples < 1:
        raise ParameterError(f"{place}: resamples should be a positive integer, not {resamples!r}")
    first, second = (100 * rate(counts.sum(axis=0))).tolist()
    drawn = 100 * rate(resampled(counts, resamples, seed)) if len(counts) else np.zeros((resamples, 2))
    delta = drawn[:, 0] - drawn[:, 1]
    tail = min(np.count_nonzero(delta <= 0), np.count_nonzero(delta >= 0))
    return {
        "first": first, "second": second, "delta": first - second, "interval": interval_of(delta),
        "p_value": min(1.0, 2 * (1 + tail) / (1 + resamples)), "n": len(counts), "resamples": resamples, "seed": seed,
    }  # fmt: skip
