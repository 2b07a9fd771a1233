"""`WordLattices`: the ways to cut different words that a model of morphemes does not rule out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isogloss.structures.batch import run_sentences
from isogloss.tasks.segment.cuts import rows_of
from isogloss.tasks.segment.morphemes import MorphemeModel, word_batches
from isogloss.tasks.segment.submodels import STEM, MorphemeSettings
from isogloss.tasks.segment.types import WordTypes, span_starts

__all__ = ["WordLattices"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WordLattices:
    """Lattices of words, one after the other: a row is a span with a type, an arc is a row between two nodes.

    Parameters
    ----------
    types : WordTypes
    nodes : int64[n_words]
        Nodes of each word; the first is its beginning, the last its end.
    arcs : int32[n_arcs, 3]
        Tail, head and row, each within the word.
    about : int32[n_arcs, 3]
        The place of the arc's morpheme in the word (0, 1, 2), the type before it (k at the beginning), and whether the
        word ends.
    arcs_at, rows_at : int64[n_words + 1]
        Where the arcs and rows of each word begin.
    rows : int64[n_rows, 4]
        Begin, end and type of the morpheme, and the number of the span among those of all words.

    Examples
    --------
    >>> from isogloss.tasks.segment.morphemes import MorphemeSettings
    >>> words = WordTypes.of([stem + ending for stem in ("walk", "talk", "jump", "call") for ending in ("", "s", "ed")])
    >>> model = MorphemeModel.fit(words, MorphemeSettings())
    >>> lattices = WordLattices.of(words.part(1, 2), model, 0.05)              # walks
    >>> sorted({tuple(row) for row in lattices.rows[:, :3].tolist()})          # walk + s, or walks
    [(0, 4, 1), (0, 5, 1), (4, 5, 2)]
    """

    types: WordTypes
    nodes: Integers
    arcs: NDArray[np.int32]
    about: NDArray[np.int32]
    arcs_at: Integers
    rows_at: Integers
    rows: Integers

    @classmethod
    def of(
        cls, types: WordTypes, model: MorphemeModel, least: float, marks: NDArray[np.int8] | None = None
    ) -> WordLattices:
        """What a model finds at least as probable as `least`, its best way to cut each word, and each word whole.

        Parameters
        ----------
        types : WordTypes
            In the letters of the model.
        model : MorphemeModel
        least : float
            The smallest posterior of a span with a type; 0 for all that is allowed.
        marks : int8[n_letters], optional
            Boundaries that are known, as `marks_of` has them.
        """
        settings = model.settings
        keep = [np.zeros((0, settings.n_labels), np.bool_)]
        offsets = types.letters.offsets - types.letters.offsets[0]
        for some in word_batches(types, settings):
            known = None if marks is None else marks[offsets[some.start] : offsets[some.stop]]
            keep.append(_kept(types.part(some.start, some.stop), model, least, known))
        return cls._cut(types, np.concatenate(keep), settings)

    @classmethod
    def _cut(cls, types: WordTypes, keep: NDArray[np.bool_], settings: MorphemeSettings) -> WordLattices:
        """From the spans with types that are kept."""
        from isogloss.tasks.segment._numba.bilingual import cut_lattices

        starts, lengths = span_starts(types.letters, settings.longest), types.letters.lengths
        sizes, none = np.zeros((len(types), 3), np.int64), np.zeros((0, 3), np.int32)
        given = (lengths, settings.longest, starts, keep, settings.allowed_steps())
        empty = np.zeros(0, np.int64)
        cut_lattices(*given, 0, sizes, none, none, np.zeros((0, 4), np.int64), empty, empty, empty)
        places = [np.concatenate([[0], np.cumsum(sizes[:, c])]).astype(np.int64) for c in range(3)]
        arcs, about = (np.empty((int(places[1][-1]), 3), np.int32) for _ in range(2))
        rows = np.empty((int(places[2][-1]), 4), np.int64)
        cut_lattices(*given, 1, sizes, arcs, about, rows, *places)
        return cls(types, sizes[:, 0].copy(), arcs, about, places[1], places[2], rows)

    def __len__(self) -> int:
        return len(self.types)

    @property
    def words_of_rows(self) -> Integers:
        """int64[n_rows]: the word of each row."""
        return np.repeat(np.arange(len(self)), np.diff(self.rows_at))

    @property
    def rows_of_arcs(self) -> Integers:
        """int64[n_arcs]: the row of each arc among those of all words."""
        return np.asarray(np.repeat(self.rows_at[:-1], np.diff(self.arcs_at)) + self.arcs[:, 2], np.int64)

    def arc_scores(self, penalty: Array, ends: Array, steps: Array) -> Array:
        """float64[n_arcs]: what arcs weigh beside their morphemes: length, types, and how the word goes on.

        Parameters
        ----------
        penalty : float64[k, longest + 1]
        ends : float64[2, 3, k]
        steps : float64[2, k + 1, k + 1]
        """
        k, rows = penalty.shape[0], self.rows[self.rows_of_arcs]
        place, before, ending = self.about.T
        label, found = rows[:, 2], penalty[rows[:, 2], rows[:, 1] - rows[:, 0]]
        found = found + ends[ending, place, label] + steps[(before == k).astype(np.int64), before, label]
        return np.asarray(found + np.where(ending == 1, steps[1, label, k], 0.0))


def _kept(types: WordTypes, model: MorphemeModel, least: float, marks: NDArray[np.int8] | None) -> NDArray[np.bool_]:
    """bool[n_spans, k]: which spans of words are looked at, with which types."""
    from isogloss.tasks.segment._numba.spans import span_posteriors

    settings, known = model.settings, np.zeros(0, np.int8) if marks is None else marks
    longest, k, lengths = settings.longest, settings.n_labels, types.letters.lengths
    starts, q = span_starts(types.letters, longest), model.distributions(types, known)
    found, marginals = np.zeros((int(starts[-1]), k)), q.marginals()
    given = (types.letters.offsets, longest, starts, marginals.values, marginals.offsets, k, found)
    run_sentences(span_posteriors, len(types), *given)
    keep, best = found > least, list(q.argmax())
    keep[rows_of(best, lengths, longest), [label for y in best for _, _, label in y]] = True
    if marks is None:
        whole = np.flatnonzero(lengths <= longest)
        keep[starts[whole] + lengths[whole] - 1, STEM if settings.typed else 0] = True
    return keep
