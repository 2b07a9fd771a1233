"""`Focus`: what a parser is to look at most while it learns: some sentences, some words, some features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError

__all__ = ["Focus"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Focus:
    r"""What counts more and what less in the learning of a parser.

    .. math:: \sum_s c_s \log p(y_s \mid x_s), \qquad \sum_s c_s \sum_{t \in s} \omega_t\, [y_t \ne y^*_t]

    for likelihood, and for the losses of risk and margins; the longest step of MIRA is :math:`c_s C`. With all numbers
    1 nothing changes, to the bit.

    Parameters
    ----------
    sentences : float64[n_sentences], optional
        c.
    words : float64[n_words], optional
        ω, for risk and margins; likelihood has no losses of words.
    features : callable, optional
        From keys (uint64[n], `isogloss.tasks.parse.scoring.count_keys`) to what each feature is multiplied by; features
        times 0 are left out. What is learnt has the scales in its weights, so that nothing is needed to apply it.
    """

    sentences: Array | None = None
    words: Array | None = None
    features: Callable[[NDArray[np.uint64]], Array] | None = None

    def checked(self, treebank: Treebank) -> Focus:
        """The focus itself, once it is known to belong to a treebank."""
        for name, given, n in (("sentences", self.sentences, len(treebank)), ("words", self.words, treebank.n_words)):
            if given is None:
                continue
            fine = np.shape(given) == (n,) and np.isfinite(given).all() and bool((np.asarray(given) >= 0).all())
            if not fine:
                raise ParameterError(f"Focus: {name} should be {n} numbers, one for each of them, 0 or more")
        return self

    def take(self, treebank: Treebank, kept: NDArray[np.bool_]) -> Focus:
        """For some of the sentences of a treebank."""
        if kept.all():
            return self
        words = None if self.words is None else np.asarray(self.words)[np.repeat(kept, treebank.lengths)]
        return Focus(None if self.sentences is None else np.asarray(self.sentences)[kept], words, self.features)

    def losses(self, lengths: NDArray[np.int64]) -> Array | None:
        """float64[n_words]: what a wrong head costs; None where all cost 1."""
        if self.sentences is None and self.words is None:
            return None
        words = np.ones(int(lengths.sum())) if self.words is None else np.asarray(self.words, np.float64)
        return words if self.sentences is None else words * np.repeat(self.sentences, lengths)
