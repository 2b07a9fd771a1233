r"""What an aligner has learnt: a table of word pairs, null words and distortion.

Translation probabilities are kept as pseudo-counts. With expected counts :math:`c(e, f)` and priors :math:`\pi(e, f)`,

.. math:: p(f \mid e) = \frac{c(e, f) + \pi(e, f)}{\sum_{f'} c(e, f') + \pi(e, f')},

so that a sentence can take its own part out again while it is being judged, and so that more text adds up with what was
learnt before. Backward probabilities have counts of their own in the same entries.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Vocabulary
from isogloss.engine.shards import shards
from isogloss.layout import COUNTS, Layout, Numbers, Offsets, Strings, check, collect
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.priors import Cut, StemTable, spelling_prior
from isogloss.tasks.align.settings import Settings

__all__ = ["Model"]

Floats = NDArray[np.float32]
_AT_ONCE = 1 << 22  # entries
_LAYOUT: Layout = {
    "source_words": Strings("n", distinct=True),
    "target_words": Strings("m", distinct=True),
    "source_counts": Numbers("int64", "n", least=0, below=COUNTS),
    "target_counts": Numbers("int64", "m", least=0, below=COUNTS),
    "rows": Offsets("n", "k"),
    "columns": Numbers("int32", "k", least=0, below="m"),
    "weights": Numbers("float32", ("k", 2), least=0),
    "source_mass": Numbers("float32", "n + 1", least=0),
    "target_mass": Numbers("float32", "m + 1", least=0),
    "source_null": Numbers("float32", "n + 1", least=0),
    "target_null": Numbers("float32", "m + 1", least=0),
    "null_mass": Numbers("float32", 2, least=0),
    "jumps": Numbers("float64", (2, "buckets"), least=0),
    "first": Numbers("float64", (2, "first"), least=0),
    "last": Numbers("float64", (2, "first"), least=0),
    "diagonal": Numbers("float64", (2, "buckets"), least=0),
}


@dataclass(frozen=True, eq=False)
class Model:
    """Parameters of both directions.

    Arrays by word type have one element more than there are types: the last is for unknown words.

    Parameters
    ----------
    source_words, target_words : Vocabulary
    source_counts, target_counts : int64[n_types]
        Occurrences in the training text.
    rows, columns : int64[n_source + 1], int32[n_entries]
    weights : float32[n_entries, 2]
        Counts and priors of each pair, forward and backward.
    source_mass, target_mass : float32[n_types + 1]
        Their sums by source type (forward) and target type (backward).
    source_null, target_null : float32[n_types + 1]
        Pseudo-counts of words that have no link; `null_mass` float32[2] are their sums.
    jumps, first, last, diagonal : float64[2, .]
        Distortion of both directions (see `structures/_numba/jumps.py`).
    """

    source_words: Vocabulary
    target_words: Vocabulary
    source_counts: NDArray[np.int64]
    target_counts: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int32]
    weights: Floats
    source_mass: Floats
    target_mass: Floats
    source_null: Floats
    target_null: Floats
    null_mass: Floats
    jumps: NDArray[np.float64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]
    diagonal: NDArray[np.float64]
    _stem_tables: dict[tuple[float, Cut], StemTable] = field(default_factory=dict, init=False, repr=False)

    def parameters(
        self, settings: Settings, own: tuple[Floats, ...] | None = None, *, floor: float | None = None
    ) -> Any:
        """As the E-step takes them; `own` as `Training.estimate` gives it, for sentences of the training text.

        `floor` is the weight of a pair without entry, by default the smoothing.
        """
        from isogloss.tasks.align._numba.expect import Parameters

        floor = settings.smoothing if floor is None else floor
        if own is None:
            zeros = np.zeros((1, len(self.source_mass)), np.float32), np.zeros((1, len(self.target_mass)), np.float32)
            own = (*zeros, *zeros, np.zeros((0, 2), np.float32))
        return Parameters(
            self.weights, self.source_mass, self.target_mass, self.source_null, self.target_null, self.null_mass,
            self.jumps, self.first, self.last, self.diagonal, settings.null_weight, np.float32(floor), *own,
        )  # fmt: skip

    def pruned(self, least: float = 1e-6) -> Model:
        """Without entries that are improbable in both directions; they count as pairs that never met."""
        keep = np.empty(len(self.columns), bool)
        for start, stop in shards(np.diff(self.rows), limit=_AT_ONCE):
            part = slice(self.rows[start], self.rows[stop])
            mass = np.repeat(self.source_mass[start:stop], np.diff(self.rows[start : stop + 1]))
            keep[part] = self.weights[part, 0] >= least * mass
            keep[part] |= self.weights[part, 1] >= least * self.target_mass[self.columns[part]]
        kept = np.concatenate([[0], np.cumsum(keep, dtype=np.int32)])
        return replace(
            self, rows=kept[self.rows].astype(np.int64), columns=self.columns[keep], weights=self.weights[keep]
        )

    def fitted_to(self, corpus: Corpus, settings: Settings, *, learning: bool = False) -> Model:
        """The same parameters laid out for another text: entries for its word pairs, unknown words included.

        A pair that the table lacks has its priors: smoothing, likeness of spelling and, where their stems are known to
        go together, the stem prior. What a pair of words is given depends on the two words alone, so that a sentence
        has the same links in whatever company it comes. With `learning`, the model is to be trained on this text: then
        the priors of new pairs count in the sums of their words, so that probabilities still add up to one.
        """
        from isogloss.tasks.align._numba.lexicon import look_up

        source = self.source_words.encode(corpus.source_words)
        target = self.target_words.encode(corpus.target_words)
        weights = np.full((len(corpus.columns), 2), settings.smoothing, np.float32)
        found = np.zeros(len(corpus.columns), bool)
        look_up(
            corpus.rows, corpus.columns, source, target, self.rows, self.columns, self.weights,
            max(1, len(self.target_words)), weights, found,
        )  # fmt: skip
        unmet = ~found
        if settings.spelling:
            likeness = spelling_prior(corpus.source_words, corpus.target_words, corpus.rows, corpus.columns)
            weights[unmet] += np.float32(settings.spelling) * likeness[unmet, None]
        if settings.stems:
            for table in self._stems(settings):
                weights[unmet] += table.prior(corpus, source, target)[unmet]
        of_stems = settings.stems * sum(cut.factor for cut in settings.cuts)
        room = 0.0 if learning else settings.spelling + of_stems
        source_mass = _with_last(self.source_mass, settings.smoothing * len(self.target_words) + room)[source]
        target_mass = _with_last(self.target_mass, settings.smoothing * len(self.source_words) + room)[target]
        if learning:
            extra = np.where(unmet[:, None], weights - np.float32(settings.smoothing), np.float32(0.0))
            owner = np.repeat(np.arange(len(source)), np.diff(corpus.rows))
            source_mass = source_mass + np.bincount(owner, extra[:, 0], minlength=len(source))
            target_mass = target_mass + np.bincount(corpus.columns, extra[:, 1], minlength=len(target))
        return Model(
            corpus.source_words,
            corpus.target_words,
            np.append(self.source_counts, 0)[source],
            np.append(self.target_counts, 0)[target],
            corpus.rows,
            corpus.columns,
            weights,
            np.append(source_mass, 1.0).astype(np.float32),
            np.append(target_mass, 1.0).astype(np.float32),
            np.append(self.source_null[source], np.float32(1.0)),
            np.append(self.target_null[target], np.float32(1.0)),
            self.null_mass,
            self.jumps,
            self.first,
            self.last,
            self.diagonal,
        )

    def merged(self, other: Model) -> Model:
        """This model with what `other` learnt from more text on top of it.

        `other` was trained with this model as its base, so that where both have an entry, a word or the distortion, its
        numbers already contain ours. Words and entries that it did not meet stay as they are.
        """
        source, source_at = _union(self.source_words, other.source_words)
        target, target_at = _union(self.target_words, other.target_words)
        old = _keys(self.rows, self.columns, np.arange(len(self.source_words)), np.arange(len(self.target_words)))
        new = _keys(other.rows, other.columns, source_at, target_at)
        rows, columns, weights = _table(old, new, self.weights, other.weights, len(source))

        def laid(ours: NDArray[Any], theirs: NDArray[Any], at: NDArray[np.int64], size: int) -> NDArray[Any]:
            out = np.empty(size + 1, ours.dtype)
            out[: len(ours) - 1] = ours[:-1]
            out[at] = theirs[:-1]
            out[-1] = ours[-1]
            return out

        counts = []
        for ours, theirs, at, size in (
            (self.source_counts, other.source_counts, source_at, len(source)),
            (self.target_counts, other.target_counts, target_at, len(target)),
        ):
            total = np.zeros(size, np.int64)
            total[: len(ours)] += ours
            np.add.at(total, at, theirs)
            counts.append(total)
        return Model(
            source, target, counts[0], counts[1], rows, columns, weights,
            laid(self.source_mass, other.source_mass, source_at, len(source)),
            laid(self.target_mass, other.target_mass, target_at, len(target)),
            laid(self.source_null, other.source_null, source_at, len(source)),
            laid(self.target_null, other.target_null, target_at, len(target)),
            other.null_mass, other.jumps, other.first, other.last, other.diagonal,
        )  # fmt: skip

    def _stems(self, settings: Settings) -> list[StemTable]:
        """Which stems go together, computed when first asked for; a table for each way to cut words."""
        for cut in settings.cuts:
            if (settings.stems, cut) not in self._stem_tables:
                self._stem_tables[settings.stems, cut] = StemTable.of(self, settings.stems, cut)
        return [self._stem_tables[settings.stems, cut] for cut in settings.cuts]

    # --- saving

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, under names of their own, for `isogloss.store`."""
        return collect(self, _LAYOUT)

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Model:
        """What `arrays` gave; refuses tables whose parts do not fit each other."""
        from isogloss.structures._numba.jumps import BUCKETS, FIRST

        arrays = {"last": np.ones((2, FIRST)), **arrays}  # older models knew nothing of the last word
        found = check(arrays, _LAYOUT, "the tables of this model", {"buckets": BUCKETS, "first": FIRST})
        words = {f"{side}_words": Vocabulary(found[f"{side}_words"]) for side in ("source", "target")}
        return cls(**found | words)


def _with_last(array: Floats, value: float) -> Floats:
    array = array.copy()
    array[-1] = value
    return array


def _union(ours: Vocabulary, theirs: Vocabulary) -> tuple[Vocabulary, NDArray[np.int64]]:
    """Our words, then theirs that are new; and where each of theirs is."""
    numbers = {word: k for k, word in enumerate(ours)}
    at = np.array([numbers.setdefault(word, len(numbers)) for word in theirs], np.int64)
    return Vocabulary(numbers), at


def _keys(
    rows: NDArray[np.int64], columns: NDArray[np.int32], source_at: NDArray[np.int64], target_at: NDArray[np.int64]
) -> NDArray[np.int64]:
    """One number for each entry, the same in both tables for the same pair of words."""
    owner = np.repeat(np.arange(len(rows) - 1), np.diff(rows))
    return source_at[owner] << 32 | target_at[columns]


def _table(
    old: NDArray[np.int64], new: NDArray[np.int64], old_weights: Floats, new_weights: Floats, n_sources: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats]:
    """All entries of both tables, the new weights where both have one."""
    keys = np.concatenate([new, old])
    order = np.argsort(keys, kind="stable")  # of equal keys the new one comes first
    keys = keys[order]
    keep = np.concatenate([[True], keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, bool)
    order, keys = order[keep], keys[keep]
    weights = np.concatenate([new_weights, old_weights])[order]
    rows = np.searchsorted(keys >> 32, np.arange(n_sources + 1)).astype(np.int64)
    return rows, (keys & 0xFFFFFFFF).astype(np.int32), weights
