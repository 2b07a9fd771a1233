"""What is seen of documents: sequences of their words, and those of single columns once more.

A title says more about a label than as many words of the text below it, and is more alike in two domains. So words of
a column are features of their own, beside the same words of the whole document. The column with the most words is no
more than the document over again, and is not seen twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.labelled import LabelledDocuments
from isogloss.features.ngrams import NGrams
from isogloss.features.sparse import Sparse

__all__ = ["Seen"]

LONGEST = 2
"""The most words of a sequence of a single column, and the fewest documents that it is in."""


@dataclass(frozen=True, eq=False)
class Seen:
    """The features of documents: sequences of words of the whole first, then those of single columns.

    Parameters
    ----------
    whole : NGrams
    columns : tuple of int
        The columns that are seen on their own, among those of the text,
    own : tuple of NGrams
        and the sequences of each.

    Examples
    --------
    >>> table = LabelledDocuments.of([("pos", "Fine", "I liked it"), ("neg", "No", "I read it")] * 2)
    >>> seen = Seen.of([table], longest=1, least=2)
    >>> list(seen.whole.names), seen.columns, list(seen.own[0].names)
    (['fine', 'i', 'liked', 'it', 'no', 'read'], (0,), ['fine', 'no'])
    >>> seen.matrix(table).indices[:5].tolist()
    [0, 1, 2, 3, 6]
    """

    whole: NGrams
    columns: tuple[int, ...] = ()
    own: tuple[NGrams, ...] = ()

    @classmethod
    def of(cls, documents: Sequence[LabelledDocuments], *, longest: int, least: int, columns: bool = True) -> Seen:
        """Those of some documents, of which the first decide which columns are seen on their own."""
        whole = NGrams.of([one.text for one in documents], longest=longest, least=least)
        cuts = documents[0].cuts
        if not columns or cuts is None or cuts.shape[1] < 2:
            return cls(whole)
        chosen = tuple(k for k in range(cuts.shape[1]) if k != int(cuts.sum(axis=0).argmax()))
        given = [one for one in documents if _has(one, chosen)]
        own = tuple(
            NGrams.of([one.column(k) for one in given], longest=min(longest, LONGEST), least=min(least, LONGEST))
            for k in chosen
        )
        return cls(whole, chosen, own)

    def __len__(self) -> int:
        return sum(len(one) for one in self._all)

    @property
    def _all(self) -> tuple[NGrams, ...]:
        return (self.whole, *self.own)

    @property
    def longest(self) -> int:
        """The most words of a sequence."""
        return self.whole.longest

    def matrix(self, documents: LabelledDocuments, *, counts: bool = False) -> Sparse:
        """A row for each document: which features it has or, with `counts`, how often.

        Documents without these columns have none of their features.
        """
        found = self.whole.matrix(documents.text, counts=counts)
        for column, known in zip(self.columns, self.own, strict=True):
            if _has(documents, (column,)):
                found = _beside(found, known.matrix(documents.column(column), counts=counts))
            else:
                found = Sparse(found.indptr, found.indices, found.n_indicators + len(known), found.values)
        return found

    @property
    def kinds(self) -> NDArray[np.int32]:
        """int32[n_features]: a number for each length of sequences, of the whole and of each column."""
        sizes = np.concatenate([one.sizes for one in self._all])
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)

    @property
    def short(self) -> NDArray[np.bool_]:
        """bool[n_features]: words and pairs of words of the whole document."""
        return np.asarray(np.arange(len(self)) < self.whole.sizes[:2].sum())

    def parts(self) -> list[NDArray[np.int64]]:
        """The words of each feature, by their numbers, each once; a word has the same number in all columns."""
        numbers = dict[str, int]()
        found: list[NDArray[np.int64]] = []
        for known in self._all:
            same = np.array([numbers.setdefault(word, len(numbers)) for word in known.words], np.int64)
            found += [same[part] for part in known.parts()]
        return found

    # --- keeping

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        arrays = self.whole.to_arrays()
        for column, known in zip(self.columns, self.own, strict=True):
            arrays |= {f"column{column}_{name}": value for name, value in known.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], columns: Sequence[int]) -> Seen:
        """The inverse of `to_arrays`; what is wrong with it is refused."""
        own = []
        for column in columns:
            start = f"column{column}_"
            own.append(NGrams.from_arrays({k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}))
        return cls(NGrams.from_arrays(arrays), tuple(columns), tuple(own))


def _has(documents: LabelledDocuments, columns: Sequence[int]) -> bool:
    return documents.cuts is not None and all(column < documents.cuts.shape[1] for column in columns)


def _beside(one: Sparse, other: Sparse) -> Sparse:
    """The features of both for each row."""
    row_of = np.concatenate([np.repeat(np.arange(each.n_rows), np.diff(each.indptr)) for each in (one, other)])
    order = np.argsort(row_of, kind="stable")
    indices = np.concatenate([one.indices, other.indices + one.n_indicators])[order]
    values = np.concatenate([one.values, other.values])[order] if len(one.values) or len(other.values) else None
    return Sparse(one.indptr + other.indptr, indices, one.n_indicators + other.n_indicators, values)
