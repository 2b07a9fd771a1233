r"""What documents are about when the words of topics are known: their mixtures of topics, and how probable they are.

With :math:`\phi^l_{wt} = (N^l_{wt} + \beta) / (N^l_t + W_l \beta)` and the prior α fixed, a word of a new document has
topic t, given the topics of its other words in whatever language, with a probability proportional to
:math:`\phi^l_{wt} (N_t + \alpha_t)` (Mimno et al. 2009, equation 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks
from isogloss.features.mixing import splitmix
from isogloss.learners._numba import gibbs as kernels
from isogloss.learners.gibbs import Bags

__all__ = ["TopicWords", "by_runs", "by_words"]

Array = NDArray[np.float64]
DOCUMENTS = 16
"""Documents of a block."""


@dataclass(frozen=True, eq=False)
class TopicWords:
    """Words of topics in several languages, as counts of a sampler (`isogloss.learners.gibbs.Gibbs.word_topics`).

    Parameters
    ----------
    offsets : int64[n_words + 1]
    topics : int16[n_entries]
    counts : int64[n_entries]
        Word w has ``topics[offsets[w]:offsets[w + 1]]``, so many times.
    totals : int64[n_languages, n_topics]
    sizes : int64[n_languages]
        Sizes of vocabularies.
    beta : float
    """

    offsets: NDArray[np.int64]
    topics: NDArray[np.int16]
    counts: NDArray[np.int64]
    totals: NDArray[np.int64]
    sizes: NDArray[np.int64]
    beta: float

    @property
    def n_topics(self) -> int:
        return int(self.totals.shape[1])

    @cached_property
    def _smoothing(self) -> Array:
        return np.maximum(self.sizes, 1) * self.beta

    def probabilities(self, language: int) -> Array:
        """float64[n_types, n_topics]: of each word of a language in each topic; columns add up to 1."""
        first, size = int(self.sizes[:language].sum()), int(self.sizes[language])
        own = slice(self.offsets[first], self.offsets[first + size])
        rows = np.repeat(np.arange(size), np.diff(self.offsets[first : first + size + 1]))
        found = np.full((size, self.n_topics), self.beta)
        found[rows, self.topics[own]] += self.counts[own]
        return np.asarray(found / (self.totals[language] + self._smoothing[language]), np.float64)

    def mixtures(
        self,
        bags: Bags,
        alphas: Array,
        prior: NDArray[np.int64],
        *,
        burn_in: int = 50,
        samples: int = 50,
        seed: int = 0,
    ) -> Array:
        """float64[n_documents, n_topics]: shares of topics of new documents, the mean of some Gibbs samples.

        Parameters
        ----------
        bags : Bags
            Their words, all of which are known.
        alphas : float64[n_priors, n_topics]
        prior : int64[n_documents]
            The row of `alphas` for each document.
        burn_in, samples : int
            Sweeps before those that are averaged, and the number of these.
        seed : int
            What is drawn depends on it and on the words of a document, not on other documents.
        """
        out = np.empty((bags.n_documents, self.n_topics))
        run_blocks(
            kernels.mixtures, _blocks(bags), np.uint64(splitmix(seed)), bags.words, bags.language, bags.offsets,
            *self._arrays, alphas, prior, burn_in, samples, out,
        )  # fmt: skip
        return out

    def chances(
        self,
        bags: Bags,
        alphas: Array,
        prior: NDArray[np.int64],
        *,
        runs: int = 5,
        resample: bool = True,
        seed: int = 0,
    ) -> Array:
        """float64[runs, n]: the probability of each word given those before it, left to right (Wallach et al. 2009).

        `by_runs` and `by_words` make the two estimates of a document's probability of it. With `resample`, the topics
        of all words before are drawn again at each word: better, and quadratic in the length of a document.
        """
        out = np.empty((runs, len(bags.words)))
        run_blocks(
            kernels.chances, _blocks(bags), np.uint64(splitmix(seed)), bags.words, bags.language, bags.offsets,
            *self._arrays, alphas, prior, resample, out,
        )  # fmt: skip
        return out

    @property
    def _arrays(self) -> tuple[object, ...]:
        return self.offsets, self.topics, self.counts, self.totals, self._smoothing, self.beta


def _blocks(bags: Bags) -> int:
    return max(1, -(-bags.n_documents // DOCUMENTS))


def by_runs(chances: Array, offsets: NDArray[np.int64]) -> Array:
    r"""float64[n_documents]: :math:`\log \frac{1}{R} \sum_r \prod_n p_n^{(r)}`, the mean of whole runs.

    The mean itself is unbiased, whether topics before are drawn again or not; its logarithm is low on average.
    """
    logs = np.log(chances)
    sums = np.add.reduceat(np.pad(logs, ((0, 0), (0, 1))), offsets[:-1], axis=1) if len(offsets) > 1 else logs[:, :0]
    sums[:, np.diff(offsets) == 0] = 0.0
    top = sums.max(axis=0, initial=-np.inf)
    return np.asarray(top + np.log(np.exp(sums - top).mean(axis=0)), np.float64)


def by_words(chances: Array, offsets: NDArray[np.int64]) -> Array:
    r"""float64[n_documents]: :math:`\sum_n \log \frac{1}{R} \sum_r p_n^{(r)}`, the mean at each word.

    The form of Wallach et al. (2009), and of the usual tables. Less noisy, but biased however many runs there are, up
    or down by some percent of the probability of a short document; more without drawing topics again.
    """
    logs = np.pad(np.log(chances.mean(axis=0)), (0, 1))
    sums = np.add.reduceat(logs, offsets[:-1]) if len(offsets) > 1 else np.zeros(0)
    sums[np.diff(offsets) == 0] = 0.0
    return np.asarray(sums, np.float64)
