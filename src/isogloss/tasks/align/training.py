r"""EM for both directions at once, as a learner that `learners.runner` drives.

A step is an E-step over shards of the text and an M-step on the table. Three things set it apart from textbook EM:

- *Constraints* act on the posteriors before they are counted: agreement multiplies both directions' posteriors [1]_,
  bijectivity and symmetry project them [2]_.
- *Own evidence is left out*: a cell is judged by :math:`c(e, f) - q_{ij}`, the counts without what it put in itself in
  the step before. It is what a collapsed sampler does, in expectation (CVB0 [3]_), and it stops words that occur once
  from being pinned to whatever they were first thrown together with. With this on, the objective is no longer a bound
  that can only rise; with `leave_out=0` it is (see the tests).
- *Priors* (smoothing, spelling, stems, a lexicon) are pseudo-counts in the table.

References
----------
.. [1] Liang, Taskar and Klein, Alignment by Agreement, NAACL 2006, section 3. Distortion and null counts come from each
   direction's own posteriors.
.. [2] Graça, Ganchev and Taskar, CL 2010, section 3.
.. [3] Asuncion, Welling, Smyth and Teh, On Smoothing and Inference for Topic Models, UAI 2009, section 3.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links
from isogloss.engine.shards import shards
from isogloss.tasks.align import decode as decoding
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.model import Model
from isogloss.tasks.align.priors import Stems, spelling_prior
from isogloss.tasks.align.settings import Settings

__all__ = ["Evidence", "Info", "State", "Training"]

_SHARD = 1 << 22  # cells; bounds nothing but how often progress is told and where distortion counts are added up
_START = 10.0  # how much the priors weigh in the very first, otherwise uniform, table
_PSEUDO = 0.5  # pseudo-count of every jump and first position


class Evidence(NamedTuple):
    """What an E-step leaves: posteriors in units of 1/65535 and log-probabilities."""

    posterior: NDArray[np.uint16]  # [n_cells, 2]
    source_null: NDArray[np.uint16]  # [n_source_tokens]
    target_null: NDArray[np.uint16]  # [n_target_tokens]
    scores: NDArray[np.float64]  # [n_pairs, 2], log p of each side given the other

    @classmethod
    def none(cls, corpus: Corpus) -> Evidence:
        return cls(
            np.zeros((corpus.n_cells, 2), np.uint16),
            np.zeros(len(corpus.pairs.source_ids), np.uint16),
            np.zeros(len(corpus.pairs.target_ids), np.uint16),
            np.full((len(corpus), 2), np.nan),
        )

    def spectrum(self) -> NDArray[np.int64]:
        """How many cells have each posterior, see `decode.spectrum`."""
        return decoding.spectrum(self.posterior)

    def links(self, corpus: Corpus, threshold: float, bitext: Bitext) -> Links:
        """The cells whose posterior reaches the threshold."""
        return decoding.links_above(corpus.pairs, self.posterior, threshold, bitext=bitext)


class State(NamedTuple):
    """Expected counts, and the posteriors they are the sums of. A step writes the new posteriors over the old."""

    iteration: int
    counts: NDArray[np.int64]  # [n_entries, 2], in units of 1/65535
    jumps: NDArray[np.float64]
    first: NDArray[np.float64]
    diagonal: NDArray[np.float64]
    evidence: Evidence


class Info(NamedTuple):
    """What a person wants to watch: objective per pair, mean violation of the constraint."""

    objective: float
    violation: float


class Training:
    """Learner for one text: `begin`, `step`, and `model` of a state.

    Parameters
    ----------
    corpus, settings
    base : Model, optional
        What was learnt before, laid out for this corpus (`Model.fitted_to`): its weights become priors.
    lexicon : float32[n_entries], optional
        Pseudo-counts from the user's own lexicon.
    """

    def __init__(
        self,
        corpus: Corpus,
        settings: Settings,
        *,
        base: Model | None = None,
        lexicon: NDArray[np.float32] | None = None,
        on_shard: Callable[[float], None] | None = None,
    ) -> None:
        self.corpus, self.settings, self.base = corpus, settings, base
        self.on_shard = on_shard or (lambda fraction: None)
        self.shards = shards(np.diff(corpus.pairs.cell_offsets), limit=_SHARD)
        self.n_pairs = max(1, int((~corpus.skipped).sum()))
        self.prior = np.zeros((0, 2), np.float32)
        if base is not None:
            self.prior = np.maximum(0.0, base.weights - np.float32(settings.smoothing))
        elif settings.spelling:
            likeness = spelling_prior(corpus.source_words, corpus.target_words, corpus.rows, corpus.columns)
            self.prior = np.repeat((np.float32(settings.spelling) * likeness)[:, None], 2, axis=1)
        if lexicon is not None:
            self.prior = (self.prior if len(self.prior) else 0.0) + np.repeat(lexicon[:, None], 2, axis=1)
        self._last: tuple[NDArray[np.int64], tuple[Model, tuple[NDArray[np.float32], ...]]] | None = None
        self.stems = None
        words = corpus.source_words, corpus.target_words
        self.shares = np.zeros(len(words[0]) + 1, np.float32), np.zeros(len(words[1]) + 1, np.float32)
        if settings.stems and base is None:
            self.stems = Stems.of(*words, corpus.rows, corpus.columns, settings.stem_length)
            self.shares[0][:-1] = _shares(self.stems.source_class, corpus.source_counts)
            self.shares[1][:-1] = _shares(self.stems.target_class, corpus.target_counts)

    def begin(self) -> State:
        """Nothing counted yet; distortion uniform, or as learnt before."""
        from isogloss.structures._numba.jumps import BUCKETS, FIRST

        known = self.base
        return State(
            0,
            np.zeros((len(self.corpus.columns), 2), np.int64),
            np.ones((2, BUCKETS)) if known is None else known.jumps,
            np.ones((2, FIRST)) if known is None else known.first,
            np.ones((2, BUCKETS)) if known is None else known.diagonal,
            Evidence.none(self.corpus),
        )

    @property
    def iterations(self) -> int:
        """Steps of the whole schedule: Model 1, then the model itself."""
        return self._of_model1 + self.settings.iterations

    @property
    def _of_model1(self) -> int:
        """Steps without constraint that come first; from a uniform table, agreement of posteriors says nothing."""
        free = self.settings.model == "model1" and self.settings.constraint == "none"
        return 0 if self.base is not None or free else self.settings.model1_iterations

    def step(self, state: State) -> tuple[State, Info]:
        """One E-step and M-step."""
        from isogloss.structures._numba.jumps import FIRST
        from isogloss.tasks.align._numba.lexicon import accumulate

        own_stage = state.iteration >= self._of_model1
        kind = self.settings.model if own_stage else "model1"
        constraint = self.settings.constraint if own_stage else "none"
        leave_out = self.settings.leave_out if state.iteration else 0.0
        jumped, (bound, violation, _) = self.expect(state, kind, constraint, leave_out=leave_out, learn=True)
        counts = np.zeros_like(state.counts)
        pairs = self.corpus.pairs
        accumulate(
            *self.corpus.occurrences, pairs.target_offsets, pairs.cell_offsets, pairs.cells, state.evidence.posterior,
            counts,
        )  # fmt: skip
        jumps, first, diagonal = state.jumps, state.first, state.diagonal
        if kind == "hmm":
            jumps = _maximised(jumped[:, 0], jumped[:, 1], jumps)
            first = _maximised(jumped[:, 2, :FIRST], jumped[:, 3, :FIRST], first)
        elif kind == "model2":
            diagonal = _maximised(jumped[:, 0], jumped[:, 1], diagonal)
        after = State(state.iteration + 1, counts, jumps, first, diagonal, state.evidence)
        return after, Info(bound / self.n_pairs, violation / self.n_pairs)

    def expect(
        self, state: State, kind: str, constraint: str, *, leave_out: float, learn: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Write the posteriors of `state` into its evidence; returns distortion counts, and the sums of bounds etc."""
        model, own = self.estimate(state)
        parameters = model.parameters(self.settings, own)
        return expect(
            self.corpus, parameters, self.settings, kind, constraint, state.evidence,
            leave_out=leave_out, learn=learn, ranges=self.shards, on_shard=self.on_shard,
        )  # fmt: skip

    def model(self, state: State) -> Model:
        """The parameters that the counts of a state give."""
        return self.estimate(state)[0]

    def estimate(self, state: State) -> tuple[Model, tuple[NDArray[np.float32], ...]]:
        """M-step on the table: counts and priors to weights and their sums, and what leaving out needs to know.

        The last estimate is kept, because a model is asked for when its state is about to be decoded.
        """
        if self._last is None or self._last[0] is not state.counts:
            self._last = (state.counts, self._estimate(state))
        return self._last[1]

    def _estimate(self, state: State) -> tuple[Model, tuple[NDArray[np.float32], ...]]:
        from isogloss.tasks.align._numba.expect import UNIT
        from isogloss.tasks.align._numba.lexicon import blend, column_sums

        corpus, settings = self.corpus, self.settings
        n, m = len(corpus.source_words), len(corpus.target_words)
        weights = np.empty((len(corpus.columns), 2), np.float32)
        own = np.zeros(n + 1, np.float32), np.zeros(m + 1, np.float32)
        started = state.iteration > 0 or self.base is not None
        if started:
            pull, group = self._stem_prior(state.counts, own)
            mass = np.zeros(n)
            blend(
                corpus.rows, corpus.columns, state.counts, np.float32(1.0 / UNIT), np.float32(settings.smoothing),
                self.prior, group, pull, self.shares[0], self.shares[1], weights, mass,
            )  # fmt: skip
        else:
            weights[:] = 1.0
            if len(self.prior):
                weights += np.float32(_START) * self.prior
            starts = np.minimum(corpus.rows[:-1], max(0, len(weights) - 1))
            mass = np.add.reduceat(weights[:, 0], starts) if len(weights) else np.zeros(n)
        columns = np.zeros(m)
        column_sums(corpus.columns, weights, columns)
        if self.base is not None:  # also what its words have met elsewhere
            owner = np.repeat(np.arange(n), np.diff(corpus.rows))
            mass = self.base.source_mass[:-1] + np.bincount(owner, state.counts[:, 0], minlength=n) / UNIT
            columns = self.base.target_mass[:-1] + np.bincount(corpus.columns, state.counts[:, 1], minlength=m) / UNIT
        elif started:  # the words a type has not met have the smoothing too
            mass = mass + settings.smoothing * (m - np.diff(corpus.rows))
            columns += settings.smoothing * (n - np.bincount(corpus.columns, minlength=m))
        nulls = [
            self._null(corpus.pairs.source_ids, corpus.source_counts, state.evidence.source_null, 0, started),
            self._null(corpus.pairs.target_ids, corpus.target_counts, state.evidence.target_null, 1, started),
        ]
        null_mass = np.array([nulls[0][:-1].sum(), nulls[1][:-1].sum()], np.float32)
        if self.base is not None:  # also words that are not here; what was known of those that are is in `nulls`
            before = (self.base.source_null, self.base.source_counts), (self.base.target_null, self.base.target_counts)
            null_mass += self.base.null_mass - [null[:-1][seen > 0].sum() for null, seen in before]
        model = Model(
            corpus.source_words, corpus.target_words, corpus.source_counts, corpus.target_counts,
            corpus.rows, corpus.columns, weights,
            np.append(mass, 1.0).astype(np.float32), np.append(columns, 1.0).astype(np.float32),
            nulls[0], nulls[1], null_mass,
            state.jumps, state.first, state.diagonal,
        )  # fmt: skip
        return model, (*own, *self.shares)

    def _null(
        self,
        ids: NDArray[np.int32],
        frequency: NDArray[np.int64],
        posterior: NDArray[np.uint16],
        side: int,
        started: bool,
    ) -> NDArray[np.float32]:
        """Pseudo-counts of the null word by type; the last, for unknown words, is half an occurrence."""
        from isogloss.tasks.align._numba.expect import UNIT

        if self.base is not None:
            before = self.base.target_null if side else self.base.source_null
            counted = np.bincount(ids, posterior, minlength=len(frequency)) / UNIT
            return np.asarray(before + np.append(counted, 0.0), np.float32)
        share = frequency / max(1, frequency.sum())
        spread = self.settings.null_smoothing * len(frequency)
        if not started:
            return np.append(share, 0.5 / max(1, frequency.sum())).astype(np.float32)
        counted = np.bincount(ids, posterior, minlength=len(frequency)) / UNIT
        return np.append(counted + spread * share, spread * 0.5 / max(1, frequency.sum())).astype(np.float32)

    def _stem_prior(
        self, counts: NDArray[np.int64], own: tuple[NDArray[np.float32], NDArray[np.float32]]
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Strength times probability of each pair of stems; `own` is filled with what one occurrence adds to it."""
        from isogloss.tasks.align._numba.expect import UNIT
        from isogloss.tasks.align._numba.lexicon import group_sums, stem_pull

        if self.stems is None:
            return np.zeros((0, 2), np.float32), np.zeros(0, np.int32)
        stems, strength = self.stems, self.settings.stems
        sums = np.zeros((len(stems.owner), 2), np.int64)
        group_sums(stems.members, stems.member_starts, self.corpus.rows, stems.group, counts, sums)
        pull = np.empty((len(stems.owner), 2), np.float32)
        forward, backward = np.zeros(len(stems.starts) - 1), np.zeros(int(stems.target_class.max(initial=-1)) + 1)
        stem_pull(stems.starts, stems.other, 1.0 / UNIT, strength, sums, pull, forward, backward)
        own[0][:-1] = np.minimum(strength / forward[stems.source_class], 1e3)
        own[1][:-1] = np.minimum(strength / backward[stems.target_class], 1e3)
        return pull, stems.group

    # --- checkpoints

    def dump(self, state: State) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays = {name: getattr(state, name) for name in ("counts", "jumps", "first", "diagonal")}
        arrays |= {f"evidence.{name}": value for name, value in state.evidence._asdict().items()}
        return arrays, {"iteration": state.iteration}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> State:
        evidence = Evidence(*(arrays[f"evidence.{name}"].copy() for name in Evidence._fields))
        counts, jumps, first, diagonal = (arrays[name].copy() for name in ("counts", "jumps", "first", "diagonal"))
        return State(int(meta["iteration"]), counts, jumps, first, diagonal, evidence)


def expect(
    corpus: Corpus,
    parameters: Any,
    settings: Settings,
    kind: str,
    constraint: str,
    evidence: Evidence,
    *,
    leave_out: float,
    learn: bool,
    ranges: list[Any] | None = None,
    on_shard: Callable[[float], None] = lambda fraction: None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """E-step of a text, shard by shard; counts are added up in the order of the shards."""
    from isogloss.structures._numba.jumps import BUCKETS
    from isogloss.tasks.align._numba import expect as kernel

    jumped, sums = np.zeros((2, 4, BUCKETS)), np.zeros(3)
    ranges = ranges if ranges is not None else shards(np.diff(corpus.pairs.cell_offsets), limit=_SHARD)
    for number, (start, stop) in enumerate(ranges):
        on_shard(number / len(ranges))
        more = kernel.expect(
            kernel.MODELS[kind], kernel.MODES[constraint], corpus.pairs, parameters, start, stop, settings.max_length,
            settings.dual_steps, settings.dual_rate, settings.dual_tolerance, np.float32(leave_out), learn,
            evidence.posterior, (evidence.source_null, evidence.target_null), evidence.scores,
        )  # fmt: skip
        jumped += more[0]
        sums += more[1]
    return jumped, sums


def _maximised(
    counts: NDArray[np.float64], divisors: NDArray[np.float64], before: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The generalised M-step of distortion weights, with a pseudo-count, each direction summing to 1."""
    weights: NDArray[np.float64] = (counts + _PSEUDO) / (divisors + _PSEUDO / before)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _shares(classes: NDArray[np.int32], counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Which part of its class each word is."""
    totals = np.bincount(classes, counts)
    share: NDArray[np.float32] = (counts / np.maximum(1.0, totals[classes])).astype(np.float32)
    return share
