r"""How well documents answer a query: BM25, with and without feedback, and query likelihood with three ways to smooth.

With tf of a word w in a document d, its share of the collection p(w | C), |d| words and |d|ᵤ different ones in d:

.. math:: BM25 = \sum_{w \in q} \log\Big(1 + \frac{n - n_w + ½}{n_w + ½}\Big)
        \frac{tf\,(k_1 + 1)}{tf + k_1 (1 - b + b\,|d| / avg)}
    \qquad p_{dir} = \frac{tf + \mu\,p(w|C)}{|d| + \mu}

.. math:: p_{jm} = (1 - \lambda) \frac{tf}{|d|} + \lambda\,p(w|C)
    \qquad p_{abs} = \frac{\max(tf - \delta, 0)}{|d|} + \frac{\delta\,|d|_u}{|d|}\,p(w|C)

A query likelihood is Σ log p over the words of the query. Words that the collection lacks say nothing: they are left
out of queries. A document without words has p(w | C).

References
----------
Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009; with log(1 + …), which is never
negative. Zhai and Lafferty, A Study of Smoothing Methods for Language Models Applied to Information Retrieval, TOIS
2004. Gao et al. 2009, table 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.vocabulary import Vocabulary

__all__ = ["MEASURES", "Encoded", "Index"]

Array = NDArray[np.float64]

K1, B = 1.2, 0.75
MU, LAMBDA, DELTA = 1000.0, 0.4, 0.7
FEEDBACK_DOCUMENTS, FEEDBACK_WORDS, FEEDBACK_SHARE = 5, 10, 1 / 3
"""Documents taken for relevant, words taken from them, and what such a word counts beside one of the query."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Documents as an index sees them: counts of the words that it knows, and lengths with those that it does not."""

    counts: Any
    """Sparse int64[n_documents, n_types]."""
    lengths: NDArray[np.int64]
    different: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: Any) -> Encoded:
        """Some of them."""
        return Encoded(self.counts[rows], self.lengths[rows], self.different[rows])


@dataclass(frozen=True, eq=False)
class Index:
    """What a collection says about words: in how many documents they are, and how often.

    Parameters
    ----------
    words : Vocabulary
    in_documents : int64[n_types]
    occurrences : int64[n_types]
    n_documents : int

    Examples
    --------
    >>> documents = [["the", "cat"], ["the", "dog", "and", "the", "cat"], ["a", "bird"]]
    >>> index = Index.of(documents)
    >>> index.bm25(["bird", "unheard"], index.encode(documents)).round(2).tolist()
    [0.0, 0.0, 1.14]
    """

    words: Vocabulary
    in_documents: NDArray[np.int64]
    occurrences: NDArray[np.int64]
    n_documents: int

    @classmethod
    def of(cls, documents: Iterable[Sequence[str]]) -> Index:
        """Of the words of every document of a collection."""
        within: Counter[str] = Counter()
        total: Counter[str] = Counter()
        number = 0
        for document in documents:
            own = Counter(document)
            within.update(own.keys())
            total.update(own)
            number += 1
        words = Vocabulary(total)
        held, met = (np.array([counts[word] for word in words], np.int64) for counts in (within, total))
        return cls(words, held, met, number)

    def encode(self, documents: Sequence[Sequence[str]]) -> Encoded:
        """Documents, of this collection or another, as counts."""
        from scipy.sparse import csr_matrix

        known = [self.words.encode(document) for document in documents]
        rows = np.repeat(np.arange(len(known)), [len(each) for each in known])
        columns = np.concatenate([np.zeros(0, np.int32), *known])
        here = columns >= 0
        shape = (len(documents), len(self.words))
        counts = csr_matrix((np.ones(int(here.sum()), np.int64), (rows[here], columns[here])), shape=shape)
        counts.sum_duplicates()
        lengths = np.array([len(each) for each in documents], np.int64)
        return Encoded(counts, lengths, np.array([len(set(each)) for each in documents], np.int64))

    # --- measures

    def bm25(self, query: Sequence[str], documents: Encoded, *, k1: float = K1, b: float = B) -> Array:
        """float64[n_documents]."""
        q = self._query(query)
        return np.asarray(self._saturated(q, documents, k1, b) @ self._idf[q])

    def bm25_feedback(self, query: Sequence[str], documents: Encoded, *, k1: float = K1, b: float = B) -> Array:
        r"""BM25 of the query and of words from the documents that BM25 puts first.

        Of these R documents r have a word w: it weighs

        .. math:: \log \frac{(r + ½)(n - n_w - R + r + ½)}{(n_w - r + ½)(R - r + ½)}

        and the words with the most r · weight are added, each counted a third. Negative weights count as 0.

        References
        ----------
        Robertson and Sparck Jones, Simple, proven approaches to text retrieval, 1994.
        """
        q = self._query(query)
        if not len(q) or not len(documents):
            return np.zeros(len(documents))
        first = self.bm25(query, documents, k1=k1, b=b)
        best = np.argsort(-first, kind="stable")[:FEEDBACK_DOCUMENTS]
        best = best[first[best] > 0]
        if not len(best):
            return first
        R, n = len(best), max(self.n_documents, len(best))
        r = np.asarray((documents.counts[best] > 0).sum(axis=0), np.float64).ravel()
        held = np.maximum(self.in_documents, r)  # documents of another collection may have it more often
        odds = (r + 0.5) * np.maximum(n - held - R + r + 0.5, 0.5) / ((held - r + 0.5) * (R - r + 0.5))
        weights = np.maximum(np.log(odds), 0.0)
        offer = r * weights
        offer[q] = 0.0
        chosen = np.argsort(-offer, kind="stable")[:FEEDBACK_WORDS]
        chosen = chosen[offer[chosen] > 0]
        every = np.concatenate([q, chosen])
        shares = np.concatenate([np.ones(len(q)), np.full(len(chosen), FEEDBACK_SHARE)])
        return np.asarray(self._saturated(every, documents, k1, b) @ (shares * weights[every]))

    def dirichlet(self, query: Sequence[str], documents: Encoded, *, mu: float = MU) -> Array:
        """Query likelihood with Dirichlet smoothing: float64[n_documents]."""
        q = self._query(query)
        longer = documents.lengths[:, None] + mu
        return _summed((self._frequencies(q, documents) + mu * self._shares[q]) / longer)

    def jelinek_mercer(self, query: Sequence[str], documents: Encoded, *, share: float = LAMBDA) -> Array:
        """Query likelihood with a fixed share of the collection: float64[n_documents]."""
        q = self._query(query)
        own = self._frequencies(q, documents) / np.maximum(documents.lengths, 1)[:, None]
        mixed = (1 - share) * own + share * self._shares[q]
        return _summed(np.where(documents.lengths[:, None] > 0, mixed, self._shares[q]))

    def absolute_discounting(self, query: Sequence[str], documents: Encoded, *, discount: float = DELTA) -> Array:
        """Query likelihood with a discount on every count: float64[n_documents]."""
        q = self._query(query)
        lengths = np.maximum(documents.lengths, 1)[:, None]
        kept = np.maximum(self._frequencies(q, documents) - discount, 0.0) / lengths
        mixed = kept + discount * documents.different[:, None] / lengths * self._shares[q]
        return _summed(np.where(documents.lengths[:, None] > 0, mixed, self._shares[q]))

    # --- parts of them

    def _query(self, query: Sequence[str]) -> NDArray[np.int32]:
        """Numbers of the words of a query that the collection has."""
        found = self.words.encode(query)
        return found[found >= 0]

    @cached_property
    def _idf(self) -> Array:
        n, within = self.n_documents, self.in_documents
        return np.asarray(np.log1p((n - within + 0.5) / (within + 0.5)))

    @cached_property
    def _shares(self) -> Array:
        return np.asarray(self.occurrences / max(1, int(self.occurrences.sum())))

    @property
    def mean_length(self) -> float:
        """Words of a document of the collection on the mean."""
        return float(self.occurrences.sum()) / max(1, self.n_documents)

    def _frequencies(self, query: NDArray[np.int32], documents: Encoded) -> Array:
        """tf: float64[n_documents, n_words_of_query]."""
        return np.asarray(documents.counts[:, query].toarray(), np.float64)

    def _saturated(self, query: NDArray[np.int32], documents: Encoded, k1: float, b: float) -> Array:
        """What BM25 makes of tf."""
        tf = self._frequencies(query, documents)
        longer = k1 * (1 - b + b * documents.lengths / max(self.mean_length, 1e-300))
        return np.asarray(tf * (k1 + 1) / np.maximum(tf + longer[:, None], 1e-300))


def _summed(probabilities: Array) -> Array:
    return np.asarray(np.log(np.maximum(probabilities, 1e-300)).sum(axis=1))


MEASURES: dict[str, Callable[[Index, Sequence[str], Encoded], Array]] = {
    "bm25": Index.bm25,
    "bm25-feedback": Index.bm25_feedback,
    "dirichlet": Index.dirichlet,
    "jelinek-mercer": Index.jelinek_mercer,
    "absolute-discounting": Index.absolute_discounting,
}
"""What a document may be seen by, by name."""
