"""Heads that the words of parsed text may have, and how probable they are: what is kept of posteriors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.sentence import features_of
from isogloss.data.treebank import Treebank
from isogloss.structures.batch import Stack, run_sentences

__all__ = ["LikelyHeads", "confidences"]

Heads = NDArray[np.int32]
FAINT = 1e-4
"""Posteriors of source links below this carry nothing."""


class LikelyHeads(NamedTuple):
    """Heads that each word of the source may have: what is kept of posteriors, some bytes a word.

    Parameters
    ----------
    starts : int64[n_words + 1]
        Those of word *w* are ``starts[w]:starts[w + 1]``.
    head : int32[n]
        0 for the root, 1 … n within the sentence.
    chance : float[n]
    """

    starts: NDArray[np.int64]
    head: Heads
    chance: NDArray[np.floating]

    @classmethod
    def of(cls, posteriors: Stack, offsets: NDArray[np.int64], least: float = FAINT) -> LikelyHeads:
        """Those whose posteriors are at least as large as `least`, in single precision.

        Parameters
        ----------
        posteriors : Stack
            float64[n + 1, n + 1] of each sentence, as `DependencyParser.predict_proba` gives them.
        offsets : int64[n_sentences + 1]
            Words of the sentences.

        Examples
        --------
        >>> posteriors = Stack.of([[[0, 0.9, 0.1], [0, 0, 0.9], [0, 0.1, 0]]], "posteriors", 2)
        >>> found = LikelyHeads.of(posteriors, np.array([0, 2]))
        >>> found.starts.tolist(), found.head.tolist(), found.chance.astype(float).round(2).tolist()
        ([0, 2, 4], [0, 2, 0, 1], [0.9, 0.1, 0.1, 0.9])
        """
        from isogloss.tasks.transfer._numba.edges import count_heads, list_heads

        given = (posteriors.offsets, offsets, posteriors.values, least)
        counts = np.zeros(int(offsets[-1]), np.int64)
        run_sentences(count_heads, len(posteriors), *given, counts)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        head, chance = np.empty(int(starts[-1]), np.int32), np.empty(int(starts[-1]), np.float32)
        run_sentences(list_heads, len(posteriors), *given, starts[:-1].copy(), head, chance)
        return cls(starts, head, chance)

    @classmethod
    def known(cls, source: Treebank) -> LikelyHeads:
        """The heads of trees that are given, each as probable as ``Confidence=`` in MISC says, or certain."""
        known = source.heads >= 0
        starts = np.concatenate([[0], np.cumsum(known)]).astype(np.int64)
        return cls(starts, source.heads[known], confidences(source)[known])

    @classmethod
    def joined(cls, parts: Sequence[LikelyHeads]) -> LikelyHeads:
        """Those of one text after the other."""
        counts = np.concatenate([np.zeros(0, np.int64), *(np.diff(part.starts) for part in parts)])
        return cls(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.concatenate([np.zeros(0, np.int32), *(part.head for part in parts)]),
            np.concatenate([np.zeros(0, np.float32), *(part.chance for part in parts)]),
        )

    def without_root(self) -> LikelyHeads:
        """The same without what hangs on the root."""
        held = self.head > 0
        return LikelyHeads(np.concatenate([[0], np.cumsum(held)])[self.starts], self.head[held], self.chance[held])


def confidences(treebank: Treebank) -> NDArray[np.float64]:
    """float64[n_words]: the number after ``Confidence=`` in MISC, 1 where there is none from 0 to 1.

    Examples
    --------
    >>> confidences(Treebank.of([[{"form": "a", "misc": "Confidence=0.9"}, {"form": "b"}]])).tolist()
    [0.9, 1.0]
    """
    ids, vocabulary = treebank.columns["misc"]
    sure = np.ones(len(vocabulary))
    for number, text in enumerate(vocabulary):
        if "Confidence=" in text:
            with suppress(ValueError):
                sure[number] = float(features_of(text).get("Confidence", "1"))
    sure[~((sure >= 0) & (sure <= 1))] = 1.0
    return sure[ids] if len(ids) else np.zeros(0)
