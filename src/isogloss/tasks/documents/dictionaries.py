r"""How alike documents of two languages are, by a dictionary of words: what `isogloss lexicon` writes, or any other.

T(e, c) are the pairs of words of which one is in document e, the other in document c, and which the dictionary has.

.. math:: idf(w_e, w_c) = \log \frac{n_e + n_c}{n_{w_e} + n_{w_c}}, \qquad
    DIC = \frac{\sum_{T} tf(w_e)\,tf(w_c)\,idf(w_e, w_c)^2}{\sqrt{Z_e Z_c}}, \qquad
    Z_e = \sum_{T} (tf(w_e)\,idf(w_e, w_c))^2 + \sum_{w_e \text{ without } T} (tf(w_e)\,idf(w_e))^2

References
----------
Gao et al. 2009, section 4.2, after Mathieu, Besançon and Fluhr, Multilingual Document Clusters Discovery, RIAO 2004.
The paper does not print Z; this one makes DIC a cosine, 1 for a document and its image under a dictionary of one
translation for each word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.formats.files import name_of, read_bytes
from isogloss.errors import DataError, ParameterError
from isogloss.metrics.overlap import lcs_length
from isogloss.tasks.documents.index import Encoded, Index
from isogloss.tasks.documents.vectors import unit_rows

__all__ = ["Similarities", "Translations", "read_translations", "url_similarity"]

Array = NDArray[np.float64]
Entry = tuple[str, str, float]

_HEADING = ["source", "target"]
_SURE = 1.0
"""p(target | source) of a dictionary that gives no probabilities."""


def read_translations(lexicon: str | PathLike[str] | Iterable[tuple[Any, ...]]) -> list[Entry]:
    """Word pairs with p(target | source), from a table of `isogloss lexicon`, another with tabs, or from tuples.

    A file has source and target word in its first two columns and, if there is a third, a probability; a heading is
    passed over. Without probabilities, all translations of a word count in full.
    """
    if not isinstance(lexicon, str | PathLike):
        return [_entry(row) for row in lexicon]
    found: list[Entry] = []
    for number, line in enumerate(read_bytes(lexicon).decode().split("\n"), 1):
        fields = [cell.strip() for cell in line.removesuffix("\r").split("\t")]
        if not any(fields) or (number == 1 and fields[:2] == _HEADING):
            continue
        try:
            source, target = fields[:2]
            chance = float(fields[2]) if len(fields) > 2 else _SURE
            if not (source and target and 0 <= chance <= 1):
                raise ValueError
        except ValueError:
            raise DataError(
                f"{name_of(lexicon)}, line {number}: {line.strip()[:60]!r} is no entry: a source word, a target word "
                "and perhaps p(target | source), between tabs, as `isogloss lexicon` writes them"
            ) from None
        found.append((source, target, chance))
    return found


def _entry(row: Any) -> Entry:
    """A word pair that was given in memory."""
    pair = not isinstance(row, str) and isinstance(row, Sequence) and len(row) > 1
    if not pair or not all(isinstance(word, str) for word in row[:2]):
        raise ParameterError(f"a lexicon has (source word, target word) and perhaps a probability, not {row!r}")
    chance = row[2] if len(row) > 2 else _SURE
    if not isinstance(chance, int | float) or not 0 <= chance <= 1:
        raise ParameterError(f"a lexicon has probabilities from 0 to 1, not {chance!r}")
    return row[0], row[1], float(chance)


class Similarities(NamedTuple):
    """Of every document of one language with every one of the other, each float64[n_documents, n_others]."""

    dic: Array
    forward: Array
    """Share of the words of e that have a translation in c."""
    backward: Array
    """Share of the words of c that translate a word of e."""
    translated: Array
    """Cosine of c with e, once e is translated word by word."""
    returned: Array
    """Cosine of e with c, once c is translated word by word."""


@dataclass(frozen=True, eq=False)
class Translations:
    """A dictionary between the words of two indices.

    Parameters
    ----------
    source_index, target_index : Index
    source, target : int32[n_entries]
        Numbers of words there.
    chance : float64[n_entries]
        p(target | source).

    Examples
    --------
    >>> english, german = [["the", "house"], ["a", "book"]], [["das", "haus"], ["ein", "buch"]]
    >>> words = [("the", "das"), ("house", "haus"), ("a", "ein"), ("book", "buch")]
    >>> found = Translations.of(words, Index.of(english), Index.of(german)).compare(english, german)
    >>> found.dic.round(3).tolist(), found.forward.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    """

    source_index: Index
    target_index: Index
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    chance: Array

    @classmethod
    def of(
        cls,
        entries: Iterable[tuple[Any, ...]],
        source: Index,
        target: Index,
        *,
        least: float = 0.0,
        lowercase: bool = False,
    ) -> Translations:
        """Of word pairs whose words both indices have; those of lower probability than `least` are left out.

        Of entries that are the same in small letters, the most probable one counts.
        """
        known: dict[tuple[int, int], float] = {}
        for one, other, chance in read_translations(entries):
            if lowercase:
                one, other = one.lower(), other.lower()
            key = (source.words.index_of(one), target.words.index_of(other))
            if min(key) >= 0 and chance >= least:
                known[key] = max(chance, known.get(key, 0.0))
        keys = np.array(sorted(known), np.int32).reshape(-1, 2)
        chances = np.array([known[one, other] for one, other in keys.tolist()], np.float64)
        return cls(source, target, keys[:, 0].copy(), keys[:, 1].copy(), chances)

    def __len__(self) -> int:
        return len(self.source)

    def compare(self, documents: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> Similarities:
        """Documents, given by their words, of the source language with those of the target language."""
        return self.similarities(self.source_index.encode(documents), self.target_index.encode(others))

    def similarities(self, documents: Encoded, others: Encoded) -> Similarities:
        """The same of documents that the indices have encoded."""
        one, other = documents.counts.astype(np.float64), others.counts.astype(np.float64)
        squares = self._pair_idf**2
        ours, theirs = one[:, self.source], other[:, self.target]  # by entry of the dictionary
        here, there = _present(ours), _present(theirs)
        covered = _present(there @ self._to_source.T)  # [n_others, n_source_types]: has c a translation of the word?
        reached = _present(here @ self._to_target.T)
        both = (ours.multiply(squares)).tocsr() @ theirs.T
        first = (ours.power(2).multiply(squares)).tocsr() @ there.T + _uncovered(one, self.source_index, covered)
        second = (theirs.power(2).multiply(squares)).tocsr() @ here.T + _uncovered(other, self.target_index, reached)
        z = np.asarray(first) * np.asarray(second).T
        dic = np.divide(both.toarray(), np.sqrt(z), out=np.zeros(z.shape), where=z > 0)
        forward = (one @ covered.T).toarray() / np.maximum(documents.lengths, 1)[:, None]
        backward = (other @ reached.T).toarray().T / np.maximum(others.lengths, 1)[None, :]
        return Similarities(dic, forward, backward, *self._translated(one, other))

    def _translated(self, one: Any, other: Any) -> tuple[Array, Array]:
        weights = [index._idf for index in (self.source_index, self.target_index)]
        ours, theirs = (unit_rows(each.multiply(idf).tocsr()) for each, idf in zip((one, other), weights, strict=True))
        there = unit_rows((one @ self._chances).multiply(weights[1]).tocsr())
        back = unit_rows((other @ self._chances.T).multiply(weights[0]).tocsr())
        return (there @ theirs.T).toarray(), (ours @ back.T).toarray()

    @cached_property
    def _pair_idf(self) -> Array:
        within = self.source_index.in_documents[self.source] + self.target_index.in_documents[self.target]
        every = self.source_index.n_documents + self.target_index.n_documents
        return np.asarray(np.log(np.maximum(every, 1) / np.maximum(within, 1)))

    @cached_property
    def _to_source(self) -> Any:
        return _incidence(self.source, len(self.source_index.words))

    @cached_property
    def _to_target(self) -> Any:
        return _incidence(self.target, len(self.target_index.words))

    @cached_property
    def _chances(self) -> Any:
        """Sparse float64[n_source_types, n_target_types]."""
        from scipy.sparse import csr_matrix

        shape = (len(self.source_index.words), len(self.target_index.words))
        return csr_matrix((self.chance, (self.source, self.target)), shape=shape)


def _incidence(words: NDArray[np.int32], size: int) -> Any:
    """Sparse float64[n_types, n_entries]: which entries a word has."""
    from scipy.sparse import csr_matrix

    ones = np.ones(len(words))
    return csr_matrix((ones, (words, np.arange(len(words)))), shape=(size, len(words)))


def _present(matrix: Any) -> Any:
    return (matrix > 0).astype(np.float64)


def _uncovered(counts: Any, index: Index, covered: Any) -> Array:
    """Σ (tf · idf)² over the words of each document that none of the other language covers."""
    idf = np.log(np.maximum(index.n_documents, 1) / np.maximum(index.in_documents, 1))
    squares = counts.power(2).multiply(idf**2).tocsr()
    total = np.asarray(squares.sum(axis=1)).ravel()
    return np.asarray(np.maximum(total[:, None] - (squares @ covered.T).toarray(), 0.0))


def url_similarity(one: str, other: str) -> float:
    """Length of the longest common subsequence of two addresses, without their schemes, as a share of the longer.

    Examples
    --------
    >>> round(url_similarity("https://www.airbus.com", "http://www.airbus.com.cn"), 3), url_similarity("", "")
    (0.824, 0.0)
    """
    first, second = (url.split("://", 1)[-1] for url in (one, other))
    longer = max(len(first), len(second))
    return lcs_length(first, second) / longer if first and second else 0.0
