"""Scores and gradients of parts by walking templates: features are found as they are needed, and never listed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.features.parts import Parts
from isogloss.features.table import Numbering
from isogloss.features.templates import Templates

__all__ = ["TemplateScorer", "chosen_sentences"]

Array = NDArray[np.float64]


class TemplateScorer:
    r"""Scores parts by the weights of their features.

    .. math:: s_p = \sum_{f \in F(p)} w_f \qquad \nabla = \sum_p x_p \sum_{f \in F(p)} e_f

    It does what `Templates.matrix` and `Sparse` do, without the matrix: templates are walked for scores, and again for
    gradients. That takes four bytes less for each feature of each part, and time for finding them again.

    Parameters
    ----------
    templates : Templates
    parts : Parts
    numbering : Index or Hashed

    Examples
    --------
    >>> from isogloss.features import Axis, Hashed, Templates, spans
    >>> parts = spans(Axis([0, 3], tag=[1, 2, 1]), 2)
    >>> scorer = TemplateScorer(Templates(["length", "inside.tag"]), parts, Hashed(20))
    >>> weights = np.ones(scorer.n_features, np.float32)
    >>> scorer.scores(weights).tolist()
    [2.0, 3.0, 2.0, 3.0, 2.0]
    >>> found = scorer.gradient([1.0, 0.0, -1.0, 0.0, 0.5])
    >>> found.values[found.places[0] : found.ends[0]].tolist()
    [1.0, 1.0, -1.0, -1.0, 0.5, 0.5]
    """

    def __init__(self, templates: Templates, parts: Parts, numbering: Numbering) -> None:
        self.templates, self.parts, self.numbering = templates, parts, numbering
        self._view, self._lookup = templates.on(parts), numbering.lookup

    def __repr__(self) -> str:
        return f"TemplateScorer({self.parts.n_parts} parts, {len(self.templates)} templates, {self.numbering!r})"

    def __len__(self) -> int:
        return len(self.parts.offsets) - 1

    @property
    def n_features(self) -> int:
        """How many weights there are."""
        return self.numbering.n_features

    def scores(self, weights: NDArray[np.float32] | Array, sentences: ArrayLike | None = None) -> Array:
        """float64[n_parts]: of the parts of some sentences, one after the other; of all without `sentences`.

        Weights are float32 or float64. Runs on the threads of `using_threads`; the bits do not depend on their number.
        """
        from isogloss.features._numba.walk import score_parts
        from isogloss.structures.batch import run_sentences

        vector = np.ascontiguousarray(weights)
        if vector.dtype != np.float32:
            vector = vector.astype(np.float64, copy=False)
        if vector.shape != (self.n_features,):
            raise ParameterError(f"{self!r}: weights should be {self.n_features} numbers, not {list(vector.shape)}")
        chosen, places, total = chosen_sentences(sentences, self.parts.offsets, repr(self))
        out = np.empty(total)
        run_sentences(score_parts, len(chosen), self._view, chosen, places, self._lookup, vector, out)
        return out

    def gradient(self, values: ArrayLike, sentences: ArrayLike | None = None, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the parts of some sentences, with the numbers of `scores`.

        Values up to `least` in size count as 0. Entries are as exact as the values: float32, or float64.
        """
        from isogloss.features._numba.walk import emit_features, rooms_of
        from isogloss.structures.batch import run_sentences

        shares = np.ascontiguousarray(values)
        if shares.dtype != np.float32:
            shares = shares.astype(np.float64, copy=False)
        chosen, places, total = chosen_sentences(sentences, self.parts.offsets, repr(self))
        if shares.shape != (total,):
            raise ParameterError(f"{self!r}: values should be {total} numbers, not {list(shares.shape)}")
        rooms = np.empty(len(chosen), np.int64)
        rooms_of(self._view, chosen, places, shares, least, rooms)
        ends = np.cumsum(rooms)
        begins, room = ends - rooms, int(rooms.sum())
        found = Gradient(begins, begins.copy(), np.empty(room, np.int32), np.empty(room, shares.dtype))
        given = (self._view, chosen, places, self._lookup, shares, least)
        run_sentences(emit_features, len(chosen), *given, begins, found.ends, found.numbers, found.values)
        return found


def chosen_sentences(
    sentences: ArrayLike | None, offsets: NDArray[np.int64], place: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Sentences, all if None; where the parts of each begin among theirs; and how many these are.

    Those of sentence *s* are ``offsets[s] … offsets[s + 1] - 1``; `place` is who asks, for messages.
    """
    many = len(offsets) - 1
    chosen = np.arange(many) if sentences is None else np.ascontiguousarray(sentences, np.int64)
    if chosen.ndim != 1 or (chosen.size and not 0 <= chosen.min() <= chosen.max() < many):
        raise ParameterError(f"{place}: sentences should be numbers from 0 to {many - 1}")
    sizes = np.diff(offsets)[chosen]
    return chosen, np.cumsum(sizes) - sizes, int(sizes.sum())
