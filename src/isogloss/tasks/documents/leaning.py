r"""Documents of one language that lean on documents of another, found through a lexicon.

.. math:: \delta_{dd'} = \frac{\lambda\, s(d, d')}{\sum_{d'' \in K(d)} s(d, d'')}, \qquad d' \in K(d)

where s is the cosine of tf-idf vectors, one of them translated word by word, and K(d) are the nearest documents of
other languages. `isogloss.learners.gibbs` adds δ times the topic counts of these documents to the prior of d.

References
----------
Hao and Paul, Learning Multilingual Topics from Incomparable Corpora, COLING 2018. There s is the share of word types
that two documents have in common, a word and its translation being the same type, and K(d) is what is left after a
threshold; cosines of tf-idf and a number of neighbours do not depend on the lengths of documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.documents import Documents
from isogloss.errors import ParameterError
from isogloss.tasks.documents.matching import LexiconLike, translated_vectors

__all__ = ["Lexicons", "checked_lexicons", "leaning_of"]

Lexicons = Mapping[tuple[str, str], LexiconLike]
"""A lexicon for pairs of languages, such as ``{("en", "fr"): "words.tsv"}``, from source words to target words."""
PIECE = 512
"""Documents whose similarities to all others are in memory together."""


def checked_lexicons(lexicons: Lexicons | None, languages: tuple[str, ...]) -> Lexicons:
    """The lexicons, once it is known that their languages are there."""
    for pair in lexicons or {}:
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= set(languages):
            raise ParameterError(
                f"lexicons: {pair!r} should be the names of two languages of the documents, which have "
                f"{', '.join(languages)}"
            )
    return lexicons or {}


def leaning_of(documents: Documents, lexicons: Lexicons, neighbours: int, strength: float, *, lowercase: bool) -> Any:
    """δ, as a sparse matrix float64[n_documents, n_documents]; documents that are like no other have empty rows.

    Examples
    --------
    >>> documents = Documents.of([{"en": "sea ship"}, {"en": "tree"}, {"de": "Meer Meer"}, {"de": "Baum"}])
    >>> words = [("sea", "Meer"), ("tree", "Baum")]
    >>> leaning_of(documents, {("en", "de"): words}, 1, 0.5, lowercase=True).toarray().tolist()[1:3]
    [[0.0, 0.0, 0.0, 0.5], [0.5, 0.0, 0.0, 0.0]]
    """
    from scipy.sparse import csr_matrix, diags

    found = csr_matrix((len(documents), len(documents)))
    for (source, target), lexicon in lexicons.items():
        texts = documents.text(source), documents.text(target)
        first, second = translated_vectors(*texts, lexicon, lowercase=lowercase)
        for one, other in ((first, second), (second, first)):
            found = found + csr_matrix(_nearest(one.tocsr(), other.tocsr(), neighbours), shape=found.shape)
    sums = np.asarray(found.sum(axis=1)).ravel()
    return (diags(strength / np.where(sums > 0, sums, 1.0)) @ found).tocsr()


def _nearest(one: Any, other: Any, n: int) -> tuple[NDArray[np.float64], tuple[NDArray[Any], NDArray[Any]]]:
    """For each row of one matrix the n rows of another with the highest products, but not the row of its own number."""
    pieces = list(_pieces(one, other.T.tocsc(), n))
    rows, columns, values = (np.concatenate([np.zeros(0, kind), *(piece[k] for piece in pieces)])
                             for k, kind in enumerate((np.int64, np.int64, np.float64)))  # fmt: skip
    return values, (rows, columns)


def _pieces(one: Any, other: Any, n: int) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    for start in range(0, one.shape[0], PIECE):
        part = (one[start : start + PIECE] @ other).toarray()
        part[np.arange(len(part)), start + np.arange(len(part))] = 0.0  # languages of one document share topics anyway
        best = np.argsort(-part, axis=1, kind="stable")[:, :n]
        values = np.take_along_axis(part, best, axis=1)
        rows, places = np.nonzero(values > 0)
        yield start + rows, best[rows, places], values[rows, places]
