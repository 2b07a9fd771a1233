"""Posteriors of unsupervised aligners for a text, of which some pairs may be among those they were trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.decode import UNIT
from isogloss.tasks.align.features.base import Floats
from isogloss.tasks.align.features.statistics import without
from isogloss.tasks.align.hmm import HMMAligner

__all__ = ["Posteriors", "consensus_of", "posteriors_of", "training_posteriors"]


class Posteriors(NamedTuple):
    """Of every cell in both directions, and of every word's having no partner.

    The null posterior of a source word is that of the backward direction, of a target word that of the forward one.
    """

    both: Floats  # [n_cells, 2]
    source_null: Floats
    target_null: Floats


def posteriors_of(aligner: HMMAligner, bitext: Bitext, corpus: Corpus, known: NDArray[np.int64] | None) -> Posteriors:
    """What an aligner thinks of a text.

    Parameters
    ----------
    aligner : HMMAligner
        Or one of its kin; fitted.
    bitext, corpus
        The text, and the same as numbers with the aligner's options.
    known : int64[n_pairs], optional
        The pair of its training text that each pair is, -1 for none. Those have the posteriors of its last decoding,
        in which own evidence is left out; the others those that the model gives for new text.
    """
    pairs = corpus.pairs
    cells = np.zeros((corpus.n_cells, 2), np.uint16)
    nulls = np.zeros(len(pairs.source_ids), np.uint16), np.zeros(len(pairs.target_ids), np.uint16)
    if known is None:
        known = np.full(len(corpus), -1, np.int64)
    inside = known >= 0
    if inside.any():
        assert aligner._trained_on is not None
        there, evidence = aligner._trained_on[1].corpus.whole, aligner._trained_on[1].evidence
        for mine, offsets, theirs, starts in (
            (cells, pairs.cell_offsets, evidence.posterior, there.cell_offsets),
            (nulls[0], pairs.source_offsets, evidence.source_null, there.source_offsets),
            (nulls[1], pairs.target_offsets, evidence.target_null, there.target_offsets),
        ):
            into, out_of = _ranges(offsets, inside), _ranges(starts, known[inside])
            mine[into] = theirs[out_of]
    fresh = ~inside & ~corpus.skipped
    if fresh.any():
        rest, _, evidence = aligner._evidence(without(bitext, ~fresh) if inside.any() else bitext)
        for mine, offsets, theirs, starts in (
            (cells, pairs.cell_offsets, evidence.posterior, rest.pairs.cell_offsets),
            (nulls[0], pairs.source_offsets, evidence.source_null, rest.pairs.source_offsets),
            (nulls[1], pairs.target_offsets, evidence.target_null, rest.pairs.target_offsets),
        ):
            mine[_ranges(offsets, fresh)] = theirs[_ranges(starts, fresh)]
    unit = np.float32(1.0 / UNIT)
    return Posteriors(cells * unit, nulls[0] * unit, nulls[1] * unit)


def training_posteriors(aligner: HMMAligner) -> Floats:
    """Posteriors in both directions of every cell of the text an aligner was trained on: float32[n_cells, 2].

    The numbers are those that `posteriors_of` has for the same pairs.
    """
    assert aligner._trained_on is not None
    found: Floats = aligner._trained_on[1].evidence.posterior * np.float32(1.0 / UNIT)
    return found


def consensus_of(means: Sequence[Floats]) -> Floats:
    """The mean of what several aligners say of every cell."""
    mean: Floats = (sum(means[1:], start=means[0]) / np.float32(len(means))).astype(np.float32)
    return mean


def _ranges(offsets: NDArray[np.int64], chosen: NDArray[np.bool_] | NDArray[np.int64]) -> NDArray[np.int64]:
    """All places of the rows chosen, one row after the other."""
    starts, sizes = offsets[:-1][chosen], np.diff(offsets)[chosen]
    ends = np.cumsum(sizes)
    places: NDArray[np.int64] = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - sizes), sizes)
    return places
