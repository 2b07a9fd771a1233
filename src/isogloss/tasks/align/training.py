r"""EM for both directions at once, as a learner that `learners.runner` drives.

A step is an E-step over shards of the text and an M-step on the table. Three things set it apart from textbook EM:

- *Constraints* act on the posteriors before they are counted: agreement multiplies both directions' posteriors [1]_,
  bijectivity and symmetry project them [2]_.
- *Own evidence is left out*: a cell is judged by :math:`c(e, f) - q_{ij}`, the counts without what it put in itself in
  the step before. It is what a collapsed sampler does, in expectation (CVB0 [3]_), and it stops words that occur once
  from being pinned to whatever they were first thrown together with. With this on, the objective is no longer a bound
  that can only rise; with `leave_out=0` it is (see the tests). It begins with the second step of the model itself:
  posteriors of Model 1 are spread over all cells, and those of the model over few, which can be kept.
- *Priors* (smoothing, spelling, stems, a lexicon) are pseudo-counts in the table.

The E-step of a shard is a function of the parameters, the words of the shard and what it put into the table before.
The entries of its cells are found anew each time, so that between two steps a pair has its words and the few cells
that are kept, and memory grows with the different word pairs rather than with the cells of the text.

References
----------
.. [1] Liang, Taskar and Klein, Alignment by Agreement, NAACL 2006, section 3. Distortion and null counts come from each
   direction's own posteriors.
.. [2] Graça, Ganchev and Taskar, CL 2010, section 3.
.. [3] Asuncion, Welling, Smyth and Teh, On Smoothing and Inference for Topic Models, UAI 2009, section 3.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.base import Engine, LocalEngine
from isogloss.errors import ModelError
from isogloss.layout import Layout, Numbers, Offsets, check
from isogloss.tasks.align.corpus import Corpus, Occurrences, Words
from isogloss.tasks.align.model import Model
from isogloss.tasks.align.priors import Cut, Stems, spelling_prior
from isogloss.tasks.align.settings import Settings

if TYPE_CHECKING:
    from isogloss.tasks.align.remote import AlignedText, GatheredCounts

__all__ = [
    "EStep",
    "Evidence",
    "Info",
    "Kept",
    "Others",
    "State",
    "Training",
    "check_kept",
    "expect",
    "expect_shard",
    "no_counts",
]

_LEAST = 16  # units of 1/65535: where own evidence is left out, cells below a quarter of a thousandth count as 0
_START = 10.0  # how much the priors weigh in the very first, otherwise uniform, table
_PSEUDO = 0.5  # pseudo-count of every jump and first position


class Evidence(NamedTuple):
    """What an E-step says of some pairs: posteriors in units of 1/65535 and log-probabilities."""

    posterior: NDArray[np.uint16]  # [n_cells, 2]
    source_null: NDArray[np.uint16]  # [n_source_tokens]
    target_null: NDArray[np.uint16]  # [n_target_tokens]
    scores: NDArray[np.float64]  # [n_pairs, 2], log p of each side given the other

    @classmethod
    def of(cls, pairs: Any, posterior: NDArray[np.uint16] | None = None) -> Evidence:
        """Room for that of `pairs`, in `posterior` if it is given."""
        if posterior is None:
            posterior = np.zeros((len(pairs.cells), 2), np.uint16)
        return cls(
            posterior,
            np.zeros(len(pairs.source_ids), np.uint16),
            np.zeros(len(pairs.target_ids), np.uint16),
            np.full((len(pairs.cell_offsets) - 1, 2), np.nan),
        )

    @classmethod
    def joined(cls, parts: Iterable[Evidence]) -> Evidence:
        """That of consecutive parts of a text as one."""
        columns = list(zip(*parts, strict=True))
        return cls(*(np.concatenate(column) for column in columns))


class Kept:
    """Evidence of a text from one step to the next, on the shelf of the text: few cells of each pair.

    Cells that are not here have posterior 0, and have put nothing into the table: counts are the sums of what is kept.
    A step writes the new evidence of a shard over the old.
    """

    _numbers = count()

    def __init__(self, corpus: Corpus) -> None:
        self.corpus, self.name = corpus, f"evidence-{next(self._numbers)}"

    def put(self, shard: int, pairs: Any, evidence: Evidence) -> None:
        """Keep what is not 0."""
        from isogloss.tasks.align._numba.expect import keep_cells

        starts, cells = keep_cells(pairs.cell_offsets, evidence.posterior)
        self.corpus.shelf.put(self._at(shard), starts, cells, *evidence[1:])

    def before(self, shard: int, pairs: Any) -> tuple[Any, ...]:
        """As the E-step takes it: (starts, cells) and null posteriors."""
        from isogloss.tasks.align._numba.expect import no_evidence

        if self._at(shard) not in self.corpus.shelf:
            nothing: tuple[Any, ...] = no_evidence(pairs)
            return nothing
        starts, cells, source_null, target_null, _ = self.corpus.shelf.get(self._at(shard))
        return starts, cells, (source_null, target_null)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, under names of their own, for `isogloss.store`."""
        found: dict[str, NDArray[Any]] = {}
        for shard in range(len(self.corpus.shards)):
            if self._at(shard) in self.corpus.shelf:
                arrays = zip(_KEPT, self.corpus.shelf.get(self._at(shard)), strict=True)
                found |= {f"evidence.{shard}.{name}": array for name, array in arrays}
        return found

    @classmethod
    def from_arrays(cls, corpus: Corpus, arrays: dict[str, NDArray[Any]]) -> Kept:
        """What `arrays` gave; refuses evidence that is not of this text, because kernels index with it."""
        kept = cls(corpus)
        for shard in range(len(corpus.shards)):
            there = [arrays[key] for name in _KEPT if (key := f"evidence.{shard}.{name}") in arrays]
            if there:
                check_kept(dict(zip(_KEPT, there, strict=True)), corpus, shard)
                corpus.shelf.put(kept._at(shard), *(array.copy() for array in there))
        return kept

    def shard(self, shard: int) -> tuple[Words, NDArray[np.uint16]]:
        """The words of a shard, and the posterior of every cell, uint16[n_cells, 2], valid until the next is asked for.

        Cells that are not kept have 0.
        """
        from isogloss.tasks.align._numba.expect import spread_cells

        words = self.corpus.words(shard)
        room = self.corpus.space("posterior", 2 * int(words.cell_offsets[-1]), np.uint16).reshape(-1, 2)
        starts, cells = self.corpus.shelf.get(self._at(shard))[:2]
        spread_cells(words.cell_offsets, starts, cells, room)
        return words, room

    @property
    def scores(self) -> NDArray[np.float64]:
        """Log-probability of each side of every pair given the other, float64[n_pairs, 2]."""
        shards = range(len(self.corpus.shards))
        return np.concatenate([np.zeros((0, 2)), *(self.corpus.shelf.get(self._at(shard))[-1] for shard in shards)])

    def stored(self, shard: int) -> dict[str, NDArray[Any]]:
        """What is kept of a shard, as arrays by name."""
        return dict(zip(_KEPT, self.corpus.shelf.get(self._at(shard)), strict=True))

    def store(self, shard: int, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep what `stored` gave, here or in another process."""
        self.corpus.shelf.put(self._at(shard), *(arrays[name] for name in _KEPT))

    def drop(self, shard: int) -> None:
        """Forget what is kept of a shard."""
        self.corpus.shelf.drop(self._at(shard))

    def _at(self, shard: int) -> str:
        return f"{self.name}-{shard}"


_KEPT = ("starts", "cells", "source_null", "target_null", "scores")
_CHECKPOINT = "the evidence of this checkpoint"


def check_kept(arrays: dict[str, NDArray[Any]], corpus: Corpus, shard: int, what: str = _CHECKPOINT) -> None:
    """Refuse evidence that is not of the shard: kernels index with it."""
    words = corpus.words(shard)
    layout: Layout = {
        "starts": Offsets("pairs", "kept"),
        "cells": Numbers("uint16", ("kept", 3)),
        "source_null": Numbers("uint16", len(words.source_ids)),
        "target_null": Numbers("uint16", len(words.target_ids)),
    }
    found = check(arrays, layout, what, {"pairs": len(words.source_offsets) - 1})
    starts, gaps = found["starts"], found["cells"][:, 0]
    places = np.concatenate([[0], np.cumsum(gaps, dtype=np.int64)])
    outside = np.diff(places[starts]) >= np.maximum(1, np.diff(words.cell_offsets))
    if outside.any() or arrays["scores"].shape != (len(starts) - 1, 2) or arrays["scores"].dtype != np.float64:
        raise ModelError(f"{what} is of another text. Start again without resuming")


class Others(NamedTuple):
    """Expected counts that are not those of entries, in units of 1/65535."""

    source_null: NDArray[np.int64]  # [n_source_types]
    target_null: NDArray[np.int64]
    stray_pairs: NDArray[np.int64]  # [n_pairs_of_stems, 2]: of cells without an entry; empty if the table is whole
    stray_source: NDArray[np.int64]  # [n_source_types]
    stray_target: NDArray[np.int64]


class State(NamedTuple):
    """Expected counts, and the posteriors they are the sums of. A step writes the new ones over the old."""

    iteration: int
    counts: NDArray[np.int64]  # [n_entries, 2], in units of 1/65535
    others: Others
    jumps: NDArray[np.float64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]
    diagonal: NDArray[np.float64]
    evidence: Kept


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
    on_shard : callable, optional
        Told which part of the shards of a step is done.
    engine : Engine, optional
        Where shards are worked on; by default in this process. The result is the same.
    """

    def __init__(
        self,
        corpus: Corpus,
        settings: Settings,
        *,
        base: Model | None = None,
        lexicon: NDArray[np.float32] | None = None,
        on_shard: Callable[[float], None] | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.corpus, self.settings, self.base = corpus, settings, base
        self.engine = LocalEngine() if engine is None else engine
        self.on_shard = on_shard or (lambda fraction: None)
        some = settings.learnt_length < corpus.max_length
        self.n_pairs = max(1, corpus.within(settings.learnt_length) if some else int((~corpus.skipped).sum()))
        self.prior = self._known_before(lexicon)
        self._last: tuple[int, NDArray[np.int64], tuple[Model, tuple[NDArray[np.float32], ...]]] | None = None
        self.cuts = settings.cuts if settings.stems and base is None else ()
        self._stems: list[Stems] = []
        words = corpus.source_words, corpus.target_words
        rows = max(1, len(self.cuts))
        self.shares = tuple(np.zeros((rows, len(side) + 1), np.float32) for side in words)
        for k, cut in enumerate(self.cuts):
            known = (corpus.pairs_of_classes,) if k == 0 else ()
            stems = Stems.of(*words, corpus.rows, corpus.columns, cut, *known)
            self.shares[0][k, :-1] = _shares(stems.source_class, corpus.source_counts)
            self.shares[1][k, :-1] = _shares(stems.target_class, corpus.target_counts)
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

    def begin(self) -> State:
        """Nothing counted yet; distortion uniform, or as learnt before."""
        from isogloss.structures._numba.jumps import BUCKETS, FIRST

        known = self.base
        return State(
            0,
            np.zeros((len(self.corpus.columns), 2), np.int64),
            no_counts(self.corpus, self.stems),
            np.ones((2, BUCKETS)) if known is None else known.jumps,
            np.ones((2, FIRST)) if known is None else known.first,
            np.ones((2, FIRST)) if known is None else known.last,
            np.ones((2, BUCKETS)) if known is None else known.diagonal,
            Kept(self.corpus),
        )

    @property
    def iterations(self) -> int:
        """Steps of the whole schedule: Model 1, then the model itself."""
        return self._of_model1 + self.settings.iterations

    @property
    def _of_model1(self) -> int:
        """Steps of Model 1 that come first; the very first has no constraint, since a uniform table has nothing to say.

        Model 1 without constraint has no such steps: they would be like its own.
        """
        free = self.settings.model == "model1" and self.settings.constraint == "none"
        return 0 if self.base is not None or free else self.settings.model1_iterations

    def step(self, state: State) -> tuple[State, Info]:
        """One E-step and M-step."""
        from isogloss.structures._numba.jumps import BUCKETS, FIRST, ROWS

        settings, corpus = self.settings, self.corpus
        own_stage = state.iteration >= self._of_model1
        kind = settings.model if own_stage else "model1"
        constraint = settings.constraint if own_stage else settings.model1_constraint if state.iteration else "none"
        leave_out = settings.leave_out if state.iteration > self._of_model1 else 0.0
        model, own = self.estimate(state)
        self._last = None
        started = state.iteration > 0 or self.base is not None
        parameters = model.parameters(settings, own, floor=None if started else 1.0)
        work = EStep(
            f"step-{state.iteration:03d}", corpus, self.stems if corpus.least > 1 else None, state.evidence, parameters,
            settings, kind, constraint, leave_out=leave_out, keeps=self._keeps(state.iteration),
            last=state.iteration + 1 >= self.iterations,
        )  # fmt: skip
        counts = state.counts
        counts[:] = 0
        others = no_counts(corpus, self.stems)
        jumped, sums = np.zeros((2, ROWS, BUCKETS)), np.zeros(3)
        done = 0
        self.on_shard(0.0)
        for found in self.engine.map(work, range(len(corpus.shards))):
            found.add_to(counts, others)
            for of_jumps, of_bounds in found.sums:  # floats, in the order of shards whoever worked on them
                jumped += of_jumps
                sums += of_bounds
                done += 1
            found.keep()
            self.on_shard(done / len(corpus.shards))
        jumps, first, last, diagonal = state.jumps, state.first, state.last, state.diagonal
        if kind == "hmm":
            jumps = _maximised(jumped[:, 0], jumped[:, 1], jumps)
            first = _maximised(jumped[:, 2, :FIRST], jumped[:, 3, :FIRST], first)
            if settings.final:
                last = _maximised(jumped[:, 4, :FIRST], jumped[:, 5, :FIRST], last)
        elif kind == "model2":
            diagonal = _maximised(jumped[:, 0], jumped[:, 1], diagonal)
        after = State(state.iteration + 1, counts, others, jumps, first, last, diagonal, state.evidence)
        return after, Info(sums[0] / self.n_pairs, sums[1] / self.n_pairs)

    def _keeps(self, iteration: int) -> bool:
        """Whether something will be left out of what this step counts, in the next step or in decoding."""
        if iteration + 1 >= self.iterations:
            return self.settings.decode_leave_out > 0
        return self.settings.leave_out > 0 and iteration >= self._of_model1

    def forget(self) -> None:
        """Let go of the last estimate, and the counts that it was made of."""
        self._last = None

    def model(self, state: State) -> Model:
        """The parameters that the counts of a state give."""
        return self.estimate(state)[0]

    def estimate(self, state: State) -> tuple[Model, tuple[NDArray[np.float32], ...]]:
        """M-step on the table: counts and priors to weights and their sums, and what leaving out needs to know.

        The last estimate is kept, because a model is asked for when its state is about to be decoded.
        """
        if self._last is None or self._last[0] != state.iteration or self._last[1] is not state.counts:
            self._last = None  # room for the next
            self._last = (state.iteration, state.counts, self._estimate(state))
        return self._last[2]

    def _estimate(self, state: State) -> tuple[Model, tuple[NDArray[np.float32], ...]]:
        from isogloss.tasks.align._numba.expect import UNIT
        from isogloss.tasks.align._numba.lexicon import blend, column_sums

        corpus, settings = self.corpus, self.settings
        n, m = len(corpus.source_words), len(corpus.target_words)
        weights = np.empty((len(corpus.columns), 2), np.float32)
        own = tuple(np.zeros_like(share) for share in self.shares)
        started = state.iteration > 0 or self.base is not None
        pull = np.zeros((len(state.others.stray_pairs), 2), np.float32)
        if started:
            pull = self._stem_prior(state, own)
            mass = np.zeros(n)
            blend(
                corpus.rows, corpus.columns, state.counts, np.float32(1.0 / UNIT), np.float32(settings.smoothing),
                self.prior, self._groups, pull, self.shares[0], self.shares[1], weights, mass,
            )  # fmt: skip
        else:
            weights[:] = 1.0
            weights[self.prior[1]] += np.float32(_START) * self.prior[2]
            starts = np.minimum(corpus.rows[:-1], max(0, len(weights) - 1))
            mass = np.add.reduceat(weights[:, 0], starts) if len(weights) else np.zeros(n)
            mass = np.where(np.diff(corpus.rows) > 0, mass, 0.0) + corpus.dropped[0]
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
        nulls = [
            self._null(corpus.source_counts, state.others.source_null, 0, started),
            self._null(corpus.target_counts, state.others.target_null, 1, started),
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
            state.jumps, state.first, state.last, state.diagonal,
        )  # fmt: skip
        return model, (*own, *self.shares, pull if corpus.least > 1 else np.zeros((0, 2), np.float32))

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

    # --- checkpoints

    def dump(self, state: State) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays = {name: getattr(state, name) for name in _DUMPED} | state.others._asdict()
        return arrays | state.evidence.arrays(), {"iteration": state.iteration}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> State:
        wanted, _ = self.dump(self.begin())
        layout: Layout = {name: Numbers(array.dtype.name, array.shape) for name, array in wanted.items()}
        found = {name: array.copy() for name, array in check(arrays, layout, _CHECKPOINT).items()}
        others = Others(*(found[name] for name in Others._fields))
        kept = Kept.from_arrays(self.corpus, arrays)
        return State(int(meta["iteration"]), others=others, evidence=kept, **{name: found[name] for name in _DUMPED})


_DUMPED = ("counts", "jumps", "first", "last", "diagonal")


def no_counts(corpus: Corpus, stems: Stems | None) -> Others:
    """Nothing counted yet."""
    n, m = len(corpus.source_counts), len(corpus.target_counts)
    n_pairs = len(stems.owner) if stems is not None and corpus.least > 1 else 0
    return Others(*(np.zeros(shape, np.int64) for shape in (n, m, (n_pairs, 2), n, m)))


class EStep:
    """The E-step of one iteration as a function of a shard.

    It depends on the parameters, the words of the shard and what the shard put into the table before, and changes
    none of them, so that an `Engine` may run it anywhere.

    Parameters
    ----------
    name : str
        Of this step among all of a training.
    corpus, stems, before
        The text, what its cells without an entry go by, and what its shards put into the table before.
    parameters, settings, kind, constraint, leave_out
        As `expect` takes them.
    keeps : bool
        Whether a later step leaves out what this one counts.
    last : bool
        Whether this is the last step, after which the text is decoded.
    """

    def __init__(
        self,
        name: str,
        corpus: Corpus,
        stems: Stems | None,
        before: Kept,
        parameters: Any,
        settings: Settings,
        kind: str,
        constraint: str,
        *,
        leave_out: float,
        keeps: bool,
        last: bool = False,
    ) -> None:
        self.name, self.corpus, self.stems, self.before = name, corpus, stems, before
        self.parameters, self.settings, self.kind, self.constraint = parameters, settings, kind, constraint
        self.leave_out, self.keeps, self.last = leave_out, keeps, last

    def __call__(self, shard: int) -> Expected:
        pairs, where = self.corpus.shard(shard, self.stems)
        evidence, sums = expect_shard(
            self.corpus, pairs, self.parameters, self.settings, self.kind, self.constraint,
            self.before.before(shard, pairs), leave_out=self.leave_out, learn=True, least=_LEAST if self.keeps else 1,
        )  # fmt: skip
        return Expected(self, shard, pairs, where, evidence, [sums])

    # --- for workers that are other processes

    def setup(self) -> AlignedText:
        """The text."""
        from isogloss.tasks.align.remote import AlignedText

        return AlignedText(self.corpus, self.stems)

    def written(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """All that the step depends on but for its shard."""
        from isogloss.tasks.align.remote import written_step

        return written_step(
            self.parameters, self.settings, job="expect", kind=self.kind, constraint=self.constraint,
            leave_out=self.leave_out, keeps=self.keeps,
        )  # fmt: skip

    def gathered(
        self, shards: Sequence[int], found: dict[str, NDArray[Any]], kept: Callable[[int], dict[str, NDArray[Any]]]
    ) -> GatheredCounts:
        """What workers found for some shards."""
        from isogloss.tasks.align.remote import GatheredCounts

        return GatheredCounts(self, shards, found, kept)


class Expected(NamedTuple):
    """What the E-step says of a shard, valid until the next shard is worked on."""

    step: EStep
    shard: int
    pairs: Any
    where: Occurrences
    evidence: Evidence
    sums: list[tuple[NDArray[np.float64], NDArray[np.float64]]]

    def add_to(self, counts: NDArray[np.int64], others: Others) -> None:
        """Add the evidence to the counts; whole numbers, so that the order does not matter.

        Cells without an entry add to the sums of their words, and to what is known of their stems.
        """
        from isogloss.tasks.align._numba.lexicon import accumulate, accumulate_some, count_nulls

        corpus, stems, pairs, evidence = self.step.corpus, self.step.stems, self.pairs, self.evidence
        if corpus.least == 1:
            accumulate(*self.where, pairs.target_offsets, pairs.cell_offsets, pairs.cells, evidence.posterior, counts)
        else:
            members, starts = (corpus.no_stems if stems is None else stems.classes)[:2]
            accumulate_some(self.where, pairs, evidence.posterior, members, starts, counts, *others[2:])
        count_nulls(pairs.source_ids, evidence.source_null, others.source_null)
        count_nulls(pairs.target_ids, evidence.target_null, others.target_null)

    def keep(self) -> None:
        """Keep the evidence, if a later step leaves it out."""
        if self.step.keeps:
            self.step.before.put(self.shard, self.pairs, self.evidence)


def expect_shard(
    corpus: Corpus,
    pairs: Any,
    parameters: Any,
    settings: Settings,
    kind: str,
    constraint: str,
    before: tuple[Any, ...],
    *,
    leave_out: float,
    learn: bool,
    least: int = 1,
) -> tuple[Evidence, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """E-step of a shard: its evidence, valid until the next shard, and distortion counts and the sums of bounds etc."""
    room = corpus.space("posterior", 2 * len(pairs.cells), np.uint16).reshape(-1, 2)
    evidence = Evidence.of(pairs, room)
    more = expect(
        pairs, parameters, settings, kind, constraint, before, evidence, leave_out=leave_out, learn=learn, least=least
    )
    return evidence, more


def expect(
    pairs: Any,
    parameters: Any,
    settings: Settings,
    kind: str,
    constraint: str,
    before: tuple[Any, ...],
    evidence: Evidence,
    *,
    leave_out: float,
    learn: bool,
    least: int = 1,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """E-step of some pairs, into `evidence`; returns distortion counts, and the sums of bounds etc."""
    from isogloss.tasks.align._numba import expect as kernel

    found: tuple[NDArray[np.float64], NDArray[np.float64]] = kernel.expect(
        kernel.MODELS[kind], kernel.MODES[constraint], pairs, parameters, 0, len(pairs.cell_offsets) - 1,
        settings.learnt_length if learn else settings.max_length, settings.dual_steps, settings.dual_rate,
        settings.dual_tolerance, settings.dual_search == "adaptive", np.float32(leave_out), learn, before,
        evidence.posterior, (evidence.source_null, evidence.target_null), evidence.scores, least,
    )  # fmt: skip
    return found


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
