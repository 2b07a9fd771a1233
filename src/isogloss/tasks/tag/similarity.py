"""Which words in context resemble one another: types of trigrams, what they are seen with, and the graph of them.

References
----------
He, Gillenwater and Taskar, Graph-Based Posterior Regularization for Semi-Supervised Structured Prediction, CoNLL 2013,
section 5.1; the features are those of Subramanya, Petrov and Pereira, EMNLP 2010. We differ: features are of words in
small letters, and the ending of the middle word is one, which the reference leaves out (both chosen on Portuguese).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.tag_dictionary import is_number, is_punctuation
from isogloss.errors import ParameterError
from isogloss.features import Axis, Templates, positions
from isogloss.learners.graphs import mutual, nearest, pmi
from isogloss.tasks.tag.words import word_codes

__all__ = [
    "AROUND",
    "SUFFIX",
    "WITHIN",
    "Vertices",
    "common_suffixes",
    "context_axis",
    "contexts",
    "similarity",
    "trigrams",
]

SUFFIX = 3
"""Letters of the longest endings that are looked for by themselves."""
WITHIN = (
    "word[-1] & word", "word[-1] & word[+1]", "word & word[+1]", "word", "word & ending[+1]", "ending[-1] & word",
    "ending",
)  # fmt: skip
"""What a trigram is known by: its words, and their endings."""
AROUND = (
    "word[-2] & word[-1] & word[+1] & word[+2]", "word[-2] & word[-1] & word", "word[-2] & word & word[+1]",
    "word[-2] & word & word[+2]", "word[-1] & word & word[+2]", "word & word[+1] & word[+2]", "word[-2] & word[-1]",
    "word[-2] & word", "word & word[+2]", "word[+1] & word[+2]",
)  # fmt: skip
"""What it is seen with: the five words around."""


def common_suffixes(types: Iterable[str], least: int = 10, longest: int = SUFFIX) -> tuple[str, ...]:
    """Endings of 1 to `longest` letters that at least so many longer types have, sorted from the last letter.

    Examples
    --------
    >>> common_suffixes(["Haus", "Maus", "aus", "er", "der"], least=2, longest=2)
    ('r', 's', 'us')
    """
    words = {word.lower() for word in types}
    found = Counter(word[-n:] for word in words for n in range(1, longest + 1) if len(word) > n)
    return tuple(sorted((suffix for suffix, many in found.items() if many >= least), key=lambda s: s[::-1]))


def context_axis(
    ids: NDArray[np.int32], types: Sequence[str], offsets: NDArray[np.int64], suffixes: Sequence[str]
) -> Axis:
    """The words of all sentences with the codes that the templates here and those of `GraphTagger` look at.

    form, word (in small letters); suffix1, suffix2, …: the endings in `suffixes`, by their length; ending: the longest
    of these; capital, punctuation, digit, hyphen, period: 0 where it is so, −1 elsewhere.
    """
    used, at = np.unique(ids, return_inverse=True)
    kept = [types[i] for i in used.tolist()]
    codes = word_codes(kept)
    found = {name: codes[name] for name in ("form", "word")}
    numbers = {suffix: number for number, suffix in enumerate(suffixes)}
    lengths = sorted({len(suffix) for suffix in suffixes} | set(range(1, SUFFIX + 1)))
    small = [word.lower() for word in kept]
    ending = np.full(len(kept), -1, np.int64)
    for n in lengths:
        each = (numbers.get(word[-n:], -1) if len(word) > n else -1 for word in small)
        found[f"suffix{n}"] = np.fromiter(each, np.int64, len(kept))
        ending = np.where(found[f"suffix{n}"] >= 0, found[f"suffix{n}"], ending)
    flags = {
        "capital": [word[:1].isupper() for word in kept],
        "punctuation": [is_punctuation(word) for word in kept],
        "digit": [is_number(word) for word in kept],
        "hyphen": [len(word) > 1 and "-" in word for word in kept],
        "period": [len(word) > 1 and "." in word for word in kept],
    }
    found |= {name: np.where(np.array(flag, np.bool_), 0, -1).astype(np.int64) for name, flag in flags.items()}
    return Axis(offsets, ending=ending[at], **{name: code[at] for name, code in found.items()})


class Vertices(NamedTuple):
    """Types of trigrams whose middle word is no punctuation mark.

    of : int64[n_words]
        The type around each word; −1 for punctuation marks.
    first : int64[n_types]
        A word that has it, to show it by.
    """

    of: NDArray[np.int64]
    first: NDArray[np.int64]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.first)


def trigrams(axis: Axis) -> Vertices:
    """The types of three words that occur, from `context_axis`; beyond a sentence's ends stands a mark.

    Examples
    --------
    >>> ids, types = np.array([0, 1, 2, 0, 1, 2], np.int32), ["a", "b", "."]
    >>> trigrams(context_axis(ids, types, np.array([0, 3, 6]), ())).of.tolist()
    [0, 1, -1, 0, 1, -1]
    """
    keys = Templates(["form[-1] & form & form[+1]"]).keys(positions(axis))[:, 0]
    words = np.flatnonzero(axis.attributes["punctuation"] < 0)
    _, first, inverse = np.unique(keys[words], return_index=True, return_inverse=True)
    order = np.argsort(first)  # numbered as they appear
    numbers = np.empty(len(first), np.int64)
    numbers[order] = np.arange(len(first))
    of = np.full(len(axis), -1, np.int64)
    of[words] = numbers[inverse]
    return Vertices(of, words[first[order]])


def contexts(
    axis: Axis, vertices: Vertices, templates: Sequence[str] = WITHIN + AROUND, *, shared: bool = False
) -> Any:
    """csr_matrix [n_types, n_features]: how often each type is seen with each feature.

    With `shared`, features that one type alone has are left out before anything is counted.
    """
    from scipy.sparse import csr_matrix

    made, parts = Templates(templates), positions(axis)
    index = made.index(parts, min_count=2 if shared else 1)
    rows = made.matrix(parts, index)
    data = np.ones(len(rows.indices))
    by_word = csr_matrix((data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))
    words = np.flatnonzero(vertices.of >= 0)
    gather = csr_matrix((np.ones(len(words)), (vertices.of[words], words)), shape=(vertices.size, len(axis)))
    counts = (gather @ by_word).tocsr()
    types = np.bincount(counts.indices, minlength=counts.shape[1])
    return counts[:, np.flatnonzero(types > (1 if shared else 0))]


def similarity(
    axis: Axis,
    vertices: Vertices,
    neighbours: int = 60,
    *,
    templates: Sequence[str] = WITHIN + AROUND,
    shared: bool = False,
    exact: bool | Literal["auto"] = "auto",
    seed: int = 0,
) -> Any:
    """The graph of mutual nearest neighbours among trigram types: cosines of pointwise mutual information.

    Parameters
    ----------
    axis, vertices
        From `context_axis` and `trigrams`.
    neighbours : int
    templates : sequence of str
    shared : bool
        True leaves out features that one type alone has. Otherwise they count in the length of its vector, as in the
        reference: types with much of their own are then less like all others.
    exact, seed
        See `nearest`.

    Returns
    -------
    csr_matrix [n_types, n_types]
        Symmetric, weights in (0, 1].
    """
    if isinstance(neighbours, bool) or not isinstance(neighbours, int) or neighbours < 1:
        raise ParameterError(f"similarity: neighbours should be a positive integer, not {neighbours!r}")
    return mutual(nearest(pmi(contexts(axis, vertices, templates, shared=shared)), neighbours, exact=exact, seed=seed))
