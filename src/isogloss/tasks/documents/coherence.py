r"""Whether the words of a topic belong together: normalised pointwise mutual information, in a language and across.

.. math:: \mathrm{NPMI}(v, w) = \frac{\log \frac{P(v, w)}{P(v) P(w)}}{-\log P(v, w)}

where P(w) is the share of documents that have w, and P(v, w) of those that have both: from -1 (never together) to 1
(always together). The two words may be of two languages: then documents are tuples, and both have to be there.

References
----------
Lau, Newman and Baldwin, Machine reading tea leaves, EACL 2014 (NPMI); Hao, Boyd-Graber and Paul, Lessons from the Bible
on modern topics, NAACL 2018 (CNPMI, across languages).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Coherence", "coherence_of", "npmi"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coherence:
    """NPMI of the first words of topics.

    Parameters
    ----------
    within : mapping of str to float64[n_topics]
        Of each language: the mean over pairs of words of a topic.
    across : mapping of (str, str) to float64[n_topics]
        Of two languages: the mean over pairs of a word of one and a word of the other.
    n_words : int
        Words of each topic that were looked at.
    """

    within: Mapping[str, Array]
    across: Mapping[tuple[str, str], Array]
    n_words: int

    @property
    def npmi(self) -> float:
        """Mean of all languages and topics; not a number where there is none."""
        return _mean(self.within.values())

    @property
    def cnpmi(self) -> float:
        """Mean of all pairs of languages and topics; not a number where there is one language."""
        return _mean(self.across.values())

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "npmi": self.npmi,
            "cnpmi": self.cnpmi,
            "words": self.n_words,
            "within": {language: float(values.mean()) for language, values in self.within.items()},
            "across": {"-".join(pair): float(values.mean()) for pair, values in self.across.items()},
        }


def _mean(values: Any) -> float:
    every = [float(each.mean()) for each in values if len(each)]
    return float(np.mean(every)) if every else float("nan")


def npmi(first: Any, second: Any) -> Array:
    """float64[n, m]: of each column of one matrix of documents and words with each column of another.

    Only whether a document has a word counts. Words that no document has, alone or together, have -1.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> seen = csr_matrix([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]])
    >>> npmi(seen, seen)[0].tolist()
    [1.0, 1.0, -1.0]
    """
    n = max(1, first.shape[0])
    one, other = (first > 0).astype(np.float64), (second > 0).astype(np.float64)
    both = np.asarray((one.T @ other).todense()) / n
    alone = np.outer(np.asarray(one.sum(axis=0)).ravel() / n, np.asarray(other.sum(axis=0)).ravel() / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.log(both / alone) / -np.log(both)
    value = np.where(both >= 1.0, 1.0, value)  # both words in all documents
    return np.asarray(np.where(both > 0, value, -1.0), np.float64)


def coherence_of(counts: Mapping[str, Any], words: Mapping[str, Sequence[Sequence[int]]], n_words: int) -> Coherence:
    """Of topics whose first words are columns of counts: sparse[n_documents, n_types] for each language."""
    n_topics = len(next(iter(words.values())))

    def columns(language: str, topic: int) -> Any:
        return counts[language].tocsc()[:, list(words[language][topic])]

    seen = {language: [columns(language, t) for t in range(n_topics)] for language in words}
    within, across = {}, {}
    for language in words:
        values = [_above(npmi(each, each)) for each in seen[language]]
        within[language] = np.array(values, np.float64)
    for one, other in combinations(words, 2):
        there = _present(counts[one]) & _present(counts[other])  # only tuples that have both
        pairs = zip(seen[one], seen[other], strict=True)
        across[one, other] = np.array([_all(npmi(a[there], b[there])) for a, b in pairs], np.float64)
    return Coherence(within, across, n_words)


def _present(counts: Any) -> NDArray[np.bool_]:
    return np.asarray(counts.getnnz(axis=1) > 0)


def _above(square: Array) -> float:
    """Mean above the diagonal; 0 where there is one word or none."""
    values = square[np.triu_indices(len(square), 1)]
    return float(values.mean()) if len(values) else 0.0


def _all(values: Array) -> float:
    return float(values.mean()) if values.size else 0.0
