"""The E-step: posteriors of the cells of a shard, and what they add to the counts.

It is a function of the parameters, the words of the shard and what it put into the table before, so that an `Engine`
may run it anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.tasks.align.corpus import Corpus, Occurrences
from isogloss.tasks.align.evidence import Evidence, Kept
from isogloss.tasks.align.priors import Stems
from isogloss.tasks.align.settings import Settings

if TYPE_CHECKING:
    from isogloss.tasks.align.remote import AlignedText, GatheredCounts

__all__ = ["LEAST", "EStep", "Expected", "Others", "State", "expect", "expect_shard", "no_counts"]

LEAST = 16
"""Units of 1/65535: where own evidence is left out, cells below a quarter of a thousandth count as 0."""


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
            self.before.before(shard, pairs), leave_out=self.leave_out, learn=True, least=LEAST if self.keeps else 1,
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
