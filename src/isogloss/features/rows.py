"""Scores of parts that have labels, a row of weights for each feature: found by walking templates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.features.parts import Parts
from isogloss.features.scorer import TemplateScorer
from isogloss.features.table import Numbering
from isogloss.features.templates import Templates

__all__ = ["RowScorer"]

Array = NDArray[np.float64]


class RowScorer(TemplateScorer):
    r"""Scores every label of every part: a feature has a weight for each label.

    .. math:: s_{p, \ell} = \sum_{f \in F(p)} w_{f, \ell}

    A feature is looked up once for a part, whatever the number of labels, and its weights lie side by side.

    Parameters
    ----------
    templates, parts, numbering
        As of `TemplateScorer`.
    n_labels : int

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

    def __init__(self, templates: Templates, parts: Parts, numbering: Numbering, n_labels: int) -> None:
        super().__init__(templates, parts, numbering)
        self.n_labels = n_labels

    @property
    def n_weights(self) -> int:
        """How many weights there are."""
        return self.n_features * self.n_labels

    @property
    def offsets(self) -> NDArray[np.int64]:
        """int64[n_sentences + 1]: where the scores of each sentence begin."""
        return self.parts.offsets * self.n_labels

    def scores(self, weights: NDArray[np.float32] | Array, sentences: ArrayLike | None = None) -> Array:
        """float64[n_parts · n_labels]: of the parts of some sentences, one after the other; of all without them."""
        from isogloss.features._numba.rows import score_label_rows
        from isogloss.structures.batch import run_sentences

        vector = np.ascontiguousarray(weights)
        if vector.dtype != np.float32:
            vector = vector.astype(np.float64, copy=False)
        if vector.shape != (self.n_weights,):
            raise ParameterError(f"{self!r}: weights should be {self.n_weights} numbers, not {list(vector.shape)}")
        chosen, places, total = self._chosen(sentences)
        out = np.empty(total * self.n_labels)
        given = (self._view, chosen, places, self._lookup, self.n_labels, vector)
        run_sentences(score_label_rows, len(chosen), *given, out)
        return out

    def gradient(self, values: ArrayLike, sentences: ArrayLike | None = None, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the labels of parts of some sentences, with the numbers of `scores`."""
        from isogloss.features._numba.rows import active_parts, emit_label_rows, row_rooms
        from isogloss.structures.batch import run_sentences

        shares = np.ascontiguousarray(values)
        if shares.dtype != np.float32:
            shares = shares.astype(np.float64, copy=False)
        chosen, places, total = self._chosen(sentences)
        if shares.shape != (total * self.n_labels,):
            wanted = total * self.n_labels
            raise ParameterError(f"{self!r}: values should be {wanted} numbers, not {list(shares.shape)}")
        active, labels, rooms = np.empty(total), np.empty(total, np.int64), np.empty(len(chosen), np.int64)
        given = (chosen, self.parts.offsets, places, self.n_labels, shares, least)
        run_sentences(active_parts, len(chosen), *given, active, labels)
        row_rooms(self._view, chosen, places, active, labels, least, rooms)
        ends = np.cumsum(rooms)
        begins, room = ends - rooms, int(rooms.sum())
        kind = np.int32 if self.n_weights < 1 << 31 else np.int64
        found = Gradient(begins, begins.copy(), np.empty(room, kind), np.empty(room, shares.dtype))
        walked = (self._view, chosen, places, self._lookup, self.n_labels, shares, active, least)
        run_sentences(emit_label_rows, len(chosen), *walked, begins, found.ends, found.numbers, found.values)
        return found
