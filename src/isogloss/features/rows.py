"""Scores of parts that have labels, with a row of weights for each feature."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.features.parts import Parts
from isogloss.features.scorer import chosen_sentences
from isogloss.features.table import Numbering
from isogloss.features.templates import Templates

__all__ = ["RowScorer"]

Array = NDArray[np.float64]


class RowScorer:
    r"""Scores every label of every part: a feature has a weight for each label.

    .. math:: s_{p, \ell} = \sum_{f \in F(p)} w_{f, \ell}

    A feature is looked up once for a part, whatever the number of labels and of passes over the data, and its weights
    lie side by side. The features of all parts are listed (`Templates.matrix`): four bytes each.

    Parameters
    ----------
    templates : Templates
    parts : Parts
    numbering : Index or Hashed
    n_labels : int
    wide : bool[n_features], optional
        Features that have a row: one weight for each label, and one that all labels share. Others have the shared one
        alone: those that speak against all labels, say, of which there are many. Without it every feature has a row of
        one weight for each label, and nothing is shared. Weights are all rows, then the single ones.

    Examples
    --------
    >>> from isogloss.features import Axis, Hashed, Templates, spans
    >>> parts = spans(Axis([0, 2], tag=[1, 2]), 2)
    >>> scorer = RowScorer(Templates(["first.tag"]), parts, Hashed(8), 2)
    >>> weights = np.zeros((256, 2), np.float32)
    >>> weights[:, 1] = 3
    >>> scorer.scores(weights.ravel()).tolist()
    [0.0, 3.0, 0.0, 3.0, 0.0, 3.0]
    >>> len(scorer.gradient([0.0, 1.0, 0.0, 0.0, 0.5, -0.5]).listed())
    3
    """

    def __init__(
        self,
        templates: Templates,
        parts: Parts,
        numbering: Numbering,
        n_labels: int,
        wide: NDArray[np.bool_] | None = None,
    ) -> None:
        found = templates.matrix(parts, numbering)
        self.offsets, self.n_features, self.n_labels = parts.offsets, numbering.n_features, n_labels
        self.width, self.n_wide = n_labels + (wide is not None), numbering.n_features
        self._starts, self._features = found.indptr, found.indices
        if wide is not None:
            if wide.shape != (self.n_features,):
                raise ParameterError(f"{self!r}: wide should be {self.n_features} booleans, not {list(wide.shape)}")
            self.n_wide = int(np.count_nonzero(wide))
            order = np.empty(self.n_features, np.int32)
            order[np.argsort(~wide, kind="stable")] = np.arange(self.n_features, dtype=np.int32)
            self._features = order[found.indices]

    def __repr__(self) -> str:
        return f"RowScorer({int(self.offsets[-1])} parts, {self.n_features} features, {self.n_labels} labels)"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_weights(self) -> int:
        """How many weights there are."""
        return self.n_wide * self.width + self.n_features - self.n_wide

    def scores(self, weights: NDArray[np.float32] | Array, sentences: ArrayLike | None = None) -> Array:
        """float64[n_parts · n_labels]: of the parts of some sentences, one after the other; of all without them."""
        from isogloss.features._numba.rows import score_label_rows
        from isogloss.structures.batch import run_sentences

        vector = np.ascontiguousarray(weights)
        if vector.dtype != np.float32:
            vector = vector.astype(np.float64, copy=False)
        if vector.shape != (self.n_weights,):
            raise ParameterError(f"{self!r}: weights should be {self.n_weights} numbers, not {list(vector.shape)}")
        chosen, places, total = chosen_sentences(sentences, self.offsets, repr(self))
        out = np.empty(total * self.n_labels)
        run_sentences(score_label_rows, len(chosen), *self._layout(chosen, places), vector, out)
        return out

    def gradient(self, values: ArrayLike, sentences: ArrayLike | None = None, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the labels of parts of some sentences, with the numbers of `scores`."""
        from isogloss.features._numba.rows import emit_label_rows, row_rooms
        from isogloss.structures.batch import run_sentences

        shares = np.ascontiguousarray(values)
        if shares.dtype != np.float32:
            shares = shares.astype(np.float64, copy=False)
        chosen, places, total = chosen_sentences(sentences, self.offsets, repr(self))
        if shares.shape != (total * self.n_labels,):
            wanted = total * self.n_labels
            raise ParameterError(f"{self!r}: values should be {wanted} numbers, not {list(shares.shape)}")
        given, rooms = (*self._layout(chosen, places), shares, least), np.empty(len(chosen), np.int64)
        run_sentences(row_rooms, len(chosen), *given, rooms)
        ends, room = np.cumsum(rooms), int(rooms.sum())
        kind = np.int32 if self.n_weights < 1 << 31 else np.int64
        found = Gradient(ends - rooms, ends, np.empty(room, kind), np.empty(room, shares.dtype))
        run_sentences(emit_label_rows, len(chosen), *given, found.places, found.ends, found.numbers, found.values)
        return found

    def _layout(self, chosen: NDArray[np.int64], places: NDArray[np.int64]) -> tuple[object, ...]:
        sizes = (self.n_labels, self.width, self.n_wide)
        return self._starts, self._features, self.offsets, chosen, places, *sizes
