"""`Score`: what `score` of every estimator returns, whatever the task."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss._version import __version__
from isogloss.errors import ParameterError
from isogloss.metrics._resampling import interval_of, resampled

__all__ = ["F1Score", "Sample", "Score", "precision_recall"]


@dataclass(frozen=True)
class Sample:
    """What intervals are drawn from: counts of each sentence, and how measures are made of their sums.

    Parameters
    ----------
    counts : int64[n_sentences, n_counts]
    rates : callable
        Measures, by name float64[...] from 0 to 1, of summed counts array[..., n_counts].
    bootstrap : int
        Resamples of sentences; 0 for no intervals.
    seed : int
    """

    counts: NDArray[np.int64]
    rates: Callable[[NDArray[Any]], Mapping[str, NDArray[np.float64]]]
    bootstrap: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.bootstrap < 0:
            raise ParameterError(
                f"score: bootstrap should be a number of resamples, 0 for none, not {self.bootstrap!r}"
            )

    def percent(self) -> dict[str, float]:
        """The measures of all sentences."""
        return {name: 100 * float(rate) for name, rate in self.rates(self.counts.sum(axis=0)).items()}

    def intervals(self) -> dict[str, tuple[float, float]]:
        """The 95% percentile interval of each measure, in percent."""
        if not self.bootstrap or not len(self.counts):
            return {}
        drawn = self.rates(resampled(self.counts, self.bootstrap, self.seed))
        return {name: interval_of(100 * values) for name, values in drawn.items()}

    def signed(self, *recipe: str) -> str:
        """The recipe of a score, ended by what is the same for all."""
        return "|".join([*filter(None, recipe), f"seed:{self.seed}", f"v:{__version__}"])


@dataclass(frozen=True, kw_only=True, repr=False)
class Score(ABC):
    """How good something is: measures in percent, with intervals and the recipe.

    A subclass has an attribute for each of its `measures`, such as `aer`, `las` or `accuracy`.

    Parameters
    ----------
    n : int
        Sentences, or sentence pairs, that were scored.
    signature : str
        The recipe: what was scored, how, and by which version, so that two numbers can be compared.
    sample : Sample
        What intervals are drawn from, when they are asked for.
    """

    n: int
    signature: str
    sample: Sample = field(compare=False)

    @property
    @abstractmethod
    def measures(self) -> tuple[str, ...]:
        """The names of what is scored."""

    @property
    @abstractmethod
    def headline(self) -> str:
        """The name of the measure that stands for all."""

    @property
    def value(self) -> float:
        """The headline in percent, which is also ``float(score)``."""
        return float(self[self.headline])

    @property
    def interval(self) -> tuple[float, float]:
        """95% bootstrap interval of the headline; not numbers where none was asked for, or nothing was scored."""
        return self.intervals.get(self.headline, (math.nan, math.nan))

    @cached_property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """95% bootstrap interval of each measure, drawn when first asked for; empty where there is none."""
        return {name: bounds for name, bounds in self.sample.intervals().items() if name in self.measures}

    def __float__(self) -> float:
        return self.value

    def __getitem__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self, name):
            raise KeyError(name)
        return getattr(self, name)

    def _shown(self) -> tuple[str, ...]:
        """Measures that a line has room for."""
        return (self.headline,)

    def _further(self) -> dict[str, Any]:
        """What `as_dict` has between measures and intervals."""
        return {}

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as commands print it with ``--json``; measures and intervals in percent."""
        return {
            **{name: self[name] for name in self.measures},
            **self._further(),
            "n": self.n,
            "intervals": {name: list(bounds) for name, bounds in self.intervals.items()},
            "signature": self.signature,
        }

    def __str__(self) -> str:
        parts = []
        for name in self._shown():
            spread = ""
            if name in self.intervals:
                low, high = self.intervals[name]
                spread = f" ± {(high - low) / 2:.1f}"
            parts.append(f"{name.upper()} = {self[name]:.2f}{spread}")
        return f"{', '.join(parts)} | {self.signature}"

    __repr__ = __str__


@dataclass(frozen=True, kw_only=True, repr=False)
class F1Score(Score):
    """Things that are to be found, such as names or brackets: precision, recall and F1, which stands for all.

    Parameters
    ----------
    precision, recall, f1 : float
    found : int
        Things that were found, be they right or wrong.
    """

    precision: float
    recall: float
    f1: float
    found: int

    @property
    def headline(self) -> str:
        """`f1`."""
        return "f1"

    def _shown(self) -> tuple[str, ...]:
        return ("f1", "precision", "recall")


def precision_recall(counts: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
    """Precision, recall and F1 of counts[..., 3]: right, found and wanted. Where there is nothing, they are 0.

    Examples
    --------
    >>> {name: round(float(rate), 2) for name, rate in precision_recall(np.array([1, 2, 4])).items()}
    {'precision': 0.5, 'recall': 0.25, 'f1': 0.33}
    """
    right, found, wanted = np.moveaxis(np.asarray(counts, np.float64), -1, 0)
    return {
        "precision": right / np.maximum(found, 1),
        "recall": right / np.maximum(wanted, 1),
        "f1": 2 * right / np.maximum(found + wanted, 1),
    }
