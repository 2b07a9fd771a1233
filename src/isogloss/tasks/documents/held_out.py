"""How probable held-out documents are under a model of topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.metrics._resampling import interval_of, resampled

__all__ = ["HeldOut"]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Log probabilities of documents by the left-to-right estimator (Wallach et al. 2009), in nats.

    Parameters
    ----------
    by_words : float64[n_documents]
        With the mean over runs at each word: the form of Wallach et al., and the one that `nats_per_word` has. Less
        noisy than the other, and a little biased whatever the number of runs.
    by_runs : float64[n_documents]
        With the mean over whole runs, which is unbiased as a probability.
    n_words : int64[n_documents]
        Words of each document that the model knows: only these are counted.
    unknown : int64[n_documents]
        Its words that the model does not know: those that pruning left out, and those that training did not have.
    runs : int
    """

    by_words: NDArray[np.float64]
    by_runs: NDArray[np.float64]
    n_words: NDArray[np.int64]
    unknown: NDArray[np.int64]
    runs: int

    @property
    def nats_per_word(self) -> float:
        """Log probability of a word in the mean, by `by_words`; 0 if there is none."""
        return float(self.by_words.sum() / max(1, self.n_words.sum()))

    @property
    def nats_per_word_by_runs(self) -> float:
        """The same by `by_runs`."""
        return float(self.by_runs.sum() / max(1, self.n_words.sum()))

    def interval(self, resamples: int = 1000, seed: int = 0) -> tuple[float, float]:
        """95% bootstrap interval of `nats_per_word` over documents."""
        if not len(self.n_words):
            return 0.0, 0.0
        sums = resampled(np.stack([self.by_words, self.n_words], axis=1), resamples, seed)
        return interval_of(sums[:, 0] / np.maximum(1, sums[:, 1]))

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "nats_per_word": self.nats_per_word,
            "interval": list(self.interval()),
            "nats_per_word_by_runs": self.nats_per_word_by_runs,
            "documents": len(self.n_words),
            "words": int(self.n_words.sum()),
            "unknown": int(self.unknown.sum()),
            "runs": self.runs,
        }
