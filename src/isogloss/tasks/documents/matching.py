"""Documents of two languages matched by their words, translated by a lexicon."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Text
from isogloss.tasks.documents.vectors import idf_of, tf_idf, unit_rows

__all__ = ["LexiconLike", "translated_distances", "translated_vectors"]

LexiconLike = str | PathLike[str] | Iterable[tuple[Any, ...]]
"""A file as `isogloss lexicon` writes it, or pairs of words with their weights, such as p(target | source)."""


def translated_vectors(source: Text, target: Text, lexicon: LexiconLike, *, lowercase: bool = True) -> tuple[Any, Any]:
    r"""Source documents, translated, and target documents, as sparse tf-idf vectors of target words of length 1.

    A source word w counts as p(v | w) of each target word v, its weights in the lexicon divided by their sum; a word
    that the lexicon lacks, such as a name, as itself. Inverse document frequencies are those of the target documents.
    """
    from scipy.sparse import csr_matrix

    from isogloss.tasks.align.lexicon import read_lexicon

    form = str.lower if lowercase else str
    columns, of_target = target.vocabulary.mapped(form)
    rows, of_source = source.vocabulary.mapped(form)
    weights: dict[int, dict[int, float]] = {}
    known: set[int] = set()
    for word, translation, weight in read_lexicon(lexicon):
        i, j = rows.index_of(form(word)), columns.index_of(form(translation))
        if i >= 0:
            own = weights.setdefault(i, {})
            known.add(i)
            own[j] = own.get(j, 0.0) + weight  # -1 for what no target document has: it takes its share all the same
    entries = [(i, j, w / (sum(own.values()) or 1.0)) for i, own in weights.items() for j, w in own.items() if j >= 0]
    entries += [(i, j, 1.0) for i, word in enumerate(rows) if i not in known and (j := columns.index_of(word)) >= 0]
    places = np.array([entry[:2] for entry in entries], np.int64).reshape(-1, 2).T
    table = csr_matrix(([entry[2] for entry in entries], places), shape=(len(rows), len(columns)))
    given, candidates = _counts(source, of_source, len(rows)), _counts(target, of_target, len(columns))
    idf = idf_of(candidates)
    return unit_rows(tf_idf(given @ table, idf)), unit_rows(tf_idf(candidates, idf))


def translated_distances(
    source: Text, target: Text, lexicon: LexiconLike, *, lowercase: bool = True
) -> NDArray[np.float64]:
    r"""float64[n, m]: how far source documents are from target documents, 1 less the cosine of `translated_vectors`.

    Examples
    --------
    >>> source, target = Text.of(["the sea", "the tree"]), Text.of(["der Baum", "das Meer"])
    >>> words = [("sea", "Meer"), ("tree", "Baum"), ("the", "der"), ("the", "das")]
    >>> translated_distances(source, target, words).round(2)
    array([[0.71, 0.13],
           [0.13, 0.71]])
    """
    first, second = translated_vectors(source, target, lexicon, lowercase=lowercase)
    return np.asarray(1.0 - (first @ second.T).toarray(), np.float64)


def _counts(text: Text, number_of: NDArray[np.int32], size: int) -> Any:
    """How often each form is in each document, sparse."""
    from scipy.sparse import csr_matrix

    flat = number_of[text.ids.flat] if text.n_words else np.zeros(0, np.int64)
    starts = text.ids.offsets - text.ids.offsets[0]
    made = csr_matrix((np.ones(len(flat)), flat.astype(np.int64), starts), shape=(len(text), size))
    made.sum_duplicates()
    return made
