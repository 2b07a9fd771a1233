"""Partial trees: links of some words, which a projective tree may have all of, some of, or none.

That each word has one head, that nothing crosses and nothing is a cycle is not enough. In *a r b*, the links r → a and
a → b pass all three tests, but then r lies below a → b and can hang on nothing without crossing it. What is asked here
is whether a tree exists, by Eisner's chart over truth values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.batch import run_sentences

__all__ = ["can_be_projective", "compatible_heads"]

Offsets = NDArray[np.int64]
Heads = NDArray[np.int32]


def can_be_projective(heads: ArrayLike, offsets: ArrayLike, *, single_root: bool = True) -> NDArray[np.bool_]:
    """Whether each sentence has a projective tree with these heads.

    Parameters
    ----------
    heads : int[n_words]
        Of all words: 0 for the root, 1 … n within the sentence, −1 where any will do.
    offsets : int64[n_sentences + 1]
    single_root : bool
        Whether the root has one child.

    Returns
    -------
    bool[n_sentences]

    Notes
    -----
    O(n³ / 64) for a sentence. Ganchev, Gillenwater and Taskar (ACL 2009) ask this of each link that they add at random.

    Examples
    --------
    >>> can_be_projective([2, -1, 1], [0, 3]).tolist()                          # a <- r, a -> b, and r in between
    [False]
    >>> can_be_projective([2, -1, 2], [0, 3]).tolist()
    [True]
    """
    from isogloss.structures._numba.partial import possible

    known, starts = _checked(heads, offsets)
    out = np.zeros(len(starts) - 1, np.bool_)
    run_sentences(possible, len(out), starts, known, single_root, out)
    return out


def compatible_heads(
    offsets: ArrayLike, word: ArrayLike, head: ArrayLike, order: ArrayLike, *, single_root: bool = True
) -> Heads:
    """Take links in an order, each if a projective tree can have it beside those that were taken before.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
    word : int64[n_links]
        The child of each link, counted over all sentences.
    head : int32[n_links]
        0 for the root, 1 … n within the sentence.
    order : float64[n_links]
        Links with smaller numbers are tried first; of equal ones, that which is listed first.
    single_root : bool

    Returns
    -------
    int32[n_words]
        −1 for words none of whose links was taken. Every link that is left out contradicts those taken before it.

    Examples
    --------
    >>> compatible_heads([0, 3], [0, 2, 2], [2, 1, 2], [0, 1, 2]).tolist()
    [2, -1, 2]
    """
    from isogloss.structures._numba.partial import keep_compatible

    starts = np.asarray(offsets, np.int64)
    child, above = np.asarray(word, np.int64), np.asarray(head, np.int32)
    if len(child) != len(above) or (len(child) and not 0 <= child.min() <= child.max() < starts[-1]):
        raise ParameterError(f"compatible_heads: links should lead to words from 0 to {starts[-1] - 1}, one head each")
    sentence = np.searchsorted(starts, child, side="right") - 1
    lengths = np.diff(starts)
    if (above < 0).any() or (above > lengths[sentence]).any():
        raise ParameterError("compatible_heads: heads should be from 0 to the number of words of the sentence")
    tried = np.lexsort((np.asarray(order), sentence))
    inside = (child - starts[sentence] + 1).astype(np.int32)
    firsts = np.searchsorted(sentence[tried], np.arange(len(lengths) + 1)).astype(np.int64)
    out = np.full(int(starts[-1]), -1, np.int32)
    run_sentences(keep_compatible, len(lengths), starts, firsts, inside[tried], above[tried], single_root, out)
    return out


def _checked(heads: ArrayLike, offsets: ArrayLike) -> tuple[Heads, Offsets]:
    known, starts = np.asarray(heads, np.int32), np.asarray(offsets, np.int64)
    lengths = np.diff(starts)
    if starts[0] != 0 or (lengths < 0).any() or known.shape != (int(starts[-1]),):
        raise ParameterError(f"heads should be one for each of {starts[-1]} words, not {list(known.shape)}")
    if len(known) and not (known.min() >= -1 and (known <= np.repeat(lengths, lengths)).all()):
        raise ParameterError("heads should be from 0 to the number of words of the sentence, -1 where not known")
    return np.ascontiguousarray(known), starts
