"""Very long sentences: work grows with the cube of the length, so that they are parsed in pieces.

What is longer than `LONGEST` words is as a rule a list, a table, or a text whose sentences were not told apart.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from isogloss.data.formats import IsoglossWarning
from isogloss.data.treebank import Treebank

__all__ = ["LONGEST", "cut", "joined", "without_long"]

LONGEST = 250

Offsets = NDArray[np.int64]


def cut(offsets: Offsets) -> Offsets:
    """Offsets of pieces of at most `LONGEST` words, as even as can be.

    Examples
    --------
    >>> cut(np.array([0, 3, 903]))
    array([  0,   3, 228, 453, 678, 903])
    """
    lengths = np.diff(offsets)
    if lengths.max(initial=0) <= LONGEST:
        return offsets
    counts = np.maximum(1, -(-lengths // LONGEST))
    inner = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.repeat(offsets[:-1], counts) + inner * np.repeat(lengths, counts) // np.repeat(counts, counts)
    return np.append(starts, offsets[-1]).astype(np.int64)


def joined(
    heads: NDArray[np.int32], pieces: Offsets, offsets: Offsets
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:  # fmt: skip
    """Heads within sentences, of heads within pieces, and the words that were roots of pieces.

    The root of each later piece hangs on that of the first.
    """
    whole = heads.copy()
    sentence = np.searchsorted(offsets, pieces[:-1], side="right") - 1
    shift = (pieces[:-1] - offsets[sentence]).astype(np.int32)
    moved = np.repeat(shift, np.diff(pieces))
    roots = np.flatnonzero((heads == 0) & (moved > 0))
    whole[heads > 0] += moved[heads > 0]
    for word in roots.tolist():
        begin = int(offsets[np.searchsorted(offsets, word, side="right") - 1])
        first = begin + int(np.flatnonzero(whole[begin:word] == 0)[0])
        whole[word] = first - begin + 1
    return whole, roots


def without_long(treebank: Treebank) -> Treebank:
    """The sentences of at most `LONGEST` words; a warning says how many are left out."""
    short = treebank.lengths <= LONGEST
    if short.all():
        return treebank
    warnings.warn(
        f"{treebank.name}: {np.count_nonzero(~short)} of {len(treebank)} sentences have more than {LONGEST} words and "
        "are passed over. Are they lists, or several sentences each?",
        IsoglossWarning,
        stacklevel=3,
    )
    return treebank.take(np.flatnonzero(short))
