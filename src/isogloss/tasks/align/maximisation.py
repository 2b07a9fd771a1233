"""The M-step: counts and priors to the table of words, and counts of jumps to their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.expectation import State
from isogloss.tasks.align.model import Model
from isogloss.tasks.align.priors import Cut, Stems, spelling_prior
from isogloss.tasks.align.settings import Settings

__all__ = ["START", "MStep", "maximised", "shares_of"]

START = 10.0
"""How much the priors weigh in the very first, otherwise uniform, table."""
PSEUDO = 0.5
"""Pseudo-count of every jump and first position."""


class MStep:
    """The M-step on the table of a text.

    Parameters
    ----------
    corpus, settings
    base : Model, optional
        What was learnt before, laid out for this corpus: its weights become priors.
    lexicon : float32[n_entries], optional
        Pseudo-counts from the user's own lexicon.
    """

    def __init__(
        self, corpus: Corpus, settings: Settings, base: Model | None, lexicon: NDArray[np.float32] | None
    ) -> None:  # fmt: skip
        self.corpus, self.settings, self.base = corpus, settings, base
        self.prior = self._known_before(lexicon)
        self.cuts = settings.cuts if settings.stems and base is None else ()
        self._stems: list[Stems] = []
        words = corpus.source_words, corpus.target_words
        rows = max(1, len(self.cuts))
        self.shares = tuple(np.zeros((rows, len(side) + 1), np.float32) for side in words)
        for k, cut in enumerate(self.cuts):
            known = (corpus.pairs_of_classes,) if k == 0 else ()
            stems = Stems.of(*words, corpus.rows, corpus.columns, cut, *known)
            self.shares[0][k, :-1] = shares_of(stems.source_class, corpus.source_counts)
            self.shares[1][k, :-1] = shares_of(stems.target_class, corpus.target_counts)
            self._stems.append(stems)
        self._groups = self._numbered_groups()

    @property
    def stems(self) -> Stems | None:
        """By the first way to cut words: what cells without an entry go by."""
        return self._stems[0] if self._stems else None

    def _numbered_groups(self) -> NDArray[np.int32]:
        """The pair of stems of every entry, a row for each way to cut words; numbers go on from row to row."""
        if len(self._stems) == 1:
            return self._stems[0].group[None]
        groups = np.empty((len(self._stems), len(self.corpus.columns)), np.int32)
        first = 0
        for row, stems in zip(groups, self._stems, strict=True):
            np.add(stems.group, np.int32(first), out=row)
            first += len(stems.owner) + 1
        return groups

    def _known_before(self, lexicon: NDArray[np.float32] | None) -> tuple[NDArray[Any], ...]:
        """Entries that have a prior: where those of each source type start, which they are, and their pseudo-counts."""
        corpus, settings = self.corpus, self.settings
        values = np.zeros((len(corpus.columns), 0), np.float32)
        if self.base is not None:
            values = np.maximum(0.0, self.base.weights - np.float32(settings.smoothing))
        elif settings.spelling:
            likeness = spelling_prior(corpus.source_words, corpus.target_words, corpus.rows, corpus.columns)
            likeness *= np.float32(settings.spelling)
            values = likeness[:, None]
        if lexicon is not None:
            values = values + lexicon[:, None] if values.shape[1] else lexicon[:, None]
        entries = np.flatnonzero(values.any(axis=1))
        both = np.ascontiguousarray(np.broadcast_to(values[entries], (len(entries), 2)) if values.shape[1] else [])
        starts = np.searchsorted(entries, corpus.rows)
        return starts, entries, np.asarray(both, np.float32).reshape(-1, 2)

    def __call__(self, state: State) -> tuple[Model, tuple[NDArray[np.float32], ...]]:
        """Weights and their sums, and what leaving out needs to know."""
        corpus = self.corpus
        started = state.iteration > 0 or self.base is not None
        own = tuple(np.zeros_like(share) for share in self.shares)
        pull = np.zeros((len(state.others.stray_pairs), 2), np.float32)
        if started:
            pull = self._stem_prior(state, own)
        weights, mass = self._weights(state, pull, started)
        mass, columns = self._sums(state, pull, started, weights, mass)
        nulls, null_mass = self._nulls(state, started)
        model = Model(
            corpus.source_words, corpus.target_words, corpus.source_counts, corpus.target_counts,
            corpus.rows, corpus.columns, weights,
            np.append(mass, 1.0).astype(np.float32), np.append(columns, 1.0).astype(np.float32),
            nulls[0], nulls[1], null_mass,
            state.jumps, state.first, state.last, state.diagonal,
        )  # fmt: skip
        return model, (*own, *self.shares, pull if corpus.least > 1 else np.zeros((0, 2), np.float32))

    def _weights(
        self, state: State, pull: NDArray[np.float32], started: bool
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """float32[n_entries, 2]: counts with all priors; and their sums by source type."""
        from isogloss.tasks.align._numba.expect import UNIT
        from isogloss.tasks.align._numba.lexicon import blend

        corpus, settings = self.corpus, self.settings
        weights, mass = np.empty((len(corpus.columns), 2), np.float32), np.zeros(len(corpus.source_words))
        if started:
            blend(
                corpus.rows, corpus.columns, state.counts, np.float32(1.0 / UNIT), np.float32(settings.smoothing),
                self.prior, self._groups, pull, self.shares[0], self.shares[1], weights, mass,
            )  # fmt: skip
            return weights, mass
        weights[:] = 1.0
        weights[self.prior[1]] += np.float32(START) * self.prior[2]
        if len(weights):
            starts = np.minimum(corpus.rows[:-1], max(0, len(weights) - 1))
            mass = np.add.reduceat(weights[:, 0], starts)
        return weights, np.where(np.diff(corpus.rows) > 0, mass, 0.0) + corpus.dropped[0]

    def _sums(
        self,
        state: State,
        pull: NDArray[np.float32],
        started: bool,
        weights: NDArray[np.float32],
        mass: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What the weights of each source type, and of each target type, add up to, words that never met included."""
        from isogloss.tasks.align._numba.expect import UNIT
        from isogloss.tasks.align._numba.lexicon import column_sums

        corpus, settings = self.corpus, self.settings
        n, m = len(corpus.source_words), len(corpus.target_words)
        columns = np.zeros(m)
        column_sums(corpus.columns, weights, columns)
        if self.base is not None:  # also what its words have met elsewhere
            owner = np.repeat(np.arange(n), np.diff(corpus.rows))
            mass = self.base.source_mass[:-1] + np.bincount(owner, state.counts[:, 0], minlength=n) / UNIT
            columns = self.base.target_mass[:-1] + np.bincount(corpus.columns, state.counts[:, 1], minlength=m) / UNIT
        elif started:  # the words a type has not met have the smoothing too
            mass = mass + settings.smoothing * (m - np.diff(corpus.rows))
            columns += settings.smoothing * (n - np.bincount(corpus.columns, minlength=m))
            if corpus.least > 1:
                strays = self._of_strays(state, pull)
                mass, columns = mass + strays[0], columns + strays[1]
        else:
            columns += corpus.dropped[1]
        return mass, columns

    def _nulls(self, state: State, started: bool) -> tuple[list[NDArray[np.float32]], NDArray[np.float32]]:
        """Pseudo-counts of the null word by type, on both sides, and what they add up to."""
        corpus = self.corpus
        nulls = [
            self._null(corpus.source_counts, state.others.source_null, 0, started),
            self._null(corpus.target_counts, state.others.target_null, 1, started),
        ]
        null_mass = np.array([nulls[0][:-1].sum(), nulls[1][:-1].sum()], np.float32)
        if self.base is not None:  # also words that are not here; what was known of those that are is in `nulls`
            before = (self.base.source_null, self.base.source_counts), (self.base.target_null, self.base.target_counts)
            null_mass += self.base.null_mass - [null[:-1][seen > 0].sum() for null, seen in before]
        return nulls, null_mass

    def _of_strays(self, state: State, pull: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What pairs without an entry add to the sums of source and target types: their counts, and their stem prior.

        The prior of all words that a word may meet adds up to its strength; what entries have of it is counted already.
        """
        from isogloss.tasks.align._numba.expect import UNIT
        from isogloss.tasks.align._numba.lexicon import pulled

        counted = state.others.stray_source / UNIT, state.others.stray_target / UNIT
        if self.stems is None:
            return counted
        sums = np.zeros(len(counted[0])), np.zeros(len(counted[1]))
        first = self.shares[0][0], self.shares[1][0]
        pulled(self.corpus.rows, self.corpus.columns, self._groups[0], pull, *first, *sums)
        strength = self.settings.stems
        return (
            counted[0] + np.maximum(0.0, strength - sums[0]),
            counted[1] + np.maximum(0.0, strength - sums[1]),
        )

    def _null(
        self, frequency: NDArray[np.int64], counts: NDArray[np.int64], side: int, started: bool
    ) -> NDArray[np.float32]:
        """Pseudo-counts of the null word by type; the last, for unknown words, is half an occurrence."""
        from isogloss.tasks.align._numba.expect import UNIT

        counted = counts / UNIT
        if self.base is not None:
            before = self.base.target_null if side else self.base.source_null
            return np.asarray(before + np.append(counted, 0.0), np.float32)
        share = frequency / max(1, frequency.sum())
        spread = self.settings.null_smoothing * len(frequency)
        if not started:
            return np.append(share, 0.5 / max(1, frequency.sum())).astype(np.float32)
        return np.append(counted + spread * share, spread * 0.5 / max(1, frequency.sum())).astype(np.float32)

    def _stem_prior(self, state: State, own: tuple[NDArray[np.float32], ...]) -> NDArray[np.float32]:
        """Strength times probability of each pair of stems, as `_groups` numbers them.

        `own` is filled with what one occurrence adds to it.
        """
        nothing = np.zeros((0, 2), np.float32)
        rows = [(own[0][k], own[1][k]) for k in range(len(self._stems))]
        strays = [state.others.stray_pairs, *[state.others.stray_pairs[:0]] * (len(rows) - 1)]
        given = zip(self._stems, self.cuts, strays, rows, strict=False)
        return np.concatenate([nothing, *(self._pull(state.counts, *one) for one in given)])

    def _pull(
        self,
        counts: NDArray[np.int64],
        stems: Stems,
        cut: Cut,
        strays: NDArray[np.int64],
        own: tuple[NDArray[np.float32], NDArray[np.float32]],
    ) -> NDArray[np.float32]:
        """That of one way to cut words; `strays` are counts of pairs of stems that no entry has."""
        from isogloss.tasks.align._numba.expect import UNIT
        from isogloss.tasks.align._numba.lexicon import group_sums, stem_pull

        strength = self.settings.stems * cut.factor
        sums = np.zeros((len(stems.owner) + 1, 2), np.int64)  # the last is for entries whose stems have no pair
        sums[: len(strays)] = strays
        group_sums(stems.members, stems.member_starts, self.corpus.rows, stems.group, counts, sums)
        pull = np.zeros((len(stems.owner) + 1, 2), np.float32)
        forward, backward = np.zeros(len(stems.starts) - 1), np.zeros(int(stems.target_class.max(initial=-1)) + 1)
        stem_pull(stems.starts, stems.other, 1.0 / UNIT, strength, sums, pull, forward, backward)
        own[0][:-1] = strength / np.maximum(forward[stems.source_class], strength / 1e3)
        own[1][:-1] = strength / np.maximum(backward[stems.target_class], strength / 1e3)
        return pull


def maximised(
    counts: NDArray[np.float64], divisors: NDArray[np.float64], before: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The generalised M-step of distortion weights, with a pseudo-count, each direction summing to 1."""
    weights: NDArray[np.float64] = (counts + PSEUDO) / (divisors + PSEUDO / before)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def shares_of(classes: NDArray[np.int32], counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Which part of its class each word is."""
    totals = np.bincount(classes, counts)
    share: NDArray[np.float32] = (counts / np.maximum(1.0, totals[classes])).astype(np.float32)
    return share
