r"""`Distortion`: which source position the next morpheme comes from, log-linear in how far it jumps.

.. math:: P(a_i \mid c_{i-1}, b_{i-1}) = \frac{\exp w \cdot f(a_i - c_{i-1} - 1, b_{i-1})}{\sum_{a'} \exp w \cdot f}

Positions and null are outcomes of one distribution, which is normalised for every sentence length and position. The
same position costs a jump of −1, the next one of 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isogloss.learners.multinomials import LogLinearMultinomial

__all__ = ["FARTHEST", "N_FEATURES", "Distortion", "n_steps"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

FARTHEST = 10
"""Jumps that are longer are alike."""
CLASSES = 2 * FARTHEST + 4
"""Jumps from -FARTHEST - 1 to FARTHEST + 1, and null."""
NULL = CLASSES - 1


N_FEATURES = 3 * (FARTHEST + 2 + 5 + 1)
"""Distances, directions and null: each alone, inside words and across their borders."""


def n_steps(sizes: Integers) -> Integers:
    """int64[n]: numbers in the tables of sentences with so many source positions.

    >>> n_steps([0, 2]).tolist()        # 2 · 3 · 3 steps, 3 ends
    [3, 21]
    """
    width = np.asarray(sizes, np.int64) + 1
    return np.asarray(2 * width * width + width, np.int64)


def features() -> NDArray[np.float64]:
    """float64[2 · CLASSES, n_features]: of jumps inside words, then across their borders.

    The distance, the direction in five bins, and null; each alone and together with whether a border is crossed.
    """
    jumps = np.arange(-FARTHEST - 1, FARTHEST + 2)
    distance = np.eye(FARTHEST + 2)[np.abs(jumps)]
    direction = np.eye(5)[np.clip(jumps, -2, 2) + 2]
    own = np.zeros((CLASSES, distance.shape[1] + direction.shape[1] + 1))
    own[:-1, :-1], own[NULL, -1] = np.hstack([distance, direction]), 1.0
    none = np.zeros(own.shape)
    return np.vstack([np.hstack([own, own, none]), np.hstack([own, none, own])])


class Distortion:
    """Tables of steps for sentences of some numbers of source positions, and the weights that make them.

    A table has float64[2, m + 1, m + 1] as `AlignedSegments` has them, and then float64[m + 1] for the end, where a
    position behind the last one is jumped to.

    Parameters
    ----------
    sizes : int64[n]
        Numbers of source positions, rising.
    variance : float
        Of the prior on weights.

    Examples
    --------
    >>> tables = Distortion([2], 10.0).tables(np.zeros(54))
    >>> np.exp(tables[:9]).reshape(3, 3).round(2).tolist()          # without weights all outcomes are alike
    [[0.33, 0.33, 0.33], [0.33, 0.33, 0.33], [0.33, 0.33, 0.33]]
    """

    def __init__(self, sizes: Sequence[int] | Integers, variance: float) -> None:
        from scipy.sparse import csr_matrix

        self.sizes = np.asarray(sizes, np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(n_steps(self.sizes))]).astype(np.int64)
        keys, contexts = [], 0
        for m in self.sizes.tolist():
            jumps = np.arange(m + 1)[np.newaxis] - np.append(np.arange(m) + 1, 0)[:, np.newaxis]
            own = np.clip(jumps, -FARTHEST - 1, FARTHEST + 1) + FARTHEST + 1  # [from, to], the last column is the end
            steps = own.copy()
            steps[:, m] = NULL
            for kind, table in ((0, steps), (1, steps), (2, own)):
                context = contexts + np.arange(m + 1)[:, np.newaxis]
                keys.append((((context * 2) + min(kind, 1)) * CLASSES + table).ravel())
                contexts += m + 1
        whole = np.concatenate([np.zeros(0, np.int64), *keys])
        rows, self._row_of, many = np.unique(whole, return_inverse=True, return_counts=True)
        self._cells = self._places()
        starts = np.flatnonzero(np.diff(rows // (2 * CLASSES), prepend=-1))
        self._base, table = np.log(many), features()
        self._model: LogLinearMultinomial | None = None
        self.n_weights = N_FEATURES
        if len(rows):
            self._model = LogLinearMultinomial(
                csr_matrix(table)[rows % (2 * CLASSES)], np.append(starts, len(rows)), l2=1.0 / variance,
                base=self._base,
            )  # fmt: skip

    def _places(self) -> Integers:
        """Where the cells of all contexts are in tables: of the contexts of the end, the last column alone is there."""
        found, at = [np.zeros(0, np.int64)], 0
        for m in self.sizes.tolist():
            block = (m + 1) * (m + 1)
            ends = np.full((m + 1, m + 1), -1, np.int64)
            ends[:, m] = at + 2 * block + np.arange(m + 1)
            found += [at + np.arange(2 * block), ends.ravel()]
            at += 2 * block + m + 1
        return np.concatenate(found)

    def tables(self, weights: Array) -> Array:
        """float64[.]: log probabilities of all steps and ends, one size after the other."""
        out = np.zeros(int(self.offsets[-1]))
        if self._model is not None:
            each = (self._model.log_probs(weights) - self._base)[self._row_of]
            there = self._cells >= 0
            out[self._cells[there]] = each[there]
        return out

    def uniform(self) -> Array:
        """The same where positions and null are equally probable, and ends say nothing."""
        found = [np.zeros(0)]
        for m in self.sizes.tolist():
            found += [np.full(2 * (m + 1) * (m + 1), -np.log(m + 1.0)), np.zeros(m + 1)]
        return np.concatenate(found)

    def fit(self, counts: Array, start: Array) -> Array:
        """Weights for expected counts, laid out as tables are."""
        if self._model is None:
            return start
        there = self._cells >= 0
        own = np.where(there, counts[np.where(there, self._cells, 0)], 0.0)
        return self._model.fit(np.bincount(self._row_of, own, self._model.n_rows), start).weights

    def log_prior(self, weights: Array) -> float:
        """What the prior on weights adds to the objective."""
        return 0.0 if self._model is None else self._model.log_prior(weights)
