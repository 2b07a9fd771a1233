"""Tags of several columns that go together: a verb does not get the case of a noun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ModelError
from isogloss.layout import Layout, Numbers, check
from isogloss.tasks.tag.learning import Decoded

__all__ = ["Combinations"]

UNLISTED = 1e-8
"""The probability of labels that are not in the short list of a word."""
AT_A_TIME = 1024
"""Words that are looked at together, so that memory does not grow with the text."""

Keys = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Combinations:
    r"""The combinations of labels that words of the training text had, and the choice of one of them for new words.

    Columns are tagged one by one; where that gives a combination that training never had, the word gets the one with
    the highest product of the posteriors of its labels,

    .. math:: \arg\max_{(y_1, \dots, y_m) \in C} \prod_c p_c(y_c \mid x)

    and, of equal ones, the most frequent. Where each column's own best is such a combination, it is that maximum.

    Parameters
    ----------
    rows : int32[n_combinations, n_columns]
        Numbers of labels, the most frequent combination first.
    sizes : tuple of int
        How many labels each column has.

    Examples
    --------
    >>> tags_and_cases = Combinations.of([np.array([0, 0, 1]), np.array([0, 0, 1])], (2, 2))
    >>> both = np.array([[0, 1]], np.int32)
    >>> tag = Decoded(both[:, 0], both, np.array([[0.9, 0.1]]), np.zeros(1))
    >>> case = Decoded(both[:, 1], both, np.array([[0.4, 0.6]]), np.zeros(1))
    >>> [labels.tolist() for labels in tags_and_cases.agreed([tag, case])]
    [[0], [0]]
    """

    rows: NDArray[np.int32]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, columns: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> Combinations:
        """Those of a text whose words have these labels, int[n_words] for each column."""
        made = cls(np.zeros((0, len(sizes)), np.int32), tuple(sizes))
        keys, counts = np.unique(made._keys(columns), return_counts=True)
        frequent = keys[np.argsort(-counts, kind="stable")]
        rows = np.stack(np.unravel_index(frequent, made.sizes), axis=1).astype(np.int32)
        return cls(rows, made.sizes)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], sizes: Sequence[int]) -> Combinations | None:
        """What `to_arrays` kept; None from models of older versions, whose columns are tagged one by one."""
        if "combinations" not in arrays:
            return None
        layout: Layout = {"combinations": Numbers("int32", ("n", len(sizes)), least=0, below=max(sizes))}
        rows = check(arrays, layout, "the combinations of tags of the saved tagger")["combinations"]
        if not len(rows) or (rows >= np.array(sizes)).any():
            raise ModelError("the saved taggers are damaged: tags of a combination are not there. Train them again")
        return cls(rows, tuple(sizes))

    def to_arrays(self) -> dict[str, NDArray[np.int32]]:
        """What has to be kept, for `isogloss.store`."""
        return {"combinations": self.rows}

    def _keys(self, columns: Sequence[NDArray[np.integer]]) -> Keys:
        """A number for each word, the same for the same combination."""
        return np.asarray(np.ravel_multi_index([np.asarray(column) for column in columns], self.sizes), np.int64)

    def agreed(self, found: Sequence[Decoded]) -> list[NDArray[np.int32]]:
        """The labels of each column, int32[n_words], once all words have combinations that training had."""
        labels = [column.labels.copy() for column in found]
        known = np.sort(self._keys(list(self.rows.T)))
        keys = self._keys(labels)
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        strange = np.flatnonzero(known[at] != keys)
        for start in range(0, len(strange), AT_A_TIME):
            words = strange[start : start + AT_A_TIME]
            scores = sum(
                _logs(column, words, size)[:, self.rows[:, c]]
                for c, (column, size) in enumerate(zip(found, self.sizes, strict=True))
            )
            best = self.rows[np.argmax(scores, axis=1)]
            for c, own in enumerate(labels):
                own[words] = best[:, c]
        return labels


def _logs(found: Decoded, words: Keys, size: int) -> NDArray[np.float64]:
    """The logarithm of the posterior of every label for some words: float64[n, size]."""
    lists, chances = found.lists[words], found.chances[words]
    logs = np.full((len(words), size), np.log(UNLISTED))
    rows, places = np.nonzero(lists >= 0)
    logs[rows, lists[rows, places]] = np.log(np.maximum(chances[rows, places], UNLISTED))
    return logs
